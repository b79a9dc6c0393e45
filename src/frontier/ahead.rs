//! What is needed next is asked for before it is: records, boxes, blocks.
//!
//! A million servers fit into no cache of a processor, and from the number of a server to its next
//! URL it is a walk of four or five places, each of which tells the next one: so many times memory
//! is waited for. Who will be visited next is known some visits ahead, whose chunks were read, a
//! job ahead, which URLs come, some at a time, and who is written down, by number. So each of these
//! places is asked for while somebody else is looked at, one place further for those that are
//! nearer.
//!
//! They are asked for in batches. Where the tables of pages don't fit into a cache either, a core
//! goes on behind a hint only when it knows the page: one hint alone holds it up for all of that
//! (some 200 ns with a GiB in pages of 4 KiB), eight side by side hardly longer.
//!
//! Law: nothing but time depends on it. Cost: an instruction for each 64 bytes, a few links
//! followed. All unsafe code is in `line`, with its proof.

use super::Frontier;
use super::queue::blocks::{Blocks, Chain};
use super::queue::cold::Cold;
use super::server::ServerId;
use crate::url::UrlRef;
use std::ops::Range;

/// So many are asked for side by side. Of those that will be looked at one after the other the
/// blocks of the next are, the boxes of those behind, and the records of those behind these.
pub(super) const BATCH: usize = 8;
const URLS: Range<usize> = 0..BATCH;
const BOXES: Range<usize> = URLS.end..URLS.end + BATCH;
const RECORDS: Range<usize> = BOXES.end..BOXES.end + BATCH;
/// Of so many servers it has to be known that they come.
pub(super) const AHEAD: usize = RECORDS.end;
/// URLs that [`Frontier::expect`] looks at: a core has room for about as many reads side by side.
pub const EXPECTED: usize = 16;
const LINE_BYTES: usize = 64;

/// Asks for all of a value.
pub(super) fn fetch<T>(value: &T) {
    fetch_all(std::slice::from_ref(value));
}

/// Asks for all of a row.
pub(super) fn fetch_all<T>(row: &[T]) {
    let start = row.as_ptr().cast::<u8>();
    let bytes = start.addr() % LINE_BYTES + size_of_val(row);
    (0..bytes).step_by(LINE_BYTES).for_each(|at| line(start.wrapping_add(at)));
}

/// Asks for the line that an address is in.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint reads and writes nothing that a program could see, and no address makes it
    // fail; it is part of SSE, which no machine of this kind lacks.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn line(_address: *const u8) {}

impl Frontier {
    /// These URLs are about to be added, [`EXPECTED`] at most: asks for what that will read first,
    /// for all of them side by side. Costs some 50 ns a URL, and saves several times that where
    /// servers are many.
    pub fn expect<'a>(&self, urls: impl Iterator<Item = UrlRef<'a>>) {
        let mut servers = [(0, None); EXPECTED];
        let mut expected = 0;
        for ((hash, _), url) in servers.iter_mut().zip(urls) {
            *hash = self.names.hash(url);
            self.names.home(*hash).into_iter().for_each(fetch);
            expected += 1;
        }
        called!(Expect(expected));
        let servers = &mut servers[..expected];
        for (hash, server) in &mut *servers {
            *server = self.names.guess(*hash).and_then(|id| self.servers.get(id.index()));
            server.iter().copied().for_each(fetch);
        }
        let servers = || servers.iter().filter_map(|(_, server)| *server);
        for server in servers() {
            fetch_all(self.names.bytes(server.name));
            server.queue.fetch_boxes();
        }
        let Some(spill) = &self.spill else { return };
        servers().for_each(|server| server.queue.fetch_ends(&spill.blocks));
    }

    /// Servers are looked at one after the other, and this is the `step`th: `coming` tells whose
    /// turn it is so many steps later.
    pub(super) fn look_ahead(&self, step: usize, coming: impl Fn(usize) -> Option<ServerId>) {
        if !step.is_multiple_of(BATCH) {
            return;
        }
        let since = |places: Range<usize>| if step == 0 { 0..places.end } else { places };
        since(RECORDS).filter_map(&coming).for_each(|id| self.fetch_record(id));
        since(BOXES).filter_map(&coming).for_each(|id| self.fetch_boxes(id));
        since(URLS).filter_map(&coming).for_each(|id| self.fetch_urls(id));
    }

    /// Servers are written whole, by number, and this is the `step`th, of number `next`: the same a
    /// batch earlier, and then for what is behind the first blocks.
    pub(super) fn look_through(&self, step: usize, next: usize) {
        let coming = |later: usize| Some(ServerId::from_index(next + later));
        self.look_ahead(step, |later| coming(later + BATCH));
        if let Some(spill) = self.spill.as_ref().filter(|_| step.is_multiple_of(BATCH)) {
            let server = |id: ServerId| self.servers.get(id.index());
            let cold = URLS.filter_map(coming).filter_map(server).filter_map(|it| it.queue.cold());
            cold.for_each(|cold| cold.fetch_seconds(&spill.blocks));
        }
    }

    /// Somebody in line is about to be visited: the same for those who will be next.
    pub(super) fn look_along(&mut self) {
        self.visits = self.visits.wrapping_add(1);
        if !self.visits.is_multiple_of(BATCH) {
            return;
        }
        let coming = |later: usize| self.workbench.coming(later);
        RECORDS.filter_map(coming).for_each(|id| self.fetch_record(id));
        BOXES.filter_map(coming).for_each(|id| self.fetch_boxes(id));
        URLS.filter_map(coming).for_each(|id| self.fetch_front(id));
    }

    /// Asks for the record of a server.
    pub(super) fn fetch_record(&self, id: ServerId) {
        self.servers.get(id.index()).into_iter().for_each(fetch);
    }

    /// Its record is there: asks for what its queue has at hand, and tells of what is packed.
    pub(super) fn fetch_boxes(&self, id: ServerId) {
        self.servers.get(id.index()).into_iter().for_each(|server| server.queue.fetch_boxes());
    }

    /// These are there, too: asks for its next URLs.
    fn fetch_urls(&self, id: ServerId) {
        let blocks = self.spill.as_ref().map(|spill| &spill.blocks);
        let server = self.servers.get(id.index());
        server.into_iter().for_each(|server| server.queue.fetch_urls(blocks));
    }

    /// As `fetch_urls`, but for its next URL only.
    fn fetch_front(&self, id: ServerId) {
        let blocks = self.spill.as_ref().map(|spill| &spill.blocks);
        let server = self.servers.get(id.index());
        server.into_iter().for_each(|server| server.queue.fetch_front(blocks));
    }
}

impl Cold {
    /// Asks for the ends of all that it has in blocks.
    pub(super) fn fetch_urls(&self, blocks: &Blocks) {
        [&self.head, &self.tail].into_iter().for_each(|chain| blocks.fetch(chain));
        self.places().chain().into_iter().for_each(|chain| blocks.fetch(chain));
    }

    /// The ends are there: asks for what is behind the first blocks.
    fn fetch_seconds(&self, blocks: &Blocks) {
        let chains = [&self.head, &self.tail];
        chains.into_iter().for_each(|chain| blocks.fetch_one(blocks.second(chain)));
    }

    /// Asks for what holds the next URL.
    pub(super) fn fetch_front(&self, blocks: &Blocks) {
        let first = if self.head.is_empty() { self.tail.first() } else { self.head.first() };
        [first, self.second].into_iter().for_each(|number| blocks.fetch_one(number));
    }

    /// Asks for the ends of that which a URL that comes will be put behind, and for what it will be
    /// told against.
    pub(super) fn fetch_ends(&self, blocks: &Blocks) {
        let ends = if self.tail.is_empty() { &self.head } else { &self.tail };
        blocks.fetch(ends);
        blocks.fetch_one(self.run_block());
    }
}

impl Blocks {
    /// Asks for the ends of a chain.
    pub(super) fn fetch(&self, chain: &Chain) {
        self.ends(chain).into_iter().flatten().for_each(fetch);
    }

    /// Asks for a block, if there is one of that number.
    pub(super) fn fetch_one(&self, number: u32) {
        self.get(number).into_iter().for_each(fetch);
    }
}
