//! What a value must look like, and which values contradict each other.
//!
//! Each check of a text says what is wrong with it and what to write; [`clashes`] lists the
//! contradictions of a whole configuration, each as a rule of its own with its reason.

mod experiment;

use super::sections::{Burst, Source};
use super::units::show_time;
use super::{Conf, Hostile};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Names that stand for others in documentation: nobody is reached there.
const PLACEHOLDERS: [&str; 7] =
    ["example.com", "example.net", "example.org", "example", "invalid", "localhost", "test"];

/// A name that is part of file names.
pub(super) fn name(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) || text.starts_with('.') {
        return Err(format!(
            "{text:?} can't be part of a file name; write 1 to 64 letters, digits, '.', '_' or \
             '-', not beginning with '.'"
        ));
    }
    Ok(())
}

/// A product token of RFC 9309.
pub(super) fn product(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphabetic() || b"_-".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
        return Err(format!(
            "{text:?} is no product token: robots.txt knows letters, '_' and '-' only (RFC 9309, \
             2.2.1); write it like \"sted\""
        ));
    }
    Ok(())
}

/// Where the operator is reached; empty is left to [`clashes`].
pub(super) fn contact(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        let url = url::Url::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
        header_text(text)?;
        return reached(text, url.host_str().unwrap_or(""));
    }
    mail(text.strip_prefix("mailto:").unwrap_or(text)).map_err(|_| {
        format!(
            "{text:?} is neither a URL nor a mail address; write it like \
             \"https://your.site/crawler\" or \"crawler@your.site\""
        )
    })?;
    reached(text, text.rsplit('@').next().unwrap_or(""))
}

fn reached(text: &str, host: &str) -> Result<(), String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let under = |name: &str| {
        host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match PLACEHOLDERS.into_iter().find(|name| under(name)) {
        Some(name) => Err(format!(
            "{text:?} reaches nobody: {name} stands for a name in documentation; write where you \
             are reached"
        )),
        None => Ok(()),
    }
}

/// A mail address: something, an at, a host; nothing that could end a header field.
pub(super) fn mail(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"()<>,;:\\\"[]".contains(&byte);
    let parts = text.split_once('@');
    let whole = |(user, host): (&str, &str)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && !host.starts_with('.')
    };
    if !parts.is_some_and(whole) || !text.bytes().all(fits) {
        return Err(format!("{text:?} is no mail address; write it like \"crawler@your.site\""));
    }
    Ok(())
}

/// What may stand in a header field: printing ASCII and inner blanks.
pub(super) fn header_text(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if text.is_empty() || text.trim() != text || !text.bytes().all(fits) || text.len() > 1_024 {
        return Err(format!(
            "{text:?} can't be a header field's value; write up to 1,024 printing ASCII \
             characters, without blanks at the ends"
        ));
    }
    Ok(())
}

/// A header field of the operator's own.
pub(super) fn header(text: &str) -> Result<(), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:?} has no colon; write it like \"Accept-Language: en\""))?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("{name:?} is no name of a header field"));
    }
    let own = [
        "host",
        "user-agent",
        "from",
        "accept",
        "accept-encoding",
        "connection",
        "keep-alive",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "range",
    ];
    if own.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("{name} is the crawler's own field and can't be set here"));
    }
    header_text(value.trim())
}

/// A place to start: an absolute http(s) URL, or a bare host with or without a path.
pub(super) fn seed(text: &str) -> Result<(), String> {
    if text.contains("://") { absolute(text) } else { absolute(&format!("http://{text}")) }
        .map_err(|_| format!("{text:?} is no seed; write a URL like \"https://host.name/\""))
}

/// An absolute http(s) URL.
pub(super) fn absolute(text: &str) -> Result<(), String> {
    let blank = text.chars().any(|c| c.is_whitespace() || c.is_control());
    let known = text.starts_with("http://") || text.starts_with("https://");
    if blank || !known || url::Url::parse(text).is_err() {
        return Err(format!("{text:?} is no absolute URL; write it like \"https://host.name/a/\""));
    }
    Ok(())
}

/// A host or domain name, or an address, without a port.
pub(super) fn host(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "{text:?} is no host name; write it in lower case, without scheme, port or path, \
             like \"www.host.name\""
        )
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    if !text.bytes().all(fits) {
        return Err(wrong());
    }
    let parsed = url::Url::parse(&format!("http://{text}/")).map_err(|_| wrong())?;
    // What the parser has changed is not a name that a URL will be compared with.
    if parsed.host_str() == Some(text) && parsed.port().is_none() && parsed.path() == "/" {
        Ok(())
    } else {
        Err(wrong())
    }
}

/// A regular expression of the linear kind.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    regex::Regex::new(text).map(drop).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
        format!("{text:?} is no regular expression: {reason}")
    })
}

/// The name of a query parameter, `*` at its end allowed.
pub(super) fn param(text: &str) -> Result<(), String> {
    let stem = text.strip_suffix('*').unwrap_or(text);
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"*&=#".contains(&byte);
    if stem.is_empty() || !stem.bytes().all(fits) {
        return Err(format!("{text:?} names no parameter; write it like \"utm_*\" or \"gclid\""));
    }
    Ok(())
}

/// A name server: an address, with a port or without.
pub(super) fn server(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>().ok().filter(|address| address.port() > 0);
    let bare = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53));
    with_port.or_else(bare).ok_or_else(|| {
        format!(
            "{text:?} is no address of a name server; write it like \"9.9.9.9\", \
             \"127.0.0.1:5353\" or \"[::1]:53\""
        )
    })
}

/// A segment of a path, as it stands in a URL.
pub(super) fn segment(text: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"".contains(&byte);
    if text.is_empty() || !text.bytes().all(fits) {
        return Err(format!("{text:?} is no segment of a path; write it like \"index.html\""));
    }
    Ok(())
}

/// The name of a key with its section.
pub(super) fn key(text: &str) -> Result<(), String> {
    let whole = |(section, name): (&str, &str)| !section.is_empty() && !name.is_empty();
    if text.split_once('.').is_some_and(whole) {
        return Ok(());
    }
    Err(format!("{text:?} names no key; write it like \"connections.open_max\""))
}

/// A kind of hostile host, or a word for several.
pub(super) fn hostile(text: &str) -> Result<(), String> {
    if text == "quick" || text == "all" || Hostile::named(text).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = Hostile::ALL.into_iter().map(Hostile::name).collect();
    Err(match super::mistake::nearest(text, names.iter().copied()) {
        Some(near) => format!("{text:?} is no kind of hostile host; did you mean \"{near}\"?"),
        None => format!("{text:?} is no kind of hostile host; they are {}", names.join(", ")),
    })
}

/// Values that are right each for itself and wrong together.
pub(super) struct Clash {
    /// The keys concerned; the first is the one to tell.
    pub(super) keys: &'static [&'static str],
    /// Why, and what to write.
    pub(super) text: String,
}

/// All contradictions of a configuration. `named`: whether the file has `[web]`, and `[sim]`.
pub(super) fn clashes(conf: &Conf, named: [bool; 2]) -> Vec<Clash> {
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
    }
    experiment::profile(conf, &mut clash);
    quality(conf, &mut clash);
    scope(conf, &mut clash);
    identity(conf, &mut clash);
    rests(conf, &mut clash);
    times(conf, &mut clash);
    sizes(conf, &mut clash);
    clashes
}

/// How rules tell what they find.
type Tell<'a> = dyn FnMut(bool, &'static [&'static str], &str) + 'a;

/// The rules of the open web: nobody crawls it unnamed, without rest, or deaf to robots.txt.
fn open_web(conf: &Conf, clash: &mut Tell<'_>) {
    clash(
        conf.identity.contact.is_empty(),
        &["identity.contact"],
        "missing: whoever is crawled must be able to reach you; write a URL or a mail address, \
         like \"https://your.site/crawler\" (a crawl of the [lab] needs none)",
    );
    clash(
        conf.job.seeds.is_empty() && conf.job.seeds_file.is_none(),
        &["job.seeds", "job.seeds_file"],
        "missing: nowhere to start; write seeds = [\"https://...\"] or name a seeds_file",
    );
    let open = !conf.scope.is_bounded();
    clash(
        open && !conf.connections.addresses_allowed.is_empty(),
        &["connections.addresses_allowed", "scope.span"],
        "with span = \"any\" a page anywhere could send the crawler to these addresses; bound \
         the scope (span = \"host\"), or leave this out",
    );
    clash(
        open && !conf.politeness.robots,
        &["politeness.robots", "scope.span"],
        "with span = \"any\" robots.txt must be obeyed; it may be passed over on servers of your \
         own (span = \"host\")",
    );
    let politeness = &conf.politeness;
    let restless = politeness.delay.is_zero() && politeness.delay_factor.thousandths() == 0;
    clash(
        open && restless,
        &["politeness.delay", "politeness.delay_factor", "scope.span"],
        "with span = \"any\" a server must have some rest; set delay or delay_factor, or bound \
         the scope to servers of your own (span = \"host\")",
    );
}

fn quality(conf: &Conf, clash: &mut Tell<'_>) {
    let quality = &conf.quality;
    let is_table = quality.source == Source::Table;
    clash(
        is_table && quality.file.is_none(),
        &["quality.file", "quality.source"],
        "missing: source = \"file\" needs a table; name it, or write source = \"uniform\"",
    );
    clash(
        !is_table && quality.file.is_some(),
        &["quality.file", "quality.source"],
        "nothing reads this table; write source = \"file\", or leave it out",
    );
}

fn scope(conf: &Conf, clash: &mut Tell<'_>) {
    let scope = &conf.scope;
    let all = !scope.is_bounded();
    let text = "span = \"any\" wants everything, so this adds nothing; write span = \"host\" to \
                want the seeds' hosts and these";
    clash(all && !scope.hosts.is_empty(), &["scope.hosts", "scope.span"], text);
    clash(all && !scope.domains.is_empty(), &["scope.domains", "scope.span"], text);
    clash(all && !scope.prefixes.is_empty(), &["scope.prefixes", "scope.span"], text);
    clash(
        scope.schemes.is_empty(),
        &["scope.schemes"],
        "without a scheme nothing is wanted; write [\"http\", \"https\"]",
    );
}

fn identity(conf: &Conf, clash: &mut Tell<'_>) {
    let identity = &conf.identity;
    let Some(agent) = &identity.user_agent else { return };
    clash(
        !agent.to_ascii_lowercase().contains(&identity.product.to_ascii_lowercase()),
        &["identity.user_agent", "identity.product"],
        &format!(
            "does not name the product {:?}, by which robots.txt files know the crawler",
            identity.product
        ),
    );
    let told =
        agent.contains(&identity.contact) || identity.from.as_ref() == Some(&identity.contact);
    clash(
        !told,
        &["identity.user_agent", "identity.contact"],
        &format!("does not tell the contact {:?}; add it, or send it as from", identity.contact),
    );
}

/// A cap on rests must not cut short what the crawl has promised.
fn rests(conf: &Conf, clash: &mut Tell<'_>) {
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
            "{} is shorter than the rest a visit owes, burst x delay = {}",
            show_time(most),
            show_time(delay.saturating_mul(requests))
        ),
    );
    clash(
        politeness.crawl_delay_max > most,
        &["politeness.crawl_delay_max", "politeness.delay_max"],
        &format!(
            "{} is longer than delay_max, {}: a Crawl-delay between them would be cut short",
            show_time(politeness.crawl_delay_max),
            show_time(most)
        ),
    );
}

/// Times of which one must not exceed another: the keys, the times, and what the longer one is.
fn times(conf: &Conf, clash: &mut Tell<'_>) {
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

fn sizes(conf: &Conf, clash: &mut Tell<'_>) {
    let (fetch, memory) = (&conf.fetch, &conf.memory);
    let most = fetch.body_bytes_max.max(fetch.decoded_bytes_max).max(fetch.head_bytes_max);
    clash(
        memory.buffers < most,
        &["memory.buffers", "fetch.body_bytes_max", "fetch.decoded_bytes_max"],
        "is smaller than the largest body that is taken, which would never fit",
    );
    clash(
        memory.urls_per_server_max > memory.urls_max,
        &["memory.urls_per_server_max", "memory.urls_max"],
        "is more than urls_max, all that may wait at all servers",
    );
    let entries = memory.cache_entries;
    let text = format!(
        "{entries} is no power of two; the nearest are {} and {}",
        entries.next_power_of_two() / 2,
        entries.next_power_of_two()
    );
    clash(!entries.is_power_of_two(), &["memory.cache_entries"], &text);
}
