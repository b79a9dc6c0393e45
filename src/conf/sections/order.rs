//! The sections that say who is crawled when: `[schedule]`, `[quality]`, `[politeness]`,
//! `[retries]`.

use super::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, section};
use crate::conf::kind::{Kind, choice, count, decimal, flag, list, path, text, time};
use crate::conf::syntax;
use crate::conf::units::{Decimal, thousandths};
use crate::frontier::Burst;
use crate::frontier::policy::Policy;
use crate::rating::{Site, Source};
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// Which server is visited next, and which of its URLs are fetched first.
    schedule: Schedule {
        /// Order of the servers, and of the URLs of each server. "bfs": first in, first out for
        /// both. "performance": the server with most pages per unit of time first, its URLs first
        /// in, first out. "quality": the server of the best URL first, its URLs by quality.
        /// "capability": the server with most quality per unit of time first, its URLs by quality.
        /// "yield": the same, but a visit ends early if another server offers more, and on a busy
        /// core its time counts. "random": a server drawn by lot. "largest-site-first": the server
        /// with most URLs waiting; the URLs of both first in, first out.
        ///
        /// "quality", "capability" and "yield" need a source in [quality]; without one all URLs are
        /// equal. Only "bfs" and "random" treat all servers equally: the others fetch slow servers,
        /// poor pages or small sites last, or never. random_share bounds how long a server waits.
        policy: Policy = Policy::Bfs, choice(&policies()), [];

        /// Share of visits that go to the servers that have been ready for the longest time. Ready
        /// servers are in four lists, by how high the policy ranks them. Such a visit takes the
        /// oldest server of one list; of 15 such visits, the lists get 8, 4, 2 and 1, the list of
        /// the highest ranks most.
        ///
        /// 0 leaves all visits to the policy. Small lets low-ranked servers wait: up to about 15 /
        /// random_share visits for each server that was ready before them. Large gives up what the
        /// policy gains. The time for which an address, a domain or a host with another visit holds
        /// a ready server back is not bounded.
        random_share: Decimal = thousandths(0), decimal(0..=500), [];

        /// Weight of the old estimate of a server's times against a new measurement. The first
        /// measurement replaces the estimate.
        ///
        /// 0 uses the last visit only; near 1 takes hundreds of visits to notice that a server has
        /// become slow.
        smoothing: Decimal = thousandths(800), decimal(0..=990), [];

        /// Factor by which a server that keeps connections open is assumed to respond faster than
        /// measured, because its responses don't wait for connections.
        ///
        /// 1 gives such servers no advantage; large prefers them although they are slow.
        speedup: Decimal = thousandths(1_200), decimal(1_000..=100_000), [];

        /// Connect time assumed for a server that has not been measured.
        ///
        /// Short visits new servers before known ones; long visits them after all others.
        connect_time_new: Duration = 100 * MILLISECOND, time(MILLISECOND..=MINUTE), [];

        /// Response time assumed for a server that has not been measured.
        ///
        /// Short and long have the effects of connect_time_new.
        response_time_new: Duration = 500 * MILLISECOND, time(MILLISECOND..=MINUTE), [];

        /// Number of URLs of the best-linked registrable domain that are queued in a pass of the
        /// crawl: its budget. Budgets fall linearly with the rank of a domain, by how many other
        /// domains link to it (an estimate, within 14% for two thirds of them), to budget_min. What
        /// is over a budget waits on disk for a later pass. At most memory.urls_max URLs wait, and
        /// a tenth of that of one domain; more are dropped, with a line and a count. A pass ends
        /// when a connection could be opened and no server is ready. Seeds have no budget.
        ///
        /// "none" lets the hosts and pages that a single domain makes up take most of the crawl;
        /// 10000 is what IRLbot used. Small spreads the crawl over more domains.
        budget_max: Option<u32> = None, count(1..=1_000_000_000).or("none"), [];

        /// Budget of all domains past the best-linked ones.
        ///
        /// Small finds more of other domains first; large more of those that nobody links to.
        budget_min: u32 = 10, count(1..=1_000_000_000), [];

        /// Number of best-linked domains over which budgets fall from budget_max to budget_min, but
        /// not more than a hundredth of those that pages were read of.
        ///
        /// Small gives large budgets to few; large to domains that few others link to, as those of
        /// a farm of domains that link to each other.
        budget_top: u32 = 10_000, count(1..=1_000_000_000), [];
    }
}

section! {
    /// Estimated quality of URLs before they are fetched; the mean quality is 1. The policies
    /// "quality", "capability" and "yield" use it, and the quality of a crawl is the sum over its
    /// pages.
    quality: Qualities {
        /// Source of the estimates. "uniform": all URLs are equal. "zipf": drawn for each URL.
        /// "file": read from a table. "inlinks": number of links from other sites to the site of
        /// the URL, as seen by this crawl. "opic": importance of the site, computed from the cash
        /// that pages pass along their links. "parent": quality of the page that links to the URL,
        /// times fall. "depth": 1 for seeds, times fall for each link from there.
        ///
        /// With "parent" a page has the quality in file once it is fetched, and else the one that
        /// its URL was queued with. Seeds have theirs in file, or 1; without a file "parent" is the
        /// same as "depth". "command" is as "parent", with the score that a program gives a page.
        ///
        /// "inlinks" and "opic" know little at the start of a crawl, and sites that link to each
        /// other can mislead them; "zipf" is for experiments.
        source: Source = Source::Uniform, sources(), [];

        /// Table of qualities, of URLs for "file", of fetched pages for "parent": on each line a
        /// URL or a host, a blank, and its quality as a decimal number. Lines that begin with # are
        /// skipped. The quality of a host applies to all its URLs without a line of their own.
        ///
        /// The table is held in memory. A line that can't be parsed is a mistake. The summary says
        /// how many lines the crawl never met. The hosts of a synthetic web are http://h0000.test/
        /// and so on; its manifest (see [lab]) lists all URLs.
        file: Option<PathBuf> = None, path().or("none"), [];

        /// Quality of a URL that is not in the table of "file".
        ///
        /// 0 fetches such URLs last; more than the mean of the table fetches them first.
        unlisted: Decimal = thousandths(1_000), decimal(0..=1_000_000), [];

        /// Factor by which a quality falls with each link, for "parent" and "depth".
        ///
        /// Near 0 only seeds and their nearest links count; 1 makes links as good as their page,
        /// and all depths equal.
        fall: Decimal = thousandths(800), decimal(0..=1_000), [];

        /// Program of "command", with its arguments. It reads a page a line from its standard
        /// input, as JSON: {"id": 7, "url": "http://a.org/", "type": "text/html", "text": "..."},
        /// where text is the HTML in UTF-8, cut to 256 KiB. It writes a score a line to its
        /// standard output, in any order: {"id": 7, "quality": 1.25}. What it writes to its
        /// standard error is logged.
        ///
        /// It is started once, without a shell, and again if it ends. Seeds have a quality of 1, so
        /// scores should have a mean of about 1.
        command: Vec<String> = Vec::new(), list(text("words", syntax::word)), [];

        /// How long the links of a page wait for its score. After it they take over the page's
        /// estimate.
        ///
        /// Short loses scores; long delays the links of pages that are never answered.
        command_timeout: Duration = 5 * SECOND, time(100 * MILLISECOND..=HOUR), [];

        /// Number of pages whose links wait. The links of further pages take over their estimate.
        ///
        /// Small loses scores when pages come in bursts; large takes memory, up to 64 MiB in all,
        /// and makes a checkpoint's turn longer, which writes a line for each.
        command_waiting_max: usize = 1_000, count(1..=10_000), [];

        /// Seed of the draws of "zipf": the same seed gives a URL the same quality.
        zipf_seed: u64 = 1, count(0..=i64::MAX as u64), [];

        /// Number of pages over which "zipf" draws: with an exponent of 1, the quality of the best
        /// page is this many times that of the last.
        ///
        /// 1 makes all pages equal; with far more than the crawl fetches, it never meets the best.
        zipf_pages: u64 = 1_000_000, count(1..=1_000_000_000_000), [];

        /// Exponent of Zipf's law, for "zipf" and for [compare].
        ///
        /// Small makes the pages nearly equal; large concentrates the quality in few pages.
        zipf_exponent: Decimal = thousandths(1_000), decimal(100..=2_000), [];

        /// Unit for which "inlinks" and "opic" keep estimates: "server" is scheme, host and port,
        /// "domain" the registrable domain.
        ///
        /// With "server", anyone with many host names can raise their estimate; "domain" treats a
        /// whole hosting service as one site.
        site: Site = Site::Server, sites(), [];

        /// Number of sites with an estimate. Beyond it the sites with the lowest are dropped.
        ///
        /// About 32 bytes each. Small drops sites before their estimate is good.
        sites_max: usize = 1_000_000, count(1_000..=100_000_000), [];
    }
}

section! {
    /// How many requests a server gets, and how often. A visit to a server is up to burst requests
    /// on one connection, followed by a rest of max(requests x delay, delay_factor x duration of
    /// the visit), at most delay_max. robots.txt, retries and redirects count as requests. A server
    /// never gets more than one connection.
    politeness: Politeness {
        /// Requests per visit. "server" sends as many as the server allows on a connection, and is
        /// for servers of your own. A Crawl-delay in robots.txt sets 1.
        ///
        /// More than a few look like an attack to the operator of a server; 1 makes no use of open
        /// connections unless the rest is shorter than connections.idle_timeout.
        burst: Burst = Burst::Requests(1), burst(), [Site];

        /// Rest per request.
        ///
        /// Below "1s" small servers notice the load and block the crawler; above "1m" a site of a
        /// thousand pages takes a day.
        delay: Duration = SECOND, time(Duration::ZERO..=DAY), [Live, Site];

        /// Rest as a multiple of the duration of the visit: slow servers get a longer rest.
        ///
        /// 0 keeps the pace on an overloaded server; large hardly crawls slow servers at all.
        delay_factor: Decimal = thousandths(10_000), decimal(0..=1_000_000), [Live, Site];

        /// Longest rest. It must not be shorter than burst x delay, nor than crawl_delay_max.
        ///
        /// Short defeats delay_factor; long lets one slow response delay a server for hours.
        delay_max: Duration = 5 * MINUTE, time(Duration::ZERO..=DAY), [Live];

        /// Fetch and obey robots.txt (RFC 9309).
        ///
        /// false is for servers of your own: it needs a bounded scope, or the [lab].
        robots: bool = true, flag(), [];

        /// Meaning of an HTML page without rules, with status 200, in place of robots.txt.
        ///
        /// "allow" follows the standard (RFC 9309, 2.2: such a file has no rules), even if the page
        /// says that the site is down; "unreachable" skips the many sites that answer everything
        /// with a page. A browser challenge always means unreachable; a page with rules is parsed.
        robots_html: bool = true, choice(&[("allow", true), ("unreachable", false)]), [Live];

        /// How long a robots.txt is used before it is fetched again.
        ///
        /// The standard allows up to a day; short fetches it more often than it changes.
        robots_ttl: Duration = DAY, time(MINUTE..=DAY), [Live];

        /// Wait before robots.txt is fetched again after a failure (network error, 5xx, 429). Until
        /// then no page of the server is fetched. A robots.txt that is cut short is fetched again
        /// after retries.retry_wait, and obeyed if it is cut short again.
        ///
        /// Short adds load to a server in trouble; long leaves it out of the crawl.
        robots_retry_wait: Duration = HOUR, time(SECOND..=DAY), [Live];

        /// A server that has not answered requests for robots.txt for this time counts as one
        /// without robots.txt.
        ///
        /// Short crawls servers whose rules are unknown; long leaves them out. The standard
        /// suggests 30 days.
        robots_unreachable_max: Duration = 30 * DAY, time(HOUR..=365 * DAY), [Live];

        /// Longest Crawl-delay that is obeyed. A server whose robots.txt asks for more is not
        /// crawled, and the crawl log says so.
        ///
        /// Short skips more servers; long keeps servers of which hardly a page can be fetched.
        crawl_delay_max: Duration = MINUTE, time(Duration::ZERO..=DAY), [Live];

        /// Number of servers at one IP address that are visited at once.
        ///
        /// 1 crawls the thousand sites of a shared host, or of a content network, one by one; large
        /// lets many small sites add up to a load on one machine.
        address_visits_max: u32 = 4, count(1..=100_000), [Live];

        /// Shortest time between the starts of two visits to one IP address, whatever
        /// address_visits_max, and rest of the address after each visit.
        ///
        /// "0s" leaves only address_visits_max; long slows down content networks, which serve half
        /// the web: "250ms" allows four visits a second to each of their addresses.
        address_delay: Duration = 250 * MILLISECOND, time(Duration::ZERO..=HOUR), [Live];

        /// Number of servers in one registrable domain that are visited at once. It protects sites
        /// with many host names.
        ///
        /// Small and large have the effects of address_visits_max.
        domain_visits_max: u32 = 4, count(1..=100_000), [Live];

        /// Shortest time between the starts of two visits to one registrable domain, and rest of
        /// the domain after each visit.
        ///
        /// "0s" leaves only domain_visits_max; long slows down domains with many hosts.
        domain_delay: Duration = 250 * MILLISECOND, time(Duration::ZERO..=HOUR), [Live];
    }
}

section! {
    /// Which failures are retried, and when: timeouts, closed connections, and the statuses 408,
    /// 425, 429, 502, 503, 504, 520 to 527 and 530 (of gateways, like 502). 500 is final like 404.
    /// A page whose body is cut short is retried once, and then stored as it is. Refused
    /// connections, unknown names and forbidden addresses are retried for the server as a whole,
    /// with a new name lookup each time. A server that doesn't speak TLS is retried once, after the
    /// longest wait; a server whose certificate is rejected is given up.
    retries: Retries {
        /// Retries of a URL.
        ///
        /// 0 loses pages to temporary failures; large spends requests on pages that are gone.
        retries_max: u8 = 3, count(0..=100), [Live];

        /// Wait before the first retry. It applies to the whole server if the server failed or
        /// asked for a rest, and to the URL alone if the server works and answers 408, 425, 502,
        /// 504, 520 to 527 or 530.
        ///
        /// Short meets the same failure again; long leaves the URL out of a short crawl.
        retry_wait: Duration = 30 * SECOND, time(SECOND..=DAY), [Live];

        /// Factor by which each further wait is longer than the one before.
        ///
        /// 1 retries at a constant pace; large reaches retry_wait_max at once.
        retry_factor: Decimal = thousandths(4_000), decimal(1_000..=100_000), [Live];

        /// Longest wait between two retries.
        ///
        /// Short keeps loading a server in trouble; long holds up the end of the crawl.
        retry_wait_max: Duration = HOUR, time(SECOND..=30 * DAY), [Live];

        /// Longest Retry-After that is obeyed; a longer one is cut to this. If a server repeats it,
        /// the wait for its consecutive failures applies if that is longer.
        ///
        /// Short comes back too early; long lets a wrong value take the server out of the crawl.
        retry_after_max: Duration = DAY, time(SECOND..=30 * DAY), [Live];

        /// Consecutive failures after which a server is given up with all its URLs. A server that
        /// has never answered, and whose name is unknown or has only forbidden addresses, is given
        /// up after three. A server that has answered before is kept while no other server answers.
        ///
        /// Small gives up servers that were only restarting; large keeps dead servers in the queue.
        server_failures_max: u8 = 10, count(1..=255), [Live];

        /// Consecutive visits with a challenge in place of a page (fetch.challenges) after which a
        /// server is given up with all its URLs. A challenge is a failure, too: server_failures_max
        /// counts if it is smaller.
        ///
        /// Small gives up servers that only ask for a slower pace; large keeps asking those that
        /// don't want to be crawled.
        challenges_max: u8 = 5, count(1..=255), [Live];

        /// Time without a response from any server after which the crawl stops with exit code 12;
        /// its URLs stay queued. If at least 8 servers on 3 networks were tried since the last
        /// response and 90% of them were unreachable, the fault is assumed to be on this side: the
        /// crawl pauses, and tries a few servers every retry_wait.
        ///
        /// Short stops the crawl for a brief outage; long delays the end of a crawl that has only
        /// dead servers left.
        outage_max: Duration = DAY, time(SECOND..=365 * DAY), [Live];
    }
}

/// The policies by name.
pub(super) fn policies() -> [(&'static str, Policy); 7] {
    Policy::ALL.map(|policy| (policy.name(), policy))
}

fn sources() -> Kind<Source> {
    choice(&[
        ("uniform", Source::Uniform),
        ("zipf", Source::Zipf),
        ("file", Source::Table),
        ("inlinks", Source::Inlinks),
        ("opic", Source::Opic),
        ("parent", Source::Parent),
        ("depth", Source::Depth),
        ("command", Source::Command),
    ])
}

fn sites() -> Kind<Site> {
    choice(&[("server", Site::Server), ("domain", Site::Domain)])
}

fn burst() -> Kind<Burst> {
    let from = |burst: &Burst| match burst {
        Burst::Requests(count) => Some(*count),
        Burst::Server => None,
    };
    let to = |count: Option<u32>| count.map_or(Burst::Server, Burst::Requests);
    count(1..=1_000).or("server").convert(to, from)
}
