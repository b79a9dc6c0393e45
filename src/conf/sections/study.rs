//! The sections of experiments: `[lab]`, `[sim]`, `[compare]`; and `[profile]`, which may be of
//! any web.

use super::order::policies;
use super::web::{RATE, SEED, SHARE};
use super::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, section};
use crate::conf::compare::{Value, Variant};
use crate::conf::kind::{
    Kind, choice, choices, correlation, cost, count, decimal, flag, list, parsed, path, size, text,
    time, value,
};
use crate::conf::syntax;
use crate::conf::units::{Correlation, Cost, Decimal, thousandths};
use crate::frontier::policy::Policy;
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// A synthetic web on this machine that is crawled in place of the real one. With this section
    /// `sted crawl` starts the lab and resolves all names through it, so that it reaches nothing
    /// else; no contact is needed. `sted web` serves the lab alone, for other crawlers.
    lab: Lab {
        /// Directory of the files that the lab writes: ca.pem, its certificate authority; its
        /// manifest; its events.
        directory: PathBuf = "jobs/lab".into(), path(), [];

        /// Write the manifest: the expected outcome, requests and records of each URL.
        ///
        /// true takes time and disk space for large webs.
        manifest: bool = true, flag(), [];

        /// Events to log, as evidence of a polite crawl that doesn't come from the crawler.
        ///
        /// "requests" halves the speed of the lab; use "none" for measurements.
        events: Events = Events::None, events(), [];

        /// File with the public keys of crawlers, as "sted key show" prints them. The host
        /// "signatures" (web.hostile) answers requests signed by one of these keys, and asks for a
        /// signature otherwise.
        keys_file: Option<PathBuf> = None, path().or("none"), [];
    }
}

section! {
    /// The world that [compare] simulates around its web: the crawler's network link, faults, and a
    /// model of its CPU. Events wait while the CPU is busy.
    sim: Sim {
        /// Seed of all draws but those of the web.
        seed: u64 = 1, count(SEED), [];

        /// Bytes per second of the crawler's network link, over all connections.
        ///
        /// A slow link makes all policies alike; "none" is no limit.
        gateway: Option<u64> = None, size(RATE).or("none"), [];

        /// Bytes that a server sends before the first acknowledgement (RFC 6928: ten segments; in
        /// 2003 two).
        window_first: u32 = 14_600, size(512..=1 << 24), [];

        /// Largest number of bytes in flight on one connection.
        ///
        /// Small slows down large pages over long distances; it must not be less than window_first.
        window_max: u32 = 1 << 20, size(512..=1 << 30), [];

        /// Duration of a job, like a sync of the archive, on the side thread.
        job_time: Duration = 10 * MILLISECOND, time(Duration::ZERO..=MINUTE), [];

        /// Virtual time after which a crawl is ended with an error: it would never finish.
        time_max: Duration = 30 * DAY, time(SECOND..=3_650 * DAY), [];

        /// Share of windows in which a segment is lost: they arrive late, and the next ones are
        /// small.
        loss_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of responses that end in a connection reset.
        reset_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of connections that are refused.
        refusal_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of name lookups that fail.
        dns_failure_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of responses that never arrive.
        silence_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Virtual time after which there are no more faults.
        ///
        /// With "none" faults never end, and pages may be lost for good.
        faults_until: Option<Duration> = None, time(SECOND..=3_650 * DAY).or("none"), [];

        /// CPU time of one turn of the loop. With all costs at zero the CPU is infinitely fast;
        /// their sum limits the pages per second, however many connections are open.
        core_turn: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each open connection in a turn, as `select` has it.
        ///
        /// More than "0ns" makes a crawl slower the more connections it has.
        core_watch: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each connection opened.
        core_connect: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each TLS handshake.
        core_handshake: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each response, its request included.
        core_reply: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each link found.
        core_link: Cost = Cost::default(), core_cost(), [];

        /// CPU time for each byte received.
        core_byte: Cost = Cost::default(), byte_cost(), [];

        /// CPU time for each byte of text decoded, in addition.
        core_text_byte: Cost = Cost::default(), byte_cost(), [];
    }
}

section! {
    /// `sted compare`: crawls of one web under each policy, simulated or over sockets, and their
    /// curves side by side. Each combination of repeat, variant, value and policy is one crawl. No
    /// contact is needed: no one else's server is reached. Times and gains are relative to "bfs",
    /// or to the first policy in the list if "bfs" is not in it.
    compare: Compare {
        /// Directory of the results: report.html, the curves as .svg, summary.csv, paired.csv,
        /// series.csv, and the effective configuration.
        ///
        /// The results of an earlier comparison in it are overwritten. Crawls over sockets have
        /// their jobs in runs/ below it; sted refuses to start if that exists.
        directory: PathBuf = "jobs/compare".into(), path(), [];

        /// Policies to compare, in the order of tables and legends. "random" and
        /// "largest-site-first" are baselines.
        policies: Vec<Policy> = Policy::PAPER.into(), choices(&policies()), [];

        /// Where the crawls run: "simulation" in virtual time, "sockets" against the lab over
        /// loopback in real time.
        ///
        /// "sockets" takes the time of all crawls one after the other, on an otherwise idle
        /// machine.
        over: Over = Over::Simulation, overs(), [];

        /// Number of repeats, each with other seeds.
        ///
        /// 1 shows no spread: an apparent gain may be luck.
        repeats: u32 = 1, count(1..=1_000), [];

        /// Number added to the seeds of [web] and [sim] in the first repeat; each further repeat
        /// adds one more.
        seed: u64 = 0, count(SEED), [];

        /// Quality of the pages: "pagerank" of the whole web; "zipf", drawn at random; "topical",
        /// drawn along links; "crawl" is the one of [quality]. The first three are known to the
        /// crawls beforehand, unless [quality] has a source: then the crawls use that source, and
        /// are judged by this key. With the source "parent" they know the quality of a page once it
        /// is fetched.
        ///
        /// With "crawl" and a source that estimates, each policy is judged by its own estimates.
        quality: Worth = Worth::PageRank, worths(), [];

        /// Damping factor of PageRank: the share that follows links. The rest is spread over all
        /// pages.
        ///
        /// 0 makes all pages equal; near 1 takes long to compute.
        damping: Decimal = thousandths(850), decimal(0..=990), [];

        /// Sigma of the lognormal distribution of "topical" qualities.
        ///
        /// 0 makes all pages equal; with 1 the best tenth of the pages has 39% of all quality, with
        /// 2 it has 76%.
        topical_sigma: Decimal = thousandths(1_000), decimal(0..=2_000), [];

        /// Share of the variance of "topical" qualities by site: what all pages of a host have in
        /// common.
        topical_site_share: Decimal = thousandths(300), decimal(SHARE), [];

        /// Share of the variance by parent, the page that is the first to link to a page, on any
        /// host: what both have in common beyond the site. The rest of the variance is noise.
        ///
        /// 0 makes links say nothing about quality.
        topical_parent_share: Decimal = thousandths(200), decimal(SHARE), [];

        /// Correlation of a site's quality with the speed of its host, by rank: 1 makes the best
        /// sites the fastest, -1 the slowest. A host is fast if think time and round trip are
        /// short.
        topical_speed: Correlation = Correlation::default(), correlation(), [];

        /// Correlation of a site's quality with the number of its pages, by rank.
        topical_size: Correlation = Correlation::default(), correlation(), [];

        /// Share of all pages at which the counted time ends: when the policy that the others are
        /// relative to has fetched it. Areas and shares of time hang on it; seconds don't.
        ///
        /// Near 1 the few slowest servers make most of the time; low leaves out most of the crawl.
        counted_share: Decimal = thousandths(950), decimal(1..=1_000), [];

        /// Policy that the others are compared with repeat by repeat: differences, their intervals
        /// and a sign test.
        ///
        /// "auto" is the one that times and gains are relative to.
        against: Option<Policy> = None, choice(&policies()).or("auto"), [];

        /// Name of a variant whose crawl under `against` all others are compared with, too: one
        /// that crawls the same web. "own": crawls are compared within their variant only.
        against_variant: Option<String> = None,
            text("the name of a variant", |_| Ok(())).or("own"), [];

        /// Time between two samples of the curves.
        ///
        /// Short makes large files; long makes coarse curves.
        sample_period: Duration = SECOND, time(MILLISECOND..=HOUR), [];

        /// Variants of this configuration: a name, a colon, and the keys that differ, like
        /// "HTTP/1.1: pipeline.enabled=false". Each is crawled under each policy.
        ///
        /// The configuration without a change is compared only if it is listed: as a name alone.
        variants: Vec<Variant> = Vec::new(), variants(), [];

        /// Key that takes each of values in turn, like "connections.open_max": the x axis of a
        /// chart.
        across: Option<String> = None, text("section.key", syntax::key).or("none"), [];

        /// Values of that key, like [1, 2, 4] or ["100ms", "1s"].
        values: Vec<Value> = Vec::new(), list(value()), [];

        /// Number of simulated crawls at once.
        ///
        /// "auto" is one per core. Each takes the memory of its web.
        threads: Option<usize> = None, count(1..=1_024).or("auto"), [];

        /// Record the stream of URLs discovered by each crawl, for `sted cache`: in the directory
        /// of the comparison as VARIANT-VALUE-POLICY.trace, or over sockets in that of the crawl.
        ///
        /// It takes 12 bytes a link and 29 bytes a page.
        trace: bool = false, flag(), [];
    }
}

section! {
    /// `sted profile`: one crawl per number of open connections, to find at how many the CPU
    /// saturates and what it spends its time on. With [lab] its web is crawled, else the seeds of
    /// [job]. connections.open_max is ignored.
    profile: Profile {
        /// Directory of the results: report.html, the figures as .svg, steps.csv, and the effective
        /// configuration.
        ///
        /// The results of an earlier profile in it are overwritten, except its crawls in steps/:
        /// sted refuses to start if that exists.
        directory: PathBuf = "jobs/profile".into(), path(), [];

        /// Numbers of open connections, in increasing order: one step each.
        ///
        /// Few steps miss the knee of the curve; each doubling shows whether more connections help.
        connections: Vec<usize> = doublings(), list(count(1..=15_000)), [];

        /// Time measured at each step.
        ///
        /// Short measures noise; long needs a large web.
        step_time: Duration = 5 * SECOND, time(SECOND..=HOUR), [];

        /// Pages after which a step ends before its time.
        ///
        /// The same number of pages makes steps comparable if the web is uneven.
        step_pages: Option<u64> = None, count(1..=u64::MAX >> 1).or("none"), [];

        /// Time before the measurement starts at each step.
        ///
        /// "0s" measures the first lookups and connections, too.
        warm_up: Duration = SECOND, time(Duration::ZERO..=HOUR), [];

        /// Number of times all steps are measured, from the first to the last. The median and the
        /// spread are reported.
        ///
        /// 1 can't tell a difference from noise.
        repeats: u32 = 1, count(1..=1_000), [];
    }
}

/// The CPU time of an operation, up to ten seconds.
fn core_cost() -> Kind<Cost> {
    cost(Cost::from_picoseconds(10_000_000_000_000), Cost::from_picoseconds(1_000))
}

/// The CPU time of a byte, up to a millisecond.
fn byte_cost() -> Kind<Cost> {
    cost(Cost::from_picoseconds(1_000_000_000), Cost::from_picoseconds(1))
}

/// The powers of two from 1 to 256.
fn doublings() -> Vec<usize> {
    (0..=8).map(|power| 1 << power).collect()
}

fn variants() -> Kind<Vec<Variant>> {
    let allowed = "\"NAME: section.key=value, section.key=value\"";
    list(parsed(allowed, Variant::read, Variant::to_string))
}

fn events() -> Kind<Events> {
    choice(&[
        ("none", Events::None),
        ("connections", Events::Connections),
        ("requests", Events::Requests),
    ])
}

fn overs() -> Kind<Over> {
    choice(&[("simulation", Over::Simulation), ("sockets", Over::Sockets)])
}

fn worths() -> Kind<Worth> {
    choice(&[
        ("pagerank", Worth::PageRank),
        ("zipf", Worth::Zipf),
        ("topical", Worth::Topical),
        ("crawl", Worth::Crawl),
    ])
}

/// Events that the lab logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// No events: for measurements.
    None,
    /// Each connection opened and closed.
    Connections,
    /// Each request, too.
    Requests,
}

/// The world in which crawls are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The simulated world, in virtual time.
    Simulation,
    /// The lab web over loopback, in real time.
    Sockets,
}

/// The quality of pages in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The PageRank of the whole web, known before the crawl.
    PageRank,
    /// Zipf's law, drawn at random.
    Zipf,
    /// Drawn along links: pages resemble their site and the page that links to them.
    Topical,
    /// The quality that `[quality]` describes.
    Crawl,
}
