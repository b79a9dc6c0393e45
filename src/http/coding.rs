//! Decodes content codings step by step, within a work budget and a size cap.
//!
//! [`Decoder`] takes the payload in pieces and appends the decoded text to a buffer. A call stays
//! within its budget, so that a decompression bomb can't stall a turn of the loop, and a body is at
//! most as long as its cap, so that it can't fill memory: 52 bytes of brotli can expand to 64 MiB,
//! and no compression ratio separates bombs from honest bodies.
//!
//! Work is counted at every layer: the bytes written, or the bytes read times a weight, whichever
//! is more. Input without output also costs time: a block of deflate, a metablock of brotli or a
//! frame of zstd builds tables even if it is empty. The weights are measured.
//!
//! A gzip or zlib body is decoded in one call, at a third of the cost, if all of it is there and
//! the budget covers it (module `whole`, decision 118).
//!
//! Laws:
//! - How the payload is split and how large the budgets are changes no byte of the result, unless
//!   the body is broken and coded in brotli.
//! - A broken or truncated body yields everything that could be decoded before the fault, at every
//!   layer. brotli may lose the text of 4 KiB of input, zstd that of the broken block.
//! - The windows of all decoders are bounded: 32 KiB (gzip, deflate), 16 MiB (br), 8 MiB (zstd).
//!
//! The decoder is as lenient as browsers. Unknown names of codings are ignored. A body that is not
//! in the coding that its label names is kept as it is (module `label`). `deflate` may come with or
//! without its zlib wrapper, or be gzip. gzip may have several members. Bytes after the end are
//! ignored. A wrong checksum or length of gzip or zlib is no fault, because it doesn't say which
//! bytes are wrong ([`Decoder::is_sum_wrong`]); a wrong checksum of zstd is a fault after the whole
//! text.
//!
//! Cost: nothing is allocated for an output step; an inflate window is reused from body to body.
//! Source: RFC 9110 section 8.4; RFC 1950, 1951, 1952, 7932, 8878 and 9659.

mod codec;
mod label;
mod sum;
#[cfg(test)]
mod tests;
mod whole;

use codec::{Codec, Flow, Inflate};
use smallvec::SmallVec;
use std::fmt;
use whole::Whole;

/// A content coding that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip`, also written `x-gzip`.
    Gzip,
    /// `deflate`: zlib, or raw deflate as some servers send it.
    Deflate,
    /// `br`, the coding brotli.
    Brotli,
    /// `zstd`, the coding Zstandard.
    Zstd,
}

impl Coding {
    /// All codings that can be decoded.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd];

    /// Returns the name of the coding in header fields.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the coding with this name, in any case; `None` if it can't be decoded.
    pub fn of(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }

    /// Returns the minimum cost of a byte of input, in units of work. Measured on bodies of nothing
    /// but empty blocks, metablocks and frames, in ns a byte: deflate 35, zstd 19, brotli 260 to
    /// 415.
    fn in_weight(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate => 8,
            Self::Brotli => 32,
            Self::Zstd => 16,
        }
    }

    /// Returns the cost of decoding `read` bytes to `written` bytes, in units of work.
    fn units(self, read: usize, written: usize) -> usize {
        written.max(self.in_weight().saturating_mul(read))
    }

    fn step_bytes(self) -> StepBytes {
        match self {
            Self::Gzip | Self::Deflate => StepBytes::LARGE,
            Self::Brotli | Self::Zstd => StepBytes::SMALL,
        }
    }
}

/// The maximum number of codings that one body may have.
pub const CODINGS_MAX: usize = 3;

/// The codings that a Content-Encoding field lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    /// The known codings, in the order in which they were applied; usually none or one.
    pub known: SmallVec<[Coding; CODINGS_MAX]>,
    /// True if the field lists unknown names, which are ignored.
    pub has_unknown: bool,
    /// True if the field lists more than [`CODINGS_MAX`] codings; such a body is not decoded.
    pub too_many: bool,
}

/// Parses the names of codings, which are listed in the order in which they were applied.
pub(super) fn parse<'a>(names: impl Iterator<Item = &'a [u8]>) -> Codings {
    let mut codings = Codings::default();
    for name in names {
        // `none` is not in the standard, but servers and clients use it like `identity`.
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

/// The limits on decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The maximum length of a decoded body, in bytes. If codings are stacked, it also limits the
    /// output of each.
    pub decoded_bytes_max: u64,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { decoded_bytes_max: 64 << 20 }
    }
}

/// The result of one call of [`Decoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The number of bytes, from the start of the input, that were used. Bytes after the end of the
    /// body count as used.
    pub used: usize,
    /// The units of work done by all stacked codings. It exceeds the budget by one step at most.
    pub work: usize,
    /// The state of the decoder, which says what the caller must do next.
    pub state: State,
}

/// The state of a decoder after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The budget is spent: call again with the unused input.
    More,
    /// All input is used: call again when more arrives.
    Hungry,
    /// The body is complete.
    Done,
    /// The bytes are damaged, or not in the coding that was named; the text is the reason.
    Broken(&'static str),
    /// The body exceeds [`DecodeLimits::decoded_bytes_max`]. The bytes up to that limit were
    /// written.
    TooLarge,
    /// The input ended before the body did.
    CutShort,
}

/// The most bytes that one step reads and writes. Input is limited so that input without output
/// can't stall a turn either.
#[derive(Clone, Copy)]
struct StepBytes {
    read: usize,
    written: usize,
}

impl StepBytes {
    const SMALL: Self = Self { read: 4 << 10, written: 16 << 10 };
    /// For decoders that copy their window after each step: half as fast again as small ones.
    const LARGE: Self = Self { read: 32 << 10, written: 128 << 10 };
}

/// Decodes the content codings of one body after the other.
pub struct Decoder {
    limits: DecodeLimits,
    /// One stage for each coding, in the order of decoding. Never empty after `begin`.
    stages: SmallVec<[Stage; 1]>,
    /// An inflater kept from an earlier body, so that its tables and window are not allocated
    /// again.
    spare: Option<Box<Inflate>>,
    /// The decoder of bodies in one call; `None` before the first.
    whole: Option<Whole>,
    /// Whether nothing of the body was passed to [`Decoder::decode`] yet.
    is_fresh: bool,
    /// The final state, once it is reached; `None` before.
    last: Option<State>,
}

/// The decoder of one coding.
struct Stage {
    /// The coding; `None` for a body without one.
    coding: Option<Coding>,
    codec: Codec,
    /// The first bytes of the input. They are first checked against the name of the coding, and
    /// then decoded.
    start: SmallVec<[u8; 4]>,
    /// The number of bytes of `start` that are decoded; `None` until they were checked.
    start_taken: Option<usize>,
    is_mislabelled: bool,
    /// The output for the next stage, of which that stage has used `taken` bytes. Empty in the last
    /// stage, which writes to the caller's buffer.
    buffer: Vec<u8>,
    taken: usize,
    in_bytes: u64,
    out_bytes: u64,
    /// True if the last step filled its output space, so that there may be more output without
    /// input.
    is_full: bool,
    is_ended: bool,
    /// The reason why the stage ended irregularly: a fault of its own, or of the stage before it.
    /// What was decoded until then still passes through the later stages. `None` if there was no
    /// fault.
    fault: Option<State>,
}

/// The input of one stage.
#[derive(Clone, Copy)]
struct Source<'a> {
    bytes: &'a [u8],
    /// True if no more input follows. The next field is the reason, if the input ended irregularly.
    is_all: bool,
    fault: Option<State>,
}

/// The result of one step of a stage.
struct Step {
    /// The number of bytes of the source that were used.
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
    /// Creates a decoder; [`Decoder::begin`] must be called before it is used.
    pub fn new(limits: DecodeLimits) -> Self {
        let stages = SmallVec::new();
        Self { limits, stages, spare: None, whole: None, is_fresh: true, last: None }
    }

    /// Begins a body to which `codings` were applied, in this order.
    pub fn begin(&mut self, codings: &[Coding]) {
        self.end();
        self.last = None;
        self.is_fresh = true;
        for coding in codings.iter().rev() {
            let codec = Codec::new(*coding, &mut self.spare);
            self.stages.push(Stage::new(Some(*coding), codec));
        }
        if codings.is_empty() {
            self.stages.push(Stage::new(None, Codec::Copy));
        }
    }

    /// Ends the present body, if there is one: frees its windows, which take up to 16 MiB a coding.
    /// An inflater is kept for the next body.
    pub fn end(&mut self) {
        for stage in self.stages.drain(..) {
            if let Codec::Inflate(inflate) = stage.codec {
                self.spare = Some(inflate);
            }
        }
    }

    /// Returns the budget that lets [`Decoder::decode`] decode `body`, the whole of it, in one call
    /// at a third of the usual cost; `None` if its coding or its length doesn't permit that.
    pub fn units_at_once(&self, body: &[u8]) -> Option<usize> {
        Some(self.plan(body)?.units)
    }

    fn plan(&self, body: &[u8]) -> Option<whole::Plan> {
        let [Stage { coding: Some(coding), .. }] = &self.stages[..] else { return None };
        whole::plan(*coding, body, self.limits.decoded_bytes_max)
    }

    /// Returns whether the current body is not in a coding that Content-Encoding names, and was
    /// kept as it is.
    pub fn is_mislabelled(&self) -> bool {
        self.stages.iter().any(|stage| stage.is_mislabelled)
    }

    /// Returns whether a checksum or length after the data of any coding is wrong.
    pub fn is_sum_wrong(&self) -> bool {
        self.stages.iter().any(|stage| stage.codec.is_sum_wrong())
    }

    /// Returns the number of decoded bytes of the current body so far.
    pub fn decoded_bytes(&self) -> u64 {
        self.stages.last().map_or(0, |stage| stage.out_bytes)
    }

    /// Decodes `input` and appends the result to `out`, with a `budget` of so many units of work
    /// (not zero). `ended` is true if no input will follow. Once a final state is reached, every
    /// further call returns it.
    ///
    /// # Panics
    /// Panics if no body was begun, or the last one was ended.
    pub fn decode(
        &mut self,
        input: &[u8],
        ended: bool,
        out: &mut Vec<u8>,
        budget: usize,
    ) -> Decoded {
        assert!(!self.stages.is_empty(), "decode without begin");
        let (mut used, mut work) = (0, 0);
        if std::mem::take(&mut self.is_fresh) && ended {
            work = self.decode_whole(input, out, budget);
        }
        loop {
            if let Some(state) = self.last {
                return Decoded { used: input.len(), work, state };
            }
            if work >= budget {
                return Decoded { used, work, state: State::More };
            }
            match self.step_any(&input[used..], ended, out, budget - work) {
                Some(step) => {
                    used += step.used;
                    work += step.work;
                }
                None => return Decoded { used, work, state: State::Hungry },
            }
        }
    }

    /// Tries to decode `body`, which is all of it, in one call. If that fails, nothing has changed.
    /// Returns the units of work done.
    fn decode_whole(&mut self, body: &[u8], out: &mut Vec<u8>, budget: usize) -> usize {
        let Some(plan) = self.plan(body).filter(|plan| plan.units <= budget) else { return 0 };
        let whole = self.whole.get_or_insert_with(Whole::new);
        let Some(written) = whole.decode(plan, body, out) else { return plan.units };
        let stage = &mut self.stages[0];
        stage.out_bytes = written as u64;
        stage.is_ended = true;
        self.last = Some(State::Done);
        plan.coding.units(body.len(), written)
    }

    /// Runs one step of the last stage that can do work. Later stages come first, so that the
    /// buffers between them are drained before they fill. Returns `None` if all stages wait for
    /// input.
    fn step_any(
        &mut self,
        input: &[u8],
        ended: bool,
        out: &mut Vec<u8>,
        room: usize,
    ) -> Option<Step> {
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

    /// Runs one step of a stage from `source` into `target`, or into the stage's own buffer.
    /// Returns `None` if the stage waits for input.
    fn step(
        &mut self,
        source: Source<'_>,
        target: Option<&mut Vec<u8>>,
        room: usize,
        bytes_max: u64,
    ) -> Option<Step> {
        let Some(start_taken) = self.start_taken else {
            return self.check_label(source);
        };
        let start = std::mem::take(&mut self.start);
        let own = &start[start_taken..];
        let step = if !own.is_empty() {
            let step = self.run(own, target, room, bytes_max);
            self.start_taken = Some(start_taken + step.used);
            Some(Step { used: 0, ..step })
        } else if !source.bytes.is_empty() || self.is_full {
            let most =
                (room / self.in_weight()).clamp(StepBytes::SMALL.read, self.step_bytes().read);
            let few = &source.bytes[..source.bytes.len().min(most)];
            Some(self.run(few, target, room, bytes_max))
        } else if source.is_all {
            // An empty body is valid in any coding: replies without content keep the field.
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

    /// Collects the first bytes, which show whether the input is in the coding that
    /// Content-Encoding names. Returns `None` if more input is needed.
    fn check_label(&mut self, source: Source<'_>) -> Option<Step> {
        let coding = self.coding.expect("without a coding there is no label");
        let used = source.bytes.len().min(label::sniff_bytes(coding) - self.start.len());
        self.start.extend_from_slice(&source.bytes[..used]);
        let is_whole = source.is_all && used == source.bytes.len();
        if self.start.len() == label::sniff_bytes(coding) || is_whole {
            self.start_taken = Some(0);
            if !label::fits(coding, &self.start, is_whole) {
                (self.codec, self.is_mislabelled) = (Codec::Copy, true);
            }
        } else if used == 0 {
            return None;
        }
        Some(Step { used, work: used })
    }

    /// Runs one step of the stage's decoder.
    fn run(
        &mut self,
        source: &[u8],
        target: Option<&mut Vec<u8>>,
        room: usize,
        bytes_max: u64,
    ) -> Step {
        let room_max = self.step_bytes().written;
        let target = target.unwrap_or_else(|| {
            self.taken = 0;
            self.buffer.clear();
            &mut self.buffer
        });
        // One byte more than the limit is offered, because a body that fills the limit exactly is
        // not too large.
        let left = bytes_max - self.out_bytes;
        let room = room.min(room_max).min(usize::try_from(left).unwrap_or(usize::MAX - 1) + 1);
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
            Flow::Continue if is_stuck => Some(State::Broken("decoder makes no progress")),
            Flow::Continue | Flow::End => None,
            Flow::Broken(reason) => Some(State::Broken(reason)),
        };
        self.is_ended = self.fault.is_some() || matches!(moved.flow, Flow::End);
        let work = self.undoes().map_or(moved.written.max(moved.read), |coding| {
            coding.units(moved.read, moved.written)
        });
        Step { used: moved.read, work }
    }

    /// Returns the coding that the stage undoes; `None` if it copies its input.
    fn undoes(&self) -> Option<Coding> {
        self.coding.filter(|_| !self.is_mislabelled)
    }

    fn in_weight(&self) -> usize {
        self.undoes().map_or(1, Coding::in_weight)
    }

    fn step_bytes(&self) -> StepBytes {
        self.undoes().map_or(StepBytes::SMALL, Coding::step_bytes)
    }
}
