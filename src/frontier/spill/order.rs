//! By quality: what changes places is put in order, as bytes where that can be.
//!
//! URLs that have much in common are moved as bytes ([`super::super::loose`]); others are unpacked,
//! and written anew.
//!
//! Laws: no URL is lost or doubled; what the head keeps is the best there is; chunks are written in
//! order, best band first. Cost: as bytes, a look at the numbers of each URL and a copy of its
//! bytes; else that of writing each anew.

use super::super::items::Written;
use super::super::loose::{Loose, Row};
use super::super::place::{Band, Place};
use super::super::queue::{Item, UrlQueue};
use super::super::server::ServerId;
use super::super::unpacked::{Raw, Unpacked};
use super::{CHUNK_BYTES, Spill, UNSORTED_BYTES};

/// So many URLs of one band have a chunk of their own.
const ROW_URLS: usize = if cfg!(test) { 4 } else { 16 };
const LOOKED_AT: &str = "it was written here, or looked at";

impl Spill {
    /// URLs of chunks that are needed no more come into the head; what that has no room for goes
    /// on. They are `loose`, unless something is at hand.
    pub(super) fn own(
        &mut self,
        id: ServerId,
        queue: &mut UrlQueue,
        urls: &[Raw<'_>],
        loose: Option<Loose>,
        room: usize,
    ) {
        let (mut loose, mut text) = (loose, self.blocks.text());
        if let Some(loose) = &mut loose {
            // What is told anew had better be less, and a head is short when it is read for.
            loose.add(&queue.read_head(&mut text, &self.blocks));
        }
        if let Some(loose) = loose.as_mut().filter(|loose| loose.is_worth_it()) {
            loose.sort();
            let kept = loose.rows().len().min(room.max(1));
            self.keep(id, queue, loose, kept);
        } else {
            let taken = self.unpacked(urls);
            let (mut of_head, mut all) = (Unpacked::default(), self.blocks.row());
            all.extend(taken.iter());
            let rest = queue.own(all, room, &mut of_head, &mut self.blocks);
            self.write_rest(id, queue, &rest);
            self.blocks.put_unpacked_away(of_head);
            self.blocks.put_unpacked_away(taken);
        }
        loose.into_iter().for_each(|loose| self.blocks.put_loose_away(loose));
        self.blocks.put_text_away(text);
    }

    /// Takes all but the best `kept` URLs out of a packed head, if it holds more than there is room
    /// for.
    pub(super) fn trim(&mut self, id: ServerId, queue: &mut UrlQueue, kept: usize, room: usize) {
        if queue.cold().is_none_or(|cold| cold.head.urls() <= room) {
            return;
        }
        let (mut text, mut loose) = (self.blocks.text(), self.blocks.loose());
        let urls = queue.read_head(&mut text, &self.blocks);
        loose.add(&urls);
        if loose.is_worth_it() {
            self.keep(id, queue, &loose, kept.max(1));
        } else {
            let rest = queue.trim(kept, &mut self.blocks);
            self.write_rest_of(id, queue, &rest);
        }
        self.blocks.put_loose_away(loose);
        self.blocks.put_text_away(text);
    }

    /// The best so many are the head, the rest goes on.
    fn keep(&mut self, id: ServerId, queue: &mut UrlQueue, urls: &Loose, kept: usize) {
        queue.set_head_as_is(urls, kept, &mut self.blocks);
        let rest = &urls.rows()[kept..];
        if rest.is_empty() {
        } else if urls.bytes_of(rest.len()) > self.tail_max() {
            self.write_rows_as_is(id, queue, urls, rest, true);
            self.look_for_short(id, queue);
        } else {
            queue.cold_or_new().put_rest(urls, kept, &mut self.blocks);
        }
    }

    /// URLs, all of which are `loose`, go to the disk in their order.
    pub(super) fn write_sorted(
        &mut self,
        id: ServerId,
        queue: &mut UrlQueue,
        urls: &[Raw<'_>],
        mut loose: Loose,
    ) {
        if loose.is_worth_it() {
            loose.sort();
            self.write_rows_as_is(id, queue, &loose, loose.rows(), false);
        } else {
            let (taken, mut row) = (self.unpacked(urls), self.blocks.row());
            row.extend(taken.iter());
            row.sort_unstable_by_key(Written::standing);
            self.write_rows(id, queue, &row, false);
            self.blocks.put_row_away(row);
            self.blocks.put_unpacked_away(taken);
        }
        self.blocks.put_loose_away(loose);
    }

    /// The URLs that are written so.
    pub(super) fn unpacked(&mut self, urls: &[Raw<'_>]) -> Unpacked {
        let mut taken = self.blocks.unpacked();
        urls.iter().try_for_each(|urls| taken.take_raw(urls)).expect(LOOKED_AT);
        taken
    }

    /// URLs, best first, become chunks: long rows of a band chunks of their own, what is between
    /// them chunks of several bands. They go behind those of their band, or `before` them.
    fn write_rows(
        &mut self,
        id: ServerId,
        queue: &mut UrlQueue,
        urls: &[Written<'_>],
        before: bool,
    ) {
        by_rows(urls, Written::band, |urls| {
            let chunks = self.write_chunks(id, true, urls);
            self.add_chunks(queue, chunks, before);
        });
    }

    /// The same, of URLs as they are.
    fn write_rows_as_is(
        &mut self,
        id: ServerId,
        queue: &mut UrlQueue,
        urls: &Loose,
        rows: &[Row],
        before: bool,
    ) {
        by_rows(
            rows,
            |row| row.glance.band(),
            |rows| {
                let chunks = self.write_chunks_as_is(id, urls, rows);
                self.add_chunks(queue, chunks, before);
            },
        );
    }

    fn write_chunks_as_is(
        &mut self,
        id: ServerId,
        urls: &Loose,
        rows: &[Row],
    ) -> Vec<(Place, u32)> {
        let (mut chunks, mut rest) = (Vec::new(), rows);
        let mut text = std::mem::take(&mut self.text);
        while let Some(first) = rest.first() {
            text.clear();
            let (rows, after) = rest.split_at(Loose::urls_in(rest, CHUNK_BYTES));
            urls.write(rows, &mut text);
            let count = u32::try_from(rows.len()).expect("a chunk has few URLs");
            #[cfg(test)]
            {
                let is_mixed = rows[rows.len() - 1].glance.band() != first.glance.band();
                self.seen.mixed += u32::from(is_mixed);
                self.seen.as_is += count;
            }
            chunks.push((self.write_chunk(id, first.glance.band(), count, &text), count));
            rest = after;
        }
        self.text = text;
        chunks
    }

    fn add_chunks(&mut self, queue: &mut UrlQueue, mut chunks: Vec<(Place, u32)>, before: bool) {
        if before {
            chunks.reverse();
        }
        for (place, urls) in chunks {
            queue.cold_or_new().add(place, urls, before, &mut self.blocks);
        }
    }

    /// What a packed queue keeps no longer in its head goes to the tail; much of it to the disk. It
    /// is in order: where it would have to go there soon, it is written as such.
    fn write_rest(&mut self, id: ServerId, queue: &mut UrlQueue, rest: &[Written<'_>]) {
        if rest.iter().map(Written::bytes).sum::<usize>() > self.tail_max() {
            self.write_rows(id, queue, rest, true);
            return self.look_for_short(id, queue);
        }
        for url in rest {
            queue.cold_or_new().put_tail(*url, true, &mut self.blocks);
        }
    }

    /// The same, of URLs that have memory of their own.
    pub(super) fn write_rest_of(&mut self, id: ServerId, queue: &mut UrlQueue, rest: &[Item]) {
        let urls: Vec<Written<'_>> = rest.iter().map(Item::written).collect();
        self.write_rest(id, queue, &urls);
    }

    fn tail_max(&self) -> usize {
        if self.is_nearly_full() { UNSORTED_BYTES } else { CHUNK_BYTES }
    }
}

/// Does something with the long rows of URLs of one band, and then with all that is between them.
fn by_rows<T: Copy>(urls: &[T], band: impl Fn(&T) -> Band, mut what: impl FnMut(&[T])) {
    let rows = || urls.chunk_by(|one, next| band(one) == band(next));
    if rows().all(|row| row.len() < ROW_URLS) {
        return what(urls);
    }
    let mut mixed = Vec::new();
    for row in rows() {
        if row.len() < ROW_URLS {
            mixed.extend_from_slice(row);
        } else {
            what(row);
        }
    }
    what(&mixed);
}
