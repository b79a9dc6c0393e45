//! Text of a seed file to URLs, and what is wrong with the lines that give none.
//!
//! One URL a line. Blank lines and what follows a `#` at the start of a line or behind white space
//! are skipped; a line may end in CR LF, the file may begin with a byte order mark. A line without
//! a scheme is an http URL: `example.com/x`, `localhost:8080`. A URL given twice counts once and is
//! reported once. No line stops the others. Cost: linear in the text.

use crate::map::Map;
use crate::url::{Invalid, Url};
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
            Reason::Duplicate(first) => write!(f, "the same as line {first}"),
        }
    }
}

/// Reads a seed file.
pub fn parse(text: &[u8]) -> (Vec<Seed>, Vec<Mistake>) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let (mut seeds, mut mistakes) = (Vec::new(), Vec::new());
    // For each URL its line, and whether a second one was reported.
    let mut known: Map<Url, (usize, bool)> = Map::default();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let number = index + 1;
        let content = content(line);
        if content.is_empty() {
            continue;
        }
        let reason = match url_of(content) {
            Ok(url) => match known.get_mut(&url) {
                None => {
                    known.insert(url.clone(), (number, false));
                    seeds.push(Seed { url, line: number });
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
        mistakes.push(Mistake { line: number, text: shortened(content), reason });
    }
    (seeds, mistakes)
}

/// The line without its comment and the white space around it.
fn content(line: &[u8]) -> &[u8] {
    let is_comment = |at: &usize| *at == 0 || line[at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    line[..end].trim_ascii()
}

fn url_of(content: &[u8]) -> Result<Url, Reason> {
    let text = std::str::from_utf8(content).map_err(|_| Reason::NotUtf8)?;
    let url = match missing_scheme(text) {
        None => Url::parse(text),
        // Else the standard would take the first folder for the host.
        Some(_) if text.starts_with('/') && !text.starts_with("//") => Err(Invalid::Host),
        Some(_) if looks_like_mail(text) => return Err(Reason::MailAddress),
        Some(scheme) => Url::parse(&format!("{scheme}{text}")),
    };
    url.map_err(Reason::Invalid)
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
            ("a test", Err(Reason::Invalid(Invalid::Host))),
            ("a.test:99999", Err(Reason::Invalid(Invalid::Port))),
        ];
        for (line, expected) in cases {
            assert_eq!(one(line).as_deref().map_err(|reason| *reason), expected, "{line}");
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
        let (seeds, mistakes) = parse(format!("a.test/{}", "\u{e9}".repeat(5_000)).as_bytes());
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
            let lines = bytes.split(|&byte| byte == b'\n').count();
            let (seeds, mistakes) = parse(&bytes);
            assert!(seeds.len() + mistakes.len() <= lines);
            assert!(seeds.windows(2).all(|pair| pair[0].line < pair[1].line));
            for seed in &seeds {
                assert_eq!(Url::parse(seed.url.as_str()).as_ref(), Ok(&seed.url));
            }
        }
    }
}
