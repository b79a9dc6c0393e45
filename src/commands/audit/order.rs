//! Sorts what happened by time: the log has its lines in the order in which they were written.
//!
//! A page has its line only when its links have been found, so lines are slightly out of order.
//! Half of a full buffer is handed out at a time, sorted.
//!
//! Cost: one stable sort of a nearly sorted buffer for each half of it.

/// Something that happened to a server. Times are in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) what: What,
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
    /// The clock of all these times.
    pub(super) clock: Clock,
    pub(super) place: Place,
    pub(super) rule: u8,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A request was sent: its number in its visit, from 1.
    Request(u32),
    /// An address could not be connected to.
    NoConnection,
    /// Rules became known.
    Rules,
    /// A visit began. Only for the audit of several nodes.
    Visit,
}

/// The clock that times follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The number of the run, among those of all nodes.
    pub(super) run: u32,
    /// How much later the calendar was, in milliseconds.
    pub(super) drift_ms: i32,
}

/// A line of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The number of the line in its file, from 1.
    pub(super) line: u32,
    /// The index of the file in its job.
    pub(super) file: u16,
}

impl Clock {
    /// Returns how much later the calendar was, in microseconds.
    pub(super) fn drift(self) -> i64 {
        i64::from(self.drift_ms) * 1_000
    }
}

impl Event {
    /// Returns when the visit began, as far as that is known.
    pub(super) fn visit_began(&self) -> u64 {
        if self.began > 0 { self.began } else { self.at }
    }

    /// Returns when it happened, by the calendar of its node.
    pub(super) fn calendar(&self) -> u64 {
        self.at.saturating_add_signed(self.clock.drift())
    }
}

/// A buffer that sorts the events of one job by time.
#[derive(Debug)]
pub(super) struct Order {
    events: Vec<Event>,
    /// Which events at the beginning of the buffer are sorted and not handed out yet.
    ready: std::ops::Range<usize>,
    /// The number of events that are held to be sorted.
    held_max: usize,
    /// The time of the last event that was sorted in this run.
    passed: u64,
    /// The number of events that came too late to be sorted.
    pub(super) late: u64,
}

impl Order {
    pub(super) fn new(held_max: usize) -> Self {
        Self { events: Vec::new(), ready: 0..0, held_max, passed: 0, late: 0 }
    }

    /// Adds an event. If the buffer is full, the first half of it becomes ready.
    pub(super) fn push(&mut self, event: Event) {
        if event.at < self.passed {
            self.late += 1;
            return;
        }
        self.events.push(event);
        if self.events.len() >= self.held_max && self.ready.is_empty() {
            self.pass(self.events.len() / 2);
        }
    }

    /// Makes all events ready, because the run has ended. None may be ready before.
    pub(super) fn flush(&mut self) {
        self.pass(self.events.len());
        self.passed = 0;
    }

    /// Returns the earliest event that is ready.
    pub(super) fn first(&self) -> Option<&Event> {
        self.events[self.ready.clone()].first()
    }

    /// Takes the earliest event that is ready.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events[self.ready.clone()].first().copied()?;
        self.ready.start += 1;
        if self.ready.is_empty() {
            self.events.drain(..self.ready.end);
            self.ready = 0..0;
        }
        Some(event)
    }

    fn pass(&mut self, count: usize) {
        assert!(self.ready.is_empty(), "what is ready is handed out first");
        self.events.sort_by_key(|event| event.at);
        self.passed = self.events[..count].last().map_or(self.passed, |event| event.at);
        self.ready = 0..count;
    }
}
