//! Converts the sections of the study to the settings of its web, lab and simulator.

use super::web::{Budget, Changes, Hostile, Settings, Spread, TimeSpread, Topical};
use super::{lab, sim};
use crate::conf::{Compare, Conf, Decimal, Events, Lab, Sim, Web};
use std::time::Duration;

/// Returns the settings of the synthetic web that a configuration describes.
pub fn web(conf: &Web) -> Settings {
    let spread =
        |median: u32, sigma: Decimal| Spread { median: f64::from(median), sigma: sigma.as_f64() };
    let times = |median: Duration, sigma: Decimal| TimeSpread { median, sigma: sigma.as_f64() };
    let allowances = conf.requests_per_connection.iter();
    Settings {
        seed: conf.seed,
        hosts: conf.hosts,
        seeds: conf.seeds,
        pages: conf.pages,
        pages_sigma: conf.pages_sigma.as_f64(),
        hosts_per_domain: conf.hosts_per_domain,
        domains: None,
        hosts_per_address: conf.hosts_per_address,
        fanout: conf.fanout,
        host_fanout: conf.host_fanout,
        links: spread(conf.links_per_page, conf.links_sigma),
        locality: conf.locality.as_f64(),
        link_skew: conf.link_skew,
        easy: conf.easy,
        odd_links: conf.odd_links_share.as_f64(),
        noise: conf.noise_share.as_f64(),
        page_bytes: spread(conf.page_bytes, conf.page_bytes_sigma),
        not_found: conf.not_found_share.as_f64(),
        server_error: conf.server_error_share.as_f64(),
        redirect: conf.redirect_share.as_f64(),
        duplicate: conf.duplicate_share.as_f64(),
        binary: conf.binary_share.as_f64(),
        think_time: times(conf.think_time, conf.think_time_sigma),
        think_jitter: conf.think_jitter.as_f64(),
        round_trip: times(conf.round_trip, conf.round_trip_sigma),
        round_trip_jitter: conf.round_trip_jitter.as_f64(),
        accept_time: times(conf.accept_time, conf.accept_time_sigma),
        dns_time: times(conf.name_time, conf.name_time_sigma),
        rate: Spread { median: conf.rate.unwrap_or(0) as f64, sigma: conf.rate_sigma.as_f64() },
        coded_ratio: conf.coded_ratio.as_f64(),
        requests_per_connection: allowances
            .map(|each| (each.share.as_f64(), each.requests))
            .collect(),
        close_silently: conf.silent_close_share.as_f64(),
        muddled: conf.muddled_share.as_f64(),
        deep_redirects: false,
        idle_time: conf.idle_time,
        http10: conf.http10_share.as_f64(),
        tls: conf.tls_share.as_f64(),
        resuming: conf.resume_share.as_f64(),
        chunked: conf.chunked_share.as_f64(),
        gzip: conf.gzip_share.as_f64(),
        brotli: conf.brotli_share.as_f64(),
        zstd: conf.zstd_share.as_f64(),
        deflate: conf.deflate_share.as_f64(),
        robots_allow: conf.robots_allow_share.as_f64(),
        robots_part: conf.robots_part_share.as_f64(),
        robots_delay: conf.robots_delay_share.as_f64(),
        robots_deny: conf.robots_deny_share.as_f64(),
        crawl_delay: conf.crawl_delay,
        changes: changes(conf),
        sitemaps: conf.sitemap_share.as_f64(),
        voices: conf.consent_share.as_f64(),
        sitemap_lies: conf.sitemap_lie_share.as_f64(),
        hostile: hostile_kinds(&conf.hostile),
        keys: None,
    }
}

/// Returns how pages change; `None` if they don't. The web begins when it is first served.
fn changes(conf: &Web) -> Option<Changes> {
    let median = conf.change_interval?;
    Some(Changes {
        epoch: 0,
        interval: TimeSpread { median, sigma: conf.change_sigma.as_f64() },
        page_sigma: conf.change_page_sigma.as_f64(),
        scheduled: conf.change_scheduled_share.as_f64(),
        always: conf.change_always_share.as_f64(),
        appear: conf.appear_share.as_f64(),
        vanish: conf.vanish_share.as_f64(),
        span: conf.change_span,
        etags: conf.etag_share.as_f64(),
        modified: conf.last_modified_share.as_f64(),
    })
}

/// Returns how qualities run along links in a comparison.
pub fn topical(conf: &Compare) -> Topical {
    Topical {
        sigma: conf.topical_sigma.as_f64(),
        site: conf.topical_site_share.as_f64(),
        parent: conf.topical_parent_share.as_f64(),
        speed: conf.topical_speed.as_f64(),
        size: conf.topical_size.as_f64(),
    }
}

/// Returns the kinds of hostile hosts that `names` select, each once, in the order of
/// [`Hostile::ALL`].
fn hostile_kinds(names: &[String]) -> Vec<Hostile> {
    let is_named = |kind: &Hostile| {
        names.iter().any(|name| match name.as_str() {
            "all" => true,
            "quick" => kind.is_quick(),
            name => kind.name() == name,
        })
    };
    Hostile::ALL.into_iter().filter(is_named).collect()
}

/// Returns the lab's settings. With `follow_stdin` the lab exits when its standard input ends, and
/// so with its parent process.
pub fn lab(conf: &Conf, section: &Lab) -> lab::Settings {
    let file = |name: &str| section.directory.join(name);
    let tries = u32::from(conf.retries.retries_max) + 1;
    let redirects = conf.fetch.redirects_max.into();
    lab::Settings {
        web: web(&conf.web),
        budget: Budget { redirects, tries, robots: conf.politeness.robots },
        log: (section.events != Events::None).then(|| file("events.jsonl")),
        requests_logged: section.events == Events::Requests,
        manifest: section.manifest.then(|| file("manifest.jsonl")),
        ca: Some(file("ca.pem")),
        follow_stdin: true,
        ..lab::Settings::default()
    }
}

/// Returns the settings of the simulated world that a configuration describes.
pub fn sim(conf: &Sim) -> sim::Settings {
    sim::Settings {
        outages: Vec::new(),
        seed: conf.seed,
        gateway_bytes_per_second: conf.gateway.unwrap_or(0),
        window_first_bytes: conf.window_first,
        window_max_bytes: conf.window_max,
        faults: sim::settings::Faults {
            losses: conf.loss_share.as_f64(),
            resets: conf.reset_share.as_f64(),
            refusals: conf.refusal_share.as_f64(),
            dns_failures: conf.dns_failure_share.as_f64(),
            silences: conf.silence_share.as_f64(),
            until: conf.faults_until,
        },
        core: sim::settings::Core {
            turn_ns: conf.core_turn.nanoseconds(),
            watch_ns: conf.core_watch.nanoseconds(),
            connect_ns: conf.core_connect.nanoseconds(),
            handshake_ns: conf.core_handshake.nanoseconds(),
            reply_ns: conf.core_reply.nanoseconds(),
            byte_ps: conf.core_byte.picoseconds(),
            text_byte_ps: conf.core_text_byte.picoseconds(),
            link_ns: conf.core_link.nanoseconds(),
            exchange: sim::settings::Exchange::default(),
        },
        scores: sim::settings::Scores::default(),
        job_time: conf.job_time,
        time_max: conf.time_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Preset;

    #[test]
    fn presets_are_the_web_s_own() {
        assert_eq!(web(&Web::of(Preset::Plain)), Settings::default());
        assert_eq!(web(&Web::of(Preset::Quickstart)), Settings::quickstart());
        assert_eq!(web(&Web::of(Preset::Bench)), Settings::bench(64));
        assert_eq!(web(&Web::of(Preset::Hostile)), Settings::hostile());
        assert_eq!(web(&Web::of(Preset::Of2003)), Settings::scenario_2003());
        assert_eq!(web(&Web::of(Preset::Of2025)), Settings::scenario_2025());
    }

    /// Keys missing in the file have the simulator's own defaults.
    #[test]
    fn defaults_are_the_simulator_s_own() {
        assert_eq!(sim(&Conf::default().sim), sim::Settings::default());
    }

    #[test]
    fn hostile_hosts_are_named_or_grouped() {
        let kinds = |names: &[&str]| {
            let hostile = names.iter().map(ToString::to_string).collect();
            web(&Web { hostile, ..Web::of(Preset::Plain) }).hostile
        };
        assert_eq!(kinds(&["reset", "drip"]), [Hostile::Drip, Hostile::Reset]);
        assert_eq!(kinds(&["reset", "all", "reset"]), Hostile::ALL);
        let quick = kinds(&["quick"]);
        assert!(!quick.is_empty() && quick.len() < Hostile::ALL.len());
        assert_eq!(kinds(&[]), []);
    }
}
