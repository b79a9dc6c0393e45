//! Tests of what a URL waits for, and of the outcomes that it would get, one cause after the other.

use super::*;
use crate::dns::address::Block;
use crate::engine::command::{Command, Order, Reply};
use crate::engine::contract::StopReason;
use crate::engine::ledger::Budget;
use crate::engine::settings::Settings;
use crate::ground::disk::memory::Memory;
use crate::ground::stats::{Meter, still};
use crate::ground::time::UnixTime;
use crate::seeds;

fn now_at(seconds: u64) -> Now {
    let at = Instant::from_micros(seconds * 1_000_000);
    Now { at, unix: UnixTime::from_micros(1_700_000_000_000_000 + at.as_micros()) }
}

/// An engine with these seeds, whose crawl has not made a request.
fn engine(urls: &str, change: impl FnOnce(&mut Settings)) -> Engine {
    let mut settings = Settings::default();
    settings.identity.user_agent = "sted".to_owned();
    settings.robots.obey = true;
    settings.connections.open_max = 8;
    settings.state.crawl = Some(7);
    settings.seen.crawl = Some(7);
    settings.frontier.crawl = Some(7);
    change(&mut settings);
    let (seeds, mistakes) = seeds::parse(urls.as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let disk = Box::new(Memory::default());
    Engine::open(settings, &seeds, disk, Meter::new(still), now_at(1)).expect("it begins")
}

fn about(engine: &mut Engine, url: &str) -> About {
    let why = engine.why(now_at(2), url);
    assert_eq!(why.errors, [""; 0]);
    let text = serde_json::to_string(&why).expect("plain values");
    assert_eq!(serde_json::from_str::<Why>(&text).expect("it was written"), why);
    match why.subject {
        Subject::Url(about) => *about,
        Subject::NotUrl(reason) => panic!("{url}: {reason}"),
    }
}

fn texts(about: &About) -> Vec<&str> {
    about.obstacles.iter().map(|obstacle| obstacle.text.as_str()).collect()
}

fn order(engine: &mut Engine, command: &str) {
    let command: Command = serde_json::from_str(command).expect("a command");
    let reply = engine.command(now_at(2), &Order::new("ann", command));
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
}

const FIRST: &str = "robots.txt of its server is requested first";

#[test]
fn a_seed_waits_behind_those_before_it() {
    let mut engine = engine("http://a.test/1\nhttp://a.test/2\nhttp://a.test/3", |_| {});
    let third = about(&mut engine, "http://a.test/3#x");
    let Place::Waiting(waiting) = &third.place else { panic!("{third:?}") };
    assert_eq!((waiting.before_min, waiting.before_max, waiting.found_as), (2, 2, '-'));
    assert_eq!(
        (third.is_known, third.in_scope, third.outcome.as_deref()),
        (Some(true), true, None)
    );
    assert_eq!(texts(&third), [FIRST]);
    // Two visits of one request, each with a rest of a second, go before it.
    assert_eq!(third.earliest_us, Some(now_at(4).unix.as_micros()));
    let other = about(&mut engine, "http://b.test/");
    assert_eq!((other.place, other.is_known, other.server), (Place::Nowhere, Some(false), None));
}

#[test]
fn commands_of_the_operator_are_obstacles() {
    let cases = [
        ("pause", "all", "the operator has paused the crawl"),
        ("pause", "host:a.test", "the operator has paused its server"),
        ("pause", "prefix:http://a.test/x/", "the operator has paused a prefix of the URL"),
    ];
    for (verb, target, says) in cases {
        let mut engine = engine("http://a.test/x/1", |_| {});
        order(&mut engine, &format!("{{\"verb\":\"{verb}\",\"target\":\"{target}\"}}"));
        let about = about(&mut engine, "http://a.test/x/1");
        assert_eq!(texts(&about), [says, FIRST]);
        assert_eq!(about.earliest_us, None);
    }
    let mut engine = engine("http://a.test/x/1", |_| {});
    order(&mut engine, r#"{"verb":"slow","host":"a.test","delay_ms":9000}"#);
    let slowed = about(&mut engine, "http://a.test/x/1");
    assert_eq!(texts(&slowed), ["the operator has slowed its host", FIRST]);
    assert_eq!(slowed.earliest_us, Some(now_at(11).unix.as_micros()));
    order(&mut engine, r#"{"verb":"block","target":"http://a.test/x/"}"#);
    let blocked = about(&mut engine, "http://a.test/x/1");
    assert_eq!((blocked.outcome.as_deref(), texts(&blocked).len()), (Some("blocked"), 0));
    engine.stop(now_at(2), StopReason::Interrupted);
    assert_eq!(texts(&about(&mut engine, "http://a.test/y"))[0], "the crawl is ending");
}

#[test]
fn limits_and_rules_decide_about_what_is_not_discovered() {
    let outcome = |url: &str, change: fn(&mut Settings)| {
        about(&mut engine("http://a.test/\nhttp://b.a.test/", change), url).outcome
    };
    let name = |outcome: &str| Some(outcome.to_owned());
    assert_eq!(outcome("http://a.test/1", |_| {}), None);
    assert_eq!(
        outcome("http://a.test/1", |settings| settings.frontier.urls_per_server_max = 1),
        name("queue-full")
    );
    assert_eq!(
        outcome("http://c.test/", |settings| settings.frontier.scheduler.servers_max = 2),
        name("servers-max")
    );
    assert_eq!(
        outcome("http://c.a.test/", |settings| settings.servers_per_domain_max = Some(2)),
        name("servers-per-domain-max")
    );
    assert_eq!(outcome("http://10.0.0.1/", |_| {}), name("forbidden-address"));
    let allow: fn(&mut Settings) = |settings| {
        let block = Block::new([10, 0, 0, 0].into(), 8).expect("8 of 32 bits");
        settings.connections.addresses.allowed.push(block);
    };
    assert_eq!(outcome("http://10.0.0.1/", allow), None);
    let exclude: fn(&mut Settings) = |settings| settings.scope.exclude = vec!["/x".to_owned()];
    assert_eq!(outcome("http://a.test/x", exclude), name("excluded"));
    let mut free = engine("http://a.test/", |settings| settings.robots.obey = false);
    let robots = about(&mut free, "http://a.test/1").robots;
    assert_eq!(robots.verdict, RobotsVerdict::NotObeyed);
}

/// A URL waits under the spelling in which it was found, also at the server of its key.
#[test]
fn a_url_with_the_same_key_is_found() {
    let merge = |settings: &mut Settings| {
        settings.key.drop_www = true;
        settings.key.merge_schemes = true;
    };
    let mut engine = engine("http://a.test/?utm_x=1", merge);
    let about = about(&mut engine, "https://www.a.test/");
    let Place::Waiting(waiting) = &about.place else { panic!("{about:?}") };
    assert_eq!(
        (waiting.url.as_str(), about.key.as_str()),
        ("http://a.test/?utm_x=1", "http://a.test/")
    );
    assert_eq!(about.key_rules, ["url.drop_www", "url.merge_schemes"]);
}

/// A queue that is too long to be searched gives bounds, and no turn is over its budget.
#[test]
fn a_long_queue_is_not_searched_to_its_end() {
    let urls: String = (0..20_000).map(|n| format!("http://a.test/{n}\n")).collect();
    let mut engine = engine(&urls, |settings| settings.turn_bytes_max = 16 << 10);
    let mut place = |url: &str| {
        let place = about(&mut engine, url).place;
        while engine.next_action().is_some() {}
        let (peak, most) = {
            let ledger = engine.ledger();
            (ledger.peak(Budget::Queues), ledger.units_max(Budget::Queues))
        };
        assert!(peak <= most, "{peak} of {most} units");
        place
    };
    let Place::Unsure { searched } = place("http://a.test/19999") else {
        panic!("it is far behind")
    };
    assert!((1_000..20_000).contains(&searched), "{searched}");
    let Place::Waiting(near) = place("http://a.test/900") else { panic!("it is near") };
    assert_eq!((near.before_min, near.before_max), (900, 900));
}
