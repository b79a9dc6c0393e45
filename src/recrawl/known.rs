//! What is known of a page that was fetched.
//!
//! ```text
//! page   VERSION u8 | flags u8 | importance f32 | rate 8 | visited u32 | changed u16, same u16
//!        | digest 20 | captured u32 | gone u8, signals u8
//!        | if flagged: Last-Modified u32 | if flagged: length u8, ETag
//! ```
//! Times are in seconds since 1970. The URL isn't in it.
//!
//! Law: what is read is written as it was; no bytes panic.
//! Cost: 48 bytes, 4 more with Last-Modified, and those of the ETag with its length.

use super::rate::Rate;
use super::worth;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use smallvec::SmallVec;
use std::time::Duration;

/// The length of the longest ETag that is kept, in bytes. By a longer one a page isn't asked for.
pub const ETAG_BYTES_MAX: usize = 64;
const VERSION: u8 = 1;
const HAS_MODIFIED: u8 = 1;
const HAS_ETAG: u8 = 2;

/// What is known of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// How important the page is, as a multiple of the mean page's importance.
    pub importance: f32,
    /// The rate at which it changes.
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
    /// The Last-Modified field, if formatting the number gives the field again.
    pub modified: Option<u32>,
    /// The ETag field as received, with quotes and `W/`; empty if there is none.
    pub etag: SmallVec<[u8; 40]>,
}

impl Known {
    /// Returns what decides how much a visit is worth.
    pub fn facts(&self) -> worth::Page {
        worth::Page { importance: self.importance.into(), rate: self.rate.mean() }
    }

    /// Returns the seconds since the last visit.
    pub fn age(&self, now: u32) -> u32 {
        now.saturating_sub(self.visited)
    }

    /// Notes a visit that found the page, with the digest of its payload or without a payload
    /// (304). `captured` is the date of the new record, if the payload is another one. Returns
    /// whether it is.
    pub fn found(&mut self, now: u32, payload: Option<([u8; 20], u32)>) -> bool {
        let new = payload.filter(|(digest, _)| *digest != self.digest);
        let time = Duration::from_secs(self.age(now).into());
        self.rate = self.rate.observe(time, new.is_some());
        let count = if new.is_some() { &mut self.changed } else { &mut self.same };
        *count = count.saturating_add(1);
        if let Some((digest, captured)) = new {
            (self.digest, self.captured) = (digest, captured);
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
        out.put_u8(has(self.modified.is_some(), HAS_MODIFIED) | has(etag, HAS_ETAG));
        out.put_u32(self.importance.to_bits());
        self.rate.put(out);
        out.put_u32(self.visited);
        out.put_u16(self.changed);
        out.put_u16(self.same);
        out.extend_from_slice(&self.digest);
        out.put_u32(self.captured);
        out.put_u8(self.gone);
        out.put_u8(self.signals);
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
        if version != VERSION || flags & !(HAS_MODIFIED | HAS_ETAG) != 0 {
            return Err(Short);
        }
        let importance = f32::from_bits(take.u32()?);
        if !(0.0..=Quality::MAX.millionths() as f32 / 1e6).contains(&importance) {
            return Err(Short);
        }
        let mut known = Self {
            importance,
            rate: Rate::take(take)?,
            visited: take.u32()?,
            changed: take.u16()?,
            same: take.u16()?,
            digest: take.array()?,
            captured: take.u32()?,
            gone: take.u8()?,
            signals: take.u8()?,
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
            rate: Rate::of_mean(1e-6),
            visited: 1_800_000_000,
            changed: 3,
            same: 9,
            digest: [7; 20],
            captured: 1_700_000_000,
            gone: 0,
            signals: 2,
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
        assert_eq!(bytes_of(&plain).len(), 48);
        let mut random = Random(9);
        for first in [known(), plain] {
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
        let (first, day) = (page.rate.mean(), 86_400);
        assert!(!page.found(page.visited + day, None), "304");
        assert!(page.rate.mean() < first && page.same == 10 && page.signals == 0);
        assert!(!page.found(page.visited + day, Some(([7; 20], 5))), "the same payload");
        assert_eq!((page.captured, page.same), (1_700_000_000, 11));
        let before = page.rate.mean();
        assert!(page.found(page.visited + day, Some(([8; 20], 5))));
        assert!(page.rate.mean() > before && page.changed == 4 && page.captured == 5);
        assert_eq!((page.vanished(page.visited + day), page.vanished(page.visited)), (1, 2));
        page.found(page.visited + day, None);
        assert_eq!(page.gone, 0);
    }
}
