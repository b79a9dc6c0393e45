//! Hostile hosts: each does one thing wrong, is named by it, and says what a crawler makes of it.
//!
//! A kind has a way to be found (names), a way to be reached (sockets, certificates) and a list of
//! resources, each with the [`Play`] the server gives and the outcomes that are right answers to
//! it. All of it is one table: [`Hostile::spec`].
//! What is named here is carried out by [`super::wire`] and by the server itself.

pub(super) mod heavy;
pub(super) mod sessions;
mod table;

use super::host::{Coding, Scheme};
use super::manifest::Outcome;
use super::muddle::Muddle;
pub use crate::conf::Hostile;

/// How a kind's name is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Its address.
    Address,
    /// NXDOMAIN.
    NoSuchName,
    /// The name exists, without an address.
    NoAddress,
    /// SERVFAIL.
    Fails,
    /// Nothing, ever.
    Mute,
    /// A packet that isn't an answer.
    Garbled,
    /// Truncated over UDP; its address over TCP.
    OverTcp,
    /// An address no crawler should go to (169.254.169.254).
    Forbidden,
}

/// How a kind's sockets behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As a server does.
    Serve,
    /// Nobody listens.
    Refuse,
    /// Somebody listens, with no room left for a connection.
    Full,
    /// Accepts, never says a word.
    Mute,
    /// Mixes up the replies to requests that come together.
    Muddle(Muddle),
    /// Closes in silence after so many replies, whatever else was asked.
    Limit(u32),
    /// Speaks plain HTTP where TLS is expected.
    NotTls,
}

/// Which certificate a kind shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// Its own, signed by the lab's authority.
    Good,
    /// Past its date.
    Expired,
    /// Another host's.
    WrongName,
    /// Signed by itself.
    UnknownIssuer,
}

/// What the server does when a resource is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// A page with links to all other resources of the host.
    Index,
    /// A small page.
    Plain,
    /// A page with links to two more, for ever.
    TwoMore,
    /// A page whose links hold session ids of their own.
    Sessions,
    /// A redirect to this path.
    RedirectTo(&'static str),
    /// A redirect to the next of the row, for ever.
    RedirectOn,
    /// 503 with Retry-After: so many seconds, for the first times of asking; then a page.
    RetryAfter {
        /// What Retry-After says.
        seconds: u32,
        /// Refusals before the page comes.
        times: u32,
    },
    /// 500.
    Error,
    /// Robots rules closing `/closed`, then 600 KiB of others.
    HugeRobots,
    /// Header lines without end.
    EndlessHead,
    /// A page without end, in chunks.
    EndlessBody,
    /// A head at one byte a second.
    DripHead,
    /// A body at one byte a second.
    DripBody,
    /// Closes without a byte.
    CloseAtOnce,
    /// Resets without a byte.
    ResetAtOnce,
    /// Resets in the middle of the body.
    ResetLater,
    /// Never answers.
    StallHead,
    /// Stops for ever in the middle of the body.
    StallBody,
    /// Closes in the middle of the body.
    CutBody,
    /// Sends more bytes than Content-Length says.
    TooLong,
    /// These header lines, then a small body, then close.
    Framing(&'static str),
    /// This body under `Transfer-Encoding: chunked`, then close.
    Chunks(&'static str),
    /// This head, then a small body, then close.
    Head(&'static str),
    /// 103 and 100 before the reply proper.
    Informational,
    /// Much from little.
    Bomb(Coding),
    /// A gzip bomb in a gzip.
    BombTwice,
    /// Much work from little.
    Heavy(Heavy),
}

/// What costs a crawler much, other than by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    /// Deflate blocks with nothing in them, packed twice.
    EmptyBlocks,
    /// Gzip members with nothing in them, packed again.
    EmptyMembers,
    /// Links to hosts of 330 and 990 ideographs.
    LongHosts,
    /// Robots rules closing `/p`, by 495 KiB of rules with stars.
    ManyRules,
    /// Robots rules closing `/late/`.
    ClosedRules,
    /// A megabyte in UTF-16.
    Utf16,
    /// The same in ISO-2022-JP.
    Iso2022Jp,
}

/// How often the server sees a resource asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Never: it can't be reached.
    Never,
    /// Once.
    Once,
    /// Once, or again as often as the crawler retries.
    Tries,
    /// Once, and once more if the crawler tries again at all.
    Twice,
    /// Until this many refusals have passed, if the crawler tries that often.
    Past(u32),
}

/// Resources of one row: `path` alone, or `path` followed by 0, 1, 2 if there are more.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Path, or its beginning.
    pub path: &'static str,
    /// How many.
    pub count: u32,
    /// What the server does.
    pub play: Play,
    /// Any of these is right.
    pub outcomes: &'static [Outcome],
    /// Requests the server sees.
    pub asked: Asked,
}

/// A kind in full.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// How its name is answered.
    pub naming: Naming,
    /// How its sockets behave.
    pub manner: Manner,
    /// Set for hosts over TLS.
    pub certificate: Option<Certificate>,
    /// A crawler is done with it within five seconds at default time-outs.
    pub quick: bool,
    /// Its resources; `/robots.txt` is allowed to all unless listed.
    pub rows: &'static [Row],
}

/// Rows without end: deeper ones exist, no crawler should get there.
pub(super) const ENDLESS: u32 = u32::MAX;

impl Hostile {
    /// Whether a crawler is done with it within five seconds at default time-outs.
    pub fn is_quick(self) -> bool {
        self.spec().quick
    }

    pub(super) fn manner(self) -> Manner {
        self.spec().manner
    }

    pub(super) fn muddle(self) -> Option<Muddle> {
        match self.manner() {
            Manner::Muddle(muddle) => Some(muddle),
            _ => None,
        }
    }

    pub(super) fn scheme(self) -> Scheme {
        if self.spec().certificate.is_some() { Scheme::Https } else { Scheme::Http }
    }
}
