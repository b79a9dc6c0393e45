//! Memory for URLs as bytes: blocks of one size, linked to chains that grow at their end and
//! shrink at their front.
//!
//! A million queues of some hundred bytes that grow by turns leave an allocator with holes; here
//! every block fits every chain, so what is counted is what is resident. Blocks come in slabs and
//! are handed out again; slabs stay until the end.
//!
//! Laws: a chain is a queue of bytes, whatever others do (held to a plain one); a block belongs to
//! one chain or to none. Cost: a block of 128 bytes for each 122, so a chain wastes 61 bytes and a
//! twentieth on the average. Two lines side by side come from memory as one, and most often hold
//! what is wanted of a chain.

use super::super::items::{self, Written};
use super::super::loose::Loose;
use super::super::unpacked::{KEPT_BYTES, Unpacked};

/// Bytes of URLs in a block; in tests, half a block.
const FILL: usize = if cfg!(test) { 58 } else { 122 };
/// Bytes of memory that a block takes.
pub(in super::super) const BLOCK_BYTES: usize = size_of::<Block>();
/// Blocks of a slab: a MiB; in tests, few.
const SLAB: usize = if cfg!(test) { 4 } else { 1 << 13 };

/// Room of each kind that is kept to be used again, as much as is in use at once: what is beyond a
/// KiB costs the allocator a search, in memory that nobody has looked at for long.
const SPARES_MAX: usize = 4;

/// Where a chain ends, or has not begun: blocks are numbered from 1.
const NONE: u32 = 0;

/// All blocks.
#[derive(Debug, Default)]
pub(in super::super) struct Blocks {
    slabs: Vec<Box<[Block]>>,
    /// The first of those that were given back.
    free: u32,
    /// Blocks that were handed out so far.
    known: u32,
    /// Blocks in chains.
    used: usize,
    /// Room to write URLs, to read them, and to put them in order.
    texts: Vec<Vec<u8>>,
    unpacked: Vec<Unpacked>,
    rows: Vec<Vec<Written<'static>>>,
    loose: Vec<Loose>,
}

/// Some bytes of a chain: those from `start` to `end`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), repr(align(128)))]
#[cfg_attr(test, repr(align(64)))]
struct Block {
    next: u32,
    start: u8,
    end: u8,
    bytes: [u8; FILL],
}

impl Block {
    /// It begins with these bytes, which end at `until`, and goes on as before.
    fn put_before(&mut self, until: usize, bytes: &[u8]) {
        let start = until - bytes.len();
        self.bytes[start..until].copy_from_slice(bytes);
        self.start = u8::try_from(start).expect("blocks are short");
    }
}

const EMPTY: Block = Block { next: NONE, start: 0, end: 0, bytes: [0; FILL] };

/// URLs, as bytes, in order.
#[derive(Debug, Default)]
pub(in super::super) struct Chain {
    first: u32,
    last: u32,
    blocks: u32,
    urls: u32,
}

/// A place in a chain, from which it is read on. It is right as long as nothing before it goes.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Cursor {
    block: u32,
    /// Where in the block; what was before it may be gone.
    start: u8,
}

impl Cursor {
    /// The number of the block that it is in; 0 at the end.
    pub(super) fn block(&self) -> u32 {
        self.block
    }

    /// Whether it is at the end.
    pub(in super::super) fn is_over(&self) -> bool {
        self.block == NONE
    }
}

impl Chain {
    /// Its front.
    pub(in super::super) fn cursor(&self) -> Cursor {
        Cursor { block: self.first, start: 0 }
    }

    /// The number of its first block; 0 if it has none.
    pub(in super::super) fn first(&self) -> u32 {
        self.first
    }

    /// URLs in it.
    pub(in super::super) fn urls(&self) -> usize {
        self.urls as usize
    }

    /// Whether it holds none.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.urls == 0
    }

    /// Bytes of memory that it takes.
    pub(in super::super) fn bytes(&self) -> usize {
        self.blocks as usize * BLOCK_BYTES
    }
}

impl Blocks {
    /// Room to write URLs: empty, to be put away after use.
    pub(in super::super) fn text(&mut self) -> Vec<u8> {
        self.texts.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(in super::super) fn put_text_away(&mut self, mut text: Vec<u8>) {
        if self.texts.len() < SPARES_MAX && text.capacity() <= KEPT_BYTES {
            text.clear();
            self.texts.push(text);
        }
    }

    /// Room to read URLs: empty, to be put away after use.
    pub(in super::super) fn unpacked(&mut self) -> Unpacked {
        self.unpacked.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(in super::super) fn put_unpacked_away(&mut self, mut urls: Unpacked) {
        if self.unpacked.len() < SPARES_MAX {
            urls.clear();
            self.unpacked.push(urls);
        }
    }

    /// Room for URLs in a row: empty, to be put away after use.
    pub(in super::super) fn row<'a>(&mut self) -> Vec<Written<'a>> {
        self.rows.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(in super::super) fn put_row_away(&mut self, row: Vec<Written<'_>>) {
        if self.rows.len() < SPARES_MAX && row.capacity() * size_of::<Written<'_>>() <= KEPT_BYTES {
            self.rows.push(items::emptied(row));
        }
    }

    /// Room for URLs that are loose: empty, to be put away after use.
    pub(in super::super) fn loose(&mut self) -> Loose {
        self.loose.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(in super::super) fn put_loose_away(&mut self, mut urls: Loose) {
        if self.loose.len() < SPARES_MAX {
            urls.clear();
            self.loose.push(urls);
        }
    }

    /// Bytes of memory that all chains take.
    pub(in super::super) fn bytes(&self) -> usize {
        self.used * BLOCK_BYTES
    }

    /// Appends one URL, or whatever else the chain holds.
    pub(in super::super) fn push(&mut self, chain: &mut Chain, bytes: &[u8]) {
        self.push_all(chain, bytes, 1);
    }

    /// Appends so many URLs, and returns where they begin.
    pub(in super::super) fn push_all(
        &mut self,
        chain: &mut Chain,
        mut bytes: &[u8],
        urls: usize,
    ) -> Cursor {
        let end = (chain.last != NONE).then(|| self.at(chain.last).end);
        let at = end.map(|start| Cursor { block: chain.last, start });
        chain.urls += u32::try_from(urls).expect("a chain counts so");
        while !bytes.is_empty() {
            if chain.last == NONE || usize::from(self.at(chain.last).end) == FILL {
                self.lengthen(chain);
            }
            let block = self.at_mut(chain.last);
            let from = usize::from(block.end);
            let (now, later) = bytes.split_at(bytes.len().min(FILL - from));
            block.bytes[from..from + now.len()].copy_from_slice(now);
            block.end += u8::try_from(now.len()).expect("blocks are short");
            bytes = later;
        }
        at.unwrap_or(chain.cursor())
    }

    /// Appends the first bytes of a chain to `out`: `most`, or a few more, or all.
    pub(in super::super) fn read(&self, chain: &Chain, most: usize, out: &mut Vec<u8>) {
        self.read_on(&mut chain.cursor(), most, out);
    }

    /// The same from a place in a chain on, which goes on.
    pub(in super::super) fn read_on(&self, from: &mut Cursor, most: usize, out: &mut Vec<u8>) {
        let enough = out.len().saturating_add(most);
        while from.block != NONE && out.len() < enough {
            let block = self.at(from.block);
            let start = block.start.max(from.start);
            out.extend_from_slice(&block.bytes[start.into()..block.end.into()]);
            *from = Cursor { block: block.next, start: 0 };
        }
    }

    /// The bytes from a place in a chain to the end of their block.
    pub(super) fn piece(&self, from: Cursor) -> &[u8] {
        if from.block == NONE {
            return &[];
        }
        let block = self.at(from.block);
        &block.bytes[block.start.max(from.start).into()..block.end.into()]
    }

    /// Takes so many bytes, which are so many URLs, off the front.
    pub(in super::super) fn drop_front(&mut self, chain: &mut Chain, mut bytes: usize, urls: u32) {
        chain.urls -= urls;
        while chain.first != NONE {
            let block = self.at_mut(chain.first);
            let here = usize::from(block.end - block.start);
            if bytes < here {
                block.start += u8::try_from(bytes).expect("blocks are short");
                return;
            }
            bytes -= here;
            let next = block.next;
            self.give_back(chain.first);
            chain.blocks -= 1;
            chain.first = next;
        }
        *chain = Chain::default();
    }

    /// Puts so many URLs before all others, or what these need.
    pub(super) fn push_front(&mut self, chain: &mut Chain, mut bytes: &[u8], urls: u32) {
        chain.urls += urls;
        while !bytes.is_empty() {
            if chain.first == NONE || self.at(chain.first).start == 0 {
                self.lengthen_front(chain);
            }
            let block = self.at_mut(chain.first);
            let until = usize::from(block.start);
            let (earlier, now) = bytes.split_at(bytes.len().saturating_sub(until));
            block.bytes[until - now.len()..until].copy_from_slice(now);
            block.start -= u8::try_from(now.len()).expect("blocks are short");
            bytes = earlier;
        }
    }

    /// Takes so many bytes, which are so many URLs, off the front, and puts what those behind them
    /// need in their place.
    pub(super) fn replace_front(
        &mut self,
        chain: &mut Chain,
        bytes: usize,
        urls: u32,
        with: &[u8],
    ) {
        if self.slide(chain, bytes, with) {
            chain.urls -= urls;
        } else {
            self.drop_front(chain, bytes, urls);
            self.push_front(chain, with, 0);
        }
    }

    /// The same, if it changes nothing but the first two blocks, which stay. `false`: it was not
    /// done.
    fn slide(&mut self, chain: &Chain, bytes: usize, with: &[u8]) -> bool {
        let block = self.at_mut(chain.first);
        let here = usize::from(block.end - block.start);
        if let Some(left) = here.checked_sub(bytes).filter(|left| *left > 0) {
            let until = usize::from(block.end) - left;
            let has_room = with.len() <= until;
            if has_room {
                block.put_before(until, with);
            }
            return has_room;
        }
        let (next, beyond) = (block.next, bytes - here);
        if next == NONE {
            return false;
        }
        let second = self.at_mut(next);
        let until = usize::from(second.start) + beyond;
        let (far, near) = with.split_at(with.len().saturating_sub(until));
        if until >= usize::from(second.end) || far.is_empty() || far.len() > FILL {
            return false;
        }
        second.put_before(until, near);
        let block = self.at_mut(chain.first);
        block.end = u8::try_from(FILL).expect("blocks are short");
        block.put_before(FILL, far);
        true
    }

    fn lengthen_front(&mut self, chain: &mut Chain) {
        let number = self.take();
        let end = u8::try_from(FILL).expect("blocks are short");
        let block = self.at_mut(number);
        (block.next, block.start, block.end) = (chain.first, end, end);
        if chain.last == NONE {
            chain.last = number;
        }
        chain.first = number;
        chain.blocks += 1;
    }

    /// Gives all blocks of a chain back.
    pub(in super::super) fn clear(&mut self, chain: &mut Chain) {
        let urls = chain.urls;
        self.drop_front(chain, usize::MAX, urls);
    }

    /// Puts `first` before `chain`.
    pub(in super::super) fn prepend(&mut self, chain: &mut Chain, first: Chain) {
        if first.last == NONE {
            return;
        }
        if chain.first == NONE {
            *chain = first;
            return;
        }
        self.at_mut(first.last).next = chain.first;
        chain.first = first.first;
        chain.blocks += first.blocks;
        chain.urls += first.urls;
    }

    fn lengthen(&mut self, chain: &mut Chain) {
        let number = self.take();
        match chain.last {
            NONE => chain.first = number,
            last => self.at_mut(last).next = number,
        }
        chain.last = number;
        chain.blocks += 1;
    }

    fn take(&mut self) -> u32 {
        self.used += 1;
        if self.free != NONE {
            let number = self.free;
            let block = self.at_mut(number);
            let next = std::mem::take(&mut block.next);
            (block.start, block.end) = (0, 0);
            self.free = next;
            self.fetch_one(next); // whoever takes one most often takes some
            return number;
        }
        if self.known as usize == self.slabs.len() * SLAB {
            self.slabs.push(vec![EMPTY; SLAB].into_boxed_slice());
        }
        self.known = self.known.checked_add(1).expect("less than 512 GiB of URLs");
        self.known
    }

    fn give_back(&mut self, number: u32) {
        self.used -= 1;
        let free = std::mem::replace(&mut self.free, number);
        self.at_mut(number).next = free;
    }

    /// The first block of a chain and the last one, to be asked for.
    pub(in super::super) fn ends(&self, chain: &Chain) -> [Option<&impl Sized>; 2] {
        [chain.first, chain.last].map(|number| (number != NONE).then(|| self.at(number)))
    }

    /// The number of the second block of a chain; 0 if it has none.
    pub(in super::super) fn second(&self, chain: &Chain) -> u32 {
        if chain.first == NONE { NONE } else { self.at(chain.first).next }
    }

    /// A block to be asked for, if there is one of that number.
    pub(in super::super) fn get(&self, number: u32) -> Option<&impl Sized> {
        let index = (number as usize).checked_sub(1)?;
        self.slabs.get(index / SLAB)?.get(index % SLAB)
    }

    fn at(&self, number: u32) -> &Block {
        let index = number as usize - 1;
        &self.slabs[index / SLAB][index % SLAB]
    }

    fn at_mut(&mut self, number: u32) -> &mut Block {
        let index = number as usize - 1;
        &mut self.slabs[index / SLAB][index % SLAB]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }
    }

    /// So many go and leave something behind for the others, as the first of a run does. Counts
    /// where that was a matter of one block, and of two.
    fn leave(
        blocks: &mut Blocks,
        chain: &mut Chain,
        texts: &mut VecDeque<Vec<u8>>,
        text: &[u8],
        urls: usize,
        slid: &mut [u32; 2],
    ) {
        let bytes: usize = texts.drain(..urls).map(|text| text.len()).sum();
        let Some(next) = texts.front_mut() else {
            return blocks.drop_front(chain, bytes, urls as u32);
        };
        let with = &text[..text.len().min(1 + bytes)];
        next.splice(0..0, with.iter().copied());
        let here = blocks.piece(chain.cursor()).len();
        if blocks.slide(chain, bytes, with) {
            chain.urls -= urls as u32;
            slid[usize::from(bytes >= here)] += 1;
        } else {
            blocks.replace_front(chain, bytes, urls as u32, with);
        }
    }

    /// Some chains side by side, against queues of texts.
    #[test]
    fn chains_are_queues_of_bytes() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut blocks = Blocks::default();
        let mut chains: Vec<(Chain, VecDeque<Vec<u8>>)> = Vec::new();
        chains.resize_with(6, Default::default);
        let (mut most, mut slid) = (0, [0; 2]);
        for step in 0..20_000 {
            let index = random.below(6);
            let text = vec![step as u8; 1 + random.below(140)];
            let (chain, texts) = &mut chains[index];
            match random.below(24) {
                19..23 => {
                    let urls = random.below(texts.len().min(4) + 1);
                    leave(&mut blocks, chain, texts, &text, urls, &mut slid);
                }
                0..9 => {
                    blocks.push(chain, &text);
                    texts.push_back(text);
                }
                9..16 => {
                    let urls = random.below(texts.len().min(4) + 1);
                    let bytes = texts.drain(..urls).map(|text| text.len()).sum();
                    blocks.drop_front(chain, bytes, urls as u32);
                }
                16..19 => {
                    let mut first = Chain::default();
                    match random.below(2) {
                        0 => blocks.push_front(chain, &text, 1),
                        _ => {
                            blocks.push(&mut first, &text);
                            blocks.prepend(chain, first);
                        }
                    }
                    texts.push_front(text);
                }
                _ if random.below(4) == 0 => {
                    blocks.clear(chain);
                    texts.clear();
                }
                _ => {}
            }
            let (chain, texts) = &chains[index];
            let (whole, mut found) = (texts.iter().flatten().copied(), Vec::new());
            blocks.read(chain, usize::MAX, &mut found);
            assert!(whole.eq(found.iter().copied()));
            assert_eq!(chain.urls(), texts.len());
            let some = random.below(300);
            let mut start = Vec::new();
            blocks.read(chain, some, &mut start);
            assert!(start.len() >= some.min(found.len()) && found.starts_with(&start));
            let used: usize = chains.iter().map(|(chain, _)| chain.bytes()).sum();
            assert_eq!(blocks.bytes(), used);
            most = most.max(used);
        }
        assert!(
            blocks.slabs.len() * SLAB * BLOCK_BYTES < most + SLAB * BLOCK_BYTES,
            "all are used"
        );
        assert!(slid.iter().all(|count| *count > 100), "within one block and two: {slid:?}");
        chains.iter_mut().for_each(|(chain, _)| blocks.clear(chain));
        assert_eq!(blocks.bytes(), 0);
    }
}
