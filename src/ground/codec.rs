//! Values to bytes and back: the one spelling of everything that a job keeps on disk.
//!
//! Numbers are little-endian and of fixed length, or variable (seven bits a byte, low ones first)
//! where most are small; bytes and texts go behind their length. What is read was written by this
//! program, but the disk may have changed it: reading never panics and takes no length on trust.
//!
//! Law: what was put is taken again, value by value; from a text that was cut, [`Short`] is taken.
//! Cost: a copy; nothing is allocated by [`Take`].

use std::fmt;

/// Appends values to bytes.
pub trait Put {
    /// A byte.
    fn put_u8(&mut self, value: u8);
    /// Two bytes.
    fn put_u16(&mut self, value: u16);
    /// Four bytes.
    fn put_u32(&mut self, value: u32);
    /// Eight bytes.
    fn put_u64(&mut self, value: u64);
    /// One to ten bytes, few for small numbers.
    fn put_varint(&mut self, value: u64);
    /// Bytes behind their length.
    fn put_bytes(&mut self, value: &[u8]);
    /// A text behind its length.
    fn put_str(&mut self, value: &str) {
        self.put_bytes(value.as_bytes());
    }
    /// A truth value.
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

/// The bytes ended before their end, or said something that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is written here makes no sense")
    }
}

impl std::error::Error for Short {}

/// Takes values from the front of bytes, in the order in which they were put.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    /// From the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all is taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// So many bytes as they are.
    pub fn raw(&mut self, bytes: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// So many bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// A truth value.
    pub fn bool(&mut self) -> Result<bool, Short> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Short),
        }
    }

    /// A number of variable length.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Short> {
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        self.varint_of_some()
    }

    /// The same, of two bytes or more.
    fn varint_of_some(&mut self) -> Result<u64, Short> {
        if let Some((value, bytes)) = self.0.first_chunk().and_then(varint_in) {
            self.0 = &self.0[bytes..];
            return Ok(value);
        }
        self.varint_bytewise()
    }

    /// The same, however long it is.
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

    /// A number of so many bytes, low ones first; more than eight are none.
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

    /// A number of variable length that fits the type wanted.
    #[inline]
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Short> {
        T::try_from(self.varint()?).map_err(|_| Short)
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], Short> {
        let len = self.number()?;
        self.raw(len)
    }

    /// A text behind its length.
    pub fn str(&mut self) -> Result<&'a str, Short> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Short)
    }
}

/// The number of variable length that ends in these bytes, and how many of them it takes.
#[inline]
fn varint_in(bytes: &[u8; 8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes);
    let end = !word & 0x8080_8080_8080_8080;
    if end == 0 {
        return None;
    }
    // All bits up to the last byte's highest one; then groups of seven bits move together.
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

    /// Law: a number of some bytes is what its bytes say, whatever follows it.
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

    /// Law: by words a number is what it is byte by byte, whatever follows it, and whether it is
    /// spelt as shortly as it might be or not.
    #[test]
    fn numbers_of_variable_length_are_read_alike() {
        let mut draw = Random(1);
        let mut kinds = [0; 2];
        for _ in 0..200_000 {
            let random = draw.word();
            // Many bytes that go on, few bytes that don't.
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
