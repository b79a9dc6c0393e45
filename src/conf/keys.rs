//! Every key of the file, once: its name, its place, what it allows. The order is the URL's
//! journey, as in `conf/reference.toml`.

mod experiment;

use super::Conf;
use super::check;
use super::sections::{
    Burst, Coding, Connections, Digest, DiskFull, Fetch, Format, HostsFile, Identity, Job, Limits,
    Links, Marks, Memory, Names, Pipeline, Policy, Politeness, Qualities, Report, Retries,
    RobotsHtml, Schedule, Scheme, Scope, Site, Source, Span, State, Store, Tls, UrlKey,
};
use super::walk::Walk;
use crate::dns::Families;
use crate::dns::address::Block;
use std::ops::RangeInclusive;
use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;
const TIB: usize = 1 << 40;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Leads the walk past every key.
pub(super) fn walk(conf: &mut Conf, walk: &mut Walk<'_>) {
    job(&mut conf.job, walk);
    limits(&mut conf.limits, walk);
    identity(&mut conf.identity, walk);
    scope(&mut conf.scope, walk);
    url(&mut conf.url, walk);
    schedule(&mut conf.schedule, walk);
    quality(&mut conf.quality, walk);
    politeness(&mut conf.politeness, walk);
    retries(&mut conf.retries, walk);
    names(&mut conf.names, walk);
    connections(&mut conf.connections, walk);
    tls(&mut conf.tls, walk);
    pipeline(&mut conf.pipeline, walk);
    fetch(&mut conf.fetch, walk);
    links(&mut conf.links, walk);
    store(&mut conf.store, walk);
    memory(&mut conf.memory, walk);
    state(&mut conf.state, walk);
    report(&mut conf.report, walk);
    experiment::walk(conf, walk);
}

fn seconds(range: RangeInclusive<u64>) -> RangeInclusive<Duration> {
    Duration::from_secs(*range.start())..=Duration::from_secs(*range.end())
}

fn job(job: &mut Job, walk: &mut Walk<'_>) {
    walk.section("job");
    walk.text("name", &mut job.name, "1 to 64 letters, digits, '.', '_', '-'", check::name);
    walk.path("directory", &mut job.directory);
    let seed = |text: &str| check::seed(text).map(|()| text.to_owned());
    walk.list("seeds", &mut job.seeds, "a list of URLs", seed, String::clone);
    walk.optional_path("seeds_file", &mut job.seeds_file, "none");
    walk.flag("trace", &mut job.trace);
}

fn limits(limits: &mut Limits, walk: &mut Walk<'_>) {
    walk.section("limits");
    walk.count_or("pages_max", &mut limits.pages_max, "none", 1..=1_000_000_000_000);
    walk.size_or_none("bytes_max", &mut limits.bytes_max, 1..=1024 * TIB as u64);
    walk.time_or_none("time_max", &mut limits.time_max, SECOND..=3_650 * DAY);
}

fn identity(identity: &mut Identity, walk: &mut Walk<'_>) {
    walk.section("identity");
    walk.text("product", &mut identity.product, "letters, '_', '-'", check::product);
    walk.text("contact", &mut identity.contact, "a URL or a mail address", check::contact);
    let agent = &mut identity.user_agent;
    walk.optional_text("user_agent", agent, "auto", "header text", check::header_text);
    walk.optional_text("from", &mut identity.from, "none", "a mail address", check::mail);
}

fn scope(scope: &mut Scope, walk: &mut Walk<'_>) {
    let pattern = |text: &str| check::pattern(text).map(|()| text.to_owned());
    let host = |text: &str| check::host(text).map(|()| text.to_owned());
    let prefix = |text: &str| check::absolute(text).map(|()| text.to_owned());
    let spans = [
        ("any", Span::Any),
        ("host", Span::Host),
        ("domain", Span::Domain),
        ("prefix", Span::Prefix),
    ];
    walk.section("scope");
    walk.choice("span", &mut scope.span, &spans);
    walk.list("hosts", &mut scope.hosts, "a list of host names", host, String::clone);
    walk.list("domains", &mut scope.domains, "a list of domain names", host, String::clone);
    walk.list("prefixes", &mut scope.prefixes, "a list of absolute URLs", prefix, String::clone);
    let schemes = [("http", Scheme::Http), ("https", Scheme::Https)];
    walk.choices("schemes", &mut scope.schemes, &schemes);
    walk.count_or("depth_max", &mut scope.depth_max, "none", 0..=1_000_000);
    walk.size("url_bytes_max", &mut scope.url_bytes_max, 64..=64 * KIB);
    let patterns = "a list of regular expressions";
    walk.list("include", &mut scope.include, patterns, pattern, String::clone);
    walk.list("exclude", &mut scope.exclude, patterns, pattern, String::clone);
    walk.count("segment_repeats_max", &mut scope.segment_repeats_max, 1..=1_000);
    walk.count("path_depth_max", &mut scope.path_depth_max, 1..=1_000);
    walk.count("query_params_max", &mut scope.query_params_max, 0..=1_000);
}

fn url(url: &mut UrlKey, walk: &mut Walk<'_>) {
    let param = |text: &str| check::param(text).map(|()| text.to_owned());
    let segment = |text: &str| check::segment(text).map(|()| text.to_owned());
    let params = "a list of parameter names, '*' at the end for any ending";
    walk.section("url");
    walk.flag("sort_query", &mut url.sort_query);
    walk.list("drop_params", &mut url.drop_params, params, param, String::clone);
    walk.flag("drop_sessions", &mut url.drop_sessions);
    walk.list("drop_path_params", &mut url.drop_path_params, params, param, String::clone);
    let segments = "a list of path segments";
    walk.list("drop_index", &mut url.drop_index, segments, segment, String::clone);
    walk.flag("drop_trailing_slash", &mut url.drop_trailing_slash);
    walk.flag("drop_www", &mut url.drop_www);
    walk.flag("merge_schemes", &mut url.merge_schemes);
}

fn schedule(schedule: &mut Schedule, walk: &mut Walk<'_>) {
    walk.section("schedule");
    walk.choice("policy", &mut schedule.policy, &policies());
    walk.decimal("smoothing", &mut schedule.smoothing, 0..=990);
    walk.decimal("speedup", &mut schedule.speedup, 1_000..=100_000);
    let times = Duration::from_millis(1)..=60 * SECOND;
    walk.time("connect_time_new", &mut schedule.connect_time_new, times.clone());
    walk.time("response_time_new", &mut schedule.response_time_new, times);
}

fn policies() -> [(&'static str, Policy); 4] {
    Policy::ALL.map(|policy| (policy.name(), policy))
}

fn quality(quality: &mut Qualities, walk: &mut Walk<'_>) {
    let sources = [
        ("uniform", Source::Uniform),
        ("zipf", Source::Zipf),
        ("file", Source::Table),
        ("inlinks", Source::Inlinks),
        ("opic", Source::Opic),
    ];
    walk.section("quality");
    walk.choice("source", &mut quality.source, &sources);
    walk.optional_path("file", &mut quality.file, "none");
    walk.decimal("unlisted", &mut quality.unlisted, 0..=1_000_000);
    walk.count("zipf_seed", &mut quality.zipf_seed, 0..=i64::MAX as u64);
    walk.count("zipf_pages", &mut quality.zipf_pages, 1..=1_000_000_000_000);
    walk.decimal("zipf_exponent", &mut quality.zipf_exponent, 100..=2_000);
    let sites = [("server", Site::Server), ("domain", Site::Domain)];
    walk.choice("site", &mut quality.site, &sites);
    walk.count("sites_max", &mut quality.sites_max, 1_000..=100_000_000);
}

fn politeness(politeness: &mut Politeness, walk: &mut Walk<'_>) {
    let mut requests = match politeness.burst {
        Burst::Requests(count) => Some(count),
        Burst::Server => None,
    };
    walk.section("politeness");
    walk.count_or("burst", &mut requests, "server", 1..=1_000);
    politeness.burst = requests.map_or(Burst::Server, Burst::Requests);
    walk.time("delay", &mut politeness.delay, Duration::ZERO..=DAY);
    walk.decimal("delay_factor", &mut politeness.delay_factor, 0..=1_000_000);
    walk.time("delay_max", &mut politeness.delay_max, Duration::ZERO..=DAY);
    walk.flag("robots", &mut politeness.robots);
    let html = [("allow", RobotsHtml::Allow), ("unreachable", RobotsHtml::Unreachable)];
    walk.choice("robots_html", &mut politeness.robots_html, &html);
    walk.time("robots_ttl", &mut politeness.robots_ttl, seconds(60..=86_400));
    walk.time("robots_retry_wait", &mut politeness.robots_retry_wait, SECOND..=DAY);
    walk.time("robots_unreachable_max", &mut politeness.robots_unreachable_max, HOUR..=365 * DAY);
    walk.time("crawl_delay_max", &mut politeness.crawl_delay_max, Duration::ZERO..=DAY);
    walk.count("address_visits_max", &mut politeness.address_visits_max, 1..=100_000);
    walk.time("address_delay", &mut politeness.address_delay, Duration::ZERO..=HOUR);
    walk.count("domain_visits_max", &mut politeness.domain_visits_max, 1..=100_000);
    walk.time("domain_delay", &mut politeness.domain_delay, Duration::ZERO..=HOUR);
}

fn retries(retries: &mut Retries, walk: &mut Walk<'_>) {
    walk.section("retries");
    walk.count("retries_max", &mut retries.retries_max, 0..=100);
    walk.time("retry_wait", &mut retries.retry_wait, SECOND..=DAY);
    walk.decimal("retry_factor", &mut retries.retry_factor, 1_000..=100_000);
    walk.time("retry_wait_max", &mut retries.retry_wait_max, SECOND..=30 * DAY);
    walk.time("retry_after_max", &mut retries.retry_after_max, SECOND..=30 * DAY);
    walk.count("server_failures_max", &mut retries.server_failures_max, 1..=255);
    walk.time("outage_max", &mut retries.outage_max, SECOND..=365 * DAY);
}

fn names(names: &mut Names, walk: &mut Walk<'_>) {
    let families = [
        ("ipv4-then-ipv6", Families::Ipv4ThenIpv6),
        ("ipv6-then-ipv4", Families::Ipv6ThenIpv4),
        ("ipv4", Families::Ipv4),
        ("ipv6", Families::Ipv6),
    ];
    walk.section("names");
    let servers = "a list of addresses, with a port or without";
    walk.list("servers", &mut names.servers, servers, check::server, ToString::to_string);
    let hosts_file = &mut names.hosts_file;
    walk.parsed("hosts_file", hosts_file, HostsFile::ALLOWED, HostsFile::read, HostsFile::show);
    walk.flag("mixed_case", &mut names.mixed_case);
    walk.time("timeout", &mut names.timeout, Duration::from_millis(100)..=60 * SECOND);
    walk.count("tries", &mut names.tries, 1..=10);
    walk.count("in_flight_max", &mut names.in_flight_max, 1..=10_000);
    walk.count("names_max", &mut names.names_max, 1_000..=100_000_000);
    walk.time("ttl_min", &mut names.ttl_min, Duration::ZERO..=DAY);
    walk.time("ttl_max", &mut names.ttl_max, SECOND..=30 * DAY);
    walk.time("negative_ttl", &mut names.negative_ttl, SECOND..=7 * DAY);
    walk.time("failure_ttl", &mut names.failure_ttl, SECOND..=DAY);
    walk.choice("families", &mut names.families, &families);
}

fn connections(connections: &mut Connections, walk: &mut Walk<'_>) {
    walk.section("connections");
    walk.count("open_max", &mut connections.open_max, 1..=60_000);
    walk.time("idle_timeout", &mut connections.idle_timeout, seconds(0..=3_600));
    walk.time("connect_timeout", &mut connections.connect_timeout, seconds(1..=600));
    walk.time("tls_timeout", &mut connections.tls_timeout, seconds(1..=600));
    walk.time("head_timeout", &mut connections.head_timeout, seconds(1..=3_600));
    walk.time("body_timeout", &mut connections.body_timeout, seconds(1..=3_600));
    walk.time("fetch_timeout", &mut connections.fetch_timeout, SECOND..=DAY);
    walk.time("stop_timeout", &mut connections.stop_timeout, seconds(0..=3_600));
    let ranges = "a list of address ranges";
    let allowed = &mut connections.addresses_allowed;
    walk.list("addresses_allowed", allowed, ranges, Block::read, Block::to_string);
    let refused = &mut connections.addresses_refused;
    walk.list("addresses_refused", refused, ranges, Block::read, Block::to_string);
    let per_turn = &mut connections.read_bytes_per_turn;
    walk.size("read_bytes_per_turn", per_turn, 4 * KIB..=16 * MIB);
}

fn tls(tls: &mut Tls, walk: &mut Walk<'_>) {
    walk.section("tls");
    walk.flag("verify", &mut tls.verify);
    walk.optional_path("roots_file", &mut tls.roots_file, "built-in");
    walk.count("sessions_max", &mut tls.sessions_max, 0..=10_000_000);
    let handshake = &mut tls.handshake_bytes_max;
    walk.size("handshake_bytes_max", handshake, 4 * KIB..=256 * KIB);
    walk.flag("post_quantum", &mut tls.post_quantum);
}

fn pipeline(pipeline: &mut Pipeline, walk: &mut Walk<'_>) {
    walk.section("pipeline");
    walk.flag("enabled", &mut pipeline.enabled);
    walk.count("depth_max", &mut pipeline.depth_max, 1..=64);
    walk.count("allowance_new", &mut pipeline.allowance_new, 1..=10_000);
    walk.count("probation", &mut pipeline.probation, 0..=100);
}

fn fetch(fetch: &mut Fetch, walk: &mut Walk<'_>) {
    let header = |text: &str| check::header(text).map(|()| text.to_owned());
    let codings = [
        ("gzip", Coding::Gzip),
        ("br", Coding::Brotli),
        ("zstd", Coding::Zstd),
        ("deflate", Coding::Deflate),
    ];
    walk.section("fetch");
    walk.size("head_bytes_max", &mut fetch.head_bytes_max, KIB..=MIB);
    walk.count("fields_max", &mut fetch.fields_max, 16..=4_096);
    walk.size("body_bytes_max", &mut fetch.body_bytes_max, KIB..=GIB);
    walk.size("decoded_bytes_max", &mut fetch.decoded_bytes_max, KIB..=GIB);
    walk.count("redirects_max", &mut fetch.redirects_max, 0..=100);
    walk.flag("cookies", &mut fetch.cookies);
    walk.choices("codings", &mut fetch.codings, &codings);
    walk.text("accept", &mut fetch.accept, "header text", check::header_text);
    let headers = "a list of header fields, \"Name: value\"";
    walk.list("headers", &mut fetch.headers, headers, header, String::clone);
    walk.size("work_bytes_per_turn", &mut fetch.work_bytes_per_turn, 16 * KIB..=64 * MIB);
}

fn links(links: &mut Links, walk: &mut Walk<'_>) {
    let marks = [("obey", Marks::Obey), ("ignore", Marks::Ignore)];
    walk.section("links");
    walk.flag("embedded", &mut links.embedded);
    walk.flag("forms", &mut links.forms);
    walk.choice("nofollow", &mut links.nofollow, &marks);
    walk.choice("robots_meta", &mut links.robots_meta, &marks);
    walk.count("links_max", &mut links.links_max, 0..=1_000_000);
}

fn store(store: &mut Store, walk: &mut Walk<'_>) {
    walk.section("store");
    walk.choice("format", &mut store.format, &[("warc", Format::Warc), ("none", Format::None)]);
    walk.text("prefix", &mut store.prefix, "1 to 64 letters, digits, '.', '_', '-'", check::name);
    walk.count("gzip_level", &mut store.gzip_level, 0..=12);
    walk.size("file_bytes_max", &mut store.file_bytes_max, MIB as u64..=TIB as u64);
    let digests = [("sha1", Digest::Sha1), ("sha256", Digest::Sha256)];
    walk.choice("digest", &mut store.digest, &digests);
    walk.flag("requests", &mut store.requests);
    walk.flag("robots", &mut store.robots);
    walk.count("revisits_max", &mut store.revisits_max, 0..=100_000_000);
    walk.size("log_bytes_max", &mut store.log_bytes_max, MIB as u64..=TIB as u64);
    walk.size("verify_bytes_max", &mut store.verify_bytes_max, MIB as u64..=1_024 * TIB as u64);
    walk.time("sync_period", &mut store.sync_period, Duration::from_millis(100)..=HOUR);
    walk.size("buffer_bytes", &mut store.buffer_bytes, 64 * KIB..=64 * MIB);
}

fn state(state: &mut State, walk: &mut Walk<'_>) {
    walk.section("state");
    walk.flag("keep", &mut state.keep);
    walk.time("checkpoint_period", &mut state.checkpoint_period, SECOND..=DAY);
    let choices = [("wait", DiskFull::Wait), ("stop", DiskFull::Stop)];
    walk.choice("disk_full", &mut state.disk_full, &choices);
    walk.time("disk_full_wait", &mut state.disk_full_wait, Duration::from_millis(1)..=HOUR);
}

fn memory(memory: &mut Memory, walk: &mut Walk<'_>) {
    walk.section("memory");
    walk.size("buffers", &mut memory.buffers, MIB..=TIB);
    walk.size("queues", &mut memory.queues, MIB..=TIB);
    walk.count("urls_max", &mut memory.urls_max, 1_000..=100_000_000_000);
    walk.count("urls_per_server_max", &mut memory.urls_per_server_max, 1..=4_000_000_000);
    walk.size("seen", &mut memory.seen, MIB..=TIB);
    walk.count("cache_entries", &mut memory.cache_entries, 1..=1 << 32);
    walk.count("seen_max", &mut memory.seen_max, 1_000..=100_000_000_000);
    walk.count("servers_max", &mut memory.servers_max, 1..=4_000_000_000);
    let per_domain = &mut memory.servers_per_domain_max;
    walk.count("servers_per_domain_max", per_domain, 1..=4_000_000_000);
    walk.size("robots", &mut memory.robots, MIB..=TIB);
}

fn report(report: &mut Report, walk: &mut Walk<'_>) {
    walk.section("report");
    walk.time("progress_period", &mut report.progress_period, SECOND..=HOUR);
}
