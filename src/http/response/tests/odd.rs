//! Tests malformed heads: what is read, what is skipped, and that the connection is not reused.

use super::super::*;

/// One reply: status, framing, whether the connection persists, whether the head is odd, payload.
type Reply = (u16, Framing, bool, bool, String);

/// Reads the single reply of `raw` in pieces of `cut` bytes.
fn read(raw: &[u8], cut: usize) -> Result<Reply, Broken> {
    let mut reader = Reader::new(Limits::default());
    reader.begin();
    let (mut at, mut come, mut payload) = (0, 0, Vec::new());
    loop {
        let step = reader.read(&raw[at..come], come == raw.len())?;
        match step.event {
            Event::Payload(range) => payload.extend_from_slice(&raw[at..][range]),
            Event::End(_) => break,
            Event::More => come = (come + cut).min(raw.len()),
            Event::Blank | Event::Interim | Event::Head => {}
        }
        at += step.used;
    }
    let head = reader.head();
    let payload = String::from_utf8_lossy(&payload).into_owned();
    Ok((head.status, head.framing, head.persists, head.is_odd, payload))
}

fn one(raw: &[u8]) -> Result<Reply, Broken> {
    let whole = read(raw, raw.len());
    for cut in [1, 2, 3, 7] {
        assert_eq!(read(raw, cut), whole, "{:?} by {cut}", String::from_utf8_lossy(raw));
    }
    whole
}

/// The line is skipped, the length after it holds, and the connection is not reused.
#[test]
fn an_odd_line_is_skipped() {
    let lines: [(&[u8], &str); 14] = [
        (b"no colon here", "no colon"),
        (b"HTTP/1.1 200 OK", "the status line twice"),
        (b": no name", "an empty name"),
        (b" : no name", "a blank name, which begins like a fold"),
        (b" Folded: onto nothing", "a blank before the first field"),
        (b"\tFolded: onto nothing", "a tab before the first field"),
        (b" \t ", "a line of white space first"),
        (b"A B: c", "a blank within the name"),
        (b":A: c", "a colon in front"),
        ("N\u{e4}me: c".as_bytes(), "a name outside ASCII"),
        (b"Na\rme: c", "a CR within the name"),
        (b"{\"json\": 1}", "a line of another language"),
        (b"<!-- no -->", "a comment of another language"),
        (b"\xff\xfe", "bytes that are no text"),
    ];
    for (line, why) in lines {
        for fold in [&b""[..], b"\r\n and its fold"] {
            let head = [b"HTTP/1.1 200 OK\r\n", line, fold, b"\r\nContent-Length: 2\r\n\r\nab"];
            let expected = (200, Framing::Length(2), false, true, "ab".to_owned());
            assert_eq!(one(&head.concat()), Ok(expected), "{why}");
            let chunks = b"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
            let head = [b"HTTP/1.1 200 OK\r\nA: b\r\nC:d\r\n", line, fold, chunks].concat();
            let told = one(&head).expect("it is read");
            assert_eq!((told.1, told.4), (Framing::Chunked, "ab".to_owned()), "{why}");
        }
    }
}

/// White space in invalid positions of a field that matters: the field is read, but the connection
/// is not reused.
#[test]
fn odd_fields_are_read_where_they_are_legible() {
    for (field, why) in [
        ("Content-Length : 2", "a blank before the colon"),
        ("Content-Length\t: 2", "a tab before the colon"),
        ("Content-Length: 2\x01", "a control character behind the value"),
        ("Content-Length: \r2", "a CR in front of it"),
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\nA: b\r\n{field}\r\n\r\nab");
        let expected = (200, Framing::Length(2), false, true, "ab".to_owned());
        assert_eq!(one(raw.as_bytes()), Ok(expected), "{why}");
    }
}

/// If the length itself is malformed, the body ends with the connection.
#[test]
fn an_odd_length_is_no_length() {
    for field in [
        "Content-Length:",
        "Content-Length: -1",
        "Content-Length: +2",
        "Content-Length: 2;",
        "Content-Length: 0x2",
        "Content-Length: \"2\"",
        "Content-Length: 2 2",
        "Content-Length: 2.0",
        "Content-Length: ten",
        "Content-Length: 2, x",
        "Content-Length: 18446744073709551616",
        "Content-Length 2",
        "Content\x01Length: 2",
        "Content Length: 2",
        ":Content-Length: 2",
        "Content-Length\x01: 2",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunkedchunked",
        "Transfer-Encoding: chunked;q=1",
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\nabc");
        let expected = (200, Framing::Close, false, true, "abc".to_owned());
        assert_eq!(one(raw.as_bytes()), Ok(expected), "{field:?}");
        let raw = format!("HTTP/1.1 204 No\r\n{field}\r\n\r\n");
        let told = one(raw.as_bytes()).expect("a head");
        assert_eq!((told.1, told.2), (Framing::None, false), "{field:?}");
    }
}

/// Browsers check for the word `chunked` and for nothing else.
#[test]
fn chunked_counts_wherever_it_stands() {
    for fields in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, Chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: gzip, chunked\r\nContent-Length: 99",
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n2\r\nab\r\n0\r\n\r\n");
        let expected = (200, Framing::Chunked, false, true, "ab".to_owned());
        assert_eq!(one(raw.as_bytes()), Ok(expected), "{fields:?}");
    }
    let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nContent-Length: 2\r\n\r\nab";
    let expected = (200, Framing::Length(2), false, true, "ab".to_owned());
    assert_eq!(one(raw), Ok(expected), "a coding nobody knows doesn't hide the length");
}

#[test]
fn odd_status_lines() {
    for (line, why) in [
        ("HTTP/2 200", "HTTP/2's, of a gateway"),
        ("HTTP/2 200 ", "with nothing behind it"),
        ("HTTP/2.0 200 OK", "HTTP/2's, in full"),
        ("HTTP/3 200", "HTTP/3's"),
        ("HTTP/5.6 200 OK", "a version of the future"),
        ("HTTP 200 OK", "no version"),
        ("HTTP/ 200 OK", "half a version"),
        ("http/1.1 200 ok", "lower case"),
        ("Http/1.1 200 OK", "mixed case"),
        ("HTTP/1.1 200OK", "no blank"),
        ("HTTP/1.1 200,OK", "a comma"),
        ("HTTP/1.1\t200\tOK", "tabs"),
        ("HTTP/1.1 \t 200 OK", "blanks and tabs"),
        ("\u{feff}HTTP/1.1 200 OK", "a byte order mark"),
        (" HTTP/1.1 200 OK", "a blank in front"),
        ("\r\n\r\n</p>HTTP/1.1 200 OK", "the end of another body"),
    ] {
        for end in ["\r\n", "\n"] {
            let raw = format!("{line}{end}Content-Length: 2{end}{end}ab");
            let expected = (200, Framing::Length(2), false, true, "ab".to_owned());
            assert_eq!(one(raw.as_bytes()), Ok(expected), "{why}");
        }
    }
    for line in ["HTTP/1.1  200  OK", "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.3 200 OK"] {
        let raw = format!("{line}\nContent-Length: 2\n\nab");
        let told = one(raw.as_bytes()).expect("it is read");
        assert_eq!((told.2, told.3), (true, false), "{line:?} is not odd");
    }
}

/// A head with several errors at once still has its valid fields.
#[test]
fn odd_heads_keep_their_fields() {
    let raw =
        b"HTTP 404\r\nHTTP/1.1 404 Gone\r\nA : one\r\nno colon\r\n fold\r\nB: two\r\n three\r\n\
        Empty:\r\nContent-Length: 0\r\n\r\n";
    let mut reader = Reader::new(Limits::default());
    reader.begin();
    let step = reader.read(raw, false).expect("a head");
    assert_eq!(step, Step { used: raw.len(), event: Event::Head });
    let head = reader.head();
    assert_eq!((head.status, head.minor), (404, 0));
    let fields: Vec<_> = head.fields(raw).collect();
    let expected: [(&[u8], &[u8]); 4] =
        [(b"A", b"one"), (b"B", b"two\r\n three"), (b"Empty", b""), (b"Content-Length", b"0")];
    assert_eq!(fields, expected);
}

/// An interim reply with a malformed head makes the connection as unreliable as any other.
#[test]
fn an_odd_interim_reply_counts() {
    let raw = b"HTTP/1.1 103 Early\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(one(raw), Ok((200, Framing::Length(0), false, true, String::new())));
}
