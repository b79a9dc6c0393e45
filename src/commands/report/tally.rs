//! Counts by name, for names that servers or damaged files may choose: a bounded number of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The number of names with a count of their own; others share one.
const NAMES_MAX: usize = 2_000;
/// The maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The name of those that share a count.
pub(super) const OTHER: &str = "(others)";

/// A number of lines and the length of their replies, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Sums by name.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<String, Sum>);

impl Tally {
    /// Counts a line with a reply of this length.
    pub(super) fn add(&mut self, name: &str, bytes: u64) {
        let is_known = self.0.contains_key(name);
        let is_new = self.0.len() < NAMES_MAX && name.len() <= NAME_BYTES_MAX;
        let name = if is_known || is_new { name } else { OTHER };
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Sum::default());
        }
        let sum = self.0.get_mut(name).expect("just added");
        sum.lines += 1;
        sum.bytes += bytes;
    }

    /// Returns the number of lines with a name.
    pub(super) fn lines(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |sum| sum.lines)
    }

    /// Returns the names with their sums, those with most lines first.
    pub(super) fn by_lines(&self) -> Vec<(&str, Sum)> {
        let mut all: Vec<(&str, Sum)> =
            self.0.iter().map(|(name, sum)| (name.as_str(), *sum)).collect();
        all.sort_by_key(|(name, sum)| (Reverse(sum.lines), *name));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_every_line_is_counted() {
        let mut tally = Tally::default();
        (0..5_000).for_each(|number| tally.add(&format!("a/{number}"), 2));
        tally.add(&"x".repeat(300), 2);
        tally.add("a/1", 2);
        let all = tally.by_lines();
        assert_eq!(all.len(), NAMES_MAX + 1);
        assert_eq!((all[0].0, all[1].0), (OTHER, "a/1"));
        let lines: u64 = all.iter().map(|(_, sum)| sum.lines).sum();
        let bytes: u64 = all.iter().map(|(_, sum)| sum.bytes).sum();
        assert_eq!((lines, bytes, tally.lines("a/1")), (5_002, 10_004, 2));
    }
}
