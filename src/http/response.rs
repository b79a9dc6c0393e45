//! Bytes to replies: heads, payload and ends, one reply after the other on one connection.
//!
//! [`Reader`] is a pure function of the bytes. It holds none of them: the caller keeps what came,
//! calls [`Reader::read`] with everything not yet used, and drops what the [`Step`] says was used.
//! Payload is told as a range into the caller's slice, so the raw bytes stay verbatim.
//!
//! Laws:
//! * How a stream is cut into reads changes neither the heads, nor the payload put together, nor
//!   the end.
//! * A reply is read as RFC 9112 section 6.3 frames it. A head with an odd line is read as browsers
//!   read it, and the connection not used again; two lengths that differ are refused.
//! * No cap of [`Limits`] is passed: neither by heads, payload, framing bytes nor 1xx replies.
//!
//! Cost: one pass over heads and framing bytes; payload is not looked at. No allocation per reply
//! once the list of fields has grown; only a head that has to be mended costs a copy.
//! Source: RFC 9112 sections 2.2 and 4 to 9; RFC 9110 sections 5, 6 and 15.2.

mod chunked;
mod head;
mod odd;
#[cfg(test)]
mod tests;

pub use head::{Fields, Framing, Head};

use chunked::{Chunks, Cut};
use odd::Start;
use std::ops::Range;

/// Caps on one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head, status line and blank line included, in bytes.
    pub head_bytes_max: usize,
    /// Most fields of a head; at most [`Limits::FIELDS_MAX`].
    pub fields_max: usize,
    /// Longest payload, without its chunk framing, in bytes.
    pub body_bytes_max: u64,
    /// Longest line that opens a chunk, extensions included, in bytes.
    pub chunk_line_bytes_max: usize,
    /// Most bytes that chunk framing may add to one payload: chunks of one byte are legal.
    pub framing_bytes_max: u64,
    /// Longest trailer section, in bytes.
    pub trailer_bytes_max: usize,
    /// Most 1xx replies before the one asked for.
    pub interim_max: u32,
}

impl Limits {
    /// No head may have more fields than this, whatever the settings.
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

/// What one call of [`Reader::read`] made of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes used up, from the front.
    pub used: usize,
    /// What they were.
    pub event: Event,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing more without more bytes. What was used was chunk framing.
    More,
    /// Blank lines or a few bytes of junk before a status line, which belong to no reply. Call
    /// again.
    Blank,
    /// A 1xx reply; its head is in [`Reader::head`] and what was used. Call again.
    Interim,
    /// The head of the reply; it is in [`Reader::head`] and what was used. Call again.
    Head,
    /// Payload: this range of the bytes given. What was used before it was framing. Call again.
    Payload(Range<usize>),
    /// The reply is complete. Bytes behind what was used belong to the next one.
    End(End),
}

/// What ended a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has no body by its status, or because it answers HEAD.
    None,
    /// As many bytes as announced.
    Length,
    /// The last chunk and its trailer.
    Chunked,
    /// The connection was closed, as a body without a length ends: a cut can't be told from it.
    Close,
}

/// Why a reply can't be read further. The connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The connection was closed before the first byte of the reply.
    NoReply,
    /// The connection was closed within the head.
    HeadCut,
    /// The first bytes are not HTTP/1.
    NotHttp,
    /// The head is longer than [`Limits::head_bytes_max`].
    HeadTooLarge,
    /// The head has more fields than [`Limits::fields_max`].
    TooManyFields,
    /// The head breaks the grammar: how.
    Head(&'static str),
    /// The fields that say where the body ends are wrong or contradict each other: how.
    Framing(&'static str),
    /// More 1xx replies than [`Limits::interim_max`].
    TooManyInterim,
    /// 101: the server left HTTP, which nobody asked for.
    Switched,
    /// The chunk framing is wrong or passes a cap: how.
    Chunk(&'static str),
    /// The connection was closed within the body.
    BodyCut,
    /// The body is longer than [`Limits::body_bytes_max`]; that much of it was told.
    BodyTooLarge,
}

impl Broken {
    /// Short name, for logs and counters.
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

    /// What is wrong, where one name stands for several mistakes.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Self::Head(detail) | Self::Framing(detail) | Self::Chunk(detail) => Some(detail),
            _ => None,
        }
    }

    /// Whether what came doesn't begin as a reply does.
    pub fn is_no_reply(self) -> bool {
        matches!(self, Self::NotHttp | Self::Head(BLANK_LINES))
    }

    /// Whether the payload told so far is the true beginning of the body.
    pub fn keeps_partial(self) -> bool {
        matches!(self, Self::Chunk(_) | Self::BodyCut | Self::BodyTooLarge)
    }
}

/// Reads the replies of one connection.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    state: State,
    head: Head,
    /// The reply answers HEAD: its framing fields describe a body that is not there.
    bodiless: bool,
    /// Bytes at the front of the head that hold no end of it.
    scanned: usize,
    /// 1xx replies so far.
    interim: u32,
    /// Junk before the head, or a 1xx reply with an odd one.
    is_odd: bool,
    /// Payload bytes told so far.
    payload_bytes: u64,
    /// Payload bytes announced that did not come before the end of a reply that was cut.
    missing_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// No reply is expected, or this one is broken.
    Idle,
    /// Status line, fields, blank line.
    Head,
    /// So many bytes are left.
    Length(u64),
    Chunked(Chunks),
    Close,
    /// All is told but the end.
    Over(End),
}

const BLANK_LINES: &str = "blank lines instead of a status line";
/// Most bytes of line ends accepted before a status line: some servers add one behind a body.
const BLANK_BYTES_MAX: usize = 16;

impl Reader {
    /// A reader of a fresh connection.
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

    /// From here on the reply to the next GET is read.
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

    /// From here on the reply to a HEAD is read: it never has a body.
    pub fn begin_bodiless(&mut self) {
        self.begin();
        self.bodiless = true;
    }

    /// The head told last, by [`Event::Head`] or [`Event::Interim`].
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Takes the head told last out of the reader; [`Reader::return_head`] returns its memory.
    pub fn lend_head(&mut self) -> Head {
        std::mem::take(&mut self.head)
    }

    /// Gives a head back to be read into again.
    pub fn return_head(&mut self, head: Head) {
        self.head = head;
    }

    /// Payload bytes of this reply told so far.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Payload bytes that the reply has announced, by its length or by that of its last chunk, and
    /// that have not come; of one that ended in [`Broken::BodyCut`], those that did not come.
    pub fn missing_bytes(&self) -> u64 {
        match &self.state {
            State::Length(left) => *left,
            State::Chunked(chunks) => chunks.missing_bytes(),
            _ => self.missing_bytes,
        }
    }

    /// Reads on. `bytes` is all that came and was not used; `ended` says that nothing will follow
    /// it, and then [`Event::More`] is never the answer.
    ///
    /// # Panics
    /// If no reply is expected: before `begin`, after [`Event::End`] and after an error.
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

    /// Length of the head with its blank line, once that is there. Looks at each byte once,
    /// however slowly they come, and not past the cap.
    fn find_head_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let within = &bytes[..bytes.len().min(self.limits.head_bytes_max + 1)];
        let from = self.scanned.min(within.len());
        for at in memchr::memchr_iter(b'\n', &within[from..]).map(|at| from + at) {
            // The two bytes behind a line end decide; until they are there, come back to it.
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
            Cut::Hungry if ended => {
                self.missing_bytes = chunks.missing_bytes();
                Err(Broken::BodyCut)
            }
            Cut::Hungry => Ok(more(bytes.len())),
            Cut::End(used) => {
                self.state = State::Idle;
                Ok(Step { used, event: Event::End(End::Chunked) })
            }
            Cut::Data(at, len) => {
                let len = self.take_payload(len)?;
                if let State::Chunked(chunks) = &mut self.state {
                    chunks.take(len as u64);
                }
                Ok(Step { used: at + len, event: Event::Payload(at..at + len) })
            }
        }
    }

    /// How many of the next `len` payload bytes may be told; none left to tell is an error.
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

/// Whether bytes that came while no reply is expected are more than the stray line end some
/// servers send behind a body: a sign that replies and requests no longer match.
pub fn is_surplus(bytes: &[u8]) -> bool {
    bytes.len() > BLANK_BYTES_MAX || bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}

fn more(used: usize) -> Step {
    Step { used, event: Event::More }
}
