//! What it costs to know many pages: a calendar of them on disk, visits that take a page and file
//! it again, and a restart.

use smallvec::SmallVec;
use std::fs;
use std::time::{Duration, Instant};
use sted::ground::codec::Take;
use sted::ground::random::Random;
use sted::os::disk::OsDisk;
use sted::os::signal;
use sted::recrawl::calendar::Calendar;
use sted::recrawl::known::Known;
use sted::recrawl::rate::Rate;
use sted::recrawl::worth::Policy;

const DAY: u64 = 86_400;
const BEGAN: u32 = 1_800_000_000;
const CRAWL: u64 = 1;
/// The longest time between two visits.
const INTERVAL_MAX: f64 = 60.0 * DAY as f64;
/// What a visit must be worth: pages of mean importance that change once in ten days come up after
/// some ten days.
const BAR: f64 = 3.0 * DAY as f64;
const BYTES_PER_PAGE: usize = 4_096;

fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * BYTES_PER_PAGE
}

/// Appends what is filed of a page: what is known, and a URL of 60 bytes.
fn put(known: &Known, number: u64, out: &mut Vec<u8>) {
    known.encode(out);
    out.extend_from_slice(
        format!(
            "https://h{:05}.example.org/section-{:03}/article-{number:012}.html",
            number % 40_000,
            number % 700
        )
        .as_bytes(),
    );
}

fn due(known: &Known) -> u32 {
    let age = Policy::Greedy.age_at(known.facts(), 0.7 * BAR).unwrap_or(f64::INFINITY);
    known.visited + age.min(INTERVAL_MAX) as u32
}

/// Knows so many pages, makes so many visits, and prints what that costs.
pub(super) fn run(pages: u64, visits: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut disk = OsDisk::open(folder.path()).expect("a folder");
    let mut random = Random(1);
    let mut calendar = Calendar::new(BEGAN, Some(CRAWL));
    let (before, mut bytes) = (resident(), Vec::new());
    let begun = signal::thread_cpu();
    for number in 0..pages {
        let days = 1 + random.below(60_u64);
        let etag: &[u8] = if random.one_in(2) { b"W/\"65f1c2-18d3a5b7c00\"" } else { b"" };
        let known = Known {
            importance: 0.2 + random.below(1_000_u64) as f32 / 300.0,
            rate: Rate::of_mean(1.0 / (days * DAY) as f64),
            visited: BEGAN - random.below(10 * DAY) as u32,
            changed: 0,
            same: 0,
            digest: [number as u8; 20],
            captured: BEGAN,
            gone: 0,
            signals: 0,
            signalled: 0,
            is_list: false,
            modified: random.one_in(3).then_some(BEGAN - 1_000_000),
            etag: SmallVec::from_slice(etag),
        };
        bytes.clear();
        put(&known, number, &mut bytes);
        calendar.file(due(&known), &bytes);
        calendar.write(false, &mut disk).expect("the disk works");
    }
    let filed = signal::thread_cpu().since(begun);
    let (mut visited, mut now) = (0, BEGAN);
    let begun = signal::thread_cpu();
    let mut longest = 0;
    while visited < visits {
        now += 1;
        let units = calendar.advance(now, 256 << 10, &mut disk).expect("the disk works");
        longest = longest.max(units);
        loop {
            bytes.clear();
            if calendar.take(now, &mut bytes).is_none() {
                break;
            }
            let mut take = Take::new(&bytes);
            let mut known = Known::decode(&mut take).expect("it was encoded");
            let url = take.rest().to_vec();
            let is_worth = Policy::Greedy.worth(known.facts(), known.age(now).into()) >= 0.7 * BAR;
            let payload =
                if is_worth && random.one_in(3) { [visited as u8; 20] } else { known.digest };
            let age = Duration::from_secs(known.age(now).into());
            let is_changed = known.found(now, Some((payload, now)));
            known.rate = known.rate.observe(age, is_changed);
            bytes.clear();
            known.encode(&mut bytes);
            bytes.extend_from_slice(&url);
            calendar.file(due(&known).max(now + 1), &bytes);
            visited += 1;
        }
        calendar.write(false, &mut disk).expect("the disk works");
    }
    let took = signal::thread_cpu().since(begun);
    let (known, held) = (calendar.pages(), resident());
    let begun = Instant::now();
    let mark = calendar.mark(std::iter::empty(), &mut disk).expect("the disk works");
    let marking = begun.elapsed();
    let on_disk: u64 = mark.files.iter().map(|(_, bytes)| bytes).sum();
    let begun = Instant::now();
    let mut again = Calendar::new(now, Some(CRAWL));
    again.restore_files(&mark.files, &mut disk).expect("the files are there");
    again.restore_mark(&mark.state).expect("it is right");
    assert_eq!(again.pages(), known);
    println!(
        "{{\"pages\":{known},\"file_ns\":{},\"visits\":{visited},\"visit_ns\":{},\
         \"simulated_days\":{:.1},\"longest_advance_units\":{longest},\"resident_mib\":{},\
         \"disk_bytes_per_page\":{:.1},\"mark_bytes\":{},\"mark_ms\":{:.1},\"resume_ms\":{:.1}}}",
        filed.sum_us() * 1_000 / pages,
        took.sum_us() * 1_000 / visited,
        f64::from(now - BEGAN) / DAY as f64,
        (held - before) >> 20,
        on_disk as f64 / known as f64,
        mark.state.len(),
        marking.as_secs_f64() * 1e3,
        begun.elapsed().as_secs_f64() * 1e3,
    );
}
