//! The head of a reply: its status, its fields as ranges, and what they say of body and connection.
//!
//! Heads that keep to the grammar go through `httparse` once. Others are parsed a second time as
//! browsers read them (`odd`), on a copy; the ranges then hold for the bytes as they came.
//!
//! Source: RFC 9112 sections 2.2, 4, 5 and 6.3; RFC 9110 sections 2.5, 5.5 and 8.6.

use super::odd::{self, StatusLine};
use super::{Broken, Limits};
use crate::http::coding::{self, Codings};
use httparse::{ParserConfig, Response, Status};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The head of a reply. What is in a field is asked for with the bytes of that head, which stay
/// with the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// 100 to 999.
    pub status: u16,
    /// Minor version: 1 for HTTP/1.1 and above, 0 for HTTP/1.0 and what is treated like it.
    pub minor: u8,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection may be used for another request behind this reply.
    pub persists: bool,
    /// `Keep-Alive: max`: requests the server says it would still take.
    pub keep_max: Option<u32>,
    /// `Keep-Alive: timeout`: seconds the server says it keeps an idle connection.
    pub keep_timeout_s: Option<u32>,
    /// A line of it broke the grammar and was skipped, or read as browsers read it.
    pub is_odd: bool,
    /// Length of the head with its blank line, in bytes.
    pub len: usize,
    fields: Vec<Field>,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// By the chunked transfer coding.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// Name and value of one field, relative to the first byte of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: Range<u32>,
    value: Range<u32>,
}

/// Lists of fields longer than this are not kept for the next reply.
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
    /// Value of the first field of that name, in any case. White space around it is cut off; one
    /// that was folded over lines (RFC 9112 section 5.2) still holds the line ends.
    pub fn field<'a>(&self, head_bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let same = |field: &&Field| is_name(field.name(head_bytes), name);
        self.fields.iter().find(same).map(|field| field.value(head_bytes))
    }

    /// Whether there is a field of that name, in any case.
    pub fn has(&self, head_bytes: &[u8], name: &str) -> bool {
        self.field(head_bytes, name).is_some()
    }

    /// All fields, in order: name as it came, value.
    pub fn fields<'a>(&'a self, head_bytes: &'a [u8]) -> Fields<'a> {
        Fields { fields: self.fields.iter(), head_bytes }
    }

    /// Content codings of the body, in the order in which they were applied.
    pub fn codings(&self, head_bytes: &[u8]) -> Codings {
        let found = self.fields(head_bytes).filter(|(name, _)| is_name(name, "content-encoding"));
        coding::parse(found.flat_map(|(_, value)| items(value)))
    }

    /// Makes this the head that `bytes` hold from first to last, framing aside.
    pub(super) fn parse(&mut self, bytes: &[u8], fields_max: usize) -> Result<(), Broken> {
        // What the fields say is found out by `frame`; a 1xx head says nothing of the kind.
        *self = Self { fields: std::mem::take(&mut self.fields), ..Self::default() };
        self.len = bytes.len();
        match self.parse_by(&grammar(), bytes, fields_max) {
            Err(Broken::Head(_)) => self.parse_odd(bytes, fields_max),
            result => result,
        }
    }

    /// Parses a head that breaks the grammar as browsers do.
    fn parse_odd(&mut self, bytes: &[u8], fields_max: usize) -> Result<(), Broken> {
        let line = StatusLine::read(bytes)?;
        let mut copy = line.rewrite(bytes);
        if !line.is_regular || self.parse_by(&grammar(), &copy, fields_max).is_err() {
            self.is_odd = true;
            let status_bytes = copy.len() + line.len - bytes.len();
            odd::paint_fields(&mut copy[status_bytes..])?;
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

    /// Parses `bytes`, which may be a copy of what came.
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

    /// Finds where the body ends and whether the connection persists: RFC 9112 sections 6.3 and
    /// 9.3, in their order. `bodiless` says that the request was HEAD.
    pub(super) fn frame(&mut self, head_bytes: &[u8], bodiless: bool) -> Result<(), Broken> {
        let told = Told::of(self, head_bytes);
        self.keep_max = told.keep_max;
        self.keep_timeout_s = told.keep_timeout_s;
        self.is_odd |= told.is_odd || told.length == Length::Refused;
        self.persists = !told.close && (self.minor == 1 || told.keep_alive) && !self.is_odd;
        if bodiless || matches!(self.status, 204 | 304) {
            self.framing = Framing::None;
            return Ok(());
        }
        self.framing = match told.length {
            length if told.chunked => {
                // Both fields at once may be an attempt to have two readers cut the stream
                // differently, and HTTP/1.0 knows no chunks: read it, then close (section 6.1).
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

    /// Gives back what an unusually long list of fields took.
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

/// The fields of a head, in order: name as it came, value.
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

/// What the fields say of the body's end and of the connection.
struct Told {
    /// Transfer-Encoding names `chunked`. Around other codings, too: none was asked for (there is
    /// no TE in our requests), and browsers look for this word alone.
    chunked: bool,
    /// Transfer-Encoding says something else than `chunked`, once, or `identity`, which RFC 2616
    /// knew and means no coding.
    is_odd: bool,
    length: Length,
    close: bool,
    keep_alive: bool,
    keep_max: Option<u32>,
    keep_timeout_s: Option<u32>,
}

/// What Content-Length says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    None,
    Bytes(u64),
    /// Two of them, not the same.
    Differs,
    /// Not a number below 2^64.
    Refused,
}

impl Told {
    fn of(head: &Head, head_bytes: &[u8]) -> Self {
        let mut told = Self {
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
                10 if is_name(name, "connection") => told.connection(value),
                10 if is_name(name, "keep-alive") => told.keep(value),
                14 if is_name(name, "content-length") => told.content_length(value),
                17 if is_name(name, "transfer-encoding") => told.transfer_encoding(value),
                _ => {}
            }
        }
        told
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

/// Field lines that are none are skipped.
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

/// Where `part` lies within `whole`. An empty part may be a constant from elsewhere.
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

/// Items of a comma-separated list, empty ones left out (RFC 9110 section 5.6.1.2). White
/// space around them is cut off, the line ends of a fold with it.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// One or more digits, below 2^64.
fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
