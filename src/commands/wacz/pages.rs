//! The list of pages of a package, from the crawl log: HTML with status 200 that is archived and
//! was not fetched as part of another page.

use crate::commands::crawl_log::{Line, open, parts, read_line};
use crate::ground::map::Set;
use crate::ground::time::UnixTime;
use serde_json::{Value, json};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::Path;

/// The pages of a job.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) count: u64,
    /// The first seed among the pages, with its time.
    pub(super) main: Option<(String, String)>,
}

impl Pages {
    /// Writes the list of pages whose WARC file is one of `files`.
    ///
    /// # Errors
    /// The log can't be read, or the list can't be written.
    pub(super) fn write(
        &mut self,
        job: &Path,
        files: &Set<String>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let head = json!({ "format": "json-pages-1.0", "id": "pages", "title": "All Pages" });
        writeln!(out, "{head}")?;
        let mut line = Vec::new();
        for part in parts(job)? {
            let mut file = open(&part)?;
            while read_line(&mut *file, &mut line)? {
                let page = Line::parse(&line).filter(|line| is_page(line, files));
                if let Some(page) = page.as_ref().and_then(|line| self.page(line)) {
                    writeln!(out, "{page}")?;
                }
            }
        }
        Ok(())
    }

    /// Returns the page of a line.
    fn page(&mut self, line: &Line<'_>) -> Option<Value> {
        // The calendar time of the request is that of the record.
        let digits = line.begun?.get(..14)?;
        let time = UnixTime::from_digits(digits)?.civil().to_seconds();
        let id = foldhash::quality::FixedState::default().hash_one((line.url, digits));
        let mut page = json!({ "id": format!("{id:016x}"), "url": line.url, "ts": time });
        if let Some(size) = line.size {
            page["size"] = size.into();
        }
        if line.path == "-" {
            page["seed"] = true.into();
            self.main.get_or_insert_with(|| (line.url.to_owned(), time));
        }
        self.count += 1;
        Some(page)
    }
}

fn is_page(line: &Line<'_>, files: &Set<String>) -> bool {
    let is_html = ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|mime| line.mime.eq_ignore_ascii_case(mime));
    // Redirects follow the letter of how their first URL was found.
    let is_requisite = line.path.trim_end_matches('R').ends_with('E');
    let is_packed = line.more.file.as_deref().is_some_and(|file| files.contains(file));
    line.status == 200 && is_html && !is_requisite && !line.is_for_robots() && is_packed
}
