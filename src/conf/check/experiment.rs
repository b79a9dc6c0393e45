//! Finds contradictions in the sections of experiments: `[lab]`, `[web]`, `[sim]`, `[compare]`,
//! `[profile]`.

use super::Reporter;
use crate::conf::units::show_size;
use crate::conf::{Compare, Conf, Decimal, Hostile, HostsFile, Over, Source, Web, Worth};
use std::time::Duration;

/// Reports sections that have no effect. `named` has two values: whether the file has the section
/// `[web]`, and whether it has `[sim]`.
pub(super) fn unused(conf: &Conf, named: [bool; 2], clash: &mut Reporter<'_>) {
    let [web, sim] = named;
    clash(
        web && !conf.is_experiment(),
        &["web"],
        "nothing serves this web; add [lab] or [compare], or remove [web]",
    );
    clash(
        sim && conf.compare.is_none(),
        &["sim"],
        "nothing is simulated; add [compare], or remove [sim]",
    );
}

/// Checks the rules for a crawl of a synthetic web.
pub(super) fn whole(conf: &Conf, clash: &mut Reporter<'_>) {
    places(conf, clash);
    graph(conf, clash);
    shape(&conf.web, clash);
    shares(&conf.web, clash);
    if let Some(section) = &conf.compare {
        endless(conf, clash);
        sim(conf, clash);
        compare(conf, section, clash);
        topical(&conf.web, section, clash);
    }
}

fn places(conf: &Conf, clash: &mut Reporter<'_>) {
    let foreign = conf.job.seeds.iter().find(|seed| !is_lab_name(seed));
    if let Some(seed) = foreign {
        let text = format!(
            "{seed:?} is not in the synthetic web, whose names end in .test; remove seeds to start \
             at its own, or remove [lab] and [compare]"
        );
        clash(true, &["job.seeds"], &text);
    }
    let text = "the synthetic web resolves its own names; remove this key, or [lab] and [compare]";
    clash(!conf.names.servers.is_empty(), &["names.servers"], text);
    clash(matches!(conf.names.hosts_file, HostsFile::File(_)), &["names.hosts_file"], text);
}

fn is_lab_name(seed: &str) -> bool {
    let seed = if seed.contains("://") { seed.to_owned() } else { format!("http://{seed}") };
    let host = url::Url::parse(&seed).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host.ends_with(".test"))
}

fn graph(conf: &Conf, clash: &mut Reporter<'_>) {
    let over_sockets = conf.compare.as_ref().is_none_or(|compare| compare.over == Over::Sockets);
    clash(
        conf.web.graph.is_some() && over_sockets,
        &["web.graph", "compare.over"],
        "the lab serves generated webs only; write graph = \"none\", or compare in simulation",
    );
    clash(
        conf.web.graph.is_some() && !conf.web.hostile.is_empty(),
        &["web.hostile", "web.graph"],
        "a web from a graph has no hostile hosts; write hostile = []",
    );
    clash(
        conf.web.hosts_file.is_some() && conf.web.graph.is_none(),
        &["web.hosts_file", "web.graph"],
        "there is no graph whose hosts it could list; name it in graph, or remove this key",
    );
}

/// Checks that a crawl with an endless host has a limit, because each level of links doubles its
/// pages.
fn endless(conf: &Conf, clash: &mut Reporter<'_>) {
    const DEPTH_MAX: u32 = 16;
    let ends = conf.limits.pages_max.is_some()
        || conf.limits.pages_per_server_max.is_some()
        || conf.limits.bytes_max.is_some()
        || conf.limits.time_max.is_some()
        || conf.scope.depth_max.is_some_and(|depth| depth <= DEPTH_MAX);
    clash(
        [Hostile::EndlessLinks, Hostile::Babble].iter().any(|kind| conf.web.names(*kind)) && !ends,
        &["web.hostile", "limits.pages_max", "scope.depth_max", "web.preset"],
        "a crawl of endless-links or babble never ends; set limits.pages_max, \
         limits.pages_per_server_max, limits.time_max, or scope.depth_max = 12",
    );
}

fn shape(web: &Web, clash: &mut Reporter<'_>) {
    clash(
        web.hosts == 0 && web.hostile.is_empty(),
        &["web.hosts", "web.hostile"],
        "the web has no host; set hosts or hostile",
    );
    let text = format!("{} is less than hosts, {}: each host needs a page", web.pages, web.hosts);
    clash(web.graph.is_none() && web.pages < web.hosts, &["web.pages", "web.hosts"], &text);
}

/// Checks that the shares of each group of exclusive choices add up to at most one.
fn shares(web: &Web, clash: &mut Reporter<'_>) {
    let mut choice = |keys: &'static [&'static str], shares: &[Decimal]| {
        let total = shares.iter().fold(0_u32, |sum, each| sum.saturating_add(each.thousandths()));
        let text = format!(
            "the shares add up to {}, more than 1; lower one of them",
            Decimal::from_thousandths(total)
        );
        clash(total > 1_000, keys, &text);
    };
    choice(
        &["web.gzip_share", "web.brotli_share", "web.zstd_share", "web.deflate_share"],
        &[web.gzip_share, web.brotli_share, web.zstd_share, web.deflate_share],
    );
    choice(
        &[
            "web.robots_allow_share",
            "web.robots_part_share",
            "web.robots_delay_share",
            "web.robots_deny_share",
        ],
        &[
            web.robots_allow_share,
            web.robots_part_share,
            web.robots_delay_share,
            web.robots_deny_share,
        ],
    );
    choice(
        &[
            "web.not_found_share",
            "web.server_error_share",
            "web.redirect_share",
            "web.binary_share",
        ],
        &[web.not_found_share, web.server_error_share, web.redirect_share, web.binary_share],
    );
    let allowances: Vec<Decimal> =
        web.requests_per_connection.iter().map(|each| each.share).collect();
    choice(&["web.requests_per_connection"], &allowances);
}

fn sim(conf: &Conf, clash: &mut Reporter<'_>) {
    let sim = &conf.sim;
    let text = format!(
        "{} is less than window_first, {}",
        show_size(sim.window_max.into()),
        show_size(sim.window_first.into())
    );
    clash(sim.window_max < sim.window_first, &["sim.window_max", "sim.window_first"], &text);
    let faults: [(&'static [&'static str], Decimal); 5] = [
        (&["sim.loss_share", "sim.faults_until"], sim.loss_share),
        (&["sim.reset_share", "sim.faults_until"], sim.reset_share),
        (&["sim.refusal_share", "sim.faults_until"], sim.refusal_share),
        (&["sim.dns_failure_share", "sim.faults_until"], sim.dns_failure_share),
        (&["sim.silence_share", "sim.faults_until"], sim.silence_share),
    ];
    for (keys, share) in faults {
        let is_endless = share.thousandths() >= 1_000 && sim.faults_until.is_none();
        let text = "nothing would ever succeed; write less than 1, or set faults_until";
        clash(is_endless, keys, text);
    }
}

fn compare(conf: &Conf, compare: &Compare, clash: &mut Reporter<'_>) {
    let text = "nothing to compare; write policies = [\"bfs\", \"capability\"]";
    clash(compare.policies.is_empty(), &["compare.policies"], text);
    clash(
        compare.across.is_some() && compare.values.is_empty(),
        &["compare.values", "compare.across"],
        "missing: the values of the key across; write them, or across = \"none\"",
    );
    clash(
        compare.across.is_none() && !compare.values.is_empty(),
        &["compare.values", "compare.across"],
        "no key takes these values; name one in across, or remove them",
    );
    clash(
        compare.against.is_some_and(|against| !compare.policies.contains(&against)),
        &["compare.against", "compare.policies"],
        "this policy is not compared; add it to policies, or write against = \"auto\"",
    );
    let twice = repeated(compare.values.iter().map(|value| value.name()));
    let text = format!("{:?} is in the list twice; remove one", twice.unwrap_or_default());
    clash(twice.is_some(), &["compare.values"], &text);
    let twice = repeated(compare.variants.iter().map(|variant| variant.name.as_str()));
    let text = format!("two variants have the name {:?}; rename one", twice.unwrap_or_default());
    clash(twice.is_some(), &["compare.variants"], &text);
    let is_over_sockets = compare.over == Over::Sockets;
    let is_estimate = conf.quality.source != Source::Uniform && compare.quality != Worth::Crawl;
    clash(
        is_over_sockets && is_estimate,
        &["quality.source", "compare.quality", "compare.over"],
        "over sockets the quality of the pages of such a crawl is unknown; compare in simulation, \
         write compare.quality = \"crawl\" to use the crawl's own estimates, or remove source",
    );
    clash(
        conf.quality.source == Source::Command,
        &["quality.source", "compare.quality"],
        "no program scores pages in a comparison; write source = \"parent\", with which crawls \
         know the quality of a page when it is fetched",
    );
    clash(
        is_over_sockets && compare.threads.is_some_and(|threads| threads > 1),
        &["compare.threads", "compare.over"],
        "crawls over sockets run one at a time, because they are timed; remove this key",
    );
}

/// Checks that qualities can have the wanted shares and correlations.
fn topical(web: &Web, compare: &Compare, clash: &mut Reporter<'_>) {
    let (site, parent) = (compare.topical_site_share, compare.topical_parent_share);
    let total = site.thousandths() + parent.thousandths();
    let text = format!(
        "the shares add up to {}, more than 1; lower one of them",
        Decimal::from_thousandths(total)
    );
    clash(total > 1_000, &["compare.topical_site_share", "compare.topical_parent_share"], &text);
    let (speed, size) = (compare.topical_speed.thousandths(), compare.topical_size.thousandths());
    let text = "nothing correlates so much with both: the squares of topical_speed and \
                topical_size add up to more than 1; bring one of them nearer to 0";
    let too_much = speed * speed + size * size > 1_000_000;
    clash(too_much, &["compare.topical_speed", "compare.topical_size"], text);
    if compare.quality != Worth::Topical {
        return;
    }
    let differs = |median: Duration, sigma: Decimal| !median.is_zero() && sigma.thousandths() > 0;
    let speeds_differ = differs(web.think_time, web.think_time_sigma)
        || differs(web.round_trip, web.round_trip_sigma);
    clash(
        speed != 0 && !speeds_differ,
        &["compare.topical_speed", "web.think_time_sigma", "web.round_trip_sigma"],
        "all hosts are equally fast; write 0, or set web.think_time and web.think_time_sigma",
    );
    clash(
        size != 0 && web.graph.is_none() && web.pages_sigma.thousandths() == 0,
        &["compare.topical_size", "web.pages_sigma"],
        "all hosts have equally many pages; write 0, or set web.pages_sigma",
    );
}

/// Checks that the steps of a profile increase.
pub(super) fn profile(conf: &Conf, clash: &mut Reporter<'_>) {
    let Some(profile) = &conf.profile else { return };
    clash(
        profile.connections.is_empty(),
        &["profile.connections"],
        "the list is empty; write at least one number, like [1, 2, 4]",
    );
    clash(
        !profile.connections.is_sorted_by(|one, next| one < next),
        &["profile.connections"],
        "the numbers must increase: the knee of the curve is searched from the left",
    );
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<&str> = names.collect();
    (1..names.len()).find(|&at| names[..at].contains(&names[at])).map(|at| names[at])
}
