//! The plan of a crawl in several processes, chosen by a seed: how far each comes, how it ends, and
//! what happens between two of them.

use crate::sweep;
use std::fmt::Write;
use std::time::Duration;
use sted::engine::contract::{Command, Target};
use sted::ground::random::Random;
use sted::study::sim::Jump;
use sted::study::sim::settings::DiskFaults;
use sted::study::web::{Ports, Web};
use sted::url::domain;

/// A crawl in several processes.
pub struct Plan {
    pub crawl: sweep::Plan,
    /// The processes that end before the crawl does, in order.
    pub lives: Vec<Life>,
    /// Whether the closed files of the archive are moved away between two processes.
    pub takes_away: bool,
    /// The commands that the last process gets, each with the wait before it.
    pub orders: Vec<(Duration, Command)>,
}

/// A process that ends before the crawl does.
#[derive(Clone, Debug)]
pub struct Life {
    /// If set, the process is killed in the middle of one of the first changing verbs of its disk,
    /// while it opens what the previous one has left.
    pub opens_until: Option<u64>,
    /// The number of replies that it receives.
    pub replies: u64,
    /// A disk fault that begins after half of them.
    pub trouble: Option<Trouble>,
    /// What ends it.
    pub end: End,
    /// The number of verbs that the unfinished job still does.
    pub job_verbs: u64,
    /// Whether power is lost, too.
    pub power: bool,
    /// The pause until the next process begins.
    pub pause: Duration,
    /// How the clock is set meanwhile.
    pub jump: Jump,
    /// The seed of all other draws.
    pub seed: u64,
    /// The commands that the process gets at its start, each with the wait before it.
    pub orders: Vec<(Duration, Command)>,
}

/// What ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is killed, this much later.
    Kill(Duration),
    /// It is killed in the middle of a verb of its disk, after this many more that change
    /// something.
    KillAmidst(u64),
    /// It is asked to stop, and stops in order.
    Stop,
    /// It is asked to stop, and killed in the middle of a verb.
    StopAndKill(u64),
}

/// A period of disk faults.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    /// Bytes that still fit.
    pub slack_bytes: u64,
    pub faults: DiskFaults,
    pub lasts: Duration,
}

/// Prefixes of the names of folders and files that a crawl writes.
const KINDS: [&str; 5] = ["", "warc/", "index/", "crawl.log", "state/"];

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut draw = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0xc4a5);
        let mut crawl = sweep::Plan::of(seed);
        if super::is_old(seed) {
            crawl.web.sitemaps = 0.0;
        }
        let engine = &mut crawl.engine;
        engine.seen.memory_bytes = draw.pick(&[1 << 10, 16 << 10, 1 << 20]);
        engine.seen.cache_entries_log2 = draw.pick(&[4, 10]);
        engine.frontier.memory_bytes = draw.pick(&[1 << 10, 16 << 10, 1 << 20]);
        engine.rating.sites_max = 1_000;
        // Not drawn, so that later draws of the seed stay the same.
        engine.robots_bytes_max = [0, 600, 64 << 20][(seed % 3) as usize];
        engine.state.period = Duration::from_secs(draw.pick(&[1, 10, 120]));
        let full_wait = Duration::from_millis(draw.pick(&[1, 2_000]));
        engine.state.full_wait = if draw.one_in(3) { None } else { Some(full_wait) };
        // Added later, with its own draw: seeds that failed once stay the same.
        engine.state.free_min = Random(seed ^ 0x6672_6565).pick(&[0, 0, 0, 30_000]);
        let store = &mut engine.store;
        store.has_thread &= !super::is_old(seed);
        store.sync_period = Duration::from_millis(draw.pick(&[50, 1_000, 10_000]));
        store.file_bytes_max = draw.pick(&[1 << 20, 1 << 30]);
        store.gzip_level = draw.pick(&[0, 1]);
        store.buffer_bytes = draw.pick(&[1 << 10, 64 << 10]);
        // Not drawn, for the same reason.
        let takes_away = seed % 5 == 1;
        if takes_away {
            // A revisit record can't be read back without its original.
            store.revisit_names_max = 0;
        }
        store.log_bytes_max = [2_000, 1 << 30][(seed % 2) as usize];
        store.verify_bytes_max = [0, u64::MAX][(seed / 2 % 2) as usize];
        store.index_bytes_max = [64 << 20, 3_000][(seed / 4 % 2) as usize];
        if takes_away {
            store.index_bytes_max = 3_000;
        }
        let pages = u64::from(crawl.web.pages);
        let lives = (0..1 + draw.below(5)).map(|_| Life::of(&mut draw, pages)).collect();
        Self { crawl, lives, takes_away, orders: Vec::new() }
    }

    /// Returns the plan of a seed whose crawl comes back, until it has lasted for a time.
    pub fn coming_back(seed: u64) -> Self {
        let plan = Self::of(seed);
        let crawl = sweep::again::come_back(plan.crawl, seed);
        Self { crawl, ..plan }
    }

    /// Returns the plan of a seed in which the operator gives commands to each process.
    pub fn with_orders(seed: u64) -> Self {
        let mut plan = Self::of(seed);
        let mut draw = Random(seed.wrapping_mul(0x9e6c_63d0_876a_9a45) ^ 0x0b_e7);
        let web = Web::new(plan.crawl.web.clone(), Ports::default());
        plan.lives.truncate(draw.below(4) as usize);
        for life in &mut plan.lives {
            life.orders = orders(&mut draw, &web);
            // A paused crawl gets no replies, so none are waited for.
            life.replies = 0;
        }
        plan.orders = orders(&mut draw, &web);
        plan
    }

    /// Describes the plan in words.
    pub fn text(&self) -> String {
        let mut text = self.crawl.text.clone();
        for life in &self.lives {
            let _ = write!(text, "\n  {life:?}");
        }
        text
    }
}

impl Life {
    fn of(draw: &mut Random, pages: u64) -> Self {
        let ms = Duration::from_millis;
        let verbs = |draw: &mut Random| {
            let most = draw.pick(&[3, 30, 300]);
            draw.below(most)
        };
        let end = match draw.below(8) {
            0..=1 => End::Kill(ms(draw.pick(&[0, 10, 1_000, 60_000, 600_000]))),
            2..=4 => End::KillAmidst(verbs(draw)),
            5..=6 => End::Stop,
            _ => End::StopAndKill(draw.below(40)),
        };
        let opens_until = if draw.one_in(5) { Some(verbs(draw)) } else { None };
        let trouble = draw.one_in(4).then(|| Trouble::of(draw));
        // A process that stops in order stores its clocks by the calendar: if that is set forward,
        // nobody can know how much time has really passed.
        let jumps = [Jump::None, Jump::Back(ms(500)), Jump::Back(ms(86_400_000))];
        let forward = Jump::Forward(ms(86_400_000));
        let may_jump = !matches!(end, End::Stop | End::StopAndKill(_)) && trouble.is_none();
        let jump = if may_jump && draw.one_in(4) { forward } else { draw.pick(&jumps) };
        Self {
            opens_until,
            replies: draw.below(pages + pages / 4),
            trouble,
            end,
            job_verbs: draw.below(12),
            power: draw.one_in(2),
            pause: ms(draw.pick(&[0, 5, 900, 30_000, 4_000_000])),
            jump,
            seed: draw.below(u64::MAX),
            orders: Vec::new(),
        }
    }
}

/// Draws commands, each with the wait before it.
fn orders(draw: &mut Random, web: &Web) -> Vec<(Duration, Command)> {
    let mut targets: Vec<Target> = Vec::new();
    let count = 1 + draw.below(8);
    let waits = [0, 3, 200, 2_000, 20_000, 100_000];
    let mut command = |draw: &mut Random| {
        let host = web.host(draw.below(u64::from(web.hosts())) as u32);
        let place = web.place_of(draw.below(web.pages_total() as u64) as usize);
        let url = web.url(place);
        let target = match draw.below(7) {
            0 => Target::All,
            1 => Target::Server(web.origin(place.host)),
            2 => Target::Domain(domain::registrable(&host.name).to_owned()),
            3 => Target::Address(host.address.into()),
            4 => url[..url.len() - draw.below(3) as usize].parse().expect("a URL"),
            _ => Target::Host(host.name.clone()),
        };
        let known = targets.get(draw.below(targets.len() as u64 + 1) as usize).cloned();
        targets.push(target.clone());
        let known = known.unwrap_or_else(|| target.clone());
        match draw.below(16) {
            0..=3 => Command::Pause { target },
            4..=6 => Command::Resume { target: known },
            7 => Command::Block { target },
            8 => Command::Unblock { target: known },
            9..=10 => {
                let delay_ms = draw.pick(&[0, 700, 5_000, 90_000]);
                Command::Slow { host: host.name, delay_ms }
            }
            11..=12 => Command::AddSeeds { seeds: vec![url] },
            13 => Command::Revive,
            14 => Command::Checkpoint,
            _ => Command::Rotate,
        }
    };
    let ms = Duration::from_millis;
    let mut orders: Vec<_> = (0..count).map(|_| (ms(draw.pick(&waits)), command(draw))).collect();
    // Added later, with its own draw: seeds that failed once stay the same.
    let mut later = Random(draw.0 ^ 0x7265_6c6f);
    if later.one_in(3) {
        let place = later.below(orders.len() as u64) as usize;
        let reload = Command::Reload { changed: vec!["politeness.delay".to_owned()] };
        orders.insert(place, (ms(later.pick(&waits)), reload));
    }
    orders
}

impl Trouble {
    fn of(draw: &mut Random) -> Self {
        let fails = draw.one_in(4);
        let faults = DiskFaults {
            room_of: draw.pick(&KINDS),
            torn: draw.one_in(2),
            syncs: if fails { 1.0 } else { 0.0 },
            seed: draw.below(u64::MAX),
            ..DiskFaults::default()
        };
        let slack_bytes = if fails { u64::MAX >> 1 } else { draw.pick(&[0, 100, 20_000]) };
        let lasts = Duration::from_millis(draw.pick(&[20, 3_000, 100_000]));
        Self { slack_bytes, faults, lasts }
    }
}
