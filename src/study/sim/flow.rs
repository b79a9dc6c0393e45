//! The send window of one connection: how many bytes may leave a server, and when. The server's
//! line is its link to the network, which may have a limited rate.
//!
//! Time is divided into rounds. In a round at most a window of bytes leaves; the next round begins
//! when the first of them have been acknowledged (after a round trip and their wait at the
//! crawler's gateway) and the server's line is free again. The window doubles after a round that
//! used it up, until it fills the line, makes its bytes wait for more than a round trip at the
//! gateway (whose queue is no longer than that), or reaches its maximum. It halves with a loss;
//! after a second of silence it starts at the initial size again.
//!
//! Source: RFC 5681, sections 3.1 (slow start) and 4.1 (restart); RFC 6928 (initial window).

use crate::ground::time::Instant;
use std::time::Duration;

/// What limits how fast a server sends on a connection: its windows and its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The initial window in bytes.
    pub(super) first_bytes: u64,
    /// The largest window in bytes.
    pub(super) max_bytes: u64,
    /// The rate of the server's line in bytes per second; 0 is unlimited.
    pub(super) rate: u64,
}

/// Bytes that leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) bytes: u64,
    /// When the first of the bytes leaves.
    pub(super) begins: Instant,
    /// When the last of the bytes has left.
    pub(super) ends: Instant,
    /// Whether this burst is the first of its round, whose acknowledgement ends the round.
    pub(super) opens_round: bool,
}

/// The state of one connection's sender.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    window: u64,
    /// The bytes that may still leave in this round.
    room: u64,
    /// When the next round begins; `FAR` while that is unknown.
    round_until: Instant,
    line_free: Instant,
    /// Whether the last round used up its window while the line was not full.
    grows: bool,
}

/// The size of one segment in bytes: the smallest window.
pub(super) const SEGMENT_BYTES: u64 = 1_460;
/// After this much silence a window starts at the initial size again: the least retransmission
/// timeout allowed (RFC 6298, section 2.4).
const RESTART: Duration = Duration::from_secs(1);

impl Flow {
    pub(super) fn new(line: &Line) -> Self {
        Self {
            window: line.first_bytes.max(SEGMENT_BYTES),
            room: 0,
            round_until: Instant::ZERO,
            line_free: Instant::ZERO,
            grows: false,
        }
    }

    /// Returns when more bytes may leave: `now` if the round has room, else when the next round
    /// begins.
    pub(super) fn next(&self, now: Instant) -> Instant {
        if self.room > 0 { now } else { self.round_until.max(now) }
    }

    /// Lets as many of `queued` bytes leave as the round allows; [`Flow::next`] must be `now`.
    pub(super) fn send(&mut self, now: Instant, queued: u64, line: &Line) -> Burst {
        let opens_round = now >= self.round_until;
        if opens_round {
            self.begin_round(now, line);
        }
        let bytes = queued.min(self.room);
        let begins = now.max(self.line_free);
        let ends = begins + time_of(bytes, line.rate);
        self.room -= bytes;
        self.line_free = ends;
        if !opens_round && self.round_until != Instant::FAR {
            self.round_until = self.round_until.max(ends);
        }
        Burst { bytes, begins, ends, opens_round }
    }

    /// Schedules the acknowledgement of the burst that opened the round: after a round trip of
    /// `trip` plus `late`, the delay at the gateway and by losses.
    pub(super) fn acknowledged(&mut self, burst: &Burst, trip: Duration, late: Duration) {
        self.round_until = (burst.begins + trip + late).max(self.line_free);
        let fills = burst.ends.since(burst.begins) >= trip && burst.ends > burst.begins;
        self.grows = !fills && late <= trip;
    }

    /// Records that a segment of the round was lost.
    pub(super) fn lost(&mut self) {
        self.window = (self.window / 2).max(SEGMENT_BYTES);
        self.room = self.room.min(self.window);
        self.grows = false;
    }

    /// Returns when the last byte sent so far will have left the server.
    pub(super) fn line_free(&self) -> Instant {
        self.line_free
    }

    fn begin_round(&mut self, now: Instant, line: &Line) {
        if now.since(self.round_until.max(self.line_free)) > RESTART {
            self.window = self.window.min(line.first_bytes.max(SEGMENT_BYTES));
        } else if self.room == 0 && self.grows {
            self.window = (self.window * 2).min(line.max_bytes.max(self.window));
        }
        self.room = self.window;
        self.grows = false;
        self.round_until = Instant::FAR;
    }
}

/// Returns the time that `bytes` take at `rate` bytes per second; zero if `rate` is 0 (unlimited).
pub(super) fn time_of(bytes: u64, rate: u64) -> Duration {
    if rate == 0 {
        return Duration::ZERO;
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    /// Sends all of `queued` from `now` on; returns for each burst its bytes and when it begins, in
    /// ms.
    fn sent(flow: &mut Flow, now: Instant, queued: u64, line: &Line) -> Vec<(u64, u64)> {
        let (mut now, mut left, mut bursts) = (now, queued, Vec::new());
        while left > 0 {
            now = flow.next(now);
            let burst = flow.send(now, left, line);
            if burst.opens_round {
                flow.acknowledged(&burst, TRIP, Duration::ZERO);
            }
            left -= burst.bytes;
            bursts.push((burst.bytes, burst.begins.as_micros() / 1_000));
        }
        bursts
    }

    #[test]
    fn windows_double_until_they_fill_the_line() {
        let line = |max_bytes, rate| Line { first_bytes: 10_000, max_bytes, rate };
        type Bursts = &'static [(u64, u64)];
        let cases: [(Line, Bursts, &str); 4] = [
            (
                line(1 << 20, 0),
                &[(10_000, 0), (20_000, 100), (40_000, 200), (30_000, 300)],
                "RFC 5681 3.1: doubled each round trip",
            ),
            (
                line(20_000, 0),
                &[(10_000, 0), (20_000, 100), (20_000, 200), (20_000, 300), (20_000, 400)],
                "up to the bound",
            ),
            (
                line(1 << 20, 150_000),
                &[(10_000, 0), (20_000, 100), (20_000, 233), (20_000, 366), (20_000, 499)],
                "20,000 bytes take 133 ms, longer than a round trip: the line is full",
            ),
            (line(1 << 20, 1 << 40), &[(10_000, 0), (20_000, 100)], "a rate that bounds nothing"),
        ];
        for (line, expected, why) in cases {
            let queued = expected.iter().map(|(bytes, _)| bytes).sum();
            assert_eq!(sent(&mut Flow::new(&line), at(0), queued, &line), expected, "{why}");
        }
    }

    #[test]
    fn windows_shrink_with_losses_and_silence() {
        let line = Line { first_bytes: 10_000, max_bytes: 1 << 20, rate: 0 };
        let mut flow = Flow::new(&line);
        sent(&mut flow, at(0), 30_000, &line);
        assert_eq!(sent(&mut flow, at(200), 40_000, &line), [(40_000, 200)], "kept");
        flow.lost();
        let halved = sent(&mut flow, at(400), 60_000, &line);
        assert_eq!(halved, [(20_000, 400), (40_000, 500)], "half of 40,000, then doubled");
        let again = sent(&mut flow, at(1_700), 10_001, &line);
        assert_eq!(again, [(10_000, 1_700), (1, 1_800)], "RFC 5681 4.1: more than a second idle");
        for _ in 0..20 {
            flow.lost();
        }
        let least = sent(&mut flow, at(2_000), 2_000, &line);
        assert_eq!(least, [(SEGMENT_BYTES, 2_000), (540, 2_100)], "never below a segment");
    }

    /// What is queued while the round has room leaves at once.
    #[test]
    fn a_round_has_room_for_later_replies() {
        let line = Line { first_bytes: 10_000, max_bytes: 1 << 20, rate: 0 };
        let mut flow = Flow::new(&line);
        assert_eq!(sent(&mut flow, at(0), 4_000, &line), [(4_000, 0)]);
        assert_eq!(sent(&mut flow, at(30), 7_000, &line), [(6_000, 30), (1_000, 100)]);
        assert_eq!(sent(&mut flow, at(130), 19_000, &line), [(19_000, 130)], "20,000 in all");
    }
}
