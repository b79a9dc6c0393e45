//! Lines to groups to rules: the text of a robots.txt read once, for one product.
//!
//! A line may end in CR, LF or both. A `#` starts a comment anywhere. Rules of all groups that
//! name the product are one list; the groups of `*` count only if there is none that names it,
//! and rules above the first User-agent line count for nobody.
//!
//! Cost: one pass; memory for the rules of the product and those of `*`.
//! Source: RFC 9309 2.1, 2.2.1, 2.2.4, 2.5.

use super::matching::Draft;
use super::{Rules, SITEMAPS_BYTES_MAX, SITEMAPS_MAX, SIZE_BYTES_MAX};
use std::time::Duration;

pub(super) fn parse(text: &[u8], product: &str) -> Rules {
    let mut reader = Reader::new(product.as_bytes());
    for (line, text) in (1..).zip(Lines(whole_lines(text))) {
        if let Some((key, value)) = record(text) {
            reader.record(key, value, line);
        }
    }
    reader.finish()
}

/// The lines a file is judged by: without a byte order mark, and without what is past the limit
/// or cut by it (half a rule may forbid more than the whole one).
fn whole_lines(text: &[u8]) -> &[u8] {
    let kept = &text[..text.len().min(SIZE_BYTES_MAX)];
    let whole = match text.get(kept.len()) {
        None | Some(b'\r' | b'\n') => kept.len(),
        Some(_) => memchr::memrchr2(b'\r', b'\n', kept).map_or(0, |end| end + 1),
    };
    let kept = &kept[..whole];
    kept.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(kept)
}

/// Lines without their ends.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\r', b'\n', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = match rest {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => rest,
        };
        Some(line)
    }
}

#[derive(Clone, Copy)]
enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// The record on a line, if there is one that means something here.
fn record(line: &[u8]) -> Option<(Key, &[u8])> {
    let line = memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment]);
    let (key, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => two_words(line)?,
    };
    let key = match key.trim_ascii() {
        key if key.eq_ignore_ascii_case(b"user-agent") => Key::UserAgent,
        key if key.eq_ignore_ascii_case(b"allow") => Key::Allow,
        key if key.eq_ignore_ascii_case(b"disallow") => Key::Disallow,
        key if key.eq_ignore_ascii_case(b"crawl-delay") => Key::CrawlDelay,
        key if key.eq_ignore_ascii_case(b"sitemap") => Key::Sitemap,
        _ => return None,
    };
    Some((key, value.trim_ascii()))
}

/// A line without a colon, if it is two words: the one leniency, as the reference parser has it.
fn two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let (key, value) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    let value = value.trim_ascii();
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((key, value))
}

/// Whom the group being read speaks to, as far as it concerns us.
#[derive(Clone, Copy, Default)]
struct Audience {
    product: bool,
    everyone: bool,
}

impl Audience {
    fn add(&mut self, agent: &Agent) {
        self.product |= matches!(agent, Agent::Product);
        self.everyone |= matches!(agent, Agent::Everyone);
    }
}

/// Whom a User-agent line names.
enum Agent {
    Product,
    Everyone,
    Another,
}

/// What has been read so far.
struct Reader<'a> {
    product: &'a [u8],
    /// Some group names the product: those of `*` no longer matter.
    named: bool,
    of_product: Said,
    of_everyone: Said,
    /// Of rules. Other records between User-agent lines don't end the list (2.2.4).
    audience: Audience,
    audience_closed: bool,
    /// Of Crawl-delay: the standard doesn't know it, and authors think of it as ending the list.
    /// Else a delay for one crawler would slow down whoever is named after it.
    delayed: Audience,
    delayed_closed: bool,
    sitemaps: String,
    sitemaps_count: usize,
}

/// What one audience is told.
#[derive(Default)]
struct Said {
    rules: Draft,
    crawl_delay: Option<Duration>,
}

impl<'a> Reader<'a> {
    fn new(product: &'a [u8]) -> Self {
        Self {
            product,
            named: false,
            of_product: Said::default(),
            of_everyone: Said::default(),
            audience: Audience::default(),
            audience_closed: false,
            delayed: Audience::default(),
            delayed_closed: false,
            sitemaps: String::new(),
            sitemaps_count: 0,
        }
    }

    fn record(&mut self, key: Key, value: &[u8], line: u32) {
        match key {
            Key::UserAgent => self.user_agent(value),
            Key::Allow => self.rule(value, true, line),
            Key::Disallow => self.rule(value, false, line),
            Key::CrawlDelay => self.crawl_delay(value),
            Key::Sitemap => self.sitemap(value),
        }
    }

    fn user_agent(&mut self, value: &[u8]) {
        if std::mem::take(&mut self.audience_closed) {
            self.audience = Audience::default();
        }
        if std::mem::take(&mut self.delayed_closed) {
            self.delayed = Audience::default();
        }
        let agent = self.agent(value);
        self.audience.add(&agent);
        self.delayed.add(&agent);
        if matches!(agent, Agent::Product) && !self.named {
            self.named = true;
            self.of_everyone = Said::default();
        }
    }

    fn agent(&self, value: &[u8]) -> Agent {
        let token = token_of(value);
        match value {
            [b'*'] | [b'*', b' ' | b'\t', ..] => Agent::Everyone,
            _ if !token.is_empty() && token.eq_ignore_ascii_case(self.product) => Agent::Product,
            _ => Agent::Another,
        }
    }

    fn rule(&mut self, value: &[u8], allowed: bool, line: u32) {
        self.audience_closed = true;
        self.delayed_closed = true;
        if let Some(said) = self.addressed(self.audience) {
            said.rules.add(value, allowed, line);
        }
    }

    fn crawl_delay(&mut self, value: &[u8]) {
        self.delayed_closed = true;
        if let (Some(delay), Some(said)) = (seconds(value), self.addressed(self.delayed)) {
            said.crawl_delay = said.crawl_delay.max(Some(delay));
        }
    }

    /// Where to note what is said to `audience`; `None` if it is of no interest.
    fn addressed(&mut self, audience: Audience) -> Option<&mut Said> {
        if audience.product {
            Some(&mut self.of_product)
        } else if audience.everyone && !self.named {
            Some(&mut self.of_everyone)
        } else {
            None
        }
    }

    fn sitemap(&mut self, value: &[u8]) {
        let Ok(url) = std::str::from_utf8(value) else { return };
        let room = SITEMAPS_BYTES_MAX - self.sitemaps.len();
        if self.sitemaps_count < SITEMAPS_MAX && url.len() < room && is_web_url(url) {
            self.sitemaps.push_str(url);
            self.sitemaps.push('\n');
            self.sitemaps_count += 1;
        }
    }

    fn finish(self) -> Rules {
        let said = if self.named { self.of_product } else { self.of_everyone };
        Rules {
            table: said.rules.finish(),
            crawl_delay: said.crawl_delay,
            sitemaps: self.sitemaps.into_boxed_str(),
        }
    }
}

/// The product token at the start of a name: letters, `_` and `-` (2.2.1).
fn token_of(name: &[u8]) -> &[u8] {
    let of_token = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    &name[..name.iter().take_while(of_token).count()]
}

fn is_web_url(url: &str) -> bool {
    let starts = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    starts("http://") || starts("https://")
}

/// The number of seconds a value starts with: digits, and after a point decimals (to the
/// microsecond, the rest is dropped). Too many digits mean a very long time.
fn seconds(value: &[u8]) -> Option<Duration> {
    let (whole, rest) = digits(value);
    let decimals = rest.strip_prefix(b".").map_or(&[][..], |rest| digits(rest).0);
    if whole.is_empty() && decimals.is_empty() {
        return None;
    }
    let number = |digits: &[u8]| {
        digits.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
    };
    let mut micros = [b'0'; 6];
    let known = decimals.len().min(micros.len());
    micros[..known].copy_from_slice(&decimals[..known]);
    let whole = Duration::from_secs(number(whole));
    Some(whole.saturating_add(Duration::from_micros(number(&micros))))
}

fn digits(value: &[u8]) -> (&[u8], &[u8]) {
    value.split_at(value.iter().take_while(|byte| byte.is_ascii_digit()).count())
}
