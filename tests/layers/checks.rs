//! The rules of the layer test, each a function from one file to its offences, with a test of a
//! file that breaks it.

use super::source::{Path, functions, paths, tokens};

/// A source file.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// Its path relative to the package, with `/`: `src/http/mod.rs`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    /// The file's name, as in [`File`].
    pub file: String,
    /// The line, counted from 1; 0 is the file as a whole.
    pub line: usize,
    /// The name in a list of exceptions: a path, a function, a rule.
    pub what: String,
    /// The explanation for people.
    pub why: String,
}

impl Offence {
    /// Returns the name in a list of exceptions, without the line, because lines move.
    pub fn place(&self) -> String {
        format!("{}: {}", self.file, self.what)
    }
}

/// The most lines of a file.
pub const LINES_MAX: usize = 600;
/// The most lines of a function.
pub const FUNCTION_LINES_MAX: usize = 70;
/// The most characters of a line.
pub const COLUMNS_MAX: usize = 100;

/// Names that no file of the core may use: they read a clock, open a file or a socket, start a
/// thread, or call the system.
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
    "rustix",
    "hyper",
    "hyper_util",
    "tokio",
];

impl<'a> File<'a> {
    /// Returns the file's module path from the root: `src/http/mod.rs` is `http`; the root itself
    /// is empty.
    pub fn module(&self) -> Vec<&'a str> {
        let path = self.name.strip_prefix("src/").unwrap_or(self.name);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut module: Vec<&'a str> = path.split('/').collect();
        if matches!(module.last(), Some(&"mod")) || matches!(module[..], ["lib" | "main"]) {
            module.pop();
        }
        module
    }

    /// Returns the file's name in the table of edges: its top-level module, or `main`, `lib`; below
    /// `ground` and `study` the module there, such as `study::web`.
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

/// Checks that each path into another part begins as one of `allowed` does (`*`: any).
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

/// Checks that the file does not name `module`.
pub fn stranger(file: File<'_>, module: &str) -> Vec<Offence> {
    let why = format!("only the front door may name {module}");
    let offence = |path: &Path| file.offence(path.line, &path.text(), why.clone());
    file.paths().iter().filter(|path| path.is_below(module)).map(offence).collect()
}

/// Checks that the core does not name anything of the outside world.
pub fn silence(file: File<'_>) -> Vec<Offence> {
    let mut found = Vec::new();
    for path in file.paths() {
        for name in OF_WORLDS.iter().filter(|name| path.is_below(name)) {
            found.push(file.offence(path.line, name, format!("the core may not name {name}")));
        }
    }
    found
}

/// Checks that the core writes to the meter and never reads it.
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

/// Checks that each file begins with its documentation.
pub fn opening(file: File<'_>) -> Vec<Offence> {
    let first = file.text.lines().next().unwrap_or("");
    if first.starts_with("//! ") || first.starts_with("#![doc = include_str!(") {
        return Vec::new();
    }
    vec![file.offence(1, "opening", "the file doesn't open with //!".to_owned())]
}

/// Checks the sizes of files, functions and lines.
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

/// Checks that ARCHITECTURE.md names the folder or file of each top-level module.
pub fn mapped(file: File<'_>, map: &str) -> Vec<Offence> {
    let Some(top) = file.module().first().copied() else { return Vec::new() };
    if has_word(map, top) {
        return Vec::new();
    }
    vec![file.offence(0, top, format!("ARCHITECTURE.md doesn't name {top}"))]
}

/// Whether `word` occurs in the text and isn't the end of a longer name.
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
