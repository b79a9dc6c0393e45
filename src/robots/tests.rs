//! Tests the rules of the standard by tables, and random files against a naive implementation.

mod leniency;
mod shown;
mod usage;
mod worst;
use super::*;
use crate::ground::random::Random;

fn allowed(file: &str, product: &str, target: &str) -> bool {
    Rules::parse(file.as_bytes(), product).check(target).allowed
}

#[test]
fn groups() {
    let cases = [
        ("user-agent: sted\ndisallow: /", false, "2.2.1 the group that names us"),
        ("user-agent: StEd\ndisallow: /", false, "2.2.1 case doesn't matter"),
        ("user-agent: sted/1.0\ndisallow: /", false, "2.2.1 the token ends before the version"),
        ("user-agent: sted bot\ndisallow: /", false, "2.2.1 the token ends at a space"),
        ("user-agent: stedbot\ndisallow: /", true, "2.2.1 the whole token must agree"),
        ("user-agent: ste\ndisallow: /", true, "2.2.1 a prefix of it is another product"),
        ("user-agent: *\ndisallow: /", false, "2.2.1 * is for all whom no group names"),
        ("user-agent: *\ndisallow: /\nuser-agent: sted\nallow: /", true, "2.2.1 ours, not *'s"),
        ("user-agent: sted\nallow: /\nuser-agent: *\ndisallow: /", true, "in whatever order"),
        ("user-agent: *\ndisallow: /\nuser-agent: sted\n", true, "ours, though it says nothing"),
        ("user-agent: *b\ndisallow: /", true, "* followed by more is not *"),
        ("user-agent: * # all\ndisallow: /", false, "a comment is not part of it"),
        ("user-agent: a\nuser-agent: sted\nuser-agent: b\ndisallow: /", false, "2.1 several heads"),
        (
            "user-agent: sted\nallow: /a\nuser-agent: x\nallow: /\nuser-agent: sted\ndisallow: /",
            false,
            "2.2.1 groups for one product are one group",
        ),
        ("user-agent: sted\nsitemap: x\nuser-agent: b\ndisallow: /", false, "2.2.4 no end"),
        ("user-agent: sted\ncrawl-delay: 1\nuser-agent: b\ndisallow: /", false, "2.2.4 no end"),
        ("user-agent: sted\n\n\nuser-agent: b\ndisallow: /", false, "2.1 nor do empty lines"),
        ("user-agent: sted\nnonsense\nuser-agent: b\ndisallow: /", false, "nor what's no record"),
        ("user-agent: sted\ndisallow:\nuser-agent: b\ndisallow: /", true, "an empty rule does"),
        ("disallow: /\nuser-agent: sted\nallow: /x", true, "rules above all groups are nobody's"),
        ("useragent: sted\ndisallow: /", false, "a misspelling that the reference knows"),
        ("user-agent: sted\ndislalow: /", true, "one that nobody knows"),
        ("user-agent sted\n disallow\t / # x", false, "a colon may be missing between two words"),
        ("user-agent: sted\ndisallow / x", true, "but not among three"),
        ("user-agent: sted\ndisallow\n/", true, "a name alone is nothing"),
        (" USER-agent\t :\t sted \r\n\tDisAllow  : /", false, "2.2 white space and case of names"),
        ("\u{feff}user-agent: sted\ndisallow: /", false, "a byte order mark is no text"),
        ("user-agent: sted\rdisallow: /", false, "2.2 CR ends a line"),
        ("user-agent: sted # x\ndisallow: /#y", false, "2.2.3 comments"),
        ("user-agent: sted\n#disallow: /", true, "2.2.3 comments"),
        ("", true, "2.2.2 no rule"),
    ];
    for (file, expected, why) in cases {
        assert_eq!(allowed(file, "sted", "/"), expected, "{why}: {file:?}");
    }
    assert!(allowed("user-agent: bot1\ndisallow: /", "bot1", "/"), "2.2.1 a digit ends the token");
    assert!(allowed("user-agent: 1\ndisallow: /", "", "/"), "no token names nobody");
}

#[test]
fn matching_one_rule() {
    let cases = [
        ("/", "/any", true, "2.2.2 from the first octet"),
        ("/fish", "/fish.html", true, "2.2.2 to the rule's end"),
        ("/fish", "/Fish", false, "2.2.2 case counts"),
        ("/fish/", "/fish", false, "2.2.2 all of the rule"),
        ("", "/", false, "an empty rule matches nothing"),
        ("fish", "/fish", false, "2.2 a path starts with /"),
        ("*fish", "/a/fish", true, "2.2.3 or with *"),
        ("*", "/", true, "2.2.3 *"),
        ("/*.php", "/a/b.php5?x", true, "2.2.3 *"),
        ("/*.php$", "/a.php", true, "2.2.3 $"),
        ("/*.php$", "/a.php?x", false, "2.2.3 $"),
        ("/*.php$", "/a.php.php", true, "2.2.3 the last place counts"),
        ("/a$", "/a", true, "2.2.3 $"),
        ("/a$", "/ab", false, "2.2.3 $"),
        ("/a$b", "/a$bc", true, "2.2.3 $ is special at the end only"),
        ("/a*$", "/ab", true, "* takes the end too"),
        ("/a**b", "/ab", true, "2.2.3 * may stand for nothing"),
        ("/a*b*c", "/acb", false, "2.2.3 in order"),
        ("/a*ab", "/aab", true, "* may stand for nothing"),
        ("/*aab", "/aaab", true, "a piece may start within a false start"),
        ("$", "/", false, "nothing has no first octet"),
        ("/%2A", "/x", false, "2.2.3 %2A is the character"),
        ("/x%2A", "/x*y", true, "2.2.3 %2A is the character"),
        ("/x%24", "/x$y", true, "2.2.3 %24 is the character"),
        ("/x%24", "/x", false, "2.2.3 %24 is the character"),
        ("/x$y", "/x%24y", true, "2.2.3 and in the path as well"),
        ("/%62%61%7a", "/baz", true, "2.2.2 unreserved octets are decoded"),
        ("/baz", "/%62%61%7A", true, "2.2.2 on both sides"),
        ("/%e3%83%84", "/%E3%83%84", true, "2.2.2 case of the digits"),
        ("/ツ", "/%E3%83%84", true, "2.2.2 other octets are encoded"),
        ("/%e3%83%84", "/ツ", true, "2.2.2 on both sides"),
        ("/a<b c", "/a%3Cb%20c", true, "what no URI can hold is encoded"),
        ("/a%2fb", "/a/b", false, "2.2.2 reserved octets keep their form"),
        ("/a%2fb", "/a%2Fb", true, "2.2.2 but for the case of digits"),
        ("/a?b=%3A", "/a?b=:", false, "2.2.2 reserved octets keep their form"),
        ("/?q='", "/?q=%27x", true, "URL parsers write ' so"),
        ("/%", "/%zz", true, "what encodes nothing is text"),
        ("/%2", "/%2", true, "what encodes nothing is text"),
        ("/%2", "/%252", true, "and that text is %25"),
        ("/%b%61", "/%ba", false, "what is decoded is not decoded again"),
        ("/%b%61", "/%25ba", true, "what is decoded is not decoded again"),
        ("/a?b", "/a?bc", true, "the query is part of the path"),
        ("/*?*x=", "/a?y&x=1", true, "the query is part of the path"),
    ];
    for (rule, target, expected, why) in cases {
        let file = format!("user-agent: *\ndisallow: {rule}");
        assert_eq!(!allowed(&file, "sted", target), expected, "{why}: {rule} on {target}");
    }
}

#[test]
fn the_most_octets_decide() {
    let cases = [
        ("disallow: /x\nallow: /x/y", "/x/y", true, 3, "2.2.2 longest"),
        ("allow: /x/y\ndisallow: /x", "/x/y", true, 2, "2.2.2 in whatever order"),
        ("allow: /x\ndisallow: /x/y", "/x/y", false, 3, "2.2.2 longest"),
        ("disallow: /x\nallow: /x", "/x", true, 3, "2.2.2 Allow between equals"),
        ("allow: /x\nallow: /x", "/x", true, 2, "the earlier line between equals"),
        ("allow: /p\ndisallow: /*p", "/p", false, 3, "a star is an octet"),
        ("allow: /p\ndisallow: /*", "/p", true, 2, "a star is an octet"),
        ("allow: /$\ndisallow: /", "/", true, 2, "an end is an octet"),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", false, 3, "2.2.2 longest"),
        ("disallow: /ab****\nallow: /abcd", "/abcde", false, 2, "each star is an octet"),
        ("disallow: /ツ\nallow: /*%E3%83%84*", "/%E3%83%84", true, 3, "2.2.2 octets as encoded"),
        ("disallow: /a\nallow: /b", "/c", true, 0, "2.2.2 no match"),
        ("disallow: /", "/robots.txt", true, 0, "2.2.2 the file itself"),
        ("disallow: /", "/%72obots.txt", true, 0, "2.2.2 in any spelling"),
        ("disallow: /", "/robots.txt2", false, 2, "2.2.2 but nothing else"),
        ("disallow: /", "", false, 2, "an empty path is /"),
        ("disallow: /?x", "?x", false, 2, "an empty path is /"),
    ];
    for (rules, target, expected, line, why) in cases {
        let verdict = Rules::parse(format!("user-agent: *\n{rules}").as_bytes(), "s").check(target);
        let expected = Verdict { allowed: expected, line };
        assert_eq!(verdict, expected, "{why}: {rules:?} on {target}");
    }
}

/// Where the standard and the reference matcher differ, the interpretation that forbids wins.
#[test]
fn allowing_is_read_narrowly() {
    let cases = [
        ("/%62%61%7A", "/%62%61%7A", true, "both: the same escapes"),
        ("/%62%61%7A", "/%62%61%7a", true, "2.2.2 case of the digits"),
        ("/%62%61%7A", "/baz", false, "reference: an escape is met by an escape"),
        ("/%62%61%7A", "/%62a%7A", false, "reference: by each one"),
        ("/%62", "/%62az", true, "both: a prefix"),
        ("/*%62$", "/a%62", true, "both: after a star"),
        ("/*%62$", "/ab", false, "reference: after a star"),
        ("/%62*z", "/%62az", true, "both: before a star"),
        ("/baz", "/%62%61%7A", true, "the target's spelling is its author's choice"),
        ("/~user", "/%7Euser", true, "the target's spelling is its author's choice"),
        ("/%7Euser", "/~user", false, "reference: an escape is met by an escape"),
        ("/x%2A", "/x*", true, "2.2.3 the only way to name a star"),
        ("/x%24", "/x$", true, "2.2.3 the only way to name a $ at the end"),
        ("/ツ", "/%E3%83%84", true, "both: rules are encoded"),
        ("/%e3%83%84", "/%E3%83%84", true, "2.2.2 case of the digits"),
        ("/ツ", "/ツ", false, "reference: targets are not"),
        ("/%E3%83%84", "/ツ", false, "reference: targets are not"),
        ("/*%E3%83%84", "/aツ", false, "reference: after a star"),
        ("/a", "/aツ", true, "both: what comes later doesn't matter"),
        ("/*a$", "/ツa", true, "both: a star stands for anything"),
        ("/~a", "/%7Ea/ツ", true, "both rules at once"),
        ("/%7Ea", "/%7Ea/ツ", true, "both rules at once"),
    ];
    for (rule, target, expected, why) in cases {
        let file = format!("user-agent: *\ndisallow: /\nallow: {rule}");
        assert_eq!(allowed(&file, "sted", target), expected, "{why}: {rule} on {target}");
        let file = format!("user-agent: *\ndisallow: {rule}");
        assert!(!allowed(&file, "sted", target), "forbidding stays broad: {rule} on {target}");
    }
    let both = "user-agent: *\ndisallow: /ツ\nallow: /ツ";
    assert!(allowed(both, "sted", "/%E3%83%84"), "2.2.2 Allow between equals");
    assert!(!allowed(both, "sted", "/ツ"), "the one that forbids isn't lost among equals");
}

#[test]
fn lines_are_counted_over_all_kinds_of_ends() {
    let file = "# one\r\n\r\rUser-agent: *\n\r\nDisallow: /";
    assert_eq!(Rules::parse(file.as_bytes(), "sted").check("/").line, 6);
}

#[test]
fn crawl_delays() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let cases = [
        ("user-agent: *\ncrawl-delay: 5", ms(5_000), "whole seconds"),
        ("user-agent: *\ncrawl-delay: 1.25 # s", ms(1_250), "decimals"),
        ("user-agent: *\ncrawl-delay: .5", ms(500), "no whole part"),
        ("user-agent: *\ncrawl-delay: 3.", ms(3_000), "no decimals"),
        ("user-agent: *\ncrawl-delay: 0.0000019", Some(Duration::from_micros(1)), "microseconds"),
        ("user-agent: *\ncrawl-delay: 0", ms(0), "no delay is an answer"),
        ("user-agent: *\ncrawl-delay: 10s", ms(10_000), "what follows is ignored"),
        ("user-agent: *\ncrawl-delay: -1", None, "not a number of seconds"),
        ("user-agent: *\ncrawl-delay: soon", None, "not a number"),
        ("user-agent: *\ncrawl-delay: .", None, "not a number"),
        ("crawl-delay: 7\nuser-agent: *\ndisallow: /", None, "above all groups: nobody's"),
        ("user-agent: *\ncrawl-delay: 1\ncrawl-delay: 9\ncrawl-delay: 2", ms(9_000), "longest"),
        (
            "user-agent: sted\ncrawl-delay: 1\nuser-agent: *\ncrawl-delay: 9",
            ms(1_000),
            "of our group",
        ),
        ("user-agent: *\ncrawl-delay: 9\nuser-agent: sted\nallow: /", None, "never *'s for ours"),
        ("user-agent: slow\ncrawl-delay: 9\nuser-agent: *\nallow: /", None, "not another's"),
        ("user-agent: slow\nuser-agent: *\ncrawl-delay: 9\nallow: /", ms(9_000), "of all heads"),
        ("user-agent: *\nallow: /\ncrawl-delay: 4", ms(4_000), "below rules too"),
        (
            "user-agent: sted\ncrawl-delay: 2\nuser-agent: x\nallow: /\nuser-agent: sted\n\
             crawl-delay: 3",
            ms(3_000),
            "of all our groups",
        ),
    ];
    for (file, expected, why) in cases {
        let rules = Rules::parse(file.as_bytes(), "sted");
        assert_eq!(rules.crawl_delay(), expected, "{why}: {file:?}");
    }
    let forever = format!("user-agent: *\ncrawl-delay: {}", "9".repeat(400));
    let forever = Rules::parse(forever.as_bytes(), "sted").crawl_delay();
    assert_eq!(forever, Some(Duration::from_secs(u64::MAX)));
}

#[test]
fn sitemaps_belong_to_the_file_and_are_capped() {
    let file = "sitemap: http://a/1\nuser-agent: x\nSITEMAP:HTTPS://b/2 # c\ndisallow: /\n\
                sitemap: /relative\nsitemap:\nsitemap: ftp://a/\nsitemap: http://a/ツ";
    let rules = Rules::parse(file.as_bytes(), "sted");
    let found: Vec<&str> = rules.sitemaps().collect();
    assert_eq!(found, ["http://a/1", "HTTPS://b/2", "http://a/ツ"]);
    let many = "sitemap: http://a/\n".repeat(SITEMAPS_MAX + 5);
    assert_eq!(Rules::parse(many.as_bytes(), "sted").sitemaps().count(), SITEMAPS_MAX);
    let long = format!("sitemap: http://a/{}\n", "b".repeat(9_000)).repeat(50);
    let rules = Rules::parse(long.as_bytes(), "sted");
    assert_eq!(rules.sitemaps().count(), 14, "as many whole ones as fit");
    assert!(rules.size_bytes() <= SITEMAPS_BYTES_MAX + 200, "{}", rules.size_bytes());
}

#[test]
fn the_limit_cuts_at_a_line() {
    let mut file = b"user-agent: *\ndisallow: /a\n".to_vec();
    let rule = b"allow: /abcdef";
    file.resize(SIZE_BYTES_MAX - rule.len() - 1, b'#');
    file.push(b'\n');
    file.extend_from_slice(rule);
    assert_eq!(file.len(), SIZE_BYTES_MAX);
    let verdict = |file: &[u8]| Rules::parse(file, "sted").check("/abcdefg").allowed;
    assert!(verdict(&file), "a file of exactly the limit is whole");
    file.push(b'\n');
    assert!(verdict(&file), "the last line ends at the limit");
    *file.last_mut().unwrap() = b'x';
    assert!(!verdict(&file), "the last line is cut by the limit");
    file.extend_from_slice(b"\nallow: /abcdefg");
    assert!(!verdict(&file), "nothing is read past the limit");
}

#[test]
fn all_and_nothing() {
    assert_eq!(Rules::allow_all().check("/x"), Verdict { allowed: true, line: 0 });
    assert!(!Rules::allow_all().has_rules());
    assert_eq!(Rules::deny_all().check("/x"), Verdict { allowed: false, line: 0 });
    assert!(Rules::deny_all().check("/robots.txt").allowed);
    assert!(Rules::deny_all().has_rules());
    assert!(!Rules::parse(b"user-agent: x\ndisallow: /", "sted").has_rules(), "not ours");
}

#[test]
fn replies() {
    let cases = [
        (200, Meaning::Parse, "2.3.1.1"),
        (204, Meaning::Parse, "2.3.1.1: an empty file"),
        (301, Meaning::Follow, "2.3.1.2"),
        (308, Meaning::Follow, "2.3.1.2"),
        (401, Meaning::Unavailable, "2.3.1.3"),
        (403, Meaning::Unavailable, "2.3.1.3"),
        (404, Meaning::Unavailable, "2.3.1.3"),
        (429, Meaning::Unreachable, "RFC 6585: a server that asks for peace"),
        (499, Meaning::Unavailable, "2.3.1.3"),
        (500, Meaning::Unreachable, "2.3.1.4"),
        (599, Meaning::Unreachable, "2.3.1.4"),
        (0, Meaning::Unreachable, "no status"),
        (100, Meaning::Unreachable, "not final"),
        (999, Meaning::Unreachable, "no status"),
    ];
    for (status, expected, why) in cases {
        assert_eq!(meaning(status), expected, "{why}: {status}");
    }
}

/// The standard implemented without regard to cost: every rule is tried by recursion, nothing is
/// sorted.
mod oracle {
    /// Returns the verdict for the product `sted`, and the line that decides.
    pub(super) fn check(file: &str, target: &str) -> (bool, u32) {
        let path = spelled(target, false);
        if path.iter().collect::<String>() == "/robots.txt" {
            return (true, 0);
        }
        let mut best: Option<(usize, bool, i64)> = None;
        for (rule, allow, line) in rules(file) {
            let parts = pattern(&rule, false);
            let starts = matches!(parts.first(), Some(Part::Is('/') | Part::Any));
            if starts && matches(&parts, &path) && (!allow || allows_narrowly(&rule, target)) {
                best = best.max(Some((parts.len(), allow, -line)));
            }
        }
        best.map_or((true, 0), |(_, allow, line)| (allow, u32::try_from(-line).unwrap()))
    }

    /// A rule that allows is matched again with each of its escapes kept as one character. If the
    /// rule has any, the escapes of the target are kept, too, and its characters outside ASCII stay
    /// unencoded.
    fn allows_narrowly(rule: &str, target: &str) -> bool {
        let has_escapes = spelled(rule, true).iter().any(|c| is_kept_escape(*c));
        let rule = pattern(rule, true);
        let path: Vec<char> = target
            .split_inclusive(|c: char| !c.is_ascii())
            .flat_map(|piece| {
                let ascii = piece.trim_end_matches(|c: char| !c.is_ascii());
                let mut chars = spelled(ascii, has_escapes);
                chars.extend((ascii.len() < piece.len()).then_some('\u{F8FF}'));
                chars
            })
            .collect();
        matches(&rule, &path)
    }

    /// Kept escapes are mapped to a range of their own.
    fn kept_escape(byte: u8) -> char {
        char::from_u32(0xE000 + u32::from(byte)).unwrap()
    }

    fn is_kept_escape(c: char) -> bool {
        ('\u{E000}'..'\u{E100}').contains(&c)
    }

    /// Names, and their rules: path, Allow, line.
    type Group = (Vec<String>, Vec<Rule>);
    type Rule = (String, bool, i64);

    /// Returns the rules of all groups for `sted`, or those of `*` if there is none.
    fn rules(file: &str) -> Vec<Rule> {
        let mut groups: Vec<Group> = Vec::new();
        for (line, text) in (1..).zip(file.split('\n')) {
            let text = text.split('#').next().unwrap();
            let Some((key, value)) = text.split_once(':') else { continue };
            let value = value.trim().to_owned();
            match key.trim().to_lowercase().as_str() {
                "user-agent" => {
                    if groups.last().is_none_or(|group| !group.1.is_empty()) {
                        groups.push((Vec::new(), Vec::new()));
                    }
                    let token = value.split(|c: char| !c.is_ascii_alphabetic() && c != '*');
                    groups.last_mut().unwrap().0.push(token.take(1).collect());
                }
                key @ ("allow" | "disallow") => {
                    if let Some(group) = groups.last_mut() {
                        group.1.push((value, key == "allow", line));
                    }
                }
                _ => {}
            }
        }
        let of = |agent: &str| {
            let named =
                |group: &&Group| group.0.iter().any(|name| name.eq_ignore_ascii_case(agent));
            groups.iter().filter(named).collect::<Vec<_>>()
        };
        let ours = if of("sted").is_empty() { of("*") } else { of("sted") };
        ours.into_iter().flat_map(|group| group.1.clone()).collect()
    }

    #[derive(Clone, Copy)]
    enum Part {
        Is(char),
        Any,
        End,
    }

    fn pattern(rule: &str, keep_escapes: bool) -> Vec<Part> {
        let mut parts = Vec::new();
        for (place, piece) in rule.split('*').enumerate() {
            if place > 0 {
                parts.push(Part::Any);
            }
            parts.extend(spelled(piece, keep_escapes).into_iter().map(Part::Is));
        }
        if rule.ends_with('$') {
            *parts.last_mut().unwrap() = Part::End;
        }
        parts
    }

    fn matches(parts: &[Part], path: &[char]) -> bool {
        match (parts, path) {
            ([], _) => true,
            ([Part::End, ..], path) => path.is_empty(),
            ([Part::Any, rest @ ..], path) => {
                (0..=path.len()).any(|skipped| matches(rest, &path[skipped..]))
            }
            ([Part::Is(one), rest @ ..], [other, path @ ..]) => one == other && matches(rest, path),
            ([Part::Is(_), ..], []) => false,
        }
    }

    fn spelled(text: &str, keep_escapes: bool) -> Vec<char> {
        let bytes = text.as_bytes();
        let (mut out, mut place) = (String::new(), 0);
        while place < bytes.len() {
            let hex = bytes.get(place + 1..place + 3).and_then(|hex| std::str::from_utf8(hex).ok());
            let coded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            let coded = coded.filter(|_| bytes[place] == b'%' && bytes[place + 1] != b'+');
            let byte = coded.unwrap_or(bytes[place]);
            let unreserved = byte.is_ascii_alphanumeric() || b"-._~*$".contains(&byte);
            let reserved = b":/?#[]@!&()+,;=".contains(&byte) && coded.is_none();
            if keep_escapes && coded.is_some() && unreserved && !b"*$".contains(&byte) {
                out.push(kept_escape(byte));
            } else if unreserved || reserved {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
            place += if coded.is_some() { 3 } else { 1 };
        }
        out.chars().collect()
    }
}

impl Random {
    /// Builds paths from few atoms, so that rules and paths often match.
    fn path(&mut self, specials: &[&str]) -> String {
        const ATOMS: [&str; 16] = [
            "a",
            "a",
            "b",
            "/",
            "aa",
            "ab",
            "%61",
            "%2f",
            "%2F",
            "ツ",
            "%E3%83%84",
            "?",
            "%2A",
            "%24",
            " ",
            "%",
        ];
        let mut path = String::from(if self.below(12) == 0 { "" } else { "/" });
        for _ in 0..self.below(7) {
            let special = !specials.is_empty() && self.below(4) == 0;
            path.push_str(if special { self.pick(specials) } else { self.pick(&ATOMS) });
        }
        path
    }

    fn file(&mut self) -> String {
        const AGENTS: [&str; 6] = ["*", "sted", "STED/2", "stedx", "other", "* x"];
        const OTHERS: [&str; 5] = ["", "# x", "sitemap: http://a/", "crawl-delay: 3", "unknown: /"];
        let mut file = String::new();
        for _ in 0..self.below(24) {
            let line = match self.below(10) {
                0 | 1 => format!("User-agent: {}", self.pick(&AGENTS)),
                2 => self.pick(&OTHERS).to_owned(),
                3..=6 => format!("Disallow: {}", self.path(&["*", "$", "**"])),
                _ => format!("Allow:{} #", self.path(&["*", "$"])),
            };
            file.push_str(&line);
            file.push('\n');
        }
        file
    }
}

#[test]
fn agrees_with_the_oracle() {
    let mut random = Random(0x5eed_0001);
    let (mut decided, mut starred) = (0, 0);
    for round in 0..6_000 {
        let file = random.file();
        let rules = Rules::parse(file.as_bytes(), "sted");
        for _ in 0..12 {
            let target = random.path(&["*", "$", "'"]);
            let target = if target.starts_with('/') { target } else { format!("/{target}") };
            let verdict = rules.check(&target);
            let expected = oracle::check(&file, &target);
            let found = (verdict.allowed, verdict.line);
            assert_eq!(found, expected, "round {round}: {target} under\n{file}");
            decided += u32::from(verdict.line > 0);
            let line = file.lines().nth((verdict.line as usize).wrapping_sub(1)).unwrap_or("");
            starred += u32::from(line.trim_end_matches(['*', '$', '#', ' ']).contains('*'));
        }
    }
    assert!(decided > 10_000 && starred > 500, "the cases are too tame: {decided}, {starred}");
}

/// Law: decoded rules give the same verdicts as the encoded ones; truncated bytes are an error.
#[test]
fn rules_survive_encoding() {
    let mut random = Random(0x5eed_0005);
    for round in 0..1_000 {
        let file = random.file();
        let rules = Rules::parse(file.as_bytes(), "sted");
        let mut bytes = Vec::new();
        rules.encode(&mut bytes);
        let again = Rules::decode(&mut Take::new(&bytes)).unwrap();
        assert_eq!(again.crawl_delay(), rules.crawl_delay());
        for _ in 0..8 {
            let target = random.path(&["*", "$", "'"]);
            assert_eq!(again.check(&target), rules.check(&target), "{round}: {target}\n{file}");
        }
        let cut = random.below(bytes.len());
        assert!(Rules::decode(&mut Take::new(&bytes[..cut])).is_err(), "cut at {cut}");
    }
}

/// Law: normalizing twice is normalizing once.
#[test]
fn spelling_twice_is_spelling_once() {
    let mut random = Random(0x5eed_0002);
    for _ in 0..5_000 {
        let path = format!("/{}", random.path(&["*", "$", "'", "<", "\u{7f}", "%C3"]));
        let once = octets::Target::new(path.as_bytes()).standard;
        let twice = octets::Target::new(once.strip_suffix(&[octets::END]).unwrap());
        assert_eq!(once, twice.standard, "{path}");
        assert!(twice.raw.is_none() && twice.marked.is_none(), "{path}");
    }
}

/// Law: line ends and comments don't change the meaning of a file.
#[test]
fn line_ends_and_comments_mean_nothing() {
    let mut random = Random(0x5eed_0003);
    for _ in 0..1_000 {
        let file = random.file();
        let others =
            [file.replace('\n', "\r"), file.replace('\n', "\r\n"), file.replace('\n', " # : \n")];
        let rules = Rules::parse(file.as_bytes(), "sted");
        for other in others.iter().map(|other| Rules::parse(other.as_bytes(), "sted")) {
            for _ in 0..4 {
                let target = random.path(&["*"]);
                assert_eq!(rules.check(&target), other.check(&target), "{target}\n{file}");
            }
        }
    }
}

/// Law: no bytes, truncated or changed anywhere, cause a panic, and memory stays within bounds.
#[test]
fn hostile_bytes_are_survived() {
    let mut random = Random(0x5eed_0004);
    for _ in 0..3_000 {
        let mut bytes = random.file().into_bytes();
        for _ in 0..random.below(6) {
            let byte = b"\0\r\n#:*$%\xEF\xBB\xBF\xFF\xFE/ "[random.below(15)];
            match (random.below(2), bytes.len()) {
                (_, 0) | (0, _) => bytes.insert(random.below(bytes.len() + 1), byte),
                (_, len) => bytes[random.below(len)] = byte,
            }
        }
        bytes.truncate(random.below(bytes.len() + 1));
        let rules = Rules::parse(&bytes, "sted");
        rules.check(&random.path(&["*", "$"]));
        assert!(rules.size_bytes() < 200 + 64 * bytes.len(), "{}", rules.size_bytes());
    }
}

/// Whole files of the worst kind: each would take hours if a pattern could make a check backtrack,
/// or if a chain or a sort were quadratic.
#[test]
fn hostile_files_cost_little() {
    let stars = format!("disallow: /{}b\n", "*a".repeat(900)).repeat(280);
    let one = format!("disallow: /{}", "*a".repeat(250_000));
    let mut chain = String::new();
    (1..980).for_each(|len| chain.push_str(&format!("disallow: /{}\n", "a".repeat(len))));
    let mut short = String::new();
    (0..36_000).for_each(|n| short.push_str(&format!("allow:*{n}\n")));
    let encoded = format!("disallow: /{}\n", "\u{fffd}".repeat(80)).repeat(2_000);
    let target = format!("/{}", "a".repeat(2_000));
    for rules in [stars, one, chain, short, encoded] {
        let file = format!("user-agent: *\n{rules}");
        let rules = Rules::parse(file.as_bytes(), "sted");
        for cut in 1..50 {
            rules.check(&target[..target.len() / cut]);
        }
        assert!(rules.size_bytes() < 4 * SIZE_BYTES_MAX, "{}", rules.size_bytes());
    }
}
