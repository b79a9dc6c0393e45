//! One job of an audit: the lines of its log, and what only they show.

use super::archive::Archive;
use super::order::{Order, Place};
use super::robots::Robots;
use crate::commands::crawl_log::{self, Line, Sequence};
use crate::commands::load;
use crate::conf::Conf;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::vec;

/// A job: the directory of a crawl or of a node of it, or a file of its log.
pub(super) struct Job {
    pub(super) path: PathBuf,
    pub(super) conf: Option<Conf>,
    pub(super) source: Source,
    pub(super) sequence: Sequence,
    pub(super) order: Order,
    pub(super) robots: Robots,
    /// The number of the present run among those of all jobs.
    pub(super) run: u32,
    /// How much later the calendar is than the clock of the run, in microseconds.
    pub(super) drift: i64,
    /// The first request in the log: the run, when it was sent, and the URL.
    pub(super) first: Option<(u64, u64, String)>,
}

/// The files of a log, and the number of the line in the last of them.
#[derive(Default)]
pub(super) struct Source {
    pub(super) files: Vec<String>,
    line: u32,
    parts: vec::IntoIter<PathBuf>,
    open: Option<Box<dyn BufRead>>,
}

impl Job {
    /// Opens a job. `robots_bytes` limits the memory for rules of robots.txt, `held_max` the number
    /// of events that are held to be sorted.
    ///
    /// # Errors
    /// The directory can't be read.
    pub(super) fn open(path: &Path, robots_bytes: usize, held_max: usize) -> io::Result<Self> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let parts = crawl_log::parts(path)?.into_iter();
        Ok(Self {
            path: path.to_owned(),
            conf: load(&folder.join("conf.toml")).ok(),
            source: Source { parts, ..Source::default() },
            sequence: Sequence::default(),
            order: Order::new(held_max),
            robots: Robots::new(Archive::new(folder.join("warc")), robots_bytes),
            run: 0,
            drift: 0,
            first: None,
        })
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Notes the first request of the log.
    pub(super) fn note_first(&mut self, line: &Line<'_>) {
        if self.first.is_none()
            && let (Some(run), Some(sent)) = (line.more.run, line.more.sent)
        {
            self.first = Some((run, sent, line.url.to_owned()));
        }
    }
}

impl Source {
    /// Reads the next line of the log into `line`. Returns `false` at its end.
    ///
    /// # Errors
    /// A file can't be read.
    pub(super) fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            if let Some(file) = &mut self.open {
                if crawl_log::read_line(&mut **file, line)? {
                    self.line += 1;
                    return Ok(true);
                }
                self.open = None;
            }
            let Some(part) = self.parts.next() else { return Ok(false) };
            self.open = Some(crawl_log::open(&part)?);
            let name = part.file_name().map(|name| name.to_string_lossy().into_owned());
            self.files.push(name.unwrap_or_default());
            self.line = 0;
        }
    }

    /// Returns the place of the line that was read last.
    pub(super) fn place(&self) -> Place {
        let file = u16::try_from(self.files.len().saturating_sub(1)).unwrap_or(u16::MAX);
        Place { line: self.line, file }
    }
}
