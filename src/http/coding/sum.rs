//! Checksums after deflate data: CRC-32 and length of a gzip member, Adler-32 of a zlib body.
//!
//! Cost: one pass over the decoded data, with vector instructions where the processor has them.
//! Source: RFC 1950 section 2.2, RFC 1952 section 2.3.1.

use libdeflater::{Adler32, Crc};

/// The checksum of what has been decoded so far.
pub(super) enum Sum {
    /// No checksum, as for raw deflate.
    None,
    /// The checksum of gzip: CRC-32, and the length modulo 2^32.
    Gzip(Crc, u32),
    Zlib(Adler32),
}

impl Sum {
    pub(super) fn gzip() -> Self {
        Self::Gzip(Crc::new(), 0)
    }

    pub(super) fn zlib() -> Self {
        Self::Zlib(Adler32::new())
    }

    /// Adds the decoded bytes of one step, which are less than 2^32, to the checksum.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Gzip(crc, len) => {
                crc.update(bytes);
                *len = len.wrapping_add(u32::try_from(bytes.len()).expect("a step is short"));
            }
            Self::Zlib(adler) => adler.update(bytes),
        }
    }

    /// Returns the length of the trailer that contains the checksum, in bytes.
    pub(super) fn bytes(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip(..) => 8,
            Self::Zlib(_) => 4,
        }
    }

    /// Returns whether the trailer of the body contains this checksum. The last byte of the trailer
    /// is the highest byte of `trailer`.
    pub(super) fn is(&self, trailer: u64) -> bool {
        match self {
            Self::None => true,
            Self::Gzip(crc, len) => trailer == u64::from(*len) << 32 | u64::from(crc.sum()),
            Self::Zlib(adler) => trailer.swap_bytes() as u32 == adler.sum(),
        }
    }
}
