//! How many servers each registrable domain has: no domain may take the room of all others.
//!
//! Whoever owns a domain can name servers below it without end, so that one page fills
//! `servers_max`. Seeds are not counted against the bound: the operator named them.
//!
//! Law: a domain has at most `servers_per_domain_max` servers that pages led to, and never more
//! than a tenth of `servers_max`. Cost: eight bytes and a bit for each domain; domains are known by
//! 32 bits of a hash, so that of a million domains some hundred share their count with another.

use super::Discovery;
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::engine::outcome::{Outcome, Servers};
use crate::engine::seeds::SEED;
use crate::engine::settings::Settings;
use crate::frontier::ServerId;
use crate::ground::map::Map;
use crate::url::{Fingerprinter, UrlRef, domain};

/// Servers by registrable domain.
#[derive(Debug)]
pub(in crate::engine) struct Domains {
    hash: Fingerprinter,
    counts: Map<u32, Count>,
    most: u32,
}

/// What there is of one domain.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    servers: u32,
    /// URLs refused in this run, because their servers would be too many.
    refused: u32,
}

/// Units that a URL costs which is refused: mostly its line in the crawl log.
const REFUSE_UNITS: usize = 512;

/// A domain may have one server of so many that there may be in all.
const SHARE: usize = 10;

/// Most servers of a domain, where there may be so many in all.
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

    /// Whether another server may be known by this host's domain.
    fn has_room(&self, host: &str) -> bool {
        self.counts.get(&self.number(host)).is_none_or(|count| count.servers < self.most)
    }

    /// A server has come to be known.
    pub(super) fn add(&mut self, host: &str) {
        self.counts.entry(self.number(host)).or_default().servers += 1;
    }

    /// A URL of the domain is refused; how many have been.
    fn refuse(&mut self, host: &str) -> u32 {
        let refused = &mut self.counts.entry(self.number(host)).or_default().refused;
        *refused = refused.saturating_add(1);
        *refused
    }
}

impl Engine {
    /// The server of a URL that was found with this letter; if it would be one too many: of which.
    pub(in crate::engine) fn server_for(
        &mut self,
        url: UrlRef<'_>,
        letter: u8,
    ) -> Result<ServerId, Servers> {
        if let Some(id) = self.backlog.find(url) {
            return Ok(id);
        }
        if !self.backlog.has_room_for(url) {
            return Err(Servers::All);
        }
        if letter != SEED && !self.admission.domains.has_room(url.host()) {
            return Err(Servers::OfDomain);
        }
        Ok(self.server_of(url))
    }

    /// Counts a URL whose server would be one too many, and its domain if that has too many.
    pub(in crate::engine) fn count_refused(&mut self, url: UrlRef<'_>, servers: Servers) {
        self.counts.cut(servers.cause(), 1);
        if servers == Servers::OfDomain {
            let refused = self.admission.domains.refuse(url.host());
            let domain = domain::registrable(url.host());
            self.counts.cut_in_all(servers.cause(), refused.into(), domain);
        }
    }

    /// Settles a URL whose server would be one too many: it is counted, and has its line in the
    /// log.
    pub(in crate::engine) fn refuse(
        &mut self,
        found: Discovery,
        url: UrlRef<'_>,
        via: Option<&str>,
        servers: Servers,
    ) {
        self.count_refused(url, servers);
        if found.letter == SEED {
            self.counts.seeds.fails(url.as_str(), servers.cause().into());
        }
        self.turn.charge(Work::Admitted, REFUSE_UNITS + url.as_str().len());
        self.log_unasked(url, via, (found.letter, found.hops), None, Outcome::TooMany(servers));
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
