//! The crawler's access line: its link to the network, which has a limited rate and is shared by
//! all connections, first come, first served.
//!
//! Blocks of bytes pass in order of the arrival of their first byte, at the line's rate; a block
//! that arrives more slowly than that is not delayed further. Bytes on their way to the line when
//! the crawler closes their connection never arrive.

use crate::ground::time::Instant;
use std::time::Duration;

/// The crawler's access line, which has a limited rate.
#[derive(Debug)]
pub(super) struct Gateway {
    /// The line's rate in bytes per second; 0 is unlimited.
    rate: u64,
    /// When all bytes accepted so far will have passed the line. In nanoseconds since the start of
    /// the world, because small packets take less than a microsecond.
    free_ns: u64,
}

/// When a block of bytes begins to pass the line, in nanoseconds since the start of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin(u64);

impl Gateway {
    pub(super) fn new(rate: u64) -> Self {
        Self { rate, free_ns: 0 }
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Reserves the line for a block of `bytes` bytes, whose first byte arrives at the line at
    /// `first`; returns when the block begins to pass.
    pub(super) fn pass(&mut self, first: Instant, bytes: u64) -> Begin {
        let first_ns = first.as_micros() * 1_000;
        if self.rate == 0 {
            return Begin(first_ns);
        }
        let begin = first_ns.max(self.free_ns);
        self.free_ns = begin + self.ns_of(bytes);
        Begin(begin)
    }

    /// Returns when the first `bytes` bytes of a block that begins to pass at `begin` have passed.
    pub(super) fn through(&self, begin: Begin, bytes: u64) -> Instant {
        let ns = begin.0 + self.ns_of(bytes);
        Instant::ZERO + Duration::from_micros(ns.div_ceil(1_000))
    }

    fn ns_of(&self, bytes: u64) -> u64 {
        if self.rate == 0 {
            return 0;
        }
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes a second: a byte takes a millisecond.
    #[test]
    fn first_come_first_served() {
        let at = |ms: u64| Instant::from_micros(ms * 1_000);
        let mut line = Gateway::new(1_000);
        let cases = [
            (10, 100, 10, 110, "an idle line takes it at once"),
            (50, 20, 110, 130, "behind what came before"),
            (130, 5, 130, 135, "just free"),
            (500, 1, 500, 501, "idle again"),
            (500, 1, 501, 502, "and taken"),
        ];
        for (first, bytes, begins, ends, why) in cases {
            let begin = line.pass(at(first), bytes);
            assert_eq!(line.through(begin, 0), at(begins), "{why}");
            assert_eq!(line.through(begin, bytes), at(ends), "{why}");
        }
        let mut open = Gateway::new(0);
        for first in [7, 3] {
            let begin = open.pass(at(first), 1 << 30);
            assert_eq!(
                open.through(begin, 1 << 30),
                at(first),
                "an unlimited line holds nobody up"
            );
        }
    }
}
