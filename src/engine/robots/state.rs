//! The state of one server's robots.txt.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::segments::Location;
use crate::ground::time::{Instant, Now, UnixTime};
use crate::robots::Rules;
use std::time::Duration;

/// How long a server waits for the robots.txt of another server, to which its own redirects, before
/// the wait is checked.
pub(in crate::engine) const REDIRECTED_MAX: Duration = Duration::from_secs(300);

/// What is known of the robots.txt of a server.
#[derive(Debug, Default)]
pub(in crate::engine) enum Robots {
    /// Nothing is known of the file.
    #[default]
    Unknown,
    /// The file is being requested from its server.
    Asked,
    /// The file redirects to another server, whose file is being requested. The wait is checked at
    /// this time.
    Redirected(Instant),
    /// The file forbids nothing; valid until this time.
    Open(Instant),
    /// The rules of the file, in memory; valid until this time.
    Rules(Box<CachedRules>, Instant),
    /// The location of the file's rules on disk; valid until this time.
    OnDisk(Location, Instant),
    /// The file can't be fetched, so no page may be requested from its server until this time.
    Unreachable(Instant),
}

/// Rules of robots.txt that are in memory.
#[derive(Debug)]
pub(in crate::engine) struct CachedRules {
    pub(in crate::engine) rules: Rules,
    /// The location on disk of the same rules, if they were written there.
    pub(super) location: Option<Location>,
}

/// Whether the state of a server's robots.txt allows to request its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum RobotsStatus {
    /// robots.txt is not known and must be requested first.
    Unknown,
    /// robots.txt is being requested, so pages must wait.
    Pending,
    /// It is known what robots.txt allows, or that it can't be fetched.
    Known,
}

impl Robots {
    /// Returns the state of a file with these rules, valid until `until`.
    pub(super) fn of(rules: Rules, until: Instant) -> Self {
        if rules.has_rules() {
            Self::Rules(Box::new(CachedRules { rules, location: None }), until)
        } else {
            Self::Open(until)
        }
    }

    /// Returns the rules of the file, if they are in memory.
    pub(in crate::engine) fn rules(&self) -> Option<&Rules> {
        match self {
            Self::Rules(held, _) => Some(&held.rules),
            _ => None,
        }
    }

    /// Returns whether robots.txt is known at `now`.
    pub(in crate::engine) fn status(&self, now: Instant) -> RobotsStatus {
        match *self {
            Self::Open(until)
            | Self::Rules(_, until)
            | Self::OnDisk(_, until)
            | Self::Unreachable(until)
                if until > now =>
            {
                RobotsStatus::Known
            }
            Self::Asked => RobotsStatus::Pending,
            Self::Redirected(until) if until > now => RobotsStatus::Pending,
            _ => RobotsStatus::Unknown,
        }
    }

    /// Returns the number of bytes that the rules use in memory; 0 if there are none.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Rules(held, _) => {
                size_of::<CachedRules>() - size_of::<Rules>() + held.rules.size_bytes()
            }
            _ => 0,
        }
    }

    /// Returns whether the state is of no use to another run.
    pub(in crate::engine) fn is_forgettable(&self) -> bool {
        matches!(self, Self::Unknown | Self::Asked | Self::Redirected(_))
    }

    /// Encodes the state for a checkpoint: see [`crate::engine::site::Site::encode`].
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
            Self::Unknown | Self::Asked | Self::Redirected(_) => out.put_u8(0),
        }
    }

    /// Decodes a state that [`Robots::encode`] wrote. No state is valid for longer than `ttl` from
    /// now, whatever the wall clock says.
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
