//! Checks the archive when a crawl resumes, and rebuilds missing index lines from the WARC files.
//!
//! Every line of the index can be derived from a record. An index is rewritten if it is missing, or
//! has missing or damaged lines, or lines that lead to no record. Damage in a WARC file is reported
//! with its offsets, and left there: complete records after it stay in use.
//!
//! A WARC file with its final name may have been moved away; one that was still `.open` is lost if
//! it is missing.
//!
//! Laws: no byte of a WARC file is changed. A rebuilt line is equal to the one written with its
//! record. The end of a growing file that a crash tore off is no damage, and is left to `recover`.
//! Cost: each checked byte is read and inflated once. Checked are the last files up to
//! `verify_bytes_max`, and every file without an index.

use super::capture::{ALLOWED, NOT_MODIFIED, RESERVED};
use super::cdxj::{self, Capture};
use super::digest::Digest;
use super::job::{Full, OPEN, SORTING, read};
use super::records::{Next, Records};
use super::replay::{Position, UNMODIFIED};
use super::segment::{full_of, name_of};
use super::surt::Surt;
use super::warc::{block_of, field};
use super::{Error, Format, Settings};
use crate::ground::disk::Disk;
use crate::ground::map::Map;
use std::collections::BTreeSet;

/// The values of an index line that are taken from the head of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// The HTTP status.
    pub status: u16,
    /// The value of Content-Type; empty if there is none.
    pub mime: String,
    /// The value of Location; `None` if the reply has none.
    pub redirect: Option<String>,
    /// True if the body was sent in chunks.
    pub chunked: bool,
}

/// A function that parses the head at the start of a reply in the same way as the crawl did.
pub type ReadHead = fn(&[u8]) -> Option<HeadFacts>;

/// An event of the check. Each is reported as soon as it happens, for the program's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding<'a> {
    /// A WARC file is being read: its name, its number in the order of checking, and the number of
    /// all files to check.
    Reads(&'a str, usize, usize),
    /// The index of a WARC file was rebuilt: the name of the WARC file, and the number of lines
    /// that were missing or damaged.
    Indexed(&'a str, u64),
    /// A WARC file is damaged: its name, and the two offsets between which there is no complete
    /// record.
    Damaged(&'a str, u64, u64),
    /// An index line leads to no record: the name of the WARC file, the offset in the line, and the
    /// URL.
    Lost(&'a str, u64, &'a str),
    /// A WARC file was read and has no damage: its name, and the number of lines that its index
    /// lacked.
    Sound(&'a str, u64),
    /// The WARC file of an index is missing: the name of the WARC file.
    Gone(&'a str),
    /// A WARC file is missing although it never got its final name: its name, and the number of
    /// captures in it that count as fetched (0 if the number is unknown).
    Missing(&'a str, u64),
    /// The disk has no space for the rebuilt index of a WARC file: the name of the WARC file.
    NoRoom(&'a str),
}

/// The totals of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The number of index lines that were missing or damaged, and were rebuilt.
    pub lines_added: u64,
    /// The number of captures that count as fetched, but whose records are damaged or missing.
    pub lost: u64,
    /// The number of places in WARC files without a complete record.
    pub damaged: u64,
    /// The number of index files whose WARC file is missing.
    pub gone: u64,
    /// The number of bytes of WARC files that were not checked, because `verify_bytes_max` was
    /// reached.
    pub unchecked_bytes: u64,
}

/// Checks the files of an archive, and passes each finding to `report`. Everything before the
/// position `durable` must be complete; what is not counts as damage.
///
/// # Errors
/// Returns an error of the disk, unless the error is that the disk is full.
pub fn repair(
    settings: &Settings,
    durable: Position,
    disk: &mut dyn Disk,
    read_head: ReadHead,
    report: &mut dyn FnMut(Finding<'_>),
) -> Result<Repaired, Error> {
    let rebuilds = durable == Position::END;
    let (done, surt) = (Repaired::default(), Surt::default());
    let usage = FoundUsage::default();
    let mut repair = Repair { done, surt, usage, rebuilds, read_head, report };
    if settings.format == Format::None {
        return Ok(repair.done);
    }
    let mut left = settings.verify_bytes_max;
    let files = files(&settings.prefix, durable, disk)?;
    // The last files are the most likely to be damaged.
    for (number, file) in files.iter().rev().enumerate() {
        let bytes = file.warc_bytes;
        let checks = bytes <= left;
        if checks {
            left -= bytes;
        } else if file.index.is_some() && !file.open {
            repair.done.unchecked_bytes += bytes;
            continue;
        }
        (repair.report)(Finding::Reads(&file.warc, number + 1, files.len()));
        match repair.file(file, checks, disk) {
            Err(error) if error.is_full() => (repair.report)(Finding::NoRoom(&file.warc)),
            repaired => repaired?,
        }
    }
    repair.missing_files(settings, durable, &files, disk)?;
    Ok(repair.done)
}

/// A WARC file and its index, with their current names.
struct File {
    full: Full,
    warc: String,
    warc_bytes: u64,
    index: Option<String>,
    /// True if this file may have been growing when the crawl stopped; the lines of its index are
    /// then in order of capture.
    open: bool,
    /// The number of bytes at the start of the WARC file that must be complete.
    durable_bytes: u64,
}

/// Returns the WARC files of the archive, in the order in which they were written.
fn files(prefix: &str, durable: Position, disk: &mut dyn Disk) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    for name in disk.list("warc")? {
        let Some(parts) = name_of(&name, prefix).filter(|parts| parts.suffix != ".cdxj") else {
            continue;
        };
        let full = full_of(parts.stem, parts.suffix == ".warc.gz");
        let warc = format!("warc/{name}");
        let warc_bytes = disk.len(&warc)?.unwrap_or(0);
        let mut index = None;
        for name in [full.index_open(), full.index.clone()] {
            if index.is_none() && disk.len(&name)?.is_some() {
                index = Some(name);
            }
        }
        let is_sorted = index.as_ref().is_some_and(|index| !index.ends_with(OPEN));
        let open = parts.open && !is_sorted;
        let durable_bytes = if open { durable.bytes_of(parts.serial) } else { u64::MAX };
        files.push((parts.serial, File { full, warc, warc_bytes, index, open, durable_bytes }));
    }
    files.sort_by_key(|(serial, _)| *serial);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

struct Repair<'a> {
    done: Repaired,
    surt: Surt,
    /// The `metadata` record that was read last.
    usage: FoundUsage,
    /// True if it is unknown which data was durable.
    rebuilds: bool,
    read_head: ReadHead,
    report: &'a mut dyn FnMut(Finding<'_>),
}

/// What a `metadata` record says of the use of the page whose record it names.
#[derive(Default)]
struct FoundUsage {
    /// The value of WARC-Concurrent-To.
    of: String,
    allowed: String,
    reserved: String,
    /// Whether the record may be a damaged one: there was damage since the last reply.
    is_unknown: bool,
}

impl FoundUsage {
    fn in_record(record: &[u8]) -> Self {
        let block = block_of(record).and_then(|block| std::str::from_utf8(block).ok());
        let line = |name: &str| {
            let mut lines = block.unwrap_or_default().lines();
            lines.find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
        };
        let of = field(record, "WARC-Concurrent-To").unwrap_or_default().to_owned();
        Self { of, allowed: line(ALLOWED), reserved: line(RESERVED), is_unknown: false }
    }
}

/// The valid lines of an old index, by the offset of their records.
struct Old<'a> {
    lines: Map<u64, (u64, &'a [u8])>,
    /// The number of lines that are invalid or duplicates.
    bad: u64,
    /// The lengths of the beginning that is valid: of the index here, of the WARC file in the next
    /// field.
    sound_bytes: usize,
    sound_end: u64,
}

impl Repair<'_> {
    /// Reports the WARC files that should exist but don't.
    fn missing_files(
        &mut self,
        settings: &Settings,
        durable: Position,
        files: &[File],
        disk: &mut dyn Disk,
    ) -> Result<(), Error> {
        // The file that was growing at the checkpoint, if there was one.
        let mut expected = Some(durable.serial).filter(|_| !self.rebuilds && durable.offset > 0);
        expected.take_if(|serial| files.iter().any(|file| file.full.serial() == *serial));
        let names = disk.list("index")?;
        for name in names.iter().filter_map(|name| name_of(name, &settings.prefix)) {
            let index = format!("index/{}.cdxj", name.stem);
            if files.iter().any(|file| file.full.index == index) {
                continue;
            }
            expected.take_if(|serial| *serial == name.serial);
            if !name.open {
                self.done.gone += 1;
                (self.report)(Finding::Gone(&index));
                continue;
            }
            let captures =
                captures(&format!("{index}{OPEN}"), durable.bytes_of(name.serial), disk)?;
            if captures > 0 {
                self.done.lost += captures;
                let warc = full_of(name.stem, settings.gzip_level > 0).warc_open();
                (self.report)(Finding::Missing(&warc, captures));
            }
        }
        if let Some(serial) = expected {
            self.done.lost += 1;
            let stem = super::segment::stem(&settings.prefix, "*", serial);
            let warc = full_of(&stem, settings.gzip_level > 0).warc_open();
            (self.report)(Finding::Missing(&warc, 0));
        }
        Ok(())
    }

    fn file(&mut self, file: &File, checks: bool, disk: &mut dyn Disk) -> Result<(), Error> {
        let text = match &file.index {
            None => Vec::new(),
            Some(name) => {
                let bytes = disk.len(name)?.unwrap_or(0);
                read(disk, name, 0, bytes)?
            }
        };
        let mut old = Old::of(&text, &file.full.warc["warc/".len()..]);
        let mut new = Vec::new();
        let start = if checks || file.index.is_none() { 0 } else { old.sound_end };
        if start > 0 {
            new.extend_from_slice(&text[..old.sound_bytes]);
            old.lines.retain(|offset, _| *offset >= start);
        }
        let damaged = self.done.damaged;
        let (added, torn_at) = self.walk(file, start, &mut old, &mut new, disk)?;
        // Lines whose records were not found in the WARC file lead to no record.
        let mut lost: Vec<(u64, &[u8])> =
            old.lines.iter().map(|(offset, (_, line))| (*offset, *line)).collect();
        lost.retain(|(offset, _)| torn_at.is_none_or(|torn_at| *offset < torn_at));
        if file.open {
            // A power failure may end the file between two records; what followed wasn't durable.
            let sure_bytes = file.warc_bytes.max(file.durable_bytes);
            lost.retain(|(offset, _)| *offset < sure_bytes);
        }
        if added > 0 && !lost.is_empty() {
            // Recompressing a file moves its records.
            let moved: BTreeSet<_> = lines_of(&new).filter_map(identity_of).collect();
            lost.retain(|(_, line)| identity_of(line).is_none_or(|it| !moved.contains(&it)));
        }
        lost.sort_unstable();
        for (offset, line) in &lost {
            let url = entry_of(line).map(|entry| entry.url.into_owned()).unwrap_or_default();
            (self.report)(Finding::Lost(&file.warc, *offset, &url));
        }
        self.done.lost += lost.len() as u64;
        self.done.lines_added += added;
        if checks && lost.is_empty() && self.done.damaged == damaged {
            (self.report)(Finding::Sound(&file.warc, added));
        }
        let torn = torn_at.is_some();
        if added == 0 && lost.is_empty() && (old.bad == 0 || torn) {
            return Ok(());
        }
        rewrite(file, &new, disk)?;
        if added > 0 || old.bad > 0 {
            (self.report)(Finding::Indexed(&file.warc, added.max(old.bad)));
        }
        Ok(())
    }

    /// Reads the records of a WARC file from the offset `start` on, and collects their index lines
    /// in `new`. Returns the number of lines that were added, and the offset at which data was torn
    /// by a crash (`None` if none was).
    fn walk(
        &mut self,
        file: &File,
        start: u64,
        old: &mut Old<'_>,
        new: &mut Vec<u8>,
        disk: &mut dyn Disk,
    ) -> Result<(u64, Option<u64>), Error> {
        let mut added = 0;
        let mut records = Records::new(&file.warc, start, file.warc_bytes, disk);
        loop {
            match records.next()? {
                Next::End => break,
                Next::Record(offset, length) => {
                    let known = old.lines.remove(&offset).filter(|(told, _)| *told == length);
                    let known = known.map(|(_, line)| line);
                    let before = new.len();
                    let is_sure = self.push_line(&records, file, (offset, length), new);
                    match known {
                        // A record written by another version of this program may lack a value that
                        // its index line has.
                        Some(known) if !is_sure => {
                            new.truncate(before);
                            new.extend_from_slice(known);
                        }
                        known => added += u64::from(known.unwrap_or(b"") != &new[before..]),
                    }
                }
                Next::Damage(from, to, to_end) => {
                    self.usage.is_unknown = true;
                    let is_unknown = self.rebuilds && to_end;
                    if file.open && (from >= file.durable_bytes || is_unknown) {
                        return Ok((added, Some(from)));
                    }
                    self.done.damaged += 1;
                    (self.report)(Finding::Damaged(&file.warc, from, to));
                }
            }
        }
        if file.open && file.durable_bytes != u64::MAX && file.warc_bytes < file.durable_bytes {
            self.done.damaged += 1;
            (self.report)(Finding::Damaged(&file.warc, file.warc_bytes, file.durable_bytes));
        }
        Ok((added, None))
    }

    /// Appends the index line of a record, if the record is that of a reply. Returns whether the
    /// line is certainly equal to the one that was written with the record.
    fn push_line(
        &mut self,
        records: &Records,
        file: &File,
        (offset, length): (u64, u64),
        out: &mut Vec<u8>,
    ) -> bool {
        let record = records.record();
        let kind = field(record, "WARC-Type").unwrap_or_default();
        if kind == "metadata" {
            self.usage = FoundUsage::in_record(record);
            return true;
        }
        let has_usage = field(record, "WARC-Record-ID").is_some_and(|id| id == self.usage.of);
        let is_known = has_usage || !self.usage.is_unknown;
        let usage = Some(&self.usage).filter(|_| has_usage);
        let uses = usage.map(|usage| (&*usage.allowed, &*usage.reserved)).unwrap_or_default();
        let revisit = kind == "revisit";
        let (Some(url), Some(date), Some(block)) = (
            field(record, "WARC-Target-URI").filter(|_| revisit || kind == "response"),
            field(record, "WARC-Date"),
            block_of(record),
        ) else {
            return true;
        };
        // The only head that has no block (see `Ready::response_block`).
        let is_unmodified = field(record, "WARC-Profile") == Some(NOT_MODIFIED);
        let unmodified = HeadFacts { status: UNMODIFIED, ..HeadFacts::default() };
        let head = if is_unmodified { Some(unmodified) } else { (self.read_head)(block) };
        let is_read = head.is_some();
        let head = head.unwrap_or_default();
        let stamp: String = date.chars().filter(char::is_ascii_digit).collect();
        let digest = field(record, "WARC-Payload-Digest").and_then(Digest::parse);
        let line = Capture {
            url,
            stamp: &stamp,
            mime: &head.mime,
            status: head.status,
            digest: digest.as_ref(),
            revisit,
            file: &file.full.warc["warc/".len()..],
            place: (offset, length),
            chunked: head.chunked,
            truncated: field(record, "WARC-Truncated").filter(|_| !revisit),
            redirect: head.redirect.as_deref(),
            uses,
        };
        line.push(out, &mut self.surt);
        self.usage.is_unknown = false;
        is_read && digest.is_some() && is_known
    }
}

impl<'a> Old<'a> {
    fn of(text: &'a [u8], file: &str) -> Self {
        let mut old = Self { lines: Map::default(), bad: 0, sound_bytes: 0, sound_end: 0 };
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let entry = entry_of(line).filter(|entry| entry.file == file);
            let place = entry.map(|entry| (entry.offset, entry.length));
            match place.filter(|(offset, _)| !old.lines.contains_key(offset)) {
                None => old.bad += 1,
                Some((offset, length)) => {
                    old.lines.insert(offset, (length, line));
                    if old.bad == 0 && offset >= old.sound_end {
                        old.sound_bytes += line.len();
                        old.sound_end = offset.saturating_add(length);
                    }
                }
            }
        }
        old
    }
}

/// Returns the number of captures of an index whose records are in the first `durable_bytes` bytes
/// of the WARC file.
fn captures(index: &str, durable_bytes: u64, disk: &mut dyn Disk) -> Result<u64, Error> {
    let bytes = disk.len(index)?.unwrap_or(0);
    let text = read(disk, index, 0, bytes)?;
    let entries = lines_of(&text).filter_map(entry_of);
    Ok(entries.filter(|entry| entry.offset < durable_bytes).count() as u64)
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

/// Returns the properties of a capture that don't depend on the position of its record: its URL,
/// its time and the digest of its payload.
fn identity_of(line: &[u8]) -> Option<(String, &str, String)> {
    let entry = entry_of(line)?;
    Some((entry.url.into_owned(), entry.stamp, entry.digest.into_owned()))
}

/// Parses an index line that still has its line end; `None` if it is invalid.
fn entry_of(line: &[u8]) -> Option<cdxj::Entry<'_>> {
    cdxj::parse(std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?).ok()
}

/// Replaces the index of a WARC file with `lines`.
fn rewrite(file: &File, lines: &[u8], disk: &mut dyn Disk) -> Result<(), Error> {
    let sorting = format!("{}{SORTING}", file.full.index);
    if disk.len(&sorting)?.is_some() {
        disk.remove(&sorting)?;
    }
    let mut lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
    if !file.open {
        lines.sort_unstable();
    }
    let written = disk.append(&sorting, &lines.concat()).and_then(|()| disk.sync(&sorting));
    if let Err(error) = written {
        if disk.len(&sorting)?.is_some() {
            disk.remove(&sorting)?;
        }
        return Err(error.into());
    }
    let name = match &file.index {
        Some(name) => name.clone(),
        None if file.open => file.full.index_open(),
        None => file.full.index.clone(),
    };
    disk.rename(&sorting, &name)?;
    disk.sync(&name)?;
    Ok(())
}
