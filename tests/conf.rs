//! The files under `conf/`: the manual equals the code, and the shipped files are valid.

use super::util::{read, root};
use std::collections::BTreeSet;
use sted::conf::{Conf, Flag, Key};

/// A key in the manual: the comment above it, and its line.
struct Entry {
    section: String,
    name: String,
    value: String,
    comment: String,
}

/// Reads the keys of the manual line by line, without the parser under test.
fn entries(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut section = String::new();
    let mut comment = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix('#') {
            comment.push_str(words);
        } else if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            comment.clear();
        } else if let Some((name, value)) = line.split_once(" = ") {
            let mut value = value.to_owned();
            while value.starts_with('[') && !value.ends_with(']') {
                value.push('\n');
                value.push_str(lines.next().expect("a list has an end"));
            }
            let comment = std::mem::take(&mut comment);
            entries.push(Entry { section: section.clone(), name: name.to_owned(), value, comment });
        } else {
            assert!(line.is_empty(), "neither comment nor key: {line}");
            comment.clear();
        }
    }
    entries
}

/// Everything after the manual's introduction is generated from the declarations of the keys. With
/// `STED_GOLDEN=1` in the environment it is rewritten.
#[test]
fn manual_is_what_the_code_declares() {
    let path = "conf/reference.toml";
    let text = read(path);
    let (opening, _) = text.split_once("\n# ---").expect("a rule ends the opening");
    let declared = opening.to_owned() + &Conf::with_experiments().manual();
    if std::env::var_os("STED_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(root().join(path), &declared).expect("the manual can be written");
        return;
    }
    let mut lines = declared.lines().zip(text.lines());
    let differing = lines.find(|(code, file)| code != file);
    assert!(text == declared, "not as declared; run `make golden`: {differing:?}");
}

/// A job can't be bound to the value of a key that may change while it runs.
#[test]
fn flags_do_not_contradict_each_other() {
    for Key { section, name, flags, .. } in Conf::with_experiments().keys() {
        let has = |flag| flags.contains(&flag);
        assert!(!(has(Flag::Kept) && (has(Flag::Live) || has(Flag::Site))), "{section}.{name}");
        let is_kept = matches!(
            (section, name),
            ("url" | "store", _) | ("job", "name") | ("cluster", "name" | "node")
        );
        assert!(!has(Flag::Kept) || is_kept, "{section}.{name}");
    }
}

#[test]
fn manual_holds_the_defaults() {
    let text = read("conf/reference.toml");
    let conf = Conf::parse(&text, "conf/reference.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(conf, Conf::with_experiments());
}

#[test]
fn manual_has_every_key_and_no_other_in_order() {
    let in_file: Vec<_> = entries(&read("conf/reference.toml"))
        .into_iter()
        .map(|entry| (entry.section, entry.name, entry.value))
        .collect();
    let in_code: Vec<_> = Conf::with_experiments()
        .keys()
        .into_iter()
        .map(|key| (key.section.to_owned(), key.name.to_owned(), key.value))
        .collect();
    let set = |keys: &[(String, String, String)]| keys.iter().cloned().collect::<BTreeSet<_>>();
    let (file, code) = (set(&in_file), set(&in_code));
    let only_file: Vec<_> = file.difference(&code).collect();
    let only_code: Vec<_> = code.difference(&file).collect();
    assert!(
        only_file.is_empty() && only_code.is_empty(),
        "only in the manual: {only_file:?}; only in the code: {only_code:?}"
    );
    assert_eq!(in_file, in_code, "the order differs");
}

#[test]
fn manual_says_what_each_key_allows() {
    let keys = Conf::with_experiments().keys();
    for entry in entries(&read("conf/reference.toml")) {
        let same = |key: &&Key| key.section == entry.section && key.name == entry.name;
        let key = keys.iter().find(same).expect("a key of the code");
        let allowed = format!(" Allowed: {}.", key.allowed);
        assert!(entry.comment.contains(&allowed), "{}.{}:{allowed}", key.section, key.name);
        let words = entry.comment.replace(&allowed, "");
        assert!(words.trim().len() > 15, "{}.{} is not explained", key.section, key.name);
    }
}

/// The manual mentions other keys by name: they must exist.
#[test]
fn manual_names_only_keys_that_are() {
    let keys = Conf::with_experiments().keys();
    let sections: BTreeSet<&str> = keys.iter().map(|key| key.section).collect();
    let mut named = 0;
    for entry in entries(&read("conf/reference.toml")) {
        let word_ends = |c: char| !(c.is_ascii_alphanumeric() || "._".contains(c));
        for word in entry.comment.split(word_ends).map(|word| word.trim_end_matches('.')) {
            let is_key = match word.rsplit_once('.') {
                Some((_, "txt" | "toml" | "pem" | "u32" | "xz" | "csv" | "html")) => continue,
                Some((section, name)) if sections.contains(section) => {
                    keys.iter().any(|key| (key.section, key.name) == (section, name))
                }
                // Only names of keys contain an underscore; numbers may, too.
                None if word.contains('_')
                    && word.starts_with(|c: char| c.is_ascii_lowercase()) =>
                {
                    keys.iter().any(|key| key.name == word)
                }
                _ => continue,
            };
            named += 1;
            assert!(is_key, "{}.{} speaks of {word}", entry.section, entry.name);
        }
    }
    assert!(named > 6, "the manual names {named} other keys: is it still read right?");
}

#[test]
fn what_is_shipped_is_right() {
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("conf")).expect("conf is there") {
        let name = entry.expect("an entry").file_name().into_string().expect("a UTF-8 name");
        let path = format!("conf/{name}");
        if !name.ends_with(".toml") {
            continue; // a program that scores pages
        }
        let result = Conf::parse(&read(&path), &path);
        files += 1;
        if ["polite.toml", "archive-site.toml", "focused.toml"].contains(&&*name) {
            // What only the operator knows has to be filled in, and nothing else is wrong.
            let mistakes = result.expect_err("contact and seeds are the operator's").list;
            let keys: Vec<&str> = mistakes.iter().map(|mistake| mistake.key.as_str()).collect();
            assert_eq!(keys, ["job.seeds", "identity.contact"]);
            let filled = read(&path)
                .replace("contact = \"\"", "contact = \"me@a.org\"")
                .replace("seeds = []", "seeds = [\"https://a.org/\"]");
            Conf::parse(&filled, &path).unwrap_or_else(|error| panic!("{error}"));
        } else {
            let conf = result.unwrap_or_else(|error| panic!("{error}"));
            assert!(conf.is_experiment(), "{path} would crawl strangers as it stands");
        }
    }
    assert!(files >= 4, "only {files} files in conf");
}
