//! Content codings, undone piece by piece under a budget and a cap.
//!
//! [`Decoder`] takes the payload as it comes and appends the decoded text to a buffer. A call does
//! work within its budget, so that a bomb can't stall a turn, and a body is at most its cap long,
//! so that it can't fill memory: 52 bytes of brotli may stand for 64 MiB, no ratio separates the
//! good from the bad.
//!
//! Work is counted at every layer: the bytes written, or the bytes read times a weight, whichever
//! is more. Input without output costs, too: a block of deflate, a metablock of brotli or a frame
//! of zstd has tables of its own, however empty it is. The weights are measured.
//!
//! Laws:
//! * How the payload is cut and how large the budgets are changes no byte of the result, unless
//!   the body is broken and coded in brotli.
//! * A broken or cut body yields all that could be decoded before the fault, at every layer. brotli
//!   may lose the text of 4 KiB of input, zstd that of the broken block.
//! * The windows of all decoders are bounded: 32 KiB (gzip, deflate), 16 MiB (br), 8 MiB (zstd).
//!
//! As lenient as browsers: names of codings that nobody knows stand for none; a body that isn't in
//! the coding that its label names is taken as it is (`label`); `deflate` may come with or
//! without its zlib wrapper, or be gzip; gzip may have several members; what follows the end is
//! ignored. A checksum or length of gzip or zlib that is wrong is no fault, for it doesn't say
//! which bytes are wrong ([`Decoder::is_sum_wrong`]); a checksum of zstd is a fault behind the
//! whole text.
//!
//! Cost: per output step of 16 KiB, nothing allocated; an inflate window is kept from body to body.
//! Source: RFC 9110 section 8.4; RFC 1950, 1951, 1952, 7932, 8878 and 9659.

mod codec;
mod label;
mod sum;
#[cfg(test)]
mod tests;

use codec::{Codec, Flow, Inflate};
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

    /// What a byte of input costs at least, in units of work. Measured on bodies of nothing but
    /// empty blocks, metablocks and frames, in ns a byte: deflate 35, zstd 19, brotli 260 to 415.
    fn in_weight(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate => 8,
            Self::Brotli => 32,
            Self::Zstd => 16,
        }
    }
}

/// Most codings one body may be wrapped in.
pub const CODINGS_MAX: usize = 3;

/// What Content-Encoding says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    /// Those known, in the order in which they were applied; none at all is the usual case.
    pub known: SmallVec<[Coding; CODINGS_MAX]>,
    /// Names that nobody knows are among them: taken for none at all.
    pub has_unknown: bool,
    /// There are more than [`CODINGS_MAX`]: the body is not decoded.
    pub too_many: bool,
}

/// Codings by their names, in the order in which they were applied.
pub(super) fn parse<'a>(names: impl Iterator<Item = &'a [u8]>) -> Codings {
    let mut codings = Codings::default();
    for name in names {
        // `none` is no coding of the standard; servers and clients agree on what it means.
        if name.eq_ignore_ascii_case(b"identity") || name.eq_ignore_ascii_case(b"none") {
            continue;
        }
        match Coding::of(name) {
            Some(coding) if codings.known.len() < CODINGS_MAX => codings.known.push(coding),
            Some(_) => codings.too_many = true,
            None => codings.has_unknown = true,
        }
    }
    codings
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
    /// Units of work done, at all layers; more than the budget by one step at most.
    pub work: usize,
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
const INPUT_BYTES: usize = 4 << 10;

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
    /// `None` for a body without any.
    coding: Option<Coding>,
    codec: Codec,
    /// The first bytes of the input, by which its label is judged; then they are decoded first.
    start: SmallVec<[u8; 4]>,
    /// Bytes of `start` decoded; `None` while the label is not judged.
    start_taken: Option<usize>,
    is_mislabelled: bool,
    /// Output for the next stage, behind what that has `taken`. Empty in the last stage.
    buffer: Vec<u8>,
    taken: usize,
    in_bytes: u64,
    out_bytes: u64,
    /// The last step filled all the room it had: there may be more without input.
    is_full: bool,
    is_ended: bool,
    /// Why it ended, if not in order: its own fault, or that of the stage before it. What was
    /// decoded until then still goes through the stages behind it.
    fault: Option<State>,
}

/// What a stage decodes.
#[derive(Clone, Copy)]
struct Source<'a> {
    bytes: &'a [u8],
    /// Whether nothing follows, and why, if not in order.
    is_all: bool,
    fault: Option<State>,
}

/// What one step did.
struct Step {
    /// Bytes of its source used.
    used: usize,
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
            self.stages.push(Stage::new(Some(*coding), codec));
        }
        if codings.is_empty() {
            self.stages.push(Stage::new(None, Codec::Copy));
        }
    }

    /// Whether the body was not in a coding that its label names, so that it was taken as it is.
    pub fn is_mislabelled(&self) -> bool {
        self.stages.iter().any(|stage| stage.is_mislabelled)
    }

    /// Whether a checksum or length behind the data is wrong, at any layer.
    pub fn is_sum_wrong(&self) -> bool {
        self.stages.iter().any(|stage| stage.codec.is_sum_wrong())
    }

    /// Bytes written of this body.
    pub fn decoded_bytes(&self) -> u64 {
        self.stages.last().map_or(0, |stage| stage.out_bytes)
    }

    /// Decodes `input` to the end of `out`, within `budget` units of work (not zero). `ended` says
    /// that no input will follow. A final state is answered again by every further call.
    ///
    /// # Panics
    /// If no body was begun.
    pub fn decode(
        &mut self,
        input: &[u8],
        ended: bool,
        out: &mut Vec<u8>,
        budget: usize,
    ) -> Decoded {
        assert!(!self.stages.is_empty(), "decode without begin");
        let (mut used, mut work) = (0, 0);
        loop {
            if let Some(state) = self.last {
                return Decoded { used: input.len(), work, state };
            }
            if work >= budget {
                return Decoded { used, work, state: State::More };
            }
            match self.turn(&input[used..], ended, out, budget - work) {
                Some(step) => {
                    used += step.used;
                    work += step.work;
                }
                None => return Decoded { used, work, state: State::Hungry },
            }
        }
    }

    /// Lets the last stage that can do something do one step; later stages first, so that buffers
    /// between them empty before they fill. `None` if all wait for input.
    fn turn(&mut self, input: &[u8], ended: bool, out: &mut Vec<u8>, room: usize) -> Option<Step> {
        let last = self.stages.len() - 1;
        for index in (0..=last).rev() {
            let (before, from) = self.stages.split_at_mut(index);
            let stage = &mut from[0];
            if stage.is_ended || stage.taken < stage.buffer.len() {
                continue;
            }
            let (bytes, is_all, fault) = match before.last() {
                Some(before) => (&before.buffer[before.taken..], before.is_ended, before.fault),
                None => (input, ended, None),
            };
            let source = Source { bytes, is_all, fault };
            let target = (index == last).then_some(&mut *out);
            let bytes_max = self.limits.decoded_bytes_max;
            let Some(mut step) = stage.step(source, target, room, bytes_max) else {
                continue;
            };
            if index == last && stage.is_ended {
                self.last = Some(stage.fault.unwrap_or(State::Done));
            }
            if let Some(before) = before.last_mut() {
                before.taken += step.used;
                step.used = 0;
            }
            return Some(step);
        }
        None
    }
}

impl Stage {
    fn new(coding: Option<Coding>, codec: Codec) -> Self {
        Self {
            coding,
            codec,
            start: SmallVec::new(),
            start_taken: coding.is_none().then_some(0),
            is_mislabelled: false,
            buffer: Vec::new(),
            taken: 0,
            in_bytes: 0,
            out_bytes: 0,
            is_full: false,
            is_ended: false,
            fault: None,
        }
    }

    /// One step from `source` into `target`, or into the stage's own buffer; `None` if it waits for
    /// input.
    fn step(
        &mut self,
        source: Source<'_>,
        target: Option<&mut Vec<u8>>,
        room: usize,
        bytes_max: u64,
    ) -> Option<Step> {
        let Some(start_taken) = self.start_taken else {
            return self.judge_label(source);
        };
        let start = std::mem::take(&mut self.start);
        let own = &start[start_taken..];
        let step = if !own.is_empty() {
            let step = self.run(own, target, room, bytes_max);
            self.start_taken = Some(start_taken + step.used);
            Some(Step { used: 0, ..step })
        } else if !source.bytes.is_empty() || self.is_full {
            let few = &source.bytes[..source.bytes.len().min(INPUT_BYTES)];
            Some(self.run(few, target, room, bytes_max))
        } else if source.is_all {
            // No body at all is fine in any coding: replies without content keep the field.
            let is_cut = self.in_bytes > 0 && !self.codec.may_end();
            self.is_ended = true;
            self.fault = source.fault.or(is_cut.then_some(State::CutShort));
            Some(Step { used: 0, work: 0 })
        } else {
            None
        };
        self.start = start;
        step
    }

    /// Collects the bytes that say whether the input is in the coding at all.
    fn judge_label(&mut self, source: Source<'_>) -> Option<Step> {
        let coding = self.coding.expect("without a coding there is no label");
        let used = source.bytes.len().min(label::look_bytes(coding) - self.start.len());
        self.start.extend_from_slice(&source.bytes[..used]);
        let is_whole = source.is_all && used == source.bytes.len();
        if self.start.len() == label::look_bytes(coding) || is_whole {
            self.start_taken = Some(0);
            if !label::fits(coding, &self.start, is_whole) {
                (self.codec, self.is_mislabelled) = (Codec::Copy, true);
            }
        } else if used == 0 {
            return None;
        }
        Some(Step { used, work: used })
    }

    /// One step of the codec.
    fn run(
        &mut self,
        source: &[u8],
        target: Option<&mut Vec<u8>>,
        room: usize,
        bytes_max: u64,
    ) -> Step {
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
        let is_stuck = moved.read + moved.written == 0 && !was_full;
        self.fault = match moved.flow {
            _ if moved.written as u64 > left => Some(State::TooLarge),
            Flow::Going if is_stuck => Some(State::Broken("decoder makes no progress")),
            Flow::Going | Flow::End => None,
            Flow::Broken(reason) => Some(State::Broken(reason)),
        };
        self.is_ended = self.fault.is_some() || matches!(moved.flow, Flow::End);
        let weight = self.coding.filter(|_| !self.is_mislabelled).map_or(1, Coding::in_weight);
        Step { used: moved.read, work: moved.written.max(weight * moved.read) }
    }
}
