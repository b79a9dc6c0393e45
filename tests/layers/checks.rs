//! The rules, each a function from one file to its offences, and for each a file that breaks it.

use super::source::{Path, functions, paths, tokens};

/// One file as the rules see it.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// Relative to the package, with `/`: `src/http/mod.rs`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    /// As in [`File`].
    pub file: String,
    /// Counted from 1; 0 is the file as a whole.
    pub line: usize,
    /// What exceptions name: a path, a function, a rule.
    pub what: String,
    /// For people.
    pub why: String,
}

impl Offence {
    /// How exceptions name it: lines move, so they are no part of it.
    pub fn place(&self) -> String {
        format!("{}: {}", self.file, self.what)
    }
}

/// Longest file, in lines.
pub const LINES_MAX: usize = 600;
/// Longest function, in lines.
pub const FUNCTION_LINES_MAX: usize = 70;
/// Longest line, in characters.
pub const COLUMNS_MAX: usize = 100;

/// What no file of the core may name: what reads a clock, opens a file or a socket, starts a
/// thread, or speaks to the system.
const OF_WORLDS: &[&str] = &[
    "std::fs",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "std::net::*",
    "std::os",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
    "std::time::*",
    "mio",
    "rustls",
    "webpki_roots",
    "c_ares",
    "libc",
];

impl<'a> File<'a> {
    /// The modules it is, from the root: `src/http/mod.rs` is `http`; the root itself is none.
    pub fn module(&self) -> Vec<&'a str> {
        let path = self.name.strip_prefix("src/").unwrap_or(self.name);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut module: Vec<&'a str> = path.split('/').collect();
        if matches!(module.last(), Some(&"mod")) || matches!(module[..], ["lib" | "main"]) {
            module.pop();
        }
        module
    }

    /// The name by which the table of edges knows it: its top-level module, or `main`, `lib`; below
    /// `ground` and `study` its module there, `study::web`.
    pub fn part(&self) -> String {
        match self.module()[..] {
            [] if self.name.ends_with("main.rs") => "main".to_owned(),
            [] => "lib".to_owned(),
            [top @ ("ground" | "study"), part, ..] => format!("{top}::{part}"),
            [part, ..] => part.to_owned(),
        }
    }

    fn paths(&self) -> Vec<Path> {
        paths(&tokens(self.text), &self.module())
    }

    pub fn offence(&self, line: usize, what: &str, why: String) -> Offence {
        Offence { file: self.name.to_owned(), line, what: what.to_owned(), why }
    }
}

/// Each path into another part must start as one of `allowed` does (`*`: any).
pub fn edges(file: File<'_>, allowed: &[&str]) -> Vec<Offence> {
    if allowed.contains(&"*") {
        return Vec::new();
    }
    let part = file.part();
    let own = format!("crate::{part}");
    let strange = |path: &Path| {
        path.segments[0] == "crate"
            && !path.is_below(&own)
            && !allowed.iter().any(|allowed| path.is_below(&format!("crate::{allowed}")))
    };
    let why = |path: &Path| format!("{part} may not use {}", path.text());
    let offence = |path: &Path| file.offence(path.line, &path.text(), why(path));
    file.paths().iter().filter(|path| strange(path)).map(offence).collect()
}

/// The file names nothing of `module`.
pub fn stranger(file: File<'_>, module: &str) -> Vec<Offence> {
    let why = format!("only the front door may name {module}");
    let offence = |path: &Path| file.offence(path.line, &path.text(), why.clone());
    file.paths().iter().filter(|path| path.is_below(module)).map(offence).collect()
}

/// The core names nothing of the world outside.
pub fn silence(file: File<'_>) -> Vec<Offence> {
    let mut found = Vec::new();
    for path in file.paths() {
        for name in OF_WORLDS.iter().filter(|name| path.is_below(name)) {
            found.push(file.offence(path.line, name, format!("the core may not name {name}")));
        }
    }
    found
}

/// The core writes to the meter and never reads it.
pub fn meter(file: File<'_>) -> Vec<Offence> {
    let tokens = tokens(file.text);
    let reads = tokens.windows(4).filter(|four| {
        let called = four[1].text == "." && four[2].text == "read" && four[3].text == "(";
        called && four[0].text == "meter"
    });
    let bare = tokens.windows(4).filter(|four| {
        let texts = [four[0].text, four[1].text, four[2].text, four[3].text];
        texts == [".", "read", "(", ")"]
    });
    let mut lines: Vec<usize> = reads.chain(bare).map(|four| four[0].line).collect();
    lines.sort_unstable();
    lines.dedup();
    let why = "only worlds and commands read the meter";
    lines.into_iter().map(|line| file.offence(line, "read", why.to_owned())).collect()
}

/// Each file opens by saying what it is.
pub fn opening(file: File<'_>) -> Vec<Offence> {
    let first = file.text.lines().next().unwrap_or("");
    if first.starts_with("//! ") || first.starts_with("#![doc = include_str!(") {
        return Vec::new();
    }
    vec![file.offence(1, "opening", "the file doesn't open with //!".to_owned())]
}

/// Files, functions and lines can be taken in at a glance.
pub fn sizes(file: File<'_>) -> Vec<Offence> {
    let mut found = Vec::new();
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        found.push(file.offence(0, "lines", format!("{lines} lines of {LINES_MAX}")));
    }
    for function in functions(&tokens(file.text)) {
        if function.lines > FUNCTION_LINES_MAX {
            let why = format!("{} lines of {FUNCTION_LINES_MAX}", function.lines);
            found.push(file.offence(function.line, function.name, why));
        }
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            let why = format!("{columns} columns of {COLUMNS_MAX}");
            found.push(file.offence(number, "columns", why));
        }
    }
    found
}

/// ARCHITECTURE.md names the folder or file of each module at the top.
pub fn mapped(file: File<'_>, map: &str) -> Vec<Offence> {
    let Some(top) = file.module().first().copied() else { return Vec::new() };
    if has_word(map, top) {
        return Vec::new();
    }
    vec![file.offence(0, top, format!("ARCHITECTURE.md doesn't name {top}"))]
}

/// Whether `word` stands in the text and isn't the end of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(place, _)| {
        !text[..place].ends_with(|c: char| c == '_' || c == '-' || c.is_alphanumeric())
    })
}

fn file<'a>(name: &'a str, text: &'a str) -> File<'a> {
    File { name, text }
}

fn found(offences: &[Offence]) -> Vec<(usize, &str)> {
    offences.iter().map(|offence| (offence.line, offence.what.as_str())).collect()
}

#[test]
fn edges_can_fail() {
    let text = "//! crate::dns in a comment\n\
                use crate::{time::Now, dns};\n\
                use super::super::store::Store;\n\
                use super::octets;\n\
                fn f() { crate::engine::fetch::go(crate::engine::contract::X, \"crate::os\") }\n\
                mod tests { use super::*; use super::super::super::seen::Seen; use crate::*; }";
    let offences = edges(file("src/robots/parse.rs", text), &["time", "engine::contract"]);
    let expected = [
        (2, "crate::dns"),
        (3, "crate::store::Store"),
        (5, "crate::engine::fetch::go"),
        (6, "crate::seen::Seen"),
        (6, "crate::*"),
    ];
    assert_eq!(found(&offences), expected);
    assert!(edges(file("src/main.rs", text), &["*"]).is_empty());
    let whole = edges(file("src/os/mod.rs", "use crate::engine;"), &["engine::contract"]);
    assert_eq!(found(&whole), [(1, "crate::engine")], "a whole module would hide what is used");
    let text = "use crate::study::{web::Web, sim::World, lab};\nuse super::agenda;\n\
                use super::super::report;";
    let below = edges(file("src/study/sim/net.rs", text), &["study::web"]);
    assert_eq!(found(&below), [(1, "crate::study::lab"), (3, "crate::study::report")]);
}

#[test]
fn stranger_can_fail() {
    let text = "use super::study;\nuse crate::study::web;\nfn f() { super::super::study::x::y() }";
    let offences = stranger(file("src/commands/crawl.rs", text), "crate::study");
    assert_eq!(found(&offences), [(2, "crate::study::web"), (3, "crate::study::x::y")]);
}

#[test]
fn silence_can_fail() {
    let text = "use std::{fs, net::{IpAddr, TcpStream}, time::Duration};\n\
                use mio::Poll;\n\
                fn f() { std::thread::sleep(d); std::time::Instant::now(); libc::fork() }\n\
                use std::time::{SystemTime};\n\
                fn g() { crate::ground::time::Instant::ZERO; self.mio.rustls(); fs() } // std::fs";
    let expected = [
        (1, "std::fs"),
        (1, "std::net::TcpStream"),
        (2, "mio"),
        (3, "std::thread"),
        (3, "std::time::Instant"),
        (3, "libc"),
        (4, "std::time::SystemTime"),
    ];
    assert_eq!(found(&silence(file("src/seen/mod.rs", text))), expected);
}

#[test]
fn meter_can_fail() {
    let text = "fn f() { self.meter.read();\n disk.read(a); meter.enter(b);\n x.read() }";
    assert_eq!(found(&meter(file("src/engine/mod.rs", text))), [(1, "read"), (3, "read")]);
}

#[test]
fn opening_can_fail() {
    assert_eq!(found(&opening(file("src/x.rs", "use a;\n//! b"))), [(1, "opening")]);
    assert_eq!(found(&opening(file("src/x.rs", ""))), [(1, "opening")]);
    assert!(opening(file("src/x.rs", "//! What it is.\n")).is_empty());
}

#[test]
fn sizes_can_fail() {
    let body = "    x();\n".repeat(FUNCTION_LINES_MAX - 2);
    let text = format!("fn fits() {{\n{body}}}\nfn long() {{\n{body}\n}}\n");
    assert_eq!(found(&sizes(file("src/x.rs", &text))), [(FUNCTION_LINES_MAX + 1, "long")]);
    let text = format!("{}\n{}\n", "ツ".repeat(COLUMNS_MAX), "x".repeat(COLUMNS_MAX + 1));
    assert_eq!(found(&sizes(file("src/x.rs", &text))), [(2, "columns")]);
    assert!(sizes(file("src/x.rs", &"\n".repeat(LINES_MAX))).is_empty());
    let long = sizes(file("src/x.rs", &"\n".repeat(LINES_MAX + 1)));
    assert_eq!(found(&long), [(0, "lines")]);
}

#[test]
fn mapped_can_fail() {
    let map = "  robots/\n    parse.rs  lines\n  dns.rs\n  preseen/";
    assert!(mapped(file("src/robots/mod.rs", ""), map).is_empty());
    assert!(mapped(file("src/robots/octets.rs", ""), map).is_empty());
    assert!(mapped(file("src/dns.rs", ""), map).is_empty());
    assert!(mapped(file("src/lib.rs", ""), map).is_empty());
    assert_eq!(found(&mapped(file("src/seen/mod.rs", ""), map)), [(0, "seen")]);
}
