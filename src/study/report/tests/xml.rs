//! A small checker of XML, and of HTML written like it: tags balance, attributes are quoted and
//! unique, texts are escaped, ids are unique.

use std::collections::{BTreeMap, BTreeSet};

type Attributes = BTreeMap<String, String>;

/// Returns the first error of a document.
pub(crate) fn check(text: &str) -> Result<(), String> {
    walk(text).map(drop)
}

/// Returns all elements with their attributes, in their order.
pub(crate) fn elements(text: &str) -> Vec<(String, Attributes)> {
    walk(text).expect("a document that is well-formed")
}

fn walk(text: &str) -> Result<Vec<(String, Attributes)>, String> {
    let (mut rest, is_html) = match text.strip_prefix("<!DOCTYPE html>\n") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let mut elements = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    while let Some(place) = rest.find('<') {
        let (before, tag) = rest.split_at(place);
        characters(before)?;
        if open.is_empty() && !before.trim().is_empty() {
            return Err(format!("text outside of the root: {before}"));
        }
        // A quoted `>` is escaped, too, so the first one ends the tag.
        let end = tag.find('>').ok_or("a tag without end")?;
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            let expected = open.pop();
            if expected.as_deref() != Some(name) {
                return Err(format!("{expected:?} closed by {name}"));
            }
            continue;
        }
        let (inner, empty) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        let (name, attributes) = start(inner)?;
        if let Some(id) = attributes.get("id")
            && !ids.insert(id.clone())
        {
            return Err(format!("id {id} twice"));
        }
        if is_html && matches!(name.as_str(), "style" | "script") {
            let close = format!("</{name}>");
            let end = rest.find(&close).ok_or(format!("{name} without end"))?;
            rest = &rest[end + close.len()..];
        } else if !(empty || is_html && name == "meta") {
            open.push(name.clone());
        }
        elements.push((name, attributes));
    }
    match open.pop() {
        Some(name) => Err(format!("{name} is not closed")),
        None if !rest.trim().is_empty() => Err(format!("text after the root: {rest}")),
        None if elements.is_empty() => Err("no element".to_owned()),
        None => Ok(elements),
    }
}

/// Parses `name a="1" b="2"`.
fn start(inner: &str) -> Result<(String, Attributes), String> {
    let name_end = inner.find(' ').unwrap_or(inner.len());
    let (name, mut rest) = inner.split_at(name_end);
    word(name)?;
    let mut attributes = Attributes::new();
    while !rest.is_empty() {
        let wrong = || format!("attributes of {inner}");
        let pair = rest.strip_prefix(' ').ok_or_else(wrong)?;
        let (key, value) = pair.split_once("=\"").ok_or_else(wrong)?;
        let (value, after) = value.split_once('"').ok_or_else(wrong)?;
        word(key)?;
        characters(value)?;
        if attributes.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{key} twice in {inner}"));
        }
        rest = after;
    }
    Ok((name.to_owned(), attributes))
}

fn word(name: &str) -> Result<(), String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | ':');
    let starts = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if starts && name.chars().all(fits) { Ok(()) } else { Err(format!("the name {name:?}")) }
}

/// Checks for characters that XML forbids, and for unknown entities.
fn characters(text: &str) -> Result<(), String> {
    let control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if let Some(letter) = text
        .chars()
        .find(|letter| control(*letter) || *letter >= '\u{FFFE}' && *letter <= '\u{FFFF}')
    {
        return Err(format!("the character {letter:?}"));
    }
    if text.contains(['<', '>']) {
        return Err(format!("a bracket in {text}"));
    }
    for piece in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        if !known.iter().any(|entity| piece.starts_with(entity)) {
            return Err(format!("the entity &{piece}"));
        }
    }
    Ok(())
}

#[test]
fn the_checker_can_fail() {
    for (text, expected) in [
        ("<a><b x=\"1\"/>text &amp; more</a>", Ok(())),
        ("<!DOCTYPE html>\n<a><meta x=\"1\"><script>a < b</script></a>\n", Ok(())),
        ("<a><b></a></b>", Err("Some(\"b\") closed by a")),
        ("<a>", Err("a is not closed")),
        ("<a x=1></a>", Err("attributes of a x=1")),
        ("<a x=\"1\" x=\"2\"/>", Err("x twice in a x=\"1\" x=\"2\"")),
        ("<a>&nbsp;</a>", Err("the entity &nbsp;")),
        ("<a>&</a>", Err("the entity &")),
        ("<a>x > y</a>", Err("a bracket in x > y")),
        ("<a><b id=\"i\"/><b id=\"i\"/></a>", Err("id i twice")),
        ("<a>\u{1b}</a>", Err("the character '\\u{1b}'")),
        ("<a/>b", Err("text after the root: b")),
        ("", Err("no element")),
    ] {
        assert_eq!(check(text), expected.map_err(str::to_owned), "{text}");
    }
}
