//! Circles: files that need one another, so that none can be read or changed alone.
//!
//! A file needs another one if it names an item of it outside its tests. A name that a third file
//! only re-exports (`pub use`) leads to the file that defines it. A file below a module is part of
//! that module and may name its parents: parents and their children are no circle.

use super::checks::{File, Offence};
use super::count;
use super::source::{Path, paths, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The needed modules by module, such as `url::canon`; the crate's root is empty.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the groups of files in which each needs every other, directly or indirectly. An
/// exception names all files of the circle.
pub fn circles(files: &[File<'_>]) -> Vec<Offence> {
    let graph = graph(files);
    let reach: Graph = graph.keys().map(|name| (name.clone(), reached(&graph, name))).collect();
    let mut circles = BTreeSet::new();
    for (name, needs) in &reach {
        if needs.contains(name) {
            let mutual = needs.iter().filter(|other| reach[*other].contains(name));
            circles.insert(mutual.map(String::as_str).collect::<Vec<_>>());
        }
    }
    circles.iter().map(|circle| offence(&graph, circle)).collect()
}

fn offence(graph: &Graph, circle: &[&str]) -> Offence {
    let inner = |name: &str| -> Vec<String> {
        graph[name].iter().filter(|needed| circle.contains(&needed.as_str())).cloned().collect()
    };
    let why: Vec<String> = circle
        .iter()
        .map(|name| format!("\n    {name} needs {}", inner(name).join(", ")))
        .collect();
    let file = circle[0].to_owned();
    Offence { file, line: 0, what: circle.join(" "), why: format!("a circle{}", why.concat()) }
}

/// Returns what `name` needs, directly or indirectly; itself only if it is in a circle.
fn reached(graph: &Graph, name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for needed in &graph[next] {
            if reached.insert(needed.clone()) {
                open.push(needed);
            }
        }
    }
    reached
}

/// Returns which file needs which.
fn graph(files: &[File<'_>]) -> Graph {
    let code = files.iter().filter(|file| !file.module().contains(&"tests"));
    let found: BTreeMap<String, Vec<Path>> = code
        .map(|file| {
            let text = count::without_tests(file.text);
            (file.module().join("::"), paths(&tokens(&text), &file.module()))
        })
        .collect();
    let needs = |name: &String, path: &Path| owner(&found, name, &path.segments, 0);
    found
        .iter()
        .map(|(name, paths)| {
            let needed = paths.iter().filter_map(|path| needs(name, path));
            (name.clone(), needed.filter(|needed| !is_within(name, needed)).collect())
        })
        .collect()
}

/// Whether a file is `module` or part of it.
fn is_within(name: &str, module: &str) -> bool {
    let rest = name.strip_prefix(module);
    module.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the file that defines what a path in file `from` names; `None` if it is of another
/// crate.
fn owner(
    files: &BTreeMap<String, Vec<Path>>,
    from: &str,
    segments: &[String],
    steps: usize,
) -> Option<String> {
    let inner = |segments: &[String]| {
        let module = |len: &usize| files.contains_key(&segments[..*len].join("::"));
        (1..=segments.len()).rev().find(module)
    };
    // A path from the root, or one that begins with a module below this file.
    let full: Vec<String> = match segments.first().map(String::as_str) {
        Some("crate") => segments[1..].to_vec(),
        _ => from
            .split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .chain(segments.iter().cloned())
            .collect(),
    };
    let len = inner(&full)?;
    let here = full[..len].join("::");
    if segments[0] != "crate" && here == from {
        return None;
    }
    let Some(item) = full.get(len).filter(|_| steps < 8) else { return Some(here) };
    let passed_on = files[&here]
        .iter()
        .find(|path| path.segments.len() > 1 && path.segments.last() == Some(item) && path.is_use);
    match passed_on {
        Some(path) => owner(files, &here, &path.segments, steps + 1).or(Some(here)),
        None => Some(here),
    }
}

#[test]
fn circles_can_fail() {
    let files = [
        ("src/a/mod.rs", "mod b; mod c; pub use c::Thing; use b::Part; pub struct Whole;"),
        ("src/a/b.rs", "use super::{Thing, Whole}; use std::fmt; pub struct Part;"),
        ("src/a/c.rs", "use super::Whole; use crate::e::f; pub struct Thing;"),
        (
            "src/a/d.rs",
            "fn f() { super::b::g(); }\n#[cfg(test)]\nmod tests {\n    use crate::g;\n}\n",
        ),
        ("src/a/tests.rs", "use super::d;"),
        ("src/e/mod.rs", "pub mod f;"),
        ("src/e/f.rs", "use crate::a::b::Part; use super::super::g;"),
        ("src/g.rs", "use crate::a::d;"),
    ];
    let files = files.map(|(name, text)| File { name, text });
    let found: Vec<String> = circles(&files).into_iter().map(|offence| offence.what).collect();
    assert_eq!(found, ["a::b a::c a::d e::f g"]);
    let files = files.map(|File { name, text }| match name {
        "src/a/c.rs" => File { name, text: "use super::Whole;" },
        _ => File { name, text },
    });
    assert_eq!(circles(&files), []);
}
