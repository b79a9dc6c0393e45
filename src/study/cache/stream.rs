//! The links of a trace as consecutive numbers of URLs, on which policies are replayed.
//!
//! A URL's number is the number of URLs linked before it. Memory while a trace is read: 4 bytes a
//! link, 4 more for each link to another process; 8 bytes a URL for its fingerprint, 20 to 60 for
//! its place in the table of numbers, which is dropped when the trace is read.

use super::misses::level_of;
use crate::ground::map::Map;

/// The links of a trace, or of a part of it, in order.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The number of each link's URL.
    pub(super) links: Vec<u32>,
    /// The fingerprint of each URL, by its number.
    pub(super) prints: Vec<u64>,
}

impl Stream {
    /// Returns the number of distinct URLs in the stream.
    pub(super) fn urls(&self) -> usize {
        self.prints.len()
    }

    /// Returns the number of cache levels (sizes 1, 2, 4...), the largest with room for all URLs.
    pub(super) fn levels(&self) -> usize {
        level_of(self.urls()) + 1
    }
}

/// Assigns consecutive numbers to the URLs of a stream.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    numbers: Map<u64, u32>,
}

impl Numbers {
    /// Adds a link to the stream. Returns the number of its URL, and whether the URL is new.
    pub(super) fn add(&mut self, stream: &mut Stream, fingerprint: u64) -> (u32, bool) {
        let new = u32::try_from(stream.prints.len()).expect("fewer URLs than links");
        let number = *self.numbers.entry(fingerprint).or_insert(new);
        let is_new = number == new;
        if is_new {
            stream.prints.push(fingerprint);
        }
        stream.links.push(number);
        (number, is_new)
    }
}
