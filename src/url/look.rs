//! One look at a short text: which of its bytes are slashes, dots, or special, as bits.
//!
//! Nearly all paths and references are made of letters, digits, `-`, `_`, slashes and dots, with
//! two or three bytes between them that mean something. Sixteen bytes at a time are compared with
//! that set; what is left to do is a step for each special byte, not for each byte.
//!
//! Laws: bit n speaks of byte n, bits past the end are 0; what a machine with vectors sees is what
//! a loop over the bytes sees. Cost: 1 to 2 instructions a byte, no branch that depends on bytes.

/// Bytes of the longest text that can be looked at: bits of a word.
pub(super) const BYTES_MAX: usize = 64;

/// Lengths of session ids that are a segment of a path: those that PHP writes by default, now and
/// in its older releases.
pub(super) const ID_BYTES: [usize; 3] = [26, 32, 40];

/// What the bytes of a text are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Neither letters nor digits (of ASCII) nor `-`, `_`, slash or dot.
    pub(super) special: u64,
    /// `/`
    pub(super) slash: u64,
    /// `.`
    pub(super) dot: u64,
}

impl Look {
    /// Looks at a text; `None` if it is too long.
    #[inline]
    pub(super) fn at(text: &[u8]) -> Option<Self> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let mut look = Self::default();
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for (place, block) in blocks.iter().enumerate() {
            look.add(sixteen(*block), place * BLOCK);
        }
        if !rest.is_empty() {
            let at = text.len() - rest.len();
            // The last sixteen bytes; those that were looked at fall out.
            let seen = match text.last_chunk() {
                Some(block) => sixteen(*block).past(BLOCK - rest.len()),
                None => sixteen(padded(rest)),
            };
            look.add(seen, at);
        }
        Some(look)
    }

    /// Whether a segment of a target of `len` bytes has the length of a session id, as in
    /// `/sid/<32 digits>`; `true` may be wrong.
    #[inline]
    pub(super) fn may_have_pair(self, len: usize) -> bool {
        // Each a place further to the front: so the end of 64 bytes fits, too.
        let ends = (self.slash | self.special) >> 1 | 1 << len.saturating_sub(1);
        let behind = ID_BYTES.iter().fold(0, |behind, bytes| behind | ends >> bytes);
        self.slash & behind != 0
    }

    #[inline]
    fn add(&mut self, seen: Seen, at: usize) {
        self.special |= u64::from(seen.special) << at;
        self.slash |= u64::from(seen.slash) << at;
        self.dot |= u64::from(seen.dot) << at;
    }
}

/// What a look at a target told that others want to know, in a byte: whether it has a query, bytes
/// that could be spelled in another way, and how many slashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape(u8);

impl Shape {
    /// Nobody has looked.
    pub(super) const UNSEEN: Self = Self(u8::MAX);
    /// It is too long for one look.
    const LONG: Self = Self(u8::MAX - 1);
    /// From here on nothing is known.
    const KNOWN_END: u8 = 0x80;
    const ODD: u8 = 0x40;
    const QUERY: u8 = 0x20;
    /// So many, or more.
    const SLASHES_MAX: u8 = 0x1f;

    /// Looks at a target.
    #[inline]
    pub(super) fn of(target: &[u8]) -> Self {
        let Some(look) = Look::at(target) else { return Self::LONG };
        let slashes = (look.slash.count_ones() as u8).min(Self::SLASHES_MAX);
        let marks = Places(look.special).fold(0, |marks, at| {
            marks
                | match target[at] {
                    b'?' => Self::QUERY,
                    // RFC 3986, sections 2.2 and 3.3: what a path may hold as it is, but for the
                    // mark of parameters.
                    b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'='
                    | b':' | b'@' => 0,
                    _ => Self::ODD,
                }
        });
        let odd = if look.may_have_pair(target.len()) { Self::ODD } else { 0 };
        Self(slashes | marks | odd)
    }

    /// Whether all of it is path, in which no byte could be spelled in another way, none marks a
    /// parameter, and no segment may be a session id; `false` may be wrong.
    #[inline]
    pub(super) fn is_plain_path(self) -> bool {
        self.0 & !Self::SLASHES_MAX == 0
    }

    /// Whether all of it is path, with at most so many slashes; `false` may be wrong.
    #[inline]
    pub(super) fn is_path_within(self, slashes: usize) -> bool {
        let known = self.0 & Self::SLASHES_MAX;
        self.0 & (Self::KNOWN_END | Self::QUERY) == 0
            && known < Self::SLASHES_MAX
            && usize::from(known) <= slashes
    }
}

/// The bits before `at`, which may be 64.
#[inline]
pub(super) fn before(at: usize) -> u64 {
    u64::MAX.checked_shr(64 - at as u32).unwrap_or(0)
}

/// Places of the bits of a word, lowest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places(pub(super) u64);

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let at = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (at < u64::BITS).then_some(at as usize)
    }
}

/// Bytes looked at at once.
const BLOCK: usize = 16;

/// What the bytes of a block are.
#[derive(Clone, Copy)]
struct Seen {
    special: u16,
    slash: u16,
    dot: u16,
}

impl Seen {
    /// Without the first so many.
    #[inline]
    fn past(self, bytes: usize) -> Self {
        Self { special: self.special >> bytes, slash: self.slash >> bytes, dot: self.dot >> bytes }
    }
}

/// A text of 1 to 15 bytes, and letters behind it.
#[inline]
fn padded(text: &[u8]) -> [u8; BLOCK] {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let len = text.len();
    let (low, high) = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        (word(first), word(last) >> (8 * (15 - len)) >> 8)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        (half(first) | half(last) << (8 * (len - 4)), 0)
    } else {
        let byte = |at: usize| text.get(at).map_or(0, |byte| u64::from(*byte) << (8 * at));
        (byte(0) | byte(1) | byte(2), 0)
    };
    let text = u128::from(high) << 64 | u128::from(low);
    let letters = u128::from_le_bytes([b'a'; BLOCK]) << (8 * len);
    (text | letters).to_le_bytes()
}

/// With the vectors that every machine of this kind has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sixteen(block: [u8; BLOCK]) -> Seen {
    // SAFETY: the function reads values only, and asks for nothing but SSE2, which is part of
    // x86_64: no such machine lacks it, and no target of this architecture is without.
    unsafe { by_vector(block) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn by_vector(block: [u8; BLOCK]) -> Seen {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8, _mm_sub_epi8,
    };
    let bytes = u128::from_le_bytes(block);
    let block = _mm_set_epi64x((bytes >> 64) as i64, bytes as i64);
    let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
    let is = |byte: u8| _mm_cmpeq_epi8(block, all(byte));
    let within = |block: __m128i, from: u8, to: u8| {
        let above = _mm_sub_epi8(block, all(from));
        _mm_cmpeq_epi8(_mm_min_epu8(above, all(to - from)), above)
    };
    let bits = |mask: __m128i| _mm_movemask_epi8(mask) as u16;
    let letters = within(_mm_or_si128(block, all(b' ')), b'a', b'z');
    // From dash to nine: dash, dot, slash and digits.
    let plain = _mm_or_si128(_mm_or_si128(letters, within(block, b'-', b'9')), is(b'_'));
    Seen { special: !bits(plain), slash: bits(is(b'/')), dot: bits(is(b'.')) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn sixteen(block: [u8; BLOCK]) -> Seen {
    one_by_one(block)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn one_by_one(block: [u8; BLOCK]) -> Seen {
    let bits = |is: fn(u8) -> bool| {
        block.iter().rev().fold(0, |bits, byte| bits << 1 | u16::from(is(*byte)))
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let special = !bits(plain);
    Seen { special, slash: bits(|byte| byte == b'/'), dot: bits(|byte| byte == b'.') }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Every byte at every place of texts of every length.
    #[test]
    fn each_byte_is_seen_where_it_is() {
        for len in 0..=BYTES_MAX {
            for (place, byte) in (0..len).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut text = [b'x'; BYTES_MAX];
                text[place] = byte;
                let look = Look::at(&text[..len]).expect("not too long");
                let bit = |is: bool| u64::from(is) << place;
                let plain = byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
                let expected =
                    Look { special: bit(!plain), slash: bit(byte == b'/'), dot: bit(byte == b'.') };
                assert_eq!(look, expected, "byte {byte} at {place} of {len}");
            }
        }
        assert_eq!(Look::at(&[b'x'; BYTES_MAX + 1]), None);
    }

    #[test]
    fn vectors_see_what_a_loop_sees() {
        let mut random = Random(0x5eed_0009);
        for _ in 0..20_000 {
            let block = [0; BLOCK].map(|_: u8| (random.word() >> 56) as u8);
            let (seen, expected) = (sixteen(block), one_by_one(block));
            assert_eq!(
                (seen.special, seen.slash, seen.dot),
                (expected.special, expected.slash, expected.dot),
                "{block:?}"
            );
        }
    }

    #[test]
    fn shapes_say_what_a_loop_says() {
        let lens =
            |byte| (1..=BYTES_MAX).flat_map(move |len| [(byte, len, b'/'), (byte, len, b'x')]);
        for (byte, len, fill) in (0..=255).flat_map(lens) {
            let mut target = [fill; BYTES_MAX];
            target[0] = b'/';
            target[len - 1] = byte;
            let shape = Shape::of(&target[..len]);
            let slashes = target[..len].iter().filter(|byte| **byte == b'/').count();
            let is_countable = byte != b'?' && slashes < usize::from(Shape::SLASHES_MAX);
            for most in [0, slashes.saturating_sub(1), slashes, BYTES_MAX] {
                assert_eq!(shape.is_path_within(most), is_countable && slashes <= most);
            }
            let is_plain = byte.is_ascii_alphanumeric() || b"-_./~!$&'()*+,=:@".contains(&byte);
            let is_end = |at: usize| match target.get(at).filter(|_| at < len) {
                Some(end) => *end == b'/' || !(end.is_ascii_alphanumeric() || b"-_.".contains(end)),
                None => true,
            };
            let is_pair = |at: usize| {
                ID_BYTES.iter().any(|id| at > *id && target[at - id - 1] == b'/') && is_end(at)
            };
            let is_plain = is_plain && !(1..=len).any(is_pair);
            assert_eq!(shape.is_plain_path(), is_plain, "{byte} at the end of {len}");
        }
        for unknown in [Shape::UNSEEN, Shape::of(&[b'/'; BYTES_MAX + 1])] {
            assert!(!unknown.is_plain_path() && !unknown.is_path_within(usize::MAX));
        }
    }

    #[test]
    fn bits_and_their_places() {
        assert_eq!((before(0), before(1), before(63)), (0, 1, u64::MAX >> 1));
        assert_eq!(before(64), u64::MAX);
        assert_eq!(Places(1 | 1 << 5 | 1 << 63).collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(Places(0).next(), None);
    }
}
