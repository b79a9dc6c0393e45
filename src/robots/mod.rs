//! Parses robots.txt, and decides which URLs of a server may be fetched.
//!
//! [`Rules::parse`] parses a file for one product token and keeps only what applies to it.
//! [`Rules::check`] returns the verdict for a path and query, with the line that decided.
//! [`meaning`] says how a reply to the request for the file itself is interpreted. The engine
//! fetches the file, caches the rules and refreshes them.
//!
//! Where sites and crawlers differ, the standard is followed to the letter: only Allow and Disallow
//! end a list of User-agent lines. Adopted from the reference parser: the colon may be missing
//! between two words, and the keys of User-agent and Disallow may be misspelt in the ways that it
//! accepts. UTF-16 and UTF-32 are decoded, and HTML around the lines is removed. Beyond the
//! standard there are Crawl-delay (it applies to the User-agent lines right above it), Sitemap (it
//! applies to the file), and lines about the use of pages (`usage.rs`).
//!
//! Where the standard and the reference matcher interpret a file differently, the interpretation
//! that forbids wins. A rule that forbids matches by the standard, which treats all spellings of a
//! path as equal (2.2.2). A rule that allows must also match in the narrower way of the reference:
//! an escape of an unreserved octet in the rule matches that escape only (`Allow: /%7Ea` does not
//! apply to `/~a`), and octets outside ASCII match in their encoded form only. The spelling of a
//! target is chosen by the author of a link and is not part of the file: `Allow: /~a` does allow
//! `/%7Ea`.
//!
//! Laws: the rule with the most octets decides; between equals Allow, then the earlier line. The
//! order of groups and of rules changes no verdict. No input causes a panic, and no file costs more
//! than a few times [`SIZE_BYTES_MAX`] of memory.
//! Cost: a check is a binary search and a walk down one chain of prefixes, whatever the number of
//! plain rules. Rules with a `*` inside are tried from the longest down; a one-word filter excludes
//! most of them. No pattern can make a check backtrack.
//! Source: RFC 9309; 2.2.1 groups, 2.2.2 matching, 2.2.3 special characters, 2.3.1 replies.

mod matching;
mod octets;
mod parse;
mod search;
#[cfg(test)]
mod tests;
mod text;
mod usage;

pub use usage::Usage;

use crate::ground::codec::{Put, Short, Take};
use matching::Table;
use std::time::Duration;
use usage::Usages;

/// The number of bytes of a file that are parsed; the standard requires at least this (2.5). If the
/// file is longer, pass one byte more than this: a file of exactly this size counts as complete.
pub const SIZE_BYTES_MAX: usize = 500 * 1024;

/// What the first byte of encoded rules says that they have.
const HAS_DELAY: u8 = 1;
const HAS_USAGES: u8 = 2;

/// The maximum number of Sitemap lines kept of one file; later ones are dropped.
pub const SITEMAPS_MAX: usize = 1_000;

/// The maximum length of all Sitemap lines of one file together, in bytes.
pub const SITEMAPS_BYTES_MAX: usize = 128 * 1024;

/// The settings of robots.txt: how long a reply is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a file is used before it is fetched again; the standard allows a day at most.
    pub ttl: Duration,
    /// The time after which an unreachable robots.txt is requested again.
    pub retry_after: Duration,
    /// The time for which robots.txt must have been unreachable to count as unavailable, so that
    /// nothing is forbidden.
    pub unavailable_after: Duration,
    /// The maximum number of redirects in a row that are followed for robots.txt. If there are
    /// more, the file counts as unavailable, so nothing is forbidden.
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

/// The meaning of a reply to the request for robots.txt (2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// The body of the reply is the file, which [`Rules::parse`] parses.
    Parse,
    /// The reply is a redirect to follow, also to another authority; the rules apply to the first
    /// authority. After too many redirects, or without a usable `Location`, the file is
    /// unavailable.
    Follow,
    /// The server has no robots.txt, so nothing is forbidden: [`Rules::allow_all`].
    Unavailable,
    /// The rules are unknown, so everything is forbidden until the server answers:
    /// [`Rules::deny_all`]. Network failures have the same meaning.
    Unreachable,
}

/// Returns the meaning of a reply with the HTTP status `status`. 429 means
/// [`Meaning::Unreachable`], because it asks for fewer requests and does not say that there is no
/// file. So does a number that is no HTTP status, because the server can't be understood.
pub fn meaning(status: u16) -> Meaning {
    match status {
        200..=299 => Meaning::Parse,
        300..=399 => Meaning::Follow,
        429 => Meaning::Unreachable,
        400..=499 => Meaning::Unavailable,
        _ => Meaning::Unreachable,
    }
}

/// The verdict for one target, and the line that decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// True if the target may be fetched.
    pub allowed: bool,
    /// The line of the file that decided, counted from 1; 0 if no rule applies to the target.
    pub line: u32,
}

impl Verdict {
    /// The verdict where no rule applies.
    pub const NO_RULE: Self = Self { allowed: true, line: 0 };
}

/// Whether the text of a robots.txt is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The text is complete.
    Whole,
    /// The text may be cut off inside its last line. A last line without a line end then counts if
    /// it forbids, not if it allows.
    Cut,
}

/// A parsed robots.txt.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The rules that apply to the product.
    pub rules: Rules,
    /// True if the file has rules for any crawler.
    pub has_rule_lines: bool,
    /// True if the file is an HTML page.
    pub is_html: bool,
}

impl File {
    /// Parses the first [`SIZE_BYTES_MAX`] bytes of a robots.txt, up to the last complete line.
    /// `product` is this crawler's product token: letters, `_` and `-` (2.2.1). If it contains any
    /// other character no group can name it, and the groups of `*` apply. Never fails: unknown
    /// lines are ignored. Takes time linear in the text, and for sorting the rules.
    pub fn parse(text: &[u8], product: &str, ending: Ending) -> Self {
        parse::parse(text, product, ending)
    }
}

/// Returns whether a text is an HTML page.
pub fn is_html(text: &[u8]) -> bool {
    parse::is_html(text)
}

/// The rules of one robots.txt for one product.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    table: Table,
    crawl_delay: Option<Duration>,
    /// The URLs of the sitemaps that the file names, one on each line.
    sitemaps: Box<str>,
    /// What the file says of the use of pages; `None` if nothing.
    usages: Option<Box<Usages>>,
}

impl Rules {
    /// Parses the rules of a complete robots.txt; see [`File::parse`] for `product`.
    pub fn parse(text: &[u8], product: &str) -> Self {
        File::parse(text, product, Ending::Whole).rules
    }

    /// Returns the rules of a server without robots.txt.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Returns the rules of a server whose robots.txt is unreachable: everything but robots.txt is
    /// forbidden.
    pub fn deny_all() -> Self {
        Self { table: Table::deny_all(), ..Self::default() }
    }

    /// Returns whether `target`, a path with its query in any spelling, may be fetched. robots.txt
    /// itself is always allowed.
    pub fn check(&self, target: &str) -> Verdict {
        self.check_counted(target).0
    }

    /// Decides like [`Rules::check`], and also returns the work that it took. One unit costs about
    /// as much as scanning one byte of a page.
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

    /// Returns what the file says of the use of `target`, a path with its query in any spelling,
    /// and the work that it took, as [`Rules::check_counted`] does.
    pub fn usage(&self, target: &str) -> (Usage<'_>, usize) {
        let target = || octets::Target::new(target.as_bytes());
        self.usages.as_ref().map_or_else(Default::default, |usages| usages.of_target(&target()))
    }

    /// Returns the time between two requests that the file asks for; the longest, if it names
    /// several. Returns `None` if it names none.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Returns the URLs of sitemaps that the file names. They are absolute http or https URLs, and
    /// are not checked any further.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        self.sitemaps.lines()
    }

    /// Appends the rules to `out` in binary form, for a later run. Sitemaps are left out, because
    /// they were reported already.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let delay_us = self.crawl_delay.map(|delay| delay.as_micros());
        let has_usages = if self.usages.is_some() { HAS_USAGES } else { 0 };
        out.put_u8(u8::from(delay_us.is_some()) | has_usages);
        out.put_varint(delay_us.and_then(|us| u64::try_from(us).ok()).unwrap_or(0));
        self.table.encode(out);
        self.usages.iter().for_each(|usages| usages.encode(out));
    }

    /// Decodes the rules that [`Rules::encode`] wrote: the verdicts and lines are the same.
    ///
    /// # Errors
    /// Returns [`Short`] if the bytes end early or are damaged.
    pub fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let (has, delay_us) = (take.u8()?, take.varint()?);
        if has & !(HAS_DELAY | HAS_USAGES) != 0 {
            return Err(Short);
        }
        let crawl_delay = (has & HAS_DELAY != 0).then(|| Duration::from_micros(delay_us));
        let table = Table::decode(take)?;
        let usages = if has & HAS_USAGES == 0 { None } else { Some(Usages::decode(take)?.into()) };
        Ok(Self { table, crawl_delay, sitemaps: Box::default(), usages })
    }

    /// Returns the rule that decided on `verdict`, which is a result of [`Rules::check`], in its
    /// normalized spelling; `None` if no rule did.
    pub fn rule_of(&self, verdict: Verdict) -> Option<String> {
        self.table.text_of(verdict)
    }

    /// Returns the rules as a robots.txt of one group, for any crawler, with at most `bytes_max`
    /// bytes, and whether rules are left out because they don't fit. Parsing the text gives the
    /// same verdicts, but its lines have other numbers.
    pub fn text(&self, bytes_max: usize) -> (String, bool) {
        let mut text = String::from("User-agent: *\n");
        if let Some(delay) = self.crawl_delay {
            let (seconds, us) = (delay.as_secs(), delay.subsec_micros());
            text.push_str(&format!("Crawl-delay: {seconds}.{us:06}\n"));
        }
        let is_cut = self.table.push_text(bytes_max, &mut text);
        (text, is_cut)
    }

    /// Returns the size of the rules in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        let usages = self.usages.as_ref().map_or(0, |usages| usages.size_bytes());
        size_of::<Self>() + self.table.heap_bytes() + self.sitemaps.len() + usages
    }

    /// Returns whether there is any rule for this product, or anything about use.
    pub fn has_rules(&self) -> bool {
        !self.table.is_empty() || self.usages.is_some()
    }
}
