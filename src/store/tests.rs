//! Tests the archive on a disk in memory: bytes, files, jobs. Failures are tested in `faults`.

mod faults;
mod repair;
mod replay;
mod revisit_index;
mod threads;

use super::warc::{Ids, block_of, unpack};
use super::*;
use crate::ground::disk::memory::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::Duration;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
/// 2026-11-20T09:38:49.5Z
const START: UnixTime = UnixTime::from_micros(1_795_167_529_500_000);

fn identity() -> Identity {
    Identity {
        software: "sted/0.1.0".to_owned(),
        operator: "ops@example.org".to_owned(),
        user_agent: "sted/0.1.0 (+https://example.org/bot)".to_owned(),
        job: "golden".to_owned(),
        robots: "obey".to_owned(),
        ..Identity::default()
    }
}

fn plain() -> Settings {
    Settings { gzip_level: 0, ..Settings::default() }
}

fn open(settings: &Settings, disk: &mut Memory) -> Store {
    Store::open(settings.clone(), identity(), 1, disk, START).expect("an archive")
}

/// Closes the archive and runs its last job, if there is one.
fn finish(store: &mut Store, disk: &mut Memory) -> Result<(), Error> {
    match store.close(Instant::ZERO, disk)? {
        Some(job) => store.synced(job.run()),
        None => Ok(()),
    }
}

/// A response whose body is its payload.
fn capture<'a>(url: &'a str, response: &'a [u8], head_bytes: usize) -> Capture<'a> {
    Capture {
        url,
        ip: Some([192, 0, 2, 1].into()),
        started: START,
        request: REQUEST,
        response,
        head_bytes,
        payload: &response[head_bytes..],
        status: 200,
        mime: "text/html",
        chunked: false,
        coded: false,
        truncated: None,
        tls: None,
        redirect: None,
        robots: false,
        unmodified: None,
        usage: None,
    }
}

fn page(body: &str) -> Vec<u8> {
    [HEAD, body.as_bytes()].concat()
}

/// Stores a page and returns where.
fn keep(store: &mut Store, disk: &mut Memory, url: &str, body: &str) -> Receipt {
    let response = page(body);
    let kept = store.keep(&capture(url, &response, HEAD.len()), disk);
    kept.expect("room").expect("wanted")
}

/// Runs the waiting job, if there is one.
fn sync(store: &mut Store, disk: &mut Memory) {
    if let Some(job) = store.sync_job(Instant::ZERO, disk).expect("flushed") {
        store.synced(job.run()).expect("synced");
    }
}

/// Returns the records of a WARC file with their offsets, read by another inflater, or header by
/// header.
fn records(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let (mut place, mut records) = (0, Vec::new());
    while place < bytes.len() {
        let rest = &bytes[place..];
        let (record, taken) = if rest.starts_with(&[0x1f, 0x8b]) {
            let mut decoder = flate2::bufread::GzDecoder::new(rest);
            let mut record = Vec::new();
            decoder.read_to_end(&mut record).expect("a whole member");
            let taken = rest.len() - decoder.into_inner().len();
            (record, taken)
        } else {
            let head = memchr::memmem::find(rest, b"\r\n\r\n").expect("an end of fields") + 4;
            let length = value(&rest[..head], "Content-Length").parse::<usize>().expect("a number");
            (rest[..head + length + 4].to_vec(), head + length + 4)
        };
        assert_eq!(unpack(&rest[..taken]).as_ref(), Some(&record), "exactly one record");
        records.push((place as u64, record));
        place += taken;
    }
    records
}

fn value(record: &[u8], name: &str) -> String {
    find(record, name).unwrap_or_else(|| panic!("no {name}"))
}

fn find(record: &[u8], name: &str) -> Option<String> {
    let head = memchr::memmem::find(record, b"\r\n\r\n").expect("an end of fields");
    let head = String::from_utf8(record[..head].to_vec()).expect("fields are text");
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find_map(|(field, value)| (field == name).then(|| value.to_owned()))
}

/// Checks the laws of a closed archive; returns the URLs of its captures, in order.
fn judge(disk: &Memory) -> Vec<String> {
    let (mut urls, mut dated, mut stored) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    for name in disk.names() {
        assert!(!name.ends_with(".open") && !name.ends_with(".sorting"), "{name} is left over");
        let Some(stem) = name.strip_prefix("warc/") else {
            continue;
        };
        let records = records(&disk.bytes(&name));
        assert_eq!(value(&records[0].1, "WARC-Type"), "warcinfo");
        assert_eq!(value(&records[0].1, "WARC-Filename"), stem);
        let info = value(&records[0].1, "WARC-Record-ID");
        let index = format!("index/{}.cdxj", stem.split(".warc").next().expect("a stem"));
        if records.len() == 1 {
            assert!(!disk.names().contains(&index), "{index} has nothing to lead to");
            continue;
        }
        let mut lines = places(&disk.bytes(&index), stem);
        let mut spoken = None;
        for (place, record) in &records[1..] {
            assert_eq!(value(record, "WARC-Warcinfo-ID"), info);
            let url = value(record, "WARC-Target-URI");
            match value(record, "WARC-Type").as_str() {
                "request" => continue,
                "metadata" => {
                    spoken = Some(value(record, "WARC-Concurrent-To"));
                    continue;
                }
                "response" => {
                    dated.insert(value(record, "WARC-Record-ID"), url.clone());
                    let digest = find(record, "WARC-Payload-Digest");
                    stored.insert((url.clone(), value(record, "WARC-Date"), digest));
                }
                "revisit" => {
                    let first_url = value(record, "WARC-Refers-To-Target-URI");
                    if let Some(id) = find(record, "WARC-Refers-To") {
                        assert_eq!(dated.get(&id), Some(&first_url));
                    }
                    let date = value(record, "WARC-Refers-To-Date");
                    let digest = find(record, "WARC-Payload-Digest");
                    assert!(stored.contains(&(first_url, date, digest)), "what it refers to");
                }
                other => panic!("no such type: {other}"),
            }
            if let Some(of) = spoken.take() {
                assert_eq!(of, value(record, "WARC-Record-ID"), "what was said is before it");
            }
            assert_eq!(lines.remove(place).as_ref(), Some(&url), "the index leads to it");
            urls.push(url);
        }
        assert!(lines.is_empty(), "lines without a record: {lines:?}");
    }
    urls
}

/// Maps offsets to URLs, for an index that must be sorted.
fn places(index: &[u8], file: &str) -> BTreeMap<u64, String> {
    let text = std::str::from_utf8(index).expect("an index is text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.is_sorted(), "sorted by bytes");
    let entries = lines.iter().map(|line| cdxj::parse(line).expect("a line"));
    entries
        .map(|entry| {
            assert_eq!(entry.file, file);
            (entry.offset, entry.url.into_owned())
        })
        .collect()
}

#[test]
fn a_file_to_the_byte() {
    let (settings, mut disk) = (plain(), Memory::default());
    let mut store = open(&settings, &mut disk);
    let receipt = keep(&mut store, &mut disk, "http://example.com/", "hello");
    finish(&mut store, &mut disk).expect("room");
    let written = disk.bytes("warc/sted-20261120093849-00000.warc");
    let expected = include_str!("tests/golden.warc").replace('\n', "\r\n");
    assert_eq!(String::from_utf8(written.clone()).expect("text"), expected);
    let record = &written[receipt.offset as usize..][..receipt.length as usize];
    assert!(unpack(record).is_some(), "the receipt leads to the record");
    assert_eq!(receipt.number, 1);
    assert_eq!(receipt.digest.to_string(), "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N");
}

/// What was said of the use of a page is in a record before its own, and in its index line.
#[test]
fn what_was_said_is_kept() {
    let (settings, mut disk) = (plain(), Memory::default());
    let mut store = open(&settings, &mut disk);
    let response = page("hello");
    let lines = "robots.content-signal: search=yes, ai-train=no\nmeta.robots: x\n";
    let usage = Usage { lines, allowed: "search", reserved: "ai-train" };
    let said = Capture { usage: Some(usage), ..capture("http://a.test/", &response, HEAD.len()) };
    let receipt = store.keep(&said, &mut disk).expect("room").expect("wanted");
    let silent = Usage { lines: "meta.robots: all\n", allowed: "", reserved: "" };
    let other = Capture { usage: Some(silent), ..capture("http://b.test/", &response, HEAD.len()) };
    store.keep(&other, &mut disk).expect("room").expect("wanted");
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(judge(&disk).len(), 2);
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    let types: Vec<String> = records.iter().map(|(_, it)| value(it, "WARC-Type")).collect();
    let all = "warcinfo metadata request response metadata request revisit";
    assert_eq!(types.join(" "), all);
    assert_eq!(value(&records[1].1, "Content-Type"), "application/warc-fields");
    assert_eq!(records[3].0, receipt.offset);
    let block = |at: usize| String::from_utf8(block_of(&records[at].1).expect("whole").to_vec());
    let expected = "allowed: search\r\nreserved: ai-train\r\n\
                    robots.content-signal: search=yes, ai-train=no\r\nmeta.robots: x\r\n";
    assert_eq!(block(1).as_deref(), Ok(expected));
    assert_eq!(block(4).as_deref(), Ok("meta.robots: all\r\n"));
    let index = String::from_utf8(disk.bytes("index/sted-20261120093849-00000.cdxj"));
    let index = index.expect("text");
    let says = |part: &str| index.lines().filter(|line| line.contains(part)).count();
    assert_eq!(says("\"allowed\": \"search\", \"reserved\": \"ai-train\"}"), 1, "{index}");
    assert_eq!(says("allowed"), 1, "{index}");
}

/// WARC 1.1, annex D.2: one member for each record. Rotation, order of the index, names.
#[test]
fn many_files_hold_all_that_was_kept() {
    for (gzip_level, requests, gzip_bytes_max) in
        [(0, true, 9_999), (1, false, 9_999), (6, true, 0)]
    {
        let settings = Settings {
            gzip_level,
            requests,
            gzip_bytes_max,
            file_bytes_max: 40_000,
            buffer_bytes: 3_000,
            ..Settings::default()
        };
        let mut disk = Memory::default();
        let mut store = open(&settings, &mut disk);
        let mut random = Ids::new(3);
        let mut urls = Vec::new();
        for number in 0..300 {
            let noise = random.word() % 97;
            let body = (0..random.word() % 2_000).map(|_| random.word().to_string());
            let body = format!("{noise}{}", body.take(40).collect::<String>());
            urls.push(format!("http://example.com/{noise}?{number}"));
            keep(&mut store, &mut disk, &urls[number], &body);
            if number % 50 == 0 {
                sync(&mut store, &mut disk);
            }
        }
        finish(&mut store, &mut disk).expect("room");
        assert_eq!(judge(&disk), urls, "all of them, in order of capture");
        let totals = store.totals();
        assert_eq!((totals.captures, totals.committed), (300, 300));
        assert!(totals.files > 3, "{totals:?}");
        let files = disk.names().into_iter().filter(|name| name.starts_with("warc/"));
        let bytes: Vec<u64> = files.map(|name| disk.bytes(&name).len() as u64).collect();
        assert_eq!(bytes.len() as u64, totals.files);
        assert_eq!(bytes.iter().sum::<u64>(), totals.warc_bytes);
        assert!(bytes.iter().all(|bytes| *bytes <= settings.file_bytes_max), "{bytes:?}");
        assert_eq!(totals.records, totals.files + 300 * (1 + u64::from(requests)));
    }
}

#[test]
fn a_full_index_ends_the_file() {
    let settings = Settings { index_bytes_max: 1_000, ..Settings::default() };
    let mut disk = Memory::default();
    let mut store = open(&settings, &mut disk);
    for number in 0..20 {
        keep(&mut store, &mut disk, &format!("http://example.com/{number}"), &number.to_string());
    }
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(judge(&disk).len(), 20);
    assert_eq!(store.totals().files, 4, "five lines of a good 200 bytes a file");
}

/// Data that is compressed already, or very large, also becomes a member.
#[test]
fn what_is_packed_is_only_wrapped() {
    let settings = Settings { gzip_bytes_max: 50_000, requests: false, ..Settings::default() };
    let mut disk = Memory::default();
    let mut store = open(&settings, &mut disk);
    let cases = [
        ("text/html", false, 9_000, false, "compressed"),
        ("text/html", true, 9_000, true, "it has a content coding"),
        ("text/html", true, 7_000, false, "most of it is head"),
        ("image/jpeg", false, 9_000, true, "the format compresses"),
        ("text/html", false, 60_000, true, "it would hold up the loop"),
    ];
    for (number, (mime, coded, bytes, wrapped, why)) in cases.into_iter().enumerate() {
        let response = page(&number.to_string().repeat(bytes));
        let url = format!("http://example.com/{number}");
        let capture = Capture { mime, coded, ..capture(&url, &response, HEAD.len()) };
        let receipt = store.keep(&capture, &mut disk).expect("room").expect("wanted");
        assert_eq!(receipt.length > bytes as u64, wrapped, "{why}");
    }
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(judge(&disk).len(), cases.len());
}

/// RFC 9112, section 7.1; WARC 1.1, section 5.9: the payload is without its transfer coding.
#[test]
fn the_digest_of_a_payload_leaves_its_chunks_out() {
    let head: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let response = [head, b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"].concat();
    let mut disk = Memory::default();
    let mut store = open(&plain(), &mut disk);
    let mut chunked = capture("http://example.com/", &response, head.len());
    (chunked.payload, chunked.chunked) = (b"hello", true);
    store.keep(&chunked, &mut disk).expect("room");
    let again = store.keep(&chunked, &mut disk).expect("room").expect("wanted");
    assert!(again.revisit, "the same payload, framed alike");
    let whole = keep(&mut store, &mut disk, "http://example.com/whole", "hello");
    assert!(!whole.revisit, "a head without chunks before a body with them can't be replayed");
    finish(&mut store, &mut disk).expect("room");
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    let stored = &records[2].1;
    assert!(memchr::memmem::find(stored, &response).is_some(), "verbatim");
    let digest = Algorithm::Sha1Base32;
    assert_eq!(value(stored, "WARC-Block-Digest"), digest.of(&response).to_string());
    let (repeat, hello) = (&records[4].1, digest.of(b"hello"));
    assert_eq!(value(stored, "WARC-Payload-Digest"), hello.to_string());
    assert_eq!(value(repeat, "WARC-Payload-Digest"), hello.to_string());
    let index = String::from_utf8(disk.bytes("index/sted-20261120093849-00000.cdxj")).unwrap();
    let mut indexed = Vec::new();
    hello.push_indexed(&mut indexed);
    let indexed = String::from_utf8(indexed).unwrap();
    assert_eq!(index.matches(&indexed).count(), 3, "all lines have it: {index}");
}

/// WARC 1.1, section 6.7.2.
#[test]
fn repeats_are_stored_as_references() {
    let mut disk = Memory::default();
    let mut store = open(&plain(), &mut disk);
    let first = keep(&mut store, &mut disk, "http://example.com/a", "same!");
    let again = keep(&mut store, &mut disk, "http://example.com/b", "same!");
    assert_eq!((first.revisit, again.revisit), (false, true));
    let empty = keep(&mut store, &mut disk, "http://example.com/c", "");
    let empty_again = keep(&mut store, &mut disk, "http://example.com/d", "");
    assert!(!empty.revisit && !empty_again.revisit, "an empty payload isn't worth a reference");
    let response = page("cut");
    let mut cut = capture("http://example.com/e", &response, HEAD.len());
    cut.truncated = Some(Truncated::Length);
    let kept = |store: &mut Store, disk: &mut Memory| store.keep(&cut, disk).expect("room");
    kept(&mut store, &mut disk);
    let cut_again = kept(&mut store, &mut disk).expect("wanted");
    assert!(!cut_again.revisit, "what was cut stands for nothing");
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(judge(&disk).len(), 6);
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    let (original, revisit) = (&records[2].1, &records[4].1);
    assert_eq!(value(revisit, "WARC-Type"), "revisit");
    let profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
    assert_eq!(value(revisit, "WARC-Profile"), profile);
    assert_eq!(value(revisit, "WARC-Refers-To"), value(original, "WARC-Record-ID"));
    assert_eq!(value(revisit, "WARC-Refers-To-Date"), value(original, "WARC-Date"));
    assert_eq!(value(revisit, "WARC-Truncated"), "length");
    assert_eq!(value(revisit, "Content-Length"), HEAD.len().to_string(), "the head alone");
    assert_eq!(value(&records[10].1, "WARC-Truncated"), "length");
    assert_eq!(store.totals().truncated, 2);
    let off = Settings { revisit_names_max: 0, ..plain() };
    let mut store = open(&off, &mut Memory::default());
    let mut disk = Memory::default();
    keep(&mut store, &mut disk, "http://example.com/a", "same!");
    assert!(!keep(&mut store, &mut disk, "http://example.com/b", "same!").revisit);
}

/// WARC 1.1, section 6.7.3: a reply 304 stands for the response that the client has.
#[test]
fn unmodified_pages_are_stored_as_references() {
    let (mut disk, url) = (Memory::default(), "http://example.com/a");
    let mut store = open(&plain(), &mut disk);
    let first = keep(&mut store, &mut disk, url, "same!");
    let head = b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
    let unmodified = Unmodified { captured: START, digest: first.digest.beginning() };
    let reply = Capture {
        status: 304,
        mime: "",
        unmodified: Some(unmodified),
        started: START.after(Duration::from_secs(60)),
        ..capture(url, head, head.len())
    };
    let again = store.keep(&reply, &mut disk).expect("room").expect("wanted");
    assert!(again.revisit && again.digest == first.digest);
    finish(&mut store, &mut disk).expect("room");
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    let (original, revisit) = (&records[2].1, &records[4].1);
    assert_eq!(value(revisit, "WARC-Type"), "revisit");
    let profile = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
    assert_eq!(value(revisit, "WARC-Profile"), profile);
    assert_eq!(value(revisit, "WARC-Refers-To-Target-URI"), url);
    assert_eq!(value(revisit, "WARC-Refers-To-Date"), value(original, "WARC-Date"));
    assert_eq!(value(revisit, "WARC-Payload-Digest"), value(original, "WARC-Payload-Digest"));
    assert_eq!(value(revisit, "Content-Length"), "0");
    let index = String::from_utf8(disk.bytes("index/sted-20261120093849-00000.cdxj")).unwrap();
    let line = index.lines().nth(1).expect("two lines");
    assert!(line.contains("\"mime\": \"warc/revisit\"") && line.contains("304"), "{line}");
}

#[test]
fn facts_of_the_connection() {
    let mut disk = Memory::default();
    let mut store = open(&plain(), &mut disk);
    let response = b"HTTP/1.0 200 OK\r\n\r\nold".to_vec();
    let mut secret = capture("https://example.com/", &response, 19);
    let tls = Tls { version: "tls/1.3", suite: "TLS13_AES_128_GCM_SHA256", verified: false };
    secret.tls = Some(tls);
    store.keep(&secret, &mut disk).expect("room");
    secret.tls = Some(Tls { verified: true, ..tls });
    store.keep(&secret, &mut disk).expect("room");
    finish(&mut store, &mut disk).expect("room");
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    let text = String::from_utf8_lossy(&records[2].1);
    assert!(text.contains("WARC-Protocol: http/1.0\r\nWARC-Protocol: tls/1.3\r\n"), "{text}");
    assert_eq!(value(&records[2].1, "WARC-Cipher-Suite"), "TLS13_AES_128_GCM_SHA256");
    assert_eq!(value(&records[2].1, "Sted-Certificate"), "unverified");
    assert_eq!(find(&records[4].1, "Sted-Certificate"), None);
}

/// No value of a server or an operator can forge a field, a record or a line.
#[test]
fn hostile_values_stay_in_their_place() {
    let hostile = "x\r\n\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n\r\n\n\0\"}";
    let mut disk = Memory::default();
    let who = Identity { operator: hostile.to_owned(), ..identity() };
    let mut store = Store::open(plain(), who, 1, &mut disk, START).expect("an archive");
    let response = page(hostile);
    let mut capture = capture("http://example.com/", &response, HEAD.len());
    capture.mime = hostile;
    capture.redirect = Some(hostile);
    capture.tls = Some(Tls { version: hostile, suite: hostile, verified: true });
    let url = format!("http://example.com/{hostile} y");
    store.keep(&capture, &mut disk).expect("room");
    capture.url = &url;
    capture.payload = b"";
    store.keep(&capture, &mut disk).expect("room");
    finish(&mut store, &mut disk).expect("room");
    let records = records(&disk.bytes("warc/sted-20261120093849-00000.warc"));
    assert_eq!(records.len(), 5);
    let types: Vec<String> = records.iter().map(|(_, r)| value(r, "WARC-Type")).collect();
    assert_eq!(types, ["warcinfo", "request", "response", "request", "response"]);
    let index = disk.bytes("index/sted-20261120093849-00000.cdxj");
    assert_eq!(places(&index, "sted-20261120093849-00000.warc").len(), 2);
}

#[test]
fn what_the_settings_do_not_want_is_not_kept() {
    let mut disk = Memory::default();
    let response = page("x");
    let mut robots = capture("http://example.com/robots.txt", &response, HEAD.len());
    robots.robots = true;
    let mut store = open(&Settings { robots: false, ..plain() }, &mut disk);
    assert_eq!(store.keep(&robots, &mut disk).expect("room"), None);
    let mut store = open(&Settings { format: Format::None, ..plain() }, &mut disk);
    robots.robots = false;
    assert_eq!(store.keep(&robots, &mut disk).expect("room"), None);
    store.note(&log::Line { url: "http://a/", ..log::Line::default() }, &mut disk).expect("room");
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(disk.names(), ["crawl.log"], "the log is kept without an archive");
    let mut store = open(&Settings { log: false, ..plain() }, &mut disk);
    store.note(&log::Line::default(), &mut disk).expect("room");
    finish(&mut store, &mut disk).expect("room");
    assert_eq!(store.totals().log_lines, 0);
    let wrong = [
        (Settings { gzip_level: 13, ..plain() }, "gzip_level"),
        (Settings { prefix: "a/b".to_owned(), ..plain() }, "prefix"),
        (Settings { prefix: String::new(), ..plain() }, "prefix"),
        (Settings { prefix: ".a".to_owned(), ..plain() }, "prefix"),
    ];
    for (settings, expected) in wrong {
        let error = Store::open(settings, identity(), 1, &mut disk, START).expect_err("refused");
        assert!(matches!(error, Error::Setting { key, .. } if key == expected), "{error}");
    }
}

#[test]
fn jobs_go_out_by_period_one_at_a_time() {
    let settings = Settings { sync_period: Duration::from_secs(10), ..plain() };
    let mut disk = Memory::default();
    let mut store = open(&settings, &mut disk);
    let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
    assert_eq!(store.next_sync(), None, "nothing to sync");
    keep(&mut store, &mut disk, "http://example.com/1", "1");
    assert_eq!(store.next_sync(), Some(at(10)));
    assert!(!store.due(at(9)) && store.due(at(10)));
    let job = store.sync_job(at(10), &mut disk).expect("room").expect("due");
    let stem = "sted-20261120093849-00000";
    let names = [format!("warc/{stem}.warc.open"), format!("index/{stem}.cdxj.open")];
    assert_eq!(job.files, names, "records before index; no log yet");
    keep(&mut store, &mut disk, "http://example.com/2", "2");
    assert_eq!(store.next_sync(), None, "one is under way");
    assert!(store.sync_job(at(30), &mut disk).expect("room").is_none());
    store.synced(job.run()).expect("synced");
    assert_eq!((store.totals().captures, store.totals().committed), (2, 1));
    assert_eq!(store.next_sync(), Some(at(20)));
    disk.fail_syncs(true);
    let job = store.sync_job(at(20), &mut disk).expect("room").expect("due");
    let error = store.synced(job.run()).expect_err("the device is gone");
    assert!(error.to_string().contains("warc/sted"), "it names the file: {error}");
    assert_eq!(store.totals().committed, 1);
    disk.fail_syncs(false);
    let job = store.sync_job(at(30), &mut disk).expect("room").expect("due again");
    store.synced(job.run()).expect("synced");
    assert_eq!(store.totals().committed, 2);
    assert_eq!(store.next_sync(), None);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let bytes = |seed| {
        let mut disk = Memory::default();
        let opened = Store::open(Settings::default(), identity(), seed, &mut disk, START);
        let mut store = opened.expect("an archive");
        for number in 0..10 {
            keep(&mut store, &mut disk, "http://example.com/", &number.to_string());
        }
        finish(&mut store, &mut disk).expect("room");
        disk.bytes("warc/sted-20261120093849-00000.warc.gz")
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2), "ids are drawn from the seed");
}

/// Returns the length of all WARC files, in bytes.
fn warc_bytes(disk: &Memory) -> u64 {
    let names = disk.names().into_iter().filter(|name| name.starts_with("warc/"));
    names.map(|name| disk.bytes(&name).len() as u64).sum()
}
