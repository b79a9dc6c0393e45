//! The settings of the engine: its own limits, and the settings of each station, as plain values.

use crate::dns::address;
use crate::http::request::{BadField, Fixed};
use crate::recrawl::worth;
use crate::url::UrlRef;
use crate::url::site;
use crate::{budgets, consent, dns, frontier, http, links, rating, repeats, seen, store, url};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The default for the maximum number of redirect chains at a time. One minute of a crawl at 1,000
/// pages a second needs that many if one page in ten redirects. With all their cookies, that many
/// chains use 64 MiB.
pub const CHAINS_MAX: usize = 8_192;

/// The settings of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How the crawler identifies itself.
    pub identity: Identity,
    /// Which requests are signed; `None` if none is.
    pub signing: Option<Signing>,
    /// Limits at which the crawl ends.
    pub limits: Limits,
    /// Connections and their time-outs.
    pub connections: Connections,
    /// Retries and rests after failures.
    pub retries: Retries,
    /// The handling of robots.txt.
    pub robots: Robots,
    /// The maximum number of redirects followed in a row.
    pub redirects_max: u8,
    /// The maximum number of redirect chains at a time. The targets of further redirects are
    /// treated like links.
    pub chains_max: usize,
    /// Whether a redirect chain sends back the cookies that it was given.
    pub cookies: bool,
    /// Limits on the size of a reply.
    pub reply: http::response::Limits,
    /// Limits on undoing the content codings of replies.
    pub coding: http::coding::DecodeLimits,
    /// The settings of pipelining, which sends requests before earlier ones are answered.
    pub pipeline: http::pipeline::Settings,
    /// How the qualities of URLs are estimated.
    pub rating: rating::Settings,
    /// How pages are scored by the operator's program; `None` if they are not.
    pub scoring: Option<Scoring>,
    /// Politeness, queues, and the order of servers.
    pub frontier: frontier::Settings,
    /// DNS look-ups.
    pub names: dns::Settings,
    /// The duplicate URL eliminator.
    pub seen: seen::Settings,
    /// The rules of the deduplication key.
    pub key: url::key::Settings,
    /// Which URLs are in scope.
    pub scope: url::scope::Settings,
    /// Which kinds of references are followed.
    pub links: links::Settings,
    /// What is done with pages that repeat; `None` if that is nothing.
    pub repeats: Option<repeats::Settings>,
    /// How many URLs of a registrable domain are queued in a pass; `None` if nothing limits them.
    pub budgets: Option<budgets::Settings>,
    /// The settings of sites that have a table of their own.
    pub sites: SiteSettings,
    /// The settings of the archive and of the crawl log.
    pub store: store::Settings,
    /// The state that makes the crawl resumable.
    pub state: State,
    /// How the crawl comes back to known pages; `None` if it doesn't.
    pub recrawl: Option<Recrawl>,
    /// Which sitemaps are read.
    pub sitemaps: Sitemaps,
    /// What is done with what sites say of the use of their pages.
    pub consent: Consent,
    /// Whether the URL that a page of its server prefers (rel=canonical) counts as fetched with it.
    pub joins_canonical: bool,
    /// What is done with replies that keep crawlers out.
    pub challenges: Challenges,
    /// What makes this crawl a part of one that several machines share; `None` if it isn't.
    pub cluster: Option<super::node::Settings>,
    /// Whether the stream of discovered URLs is written to a trace.
    pub trace: bool,
    /// The key of the fingerprints (keyed hashes) of URLs, drawn at random once a crawl.
    pub fingerprint_key: [u8; 16],
    /// The budget for bytes of replies in memory; when most of it is held, connections are paused.
    pub held_bytes_max: usize,
    /// The budget for robots.txt rules in memory, in bytes. When it is exceeded, the least recently
    /// used rules are written to disk. If the crawl keeps no state they are dropped, and robots.txt
    /// is requested again later.
    pub robots_bytes_max: usize,
    /// The maximum number of servers of one registrable domain. It is capped at a tenth of all
    /// servers; `None` means just that.
    pub servers_per_domain_max: Option<u32>,
    /// The size of each budget of work of a turn, in units of work. One unit costs about as much as
    /// scanning one byte of a page: see `engine::ledger`.
    pub turn_bytes_max: usize,
}

/// What is done with what sites say of the use of their pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consent {
    /// Whether it is recorded with each capture.
    pub records: bool,
    /// The purpose of the crawl if pages whose use is reserved for it aren't kept. It needs
    /// `records`.
    pub obeys: Option<consent::Purpose>,
}

/// Which requests are signed, and how.
#[derive(Clone, Debug)]
pub struct Signing {
    /// Signs requests.
    pub signer: Arc<http::signature::Signer>,
    /// Whether only requests to servers that have asked for a signature are signed.
    pub on_demand: bool,
}

/// What is done with replies that keep crawlers out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Challenges {
    /// Whether they are recognized, and aren't taken for pages.
    pub refuses: bool,
    /// Whether their lines in the crawl log show their first bytes.
    pub evidence: bool,
}

/// Which sitemaps are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sitemaps {
    /// Whether those are that a robots.txt names, and that the crawl meets otherwise.
    pub read: bool,
    /// Whether they are looked for at the usual places if robots.txt names none.
    pub usual: bool,
}

/// How the crawl comes back to known pages.
#[derive(Clone, Copy, Debug)]
pub struct Recrawl {
    /// Which pages are visited again.
    pub policy: worth::Policy,
    /// The share of requests that visits to known pages may have while there are new URLs.
    pub share: f64,
    /// The shortest time between two visits of a page.
    pub interval_min: Duration,
    /// The longest one.
    pub interval_max: Duration,
    /// The time between two changes that is expected of a page of which nothing is known.
    pub change_interval: Duration,
}

impl Settings {
    /// Makes the crawl keep no state: what does not fit in memory is dropped.
    pub fn keep_no_state(&mut self) {
        self.state.crawl = None;
        self.seen.crawl = None;
        self.frontier.crawl = None;
    }

    /// Returns the parts of a request that don't depend on the URL, with these additional fields.
    pub(super) fn fixed(&self, fields: &[(String, String)]) -> Result<Fixed, BadField> {
        let Identity { user_agent, from, codings, .. } = &self.identity;
        Fixed::new(user_agent, from.as_deref(), codings, fields)
    }

    /// Returns which references of a page are followed. Of what was fetched as a `requisite` of a
    /// page, all requisites are wanted, too.
    pub(super) fn links_of(&self, url: &str, requisite: bool) -> Cow<'_, links::Settings> {
        self.links_with(requisite || self.sites.requisites_of(url, self.links.requisites))
    }

    /// Returns which references are followed if those to `requisites` are, or are not.
    pub(super) fn links_with(&self, requisites: bool) -> Cow<'_, links::Settings> {
        match requisites != self.links.requisites {
            true => Cow::Owned(links::Settings { requisites, ..self.links.clone() }),
            false => Cow::Borrowed(&self.links),
        }
    }

    /// Returns whether what pages say of their use, and which URLs they prefer, is read.
    pub(super) fn reads_statements(&self) -> bool {
        self.consent.records || self.joins_canonical
    }

    /// Returns whether requests and replies are archived, in addition to the crawl log.
    pub(super) fn keeps_archive(&self) -> bool {
        self.store.format == store::Format::Warc
    }

    /// Returns what the archive records about the crawler.
    pub(super) fn archive_identity(&self) -> store::Identity {
        let identity = &self.identity;
        store::Identity {
            software: identity.software.clone(),
            operator: identity.operator.clone(),
            user_agent: identity.user_agent.clone(),
            from: identity.from.clone(),
            hostname: None,
            job: identity.job.clone(),
            robots: if self.robots.obey { "obey" } else { "ignore" }.to_owned(),
            config: identity.config.clone(),
            withheld: self.sites.withheld(),
        }
    }
}

/// How pages are scored by the operator's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scoring {
    /// How long the links of a page wait for its score.
    pub timeout: Duration,
    /// The maximum number of pages whose links wait.
    pub waiting_max: usize,
}

/// The settings of sites that have a table of their own, by the number of the table. Those that
/// belong to a station are in its settings.
#[derive(Clone, Default)]
pub struct SiteSettings {
    /// Which URLs each table is for.
    pub index: Arc<site::Sites>,
    /// Header fields, name and value, that are sent to the URLs of a site only.
    pub fields: Vec<Vec<(String, String)>>,
    /// The maximum number of pages of a site: `None` if the limits of the crawl apply, `Some(None)`
    /// if none does.
    pub pages_max: Vec<Option<Option<u64>>>,
    /// Whether requisites of the pages of a site are fetched: `None` as the crawl says.
    pub requisites: Vec<Option<bool>>,
}

impl SiteSettings {
    /// Returns whether requisites of some sites are treated differently.
    fn has_requisites(&self) -> bool {
        self.requisites.iter().any(Option::is_some)
    }

    fn requisites_of(&self, url: &str, crawls: bool) -> bool {
        if !self.has_requisites() {
            return crawls;
        }
        let site = UrlRef::from_canonical(url.as_bytes()).and_then(|url| self.index.of(url));
        let own = site.and_then(|site| self.requisites.get(usize::from(site)).copied().flatten());
        own.unwrap_or(crawls)
    }

    /// Returns which header fields the archive leaves out, and of which URLs; empty if none.
    fn withheld(&self) -> String {
        let tables = self.index.list().iter().zip(&self.fields);
        let tables = tables.filter(|(_, fields)| !fields.is_empty());
        let text = tables.map(|(matcher, fields)| {
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            format!("{} of {matcher}", names.join(", "))
        });
        text.collect::<Vec<_>>().join("; ")
    }
}

/// The values of header fields are secrets, so they are left out.
impl fmt::Debug for SiteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteSettings")
            .field("index", &self.index)
            .field("fields", &self.withheld())
            .field("pages_max", &self.pages_max)
            .field("requisites", &self.requisites)
            .finish()
    }
}

/// The state that makes a crawl resumable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number that identifies the crawl, which is in all its files; `None` if the crawl keeps
    /// no state.
    pub crawl: Option<u64>,
    /// The time between two checkpoints.
    pub period: Duration,
    /// How long to wait after the disk was full before writing again; `None` ends the crawl
    /// instead.
    pub full_wait: Option<Duration>,
    /// The free space in bytes below which the disk counts as full; 0 if only a failed write shows
    /// that it is full.
    pub free_min: u64,
}

impl Default for State {
    fn default() -> Self {
        let full_wait = Some(Duration::from_secs(10));
        Self { crawl: None, period: Duration::from_secs(300), full_wait, free_min: 0 }
    }
}

/// How the crawler identifies itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name and version of the program.
    pub software: String,
    /// The product token, which robots.txt groups are matched with.
    pub product: String,
    /// The whole User-Agent field.
    pub user_agent: String,
    /// The From field: the e-mail address of a person.
    pub from: Option<String>,
    /// Who runs the crawl, to be recorded in the archive.
    pub operator: String,
    /// The name of the job.
    pub job: String,
    /// Fields that are added to every request, among them Accept.
    pub fields: Vec<(String, String)>,
    /// The digest of the effective configuration, to be recorded in the archive.
    pub config: String,
    /// The content codings that are accepted.
    pub codings: Vec<http::coding::Coding>,
}

/// Limits of the crawl. Most of them end it; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of pages.
    pub pages_max: Option<u64>,
    /// The maximum number of bytes received.
    pub bytes_max: Option<u64>,
    /// The maximum time since the start of the run.
    pub time_max: Option<Duration>,
    /// The maximum number of pages of one server. Pages over it are dropped; the crawl goes on.
    pub pages_per_server_max: Option<u64>,
    /// The maximum number of pages of one registrable domain.
    pub pages_per_domain_max: Option<u64>,
}

/// Connections and their time-outs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The maximum number of open connections, including parked ones.
    pub open_max: usize,
    /// How long a connection is kept between two visits.
    pub idle_timeout: Duration,
    /// The maximum time to establish TCP.
    pub connect_timeout: Duration,
    /// The maximum time of the TLS handshake.
    pub tls_timeout: Duration,
    /// The maximum time from the request, or the end of the previous reply, to the end of the head.
    pub head_timeout: Duration,
    /// The maximum time between two pieces of the body.
    pub body_timeout: Duration,
    /// The maximum time from the request, or the end of the previous reply, to the end of the
    /// reply.
    pub fetch_timeout: Duration,
    /// How long replies in progress may still take when the crawl is stopped.
    pub stop_timeout: Duration,
    /// The rules that say which addresses may be connected to.
    pub addresses: address::Rules,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            open_max: 1_000,
            idle_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            tls_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(20),
            fetch_timeout: Duration::from_secs(120),
            stop_timeout: Duration::from_secs(10),
            addresses: address::Rules::default(),
        }
    }
}

/// Retries and rests after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of retries of a URL.
    pub url_retries_max: u8,
    /// How many of the retries of `url_retries_max` are made if the body ends early. After those,
    /// the part that was received is the page, since most servers that truncate a body always do.
    pub short_retries_max: u8,
    /// The number of failed visits in a row after which a server is given up.
    pub server_failures_max: u8,
    /// The number of visits in a row with a challenge after which a server is given up.
    pub challenges_max: u8,
    /// The rest of a server after its first failed visit.
    pub wait: Duration,
    /// The factor by which the rest grows with each further failure, in thousandths.
    pub factor_milli: u32,
    /// The maximum rest of a server after failures.
    pub wait_max: Duration,
    /// The maximum `Retry-After` that is obeyed; a longer one counts as this.
    pub retry_after_max: Duration,
    /// How long no server may be reachable before the crawl ends.
    pub outage_max: Duration,
}

impl Retries {
    /// Returns the rest of a server after `failures` failed visits in a row.
    pub fn after(&self, failures: u8) -> Duration {
        let mut wait = self.wait;
        for _ in 1..failures {
            if wait >= self.wait_max {
                break;
            }
            wait = wait.saturating_mul(self.factor_milli) / 1_000;
        }
        wait.min(self.wait_max)
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            url_retries_max: 3,
            short_retries_max: 1,
            server_failures_max: 10,
            challenges_max: 5,
            wait: Duration::from_secs(30),
            factor_milli: 4_000,
            wait_max: Duration::from_secs(3_600),
            retry_after_max: Duration::from_secs(24 * 3_600),
            outage_max: Duration::from_secs(24 * 3_600),
        }
    }
}

/// The handling of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Robots {
    /// Whether robots.txt is requested and obeyed.
    pub obey: bool,
    /// How long a robots.txt file is valid (RFC 9309 2.4: at most a day).
    pub ttl: Duration,
    /// The wait before a robots.txt file that could not be fetched is requested again.
    pub retry_wait: Duration,
    /// How long a server may fail to answer before it is treated as one without a robots.txt.
    pub unreachable_max: Duration,
    /// The maximum Crawl-delay that is obeyed; a server that asks for more is given up.
    pub crawl_delay_max: Duration,
    /// The maximum number of redirects of robots.txt that are followed (RFC 9309 2.3.1.2: at least
    /// five).
    pub redirects_max: u8,
    /// Whether an HTML page in place of a robots.txt file counts as a file without rules (true) or
    /// as unreachable (false).
    pub html_allows: bool,
}

impl Default for Robots {
    fn default() -> Self {
        Self {
            obey: true,
            ttl: Duration::from_secs(24 * 3_600),
            retry_wait: Duration::from_secs(3_600),
            unreachable_max: Duration::from_secs(30 * 24 * 3_600),
            crawl_delay_max: Duration::from_secs(60),
            redirects_max: 5,
            html_allows: true,
        }
    }
}
