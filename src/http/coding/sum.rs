//! Checksums behind deflate data: CRC-32 and length of a gzip member, Adler-32 of a zlib body.
//!
//! Cost: a pass over what was decoded, in vectors where the processor has them.
//! Source: RFC 1950 section 2.2, RFC 1952 section 2.3.1.

use libdeflater::{Adler32, Crc};

/// The checksum of what has been decoded so far.
pub(super) enum Sum {
    /// Bare deflate has none.
    None,
    /// With the length modulo 2^32.
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

    /// Takes what one step decoded: fewer than 2^32 bytes.
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

    /// Bytes of the trailer.
    pub(super) fn bytes(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip(..) => 8,
            Self::Zlib(_) => 4,
        }
    }

    /// Whether the trailer says the same. Its last byte is the highest of `trailer`.
    pub(super) fn is(&self, trailer: u64) -> bool {
        match self {
            Self::None => true,
            Self::Gzip(crc, len) => trailer == u64::from(*len) << 32 | u64::from(crc.sum()),
            Self::Zlib(adler) => trailer.swap_bytes() as u32 == adler.sum(),
        }
    }
}
