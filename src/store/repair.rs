//! Checks the archive when a crawl goes on, and rebuilds what its index lacks from the WARC files.
//!
//! The WARC files are the truth: every line of the index follows from a record. An index that is
//! missing, or has missing or damaged lines or ones that lead to no record, is rewritten. Damage in
//! a WARC file is reported with its place, and left there: what is whole behind it stays in use.
//!
//! A WARC file with its final name may have been taken away; one that was still `.open` is lost if
//! it isn't there.
//!
//! Laws: no byte of a WARC file is changed; a rebuilt line is the one that was written when its
//! record was; what a crash tore off the end of a file that was growing is no damage, and left to
//! `recover`. Cost: what is checked is read and inflated once. That is the last files up to
//! `verify_bytes_max`, and every file without an index.

use super::cdxj::{self, Capture};
use super::digest::Digest;
use super::job::{Full, OPEN, SORTING, read};
use super::records::{Next, Records};
use super::replay::Position;
use super::segment::{full_of, name_of};
use super::surt::Surt;
use super::warc::{block_of, field};
use super::{Error, Format, Settings};
use crate::ground::disk::Disk;
use crate::ground::map::Map;
use std::collections::BTreeSet;

/// What an index line takes from the head of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// HTTP status.
    pub status: u16,
    /// Value of Content-Type, empty if there is none.
    pub mime: String,
    /// Value of Location.
    pub redirect: Option<String>,
    /// The body was sent in chunks.
    pub chunked: bool,
}

/// Reads the head at the front of a reply, as the crawl did.
pub type ReadHead = fn(&[u8]) -> Option<HeadFacts>;

/// What was found, as soon as it is: for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding<'a> {
    /// This WARC file is read through: which, and the last one's number.
    Reads(&'a str, usize, usize),
    /// The index of this WARC file was rebuilt: so many lines were missing or damaged.
    Indexed(&'a str, u64),
    /// No whole record in this WARC file, from the one offset to the other.
    Damaged(&'a str, u64, u64),
    /// A line of the index led to no record: the WARC file, the offset, the URL.
    Lost(&'a str, u64, &'a str),
    /// This WARC file was read through and has no damage; its index lacked so many lines.
    Sound(&'a str, u64),
    /// The WARC file of this index isn't there.
    Gone(&'a str),
    /// This WARC file isn't there though it was not closed, and so many captures in it count as
    /// fetched; 0 if nobody knows how many.
    Missing(&'a str, u64),
    /// There is no room for the index of this WARC file.
    NoRoom(&'a str),
}

/// What a check came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Lines of the index that were missing or damaged, and were rebuilt.
    pub lines_added: u64,
    /// Captures that count as fetched, and whose records are damaged or missing.
    pub lost: u64,
    /// Places in WARC files without a whole record.
    pub damaged: u64,
    /// Index files without their WARC file.
    pub gone: u64,
    /// Bytes of WARC files that were not checked.
    pub unchecked_bytes: u64,
}

/// Checks the files of an archive of which all before `durable` must be whole.
///
/// # Errors
/// The disk, unless it is full.
pub fn repair(
    settings: &Settings,
    durable: Position,
    disk: &mut dyn Disk,
    read_head: ReadHead,
    tell: &mut dyn FnMut(Finding<'_>),
) -> Result<Repaired, Error> {
    let rebuilds = durable == Position::END;
    let (done, surt) = (Repaired::default(), Surt::default());
    let mut repair = Repair { done, surt, rebuilds, read_head, tell };
    if settings.format == Format::None {
        return Ok(repair.done);
    }
    let mut left = settings.verify_bytes_max;
    let files = files(&settings.prefix, durable, disk)?;
    // What was written last suffers most.
    for (number, file) in files.iter().rev().enumerate() {
        let bytes = file.warc_bytes;
        let checks = bytes <= left;
        if checks {
            left -= bytes;
        } else if file.index.is_some() && !file.open {
            repair.done.unchecked_bytes += bytes;
            continue;
        }
        (repair.tell)(Finding::Reads(&file.warc, number + 1, files.len()));
        match repair.file(file, checks, disk) {
            Err(error) if error.is_full() => (repair.tell)(Finding::NoRoom(&file.warc)),
            repaired => repaired?,
        }
    }
    repair.missing_files(settings, durable, &files, disk)?;
    Ok(repair.done)
}

/// A WARC file and its index, by the names they have now.
struct File {
    full: Full,
    warc: String,
    warc_bytes: u64,
    index: Option<String>,
    /// It may have grown when the crawl stopped: its lines are in order of capture.
    open: bool,
    /// So many bytes of it must be whole.
    durable_bytes: u64,
}

/// The files, in the order in which they were written.
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
    /// Nobody knows what was durable.
    rebuilds: bool,
    read_head: ReadHead,
    tell: &'a mut dyn FnMut(Finding<'_>),
}

/// Lines of an index that are whole, by the offset of their records.
struct Old<'a> {
    lines: Map<u64, (u64, &'a [u8])>,
    /// What isn't a line, or is the second of its record.
    bad: u64,
    /// How far the lines go without a fault, in the index and in the WARC file.
    sound_bytes: usize,
    sound_end: u64,
}

impl Repair<'_> {
    /// Files that the archive should have, and hasn't.
    fn missing_files(
        &mut self,
        settings: &Settings,
        durable: Position,
        files: &[File],
        disk: &mut dyn Disk,
    ) -> Result<(), Error> {
        // The file that the crawl was writing at the checkpoint, unless that knows of none.
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
                (self.tell)(Finding::Gone(&index));
                continue;
            }
            let captures =
                captures(&format!("{index}{OPEN}"), durable.bytes_of(name.serial), disk)?;
            if captures > 0 {
                self.done.lost += captures;
                let warc = full_of(name.stem, settings.gzip_level > 0).warc_open();
                (self.tell)(Finding::Missing(&warc, captures));
            }
        }
        if let Some(serial) = expected {
            self.done.lost += 1;
            let stem = super::segment::stem(&settings.prefix, "*", serial);
            let warc = full_of(&stem, settings.gzip_level > 0).warc_open();
            (self.tell)(Finding::Missing(&warc, 0));
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
        // What the walk did not meet leads to no record.
        let mut lost: Vec<(u64, &[u8])> =
            old.lines.iter().map(|(offset, (_, line))| (*offset, *line)).collect();
        lost.retain(|(offset, _)| torn_at.is_none_or(|torn_at| *offset < torn_at));
        if file.open {
            // A loss of power may end the file between two records: what lay behind wasn't durable.
            let sure_bytes = file.warc_bytes.max(file.durable_bytes);
            lost.retain(|(offset, _)| *offset < sure_bytes);
        }
        if added > 0 && !lost.is_empty() {
            // Who compresses a file anew moves its records.
            let moved: BTreeSet<_> = lines_of(&new).filter_map(identity_of).collect();
            lost.retain(|(_, line)| identity_of(line).is_none_or(|it| !moved.contains(&it)));
        }
        lost.sort_unstable();
        for (offset, line) in &lost {
            let url = entry_of(line).map(|entry| entry.url.into_owned()).unwrap_or_default();
            (self.tell)(Finding::Lost(&file.warc, *offset, &url));
        }
        self.done.lost += lost.len() as u64;
        self.done.lines_added += added;
        if checks && lost.is_empty() && self.done.damaged == damaged {
            (self.tell)(Finding::Sound(&file.warc, added));
        }
        let torn = torn_at.is_some();
        if added == 0 && lost.is_empty() && (old.bad == 0 || torn) {
            return Ok(());
        }
        rewrite(file, &new, disk)?;
        if added > 0 || old.bad > 0 {
            (self.tell)(Finding::Indexed(&file.warc, added.max(old.bad)));
        }
        Ok(())
    }

    /// Goes through the records from `start` on; returns how many lines were made, and where what
    /// a crash tore begins.
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
                        // A record by another version may lack what its line says.
                        Some(known) if !is_sure => {
                            new.truncate(before);
                            new.extend_from_slice(known);
                        }
                        known => added += u64::from(known.unwrap_or(b"") != &new[before..]),
                    }
                }
                Next::Damage(from, to, to_end) => {
                    let is_unknown = self.rebuilds && to_end;
                    if file.open && (from >= file.durable_bytes || is_unknown) {
                        return Ok((added, Some(from)));
                    }
                    self.done.damaged += 1;
                    (self.tell)(Finding::Damaged(&file.warc, from, to));
                }
            }
        }
        if file.open && file.durable_bytes != u64::MAX && file.warc_bytes < file.durable_bytes {
            self.done.damaged += 1;
            (self.tell)(Finding::Damaged(&file.warc, file.warc_bytes, file.durable_bytes));
        }
        Ok((added, None))
    }

    /// Appends the line of a record, if it is that of a reply; says whether it is as it was when
    /// the record was written.
    fn push_line(
        &mut self,
        records: &Records,
        file: &File,
        (offset, length): (u64, u64),
        out: &mut Vec<u8>,
    ) -> bool {
        let record = records.record();
        let kind = field(record, "WARC-Type").unwrap_or_default();
        let revisit = kind == "revisit";
        let (Some(url), Some(date), Some(block)) = (
            field(record, "WARC-Target-URI").filter(|_| revisit || kind == "response"),
            field(record, "WARC-Date"),
            block_of(record),
        ) else {
            return true;
        };
        let head = (self.read_head)(block);
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
            offset,
            length,
            chunked: head.chunked,
            truncated: field(record, "WARC-Truncated").filter(|_| !revisit),
            redirect: head.redirect.as_deref(),
        };
        line.push(out, &mut self.surt);
        is_read && digest.is_some()
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

/// How many captures of an index lie before so many bytes of its WARC file.
fn captures(index: &str, durable_bytes: u64, disk: &mut dyn Disk) -> Result<u64, Error> {
    let bytes = disk.len(index)?.unwrap_or(0);
    let text = read(disk, index, 0, bytes)?;
    let entries = lines_of(&text).filter_map(entry_of);
    Ok(entries.filter(|entry| entry.offset < durable_bytes).count() as u64)
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

/// What is the same of a capture wherever its record is: URL, time and payload.
fn identity_of(line: &[u8]) -> Option<(String, &str, String)> {
    let entry = entry_of(line)?;
    Some((entry.url.into_owned(), entry.stamp, entry.digest.into_owned()))
}

/// A line with its end.
fn entry_of(line: &[u8]) -> Option<cdxj::Entry<'_>> {
    cdxj::parse(std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?).ok()
}

/// Replaces the index of a file.
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
