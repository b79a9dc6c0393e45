//! URLs taken out of bytes: their texts one behind the other, what they share written out.
//!
//! Laws: what [`super::runs`] has put comes out, field by field, and it is told where the
//! bytes of a run's first were. Bytes that make no sense are [`Short`], never a panic, and what was
//! taken before stays as it was; what is allocated is bounded by what the bytes hold, and by a
//! text's longest for each URL. What a disk brought is looked at before ([`super::look`]).
//! Cost: a copy of each text, into memory that is used again.

use super::items::Written;
use super::look::TEXT_BYTES_MAX;
use super::queue::Errand;
use super::runs::{NOTHING, Record, Text, Via};
use crate::codec::{Short, Take};
use crate::quality::Quality;
use std::ops::Range;

/// Some URLs, and the first of the run that they go on with.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    texts: Vec<u8>,
    rows: Vec<Row>,
    first: Option<Row>,
    /// Bytes taken so far, and which of them the first was in.
    used: usize,
    first_at: Range<usize>,
}

/// URLs in a row, as they are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    /// The first of the run that they go on with; `None` if they begin with one.
    pub(super) first: Option<&'a [u8]>,
    pub(super) bytes: &'a [u8],
    pub(super) count: usize,
}

/// Part of all texts.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

/// A URL.
#[derive(Clone, Copy, Debug)]
struct Row {
    target: Span,
    via: Option<Span>,
    quality: Quality,
    arrival: u64,
    depth: u16,
    hops: u8,
    tries: u8,
    errand: Errand,
    found_as: u8,
}

/// More memory isn't kept to be used again.
pub(super) const KEPT_BYTES: usize = 256 << 10;

impl Unpacked {
    /// Takes the next URL, which was written here or looked at.
    pub(super) fn take(&mut self, take: &mut Take<'_>) -> Result<(), Short> {
        loop {
            let (is_gone, row) = self.step(take)?;
            if !is_gone {
                self.rows.push(row);
                return Ok(());
            }
        }
    }

    /// Takes a URL that was read and looked at, or the first of a run that is gone.
    pub(super) fn add(&mut self, record: &Record<'_>) -> Result<(), Short> {
        let row = self.row(record)?;
        if record.is_first {
            self.first = Some(row);
        }
        if !record.is_gone {
            self.rows.push(row);
        }
        Ok(())
    }

    /// Takes URLs that are written so, which were written here or looked at.
    pub(super) fn take_raw(&mut self, urls: &Raw<'_>) -> Result<(), Short> {
        urls.first.map_or(Ok(()), |first| self.lead(first))?;
        let mut take = Take::new(urls.bytes);
        (0..urls.count).try_for_each(|_| self.take(&mut take))
    }

    /// The first of a run, as it is written, of which only those behind it are wanted.
    pub(super) fn lead(&mut self, first: &[u8]) -> Result<(), Short> {
        self.step(&mut Take::new(first)).map(|_| ())
    }

    /// Bytes of what was taken.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Where in these the first of the last run was.
    pub(super) fn first_at(&self) -> Range<usize> {
        self.first_at.clone()
    }

    /// Those that were taken.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Written<'_>> {
        self.rows.iter().map(|row| self.written(row))
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<Written<'_>> {
        self.rows.last().map(|row| self.written(row))
    }

    /// Forgets all. Little memory is kept for the next time.
    pub(super) fn clear(&mut self) {
        if self.texts.capacity() > KEPT_BYTES {
            *self = Self::default();
        }
        self.rows.clear();
        self.texts.clear();
        (self.first, self.used) = (None, 0);
    }

    fn written(&self, row: &Row) -> Written<'_> {
        Written {
            target: self.text(row.target),
            via: row.via.map(|via| self.text(via)),
            quality: row.quality,
            arrival: row.arrival,
            depth: row.depth,
            hops: row.hops,
            tries: row.tries,
            errand: row.errand,
            found_as: row.found_as,
        }
    }

    fn text(&self, span: Span) -> &[u8] {
        &self.texts[span.range()]
    }

    /// Reads the next URL, and whether it is gone. If it is not as it must be, nothing was read.
    fn step(&mut self, take: &mut Take<'_>) -> Result<(bool, Row), Short> {
        let (mut rest, texts) = (*take, self.texts.len());
        let record = Record::take(&mut rest)?;
        let Ok(row) = self.row(&record) else {
            self.texts.truncate(texts);
            return Err(Short);
        };
        let from = self.used;
        self.used += take.rest().len() - rest.rest().len();
        *take = rest;
        if record.is_first {
            (self.first, self.first_at) = (Some(row), from..self.used);
        }
        Ok((record.is_gone, row))
    }

    fn row(&mut self, record: &Record<'_>) -> Result<Row, Short> {
        let first = if record.is_first { None } else { Some(self.first.ok_or(Short)?) };
        let of_first = first.and_then(|first| first.via);
        let how = first.map_or((NOTHING.depth, NOTHING.found_as), |it| (it.depth, it.found_as));
        let (depth, found_as) = record.how.unwrap_or(how);
        let quality = first.map_or(NOTHING.quality, |first| first.quality);
        let arrival = first.map_or(NOTHING.arrival, |first| first.arrival);
        Ok(Row {
            target: self.push(&record.target, first.map(|first| first.target))?,
            via: match &record.via {
                Via::None => None,
                Via::Same => Some(of_first.ok_or(Short)?),
                Via::New(via) => Some(self.push(via, of_first)?),
            },
            quality: record.quality.unwrap_or(quality),
            arrival: arrival.wrapping_add(record.arrival),
            depth,
            hops: record.hops,
            tries: record.tries,
            errand: record.errand,
            found_as,
        })
    }

    /// Appends a text that may share its front and its back with another.
    fn push(&mut self, text: &Text<'_>, other: Option<Span>) -> Result<Span, Short> {
        let (start, other) = (self.texts.len(), other.map_or(0..0, Span::range));
        let bytes = text.len(other.len())?;
        if bytes > TEXT_BYTES_MAX {
            return Err(Short);
        }
        self.texts.reserve(bytes);
        self.texts.extend_from_within(other.start..other.start + text.front);
        self.texts.extend_from_slice(text.middle);
        self.texts.extend_from_within(other.end - text.back..other.end);
        Span::new(start..self.texts.len()).ok_or(Short)
    }
}

impl Span {
    fn new(range: Range<usize>) -> Option<Self> {
        Some(Self { start: range.start.try_into().ok()?, end: range.end.try_into().ok()? })
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
