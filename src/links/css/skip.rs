//! Searches the end of a token that is too long to be stored.

use cssparser::Token;

/// A token whose end is being searched. The search continues over any number of texts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip {
    /// A comment. True after an asterisk.
    Comment(bool),
    /// A string that ends with this quote, or before a line end.
    Quoted(u8, Escape),
    /// A URL without quotes, which ends with a parenthesis.
    Url(Escape),
    /// A name or a number.
    Name(Escape),
    /// White space.
    Space,
}

/// What a backslash before the position means for the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// There is no backslash.
    No,
    /// The byte is escaped.
    Yes,
    /// A carriage return was escaped, which a line feed may belong to.
    Return,
}

impl Skip {
    /// Returns how to skip `token`, with which `text` begins, and the length of its beginning, from
    /// which on its end is to be searched.
    pub(super) fn of(token: &Token<'_>, text: &str) -> (Self, usize) {
        match token {
            Token::Comment(_) => (Self::Comment(false), 2),
            Token::QuotedString(_) | Token::BadString(_) => {
                (Self::Quoted(text.as_bytes()[0], Escape::No), 1)
            }
            Token::UnquotedUrl(_) | Token::BadUrl(_) => {
                let open = text.find('(').expect("it follows the name of the function");
                (Self::Url(Escape::No), open + 1)
            }
            Token::WhiteSpace(_) => (Self::Space, 0),
            _ if text.starts_with('\\') => (Self::Name(Escape::No), 0),
            _ => (Self::Name(Escape::No), text.chars().next().map_or(0, char::len_utf8)),
        }
    }

    /// Returns the length of the rest of the token in `text`; `None` if it does not end there.
    pub(super) fn end(&mut self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        match self {
            Self::Comment(star) => {
                let end = bytes.iter().position(|byte| {
                    let is_end = *star && *byte == b'/';
                    *star = *byte == b'*';
                    is_end
                })?;
                Some(end + 1)
            }
            Self::Quoted(quote, escape) => {
                let end = bytes.iter().position(|byte| {
                    escape.is_plain(*byte) && (byte == quote || is_line_end(*byte))
                })?;
                Some(end + usize::from(bytes[end] == *quote))
            }
            Self::Url(escape) => {
                let end = bytes.iter().position(|byte| escape.is_plain(*byte) && *byte == b')')?;
                Some(end + 1)
            }
            Self::Name(escape) => {
                let is_end = |byte: &u8| escape.is_plain(*byte) && !is_of_name(*byte);
                bytes.iter().position(is_end)
            }
            Self::Space => {
                let is_space = |byte| is_line_end(byte) || matches!(byte, b' ' | b'\t');
                bytes.iter().position(|byte| !is_space(*byte))
            }
        }
    }
}

impl Escape {
    /// Returns whether `byte`, the next one, is neither escaped nor a backslash.
    fn is_plain(&mut self, byte: u8) -> bool {
        let before = *self;
        *self = match (before, byte) {
            (Self::Yes, b'\r') => Self::Return,
            (Self::No | Self::Return, b'\\') => Self::Yes,
            _ => Self::No,
        };
        *self == Self::No && before != Self::Yes && !(before == Self::Return && byte == b'\n')
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | 0x0c)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'\0' | 0x80..)
}
