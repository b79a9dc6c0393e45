//! Tests the worst files of the maximum size: parsing them and checking a target stays within
//! bounds.
//!
//! Each is designed to defeat one of the optimizations of matching. Units of work are counted, not
//! time; when this was written, a unit of a check took 7 to 20 ns.

use super::super::*;
use super::{Random, oracle};

/// Returns lines of rules up to the maximum size, after a User-agent line for all.
fn file(mut rule: impl FnMut(usize) -> String) -> Vec<u8> {
    let mut file = String::from("user-agent:*\n");
    for number in 0.. {
        let rule = rule(number);
        if file.len() + rule.len() > SIZE_BYTES_MAX {
            break;
        }
        file.push_str(&rule);
    }
    file.into_bytes()
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

/// Returns a different word for each number.
fn word(number: usize, letters: &str, len: usize) -> String {
    let letters = letters.as_bytes();
    let base = letters.len();
    let digits = std::iter::successors(Some(number), |rest| Some(rest / base));
    digits.take(len).map(|digit| char::from(letters[digit % base])).collect()
}

fn letter(number: usize) -> String {
    word(number, LETTERS, 1)
}

/// Returns a path of 2,048 bytes.
fn path(start: &str, piece: impl Fn(usize) -> String) -> String {
    let mut path = format!("/{start}");
    (0..).map_while(|number| (path.len() < 2_048).then(|| path.push_str(&piece(number)))).count();
    path.truncate(2_048);
    path
}

/// Name, file and target.
type Case = (&'static str, Vec<u8>, String);

fn words() -> Vec<Case> {
    let mut random = Random(0x5eed_0010);
    let noise = path("", |n| word(n * 7_919 + n * n * 31, LETTERS, 5));
    let (early, late) = (&noise[..1_024], &noise[1_024..]);
    let swapped = file(|_| {
        let (one, other) = (random.below(1_020), random.below(1_020));
        format!("allow:*{}*{}\n", &late[one..one + 4], &early[other..other + 4])
    });
    let stars = file(|n| format!("disallow: /*/{}/*-{}.html\n", word(n, LETTERS, 8), n % 100));
    let prefixes = |n: usize| format!("/{}*{}!\n", "a".repeat(n % 40), word(n, "ab", 12));
    let encoded = |n| format!("*\u{fffd}{}*\u{fffd}{}\n", word(n, LETTERS, 3), word(n, LETTERS, 2));
    let escapes = path("", |n| format!("%62%61{}", word(n * 7_919, LETTERS, 3)));
    let specials = path("", |n| format!("%EF%BF%BD{}", word(n * 7_919, LETTERS, 3)));
    let runs = path(&"a".repeat(40), |n| word(n * 37, "ab", 12));
    let short = |n: usize| format!("allow:*{}!\n", word(n, LETTERS, 3));
    vec![
        ("as found", stars, path("", |n| format!("{}/", word(n * 97, LETTERS, 8)))),
        ("short", file(short), noise.clone()),
        ("in the wrong order", swapped, noise.clone()),
        ("prefixes", file(|n| format!("disallow:{}", prefixes(n))), runs),
        ("plain", file(|n| format!("allow:/{}!\n", word(n, LETTERS, 4))), noise),
        ("marked", file(|n| format!("allow:/*%61{}*%62!\n", word(n, LETTERS, 3))), escapes),
        ("encoded", file(|n| format!("allow:/{}", encoded(n))), specials),
    ]
}

fn periods() -> Vec<Case> {
    let dense = file(|n| format!("allow:*{}{}*!\n", letter(n), "*a".repeat(1_900)));
    let pairs = file(|n| format!("allow:*{}{}*!\n", letter(n), "*ba".repeat(900 + n % 50)));
    let runs = file(|n| format!("allow:/*{}b\n", "a".repeat(1 + n % 990)));
    let mut cases = vec![
        ("a star a letter", dense, path(LETTERS, |_| "a".into())),
        ("a star two letters", pairs, path(LETTERS, |_| "ba".into())),
        ("runs", runs, path("", |_| "a".into())),
    ];
    for len in [8, 16, 32, 64, 256] {
        let period = |len: usize| format!("{}b", "a".repeat(len - 1));
        let rules = file(|n| {
            let (start, end) = (&period(len)[n % len..], &period(len)[..n / len % len]);
            format!("allow:/*{start}{}{}{end}\n", period(len - 1), period(len))
        });
        cases.push(("a fault in a period", rules, path("", |_| period(len))));
    }
    cases
}

/// Law: for a file of the maximum size a check costs at most a third of a step of the loop, and its
/// rules take at most a few times its size of memory.
#[test]
fn worst_files_cost_little() {
    for (name, file, target) in words().into_iter().chain(periods()) {
        let rules = Rules::parse(&file, "sted");
        let (verdict, units) = rules.check_counted(&target);
        assert_eq!(verdict, Verdict::NO_RULE, "{name}: all rules are tried");
        assert!(units < 180_000, "{name}: {units} units");
        assert!(rules.size_bytes() < 4 * SIZE_BYTES_MAX, "{name}: {} bytes", rules.size_bytes());
    }
}

/// Law: with so many rules that targets are indexed, the verdict is that of trying each rule, and
/// the highest-ranked one that matches is found after any number that don't.
#[test]
fn many_rules_agree_with_the_oracle() {
    let mut random = Random(0x5eed_0011);
    let (mut decided, mut late) = (0, 0);
    for round in 0..20 {
        let mut file = String::from("user-agent: *\n");
        for _ in 0..200 + random.below(400) {
            let kind = ["disallow: /*", "allow: /*", "disallow: *"][random.below(3)];
            file.push_str(kind);
            for _ in 0..1 + random.below(4) {
                let atoms = ["a", "b", "ab", "aab", "/", "%61", "abababab", "aaaaaaaaaaaaaaaa"];
                (0..random.below(4)).for_each(|_| file.push_str(random.pick(&atoms)));
                file.push_str(random.pick(&["*", "*", "c*", "$", ""]));
            }
            file.push('\n');
        }
        let rules = Rules::parse(file.as_bytes(), "sted");
        for _ in 0..12 {
            let mut target = String::from("/");
            let atoms = ["a", "b", "ab", "%61", "/", "aaaaaaaa", "c", "ツ"];
            (0..random.below(40)).for_each(|_| target.push_str(random.pick(&atoms[..])));
            let (verdict, units) = rules.check_counted(&target);
            let found = (verdict.allowed, verdict.line);
            assert_eq!(found, oracle::check(&file, &target), "round {round}: {target}\n{file}");
            decided += u32::from(verdict.line > 0);
            late += u32::from(units > 600);
        }
    }
    assert!(decided > 60 && late > 30, "the cases are too tame: {decided}, {late}");
}
