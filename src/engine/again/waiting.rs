//! Signals that haven't reached their pages yet (see `signals`).
//!
//! Memory: 16 bytes and their part of a map for each, at most [`WAITING_MAX`] that are gathered and
//! as many that are delivered.

use crate::engine::status::Visits;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::recrawl::calendar::Pass;
use crate::url::Fingerprint;
use std::time::Duration;

/// The most signals that are gathered.
const WAITING_MAX: usize = 100_000;
/// The longest time between two passes, in seconds.
pub(super) const PASS_S_MAX: u32 = 3_600;

/// Signals that haven't reached their pages, by the fingerprints of the URLs.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) gathered: Map<u64, u32>,
    /// Those that the pass under way delivers, or those of the last one: a page that has come up
    /// takes its own.
    pub(super) delivered: Map<u64, u32>,
    pub(super) pass: Option<Pass>,
    /// When the pass goes on.
    pub(super) next_step: Option<Instant>,
    /// When the next pass may begin, in seconds since 1970.
    pub(super) next_pass: u32,
}

impl Signals {
    /// Adds a signal: its list says that a page changed at `modified`.
    pub(super) fn add(&mut self, page: Fingerprint, modified: u32, counts: &mut Visits) {
        if self.gathered.len() >= WAITING_MAX && !self.gathered.contains_key(&page.0) {
            counts.signals_dropped += 1;
            return;
        }
        let latest = self.gathered.entry(page.0).or_default();
        *latest = modified.max(*latest);
    }

    /// Returns the time of change that is said of a page.
    pub(super) fn of(&self, page: Fingerprint) -> Option<u32> {
        let found = self.gathered.get(&page.0).max(self.delivered.get(&page.0));
        found.copied()
    }

    /// Returns whether no signal waits, so that no page needs to be looked at.
    pub(super) fn is_empty(&self) -> bool {
        self.gathered.is_empty() && self.delivered.is_empty()
    }

    /// Returns when there is something to do. If half of the places are taken, a pass begins at
    /// once.
    pub(super) fn deadline(&self, at: Instant, now: u32) -> Option<Instant> {
        if self.pass.is_some() {
            return self.next_step;
        }
        let is_crowded = self.gathered.len() >= WAITING_MAX / 2;
        // The calendar's clock may go back.
        let wait = self.next_pass.saturating_sub(now).min(PASS_S_MAX);
        let wait = Duration::from_secs(if is_crowded { 0 } else { wait.into() });
        (!self.gathered.is_empty()).then(|| at + wait)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint((self.gathered.len() + self.delivered.len()) as u64);
        for (page, modified) in self.gathered.iter().chain(&self.delivered) {
            out.put_u64(*page);
            out.put_u32(*modified);
        }
    }

    /// Reads what [`Self::encode`] has written: all signals are gathered, up to their bound.
    ///
    /// # Errors
    /// The bytes are too few.
    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let mut signals = Self::default();
        for _ in 0..take.varint()? {
            let (page, modified) = (take.u64()?, take.u32()?);
            if signals.gathered.len() >= WAITING_MAX && !signals.gathered.contains_key(&page) {
                continue;
            }
            let latest = signals.gathered.entry(page).or_default();
            *latest = modified.max(*latest);
        }
        Ok(signals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What doesn't fit is counted; what is kept is the latest time for each page, and outlives a
    /// checkpoint whether it is being delivered or not.
    #[test]
    fn signals_wait_up_to_their_bound() {
        let (mut signals, mut counts) = (Signals::default(), Visits::default());
        for page in 0..WAITING_MAX as u64 + 7 {
            signals.add(Fingerprint(page), 5, &mut counts);
        }
        signals.add(Fingerprint(3), 9, &mut counts);
        signals.add(Fingerprint(3), 4, &mut counts);
        assert_eq!((signals.gathered.len(), counts.signals_dropped), (WAITING_MAX, 7));
        signals.delivered = std::mem::take(&mut signals.gathered);
        signals.add(Fingerprint(3), 7, &mut counts);
        signals.add(Fingerprint(u64::MAX), 6, &mut counts);
        let mut bytes = Vec::new();
        signals.encode(&mut bytes);
        let restored = Signals::decode(&mut Take::new(&bytes)).expect("it was encoded");
        for signals in [signals, restored] {
            assert_eq!(signals.of(Fingerprint(3)), Some(9));
            assert_eq!(signals.of(Fingerprint(WAITING_MAX as u64 + 3)), None);
        }
        assert_eq!(Signals::decode(&mut Take::new(&bytes[..bytes.len() - 1])).err(), Some(Short));
    }
}
