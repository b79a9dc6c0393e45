//! Tests reading back the captures since a position.

use super::*;
use crate::ground::codec::Take;

/// Bodies, some of them equal; the last ones truncated or too large to be compressed.
fn body(number: usize) -> String {
    match number % 7 {
        3 => "the same again".repeat(20),
        5 => "x".repeat(3_000),
        _ => format!("<p>{number}</p>"),
    }
}

/// Whether a reply says that its page is unmodified.
fn is_unmodified(number: usize) -> bool {
    number % 9 == 8
}

/// Returns the reply, whose record has the date of the captures, to the second.
fn dated(reply: Reply) -> Reply {
    assert_eq!(reply.captured.map(UnixTime::seconds), Some(START.seconds()));
    reply
}

/// Returns what is kept as this one of the captures.
fn kept_of(number: usize, capture: Capture<'_>) -> Capture<'_> {
    if is_unmodified(number) {
        let earlier = Unmodified { captured: START, digest: [number as u8; 20] };
        return Capture { payload: b"", status: 304, unmodified: Some(earlier), ..capture };
    }
    Capture { truncated: (number % 5 == 4).then_some(Truncated::Length), ..capture }
}

/// Law: after a crash every capture since the durable position is reported once, none from before
/// it, and each reads back as the stored reply; a `revisit` with its first payload.
#[test]
fn what_was_kept_since_a_moment_reads_back() {
    let (mut told_in_all, mut repeats) = (0, 0);
    for seed in 0..60 {
        let mut random = Ids::new(seed);
        let settings = Settings {
            gzip_level: u8::from(seed % 3 > 0),
            gzip_bytes_max: 2_000,
            file_bytes_max: 6_000,
            buffer_bytes: 300,
            ..Settings::default()
        };
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let (moment_at, count) = (random.word() as usize % 20, 40);
        let mut moment = store.position();
        for number in 0..count {
            if number == moment_at {
                moment = store.position();
            }
            let url = format!("http://example.com/{number}");
            let response = page(&body(number));
            let kept = kept_of(number, capture(&url, &response, HEAD.len()));
            store.keep(&kept, &mut disk).expect("room").expect("wanted");
            if random.word().is_multiple_of(5) {
                sync(&mut store, &mut disk);
            }
        }
        let durable = usize::try_from(store.totals().committed).expect("few");
        drop(store);
        disk.lose_power(|bytes| random.word() % (bytes + 1));
        let mut store = open(&settings, &mut disk);
        if random.word().is_multiple_of(2) {
            // Recovered files are closed: their lines are sorted.
            sync(&mut store, &mut disk);
        }
        let mut told = Vec::new();
        let mut tell = |url: &str, kept: Kept, _| {
            let number = url.rsplit('/').next().and_then(|number| number.parse().ok());
            told.push((number.expect("a number"), kept));
        };
        store.since(moment, &mut disk, &mut tell).expect("readable");
        told.sort_by_key(|(number, _)| *number);
        let numbers: Vec<usize> = told.iter().map(|(number, _)| *number).collect();
        let until = moment_at + numbers.len();
        assert_eq!(numbers, (moment_at..until).collect::<Vec<_>>(), "seed {seed}");
        assert!(until >= durable, "seed {seed}: {until} of {durable} durable ones");
        told_in_all += told.len();
        for (number, kept) in told {
            let mut bytes = Vec::new();
            kept.encode(&mut bytes);
            assert_eq!(Kept::decode(&mut Take::new(&bytes)), Ok(kept.clone()));
            let reply = dated(reread(kept, &disk).expect("whole"));
            let whole = page(&body(number));
            if is_unmodified(number) {
                let own = b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec();
                assert_eq!((reply.own, reply.first), (own, None), "seed {seed}: {number}");
                continue;
            }
            if let Some(first) = reply.first {
                assert_eq!((reply.own, first), (HEAD.to_vec(), whole), "seed {seed}: {number}");
                repeats += 1;
            } else {
                assert_eq!(reply.own, whole, "seed {seed}: {number}");
                let cut = (number % 5 == 4).then_some(Truncated::Length);
                assert_eq!(reply.truncated, cut, "seed {seed}: {number}");
            }
        }
    }
    assert!(told_in_all > 500 && repeats > 50, "{told_in_all} told, {repeats} repeats");
}

/// Law: captures after a position have greater positions, even if all files were moved away
/// meanwhile, or none has this prefix.
#[test]
fn files_that_are_gone_keep_their_serials() {
    // The captures before the position, files since the last of them, and what is done then.
    for (captures, is_begun, is_taken) in
        [(0, false, true), (3, true, true), (3, false, true), (3, true, false), (3, false, false)]
    {
        let mut disk = Memory::default();
        let mut settings = Settings { file_bytes_max: 1, ..Settings::default() };
        let mut store = open(&settings, &mut disk);
        for number in 0..captures {
            keep(&mut store, &mut disk, &format!("http://example.com/{number}"), "hello");
        }
        if !is_begun {
            finish(&mut store, &mut disk).expect("room");
        }
        let moment = store.position();
        assert_eq!(moment.offset > 0, is_begun);
        finish(&mut store, &mut disk).expect("room");
        drop(store);
        if is_taken {
            disk.names().iter().for_each(|name| disk.remove(name).expect("there"));
        } else {
            settings.prefix = "other".to_owned();
        }
        for process in 0..3 {
            let mut store =
                Store::open_since(moment, settings.clone(), identity(), 1, &mut disk, START)
                    .expect("an archive");
            let mut told = Vec::new();
            let mut tell = |url: &str, _: Kept, _| told.push(url.to_owned());
            store.since(moment, &mut disk, &mut tell).expect("readable");
            let expected = (0..process).map(|number| format!("http://example.com/new/{number}"));
            assert_eq!(told, expected.collect::<Vec<_>>(), "after {captures} captures");
            keep(&mut store, &mut disk, &format!("http://example.com/new/{process}"), "hello");
            finish(&mut store, &mut disk).expect("room");
        }
    }
}

/// A damaged record is not read back, whatever the damage.
#[test]
fn a_damaged_record_is_not_read_back() {
    let mut disk = Memory::default();
    let settings = Settings::default();
    let mut store = open(&settings, &mut disk);
    let receipt = keep(&mut store, &mut disk, "http://example.com/", "hello");
    finish(&mut store, &mut disk).expect("room");
    let mut found = None;
    let moment = Position::default();
    store.since(moment, &mut disk, &mut |_, kept, _| found = Some(kept)).expect("readable");
    let found = found.expect("one capture");
    let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("a file");
    let whole = disk.bytes(&name);
    let (start, end) = (receipt.offset as usize, (receipt.offset + receipt.length) as usize);
    for place in start..end {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        disk.truncate(&name, 0).expect("there");
        disk.append(&name, &bytes).expect("room");
        let reply = reread(found.clone(), &disk).ok();
        // Some bytes of a gzip head have no meaning.
        assert!(reply.is_none_or(|reply| reply.own == page("hello")), "byte {place}");
    }
    disk.truncate(&name, end as u64 - 1).expect("there");
    let why = reread(found.clone(), &disk).expect_err("cut");
    assert!(why.starts_with(&format!("{name} at byte {start}: ")), "{why}");
    disk.remove(&name).expect("there");
    let why = reread(found, &disk).expect_err("taken away");
    assert!(why.starts_with(&format!("{name} at byte {start}: ")), "{why}");
}

/// A file that is closed while it is read back is read under its final name.
#[test]
fn a_file_that_is_closed_meanwhile_is_read_on() {
    for gzip_level in [0, 1] {
        let settings = Settings { gzip_level, ..Settings::default() };
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let body = "<p>hello</p>".repeat(40_000);
        keep(&mut store, &mut disk, "http://example.com/", &body);
        sync(&mut store, &mut disk);
        let mut found = None;
        let moment = Position::default();
        store.since(moment, &mut disk, &mut |_, kept, _| found = Some(kept)).expect("readable");
        let found = found.expect("one capture");
        for steps in 0..4 {
            let mut reading = Reread::new(found.clone(), &disk);
            for _ in 0..steps {
                assert!(matches!(reading.step(&disk).1, Step::More), "step {steps}");
            }
            let closed = warc_of(&disk);
            let open = format!("{closed}.open");
            disk.rename(&open, &closed).expect("there");
            let reply = read_on(reading, &disk).expect("whole");
            assert!(reply.own == page(&body), "after {steps} steps");
            disk.rename(&closed, &open).expect("there");
        }
    }
}

/// Returns the final name of the only WARC file.
fn warc_of(disk: &Memory) -> String {
    let name = disk.names().into_iter().find(|name| name.starts_with("warc/"));
    name.expect("a file").trim_end_matches(".open").to_owned()
}

fn reread(kept: Kept, disk: &Memory) -> Result<Reply, String> {
    read_on(Reread::new(kept, disk), disk)
}

fn read_on(mut reading: Reread, disk: &Memory) -> Result<Reply, String> {
    loop {
        match reading.step(disk).1 {
            Step::More => {}
            Step::Whole(reply) => return Ok(reply),
            Step::Unreadable(why) => return Err(why),
        }
    }
}
