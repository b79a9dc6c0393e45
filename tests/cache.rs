//! Traces of crawls and `sted cache`, from outside.

use super::util::{Run, sted};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use sted::conf::Conf;
use sted::seen::trace::{Link, Page, Reader};
use sted::study::settings;
use sted::study::web::{Place, Ports, Resource, Web};
use sted::url::key::KeyRules;
use sted::url::{Fingerprinter, UrlRef};
use tempfile::TempDir;

/// A small web, crawled to the end with four connections under two policies.
const STUDY: &str = "\
[compare]
directory = \"out\"
policies = [\"bfs\", \"capability\"]
trace = true
[web]
preset = \"2003\"
hosts = 20
pages = 400
[politeness]
burst = \"server\"
delay = \"0s\"
delay_factor = 0
address_delay = \"0s\"
domain_delay = \"0s\"
robots = false
[connections]
open_max = 4
";

fn at(folder: &Path, arguments: &[&str]) -> Run {
    let output = sted(arguments).current_dir(folder).output();
    Run::of(output.expect("the program starts"))
}

/// Returns a folder in which a comparison was run.
fn compared(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("study.toml"), text).expect("written");
    let run = at(folder.path(), &["compare", "study.toml"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    folder
}

fn groups(path: &Path) -> Vec<(Page, Vec<Link>)> {
    let mut reader = Reader::default();
    reader.feed(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    let mut groups = Vec::new();
    while let Some(group) = reader.group().expect("a whole trace") {
        groups.push((group.page, group.links().collect()));
    }
    reader.end().expect("a whole trace");
    groups
}

/// A trace holds exactly the links of every page of the web, page by page and in their order.
#[test]
fn a_trace_holds_the_links_of_every_page_as_they_stand() {
    let folder = compared(STUDY);
    let conf = Conf::parse(STUDY, "study.toml").expect("valid");
    let web = Web::new(settings::web(&conf.web), Ports::default());
    let mut key = [0; 16];
    key[..8].copy_from_slice(&conf.sim.seed.to_le_bytes());
    let (hasher, rules) = (Fingerprinter::new(key), KeyRules::new(conf.url.settings()));
    let host_of = |host: &str| (hasher.of(host.as_bytes()).0 & 0xffff_ffff) as u32;
    let link_to = |place: Place| {
        let text = web.url(place);
        let url = UrlRef::from_canonical(text.as_bytes()).expect("a plain URL");
        let fingerprint = hasher.of(rules.key(url, &mut Vec::new()));
        Link { fingerprint, host: host_of(url.host()) }
    };
    let mut expected: BTreeMap<Vec<(u64, u32)>, (usize, u32)> = BTreeMap::new();
    let plain = |links: &[Link]| -> Vec<(u64, u32)> {
        links.iter().map(|link| (link.fingerprint.0, link.host)).collect()
    };
    for index in 0..web.pages_total() {
        let place = web.place_of(index);
        let links: Vec<Link> = web.links(place).iter().map(|link| link_to(link.to)).collect();
        let host = link_to(Place { host: place.host, resource: Resource::Page(0) }).host;
        expected.entry(plain(&links)).or_insert((0, host)).0 += 1;
    }
    for policy in ["bfs", "capability"] {
        let groups = groups(&folder.path().join(format!("out/{policy}.trace")));
        assert_eq!(groups.len(), web.pages_total(), "{policy}: a group a page");
        let mut left = expected.clone();
        for (page, links) in &groups {
            let (count, host) = left.get_mut(&plain(links)).expect("links of a page");
            assert!(*count > 0, "{policy}: a page is gone through once");
            *count -= 1;
            assert!(links.is_empty() || *host == page.host, "{policy}: its own host");
        }
        let times = groups.windows(2).all(|pair| pair[0].0.time_us <= pair[1].0.time_us);
        assert!(times, "{policy}: in order of time");
        let busy = groups.iter().map(|(page, _)| page.busy + page.parked);
        assert!({ busy }.all(|open| open <= 4), "{policy}: open connections");
        assert!(groups.iter().any(|(page, _)| page.busy > 1), "{policy}: side by side");
        let servers: BTreeMap<u32, u32> =
            groups.iter().map(|(page, _)| (page.server, page.host)).collect();
        assert_eq!(servers.len(), 20);
        assert!(groups.iter().all(|(page, _)| servers[&page.server] == page.host));
    }
}

#[test]
fn traces_become_a_report() {
    let folder = compared(STUDY);
    let traces = ["out/bfs.trace", "out/capability.trace"];
    let run = at(folder.path(), &["cache", traces[0], traces[1], "--size", "64"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for says in ["INFINITE", "Misses, bfs: all links", "falls fastest", "entries per connection"] {
        assert!(run.out.contains(says), "{says}: {}", run.out);
    }
    let out = folder.path().join("out/cache");
    let read = |name: &str| {
        fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let html = read("report.html");
    assert!(html.contains("CLOCK by entries per connection") && html.contains("WWW 2003"));
    for name in ["clock-full-size", "clock-cross-connection", "bfs-full-min", "bfs-cross-time"] {
        assert!(read(&format!("{name}.svg")).starts_with("<svg "), "{name}");
    }
    let (mut links, mut rows) = (BTreeMap::new(), 0);
    for line in read("misses.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [trace, stream, policy, entries, _, all, misses, ..] = cells[..] else {
            panic!("too few cells: {line}")
        };
        let (all, misses): (u64, u64) =
            (all.parse().expect("links"), misses.parse().expect("misses"));
        assert!(misses <= all, "{line}");
        assert!(["INFINITE", "MIN", "LRU", "CLOCK", "RANDOM", "STATIC"].contains(&policy));
        assert!(entries.parse::<u64>().expect("a size").is_power_of_two());
        links.insert((trace.to_owned(), stream.to_owned()), all);
        rows += 1;
    }
    assert!(rows > 4 * 6 * 5, "{rows} rows");
    let of = |stream: &str| links[&("bfs".to_owned(), stream.to_owned())];
    let groups = groups(&folder.path().join(traces[0]));
    let counted: usize = groups.iter().map(|(_, links)| links.len()).sum();
    assert_eq!(of("full"), counted as u64);
    assert!(of("cross") > 0 && of("cross") < of("full"));
    assert!(read("time.csv").lines().skip(1).all(|line| line.contains(",64,")));
    let run = at(folder.path(), &["cache", traces[0], "--out", "study.toml/x"]);
    assert_eq!((run.code, run.out.as_str()), (Some(3), ""), "{}", run.err);
    assert!(run.err.contains("study.toml/x: Not a directory"), "{}", run.err);
    // The same arguments give the same results, with one thread as with many.
    let again = ["cache", traces[0], traces[1], "--size", "64", "--threads", "1", "--out", "again"];
    assert_eq!(at(folder.path(), &again).code, Some(0));
    let second = fs::read_to_string(folder.path().join("again/misses.csv")).expect("written");
    assert_eq!(second, read("misses.csv"));
}

#[test]
fn a_torn_trace_is_used_as_far_as_it_is_whole() {
    let folder = compared(STUDY);
    let path = folder.path().join("out/bfs.trace");
    let bytes = fs::read(&path).expect("a trace");
    fs::write(&path, &bytes[..bytes.len() / 2 + 5]).expect("written");
    let run = at(folder.path(), &["cache", "out/bfs.trace"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("out/bfs.trace: at byte "), "{}", run.err);
    assert!(run.err.contains("what is before it is used"), "{}", run.err);
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("text"), "This is a text of some length, and no trace.").unwrap();
    fs::write(folder.path().join("file"), "").expect("written");
    for (arguments, code, says) in [
        (&["cache", "none.trace"][..], 2, "none.trace: No such file"),
        (&["cache", "text"], 2, "text: is no trace of a crawl"),
        (&["cache", "file"], 2, "file: is no trace of a crawl"),
        (&["cache", "."], 2, ".: "),
        (&["cache"], 2, "<TRACE>"),
        (&["cache", "text", "--size", "1000"], 2, "not a power of two"),
        (&["cache", "text", "--processes", "0"], 2, "0"),
    ] {
        let run = at(folder.path(), arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(code), ""), "{arguments:?}: {}", run.err);
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    }
}

/// By default no crawl writes a trace, because it is a large file.
#[test]
fn no_trace_is_left_unasked() {
    let folder = compared(&STUDY.replace("trace = true\n", ""));
    let left = fs::read_dir(folder.path().join("out")).expect("the results");
    let names: Vec<String> = left
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.contains("trace")), "{names:?}");
}

/// Variants whose names differ only in special characters have separate traces.
#[test]
fn every_crawl_has_a_trace_of_its_own() {
    let sweep = "variants = [\"a b\", \"a/b: web.seed=2\"]\nacross = \"connections.open_max\"\n\
        values = [2, 4]\nrepeats = 2\n";
    let folder = compared(&STUDY.replace("trace = true\n", &format!("trace = true\n{sweep}")));
    let left = fs::read_dir(folder.path().join("out")).expect("the results");
    let names: Vec<String> = left
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".trace"))
        .collect();
    assert_eq!(names.len(), 2 * 2 * 2 * 2, "{names:?}");
    assert!(names.contains(&"a_b-open_max-2-bfs-1.trace".to_owned()), "{names:?}");
}
