//! Finds the resources that a style sheet loads: images, fonts, other style sheets.
//!
//! The text is split into tokens by `cssparser`, the tokenizer of Firefox and Servo. A [`Sheet`]
//! follows only as much of the grammar as decides which tokens are references:
//!
//! | in a style sheet | reference |
//! |---|---|
//! | `url(x)`, `url("x")`, `src("x")` in a declaration | yes |
//! | `image-set("x" 1x, url(y) 2x)`, also with the prefix `-webkit-` | yes: its strings and URLs |
//! | `@import "x"`, `@import url(x)`, outside of blocks | yes: the first value |
//! | the rest of `@import`, such as `supports(a: url(x))` | no: a condition |
//! | what precedes the block of other at-rules: `@namespace url(x);`, `@document url(x) {` | no |
//! | `url(#x)` | no: a part of the document itself |
//! | strings elsewhere, such as `content: "x"`, `type("x")` | no |
//!
//! An `@import` after other rules is a reference, too: browsers ignore it, but that depends on
//! whether each rule before it is valid.
//!
//! The text arrives in pieces, in any charset. Tokens are taken from the text decoded so far,
//! except a token near its end, which may be incomplete: it waits for the next piece. A token that
//! is longer than any reference may be is skipped without being stored.
//!
//! Cost: linear in the length of the text; 256 KiB of memory for the token that waits, and a byte
//! for each open block up to [`BLOCKS_MAX`].
//! Source: CSS Syntax 3, sections 3.2 (charset), 4 (tokens), 5 (rules); CSS Values 4, section 4.5
//! (URLs); CSS Images 4, section 2.4 (`image-set`); CSS Cascade 5, section 2 (`@import`).

mod grammar;
mod skip;

use super::{Found, Settings};
use cssparser::{Parser, Token};
use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use grammar::Grammar;
use skip::Skip;
use std::fmt;

/// The maximum number of open blocks and functions whose kinds are stored. Deeper ones are counted.
pub(super) const BLOCKS_MAX: usize = 1 << 10;

/// The length from which a token is skipped, in bytes. References have a smaller limit.
const TOKEN_BYTES_MAX: usize = 256 << 10;

/// The number of bytes after a token that its end depends on, at most: `<!--` is the longest.
const LOOK_AHEAD: usize = 16;

/// The number of bytes at the start of a style sheet in which `@charset` may be.
const CHARSET_BYTES: usize = 1_024;

/// Determines the charset of a style sheet whose Content-Type names the charset `label` and whose
/// body is `text`. That of the page that refers to the style sheet is not known here: a style sheet
/// that names no charset is in UTF-8.
pub fn sheet_charset(label: Option<&[u8]>, text: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(text) {
        return encoding;
    }
    label.and_then(Encoding::for_label).or_else(|| declared(text)).unwrap_or(UTF_8)
}

/// Returns the charset that an `@charset` at the start of a style sheet names. It can't be UTF-16,
/// because the rule was read as ASCII.
fn declared(text: &[u8]) -> Option<&'static Encoding> {
    let name = text[..text.len().min(CHARSET_BYTES)].strip_prefix(b"@charset \"")?;
    let end = memchr::memchr(b'"', name).filter(|end| name.get(end + 1) == Some(&b';'))?;
    let encoding = Encoding::for_label(&name[..end])?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// Stores the references of a `style` attribute, whose value is decoded already.
pub(super) fn scan_declarations(value: &[u8], settings: &Settings, found: &mut Found) {
    let mut sheet = Sheet { grammar: Grammar::of_declarations(), ..Sheet::new(UTF_8) };
    sheet.feed(value, true, settings, found);
}

/// Scans one style sheet, piece by piece.
pub(super) struct Sheet {
    decoder: Decoder,
    /// The text that is decoded, but not yet split into tokens.
    text: String,
    /// The length of `text` from which it is split. A token that waits for its end is tried again
    /// when the text is twice as long, so that trying takes linear time.
    split_at: usize,
    /// The token that is being skipped, because it is too long.
    skip: Option<Skip>,
    grammar: Grammar,
}

impl fmt::Debug for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet").field("charset", &self.decoder.encoding()).finish_non_exhaustive()
    }
}

impl Sheet {
    /// Creates the scanner of a style sheet in `charset`. A byte order mark is skipped.
    pub(super) fn new(charset: &'static Encoding) -> Self {
        Self {
            decoder: charset.new_decoder_with_bom_removal(),
            text: String::new(),
            split_at: 0,
            skip: None,
            grammar: Grammar::of_sheet(),
        }
    }

    /// Scans the next piece of the text. `is_last` is true for the last piece.
    pub(super) fn feed(
        &mut self,
        piece: &[u8],
        is_last: bool,
        settings: &Settings,
        found: &mut Found,
    ) {
        self.decode(piece, is_last);
        if self.text.len() < self.split_at && !is_last {
            return;
        }
        let mut at = 0;
        loop {
            if let Some(skip) = &mut self.skip {
                match skip.end(&self.text[at..]) {
                    Some(length) => at += length,
                    None => {
                        at = self.text.len();
                        break;
                    }
                }
                self.skip = None;
            }
            at += self.split(at, is_last, settings, found);
            if self.text.len() - at <= TOKEN_BYTES_MAX {
                break;
            }
            at += self.begin_skip(at, found);
        }
        self.text.drain(..at);
        self.split_at = (2 * self.text.len()).min(TOKEN_BYTES_MAX);
    }

    fn decode(&mut self, mut piece: &[u8], is_last: bool) {
        loop {
            let most = self.decoder.max_utf8_buffer_length(piece.len());
            self.text.reserve(most.unwrap_or(piece.len()).max(LOOK_AHEAD));
            let (result, read, _) = self.decoder.decode_to_string(piece, &mut self.text, is_last);
            piece = &piece[read..];
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }

    /// Splits the text from `start` on into tokens, and stores the references among them. Returns
    /// the length of the complete tokens.
    fn split(
        &mut self,
        start: usize,
        is_last: bool,
        settings: &Settings,
        found: &mut Found,
    ) -> usize {
        let text = &self.text[start..];
        let (mut base, mut parser) = (0, Parser::new(text));
        loop {
            let before = base + parser.position().byte_index();
            let Ok(token) = parser.next_including_whitespace_and_comments().cloned() else {
                return text.len();
            };
            let after = base + parser.position().byte_index();
            if !is_last && after + LOOK_AHEAD > text.len() {
                return before;
            }
            self.grammar.take(&token, |value| push(value, settings, found));
            if grammar::is_opening(&token) {
                // The parser would skip the whole block; a new one continues inside.
                (base, parser) = (after, Parser::new(&text[after..]));
            }
        }
    }

    /// Begins to skip the token at `start`, which is too long. Returns the length of its beginning.
    fn begin_skip(&mut self, start: usize, found: &mut Found) -> usize {
        let text = &self.text[start..];
        let first = Parser::new(text).next_including_whitespace_and_comments().cloned();
        let token = first.expect("the text isn't empty");
        let (skip, length) = Skip::of(&token, text);
        let is_name = matches!(skip, Skip::Name(_)) && !matches!(token, Token::AtKeyword(_));
        if matches!(&token, Token::UnquotedUrl(value) if value.is_empty()) {
            // Only white space so far, which means nothing after `url(`.
            drop(token);
            self.text.truncate(start + length);
            return 0;
        }
        let token = if is_name { &Token::Delim('x') } else { &token };
        self.grammar.take(token, |value| found.count_too_long(value.as_bytes()));
        self.skip = Some(skip);
        length
    }
}

fn push(value: &str, settings: &Settings, found: &mut Found) {
    found.push_text(settings, super::Kind::Embed, false, value.as_bytes());
}
