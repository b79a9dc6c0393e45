//! Lines of a robots.txt about the use of pages: Content-Signal, Content-Usage and License.
//!
//! A Content-Signal or Content-Usage line has a path, or holds for all paths. Of those of one key
//! that match a target, the one with the longest path counts, as for Disallow; several of one path
//! count together, and of different paths of one length the earlier. What a text means isn't known
//! here.
//!
//! Lines of a group hold for its crawlers; those above the first User-agent line, where authors put
//! them though the draft doesn't know them there, hold for all. License (the address of terms in
//! the RSL format) holds for the whole file.
//!
//! Laws: those of [`super::matching`]. Cost: that of a look-up among rules, and nothing for a file
//! without such lines.
//! Source: draft-ietf-aipref-attach-04, section 4; contentsignals.org; RSL 1.0, section 4.1.

use super::matching::{Builder, Table};
use super::octets::{self, Target};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::map::Map;

/// The keys of lines with paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Signal,
    Usage,
}

/// What the lines about use say of a target, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage<'a> {
    /// The values of Content-Signal lines, one on each line.
    pub signals: &'a str,
    /// The values of Content-Usage lines, one on each line.
    pub usages: &'a str,
    /// The values of License lines, one on each line.
    pub licenses: &'a str,
}

/// The lines that apply to a product.
#[derive(Clone, Debug, Default)]
pub(super) struct Usages {
    signals: Statements,
    usages: Statements,
    licenses: Box<str>,
}

/// The statements of one key: a table whose lines are their numbers.
#[derive(Clone, Debug, Default)]
struct Statements {
    paths: Table,
    texts: Vec<Box<str>>,
}

/// The lines of one audience, while a file is read.
#[derive(Clone, Default)]
pub(super) struct Lines {
    signals: Vec<(Box<[u8]>, Box<str>)>,
    usages: Vec<(Box<[u8]>, Box<str>)>,
    /// One on each line.
    licenses: String,
}

impl Lines {
    pub(super) fn add_license(&mut self, value: &[u8]) {
        if !value.is_empty() {
            let separator = if self.licenses.is_empty() { "" } else { "\n" };
            self.licenses.push_str(separator);
            self.licenses.push_str(&String::from_utf8_lossy(value));
        }
    }

    /// Adds a line; its value may begin with a path.
    pub(super) fn add(&mut self, key: Key, value: &[u8]) {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let (path, text) = match value.first() {
            Some(b'/' | b'*') => {
                let end = value.iter().position(is_blank).unwrap_or(value.len());
                (&value[..end], value[end..].trim_ascii())
            }
            _ => (&b"/"[..], value),
        };
        let text = String::from_utf8_lossy(text);
        if !text.is_empty() {
            let lines = match key {
                Key::Signal => &mut self.signals,
                Key::Usage => &mut self.usages,
            };
            lines.push((path.into(), text.into()));
        }
    }

    /// Appends those of an audience.
    pub(super) fn append(&mut self, mut other: Self) {
        self.signals.append(&mut other.signals);
        self.usages.append(&mut other.usages);
    }

    pub(super) fn finish(self) -> Option<Box<Usages>> {
        let (signals, usages) = (Statements::of(self.signals), Statements::of(self.usages));
        let all = Usages { signals, usages, licenses: self.licenses.into() };
        (!all.is_empty()).then(|| Box::new(all))
    }
}

impl Statements {
    fn of(lines: Vec<(Box<[u8]>, Box<str>)>) -> Self {
        let (mut paths, mut texts) = (Builder::default(), Vec::<String>::new());
        // Spellings of one path are one.
        let mut places: Map<Vec<u8>, usize> = Map::default();
        for (path, text) in lines {
            let mut spelling = Vec::new();
            if octets::rule(&path, false, &mut spelling).is_none() {
                continue;
            }
            let place = *places.entry(spelling).or_insert(texts.len());
            if place < texts.len() {
                texts[place].push('\n');
                texts[place].push_str(&text);
            } else {
                paths.add(&path, false, place as u32);
                texts.push(text.into());
            }
        }
        Self { paths: paths.finish(), texts: texts.into_iter().map(String::into).collect() }
    }

    /// Returns what is said of a target, and the units of work it took.
    fn of_target(&self, target: &Target) -> (&str, usize) {
        if self.texts.is_empty() {
            return ("", 0);
        }
        let (found, units) = self.paths.decide(target);
        let text = found.and_then(|verdict| self.texts.get(verdict.line as usize));
        (text.map_or("", |text| text), units)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.paths.encode(out);
        out.put_varint(self.texts.len() as u64);
        self.texts.iter().for_each(|text| out.put_bytes(text.as_bytes()));
    }

    fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let paths = Table::decode(take)?;
        let texts = (0..take.varint()?).map(|_| text(take)).collect::<Result<_, _>>()?;
        Ok(Self { paths, texts })
    }

    fn heap_bytes(&self) -> usize {
        let texts = self.texts.iter().map(|text| text.len() + size_of::<Box<str>>());
        self.paths.heap_bytes() + texts.sum::<usize>()
    }
}

impl Usages {
    fn is_empty(&self) -> bool {
        self.signals.texts.is_empty() && self.usages.texts.is_empty() && self.licenses.is_empty()
    }

    /// Returns what is said of a target, and the units of work it took.
    pub(super) fn of_target(&self, target: &Target) -> (Usage<'_>, usize) {
        let (signals, units) = self.signals.of_target(target);
        let (usages, more) = self.usages.of_target(target);
        (Usage { signals, usages, licenses: &self.licenses }, units + more)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.signals.encode(out);
        self.usages.encode(out);
        out.put_bytes(self.licenses.as_bytes());
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let (signals, usages) = (Statements::decode(take)?, Statements::decode(take)?);
        Ok(Self { signals, usages, licenses: text(take)? })
    }

    pub(super) fn size_bytes(&self) -> usize {
        size_of::<Self>()
            + self.signals.heap_bytes()
            + self.usages.heap_bytes()
            + self.licenses.len()
    }
}

fn text(take: &mut Take<'_>) -> Result<Box<str>, Short> {
    std::str::from_utf8(take.bytes()?).map(Box::from).map_err(|_| Short)
}
