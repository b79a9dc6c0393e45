//! The figures of hosts and of their registrable domains.
//!
//! Law: the rows of all hosts, with the row of those that have none of their own, add up to the
//! figures of the job. Cost: about 700 bytes a host, and 8 for each bucket of its sketch.

use super::sketch::Sketch;
use super::uses::Uses;
use crate::ground::map::Map;
use crate::url::domain::registrable;
use std::cmp::Reverse;
use std::rc::Rc;

/// The approximate number of bytes that a host takes, with its domain.
const HOST_BYTES: usize = 700;
/// The name of the row of hosts for which there is no memory.
pub(super) const OTHERS: &str = "(beyond --memory)";

/// The figures of a host, of a domain or of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Requests that were answered, or failed for good.
    pub(super) requests: u64,
    /// Replies that are no redirects, no robots.txt and not tried again.
    pub(super) pages: u64,
    /// The length of all replies, in bytes.
    pub(super) bytes: u64,
    /// Replies with a status from 400 on.
    pub(super) http_errors: u64,
    /// Tries without a reply that could be used.
    pub(super) failed: u64,
    /// URLs that robots.txt forbids, or whose robots.txt can't be fetched.
    pub(super) denied: u64,
    /// When the first and the last line were written, in microseconds since 1970.
    pub(super) first: Option<u64>,
    pub(super) last: u64,
    pub(super) took: Sketch,
    /// What was said of the use of its pages.
    pub(super) uses: Uses,
}

impl Row {
    /// Adds the figures of another row.
    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.http_errors += other.http_errors;
        self.failed += other.failed;
        self.denied += other.denied;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.took.merge(&other.took);
        self.uses.merge(&other.uses);
    }

    /// Notes when a line was written.
    pub(super) fn note_time(&mut self, at: u64) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at);
    }
}

/// A registrable domain.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: String,
    pub(super) hosts: u64,
    pub(super) row: Row,
}

/// The hosts of a job.
#[derive(Debug)]
pub(super) struct Hosts {
    numbers: Map<Rc<str>, u32>,
    rows: Vec<(Rc<str>, Row)>,
    others: Row,
    memory_left: usize,
    /// The number of lines that are of no row of their own.
    pub(super) left_out: u64,
    /// The number of durations that are less exact, because memory is used up.
    pub(super) rounded: u64,
}

impl Hosts {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            numbers: Map::default(),
            rows: Vec::new(),
            others: Row::default(),
            memory_left: memory,
            left_out: 0,
            rounded: 0,
        }
    }

    /// Calls `change` with the row of a host.
    pub(super) fn change(&mut self, host: &str, took: Option<u64>, change: impl FnOnce(&mut Row)) {
        let number = self.number(host);
        let may_grow = self.memory_left > 0;
        let row = match number {
            Some(number) => &mut self.rows[number as usize].1,
            None => {
                self.left_out += 1;
                &mut self.others
            }
        };
        change(row);
        let Some(took) = took else { return };
        match row.took.add(took, may_grow) {
            Some(bytes) => self.memory_left = self.memory_left.saturating_sub(2 * bytes),
            None => self.rounded += 1,
        }
    }

    fn number(&mut self, host: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(host) {
            return Some(*number);
        }
        self.memory_left = self.memory_left.checked_sub(HOST_BYTES + 4 * host.len())?;
        let number = u32::try_from(self.rows.len()).expect("memory ends before");
        let name: Rc<str> = host.into();
        self.numbers.insert(Rc::clone(&name), number);
        self.rows.push((name, Row::default()));
        Some(number)
    }

    /// Returns the number of hosts that have a row.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row of those that have no row of their own, if there are any.
    pub(super) fn others(&self) -> Option<&Row> {
        (self.left_out > 0).then_some(&self.others)
    }

    /// Returns the hosts, those with most requests first.
    pub(super) fn by_requests(&self) -> Vec<(&str, &Row)> {
        let mut rows: Vec<(&str, &Row)> =
            self.rows.iter().map(|(name, row)| (&**name, row)).collect();
        rows.sort_by_key(|(name, row)| (Reverse(row.requests), *name));
        rows
    }

    /// Returns the hosts that say something of the use of their pages, those that say it of most
    /// pages first.
    pub(super) fn by_uses(&self) -> Vec<(&str, &Row)> {
        let mut rows = self.by_requests();
        rows.retain(|(_, row)| row.uses.stated > 0);
        rows.sort_by_key(|(_, row)| Reverse(row.uses.stated));
        rows
    }

    /// Returns the registrable domains, those with most requests first.
    pub(super) fn domains(&self) -> Vec<Domain> {
        let mut hosts: Vec<(&str, u32)> =
            (0..).zip(&self.rows).map(|(at, (name, _))| (registrable(name), at)).collect();
        hosts.sort_unstable();
        let mut domains: Vec<Domain> = Vec::new();
        for (name, at) in hosts {
            if domains.last().is_none_or(|last| last.name != name) {
                let row = Row::default();
                domains.push(Domain { name: name.to_owned(), hosts: 0, row });
            }
            let last = domains.last_mut().expect("just added");
            last.hosts += 1;
            last.row.merge(&self.rows[at as usize].1);
        }
        domains.sort_by(|one, two| {
            (Reverse(one.row.requests), &one.name).cmp(&(Reverse(two.row.requests), &two.name))
        });
        domains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: with any memory, hosts, domains and the rest add up to what was counted.
    #[test]
    fn rows_add_up_within_any_memory() {
        for memory in [0, 700, 20_000, 1 << 20] {
            let mut hosts = Hosts::new(memory);
            for number in 0..500_u64 {
                let host = format!("h{}.d{}.test", number % 100, number % 30);
                hosts.change(&host, Some(1 << (number % 20)), |row| {
                    row.requests += 1;
                    row.bytes += number;
                    row.note_time(1_000 + number);
                });
            }
            let own = hosts.by_requests();
            let mut all = hosts.others().cloned().unwrap_or_default();
            own.iter().for_each(|(_, row)| all.merge(row));
            assert_eq!((all.requests, all.bytes), (500, 499 * 250), "{memory} bytes");
            assert_eq!((all.first, all.last), (Some(1_000), 1_499));
            assert!(own.windows(2).all(|pair| pair[0].1.requests >= pair[1].1.requests));
            let domains = hosts.domains();
            assert_eq!(domains.iter().map(|domain| domain.hosts).sum::<u64>(), own.len() as u64);
            let requests: u64 = domains.iter().map(|domain| domain.row.requests).sum();
            assert_eq!(requests + hosts.left_out, 500);
            assert_eq!(memory == 1 << 20, hosts.left_out == 0 && hosts.rounded == 0);
            assert!(memory < 1 << 20 || domains.len() == 30);
        }
    }
}
