//! Parses the chunked transfer coding: separates the data of each chunk from the framing.
//!
//! The parser is a state machine over bytes and stores no framing, so a chunk line may be split
//! anywhere. Extensions and trailer fields are skipped, because nothing uses them.
//!
//! It is as lenient as all clients are: it accepts white space after a size, and a lone LF as line
//! end. Everything else is refused, so that no bytes are read as data here and as framing
//! elsewhere.
//! Source: RFC 9112 section 7.1.

use super::{Broken, Limits};

/// The state of the parser of one chunked body.
#[derive(Debug)]
pub(super) struct Chunks {
    position: Position,
    /// While a chunk size is parsed, the size so far; after that, the number of data bytes left in
    /// the chunk.
    left: u64,
    /// The length of the current chunk line or of the trailer section so far, in bytes.
    line_bytes: usize,
    /// The number of framing bytes of the whole body so far.
    framing_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before the first digit of a size.
    Size,
    /// After at least one digit.
    Digits,
    /// In the white space after the size.
    Space,
    Extension,
    /// Before the LF that ends the size line.
    SizeEnd,
    Data,
    /// Before the CR, or a lone LF, after the data.
    DataEnd,
    /// Before the LF that follows the CR after the data.
    DataLineEnd,
    /// At the start of a trailer line.
    Trailer,
    /// Inside a trailer line.
    TrailerLine,
    /// Before the LF of the blank line that ends the trailer section.
    TrailerEnd,
}

/// The meaning of the next bytes of the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// All of the given bytes are framing, and more bytes are needed.
    More,
    /// First so many bytes of framing, then so many bytes of data (at least one). The caller
    /// reports with [`Chunks::take`] how many data bytes it used.
    Data(usize, usize),
    /// So many bytes of framing, with which the body ends.
    End(usize),
}

impl Default for Chunks {
    fn default() -> Self {
        Self { position: Position::Size, left: 0, line_bytes: 0, framing_bytes: 0 }
    }
}

impl Chunks {
    pub(super) fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Piece, Broken> {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.position == Position::Data {
                let len = (bytes.len() - at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
                return Ok(Piece::Data(at, len));
            }
            self.count(limits)?;
            if self.framing(byte)? {
                return Ok(Piece::End(at + 1));
            }
        }
        Ok(Piece::More)
    }

    /// Returns the number of bytes of the current chunk that have not arrived.
    pub(super) fn missing_bytes(&self) -> u64 {
        if self.position == Position::Data { self.left } else { 0 }
    }

    /// Consumes `len` of the data bytes that the last [`Piece::Data`] reported.
    pub(super) fn take(&mut self, len: u64) {
        self.left -= len;
        if self.left == 0 {
            self.position = Position::DataEnd;
        }
    }

    fn count(&mut self, limits: &Limits) -> Result<(), Broken> {
        self.framing_bytes += 1;
        self.line_bytes += 1;
        if self.framing_bytes > limits.framing_bytes_max {
            return Err(Broken::Chunk("more framing than allowed"));
        }
        let in_trailer = matches!(
            self.position,
            Position::Trailer | Position::TrailerLine | Position::TrailerEnd
        );
        if in_trailer && self.line_bytes > limits.trailer_bytes_max {
            return Err(Broken::Chunk("trailer too long"));
        }
        if !in_trailer && self.line_bytes > limits.chunk_line_bytes_max {
            return Err(Broken::Chunk("chunk line too long"));
        }
        Ok(())
    }

    /// Parses one byte of framing; returns whether it was the last byte of the body.
    fn framing(&mut self, byte: u8) -> Result<bool, Broken> {
        self.position = match (self.position, byte) {
            (Position::Size | Position::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.push_digit(byte)?
            }
            (Position::Size, _) => return Err(Broken::Chunk("no chunk size")),
            (Position::Digits | Position::Space | Position::Extension, b'\n') => self.open_chunk(),
            (Position::Digits | Position::Space | Position::Extension, b'\r') => Position::SizeEnd,
            (Position::Digits | Position::Space, b' ' | b'\t') => Position::Space,
            (Position::Digits | Position::Space, b';') => Position::Extension,
            (Position::Digits | Position::Space, _) => return Err(Broken::Chunk("bad chunk size")),
            (Position::Extension, byte) if byte < b' ' && byte != b'\t' => {
                return Err(Broken::Chunk("control character in a chunk extension"));
            }
            (Position::Extension, _) => Position::Extension,
            (Position::SizeEnd, b'\n') => self.open_chunk(),
            (Position::SizeEnd, _) => return Err(Broken::Chunk("CR without LF")),
            (Position::DataEnd, b'\r') => Position::DataLineEnd,
            (Position::DataEnd | Position::DataLineEnd, b'\n') => {
                self.line_bytes = 0;
                Position::Size
            }
            (Position::DataEnd | Position::DataLineEnd, _) => {
                return Err(Broken::Chunk("data longer than its chunk size"));
            }
            (Position::Trailer | Position::TrailerEnd, b'\n') => return Ok(true),
            (Position::Trailer, b'\r') => Position::TrailerEnd,
            (Position::TrailerEnd, _) => return Err(Broken::Chunk("CR without LF")),
            (Position::TrailerLine, b'\n') => Position::Trailer,
            (Position::Trailer | Position::TrailerLine, _) => Position::TrailerLine,
            (Position::Data, _) => unreachable!("data is reported, not parsed"),
        };
        Ok(false)
    }

    fn push_digit(&mut self, byte: u8) -> Result<Position, Broken> {
        let digit = (byte as char).to_digit(16).expect("matched as a hexadecimal digit");
        let size = self.left.checked_mul(16).map(|size| size + u64::from(digit));
        self.left = size.ok_or(Broken::Chunk("chunk size beyond 64 bits"))?;
        Ok(Position::Digits)
    }

    fn open_chunk(&mut self) -> Position {
        self.line_bytes = 0;
        if self.left == 0 { Position::Trailer } else { Position::Data }
    }
}
