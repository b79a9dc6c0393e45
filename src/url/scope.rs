//! Decides whether a crawl wants a URL: by host, depth and length, and by the signs of a crawler
//! trap.
//!
//! The hosts, domains and prefixes that the operator lists, and those that the seeds imply, add up;
//! if none is listed every host is wanted. An excluded URL is refused even if a list contains it.
//! Seeds are checked like other URLs. IP addresses are checked elsewhere, after name resolution.
//!
//! Cost: cheap tests come first; without patterns a check takes less than 100 ns and no allocation.
//! Patterns take time linear in the length of the URL.
//! Source: the refused ports are from the Fetch standard, section 2.9, "bad port".

mod explain;
mod requisites;

pub use requisites::{Distance, Reference, Requisites};

use super::site::{SiteId, Sites};
use super::{Fingerprinter, Url, UrlRef, canon, domain};
use crate::ground::map::{Map, Set};
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The settings of the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The schemes of URLs that are wanted.
    pub schemes: Schemes,
    /// Which hosts, besides the listed ones, are wanted because of the seeds.
    pub from_seeds: FromSeeds,
    /// Hosts that are wanted, with all their ports.
    pub hosts: Vec<String>,
    /// Domains that are wanted, each with every host below it.
    pub domains: Vec<String>,
    /// Parts of hosts that are wanted: `example.com/docs/` means every URL that begins so, on any
    /// port.
    pub prefixes: Vec<String>,
    /// Regular expressions of which one must match somewhere in the URL. If there are none, every
    /// URL is included.
    pub include: Vec<String>,
    /// Regular expressions of which none may match anywhere in the URL.
    pub exclude: Vec<String>,
    /// The maximum number of links that are followed from a seed to a URL.
    pub depth_max: u32,
    /// Which requisites of pages are wanted.
    pub requisites: Requisites,
    /// The maximum number of hops from a page to its requisites: 2 for an image of a style sheet.
    pub requisite_hops: u8,
    /// The maximum length of a URL, in bytes.
    pub url_bytes_max: usize,
    /// The maximum number of segments in the path of a URL.
    pub path_depth_max: usize,
    /// The maximum number of times that one segment may occur in a path: broken relative links
    /// repeat their segments.
    pub segment_repeats_max: usize,
    /// The maximum number of parameters in the query of a URL.
    pub query_params_max: usize,
    /// The maximum number of times that one parameter, name and value, may occur in a query.
    pub param_repeats_max: usize,
    /// Ports of other protocols, to which no page may send the crawler.
    pub ports_refused: Vec<u16>,
    /// The URLs with rules of their own, and these rules, by the number of their table.
    pub sites: Arc<Sites>,
    /// The rules of the tables of `sites`.
    pub site_rules: Vec<SiteRules>,
}

/// The rules of a site that differ from those of the crawl; `None` means that of the crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRules {
    /// The name of the table in messages.
    pub name: String,
    /// The maximum number of links that are followed from a seed to a URL.
    pub depth_max: Option<u32>,
    /// Regular expressions of which one must match.
    pub include: Option<Vec<String>>,
    /// Regular expressions of which none may match.
    pub exclude: Option<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schemes: Schemes::Any,
            from_seeds: FromSeeds::Any,
            hosts: Vec::new(),
            domains: Vec::new(),
            prefixes: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            depth_max: u32::MAX,
            requisites: Requisites::Scope,
            requisite_hops: 3,
            url_bytes_max: 2_048,
            path_depth_max: 20,
            segment_repeats_max: 3,
            query_params_max: 32,
            param_repeats_max: 3,
            ports_refused: PORTS_REFUSED.to_vec(),
            sites: Arc::default(),
            site_rules: Vec::new(),
        }
    }
}

/// The schemes of URLs that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemes {
    /// Both http and https are wanted.
    #[default]
    Any,
    /// Only http is wanted.
    Http,
    /// Only https is wanted.
    Https,
}

/// Which hosts are wanted because of the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FromSeeds {
    /// The seeds imply nothing about the wanted hosts.
    #[default]
    Any,
    /// The hosts of the seeds are wanted.
    Host,
    /// The registrable domains of the seeds are wanted, each with every host below it.
    Domain,
    /// The folders of the seeds are wanted, on their hosts.
    Prefix,
}

/// Ports to which browsers refuse to send HTTP requests.
const PORTS_REFUSED: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// The reason why a URL is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rejection {
    /// The URL has a scheme that is not wanted.
    Scheme,
    /// The port of the URL belongs to another protocol.
    Port,
    /// The URL is too long.
    Length,
    /// The URL is too many links away from the seeds.
    Depth,
    /// The URL is on none of the wanted hosts, domains and prefixes.
    Elsewhere,
    /// The path of the URL has too many segments.
    PathDepth,
    /// The path of the URL repeats a segment too often.
    SegmentRepeats,
    /// The query of the URL has too many parameters.
    QueryParams,
    /// The query of the URL repeats a parameter too often.
    ParamRepeats,
    /// An exclude pattern matches the URL.
    Excluded,
    /// No include pattern matches the URL.
    NotIncluded,
    /// The URL is a requisite out of scope, and too many hops away from its page.
    RequisiteHops,
    /// The URL is a link of a page that is out of scope, which was fetched as a requisite.
    OfRequisite,
}

impl Rejection {
    /// Returns the name of the reason that is used in logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Port => "port",
            Self::Length => "length",
            Self::Depth => "depth",
            Self::Elsewhere => "elsewhere",
            Self::PathDepth => "path-depth",
            Self::SegmentRepeats => "segment-repeats",
            Self::QueryParams => "query-params",
            Self::ParamRepeats => "param-repeats",
            Self::Excluded => "excluded",
            Self::NotIncluded => "not-included",
            Self::RequisiteHops => "requisite-hops",
            Self::OfRequisite => "of-requisite",
        }
    }

    /// Returns the configuration key by which the URL is refused, or the name of a fixed bound.
    pub fn key(self) -> &'static str {
        match self {
            Self::Scheme => "scope.schemes",
            Self::Port => "the list of other protocols' ports",
            Self::Length => "scope.url_bytes_max",
            Self::Depth => "scope.depth_max",
            Self::Elsewhere => "scope.span",
            Self::PathDepth => "scope.path_depth_max",
            Self::SegmentRepeats => "scope.segment_repeats_max",
            Self::QueryParams => "scope.query_params_max",
            Self::ParamRepeats => "the bound on repeated parameters",
            Self::Excluded => "scope.exclude",
            Self::NotIncluded => "scope.include",
            Self::RequisiteHops => "scope.requisite_hops",
            Self::OfRequisite => "scope.requisites",
        }
    }
}

/// The error for an invalid setting of the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The name of the setting.
    pub key: &'static str,
    /// The invalid value; if the setting is a list, its first invalid item.
    pub text: String,
    /// What is wrong with the value.
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.key, self.text, self.reason)
    }
}

impl std::error::Error for Error {}

/// The settings of the scope, compiled so that URLs can be checked quickly.
#[derive(Clone, Debug)]
pub struct Scope {
    settings: Settings,
    /// One bit for each port, set if URLs with that port are refused.
    ports_refused: Box<[u64]>,
    /// True if no hosts, domains or prefixes are listed or implied, so that every host is wanted.
    is_open: bool,
    hosts: Set<String>,
    domains: Set<String>,
    /// The beginnings of wanted paths, by host.
    prefixes: Map<String, Vec<String>>,
    /// The rules of URLs without a table of their own.
    rules: Rules,
    /// The rules of each table of sites.
    sites: Vec<Rules>,
}

/// The rules that may differ between sites, compiled.
#[derive(Clone, Debug)]
struct Rules {
    depth_max: u32,
    include: RegexSet,
    exclude: RegexSet,
}

impl Scope {
    /// Compiles the scope of these settings and seeds.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn new<'a>(
        settings: Settings,
        seeds: impl IntoIterator<Item = &'a Url>,
    ) -> Result<Self, Error> {
        let mut ports_refused = vec![0; 1 << 10].into_boxed_slice();
        for &port in &settings.ports_refused {
            let (word, bit) = bit_of(port);
            ports_refused[word] |= bit;
        }
        let mut scope = Self {
            ports_refused,
            is_open: false,
            hosts: canonical_hosts("hosts", &settings.hosts)?,
            domains: canonical_hosts("domains", &settings.domains)?,
            prefixes: Map::default(),
            rules: Rules {
                depth_max: settings.depth_max,
                include: patterns("include", &settings.include)?,
                exclude: patterns("exclude", &settings.exclude)?,
            },
            sites: Vec::new(),
            settings,
        };
        for own in &scope.settings.site_rules {
            let compiled = |key, own: &Option<Vec<String>>, crawls: &RegexSet| match own {
                Some(texts) => patterns(key, texts),
                None => Ok(crawls.clone()),
            };
            scope.sites.push(Rules {
                depth_max: own.depth_max.unwrap_or(scope.rules.depth_max),
                include: compiled("include", &own.include, &scope.rules.include)?,
                exclude: compiled("exclude", &own.exclude, &scope.rules.exclude)?,
            });
        }
        for text in &scope.settings.prefixes {
            let (host, path) = prefix(text)?;
            scope.prefixes.entry(host).or_default().push(path);
        }
        for seed in seeds {
            scope.imply(seed.view(), seed.view().host());
        }
        let lists = scope.hosts.is_empty() && scope.domains.is_empty() && scope.prefixes.is_empty();
        scope.is_open = lists && scope.settings.from_seeds == FromSeeds::Any;
        Ok(scope)
    }

    /// Returns a hash of the settings. It is very likely to differ between scopes that want
    /// different URLs.
    pub fn digest(&self) -> u64 {
        let sorted = |set: &Set<String>| {
            let mut list: Vec<&String> = set.iter().collect();
            list.sort_unstable();
            format!("{list:?}")
        };
        let mut prefixes: Vec<_> = self.prefixes.iter().collect();
        prefixes.sort_unstable();
        let (hosts, domains) = (sorted(&self.hosts), sorted(&self.domains));
        let text = format!("{:?} {hosts} {domains} {prefixes:?}", self.settings);
        Fingerprinter::new([0; 16]).of(text.as_bytes()).0
    }

    /// Checks whether `url`, found `depth` links from a seed, is wanted. If not, returns the first
    /// reason as the error.
    pub fn check(&self, url: UrlRef<'_>, depth: u32) -> Result<(), Rejection> {
        self.check_after(url, depth, &mut "")
    }

    /// Checks a URL like [`Scope::check`], as one of a sequence. `listed` caches a host whose URLs
    /// are all wanted, so that the lists are searched once for consecutive URLs of a host; it is
    /// empty at the start.
    pub fn check_after<'a>(
        &self,
        url: UrlRef<'a>,
        depth: u32,
        listed: &mut &'a str,
    ) -> Result<(), Rejection> {
        self.check_as(url, Some(depth), listed)
    }

    /// Checks a URL that was found `depth` links from a seed. With `None` for the depth it is
    /// checked as a requisite, which may be elsewhere.
    #[inline(always)]
    fn check_as<'a>(
        &self,
        url: UrlRef<'a>,
        depth: Option<u32>,
        listed: &mut &'a str,
    ) -> Result<(), Rejection> {
        let (set, rules) = (&self.settings, self.rules_of(url).0);
        let is_scheme = match set.schemes {
            Schemes::Any => true,
            Schemes::Http => !url.is_https(),
            Schemes::Https => url.is_https(),
        };
        require(is_scheme, Rejection::Scheme)?;
        require(url.as_str().len() <= set.url_bytes_max, Rejection::Length)?;
        require(depth.is_none_or(|depth| depth <= rules.depth_max), Rejection::Depth)?;
        let (word, bit) = bit_of(url.port());
        require(self.ports_refused[word] & bit == 0, Rejection::Port)?;
        let may_be_anywhere = self.is_open || depth.is_none();
        require(may_be_anywhere || self.is_listed(url, listed), Rejection::Elsewhere)?;
        self.check_traps(url)?;
        let text = url.as_str().as_bytes();
        let Rules { include, exclude, .. } = rules;
        require(exclude.is_empty() || !exclude.is_match(text), Rejection::Excluded)?;
        let is_included = include.is_empty() || depth.is_none();
        require(is_included || include.is_match(text), Rejection::NotIncluded)
    }

    /// Returns the rules for a URL that may differ between sites, and the table that they are of;
    /// `None` if they are those of the crawl.
    fn rules_of(&self, url: UrlRef<'_>) -> (&Rules, Option<SiteId>) {
        if self.sites.is_empty() {
            return (&self.rules, None);
        }
        match self.settings.sites.of(url) {
            Some(site) => (&self.sites[usize::from(site)], Some(site)),
            None => (&self.rules, None),
        }
    }

    /// Adds a seed, and with it the hosts, domains or folders that it implies. Returns whether that
    /// changed the scope.
    pub fn add_seed(&mut self, seed: UrlRef<'_>) -> bool {
        self.imply(seed, seed.host())
    }

    /// Adds to `host` what `seed` implies. Returns whether that changed the scope.
    fn imply(&mut self, seed: UrlRef<'_>, host: &str) -> bool {
        match self.settings.from_seeds {
            FromSeeds::Any => false,
            FromSeeds::Host => self.hosts.insert(host.into()),
            FromSeeds::Domain => self.domains.insert(domain::registrable(host).into()),
            FromSeeds::Prefix => {
                let path = seed.path();
                let folder = &path[..=path.rfind('/').expect("a path begins with a slash")];
                let folders = self.prefixes.entry(host.into()).or_default();
                let is_new = !folders.iter().any(|known| folder.starts_with(known.as_str()));
                if is_new {
                    folders.push(folder.into());
                }
                is_new
            }
        }
    }

    /// Reports that a seed redirects to `target`. If only `www.` or the scheme differs, what the
    /// seed implies also applies to the host of the target. Returns whether that changed the scope.
    pub fn join(&mut self, seed: UrlRef<'_>, target: UrlRef<'_>) -> bool {
        let bare = |host| -> &str {
            let host = str::strip_suffix(host, ".").unwrap_or(host);
            host.strip_prefix("www.").unwrap_or(host)
        };
        if bare(seed.host()) != bare(target.host()) {
            return false;
        }
        let host = target.host();
        self.imply(seed, host.strip_suffix('.').unwrap_or(host))
    }

    /// Returns the first exclude pattern that matches `url`, for messages; `None` if no pattern
    /// matches.
    pub fn excluded_by(&self, url: UrlRef<'_>) -> Option<&str> {
        let (rules, site) = self.rules_of(url);
        let matched = rules.exclude.matches(url.as_str().as_bytes());
        matched.iter().next().map(|index| self.patterns_of(site, true)[index].as_str())
    }

    /// Returns the include or the exclude patterns that apply to the URLs of a table, or to those
    /// without one.
    fn patterns_of(&self, site: Option<SiteId>, excluding: bool) -> &[String] {
        let own = site.and_then(|site| self.settings.site_rules.get(usize::from(site)));
        let own =
            own.and_then(|own| if excluding { own.exclude.as_ref() } else { own.include.as_ref() });
        own.unwrap_or(if excluding { &self.settings.exclude } else { &self.settings.include })
    }

    fn is_listed<'a>(&self, url: UrlRef<'a>, listed: &mut &'a str) -> bool {
        let host = url.host();
        if host == *listed {
            return true; // there is no empty host
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        if self.hosts.contains(name) || !self.domains.is_empty() && self.is_below_domain(name) {
            *listed = host;
            return true;
        }
        self.prefixes
            .get(name)
            .is_some_and(|paths| paths.iter().any(|path| url.target().starts_with(path.as_str())))
    }

    /// Returns whether a host is in a wanted domain: looks up the name, then the part after its
    /// first dot, and so on. An address is only looked up as a whole, because it has no domains
    /// above it.
    fn is_below_domain(&self, name: &str) -> bool {
        let mut rest = name;
        loop {
            if self.domains.contains(rest) {
                return rest.len() == name.len() || super::ip_of_host(name).is_none();
            }
            match rest.split_once('.') {
                Some((_, above)) => rest = above,
                None => return false,
            }
        }
    }

    fn check_traps(&self, url: UrlRef<'_>) -> Result<(), Rejection> {
        let set = &self.settings;
        let segments_free = set.path_depth_max.min(set.segment_repeats_max);
        // There are no more segments than slashes.
        if url.shape().is_path_within(segments_free) {
            return Ok(());
        }
        let path = url.path().as_bytes();
        // There are no more segments than slashes, which are faster to count.
        let slashes = path.iter().filter(|&&byte| byte == b'/').count();
        if slashes > segments_free {
            let depth = count(path, b'/');
            require(depth <= set.path_depth_max, Rejection::PathDepth)?;
            let is_repeated = is_repeated(path, b'/', depth, set.segment_repeats_max);
            require(!is_repeated, Rejection::SegmentRepeats)?;
        }
        let Some(query) = url.query() else { return Ok(()) };
        let query = query.as_bytes();
        let params = count(query, b'&');
        require(params <= set.query_params_max, Rejection::QueryParams)?;
        require(!is_repeated(query, b'&', params, set.param_repeats_max), Rejection::ParamRepeats)
    }
}

/// Returns the index of the word and the bit in it that stand for a port in `ports_refused`.
fn bit_of(port: u16) -> (usize, u64) {
    (usize::from(port >> 6), 1 << (port & 63))
}

/// Returns the number of non-empty parts of a text in which `mark` separates the parts.
fn count(text: &[u8], mark: u8) -> usize {
    let mut before = mark;
    let mut parts = 0;
    for &byte in text {
        parts += usize::from((before == mark) & (byte != mark));
        before = byte;
    }
    parts
}

/// Returns whether the same non-empty part of a text occurs more than `max` times. `mark` separates
/// the parts, of which there are `parts`.
fn is_repeated(text: &[u8], mark: u8, parts: usize, max: usize) -> bool {
    if parts <= max {
        return false;
    }
    let parts = text.split(|&byte| byte == mark).filter(|part| !part.is_empty());
    let mut parts: SmallVec<[&[u8]; 32]> = parts.collect();
    if parts.spilled() {
        parts.sort_unstable();
        return parts.chunk_by(|a, b| a == b).any(|equal| equal.len() > max);
    }
    // Comparing few parts is faster than sorting them, because most differ in length.
    let last = parts.len().saturating_sub(max);
    (0..last).any(|at| parts[at..].iter().filter(|part| **part == parts[at]).count() > max)
}

fn require(holds: bool, else_reject: Rejection) -> Result<(), Rejection> {
    if holds { Ok(()) } else { Err(else_reject) }
}

fn canonical_hosts(key: &'static str, texts: &[String]) -> Result<Set<String>, Error> {
    let canonical = |text: &String| match canon::host(text) {
        Ok(host) => Ok(String::from(host.strip_suffix('.').unwrap_or(&host))),
        Err(invalid) => Err(Error { key, text: text.clone(), reason: invalid.to_string() }),
    };
    texts.iter().map(canonical).collect()
}

/// Parses a prefix setting to a host and the beginning of a path; the scheme before it is optional.
fn prefix(text: &str) -> Result<(String, String), Error> {
    let error = |reason: String| Error { key: "prefixes", text: text.into(), reason };
    let has_scheme = text.contains("://");
    let url = if has_scheme { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    let url = url.map_err(|invalid| error(invalid.to_string()))?;
    let view = url.view();
    let host = view.host().strip_suffix('.').unwrap_or(view.host());
    Ok((host.into(), view.target().into()))
}

/// Compiles regular expressions for URLs. URLs are ASCII, so bytes and characters are the same.
fn patterns(key: &'static str, texts: &[String]) -> Result<RegexSet, Error> {
    let set = |texts: &[String]| RegexSetBuilder::new(texts).unicode(false).build();
    set(texts).map_err(|error| {
        // The error of the set doesn't say which pattern is invalid, so they are compiled one by
        // one.
        let bad = texts.iter().find(|text| set(std::slice::from_ref(text)).is_err());
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason).into();
        Error { key, text: bad.cloned().unwrap_or_default(), reason }
    })
}

#[cfg(test)]
mod tests;
