//! The architecture as a test: the dependencies between modules, what the core may name, and the
//! sizes that keep files readable.
//!
//! Exceptions are listed here by name and may only shrink: an exception that is no longer needed
//! fails the test, too.

mod checks;
mod circles;
mod count;
mod parts;
mod source;

use checks::{File, Offence};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Prefixes of paths, or names of modules.
type Names = &'static [&'static str];

/// What each part may use of this crate besides itself: prefixes of paths, `*` for everything. A
/// part is a top-level module, or one of `ground` or `study`. A part that isn't listed fails the
/// test.
const EDGES: &[(Names, &[Names])] = &[
    // Ground: plain values.
    (&["ground", "ground::random", "ground::real"], &[]),
    (
        &[
            "ground::time",
            "ground::disk",
            "ground::map",
            "ground::table",
            "ground::stats",
            "ground::quality",
            "ground::codec",
        ],
        &[&["ground::random"]],
    ),
    (&["ground::frame", "ground::tail"], &[&["ground::codec", "ground::disk", "ground::random"]]),
    (
        &["ground::segments"],
        &[&["ground::disk", "ground::frame", "ground::random", "ground::tail"]],
    ),
    (&["url"], &[BASE]),
    // Stations don't know each other.
    (STATIONS, &[GROUND]),
    // The road.
    (&["engine"], &[GROUND, STATIONS]),
    (&["conf"], &[GROUND, STATIONS]),
    // Worlds know only the engine's methods and its contract.
    (&["os"], &[GROUND, ENGINE, &["conf"]]),
    // The top; nothing depends on it.
    (&["commands", "main", "lib"], &[&["*"]]),
    // The study: the description of a web, the world and the server that use it, reports, and
    // commands.
    (&["study::web"], &[GROUND, &["conf::Hostile"]]),
    (&["study::sim", "study::lab"], &[GROUND, ENGINE, &["conf", "study::web"]]),
    (&["study::report"], &[&["ground::map", "ground::random"]]),
    (STUDIES, &[&["*"]]),
];
const BASE: Names = &[
    "ground::time",
    "ground::disk",
    "ground::map",
    "ground::random",
    "ground::stats",
    "ground::quality",
];
const GROUND: Names = &["ground", "url"];
const STATIONS: Names = &[
    "seeds", "seen", "rating", "budgets", "recrawl", "frontier", "dns", "http", "robots", "links",
    "consent", "repeats", "sitemap", "store", "cluster",
];
/// The commands of the study.
const STUDIES: Names = &[
    "study",
    "study::cache",
    "study::child",
    "study::command",
    "study::driven",
    "study::compare",
    "study::inputs",
    "study::output",
    "study::profile",
    "study::serve",
    "study::settings",
];
const ENGINE: Names = &["engine::contract", "engine::Engine"];

/// The only file outside the study that may name it.
const FRONT_DOOR: &str = "src/commands/study.rs";

/// The parts that may use the outside world (sockets, files, clocks): worlds, the lab and the top.
/// Everything else is the core.
const OUTSIDE: &[Names] = &[&["os", "study::lab", "commands", "main"], STUDIES];

/// The parts that may read the meter: worlds and commands, and the meter's own.
const METERED: &[Names] = &[&["os", "study::sim", "commands", "main", "ground::stats"], STUDIES];

/// Exceptions from the layers' rules: `file: path`.
const STRAYS: Names = &[];

/// Exceptions from the sizes: `file: lines`, `file: columns`, `file: function`.
// The table of entity names is as long as the standard's.
const OVERSIZED: Names = &["src/links/names.rs: lines"];

/// Structs with more than a dozen fields, and how many they have. They are not identified by file,
/// because files move.
const CROWDED: Names = &[
    // It joins the parts; no other struct has them all.
    "Engine 16",
    // A station that holds its settings, its files and its counts in one struct.
    "Seen 15",
    // The study: a simulated or served world, and the measurements of a run, are one struct each.
    "Server 18",
    "Judge 17",
    "Gathered 16",
    "Connection 14",
    "Server 14",
    "Link 13",
    "Step 13",
];

/// Files that need one another: each circle by all its files, with its reason.
const CIRCLES: Names = &[
    // A label chooses the decoder; a decoder recognises gzip inside gzip by the label's magic
    // number.
    "http::coding::codec http::coding::label",
    // A round starts merges, and a merge uses the round's bit sets.
    "seen::merge seen::round",
    // A record carries a digest; the table of digests carries ids of records.
    "store::digest store::warc",
    // The names of a segment's files, the job that fills it and its log are in three files.
    "store::job store::log_file store::segment",
    // A reply is a list of the acts that a connection performs.
    "study::lab::connection study::lab::replies",
    // Hosts, pages and replies of a synthetic web are made from one another.
    "study::web::host study::web::hostile study::web::hostile::heavy study::web::manifest \
     study::web::page study::web::wire",
];

/// Top-level modules that ARCHITECTURE.md doesn't name.
const UNMAPPED: Names = &[];

#[test]
fn every_module_keeps_to_its_layer() {
    let sources = sources("src");
    let mut offences = Vec::new();
    for file in sources.iter().map(Source::file) {
        match allowed(&file.part()) {
            Some(allowed) => offences.extend(checks::edges(file, &allowed)),
            None => panic!("{}: {} has no place in the table of layers", file.name, file.part()),
        }
        if !file.part().starts_with("study") && file.name != FRONT_DOOR {
            offences.extend(checks::stranger(file, "crate::study"));
        }
        if !OUTSIDE.concat().contains(&file.part().as_str()) {
            offences.extend(checks::silence(file));
        }
        if !METERED.concat().contains(&file.part().as_str()) {
            offences.extend(checks::meter(file));
        }
    }
    judge(&offences, Offence::place, STRAYS).unwrap_or_else(|verdict| panic!("{verdict}"));
}

#[test]
fn every_file_opens_well_and_is_of_readable_size() {
    let mut offences = Vec::new();
    let sources = [sources("src"), sources("tests")].concat();
    for file in sources.iter().map(Source::file) {
        offences.extend(checks::opening(file));
        offences.extend(checks::sizes(file));
    }
    judge(&offences, Offence::place, OVERSIZED).unwrap_or_else(|verdict| panic!("{verdict}"));
}

#[test]
fn every_part_has_few_fields() {
    let sources = sources("src");
    let files = sources.iter().map(Source::file);
    let offences: Vec<Offence> = files.flat_map(parts::fields).collect();
    let part = |offence: &Offence| offence.what.clone();
    judge(&offences, part, CROWDED).unwrap_or_else(|verdict| panic!("{verdict}"));
}

#[test]
fn no_files_go_in_circles() {
    let sources = sources("src");
    let files: Vec<File> = sources.iter().map(Source::file).collect();
    let circle = |offence: &Offence| offence.what.clone();
    judge(&circles::circles(&files), circle, CIRCLES).unwrap_or_else(|verdict| panic!("{verdict}"));
}

#[test]
fn every_module_is_on_the_map() {
    let map = fs::read_to_string("src/ARCHITECTURE.md").expect("the map is part of the source");
    let sources = sources("src");
    let files = sources.iter().map(Source::file);
    let offences: Vec<Offence> = files.flat_map(|file| checks::mapped(file, &map)).collect();
    let module = |offence: &Offence| offence.what.clone();
    judge(&offences, module, UNMAPPED).unwrap_or_else(|verdict| panic!("{verdict}"));
}

/// The table has each module once, and every module of the crate is in it.
#[test]
fn the_table_names_each_module_once() {
    let named: Vec<&str> = EDGES.iter().flat_map(|(modules, _)| *modules).copied().collect();
    let once: BTreeSet<&str> = named.iter().copied().collect();
    assert_eq!(named.len(), once.len(), "a module is named twice in {named:?}");
    let sources = sources("src");
    let parts: Vec<String> = sources.iter().map(|source| source.file().part()).collect();
    let found: BTreeSet<&str> = parts.iter().map(String::as_str).collect();
    assert!(!sources.is_empty() && found == once, "of the table and of src: {once:?}\n{found:?}");
}

/// Returns what `part` may use; `None` if the table doesn't have it.
fn allowed(part: &str) -> Option<Vec<&'static str>> {
    let (_, allowed) = EDGES.iter().find(|(parts, _)| parts.contains(&part))?;
    Some(allowed.concat())
}

/// Checks that every offence is excused, and that every excuse is needed. `key` returns the name by
/// which an offence is excused.
fn judge(
    offences: &[Offence],
    key: impl Fn(&Offence) -> String,
    excused: &[&str],
) -> Result<(), String> {
    let mut needless: BTreeSet<&str> = excused.iter().copied().collect();
    let mut verdict = String::new();
    for offence in offences {
        if excused.contains(&key(offence).as_str()) {
            needless.remove(key(offence).as_str());
        } else {
            let Offence { file, line, what, why } = offence;
            verdict.push_str(&format!("\n{file}:{line}: {what}: {why}"));
        }
    }
    for excuse in needless {
        verdict.push_str(&format!("\nno longer needed as an exception, remove it: {excuse}"));
    }
    if verdict.is_empty() { Ok(()) } else { Err(verdict) }
}

#[test]
fn the_judge_can_fail() {
    let offence = |file: &str, what: &str| Offence {
        file: file.to_owned(),
        line: 7,
        what: what.to_owned(),
        why: "too long".to_owned(),
    };
    let offences = [offence("a.rs", "lines"), offence("a.rs", "lines"), offence("b.rs", "lines")];
    let judged = |excused: &[&str]| judge(&offences, Offence::place, excused);
    assert_eq!(judged(&["a.rs: lines", "b.rs: lines"]), Ok(()));
    let verdict = judged(&["a.rs: lines", "b.rs: columns"]).unwrap_err();
    assert!(verdict.contains("b.rs:7: lines: too long"), "{verdict}");
    assert!(verdict.contains("remove it: b.rs: columns"), "{verdict}");
    assert!(!verdict.contains("a.rs"), "{verdict}");
}

/// A file with its name relative to the package.
#[derive(Clone)]
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn file(&self) -> File<'_> {
        File { name: &self.name, text: &self.text }
    }
}

/// Returns all Rust files below `folder`, sorted by name.
fn sources(folder: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the package") {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("source is UTF-8");
                sources.push(Source { name: path.display().to_string(), text });
            }
        }
    }
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources
}
