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
//! The JSON has these members; CRAWL-LOG.md describes them for users:
//! - `warcFilename`, `warcFileOffset`: the record of the response, if it was stored
//! - `server`: the origin
//! - `visit`: which visit of that server, from 1
//! - `conn`: the number of the connection in this run
//! - `run`, `line`: when the run began, which identifies it, and the line's number in it, from 1
//! - `address`: the IP address that was connected to
//! - `request`: which request of its visit it was, from 1
//! - `sent`, `ended`: when the request was sent and when its reply ended, in microseconds since
//!   1970. Within a run they follow the monotonic clock, so they show gaps even if the calendar is
//!   set.
//! - `began`, `owed`, `rule`: of the first request of a visit, when the connection was opened or
//!   used again, the rest that the server was owed since its last visit, in microseconds, and the
//!   rule that it follows from
//! - `retryAfter`: the wait that a Retry-After field asks for, in microseconds
//! - `robots`: the line of robots.txt that decided about the URL; 0 if no rule applies
//! - `rules`, `cut`: the rules of a server whose robots.txt is not in the archive, and whether they
//!   are truncated; the line is that of no fetch and has the status 0
//! - `settings`: on the first line of a run, and after a change: the format of the log and the
//!   politeness settings
//! - `reason`: the reason of the status, in words
//! - `hops`: the number of redirects before this one
//! - `chain`: of a redirect target, the first URL of its chain
//! - `consent`: what was said of the use of the page, as it was written
//! - `allowed`, `reserved`: the purposes for which it may be used, and may not
//! - `canonical`: the URL that the page prefers (rel=canonical), if it isn't its own
//! - `sitemaps`: the sitemaps that a robots.txt names, those of its first kilobytes
//! - `quality`: the quality with which the URL was queued, if it follows from the page that it was
//!   found on
//! - `score`: the quality of the page itself, if it is known
//! - `detail`, `evidence`: of an unreadable reply, what is wrong with it, and its first 64 bytes
//!   with escapes as in C; if its head is complete, the bytes at which the framing of its body is
//!   malformed; of a challenge its product, and how it begins; of a reply 402 the price
//!
//! Every request that was answered has a line with `sent`, so the required and the actual gaps
//! between requests can be checked from the log alone. After a crash the log may name a record that
//! was cut from its file; which records exist is recorded in the index.
//!
//! Laws: whatever the network sends, a line is one line, and [`parse`] reads back what was written.
//! Cost: about 480 bytes a line, some fifteen formatted numbers, no allocation once the buffer has
//! grown.

use super::capture::Usage;
use super::digest::Digest;
use super::text::{Stamps, cut, media_type, push_number, push_visible, push_word, put};
use crate::ground::quality::Quality;
use crate::ground::time::{Civil, UnixTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The maximum length of a URL in a line, in bytes; the archive contains it in full.
const URL_BYTES_MAX: usize = 8_192;
/// The maximum length of all sitemaps in a line, in bytes.
const SITEMAPS_BYTES_MAX: usize = 4 << 10;
/// The maximum length of the evidence in a line, in bytes: 1,000 escaped bytes fit.
const EVIDENCE_BYTES_MAX: usize = 4_000;
/// The maximum length of the rules of a robots.txt in a line, in bytes.
pub const RULES_BYTES_MAX: usize = 4 << 10;
/// The number of this format of the log. Logs of format 1 have neither `run` nor `line`.
pub const FORMAT: u32 = 2;
/// The maximum length of each other word in a line, in bytes.
const WORD_BYTES_MAX: usize = 255;

/// The values from which one line of the crawl log is built.
#[derive(Clone, Debug, Default)]
pub struct Line<'a> {
    /// When the line is written.
    pub time: UnixTime,
    /// The HTTP status, or a negative code of Heritrix for a failure.
    pub status: i32,
    /// The length of the response with head and framing, in bytes; `None` prints `-`.
    pub size: Option<u64>,
    /// The URL that was to be fetched.
    pub url: &'a str,
    /// The path of discovery: one letter for each hop; empty for a seed.
    pub path: &'a str,
    /// The URL of the page on which this URL was found; `None` prints `-`.
    pub via: Option<&'a str>,
    /// The unchanged value of Content-Type; `None` prints `-`.
    pub mime: Option<&'a str>,
    /// The start of the fetch and its duration; `None` prints `-`.
    pub begun: Option<(UnixTime, Duration)>,
    /// The digest of the payload; `None` prints `-`.
    pub digest: Option<Digest>,
    /// The tag of the seed from which the URL was reached; `None` prints `-`.
    pub source: Option<&'a str>,
    /// Annotations, one word each.
    pub annotations: &'a [&'a str],
    /// The name of the WARC file and the offset of the record in it; `None` if nothing was stored.
    pub stored: Option<(&'a str, u64)>,
    /// The origin of the server.
    pub server: &'a str,
    /// The number of the crawler's visit to this server, counted from 1.
    pub visit: u64,
    /// The number of the connection in this run; `None` if there was no connection.
    pub conn: Option<u64>,
    /// The address that was connected to; `None` if there was no connection.
    pub address: Option<IpAddr>,
    /// The number of the request in its visit, counted from 1; 0 if no request was sent.
    pub request: u32,
    /// The time at which the request was sent; `None` if no request was sent.
    pub sent: Option<UnixTime>,
    /// The time at which the reply ended or the connection failed; `None` without a connection.
    pub ended: Option<UnixTime>,
    /// Of the first request of a visit: when the visit began.
    pub began: Option<UnixTime>,
    /// Of the first request of a visit: the rest that was owed since the last one, and its rule.
    pub owed: Option<(Duration, &'a str)>,
    /// The wait that a Retry-After field asks for; `None` if there is none.
    pub retry_after: Option<Duration>,
    /// The line of robots.txt that decided about the URL, 0 if no rule applies; `None` if
    /// robots.txt was not consulted.
    pub robots: Option<u32>,
    /// The rules of a server's robots.txt, and whether they are truncated; `None` for a fetch.
    pub rules: Option<(&'a str, bool)>,
    /// The settings of the run, on its first line.
    pub settings: Option<&'a Politeness<'a>>,
    /// The reason for the status, in words; `None` if the status says all.
    pub reason: Option<&'a str>,
    /// The number of redirects that were followed before this request.
    pub hops: u32,
    /// The first URL of the chain of redirects that led here; `None` if no redirect did.
    pub chain: Option<&'a str>,
    /// What was said of the use of the page; `None` if nothing was.
    pub usage: Option<Usage<'a>>,
    /// The URL that the page prefers; `None` if that is its own, or if it names none.
    pub canonical: Option<&'a str>,
    /// The sitemaps that a robots.txt names in its first kilobytes; empty for other replies.
    pub sitemaps: &'a [&'a str],
    /// The quality with which the URL was queued; `None` if it doesn't follow from how the URL was
    /// found.
    pub quality: Option<Quality>,
    /// The quality of the page itself; `None` if it is not known.
    pub score: Option<Quality>,
    /// What is wrong with an unreadable reply; `None` for other replies.
    pub detail: Option<&'a str>,
    /// The first bytes of an unreadable reply, with escapes; `None` for other replies.
    pub evidence: Option<&'a str>,
}

/// The state of the log between two lines: the place in the run, and the printed seconds of the
/// last line's times, because most lines share them.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// When the run began.
    run: UnixTime,
    /// The number of lines written in the run.
    lines: u64,
    /// The printed second at which the last line was written.
    written: Stamps,
    /// The printed second at which the fetch of the last line began, which is often a second
    /// earlier.
    begun: Stamps,
}

impl Clock {
    /// Returns the clock of a run that begins now.
    pub(super) fn new(run: UnixTime) -> Self {
        Self { run, ..Self::default() }
    }
}

impl Line<'_> {
    /// Appends the log line, with its line end.
    pub(super) fn push(&self, out: &mut Vec<u8>, clock: &mut Clock) {
        clock.lines += 1;
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
        serde_json::to_writer(&mut *out, &self.extra(clock)).expect("a vector takes every string");
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

    fn extra(&self, clock: &Clock) -> Extra<'_> {
        Extra {
            run: Some(clock.run.as_micros()),
            line: Some(clock.lines),
            file: self.stored.map(|(file, _)| file.into()),
            offset: self.stored.map(|(_, offset)| offset),
            server: self.server.into(),
            visit: self.visit,
            conn: self.conn,
            address: self.address,
            request: (self.request > 0).then_some(self.request),
            sent: self.sent.map(UnixTime::as_micros),
            ended: self.ended.map(UnixTime::as_micros),
            began: self.began.map(UnixTime::as_micros),
            owed: self.owed.map(|(owed, _)| micros(owed)),
            rule: self.owed.map(|(_, rule)| rule.into()),
            retry_after: self.retry_after.map(micros),
            robots: self.robots,
            rules: self.rules.map(|(rules, _)| cut(rules, RULES_BYTES_MAX).into()),
            is_cut: self.rules.is_some_and(|(_, is_cut)| is_cut),
            settings: self.settings.cloned(),
            reason: self.reason.map(|reason| cut(reason, WORD_BYTES_MAX).into()),
            hops: self.hops,
            chain: self.chain.map(|chain| cut(chain, URL_BYTES_MAX).into()),
            consent: self
                .usage
                .iter()
                .flat_map(|usage| usage.lines.lines())
                .map(Cow::from)
                .collect(),
            allowed: words(self.usage.map(|usage| usage.allowed)),
            reserved: words(self.usage.map(|usage| usage.reserved)),
            canonical: self.canonical.map(|url| cut(url, URL_BYTES_MAX).into()),
            sitemaps: sitemaps_within(self.sitemaps),
            quality: self.quality,
            score: self.score,
            detail: self.detail.map(|detail| cut(detail, WORD_BYTES_MAX).into()),
            evidence: self.evidence.map(|evidence| cut(evidence, EVIDENCE_BYTES_MAX).into()),
        }
    }
}

/// Returns as many of the sitemaps, from the first on, as fit into [`SITEMAPS_BYTES_MAX`].
fn sitemaps_within<'a>(sitemaps: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut left = SITEMAPS_BYTES_MAX;
    let fits = |url: &&&str| {
        let fits = url.len() <= left;
        left -= if fits { url.len() } else { 0 };
        fits
    };
    sitemaps.iter().take_while(fits).map(|url| Cow::Borrowed(*url)).collect()
}

/// Returns the text if it isn't empty.
fn words(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty()).map(Cow::from)
}

/// Returns a duration in microseconds.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The settings of a run that an auditor needs, and the format of the log. Times are in
/// microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Politeness<'a> {
    /// The number of the format.
    pub format: u32,
    /// Since when the settings apply, in microseconds since 1970.
    pub from: u64,
    /// The name under which robots.txt is obeyed.
    #[serde(borrow)]
    pub product: Cow<'a, str>,
    /// Whether robots.txt is obeyed.
    pub obeys_robots: bool,
    /// The largest number of requests in a visit; 0 means as many as a server allows.
    pub burst: u32,
    /// The rest after a visit for each of its requests.
    pub delay: u64,
    /// The rest after a visit as a multiple of its duration, in thousandths.
    pub delay_factor_milli: u32,
    /// The longest rest that the delay and the factor lead to.
    pub delay_max: u64,
    /// The largest number of simultaneous visits to one address; 0 means no limit.
    pub address_visits_max: u32,
    /// The rest of an address after a visit.
    pub address_delay: u64,
    /// The largest number of simultaneous visits in one registrable domain; 0 means no limit.
    pub domain_visits_max: u32,
    /// The rest of a registrable domain after a visit.
    pub domain_delay: u64,
    /// The hosts and domains that have settings of their own, if some have.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SitePoliteness<'a>>,
}

/// The settings of a host or a domain that differ from those of the run. Of those that match a
/// server, the host or the longest domain applies alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SitePoliteness<'a> {
    /// The host; `None` if it is a domain.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Cow<'a, str>>,
    /// The domain; `None` if it is a host.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Cow<'a, str>>,
    /// The largest number of requests in a visit; 0 means as many as a server allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// The rest after a visit for each of its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// The rest after a visit as a multiple of its duration, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_factor_milli: Option<u32>,
}

/// The JSON in the thirteenth field of a log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra<'a> {
    /// When the run began, in microseconds since 1970; `None` in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The number of the line in the run, counted from 1; `None` in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The settings of the run, on its first line.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Politeness<'a>>,
    /// The name of the WARC file with the response; `None` if nothing was stored.
    #[serde(borrow, rename = "warcFilename", skip_serializing_if = "Option::is_none")]
    pub file: Option<Cow<'a, str>>,
    /// The offset of the response's record in the WARC file, in bytes.
    #[serde(rename = "warcFileOffset", skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The origin of the server.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// The number of the crawler's visit to this server, counted from 1.
    pub visit: u64,
    /// The number of the connection in this run; `None` if there was no connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// The address that was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The number of the request in its visit, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// The time at which the request was sent, in microseconds since 1970; `None` if none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// The time at which the reply ended or the connection failed, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// When the visit began, in microseconds since 1970, on its first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// The rest that was owed before the first request of a visit, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<u64>,
    /// The rule that the rest owed follows from.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Cow<'a, str>>,
    /// The wait that a Retry-After field asks for, in microseconds.
    #[serde(default, rename = "retryAfter", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The line of robots.txt that decided about the URL; 0 if no rule applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<u32>,
    /// The rules of a server's robots.txt.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Cow<'a, str>>,
    /// Whether the rules are truncated.
    #[serde(default, rename = "cut", skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// The reason for the status, in words.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The number of redirects that were followed before this request.
    pub hops: u32,
    /// The first URL of the chain of redirects that led here.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Cow<'a, str>>,
    /// What was said of the use of the page, as it was written.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub consent: Vec<Cow<'a, str>>,
    /// The purposes for which it may be used, separated by spaces.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Cow<'a, str>>,
    /// The purposes for which its use is reserved, separated by spaces.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Cow<'a, str>>,
    /// The URL that the page prefers, if it isn't its own.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<Cow<'a, str>>,
    /// The sitemaps that a robots.txt names.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub sitemaps: Vec<Cow<'a, str>>,
    /// The quality with which the URL was queued, if it follows from how the URL was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// The quality of the page itself, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Quality>,
    /// What is wrong with an unreadable reply.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// The first bytes of an unreadable reply, with escapes.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Cow<'a, str>>,
}

/// A parsed line of the crawl log: the same values as in [`Line`], with words encoded as in the
/// line.
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
    /// The path of discovery: one letter for each hop; `None` if the field is `-`.
    pub path: Option<&'a str>,
    /// The URL of the page on which it was found.
    pub via: Option<&'a str>,
    /// The media type, without parameters.
    pub mime: Option<&'a str>,
    /// The start of the fetch, to the millisecond, and its duration, in whole milliseconds.
    pub begun: Option<(UnixTime, Duration)>,
    /// The digest of the payload, with its label.
    pub digest: Option<&'a str>,
    /// The tag of the seed from which the URL was reached.
    pub source: Option<&'a str>,
    /// The annotations in one text, separated by commas.
    pub annotations: Option<&'a str>,
    /// The JSON in the thirteenth field.
    pub extra: Extra<'a>,
}

/// The error for a malformed line of the crawl log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The number of the first malformed field, from 1 to 13.
    pub field: u8,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a line of a crawl log: field {}", self.field)
    }
}

impl std::error::Error for Malformed {}

/// Parses one line of the crawl log, given without its line end.
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

/// Iterates over the space-separated words of a log line.
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

    /// Parses the next word as a value, as `read` does; returns `None` if the word is `-`.
    fn optional<T>(
        &mut self,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        self.read(|word| if word == "-" { Some(None) } else { read(word).map(Some) })
    }
}

/// Parses a start and a duration in milliseconds, such as `20261120093849123+45`.
fn begun_of(word: &str) -> Option<(UnixTime, Duration)> {
    let (start, duration) = word.split_once('+')?;
    let start = unix_of(start, &[4, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 3, 0])?;
    Some((start, Duration::from_millis(duration.parse().ok()?)))
}

/// Parses a time of year, month, day, hour, minute, second and millisecond. `widths` contains, for
/// each of these numbers, its width and then that of the separator after it.
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

/// Appends a time as `2026-11-20T09:38:49.123Z`.
fn push_date(out: &mut Vec<u8>, time: UnixTime, stamps: &mut Stamps) {
    out.extend_from_slice(stamps.iso(time).trim_end_matches('Z').as_bytes());
    out.push(b'.');
    push_millis(out, time);
    out.push(b'Z');
}

/// Appends the milliseconds of a time within its second.
fn push_millis(out: &mut Vec<u8>, time: UnixTime) {
    push_number(out, time.as_micros() / 1_000 % 1_000, 3, b'0');
}

#[cfg(test)]
mod tests;
