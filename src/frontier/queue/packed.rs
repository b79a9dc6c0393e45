//! URLs as bytes in chains: put in, looked at, and taken off the front.
//!
//! Laws: a chain is a row of runs ([`super::super::runs`]); the first of a run may be there, gone,
//! for those behind it only. Cost: no more blocks are read than hold what is wanted, since they lie
//! anywhere in memory.

use super::super::items::{Glance, Maker, Written};
use super::super::runs::{FIRST, GONE, NOTHING, Record, Run, Skim};
use super::super::unpacked::Unpacked;
use super::Item;
use super::blocks::{Blocks, Chain, Cursor};
use crate::codec::{Short, Take};
use crate::quality::Quality;
use std::ops::Range;

/// Bytes in which the first URL of a run most often ends, and the one behind it.
const ONE_BYTES: usize = 96;
const TWO_BYTES: usize = 144;
/// The same of one behind a first that is gone. Another block would have to be waited for, and most
/// often isn't needed.
const NEXT_BYTES: usize = 112;
pub(super) const PUT_HERE: &str = "it was put in here";

/// All URLs of a chain.
pub(super) fn items_of(blocks: &Blocks, chain: &Chain) -> Vec<Item> {
    let (mut text, mut urls) = (Vec::with_capacity(chain.bytes()), Unpacked::default());
    unpack(blocks, chain, &mut text, &mut urls);
    items_in(urls.iter())
}

/// The same, without memory of their own, to be put away after use.
pub(super) fn urls_of(blocks: &mut Blocks, chain: &Chain) -> Unpacked {
    let (mut text, mut urls) = (blocks.text(), blocks.unpacked());
    unpack(blocks, chain, &mut text, &mut urls);
    blocks.put_text_away(text);
    urls
}

fn unpack(blocks: &Blocks, chain: &Chain, text: &mut Vec<u8>, urls: &mut Unpacked) {
    blocks.read(chain, usize::MAX, text);
    let mut take = Take::new(text);
    while !take.is_empty() {
        urls.take(&mut take).expect(PUT_HERE);
    }
}

fn items_in<'a>(urls: impl Iterator<Item = Written<'a>>) -> Vec<Item> {
    let mut maker = Maker::default();
    urls.map(|url| maker.make(&url)).collect()
}

/// What is done with the first URL of a run, for which `text` is room.
pub(super) fn with_first<T>(
    blocks: &Blocks,
    mut from: Cursor,
    text: &mut Vec<u8>,
    what: impl FnOnce(Written<'_>) -> T,
) -> T {
    // Most often it lies in one block.
    if let Ok(first) = Record::take(&mut Take::new(blocks.piece(from))) {
        return what(first.whole());
    }
    blocks.read_on(&mut from, ONE_BYTES, text);
    loop {
        if let Ok(first) = Record::take(&mut Take::new(text)) {
            return what(first.whole());
        }
        assert!(!from.is_over(), "{PUT_HERE}");
        blocks.read_on(&mut from, text.len().max(1), text);
    }
}

/// Appends URLs, of which the first begins a run.
pub(super) fn put_run<'a>(
    blocks: &mut Blocks,
    chain: &mut Chain,
    urls: impl Iterator<Item = Written<'a>>,
) {
    let mut count = 0;
    let urls = urls.inspect(|_| count += 1);
    let mut text = blocks.text();
    write_run(urls, &mut text);
    blocks.push_all(chain, &text, count);
    blocks.put_text_away(text);
}

/// Writes URLs, of which the first begins a run.
pub(super) fn write_run<'a>(urls: impl Iterator<Item = Written<'a>>, out: &mut Vec<u8>) {
    let mut run = Run::default();
    urls.for_each(|url| {
        run.put(url, out);
    });
}

/// Takes the first URLs off a chain, so many at most.
pub(super) fn take(blocks: &mut Blocks, chain: &mut Chain, most: usize) -> Vec<Item> {
    let urls = take_front(blocks, chain, |urls, _| urls >= most);
    let items = items_in(urls.iter());
    blocks.put_unpacked_away(urls);
    items
}

/// Takes URLs off the front of a chain, until `enough` is true of their number and bytes.
pub(super) fn take_front(
    blocks: &mut Blocks,
    chain: &mut Chain,
    enough: impl Fn(usize, usize) -> bool,
) -> Unpacked {
    let (mut text, mut urls) = (blocks.text(), blocks.unpacked());
    let mut cursor = chain.cursor();
    blocks.read_on(&mut cursor, TWO_BYTES, &mut text);
    while urls.len() < chain.urls() && !enough(urls.len(), urls.used()) {
        while urls.take(&mut Take::new(&text[urls.used()..])).is_err() {
            assert!(!cursor.is_over(), "{PUT_HERE}");
            blocks.read_on(&mut cursor, text.len().max(1), &mut text);
        }
    }
    let gone = Gone { urls: urls.len(), bytes: urls.used(), first_at: urls.first_at() };
    drop_gone(blocks, chain, cursor, &mut text, gone);
    blocks.put_text_away(text);
    urls
}

/// Takes the first URL off a chain; if asked to, glances at the one behind it on the way.
pub(super) fn take_one(
    blocks: &mut Blocks,
    chain: &mut Chain,
    glances: bool,
) -> Option<(Item, Option<Glance>)> {
    let (mut text, mut cursor) = (blocks.text(), chain.cursor());
    blocks.read_on(&mut cursor, if glances { TWO_BYTES } else { NEXT_BYTES }, &mut text);
    let taken = read_until(blocks, &mut cursor, &mut text, one_of);
    assert!(taken.is_some() || chain.is_empty(), "{PUT_HERE}");
    let taken = taken.map(|(item, of_first, gone)| {
        let glance = |text: &[u8]| Skim::behind(of_first).glance(&text[gone.bytes..]);
        let wants = glances && chain.urls() > 1;
        let next = wants.then(|| read_until(blocks, &mut cursor, &mut text, glance)).flatten();
        drop_gone(blocks, chain, cursor, &mut text, gone);
        (item, next)
    });
    blocks.put_text_away(text);
    taken
}

/// The first URL in these bytes, and what the first of its run is worth.
fn one_of(text: &[u8]) -> Result<(Item, Quality, Gone), Short> {
    let mut take = Take::new(text);
    let record = Record::take(&mut take)?;
    let first_at = 0..text.len() - take.rest().len();
    let of_first = record.glance(NOTHING.quality).quality;
    let item = if record.is_gone {
        Item::taken(&Record::take(&mut take)?, &record.whole())?
    } else {
        Item::taken(&record, &NOTHING)?
    };
    let bytes = text.len() - take.rest().len();
    Ok((item, of_first, Gone { urls: 1, bytes, first_at }))
}

/// URLs at the front of a chain that were taken: where the first of their last run was.
struct Gone {
    urls: usize,
    bytes: usize,
    first_at: Range<usize>,
}

/// Takes URLs off a chain, of which `text` is what was read up to `cursor`; what those that are
/// left need stays.
fn drop_gone(
    blocks: &mut Blocks,
    chain: &mut Chain,
    mut cursor: Cursor,
    text: &mut Vec<u8>,
    gone: Gone,
) {
    if text.len() == gone.bytes {
        blocks.read_on(&mut cursor, 1, text);
    }
    let needs_first = text.get(gone.bytes).is_some_and(|bits| bits & FIRST == 0);
    let urls = u32::try_from(gone.urls).expect("a chain counts so");
    if needs_first {
        let first = &mut text[gone.first_at];
        first[0] |= GONE;
        blocks.replace_front(chain, gone.bytes, urls, first);
    } else {
        blocks.drop_front(chain, gone.bytes, urls);
    }
}

/// A glance at the first URL of a chain.
pub(super) fn first(blocks: &Blocks, chain: &Chain) -> Option<Glance> {
    let glance = |text: &[u8]| Skim::default().pass(&mut Take::new(text));
    read_until(blocks, &mut chain.cursor(), &mut Vec::new(), glance)
}

/// What `look` finds in the bytes of a chain from a place on, of which no more are read into `text`
/// than it needs: blocks lie anywhere in memory. `None`: it is not there.
fn read_until<T>(
    blocks: &Blocks,
    cursor: &mut Cursor,
    text: &mut Vec<u8>,
    look: impl Fn(&[u8]) -> Result<T, Short>,
) -> Option<T> {
    loop {
        if let Ok(found) = look(text) {
            return Some(found);
        }
        if cursor.is_over() {
            return None;
        }
        blocks.read_on(cursor, text.len().max(1), text);
    }
}
