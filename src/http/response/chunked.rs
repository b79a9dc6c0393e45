//! The chunked transfer coding: where the data of each chunk lies between the framing.
//!
//! A machine of bytes: framing is used up as it comes and kept nowhere, so that a chunk line may be
//! cut anywhere. Extensions and trailer fields are skipped: nothing in them was asked for.
//!
//! Lenient where all clients are: white space behind a size, a lone LF as line end. Everything
//! else is refused, and with it what one reader would take for data and another for framing.
//! Source: RFC 9112 section 7.1.

use super::{Broken, Limits};

/// Where in the coding the next byte falls.
#[derive(Debug)]
pub(super) struct Chunks {
    place: Place,
    /// Size of the chunk as read so far; then what is left of its data.
    left: u64,
    /// Bytes of the line, or of the trailer section, so far.
    line_bytes: usize,
    /// Framing bytes of the whole body.
    framing_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first digit of a size.
    Size,
    /// Behind at least one digit.
    Digits,
    /// White space behind the size.
    Space,
    Extension,
    /// The LF that ends the line of the size.
    SizeEnd,
    Data,
    /// The CR, or a lone LF, behind the data.
    DataEnd,
    /// The LF behind that CR.
    DataLineEnd,
    /// At the start of a trailer line.
    Trailer,
    /// Within a trailer line.
    TrailerLine,
    /// The LF of the blank line.
    TrailerEnd,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// All of them are framing.
    Hungry,
    /// So many bytes of framing, then so many of data (not none). [`Chunks::take`] says how many
    /// of these are used.
    Data(usize, usize),
    /// The body ends behind so many bytes of framing.
    End(usize),
}

impl Default for Chunks {
    fn default() -> Self {
        Self { place: Place::Size, left: 0, line_bytes: 0, framing_bytes: 0 }
    }
}

impl Chunks {
    pub(super) fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Cut, Broken> {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.place == Place::Data {
                let len = (bytes.len() - at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
                return Ok(Cut::Data(at, len));
            }
            self.count(limits)?;
            if self.framing(byte)? {
                return Ok(Cut::End(at + 1));
            }
        }
        Ok(Cut::Hungry)
    }

    /// Bytes of the chunk that is being read that have not come.
    pub(super) fn missing_bytes(&self) -> u64 {
        if self.place == Place::Data { self.left } else { 0 }
    }

    /// Uses up `len` bytes of the data told last.
    pub(super) fn take(&mut self, len: u64) {
        self.left -= len;
        if self.left == 0 {
            self.place = Place::DataEnd;
        }
    }

    fn count(&mut self, limits: &Limits) -> Result<(), Broken> {
        self.framing_bytes += 1;
        self.line_bytes += 1;
        if self.framing_bytes > limits.framing_bytes_max {
            return Err(Broken::Chunk("more framing than allowed"));
        }
        let in_trailer =
            matches!(self.place, Place::Trailer | Place::TrailerLine | Place::TrailerEnd);
        if in_trailer && self.line_bytes > limits.trailer_bytes_max {
            return Err(Broken::Chunk("trailer too long"));
        }
        if !in_trailer && self.line_bytes > limits.chunk_line_bytes_max {
            return Err(Broken::Chunk("chunk line too long"));
        }
        Ok(())
    }

    /// One byte of framing; whether it was the last of the body.
    fn framing(&mut self, byte: u8) -> Result<bool, Broken> {
        self.place = match (self.place, byte) {
            (Place::Size | Place::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.push_digit(byte)?
            }
            (Place::Size, _) => return Err(Broken::Chunk("no chunk size")),
            (Place::Digits | Place::Space | Place::Extension, b'\n') => self.open_chunk(),
            (Place::Digits | Place::Space | Place::Extension, b'\r') => Place::SizeEnd,
            (Place::Digits | Place::Space, b' ' | b'\t') => Place::Space,
            (Place::Digits | Place::Space, b';') => Place::Extension,
            (Place::Digits | Place::Space, _) => return Err(Broken::Chunk("bad chunk size")),
            (Place::Extension, byte) if byte < b' ' && byte != b'\t' => {
                return Err(Broken::Chunk("control character in a chunk extension"));
            }
            (Place::Extension, _) => Place::Extension,
            (Place::SizeEnd, b'\n') => self.open_chunk(),
            (Place::SizeEnd, _) => return Err(Broken::Chunk("CR without LF")),
            (Place::DataEnd, b'\r') => Place::DataLineEnd,
            (Place::DataEnd | Place::DataLineEnd, b'\n') => {
                self.line_bytes = 0;
                Place::Size
            }
            (Place::DataEnd | Place::DataLineEnd, _) => {
                return Err(Broken::Chunk("data longer than its chunk size"));
            }
            (Place::Trailer | Place::TrailerEnd, b'\n') => return Ok(true),
            (Place::Trailer, b'\r') => Place::TrailerEnd,
            (Place::TrailerEnd, _) => return Err(Broken::Chunk("CR without LF")),
            (Place::TrailerLine, b'\n') => Place::Trailer,
            (Place::Trailer | Place::TrailerLine, _) => Place::TrailerLine,
            (Place::Data, _) => unreachable!("data is told, not read"),
        };
        Ok(false)
    }

    fn push_digit(&mut self, byte: u8) -> Result<Place, Broken> {
        let digit = (byte as char).to_digit(16).expect("matched as a hexadecimal digit");
        let size = self.left.checked_mul(16).map(|size| size + u64::from(digit));
        self.left = size.ok_or(Broken::Chunk("chunk size beyond 64 bits"))?;
        Ok(Place::Digits)
    }

    fn open_chunk(&mut self) -> Place {
        self.line_bytes = 0;
        if self.left == 0 { Place::Trailer } else { Place::Data }
    }
}
