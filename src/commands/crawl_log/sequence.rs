//! The numbers of the lines: which are missing, repeated or out of order.
//!
//! Law: a line that was removed, repeated or moved is noticed, except at the end of a run.

/// What the numbers of the lines show.
#[derive(Debug, Default)]
pub(in crate::commands) struct Sequence {
    /// The run of the last line, and its number.
    last: (u64, u64),
    /// The missing lines, each as a run and the first and last number.
    pub(in crate::commands) holes: Vec<Hole>,
    pub(in crate::commands) runs: u64,
    /// The number of lines that appear again.
    pub(in crate::commands) repeated: u64,
    /// The first line that comes after one with a higher number, and the number of such lines.
    pub(in crate::commands) moved: Option<(Hole, u64)>,
    /// The number of runs of missing lines that are not listed.
    pub(in crate::commands) unlisted: u64,
}

/// Missing lines of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Hole {
    pub(in crate::commands) run: u64,
    pub(in crate::commands) first: u64,
    pub(in crate::commands) last: u64,
}

/// The maximum number of holes that are listed.
const HOLES_MAX: usize = 10_000;

/// Whether a line is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Place {
    /// It is the next line, or lines are missing before it.
    Next,
    /// It is the first line of a run.
    NewRun,
    /// It was read before.
    Repeated,
}

impl Sequence {
    /// Takes the run and the number of a line.
    pub(in crate::commands) fn take(&mut self, run: u64, line: u64) -> Place {
        let (last_run, last_line) = self.last;
        if run != last_run || self.runs == 0 {
            self.runs += 1;
            self.last = (run, line);
            self.add_hole(run, 1, line);
            return Place::NewRun;
        }
        if line > last_line {
            self.last.1 = line;
            self.add_hole(run, last_line + 1, line);
            return Place::Next;
        }
        if self.fill(run, line) {
            let place = Hole { run, first: line, last: last_line };
            self.moved.get_or_insert((place, 0)).1 += 1;
            return Place::Next;
        }
        self.repeated += 1;
        Place::Repeated
    }

    /// Returns the number of missing lines.
    pub(in crate::commands) fn missing(&self) -> u64 {
        self.holes.iter().map(|hole| hole.last - hole.first + 1).sum()
    }

    fn add_hole(&mut self, run: u64, first: u64, next: u64) {
        if next > first && self.holes.len() < HOLES_MAX {
            self.holes.push(Hole { run, first, last: next - 1 });
        } else if next > first {
            self.unlisted += 1;
        }
    }

    /// Removes a line from the missing ones. Returns whether it was among them.
    fn fill(&mut self, run: u64, line: u64) -> bool {
        let is_in = |hole: &Hole| hole.run == run && (hole.first..=hole.last).contains(&line);
        let Some(place) = self.holes.iter().rposition(is_in) else { return false };
        let hole = self.holes.remove(place);
        let halves = [Hole { last: line - 1, ..hole }, Hole { first: line + 1, ..hole }];
        self.holes.extend(halves.into_iter().filter(|half| half.first <= half.last));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64, u64) {
        let mut sequence = Sequence::default();
        lines.iter().for_each(|(run, line)| _ = sequence.take(*run, *line));
        let holes = sequence.holes.iter().map(|hole| (hole.first, hole.last)).collect();
        (holes, sequence.repeated, sequence.moved.map_or(0, |(_, lines)| lines))
    }

    #[test]
    fn what_is_missing_repeated_or_moved_is_noticed() {
        assert_eq!(of(&[(7, 1), (7, 2), (9, 1)]), (vec![], 0, 0));
        assert_eq!(of(&[(7, 1), (7, 3), (7, 7)]), (vec![(2, 2), (4, 6)], 0, 0));
        assert_eq!(of(&[(7, 3), (9, 2)]), (vec![(1, 2), (1, 1)], 0, 0), "it begins later");
        assert_eq!(of(&[(7, 1), (7, 3), (7, 2), (7, 4)]), (vec![], 0, 1));
        assert_eq!(of(&[(7, 1), (7, 2), (7, 2), (7, 1), (7, 3)]), (vec![], 2, 0));
        assert_eq!(of(&[(7, 1), (7, 5), (7, 3)]), (vec![(2, 2), (4, 4)], 0, 1));
    }
}
