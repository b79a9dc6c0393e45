//! Finds contradictions between the values of a configuration, each with a reason and a fix.

mod experiment;

use super::Conf;
use super::sections::{Burst, Source};
use super::setting::Given;
use super::units::show_time;
use crate::url::scope::Requisites;
use std::time::Duration;

/// A contradiction between values that are valid by themselves.
pub(super) struct Clash {
    /// The keys that contradict each other. The mistake is reported at the line of the first.
    pub(super) keys: &'static [&'static str],
    /// The reason for the contradiction, and a fix.
    pub(super) text: String,
}

/// Returns all contradictions of a configuration, which was read from what is given.
pub(super) fn clashes(conf: &Conf, given: &Given<'_>) -> Vec<Clash> {
    let named = ["web", "sim"].map(|section| given.has_section(section));
    let mut clashes = Vec::new();
    let mut clash = |is: bool, keys: &'static [&'static str], text: &str| {
        if is {
            clashes.push(Clash { keys, text: text.to_owned() });
        }
    };
    experiment::unused(conf, named, &mut clash);
    if conf.is_experiment() {
        experiment::whole(conf, &mut clash);
    } else {
        open_web(conf, &mut clash);
        endless(conf, given, &mut clash);
    }
    experiment::profile(conf, &mut clash);
    quality(conf, &mut clash);
    scope(conf, &mut clash);
    identity(conf, &mut clash);
    signature(conf, &mut clash);
    rests(conf, &mut clash);
    times(conf, &mut clash);
    sizes(conf, &mut clash);
    admin(conf, &mut clash);
    cluster(conf, &mut clash);
    recrawl(conf, &mut clash);
    budgets(conf, &mut clash);
    consent(conf, &mut clash);
    clashes
}

/// A function that is called with a condition, keys and a text. If the condition holds, it reports
/// the text as a contradiction between the keys.
type Reporter<'a> = dyn FnMut(bool, &'static [&'static str], &str) + 'a;

/// Checks the rules for a crawl of the real web: a contact, a rest between visits and robots.txt
/// are mandatory.
fn open_web(conf: &Conf, clash: &mut Reporter<'_>) {
    clash(
        conf.identity.contact.is_empty(),
        &["identity.contact"],
        "missing: operators of crawled sites must be able to reach you; write a URL or a mail \
         address, like \"https://your.site/crawler\" (a crawl of the [lab] needs none)",
    );
    clash(
        conf.job.seeds.is_empty() && conf.job.seeds_file.is_none(),
        &["job.seeds", "job.seeds_file"],
        "missing: the crawl has no URL to start from; write seeds = [\"https://...\"] or \
         name a seeds_file",
    );
    let open = !conf.scope.is_bounded();
    clash(
        open && !conf.connections.addresses_allowed.is_empty(),
        &["connections.addresses_allowed", "scope.span"],
        "with span = \"any\" any page could send the crawler to these addresses; bound the scope \
         (span = \"host\"), or remove this key",
    );
    clash(
        open && !conf.politeness.robots,
        &["politeness.robots", "scope.span"],
        "with span = \"any\" robots.txt must be obeyed; it may be ignored on servers of your own \
         (span = \"host\")",
    );
    let politeness = &conf.politeness;
    let restless = politeness.delay.is_zero() && politeness.delay_factor.thousandths() == 0;
    clash(
        open && restless,
        &["politeness.delay", "politeness.delay_factor", "scope.span"],
        "with span = \"any\" servers need a rest; set delay or delay_factor, or bound \
         the scope to servers of your own (span = \"host\")",
    );
}

/// Checks that a crawl of the open web has an end, or that the operator has said that it has none.
fn endless(conf: &Conf, given: &Given<'_>, clash: &mut Reporter<'_>) {
    let limits = &conf.limits;
    let is_limited =
        limits.pages_max.is_some() || limits.bytes_max.is_some() || limits.time_max.is_some();
    clash(
        !conf.scope.is_bounded() && !is_limited && !given.has_key("limits", "pages_max"),
        &["scope.span", "limits.pages_max", "limits.bytes_max", "limits.time_max"],
        "with span = \"any\" and no limit the crawl has no end; write span = \"host\" to stay on \
         the hosts of the seeds, or set limits.pages_max, bytes_max or time_max (pages_max = \
         \"none\" if it should have no end)",
    );
}

fn quality(conf: &Conf, clash: &mut Reporter<'_>) {
    let quality = &conf.quality;
    let is_table = quality.source == Source::Table;
    clash(
        is_table && quality.file.is_none(),
        &["quality.file", "quality.source"],
        "missing: source = \"file\" needs a table; name its file, or write source = \"uniform\"",
    );
    let is_command = quality.source == Source::Command;
    clash(
        is_command && quality.command.is_empty(),
        &["quality.command", "quality.source"],
        "missing: source = \"command\" needs a program; write it like [\"python3\", \
         \"score.py\"]",
    );
    clash(
        !is_command && !quality.command.is_empty(),
        &["quality.command", "quality.source"],
        "the program has no effect; write source = \"command\", or remove this key",
    );
    clash(
        !is_table && quality.source != Source::Parent && quality.file.is_some(),
        &["quality.file", "quality.source"],
        "the table has no effect; write source = \"file\" or \"parent\", or remove this key",
    );
}

fn scope(conf: &Conf, clash: &mut Reporter<'_>) {
    let scope = &conf.scope;
    let all = !scope.is_bounded();
    let text = "has no effect with span = \"any\"; write span = \"host\" to crawl the hosts of the \
                seeds and these";
    clash(all && !scope.hosts.is_empty(), &["scope.hosts", "scope.span"], text);
    clash(all && !scope.domains.is_empty(), &["scope.domains", "scope.span"], text);
    clash(all && !scope.prefixes.is_empty(), &["scope.prefixes", "scope.span"], text);
    clash(
        scope.requisites == Requisites::Any && !conf.links.requisites,
        &["scope.requisites", "links.requisites"],
        "has no effect while requisites are not fetched; write requisites = true in [links], or \
         remove this key",
    );
    clash(
        scope.schemes.is_empty(),
        &["scope.schemes"],
        "without a scheme nothing is crawled; write [\"http\", \"https\"]",
    );
}

fn identity(conf: &Conf, clash: &mut Reporter<'_>) {
    let identity = &conf.identity;
    let Some(agent) = &identity.user_agent else { return };
    clash(
        !agent.to_ascii_lowercase().contains(&identity.product.to_ascii_lowercase()),
        &["identity.user_agent", "identity.product"],
        &format!(
            "does not contain the product {:?}, to which robots.txt files refer; add it",
            identity.product
        ),
    );
    let has_contact =
        agent.contains(&identity.contact) || identity.from.as_ref() == Some(&identity.contact);
    clash(
        !has_contact,
        &["identity.user_agent", "identity.contact"],
        &format!("does not contain the contact {:?}; add it, or set from to it", identity.contact),
    );
}

/// Checks that only who may see the crawl can reach its admin page.
fn admin(conf: &Conf, clash: &mut Reporter<'_>) {
    let admin = &conf.admin;
    let is_open = admin.listen.is_some_and(|listen| !listen.ip().to_canonical().is_loopback());
    clash(
        is_open && !admin.addresses,
        &["admin.listen", "admin.addresses"],
        "other machines could read what is crawled, without a password; listen on 127.0.0.1 and \
         reach it through a tunnel or a proxy, or write addresses = \"any\"",
    );
    clash(
        admin.listen.is_none() && !admin.hosts.is_empty(),
        &["admin.hosts", "admin.listen"],
        "has no effect without a listener; write listen = \"127.0.0.1:9600\", or remove this key",
    );
}

/// Checks that a node of a cluster has what it needs, and that the nodes can share addresses.
fn cluster(conf: &Conf, clash: &mut Reporter<'_>) {
    let cluster = &conf.cluster;
    let is_node = cluster.name.is_some();
    clash(
        is_node && cluster.node.is_none(),
        &["cluster.node", "cluster.name"],
        "missing: each machine needs a name of its own; write node = \"a\" here, \"b\" on the next",
    );
    clash(
        !is_node && cluster.node.is_some(),
        &["cluster.node", "cluster.name"],
        "has no effect without the name of a shared crawl; write name = \"...\", or remove it",
    );
    clash(
        is_node && cluster.servers.is_empty(),
        &["cluster.servers"],
        "missing: nodes meet at a server; write servers = [\"nats://host:4222\"]",
    );
    let pairs: [(_, _, &'static [&'static str]); 2] = [
        (
            cluster.user.is_some(),
            cluster.password_file.is_some(),
            &["cluster.user", "cluster.password_file"],
        ),
        (
            cluster.certificate_file.is_some(),
            cluster.key_file.is_some(),
            &["cluster.certificate_file", "cluster.key_file"],
        ),
    ];
    for (one, other, keys) in pairs {
        clash(one != other, keys, "needs both keys, or neither");
    }
    let cap = conf.politeness.address_visits_max;
    clash(
        is_node && cap > 0 && cluster.nodes_max > cap,
        &["cluster.nodes_max", "politeness.address_visits_max"],
        &format!(
            "{} nodes can't share {cap} visits to an address: raise address_visits_max, or lower \
             nodes_max",
            cluster.nodes_max
        ),
    );
    clash(
        is_node && !conf.state.keep,
        &["state.keep", "cluster.name"],
        "a node that keeps no state can't say what it has fetched; write keep = true",
    );
}

/// Checks that a crawl can come back to pages as it is configured to.
fn recrawl(conf: &Conf, clash: &mut Reporter<'_>) {
    let recrawl = &conf.recrawl;
    clash(
        recrawl.policy.is_some() && conf.cluster.name.is_some(),
        &["recrawl.policy", "cluster.name"],
        "a shared crawl can't come back to pages yet; write policy = \"none\"",
    );
    clash(
        recrawl.policy.is_some() && !conf.state.keep,
        &["recrawl.policy", "state.keep"],
        "known pages are kept on disk, as a part of the state; write keep = true",
    );
    clash(
        recrawl.interval_min > recrawl.interval_max,
        &["recrawl.interval_min", "recrawl.interval_max"],
        &format!(
            "{} is longer than interval_max, {}; lower it, or raise that",
            show_time(recrawl.interval_min),
            show_time(recrawl.interval_max)
        ),
    );
}

/// Checks that domains can have the budgets that are configured.
fn budgets(conf: &Conf, clash: &mut Reporter<'_>) {
    let Some(most) = conf.schedule.budget_max else { return };
    clash(
        conf.cluster.name.is_some(),
        &["schedule.budget_max", "cluster.name"],
        "the domains of a shared crawl can't have budgets yet; write budget_max = \"none\"",
    );
    clash(
        !conf.state.keep,
        &["schedule.budget_max", "state.keep"],
        "URLs over a budget wait on disk, as a part of the state; write keep = true",
    );
    let least = conf.schedule.budget_min;
    clash(
        least > most,
        &["schedule.budget_min", "schedule.budget_max"],
        &format!("{least} is more than budget_max, {most}; lower it, or raise that"),
    );
}

/// Checks that a crawl that obeys reservations knows what it is for, and what is said of it.
fn consent(conf: &Conf, clash: &mut Reporter<'_>) {
    let consent = &conf.consent;
    clash(
        consent.obey && consent.purpose.is_none(),
        &["consent.obey", "consent.purpose"],
        "has no effect without a purpose; write purpose = \"search\", or another one",
    );
    clash(
        consent.obey && !consent.record,
        &["consent.obey", "consent.record"],
        "only what is recorded can be obeyed; write record = true",
    );
}

/// Checks that signatures have a key, and a place where it is published.
fn signature(conf: &Conf, clash: &mut Reporter<'_>) {
    let own = &conf.signature;
    clash(
        own.sign.is_some() && own.key.is_none(),
        &["identity.signature.key", "identity.signature.sign"],
        "missing: signatures need a private key; make one with \"sted key new FILE\", and name \
         its file",
    );
    clash(
        own.sign.is_some() && own.agent.is_none(),
        &["identity.signature.agent", "identity.signature.sign"],
        "missing: servers must find the public key; write the origin that publishes it, like \
         \"https://crawler.example\"",
    );
}

/// Checks that the limit on rests (the pauses between visits to a server) isn't shorter than the
/// rests that the other keys ask for.
fn rests(conf: &Conf, clash: &mut Reporter<'_>) {
    let politeness = &conf.politeness;
    let (delay, most) = (politeness.delay, politeness.delay_max);
    let requests = match politeness.burst {
        Burst::Requests(count) => count,
        Burst::Server => 1,
    };
    clash(
        delay.saturating_mul(requests) > most,
        &["politeness.delay_max", "politeness.delay", "politeness.burst"],
        &format!(
            "{} is shorter than the rest after a visit, burst x delay = {}; raise it, or lower \
             those",
            show_time(most),
            show_time(delay.saturating_mul(requests))
        ),
    );
    clash(
        politeness.crawl_delay_max > most,
        &["politeness.crawl_delay_max", "politeness.delay_max"],
        &format!(
            "{} is longer than delay_max, {}, which would cut a Crawl-delay short; raise delay_max",
            show_time(politeness.crawl_delay_max),
            show_time(most)
        ),
    );
}

/// Checks pairs of durations, of which the first must not exceed the second.
fn times(conf: &Conf, clash: &mut Reporter<'_>) {
    let (names, connections, retries) = (&conf.names, &conf.connections, &conf.retries);
    let whole = connections.fetch_timeout;
    let rules: [(&'static [&'static str], Duration, Duration); 6] = [
        (&["names.ttl_min", "names.ttl_max"], names.ttl_min, names.ttl_max),
        (
            &["connections.connect_timeout", "connections.fetch_timeout"],
            connections.connect_timeout,
            whole,
        ),
        (&["connections.tls_timeout", "connections.fetch_timeout"], connections.tls_timeout, whole),
        (
            &["connections.head_timeout", "connections.fetch_timeout"],
            connections.head_timeout,
            whole,
        ),
        (
            &["connections.body_timeout", "connections.fetch_timeout"],
            connections.body_timeout,
            whole,
        ),
        (
            &["retries.retry_wait", "retries.retry_wait_max"],
            retries.retry_wait,
            retries.retry_wait_max,
        ),
    ];
    for (keys, part, most) in rules {
        let text = format!("{} is longer than {}, {}", show_time(part), keys[1], show_time(most));
        clash(part > most, keys, &text);
    }
}

fn sizes(conf: &Conf, clash: &mut Reporter<'_>) {
    let (fetch, memory) = (&conf.fetch, &conf.memory);
    let most = fetch.body_bytes_max.max(fetch.decoded_bytes_max).max(fetch.head_bytes_max);
    clash(
        memory.buffers < most,
        &["memory.buffers", "fetch.body_bytes_max", "fetch.decoded_bytes_max"],
        "is smaller than the largest body, which would never fit; raise it",
    );
    clash(
        memory.urls_per_server_max > memory.urls_max,
        &["memory.urls_per_server_max", "memory.urls_max"],
        "is more than urls_max, the bound for all servers; lower it",
    );
    let entries = memory.cache_entries;
    let text = format!(
        "{entries} is not a power of two; the nearest are {} and {}",
        entries.next_power_of_two() / 2,
        entries.next_power_of_two()
    );
    clash(!entries.is_power_of_two(), &["memory.cache_entries"], &text);
}
