//! Draws tables `[[site]]` and limits on pages for a simulated crawl, each with a draw of its own:
//! seeds that failed once stay the same.

use super::{Plan, run_plan};
use std::sync::Arc;
use std::time::Duration;
use sted::conf::Conf;
use sted::frontier::Burst;
use sted::frontier::scheduler::SitePace;
use sted::ground::random::Random;
use sted::store::Format;
use sted::study::sim::judge::{Complete, SiteLaw};
use sted::study::sim::settings::Faults;
use sted::study::web::{Ports, Settings, Web};
use sted::url::site::{Matcher, Sites};

/// What a seed is mixed with to draw limits on pages: no seed that failed before these were added
/// draws any.
const LIMITS_DRAW: u64 = 0x7_0616_7650_0e08;

/// Returns the tables of a third of the seeds: of some hosts, and of all hosts together. Without a
/// pace of the crawl they set none.
fn tables(seed: u64, web: &Settings, has_pace: bool) -> Vec<SiteLaw> {
    let mut draw = Random(seed ^ 0x7369_7465);
    if !draw.one_in(3) {
        return Vec::new();
    }
    let web = Web::new(web.clone(), Ports::default());
    let ms = Duration::from_millis;
    let mut tables: Vec<SiteLaw> = Vec::new();
    for number in 0..1 + draw.below(4) {
        let host = draw.below(u64::from(web.hosts())) as u32;
        let is_domain = number == 0 && draw.one_in(3);
        let name = if is_domain { "test".to_owned() } else { web.host(host).name };
        let burst = draw.pick(&[None, Some(1), Some(3)]);
        let delay = draw.pick(&[None, Some(ms(0)), Some(ms(700)), Some(ms(2_000))]);
        let factor = draw.pick(&[None, None, Some(4_000)]);
        let pages_max = draw.pick(&[None, None, Some(1), Some(7)]);
        let has_secret = draw.one_in(2) && !is_domain;
        let law = SiteLaw {
            name,
            is_domain,
            burst: burst.filter(|_| has_pace),
            delay: delay.filter(|_| has_pace),
            delay_factor_milli: factor.filter(|_| has_pace),
            pages_max,
            authorization: has_secret.then(|| format!("Bearer {number}")),
        };
        let is_known = tables.iter().any(|other| other.name == law.name);
        let is_empty = SiteLaw { name: law.name.clone(), is_domain, ..SiteLaw::default() } == law;
        if !is_known && !is_empty {
            tables.push(law);
        }
    }
    tables
}

/// Returns a table as it is written in a configuration.
fn table(law: &SiteLaw) -> String {
    let kind = if law.is_domain { "domain" } else { "host" };
    let mut text = format!("[[site]]\n{kind} = \"{}\"\n", law.name);
    let mut push = |name: &str, value: Option<String>| {
        text.extend(value.map(|value| format!("{name} = {value}\n")));
    };
    push("burst", law.burst.map(|burst| burst.to_string()));
    push("delay", law.delay.map(|delay| format!("\"{}ms\"", delay.as_millis())));
    push("delay_factor", law.delay_factor_milli.map(|factor| (factor / 1_000).to_string()));
    push("pages_max", law.pages_max.map(|most| most.to_string()));
    let secret = law.authorization.as_ref();
    push("headers", secret.map(|value| format!("{{ Authorization = \"{value}\" }}")));
    text
}

/// What a seed draws beyond the crawl's own settings.
pub struct Drawn {
    pub tables: Vec<SiteLaw>,
    pub server_pages_max: Option<usize>,
    pub domain_pages_max: Option<usize>,
}

impl Drawn {
    fn of(seed: u64, web: &Settings, has_pace: bool) -> Self {
        let tables = tables(seed, web, has_pace);
        let mut draw = Random(seed ^ LIMITS_DRAW);
        let has_limits = draw.one_in(5);
        let mut pick = |from: &[Option<usize>]| draw.pick(from).filter(|_| has_limits);
        let server_pages_max = pick(&[None, Some(1), Some(6), Some(25)]);
        let domain_pages_max = pick(&[None, Some(2), Some(15), Some(60)]);
        Self { tables, server_pages_max, domain_pages_max }
    }

    /// Returns the limits as they are written in a configuration.
    fn limits(&self) -> String {
        let line = |key: &str, most: Option<usize>| {
            most.map_or(String::new(), |most| format!("{key} = {most}\n"))
        };
        let server = line("pages_per_server_max", self.server_pages_max);
        let domain = line("pages_per_domain_max", self.domain_pages_max);
        format!("[limits]\n{server}{domain}")
    }

    /// Returns when a crawl must have all pages: one with limits on pages may refuse some.
    pub fn complete(&self) -> Complete {
        let has_limit = self.server_pages_max.or(self.domain_pages_max).is_some()
            || self.tables.iter().any(|table| table.pages_max.is_some());
        if has_limit { Complete::WithinLimits } else { Complete::Always }
    }
}

/// Returns what a seed draws, and the configuration `text` with it added.
pub fn add_tables(seed: u64, web: &Settings, has_pace: bool, text: &str) -> (Drawn, Conf) {
    let drawn = Drawn::of(seed, web, has_pace);
    let tables: String = drawn.tables.iter().map(table).collect();
    let whole = text.to_owned() + &drawn.limits() + &tables;
    let conf = Conf::parse(&whole, "plan").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    (drawn, conf)
}

/// A crawl of few hosts, of which one has a longer delay, and another one a secret and a limit on
/// pages.
fn with_tables() -> Plan {
    let mut plan = Plan::of(1);
    let delay = Duration::from_millis(300);
    (plan.web.hosts, plan.web.seeds, plan.web.pages) = (6, 6, 90);
    (plan.web.hosts_per_address, plan.web.hosts_per_domain, plan.web.muddled) = (1, 3, 0.0);
    plan.web.hostile.clear();
    plan.world.faults = Faults::default();
    plan.world.outages.clear();
    // The archive shows which pages were kept.
    plan.engine.store.format = Format::Warc;
    plan.laws.archive = true;
    let web = Web::new(plan.web.clone(), Ports::default());
    let names = [0, 1].map(|host| web.host(host).name);
    let matchers = names.clone().map(|name| Matcher::host(&name).expect("a host"));
    let index = Arc::new(Sites::new(&matchers));
    let scheduler = &mut plan.engine.frontier.scheduler;
    (scheduler.burst, scheduler.delay) = (Burst::Requests(1), delay);
    scheduler.sites = Arc::clone(&index);
    scheduler.paces = vec![SitePace::default(); 2];
    scheduler.paces[0].delay = Some(7 * delay);
    let secret = "Bearer x".to_owned();
    plan.engine.sites.index = index;
    plan.engine.sites.fields = vec![vec![], vec![("Authorization".to_owned(), secret.clone())]];
    plan.engine.sites.pages_max = vec![None, Some(Some(3))];
    (plan.laws.burst, plan.laws.delay, plan.laws.complete) =
        (Some(1), delay, Complete::WithinLimits);
    let [slow, own] = names;
    plan.laws.sites = vec![
        SiteLaw { name: slow, delay: Some(7 * delay), ..SiteLaw::default() },
        SiteLaw {
            name: own,
            pages_max: Some(3),
            authorization: Some(secret),
            ..SiteLaw::default()
        },
    ];
    plan
}

/// Sabotage: a crawl that ignores the delay of a site, sends its secret elsewhere, or fetches one
/// page more or less than the limit, breaks a law.
#[test]
fn a_crawl_that_ignores_its_tables_breaks_a_law() {
    type Change = fn(&mut Plan);
    let verdict = |change: Change| {
        let mut plan = with_tables();
        change(&mut plan);
        run_plan(plan, false).verdict
    };
    assert_eq!(verdict(|_| {}), Ok(()));
    let sabotages: [(&str, Change); 5] = [
        ("rest", |plan| plan.engine.frontier.scheduler.paces[0] = SitePace::default()),
        ("secret", |plan| plan.engine.sites.fields.swap(0, 1)),
        ("secret", |plan| plan.engine.sites.fields.clear()),
        ("pages", |plan| plan.engine.sites.pages_max[1] = Some(Some(4))),
        ("complete", |plan| plan.engine.sites.pages_max[1] = Some(Some(2))),
    ];
    for (law, sabotage) in sabotages {
        let verdict = verdict(sabotage);
        let is_noticed = |how: &String| how.contains(&format!("law `{law}` broken"));
        assert!(verdict.as_ref().is_err_and(is_noticed), "{law}: {verdict:?}");
    }
}

/// Sabotage: a crawl whose limit on the pages of each server or domain is another than promised
/// breaks a law.
#[test]
fn a_crawl_with_another_limit_on_pages_breaks_a_law() {
    let verdict = |is_domain: bool, kept: u64| {
        let mut plan = with_tables();
        plan.engine.limits.pages_per_server_max = Some(kept).filter(|_| !is_domain);
        plan.engine.limits.pages_per_domain_max = Some(kept).filter(|_| is_domain);
        plan.laws.server_pages_max = Some(8).filter(|_| !is_domain);
        plan.laws.domain_pages_max = Some(8).filter(|_| is_domain);
        run_plan(plan, false).verdict
    };
    for is_domain in [false, true] {
        assert_eq!(verdict(is_domain, 8), Ok(()), "of a domain: {is_domain}");
        for (kept, law) in [(9, "law `pages` broken"), (7, "law `complete` broken")] {
            let verdict = verdict(is_domain, kept);
            let is_noticed = verdict.as_ref().is_err_and(|how| how.contains(law));
            assert!(is_noticed, "of a domain: {is_domain}, {kept} pages: {verdict:?}");
        }
    }
}
