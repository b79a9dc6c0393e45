//! Searches for bytes over short distances, inlined into the caller.
//!
//! In dense markup the next byte of interest is a dozen bytes away. The functions of `memchr`
//! detect the vector instructions of the processor and make a call, which pays off from some
//! hundred bytes on. Its building blocks for the vectors that every processor of an architecture
//! has can be inlined instead. They compare sixteen bytes at a time, so that a short distance costs
//! no branch, and four times as many once the distance is long.
//!
//! Law: a position found is the first one at or after `at`.

#[cfg(target_arch = "aarch64")]
use memchr::arch::aarch64::neon::memchr as vectors;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use memchr::arch::all::memchr as vectors;
#[cfg(target_arch = "x86_64")]
use memchr::arch::x86_64::sse2::memchr as vectors;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! searcher {
    ($kind:ident, $($byte:expr),+) => {
        vectors::$kind::new($($byte),+)?
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! searcher {
    ($kind:ident, $($byte:expr),+) => {
        vectors::$kind::new($($byte),+)
    };
}

/// Returns the position of the first `byte` at or after `at`.
#[inline(always)]
pub(super) fn byte(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    let distance = searcher!(One, byte).find(text.get(at..)?)?;
    Some(at + distance)
}

/// Returns the position of the first of two bytes at or after `at`.
#[inline(always)]
pub(super) fn either(text: &[u8], at: usize, one: u8, two: u8) -> Option<usize> {
    let distance = searcher!(Two, one, two).find(text.get(at..)?)?;
    Some(at + distance)
}

/// Returns the position of the first of three bytes at or after `at`.
#[inline(always)]
pub(super) fn any(text: &[u8], at: usize, one: u8, two: u8, three: u8) -> Option<usize> {
    let distance = searcher!(Three, one, two, three).find(text.get(at..)?)?;
    Some(at + distance)
}

/// Returns the position of the first byte at or after `at` that isn't white space.
#[inline(always)]
pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|byte| !is_space(*byte)).map_or(text.len(), |distance| at + distance)
}

/// Returns the position of the first byte at or after `at` that ends the name of a tag.
#[inline(always)]
pub(super) fn tag_name_end(text: &[u8], at: usize) -> usize {
    let is_end = |byte| is_space(byte) || matches!(byte, b'/' | b'>');
    first(text, at, is_end, b"/>")
}

/// Returns the position of the first byte at or after `at` that ends the name of an attribute.
#[inline(always)]
pub(super) fn attribute_name_end(text: &[u8], at: usize) -> usize {
    let is_end = |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'=');
    first(text, at, is_end, b"/>=")
}

/// Returns the position of the first byte at or after `at` that ends an unquoted value.
#[inline(always)]
pub(super) fn bare_value_end(text: &[u8], at: usize) -> usize {
    let is_end = |byte| is_space(byte) || byte == b'>';
    first(text, at, is_end, b">")
}

/// Returns the position of the first byte at or after `at` for which `is_end` is true: white space
/// or one of `ends`. Returns the end of the text if there is none. Overlong names and values are
/// searched by blocks, so that no step of a scan takes long.
#[inline(always)]
fn first(text: &[u8], at: usize, is_end: impl Fn(u8) -> bool, ends: &[u8]) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(distance) = rest.iter().take(NEAR).position(|byte| is_end(*byte)) {
        return at + distance;
    }
    let (blocks, _) = rest.as_chunks();
    let passed = BLOCK * blocks.iter().take_while(|block| !has_any(block, ends)).count();
    let distance = rest[passed..].iter().position(|byte| is_end(*byte));
    distance.map_or(text.len(), |distance| at + passed + distance)
}

/// The number of bytes that are checked one by one before whole blocks are.
const NEAR: usize = 64;
/// The number of bytes in a block: the loop over a block is compiled to vector instructions.
const BLOCK: usize = 256;

/// Returns whether the block contains white space or one of `ends`.
#[cold]
#[inline(never)]
fn has_any(block: &[u8; BLOCK], ends: &[u8]) -> bool {
    SPACES
        .iter()
        .chain(ends)
        .any(|wanted| block.iter().fold(0, |hits, byte| hits | u8::from(byte == wanted)) != 0)
}

/// ASCII white space of HTML: space, tab, line feed, form feed, carriage return.
const SPACES: [u8; 5] = *b" \t\n\x0c\r";

/// Returns whether `byte` is one of [`SPACES`].
#[inline(always)]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_find_the_first_at_any_distance() {
        let ends = [b' ', b'\t', b'\n', 0x0c, b'\r', b'>', b'/', b'='];
        for distance in (0..90).chain([255, 256, 300, 320, 321, 700]) {
            for (place, end) in ends.into_iter().enumerate() {
                let mut text = vec![0x0b; distance + 30];
                text[distance] = end;
                let whole = text.len();
                let expect = |counts: bool| if counts { distance } else { whole };
                assert_eq!(byte(&text, 0, end), Some(distance));
                assert_eq!(either(&text, 0, b'x', end), Some(distance));
                assert_eq!(any(&text, 0, b'x', b'y', end), Some(distance));
                assert_eq!(byte(&text, distance + 1, end), None);
                assert_eq!(bare_value_end(&text, 0), expect(place < 6));
                assert_eq!(tag_name_end(&text, 0), expect(place < 7));
                assert_eq!(attribute_name_end(&text, 0), expect(place < 8));
                assert_eq!(SPACES.contains(&end), is_space(end));
            }
        }
        assert_eq!(skip_space(b"a \t\r\n\x0cb", 1), 6);
        assert_eq!(skip_space(b"  ", 0), 2);
        assert_eq!((byte(b"ab", 5, b'a'), skip_space(b"ab", 5)), (None, 2));
    }
}
