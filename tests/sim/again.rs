//! Crawls that come back: known pages are visited again, not too soon, and none is forgotten.

use super::stand::{Crawl, Plan};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::why::Subject;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::{Jump, Observation, World};
use sted::study::web::{Changes, Place, Resource, Settings, TimeSpread, Version};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

/// A web whose pages change every hour or so.
fn changing(seed: u64) -> Settings {
    Settings {
        seed,
        hosts: 20,
        pages: 400,
        // All visits are made by one slow line, so that not all pages can be kept up to date.
        think_time: TimeSpread { median: Duration::from_secs(8), sigma: 0.0 },
        changes: Some(Changes {
            epoch: 1_767_225_600,
            interval: TimeSpread { median: HOUR, sigma: 1.3 },
            page_sigma: 0.8,
            scheduled: 0.1,
            always: 0.05,
            appear: 0.1,
            vanish: 0.05,
            span: 48 * HOUR,
            etags: 0.5,
            modified: 0.5,
        }),
        ..Settings::default()
    }
}

fn plan(seed: u64, policy: &str) -> Plan {
    Plan::new(changing(seed)).with(&[
        &format!("recrawl.policy = \"{policy}\""),
        "recrawl.interval_min = \"10m\"",
        "recrawl.interval_max = \"24h\"",
        "recrawl.change_interval = \"1h\"",
        "limits.time_max = \"48h\"",
        "connections.open_max = 1",
    ])
}

/// Returns when each page was requested, and the versions that were sent.
fn visits(crawl: &Crawl) -> BTreeMap<Place, Vec<Instant>> {
    let mut visits: BTreeMap<Place, Vec<Instant>> = BTreeMap::new();
    for (at, seen) in &crawl.observations {
        if let Observation::Request { place: Some(place), .. } = seen
            && matches!(place.resource, Resource::Page(_))
        {
            visits.entry(*place).or_default().push(*at);
        }
    }
    visits
}

/// Returns the share of the second half of the time for which the copies were up to date.
fn freshness(crawl: &Crawl) -> f64 {
    let (from, until) = (24 * HOUR, 48 * HOUR);
    let (mut fresh, mut all) = (0.0, 0.0);
    for (place, visits) in visits(crawl) {
        let times: Vec<Duration> = visits.iter().map(|at| at.since(Instant::ZERO)).collect();
        let ends = times[1..].iter().copied().chain([until]);
        for (at, end) in times.iter().zip(ends) {
            let (begin, end) = ((*at).max(from), end.max(from));
            let changes = crawl.web.next_change(place, *at).unwrap_or(Duration::MAX);
            fresh += (changes.clamp(begin, end) - begin).as_secs_f64();
            all += (end - begin).as_secs_f64();
        }
    }
    fresh / all
}

/// Law: no page is visited again before the shortest interval has passed, and each that was there
/// is visited again within the longest.
#[test]
fn known_pages_are_visited_again() {
    for policy in ["uniform", "proportional", "greedy"] {
        let crawl = plan(3, policy).run();
        let visits = visits(&crawl);
        assert!(visits.len() > 300, "{policy}: {} pages", visits.len());
        let mut again = 0;
        for (place, times) in &visits {
            for two in times.windows(2) {
                let gap = two[1].since(two[0]);
                assert!(gap >= 10 * MINUTE, "{policy}: {place:?} again after {gap:?}");
                assert!(gap <= 25 * HOUR, "{policy}: {place:?} not for {gap:?}");
            }
            let last = times.last().expect("it has one").since(Instant::ZERO);
            let is_there = matches!(crawl.web.version(*place, last), Version::Since(_));
            assert!(last > 23 * HOUR || !is_there, "{policy}: {place:?} was left at {last:?}");
            again += times.len() - 1;
        }
        assert!(again > 15_000, "{policy}: {again} visits to known pages");
        let known = crawl.known.expect("it comes back").visits;
        let found = known.changed + known.unchanged + known.gone + known.failed;
        assert!(found.abs_diff(again as u64) < 5, "{policy}: {again} visits, {known:?}");
        // Three quarters of the hosts have one validator at least.
        let (same, told) = (known.unchanged, known.unmodified);
        assert!(told > same / 2 && told < same, "{policy}: {told} of {same} unchanged by 304");
    }
}

/// Coming back keeps copies up to date; most by the policy that says so.
#[test]
fn copies_are_kept_up_to_date() {
    let [none, uniform, proportional, greedy] = ["none", "uniform", "proportional", "greedy"]
        .map(|policy| (1..4).map(|seed| freshness(&plan(seed, policy).run())).sum::<f64>() / 3.0);
    assert!(uniform > 1.5 * none, "{none} {uniform}");
    assert!(greedy > uniform && greedy > proportional, "{uniform} {proportional} {greedy}");
}

/// A crawl with nothing else to do visits all pages as often as it may: pages that are next in line
/// but too young don't keep it from those behind them.
#[test]
fn idle_time_is_used() {
    let mut idle = plan(3, "greedy");
    idle.web.think_time.median = Duration::from_millis(20);
    let conf = ["recrawl.interval_min = \"30s\"", "limits.time_max = \"2h\""];
    let crawl = idle.with(&conf).run();
    let mut gaps: Vec<Duration> = visits(&crawl)
        .values()
        .flat_map(|times| times.windows(2).map(|two| two[1].since(two[0])).collect::<Vec<_>>())
        .collect();
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    assert!(median < Duration::from_secs(40), "{} visits, {median:?} apart", gaps.len());
}

/// While new URLs wait, known pages get nine tenths of their share of the requests at least, and no
/// more than that share, whatever the policy thinks of their servers.
#[test]
fn the_share_is_kept() {
    for (share, burst, schedule) in [
        (0.0, 1, "capability"),
        (0.3, 1, "capability"),
        (0.8, 5, "capability"),
        (0.3, 1, "bfs"),
        (0.3, 5, "largest-site-first"),
        (0.8, 1, "yield"),
    ] {
        let mut plan = plan(5, "greedy");
        (plan.web.hosts, plan.web.pages) = (200, 20_000);
        plan.web.think_time.median = Duration::from_secs(2);
        let crawl = plan
            .with(&[
                &format!("recrawl.share = {share:?}"),
                &format!("politeness.burst = {burst}"),
                &format!("schedule.policy = \"{schedule}\""),
                "limits.time_max = \"8h\"",
            ])
            .run();
        let mut of_known = [0, 0];
        for times in visits(&crawl).values() {
            for (number, at) in times.iter().enumerate() {
                let is_late = at.since(Instant::ZERO) > 2 * HOUR;
                of_known[usize::from(number > 0)] += u32::from(is_late);
            }
        }
        let [new, known] = of_known;
        assert!(new > 1_500, "new URLs have waited: {new} were requested");
        let part = f64::from(known) / f64::from(new + known);
        let how = format!("{share} {burst} {schedule}: {known} of {}", new + known);
        assert!(share > 0.0 || known == 0, "{how}");
        assert!((0.9 * share..share + 0.01).contains(&part), "{how}, {part}");
    }
}

/// Visits to known pages don't keep servers waiting that have none: each that links lead to is
/// visited, though visits to the others could go on and on.
#[test]
fn new_servers_are_visited() {
    let mut plan = plan(5, "greedy");
    (plan.web.hosts, plan.web.pages, plan.web.seeds) = (300, 30_000, 10);
    plan.web.think_time.median = Duration::from_secs(2);
    let crawl = plan.with(&["politeness.burst = 5", "limits.time_max = \"5h\""]).run();
    let visits = visits(&crawl);
    let hosts: BTreeSet<u32> = visits.keys().map(|place| place.host).collect();
    assert!(hosts.len() > 250, "{} hosts were visited", hosts.len());
}

/// A plan whose five hosts have more due pages than they can take at first.
fn few_hosts(seed: u64, policy: &str, lies: f64) -> Plan {
    let mut web = Settings { hosts: 5, sitemaps: 1.0, sitemap_lies: lies, ..changing(seed) };
    web.changes.as_mut().expect("its pages change").interval.median = 6 * HOUR;
    web.think_time.median = Duration::from_secs(20);
    Plan { web, ..plan(seed, policy) }.with(&["discovery.sitemaps = \"none\""])
}

/// Servers whose queues were full once take their best pages, and aren't neglected after that.
#[test]
fn few_servers_are_not_neglected() {
    let [uniform, greedy] = ["uniform", "greedy"].map(|policy| {
        (1..4).map(|seed| freshness(&few_hosts(seed, policy, 0.0).run())).sum::<f64>() / 3.0
    });
    assert!(greedy > 1.02 * uniform, "{uniform} {greedy}");
}

/// Where sitemaps are honest, reading them keeps copies up to date for longer, although that takes
/// visits; where they lie, it costs next to nothing.
#[test]
fn signals_are_followed_as_far_as_they_are_true() {
    let freshness_of = |lies: f64, sitemaps: &str| {
        let of_seed = |seed| {
            let plan = few_hosts(seed, "greedy", lies);
            let crawl = plan.with(&[&format!("discovery.sitemaps = \"{sitemaps}\"")]).run();
            let known = crawl.known.expect("it comes back").visits;
            assert_eq!(known.signals > 50, sitemaps == "robots", "{known:?}");
            freshness(&crawl)
        };
        (1..4).map(of_seed).sum::<f64>() / 3.0
    };
    let [none, honest, lying] = [(0.0, "none"), (0.0, "robots"), (1.0, "robots")]
        .map(|(lies, sitemaps)| freshness_of(lies, sitemaps));
    assert!(honest > 1.02 * none, "{none} {honest}");
    assert!(lying > 0.99 * none, "{none} {lying}");
}

/// Returns whether the question why finds a page among those that wait for their next visit.
fn is_found(engine: &mut Engine, url: &str, world: &World) -> bool {
    let mut why = engine.why(world.now(), url);
    engine.add_known(&mut why);
    assert_eq!(why.errors, [""; 0]);
    let Subject::Url(about) = why.subject else { panic!("{url} is a URL") };
    if let Some(known) = &about.known {
        let times = [known.visited_us, known.due_us, why.at_us];
        assert!(known.url == url && known.due_us > known.visited_us, "{url}: {times:?}");
    }
    about.known.is_some()
}

/// Law: a crawl that is killed and resumes forgets no page and visits none too soon. Visits whose
/// replies were archived after the last checkpoint count.
#[test]
fn a_killed_crawl_goes_on_with_its_known_pages() {
    let web = Settings { sitemaps: 1.0, sitemap_lies: 0.3, ..changing(5) };
    let plan = Plan { web, ..plan(5, "greedy") }.with(&[
        "store.format = \"warc\"",
        "store.sync_period = \"1s\"",
        "state.keep = true",
        "state.checkpoint_period = \"10m\"",
        "politeness.delay_max = \"1m\"",
        "politeness.crawl_delay_max = \"1m\"",
    ]);
    let (web, seeds, settings) = plan.parts();
    let mut world = World::of_web(Arc::clone(&web), plan.world.clone());
    let kept = Rc::new(RefCell::new(BTreeMap::<Place, Vec<Instant>>::new()));
    let seen = Rc::clone(&kept);
    world.watch_servers(Box::new(move |at, what| {
        if let Observation::Request { place: Some(place), .. } = what
            && matches!(place.resource, Resource::Page(_) | Resource::Sitemap)
        {
            seen.borrow_mut().entry(*place).or_default().push(at);
        }
    }));
    let disk = MemoryDisk::new();
    let open = |world: &World| {
        let disk = Box::new(disk.clone());
        Engine::open(settings.clone(), &seeds, disk, Meter::new(still), world.now())
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let (mut before, mut killed) = (0, Instant::ZERO);
    for hours in [6, 9, 12, 15] {
        let mut engine = open(&world);
        let known = engine.known_pages().expect("it comes back").pages;
        assert!(known + 5 >= before, "{known} of {before} pages are known after a kill");
        let visited: Vec<Place> = kept.borrow().keys().copied().collect();
        let found = visited.iter().filter(|place| is_found(&mut engine, &web.url(**place), &world));
        let found = found.count() as u64;
        let queued = engine.known_pages().expect("it comes back").queued;
        assert_eq!(found + queued, known, "the question why finds each page in the calendar");
        let until = Instant::ZERO + hours * HOUR + 123 * Duration::from_secs(1);
        world.run_until(&mut engine, until, &mut |_| true).expect("it goes on");
        before = engine.known_pages().expect("it comes back").pages;
        drop(engine);
        world.exit();
        killed = until;
        world.restart(MINUTE, Jump::None);
    }
    let visits = kept.borrow();
    let mut early = 0;
    for (place, times) in visits.iter() {
        early += times.windows(2).filter(|two| two[1].since(two[0]) < 10 * MINUTE).count();
        let last = times.last().expect("it has one");
        let is_there = matches!(web.version(*place, last.since(Instant::ZERO)), Version::Since(_));
        let waits = killed.since(*last);
        assert!(waits < 13 * HOUR || !is_there, "{place:?} was left for {waits:?}");
    }
    // Of each kill, the request under way and what wasn't synced.
    assert!(early <= 4, "{early} visits too soon");
}
