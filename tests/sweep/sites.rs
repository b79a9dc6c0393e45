//! Draws tables `[[site]]` for a simulated crawl, from a stream of their own: seeds that failed
//! once stay the same.

use std::time::Duration;
use sted::conf::Conf;
use sted::ground::random::Random;
use sted::study::sim::judge::{Complete, SiteLaw};
use sted::study::web::{Ports, Settings, Web};

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
