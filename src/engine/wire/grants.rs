//! Grants: the connections that may read while memory is tight, and how many bytes each.
//!
//! Connections are paused before the memory budget of replies is used up (see `pause`). What is
//! left of it is lent to connections that hold a part of a reply, so that they can finish it and so
//! free its memory.
//!
//! Laws: when a grant is given, the bytes that are held and those that all grants allow together
//! fit the budget. A server can't keep a grant without sending: it ends if the server is silent, or
//! so slow that the bytes would take more than [`TERM`].
//! Cost: a search of at most [`GRANTS_MAX`] entries for each piece that is received while grants
//! are in use.

use crate::ground::time::Instant;
use std::time::Duration;

/// The most grants at a time. More would hardly finish replies sooner.
const GRANTS_MAX: usize = 64;
/// The time after which a connection loses its grant or the privilege (see `pause`), if it receives
/// no byte.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);
/// The longest time that the bytes of a grant may take, at the rate at which they have arrived so
/// far.
const TERM: Duration = Duration::from_secs(60);

/// All grants, in order of age.
#[derive(Debug, Default)]
pub(super) struct Grants {
    list: Vec<Grant>,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    slot: u32,
    /// How many bytes the connection might receive at first.
    bytes: usize,
    /// How many bytes it may still receive.
    left: usize,
    /// How many bytes of memory each of them takes.
    factor: usize,
    since: Instant,
}

impl Grant {
    /// Returns the most memory that the connection may still take, in bytes. `buffer_bytes` is the
    /// size of a receive buffer.
    fn memory(&self, buffer_bytes: usize) -> usize {
        self.left.saturating_mul(self.factor).saturating_add(buffer_bytes)
    }

    /// Returns whether the bytes arrive so slowly that all of them would take more than [`TERM`].
    fn is_slow(&self, now: Instant) -> bool {
        let age = now.since(self.since);
        let received = (self.bytes - self.left) as u128;
        age >= SILENCE_MAX && received * TERM.as_nanos() < self.bytes as u128 * age.as_nanos()
    }
}

impl Grants {
    /// Returns how many bytes the connection in a slot may receive; `None` if none.
    pub(super) fn left(&self, slot: u32) -> Option<usize> {
        let grant = self.list.iter().find(|grant| grant.slot == slot && grant.left > 0);
        grant.map(|grant| grant.left)
    }

    /// Returns whether the connection in a slot has a grant, which may be used up.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.list.iter().any(|grant| grant.slot == slot)
    }

    /// Returns whether another grant may fit in `room` bytes of memory beside those that there are.
    pub(super) fn has_place(&self, buffer_bytes: usize, room: usize) -> bool {
        self.list.len() < GRANTS_MAX && self.lent(buffer_bytes).saturating_add(buffer_bytes) < room
    }

    /// Returns the most memory that all grants may still take, in bytes.
    fn lent(&self, buffer_bytes: usize) -> usize {
        let each = self.list.iter().map(|grant| grant.memory(buffer_bytes));
        each.fold(0, usize::saturating_add)
    }

    /// Allows the connection in a slot to receive `bytes` bytes, each of which takes `factor` bytes
    /// of memory beside the receive buffer, if that fits in `room` bytes of memory beside all other
    /// grants. An earlier grant of the connection ends.
    pub(super) fn give(
        &mut self,
        slot: u32,
        (bytes, factor): (usize, usize),
        buffer_bytes: usize,
        room: usize,
        now: Instant,
    ) {
        self.end(slot);
        let grant = Grant { slot, bytes, left: bytes, factor, since: now };
        let most = self.lent(buffer_bytes).saturating_add(grant.memory(buffer_bytes));
        if self.list.len() < GRANTS_MAX && most <= room {
            self.list.push(grant);
        }
    }

    /// Notes that the connection in a slot has received `bytes` bytes.
    pub(super) fn spend(&mut self, slot: u32, bytes: usize) {
        if let Some(grant) = self.list.iter_mut().find(|grant| grant.slot == slot) {
            grant.left = grant.left.saturating_sub(bytes);
        }
    }

    /// Ends the grant of the connection in a slot, if it has one.
    pub(super) fn end(&mut self, slot: u32) {
        self.list.retain(|grant| grant.slot != slot);
    }

    /// Ends the grants of connections that are silent or slow. `last_byte` returns when the
    /// connection in a slot has received its last byte.
    pub(super) fn end_slow(&mut self, now: Instant, last_byte: impl Fn(u32) -> Instant) {
        self.list.retain(|grant| {
            let is_silent = last_byte(grant.slot) + SILENCE_MAX <= now;
            !is_silent && !grant.is_slow(now)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    /// Gives a grant with a buffer of 100 bytes, at 0 s. Returns whether it fits.
    fn gives(grants: &mut Grants, slot: u32, size: (usize, usize), room: usize) -> bool {
        grants.give(slot, size, 100, room, at(0));
        grants.left(slot).is_some()
    }

    /// Law: what grants allow fits the room that there was; what is spent or ended is free again.
    #[test]
    fn grants_fit_the_room() {
        let mut grants = Grants::default();
        assert!(gives(&mut grants, 1, (400, 1), 1_000), "500 of 1,000");
        assert!(!gives(&mut grants, 2, (200, 2), 999), "500 more don't fit 999");
        assert!(grants.has_place(100, 1_000), "100 for a buffer, and some bytes");
        assert!(gives(&mut grants, 2, (200, 2), 1_000), "but 1,000");
        assert!(!grants.has_place(100, 1_100) && grants.has_place(100, 1_101));
        assert_eq!([1, 2, 3].map(|slot| grants.left(slot)), [Some(400), Some(200), None]);
        grants.spend(2, 150);
        assert!(gives(&mut grants, 3, (100, 2), 1_000), "300 of 500 are free again");
        grants.spend(1, 399);
        assert_eq!(grants.left(1), Some(1));
        grants.spend(1, 1);
        assert!(grants.left(1).is_none() && grants.has(1), "it is used up");
        grants.end(3);
        assert!(!grants.has(3));
        assert!(gives(&mut grants, 1, (usize::MAX, 2), usize::MAX), "nothing overflows");
        assert!(!grants.has_place(100, usize::MAX));
    }

    #[test]
    fn there_are_not_too_many_grants() {
        let mut grants = Grants::default();
        let given = (0..1_000).filter(|slot| gives(&mut grants, *slot, (1, 1), usize::MAX)).count();
        assert_eq!(given, GRANTS_MAX);
        assert!(!grants.has_place(100, usize::MAX));
        grants.end(0);
        assert!(gives(&mut grants, 1_000, (1, 1), usize::MAX), "a place is free again");
    }

    /// Law: a server keeps a grant only if it sends, and fast enough for the bytes of the grant.
    #[test]
    fn silent_and_slow_connections_lose_their_grants() {
        let mut grants = Grants::default();
        let sends = [(1, 600, 40), (2, 600, 60), (3, 600, 10), (4, 600_000, 600)];
        for (slot, bytes, received) in sends {
            assert!(gives(&mut grants, slot, (bytes, 1), usize::MAX));
            grants.spend(slot, received);
        }
        let last_byte = |slot| if slot == 2 { at(3) } else { at(4) };
        grants.end_slow(at(0) + SILENCE_MAX / 2, |_| at(0));
        assert_eq!([1, 2, 3, 4].map(|slot| grants.has(slot)), [true; 4], "it is too early to say");
        grants.end_slow(at(4), last_byte);
        assert_eq!([1, 2, 3, 4].map(|slot| grants.has(slot)), [true, false, false, false]);
        grants.spend(1, 560);
        grants.end_slow(at(1_000), |_| at(1_000));
        assert!(!grants.has(1), "even one that is used up ends");
    }
}
