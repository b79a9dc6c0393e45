//! Shared bytes: how many bytes two payloads have in common at the front and at the back.
//!
//! Payloads of one server's URLs that were found on one page differ in a few bytes in the middle.
//! So one of them is stored whole, and another as its middle and the two lengths that it shares.

const WORD: usize = size_of::<u64>();

/// The numbers of bytes that two payloads have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// The number of equal bytes at the front.
    pub(super) front: usize,
    /// The number of equal bytes at the back, not counting those in `front`.
    pub(super) back: usize,
}

impl Shared {
    /// Compares two payloads. The sum of front and back is at most the length of the shorter one.
    pub(super) fn of(one: &[u8], other: &[u8]) -> Self {
        let front = front(one, other);
        Self { front, back: back(&one[front..], &other[front..]) }
    }

    /// Returns the bytes of a compared payload between its shared front and back.
    pub(super) fn middle(self, payload: &[u8]) -> &[u8] {
        &payload[self.front..payload.len() - self.back]
    }
}

fn front(one: &[u8], other: &[u8]) -> usize {
    let words = one.chunks_exact(WORD).zip(other.chunks_exact(WORD));
    let mut same = 0;
    for (own, others) in words {
        let differ = word(own) ^ word(others);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += WORD;
    }
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(own, others)| own == others).count()
}

fn back(one: &[u8], other: &[u8]) -> usize {
    let words = one.rchunks_exact(WORD).zip(other.rchunks_exact(WORD));
    let mut same = 0;
    for (own, others) in words {
        let differ = word(own) ^ word(others);
        if differ != 0 {
            return same + differ.leading_zeros() as usize / 8;
        }
        same += WORD;
    }
    let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
    let rest = one.iter().rev().zip(other.iter().rev());
    same + rest.take_while(|(own, others)| own == others).count()
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word's bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the result is the same as that of comparing byte by byte.
    #[test]
    fn words_and_bytes_agree() {
        let text = b"/archive/2026/11/article-000000000123.html";
        for cut in 0..text.len() {
            for end in cut..text.len() {
                let other = [&text[..cut], b"?", &text[end..]].concat();
                let shared = Shared::of(text, &other);
                let front = text.iter().zip(&other).take_while(|(one, other)| one == other).count();
                let (own, others) = (text[front..].iter().rev(), other[front..].iter().rev());
                let back = own.zip(others).take_while(|(one, other)| one == other).count();
                assert_eq!(shared, Shared { front, back }, "{cut}..{end}");
            }
        }
    }
}
