//! Politeness: how many requests one visit may make, and how long a server rests after it.
//!
//! A *visit* is up to a burst of requests to one server on one connection. During the *rest* that
//! follows, the server is not visited.

use super::policy;
use super::visit::{Burst, Rule, Visit};
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use crate::ground::time::Instant;
use crate::url::site::{SiteId, Sites};
use std::sync::Arc;
use std::time::Duration;

/// The settings of the scheduler, most of them from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy that ranks servers, and its constants.
    pub schedule: policy::Settings,
    /// How many requests one visit may make.
    pub burst: Burst,
    /// The rest after a visit for each request that it made.
    pub delay: Duration,
    /// The rest after a visit as a multiple of the visit's duration, in thousandths.
    pub delay_factor_milli: u32,
    /// The longest rest that `delay` and `delay_factor_milli` may lead to.
    pub delay_max: Duration,
    /// The largest number of simultaneous visits to servers of one IP address; 0 means no cap.
    pub address_visits_max: u32,
    /// The shortest time between the beginnings of two visits to servers of one address, and the
    /// rest of the address after each visit.
    pub address_delay: Duration,
    /// The largest number of simultaneous visits in one registrable domain; 0 means no cap.
    pub domain_visits_max: u32,
    /// The shortest time between the beginnings of two visits in one registrable domain, and the
    /// rest of the domain after each visit.
    pub domain_delay: Duration,
    /// The servers with settings of their own, and these settings, by the number of their table.
    pub sites: Arc<Sites>,
    /// The settings of the tables of `sites`.
    pub paces: Vec<SitePace>,
    /// The largest number of servers that the scheduler knows.
    pub servers_max: usize,
    /// The seed of the hashes of names. Each crawl has its own.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schedule: policy::Settings::default(),
            burst: Burst::Requests(1),
            delay: Duration::from_secs(1),
            delay_factor_milli: 10_000,
            delay_max: Duration::from_secs(300),
            address_visits_max: 4,
            address_delay: Duration::ZERO,
            domain_visits_max: 2,
            domain_delay: Duration::ZERO,
            sites: Arc::default(),
            paces: Vec::new(),
            servers_max: 1_000_000,
            seed: 0,
        }
    }
}

/// The settings of a site that differ from those of the crawl; `None` means that of the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SitePace {
    /// How many requests one visit may make.
    pub burst: Option<Burst>,
    /// The rest after a visit for each request that it made.
    pub delay: Option<Duration>,
    /// The rest after a visit as a multiple of the visit's duration, in thousandths.
    pub delay_factor_milli: Option<u32>,
}

/// How many requests one visit to a server may make, and how long the server rests after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub(super) burst: Burst,
    delay: Duration,
    delay_factor_milli: u32,
    delay_max: Duration,
}

impl Settings {
    /// Returns the burst of servers for which this table of `sites` holds, or of those without one.
    pub fn burst_of(&self, site: Option<SiteId>) -> Burst {
        let own = site.and_then(|site| self.paces[usize::from(site)].burst);
        own.unwrap_or(self.burst)
    }

    /// Returns the pace of servers for which this table of `sites` holds, or of those without one.
    pub fn pace(&self, site: Option<SiteId>) -> Pace {
        let own = site.map(|site| self.paces[usize::from(site)]).unwrap_or_default();
        Pace {
            burst: self.burst_of(site),
            delay: own.delay.unwrap_or(self.delay),
            delay_factor_milli: own.delay_factor_milli.unwrap_or(self.delay_factor_milli),
            delay_max: self.delay_max,
        }
    }

    /// Returns the longest rest that can follow one visit to any server: see [`Pace::full_rest`].
    pub fn full_rest(&self, crawl_delay: Option<Duration>) -> Duration {
        let sites = (0..self.paces.len()).map(|site| Some(site as SiteId));
        let rests = sites.chain([None]).map(|site| self.pace(site).full_rest(crawl_delay));
        rests.max().unwrap_or_default()
    }

    /// Takes over from `new` what may change while a crawl runs: delays and caps. The burst may
    /// not, since the ranks of all servers depend on it.
    pub fn adopt(&mut self, new: &Self) {
        self.delay = new.delay;
        self.delay_factor_milli = new.delay_factor_milli;
        self.delay_max = new.delay_max;
        self.address_visits_max = new.address_visits_max;
        self.address_delay = new.address_delay;
        self.domain_visits_max = new.domain_visits_max;
        self.domain_delay = new.domain_delay;
    }

    /// Returns the politeness of one of `nodes` crawlers that visit the same addresses, each
    /// without a word from the others: rests of addresses are as many times as long, and caps on
    /// their visits are divided. A cap below the number of nodes can't be kept; it becomes 1.
    pub fn shared_by(&self, nodes: u32) -> Self {
        let cap = self.address_visits_max;
        let address_visits_max = if cap == 0 { 0 } else { (cap / nodes).max(1) };
        let address_delay = self.address_delay.saturating_mul(nodes);
        Self { address_visits_max, address_delay, ..self.clone() }
    }

    /// Returns the key of the first value that can't be changed to that of `new` while the crawl
    /// runs, or `None` if all can. Servers get a group when they become known, and only if its cap
    /// or its delay is set.
    pub fn fixed_difference(&self, new: &Self) -> Option<&'static str> {
        let pairs = [
            ("address_visits_max", self.address_visits_max == 0, new.address_visits_max == 0),
            ("address_delay", self.address_delay.is_zero(), new.address_delay.is_zero()),
            ("domain_visits_max", self.domain_visits_max == 0, new.domain_visits_max == 0),
            ("domain_delay", self.domain_delay.is_zero(), new.domain_delay.is_zero()),
        ];
        pairs.into_iter().find(|(_, old, new)| old != new).map(|(key, ..)| key)
    }
}

impl Pace {
    /// Returns how long a server rests after `visit`; see `owed`.
    pub fn rest(&self, visit: &Visit, crawl_delay: Option<Duration>) -> Duration {
        self.owed(visit, crawl_delay).0
    }

    /// Returns the rule that decides when the next visit after `visit` may begin.
    pub fn rule(&self, visit: &Visit, crawl_delay: Option<Duration>) -> Rule {
        let (rest, rule) = self.owed(visit, crawl_delay);
        if visit.not_before > visit.ended + rest { visit.rule } else { rule }
    }

    /// Returns how long a server rests after `visit`: `max(requests x delay, delay_factor x
    /// duration)`, at most `delay_max`, but never less than the server's own Crawl-delay for each
    /// request. A visit without a request counts as one request. Also returns the rule that the
    /// rest follows from.
    fn owed(&self, visit: &Visit, crawl_delay: Option<Duration>) -> (Duration, Rule) {
        #[cfg(test)]
        if sabotage::is(Sabotage::DelayIgnored) {
            return (Duration::ZERO, Rule::None);
        }
        let requests = visit.requests.max(1);
        let by_count = self.delay.saturating_mul(requests);
        let duration = visit.ended.since(visit.began);
        let by_duration = duration.saturating_mul(self.delay_factor_milli) / 1_000;
        let own = by_count.max(by_duration).min(self.delay_max);
        #[cfg(test)]
        let crawl_delay = crawl_delay.filter(|_| !sabotage::is(Sabotage::CrawlDelayIgnored));
        let asked = crawl_delay.unwrap_or_default().saturating_mul(requests);
        match own {
            own if asked > own => (asked, Rule::CrawlDelay),
            own if by_duration > by_count => (own, Rule::DelayFactor),
            Duration::ZERO => (own, Rule::None),
            own => (own, Rule::Delay),
        }
    }

    /// Returns the longest rest that can follow one visit. A server rests for so long if nothing is
    /// known of its last visit. A server with a Crawl-delay gets one request a visit.
    pub fn full_rest(&self, crawl_delay: Option<Duration>) -> Duration {
        let requests = match self.burst {
            _ if crawl_delay.is_some() => 1,
            Burst::Requests(most) => most.max(1),
            Burst::Server => u32::MAX,
        };
        self.rest(&Visit::new(requests, Instant::ZERO, Instant::FAR), crawl_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_the_larger_claim_within_its_cap() {
        let settings = Settings::default();
        let ms = Duration::from_millis;
        let cases = [
            (1, ms(20), None, ms(1_000), "one request: the delay"),
            (5, ms(20), None, ms(5_000), "five requests: five delays"),
            (1, ms(400), None, ms(4_000), "a slow visit: ten times its duration"),
            (1, ms(90_000), None, ms(300_000), "never past delay_max"),
            (1, ms(20), Some(ms(10_000)), ms(10_000), "the server's Crawl-delay"),
            (1, ms(20), Some(ms(400_000)), ms(400_000), "even past delay_max"),
            (1, ms(20), Some(ms(100)), ms(1_000), "but never below our own delay"),
            (0, ms(0), None, ms(1_000), "a failed connection counts as a visit"),
        ];
        for (requests, duration, crawl_delay, expected, why) in cases {
            let began = Instant::from_micros(7);
            let visit = Visit::new(requests, began, began + duration);
            assert_eq!(settings.pace(None).rest(&visit, crawl_delay), expected, "{why}");
        }
    }

    /// Law: the rule is that of the largest claim.
    #[test]
    fn the_rule_is_that_of_the_largest_claim() {
        let settings = Settings::default();
        let ms = Duration::from_millis;
        let cases = [
            (ms(20), None, 0, Rule::Delay),
            (ms(400), None, 0, Rule::DelayFactor),
            (ms(90_000), None, 0, Rule::DelayFactor),
            (ms(400), Some(ms(5_000)), 0, Rule::CrawlDelay),
            (ms(400), Some(ms(100)), 0, Rule::DelayFactor),
            (ms(400), None, 4_400, Rule::DelayFactor),
            (ms(400), None, 4_401, Rule::RetryAfter),
            (ms(400), Some(ms(5_000)), 5_401, Rule::RetryAfter),
        ];
        for (duration, crawl_delay, not_before, expected) in cases {
            let visit = Visit {
                not_before: Instant::ZERO + ms(not_before),
                rule: Rule::RetryAfter,
                ..Visit::new(1, Instant::ZERO, Instant::ZERO + duration)
            };
            assert_eq!(settings.pace(None).rule(&visit, crawl_delay), expected, "{visit:?}");
        }
        let none = Settings { delay: Duration::ZERO, delay_factor_milli: 0, ..settings };
        let visit = Visit::new(1, Instant::ZERO, Instant::ZERO + ms(20));
        assert_eq!(none.pace(None).rule(&visit, None), Rule::None);
    }

    /// Law: no visit owes more than the full rest, and some visit owes exactly that.
    #[test]
    fn the_full_rest_is_the_longest_there_is() {
        let seconds = Duration::from_secs;
        for burst in [Burst::Requests(1), Burst::Requests(7), Burst::Server] {
            for (delay, factor) in [(0, 0), (1, 0), (0, 10_000), (2, 500)] {
                let settings = Settings {
                    burst,
                    delay: seconds(delay),
                    delay_factor_milli: factor,
                    ..Settings::default()
                };
                for crawl_delay in [None, Some(seconds(3)), Some(seconds(400))] {
                    let most = match (crawl_delay, burst) {
                        (None, Burst::Requests(most)) => most,
                        (None, Burst::Server) => 10_000,
                        (Some(_), _) => 1,
                    };
                    let rest = |requests, lasted| {
                        let began = Instant::ZERO;
                        let visit = Visit::new(requests, began, began + lasted);
                        settings.pace(None).rest(&visit, crawl_delay)
                    };
                    let lengths = [0, 1, 20, 1_000_000].map(seconds);
                    let rests = lengths.map(|lasted| rest(1, lasted).max(rest(most, lasted)));
                    let longest = rests.into_iter().max().expect("four");
                    assert_eq!(settings.full_rest(crawl_delay), longest, "{settings:?}");
                }
            }
        }
    }

    /// Law: a site's own values replace those of the crawl, one by one, and the longest rest of all
    /// servers is that of the slowest.
    #[test]
    fn a_site_has_its_own_pace() {
        let seconds = Duration::from_secs;
        let own = [
            SitePace { delay: Some(seconds(7)), ..SitePace::default() },
            SitePace { burst: Some(Burst::Requests(3)), ..SitePace::default() },
            SitePace { delay_factor_milli: Some(0), ..SitePace::default() },
        ];
        let settings =
            Settings { delay_factor_milli: 2_000, paces: own.to_vec(), ..Settings::default() };
        let visit = Visit::new(2, Instant::ZERO, Instant::ZERO + seconds(5));
        let rest = |site| settings.pace(site).rest(&visit, None);
        assert_eq!([None, Some(0), Some(1), Some(2)].map(rest), [10, 14, 10, 2].map(seconds));
        assert_eq!(settings.pace(Some(1)).burst, Burst::Requests(3));
        let slow = Settings { delay_factor_milli: 0, ..settings };
        assert_eq!(slow.pace(None).full_rest(None), seconds(1));
        assert_eq!(slow.full_rest(None), seconds(7));
    }
}
