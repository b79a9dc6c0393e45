//! The number of a server, its state, and the reason for which it was given up.

use serde::{Deserialize, Serialize};

/// The number of a server. Numbers are dense from 0, in the order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    /// Returns the index of the server in tables that have one entry for each server.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of the server at `index` of such a table.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 servers"))
    }
}

/// The state of a server. The names of the states are those of the crawler Heritrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server has no URLs.
    Idle,
    /// The server has URLs and its rest is over, so it may be visited as soon as its groups (host,
    /// address, domain) admit a visit.
    Ready,
    /// The rest of the server is over, but its next URLs are on disk and must be read first.
    Reading,
    /// The server is being visited, or URLs are taken from its queue without a visit.
    Busy,
    /// The server has URLs and rests until it is due.
    Snoozed,
    /// The server was given up for this reason. It is not visited again unless it is reinstated.
    Retired(Retirement),
}

/// The reason for which a server was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Retirement {
    /// The host name has no address, or can't be resolved.
    Name,
    /// The host has only addresses that the crawler may not connect to.
    ForbiddenAddress,
    /// The TLS certificate of the server was not accepted.
    Certificate,
    /// The server failed too often in a row.
    Failures,
    /// The robots.txt of the server asks for a longer delay than the configuration accepts.
    CrawlDelay,
    /// The server has shown challenges that keep crawlers out, too often in a row.
    Challenges,
}

impl Retirement {
    /// All reasons in the order of their declaration. Snapshots store the index of a reason.
    pub(super) const ALL: [Self; 6] = [
        Self::Name,
        Self::ForbiddenAddress,
        Self::Certificate,
        Self::Failures,
        Self::CrawlDelay,
        Self::Challenges,
    ];

    /// Returns the name of the reason in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ForbiddenAddress => "forbidden-address",
            Self::Certificate => "certificate",
            Self::Failures => "failures",
            Self::CrawlDelay => "crawl-delay",
            Self::Challenges => "challenges",
        }
    }
}
