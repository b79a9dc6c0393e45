//! The number of a server, what a server is doing, and why it was given up.

use serde::{Deserialize, Serialize};

/// Number of a server, dense from 0 in order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    /// Index into tables by server.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The server at `index`.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 servers"))
    }
}

/// What a server is doing. The words are Heritrix's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It has no URLs.
    Idle,
    /// It has URLs and its rest is over; one of its groups may still hold it back.
    Ready,
    /// It would be ready, but its next URLs are on disk.
    Reading,
    /// It is being visited.
    Busy,
    /// It has URLs and rests until it is due.
    Snoozed,
    /// It was given up.
    Retired(Retirement),
}

/// Why a server was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Retirement {
    /// Its name has no address, or can't be resolved.
    Name,
    /// Its address may not be connected to.
    ForbiddenAddress,
    /// Its certificate was not accepted.
    Certificate,
    /// It failed too often in a row.
    Failures,
    /// It asks for a longer delay than the configuration accepts.
    CrawlDelay,
}

impl Retirement {
    /// All reasons in the order of their declaration: snapshots store the index of one.
    pub(super) const ALL: [Self; 5] =
        [Self::Name, Self::ForbiddenAddress, Self::Certificate, Self::Failures, Self::CrawlDelay];

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ForbiddenAddress => "forbidden-address",
            Self::Certificate => "certificate",
            Self::Failures => "failures",
            Self::CrawlDelay => "crawl-delay",
        }
    }
}
