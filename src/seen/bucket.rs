//! A bucket: the fingerprints that share their upper six bits, sorted, in one file.
//!
//! ```text
//! KEYS (1)  number of keys u16, 1 to 4,096 | width u8 | first key u64 | for each further key its
//!           gap to the key before (the difference minus one), in `width` bits, low bits
//!           first | 7 zero bytes
//! END (2)   number of keys of the file u64
//! ```
//!
//! The width is that of the largest difference in the frame, 8 to 50 bits, or 64. The zeros let a
//! reader load eight bytes at any position. With a hundred million keys a key takes 5.2 bytes, with
//! a billion 4.8.
//!
//! Laws: keys ascend strictly; a file without its END frame, or with another number of keys, is
//! damaged.
//! Cost: 1.5 ns a key to read and 3 to write, checksums included.

use super::batch::bucket_of;
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Frame, Role};
use crate::ground::tail::Tail;

/// The folder of the files of the seen-set.
pub(super) const FOLDER: &str = "state/seen";

const KEYS: u8 = 1;
const END: u8 = 2;
/// The maximum number of keys of a frame.
const KEYS_MAX: usize = 4_096;
/// The number of bytes of complete frames after which they are written to the file.
const WRITE_BYTES: usize = 1 << 20;
/// The maximum width of a gap (a difference of two keys minus one) that always fits into eight
/// bytes, at any bit offset. All gaps of a frame together are then less than 2^63.
const WIDTH_MAX: u32 = 50;
/// The minimum width of a gap, so that no byte contains bits of more than two gaps.
const WIDTH_MIN: u32 = 8;
const PADDING: usize = 7;

/// A bucket on disk, identified by its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// The number in the name of the file, which is never used twice.
    pub(super) serial: u64,
    /// The length of the file, in bytes.
    pub(super) bytes: u64,
    /// The number of fingerprints in the file.
    pub(super) keys: u64,
}

/// Returns the name of the file for bucket `number` with this serial.
pub(super) fn name(number: usize, serial: u64) -> String {
    format!("{FOLDER}/bucket-{number:02}-{serial}")
}

/// Writes the file of a bucket, key by key.
pub(super) struct Writer {
    tail: Tail,
    /// A buffer for keys. The first `waiting` of them are in no frame yet; the rest is spare space.
    open: Vec<u64>,
    waiting: usize,
    keys: u64,
    serial: u64,
}

impl Writer {
    /// Creates the file of a bucket. First removes what an earlier attempt left of it.
    pub(super) fn create(
        number: usize,
        serial: u64,
        crawl: u64,
        disk: &mut dyn Disk,
    ) -> Result<Self, disk::Error> {
        let name = name(number, serial);
        if disk.len(&name)?.is_some() {
            disk.remove(&name)?;
        }
        let mut tail = Tail::new(name, 0);
        frame::push_opening(Role::Bucket, crawl, &mut tail.pending);
        Ok(Self { tail, open: Vec::new(), waiting: 0, keys: 0, serial })
    }

    /// Returns spare space for `most` keys, to be written to by the caller. [`Writer::put`] then
    /// reports how many were written.
    pub(super) fn space(&mut self, most: usize) -> &mut [u64] {
        let wanted = self.waiting + most;
        if self.open.len() < wanted {
            self.open.resize(wanted, 0);
        }
        &mut self.open[self.waiting..wanted]
    }

    /// Adds the first `used` keys of the space that [`Writer::space`] returned.
    pub(super) fn put(&mut self, used: usize, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.waiting += used;
        self.keys += used as u64;
        let whole = self.waiting / KEYS_MAX * KEYS_MAX;
        for keys in self.open[..whole].chunks(KEYS_MAX) {
            push_keys(keys, &mut self.tail.pending);
            if self.tail.pending.len() >= WRITE_BYTES {
                self.tail.flush(disk, 2 * WRITE_BYTES)?;
            }
        }
        self.open.copy_within(whole..self.waiting, 0);
        self.waiting -= whole;
        Ok(())
    }

    /// Completes the file, syncs it, and returns the bucket.
    pub(super) fn finish(mut self, disk: &mut dyn Disk) -> Result<Bucket, disk::Error> {
        if self.waiting > 0 {
            push_keys(&self.open[..self.waiting], &mut self.tail.pending);
        }
        frame::push_with(END, &mut self.tail.pending, |out| out.put_u64(self.keys));
        self.tail.flush(disk, 0)?;
        disk.sync(self.tail.name())?;
        Ok(Bucket { serial: self.serial, bytes: self.tail.len(), keys: self.keys })
    }
}

/// Reads the file of a bucket, frame by frame.
pub(super) struct Reader {
    number: usize,
    reader: frame::Reader,
    /// The keys of the frame that was read last.
    pub(super) keys: Vec<u64>,
    /// The number of keys in the whole file; the next field is the number of those not read yet.
    total: u64,
    left: u64,
}

impl Reader {
    /// Opens the file of bucket `number`, to read all its keys.
    pub(super) fn open(
        number: usize,
        bucket: Bucket,
        crawl: u64,
        disk: &mut dyn Disk,
    ) -> Result<Self, frame::Error> {
        let name = name(number, bucket.serial);
        let reader = frame::Reader::open(&name, Role::Bucket, crawl, Some(bucket.bytes), disk)?;
        Ok(Self { number, reader, keys: Vec::new(), total: bucket.keys, left: bucket.keys })
    }

    /// Reads the next frame into [`Reader::keys`]; returns false at the end of the file.
    pub(super) fn next(&mut self, disk: &mut dyn Disk) -> Result<bool, frame::Error> {
        let at = self.reader.offset();
        let last = self.keys.last().copied();
        let taken = match self.reader.next(disk)? {
            None => Err(Flaw::Cut),
            Some(frame) if frame.kind == KEYS => {
                take_keys(frame.payload, last, &mut self.keys).map(|()| true).ok_or(Flaw::Senseless)
            }
            Some(frame) if frame.kind == END => {
                let whole = self.left == 0 && Take::new(frame.payload).u64() == Ok(self.total);
                if whole { Ok(false) } else { Err(Flaw::Senseless) }
            }
            Some(_) => Err(Flaw::Senseless),
        };
        let more = taken.map_err(|flaw| self.reader.damage(at, flaw))?;
        if !more {
            return Ok(false);
        }
        let ends = [self.keys.first(), self.keys.last()];
        let belongs = ends.iter().flatten().all(|key| bucket_of(**key) == self.number);
        let left = self.left.checked_sub(self.keys.len() as u64).filter(|_| belongs);
        self.left = left.ok_or_else(|| self.reader.damage(at, Flaw::Senseless))?;
        Ok(true)
    }
}

/// Appends one frame that contains `keys`, which ascend.
fn push_keys(keys: &[u64], out: &mut Vec<u8>) {
    let widest = keys.iter().zip(&keys[1..]).fold(0, |bits, (key, next)| bits | (next - key - 1));
    let width = match u64::BITS - widest.leading_zeros() {
        width @ ..=WIDTH_MAX => width.max(WIDTH_MIN),
        _ => u64::BITS,
    };
    let count = u16::try_from(keys.len()).expect("a frame has its most");
    frame::push_with(KEYS, out, |out| {
        out.put_u16(count);
        out.put_u8(width as u8);
        out.put_u64(keys[0]);
        let start = out.len();
        out.resize(start + packed_bytes(keys.len(), width), 0);
        pack(keys, width, &mut out[start..]);
    });
}

/// Writes the gaps between keys to `out`, each in `width` bits. A byte that belongs to two gaps is
/// written twice, the second time with the upper bits of the gap before. So nothing that was just
/// written is read back, and no step waits for another.
fn pack(keys: &[u64], width: u32, out: &mut [u8]) {
    let (mut bit, mut before) = (0_usize, 0_u64);
    for (key, next) in keys.iter().zip(&keys[1..]) {
        let (gap, shift) = (next - key - 1, (bit % 8) as u32);
        // The shift is done in two steps, because a shift by 64 is not allowed.
        let eight = gap << shift | before >> 1 >> (width - 1 - shift);
        out[bit / 8..bit / 8 + 8].copy_from_slice(&eight.to_le_bytes());
        before = gap;
        bit += width as usize;
    }
}

/// Decodes `count` keys from the gaps in `packed`; `key` is the key before the first gap.
fn unpack(mut key: u64, width: u32, packed: &[u8], count: usize, keys: &mut Vec<u64>) {
    let mask = u64::MAX >> (u64::BITS - width);
    let mut bit = 0;
    keys.extend((0..count).map(|_| {
        let eight = packed[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
        let gap = u64::from_le_bytes(eight) >> (bit % 8) & mask;
        bit += width as usize;
        key = key.wrapping_add(gap).wrapping_add(1);
        key
    }));
}

fn packed_bytes(keys: usize, width: u32) -> usize {
    ((keys - 1) * width as usize).div_ceil(8) + PADDING
}

/// Returns whether a frame of keys may begin with `bytes`, which are from the middle of a file.
/// Only the length and the kind of the frame are checked.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let Some([a, b, c, d, kind]) = bytes.first_chunk() else { return false };
    let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    *kind == KEYS && len <= 16 + packed_bytes(KEYS_MAX, u64::BITS)
}

/// Returns the first key of a frame; `None` if it is not a frame of keys.
pub(super) fn first_key(frame: &Frame<'_>) -> Option<u64> {
    let first = frame.payload.get(3..)?.first_chunk()?;
    (frame.kind == KEYS).then(|| u64::from_le_bytes(*first))
}

/// Returns whether a frame is the END frame of a bucket's file.
pub(super) fn is_end(frame: &Frame<'_>) -> bool {
    frame.kind == END
}

/// Decodes a frame of keys, all of which must be greater than `last`. Returns `None` if the frame
/// is invalid.
pub(super) fn take_keys(payload: &[u8], last: Option<u64>, keys: &mut Vec<u64>) -> Option<()> {
    keys.clear();
    let mut take = Take::new(payload);
    let (count, width) = (usize::from(take.u16().ok()?), u32::from(take.u8().ok()?));
    let first = take.u64().ok()?;
    let known_width = (WIDTH_MIN..=WIDTH_MAX).contains(&width) || width == u64::BITS;
    let ascends = last.is_none_or(|last| last < first);
    if !(1..=KEYS_MAX).contains(&count) || !known_width || !ascends {
        return None;
    }
    let packed = take.rest();
    if packed.len() != packed_bytes(count, width) {
        return None;
    }
    keys.push(first);
    unpack(first, width, packed, count - 1, keys);
    // The sum of narrow gaps can overflow at most once.
    let ascend = match width {
        ..=WIDTH_MAX => *keys.last()? >= first,
        _ => keys.is_sorted_by(|key, next| key < next),
    };
    ascend.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;

    const CRAWL: u64 = 9;

    fn write(keys: &[u64], cut: usize, disk: &mut Memory) -> Bucket {
        let mut writer = Writer::create(3, 1, CRAWL, disk).expect("there is room");
        for keys in keys.chunks(cut) {
            writer.space(keys.len() + 5)[..keys.len()].copy_from_slice(keys);
            writer.put(keys.len(), disk).expect("there is room");
        }
        writer.finish(disk).expect("there is room")
    }

    fn read(bucket: Bucket, disk: &mut Memory) -> Result<Vec<u64>, frame::Error> {
        let mut reader = Reader::open(3, bucket, CRAWL, disk)?;
        let mut keys = Vec::new();
        while reader.next(disk)? {
            keys.extend_from_slice(&reader.keys);
        }
        Ok(keys)
    }

    /// Law: keys of any distribution, in any number, are read as they were written.
    #[test]
    fn what_was_written_is_read() {
        let whole: Vec<u64> = (0..10_000).collect();
        let ends = vec![0, 1, u64::MAX - 1, u64::MAX];
        let mut cases = vec![Vec::new(), vec![0], vec![u64::MAX], vec![0, u64::MAX], whole, ends];
        for seed in 0..60 {
            let mut random = Random(seed);
            let shift = seed as u32;
            let count = random.below(1 << (seed % 16));
            let mut keys: Vec<u64> = (0..count).map(|_| random.word() >> shift).collect();
            keys.sort_unstable();
            keys.dedup();
            cases.push(keys);
        }
        for (case, keys) in cases.iter_mut().enumerate() {
            keys.iter_mut().for_each(|key| *key = *key >> 6 | 3 << 58);
            keys.dedup();
            let mut disk = Memory::default();
            let bucket = write(keys, 1 + case * 97, &mut disk);
            assert_eq!(bucket.keys, keys.len() as u64);
            assert_eq!(bucket.bytes, disk.used());
            assert!(read(bucket, &mut disk).expect("it is whole") == *keys, "case {case}");
        }
    }

    #[test]
    fn keys_of_another_bucket_are_told() {
        for keys in [[2 << 58, 3 << 58], [3 << 58, 4 << 58]] {
            let mut disk = Memory::default();
            let bucket = write(&keys, 2, &mut disk);
            let Err(frame::Error::Damaged(damage)) = read(bucket, &mut disk) else {
                panic!("nobody noticed");
            };
            assert_eq!(damage.flaw, Flaw::Senseless);
        }
    }

    #[test]
    fn random_keys_take_little_room() {
        let mut random = Random(1);
        // As dense as a hundred million keys.
        let mut keys: Vec<u64> = (0..200_000).map(|_| random.word() / 500).collect();
        keys.sort_unstable();
        let bucket = write(&keys, 50_000, &mut Memory::default());
        assert!(bucket.bytes * 10 < keys.len() as u64 * 53, "{bucket:?}");
    }

    /// Law: no payload is read as keys that don't ascend, and none causes a panic.
    #[test]
    fn senseless_frames_are_told() {
        let mut random = Random(5);
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut out = Vec::new();
            let mut keys: Vec<u64> = (0..1 + random.below(20)).map(|_| random.word()).collect();
            keys.sort_unstable();
            keys.dedup();
            push_keys(&keys, &mut out);
            let mut payload = out.split_off(frame::OVERHEAD_BYTES);
            for _ in 0..random.below(4) {
                let at = random.below(payload.len() as u64) as usize;
                payload[at] ^= 1 << random.below(8);
            }
            payload.truncate(payload.len() - random.below(10_usize).saturating_sub(6));
            let last = random.one_in(2).then(|| random.word());
            let mut found = Vec::new();
            match take_keys(&payload, last, &mut found) {
                Some(()) => {
                    assert!(found.is_sorted_by(|a, b| a < b) && last.is_none_or(|l| l < found[0]));
                }
                None => refused += 1,
            }
        }
        assert!(refused > 5_000, "{refused}");
    }
}
