//! Lines to groups to rules: the text of a robots.txt read once, for one product.
//!
//! A line may end in CR, LF or both, and is known by its key, misspelt or not ([`key_of`]). A `#`
//! starts a comment anywhere. Rules of all groups that
//! name the product are one list; the groups of `*` count only if there is none that names it,
//! and rules above the first User-agent line count for nobody.
//!
//! Cost: one pass; memory for the rules of the product and those of `*`.
//! Source: RFC 9309 2.1, 2.2.1, 2.2.4, 2.5.

use super::matching::Draft;
use super::{Ending, File, Rules, SITEMAPS_BYTES_MAX, SITEMAPS_MAX, text};
use encoding_rs::WINDOWS_1252;
use std::borrow::Cow;
use std::time::Duration;

pub(super) fn parse(text: &[u8], product: &str, ending: Ending) -> File {
    let text = text::whole_lines(text);
    let is_html = is_html(&text);
    let text = if is_html { Cow::Owned(text::unwrapped(&text)) } else { text };
    let whole = match ending {
        Ending::Whole => &text[..],
        Ending::Cut => text::to_last_end(&text),
    };
    let mut reader = Reader::new(product.as_bytes());
    let mut lines = 0;
    for line in Lines(whole) {
        lines += 1;
        if let Some((key, value)) = record(line) {
            reader.record(key, value, lines);
        }
    }
    // Half a rule that forbids does so all the more.
    if let Some((key @ (Key::Disallow | Key::CrawlDelay), value)) = record(&text[whole.len()..]) {
        reader.record(key, value, lines + 1);
    }
    let has_rule_lines = reader.has_rule_lines;
    File { rules: reader.finish(), has_rule_lines, is_html }
}

/// How far into a text the first tag may be, if it does not begin with one: behind a line or two
/// that the server put before its page.
const TAG_BYTES_MAX: usize = 1024;

/// Whether a text is an HTML page: it begins with a tag, or has one before its first record and
/// outside comments.
pub(super) fn is_html(text: &[u8]) -> bool {
    let head = &text[..text.len().min(TAG_BYTES_MAX)];
    let mut plain = Lines(head).take_while(|line| record(line).is_none());
    text::begins_with_tag(text)
        || plain.any(|line| {
            let end = memchr::memchr(b'#', line).unwrap_or(line.len());
            text::has_tag(&line[..end])
        })
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
    Some((key_of(trimmed(key))?, value.trim_ascii()))
}

/// The key of that name. Those that forbid, or say whom the rules are for, are also known by the
/// misspellings and beginnings that the reference parser knows; Allow by its name only.
fn key_of(name: &[u8]) -> Option<Key> {
    const KEYS: [(Key, &[&[u8]]); 4] = [
        (Key::UserAgent, &[b"user-agent", b"useragent", b"user agent"]),
        (
            Key::Disallow,
            &[b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"],
        ),
        (Key::Sitemap, &[b"sitemap", b"site-map", b"site map"]),
        (Key::CrawlDelay, &[b"crawl-delay", b"crawldelay", b"crawl delay"]),
    ];
    if name.eq_ignore_ascii_case(b"allow") {
        return Some(Key::Allow);
    }
    let first = name.first()?.to_ascii_lowercase();
    let begins = |known: &&[u8]| {
        name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    let (key, _) =
        KEYS.iter().find(|(_, known)| known[0][0] == first && known.iter().any(begins))?;
    Some(*key)
}

/// Without white space, nor what editors and copies leave in its place: zeros, byte order marks,
/// no-break spaces in UTF-8 or Latin-1.
fn trimmed(text: &[u8]) -> &[u8] {
    const BLANKS: [&[u8]; 3] = [b"\0", b"\xEF\xBB\xBF", b"\xC2\xA0"];
    let mut text = text.trim_ascii();
    if text.first().is_none_or(|byte| (1..0x80).contains(byte))
        && text.last().is_none_or(|byte| (1..0x80).contains(byte))
    {
        return text;
    }
    loop {
        let before = text.len();
        for blank in BLANKS {
            text = text.strip_prefix(blank).unwrap_or(text);
            text = text.strip_suffix(blank).unwrap_or(text);
        }
        text = match text {
            // No character of UTF-8 begins with this octet, nor ends with it behind ASCII.
            [0xA0, rest @ ..] => rest,
            [rest @ .., 0xA0] if rest.last().is_some_and(u8::is_ascii) => rest,
            _ => text,
        };
        text = text.trim_ascii();
        if text.len() == before {
            return text;
        }
    }
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
    /// A rule has come for somebody, whoever it is.
    has_rule_lines: bool,
    has_agents: bool,
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
            has_rule_lines: false,
            has_agents: false,
        }
    }

    fn record(&mut self, key: Key, value: &[u8], line: u32) {
        match key {
            Key::UserAgent => self.user_agent(value),
            Key::Allow => self.rule(value, true, line),
            Key::Disallow => self.disallow(trimmed(value), line),
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
        self.has_agents = true;
        let agent = self.agent(trimmed(value));
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
        self.has_rule_lines |= self.has_agents;
        if let Some(said) = self.addressed(self.audience) {
            said.rules.add(value, allowed, line);
        }
    }

    /// A rule that forbids what it says, and what its author may have meant: up to a zero, as the
    /// reference parser reads it; Latin-1 instead of UTF-8; `&` for `&amp;`.
    fn disallow(&mut self, value: &[u8], line: u32) {
        let value = memchr::memchr(0, value).map_or(value, |zero| &value[..zero]);
        self.rule(value, false, line);
        if !value.is_ascii() && std::str::from_utf8(value).is_err() {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(value);
            self.rule(text.as_bytes(), false, line);
        }
        if memchr::memmem::find(value, b"&amp;").is_some() {
            let text = String::from_utf8_lossy(value).replace("&amp;", "&");
            self.rule(text.as_bytes(), false, line);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_all_kinds_are_taken_off() {
        let cases: [(&[u8], &[u8]); 8] = [
            (b" \t* ", b"*"),
            (b"\xA0*", b"*"),
            (b"*\xA0", b"*"),
            (b" \xA0 * \xA0 ", b"*"),
            (b"\xC2\xA0*\xC2\xA0", b"*"),
            (b"\xEF\xBB\xBF*\0", b"*"),
            (b"/voil\xC3\xA0", b"/voil\xC3\xA0"),
            (b"\xA0", b""),
        ];
        for (text, expected) in cases {
            assert_eq!(trimmed(text), expected, "{}", text.escape_ascii());
        }
        assert!(!Rules::parse(b"User-agent:\xA0*\nDisallow: /a\n", "sted").check("/a").allowed);
    }
}
