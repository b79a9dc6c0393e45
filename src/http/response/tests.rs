//! Tests replies split anywhere, every way to break one, and heads at the edge of the grammar.

use super::*;
use crate::ground::random::Random;
use crate::http::coding::{Coding, Codings};

mod odd;

/// One reply: its head, its payload and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    status: u16,
    framing: Framing,
    persists: bool,
    payload: Vec<u8>,
    end: Option<End>,
}

/// The result of reading a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcome {
    replies: Vec<Reply>,
    interim: u32,
    blank: usize,
    broken: Option<Broken>,
    rest: Vec<u8>,
}

/// Reads up to `count` replies. `cut` returns how many bytes arrive next.
fn read(raw: &[u8], count: usize, limits: &Limits, mut cut: impl FnMut() -> usize) -> Outcome {
    let mut reader = Reader::new(limits.clone());
    let mut outcome = Outcome::default();
    let (mut at, mut come) = (0, 0);
    while outcome.replies.iter().filter(|reply| reply.end.is_some()).count() < count {
        reader.begin();
        loop {
            let step = match reader.read(&raw[at..come], come == raw.len()) {
                Ok(step) => step,
                Err(broken) => {
                    outcome.broken = Some(broken);
                    outcome.rest = raw[at..].to_vec();
                    return outcome;
                }
            };
            assert!(step.used <= come - at, "used more than there was");
            match step.event {
                Event::Blank => outcome.blank += step.used,
                Event::Interim => outcome.interim += 1,
                Event::Head => {
                    let head = reader.head();
                    assert_eq!(head.len, step.used);
                    outcome.replies.push(Reply {
                        status: head.status,
                        framing: head.framing,
                        persists: head.persists,
                        payload: Vec::new(),
                        end: None,
                    });
                }
                Event::Payload(range) => {
                    assert!(!range.is_empty() && range.end == step.used);
                    let reply = outcome.replies.last_mut().expect("a head before payload");
                    reply.payload.extend_from_slice(&raw[at..][range]);
                    assert_eq!(reply.payload.len() as u64, reader.payload_bytes());
                }
                Event::End(end) => {
                    at += step.used;
                    outcome.replies.last_mut().expect("a head before the end").end = Some(end);
                    break;
                }
                Event::More => {
                    assert!(come < raw.len(), "more than there is");
                    come = (come + cut().max(1)).min(raw.len());
                }
            }
            at += step.used;
        }
    }
    outcome.rest = raw[at..].to_vec();
    outcome
}

fn whole(raw: &[u8]) -> Outcome {
    read(raw, 1, &Limits::default(), || usize::MAX / 2)
}

/// Reads the single reply of `raw`; returns framing, whether the connection persists, and payload.
fn one(raw: &str) -> Result<(Framing, bool, String), Broken> {
    let outcome = whole(raw.as_bytes());
    match outcome.broken {
        Some(broken) => Err(broken),
        None => {
            let told = &outcome.replies[0];
            let payload = String::from_utf8(told.payload.clone()).expect("text");
            Ok((told.framing, told.persists, payload))
        }
    }
}

#[test]
fn where_a_body_ends() {
    use Framing::{Chunked, Close, Length, None};
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", Length(2), true, "ab", "6.3 rule 6"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            Length(0),
            true,
            "",
            "nothing is a length",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
            Length(2),
            true,
            "ab",
            "rule 5: equal",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 02\r\n\r\nab",
            Length(2),
            true,
            "ab",
            "rule 5: equal over two lines",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nab", Close, false, "ab", "6.3 rule 8: until close"),
        ("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n", None, true, "", "rule 1: 204"),
        ("HTTP/1.1 304 Not\r\nContent-Length: 2\r\n\r\n", None, true, "", "rule 1: 304"),
        ("HTTP/1.1 304 Not\r\nTransfer-Encoding: x\r\n\r\n", None, false, "", "rule 1 comes first"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            Chunked,
            true,
            "ab",
            "rule 4; names of codings in any case",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n0\r\n\r\n",
            Chunked,
            false,
            "",
            "rule 3: chunked wins, then close",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Chunked,
            false,
            "",
            "rule 3: whatever the length says",
        ),
        (
            "HTTP/1.0 200 O\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n",
            Chunked,
            false,
            "",
            "6.1: coded in HTTP/1.0, read and close",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na",
            Length(1),
            true,
            "a",
            "RFC 2616 3.6: identity is no coding",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\t\r\n\r\na", Length(1), true, "a", "5.2: fold"),
    ];
    for (raw, framing, persists, payload, why) in cases {
        assert_eq!(one(raw), Ok((framing, persists, payload.to_owned())), "{raw:?}: {why}");
    }
}

#[test]
fn what_persists() {
    let cases = [
        ("HTTP/1.1", "X: y", true, "9.3: HTTP/1.1 persists"),
        ("HTTP/1.1", "Connection: close", false, "9.6"),
        ("HTTP/1.1", "Connection: x, CLOSE", false, "one option of a list, in any case"),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close", false, "close wins"),
        ("HTTP/1.1", "Connection: closed", true, "another option"),
        ("HTTP/1.1", "Proxy-Connection: close", true, "not for us"),
        ("HTTP/1.0", "X: y", false, "9.3: HTTP/1.0 does not"),
        ("HTTP/1.0", "Connection: Keep-Alive", true, "9.3: unless it says so"),
        ("HTTP/1.3", "X: y", true, "RFC 9110 2.5: a later minor version is read as ours"),
        ("HTTP/2.0", "X: y", false, "a boast: trusted with nothing"),
    ];
    for (version, field, persists, why) in cases {
        let raw = format!("{version} 200 OK\r\n{field}\r\nContent-Length: 0\r\n\r\n");
        let found = one(&raw).map(|(_, persists, _)| persists);
        assert_eq!(found, Ok(persists), "{raw:?}: {why}");
    }
}

fn breaks(cases: Vec<(String, Broken)>) {
    for (raw, expected) in cases {
        let start: String = raw.chars().take(60).collect();
        assert_eq!(whole(raw.as_bytes()).broken, Some(expected), "{start:?}");
        let cut = read(raw.as_bytes(), 1, &Limits::default(), || 1);
        assert_eq!(cut.broken, Some(expected), "{start:?}, byte by byte");
    }
}

#[test]
fn each_way_a_head_breaks() {
    let long = |len: usize| "a".repeat(len);
    let ok = "HTTP/1.1 200 OK\r\n";
    let head = Broken::Head;
    let cases = [
        (String::new(), Broken::NoReply),
        ("\r\n\r\n".to_owned(), Broken::NoReply),
        ("\n".repeat(17), head("blank lines instead of a status line")),
        ("H".to_owned(), Broken::HeadCut),
        ("HTTP/1.1 200 OK\r\n\r".to_owned(), Broken::HeadCut),
        ("SSH-2.0-x\r\n".to_owned(), Broken::NotHttp),
        ("<html>\r\n\r\n".to_owned(), Broken::NotHttp),
        (format!("{ok}A: {}\r\n\r\n", long(64 << 10)), Broken::HeadTooLarge),
        (format!("{ok}A: {}", long(65 << 10)), Broken::HeadTooLarge),
        (format!("{ok}{}\r\n", "A: b\r\n".repeat(257)), Broken::TooManyFields),
        ("HTTP/11 200 OK\r\n\r\n".to_owned(), head("bad version")),
        ("HTTP/0.9 200 OK\r\n\r\n".to_owned(), head("bad version")),
        ("\0HTTP/1.1 200 OK\r\n\r\n".to_owned(), Broken::NotHttp),
        ("ICY 200 OK\r\n\r\n".to_owned(), Broken::NotHttp),
        ("http://a.test/ 200 OK\r\n\r\n".to_owned(), Broken::NotHttp),
        ("12345HTTP/1.1 200 OK\r\n\r\n".to_owned(), Broken::NotHttp),
        ("HTTP/1.1 OK\r\n\r\n".to_owned(), head("bad status line")),
        ("HTTP/1.1\r\n\r\n".to_owned(), head("bad status line")),
        ("HTTP/1.1 200\x01OK\r\n\r\n".to_owned(), head("bad status line")),
        ("HTTP/1.1 2x0 OK\r\n\r\n".to_owned(), head("bad status line")),
        ("HTTP/1.1 1000 OK\r\n\r\n".to_owned(), head("bad status line")),
        ("HTTP/1.1 099 OK\r\n\r\n".to_owned(), head("status below 100")),
        (format!("{ok}A: \0\r\n\r\n"), head("NUL in a field")),
        (
            format!("{ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            Broken::Framing("Content-Lengths that differ"),
        ),
        (
            format!("{ok}Content-Length: 1, 2, 1\r\n\r\nab"),
            Broken::Framing("Content-Lengths that differ"),
        ),
        ("HTTP/1.1 100 C\r\n\r\n".repeat(9), Broken::TooManyInterim),
        ("HTTP/1.1 100 C\r\n\r\n".to_owned(), Broken::NoReply),
        ("HTTP/1.1 101 S\r\n\r\n".to_owned(), Broken::Switched),
    ];
    breaks(cases.into());
}

#[test]
fn each_way_a_body_breaks() {
    let long = |len: usize| "a".repeat(len);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases = [
        (format!("{chunked}\r\n"), Broken::Chunk("no chunk size")),
        (format!("{chunked}-1\r\n"), Broken::Chunk("no chunk size")),
        (format!("{chunked}1x\r\n"), Broken::Chunk("bad chunk size")),
        (format!("{chunked}1 1\r\n"), Broken::Chunk("bad chunk size")),
        (format!("{chunked}1;\x01\r\n"), Broken::Chunk("control character in a chunk extension")),
        (format!("{chunked}1\rx"), Broken::Chunk("CR without LF")),
        (format!("{chunked}0\r\n\rx"), Broken::Chunk("CR without LF")),
        (format!("{chunked}1\r\nab"), Broken::Chunk("data longer than its chunk size")),
        (format!("{chunked}10000000000000000\r\n"), Broken::Chunk("chunk size beyond 64 bits")),
        (format!("{chunked}1;{}", long(5 << 10)), Broken::Chunk("chunk line too long")),
        (format!("{chunked}{}", "0".repeat(5 << 10)), Broken::Chunk("chunk line too long")),
        (
            format!("{chunked}0\r\n{}", "A: b\r\n".repeat(4 << 10)),
            Broken::Chunk("trailer too long"),
        ),
        (
            format!("{chunked}{}", format!("1;{}\r\na\r\n", long(4_000)).repeat(1_100)),
            Broken::Chunk("more framing than allowed"),
        ),
        (format!("{chunked}1\r\na\r\n0\r\n"), Broken::BodyCut),
        (format!("{chunked}5\r\na"), Broken::BodyCut),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na".to_owned(), Broken::BodyCut),
    ];
    breaks(cases.into());
}

#[test]
fn what_all_clients_forgive() {
    let cases = [
        ("HTTP/1.1 200 OK\nA: b\nContent-Length: 1\n\nx", "2.2: a lone LF ends a line"),
        ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "a blank line before"),
        ("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", "4: no reason and no space"),
        ("HTTP/1.1  200  OK\r\nContent-Length: 1\r\n\r\nx", "4: lenient white space"),
        ("HTTP/1.1 200 \u{e9}t\r\nContent-Length: 1\r\n\r\nx", "4: obs-text in the reason"),
        ("HTTP/1.1 200 O\rK\0\r\nContent-Length: 1\r\n\r\nx", "controls in the reason"),
        ("HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", "5.1: space before the colon"),
        ("HTTP/1.1 200 OK\r\nA: b\rc\x7f\r\nContent-Length: 1\r\n\r\nx", "5.5: controls in values"),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n c:d\x01\r\nContent-Length: 1\r\n\r\nx",
            "5.2: a fold, mended",
        ),
    ];
    for (raw, why) in cases {
        let raw: Vec<u8> = raw.chars().map(|char| char as u8).collect();
        let outcome = whole(&raw);
        assert_eq!(outcome.broken, None, "{raw:?}: {why}");
        assert_eq!(
            (outcome.replies[0].framing, &*outcome.replies[0].payload),
            (Framing::Length(1), &b"x"[..])
        );
    }
}

#[test]
fn fields_are_told_as_they_came() {
    let raw = b"HTTP/1.1 301 Moved\r\nLocation:  /a \r\nX-Robots-Tag: one\r\nx-robots-tag: two\r\n\
        Empty:\r\nBad Name: \x01v\r\nFold: a\r\n b\r\nContent-Encoding: x-gzip, br\r\n\
        Keep-Alive: timeout=5, max=99\r\n\r\n";
    let mut reader = Reader::new(Limits::default());
    reader.begin();
    let step = reader.read(raw, false).expect("a head");
    assert_eq!(step, Step { used: raw.len(), event: Event::Head });
    let head = reader.head();
    assert_eq!((head.status, head.keep_max, head.keep_timeout_s), (301, Some(99), Some(5)));
    assert_eq!(head.field(raw, "location"), Some(&b"/a"[..]));
    assert_eq!(head.field(raw, "LOCATION"), Some(&b"/a"[..]));
    assert_eq!(head.field(raw, "x-robots-tag"), Some(&b"one"[..]));
    assert_eq!(head.field(raw, "empty"), Some(&b""[..]));
    assert_eq!(head.field(raw, "fold"), Some(&b"a\r\n b"[..]));
    assert_eq!(head.field(raw, "absent"), None);
    let names: Vec<_> = head.fields(raw).map(|(name, _)| name).collect();
    assert_eq!(names[..5], [&b"Location"[..], b"X-Robots-Tag", b"x-robots-tag", b"Empty", b"Fold"]);
    let known = [Coding::Gzip, Coding::Brotli].into_iter().collect();
    assert_eq!(head.codings(raw), Codings { known, ..Codings::default() });
}

#[test]
fn caps_hold_to_the_byte() {
    let limits = Limits { body_bytes_max: 4, ..Limits::default() };
    let read_all = |raw: &str| read(raw.as_bytes(), 1, &limits, || usize::MAX / 2);
    let heads = [
        ("Content-Length: ", "abcd", "abcde"),
        ("", "abcd", "abcde"),
        (
            "Transfer-Encoding: chunked",
            "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
            "3\r\nabc\r\n2\r\nde\r\n",
        ),
    ];
    for (field, fits, too_large) in heads {
        let raw = |body: &str| match field {
            "" => format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
            "Content-Length: " => format!("HTTP/1.1 200 OK\r\n{field}{}\r\n\r\n{body}", body.len()),
            _ => format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n{body}"),
        };
        assert_eq!(read_all(&raw(fits)).broken, None, "{field}");
        let outcome = read_all(&raw(too_large));
        assert_eq!(outcome.broken, Some(Broken::BodyTooLarge), "{field}");
        assert_eq!(outcome.replies[0].payload, b"abcd", "{field}: the cap is used up first");
    }
}

#[test]
fn replies_to_head_have_no_body() {
    let raw = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP";
    let mut reader = Reader::new(Limits::default());
    reader.begin_bodiless();
    let step = reader.read(raw, false).expect("a head");
    assert_eq!(step.event, Event::Head);
    let end = reader.read(&raw[step.used..], false).expect("an end");
    assert_eq!(end, Step { used: 0, event: Event::End(End::None) });
}

#[test]
fn surplus_is_more_than_blank_lines() {
    for (bytes, expected) in [(&b""[..], false), (b"\r\n", false), (b"\r\nH", true)] {
        assert_eq!(is_surplus(bytes), expected, "{bytes:?}");
    }
    assert!(is_surplus(&[b'\n'; 17]));
}

/// Many replies on one connection, with all framings, and with what servers send between them.
const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
    \r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\
    5;x=\"y\"\r\nworld\r\n0A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n\
    HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n\
    HTTP/1.1 404 No\r\nBad Name: x\ry\r\nContent-Length: 0\r\n\r\n\
    HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n1\nz\n0\n\n\
    HTTP/1.0 200 OK\r\n\r\nuntil the end";

#[test]
fn cuts_change_nothing() {
    let limits = Limits::default();
    let expected = read(STREAM, 6, &limits, || usize::MAX / 2);
    assert_eq!(expected.broken, None);
    assert_eq!(expected.replies.len(), 6);
    assert_eq!((expected.interim, expected.blank), (1, 2));
    assert_eq!(expected.replies[1].payload, b"world0123456789");
    assert_eq!(expected.replies[5].end, Some(End::Close));
    let mut random = Random(1);
    for _ in 0..2_000 {
        let most = 1 + random.below(60);
        let outcome = read(STREAM, 6, &limits, || 1 + random.below(most));
        assert_eq!(outcome, expected);
    }
}

/// Random replies in random pieces: the payload that was framed is the payload that is read.
#[test]
fn what_was_framed_comes_out() {
    let mut random = Random(3);
    for _ in 0..300 {
        let (mut raw, mut bodies) = (Vec::new(), Vec::new());
        for _ in 0..=random.below(6) {
            let body: Vec<u8> =
                (0..random.below(3_000)).map(|_| b"\r\n0aZ;\0\xff"[random.below(8)]).collect();
            raw.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: x\r\n");
            if random.below(2) == 0 {
                raw.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                raw.extend_from_slice(&body);
            } else {
                raw.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                push_chunks(&mut raw, &body, &mut random);
            }
            bodies.push(body);
        }
        let most = 1 + random.below(2_000);
        let outcome = read(&raw, bodies.len(), &Limits::default(), || 1 + random.below(most));
        assert_eq!((outcome.broken, outcome.rest.len()), (None, 0));
        let payloads: Vec<_> = outcome.replies.into_iter().map(|told| told.payload).collect();
        assert!(payloads == bodies);
    }
}

fn push_chunks(raw: &mut Vec<u8>, body: &[u8], random: &mut Random) {
    let mut left = body;
    while !left.is_empty() {
        let (chunk, rest) = left.split_at(1 + random.below(left.len()));
        let extension = ["", " ", ";x", ";x=\"y\"", "\t;x ;y"][random.below(5)];
        let size = match random.below(3) {
            0 => format!("{:x}", chunk.len()),
            1 => format!("{:X}", chunk.len()),
            _ => format!("000{:x}", chunk.len()),
        };
        raw.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
        raw.extend_from_slice(chunk);
        raw.extend_from_slice(b"\r\n");
        left = rest;
    }
    let end = ["0\r\n\r\n", "000\r\nA: b\r\n\r\n", "0;x\r\nA: b\r\nC: d\r\n\r\n"];
    raw.extend_from_slice(end[random.below(3)].as_bytes());
}

#[test]
fn mutations_never_panic_and_keep_to_the_caps() {
    let limits = Limits { body_bytes_max: 12, trailer_bytes_max: 20, ..Limits::default() };
    let mut random = Random(2);
    let mut broken = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        let mut raw = STREAM.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(raw.len());
            match random.below(5) {
                4 => {
                    let line = memchr::memchr(b'\n', &raw[at..]).map_or(0, |end| at + end + 1);
                    drop(raw.splice(line..line, *b"Content-Length: 7\r\n"));
                }
                0 => raw[at] = b"\r\n:0 \0\xff;"[random.below(8)],
                1 if raw.len() > 1 => drop(raw.remove(at)),
                2 => raw.truncate(at.max(1)),
                _ => raw.insert(at, b"\r\n:0 \0\xff,"[random.below(8)]),
            }
        }
        let outcome = read(&raw, 6, &limits, || usize::MAX / 2);
        let cut = read(&raw, 6, &limits, || 1 + random.below(9));
        assert_eq!(outcome.replies, cut.replies, "{:?}", String::from_utf8_lossy(&raw));
        assert_eq!(outcome.broken, cut.broken);
        assert!(
            outcome.replies.iter().all(|reply| reply.payload.len() as u64 <= limits.body_bytes_max)
        );
        broken.extend(outcome.broken.map(Broken::name));
    }
    // The loop must reach most of the errors, or it proves little.
    assert!(broken.len() >= 8, "{broken:?}");
}

/// A head that arrives byte by byte is scanned once, not once for each byte.
#[test]
fn a_slow_head_costs_one_scan() {
    let mut raw = b"HTTP/1.1 200 OK\r\nA: ".to_vec();
    raw.resize(60_000, b'a');
    let mut reader = Reader::new(Limits::default());
    reader.begin();
    for come in 1..raw.len() {
        assert_eq!(reader.read(&raw[..come], false), Ok(more(0)));
        assert!(reader.scanned + 3 > come.saturating_sub(3), "scanned up to {}", reader.scanned);
    }
    raw.extend_from_slice(b"\r\n\r\n");
    assert_eq!(reader.read(&raw, false).map(|step| step.used), Ok(raw.len()));
}
