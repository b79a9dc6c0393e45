//! Reads what was promised to servers: from the settings in the log, or else from `conf.toml`.
//!
//! Hosts and domains may have promises of their own. They are found by a search of the whole list,
//! without the crawler's look-up.

use super::{Audit, host_of, node_of};
use crate::conf::{Burst, Conf, SiteTable};
use crate::ground::map::Map;
use crate::store::log::{Politeness, SitePoliteness};
use crate::url::domain::is_within;
use std::time::Duration;

/// The promises of a run, in force since `from`. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) from: u64,
    pub(super) delay: u64,
    pub(super) factor_milli: u64,
    pub(super) delay_max: u64,
    /// The largest number of visits at once, and the rest, of an address and of a domain. 0 means
    /// no limit.
    pub(super) address: (u32, u64),
    pub(super) domain: (u32, u64),
    /// Whether every visit has one request only.
    pub(super) is_single: bool,
}

/// What all nodes of a crawl have promised together, of each address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whole {
    /// The largest number of visits at once; 0 means no limit.
    pub(super) visits_max: u32,
    pub(super) delay: u64,
}

/// The promises to one server that differ from those to all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) delay: Option<u64>,
    pub(super) factor_milli: Option<u64>,
}

impl Promise {
    /// Returns the rest owed after a visit that made `requests` requests in `lasted` microseconds.
    pub(super) fn rest(&self, requests: u64, lasted: u64, crawl_delay: u64) -> u64 {
        let by_count = self.delay.saturating_mul(requests);
        let by_time = u64::try_from(u128::from(lasted) * u128::from(self.factor_milli) / 1_000);
        let own = by_count.max(by_time.unwrap_or(u64::MAX)).min(self.delay_max);
        own.max(crawl_delay.saturating_mul(requests))
    }
}

/// Promises with those to servers that have their own.
#[derive(Debug, Default)]
pub(super) struct Promised {
    pub(super) promise: Promise,
    pub(super) own: Map<u32, Own>,
    pub(super) tables: Tables,
}

/// The hosts and domains with promises of their own, as of one time.
#[derive(Debug, Default)]
pub(super) struct Tables(Vec<Table>);

#[derive(Debug)]
struct Table {
    name: String,
    is_host: bool,
    own: Own,
}

impl Tables {
    fn new(sites: &[SitePoliteness<'_>]) -> Self {
        let table = |site: &SitePoliteness<'_>| Table {
            name: site.host.as_ref().or(site.domain.as_ref()).map_or("", |name| name).to_owned(),
            is_host: site.host.is_some(),
            own: Own { delay: site.delay, factor_milli: site.delay_factor_milli.map(u64::from) },
        };
        Self(sites.iter().map(table).collect())
    }

    /// Returns the promises to a host: those of the host itself, or of the longest domain that it
    /// is in.
    pub(super) fn of(&self, host: &str) -> Option<Own> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_in =
            |table: &&Table| host == table.name || !table.is_host && is_within(host, &table.name);
        let matching = self.0.iter().filter(is_in);
        let best = matching.max_by_key(|table| (table.is_host, table.name.len()));
        best.map(|table| table.own)
    }
}

impl Audit {
    /// Takes the promises of a job.
    pub(super) fn promise(&mut self, job: usize, settings: &Politeness<'_>) {
        self.jobs[job].robots.set_product(settings.obeys_robots, &settings.product);
        let tables = Tables::new(&settings.sites);
        let servers = self.names[0].list.iter().zip(0_u32..);
        let own =
            servers.filter_map(|(origin, server)| Some((server, tables.of(host_of(origin))?)));
        let own: Map<u32, Own> = own.collect();
        let bursts = settings.sites.iter().filter_map(|site| site.burst);
        let promise = Promise {
            from: settings.from,
            delay: settings.delay,
            factor_milli: settings.delay_factor_milli.into(),
            delay_max: settings.delay_max,
            address: (settings.address_visits_max, settings.address_delay),
            domain: (settings.domain_visits_max, settings.domain_delay),
            is_single: bursts.chain([settings.burst]).all(|burst| burst == 1),
        };
        self.books.promise(node_of(job), Promised { promise, own, tables });
    }

    /// Takes the promises from the configuration of the last run, because the log doesn't begin
    /// with a line that has them.
    pub(super) fn promise_from_conf(&mut self, job: usize) {
        let Some(conf) = &self.jobs[job].conf else { return };
        let politeness = &conf.politeness;
        let settings = Politeness {
            product: conf.identity.product.clone().into(),
            obeys_robots: politeness.robots,
            burst: requests(politeness.burst),
            delay: micros(politeness.delay),
            delay_factor_milli: politeness.delay_factor.thousandths(),
            delay_max: micros(politeness.delay_max),
            address_visits_max: politeness.address_visits_max,
            address_delay: micros(politeness.address_delay),
            domain_visits_max: politeness.domain_visits_max,
            domain_delay: micros(politeness.domain_delay),
            sites: conf.sites.iter().filter_map(site).collect(),
            ..Politeness::default()
        };
        self.promise(job, &settings);
    }

    /// Returns what the nodes have promised together, which each of them divides: the smallest cap
    /// and the shortest delay that a configuration has. `None` if one has no configuration.
    pub(super) fn whole(&self) -> Option<Whole> {
        let all: Option<Vec<&Conf>> = self.jobs.iter().map(|job| job.conf.as_ref()).collect();
        let all: Vec<_> = all?.into_iter().map(|conf| &conf.politeness).collect();
        let caps = all.iter().map(|own| own.address_visits_max).filter(|most| *most > 0);
        let delay = all.iter().map(|own| micros(own.address_delay)).min()?;
        Some(Whole { visits_max: caps.min().unwrap_or(0), delay })
    }
}

fn site(table: &SiteTable) -> Option<SitePoliteness<'static>> {
    let (kind, name) = table.matcher.parts();
    let name = |own| (kind == own).then(|| name.to_owned().into());
    let own = &table.politeness;
    let delay_factor_milli = own.delay_factor.thousandths();
    (kind != "prefix").then(|| SitePoliteness {
        host: name("host"),
        domain: name("domain"),
        burst: table.has("burst").then(|| requests(own.burst)),
        delay: table.has("delay").then(|| micros(own.delay)),
        delay_factor_milli: table.has("delay_factor").then_some(delay_factor_milli),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn requests(burst: Burst) -> u32 {
    match burst {
        Burst::Requests(most) => most,
        Burst::Server => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_makes_the_promise() {
        let site = |host: Option<&'static str>, domain: Option<&'static str>, delay| {
            let (host, domain) = (host.map(Into::into), domain.map(Into::into));
            SitePoliteness { host, domain, delay: Some(delay), ..SitePoliteness::default() }
        };
        let tables = Tables::new(&[
            site(None, Some("a.test"), 1),
            site(Some("a.test"), None, 2),
            site(None, Some("b.a.test"), 3),
        ]);
        let cases = [
            ("a.test", Some(2)),
            ("a.test.", Some(2)),
            ("x.a.test", Some(1)),
            ("x.b.a.test", Some(3)),
            ("ba.test", None),
        ];
        for (host, expected) in cases {
            assert_eq!(tables.of(host).and_then(|own| own.delay), expected, "{host}");
        }
    }
}
