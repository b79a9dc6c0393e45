//! What became of each seed: those of the configuration, those that commands added, and those that
//! the log shows.
//!
//! A seed that redirects has the result of the last URL of its chain. Cost: about 250 bytes a seed.

use crate::commands::crawl_log::Line;
use crate::commands::inputs::SEEDS_BYTES_MAX;
use crate::commands::{missing, study};
use crate::conf::Conf;
use crate::ground::map::Map;
use crate::os::input;
use crate::seeds;
use serde_json::Value;
use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The approximate number of bytes that a seed takes, beside its URL.
const SEED_BYTES: usize = 200;
/// The largest seed file that is read, as a share of the memory.
const FILE_SHARE: u64 = 16;

/// What became of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Failed,
    /// It has no line in the log, or another try follows.
    Waiting,
    /// A limit on pages, which the operator has set, leaves it out.
    Limited,
    /// The operator has blocked it.
    Blocked,
    Redirected,
    Fetched,
}

impl State {
    pub(super) const ALL: [Self; 6] = [
        Self::Fetched,
        Self::Redirected,
        Self::Failed,
        Self::Waiting,
        Self::Limited,
        Self::Blocked,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Limited => "limited",
            Self::Blocked => "blocked",
            Self::Redirected => "redirected",
            Self::Fetched => "fetched",
        }
    }
}

/// A seed.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    pub(super) state: State,
    /// The last status; 0 if there is none.
    pub(super) status: i32,
    /// The last outcome; empty if there is none.
    pub(super) outcome: String,
    /// The last URL to which it redirects.
    pub(super) target: Option<Box<str>>,
}

impl Seed {
    /// Returns the advice for a failure.
    pub(super) fn fix(&self) -> &'static str {
        match self.state {
            State::Failed if self.status > 0 => missing::fix(&self.status.to_string()),
            State::Failed | State::Limited => missing::fix(&self.outcome),
            State::Waiting if self.outcome.is_empty() => {
                "it was not tried: continue the crawl, or ask `sted why`"
            }
            State::Waiting => "another try follows: continue the crawl",
            _ => "",
        }
    }
}

/// The seeds of a job.
#[derive(Debug)]
pub(super) struct Seeds {
    rows: Map<Box<str>, Seed>,
    memory_left: usize,
    /// The number of seeds for which there is no memory.
    pub(super) left_out: u64,
    /// What can't be read of the seeds, one sentence each.
    pub(super) doubts: Vec<String>,
}

impl Seeds {
    pub(super) fn new(memory: usize) -> Self {
        Self { rows: Map::default(), memory_left: memory, left_out: 0, doubts: Vec::new() }
    }

    /// Adds the seeds of a job's configuration, and those in its `commands.log`.
    pub(super) fn read(&mut self, folder: &Path, conf: &Conf) {
        let mut conf = conf.clone();
        study::recall_lab(&mut conf, folder);
        self.add_all(conf.job.seeds.join("\n").as_bytes());
        if let Some(file) = &conf.job.seeds_file {
            let most = SEEDS_BYTES_MAX.min(self.memory_left as u64 / FILE_SHARE);
            match input::read(file, most) {
                Ok(text) => self.add_all(&text),
                Err(error) => self.doubts.push(format!(
                    "job.seeds_file: {}: {error}: seeds that were not tried are not listed",
                    file.display()
                )),
            }
        }
        let path = folder.join("commands.log");
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                let path = path.display();
                let text = format!("{path}: {error}: seeds of commands are not listed");
                return self.doubts.push(text);
            }
            Ok(text) => text,
        };
        // The last line may be incomplete while the crawl writes it.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(command) = serde_json::from_slice::<Value>(line) else {
                let path = path.display();
                self.doubts.push(format!("{path}: a line can't be read: its seeds are not listed"));
                continue;
            };
            let added = command["seeds"].as_array().map_or(&[][..], Vec::as_slice);
            let added: Vec<&str> = added.iter().filter_map(Value::as_str).collect();
            self.add_all(added.join("\n").as_bytes());
        }
    }

    fn add_all(&mut self, text: &[u8]) {
        for seed in seeds::parse(text).0 {
            self.row(seed.url.as_str());
        }
    }

    /// Returns the row of a seed, which is added if there is memory for it.
    fn row(&mut self, url: &str) -> Option<&mut Seed> {
        if !self.rows.contains_key(url) {
            let Some(left) = self.memory_left.checked_sub(SEED_BYTES + 2 * url.len()) else {
                self.left_out += 1;
                return None;
            };
            self.memory_left = left;
            let (state, outcome) = (State::Waiting, String::new());
            self.rows.insert(url.into(), Seed { state, status: 0, outcome, target: None });
        }
        self.rows.get_mut(url)
    }

    /// Takes a line that says what became of a URL.
    pub(super) fn take(&mut self, line: &Line<'_>, outcome: &str) {
        if line.is_for_robots() {
            return;
        }
        let first = line.more.chain.as_deref();
        let is_first = first.is_none_or(|first| first == line.url);
        let row = match first.filter(|_| !is_first) {
            Some(first) => self.rows.get_mut(first),
            None if line.path == "-" => self.row(line.url),
            None => self.rows.get_mut(line.url),
        };
        let Some(row) = row else { return };
        // What isn't kept was fetched all the same.
        let is_answer = outcome == "reserved" && (200..400).contains(&line.status);
        let known = if is_answer { "ok" } else { outcome };
        row.state = match known {
            "blocked" => State::Blocked,
            "pages-per-server-max" | "pages-per-domain-max" | "site-pages-max" => State::Limited,
            "redirect-to-known" | "canonical-known" => State::Redirected,
            _ if line.has("retried") => State::Waiting,
            _ if line.is_followed() => State::Redirected,
            "ok" | "redirect" | "body-too-large" if is_first => State::Fetched,
            "ok" | "redirect" | "body-too-large" => State::Redirected,
            _ => State::Failed,
        };
        (row.status, row.target) = (line.status, (!is_first).then(|| line.url.into()));
        outcome.clone_into(&mut row.outcome);
    }

    /// Returns the number of seeds in a state.
    pub(super) fn count(&self, state: State) -> u64 {
        self.rows.values().filter(|seed| seed.state == state).count() as u64
    }

    /// Returns the seeds, those that failed first.
    pub(super) fn by_state(&self) -> Vec<(&str, &Seed)> {
        let mut rows: Vec<(&str, &Seed)> =
            self.rows.iter().map(|(url, seed)| (&**url, seed)).collect();
        rows.sort_by_key(|(url, seed)| (seed.state, Reverse(seed.status), *url));
        rows
    }
}
