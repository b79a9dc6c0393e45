//! After a stop that was none: what an earlier run left open is cut to what is whole.
//!
//! A capture counts if its line is whole in the index and the records up to its end are whole in
//! the WARC file, by the checksums of their members or the digests of their blocks: after a loss of
//! power a page within may read as zeros though what is behind it was written. Lines are in order
//! of capture and are written after their records, so the files are cut behind the last capture
//! that counts. A file that lost something ends the archive: what lies in later ones was not yet
//! durable, and may refer to what was lost, so they go. A file with no capture left goes, too.
//!
//! Laws: nothing that was synced is cut; running it again changes nothing more.
//! Cost: the lines of each open file are read once, and the records behind what is known to be
//! durable are inflated, or digested where they are plain.

use super::Error;
use super::cdxj;
use super::job::{Full, OPEN, SORTING, read};
use super::replay::Position;
use super::room;
use super::segment::{Name, full_of, name_of};
use super::warc::{are_whole, unpack};
use crate::ground::disk::Disk;

/// What was found in the job directory.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The first serial no file has had, also of those that are gone.
    pub(super) serial: u32,
    /// Files to be settled.
    pub(super) full: Vec<Full>,
    /// What was cut.
    pub(super) cut: Cut,
}

/// What an unclean stop cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Bytes cut from or removed with WARC files.
    pub warc_bytes: u64,
    /// Files removed because no whole capture was in them.
    pub files: u64,
}

/// Looks at the files of `prefix` and cuts what is torn; all before `durable` is known to be whole.
pub(super) fn recover(
    prefix: &str,
    durable: Position,
    disk: &mut dyn Disk,
) -> Result<Found, Error> {
    let mut found = Found::default();
    room::clear(disk)?;
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
            // What was durable may be damaged, but doesn't end the archive.
            torn |= name.serial >= durable.serial && kept.as_ref().is_none_or(|kept| kept.torn);
            plan.push((full, kept));
        } else if disk.len(&full.index_open())?.is_some() {
            found.full.push(full);
        }
    }
    // Last first: if this is cut short, too, what it did not reach is still seen to be torn.
    for (full, kept) in plan.into_iter().rev() {
        cut(full, kept, disk, &mut found)?;
    }
    found.full.sort_by_key(Full::serial);
    remove_orphans(&indexes, prefix, disk)?;
    Ok(found)
}

/// Bytes of each file up to and with the last capture that counts.
struct Whole {
    warc_bytes: u64,
    index_bytes: u64,
    /// There is more in one of them.
    torn: bool,
}

/// What of an open file is whole; `None` if no capture is.
fn whole(full: &Full, durable_bytes: u64, disk: &mut dyn Disk) -> Result<Option<Whole>, Error> {
    let (warc, index) = (full.warc_open(), full.index_open());
    let warc_bytes = disk.len(&warc)?.unwrap_or(0);
    let Some(index_bytes) = disk.len(&index)? else {
        // Its lines were sorted: it was whole, and all but its name was settled.
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
            // In front of a reply lie its request and perhaps what opens the file.
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

/// Offset and length in a line with its end; `None` if it is torn.
fn place_of(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let entry = cdxj::parse(line).ok()?;
    Some((entry.offset, entry.length))
}

/// Cuts both files to what is whole, or removes them.
fn cut(
    full: Full,
    kept: Option<Whole>,
    disk: &mut dyn Disk,
    found: &mut Found,
) -> Result<(), Error> {
    let (warc, index) = (full.warc_open(), full.index_open());
    let warc_bytes = disk.len(&warc)?.unwrap_or(0);
    let Some(kept) = kept else {
        // The index first: without it the WARC file counts as torn whatever it holds.
        if disk.len(&index)?.is_some() {
            disk.remove(&index)?;
        }
        disk.remove(&warc)?;
        found.cut.files += 1;
        found.cut.warc_bytes += warc_bytes;
        return Ok(());
    };
    if kept.torn {
        disk.truncate(&index, kept.index_bytes)?;
        disk.truncate(&warc, kept.warc_bytes)?;
    }
    found.cut.warc_bytes += warc_bytes - kept.warc_bytes;
    found.full.push(full);
    Ok(())
}

/// Open indexes whose WARC file never reached the disk, and indexes that were being written: they
/// are written again from what they were made of, if that is still there.
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
            disk.remove(&path)?;
        }
    }
    Ok(())
}
