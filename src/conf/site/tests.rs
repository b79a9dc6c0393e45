//! Tests of `[[site]]` tables: what is read, what contradicts, and what is printed.

use super::*;
use crate::conf::Burst;
use crate::url::site::Matcher;

const OPEN: &str = "job.seeds = [\"https://a.org/\"]\nidentity.contact = \"me@a.org\"\n\
                    limits.pages_max = 9\n";

fn parse(more: &str) -> Result<Conf, Vec<String>> {
    let list = |mistakes: Mistakes| mistakes.to_string().lines().map(str::to_owned).collect();
    Conf::parse(&format!("{OPEN}{more}"), "x.toml").map_err(list)
}

#[test]
fn a_table_has_its_own_values_and_those_of_the_crawl() {
    let text = "politeness = { delay = \"2s\", burst = 3 }\n\
                [[site]]\nhost = \"b.org\"\ndelay = \"9s\"\ninclude = [\"x\"]\n\
                [[site]]\nprefix = \"https://c.org/d\"\ndepth_max = 2\n\
                headers = { Authorization = \"Bearer secret\" }\n";
    let conf = parse(text).expect("valid");
    let [first, second] = conf.sites.as_slice() else { panic!("two tables") };
    assert_eq!((first.line, second.line), (5, 9));
    assert_eq!(first.matcher, Matcher::Host("b.org".to_owned()));
    assert_eq!(second.matcher, Matcher::Prefix("https://c.org/d".to_owned()));
    assert_eq!(first.politeness.delay, std::time::Duration::from_secs(9));
    assert_eq!(first.politeness.burst, Burst::Requests(3), "that of the crawl");
    assert!(first.has("delay") && !first.has("burst"));
    assert_eq!((first.scope.include.len(), second.scope.depth_max), (1, Some(2)));
    assert_eq!(second.headers(), ["Authorization: Bearer secret"]);
    assert!(first.headers().is_empty());
}

/// Law: what is printed reads back, but for the values of header fields, which no text has.
#[test]
fn law_secrets_are_not_printed() {
    let text = "[[site]]\ndomain = \"b.org\"\nburst = \"server\"\n\
                headers = [\"X-Key: secret\", \"Cookie: secret\"]\nexclude = [\"a\\\"b\"]\n";
    let conf = parse(text).expect("valid");
    let printed = conf.render();
    assert!(!printed.contains("secret"), "{printed}");
    let again = Conf::parse(&printed, "y.toml").expect("valid");
    assert_eq!(again.render(), printed);
    assert!(again.sites[0].hides_headers() && again != conf);
    let refused = again.has_all_headers("y.toml").expect_err("the values are missing");
    assert!(refused.to_string().contains("site.headers"), "{refused}");
    assert_eq!(conf.has_all_headers("x.toml"), Ok(()));
    let plain = parse("[[site]]\nhost = \"b.org\"\ndelay = \"3s\"\n").expect("valid");
    assert_eq!(Conf::parse(&plain.render(), "y.toml"), Ok(plain));
}

/// What a file has beside the necessary, the beginning of its only mistake, and why.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("site = 1", "x.toml:4: site: is a list of tables; write [[site]]", "no tables"),
    ("[site]\nhost = \"b.org\"", "x.toml:4: site: is a list of tables", "one bracket too few"),
    ("[[site]]\ndelay = \"1s\"", "x.toml:4: site: says not which URLs it is for", "no matcher"),
    (
        "[[site]]\nhost = \"b.org\"\ndelay = \"1s\"\ndomain = \"b.org\"",
        "x.toml:7: site.domain: the table has host, too",
        "two matchers",
    ),
    (
        "[[site]]\nhost = \"b.org\"",
        "x.toml:5: site.host: the table has no settings",
        "nothing but a matcher",
    ),
    (
        "[[site]]\nhost = \"b.org\"\ndelay = \"1s\"\n\n[[site]]\nhost = \"b.org\"\nburst = 2",
        "x.toml:9: site.host: the table at line 4 is for the same",
        "the same matcher twice",
    ),
    (
        "[[site]]\nhost = \"b.org\"\ndelya = \"1s\"",
        "x.toml:6: site.delya: no such key; did you mean delay?",
        "misspelt",
    ),
    (
        "[[site]]\nhost = \"b.org\"\nrobots = false",
        "x.toml:6: site.robots: can't differ between sites; it belongs in [politeness]",
        "a key of the whole crawl",
    ),
    (
        "[[site]]\nhost = \"http://b.org/\"\ndelay = \"1s\"",
        "x.toml:5: site.host: \"http://b.org/\" is not a host name",
        "a URL for a host",
    ),
    (
        "[[site]]\nprefix = \"https://b.org/x\"\ndelay = \"1s\"",
        "x.toml:6: site.delay: a server has one pace for all its URLs; move this key to a table \
         with host = \"b.org\"",
        "a pace for a part of a server",
    ),
    (
        "[[site]]\nhost = \"b.org\"\ndelay = \"10m\"",
        "x.toml:6: site.delay: the rest after a visit, burst x delay = 10m, is longer than",
        "a rest that would be cut",
    ),
    (
        "[[site]]\ndomain = \"co.uk\"\ndelay = \"0s\"\ndelay_factor = 0",
        "x.toml:6: site.delay: with span = \"any\" servers below a public suffix need a rest",
        "no rest for strangers",
    ),
    (
        "[[site]]\nhost = \"b.org\"\ninclude = [\"x\"]\nexclude = [\"y\", \"x\"]",
        "x.toml:7: site.exclude: include has \"x\", too",
        "the same pattern in both",
    ),
    (
        "scope.schemes = [\"https\"]\n[[site]]\nprefix = \"http://b.org/\"\ndepth_max = 1",
        "x.toml:6: site.prefix: scope.schemes has another scheme",
        "a scheme that is not crawled",
    ),
    (
        "scope.exclude = [\"^https?://b[.]org/\"]\n[[site]]\nhost = \"b.org\"\ndepth_max = 1",
        "x.toml:6: site.host: scope.exclude has",
        "excluded as a whole",
    ),
    (
        "scope.span = \"host\"\n[[site]]\nhost = \"b.org\"\ndepth_max = 1",
        "x.toml:6: site.host: no seed is there",
        "outside the span",
    ),
    (
        "[[site]]\nhost = \"b.org\"\npages_max = 0",
        "x.toml:6: site.pages_max: 0 is too little; allowed: 1 to",
        "no page",
    ),
    (
        "[[site]]\nhost = \"b.org\"\nquality = 2",
        "x.toml:6: site.quality: has no effect with schedule.policy = \"bfs\"",
        "a quality that nothing uses",
    ),
    (
        "[[site]]\ndomain = \"co.uk\"\nheaders = { Authorization = \"secret\" }",
        "x.toml:6: site.headers: anybody can have a host below this public suffix",
        "a secret for everybody",
    ),
    (
        "[[site]]\nhost = \"b.org\"\nheaders = { Host = \"secret\" }",
        "x.toml:6: site.headers: Host is set by the crawler",
        "a field of the crawler",
    ),
    (
        "[[site]]\nhost = \"b.org\"\nheaders = [\"X: sec\\r\\nret\"]",
        "x.toml:6: site.headers: the value of X can't be sent",
        "a line end in a value",
    ),
    (
        "[[site]]\nhost = \"b.org\"\nheaders = { X = 1 }",
        "x.toml:6: site.headers: the value of X is no text",
        "no text",
    ),
];

#[test]
fn mistakes_have_a_line_and_a_fix() {
    for (more, expected, why) in MISTAKES {
        let found = parse(more).expect_err(why);
        assert!(found[0].starts_with(expected), "{why}: {found:#?}");
        assert_eq!(found.len(), 1, "{why}: {found:#?}");
        assert!(!found[0].contains("sec"), "{why}: no secret in a message");
    }
}

#[test]
fn tables_that_may_match_are_allowed() {
    for more in [
        "scope.span = \"host\"\n[[site]]\nhost = \"www.a.org\"\ndepth_max = 1",
        "scope.span = \"host\"\n[[site]]\ndomain = \"org\"\ndepth_max = 1",
        "scope.span = \"domain\"\n[[site]]\nhost = \"x.a.org\"\ndepth_max = 1",
        "scope.span = \"prefix\"\n[[site]]\nprefix = \"https://a.org/x\"\ndepth_max = 1",
        "scope = { span = \"host\", domains = [\"b.org\"] }\n[[site]]\nhost = \"b.org\"\nburst = 2",
        "scope.exclude = [\"x$\"]\n[[site]]\nhost = \"b.org\"\nburst = 2",
        "[[site]]\nhost = \"b.org\"\ndelay = \"0s\"\ndelay_factor = 0",
        "[[site]]\nhost = \"b.org\"\npages_max = \"none\"",
        "schedule.policy = \"quality\"\n[[site]]\nhost = \"b.org\"\nquality = 2.5",
    ] {
        assert_eq!(parse(more).err(), None, "{more}");
    }
}

/// Law: a key with the flag `Site` may be in a table, and no other key but the table's own.
#[test]
fn law_the_keys_of_a_table_are_those_with_the_flag() {
    let own = ["host", "domain", "prefix", "pages_max", "quality"];
    let all = Conf::default().keys();
    let flagged = all.iter().filter(|key| key.flags.contains(&Flag::Site));
    let mut expected: Vec<&str> = flagged.map(|key| key.name).chain(own).collect();
    let known = names();
    let mut found: Vec<&str> = known.iter().map(|key| key.name).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn the_example_of_the_manual_is_valid() {
    let conf = parse(EXAMPLE).expect("valid");
    assert_eq!(conf.sites.len(), 3);
    assert!(manual().lines().all(|line| line.is_empty() || line.starts_with('#')));
}
