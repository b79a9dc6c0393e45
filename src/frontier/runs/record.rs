//! One URL as it is written: read, whole or passed by. The format is told in [`super`].
//!
//! Laws: what most records are is read with one look at their first 32 bytes, and comes out as the
//! long way has it, which reads all that may be written. Bytes that make no sense are [`Short`],
//! never a panic. Cost: some hundred instructions; nothing is copied but the numbers of the last
//! record of a text.

use super::super::ServerId;
use super::super::items::{Glance, Written};
use super::super::queue::Errand;
use super::{
    ARRIVAL_SIZE, FIRST, GONE, HOP, HOW_SAME, NOTHING, PRIOR, QUALITY_SAME, QUALITY_SHIFT,
    QUALITY_SIZE, TRIED, VIA_NEW, VIA_SAME, WIDE, Worth,
};
use crate::codec::{Short, Take};
use crate::quality::Quality;

/// A URL as it is written: what of it is not that of the first of its run.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Record<'a> {
    /// It is the first of a run, and so whole.
    pub(in super::super) is_first: bool,
    pub(in super::super) is_gone: bool,
    pub(in super::super) target: Text<'a>,
    pub(in super::super) via: Via<Text<'a>>,
    /// Less than that of the first, or more.
    pub(in super::super) arrival: u64,
    pub(in super::super) quality: Option<Quality>,
    /// Depth, and letter.
    pub(in super::super) how: Option<(u16, u8)>,
    pub(in super::super) hops: u8,
    pub(in super::super) tries: u8,
    pub(in super::super) errand: Errand,
}

/// A text: so many bytes at the front and at the back of another, and what is between them.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Text<'a> {
    pub(in super::super) front: usize,
    pub(in super::super) back: usize,
    pub(in super::super) middle: &'a [u8],
}

/// The URL of the page that a URL was found on.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Via<T> {
    None,
    /// It is that of the first.
    Same,
    New(T),
}

/// URLs that are passed by: what tells where one goes is seen, its texts are not looked at.
#[derive(Debug, Default)]
pub(in super::super) struct Skim {
    /// Of the first of the run.
    quality: Option<Quality>,
}

/// What comes before the texts of a plain record, and may be read of them with it: bits and sizes,
/// six lengths, and three words, of which the last has depth and letter.
const PLAIN_BYTES: usize = 32;
/// Of a word, so many of its bytes.
const MASKS: [u64; 9] = {
    let mut masks = [0; 9];
    let mut bytes = 1;
    while bytes < masks.len() {
        masks[bytes] = u64::MAX >> (64 - 8 * bytes);
        bytes += 1;
    }
    masks
};

/// Most behind a first have none of these, and two of those.
const ODD: u8 = FIRST | GONE | TRIED | PRIOR;
const HOW_AND_VIA_SAME: u8 = HOW_SAME | VIA_SAME;
const HOW_SAME_VIA_NEW: u8 = HOW_SAME | VIA_NEW;

impl<'a> Record<'a> {
    /// Takes the next one.
    #[inline(always)]
    pub(in super::super) fn take(take: &mut Take<'a>) -> Result<Self, Short> {
        match Self::plain(take.rest()) {
            Some((record, bytes)) => take.raw(bytes).map(|_| record),
            None => Self::any(take),
        }
    }

    /// The next one, and the bytes that it was read from.
    #[inline(always)]
    pub(in super::super) fn take_with_bytes(
        take: &mut Take<'a>,
    ) -> Result<(Self, &'a [u8]), Short> {
        let before = take.rest();
        let record = Self::take(take)?;
        Ok((record, &before[..before.len() - take.rest().len()]))
    }

    /// The next one and its bytes, if it is of the kind that most are: without a loop, and with
    /// hardly a branch. `None`: it takes a closer look.
    #[inline(always)]
    pub(super) fn plain(bytes: &'a [u8]) -> Option<(Self, usize)> {
        // At the end of a text numbers that aren't there are zeros; then texts can't be there.
        let mut end = [0; PLAIN_BYTES];
        let head = bytes.first_chunk::<PLAIN_BYTES>().unwrap_or_else(|| {
            end[..bytes.len()].copy_from_slice(bytes);
            &end
        });
        let [bits, sizes, ..] = *head;
        let has = |bit: u8| bits & bit != 0;
        let (is_first, arrival_bytes) = (has(FIRST), usize::from(sizes & ARRIVAL_SIZE));
        let is_odd = bits & (TRIED | PRIOR) != 0 || sizes & WIDE != 0 || arrival_bytes > 8;
        if is_odd || has(VIA_SAME) && (is_first || has(VIA_NEW)) || has(GONE) && !is_first {
            return None;
        }
        let target = Lengths::small([head[2], head[3], head[4]]);
        let (of_via, mut at) = match has(VIA_NEW) {
            true => (Lengths::small([head[5], head[6], head[7]]), 8),
            false => (Lengths::default(), 5),
        };
        if is_first && (target.shared() | of_via.shared()) != 0 {
            return None;
        }
        let arrival = word_at(head, at, arrival_bytes);
        at += arrival_bytes;
        let quality_bytes = usize::from(sizes >> QUALITY_SHIFT & QUALITY_SIZE);
        let millionths = word_at(head, at, quality_bytes);
        at += quality_bytes;
        let how = match has(HOW_SAME) {
            true => None,
            false if head[at] >= 0x80 => return None,
            false => Some((u16::from(head[at]), head[at + 1])),
        };
        at += if how.is_some() { 2 } else { 0 };
        let (until, end) = (at + target.new, at + target.new + of_via.new);
        let (target_new, via_new) = (bytes.get(at..until)?, bytes.get(until..end)?);
        let record = Self {
            is_first,
            is_gone: has(GONE),
            target: Text { front: target.front, back: target.back, middle: target_new },
            via: match has(VIA_NEW) {
                true => Via::New(Text { front: of_via.front, back: of_via.back, middle: via_new }),
                false if has(VIA_SAME) => Via::Same,
                false => Via::None,
            },
            arrival: unzigzag(arrival),
            quality: match millionths {
                0 if has(QUALITY_SAME) => None,
                _ => Some(quality(millionths).ok()?),
            },
            how,
            hops: 0,
            tries: 0,
            errand: Errand::Page,
        };
        Some((record, end))
    }

    /// Passes by the next one, if it is of the kind that most behind a first are. `false`: it takes
    /// a closer look.
    #[inline]
    pub(in super::super) fn pass(take: &mut Take<'a>) -> bool {
        let Some(&[bits, sizes, _, _, target, _, _, via]) = take.rest().first_chunk() else {
            return false;
        };
        let numbers = usize::from(sizes & ARRIVAL_SIZE) + usize::from(sizes >> QUALITY_SHIFT);
        let texts = match bits & (ODD | HOW_SAME | VIA_NEW | VIA_SAME) {
            HOW_SAME | HOW_AND_VIA_SAME => 5 + usize::from(target),
            HOW_SAME_VIA_NEW => 8 + usize::from(target) + usize::from(via),
            _ => return false,
        };
        sizes & (WIDE | ARRIVAL_SIZE) <= 8 && take.raw(numbers + texts).is_ok()
    }

    /// The next one, whatever it is.
    #[cold]
    pub(super) fn any(take: &mut Take<'a>) -> Result<Self, Short> {
        let [bits, sizes] = take.array()?;
        let (is_first, has) = (bits & FIRST != 0, |bit: u8| bits & bit != 0);
        let is_odd = has(VIA_NEW) && has(VIA_SAME);
        if is_odd || is_first && has(VIA_SAME) || !is_first && has(GONE) {
            return Err(Short);
        }
        let target = Lengths::take(sizes & WIDE != 0, take)?;
        let of_via = match has(VIA_NEW) {
            true => Lengths::take(sizes & WIDE != 0, take)?,
            false => Lengths::default(),
        };
        if is_first && (target.shared() | of_via.shared()) != 0 {
            return Err(Short);
        }
        let arrival = take.word((sizes & ARRIVAL_SIZE).into())?;
        let quality_size = sizes >> QUALITY_SHIFT & QUALITY_SIZE;
        Ok(Self {
            is_first,
            is_gone: has(GONE),
            arrival: unzigzag(arrival),
            quality: match take.word(quality_size.into())? {
                0 if has(QUALITY_SAME) => None,
                millionths => Some(quality(millionths)?),
            },
            how: if has(HOW_SAME) { None } else { Some((take.number()?, take.u8()?)) },
            hops: if has(TRIED) { take.u8()? } else { 0 },
            tries: if has(TRIED) { take.u8()? } else { 0 },
            errand: match has(PRIOR) {
                true => match (take.number()?, take.u8()?) {
                    (chain, HOP) => Errand::Hop(chain),
                    (server, redirects) => Errand::Robots(ServerId(server), redirects),
                },
                false => Errand::Page,
            },
            target: target.of(take)?,
            via: match has(VIA_NEW) {
                true => Via::New(of_via.of(take)?),
                false if has(VIA_SAME) => Via::Same,
                false => Via::None,
            },
        })
    }

    /// The first of a run, which says all itself.
    pub(in super::super) fn whole(&self) -> Written<'a> {
        let (depth, found_as) = self.how.unwrap_or_default();
        Written {
            target: self.target.middle,
            via: match self.via {
                Via::New(via) => Some(via.middle),
                Via::None | Via::Same => None,
            },
            quality: self.quality.unwrap_or(NOTHING.quality),
            arrival: self.arrival,
            depth,
            hops: self.hops,
            tries: self.tries,
            errand: self.errand,
            found_as,
        }
    }

    /// What its texts have in common with those of the first of its run.
    pub(in super::super) fn worth(&self, first: &Written<'_>) -> Worth {
        let (shared, new) = match &self.via {
            Via::None => (0, 0),
            Via::Same => (first.via.map_or(0, <[u8]>::len), 0),
            Via::New(via) => (via.front + via.back, via.middle.len()),
        };
        let shared = shared + self.target.front + self.target.back;
        Worth { shared, all: shared + new + self.target.middle.len() }
    }

    /// What a glance at it shows, if the first of its run is worth that.
    pub(in super::super) fn glance(&self, of_first: Quality) -> Glance {
        let is_prior = self.errand != Errand::Page;
        Glance { is_prior, quality: self.quality.unwrap_or(of_first) }
    }
}

/// Lengths of a text: what its front and its back share, and what is new.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    front: usize,
    back: usize,
    new: usize,
}

impl Lengths {
    #[inline]
    fn take(is_wide: bool, take: &mut Take<'_>) -> Result<Self, Short> {
        if is_wide {
            return Ok(Self { front: take.number()?, back: take.number()?, new: take.number()? });
        }
        Ok(Self::small(take.array()?))
    }

    #[inline]
    fn small(lengths: [u8; 3]) -> Self {
        let [front, back, new] = lengths.map(usize::from);
        Self { front, back, new }
    }

    fn shared(&self) -> usize {
        self.front | self.back
    }

    /// The text that has these.
    #[inline]
    fn of<'a>(self, take: &mut Take<'a>) -> Result<Text<'a>, Short> {
        Ok(Text { front: self.front, back: self.back, middle: take.raw(self.new)? })
    }
}

impl<'a> Text<'a> {
    /// Its bytes, if it is told against a text of so many.
    #[inline]
    pub(in super::super) fn len(&self, other: usize) -> Result<usize, Short> {
        let shared = self.front.checked_add(self.back).filter(|shared| *shared <= other);
        Ok(shared.ok_or(Short)? + self.middle.len())
    }

    /// What it is made of, if it is told against `other`.
    #[inline]
    pub(in super::super) fn pieces<'b>(&self, other: &'b [u8]) -> Result<[&'b [u8]; 3], Short>
    where
        'a: 'b,
    {
        let (front, rest) = other.split_at_checked(self.front).ok_or(Short)?;
        let between = rest.len().checked_sub(self.back).ok_or(Short)?;
        Ok([front, self.middle, &rest[between..]])
    }
}

impl Skim {
    /// Goes on behind URLs of a run whose first is worth that.
    pub(in super::super) fn behind(of_first: Quality) -> Self {
        Self { quality: Some(of_first) }
    }

    /// A glance at the next URL, of which no more needs to be there than its first 32 bytes, if it
    /// is of the kind that most behind a first are; else all of it.
    #[inline]
    pub(in super::super) fn glance(&mut self, bytes: &[u8]) -> Result<Glance, Short> {
        if let (Some(head), Some(of_first)) = (bytes.first_chunk::<PLAIN_BYTES>(), self.quality)
            && head[0] & ODD == 0
            && head[1] & (WIDE | ARRIVAL_SIZE) <= 8
        {
            let at = if head[0] & VIA_NEW != 0 { 8 } else { 5 };
            let (arrival, size) = (head[1] & ARRIVAL_SIZE, head[1] >> QUALITY_SHIFT);
            let millionths = word_at(head, at + usize::from(arrival), size.into());
            let is_same = millionths == 0 && head[0] & QUALITY_SAME != 0;
            let quality = if is_same { of_first } else { quality(millionths)? };
            return Ok(Glance { is_prior: false, quality });
        }
        self.pass(&mut Take::new(bytes))
    }

    /// Passes by the next URL, with the first of its run if that is gone.
    pub(in super::super) fn pass(&mut self, take: &mut Take<'_>) -> Result<Glance, Short> {
        loop {
            let record = Record::take(take)?;
            let of_first =
                if record.is_first { NOTHING.quality } else { self.quality.ok_or(Short)? };
            let glance = record.glance(of_first);
            if record.is_first {
                self.quality = Some(glance.quality);
            }
            if !record.is_gone {
                return Ok(glance);
            }
        }
    }
}

/// A number of up to eight bytes.
#[inline]
fn word_at(head: &[u8; PLAIN_BYTES], at: usize, bytes: usize) -> u64 {
    let word = head[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    word & MASKS[bytes]
}

fn quality(millionths: u64) -> Result<Quality, Short> {
    let quality = Quality::from_millionths(millionths);
    if quality.millionths() == millionths { Ok(quality) } else { Err(Short) }
}

fn unzigzag(zigzag: u64) -> u64 {
    let sign = if zigzag & 1 == 1 { u64::MAX } else { 0 };
    zigzag >> 1 ^ sign
}
