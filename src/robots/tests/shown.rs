//! Tests that rules written as text are read back with the same verdicts.

use super::*;

/// Law: parsing the text of rules gives the same verdicts for every target, though not the same
/// lines, and the same delay.
#[test]
fn rules_survive_being_written_as_text() {
    let mut random = Random(0x5eed_0007);
    let mut forbidden = 0;
    for round in 0..6_000 {
        let file = random.file();
        let rules = Rules::parse(file.as_bytes(), "sted");
        let (text, is_cut) = rules.text(64 << 10);
        assert!(!is_cut);
        let again = Rules::parse(text.as_bytes(), "sted");
        assert_eq!(again.crawl_delay(), rules.crawl_delay());
        for _ in 0..12 {
            let target = random.path(&["*", "$", "'"]);
            let allowed = rules.check(&target).allowed;
            assert_eq!(again.check(&target).allowed, allowed, "{round}: {target}\n{file}\n{text}");
            forbidden += u32::from(!allowed);
        }
    }
    assert!(forbidden > 5_000, "the cases are too tame: {forbidden}");
}

/// Law: the text has at most as many bytes as it may, and says whether rules are left out.
#[test]
fn long_rules_are_cut_at_a_line() {
    let lines = (0..100).map(|line| format!("disallow: /{line}/*x$\nallow: /%7E{line}\n"));
    let file = format!("user-agent: *\ncrawl-delay: 1.5\n{}", lines.collect::<String>());
    let rules = Rules::parse(file.as_bytes(), "sted");
    let (whole, is_cut) = rules.text(usize::MAX);
    assert!(!is_cut && whole.starts_with("User-agent: *\nCrawl-delay: 1.500000\n"), "{whole}");
    assert!(
        whole.contains("\nAllow: /%7E7\n") && whole.contains("\nDisallow: /7/*x$\n"),
        "{whole}"
    );
    assert_eq!(whole.lines().count(), 202);
    for bytes_max in [100, 1_000, whole.len() - 1, whole.len()] {
        let (text, is_cut) = rules.text(bytes_max);
        assert_eq!(is_cut, bytes_max < whole.len());
        assert!(text.len() <= bytes_max && text.ends_with('\n') && whole.starts_with(&text));
    }
}

#[test]
fn the_deciding_rule_is_shown() {
    let file = "user-agent: *\nDISALLOW: /%61*/x$\nallow: /a/\ndisallow: /\n";
    let rules = Rules::parse(file.as_bytes(), "sted");
    let cases = [
        ("/ab/x", 2, Some("Disallow: /a*/x$")),
        ("/a/y", 3, Some("Allow: /a/")),
        ("/b", 4, Some("Disallow: /")),
        ("/robots.txt", 0, None),
    ];
    for (target, line, rule) in cases {
        let verdict = rules.check(target);
        assert_eq!((verdict.line, rules.rule_of(verdict).as_deref()), (line, rule), "{target}");
    }
}
