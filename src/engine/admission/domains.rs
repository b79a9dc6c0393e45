//! Limits the number of servers of each registrable domain.
//!
//! The owner of a domain can create any number of servers below it, so without this limit one page
//! could use up `servers_max`. Seeds are not limited, since the operator chose them.
//!
//! Law: a domain has at most `servers_per_domain_max` servers that pages led to, and never more
//! than a tenth of `servers_max`.
//! Cost: some eight bytes for each domain. A domain is identified by 32 bits of a hash, so of a
//! million domains about a hundred share their count with another.

use super::Discovery;
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::engine::outcome::{Outcome, ServerLimit};
use crate::engine::seeds::SEED;
use crate::engine::settings::Settings;
use crate::frontier::ServerId;
use crate::ground::map::Map;
use crate::url::{Fingerprinter, UrlRef, domain};

/// The number of servers of each registrable domain.
#[derive(Debug)]
pub(in crate::engine) struct Domains {
    hash: Fingerprinter,
    counts: Map<u32, Count>,
    most: u32,
}

/// What is counted for one registrable domain: its servers, and the URLs refused because of the
/// limit.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    servers: u32,
    /// The number of URLs of the domain that were refused in this run because of the limit.
    refused: u32,
}

/// The cost of refusing a URL, in units of work (see `ledger`); mostly that of its line in the
/// crawl log.
pub(in crate::engine) const REFUSE_UNITS: usize = 512;

/// The divisor of the limit: one domain may have at most one in this many of all servers.
const SHARE: usize = 10;

/// Returns the maximum number of servers of one domain if the crawl may have `servers_max` in all.
pub fn share_of(servers_max: usize) -> u32 {
    u32::try_from(servers_max.div_ceil(SHARE)).unwrap_or(u32::MAX)
}

impl Domains {
    pub(in crate::engine) fn new(settings: &Settings, hash: Fingerprinter) -> Self {
        let share = share_of(settings.frontier.scheduler.servers_max);
        let most = settings.servers_per_domain_max.map_or(share, |most| most.min(share));
        Self { hash, counts: Map::default(), most }
    }

    fn number(&self, host: &str) -> u32 {
        let hash = self.hash.of(domain::registrable(host).as_bytes()).0;
        u32::try_from(hash >> 32).expect("the upper half")
    }

    /// Returns whether the registrable domain of this host may have another server.
    fn has_room(&self, host: &str) -> bool {
        self.counts.get(&self.number(host)).is_none_or(|count| count.servers < self.most)
    }

    /// Counts a new server for its registrable domain.
    pub(super) fn add(&mut self, host: &str) {
        self.counts.entry(self.number(host)).or_default().servers += 1;
    }

    /// Counts a refused URL for its registrable domain. Returns how many were refused in this run.
    fn refuse(&mut self, host: &str) -> u32 {
        let refused = &mut self.counts.entry(self.number(host)).or_default().refused;
        *refused = refused.saturating_add(1);
        *refused
    }
}

impl Engine {
    /// Returns the server of a URL, and adds the server if it is new. The letter says how the URL
    /// was found; seeds are not limited.
    ///
    /// # Errors
    /// The server is new and would exceed the limit that is returned.
    pub(in crate::engine) fn server_for(
        &mut self,
        url: UrlRef<'_>,
        letter: u8,
    ) -> Result<ServerId, ServerLimit> {
        match self.backlog.find(url) {
            Some(id) => Ok(id),
            None => match self.server_limit(url, letter) {
                Some(limit) => Err(limit),
                None => Ok(self.server_of(url)),
            },
        }
    }

    /// Returns the limit that the server of a URL, which is not known yet, would exceed; `None` if
    /// it would exceed none.
    pub(in crate::engine) fn server_limit(
        &self,
        url: UrlRef<'_>,
        letter: u8,
    ) -> Option<ServerLimit> {
        if !self.backlog.has_room_for(url) {
            return Some(ServerLimit::All);
        }
        let is_limited = letter != SEED && !self.admission.domains.has_room(url.host());
        is_limited.then_some(ServerLimit::OfDomain)
    }

    /// Counts a URL whose server would exceed a limit.
    pub(in crate::engine) fn count_refused(&mut self, url: UrlRef<'_>, limit: ServerLimit) {
        self.counts.cut(limit.cause(), 1);
        if limit == ServerLimit::OfDomain {
            let refused = self.admission.domains.refuse(url.host());
            let domain = domain::registrable(url.host());
            self.counts.set_cut_total(limit.cause(), refused.into(), domain);
        }
    }

    /// Gives a URL whose server would exceed a limit its final outcome: the URL is counted and
    /// logged.
    pub(in crate::engine) fn refuse(
        &mut self,
        found: Discovery,
        url: UrlRef<'_>,
        via: Option<&str>,
        limit: ServerLimit,
    ) {
        self.count_refused(url, limit);
        if found.letter == SEED {
            self.counts.seeds.note_failure(url.as_str(), limit.cause().into());
        }
        self.turn.charge(Work::Admitted, REFUSE_UNITS + url.as_str().len());
        self.log_unasked(url, via, (found.letter, found.hops), None, Outcome::TooMany(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(servers_max: usize) -> Domains {
        let mut settings = Settings { servers_per_domain_max: Some(1_000), ..Settings::default() };
        settings.frontier.scheduler.servers_max = servers_max;
        Domains::new(&settings, Fingerprinter::new([3; 16]))
    }

    #[test]
    fn a_domain_has_its_share_and_no_more() {
        let mut few = domains(50);
        let mut known = 0;
        for number in 0..100 {
            let host = format!("h{number}.evil.example");
            if few.has_room(&host) {
                few.add(&host);
                known += 1;
            }
        }
        assert_eq!(known, 5, "a tenth of all");
        assert!(few.has_room("honest.test") && few.has_room("evil.test"));
        assert_eq!(domains(1).most, 1, "one at least");
        assert_eq!(domains(1_000_000).most, 1_000);
    }
}
