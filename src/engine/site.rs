//! What the engine knows of a server beside its queue: where it is, what its robots.txt says, how
//! its connections behave. Side tables by [`ServerId`](crate::frontier::ServerId), so that the
//! stations that own these facts stay strangers.

use super::outcome::Outcome;
use crate::frontier::Retirement;
use crate::http::pipeline::Learnt;
use crate::robots::Rules;
use crate::stats::Histogram;
use crate::time::Instant;
use crate::url::UrlRef;
use std::rc::Rc;
use std::time::Duration;

/// Facts of one server.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) host: Box<str>,
    /// `host[:port]`, as the Host field has it.
    pub(super) authority: Box<str>,
    pub(super) port: u16,
    pub(super) https: bool,
    pub(super) robots: Robots,
    /// Failed tries to get robots.txt.
    pub(super) robots_tries: u8,
    /// Bytes of its rules, and how often they have been set.
    pub(super) rules_bytes: usize,
    pub(super) rules_number: u32,
    /// Since when robots.txt could not be had.
    pub(super) robots_failing_since: Option<Instant>,
    pub(super) learnt: Learnt,
    /// Slot of its one connection, open or being set up.
    pub(super) conn: Option<u32>,
    /// Failed visits in a row.
    pub(super) failures: u8,
    /// To be given up when its visit ends: why, and what its URLs come to.
    pub(super) hopeless: Option<(Retirement, Outcome)>,
    /// Given up: what its URLs come to.
    pub(super) retired_as: Option<Outcome>,
    /// End of the last visit, and the instant before which no other may begin.
    rest: Option<(Instant, Instant)>,
}

/// What is known of a robots.txt.
#[derive(Clone, Debug)]
pub(super) enum Robots {
    /// Nothing.
    Unknown,
    /// It has been asked for on this server.
    Asked,
    /// A redirect led to another server, which has been asked; not to be waited for longer.
    Elsewhere(Instant),
    /// Its rules, until they are to be asked for again.
    Rules(Rc<Rules>, Instant),
    /// It can't be had: nothing may be fetched, until it is to be asked for again.
    Unreachable(Instant),
}

/// Whether a page may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// robots.txt comes first.
    Unknown,
    /// It has been asked for.
    Pending,
    /// Its rules are known.
    Rules,
}

impl Site {
    pub(super) fn new(url: UrlRef<'_>) -> Self {
        Self {
            host: url.host().into(),
            authority: url.authority().into(),
            port: url.port(),
            https: url.is_https(),
            robots: Robots::Unknown,
            robots_tries: 0,
            rules_bytes: 0,
            rules_number: 0,
            robots_failing_since: None,
            learnt: Learnt::default(),
            conn: None,
            failures: 0,
            hopeless: None,
            retired_as: None,
            rest: None,
        }
    }

    /// Where robots.txt stands now.
    pub(super) fn known(&mut self, now: Instant) -> Known {
        match self.robots {
            Robots::Rules(_, until) | Robots::Unreachable(until) if until > now => Known::Rules,
            Robots::Asked => Known::Pending,
            Robots::Elsewhere(until) if until > now => Known::Pending,
            _ => Known::Unknown,
        }
    }

    /// It has answered: what went wrong before is over.
    pub(super) fn recovers(&mut self) {
        self.failures = 0;
        self.hopeless = self.hopeless.filter(|(why, _)| *why != Retirement::Failures);
    }

    /// Forgets the rules of a server to make room; they will be asked for again.
    pub(super) fn forget_rules(&mut self) {
        if matches!(self.robots, Robots::Rules(..)) {
            self.robots = Robots::Unknown;
        }
    }

    pub(super) fn robots_asked(&mut self) {
        self.robots = Robots::Asked;
    }

    /// Why a target may not be fetched, if it may not.
    pub(super) fn forbids(&self, target: &str) -> Option<Outcome> {
        match &self.robots {
            Robots::Rules(rules, _) if rules.check(target).allowed => None,
            Robots::Rules(..) => Some(Outcome::RobotsDenied),
            _ => Some(Outcome::RobotsUnreachable),
        }
    }

    /// While another server is asked for the robots.txt of this one, there is nothing to visit it
    /// for: until when.
    pub(super) fn robots_elsewhere(&self) -> Option<Instant> {
        match self.robots {
            Robots::Elsewhere(until) => Some(until),
            _ => None,
        }
    }

    /// A visit ended now; the next may begin at `due`.
    pub(super) fn rests(&mut self, now: Instant, due: Instant) {
        self.rest = Some((now, due));
    }

    /// The rest owed ends at this instant.
    pub(super) fn due(&self) -> Instant {
        self.rest.map_or(Instant::ZERO, |(_, due)| due)
    }

    /// A visit's first request goes out now: how does the rest compare with what was promised?
    pub(super) fn observe_rest(&mut self, now: Instant, kept_milli: &mut Histogram) {
        if let Some((ended, due)) = self.rest
            && due > ended
        {
            let (kept, promised) = (now.since(ended), due.since(ended));
            assert!(kept >= promised, "no server is visited before its rest is over");
            let milli = kept.as_micros().saturating_mul(1_000) / promised.as_micros();
            kept_milli.add(u64::try_from(milli).unwrap_or(u64::MAX));
        }
    }
}

/// How long a server waits for another to tell its robots.txt.
pub(super) const ELSEWHERE_MAX: Duration = Duration::from_secs(300);
