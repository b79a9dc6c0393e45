//! What the messages in the logs of partitions say: records.
//!
//! A payload opens with the node that wrote it, so that an owner can skip its own messages. Then
//! records follow, each complete by itself: a reader may stop after any of them, store its position
//! and continue there later.
//!
//! ```text
//! payload      format u8 | name of the node: bytes | its incarnation u64 | part | record*
//!              format 1: `part` is empty; format 2: it is a part of a snapshot (see `memory`)
//! part         through varint | number varint | whether it is the last u8
//! record       kind u8 | fields
//! LINK (1)     fingerprint u64 | letter u8 | hops u8 | bits u8 | tries u8 | depth varint
//!              | estimate varint, if bit 7 of `bits` is set | URL bytes | page bytes
//! FACT (2)     source bytes | target bytes
//! SETTLED (3)  count varint | width u8 | fingerprint u64 | count - 1 differences of `width` bytes
//! TRIES (4)    fingerprint u64 | tries u8
//! WAIT (5)     origin bytes | time us varint
//! RETIRED (6)  origin bytes | cause bytes
//! ```
//!
//! `bytes` are a length (a varint) and so many bytes of UTF-8. The low seven bits of `bits` are the
//! hops of a requisite. `width` is the least with which the largest difference can be written.
//!
//! Laws: what was written is read again, in order. A reader never panics, reads each byte at most
//! once, and reports damage that it can see with its offset: unknown kinds, lengths above their
//! limits, fingerprints out of order, texts that aren't UTF-8. It doesn't see a changed letter of a
//! URL: checksums are the transport's.
//! Cost: a link takes 16 bytes besides the texts of URL and page, 105 bytes with the URLs of the
//! test below; 18 ns to write and 22 ns to read. A settled URL takes 8 bytes alone, 7 with 10^5
//! others in its record's range, 6 with 10^6; reading allocates nothing.

use super::queue::{Name, Sequence};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::ground::time::UnixTime;
use crate::url::{Fingerprint, URL_BYTES_CAP};
use std::fmt;

#[cfg(test)]
mod tests;

/// The formats of payloads that this version writes and reads.
const PLAIN: u8 = 1;
const PART: u8 = 2;
const LINK: u8 = 1;
const FACT: u8 = 2;
const SETTLED: u8 = 3;
const TRIES: u8 = 4;
const WAIT: u8 = 5;
const RETIRED: u8 = 6;

/// The maximum length of an encoded record, in bytes: a link with the longest texts.
pub const RECORD_BYTES_MAX: usize = 2 * URL_BYTES_CAP + 64;
/// The maximum length of a registrable domain, in bytes.
pub const DOMAIN_BYTES_MAX: usize = 255;
/// The maximum length of an origin (scheme, host and port), in bytes.
pub const ORIGIN_BYTES_MAX: usize = 300;
/// The maximum length of a cause, in bytes. A longer one is cut.
pub const CAUSE_BYTES_MAX: usize = 255;
/// The maximum number of fingerprints in a record.
pub const SETTLED_MAX: usize = 4_096;
/// The bit beside the hops of a requisite that says that an estimate follows.
const HAS_ESTIMATE: u8 = 1 << 7;

/// The node that wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name of the node.
    pub name: Name,
    /// A random number, another one for each process.
    pub incarnation: u64,
}

impl Sender {
    /// Appends the head of a payload that this node writes. Records follow it.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.put_as(PLAIN, out);
    }

    /// Appends the head of a part of a snapshot that this node writes. Records follow it.
    pub fn put_part(&self, part: Part, out: &mut Vec<u8>) {
        self.put_as(PART, out);
        out.put_varint(part.through.0);
        out.put_varint(part.number.into());
        out.put_bool(part.is_last);
    }

    fn put_as(&self, format: u8, out: &mut Vec<u8>) {
        out.put_u8(format);
        out.put_str(self.name.as_str());
        out.put_u64(self.incarnation);
    }
}

/// The place of a payload in a snapshot of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The snapshot says what the log said up to this message.
    pub through: Sequence,
    /// The number of parts before this one.
    pub number: u32,
    /// Whether it is the last part.
    pub is_last: bool,
}

/// What precedes the records of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Who wrote the payload.
    pub sender: Sender,
    /// Which part of a snapshot it is; `None` if it is none.
    pub part: Option<Part>,
}

/// A URL that was found, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The fingerprint of the URL's deduplication key.
    pub fingerprint: Fingerprint,
    /// The canonical URL.
    pub url: &'a str,
    /// The URL of the page that links to it; empty if there is none.
    pub via: &'a str,
    /// The letter of how it was found.
    pub letter: u8,
    /// The number of redirects that led to it.
    pub hops: u8,
    /// The number of hops from the page that it is a requisite of, below 128; 0 for a page.
    pub requisite: u8,
    /// The number of links from a seed.
    pub depth: u16,
    /// How often it was tried.
    pub tries: u8,
    /// The quality that follows from the page that links to it, if that is known.
    pub estimate: Option<Quality>,
}

/// One thing that a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A URL was found.
    Link(Link<'a>),
    /// A page of the registrable domain `source` links to one of `target`.
    Fact {
        /// The domain that links.
        source: &'a str,
        /// The domain that is linked to.
        target: &'a str,
    },
    /// These URLs have their final outcome: fetched, disallowed or given up.
    Settled(Fingerprints<'a>),
    /// A URL was tried without success.
    Tries {
        /// The fingerprint of the URL's deduplication key.
        fingerprint: Fingerprint,
        /// How often it was tried.
        tries: u8,
    },
    /// A server may not be asked before a time.
    Wait {
        /// The server's origin.
        origin: &'a str,
        /// The time.
        until: UnixTime,
    },
    /// A server was given up.
    Retired {
        /// The server's origin.
        origin: &'a str,
        /// Why, for people.
        cause: &'a str,
    },
}

/// The fingerprints of a record, in ascending order without repeats. They are decoded as they are
/// iterated over; their order was checked when the record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprints<'a> {
    /// The next fingerprint, unless there is none.
    next: Option<u64>,
    width: usize,
    differences: &'a [u8],
}

impl Iterator for Fingerprints<'_> {
    type Item = Fingerprint;

    fn next(&mut self) -> Option<Fingerprint> {
        let now = self.next?;
        let mut take = Take::new(self.differences);
        let difference = take.word(self.width).ok().filter(|_| !self.differences.is_empty());
        self.next = difference.and_then(|difference| now.checked_add(difference));
        self.differences = take.rest();
        Some(Fingerprint(now))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.differences.len().checked_div(self.width).unwrap_or(0);
        let count = rest + usize::from(self.next.is_some());
        (count, Some(count))
    }
}

impl ExactSizeIterator for Fingerprints<'_> {}

/// Encoded records, to be appended to a payload.
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where each record ends in `bytes`.
    ends: Vec<usize>,
}

impl Records {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all records; the memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the total length of the records, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of each record.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |index: usize| index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.iter().enumerate().map(move |(index, end)| &self.bytes[start(index)..*end])
    }

    /// Adds a URL that was found.
    ///
    /// # Panics
    ///
    /// If a URL is longer than [`URL_BYTES_CAP`], or `requisite` isn't below 128.
    pub fn link(&mut self, link: &Link<'_>) {
        put_link(link, &mut self.bytes);
        self.end();
    }

    /// Adds that a page of the domain `source` links to the domain `target`.
    ///
    /// # Panics
    ///
    /// If a domain is longer than [`DOMAIN_BYTES_MAX`].
    pub fn fact(&mut self, source: &str, target: &str) {
        put_fact(source, target, &mut self.bytes);
        self.end();
    }

    /// Adds URLs with their final outcome, in as many records as they need. The list is sorted, and
    /// repeats in it are removed.
    pub fn settled(&mut self, fingerprints: &mut Vec<Fingerprint>) {
        fingerprints.sort_unstable();
        fingerprints.dedup();
        for some in fingerprints.chunks(SETTLED_MAX) {
            put_settled(some, &mut self.bytes);
            self.end();
        }
    }

    /// Adds how often a URL was tried.
    pub fn tries(&mut self, fingerprint: Fingerprint, tries: u8) {
        put_tries(fingerprint, tries, &mut self.bytes);
        self.end();
    }

    /// Adds that a server may not be asked before a time.
    ///
    /// # Panics
    ///
    /// If the origin is longer than [`ORIGIN_BYTES_MAX`].
    pub fn wait(&mut self, origin: &str, until: UnixTime) {
        put_wait(origin, until, &mut self.bytes);
        self.end();
    }

    /// Adds that a server was given up. `cause` is cut after [`CAUSE_BYTES_MAX`] bytes.
    ///
    /// # Panics
    ///
    /// If the origin is longer than [`ORIGIN_BYTES_MAX`].
    pub fn retired(&mut self, origin: &str, cause: &str) {
        put_retired(origin, cause, &mut self.bytes);
        self.end();
    }

    fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

pub(super) fn put_link(link: &Link<'_>, out: &mut Vec<u8>) {
    let Link { fingerprint, url, via, letter, hops, requisite, depth, tries, estimate } = *link;
    assert!(requisite < HAS_ESTIMATE, "requisites are at most 15 hops from their page");
    let has_estimate = if estimate.is_some() { HAS_ESTIMATE } else { 0 };
    out.put_u8(LINK);
    out.put_u64(fingerprint.0);
    out.extend_from_slice(&[letter, hops, requisite | has_estimate, tries]);
    out.put_varint(depth.into());
    if let Some(estimate) = estimate {
        out.put_varint(estimate.millionths());
    }
    put_text(url, URL_BYTES_CAP, out);
    put_text(via, URL_BYTES_CAP, out);
}

pub(super) fn put_fact(source: &str, target: &str, out: &mut Vec<u8>) {
    out.put_u8(FACT);
    put_text(source, DOMAIN_BYTES_MAX, out);
    put_text(target, DOMAIN_BYTES_MAX, out);
}

/// Appends one record of 1 to [`SETTLED_MAX`] fingerprints in ascending order without repeats.
pub(super) fn put_settled(sorted: &[Fingerprint], out: &mut Vec<u8>) {
    let Some(first) = sorted.first() else { return };
    assert!(sorted.len() <= SETTLED_MAX, "the caller divides them");
    let differences = || sorted.windows(2).map(|two| two[1].0 - two[0].0);
    let bits = u64::BITS - differences().max().unwrap_or(0).leading_zeros();
    let width = bits.div_ceil(u8::BITS) as usize;
    out.put_u8(SETTLED);
    out.put_varint(sorted.len() as u64);
    out.put_u8(width as u8);
    out.put_u64(first.0);
    differences().for_each(|number| out.extend_from_slice(&number.to_le_bytes()[..width]));
}

pub(super) fn put_tries(fingerprint: Fingerprint, tries: u8, out: &mut Vec<u8>) {
    out.put_u8(TRIES);
    out.put_u64(fingerprint.0);
    out.put_u8(tries);
}

pub(super) fn put_wait(origin: &str, until: UnixTime, out: &mut Vec<u8>) {
    out.put_u8(WAIT);
    put_text(origin, ORIGIN_BYTES_MAX, out);
    out.put_varint(until.as_micros());
}

pub(super) fn put_retired(origin: &str, cause: &str, out: &mut Vec<u8>) {
    out.put_u8(RETIRED);
    put_text(origin, ORIGIN_BYTES_MAX, out);
    let mut end = cause.len().min(CAUSE_BYTES_MAX);
    while !cause.is_char_boundary(end) {
        end -= 1;
    }
    put_text(&cause[..end], CAUSE_BYTES_MAX, out);
}

fn put_text(text: &str, bytes_max: usize, out: &mut Vec<u8>) {
    assert!(text.len() <= bytes_max, "a text of {} bytes, of {bytes_max}", text.len());
    out.put_str(text);
}

/// A defect of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the record that can't be read, in bytes; 0 for the head of the payload.
    pub offset: usize,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// What is wrong with a record or the head of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The payload was written in a format that this version doesn't know.
    Format(u8),
    /// There is no record of this kind.
    Kind(u8),
    /// A value isn't valid, or the payload ends in the middle of one.
    Value,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "is in the unknown format {format}"),
            Self::Kind(kind) => write!(f, "contains a record of the unknown kind {kind}"),
            Self::Value => f.write_str("contains an invalid value"),
        }
    }
}

impl From<Short> for Flaw {
    fn from(Short: Short) -> Self {
        Self::Value
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.flaw)
    }
}

impl std::error::Error for Damage {}

/// Reads the records of a payload one after the other. After damage it yields nothing more.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    payload: &'a [u8],
    /// The offset of the next record.
    position: usize,
}

impl<'a> Reader<'a> {
    /// Begins to read a payload. Returns its head, and the reader of its records.
    ///
    /// # Errors
    /// The head of the payload is damaged or in an unknown format.
    pub fn open(payload: &'a [u8]) -> Result<(Head, Self), Damage> {
        let mut take = Take::new(payload);
        let head = take_head(&mut take).map_err(|flaw| Damage { offset: 0, flaw })?;
        Ok((head, Self::resume(payload, payload.len() - take.rest().len())))
    }

    /// Continues to read a payload at a position that [`Self::position`] returned.
    pub fn resume(payload: &'a [u8], position: usize) -> Self {
        Self { payload, position }
    }

    /// Returns the offset of the next record in the payload, in bytes.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, Damage>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.payload.get(self.position..).filter(|rest| !rest.is_empty())?;
        let mut take = Take::new(rest);
        let record = take_record(&mut take);
        let offset = self.position;
        self.position = match record {
            Ok(_) => self.payload.len() - take.rest().len(),
            Err(_) => self.payload.len(),
        };
        Some(record.map_err(|flaw| Damage { offset, flaw }))
    }
}

fn take_head(take: &mut Take<'_>) -> Result<Head, Flaw> {
    let format = take.u8()?;
    if ![PLAIN, PART].contains(&format) {
        return Err(Flaw::Format(format));
    }
    let name = Name::new(text(take, Name::BYTES_MAX)?).ok_or(Flaw::Value)?;
    let sender = Sender { name, incarnation: take.u64()? };
    let part = match format {
        PART => {
            let (through, number) = (Sequence(take.varint()?), take.number()?);
            Some(Part { through, number, is_last: take.bool()? })
        }
        _ => None,
    };
    Ok(Head { sender, part })
}

fn take_record<'a>(take: &mut Take<'a>) -> Result<Record<'a>, Flaw> {
    let record = match take.u8()? {
        LINK => Record::Link(take_link(take)?),
        FACT => Record::Fact {
            source: text(take, DOMAIN_BYTES_MAX)?,
            target: text(take, DOMAIN_BYTES_MAX)?,
        },
        SETTLED => Record::Settled(take_settled(take)?),
        TRIES => Record::Tries { fingerprint: Fingerprint(take.u64()?), tries: take.u8()? },
        WAIT => Record::Wait {
            origin: text(take, ORIGIN_BYTES_MAX)?,
            until: UnixTime::from_micros(take.varint()?),
        },
        RETIRED => Record::Retired {
            origin: text(take, ORIGIN_BYTES_MAX)?,
            cause: text(take, CAUSE_BYTES_MAX)?,
        },
        kind => return Err(Flaw::Kind(kind)),
    };
    Ok(record)
}

fn take_link<'a>(take: &mut Take<'a>) -> Result<Link<'a>, Flaw> {
    let fingerprint = Fingerprint(take.u64()?);
    let [letter, hops, bits, tries] = take.array()?;
    let depth = take.number()?;
    let has_estimate = bits & HAS_ESTIMATE != 0;
    let millionths = if has_estimate { Some(take.varint()?) } else { None };
    let estimate = millionths.map(Quality::from_millionths);
    if estimate.map(Quality::millionths) != millionths {
        return Err(Flaw::Value);
    }
    let (url, via) = (text(take, URL_BYTES_CAP)?, text(take, URL_BYTES_CAP)?);
    let requisite = bits & !HAS_ESTIMATE;
    Ok(Link { fingerprint, url, via, letter, hops, requisite, depth, tries, estimate })
}

/// Decodes fingerprints after checking that their order is strictly ascending.
fn take_settled<'a>(take: &mut Take<'a>) -> Result<Fingerprints<'a>, Flaw> {
    let count: usize = take.number()?;
    if !(1..=SETTLED_MAX).contains(&count) {
        return Err(Flaw::Value);
    }
    let width = usize::from(take.u8()?);
    let first = take.u64()?;
    if width > size_of::<u64>() || (width == 0) != (count == 1) {
        return Err(Flaw::Value);
    }
    let differences = take.raw((count - 1) * width)?;
    let mut check = Take::new(differences);
    let mut last = first;
    while !check.is_empty() {
        let difference = check.word(width)?;
        last = last.checked_add(difference).filter(|_| difference > 0).ok_or(Flaw::Value)?;
    }
    Ok(Fingerprints { next: Some(first), width, differences })
}

fn text<'a>(take: &mut Take<'a>, bytes_max: usize) -> Result<&'a str, Flaw> {
    let len = take.number()?;
    if len > bytes_max {
        return Err(Flaw::Value);
    }
    std::str::from_utf8(take.raw(len)?).map_err(|_| Flaw::Value)
}
