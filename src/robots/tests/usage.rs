//! Lines about the use of pages: to whom and to which targets they apply.

use crate::ground::codec::Take;
use crate::ground::random::Random;
use crate::robots::{Rules, Usage};

fn rules(text: &str) -> Rules {
    Rules::parse(text.as_bytes(), "sted")
}

/// Returns the Content-Signal and Content-Usage values for a target.
fn values<'a>(rules: &'a Rules, target: &str) -> (&'a str, &'a str) {
    let (Usage { signals, usages, .. }, _) = rules.usage(target);
    (signals, usages)
}

#[test]
fn the_longest_path_counts() {
    let rules = rules(
        "User-agent: *\nAllow: /\nContent-Usage: / train-ai=n\nContent-Usage: /ai-ok/ train-ai=y\n\
         content-signal:search=yes,ai-train=no # all\nContent-Signal: /*.pdf$\tsearch=no\n",
    );
    for (target, signal, usage) in [
        ("/", "search=yes,ai-train=no", "train-ai=n"),
        ("/ai-ok/x?y", "search=yes,ai-train=no", "train-ai=y"),
        ("/ai-ok/x.pdf", "search=no", "train-ai=y"),
        ("/%61i-ok/", "search=yes,ai-train=no", "train-ai=y"),
    ] {
        assert_eq!(values(&rules, target), (signal, usage), "{target}");
    }
    assert!(rules.check("/ai-ok/").allowed && rules.has_rules());
}

#[test]
fn lines_hold_for_the_crawlers_of_their_group() {
    let text = "Content-Usage: bots=n\nLicense: https://a.test/terms.xml\n\
                User-agent: *\nContent-Signal: ai-train=no\n\
                User-agent: other\nUser-agent: sted\nContent-Signal: /a search=no\n\
                Content-Signal: /%61 search=yes\nAllow: /\n\
                User-agent: third\nContent-Usage: train-ai=n\nDisallow: /\n\
                license: https://a.test/2\n";
    let ours = rules(text);
    assert_eq!(values(&ours, "/a"), ("search=no\nsearch=yes", "bots=n"), "both spellings");
    assert_eq!(values(&ours, "/b"), ("", "bots=n"), "a group names us");
    assert_eq!(ours.usage("/").0.licenses, "https://a.test/terms.xml\nhttps://a.test/2");
    assert!(ours.check("/").allowed, "the rule is the third crawler's");
    let others = Rules::parse(text.as_bytes(), "fourth");
    assert_eq!(values(&others, "/a"), ("ai-train=no", "bots=n"));
    // They end a list of names for themselves, not for rules (RFC 9309, section 2.2.4).
    let text = "User-agent: a\nContent-Usage: bots=n\nUser-agent: sted\nDisallow: /x\n";
    let (ours, theirs) = (rules(text), Rules::parse(text.as_bytes(), "a"));
    assert_eq!((values(&ours, "/").1, values(&theirs, "/").1), ("", "bots=n"));
    assert!(!ours.check("/x").allowed && !theirs.check("/x").allowed);
}

#[test]
fn what_is_no_value_says_nothing() {
    for text in
        ["", "Content-Usage: \n", "Content-Usage: /a\n", "Content-Usages: a=y\n", "License:"]
    {
        let rules = rules(&format!("User-agent: *\n{text}"));
        assert!(!rules.has_rules() && rules.usage("/a") == Default::default(), "{text:?}");
    }
    let rules = rules("User-agent: *\nContent-Signal: odd \u{e9} \0 words\n");
    assert_eq!(values(&rules, "/"), ("odd \u{e9} \0 words", ""), "as it is written");
}

/// Law: what is encoded is decoded, and no bytes panic.
#[test]
fn a_later_run_reads_them() {
    let text =
        "User-agent: *\nCrawl-delay: 2\nDisallow: /x\nContent-Usage: /a bots=n\nLicense: l\n";
    for file in
        [text, "User-agent: *\nContent-Signal: search=no\n", "User-agent: *\nDisallow: /x\n"]
    {
        let rules = rules(file);
        let mut bytes = Vec::new();
        rules.encode(&mut bytes);
        let decoded = Rules::decode(&mut Take::new(&bytes)).expect("it was encoded");
        for target in ["/", "/a/b", "/x"] {
            assert_eq!(decoded.usage(target), rules.usage(target));
            assert_eq!(decoded.check(target), rules.check(target));
        }
        assert_eq!(decoded.crawl_delay(), rules.crawl_delay());
        let mut random = Random(9);
        for _ in 0..5_000 {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len());
            damaged[at] = random.word() as u8;
            damaged.truncate(random.below(damaged.len() + 1));
            let _ = Rules::decode(&mut Take::new(&damaged)).map(|rules| rules.usage("/a").1);
        }
    }
}

/// Law: of all lines that a naive matcher finds, the longest counts.
#[test]
fn a_naive_matcher_agrees() {
    let mut random = Random(11);
    for _ in 0..2_000 {
        let paths: Vec<String> = (0..random.below(6))
            .map(|_| {
                (0..random.below(4))
                    .fold("/".to_owned(), |path, _| path + random.pick(&["a", "b", "/"]))
            })
            .collect();
        let lines = paths.iter().enumerate();
        let text: String =
            lines.map(|(at, path)| format!("Content-Usage: {path} x{at}=y\n")).collect();
        let rules = rules(&format!("User-agent: *\n{text}"));
        let target = (0..random.below(6))
            .fold("/".to_owned(), |path, _| path + random.pick(&["a", "b", "/"]));
        let matching = paths.iter().filter(|path| target.starts_with(*path));
        let longest = matching.max_by_key(|path| path.len());
        let equal = paths.iter().enumerate().filter(|(_, path)| Some(*path) == longest);
        let expected: Vec<String> = equal.map(|(at, _)| format!("x{at}=y")).collect();
        assert_eq!(values(&rules, &target).1, expected.join("\n"), "{target} of {paths:?}");
    }
}
