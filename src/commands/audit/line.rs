//! Reads from a line of the crawl log what an audit needs.
//!
//! Cost: one pass over the line, and nothing is copied unless the JSON has escapes.

use crate::store::log::Extra;

/// The fields of a line that an audit needs. Times are in microseconds.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The HTTP status, or a negative code.
    pub(super) status: i32,
    pub(super) url: &'a str,
    /// How the URL was found; `P` for the robots.txt of a server.
    pub(super) path: &'a str,
    /// When the request was sent, by the calendar and to the millisecond.
    pub(super) begun: Option<&'a str>,
    /// The annotations, separated by commas.
    pub(super) annotations: &'a str,
    pub(super) more: Extra<'a>,
}

impl<'a> Line<'a> {
    /// Parses a line without its line end; `None` if it isn't one of a crawl log.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = std::str::from_utf8(line).ok()?;
        let mut word = || {
            let text = rest.trim_start_matches(' ');
            let end = memchr::memchr(b' ', text.as_bytes())?;
            rest = &text[end + 1..];
            Some(&text[..end])
        };
        let _time = word()?;
        let status = word()?.parse().ok()?;
        let _size = word()?;
        let (url, path) = (word()?, word()?);
        let (_via, _mime, _worker) = (word()?, word()?, word()?);
        let begun = Some(word()?).filter(|begun| *begun != "-");
        let (_digest, _source, annotations) = (word()?, word()?, word()?);
        let more = serde_json::from_str(rest).ok()?;
        Some(Self { status, url, path, begun, annotations, more })
    }

    /// Returns the path and query of the URL.
    pub(super) fn target(&self) -> &'a str {
        let after = self.url.split_once("://").map_or("", |(_, rest)| rest);
        after.find('/').map_or("/", |slash| &after[slash..])
    }

    /// Returns whether the request is one for a robots.txt, or for where it redirects to.
    pub(super) fn is_for_robots(&self) -> bool {
        self.path.starts_with('P')
    }

    /// Returns whether the line is about the robots.txt of its own server, without a redirect.
    pub(super) fn is_own_robots(&self) -> bool {
        self.path == "P" && self.target() == "/robots.txt"
    }

    /// Returns how much later the calendar was than the clock of the run, in microseconds; `None`
    /// if no request was sent.
    pub(super) fn drift(&self) -> Option<i64> {
        let begun = millis_of(self.begun?.split_once('+')?.0)?;
        let steady = i64::try_from(self.more.sent? / 1_000).ok()?;
        Some((begun - steady) * 1_000)
    }
}

/// Parses a time such as `20261120093849123` to milliseconds since 1970.
fn millis_of(digits: &str) -> Option<i64> {
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let seconds = ((days - 719_469) * 24 + part(8, 10)?) * 3_600;
    Some((seconds + part(10, 12)? * 60 + part(12, 14)?) * 1_000 + part(14, 17)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(millis_of("19700101000000000"), Some(0));
        assert_eq!(millis_of("20261120093849123"), Some(1_795_167_529_123));
        assert_eq!(millis_of("20240229235959999"), Some(1_709_251_199_999));
        assert_eq!(millis_of("2026"), None);
    }

    #[test]
    fn a_line_is_read() {
        let text = "2026-11-20T09:38:49.123Z   200       1234 http://a.test/x?y L - text/html #000 \
                    20261120093849078+45 - - 1t,lenTrunc {\"run\":5,\"line\":9,\
                    \"server\":\"http://a.test\",\"visit\":7,\"sent\":1795167529077123,\
                    \"ended\":1795167529122123,\"hops\":0}";
        let line = Line::parse(text.as_bytes()).expect("a line");
        assert_eq!((line.status, line.target(), line.annotations), (200, "/x?y", "1t,lenTrunc"));
        assert_eq!((line.more.run, line.more.visit, line.drift()), (Some(5), 7, Some(1_000)));
        assert!((0..text.len()).all(|cut| Line::parse(&text.as_bytes()[..cut]).is_none()));
    }
}
