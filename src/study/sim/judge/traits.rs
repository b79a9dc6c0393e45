//! What the judge knows of each host beforehand: its groups, its limits and its behaviour.

use super::Laws;
use super::paces::Pace;
use super::pages::Limit;
use crate::study::web::{Hostile, Robots, Web};
use crate::url::domain;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What the judge knows of a host beforehand.
#[derive(Debug, Default)]
pub(super) struct Traits {
    /// The groups that the host belongs to; none for a hostile host.
    pub(super) groups: Vec<Group>,
    /// The Crawl-delay of the host's robots.txt that the crawl must obey; `None` if there is none.
    pub(super) crawl_delay: Option<Duration>,
    /// The most requests that the host answers on one connection.
    pub(super) requests: u32,
    /// Whether the host mixes up replies to pipelined requests.
    pub(super) muddles: bool,
    /// Whether the host asks for signed requests.
    pub(super) asks_signature: bool,
    /// Whether no other host has its address, so that a connection shows which host it is for.
    pub(super) is_alone: bool,
    /// The rests and limits of the host's site.
    pub(super) pace: Pace,
    /// The limits on the host's pages.
    pub(super) limits: Vec<Limit>,
}

/// Servers that share a cap on simultaneous visits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Group {
    Address(Ipv4Addr),
    Domain(Box<str>),
}

impl Traits {
    pub(super) fn of(web: &Web, number: u32, laws: &Laws) -> Self {
        let host = web.host(number);
        let pace = Pace::of(&host.name, laws);
        let limits = Limit::all(number, &host.name, pace.site, laws);
        let is_alone = web.settings().hosts_per_address <= 1;
        if host.hostile.is_some() {
            let (requests, muddles) = (host.requests_max, host.muddle.is_some());
            let asking =
                [Hostile::Signatures, Hostile::SignedRobots, Hostile::SignedRedirect].map(Some);
            let asks_signature = asking.contains(&host.hostile);
            let all = Self { requests, muddles, asks_signature, is_alone, ..Self::default() };
            return Self { pace, limits, ..all };
        }
        let asks = laws.robots && host.robots == Robots::Delay;
        let domain = domain::registrable(&host.name).into();
        Self {
            groups: vec![Group::Address(host.address), Group::Domain(domain)],
            crawl_delay: asks.then_some(web.settings().crawl_delay),
            requests: host.requests_max,
            muddles: host.muddle.is_some(),
            asks_signature: false,
            is_alone,
            pace,
            limits,
        }
    }
}
