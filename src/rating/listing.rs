//! Parses a file of scores to a table, and reports the invalid lines.
//!
//! Each line contains a URL or a host, white space, and a score:
//!
//! ```text
//! # The host's front page, and what is worth less than the mean page.
//! https://example.com/    12.5
//! example.com             0.25
//! ```
//!
//! Blank lines are skipped, and so are comments: a `#` at the start of a line or after white space,
//! and the rest of the line. A line may end in CR LF, and the file may begin with a byte order
//! mark. URLs and hosts are made canonical (any case, international names). Scores are decimal
//! numbers from 0 to 1,000,000; the mean page has a score of one.
//!
//! Laws: the table is only created if every line is valid. The order of lines makes no difference
//! except for duplicate entries, of which the last counts. No text causes a panic.
//! Cost: linear in the text, 0.7 microseconds a line; the text itself is not kept.

use super::Table;
use crate::ground::quality::{self, Quality};
use crate::url::{self, Limits, Url};
use std::fmt;

/// The maximum number of mistakes reported for a file: a file with more is probably the wrong one.
const MISTAKES_MAX: usize = 20;

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The invalid part of the line, shortened if it is long.
    pub text: String,
    /// What is wrong with the invalid part.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The line is not UTF-8.
    NotUtf8,
    /// The line has only one word.
    NoScore,
    /// The line has more than two words.
    Surplus,
    /// The score comes first, before the URL or host.
    Swapped,
    /// The second word is not a score.
    Score(quality::Invalid),
    /// The first word is a URL that can't be fetched.
    Url(url::Invalid),
    /// The first word is neither a URL nor a host.
    Host(url::Invalid),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("not UTF-8; save the file as UTF-8"),
            Self::NoScore => f.write_str("no score; write a space and a number after it"),
            Self::Surplus => {
                f.write_str("more than two words; write a URL or host, a space, and a score")
            }
            Self::Swapped => f.write_str("the score comes second; swap the two"),
            Self::Score(quality::Invalid::TooLarge) => {
                write!(f, "{}; scale all scores down", quality::Invalid::TooLarge)
            }
            Self::Score(invalid) => write!(f, "{invalid}; write a score such as 1 or 0.25"),
            Self::Url(invalid) => write!(f, "{invalid}; write a URL such as http://host/path"),
            Self::Host(invalid) => write!(
                f,
                "not a bare host ({invalid}); write a host such as example.com, or a URL with \
                 http:// or https://"
            ),
        }
    }
}

/// Prints a mistake, for example `line 3: "nan": not a finite number; write a score such as 1 or
/// 0.25`.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: {}", self.line, self.text, self.reason)
    }
}

/// All mistakes in a file; there is at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// The first mistakes, at most twenty, in order of line.
    pub list: Vec<Mistake>,
    /// The number of mistakes that are not in the list.
    pub omitted: usize,
}

/// Prints one line for each mistake.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.list.iter().enumerate() {
            write!(f, "{}{mistake}", if index > 0 { "\n" } else { "" })?;
        }
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "\nand {omitted} more"),
        }
    }
}

impl std::error::Error for Mistakes {}

impl Table {
    /// Parses a file of scores. `key` is the hash key of the table, as for [`Table::new`]; `limits`
    /// are the limits of the crawl on URLs.
    ///
    /// # Errors
    /// Returns all invalid lines.
    pub fn parse(text: &[u8], key: [u8; 16], limits: Limits) -> Result<Self, Mistakes> {
        let (mut table, mut mistakes) = (Self::new(key), Mistakes::default());
        table.reserve(lines(text).count());
        for (line, content) in lines(text) {
            let Err((reason, text)) = read(&mut table, content, limits) else { continue };
            if mistakes.list.len() < MISTAKES_MAX {
                mistakes.list.push(Mistake { line, text: shortened(text), reason });
            } else {
                mistakes.omitted += 1;
            }
        }
        if mistakes.list.is_empty() { Ok(table) } else { Err(mistakes) }
    }
}

/// Returns the lines that have content, with their numbers from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').map(content);
    (1..).zip(lines).filter(|(_, content)| !content.is_empty())
}

/// Returns the line without its comment and the white space around it.
fn content(line: &[u8]) -> &[u8] {
    let is_comment = |at: &usize| *at == 0 || line[at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// Adds the entry of one line to the table. If the line is invalid, returns the invalid part and
/// the reason.
fn read<'a>(
    table: &mut Table,
    content: &'a [u8],
    limits: Limits,
) -> Result<(), (Reason, &'a [u8])> {
    let text = std::str::from_utf8(content).map_err(|_| (Reason::NotUtf8, content))?;
    let mut words = text.split_ascii_whitespace();
    let (name, score) = match (words.next(), words.next(), words.next()) {
        (Some(name), Some(score), None) => (name, score),
        (_, None, _) => return Err((Reason::NoScore, content)),
        _ => return Err((Reason::Surplus, content)),
    };
    let quality = Quality::parse(score).map_err(|invalid| {
        let is_swapped = Quality::parse(name).is_ok() && invalid == quality::Invalid::Syntax;
        let swapped = (Reason::Swapped, content);
        if is_swapped { swapped } else { (Reason::Score(invalid), score.as_bytes()) }
    })?;
    if name.contains("://") {
        let url = Url::parse_within(name, limits);
        let url = url.map_err(|invalid| (Reason::Url(invalid), name.as_bytes()))?;
        table.insert(url.view(), quality);
    } else {
        let host = bare_host(name).map_err(|invalid| (Reason::Host(invalid), name.as_bytes()))?;
        table.insert_host(host.view().host(), quality);
    }
    if quality == Quality::ZERO && !is_zero(score) {
        table.note_zeroed();
    }
    Ok(())
}

/// Returns a URL of the host `text`; an error if `text` is anything but a host.
fn bare_host(text: &str) -> Result<Url, url::Invalid> {
    if text.contains(['/', '\\', '?', '#', '@']) {
        return Err(url::Invalid::Host);
    }
    // A port is appended, so that a text that contains a port already is invalid.
    Url::parse(&format!("http://{text}:81/"))
}

/// Returns whether a number, which was rounded to zero, is also written as zero.
fn is_zero(number: &str) -> bool {
    let digits = number.split(['e', 'E']).next().unwrap_or(number);
    !digits.contains(|c: char| ('1'..='9').contains(&c))
}

/// Returns at most 200 characters of a line, for messages.
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
    use crate::ground::random::Random;
    use crate::rating::tests::url;

    fn parse(text: &[u8]) -> Result<Table, Mistakes> {
        Table::parse(text, [1; 16], Limits { url_bytes_max: 2_048 })
    }

    fn millionths(table: &Table, text: &str) -> Option<u64> {
        table.of(url(text).view()).map(Quality::millionths)
    }

    #[test]
    fn a_file_with_everything() {
        let text = "\u{feff}# scores\r\n\r\nHTTP://A.test:80/x#top\t0.25\r\n  A.Test 3e2 # why\n\
                    b\u{fc}cher.test 1\n[2001:DB8::1] 2\n10.0.0.1\t \t4\n#\nhttps://a.test 5\n\
                    http://a.test/tiny# 1e-9";
        let table = parse(text.as_bytes()).unwrap();
        for (text, expected, why) in [
            ("http://a.test/x", Some(250_000), "made canonical, its fragment dropped"),
            ("http://a.test/y", Some(300_000_000), "by its host"),
            ("https://a.test/y", Some(300_000_000), "by its host, whatever the scheme"),
            ("https://a.test/", Some(5_000_000), "its own line comes first"),
            ("http://a.test/tiny", Some(0), "below half a millionth"),
            ("http://xn--bcher-kva.test/", Some(1_000_000), "an international name"),
            ("http://[2001:db8::1]:8080/", Some(2_000_000), "an address is a host"),
            ("http://10.0.0.1/", Some(4_000_000), "an address is a host"),
            ("http://c.test/", None, "not listed"),
        ] {
            assert_eq!(millionths(&table, text), expected, "{text}: {why}");
        }
        assert_eq!((table.len(), table.repeats(), table.zeroed()), (7, 0, 1));
        for empty in ["", "\n\n", "# nothing", "\u{feff}"] {
            assert!(parse(empty.as_bytes()).unwrap().is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn of_lines_given_twice_the_last_counts() {
        let text = b"a.test 1\nhttp://a.test/ 2\nA.TEST 3\nhttp://a.test 4\nhttp://a.test:80/#x 5";
        let table = parse(text).unwrap();
        assert_eq!((table.len(), table.repeats()), (2, 3));
        assert_eq!(millionths(&table, "http://a.test/"), Some(5_000_000));
        assert_eq!(millionths(&table, "http://a.test/x"), Some(3_000_000));
    }

    #[test]
    fn scores_that_are_zero_and_scores_that_became_zero() {
        for (score, zeroed) in [
            ("0", 0),
            ("-0.0", 0),
            ("0e5", 0),
            ("0.0000004", 1),
            ("1e-300", 1),
            ("1e-9999", 1),
            ("0.0000005", 0),
            ("7", 0),
        ] {
            let table = parse(format!("a.test {score}").as_bytes()).unwrap();
            assert_eq!(table.zeroed(), zeroed, "{score}");
        }
    }

    #[test]
    fn mistakes_and_their_mends() {
        use crate::ground::quality::Invalid as Score;
        use crate::url::Invalid as Address;
        let long = format!("http://a.test/{} 1", "x".repeat(3_000));
        for (line, text, reason) in [
            ("http://a.test/", "http://a.test/", Reason::NoScore),
            ("http://a.test/,1", "http://a.test/,1", Reason::NoScore),
            ("1", "1", Reason::NoScore),
            ("a.test 1 2", "a.test 1 2", Reason::Surplus),
            ("0.5 a.test", "0.5 a.test", Reason::Swapped),
            ("1 http://a.test/", "1 http://a.test/", Reason::Swapped),
            ("a.test x", "x", Reason::Score(Score::Syntax)),
            ("a.test 1,5", "1,5", Reason::Score(Score::Syntax)),
            ("a.test NaN", "NaN", Reason::Score(Score::NotFinite)),
            ("a.test inf", "inf", Reason::Score(Score::NotFinite)),
            ("a.test 1e999", "1e999", Reason::Score(Score::NotFinite)),
            ("a.test -1", "-1", Reason::Score(Score::Negative)),
            ("a.test -1e-9", "-1e-9", Reason::Score(Score::Negative)),
            ("a.test 1000000.1", "1000000.1", Reason::Score(Score::TooLarge)),
            ("3 -1", "-1", Reason::Score(Score::Negative)),
            ("ftp://a.test/ 1", "ftp://a.test/", Reason::Url(Address::Scheme)),
            ("http:// 1", "http://", Reason::Url(Address::Host)),
            ("http://a.test:0/ 1", "http://a.test:0/", Reason::Url(Address::Port)),
            ("a.test/x 1", "a.test/x", Reason::Host(Address::Host)),
            ("x@a.test 1", "x@a.test", Reason::Host(Address::Host)),
            ("a.test:80 1", "a.test:80", Reason::Host(Address::Port)),
            ("a..test 1", "a..test", Reason::Host(Address::Host)),
            (&long, &long[..200], Reason::Url(Address::TooLong)),
        ] {
            let mistakes = parse(format!("b.test 1\n\n{line}\nc.test 1").as_bytes()).unwrap_err();
            let [mistake] = &mistakes.list[..] else { panic!("{line}: {mistakes}") };
            assert_eq!((mistake.line, mistake.reason), (3, reason), "{line}");
            assert_eq!(mistake.text.trim_end_matches('.'), text, "{line}");
            assert!(mistake.to_string().contains("; "), "{mistake} has a mend");
        }
        let mistakes = parse(b"a.test 1\n\xff 1").unwrap_err();
        assert_eq!((mistakes.list[0].line, mistakes.list[0].reason), (2, Reason::NotUtf8));
    }

    #[test]
    fn all_mistakes_are_told_up_to_twenty() {
        let mistakes = parse(b"a.test nan\nb.test 1\n/ 1").unwrap_err();
        let expected = "line 1: \"nan\": not a finite number; write a score such as 1 or 0.25\n\
                        line 3: \"/\": not a bare host (no host, or not a valid one); write a host \
                        such as example.com, or a URL with http:// or https://";
        assert_eq!(mistakes.to_string(), expected);
        let mistakes = parse("a.test\n".repeat(50).as_bytes()).unwrap_err();
        assert_eq!((mistakes.list.len(), mistakes.omitted), (20, 30));
        assert_eq!(mistakes.list[19].line, 20);
        assert!(mistakes.to_string().ends_with("\nand 30 more"));
    }

    /// Law: the order of lines makes no difference if no entry is given twice.
    #[test]
    fn the_order_of_lines_makes_no_difference() {
        let mut lines: Vec<String> = (0..500)
            .map(|n| match n % 3 {
                0 => format!("h{n}.test {n}"),
                _ => format!("http://h{}.test/{n} 0.{n}", n / 9),
            })
            .collect();
        let urls: Vec<Url> = (0..500)
            .flat_map(|n| [format!("http://h{}.test/{n}", n / 9), format!("https://h{n}.test/")])
            .map(|text| url(&text))
            .collect();
        let qualities = |lines: &[String]| -> Vec<Option<Quality>> {
            let table = parse(lines.join("\n").as_bytes()).unwrap();
            urls.iter().map(|url| table.of(url.view())).collect()
        };
        let first = qualities(&lines);
        assert!(first.iter().any(Option::is_none) && first.iter().flatten().count() > 400);
        let mut random = Random(0x5eed_0602);
        for _ in 0..10 {
            random.shuffle(&mut lines);
            assert_eq!(qualities(&lines), first);
        }
    }

    /// Law: no text causes a panic; a file is valid if and only if each of its lines is; the parsed
    /// values are in the range of qualities.
    #[test]
    fn mutated_files_are_survived() {
        let text =
            "\u{feff}http://a.test/x 0.25\r\n# c\nb.test\t1e3 # y\n[::1] .5\n\u{e9}.test 7\n";
        let mut random = Random(0x5eed_0603);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = match random.below(3) {
                    0 => random.below(256) as u8,
                    1 => bytes[random.below(bytes.len() as u64) as usize],
                    _ => b" \n#e-./:"[random.below(8) as usize],
                };
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            let whole = parse(&bytes);
            let unmarked = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let alone: Vec<usize> = (1..)
                .zip(unmarked.split(|&byte| byte == b'\n'))
                .filter(|(_, line)| parse(line).is_err())
                .map(|(number, _)| number)
                .collect();
            match whole {
                Ok(table) => {
                    read += 1;
                    assert_eq!(alone, [0; 0]);
                    assert!(millionths(&table, "http://a.test/x") <= Some(1_000_000_000_000));
                }
                Err(mistakes) => {
                    refused += 1;
                    let told: Vec<usize> = mistakes.list.iter().map(|each| each.line).collect();
                    assert_eq!(told, alone);
                }
            }
        }
        assert!(read > 1_000 && refused > 1_000, "{read} {refused}");
    }
}
