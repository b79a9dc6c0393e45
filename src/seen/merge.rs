//! Merges the keys of a batch into one bucket on disk, and finds out which of them are new.
//!
//! Laws: of the entries with the same key, the first is new if the old bucket doesn't contain the
//! key. The new bucket contains the keys of the old one and those of the new entries. The old file
//! is not changed, so a failed merge can be repeated. No more keys are admitted than the limit
//! allows; the rest is counted and discarded.
//! Cost: the old bucket is read and the new one written, 5 to 9 ns for each old key; and the
//! entries are sorted. If there are few entries the old bucket is read first, and the new one
//! written only if one is new.

use super::batch::Part;
use super::bucket::{Bucket, Reader, Writer};
use super::round::Bits;
use super::sort::{self, Sorted};
use super::table::Segment;
use crate::ground::disk::Disk;
use crate::ground::frame;

/// A task for a job: creates a bucket from keys that were in memory. All of them are known, so none
/// needs an answer.
#[derive(Debug)]
pub(super) struct Creation {
    /// The number of the bucket.
    pub(super) number: usize,
    /// The serial number in the name of the new file.
    pub(super) serial: u64,
    /// The table segments that contain the keys.
    pub(super) segments: Vec<Segment>,
    /// The new bucket, once the task is done; `None` before.
    pub(super) new: Option<Bucket>,
}

impl Creation {
    pub(super) fn run(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        let keys = self.segments.iter().flat_map(Segment::keys);
        let len = self.segments.iter().map(Segment::len).sum();
        let keys = sort::firsts(keys, len).keys;
        let mut writer = Writer::create(self.number, self.serial, crawl, disk)?;
        for keys in keys.chunks(OWN_KEYS_MAX) {
            writer.space(keys.len()).copy_from_slice(keys);
            writer.put(keys.len(), disk)?;
        }
        self.new = Some(writer.finish(disk)?);
        Ok(())
    }
}

/// A task for a job: tests which of the waiting keys of one bucket are new, and merges the new ones
/// into the bucket.
#[derive(Debug)]
pub(super) struct Merging {
    /// The number of the bucket.
    pub(super) number: usize,
    /// The serial number in the name of the new file.
    pub(super) serial: u64,
    /// The old bucket; `None` if there is none yet.
    pub(super) old: Option<Bucket>,
    /// The keys of the waiting URLs of this bucket.
    pub(super) part: Part,
    /// The maximum number of new keys to add to the bucket.
    pub(super) room: u64,
    /// The result, once the task is done.
    pub(super) merged: Merged,
}

/// The result of a merge.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The new bucket; `None` if no key was new, so that the old bucket stays.
    pub(super) new: Option<Bucket>,
    /// A bit for each waiting URL, set if the URL is new. The next field is the number of set bits.
    pub(super) firsts: Bits,
    pub(super) admitted: usize,
    /// The number of new keys that were discarded because they exceeded the limit.
    pub(super) dropped: u64,
    /// The number of bytes that were read of the old bucket.
    pub(super) read_bytes: u64,
}

/// The number of old keys for each waiting key above which it saves time to test first whether any
/// waiting key is new.
const SPARSE: u64 = 64;

/// The number of old keys that are copied at a time while waiting keys are among them.
const STRIDE: usize = 8;
/// The number of old keys that are copied at a time if all of them precede the next waiting key.
const LEAP: usize = 64;
/// The maximum number of new keys that are written at a time after the last old key.
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
                let used = stream.merge(&reader.keys, writer.space(most));
                writer.put(used, disk)?;
            }
            self.merged.read_bytes += old.bytes;
        }
        while let count @ 1.. = stream.keys.len().min(OWN_KEYS_MAX) {
            let used = stream.merge_first(count, &[], writer.space(count + 1));
            writer.put(used, disk)?;
        }
        (self.merged.firsts, self.merged.dropped) = (stream.firsts, stream.dropped);
        self.merged.admitted = stream.admitted;
        self.merged.new = Some(writer.finish(disk)?);
        Ok(())
    }

    /// Removes the waiting keys that the old bucket contains; writes nothing.
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
                (entries.keys[kept], entries.indices[kept]) = (key, entries.indices[next]);
                kept += usize::from(reader.keys.binary_search(&key).is_err());
                next += 1;
            }
        }
        entries.keys.drain(kept..next);
        entries.indices.drain(kept..next);
        self.merged.read_bytes += old.bytes;
        Ok(())
    }
}

/// The sorted keys of waiting URLs that are being merged into a bucket.
struct Stream<'a> {
    /// The keys that are not merged yet, each once. The next field contains, for each of them, the
    /// index of its first URL.
    keys: &'a [u64],
    indices: &'a [u32],
    /// A bit for each waiting URL, set if it is new. The next field is the number of set bits so
    /// far.
    firsts: Bits,
    admitted: usize,
    room: usize,
    dropped: u64,
}

impl<'a> Stream<'a> {
    /// Creates a stream of these sorted keys. `len` is the number of waiting URLs, duplicates
    /// included; at most `room` keys are added to the bucket.
    fn new(entries: &'a Sorted, len: usize, room: usize) -> Self {
        let Sorted { keys, indices } = entries;
        Self { keys, indices, firsts: Bits::new(len), admitted: 0, room, dropped: 0 }
    }

    /// Returns how many of the remaining keys are at most the last key of `old`.
    fn up_to(&self, old: &[u64]) -> usize {
        let last = old.last().expect("no frame is empty");
        self.keys.partition_point(|key| key <= last)
    }

    /// Merges `old` and all remaining keys up to the last key of `old` into `out`. Returns the
    /// number of keys written.
    fn merge(&mut self, old: &[u64], out: &mut [u64]) -> usize {
        self.merge_first(self.up_to(old), old, out)
    }

    /// Merges `old` and the first `count` remaining keys into `out`. Many old keys are usually
    /// between two of them, so eight old keys are copied at a time, and the position advances by
    /// the number that is less than the next remaining key. There is no branch on that comparison,
    /// because its result is as good as random, and mispredicted branches would cost more than all
    /// the rest.
    fn merge_first(&mut self, count: usize, old: &[u64], out: &mut [u64]) -> usize {
        let (keys, indices) = (&self.keys[..count], &self.indices[..count]);
        (self.keys, self.indices) = (&self.keys[count..], &self.indices[count..]);
        let (mut at, mut used) = (0, 0);
        for (&key, &index) in keys.iter().zip(indices) {
            while let Some(many) =
                old[at..].first_chunk::<LEAP>().filter(|many| many[LEAP - 1] < key)
            {
                out[used..used + LEAP].copy_from_slice(many);
                (at, used) = (at + LEAP, used + LEAP);
            }
            while let Some(eight) = old[at..].first_chunk::<STRIDE>() {
                *out[used..].first_chunk_mut().expect("room for a stride more") = *eight;
                // Keys of one bucket differ by so little that the sign of the difference is the
                // comparison.
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
            // A key that the old bucket contains is copied later, with the old keys.
            let new = old.get(at) != Some(&key);
            let admitted = new && self.admitted < self.room;
            out[used] = key;
            used += usize::from(admitted);
            self.firsts.put(index, admitted);
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
        let mut creation = Creation { number: 0, serial: 0, segments, new: None };
        creation.run(CRAWL, disk).expect("there is room");
        creation.new.expect("it ran")
    }

    /// Law: new are the first of each key that the old bucket lacks, within the limit; the new
    /// bucket is the union; if nothing is new, nothing is written.
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
            for index in 0..=entries as u32 {
                let key = random.below(most);
                let repeat = old.range(key..).next().filter(|_| repeats_only);
                let key = repeat.copied().unwrap_or(key);
                part.push(key, 100);
                first.entry(key).or_insert(index);
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
            let found = (0..=entries as u32 + 70).filter(|index| firsts.has(*index));
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
