//! A reader of Rust source for the layer rules: tokens with their lines, paths with the modules
//! they lead to, functions with their length. Comments and literals are skipped.
//!
//! It is not a parser: it doesn't see what macros make of their input, and it takes a path wherever
//! two colons follow a word, or in a `use`. That is enough for the rules; the compiler does the
//! rest.

/// A word, `::`, or a single other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The text as written; a literal is `"`.
    pub text: &'a str,
    /// The line, counted from 1.
    pub line: usize,
}

/// A path as written; the groups of a `use` are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The segments; the first is `crate` if it leads into this crate by `crate`, `self` or
    /// `super`.
    pub segments: Vec<String>,
    /// The line it is in.
    pub line: usize,
    /// Whether a `use` brings it into its module.
    pub is_use: bool,
}

impl Path {
    /// Returns the segments joined by `::`.
    pub fn text(&self) -> String {
        self.segments.join("::")
    }

    /// Whether it is `prefix` (`a::b`) or leads below it.
    pub fn is_below(&self, prefix: &str) -> bool {
        let mut segments = self.segments.iter();
        prefix.split("::").all(|wanted| segments.next().is_some_and(|found| found == wanted))
    }
}

/// A function and the number of lines from its `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub struct Function<'a> {
    pub name: &'a str,
    pub line: usize,
    pub lines: usize,
}

/// Returns the tokens of a file.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut scan = Scan { text, place: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = scan.next_token() {
        tokens.push(token);
    }
    tokens
}

/// Returns the paths of a file of module `module` (`["http", "response"]`; empty at the crate's
/// root).
pub fn paths(tokens: &[Token<'_>], module: &[&str]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut modules: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    // The brace depth at which each module inside this file ends.
    let (mut depth, mut ends) = (0_usize, Vec::new());
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        let text = |ahead: usize| tokens.get(place + ahead).map_or("", |token| token.text);
        let follows_path = place > 0 && matches!(tokens[place - 1].text, "::" | ".");
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if ends.last() == Some(&depth) {
                    ends.pop();
                    modules.pop();
                }
            }
            "mod" if is_word(text(1)) && text(2) == "{" => {
                modules.push(text(1).to_owned());
                ends.push(depth);
            }
            "use" if is_word(text(1)) || matches!(text(1), "::" | "{") => {
                let before = found.len();
                place = tree(tokens, place + 1, &[], &modules, &mut found);
                found[before..].iter_mut().for_each(|path| path.is_use = true);
                continue;
            }
            word if is_word(word) && !follows_path && text(1) == "::" => {
                place = tree(tokens, place, &[], &modules, &mut found);
                continue;
            }
            _ => {}
        }
        place += 1;
    }
    found
}

/// Reads one path, or a group of them, below `above`; returns the position after it.
fn tree(
    tokens: &[Token<'_>],
    mut place: usize,
    above: &[String],
    modules: &[String],
    found: &mut Vec<Path>,
) -> usize {
    let line = tokens.get(place).map_or(0, |token| token.line);
    let text = |place: usize| tokens.get(place).map_or("", |token| token.text);
    let mut segments = above.to_vec();
    if text(place) == "::" {
        place += 1;
    }
    loop {
        match text(place) {
            "{" => {
                place += 1;
                while !matches!(text(place), "}" | "") {
                    let before = place;
                    place = tree(tokens, place, &segments, modules, found);
                    place += usize::from(place == before || text(place) == ",");
                }
                return place + 1;
            }
            "*" => {
                segments.push("*".to_owned());
                place += 1;
                break;
            }
            word if is_word(word) => {
                // `{self}` of a group is the path of the group.
                if word != "self" || segments.is_empty() {
                    segments.push(word.to_owned());
                }
                place += 1;
            }
            _ => break,
        }
        if text(place) != "::" {
            break;
        }
        place += 1;
    }
    if text(place) == "as" {
        place += 2;
    }
    found.push(Path { segments: resolved(&segments, modules), line, is_use: false });
    place
}

/// Returns the path from the crate's root, if it is one of this crate.
fn resolved(segments: &[String], modules: &[String]) -> Vec<String> {
    let supers = segments.iter().take_while(|segment| *segment == "super").count();
    let (base, rest) = match segments.first().map(String::as_str) {
        Some("crate") => (&modules[..0], &segments[1..]),
        Some("self") => {
            let inner = &segments[1..];
            let supers = inner.iter().take_while(|segment| *segment == "super").count();
            (&modules[..modules.len().saturating_sub(supers)], &inner[supers..])
        }
        Some("super") => (&modules[..modules.len().saturating_sub(supers)], &segments[supers..]),
        _ => return segments.to_vec(),
    };
    let root = std::iter::once("crate".to_owned());
    root.chain(base.iter().cloned()).chain(rest.iter().cloned()).collect()
}

/// Returns the functions that have a body.
pub fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let mut found = Vec::new();
    for (place, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "fn" || !is_word(pair[1].text) {
            continue;
        }
        if let Some(end) = end_of_body(&tokens[place..]) {
            let lines = end - pair[0].line + 1;
            found.push(Function { name: pair[1].text, line: pair[0].line, lines });
        }
    }
    found
}

/// Returns the line of the brace that closes the first body; `None` if a semicolon comes before
/// one.
fn end_of_body(tokens: &[Token<'_>]) -> Option<usize> {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for token in tokens {
        match token.text {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            ";" if brackets == 0 && braces == 0 => return None,
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if braces == 0 {
                    return Some(token.line);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphanumeric())
}

struct Scan<'a> {
    text: &'a str,
    place: usize,
    line: usize,
}

impl<'a> Scan<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = &self.text[self.place..];
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                self.pass(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.pass(length_of_comment(rest));
            } else if first.is_whitespace() {
                self.pass(first.len_utf8());
            } else {
                let line = self.line;
                let (len, literal) = length_of_token(rest);
                self.pass(len);
                return Some(Token { text: if literal { "\"" } else { &rest[..len] }, line });
            }
        }
    }

    fn pass(&mut self, len: usize) {
        let passed = &self.text[self.place..self.place + len];
        self.line += passed.matches('\n').count();
        self.place += len;
    }
}

/// Returns the length of the comment at the start, including nested ones.
fn length_of_comment(text: &str) -> usize {
    let (mut depth, mut place) = (0, 0);
    while place < text.len() {
        let step = match &text.as_bytes()[place..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        place += step;
        if depth == 0 {
            break;
        }
    }
    place
}

/// Returns the length of the token at the start, and whether it is a text literal.
fn length_of_token(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let word = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    match &text[..word] {
        "" => {}
        prefix @ ("r" | "br" | "cr" | "b" | "c") => {
            let rest = &text[word..];
            let hashes = rest.len() - rest.trim_start_matches('#').len();
            if prefix.ends_with('r') && rest[hashes..].starts_with('"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let body = word + hashes + 1;
                let found = text[body..].find(&end);
                return (found.map_or(text.len(), |found| body + found + end.len()), true);
            }
            if !prefix.ends_with('r') && rest.starts_with(['"', '\'']) {
                return (word + length_of_quoted(&bytes[word..]), true);
            }
            return (word, false);
        }
        _ => return (word, false),
    }
    match bytes {
        [b':', b':', ..] => (2, false),
        [b'"', ..] => (length_of_quoted(bytes), true),
        [b'\'', b'\\', ..] => (length_of_quoted(bytes), true),
        [b'\'', ..] if text[1..].chars().nth(1) == Some('\'') => (length_of_quoted(bytes), true),
        // A lifetime: its quote is a token, its name a word.
        _ => (text.chars().next().map_or(0, char::len_utf8), false),
    }
}

/// Returns the length of a literal from its first quote to the next one that isn't escaped.
fn length_of_quoted(bytes: &[u8]) -> usize {
    let mut place = 1;
    while place < bytes.len() && bytes[place] != bytes[0] {
        place += if bytes[place] == b'\\' { 2 } else { 1 };
    }
    (place + 1).min(bytes.len())
}

#[test]
fn comments_and_literals_are_no_tokens() {
    let text = "a // crate::x\n/* crate::y /* z */ */ b \"crate::w \\\" // \" \
                r#\"c\"d\"# b'\\'' 'e' \
                &'f g::h '\\u{1F}' '\"' '\u{30c4}' r#type br\"\\\" c\"\\\\\"";
    let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
    let expected = [
        "a", "b", "\"", "\"", "\"", "\"", "&", "'", "f", "g", "::", "h", "\"", "\"", "\"", "r",
        "#", "type", "\"", "\"",
    ];
    assert_eq!(found, expected);
    let lines: Vec<usize> = tokens("a\n/*\n*/b \"\n\"c").iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 3, 3, 4]);
}

#[test]
fn paths_are_taken_apart_and_resolved() {
    let text = "use crate::{a::{self, B as C}, d, e::*};\n\
                use std::io;\n\
                use libc;\n\
                fn f() -> super::super::g::H<crate::i::J> { self::k::l().m::<n::O>(); p }\n\
                mod inner { use super::q; fn r() { super::super::s::t() } }\n\
                mod after;\n\
                use super::u;\n\
                pub(crate) fn v() { crate::w!() }";
    let found = paths(&tokens(text), &["x", "y"]);
    let found: Vec<(String, usize)> = found.iter().map(|path| (path.text(), path.line)).collect();
    let expected = [
        ("crate::a", 1),
        ("crate::a::B", 1),
        ("crate::d", 1),
        ("crate::e::*", 1),
        ("std::io", 2),
        ("libc", 3),
        ("crate::g::H", 4),
        ("crate::i::J", 4),
        ("crate::x::y::k::l", 4),
        ("n::O", 4),
        ("crate::x::y::q", 5),
        ("crate::x::s::t", 5),
        ("crate::x::u", 7),
        ("crate::w", 8),
    ];
    assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
}

#[test]
fn functions_are_measured() {
    let text = "trait T { fn a(&self, b: [u8; 4]) -> u8; }\n\
                fn c<'x>(d: [u8; 2])\n{\n  fn e() {}\n}\n\
                type F = fn(u8);";
    let found: Vec<(&str, usize, usize)> =
        functions(&tokens(text)).iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(found, [("c", 2, 4), ("e", 4, 1)]);
}
