//! What the operator sets of the archive, what it says of its maker, and what can go wrong with it.

use super::digest::Algorithm;
use super::text::{push_value, put};
use crate::ground::disk;
use std::fmt;
use std::time::Duration;

/// Settings of the station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What captures are written as.
    pub format: Format,
    /// Level of gzip, 1 (fast) to 12 (small); 0 writes `.warc` without compression.
    pub gzip_level: u8,
    /// Responses longer than this are put into their member without compressing, in bytes: what
    /// is so large seldom gets smaller, and would hold up the loop. Compressing one takes up to
    /// twice its length of memory besides it.
    pub gzip_bytes_max: usize,
    /// A WARC file that a capture would take past this is full, in bytes.
    pub file_bytes_max: u64,
    /// A WARC file whose index has reached this is full, in bytes: its sort needs that much memory.
    pub index_bytes_max: u64,
    /// What the names of files begin with: letters, digits, `-`, `_` and `.`.
    pub prefix: String,
    /// Which digest payloads and blocks get.
    pub digest: Algorithm,
    /// Whether records get a digest of their block besides that of their payload.
    pub block_digests: bool,
    /// Whether requests are stored beside their responses.
    pub requests: bool,
    /// Whether robots.txt replies are stored.
    pub robots: bool,
    /// Whether the crawl log is written.
    pub log: bool,
    /// Length at which the crawl log is renamed and begins anew, in bytes.
    pub log_bytes_max: u64,
    /// Bytes that wait in memory before they go to the disk, for each file.
    pub buffer_bytes: usize,
    /// Longest time that what was kept stays uncommitted.
    pub sync_period: Duration,
    /// Bytes of WARC files, the last ones first, that are read through when a crawl goes on.
    pub verify_bytes_max: u64,
    /// Payloads remembered, so that a repeat is stored as a reference; 0 stores all in full.
    pub revisit_names_max: usize,
}

/// What captures are written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Nothing is kept but the crawl log.
    None,
    /// WARC 1.1.
    #[default]
    Warc,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            format: Format::Warc,
            gzip_level: 1,
            gzip_bytes_max: 4 << 20,
            file_bytes_max: 1_000_000_000,
            index_bytes_max: 64 << 20,
            prefix: "sted".to_owned(),
            digest: Algorithm::Sha1Base32,
            block_digests: true,
            requests: true,
            robots: true,
            log: true,
            log_bytes_max: 1_000_000_000,
            buffer_bytes: 256 << 10,
            sync_period: Duration::from_secs(10),
            verify_bytes_max: 256 << 20,
            revisit_names_max: 100_000,
        }
    }
}

impl Settings {
    /// Whether the archive can be written so.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |key, why: &str| Err(Error::Setting { key, why: why.to_owned() });
        if self.gzip_level > 12 {
            return wrong("gzip_level", "must be 0 to 12");
        }
        let word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let dotted = self.prefix.starts_with('.');
        if dotted || !(1..=100).contains(&self.prefix.len()) || !self.prefix.bytes().all(word) {
            return wrong("prefix", "must be 1 to 100 letters, digits, '-', '_' or '.'");
        }
        Ok(())
    }
}

/// Who made the archive, and how: the first record of every file says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name and version of the program.
    pub software: String,
    /// Whom to write to about the crawl.
    pub operator: String,
    /// The User-Agent sent.
    pub user_agent: String,
    /// The From sent.
    pub from: Option<String>,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Name of the job.
    pub job: String,
    /// How robots.txt was treated, in a word.
    pub robots: String,
    /// Digest of the effective configuration.
    pub config: String,
}

impl Identity {
    /// The fields of a `warcinfo` record; empty ones are left out.
    pub(super) fn fields(&self) -> Vec<u8> {
        const STANDARD: &str = "http://iipc.github.io/warc-specifications/specifications/\
                                warc-format/warc-1.1/";
        let fields = [
            ("software", self.software.as_str()),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", STANDARD),
            ("operator", &self.operator),
            ("hostname", self.hostname.as_deref().unwrap_or("")),
            ("isPartOf", &self.job),
            ("robots", &self.robots),
            ("http-header-user-agent", &self.user_agent),
            ("http-header-from", self.from.as_deref().unwrap_or("")),
            ("configuration", &self.config),
        ];
        let mut out = Vec::new();
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            put!(&mut out, "{name}: ");
            push_value(&mut out, value);
            out.extend_from_slice(b"\r\n");
        }
        out
    }
}

/// Our own trouble with the archive.
#[derive(Debug)]
pub enum Error {
    /// A file could not be written or read; it says which.
    Disk(disk::Error),
    /// A file is there that would have to be written over.
    Exists(String),
    /// A setting makes no sense.
    Setting {
        /// Its name.
        key: &'static str,
        /// What it must be.
        why: String,
    },
}

impl Error {
    /// Whether there is no room left on the disk: the one error that goes away by itself.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_full())
    }
}

impl From<disk::Error> for Error {
    fn from(error: disk::Error) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Exists(name) => write!(f, "{name} is there already and won't be written over"),
            Self::Setting { key, why } => write!(f, "{key} {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => Some(error),
            Self::Exists(_) | Self::Setting { .. } => None,
        }
    }
}
