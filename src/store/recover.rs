//! Recovers the archive after an unclean stop: truncates open files to their complete part.
//!
//! A capture counts if its index line is complete and the records up to its end are complete in the
//! WARC file, by the checksums of their members or the digests of their blocks: after a power
//! failure a page inside may be zeros although later ones were written. Lines are in order of
//! capture and are written after their records, so the files are truncated after the last capture
//! that counts. A file that lost something ends the archive: later files were not yet durable, and
//! may refer to what was lost, so they are removed. A file without any capture left is removed,
//! too.
//!
//! What is left is synced, because a killed crawl may not have synced it, and a checkpoint counts
//! everything before its position as durable. For the same reason what is cut off or removed must
//! not come back after a later power failure.
//!
//! Laws: nothing that was synced is cut off; what is left is durable, and what is gone stays away;
//! running it again changes nothing more.
//! Cost: the lines of each open file are read once, and the records that are not known to be
//! durable are inflated, or digested if they are plain. Each open file is synced.

use super::Error;
use super::cdxj;
use super::free_space;
use super::job::{Full, OPEN, SORTING, read};
use super::replay::Position;
use super::segment::{Name, full_of, name_of};
use super::warc::{are_whole, unpack};
use crate::ground::disk::Disk;

/// The state of the archive after the recovery.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The first serial number that no WARC file has had, not even one that was removed.
    pub(super) serial: u32,
    /// The full files that are still to be closed, that is, to get their final names.
    pub(super) full: Vec<Full>,
    /// What was cut off or removed.
    pub(super) cut: Cut,
}

/// What was lost in an unclean stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The number of bytes of WARC files that were cut off, or removed with their files.
    pub warc_bytes: u64,
    /// The number of WARC files removed because they contained no complete capture.
    pub files: u64,
}

/// Checks the open files whose names begin with `prefix`, and cuts off what is incomplete.
/// Everything before the position `durable` is known to be complete and is not checked.
pub(super) fn recover(
    prefix: &str,
    durable: Position,
    disk: &mut dyn Disk,
) -> Result<Found, Error> {
    let mut found = Found::default();
    free_space::clear(disk)?;
    let (warcs, indexes) = (disk.list("warc")?, disk.list("index")?);
    let names = || warcs.iter().chain(&indexes).filter_map(|name| name_of(name, prefix));
    let serials = names().map(|name| name.serial.saturating_add(1));
    found.serial = serials.chain([durable.next_serial()]).max().expect("there is one");
    let mut open: Vec<Name<'_>> = warcs.iter().filter_map(|name| name_of(name, prefix)).collect();
    open.sort_by_key(|name| name.serial);
    let mut plan = Vec::new();
    let mut torn = false;
    for name in open {
        let full = full_of(name.stem, name.suffix == ".warc.gz");
        if name.open {
            let kept = if torn { None } else { whole(&full, durable.bytes_of(name.serial), disk)? };
            // A damaged part of durable data doesn't end the archive; only lost data after
            // `durable` does.
            torn |= name.serial >= durable.serial && kept.as_ref().is_none_or(|kept| kept.torn);
            plan.push((full, kept));
        } else if disk.len(&full.index_open())?.is_some() {
            found.full.push(full);
        }
    }
    // The last file is cut first: if this is interrupted, the files that are left are still
    // recognized as torn.
    for (full, kept) in plan.into_iter().rev() {
        cut(full, kept, disk, &mut found)?;
    }
    found.full.sort_by_key(Full::serial);
    remove_orphans(&indexes, prefix, disk)?;
    Ok(found)
}

/// The lengths of a WARC file and its index up to the last complete capture.
struct Whole {
    warc_bytes: u64,
    index_bytes: u64,
    /// True if the WARC file or the index is longer than its complete part.
    torn: bool,
}

/// Returns the complete part of an open WARC file and its index; `None` if there is no complete
/// capture.
fn whole(full: &Full, durable_bytes: u64, disk: &mut dyn Disk) -> Result<Option<Whole>, Error> {
    let (warc, index) = (full.warc_open(), full.index_open());
    let warc_bytes = disk.len(&warc)?.unwrap_or(0);
    let Some(index_bytes) = disk.len(&index)? else {
        // The lines of this index were sorted already, so the file is complete and only lacks its
        // final name.
        let sorted = disk.len(&full.index)?;
        return Ok(sorted.map(|index_bytes| Whole { warc_bytes, index_bytes, torn: false }));
    };
    let text = read(disk, &index, 0, index_bytes)?;
    let mut kept = None;
    let (mut index_end, mut warc_end) = (0, 0);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        index_end += line.len() as u64;
        let Some((offset, length)) = place_of(line) else {
            break;
        };
        let Some(end) = offset.checked_add(length).filter(|end| *end <= warc_bytes) else {
            break;
        };
        if offset < warc_end {
            break;
        }
        if end > durable_bytes {
            let bytes = read(disk, &warc, warc_end, end - warc_end)?;
            // Between two replies there are what was said of the second's use and its request, and
            // perhaps the first record of the file.
            let at = usize::try_from(offset - warc_end).expect("within what was read");
            if !are_whole(&bytes[..at]) || unpack(&bytes[at..]).is_none() {
                break;
            }
        }
        warc_end = end;
        let torn = end < warc_bytes || index_end < index_bytes;
        kept = Some(Whole { warc_bytes: end, index_bytes: index_end, torn });
    }
    Ok(kept)
}

/// Returns the offset and the length that an index line states. `None` if the line is torn:
/// incomplete or without its line end.
fn place_of(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let entry = cdxj::parse(line).ok()?;
    Some((entry.offset, entry.length))
}

/// Truncates a WARC file and its index to their complete part, or removes both.
fn cut(
    full: Full,
    kept: Option<Whole>,
    disk: &mut dyn Disk,
    found: &mut Found,
) -> Result<(), Error> {
    let (warc, index) = (full.warc_open(), full.index_open());
    let warc_bytes = disk.len(&warc)?.unwrap_or(0);
    let Some(kept) = kept else {
        // The index is cut first: without it the WARC file counts as torn, whatever it contains.
        if disk.len(&index)?.is_some() {
            discard(&index, disk)?;
        }
        discard(&warc, disk)?;
        found.cut.files += 1;
        found.cut.warc_bytes += warc_bytes;
        return Ok(());
    };
    if kept.torn {
        disk.truncate(&index, kept.index_bytes)?;
        disk.truncate(&warc, kept.warc_bytes)?;
    }
    disk.sync(&warc)?;
    if disk.len(&index)?.is_some() {
        disk.sync(&index)?;
    }
    found.cut.warc_bytes += warc_bytes - kept.warc_bytes;
    found.full.push(full);
    Ok(())
}

/// Removes open index files whose WARC file never reached the disk, and unfinished sorted index
/// files. The latter are sorted again if the file with the unsorted lines still exists.
fn remove_orphans(indexes: &[String], prefix: &str, disk: &mut dyn Disk) -> Result<(), Error> {
    for name in indexes {
        if let Some(written) = name.strip_suffix(SORTING) {
            if name_of(written, prefix).is_some() {
                disk.remove(&format!("index/{name}"))?;
            }
            continue;
        }
        let Some(Name { stem, open: true, .. }) = name_of(name, prefix) else {
            continue;
        };
        let mut there = false;
        for gzip in [false, true] {
            let full = full_of(stem, gzip);
            there |= disk.len(&full.warc)?.is_some() || disk.len(&full.warc_open())?.is_some();
        }
        let path = format!("index/{stem}.cdxj{OPEN}");
        if !there && disk.len(&path)?.is_some() {
            discard(&path, disk)?;
        }
    }
    Ok(())
}

/// Empties a file durably and removes it. The removal alone might not survive a power failure; then
/// an empty file is back, which stands for nothing and is removed again.
fn discard(name: &str, disk: &mut dyn Disk) -> Result<(), Error> {
    disk.truncate(name, 0)?;
    disk.sync(name)?;
    disk.remove(name)?;
    Ok(())
}
