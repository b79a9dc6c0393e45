//! URLs that wait, to bytes and back: one spelling for snapshots, for what is packed in memory, and
//! for the ends of queues.
//!
//! They are written in runs. The first of a run is whole; those behind it don't repeat what they
//! have in common with it (the front and the back of their texts, how they were found, what they
//! are worth). So one is appended by who has seen the first, and runs can be moved as they are.
//!
//! ```text
//! URL    bits u8 | sizes u8 | target: lengths | VIA_NEW: via: lengths
//!        arrival, less than that of the first or more, zigzag | millionths, none if QUALITY_SAME
//!        unless HOW_SAME: depth, letter | TRIED: hops, tries | ROBOTS: server, redirects
//!        target: what is new | VIA_NEW: via: what is new
//! sizes  bytes of the arrival, 4 bits | of the quality 3 | WIDE
//! lengths of a text: bytes that its front and its back share with that of the first, bytes that
//!        are new; of a first one nothing is shared. A byte each, if WIDE of variable length
//! ```
//! A first one that is GONE was taken and stays for those behind it, of which there is at least
//! one.
//!
//! Laws: what was put is taken again ([`super::unpacked`]), field by field. Bytes that make no
//! sense are [`Short`], never a panic. Cost: a comparison of texts, eight bytes at a time; most
//! often fifteen bytes beside what is new of target and via. What there is to read is told by the
//! first two bytes, and numbers are read whole, so that most records are read without a loop
//! (DECISIONS.md 71).

use super::ServerId;
use super::items::{Glance, Written};
use super::queue::Errand;
use crate::codec::{Short, Take};
use crate::quality::Quality;

/// A run of URLs that is being written: its first, and how many they are.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    first: Option<Written<'a>>,
    urls: usize,
}

/// A URL as it is written: what of it is not that of the first of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    /// It is the first of a run, and so whole.
    pub(super) is_first: bool,
    pub(super) is_gone: bool,
    pub(super) target: Text<'a>,
    pub(super) via: Via<Text<'a>>,
    /// Less than that of the first, or more.
    pub(super) arrival: u64,
    pub(super) quality: Option<Quality>,
    /// Depth, and letter.
    pub(super) how: Option<(u16, u8)>,
    pub(super) hops: u8,
    pub(super) tries: u8,
    pub(super) errand: Errand,
}

/// A text: so many bytes at the front and at the back of another, and what is between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) front: usize,
    pub(super) back: usize,
    pub(super) middle: &'a [u8],
}

/// The URL of the page that a URL was found on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Via<T> {
    None,
    /// It is that of the first.
    Same,
    New(T),
}

/// URLs that are passed by: what tells where one goes is seen, its texts are not looked at.
#[derive(Debug, Default)]
pub(super) struct Skim {
    /// Of the first of the run.
    quality: Option<Quality>,
}

const ROBOTS: u8 = 1;
const VIA_NEW: u8 = 2;
const VIA_SAME: u8 = 4;
const TRIED: u8 = 8;
const QUALITY_SAME: u8 = 16;
const HOW_SAME: u8 = 32;
pub(super) const FIRST: u8 = 64;
pub(super) const GONE: u8 = 128;

/// Of the sizes: bytes of the arrival, where those of the quality are, lengths of more than a byte.
const ARRIVAL_SIZE: u8 = 15;
const QUALITY_SHIFT: u32 = 4;
const QUALITY_SIZE: u8 = 7;
const WIDE: u8 = 128;

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

/// A run is no longer: what is far behind the first has less in common with it.
pub(super) const RUN_URLS: usize = 16;

/// What the first of a run is told against.
pub(super) const NOTHING: Written<'static> = Written {
    target: b"",
    via: None,
    quality: Quality::ZERO,
    arrival: 0,
    depth: 0,
    hops: 0,
    tries: 0,
    errand: Errand::Page,
    found_as: 0,
};

impl<'a> Run<'a> {
    /// A run that goes on behind `urls`, of which this is the first.
    pub(super) fn behind(first: Option<Written<'a>>, urls: usize) -> Self {
        Self { first, urls }
    }

    /// Appends a URL. Whether it is the first of a run.
    pub(super) fn put(&mut self, url: Written<'a>, out: &mut Vec<u8>) -> bool {
        if let Some(first) = &self.first
            && self.urls < RUN_URLS
        {
            let texts = Shared::of(first, &url);
            if texts.are_worth_it(&url) {
                self.urls += 1;
                put(0, first, texts, &url, out);
                return false;
            }
        }
        put_first(&url, out);
        (self.first, self.urls) = (Some(url), 1);
        true
    }
}

/// What the texts of a URL share with those of the first of its run: bytes at the front and at the
/// back.
#[derive(Clone, Copy, Debug)]
struct Shared {
    target: (usize, usize),
    via: Via<(usize, usize)>,
}

impl Shared {
    fn of(first: &Written<'_>, url: &Written<'_>) -> Self {
        let via = match (url.via, first.via) {
            (None, _) => Via::None,
            (Some(via), Some(before)) if is_same(via, before) => Via::Same,
            (Some(via), before) => Via::New(shared(before.unwrap_or_default(), via)),
        };
        Self { target: shared(first.target, url.target), via }
    }

    fn bits(&self) -> u8 {
        match self.via {
            Via::None => 0,
            Via::Same => VIA_SAME,
            Via::New(..) => VIA_NEW,
        }
    }

    /// Half of the texts, or more. If not, the URL had better be the first of the next run.
    fn are_worth_it(&self, url: &Written<'_>) -> bool {
        let via = url.via.map_or(0, <[u8]>::len);
        let of_via = match self.via {
            Via::None | Via::Same => via,
            Via::New((front, back)) => front + back,
        };
        2 * (self.target.0 + self.target.1 + of_via) >= url.target.len() + via
    }
}

/// Appends a URL as the first of a run.
fn put_first(url: &Written<'_>, out: &mut Vec<u8>) {
    let via = if url.via.is_some() { Via::New((0, 0)) } else { Via::None };
    put(FIRST, &NOTHING, Shared { target: (0, 0), via }, url, out);
}

/// Appends a URL that is told against `first`: what its texts share with that one's is known.
fn put(bits: u8, first: &Written<'_>, texts: Shared, url: &Written<'_>, out: &mut Vec<u8>) {
    let arrival = zigzag(url.arrival.wrapping_sub(first.arrival));
    let is_same = url.quality == first.quality;
    let quality = if is_same { 0 } else { url.quality.millionths() };
    let bits = bits | texts.bits() | bits_of(first, url);
    let target = Text::new(url.target, texts.target);
    let via = match (texts.via, url.via) {
        (Via::New(shared), Some(via)) => Some(Text::new(via, shared)),
        _ => None,
    };
    let is_wide = target.is_wide() || via.is_some_and(|via| via.is_wide());
    let mut head = Head::new();
    let sizes = size_of_word(arrival) | size_of_word(quality) << QUALITY_SHIFT;
    head.put_all([bits, sizes | if is_wide { WIDE } else { 0 }]);
    target.put_lengths(is_wide, &mut head);
    if let Some(via) = &via {
        via.put_lengths(is_wide, &mut head);
    }
    head.put_word(arrival);
    head.put_word(quality);
    if bits & HOW_SAME == 0 {
        head.put_varint(u64::from(url.depth));
        head.put_all([url.found_as]);
    }
    if bits & TRIED != 0 {
        head.put_all([url.hops, url.tries]);
    }
    if let Errand::Robots(of, redirects) = url.errand {
        head.put_varint(u64::from(of.0));
        head.put_all([redirects]);
    }
    out.extend_from_slice(head.bytes());
    out.extend_from_slice(target.middle);
    if let Some(via) = via {
        out.extend_from_slice(via.middle);
    }
}

fn bits_of(first: &Written<'_>, url: &Written<'_>) -> u8 {
    let when = |is: bool, bit: u8| if is { bit } else { 0 };
    when(url.is_prior(), ROBOTS)
        | when(url.hops > 0 || url.tries > 0, TRIED)
        | when(url.quality == first.quality, QUALITY_SAME)
        | when((url.depth, url.found_as) == (first.depth, first.found_as), HOW_SAME)
}

/// What of a record comes before its texts.
struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    len: usize,
}

/// Bits and sizes, six lengths, two numbers, depth and letter, hops and tries, server and
/// redirects.
const HEAD_BYTES_MAX: usize = 2 + 6 * 10 + 2 * 8 + 4 + 2 + 6;

impl Head {
    fn new() -> Self {
        Self { bytes: [0; HEAD_BYTES_MAX], len: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put_all<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }

    /// As many bytes as [`size_of_word`] says, low ones first.
    fn put_word(&mut self, value: u64) {
        self.put_all(value.to_le_bytes());
        self.len -= size_of::<u64>() - usize::from(size_of_word(value));
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_all([value as u8 | 0x80]);
            value >>= 7;
        }
        self.put_all([value as u8]);
    }
}

/// Bytes of a number, but for those that are nothing.
fn size_of_word(value: u64) -> u8 {
    (u64::BITS - value.leading_zeros()).div_ceil(u8::BITS) as u8
}

/// How many bytes two texts share at their fronts, and then at their backs.
fn shared(before: &[u8], text: &[u8]) -> (usize, usize) {
    let front = same_at_front(before, text);
    (front, same_at_back(&before[front..], &text[front..]))
}

fn same_at_front(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    let (ones, _) = one[..most].as_chunks::<8>();
    let (others, _) = other[..most].as_chunks::<8>();
    for (place, (one, other)) in ones.iter().zip(others).enumerate() {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return place * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    let from = ones.len() * 8;
    let rest = one[from..most].iter().zip(&other[from..most]);
    from + rest.take_while(|(one, other)| one == other).count()
}

fn same_at_back(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    let (one, other) = (&one[one.len() - most..], &other[other.len() - most..]);
    let (_, ones) = one.as_rchunks::<8>();
    let (_, others) = other.as_rchunks::<8>();
    for (place, (one, other)) in ones.iter().rev().zip(others.iter().rev()).enumerate() {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return place * 8 + differ.leading_zeros() as usize / 8;
        }
    }
    let rest = most - ones.len() * 8;
    let pairs = one[..rest].iter().rev().zip(other[..rest].iter().rev());
    most - rest + pairs.take_while(|(one, other)| one == other).count()
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    std::ptr::eq(one, other) || one == other
}

impl<'a> Record<'a> {
    /// Takes the next one.
    #[inline]
    pub(super) fn take(take: &mut Take<'a>) -> Result<Self, Short> {
        match Self::plain(take.rest()) {
            Some((record, bytes)) => take.raw(bytes).map(|_| record),
            None => Self::any(take),
        }
    }

    /// The next one and its bytes, if it is of the kind that most are, and more follows than its
    /// numbers: without a loop, and with hardly a branch. `None`: it takes a closer look.
    #[inline]
    fn plain(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let head = bytes.first_chunk::<PLAIN_BYTES>()?;
        let [bits, sizes, ..] = *head;
        let has = |bit: u8| bits & bit != 0;
        let (is_first, arrival_bytes) = (has(FIRST), usize::from(sizes & ARRIVAL_SIZE));
        let is_odd = bits & (TRIED | ROBOTS) != 0 || sizes & WIDE != 0 || arrival_bytes > 8;
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

    /// The next one, whatever it is.
    #[cold]
    fn any(take: &mut Take<'a>) -> Result<Self, Short> {
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
            errand: match has(ROBOTS) {
                true => Errand::Robots(ServerId(take.number()?), take.u8()?),
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
    pub(super) fn whole(&self) -> Written<'a> {
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

    /// What a glance at it shows, if the first of its run is worth that.
    pub(super) fn glance(&self, of_first: Quality) -> Glance {
        let is_prior = matches!(self.errand, Errand::Robots(..));
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
    fn new(text: &'a [u8], (front, back): (usize, usize)) -> Self {
        Self { front, back, middle: &text[front..text.len() - back] }
    }

    /// Whether its lengths don't fit into a byte each.
    fn is_wide(&self) -> bool {
        self.front | self.back | self.middle.len() > usize::from(u8::MAX)
    }

    fn put_lengths(&self, is_wide: bool, head: &mut Head) {
        let lengths = [self.front, self.back, self.middle.len()];
        match is_wide {
            true => lengths.into_iter().for_each(|length| head.put_varint(length as u64)),
            false => head.put_all(lengths.map(|length| length as u8)),
        }
    }

    /// What it is made of, if it is told against `other`.
    #[inline]
    pub(super) fn pieces<'b>(&self, other: &'b [u8]) -> Result<[&'b [u8]; 3], Short>
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
    pub(super) fn behind(of_first: Quality) -> Self {
        Self { quality: Some(of_first) }
    }

    /// Passes by the next URL, with the first of its run if that is gone.
    pub(super) fn pass(&mut self, take: &mut Take<'_>) -> Result<Glance, Short> {
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

/// Small numbers of either sign as small numbers without.
fn zigzag(difference: u64) -> u64 {
    let sign = if difference >> 63 == 1 { u64::MAX } else { 0 };
    difference << 1 ^ sign
}

fn unzigzag(zigzag: u64) -> u64 {
    let sign = if zigzag & 1 == 1 { u64::MAX } else { 0 };
    zigzag >> 1 ^ sign
}

#[cfg(test)]
mod tests;
