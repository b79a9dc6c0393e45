//! Runs of URLs: what was put is taken again, whatever is passed by, gone, or damaged.

use super::super::items::Maker;
use super::super::queue::Item;
use super::super::unpacked::Unpacked;
use super::*;
use crate::url::URL_BYTES_CAP;
use std::rc::Rc;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Some begin alike, some end alike, and some repeat themselves.
    fn target(&mut self) -> String {
        let folder = ["", "/archive/2026/11", "/archive/2026/12/x", "/aaaaaaaaaaaaaaaa"];
        let number = [9, 100, 100_000][self.below(3) as usize];
        let end = ["", ".html", "0.html", "?sort=up&page=2", "aaaaaaaaaaaaaaaaaaaaa"];
        let [folder, end] = [folder[self.below(4) as usize], end[self.below(5) as usize]];
        format!("{folder}/{}{end}", self.below(number))
    }

    fn item(&mut self, pages: &[Rc<str>]) -> Item {
        let wide = [0, 1, 5, 1 << 40, u64::MAX][self.below(5) as usize];
        let errand = match self.below(5) {
            0 => Errand::Robots(ServerId(self.below(1 << 32) as u32), self.below(6) as u8),
            _ => Errand::Page,
        };
        Item {
            target: self.target().into(),
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
    let (mut take, mut urls) = (Take::new(bytes), Unpacked::default());
    while !take.is_empty() {
        urls.admit("http://a.test".len(), &mut take)?;
    }
    let mut maker = Maker::default();
    Ok(urls.iter().map(|url| maker.make(&url)).collect())
}

fn written(items: &[Item]) -> Vec<u8> {
    let (mut run, mut out) = (Run::default(), Vec::new());
    for item in items {
        run.put(item.written(), &mut out);
    }
    out
}

/// Law: a run goes on behind its first, whoever has read that; runs follow each other.
#[test]
fn runs_go_on_and_follow_each_other() {
    let mut random = Random(3);
    let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
    let items: Vec<Item> = (0..300).map(|_| random.item(&pages)).collect();
    let (mut out, mut first, mut urls, mut begun) = (Vec::new(), None, 0, 0);
    for item in &items {
        if random.below(20) == 0 {
            (first, urls) = (None, 0);
        }
        if Run::behind(first, urls).put(item.written(), &mut out) {
            (first, urls, begun) = (Some(item.written()), 0, begun + 1);
        }
        urls += 1;
    }
    assert_eq!(read(&out), Ok(items));
    assert!((40..200).contains(&begun), "{begun}");
}

/// Law: a first one that is gone is not there, but for those behind it.
#[test]
fn what_is_gone_is_not_there() {
    let mut random = Random(13);
    let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
    for _ in 0..300 {
        let items: Vec<Item> = (0..30).map(|_| random.item(&pages)).collect();
        let (mut run, mut out, mut kept) = (Run::default(), Vec::new(), Vec::new());
        let (mut first_at, mut is_gone) = (0, false);
        for (place, item) in items.iter().enumerate() {
            let at = out.len();
            let begins = run.put(item.written(), &mut out);
            if !begins && place > 0 && random.below(8) == 0 && !is_gone {
                out[first_at] |= GONE;
                is_gone = true;
                let gone = kept.iter().rposition(|(at, _)| *at == first_at).expect("it was put");
                kept.remove(gone);
            }
            if begins {
                (first_at, is_gone) = (at, false);
            }
            kept.push((at, item.clone()));
        }
        let kept: Vec<Item> = kept.into_iter().map(|(_, item)| item).collect();
        let (mut take, mut skim) = (Take::new(&out), Skim::default());
        for item in &kept {
            assert_eq!(skim.pass(&mut take), Ok(item.written().glance()));
        }
        assert!(take.is_empty());
        assert_eq!(read(&out), Ok(kept));
    }
}

/// Law: a glance sees what a look would, and passes by as much.
#[test]
fn a_glance_is_as_good_as_a_look() {
    let mut random = Random(5);
    let pages: Vec<Rc<str>> = ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec();
    for _ in 0..2_000 {
        let (item, mut out) = (random.item(&pages), Vec::new());
        Run::default().put(item.written(), &mut out);
        let mut take = Take::new(&out);
        let expected = Glance { is_prior: item.is_prior(), quality: item.quality };
        assert_eq!(Skim::default().pass(&mut take), Ok(expected));
        assert!(take.is_empty());
        let cut = random.below(out.len() as u64) as usize;
        assert_eq!(Skim::default().pass(&mut Take::new(&out[..cut])), Err(Short));
    }
    let (mut out, item) = (Vec::new(), random.item(&pages));
    let next = Item { arrival: item.arrival ^ 1, ..item.clone() };
    let mut run = Run::default();
    run.put(item.written(), &mut out);
    let behind = out.len();
    assert!(!run.put(next.written(), &mut out), "they are alike");
    let alone = Skim::default().pass(&mut Take::new(&out[behind..]));
    assert_eq!(alone, Err(Short), "what depends on others is nothing alone");
    let alone = Unpacked::default().pass(&mut Take::new(&out[behind..]));
    assert_eq!(alone, Err(Short));
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
        let (mut take, mut skimmed) = (Take::new(&bytes), Take::new(&bytes));
        let (mut urls, mut skim, mut kept) = (Unpacked::default(), Skim::default(), Vec::new());
        for item in &items {
            let glance = item.written().glance();
            assert_eq!(skim.pass(&mut skimmed), Ok(glance));
            match random.below(16) {
                0..8 => {
                    assert_eq!(urls.pass(&mut take), Ok(glance));
                    passed += 1;
                }
                8 => {
                    urls.forget();
                    kept.clear();
                    assert_eq!(urls.pass(&mut take), Ok(glance));
                }
                _ => {
                    urls.admit("http://a.test".len(), &mut take).expect("just written");
                    kept.push(item.written());
                }
            }
            assert_eq!(skimmed.rest().len(), take.rest().len());
            assert!(urls.iter().eq(kept.iter().copied()));
        }
        assert!(take.is_empty());
    }
    assert!(passed > 1_000, "{passed}");
}

/// Law: what two texts share is what a naive look finds.
#[test]
fn what_texts_share_is_found() {
    let mut random = Random(21);
    for _ in 0..20_000 {
        let few = 1 + random.below(6);
        let mut text = || -> Vec<u8> {
            (0..random.below(40)).map(|_| b'a' + random.below(few) as u8).collect()
        };
        let (one, other) = (text(), text());
        let (front, back) = shared(&one, &other);
        let pairs = one.iter().zip(&other);
        assert_eq!(front, pairs.take_while(|(one, other)| one == other).count());
        let pairs = one[front..].iter().rev().zip(other[front..].iter().rev());
        assert_eq!(back, pairs.take_while(|(one, other)| one == other).count());
    }
}

#[test]
fn what_is_shared_takes_no_room() {
    let item = |number: u32| Item {
        target: format!("/archive/2026/11/article-{number:012}.html").into(),
        via: Some(format!("http://host{number:010}.test1/the/page/they/were/on").into()),
        ..Random(1).item(&[])
    };
    let items: Vec<Item> = (0..100).map(|number| item(number * 7_919)).collect();
    let bytes = written(&items);
    assert!(bytes.len() < 100 * 33, "{}", bytes.len());
    assert_eq!(read(&bytes), Ok(items));
}

#[test]
fn one_page_is_written_once_a_run_and_kept_once() {
    let page: Rc<str> = Rc::from("http://a.test/where/they/were/found");
    let mut random = Random(7);
    let of_page = |_| Item { via: Some(page.clone()), ..random.item(&[]) };
    let items: Vec<Item> = (0..40).map(of_page).collect();
    let bytes = written(&items);
    let times = bytes.windows(page.len()).filter(|window| *window == page.as_bytes()).count();
    assert_eq!(times, 40_usize.div_ceil(RUN_URLS));
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

/// Law: what was passed by is no way in: a page that is no text is told wherever it was written.
#[test]
fn a_page_of_a_first_that_was_passed_by_is_looked_at() {
    let page: Rc<str> = Rc::from("http://a.test/where/they/were/found");
    let of_page = |_| Item { via: Some(page.clone()), errand: Errand::Page, ..Random(1).item(&[]) };
    let items: Vec<Item> = (0..2).map(of_page).collect();
    let mut bytes = written(&items);
    let is_found = |window: &[u8]| window == b"found";
    let at = bytes.windows(5).position(is_found).expect("it was written");
    bytes[at] = 0xff;
    let (mut take, mut urls) = (Take::new(&bytes), Unpacked::default());
    assert!(urls.pass(&mut take).is_ok());
    assert_eq!(urls.admit("http://a.test".len(), &mut take), Err(Short));
}
