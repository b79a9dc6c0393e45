//! Tests the archive with faults: a full disk, a power failure, files of other programs.

use super::*;

/// Law: a full disk, at any write, torn or not, causes no loss, no duplicate and no damage.
#[test]
fn a_full_disk_loses_nothing_that_was_kept() {
    let settings = Settings {
        buffer_bytes: 500,
        gzip_bytes_max: 1_400,
        file_bytes_max: 24_000,
        ..Settings::default()
    };
    let (mut refused, mut unsorted) = (0, 0);
    for seed in 0..60 {
        let mut random = Ids::new(seed);
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let (mut kept, mut lines) = (Vec::new(), 0);
        for number in 0..60 {
            let room = disk.used() + random.word() % 3_000;
            disk.limit(
                (random.word().is_multiple_of(3)).then_some(room),
                random.word().is_multiple_of(2),
            );
            let url = format!("http://example.com/{number}");
            let body: String =
                (0..random.word() % 100).map(|_| random.word().to_string()).collect();
            let response = page(&body);
            match store.keep(&capture(&url, &response, HEAD.len()), &mut disk) {
                Ok(receipt) => kept.push((url.clone(), receipt.expect("wanted").number)),
                Err(error) => {
                    assert!(error.is_full(), "{error}");
                    refused += 1;
                }
            }
            let line = log::Line { url: &url, ..log::Line::default() };
            // A line that could not be written waits.
            let _ = store.note(&line, &mut disk);
            lines += 1;
            match store.sync_job(Instant::ZERO, &mut disk) {
                Ok(None) => {}
                // Sorting a full file needs space, too.
                Ok(Some(job)) => unsorted += usize::from(store.synced(job.run()).is_err()),
                Err(error) => assert!(error.is_full(), "{error}"),
            }
            lines_follow_records(&disk);
        }
        disk.limit(None, false);
        finish(&mut store, &mut disk).expect("room again");
        let (urls, numbers): (Vec<String>, Vec<u64>) = kept.into_iter().unzip();
        assert_eq!(judge(&disk), urls, "seed {seed}");
        assert_eq!(warc_bytes(&disk), store.totals().warc_bytes, "seed {seed}");
        assert!(numbers.into_iter().eq(1..=urls.len() as u64), "numbers without a gap");
        let log = String::from_utf8(disk.bytes("crawl.log")).expect("text");
        assert!(log.lines().all(|line| log::parse(line).is_ok()), "seed {seed}");
        assert_eq!(log.lines().count(), lines);
    }
    assert!(refused > 50 && unsorted > 5, "the faults were met: {refused}, {unsorted}");
}

/// Law: a response that is written in pieces and fails leaves no trace, and never waits in memory
/// as a whole.
#[test]
fn a_large_response_is_kept_whole_or_not_at_all() {
    let (mut refused, mut halves) = (0, 0);
    for seed in 0..60 {
        let mut random = Ids::new(seed);
        let settings = Settings {
            gzip_level: random.word() as u8 % 2,
            gzip_bytes_max: 100_000,
            buffer_bytes: 30_000,
            file_bytes_max: 1_000_000,
            ..Settings::default()
        };
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let mut kept = Vec::new();
        for number in 0..12 {
            let url = format!("http://example.com/{number}");
            let size = if random.word().is_multiple_of(3) { 400_000 } else { 4_000 };
            let noise: Vec<u8> = (0..size).map(|_| random.word() as u8).collect();
            let response = [HEAD, &noise].concat();
            let before = disk.used();
            let room = before + random.word() % 500_000;
            let is_full = random.word().is_multiple_of(2);
            disk.limit(is_full.then_some(room), random.word().is_multiple_of(2));
            let totals = store.totals();
            match store.keep(&capture(&url, &response, HEAD.len()), &mut disk) {
                Ok(_) => kept.push(url),
                Err(error) => {
                    assert!(error.is_full(), "{error}");
                    assert_eq!(store.totals().captures, totals.captures);
                    refused += 1;
                    halves += usize::from(disk.used() > before + 100_000);
                }
            }
            let segment = store.here().segment.as_ref().expect("a file");
            assert!(segment.warc.pending.capacity() < 250_000, "pieces wait, not the whole");
            lines_follow_records(&disk);
        }
        disk.limit(None, false);
        finish(&mut store, &mut disk).expect("room again");
        assert_eq!(judge(&disk), kept, "seed {seed}");
        assert_eq!(warc_bytes(&disk), store.totals().warc_bytes, "seed {seed}");
    }
    assert!(refused > 50 && halves > 30, "the fault was met: {refused}, {halves}");
}

/// Law: after a power failure at any time, everything committed is there and everything there is
/// complete; the next run continues after it and overwrites nothing.
#[test]
fn power_may_go_at_any_time() {
    let settings = Settings {
        buffer_bytes: 700,
        gzip_bytes_max: 900,
        file_bytes_max: 26_000,
        ..Settings::default()
    };
    let mut cuts = 0;
    for seed in 0..120 {
        let mut random = Ids::new(seed);
        let mut disk = Memory::default();
        let (mut committed, mut known) = (Vec::new(), Vec::new());
        for run in 0..4 {
            let now = UnixTime::from_micros(START.as_micros() + run);
            let opened = Store::open(settings.clone(), identity(), seed, &mut disk, now);
            let mut store = opened.expect("an archive");
            cuts += store.cut().files + u64::from(store.cut().warc_bytes > 0);
            let mut kept: Vec<String> = Vec::new();
            for number in 0..random.word() % 60 {
                let url = format!("http://example.com/{run}/{number}");
                let size = random.word() as usize % 1_500;
                keep(&mut store, &mut disk, &url, &"y".repeat(size / 100 * 100));
                let line = log::Line { url: &url, ..log::Line::default() };
                store.note(&line, &mut disk).expect("room");
                kept.push(url);
                if random.word().is_multiple_of(10) {
                    sync(&mut store, &mut disk);
                } else if random.word().is_multiple_of(10) {
                    // A job that a power failure interrupts: run without a result, or not run.
                    let job = store.sync_job(Instant::ZERO, &mut disk).expect("room");
                    if let Some(job) = job.filter(|_| random.word().is_multiple_of(2)) {
                        job.run().result.expect("synced");
                    }
                    break;
                }
            }
            let durable = store.totals().committed as usize;
            committed.extend_from_slice(&kept[..durable]);
            known.extend(kept);
            let mut die = Ids::new(random.word());
            disk.lose_power(|bytes| die.word() % (bytes + 1));
        }
        let mut store = open(&settings, &mut disk);
        finish(&mut store, &mut disk).expect("room");
        let urls = judge(&disk);
        let lost: Vec<&String> = committed.iter().filter(|url| !urls.contains(url)).collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?}");
        assert!(urls.iter().all(|url| known.contains(url)), "seed {seed}");
        let again = open(&settings, &mut disk);
        assert_eq!(again.cut(), Cut::default(), "nothing more to cut");
        let log =
            disk.names().contains(&log_file::LOG.to_owned()).then(|| disk.bytes(log_file::LOG));
        let log = String::from_utf8(log.unwrap_or_default()).expect("text");
        assert!(log.is_empty() || log.ends_with('\n'));
        assert!(log.lines().all(|line| log::parse(line).is_ok()), "seed {seed}");
    }
    assert!(cuts > 20, "the fault was met: {cuts}");
}

/// Law: what a recovery leaves is durable, and what it cuts off or removes stays away. So a later
/// checkpoint may rely on everything before its position, even if nothing was archived since.
#[test]
fn a_second_power_failure_undoes_no_recovery() {
    let settings = Settings {
        buffer_bytes: 700,
        gzip_bytes_max: 900,
        file_bytes_max: 26_000,
        ..Settings::default()
    };
    let (mut cuts, mut whole) = (0, 0);
    for seed in 0..300 {
        let mut random = Ids::new(seed);
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        for number in 0..random.word() % 60 {
            let url = format!("http://example.com/{number}");
            let size = random.word() as usize % 1_500;
            keep(&mut store, &mut disk, &url, &"y".repeat(size / 100 * 100));
            if random.word().is_multiple_of(20) {
                sync(&mut store, &mut disk);
            }
        }
        drop(store);
        if !seed.is_multiple_of(4) {
            disk.lose_power(|bytes| random.word() % (bytes + 1));
        }
        let store = open(&settings, &mut disk);
        let (cut, position, urls) = (store.cut(), store.position(), all(&store, &mut disk));
        drop(store);
        disk.lose_power(|bytes| random.word() % (bytes + 1));
        let (done, found) = repair::repaired(&settings, position, &mut disk);
        assert_eq!((done.lost, done.damaged), (0, 0), "seed {seed}: {found:?}");
        let store = Store::open_since(position, settings.clone(), identity(), 1, &mut disk, START);
        let mut store = store.expect("an archive");
        assert_eq!(all(&store, &mut disk), urls, "seed {seed}");
        finish(&mut store, &mut disk).expect("room");
        assert_eq!(judge(&disk), urls, "seed {seed}");
        cuts += u64::from(cut != Cut::default());
        whole += u64::from(cut == Cut::default() && !urls.is_empty());
    }
    assert!(cuts > 100 && whole > 30, "the faults were met: {cuts}, {whole}");
}

/// Returns the URLs of all captures, in the order of the files and their index lines.
fn all(store: &Store, disk: &mut Memory) -> Vec<String> {
    let mut urls = Vec::new();
    let mut tell =
        |url: &str, kept: Kept, _| urls.push((kept.own.file, kept.own.offset, url.to_owned()));
    store.since(Position::default(), disk, &mut tell).expect("readable");
    urls.sort();
    urls.into_iter().map(|(_, _, url)| url).collect()
}

/// Some file systems store the length of a file before its bytes: records are then read as zeros.
#[test]
fn records_that_did_not_reach_the_disk_are_cut() {
    for (gzip_level, zeros, expected) in [(0, 1, 8), (1, 6, 8), (1, 900, 7), (1, 99_999, 0)] {
        let mut disk = Memory::default();
        let mut store = open(&Settings { gzip_level, ..plain() }, &mut disk);
        let urls: Vec<String> =
            (0..9).map(|number| format!("http://example.com/{number}")).collect();
        urls.iter().for_each(|url| _ = keep(&mut store, &mut disk, url, url));
        drop(store.sync_job(Instant::ZERO, &mut disk).expect("room"));
        let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("a file");
        let bytes = disk.bytes(&name).len();
        let zeros = zeros.min(bytes);
        disk.truncate(&name, (bytes - zeros) as u64).expect("there");
        disk.append(&name, &vec![0; zeros]).expect("room");
        let mut store = open(&plain(), &mut disk);
        finish(&mut store, &mut disk).expect("room");
        assert_eq!(judge(&disk), urls[..expected], "{zeros} zeros at level {gzip_level}");
    }
}

/// Law: a page of zeros in data that was not synced ends the archive before the first capture that
/// it affects, whatever follows; nothing else is lost, and no record is merged from two.
#[test]
fn a_page_of_zeros_cuts_the_archive_there() {
    let (mut random, mut tried) = (Ids::new(9), 0);
    for round in 0..300_u64 {
        let settings = Settings { gzip_level: u8::from(round % 4 == 3), ..plain() };
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let mut captures = Vec::new();
        for number in 0..8 {
            let url = format!("http://example.com/{number}");
            let body = "y".repeat((random.word() % 900) as usize);
            let receipt = keep(&mut store, &mut disk, &url, &body);
            captures.push((url, receipt.offset + receipt.length));
        }
        drop(store.sync_job(Instant::ZERO, &mut disk).expect("room"));
        let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("a file");
        let mut bytes = disk.bytes(&name);
        let from = random.word() as usize % bytes.len();
        let to = (from + 1 + random.word() as usize % 2_000).min(bytes.len());
        if settings.gzip_level > 0 && to - from < 8 {
            // A member may contain zeros itself.
            continue;
        }
        bytes[from..to].fill(0);
        disk.truncate(&name, 0).expect("there");
        disk.append(&name, &bytes).expect("room");
        if round % 2 == 0 {
            let (done, found) = repair::repaired(&settings, Position::default(), &mut disk);
            assert_eq!((done.lost, done.damaged), (0, 0), "{from} to {to}: {found:?}");
        }
        let mut store = open(&settings, &mut disk);
        finish(&mut store, &mut disk).expect("room");
        let before = captures.iter().filter(|(_, end)| *end <= from as u64);
        let urls: Vec<&String> = before.map(|(url, _)| url).collect();
        assert_eq!(judge(&disk).iter().collect::<Vec<_>>(), urls, "round {round}: {from} to {to}");
        tried += 1;
    }
    assert!(tried > 250, "{tried}");
}

/// A file that becomes full while a job is running is left to the next job.
#[test]
fn a_job_settles_what_it_took_along() {
    let settings = Settings { index_bytes_max: 1, ..plain() };
    let mut disk = Memory::default();
    let mut store = open(&settings, &mut disk);
    let mut urls = Vec::new();
    for round in 0..5 {
        let job = store.sync_job(Instant::ZERO, &mut disk).expect("room");
        for number in 0..3 {
            urls.push(format!("http://example.com/{round}/{number}"));
            keep(&mut store, &mut disk, &urls[urls.len() - 1], "x");
        }
        if let Some(job) = job {
            store.synced(job.run()).expect("synced");
        }
    }
    sync(&mut store, &mut disk);
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(judge(&disk), urls);
    assert_eq!(store.totals().files, 15);
}

#[test]
fn files_that_are_there_are_not_written_over() {
    let mut disk = Memory::default();
    let mut store = open(&plain(), &mut disk);
    for name in ["index/sted-20261120093849-00000.cdxj", "warc/notes.txt"] {
        disk.append(name, b"mine").expect("room");
    }
    let response = page("x");
    let kept = store.keep(&capture("http://a/", &response, HEAD.len()), &mut disk);
    assert!(matches!(kept, Err(Error::Exists(name)) if name.starts_with("index/")));
    let mut store = open(&plain(), &mut disk);
    let receipt = keep(&mut store, &mut disk, "http://a/", "x");
    assert_eq!(&*receipt.file, "sted-20261120093849-00001.warc", "numbering goes on");
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(disk.bytes("warc/notes.txt"), b"mine");
}

/// Law: at any time, every line of an index on disk leads to data in a file on disk.
fn lines_follow_records(disk: &Memory) {
    for name in disk.names() {
        let Some(stem) = name.strip_prefix("index/").and_then(|n| n.strip_suffix(".cdxj.open"))
        else {
            continue;
        };
        let index = String::from_utf8(disk.bytes(&name)).expect("text");
        // A torn append may leave a part of a line.
        let whole = &index[..index.rfind('\n').map_or(0, |end| end + 1)];
        let end = whole.lines().map(|line| cdxj::parse(line).expect("a line"));
        let end = end.map(|entry| entry.offset + entry.length).max().unwrap_or(0);
        let names = disk.names();
        let warc = names.iter().find(|name| name.starts_with(&format!("warc/{stem}.")));
        let bytes = warc.map_or(0, |name| disk.bytes(name).len());
        assert!(end <= bytes as u64, "{stem}: a line points to {end} of {bytes}");
    }
}
