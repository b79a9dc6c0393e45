//! What is needed next is asked for before it is: records, boxes, blocks.
//!
//! A million servers fit into no cache of a processor, and from the number of a server to its next
//! URL it is a walk of four or five places, each of which tells the next one: so many times memory
//! is waited for. Who will be visited next is known a visit ahead, whose chunks were read, a job
//! ahead, and which URLs come, some at a time. So each of these places is asked for while somebody
//! else is looked at, one place further for those that are nearer.
//!
//! Law: nothing but time depends on it. Cost: an instruction for each 64 bytes, a few links
//! followed. All unsafe code is in `line`, with its proof.

use super::Frontier;
use super::queue::blocks::{Blocks, Chain};
use super::queue::cold::Cold;
use super::server::ServerId;
use crate::url::UrlRef;

/// Of those that will be looked at one after the other, so far ahead are their records asked for,
/// then their boxes, then their blocks.
const RECORD: usize = 12;
const BOXES: usize = 8;
const URLS: usize = 4;
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
        let servers = &mut servers[..expected];
        for (hash, server) in &mut *servers {
            *server = self.names.guess(*hash).and_then(|id| self.servers.get(id.index()));
            server.iter().copied().for_each(fetch);
        }
        let servers = || servers.iter().filter_map(|(_, server)| *server);
        for server in servers() {
            fetch_all(self.names.bytes(server.name));
            server.queue.fetch_boxes();
            self.workbench.fetch(server);
        }
        let Some(spill) = &self.spill else { return };
        servers().for_each(|server| server.queue.fetch_ends(&spill.blocks));
    }

    /// Servers will be looked at in the order of `ids`, and the one at `place` is next.
    pub(super) fn look_ahead(&self, place: usize, ids: impl Fn(usize) -> Option<ServerId>) {
        ids(place + RECORD).into_iter().for_each(|id| self.fetch_record(id));
        ids(place + BOXES).into_iter().for_each(|id| self.fetch_boxes(id));
        ids(place + URLS).into_iter().for_each(|id| self.fetch_urls(id));
    }

    /// Somebody in line is about to be visited: the same for those who will be next.
    pub(super) fn look_along(&self) {
        let coming = |after: usize| self.workbench.coming(after - 1);
        coming(RECORD).into_iter().for_each(|id| self.fetch_record(id));
        coming(BOXES).into_iter().for_each(|id| self.fetch_boxes(id));
        coming(URLS).into_iter().for_each(|id| self.fetch_front(id));
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

    /// Asks for what holds the next URL.
    pub(super) fn fetch_front(&self, blocks: &Blocks) {
        [self.head.first(), self.second].into_iter().for_each(|number| blocks.fetch_one(number));
    }

    /// Asks for the ends of that which a URL that comes will be put behind.
    pub(super) fn fetch_ends(&self, blocks: &Blocks) {
        let ends = if self.tail.is_empty() { &self.head } else { &self.tail };
        blocks.fetch(ends);
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
