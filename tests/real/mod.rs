//! Real servers with real pages: the crawler with nginx, Apache, lighttpd, Caddy and Python's
//! HTTP/1.0 server, with names answered by unbound, each serving thousands of pages of
//! documentation.
//!
//! The fetched URLs must be those that an independent walk over the same files finds, each once,
//! whatever the servers do to their connections; and the politeness promises must hold as seen from
//! outside. `make deps` gets the servers and the pages.
//!
//! `nats` has the queue that nodes of one crawl share.

mod access;
mod crawl;
mod looks;
pub(crate) mod nats;
mod process;
mod relay;
mod servers;
mod sitemaps;
mod sites;
mod stand;
mod tags;
mod walk;

use crate::util::python;
use access::Hit;
use crawl::Crawl;
use relay::Seen;
use servers::Server;
use sites::Site;
use stand::{Part, Stand};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use walk::{Fate, Fates};

/// All servers at the pace they allow, with so many pipelined requests that each reaches its limit
/// of requests among them: all reachable URLs are fetched.
#[test]
fn everything_that_can_be_reached_is_fetched_once() {
    let parts = Server::ALL.map(|server| Part { server, relay: None, crawl_delay: None });
    let mut stand = Stand::start(&parts);
    let seeds = [stand.sites[0].origin() + "/"];
    let fates = walk::walk(&stand.sites, &seeds, usize::MAX);
    let closed = fates.values().filter(|fate| **fate == Fate::Closed).count();
    assert!(fates.len() > 5_000 && closed > 500, "{} URLs, {closed} closed: too few", fates.len());
    let crawl = crawl::crawl(&stand, &seeds, FULL_SPEED);
    let (hits, _) = stand.end();
    judge(&stand.sites, &fates, &crawl, &hits);
    let answered: usize = hits.iter().map(Vec::len).sum();
    assert!(crawl.requests > answered, "no server closed while requests were on their way to it");
    for (site, hits) in stand.sites.iter().zip(&hits) {
        let Some(most) = site.server.requests_per_connection().filter(|most| *most > 1) else {
            continue;
        };
        let (requests, connections) = (hits.len(), access::connections(hits));
        let needed = requests.div_ceil(most);
        let name = site.server.name();
        assert!(requests > 3 * most, "{name} was asked {requests} times: too few to see its limit");
        assert!(
            (needed..=needed + needed / 4 + 2).contains(&connections),
            "{requests} requests took {connections} connections to {name}, who allows {most} each"
        );
    }
    read_back(&stand, &fates, &crawl);
}

/// The pages linked from a few, politely and through relays: one connection to a server at a time,
/// gaps as promised, nothing that is disallowed.
#[test]
fn promises_hold_as_seen_from_outside() {
    let parts = Server::ALL.map(|server| Part {
        server,
        relay: Some(if server == SLOW { THINK } else { Duration::ZERO }),
        crawl_delay: (server == Server::Simple).then_some("0.07"),
    });
    let mut stand = Stand::start(&parts);
    let seeds: Vec<String> = stand.sites.iter().flat_map(polite_seeds).collect();
    let fates = walk::walk(&stand.sites, &seeds, 1);
    let crawl = crawl::crawl(&stand, &seeds, POLITE);
    let (hits, seen) = stand.end();
    judge(&stand.sites, &fates, &crawl, &hits);
    for ((site, hits), seen) in stand.sites.iter().zip(&hits).zip(&seen) {
        let name = site.server.name();
        assert_eq!(seen.overlapping, 0, "{name}: connections opened while another was");
        assert!(hits.len() > 20, "{name} was asked {} times: too few to see gaps", hits.len());
        // Requests over TLS can't be distinguished from the handshake by an observer.
        if site.server.scheme() == "http" {
            assert_eq!(seen.exchanges.len(), hits.len(), "{name}: requests on the way and there");
            check_gaps(site, seen);
        }
    }
}

const FULL_SPEED: &str = r#"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
domain_visits_max = 100

[scope]
span = "host"
domains = ["sted.test"]

[pipeline]
depth_max = 32
allowance_new = 10_000

[store]
file_bytes_max = "8MiB"
sync_period = "500ms"
"#;

const POLITE: &str = r#"
[politeness]
burst = 1
delay = "40ms"
delay_factor = 3
address_delay = "0s"
domain_delay = "0s"
domain_visits_max = 100

[scope]
span = "host"
depth_max = 1
"#;
const DELAY: Duration = Duration::from_millis(40);
const DELAY_FACTOR: u32 = 3;
/// A server so slow that its own pace matters more than the delay.
const SLOW: Server = Server::Lighttpd;
const THINK: Duration = Duration::from_millis(25);
/// How much a busy machine may distort a gap before it is measured.
const SLACK: Duration = Duration::from_millis(5);

/// Returns the entrance page, the unusual pages and the tables of contents.
fn polite_seeds(site: &Site) -> Vec<String> {
    let trees = site.server.trees().iter().map(|tree| format!("{}/", tree.name()));
    let paths = ["".to_owned(), "odd/".to_owned()].into_iter().chain(trees);
    paths.map(|path| site.origin() + "/" + &path).collect()
}

/// Checks the gaps from the end of a reply to the next request: at least the longest of the
/// promises.
fn check_gaps(site: &Site, seen: &Seen) {
    let asked_for = site.crawl_delay.map(|delay| delay.parse().expect("a number"));
    let delay = asked_for.map_or(DELAY, |delay| DELAY.max(Duration::from_secs_f64(delay)));
    let (mut shortest, mut by_pace) = (Duration::MAX, 0);
    for pair in seen.exchanges.windows(2) {
        let visit = pair[0].answered - pair[0].asked;
        let promised = delay.max(visit * DELAY_FACTOR);
        by_pace += usize::from(promised > delay);
        let gap = pair[1].asked.saturating_duration_since(pair[0].answered);
        shortest = shortest.min(gap);
        let name = site.server.name();
        assert!(
            gap + SLACK >= promised,
            "{name}: a gap of {gap:?} where {promised:?} was promised"
        );
    }
    let (name, gaps) = (site.server.name(), seen.exchanges.len() - 1);
    assert!(site.server != SLOW || by_pace == gaps, "{name}: {by_pace} gaps by its own pace");
    println!("{name}: {gaps} gaps of {shortest:?} and more, {} connections", seen.connections);
}

/// Compares the crawl log and the access logs with the expected fates.
fn judge(sites: &[Site], fates: &Fates, crawl: &Crawl, hits: &[Vec<Hit>]) {
    let mut complaints = Vec::new();
    judge_log(sites, fates, crawl, &mut complaints);
    for (site, hits) in sites.iter().zip(hits) {
        judge_hits(site, fates, hits, &mut complaints);
        println!(
            "{}: {} requests, {} connections",
            site.server.name(),
            hits.len(),
            access::connections(hits)
        );
    }
    println!("{} URLs in {:?}", fates.len(), crawl.took);
    let count = complaints.len();
    assert!(count == 0, "{count} complaints:\n{}", complaints[..count.min(40)].join("\n"));
}

/// Checks that each reachable URL has one line with its outcome, and no other URL has one.
fn judge_log(sites: &[Site], fates: &Fates, crawl: &Crawl, complaints: &mut Vec<String>) {
    let (mut pages, robots) = crawl.by_key();
    // A line about a redirect that led to a known URL describes a chain, not that URL.
    pages.values_mut().for_each(|lines| lines.retain(|line| line.status != REDIRECT_TO_KNOWN));
    pages.retain(|_, lines| !lines.is_empty());
    for (key, fate) in fates {
        let expected = match fate {
            Fate::Fetched(status, _) => i32::from(*status),
            Fate::Closed => CLOSED,
        };
        match pages.remove(key).as_deref() {
            None => complaints.push(format!("not in the log: {key} ({expected})")),
            Some([line]) if line.status == expected => {}
            Some([line]) => complaints.push(format!("{key} should be {expected}: {}", line.text)),
            Some(lines) => complaints.push(format!(
                "{} times in the log: {key}, {}",
                lines.len(),
                lines[1].text
            )),
        }
    }
    complaints.extend(pages.values().map(|lines| format!("not to be found: {}", lines[0].text)));
    let asked = robots.iter().filter(|line| line.status == 200).count();
    if asked != sites.len() || robots.len() != sites.len() {
        complaints.push(format!("{} lines of robots.txt, {asked} of them good", robots.len()));
    }
}

/// The status of a redirect that led to a known URL.
const REDIRECT_TO_KNOWN: i32 = -4003;
/// Heritrix's status for URLs that robots.txt disallows.
const CLOSED: i32 = -9998;

/// The number of requests repeated to compare replies: two of each batch, if its replies are equal
/// as those of dead links are, with the default `pipeline.probation`.
const COMPARED_MAX: usize = 2 * 3;

/// Checks that each URL of a server was requested once, except for one or two of each of the first
/// batches, which are requested again (`pipeline.probation`), and that nothing else and nothing
/// disallowed was requested.
fn judge_hits(site: &Site, fates: &Fates, hits: &[Hit], complaints: &mut Vec<String>) {
    let mut asked: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for hit in hits {
        let url = url::Url::parse(&(site.origin() + &hit.target)).expect("a path is asked for");
        asked.entry(walk::key(&url)).or_default().push(hit.status);
    }
    if asked.remove(&(site.origin() + "/robots.txt")) != Some(vec![200]) {
        complaints.push(format!("{}: robots.txt is to be asked for once", site.origin()));
    }
    let mut compared = 0;
    for (key, fate) in fates.iter().filter(|(key, _)| key.starts_with(&site.origin())) {
        match (fate, asked.remove(key)) {
            (Fate::Closed, None) => {}
            (Fate::Closed, Some(_)) => complaints.push(format!("closed, but asked for: {key}")),
            (Fate::Fetched(status, _), Some(statuses)) if statuses == [*status] => {}
            (Fate::Fetched(status, _), Some(statuses)) if statuses == [*status; 2] => compared += 1,
            (Fate::Fetched(status, _), asked) => {
                complaints.push(format!("{key} was answered by {asked:?}, not once by {status}"));
            }
        }
    }
    if compared > COMPARED_MAX {
        complaints.push(format!("{}: {compared} URLs were asked for twice", site.origin()));
    }
    complaints.extend(asked.keys().map(|key| format!("asked for, but not to be found: {key}")));
}

/// Reads the archive with other tools: each reply once, with the bytes that were served.
fn read_back(stand: &Stand, fates: &Fates, crawl: &Crawl) {
    let mut expected = String::new();
    for line in crawl.lines.iter().filter(|line| line.status > 0) {
        let file = match fates.get(&walk::key(&line.url)) {
            Some(Fate::Fetched(_, file)) => file.clone(),
            _ => stand
                .sites
                .iter()
                .find(|site| line.url.as_str().starts_with(&site.origin()))
                .map(|site| site.root.join("robots.txt")),
        };
        let file = file.map(|file| file.display().to_string()).unwrap_or_default();
        let _ = writeln!(expected, "{}\t{}\t{file}", line.url, line.status);
    }
    let list = stand.folder().join("expected.tsv");
    std::fs::write(&list, expected).expect("the folder is the test's");
    let output = python("real/readback.py")
        .arg(list)
        .arg(crawl.job.join("warc/*"))
        .arg(crawl.job.join("index/*"))
        .output()
        .expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the archive read back:\n{said}{trouble}");
}
