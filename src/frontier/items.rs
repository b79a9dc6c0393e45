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
use super::queue::{Errand, Item};
use crate::codec::{Put, Short, Take};
use crate::quality::Quality;
use crate::url::URL_BYTES_CAP;
use std::rc::Rc;

/// A run of URLs: what the last one was like.
#[derive(Debug, Default)]
pub(super) struct Run {
    arrival: u64,
    quality: Quality,
    depth: u16,
    found_as: u8,
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

impl Run {
    /// Appends a URL.
    pub(super) fn put(&mut self, item: &Item, out: &mut Vec<u8>) {
        self.put_with(item, 0, out);
    }

    /// Appends a URL as a run of its own: what stands before it may be anything.
    pub(super) fn put_anew(item: &Item, out: &mut Vec<u8>) {
        Self::default().put_with(item, ANEW, out);
    }

    fn put_with(&mut self, item: &Item, anew: u8, out: &mut Vec<u8>) {
        let bits = self.bits(item) | anew;
        out.put_u8(bits);
        out.put_str(&item.target);
        out.put_varint(zigzag(item.arrival.wrapping_sub(self.arrival)));
        if let Errand::Robots(of, redirects) = item.errand {
            out.put_varint(u64::from(of.0));
            out.put_u8(redirects);
        }
        if bits & VIA_NEW != 0 {
            out.put_str(item.via.as_deref().expect("it has one that is new"));
        }
        if bits & TRIED != 0 {
            out.extend_from_slice(&[item.hops, item.tries]);
        }
        if bits & QUALITY_SAME == 0 {
            out.put_varint(item.quality.millionths());
        }
        if bits & HOW_SAME == 0 {
            out.put_varint(u64::from(item.depth));
            out.put_u8(item.found_as);
        }
        self.follow(item);
    }

    /// Takes the next URL, which is one of `origin`.
    pub(super) fn take(&mut self, origin: &str, take: &mut Take<'_>) -> Result<Item, Short> {
        let bits = take.u8()?;
        if bits & !KNOWN != 0 || bits & VIA_NEW != 0 && bits & VIA_SAME != 0 {
            return Err(Short);
        }
        if bits & ANEW != 0 {
            *self = Self::default();
        }
        let target = target(take.str()?, origin)?;
        let arrival = self.arrival.wrapping_add(unzigzag(take.varint()?));
        let errand = match bits & ROBOTS {
            0 => Errand::Page,
            _ => Errand::Robots(ServerId(take.number()?), take.u8()?),
        };
        let via = match bits & (VIA_NEW | VIA_SAME) {
            0 => None,
            VIA_NEW => Some(Rc::from(take.str()?)),
            _ => Some(self.via.clone().ok_or(Short)?),
        };
        let (hops, tries) = if bits & TRIED == 0 { (0, 0) } else { (take.u8()?, take.u8()?) };
        let quality = match bits & QUALITY_SAME {
            0 => quality(take.varint()?)?,
            _ => self.quality,
        };
        let (depth, found_as) = match bits & HOW_SAME {
            0 => (take.number()?, take.u8()?),
            _ => (self.depth, self.found_as),
        };
        let item = Item { target, quality, arrival, depth, hops, tries, errand, found_as, via };
        self.follow(&item);
        Ok(item)
    }

    fn bits(&self, item: &Item) -> u8 {
        let via = match (&item.via, &self.via) {
            (None, _) => 0,
            (Some(via), Some(before)) if Rc::ptr_eq(via, before) || via == before => VIA_SAME,
            (Some(_), _) => VIA_NEW,
        };
        let when = |is: bool, bit: u8| if is { bit } else { 0 };
        via | when(item.is_prior(), ROBOTS)
            | when(item.hops > 0 || item.tries > 0, TRIED)
            | when(item.quality == self.quality, QUALITY_SAME)
            | when((item.depth, item.found_as) == (self.depth, self.found_as), HOW_SAME)
    }

    fn follow(&mut self, item: &Item) {
        (self.arrival, self.quality) = (item.arrival, item.quality);
        (self.depth, self.found_as) = (item.depth, item.found_as);
        if item.via.is_some() {
            self.via.clone_from(&item.via);
        }
    }
}

/// What decides where a URL goes, without the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) is_prior: bool,
    pub(super) quality: Quality,
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
fn target(target: &str, origin: &str) -> Result<Box<str>, Short> {
    let fits = target.starts_with('/')
        && origin.len() + target.len() <= URL_BYTES_CAP
        && target.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(target.into()) } else { Err(Short) }
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
        while !take.is_empty() {
            items.push(run.take("http://a.test", &mut take)?);
        }
        Ok(items)
    }

    fn written(items: &[Item]) -> Vec<u8> {
        let (mut run, mut out) = (Run::default(), Vec::new());
        items.iter().for_each(|item| run.put(item, &mut out));
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
                0 => run.put(item, &mut out),
                _ => {
                    Run::put_anew(item, &mut out);
                    run = Run::default();
                    run.follow(item);
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
            Run::put_anew(&item, &mut out);
            let mut take = Take::new(&out);
            let expected = Glance { is_prior: item.is_prior(), quality: item.quality };
            assert_eq!(glance(&mut take), Ok(expected));
            assert!(take.is_empty());
            let cut = random.below(out.len() as u64) as usize;
            assert_eq!(glance(&mut Take::new(&out[..cut])), Err(Short));
        }
        let mut out = Vec::new();
        Run::default().put(&random.item(&pages), &mut out);
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
