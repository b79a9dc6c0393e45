//! The queue of future events, ordered by time; at one instant, by order of entry.
//!
//! There are two kinds of events: those outside the crawler happen at their own time, whatever the
//! crawler is doing; those for the crawler wait until its core is free.
//!
//! Cost: O(log n) for an event of 32 bytes; n is a few for each open connection.

use crate::engine::contract::queue;
use crate::engine::contract::{Answer, CloseReason, ConnId, Job, LookupId, NameFailure, Scored};
use crate::ground::time::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What happens at an instant.
#[derive(Debug)]
pub(super) enum Event {
    /// Requests that the crawler has sent arrive at the server.
    Requests(ConnId),
    /// A server, or the send window of its connection, has something to do.
    Serve(ConnId),
    /// Bytes arrive at the crawler's gateway.
    Gateway(ConnId),
    /// The crawler receives the answer to a name look-up.
    Named(Box<Named>),
    /// The TCP connection is established, and the TLS handshake begins.
    Opened(ConnId),
    /// The connection is established, TLS included.
    Established(ConnId),
    /// The connection has failed before it was established.
    Failed(ConnId, Box<CloseReason>),
    /// Bytes of a connection, or its end, arrive at the crawler.
    Arrives(ConnId),
    /// A job of the side thread is done.
    Works(Box<Job>),
    /// The program that scores pages has answered.
    Scored(Box<Scored>),
    /// An event of the queue of the cluster arrives on this connection.
    Queue(u64, Box<queue::Event>),
}

impl Event {
    pub(super) fn is_for_crawler(&self) -> bool {
        !matches!(self, Self::Requests(_) | Self::Serve(_) | Self::Gateway(_))
    }
}

/// The result of a name look-up.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) lookup: LookupId,
    pub(super) name: Box<str>,
    pub(super) answer: Result<Answer, NameFailure>,
}

/// All future events.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    sequence: u64,
    event: Event,
}

impl Entry {
    fn order(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl Agenda {
    pub(super) fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    /// Returns the time of the earliest event; `None` if there are no events.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes all events; returns the jobs among them, in order of time.
    pub(super) fn clear(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        while let Some((_, event)) = self.take(Instant::FAR) {
            if let Event::Works(job) = event {
                jobs.push(*job);
            }
        }
        jobs
    }

    /// Removes and returns the earliest event, with its time, if it is due by `until`.
    pub(super) fn take(&mut self, until: Instant) -> Option<(Instant, Event)> {
        if self.next_at()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: events come by time, and at one instant in the order of entry.
    #[test]
    fn events_come_in_order() {
        let mut agenda = Agenda::default();
        let mut expected = Vec::new();
        for generation in 0..200 {
            let at = Instant::from_micros(u64::from(generation * 7919 % 13));
            let conn = ConnId { slot: 0, generation };
            agenda.at(at, Event::Serve(conn));
            expected.push((at, generation));
        }
        expected.sort();
        assert!(agenda.take(Instant::ZERO).is_some() && agenda.next_at() == Some(Instant::ZERO));
        let mut came = vec![expected[0]];
        while let Some((at, Event::Serve(conn))) = agenda.take(Instant::FAR) {
            came.push((at, conn.generation));
        }
        assert_eq!(came, expected);
    }
}
