//! The sections that say what is crawled and by whom: `[job]`, `[limits]`, `[identity]`, `[scope]`,
//! `[url]`.

use super::{DAY, KIB, SECOND, TIB, section};
use crate::conf::kind::{Kind, choice, choices, count, flag, list, path, size, text, time};
use crate::conf::syntax;
use crate::url::key::Settings;
use crate::url::scope::{FromSeeds, Requisites};
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// The name of the crawl, the directory of its files, and the URLs it starts from.
    job: Job {
        /// Name of the crawl, in its records and reports.
        ///
        /// It identifies the crawl of a record when archives are merged. A job directory belongs to
        /// the crawl of this name, and another one is refused.
        name: String = "crawl".into(), file_name(), [Kept];

        /// Directory of everything the crawl stores: its effective configuration, archive, index,
        /// state and crawl log.
        ///
        /// A crawl that is in it is resumed, unless it kept no state or its archive has another
        /// format: then sted refuses to start. It also refuses a directory with other files.
        directory: PathBuf = "jobs/crawl".into(), path(), [];

        /// URLs to start from. Without a scheme, http:// is assumed.
        ///
        /// A crawl of few seeds on few servers starts slowly: no server gets two requests at once.
        /// With a [lab], an empty list means the seeds of the lab.
        seeds: Vec<String> = Vec::new(), list(text("URLs", syntax::seed)), [];

        /// File with more seeds, one a line. Blank lines and lines that begin with # are skipped.
        /// In a table, the header says which column is read: url, domain, ...
        ///
        /// Lines without a seed, and lines that are ambiguous, are reported, by `sted check` too.
        seeds_file: Option<PathBuf> = None, path().or("none"), [];

        /// Record the stream of discovered URLs, each with the hash of its host, in the file trace
        /// of the directory. `sted cache` computes from it the hit rates of caches of known URLs.
        ///
        /// It takes 12 bytes a link and 29 bytes a page: 0.8 GB for a million pages of 65 links.
        trace: bool = false, flag(), [];
    }
}

section! {
    /// When the crawl stops although there are URLs left. It then finishes the requests it has
    /// sent, and its exit code says which limit was reached.
    limits: Limits {
        /// Pages to fetch: final responses of any status. Redirects and robots.txt don't count. No
        /// request is sent that could exceed the limit, so the crawl ends with exactly this number
        /// if there are enough pages.
        ///
        /// With "none", a crawl of the open web ends only at memory.seen_max. A crawl of the open
        /// web without any limit must set this key to "none" itself.
        pages_max: Option<u64> = None, pages(), [Live];

        /// Pages to fetch of one server (scheme, host and port). Further URLs of it are dropped,
        /// and the crawl goes on.
        ///
        /// Small loses most of large sites; "none" leaves their size to the crawl. Pages that were
        /// fetched while it was "none" don't count, and raising it brings nothing back.
        pages_per_server_max: Option<u64> = None, pages(), [Live];

        /// Pages to fetch of one registrable domain. Further URLs of it are dropped, and the crawl
        /// goes on.
        ///
        /// Small and "none" have the effects of pages_per_server_max.
        pages_per_domain_max: Option<u64> = None, pages(), [Live];

        /// Bytes to receive from all servers, headers and framing included.
        ///
        /// Requests sent before the limit was reached are finished, so a little more may be
        /// received.
        bytes_max: Option<u64> = None, size(1..=1_024 * TIB).or("none"), [Live];

        /// Duration of this run. A resumed crawl starts again at zero.
        time_max: Option<Duration> = None, time(SECOND..=3_650 * DAY).or("none"), [Live];
    }
}

section! {
    /// Who crawls. Every request says so to the server.
    identity: Identity {
        /// Product token: the first word of User-Agent, and the name whose rules in robots.txt this
        /// crawl obeys.
        ///
        /// With the name of another crawler, you would use permissions given to that crawler.
        product: String = "sted".into(), text("letters, '_', '-'", syntax::product), [];

        /// URL or mail address at which the operators of crawled sites can reach you. Every crawl
        /// needs one, except a crawl of the [lab].
        ///
        /// Sites block crawlers whose operator can't be reached.
        contact: String = String::new(), text("a URL or a mail address", syntax::contact), [];

        /// The User-Agent field. "auto" composes it of product, version and contact.
        ///
        /// A text of your own must contain product, and contact unless from has it.
        user_agent: Option<String> = None, text("header text", syntax::header_text).or("auto"), [];

        /// Mail address to send in the From field.
        from: Option<String> = None, text("a mail address", syntax::mail).or("none"), [];
    }
}

section! {
    /// Signatures, by which servers can verify who asks (Web Bot Auth: RFC 9421, as in
    /// draft-ietf-webbotauth-httpsig-protocol-00).
    identity.signature: Signature {
        /// Which requests are signed: "none"; "always" all of them; "when-asked" those to servers
        /// that have asked for a signature by Accept-Signature, of which the first is repeated.
        /// A signature adds the fields Signature-Agent, Signature-Input and Signature, is valid for
        /// a minute, and covers method, host, port, path and query.
        ///
        /// "always" takes more time and about 450 bytes for each request.
        sign: Option<Sign> = None, signs().or("none"), [];

        /// File with the private key, PEM with Ed25519, as "sted key new" makes it.
        key: Option<PathBuf> = None, path().or("none"), [];

        /// Origin at which the key is published, like "https://crawler.example", for
        /// Signature-Agent. It must serve the document that "sted key show" prints at
        /// /.well-known/http-message-signatures-directory.
        ///
        /// Servers that don't find the key there refuse the signature.
        agent: Option<String> = None, text("an https origin", syntax::origin).or("none"), [];
    }
}

/// Which requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// All of them.
    Always,
    /// Those to servers that have asked for it.
    WhenAsked,
}

fn signs() -> Kind<Sign> {
    choice(&[("always", Sign::Always), ("when-asked", Sign::WhenAsked)])
}

section! {
    /// Which URLs are crawled. Links out of scope are counted and dropped. Seeds are fetched in any
    /// case, with a warning if these keys would reject them as links.
    scope: Scope {
        /// How far from the seeds the crawl goes: "any" has no limit; "host" stays on the hosts of
        /// the seeds; "domain" stays in their registrable domains (example.co.uk and all hosts
        /// below it); "prefix" stays below the paths of the seeds, up to their last slash.
        ///
        /// "any" grows without end; "prefix" may end after one page.
        span: FromSeeds = FromSeeds::Any, spans(), [Live];

        /// Hosts to crawl in addition to those of span.
        ///
        /// Together with span = "any" they would have no effect, and are refused.
        hosts: Vec<String> = Vec::new(), list(text("host names", syntax::host)), [Live];

        /// Domains to crawl in addition to those of span, with all hosts below them.
        domains: Vec<String> = Vec::new(), list(text("domain names", syntax::host)), [Live];

        /// URL prefixes to crawl in addition to those of span.
        prefixes: Vec<String> = Vec::new(), list(text("absolute URLs", syntax::absolute)), [Live];

        /// Schemes to crawl.
        ///
        /// Without "https" most of today's web is out of reach.
        schemes: Vec<Scheme> = vec![Scheme::Http, Scheme::Https], schemes(), [Live];

        /// Largest number of links between a page and a seed. 0 fetches the seeds only.
        ///
        /// Large or "none": calendars and other endless sites are stopped only by the traps below
        /// and by memory.urls_per_server_max.
        depth_max: Option<u32> = None, count(0..=1_000_000).or("none"), [Live, Site];

        /// Where requisites of pages are fetched from, if links.requisites is true: "scope" fetches
        /// those in scope; "any" also those elsewhere, as browsers do: span, include and depth_max
        /// don't apply to them; exclude, schemes, robots.txt and the limits on addresses do.
        /// Requisites have the depth of their page. A frame in scope is a page, elsewhere it is a
        /// requisite. Links of pages out of scope are not followed.
        ///
        /// "scope" archives pages without the style sheets, fonts and images that other hosts
        /// serve; "any" visits many hosts, advertisers among them.
        requisites: Requisites = Requisites::Scope, requisites(), [Live];

        /// Largest number of hops from a page to its requisites: an image is 1 hop away, a font of
        /// a style sheet that another one imports 3. Beyond that a requisite counts as a link.
        ///
        /// Small loses fonts and images of style sheets; large follows frames in frames.
        requisite_hops: u8 = 3, count(1..=10), [Live];

        /// Longest URL of a link or a redirect; seeds may have up to 64 KiB. Links of more than
        /// twice this length are skipped unread. The crawl log shows the first 8 KiB of a URL.
        ///
        /// Short loses pages with long queries; long lets traps fill the memory.
        url_bytes_max: usize = 2_048, size(64..=64 * KIB), [Live];

        /// Regular expressions (linear-time) of which at least one must match somewhere in a URL.
        /// An empty list accepts all URLs.
        include: Vec<String> = Vec::new(), patterns(), [Live, Site];

        /// Regular expressions of which none may match a URL. They take precedence over include.
        exclude: Vec<String> = Vec::new(), patterns(), [Live, Site];

        /// How often one path segment may occur in a URL (/a/b/a/b/a has a three times).
        ///
        /// Small loses valid paths like /2024/2024/; large follows relative links that repeat
        /// themselves.
        segment_repeats_max: usize = 3, count(1..=1_000), [Live];

        /// Largest number of segments in a path.
        ///
        /// Small loses deep archives; large follows traps.
        path_depth_max: usize = 32, count(1..=1_000), [Live];

        /// Largest number of parameters in a query.
        ///
        /// 0 skips all dynamic pages; large follows every combination of a shop's filters.
        query_params_max: usize = 32, count(0..=1_000), [Live];
    }
}

section! {
    /// Which URLs are the same page. These rules compute the key by which URLs are deduplicated;
    /// the URL that is fetched stays as it was linked. The spelling of escapes, an empty query and
    /// a dot after the host are always ignored.
    url: UrlKey {
        /// Sort the parameters of a query by name.
        ///
        /// true loses pages of servers that depend on the order; false fetches some pages twice.
        sort_query: bool = false, flag(), [Kept];

        /// Query parameters to ignore.
        ///
        /// Ignoring one that matters loses pages; an empty list fetches a page again for each
        /// campaign that links to it. The default has the marks of advertisers and mailing systems,
        /// and session ids.
        drop_params: Vec<String> = Settings::default().drop_params, params(), [Kept];

        /// Ignore session ids that are recognised by their shape: path segments like (S(...)) or
        /// sid/<32 digits>, and parameters like sid or s, after & or ;, whose value is a
        /// hexadecimal hash, a UUID, or an id as PHP and Django generate it.
        ///
        /// true merges the pages of a server that names them by hashes in such a parameter; false
        /// never finishes a site that generates a new id for each page.
        drop_sessions: bool = Settings::default().drop_sessions, flag(), [Kept];

        /// Parameters of path segments (;name=value) to ignore.
        ///
        /// An empty list fetches a site again for every session that it opens.
        drop_path_params: Vec<String> = Settings::default().drop_path_params, params(), [Kept];

        /// Last path segments to ignore, like "index.html".
        ///
        /// Ignoring one that differs from its directory loses pages; an empty list fetches many
        /// start pages twice.
        drop_index: Vec<String> = Vec::new(), list(text("path segments", syntax::segment)), [Kept];

        /// Ignore a slash at the end of a path.
        ///
        /// true loses pages of servers on which /a and /a/ differ; false follows many redirects
        /// from one to the other.
        drop_trailing_slash: bool = false, flag(), [Kept];

        /// Ignore the prefix www. of a host.
        ///
        /// true loses sites that differ; false fetches some sites twice.
        drop_www: bool = false, flag(), [Kept];

        /// Treat http and https as the same, on their default ports.
        ///
        /// true fetches a page by the scheme of its first link, and loses it if only the other
        /// works.
        merge_schemes: bool = false, flag(), [Kept];

        /// Count a page that is kept as that of the URL, too, that it prefers (`rel=canonical`):
        /// this URL isn't requested any more, if it is one of the same server and was not found
        /// before. It counts as "canonical-known". A crash may forget it.
        ///
        /// true loses pages of servers that name one URL for pages that differ; false fetches some
        /// pages twice.
        join_canonical: bool = false, flag(), [];
    }
}

/// A name that becomes part of file names.
pub(super) fn file_name() -> Kind<String> {
    text("1 to 64 letters, digits, '.', '_', '-'", syntax::name)
}

/// A limit on pages.
pub(super) fn pages() -> Kind<Option<u64>> {
    count(1..=1_000_000_000_000).or("none")
}

fn spans() -> Kind<FromSeeds> {
    choice(&[
        ("any", FromSeeds::Any),
        ("host", FromSeeds::Host),
        ("domain", FromSeeds::Domain),
        ("prefix", FromSeeds::Prefix),
    ])
}

fn requisites() -> Kind<Requisites> {
    choice(&[("scope", Requisites::Scope), ("any", Requisites::Any)])
}

fn schemes() -> Kind<Vec<Scheme>> {
    choices(&[("http", Scheme::Http), ("https", Scheme::Https)])
}

fn patterns() -> Kind<Vec<String>> {
    list(text("regular expressions", syntax::pattern))
}

fn params() -> Kind<Vec<String>> {
    list(text("parameter names, '*' at the end for any ending", syntax::param))
}

/// A scheme that the crawler supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Identity {
    /// Returns the User-Agent field as sent: `sted/0.1.0 (+https://crawler.example/)`.
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

impl Scope {
    /// Returns whether the scope is limited to what the operator has named.
    pub fn is_bounded(&self) -> bool {
        self.span != FromSeeds::Any
    }
}

impl UrlKey {
    /// Converts the section to settings of `url::key`.
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
