//! Decodes one content coding: bytes in, bytes out, and whether the body continues.
//!
//! The decoders are libraries, used in modes that bound their windows. The wrappers of deflate are
//! parsed here byte by byte: gzip members (RFC 1952) and the zlib header (RFC 1950).

use super::Coding;
use super::label::{self, GZIP};
use super::sum::Sum;
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

/// The base-2 logarithm of the largest zstd window: 8 MiB, as RFC 9659 requires.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The number of bytes of a zstd frame that the library reads first.
const ZSTD_START_BYTES: usize = 5;
/// The length of the header of a zstd block, in bytes (RFC 8878 section 3.1.1.2).
const ZSTD_BLOCK_HEADER_BYTES: usize = 3;

/// The minimum length of a zstd frame header, in bytes. Fewer bytes after a frame are not another
/// frame.
const ZSTD_HEADER_BYTES_MIN: usize = 6;

pub(super) enum Codec {
    /// The bytes are copied, because the body has no coding.
    Copy,
    Inflate(Box<Inflate>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Box<Zstd>),
}

/// The result of one step: how many bytes were read and written, and whether the body continues.
pub(super) struct Moved {
    pub(super) read: usize,
    pub(super) written: usize,
    pub(super) flow: Flow,
}

/// Whether the body continues after a step.
pub(super) enum Flow {
    Continue,
    /// The body is complete; bytes that follow are not part of it.
    End,
    Broken(&'static str),
}

impl Codec {
    /// Creates a decoder for `coding`. It reuses the inflater `spare`, if there is one and the
    /// coding needs one.
    pub(super) fn new(coding: Coding, spare: &mut Option<Box<Inflate>>) -> Self {
        let mut inflate = |position| {
            let mut inflate = spare.take().unwrap_or_else(|| Box::new(Inflate::new()));
            inflate.begin(position);
            Self::Inflate(inflate)
        };
        match coding {
            Coding::Gzip => inflate(Position::Magic),
            Coding::Deflate => inflate(Position::Sniff),
            Coding::Brotli => {
                // `new` would accept windows of up to 1 GiB.
                Self::Brotli(Box::new(BrotliState::new_strict(
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                )))
            }
            Coding::Zstd => Self::Zstd(Box::new(Zstd::new())),
        }
    }

    /// Decodes as much of `input` as fits into `output`.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        match self {
            Self::Copy => {
                let len = input.len().min(output.len());
                output[..len].copy_from_slice(&input[..len]);
                Moved { read: len, written: len, flow: Flow::Continue }
            }
            Self::Inflate(inflate) => inflate.step(input, output),
            Self::Brotli(state) => step_brotli(state, input, output),
            Self::Zstd(zstd) => zstd.step(input, output),
        }
    }

    /// Returns whether the checksum or length after the data differs from that of the decoded data.
    pub(super) fn is_sum_wrong(&self) -> bool {
        matches!(self, Self::Inflate(inflate) if inflate.is_sum_wrong)
    }

    /// Returns whether the body is complete if the input ends here.
    pub(super) fn may_end(&self) -> bool {
        match self {
            Self::Copy => true,
            Self::Inflate(inflate) => inflate.may_end(),
            Self::Brotli(_) => false,
            Self::Zstd(zstd) => zstd.may_end(),
        }
    }
}

/// Runs one step of decoding brotli. The library returns all output that it has once its input is
/// used up, and nothing after a fault.
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
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Flow::Continue,
        BrotliResult::ResultFailure => Flow::Broken("bad brotli data"),
    };
    Moved { read, written, flow }
}

/// Decodes zstd frames, one after the other.
pub(super) struct Zstd {
    inner: zstd::stream::raw::Decoder<'static>,
    /// True once a frame is complete.
    has_frame: bool,
    /// The number of bytes read since the end of the last frame, or since the start of the body.
    frame_bytes: usize,
    /// The number of bytes left up to the next boundary: the end of the header, of a block, or of
    /// the checksum.
    wanted: usize,
    /// True if the last call filled its output, so that there may be more output without input.
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

    /// Runs one step of decoding, up to the next boundary and no further: on a fault the library
    /// discards what the same call decoded before it.
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
                Flow::Continue
            }
            Ok(wanted) => {
                self.frame_bytes += read;
                // The number of bytes that the library asks for includes the header of the next
                // block.
                let next =
                    if wanted > ZSTD_BLOCK_HEADER_BYTES { ZSTD_BLOCK_HEADER_BYTES } else { 0 };
                self.wanted = wanted - next;
                Flow::Continue
            }
            Err(_) if self.may_end() => Flow::End,
            Err(_) => Flow::Broken("bad zstd data"),
        };
        Moved { read, written, flow }
    }

    /// Returns whether the body may end here: after a complete frame, and not inside the next one.
    fn may_end(&self) -> bool {
        self.has_frame && self.frame_bytes < ZSTD_HEADER_BYTES_MIN
    }
}

/// Decodes deflate data in one of its wrappers: gzip, zlib, or none.
pub(super) struct Inflate {
    inner: Decompress,
    position: Position,
    wrapper: Wrapper,
    /// The FLG byte of the gzip member, whose bits say which parts the header of the member has.
    flags: u8,
    /// True once a gzip member is complete. Bytes that follow may not be part of the body.
    has_member: bool,
    /// The checksum of the data that was decoded so far.
    sum: Sum,
    /// The last eight bytes of the trailer that were read; the latest is the highest byte.
    trailer: u64,
    is_sum_wrong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    Gzip,
    Deflate,
}

/// The part of the format to which the next byte belongs. The numbers count the bytes left in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// The first byte of a gzip member.
    Magic,
    /// The second byte of a gzip member.
    MagicEnd,
    Method,
    Flags,
    /// The modification time, the extra flags and the operating system of a gzip member, which are
    /// ignored.
    Fixed(u8),
    ExtraLen,
    ExtraLenEnd(u8),
    Extra(u16),
    Name,
    Comment,
    HeaderSum(u8),
    /// The first byte of a `deflate` body: of a zlib header, or of raw data.
    Sniff,
    /// The second byte of a `deflate` body; the number is the first byte.
    SniffEnd(u8),
    Data,
    /// The checksum and the length after the data.
    Trailer(u8),
    /// After the end of a zlib body.
    End,
}

/// The bits of the FLG byte (RFC 1952 section 2.3.1).
const HEADER_SUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;

impl Inflate {
    fn new() -> Self {
        Self {
            inner: Decompress::new(false),
            position: Position::Magic,
            wrapper: Wrapper::Gzip,
            flags: 0,
            has_member: false,
            sum: Sum::None,
            trailer: 0,
            is_sum_wrong: false,
        }
    }

    fn begin(&mut self, position: Position) {
        self.wrapper = if position == Position::Sniff { Wrapper::Deflate } else { Wrapper::Gzip };
        self.position = position;
        self.has_member = false;
        self.sum = Sum::None;
        self.is_sum_wrong = false;
        self.inner.reset(false);
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Moved {
        let mut read = 0;
        while self.position != Position::Data {
            let Some(&byte) = input.get(read) else {
                return Moved { read, written: 0, flow: Flow::Continue };
            };
            match self.step_wrapper(byte) {
                Ok(true) => read += 1,
                Ok(false) => {}
                // Bytes after a member that are not another member are padding or garbage, and are
                // ignored.
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
            Ok(Status::Ok | Status::BufError) => Flow::Continue,
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
        self.position = Position::Trailer(trailer_bytes);
        self.inner.reset(false);
        Flow::Continue
    }

    /// Parses one byte of a wrapper. Returns whether the byte was consumed; if not, it belongs to
    /// the data.
    fn step_wrapper(&mut self, byte: u8) -> Result<bool, &'static str> {
        self.position = match self.position {
            Position::Magic if byte == 0x1f => Position::MagicEnd,
            Position::MagicEnd if byte == 0x8b => Position::Method,
            Position::Method if byte == label::METHOD_DEFLATE => Position::Flags,
            Position::Flags if byte & FLAGS_RESERVED == 0 => {
                self.flags = byte;
                self.sum = Sum::gzip();
                Position::Fixed(6)
            }
            Position::Magic | Position::MagicEnd | Position::Method | Position::Flags => {
                return Err("not gzip");
            }
            Position::Fixed(1) => self.after_fixed(),
            Position::Fixed(left) => Position::Fixed(left - 1),
            Position::ExtraLen => Position::ExtraLenEnd(byte),
            Position::ExtraLenEnd(low) => match u16::from_le_bytes([low, byte]) {
                0 => self.after_extra(),
                len => Position::Extra(len),
            },
            Position::Extra(1) => self.after_extra(),
            Position::Extra(left) => Position::Extra(left - 1),
            Position::Name if byte == 0 => self.after_name(),
            Position::Comment if byte == 0 => self.after_comment(),
            Position::Name | Position::Comment => self.position,
            Position::HeaderSum(1) => Position::Data,
            Position::HeaderSum(left) => Position::HeaderSum(left - 1),
            Position::Sniff => Position::SniffEnd(byte),
            Position::SniffEnd(first) => return self.sniff(first, byte),
            Position::Trailer(left) => self.read_trailer(byte, left),
            Position::End => return Err("behind the body"),
            Position::Data => unreachable!("data is inflated"),
        };
        Ok(true)
    }

    /// Reads one byte of the checksum or length after the data. A wrong value is no fault, because
    /// it doesn't say which bytes are wrong.
    fn read_trailer(&mut self, byte: u8, left: u8) -> Position {
        self.trailer = self.trailer >> 8 | u64::from(byte) << 56;
        if left > 1 {
            return Position::Trailer(left - 1);
        }
        self.is_sum_wrong |= !self.sum.is(self.trailer);
        if self.wrapper == Wrapper::Gzip { Position::Magic } else { Position::End }
    }

    fn after_fixed(&self) -> Position {
        if self.flags & EXTRA != 0 { Position::ExtraLen } else { self.after_extra() }
    }

    fn after_extra(&self) -> Position {
        if self.flags & NAME != 0 { Position::Name } else { self.after_name() }
    }

    fn after_name(&self) -> Position {
        if self.flags & COMMENT != 0 { Position::Comment } else { self.after_comment() }
    }

    fn after_comment(&self) -> Position {
        if self.flags & HEADER_SUM != 0 { Position::HeaderSum(2) } else { Position::Data }
    }

    /// Detects the wrapper of a `deflate` body by its first two bytes. Some servers send gzip as
    /// `deflate`, which is detected by its magic number. What has no zlib header either is decoded
    /// as raw deflate.
    fn sniff(&mut self, first: u8, second: u8) -> Result<bool, &'static str> {
        // As raw deflate, gzip's magic number would begin with a block of the reserved type.
        if [first, second] == GZIP {
            (self.wrapper, self.position) = (Wrapper::Gzip, Position::Method);
            return Ok(true);
        }
        self.position = Position::Data;
        if label::is_zlib([first, second]) {
            let has_dictionary = second & 0x20 != 0;
            self.sum = Sum::zlib();
            return if has_dictionary { Err("zlib with a dictionary") } else { Ok(true) };
        }
        // No deflate block is so short that the first byte alone produces output.
        let fed = self.inner.decompress(&[first], &mut [0], FlushDecompress::None);
        if fed.is_err() || self.inner.total_in() != 1 || self.inner.total_out() != 0 {
            return Err("bad deflate data");
        }
        Ok(false)
    }

    /// Returns whether the body may end here: after the data of a gzip member. A missing or
    /// truncated trailer is accepted.
    fn may_end(&self) -> bool {
        self.has_member && self.position != Position::Data
    }
}
