//! Content codings, undone piece by piece under a budget and a cap.
//!
//! [`Decoder`] takes the payload as it comes and appends what it says to a buffer. A call writes at
//! most its budget, so that a bomb can't stall a turn, and a body at most its cap, so that it can't
//! fill memory: 52 bytes of brotli may stand for 64 MiB, no ratio tells the good from the bad.
//!
//! Laws:
//! * How the payload is cut and how large the budgets are changes no byte of the result, unless
//!   the body is broken and coded in brotli, zstd or twice: those decoders keep to themselves what
//!   they made of the piece that holds the fault (at most 16 KiB of text for zstd).
//! * A broken or cut body yields all that could be decoded before the fault, but for that piece.
//! * The windows of all decoders are bounded: 32 KiB (gzip, deflate), 16 MiB (br), 8 MiB (zstd).
//!
//! As lenient as browsers: `deflate` may come with or without its zlib wrapper; gzip may have
//! several members; what follows the end is ignored; checksums behind the data may be wrong or
//! missing, for they can't tell which bytes are, and what was archived is the raw body anyway.
//!
//! Cost: per output step of 16 KiB, nothing allocated; an inflate window is kept from body to body.
//! Source: RFC 9110 section 8.4; RFC 1950, 1951, 1952, 7932, 8878 and 9659.

mod codec;
#[cfg(test)]
mod tests;

use codec::{Codec, Flow, Inflate, Moved};
use smallvec::SmallVec;
use std::fmt;

/// One content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip`, also written `x-gzip`.
    Gzip,
    /// `deflate`: zlib, or bare deflate as some servers send it.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd];

    /// Its name in header fields.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The coding of that name, in any case.
    pub fn of(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// Most codings one body may be wrapped in.
pub const CODINGS_MAX: usize = 3;

/// What Content-Encoding says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Codings {
    /// These, in the order in which they were applied; none at all is the usual case.
    Known(SmallVec<[Coding; CODINGS_MAX]>),
    /// One that can't be undone, or more than [`CODINGS_MAX`].
    Unknown,
}

/// Codings by their names, in the order in which they were applied.
pub(super) fn parse<'a>(names: impl Iterator<Item = &'a [u8]>) -> Codings {
    let mut known = SmallVec::new();
    for name in names {
        // `none` is no coding of the standard; servers and clients agree on what it means.
        if name.eq_ignore_ascii_case(b"identity") || name.eq_ignore_ascii_case(b"none") {
            continue;
        }
        match Coding::of(name) {
            Some(coding) if known.len() < CODINGS_MAX => known.push(coding),
            _ => return Codings::Unknown,
        }
    }
    Codings::Known(known)
}

/// Caps on decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Longest decoded body, in bytes; also of each layer where codings are stacked.
    pub decoded_bytes_max: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { decoded_bytes_max: 64 << 20 }
    }
}

/// What one call of [`Decoder::decode`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input used, from the front. Behind the end of the body all of it counts as
    /// used.
    pub used: usize,
    /// What next.
    pub state: State,
}

/// Where decoding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The budget is spent: call again with what was not used.
    More,
    /// All input is used: call again when there is more.
    Hungry,
    /// The body is complete.
    Done,
    /// The bytes are not in that coding, or damaged: what is wrong.
    Broken(&'static str),
    /// The body passes [`DecodeLimits::decoded_bytes_max`]; that much of it was written.
    TooLarge,
    /// The input ended before the body did.
    CutShort,
}

/// Bytes written at a time, and size of the buffers between stacked codings.
const STEP_BYTES: usize = 16 << 10;
/// Bytes looked at in one step: input that yields nothing must not stall a turn either.
const INPUT_BYTES: usize = 64 << 10;

/// Undoes the codings of one body, then of the next.
pub struct Decoder {
    limits: DecodeLimits,
    /// In the order of decoding. Never empty once begun.
    stages: SmallVec<[Stage; 1]>,
    /// An inflater between two bodies: its tables and window are not made anew.
    spare: Option<Box<Inflate>>,
    /// The state once it is final.
    last: Option<State>,
}

/// One coding under way.
struct Stage {
    codec: Codec,
    /// Output for the next stage, behind what that has `taken`. Empty in the last stage.
    buffer: Vec<u8>,
    taken: usize,
    in_bytes: u64,
    out_bytes: u64,
    /// The last step filled all the room it had: there may be more without input.
    is_full: bool,
    is_ended: bool,
}

/// What one step came to.
struct Turn {
    /// Bytes of the decoder's input used.
    used: usize,
    /// Bytes read or written by the stage, whichever is more: what is paid from the budget.
    work: usize,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Decoder");
        debug.field("decoded_bytes", &self.decoded_bytes()).field("last", &self.last);
        debug.finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder to begin bodies with.
    pub fn new(limits: DecodeLimits) -> Self {
        Self { limits, stages: SmallVec::new(), spare: None, last: None }
    }

    /// From here on a body is decoded to which `codings` were applied in this order.
    pub fn begin(&mut self, codings: &[Coding]) {
        for stage in self.stages.drain(..) {
            if let Codec::Inflate(inflate) = stage.codec {
                self.spare = Some(inflate);
            }
        }
        self.last = None;
        for coding in codings.iter().rev() {
            let codec = Codec::new(*coding, &mut self.spare);
            self.stages.push(Stage::new(codec));
        }
        if codings.is_empty() {
            self.stages.push(Stage::new(Codec::Copy));
        }
    }

    /// Bytes written of this body.
    pub fn decoded_bytes(&self) -> u64 {
        self.stages.last().map_or(0, |stage| stage.out_bytes)
    }

    /// Decodes `input` to the end of `out`, writing at most `budget_bytes` (not zero). `ended` says
    /// that no input will follow. A final state is answered again by every further call.
    ///
    /// # Panics
    /// If no body was begun.
    pub fn decode(
        &mut self,
        input: &[u8],
        ended: bool,
        out: &mut Vec<u8>,
        budget_bytes: usize,
    ) -> Decoded {
        assert!(!self.stages.is_empty(), "decode without begin");
        let mut used = 0;
        let mut left = budget_bytes;
        loop {
            if let Some(state) = self.last {
                return Decoded { used: input.len(), state };
            }
            if left == 0 {
                return Decoded { used, state: State::More };
            }
            match self.turn(&input[used..], ended, out, left) {
                Ok(Some(turn)) => {
                    used += turn.used;
                    left = left.saturating_sub(turn.work);
                }
                Ok(None) => return Decoded { used, state: State::Hungry },
                Err(state) => self.last = Some(state),
            }
        }
    }

    /// Lets the last stage that can do something do one step; later stages first, so that buffers
    /// between them empty before they fill. `None` if all wait for input.
    fn turn(
        &mut self,
        input: &[u8],
        ended: bool,
        out: &mut Vec<u8>,
        room: usize,
    ) -> Result<Option<Turn>, State> {
        let last = self.stages.len() - 1;
        for index in (0..=last).rev() {
            let (before, from) = self.stages.split_at_mut(index);
            let stage = &mut from[0];
            if stage.is_ended || stage.taken < stage.buffer.len() {
                continue;
            }
            let (source, source_ended) = match before.last() {
                Some(before) => (&before.buffer[before.taken..], before.is_ended),
                None => (input, ended),
            };
            let target = (index == last).then_some(&mut *out);
            let bytes_max = self.limits.decoded_bytes_max;
            let Some(moved) = stage.step(source, source_ended, target, room, bytes_max)? else {
                continue;
            };
            if index == last && stage.is_ended {
                return Err(State::Done);
            }
            let work = moved.read.max(moved.written);
            let Some(before) = before.last_mut() else {
                return Ok(Some(Turn { used: moved.read, work }));
            };
            before.taken += moved.read;
            return Ok(Some(Turn { used: 0, work }));
        }
        Ok(None)
    }
}

impl Stage {
    fn new(codec: Codec) -> Self {
        Self {
            codec,
            buffer: Vec::new(),
            taken: 0,
            in_bytes: 0,
            out_bytes: 0,
            is_full: false,
            is_ended: false,
        }
    }

    /// One step from `source` into `target`, or into the stage's own buffer; `None` if it waits for
    /// input.
    fn step(
        &mut self,
        source: &[u8],
        source_ended: bool,
        target: Option<&mut Vec<u8>>,
        room: usize,
        bytes_max: u64,
    ) -> Result<Option<Moved>, State> {
        if source.is_empty() && !self.is_full {
            return if source_ended { self.end_of_input().map(Some) } else { Ok(None) };
        }
        let source = &source[..source.len().min(INPUT_BYTES)];
        let target = target.unwrap_or_else(|| {
            self.taken = 0;
            self.buffer.clear();
            &mut self.buffer
        });
        // Room for one byte past the cap: a body that fills the cap exactly is not too large.
        let left = bytes_max - self.out_bytes;
        let room = room.min(STEP_BYTES).min(usize::try_from(left).unwrap_or(usize::MAX - 1) + 1);
        let start = target.len();
        target.resize(start + room, 0);
        let moved = self.codec.step(source, &mut target[start..]);
        let kept = (moved.written as u64).min(left);
        target.truncate(start + usize::try_from(kept).expect("at most the room"));
        self.in_bytes += moved.read as u64;
        self.out_bytes += kept;
        let was_full = std::mem::replace(&mut self.is_full, moved.written == room);
        if moved.written as u64 > left {
            return Err(State::TooLarge);
        }
        match moved.flow {
            Flow::Going if moved.read + moved.written == 0 && !was_full => {
                Err(State::Broken("decoder makes no progress"))
            }
            Flow::Going => Ok(Some(moved)),
            Flow::End => {
                self.is_ended = true;
                Ok(Some(moved))
            }
            Flow::Broken(reason) => Err(State::Broken(reason)),
        }
    }

    /// No body at all is fine in any coding: replies without content keep the field.
    fn end_of_input(&mut self) -> Result<Moved, State> {
        if self.in_bytes > 0 && !self.codec.may_end() {
            return Err(State::CutShort);
        }
        self.is_ended = true;
        Ok(Moved { read: 0, written: 0, flow: Flow::End })
    }
}
