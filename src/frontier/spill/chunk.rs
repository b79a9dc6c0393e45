//! A chunk that was read: which of its URLs are used up, and whether they are as they must be.
//!
//! Laws: a chunk is used up by steps of its URLs; what is not used was not looked at, but counts.
//! Cost: a look at the bytes of those that are wanted ([`super::super::look`]); those before them
//! are passed by.

use super::super::items::Glance;
use super::super::look::{Bounds, Look};
use super::super::loose::Loose;
use super::super::place::STEPS;
use super::super::runs::FIRST;
use super::super::unpacked::Raw;
use super::job::Read;
use crate::codec::Take;
use std::ops::Range;

/// A chunk that was read.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub(super) read: &'a Read,
    /// URLs in it, by what it says.
    urls: usize,
    bytes: &'a [u8],
    bounds: Bounds,
}

/// URLs of a chunk that are used up.
#[derive(Debug)]
pub(super) struct Used<'a> {
    pub(super) read: &'a Read,
    /// Which of the chunk's, and the step that it is used up to.
    pub(super) range: Range<usize>,
    pub(super) steps: u32,
    pub(super) raw: Raw<'a>,
    /// The one behind them, if there is one.
    pub(super) next: Option<Glance>,
}

impl<'a> Chunk<'a> {
    /// `None`: these are not a chunk's bytes.
    pub(super) fn open(read: &'a Read, bytes: &'a [u8], bounds: Bounds) -> Option<Self> {
        let mut take = Take::new(bytes);
        let urls = take.number().ok().filter(|urls: &usize| *urls > 0)?;
        Some(Self { read, urls, bytes: take.rest(), bounds })
    }

    /// URLs in it that are not used up.
    pub(super) fn left(&self) -> usize {
        self.urls - self.range(1).0.start
    }

    /// Uses up as many URLs as are wanted, about, and adds them to those that are `loose`; `None`
    /// if they are not as they must be.
    pub(super) fn take(&self, wanted: usize, mut loose: Option<&mut Loose>) -> Option<Used<'a>> {
        let (range, steps) = self.range(wanted);
        let mut look = Look::new(self.bytes, self.bounds);
        for _ in 0..range.start {
            look.skip().ok()?;
        }
        let (from, first_at) = (look.used(), look.first_at());
        let begins_run = self.bytes.get(from).is_none_or(|bits| bits & FIRST != 0);
        let first = (!begins_run).then(|| &self.bytes[first_at]);
        let mut behind = match (&mut loose, first.zip(look.first())) {
            (Some(loose), Some((bytes, first))) => Some(loose.lead(bytes, first)),
            _ => None,
        };
        for _ in range.clone() {
            match &mut loose {
                Some(loose) => look.admit_loose(loose, &mut behind).ok()?,
                None => look.admit().map(drop).ok()?,
            }
        }
        let raw = Raw { first, bytes: &self.bytes[from..look.used()], count: range.len() };
        let next = if range.end < self.urls { Some(look.pass().ok()?) } else { None };
        let is_right = next.is_some() || look.is_over();
        is_right.then_some(Used { read: self.read, range, steps, raw, next })
    }

    /// Which of its URLs are used up if so many are wanted, and the step that it is used up to.
    fn range(&self, wanted: usize) -> (Range<usize>, u32) {
        let step = self.urls.div_ceil(STEPS as usize).max(1);
        let from = (self.read.place.used() as usize * step).min(self.urls);
        let steps = from.saturating_add(wanted.max(1)).div_ceil(step);
        // All of them may be wanted.
        let until = steps.saturating_mul(step).min(self.urls);
        (from..until, u32::try_from(steps).unwrap_or(u32::MAX))
    }
}
