//! A capture: the bytes of a request and its response, facts about them, and the fields of their
//! records.
//!
//! WARC-Payload-Digest is that of the body without its transfer coding, which is the payload by the
//! standard's section 6.3.2. Every `response` record has it, because an index built from the
//! archive uses it to find the original of a `revisit` record. Replay joins the head of a `revisit`
//! record with the body of the original, so either both were sent in chunks or neither was.

use super::digest::{Algorithm, Digest};
use super::text::{media_type, put};
use super::warc::{Kind, Record, RecordId, bytes_max};
use crate::ground::time::UnixTime;
use std::net::IpAddr;
use std::sync::Arc;

/// A request and its response, as they were sent and received.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The requested URL, absolute and canonical.
    pub url: &'a str,
    /// The IP address of the server.
    pub ip: Option<IpAddr>,
    /// The time at which the fetch began, which becomes the date of the records.
    pub started: UnixTime,
    /// The bytes of the request; empty if they are not available.
    pub request: &'a [u8],
    /// The bytes of the response, with head and framing.
    pub response: &'a [u8],
    /// The length of the head of the response, including the empty line after it, in bytes.
    pub head_bytes: usize,
    /// The body of the response, without its transfer coding but with its content coding. If the
    /// body was not chunked, these are the bytes after the head in `response`.
    pub payload: &'a [u8],
    /// The HTTP status.
    pub status: u16,
    /// The unchanged value of Content-Type, empty if there was none.
    pub mime: &'a str,
    /// True if the body was sent in chunks.
    pub chunked: bool,
    /// True if the payload has a content coding; compressing it again would save almost nothing.
    pub coded: bool,
    /// The reason why the response is incomplete; `None` if it is complete.
    pub truncated: Option<Truncated>,
    /// Facts about the connection, if it was encrypted.
    pub tls: Option<Tls>,
    /// The target URL of the redirect; `None` if the response is not a redirect.
    pub redirect: Option<&'a str>,
    /// True if this is the reply to the crawler's own request for robots.txt.
    pub robots: bool,
    /// What the page still is, if the reply says so (304); `None` for all other replies.
    pub unmodified: Option<Unmodified>,
    /// What was said of the use of the page; `None` if nothing was.
    pub usage: Option<Usage<'a>>,
}

/// What was said of the use of a page, and what that means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage<'a> {
    /// The statements as they were made, each on a line `name: value`. They become the block of a
    /// `metadata` record.
    pub lines: &'a str,
    /// The purposes for which the page may be used, separated by spaces.
    pub allowed: &'a str,
    /// The purposes for which its use is reserved, separated by spaces.
    pub reserved: &'a str,
}

/// What was said of the use of a page, with its own memory.
#[derive(Debug)]
struct OwnUsage {
    lines: Box<str>,
    allowed: Box<str>,
    reserved: Box<str>,
}

/// The archived payload of a page that a server says is unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmodified {
    /// The date of the `response` record of the page's URL that has it.
    pub captured: UnixTime,
    /// Its SHA-1.
    pub digest: [u8; 20],
}

/// A capture that owns its bytes, so that a side thread can write it.
#[derive(Debug)]
pub struct OwnCapture {
    url: Box<str>,
    request: Box<[u8]>,
    mime: Box<str>,
    redirect: Option<Box<str>>,
    usage: Option<OwnUsage>,
    /// The bytes of the response.
    pub response: Vec<u8>,
    /// The body of the response without its transfer coding; `None` if it is the end of `response`.
    pub unframed: Option<Vec<u8>>,
    /// The other fields; those above are empty in it.
    rest: Capture<'static>,
}

impl OwnUsage {
    fn view(&self) -> Usage<'_> {
        let Self { lines, allowed, reserved } = self;
        Usage { lines, allowed, reserved }
    }
}

/// An estimate of the bytes needed besides body and URL: the fields of both records, an index line,
/// and the first record of a file.
const FIELDS_BYTES: usize = 4_096;

/// The reason why a response was truncated, as in the field WARC-Truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// The response was longer than the limit on its length.
    Length,
    /// The response took longer than the limit on its time.
    Time,
    /// The connection ended early.
    Disconnect,
    /// Any other reason.
    Unspecified,
}

impl Truncated {
    /// Returns the word that the WARC standard has for this reason, such as `length`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }

    /// Returns the reason for a word of the WARC standard; `None` if the word is unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Self::Length, Self::Time, Self::Disconnect, Self::Unspecified];
        all.into_iter().find(|why| why.name() == name)
    }
}

/// Facts about an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The TLS version: `tls/1.2` or `tls/1.3`.
    pub version: &'static str,
    /// The name of the cipher suite.
    pub suite: &'static str,
    /// True if the certificate of the server was verified.
    pub verified: bool,
}

/// Where a capture was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the capture in this run, counted from 1. The capture is durable once
    /// `Totals::committed` reaches this number.
    pub number: u64,
    /// The final name of the WARC file, without its folder; shared by all captures in it.
    pub file: Arc<str>,
    /// The offset of the capture's `response` or `revisit` record in the file, in bytes.
    pub offset: u64,
    /// The length of the capture's `response` or `revisit` record in the file, in bytes.
    pub length: u64,
    /// The digest of the payload.
    pub digest: Digest,
    /// True if the same payload had been stored before, so that a `revisit` record was written.
    pub revisit: bool,
}

/// An upper bound on the length of all fields of one record except those with URLs, in bytes.
const FIELDS_BYTES_MAX: u64 = 1 << 10;
/// The maximum length of a URL that a `revisit` refers to, in bytes.
pub(super) const FIRST_URL_BYTES_MAX: usize = 8 << 10;

impl OwnCapture {
    /// Returns the number of bytes of the response, of its body if that is a copy, and of what was
    /// said of the use of the page.
    pub fn bytes(&self) -> usize {
        // With what was said of it, which also waits elsewhere.
        let usage = self.usage.as_ref().map_or(0, |usage| 3 * usage.lines.len());
        self.response.len() + self.unframed.as_ref().map_or(0, Vec::len) + usage
    }

    /// Returns the capture as one that borrows its bytes.
    pub(super) fn view(&self) -> Capture<'_> {
        let body = || &self.response[self.rest.head_bytes..];
        Capture {
            url: &self.url,
            request: &self.request,
            response: &self.response,
            payload: self.unframed.as_deref().unwrap_or_else(body),
            mime: &self.mime,
            redirect: self.redirect.as_deref(),
            usage: self.usage.as_ref().map(OwnUsage::view),
            ..self.rest
        }
    }
}

impl Capture<'_> {
    /// Returns a copy that owns its bytes, except those of the response and its payload: the caller
    /// moves them in.
    pub fn detach(&self) -> OwnCapture {
        OwnCapture {
            url: self.url.into(),
            request: self.request.into(),
            mime: self.mime.into(),
            redirect: self.redirect.map(Into::into),
            usage: self.usage.map(|Usage { lines, allowed, reserved }| OwnUsage {
                lines: lines.into(),
                allowed: allowed.into(),
                reserved: reserved.into(),
            }),
            response: Vec::new(),
            unframed: None,
            rest: Capture {
                url: "",
                ip: self.ip,
                started: self.started,
                request: &[],
                response: &[],
                head_bytes: self.head_bytes,
                payload: &[],
                status: self.status,
                mime: "",
                chunked: self.chunked,
                coded: self.coded,
                truncated: self.truncated,
                tls: self.tls,
                redirect: None,
                robots: self.robots,
                unmodified: self.unmodified,
                usage: None,
            },
        }
    }

    /// Returns an upper estimate of the total length of this capture's records before compression,
    /// in bytes.
    pub(super) fn bytes_about(&self) -> usize {
        let usage = self.usage.map_or(0, |usage| usage.lines.len() + self.url.len());
        self.request.len() + self.response.len() + usage + FIELDS_BYTES + 2 * self.url.len()
    }

    /// Asserts that the lengths of head, payload and response are consistent.
    pub(super) fn check(&self) {
        assert!(self.head_bytes <= self.response.len(), "the head is part of the response");
        let body_bytes = self.response.len() - self.head_bytes;
        assert!(self.payload.len() <= body_bytes, "framing only adds to a payload");
    }

    /// Returns whether compressing the response record would cost time and save almost nothing,
    /// because the payload is compressed already and makes up nearly all of the record.
    fn is_packed(&self) -> bool {
        const BYTES_MIN: usize = 8 << 10;
        self.payload.len() >= BYTES_MIN && (self.coded || is_packed_media(media_type(self.mime)))
    }

    /// Returns whether this capture may be stored as a `revisit`, and a later `revisit` may refer
    /// to it. False if it is truncated, if its payload is empty (which would save nothing), or if
    /// its URL is too long.
    pub(super) fn can_repeat(&self) -> bool {
        self.truncated.is_none()
            && !self.payload.is_empty()
            && self.url.len() <= FIRST_URL_BYTES_MAX
    }

    /// Returns the maximum total length of this capture's records in the file, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        let tls_bytes = self.tls.map_or(0, |tls| tls.version.len() + tls.suite.len());
        let response_bytes = self.response.len() + self.url.len() + FIRST_URL_BYTES_MAX + tls_bytes;
        let request_bytes = self.request.len() + self.url.len();
        // A line of the statements has six bytes or more, and gets another one.
        let usage_bytes = self.usage.map_or(0, |usage| 2 * usage.lines.len() + self.url.len());
        bytes_max(response_bytes as u64 + FIELDS_BYTES_MAX)
            + bytes_max(request_bytes as u64 + FIELDS_BYTES_MAX)
            + self.usage.map_or(0, |_| bytes_max(usage_bytes as u64 + FIELDS_BYTES_MAX))
    }

    /// Returns `http/1.0` or `http/1.1`, as stated in the status line of the response.
    fn protocol(&self) -> &'static str {
        if self.response.starts_with(b"HTTP/1.0") { "http/1.0" } else { "http/1.1" }
    }
}

/// Returns whether the format of a media type, such as `image/jpeg`, is already compressed.
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

/// How the lines of a `metadata` record begin that name the purposes for which a page may be used,
/// and may not.
pub(super) const ALLOWED: &str = "allowed: ";
pub(super) const RESERVED: &str = "reserved: ";

/// The profiles of `revisit` records: the payload is the same, or the server says so.
const IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
pub(super) const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// An earlier record that already contains the same payload.
pub(super) struct Known<'a> {
    /// The id of the earlier record; `None` if it is not known.
    pub(super) id: Option<RecordId>,
    /// The WARC-Date of the earlier record.
    pub(super) date: &'a str,
    pub(super) url: &'a str,
}

/// A capture with everything that its records contain.
pub(super) struct Ready<'a> {
    pub(super) capture: &'a Capture<'a>,
    /// The WARC-Date of all its records.
    pub(super) date: &'a str,
    /// The id of the `warcinfo` record at the start of the WARC file.
    pub(super) info: RecordId,
    /// The id of the `response` or `revisit` record.
    pub(super) id: RecordId,
    /// The digest of the payload.
    pub(super) digest: Digest,
    /// The earlier record that already contains the same payload; `None` if there is none.
    pub(super) first: Option<Known<'a>>,
    /// The algorithm of block digests; `None` if records have no block digests.
    pub(super) digests: Option<Algorithm>,
}

impl Ready<'_> {
    /// Returns the block of the `metadata` record about the use of the page.
    pub(super) fn usage_block(usage: Usage<'_>) -> Vec<u8> {
        let mut block = Vec::with_capacity(usage.lines.len() + 128);
        for (name, words) in [(ALLOWED, usage.allowed), (RESERVED, usage.reserved)] {
            if !words.is_empty() {
                put!(&mut block, "{name}{words}\r\n");
            }
        }
        for line in usage.lines.lines() {
            put!(&mut block, "{line}\r\n");
        }
        block
    }

    /// Appends the fields of the `metadata` record, which has `block`.
    pub(super) fn push_metadata(&self, out: &mut Vec<u8>, id: RecordId, block: &[u8]) {
        let mut record = self.begin(out, Kind::Metadata, id, block);
        record.id("WARC-Concurrent-To", self.id);
        record.end(block);
    }

    /// Appends the fields of the `request` record.
    pub(super) fn push_request(&self, out: &mut Vec<u8>, id: RecordId) {
        let block = self.capture.request;
        let mut record = self.begin(out, Kind::Request, id, block);
        record.id("WARC-Concurrent-To", self.id);
        record.end(block);
    }

    /// Returns the block of the `response` or `revisit` record. For a `revisit` it is only the head
    /// of the response, because the payload is stored already. A reply 304 has no block: pywb
    /// replays the head that it finds in a `revisit`, and a browser shows nothing for a 304, while
    /// without a block it replays the response that the record refers to (WARC 1.1, section 6.7.3,
    /// allows both).
    pub(super) fn response_block(&self) -> &[u8] {
        let Capture { response, head_bytes, unmodified, .. } = self.capture;
        if unmodified.is_some() {
            return &[];
        }
        if self.first.is_some() { &response[..*head_bytes] } else { response }
    }

    /// Returns whether compressing the block of [`Ready::response_block`] would save almost
    /// nothing.
    pub(super) fn is_packed(&self) -> bool {
        self.first.is_none() && self.capture.is_packed()
    }

    /// Appends the fields of the `response` record, or of the `revisit` record if the payload is
    /// stored already.
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
        let mut record = self.begin(out, Kind::Revisit, self.id, block);
        record.digest("WARC-Payload-Digest", &self.digest);
        let is_unmodified = capture.unmodified.is_some();
        record.value("WARC-Profile", if is_unmodified { NOT_MODIFIED } else { IDENTICAL });
        first.id.iter().for_each(|id| _ = record.id("WARC-Refers-To", *id));
        record.text("WARC-Refers-To-Target-URI", first.url);
        record.value("WARC-Refers-To-Date", first.date);
        if !is_unmodified {
            record.value("WARC-Truncated", Truncated::Length.name());
        }
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

    /// Adds the fields about the connection. A certificate that was not verified is recorded,
    /// because the identity of the server is then unknown.
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
