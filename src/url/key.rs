//! The deduplication key of a URL: two URLs with the same key are crawled as one page.
//!
//! The key is only hashed; the URL that is fetched stays as the page wrote it. The default rules
//! can't merge two pages of a well-behaved server: escapes get a uniform spelling (RFC 3986,
//! section 6.2.2), and parameters added by advertisers and session tracking, an empty query and the
//! dot after a host name are removed. `www.`, trailing slashes, index pages, the order of
//! parameters and the scheme matter to some servers, so the rules for them are options.
//!
//! Law: the key of a key is that key.
//! Cost: if no rule applies the key is the URL's own bytes, which one pass over them shows; else
//! one copy.

mod explain;
mod session;

use super::UrlRef;
use super::byte_class::{self, ByteClasses};
use crate::ground::map::Set;
use smallvec::SmallVec;

/// The settings of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True to write percent escapes in upper case, decode those of letters, digits and `-._~`, and
    /// escape the characters that the URL standard leaves alone but RFC 3986 doesn't allow.
    pub normalise_escapes: bool,
    /// The names of query parameters to remove. A `*` at the end matches anything; case is ignored.
    pub drop_params: Vec<String>,
    /// The names of path parameters (`;name=value`) to remove, in the form of `drop_params`.
    pub drop_path_params: Vec<String>,
    /// True to remove session ids that are recognized by their shape: see `key/session.rs`.
    pub drop_sessions: bool,
    /// True to remove an empty query, even if it became empty by other rules.
    pub drop_empty_query: bool,
    /// True to remove the dot at the end of a host name.
    pub drop_host_dot: bool,
    /// True to sort the parameters of a query by their bytes.
    pub sort_query: bool,
    /// The names of index pages, such as `index.html`. As the last segment of a path they mean the
    /// folder, and are removed.
    pub drop_index: Vec<String>,
    /// True to remove the slash at the end of a path.
    pub drop_trailing_slash: bool,
    /// True to remove `www.` before a host name.
    pub drop_www: bool,
    /// True to treat https as http if both have their default port.
    pub merge_schemes: bool,
}

/// The query parameters that are removed by default. Advertising and mailing systems add click
/// identifiers to links of other sites' pages, so a page can't depend on them. The rest are session
/// ids under the names defined by server software; shorter names (`sid`, `s`) have other meanings
/// elsewhere.
const PARAMS_DROPPED: [&str; 27] = [
    "utm_*",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "fbclid",
    "msclkid",
    "yclid",
    "ysclid",
    "twclid",
    "ttclid",
    "igshid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "phpsessid",
    "jsessionid",
    "aspsessionid*",
    "cfid",
    "cftoken",
    "oscsid",
    "zenid",
];

impl Default for Settings {
    fn default() -> Self {
        Self {
            normalise_escapes: true,
            drop_params: PARAMS_DROPPED.map(String::from).to_vec(),
            drop_path_params: vec!["jsessionid".into(), "phpsessid".into()],
            drop_sessions: true,
            drop_empty_query: true,
            drop_host_dot: true,
            sort_query: false,
            drop_index: Vec::new(),
            drop_trailing_slash: false,
            drop_www: false,
            merge_schemes: false,
        }
    }
}

/// The compiled rules by which keys are computed.
#[derive(Clone, Debug)]
pub struct KeyRules {
    settings: Settings,
    params: Names,
    path_params: Names,
}

impl KeyRules {
    /// Compiles the rules that these settings describe.
    pub fn new(settings: Settings) -> Self {
        let params = Names::new(&settings.drop_params);
        let path_params = Names::new(&settings.drop_path_params);
        Self { settings, params, path_params }
    }

    /// Returns the deduplication key of `url`: the bytes of `url` itself, or those that were
    /// written to `scratch`.
    pub fn key<'a>(&self, url: UrlRef<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if self.is_its_own_key(url) {
            return url.as_str().as_bytes();
        }
        scratch.clear();
        self.push_origin(url, scratch);
        self.push_path(url.path().as_bytes(), scratch);
        if let Some(query) = url.query() {
            self.push_query(query.as_bytes(), scratch);
        }
        scratch
    }

    /// Returns whether no rule changes `url`, so that it is its own key. `false` may be wrong,
    /// `true` is not.
    fn is_its_own_key(&self, url: UrlRef<'_>) -> bool {
        let set = &self.settings;
        let host = url.host();
        if (set.drop_www && host.starts_with("www."))
            || (set.drop_host_dot && host.ends_with('.'))
            || self.is_merged(url)
        {
            return false;
        }
        let target = url.target().as_bytes();
        if url.shape().is_plain_path() {
            return self.is_plain_path(target);
        }
        if set.drop_sessions && session::may_have_segment(target) {
            return false;
        }
        if let Some(classes) = ByteClasses::of(target) {
            let may_have_pair = set.drop_sessions && classes.may_have_pair(target.len());
            return !(may_have_pair && session::has_pair(target))
                && self.is_its_own_target(target, classes);
        }
        if set.drop_sessions && session::has_pair(target) {
            return false;
        }
        let mut classes = 0;
        for &byte in target {
            classes |= CLASS[usize::from(byte)];
        }
        if set.normalise_escapes && classes & ESCAPES != 0 {
            return false;
        }
        if (!self.path_params.is_empty() || set.drop_sessions) && classes & SEMICOLON != 0 {
            return false;
        }
        if classes & QUESTION == 0 {
            return self.is_plain_path(target);
        }
        let path = url.path().as_bytes();
        let query = &target[path.len() + 1..];
        self.is_plain_path(path) && !set.sort_query && self.is_plain_query(query)
    }

    /// Returns whether no rule changes a short target (path and query), by checking its special
    /// bytes only. `false` may be wrong, `true` is not.
    fn is_its_own_target(&self, target: &[u8], classes: ByteClasses) -> bool {
        let set = &self.settings;
        let mut query = None;
        for at in byte_class::BitPositions(classes.special) {
            let is_own = match CLASS[usize::from(target[at])] {
                QUESTION => {
                    query = query.or(Some(at));
                    true
                }
                SEMICOLON => !set.drop_sessions && (query.is_some() || self.path_params.is_empty()),
                PERCENT => !set.normalise_escapes || is_needed_escape(&target[at..]),
                UNSAFE => !set.normalise_escapes,
                _ => true,
            };
            if !is_own {
                return false;
            }
        }
        let Some(mark) = query else { return self.is_plain_path(target) };
        self.is_plain_path(&target[..mark])
            && !set.sort_query
            && self.is_plain_query(&target[mark + 1..])
    }

    fn is_plain_path(&self, path: &[u8]) -> bool {
        let set = &self.settings;
        !(set.drop_trailing_slash && path.len() > 1 && path.ends_with(b"/"))
            && (set.drop_index.is_empty() || !self.is_index(last_segment(path)))
    }

    fn is_plain_query(&self, query: &[u8]) -> bool {
        let is_dropped = query.is_empty() && self.settings.drop_empty_query;
        !is_dropped && !params(query).any(|param| self.is_dropped(&self.params, param))
    }

    fn is_dropped(&self, names: &Names, param: &[u8]) -> bool {
        names.has(name(param)) || self.settings.drop_sessions && session::is_session(param)
    }

    /// Appends the scheme and the host of `url`, changed by the rules for them.
    fn push_origin(&self, url: UrlRef<'_>, out: &mut Vec<u8>) {
        let set = &self.settings;
        let is_https = url.is_https() && !self.is_merged(url);
        out.extend_from_slice(if is_https { b"https://" } else { b"http://" });
        let (mut host, port) = url.authority().split_at(url.host().len());
        if set.drop_host_dot {
            host = host.strip_suffix('.').unwrap_or(host);
        }
        while set.drop_www && host.bytes().filter(|&b| b == b'.').count() > 1 {
            let Some(bare) = host.strip_prefix("www.") else { break };
            host = bare;
        }
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(port.as_bytes());
    }

    fn is_merged(&self, url: UrlRef<'_>) -> bool {
        self.settings.merge_schemes && url.is_https() && url.port() == 443
    }

    /// Appends `path`, changed by the rules for parameters, escapes, index pages and the trailing
    /// slash.
    fn push_path(&self, path: &[u8], out: &mut Vec<u8>) {
        let path_start = out.len();
        let mut segments = path[1..].split(|&b| b == b'/').peekable();
        while let Some(segment) = segments.next() {
            let start = out.len();
            out.push(b'/');
            self.push_segment(segment, out);
            if !self.settings.drop_sessions {
                continue;
            }
            let has_next = segments.peek().is_some();
            if has_next && session::is_segment(&out[start + 1..]) {
                out.truncate(start);
            } else if session::is_pair_value(&out[start + 1..]) {
                let name = last_segment(&out[path_start..start]);
                if session::is_pair_name(name) {
                    out.truncate(start - name.len() - 1);
                }
            }
        }
        if out.len() == path_start {
            out.push(b'/');
        }
        loop {
            let last = last_segment(&out[path_start..]);
            if !last.is_empty() && self.is_index(last) {
                out.truncate(out.len() - last.len());
            } else if self.settings.drop_trailing_slash
                && last.is_empty()
                && out.len() > path_start + 1
            {
                out.pop();
            } else {
                break;
            }
        }
    }

    fn push_segment(&self, segment: &[u8], out: &mut Vec<u8>) {
        let segment_start = out.len();
        let mut parts = segment.split(|&b| b == b';');
        self.push_escaped(parts.next().expect("a split gives one part at least"), out);
        for param in parts {
            let start = out.len();
            out.push(b';');
            self.push_escaped(param, out);
            let is_dropped = self.is_dropped(&self.path_params, &out[start + 1..]);
            if is_dropped && !is_dot_segment(&out[segment_start..start]) {
                out.truncate(start);
            }
        }
    }

    /// Appends `query`, changed by the rules for parameters, their order, escapes and an empty
    /// query.
    fn push_query(&self, query: &[u8], out: &mut Vec<u8>) {
        let query_start = out.len();
        for param in params(query) {
            let start = out.len();
            out.push(b'&');
            self.push_escaped(param, out);
            let is_list = self.settings.drop_sessions && memchr::memchr(b';', param).is_some();
            let is_removed = is_list && session::remove_from_list(start + 1, out);
            if is_removed || self.is_dropped(&self.params, &out[start + 1..]) {
                out.truncate(start);
            }
        }
        if self.settings.sort_query {
            sort_params(query_start, out);
        }
        // The appended text is empty if all parameters were removed, and a single mark if the query
        // is empty.
        if out.len() == query_start + 1 && self.settings.drop_empty_query {
            out.truncate(query_start);
        }
        if let Some(mark) = out.get_mut(query_start) {
            *mark = b'?';
        }
    }

    /// Appends a text with a uniform spelling of escapes (RFC 3986, sections 2.3 and 6.2.2). A
    /// percent sign that begins no escape is escaped itself.
    fn push_escaped(&self, text: &[u8], out: &mut Vec<u8>) {
        if !self.settings.normalise_escapes {
            out.extend_from_slice(text);
            return;
        }
        let mut rest = text;
        while let [first, after @ ..] = rest {
            rest = after;
            let escaped = match (first, after) {
                (b'%', [high, low, ..]) => hex_pair(*high, *low),
                _ => None,
            };
            match escaped {
                Some(byte) => {
                    rest = &after[2..];
                    if CLASS[usize::from(byte)] & UNRESERVED != 0 {
                        out.push(byte);
                    } else {
                        push_escape(byte, out);
                    }
                }
                None if CLASS[usize::from(*first)] & ESCAPES != 0 => push_escape(*first, out),
                None => out.push(*first),
            }
        }
    }

    fn is_index(&self, segment: &[u8]) -> bool {
        self.settings.drop_index.iter().any(|index| index.as_bytes() == segment)
    }
}

/// The names of parameters to remove, in full or as prefixes.
#[derive(Clone, Debug)]
struct Names {
    whole: Set<Vec<u8>>,
    heads: Vec<Vec<u8>>,
    /// For each byte, whether some name begins with it in lower case. This excludes nearly all
    /// parameters at once.
    firsts: [bool; 256],
    bytes_max: usize,
}

impl Names {
    fn new(patterns: &[String]) -> Self {
        let mut names =
            Self { whole: Set::default(), heads: vec![], firsts: [false; 256], bytes_max: 0 };
        for pattern in patterns {
            let pattern = pattern.to_ascii_lowercase();
            match pattern.as_bytes().strip_suffix(b"*") {
                Some(b"") => names.firsts = [true; 256],
                Some(head) => names.firsts[usize::from(head[0])] = true,
                None if pattern.is_empty() => continue,
                None => names.firsts[usize::from(pattern.as_bytes()[0])] = true,
            }
            match pattern.as_bytes().strip_suffix(b"*") {
                Some(head) => names.heads.push(head.to_vec()),
                None => {
                    names.bytes_max = names.bytes_max.max(pattern.len());
                    names.whole.insert(pattern.into_bytes());
                }
            }
        }
        names
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.heads.is_empty()
    }

    fn has(&self, name: &[u8]) -> bool {
        let Some(first) = name.first() else { return false };
        if !self.firsts[usize::from(first.to_ascii_lowercase())] {
            return false;
        }
        let begins = |head: &Vec<u8>| {
            name.get(..head.len()).is_some_and(|part| part.eq_ignore_ascii_case(head))
        };
        self.heads.iter().any(begins) || {
            let mut lower = SmallVec::<[u8; 64]>::new();
            if name.len() <= self.bytes_max {
                lower.extend_from_slice(name);
                lower.make_ascii_lowercase();
            }
            self.whole.contains(&lower[..])
        }
    }
}

fn params(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    query.split(|&b| b == b'&')
}

/// Returns the name of a parameter: the text before the first `=`.
fn name(param: &[u8]) -> &[u8] {
    &param[..memchr::memchr(b'=', param).unwrap_or(param.len())]
}

/// Returns whether a path segment is a dot segment, plain or escaped. A parameter after it must
/// then stay, because a parser would resolve the segment without it.
fn is_dot_segment(segment: &[u8]) -> bool {
    let dot = |rest: &[u8]| match rest {
        [b'.', ..] => 1,
        [b'%', b'2', b'e' | b'E', ..] => 3,
        _ => 0,
    };
    let first = dot(segment);
    first > 0
        && (first == segment.len() || {
            let second = dot(&segment[first..]);
            second > 0 && first + second == segment.len()
        })
}

fn last_segment(path: &[u8]) -> &[u8] {
    &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..]
}

/// Sorts the parameters in `out` from `start` on, each with its `?` or `&` before it.
fn sort_params(start: usize, out: &mut [u8]) {
    let Some((_, text)) = out.get(start..).and_then(<[u8]>::split_first) else { return };
    let mut sorted: Vec<&[u8]> = params(text).collect();
    sorted.sort_unstable();
    let sorted = sorted.join(&b'&');
    out[start + 1..].copy_from_slice(&sorted);
}

/// Returns whether a text begins with an escape that is in its uniform spelling already.
fn is_needed_escape(text: &[u8]) -> bool {
    let Some([_, high, low]) = text.first_chunk() else { return false };
    let is_upper = |digit: &u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
    let byte = if is_upper(high) && is_upper(low) { hex_pair(*high, *low) } else { None };
    byte.is_some_and(|byte| CLASS[usize::from(byte)] & UNRESERVED == 0)
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'%');
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

/// Returns the byte that an escape stands for, from its two hexadecimal digits; `None` if they are
/// not.
pub(super) fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// The class of percent signs and unsafe bytes. A text with any of them must be checked by the rule
/// for escapes.
const ESCAPES: u8 = PERCENT | UNSAFE;
const PERCENT: u8 = 1;
/// The class of bytes that RFC 3986 doesn't allow in a URI, but that the URL standard leaves alone.
const UNSAFE: u8 = 2;
/// The class of unreserved characters (RFC 3986, section 2.3).
const UNRESERVED: u8 = 4;
const SEMICOLON: u8 = 8;
const QUESTION: u8 = 16;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0_usize;
    while at < 256 {
        let byte = at as u8;
        classes[at] = match byte {
            b'%' => PERCENT,
            b';' => SEMICOLON,
            b'?' => QUESTION,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => UNRESERVED,
            b'"' | b'<' | b'>' | b'[' | b'\\' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => UNSAFE,
            0..=b' ' | 0x7f.. => UNSAFE,
            _ => 0,
        };
        at += 1;
    }
    classes
}

#[cfg(test)]
mod tests;
