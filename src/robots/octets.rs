//! One spelling for paths and rules, so that comparing them is comparing octets.
//!
//! Unreserved characters stand for themselves and reserved ones keep the spelling they came in
//! (`%2F` is not `/`); all else is percent-encoded with upper-case digits. Three liberties, each
//! harmless: `%2A` and `%24` are `*` and `$` themselves, which is how a rule names them (2.2.3);
//! `'` is always `%27`, because URL parsers write it so in queries; a `%` that encodes nothing
//! is `%25`.
//!
//! Rules that allow are held to a narrower spelling too. It tells apart what the standard's makes
//! one: a rule's escape of an unreserved octet (marked), and octets outside ASCII that a target
//! holds unencoded ([`RAW`]).
//!
//! Laws: the spelling of a spelling is itself; what matches narrowly matches by the standard. The
//! standard's spelling is ASCII, which leaves octets free for all that is special.
//! Source: RFC 9309 2.2.2, 2.2.3; RFC 3986 2.1 to 2.3.

use smallvec::SmallVec;

/// Stands in a rule for any octets, also none.
pub(super) const ANY: u8 = 0xFF;
/// Stands in a rule, and at every target's end, for the end.
pub(super) const END: u8 = 0xFD;
/// Stands in a target for an octet outside ASCII that came unencoded. No rule has it.
const RAW: u8 = 0xFC;
/// Added to an unreserved octet that came as an escape.
const MARK: u8 = 0x80;

/// A spelling: most fit without an allocation.
pub(super) type Octets = SmallVec<[u8; 256]>;

/// A path with its query in all spellings it is looked at in, each with [`END`] behind it.
#[derive(Debug)]
pub(super) struct Target {
    /// The standard's.
    pub(super) standard: Octets,
    /// The same with [`RAW`] octets, if there are any: for rules that allow.
    pub(super) raw: Option<Octets>,
    /// The same with escapes marked, if there are any to mark: for rules that have marks.
    pub(super) marked: Option<Octets>,
}

impl Target {
    pub(super) fn new(text: &[u8]) -> Self {
        let standard = spelled(text, Raw::Encoded, Escapes::Undone);
        let raw = (!text.is_ascii()).then(|| spelled(text, Raw::Kept, Escapes::Undone));
        let escaped = memchr::memchr(b'%', text).is_some();
        let marked = escaped.then(|| spelled(text, Raw::Kept, Escapes::Marked));
        Self { standard, raw, marked: marked.filter(|octets| has_marks(octets)) }
    }

    /// Whether it is the file itself.
    pub(super) fn is_robots_txt(&self) -> bool {
        self.standard.strip_suffix(&[END]) == Some(b"/robots.txt")
    }
}

fn spelled(text: &[u8], raw: Raw, escapes: Escapes) -> Octets {
    let mut octets = Octets::new();
    if text.first() != Some(&b'/') {
        octets.push(b'/');
    }
    spell(text, raw, escapes, &mut |some| octets.extend_from_slice(some));
    octets.push(END);
    octets
}

/// Whether a rule or a target has escapes that are marked.
pub(super) fn has_marks(octets: &[u8]) -> bool {
    octets.iter().any(|&octet| octet & MARK != 0 && is_unreserved(octet & !MARK))
}

/// What becomes of octets outside ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raw {
    Encoded,
    Kept,
}

/// What becomes of escapes of unreserved octets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Undone,
    Marked,
}

/// Appends the spelling of a rule, with marks if it allows, and says how many octets it counts when
/// rules compete: its special characters are one each. `None`, and nothing is appended, if no path
/// can match.
///
/// A `$` is special at the end only. Stars at the end, and the `$` behind them, say nothing.
pub(super) fn rule(text: &[u8], allows: bool, arena: &mut Vec<u8>) -> Option<u32> {
    let (text, ends) = match text.strip_suffix(b"$") {
        Some(text) => (text, true),
        None => (text, false),
    };
    if !matches!(text.first(), Some(b'/' | b'*')) {
        return None;
    }
    let escapes = if allows { Escapes::Marked } else { Escapes::Undone };
    let start = arena.len();
    let (mut specials, mut stars) = (usize::from(ends), 0);
    for (place, piece) in text.split(|&byte| byte == b'*').enumerate() {
        if place > 0 {
            specials += 1;
            if arena[start..].last() != Some(&ANY) {
                stars += 1;
                arena.push(ANY);
            }
        }
        spell(piece, Raw::Encoded, escapes, &mut |octets| arena.extend_from_slice(octets));
    }
    let count = arena.len() - start - stars + specials;
    if arena.last() == Some(&ANY) {
        arena.pop();
    } else if ends {
        arena.push(END);
    }
    Some(u32::try_from(count).expect("a line is shorter than the file"))
}

/// Appends the spelling of `text`.
fn spell(text: &[u8], raw: Raw, escapes: Escapes, put: &mut impl FnMut(&[u8])) {
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.iter().take_while(|&&byte| PLAIN[usize::from(byte)]).count();
        put(&rest[..plain]);
        rest = &rest[plain..];
        rest = match rest {
            [] => rest,
            [b'%', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let byte = value_of(*high) << 4 | value_of(*low);
                if is_unreserved(byte) && escapes == Escapes::Marked {
                    put(&[byte | MARK]);
                } else if is_unreserved(byte) || is_special(byte) {
                    put(&[byte]);
                } else {
                    put(&encoded(byte));
                }
                after
            }
            [byte, after @ ..] if !byte.is_ascii() && raw == Raw::Kept => {
                put(&[RAW]);
                after
            }
            [byte, after @ ..] => {
                put(&encoded(*byte));
                after
            }
        };
    }
}

fn encoded(byte: u8) -> [u8; 3] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

fn value_of(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Whether the percent-encoded form of `byte` is but another spelling of it (RFC 3986 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a rule has to encode `byte` to mean it (2.2.3).
const fn is_special(byte: u8) -> bool {
    matches!(byte, b'*' | b'$')
}

/// Bytes that are copied as they come: unreserved and reserved, less `'`.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = is_unreserved(byte as u8);
        byte += 1;
    }
    let others = b":/?#[]@!$&()*+,;=";
    let mut place = 0;
    while place < others.len() {
        plain[others[place] as usize] = true;
        place += 1;
    }
    plain
};

// Marks must leave the special octets alone.
const _: () = {
    let mut byte = 0;
    while byte < 128 {
        let marked = byte | MARK;
        assert!(!is_unreserved(byte) || !matches!(marked, ANY | END | RAW));
        byte += 1;
    }
};
