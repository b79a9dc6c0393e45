//! Tests lines that are written and read back, with any content.

use super::super::digest::Algorithm;
use super::super::warc::Ids;
use super::*;

fn clock() -> Clock {
    Clock { lines: 8, ..Clock::new(UnixTime::from_micros(1_795_167_520_000_000)) }
}

fn text(line: &Line<'_>) -> String {
    let mut out = Vec::new();
    line.push(&mut out, &mut clock());
    String::from_utf8(out).expect("lines are UTF-8")
}

#[test]
fn a_line_to_the_byte() {
    let line = Line {
        time: UnixTime::from_micros(1_795_167_529_123_456),
        status: 200,
        size: Some(1_234),
        url: "http://example.com/a",
        path: "LL",
        via: Some("http://example.com/"),
        mime: Some("text/html; charset=utf-8"),
        begun: Some((UnixTime::from_micros(1_795_167_529_078_000), Duration::from_millis(45))),
        digest: Some(Algorithm::Sha1Base32.of(b"")),
        source: None,
        annotations: &["3t", "lenTrunc"],
        stored: Some(("sted-20261120093849-00000.warc.gz", 512)),
        server: "http://example.com",
        visit: 7,
        conn: Some(3),
        address: Some("192.0.2.7".parse().expect("an address")),
        request: 2,
        sent: Some(UnixTime::from_micros(1_795_167_529_078_123)),
        ended: Some(UnixTime::from_micros(1_795_167_529_123_123)),
        began: Some(UnixTime::from_micros(1_795_167_529_077_000)),
        owed: Some((Duration::from_millis(450), "delay-factor")),
        retry_after: Some(Duration::from_secs(120)),
        robots: Some(17),
        rules: Some(("User-agent: *\nDisallow: /\n", true)),
        settings: Some(&Politeness { format: 2, product: "sted".into(), ..Politeness::default() }),
        reason: None,
        hops: 1,
        chain: Some("http://example.com/0"),
        usage: Some(Usage {
            lines: "meta.robots: \"noai\"\nhttp.x: \u{e9}\n",
            allowed: "search",
            reserved: "ai-train ai-input",
        }),
        canonical: Some("http://example.com/c"),
        sitemaps: &["https://example.com/map.xml"],
        quality: Some(Quality::from_millionths(640_000)),
        score: Some(Quality::from_millionths(2_000_000)),
        detail: Some("bad version"),
        evidence: Some("HTTP/7 \\x00"),
    };
    assert_eq!(
        text(&line),
        "2026-11-20T09:38:49.123Z   200       1234 http://example.com/a LL http://example.com/ \
         text/html #000 20261120093849078+45 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 3t,lenTrunc \
         {\"run\":1795167520000000,\"line\":9,\"settings\":{\"format\":2,\"from\":0,\
         \"product\":\"sted\",\"obeysRobots\":false,\"burst\":0,\"delay\":0,\
         \"delayFactorMilli\":0,\"delayMax\":0,\"addressVisitsMax\":0,\"addressDelay\":0,\
         \"domainVisitsMax\":0,\"domainDelay\":0},\
         \"warcFilename\":\"sted-20261120093849-00000.warc.gz\",\"warcFileOffset\":512,\
         \"server\":\"http://example.com\",\"visit\":7,\"conn\":3,\"address\":\"192.0.2.7\",\
         \"request\":2,\"sent\":1795167529078123,\"ended\":1795167529123123,\
         \"began\":1795167529077000,\"owed\":450000,\
         \"rule\":\"delay-factor\",\"retryAfter\":120000000,\"robots\":17,\
         \"rules\":\"User-agent: *\\nDisallow: /\\n\",\"cut\":true,\
         \"hops\":1,\"chain\":\"http://example.com/0\",\
         \"consent\":[\"meta.robots: \\\"noai\\\"\",\"http.x: \u{e9}\"],\
         \"allowed\":\"search\",\"reserved\":\"ai-train ai-input\",\
         \"canonical\":\"http://example.com/c\",\
         \"sitemaps\":[\"https://example.com/map.xml\"],\"quality\":0.64,\"score\":2.0,\
         \"detail\":\"bad version\",\"evidence\":\"HTTP/7 \\\\x00\"}\n"
    );
    let failed = Line { url: "http://example.com/b", status: -2, ..Line::default() };
    assert_eq!(
        text(&failed),
        "1970-01-01T00:00:00.000Z    -2          - http://example.com/b - - - #000 - - - - \
         {\"run\":1795167520000000,\"line\":9,\"server\":\"\",\"visit\":0,\"hops\":0}\n"
    );
}

/// Law: what is written is read back, whatever the network sent.
#[test]
fn lines_are_read_back() {
    let mut random = Ids::new(11);
    let hostile =
        ["", "-", "text/html", "a b", "x\r\n200", "\"}\n{", "é\u{2028}", "\u{0}", ",", "a;b"];
    for _ in 0..5_000 {
        let mut pick = || hostile[random.word() as usize % hostile.len()];
        let (path, via, mime, note, server, reason) =
            (pick(), pick(), pick(), pick(), pick(), pick());
        let annotations = [note, "x"];
        let usage = format!("a: {}\nb: x\n", note.replace('\n', " "));
        let mut number = || random.word();
        let ms = |us: u64| us / 1_000 * 1_000;
        let time = UnixTime::from_micros(ms(number() % 4_000_000_000_000_000));
        let line = Line {
            time,
            status: number() as i32 % 1_000,
            size: (number() % 2 == 0).then(&mut number),
            url: "http://example.com/?q=%20",
            path,
            via: Some(via),
            mime: Some(mime),
            begun: (number() % 2 == 0).then(|| (time, Duration::from_millis(number() % 99_999))),
            digest: (number() % 2 == 0).then(|| Algorithm::Sha256Hex.of(note.as_bytes())),
            source: None,
            annotations: &annotations,
            stored: (number() % 2 == 0).then(|| ("f.warc", number())),
            server,
            visit: number(),
            conn: Some(number()),
            address: None,
            request: 1,
            sent: Some(time),
            ended: (number() % 2 == 0).then_some(time),
            began: (number() % 2 == 0).then_some(time),
            owed: (number() % 2 == 0).then(|| (Duration::from_micros(number()), path)),
            retry_after: None,
            robots: (number() % 2 == 0).then(|| number() as u32),
            rules: Some((reason, number() % 2 == 0)),
            settings: None,
            reason: Some(reason),
            hops: 10,
            chain: (number() % 2 == 0).then_some(note),
            usage: Some(Usage { lines: &usage, allowed: note, reserved: server }),
            canonical: (number() % 2 == 0).then_some(via),
            sitemaps: &[note, server],
            quality: (number() % 2 == 0).then(|| Quality::from_millionths(number())),
            score: (number() % 2 == 0).then(|| Quality::from_millionths(number() % 1_000_000_000)),
            detail: Some(reason),
            evidence: Some(note),
        };
        let text = text(&line);
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        let entry = parse(text.trim_end_matches('\n')).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((entry.time, entry.status, entry.size), (time, line.status, line.size));
        assert_eq!((entry.url, entry.begun), (line.url, line.begun));
        assert_eq!(entry.extra.sitemaps, line.sitemaps);
        assert_eq!(entry.extra.detail.as_deref(), line.detail);
        assert_eq!(entry.extra.evidence.as_deref(), line.evidence);
        assert_eq!(entry.digest, line.digest.map(|digest| digest.to_string()).as_deref());
        let words = [(entry.path, path), (entry.via, via), (entry.mime, media_type(mime))];
        for (read, written) in words {
            let mut word = Vec::new();
            push_word(&mut word, written, WORD_BYTES_MAX);
            assert_eq!(read.unwrap_or("-").as_bytes(), word);
        }
        assert_eq!(entry.annotations.map(|notes| notes.matches(',').count()), Some(1));
        assert_eq!(entry.extra, line.extra(&Clock { lines: 9, ..clock() }));
    }
}

/// Law: lines of format 1 are still read.
#[test]
fn lines_of_the_first_format_are_read() {
    let lines = [
        "2026-11-20T09:38:49.123Z   200       1234 http://example.com/a LL http://example.com/ \
         text/html #000 20261120093849078+45 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 3t,lenTrunc \
         {\"warcFilename\":\"sted-20261120093849-00000.warc.gz\",\"warcFileOffset\":512,\
         \"server\":\"http://example.com\",\"visit\":7,\"conn\":3,\"sent\":1795167529078123,\
         \"hops\":1,\"chain\":\"http://example.com/0\",\
         \"sitemaps\":[\"https://example.com/map.xml\"]}",
        "2026-11-20T09:38:50.000Z -9998          - http://example.com/b L - - #000 - - - - \
         {\"server\":\"http://example.com\",\"visit\":0,\"reason\":\"robots-denied\",\"hops\":0}",
    ];
    for line in lines {
        let entry = parse(line).unwrap_or_else(|bad| panic!("{bad}: {line}"));
        assert_eq!((entry.extra.run, entry.extra.line, entry.extra.ended), (None, None, None));
        assert_eq!(entry.extra.server, "http://example.com");
    }
}

/// Lines truncated or changed at random: an error that names a field, never a panic.
#[test]
fn damaged_lines_are_errors() {
    let whole = text(&Line { url: "http://a/", server: "http://a", ..Line::default() });
    let whole = whole.trim_end();
    assert!(parse(whole).is_ok());
    for cut in 0..whole.len() {
        assert!(parse(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let mut random = Ids::new(13);
    for _ in 0..20_000 {
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..1 + random.word() % 4 {
            let place = random.word() as usize % bytes.len();
            bytes[place] = random.word() as u8;
        }
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }
    let cases = [
        ("2026-11-20T09:38:49.123Z", 2, "the line ends"),
        ("2026-13-20T09:38:49.123Z x", 1, "no thirteenth month"),
        ("2026-11-20T09:38:49.+23Z x", 1, "a sign is no digit"),
        ("2026-11-20T09:38:49.123Z two ", 2, "a status is a number"),
    ];
    for (line, field, why) in cases {
        let line = format!("{line} ");
        assert_eq!(parse(&line), Err(Malformed { field }), "{why}");
    }
}

/// Law: dates are parsed as lines contain them.
#[test]
fn dates_agree_with_the_calendar() {
    let widths = [4, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 1];
    let mut random = Ids::new(17);
    let mut stamps = Stamps::default();
    for _ in 0..20_000 {
        let time = UnixTime::from_micros(random.word() % 8_000_000_000_000 * 1_000);
        let mut date = Vec::new();
        push_date(&mut date, time, &mut stamps);
        let date = std::str::from_utf8(&date).expect("a date is ASCII");
        assert_eq!(unix_of(date, &widths), Some(time));
    }
}
