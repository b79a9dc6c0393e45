//! One bucket of a batch against the disk: which of its URLs are new, and a bucket with them in.
//!
//! Laws: of the entries with one key, the one that came first is new if the old bucket doesn't hold
//! the key; the new bucket holds the old one's keys and those of the new entries; the old file is
//! not touched, so a merge that fails is begun again. No more keys are let in than there is room
//! for; the rest is counted and forgotten.
//! Cost: the old bucket read, the new one written: 5 to 9 ns a key that was there; and the entries
//! sorted. A batch with few entries reads first, and writes only if one is new.

use super::batch::Part;
use super::bucket::{Bucket, Reader, Writer};
use super::round::Bits;
use super::sort::{self, Sorted};
use super::table::Segment;
use crate::ground::disk::Disk;
use crate::ground::frame;

/// Makes a bucket of keys that lay in memory: nobody waits for an answer.
#[derive(Debug)]
pub(super) struct Founding {
    /// Number of the bucket.
    pub(super) number: usize,
    /// Of the new file.
    pub(super) serial: u64,
    /// Where the keys lie.
    pub(super) segments: Vec<Segment>,
    /// What came of it.
    pub(super) new: Option<Bucket>,
}

impl Founding {
    pub(super) fn run(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        let keys = self.segments.iter().flat_map(Segment::keys);
        let len = self.segments.iter().map(Segment::len).sum();
        let keys = sort::firsts(keys, len).keys;
        let mut writer = Writer::create(self.number, self.serial, crawl, disk)?;
        for keys in keys.chunks(OWN_KEYS_MAX) {
            writer.room(keys.len()).copy_from_slice(keys);
            writer.put(keys.len(), disk)?;
        }
        self.new = Some(writer.finish(disk)?);
        Ok(())
    }
}

/// Tests the entries of one bucket, and merges the new ones into it.
#[derive(Debug)]
pub(super) struct Merging {
    /// Number of the bucket.
    pub(super) number: usize,
    /// Of the new file.
    pub(super) serial: u64,
    /// What is there; `None`: nothing.
    pub(super) old: Option<Bucket>,
    /// Keys of the URLs that wait.
    pub(super) part: Part,
    /// Keys that may be let in.
    pub(super) room: u64,
    /// What came of it.
    pub(super) merged: Merged,
}

/// What came of a merge.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The new bucket; `None`: no entry was new, the old one stays.
    pub(super) new: Option<Bucket>,
    /// The first-timers, and how many they are.
    pub(super) firsts: Bits,
    pub(super) admitted: usize,
    /// Keys for which there was no room.
    pub(super) dropped: u64,
    /// Bytes of the old bucket that were read.
    pub(super) read_bytes: u64,
}

/// With fewer entries than one for so many keys it pays to look first whether any is new.
const SPARSE: u64 = 64;

/// Old keys are copied so many at a time,
const STRIDE: usize = 8;
/// or so many where entries are few.
const LEAP: usize = 64;
/// Keys that come after all old ones are written so many at a time.
const OWN_KEYS_MAX: usize = 4_096;

impl Merging {
    pub(super) fn run(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        let mut entries = sort::firsts(self.part.keys(), self.part.len());
        self.merged = Merged::default();
        if let Some(old) = self.old
            && entries.keys.len() as u64 * SPARSE < old.keys
        {
            self.drop_known(&mut entries, crawl, disk)?;
            if entries.keys.is_empty() {
                return Ok(());
            }
        }
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let mut stream = Stream::new(&entries, self.part.len(), room);
        let mut writer = Writer::create(self.number, self.serial, crawl, disk)?;
        if let Some(old) = self.old {
            let mut reader = Reader::open(self.number, old, crawl, disk)?;
            while reader.next(disk)? {
                let most = reader.keys.len() + stream.up_to(&reader.keys) + STRIDE;
                let used = stream.merge(&reader.keys, writer.room(most));
                writer.put(used, disk)?;
            }
            self.merged.read_bytes += old.bytes;
        }
        while let count @ 1.. = stream.keys.len().min(OWN_KEYS_MAX) {
            let used = stream.merge_first(count, &[], writer.room(count + 1));
            writer.put(used, disk)?;
        }
        (self.merged.firsts, self.merged.dropped) = (stream.firsts, stream.dropped);
        self.merged.admitted = stream.admitted;
        self.merged.new = Some(writer.finish(disk)?);
        Ok(())
    }

    /// Takes out the entries that the old bucket holds, without writing anything.
    fn drop_known(
        &mut self,
        entries: &mut Sorted,
        crawl: u64,
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        let Some(old) = self.old else { return Ok(()) };
        let mut reader = Reader::open(self.number, old, crawl, disk)?;
        let (mut kept, mut next) = (0, 0);
        while reader.next(disk)? {
            let last = reader.keys.last().expect("no frame is empty");
            while let Some(key) = entries.keys.get(next).copied().filter(|key| key <= last) {
                (entries.keys[kept], entries.places[kept]) = (key, entries.places[next]);
                kept += usize::from(reader.keys.binary_search(&key).is_err());
                next += 1;
            }
        }
        entries.keys.drain(kept..next);
        entries.places.drain(kept..next);
        self.merged.read_bytes += old.bytes;
        Ok(())
    }
}

/// Entries on their way into a bucket.
struct Stream<'a> {
    /// Still to come, each key once; and their places.
    keys: &'a [u64],
    places: &'a [u32],
    /// The new ones, and how many are so far.
    firsts: Bits,
    admitted: usize,
    room: usize,
    dropped: u64,
}

impl<'a> Stream<'a> {
    /// `len` is how many places there are.
    fn new(entries: &'a Sorted, len: usize, room: usize) -> Self {
        let Sorted { keys, places } = entries;
        Self { keys, places, firsts: Bits::new(len), admitted: 0, room, dropped: 0 }
    }

    /// How many entries belong before or at the last of `old`.
    fn up_to(&self, old: &[u64]) -> usize {
        let last = old.last().expect("no frame is empty");
        self.keys.partition_point(|key| key <= last)
    }

    /// Merges into `out` what belongs there up to the last of `old`; returns how many keys it is.
    fn merge(&mut self, old: &[u64], out: &mut [u64]) -> usize {
        self.merge_first(self.up_to(old), old, out)
    }

    /// Merges the first `count` entries and `old`, of which more than one lie between two entries:
    /// they are copied by the eight, and as many as are less count. Without branches on what is
    /// less: that is as good as drawn by lot, and a wrong guess would cost more than all the rest.
    fn merge_first(&mut self, count: usize, old: &[u64], out: &mut [u64]) -> usize {
        let (keys, places) = (&self.keys[..count], &self.places[..count]);
        (self.keys, self.places) = (&self.keys[count..], &self.places[count..]);
        let (mut at, mut used) = (0, 0);
        for (&key, &place) in keys.iter().zip(places) {
            while let Some(many) =
                old[at..].first_chunk::<LEAP>().filter(|many| many[LEAP - 1] < key)
            {
                out[used..used + LEAP].copy_from_slice(many);
                (at, used) = (at + LEAP, used + LEAP);
            }
            while let Some(eight) = old[at..].first_chunk::<STRIDE>() {
                *out[used..].first_chunk_mut().expect("room for a stride more") = *eight;
                // Keys of one bucket are so close to one another that the sign tells.
                let less: u64 = eight.iter().map(|known| known.wrapping_sub(key) >> 63).sum();
                let less = less as usize;
                (at, used) = (at + less, used + less);
                if less < STRIDE {
                    break;
                }
            }
            while at < old.len() && old[at] < key {
                out[used] = old[at];
                (at, used) = (at + 1, used + 1);
            }
            // A known one is copied when it's the turn of the old keys again.
            let new = old.get(at) != Some(&key);
            let admitted = new && self.admitted < self.room;
            out[used] = key;
            used += usize::from(admitted);
            self.firsts.put(place, admitted);
            self.admitted += usize::from(admitted);
            self.dropped += u64::from(new && !admitted);
        }
        let known = &old[at..];
        out[used..used + known.len()].copy_from_slice(known);
        used + known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;
    use crate::seen::table::{Insertion, Table};
    use std::collections::{BTreeMap, BTreeSet};

    const CRAWL: u64 = 3;

    fn keys_of(bucket: Bucket, disk: &mut Memory) -> Vec<u64> {
        let mut reader = Reader::open(0, bucket, CRAWL, disk).expect("it was written");
        let mut keys = Vec::new();
        while reader.next(disk).expect("it is whole") {
            keys.extend_from_slice(&reader.keys);
        }
        keys
    }

    fn found(keys: &BTreeSet<u64>, disk: &mut Memory) -> Bucket {
        let mut table = Table::new(usize::MAX);
        keys.iter().for_each(|key| assert_eq!(table.insert(*key), Insertion::New));
        let segments = table.take(0, 6);
        let mut founding = Founding { number: 0, serial: 0, segments, new: None };
        founding.run(CRAWL, disk).expect("there is room");
        founding.new.expect("it ran")
    }

    /// Law: new are the first of each key that the old bucket lacks, as far as there is room; the
    /// new bucket is the union; where nothing is new, nothing is written.
    #[test]
    fn a_merge_agrees_with_sets() {
        let (mut kept, mut sparse, mut cramped) = (0, 0, 0);
        for seed in 0..600 {
            let mut random = Random(seed);
            let mut disk = Memory::default();
            let most = 1 << (4 + random.below(20));
            let widths = [random.below(15), random.below(13)];
            let [count, entries] = widths.map(|width| random.below(1 << width));
            let old: BTreeSet<u64> = (0..count).map(|_| random.below(most)).collect();
            let bucket = (!random.one_in(10)).then(|| found(&old, &mut disk));
            let old = if bucket.is_some() { old } else { BTreeSet::new() };
            let mut part = Part::default();
            let mut first = BTreeMap::new();
            let repeats_only = random.one_in(4) && !old.is_empty();
            for place in 0..=entries as u32 {
                let key = random.below(most);
                let repeat = old.range(key..).next().filter(|_| repeats_only);
                let key = repeat.copied().unwrap_or(key);
                part.push(key, 100);
                first.entry(key).or_insert(place);
            }
            first.retain(|key, _| !old.contains(key));
            let cramp = random.one_in(4);
            let room = if cramp { random.below(1 + first.len() as u64) } else { u64::MAX };
            let merged = Merged::default();
            let mut merging = Merging { number: 0, serial: 1, old: bucket, part, room, merged };
            merging.run(CRAWL, &mut disk).expect("there is room");
            let Merged { new, firsts, dropped, .. } = merging.merged;
            let admitted = first.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let expected: BTreeSet<u32> = first.values().copied().take(admitted).collect();
            let found = (0..=entries as u32 + 70).filter(|place| firsts.has(*place));
            assert!(found.eq(expected), "seed {seed}");
            assert_eq!(merging.merged.admitted, admitted);
            assert_eq!(dropped, (first.len() - admitted) as u64);
            let union: BTreeSet<u64> = first.keys().take(admitted).chain(&old).copied().collect();
            match new {
                Some(new) => assert!(keys_of(new, &mut disk).into_iter().eq(union)),
                None => assert!(first.is_empty() && union == old, "seed {seed}"),
            }
            kept += u32::from(new.is_none());
            sparse += u32::from((entries + 1) * SPARSE < old.len() as u64);
            cramped += u32::from(dropped > 0);
        }
        assert!(kept > 5 && sparse > 20 && cramped > 20, "{kept} {sparse} {cramped}");
    }
}
