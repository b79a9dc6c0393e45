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
//!        unless HOW_SAME: depth, letter | TRIED: hops, tries
//!        PRIOR: server, redirects of its robots.txt; or chain, 255: a hop
//!        target: what is new | VIA_NEW: via: what is new
//! sizes  bytes of the arrival, 4 bits | of the quality 3 | WIDE
//! lengths of a text: bytes that its front and its back share with that of the first, bytes that
//!        are new; of a first one nothing is shared. A byte each, if WIDE of variable length
//! ```
//! A first one that is GONE was taken and stays for those behind it, of which there is at least
//! one.
//!
//! Laws: what was put is taken again ([`record`], [`super::unpacked`]), field by field. Cost: a
//! comparison of texts, eight bytes at a time; most often fifteen bytes beside what is new of
//! target and via. What there is to read is told by the first two bytes, and numbers are read
//! whole, so that most records are read without a loop (DECISIONS.md 71).

mod record;

use super::items::Written;
use super::queue::Errand;
use crate::codec::Take;
use crate::quality::Quality;
pub(super) use record::{Record, Skim, Text, Via};

/// A run of URLs that is being written: its first, and how many they are.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    first: Option<Written<'a>>,
    urls: usize,
}

const PRIOR: u8 = 1;
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

/// In place of the redirects of a robots.txt, which are fewer: a hop of a chain.
const HOP: u8 = u8::MAX;

/// A run is no longer, unless it was put together ([`super::loose`], [`put_before`]): what is far
/// behind the first has less in common with it.
pub(super) const RUN_URLS: usize = 32;

const WRITTEN_HERE: &str = "it was written here";

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
            && put_behind(first, &url, out)
        {
            self.urls += 1;
            return false;
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

    /// The texts of a URL that share so much.
    fn told<'a>(&self, url: &Written<'a>) -> ToldTexts<'a> {
        let via = match (self.via, url.via) {
            (Via::New(shared), Some(via)) => Via::New(Told::of(via, shared)),
            (Via::Same, _) => Via::Same,
            _ => Via::None,
        };
        ToldTexts { target: Told::of(url.target, self.target), via }
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

/// Appends a URL that is told against `first`, if they have enough in common.
fn put_behind(first: &Written<'_>, url: &Written<'_>, out: &mut Vec<u8>) -> bool {
    let texts = Shared::of(first, url);
    let is_worth_it = texts.are_worth_it(url);
    if is_worth_it {
        put(0, first, url, texts.told(url), out);
    }
    is_worth_it
}

/// Appends a URL that is told against `first`, whatever they have in common, and returns what that
/// is.
pub(super) fn put_against(first: &Written<'_>, url: &Written<'_>, out: &mut Vec<u8>) -> Worth {
    let told = Shared::of(first, url).told(url);
    put(0, first, url, told, out);
    told.worth(first.via.map_or(0, <[u8]>::len))
}

/// Appends a URL and those of some runs behind it, which were written here: as one of the first of
/// these, if they have enough in common.
pub(super) fn put_before(others: &[u8], url: &Written<'_>, out: &mut Vec<u8>) {
    let (mut take, begins) = (Take::new(others), out.len());
    let (record, bytes) = Record::take_with_bytes(&mut take).expect(WRITTEN_HERE);
    let first = record.whole();
    out.extend_from_slice(bytes);
    out[begins] |= GONE;
    if !put_behind(&first, url, out) {
        out.truncate(begins);
        put_first(url, out);
        return out.extend_from_slice(others);
    }
    if !record.is_gone {
        put_against(&first, &first, out);
    }
    out.extend_from_slice(take.rest());
}

/// Appends a URL as the first of a run.
pub(super) fn put_first(url: &Written<'_>, out: &mut Vec<u8>) {
    let via = if url.via.is_some() { Via::New((0, 0)) } else { Via::None };
    put(FIRST, &NOTHING, url, Shared { target: (0, 0), via }.told(url), out);
}

/// The first of a run whose URLs are to be told against another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead<'a> {
    url: Written<'a>,
    /// The other one, but for its texts; bytes of the URL of its page.
    other: Written<'static>,
    other_via: usize,
    shared: Shared,
}

impl<'a> Lead<'a> {
    /// URLs that were told against `url` will be against `other`.
    pub(super) fn new(url: Written<'a>, other: &Written<'_>) -> Self {
        let Written { quality, arrival, depth, found_as, .. } = *other;
        Self {
            url,
            other: Written { quality, arrival, depth, found_as, ..NOTHING },
            other_via: other.via.map_or(0, <[u8]>::len),
            shared: Shared::of(other, &url),
        }
    }

    /// Appends a URL of the run, and returns what it has in common with the other first. Its texts
    /// are not looked at: what it shares with both of them it does not share less with one.
    pub(super) fn put(&self, record: &Record<'_>, out: &mut Vec<u8>) -> Worth {
        let (depth, found_as) = record.how.unwrap_or((self.url.depth, self.url.found_as));
        let url = Written {
            quality: record.quality.unwrap_or(self.url.quality),
            arrival: self.url.arrival.wrapping_add(record.arrival),
            depth,
            hops: record.hops,
            tries: record.tries,
            errand: record.errand,
            found_as,
            ..NOTHING
        };
        let page = self.url.via.unwrap_or_default();
        let of_page = match self.shared.via {
            Via::None => (0, 0),
            Via::Same => (usize::MAX, usize::MAX),
            Via::New(shared) => shared,
        };
        let via = match (&record.via, self.shared.via) {
            (Via::None, _) => Via::None,
            (Via::Same, Via::Same) => Via::Same,
            (Via::Same, _) => Via::New(Told::of(page, of_page)),
            (Via::New(text), _) => Via::New(Told::through(text, page, of_page)),
        };
        let target = Told::through(&record.target, self.url.target, self.shared.target);
        let told = ToldTexts { target, via };
        put(0, &self.other, &url, told, out);
        told.worth(self.other_via)
    }
}

/// Bytes of texts that are shared with the first, and all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worth {
    pub(super) shared: usize,
    pub(super) all: usize,
}

impl Worth {
    pub(super) fn add(&mut self, other: Self) {
        self.shared += other.shared;
        self.all += other.all;
    }

    /// Whether half of the texts are shared, or more.
    pub(super) fn is_half(self) -> bool {
        2 * self.shared >= self.all
    }
}

/// Texts as they are written behind a first.
#[derive(Clone, Copy, Debug)]
struct ToldTexts<'a> {
    target: Told<'a>,
    via: Via<Told<'a>>,
}

/// A text: so many bytes at the front and at the back of another, and what is between them.
#[derive(Clone, Copy, Debug)]
struct Told<'a> {
    front: usize,
    back: usize,
    new: [&'a [u8]; 3],
}

impl ToldTexts<'_> {
    fn bits(&self) -> u8 {
        match self.via {
            Via::None => 0,
            Via::Same => VIA_SAME,
            Via::New(_) => VIA_NEW,
        }
    }

    /// If the URL of the first's page has so many bytes.
    fn worth(&self, of_via: usize) -> Worth {
        let (shared, all) = match &self.via {
            Via::None => (0, 0),
            Via::Same => (of_via, of_via),
            Via::New(via) => (via.front + via.back, via.front + via.back + via.new_bytes()),
        };
        let of_target = self.target.front + self.target.back;
        Worth { shared: shared + of_target, all: all + of_target + self.target.new_bytes() }
    }
}

impl<'a> Told<'a> {
    /// A text that shares so much with another one.
    fn of(text: &'a [u8], (front, back): (usize, usize)) -> Self {
        Self { front, back, new: [b"", &text[front..text.len() - back], b""] }
    }

    /// A text that was told against one which shares so much with another one.
    fn through<'b>(text: &Text<'b>, lead: &'b [u8], (front, back): (usize, usize)) -> Self
    where
        'b: 'a,
    {
        let (front, back) = (text.front.min(front), text.back.min(back));
        let behind = &lead[lead.len() - text.back..lead.len() - back];
        Self { front, back, new: [&lead[front..text.front], text.middle, behind] }
    }

    fn new_bytes(&self) -> usize {
        self.new.iter().map(|piece| piece.len()).sum()
    }

    /// Whether its lengths don't fit into a byte each.
    fn is_wide(&self) -> bool {
        self.front | self.back | self.new_bytes() > usize::from(u8::MAX)
    }

    #[inline(always)]
    fn put_lengths(&self, is_wide: bool, head: &mut Head) {
        let lengths = [self.front, self.back, self.new_bytes()];
        match is_wide {
            true => lengths.into_iter().for_each(|length| head.put_varint(length as u64)),
            false => head.put_all(lengths.map(|length| length as u8)),
        }
    }

    #[inline(always)]
    fn put_new(&self, out: &mut Vec<u8>) {
        let [before, new, behind] = self.new;
        if !before.is_empty() {
            out.extend_from_slice(before);
        }
        out.extend_from_slice(new);
        if !behind.is_empty() {
            out.extend_from_slice(behind);
        }
    }
}

/// Appends a URL that is told against `first`, its texts so.
fn put(bits: u8, first: &Written<'_>, url: &Written<'_>, texts: ToldTexts<'_>, out: &mut Vec<u8>) {
    let arrival = zigzag(url.arrival.wrapping_sub(first.arrival));
    let is_same = url.quality == first.quality;
    let quality = if is_same { 0 } else { url.quality.millionths() };
    let bits = bits | texts.bits() | bits_of(first, url);
    let via = if let Via::New(via) = &texts.via { Some(via) } else { None };
    let is_wide = texts.target.is_wide() || via.is_some_and(Told::is_wide);
    let mut head = Head::new();
    let sizes = size_of_word(arrival) | size_of_word(quality) << QUALITY_SHIFT;
    head.put_all([bits, sizes | if is_wide { WIDE } else { 0 }]);
    texts.target.put_lengths(is_wide, &mut head);
    if let Some(via) = via {
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
    let prior = match url.errand {
        Errand::Page => None,
        Errand::Robots(of, redirects) => Some((of.0, redirects)),
        Errand::Hop(chain) => Some((chain, HOP)),
    };
    if let Some((number, redirects)) = prior {
        head.put_varint(u64::from(number));
        head.put_all([redirects]);
    }
    out.extend_from_slice(head.bytes());
    texts.target.put_new(out);
    if let Some(via) = via {
        via.put_new(out);
    }
}

fn bits_of(first: &Written<'_>, url: &Written<'_>) -> u8 {
    let when = |is: bool, bit: u8| if is { bit } else { 0 };
    when(url.is_prior(), PRIOR)
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

/// Small numbers of either sign as small numbers without.
fn zigzag(difference: u64) -> u64 {
    let sign = if difference >> 63 == 1 { u64::MAX } else { 0 };
    difference << 1 ^ sign
}

#[cfg(test)]
mod tests;
