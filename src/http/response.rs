//! Parses replies: heads, payload and ends, one reply after the other on one connection.
//!
//! [`Reader`] is a pure function of the bytes and stores none of them. The caller buffers what
//! arrives, calls [`Reader::read`] with all bytes that are not used yet, and drops as many as the
//! [`Step`] says. Payload is reported as a range of the caller's slice, so the raw bytes stay
//! unchanged.
//!
//! Laws:
//! - How a stream is split into reads changes neither the heads, nor the joined payload, nor the
//!   end.
//! - A reply is framed as RFC 9112 section 6.3 says. A head with an invalid line is read as
//!   browsers read it, and the connection is not reused; two lengths that differ are refused.
//! - No cap of [`Limits`] is exceeded: neither by heads, payload, framing bytes nor 1xx replies.
//!
//! Cost: one pass over heads and framing bytes; payload is not read. No allocation for a reply once
//! the list of fields has grown, except that a head which breaks the grammar is copied.
//! Source: RFC 9112 sections 2.2 and 4 to 9; RFC 9110 sections 5, 6 and 15.2.

mod chunked;
mod head;
mod odd;
#[cfg(test)]
mod tests;

pub use head::{Fields, Framing, Head};

use chunked::{Chunks, Piece};
use odd::Start;
use std::ops::Range;

/// The limits on the size of one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a head, from the status line to the blank line, in bytes.
    pub head_bytes_max: usize,
    /// The maximum number of fields in a head; at most [`Limits::FIELDS_MAX`].
    pub fields_max: usize,
    /// The maximum length of a payload without its chunk framing, in bytes.
    pub body_bytes_max: u64,
    /// The maximum length of the line that begins a chunk, with its extensions, in bytes.
    pub chunk_line_bytes_max: usize,
    /// The maximum total length of the chunk framing of one payload, in bytes. It is needed because
    /// chunks of one byte are legal.
    pub framing_bytes_max: u64,
    /// The maximum length of a trailer section, in bytes.
    pub trailer_bytes_max: usize,
    /// The maximum number of 1xx replies before the final reply to a request.
    pub interim_max: u32,
}

impl Limits {
    /// The greatest value that [`Limits::fields_max`] may have.
    pub const FIELDS_MAX: usize = 512;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 64 << 10,
            fields_max: 256,
            body_bytes_max: 16 << 20,
            chunk_line_bytes_max: 4 << 10,
            framing_bytes_max: 4 << 20,
            trailer_bytes_max: 16 << 10,
            interim_max: 8,
        }
    }
}

/// The result of one call of [`Reader::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of bytes, from the start of the input, that were used.
    pub used: usize,
    /// The meaning of the used bytes.
    pub event: Event,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// More bytes are needed. The bytes that were used are chunk framing.
    More,
    /// Blank lines or a few bytes of junk before a status line were skipped; they belong to no
    /// reply. Call again.
    Blank,
    /// A 1xx reply was read. The used bytes are its head, which is in [`Reader::head`]. Call again.
    Interim,
    /// The head of the final reply was read. The used bytes are the head, which is in
    /// [`Reader::head`]. Call again.
    Head,
    /// Payload was read: the bytes in this range of the input. Used bytes before the range are
    /// framing. Call again.
    Payload(Range<usize>),
    /// The reply is complete. The bytes after the used ones belong to the next reply.
    End(End),
}

/// How the end of a reply was recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The reply has no body because of its status, or because it answers HEAD.
    None,
    /// As many bytes as announced have arrived.
    Length,
    /// The last chunk and the trailer section after it have arrived.
    Chunked,
    /// The connection ended, which ends a body without a length. A truncated body looks the same.
    Close,
}

/// The error for a reply that can't be read any further. The connection can't be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The connection was closed before the first byte of the reply.
    NoReply,
    /// The connection was closed inside the head.
    HeadCut,
    /// The first bytes are not HTTP/1.
    NotHttp,
    /// The head is longer than [`Limits::head_bytes_max`].
    HeadTooLarge,
    /// The head has more fields than [`Limits::fields_max`].
    TooManyFields,
    /// The head is malformed; the text is the reason.
    Head(&'static str),
    /// The fields that define the end of the body are malformed or contradict each other; the text
    /// is the reason.
    Framing(&'static str),
    /// There were more 1xx replies than [`Limits::interim_max`].
    TooManyInterim,
    /// The status is 101: the server switched protocols without being asked.
    Switched,
    /// The chunk framing is malformed or exceeds a cap; the text is the reason.
    Chunk(&'static str),
    /// The connection was closed inside the body.
    BodyCut,
    /// The body is longer than [`Limits::body_bytes_max`]; the bytes up to that limit were
    /// reported.
    BodyTooLarge,
}

impl Broken {
    /// Returns the short name of the error, for logs and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoReply => "no-reply",
            Self::HeadCut => "head-cut",
            Self::NotHttp => "not-http",
            Self::HeadTooLarge => "head-too-large",
            Self::TooManyFields => "too-many-fields",
            Self::Head(_) => "bad-head",
            Self::Framing(_) => "bad-framing",
            Self::TooManyInterim => "too-many-interim",
            Self::Switched => "switched-protocols",
            Self::Chunk(_) => "bad-chunk",
            Self::BodyCut => "body-cut",
            Self::BodyTooLarge => "body-too-large",
        }
    }

    /// Returns the reason for the error, if its name covers several reasons; otherwise `None`.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Self::Head(detail) | Self::Framing(detail) | Self::Chunk(detail) => Some(detail),
            _ => None,
        }
    }

    /// Returns whether the error means that the bytes don't begin like a reply.
    pub fn is_no_reply(self) -> bool {
        matches!(self, Self::NotHttp | Self::Head(BLANK_LINES))
    }

    /// Returns whether, after this error, the payload reported so far is the correct beginning of
    /// the body.
    pub fn keeps_partial(self) -> bool {
        matches!(self, Self::Chunk(_) | Self::BodyCut | Self::BodyTooLarge)
    }
}

/// Parses the replies of one connection.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    state: State,
    head: Head,
    /// True if the reply answers HEAD: its framing fields then describe a body that is not sent.
    bodiless: bool,
    /// The number of bytes at the start of the head that were already searched for its end, without
    /// success.
    scanned: usize,
    /// The number of 1xx replies to the current request so far.
    interim: u32,
    /// True if there was junk before the head, or a malformed 1xx reply.
    is_odd: bool,
    /// The number of payload bytes of the current reply that were reported so far.
    payload_bytes: u64,
    /// The number of payload bytes that a reply announced but that never arrived.
    missing_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// No reply is expected, or the current one is broken.
    Idle,
    /// Reads status line, fields and blank line.
    Head,
    /// Reads a body that has so many bytes left.
    Length(u64),
    Chunked(Chunks),
    Close,
    /// Only [`Event::End`] remains to be reported.
    Over(End),
}

const BLANK_LINES: &str = "blank lines instead of a status line";
/// The maximum number of CR and LF bytes before a status line: some servers add a line end after a
/// body.
const BLANK_BYTES_MAX: usize = 16;

impl Reader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Idle,
            head: Head::default(),
            bodiless: false,
            scanned: 0,
            interim: 0,
            is_odd: false,
            payload_bytes: 0,
            missing_bytes: 0,
        }
    }

    /// Begins to read the reply to a GET.
    pub fn begin(&mut self) {
        self.state = State::Head;
        self.bodiless = false;
        self.scanned = 0;
        self.interim = 0;
        self.is_odd = false;
        self.payload_bytes = 0;
        self.missing_bytes = 0;
        self.head.shrink();
    }

    /// Begins to read the reply to a HEAD, which never has a body.
    pub fn begin_bodiless(&mut self) {
        self.begin();
        self.bodiless = true;
    }

    /// Returns the head that [`Event::Head`] or [`Event::Interim`] reported last.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Moves the head that was reported last out of the reader. [`Reader::return_head`] gives its
    /// memory back.
    pub fn lend_head(&mut self) -> Head {
        std::mem::take(&mut self.head)
    }

    /// Takes back a head from [`Reader::lend_head`], so that its memory is reused.
    pub fn return_head(&mut self, head: Head) {
        self.head = head;
    }

    /// Returns the number of payload bytes of the current reply that were reported so far.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Returns the number of payload bytes that the current reply has announced, by its length or
    /// by the length of its last chunk, and that have not arrived. After [`Broken::BodyCut`] these
    /// never arrived.
    pub fn missing_bytes(&self) -> u64 {
        match &self.state {
            State::Length(left) => *left,
            State::Chunked(chunks) => chunks.missing_bytes(),
            _ => self.missing_bytes,
        }
    }

    /// Reads the next event. `bytes` are all received bytes that are not used yet. `ended` is true
    /// if no more bytes will follow; the result is then never [`Event::More`].
    ///
    /// # Errors
    /// Returns the reason why the reply can't be read any further.
    ///
    /// # Panics
    /// Panics if no reply is expected: before `begin`, after [`Event::End`] and after an error.
    pub fn read(&mut self, bytes: &[u8], ended: bool) -> Result<Step, Broken> {
        let result = match &mut self.state {
            State::Idle => panic!("read without begin: no reply is expected"),
            State::Head => self.read_head(bytes, ended),
            State::Length(_) => self.read_length(bytes, ended),
            State::Chunked(_) => self.read_chunked(bytes, ended),
            State::Close => self.read_to_close(bytes, ended),
            State::Over(end) => {
                let event = Event::End(*end);
                self.state = State::Idle;
                Ok(Step { used: 0, event })
            }
        };
        if result.is_err() {
            self.state = State::Idle;
        }
        result
    }

    fn read_head(&mut self, bytes: &[u8], ended: bool) -> Result<Step, Broken> {
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if blank > BLANK_BYTES_MAX {
            return Err(Broken::Head(BLANK_LINES));
        }
        if bytes.len() == blank {
            return if ended { Err(Broken::NoReply) } else { Ok(more(0)) };
        }
        if blank > 0 {
            return Ok(Step { used: blank, event: Event::Blank });
        }
        match odd::find_start(bytes) {
            Start::At(0) => {}
            Start::At(junk) => {
                self.is_odd = true;
                return Ok(Step { used: junk, event: Event::Blank });
            }
            Start::Unknown { .. } if !ended => return Ok(more(0)),
            Start::Unknown { is_likely: true } => return Err(Broken::HeadCut),
            Start::Unknown { .. } | Start::No => return Err(Broken::NotHttp),
        }
        let Some(len) = self.find_head_end(bytes) else {
            if bytes.len() > self.limits.head_bytes_max {
                return Err(Broken::HeadTooLarge);
            }
            return if ended { Err(Broken::HeadCut) } else { Ok(more(0)) };
        };
        if len > self.limits.head_bytes_max {
            return Err(Broken::HeadTooLarge);
        }
        self.scanned = 0;
        self.head.parse(&bytes[..len], self.limits.fields_max)?;
        let event = self.take_head(&bytes[..len])?;
        Ok(Step { used: len, event })
    }

    /// Returns the length of the head with its blank line, in bytes; `None` if it is incomplete.
    /// Reads each byte once, even if the bytes arrive one by one, and none past the limit.
    fn find_head_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let within = &bytes[..bytes.len().min(self.limits.head_bytes_max + 1)];
        let from = self.scanned.min(within.len());
        for at in memchr::memchr_iter(b'\n', &within[from..]).map(|at| from + at) {
            // The two bytes after a line end decide; until they arrive, the next call starts here.
            match (within.get(at + 1), within.get(at + 2)) {
                (Some(b'\n'), _) => return Some(at + 2),
                (Some(b'\r'), Some(b'\n')) => return Some(at + 3),
                (None, _) | (Some(b'\r'), None) => {
                    self.scanned = at;
                    return None;
                }
                _ => {}
            }
        }
        self.scanned = within.len();
        None
    }

    fn take_head(&mut self, head_bytes: &[u8]) -> Result<Event, Broken> {
        self.head.is_odd |= self.is_odd;
        match self.head.status {
            101 => return Err(Broken::Switched),
            100..=199 => {
                self.is_odd = self.head.is_odd;
                self.interim += 1;
                if self.interim > self.limits.interim_max {
                    return Err(Broken::TooManyInterim);
                }
                return Ok(Event::Interim);
            }
            _ => {}
        }
        self.head.frame(head_bytes, self.bodiless)?;
        self.state = match self.head.framing {
            Framing::None => State::Over(End::None),
            Framing::Length(0) => State::Over(End::Length),
            Framing::Length(len) => State::Length(len),
            Framing::Chunked => State::Chunked(Chunks::default()),
            Framing::Close => State::Close,
        };
        Ok(Event::Head)
    }

    fn read_length(&mut self, bytes: &[u8], ended: bool) -> Result<Step, Broken> {
        let State::Length(left) = self.state else { unreachable!("called in this state only") };
        if bytes.is_empty() {
            self.missing_bytes = left;
            return if ended { Err(Broken::BodyCut) } else { Ok(more(0)) };
        }
        let len = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let len = self.take_payload(len)?;
        self.state = match left - len as u64 {
            0 => State::Over(End::Length),
            left => State::Length(left),
        };
        Ok(Step { used: len, event: Event::Payload(0..len) })
    }

    fn read_to_close(&mut self, bytes: &[u8], ended: bool) -> Result<Step, Broken> {
        if bytes.is_empty() {
            if !ended {
                return Ok(more(0));
            }
            self.state = State::Idle;
            return Ok(Step { used: 0, event: Event::End(End::Close) });
        }
        let len = self.take_payload(bytes.len())?;
        Ok(Step { used: len, event: Event::Payload(0..len) })
    }

    fn read_chunked(&mut self, bytes: &[u8], ended: bool) -> Result<Step, Broken> {
        let State::Chunked(chunks) = &mut self.state else {
            unreachable!("called in this state only")
        };
        match chunks.next(bytes, &self.limits)? {
            Piece::More if ended => {
                self.missing_bytes = chunks.missing_bytes();
                Err(Broken::BodyCut)
            }
            Piece::More => Ok(more(bytes.len())),
            Piece::End(used) => {
                self.state = State::Idle;
                Ok(Step { used, event: Event::End(End::Chunked) })
            }
            Piece::Data(at, len) => {
                let len = self.take_payload(len)?;
                if let State::Chunked(chunks) = &mut self.state {
                    chunks.take(len as u64);
                }
                Ok(Step { used: at + len, event: Event::Payload(at..at + len) })
            }
        }
    }

    /// Returns how many of the next `len` payload bytes the limit allows. If it allows none,
    /// returns an error.
    fn take_payload(&mut self, len: usize) -> Result<usize, Broken> {
        let left = self.limits.body_bytes_max - self.payload_bytes;
        let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        if len == 0 {
            return Err(Broken::BodyTooLarge);
        }
        self.payload_bytes += len as u64;
        Ok(len)
    }
}

/// Returns whether bytes that arrive while no reply is expected are more than the stray line end
/// that some servers send after a body. If they are, replies and requests may no longer match.
pub fn is_surplus(bytes: &[u8]) -> bool {
    bytes.len() > BLANK_BYTES_MAX || bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}

fn more(used: usize) -> Step {
    Step { used, event: Event::More }
}
