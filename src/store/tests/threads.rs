//! Tests captures that jobs write: the same bytes as without jobs, and a full disk.

use super::*;

/// Draws the pages that are captured: short and long ones, some of them alike.
fn pages(random: &mut Ids, count: usize) -> Vec<(String, Vec<u8>)> {
    let draw = |number| {
        let url = format!("http://example.com/{number}");
        let words = [3, 40, 900][(random.word() % 3) as usize];
        let body = if random.word().is_multiple_of(5) {
            "the same".to_owned()
        } else {
            (0..words).map(|_| random.word().to_string()).collect()
        };
        (url, page(&body))
    };
    (0..count).map(draw).collect()
}

fn own((url, response): &(String, Vec<u8>)) -> OwnCapture {
    let mut own = capture(url, response, HEAD.len()).detach();
    own.response.clone_from(response);
    own
}

/// Law: jobs write the bytes that the loop would have written, however captures are spread over
/// them. While one runs, lines of the log wait and nothing is synced.
#[test]
fn jobs_write_the_same_bytes() {
    for seed in 0..40 {
        let mut random = Ids::new(seed);
        let settings = Settings {
            gzip_level: random.word() as u8 % 2,
            gzip_bytes_max: 8_000,
            buffer_bytes: [500, 20_000][(random.word() % 2) as usize],
            file_bytes_max: 60_000,
            ..Settings::default()
        };
        let pages = pages(&mut random, 60);
        let (mut there, mut here) = (Memory::default(), Memory::default());
        let (mut by_jobs, mut alone) = (open(&settings, &mut there), open(&settings, &mut here));
        let mut left = &pages[..];
        while !left.is_empty() {
            let count = 1 + random.word() as usize % 9.min(left.len());
            let (now, later) = left.split_at(count);
            left = later;
            let job = by_jobs.write_job(now.iter().map(own).collect(), &there);
            let (log, totals) = (there.used(), by_jobs.totals());
            let line = log::Line { url: "http://example.com/", ..log::Line::default() };
            (0..40).for_each(|_| by_jobs.note(&line, &mut there).expect("it waits"));
            assert!(by_jobs.is_writing() && by_jobs.next_sync().is_none());
            assert!(by_jobs.sync_job(Instant::ZERO, &mut there).expect("later").is_none());
            assert_eq!((there.used(), by_jobs.totals().captures), (log, totals.captures));
            let (written, flushed) = by_jobs.wrote(job.run(), &mut there);
            flushed.and(written.result).expect("room");
            for (page, receipt) in now.iter().zip(&written.receipts) {
                let capture = capture(&page.0, &page.1, HEAD.len());
                let kept = alone.keep(&capture, &mut here).expect("room").expect("wanted");
                assert_eq!(*receipt, kept, "seed {seed}");
            }
            assert_eq!(written.receipts.len(), now.len());
            assert_eq!(written.captures[0].response, now[0].1, "the bytes come back");
            if random.word().is_multiple_of(3) {
                sync(&mut by_jobs, &mut there);
            }
        }
        finish(&mut by_jobs, &mut there).expect("room");
        finish(&mut alone, &mut here).expect("room");
        let files = |disk: &Memory| -> Vec<(String, Vec<u8>)> {
            let names = disk.names().into_iter().filter(|name| !name.starts_with("crawl."));
            names.map(|name| (name.clone(), disk.bytes(&name))).collect()
        };
        assert!(files(&there) == files(&here), "seed {seed}");
        assert_eq!(by_jobs.totals().warc_bytes, alone.totals().warc_bytes);
        assert!(files(&there).len() > 2, "several files");
    }
}

/// Law: what a job could not write on a full disk can be written by a later one; nothing is lost,
/// and nothing is there twice.
#[test]
fn a_full_disk_loses_nothing() {
    let settings = Settings {
        buffer_bytes: 500,
        gzip_bytes_max: 1_400,
        file_bytes_max: 24_000,
        ..Settings::default()
    };
    let mut refused = 0;
    for seed in 0..60 {
        let mut random = Ids::new(seed);
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let pages = pages(&mut random, 40);
        let mut waiting: std::collections::VecDeque<OwnCapture> = pages.iter().map(own).collect();
        let mut numbers = Vec::new();
        while !waiting.is_empty() {
            let room = disk.used() + random.word() % 30_000;
            let is_limited = random.word().is_multiple_of(2);
            disk.limit(is_limited.then_some(room), random.word().is_multiple_of(2));
            let count = (1 + random.word() as usize % 6).min(waiting.len());
            let job = store.write_job(waiting.drain(..count).collect(), &disk);
            let rotates = random.word().is_multiple_of(8);
            if rotates {
                store.rotate(&mut disk).expect("it waits");
            }
            let (written, flushed) = store.wrote(job.run(), &mut disk);
            for error in [flushed.err(), written.result.err()].into_iter().flatten() {
                assert!(error.is_full(), "{error}");
                refused += 1;
            }
            numbers.extend(written.receipts.iter().map(|receipt| receipt.number));
            let unwritten = written.captures.into_iter().skip(written.receipts.len());
            unwritten.rev().for_each(|capture| waiting.push_front(capture));
            // After an error the loop tries to write what waits.
            let _ = store.try_again(&mut disk);
            if let Ok(Some(job)) = store.sync_job(Instant::ZERO, &mut disk) {
                let _ = store.synced(job.run());
            }
        }
        disk.limit(None, false);
        finish(&mut store, &mut disk).expect("room again");
        let urls: Vec<String> = pages.into_iter().map(|(url, _)| url).collect();
        assert_eq!(judge(&disk), urls, "seed {seed}");
        assert_eq!(warc_bytes(&disk), store.totals().warc_bytes, "seed {seed}");
        assert!(numbers.into_iter().eq(1..=urls.len() as u64), "numbers without a gap");
    }
    assert!(refused > 50, "the fault was met: {refused}");
}
