//! What of a queue is not at hand: URLs as bytes in memory, and chunks of them on disk.
//!
//! The *head* comes next; by quality it is sorted. Then come the chunks, and the *tail*, URLs in
//! order of arrival that may become a chunk. By quality chunks and tail count by their best band;
//! in order of arrival there is one band, and all is in its order.
//!
//! A chunk is read whole, but used up in steps: its place tells how far. So a server takes as many
//! URLs as it has room for, and what is left costs no second write. By quality a chunk that was
//! short from the start may hold its URLs in any order, and is used up at once.
//!
//! Laws: chunks are sorted by the band of their next URL, best first; what is told of head and tail
//! (bands, the sum, the worst) is what is in them; head, tail and chunks are runs of URLs
//! ([`super::super::runs`]), so that they can follow each other as they are. Cost: 128 bytes a
//! queue, eight a chunk if there are more than five, and the bytes of URLs in blocks (`blocks`); to
//! append one to the tail, a look at the first of its run.

mod best;

use super::super::items::{Glance, Written};
use super::super::place::{Band, Place};
use super::super::runs::{GONE, Run};
use super::super::unpacked::{Raw, Unpacked};
use super::Item;
use super::blocks::{Blocks, Chain, Cursor};
use super::packed::{self, first, put_run, take, take_front, take_one, urls_of};
use super::places::Places;
use crate::quality::Quality;
use std::ops::Range;

/// What of a queue is not at hand.
#[derive(Debug, Default)]
pub(in super::super) struct Cold {
    pub(in super::super) head: Chain,
    pub(in super::super) tail: Chain,
    /// Best band first, oldest first.
    places: Places,
    /// Of the best qualities in the head, in millionths, of as many as count.
    sum: u64,
    /// How many counted when that was made; 0: it isn't right any more.
    summed: u32,
    /// Of the last one in the head; of a robots.txt the highest.
    worst: Quality,
    /// URLs in chunks.
    disk_urls: u32,
    /// Where the last run begins, of the tail or of the head if there is none, and how many URLs
    /// it has; 0: the next URL begins one.
    run: Cursor,
    run_urls: u8,
    /// The second block of the head, most likely: it is asked for together with the first.
    pub(in super::super) second: u32,
    front_band: Band,
    tail_band: Band,
    /// Somebody is at its chunks.
    pub(in super::super) task: Task,
}

/// What is being done with the chunks of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Task {
    #[default]
    Nothing,
    /// The next ones are to be read, or are being read.
    Reading,
    /// Many short ones are being made into fewer.
    Merging,
}

/// More URLs of one server on disk are damage, or the end of the crawl.
const DISK_URLS_MAX: usize = u32::MAX as usize / 2;
/// Chunks of one queue that come in at once, and their bytes.
const READS_MAX: usize = 16;
const READ_BYTES_MAX: usize = 8 << 10;
/// With what an allocator adds.
const BOX_BYTES: usize = size_of::<Cold>() + 8;

impl Cold {
    /// Bytes of memory beside what is in blocks.
    pub(super) fn bytes(&self) -> usize {
        BOX_BYTES + self.places.bytes()
    }

    /// Whether there is nothing left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty()
            && self.tail.is_empty()
            && self.places.is_empty()
            && self.task == Task::Nothing
    }

    /// URLs in memory that are not in the head, and URLs on disk.
    pub(in super::super) fn urls_outside(&self) -> (usize, usize) {
        (self.tail.urls(), self.disk_urls as usize)
    }

    /// The number of the block in which the last run begins; 0 if there is none.
    pub(in super::super) fn run_block(&self) -> u32 {
        if self.run_urls == 0 { 0 } else { self.run.block() }
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) fn worst(&self) -> Quality {
        self.worst
    }

    /// The band of the first URL in the head.
    pub(super) fn front_band(&self) -> Option<Band> {
        (!self.head.is_empty()).then_some(self.front_band)
    }

    /// The best band of the tail.
    pub(in super::super) fn tail_band(&self) -> Option<Band> {
        (!self.tail.is_empty()).then_some(self.tail_band)
    }

    /// The best band of chunks.
    pub(super) fn chunk_band(&self) -> Option<Band> {
        self.places.front().map(Place::band)
    }

    /// Appends a URL to the tail.
    pub(in super::super) fn put_tail(
        &mut self,
        url: Written<'_>,
        by_quality: bool,
        blocks: &mut Blocks,
    ) {
        let band = if by_quality { url.band() } else { 0 };
        if self.tail.is_empty() {
            (self.tail_band, self.run_urls) = (band, 0);
        }
        self.tail_band = self.tail_band.max(band);
        let mut tail = std::mem::take(&mut self.tail);
        self.append(&mut tail, url, blocks);
        self.tail = tail;
    }

    /// By arrival: appends a URL to the head.
    pub(super) fn put_head(&mut self, url: Written<'_>, blocks: &mut Blocks) {
        self.front_band = 0;
        if !self.tail.is_empty() {
            // The last run is not the head's: as a damaged checkpoint may have it.
            return put_run(blocks, &mut self.head, std::iter::once(url));
        }
        let mut head = std::mem::take(&mut self.head);
        self.append(&mut head, url, blocks);
        self.head = head;
    }

    fn append(&mut self, chain: &mut Chain, url: Written<'_>, blocks: &mut Blocks) {
        blocks.fetch(chain);
        let (mut text, mut read) = (blocks.text(), blocks.text());
        let begins_run = match self.run_urls {
            0 => Run::default().put(url, &mut text),
            urls => packed::with_first(blocks, self.run, &mut read, |first| {
                Run::behind(Some(first), urls.into()).put(url, &mut text)
            }),
        };
        let at = blocks.push_all(chain, &text, 1);
        if begins_run {
            (self.run, self.run_urls) = (at, 0);
        }
        self.run_urls += 1;
        blocks.put_text_away(read);
        blocks.put_text_away(text);
    }

    /// What the tail holds goes: it begins anew.
    fn leave_tail(&mut self) -> Chain {
        self.run_urls = 0;
        std::mem::take(&mut self.tail)
    }

    /// By arrival: appends URLs to the head as they are in a chunk.
    pub(in super::super) fn put_head_raw(&mut self, urls: &Raw<'_>, blocks: &mut Blocks) {
        self.front_band = 0;
        self.head_has_changed();
        let mut text = blocks.text();
        if let Some(first) = urls.first {
            text.extend_from_slice(first);
            text[0] |= GONE;
        }
        text.extend_from_slice(urls.bytes);
        blocks.push_all(&mut self.head, &text, urls.count);
        self.second = blocks.second(&self.head);
        blocks.put_text_away(text);
    }

    /// By arrival: puts URLs before all others.
    pub(super) fn put_before(&mut self, items: &[Item], blocks: &mut Blocks) {
        self.front_band = 0;
        let urls = u32::try_from(items.len()).expect("a chain counts so");
        let mut text = blocks.text();
        packed::write_run(items.iter().map(Item::written), &mut text);
        blocks.push_front(&mut self.head, &text, urls);
        blocks.put_text_away(text);
    }

    /// By arrival: the tail comes next.
    pub(super) fn turn_over(&mut self, blocks: &Blocks) {
        if self.head.is_empty() && self.places.is_empty() {
            self.head = std::mem::take(&mut self.tail); // with its last run
            self.second = blocks.second(&self.head);
        }
    }

    /// Takes the first URLs of the head, so many at most.
    pub(super) fn take_head(&mut self, most: usize, blocks: &mut Blocks) -> Vec<Item> {
        self.summed = 0;
        self.head_has_changed();
        let items = take(blocks, &mut self.head, most);
        self.second = blocks.second(&self.head);
        items
    }

    /// By quality: the same.
    pub(super) fn take_best(&mut self, most: usize, blocks: &mut Blocks) -> Vec<Item> {
        let items = self.take_head(most, blocks);
        self.front_band = first(blocks, &self.head).map_or(0, Glance::band);
        items
    }

    /// What was told of its last run may not be right any more.
    fn head_has_changed(&mut self) {
        if self.tail.is_empty() {
            self.run_urls = 0;
        }
    }

    /// Takes the first URL of the head.
    pub(super) fn take_first(&mut self, by_quality: bool, blocks: &mut Blocks) -> Option<Item> {
        self.head_has_changed();
        let (item, next) = take_one(blocks, &mut self.head, by_quality)?;
        self.second = blocks.second(&self.head);
        if by_quality {
            self.has_gone(&item, next);
        }
        Some(item)
    }

    /// Takes all URLs of the tail.
    pub(in super::super) fn take_tail(&mut self, blocks: &mut Blocks) -> Vec<Item> {
        take(blocks, &mut self.leave_tail(), usize::MAX)
    }

    /// Takes the first URLs of the tail, so many at most.
    pub(super) fn take_tail_some(&mut self, most: usize, blocks: &mut Blocks) -> Vec<Item> {
        self.run_urls = 0;
        take(blocks, &mut self.tail, most)
    }

    /// Takes all URLs of the tail as they are written, and returns how many.
    pub(in super::super) fn take_tail_raw(
        &mut self,
        out: &mut Vec<u8>,
        blocks: &mut Blocks,
    ) -> u32 {
        let mut tail = self.leave_tail();
        let urls = u32::try_from(tail.urls()).expect("a chain counts so");
        blocks.read(&tail, usize::MAX, out);
        blocks.clear(&mut tail);
        urls
    }

    /// Appends the URLs of the head as they are written to `out`.
    pub(in super::super) fn read_head(&self, blocks: &Blocks, out: &mut Vec<u8>) {
        blocks.read(&self.head, usize::MAX, out);
    }

    /// The URLs of the head, without memory of their own, to be put away after use.
    pub(in super::super) fn head_urls(&self, blocks: &mut Blocks) -> Unpacked {
        urls_of(blocks, &self.head)
    }

    /// The URLs of the head.
    pub(super) fn head_items(&self, blocks: &Blocks) -> Vec<Item> {
        packed::items_of(blocks, &self.head)
    }

    /// By arrival: takes all of the head beyond the first `kept` out.
    pub(in super::super) fn cut_head(&mut self, kept: usize, blocks: &mut Blocks) -> Vec<Item> {
        let mut items = self.take_head(usize::MAX, blocks);
        let rest = items.split_off(kept.min(items.len()));
        put_run(blocks, &mut self.head, items.iter().map(Item::written));
        rest
    }

    /// By arrival: all of the head beyond the first `kept` is the front of the tail from now on;
    /// there are no chunks between them.
    pub(in super::super) fn split_head(&mut self, kept: usize, blocks: &mut Blocks) {
        let first = self.take_head(kept, blocks);
        let rest = std::mem::take(&mut self.head);
        blocks.prepend(&mut self.tail, rest);
        put_run(blocks, &mut self.head, first.iter().map(Item::written));
        self.tail_band = 0;
    }

    /// Takes URLs of about so many bytes off the front of the tail.
    pub(in super::super) fn cut_tail(&mut self, most: usize, blocks: &mut Blocks) -> Unpacked {
        self.run_urls = 0;
        take_front(blocks, &mut self.tail, |_, bytes| bytes >= most)
    }

    /// Chunks on disk, in order.
    pub(in super::super) fn places(&self) -> &Places {
        &self.places
    }

    /// A chunk of so many URLs has been written: behind those of its band, or `before` them.
    pub(in super::super) fn add(
        &mut self,
        place: Place,
        urls: u32,
        before: bool,
        blocks: &mut Blocks,
    ) {
        let band = place.band();
        self.disk_urls = self.disk_urls.saturating_add(urls);
        if self.places.is_empty() || !before && band == 0 {
            return self.places.push(place, blocks); // none has a band below
        }
        let goes_on = |other: Band| if before { other > band } else { other >= band };
        self.places.insert_at(|other| goes_on(other.band()), place, blocks);
    }

    /// Puts chunks back that were written down. `false`: that isn't their order.
    pub(in super::super) fn restore(&mut self, places: &[Place], blocks: &mut Blocks) -> bool {
        let last = self.places.iter(blocks).next_back();
        let is_sorted = last.iter().chain(places).is_sorted_by(|a, b| a.band() >= b.band());
        places.iter().for_each(|place| self.places.push(*place, blocks));
        is_sorted
    }

    /// As above: the URLs that all chunks hold. `false`: there can't be so many.
    pub(in super::super) fn restore_urls(&mut self, urls: usize) -> bool {
        self.disk_urls = u32::try_from(urls).unwrap_or(u32::MAX);
        urls <= DISK_URLS_MAX
    }

    /// Of the URLs of a chunk that was read `range` is used up, up to this step of it; then comes
    /// one of band `next`, if any. Returns whether nothing of it is left. `None`: that can't be.
    pub(in super::super) fn use_up(
        &mut self,
        place: Place,
        range: &Range<usize>,
        steps: u32,
        next: Option<Band>,
        blocks: &mut Blocks,
    ) -> Option<bool> {
        let disk_urls = self.disk_urls.checked_sub(u32::try_from(range.len()).ok()?)?;
        let left = next.map(|band| place.used_up(steps, band));
        let is_first = self.places.front() == Some(place);
        match left {
            None if is_first => self.places.pop_front(blocks),
            Some(left) if is_first && left.band() == place.band() => {
                self.places.set_front(left, blocks);
            }
            left => self.places.edit(blocks, |places| {
                let index = places.iter().position(|other| *other == place)?;
                places.remove(index);
                if let Some(left) = left {
                    let index = places.partition_point(|other| other.band() > left.band());
                    places.insert(index, left);
                }
                Some(())
            })?,
        }
        self.disk_urls = disk_urls;
        (self.places.is_empty() == (disk_urls == 0)).then_some(next.is_none())
    }

    /// The chunk that lies there, if it is one of these.
    pub(in super::super) fn find(
        &self,
        segment: u32,
        offset: u64,
        blocks: &Blocks,
    ) -> Option<Place> {
        let is_it = |place: &Place| (place.segment(), place.offset()) == (segment, offset);
        self.places.iter(blocks).find(is_it)
    }

    /// A chunk has been written anew elsewhere.
    pub(in super::super) fn replace(&mut self, old: Place, new: Place, blocks: &mut Blocks) {
        self.places.edit(blocks, |places| {
            let places = places.iter_mut().filter(|place| place.is(old));
            places.for_each(|place| *place = place.moved(new));
        });
    }

    /// Chunks to be read next for so many URLs, about: by quality the first one; if that is short,
    /// with short ones behind it, which become fewer on the way.
    pub(in super::super) fn next(
        &self,
        by_quality: bool,
        wanted: usize,
        blocks: &Blocks,
    ) -> Vec<Place> {
        let mean = self.disk_urls as usize / self.places.len().max(1);
        let enough = wanted / mean.max(1);
        let most = if by_quality { READS_MAX } else { enough.clamp(1, READS_MAX) };
        if most == 1 {
            return self.places.front().into_iter().collect();
        }
        let (mut next, mut bytes): (Vec<Place>, usize) = (Vec::new(), 0);
        for place in self.places.first(most, blocks) {
            bytes += place.bytes();
            let follows = |before: &Place| !by_quality || before.is_short() && place.is_short();
            if next.last().is_some_and(|before| bytes > READ_BYTES_MAX || !follows(before)) {
                break;
            }
            next.push(place);
        }
        next
    }

    /// Short chunks that may become fewer: by quality all; by arrival the last ones in a row, if
    /// they are tiny, since to read them for that costs as much as to read them at their turn.
    pub(in super::super) fn short(
        &self,
        by_quality: bool,
        most: usize,
        blocks: &Blocks,
    ) -> Vec<Place> {
        let all = self.places.iter(blocks);
        if by_quality {
            return all.filter(|place| place.is_short()).take(most).collect();
        }
        let mut row: Vec<Place> = all.rev().take_while(|place| place.is_tiny()).collect();
        row.reverse();
        row.truncate(most);
        row
    }

    /// Takes chunks out that are being made into fewer, whose place among the others is handed
    /// back; they hold so many URLs. `None`: that can't be.
    pub(in super::super) fn remove(
        &mut self,
        row: &[Place],
        urls: usize,
        blocks: &mut Blocks,
    ) -> Option<usize> {
        self.disk_urls = self.disk_urls.checked_sub(u32::try_from(urls).ok()?)?;
        self.places.edit(blocks, |places| {
            let index = places.iter().position(|place| place.is(row[0]));
            places.retain(|place| !row.iter().any(|other| other.is(*place)));
            index
        })
    }

    /// By arrival: puts a chunk where others were.
    pub(in super::super) fn insert(
        &mut self,
        index: usize,
        place: Place,
        urls: u32,
        blocks: &mut Blocks,
    ) {
        self.places.insert(index, place, blocks);
        self.disk_urls += urls;
    }

    /// Bytes that could go to the disk if so many URLs are kept of a head that holds more than
    /// `head_max`.
    pub(super) fn spillable(&self, kept: usize, head_max: usize) -> usize {
        let urls = self.head.urls();
        let surplus = if urls > head_max { urls - kept } else { 0 };
        self.tail.bytes() + self.head.bytes() * surplus / urls.max(1)
    }
}
