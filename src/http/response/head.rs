//! The head of a reply: its status, its fields as ranges, and what the fields say about the body
//! and the connection.
//!
//! A valid head is parsed by `httparse` once. Any other head is parsed a second time as browsers do
//! (module `odd`), on a copy; the ranges are then mapped back to the original bytes.
//!
//! Source: RFC 9112 sections 2.2, 4, 5 and 6.3; RFC 9110 sections 2.5, 5.5 and 8.6.

use super::odd::{self, StatusLine};
use super::{Broken, Limits};
use crate::http::coding::{self, Codings};
use httparse::{ParserConfig, Response, Status};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The head of a reply. It stores ranges only: the caller keeps the bytes of the head and passes
/// them to each method that reads a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The minor version: 1 for HTTP/1.1 and above, 0 for HTTP/1.0 and for invalid versions.
    pub minor: u8,
    /// How the end of the body is found.
    pub framing: Framing,
    /// True if the connection may be reused after this reply.
    pub persists: bool,
    /// The `max` parameter of the field `Keep-Alive`: how many more requests the server says it
    /// accepts on this connection. `None` if the server doesn't say.
    pub keep_max: Option<u32>,
    /// The `timeout` parameter of the field `Keep-Alive`: how long the server says it keeps an idle
    /// connection, in seconds. `None` if the server doesn't say.
    pub keep_timeout_s: Option<u32>,
    /// True if a line of the head was malformed, and was skipped or read as browsers read it.
    pub is_odd: bool,
    /// The length of the head with its blank line, in bytes.
    pub len: usize,
    fields: Vec<Field>,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// The body ends after so many bytes.
    Length(u64),
    /// The body ends as the chunked transfer coding says.
    Chunked,
    /// The body ends when the connection does.
    Close,
}

/// The ranges of the name and the value of one field, relative to the first byte of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: Range<u32>,
    value: Range<u32>,
}

/// The capacity up to which a list of fields is kept for the next reply.
const FIELDS_KEPT: usize = 64;

impl Default for Head {
    fn default() -> Self {
        Self {
            status: 0,
            minor: 0,
            framing: Framing::None,
            persists: false,
            keep_max: None,
            keep_timeout_s: None,
            is_odd: false,
            len: 0,
            fields: Vec::new(),
        }
    }
}

impl Head {
    /// Returns the value of the first field with this name, in any case, without surrounding white
    /// space. The value of a field that is folded over several lines (RFC 9112 section 5.2)
    /// contains the line ends.
    pub fn field<'a>(&self, head_bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let same = |field: &&Field| is_name(field.name(head_bytes), name);
        self.fields.iter().find(same).map(|field| field.value(head_bytes))
    }

    /// Returns whether the head has a field with this name, in any case.
    pub fn has(&self, head_bytes: &[u8], name: &str) -> bool {
        self.field(head_bytes, name).is_some()
    }

    /// Returns all fields in order, each as its unchanged name and value.
    pub fn fields<'a>(&'a self, head_bytes: &'a [u8]) -> Fields<'a> {
        Fields { fields: self.fields.iter(), head_bytes }
    }

    /// Returns the content codings of the body, in the order in which they were applied.
    pub fn codings(&self, head_bytes: &[u8]) -> Codings {
        let found = self.fields(head_bytes).filter(|(name, _)| is_name(name, "content-encoding"));
        coding::parse(found.flat_map(|(_, value)| items(value)))
    }

    /// Parses `bytes`, which are exactly one head. Leaves out what [`Head::frame`] determines.
    pub(super) fn parse(&mut self, bytes: &[u8], fields_max: usize) -> Result<(), Broken> {
        // `frame` sets the other values; a 1xx head doesn't have them.
        *self = Self { fields: std::mem::take(&mut self.fields), ..Self::default() };
        self.len = bytes.len();
        match self.parse_by(&grammar(), bytes, fields_max) {
            Err(Broken::Head(_)) => self.parse_odd(bytes, fields_max),
            result => result,
        }
    }

    /// Parses a malformed head as browsers do, on a copy.
    fn parse_odd(&mut self, bytes: &[u8], fields_max: usize) -> Result<(), Broken> {
        let line = StatusLine::read(bytes)?;
        let mut copy = line.rewrite(bytes);
        if !line.is_valid || self.parse_by(&grammar(), &copy, fields_max).is_err() {
            self.is_odd = true;
            let status_bytes = copy.len() + line.len - bytes.len();
            odd::mask_fields(&mut copy[status_bytes..])?;
            self.parse_by(&lenient_grammar(), &copy, fields_max)?;
        }
        let (before, after) = (index(copy.len()), index(bytes.len()));
        for part in self.fields.iter_mut().flat_map(|field| [&mut field.name, &mut field.value]) {
            if part.start < part.end {
                *part = part.start + after - before..part.end + after - before;
            }
        }
        Ok(())
    }

    /// Parses `bytes`, which may be a copy of the head, with `httparse`.
    fn parse_by(
        &mut self,
        grammar: &ParserConfig,
        bytes: &[u8],
        fields_max: usize,
    ) -> Result<(), Broken> {
        let mut fields = [const { MaybeUninit::uninit() }; Limits::FIELDS_MAX];
        let fields = &mut fields[..fields_max.min(Limits::FIELDS_MAX)];
        let mut response = Response::new(&mut []);
        let parsed = grammar.parse_response_with_uninit_headers(&mut response, bytes, fields);
        match parsed {
            Ok(Status::Complete(len)) if len == bytes.len() => {}
            Ok(_) => return Err(Broken::Head("blank line within the head")),
            Err(httparse::Error::TooManyHeaders) => return Err(Broken::TooManyFields),
            Err(error) => return Err(Broken::Head(reason(error))),
        }
        self.status = response.code.expect("a complete head has a status");
        self.minor = response.version.expect("a complete head has a version");
        if self.status < 100 {
            return Err(Broken::Head("status below 100"));
        }
        self.fields.clear();
        self.fields.extend(response.headers.iter().map(|field| Field {
            name: range_of(bytes, field.name.as_bytes()),
            value: range_of(bytes, field.value),
        }));
        Ok(())
    }

    /// Determines where the body ends and whether the connection persists, by the rules of RFC 9112
    /// sections 6.3 and 9.3 in their order. `bodiless` is true if the request was HEAD.
    pub(super) fn frame(&mut self, head_bytes: &[u8], bodiless: bool) -> Result<(), Broken> {
        let control = Control::parse(self, head_bytes);
        self.keep_max = control.keep_max;
        self.keep_timeout_s = control.keep_timeout_s;
        self.is_odd |= control.is_odd || control.length == Length::Refused;
        self.persists = !control.close && (self.minor == 1 || control.keep_alive) && !self.is_odd;
        if bodiless || matches!(self.status, 204 | 304) {
            self.framing = Framing::None;
            return Ok(());
        }
        self.framing = match control.length {
            length if control.chunked => {
                // A reply with Transfer-Encoding and Content-Length may be an attempt at response
                // splitting, and HTTP/1.0 has no chunks. Such a reply is read, and the connection
                // is then closed (section 6.1).
                self.persists &= length == Length::None && self.minor == 1;
                Framing::Chunked
            }
            Length::Differs => return Err(Broken::Framing("Content-Lengths that differ")),
            Length::Bytes(bytes) => Framing::Length(bytes),
            Length::None | Length::Refused => {
                self.persists = false;
                Framing::Close
            }
        };
        Ok(())
    }

    /// Frees the list of fields if it is unusually long.
    pub(super) fn shrink(&mut self) {
        if self.fields.capacity() > FIELDS_KEPT {
            self.fields = Vec::with_capacity(FIELDS_KEPT);
        }
    }
}

impl Field {
    fn name<'a>(&self, head_bytes: &'a [u8]) -> &'a [u8] {
        &head_bytes[self.name.start as usize..self.name.end as usize]
    }

    fn value<'a>(&self, head_bytes: &'a [u8]) -> &'a [u8] {
        &head_bytes[self.value.start as usize..self.value.end as usize]
    }
}

/// Iterates over the fields of a head in order, each as its unchanged name and value.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    fields: std::slice::Iter<'a, Field>,
    head_bytes: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        Some((field.name(self.head_bytes), field.value(self.head_bytes)))
    }
}

/// The values of the fields that determine the end of the body and of the connection.
struct Control {
    /// True if Transfer-Encoding names `chunked`, also among other codings. None of the others was
    /// requested (our requests have no TE), and browsers check for this word alone.
    chunked: bool,
    /// True if Transfer-Encoding is anything but a single `chunked`, or `identity`, which means no
    /// coding in RFC 2616.
    is_odd: bool,
    length: Length,
    close: bool,
    keep_alive: bool,
    keep_max: Option<u32>,
    keep_timeout_s: Option<u32>,
}

/// The combined meaning of all Content-Length fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    None,
    Bytes(u64),
    /// The fields contain two numbers that differ.
    Differs,
    /// A field contains something else than a number below 2^64.
    Refused,
}

impl Control {
    fn parse(head: &Head, head_bytes: &[u8]) -> Self {
        let mut control = Self {
            chunked: false,
            is_odd: false,
            length: Length::None,
            close: false,
            keep_alive: false,
            keep_max: None,
            keep_timeout_s: None,
        };
        for (name, value) in head.fields(head_bytes) {
            match name.len() {
                10 if is_name(name, "connection") => control.connection(value),
                10 if is_name(name, "keep-alive") => control.keep(value),
                14 if is_name(name, "content-length") => control.content_length(value),
                17 if is_name(name, "transfer-encoding") => control.transfer_encoding(value),
                _ => {}
            }
        }
        control
    }

    fn connection(&mut self, value: &[u8]) {
        for option in items(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn keep(&mut self, value: &[u8]) {
        for parameter in items(value) {
            let Some(equals) = parameter.iter().position(|&byte| byte == b'=') else { continue };
            let (name, number) =
                (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
            let number = parse_number(number).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            if name.eq_ignore_ascii_case(b"max") {
                self.keep_max = number.or(self.keep_max);
            } else if name.eq_ignore_ascii_case(b"timeout") {
                self.keep_timeout_s = number.or(self.keep_timeout_s);
            }
        }
    }

    /// A list of equal numbers counts as one (RFC 9112 section 6.3, rule 5).
    fn content_length(&mut self, value: &[u8]) {
        for item in value.split(|&byte| byte == b',') {
            self.length = match (self.length, parse_number(item.trim_ascii())) {
                (Length::Refused, _) | (_, None) => Length::Refused,
                (Length::None, Some(bytes)) => Length::Bytes(bytes),
                (Length::Bytes(before), Some(bytes)) if before == bytes => self.length,
                (Length::Bytes(_) | Length::Differs, Some(_)) => Length::Differs,
            };
        }
    }

    fn transfer_encoding(&mut self, value: &[u8]) {
        for item in items(value) {
            let chunked = item.eq_ignore_ascii_case(b"chunked");
            self.is_odd |= if chunked { self.chunked } else { !is_name(item, "identity") };
            self.chunked |= chunked;
        }
    }
}

fn grammar() -> ParserConfig {
    let mut grammar = ParserConfig::default();
    grammar
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .allow_obsolete_multiline_headers_in_responses(true);
    grammar
}

/// Returns a configuration of `httparse` that skips malformed field lines.
fn lenient_grammar() -> ParserConfig {
    let mut lenient = grammar();
    lenient
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    lenient
}

fn reason(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::Version => "bad version",
        httparse::Error::Status => "bad status line",
        httparse::Error::HeaderName => "bad field name",
        httparse::Error::HeaderValue => "bad field value",
        httparse::Error::NewLine => "bad line end",
        httparse::Error::Token | httparse::Error::TooManyHeaders => "bad head",
    }
}

/// Returns the range of `part` within `whole`, of which it is a slice. If `part` is empty it may be
/// a constant from elsewhere.
fn range_of(whole: &[u8], part: &[u8]) -> Range<u32> {
    if part.is_empty() {
        return 0..0;
    }
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    index(start)..index(start + part.len())
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a head is capped far below 4 GiB")
}

fn is_name(found: &[u8], name: &str) -> bool {
    found.eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the non-empty items of a comma-separated list (RFC 9110 section 5.6.1.2), without
/// surrounding white space and the line ends of folded lines.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// Parses one or more digits to a number; `None` if it is not below 2^64.
fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
