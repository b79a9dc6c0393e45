//! What a server lets us fetch: robots.txt in, verdicts out.
//!
//! [`Rules::parse`] reads a file for one product token and keeps only what concerns it;
//! [`Rules::check`] answers for a path and query, naming the line that decided. [`meaning`] says
//! what a reply to the request for the file itself means. Fetching, keeping and asking again are
//! the engine's.
//!
//! The standard is followed to the letter where sites and crawlers differ: only Allow and Disallow
//! end a list of User-agent lines. Taken from the reference parser: the colon may be missing
//! between two words, and names that forbid or say whom rules are for may be misspelt in the ways
//! that it knows. UTF-16 and UTF-32 are decoded, and HTML around the lines is taken off. Beyond the
//! standard there are Crawl-delay (it belongs to the User-agent lines right above it) and Sitemap
//! (it belongs to the file).
//!
//! Where the standard and the reference matcher read a file differently, the reading that forbids
//! wins. A rule that forbids matches by the standard, which takes all spellings of a path as one
//! (2.2.2). A rule that allows must match the narrower way of the reference, too: an escape of an
//! unreserved octet in the rule is met by that escape only (`Allow: /%7Ea` says nothing of `/~a`),
//! and octets outside ASCII are met in their encoded form only. How a target is spelt is the link
//! author's choice and no part of the file: `Allow: /~a` allows `/%7Ea`.
//!
//! Laws: the rule with the most octets decides, Allow between equals, the earlier line between
//! equals of one kind; the order of groups and of rules
//! changes no verdict; no input panics, and no file costs more than a few times
//! [`SIZE_BYTES_MAX`] of memory.
//! Cost: a check is a binary search and a walk down one chain of prefixes, whatever the number of
//! plain rules; rules with a `*` inside are tried from the longest down, most of them turned away
//! by one word of filter. No pattern can make a check backtrack.
//! Source: RFC 9309; 2.2.1 groups, 2.2.2 matching, 2.2.3 special characters, 2.3.1 replies.

mod matching;
mod octets;
mod parse;
mod search;
#[cfg(test)]
mod tests;
mod text;

use crate::ground::codec::{Put, Short, Take};
use matching::Table;
use std::time::Duration;

/// How much of a file is read, in bytes; the standard asks for no less (2.5). Hand over one byte
/// more than this if there is more: a file of exactly this size then counts as whole.
pub const SIZE_BYTES_MAX: usize = 500 * 1024;

/// Sitemap lines kept of one file; later ones are dropped.
pub const SITEMAPS_MAX: usize = 1_000;

/// Bytes kept of all Sitemap lines of one file together.
pub const SITEMAPS_BYTES_MAX: usize = 128 * 1024;

/// Settings of the station: how long an answer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a file is believed before it is asked for again; the standard says a day at most.
    pub ttl: Duration,
    /// How long after an unreachable robots.txt it is asked for again.
    pub retry_after: Duration,
    /// How long it must have been unreachable to count as unavailable (nothing is forbidden).
    pub unavailable_after: Duration,
    /// Redirects followed from robots.txt; beyond them it counts as unavailable.
    pub redirects_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(24 * 3_600),
            retry_after: Duration::from_secs(3_600),
            unavailable_after: Duration::from_secs(30 * 24 * 3_600),
            redirects_max: 5,
        }
    }
}

/// What a reply to the request for robots.txt means (2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// Its body is the file: [`Rules::parse`].
    Parse,
    /// Ask where it points, on another authority too; the rules are those of the first authority.
    /// After too many hops, or without a usable `Location`, it is unavailable.
    Follow,
    /// There is no file, so nothing is forbidden: [`Rules::allow_all`].
    Unavailable,
    /// Nobody can tell, so everything is forbidden until it answers: [`Rules::deny_all`]. Failures
    /// of the network mean the same.
    Unreachable,
}

/// The meaning of a final status. 429 is a plea for fewer requests, not "no such file"; what is
/// no status of HTTP at all comes from a server that can't be understood.
pub fn meaning(status: u16) -> Meaning {
    match status {
        200..=299 => Meaning::Parse,
        300..=399 => Meaning::Follow,
        429 => Meaning::Unreachable,
        400..=499 => Meaning::Unavailable,
        _ => Meaning::Unreachable,
    }
}

/// The answer for one target, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The line of the file that decided, counted from 1; 0 if none spoke of the target.
    pub line: u32,
}

impl Verdict {
    const NO_RULE: Self = Self { allowed: true, line: 0 };
}

/// How the text of a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Where its author ended it.
    Whole,
    /// Perhaps within its last line, if that has no end: it counts if it forbids, not if it allows.
    Cut,
}

/// A file that was read.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// What it says to the product.
    pub rules: Rules,
    /// It has rules for somebody.
    pub has_rule_lines: bool,
    /// It is an HTML page.
    pub is_html: bool,
}

impl File {
    /// Reads the first [`SIZE_BYTES_MAX`] bytes of a file, up to the last whole line. `product` is
    /// our product token: letters, `_` and `-` (2.2.1); with anything else in it no group can name
    /// it, and those of `*` count. Never fails: what is no record is passed over. Linear in the
    /// text, and sorting its rules.
    pub fn parse(text: &[u8], product: &str, ending: Ending) -> Self {
        parse::parse(text, product, ending)
    }
}

/// Whether a text is an HTML page.
pub fn is_html(text: &[u8]) -> bool {
    parse::is_html(text)
}

/// What one robots.txt says to one product.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    table: Table,
    crawl_delay: Option<Duration>,
    /// One to a line.
    sitemaps: Box<str>,
}

impl Rules {
    /// The rules of a whole file: see [`File::parse`].
    pub fn parse(text: &[u8], product: &str) -> Self {
        File::parse(text, product, Ending::Whole).rules
    }

    /// The rules of a server that has none.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// The rules of a server whose rules can't be had: all but robots.txt is forbidden.
    pub fn deny_all() -> Self {
        Self { table: Table::deny_all(), ..Self::default() }
    }

    /// Whether `target`, a path with its query, may be fetched. Any spelling will do. robots.txt
    /// itself always may.
    pub fn check(&self, target: &str) -> Verdict {
        self.check_counted(target).0
    }

    /// The same, and the work that it took: a unit is about what it costs to scan one byte of a
    /// page.
    pub fn check_counted(&self, target: &str) -> (Verdict, usize) {
        if self.table.is_empty() {
            return (Verdict::NO_RULE, 0);
        }
        let target = octets::Target::new(target.as_bytes());
        if target.is_robots_txt() {
            return (Verdict::NO_RULE, 0);
        }
        let (verdict, units) = self.table.decide(&target);
        (verdict.unwrap_or(Verdict::NO_RULE), units)
    }

    /// The time asked for between two requests; the longest if asked for more than once.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Sitemaps of the site, as absolute http or https URLs, not checked further.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.sitemaps.lines()
    }

    /// Writes the rules down, for a later run. Sitemaps are left out: they have been told.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let delay_us = self.crawl_delay.map(|delay| delay.as_micros());
        out.put_bool(delay_us.is_some());
        out.put_varint(delay_us.and_then(|us| u64::try_from(us).ok()).unwrap_or(0));
        self.table.encode(out);
    }

    /// The rules that [`Rules::encode`] wrote: the same verdicts, with the same lines.
    pub fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let (has_delay, delay_us) = (take.bool()?, take.varint()?);
        let crawl_delay = has_delay.then(|| Duration::from_micros(delay_us));
        Ok(Self { table: Table::decode(take)?, crawl_delay, sitemaps: Box::default() })
    }

    /// Memory held, in bytes.
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.table.heap_bytes() + self.sitemaps.len()
    }

    /// Whether any rule can forbid or allow something.
    pub fn has_rules(&self) -> bool {
        !self.table.is_empty()
    }
}
