//! Known pages that came up early, and too soon after their last visit: they wait beside the
//! calendar until they are old enough, so that an idle crawl gets to the pages behind them. If
//! [`PAGES_MAX`] wait (after many have vanished, for example), no other page comes up early until
//! one of them is taken. Pages that are due still come up.
//!
//! Law: a page that is added is taken once, when its time has come; those with earlier times first.
//! Memory: [`PAGES_MAX`] pages, with their URLs.

use std::collections::BTreeMap;

/// The most pages that wait. If there are as many, no other page comes up early.
const PAGES_MAX: usize = 10_000;

/// When a page is old enough, in seconds since 1970, and its place among those of that time.
type Turn = (u32, u64);

/// Pages that are too young to be visited.
#[derive(Debug, Default)]
pub(super) struct Young {
    /// With the times for which they were filed.
    pages: BTreeMap<Turn, (u32, Box<[u8]>)>,
    /// The number of pages ever added.
    added: u64,
}

impl Young {
    /// Adds a page that is old enough at `ready` and was filed for `due`.
    pub(super) fn add(&mut self, ready: u32, due: u32, page: &[u8]) {
        self.added += 1;
        self.pages.insert((ready, self.added), (due, page.into()));
    }

    /// Takes a page that is old enough `now`, with the time for which it was filed.
    pub(super) fn take(&mut self, now: u32) -> Option<(u32, Box<[u8]>)> {
        let first = self.pages.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Returns when the next page is old enough, in seconds since 1970; `None` if none waits.
    pub(super) fn next(&self) -> Option<u32> {
        self.pages.first_key_value().map(|((ready, _), _)| *ready)
    }

    pub(super) fn is_full(&self) -> bool {
        self.pages.len() >= PAGES_MAX
    }

    /// Returns the number of pages.
    pub(super) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns all pages, with the times for which they were filed.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.pages.values().map(|(due, page)| (*due, &**page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_when_its_time_has_come() {
        let mut young = Young::default();
        for (ready, due, page) in [(30, 90, b"c"), (10, 70, b"a"), (10, 50, b"b")] {
            young.add(ready, due, page);
        }
        assert_eq!((young.next(), young.len(), young.pages().count()), (Some(10), 3, 3));
        assert_eq!(young.take(9), None);
        let taken: Vec<_> = std::iter::from_fn(|| young.take(29)).collect();
        assert_eq!(taken, [(70, b"a"[..].into()), (50, b"b"[..].into())]);
        assert_eq!((young.next(), young.take(30)), (Some(30), Some((90, b"c"[..].into()))));
        assert_eq!((young.next(), young.len()), (None, 0));
    }
}
