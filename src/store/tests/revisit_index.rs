//! Tests duplicates of payloads that earlier runs stored.

use super::super::digest::Algorithm;
use super::*;

/// Law: over any number of runs and power failures a payload is stored in full once, and again only
/// if its record was lost; every record that a `revisit` refers to exists.
#[test]
fn a_repeat_of_an_earlier_run_is_a_repeat() {
    let kinds = [Algorithm::Sha1Base32, Algorithm::Sha256Base32, Algorithm::Sha256Hex];
    let mut mentioned_across = 0;
    for seed in 0..60 {
        let mut random = Ids::new(seed);
        let settings = Settings {
            gzip_level: u8::from(seed % 2 > 0),
            file_bytes_max: 4_000,
            buffer_bytes: 300,
            digest: kinds[seed as usize % kinds.len()],
            ..Settings::default()
        };
        let mut disk = Memory::default();
        let mut time = START;
        for run in 0..4 {
            let mut store = open(&settings, &mut disk);
            let mut stored = in_full(&disk);
            for number in 0..random.word() % 30 {
                time = UnixTime::from_micros(time.as_micros() + random.word() % 3_000_000);
                let url = format!("http://example.com/{run}/{number}");
                let response = page(&"again".repeat(random.word() as usize % 12));
                let capture = Capture {
                    truncated: random.word().is_multiple_of(5).then_some(Truncated::Time),
                    started: time,
                    ..capture(&url, &response, HEAD.len())
                };
                let digest = settings.digest.of(capture.payload).to_string();
                let kept = store.keep(&capture, &mut disk).expect("room").expect("wanted");
                let may_repeat = capture.truncated.is_none() && response.len() > HEAD.len();
                let expected = may_repeat && stored.contains_key(&digest);
                assert_eq!(kept.revisit, expected, "seed {seed}, run {run}: {url}");
                if may_repeat {
                    let of_run = *stored.entry(digest).or_insert(Some(run));
                    mentioned_across += usize::from(kept.revisit && of_run.is_none());
                }
                if random.word().is_multiple_of(5) {
                    sync(&mut store, &mut disk);
                }
            }
            if random.word().is_multiple_of(2) {
                finish(&mut store, &mut disk).expect("room");
            } else {
                drop(store);
                disk.lose_power(|bytes| random.word() % (bytes + 1));
            }
        }
        finish(&mut open(&settings, &mut disk), &mut disk).expect("room");
        judge(&disk);
    }
    assert!(mentioned_across > 300, "{mentioned_across} of what an earlier run stored");
}

/// Returns the payloads that the archive contains in full, by digest, without record ids.
fn in_full(disk: &Memory) -> BTreeMap<String, Option<u64>> {
    let mut stored = BTreeMap::new();
    for name in disk.names().iter().filter(|name| name.starts_with("warc/")) {
        for (_, record) in records(&disk.bytes(name)) {
            let is_whole = find(&record, "WARC-Truncated").is_none();
            if value(&record, "WARC-Type") == "response" && is_whole {
                stored.insert(value(&record, "WARC-Payload-Digest"), None);
            }
        }
    }
    stored
}

/// Of more payloads than fit, the latest are remembered, whichever files contain them; digests of
/// other algorithms are ignored.
#[test]
fn the_latest_are_remembered() {
    let settings = Settings { revisit_names_max: 10, file_bytes_max: 9_000, ..plain() };
    let mut disk = Memory::default();
    let mut store = open(&settings, &mut disk);
    let body = |number: u32| format!("this is page {number}");
    for number in 0..100 {
        keep(&mut store, &mut disk, &format!("http://example.com/{number}"), &body(number));
    }
    finish(&mut store, &mut disk).expect("room");
    let files = disk.names().iter().filter(|name| name.starts_with("index/")).count();
    assert!(files > 5, "{files} files");
    let again = |settings: &Settings, number: u32| {
        let mut store = open(settings, &mut disk.clone());
        keep(&mut store, &mut disk.clone(), "http://example.com/again", &body(number)).revisit
    };
    assert!(again(&settings, 99), "the last one");
    assert!(!again(&settings, 0), "the first one is long gone");
    let more = Settings { revisit_names_max: 100, ..settings.clone() };
    assert!(again(&more, 0), "all of them");
    let other = Settings { digest: Algorithm::Sha256Hex, ..more.clone() };
    assert!(!again(&other, 99), "its digest is of another kind");
    let none = Settings { revisit_names_max: 0, ..more };
    assert!(!again(&none, 99), "nothing is to be remembered");
}
