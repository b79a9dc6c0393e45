//! Sorts what happened by time: the log has its lines in the order in which they were written.
//!
//! A page has its line only when its links have been found, so lines are slightly out of order.
//! Half of a full buffer is passed on at a time, sorted.
//!
//! Cost: one stable sort of a nearly sorted buffer for each half of it.

/// Something that happened to a server. Times are in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// When it happened: a request was sent, or rules became known.
    pub(super) at: u64,
    /// When the reply ended.
    pub(super) ended: u64,
    /// When the visit began, if it is its first request; else 0.
    pub(super) began: u64,
    /// The rest that the log says was owed; only for the first request of a visit.
    pub(super) owed: u64,
    /// The wait that a Retry-After field asks for; for rules: the Crawl-delay.
    pub(super) wait: u64,
    pub(super) server: u32,
    /// The index of the address; `u32::MAX` if it isn't known.
    pub(super) address: u32,
    pub(super) visit: u32,
    /// The number of the request in its visit; 0 for rules that become known.
    pub(super) request: u32,
    /// The number of the line in its file, from 1.
    pub(super) line: u32,
    /// The index of the file.
    pub(super) file: u16,
    pub(super) rule: u8,
}

/// The number of events that are held to be sorted.
const HELD_MAX: usize = 1 << 18;

/// A buffer that sorts events by time.
#[derive(Debug, Default)]
pub(super) struct Order {
    events: Vec<Event>,
    /// The time of the last event that was passed on in this run.
    passed: u64,
    /// The number of events that came too late to be sorted.
    pub(super) late: u64,
}

impl Order {
    /// Adds an event. If the buffer is full, passes the first half of it to `sink`.
    pub(super) fn push(&mut self, event: Event, sink: &mut impl FnMut(&Event)) {
        if event.at < self.passed {
            self.late += 1;
            return;
        }
        self.events.push(event);
        if self.events.len() >= HELD_MAX {
            self.pass(HELD_MAX / 2, sink);
        }
    }

    /// Passes all events to `sink`, because the run has ended.
    pub(super) fn flush(&mut self, sink: &mut impl FnMut(&Event)) {
        self.pass(self.events.len(), sink);
        self.passed = 0;
    }

    fn pass(&mut self, count: usize, sink: &mut impl FnMut(&Event)) {
        self.events.sort_by_key(|event| event.at);
        self.events[..count].iter().for_each(&mut *sink);
        self.passed = self.events[..count].last().map_or(self.passed, |event| event.at);
        self.events.drain(..count);
    }
}
