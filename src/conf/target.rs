//! The sections that say what is crawled and by whom: `[job]`, `[limits]`, `[identity]`, `[scope]`,
//! `[url]`. As all sections, plain values; the rest are in `sections.rs`.

use crate::url::key::Settings;
use std::path::PathBuf;
use std::time::Duration;

/// `[job]`: what this crawl is called, where it keeps what it knows, where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name of the crawl in its records and reports.
    pub name: String,
    /// Folder of all it knows and writes.
    pub directory: PathBuf,
    /// URLs to start from.
    pub seeds: Vec<String>,
    /// File with more of them, one a line.
    pub seeds_file: Option<PathBuf>,
    /// Every URL that is found is written down, in order, for `sted cache`.
    pub trace: bool,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            name: "crawl".to_owned(),
            directory: PathBuf::from("jobs/crawl"),
            seeds: Vec::new(),
            seeds_file: None,
            trace: false,
        }
    }
}

/// `[limits]`: when the crawl stops though there is more to fetch; `None` is never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Pages fetched.
    pub pages_max: Option<u64>,
    /// Bytes received, heads and framing included.
    pub bytes_max: Option<u64>,
    /// Time since the start of the run.
    pub time_max: Option<Duration>,
}

/// `[identity]`: who crawls, told to every server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Product token: first word of User-Agent, and the name obeyed in robots.txt.
    pub product: String,
    /// URL or mail address at which the operator is reached; empty only with a lab.
    pub contact: String,
    /// User-Agent as sent; `None`: made from product, version and contact.
    pub user_agent: Option<String>,
    /// Mail address sent as `From`.
    pub from: Option<String>,
}

impl Default for Identity {
    fn default() -> Self {
        Self { product: "sted".to_owned(), contact: String::new(), user_agent: None, from: None }
    }
}

impl Identity {
    /// The User-Agent field as sent: `sted/0.1.0 (+https://crawler.example/)`.
    pub fn user_agent(&self) -> String {
        if let Some(text) = &self.user_agent {
            return text.clone();
        }
        let (product, version) = (&self.product, env!("CARGO_PKG_VERSION"));
        match self.contact.as_str() {
            "" => format!("{product}/{version}"),
            contact => format!("{product}/{version} (+{contact})"),
        }
    }
}

/// `[scope]`: which URLs this crawl wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// How far from its seeds the crawl may go.
    pub span: Span,
    /// Hosts that are wanted besides.
    pub hosts: Vec<String>,
    /// Registrable domains, or names above hosts, that are wanted besides with all below them.
    pub domains: Vec<String>,
    /// Beginnings of URLs that are wanted besides.
    pub prefixes: Vec<String>,
    /// Schemes.
    pub schemes: Vec<Scheme>,
    /// Links from a seed; `None`: any number.
    pub depth_max: Option<u32>,
    /// Length of a URL in bytes.
    pub url_bytes_max: usize,
    /// Patterns of which a URL must match one; none: all match.
    pub include: Vec<String>,
    /// Patterns of which a URL must match none.
    pub exclude: Vec<String>,
    /// How often one path segment may stand in a URL.
    pub segment_repeats_max: u32,
    /// Segments of a path.
    pub path_depth_max: u32,
    /// Parameters of a query.
    pub query_params_max: u32,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            span: Span::Any,
            hosts: Vec::new(),
            domains: Vec::new(),
            prefixes: Vec::new(),
            schemes: vec![Scheme::Http, Scheme::Https],
            depth_max: None,
            url_bytes_max: 2_048,
            include: Vec::new(),
            exclude: Vec::new(),
            segment_repeats_max: 3,
            path_depth_max: 32,
            query_params_max: 32,
        }
    }
}

impl Scope {
    /// Whether only places the operator has named can be reached.
    pub fn is_bounded(&self) -> bool {
        self.span != Span::Any
    }
}

/// How far from its seeds a crawl may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Anywhere.
    Any,
    /// The hosts of the seeds.
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// What begins like a seed, up to its last slash.
    Prefix,
}

/// A scheme the crawler speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

/// `[url]`: the form a URL is deduplicated by; the form fetched is not touched. The rules that can
/// merge nothing (spelling of escapes, empty queries, the dot behind a host) always hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlKey {
    /// Parameters of the query in order of their names.
    pub sort_query: bool,
    /// Parameters of the query that don't count; `*` at the end stands for anything.
    pub drop_params: Vec<String>,
    /// Parameters of path segments that don't count.
    pub drop_path_params: Vec<String>,
    /// Session ids known by their shape don't count.
    pub drop_sessions: bool,
    /// Last segments of paths that don't count.
    pub drop_index: Vec<String>,
    /// The slash at the end of a path doesn't count.
    pub drop_trailing_slash: bool,
    /// `www.` before a host doesn't count.
    pub drop_www: bool,
    /// http and https are the same.
    pub merge_schemes: bool,
}

impl Default for UrlKey {
    /// The station's own defaults: it has the reasons for each name on its lists.
    fn default() -> Self {
        let Settings {
            sort_query,
            drop_params,
            drop_path_params,
            drop_sessions,
            drop_index,
            drop_trailing_slash,
            drop_www,
            merge_schemes,
            ..
        } = Settings::default();
        Self {
            sort_query,
            drop_params,
            drop_path_params,
            drop_sessions,
            drop_index,
            drop_trailing_slash,
            drop_www,
            merge_schemes,
        }
    }
}

impl UrlKey {
    /// As the station takes them.
    pub fn settings(&self) -> Settings {
        Settings {
            sort_query: self.sort_query,
            drop_params: self.drop_params.clone(),
            drop_path_params: self.drop_path_params.clone(),
            drop_sessions: self.drop_sessions,
            drop_index: self.drop_index.clone(),
            drop_trailing_slash: self.drop_trailing_slash,
            drop_www: self.drop_www,
            merge_schemes: self.merge_schemes,
            ..Settings::default()
        }
    }
}
