//! Binary encoding and decoding of values: the one encoding of everything that a job keeps on disk.
//!
//! Numbers are little-endian and of fixed length, or, where most are small, of variable length (a
//! varint: seven bits a byte, low bits first). Byte strings and texts are preceded by their length.
//! The bytes that are decoded were written by this program, but the disk may have changed them:
//! decoding never panics and never trusts a length.
//!
//! Law: decoding returns the encoded values in order; from truncated bytes it returns [`Short`].
//! Cost: encoding copies each value once; decoding by [`Take`] allocates nothing.

use std::fmt;

/// A buffer to which values are encoded by appending their bytes.
pub trait Put {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends two bytes, little-endian.
    fn put_u16(&mut self, value: u16);
    /// Appends four bytes, little-endian.
    fn put_u32(&mut self, value: u32);
    /// Appends eight bytes, little-endian.
    fn put_u64(&mut self, value: u64);
    /// Appends a varint: a number in one to ten bytes, fewer for smaller numbers.
    fn put_varint(&mut self, value: u64);
    /// Appends the length of a byte string as a varint, then its bytes.
    fn put_bytes(&mut self, value: &[u8]);
    /// Appends the length of a text as a varint, then its UTF-8 bytes.
    fn put_str(&mut self, value: &str) {
        self.put_bytes(value.as_bytes());
    }
    /// Appends a Boolean as one byte, 0 or 1.
    fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_bytes(&mut self, value: &[u8]) {
        self.put_varint(value.len() as u64);
        self.extend_from_slice(value);
    }
}

/// The error of decoding: the bytes ended too early, or hold a value that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is written here makes no sense")
    }
}

impl std::error::Error for Short {}

/// Decodes values from the front of a byte slice, in the order in which they were encoded.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    /// Starts decoding at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether all bytes have been decoded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that are not decoded yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes the next `bytes` bytes as they are.
    pub fn raw(&mut self, bytes: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes the next `N` bytes as they are.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Decodes one byte.
    pub fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Decodes a two-byte number.
    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    /// Decodes a four-byte number.
    pub fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// Decodes an eight-byte number.
    pub fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// Decodes a Boolean. A byte other than 0 or 1 is an error.
    pub fn bool(&mut self) -> Result<bool, Short> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Short),
        }
    }

    /// Decodes a varint (a number of variable length).
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Short> {
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        self.varint_of_some()
    }

    /// Decodes a varint that takes at least two bytes.
    fn varint_of_some(&mut self) -> Result<u64, Short> {
        if let Some((value, bytes)) = self.0.first_chunk().and_then(varint_in) {
            self.0 = &self.0[bytes..];
            return Ok(value);
        }
        self.varint_bytewise()
    }

    /// Decodes a varint byte by byte, up to the longest of ten bytes.
    fn varint_bytewise(&mut self) -> Result<u64, Short> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Short);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Short)
    }

    /// Decodes a number of `bytes` bytes, little-endian. More than eight bytes are an error.
    #[inline]
    pub fn word(&mut self, bytes: usize) -> Result<u64, Short> {
        let unused = size_of::<u64>().checked_sub(bytes).ok_or(Short)?;
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Short)?;
        let word = match self.0.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => taken.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        self.0 = rest;
        Ok(word & u64::MAX.checked_shr(unused as u32 * u8::BITS).unwrap_or(0))
    }

    /// Decodes a varint as a `T`; a number that doesn't fit `T` is an error.
    #[inline]
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Short> {
        T::try_from(self.varint()?).map_err(|_| Short)
    }

    /// Decodes a byte string: its length as a varint, then its bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Short> {
        let len = self.number()?;
        self.raw(len)
    }

    /// Decodes a text: its length as a varint, then its UTF-8 bytes.
    pub fn str(&mut self) -> Result<&'a str, Short> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Short)
    }
}

/// Decodes a varint at the front of `bytes`. Returns the number and its length in bytes, or `None`
/// if the varint doesn't end within these eight bytes.
#[inline]
fn varint_in(bytes: &[u8; 8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes);
    let end = !word & 0x8080_8080_8080_8080;
    if end == 0 {
        return None;
    }
    // Drop the bytes after the number's last byte, then join the groups of seven bits in parallel.
    let word = word & (end ^ (end - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    let word = word & 0x0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4;
    Some((word, end.trailing_zeros() as usize / 8 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u8(7);
        out.put_u16(0x1234);
        out.put_u32(u32::MAX - 1);
        out.put_u64(1 << 40);
        [0, 127, 128, 300, u64::MAX].into_iter().for_each(|value| out.put_varint(value));
        out.put_bytes(b"\0\xff");
        out.put_str("straße");
        out.put_bool(true);
        out
    }

    fn take_all(bytes: &[u8]) -> Result<(), Short> {
        let mut take = Take::new(bytes);
        assert_eq!(take.u8()?, 7);
        assert_eq!(take.u16()?, 0x1234);
        assert_eq!(take.u32()?, u32::MAX - 1);
        assert_eq!(take.u64()?, 1 << 40);
        for value in [0, 127, 128, 300, u64::MAX] {
            assert_eq!(take.varint()?, value);
        }
        assert_eq!(take.bytes()?, b"\0\xff");
        assert_eq!(take.str()?, "straße");
        assert!(take.bool()?);
        assert!(take.is_empty());
        Ok(())
    }

    #[test]
    fn what_was_put_is_taken_and_a_cut_is_noticed() {
        let bytes = sample();
        assert_eq!(take_all(&bytes), Ok(()));
        for end in 0..bytes.len() {
            assert_eq!(take_all(&bytes[..end]), Err(Short), "cut to {end}");
        }
    }

    #[test]
    fn impossible_values_are_no_values() {
        assert_eq!(Take::new(&[0xff; 11]).varint(), Err(Short), "a number without end");
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(Take::new(&beyond).varint(), Err(Short), "a number past 64 bits");
        assert_eq!(Take::new(&[0x80, 2]).number::<u8>(), Err(Short), "256 in a byte");
        assert_eq!(Take::new(&[2]).bool(), Err(Short));
        assert_eq!(Take::new(&[200, 1, 0]).bytes(), Err(Short), "a length past the end");
        assert_eq!(Take::new(&[1, 0xff]).str(), Err(Short), "no UTF-8");
    }

    /// Law: a number of n bytes is decoded from these bytes alone, whatever follows them.
    #[test]
    fn words_are_taken_by_their_length() {
        let bytes = [0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa];
        for (from, len) in (0..=bytes.len()).flat_map(|from| (0..=9).map(move |len| (from, len))) {
            let mut take = Take::new(&bytes[from..]);
            let there = bytes[from..].get(..len).filter(|_| len <= 8);
            let value =
                |of: &[u8]| of.iter().rev().fold(0, |sum, byte| sum * 256 + u64::from(*byte));
            assert_eq!(take.word(len), there.map(value).ok_or(Short), "{len} from {from}");
            assert_eq!(take.rest().len(), bytes.len() - from - there.map_or(0, <[u8]>::len));
        }
    }

    /// Law: the word-wise and the byte-wise decoder agree, whatever follows the number, and whether
    /// or not it is encoded in the fewest bytes.
    #[test]
    fn numbers_of_variable_length_are_read_alike() {
        let mut draw = Random(1);
        let mut kinds = [0; 2];
        for _ in 0..200_000 {
            let random = draw.word();
            // Mix bytes with and without a continuation bit.
            let mut bytes = random.to_le_bytes().to_vec();
            let goes_on = (random >> 20) as usize % 12;
            bytes.extend_from_slice(&random.rotate_left(23).to_le_bytes());
            bytes.iter_mut().take(goes_on).for_each(|byte| *byte |= 0x80);
            bytes.truncate((random >> 40) as usize % 17);
            let (mut one, mut other) = (Take::new(&bytes), Take::new(&bytes));
            let value = one.varint();
            assert_eq!(value, other.varint_bytewise(), "{bytes:x?}");
            assert!(value.is_err() || one.rest() == other.rest(), "{bytes:x?}");
            kinds[usize::from(value.is_ok())] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 20_000), "{kinds:?}");
    }
}
