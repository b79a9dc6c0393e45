//! The response reader: bytes of a connection to replies.
//!
//! Laws: the cuts of the stream into reads change no head, no payload and no end; the reader never
//! uses more bytes than there are; no limit is exceeded; every reply ends, or the stream is
//! refused, or the reader needs more bytes.

use super::{Target, seeded};
use sted::http::response::{Broken, End, Event, Limits, Reader};

pub const TARGET: Target = Target {
    samples: &[
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n\
          HTTP/1.0 404 Gone\nServer: x\n\nuntil the end",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 301 Moved\r\nLocation: /b\r\n\
          Content-Length: 0\r\nConnection: close\r\nContent-Encoding: gzip, br\r\n\r\n",
        b"\r\nHTTP/1.1 200\r\nA: b\r\n c\r\nContent-Length: 3, 3\r\n\r\nabc",
    ],
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 ",
        "\r\n\r\n",
        "\r\n",
        "\n",
        "\r",
        "Content-Length: 7\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Connection: close\r\n",
        "0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "1\r\na\r\n",
        " 100 Continue",
        " 101 ",
        " 204 ",
        ";",
        ":",
    ],
    check,
};

/// One reply, or the error in its place.
#[derive(Debug, PartialEq, Eq)]
struct Parsed {
    status: u16,
    persists: bool,
    payload: Vec<u8>,
    end: Option<Result<End, Broken>>,
}

pub fn check(bytes: &[u8]) {
    let mut random = seeded(bytes);
    let whole = read(bytes, || usize::MAX / 2);
    assert_eq!(read(bytes, || 1), whole);
    assert_eq!(read(bytes, || 1 + random.below(30)), whole);
}

fn read(raw: &[u8], mut cut: impl FnMut() -> usize) -> Vec<Parsed> {
    let limits = Limits {
        head_bytes_max: 400,
        fields_max: 12,
        body_bytes_max: 300,
        chunk_line_bytes_max: 40,
        framing_bytes_max: 200,
        trailer_bytes_max: 60,
        interim_max: 2,
    };
    let mut reader = Reader::new(limits.clone());
    reader.begin();
    let mut replies: Vec<Parsed> = Vec::new();
    let (mut at, mut come) = (0, 0);
    loop {
        let step = match reader.read(&raw[at..come], come == raw.len()) {
            Ok(step) => step,
            Err(broken) => {
                match replies.last_mut().filter(|last| last.end.is_none()) {
                    Some(last) => last.end = Some(Err(broken)),
                    None => replies.push(Parsed::refused(broken)),
                }
                return replies;
            }
        };
        assert!(step.used <= come - at, "used more than there was");
        match step.event {
            Event::Head => {
                let head = reader.head();
                assert!(step.used <= limits.head_bytes_max);
                let _ = head.codings(&raw[at..come]);
                replies.push(Parsed {
                    status: head.status,
                    persists: head.persists,
                    payload: Vec::new(),
                    end: None,
                });
            }
            Event::Payload(range) => {
                let last = replies.last_mut().expect("a head before payload");
                last.payload.extend_from_slice(&raw[at..come][range]);
                assert!(last.payload.len() as u64 <= limits.body_bytes_max);
            }
            Event::End(end) => {
                replies.last_mut().expect("a head before the end").end = Some(Ok(end));
                reader.begin();
            }
            Event::More => {
                assert!(come < raw.len(), "more than there is");
                come = (come.saturating_add(cut())).min(raw.len());
            }
            Event::Blank | Event::Interim => assert!(step.used > 0),
        }
        at += step.used;
    }
}

impl Parsed {
    fn refused(broken: Broken) -> Self {
        Self { status: 0, persists: false, payload: Vec::new(), end: Some(Err(broken)) }
    }
}
