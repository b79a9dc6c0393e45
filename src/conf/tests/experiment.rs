//! Tests of synthetic webs, simulations and comparisons: contradictions, presets, variants.

use super::{Case, hold, lab, mistakes, open};
use crate::conf::{Change, Compare, Conf, Cost, Preset, Value, Web};

/// A valid comparison, with `more` added.
fn compare(more: &str) -> String {
    format!("compare.repeats = 2\n{more}")
}

const CLASHES: &[Case] = &[
    (lab, "web = { hosts = 0, hostile = [] }", Some("web.hosts"), "a web of nothing"),
    (lab, "web = { hosts = 0 }", None, "hostile hosts only"),
    (lab, "web = { pages = 59 }", Some("web.pages"), "hosts without a page"),
    (lab, "web = { pages = 60 }", None, "a page each"),
    (lab, "web = { graph = \"g\", hostile = [] }", Some("web.graph"), "the lab draws its web"),
    (compare, "web = { pages = 1, graph = \"g\", hostile = [] }", None, "the graph has its own"),
    (compare, "web = { graph = \"g\" }", Some("web.hostile"), "a graph has no hostile hosts"),
    (compare, "web = { hosts_file = \"h\" }", Some("web.hosts_file"), "hosts of no graph"),
    (compare, "web = { graph = \"g\", hosts_file = \"h\", hostile = [] }", None, "both"),
    (
        compare,
        "web = { graph = \"g\", hostile = [] }\ncompare.over = \"sockets\"",
        Some("web.graph"),
        "as the lab",
    ),
    (lab, "web = { gzip_share = 0.9 }", Some("web.gzip_share"), "more than every host"),
    (lab, "web = { robots_deny_share = 0.9 }", Some("web.robots_allow_share"), "as above"),
    (lab, "web = { redirect_share = 1 }", Some("web.not_found_share"), "as above, of pages"),
    (
        lab,
        "web.requests_per_connection = [\"1 for 0.6\", \"2 for 0.5\"]",
        Some("web.requests_per_connection"),
        "as above",
    ),
    (lab, "web = { pages_sigma = 5.1 }", Some("web.pages_sigma"), "draws of all or nothing"),
    (lab, "sim.seed = 2", Some("sim"), "the lab is not simulated"),
    (open, "sim.seed = 2", Some("sim"), "nor is the open web"),
    (open, "quality.file = \"q\"", Some("quality.file"), "a table that nothing reads"),
    (open, "quality.source = \"file\"", Some("quality.file"), "no table"),
    (open, "quality = { source = \"file\", file = \"q\" }", None, "both"),
    (open, "quality = { source = \"parent\", file = \"q\" }", None, "of fetched pages"),
    (open, "quality = { source = \"depth\", file = \"q\" }", Some("quality.file"), "no effect"),
    (open, "quality.source = \"command\"", Some("quality.command"), "no program"),
    (open, "quality.command = [\"score\"]", Some("quality.command"), "that nothing runs"),
    (open, "quality = { source = \"command\", command = [\"score\", \"-x\"] }", None, "both"),
    (compare, "", None, "no contact, no seeds: nobody is asked"),
    (
        compare,
        "politeness = { robots = false, delay = \"0s\", delay_factor = 0 }",
        None,
        "as above",
    ),
    (compare, "job.seeds = [\"https://a.org/\"]", Some("job.seeds"), "a stranger's seed"),
    (compare, "names.servers = [\"9.9.9.9\"]", Some("names.servers"), "a stranger's names"),
    (compare, "sim.window_max = \"1KiB\"", Some("sim.window_max"), "less than the first"),
    (compare, "sim.refusal_share = 1", Some("sim.refusal_share"), "nothing ever comes through"),
    (compare, "sim = { refusal_share = 1, faults_until = \"9s\" }", None, "an outage"),
    (lab, "profile.connections = [1, 3, 100]", None, "steps"),
    (lab, "profile.connections = []", Some("profile.connections"), "no step"),
    (lab, "profile.connections = [4, 2]", Some("profile.connections"), "down"),
    (lab, "profile.connections = [4, 4]", Some("profile.connections"), "the same again"),
    (lab, "profile.connections = [0]", Some("profile.connections"), "no connection at all"),
    (compare, "compare.policies = []", Some("compare.policies"), "nothing to compare"),
    (compare, "compare.policies = [\"bfs\", \"bfs\"]", Some("compare.policies"), "twice"),
    (compare, "compare.values = [1]", Some("compare.values"), "no key takes them"),
    (compare, "compare.across = \"connections.open_max\"", Some("compare.values"), "no values"),
    (compare, "quality.source = \"opic\"", None, "estimates, judged by PageRank"),
    (
        compare,
        "compare.topical_site_share = 0.6\ncompare.topical_parent_share = 0.5",
        Some("compare.topical_site_share"),
        "more than the whole variance",
    ),
    (
        compare,
        "compare.topical_speed = -0.8\ncompare.topical_size = 0.7",
        Some("compare.topical_speed"),
        "speed and size don't correlate with each other",
    ),
    (compare, "compare.topical_speed = -0.8\ncompare.topical_size = 0.6", None, "just possible"),
    (
        compare,
        "compare.quality = \"topical\"\ncompare.topical_speed = 0.5\nweb.preset = \"plain\"",
        Some("compare.topical_speed"),
        "equally fast hosts",
    ),
    (
        compare,
        "compare.quality = \"topical\"\ncompare.topical_size = 0.5\nweb.preset = \"plain\"",
        Some("compare.topical_size"),
        "equally large hosts",
    ),
    (compare, "compare.topical_size = 1.5", Some("compare.topical_size"), "no correlation"),
    (compare, "compare.topical_size = -1", None, "a correlation"),
    (
        compare,
        "quality.source = \"opic\"\ncompare.over = \"sockets\"",
        Some("quality.source"),
        "nobody judges them",
    ),
    (
        compare,
        "quality.source = \"opic\"\ncompare.over = \"sockets\"\ncompare.quality = \"crawl\"",
        None,
        "they are taken at their word",
    ),
    (
        compare,
        "compare.over = \"sockets\"\ncompare.threads = 2",
        Some("compare.threads"),
        "wall time can't be shared",
    ),
];

#[test]
fn contradictions() {
    hold(CLASHES);
}

/// The keys `across` and `values`, or `variants`; the expected message, if any; and why.
const STUDIES: &[(&str, Option<&str>, &str)] = &[
    ("across = \"connections.open_max\"\nvalues = [1, 2, 4]", None, "numbers"),
    ("across = \"politeness.burst\"\nvalues = [1, \"server\"]", None, "a number and a word"),
    ("across = \"sim.gateway\"\nvalues = [\"1MB\", \"none\"]", None, "sizes"),
    (
        "across = \"connections.open_max\"\nvalues = [1, 0]",
        Some(
            "compare.across: across connections.open_max = 0: connections.open_max: 0 is too \
             little; allowed: 1 to 60_000",
        ),
        "a value out of range",
    ),
    (
        "across = \"connections.open\"\nvalues = [1, 2]",
        Some("did you mean connections.open_max?"),
        "no such key, found once",
    ),
    ("across = \"open_max\"\nvalues = [1]", Some("compare.across: \"open_max\""), "no section"),
    (
        "across = \"connections.open_max\"\nvalues = [1, 1]",
        Some("compare.values: \"1\" is in the list twice"),
        "the same crawl twice",
    ),
    ("across = \"schedule.policy\"\nvalues = [\"bfs\"]", Some("compare.policies"), "policies"),
    ("across = \"web.preset\"\nvalues = [\"2003\"]", Some("every other key"), "no effect"),
    ("across = \"compare.repeats\"\nvalues = [2]", Some("the whole comparison"), "no sense"),
    ("across = \"compare.damping\"\nvalues = [0.5, 0.85]", None, "of the qualities"),
    ("across = \"compare.topical_size\"\nvalues = [-1, -0.5, 0, 1]", None, "with a sign"),
    ("variants = [\"a: compare.topical_size=-0.25\"]", None, "with a sign"),
    ("variants = [\"a\", \"b: pipeline.enabled=false\"]", None, "a switch"),
    ("variants = [\"a\", \"a: pipeline.enabled=false\"]", Some("the name \"a\""), "one name"),
    (
        "variants = [\"HTTP/1.0: politeness.burst=1, connections.idle_timeout=0s\"]",
        None,
        "several keys, a bare duration",
    ),
    (
        "variants = [\"a: politeness.burst=10, politeness.delay=1m\"]",
        Some("compare.variants: variant \"a\": politeness.delay_max: 5m is shorter"),
        "values that contradict each other",
    ),
    (
        "variants = [\"a: web.hosts=100, web.pages=50\"]",
        Some("variant \"a\": web.pages: 50 is less than hosts, 100"),
        "impossible numbers",
    ),
    ("variants = [\"a: job.name=b\"]", Some("the whole comparison"), "not of a crawl"),
    ("variants = [\"a: b\"]", Some("compare.variants: \" b\" is not a change"), "no change"),
];

#[test]
fn studies() {
    for (lines, expected, why) in STUDIES {
        let found = mistakes(&format!("[compare]\n{lines}"));
        match expected {
            Some(text) => {
                assert!(found.len() == 1 && found[0].contains(text), "{why}: {found:#?}");
                assert!(found[0].starts_with("x.toml:"), "{why}: the line is found: {found:?}");
            }
            None => assert_eq!(found, Vec::<String>::new(), "{why}"),
        }
    }
}

#[test]
fn a_changed_configuration_differs_in_what_was_changed_only() {
    let conf = Conf::parse("[compare]\nvariants = [\"a\"]\n[web]\npreset = \"2003\"", "x.toml");
    let conf = conf.expect("valid");
    let change = |key: &str, toml: &str| Change {
        key: key.to_owned(),
        value: Value::of_toml(toml.to_owned()),
    };
    let changes = [change("connections.open_max", "7"), change("sim.core_byte", "\"350ps\"")];
    let changed = conf.with("v", &changes).expect("valid");
    let mut expected = conf.clone();
    expected.connections.open_max = 7;
    expected.sim.core_byte = Cost::from_picoseconds(350);
    assert_eq!(changed, expected);
    assert_eq!(conf.with("v", &[]), Ok(conf.clone()), "no change is the same");
    let wrong = conf.with("variant x", &[change("connections.open_max", "0")]);
    let found = wrong.expect_err("out of range").to_string();
    assert!(found.starts_with("variant x: connections.open_max: 0 is too little"), "{found}");
}

/// A key is identified by its section, too; a section of the lab is unknown without a lab.
#[test]
fn keys_of_sections_that_are_not_there_are_none() {
    let conf = Conf { compare: Some(Compare::default()), ..Conf::default() };
    let change = Change { key: "lab.manifest".to_owned(), value: Value::of_toml("true".into()) };
    assert!(conf.with("v", &[change]).is_err());
}

#[test]
fn a_preset_is_where_others_start() {
    let text = lab("[web]\nhosts = 7\npreset = \"hostile\"\n");
    let web = Conf::parse(&text, "x.toml").expect("valid").web;
    assert_eq!(web, Web { hosts: 7, ..Web::of(Preset::Hostile) });
    for preset in [Preset::Plain, Preset::Quickstart, Preset::Bench, Preset::Hostile] {
        assert_eq!(Web::of(preset).preset, preset);
    }
}

/// The manual shows the web of the preset that it names.
#[test]
fn the_default_web_is_a_preset() {
    assert_eq!(Web::of(Web::default().preset), Web::default());
}
