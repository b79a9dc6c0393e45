//! Converts the configuration to the settings of each part; no part knows the configuration file.

use crate::conf::{self, Conf, Decimal, DiskFull, Scheme};
use crate::dns::address;
use crate::engine::settings::{
    CHAINS_MAX, Challenges, Connections, Consent, Identity, Limits, Recrawl, Retries, Robots,
    Scoring, Settings, Sitemaps, State,
};
use crate::ground::quality::Quality;
use crate::http::coding::DecodeLimits;
use crate::store::digest::Algorithm;
use crate::url::scope::Schemes;
use crate::{budgets, dns, frontier, http, links, os, rating, repeats, seen, store, url};

mod sites;

/// Returns the engine's settings. `key` is the secret with which the crawl makes fingerprints of
/// URLs.
pub fn engine(conf: &Conf, key: [u8; 16]) -> Settings {
    Settings {
        identity: identity(conf),
        signing: None,
        limits: limits(&conf.limits),
        connections: connections(&conf.connections),
        retries: retries(&conf.retries),
        robots: robots(&conf.politeness),
        redirects_max: conf.fetch.redirects_max,
        chains_max: CHAINS_MAX,
        cookies: conf.fetch.cookies,
        reply: http::response::Limits {
            head_bytes_max: conf.fetch.head_bytes_max,
            fields_max: conf.fetch.fields_max,
            body_bytes_max: conf.fetch.body_bytes_max as u64,
            ..http::response::Limits::default()
        },
        coding: DecodeLimits { decoded_bytes_max: conf.fetch.decoded_bytes_max as u64 },
        pipeline: http::pipeline::Settings {
            enabled: conf.pipeline.enabled,
            depth_max: conf.pipeline.depth_max,
            requests_new: conf.pipeline.allowance_new,
            probation: conf.pipeline.probation,
            ..http::pipeline::Settings::default()
        },
        rating: rating(conf, key),
        scoring: (conf.quality.source == conf::Source::Command).then_some(Scoring {
            timeout: conf.quality.command_timeout,
            waiting_max: conf.quality.command_waiting_max,
        }),
        sites: sites::settings(&conf.sites),
        frontier: frontier(conf, crawl_of(conf, key)),
        names: names(&conf.names),
        seen: seen(&conf.memory, crawl_of(conf, key)),
        key: conf.url.settings(),
        scope: scope(&conf.scope, &conf.sites),
        links: links(conf),
        store: store(conf),
        state: State {
            crawl: crawl_of(conf, key),
            period: conf.state.checkpoint_period,
            full_wait: match conf.disk.full {
                DiskFull::Wait => Some(conf.disk.full_wait),
                DiskFull::Stop => None,
            },
            free_min: conf.disk.free_min,
        },
        recrawl: recrawl(&conf.recrawl),
        sitemaps: Sitemaps {
            read: conf.discovery.sitemaps != conf::Sitemaps::None,
            usual: conf.discovery.sitemaps == conf::Sitemaps::WellKnown,
        },
        consent: consent(&conf.consent),
        repeats: repeats(&conf.repeats),
        budgets: budgets(&conf.schedule),
        joins_canonical: conf.url.join_canonical,
        challenges: challenges(conf.fetch.challenges),
        cluster: None,
        trace: conf.job.trace,
        fingerprint_key: key,
        held_bytes_max: conf.memory.buffers,
        robots_bytes_max: conf.memory.robots,
        servers_per_domain_max: Some(conf.memory.servers_per_domain_max),
        turn_bytes_max: conf.fetch.work_bytes_per_turn,
    }
}

/// Returns the settings of the real world's event loop. `period` is the longest time between two
/// reports of its progress.
pub fn world(conf: &Conf, period: std::time::Duration) -> os::Settings {
    let names = &conf.names;
    let tls = &conf.tls;
    os::Settings {
        names: os::dns::Settings {
            servers: names.servers.clone(),
            timeout: names.timeout,
            tries: names.tries,
            hosts_file: names.hosts_file.clone(),
            mixed_case: names.mixed_case,
        },
        tls: os::tls::Settings {
            verify: tls.verify,
            roots_file: tls.roots_file.clone(),
            sessions_max: tls.sessions_max,
            handshake_bytes_max: tls.handshake_bytes_max,
            key_exchange: match tls.post_quantum {
                true => os::tls::KeyExchange::PostQuantum,
                false => os::tls::KeyExchange::Classic,
            },
        },
        scorer: (conf.quality.source == conf::Source::Command).then(|| os::scorer::Settings {
            command: conf.quality.command.clone(),
            timeout: conf.quality.command_timeout,
        }),
        #[cfg(feature = "cluster")]
        queue: None,
        has_store_thread: conf.store.threads > 0,
        read_bytes_per_turn: conf.connections.read_bytes_per_turn,
        period,
    }
}

fn identity(conf: &Conf) -> Identity {
    let mut fields = vec![("Accept".to_owned(), conf.fetch.accept.clone())];
    fields.extend(sites::fields(&conf.fetch.headers));
    Identity {
        software: format!("sted/{}", env!("CARGO_PKG_VERSION")),
        product: conf.identity.product.clone(),
        user_agent: conf.identity.user_agent(),
        from: conf.identity.from.clone(),
        operator: conf.identity.contact.clone(),
        job: conf.job.name.clone(),
        fields,
        config: Algorithm::Sha256Hex.of(conf.render().as_bytes()).to_string(),
        codings: conf.fetch.codings.clone(),
    }
}

fn connections(conf: &conf::Connections) -> Connections {
    Connections {
        open_max: conf.open_max,
        idle_timeout: conf.idle_timeout,
        connect_timeout: conf.connect_timeout,
        tls_timeout: conf.tls_timeout,
        head_timeout: conf.head_timeout,
        body_timeout: conf.body_timeout,
        fetch_timeout: conf.fetch_timeout,
        stop_timeout: conf.stop_timeout,
        addresses: address::Rules {
            allowed: conf.addresses_allowed.clone(),
            refused: conf.addresses_refused.clone(),
        },
    }
}

fn recrawl(conf: &conf::Recrawl) -> Option<Recrawl> {
    conf.policy.map(|policy| Recrawl {
        policy,
        share: conf.share.as_f64(),
        interval_min: conf.interval_min,
        interval_max: conf.interval_max,
        change_interval: conf.change_interval,
    })
}

fn consent(conf: &conf::Consent) -> Consent {
    Consent { records: conf.record, obeys: conf.purpose.filter(|_| conf.obey) }
}

fn repeats(conf: &conf::Repeats) -> Option<repeats::Settings> {
    let defaults = repeats::Settings::default();
    conf.end_after.map(|end_after| repeats::Settings {
        slow_after: conf.slow_after.min(end_after),
        end_after,
        ..defaults
    })
}

fn limits(conf: &conf::Limits) -> Limits {
    Limits {
        pages_max: conf.pages_max,
        bytes_max: conf.bytes_max,
        time_max: conf.time_max,
        pages_per_server_max: conf.pages_per_server_max,
        pages_per_domain_max: conf.pages_per_domain_max,
    }
}

fn budgets(conf: &conf::Schedule) -> Option<budgets::Settings> {
    let (min, top) = (conf.budget_min, conf.budget_top);
    conf.budget_max.map(|max| budgets::Settings { max, min, top })
}

fn challenges(conf: conf::Challenges) -> Challenges {
    let evidence = conf == conf::Challenges::Evidence;
    Challenges { refuses: evidence || conf == conf::Challenges::Refuse, evidence }
}

fn retries(conf: &conf::Retries) -> Retries {
    Retries {
        url_retries_max: conf.retries_max,
        short_retries_max: Retries::default().short_retries_max,
        server_failures_max: conf.server_failures_max,
        challenges_max: conf.challenges_max,
        wait: conf.retry_wait,
        factor_milli: conf.retry_factor.thousandths(),
        wait_max: conf.retry_wait_max,
        retry_after_max: conf.retry_after_max,
        outage_max: conf.outage_max,
    }
}

fn robots(conf: &conf::Politeness) -> Robots {
    Robots {
        obey: conf.robots,
        ttl: conf.robots_ttl,
        retry_wait: conf.robots_retry_wait,
        unreachable_max: conf.robots_unreachable_max,
        crawl_delay_max: conf.crawl_delay_max,
        html_allows: conf.robots_html,
        ..Robots::default()
    }
}

fn frontier(conf: &Conf, crawl: Option<u64>) -> frontier::Settings {
    let politeness = &conf.politeness;
    let scheduler = frontier::scheduler::Settings {
        schedule: schedule(conf),
        burst: politeness.burst,
        delay: politeness.delay,
        delay_factor_milli: politeness.delay_factor.thousandths(),
        delay_max: politeness.delay_max,
        address_visits_max: politeness.address_visits_max,
        address_delay: politeness.address_delay,
        domain_visits_max: politeness.domain_visits_max,
        domain_delay: politeness.domain_delay,
        servers_max: conf.memory.servers_max,
        sites: sites::index(&conf.sites),
        paces: sites::paces(&conf.sites),
        ..frontier::scheduler::Settings::default()
    };
    frontier::Settings {
        scheduler,
        urls_max: conf.memory.urls_max,
        urls_per_server_max: conf.memory.urls_per_server_max,
        memory_bytes: conf.memory.queues,
        crawl,
        ..frontier::Settings::default()
    }
}

fn seen(memory: &conf::Memory, crawl: Option<u64>) -> seen::Settings {
    seen::Settings {
        urls_max: memory.seen_max,
        memory_bytes: memory.seen,
        cache_entries_log2: memory.cache_entries.ilog2(),
        crawl,
    }
}

/// Returns the number that identifies the state files of this crawl; `None` if the configuration
/// keeps no state.
fn crawl_of(conf: &Conf, key: [u8; 16]) -> Option<u64> {
    conf.state.keep.then(|| url::Fingerprinter::new(key).of(b"crawl").0)
}

fn schedule(conf: &Conf) -> frontier::policy::Settings {
    let schedule = &conf.schedule;
    frontier::policy::Settings {
        policy: schedule.policy,
        speedup_milli: schedule.speedup.thousandths(),
        smoothing_milli: schedule.smoothing.thousandths(),
        connect_time_new: schedule.connect_time_new,
        response_time_new: schedule.response_time_new,
        allowance_new: conf.pipeline.allowance_new,
        random_share_milli: schedule.random_share.thousandths(),
    }
}

/// Returns the settings that rate the quality of URLs, without the table of qualities, which
/// [`super::inputs`] reads from a file.
fn rating(whole: &Conf, key: [u8; 16]) -> rating::Settings {
    let conf = &whole.quality;
    rating::Settings {
        sites: sites::index(&whole.sites),
        own: sites::qualities(&whole.sites),
        key,
        source: conf.source,
        zipf_seed: conf.zipf_seed,
        zipf_pages: conf.zipf_pages,
        zipf_exponent_milli: conf.zipf_exponent.thousandths(),
        table: None,
        unlisted: quality_of(conf.unlisted),
        fall_milli: conf.fall.thousandths(),
        site: conf.site,
        sites_max: conf.sites_max,
    }
}

fn quality_of(decimal: Decimal) -> Quality {
    Quality::from_millionths(u64::from(decimal.thousandths()) * 1_000)
}

fn names(conf: &conf::Names) -> dns::Settings {
    dns::Settings {
        ttl_min: conf.ttl_min,
        ttl_max: conf.ttl_max,
        negative_ttl: conf.negative_ttl,
        failure_ttl: conf.failure_ttl,
        in_flight_max: conf.in_flight_max,
        names_max: conf.names_max,
        families: conf.families,
    }
}

/// Returns the settings of the scope, with those of the tables of sites.
pub(super) fn scope(conf: &conf::Scope, tables: &[conf::SiteTable]) -> url::scope::Settings {
    let wants = |scheme| conf.schemes.contains(&scheme);
    url::scope::Settings {
        schemes: match (wants(Scheme::Http), wants(Scheme::Https)) {
            (true, false) => Schemes::Http,
            (false, true) => Schemes::Https,
            _ => Schemes::Any,
        },
        from_seeds: conf.span,
        hosts: conf.hosts.clone(),
        domains: conf.domains.clone(),
        prefixes: conf.prefixes.clone(),
        include: conf.include.clone(),
        exclude: conf.exclude.clone(),
        depth_max: conf.depth_max.unwrap_or(u32::MAX),
        requisites: conf.requisites,
        requisite_hops: conf.requisite_hops,
        url_bytes_max: conf.url_bytes_max,
        path_depth_max: conf.path_depth_max,
        segment_repeats_max: conf.segment_repeats_max,
        query_params_max: conf.query_params_max,
        sites: sites::index(tables),
        site_rules: sites::rules(tables),
        ..url::scope::Settings::default()
    }
}

fn links(conf: &Conf) -> links::Settings {
    links::Settings {
        requisites: conf.links.requisites,
        forms: conf.links.forms,
        obey_nofollow: conf.links.nofollow,
        obey_meta: conf.links.robots_meta,
        product: conf.identity.product.clone(),
        links_max: conf.links.links_max,
        // A URL may be shorter than its reference, because dot segments and line breaks are
        // removed.
        reference_bytes_max: 2 * conf.scope.url_bytes_max,
        ..links::Settings::default()
    }
}

fn store(conf: &Conf) -> store::Settings {
    let (conf, node) = (&conf.store, conf.cluster.node.as_ref());
    store::Settings {
        format: conf.format,
        gzip_level: conf.gzip_level,
        file_bytes_max: conf.file_bytes_max,
        // The archives of several nodes may be put into one folder.
        prefix: node.map_or_else(|| conf.prefix.clone(), |node| format!("{}-{node}", conf.prefix)),
        digest: conf.digest,
        has_thread: conf.threads > 0,
        requests: conf.requests,
        robots: conf.robots,
        buffer_bytes: conf.buffer_bytes,
        sync_period: conf.sync_period,
        revisit_names_max: conf.revisits_max,
        log_bytes_max: conf.log_bytes_max,
        verify_bytes_max: conf.verify_bytes_max,
        ..store::Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Flag;

    /// Another value than the default of each key that may change while a crawl runs.
    const LIVE: [(&str, &str); 54] = [
        ("limits.pages_max", "7"),
        ("limits.pages_per_server_max", "7"),
        ("limits.pages_per_domain_max", "7"),
        ("limits.bytes_max", "\"7MiB\""),
        ("limits.time_max", "\"7h\""),
        ("scope.span", "\"domain\""),
        ("scope.hosts", "[\"a.org\"]"),
        ("scope.domains", "[\"a.org\"]"),
        ("scope.prefixes", "[\"http://a.org/x/\"]"),
        ("scope.schemes", "[\"http\"]"),
        ("scope.depth_max", "7"),
        ("scope.requisites", "\"any\""),
        ("scope.requisite_hops", "7"),
        ("scope.url_bytes_max", "\"1KiB\""),
        ("scope.include", "[\"x\"]"),
        ("scope.exclude", "[\"x\"]"),
        ("scope.segment_repeats_max", "7"),
        ("scope.path_depth_max", "7"),
        ("scope.query_params_max", "7"),
        ("connections.idle_timeout", "\"7s\""),
        ("connections.connect_timeout", "\"7s\""),
        ("connections.tls_timeout", "\"7s\""),
        ("connections.head_timeout", "\"7s\""),
        ("connections.body_timeout", "\"7s\""),
        ("connections.fetch_timeout", "\"7m\""),
        ("connections.stop_timeout", "\"7s\""),
        ("connections.addresses_allowed", "[\"127.0.0.0/8\"]"),
        ("connections.addresses_refused", "[\"192.0.2.0/24\"]"),
        ("links.requisites", "true"),
        ("links.forms", "true"),
        ("links.nofollow", "\"ignore\""),
        ("links.robots_meta", "\"ignore\""),
        ("links.links_max", "7"),
        ("politeness.delay", "\"7s\""),
        ("politeness.delay_factor", "7"),
        ("politeness.delay_max", "\"7m\""),
        ("politeness.robots_html", "\"unreachable\""),
        ("politeness.robots_ttl", "\"7h\""),
        ("politeness.robots_retry_wait", "\"7s\""),
        ("politeness.robots_unreachable_max", "\"7h\""),
        ("politeness.crawl_delay_max", "\"7s\""),
        ("politeness.address_visits_max", "7"),
        ("politeness.address_delay", "\"7s\""),
        ("politeness.domain_visits_max", "7"),
        ("politeness.domain_delay", "\"7s\""),
        ("retries.retries_max", "7"),
        ("retries.retry_wait", "\"7s\""),
        ("retries.retry_factor", "7"),
        ("retries.retry_wait_max", "\"7h\""),
        ("retries.retry_after_max", "\"7h\""),
        ("retries.server_failures_max", "7"),
        ("retries.challenges_max", "7"),
        ("retries.outage_max", "\"7h\""),
        ("state.checkpoint_period", "\"7s\""),
    ];

    fn with(key: &str, value: &str) -> Conf {
        let mut lines = std::collections::BTreeMap::from([
            ("identity.contact", "\"me@a.org\""),
            ("job.seeds", "[\"http://a.org/\"]"),
            ("scope.span", "\"host\""),
        ]);
        if key == "scope.requisites" {
            lines.insert("links.requisites", "true");
        }
        lines.insert(key, value);
        let text: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        Conf::parse(&text, "x.toml").unwrap_or_else(|mistakes| panic!("{text}: {mistakes}"))
    }

    /// Law: a reload adopts the value of each key that is marked as live, and of no other.
    #[test]
    fn a_reload_adopts_what_is_live() {
        let shown = |settings: &Settings| format!("{settings:?}");
        let base = engine(&with("limits.pages_max", "\"none\""), [0; 16]);
        for (key, value) in LIVE {
            let mut new = engine(&with(key, value), [0; 16]);
            // The archive keeps the digest of the configuration with which the run began.
            new.identity.config.clone_from(&base.identity.config);
            let mut adopted = base.clone();
            adopted.adopt(&new);
            assert_eq!(shown(&adopted), shown(&new), "{key}");
            assert!(shown(&new) != shown(&base), "{key}: {value} is the default");
        }
        let live = Conf::default().keys().into_iter().filter(|key| key.flags.contains(&Flag::Live));
        let mut live: Vec<String> =
            live.map(|key| format!("{}.{}", key.section, key.name)).collect();
        let mut listed: Vec<&str> = LIVE.iter().map(|(key, _)| *key).collect();
        live.sort();
        listed.sort();
        assert_eq!(live, listed);
        for (key, value) in [("politeness.robots", "false"), ("connections.open_max", "7")] {
            let mut adopted = base.clone();
            adopted.adopt(&engine(&with(key, value), [0; 16]));
            assert_eq!(shown(&adopted), shown(&base), "{key}");
        }
    }

    /// Keys that the file doesn't set have the defaults of the parts.
    #[test]
    fn defaults_are_the_parts_own() {
        let conf = Conf::default();
        assert_eq!(schedule(&conf), frontier::policy::Settings::default());
        let text = format!("{:?}", rating(&conf, [0; 16]));
        assert_eq!(text, format!("{:?}", rating::Settings::default()));
    }
}
