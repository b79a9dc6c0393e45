//! Pages that repeat: calendars, listings by every combination of filters, and traps show the same
//! page under ever new URLs.
//!
//! For each [`pattern`] of URLs the last page is remembered, and how many in a row were alike: of
//! equal length and with the same first 32 KiB, or with the same words there if these are more than
//! 200 (see [`text`]), or, in a [series](pattern::is_of_series), with nearly the same words. After
//! `slow_after` pages the pattern is *slowed*, after `end_after` it is *ended*: its URLs aren't
//! requested any more.
//!
//! Words cost far more than bytes, so they are read only if the page before was about as long. The
//! first of a row of pages with the same words is read without them, and doesn't count.
//!
//! Laws: pages of a pattern that is slowed or ended don't count for wider ones, so the narrowest
//! is. A pattern is ended only after pages that were each alike to the one before it, and isn't
//! slowed any more after one that wasn't. Memory is bounded: patterns that had no page for long are
//! forgotten first.
//! Cost: of a page, four look-ups for each of its patterns, at most six, a hash of its beginning,
//! and its words if they are read; of a URL that is examined, nothing until a pattern is slowed,
//! then a look-up for each pattern.

pub mod pattern;
pub mod text;

use crate::ground::map::Map;
use crate::url::Fingerprinter;
use pattern::Patterns;
use std::hash::BuildHasher;
use text::Text;

/// The settings of what is done with pages that repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number of alike pages in a row after which a pattern is slowed.
    pub slow_after: u16,
    /// The number of alike pages in a row after which a pattern is ended.
    pub end_after: u16,
    /// The maximum number of patterns that are remembered, and of those that are slowed or ended.
    pub patterns_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { slow_after: 12, end_after: 40, patterns_max: 100_000 }
    }
}

/// The length of the beginning of a page's text that is looked at, in bytes.
pub const BYTES_MAX: usize = 32 << 10;

/// The part of a page's length by which the next one may be shorter or longer if its words are
/// read. Texts that are nearly the same are compressed to nearly the same length.
const LENGTHS_PART: usize = 16;

/// What a page is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// Its length as received, in bytes.
    pub received_bytes: usize,
    /// A digest of its length and its beginning.
    pub digest: u64,
    /// What its text is like; `None` if that is short, or wasn't read.
    pub text: Option<Text>,
}

impl Likeness {
    /// Returns what an HTML page is like, given its length as received and the beginning of its
    /// text, of which at most [`BYTES_MAX`] are read. Its words are read if `has_words`.
    pub fn of(received_bytes: usize, html: &[u8], has_words: bool) -> Self {
        let html = &html[..html.len().min(BYTES_MAX)];
        let digest = foldhash::fast::FixedState::with_seed(0).hash_one((received_bytes, html));
        let text = has_words.then(|| text::read(html)).flatten();
        Self { received_bytes, digest, text }
    }

    /// Returns whether two pages are alike. In a series texts need only be nearly the same.
    fn is_like(&self, other: &Self, is_of_series: bool) -> bool {
        let is_text_like =
            |(a, b): (Text, Text)| a.words == b.words || is_of_series && a.is_near(&b);
        self.digest == other.digest || self.text.zip(other.text).is_some_and(is_text_like)
    }
}

/// What is done with the URLs of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// They are requested as all others.
    Free,
    /// They are requested after the others of their server.
    Slowed,
    /// They are not requested.
    Ended,
}

/// A pattern that was slowed or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The pattern, below its origin.
    pub pattern: String,
    /// What is done with its URLs from now on.
    pub pace: Pace,
    /// The number of alike pages in a row.
    pub row: u16,
}

/// The last page of each pattern, and which patterns are slowed or ended.
#[derive(Debug)]
pub struct Repeats {
    settings: Settings,
    hash: Fingerprinter,
    runs: Recent<Run>,
    paces: Recent<Pace>,
}

/// The last page of a pattern, and how many in a row were alike.
#[derive(Clone, Copy, Debug)]
struct Run {
    last: Likeness,
    row: u16,
}

impl Repeats {
    /// Creates the memory of a crawl, which names patterns by their keyed hash.
    pub fn new(settings: Settings, hash: Fingerprinter) -> Self {
        let most = settings.patterns_max;
        Self { settings, hash, runs: Recent::new(most), paces: Recent::new(most) }
    }

    /// Returns what is done with a URL, given its origin and its target.
    pub fn pace(&self, origin: &str, target: &str) -> Pace {
        if self.is_quiet() {
            return Pace::Free;
        }
        let patterns = Patterns::of(origin, target);
        let paces = patterns.with_origin().filter_map(|own| self.paces.get(self.key(own)));
        paces.copied().max().unwrap_or(Pace::Free)
    }

    /// Returns whether the words of a page may make it alike to another one: whether it is about as
    /// long, as received, as the page before it in one of its patterns.
    pub fn wants_words(&self, origin: &str, target: &str, received_bytes: usize) -> bool {
        let patterns = Patterns::of(origin, target);
        let mut runs = patterns.with_origin().filter_map(|own| self.runs.get(self.key(own)));
        runs.any(|run| {
            let before = run.last.received_bytes;
            before.abs_diff(received_bytes) <= before / LENGTHS_PART
        })
    }

    /// Notes a page that was fetched. Returns the pattern that is slowed or ended for it.
    pub fn note(&mut self, origin: &str, target: &str, like: Likeness) -> Option<Change> {
        let patterns = Patterns::of(origin, target);
        let is_of_series = pattern::is_of_series(target);
        for pattern in patterns.with_origin().rev() {
            let key = self.key(pattern);
            let row = match self.runs.get(key) {
                Some(run) if run.last.is_like(&like, is_of_series) => run.row.saturating_add(1),
                _ => 1,
            };
            self.runs.put(key, Run { last: like, row });
            let before = self.paces.get(key).copied().unwrap_or(Pace::Free);
            let pace = self.pace_after(row);
            if before < pace {
                self.paces.put(key, pace);
                return Some(Change { pattern: patterns.text(pattern), pace, row });
            }
            if before == Pace::Slowed && row == 1 {
                self.paces.put(key, Pace::Free);
            } else if before != Pace::Free {
                // What repeats here says nothing of what is beside it.
                return None;
            }
        }
        None
    }

    /// Returns whether no pattern was slowed or ended yet.
    pub fn is_quiet(&self) -> bool {
        self.paces.is_empty()
    }

    fn pace_after(&self, row: u16) -> Pace {
        match row {
            row if row >= self.settings.end_after => Pace::Ended,
            row if row >= self.settings.slow_after => Pace::Slowed,
            _ => Pace::Free,
        }
    }

    fn key(&self, pattern: &[u8]) -> u64 {
        self.hash.of(pattern).0
    }
}

/// A map that forgets what wasn't put for long: a full generation makes the one before it go.
#[derive(Debug)]
struct Recent<T> {
    young: Map<u64, T>,
    old: Map<u64, T>,
    /// The maximum length of a generation.
    most: usize,
}

impl<T> Recent<T> {
    /// Creates a map of at most `most` values.
    fn new(most: usize) -> Self {
        Self { young: Map::default(), old: Map::default(), most: (most / 2).max(1) }
    }

    fn get(&self, key: u64) -> Option<&T> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    fn put(&mut self, key: u64, value: T) {
        self.old.remove(&key);
        self.young.insert(key, value);
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
    }

    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "http://a.test";
    const SETTINGS: Settings = Settings { slow_after: 3, end_after: 6, patterns_max: 100 };

    fn repeats() -> Repeats {
        Repeats::new(SETTINGS, Fingerprinter::new([7; 16]))
    }

    fn like(digest: u64) -> Likeness {
        Likeness { received_bytes: 1_000, digest, text: None }
    }

    /// The days of a calendar with the same bytes: slowed after three, ended after six, and nothing
    /// else of the server is.
    #[test]
    fn a_calendar_ends() {
        let mut repeats = repeats();
        for day in 1..=6 {
            // Other pages of the server come between.
            assert_eq!(repeats.note(ORIGIN, &format!("/page/{day}x"), like(day)), None);
            let target = format!("/calendar/2026/{day}/all");
            let change = repeats.note(ORIGIN, &target, like(77));
            let pace = match day {
                3 => Some(Pace::Slowed),
                6 => Some(Pace::Ended),
                _ => None,
            };
            let pattern = "/calendar/0/0/".to_owned();
            let row = u16::try_from(day).expect("few");
            assert_eq!(change, pace.map(|pace| Change { pattern, pace, row }), "{day}");
        }
        for (target, pace) in [
            ("/calendar/1999/1/all", Pace::Ended),
            ("/calendar/1999/1/", Pace::Ended),
            ("/calendar/about", Pace::Free),
            ("/page/7x", Pace::Free),
            ("/", Pace::Free),
        ] {
            assert_eq!(repeats.pace(ORIGIN, target), pace, "{target}");
        }
        assert_eq!(repeats.pace("http://b.test", "/calendar/1/2/x"), Pace::Free);
    }

    /// A trap whose directories are all different, with one page: what is above them ends.
    #[test]
    fn a_trap_ends_where_its_directories_are() {
        let mut repeats = repeats();
        let change = (1..=6)
            .filter_map(|page| repeats.note(ORIGIN, &format!("/x/y/{}/", letters(page)), like(1)));
        let patterns: Vec<String> = change.map(|change| change.pattern).collect();
        assert_eq!(patterns, ["/x/y/", "/x/y/"]);
        assert_eq!(repeats.pace(ORIGIN, "/x/y/new/"), Pace::Ended);
        assert_eq!(repeats.pace(ORIGIN, "/x/new"), Pace::Free);
    }

    /// A pattern whose pages differ again isn't slowed any more.
    #[test]
    fn a_slowed_pattern_recovers() {
        let mut repeats = repeats();
        for page in 0..3 {
            repeats.note(ORIGIN, &format!("/d/{page}"), like(1));
        }
        assert_eq!(repeats.pace(ORIGIN, "/d/x"), Pace::Slowed);
        repeats.note(ORIGIN, "/d/3", like(2));
        assert_eq!(repeats.pace(ORIGIN, "/d/x"), Pace::Free);
    }

    #[test]
    fn a_page_between_begins_a_new_row() {
        let mut repeats = repeats();
        for page in 0..50 {
            let other = u64::from(page % 3 == 2) * (page + 1);
            assert_eq!(repeats.note(ORIGIN, &format!("/d/{page}"), like(other)), None, "{page}");
        }
        assert!(repeats.is_quiet());
    }

    #[test]
    fn texts_that_are_nearly_the_same_repeat() {
        let mut repeats = repeats();
        let changes = (0..6).filter_map(|page| {
            let text = Some(Text { words: page, sim_hash: 0xff00 ^ (page & 3) });
            let like = Likeness { text, ..like(page) };
            repeats.note(ORIGIN, &format!("/list?page={page}"), like)
        });
        let paces: Vec<(String, Pace)> = changes.map(|all| (all.pattern, all.pace)).collect();
        let own = |pace| ("/list?".to_owned(), pace);
        assert_eq!(paces, [own(Pace::Slowed), own(Pace::Ended)]);
        let far = Likeness { text: Some(Text { words: 9, sim_hash: 0 }), ..like(9) };
        assert_eq!(repeats.note(ORIGIN, "/list?page=9", far), None);
        assert_eq!(repeats.pace(ORIGIN, "/list?page=10"), Pace::Ended, "an end is one");
    }

    /// Outside of a series, texts must have the same words.
    #[test]
    fn neighbours_that_resemble_each_other_do_not_repeat() {
        let mut repeats = repeats();
        for page in 0..20 {
            let like = |words| Likeness { text: Some(Text { words, sim_hash: 1 }), ..like(page) };
            let name = letters(page + 1);
            assert_eq!(repeats.note(ORIGIN, &format!("/d/{name}"), like(page)), None);
            let change = repeats.note(ORIGIN, &format!("/same/{name}"), like(7));
            assert_eq!(change.is_some(), matches!(page, 2 | 5), "{page}");
        }
    }

    /// Words are read if the page before, in any pattern, is about as long.
    #[test]
    fn words_of_a_page_of_another_length_are_not_read() {
        let mut repeats = repeats();
        assert!(!repeats.wants_words(ORIGIN, "/a/b", 1_000), "there is no page before");
        repeats.note(ORIGIN, "/a/b", like(1));
        repeats.note(ORIGIN, "/c", Likeness { received_bytes: 9_000, ..like(2) });
        for (target, bytes, wants) in [
            ("/a/d", 938, true),
            ("/a/d", 937, false),
            ("/a/d", 1_062, true),
            ("/a/d", 1_063, false),
            ("/a/d", 9_000, true),
            ("/e/d", 9_000, true),
            ("/e/d", 1_000, false),
        ] {
            assert_eq!(repeats.wants_words(ORIGIN, target, bytes), wants, "{target} {bytes}");
        }
        let page = "word ".repeat(300);
        assert_eq!(Likeness::of(9, page.as_bytes(), false).text, None);
        assert!(Likeness::of(9, page.as_bytes(), true).text.is_some());
    }

    /// Law: memory is bounded, whatever the URLs are.
    #[test]
    fn what_had_no_page_for_long_is_forgotten() {
        let mut repeats = repeats();
        for page in 0..10_000 {
            repeats.note(ORIGIN, &format!("/{}/x", letters(page)), like(page));
            assert!(repeats.runs.len() <= SETTINGS.patterns_max);
        }
    }

    fn letters(mut number: u64) -> String {
        let mut text = String::new();
        while number > 0 {
            text.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        text
    }
}
