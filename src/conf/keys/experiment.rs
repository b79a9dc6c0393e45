//! The keys of webs of one's own and of what is done with them: `[lab]`, `[web]`, `[sim]`,
//! `[compare]`; and of `[profile]`, which may be of any web.

use super::{DAY, HOUR, SECOND, policies, seconds};
use crate::conf::compare::{Compare, Over, Variant, Worth};
use crate::conf::profile::Profile;
use crate::conf::sim::Sim;
use crate::conf::units::Cost;
use crate::conf::walk::Walk;
use crate::conf::web::{Allowance, Events, Lab, Preset, Web};
use crate::conf::{Conf, check};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Leads the walk past the keys of what there is.
pub(super) fn walk(conf: &mut Conf, walk: &mut Walk<'_>) {
    walk.optional_section("lab", &mut conf.lab);
    if let Some(section) = &mut conf.lab {
        lab(section, walk);
    }
    walk.optional_section("compare", &mut conf.compare);
    if conf.is_experiment() {
        web(&mut conf.web, walk);
    }
    if let Some(section) = &mut conf.compare {
        sim(&mut conf.sim, walk);
        compare(section, walk);
    }
    walk.optional_section("profile", &mut conf.profile);
    if let Some(section) = &mut conf.profile {
        profile(section, walk);
    }
}

fn profile(profile: &mut Profile, walk: &mut Walk<'_>) {
    walk.path("directory", &mut profile.directory);
    walk.counts("connections", &mut profile.connections, 1..=15_000);
    walk.time("step_time", &mut profile.step_time, SECOND..=HOUR);
    walk.count_or("step_pages", &mut profile.step_pages, "none", 1..=u64::MAX >> 1);
    walk.time("warm_up", &mut profile.warm_up, Duration::ZERO..=HOUR);
    walk.count("repeats", &mut profile.repeats, 1..=1_000);
}

fn lab(lab: &mut Lab, walk: &mut Walk<'_>) {
    let events = [
        ("none", Events::None),
        ("connections", Events::Connections),
        ("requests", Events::Requests),
    ];
    walk.path("directory", &mut lab.directory);
    walk.flag("manifest", &mut lab.manifest);
    walk.choice("events", &mut lab.events, &events);
}

fn web(web: &mut Web, walk: &mut Walk<'_>) {
    let presets = [
        ("plain", Preset::Plain),
        ("quickstart", Preset::Quickstart),
        ("bench", Preset::Bench),
        ("hostile", Preset::Hostile),
        ("2003", Preset::Of2003),
        ("2025", Preset::Of2025),
    ];
    let before = web.preset;
    walk.section("web");
    walk.choice("preset", &mut web.preset, &presets);
    if web.preset != before {
        *web = Web::of(web.preset);
    }
    web_shape(web, walk);
    web_pages(web, walk);
    web_times(web, walk);
    web_manners(web, walk);
}

/// Largest sigma of a lognormal, in thousandths: beyond it draws are all or nothing.
const SIGMA_MAX: u32 = 5_000;
/// Shares are from 0 to 1, in thousandths.
const SHARE: RangeInclusive<u32> = 0..=1_000;
/// Seeds leave room for what repeats add.
const SEED: RangeInclusive<u64> = 0..=1_000_000_000_000_000;
/// Bytes per second.
const RATE: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

fn web_shape(web: &mut Web, walk: &mut Walk<'_>) {
    walk.optional_path("graph", &mut web.graph, "none");
    walk.count("seed", &mut web.seed, SEED);
    walk.count("hosts", &mut web.hosts, 0..=10_000_000);
    walk.count("seeds", &mut web.seeds, 1..=10_000_000);
    walk.count("pages", &mut web.pages, 1..=1_000_000_000);
    walk.decimal("pages_sigma", &mut web.pages_sigma, 0..=SIGMA_MAX);
    walk.count("hosts_per_domain", &mut web.hosts_per_domain, 1..=1_000_000);
    walk.count("hosts_per_address", &mut web.hosts_per_address, 1..=1_000_000);
    walk.count("fanout", &mut web.fanout, 1..=1_000);
    walk.count("host_fanout", &mut web.host_fanout, 1..=1_000);
    walk.count("links_per_page", &mut web.links_per_page, 0..=10_000);
    walk.decimal("links_sigma", &mut web.links_sigma, 0..=SIGMA_MAX);
    walk.decimal("locality", &mut web.locality, SHARE);
    walk.count("link_skew", &mut web.link_skew, 1..=10);
    walk.flag("easy", &mut web.easy);
    walk.decimal("odd_links_share", &mut web.odd_links_share, SHARE);
    walk.decimal("noise_share", &mut web.noise_share, SHARE);
}

fn web_pages(web: &mut Web, walk: &mut Walk<'_>) {
    walk.size("page_bytes", &mut web.page_bytes, 0..=16 << 20);
    walk.decimal("page_bytes_sigma", &mut web.page_bytes_sigma, 0..=SIGMA_MAX);
    walk.decimal("not_found_share", &mut web.not_found_share, SHARE);
    walk.decimal("server_error_share", &mut web.server_error_share, SHARE);
    walk.decimal("redirect_share", &mut web.redirect_share, SHARE);
    walk.decimal("duplicate_share", &mut web.duplicate_share, SHARE);
    walk.decimal("binary_share", &mut web.binary_share, SHARE);
}

fn web_times(web: &mut Web, walk: &mut Walk<'_>) {
    walk.time("think_time", &mut web.think_time, seconds(0..=60));
    walk.decimal("think_time_sigma", &mut web.think_time_sigma, 0..=SIGMA_MAX);
    walk.decimal("think_jitter", &mut web.think_jitter, 0..=SIGMA_MAX);
    walk.time("round_trip", &mut web.round_trip, seconds(0..=60));
    walk.decimal("round_trip_sigma", &mut web.round_trip_sigma, 0..=SIGMA_MAX);
    walk.decimal("round_trip_jitter", &mut web.round_trip_jitter, 0..=SIGMA_MAX);
    walk.time("accept_time", &mut web.accept_time, seconds(0..=60));
    walk.decimal("accept_time_sigma", &mut web.accept_time_sigma, 0..=SIGMA_MAX);
    walk.time("name_time", &mut web.name_time, seconds(0..=60));
    walk.decimal("name_time_sigma", &mut web.name_time_sigma, 0..=SIGMA_MAX);
    walk.size_or_none("rate", &mut web.rate, RATE);
    walk.decimal("rate_sigma", &mut web.rate_sigma, 0..=SIGMA_MAX);
    walk.decimal("coded_ratio", &mut web.coded_ratio, 1_000..=100_000);
}

fn web_manners(web: &mut Web, walk: &mut Walk<'_>) {
    let allowances = "a list of \"REQUESTS for SHARE\"";
    let place = &mut web.requests_per_connection;
    walk.list("requests_per_connection", place, allowances, Allowance::read, Allowance::to_string);
    walk.decimal("silent_close_share", &mut web.silent_close_share, SHARE);
    walk.decimal("muddled_share", &mut web.muddled_share, SHARE);
    walk.time("idle_time", &mut web.idle_time, SECOND..=HOUR);
    walk.decimal("http10_share", &mut web.http10_share, SHARE);
    walk.decimal("tls_share", &mut web.tls_share, SHARE);
    walk.decimal("chunked_share", &mut web.chunked_share, SHARE);
    walk.decimal("gzip_share", &mut web.gzip_share, SHARE);
    walk.decimal("brotli_share", &mut web.brotli_share, SHARE);
    walk.decimal("zstd_share", &mut web.zstd_share, SHARE);
    walk.decimal("deflate_share", &mut web.deflate_share, SHARE);
    walk.decimal("robots_allow_share", &mut web.robots_allow_share, SHARE);
    walk.decimal("robots_part_share", &mut web.robots_part_share, SHARE);
    walk.decimal("robots_delay_share", &mut web.robots_delay_share, SHARE);
    walk.decimal("robots_deny_share", &mut web.robots_deny_share, SHARE);
    walk.time("crawl_delay", &mut web.crawl_delay, Duration::ZERO..=HOUR);
    let hostile = |text: &str| check::hostile(text).map(|()| text.to_owned());
    let kinds = "a list of kinds, or \"quick\", \"all\"";
    walk.list("hostile", &mut web.hostile, kinds, hostile, String::clone);
}

fn sim(sim: &mut Sim, walk: &mut Walk<'_>) {
    walk.section("sim");
    walk.count("seed", &mut sim.seed, SEED);
    walk.size_or_none("gateway", &mut sim.gateway, RATE);
    walk.size("window_first", &mut sim.window_first, 512..=1 << 24);
    walk.size("window_max", &mut sim.window_max, 512..=1 << 30);
    walk.time("job_time", &mut sim.job_time, seconds(0..=60));
    walk.time("time_max", &mut sim.time_max, SECOND..=3_650 * DAY);
    walk.decimal("loss_share", &mut sim.loss_share, SHARE);
    walk.decimal("reset_share", &mut sim.reset_share, SHARE);
    walk.decimal("refusal_share", &mut sim.refusal_share, SHARE);
    walk.decimal("dns_failure_share", &mut sim.dns_failure_share, SHARE);
    walk.decimal("silence_share", &mut sim.silence_share, SHARE);
    walk.time_or_none("faults_until", &mut sim.faults_until, SECOND..=3_650 * DAY);
    for (name, place) in [
        ("core_turn", &mut sim.core_turn),
        ("core_watch", &mut sim.core_watch),
        ("core_connect", &mut sim.core_connect),
        ("core_handshake", &mut sim.core_handshake),
        ("core_reply", &mut sim.core_reply),
        ("core_link", &mut sim.core_link),
    ] {
        walk.cost(name, place, FREE..=COST_MAX, Cost::NANOSECOND);
    }
    let finest = Cost::from_picoseconds(1);
    for (name, place) in
        [("core_byte", &mut sim.core_byte), ("core_text_byte", &mut sim.core_text_byte)]
    {
        walk.cost(name, place, FREE..=BYTE_COST_MAX, finest);
    }
}

/// What takes no time.
const FREE: Cost = Cost::from_picoseconds(0);
/// Ten seconds.
const COST_MAX: Cost = Cost::from_picoseconds(10_000_000_000_000);
/// A millisecond.
const BYTE_COST_MAX: Cost = Cost::from_picoseconds(1_000_000_000);

fn compare(compare: &mut Compare, walk: &mut Walk<'_>) {
    let worlds = [("simulation", Over::Simulation), ("sockets", Over::Sockets)];
    let worths = [("pagerank", Worth::PageRank), ("zipf", Worth::Zipf), ("crawl", Worth::Crawl)];
    walk.section("compare");
    walk.path("directory", &mut compare.directory);
    walk.choices("policies", &mut compare.policies, &policies());
    walk.choice("over", &mut compare.over, &worlds);
    walk.count("repeats", &mut compare.repeats, 1..=1_000);
    walk.count("seed", &mut compare.seed, SEED);
    walk.choice("quality", &mut compare.quality, &worths);
    walk.decimal("damping", &mut compare.damping, 0..=990);
    let periods = Duration::from_millis(1)..=HOUR;
    walk.time("sample_period", &mut compare.sample_period, periods);
    let variants = "a list of \"NAME: section.key=value, section.key=value\"";
    walk.list("variants", &mut compare.variants, variants, Variant::read, Variant::to_string);
    let key = |text: &str| check::key(text);
    walk.optional_text("across", &mut compare.across, "none", "section.key", key);
    walk.values("values", &mut compare.values, "a list of values of that key");
    walk.count_or("threads", &mut compare.threads, "auto", 1..=1_024);
    walk.flag("trace", &mut compare.trace);
}
