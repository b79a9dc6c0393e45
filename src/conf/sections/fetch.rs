//! The sections of a fetch: `[names]`, `[connections]`, `[tls]`, `[pipeline]`, `[fetch]`,
//! `[links]`.

use super::{DAY, GIB, HOUR, KIB, MIB, MILLISECOND, MINUTE, SECOND, section};
use crate::conf::kind::{
    Kind, choice, choices, count, fields, flag, list, parsed, path, read_path, size, text, time,
};
use crate::conf::syntax;
use crate::dns::Families;
use crate::dns::address::{Block, Rules};
use crate::http::coding::Coding;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// How host names are resolved, on a side thread.
    names: Names {
        /// Addresses of name servers, with a port or without (53). An empty list uses the name
        /// servers of the system.
        ///
        /// A public resolver may throttle or block a crawler; a caching resolver on this machine is
        /// best.
        servers: Vec<SocketAddr> = Vec::new(), servers(), [];

        /// File of addresses and names that takes precedence over the name servers: "system" is
        /// /etc/hosts, a path another file of the same form.
        ///
        /// An entry hides the answers of the name servers for the whole crawl. The file is read
        /// once. Lines of a named file that can't be parsed are reported.
        hosts_file: HostsFile = HostsFile::System, HostsFile::kind(), [];

        /// Send each letter of a query in random case, and drop responses that don't repeat it (DNS
        /// 0x20): a forged response must guess it in addition to the port and the query id. A port
        /// carries at most four queries.
        ///
        /// true fails with name servers that change the case of a query; false makes forging
        /// easier.
        mixed_case: bool = true, flag(), [];

        /// Timeout of one query.
        ///
        /// Short loses names of slow name servers; long fills in_flight_max with dead ones.
        timeout: Duration = 5 * SECOND, time(100 * MILLISECOND..=MINUTE), [];

        /// Queries for a name before its lookup fails.
        ///
        /// 1 loses a name with each lost packet; large keeps names of dead name servers in flight.
        tries: u32 = 3, count(1..=10), [];

        /// Largest number of concurrent lookups.
        ///
        /// Small slows down the start of a broad crawl; large overloads a resolver, which then
        /// drops queries.
        in_flight_max: usize = 1_000, count(1..=10_000), [];

        /// Number of names in the cache.
        ///
        /// About 100 bytes each. Fewer than the servers being crawled repeat lookups all the time.
        names_max: usize = 1_000_000, count(1_000..=100_000_000), [];

        /// Shortest time a response is cached, whatever its own time to live.
        ///
        /// "0s" looks up short-lived names before each visit; long misses servers that move.
        ttl_min: Duration = MINUTE, time(Duration::ZERO..=DAY), [];

        /// Longest time a response is cached.
        ///
        /// Short repeats lookups; long misses servers that move.
        ttl_max: Duration = DAY, time(SECOND..=30 * DAY), [];

        /// How long "no such name" and "no address" are cached. A retry of a server asks again.
        ///
        /// Short repeats lookups of names that don't exist; long misses new names.
        negative_ttl: Duration = 10 * MINUTE, time(SECOND..=7 * DAY), [];

        /// How long a failed lookup (timeout, error of a name server) is not repeated.
        ///
        /// Short adds load to name servers in trouble; long loses their names.
        failure_ttl: Duration = 30 * SECOND, time(SECOND..=DAY), [];

        /// Address families to look up, and which is tried first.
        ///
        /// "ipv6" alone reaches a third of the web; IPv6 on a machine without a route costs a
        /// failed connection per server.
        families: Families = Families::Ipv4ThenIpv6, families(), [];
    }
}

section! {
    /// Connections: how many, how long, and to which addresses. Only global addresses are reached.
    connections: Connections {
        /// Largest number of open connections, those parked between visits included.
        ///
        /// Small leaves the CPU idle while servers respond; large needs descriptors (the soft limit
        /// of the system is raised and checked) and about 10 KB of memory each under TLS.
        open_max: usize = 1_000, count(1..=60_000), [];

        /// How long an open connection is parked for the next visit.
        ///
        /// "0s" opens a connection for each visit; longer than the timeout of servers (5s to 75s)
        /// finds it closed.
        idle_timeout: Duration = 30 * SECOND, time(Duration::ZERO..=HOUR), [Live];

        /// TCP connect timeout.
        ///
        /// Short loses distant servers; long holds slots for dead ones.
        connect_timeout: Duration = 10 * SECOND, time(SECOND..=10 * MINUTE), [Live];

        /// TLS handshake timeout.
        ///
        /// Short loses distant or slow servers; long holds slots for dead ones.
        tls_timeout: Duration = 10 * SECOND, time(SECOND..=10 * MINUTE), [Live];

        /// Timeout from the request to the end of the response's head.
        ///
        /// Short loses slow pages; long lets a silent server hold a slot.
        head_timeout: Duration = 20 * SECOND, time(SECOND..=HOUR), [Live];

        /// Timeout between two pieces of a body.
        ///
        /// Short loses pages on unreliable networks; long lets a stalled server hold a slot.
        body_timeout: Duration = 20 * SECOND, time(SECOND..=HOUR), [Live];

        /// Timeout of a whole fetch.
        ///
        /// Short cuts large pages off; long lets a server that sends a byte at a time hold a slot.
        fetch_timeout: Duration = 2 * MINUTE, time(SECOND..=DAY), [Live];

        /// How long a crawl that is asked to stop waits for responses in flight.
        ///
        /// Short discards responses that are half received; long keeps the operator waiting.
        stop_timeout: Duration = 10 * SECOND, time(Duration::ZERO..=HOUR), [Live];

        /// Address ranges that may be reached although they are not global (private, loopback,
        /// link-local), like "10.0.0.0/8" or "127.0.0.1".
        ///
        /// A wide range lets a page send the crawler to machines of your own network: it needs a
        /// bounded scope.
        addresses_allowed: Vec<Block> = Vec::new(), blocks(), [Live];

        /// Address ranges that are never reached, whatever addresses_allowed says: names may point
        /// anywhere, and some global addresses are meant for this machine or its owner alone. The
        /// default is the metadata services of cloud providers, which hand out secrets.
        ///
        /// A list of your own replaces the default: repeat it, and add the addresses of your own
        /// servers to which no page should send the crawler.
        addresses_refused: Vec<Block> = Rules::default().refused, blocks(), [Live];

        /// Bytes read from one connection before the other connections have their turn.
        ///
        /// Small makes more system calls; large lets one fast server delay the others.
        read_bytes_per_turn: usize = 256 << 10, size(4 * KIB..=16 * MIB), [];
    }
}

section! {
    /// Which TLS servers are trusted, and how connections to them are secured. TLS 1.2 and 1.3.
    tls: Tls {
        /// Verify certificates.
        ///
        /// false accepts any server under any name; each record of the archive then says so.
        verify: bool = true, flag(), [];

        /// PEM file of the certificate authorities to trust in place of the built-in ones.
        roots_file: Option<PathBuf> = None, path().or("built-in"), [];

        /// Number of sessions kept for resumption, which halves the cost of the next handshake.
        ///
        /// About 4 KB each. 0 makes a full handshake every time.
        sessions_max: usize = 10_000, count(0..=10_000_000), [];

        /// Largest number of bytes received in a handshake, which are mostly certificates. Those of
        /// handshakes in progress count in memory.buffers.
        ///
        /// Small loses servers with long certificate chains; large lets each server hold as much.
        handshake_bytes_max: usize = 32 << 10, size(4 * KIB..=256 * KIB), [];

        /// Offer post-quantum key exchange (X25519MLKEM768) first.
        ///
        /// true makes a handshake a third more expensive.
        post_quantum: bool = false, flag(), [];
    }
}

section! {
    /// Pipelining: several requests in flight on one connection. A server earns it by an HTTP/1.1
    /// response of known length, and loses it at the first sign of trouble. It has no effect with
    /// politeness.burst = 1.
    pipeline: Pipeline {
        /// Use pipelining.
        ///
        /// false waits a round trip for each request of a burst; true repeats those in flight when
        /// a server closes.
        enabled: bool = true, flag(), [];

        /// Largest number of requests in flight on one connection.
        ///
        /// 1 disables pipelining; large repeats many requests when a server closes early.
        depth_max: u8 = 8, count(1..=64), [];

        /// Requests that a server is assumed to allow on a connection until it is measured.
        ///
        /// Small closes connections that could be used again; large loses the requests in flight
        /// when the server closes.
        allowance_new: u32 = 50, count(1..=10_000), [];

        /// Number of first batches of a server whose responses are held back until one request of
        /// the batch, repeated alone, has had the same response (two requests, if neighbours in the
        /// batch have equal responses): some servers swap pipelined responses, or repeat one. Later
        /// responses are stored as they arrive; if the responses of a batch turn out to be mixed up
        /// (one too many, invalid bytes, a stall), those stored before stay stored.
        ///
        /// 0 stores the pages of such servers under wrong URLs; each batch costs a server one or
        /// two requests more.
        probation: u8 = 3, count(0..=100), [];
    }
}

section! {
    /// What is requested, and how much of a response is accepted.
    fetch: Fetch {
        /// Longest head of a response.
        ///
        /// Small loses pages that set many cookies; large lets an endless head grow.
        head_bytes_max: usize = 64 << 10, size(KIB..=MIB), [];

        /// Largest number of header fields in a response.
        ///
        /// Small loses pages that set many cookies; large costs time on hostile servers.
        fields_max: usize = 256, count(16..=4_096), [];

        /// Longest body as received, without chunk framing. A longer body is truncated, and stored
        /// as truncated.
        ///
        /// Small loses the ends of pages; large lets one response take the memory of many.
        body_bytes_max: usize = 16 << 20, size(KIB..=GIB), [];

        /// Longest body after decoding. The part decoded up to there is scanned for links.
        ///
        /// Small loses the ends of pages; large gives room to the few bytes that decode to
        /// gigabytes.
        decoded_bytes_max: usize = 64 << 20, size(KIB..=GIB), [];

        /// Replies that keep crawlers out in place of a page, such as tests of the browser:
        /// "refuse" stores nothing of them and tries again later, and after
        /// retries.challenges_max visits gives the server up. "evidence" does the same, and the
        /// crawl log shows how they begin.
        ///
        /// "keep" stores them as pages; they are recognized by what the products that make them
        /// leave in fields, cookies and scripts.
        challenges: Challenges = Challenges::Refuse, challenges(), [];

        /// Longest chain of redirects to follow.
        ///
        /// Small loses pages behind logins and consent forms; large follows loops.
        redirects_max: u8 = 10, count(0..=100), [];

        /// Send the cookies that a redirect sets to the URLs it leads to, until the page is
        /// reached; never to another site, nor with any other page.
        ///
        /// false loses pages of sites that redirect until they see their cookie; true lets a site
        /// link the requests of one chain.
        cookies: bool = true, flag(), [];

        /// Content codings to ask for, the preferred ones first. An empty list asks for none.
        ///
        /// No coding takes three to five times the bytes.
        codings: Vec<Coding> = CODINGS.into(), codings(), [];

        /// The Accept field.
        accept: String = "text/html,application/xhtml+xml,*/*;q=0.5".into(), accept(), [];

        /// Additional header fields of every request, like "Accept-Language: en".
        headers: Vec<String> = Vec::new(), headers(), [Site];

        /// Largest amount of work in one turn of the loop, before other events have theirs: bytes
        /// received and archived, bytes of pages decoded and scanned, URLs admitted and dropped,
        /// and DNS look-ups begun, each up to this. The summary shows the longest turn and what
        /// took its time.
        ///
        /// Small makes more turns; large lets one large page or one full queue delay all servers.
        work_bytes_per_turn: usize = 1 << 20, size(16 * KIB..=64 * MIB), [];
    }
}

section! {
    /// Which references of a page are followed. Always: a, area, frame, iframe, link to pages, meta
    /// refresh, and the fields Link, Location and Refresh.
    links: Links {
        /// Fetch the requisites of pages, too: what browsers load to show them, such as images,
        /// scripts, style sheets, fonts and media. They are found in the elements and attributes of
        /// HTML and SVG, in srcset and srcdoc, in data-src and data-srcset, and in style sheets:
        /// files, elements and attributes.
        ///
        /// Not wanted are hints about the next page (prefetch, prerender), pages about the content
        /// (cite, longdesc), reports (ping), attributes of scripts (data-href), URLs without a
        /// resource (javascript:, data:), feeds and previews (og:image). true fetches ten to a
        /// hundred times as much.
        requisites: bool = false, flag(), [Live, Site];

        /// Follow the targets of forms with method GET, too, without their fields.
        ///
        /// false misses pages that only a form leads to; true sends empty searches.
        forms: bool = false, flag(), [Live];

        /// Links marked rel=nofollow: "obey" doesn't follow them.
        ///
        /// "ignore" finds more advertisements and traps.
        nofollow: bool = true, obey(), [Live];

        /// Directive nofollow in a page's robots meta tag or X-Robots-Tag: "obey" follows none of
        /// the page's links.
        ///
        /// "ignore" follows links against the wish of the page's author.
        robots_meta: bool = true, obey(), [Live];

        /// Largest number of different link targets taken from one page. Fragments don't count.
        ///
        /// Small loses the ends of site maps; large lets one page fill the queues. A page with more
        /// is annotated "linksCut" in the crawl log, and counted in the summary.
        links_max: usize = 10_000, count(0..=1_000_000), [Live];
    }
}

/// What is done with a reply that keeps crawlers out, in place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenges {
    /// It isn't taken for the page.
    Refuse,
    /// Neither, and the crawl log shows its beginning.
    Evidence,
    /// It is taken for the page.
    Keep,
}

fn challenges() -> Kind<Challenges> {
    choice(&[
        ("refuse", Challenges::Refuse),
        ("evidence", Challenges::Evidence),
        ("keep", Challenges::Keep),
    ])
}

fn servers() -> Kind<Vec<SocketAddr>> {
    let allowed = "addresses, with a port or without";
    list(parsed(allowed, syntax::server, ToString::to_string))
}

fn families() -> Kind<Families> {
    choice(&[
        ("ipv4-then-ipv6", Families::Ipv4ThenIpv6),
        ("ipv6-then-ipv4", Families::Ipv6ThenIpv4),
        ("ipv4", Families::Ipv4),
        ("ipv6", Families::Ipv6),
    ])
}

fn blocks() -> Kind<Vec<Block>> {
    list(parsed("address ranges", Block::read, Block::to_string))
}

/// The codings, the preferred ones first.
const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Brotli, Coding::Zstd, Coding::Deflate];

fn codings() -> Kind<Vec<Coding>> {
    choices(&CODINGS.map(|coding| (coding.name(), coding)))
}

fn accept() -> Kind<String> {
    text("header text", syntax::header_text)
}

fn headers() -> Kind<Vec<String>> {
    fields("header fields, \"Name: value\"", syntax::header)
}

/// Whether the directives of a page's author are obeyed.
fn obey() -> Kind<bool> {
    choice(&[("obey", true), ("ignore", false)])
}

/// Names that are resolved without asking a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostsFile {
    /// `/etc/hosts`, if it exists.
    #[default]
    System,
    /// No file.
    None,
    /// This file, in the format of `/etc/hosts`.
    File(PathBuf),
}

impl HostsFile {
    fn kind() -> Kind<Self> {
        let read = |text: &str| match text {
            "system" => Ok(Self::System),
            "none" => Ok(Self::None),
            path => read_path(path).map(Self::File),
        };
        let show = |file: &Self| match file {
            Self::System => "system".to_owned(),
            Self::None => "none".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        };
        parsed("\"system\", \"none\", or a path", read, show)
    }
}
