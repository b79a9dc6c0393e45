//! Counts lines of code by folder of `src`, with one definition for all limits: `make count`.
//!
//! A line of code is neither blank nor only a comment. Tests are counted separately: files
//! `tests.rs`, folders `tests/`, and modules inside a file below `#[cfg(test)]`. Everything else
//! below a `#[cfg(test)]` (a field, a function, the line that declares a module) counts as code,
//! because readers have to read it. It relies on rustfmt's layout.
//!
//! It also compiles alone, so that it can count a tree whose code doesn't compile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The number of lines of code, and those of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub code: usize,
    pub tests: usize,
}

impl Lines {
    fn add(&mut self, more: Self) {
        self.code += more.code;
        self.tests += more.tests;
    }
}

/// Prints the table for the tree in the first argument, by default for this one.
#[allow(dead_code, reason = "the program of `make count`; in the test binary it is a module")]
fn main() {
    let root = PathBuf::from(env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let folders = folders(&root);
    let mut sum = Lines::default();
    println!("{:<12} {:>7} {:>7}", "src/", "code", "tests");
    for (folder, lines) in &folders {
        sum.add(*lines);
        println!("{folder:<12} {:>7} {:>7}", lines.code, lines.tests);
    }
    println!("{:<12} {:>7} {:>7}", "in all", sum.code, sum.tests);
    for beside in ["tests", "bench"] {
        let mut lines = 0;
        walk(&root.join(beside), &mut |_, text| lines += of_text(text, false).code);
        println!("{:<12} {:>7} {lines:>7}", format!("{beside}/"), "");
    }
}

/// Counts lines by top-level module of `src` below `root`.
pub fn folders(root: &Path) -> BTreeMap<String, Lines> {
    let src = root.join("src");
    let mut folders: BTreeMap<String, Lines> = BTreeMap::new();
    walk(&src, &mut |path, text| {
        let path = path.strip_prefix(&src).unwrap_or(path);
        let top = path.iter().next().unwrap_or_default().to_string_lossy();
        let top = top.strip_suffix(".rs").unwrap_or(&top).to_owned();
        folders.entry(top).or_default().add(of_text(text, is_test(path)));
    });
    folders
}

/// Whether a file below `src` contains only tests.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// Counts the lines of one file; all of them are tests' if `tests`.
pub fn of_text(text: &str, tests: bool) -> Lines {
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    let lines = |text: &str| text.lines().filter(|line| is_code(line.trim_start())).count();
    let (all, code) = (lines(text), lines(&without_tests(text)));
    if tests { Lines { code: 0, tests: all } } else { Lines { code, tests: all - code } }
}

/// Returns the text with its test modules blanked; other lines keep their numbers.
pub fn without_tests(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    // The line that ends the current test module.
    let mut end: Option<String> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        let indent = &line[..line.len() - bare.len()];
        if end.is_none() && bare == "#[cfg(test)]" && lines.peek().is_some_and(|next| opens(next)) {
            end = Some(format!("{indent}}}"));
        }
        if end.is_none() {
            kept.push_str(line);
        }
        if end.as_deref() == Some(line) {
            end = None;
        }
        kept.push('\n');
    }
    kept
}

/// Whether the line opens a module inside its file.
fn opens(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], ["mod", _, "{"] | [_, "mod", _, "{"])
}

/// Calls `each` with every Rust file below `folder`; with none if the folder doesn't exist.
fn walk(folder: &Path, each: &mut dyn FnMut(&Path, &str)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            walk(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path, &fs::read_to_string(&path).expect("source is UTF-8"));
        }
    }
}

#[test]
fn tests_and_comments_are_no_code() {
    let text = "//! Opening.\n\nuse a;\n/// Doc.\nfn f() {\n    g(); // why\n    // Why.\n}\n\n\
                #[cfg(test)]\nmod model;\n\n#[cfg(test)]\nfn h() {}\n\n\
                #[cfg(test)]\nmod tests {\n    // A test.\n    #[test]\n    fn t() {\n    }\n}\n\
                mod last {\n    #[cfg(test)]\n    mod tests {\n    }\n}\n";
    assert_eq!(of_text(text, false), Lines { code: 10, tests: 9 });
    assert_eq!(of_text(text, true), Lines { code: 0, tests: 19 });
    assert!(is_test(Path::new("url/tests.rs")) && is_test(Path::new("web/tests/shapes.rs")));
    assert!(!is_test(Path::new("sim/contests.rs")));
}

#[test]
fn every_folder_is_counted() {
    let folders = folders(Path::new("."));
    assert!(folders["url"].code > 1000 && folders["main"].code > 0, "{folders:?}");
}
