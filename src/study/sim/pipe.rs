//! The bytes from a server to the crawler on one connection: queued, in flight and arrived.
//!
//! A server queues parcels; what leaves it together is a flight; what the crawler can read at one
//! time is an arrival.
//!
//! Bytes are counted in two ways: nominal (what a real page would have: send windows, line rates
//! and figures use it) and actual (what is moved in memory and read by the crawler). The two are
//! equal in a head; behind it they advance in proportion, so that the end of the head and the last
//! byte arrive when they should.
//!
//! Laws: order is kept; what is read is what was queued, byte for byte, however it is cut; nothing
//! leaves while [`UNREAD_WINDOWS`] windows of the largest size are in flight or unread.

use super::flow::{Burst, Flow, Line, SEGMENT_BYTES, time_of};
use super::gateway::Gateway;
use crate::ground::time::Instant;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes that a server sends: one reply or a part of it.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) bytes: Vec<u8>,
    /// The nominal length in bytes.
    pub(super) nominal: u64,
    /// The length of the reply's head at the front, where nominal and actual bytes are equal.
    pub(super) head: u64,
    /// Whether the reply ends with these bytes.
    pub(super) ends_reply: bool,
}

/// How a connection ends from the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    InOrder,
    Reset,
}

/// A part of a parcel: its nominal bytes `from..to`. The other lengths are the whole parcel's.
#[derive(Clone, Copy, Debug)]
struct Part {
    actual: u64,
    nominal: u64,
    head: u64,
    from: u64,
    to: u64,
    /// Whether a reply ends with this part.
    ends_reply: bool,
}

impl Part {
    /// Returns how many actual bytes of the parcel come before its nominal position `place`.
    fn actual_to(&self, place: u64) -> u64 {
        if place == self.nominal {
            return self.actual;
        }
        if place <= self.head {
            return place;
        }
        let (actual, nominal) = (self.actual - self.head, self.nominal - self.head);
        let share = u128::from(actual) * u128::from(place - self.head) / u128::from(nominal);
        self.head + u64::try_from(share).expect("less than the whole")
    }
}

/// Bytes that have left together and are on their way to the gateway.
#[derive(Debug)]
struct Flight {
    /// When the flight's first byte arrives at the gateway.
    first: Instant,
    burst: Burst,
    trip: Duration,
    /// How much later the flight arrives because a segment was lost; zero if none was.
    lost_by: Duration,
    parts: SmallVec<[Part; 2]>,
    end: Option<End>,
}

/// Bytes that arrive at the crawler at one time, or the end of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    /// Actual bytes still to be read.
    pub(super) actual: usize,
    pub(super) nominal: u64,
    /// Whether a reply ends with these bytes.
    pub(super) ends_reply: bool,
    pub(super) end: Option<End>,
}

/// All bytes of one connection from the server to the crawler, until the crawler has read them.
#[derive(Debug)]
pub(super) struct Pipe {
    flow: Flow,
    /// What is still to be sent of each queued parcel.
    outbox: VecDeque<Part>,
    backlog: u64,
    flying: VecDeque<Flight>,
    flown: Instant,
    pub(super) arriving: VecDeque<Arrival>,
    arrived: Instant,
    /// The actual bytes of each parcel that the crawler has not wholly read.
    bytes: VecDeque<Vec<u8>>,
    /// How many bytes of the first buffer in `bytes` the crawler has read.
    read: usize,
    /// Nominal bytes in flight or unread.
    unread: u64,
}

/// The size of the crawler's receive buffer, as a multiple of the largest window: while so many
/// nominal bytes are in flight or unread, nothing leaves.
const UNREAD_WINDOWS: u64 = 2;
/// The most bytes that arrive at one time where a rate limits them.
const PIECE_BYTES_MAX: u64 = 64 << 10;
/// Where a rate limits bytes, they arrive in pieces that take at most a second divided by this
/// number (unless a piece is a single segment).
const PIECES_A_SECOND: u64 = 10;
/// The least time until a lost segment is sent again (Linux's value; RFC 6298, section 2.4 says a
/// second).
const RETRANSMISSION_MIN: Duration = Duration::from_millis(200);

impl Parcel {
    /// Cuts the parcel to its first `count` actual bytes: at least one, and never all, so that the
    /// reply stays without its end.
    pub(super) fn cut(&mut self, count: usize) {
        let (actual, nominal) = (self.bytes.len() as u64, self.nominal);
        let count = (count as u64).clamp(1, actual - 1);
        let behind = count.saturating_sub(self.head);
        let weight = u128::from(nominal - self.head) * u128::from(behind);
        let share = weight / u128::from((actual - self.head).max(1));
        self.head = self.head.min(count);
        self.nominal = (self.head + u64::try_from(share).expect("less than the whole")).max(1);
        self.bytes.truncate(usize::try_from(count).expect("bytes in memory"));
        self.ends_reply = false;
    }
}

impl Pipe {
    pub(super) fn new(line: &Line) -> Self {
        Self {
            flow: Flow::new(line),
            outbox: VecDeque::new(),
            backlog: 0,
            flying: VecDeque::new(),
            flown: Instant::ZERO,
            arriving: VecDeque::new(),
            arrived: Instant::ZERO,
            bytes: VecDeque::new(),
            read: 0,
            unread: 0,
        }
    }

    /// Queues a parcel for sending.
    pub(super) fn push(&mut self, parcel: Parcel) {
        let Parcel { bytes, nominal, head, ends_reply } = parcel;
        assert!(nominal > 0 && !bytes.is_empty(), "a parcel holds something");
        let actual = bytes.len() as u64;
        assert!(head <= actual.min(nominal), "a head is a part");
        self.backlog += nominal;
        self.outbox.push_back(Part { actual, nominal, head, from: 0, to: nominal, ends_reply });
        self.bytes.push_back(bytes);
    }

    /// Returns how many queued nominal bytes have not left the server.
    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    /// Returns when more bytes may leave the server; `None` if nothing is queued, or if the crawler
    /// has to read first.
    pub(super) fn next(&self, now: Instant, line: &Line) -> Option<Instant> {
        (self.backlog > 0 && !self.is_full(line)).then(|| self.flow.next(now))
    }

    /// Whether the crawler has to read before more bytes may leave the server.
    pub(super) fn is_full(&self, line: &Line) -> bool {
        self.unread >= line.max_bytes.saturating_mul(UNREAD_WINDOWS)
    }

    /// Returns when the last byte sent so far will have left the server.
    pub(super) fn line_free(&self) -> Instant {
        self.flow.line_free()
    }

    /// Sends a burst, if one may leave; returns when its first byte arrives at the gateway. `trip`:
    /// the round-trip time; `is_lost`: whether a segment of the burst is lost.
    pub(super) fn send(
        &mut self,
        now: Instant,
        trip: Duration,
        is_lost: bool,
        line: &Line,
    ) -> Instant {
        let burst = self.flow.send(now, self.backlog, line);
        let mut parts = SmallVec::new();
        let mut left = burst.bytes;
        while left > 0 {
            let part = self.outbox.front_mut().expect("the backlog is the outbox's sum");
            let taken = left.min(part.to - part.from);
            let to = part.from + taken;
            let ends_reply = part.ends_reply && to == part.to;
            parts.push(Part { to, ends_reply, ..*part });
            part.from = to;
            left -= taken;
            if part.from == part.to {
                self.outbox.pop_front();
            }
        }
        self.backlog -= burst.bytes;
        self.unread += burst.bytes;
        let lost_by = if is_lost { RETRANSMISSION_MIN.max(trip * 2) } else { Duration::ZERO };
        self.fly(Flight { first: burst.begins + trip / 2, burst, trip, lost_by, parts, end: None })
    }

    /// Sends the end of the connection behind everything sent; returns when it arrives at the
    /// gateway.
    pub(super) fn send_end(&mut self, now: Instant, trip: Duration, end: End) -> Instant {
        let left = now.max(self.flow.line_free());
        let burst = Burst { bytes: 0, begins: left, ends: left, opens_round: false };
        let lost_by = Duration::ZERO;
        let (first, parts) = (left + trip / 2, SmallVec::new());
        self.fly(Flight { first, burst, trip, lost_by, parts, end: Some(end) })
    }

    fn fly(&mut self, mut flight: Flight) -> Instant {
        self.flown = self.flown.max(flight.first);
        flight.first = self.flown;
        self.flying.push_back(flight);
        self.flown
    }

    /// Passes the first flight through the gateway and schedules the arrival of its bytes.
    pub(super) fn pass(&mut self, gateway: &mut Gateway, line: &Line) {
        let flight = self.flying.pop_front().expect("a flight for each event at the gateway");
        let burst = flight.burst;
        let begins = gateway.pass(flight.first, burst.bytes);
        let rate = match (line.rate, gateway.rate()) {
            (0, rate) | (rate, 0) => rate,
            (one, other) => one.min(other),
        };
        let piece_max = (rate / PIECES_A_SECOND).clamp(SEGMENT_BYTES, PIECE_BYTES_MAX);
        let late = gateway.through(begins, 0).since(flight.first);
        let mut passed = 0;
        for part in &flight.parts {
            let mut from = part.from;
            while from < part.to {
                let least = if rate == 0 { part.to - from } else { piece_max };
                let to = (from + least).min(part.to);
                passed += to - from;
                let alone = flight.first + time_of(passed, line.rate);
                let at = gateway.through(begins, passed).max(alone);
                self.arrived = self.arrived.max(at + flight.lost_by);
                self.arriving.push_back(Arrival {
                    at: self.arrived,
                    actual: usize::try_from(part.actual_to(to) - part.actual_to(from))
                        .expect("bytes in memory"),
                    nominal: to - from,
                    ends_reply: part.ends_reply && to == part.to,
                    end: None,
                });
                from = to;
            }
        }
        if burst.opens_round {
            self.flow.acknowledged(&burst, flight.trip, late + flight.lost_by);
        }
        if !flight.lost_by.is_zero() {
            self.flow.lost();
        }
        if flight.end.is_some() {
            self.arrived = self.arrived.max(flight.first);
            let (at, end) = (self.arrived, flight.end);
            let ends_reply = false;
            self.arriving.push_back(Arrival { at, actual: 0, nominal: 0, ends_reply, end });
        }
    }

    /// Copies bytes that have arrived into `room`, at most `most` of them; returns how many were
    /// copied.
    pub(super) fn read(&mut self, room: &mut [u8], most: usize) -> usize {
        let most = most.min(room.len());
        let mut count = 0;
        while count < most {
            let front = self.bytes.front().expect("what arrives was queued");
            let taken = (most - count).min(front.len() - self.read);
            room[count..count + taken].copy_from_slice(&front[self.read..self.read + taken]);
            count += taken;
            self.read += taken;
            if self.read == front.len() {
                self.bytes.pop_front();
                self.read = 0;
            }
        }
        count
    }

    /// Records that an arrival has been read to its end.
    pub(super) fn done(&mut self, arrival: &Arrival) {
        self.unread -= arrival.nominal;
    }

    /// Returns when the next arrival at the crawler is due; `None` if nothing is on its way from
    /// the gateway.
    pub(super) fn arrives_at(&self) -> Option<Instant> {
        self.arriving.front().map(|arrival| arrival.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Draw, Purpose};
    use super::*;

    /// A head arrives with its own length, however long the body; a cut parcel keeps its
    /// proportions.
    #[test]
    fn a_head_weighs_what_it_is() {
        let part = |nominal| Part {
            actual: 400,
            nominal,
            head: 100,
            from: 0,
            to: nominal,
            ends_reply: true,
        };
        for (nominal, place, expected) in [
            (30_100, 99, 99),
            (30_100, 100, 100),
            (30_100, 199, 100),
            (30_100, 200, 101),
            (30_100, 30_099, 399),
            (30_100, 30_100, 400),
            (100, 100, 400),
            (250, 175, 250),
        ] {
            assert_eq!(part(nominal).actual_to(place), expected, "{place} of {nominal}");
        }
        for (count, nominal, head) in
            [(1, 1, 1), (100, 100, 100), (101, 200, 100), (399, 30_000, 100), (900, 30_000, 100)]
        {
            let bytes = vec![0; 400];
            let mut parcel = Parcel { bytes, nominal: 30_100, head: 100, ends_reply: true };
            parcel.cut(count);
            assert_eq!((parcel.nominal, parcel.head), (nominal, head), "{count} of 400");
            assert_eq!((parcel.bytes.len(), parcel.ends_reply), (count.min(399), false));
        }
    }

    /// Law: however a reply is scaled, cut, lost and delayed, what is read is what was queued, the
    /// nominal lengths add up, and times never go back.
    #[test]
    fn bytes_come_as_they_were_queued() {
        for case in 0..300 {
            let mut draw = Draw::new(case, Purpose::Cuts, 0, 0);
            let rates = [0, 3_000, 200_000, 50_000_000];
            let mut rate = || rates[draw.below(4) as usize];
            let line = Line { first_bytes: 4_000, max_bytes: 30_000, rate: rate() };
            let mut gateway = Gateway::new(rate());
            let mut pipe = Pipe::new(&line);
            let (mut queued, mut weight) = (Vec::new(), 0);
            for _ in 0..1 + draw.below(5) {
                let bytes: Vec<u8> =
                    (0..1 + draw.below(5_000)).map(|_| draw.next() as u8).collect();
                let nominal = 1 + draw.below(40_000);
                queued.extend_from_slice(&bytes);
                weight += nominal;
                let head = draw.below(1 + nominal.min(bytes.len() as u64));
                pipe.push(Parcel { bytes, nominal, head, ends_reply: true });
            }
            let replies = pipe.outbox.len();
            let (mut read, mut weighed, mut ends, mut now) = (Vec::new(), 0, 0, Instant::ZERO);
            let mut last = Instant::ZERO;
            while pipe.backlog() > 0 || !pipe.arriving.is_empty() {
                if let Some(at) = pipe.next(now, &line) {
                    now = at;
                    let trip = Duration::from_micros(draw.below(200_000));
                    pipe.send(now, trip, draw.chance(0.2), &line);
                    pipe.pass(&mut gateway, &line);
                    continue;
                }
                let arrival = pipe.arriving.pop_front().expect("a full pipe has been sent");
                assert!(arrival.at >= last, "case {case}: {arrival:?} after {last}");
                (last, now) = (arrival.at, now.max(arrival.at));
                let mut room = [0; 700];
                let mut left = arrival.actual;
                while left > 0 {
                    let count = pipe.read(&mut room, left);
                    read.extend_from_slice(&room[..count]);
                    left -= count;
                }
                pipe.done(&arrival);
                weighed += arrival.nominal;
                ends += usize::from(arrival.ends_reply);
            }
            assert!(read == queued, "case {case}: other bytes");
            assert_eq!((weighed, ends, pipe.unread), (weight, replies, 0), "case {case}");
        }
    }
}
