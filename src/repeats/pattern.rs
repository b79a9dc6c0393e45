//! The patterns that a URL belongs to: its server, the directories above it, and the path with any
//! query.
//!
//! Numbers in a path are all the same, so that the days of a calendar are in one directory.
//!
//! Law: a pattern of a URL is that of all URLs below it. The patterns of a URL come from the widest
//! to the narrowest, at most [`PATTERNS_MAX`].
//! Cost: one pass over the target for each of its patterns.

use smallvec::SmallVec;

/// The maximum number of patterns of a URL: its server, directories, and the path with a query.
pub const PATTERNS_MAX: usize = 6;

/// Returns the patterns of a URL with this target, as texts: `/`, `/a/`, `/a/b/`, `/a/b/c?`.
pub fn patterns(target: &str) -> SmallVec<[String; PATTERNS_MAX]> {
    let (path, query) =
        target.split_once('?').map_or((target, None), |(path, all)| (path, Some(all)));
    let plain = without_numbers(path);
    let slashes = plain.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    let directories = slashes.map(|(at, _)| plain[..=at].to_owned());
    let mut all: SmallVec<[String; PATTERNS_MAX]> = directories.take(PATTERNS_MAX - 1).collect();
    if query.is_some() {
        all.push(plain + "?");
    }
    all
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

/// Returns a path with each run of digits replaced by one zero.
fn without_numbers(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '0'..='9' if text.ends_with('0') => {}
            '0'..='9' => text.push('0'),
            letter => text.push(letter),
        }
    }
    text
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
            ("/caf%C3%A9/x", &["/", "/caf%C0%A0/"]),
        ] {
            assert_eq!(patterns(target).as_slice(), expected, "{target}");
        }
    }
}
