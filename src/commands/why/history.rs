//! What the files of a job say about a URL: its lines in the crawl log, and its record in the
//! archive.
//!
//! Cost: one pass over the crawl log, some 300 ns a line.

use super::Subject;
use crate::commands::{Failure, crawl_log};
use crate::engine::why::Why;
use crate::store::{cdxj, log};
use crate::url::UrlRef;
use crate::url::key::KeyRules;
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The most lines about a URL that are shown: the last ones.
const LINES_MAX: usize = 5;

/// What the files of a job say about a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct History {
    /// The number of lines about the URL, or about another URL with the same key.
    pub(super) lines_count: u64,
    /// The last of these lines, in order.
    pub(super) lines: Vec<Line>,
    /// The number of redirects to the URL that ended because it was known; their lines are left
    /// out.
    pub(super) redirects: u64,
    /// The last line about a URL to which the URL redirects.
    pub(super) next: Option<Line>,
    /// The record of the last reply that is in the archive.
    pub(super) record: Option<Record>,
}

/// A line of the crawl log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    /// When it was written, in microseconds since 1970.
    pub(super) time_us: u64,
    /// The URL that it is about.
    pub(super) url: String,
    /// The HTTP status, or a negative code.
    pub(super) status: i32,
    /// The name of the outcome if it is no reply.
    pub(super) reason: Option<String>,
    /// The length of the reply, in bytes.
    pub(super) size: Option<u64>,
    pub(super) mime: Option<String>,
    /// A letter for each hop from a seed; `None` for a seed.
    pub(super) path: Option<String>,
    /// The page on which the URL was found.
    pub(super) via: Option<String>,
    pub(super) annotations: Vec<String>,
    /// What is wrong with an unreadable reply.
    pub(super) detail: Option<String>,
    /// The WARC file with the reply, and the offset of the record in it.
    pub(super) stored: Option<(String, u64)>,
    /// The log file that has the line.
    pub(super) log: String,
}

/// A record of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Record {
    /// The WARC file, relative to the job directory; `None` if it was moved away.
    pub(super) file: Option<String>,
    /// The name that the log has for it.
    pub(super) name: String,
    /// The offset of the record, in bytes.
    pub(super) offset: u64,
    /// The index file that lists the record, and the number of the line in it.
    pub(super) index: Option<(String, u64)>,
}

/// Collects what the files of the job in `directory` say about the URL of `why`.
///
/// # Errors
/// A file can't be read.
pub(super) fn of(directory: &Path, why: &Why, keys: &KeyRules) -> Result<History, Failure> {
    let Subject::Url(about) = &why.subject else { return Ok(History::default()) };
    let mut search = Search {
        keys,
        url: about.url.as_bytes(),
        key: about.key.as_bytes(),
        scratch: Vec::new(),
        count: 0,
        lines: VecDeque::new(),
        redirects: 0,
        next: None,
    };
    let parts = crawl_log::parts(directory);
    for path in parts.map_err(|error| Failure::of_file(directory, &error))? {
        search.read(&path).map_err(|error| Failure::of_file(&path, &error))?;
    }
    let lines: Vec<Line> = search.lines.into();
    let stored = lines.iter().rev().find_map(|line| line.stored.clone());
    let record = stored.map(|(name, offset)| record(directory, name, offset)).transpose()?;
    let Search { count, redirects, next, .. } = search;
    Ok(History { lines_count: count, lines, redirects, next, record })
}

/// A pass over the crawl log.
struct Search<'a> {
    keys: &'a KeyRules,
    url: &'a [u8],
    key: &'a [u8],
    scratch: Vec<u8>,
    count: u64,
    lines: VecDeque<Line>,
    redirects: u64,
    next: Option<Line>,
}

impl Search<'_> {
    /// Reads one file of the log.
    fn read(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (mut file, mut line) = (crawl_log::open(path)?, Vec::new());
        while crawl_log::read_line(&mut *file, &mut line)? {
            self.take(&line, &name);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], name: &str) {
        let mut words = bytes.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let Some(url) = words.nth(3) else { return };
        let is_it = url == self.url || self.has_key(url);
        let is_next = !is_it && words.nth(1) == Some(self.url);
        if !is_it && !is_next {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        // The last line may be incomplete while the crawl writes it.
        let Ok(entry) = log::parse(&text) else { return };
        if is_it && entry.extra.reason.as_deref() == Some("redirect-to-known") {
            self.redirects += 1;
        } else if is_it {
            self.count += 1;
            if self.lines.len() == LINES_MAX {
                self.lines.pop_front();
            }
            self.lines.push_back(Line::of(&entry, name));
        } else if entry.path.is_some_and(|path| path.ends_with('R')) {
            self.next = Some(Line::of(&entry, name));
        }
    }

    /// Returns whether a URL has the same deduplication key.
    fn has_key(&mut self, url: &[u8]) -> bool {
        let url = UrlRef::from_canonical(url);
        url.is_some_and(|url| self.keys.key(url, &mut self.scratch) == self.key)
    }
}

impl Line {
    fn of(entry: &log::Entry<'_>, name: &str) -> Self {
        let owned = |text: &str| text.to_owned();
        let extra = &entry.extra;
        let annotations = entry.annotations.into_iter().flat_map(|words| words.split(','));
        Self {
            time_us: entry.time.as_micros(),
            url: entry.url.to_owned(),
            status: entry.status,
            reason: extra.reason.as_deref().map(owned),
            size: entry.size,
            mime: entry.mime.map(owned),
            path: entry.path.map(owned),
            via: entry.via.map(owned),
            annotations: annotations.map(owned).collect(),
            detail: extra.detail.as_deref().map(owned),
            stored: extra.file.as_deref().map(owned).zip(extra.offset),
            log: name.to_owned(),
        }
    }
}

/// Finds a record of the archive, and its line in the index.
fn record(directory: &Path, name: String, offset: u64) -> Result<Record, Failure> {
    let found = |folder: &str, name: &str| {
        let names = [name.to_owned(), format!("{name}.open")].into_iter();
        let mut files = names.map(|name| format!("{folder}/{name}"));
        files.find(|file| directory.join(file).exists())
    };
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.strip_suffix(".warc").unwrap_or(stem);
    let mut index = None;
    if let Some(file) = found("index", &format!("{stem}.cdxj")) {
        let path = directory.join(&file);
        let opened = File::open(&path).map_err(|error| Failure::of_file(&path, &error))?;
        for (number, line) in (1..).zip(BufReader::new(opened).lines()) {
            let line = line.map_err(|error| Failure::of_file(&path, &error))?;
            if cdxj::parse(&line).is_ok_and(|entry| entry.offset == offset) {
                index = Some((file, number));
                break;
            }
        }
    }
    Ok(Record { file: found("warc", &name), name, offset, index })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::key::Settings;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;

    fn line(url: &str, status: i32, via: &str, reason: &str) -> String {
        let path = if via == "-" { "-" } else { "LR" };
        format!(
            "2026-11-20T09:38:49.123Z {status:>5}          - {url} {path} {via} - #000 - - - - \
             {{\"server\":\"http://a.test\",\"visit\":1{reason},\"hops\":0}}\n"
        )
    }

    /// Lines are found in all parts of the log, in order: compressed ones, the present one with an
    /// incomplete last line, and lines of URLs with the same key.
    #[test]
    fn all_parts_of_the_log_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (url, same) = ("http://a.test/x", "http://a.test/x?utm_a=b");
        let known = ",\"reason\":\"redirect-to-known\"";
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let first = (0..4).map(|n| line(url, 500 + n, "-", "")).collect::<String>();
        packed.write_all(first.as_bytes()).expect("memory takes all");
        let first = packed.finish().expect("as above");
        let second = line("http://a.test/y", 200, url, "") + &line(same, 404, "-", "");
        let third = line(url, -4_003, "-", known) + &line(url, 200, "-", "") + "2026-11-20T09";
        let path = |name: &str| folder.path().join(name);
        fs::write(path("crawl-00000.log.gz"), first).expect("written");
        fs::write(path("crawl-00001.log"), second).expect("written");
        fs::write(path("crawl.log"), third).expect("written");
        fs::write(path("crawl-notes.txt"), "no log\n").expect("written");
        let keys = KeyRules::new(Settings::default());
        let mut search = Search {
            keys: &keys,
            url: url.as_bytes(),
            key: url.as_bytes(),
            scratch: Vec::new(),
            count: 0,
            lines: VecDeque::new(),
            redirects: 0,
            next: None,
        };
        for part in crawl_log::parts(folder.path()).expect("readable") {
            search.read(&part).expect("readable");
        }
        let found: Vec<i32> = search.lines.iter().map(|line| line.status).collect();
        assert_eq!((search.count, found), (6, vec![501, 502, 503, 404, 200]));
        assert_eq!(search.redirects, 1);
        assert_eq!(search.next.expect("a redirect").url, "http://a.test/y");
    }
}
