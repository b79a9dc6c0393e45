//! The cost of one operation of each station in instructions: the gate against gradual growth.
//!
//! Question: does a link, a page, a reply, a decision still cost the same? Inputs are fixed, made
//! beforehand and like those of a crawl (`stations_inputs.rs`); an operation is repeated many times
//! inside [`counted`], to which a counter of instructions can be limited.
//!
//! `stations NAME` runs one station and prints how many operations it counted. Without arguments
//! all run small, as a test; under `cargo bench` all run in full. Each line has the wall time per
//! operation, its bytes, and a checksum. `bench/stations` counts instructions and compares them
//! with `bench/limits.toml`.
//!
//! Laws: two runs do the same work, instruction by instruction: inside [`counted`], only the meter
//! reads a clock, nothing reads the environment or a random seed, and tables have grown before.

#![expect(clippy::disallowed_methods, reason = "a bench reads clocks")]

mod driver;
#[path = "stations_frontier.rs"]
mod frontier;
#[path = "stations_inputs.rs"]
mod inputs;
mod nowhere;

use nowhere::Nowhere;
use std::hint::black_box;
use std::time::Instant as Clock;
use sted::frontier::policy::Policy;
use sted::ground::stats::{Meter, Stage};
use sted::ground::time::UnixTime;
use sted::http::coding::{Coding, DecodeLimits, Decoder, State};
use sted::http::response::{Event, Limits, Reader};
use sted::links::{Found, Progress, Scanner};
use sted::os::signal;
use sted::robots::Rules;
use sted::seen::cache::{Cache, Replacement};
use sted::seen::{AHEAD, Seen};
use sted::store::{Capture, Identity, Store};
use sted::url::canon::Joiner;
use sted::url::key::{self, KeyRules};
use sted::url::scope::{self, FromSeeds, Scope};
use sted::url::{Batch, Fingerprint, Fingerprinter, Url};

/// A station: its name, how often a round is counted, and the function that makes its rounds.
struct Station {
    name: &'static str,
    rounds: u32,
    make: fn() -> Work,
}

/// The repeated work of a station.
struct Work {
    /// The number of operations in a round.
    operations: usize,
    /// Bytes that a round reads, where that is meaningful.
    bytes: usize,
    round: Box<dyn FnMut() -> u64>,
}

const STATIONS: [Station; 20] = [
    Station { name: "url_join_lab", rounds: 20, make: || url_join(&inputs::lab_pages()) },
    Station { name: "url_join_docs", rounds: 20, make: || url_join(&[inputs::docs_page()]) },
    Station { name: "url_key", rounds: 20, make: url_key },
    Station { name: "url_scope", rounds: 20, make: url_scope },
    Station { name: "cache_touch", rounds: 20, make: cache_touch },
    Station { name: "links_lab", rounds: 10, make: || links(inputs::lab_pages()) },
    Station { name: "links_docs", rounds: 10, make: || links(vec![inputs::docs_page()]) },
    Station { name: "links_large", rounds: 10, make: || links(inputs::large_pages()) },
    Station { name: "decode_gzip", rounds: 10, make: decode_gzip },
    Station { name: "response_head", rounds: 50, make: response_head },
    Station { name: "chunked", rounds: 20, make: chunked },
    Station { name: "scheduler", rounds: 20, make: frontier::scheduler },
    Station { name: "packed_bfs", rounds: 10, make: || frontier::packed(Policy::Bfs) },
    Station { name: "spilled_bfs", rounds: 10, make: || frontier::spilled(Policy::Bfs) },
    Station {
        name: "packed_capability",
        rounds: 10,
        make: || frontier::packed(Policy::Capability),
    },
    Station {
        name: "spilled_capability",
        rounds: 10,
        make: || frontier::spilled(Policy::Capability),
    },
    Station { name: "seen_offer", rounds: 20, make: seen_offer },
    Station { name: "warc_record", rounds: 2, make: warc_record },
    Station { name: "robots_match", rounds: 20, make: robots_match },
    Station { name: "meter", rounds: 20, make: meter },
];

fn main() {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    match &words[..] {
        [] => {
            let is_test = flags.is_empty();
            for station in STATIONS {
                run(&station, if is_test { 1 } else { 50 * station.rounds });
            }
        }
        [name] if name == "list" => {
            STATIONS.iter().for_each(|station| println!("{}", station.name))
        }
        [name] => {
            let station = STATIONS.iter().find(|station| station.name == name);
            let station = station.expect("nothing, `list`, or the name of a station");
            run(station, station.rounds);
        }
        _ => panic!("nothing, `list`, or the name of a station"),
    }
}

fn run(station: &Station, rounds: u32) {
    let mut work = (station.make)();
    // An uncounted round: tables grow, and one-time look-ups are done.
    black_box((work.round)());
    let began = Clock::now();
    let checksum = counted(&mut *work.round, rounds);
    let spent = began.elapsed();
    let operations = work.operations * rounds as usize;
    println!(
        "{{\"station\":\"{}\",\"operations\":{operations},\"ns\":{:.1},\"bytes\":{},\
         \"checksum\":{checksum}}}",
        station.name,
        spent.as_nanos() as f64 / operations as f64,
        work.bytes / work.operations,
    );
}

/// Runs everything that is counted. `bench/stations` knows its name.
#[inline(never)]
fn counted(round: &mut dyn FnMut() -> u64, rounds: u32) -> u64 {
    let mut checksum = 0_u64;
    for _ in 0..rounds {
        checksum = checksum.rotate_left(7) ^ round();
    }
    black_box(checksum)
}

/// A stage that begins and ends within another, with the real world's clock.
fn meter() -> Work {
    let mut meter = Meter::new(signal::tick);
    let round = move || {
        for _ in 0..1_000 {
            let before = meter.enter(Stage::Links, 16_700);
            meter.back(before);
        }
        meter.read()[Stage::Links as usize].calls
    };
    Work { operations: 1_000, bytes: 0, round: Box::new(round) }
}

/// Links of pages, joined to their page's URL, page by page as the engine does.
fn url_join(pages: &[inputs::Page]) -> Work {
    let pages: Vec<(Url, Found)> =
        pages.iter().map(|page| (page.url.clone(), page.links())).collect();
    let operations = pages.iter().map(|(_, found)| found.links().len()).sum();
    let bytes = pages.iter().flat_map(|(_, found)| found.links()).map(|link| link.reference.len());
    let bytes = bytes.sum();
    let mut batch = Batch::new();
    let round = move || {
        let mut checksum = 0;
        for (url, found) in &pages {
            batch.clear();
            let mut joiner = Joiner::new(url.view());
            for link in found.links() {
                let joined = joiner.join_str(link.reference, encoding_rs::UTF_8, &mut batch);
                checksum += u64::from(joined.is_ok());
            }
            black_box(&batch);
        }
        checksum
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// Returns the URLs that the lab's links lead to.
fn lab_urls() -> Batch {
    let mut batch = Batch::new();
    for page in inputs::lab_pages() {
        let mut joiner = Joiner::new(page.url.view());
        for link in page.links().links() {
            joiner
                .join_str(link.reference, encoding_rs::UTF_8, &mut batch)
                .expect("the lab's links");
        }
    }
    batch
}

/// The keys and fingerprints of the lab's URLs.
fn url_key() -> Work {
    let batch = lab_urls();
    let rules = KeyRules::new(key::Settings::default());
    let fingerprinter = Fingerprinter::new([7; 16]);
    let mut scratch = Vec::new();
    let (operations, bytes) = (batch.len(), batch.iter().map(|url| url.as_str().len()).sum());
    let round = move || {
        let print = |url| fingerprinter.of(rules.key(url, &mut scratch)).0;
        batch.iter().map(print).fold(0, u64::wrapping_add)
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// The lab's URLs checked against the scope of a crawl of its 64 hosts.
fn url_scope() -> Work {
    let batch = lab_urls();
    let settings = scope::Settings { from_seeds: FromSeeds::Host, ..Default::default() };
    let seeds: Vec<Url> = inputs::lab_pages().into_iter().map(|page| page.url).collect();
    let scope = Scope::new(settings, &seeds).expect("sound settings");
    let (operations, bytes) = (batch.len(), batch.iter().map(|url| url.as_str().len()).sum());
    let round = move || {
        let mut listed = "";
        let check = |url| scope.check_after(url, 3, &mut listed).is_ok();
        batch.iter().map(check).map(u64::from).sum()
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// Keys drawn beforehand, so that drawing them isn't counted.
struct Drawn {
    keys: inputs::Keys,
    ahead: Vec<u64>,
    round: usize,
    at: usize,
}

impl Drawn {
    /// The number of different rounds of keys; only wall-time measurements use more rounds.
    const ROUNDS: usize = 32;

    /// Draws the keys of rounds of `round` keys each.
    fn new(mut keys: inputs::Keys, round: usize) -> Self {
        let ahead = (0..Self::ROUNDS * round).map(|_| keys.next()).collect();
        Self { keys, ahead, round, at: 0 }
    }

    /// Returns the keys of the next round.
    fn next(&mut self) -> &[u64] {
        if self.at == self.ahead.len() {
            let keys = &mut self.keys;
            self.ahead.fill_with(|| keys.next());
            self.at = 0;
        }
        self.at += self.round;
        &self.ahead[self.at - self.round..self.at]
    }
}

/// Accesses to a full cache of 2^18 entries, a fifth with new keys.
fn cache_touch() -> Work {
    const ENTRIES_LOG2: u32 = 18;
    const TOUCHES: usize = 4_096;
    let mut cache = Cache::new(ENTRIES_LOG2, Replacement::Clock, 1);
    let mut keys = inputs::Keys::new(1 << (ENTRIES_LOG2 - 1), 20);
    for _ in 0..2_u32 << ENTRIES_LOG2 {
        cache.touch(keys.new_key());
    }
    let mut drawn = Drawn::new(keys, TOUCHES);
    let round = move || drawn.next().iter().map(|key| u64::from(cache.touch(*key))).sum();
    Work { operations: TOUCHES, bytes: 0, round: Box::new(round) }
}

/// Pages scanned for links.
fn links(pages: Vec<inputs::Page>) -> Work {
    let (operations, bytes) = (pages.len(), pages.iter().map(|page| page.body.len()).sum());
    let mut scanner = Scanner::new(sted::links::Settings::default());
    let mut found = Found::new();
    let round = move || {
        let mut checksum = 0;
        for page in &pages {
            found.clear();
            scanner.begin(encoding_rs::UTF_8);
            while scanner.scan(&page.body, usize::MAX, &mut found) == Progress::More {}
            checksum += found.links().len() as u64;
        }
        checksum
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// A page of the open web, coded in gzip, decoded with the budget of a turn.
fn decode_gzip() -> Work {
    let pages = inputs::coded_pages();
    let (operations, bytes) = (pages.len(), pages.iter().map(Vec::len).sum());
    let (mut decoder, mut text) = (Decoder::new(DecodeLimits::default()), Vec::new());
    let round = move || {
        let mut checksum = 0;
        for page in &pages {
            decoder.begin(&[Coding::Gzip]);
            text.clear();
            let mut used = 0;
            loop {
                let step = decoder.decode(&page[used..], true, &mut text, 1 << 20);
                used += step.used;
                if step.state != State::More {
                    assert_eq!(step.state, State::Done);
                    break;
                }
            }
            checksum += text.len() as u64;
        }
        checksum
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// The head of a reply as nginx writes it, followed by an empty body.
fn response_head() -> Work {
    let reply = inputs::nginx_head();
    let mut reader = Reader::new(Limits::default());
    let bytes = reply.len();
    let round = move || {
        reader.begin();
        let (payload, used) = read(&mut reader, &reply);
        payload + used as u64
    };
    Work { operations: 1, bytes, round: Box::new(round) }
}

/// A reply in chunks of at most 4 KiB, chunk by chunk; the reader reports only the bounds of the
/// data.
fn chunked() -> Work {
    let (reply, chunks) = inputs::chunked_reply();
    let mut reader = Reader::new(Limits::default());
    let bytes = reply.len();
    let round = move || {
        reader.begin();
        let (payload, used) = read(&mut reader, &reply);
        payload + used as u64
    };
    Work { operations: chunks, bytes, round: Box::new(round) }
}

/// Reads one reply; returns the length of its payload and its total length.
fn read(reader: &mut Reader, reply: &[u8]) -> (u64, usize) {
    let (mut payload, mut at) = (0, 0);
    loop {
        let step = reader.read(&reply[at..], false).expect("a good reply");
        at += step.used;
        match step.event {
            Event::Payload(range) => payload += range.len() as u64,
            Event::End(_) => return (payload, at),
            Event::More => unreachable!("all of it is there"),
            Event::Head | Event::Blank | Event::Interim => {}
        }
    }
}

/// Offers to a set in memory of two hundred thousand, a fifth of them new; the new ones are taken
/// out.
fn seen_offer() -> Work {
    const KNOWN: u64 = 200_000;
    const OFFERS: usize = 4_096;
    let settings = sted::seen::Settings { memory_bytes: 64 << 20, ..Default::default() };
    let mut seen = Seen::new(settings);
    let mut keys = inputs::Keys::new(KNOWN, 20);
    for _ in 0..KNOWN {
        seen.offer(Fingerprint(keys.new_key()), b"");
        seen.fresh();
    }
    let entry = [b'u'; 90];
    let mut drawn = Drawn::new(keys, OFFERS);
    let mut prints = Vec::new();
    let round = move || {
        let mut fresh = 0;
        for few in drawn.next().chunks(AHEAD) {
            prints.clear();
            prints.extend(few.iter().map(|key| Fingerprint(*key)));
            seen.prefetch(&prints);
            for fingerprint in &prints {
                seen.offer_with(*fingerprint, |out| out.extend_from_slice(&entry));
            }
            while seen.fresh().is_some() {
                fresh += 1;
            }
        }
        fresh
    };
    Work { operations: OFFERS, bytes: 0, round: Box::new(round) }
}

/// A capture with both its records, digests, gzip at level 1, and its line in the index; no disk.
fn warc_record() -> Work {
    let settings = sted::store::Settings::default();
    let (start, mut disk) = (UnixTime::from_micros(1_700_000_000_000_000), Nowhere);
    let store = Store::open(settings, Identity::default(), 1, &mut disk, start);
    let mut store = store.expect("an empty folder");
    let captures: Vec<(Url, Vec<u8>, Vec<u8>, usize)> = inputs::captures();
    let bytes = captures.iter().map(|(_, _, response, _)| response.len()).sum();
    let operations = captures.len();
    let mut number = 0;
    let round = move || {
        for (url, request, response, head_bytes) in &captures {
            number += 1;
            let mut response = response.clone();
            // No two captures are the same: a repeat would become a revisit record.
            let end = response.len();
            response[end - 8..].copy_from_slice(&format!("{number:08}").into_bytes());
            let capture = Capture {
                url: url.as_str(),
                ip: Some([127, 1, 0, 1].into()),
                started: start,
                request,
                response: &response,
                head_bytes: *head_bytes,
                payload: &response[*head_bytes..],
                status: 200,
                mime: "text/html; charset=utf-8",
                chunked: false,
                coded: false,
                truncated: None,
                tls: None,
                redirect: None,
                robots: false,
                unmodified: None,
                usage: None,
            };
            store.keep(&capture, &mut disk).expect("a disk that takes all").expect("kept");
        }
        store.totals().warc_bytes
    };
    Work { operations, bytes, round: Box::new(round) }
}

/// Targets matched with the sixty rules of a server.
fn robots_match() -> Work {
    let rules = Rules::parse(inputs::robots_txt().as_bytes(), "sted");
    let pages = inputs::lab_pages();
    let targets: Vec<String> = pages
        .iter()
        .map(|page| page.url.view().target().to_owned())
        .chain(inputs::closed_targets())
        .collect();
    let operations = targets.len();
    let bytes = targets.iter().map(String::len).sum();
    let round = move || targets.iter().map(|target| u64::from(rules.check(target).allowed)).sum();
    Work { operations, bytes, round: Box::new(round) }
}
