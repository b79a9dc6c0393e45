//! URLs whose texts lie elsewhere, and what is seen of one at a glance.
//!
//! A URL has memory of its own ([`Item`]) only when it is at hand; packed, and on the way to the
//! disk and back, it is a [`Written`], which borrows its texts.
//!
//! Law: what is made of a `Written` is what that was made of. Cost: a copy of its texts.

use super::place::{BAND_MAX, Band, quality_band};
use super::queue::{Errand, Item};
use super::runs::{Record, Text, Via};
use crate::codec::Short;
use crate::quality::Quality;
use std::cmp::Reverse;
use std::rc::Rc;

/// A URL whose texts lie elsewhere: where it was unpacked to, or in an [`Item`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written<'a> {
    pub(super) target: &'a [u8],
    pub(super) via: Option<&'a [u8]>,
    pub(super) quality: Quality,
    pub(super) arrival: u64,
    pub(super) depth: u16,
    pub(super) hops: u8,
    pub(super) tries: u8,
    pub(super) errand: Errand,
    pub(super) found_as: u8,
}

/// Not for a robots.txt or a hop, the quality, the arrival.
pub(super) type Standing = (bool, Reverse<Quality>, u64);

/// Makes URLs that have memory of their own; of those that were found on one page and come one
/// after the other, the URL of that page is shared.
#[derive(Debug, Default)]
pub(super) struct Maker {
    via: Option<Rc<str>>,
}

/// Most texts are no longer: they are put together without memory of their own.
const ROOM_BYTES: usize = 256;

/// The memory of a row of URLs, for others.
pub(super) fn emptied<'a>(mut row: Vec<Written<'_>>) -> Vec<Written<'a>> {
    row.clear();
    row.into_iter().map(|_| unreachable!("it is empty")).collect()
}

impl Item {
    /// As it is written.
    pub(super) fn written(&self) -> Written<'_> {
        Written {
            target: self.target.as_bytes(),
            via: self.via.as_deref().map(str::as_bytes),
            quality: self.quality,
            arrival: self.arrival,
            depth: self.depth,
            hops: self.hops,
            tries: self.tries,
            errand: self.errand,
            found_as: self.found_as,
        }
    }

    /// A URL that was taken out of a run, with memory of its own: what was written, told against
    /// the first of the run (of which there is none if it is that itself).
    pub(super) fn taken(record: &Record<'_>, first: &Written<'_>) -> Result<Self, Short> {
        let (depth, found_as) = record.how.unwrap_or((first.depth, first.found_as));
        let via = match &record.via {
            Via::None => None,
            Via::Same => Some(Rc::from(text(first.via.ok_or(Short)?))),
            Via::New(via) => Some(own(via, first.via.unwrap_or_default())?),
        };
        Ok(Self {
            target: own(&record.target, first.target)?,
            quality: record.quality.unwrap_or(first.quality),
            arrival: first.arrival.wrapping_add(record.arrival),
            depth,
            hops: record.hops,
            tries: record.tries,
            errand: record.errand,
            found_as,
            via,
        })
    }
}

/// A text that shares its front and its back with another, with memory of its own.
fn own<T: for<'a> From<&'a str>>(told: &Text<'_>, other: &[u8]) -> Result<T, Short> {
    let [front, middle, back] = told.pieces(other)?;
    if front.is_empty() && back.is_empty() {
        return Ok(T::from(text(middle)));
    }
    let (between, end) = (front.len(), front.len() + middle.len());
    let mut room = [0; ROOM_BYTES];
    let Some(whole) = room.get_mut(..end + back.len()) else {
        return Ok(T::from(text(&[front, middle, back].concat())));
    };
    whole[..between].copy_from_slice(front);
    whole[between..end].copy_from_slice(middle);
    whole[end..].copy_from_slice(back);
    Ok(T::from(text(whole)))
}

impl Written<'_> {
    /// Whether it goes before the pages of its server.
    pub(super) fn is_prior(&self) -> bool {
        self.errand != Errand::Page
    }

    /// What a glance at it shows.
    pub(super) fn glance(&self) -> Glance {
        Glance { is_prior: self.is_prior(), quality: self.quality }
    }

    /// Its band.
    pub(super) fn band(&self) -> Band {
        self.glance().band()
    }

    /// Bytes that it takes on disk if it shares little, about.
    pub(super) fn bytes(&self) -> usize {
        self.target.len() + 40
    }

    /// What decides by quality: the lesser comes out first.
    pub(super) fn standing(&self) -> Standing {
        (!self.is_prior(), Reverse(self.quality), self.arrival)
    }
}

impl Maker {
    pub(super) fn make(&mut self, url: &Written<'_>) -> Item {
        let known = self.via.as_deref().map(str::as_bytes);
        if url.via.is_some() && known != url.via {
            self.via = url.via.map(|via| Rc::from(text(via)));
        }
        Item {
            target: text(url.target).into(),
            quality: url.quality,
            arrival: url.arrival,
            depth: url.depth,
            hops: url.hops,
            tries: url.tries,
            errand: url.errand,
            found_as: url.found_as,
            via: url.via.and_then(|_| self.via.clone()),
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect(LOOKED_AT)
}

const LOOKED_AT: &str = "it was a text when it was written, and looked at when read";

/// What decides where a URL goes, without the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) is_prior: bool,
    pub(super) quality: Quality,
}

impl Glance {
    /// What it is worth as the worst of some: of a robots.txt the most there is.
    pub(super) fn as_worst(self) -> Quality {
        if self.is_prior { Quality::MAX } else { self.quality }
    }

    /// The band of the URL.
    pub(super) fn band(self) -> Band {
        if self.is_prior { BAND_MAX } else { quality_band(self.quality) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::NOTHING;
    use super::*;

    #[test]
    fn an_emptied_row_keeps_its_memory() {
        let text = String::from("/a");
        let mut row = Vec::with_capacity(100);
        row.push(Written { target: text.as_bytes(), ..NOTHING });
        let address = row.as_ptr().addr();
        let row: Vec<Written<'static>> = emptied(row);
        assert_eq!((row.len(), row.capacity(), row.as_ptr().addr()), (0, 100, address));
    }
}
