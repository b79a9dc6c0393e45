//! URLs that a disk brought back, looked at where they lie.
//!
//! A checksum tells what a disk has done, not what somebody has written there. What is not as a
//! request may carry it must not go out to a server, and what is no text must not come into memory
//! as one. Most URLs need no memory of their own for that: of one that is told against the first
//! of its run, what it shares was looked at with that.
//!
//! Laws: whatever passes can be taken ([`super::unpacked`]), and what comes out is a target that
//! may be asked for, a page that is a text, and within [`Bounds`] (held to a look at the texts as
//! they come out). Cost: a look at each byte; nothing is allocated to look, but for pages that are
//! not ASCII.

use super::items::{Glance, Written};
use super::loose::{Behind, Loose};
use super::queue::Errand;
use super::runs::{NOTHING, Record, Text, Via};
use super::unpacked::Unpacked;
use crate::codec::{Short, Take};
use crate::url::URL_BYTES_CAP;
use std::ops::Range;

/// What URLs of one server on disk can't be beyond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) origin_bytes: usize,
    pub(super) arrivals: u64,
    pub(super) servers: usize,
    /// Bytes of all texts, written out.
    pub(super) texts: usize,
}

/// URLs that are looked at one after the other.
#[derive(Clone, Debug)]
pub(super) struct Look<'a> {
    bounds: Bounds,
    bytes: &'a [u8],
    rest: Take<'a>,
    first: Option<First<'a>>,
    first_at: Range<usize>,
    /// Bytes of all texts so far, written out.
    texts: usize,
}

/// What is written there, read, and its bytes.
struct Found<'a> {
    record: Record<'a>,
    bytes: &'a [u8],
}

/// The first of a run, which was looked at.
#[derive(Clone, Copy, Debug)]
struct First<'a> {
    url: Written<'a>,
    page_is_ascii: bool,
}

/// No text is longer: what it shares can't make it so.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 16;

impl<'a> Look<'a> {
    /// At URLs that begin with the first of a run.
    pub(super) fn new(bytes: &'a [u8], bounds: Bounds) -> Self {
        Self { bounds, bytes, rest: Take::new(bytes), first: None, first_at: 0..0, texts: 0 }
    }

    /// Looks at the next URL.
    pub(super) fn admit(&mut self) -> Result<Glance, Short> {
        let glance = self.next(|look, found, first| look.judge(&found.record, first))?;
        self.is_short_enough().then_some(glance).ok_or(Short)
    }

    /// The same, and adds it to URLs that are loose; `behind` is what those lean on that follow.
    pub(super) fn admit_loose(
        &mut self,
        urls: &mut Loose,
        behind: &mut Option<Behind<'a>>,
    ) -> Result<(), Short> {
        self.next(|look, found, first| {
            let texts = look.judge(&found.record, first)?;
            urls.add_record(&found.record, found.bytes, behind);
            Ok(texts)
        })?;
        self.is_short_enough().then_some(()).ok_or(Short)
    }

    /// The same, and takes it. Of a run whose first was passed by `urls` must know that
    /// ([`Unpacked::lead`]).
    pub(super) fn admit_into(&mut self, urls: &mut Unpacked) -> Result<Glance, Short> {
        self.next(|look, found, first| {
            let texts = look.judge(&found.record, first)?;
            urls.add(&found.record)?;
            Ok(texts)
        })
    }

    /// Passes by the next URL, which is looked at only if others lean on it.
    pub(super) fn pass(&mut self) -> Result<Glance, Short> {
        self.next(|_, _, _| Ok(0))
    }

    /// The same, if nobody asks what it is.
    pub(super) fn skip(&mut self) -> Result<(), Short> {
        let is_passed = self.first.is_some() && Record::pass(&mut self.rest);
        if is_passed { Ok(()) } else { self.pass().map(drop) }
    }

    /// Bytes of what was looked at and passed by.
    pub(super) fn used(&self) -> usize {
        self.bytes.len() - self.rest.rest().len()
    }

    /// Where in these the first of the last run was.
    pub(super) fn first_at(&self) -> Range<usize> {
        self.first_at.clone()
    }

    /// The first of the run that what comes next may go on with.
    pub(super) fn first(&self) -> Option<Written<'a>> {
        self.first.map(|first| first.url)
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    fn is_short_enough(&self) -> bool {
        self.texts <= self.bounds.texts
    }

    /// The next URL, and the first of its run before it if that begins here and is gone: `what` is
    /// done with each, beside the first that it is told against.
    #[inline(always)]
    fn next(
        &mut self,
        mut what: impl FnMut(&Self, &Found<'a>, Option<&First<'a>>) -> Result<usize, Short>,
    ) -> Result<Glance, Short> {
        let from = self.used();
        let mut found = self.find()?;
        if found.record.is_first {
            self.first = Some(self.judge_first(&found.record)?);
            self.first_at = from..self.used();
            self.texts += what(self, &found, None)?;
            if !found.record.is_gone {
                return Ok(found.record.glance(NOTHING.quality));
            }
            found = self.find()?;
        }
        let first = self.first.as_ref().filter(|_| !found.record.is_first).ok_or(Short)?;
        let glance = found.record.glance(first.url.quality);
        self.texts += what(self, &found, Some(first))?;
        Ok(glance)
    }

    #[inline(always)]
    fn find(&mut self) -> Result<Found<'a>, Short> {
        let (record, bytes) = Record::take_with_bytes(&mut self.rest)?;
        Ok(Found { record, bytes })
    }

    fn judge_first(&self, record: &Record<'a>) -> Result<First<'a>, Short> {
        let url = record.whole();
        let page = url.via.unwrap_or_default();
        let page_is_ascii = page.is_ascii();
        let is_right = self.may_be_asked_for(url.target.len(), url.target.first())
            && is_graphic(url.target)
            && page.len() <= TEXT_BYTES_MAX
            && (page_is_ascii || str::from_utf8(page).is_ok())
            && self.is_within(url.errand, url.arrival);
        if is_right { Ok(First { url, page_is_ascii }) } else { Err(Short) }
    }

    /// Whether it is as it must be, and the bytes of its texts, written out; a first was judged
    /// when it was found.
    fn judge(&self, record: &Record<'a>, first: Option<&First<'a>>) -> Result<usize, Short> {
        let Some(first) = first else { return Ok(0) };
        let target = &record.target;
        let target_bytes = target.len(first.url.target.len())?;
        let byte = match target.front {
            0 => target.pieces(first.url.target)?.iter().find_map(|piece| piece.first()),
            _ => first.url.target.first(),
        };
        let is_right = self.may_be_asked_for(target_bytes, byte)
            && is_graphic(target.middle)
            && self.is_within(record.errand, first.url.arrival.wrapping_add(record.arrival));
        let page = match &record.via {
            Via::None => Ok(0),
            Via::Same => first.url.via.map(<[u8]>::len).ok_or(Short),
            Via::New(page) => judge_page(page, first),
        };
        if is_right { page.map(|page_bytes| target_bytes + page_bytes) } else { Err(Short) }
    }

    /// Whether a target of that length and first byte is as requests may carry it, as far as these
    /// tell.
    fn may_be_asked_for(&self, len: usize, byte: Option<&u8>) -> bool {
        byte == Some(&b'/') && self.bounds.origin_bytes.saturating_add(len) <= URL_BYTES_CAP
    }

    fn is_within(&self, errand: Errand, arrival: u64) -> bool {
        match errand {
            Errand::Page => arrival <= self.bounds.arrivals,
            Errand::Robots(of, _) => of.index() < self.bounds.servers,
            Errand::Hop(_) => true,
        }
    }
}

/// What else is written there would go out to a server.
fn is_graphic(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |so_far, byte| so_far & byte.is_ascii_graphic())
}

fn judge_page(page: &Text<'_>, first: &First<'_>) -> Result<usize, Short> {
    let other = first.url.via.unwrap_or_default();
    let bytes = page.len(other.len())?;
    if bytes > TEXT_BYTES_MAX {
        return Err(Short);
    }
    let is_ascii = first.page_is_ascii && page.middle.is_ascii();
    let is_text = || Ok(str::from_utf8(&page.pieces(other)?.concat()).is_ok());
    if is_ascii || is_text()? { Ok(bytes) } else { Err(Short) }
}
