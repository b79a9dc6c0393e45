//! The style sheets of Debian's packages: the scanner finds the references that tinycss2 finds, a
//! full parser of CSS in Python.

use crate::util::{lacks, root};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};
use sted::links::{Found, Progress, Scanner, Settings, sheet_charset};

/// Returns all files below `folder` that are named as style sheets.
fn sheets(folder: &Path, list: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sheets(&path, list),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|ext| ext == "css") => {
                list.push(path);
            }
            _ => {}
        }
    }
}

fn references(text: &[u8], budget: usize) -> Vec<String> {
    let settings = Settings {
        requisites: true,
        links_max: usize::MAX,
        reference_bytes_max: usize::MAX,
        found_bytes_max: usize::MAX,
        ..Settings::default()
    };
    let (mut scanner, mut found) = (Scanner::new(settings), Found::new());
    scanner.begin_sheet(sheet_charset(None, text));
    while scanner.scan(text, budget, &mut found) == Progress::More {}
    found.links().map(|link| link.reference.to_owned()).collect()
}

/// Returns what tinycss2 finds in each of the files: all references, and those that are valid.
/// `None` if it is not installed.
fn oracle(paths: &[PathBuf]) -> Option<Vec<[Vec<String>; 2]>> {
    let python = root().join(".venv/bin/python");
    let has_it = Command::new(&python).args(["-c", "import tinycss2"]).output();
    has_it.ok().filter(|output| output.status.success())?;
    let mut command = Command::new(&python);
    command.arg(root().join("tests/style_sheets.py"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "tests/style_sheets.py fails");
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("two lists")).collect())
}

/// Law: the references of real style sheets are those of a full parser, in the same order.
#[test]
fn references_of_real_style_sheets() {
    let mut paths = Vec::new();
    sheets(&root().join("target/deps/css"), &mut paths);
    paths.sort();
    let known = Some(&paths).filter(|paths| !paths.is_empty()).and_then(|paths| oracle(paths));
    let Some(known) = known else {
        return lacks("references_of_real_style_sheets", "style sheets or tinycss2 (make deps)");
    };
    assert!(paths.len() >= 1_000, "{} style sheets", paths.len());
    assert_eq!(known.len(), paths.len());
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, [all, valid]) in paths.iter().zip(known) {
        let text = fs::read(path).expect("it can be read");
        let found = references(&text, usize::MAX);
        assert_eq!(found, references(&text, 1_000), "{}", path.display());
        count += found.len();
        if found != all {
            wrong.push(format!("{}: {found:?}, not {all:?}", path.display()));
        }
        let lost = valid.iter().find(|reference| !found.contains(reference));
        wrong.extend(lost.map(|lost| format!("{}: {lost} is lost", path.display())));
    }
    assert_eq!(wrong, [""; 0], "{} of {} style sheets", wrong.len(), paths.len());
    assert!(count > 5_000, "the style sheets must have references, not {count}");
    eprintln!("{} style sheets with {count} references", paths.len());
}
