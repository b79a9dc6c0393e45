//! Focused crawls by the real program: the shipped scorer reads the pages of the lab.

use crate::util::{Run, read, root, sted};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use sted::ground::quality::Quality;
use sted::store::log;

/// A crawl of a small lab in `folder`, whose pages are scored by `command`.
fn crawl(folder: &Path, command: &[&str], lines: &str) -> Run {
    let conf = format!(
        "[job]\ndirectory = \"job\"\n[politeness]\nburst = \"server\"\ndelay = \"0s\"\n\
         delay_factor = 0\naddress_delay = \"0s\"\ndomain_delay = \"0s\"\n\
         [schedule]\npolicy = \"capability\"\n[quality]\nsource = \"command\"\n\
         command = {command:?}\n{lines}\n[lab]\ndirectory = \"lab\"\n[web]\npreset = \"plain\"\n\
         hosts = 4\npages = 60\n"
    );
    fs::write(folder.join("focused.toml"), conf).expect("written");
    let output = sted(&["crawl", "focused.toml"]).current_dir(folder).output();
    Run::of(output.expect("starts"))
}

/// Returns the counts of the crawl in `folder`.
fn counts(folder: &Path) -> serde_json::Value {
    let summary = fs::read_to_string(folder.join("job/summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    summary["counts"].clone()
}

/// Each page has a score, and what it links to is worth four fifths of it.
#[test]
fn the_scorer_by_words_scores_each_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = root().join("conf/score-keywords.py");
    let script = script.to_str().expect("UTF-8");
    let command = ["python3", script, "river", "stone", "paper", "garden", "light"];
    let run = crawl(folder.path(), &command, "command_timeout = \"60s\"");
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(run.out.contains("pages scored"), "{}", run.out);
    let counts = counts(folder.path());
    assert!(counts["scored"].as_u64() > Some(50), "{counts}");
    let text = fs::read_to_string(folder.path().join("job/crawl.log")).expect("a log");
    let lines: Vec<_> = text.lines().filter_map(|line| log::parse(line).ok()).collect();
    let scored = |line: &log::Entry<'_>| Some((line.url.to_owned(), line.extra.score?));
    let scores: BTreeMap<String, Quality> = lines.iter().filter_map(scored).collect();
    let distinct = scores.values().map(|score| score.millionths());
    assert!(distinct.clone().min() < distinct.max(), "{scores:?}");
    let mut links = 0;
    for line in lines.iter().filter(|line| line.extra.hops == 0) {
        let (Some(via), Some(quality)) = (line.via, line.extra.quality) else { continue };
        assert_eq!(quality, scores[via].scaled(800), "{} on {via}", line.url);
        links += 1;
    }
    assert!(links > 40, "{links} links");
}

/// The crawl ends whatever the program does, and says what is wrong.
#[test]
fn a_program_that_misbehaves_costs_scores_only() {
    for (script, cause, said) in [
        ("read page; exit 3", "score-failed", "has ended (exit status: 3)"),
        ("while read page; do echo hello; done", "score-timed-out", "\"hello\" is no answer"),
        ("echo help >&2; cat > /dev/null", "score-timed-out", "quality.command: help"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = crawl(folder.path(), &["sh", "-c", script], "command_timeout = \"100ms\"");
        assert_eq!(run.code, Some(0), "{script}: {}{}", run.out, run.err);
        assert!(run.err.contains(said), "{script}: {}", run.err);
        assert!(run.out.contains(cause), "{script}: {}", run.out);
        let counts = counts(folder.path());
        assert!(counts["cut"][cause].as_u64() > Some(0), "{script}: {counts}");
        assert_eq!(counts["scored"], 0, "{script}");
    }
}

#[test]
fn a_program_that_is_not_there_is_a_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = crawl(folder.path(), &["./no-scorer"], "");
    assert_eq!(run.code, Some(2), "{}", run.err);
    let said = "quality.command: can't start \"./no-scorer\": No such file";
    assert!(run.err.contains(said), "{}", run.err);
}

/// What `conf/focused.toml` names is there.
#[test]
fn the_shipped_scorers_are_there() {
    let conf = read("conf/focused.toml");
    for name in ["conf/score-classifier.py", "conf/score-examples.tsv", "conf/score-keywords.py"] {
        assert!(conf.contains(name) && !read(name).is_empty(), "{name}");
    }
    let lines = read("conf/score-examples.tsv");
    let kinds = lines.lines().filter(|line| !line.starts_with('#'));
    let kinds = kinds.map(|line| line.split_once('\t').expect("a kind, a tab, a text").0);
    assert!(kinds.clone().all(|kind| ["wanted", "other"].contains(&kind)) && kinds.count() > 20);
}
