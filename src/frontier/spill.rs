//! URLs beyond memory: queues are packed, their ends go to the disk, heads shrink.
//!
//! Of the memory that URLs may take, one part in 32 is for those at hand. When that is full the
//! queue that has most at hand is packed: its URLs become bytes. When all is full, the end of the
//! queue that has most beyond its head becomes chunks of the [`log`]. When there is little but
//! heads, heads hold half as many URLs from then on, first of those that were only read with
//! others, then of those that they keep; twice as many when there is room for those, of those kept
//! when memory is half empty. How chunks come back is told in [`back`].
//!
//! Laws: no URL is lost or doubled, whatever fails; by arrival the order is exact, by quality by
//! band (decision 34); each server that waits for a chunk is in the list of those, once. So memory
//! keeps to its bound as long as one URL a server, 128 bytes for it and nine a chunk do.
//! Cost: nothing looks at all servers in one turn; who has most is found in lists for classes of
//! bytes, which are counted too; a URL on disk was written once, once more if its chunk was short
//! (by arrival: tiny), and once for each sweep of its segment that found it alive. By quality a
//! short chunk lies there as its URLs came: it is taken whole, and put in order then.
//!
//! [`log`]: super::log

mod back;
mod chunk;
mod intake;
pub(super) mod job;
mod order;
mod press;

use super::items::Written;
use super::log::Log;
use super::place::{Band, Place, SHORT_BYTES};
use super::queue::blocks::Blocks;
use super::queue::cold::Task;
use super::queue::{UrlQueue, Weight};
use super::runs::Run;
use super::server::ServerId;
use super::unpacked::Raw;
use super::{Frontier, Settings};
use crate::codec::Put;
use crate::disk::{self, Disk};
use crate::frame;
use intake::Intake;
use std::collections::VecDeque;

/// Bytes of URLs in a chunk: what a disk reads at once. In tests, few.
const CHUNK_BYTES: usize = if cfg!(test) { 120 } else { 4_096 };
/// By quality: a tail that isn't longer becomes a chunk as it is, which is short then: less than
/// the frame and two numbers.
const UNSORTED_BYTES: usize = SHORT_BYTES - frame::OVERHEAD_BYTES - 2 * 5;
/// So many short chunks of a queue are made into fewer. By arrival, where they are read in their
/// turn as well as any, that is for the memory that their places take.
const SHORT_MIN: usize = if cfg!(test) { 4 } else { 14 };
const TINY_MIN: usize = if cfg!(test) { 4 } else { 24 };
/// The end of a queue goes to the disk in pieces of this size.
const CUT_BYTES: usize = 256 << 10;

/// What goes to the disk and what comes back.
#[derive(Debug)]
pub(super) struct Spill {
    pub(super) log: Log,
    pub(super) blocks: Blocks,
    /// Bytes of queues beside blocks.
    weight: Weight,
    bytes_max: usize,
    /// Queues by what they have at hand, and by what they have beyond their heads.
    hot: Victims,
    cold: Victims,
    /// Queues cut so far.
    cuts: usize,
    /// How many URLs a head keeps at most.
    pub(super) kept_max: usize,
    /// How many a head may hold whatever it keeps: as many as are worth a read, or fewer.
    read_urls: usize,
    read_urls_max: usize,
    /// Servers before this one know of the last change of `kept_max`.
    hand: usize,
    /// Servers that wait for their next chunks.
    wanted: VecDeque<ServerId>,
    /// Servers that have many short chunks.
    merging: VecDeque<ServerId>,
    sweep: Option<Sweep>,
    /// A job is out, or what it has read is being taken in.
    is_working: bool,
    intake: Option<Intake>,
    /// The handle of the last job, for the next one.
    disk: Option<Box<dyn Disk>>,
    jobs: u32,
    /// Calls for which the next job has been held back, so that it has more to read; not if one of
    /// those that it reads for is being visited.
    held_calls: u32,
    is_urgent: bool,
    /// Room for what the next job reads, and for a chunk that is being written.
    spare: Vec<u8>,
    text: Vec<u8>,
    #[cfg(test)]
    pub(super) seen: Seen,
}

/// How often queues were packed, cut, and their heads halved or doubled; by quality, chunks of
/// several bands, and those of some URLs that are in no order; URLs written as they are.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) packs: u32,
    pub(super) cuts: u32,
    pub(super) halvings: u32,
    pub(super) doublings: u32,
    pub(super) mixed: u32,
    pub(super) unsorted: u32,
    pub(super) as_is: u32,
}

/// A segment that is being swept.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    segment: u32,
    offset: u64,
    end: u64,
    piece_bytes: usize,
}

/// Servers by bytes: less than the first of these is little, and the classes are finer where most
/// queues are when memory is full.
const BOUNDS: [usize; CLASSES - 1] = if cfg!(test) {
    [64, 128, 192, 256, 512, 1 << 10, 2 << 10]
} else {
    [256, 320, 384, 448, 512, 1 << 10, 8 << 10]
};
const CLASSES: usize = u8::BITS as usize;

/// Servers by bytes. A list may hold a server that has changed since, but each server once; in
/// which lists it is, its queue says, in a bit each.
#[derive(Debug)]
struct Victims {
    classes: [Vec<ServerId>; CLASSES],
    /// Bytes of memory that the lists take.
    bytes: usize,
}

impl Spill {
    pub(super) fn new(settings: &Settings) -> Option<Box<Self>> {
        let by_quality = settings.schedule.policy.is_by_quality();
        let read_urls_max = if by_quality { READ_URLS_BY_QUALITY } else { READ_URLS };
        Some(Box::new(Self {
            log: Log::new(settings.crawl?),
            blocks: Blocks::default(),
            weight: Weight::default(),
            bytes_max: settings.memory_bytes,
            hot: Victims::new(),
            cold: Victims::new(),
            cuts: 0,
            kept_max: KEPT_MAX,
            read_urls: read_urls_max,
            read_urls_max,
            hand: usize::MAX,
            wanted: VecDeque::new(),
            merging: VecDeque::new(),
            sweep: None,
            is_working: false,
            intake: None,
            disk: None,
            jobs: 0,
            held_calls: 0,
            is_urgent: false,
            spare: Vec::new(),
            text: Vec::new(),
            #[cfg(test)]
            seen: Seen::default(),
        }))
    }

    /// The last mark is durable: names of segments that are of no use any more.
    pub(super) fn settled(&mut self) -> Vec<String> {
        self.log.settled(self.sweep.map(|sweep| sweep.segment))
    }

    /// Bytes of URLs in memory.
    pub(super) fn bytes(&self) -> usize {
        let lists = self.hot.bytes + self.cold.bytes;
        self.weight.hot + self.weight.cold + self.blocks.bytes() + lists
    }

    /// Entries of the lists of victims.
    #[cfg(test)]
    pub(super) fn listed(&self) -> usize {
        let lists = self.hot.classes.iter().chain(&self.cold.classes);
        lists.map(Vec::len).sum()
    }

    /// Bytes of queues in memory, without blocks.
    #[cfg(test)]
    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    pub(super) fn weigh(&mut self, before: Weight, after: Weight) {
        self.weight.hot = self.weight.hot + after.hot - before.hot;
        self.weight.cold = self.weight.cold + after.cold - before.cold;
    }

    /// Writes URLs in their order as chunks, each under the band of its first.
    fn write_chunks(
        &mut self,
        id: ServerId,
        by_quality: bool,
        urls: &[Written<'_>],
    ) -> Vec<(Place, u32)> {
        let (mut chunks, mut rest) = (Vec::new(), urls);
        let mut text = std::mem::take(&mut self.text);
        while let Some(first) = rest.first() {
            text.clear();
            let (mut taken, mut run) = (0, Run::default());
            while taken < rest.len() && text.len() < CHUNK_BYTES {
                run.put(rest[taken], &mut text);
                taken += 1;
            }
            let band = if by_quality { first.band() } else { 0 };
            #[cfg(test)]
            {
                let is_mixed = by_quality && rest[taken - 1].band() != band;
                self.seen.mixed += u32::from(is_mixed);
            }
            let urls = u32::try_from(taken).expect("a chunk has few URLs");
            chunks.push((self.write_chunk(id, band, urls, &text), urls));
            rest = &rest[taken..];
        }
        self.text = text;
        chunks
    }

    fn write_chunk(&mut self, id: ServerId, band: Band, urls: u32, text: &[u8]) -> Place {
        self.log.append(id, band, |out| {
            out.put_varint(u64::from(urls));
            out.extend_from_slice(text);
        })
    }

    /// The tail of a queue goes to the disk, or some of it if that is much.
    fn write_tail(&mut self, id: ServerId, queue: &mut UrlQueue) {
        let by_arrival = queue.is_by_arrival();
        let Some(cold) = queue.cold_mut() else { return };
        let raw_max = if by_arrival { CHUNK_BYTES } else { UNSORTED_BYTES };
        if cold.tail.bytes() <= raw_max {
            self.text.clear();
            let band = cold.tail_band().unwrap_or_default();
            let urls = cold.take_tail_raw(&mut self.text, &mut self.blocks);
            let text = std::mem::take(&mut self.text);
            if urls > 0 {
                let place = self.write_chunk(id, band, urls, &text);
                debug_assert!(by_arrival || place.is_unsorted(), "it will be taken whole");
                #[cfg(test)]
                {
                    self.seen.unsorted += u32::from(!by_arrival && urls > 2);
                }
                cold.add(place, urls, false, &mut self.blocks);
            }
            self.text = text;
        } else if by_arrival {
            let urls = cold.cut_tail(CUT_BYTES, &mut self.blocks);
            let written: Vec<Written<'_>> = urls.iter().collect();
            for (place, urls) in self.write_chunks(id, false, &written) {
                cold.add(place, urls, false, &mut self.blocks);
            }
        } else {
            let mut text = self.blocks.text();
            let count = cold.take_tail_raw(&mut text, &mut self.blocks) as usize;
            let (mut loose, urls) = (self.blocks.loose(), Raw { first: None, bytes: &text, count });
            loose.add(&urls);
            self.write_sorted(id, queue, &[urls], loose);
            self.blocks.put_text_away(text);
        }
        self.look_for_short(id, queue);
    }

    /// If many chunks of a queue are short, they will be made into fewer.
    fn look_for_short(&mut self, id: ServerId, queue: &mut UrlQueue) {
        let by_quality = !queue.is_by_arrival();
        let short_min = short_min(by_quality);
        if let Some(cold) = queue.cold_mut()
            && cold.task == Task::Nothing
            && cold.places().len() >= short_min
            && cold.short(by_quality, short_min, &self.blocks).len() >= short_min
        {
            cold.task = Task::Merging;
            self.merging.push_back(id);
        }
    }
}

/// So many URLs are worth a read; by quality more, since each read puts the head in order anew.
const READ_URLS: usize = if cfg!(test) { 4 } else { 16 };
const READ_URLS_BY_QUALITY: usize = if cfg!(test) { 6 } else { 24 };
/// A head keeps as many URLs as a visit takes.
const KEPT_MAX: usize = usize::MAX;

fn short_min(by_quality: bool) -> usize {
    if by_quality { SHORT_MIN } else { TINY_MIN }
}

impl Victims {
    fn new() -> Self {
        Self { classes: [const { Vec::new() }; CLASSES], bytes: 0 }
    }

    fn class_of(bytes: usize) -> usize {
        BOUNDS.iter().take_while(|bound| bytes >= **bound).count()
    }

    /// A queue that has so many bytes is listed, if it is of class `least` or a higher one.
    fn note(&mut self, filed: &mut u8, id: ServerId, bytes: usize, least: usize) {
        let class = Self::class_of(bytes);
        if class >= least && *filed >> class & 1 == 0 {
            *filed |= 1 << class;
            let list = &mut self.classes[class];
            let before = list.capacity();
            list.push(id);
            self.bytes += (list.capacity() - before) * size_of::<ServerId>();
        }
    }

    /// Who may be the last one that many times later.
    fn coming(&self, later: usize) -> Option<ServerId> {
        let highest = self.classes.iter().rev().find(|ids| !ids.is_empty())?;
        highest.iter().nth_back(later).copied()
    }

    /// The last one that was listed in the highest class, down to that of `least` bytes.
    fn last(&mut self, least: usize) -> Option<(ServerId, usize)> {
        let lowest = Self::class_of(least);
        let mut classes = self.classes.iter_mut().enumerate().skip(lowest).rev();
        classes.find_map(|(class, ids)| Some((ids.pop()?, class)))
    }
}

impl Frontier {
    /// The queue of a server took `before` bytes and has changed.
    pub(super) fn weigh(&mut self, id: ServerId, before: Weight) {
        if let Some(spill) = &mut self.spill {
            spill.weigh(before, self.servers[id.index()].queue.weight());
        }
    }

    /// Brings what waits to be written to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: nothing is lost, and this may be called again.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        called!(Write(all));
        self.spill.as_mut().map_or(Ok(()), |spill| spill.log.write(all, disk))
    }
}
