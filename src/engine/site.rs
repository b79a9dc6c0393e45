//! What the engine knows of a server beside its queue: where it is, what its robots.txt says, how
//! its connections behave. Side tables by [`ServerId`](crate::frontier::ServerId), so that the
//! stations that own these facts stay strangers.

use super::outcome::Outcome;
use crate::codec::{Put, Short, Take};
use crate::frontier::Retirement;
use crate::http::pipeline::Learnt;
use crate::robots::Rules;
use crate::stats::Histogram;
use crate::time::{Instant, Now, UnixTime};
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

/// What a checkpoint keeps of a server, for the next run.
///
/// ```text
/// number varint | robots.txt u8: 0 unknown, 1 rules, 2 can't be had
/// | 1 and 2: until u64 (microseconds, UTC) | 1: the rules
/// | failed tries u8 | can't be had since u64, 0: it can | requests it takes u32, 0: not known
/// | pipelining barred u8 | failures u8 | given up u8 | if so: what its URLs come to, JSON
/// ```
impl Site {
    /// Whether there is anything that a new one would not have.
    pub(super) fn is_worth_keeping(&self) -> bool {
        let knows_robots = matches!(self.robots, Robots::Rules(..) | Robots::Unreachable(_));
        knows_robots
            || self.robots_tries > 0
            || self.robots_failing_since.is_some()
            || self.learnt != Learnt::default()
            || self.failures > 0
            || self.retired_as.is_some()
    }

    pub(super) fn encode(&self, number: usize, now: Now, out: &mut Vec<u8>) {
        out.put_varint(number as u64);
        match &self.robots {
            Robots::Rules(rules, until) => {
                out.put_u8(1);
                out.put_u64(now.unix_of(*until).as_micros());
                rules.encode(out);
            }
            Robots::Unreachable(until) => {
                out.put_u8(2);
                out.put_u64(now.unix_of(*until).as_micros());
            }
            Robots::Unknown | Robots::Asked | Robots::Elsewhere(_) => out.put_u8(0),
        }
        out.put_u8(self.robots_tries);
        let since = self.robots_failing_since.map(|since| now.unix_of(since).as_micros().max(1));
        out.put_u64(since.unwrap_or(0));
        let (allowance, is_barred) = self.learnt.worth_keeping();
        out.put_u32(allowance);
        out.put_bool(is_barred);
        out.put_u8(self.failures);
        out.put_bool(self.retired_as.is_some());
        if let Some(outcome) = &self.retired_as {
            out.put_str(&serde_json::to_string(outcome).expect("a plain value"));
        }
    }

    /// The number of the server whose side table comes next.
    pub(super) fn number_of(take: &mut Take<'_>) -> Result<usize, Short> {
        take.number()
    }

    /// Bytes of the rules it knows; 0 if it knows none.
    pub(super) fn known_rules_bytes(&self) -> usize {
        match &self.robots {
            Robots::Rules(rules, _) => rules.size_bytes(),
            _ => 0,
        }
    }

    /// Takes in what an earlier run wrote down, its number excepted. No answer about robots.txt is
    /// believed for longer than `ttl`, whatever the calendar says.
    pub(super) fn decode(
        &mut self,
        take: &mut Take<'_>,
        ttl: Duration,
        now: Now,
    ) -> Result<(), Short> {
        let until = |us| now.instant_of(UnixTime::from_micros(us), ttl);
        self.robots = match take.u8()? {
            0 => Robots::Unknown,
            1 => {
                let until = until(take.u64()?);
                Robots::Rules(Rc::new(Rules::decode(take)?), until)
            }
            2 => Robots::Unreachable(until(take.u64()?)),
            _ => return Err(Short),
        };
        self.robots_tries = take.u8()?;
        // Time before this run can't be told in it: the wait for a server without an answer
        // starts anew, which asks no more often.
        self.robots_failing_since = (take.u64()? > 0).then_some(now.at);
        let (allowance, is_barred) = (take.u32()?, take.bool()?);
        self.learnt = Learnt::restored(allowance, is_barred);
        self.failures = take.u8()?;
        self.retired_as = match take.bool()? {
            true => Some(serde_json::from_str(take.str()?).map_err(|_| Short)?),
            false => None,
        };
        Ok(())
    }
}

/// How long a server waits for another to tell its robots.txt.
pub(super) const ELSEWHERE_MAX: Duration = Duration::from_secs(300);
