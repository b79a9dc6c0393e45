//! One capture: what came over the wire, the facts beside it, and its records.
//!
//! WARC-Payload-Digest is that of the body without its transfer coding, as the standard's section
//! 6.3.2 has the payload. Every `response` record has it: an index that is built from the archive
//! finds the original of a `revisit` record by it. Replay puts the head of a `revisit` record
//! before the body of the original, so both were sent in chunks or neither was.

use super::digest::{Algorithm, Digest};
use super::text::media_type;
use super::warc::{Kind, Record, RecordId, bytes_max};
use crate::ground::time::UnixTime;
use std::net::IpAddr;
use std::rc::Rc;

/// A request and its response, as they were sent and received.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The URL that was asked for: absolute and canonical.
    pub url: &'a str,
    /// Address of the server.
    pub ip: Option<IpAddr>,
    /// When the fetch began: the date of its records.
    pub started: UnixTime,
    /// The request's bytes; empty if they are not at hand.
    pub request: &'a [u8],
    /// The response's bytes, head and framing included.
    pub response: &'a [u8],
    /// Length of the head in them, its empty line included.
    pub head_bytes: usize,
    /// The body without its transfer coding, its content coding kept: what follows the head in
    /// `response`, unless it was chunked.
    pub payload: &'a [u8],
    /// HTTP status.
    pub status: u16,
    /// Content-Type value as it came, empty if there was none.
    pub mime: &'a str,
    /// The body was sent in chunks.
    pub chunked: bool,
    /// The payload has a content coding: compressing it again would be wasted.
    pub coded: bool,
    /// Why the response is not all of what the server had to give.
    pub truncated: Option<Truncated>,
    /// Facts of the connection, if it was encrypted.
    pub tls: Option<Tls<'a>>,
    /// Where the response points to, if it redirects.
    pub redirect: Option<&'a str>,
    /// It is a robots.txt, fetched as such.
    pub robots: bool,
}

/// Fields of both records, an index line, and the opening record of a file.
const FIELDS_BYTES: usize = 4_096;

/// Why a response was cut, as WARC-Truncated has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// It was longer than the cap.
    Length,
    /// It took longer than the cap.
    Time,
    /// The connection ended before it did.
    Disconnect,
    /// Another reason.
    Unspecified,
}

impl Truncated {
    /// The standard's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }

    /// The reason of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Self::Length, Self::Time, Self::Disconnect, Self::Unspecified];
        all.into_iter().find(|why| why.name() == name)
    }
}

/// Facts of an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls<'a> {
    /// `tls/1.2` or `tls/1.3`.
    pub version: &'a str,
    /// Name of the cipher suite.
    pub suite: &'a str,
    /// The server's certificate was verified.
    pub verified: bool,
}

/// Where a capture was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number in this run, from 1: durable once `Totals::committed` reaches it.
    pub number: u64,
    /// Final name of the WARC file, without its folder; shared by all captures in it.
    pub file: Rc<str>,
    /// Where its response or revisit record begins in the file, in bytes.
    pub offset: u64,
    /// Length of that record in the file, in bytes.
    pub length: u64,
    /// Digest of the payload.
    pub digest: Digest,
    /// The payload had been stored before.
    pub revisit: bool,
}

/// Text of a record's fields besides URLs is shorter than this, in bytes.
const FIELDS_BYTES_MAX: u64 = 1 << 10;
/// A URL that a `revisit` refers to is no longer than this, in bytes.
pub(super) const FIRST_URL_BYTES_MAX: usize = 8 << 10;

impl Capture<'_> {
    /// Bytes of its records before compression, about, and no less.
    pub(super) fn bytes_about(&self) -> usize {
        self.request.len() + self.response.len() + FIELDS_BYTES + 2 * self.url.len()
    }

    /// Holds the caller to what the fields promise.
    pub(super) fn check(&self) {
        assert!(self.head_bytes <= self.response.len(), "the head is part of the response");
        let body_bytes = self.response.len() - self.head_bytes;
        assert!(self.payload.len() <= body_bytes, "framing only adds to a payload");
    }

    /// Whether compressing its response would cost time and save next to nothing: the payload is
    /// compressed already, and makes up nearly all of the record.
    fn is_packed(&self) -> bool {
        const BYTES_MIN: usize = 8 << 10;
        self.payload.len() >= BYTES_MIN && (self.coded || is_packed_media(media_type(self.mime)))
    }

    /// Whether its payload may stand for a later one or be stood for: nothing refers to a cut one,
    /// and an empty one isn't worth a reference.
    pub(super) fn can_repeat(&self) -> bool {
        self.truncated.is_none()
            && !self.payload.is_empty()
            && self.url.len() <= FIRST_URL_BYTES_MAX
    }

    /// Most bytes its records can take in the file.
    pub(super) fn bytes_max(&self) -> u64 {
        let tls_bytes = self.tls.map_or(0, |tls| tls.version.len() + tls.suite.len());
        let response_bytes = self.response.len() + self.url.len() + FIRST_URL_BYTES_MAX + tls_bytes;
        let request_bytes = self.request.len() + self.url.len();
        bytes_max(response_bytes as u64 + FIELDS_BYTES_MAX)
            + bytes_max(request_bytes as u64 + FIELDS_BYTES_MAX)
    }

    /// `http/1.0` or `http/1.1`, by the status line.
    fn protocol(&self) -> &'static str {
        if self.response.starts_with(b"HTTP/1.0") { "http/1.0" } else { "http/1.1" }
    }
}

/// Media types whose formats compress by themselves.
fn is_packed_media(media: &str) -> bool {
    let (kind, format) = media.split_once('/').unwrap_or((media, ""));
    let is = |name: &str| kind.eq_ignore_ascii_case(name);
    let among = |names: &[&str]| names.iter().any(|name| format.eq_ignore_ascii_case(name));
    if is("image") {
        return among(&["jpeg", "png", "gif", "webp", "avif"]);
    }
    is("video")
        || is("audio") && !among(&["wav", "x-wav", "midi"])
        || is("font") && among(&["woff", "woff2"])
        || is("application") && among(&["zip", "gzip", "x-gzip", "pdf", "x-7z-compressed"])
}

/// The record that holds the payload.
pub(super) struct Known<'a> {
    /// If it is known, too.
    pub(super) id: Option<RecordId>,
    /// Its WARC-Date.
    pub(super) date: &'a str,
    pub(super) url: &'a str,
}

/// A capture with all that its records say.
pub(super) struct Ready<'a> {
    pub(super) capture: &'a Capture<'a>,
    /// WARC-Date of all its records.
    pub(super) date: &'a str,
    /// The file's `warcinfo` record.
    pub(super) info: RecordId,
    /// The response's record.
    pub(super) id: RecordId,
    /// Of the payload.
    pub(super) digest: Digest,
    /// Where the payload is already.
    pub(super) first: Option<Known<'a>>,
    /// What blocks are digested by, if they are.
    pub(super) digests: Option<Algorithm>,
}

impl Ready<'_> {
    /// Appends the fields of the `request` record.
    pub(super) fn push_request(&self, out: &mut Vec<u8>, id: RecordId) {
        let block = self.capture.request;
        let mut record = self.begin(out, Kind::Request, id, block);
        record.id("WARC-Concurrent-To", self.id);
        record.end(block);
    }

    /// The block of the response's record: the head alone if the payload is known.
    pub(super) fn response_block(&self) -> &[u8] {
        let Capture { response, head_bytes, .. } = self.capture;
        if self.first.is_some() { &response[..*head_bytes] } else { response }
    }

    /// Whether compressing that block would save next to nothing.
    pub(super) fn is_packed(&self) -> bool {
        self.first.is_none() && self.capture.is_packed()
    }

    /// Appends the fields of the `response` record, or `revisit` if the payload is known.
    pub(super) fn push_response(&self, out: &mut Vec<u8>) {
        let (capture, block) = (self.capture, self.response_block());
        let Some(first) = &self.first else {
            let mut record = self.begin(out, Kind::Response, self.id, block);
            record.digest("WARC-Payload-Digest", &self.digest);
            if let Some(truncated) = capture.truncated {
                record.value("WARC-Truncated", truncated.name());
            }
            self.connection(&mut record);
            return record.end(block);
        };
        const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
        let mut record = self.begin(out, Kind::Revisit, self.id, block);
        record.digest("WARC-Payload-Digest", &self.digest);
        record.value("WARC-Profile", PROFILE);
        first.id.iter().for_each(|id| _ = record.id("WARC-Refers-To", *id));
        record.text("WARC-Refers-To-Target-URI", first.url);
        record.value("WARC-Refers-To-Date", first.date);
        record.value("WARC-Truncated", Truncated::Length.name());
        self.connection(&mut record);
        record.end(block);
    }

    fn begin<'out>(
        &self,
        out: &'out mut Vec<u8>,
        kind: Kind,
        id: RecordId,
        block: &[u8],
    ) -> Record<'out> {
        let mut record = Record::begin(out, kind, id, self.date);
        record.text("WARC-Target-URI", self.capture.url);
        record.id("WARC-Warcinfo-ID", self.info);
        if let Some(ip) = self.capture.ip {
            record.ip("WARC-IP-Address", ip);
        }
        if let Some(algorithm) = self.digests {
            record.digest("WARC-Block-Digest", &algorithm.of(block));
        }
        record
    }

    /// What is known of the connection. A certificate that was not verified is told, since the
    /// reader can't know who answered then.
    fn connection(&self, record: &mut Record<'_>) {
        record.value("WARC-Protocol", self.capture.protocol());
        if let Some(tls) = self.capture.tls {
            record.text("WARC-Protocol", tls.version);
            record.text("WARC-Cipher-Suite", tls.suite);
            if !tls.verified {
                record.value("Sted-Certificate", "unverified");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_that_compress_by_themselves() {
        let cases = [
            ("image/jpeg", true),
            ("IMAGE/PNG", true),
            ("image/svg+xml", false),
            ("video/mp4", true),
            ("audio/wav", false),
            ("application/pdf", true),
            ("application/json", false),
            ("text/html", false),
            ("", false),
        ];
        for (media, expected) in cases {
            assert_eq!(is_packed_media(media), expected, "{media}");
        }
    }
}
