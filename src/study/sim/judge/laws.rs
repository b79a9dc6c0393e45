//! What a crawl has promised to keep, in the judge's own numbers, and the rests that follow from
//! it. A visit is a series of requests to one server, after which it gets a rest.

use super::signed::Signs;
use std::time::Duration;

/// The limits that a crawl has promised to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laws {
    /// The most connections open at the same time.
    pub connections_max: usize,
    /// The most unanswered requests on one connection.
    pub depth_max: u32,
    /// The most requests of one visit; `None`: as many as the server takes, and no rest is due.
    pub burst: Option<u32>,
    /// The rest due for each request of a visit.
    pub delay: Duration,
    /// The rest as a multiple of the visit's duration, in thousandths.
    pub delay_factor_milli: u32,
    /// The longest rest, whether it follows from `delay` or from `delay_factor_milli`.
    pub delay_max: Duration,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// How often a URL may be requested, not counting requests that a closing server never
    /// answered.
    pub tries_max: u32,
    /// How many batches of pipelined requests to a server are checked, by repeating one or two
    /// requests of each.
    pub probation: u32,
    /// The most bytes of buffered replies: the budget plus what the one connection that may exceed
    /// it adds.
    pub held_bytes_max: usize,
    /// Whether an archive is kept.
    pub archive: bool,
    /// When a crawl that reports itself finished must have every page.
    pub complete: Complete,
    /// The most servers of one address that have unanswered requests at the same time.
    pub address_visits_max: u32,
    /// The most servers of one registrable domain that have unanswered requests at the same time.
    pub domain_visits_max: u32,
    /// The least time between the beginnings of two visits to servers of one address.
    pub address_delay: Duration,
    /// The least time between the beginnings of two visits to servers of one registrable domain.
    pub domain_delay: Duration,
    /// The share of visits that take the server that is ready for the longest time, of those with
    /// similar ranks; in thousandths.
    pub random_share_milli: u32,
    /// The most units of work that a turn may take from one budget. A unit is about the cost of
    /// scanning one byte of a page: see `engine::ledger`.
    pub turn_units_max: usize,
    /// The most units of work on incoming bytes in a turn, records of the archive included. A unit
    /// is about the cost of scanning one byte of a page.
    pub turn_intake_max: usize,
    /// Which requests are signed.
    pub signs: Signs,
    /// The name of the purpose of the crawl, if nothing of pages is archived whose use is reserved
    /// for it.
    pub obeys: Option<&'static str>,
    /// The shortest time between two visits of a page; `None` if the crawl doesn't come back.
    pub again: Option<Duration>,
    /// The most pages of a server whose site has no limit of its own.
    pub server_pages_max: Option<usize>,
    /// The most pages of a registrable domain, not counting sites with limits of their own.
    pub domain_pages_max: Option<usize>,
    /// What differs between sites.
    pub sites: Vec<SiteLaw>,
}

/// What the crawl has promised for a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteLaw {
    /// The host, or the domain with all hosts below it.
    pub name: String,
    /// Whether the name is that of a domain.
    pub is_domain: bool,
    /// The most requests of one visit, if it differs from that of the crawl.
    pub burst: Option<u32>,
    /// The rest due for each request of a visit, if it differs.
    pub delay: Option<Duration>,
    /// The rest as a multiple of the visit's duration, in thousandths, if it differs.
    pub delay_factor_milli: Option<u32>,
    /// The most pages of the site.
    pub pages_max: Option<usize>,
    /// The value of the field Authorization that requests to the site have. No other may have it.
    pub authorization: Option<String>,
}

/// When a finished crawl must have every page that can be reached from the web's own seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// Always.
    Always,
    /// Except pages that a limit on pages refuses, and those that only they lead to.
    WithinLimits,
    /// Unless the crawl reports that it gave something up or left something out.
    Unless,
    /// Never: the crawl begins elsewhere, or doesn't follow all links.
    Never,
}
