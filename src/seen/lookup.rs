//! Looks up a fingerprint without offering it: is the URL known, either seen or still waiting?
//!
//! In memory a look-up is one probe of a table. On disk the cache knows recently seen fingerprints.
//! Otherwise the file of the bucket is searched by interpolation, window by window (fingerprints
//! are uniformly distributed, so the first guess is nearly always right), and then the keys of the
//! waiting URLs (those being merged, and those of the next batch) are scanned, block by block. Data
//! that a job has can't be searched: the answer comes when the job is done.
//!
//! Laws: the answer is that of an offer made now (tested against the model in `tests.rs`); a call
//! does about the granted amount of work; a damaged file is an error with its name and offset.
//! Cost: eight bytes of memory are read for each waiting key; one or two reads of 80 KiB.

use super::batch::{BUCKET_BITS, Part, bucket_of};
use super::bucket::{self, Bucket};
use super::job::Task;
use super::{Known, Seen};
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Damage, Flaw};
use crate::url::Fingerprint;

/// A look-up in progress.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    key: u64,
    /// What was searched so far, valid only as long as `epoch` is unchanged. This field is true
    /// once the file of the bucket was searched; `scanned` is the number of blocks of keys.
    is_in_no_file: bool,
    scanned: usize,
    epoch: u64,
}

/// The state of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The fingerprint was offered before; the URL is known.
    Known,
    /// The fingerprint was never offered; the URL would be new.
    New,
    /// More work is needed than one call may do: call again.
    More,
    /// A job has the data to search: call again when the job is done.
    Busy,
}

/// The number of bytes of a bucket's file that are read at once. A window holds two frames of
/// maximum length.
const WINDOW_BYTES: usize = 80 << 10;
/// The number of interpolations before the search continues by bisection.
const GUESSES: u32 = 3;

impl Lookup {
    /// Begins the look-up of this fingerprint.
    pub fn new(fingerprint: Fingerprint) -> Self {
        Self { key: fingerprint.0, is_in_no_file: false, scanned: 0, epoch: 0 }
    }
}

impl Seen {
    /// Continues a look-up. Returns its state and the number of units of work done. That is at most
    /// about `units_max`, plus one window of a file.
    ///
    /// # Errors
    /// Returns an error of the disk, or the damage of a bucket.
    pub fn look_up(
        &self,
        lookup: &mut Lookup,
        units_max: usize,
        disk: &mut dyn Disk,
    ) -> Result<(Answer, usize), frame::Error> {
        let (key, number) = (lookup.key, bucket_of(lookup.key));
        if self.cache.as_ref().is_some_and(|cache| cache.contains(key)) {
            return Ok((Answer::Known, 1));
        }
        let buckets = match &self.known {
            Known::Memory(memory) if memory.table.contains(key) => return Ok((Answer::Known, 1)),
            Known::Memory(_) => &[][..],
            Known::Moving { table, .. } if table.contains(key) => return Ok((Answer::Known, 1)),
            Known::Moving { buckets, .. } | Known::Disk(buckets) => buckets,
        };
        if self.job_data.bucket == Some(number) {
            return Ok((Answer::Busy, 1));
        }
        if lookup.epoch != self.job_data.epoch {
            *lookup = Lookup { epoch: self.job_data.epoch, ..Lookup::new(Fingerprint(key)) };
        }
        let mut used = 1;
        if !lookup.is_in_no_file {
            if let Some(Some(bucket)) = buckets.get(number) {
                let mut search = Search::new(number, *bucket, key);
                let known = search.run(disk)?;
                used += search.read_bytes;
                if known {
                    return Ok((Answer::Known, used));
                }
            }
            lookup.is_in_no_file = true;
        }
        let round = self.round.as_ref().map(|round| round.part(number));
        let batch = self.batch.as_ref().map(|batch| &batch.parts[number]);
        // Only the last block still grows, and only the final call scans it. Each call scans at
        // least one block.
        let began = lookup.scanned;
        let blocks = round.into_iter().chain(batch).flat_map(Part::blocks);
        for (place, block) in blocks.enumerate().skip(lookup.scanned) {
            if used > units_max && place > began {
                return Ok((Answer::More, used));
            }
            used += block.len();
            if block.contains(&key) {
                return Ok((Answer::Known, used));
            }
            lookup.scanned += 1;
        }
        Ok((Answer::New, used))
    }
}

/// The data that is with a job, and can't be searched meanwhile.
#[derive(Debug, Default)]
pub(super) struct JobData {
    /// The number of the bucket that the job creates; `None` if it creates none.
    bucket: Option<usize>,
    /// The number of times that keys were handed to a job or returned by it.
    epoch: u64,
}

impl JobData {
    /// Records that a job begins (`task`) or is done (`None`). Keys have moved, so look-ups in
    /// progress start again.
    pub(super) fn set_task(&mut self, task: Option<&Task>) {
        let bucket = match task {
            Some(Task::Create(creation)) => Some(creation.number),
            Some(Task::Merge(merging)) => Some(merging.number),
            Some(Task::Nothing | Task::Read(_)) | None => None,
        };
        self.epoch += u64::from(self.bucket != bucket);
        self.bucket = bucket;
    }
}

/// The search for a key in the file of one bucket.
struct Search {
    name: String,
    key: u64,
    /// The lower bound of the search: the offset of a frame that may contain the key, and the
    /// lowest key that may be in it.
    low: (u64, u64),
    /// The upper bound of the search: an offset, and a key above the searched one. All keys from
    /// this offset on are at least this key.
    high: (u64, u128),
    end: u64,
    read_bytes: usize,
}

/// The result of reading one window of the file.
enum Step {
    Found(bool),
    /// Continue between the new bounds.
    On,
}

impl Search {
    fn new(number: usize, bucket: Bucket, key: u64) -> Self {
        let shift = u64::BITS - BUCKET_BITS;
        let (first, next) = ((number as u64) << shift, (number as u128 + 1) << shift);
        Self {
            name: bucket::name(number, bucket.serial),
            key,
            low: (frame::OPENING_BYTES as u64, first),
            high: (bucket.bytes, next),
            end: bucket.bytes,
            read_bytes: 0,
        }
    }

    fn run(&mut self, disk: &mut dyn Disk) -> Result<bool, frame::Error> {
        let room = usize::try_from(self.end).unwrap_or(usize::MAX).min(WINDOW_BYTES);
        let mut bytes = vec![0; room];
        for guess in 0.. {
            let ((low, _), (high, _)) = (self.low, self.high);
            if low >= high {
                break;
            }
            let start = self.start(guess);
            let wanted = usize::try_from(self.end - start).unwrap_or(usize::MAX).min(WINDOW_BYTES);
            let mut read = 0;
            while read < wanted {
                match disk.read_at(&self.name, start + read as u64, &mut bytes[read..wanted])? {
                    0 => return Err(self.damage(start + read as u64, Flaw::Cut)),
                    more => read += more,
                }
            }
            self.read_bytes += wanted;
            match self.look(start, &bytes[..wanted]).map_err(|(at, flaw)| self.damage(at, flaw))? {
                Step::Found(is_in) => return Ok(is_in),
                // If a frame began in the window, the bounds have moved. Otherwise the frame is
                // read from its first byte in the end.
                Step::On => {}
            }
        }
        Ok(false)
    }

    /// Returns the offset at which to read: somewhat before the expected position of the key.
    fn start(&self, guess: u32) -> u64 {
        let ((low, first), (high, next)) = (self.low, self.high);
        let (bytes, window) = (high - low, WINDOW_BYTES as u64);
        if bytes <= window {
            return low;
        }
        let offset = match guess {
            ..GUESSES => {
                let (above, of) = (self.key - first, next - u128::from(first));
                u64::try_from(u128::from(bytes) * u128::from(above) / of).unwrap_or(bytes)
            }
            _ => bytes / 2,
        };
        low + offset.saturating_sub(window / 2).min(bytes - window)
    }

    /// Searches for the key in a window of the file, `bytes`, which begins at the offset `start`.
    /// The frames in it are found by their checksums.
    fn look(&mut self, start: u64, bytes: &[u8]) -> Result<Step, (u64, Flaw)> {
        let mut at = if start == self.low.0 { 0 } else { first_frame(bytes) };
        // The last frame whose first key is not above the searched key.
        let (mut last, mut is_end) = (None, false);
        let first = at;
        while let Ok((frame, len)) = frame::parse(&bytes[at..], start + at as u64) {
            let Some(key) = bucket::first_key(&frame) else {
                is_end = bucket::is_end(&frame);
                break;
            };
            if key > self.key {
                if at == first {
                    self.high = (start + at as u64, key.into());
                    return Ok(Step::On);
                }
                is_end = true;
                break;
            }
            last = Some((at, len));
            at += len;
        }
        let Some((at, len)) = last else {
            // The first frame must be complete in the window, because a window holds the longest
            // frame.
            if start == self.low.0 && !is_end {
                return Err((start, Flaw::Senseless));
            }
            return Ok(if is_end { Step::Found(false) } else { self.narrow(start) });
        };
        let place = start + at as u64;
        let (frame, _) = frame::parse(&bytes[at..], place).map_err(|flaw| (place, flaw))?;
        let mut keys = Vec::new();
        bucket::take_keys(frame.payload, None, &mut keys).ok_or((place, Flaw::Senseless))?;
        let highest = *keys.last().expect("a frame has a key");
        if self.key <= highest || is_end {
            return Ok(Step::Found(keys.binary_search(&self.key).is_ok()));
        }
        self.low = (place + len as u64, highest + 1);
        Ok(Step::On)
    }

    /// Narrows the bounds after a window that had no complete frame, because it was at the end of
    /// the file or in a damaged part.
    fn narrow(&mut self, start: u64) -> Step {
        self.high.0 = self.high.0.min(start.max(self.low.0 + 1));
        Step::On
    }

    fn damage(&self, offset: u64, flaw: Flaw) -> frame::Error {
        frame::Error::Damaged(Damage { name: self.name.clone(), offset, flaw })
    }
}

/// Returns the offset of the first complete frame in `bytes`, which were read from the middle of a
/// file. Returns the length of `bytes` if there is none.
fn first_frame(bytes: &[u8]) -> usize {
    let is_whole = |at: &usize| {
        let may_be = bucket::may_begin(&bytes[*at..]);
        may_be && frame::parse(&bytes[*at..], 0).is_ok()
    };
    (0..bytes.len()).find(is_whole).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::bucket::Writer;
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;

    /// Law: every key of a bucket is found, and no other, for any distribution of keys; those of a
    /// keyed hash within two windows.
    #[test]
    fn keys_are_found_in_a_file() {
        let spreads: [fn(&mut Random, u64) -> u64; 4] = [
            |random, _| random.word() >> 6,
            |_, number| number,
            |random, number| number << 30 | random.below(1 << 30),
            |random, number| if number < 70_000 { number } else { random.word() >> 6 },
        ];
        for (case, spread) in spreads.into_iter().enumerate() {
            let mut random = Random(case as u64);
            let mut keys: Vec<u64> =
                (0..100_000).map(|number| 5 << 58 | spread(&mut random, number)).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut disk = Memory::default();
            let mut writer = Writer::create(5, 1, 9, &mut disk).expect("there is room");
            for keys in keys.chunks(10_000) {
                writer.space(keys.len()).copy_from_slice(keys);
                writer.put(keys.len(), &mut disk).expect("there is room");
            }
            let bucket = writer.finish(&mut disk).expect("there is room");
            for _ in 0..60 {
                let known = keys[random.below(keys.len() as u64) as usize];
                let any = 5 << 58 | random.word() >> 6;
                let ends = [5 << 58, (6 << 58) - 1];
                for key in [known, known + 1, known - 1, any].into_iter().chain(ends) {
                    let mut search = Search::new(5, bucket, key);
                    let found = search.run(&mut disk).expect("it is whole");
                    assert_eq!(found, keys.binary_search(&key).is_ok(), "case {case}: {key:x}");
                    let windows = search.read_bytes.div_ceil(WINDOW_BYTES);
                    assert!(windows <= if case == 0 { 2 } else { 25 }, "case {case}: {windows}");
                }
            }
        }
    }

    /// Law: a changed bit is an error or does no harm, and never causes an endless search.
    #[test]
    fn damage_is_told_or_harmless() {
        let mut random = Random(3);
        let mut keys: Vec<u64> = (0..50_000).map(|_| 5 << 58 | random.word() >> 6).collect();
        keys.sort_unstable();
        let mut disk = Memory::default();
        let mut writer = Writer::create(5, 1, 9, &mut disk).expect("there is room");
        writer.space(keys.len()).copy_from_slice(&keys);
        writer.put(keys.len(), &mut disk).expect("there is room");
        let bucket = writer.finish(&mut disk).expect("there is room");
        let name = bucket::name(5, 1);
        let mut told = 0;
        for _ in 0..100 {
            let mut other = Memory::default();
            let mut bytes = vec![0; bucket.bytes as usize];
            disk.read_at(&name, 0, &mut bytes).expect("it is there");
            bytes[random.below(bucket.bytes) as usize] ^= 1 << random.below(8);
            other.append(&name, &bytes).expect("there is room");
            let key = keys[random.below(keys.len() as u64) as usize];
            told += usize::from(Search::new(5, bucket, key).run(&mut other).is_err());
        }
        assert!(told > 0, "{told}");
    }
}
