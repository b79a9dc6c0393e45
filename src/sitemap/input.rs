//! The text of a file: uncompressed, in UTF-8, with a limit on its length and on that of a token.

use super::{Flaw, Limits};
use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// The longest tag or text.
const TOKEN_BYTES_MAX: usize = 1 << 20;
/// The bytes that are decoded at once.
const STEP: usize = 16 << 10;
/// The bytes in which a declaration of XML is looked for.
const DECLARATION: usize = 200;

/// The bytes of a file, uncompressed.
pub(super) enum Raw<R: BufRead> {
    Plain(R),
    Gzip(Box<BufReader<MultiGzDecoder<R>>>),
}

impl<R: BufRead> Read for Raw<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(out),
            Self::Gzip(file) => file.read(out),
        }
    }
}

/// The text of a file.
pub(super) struct Input<R> {
    raw: R,
    decoder: Decoder,
    /// Bytes that aren't decoded yet, from `at` on.
    bytes: Vec<u8>,
    at: usize,
    is_end: bool,
    /// Text that isn't read yet, from `read` on.
    text: Vec<u8>,
    read: usize,
    /// How many bytes the file may still have.
    left: u64,
    /// How many bytes the token may still have.
    token: usize,
    is_gzip: bool,
    /// What reading ended by.
    flaw: Option<Flaw>,
}

/// Opens a file.
pub(super) fn open<R: BufRead>(
    mut file: R,
    charset: Option<&str>,
    limits: &Limits,
) -> Result<Input<Raw<R>>, Flaw> {
    let start = file.fill_buf().map_err(|_| Flaw::Unreadable)?;
    let is_gzip = start.starts_with(&[0x1f, 0x8b]);
    let mut raw = match is_gzip {
        true => Raw::Gzip(Box::new(BufReader::new(MultiGzDecoder::new(file)))),
        false => Raw::Plain(file),
    };
    let failed = if is_gzip { Flaw::Gzip } else { Flaw::Unreadable };
    let mut bytes = vec![0; DECLARATION];
    let mut length = 0;
    while length < DECLARATION {
        match raw.read(&mut bytes[length..]).map_err(|_| failed)? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    let left = limits.bytes.saturating_sub(length as u64);
    let decoder = encoding_of(&bytes, charset).new_decoder();
    Ok(Input {
        raw,
        decoder,
        bytes,
        at: 0,
        is_end: false,
        text: Vec::new(),
        read: 0,
        left,
        token: TOKEN_BYTES_MAX,
        is_gzip,
        flaw: None,
    })
}

fn encoding_of(start: &[u8], charset: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return encoding;
    }
    match start {
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    let declared = || {
        let end = start.windows(2).position(|pair| pair == b"?>")?;
        let head = &start[..end];
        let at = memchr::memmem::find(head, b"encoding")?;
        let mut parts = head[at..].split(|byte| matches!(byte, b'"' | b'\''));
        Encoding::for_label(parts.nth(1)?)
    };
    // What is declared in a file of bytes isn't of two bytes each.
    let declared = declared().filter(|encoding| ![UTF_16LE, UTF_16BE].contains(encoding));
    let named = || Encoding::for_label(charset?.as_bytes());
    declared.or_else(named).unwrap_or(UTF_8)
}

impl<R: Read> Input<R> {
    /// Returns the first character that isn't white space; `None` if there is none.
    pub(super) fn first_char(&mut self) -> Result<Option<char>, Flaw> {
        loop {
            let text = match self.fill_buf() {
                Ok(text) => text,
                Err(_) => return Err(self.flaw().unwrap_or(Flaw::Unreadable)),
            };
            if text.is_empty() {
                return Ok(None);
            }
            let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(first) = text.get(blank) {
                let first = char::from(*first);
                self.consume(blank);
                return Ok(Some(first));
            }
            self.consume(blank);
        }
    }

    /// Lets a token begin.
    pub(super) fn begin_token(&mut self) {
        self.token = TOKEN_BYTES_MAX;
    }

    /// Returns whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_end && self.at == self.bytes.len() && self.read == self.text.len()
    }

    /// Returns the flaw by which reading ended.
    pub(super) fn flaw(&self) -> Option<Flaw> {
        self.flaw
    }

    fn fail(&mut self, flaw: Flaw) -> io::Error {
        self.flaw = Some(flaw);
        io::Error::other(flaw.to_string())
    }

    /// Reads and decodes some more text, unless the file has ended.
    fn decode(&mut self) -> io::Result<()> {
        self.text.resize(STEP * 3, 0);
        let mut length = 0;
        while length == 0 {
            if self.at == self.bytes.len() && !self.is_end {
                self.bytes.resize(STEP, 0);
                self.at = 0;
                let read = self.raw.read(&mut self.bytes);
                let failed = if self.is_gzip { Flaw::Gzip } else { Flaw::Unreadable };
                let read = read.map_err(|_| self.fail(failed))?;
                self.bytes.truncate(read);
                self.is_end = read == 0;
                if self.left < read as u64 {
                    return Err(self.fail(Flaw::TooLong));
                }
                self.left -= read as u64;
            }
            let bytes = &self.bytes[self.at..];
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(bytes, &mut self.text, self.is_end);
            self.at += read;
            length = written;
            if self.is_end && result == CoderResult::InputEmpty {
                break;
            }
        }
        self.text.truncate(length);
        self.read = 0;
        Ok(())
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let text = self.fill_buf()?;
        let length = text.len().min(out.len());
        out[..length].copy_from_slice(&text[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.token == 0 {
            return Err(self.fail(Flaw::TokenTooLong));
        }
        if self.read == self.text.len() && !(self.is_end && self.at == self.bytes.len()) {
            self.decode()?;
        }
        let text = &self.text[self.read..];
        Ok(&text[..text.len().min(self.token)])
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
        self.token -= bytes;
    }
}
