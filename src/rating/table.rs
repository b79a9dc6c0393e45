//! A table of qualities that are known before the crawl, by URL and by host.
//!
//! The entry of a URL takes precedence over that of its host. The table is read-only during the
//! crawl and may be shared; what a crawl found in it is counted separately, by [`Lookups`].
//!
//! Only fingerprints of the texts are stored, 64 bits under the table's key. So a URL that isn't
//! listed is mistaken for a listed one with a probability of entries / 2^64: with ten million
//! entries, in one of 1.8 * 10^12 look-ups. Two of n entries are mistaken for one with a
//! probability of n^2 / 2^65: of ten million, three in a million. Without knowing the key nobody
//! can increase these probabilities.
//!
//! Law: the answers are those of a map of texts; the last insertion of a text counts.
//! Cost: 16 bytes a slot in a table at most three quarters full, so 21.3 bytes an entry if parsed
//! from text (ten million: 213 MB), up to 33 if inserted one by one. A look-up is two hashes and
//! two short probe sequences, one if the table has only URLs or only hosts.

use crate::ground::quality::Quality;
use crate::url::{Fingerprinter, UrlRef};
use std::cell::Cell;
use std::sync::Arc;

/// A table of qualities by URL and by host.
#[derive(Clone, Debug)]
pub struct Table {
    fingerprinter: Fingerprinter,
    /// The slots of a hash table with open addressing and linear probing. The home slot of an entry
    /// is its fingerprint scaled to the number of slots, so that entries are nearly sorted by
    /// fingerprint.
    slots: Vec<Slot>,
    urls: usize,
    hosts: usize,
    repeats: u64,
    zeroed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The fingerprint of a URL or a host; 0 in a free slot.
    fingerprint: u64,
    quality: Quality,
}

impl Default for Table {
    fn default() -> Self {
        Self::new([0; 16])
    }
}

impl Table {
    /// Creates an empty table. `key` is the hash key of the fingerprints; it should be that of the
    /// crawl, unless all crawled sites are trusted.
    pub fn new(key: [u8; 16]) -> Self {
        let fingerprinter = Fingerprinter::new(key);
        Self { fingerprinter, slots: Vec::new(), urls: 0, hosts: 0, repeats: 0, zeroed: 0 }
    }

    /// Sets the quality of a URL. The last call for a URL counts.
    pub fn insert(&mut self, url: UrlRef<'_>, quality: Quality) {
        if self.set(url.as_str(), quality) {
            self.urls += 1;
        }
    }

    /// Sets the quality of a host's URLs that have no entry of their own, whatever their scheme and
    /// port; the last insertion counts. `host` is in the form of a canonical URL.
    pub fn insert_host(&mut self, host: &str, quality: Quality) {
        assert!(!host.contains('/'), "hosts and URLs are told apart by their slashes");
        if self.set(host, quality) {
            self.hosts += 1;
        }
    }

    /// Returns the quality of a URL; `None` if neither the URL nor its host is in the table.
    pub fn of(&self, url: UrlRef<'_>) -> Option<Quality> {
        self.find(url).map(|slot| self.slots[slot].quality)
    }

    /// Returns the number of entries, of URLs and of hosts.
    pub fn len(&self) -> usize {
        self.urls + self.hosts
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of insertions that replaced an earlier one.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Returns the number of lines of [`Table::parse`] whose score is above zero but below half a
    /// millionth, and was rounded to zero: scores should be scaled to a mean of one.
    pub fn zeroed(&self) -> u64 {
        self.zeroed
    }

    /// Counts a line of the file for [`Table::zeroed`].
    pub(super) fn note_zeroed(&mut self) {
        self.zeroed += 1;
    }

    /// Reserves space for exactly `entries` more entries.
    pub(super) fn reserve(&mut self, entries: usize) {
        let slots = slots_for(self.len() + entries);
        if slots > self.slots.len() {
            self.resize(slots);
        }
    }

    /// Returns the slot of the entry that applies to a URL; `None` if there is none.
    fn find(&self, url: UrlRef<'_>) -> Option<usize> {
        let own = if self.urls > 0 { self.slot(url.as_str()).ok() } else { None };
        match own {
            None if self.hosts > 0 => self.slot(url.host()).ok(),
            _ => own,
        }
    }

    /// Sets the quality of a URL or a host; returns whether the entry is new.
    fn set(&mut self, text: &str, quality: Quality) -> bool {
        let fingerprint = self.fingerprint(text);
        if let Ok(slot) = self.slot(text) {
            self.slots[slot].quality = quality;
            self.repeats += 1;
            return false;
        }
        if slots_for(self.len() + 1) > self.slots.len() {
            self.resize(self.slots.len() / 2 * 3 + 8);
        }
        let slot = self.slot(text).expect_err("it wasn't there a moment ago");
        self.slots[slot] = Slot { fingerprint, quality };
        true
    }

    /// Returns the slot of the entry for a text; if there is none, returns the free slot for it as
    /// the error. The table must have a free slot, or no slots at all.
    fn slot(&self, text: &str) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        walk(&self.slots, self.fingerprint(text))
    }

    /// Returns the fingerprint of a text; never 0, which marks a free slot.
    fn fingerprint(&self, text: &str) -> u64 {
        self.fingerprinter.of(text.as_bytes()).0.max(1)
    }

    fn resize(&mut self, slots: usize) {
        let mut larger = vec![Slot::default(); slots];
        for entry in self.slots.iter().filter(|slot| slot.fingerprint != 0) {
            let free = walk(&larger, entry.fingerprint).expect_err("each entry stands once");
            larger[free] = *entry;
        }
        self.slots = larger;
    }
}

/// Returns the number of slots to allocate for `entries` entries. A quarter of them stays free, and
/// at least one slot, so that every probe sequence ends.
fn slots_for(entries: usize) -> usize {
    entries + entries / 3 + 1
}

/// Searches the entry with this fingerprint from its home slot on. Returns its slot, or the first
/// free slot as the error.
fn walk(slots: &[Slot], fingerprint: u64) -> Result<usize, usize> {
    let home = (u128::from(fingerprint) * slots.len() as u128) >> 64;
    let mut at = usize::try_from(home).expect("below the number of slots");
    loop {
        match slots[at].fingerprint {
            0 => return Err(at),
            there if there == fingerprint => return Ok(at),
            _ => at = if at + 1 == slots.len() { 0 } else { at + 1 },
        }
    }
}

/// The access of one crawl to a table, which counts the look-ups. Takes one bit of memory for each
/// slot.
#[derive(Debug)]
pub(super) struct Lookups {
    table: Arc<Table>,
    default: Quality,
    /// A bit for each slot of the table, set if a URL got its quality from there.
    met: Vec<Cell<u64>>,
    unlisted: Cell<u64>,
}

impl Lookups {
    /// Creates the access to a table for a new crawl. URLs that aren't in the table have the
    /// quality `default`.
    pub(super) fn new(table: Arc<Table>, default: Quality) -> Self {
        let met = vec![Cell::new(0); table.slots.len().div_ceil(64)];
        Self { table, default, met, unlisted: Cell::new(0) }
    }

    /// Returns the quality of a URL: that in the table, or the default. Counts the look-up.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        self.listed(url).unwrap_or_else(|| {
            self.unlisted.set(self.unlisted.get() + 1);
            self.default
        })
    }

    /// Returns the quality of a URL in the table, and counts its entry as used.
    pub(super) fn listed(&self, url: UrlRef<'_>) -> Option<Quality> {
        let slot = self.table.find(url)?;
        let word = &self.met[slot / 64];
        word.set(word.get() | 1 << (slot % 64));
        Some(self.table.slots[slot].quality)
    }

    /// Returns the number of entries from which no URL has got its quality yet.
    pub(super) fn unused(&self) -> usize {
        let met: u32 = self.met.iter().map(|word| word.get().count_ones()).sum();
        self.table.len() - met as usize
    }

    /// Returns the number of look-ups that returned the default quality.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::rating::tests::url;
    use std::collections::BTreeMap;

    /// Law: equivalent to a map of texts, with URLs before hosts, whatever the order of insertions.
    #[test]
    fn a_table_is_a_map_of_texts() {
        let mut random = Random(0x5eed_0601);
        for entries in [0, 1, 2, 3, 10, 100, 3_000] {
            let mut table = Table::new([entries as u8; 16]);
            let mut model: BTreeMap<String, Quality> = BTreeMap::new();
            if entries == 100 {
                table.reserve(100); // no room to spare
            }
            let mut repeats = 0;
            for _ in 0..entries {
                let quality = Quality::from_millionths(random.below(1 << 41));
                let name = format!("h{}.test", random.below(entries));
                let text = if random.below(3) == 0 {
                    table.insert_host(&name, quality);
                    name
                } else {
                    let url = url(&format!("http://{name}/{}", random.below(3)));
                    table.insert(url.view(), quality);
                    url.as_str().to_owned()
                };
                repeats += u64::from(model.insert(text, quality).is_some());
            }
            assert_eq!((table.len(), table.repeats()), (model.len(), repeats));
            assert_eq!(table.is_empty(), model.is_empty());
            for host in 0..=entries {
                for path in 0..4 {
                    let name = format!("h{host}.test");
                    let url = url(&format!("http://{name}/{path}"));
                    let expected = model.get(url.as_str()).or_else(|| model.get(&name));
                    assert_eq!(table.of(url.view()), expected.copied(), "{url}");
                }
            }
        }
    }

    #[test]
    fn a_host_stands_for_all_its_schemes_and_ports_and_for_no_other_host() {
        let mut table = Table::default();
        table.insert_host("a.test", Quality::MAX);
        table.insert(url("http://b.test/").view(), Quality::ZERO);
        for (text, expected) in [
            ("http://a.test/", Some(Quality::MAX)),
            ("https://a.test/x?y", Some(Quality::MAX)),
            ("http://a.test:8080/", Some(Quality::MAX)),
            ("http://www.a.test/", None),
            ("http://test/", None),
            ("http://b.test/", Some(Quality::ZERO)),
            ("http://b.test/x", None),
            ("https://b.test/", None),
        ] {
            assert_eq!(table.of(url(text).view()), expected, "{text}");
        }
    }

    /// Law: every look-up is either unlisted or marks the entry it used; each entry counts once.
    #[test]
    fn what_was_asked_for_is_counted() {
        let mut table = Table::default();
        table.insert_host("a.test", Quality::ZERO);
        table.insert_host("misspelt.test", Quality::ZERO);
        for page in 0..200 {
            table.insert(url(&format!("http://a.test/{page}")).view(), Quality::MAX);
        }
        let table = Arc::new(table);
        let (lookups, other) =
            (Lookups::new(table.clone(), Quality::ONE), Lookups::new(table, Quality::ONE));
        assert_eq!((lookups.unused(), lookups.unlisted()), (202, 0));
        for (text, quality, unused, unlisted) in [
            ("http://a.test/1", Quality::MAX, 201, 0),
            ("http://a.test/1", Quality::MAX, 201, 0),
            ("http://a.test/x", Quality::ZERO, 200, 0),
            ("http://a.test/y", Quality::ZERO, 200, 0),
            ("http://mispelt.test/", Quality::ONE, 200, 1),
            ("http://mispelt.test/", Quality::ONE, 200, 2),
        ] {
            assert_eq!(lookups.of(url(text).view()), quality, "{text}");
            assert_eq!((lookups.unused(), lookups.unlisted()), (unused, unlisted), "{text}");
        }
        for page in 0..200 {
            lookups.of(url(&format!("http://a.test/{page}")).view());
        }
        assert_eq!((lookups.unused(), lookups.unlisted()), (1, 2));
        assert_eq!((other.unused(), other.unlisted()), (202, 0), "crawls count for themselves");
    }

    /// The figures in the documentation of this file, to the byte.
    #[test]
    fn ten_million_entries_fit() {
        assert_eq!(size_of::<Slot>(), 16);
        assert_eq!(slots_for(10_000_000) * size_of::<Slot>(), 213_333_344);
    }
}
