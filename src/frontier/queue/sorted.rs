//! By quality: URLs come into the packed head of a queue, where they belong.
//!
//! Laws: the head stays in order, and no URL is lost. Cost: a look at the numbers of each URL of
//! the head and a copy of its bytes ([`super::super::loose`]), or of its bytes alone where a URL
//! goes before all others; where they have little in common, or something is hot, each is written
//! anew.

use super::super::items::{Maker, Written};
use super::super::loose::Loose;
use super::super::unpacked::{Raw, Unpacked};
use super::blocks::Blocks;
use super::{INSERT_MAX, Item, UrlQueue};

/// A URL is put in its place in a head that is no longer, if its URLs have much in common.
const LONG_HEAD: usize = if cfg!(test) { 24 } else { 256 };

impl UrlQueue {
    /// Puts a URL in its place in the head. `false`: that is long, or shares little.
    pub(super) fn insert(&mut self, item: &Item, blocks: &mut Blocks) -> bool {
        let (counted, url) = (self.counted(), item.written());
        let cold = self.cold.as_mut().expect("it was asked for");
        let count = cold.head.urls();
        if count == 0 {
            cold.set_head(&[url], counted, blocks);
            return true;
        }
        if count < INSERT_MAX && cold.put_best(url, counted, blocks) {
            return true;
        }
        if count > LONG_HEAD {
            return false;
        }
        let (mut text, mut urls) = (blocks.text(), blocks.loose());
        cold.read_head(blocks, &mut text);
        urls.add(&Raw { first: None, bytes: &text, count });
        urls.add_new(&url);
        let may_be = urls.is_worth_it();
        if may_be {
            urls.sort();
            let kept = count + usize::from(count < 2 * counted.max(2));
            cold.set_head_as_is(&urls, kept, counted, blocks);
            cold.put_rest(&urls, kept, blocks);
        } else if count <= INSERT_MAX {
            cold.put_in(url, counted, blocks);
        }
        blocks.put_loose_away(urls);
        blocks.put_text_away(text);
        may_be || count <= INSERT_MAX
    }

    /// By quality: the tail comes into the head, which is cut when memory is wanted if that makes
    /// it longer than there is room.
    pub(super) fn merge_tail(&mut self, blocks: &mut Blocks) {
        let counted = self.counted();
        let Some(cold) = &mut self.cold else { return };
        let (mut tail, mut head, mut urls) = (blocks.text(), blocks.text(), blocks.loose());
        let count = cold.take_tail_raw(&mut tail, blocks) as usize;
        let tail_urls = Raw { first: None, bytes: &tail, count };
        cold.read_head(blocks, &mut head);
        let head_urls = Raw { first: None, bytes: &head, count: cold.head.urls() };
        // The fewer are told anew.
        let tail_leads = count > head_urls.count;
        let in_turn = if tail_leads { [&tail_urls, &head_urls] } else { [&head_urls, &tail_urls] };
        in_turn.into_iter().for_each(|part| urls.add(part));
        if urls.is_worth_it() {
            urls.sort();
            cold.set_head_as_is(&urls, urls.rows().len(), counted, blocks);
        } else {
            cold.merge(&[head_urls, tail_urls], counted, blocks);
        }
        blocks.put_loose_away(urls);
        blocks.put_text_away(head);
        blocks.put_text_away(tail);
    }

    /// By quality: takes all but the best `kept` URLs out of a packed head that holds more.
    pub(in super::super) fn trim(&mut self, kept: usize, blocks: &mut Blocks) -> Vec<Item> {
        let counted = self.counted();
        let cold = self.cold_or_new();
        let mut items = cold.head_items(blocks);
        let rest = items.split_off(kept.max(1));
        let urls: Vec<Written<'_>> = items.iter().map(Item::written).collect();
        cold.set_head(&urls, counted, blocks);
        rest
    }

    /// By quality: the URLs of the head as they are written, in `text`.
    pub(in super::super) fn read_head<'a>(
        &self,
        text: &'a mut Vec<u8>,
        blocks: &Blocks,
    ) -> Raw<'a> {
        let count = self.cold.as_ref().map_or(0, |cold| {
            cold.read_head(blocks, text);
            cold.head.urls()
        });
        Raw { first: None, bytes: text, count }
    }

    /// By quality: the best so many of these are the head from now on.
    pub(in super::super) fn set_head_as_is(
        &mut self,
        urls: &Loose,
        kept: usize,
        blocks: &mut Blocks,
    ) {
        let counted = self.counted();
        self.cold_or_new().set_head_as_is(urls, kept, counted, blocks);
    }

    /// By quality: URLs of chunks that are needed no more. Returns those that the head has no room
    /// for, best first, and `of_head`, in which they may lie, is the head as it was.
    pub(in super::super) fn own<'a>(
        &mut self,
        mut urls: Vec<Written<'a>>,
        room: usize,
        of_head: &'a mut Unpacked,
        blocks: &mut Blocks,
    ) -> Vec<Written<'a>> {
        let counted = self.counted();
        if self.hot.is_some() {
            self.warm(usize::MAX, blocks);
            let (hot, mut maker) = (self.hot_or_new(), Maker::default());
            urls.iter().for_each(|url| hot.push(maker.make(url)));
            return Vec::new();
        }
        let cold = self.cold_or_new();
        *of_head = cold.head_urls(blocks);
        urls.extend(of_head.iter());
        urls.sort_unstable_by_key(Written::standing);
        let rest = urls.split_off(urls.len().min(room.max(1)));
        cold.set_head(&urls, counted, blocks);
        blocks.put_row_away(urls);
        rest
    }
}
