//! What is known of the robots.txt of each server, and at which time, from the log and the archive.
//!
//! The rules are parsed and matched by `robots`, as in the crawler; a test compares it with a naive
//! matcher. Everything else is decided here.

use super::archive::Archive;
use crate::commands::crawl_log::Line;
use crate::ground::map::Map;
use crate::robots::{Rules, SIZE_BYTES_MAX};
use std::rc::Rc;

/// What is known of a robots.txt.
#[derive(Clone, Debug, Default)]
pub(super) enum Known {
    /// The log doesn't say anything about it.
    #[default]
    Nothing,
    /// No request is allowed: the file could not be read, or its rules follow on another line.
    Nobody,
    /// The rules of the file.
    Rules(Rc<Rules>),
    /// The rules can't be found out: the record is not in the archive, the rules in the log are
    /// truncated, or memory is used up.
    Unreadable,
}

/// What was known of one server's robots.txt, before and since a time.
#[derive(Clone, Debug, Default)]
struct History {
    now: Known,
    since: u64,
    before: Known,
}

/// Whether a request was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// The rule on this line of the rules forbids it.
    Forbidden(u32),
    /// robots.txt had not been read, or could not be.
    Unread,
    /// It is not known.
    Unknown,
}

/// What is known of the robots.txt of all servers.
#[derive(Debug)]
pub(super) struct Robots {
    /// Whether the crawl obeys robots.txt, and under which name.
    pub(super) obeys: bool,
    product: String,
    archive: Archive,
    servers: Map<u32, History>,
    /// Rules that several servers share, by the hash of their encoded form.
    shared: Map<u64, Rc<Rules>>,
    bytes: usize,
    bytes_max: usize,
    /// The number of files that can't be found out.
    pub(super) unreadable: u64,
}

impl Robots {
    pub(super) fn new(archive: Archive, bytes_max: usize) -> Self {
        Self {
            obeys: true,
            product: String::new(),
            archive,
            servers: Map::default(),
            shared: Map::default(),
            bytes: 0,
            bytes_max,
            unreadable: 0,
        }
    }

    /// Sets whether robots.txt is obeyed, and under which name.
    pub(super) fn set_product(&mut self, obeys: bool, product: &str) {
        self.obeys = obeys;
        product.clone_into(&mut self.product);
    }

    /// Takes a line that is about the robots.txt of a server. Returns the Crawl-delay that is in
    /// force from then on, in microseconds, or `None` if the line says nothing about the file.
    pub(super) fn take(&mut self, server: u32, line: &Line<'_>) -> Option<u64> {
        let ended = line.more.ended?;
        let known = self.read(line)?;
        if matches!(known, Known::Unreadable) {
            self.unreadable += 1;
        }
        let delay = match &known {
            Known::Rules(rules) => rules.crawl_delay(),
            _ => None,
        };
        let history = self.servers.entry(server).or_default();
        history.before = std::mem::replace(&mut history.now, known);
        history.since = ended;
        Some(delay.map_or(0, |delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)))
    }

    /// Returns whether a request that was sent at a time was allowed.
    pub(super) fn check(&self, server: u32, target: &str, sent: u64) -> Verdict {
        let Some(history) = self.servers.get(&server) else { return Verdict::Unknown };
        let known = if sent < history.since { &history.before } else { &history.now };
        match known {
            Known::Nothing | Known::Unreadable => Verdict::Unknown,
            Known::Nobody => Verdict::Unread,
            Known::Rules(rules) => match rules.check(target) {
                verdict if verdict.allowed => Verdict::Allowed,
                verdict => Verdict::Forbidden(verdict.line),
            },
        }
    }

    fn read(&mut self, line: &Line<'_>) -> Option<Known> {
        if let Some(rules) = &line.more.rules {
            let known = if line.more.is_cut { None } else { Some(rules.as_bytes()) };
            return Some(known.map_or(Known::Unreadable, |text| self.parsed(text)));
        }
        if !line.is_own_robots() || line.more.sent.is_none() {
            return None;
        }
        let is_odd = |note: &str| note.starts_with("robots-") || note.ends_with("runc");
        Some(match (line.status, &line.more.file, line.more.offset) {
            _ if line.annotations.split(',').any(is_odd) => Known::Nobody,
            // It is requested again, with a signature.
            _ if line.more.reason.as_deref() == Some("signature-asked") => Known::Nobody,
            (200..=299, Some(name), Some(offset)) if line.status != 202 => {
                match self.archive.text(name, offset) {
                    Some(text) => self.parsed(&text[..text.len().min(SIZE_BYTES_MAX + 1)]),
                    None => Known::Unreadable,
                }
            }
            (400..=428 | 430..=499, ..) => self.parsed(b""),
            _ => Known::Nobody,
        })
    }

    fn parsed(&mut self, text: &[u8]) -> Known {
        use std::hash::BuildHasher;
        let rules = Rules::parse(text, &self.product);
        let mut code = Vec::new();
        rules.encode(&mut code);
        let hash = self.shared.hasher().hash_one(&code);
        if let Some(same) = self.shared.get(&hash) {
            return Known::Rules(Rc::clone(same));
        }
        self.bytes += rules.size_bytes() + size_of::<(u64, Rc<Rules>)>();
        if self.bytes > self.bytes_max {
            return Known::Unreadable;
        }
        let rules = Rc::new(rules);
        self.shared.insert(hash, Rc::clone(&rules));
        Known::Rules(rules)
    }
}
