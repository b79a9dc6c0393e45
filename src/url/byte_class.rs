//! Classifies the bytes of a short text in one pass: bit masks of its slashes, dots and special
//! bytes.
//!
//! Nearly all paths and references consist of letters, digits, `-`, `_`, slashes and dots, with two
//! or three other bytes that need a closer check. Sixteen bytes at a time are compared with that
//! set; callers then loop over the special bytes only, and not over all bytes.
//!
//! Laws: bit n describes byte n, bits past the end are 0. The vector code and a loop over the bytes
//! give the same result.
//! Cost: 1 to 2 instructions a byte, no branch that depends on the bytes.

/// The maximum length of a text that can be classified, in bytes: the number of bits of a word.
pub(super) const BYTES_MAX: usize = 64;

/// The lengths of session ids that may be a path segment: those that PHP generates by default, now
/// and in its older releases.
pub(super) const ID_BYTES: [usize; 3] = [26, 32, 40];

/// The classes of the bytes of a text, one bit for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteClasses {
    /// The bytes that are neither ASCII letters or digits nor `-`, `_`, slash or dot.
    pub(super) special: u64,
    /// The bytes that are `/`.
    pub(super) slash: u64,
    /// The bytes that are `.`.
    pub(super) dot: u64,
}

impl ByteClasses {
    /// Classifies the bytes of a text; `None` if it is longer than [`BYTES_MAX`].
    #[inline]
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let mut classes = Self::default();
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            classes.add(classify(*block), index * BLOCK);
        }
        if !rest.is_empty() {
            let at = text.len() - rest.len();
            // Read the last sixteen bytes, and shift out those that are classified already.
            let last = match text.last_chunk() {
                Some(block) => classify(*block).skip(BLOCK - rest.len()),
                None => classify(padded(rest)),
            };
            classes.add(last, at);
        }
        Some(classes)
    }

    /// Returns whether the text, a target of `len` bytes, may have a segment as long as a session
    /// id, as in `/sid/<32 digits>`; `true` may be wrong.
    #[inline]
    pub(super) fn may_have_pair(self, len: usize) -> bool {
        // Each bit is shifted down by one, so that the end of 64 bytes fits as well.
        let ends = (self.slash | self.special) >> 1 | 1 << len.saturating_sub(1);
        let behind = ID_BYTES.iter().fold(0, |behind, bytes| behind | ends >> bytes);
        self.slash & behind != 0
    }

    #[inline]
    fn add(&mut self, classes: BlockClasses, at: usize) {
        self.special |= u64::from(classes.special) << at;
        self.slash |= u64::from(classes.slash) << at;
        self.dot |= u64::from(classes.dot) << at;
    }
}

/// Properties of a target (path and query) in one byte: whether it has a query, whether the rules
/// of the key may change a byte of it, and the number of its slashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape(u8);

impl Shape {
    /// The target has not been classified.
    pub(super) const UNKNOWN: Self = Self(u8::MAX);
    /// The target is too long to be classified.
    const LONG: Self = Self(u8::MAX - 1);
    /// Values from this one on say nothing about the target.
    const KNOWN_END: u8 = 0x80;
    const SPECIAL: u8 = 0x40;
    const QUERY: u8 = 0x20;
    /// The greatest number of slashes that is counted; it means this many or more.
    const SLASHES_MAX: u8 = 0x1f;

    /// Classifies a target (path and query).
    #[inline]
    pub(super) fn of(target: &[u8]) -> Self {
        let Some(classes) = ByteClasses::of(target) else { return Self::LONG };
        let slashes = (classes.slash.count_ones() as u8).min(Self::SLASHES_MAX);
        let marks = BitPositions(classes.special).fold(0, |marks, at| {
            marks
                | match target[at] {
                    b'?' => Self::QUERY,
                    // The characters that a path may contain unescaped (RFC 3986, sections 2.2 and
                    // 3.3), except the `;` before parameters and the `(` of ASP.NET's session ids.
                    b'~' | b'!' | b'$' | b'&' | b'\'' | b')' | b'*' | b'+' | b',' | b'=' | b':'
                    | b'@' => 0,
                    _ => Self::SPECIAL,
                }
        });
        let special = if classes.may_have_pair(target.len()) { Self::SPECIAL } else { 0 };
        Self(slashes | marks | special)
    }

    /// Returns whether the target has no query and the rules of the key change no byte of it: no
    /// escapes, no path parameters, no possible session ids. `false` may be wrong.
    #[inline]
    pub(super) fn is_plain_path(self) -> bool {
        self.0 & !Self::SLASHES_MAX == 0
    }

    /// Returns whether the target has no query and at most `slashes` slashes; `false` may be wrong.
    #[inline]
    pub(super) fn is_path_within(self, slashes: usize) -> bool {
        let known = self.0 & Self::SLASHES_MAX;
        self.0 & (Self::KNOWN_END | Self::QUERY) == 0
            && known < Self::SLASHES_MAX
            && usize::from(known) <= slashes
    }
}

/// Returns a mask of the bits before `at`, which may be 64.
#[inline]
pub(super) fn before(at: usize) -> u64 {
    u64::MAX.checked_shr(64 - at as u32).unwrap_or(0)
}

/// Iterates over the positions of the set bits of a word, lowest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitPositions(pub(super) u64);

impl Iterator for BitPositions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let at = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (at < u64::BITS).then_some(at as usize)
    }
}

/// The number of bytes classified at once.
const BLOCK: usize = 16;

/// The classes of the bytes of one block.
#[derive(Clone, Copy)]
struct BlockClasses {
    special: u16,
    slash: u16,
    dot: u16,
}

impl BlockClasses {
    /// Drops the first `bytes` bytes from the classes.
    #[inline]
    fn skip(self, bytes: usize) -> Self {
        Self { special: self.special >> bytes, slash: self.slash >> bytes, dot: self.dot >> bytes }
    }
}

/// Returns a block that begins with a text of 1 to 15 bytes; the rest is letters.
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

/// Classifies a block with SSE2 vectors, which every x86_64 processor has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn classify(block: [u8; BLOCK]) -> BlockClasses {
    // SAFETY: the function only reads values, and requires nothing but SSE2, which is part of
    // x86_64: no processor and no target of this architecture lacks it.
    unsafe { classify_sse2(block) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn classify_sse2(block: [u8; BLOCK]) -> BlockClasses {
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
    // The range from `-` to `9` consists of dash, dot, slash and digits.
    let plain = _mm_or_si128(_mm_or_si128(letters, within(block, b'-', b'9')), is(b'_'));
    BlockClasses { special: !bits(plain), slash: bits(is(b'/')), dot: bits(is(b'.')) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn classify(block: [u8; BLOCK]) -> BlockClasses {
    classify_bytewise(block)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn classify_bytewise(block: [u8; BLOCK]) -> BlockClasses {
    let bits = |is: fn(u8) -> bool| {
        block.iter().rev().fold(0, |bits, byte| bits << 1 | u16::from(is(*byte)))
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let special = !bits(plain);
    BlockClasses { special, slash: bits(|byte| byte == b'/'), dot: bits(|byte| byte == b'.') }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Every byte at every position of texts of every length.
    #[test]
    fn each_byte_is_seen_where_it_is() {
        for len in 0..=BYTES_MAX {
            for (index, byte) in (0..len).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut text = [b'x'; BYTES_MAX];
                text[index] = byte;
                let classes = ByteClasses::of(&text[..len]).expect("not too long");
                let bit = |is: bool| u64::from(is) << index;
                let plain = byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
                let expected = ByteClasses {
                    special: bit(!plain),
                    slash: bit(byte == b'/'),
                    dot: bit(byte == b'.'),
                };
                assert_eq!(classes, expected, "byte {byte} at {index} of {len}");
            }
        }
        assert_eq!(ByteClasses::of(&[b'x'; BYTES_MAX + 1]), None);
    }

    #[test]
    fn vectors_see_what_a_loop_sees() {
        let mut random = Random(0x5eed_0009);
        for _ in 0..20_000 {
            let block = [0; BLOCK].map(|_: u8| (random.word() >> 56) as u8);
            let (classes, expected) = (classify(block), classify_bytewise(block));
            assert_eq!(
                (classes.special, classes.slash, classes.dot),
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
            let is_plain = byte.is_ascii_alphanumeric() || b"-_./~!$&')*+,=:@".contains(&byte);
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
        for unknown in [Shape::UNKNOWN, Shape::of(&[b'/'; BYTES_MAX + 1])] {
            assert!(!unknown.is_plain_path() && !unknown.is_path_within(usize::MAX));
        }
    }

    #[test]
    fn bits_and_their_places() {
        assert_eq!((before(0), before(1), before(63)), (0, 1, u64::MAX >> 1));
        assert_eq!(before(64), u64::MAX);
        assert_eq!(BitPositions(1 | 1 << 5 | 1 << 63).collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(BitPositions(0).next(), None);
    }
}
