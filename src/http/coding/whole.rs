//! Decodes a gzip or zlib body in one call of libdeflate, at a third of the cost of a decoder that
//! can stop.
//!
//! The call can't be interrupted. So it is made only for a body that is there as a whole, and with
//! room for as much text as was planned: as the trailer of a gzip member says, or a multiple of a
//! zlib body. Nothing depends on whether the plan is right. Text that doesn't fit, a fault, a wrong
//! checksum, and a body of several members are left to the other decoder, which begins at the first
//! byte.
//!
//! Law: the result is that of the other decoder, or none.
//! Cost: 0.7 ns a byte of text on pages. A call that fails costs at most the units planned.
//! Source: RFC 1950 section 2.2, RFC 1952 section 2.3.1.

use super::Coding;
use super::label::{self, GZIP};
use libdeflater::Decompressor;
use memchr::memmem;

/// The first bytes of each gzip member: the magic number and the method, which is always deflate.
const MEMBER: [u8; 3] = [GZIP[0], GZIP[1], 8];
/// The length of the shortest gzip member, in bytes: header, an empty block, and trailer.
const MEMBER_BYTES_MIN: usize = 20;
/// The maximum number of bytes of text for each byte of deflate data.
const RATIO_MAX: usize = 1_032;
/// The room for the text of a zlib body, as a multiple of its length. Pages are a fourth to an
/// eighth of their text.
const ZLIB_RATIO: usize = 10;

/// How a body can be decoded in one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) coding: Coding,
    /// The room for the text, in bytes.
    room: usize,
    /// The most units of work that the call takes.
    pub(super) units: usize,
}

/// Returns how `body`, the whole of it, can be decoded in one call to at most `bytes_max` bytes;
/// `None` if it can't.
pub(super) fn plan(coding: Coding, body: &[u8], bytes_max: u64) -> Option<Plan> {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let room = match coding {
        Coding::Gzip if body.len() >= MEMBER_BYTES_MIN && body.starts_with(&MEMBER) => {
            let said = u32::from_le_bytes(*body.last_chunk()?) as usize;
            Some(said).filter(|&said| said <= bytes_max.min(body.len() * RATIO_MAX))
        }
        Coding::Deflate if label::is_zlib(*body.first_chunk()?) => {
            Some((body.len() * ZLIB_RATIO).min(bytes_max))
        }
        _ => None,
    }?;
    Some(Plan { coding, room, units: coding.units(body.len(), room) })
}

/// The decoder.
pub(super) struct Whole(Decompressor);

impl Whole {
    pub(super) fn new() -> Self {
        Self(Decompressor::new())
    }

    /// Decodes `body` as planned, and appends the text to `out`. Returns its length; `None` if that
    /// failed, and then `out` is unchanged.
    pub(super) fn decode(&mut self, plan: Plan, body: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        out.resize(start + plan.room, 0);
        let text = &mut out[start..];
        let result = match plan.coding {
            Coding::Gzip => self.0.gzip_decompress(body, text),
            _ => self.0.zlib_decompress(body, text),
        };
        let is_all = |written: &usize| plan.coding != Coding::Gzip || !has_second(body, *written);
        let written = result.ok().filter(is_all);
        out.truncate(start + written.unwrap_or(0));
        written
    }
}

/// Returns whether a gzip body, of which the first member was decoded to `written` bytes, has more
/// members. The library would end after the first, and not say so. The bytes that begin a member
/// may be anywhere in the data; but only behind the end of a member are they preceded by the length
/// of its text.
fn has_second(body: &[u8], written: usize) -> bool {
    let len = (written as u32).to_le_bytes();
    memmem::find_iter(body, &MEMBER).any(|at| body[..at].ends_with(&len))
}
