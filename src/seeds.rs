//! Text of a seed file to URLs, and what is wrong with the lines that give none.
//!
//! One URL a line. Blank lines and what follows a `#` at the start of a line or behind white space
//! are skipped; a line may end in LF, CR LF or CR, the file may be in UTF-8 or UTF-16. A URL may be
//! in quotes or angle brackets, and have a note behind a tab. Tables are read by the column that
//! their header names (`url`, `domain`, ...), or by the second one where the first holds ranks; a
//! rank and a tab before a URL are skipped on any line, and so are zero-width characters around it.
//! A line without a scheme is an http URL: `example.com/x`, `localhost:8080`. A URL given twice
//! counts once and is reported once. No line stops the others. Cost: linear in the text.

use crate::map::Map;
use crate::url::{Invalid, Url};
use std::borrow::Cow;
use std::fmt;

/// A URL to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// In canonical form.
    pub url: Url,
    /// Where it stands, counted from 1.
    pub line: usize,
}

/// A line that gave no seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it stands, counted from 1.
    pub line: usize,
    /// What stands there; shortened if it is long.
    pub text: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It isn't a URL that can be fetched.
    Invalid(Invalid),
    /// It isn't UTF-8.
    NotUtf8,
    /// It looks like a mail address.
    MailAddress,
    /// There is white space within it.
    WhiteSpace,
    /// It begins as a line of a scope file does: with a plus or a minus.
    Directive,
    /// It begins with a quote that nothing closes.
    Quote,
    /// There is something before the scheme, which a parser would take for the host.
    Prefix,
    /// It is the same as that of this line.
    Duplicate(usize),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: ", self.line, self.text)?;
        match self.reason {
            Reason::Invalid(invalid) => invalid.fmt(f),
            Reason::NotUtf8 => f.write_str("not UTF-8"),
            Reason::MailAddress => f.write_str("a mail address, not a URL"),
            Reason::WhiteSpace => {
                f.write_str("white space in a URL; write %20, or put a tab before a note")
            }
            Reason::Quote => f.write_str("a quote that nothing closes"),
            Reason::Prefix => f.write_str("text before the scheme; put the URL first"),
            Reason::Directive => f.write_str("not a URL; list what is wanted under [scope]"),
            Reason::Duplicate(first) => write!(f, "the same as line {first}"),
        }
    }
}

/// What a seed file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The seeds, in the order of their lines.
    pub seeds: Vec<Seed>,
    /// Lines that gave none, and why.
    pub mistakes: Vec<Mistake>,
    /// Lines with a comma that was taken as part of the URL: how many, and the first. In a table
    /// without a header nobody can tell a comma of the URL from one behind it.
    pub commas: Option<(usize, usize)>,
}

/// Reads a seed file: the seeds, and the lines that gave none.
pub fn parse(text: &[u8]) -> (Vec<Seed>, Vec<Mistake>) {
    let Parsed { seeds, mistakes, .. } = parse_file(text);
    (seeds, mistakes)
}

/// Reads a seed file.
pub fn parse_file(text: &[u8]) -> Parsed {
    let text = decoded(text);
    let mut parsed = Parsed::default();
    // For each URL its line, and whether a second one was reported.
    let mut known: Map<Url, (usize, bool)> = Map::default();
    let contents = lines(&text).map(uncommented).enumerate();
    let contents = contents.filter(|(_, content)| !content.is_empty());
    let table = Table::of(contents.clone().map(|(_, content)| content));
    for (index, content) in contents.skip(usize::from(table.is_some_and(|table| table.has_header)))
    {
        let number = index + 1;
        let content = table.map_or(content, |table| table.cell(content));
        let reason = match url_of(unwrapped(unranked(content))) {
            Ok(url) => match known.get_mut(&url) {
                None => {
                    if table.is_none() && content.contains(&b',') {
                        parsed.commas.get_or_insert((0, number)).0 += 1;
                    }
                    known.insert(url.clone(), (number, false));
                    parsed.seeds.push(Seed { url, line: number });
                    continue;
                }
                Some((_, true)) => continue,
                Some((first, reported)) => {
                    *reported = true;
                    Reason::Duplicate(*first)
                }
            },
            Err(reason) => reason,
        };
        parsed.mistakes.push(Mistake { line: number, text: shortened(content), reason });
    }
    parsed
}

/// The text in UTF-8, as far as it is text: what begins with a byte order mark is what that says,
/// and ASCII with a zero at every other byte is UTF-16 without one.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    let (encoding, text) = match text {
        [0xef, 0xbb, 0xbf, text @ ..] => return Cow::Borrowed(text),
        [0xff, 0xfe, text @ ..] => (encoding_rs::UTF_16LE, text),
        [0xfe, 0xff, text @ ..] => (encoding_rs::UTF_16BE, text),
        [1..=255, 0, 1..=255, 0, ..] => (encoding_rs::UTF_16LE, text),
        [0, 1..=255, 0, 1..=255, ..] => (encoding_rs::UTF_16BE, text),
        _ => return Cow::Borrowed(text),
    };
    let (text, _) = encoding.decode_without_bom_handling(text);
    Cow::Owned(text.into_owned().into_bytes())
}

/// Lines that end in LF, CR LF, or CR.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\n', b'\r', text) else {
            rest = None;
            return Some(text);
        };
        let next = if text[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        rest = Some(&text[next..]);
        Some(&text[..end])
    })
}

/// The line without its comment and the white space around it.
fn uncommented(line: &[u8]) -> &[u8] {
    let is_comment = |at: &usize| *at == 0 || line[at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// The line without a number and a tab before the URL: `1`, `1.` or `1)`.
fn unranked(content: &[u8]) -> &[u8] {
    let Some(at) = memchr::memchr(b'\t', content) else { return content };
    let rank = content[..at].trim_ascii_end();
    let rank = rank.strip_suffix(b".").or_else(|| rank.strip_suffix(b")")).unwrap_or(rank);
    let is_rank = !rank.is_empty() && rank.iter().all(u8::is_ascii_digit);
    if is_rank { content[at..].trim_ascii() } else { content }
}

/// The URL of a line without what people put around it: quotes, angle brackets, a note. A word
/// before a tab and a URL stays, for [`url_of`] to refuse.
fn unwrapped(content: &[u8]) -> &[u8] {
    let inner = |open: u8, close: u8| -> Option<&[u8]> {
        let rest = content.strip_prefix(&[open])?;
        let end = memchr::memchr(close, rest)?;
        let behind = rest.get(end + 1);
        behind.is_none_or(|byte| b",;\t ".contains(byte)).then(|| &rest[..end])
    };
    let wrapped = inner(b'"', b'"').or_else(|| inner(b'\'', b'\'')).or_else(|| inner(b'<', b'>'));
    let content = wrapped.unwrap_or(content);
    let end = memchr::memchr(b'\t', content).unwrap_or(content.len());
    let (first, note) = (&content[..end], content[end..].trim_ascii());
    let is_url = note.starts_with(b"http://") || note.starts_with(b"https://");
    let is_word = !first.iter().any(|byte| b".:/?".contains(byte));
    if is_url && is_word { content } else { first.trim_ascii() }
}

/// A file of cells, one column of which holds the URLs.
#[derive(Clone, Copy, Debug)]
struct Table {
    delimiter: u8,
    column: usize,
    has_header: bool,
}

/// Names of the column that holds the URLs.
const HEADERS: [&str; 12] = [
    "url", "urls", "uri", "link", "domain", "host", "hostname", "site", "website", "address",
    "seed", "origin",
];
/// Lines looked at to recognise a list of ranks and names.
const RANKED_LINES: usize = 10;

impl Table {
    /// A table is recognised by a header that names the column, or by a number and a name on each
    /// line, as lists of the largest sites have them.
    fn of<'a>(mut contents: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Self> {
        let mut ranked = contents.clone().take(RANKED_LINES).peekable();
        let is_ranked = |content: &[u8]| {
            let at = memchr::memchr(b',', content);
            at.is_some_and(|at| {
                at > 0
                    && content[..at].iter().all(u8::is_ascii_digit)
                    && content[at..].contains(&b'.')
            })
        };
        if ranked.peek().is_some() && ranked.all(is_ranked) {
            return Some(Self { delimiter: b',', column: 1, has_header: false });
        }
        let first = contents.next()?;
        for delimiter in [b',', b';', b'\t'] {
            let names = cells(first, delimiter).map(|cell| unwrapped(cell).to_ascii_lowercase());
            let names: Vec<Vec<u8>> = names.collect();
            let is_url = |name: &Vec<u8>| HEADERS.iter().any(|header| header.as_bytes() == name);
            if names.len() > 1
                && let Some(column) = names.iter().position(is_url)
            {
                return Some(Self { delimiter, column, has_header: true });
            }
        }
        None
    }

    /// The cell of a line that holds the URL; nothing if there is none.
    fn cell(self, content: &[u8]) -> &[u8] {
        cells(content, self.delimiter).nth(self.column).unwrap_or_default().trim_ascii()
    }
}

/// The cells of a line; a delimiter between double quotes is part of its cell.
fn cells(content: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    content.split(move |&byte| {
        is_quoted ^= byte == b'"';
        byte == delimiter && !is_quoted
    })
}

fn url_of(content: &[u8]) -> Result<Url, Reason> {
    let text = std::str::from_utf8(content).map_err(|_| Reason::NotUtf8)?;
    let text = uncurled(text.trim_matches(is_unseen)).ok_or(Reason::Quote)?;
    if text.contains(' ') {
        return Err(Reason::WhiteSpace);
    }
    if text.starts_with(['"', '\'', '<']) {
        return Err(Reason::Quote);
    }
    if text.starts_with(['+', '-']) {
        return Err(Reason::Directive);
    }
    let scheme = missing_scheme(text);
    let rest = if scheme.is_none() { text.split_once("://").unwrap_or_default().1 } else { text };
    // A `://` where the host is expected: the standard would take what is before it for the host.
    if rest.find("://").is_some_and(|at| !rest[..at].contains(['/', '?', '#'])) {
        return Err(Reason::Prefix);
    }
    let url = match scheme {
        None => Url::parse(text),
        // Else the standard would take the first folder for the host.
        Some(_) if text.starts_with('/') && !text.starts_with("//") => Err(Invalid::Host),
        Some(_) if looks_like_mail(text) => return Err(Reason::MailAddress),
        Some(scheme) => Url::parse(&format!("{scheme}{text}")),
    };
    url.map_err(Reason::Invalid)
}

/// Characters that nobody sees: white space beyond ASCII, and what has no width.
fn is_unseen(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// The text without the quotes of a word processor around it; `None` if they are not closed.
fn uncurled(text: &str) -> Option<&str> {
    let is_quote = |c: char| matches!(c, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}');
    let Some(inner) = text.strip_prefix(is_quote) else { return Some(text) };
    let (inner, behind) = inner.rsplit_once(is_quote)?;
    behind.trim_matches([',', ';']).is_empty().then(|| inner.trim_matches(is_unseen))
}

/// What to put before a text without a scheme. A colon before a number belongs to a port.
fn missing_scheme(text: &str) -> Option<&'static str> {
    if text.starts_with("//") {
        return Some("http:");
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let has_scheme = text.split_once(':').is_some_and(|(name, rest)| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_port =
            digits.len() < rest.len() && (digits.is_empty() || digits.starts_with(['/', '?']));
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name) && !is_port
    });
    if has_scheme { None } else { Some("http://") }
}

fn looks_like_mail(text: &str) -> bool {
    text.contains('@') && !text.contains(['/', ':', '?'])
}

/// At most 200 characters, for a line of a report.
fn shortened(content: &[u8]) -> String {
    const CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(&content[..content.len().min(4 * CHARS_MAX)]);
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<String, Reason> {
        let (seeds, mistakes) = parse(line.as_bytes());
        assert_eq!(seeds.len() + mistakes.len(), 1, "{line:?}");
        match mistakes.first() {
            Some(mistake) => Err(mistake.reason),
            None => Ok(seeds[0].url.as_str().into()),
        }
    }

    #[test]
    fn a_file_with_everything() {
        let text = "\u{feff}http://a.test/\r\n# comment\r\n\r\n  b.test/x  # why\n\t#\nA.test\n\
                    http://a.test/#top\nhttp://\nlast.test/#f";
        let (seeds, mistakes) = parse(text.as_bytes());
        let seeds: Vec<_> = seeds.iter().map(|seed| (seed.line, seed.url.as_str())).collect();
        let expected = [(1, "http://a.test/"), (4, "http://b.test/x"), (9, "http://last.test/")];
        assert_eq!(seeds, expected);
        let mistakes: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
        let expected = [
            "line 6: \"A.test\": the same as line 1",
            "line 8: \"http://\": no host, or not a valid one",
        ];
        assert_eq!(mistakes, expected);
        assert_eq!(parse(b""), (vec![], vec![]));
    }

    #[test]
    fn lines_as_people_write_them() {
        let cases = [
            ("https://a.test", Ok("https://a.test/")),
            ("HTTP://A.test:80/", Ok("http://a.test/")),
            ("a.test", Ok("http://a.test/")),
            ("//a.test/x", Ok("http://a.test/x")),
            ("localhost:8080", Ok("http://localhost:8080/")),
            ("localhost:8080/x:y", Ok("http://localhost:8080/x:y")),
            ("a.test:81?x", Ok("http://a.test:81/?x")),
            ("a.test/?u=http://b.test/", Ok("http://a.test/?u=http://b.test/")),
            ("[::1]:81/", Ok("http://[::1]:81/")),
            ("10.0.0.1", Ok("http://10.0.0.1/")),
            ("b\u{fc}cher.test", Ok("http://xn--bcher-kva.test/")),
            ("a.test/@user", Ok("http://a.test/@user")),
            ("ftp://a.test/", Err(Reason::Invalid(Invalid::Scheme))),
            ("mailto:x@a.test", Err(Reason::Invalid(Invalid::Scheme))),
            ("x@a.test", Err(Reason::MailAddress)),
            ("/var/log", Err(Reason::Invalid(Invalid::Host))),
            ("a test", Err(Reason::WhiteSpace)),
            ("http://a.test/my page", Err(Reason::WhiteSpace)),
            ("http://a.test/x\tits note, with more", Ok("http://a.test/x")),
            ("\"http://a.test/x\",", Ok("http://a.test/x")),
            ("'a.test'", Ok("http://a.test/")),
            ("<https://a.test/x>", Ok("https://a.test/x")),
            ("\"a.test", Err(Reason::Quote)),
            ("http://a.test/x,y", Ok("http://a.test/x,y")),
            ("+a.test", Err(Reason::Directive)),
            ("1\thttp://a.test/1", Ok("http://a.test/1")),
            ("12. \t\"a.test/1\"\ta note", Ok("http://a.test/1")),
            ("Title\thttp://a.test/1", Err(Reason::Prefix)),
            ("a.test\thttp://b.test/", Ok("http://a.test/")),
            ("10.0.0.1\tits note", Ok("http://10.0.0.1/")),
            ("\u{201c}http://a.test/1\u{201d},", Ok("http://a.test/1")),
            ("\u{2018}\u{200b}a.test\u{2019}", Ok("http://a.test/")),
            ("\u{201c}http://a.test/1", Err(Reason::Quote)),
            ("\u{201c}http://a.test/\u{201d}x", Err(Reason::Quote)),
            ("\u{200b}http://a.test/1\u{feff}", Ok("http://a.test/1")),
            ("\u{a0}http://a.test/1\u{a0}", Ok("http://a.test/1")),
            ("http\u{200b}://a.test/", Err(Reason::Prefix)),
            ("1http://a.test/", Err(Reason::Prefix)),
            ("a.test,http://a.test/", Err(Reason::Prefix)),
            ("http://http://a.test/", Err(Reason::Prefix)),
            ("http://a.test?u=http://b.test/", Ok("http://a.test/?u=http://b.test/")),
            ("a.test/save/http://b.test/", Ok("http://a.test/save/http://b.test/")),
            ("a.test:99999", Err(Reason::Invalid(Invalid::Port))),
        ];
        for (line, expected) in cases {
            assert_eq!(one(line).as_deref().map_err(|reason| *reason), expected, "{line}");
        }
    }

    #[test]
    fn tables_are_read_by_their_column() {
        let cases: [(&str, &[&str]); 6] = [
            (
                "url,title\nhttp://a.test/,\"x, y\"\nb.test,z\n",
                &["http://a.test/", "http://b.test/"],
            ),
            ("Title;URL\nx;a.test/1,2\n", &["http://a.test/1,2"]),
            ("id\tdomain\n7\ta.test\n", &["http://a.test/"]),
            ("1,a.test\n2,b.test\n", &["http://a.test/", "http://b.test/"]),
            ("\"url\",\"note\"\n\"http://a.test/x\",\"y\"\n", &["http://a.test/x"]),
            ("http://a.test/1,2\nhttp://a.test/3,4\n", &["http://a.test/1,2", "http://a.test/3,4"]),
        ];
        for (text, expected) in cases {
            let parsed = parse_file(text.as_bytes());
            let found: Vec<_> = parsed.seeds.iter().map(|seed| seed.url.as_str()).collect();
            assert_eq!((&*found, parsed.mistakes.len()), (expected, 0), "{text:?}");
        }
        let plain = parse_file(b"a.test\nhttp://a.test/1,2\nhttp://a.test/3,4\n");
        assert_eq!(plain.commas, Some((2, 2)), "commas of a list are pointed out");
    }

    #[test]
    fn line_ends_and_encodings() {
        let text = "http://a.test/\r# note\rb.test/\u{e9}\r\rc.test";
        let utf16 = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        let (low, high) = (utf16(u16::to_le_bytes), utf16(u16::to_be_bytes));
        let files = [
            text.as_bytes().to_vec(),
            text.replace('\r', "\r\n").into_bytes(),
            [b"\xff\xfe", low.as_slice()].concat(),
            [b"\xfe\xff", high.as_slice()].concat(),
            low,
            high,
        ];
        for (number, file) in files.iter().enumerate() {
            let (seeds, mistakes) = parse(file);
            let seeds: Vec<_> = seeds.iter().map(|seed| (seed.line, seed.url.as_str())).collect();
            let expected =
                [(1, "http://a.test/"), (3, "http://b.test/%C3%A9"), (5, "http://c.test/")];
            assert_eq!((&*seeds, mistakes.len()), (&expected[..], 0), "file {number}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_reported() {
        let (seeds, mistakes) = parse(b"http://a.test/\n\xff\xfe\nhttp://b.test/");
        assert_eq!(seeds.len(), 2);
        assert_eq!((mistakes[0].line, mistakes[0].reason), (2, Reason::NotUtf8));
    }

    #[test]
    fn many_repeats_are_reported_once_and_long_lines_are_cut() {
        let (seeds, mistakes) = parse("a.test\n".repeat(50).as_bytes());
        assert_eq!((seeds.len(), mistakes.len()), (1, 1));
        let (seeds, mistakes) = parse(format!("a.test/{}", "\u{e9}".repeat(50_000)).as_bytes());
        assert_eq!((seeds.len(), mistakes[0].text.chars().count()), (0, 203));
        assert_eq!(mistakes[0].reason, Reason::Invalid(Invalid::TooLong));
    }

    /// Law: no text panics, and every line that isn't blank gives a seed or has been told about.
    #[test]
    fn mutated_files_are_survived() {
        let text = "\u{feff}http://a.test/\r\n# c\nb.test:80/x # y\n\u{e9}.test\nx@y\n//z\n";
        let mut random = 0x5eed_0006_u64;
        let mut below = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % bound as u64).expect("less than bound")
        };
        for _ in 0..20_000 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..below(6) {
                let at = below(bytes.len());
                bytes[at] = u8::try_from(below(256)).expect("a byte");
            }
            bytes.truncate(below(bytes.len() + 1));
            let lines = bytes.split(|&byte| matches!(byte, b'\n' | b'\r')).count();
            let (seeds, mistakes) = parse(&bytes);
            assert!(seeds.len() + mistakes.len() <= lines);
            assert!(seeds.windows(2).all(|pair| pair[0].line < pair[1].line));
            for seed in &seeds {
                assert_eq!(Url::parse(seed.url.as_str()).as_ref(), Ok(&seed.url));
            }
        }
    }
}
