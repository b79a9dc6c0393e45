//! The settings of the archive, the description of its creator, and its errors.

use super::digest::Algorithm;
use super::text::{push_value, put};
use crate::ground::disk;
use std::fmt;
use std::time::Duration;

/// The settings of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The format of captures.
    pub format: Format,
    /// The level of gzip, 1 (fast) to 12 (small); 0 writes `.warc` files without compression.
    pub gzip_level: u8,
    /// The maximum length of a response that is compressed, in bytes. Longer responses are stored
    /// without compressing: they seldom get smaller, and compressing would hold up the event loop.
    /// Compressing a response takes up to twice its length of additional memory.
    pub gzip_bytes_max: usize,
    /// The maximum length of a WARC file, in bytes: a capture that would exceed it goes to the next
    /// file.
    pub file_bytes_max: u64,
    /// The length of an index at which its WARC file counts as full, in bytes. Sorting an index
    /// takes that much memory.
    pub index_bytes_max: u64,
    /// The prefix of file names: letters, digits, `-`, `_` and `.`.
    pub prefix: String,
    /// The algorithm of the digests of payloads and blocks.
    pub digest: Algorithm,
    /// True to write a digest of its block to each record, in addition to that of the payload.
    pub block_digests: bool,
    /// True to store each request with its response.
    pub requests: bool,
    /// True to store the replies to robots.txt requests.
    pub robots: bool,
    /// True to write the crawl log.
    pub log: bool,
    /// The length at which the crawl log is rotated, in bytes.
    pub log_bytes_max: u64,
    /// The number of bytes that wait in memory before they are written, for each file.
    pub buffer_bytes: usize,
    /// Whether captures are written by jobs ([`super::Store::write_job`]), so that a side thread
    /// digests and compresses them.
    pub has_thread: bool,
    /// The maximum time until stored captures are synced.
    pub sync_period: Duration,
    /// The number of bytes of WARC files, counted back from the last file, that are checked when a
    /// crawl resumes.
    pub verify_bytes_max: u64,
    /// The number of payloads that are remembered so that duplicates are stored as `revisit`
    /// records. With 0 all are stored in full.
    pub revisit_names_max: usize,
}

/// The format of captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Nothing is stored but the crawl log.
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
            has_thread: false,
            sync_period: Duration::from_secs(10),
            verify_bytes_max: 256 << 20,
            revisit_names_max: 100_000,
        }
    }
}

impl Settings {
    /// Checks that all settings are valid.
    ///
    /// # Errors
    /// Returns the first invalid setting.
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

/// Who created the archive, and how; stored in the first record of every file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name and version of the crawler program.
    pub software: String,
    /// The contact address of the crawl.
    pub operator: String,
    /// The value of the User-Agent header that requests had.
    pub user_agent: String,
    /// The value of the From header that requests had; `None` if they had none.
    pub from: Option<String>,
    /// The name of the machine; `None` to leave it out.
    pub hostname: Option<String>,
    /// The name of the job.
    pub job: String,
    /// The policy for robots.txt, in a word.
    pub robots: String,
    /// The digest of the effective configuration.
    pub config: String,
    /// Header fields of requests that the request records leave out; empty if there are none.
    pub withheld: String,
}

impl Identity {
    /// Returns the fields of a `warcinfo` record. Those without a value are left out.
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
            ("request-fields-withheld", &self.withheld),
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

/// An error of the archive.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read or written; the inner error names it.
    Disk(disk::Error),
    /// A file that must be created exists already; the text is its name.
    Exists(String),
    /// A setting is invalid.
    Setting {
        /// The name of the setting.
        key: &'static str,
        /// The requirement that the value does not meet.
        why: String,
    },
}

impl Error {
    /// Returns whether the error is that the disk is full, the only error that may resolve itself.
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
            Self::Exists(name) => write!(f, "{name} already exists and is not overwritten"),
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
