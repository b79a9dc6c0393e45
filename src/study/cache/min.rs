//! MIN, the optimal replacement policy (Belady, 1966), at all cache sizes in one pass.
//!
//! A full cache evicts the URL whose next link is farthest away; the URL of the current link is
//! always inserted, as with the online policies. MIN is a stack algorithm (Mattson et al., 1970): a
//! cache holds everything that smaller ones hold. So the caches of all sizes are kept as nested
//! rings: a URL is in the ring of the smallest cache that holds it. A link that hits at a level
//! moves its URL from that ring to the innermost one; what each smaller cache evicts for it moves
//! outwards, and from ring to ring the one with the later next link moves on.
//!
//! Each ring is a heap by next link. When a URL is linked again, a stale entry remains in the heap
//! of its ring: its next link has passed, so it is smaller than all valid ones; stale entries are
//! removed when they are more than half. Ties (URLs never linked again) are ordered by number,
//! which does not affect any miss.
//!
//! Cost: at most O(n s log k) for s sizes; in a crawl most evicted URLs are never linked again and
//! pass all rings without a change of any heap: some 0.1 us a link. Memory: 4 bytes a link, some 25
//! a URL.

use super::misses::{Hits, Misses, WINDOWS, window};
use std::collections::BinaryHeap;

/// The position of the next link, for a URL that is not linked again.
const NEVER: u32 = u32::MAX;
/// The ring number of a URL that is in no cache.
const NOWHERE: u8 = u8::MAX;

/// Returns the misses of MIN at `levels` cache sizes. `links` are URLs as numbers below `urls`.
/// Calls `progress` with the number of links done since the last call.
pub(super) fn min(links: &[u32], urls: usize, levels: usize, progress: &dyn Fn(usize)) -> Misses {
    let mut hits = Hits::new(links.len(), levels);
    let next = next_links(links, urls);
    let mut rings = Rings::new(urls, levels);
    for at in 0..WINDOWS {
        let window = window(links.len(), at);
        for place in window.clone() {
            if let Some(level) = rings.link(links[place], next[place]) {
                hits.add(at, level);
            }
        }
        progress(window.len());
    }
    hits.misses()
}

/// Returns for each link the position of the next link to the same URL; [`NEVER`] if there is none.
fn next_links(links: &[u32], urls: usize) -> Vec<u32> {
    let mut next = vec![NEVER; links.len()];
    let mut last = vec![NEVER; urls];
    for (place, url) in links.iter().enumerate().rev() {
        let last = &mut last[*url as usize];
        next[place] = *last;
        *last = u32::try_from(place).expect("a stream has fewer than 2^32 links");
    }
    next
}

/// The caches of all sizes. Each ring has what its cache holds and the next smaller one doesn't.
#[derive(Debug)]
struct Rings {
    rings: Vec<Ring>,
    /// For each URL the number of its ring, and the position of its next link.
    places: Vec<(u8, u32)>,
}

/// What a cache holds that the next smaller one doesn't.
#[derive(Debug)]
struct Ring {
    /// A heap of (next link, URL), the last next link on top, stale entries included.
    heap: BinaryHeap<(u32, u32)>,
    held: usize,
    room: usize,
}

impl Rings {
    fn new(urls: usize, levels: usize) -> Self {
        let room = |level: usize| if level == 0 { 1 } else { 1 << (level - 1) };
        let ring = |level| Ring { heap: BinaryHeap::new(), held: 0, room: room(level) };
        Self { rings: (0..levels).map(ring).collect(), places: vec![(NOWHERE, NEVER); urls] }
    }

    /// Handles a link to a URL whose next link is `next`. Returns the smallest level at which it
    /// hits.
    fn link(&mut self, url: u32, next: u32) -> Option<usize> {
        let (ring, _) = self.places[url as usize];
        let hit = (ring != NOWHERE).then_some(usize::from(ring));
        if let Some(level) = hit {
            self.places[url as usize].0 = NOWHERE;
            self.rings[level].held -= 1;
        }
        // The entry that the smaller caches evict: at first the URL itself, which then takes the
        // one entry of the smallest cache.
        let mut moving = (next, url);
        for level in 0..self.rings.len() {
            if self.rings[level].held < self.rings[level].room {
                self.put(level, moving);
                return hit;
            }
            let farthest = self.farthest(level);
            // The innermost ring always takes the URL of the link.
            if level == 0 || farthest > moving {
                self.rings[level].heap.pop();
                self.rings[level].held -= 1;
                self.put(level, moving);
                moving = farthest;
            }
        }
        // The largest cache evicts the entry.
        self.places[moving.1 as usize].0 = NOWHERE;
        hit
    }

    fn put(&mut self, level: usize, (next, url): (u32, u32)) {
        self.places[url as usize] = (u8::try_from(level).expect("at most 32 levels"), next);
        let Ring { heap, held, .. } = &mut self.rings[level];
        *held += 1;
        heap.push((next, url));
        if heap.len() > 2 * *held + 16 {
            let places = &self.places;
            heap.retain(|entry| is_held(places, level, *entry));
        }
    }

    /// Returns the entry of a full ring whose next link is last. It is never stale: the next links
    /// of stale entries have passed, so they are smaller.
    fn farthest(&self, level: usize) -> (u32, u32) {
        *self.rings[level].heap.peek().expect("a full ring has entries")
    }
}

/// Whether an entry of a heap is valid: its URL is in the ring `level`, and has this next link.
fn is_held(places: &[(u8, u32)], level: usize, (next, url): (u32, u32)) -> bool {
    let (ring, of) = places[url as usize];
    usize::from(ring) == level && of == next
}
