//! Checksums behind deflate data: CRC-32 and length of a gzip member, Adler-32 of a zlib body.
//!
//! Cost: a pass over what was decoded, in vectors.
//! Source: RFC 1950 section 2.2 and 8.2, RFC 1952 section 2.3.1.

use flate2::Crc;

/// The checksum of what has been decoded so far.
#[derive(Debug)]
pub(super) enum Sum {
    /// Bare deflate has none.
    None,
    Gzip(Crc),
    Zlib(Adler32),
}

impl Sum {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Gzip(crc) => crc.update(bytes),
            Self::Zlib(adler) => adler.update(bytes),
        }
    }

    /// Bytes of the trailer.
    pub(super) fn bytes(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip(_) => 8,
            Self::Zlib(_) => 4,
        }
    }

    /// Whether the trailer says the same. Its last byte is the highest of `trailer`.
    pub(super) fn is(&self, trailer: u64) -> bool {
        match self {
            Self::None => true,
            Self::Gzip(crc) => trailer == u64::from(crc.amount()) << 32 | u64::from(crc.sum()),
            Self::Zlib(adler) => trailer.swap_bytes() as u32 == adler.sum(),
        }
    }
}

/// The checksum of RFC 1950.
#[derive(Debug)]
pub(super) struct Adler32 {
    low: u32,
    high: u32,
}

/// The largest prime below 2^16.
const BASE: u32 = 65_521;
/// Most bytes after which the sums still fit into 32 bits.
const RUN: usize = 5_552;

impl Adler32 {
    pub(super) fn new() -> Self {
        Self { low: 1, high: 0 }
    }

    fn update(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(RUN) {
            for byte in run {
                self.low += u32::from(*byte);
                self.high += self.low;
            }
            self.low %= BASE;
            self.high %= BASE;
        }
    }

    fn sum(&self) -> u32 {
        self.high << 16 | self.low
    }
}
