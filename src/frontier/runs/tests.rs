//! Runs of URLs: what was put is taken again, whatever is passed by, gone, or damaged.

use super::super::ServerId;
use super::super::items::{Glance, Maker};
use super::super::look::{Bounds, Look};
use super::super::loose::{Loose, Row};
use super::super::queue::Item;
use super::super::unpacked::{Raw, Unpacked};
use super::*;
use crate::codec::{Short, Take};
use crate::url::URL_BYTES_CAP;
use std::rc::Rc;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
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

/// Pages that URLs are found on.
fn pages() -> Vec<Rc<str>> {
    ["http://a.test/", "http://b.test/x"].map(Rc::from).to_vec()
}

const BOUNDS: Bounds = Bounds {
    origin_bytes: "http://a.test".len(),
    arrivals: u64::MAX,
    servers: usize::MAX,
    texts: usize::MAX,
};

fn read(bytes: &[u8]) -> Result<Vec<Item>, Short> {
    let mut look = Look::new(bytes, BOUNDS);
    while !look.is_over() {
        look.admit()?;
    }
    Ok(items_of(&unpacked(bytes)?))
}

fn unpacked(bytes: &[u8]) -> Result<Unpacked, Short> {
    let (mut take, mut urls) = (Take::new(bytes), Unpacked::default());
    while !take.is_empty() {
        urls.take(&mut take)?;
    }
    Ok(urls)
}

fn items_of(urls: &Unpacked) -> Vec<Item> {
    let mut maker = Maker::default();
    urls.iter().map(|url| maker.make(&url)).collect()
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
    let pages = pages();
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
    let pages = pages();
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
    let pages = pages();
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
    let alone = Look::new(&out[behind..], BOUNDS).pass();
    assert_eq!(alone, Err(Short));
}

#[test]
fn runs_come_back_field_by_field() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let pages = pages();
    for _ in 0..300 {
        let items: Vec<Item> = (0..random.below(30)).map(|_| random.item(&pages)).collect();
        assert_eq!(read(&written(&items)), Ok(items));
    }
}

/// Law: what is passed by is no hindrance to what is taken after it, with the first of its run.
#[test]
fn urls_of_a_run_can_be_passed_by() {
    let mut random = Random(11);
    let pages = pages();
    let mut kinds = [0; 2];
    for _ in 0..600 {
        let items: Vec<Item> = (0..1 + random.below(30)).map(|_| random.item(&pages)).collect();
        let bytes = written(&items);
        let (mut look, mut skim) = (Look::new(&bytes, BOUNDS), Skim::default());
        let mut skimmed = Take::new(&bytes);
        let from = random.below(items.len() as u64) as usize;
        let mut skipping = look.clone();
        for item in &items[..from] {
            let glance = item.written().glance();
            assert_eq!(skim.glance(skimmed.rest()), Ok(glance));
            let cut = random.below(skimmed.rest().len() as u64) as usize;
            assert!([Ok(glance), Err(Short)].contains(&skim.glance(&skimmed.rest()[..cut])));
            assert_eq!((look.pass(), skim.pass(&mut skimmed)), (Ok(glance), Ok(glance)));
            assert_eq!(look.used(), bytes.len() - skimmed.rest().len());
            assert_eq!(skipping.skip(), Ok(()));
            assert_eq!((skipping.used(), skipping.first_at()), (look.used(), look.first_at()));
        }
        let (mut urls, mut seen) = (Unpacked::default(), look.clone());
        let (mut loose, mut added, mut behind) = (Loose::default(), look.clone(), None);
        let begins_run = bytes[look.used()] & FIRST != 0;
        if !begins_run {
            assert_eq!(urls.lead(&bytes[look.first_at()]), Ok(()));
            let first = look.first().expect("others lean on it");
            behind = Some(loose.lead(&bytes[look.first_at()], first));
        }
        for item in &items[from..] {
            let glance = item.written().glance();
            assert_eq!((look.admit_into(&mut urls), seen.admit()), (Ok(glance), Ok(glance)));
            assert_eq!(added.admit_loose(&mut loose, &mut behind), Ok(()));
        }
        assert!(look.is_over() && seen.is_over() && added.is_over());
        assert_eq!(items_of(&urls), items[from..]);
        let mut out = Vec::new();
        loose.write(loose.rows(), &mut out);
        assert_eq!(read(&out).as_deref(), Ok(&items[from..]));
        kinds[usize::from(begins_run)] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 100), "{kinds:?}");
}

/// Law: the first URL of a run, and the one behind it when that is gone, are what all would be.
#[test]
fn one_url_is_taken_as_many_are() {
    let mut random = Random(17);
    let pages = pages();
    let mut behind = 0;
    for _ in 0..2_000 {
        let items = [random.item(&pages), random.item(&pages)];
        let bytes = written(&items);
        let mut take = Take::new(&bytes);
        let first = Record::take(&mut take).expect("just written");
        assert_eq!(Item::taken(&first, &NOTHING), Ok(items[0].clone()));
        assert_eq!(first.whole(), items[0].written());
        let next = Record::take(&mut take).expect("just written");
        let against = if next.is_first { NOTHING } else { first.whole() };
        assert_eq!(Item::taken(&next, &against), Ok(items[1].clone()));
        behind += u32::from(!next.is_first);
    }
    assert!((300..1_900).contains(&behind), "{behind}");
}

/// Law: the short way to read a record is as good as the long one, whatever is written there, and
/// most records go by it.
#[test]
fn plain_records_are_read_as_any() {
    let mut random = Random(31);
    let pages = pages();
    let (mut kinds, mut cut) = ([0; 3], 0);
    for round in 0..20_000 {
        let items: Vec<Item> = (0..3).map(|_| random.item(&pages)).collect();
        let mut bytes = written(&items);
        for _ in 0..round % 3 {
            let at = random.below(bytes.len().min(40) as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        if round % 4 == 0 {
            // As the last one of a text, or torn.
            let mut take = Take::new(&bytes);
            let used = Record::any(&mut take).map_or(0, |_| bytes.len() - take.rest().len());
            bytes.drain(..used);
            bytes.truncate(bytes.len().min(random.below(60) as usize));
            cut += usize::from(bytes.len() < 32 && Record::plain(&bytes).is_some());
        }
        let mut rest = Take::new(&bytes);
        let any = Record::any(&mut rest);
        let plain = Record::plain(&bytes);
        kinds[if plain.is_some() { 2 } else { usize::from(any.is_ok()) }] += 1;
        if let Some((plain, used)) = plain {
            assert_eq!(format!("{:?}", Ok::<_, Short>(plain)), format!("{any:?}"));
            assert_eq!(used, bytes.len() - rest.rest().len());
        }
        let mut taken = Take::new(&bytes);
        assert_eq!(format!("{:?}", Record::take(&mut taken)), format!("{any:?}"));
        assert!(any.is_err() || taken.rest() == rest.rest());
    }
    assert!(kinds.iter().all(|count| *count > 1_000) && cut > 100, "{kinds:?}, {cut} short");
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

/// Law: loose URLs come out as they were, in their order, whatever they were told against before,
/// some of them as well as all; so they do a second time.
#[test]
fn loose_urls_change_places() {
    let mut random = Random(41);
    let pages = pages();
    let (mut loose, mut kinds, mut anew) = (Loose::default(), [0; 3], 0);
    for _ in 0..3_000 {
        loose.clear();
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let mut some: Vec<Item> =
                (0..1 + random.below(20)).map(|_| random.item(&pages)).collect();
            some.iter_mut().for_each(|item| item.arrival = random.next());
            let bytes = written(&some);
            // The first may be gone, as that of a head or of a chunk that is partly used up.
            let second = Look::new(&bytes, BOUNDS).pass().map(|_| ()).and_then(|()| {
                let mut take = Take::new(&bytes);
                Record::take(&mut take).map(|_| bytes.len() - take.rest().len())
            });
            let behind = second.expect("just written");
            let leans = bytes.get(behind).is_some_and(|bits| bits & FIRST == 0);
            if leans && random.below(2) == 0 {
                let (first, bytes) = bytes.split_at(behind);
                loose.add(&Raw { first: Some(first), bytes, count: some.len() - 1 });
                items.extend_from_slice(&some[1..]);
                kinds[0] += 1;
            } else {
                loose.add(&Raw { first: None, bytes: &bytes, count: some.len() });
                items.extend(some);
            }
        }
        let new = random.item(&pages);
        loose.add_new(&new.written());
        items.push(new);
        items.sort_by_key(|item| item.written().standing());
        loose.sort();
        let split = random.below(items.len() as u64 + 1) as usize;
        let mut again = Loose::default();
        for (rows, items) in [(0..split, &items[..split]), (split..items.len(), &items[split..])] {
            let mut out = Vec::new();
            loose.write(&loose.rows()[rows.clone()], &mut out);
            assert_eq!(read(&out).as_deref(), Ok(items));
            again.add(&Raw { first: None, bytes: &out, count: items.len() });
            anew += u32::from(is_written_anew(&loose, &loose.rows()[rows], items));
        }
        again.sort();
        let mut out = Vec::new();
        again.write(again.rows(), &mut out);
        assert_eq!(read(&out), Ok(items));
        kinds[1 + usize::from(loose.is_worth_it())] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 300), "{kinds:?}");
    assert!((1_000..5_000).contains(&anew), "{anew}");
}

/// Whether loose URLs have enough in common to be told behind one of them; then they come out as
/// they were, and else nothing was written.
fn is_written_anew(loose: &Loose, rows: &[Row], items: &[Item]) -> bool {
    let (mut urls, mut out) = (Unpacked::default(), Vec::new());
    let is_told = loose.write_anew(rows, &mut urls, &mut out);
    let expected = if is_told { items } else { &[] };
    assert_eq!(read(&out).as_deref(), Ok(expected));
    is_told
}

/// Law: a URL that goes before others comes out before them, told behind the first of these, or on
/// its own if they have little in common.
#[test]
fn a_url_goes_before_others() {
    let mut random = Random(43);
    let pages = pages();
    let mut firsts = [0; 3];
    for _ in 0..3_000 {
        let mut items: Vec<Item> = vec![random.item(&pages)];
        let mut bytes = written(&items);
        for _ in 0..1 + random.below(6) {
            let (item, mut out) = (random.item(&pages), Vec::new());
            put_before(&bytes, &item.written(), &mut out);
            items.insert(0, item);
            bytes = out;
            assert_eq!(read(&bytes).as_ref(), Ok(&items));
        }
        let mut take = Take::new(&bytes);
        let all = std::iter::from_fn(|| Record::take(&mut take).ok());
        firsts[all.filter(|record| record.is_first).count().min(3) - 1] += 1;
    }
    assert!(firsts.iter().all(|count| *count > 100), "{firsts:?}");
}

/// What a disk may hold in place of what was written. Law: what passes is what a look at the texts
/// as they come out would let pass; one that is gone is looked at, too.
#[test]
fn senseless_bytes_are_told() {
    let mut random = Random(99);
    let pages = ["http://a.test/", "http://a.test/stra\u{df}e"].map(Rc::from);
    let mut told = [0; 3];
    for _ in 0..40_000 {
        let items: Vec<Item> = (0..5).map(|_| random.item(&pages)).collect();
        let mut bytes = written(&items);
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        if random.below(3) == 0 {
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        }
        let (seen, naive) = (read(&bytes).is_ok(), is_right(&bytes));
        assert_eq!(are_made_loose(&bytes), seen, "{bytes:?}");
        skip_as_pass(&bytes);
        let is_stricter = !seen && naive && has_gone(&bytes);
        assert!(seen == naive || is_stricter, "{seen} {bytes:?}");
        told[if is_stricter { 2 } else { usize::from(seen) }] += 1;
    }
    assert!(told[0] > 10_000 && told[1] > 5_000, "{told:?}");
    let long = format!("/{}", "x".repeat(URL_BYTES_CAP));
    for target in ["", "x", "/a b", "/a\r\nHost: b", "/\u{e4}", &long] {
        let item = Item { target: target.into(), ..random.item(&[]) };
        assert_eq!(read(&written(&[item])), Err(Short), "{target:?} may not be asked for");
    }
}

/// Whether all URLs in these bytes are let pass on the way to those that are loose.
fn are_made_loose(bytes: &[u8]) -> bool {
    let (mut look, mut loose, mut behind) = (Look::new(bytes, BOUNDS), Loose::default(), None);
    while !look.is_over() {
        if look.admit_loose(&mut loose, &mut behind).is_err() {
            return false;
        }
    }
    true
}

/// Skips what is in these bytes, and holds that to passing it by.
fn skip_as_pass(bytes: &[u8]) {
    let (mut skipping, mut passing) = (Look::new(bytes, BOUNDS), Look::new(bytes, BOUNDS));
    while !skipping.is_over() && passing.pass().is_ok() {
        assert_eq!((skipping.skip(), skipping.used()), (Ok(()), passing.used()));
    }
}

/// Whether all URLs in these bytes are as they must be, by their texts as they come out.
fn is_right(bytes: &[u8]) -> bool {
    let Ok(urls) = unpacked(bytes) else { return false };
    urls.iter().all(|url| {
        url.target.starts_with(b"/")
            && url.target.iter().all(u8::is_ascii_graphic)
            && BOUNDS.origin_bytes + url.target.len() <= URL_BYTES_CAP
            && url.via.is_none_or(|via| str::from_utf8(via).is_ok())
    })
}

fn has_gone(bytes: &[u8]) -> bool {
    let mut take = Take::new(bytes);
    std::iter::from_fn(|| Record::take(&mut take).ok()).any(|record| record.is_gone)
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
    assert_eq!(Look::new(&bytes, BOUNDS).pass(), Err(Short));
}

/// Law: URLs that lean on a long text are let pass only as long as all together are not too much;
/// and they are not put together then, since that would write it for each of them.
#[test]
fn what_would_take_too_much_is_told() {
    let [one, other] = ["a", "b"].map(|host| format!("http://{host}.test/{}", host.repeat(60_000)));
    let item = |number: u64, via: &str| Item {
        target: format!("/{number}").into(),
        arrival: number,
        errand: Errand::Page,
        via: Some(via.into()),
        ..Random(1).item(&[])
    };
    let items: Vec<Item> = (0..60).map(|number| item(number, &one)).collect();
    let bytes = written(&items);
    assert!(bytes.len() < 300_000, "a page is written once a run");
    let look = |texts| {
        let mut look = Look::new(&bytes, Bounds { texts, ..BOUNDS });
        (0..60).try_for_each(|_| look.admit().map(|_| ()))
    };
    assert_eq!((look(4_000_000), look(3_000_000)), (Ok(()), Err(Short)));
    let mut loose = Loose::default();
    let first = written(&[item(100, &other)]);
    loose.add(&Raw { first: None, bytes: &first, count: 1 });
    loose.add(&Raw { first: None, bytes: &bytes, count: 60 });
    assert!(!loose.is_worth_it());
    assert!(loose.bytes() < 2_000_000, "{}", loose.bytes());
}

/// Law: what is told of a server's URLs can't be beyond what it is.
#[test]
fn what_is_out_of_bounds_is_told() {
    let robots = Errand::Robots(ServerId(7), 0);
    let item = |arrival, errand| Item { arrival, errand, ..Random(1).item(&[]) };
    let cases = [
        (item(9, Errand::Page), item(10, Errand::Page), true),
        (item(9, Errand::Page), item(11, Errand::Page), false),
        (item(11, Errand::Page), item(9, Errand::Page), false),
        (item(9, Errand::Page), item(9, robots), true),
        (item(9, Errand::Page), item(9, Errand::Robots(ServerId(8), 0)), false),
    ];
    for (one, other, is_within) in cases {
        let bytes = written(&[one.clone(), other.clone()]);
        let mut look = Look::new(&bytes, Bounds { arrivals: 10, servers: 8, ..BOUNDS });
        let seen = look.admit().and_then(|_| look.admit());
        assert_eq!(seen.is_ok(), is_within, "{one:?} {other:?}");
    }
}
