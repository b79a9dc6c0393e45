//! Hostile hosts: each has one fault, is named after it, and states what a crawler should make of
//! it.
//!
//! A kind defines how its name resolves, how its sockets and certificates behave, and a list of
//! resources, each with the behaviour of the server ([`Play`]) and the acceptable outcomes. All of
//! it is in one table: [`Hostile::spec`]. The behaviour is carried out by [`super::wire`] and by
//! the servers.

pub(super) mod heavy;
pub(super) mod sessions;
mod table;

use super::host::{Coding, Scheme};
use super::manifest::Outcome;
use super::muddle::Muddle;
pub use crate::conf::Hostile;

/// How name servers answer the name of a hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// With its address.
    Address,
    /// With NXDOMAIN.
    NoSuchName,
    /// With no data: the name exists, but has no address.
    NoAddress,
    /// With SERVFAIL.
    Fails,
    /// Never.
    Mute,
    /// With a packet that is not an answer.
    Garbled,
    /// Truncated over UDP; with its address over TCP.
    OverTcp,
    /// With an address that no crawler should connect to (169.254.169.254).
    Forbidden,
}

/// How the sockets of a hostile host behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Normally.
    Serve,
    /// It refuses connections.
    Refuse,
    /// Its listen queue is full, so that connections hang.
    Full,
    /// It accepts connections and never sends a byte.
    Mute,
    /// It mixes up the replies to requests that arrive together.
    Muddle(Muddle),
    /// It closes without announcement after this many replies, whatever else was requested.
    Limit(u32),
    /// It uses plain HTTP where TLS is expected.
    NotTls,
}

/// The certificate of a hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// A valid one, signed by the lab's authority.
    Good,
    /// An expired one.
    Expired,
    /// One for another host.
    WrongName,
    /// A self-signed one.
    UnknownIssuer,
}

/// How a server behaves when a resource is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// Sends a page with links to all other resources of the host.
    Index,
    /// Sends a small page.
    Plain,
    /// Sends a page with links to two more pages, without end.
    TwoMore,
    /// Sends a page whose links have new session ids.
    Sessions,
    /// Redirects to this path.
    RedirectTo(&'static str),
    /// Redirects to the next resource of the row, without end.
    RedirectOn,
    /// Sends 503 with Retry-After for the first requests, then a page.
    RetryAfter {
        /// The seconds in Retry-After.
        seconds: u32,
        /// The number of refusals before the page is sent.
        times: u32,
    },
    /// Sends 500.
    Error,
    /// Sends robots.txt rules that disallow `/closed`, followed by 600 KiB of others.
    HugeRobots,
    /// Sends header lines without end.
    EndlessHead,
    /// Sends a page without end, in chunks.
    EndlessBody,
    /// Sends a head at one byte a second.
    DripHead,
    /// Sends a body at one byte a second.
    DripBody,
    /// Closes without sending a byte.
    CloseAtOnce,
    /// Resets without sending a byte.
    ResetAtOnce,
    /// Resets in the middle of the body.
    ResetLater,
    /// Never answers.
    StallHead,
    /// Stops forever in the middle of the body.
    StallBody,
    /// Closes in the middle of the body.
    CutBody,
    /// Sends more bytes than Content-Length says.
    TooLong,
    /// Sends these header lines, then a small body, then closes.
    Framing(&'static str),
    /// Sends this body as `Transfer-Encoding: chunked`, then closes.
    Chunks(&'static str),
    /// Sends this head, then a small body, then closes.
    Head(&'static str),
    /// Sends 103 and 100 before the final reply.
    Informational,
    /// Sends a decompression bomb.
    Bomb(Coding),
    /// Sends a gzip bomb inside gzip.
    BombTwice,
    /// Sends a reply that costs much work.
    Heavy(Heavy),
}

/// A small reply that costs a crawler much work, other than by its decoded size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    /// Empty deflate blocks, compressed twice.
    EmptyBlocks,
    /// Empty gzip members, compressed again.
    EmptyMembers,
    /// Links to hosts whose names have 330 and 990 ideographs.
    LongHosts,
    /// robots.txt rules that disallow `/p`, as 495 KiB of rules with wildcards.
    ManyRules,
    /// robots.txt rules that disallow `/late/`.
    ClosedRules,
    /// A megabyte in UTF-16.
    Utf16,
    /// A megabyte in ISO-2022-JP.
    Iso2022Jp,
}

/// How often a resource is requested from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Never: it can't be reached.
    Never,
    /// Once.
    Once,
    /// Once, or again as often as the crawler retries.
    Tries,
    /// Once, and once more if the crawler retries at all.
    Twice,
    /// Until this many refusals have passed, if the crawler retries that often.
    Past(u32),
}

/// The resources of one row: `path` alone, or `path` followed by 0, 1, 2 if there are several.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The path, or its prefix.
    pub path: &'static str,
    /// The number of resources.
    pub count: u32,
    /// The behaviour of the server.
    pub play: Play,
    /// The outcomes, of which any is acceptable.
    pub outcomes: &'static [Outcome],
    /// How often the server is asked.
    pub asked: Asked,
}

/// The complete definition of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// How its name resolves.
    pub naming: Naming,
    /// How its sockets behave.
    pub manner: Manner,
    /// Its certificate, for hosts that use TLS.
    pub certificate: Option<Certificate>,
    /// Whether a crawler finishes with it within five seconds at default timeouts.
    pub quick: bool,
    /// Its resources; `/robots.txt` allows everything unless listed.
    pub rows: &'static [Row],
}

/// The count of an endless row: deeper resources exist, but no crawler should request them.
pub(super) const ENDLESS: u32 = u32::MAX;

impl Hostile {
    /// Whether a crawler finishes with it within five seconds at default timeouts.
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
