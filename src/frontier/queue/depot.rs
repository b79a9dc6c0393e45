//! The end of a queue that waits outside: chunks of URLs on disk, and the URLs of the next ones.
//!
//! A chunk is read whole and then *open*: its URLs come out one by one while it stays on disk, so
//! that what is left of it can be dropped from memory at any time, and costs no second write. URLs
//! that join the end of a queue are written into a *buffer* of their band, which becomes a chunk
//! when it is long enough.
//!
//! Laws: the best band comes first, the oldest chunk of it first, its buffer last (in order of
//! arrival there is one band); every URL is in a chunk, in a buffer, or handed out, once.
//! Cost: eight bytes a chunk, and some hundred for a queue that has any of it.

use super::super::items::Run;
use super::super::place::{Band, Place};
use super::Item;
use crate::codec::Take;
use std::collections::VecDeque;

/// What of a queue waits outside.
#[derive(Debug, Default)]
pub(in super::super) struct Depot {
    /// Best band first, oldest first.
    chunks: VecDeque<Place>,
    /// Best band first.
    buffers: Vec<Buffer>,
    /// URLs in chunks, what is open excepted, and in buffers.
    urls: usize,
    open: Option<Box<Open>>,
    /// Chunks whose first URLs are used up: how many.
    skips: Vec<(Place, u32)>,
    /// Bytes of buffers.
    buffer_bytes: usize,
    /// Somebody is at it.
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

/// A chunk that has been read and is on disk still.
#[derive(Debug)]
struct Open {
    place: Place,
    /// URLs in the whole chunk.
    urls: u32,
    items: VecDeque<Item>,
}

/// URLs of a band that will be a chunk.
#[derive(Debug)]
pub(in super::super) struct Buffer {
    pub(in super::super) band: Band,
    pub(in super::super) urls: u32,
    pub(in super::super) bytes: Vec<u8>,
}

/// Memory of a depot beside chunks and buffers, with what allocators add.
const DEPOT_BYTES: usize = size_of::<Depot>() + 16;

impl Depot {
    /// URLs that wait here; those of the open chunk are in memory.
    pub(in super::super) fn urls(&self) -> usize {
        self.urls
    }

    /// Bytes of memory beside what is open.
    pub(super) fn bytes(&self) -> usize {
        DEPOT_BYTES + self.chunks.capacity() * size_of::<Place>() + self.buffer_bytes
    }

    /// Bytes of buffers.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
            && self.buffers.is_empty()
            && self.open.is_none()
            && self.task == Task::Nothing
    }

    /// Chunks on disk, what is open excepted, in order.
    pub(in super::super) fn chunks(&self) -> &VecDeque<Place> {
        &self.chunks
    }

    pub(in super::super) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// All chunks in order, the open one in its place, and how many URLs of each are used up.
    pub(in super::super) fn places(&self) -> impl Iterator<Item = (Place, u32)> {
        let opened = self.open.as_ref().map(|open| (open.place, open.used()));
        let before = opened.map_or(0, |(place, _)| self.first_of(place.band()));
        let skipped = |place: &Place| (*place, self.skip(*place));
        let (better, others) = (self.chunks.range(..before), self.chunks.range(before..));
        better.map(skipped).chain(opened).chain(others.map(skipped))
    }

    /// Where chunks of a band begin.
    fn first_of(&self, band: Band) -> usize {
        self.chunks.partition_point(|other| other.band() > band)
    }

    /// How many of a chunk's first URLs are used up.
    pub(in super::super) fn skip(&self, place: Place) -> u32 {
        let skip = self.skips.iter().find(|(of, _)| *of == place);
        skip.map_or(0, |(_, urls)| *urls)
    }

    /// The best band of chunks.
    pub(super) fn chunk_band(&self) -> Option<Band> {
        self.chunks.front().map(|place| place.band())
    }

    /// The best band of buffers.
    pub(super) fn buffer_band(&self) -> Option<Band> {
        self.buffers.first().map(|buffer| buffer.band)
    }

    /// URLs of the open chunk.
    pub(in super::super) fn open(&self) -> Option<&VecDeque<Item>> {
        self.open.as_ref().map(|open| &open.items)
    }

    /// The same, to take from.
    pub(super) fn open_mut(&mut self) -> Option<&mut VecDeque<Item>> {
        self.open.as_mut().map(|open| &mut open.items)
    }

    /// Adds a URL to the buffer of its band.
    pub(in super::super) fn put(&mut self, band: Band, item: &Item) {
        let index = self.buffers.partition_point(|buffer| buffer.band > band);
        if self.buffers.get(index).is_none_or(|buffer| buffer.band != band) {
            self.buffers.insert(index, Buffer { band, urls: 0, bytes: Vec::new() });
            self.buffer_bytes += size_of::<Buffer>();
        }
        let buffer = &mut self.buffers[index];
        let before = buffer.bytes.capacity();
        if before - buffer.bytes.len() < 128 {
            buffer.bytes.reserve_exact(128 + before / 4);
        }
        Run::put_anew(item, &mut buffer.bytes);
        buffer.urls += 1;
        self.urls += 1;
        self.buffer_bytes += buffer.bytes.capacity() - before;
    }

    /// Takes a buffer with at least so many bytes and URLs out.
    pub(in super::super) fn take_buffer(&mut self, bytes: usize, urls: u32) -> Option<Buffer> {
        let is_due = |buffer: &Buffer| buffer.bytes.len() >= bytes && buffer.urls >= urls;
        let index = self.buffers.iter().position(is_due)?;
        Some(self.remove_buffer(index))
    }

    /// The URLs of the best buffer.
    pub(super) fn empty_buffer(&mut self) -> Vec<Item> {
        let buffer = self.remove_buffer(0);
        buffer.items()
    }

    fn remove_buffer(&mut self, index: usize) -> Buffer {
        let buffer = self.buffers.remove(index);
        self.buffer_bytes -= size_of::<Buffer>() + buffer.bytes.capacity();
        self.urls -= buffer.urls as usize;
        if self.buffers.is_empty() {
            self.buffers = Vec::new();
        }
        buffer
    }

    /// A chunk of so many URLs has been written: behind those of its band, or before all.
    pub(in super::super) fn add(&mut self, place: Place, urls: u32, is_first: bool) {
        if is_first {
            self.chunks.push_front(place);
        } else {
            let index = self.chunks.partition_point(|other| other.band() >= place.band());
            self.chunks.insert(index, place);
        }
        self.urls += urls as usize;
    }

    /// Puts chunks back that were written down, with the URLs in all of them.
    pub(in super::super) fn restore(&mut self, place: Place, skip: u32) {
        self.chunks.push_back(place);
        if skip > 0 {
            self.skips.push((place, skip));
        }
    }

    /// As above: the URLs that all chunks hold.
    pub(in super::super) fn restore_urls(&mut self, urls: usize) {
        self.urls += urls;
    }

    /// A chunk of so many URLs has been read and leaves the depot; returns how many of its first
    /// URLs are used up. `None`: that can't be.
    pub(in super::super) fn remove(&mut self, place: Place, urls: u32) -> Option<u32> {
        let index = self.chunks.iter().position(|other| *other == place)?;
        let skip = self.skip(place);
        let left = urls.checked_sub(skip)? as usize;
        let in_buffers: u32 = self.buffers.iter().map(|buffer| buffer.urls).sum();
        let in_chunks = self.urls.checked_sub(in_buffers as usize)?;
        let is_last = self.chunks.len() == 1;
        if left > in_chunks || is_last && left != in_chunks {
            return None;
        }
        self.chunks.remove(index);
        self.skips.retain(|(of, _)| *of != place);
        self.urls -= left;
        Some(skip)
    }

    /// A chunk that was removed is open from now on.
    pub(super) fn set_open(&mut self, place: Place, urls: u32, items: VecDeque<Item>) {
        assert!(self.open.is_none(), "one chunk is open at a time");
        self.open = Some(Box::new(Open { place, urls, items }));
    }

    /// Gives the open chunk up: its place, and the URLs left of it.
    pub(super) fn take_open(&mut self) -> Option<(Place, VecDeque<Item>)> {
        self.open.take().map(|open| (open.place, open.items))
    }

    /// The open chunk, if all its URLs are used up: it is needed no more.
    pub(super) fn spent(&mut self) -> Option<Place> {
        let open = self.open.take_if(|open| open.items.is_empty())?;
        Some(open.place)
    }

    /// Forgets what was read of the open chunk: it goes back to where it was.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let skip = open.used();
            self.chunks.insert(self.first_of(open.place.band()), open.place);
            if skip > 0 {
                self.skips.push((open.place, skip));
            }
            self.urls += open.items.len();
        }
    }

    /// The chunk that lies there, if it is one of these.
    pub(in super::super) fn find(&self, segment: u32, offset: u64) -> Option<Place> {
        let opened = self.open.as_ref().map(|open| open.place);
        let is_it = |place: &Place| (place.segment(), place.offset()) == (segment, offset);
        opened.into_iter().chain(self.chunks.iter().copied()).find(is_it)
    }

    /// A chunk has been written anew elsewhere.
    pub(in super::super) fn replace(&mut self, old: Place, new: Place) {
        let opened = self.open.as_mut().map(|open| &mut open.place);
        let skipped = self.skips.iter_mut().map(|(of, _)| of);
        let places = opened.into_iter().chain(&mut self.chunks).chain(skipped);
        places.filter(|place| **place == old).for_each(|place| *place = new);
    }

    /// The longest row of chunks of one band.
    pub(in super::super) fn row(&self) -> Vec<Place> {
        let (mut longest, mut from) = (0..0, 0);
        for until in 1..=self.chunks.len() {
            let ends =
                until == self.chunks.len() || self.chunks[until].band() != self.chunks[from].band();
            if ends {
                if until - from > longest.len() {
                    longest = from..until;
                }
                from = until;
            }
        }
        self.chunks.range(longest).copied().collect()
    }

    /// Puts fewer chunks in place of a row of them, whose URLs they hold.
    pub(in super::super) fn merge(&mut self, row: &[Place], merged: &[Place]) {
        let first = row.first().and_then(|first| self.chunks.iter().position(|of| of == first));
        let first = first.expect("a row that is being merged stays as it is");
        self.chunks.drain(first..first + row.len());
        for (index, place) in (first..).zip(merged) {
            self.chunks.insert(index, *place);
        }
        self.skips.retain(|(of, _)| !row.contains(of));
    }
}

impl Open {
    /// URLs used up.
    fn used(&self) -> u32 {
        self.urls - narrow(self.items.len())
    }
}

impl Buffer {
    /// Its URLs, in order.
    pub(in super::super) fn items(&self) -> Vec<Item> {
        let (mut take, mut run) = (Take::new(&self.bytes), Run::default());
        let items = (0..self.urls).map(|_| run.take("", &mut take));
        items.map(|item| item.expect("it was put in here")).collect()
    }
}

fn narrow(urls: usize) -> u32 {
    u32::try_from(urls).expect("a chunk has few URLs")
}
