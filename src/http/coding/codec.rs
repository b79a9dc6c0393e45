//! One coding at a time: bytes in, bytes out, and whether it goes on.
//!
//! The decoders are libraries in the modes that bound their windows. What is our own is the
//! wrapping of deflate: gzip members (RFC 1952) and the zlib header (RFC 1950), read byte by byte.

use super::Coding;
use super::label::GZIP;
use super::sum::Sum;
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

/// Logarithm of the largest zstd window: 8 MiB, what RFC 9659 asks of the coding.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// What the library wants to see of a frame first.
const ZSTD_START_BYTES: usize = 5;
/// RFC 8878 section 3.1.1.2.
const ZSTD_BLOCK_HEADER_BYTES: usize = 3;

/// A zstd frame header is at least so long: fewer bytes behind a frame are no frame.
const ZSTD_HEADER_BYTES_MIN: usize = 6;

pub(super) enum Codec {
    /// No coding.
    Copy,
    Inflate(Box<Inflate>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Box<Zstd>),
}

/// What one step did.
pub(super) struct Moved {
    pub(super) read: usize,
    pub(super) written: usize,
    pub(super) flow: Flow,
}

/// How it goes on.
pub(super) enum Flow {
    Going,
    /// The body is complete; what follows is none of it.
    End,
    Broken(&'static str),
}

impl Codec {
    /// A decoder for `coding`; `spare` is used again if it fits.
    pub(super) fn new(coding: Coding, spare: &mut Option<Box<Inflate>>) -> Self {
        let mut inflate = |place| {
            let mut inflate = spare.take().unwrap_or_else(|| Box::new(Inflate::new()));
            inflate.begin(place);
            Self::Inflate(inflate)
        };
        match coding {
            Coding::Gzip => inflate(Place::Magic),
            Coding::Deflate => inflate(Place::Sniff),
            Coding::Brotli => {
                // Not `new`: that one accepts windows of up to 1 GiB.
                Self::Brotli(Box::new(BrotliState::new_strict(
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                )))
            }
            Coding::Zstd => Self::Zstd(Box::new(Zstd::new())),
        }
    }

    /// Decodes what fits from `input` into `output`.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        match self {
            Self::Copy => {
                let len = input.len().min(output.len());
                output[..len].copy_from_slice(&input[..len]);
                Moved { read: len, written: len, flow: Flow::Going }
            }
            Self::Inflate(inflate) => inflate.step(input, output),
            Self::Brotli(state) => step_brotli(state, input, output),
            Self::Zstd(zstd) => zstd.step(input, output),
        }
    }

    /// Whether checksum or length behind the data are other than those of what was decoded.
    pub(super) fn is_sum_wrong(&self) -> bool {
        matches!(self, Self::Inflate(inflate) if inflate.is_sum_wrong)
    }

    /// Whether the body may end where the input does.
    pub(super) fn may_end(&self) -> bool {
        match self {
            Self::Copy => true,
            Self::Inflate(inflate) => inflate.may_end(),
            Self::Brotli(_) => false,
            Self::Zstd(zstd) => zstd.may_end(),
        }
    }
}

/// The decoder hands out what it has when its input is used up, and nothing after a fault.
fn step_brotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &[u8],
    output: &mut [u8],
) -> Moved {
    let (mut read, mut written, mut total) = (0, 0, 0);
    let (mut input_left, mut output_left) = (input.len(), output.len());
    let result = BrotliDecompressStream(
        &mut input_left,
        &mut read,
        input,
        &mut output_left,
        &mut written,
        output,
        &mut total,
        state,
    );
    let flow = match result {
        BrotliResult::ResultSuccess => Flow::End,
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Flow::Going,
        BrotliResult::ResultFailure => Flow::Broken("bad brotli data"),
    };
    Moved { read, written, flow }
}

/// zstd frames, one behind the other.
pub(super) struct Zstd {
    inner: zstd::stream::raw::Decoder<'static>,
    /// A frame is complete.
    has_frame: bool,
    /// Bytes read since, or since the start.
    frame_bytes: usize,
    /// Bytes up to the next border: of the header, a block, or the checksum.
    wanted: usize,
    /// The last call filled its output: there may be more, which comes out alone.
    is_flushing: bool,
}

impl Zstd {
    fn new() -> Self {
        let mut inner = zstd::stream::raw::Decoder::new().expect("memory for a zstd decoder");
        inner
            .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))
            .expect("a window within the library's bounds");
        Self {
            inner,
            has_frame: false,
            frame_bytes: 0,
            wanted: ZSTD_START_BYTES,
            is_flushing: false,
        }
    }

    /// Up to the next border and no further: on a fault the library forgets what the same call had
    /// decoded before it.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        let most = if self.is_flushing { 0 } else { self.wanted };
        let mut source = InBuffer::around(&input[..input.len().min(most)]);
        let mut target = OutBuffer::around(output);
        let result = self.inner.run(&mut source, &mut target);
        let (read, written) = (source.pos(), target.pos());
        self.is_flushing = written == output.len();
        let flow = match result {
            Ok(0) => {
                self.has_frame = true;
                self.frame_bytes = 0;
                self.wanted = ZSTD_START_BYTES;
                Flow::Going
            }
            Ok(wanted) => {
                self.frame_bytes += read;
                // What it would like to see includes the header of the next block.
                let next =
                    if wanted > ZSTD_BLOCK_HEADER_BYTES { ZSTD_BLOCK_HEADER_BYTES } else { 0 };
                self.wanted = wanted - next;
                Flow::Going
            }
            Err(_) if self.may_end() => Flow::End,
            Err(_) => Flow::Broken("bad zstd data"),
        };
        Moved { read, written, flow }
    }

    /// Behind a frame, and not within the next.
    fn may_end(&self) -> bool {
        self.has_frame && self.frame_bytes < ZSTD_HEADER_BYTES_MIN
    }
}

/// Deflate data in one of its wrappers.
pub(super) struct Inflate {
    inner: Decompress,
    place: Place,
    wrapper: Wrapper,
    /// FLG of the gzip member: which parts its header has.
    flags: u8,
    /// A gzip member is complete: what follows may be none of the body.
    has_member: bool,
    /// Of the data that is being decoded.
    sum: Sum,
    /// Its last bytes, the first of them lowest.
    trailer: u64,
    is_sum_wrong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    Gzip,
    Deflate,
}

/// Where the next byte falls. Numbers count the bytes left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// First byte of a gzip member.
    Magic,
    /// Second byte.
    MagicEnd,
    Method,
    Flags,
    /// Time, level and system: said to no one.
    Fixed(u8),
    ExtraLen,
    ExtraLenEnd(u8),
    Extra(u16),
    Name,
    Comment,
    HeaderSum(u8),
    /// First byte of a `deflate` body: of a zlib header, or of the data.
    Sniff,
    /// Second byte, with the first.
    SniffEnd(u8),
    Data,
    /// Checksum and length behind the data.
    Trailer(u8),
    /// Behind a zlib body.
    End,
}

/// Bits of FLG, RFC 1952 section 2.3.1.
const HEADER_SUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;

/// CM 8, deflate, in both wrappers.
const METHOD_DEFLATE: u8 = 8;

impl Inflate {
    fn new() -> Self {
        Self {
            inner: Decompress::new(false),
            place: Place::Magic,
            wrapper: Wrapper::Gzip,
            flags: 0,
            has_member: false,
            sum: Sum::None,
            trailer: 0,
            is_sum_wrong: false,
        }
    }

    fn begin(&mut self, place: Place) {
        self.wrapper = if place == Place::Sniff { Wrapper::Deflate } else { Wrapper::Gzip };
        self.place = place;
        self.has_member = false;
        self.sum = Sum::None;
        self.is_sum_wrong = false;
        self.inner.reset(false);
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        let mut read = 0;
        while self.place != Place::Data {
            let Some(&byte) = input.get(read) else {
                return Moved { read, written: 0, flow: Flow::Going };
            };
            match self.wrapping(byte) {
                Ok(true) => read += 1,
                Ok(false) => {}
                // Behind a member, what isn't another one is padding or rubbish: ignored.
                Err(_) if self.has_member => return Moved { read, written: 0, flow: Flow::End },
                Err(reason) => return Moved { read, written: 0, flow: Flow::Broken(reason) },
            }
        }
        let mut moved = self.inflate(&input[read..], output);
        moved.read += read;
        moved
    }

    fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        let (in_before, out_before) = (self.inner.total_in(), self.inner.total_out());
        let result = self.inner.decompress(input, output, FlushDecompress::None);
        let moved = |before: u64, after: u64| usize::try_from(after - before).expect("a slice");
        let read = moved(in_before, self.inner.total_in());
        let written = moved(out_before, self.inner.total_out());
        self.sum.update(&output[..written]);
        let flow = match result {
            Ok(Status::Ok | Status::BufError) => Flow::Going,
            Ok(Status::StreamEnd) => self.end_of_data(),
            Err(_) => Flow::Broken("bad deflate data"),
        };
        Moved { read, written, flow }
    }

    fn end_of_data(&mut self) -> Flow {
        let trailer_bytes = self.sum.bytes();
        if trailer_bytes == 0 {
            return Flow::End;
        }
        self.has_member = true;
        self.place = Place::Trailer(trailer_bytes);
        self.inner.reset(false);
        Flow::Going
    }

    /// One byte of wrapping; whether it is used up.
    fn wrapping(&mut self, byte: u8) -> Result<bool, &'static str> {
        self.place = match self.place {
            Place::Magic if byte == 0x1f => Place::MagicEnd,
            Place::MagicEnd if byte == 0x8b => Place::Method,
            Place::Method if byte == METHOD_DEFLATE => Place::Flags,
            Place::Flags if byte & FLAGS_RESERVED == 0 => {
                self.flags = byte;
                self.sum = Sum::gzip();
                Place::Fixed(6)
            }
            Place::Magic | Place::MagicEnd | Place::Method | Place::Flags => {
                return Err("not gzip");
            }
            Place::Fixed(1) => self.behind_fixed(),
            Place::Fixed(left) => Place::Fixed(left - 1),
            Place::ExtraLen => Place::ExtraLenEnd(byte),
            Place::ExtraLenEnd(low) => match u16::from_le_bytes([low, byte]) {
                0 => self.behind_extra(),
                len => Place::Extra(len),
            },
            Place::Extra(1) => self.behind_extra(),
            Place::Extra(left) => Place::Extra(left - 1),
            Place::Name if byte == 0 => self.behind_name(),
            Place::Comment if byte == 0 => self.behind_comment(),
            Place::Name | Place::Comment => self.place,
            Place::HeaderSum(1) => Place::Data,
            Place::HeaderSum(left) => Place::HeaderSum(left - 1),
            Place::Sniff => Place::SniffEnd(byte),
            Place::SniffEnd(first) => return self.sniff(first, byte),
            Place::Trailer(left) => self.take_trailer(byte, left),
            Place::End => return Err("behind the body"),
            Place::Data => unreachable!("data is inflated"),
        };
        Ok(true)
    }

    /// A byte of checksum or length. A wrong one is no fault: it doesn't say which bytes are wrong.
    fn take_trailer(&mut self, byte: u8, left: u8) -> Place {
        self.trailer = self.trailer >> 8 | u64::from(byte) << 56;
        if left > 1 {
            return Place::Trailer(left - 1);
        }
        self.is_sum_wrong |= !self.sum.is(self.trailer);
        if self.wrapper == Wrapper::Gzip { Place::Magic } else { Place::End }
    }

    fn behind_fixed(&self) -> Place {
        if self.flags & EXTRA != 0 { Place::ExtraLen } else { self.behind_extra() }
    }

    fn behind_extra(&self) -> Place {
        if self.flags & NAME != 0 { Place::Name } else { self.behind_name() }
    }

    fn behind_name(&self) -> Place {
        if self.flags & COMMENT != 0 { Place::Comment } else { self.behind_comment() }
    }

    fn behind_comment(&self) -> Place {
        if self.flags & HEADER_SUM != 0 { Place::HeaderSum(2) } else { Place::Data }
    }

    /// Two bytes tell a zlib header (RFC 1950 section 2.2): method 8, a window of at most 32 KiB,
    /// together a multiple of 31; or the magic of gzip, which some servers send as `deflate`.
    /// Anything else is taken for bare deflate.
    fn sniff(&mut self, first: u8, second: u8) -> Result<bool, &'static str> {
        // As bare deflate it would begin with a block of the type that doesn't exist.
        if [first, second] == GZIP {
            (self.wrapper, self.place) = (Wrapper::Gzip, Place::Method);
            return Ok(true);
        }
        self.place = Place::Data;
        let is_zlib = first & 0x0f == METHOD_DEFLATE
            && first >> 4 <= 7
            && u16::from_be_bytes([first, second]).is_multiple_of(31);
        if is_zlib {
            let has_dictionary = second & 0x20 != 0;
            self.sum = Sum::zlib();
            return if has_dictionary { Err("zlib with a dictionary") } else { Ok(true) };
        }
        // No deflate block is short enough to say anything within its first byte.
        let fed = self.inner.decompress(&[first], &mut [0], FlushDecompress::None);
        if fed.is_err() || self.inner.total_in() != 1 || self.inner.total_out() != 0 {
            return Err("bad deflate data");
        }
        Ok(false)
    }

    /// Behind the data of a gzip member; a trailer that is missing or cut is forgiven.
    fn may_end(&self) -> bool {
        self.has_member && self.place != Place::Data
    }
}
