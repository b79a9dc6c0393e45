//! The files of the crawl log: `crawl.log`, which grows, and its rotated parts `crawl-00000.log`
//! and so on.
//!
//! The log is rotated when it is long enough, or on request. Other programs may rename or truncate
//! the file (`logrotate` does either): before bytes are written the file is looked up by its name,
//! and the log continues at its end. Parts may be moved away, so each is listed in `crawl.parts`
//! before it gets its name: numbers are never reused.
//!
//! Laws: no line is split over two parts. No file is overwritten. A part is only created when the
//! one before it is durable or gone, so a crash damages at most the newest part and `crawl.log`.
//! Cost: two system calls a flush; a rotation lists the job directory.

use super::Error;
use super::job::read;
use crate::ground::disk::{self, Disk};
use crate::ground::tail::Tail;
use std::io;

/// The name of the file to which log lines are appended.
pub(super) const LOG: &str = "crawl.log";

/// The name of the file that lists all rotated parts that ever existed, one on each line.
pub(super) const PARTS: &str = "crawl.parts";

/// The number of bytes that are read at the end of the file [`PARTS`].
const PARTS_READ_MAX: u64 = 64 << 10;

/// The maximum number of digits in the number of a part.
const DIGITS_MAX: usize = 18;

/// The files of the crawl log, with the lines that wait to be written.
#[derive(Debug)]
pub(super) struct LogFile {
    tail: Tail,
    /// The length at which the file is rotated, in bytes.
    bytes_max: u64,
    /// The number of the next part; no part has had this number or a higher one.
    next: u64,
    /// The name of the last part; `None` if it is known to be durable.
    unsynced: Option<String>,
    /// True if the log must be rotated as soon as possible, whatever its length.
    wanted: bool,
}

impl LogFile {
    /// Opens the log that an earlier run left, and truncates it after its last complete line.
    pub(super) fn open(bytes_max: u64, disk: &mut dyn Disk) -> Result<Self, Error> {
        let parts = parts(disk)?;
        if let Some(last) = parts.last() {
            trim(last, disk)?;
        }
        let next = next_listed(disk)?;
        let bytes = trim(LOG, disk)?;
        let tail = Tail::new(LOG.to_owned(), bytes);
        // A run that was killed may not have synced its last part.
        let unsynced = parts.into_iter().next_back();
        Ok(Self { tail, bytes_max, next, unsynced, wanted: false })
    }

    /// Returns the buffer to which new lines are appended until they are written.
    pub(super) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.tail.pending
    }

    /// Writes the buffered lines, and rotates the log if it is long enough. On an error all lines
    /// stay in the buffer.
    pub(super) fn flush(
        &mut self,
        may_rotate: bool,
        disk: &mut dyn Disk,
        kept_bytes: usize,
    ) -> Result<(), disk::Error> {
        self.tail.follow(disk)?;
        self.tail.flush(disk, kept_bytes)?;
        let is_due = self.wanted || self.tail.len() >= self.bytes_max;
        if !may_rotate || !is_due || self.tail.is_empty() {
            return Ok(());
        }
        if let Some(part) = &self.unsynced {
            disk.refresh(part)?;
            if disk.len(part)?.is_none() {
                // It was moved away before it was durable, so it can't be synced any more.
                self.unsynced = None;
            }
        }
        if self.unsynced.is_none() { self.rotate(disk) } else { Ok(()) }
    }

    /// Requests a rotation of the log, whatever its length.
    pub(super) fn want_rotation(&mut self) {
        self.wanted = true;
    }

    /// Returns the names of the files to be synced. Another program may have removed them by then.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let unsynced = self.unsynced.as_deref().into_iter();
        unsynced.flat_map(|part| [part, PARTS]).chain([LOG])
    }

    /// Records that these files are durable.
    pub(super) fn synced(&mut self, files: &[String]) {
        if self.unsynced.as_ref().is_some_and(|part| files.contains(part)) {
            self.unsynced = None;
        }
    }

    fn rotate(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        // Other files may have been put here since the last rotation.
        self.next = self.next.max(next_unused(disk)?);
        let part = format!("crawl-{:05}.log", self.next);
        disk.refresh(PARTS)?;
        disk.append(PARTS, format!("{part}\n").as_bytes())?;
        self.next += 1;
        match disk.rename(LOG, &part) {
            // Another program has just renamed the log.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.wanted = false;
        self.unsynced = Some(part);
        let pending = std::mem::take(&mut self.tail.pending);
        self.tail = Tail::new(LOG.to_owned(), 0);
        self.tail.pending = pending;
        Ok(())
    }
}

/// Returns whether a file name is that of the crawl log or of one of its parts.
pub(super) fn is_log(name: &str) -> bool {
    name == LOG || name == PARTS || number_of(name).is_some()
}

/// Returns the rotated parts of the log in a job's directory, oldest first.
///
/// # Errors
/// Returns an error of the disk.
pub fn parts(disk: &mut dyn Disk) -> Result<Vec<String>, disk::Error> {
    let mut parts = disk.list("")?;
    parts.retain(|name| number_of(name).is_some());
    parts.sort_by_key(|name| number_of(name));
    Ok(parts)
}

/// Returns the number in the name of a part, such as 7 for `crawl-00007.log`.
fn number_of(name: &str) -> Option<u64> {
    let (number, suffix) = numbered(name)?;
    (suffix == ".log").then_some(number)
}

/// Returns the number in the name of a part, and what follows the number: `.log`, or what another
/// program made of it (`.log.gz`, `.log.1`, ` (copy).log`).
fn numbered(name: &str) -> Option<(u64, &str)> {
    let rest = name.strip_prefix("crawl-")?;
    let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at(end);
    let is_number = (5..=DIGITS_MAX).contains(&digits.len());
    Some((digits.parse().ok().filter(|_| is_number)?, suffix))
}

/// Returns a number above those of all parts in the job directory, even of renamed ones.
fn next_unused(disk: &mut dyn Disk) -> Result<u64, disk::Error> {
    let names = disk.list("")?;
    let numbers = names.iter().filter_map(|name| numbered(name));
    Ok(numbers.map(|(number, _)| number + 1).max().unwrap_or(0))
}

/// Returns a number above those of all parts listed in [`PARTS`], even of those that were moved
/// away.
fn next_listed(disk: &mut dyn Disk) -> Result<u64, Error> {
    let Some(bytes) = disk.len(PARTS)? else { return Ok(0) };
    let start = bytes.saturating_sub(PARTS_READ_MAX);
    let list = read(disk, PARTS, start, bytes - start)?;
    // An entry may be torn, and followed by the next one without a line end.
    let places = memchr::memmem::find_iter(&list, "crawl-");
    let texts = places.filter_map(|at| list[at..].split(|&byte| byte == b'\n').next());
    let numbers = texts.filter_map(|text| Some(numbered(std::str::from_utf8(text).ok()?)?.0));
    Ok(numbers.map(|number| number + 1).max().unwrap_or(0))
}

/// Truncates a log after its last complete line; returns the remaining length, in bytes.
fn trim(name: &str, disk: &mut dyn Disk) -> Result<u64, Error> {
    const PIECE_BYTES: u64 = 64 << 10;
    let Some(bytes) = disk.len(name)? else {
        return Ok(0);
    };
    let mut end = hole(name, bytes, disk)?.unwrap_or(bytes);
    let whole = loop {
        let start = end.saturating_sub(PIECE_BYTES);
        let piece = read(disk, name, start, end - start)?;
        match memchr::memrchr(b'\n', &piece) {
            Some(place) => break start + place as u64 + 1,
            None if start == 0 => break 0,
            None => end = start,
        }
    };
    if whole < bytes {
        disk.truncate(name, whole)?;
    }
    Ok(whole)
}

/// Returns the offset of the first zero near the end of a log, where a page was lost in a power
/// failure; `None` if there is none. Only as many bytes are searched as may be written between two
/// syncs.
fn hole(name: &str, bytes: u64, disk: &mut dyn Disk) -> Result<Option<u64>, Error> {
    const UNSYNCED_BYTES_MAX: u64 = 32 << 20;
    const PIECE_BYTES: u64 = 1 << 20;
    let mut at = bytes.saturating_sub(UNSYNCED_BYTES_MAX);
    while at < bytes {
        let count = PIECE_BYTES.min(bytes - at);
        let piece = read(disk, name, at, count)?;
        if let Some(place) = memchr::memchr(0, &piece) {
            return Ok(Some(at + place as u64));
        }
        at += count;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;

    /// Writes a line and rotates as SIGUSR1 does; returns the name of the part. Earlier parts count
    /// as synced.
    fn rotate(log: &mut LogFile, line: &str, disk: &mut Memory) -> String {
        log.unsynced = None;
        log.pending().extend_from_slice(line.as_bytes());
        log.want_rotation();
        log.flush(true, disk, 0).expect("room");
        log.unsynced.clone().expect("renamed")
    }

    fn open(disk: &mut Memory) -> LogFile {
        LogFile::open(1 << 20, disk).expect("a log")
    }

    /// Law: no rotation overwrites a file, whoever created it and whatever its name.
    #[test]
    fn no_part_is_written_over() {
        let stranger = [
            "crawl-00000.log",
            "crawl-00000.log.gz",
            "crawl-00000.gz",
            "crawl-00000.log.1",
            "crawl-00000 (copy).log",
            "crawl-00007.log",
            "crawl-123456789012345678.log",
        ];
        for name in stranger {
            for is_open in [false, true] {
                let mut disk = Memory::default();
                let mut log = open(&mut disk);
                disk.append(name, b"theirs\n").expect("room");
                if is_open {
                    log = open(&mut disk);
                }
                let first = rotate(&mut log, "a\n", &mut disk);
                let second = rotate(&mut log, "b\n", &mut disk);
                assert_eq!(disk.bytes(name), b"theirs\n", "{name}");
                assert_eq!(
                    (disk.bytes(&first), disk.bytes(&second)),
                    (b"a\n".to_vec(), b"b\n".to_vec())
                );
                let (number, _) = numbered(name).expect("a number");
                assert_eq!(first, format!("crawl-{:05}.log", number + 1), "{name}");
            }
        }
    }

    /// Another program renames the log to the next part.
    #[test]
    fn a_log_that_was_renamed_to_the_next_part_stays() {
        let mut disk = Memory::default();
        let mut log = open(&mut disk);
        log.pending().extend_from_slice(b"a\n");
        log.flush(true, &mut disk, 0).expect("room");
        disk.rename(LOG, "crawl-00000.log").expect("there");
        assert_eq!(rotate(&mut log, "b\n", &mut disk), "crawl-00001.log");
        assert_eq!(disk.bytes("crawl-00000.log"), b"a\n");
    }

    /// Law: numbering continues after all parts were moved away, also after a restart.
    #[test]
    fn numbers_outlive_their_parts() {
        let mut disk = Memory::default();
        for number in 0..20 {
            let mut log = open(&mut disk);
            let part = rotate(&mut log, "a\n", &mut disk);
            assert_eq!(part, format!("crawl-{number:05}.log"));
            disk.remove(&part).expect("there");
        }
        // Torn by a power failure, followed by another line.
        for torn in ["crawl-0003", "\0\0\0\0", "crawl-00041.log\n", "\u{e9}"] {
            disk.append(PARTS, torn.as_bytes()).expect("room");
        }
        assert_eq!(open(&mut disk).next, 42);
        disk.remove(PARTS).expect("there");
        assert_eq!(open(&mut disk).next, 0);
    }

    /// A part that is moved away before it was synced doesn't stop the rotation.
    #[test]
    fn a_part_that_is_gone_keeps_nothing_waiting() {
        let mut disk = Memory::default();
        let mut log = open(&mut disk);
        for number in 0..3 {
            log.pending().extend_from_slice(b"a\n");
            log.want_rotation();
            log.flush(true, &mut disk, 0).expect("room");
            let part = log.unsynced.clone().expect("renamed");
            assert_eq!(part, format!("crawl-{number:05}.log"));
            disk.remove(&part).expect("there");
        }
    }

    /// A full disk: no line is lost, and the next attempt rotates, whatever the first one left in
    /// the list.
    #[test]
    fn a_full_disk_rotates_later() {
        for room in 0..16 {
            let mut disk = Memory::default();
            let mut log = open(&mut disk);
            log.pending().extend_from_slice(b"a\n");
            log.flush(true, &mut disk, 0).expect("room");
            log.want_rotation();
            disk.limit(Some(disk.used() + room), true);
            log.flush(true, &mut disk, 0).expect_err("no room");
            assert_eq!(disk.bytes(LOG), b"a\n");
            disk.limit(None, false);
            assert_eq!(rotate(&mut log, "b\n", &mut disk), "crawl-00000.log");
            assert_eq!(disk.bytes("crawl-00000.log"), b"a\nb\n");
            assert_eq!(open(&mut disk).next, 1, "{:?}", disk.bytes(PARTS));
        }
    }
}
