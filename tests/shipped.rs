//! Every shipped configuration runs: reduced in size, in its own folders, with its own command.

use crate::util::{Run, read, root, sted};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use toml::{Table, Value};

/// Keys that make a run short, set if the file has their section.
const SMALL: [(&str, &str, Value); 9] = [
    ("web", "hosts", Value::Integer(12)),
    ("web", "pages", Value::Integer(240)),
    ("web", "seeds", Value::Integer(3)),
    ("compare", "repeats", Value::Integer(1)),
    ("profile", "repeats", Value::Integer(1)),
    ("profile", "step_pages", Value::Integer(200)),
    ("limits", "pages_max", Value::Integer(2_000)),
    ("quality", "zipf_pages", Value::Integer(240)),
    ("sim", "seed", Value::Integer(1)),
];
/// Lists that are cut to two values.
const LISTS: [(&str, &str); 3] =
    [("compare", "values"), ("profile", "connections"), ("compare", "variants")];
/// Folders that a run writes to.
const FOLDERS: [(&str, &str); 4] = [
    ("job", "directory"),
    ("lab", "directory"),
    ("compare", "directory"),
    ("profile", "directory"),
];

/// Returns the configuration `path` reduced in size, with its folders in `folder`.
fn small(path: &str, folder: &Path, changes: &[(&str, &str, Value)]) -> String {
    let mut conf: Table = read(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    let has_graph = conf.get("web").and_then(|web| web.get("graph")).is_some();
    if has_graph {
        // The operator has to download the graph: a drawn web replaces it.
        let web = conf["web"].as_table_mut().expect("a section");
        web.remove("graph");
        web.remove("hosts_file");
    }
    for (section, key, value) in SMALL.iter().chain(changes) {
        let is_there = conf.contains_key(*section) || *section == "limits";
        if is_there && let Some(table) = section_of(&mut conf, section) {
            table.insert((*key).to_owned(), value.clone());
        }
    }
    for (section, key) in LISTS {
        let list = conf.get_mut(section).and_then(|table| table.get_mut(key));
        if let Some(Value::Array(list)) = list {
            list.truncate(2);
        }
    }
    for (section, key) in FOLDERS {
        if let Some(table) = conf.get_mut(section).and_then(Value::as_table_mut) {
            let place = folder.join(section).to_str().expect("UTF-8").to_owned();
            table.insert(key.to_owned(), Value::String(place));
        }
    }
    let file = folder.join("small.toml");
    fs::write(&file, conf.to_string()).expect("written");
    file.to_str().expect("UTF-8").to_owned()
}

fn section_of<'a>(conf: &'a mut Table, section: &str) -> Option<&'a mut Table> {
    conf.entry(section).or_insert_with(|| Value::Table(Table::new())).as_table_mut()
}

fn succeeds(path: &str, command: &str, codes: &[i32], changes: &[(&str, &str, Value)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = small(path, folder.path(), changes);
    let run = Run::of(sted(&[command, &conf]).output().expect("starts"));
    let is_right = run.code.is_some_and(|code| codes.contains(&code));
    assert!(is_right, "sted {command} {path}: {:?}: {}{}", run.code, run.out, run.err);
}

/// Runs each file with the command of each of its sections.
#[test]
fn every_shipped_configuration_runs() {
    let (mut crawls, mut others) = (0, 0);
    for entry in fs::read_dir(root().join("conf")).expect("conf is there") {
        let name = entry.expect("an entry").file_name().into_string().expect("a UTF-8 name");
        let path = format!("conf/{name}");
        if ["polite.toml", "archive-site.toml", "focused.toml"].contains(&&*name)
            || !name.ends_with(".toml")
        {
            continue; // they crawl the web, or score pages
        }
        let conf: Table = read(&path).parse().expect("TOML");
        if conf.contains_key("compare") {
            succeeds(&path, "compare", &[0], &[]);
            others += 1;
        }
        if conf.contains_key("profile") {
            let short = [
                ("profile", "step_time", Value::String("1s".to_owned())),
                ("profile", "warm_up", Value::String("100ms".to_owned())),
            ];
            succeeds(&path, "profile", &[0], &short);
            others += 1;
        }
        let is_manual = name == "reference.toml";
        if conf.contains_key("lab") && (is_manual || !conf.contains_key("profile")) {
            let short = [("limits", "time_max", Value::String("8s".to_owned()))];
            // The crawl ends after all pages, a number of pages, or a time: a web of hostile hosts
            // takes longer.
            succeeds(&path, "crawl", &[0, 12, 14, 15], &short);
            crawls += 1;
        }
    }
    assert!(crawls >= 3 && others >= 14, "{crawls} crawls and {others} studies ran");
}

/// The configuration for a site, with the lab in place of the site.
#[test]
fn the_configuration_for_a_site_crawls() {
    let folder = tempfile::tempdir().expect("a folder");
    let lab = "\n[lab]\n[web]\npreset = \"quickstart\"\nhosts = 3\npages = 24\nseeds = 1\n";
    let text = read("conf/archive-site.toml") + lab;
    let mut conf: Table = text.parse().expect("TOML");
    let folders = [("job", "directory"), ("lab", "directory")];
    for (section, key) in folders {
        let place = folder.path().join(section).to_str().expect("UTF-8").to_owned();
        section_of(&mut conf, section).expect("a section").insert(key.into(), place.into());
    }
    section_of(&mut conf, "limits").expect("a section").insert("time_max".into(), "8s".into());
    let file = folder.path().join("site.toml");
    fs::write(&file, conf.to_string()).expect("written");
    let run = Run::of(sted(&["crawl", file.to_str().expect("UTF-8")]).output().expect("starts"));
    assert!(run.code.is_some_and(|code| [0, 12, 15].contains(&code)), "{}{}", run.out, run.err);
    let summary = fs::read_to_string(folder.path().join("job/summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert!(summary["counts"]["pages"].as_u64() > Some(2), "{summary}");
}

/// A comparison of the default web, with all optional keys left out.
#[test]
fn the_default_web_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = folder.path().join("study.toml");
    fs::write(&conf, "[compare]\ndirectory = \"out\"\n[web]\npages = 600\n").expect("written");
    let output = sted(&["compare", "study.toml"]).current_dir(folder.path()).output();
    let run = Run::of(output.expect("starts"));
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    // The web of hostile hosts has an endless one: a comparison of it needs a limit.
    let endless = "[compare]\ndirectory = \"out\"\n[web]\npreset = \"hostile\"\n";
    fs::write(&conf, endless).expect("written");
    let output = sted(&["compare", "study.toml"]).current_dir(folder.path()).output();
    let run = Run::of(output.expect("starts"));
    assert_eq!(run.code, Some(2), "{}{}", run.out, run.err);
    assert!(run.err.contains("limits.pages_max"), "{}", run.err);
}

/// `sted web` serves each preset until its standard input ends.
#[test]
fn each_preset_is_served() {
    for preset in ["plain", "quickstart", "bench", "hostile", "2003", "2025"] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "[lab]\ndirectory = \"lab\"\nmanifest = false\n\
             [web]\npreset = \"{preset}\"\nhosts = 12\npages = 240\nseeds = 3\n"
        );
        fs::write(folder.path().join("web.toml"), text).expect("written");
        let mut command = sted(&["web", "web.toml"]);
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        lines.read_line(&mut line).expect("UTF-8");
        assert!(line.starts_with('{') && line.contains("\"dns\""), "{preset}: {line}");
        drop(child.stdin.take());
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{preset}");
    }
}
