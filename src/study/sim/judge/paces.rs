//! The laws that differ between sites: the pace of each host, the header fields that it may see.
//!
//! Which site a host belongs to is found by a search of the whole list, without the crawler's
//! look-up.

use super::laws::SiteLaw;
use super::{Instant, Judge, Laws, Line};
use std::time::Duration;

/// What applies to one host.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    pub(super) burst: Option<u32>,
    pub(super) delay: Duration,
    delay_factor_milli: u32,
    pub(super) delay_max: Duration,
    /// The number of the site in the laws; `None` if the host has none.
    pub(super) site: Option<usize>,
}

impl Pace {
    /// Returns the pace of the host `name`: that of its own table, or of the longest domain.
    pub(super) fn of(name: &str, laws: &Laws) -> Self {
        let is_of = |law: &SiteLaw| {
            name == law.name || law.is_domain && name.ends_with(&format!(".{}", law.name))
        };
        let all = laws.sites.iter().enumerate().filter(|(_, law)| is_of(law));
        let best = all.max_by_key(|(_, law)| (!law.is_domain, law.name.len()));
        let none = SiteLaw::default();
        let own = best.map_or(&none, |(_, law)| law);
        Self {
            burst: own.burst.or(laws.burst),
            delay: own.delay.unwrap_or(laws.delay),
            delay_factor_milli: own.delay_factor_milli.unwrap_or(laws.delay_factor_milli),
            delay_max: laws.delay_max,
            site: best.map(|(number, _)| number),
        }
    }

    /// Returns the rest due after a visit of one request that took `length`.
    pub(super) fn rest(&self, length: Duration) -> Duration {
        let by_length = length.saturating_mul(self.delay_factor_milli) / 1_000;
        self.delay.max(by_length).min(self.delay_max)
    }

    /// Returns when the visit began whose first request on this connection was sent at `sent`. An
    /// established connection without requests is no load on the server, so the visit begins with
    /// the request. But if the connection was idle for as long as the delay due for opening it,
    /// opening it was a visit by itself (a paused crawl opens connections that it then does not
    /// use).
    pub(super) fn began(&self, line: &Line, sent: Instant) -> Instant {
        let Some(stood) = line.stood else { return line.asked };
        let idle = sent.since(stood);
        if idle >= self.rest(stood.since(line.asked)) && idle > Duration::ZERO {
            return sent;
        }
        line.asked + idle
    }

    /// Returns the longest rest that can be due to a server that has not asked for one itself.
    pub(super) fn longest_rest(&self) -> Duration {
        match (self.burst, self.delay_factor_milli) {
            (None, _) => Duration::ZERO,
            (Some(_), 0) => self.delay.min(self.delay_max),
            (Some(_), _) => self.delay_max,
        }
    }
}

impl Judge {
    /// Returns the pace of a host; that of the crawl if it is unknown.
    pub(super) fn pace(&self, host: u32) -> Pace {
        let known = self.traits.get(host as usize).map(|traits| traits.pace.clone());
        known.unwrap_or_else(|| Pace::of("", &self.laws))
    }

    /// Checks the time between two connection attempts: each counts as a visit, even if it fails.
    pub(super) fn judge_attempt(&mut self, at: Instant, host: u32) {
        let pace = self.pace(host);
        let is_alone = self.traits.get(host as usize).is_some_and(|traits| traits.is_alone);
        if pace.burst.is_none() || !is_alone {
            return;
        }
        let rest = pace.delay.min(pace.delay_max);
        let last = self.hosts.entry(host).or_default().attempted.replace(at);
        if let Some(kept) = last.map(|last| at.since(last)).filter(|kept| *kept < rest) {
            self.report(
                "attempts",
                at,
                format!("host {host} {kept:?} after the last, not {rest:?}"),
            );
        }
    }

    /// Checks that a request has the secret field of its site, and no other one.
    pub(super) fn judge_secret(&mut self, at: Instant, host: u32, sent: &str, named: &str) {
        let site = self.pace(host).site;
        let own = site.and_then(|site| self.laws.sites[site].authorization.as_deref());
        if sent != own.unwrap_or("") {
            self.report("secret", at, format!("{named} has {sent:?}, its site {own:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::ConnId;
    use crate::study::sim::Observation;
    use crate::study::web::{Place, Ports, Resource, Settings, Web};

    fn judge() -> Judge {
        let web =
            Web::new(Settings { hosts: 3, pages: 30, ..Settings::default() }, Ports::default());
        let law = |name: &str| SiteLaw { name: name.to_owned(), ..SiteLaw::default() };
        let mut laws = super::super::asking::tests::laws();
        laws.burst = Some(1);
        laws.delay_max = Duration::from_secs(9);
        laws.sites = vec![
            SiteLaw { is_domain: true, delay: Some(Duration::from_secs(2)), ..law("test") },
            SiteLaw {
                pages_max: Some(2),
                authorization: Some("own".to_owned()),
                ..law(&web.host(1).name)
            },
        ];
        Judge::new(&web, laws)
    }

    fn ask(judge: &mut Judge, second: u64, (host, page): (u32, u32), secret: &str) {
        let (conn, at) =
            (ConnId { slot: host, generation: 0 }, Instant::from_micros(second * 1_000_000));
        let place = Some(Place { host, resource: Resource::Page(page) });
        judge.observe(at, &Observation::Connecting { conn, host });
        judge.observe(at, &Observation::Sent { conn });
        let (path, authorization) = ("/".into(), secret.into());
        let (unanswered, proof) = (0, None);
        let seen =
            Observation::Request { conn, host, place, path, unanswered, authorization, proof };
        judge.observe(at, &seen);
        let seen = Observation::Reply {
            conn,
            host,
            place,
            status: 200,
            content: u64::from(page),
            whole: true,
        };
        judge.observe(at, &seen);
        judge.observe(at, &Observation::Closed { conn, host, by_crawler: true });
    }

    fn laws(judge: &Judge) -> Vec<&'static str> {
        let mut laws: Vec<&str> = judge.broken.iter().map(|one| one.law).collect();
        laws.dedup();
        laws
    }

    /// Sabotage: a site's delay is ignored, a secret is sent elsewhere or not at all, and one page
    /// more is fetched. The judge notices each.
    #[test]
    fn what_differs_between_sites_is_judged() {
        let mut fine = judge();
        for (second, page) in [(0, 1), (3, 2)] {
            ask(&mut fine, second, (0, page), "");
        }
        ask(&mut fine, 4, (1, 1), "own");
        ask(&mut fine, 5, (1, 2), "own");
        assert_eq!(laws(&fine), [""; 0]);
        let mut hasty = judge();
        ask(&mut hasty, 0, (0, 1), "");
        ask(&mut hasty, 1, (0, 2), "");
        assert!(laws(&hasty).contains(&"rest"), "{:?}", hasty.broken);
        for (host, secret) in [(0, "own"), (2, "own"), (1, "")] {
            let mut loose = judge();
            ask(&mut loose, 0, (host, 1), secret);
            assert_eq!(laws(&loose), ["secret"], "{host}");
        }
        let mut greedy = judge();
        (1..=3).for_each(|page| ask(&mut greedy, u64::from(page), (1, page), "own"));
        assert_eq!(laws(&greedy), ["pages"]);
    }
}
