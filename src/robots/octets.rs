//! Normalizes the spelling of paths and rules, so that they can be compared octet by octet.
//!
//! Unreserved characters are unescaped, and reserved ones keep their spelling (`%2F` is not `/`).
//! All others are percent-encoded with upper-case digits. Three deviations are harmless: `%2A` and
//! `%24` become `*` and `$`, which is how a rule escapes them (2.2.3); `'` is always `%27`, because
//! URL parsers write it so in queries; a `%` that begins no escape is `%25`.
//!
//! Rules that allow also have a narrower spelling. It keeps two differences that the standard's
//! spelling removes: a rule's escape of an unreserved octet (marked), and octets outside ASCII that
//! a target contains unencoded ([`RAW`]).
//!
//! Laws: normalizing twice is normalizing once; what matches narrowly matches by the standard. The
//! standard's spelling is ASCII, so that other octets are free for special meanings.
//! Source: RFC 9309 2.2.2, 2.2.3; RFC 3986 2.1 to 2.3.

use smallvec::SmallVec;

/// The octet that means, in a rule, any number of octets, also none: a star.
pub(super) const ANY: u8 = 0xFF;
/// The octet that means, in a rule and after every target, the end.
pub(super) const END: u8 = 0xFD;
/// The octet that replaces, in a target, an octet outside ASCII that was not encoded. No rule
/// contains it.
const RAW: u8 = 0xFC;
/// Added to an unreserved octet to mark that it was escaped.
const MARK: u8 = 0x80;

/// The octets of a normalized path; most paths fit without an allocation.
pub(super) type Octets = SmallVec<[u8; 256]>;

/// A path with its query in all spellings that rules are compared with, each followed by [`END`].
#[derive(Debug)]
pub(super) struct Target {
    /// The target in the spelling of the standard.
    pub(super) standard: Octets,
    /// The target in the spelling with [`RAW`] octets, for rules that allow; `None` if it has none.
    pub(super) raw: Option<Octets>,
    /// The target in the spelling with marked escapes, for rules that have marks; `None` if it has
    /// none.
    pub(super) marked: Option<Octets>,
}

impl Target {
    pub(super) fn new(text: &[u8]) -> Self {
        let standard = normalized(text, Raw::Encoded, Escapes::Decoded);
        let raw = (!text.is_ascii()).then(|| normalized(text, Raw::Kept, Escapes::Decoded));
        let escaped = memchr::memchr(b'%', text).is_some();
        let marked = escaped.then(|| normalized(text, Raw::Kept, Escapes::Marked));
        Self { standard, raw, marked: marked.filter(|octets| has_marks(octets)) }
    }

    /// Returns whether the target is the path of robots.txt itself.
    pub(super) fn is_robots_txt(&self) -> bool {
        self.standard.strip_suffix(&[END]) == Some(b"/robots.txt")
    }
}

fn normalized(text: &[u8], raw: Raw, escapes: Escapes) -> Octets {
    let mut octets = Octets::new();
    if text.first() != Some(&b'/') {
        octets.push(b'/');
    }
    normalize(text, raw, escapes, &mut |some| octets.extend_from_slice(some));
    octets.push(END);
    octets
}

/// Returns whether the octets of a rule or a target contain marked escapes.
pub(super) fn has_marks(octets: &[u8]) -> bool {
    octets.iter().any(|&octet| octet & MARK != 0 && is_unreserved(octet & !MARK))
}

/// The spelling of octets outside ASCII that are not encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raw {
    Encoded,
    Kept,
}

/// The spelling of escapes of unreserved octets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Decoded,
    Marked,
}

/// Appends the normalized path of a rule to `arena`, with marks if the rule allows. Returns the
/// number of octets that decide which of several matching rules wins; a special character counts as
/// one. Returns `None`, and appends nothing, if no path can match.
///
/// A `$` is special at the end only. Stars at the end, with or without a `$` after them, have no
/// effect and are removed.
pub(super) fn rule(text: &[u8], allows: bool, arena: &mut Vec<u8>) -> Option<u32> {
    let (text, ends) = match text.strip_suffix(b"$") {
        Some(text) => (text, true),
        None => (text, false),
    };
    if !matches!(text.first(), Some(b'/' | b'*')) {
        return None;
    }
    let escapes = if allows { Escapes::Marked } else { Escapes::Decoded };
    let start = arena.len();
    let (mut specials, mut stars) = (usize::from(ends), 0);
    for (index, piece) in text.split(|&byte| byte == b'*').enumerate() {
        if index > 0 {
            specials += 1;
            if arena[start..].last() != Some(&ANY) {
                stars += 1;
                arena.push(ANY);
            }
        }
        normalize(piece, Raw::Encoded, escapes, &mut |octets| arena.extend_from_slice(octets));
    }
    let count = arena.len() - start - stars + specials;
    if arena.last() == Some(&ANY) {
        arena.pop();
    } else if ends {
        arena.push(END);
    }
    Some(u32::try_from(count).expect("a line is shorter than the file"))
}

/// Appends a rule, given as its octets and the number that decides its rank, in the spelling of a
/// robots.txt. [`rule`] returns the same octets and the same number for it.
pub(super) fn push_text(octets: &[u8], count: u32, text: &mut String) {
    let ends = octets.last() == Some(&END);
    let stars = memchr::memchr_iter(ANY, octets).count();
    // Stars that have no effect count, too. They are written where there is one already, or at the
    // end.
    let mut idle = (count as usize).saturating_sub(octets.len());
    for &octet in octets {
        match octet {
            ANY => (0..=std::mem::take(&mut idle)).for_each(|_| text.push('*')),
            END => text.push('$'),
            b'*' | b'$' => push_escape(octet, text),
            octet if octet & MARK != 0 => push_escape(octet & !MARK, text),
            octet => text.push(char::from(octet)),
        }
    }
    if !ends {
        (0..idle).for_each(|_| text.push('*'));
    }
    debug_assert!(!ends || stars > 0 || idle == 0, "an end without stars counts once");
}

fn push_escape(octet: u8, text: &mut String) {
    encoded(octet).iter().for_each(|digit| text.push(char::from(*digit)));
}

/// Passes the normalized spelling of `text` to `put`, piece by piece.
fn normalize(text: &[u8], raw: Raw, escapes: Escapes, put: &mut impl FnMut(&[u8])) {
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

/// Returns whether `byte` and its percent-encoded form are equivalent (RFC 3986 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns whether a rule must encode `byte` to match it literally (2.2.3).
const fn is_special(byte: u8) -> bool {
    matches!(byte, b'*' | b'$')
}

/// Bytes that are copied unchanged: unreserved and reserved ones, except `'`.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = is_unreserved(byte as u8);
        byte += 1;
    }
    let others = b":/?#[]@!$&()*+,;=";
    let mut index = 0;
    while index < others.len() {
        plain[others[index] as usize] = true;
        index += 1;
    }
    plain
};

// A marked octet must differ from the special ones.
const _: () = {
    let mut byte = 0;
    while byte < 128 {
        let marked = byte | MARK;
        assert!(!is_unreserved(byte) || !matches!(marked, ANY | END | RAW));
        byte += 1;
    }
};
