//! What the messages since a snapshot say, sorted to be merged with it.
//!
//! Laws: of the links with one fingerprint the first is kept, of tries and waits the most, of
//! causes the first. What is settled is neither a link nor tried.
//! Cost: all records are kept once, repeats included until [`News::sort`]; sorting is O(n log n).

use crate::cluster::record::{self, Record};
use crate::ground::time::UnixTime;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The memory that a fact takes besides its names, in bytes: their places, and what allocations of
/// them add.
const FACT_BYTES: usize = 80;

/// The news, in the order of the messages until they are sorted.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The encoded links, in order of arrival.
    bytes: Vec<u8>,
    /// The fingerprint of each link, and its place in `bytes`.
    pub(super) links: Sorted<Range<usize>>,
    pub(super) settled: Sorted<()>,
    pub(super) tries: Sorted<u8>,
    pub(super) facts: BTreeSet<(Box<str>, Box<str>)>,
    /// The memory that the facts took when they were added, in bytes.
    facts_bytes: usize,
    pub(super) waits: BTreeMap<Box<str>, UnixTime>,
    pub(super) retired: BTreeMap<Box<str>, Box<str>>,
}

impl News {
    pub(super) fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Link(link) => {
                let start = self.bytes.len();
                record::put_link(&link, &mut self.bytes);
                self.links.items.push((link.fingerprint.0, start..self.bytes.len()));
            }
            Record::Settled(all) => self.settled.items.extend(all.map(|key| (key.0, ()))),
            Record::Tries { fingerprint, tries } => self.tries.items.push((fingerprint.0, tries)),
            Record::Fact { source, target } => {
                if self.facts.insert((source.into(), target.into())) {
                    self.facts_bytes += FACT_BYTES + source.len() + target.len();
                }
            }
            Record::Wait { origin, until } => match self.waits.get_mut(origin) {
                Some(longest) => *longest = until.max(*longest),
                None => drop(self.waits.insert(origin.into(), until)),
            },
            Record::Retired { origin, cause } => {
                if !self.retired.contains_key(origin) {
                    self.retired.insert(origin.into(), cause.into());
                }
            }
        }
    }

    /// Returns the memory that links, facts and settled URLs take, in bytes. The rest is little.
    pub(super) fn bytes(&self) -> usize {
        let links = self.bytes.len() + 24 * self.links.items.len();
        links + self.facts_bytes + 8 * self.settled.items.len()
    }

    /// Sorts everything, and drops repeats and what is settled.
    pub(super) fn sort(&mut self) {
        self.settled.sort_by(|_, _| std::cmp::Ordering::Equal);
        self.links.sort_by(|one, two| one.start.cmp(&two.start));
        self.tries.sort_by(|one, two| two.cmp(one));
        let settled = &self.settled;
        self.links.items.retain(|(key, _)| !settled.contains(*key));
        self.tries.items.retain(|(key, _)| !settled.contains(*key));
    }

    /// Drops the link and the tries of a URL that was settled before.
    pub(super) fn forget(&mut self, key: u64) {
        self.links.forget(key);
        self.tries.forget(key);
    }

    /// Returns the bytes of a link.
    pub(super) fn link(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }
}

/// Values by fingerprint, which are taken in ascending order.
#[derive(Debug)]
pub(super) struct Sorted<V> {
    items: Vec<(u64, V)>,
    /// The index of the next item.
    next: usize,
    /// The indices of items that are skipped, in ascending order.
    gone: Vec<usize>,
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        Self { items: Vec::new(), next: 0, gone: Vec::new() }
    }
}

impl<V: Clone> Sorted<V> {
    /// Sorts by fingerprint, and keeps of each the value that `order` puts first.
    fn sort_by(&mut self, order: impl Fn(&V, &V) -> std::cmp::Ordering) {
        self.items.sort_unstable_by(|(a, one), (b, two)| a.cmp(b).then_with(|| order(one, two)));
        self.items.dedup_by_key(|(key, _)| *key);
    }

    /// Returns whether there is an item of this fingerprint, taken or not.
    pub(super) fn contains(&self, key: u64) -> bool {
        self.find(key).is_ok()
    }

    /// Skips the item of this fingerprint, if there is one. Calls come in ascending order.
    fn forget(&mut self, key: u64) {
        if let Ok(index) = self.find(key) {
            self.gone.push(index);
        }
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        self.items.binary_search_by_key(&key, |(key, _)| *key)
    }

    /// Takes the next item if its fingerprint is below `key`, or if `key` is `None`.
    pub(super) fn below(&mut self, key: Option<u64>) -> Option<(u64, V)> {
        self.next_if(|own| key.is_none_or(|key| own < key))
    }

    /// Takes the next item if it has this fingerprint.
    pub(super) fn at(&mut self, key: u64) -> Option<V> {
        self.next_if(|own| own == key).map(|(_, value)| value)
    }

    fn next_if(&mut self, is_wanted: impl Fn(u64) -> bool) -> Option<(u64, V)> {
        while self.gone.binary_search(&self.next).is_ok() {
            self.next += 1;
        }
        let (key, value) = self.items.get(self.next).filter(|(key, _)| is_wanted(*key))?;
        self.next += 1;
        Some((*key, value.clone()))
    }
}
