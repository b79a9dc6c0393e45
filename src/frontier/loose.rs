//! URLs of one queue, loose: put in order, and written again behind one first, as bytes.
//!
//! By quality what a disk brings back goes between what the head has, and what there is no room for
//! goes on. Behind one first a URL is the same bytes wherever it stands; one that leans on another
//! first is told against this one from what the two have in common. So texts are neither written
//! out nor compared: what tells where a URL goes is read, and its bytes are moved.
//!
//! Laws: what was added comes out, field by field, in whatever order it is written (held to URLs
//! that were unpacked, sorted and written anew). Where the first has less than half of all texts in
//! common with them, [`Loose::is_worth_it`] says so, and they had better be written anew. Cost: a
//! look at the numbers of each URL, a copy of its bytes.

use super::items::{Glance, Standing, Written};
use super::runs::{self, GONE, Lead, NOTHING, Record, Worth};
use super::unpacked::{KEPT_BYTES, Raw, Unpacked};
use crate::codec::Take;
use std::cmp::Reverse;
use std::ops::Range;

/// URLs behind one first.
#[derive(Debug, Default)]
pub(super) struct Loose {
    /// The first, as it is written, gone; nothing if there is none.
    first: Vec<u8>,
    /// What is written behind it, in no order.
    text: Vec<u8>,
    rows: Vec<Row>,
    worth: Worth,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) glance: Glance,
    arrival: u64,
    /// Where it is written; nowhere if it is the first.
    start: u32,
    end: u32,
}

/// More than this is not put together.
const TEXT_BYTES_ENOUGH: usize = 1 << 20;
/// Bytes of a row in a chunk, at the least.
const ROW_BYTES_MIN: usize = 16;
const LOOKED_AT: &str = "it was written here, or looked at";

impl Row {
    fn standing(&self) -> Standing {
        (!self.glance.is_prior, Reverse(self.glance.quality), self.arrival)
    }

    fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn is_first(&self) -> bool {
        self.start == self.end
    }
}

/// The first of a run whose URLs are added, and how they are told behind the first of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind<'a> {
    url: Written<'a>,
    /// `None`: it is that one.
    lead: Option<Lead<'a>>,
}

impl Loose {
    /// Adds URLs, which were looked at.
    pub(super) fn add(&mut self, urls: &Raw<'_>) {
        let mut behind = urls.first.map(|bytes| self.lead(bytes, first_of(bytes)));
        let mut take = Take::new(urls.bytes);
        while !take.is_empty() {
            let (record, bytes) = Record::take_with_bytes(&mut take).expect(LOOKED_AT);
            self.add_record(&record, bytes, &mut behind);
        }
    }

    /// Adds one of some URLs that follow each other, which was looked at, or takes note of the
    /// first of a run that is gone: what was read, and the bytes that it was read from. Keeps what
    /// those that follow lean on.
    #[inline]
    pub(super) fn add_record<'a>(
        &mut self,
        record: &Record<'a>,
        bytes: &[u8],
        behind: &mut Option<Behind<'a>>,
    ) {
        if record.is_first {
            let first = record.whole();
            let lead = self.lead(bytes, first);
            if !record.is_gone {
                self.add_first(&first, lead.lead.is_none());
            }
            *behind = Some(lead);
        } else if !self.is_too_long() {
            self.add_behind(behind.as_ref().expect(LOOKED_AT), record, bytes);
        }
    }

    /// URLs will be added that lean on this first, which is written so.
    pub(super) fn lead<'a>(&mut self, bytes: &[u8], first: Written<'a>) -> Behind<'a> {
        if self.first.is_empty() {
            self.first.extend_from_slice(bytes);
            self.first[0] |= GONE;
        }
        let lead = (!self.is_own(bytes)).then(|| Lead::new(first, &first_of(&self.first)));
        Behind { url: first, lead }
    }

    /// Whether a first that is written so is that which all lean on.
    fn is_own(&self, first: &[u8]) -> bool {
        first.len() == self.first.len()
            && first[0] | GONE == self.first[0]
            && first[1..] == self.first[1..]
    }

    fn add_first(&mut self, url: &Written<'_>, is_own: bool) {
        if is_own {
            let end = self.text.len() as u32;
            self.rows.push(Row { glance: url.glance(), arrival: url.arrival, start: end, end });
        } else if !self.is_too_long() {
            self.add_new(url);
        }
    }

    #[inline]
    fn add_behind(&mut self, behind: &Behind<'_>, record: &Record<'_>, bytes: &[u8]) {
        let start = self.text.len() as u32;
        self.worth.add(match &behind.lead {
            None => {
                self.text.extend_from_slice(bytes);
                record.worth(&behind.url)
            }
            Some(lead) => lead.put(record, &mut self.text),
        });
        self.rows.push(Row {
            glance: record.glance(behind.url.quality),
            arrival: behind.url.arrival.wrapping_add(record.arrival),
            start,
            end: self.text.len() as u32,
        });
    }

    /// Adds a URL with texts of its own; there is a first.
    pub(super) fn add_new(&mut self, url: &Written<'_>) {
        let start = self.text.len() as u32;
        self.worth.add(runs::put_against(&first_of(&self.first), url, &mut self.text));
        let end = self.text.len() as u32;
        self.rows.push(Row { glance: url.glance(), arrival: url.arrival, start, end });
    }

    /// Whether they have half of their texts in common with the first. `false`: some may be
    /// missing.
    pub(super) fn is_worth_it(&self) -> bool {
        self.worth.is_half() && !self.is_too_long()
    }

    /// Whether there is more than anybody writes at once: a short record may lean on a long text.
    fn is_too_long(&self) -> bool {
        self.text.len() > TEXT_BYTES_ENOUGH
    }

    /// Bytes of what is written.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Brings them into the order in which they come out.
    pub(super) fn sort(&mut self) {
        self.rows.sort_unstable_by_key(Row::standing);
    }

    /// All of them.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether the first is one of these.
    pub(super) fn has_first(&self, rows: &[Row]) -> bool {
        rows.iter().any(Row::is_first)
    }

    /// Bytes that so many take if they share little, about, as [`Written::bytes`] has it.
    pub(super) fn bytes_of(&self, urls: usize) -> usize {
        if self.first.is_empty() { 0 } else { first_of(&self.first).bytes() * urls }
    }

    /// How many of some go into so many bytes beside the first, with the one that goes beyond.
    pub(super) fn urls_in(rows: &[Row], bytes: usize) -> usize {
        let mut sum = 0;
        let is_within = |row: &&Row| {
            let is_within = sum < bytes;
            sum += row.range().len().max(ROW_BYTES_MIN);
            is_within
        };
        rows.iter().take_while(is_within).count()
    }

    /// Appends some of them, behind the first.
    pub(super) fn write(&self, rows: &[Row], out: &mut Vec<u8>) {
        let Some(begins) = rows.first() else { return };
        let at = out.len();
        out.extend_from_slice(&self.first);
        let rows = if begins.is_first() {
            out[at] &= !GONE;
            &rows[1..]
        } else {
            rows
        };
        for row in rows {
            if row.is_first() {
                let first = first_of(&self.first);
                runs::put_against(&first, &first, out);
            } else {
                out.extend_from_slice(&self.text[row.range()]);
            }
        }
    }

    /// Appends some of them, told against another first. `false`: they have less than half of their
    /// texts in common with that, and nothing was appended.
    pub(super) fn write_behind(
        &self,
        other: &Written<'_>,
        rows: &[Row],
        out: &mut Vec<u8>,
    ) -> bool {
        let first = first_of(&self.first);
        let (lead, begins) = (Lead::new(first, other), out.len());
        let mut worth = Worth::default();
        for row in rows {
            worth.add(if row.is_first() {
                runs::put_against(other, &first, out)
            } else {
                let record = Record::take(&mut Take::new(&self.text[row.range()]));
                lead.put(&record.expect(LOOKED_AT), out)
            });
        }
        if !worth.is_half() {
            out.truncate(begins);
        }
        worth.is_half()
    }

    /// Appends some of them behind one of them, which becomes the first. `false`: they have less
    /// than half of their texts in common with that, and nothing was appended.
    pub(super) fn write_anew(&self, rows: &[Row], urls: &mut Unpacked, out: &mut Vec<u8>) -> bool {
        let Some((begins, rest)) = rows.split_first() else { return true };
        let at = out.len();
        self.unpack(std::slice::from_ref(begins), out, urls);
        out.truncate(at);
        let first = urls.last().expect("it was unpacked");
        runs::put_first(&first, out);
        let is_told = self.write_behind(&first, rest, out);
        if !is_told {
            out.truncate(at);
        }
        is_told
    }

    /// Writes the texts of some of them out.
    pub(super) fn unpack(&self, rows: &[Row], text: &mut Vec<u8>, urls: &mut Unpacked) {
        let at = text.len();
        self.write(rows, text);
        let raw = Raw { first: None, bytes: &text[at..], count: rows.len() };
        urls.take_raw(&raw).expect(LOOKED_AT);
    }

    /// Forgets all. Little memory is kept for the next time.
    pub(super) fn clear(&mut self) {
        let bytes = self.first.capacity() + self.text.capacity();
        if bytes + self.rows.capacity() * size_of::<Row>() > KEPT_BYTES {
            *self = Self::default();
        }
        self.first.clear();
        self.text.clear();
        self.rows.clear();
        self.worth = Worth::default();
    }
}

fn first_of(bytes: &[u8]) -> Written<'_> {
    if bytes.is_empty() {
        return NOTHING;
    }
    Record::take(&mut Take::new(bytes)).expect(LOOKED_AT).whole()
}
