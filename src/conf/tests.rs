//! Tests of mistakes and contradictions, and laws of parsing and printing.

mod endless;
mod experiment;
mod setting;

use super::*;
use crate::ground::random::Random;
use std::collections::BTreeMap;

/// A valid configuration of a crawl of the real web, with `more` added.
fn open(more: &str) -> String {
    let limit = match more.contains("[limits]") {
        true => "scope.span = \"host\"",
        false => "limits.pages_max = 9",
    };
    let whom = "job.seeds = [\"https://a.org/\"]\nidentity.contact = \"me@a.org\"";
    format!("{whom}\n{limit}\n{more}")
}

/// A valid configuration of a crawl of the lab, with `more` added.
fn lab(more: &str) -> String {
    format!("lab = {{}}\n{more}")
}

fn mistakes(text: &str) -> Vec<String> {
    match Conf::parse(text, "x.toml") {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.to_string().lines().map(str::to_owned).collect(),
    }
}

fn every_key() -> Vec<Key> {
    Conf::with_experiments().keys()
}

#[test]
fn what_is_needed_is_little() {
    assert_eq!(mistakes(&open("")), Vec::<String>::new());
    let conf = Conf::parse(&lab(""), "x.toml").expect("a lab needs nothing");
    assert_eq!(conf, Conf { lab: Some(Lab::default()), ..Conf::default() });
}

/// What is added to a valid configuration of the real web, the expected message, and why.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "\n[politeness]\ndelay = \"1\"",
        "x.toml:6: politeness.delay: \"1\" has no unit; write \"1s\" or \"1000ms\" (us, ms, \
             s, m, h, d)",
        "no unit",
    ),
    (
        "[politeness]\ndelay = 1",
        "x.toml:5: politeness.delay: \"1\" has no unit; write \"1s\" or \"1000ms\" (us, ms, \
             s, m, h, d)",
        "a bare number where a unit is needed",
    ),
    (
        "[politeness]\nrobots = \"yes\"",
        "x.toml:5: politeness.robots: expected true or false, found the text \"yes\"; \
             write it like true",
        "wrong type",
    ),
    (
        "[store]\ngzip_level = 13",
        "x.toml:5: store.gzip_level: 13 is too much; allowed: 0 to 12",
        "above the range",
    ),
    (
        "[connections]\nopen_max = 0",
        "x.toml:5: connections.open_max: 0 is too little; allowed: 1 to 60_000",
        "below the range",
    ),
    (
        "[store]\ngzip_level = -1",
        "x.toml:5: store.gzip_level: -1 is out of range; allowed: 0 to 12",
        "negative",
    ),
    (
        "[cluster]\nreplicas = 2",
        "x.toml:5: cluster.replicas: 2 can't be chosen; allowed: 1, 3 or 5",
        "of an even number half may be lost, and the rest is no majority",
    ),
    (
        "[limits]\npages_max = 0",
        "x.toml:5: limits.pages_max: 0 is too little; allowed: 1 to 1_000_000_000_000, or \
             write \"none\"",
        "no limit is a word, not a zero",
    ),
    (
        "[scope]\nspan = \"hots\"",
        "x.toml:5: scope.span: \"hots\" is not known; allowed: \"any\", \"host\", \
             \"domain\" or \"prefix\"; did you mean \"host\"?",
        "not of the closed set",
    ),
    (
        "[schedule]\npolicy = \"qualty\"",
        "x.toml:5: schedule.policy: \"qualty\" is not known; allowed: \"bfs\", \"performance\", \
             \"quality\", \"capability\", \"yield\", \"random\" or \
             \"largest-site-first\"; did you mean \
             \"quality\"?",
        "only what exists is accepted",
    ),
    (
        "[politeness]\nburst = \"all\"",
        "x.toml:5: politeness.burst: expected a whole number, found the text \"all\"; \
             write it like 1, or write \"server\"",
        "a number or a word",
    ),
    (
        "[fetch]\ncodings = [\"gzip\", \"br\", \"gzip\"]",
        "x.toml:5: fetch.codings: \"gzip\" is in the list twice; remove one",
        "the order would not be clear",
    ),
    (
        "[scope]\nexclude = [\n \"ok\",\n \"(a\",\n]",
        "x.toml:7: scope.exclude: \"(a\" is not a regular expression: unclosed group",
        "the line of the item, not of the key",
    ),
    (
        "[scope]\ndelay = \"1s\"",
        "x.toml:5: scope.delay: no such key here; it belongs in [politeness]",
        "a key of another section",
    ),
    (
        "[memory]\nseeds = 1",
        "x.toml:5: memory.seeds: no such key here; did you mean seen? (seeds belongs in [job] or \
         [web])",
        "a near key of the same section goes before the same key of another",
    ),
    (
        "[politeness]\ndealy = \"1s\"",
        "x.toml:5: politeness.dealy: no such key; did you mean delay?",
        "a letter slipped",
    ),
    (
        "[store]\nbody_byte_max = \"1MiB\"",
        "x.toml:5: store.body_byte_max: no such key; did you mean body_bytes_max in [fetch]?",
        "a slip in the wrong section",
    ),
    (
        "[state]\ndisk_full = \"stop\"",
        "x.toml:5: state.disk_full: was renamed; write full in [disk]",
        "a key of an earlier version",
    ),
    (
        "[links]\nembedded = true",
        "x.toml:5: links.embedded: was renamed; write requisites in [links]",
        "a key of an earlier version",
    ),
    (
        "[scope]\nfrobnicate = 1",
        "x.toml:5: scope.frobnicate: no such key; conf/reference.toml lists them all",
        "near to nothing",
    ),
    ("[crawler]", "x.toml:4: crawler: no such section; conf/reference.toml lists them all", "far"),
    ("[polite]", "x.toml:4: polite: no such section; did you mean [politeness]?", "its beginning"),
    (
        "[scope]\nmax_depth = 3",
        "x.toml:5: scope.max_depth: no such key; did you mean depth_max?",
        "",
    ),
    (
        "[limits]\nmax_pages = 3",
        "x.toml:5: limits.max_pages: no such key; did you mean pages_max?",
        "",
    ),
    (
        "[limits]\npages = 3",
        "x.toml:5: limits.pages: no such key here; did you mean pages_max? (pages belongs \
         in [web])",
        "the same section goes first",
    ),
    ("[politenes]", "x.toml:4: politenes: no such section; did you mean [politeness]?", "near"),
    (
        "delay = 1",
        "x.toml:4: delay: is outside a section; it belongs in [politeness]",
        "no section",
    ),
    ("scope = 1", "x.toml:4: scope: is a section; write it as [scope]", "no table"),
    ("[[scope]]", "x.toml:4: scope: is a section; write it as [scope]", "a table of tables"),
    (
        "[web]",
        "x.toml:4: web: nothing serves this web; add [lab] or [compare], or remove [web]",
        "no lab",
    ),
];

#[test]
fn mistakes_name_line_key_value_and_mend() {
    for (text, expected, why) in MISTAKES {
        assert_eq!(mistakes(&open(text)), [*expected], "{why}: {text}");
    }
}

#[test]
fn several_mistakes_are_reported_at_once_in_order() {
    let text = "[politeness]\nrobots = 1\n[job]\nseeds = [\"a b\", 3]\n[limits]\ntime_max = \"x\"";
    let found = mistakes(text);
    let starts = ["x.toml:2: politeness.robots", "x.toml:4: job.seeds", "x.toml:4: job.seeds"];
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{found:#?}");
    assert!(found[3].starts_with("x.toml:6: limits.time_max") && found[4].contains("contact"));
}

#[test]
fn syntax_is_reported_by_line() {
    for (text, line) in [("a = \n", 1), ("[job]\nname = \"x\nb = 1\n", 2), ("a=1\na=2\n", 2)] {
        let found = mistakes(text);
        let start = format!("x.toml:{line}: not TOML: ");
        assert!(!found.is_empty() && found[0].starts_with(&start), "{text:?}: {found:?}");
    }
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(!mistakes(&deep).is_empty(), "nesting without end is a mistake, not a crash");
}

#[test]
fn values_that_are_wrong_in_themselves() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("identity.product", &["sted", "My_Bot-x"], &["", "sted/1.0", "my bot", "b0t", "sted*"]),
        (
            "identity.contact",
            &["https://a.org/bot", "me@a.org", "mailto:me@a.org", "http://testing.org"],
            &[
                "a.org",
                "https://",
                "https://www.example.org/",
                "me@example.com",
                "x@bot.test",
                "me@a.org\\r\\nX: y",
                "https://a.org/ü",
                "@a.org",
                "me@",
                "https://localhost/",
            ],
        ),
        ("identity.from", &["me@a.org"], &["me", "me@@a.org", "a b@c.org", "<me@a.org>"]),
        ("job.name", &["a", "a-1.b_c"], &["", "a/b", ".a", "..", "ü", "a b"]),
        ("store.prefix", &["a"], &["../a", ""]),
        ("job.directory", &["x", "/a/b"], &["", "a\\u0000"]),
        ("fetch.accept", &["*/*"], &["", " */*", "a\\nb", "a\\tb", "é"]),
        ("identity.user_agent", &["auto", "sted (me@a.org)"], &["sted me@a.org\\r\\nHost: x", ""]),
    ];
    for (key, right, wrong) in cases {
        // With a lab no contradiction precedes the mistake of the value itself.
        let parse = |value: &str| mistakes(&lab(&format!("{key} = \"{value}\"")));
        for value in *right {
            assert_eq!(parse(value), Vec::<String>::new(), "{key} = {value}");
        }
        for value in *wrong {
            let found = parse(value);
            assert!(found.len() == 1 && found[0].contains(key), "{key} = {value}: {found:?}");
        }
    }
}

#[test]
fn items_that_are_wrong_in_themselves() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "job.seeds",
            &["https://h.test/a?b#c", "h.test", "h.test:81/x"],
            &["", "ftp://h.test/", "a b.test"],
        ),
        (
            "scope.hosts",
            &["a.org", "127.0.0.1", "[::1]"],
            &["A.org", "a.org:80", "a/b", "http://a", ""],
        ),
        ("scope.domains", &["a.org", "co.uk"], &["*.a.org", "ü.org", "a.org/"]),
        ("scope.prefixes", &["https://a.org/b"], &["a.org/b", "ftp://a/", "https://a b/"]),
        ("scope.include", &["^https", "a|b"], &["(", "a{9999999}", "(?=a)"]),
        ("url.drop_params", &["utm_*", "a"], &["*", "", "a=b", "u*m", "a&b"]),
        ("url.drop_index", &["index.html"], &["", "a/b", "a?", "a b"]),
        ("connections.addresses_allowed", &["10.0.0.0/8", "::1"], &["10.0.0.1/8", "a", "1.2.3"]),
        ("connections.addresses_refused", &["192.0.2.0/24", "::1"], &["192.0.2.1/24", "a"]),
        (
            "fetch.headers",
            &["Accept-Language: en"],
            &["Host: a", "USER-AGENT: x", "a b: c", "a", "A: b\\r\\nC: d", "A:"],
        ),
        ("web.requests_per_connection", &["1 for 0.5"], &["1", "0 for 0.5", "1 for x", "x for 1"]),
        ("web.hostile", &["quick", "bomb-gzip"], &["", "bomb-gzpi", "nice"]),
    ];
    for (key, right, wrong) in cases {
        let parse = |value: &str| {
            let bounded = if key.starts_with("scope") { "scope.span = \"host\"\n" } else { "" };
            mistakes(&lab(&format!("{bounded}{key} = [\"{value}\"]")))
        };
        for value in *right {
            assert_eq!(parse(value), Vec::<String>::new(), "{key} = {value}");
        }
        for value in *wrong {
            let found = parse(value);
            assert!(found.len() == 1 && found[0].contains(key), "{key} = {value}: {found:?}");
        }
    }
}

#[test]
fn name_servers_have_a_port() {
    for (text, expected) in [
        ("9.9.9.9", Some("9.9.9.9:53")),
        ("127.0.0.1:5353", Some("127.0.0.1:5353")),
        ("::1", Some("[::1]:53")),
        ("[::1]:5353", Some("[::1]:5353")),
        ("dns.org", None),
        ("9.9.9.9:0", None),
        ("9.9.9.9:99999", None),
    ] {
        let read = syntax::server(text).ok().map(|address| address.to_string());
        assert_eq!(read.as_deref(), expected, "{text}");
    }
}

/// Returns a text unchanged.
fn bare(text: &str) -> String {
    text.to_owned()
}

/// How a configuration is made of a text, the text, the expected key (`None` if it is valid), and
/// why.
type Case = (fn(&str) -> String, &'static str, Option<&'static str>, &'static str);

const CLASHES: &[Case] = &[
    (bare, "job.seeds = [\"https://a.org/\"]", Some("identity.contact"), "unnamed"),
    (bare, "identity.contact = \"me@a.org\"", Some("job.seeds"), "nowhere to start"),
    (
        bare,
        "job.seeds_file = \"s\"\nidentity.contact = \"me@a.org\"\nscope.span = \"host\"",
        None,
        "a file of seeds will do",
    ),
    (lab, "job.seeds = [\"http://h1.test/\"]", None, "a seed in the lab"),
    (lab, "job.seeds = [\"https://a.org/\"]", Some("job.seeds"), "a seed outside the lab"),
    (lab, "names.servers = [\"9.9.9.9\"]", Some("names.servers"), "not the lab's resolver"),
    (lab, "names.hosts_file = \"h\"", Some("names.hosts_file"), "not the lab's resolver"),
    (lab, "politeness.robots = false", None, "the lab is our own"),
    (open, "politeness.robots = false", Some("politeness.robots"), "deaf on the open web"),
    (open, "politeness.robots = false\nscope.span = \"host\"", None, "on named hosts"),
    (
        open,
        "politeness = { delay = \"0s\", delay_factor = 0 }",
        Some("politeness.delay"),
        "restless on the open web",
    ),
    (open, "scope.requisites = \"any\"", Some("scope.requisites"), "none to fetch"),
    (open, "politeness.delay = \"0s\"", None, "the factor gives rest"),
    (
        open,
        "connections.addresses_allowed = [\"10.0.0.0/8\"]",
        Some("connections.addresses_allowed"),
        "any page could send us there",
    ),
    (
        open,
        "connections.addresses_allowed = [\"10.0.0.0/8\"]\nscope.span = \"domain\"",
        None,
        "an intranet",
    ),
    (open, "scope.hosts = [\"b.org\"]", Some("scope.hosts"), "adds nothing to any"),
    (open, "scope = { span = \"host\", hosts = [\"b.org\"] }", None, "besides the seeds'"),
    (open, "scope.schemes = []", Some("scope.schemes"), "nothing is wanted"),
    (
        open,
        "identity.user_agent = \"other (me@a.org)\"",
        Some("identity.user_agent"),
        "does not name the product",
    ),
    (open, "identity.user_agent = \"STED\"", Some("identity.user_agent"), "no contact"),
    (
        open,
        "identity.user_agent = \"STED\"\nidentity.from = \"me@a.org\"",
        None,
        "the contact is in From",
    ),
    (
        open,
        "politeness = { burst = 10, delay = \"1m\" }",
        Some("politeness.delay_max"),
        "the rest owed is cut short",
    ),
    (
        open,
        "politeness = { delay_max = \"30s\" }",
        Some("politeness.crawl_delay_max"),
        "a Crawl-delay is cut short",
    ),
    (open, "names = { ttl_min = \"2h\", ttl_max = \"1h\" }", Some("names.ttl_min"), "crossed"),
    (
        open,
        "connections.fetch_timeout = \"15s\"",
        Some("connections.head_timeout"),
        "a part longer than the whole",
    ),
    (open, "memory.cache_entries = 1000", Some("memory.cache_entries"), "no power of two"),
    (open, "memory.buffers = \"1MiB\"", Some("memory.buffers"), "no room for one body"),
    (
        open,
        "memory.urls_max = 1000",
        Some("memory.urls_per_server_max"),
        "one server more than all",
    ),
];

#[test]
fn contradictions() {
    hold(CLASHES);
}

fn hold(cases: &[Case]) {
    for (whole, more, expected, why) in cases {
        let found = mistakes(&whole(more));
        match expected {
            Some(key) => {
                let is_reported =
                    found.first().is_some_and(|line| line.contains(&format!(": {key}: ")));
                assert!(is_reported, "{why}: {found:?}");
            }
            None => assert_eq!(found, Vec::<String>::new(), "{why}"),
        }
    }
}

/// If each line of a large file is a mistake, reporting all of them would take hours.
#[test]
fn many_mistakes_end_at_a_hundred() {
    let keys: String = (0..100_000).map(|at| format!("k{at} = 1\n")).collect();
    let items = "\"a b\",\n".repeat(100_000);
    for text in [
        keys.clone(),
        format!("[job]\n{keys}"),
        format!("[job]\nseeds = [\n{items}]"),
        "x = = \n".repeat(100_000),
    ] {
        let found = mistakes(&text);
        assert_eq!(found.len(), 101, "{:?}", found.first());
        assert_eq!(found[100], "x.toml: there are more; only the first 100 are shown");
    }
}

#[test]
fn a_mistake_is_not_reported_twice() {
    let found = mistakes("job.seeds = 1\nidentity.contact = \"nobody\"\nscope.span = \"host\"");
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn url_keys_are_the_station_s_own() {
    assert_eq!(UrlKey::default().settings(), crate::url::key::Settings::default());
    let text = lab("[url]\nsort_query = true\ndrop_params = [\"a\"]\ndrop_path_params = [\"b\"]\n\
                    drop_sessions = false\n\
                    drop_index = [\"i.html\"]\ndrop_trailing_slash = true\ndrop_www = true\n\
                    merge_schemes = true\n");
    let conf = Conf::parse(&text, "x.toml").expect("valid");
    let expected = crate::url::key::Settings {
        sort_query: true,
        drop_params: vec!["a".to_owned()],
        drop_path_params: vec!["b".to_owned()],
        drop_sessions: false,
        drop_index: vec!["i.html".to_owned()],
        drop_trailing_slash: true,
        drop_www: true,
        merge_schemes: true,
        ..crate::url::key::Settings::default()
    };
    assert_eq!(conf.url.settings(), expected);
}

#[test]
fn user_agent_is_made_of_its_parts() {
    let version = env!("CARGO_PKG_VERSION");
    let mut identity = Identity { contact: "me@a.org".to_owned(), ..Identity::default() };
    assert_eq!(identity.user_agent(), format!("sted/{version} (+me@a.org)"));
    identity.contact.clear();
    assert_eq!(identity.user_agent(), format!("sted/{version}"));
    identity.user_agent = Some("sted by hand".to_owned());
    assert_eq!(identity.user_agent(), "sted by hand");
}

/// The ends of a range in the text of a key's allowed values.
fn ends(allowed: &str) -> Option<(&str, &str)> {
    let range = allowed.split(", or ").next().expect("the first part");
    let (least, most) = range.split_once(" to ")?;
    (range.starts_with(|c: char| c == '"' || c.is_ascii_digit()) && !range.contains("letters"))
        .then_some((least, most))
}

#[test]
fn ranges_hold_at_both_ends() {
    let mut ranges = 0;
    for key in every_key() {
        let Some((least, most)) = ends(&key.allowed) else { continue };
        ranges += 1;
        let refused = |value: &str| {
            let line = format!("{}.{} = {value}", key.section, key.name);
            // Without a comparison nothing reads the section of the simulated world.
            let study = if key.section == "compare" { "" } else { "compare = {}\n" };
            let found = mistakes(&lab(&format!("{study}{line}")));
            found.iter().any(|line| line.contains("too little") || line.contains("too much"))
        };
        assert!(!refused(least) && !refused(most), "{key:?}");
        let beyond = match most.strip_prefix('"') {
            Some(text) => format!(
                "\"{}.5{}",
                text.trim_end_matches(|c: char| !c.is_ascii_digit()),
                text.trim_start_matches(|c: char| c.is_ascii_digit())
            ),
            None => format!("{most}9"),
        };
        if most != "9_223_372_036_854_775_807" {
            assert!(refused(&beyond), "{key:?} lets {beyond} pass");
        }
    }
    assert!(ranges > 90, "only {ranges} keys have a range");
}

#[test]
fn law_what_is_printed_reads_back() {
    let keys = every_key();
    let mut random = Random(7);
    let mut valid = 0;
    for _ in 0..1_200 {
        let mut sections: BTreeMap<&str, String> = BTreeMap::new();
        sections.insert("lab", String::new());
        sections.insert("compare", String::new());
        let mut used = Vec::new();
        for _ in 0..random.below(6) {
            let key = &keys[random.below(keys.len())];
            if !used.contains(&(key.section, key.name)) {
                used.push((key.section, key.name));
                let line = format!("{} = {}\n", key.name, another_value(key, &mut random));
                sections.entry(key.section).or_default().push_str(&line);
            }
        }
        let text: String =
            sections.iter().map(|(name, body)| format!("[{name}]\n{body}")).collect();
        if let Ok(conf) = Conf::parse(&text, "x.toml") {
            valid += 1;
            assert_eq!(Conf::parse(&conf.render(), "y.toml").as_ref(), Ok(&conf), "{text}");
        }
    }
    assert!(valid > 500, "only {valid} of 1,200 configurations were right");
}

/// Returns a valid value of the key, other than its default if possible.
fn another_value(key: &Key, random: &mut Random) -> String {
    if let Some((least, most)) = ends(&key.allowed) {
        return if random.below(2) == 0 { least } else { most }.to_owned();
    }
    let quoted: Vec<&str> = key.allowed.split('"').skip(1).step_by(2).collect();
    match (key.allowed.as_str(), quoted.as_slice()) {
        ("true or false", _) => ["true", "false"][random.below(2)].to_owned(),
        ("a list of values of that key" | "section.key, or \"none\"", _) => key.value.clone(),
        ("a list of URLs", _) => "[\"http://\\\"quoted\\\".test/\", \"h.test\"]".to_owned(),
        ("a path", _) => "\"a \\\\ \\\"b\\\" \\t ü\"".to_owned(),
        ("a list of regular expressions", _) => r#"["\\d+\"", 'a\.b']"#.to_owned(),
        ("a list of address ranges", _) => "[\"127.0.0.1\", \"fd00::/8\"]".to_owned(),
        (allowed, words) if allowed.starts_with("a list of \"") && !allowed.contains("for") => {
            format!("[\"{}\"]", words[random.below(words.len())])
        }
        (allowed, words) if allowed.starts_with('"') => {
            format!("\"{}\"", words[random.below(words.len())])
        }
        _ => key.value.clone(),
    }
}

#[test]
fn law_no_text_makes_it_panic() {
    let text = Conf::with_experiments().render();
    let pieces = ["\"", "[", "]", "=", "\n", "9", "-", ".", "\\", "\u{fffd}", "ü", "#", "{"];
    let mut random = Random(11);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..600 {
        let mut mutated = text.clone();
        for _ in 0..=random.below(2) {
            let mut at = random.below(mutated.len());
            while !mutated.is_char_boundary(at) {
                at -= 1;
            }
            match random.below(3) {
                0 => mutated.truncate(at.max(1)),
                1 => mutated.insert_str(at, pieces[random.below(pieces.len())]),
                _ => drop(mutated.remove(at)),
            }
        }
        match Conf::parse(&mutated, "x.toml") {
            Ok(conf) => {
                right += 1;
                assert_eq!(Conf::parse(&conf.render(), "x.toml"), Ok(conf));
            }
            Err(mistakes) => {
                wrong += 1;
                assert!(mistakes.list.iter().all(|mistake| !mistake.text.is_empty()));
            }
        }
    }
    assert!(right > 10 && wrong > 100, "{right} right, {wrong} wrong: the mutations are too tame");
}
