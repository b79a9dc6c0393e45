//! The list of pages of a package, from the crawl log: HTML with status 200 that is archived and
//! was not fetched as part of another page.
//!
//! A killed crawl may have archived a page without its line in the log. The next run read it back,
//! and wrote a line that doesn't name the record: the time of such a page comes from the index.

use crate::commands::crawl_log::{Line, open, parts, read_line};
use crate::ground::map::{Map, Set};
use crate::ground::time::UnixTime;
use serde_json::json;
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::Path;

/// The most pages that were read back and are listed.
const READ_BACK_MAX: usize = 200_000;

/// The pages that a run read back from the archive.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    pages: Map<Box<str>, Page>,
    /// The number of those for which there is no memory.
    pub(super) left_out: u64,
}

/// A page that was read back.
#[derive(Debug)]
struct Page {
    is_seed: bool,
    size: Option<u64>,
    /// When it was captured, in fourteen digits, if the index says it.
    stamp: Option<String>,
}

impl ReadBack {
    /// Finds the pages in the log of a job.
    ///
    /// # Errors
    /// The log can't be read.
    pub(super) fn find(job: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        each_line(job, |bytes| {
            // Few lines are worth parsing.
            if memchr::memmem::find(bytes, b"replayed").is_some()
                && let Some(line) = Line::parse(bytes).filter(Line::is_read_back)
                && is_page(&line)
                && !found.pages.contains_key(line.url)
            {
                if found.pages.len() >= READ_BACK_MAX {
                    found.left_out += 1;
                    return Ok(());
                }
                let page = Page { is_seed: line.path == "-", size: line.size, stamp: None };
                found.pages.insert(line.url.into(), page);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Notes when a URL was captured; the first time counts.
    pub(super) fn note(&mut self, url: &str, stamp: &str) {
        if let Some(page) = self.pages.get_mut(url) {
            page.stamp.get_or_insert_with(|| stamp.to_owned());
        }
    }
}

/// The pages of a job.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) count: u64,
    /// The number of pages that are not listed, because the time of their capture is not known.
    pub(super) undated: u64,
    /// The first seed among the pages, with its time.
    pub(super) main: Option<(String, String)>,
}

impl Pages {
    /// Writes the list of pages whose WARC file is one of `files`, and then those that were read
    /// back and have no line of their own.
    ///
    /// # Errors
    /// The log can't be read, or the list can't be written.
    pub(super) fn write(
        &mut self,
        job: &Path,
        files: &Set<String>,
        mut back: ReadBack,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let head = json!({ "format": "json-pages-1.0", "id": "pages", "title": "All Pages" });
        writeln!(out, "{head}")?;
        each_line(job, |bytes| {
            let Some(line) = Line::parse(bytes).filter(is_page) else { return Ok(()) };
            let is_packed = line.more.file.as_deref().is_some_and(|file| files.contains(file));
            // The calendar time of the request is that of the record.
            let stamp = line.begun.and_then(|begun| begun.get(..14)).unwrap_or("");
            if !is_packed {
                return Ok(());
            }
            back.pages.remove(line.url);
            self.add(out, line.url, stamp, (line.path == "-", line.size))
        })?;
        let mut back: Vec<(Box<str>, Page)> = back.pages.into_iter().collect();
        back.sort_by(|one, two| one.0.cmp(&two.0));
        for (url, page) in back {
            let stamp = page.stamp.as_deref().unwrap_or("");
            self.add(out, &url, stamp, (page.is_seed, page.size))?;
        }
        Ok(())
    }

    /// Writes a page, if `stamp` is a time; else counts it.
    fn add(
        &mut self,
        out: &mut dyn Write,
        url: &str,
        stamp: &str,
        (is_seed, size): (bool, Option<u64>),
    ) -> io::Result<()> {
        let Some(time) = UnixTime::from_digits(stamp) else {
            self.undated += 1;
            return Ok(());
        };
        let time = time.civil().to_seconds();
        let id = foldhash::quality::FixedState::default().hash_one((url, stamp));
        let mut page = json!({ "id": format!("{id:016x}"), "url": url, "ts": time });
        if let Some(size) = size {
            page["size"] = size.into();
        }
        if is_seed {
            page["seed"] = true.into();
            self.main.get_or_insert_with(|| (url.to_owned(), time));
        }
        self.count += 1;
        writeln!(out, "{page}")
    }
}

/// Passes the lines of a job's log to `sink`.
fn each_line(job: &Path, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut line = Vec::new();
    for part in parts(job)? {
        let mut file = open(&part)?;
        while read_line(&mut *file, &mut line)? {
            sink(&line)?;
        }
    }
    Ok(())
}

fn is_page(line: &Line<'_>) -> bool {
    let is_html = ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|mime| line.mime.eq_ignore_ascii_case(mime));
    // Redirects follow the letter of how their first URL was found.
    let is_requisite = line.path.trim_end_matches('R').ends_with('E');
    line.status == 200 && is_html && !is_requisite && !line.is_for_robots()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of the log or of the archive whose time is not known is counted, not listed.
    #[test]
    fn pages_without_a_time_are_counted() {
        let job = tempfile::tempdir().expect("a folder");
        let line = |number: u64, begun: &str, note: &str, file: &str| {
            format!(
                "2026-11-20T09:38:49.123Z 200 5 http://a.test/{number} L - text/html #000 {begun} \
                 - - {note} {{\"run\":1,\"line\":{number},\"server\":\"http://a.test\",\
                 \"visit\":7{file},\"hops\":0}}\n"
            )
        };
        let stored = ",\"warcFilename\":\"a.warc.gz\",\"warcFileOffset\":0";
        let log = [
            line(1, "20261120093849078+45", "-", stored),
            line(2, "-", "-", stored),
            line(3, "-", "replayed", ""),
            line(4, "-", "replayed", ""),
        ];
        std::fs::write(job.path().join("crawl.log"), log.concat()).expect("written");
        let mut back = ReadBack::find(job.path()).expect("readable");
        back.note("http://a.test/4", "20261120093850");
        let (mut pages, mut out) = (Pages::default(), Vec::new());
        let files = std::iter::once("a.warc.gz".to_owned()).collect();
        pages.write(job.path(), &files, back, &mut out).expect("memory");
        assert_eq!((pages.count, pages.undated), (2, 2), "{}", String::from_utf8_lossy(&out));
    }
}
