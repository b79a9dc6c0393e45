//! Hostile hosts: each has one fault, is named after it, and states what a crawler should make of
//! it.
//!
//! A kind defines how its name resolves, how its sockets and certificates behave, and a list of
//! resources, each with the behaviour of the server ([`Play`]) and the acceptable outcomes. All of
//! it is in one table: [`Hostile::spec`]. The behaviour is carried out by [`super::wire`] and by
//! the servers.

pub(super) mod alike;
pub(super) mod heavy;
pub(super) mod sessions;
mod table;
mod walls;

use super::host::{Coding, Scheme};
use super::manifest::Outcome;
use super::muddle::Muddle;
pub use crate::conf::Hostile;
pub use walls::{WALLS, Wall};

/// How name servers answer the name of a hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// With the address of the host.
    Address,
    /// With NXDOMAIN: the name does not exist.
    NoSuchName,
    /// With no data: the name exists, but has no address.
    NoAddress,
    /// With SERVFAIL: the name server failed.
    Fails,
    /// Never: queries get no answer.
    Mute,
    /// With a packet that is not an answer.
    Garbled,
    /// Over UDP with a truncated answer; over TCP with the address of the host.
    OverTcp,
    /// With an address that no crawler should connect to (169.254.169.254).
    Forbidden,
}

/// How the sockets of a hostile host behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Normally: the host accepts connections and answers requests.
    Serve,
    /// The host refuses connections.
    Refuse,
    /// The host's listen queue is full, so that connections hang.
    Full,
    /// The host accepts connections and never sends a byte.
    Mute,
    /// The host mixes up the replies to requests that arrive together.
    Muddle(Muddle),
    /// The host closes a connection without announcement after this many replies, even if more
    /// requests have arrived.
    Limit(u32),
    /// The host uses plain HTTP where TLS is expected.
    NotTls,
}

/// The certificate of a hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// A valid certificate, signed by the lab's authority.
    Good,
    /// An expired certificate.
    Expired,
    /// A certificate for another host.
    WrongName,
    /// A self-signed certificate.
    UnknownIssuer,
}

/// How a server behaves when a resource is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// Sends a page with links to all other resources of the host.
    Index,
    /// Sends a small page without links.
    Plain,
    /// Sends a page with links to two more pages, without end.
    TwoMore,
    /// Sends a page with links to two more pages, without end, that are nearly the same or have
    /// random words.
    Alike,
    /// Sends a page each of whose links has a new session id.
    Sessions,
    /// Redirects to this path.
    RedirectTo(&'static str),
    /// Redirects to the next resource of the same row of the table, without end.
    RedirectOn,
    /// Sends 503 with Retry-After to the first requests, then a page.
    RetryAfter {
        /// The seconds that Retry-After asks the client to wait.
        seconds: u32,
        /// The number of 503 replies before the page is sent.
        times: u32,
    },
    /// Sends 500: an error of the server.
    Error,
    /// Sends robots.txt rules that disallow `/closed`, followed by 600 KiB of other rules.
    HugeRobots,
    /// Sends header lines without end.
    EndlessHead,
    /// Sends a page without end, in chunks.
    EndlessBody,
    /// Sends a head at one byte a second.
    DripHead,
    /// Sends a body at one byte a second.
    DripBody,
    /// Closes the connection without sending a byte.
    CloseAtOnce,
    /// Resets the connection without sending a byte.
    ResetAtOnce,
    /// Resets the connection in the middle of the body.
    ResetLater,
    /// Never answers the request, and keeps the connection open.
    StallHead,
    /// Stops forever in the middle of the body.
    StallBody,
    /// Closes the connection in the middle of the body.
    CutBody,
    /// Sends more bytes than Content-Length says.
    TooLong,
    /// Sends a reply with these header lines and a small body, then closes the connection.
    Framing(&'static str),
    /// Sends this body as `Transfer-Encoding: chunked`, then closes the connection.
    Chunks(&'static str),
    /// Sends this text as the head of the reply, then a small body, then closes the connection.
    Head(&'static str),
    /// Sends the informational replies 103 and 100 before the final one.
    Informational,
    /// Sends a decompression bomb in this coding.
    Bomb(Coding),
    /// Sends a gzip bomb that is compressed with gzip once more.
    BombTwice,
    /// Sends a reply that costs the crawler much work.
    Heavy(Heavy),
    /// Refuses a request that isn't signed, and asks for a signature.
    Signed,
    /// The same of a robots.txt that disallows `/closed`.
    SignedRules,
    /// Keeps crawlers out, in a way of its own for each resource: see [`WALLS`].
    Wall,
}

/// A small reply that costs a crawler much work, other than by its decoded size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heavy {
    /// A body of empty deflate blocks, compressed twice.
    EmptyBlocks,
    /// A body of empty gzip members, compressed again.
    EmptyMembers,
    /// Links to hosts whose names have 330 and 990 ideographs.
    LongHosts,
    /// robots.txt rules that disallow `/p`, as 495 KiB of rules with wildcards.
    ManyRules,
    /// robots.txt rules that disallow `/late/`.
    ClosedRules,
    /// A page of a megabyte of text in UTF-16.
    Utf16,
    /// A page of a megabyte of text in ISO-2022-JP.
    Iso2022Jp,
}

/// How often the server receives requests for a resource in a complete crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Never: the server can't be reached, or the resource must not be requested.
    Never,
    /// Exactly once.
    Once,
    /// Once, or again as often as the crawler retries.
    Tries,
    /// Once, and once more if the crawler retries at all.
    Twice,
    /// As often as the crawler retries at most. Never, if it gives the server up before.
    Perhaps,
    /// Until this many requests have been refused and the next one succeeds, if the crawler retries
    /// that often.
    Past(u32),
}

/// One row of a kind's table, which defines one resource or several: at `path` alone, or at `path`
/// followed by 0, 1, 2 and so on if there are several.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The path of the resource, or the prefix of their paths if there are several.
    pub path: &'static str,
    /// The number of resources that the row defines.
    pub count: u32,
    /// What the server does when one of the resources is requested.
    pub play: Play,
    /// The acceptable outcomes of each resource; any of them is right.
    pub outcomes: &'static [Outcome],
    /// How often the server receives requests for each resource.
    pub asked: Asked,
}

/// The complete definition of a kind of hostile host.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// How the name of the host resolves.
    pub naming: Naming,
    /// How the sockets of the host behave.
    pub manner: Manner,
    /// The certificate of the host; `None` if it doesn't use TLS.
    pub certificate: Option<Certificate>,
    /// True if a crawler finishes with the host within five seconds at default timeouts.
    pub quick: bool,
    /// The resources of the host; `/robots.txt` allows everything unless it is listed.
    pub rows: &'static [Row],
}

/// The `count` of a row without end: deeper resources exist, but no crawler should request them
/// all.
pub(super) const ENDLESS: u32 = u32::MAX;

impl Hostile {
    /// Whether a crawler finishes with a host of this kind within five seconds at default timeouts.
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
