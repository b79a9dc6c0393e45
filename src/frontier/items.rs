//! URLs that wait, to bytes and back: one spelling for snapshots and for the ends of queues.
//!
//! They are written in runs. What most have in common with the one before (where it was found,
//! how, what it is worth) is told by a bit.
//!
//! ```text
//! URL    bits u8 | target | arrival since the one before, zigzag
//!        ROBOTS: server, redirects | VIA_NEW: via | TRIED: hops, tries
//!        unless QUALITY_SAME: millionths | unless HOW_SAME: depth, letter
//!        ANEW: a run begins here
//! ```
//!
//! Laws: what was put is taken again, field by field, and the URLs of a run that were found on one
//! page share its URL again. Bytes that make no sense are [`Short`], never a panic; what is
//! allocated is no more than the bytes hold. Cost: nine bytes beside target and via, most often.

use super::ServerId;
use super::place::{BAND_MAX, Band, quality_band};
use super::queue::{Errand, Item};
use crate::codec::{Put, Short, Take};
use crate::quality::Quality;
use crate::url::URL_BYTES_CAP;
use std::cmp::Reverse;
use std::rc::Rc;

/// A URL whose texts lie elsewhere: in the bytes it was taken from, or in an [`Item`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written<'a> {
    target: &'a str,
    via: Option<&'a str>,
    pub(super) quality: Quality,
    pub(super) arrival: u64,
    depth: u16,
    hops: u8,
    tries: u8,
    pub(super) errand: Errand,
    found_as: u8,
}

/// Not for a robots.txt, the quality, the arrival.
pub(super) type Standing = (bool, Reverse<Quality>, u64);

/// A run of URLs: what the last one was like.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    arrival: u64,
    quality: Quality,
    depth: u16,
    found_as: u8,
    via: Option<&'a [u8]>,
    /// The same, once it is known to be text.
    via_text: Option<&'a str>,
}

/// A URL whose texts have not been looked at.
#[derive(Clone, Copy, Debug)]
struct Raw<'a> {
    target: &'a [u8],
    has_via: bool,
    quality: Quality,
    arrival: u64,
    depth: u16,
    hops: u8,
    tries: u8,
    errand: Errand,
    found_as: u8,
}

/// Makes URLs that have memory of their own; of those that were found on one page and come one
/// after the other, the URL of that page is shared.
#[derive(Debug, Default)]
pub(super) struct Maker {
    via: Option<Rc<str>>,
}

const ROBOTS: u8 = 1;
const VIA_NEW: u8 = 2;
const VIA_SAME: u8 = 4;
const TRIED: u8 = 8;
const QUALITY_SAME: u8 = 16;
const HOW_SAME: u8 = 32;
const ANEW: u8 = 64;
const KNOWN: u8 = 127;

impl Item {
    /// As it is written.
    pub(super) fn written(&self) -> Written<'_> {
        Written {
            target: &self.target,
            via: self.via.as_deref(),
            quality: self.quality,
            arrival: self.arrival,
            depth: self.depth,
            hops: self.hops,
            tries: self.tries,
            errand: self.errand,
            found_as: self.found_as,
        }
    }
}

impl Written<'_> {
    /// Whether it goes before the pages of its server.
    pub(super) fn is_prior(&self) -> bool {
        matches!(self.errand, Errand::Robots(..))
    }

    /// Its band.
    pub(super) fn band(&self) -> Band {
        Glance { is_prior: self.is_prior(), quality: self.quality }.band()
    }

    /// Bytes that it takes on disk, about.
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
        if url.via.is_some() && self.via.as_deref() != url.via {
            self.via = url.via.map(Rc::from);
        }
        Item {
            target: url.target.into(),
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

impl<'a> Run<'a> {
    /// Appends a URL.
    pub(super) fn put(&mut self, url: Written<'a>, out: &mut Vec<u8>) {
        self.put_with(url, 0, out);
    }

    /// Appends a URL as a run of its own: what stands before it may be anything.
    pub(super) fn put_anew(url: Written<'_>, out: &mut Vec<u8>) {
        Run::default().put_with(url, ANEW, out);
    }

    fn put_with(&mut self, url: Written<'a>, anew: u8, out: &mut Vec<u8>) {
        let bits = self.bits(&url) | anew;
        out.put_u8(bits);
        out.put_str(url.target);
        out.put_varint(zigzag(url.arrival.wrapping_sub(self.arrival)));
        if let Errand::Robots(of, redirects) = url.errand {
            out.put_varint(u64::from(of.0));
            out.put_u8(redirects);
        }
        if bits & VIA_NEW != 0 {
            out.put_str(url.via.expect("it has one that is new"));
        }
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
        self.follow(&url);
    }

    /// Takes the next URL, whose origin is so long.
    pub(super) fn take(
        &mut self,
        origin_bytes: usize,
        take: &mut Take<'a>,
    ) -> Result<Written<'a>, Short> {
        let raw = self.take_raw(take)?;
        let via = if raw.has_via { Some(self.via_text()?) } else { None };
        let Raw { quality, arrival, depth, hops, tries, errand, found_as, .. } = raw;
        let target = target(raw.target, origin_bytes)?;
        Ok(Written { target, via, quality, arrival, depth, hops, tries, errand, found_as })
    }

    /// Passes by the next URL, whose texts are not looked at.
    pub(super) fn pass(&mut self, take: &mut Take<'a>) -> Result<Glance, Short> {
        let raw = self.take_raw(take)?;
        let is_prior = matches!(raw.errand, Errand::Robots(..));
        Ok(Glance { is_prior, quality: raw.quality })
    }

    fn take_raw(&mut self, take: &mut Take<'a>) -> Result<Raw<'a>, Short> {
        let bits = take.u8()?;
        if bits & !KNOWN != 0 || bits & VIA_NEW != 0 && bits & VIA_SAME != 0 {
            return Err(Short);
        }
        if bits & ANEW != 0 {
            *self = Self::default();
        }
        let target = take.bytes()?;
        let arrival = self.arrival.wrapping_add(unzigzag(take.varint()?));
        let errand = match bits & ROBOTS {
            0 => Errand::Page,
            _ => Errand::Robots(ServerId(take.number()?), take.u8()?),
        };
        match bits & (VIA_NEW | VIA_SAME) {
            0 => {}
            VIA_NEW => (self.via, self.via_text) = (Some(take.bytes()?), None),
            _ => drop(self.via.ok_or(Short)?),
        }
        let has_via = bits & (VIA_NEW | VIA_SAME) != 0;
        let (hops, tries) = if bits & TRIED == 0 { (0, 0) } else { (take.u8()?, take.u8()?) };
        let quality = match bits & QUALITY_SAME {
            0 => quality(take.varint()?)?,
            _ => self.quality,
        };
        let (depth, found_as) = match bits & HOW_SAME {
            0 => (take.number()?, take.u8()?),
            _ => (self.depth, self.found_as),
        };
        (self.arrival, self.quality, self.depth, self.found_as) =
            (arrival, quality, depth, found_as);
        Ok(Raw { target, has_via, quality, arrival, depth, hops, tries, errand, found_as })
    }

    fn via_text(&mut self) -> Result<&'a str, Short> {
        if let Some(text) = self.via_text {
            return Ok(text);
        }
        let text = std::str::from_utf8(self.via.ok_or(Short)?).map_err(|_| Short)?;
        self.via_text = Some(text);
        Ok(text)
    }

    fn bits(&self, url: &Written<'_>) -> u8 {
        let via = match (url.via, self.via) {
            (None, _) => 0,
            (Some(via), Some(before)) if is_same(via.as_bytes(), before) => VIA_SAME,
            (Some(_), _) => VIA_NEW,
        };
        let when = |is: bool, bit: u8| if is { bit } else { 0 };
        via | when(url.is_prior(), ROBOTS)
            | when(url.hops > 0 || url.tries > 0, TRIED)
            | when(url.quality == self.quality, QUALITY_SAME)
            | when((url.depth, url.found_as) == (self.depth, self.found_as), HOW_SAME)
    }

    fn follow(&mut self, url: &Written<'a>) {
        (self.arrival, self.quality) = (url.arrival, url.quality);
        (self.depth, self.found_as) = (url.depth, url.found_as);
        if let Some(via) = url.via {
            (self.via, self.via_text) = (Some(via.as_bytes()), Some(via));
        }
    }
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// What decides where a URL goes, without the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) is_prior: bool,
    pub(super) quality: Quality,
}

impl Glance {
    /// The band of the URL.
    pub(super) fn band(self) -> Band {
        if self.is_prior { BAND_MAX } else { quality_band(self.quality) }
    }
}

/// Passes by the next URL, which was put by [`Run::put_anew`].
pub(super) fn glance(take: &mut Take<'_>) -> Result<Glance, Short> {
    let bits = take.u8()?;
    if bits & ANEW == 0 {
        return Err(Short);
    }
    take.bytes()?;
    take.varint()?;
    if bits & ROBOTS != 0 {
        take.varint()?;
        take.u8()?;
    }
    if bits & VIA_NEW != 0 {
        take.bytes()?;
    }
    if bits & TRIED != 0 {
        take.raw(2)?;
    }
    let millionths = if bits & QUALITY_SAME == 0 { take.varint()? } else { 0 };
    if bits & HOW_SAME == 0 {
        take.varint()?;
        take.u8()?;
    }
    let quality = if millionths == 0 { Quality::default() } else { quality(millionths)? };
    Ok(Glance { is_prior: bits & ROBOTS != 0, quality })
}

/// A target as requests may carry it; what else is written there would go out to a server.
fn target(target: &[u8], origin_bytes: usize) -> Result<&str, Short> {
    let fits = target.first() == Some(&b'/')
        && origin_bytes + target.len() <= URL_BYTES_CAP
        && target.iter().all(u8::is_ascii_graphic);
    if fits { std::str::from_utf8(target).map_err(|_| Short) } else { Err(Short) }
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
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }

        fn item(&mut self, pages: &[Rc<str>]) -> Item {
            let wide = [0, 1, 5, 1 << 40, u64::MAX][self.below(5) as usize];
            let errand = match self.below(5) {
                0 => Errand::Robots(ServerId(self.below(1 << 32) as u32), self.below(6) as u8),
                _ => Errand::Page,
            };
            Item {
                target: format!("/{}", self.below(100_000)).into(),
                quality: Quality::from_millionths(self.below(3) * 500_000),
                arrival: wide.wrapping_add(self.below(9)),
                depth: [0, 1, 1, 65_535][self.below(4) as usize],
                hops: (self.below(8) / 6) as u8,
                tries: (self.below(8) / 6) as u8,
                errand,
                found_as: b"LE-"[self.below(3) as usize],
                via: pages.get(self.below(pages.len() as u64 + 1) as usize).cloned(),
            }
        }
    }

    fn read(bytes: &[u8]) -> Result<Vec<Item>, Short> {
        let (mut take, mut run, mut items) = (Take::new(bytes), Run::default(), Vec::new());
        let mut maker = Maker::default();
        while !take.is_empty() {
            items.push(maker.make(&run.take("http://a.test".len(), &mut take)?));
        }
        Ok(items)
    }

    fn written(items: &[Item]) -> Vec<u8> {
        let (mut run, mut out) = (Run::default(), Vec::new());
        items.iter().for_each(|item| run.put(item.written(), &mut out));
        out
    }

    #[test]
    fn runs_of_one_are_read_as_one() {
        let mut random = Random(3);
        let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
        let items: Vec<Item> = (0..300).map(|_| random.item(&pages)).collect();
        let (mut run, mut out) = (Run::default(), Vec::new());
        for item in &items {
            match random.below(2) {
                0 => run.put(item.written(), &mut out),
                _ => {
                    Run::put_anew(item.written(), &mut out);
                    run = Run::default();
                    run.follow(&item.written());
                }
            }
        }
        assert_eq!(read(&out), Ok(items));
    }

    /// Law: a glance sees what a look would, and passes by as much.
    #[test]
    fn a_glance_is_as_good_as_a_look() {
        let mut random = Random(5);
        let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
        for _ in 0..2_000 {
            let (item, mut out) = (random.item(&pages), Vec::new());
            Run::put_anew(item.written(), &mut out);
            let mut take = Take::new(&out);
            let expected = Glance { is_prior: item.is_prior(), quality: item.quality };
            assert_eq!(glance(&mut take), Ok(expected));
            assert!(take.is_empty());
            let cut = random.below(out.len() as u64) as usize;
            assert_eq!(glance(&mut Take::new(&out[..cut])), Err(Short));
        }
        let mut out = Vec::new();
        Run::default().put(random.item(&pages).written(), &mut out);
        assert_eq!(glance(&mut Take::new(&out)), Err(Short), "what depends on others is no such");
    }

    #[test]
    fn runs_come_back_field_by_field() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
        for _ in 0..300 {
            let items: Vec<Item> = (0..random.below(30)).map(|_| random.item(&pages)).collect();
            assert_eq!(read(&written(&items)), Ok(items));
        }
    }

    /// Law: what is passed by is no hindrance to what is taken after it.
    #[test]
    fn urls_of_a_run_can_be_passed_by() {
        let mut random = Random(11);
        let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
        let mut passed = 0;
        for _ in 0..300 {
            let items: Vec<Item> = (0..random.below(30)).map(|_| random.item(&pages)).collect();
            let bytes = written(&items);
            let (mut take, mut run, mut maker) =
                (Take::new(&bytes), Run::default(), Maker::default());
            for item in &items {
                if random.below(2) == 0 {
                    let expected = Glance { is_prior: item.is_prior(), quality: item.quality };
                    assert_eq!(run.pass(&mut take), Ok(expected));
                    passed += 1;
                } else {
                    let url = run.take("http://a.test".len(), &mut take).expect("just written");
                    assert_eq!(maker.make(&url), *item);
                }
            }
            assert!(take.is_empty());
        }
        assert!(passed > 1_000, "{passed}");
    }

    #[test]
    fn one_page_is_written_and_kept_once() {
        let page: Rc<str> = Rc::from("http://a.test/where/they/were/found");
        let mut random = Random(7);
        let of_page = |_| Item { via: Some(page.clone()), ..random.item(&[]) };
        let items: Vec<Item> = (0..40).map(of_page).collect();
        let bytes = written(&items);
        let times = bytes.windows(page.len()).filter(|window| *window == page.as_bytes()).count();
        assert_eq!(times, 1);
        let read = read(&bytes).expect("just written");
        let via = |item: &Item| item.via.clone().expect("all have it");
        assert!(read.iter().all(|item| Rc::ptr_eq(&via(item), &via(&read[0]))));
    }

    /// What a disk may hold in place of what was written.
    #[test]
    fn senseless_bytes_are_told() {
        let mut random = Random(99);
        let pages = [Rc::from("http://a.test/")];
        let mut told = 0;
        for _ in 0..20_000 {
            let items: Vec<Item> = (0..5).map(|_| random.item(&pages)).collect();
            let mut bytes = written(&items);
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            told += u32::from(read(&bytes).is_err());
        }
        assert!(told > 10_000, "{told}");
        let long = format!("/{}", "x".repeat(URL_BYTES_CAP));
        for target in ["", "x", "/a b", "/a\r\nHost: b", "/\u{e4}", &long] {
            let item = Item { target: target.into(), ..random.item(&[]) };
            assert_eq!(read(&written(&[item])), Err(Short), "{target:?} may not be asked for");
        }
    }
}
