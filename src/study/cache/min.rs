//! MIN, the best that any cache could do (Belady, 1966), at all sizes in one pass.
//!
//! A full cache gives up the URL whose next link is farthest away; the URL that was just met goes
//! in, as with the policies that can be built. MIN is a stack algorithm, too (Mattson et al.,
//! 1970): a cache holds all that smaller ones hold. So the caches of all sizes are kept as rings
//! about the smallest: a URL is in the ring of the smallest cache that holds it. A link that hits
//! at a level takes its URL out of that ring and puts it into the innermost; what each smaller
//! cache gives up for it moves outwards, and from ring to ring the later of two next links moves
//! on.
//!
//! Each ring is a heap by next link. A URL that is met leaves a husk in the heap of its ring: a
//! link that has passed, and so lies below all others; husks are swept when they are more than
//! half. Ties (URLs never met again) go by number, which no miss depends on.
//!
//! Cost: O(n s log k) at most for s sizes; in a crawl most victims are never met again and pass all
//! rings without a change of any heap: some 0.1 us a link. Memory: 4 bytes a link, some 25 a URL.

use super::misses::{Hits, Misses, WINDOWS, window};
use std::collections::BinaryHeap;

/// No further link.
const NEVER: u32 = u32::MAX;
/// In no cache.
const NOWHERE: u8 = u8::MAX;

/// Misses of MIN. `links` are URLs as numbers below `urls`; `tell` is told of links as they are
/// done.
pub(super) fn min(links: &[u32], urls: usize, levels: usize, tell: &dyn Fn(usize)) -> Misses {
    let mut hits = Hits::new(links.len(), levels);
    let next = next_links(links, urls);
    let mut rings = Rings::new(urls, levels);
    for at in 0..WINDOWS {
        let window = window(links.len(), at);
        for place in window.clone() {
            if let Some(level) = rings.meet(links[place], next[place]) {
                hits.add(at, level);
            }
        }
        tell(window.len());
    }
    hits.misses()
}

/// For each link the place of the next one to the same URL.
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

/// The caches of all sizes, each without the one within.
#[derive(Debug)]
struct Rings {
    rings: Vec<Ring>,
    /// Of each URL: its ring and its next link.
    places: Vec<(u8, u32)>,
}

/// What a cache holds that the next smaller one doesn't.
#[derive(Debug)]
struct Ring {
    /// By next link; husks among them.
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

    /// A link to a URL that is met again at `next`. Returns from which level on it hits.
    fn meet(&mut self, url: u32, next: u32) -> Option<usize> {
        let (ring, _) = self.places[url as usize];
        let hit = (ring != NOWHERE).then_some(usize::from(ring));
        if let Some(level) = hit {
            self.places[url as usize].0 = NOWHERE;
            self.rings[level].held -= 1;
        }
        // What has no place in the caches within; at first that is none but the URL itself, which
        // takes the one entry of the smallest.
        let mut moving = (next, url);
        for level in 0..self.rings.len() {
            if self.rings[level].held < self.rings[level].room {
                self.put(level, moving);
                return hit;
            }
            let farthest = self.farthest(level);
            // The innermost always takes the URL that was met.
            if level == 0 || farthest > moving {
                self.rings[level].heap.pop();
                self.rings[level].held -= 1;
                self.put(level, moving);
                moving = farthest;
            }
        }
        // The largest cache gives it up.
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

    /// The URL of a full ring that is met again last: no husk, for those have passed.
    fn farthest(&self, level: usize) -> (u32, u32) {
        *self.rings[level].heap.peek().expect("a full ring has entries")
    }
}

/// Whether an entry of a heap is in its ring: no husk.
fn is_held(places: &[(u8, u32)], level: usize, (next, url): (u32, u32)) -> bool {
    let (ring, of) = places[url as usize];
    usize::from(ring) == level && of == next
}
