//! The crawl log: one line for each attempt to fetch, in the format of Heritrix's `crawl.log`.
//!
//! Thirteen fields, separated by spaces; `-` means no value:
//!
//! ```text
//!   1. when the line was written, `2026-11-20T09:38:49.123Z`
//!   2. status, right-aligned to 5: of HTTP, or a negative code of Heritrix for a failure
//!   3. bytes of the response, right-aligned to 10
//!   4. URL, percent-encoded where it isn't visible ASCII
//!   5. path of discovery: a letter a hop (`L` link, `E` embed, `R` redirect, ...)
//!   6. URL of the page it was found on
//!   7. media type, without parameters
//!   8. worker: always `#000`, one thread crawls
//!   9. start of the fetch and its duration in ms, `20261120093849123+45`
//!  10. digest of the payload
//!  11. source tag of the seed
//!  12. annotations, separated by commas
//!  13. JSON, on the rest of the line
//! ```
//!
//! The JSON has these members:
//! - `warcFilename`, `warcFileOffset`: the record of the response, if it was stored
//! - `server`: the origin
//! - `visit`: which visit of that server, from 1
//! - `conn`: the number of the connection in this run
//! - `sent`: when the request was sent, in microseconds since 1970
//! - `reason`: the reason of the status, in words
//! - `hops`: the number of redirects before this one
//! - `chain`: of a redirect target, the first URL of its chain
//! - `sitemaps`: the sitemaps that a robots.txt names, those of its first kilobytes
//! - `detail`, `evidence`: of an unreadable reply, what is wrong with it, and its first 64 bytes
//!   with escapes as in C; if its head is complete, the bytes at which the framing of its body is
//!   malformed
//!
//! Every request that was sent has a line with `sent`, so the required and the actual gaps between
//! requests can be checked from the log alone. After a crash the log may name a record that was cut
//! from its file; which records exist is recorded in the index.
//!
//! Laws: whatever the network sends, a line is one line, and [`parse`] reads back what was written.
//! Cost: about 350 bytes a line, some ten formatted numbers, no allocation once the buffer has
//! grown.

use super::digest::Digest;
use super::text::{Stamps, cut, media_type, push_number, push_visible, push_word, put};
use crate::ground::time::{Civil, UnixTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The maximum length of a URL in a line, in bytes; the archive contains it in full.
const URL_BYTES_MAX: usize = 8_192;
/// The maximum length of all sitemaps in a line, in bytes.
const SITEMAPS_BYTES_MAX: usize = 4 << 10;
/// The maximum length of the evidence in a line, in bytes: 64 escaped bytes fit.
const EVIDENCE_BYTES_MAX: usize = 256;
/// The maximum length of other words in a line, in bytes.
const WORD_BYTES_MAX: usize = 255;

/// The content of a line.
#[derive(Clone, Debug, Default)]
pub struct Line<'a> {
    /// When the line is written.
    pub time: UnixTime,
    /// The HTTP status, or a negative code.
    pub status: i32,
    /// The length of the response with head and framing, in bytes.
    pub size: Option<u64>,
    /// The URL.
    pub url: &'a str,
    /// The letters of the hops by which it was discovered; empty for a seed.
    pub path: &'a str,
    /// The URL of the page on which it was found.
    pub via: Option<&'a str>,
    /// The unchanged value of Content-Type.
    pub mime: Option<&'a str>,
    /// The start of the fetch, and its duration.
    pub begun: Option<(UnixTime, Duration)>,
    /// The digest of the payload.
    pub digest: Option<Digest>,
    /// The tag of the seed from which it was reached.
    pub source: Option<&'a str>,
    /// Annotations, one word each.
    pub annotations: &'a [&'a str],
    /// Where the response was stored: file name and offset.
    pub stored: Option<(&'a str, u64)>,
    /// The origin of the server.
    pub server: &'a str,
    /// The number of the visit of the server, from 1.
    pub visit: u64,
    /// The number of the connection in this run.
    pub conn: Option<u64>,
    /// When the request was sent; `None` if none was.
    pub sent: Option<UnixTime>,
    /// The reason of the status, in words.
    pub reason: Option<&'a str>,
    /// The number of redirects followed before.
    pub hops: u32,
    /// The first URL of its chain of redirects.
    pub chain: Option<&'a str>,
    /// The sitemaps that a robots.txt names in its first kilobytes.
    pub sitemaps: &'a [&'a str],
    /// What is wrong with an unreadable reply.
    pub detail: Option<&'a str>,
    /// The first bytes of an unreadable reply, escaped.
    pub evidence: Option<&'a str>,
}

/// Caches the printed seconds of the last line, which most lines share.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The seconds at which the line was written.
    written: Stamps,
    /// The seconds at which the fetch began, which is often a second earlier.
    begun: Stamps,
}

impl Line<'_> {
    /// Appends the line with its line end.
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

/// Returns as many sitemaps as fit into [`SITEMAPS_BYTES_MAX`].
fn sitemaps_within<'a>(sitemaps: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut left = SITEMAPS_BYTES_MAX;
    let fits = |url: &&&str| {
        let fits = url.len() <= left;
        left -= if fits { url.len() } else { 0 };
        fits
    };
    sitemaps.iter().take_while(fits).map(|url| Cow::Borrowed(*url)).collect()
}

/// The thirteenth field of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra<'a> {
    /// The WARC file of the response.
    #[serde(borrow, rename = "warcFilename", skip_serializing_if = "Option::is_none")]
    pub file: Option<Cow<'a, str>>,
    /// The offset of its record in that file, in bytes.
    #[serde(rename = "warcFileOffset", skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The origin of the server.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// The number of the visit of the server.
    pub visit: u64,
    /// The number of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// When the request was sent, in microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// The reason of the status, in words.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The number of redirects before this one.
    pub hops: u32,
    /// The first URL of its chain of redirects.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Cow<'a, str>>,
    /// The sitemaps that a robots.txt names.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub sitemaps: Vec<Cow<'a, str>>,
    /// What is wrong with an unreadable reply.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// The first bytes of an unreadable reply, escaped.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Cow<'a, str>>,
}

/// A parsed line: like [`Line`], with words as in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When the line was written, to the millisecond.
    pub time: UnixTime,
    /// The HTTP status, or a negative code.
    pub status: i32,
    /// The length of the response, in bytes.
    pub size: Option<u64>,
    /// The URL.
    pub url: &'a str,
    /// The letters of the hops.
    pub path: Option<&'a str>,
    /// The URL of the page on which it was found.
    pub via: Option<&'a str>,
    /// The media type.
    pub mime: Option<&'a str>,
    /// The start, to the millisecond, and the duration, in milliseconds.
    pub begun: Option<(UnixTime, Duration)>,
    /// The digest of the payload, with its label.
    pub digest: Option<&'a str>,
    /// The source tag.
    pub source: Option<&'a str>,
    /// The annotations, separated by commas.
    pub annotations: Option<&'a str>,
    /// The thirteenth field.
    pub extra: Extra<'a>,
}

/// The error for a malformed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The number of the first malformed field, 1 to 13.
    pub field: u8,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a line of a crawl log: field {}", self.field)
    }
}

impl std::error::Error for Malformed {}

/// Parses one line, without its line end.
///
/// # Errors
/// Returns the number of the first malformed field.
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

/// Iterates over the words of a line.
struct Words<'a> {
    rest: &'a str,
    /// The number of fields read so far.
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

    /// Does the same as `read`; `-` is no value.
    fn optional<T>(
        &mut self,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        self.read(|word| if word == "-" { Some(None) } else { read(word).map(Some) })
    }
}

/// Parses `20261120093849123+45`.
fn begun_of(word: &str) -> Option<(UnixTime, Duration)> {
    let (start, duration) = word.split_once('+')?;
    let start = unix_of(start, &[4, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 3, 0])?;
    Some((start, Duration::from_millis(duration.parse().ok()?)))
}

/// Parses year, month, day, hour, minute, second and millisecond. `widths` are those of the
/// numbers, each followed by the width of its separator.
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
