//! Detects wrong labels: checks whether a body is in the coding that its Content-Encoding names.
//!
//! gzip and zstd begin with a magic number. deflate and brotli have none, but text doesn't look
//! like them, because their streams are full of bytes that no text contains. A long body that looks
//! like text is text. A short stream may look like text by chance, so a short body is decoded as a
//! trial.
//!
//! Source: RFC 1952 section 2.3.1, RFC 8878 sections 3.1.1 and 3.1.2; the MIME Sniffing standard,
//! section 3 ("binary data byte").

use super::Coding;
use super::codec::{Codec, Flow};

/// The number of bytes that are checked to tell text from a compressed stream. A tenth of the bytes
/// of such a stream are binary, so 512 are enough.
const TEXT_BYTES: usize = 512;
/// The number of decoded bytes after which the trial decoding of a short body counts as successful,
/// whatever follows.
const TRIAL_BYTES: usize = 16 << 10;

/// The magic number of gzip.
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The magic number of a skippable zstd frame; the lower half of the first byte may differ.
const ZSTD_SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// The number of the compression method deflate in the headers of gzip and zlib (field CM).
pub(super) const METHOD_DEFLATE: u8 = 8;

/// Returns whether the first two bytes of a body are a zlib header (RFC 1950 section 2.2): it has
/// method 8, a window of at most 32 KiB, and is a multiple of 31 as a big-endian number.
pub(super) fn is_zlib(start: [u8; 2]) -> bool {
    let [first, _] = start;
    first & 0x0f == METHOD_DEFLATE
        && first >> 4 <= 7
        && u16::from_be_bytes(start).is_multiple_of(31)
}

/// Returns the number of bytes at the start of a body that are checked for `coding`.
pub(super) fn sniff_bytes(coding: Coding) -> usize {
    match coding {
        Coding::Gzip => GZIP.len(),
        Coding::Zstd => ZSTD.len(),
        Coding::Deflate | Coding::Brotli => TEXT_BYTES,
    }
}

/// Returns whether a body that begins with `start` may be in `coding`. `is_whole` is true if
/// `start` is the whole body.
pub(super) fn fits(coding: Coding, start: &[u8], is_whole: bool) -> bool {
    let begins = |magic: &[u8]| magic.starts_with(&start[..start.len().min(magic.len())]);
    match coding {
        Coding::Gzip => begins(&GZIP),
        Coding::Zstd => {
            let first = start.first().map(|byte| byte & 0xf0);
            begins(&ZSTD) || first == Some(0x50) && start[1..] == ZSTD_SKIPPABLE[1..start.len()]
        }
        Coding::Deflate | Coding::Brotli => {
            !is_text(start) || is_whole && (start.is_empty() || can_decode(coding, start))
        }
    }
}

/// Returns whether `start` contains no byte that only binary data contains. UTF-16 text is
/// recognized by its byte order mark.
fn is_text(start: &[u8]) -> bool {
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let has_mark = start.starts_with(b"\xfe\xff") || start.starts_with(b"\xff\xfe");
    has_mark || !start.iter().any(is_binary)
}

/// Returns whether a whole, short body can be decoded by `coding`.
fn can_decode(coding: Coding, body: &[u8]) -> bool {
    let mut codec = Codec::new(coding, &mut None);
    let (mut at, mut written, mut room) = (0, 0, [0; 1 << 10]);
    while written < TRIAL_BYTES {
        let moved = codec.step(&body[at..], &mut room);
        at += moved.read;
        written += moved.written;
        match moved.flow {
            Flow::End => return true,
            Flow::Broken(_) => return false,
            Flow::Continue if moved.read + moved.written == 0 => return false,
            Flow::Continue => {}
        }
    }
    true
}
