//! The manual pages say what the program says: every command and option, every key, every file of a
//! job, and every field and code of its log.

#[path = "../dist/pages.rs"]
#[allow(dead_code, reason = "the tool's own start")]
mod dist;

use crate::util::{Run, read, sted};
use clap::{Command, CommandFactory};
use std::collections::BTreeMap;
#[cfg(feature = "study")]
use std::{fs, path::Path};
use sted::commands::{Cli, Exit};
use sted::conf::Conf;

/// Returns the text of a page without the escapes of roff.
fn plain(page: &str) -> String {
    let text = page.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "");
    text.replace("\\-", "-").replace("\\&", "").replace("\\*(Aq", "'").replace("\\\\", "\\")
}

fn pages() -> BTreeMap<String, String> {
    dist::pages().into_iter().map(|(name, text)| (name, plain(&text))).collect()
}

/// Each command has a page, with all its options and commands.
#[test]
fn every_command_has_a_page() {
    fn check(command: &Command, pages: &BTreeMap<String, String>) -> usize {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let page = &pages[&format!("{name}.1")];
        for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
            assert!(page.contains(&format!("--{option}")), "{name}: --{option}: {page}");
        }
        let own = command.get_subcommands().filter(|own| own.get_name() != "help");
        1 + own.filter(|own| !own.is_hide_set()).map(|own| check(own, pages)).sum::<usize>()
    }
    let mut command = Cli::command();
    command.build();
    let pages = pages();
    assert_eq!(check(&command, &pages), pages.len() - 2, "and no other page");
    for exit in Exit::ALL {
        assert!(pages["sted.1"].contains(exit.meaning()), "{exit:?}");
    }
}

#[test]
fn every_key_is_in_the_page_of_the_configuration() {
    let page = &pages()["sted.toml.5"];
    let conf = Conf::parse(&read("conf/reference.toml"), "reference").expect("valid");
    for key in conf.keys() {
        assert!(page.contains(&format!("\n{} = ", key.name)), "{}.{}", key.section, key.name);
        assert!(page.contains(&format!("[{}]", key.section)), "{}", key.section);
        assert!(page.contains(&format!("Allowed: {}.", key.allowed)), "{}", key.name);
    }
    assert!(page.contains("[[site]]"));
}

/// All rows of the tables about files and the log are there, and each file that a crawl leaves.
#[test]
fn every_file_and_field_is_in_the_page_of_a_job() {
    let page = &pages()["sted-job.5"];
    let log = read("src/store/CRAWL-LOG.md");
    let rows = log.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.filter(|row| !["field", "code"].contains(row)).collect();
    assert!(rows.len() > 100, "{} rows", rows.len());
    for row in rows {
        assert!(page.contains(&row.replace('`', "")), "{row}");
    }
    #[cfg(feature = "study")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = "[job]\ndirectory = \"job\"\ntrace = true\n[store]\nsync_period = \"100ms\"\n\
                    [politeness]\nburst = \"server\"\ndelay = \"0s\"\ndelay_factor = 0\n\
                    address_delay = \"0s\"\ndomain_delay = \"0s\"\n[lab]\ndirectory = \"lab\"\n\
                    [web]\npreset = \"plain\"\nhosts = 4\npages = 40\n";
        fs::write(folder.path().join("a.toml"), conf).expect("written");
        let output = sted(&["crawl", "a.toml"]).current_dir(folder.path()).output();
        let run = Run::of(output.expect("starts"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let mut files = Vec::new();
        list(folder.path(), "job", &mut files);
        assert!(files.len() > 7, "{files:?}");
        for file in files {
            // Names have numbers and times.
            let stem = file.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
            let stem = stem.trim_start_matches("job/").replace("sted-", "PREFIX-");
            assert!(page.contains(&stem), "{file}: {stem}");
        }
    }
}

/// Adds the files in a folder, with their paths from `root`.
#[cfg(feature = "study")]
fn list(root: &Path, folder: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = format!("{folder}/{}", entry.file_name().to_str().expect("UTF-8"));
        match entry.file_type().expect("a type").is_dir() {
            true => list(root, &name, files),
            false => files.push(name),
        }
    }
}

/// The completions of each shell know every command.
#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let run = Run::of(sted(&["completions", shell]).output().expect("starts"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{shell}");
        for command in Cli::command().get_subcommands() {
            assert!(run.out.contains(command.get_name()), "{shell}: {}", command.get_name());
        }
        assert!(run.out.contains("requisites"), "{shell}: options");
    }
}
