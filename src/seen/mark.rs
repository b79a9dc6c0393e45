//! Saves the state of the seen-set as bytes and files, and restores it.
//!
//! ```text
//! state    number of the next file, checks, hits, dropped, merges, bytes read, bytes written: each
//!          a number of variable length | fingerprints | waiting
//! keys     1 | name | length | number of fingerprints       all are in memory, and in this file
//! buckets  2 | 64 times: 0, or 1 | serial | length | number of fingerprints
//! none     0
//! waiting  0, or 1 | name | length | number of URLs
//! ```
//!
//! Law: a restored seen-set answers all offers as the marked one would have.
//! Cost: a mark is 64 names. A restore reads all keys that were in memory or waiting, at 0.05
//! microseconds each, and only checks the length of the other files.

use super::batch::{BUCKETS, Batch};
use super::bucket::{self, Bucket, FOLDER};
use super::files::Files;
use super::log::{self, Log};
use super::table::{Insertion, Table};
use super::{AHEAD, Known, Memory, Seen, Settings, Totals, keys_of};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Mark, Role};

impl Seen {
    /// Returns the state of the seen-set at this moment, which must be quiet ([`Seen::is_quiet`]).
    /// Writes all logs to disk first.
    ///
    /// # Errors
    /// Returns the error of a full disk; the seen-set is then unchanged.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        assert!(self.is_quiet(), "a mark is asked for when nothing is on its way");
        assert!(self.settings.crawl.is_some(), "only a crawl that is kept is marked");
        self.write(disk)?;
        let mut mark = Mark::default();
        let totals = &self.totals;
        mark.state.put_varint(self.files.serial);
        [totals.checks, totals.hits, totals.dropped, totals.merges]
            .into_iter()
            .chain([totals.merge_read_bytes, totals.merge_written_bytes])
            .for_each(|number| mark.state.put_varint(number));
        match &self.known {
            Known::Memory(memory) => put_log(memory.log.as_ref(), memory.table.len(), &mut mark),
            Known::Disk(buckets) => put_buckets(buckets, &mut mark),
            Known::Moving { .. } => unreachable!("not quiet"),
        }
        let waiting = self.batch.as_ref();
        put_log(waiting.map(|batch| &batch.log), self.waiting_urls(), &mut mark);
        self.files.mark(mark.files.iter().map(|(name, _)| name.clone()).collect());
        Ok(mark)
    }

    /// Reports that the last mark is durable. Returns the names of files that are no longer needed,
    /// for the caller to remove in a job of its own.
    pub fn on_durable(&mut self) -> Vec<String> {
        self.files.on_durable();
        self.files.removable()
    }

    /// Restores the state of a durable mark. Files are truncated to their length at the mark; other
    /// files in the folder are removed.
    ///
    /// # Errors
    /// Returns which file is damaged, too short or missing. An invalid state is reported as damage
    /// of the folder.
    pub fn restore(
        settings: Settings,
        state: &[u8],
        disk: &mut dyn Disk,
    ) -> Result<Self, frame::Error> {
        let crawl = settings.crawl.expect("only a crawl that is kept is restored");
        let senseless =
            |Short| Damage { name: FOLDER.to_owned(), offset: 0, flaw: Flaw::Senseless };
        let state = State::take(&mut Take::new(state)).map_err(senseless)?;
        let named = state.names();
        for (name, len) in &named {
            cut(name, *len, disk)?;
        }
        let mut seen = Self::new(settings);
        let names = named.into_iter().map(|(name, _)| name).collect();
        seen.files = Files::resume(state.serial, names);
        seen.files.sweep(disk)?;
        seen.totals = state.totals;
        match state.known {
            Kept::Nothing => {}
            Kept::Keys(keys) => {
                let table = read_keys(&keys, seen.settings.table_bytes(), crawl, disk)?;
                let log = Some(Log::resume(keys.name, keys.bytes));
                seen.len = table.len();
                let is_over = table.bytes() > seen.settings.table_bytes();
                seen.known = Known::Memory(Memory { table, log, is_full: false });
                if is_over {
                    seen.overflow(); // there was more memory then
                }
            }
            Kept::Buckets(buckets) => {
                seen.len = usize::try_from(keys_of(&buckets)).expect("a machine of 64 bits");
                seen.known = Known::Disk(buckets);
                seen.overflow();
            }
        }
        if let Some(waiting) = state.waiting {
            seen.overflow();
            let log = Log::resume(waiting.name.clone(), waiting.bytes);
            let mut batch = Batch::new(log, seen.settings.batch_urls());
            read_waiting(&waiting, &mut batch, crawl, disk)?;
            seen.batch = Some(batch);
        }
        Ok(seen)
    }
}

/// A decoded mark.
struct State {
    serial: u64,
    totals: Totals,
    known: Kept,
    waiting: Option<Records>,
}

/// Where the fingerprints of a mark are stored.
enum Kept {
    Nothing,
    Keys(Records),
    Buckets(Vec<Option<Bucket>>),
}

/// A file of records that a mark names.
struct Records {
    name: String,
    bytes: u64,
    /// The number of records, which are keys or URLs.
    count: u64,
}

impl State {
    fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let serial = counter(take)?;
        let totals = Totals {
            checks: counter(take)?,
            hits: counter(take)?,
            dropped: counter(take)?,
            merges: counter(take)?,
            merge_read_bytes: counter(take)?,
            merge_written_bytes: counter(take)?,
            ..Totals::default()
        };
        let known = match take.u8()? {
            0 => Kept::Nothing,
            1 => Kept::Keys(Records::take(take)?),
            2 => Kept::Buckets(take_buckets(take)?),
            _ => return Err(Short),
        };
        let waiting = match take.u8()? {
            0 => None,
            1 => Some(Records::take(take)?),
            _ => return Err(Short),
        };
        if !take.is_empty() {
            return Err(Short);
        }
        Ok(Self { serial, totals, known, waiting })
    }

    /// Returns the names of the files that this mark needs, and their lengths in bytes at the mark.
    fn names(&self) -> Vec<(String, u64)> {
        let of = |records: &Records| (records.name.clone(), records.bytes);
        let mut names: Vec<_> = self.waiting.iter().map(of).collect();
        match &self.known {
            Kept::Nothing => {}
            Kept::Keys(keys) => names.push(of(keys)),
            Kept::Buckets(buckets) => names.extend(files_of(buckets)),
        }
        names
    }
}

impl Records {
    fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let name = take.str()?.to_owned();
        if !name.starts_with(FOLDER) {
            return Err(Short);
        }
        Ok(Self { name, bytes: counter(take)?, count: counter(take)? })
    }
}

/// Decodes a counter. A value of more than 48 bits is refused, so that the counter can't overflow
/// later.
fn counter(take: &mut Take<'_>) -> Result<u64, Short> {
    take.varint().and_then(|number| if number >> 48 == 0 { Ok(number) } else { Err(Short) })
}

fn put_log(log: Option<&Log>, count: usize, mark: &mut Mark) {
    let Some(log) = log else {
        return mark.state.put_u8(0);
    };
    mark.state.put_u8(1);
    mark.state.put_str(log.name());
    mark.state.put_varint(log.len());
    mark.state.put_varint(count as u64);
    mark.files.push((log.name().to_owned(), log.len()));
}

fn put_buckets(buckets: &[Option<Bucket>], mark: &mut Mark) {
    mark.state.put_u8(2);
    for bucket in buckets {
        mark.state.put_bool(bucket.is_some());
        if let Some(Bucket { serial, bytes, keys }) = *bucket {
            [serial, bytes, keys].into_iter().for_each(|number| mark.state.put_varint(number));
        }
    }
    mark.files.extend(files_of(buckets));
}

fn take_buckets(take: &mut Take<'_>) -> Result<Vec<Option<Bucket>>, Short> {
    let mut buckets = Vec::with_capacity(BUCKETS);
    for _ in 0..BUCKETS {
        let bucket = if take.bool()? {
            Some(Bucket { serial: counter(take)?, bytes: counter(take)?, keys: counter(take)? })
        } else {
            None
        };
        buckets.push(bucket);
    }
    Ok(buckets)
}

/// Returns the names of the files of all buckets, and their lengths in bytes.
fn files_of(buckets: &[Option<Bucket>]) -> impl Iterator<Item = (String, u64)> {
    let there = buckets.iter().enumerate();
    let there = there.filter_map(|(number, bucket)| bucket.map(|bucket| (number, bucket)));
    there.map(|(number, bucket)| (bucket::name(number, bucket.serial), bucket.bytes))
}

/// Truncates a file to `len` bytes, its length at the mark.
fn cut(name: &str, len: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
    let have = disk.len(name)?.unwrap_or(0);
    if have < len {
        return Err(Damage { name: name.to_owned(), offset: have, flaw: Flaw::Cut }.into());
    }
    if have > len {
        disk.truncate(name, len)?;
    }
    Ok(())
}

/// Reads the keys of a file into a table. The table exceeds its memory budget if they don't fit.
fn read_keys(
    keys: &Records,
    bytes_max: usize,
    crawl: u64,
    disk: &mut dyn Disk,
) -> Result<Table, frame::Error> {
    let mut reader = frame::Reader::open(&keys.name, Role::Keys, crawl, Some(keys.bytes), disk)?;
    let mut table = Table::new(bytes_max);
    // A key takes eight bytes, so a wrong count can't reserve more than the file has.
    table.reserve(usize::try_from(keys.count.min(keys.bytes / 8)).unwrap_or(0));
    loop {
        let at = reader.offset();
        let Some(frame) = reader.next(disk)? else { break };
        let records = log::take_records(&frame).filter(|(_, bodies)| bodies.is_empty());
        let mut groups = records.iter().flat_map(|(keys, _)| keys.chunks(AHEAD));
        let mut put_all = |keys: &[[u8; 8]]| {
            let keys = keys.iter().map(|key| u64::from_le_bytes(*key));
            table.fetch(keys.clone());
            keys.into_iter().all(|key| put(&mut table, key))
        };
        if records.is_none() || !groups.all(&mut put_all) {
            return Err(reader.damage(at, Flaw::Senseless).into());
        }
    }
    if table.len() as u64 != keys.count {
        return Err(reader.damage(keys.bytes, Flaw::Senseless).into());
    }
    table.limit(bytes_max);
    Ok(table)
}

/// Adds a key to the table, even beyond its memory budget. Returns false if it was there already.
fn put(table: &mut Table, key: u64) -> bool {
    let put = table.insert(key);
    if put != Insertion::Full {
        return put == Insertion::New;
    }
    table.limit(usize::MAX);
    table.insert(key) == Insertion::New
}

/// Fills a batch with the keys in the log of waiting URLs.
fn read_waiting(
    waiting: &Records,
    batch: &mut Batch,
    crawl: u64,
    disk: &mut dyn Disk,
) -> Result<(), frame::Error> {
    let Records { name, bytes, count } = waiting;
    let mut reader = frame::Reader::open(name, Role::Pending, crawl, Some(*bytes), disk)?;
    loop {
        let at = reader.offset();
        let Some(frame) = reader.next(disk)? else { break };
        let Some((keys, _)) = log::take_records(&frame) else {
            return Err(reader.damage(at, Flaw::Senseless).into());
        };
        keys.iter().for_each(|key| batch.push_key(u64::from_le_bytes(*key)));
    }
    if batch.len() as u64 != *count {
        return Err(reader.damage(*bytes, Flaw::Senseless).into());
    }
    Ok(())
}
