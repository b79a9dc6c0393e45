//! The duplicate URL eliminator: each URL passes once.
//!
//! URLs are offered as fingerprints with opaque bytes; those never seen before come out of
//! [`Seen::fresh`], in order of arrival. The two steps are apart because an answer may take a
//! merge with the disk; here all fingerprints are kept in memory and the answer is there at once.
//!
//! Law: of all offers with one fingerprint exactly the first comes out.
//! Cost: one hash probe an offer; 9 to 18 bytes of memory a fingerprint, up to a cap past which
//! [`Seen::is_full`] holds and what is new is dropped and counted, never passed twice.

use crate::map::Set;
use crate::url::Fingerprint;

/// Settings of the station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Fingerprints kept.
    pub urls_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { urls_max: 50_000_000 }
    }
}

/// All fingerprints seen, and the first-timers that wait to be taken.
#[derive(Debug)]
pub struct Seen {
    settings: Settings,
    known: Set<u64>,
    /// First-timers, each a length and its bytes.
    fresh: Vec<u8>,
    /// Where the next one begins.
    next: usize,
    dropped: u64,
}

impl Seen {
    /// Nothing seen.
    pub fn new(settings: Settings) -> Self {
        Self { settings, known: Set::default(), fresh: Vec::new(), next: 0, dropped: 0 }
    }

    /// Offers a URL; if it is new, its `bytes` will come out of [`Seen::fresh`].
    pub fn offer(&mut self, fingerprint: Fingerprint, bytes: &[u8]) {
        if self.is_full() {
            self.dropped += u64::from(!self.known.contains(&fingerprint.0));
        } else if self.known.insert(fingerprint.0) {
            let len = u32::try_from(bytes.len()).expect("URLs are capped");
            self.fresh.extend_from_slice(&len.to_le_bytes());
            self.fresh.extend_from_slice(bytes);
        }
    }

    /// Takes the next first-timer's bytes.
    pub fn fresh(&mut self) -> Option<&[u8]> {
        if self.next == self.fresh.len() {
            self.fresh.clear();
            self.next = 0;
            return None;
        }
        let (head, rest) = self.fresh[self.next..].split_first_chunk().expect("a length");
        let len = u32::from_le_bytes(*head) as usize;
        self.next += head.len() + len;
        Some(&rest[..len])
    }

    /// Whether a fingerprint has been offered before.
    pub fn knows(&self, fingerprint: Fingerprint) -> bool {
        self.known.contains(&fingerprint.0)
    }

    /// Fingerprints kept.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing has been seen.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether the cap on fingerprints is reached.
    pub fn is_full(&self) -> bool {
        self.known.len() >= self.settings.urls_max
    }

    /// New URLs dropped because of that.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn first_timers_come_out_once_and_in_order() {
        let mut seen = Seen::new(Settings::default());
        let (mut model, mut random) = (BTreeSet::new(), 12_345_u64);
        for round in 0..200 {
            let mut expected = Vec::new();
            for _ in 0..50 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key = (random >> 33) % 4_000;
                let bytes = format!("{round}/{key}").into_bytes();
                seen.offer(Fingerprint(key), &bytes);
                if model.insert(key) {
                    expected.push(bytes);
                }
            }
            let mut got = Vec::new();
            while let Some(bytes) = seen.fresh() {
                got.push(bytes.to_vec());
            }
            assert_eq!(got, expected);
        }
        assert_eq!(seen.len(), model.len());
    }

    #[test]
    fn a_full_set_drops_what_is_new_and_counts_it() {
        let mut seen = Seen::new(Settings { urls_max: 2 });
        for key in [1, 2, 3, 1, 3] {
            seen.offer(Fingerprint(key), b"x");
        }
        assert_eq!((seen.len(), seen.dropped()), (2, 2));
        assert!(seen.fresh().is_some() && seen.fresh().is_some() && seen.fresh().is_none());
    }
}
