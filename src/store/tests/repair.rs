//! Tests that an index is rebuilt from its WARC files, and that damage is reported.

use super::*;
use crate::store::repair::{Finding, HeadFacts, Repaired, repair};

/// Parses the head of a reply of these tests.
fn read_head(block: &[u8]) -> Option<HeadFacts> {
    let end = memchr::memmem::find(block, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&block[..end]).ok()?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    Some(HeadFacts {
        status: head.get(9..12)?.parse().ok()?,
        mime: field("Content-Type: ").unwrap_or_default().to_owned(),
        redirect: field("Location: ").map(str::to_owned),
        chunked: field("Transfer-Encoding: chunked").is_some(),
    })
}

/// Formats a finding, so that it outlives the check.
fn word(finding: Finding<'_>) -> Option<String> {
    match finding {
        Finding::Reads(..) | Finding::Sound(..) => None,
        finding => Some(format!("{finding:?}")),
    }
}

pub(super) fn repaired(
    settings: &Settings,
    durable: Position,
    disk: &mut Memory,
) -> (Repaired, Vec<String>) {
    let mut found = Vec::new();
    let mut tell = |finding: Finding<'_>| found.extend(word(finding));
    let done = repair(settings, durable, disk, read_head, &mut tell).expect("readable");
    (done, found)
}

/// Fills an archive with replies of all kinds; returns their URLs.
fn fill(settings: &Settings, seed: u64, disk: &mut Memory) -> (Store, Vec<String>) {
    let mut random = Ids::new(seed);
    let mut store = open(settings, disk);
    let mut urls = Vec::new();
    for number in 0..40_u64 {
        let url = format!("http://Example.com:8080/{number}?b=\"c\"&a=%C3%A9");
        let (status, fields) = match random.word() % 5 {
            0 => (301, "Location: /\"away\"\r\nContent-Type: text/html; charset=x\r\n"),
            1 => (404, ""),
            2 => (200, "Content-Type: x/y\u{e9}\"\\\r\n"),
            _ => (200, "Content-Type: text/html\r\n"),
        };
        let body = "the same again ".repeat((random.word() % 8 * 40) as usize);
        let chunked = random.word().is_multiple_of(3) && !body.is_empty();
        let framing = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} OK\r\n{fields}{framing}\r\n");
        let framed = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let response = format!("{head}{}", if chunked { &framed } else { &body });
        let facts = read_head(response.as_bytes()).expect("a head");
        let started = UnixTime::from_micros(START.as_micros() + number * 700_000);
        let lines = "http.x-robots-tag: noai\n";
        let usages = [
            None,
            Some(Usage { lines, allowed: "search", reserved: "ai-train ai-input" }),
            Some(Usage { lines, allowed: "", reserved: "" }),
        ];
        let capture = Capture {
            payload: body.as_bytes(),
            status,
            chunked,
            mime: &facts.mime,
            redirect: facts.redirect.as_deref(),
            truncated: random.word().is_multiple_of(6).then_some(Truncated::Time),
            started,
            usage: usages[random.word() as usize % usages.len()],
            ..capture(&url, response.as_bytes(), head.len())
        };
        let kept = store.keep(&capture, disk).expect("room").expect("wanted");
        urls.push(url.clone());
        if number % 5 > 0 || kept.revisit || settings.digest != Algorithm::Sha1Base32 {
            continue;
        }
        // A reply 304, of whose head nothing is archived.
        let earlier = Unmodified { captured: started, digest: kept.digest.beginning() };
        let unmodified = Capture {
            payload: b"",
            status: 304,
            mime: "",
            chunked: false,
            redirect: None,
            truncated: None,
            unmodified: Some(earlier),
            ..capture
        };
        store.keep(&unmodified, disk).expect("room").expect("wanted");
        urls.push(url);
    }
    (store, urls)
}

/// A line keeps what was said of the use of its page, if the record that says it is damaged.
#[test]
fn what_was_said_outlives_its_record() {
    for seed in 1..6 {
        let (settings, mut disk) = (settings_of(seed), Memory::default());
        let (mut store, _) = fill(&settings, seed, &mut disk);
        finish(&mut store, &mut disk).expect("room");
        let (index, lines) = indexes(&disk).remove(0);
        let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("one");
        let mut bytes = disk.bytes(&name);
        let all = records(&bytes);
        let hit = all.iter().position(|(_, record)| value(record, "WARC-Type") == "metadata");
        let end = all[hit.expect("one") + 1].0 as usize;
        bytes[end - 8..end - 5].fill(0x7e);
        overwrite(&mut disk, &name, &bytes);
        let (done, found) = repaired(&settings, Position::END, &mut disk);
        assert_eq!((done.damaged, done.lost, done.lines_added), (1, 0, 0), "{seed}: {found:?}");
        assert!(disk.bytes(&index) == lines, "{seed}: {found:?}");
    }
}

fn settings_of(seed: u64) -> Settings {
    Settings {
        gzip_level: u8::from(!seed.is_multiple_of(3)),
        gzip_bytes_max: 1_500,
        file_bytes_max: 60_000,
        digest: [Algorithm::Sha1Base32, Algorithm::Sha256Hex][seed as usize % 2],
        buffer_bytes: 300,
        ..Settings::default()
    }
}

/// Returns all index files, by name.
fn indexes(disk: &Memory) -> Vec<(String, Vec<u8>)> {
    let names = disk.names().into_iter().filter(|name| name.starts_with("index/"));
    names.map(|name| (name.clone(), disk.bytes(&name))).collect()
}

fn overwrite(disk: &mut Memory, name: &str, bytes: &[u8]) {
    disk.truncate(name, 0).expect("there");
    disk.append(name, bytes).expect("room");
}

/// Law: whatever happened to an index, the rebuilt one equals the one that was written.
#[test]
fn every_line_is_rebuilt_to_the_byte() {
    for seed in 0..12 {
        let settings = settings_of(seed);
        let mut random = Ids::new(seed + 1_000);
        let mut disk = Memory::default();
        let (mut store, _) = fill(&settings, seed, &mut disk);
        finish(&mut store, &mut disk).expect("room");
        let whole = indexes(&disk);
        assert!(whole.len() > 1, "several files");
        assert_eq!(repaired(&settings, Position::default(), &mut disk).1, Vec::<String>::new());
        for (name, bytes) in &whole {
            let place = random.word() as usize % bytes.len();
            match (random.word() + seed) % 5 {
                0 => disk.remove(name).expect("there"),
                1 => overwrite(&mut disk, name, &bytes[..place]),
                2 => overwrite(&mut disk, name, b""),
                3 => overwrite(&mut disk, name, &[&bytes[..place], &bytes[place + 1..]].concat()),
                _ => {
                    let mut other = bytes.clone();
                    other[place] = 0;
                    overwrite(&mut disk, name, &other);
                }
            }
        }
        let (done, found) = repaired(&settings, Position::default(), &mut disk);
        assert!(done.lines_added > 0 && done.lost == 0, "seed {seed}: {done:?} {found:?}");
        assert!(indexes(&disk) == whole, "seed {seed}: {found:?}");
        assert_eq!(repaired(&settings, Position::default(), &mut disk).1, Vec::<String>::new());
        judge(&disk);
    }
}

/// Law: files that were growing when the crawl stopped lose nothing, whatever happened to their
/// index.
#[test]
fn a_growing_index_is_rebuilt_too() {
    for seed in 0..12 {
        let settings = settings_of(seed);
        let mut random = Ids::new(seed + 1_000);
        let mut disk = Memory::default();
        let (mut store, urls) = fill(&settings, seed, &mut disk);
        store.release(0);
        sync(&mut store, &mut disk);
        let durable = store.position();
        drop(store);
        for (name, bytes) in indexes(&disk) {
            assert!(name.ends_with(".open"));
            let place = random.word() as usize % bytes.len();
            match (random.word() + seed) % 3 {
                0 => disk.remove(&name).expect("there"),
                1 => overwrite(&mut disk, &name, &bytes[..place]),
                _ => {
                    let mut other = bytes.clone();
                    other[place] = 0;
                    overwrite(&mut disk, &name, &other);
                }
            }
        }
        // Without a check the index is trusted up to its first invalid line.
        let checks = seed.is_multiple_of(2);
        let verify_bytes_max = if checks { u64::MAX } else { 0 };
        let settings = Settings { verify_bytes_max, ..settings };
        let (_, found) = repaired(&settings, durable, &mut disk);
        let is_fine = |one: &String| one.starts_with("Indexed");
        assert!(!found.is_empty() && found.iter().all(is_fine), "seed {seed}: {found:?}");
        let mut store =
            Store::open_since(durable, settings.clone(), identity(), 1, &mut disk, START)
                .expect("an archive");
        assert_eq!(store.cut(), Cut::default(), "seed {seed}");
        finish(&mut store, &mut disk).expect("room");
        assert_eq!(judge(&disk), urls, "seed {seed}");
    }
}

/// Damage is reported with its file, offset and URL, and everything else stays in use.
#[test]
fn damage_is_named() {
    for seed in 0..12_u64 {
        let settings = Settings { file_bytes_max: 1 << 20, ..settings_of(seed) };
        let mut random = Ids::new(seed + 1_000);
        let mut disk = Memory::default();
        let (mut store, urls) = fill(&settings, seed, &mut disk);
        finish(&mut store, &mut disk).expect("room");
        let (index, lines) = indexes(&disk).remove(0);
        let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("one");
        let bytes = disk.bytes(&name);
        let all = records(&bytes);
        let replies: Vec<usize> = (0..all.len())
            .filter(|at| {
                !["request", "warcinfo", "metadata"].contains(&&*value(&all[*at].1, "WARC-Type"))
            })
            .collect();
        let hit = replies[random.word() as usize % replies.len()];
        let (start, record) = &all[hit];
        let end = all.get(hit + 1).map_or(bytes.len() as u64, |(at, _)| *at);
        let url = value(record, "WARC-Target-URI");
        let mut damaged = bytes.clone();
        // In the block of a plain record, in the checksums of a member.
        damaged[end as usize - 8..end as usize - 5].fill(0x7e);
        overwrite(&mut disk, &name, &damaged);
        let (done, found) = repaired(&settings, Position::END, &mut disk);
        assert_eq!((done.damaged, done.lost), (1, 1), "seed {seed}: {found:?}");
        let expected = [
            format!("{:?}", Finding::Damaged(&name, *start, end)),
            format!("{:?}", Finding::Lost(&name, *start, &url)),
        ];
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!(disk.bytes(&name), damaged, "the file is left as it is");
        let left = String::from_utf8(disk.bytes(&index)).expect("text");
        assert_eq!(left.lines().count(), urls.len() - 1);
        let whole = String::from_utf8(lines).expect("text");
        assert!(left.lines().all(|line| whole.contains(line)), "the others are as they were");
    }
}

/// A truncated file, a missing one, and one that was not checked.
#[test]
fn what_is_not_there_is_named() {
    let settings = settings_of(1);
    let mut disk = Memory::default();
    let (mut store, _) = fill(&settings, 1, &mut disk);
    finish(&mut store, &mut disk).expect("room");
    let names: Vec<String> =
        disk.names().into_iter().filter(|name| name.starts_with("warc/")).collect();
    let last = &names[names.len() - 1];
    let bytes = disk.bytes(last);
    disk.truncate(last, bytes.len() as u64 - 1).expect("there");
    disk.remove(&names[0]).expect("there");
    let (done, found) = repaired(&settings, Position::END, &mut disk);
    assert_eq!((done.damaged, done.lost, done.gone), (1, 1, 1), "{found:?}");
    let index = names[0].replace("warc/", "index/").replace(".warc.gz", ".cdxj");
    assert_eq!(found[2], format!("{:?}", Finding::Gone(&index)));
    let none = Settings { verify_bytes_max: 0, ..settings };
    let (done, _) = repaired(&none, Position::default(), &mut disk);
    assert_eq!((done.damaged, done.lost, done.gone), (0, 0, 1));
    assert!(done.unchecked_bytes > 1_000, "{done:?}");
}

/// Law: an unfinished index doesn't stay if its WARC file was moved away.
#[test]
fn a_half_written_index_goes() {
    let (settings, mut disk) = (plain(), Memory::default());
    let stem = format!("index/{}-20261120093849-00007.cdxj", settings.prefix);
    let (ours, others) = (format!("{stem}.sorting"), "index/others.cdxj.sorting");
    for name in [&ours, others] {
        disk.append(name, b"half a line").expect("room");
    }
    let _store = open(&settings, &mut disk);
    assert!(!disk.names().contains(&ours), "nothing is left of it");
    assert!(disk.names().iter().any(|name| name == others), "it isn't ours");
}

/// Removes the files that `which` selects from a growing archive that is durable up to its end, and
/// checks it.
fn without(which: impl Fn(&str, u32) -> bool) -> (Repaired, Vec<String>, Vec<String>) {
    let settings = settings_of(1);
    let mut disk = Memory::default();
    let (mut store, _) = fill(&settings, 1, &mut disk);
    store.release(0);
    sync(&mut store, &mut disk);
    let durable = store.position();
    drop(store);
    let captures = |name: String| disk.bytes(&name).iter().filter(|byte| **byte == b'\n').count();
    let counts = disk.names().into_iter().filter(|name| name.starts_with("index/")).map(captures);
    let counts: Vec<String> = counts.map(|captures| format!("{captures})")).collect();
    assert!(counts.len() > 1, "several files");
    for name in disk.names() {
        let bare = name.split_once('/').map_or(&*name, |(_, bare)| bare);
        let serial = segment::name_of(bare, &settings.prefix).map(|it| it.serial);
        if serial.is_some_and(|serial| which(&name, serial)) {
            disk.remove(&name).expect("there");
        }
    }
    let (done, found) = repaired(&settings, durable, &mut disk);
    (done, found, counts)
}

/// A growing file can't have been moved away: its captures are lost.
#[test]
fn a_growing_file_that_is_gone_is_lost() {
    let (done, found, counts) = without(|name, _| name.starts_with("warc/"));
    assert_eq!((done.lost, done.gone), (40, 0), "{found:?}");
    let is_missing = |(one, count): (&String, &String)| {
        one.starts_with("Missing(\"warc/")
            && one.contains(".warc.gz.open\"")
            && one.ends_with(count)
    };
    assert_eq!(found.len(), counts.len());
    assert!(found.iter().zip(&counts).all(is_missing), "{found:?} {counts:?}");
    let (done, found, _) = without(|_, _| true);
    assert_eq!((done.lost, found.len()), (1, 1), "nobody knows how many: {found:?}");
    assert!(found[0].starts_with("Missing(\"warc/sted-*-0000"), "{found:?}");
    let (done, found, _) = without(|name, serial| serial == 0 && name.starts_with("index/"));
    assert_eq!(done.lost, 0, "only the index is: {found:?}");
}

/// Captures that were not durable at the checkpoint are fetched again, and closed files may be
/// moved away.
#[test]
fn only_what_counts_as_fetched_is_lost() {
    let settings = settings_of(1);
    let mut disk = Memory::default();
    let (mut store, _) = fill(&settings, 1, &mut disk);
    store.release(0);
    let durable = store.position();
    sync(&mut store, &mut disk);
    drop(store);
    let warcs: Vec<String> =
        disk.names().into_iter().filter(|name| name.starts_with("warc/")).collect();
    warcs.iter().for_each(|name| disk.remove(name).expect("there"));
    let (done, found) = repaired(&settings, Position::default(), &mut disk.clone());
    assert_eq!((done, found.len()), (Repaired::default(), 0), "nothing of it counts: {found:?}");
    let early = Position { serial: 0, offset: 1_000 };
    let (done, found) = repaired(&settings, early, &mut disk.clone());
    assert!((1..=3).contains(&done.lost), "what lies before it: {found:?}");
    // After a clean stop all files are closed.
    for name in disk.names() {
        disk.remove(&name).expect("there");
    }
    let (done, found) = repaired(&settings, durable.behind_file(), &mut disk);
    assert_eq!((done, found.len()), (Repaired::default(), 0), "{found:?}");
}

/// Records that only moved, because the file was recompressed, are not lost.
#[test]
fn a_file_that_was_compressed_anew_is_whole() {
    let settings = Settings { gzip_level: 1, file_bytes_max: 1 << 20, ..settings_of(1) };
    let mut disk = Memory::default();
    let (mut store, urls) = fill(&settings, 1, &mut disk);
    finish(&mut store, &mut disk).expect("room");
    let name = disk.names().into_iter().find(|name| name.starts_with("warc/")).expect("one");
    let mut packer = libdeflater::Compressor::new(libdeflater::CompressionLvl::best());
    let mut anew = Vec::new();
    for (_, record) in records(&disk.bytes(&name)) {
        let mut member = vec![0; packer.gzip_compress_bound(record.len())];
        let bytes = packer.gzip_compress(&record, &mut member).expect("it fits");
        anew.extend_from_slice(&member[..bytes]);
    }
    assert_ne!(anew, disk.bytes(&name));
    overwrite(&mut disk, &name, &anew);
    let (done, found) = repaired(&settings, Position::default(), &mut disk);
    assert_eq!((done.lost, done.damaged), (0, 0), "{found:?}");
    assert!(found.len() == 1 && found[0].starts_with("Indexed("), "{found:?}");
    let (_, lines) = indexes(&disk).remove(0);
    assert_eq!(lines.split(|byte| *byte == b'\n').count(), urls.len() + 1);
}
