//! By quality: the head, in order, and what is told of it.
//!
//! Laws: the head is sorted; its bands, its sum and its worst are what is in it. Cost: to put URLs
//! in, a copy of all that it holds, as bytes where that can be ([`super::super::super::loose`]).

use super::super::super::items::{Glance, Written};
use super::super::super::loose::Loose;
use super::super::super::place::{BAND_MAX, Band};
use super::super::super::runs::{self, RUN_URLS, Skim};
use super::super::super::unpacked::Raw;
use super::super::Item;
use super::super::blocks::Blocks;
use super::super::packed::{self, PUT_HERE, put_run};
use super::Cold;
use crate::codec::Take;
use crate::quality::Quality;

/// So few URLs don't keep a first that is gone.
const FEW: usize = 8;

impl Cold {
    /// By quality: makes these, which are sorted, the head, of which so many count.
    pub(in super::super::super) fn set_head(
        &mut self,
        urls: &[Written<'_>],
        counted: usize,
        blocks: &mut Blocks,
    ) {
        blocks.clear(&mut self.head);
        put_run(blocks, &mut self.head, urls.iter().copied());
        self.tell_head(urls.iter().map(Written::glance), counted, blocks);
    }

    /// By quality: whether a URL of that quality comes behind as many of the head as count, as far
    /// as is known without reading that.
    pub(in super::super) fn is_behind_counted(&self, quality: Quality, counted: usize) -> bool {
        counted == 1 && self.knows_best() && quality.millionths() <= self.sum
    }

    /// By quality: whether a URL of that quality comes before all in the head, of which one counts,
    /// as far as is known without reading that.
    pub(in super::super) fn is_best(&self, quality: Quality, counted: usize) -> bool {
        counted == 1 && self.knows_best() && quality.millionths() > self.sum
    }

    /// Whether the sum is the quality of the first URL in the head, a page.
    fn knows_best(&self) -> bool {
        !self.head.is_empty() && self.summed == 1 && self.front_band < BAND_MAX
    }

    /// By quality: puts a URL before all others of a short head, of which one counts. `false`: it
    /// may not belong there.
    pub(in super::super) fn put_best(
        &mut self,
        url: Written<'_>,
        counted: usize,
        blocks: &mut Blocks,
    ) -> bool {
        if !self.is_best(url.quality, counted) {
            return false;
        }
        let (mut text, mut head) = (blocks.text(), blocks.text());
        self.read_head(blocks, &mut head);
        runs::put_before(&head, &url, &mut text);
        let urls = self.head.urls() + 1;
        blocks.clear(&mut self.head);
        blocks.push_all(&mut self.head, &text, urls);
        blocks.put_text_away(head);
        blocks.put_text_away(text);
        self.second = blocks.second(&self.head);
        (self.sum, self.front_band) = (url.quality.millionths(), url.band());
        true
    }

    /// By quality: puts a URL in its place in the head, of which the last goes if they are many.
    pub(in super::super) fn put_in(
        &mut self,
        url: Written<'_>,
        counted: usize,
        blocks: &mut Blocks,
    ) {
        let head = self.head_urls(blocks);
        let mut urls = blocks.row();
        urls.extend(head.iter());
        urls.insert(urls.partition_point(|other| other.standing() < url.standing()), url);
        if urls.len() > 2 * counted.max(2) {
            let last = urls.pop().expect("it has more than one");
            self.put_tail(last, true, blocks);
        }
        self.set_head(&urls, counted, blocks);
        blocks.put_row_away(urls);
        blocks.put_unpacked_away(head);
    }

    /// By quality: makes these the head, in order.
    pub(in super::super) fn merge(
        &mut self,
        urls: &[Raw<'_>],
        counted: usize,
        blocks: &mut Blocks,
    ) {
        let (mut taken, mut row) = (blocks.unpacked(), blocks.row());
        urls.iter().try_for_each(|urls| taken.take_raw(urls)).expect(PUT_HERE);
        row.extend(taken.iter());
        row.sort_unstable_by_key(Written::standing);
        self.set_head(&row, counted, blocks);
        blocks.put_row_away(row);
        blocks.put_unpacked_away(taken);
    }

    /// The same as `set_head`, of the first so many of those that are loose. Few of them, behind a
    /// first that is gone, are written anew: it would take as much room as they do.
    pub(in super::super::super) fn set_head_as_is(
        &mut self,
        urls: &Loose,
        kept: usize,
        counted: usize,
        blocks: &mut Blocks,
    ) {
        let rows = &urls.rows()[..kept];
        let (mut text, mut taken) = (blocks.text(), blocks.unpacked());
        let is_anew = kept < FEW && !urls.has_first(rows);
        if !is_anew {
            urls.write(rows, &mut text);
        }
        if is_anew && !urls.write_anew(rows, &mut taken, &mut text) {
            taken.clear();
            urls.unpack(rows, &mut text, &mut taken);
            let row: Vec<Written<'_>> = taken.iter().collect();
            self.set_head(&row, counted, blocks);
        } else {
            blocks.clear(&mut self.head);
            blocks.push_all(&mut self.head, &text, kept);
            self.tell_head(rows.iter().map(|row| row.glance), counted, blocks);
        }
        blocks.put_unpacked_away(taken);
        blocks.put_text_away(text);
    }

    /// These are the head from now on: keeps what is told of it.
    fn tell_head(
        &mut self,
        glances: impl DoubleEndedIterator<Item = Glance> + Clone,
        counted: usize,
        blocks: &Blocks,
    ) {
        self.second = blocks.second(&self.head);
        let best = glances.clone().take(counted);
        self.sum = best.map(|glance| glance.quality.millionths()).sum();
        self.summed = u32::try_from(counted).unwrap_or(u32::MAX);
        self.front_band = glances.clone().next().map_or(0, Glance::band);
        self.worst = glances.clone().next_back().map_or(Quality::ZERO, Glance::as_worst);
    }

    /// By quality: those behind the first so many go to the tail.
    pub(in super::super::super) fn put_rest(
        &mut self,
        urls: &Loose,
        kept: usize,
        blocks: &mut Blocks,
    ) {
        let rest = &urls.rows()[kept..];
        if rest.is_empty() {
            return;
        }
        let (mut text, mut read) = (blocks.text(), blocks.text());
        let begun = if self.tail.is_empty() { 0 } else { usize::from(self.run_urls) };
        let is_told = begun > 0
            && begun + rest.len() <= RUN_URLS
            && packed::with_first(blocks, self.run, &mut read, |first| {
                urls.write_behind(&first, rest, &mut text)
            });
        if is_told {
            blocks.push_all(&mut self.tail, &text, rest.len());
            self.run_urls = u8::try_from(begun + rest.len()).expect("runs are short");
            let bands = rest.iter().map(|row| row.glance.band());
            self.tail_band = bands.fold(self.tail_band, Band::max);
        } else {
            let mut taken = blocks.unpacked();
            urls.unpack(rest, &mut text, &mut taken);
            taken.iter().for_each(|url| self.put_tail(url, true, blocks));
            blocks.put_unpacked_away(taken);
        }
        blocks.put_text_away(read);
        blocks.put_text_away(text);
    }

    /// By quality: looks at the head anew, of which so many count, if what is told of it is not
    /// right.
    pub(in super::super) fn survey(&mut self, counted: usize, blocks: &Blocks) {
        let (before, counted) = (self.summed, u32::try_from(counted).unwrap_or(u32::MAX));
        self.summed = counted;
        let all_count = before.min(counted) as usize >= self.head.urls();
        if before == 0 || before != counted && !all_count {
            self.look_at_head(counted as usize, blocks);
        }
    }

    fn look_at_head(&mut self, counted: usize, blocks: &Blocks) {
        let mut text = Vec::with_capacity(self.head.bytes());
        blocks.read(&self.head, usize::MAX, &mut text);
        let (mut take, mut skim) = (Take::new(&text), Skim::default());
        (self.sum, self.worst) = (0, Quality::ZERO);
        for place in 0..self.head.urls() {
            let seen = skim.pass(&mut take).expect(PUT_HERE);
            if place == 0 {
                self.front_band = seen.band();
            }
            if place < counted {
                self.sum += seen.quality.millionths();
            }
            self.worst = seen.as_worst();
        }
    }

    /// By quality: the first URL of the head has gone; `next` came behind it.
    pub(super) fn has_gone(&mut self, item: &Item, next: Option<Glance>) {
        match next {
            _ if self.head.urls() < self.summed as usize => self.sum -= item.quality.millionths(),
            Some(next) if self.summed == 1 => self.sum = next.quality.millionths(),
            _ => self.summed = 0,
        }
        match next {
            Some(next) => self.front_band = next.band(),
            None => self.worst = Quality::ZERO,
        }
    }
}
