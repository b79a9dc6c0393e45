//! Parses the lines of a robots.txt into rules, in one pass and for one product.
//!
//! A line may end in CR, LF or both. Its key is recognized with some misspellings ([`key_of`]). A
//! `#` starts a comment anywhere. The rules of all groups that name the product are one list. The
//! groups of `*` count only if no group names the product, and rules above the first User-agent
//! line apply to nobody.
//!
//! Cost: one pass; memory for the rules of the product and those of `*`.
//! Source: RFC 9309 2.1, 2.2.1, 2.2.4, 2.5.

use super::matching::Builder;
use super::usage::{self, Lines as UsageLines};
use super::{Ending, File, Rules, SITEMAPS_BYTES_MAX, SITEMAPS_MAX, text};
use encoding_rs::WINDOWS_1252;
use std::borrow::Cow;
use std::time::Duration;

pub(super) fn parse(text: &[u8], product: &str, ending: Ending) -> File {
    let text = text::whole_lines(text);
    let is_html = is_html(&text);
    let extract = is_html.then(|| text::html_to_text(&text));
    let file_lines = extract.as_ref().map(|extract| extract.page_lines(&text));
    // The number, counted from 1, that a line with an index has in the file.
    let number = |index: usize| match &file_lines {
        Some(lines) => lines[index],
        None => index as u32 + 1,
    };
    let text = extract.map_or(text, |extract| Cow::Owned(extract.text));
    let whole = match ending {
        Ending::Whole => &text[..],
        Ending::Cut => text::to_last_end(&text),
    };
    let mut reader = Reader::new(product.as_bytes());
    let mut lines = 0;
    for line in Lines(whole) {
        if let Some((key, value)) = record(line) {
            reader.record(key, value, number(lines));
        }
        lines += 1;
    }
    // A truncated rule that forbids is kept: being shorter, it forbids even more.
    if let Some((key @ (Key::Disallow | Key::CrawlDelay), value)) = record(&text[whole.len()..]) {
        reader.record(key, value, number(lines));
    }
    let has_rule_lines = reader.has_rule_lines;
    File { rules: reader.finish(), has_rule_lines, is_html }
}

/// The number of bytes in which the first HTML tag is searched. Servers may send a line or two
/// before the page.
const TAG_BYTES_MAX: usize = 1024;

/// Returns whether a text is an HTML page: it begins with a tag, or has a tag before its first
/// record and outside comments.
pub(super) fn is_html(text: &[u8]) -> bool {
    let head = &text[..text.len().min(TAG_BYTES_MAX)];
    let mut plain = Lines(head).take_while(|line| record(line).is_none());
    text::begins_with_tag(text)
        || plain.any(|line| {
            let end = memchr::memchr(b'#', line).unwrap_or(line.len());
            text::has_tag(&line[..end])
        })
}

/// Iterates over the lines of a text, without their line ends.
pub(super) struct Lines<'a>(pub(super) &'a [u8]);

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
    Use(usage::Key),
    License,
}

/// Parses the record on a line to its key and value; `None` if the key is unknown.
fn record(line: &[u8]) -> Option<(Key, &[u8])> {
    let line = memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment]);
    let (key, value) = match memchr::memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => two_words(line)?,
    };
    Some((key_of(trimmed(key))?, value.trim_ascii()))
}

/// Returns the key that a name means; `None` if it is unknown. User-agent, Disallow, Sitemap and
/// Crawl-delay are also recognized by the misspellings and prefixes that the reference parser
/// accepts; the others by their exact names only.
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
    const EXACT: [(Key, &[u8]); 4] = [
        (Key::Allow, b"allow"),
        (Key::Use(usage::Key::Signal), b"content-signal"),
        (Key::Use(usage::Key::Usage), b"content-usage"),
        (Key::License, b"license"),
    ];
    if let Some((key, _)) = EXACT.iter().find(|(_, known)| name.eq_ignore_ascii_case(known)) {
        return Some(*key);
    }
    let first = name.first()?.to_ascii_lowercase();
    let begins = |known: &&[u8]| {
        name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    let (key, _) =
        KEYS.iter().find(|(_, known)| known[0][0] == first && known.iter().any(begins))?;
    Some(*key)
}

/// Trims white space, and other invisible octets that editors and copying leave: zeros, byte order
/// marks, no-break spaces in UTF-8 or Latin-1.
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
            // In UTF-8 no character begins with this octet, and no character that ends with it
            // follows ASCII.
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

/// Splits a line without a colon into two words, as the reference parser does. Returns `None` if it
/// doesn't consist of two words.
fn two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let (key, value) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    let value = value.trim_ascii();
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((key, value))
}

/// The groups, of those that concern this crawler, that the current User-agent lines name.
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

/// The crawler that a User-agent line names.
enum Agent {
    Product,
    Everyone,
    Another,
}

/// The state of parsing a file.
struct Reader<'a> {
    product: &'a [u8],
    /// True once a group named the product; the groups of `*` then no longer matter.
    named: bool,
    for_product: AudienceRules,
    for_everyone: AudienceRules,
    /// The audience of Allow and Disallow lines. Other records between User-agent lines don't end
    /// the list of names (2.2.4).
    audience: Audience,
    audience_closed: bool,
    /// The audience of Crawl-delay lines, and of those about use. The standard doesn't define these
    /// fields, and authors expect them to end the list of names. Otherwise a delay for one crawler
    /// would also slow down the one that is named after it.
    delayed: Audience,
    delayed_closed: bool,
    /// The URLs of sitemaps, one on each line, and their number.
    sitemaps: (String, usize),
    /// What is said of use above the first group, and of the whole file.
    for_all: UsageLines,
    /// True once there was a rule for any crawler.
    has_rule_lines: bool,
    has_agents: bool,
}

/// The rules and the delay for one audience.
#[derive(Default)]
struct AudienceRules {
    rules: Builder,
    crawl_delay: Option<Duration>,
    usages: UsageLines,
}

impl<'a> Reader<'a> {
    fn new(product: &'a [u8]) -> Self {
        Self {
            product,
            named: false,
            for_product: AudienceRules::default(),
            for_everyone: AudienceRules::default(),
            audience: Audience::default(),
            audience_closed: false,
            delayed: Audience::default(),
            delayed_closed: false,
            sitemaps: (String::new(), 0),
            for_all: UsageLines::default(),
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
            Key::Use(key) => self.usage(key, value),
            Key::License => self.for_all.add_license(value),
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
            self.for_everyone = AudienceRules::default();
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
        if let Some(rules) = self.rules_of(self.audience) {
            rules.rules.add(value, allowed, line);
        }
    }

    /// Adds a rule that forbids `value`, and variants that its author may have meant: the text up
    /// to a zero, as the reference parser reads it; Latin-1 instead of UTF-8; `&` for `&amp;`.
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
        if let (Some(delay), Some(rules)) = (seconds(value), self.rules_of(self.delayed)) {
            rules.crawl_delay = rules.crawl_delay.max(Some(delay));
        }
    }

    fn usage(&mut self, key: usage::Key, value: &[u8]) {
        if !self.has_agents {
            return self.for_all.add(key, value);
        }
        self.delayed_closed = true;
        if let Some(rules) = self.rules_of(self.delayed) {
            rules.usages.add(key, value);
        }
    }

    /// Returns the rules of `audience`; `None` if it doesn't include this crawler.
    fn rules_of(&mut self, audience: Audience) -> Option<&mut AudienceRules> {
        if audience.product {
            Some(&mut self.for_product)
        } else if audience.everyone && !self.named {
            Some(&mut self.for_everyone)
        } else {
            None
        }
    }

    fn sitemap(&mut self, value: &[u8]) {
        let Ok(url) = std::str::from_utf8(value) else { return };
        let (sitemaps, count) = &mut self.sitemaps;
        let room = SITEMAPS_BYTES_MAX - sitemaps.len();
        if *count < SITEMAPS_MAX && url.len() < room && is_web_url(url) {
            sitemaps.push_str(url);
            sitemaps.push('\n');
            *count += 1;
        }
    }

    fn finish(self) -> Rules {
        let rules = if self.named { self.for_product } else { self.for_everyone };
        let mut usages = self.for_all;
        usages.append(rules.usages);
        Rules {
            usages: usages.finish(),
            table: rules.rules.finish(),
            crawl_delay: rules.crawl_delay,
            sitemaps: self.sitemaps.0.into_boxed_str(),
        }
    }
}

/// Returns the product token at the start of a User-agent value: letters, `_` and `-` (2.2.1).
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

/// Parses the number of seconds at the start of a value: digits, and decimals after a point (to the
/// microsecond; the rest is dropped). Too many digits mean a very long time. Returns `None` if
/// there is no number.
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
