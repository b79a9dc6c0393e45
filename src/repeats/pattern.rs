//! The patterns that a URL belongs to: its server, the directories above it, and the path with any
//! query.
//!
//! Numbers in a path are all the same, so that the days of a calendar are in one directory.
//!
//! Law: a pattern of a URL is that of all URLs below it. The patterns of a URL come from the widest
//! to the narrowest, at most [`PATTERNS_MAX`].
//! Cost: one pass over the target; no allocation unless the URL is long.

use smallvec::SmallVec;

/// The maximum number of patterns of a URL: its server, directories, and the path with a query.
pub const PATTERNS_MAX: usize = 6;
/// The length of a URL from which on its patterns are allocated, in bytes.
const INLINE_BYTES: usize = 256;

/// The patterns of a URL, such as `/`, `/a/`, `/a/b/` and `/a/b/c?`: beginnings of one text.
#[derive(Debug)]
pub struct Patterns {
    /// The origin, the path without numbers, and `?` if there is a query.
    text: SmallVec<[u8; INLINE_BYTES]>,
    /// The length of the origin in it.
    origin: usize,
    /// Where each pattern ends in it.
    ends: SmallVec<[usize; PATTERNS_MAX]>,
}

impl Patterns {
    /// Returns the patterns of a URL.
    pub fn of(origin: &str, target: &str) -> Self {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, all)| (path, Some(all)));
        let mut all = Self { text: SmallVec::new(), origin: origin.len(), ends: SmallVec::new() };
        all.text.extend_from_slice(origin.as_bytes());
        for byte in path.bytes() {
            all.push(byte);
        }
        if query.is_some() {
            all.text.push(b'?');
            all.ends.push(all.text.len());
        }
        all
    }

    /// Appends a byte of a path: of a run of digits, one zero.
    fn push(&mut self, byte: u8) {
        let is_inside = self.text.len() > self.origin && self.text.ends_with(b"0");
        match byte {
            b'0'..=b'9' if is_inside => return,
            b'0'..=b'9' => self.text.push(b'0'),
            byte => self.text.push(byte),
        }
        if byte == b'/' && self.ends.len() < PATTERNS_MAX - 1 {
            self.ends.push(self.text.len());
        }
    }

    /// Returns each pattern with the origin before it, as one text, from the widest on.
    pub fn with_origin(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.ends.iter().map(|end| &self.text[..*end])
    }

    /// Returns the text of a pattern, given with the origin before it.
    pub fn text(&self, with_origin: &[u8]) -> String {
        String::from_utf8_lossy(&with_origin[self.origin..]).into_owned()
    }
}

/// Returns whether a URL is one of a series by its form: it has a query, or a segment of its path
/// has no letters (a year, a day, a page number).
pub fn is_of_series(target: &str) -> bool {
    let (path, query) = target.split_once('?').map_or((target, false), |(path, _)| (path, true));
    let is_number = |segment: &str| {
        segment.bytes().any(|byte| byte.is_ascii_digit())
            && !segment.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    query || path.split('/').any(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_queries_or_numbers() {
        for (target, is) in [
            ("/calendar/2026/11/29", true),
            ("/calendar/2026-11-29/", true),
            ("/list?page", true),
            ("/list?", true),
            ("/struct.int16x4_t.html", false),
            ("/page2", false),
            ("/a/-/b", false),
            ("/", false),
        ] {
            assert_eq!(is_of_series(target), is, "{target}");
        }
    }

    #[test]
    fn a_url_has_the_patterns_above_it() {
        for (target, expected) in [
            ("/", &["/"][..]),
            ("/page", &["/"]),
            ("/a/page", &["/", "/a/"]),
            ("/calendar/2026/11/29", &["/", "/calendar/", "/calendar/0/", "/calendar/0/0/"]),
            ("/calendar/1999/1/7", &["/", "/calendar/", "/calendar/0/", "/calendar/0/0/"]),
            ("/shop?size=m", &["/", "/shop?"]),
            ("/shop?color=red&size=m", &["/", "/shop?"]),
            ("/a/item12?x", &["/", "/a/", "/a/item0?"]),
            ("/1/2/3/4/5/6/7?x", &["/", "/0/", "/0/0/", "/0/0/0/", "/0/0/0/0/", "/0/0/0/0/0/0/0?"]),
            ("0/1", &["0/"]),
            ("/caf%C3%A9/x", &["/", "/caf%C0%A0/"]),
        ] {
            let patterns = Patterns::of("http://a0", target);
            let texts: Vec<String> =
                patterns.with_origin().map(|pattern| patterns.text(pattern)).collect();
            assert_eq!(texts, expected, "{target}");
        }
    }
}
