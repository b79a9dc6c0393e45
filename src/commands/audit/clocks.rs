//! The clocks of all runs: converts the times of one run to the clock of another.
//!
//! The times of a run follow a clock that is never set, so within a run they are exact. Between two
//! runs of a node and between nodes they are compared by the calendar, which the log shows to the
//! millisecond. The calendars of two nodes may differ by the skew.

use super::order::{Clock, Event};

/// How the clock of an earlier time relates to that of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// It is the same.
    Same,
    /// It is that of an earlier run of the same node.
    Restart,
    /// It is another node's.
    Other,
}

/// The runs of all nodes. Times and skew are in microseconds.
#[derive(Debug)]
pub(super) struct Clocks {
    runs: Vec<Run>,
    /// For each node its last run, and when it showed last that it is alive, by the calendar.
    nodes: Vec<(Option<u32>, u64)>,
    skew: u64,
}

#[derive(Debug)]
struct Run {
    node: u32,
    began: u64,
    /// How much later the calendar is than the clock of the run.
    drift: i64,
    /// The sum of that at the ends of the node's earlier runs.
    before: i64,
}

/// How inexact times of the calendar are, in microseconds: it is known to the millisecond.
const SLACK: u64 = 2_000;
/// A node that made no request for this long may have been stopped, so that what it had asked for
/// was answered though it didn't know. In microseconds.
const STILL: u64 = 3_000_000;

impl Clocks {
    pub(super) fn new(nodes: usize, skew: u64) -> Self {
        Self { runs: Vec::new(), nodes: vec![(None, 0); nodes], skew }
    }

    /// Returns the number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Begins a run of a node, and returns its number. `drift` is how much later the calendar was
    /// than the clock of the node's last run at its end.
    pub(super) fn begin_run(&mut self, node: u32, began: u64, drift: i64) -> u32 {
        let number = u32::try_from(self.runs.len()).expect("fewer than 2^32 runs");
        let last = self.nodes[node as usize].0.replace(number);
        let before = last.map_or(0, |last| self.runs[last as usize].before.saturating_add(drift));
        self.runs.push(Run { node, began, drift: 0, before });
        number
    }

    /// Notes what an event shows of its node.
    pub(super) fn note(&mut self, event: &Event) {
        let run = &mut self.runs[event.clock.run as usize];
        run.drift = event.clock.drift();
        let seen = &mut self.nodes[run.node as usize].1;
        *seen = event.calendar().max(*seen);
    }

    pub(super) fn node_of(&self, run: u32) -> u32 {
        self.runs[run as usize].node
    }

    /// Returns when a run began, by its clock.
    pub(super) fn began(&self, run: u32) -> u64 {
        self.runs[run as usize].began
    }

    /// Returns how the clock of a run relates to another one.
    pub(super) fn link(&self, clock: Clock, run: u32) -> Link {
        match () {
            () if clock.run == run => Link::Same,
            () if self.node_of(clock.run) == self.node_of(run) => Link::Restart,
            () => Link::Other,
        }
    }

    /// Converts a time of a run to another clock.
    pub(super) fn convert(&self, clock: Clock, time: u64, run: u32) -> u64 {
        let (from, to) = (&self.runs[run as usize], &self.runs[clock.run as usize]);
        let shift = match self.link(clock, run) {
            Link::Same => 0,
            Link::Restart => to.before.saturating_sub(from.before),
            Link::Other => from.drift.saturating_sub(clock.drift()),
        };
        time.saturating_add_signed(shift)
    }

    /// Returns how much too early or too late a converted time may be.
    pub(super) fn slack(&self, link: Link) -> u64 {
        match link {
            Link::Same => 0,
            Link::Restart => SLACK,
            Link::Other => self.skew.saturating_add(SLACK),
        }
    }

    /// Returns whether the node of a run may have been stopped when an event happened.
    pub(super) fn is_still(&self, event: &Event, run: u32) -> bool {
        let (_, seen) = self.nodes[self.node_of(run) as usize];
        event.calendar().saturating_sub(seen) >= STILL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_by_the_calendar() {
        let mut clocks = Clocks::new(2, 500);
        let first = clocks.begin_run(0, 10, 0);
        let other = clocks.begin_run(1, 20, 0);
        clocks.runs[first as usize].drift = 7_000;
        // The calendar was set forward by 7 ms in the first run, and by 2 ms in the second.
        let second = clocks.begin_run(0, 30, 7_000);
        let third = clocks.begin_run(0, 40, 2_000);
        let clock = |run| Clock { run, drift_ms: 3 };
        let cases = [
            (first, first, Link::Same, 100_000),
            (second, first, Link::Restart, 107_000),
            (third, first, Link::Restart, 109_000),
            (third, second, Link::Restart, 102_000),
            (other, first, Link::Other, 104_000),
            (first, other, Link::Other, 97_000),
        ];
        for (to, from, link, expected) in cases {
            assert_eq!(clocks.link(clock(to), from), link);
            assert_eq!(clocks.convert(clock(to), 100_000, from), expected, "{from} to {to}");
        }
        assert_eq!(clocks.slack(Link::Other), 2_500);
    }
}
