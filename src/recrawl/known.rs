//! What is known of a page that was fetched.
//!
//! ```text
//! page   VERSION u8 | flags u8 | importance f32 | rate 8 | visited u32 | changed u16, same u16
//!        | digest 20 | captured u32 | gone u8, signals u8, signalled u32
//!        | if flagged: Last-Modified u32 | if flagged: length u8, ETag
//! ```
//! Times are in seconds since 1970. The URL isn't in it.
//!
//! Law: what is read is written as it was; no bytes panic.
//! Cost: 52 bytes, 4 more with Last-Modified, and those of the ETag with its length.

use super::rate::Rate;
use super::worth;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use smallvec::SmallVec;

/// The length of the longest ETag that is kept, in bytes. By a longer one a page isn't asked for.
pub const ETAG_BYTES_MAX: usize = 64;
const VERSION: u8 = 2;
const HAS_MODIFIED: u8 = 1;
const HAS_ETAG: u8 = 2;
const IS_LIST: u8 = 4;
const DAY_S: u32 = 86_400;

/// What is known of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// How important the page is, as a multiple of the mean page's importance.
    pub importance: f32,
    /// Whether it is a sitemap or a feed.
    pub is_list: bool,
    /// The rate at which it changes; of a list, the rate at which pages change or appear, as it
    /// says.
    pub rate: Rate,
    /// When it was visited last.
    pub visited: u32,
    /// How many visits have found another payload; the first isn't among them.
    pub changed: u16,
    /// How many visits have found the same payload.
    pub same: u16,
    /// The SHA-1 of its payload.
    pub digest: [u8; 20],
    /// The date of the record that has the payload, to which revisit records refer.
    pub captured: u32,
    /// How many visits in a row found nothing (404, 410).
    pub gone: u8,
    /// The signals of change since the last visit.
    pub signals: u8,
    /// The time of change that the last signal gave, or 0.
    pub signalled: u32,
    /// The Last-Modified field, if formatting the number gives the field again.
    pub modified: Option<u32>,
    /// The ETag field as received, with quotes and `W/`; empty if there is none.
    pub etag: SmallVec<[u8; 40]>,
}

impl Known {
    /// Returns what decides how much a visit is worth.
    pub fn facts(&self) -> worth::Page {
        let (importance, rate) = (self.importance.into(), self.rate.mean());
        worth::Page { importance, rate, is_list: self.is_list }
    }

    /// Returns the seconds since the last visit.
    pub fn age(&self, now: u32) -> u32 {
        now.saturating_sub(self.visited)
    }

    /// Notes that the page's site says, `now`, that it changed at `modified`. Returns whether that
    /// is a signal: whether the site hadn't named so late a time before, and the page wasn't
    /// visited since. A time of tomorrow, or later, isn't believed.
    pub fn signal(&mut self, modified: u32, now: u32) -> bool {
        // Midnight is a date without a time: it stands for the whole day.
        let is_date = modified.is_multiple_of(DAY_S);
        let latest = modified.saturating_add(if is_date { DAY_S - 1 } else { 0 });
        let is_old = modified <= self.signalled || latest <= self.visited;
        if is_old || modified > now.saturating_add(DAY_S) {
            return false;
        }
        // What is said of a page for the first time may be the change that its visit has found.
        let is_news = self.signalled > 0 || modified > self.visited;
        self.signalled = modified;
        self.signals = self.signals.saturating_add(u8::from(is_news));
        is_news
    }

    /// Notes a visit that found the page, with the digest of its payload or without a payload
    /// (304). `captured` is the date of the new record if it has the payload itself, else 0.
    /// Returns whether the payload is another one. What that says of the rate isn't learnt yet.
    pub fn found(&mut self, now: u32, payload: Option<([u8; 20], u32)>) -> bool {
        let new = payload.filter(|(digest, _)| *digest != self.digest);
        let count = if new.is_some() { &mut self.changed } else { &mut self.same };
        *count = count.saturating_add(1);
        if let Some((digest, captured)) = new {
            (self.digest, self.captured) = (digest, captured);
        } else if let Some((_, captured)) = payload.filter(|_| self.captured == 0) {
            // Until now the archive has no record with the payload.
            self.captured = captured;
        }
        (self.visited, self.gone, self.signals) = (now, 0, 0);
        new.is_some()
    }

    /// Notes a visit that found that there is no such page. Returns how many did in a row.
    pub fn vanished(&mut self, now: u32) -> u8 {
        (self.visited, self.signals) = (now, 0);
        self.gone = self.gone.saturating_add(1);
        self.gone
    }

    /// Appends the page's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let has = |is: bool, flag: u8| if is { flag } else { 0 };
        debug_assert!(self.etag.len() <= ETAG_BYTES_MAX);
        out.put_u8(VERSION);
        let etag = !self.etag.is_empty();
        let optional = has(self.modified.is_some(), HAS_MODIFIED) | has(etag, HAS_ETAG);
        out.put_u8(optional | has(self.is_list, IS_LIST));
        out.put_u32(self.importance.to_bits());
        self.rate.put(out);
        out.put_u32(self.visited);
        out.put_u16(self.changed);
        out.put_u16(self.same);
        out.extend_from_slice(&self.digest);
        out.put_u32(self.captured);
        out.put_u8(self.gone);
        out.put_u8(self.signals);
        out.put_u32(self.signalled);
        if let Some(modified) = self.modified {
            out.put_u32(modified);
        }
        if etag {
            out.put_bytes(&self.etag);
        }
    }

    /// Reads a page.
    ///
    /// # Errors
    /// The bytes are too few, or no page of this version.
    pub fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let (version, flags) = (take.u8()?, take.u8()?);
        if version != VERSION || flags & !(HAS_MODIFIED | HAS_ETAG | IS_LIST) != 0 {
            return Err(Short);
        }
        let importance = f32::from_bits(take.u32()?);
        if !(0.0..=Quality::MAX.millionths() as f32 / 1e6).contains(&importance) {
            return Err(Short);
        }
        let mut known = Self {
            importance,
            is_list: flags & IS_LIST != 0,
            rate: Rate::take(take)?,
            visited: take.u32()?,
            changed: take.u16()?,
            same: take.u16()?,
            digest: take.array()?,
            captured: take.u32()?,
            gone: take.u8()?,
            signals: take.u8()?,
            signalled: take.u32()?,
            modified: None,
            etag: SmallVec::new(),
        };
        if flags & HAS_MODIFIED != 0 {
            known.modified = Some(take.u32()?);
        }
        if flags & HAS_ETAG != 0 {
            let etag = take.bytes()?;
            if etag.is_empty() || etag.len() > ETAG_BYTES_MAX {
                return Err(Short);
            }
            known.etag = SmallVec::from_slice(etag);
        }
        Ok(known)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ground::random::Random;

    pub(crate) fn known() -> Known {
        Known {
            importance: 2.5,
            is_list: false,
            rate: Rate::of_mean(1e-6),
            visited: 1_800_000_000,
            changed: 3,
            same: 9,
            digest: [7; 20],
            captured: 1_700_000_000,
            gone: 0,
            signals: 2,
            signalled: 1_500_000_000,
            modified: Some(1_600_000_000),
            etag: SmallVec::from_slice(b"W/\"abc\""),
        }
    }

    fn bytes_of(known: &Known) -> Vec<u8> {
        let mut out = Vec::new();
        known.encode(&mut out);
        out
    }

    /// Law: no bytes panic, and what is read is written as it was.
    #[test]
    fn any_bytes_are_read_or_refused() {
        let plain = Known { modified: None, etag: SmallVec::new(), ..known() };
        assert_eq!(bytes_of(&plain).len(), 52);
        let list = Known { is_list: true, ..known() };
        let mut random = Random(9);
        for first in [known(), plain, list] {
            assert_eq!(Known::decode(&mut Take::new(&bytes_of(&first))), Ok(first.clone()));
            for _ in 0..20_000 {
                let mut bytes = bytes_of(&first);
                for _ in 0..random.below(4_usize) {
                    let at = random.below(bytes.len());
                    bytes[at] = random.word() as u8;
                }
                let cut = random.below(bytes.len() + 1);
                if let Ok(known) = Known::decode(&mut Take::new(&bytes[..cut])) {
                    assert_eq!(bytes_of(&known), bytes[..bytes_of(&known).len()]);
                }
            }
        }
    }

    #[test]
    fn a_visit_changes_what_is_known() {
        let mut page = known();
        let day = 86_400;
        assert!(!page.found(page.visited + day, None), "304");
        assert_eq!((page.same, page.signals), (10, 0));
        assert!(!page.found(page.visited + day, Some(([7; 20], 5))), "the same payload");
        assert_eq!((page.captured, page.same), (1_700_000_000, 11));
        assert!(page.found(page.visited + day, Some(([8; 20], 5))));
        assert_eq!((page.changed, page.captured), (4, 5));
        assert_eq!((page.vanished(page.visited + day), page.vanished(page.visited)), (1, 2));
        page.found(page.visited + day, None);
        assert_eq!(page.gone, 0);
    }

    #[test]
    fn what_was_said_before_is_no_signal() {
        let mut page = Known { signals: 0, signalled: 0, ..known() };
        let visited = page.visited;
        let (now, today) = (visited + 20, visited - visited % DAY_S);
        let mut fresh = page.clone();
        assert!(!fresh.signal(today, now), "the day of its first visit");
        assert!(!fresh.signal(today, now) && fresh.signals == 0);
        assert!(!page.signal(visited - 5, now), "the visit was later");
        assert!(page.signal(visited + 5, now) && !page.signal(visited + 5, now), "once");
        assert!(!page.signal(visited + 4, now), "another list names an earlier time");
        assert!(page.signal(visited + 6, now) && page.signals == 2, "a later one");
        page.found(visited + 10, None);
        assert!(page.signals == 0 && !page.signal(visited + 7, now));
        assert!(!page.signal(u32::MAX, now) && !page.signal(visited + 2 * DAY_S, now));
        let tomorrow = today + DAY_S;
        assert!(page.signal(tomorrow, tomorrow + 5) && !page.signal(tomorrow, tomorrow + 9));
    }
}
