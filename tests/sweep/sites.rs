//! Draws tables `[[site]]` for a simulated crawl, from a stream of their own: seeds that failed
//! once stay the same.

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

/// Returns the tables of a seed, and the configuration `text` with these tables added.
pub fn add_tables(seed: u64, web: &Settings, has_pace: bool, text: &str) -> (Vec<SiteLaw>, Conf) {
    let tables = tables(seed, web, has_pace);
    let whole = text.to_owned() + &tables.iter().map(table).collect::<String>();
    let conf = Conf::parse(&whole, "plan").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    (tables, conf)
}

/// Returns when a crawl with these tables must have all pages: one that may drop some says so.
pub fn complete(tables: &[SiteLaw]) -> Complete {
    match tables.iter().any(|table| table.pages_max.is_some()) {
        true => Complete::Unless,
        false => Complete::Always,
    }
}

/// A crawl of few hosts, of which one has a longer delay, and another one a secret and a limit on
/// pages.
fn with_tables() -> Plan {
    let mut plan = Plan::of(1);
    let delay = Duration::from_millis(300);
    (plan.web.hosts, plan.web.seeds, plan.web.pages) = (6, 6, 90);
    (plan.web.hosts_per_address, plan.web.muddled) = (1, 0.0);
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
    (plan.laws.burst, plan.laws.delay, plan.laws.complete) = (Some(1), delay, Complete::Unless);
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
/// page more, breaks a law.
#[test]
fn a_crawl_that_ignores_its_tables_breaks_a_law() {
    type Change = fn(&mut Plan);
    let verdict = |change: Change| {
        let mut plan = with_tables();
        change(&mut plan);
        run_plan(plan, false).verdict
    };
    assert_eq!(verdict(|_| {}), Ok(()));
    let sabotages: [(&str, Change); 4] = [
        ("rest", |plan| plan.engine.frontier.scheduler.paces[0] = SitePace::default()),
        ("secret", |plan| plan.engine.sites.fields.swap(0, 1)),
        ("secret", |plan| plan.engine.sites.fields.clear()),
        ("pages", |plan| plan.engine.sites.pages_max[1] = Some(Some(4))),
    ];
    for (law, sabotage) in sabotages {
        let verdict = verdict(sabotage);
        let is_noticed = |how: &String| how.contains(&format!("law `{law}` broken"));
        assert!(verdict.as_ref().is_err_and(is_noticed), "{law}: {verdict:?}");
    }
}
