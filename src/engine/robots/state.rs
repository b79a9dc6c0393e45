//! What is known of the robots.txt of one server.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::segments::Location;
use crate::ground::time::{Instant, Now, UnixTime};
use crate::robots::Rules;
use std::time::Duration;

/// How long a server waits for the robots.txt of another, to which its own redirects.
pub(in crate::engine) const ELSEWHERE_MAX: Duration = Duration::from_secs(300);

/// What is known of a robots.txt.
#[derive(Debug, Default)]
pub(in crate::engine) enum Robots {
    /// Nothing.
    #[default]
    Unknown,
    /// It has been asked for on this server.
    Asked,
    /// A redirect led to another server, which has been asked; not waited for any longer than this.
    Elsewhere(Instant),
    /// It forbids nothing, until it is to be asked for again.
    Open(Instant),
    /// Its rules, until they are to be asked for again.
    Rules(Box<Held>, Instant),
    /// The same, on disk.
    OnDisk(Location, Instant),
    /// It can't be had: nothing may be fetched, until it is to be asked for again.
    Unreachable(Instant),
}

/// Rules in memory.
#[derive(Debug)]
pub(in crate::engine) struct Held {
    pub(in crate::engine) rules: Rules,
    /// Where they are on disk, if they are.
    pub(super) location: Option<Location>,
}

/// Whether a page may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Known {
    /// robots.txt comes first.
    Unknown,
    /// It has been asked for.
    Pending,
    /// Its rules are known.
    Rules,
}

impl Robots {
    /// The state in which these rules hold until then.
    pub(super) fn of(rules: Rules, until: Instant) -> Self {
        if rules.has_rules() {
            Self::Rules(Box::new(Held { rules, location: None }), until)
        } else {
            Self::Open(until)
        }
    }

    /// Whether a page may be asked for now.
    pub(in crate::engine) fn known(&self, now: Instant) -> Known {
        match *self {
            Self::Open(until)
            | Self::Rules(_, until)
            | Self::OnDisk(_, until)
            | Self::Unreachable(until)
                if until > now =>
            {
                Known::Rules
            }
            Self::Asked => Known::Pending,
            Self::Elsewhere(until) if until > now => Known::Pending,
            _ => Known::Unknown,
        }
    }

    /// Bytes of rules in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Rules(held, _) => {
                size_of::<Held>() - size_of::<Rules>() + held.rules.size_bytes()
            }
            _ => 0,
        }
    }

    /// Whether another run would have to ask for it as well.
    pub(in crate::engine) fn is_forgettable(&self) -> bool {
        matches!(self, Self::Unknown | Self::Asked | Self::Elsewhere(_))
    }

    /// Appends what a checkpoint keeps: see [`crate::engine::site::Site::encode`].
    pub(in crate::engine) fn encode(&self, now: Now, out: &mut Vec<u8>) {
        let mut put = |code: u8, until: Instant| {
            out.put_u8(code);
            out.put_u64(now.unix_of(until).as_micros());
        };
        match self {
            Self::Open(until) => {
                put(1, *until);
                Rules::allow_all().encode(out);
            }
            Self::Rules(held, until) => {
                put(1, *until);
                held.rules.encode(out);
            }
            Self::OnDisk(location, until) => {
                put(3, *until);
                let Location { segment, offset, bytes } = *location;
                [segment, offset, bytes].into_iter().for_each(|number| out.put_u32(number));
            }
            Self::Unreachable(until) => put(2, *until),
            Self::Unknown | Self::Asked | Self::Elsewhere(_) => out.put_u8(0),
        }
    }

    /// Takes what [`Robots::encode`] wrote. Nothing is valid for longer than `ttl` from now,
    /// whatever the wall clock says.
    pub(in crate::engine) fn decode(
        take: &mut Take<'_>,
        ttl: Duration,
        now: Now,
    ) -> Result<Self, Short> {
        let until = |us| now.instant_of(UnixTime::from_micros(us), ttl);
        Ok(match take.u8()? {
            0 => Self::Unknown,
            1 => {
                let until = until(take.u64()?);
                Self::of(Rules::decode(take)?, until)
            }
            2 => Self::Unreachable(until(take.u64()?)),
            3 => {
                let until = until(take.u64()?);
                let (segment, offset, bytes) = (take.u32()?, take.u32()?, take.u32()?);
                Self::OnDisk(Location { segment, offset, bytes }, until)
            }
            _ => return Err(Short),
        })
    }
}
