//! Records: the payloads in memory, each in blocks of 64 bytes.
//!
//! Links of one page to one server share the beginnings and ends of their payloads (the path, the
//! page they were found on). So each queue has a *base*, the payload it last stored whole. A
//! payload that shares at least half of its bytes with the base is stored as a reference to it and
//! the bytes in the *middle* that differ. A base is kept until no record refers to it. All blocks
//! have the same size, so those that one queue frees can be used by any other.
//!
//! Laws: reading returns the payload that was stored. A record is freed when its URL is taken and
//! no other record or queue refers to it.
//! Cost: one block for most payloads; one copy of the payload to store it and one to read it.

use super::shared::Shared;
use crate::ground::table::Table;

/// The number of a record, which is that of its first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId(pub(super) u32);

/// The record number that stands for no record.
pub(super) const NONE: RecordId = RecordId(u32::MAX);

/// The length in bytes below which every payload must be.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 18;

pub(super) const BLOCK_BYTES: usize = 64;
pub(super) const ROOM_BYTES: usize = BLOCK_BYTES - size_of::<u32>();
pub(super) const HEAD_BYTES: usize = 14;

/// A block: a part of a record, or free.
#[derive(Debug)]
struct Block {
    /// The next block of the record, or the next free block.
    next: u32,
    bytes: [u8; ROOM_BYTES],
}

/// The header at the start of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The record of the payload that this one shares bytes with, or [`NONE`].
    pub(super) base: RecordId,
    /// The number of bytes in the middle. They follow the header.
    pub(super) middle: u32,
    /// The number of bytes at the front that are the same as in the base.
    front: u16,
    /// The number of bytes at the back that are the same as in the base.
    back: u16,
    /// The number of references to the record: one from its URL until that is taken, one from the
    /// queue whose base it is, and one from each record that shares bytes with it.
    users: u16,
}

/// The payloads of all queues in memory. See the head of this file.
#[derive(Debug)]
pub(super) struct Records {
    blocks: Table<Block>,
    /// The first free block, or the number of [`NONE`] if none is free.
    free: u32,
    used_blocks: usize,
    /// A buffer for the payload of a queue's base, while a new payload is compared with it.
    base: Vec<u8>,
}

impl Records {
    pub(super) fn new() -> Self {
        Self { blocks: Table::default(), free: NONE.0, used_blocks: 0, base: Vec::new() }
    }

    /// Returns the memory that is in use by records, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.used_blocks * BLOCK_BYTES
    }

    /// Stores a payload and returns its record. If the payload shares at least half of its bytes
    /// with that of `base`, only its middle is stored. Otherwise it is stored whole, and `base` is
    /// set to the new record.
    pub(super) fn put(&mut self, payload: &[u8], base: &mut RecordId) -> RecordId {
        assert!(payload.len() < PAYLOAD_BYTES_MAX, "payloads are capped by whoever queues them");
        let mut head = Head { base: NONE, front: 0, back: 0, middle: 0, users: 1 };
        if *base != NONE && self.head(*base).users < u16::MAX {
            let mut bytes = std::mem::take(&mut self.base);
            bytes.clear();
            self.read(*base, &mut bytes);
            let Shared { front, back } = Shared::of(&bytes, payload);
            if let (Ok(front), Ok(back)) = (front.try_into(), back.try_into())
                && 2 * (usize::from(front) + usize::from(back)) >= payload.len()
            {
                head = Head { base: *base, front, back, ..head };
            }
            self.base = bytes;
        }
        let middle = &payload[usize::from(head.front)..payload.len() - usize::from(head.back)];
        head.middle = middle.len() as u32;
        if head.base != NONE {
            self.add_user(head.base, 1);
            return self.store(head, middle);
        }
        let id = self.store(Head { users: 2, ..head }, middle);
        let before = std::mem::replace(base, id);
        self.free(before);
        id
    }

    /// Appends the payload of a record to `out`.
    pub(super) fn read(&self, id: RecordId, out: &mut Vec<u8>) {
        let head = self.head(id);
        if head.base == NONE {
            return self.read_middle(id, head, out);
        }
        let start = out.len();
        self.read(head.base, out);
        let (front, back) = (usize::from(head.front), usize::from(head.back));
        // `out` now ends with the whole base, whose last `back` bytes belong after the middle.
        let end = out.len() - back;
        if back == 0 {
            out.truncate(start + front);
            return self.read_middle(id, head, out);
        }
        self.read_middle(id, head, out);
        out.extend_from_within(end..end + back);
        out.drain(start + front..end + back);
    }

    /// Loads the first block of a record into the CPU cache. Does nothing for [`NONE`].
    pub(super) fn prefetch(&self, id: RecordId) {
        std::hint::black_box(self.blocks.get(id.0 as usize).map(|block| block.next));
    }

    /// Removes one reference to a record and frees the record if that was the last. Does nothing
    /// for [`NONE`].
    pub(super) fn free(&mut self, id: RecordId) {
        if id == NONE {
            return;
        }
        self.add_user(id, -1);
        let head = self.head(id);
        if head.users > 0 {
            return;
        }
        let mut left = HEAD_BYTES + head.middle as usize;
        let mut number = id.0;
        loop {
            let block = &mut self.blocks[number as usize];
            let next = std::mem::replace(&mut block.next, self.free);
            (self.free, self.used_blocks) = (number, self.used_blocks - 1);
            left = left.saturating_sub(ROOM_BYTES);
            if left == 0 {
                break;
            }
            number = next;
        }
        self.free(head.base);
    }

    fn store(&mut self, head: Head, middle: &[u8]) -> RecordId {
        let first = self.take_block();
        let block = &mut self.blocks[first as usize].bytes;
        block[..HEAD_BYTES].copy_from_slice(&head.to_bytes());
        let now = middle.len().min(ROOM_BYTES - HEAD_BYTES);
        block[HEAD_BYTES..HEAD_BYTES + now].copy_from_slice(&middle[..now]);
        let mut last = first;
        for piece in middle[now..].chunks(ROOM_BYTES) {
            let number = self.take_block();
            self.blocks[last as usize].next = number;
            self.blocks[number as usize].bytes[..piece.len()].copy_from_slice(piece);
            last = number;
        }
        RecordId(first)
    }

    fn take_block(&mut self) -> u32 {
        self.used_blocks += 1;
        if self.free != NONE.0 {
            let number = self.free;
            self.free = self.blocks[number as usize].next;
            return number;
        }
        let number = u32::try_from(self.blocks.len()).expect("fewer than 256 GiB of payloads");
        self.blocks.push(Block { next: NONE.0, bytes: [0; ROOM_BYTES] });
        number
    }

    fn read_middle(&self, id: RecordId, head: Head, out: &mut Vec<u8>) {
        let mut left = head.middle as usize;
        let mut block = &self.blocks[id.0 as usize];
        let mut from = HEAD_BYTES;
        loop {
            let now = left.min(ROOM_BYTES - from);
            out.extend_from_slice(&block.bytes[from..from + now]);
            left -= now;
            if left == 0 {
                return;
            }
            (block, from) = (&self.blocks[block.next as usize], 0);
        }
    }

    pub(super) fn head(&self, id: RecordId) -> Head {
        let bytes =
            self.blocks[id.0 as usize].bytes.first_chunk().expect("a block has room for it");
        Head::from_bytes(bytes)
    }

    fn add_user(&mut self, id: RecordId, change: i16) {
        let users = self.head(id).users.checked_add_signed(change).expect("users are counted");
        let at = HEAD_BYTES - size_of::<u16>();
        self.blocks[id.0 as usize].bytes[at..HEAD_BYTES].copy_from_slice(&users.to_le_bytes());
    }
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.base.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.middle.to_le_bytes());
        for (place, word) in bytes[8..].chunks_exact_mut(2).zip([self.front, self.back, self.users])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Self {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let (front, back, users) = (short(8), short(10), short(12));
        Self { base: RecordId(long(0)), middle: long(4), front, back, users }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_out_as_they_went_in() {
        let mut records = Records::new();
        let long = "/long".repeat(100);
        let texts = [
            "/a/b.html https://a/",
            "/a/c.html https://a/",
            "/a/cc.html https://a/",
            "",
            "/x",
            &long,
            &long,
            "/long/other",
            "/a/b.html https://a/",
        ];
        let mut base = NONE;
        let ids: Vec<RecordId> =
            texts.iter().map(|text| records.put(text.as_bytes(), &mut base)).collect();
        for round in 0..2 {
            for (id, text) in ids.iter().zip(&texts).filter(|(id, _)| round == 0 || id.0 % 2 == 1) {
                let mut out = b"before".to_vec();
                records.read(*id, &mut out);
                assert_eq!(out, [b"before", text.as_bytes()].concat());
            }
            ids.iter().filter(|id| id.0 % 2 == round).for_each(|id| records.free(*id));
        }
        records.free(base);
        assert_eq!(records.bytes(), 0, "all blocks are free again");
    }

    #[test]
    fn links_of_one_page_take_a_block_each() {
        let mut records = Records::new();
        let via = "https://host.example/a/rather/long/page.html";
        let mut base = NONE;
        for link in 0..100 {
            records.put(format!("/articles/2026/{link}.html\n{via}").as_bytes(), &mut base);
        }
        assert!(records.bytes() <= 101 * BLOCK_BYTES, "{}", records.bytes());
    }
}
