//! The URL queue of one server: first in, first out, with a way back to the front.
//!
//! Law: what is given back comes out before what was waiting, in the order given. Cost: O(1).

use super::ServerId;
use std::collections::VecDeque;
use std::collections::vec_deque;
use std::rc::Rc;

/// One URL waiting: path and query only, the origin is its server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Path and query, beginning with `/`.
    pub target: Box<str>,
    /// Links followed from a seed to here.
    pub depth: u16,
    /// Redirects followed to here.
    pub hops: u8,
    /// Tries that failed so far.
    pub tries: u8,
    /// What it is fetched for.
    pub errand: Errand,
    /// Heritrix's letter for how it was found (`L`, `E`, `R`, ...); `-` for a seed.
    pub found_as: u8,
    /// Where it was found; shared by all links of one page.
    pub via: Option<Rc<str>>,
}

/// What a URL is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// A page of the crawl.
    Page,
    /// The robots.txt of this server, after so many redirects (the server may be another one).
    Robots(ServerId, u8),
}

impl Item {
    /// Whether it goes before the pages of its server.
    pub fn is_prior(&self) -> bool {
        matches!(self.errand, Errand::Robots(..))
    }
}

/// Pending URLs of one server.
#[derive(Debug, Default)]
pub struct UrlQueue {
    items: VecDeque<Item>,
}

impl UrlQueue {
    /// URLs waiting.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The next one.
    pub fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    /// All that wait, in order.
    pub fn iter(&self) -> vec_deque::Iter<'_, Item> {
        self.items.iter()
    }

    pub(super) fn push_back(&mut self, item: Item) {
        self.items.push_back(item);
    }

    pub(super) fn push_front(&mut self, item: Item) {
        self.items.push_front(item);
    }

    pub(super) fn pop_front(&mut self) -> Option<Item> {
        let item = self.items.pop_front();
        if self.items.is_empty() && self.items.capacity() > SPARE {
            // An idle server keeps no memory for the queue it once had.
            self.items = VecDeque::new();
        }
        item
    }

    pub(super) fn drain(&mut self) -> vec_deque::Drain<'_, Item> {
        self.items.drain(..)
    }
}

/// Room that an empty queue may keep, in items.
const SPARE: usize = 16;
