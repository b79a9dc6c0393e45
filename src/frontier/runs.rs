//! URLs that wait, to bytes and back: one spelling for snapshots, for what is packed in memory, and
//! for the ends of queues.
//!
//! They are written in runs. The first of a run is whole; those behind it don't repeat what they
//! have in common with it (the front and the back of their texts, how they were found, what they
//! are worth). So one is appended by who has seen the first, and runs can be moved as they are.
//!
//! ```text
//! URL    bits u8 | target | arrival, zigzag
//!        ROBOTS: server, redirects | VIA_NEW: via | TRIED: hops, tries
//!        unless QUALITY_SAME: millionths | unless HOW_SAME: depth, letter
//! text   FIRST: whole
//!        else: bytes that front and back share with that of the first | what is between them
//! ```
//! A first one that is GONE was taken and stays for those behind it, of which there is at least
//! one.
//!
//! Laws: what was put is taken again ([`super::unpacked`]), field by field. Bytes that make no
//! sense are [`Short`], never a panic. Cost: a comparison of texts, eight bytes at a time; most
//! often twelve bytes beside what is new of target and via.

use super::ServerId;
use super::items::{Glance, Written};
use super::queue::Errand;
use crate::codec::{Put, Short, Take};
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
                put_against(first, texts, &url, out);
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
    let via = if url.via.is_some() { VIA_NEW } else { 0 };
    let bits = FIRST | via | bits(&NOTHING, url);
    out.put_u8(bits);
    out.put_bytes(url.target);
    put_errand(&NOTHING, url, out);
    if let Some(via) = url.via {
        out.put_bytes(via);
    }
    put_rest(bits, url, out);
}

/// Appends a URL behind the first of its run.
fn put_against(first: &Written<'_>, texts: Shared, url: &Written<'_>, out: &mut Vec<u8>) {
    let via = match texts.via {
        Via::None => 0,
        Via::Same => VIA_SAME,
        Via::New(..) => VIA_NEW,
    };
    let bits = via | bits(first, url);
    out.put_u8(bits);
    put_middle(url.target, texts.target, out);
    put_errand(first, url, out);
    if let (Via::New(shared), Some(via)) = (texts.via, url.via) {
        put_middle(via, shared, out);
    }
    put_rest(bits, url, out);
}

fn bits(first: &Written<'_>, url: &Written<'_>) -> u8 {
    let when = |is: bool, bit: u8| if is { bit } else { 0 };
    when(url.is_prior(), ROBOTS)
        | when(url.hops > 0 || url.tries > 0, TRIED)
        | when(url.quality == first.quality, QUALITY_SAME)
        | when((url.depth, url.found_as) == (first.depth, first.found_as), HOW_SAME)
}

fn put_errand(first: &Written<'_>, url: &Written<'_>, out: &mut Vec<u8>) {
    out.put_varint(zigzag(url.arrival.wrapping_sub(first.arrival)));
    if let Errand::Robots(of, redirects) = url.errand {
        out.put_varint(u64::from(of.0));
        out.put_u8(redirects);
    }
}

fn put_rest(bits: u8, url: &Written<'_>, out: &mut Vec<u8>) {
    if bits & TRIED != 0 {
        out.extend_from_slice(&[url.hops, url.tries]);
    }
    if bits & QUALITY_SAME == 0 {
        out.put_varint(url.quality.millionths());
    }
    if bits & HOW_SAME == 0 {
        out.put_varint(u64::from(url.depth));
        out.put_u8(url.found_as);
    }
}

/// What is new of a text.
fn put_middle(text: &[u8], (front, back): (usize, usize), out: &mut Vec<u8>) {
    let middle = &text[front..text.len() - back];
    if (front | back | middle.len()) < 0x80 {
        out.extend_from_slice(&[front as u8, back as u8, middle.len() as u8]);
        return out.extend_from_slice(middle);
    }
    out.put_varint(front as u64);
    out.put_varint(back as u64);
    out.put_bytes(middle);
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
        let bits = take.u8()?;
        let (is_first, has) = (bits & FIRST != 0, |bit: u8| bits & bit != 0);
        let is_odd = has(VIA_NEW) && has(VIA_SAME);
        if is_odd || is_first && has(VIA_SAME) || !is_first && has(GONE) {
            return Err(Short);
        }
        Ok(Self {
            is_first,
            is_gone: has(GONE),
            target: Text::take(is_first, take)?,
            arrival: unzigzag(take.varint()?),
            errand: match has(ROBOTS) {
                true => Errand::Robots(ServerId(take.number()?), take.u8()?),
                false => Errand::Page,
            },
            via: match has(VIA_NEW) {
                true => Via::New(Text::take(is_first, take)?),
                false if has(VIA_SAME) => Via::Same,
                false => Via::None,
            },
            hops: if has(TRIED) { take.u8()? } else { 0 },
            tries: if has(TRIED) { take.u8()? } else { 0 },
            quality: if has(QUALITY_SAME) { None } else { Some(quality(take.varint()?)?) },
            how: if has(HOW_SAME) { None } else { Some((take.number()?, take.u8()?)) },
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

impl<'a> Text<'a> {
    #[inline]
    fn take(is_whole: bool, take: &mut Take<'a>) -> Result<Self, Short> {
        if !is_whole && let Some([front, back, middle]) = take.small() {
            let middle = take.raw(middle.into())?;
            return Ok(Self { front: front.into(), back: back.into(), middle });
        }
        let (front, back) = if is_whole { (0, 0) } else { (take.number()?, take.number()?) };
        Ok(Self { front, back, middle: take.bytes()? })
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
