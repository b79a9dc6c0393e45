//! Reads the archive on a simulated disk by its index: captures by page.
//!
//! An index whose file is being closed may be there twice, in order of capture (`.open`) and
//! sorted: the sorted one counts. The same is true of WARC files.

use crate::sweep::place_of;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use sted::ground::disk::Disk;
use sted::store::{Algorithm, cdxj};
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::judge::Captures;
use sted::study::web::{Resource, Web};

/// Files that were moved away from the archive, by name.
pub type Taken = BTreeMap<String, Vec<u8>>;

/// Moves the closed files away, each WARC file with its index.
pub fn take_away(disk: &MemoryDisk, taken: &mut Taken) {
    let closed = |name: &String| name.starts_with("warc/") && !name.ends_with(".open");
    for warc in disk.names().into_iter().filter(closed) {
        let stem = warc["warc/".len()..].split(".warc").next().expect("a stem");
        for name in [format!("index/{stem}.cdxj"), warc.clone()] {
            if let Some(bytes) = disk.read(&name) {
                disk.handle().remove(&name).expect("it is there");
                taken.insert(name, bytes);
            }
        }
    }
}

/// The archive's files on a disk: all of them, or their durable parts.
pub struct Archive {
    /// WARC files by name, without `.open`.
    warcs: BTreeMap<String, Vec<u8>>,
    indexes: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Returns all files, including those moved away.
    pub fn of(disk: &MemoryDisk, taken: &Taken) -> Self {
        Self::with(disk, taken, MemoryDisk::read)
    }

    /// Returns the parts that a sync has reported as durable.
    pub fn promised(disk: &MemoryDisk, taken: &Taken) -> Self {
        Self::with(disk, taken, MemoryDisk::promised)
    }

    fn with(
        disk: &MemoryDisk,
        taken: &Taken,
        read: impl Fn(&MemoryDisk, &str) -> Option<Vec<u8>>,
    ) -> Self {
        let folder = |folder: &str| {
            let mut files = BTreeMap::new();
            // A name sorts before the same name with `.open`.
            let names = disk.names().into_iter().chain(taken.keys().cloned());
            for name in names {
                let Some(file) = name.strip_prefix(folder) else { continue };
                let file = file.strip_suffix(".open").unwrap_or(file);
                let bytes = read(disk, &name).or_else(|| taken.get(&name).cloned());
                if let Some(bytes) = bytes.filter(|_| !file.ends_with(".sorting")) {
                    files.entry(file.to_owned()).or_insert(bytes);
                }
            }
            files
        };
        Self { warcs: folder("warc/"), indexes: folder("index/") }
    }

    /// Returns the pages whose line and record are complete; torn ones are skipped.
    pub fn whole(&self, web: &Web) -> Captures {
        let mut captures = Captures::default();
        for line in self.indexes.values().flat_map(|text| text.split_inclusive(|b| *b == b'\n')) {
            let line = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            let Some(entry) = line.and_then(|line| cdxj::parse(line).ok()) else { continue };
            if self.record(&entry).is_ok() {
                count(web, &entry.url, &mut captures);
            }
        }
        captures
    }

    /// Returns all pages. Errors: a line that can't be parsed, or that leads to no record of its
    /// URL, bytes between records, a reply without a line.
    pub fn read(&self, web: &Web) -> Result<Captures, String> {
        let mut captures = Captures::default();
        let mut led: BTreeSet<(&str, u64)> = BTreeSet::new();
        for (name, text) in &self.indexes {
            let text = std::str::from_utf8(text).map_err(|error| format!("{name}: {error}"))?;
            if !text.is_empty() && !text.ends_with('\n') {
                return Err(format!("{name}: a line without end"));
            }
            for line in text.lines() {
                let entry = cdxj::parse(line).map_err(|_| format!("{name}: {line:?}"))?;
                let record = self.record(&entry).map_err(|how| format!("{how}: {line}"))?;
                if field(&record, "WARC-Target-URI") != Some(&entry.url) {
                    return Err(format!("{name}: another URL's record: {line}"));
                }
                let (file, _) = self.warcs.get_key_value(&*entry.file).expect("it was read");
                if !led.insert((file, entry.offset)) {
                    return Err(format!("{name}: two lines for one record: {line}"));
                }
                count(web, &entry.url, &mut captures);
            }
        }
        for (name, bytes) in &self.warcs {
            let mut at = 0;
            while at < bytes.len() {
                let (record, used) =
                    unpack(&bytes[at..]).map_err(|how| format!("{name} at {at}: {how}"))?;
                let kind = field(&record, "WARC-Type").unwrap_or_default();
                let is_reply = matches!(kind, "response" | "revisit");
                if is_reply && !led.contains(&(&**name, at as u64)) {
                    return Err(format!("{name} at {at}: a reply without a line"));
                }
                at += used;
            }
        }
        Ok(captures)
    }

    /// Returns the record that a line refers to.
    fn record(&self, entry: &cdxj::Entry<'_>) -> Result<Vec<u8>, String> {
        let file = self.warcs.get(&*entry.file).ok_or("no such file")?;
        let from = usize::try_from(entry.offset).map_err(|_| "far out")?;
        let length = usize::try_from(entry.length).map_err(|_| "far out")?;
        let to = from.checked_add(length).ok_or("far out")?;
        let (record, used) = unpack(file.get(from..to).ok_or("the file is shorter")?)?;
        if used == length { Ok(record) } else { Err(format!("a record of {used} bytes")) }
    }
}

/// Decompresses the record at the front; returns it with its compressed length.
fn unpack(bytes: &[u8]) -> Result<(Vec<u8>, usize), String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let used = length(bytes)?;
        return Ok((bytes[..used].to_vec(), used));
    }
    let mut rest = bytes;
    let mut record = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(&mut rest);
    member.read_to_end(&mut record).map_err(|error| error.to_string())?;
    match length(&record)? {
        whole if whole == record.len() => Ok((record, bytes.len() - rest.len())),
        other => Err(format!("a member of {} bytes, a record of {other}", record.len())),
    }
}

/// Returns the length of the record at the front: head, block and two line ends.
fn length(bytes: &[u8]) -> Result<usize, String> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no head")? + 4;
    if !bytes.starts_with(b"WARC/1.1\r\n") {
        return Err("no record".to_owned());
    }
    let block = field(bytes, "Content-Length").and_then(|text| text.parse::<usize>().ok());
    let end = block.and_then(|block| head.checked_add(block)).ok_or("no length")?;
    if bytes[..head].contains(&0) {
        return Err("zeros in a head".to_owned());
    }
    if bytes.get(end..end + 4) != Some(b"\r\n\r\n") {
        return Err("no end".to_owned());
    }
    let digest = field(bytes, "WARC-Block-Digest").ok_or("no digest")?;
    if Algorithm::default().of(&bytes[head..end]).to_string() != digest {
        return Err("another block than was digested".to_owned());
    }
    Ok(end + 4)
}

/// Returns a field of a record's head.
fn field<'a>(record: &'a [u8], name: &str) -> Option<&'a str> {
    let head = record.split(|byte| *byte == b'\n').take_while(|line| *line != b"\r");
    let mut lines = head.filter_map(|line| std::str::from_utf8(line).ok());
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

fn count(web: &Web, url: &str, captures: &mut Captures) {
    if let Some(place) =
        place_of(web, url).filter(|place| matches!(place.resource, Resource::Page(_)))
    {
        *captures.entry(place).or_default() += 1;
    }
}
