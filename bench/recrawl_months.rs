//! A whole crawl that comes back, simulated for months with its state on a real disk: what it holds
//! in memory and on disk, and how soon it resumes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::Engine;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::os::disk::OsDisk;
use sted::os::signal;
use sted::seeds;
use sted::study::sim::{self, World};
use sted::study::web::{Changes, Ports, Settings, Spread, TimeSpread, Web};

const DAY: Duration = Duration::from_secs(86_400);
const MONTH: Duration = Duration::from_secs(30 * 86_400);
const PAGES_PER_HOST: u64 = 1_000;

fn web(pages: u64) -> Settings {
    let number = |number: u64| u32::try_from(number).expect("at most four thousand million");
    Settings {
        seed: 1,
        hosts: number(pages / PAGES_PER_HOST).max(1),
        seeds: number(pages / PAGES_PER_HOST).max(1),
        pages: number(pages),
        links: Spread { median: 4.0, sigma: 0.3 },
        page_bytes: Spread { median: 400.0, sigma: 0.0 },
        // One connection makes as many visits in a month as there are pages, or more if they are
        // few: a server that takes longer is given up.
        think_time: TimeSpread {
            median: (MONTH / number(pages)).min(Duration::from_secs(8)),
            sigma: 0.0,
        },
        changes: Some(Changes {
            epoch: 1_767_225_600,
            interval: TimeSpread { median: MONTH, sigma: 1.3 },
            page_sigma: 0.8,
            scheduled: 0.1,
            always: 0.02,
            appear: 0.0,
            vanish: 0.0,
            span: 300 * DAY,
            etags: 0.5,
            modified: 0.5,
        }),
        ..Settings::default()
    }
}

const CONF: &str = r#"
[job]
name = "months"
seeds = ["http://h0000.test/"]
[identity]
contact = "crawler@sted.dev"
[scope]
span = "host"
domains = ["test"]
[politeness]
burst = 10
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[connections]
open_max = 1
addresses_allowed = ["127.0.0.0/8"]
[pipeline]
probation = 0
[recrawl]
policy = "greedy"
interval_min = "1d"
interval_max = "90d"
change_interval = "30d"
[store]
format = "none"
log_bytes_max = "100MB"
[state]
checkpoint_period = "1h"
"#;

fn resident_mib() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|text| text.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or(0) >> 10
}

fn bytes_below(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    let bytes = |file: fs::DirEntry| match file.metadata() {
        Ok(data) if data.is_dir() => bytes_below(&file.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    files.flatten().map(bytes).sum()
}

/// Simulates so many months of a crawl of so many pages, and prints a line for each month.
pub(super) fn run(pages: u64, months: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut conf = Conf::parse(CONF, "months.toml").unwrap_or_else(|error| panic!("{error}"));
    let web = Arc::new(Web::new(web(pages), Ports::default()));
    conf.job.seeds = web.seeds();
    let (found, _) = seeds::parse(web.seeds().join("\n").as_bytes());
    let world = sim::Settings { time_max: MONTH * (months + 1), ..sim::Settings::default() };
    let mut world = World::of_web(Arc::clone(&web), world);
    let settings = settings::engine(&conf, [7; 16]);
    let open = |world: &World| {
        let disk = Box::new(OsDisk::open(folder.path()).expect("a folder"));
        Engine::open(settings.clone(), &found, disk, Meter::new(still), world.now())
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let mut engine = open(&world);
    println!(
        "month,requests,known,changed,unchanged,unmodified,resident_mib,state_mib,known_mib,cpu_s"
    );
    let begun = signal::thread_cpu_ns();
    for month in 1..=months {
        let until = Instant::ZERO + MONTH * month;
        world.run_until(&mut engine, until, &mut |_| true).expect("it goes on");
        let known = engine.known_pages().expect("it comes back");
        println!(
            "{month},{},{},{},{},{},{},{},{},{}",
            engine.counts().requests,
            known.pages,
            known.visits.changed,
            known.visits.unchanged,
            known.visits.unmodified,
            resident_mib(),
            bytes_below(&folder.path().join("state")) >> 20,
            bytes_below(&folder.path().join("state/known")) >> 20,
            (signal::thread_cpu_ns() - begun) / 1_000_000_000
        );
        // Lines of the crawl log aren't state; an operator takes them away.
        for file in fs::read_dir(folder.path()).expect("the job").flatten() {
            let name = file.file_name().into_string().unwrap_or_default();
            if name.starts_with("crawl") && name != "crawl.log" {
                fs::remove_file(file.path()).expect("a closed file");
            }
        }
    }
    let known = engine.known_pages().expect("it comes back").pages;
    drop(engine);
    world.exit();
    world.restart(Duration::from_secs(60), sim::Jump::None);
    let begun = Clock::now();
    let engine = open(&world);
    let took = begun.elapsed().as_secs_f64();
    let after = engine.known_pages().expect("it comes back").pages;
    println!(
        "resumed after a kill in {took:.2} s, {} MiB resident: {after} pages of {known} known",
        resident_mib()
    );
}
