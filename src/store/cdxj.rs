//! The index in CDXJ format: one line for each captured response, `SURT timestamp {json}`, sorted
//! by bytes.
//!
//! A line leads from a URL to its record: file, offset and length of the gzip member. Values are
//! strings, as in the indexes of Common Crawl and pywb. A `revisit` record has the media type
//! `warc/revisit`.
//!
//! While a WARC file grows, the lines of its index are appended in order of capture; they are
//! sorted when the WARC file is full, see [`super::job`]. A line also marks its capture as
//! complete: it is written after the records of the capture, and points at the response record,
//! which follows the request record. The next start after a crash reads the lines to find the
//! complete captures.
//! Cost: a line takes about 300 bytes and is written without allocation.

use super::digest::Digest;
use super::surt::Surt;
use super::text::{media_type, put};
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;

/// The values from which an index line is built.
#[derive(Debug)]
pub(super) struct Capture<'a> {
    pub(super) url: &'a str,
    /// The time of the capture, in fourteen digits.
    pub(super) stamp: &'a str,
    /// The unchanged value of Content-Type.
    pub(super) mime: &'a str,
    pub(super) status: u16,
    /// The digest of the payload; `None` if the record does not contain this digest.
    pub(super) digest: Option<&'a Digest>,
    pub(super) revisit: bool,
    /// The name of the WARC file, without its folder.
    pub(super) file: &'a str,
    /// The offset and the length of the response's record in the file, in bytes.
    pub(super) place: (u64, u64),
    /// The reason why the record is incomplete; `None` if it is complete.
    pub(super) truncated: Option<&'a str>,
    /// True if the body was sent in chunks.
    pub(super) chunked: bool,
    /// The target URL of a redirect; `None` if the response is not a redirect.
    pub(super) redirect: Option<&'a str>,
    /// The purposes for which the page may be used, and those for which its use is reserved; both
    /// may be empty.
    pub(super) uses: (&'a str, &'a str),
}

impl Capture<'_> {
    /// Appends the index line of this capture, with its line end.
    pub(super) fn push(&self, out: &mut Vec<u8>, surt: &mut Surt) {
        surt.push(out, self.url);
        let mime = match media_type(self.mime) {
            _ if self.revisit => "warc/revisit",
            "" => "unk",
            mime => mime,
        };
        put!(out, " {} {{\"url\": ", self.stamp);
        push_json(out, self.url);
        out.extend_from_slice(b", \"mime\": ");
        push_json(out, mime);
        put!(out, ", \"status\": \"{}\", \"digest\": \"", self.status);
        match self.digest {
            Some(digest) => digest.push_indexed(out),
            None => out.push(b'-'),
        }
        let ((offset, length), (allowed, reserved)) = (self.place, self.uses);
        put!(out, "\", \"length\": \"{length}\", \"offset\": \"{offset}\"");
        out.extend_from_slice(b", \"filename\": ");
        push_json(out, self.file);
        let framing = self.chunked.then_some("chunked");
        let rest = [
            ("framing", framing),
            ("truncated", self.truncated),
            ("redirect", self.redirect),
            ("allowed", Some(allowed).filter(|words| !words.is_empty())),
            ("reserved", Some(reserved).filter(|words| !words.is_empty())),
        ];
        for (name, value) in rest {
            if let Some(value) = value {
                put!(out, ", \"{name}\": ");
                push_json(out, value);
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

/// A parsed line of the index, which describes one captured response.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sort key of the URL.
    pub surt: &'a str,
    /// The time of the capture, in fourteen digits, UTC.
    pub stamp: &'a str,
    /// The URL.
    pub url: Cow<'a, str>,
    /// The media type, `warc/revisit` for a `revisit` record.
    pub mime: Cow<'a, str>,
    /// The HTTP status.
    pub status: u16,
    /// The digest of the payload, in the text form that the index line has.
    pub digest: Cow<'a, str>,
    /// The name of the WARC file, without its folder.
    pub file: Cow<'a, str>,
    /// The offset of the record in the file, in bytes.
    pub offset: u64,
    /// The length of the record in the file, in bytes.
    pub length: u64,
    /// True if the record is incomplete.
    pub truncated: bool,
    /// True if the body was sent in chunks.
    pub chunked: bool,
}

/// The error for a text that is not a valid index line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a line of a CDXJ index")
    }
}

impl std::error::Error for Malformed {}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    mime: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    digest: Cow<'a, str>,
    #[serde(borrow)]
    filename: Cow<'a, str>,
    #[serde(borrow)]
    offset: Cow<'a, str>,
    #[serde(borrow)]
    length: Cow<'a, str>,
    #[serde(borrow)]
    truncated: Option<Cow<'a, str>>,
    #[serde(borrow)]
    framing: Option<Cow<'a, str>>,
}

/// Parses one index line, given without its line end.
///
/// # Errors
/// Returns [`Malformed`] if the text is not a valid index line.
pub fn parse(line: &str) -> Result<Entry<'_>, Malformed> {
    let mut parts = line.splitn(3, ' ');
    let mut part = || parts.next().ok_or(Malformed);
    let (surt, stamp, json) = (part()?, part()?, part()?);
    let is_key = surt.bytes().all(|byte| !byte.is_ascii_control());
    if !is_key || stamp.len() != 14 || !stamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Malformed);
    }
    let fields: Fields<'_> = serde_json::from_str(json).map_err(|_| Malformed)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| Malformed);
    Ok(Entry {
        surt,
        stamp,
        status: fields.status.parse().map_err(|_| Malformed)?,
        offset: number(&fields.offset)?,
        length: number(&fields.length)?,
        url: fields.url,
        mime: fields.mime,
        digest: fields.digest,
        file: fields.filename,
        truncated: fields.truncated.is_some(),
        chunked: fields.framing.is_some(),
    })
}

fn push_json(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a vector takes every string");
}

#[cfg(test)]
mod tests {
    use super::super::digest::Algorithm;
    use super::*;

    fn line(capture: &Capture<'_>) -> String {
        let mut out = Vec::new();
        capture.push(&mut out, &mut Surt::default());
        String::from_utf8(out).unwrap()
    }

    /// A page lost in a power failure may end inside a later line: the remainder must not be read
    /// as complete.
    #[test]
    fn zeros_in_a_line_are_told() {
        let digest = Algorithm::Sha1Base32.of(b"");
        let whole = line(&Capture {
            url: "http://a.test/b?c",
            stamp: "20261120093849",
            mime: "text/html",
            status: 200,
            digest: Some(&digest),
            revisit: false,
            file: "x.warc.gz",
            place: (512, 1_024),
            truncated: None,
            chunked: false,
            redirect: None,
            uses: ("", ""),
        });
        let whole = whole.strip_suffix('\n').expect("a line has an end");
        assert!(parse(whole).is_ok());
        for from in 0..whole.len() {
            for to in from + 1..=whole.len() {
                let zeros = "\0".repeat(to - from);
                let holed = [&whole[..from], &zeros, &whole[to..]].concat();
                assert_eq!(parse(&holed), Err(Malformed), "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_line_to_the_byte() {
        let digest = Algorithm::Sha1Base32.of(b"");
        let mut capture = Capture {
            url: "http://www.example.com/A?b",
            stamp: "20261120093849",
            mime: "text/html; charset=utf-8",
            status: 200,
            digest: Some(&digest),
            revisit: false,
            file: "sted-20261120093849-00000.warc.gz",
            place: (512, 1_024),
            truncated: None,
            chunked: false,
            redirect: None,
            uses: ("", ""),
        };
        assert_eq!(
            line(&capture),
            "com,example)/a?b 20261120093849 {\"url\": \"http://www.example.com/A?b\", \"mime\": \
             \"text/html\", \"status\": \"200\", \"digest\": \"3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\", \
             \"length\": \"1024\", \"offset\": \"512\", \"filename\": \
             \"sted-20261120093849-00000.warc.gz\"}\n"
        );
        capture.revisit = true;
        capture.truncated = Some("length");
        capture.redirect = Some("/\"\r\n");
        capture.uses = ("search", "ai-train ai-input");
        let line = line(&capture);
        assert!(line.contains("\"mime\": \"warc/revisit\""), "{line}");
        let end = "\"truncated\": \"length\", \"redirect\": \"/\\\"\\r\\n\", \
                   \"allowed\": \"search\", \"reserved\": \"ai-train ai-input\"}\n";
        assert!(line.ends_with(end), "{line}");
    }

    /// Hostile media types stay inside their string, and the line is parsed correctly.
    #[test]
    fn lines_are_read_back() {
        let digest = Algorithm::Sha256Hex.of(b"x");
        for mime in ["text/html", "", "a\"b\\", "x\r\ny", "\u{0} \u{2028}é"] {
            let capture = Capture {
                url: "http://127.0.0.1:81/?q=%22",
                stamp: "20261120093849",
                mime,
                status: 404,
                digest: Some(&digest),
                revisit: false,
                file: "f",
                place: (u64::MAX, 0),
                truncated: Some("time"),
                chunked: true,
                redirect: None,
                uses: ("", ""),
            };
            let line = line(&capture);
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            let entry = parse(line.trim_end_matches('\n')).expect("our own line");
            assert_eq!(entry.mime, if mime.is_empty() { "unk" } else { media_type(mime) });
            assert_eq!((entry.surt, entry.stamp), ("1,0,0,127:81)/?q=\"", "20261120093849"));
            assert_eq!((entry.url.as_ref(), entry.status), (capture.url, 404));
            assert_eq!((entry.offset, entry.length), (u64::MAX, 0));
            assert!(entry.truncated && entry.chunked);
            assert_eq!(entry.digest, digest.to_string());
            for cut in 0..line.len() - 2 {
                let cut = String::from_utf8_lossy(&line.as_bytes()[..cut]).into_owned();
                assert_eq!(parse(&cut), Err(Malformed), "{cut}");
            }
        }
    }
}
