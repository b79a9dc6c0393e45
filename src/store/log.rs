//! The crawl log: one line for each attempt to fetch, in Heritrix's `crawl.log` form.
//!
//! Thirteen fields, separated by spaces; `-` stands for nothing:
//!
//!  1. when the line was written, `2026-11-20T09:38:49.123Z`
//!  2. status, right-aligned to 5: HTTP's, or a negative code of Heritrix's for what went wrong
//!  3. bytes of the response, right-aligned to 10
//!  4. URL, percent-encoded where it isn't visible ASCII
//!  5. path of discovery: a letter a hop (`L` link, `E` embed, `R` redirect, `P` prerequisite, ...)
//!  6. URL of the page it was found on
//!  7. media type, without parameters
//!  8. worker: always `#000`, one thread crawls
//!  9. start of the fetch and its duration in ms, `20261120093849123+45`
//! 10. digest of the payload
//! 11. source tag of the seed
//! 12. annotations, separated by commas
//! 13. JSON, on the rest of the line: `warcFilename` and `warcFileOffset` (of the response, if one
//!     was kept), `server` (the origin), `visit` (which visit of that server, from 1), `conn`
//!     (number of the connection in this run), `sent` (when the request was sent, µs since 1970),
//!     `reason` (in words), `hops` (redirects before this one), `chain` (of a hop: the URL that
//!     its chain of redirects began with), `sitemaps` (that a robots.txt names, those of its first
//!     kilobytes), `detail` and `evidence` (of a reply that can't be read: what is wrong with it,
//!     and its first 64 bytes, escaped as in C; if its head is whole, those at which the framing
//!     of its body breaks)
//!
//! Every request that went out has its line with `sent`: promised and observed gaps can be told
//! from the log alone. After a crash the log may name a record that was cut from its file; what is
//! kept is for the index to say.
//!
//! Laws: a line is one line whatever the network said, and [`parse`] reads back what was written.
//! Cost: about 350 bytes a line, some ten formatted numbers, no allocation once the buffer has
//! grown.

use super::digest::Digest;
use super::text::{Stamps, cut, media_type, push_number, push_visible, push_word, put};
use crate::ground::time::{Civil, UnixTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// URLs in a line are cut here; the archive has them whole.
const URL_BYTES_MAX: usize = 8_192;
/// Sitemaps in a line take no more than this, in bytes.
const SITEMAPS_BYTES_MAX: usize = 4 << 10;
/// Evidence in a line is cut here: 64 bytes, escaped, fit.
const EVIDENCE_BYTES_MAX: usize = 256;
/// Words in a line are cut here.
const WORD_BYTES_MAX: usize = 255;

/// What is written of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Line<'a> {
    /// When the line is written.
    pub time: UnixTime,
    /// HTTP status, or a negative code.
    pub status: i32,
    /// Bytes of the response, head and framing included.
    pub size: Option<u64>,
    /// The URL.
    pub url: &'a str,
    /// Letters of the hops it was discovered by; empty for a seed.
    pub path: &'a str,
    /// The page it was found on.
    pub via: Option<&'a str>,
    /// Content-Type value as it came.
    pub mime: Option<&'a str>,
    /// Start of the fetch and how long it took.
    pub begun: Option<(UnixTime, Duration)>,
    /// Digest of the payload.
    pub digest: Option<Digest>,
    /// Tag of the seed it descends from.
    pub source: Option<&'a str>,
    /// Notes on what happened, one word each.
    pub annotations: &'a [&'a str],
    /// Where the response was stored: file name and offset.
    pub stored: Option<(&'a str, u64)>,
    /// Origin of the server.
    pub server: &'a str,
    /// Which visit of the server this was, from 1.
    pub visit: u64,
    /// Number of the connection in this run.
    pub conn: Option<u64>,
    /// When the request was sent; `None` if none was.
    pub sent: Option<UnixTime>,
    /// Why it came to that status, in words.
    pub reason: Option<&'a str>,
    /// Redirects followed before.
    pub hops: u32,
    /// The URL that its chain of redirects began with.
    pub chain: Option<&'a str>,
    /// Sitemaps that a robots.txt names, those of the first kilobytes.
    pub sitemaps: &'a [&'a str],
    /// What is wrong with a reply that can't be read.
    pub detail: Option<&'a str>,
    /// First bytes of such a reply, escaped.
    pub evidence: Option<&'a str>,
}

/// The printed seconds of the last line: most lines share them with the one before.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// When the line was written.
    written: Stamps,
    /// When the fetch began, often a second earlier.
    begun: Stamps,
}

impl Line<'_> {
    /// Appends the line, its end included.
    pub(super) fn push(&self, out: &mut Vec<u8>, clock: &mut Clock) {
        push_date(out, self.time, &mut clock.written);
        match u64::try_from(self.status) {
            Ok(status) => {
                out.push(b' ');
                push_number(out, status, 5, b' ');
                out.push(b' ');
            }
            Err(_) => put!(out, " {:>5} ", self.status),
        }
        match self.size {
            Some(size) => push_number(out, size, 10, b' '),
            None => out.extend_from_slice(b"         -"),
        }
        out.push(b' ');
        push_word(out, self.url, URL_BYTES_MAX);
        out.push(b' ');
        push_word(out, self.path, WORD_BYTES_MAX);
        out.push(b' ');
        push_word(out, self.via.unwrap_or(""), URL_BYTES_MAX);
        out.push(b' ');
        push_word(out, media_type(self.mime.unwrap_or("")), WORD_BYTES_MAX);
        out.extend_from_slice(b" #000 ");
        self.push_begun(out, &mut clock.begun);
        out.push(b' ');
        match &self.digest {
            Some(digest) => digest.push(out),
            None => out.push(b'-'),
        }
        out.push(b' ');
        push_word(out, self.source.unwrap_or(""), WORD_BYTES_MAX);
        out.push(b' ');
        self.push_annotations(out);
        out.push(b' ');
        serde_json::to_writer(&mut *out, &self.extra()).expect("a vector takes every string");
        out.push(b'\n');
    }

    fn push_begun(&self, out: &mut Vec<u8>, stamps: &mut Stamps) {
        let Some((time, duration)) = self.begun else {
            return out.push(b'-');
        };
        out.extend_from_slice(stamps.digits(time).as_bytes());
        push_millis(out, time);
        out.push(b'+');
        push_number(out, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), 0, b'0');
    }

    fn push_annotations(&self, out: &mut Vec<u8>) {
        if self.annotations.is_empty() {
            out.push(b'-');
        }
        for (place, annotation) in self.annotations.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            for byte in annotation.bytes().take(WORD_BYTES_MAX) {
                push_visible(out, if byte == b',' { b';' } else { byte });
            }
        }
    }

    fn extra(&self) -> Extra<'_> {
        Extra {
            file: self.stored.map(|(file, _)| file.into()),
            offset: self.stored.map(|(_, offset)| offset),
            server: self.server.into(),
            visit: self.visit,
            conn: self.conn,
            sent: self.sent.map(UnixTime::as_micros),
            reason: self.reason.map(|reason| cut(reason, WORD_BYTES_MAX).into()),
            hops: self.hops,
            chain: self.chain.map(|chain| cut(chain, URL_BYTES_MAX).into()),
            sitemaps: sitemaps_within(self.sitemaps),
            detail: self.detail.map(|detail| cut(detail, WORD_BYTES_MAX).into()),
            evidence: self.evidence.map(|evidence| cut(evidence, EVIDENCE_BYTES_MAX).into()),
        }
    }
}

/// As many as fit into [`SITEMAPS_BYTES_MAX`].
fn sitemaps_within<'a>(sitemaps: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut left = SITEMAPS_BYTES_MAX;
    let fits = |url: &&&str| {
        let fits = url.len() <= left;
        left -= if fits { url.len() } else { 0 };
        fits
    };
    sitemaps.iter().take_while(fits).map(|url| Cow::Borrowed(*url)).collect()
}

/// The thirteenth field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra<'a> {
    /// WARC file of the response.
    #[serde(borrow, rename = "warcFilename", skip_serializing_if = "Option::is_none")]
    pub file: Option<Cow<'a, str>>,
    /// Offset of its record there, in bytes.
    #[serde(rename = "warcFileOffset", skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Origin of the server.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// Which visit of the server.
    pub visit: u64,
    /// Number of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// When the request was sent, in microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Why, in words.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Redirects before this one.
    pub hops: u32,
    /// The URL that its chain of redirects began with.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Cow<'a, str>>,
    /// Sitemaps that a robots.txt names.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub sitemaps: Vec<Cow<'a, str>>,
    /// What is wrong with a reply that can't be read.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// First bytes of such a reply, escaped.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Cow<'a, str>>,
}

/// A line read back: as [`Line`], with its words as they stand in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When the line was written, to the millisecond.
    pub time: UnixTime,
    /// HTTP status, or a negative code.
    pub status: i32,
    /// Bytes of the response.
    pub size: Option<u64>,
    /// The URL.
    pub url: &'a str,
    /// Letters of the hops.
    pub path: Option<&'a str>,
    /// The page it was found on.
    pub via: Option<&'a str>,
    /// Media type.
    pub mime: Option<&'a str>,
    /// Start, to the millisecond, and duration, in milliseconds.
    pub begun: Option<(UnixTime, Duration)>,
    /// Digest of the payload, with its label.
    pub digest: Option<&'a str>,
    /// Source tag.
    pub source: Option<&'a str>,
    /// Annotations, separated by commas.
    pub annotations: Option<&'a str>,
    /// The thirteenth field.
    pub extra: Extra<'a>,
}

/// What is wrong with a line: the number of the first field that makes no sense, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// 1 to 13.
    pub field: u8,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a line of a crawl log: field {}", self.field)
    }
}

impl std::error::Error for Malformed {}

/// Reads one line, without its end.
pub fn parse(line: &str) -> Result<Entry<'_>, Malformed> {
    let mut words = Words { rest: line, field: 0 };
    Ok(Entry {
        time: words.read(|word| unix_of(word, &[4, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 1]))?,
        status: words.read(|word| word.parse().ok())?,
        size: words.optional(|word| word.parse().ok())?,
        url: words.read(Some)?,
        path: words.optional(Some)?,
        via: words.optional(Some)?,
        mime: words.optional(Some)?,
        begun: {
            words.read(|word| word.strip_prefix('#')?.parse::<u16>().ok())?;
            words.optional(begun_of)?
        },
        digest: words.optional(Some)?,
        source: words.optional(Some)?,
        annotations: words.optional(Some)?,
        extra: serde_json::from_str(words.rest).map_err(|_| Malformed { field: 13 })?,
    })
}

/// The words of a line, one after the other.
struct Words<'a> {
    rest: &'a str,
    /// Fields read so far.
    field: u8,
}

impl<'a> Words<'a> {
    fn read<T>(&mut self, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, Malformed> {
        self.field += 1;
        let fault = Malformed { field: self.field };
        let (word, rest) = self.rest.trim_start_matches(' ').split_once(' ').ok_or(fault)?;
        self.rest = rest;
        read(word).ok_or(fault)
    }

    /// As `read`; `-` is nothing.
    fn optional<T>(
        &mut self,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        self.read(|word| if word == "-" { Some(None) } else { read(word).map(Some) })
    }
}

/// `20261120093849123+45`.
fn begun_of(word: &str) -> Option<(UnixTime, Duration)> {
    let (start, duration) = word.split_once('+')?;
    let start = unix_of(start, &[4, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 3, 0])?;
    Some((start, Duration::from_millis(duration.parse().ok()?)))
}

/// Year, month, day, hour, minute, second and millisecond as time. `widths` are those of the
/// numbers, each followed by that of its separator.
fn unix_of(text: &str, widths: &[usize; 14]) -> Option<UnixTime> {
    let mut place = 0;
    let mut numbers = [0_u32; 7];
    for (number, width) in numbers.iter_mut().zip(widths.chunks(2)) {
        let digits = text.get(place..place + width[0])?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        *number = digits.parse().ok().filter(|_| plain)?;
        place += width[0] + width[1];
    }
    let [year, month, day, hour, minute, second, ms] = numbers;
    let time = Civil { year, month, day, hour, minute, second }.time();
    let time = time.filter(|_| place == text.len())?;
    Some(UnixTime::from_micros(time.as_micros() + u64::from(ms) * 1_000))
}

/// Appends `2026-11-20T09:38:49.123Z`.
fn push_date(out: &mut Vec<u8>, time: UnixTime, stamps: &mut Stamps) {
    out.extend_from_slice(stamps.iso(time).trim_end_matches('Z').as_bytes());
    out.push(b'.');
    push_millis(out, time);
    out.push(b'Z');
}

/// Appends the millisecond within the second.
fn push_millis(out: &mut Vec<u8>, time: UnixTime) {
    push_number(out, time.as_micros() / 1_000 % 1_000, 3, b'0');
}

#[cfg(test)]
mod tests;
