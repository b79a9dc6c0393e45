//! Tests of values that the command line gives: how they are read, and the messages of mistakes.

use super::{every_key, mistakes, open};
use crate::conf::{Conf, Setting};
use crate::ground::random::Random;

/// Parses the configuration `text` with these arguments of `--set`, and returns the mistakes.
fn with(text: &str, set: &[&str]) -> Result<Conf, Vec<String>> {
    let set: Vec<Setting> = set
        .iter()
        .map(|text| Setting::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
        .collect();
    Conf::parse_with(text, "x.toml", &set)
        .map_err(|mistakes| mistakes.to_string().lines().map(str::to_owned).collect())
}

/// Law: `--set` with the default of any key gives the file without it, and so does `--set` with the
/// text of its value, without quotes.
#[test]
fn law_to_set_a_default_changes_nothing() {
    for key in every_key() {
        // Sections that are absent would come into being, and need each other.
        let text = ["lab", "compare", "web", "sim", "profile"].contains(&key.section);
        let text =
            if text { "lab = {}\ncompare = {}\nprofile = {}\n".to_owned() } else { open("") };
        let expected = Conf::parse(&text, "x.toml").map_err(|mistakes| mistakes.to_string());
        let expected = expected.unwrap_or_else(|error| panic!("{error}"));
        let value = expected
            .keys()
            .into_iter()
            .find(|other| other.name == key.name && other.section == key.section);
        let value = value.expect("a key of this configuration").value;
        let full = format!("{}.{}={value}", key.section, key.name);
        assert_eq!(with(&text, &[&full]).as_ref(), Ok(&expected), "{full}");
        if let Some(bare) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            let bare = format!("{}.{}={bare}", key.section, key.name);
            assert_eq!(with(&text, &[&bare]).as_ref(), Ok(&expected), "{bare}");
        }
    }
}

/// Law: a file without a key and `--set` of the key is the file with the key.
#[test]
fn law_to_set_is_to_write() {
    let all = Conf::with_experiments();
    let mut draw = Random(7);
    for _ in 0..200 {
        let keys = all.keys();
        let key = &keys[draw.below(keys.len() as u64) as usize];
        let other = match key.value.parse::<u64>() {
            Ok(number) => (number + 1).to_string(),
            Err(_) => match key.value.as_str() {
                "true" => "false".to_owned(),
                "false" => "true".to_owned(),
                text => text.to_owned(),
            },
        };
        let base = "lab = {}\ncompare = {}\nprofile = {}\n";
        if matches!(key.section, "lab" | "compare" | "profile") {
            continue;
        }
        let set = format!("{}.{}={other}", key.section, key.name);
        let written = format!("{base}{}.{} = {other}\n", key.section, key.name);
        let (set, written) = (with(base, &[&set]), Conf::parse(&written, "x.toml"));
        assert_eq!(set.clone().ok(), written.clone().ok(), "{}.{}", key.section, key.name);
        assert_eq!(set.is_err(), written.is_err());
    }
}

#[test]
fn values_are_toml_or_texts() {
    let value = |set: &str| {
        let conf = with(&open("scope.span = \"host\""), &[set]);
        let conf = conf.unwrap_or_else(|found| panic!("{set}: {found:?}"));
        let (key, _) = set.split_once('=').expect("a value");
        let keys = conf.keys();
        let key =
            keys.iter().find(|known| format!("{}.{}", known.section, known.name) == key.trim());
        key.expect("a key").value.clone()
    };
    for (set, expected) in [
        ("politeness.delay=2s", "\"2s\""),
        ("politeness.delay = \"2s\"", "\"2s\""),
        ("politeness.burst=server", "\"server\""),
        ("limits.pages_max=1_000", "1_000"),
        ("limits.pages_max=none", "\"none\""),
        ("job.name=2024", "\"2024\""),
        ("job.name=true", "\"true\""),
        ("job.seeds_file=a b#c", "\"a b#c\""),
        ("scope.hosts=a.example", "[\"a.example\"]"),
        ("scope.hosts=[\"a.example\", 'b.example']", "[\"a.example\", \"b.example\"]"),
        ("scope.exclude=/x[0-9]+\\.html$", "[\"/x[0-9]+\\\\.html$\"]"),
        ("connections.addresses_allowed=127.0.0.1", "[\"127.0.0.1/32\"]"),
        ("politeness.robots=false", "false"),
        ("politeness.delay_factor=2.5", "2.5"),
        ("fetch.headers=Accept-Language: de", "[\"Accept-Language: de\"]"),
    ] {
        assert_eq!(value(set), expected, "{set}");
    }
}

#[test]
fn the_command_line_goes_before_the_file_and_the_last_value_counts() {
    let text = open("politeness.delay = \"9\"\nscope.span = \"host\"");
    assert_eq!(mistakes(&text).len(), 1, "the file alone is wrong");
    let conf = with(&text, &["politeness.delay=1s", "politeness.delay=2s"]).expect("valid");
    assert_eq!(conf.politeness.delay.as_secs(), 2);
}

#[test]
fn mistakes_name_the_argument() {
    for (set, expected) in [
        ("politeness.dely=2s", "--set politeness.dely: no such key; did you mean delay?"),
        ("polite.delay=2s", "--set polite.delay: no such section; did you mean [politeness]?"),
        ("delay=2s", "--set delay: has no section; write politeness.delay"),
        ("x=2s", "--set x: has no section; write it like politeness.delay=2s"),
        (
            "politeness.delay=2",
            "--set politeness.delay: \"2\" has no unit; write \"2s\" or \"2000ms\" (us, ms, s, m, \
             h, d)",
        ),
        (
            "scope.exclude=(a",
            "--set scope.exclude: \"(a\" is not a regular expression: unclosed group",
        ),
        (
            "scope.exclude=['ok', '(a']",
            "--set scope.exclude: \"(a\" is not a regular expression: unclosed group",
        ),
        (
            "limits.pages_max=0",
            "--set limits.pages_max: 0 is too little; allowed: 1 to 1_000_000_000_000, or write \
             \"none\"",
        ),
        ("state.disk_full=stop", "--set state.disk_full: was renamed; write full in [disk]"),
        ("site.delay=2s", "--set site.delay: tables [[site]] can't be given on the command line"),
        ("memory.cache_entries=1000", "--set memory.cache_entries: 1000 is not a power of two"),
        ("fetch.accept=a\nb = 1", "--set fetch.accept: \"a\\nb = 1\" is not the value of"),
    ] {
        let found = with(&open(""), &[set]).expect_err(set);
        assert!(found[0].starts_with(expected), "{set}: {found:#?}");
    }
    for (text, expected) in [
        (
            "politeness.delay",
            "\"politeness.delay\" has no value; write it like politeness.delay=2s",
        ),
        ("scope.hosts=[\"a\"", "scope.hosts: [\"a\" is not TOML: "),
        ("job.name=\"a", "job.name: \"a is not TOML: "),
    ] {
        let error = Setting::parse(text).expect_err(text);
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Law: a configuration made of settings alone, printed by the keys that were set, is the same.
#[test]
fn law_what_is_set_is_printed() {
    let set = [
        Setting::of_list("URL", "job.seeds", &["https://a.org/\"x".to_owned()]),
        Setting::of_text("--contact", "identity.contact", "me@a.org"),
        Setting::of_text("--span", "scope.span", "any"),
        Setting::new("--pages", "limits.pages_max", "none"),
        Setting::parse("politeness.delay=3s").expect("a setting"),
        Setting::parse("store.gzip_level=9").expect("a setting"),
    ];
    let conf = Conf::parse_with("", "sted crawl", &set).unwrap_or_else(|error| panic!("{error}"));
    let text = conf.render_only(&set);
    assert_eq!(Conf::parse(&text, "job.toml"), Ok(conf), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" = ")).count(), set.len(), "{text}");
}
