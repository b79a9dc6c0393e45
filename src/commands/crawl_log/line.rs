//! Reads a line of the crawl log.
//!
//! Cost: one pass over the line, and nothing is copied unless the JSON has escapes.

use crate::ground::time::UnixTime;
use crate::http::is_redirect;
use crate::store::log::Extra;

/// The fields of a line, as they are written. Times in `more` are in microseconds.
#[derive(Debug)]
pub(in crate::commands) struct Line<'a> {
    /// When the line was written, as `2026-11-20T09:38:49.123Z`.
    pub(in crate::commands) time: &'a str,
    /// The HTTP status, or a negative code.
    pub(in crate::commands) status: i32,
    /// The length of the reply, in bytes; `None` if there was none.
    pub(in crate::commands) size: Option<u64>,
    pub(in crate::commands) url: &'a str,
    /// How the URL was found; `P` for the robots.txt of a server.
    pub(in crate::commands) path: &'a str,
    /// The media type; `-` if there is none.
    pub(in crate::commands) mime: &'a str,
    /// When the request was sent, by the calendar and to the millisecond.
    pub(in crate::commands) begun: Option<&'a str>,
    /// The digest of the payload, with its label.
    pub(in crate::commands) digest: Option<&'a str>,
    /// The annotations, separated by commas.
    pub(in crate::commands) annotations: &'a str,
    pub(in crate::commands) more: Extra<'a>,
}

impl<'a> Line<'a> {
    /// Parses a line without its line end; `None` if it isn't one of a crawl log.
    pub(in crate::commands) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = std::str::from_utf8(line).ok()?;
        let mut word = || {
            let text = rest.trim_start_matches(' ');
            let end = memchr::memchr(b' ', text.as_bytes())?;
            rest = &text[end + 1..];
            Some(&text[..end])
        };
        let time = word()?;
        let status = word()?.parse().ok()?;
        let size = word()?.parse().ok();
        let (url, path) = (word()?, word()?);
        let (_via, mime, _worker) = (word()?, word()?, word()?);
        let begun = Some(word()?).filter(|begun| *begun != "-");
        let digest = Some(word()?).filter(|digest| *digest != "-");
        let (_source, annotations) = (word()?, word()?);
        let more = serde_json::from_str(rest).ok()?;
        Some(Self { time, status, size, url, path, mime, begun, digest, annotations, more })
    }

    /// Returns the path and query of the URL.
    pub(in crate::commands) fn target(&self) -> &'a str {
        let after = self.url.split_once("://").map_or("", |(_, rest)| rest);
        after.find('/').map_or("/", |slash| &after[slash..])
    }

    /// Returns whether the request is one for a robots.txt, or for where it redirects to.
    pub(in crate::commands) fn is_for_robots(&self) -> bool {
        self.path.starts_with('P')
    }

    /// Returns whether the line is about the robots.txt of its own server, without a redirect.
    pub(in crate::commands) fn is_own_robots(&self) -> bool {
        self.path == "P" && self.target() == "/robots.txt"
    }

    /// Returns the host that the line is about, without scheme and port.
    pub(in crate::commands) fn host(&self) -> &str {
        host_of(&self.more.server)
    }

    /// Returns whether the line has this annotation.
    pub(in crate::commands) fn has(&self, annotation: &str) -> bool {
        self.annotations.split(',').any(|word| word == annotation)
    }

    /// Returns whether the reply was read back from the archive, not requested.
    pub(in crate::commands) fn is_read_back(&self) -> bool {
        self.has("replayed")
    }

    /// Returns whether the reply is a redirect that was followed, and so no page.
    pub(in crate::commands) fn is_followed(&self) -> bool {
        u16::try_from(self.status).is_ok_and(is_redirect) && !self.has("badLocation")
    }

    /// Returns when the line was written, in microseconds since 1970.
    pub(in crate::commands) fn written(&self) -> Option<u64> {
        let digits: String = self.time.chars().filter(char::is_ascii_digit).collect();
        Some(millis_of(&digits)? * 1_000)
    }

    /// Returns how long the fetch took, in microseconds; `None` if no request was sent. Format 1
    /// has whole milliseconds only.
    pub(in crate::commands) fn took(&self) -> Option<u64> {
        if let (Some(sent), Some(ended)) = (self.more.sent, self.more.ended) {
            return Some(ended.saturating_sub(sent));
        }
        self.begun?.split_once('+')?.1.parse::<u64>().ok()?.checked_mul(1_000)
    }

    /// Returns how much later the calendar was than the clock of the run, in microseconds; `None`
    /// if no request was sent.
    pub(in crate::commands) fn drift(&self) -> Option<i64> {
        let begun = millis_of(self.begun?.split_once('+')?.0)?;
        Some(begun.cast_signed().checked_sub_unsigned(self.more.sent? / 1_000)? * 1_000)
    }
}

/// Returns the host of an origin.
pub(in crate::commands) fn host_of(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Parses a time such as `20261120093849123` to milliseconds since 1970.
fn millis_of(digits: &str) -> Option<u64> {
    let (seconds, millis) = digits.split_at_checked(14)?;
    let millis: u64 = millis.get(..3)?.parse().ok()?;
    Some(UnixTime::from_digits(seconds)?.as_micros() / 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(millis_of("19700101000000000"), Some(0));
        assert_eq!(millis_of("20261120093849123"), Some(1_795_167_529_123));
        assert_eq!(millis_of("20240229235959999"), Some(1_709_251_199_999));
        for wrong in ["2026", "20260230000000000", "202611200938491x3", "+0261120093849123"] {
            assert_eq!(millis_of(wrong), None, "{wrong}");
        }
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
        assert_eq!((line.host(), line.took()), ("a.test", Some(45_000)));
        assert_eq!((line.written(), line.size), (Some(1_795_167_529_123_000), Some(1_234)));
        assert!(line.has("lenTrunc") && !line.has("lenT"));
        assert!((0..text.len()).all(|cut| Line::parse(&text.as_bytes()[..cut]).is_none()));
    }
}
