//! The one-line form of `sted crawl` and `--set`, as far as no crawl starts: the messages of all
//! mistakes, and whose directory a job is.

use super::util::{Run, golden, sted};
use clap::Parser;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sted::commands::Cli;

fn run_in(folder: &Path, arguments: &[&str]) -> Run {
    Run::of(sted(arguments).current_dir(folder).output().expect("the program starts"))
}

const ME: [&str; 2] = ["--contact", "me@a.org"];

/// Each mistake has a message with a fix, and nothing is written.
#[test]
fn each_mistake_has_a_fix() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("my.toml"), "[job]\nseeds = [\"https://a.org/\"]\n")
        .expect("written");
    let open = "[job]\nseeds = [\"https://a.org/\"]\n[identity]\ncontact = \"me@a.org\"\n\
                [scope]\nspan = \"any\"\n";
    fs::write(folder.path().join("open.toml"), open).expect("written");
    fs::write(folder.path().join("empty"), "# none\n").expect("written");
    let cases: &[&[&str]] = &[
        &["crawl"],
        &["crawl", "a.com"],
        &["crawl", "a.com", "--contact", "nobody"],
        &["crawl", "https://a.com/", "--span", "all"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--span", "any"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--pages", "0"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--pages", "many"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "politeness.dely=2s"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "politeness.delay=2"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "delay=2s"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "politeness.delay"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "scope.hosts=[\"a"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "job.directory=x"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "lab.directory=x"],
        &["crawl", "https://a.com/", ME[0], ME[1], "--set", "tls.roots_file=none-such"],
        &["crawl", "ftp://a.com/", ME[0], ME[1]],
        &["crawl", "https:///", ME[0], ME[1]],
        &["crawl", "http://127.0.0.1:8000/", ME[0], ME[1]],
        &["crawl", "localhost:8000", ME[0], ME[1]],
        &["crawl", "my.toml", "a.com", ME[0], ME[1]],
        &["crawl", "my.toml", "open.toml"],
        &["crawl", "my.toml", "--seeds", "-", ME[0], ME[1]],
        &["crawl", "none-such.toml"],
        &["crawl", "--seeds", "empty", ME[0], ME[1]],
        &["crawl", "--seeds", "none-such", ME[0], ME[1]],
        &["crawl", "open.toml"],
        &["check", "open.toml", "--set", "limits.page_max=9"],
        &["check", "open.toml", "--set", "limits.pages_max=9", "--set", "politeness.burst=x"],
    ];
    let mut text = String::new();
    for arguments in cases {
        let run = run_in(folder.path(), arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}: {}", run.err);
        let _ = writeln!(text, "$ sted {}\n{}", arguments.join(" "), run.err);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3, "nothing was begun");
    golden("one-line-mistakes.txt", &text);
}

#[test]
fn set_holds_for_every_command_with_a_configuration() {
    let check = |set: &[&str]| {
        let run = run_in(
            Path::new(env!("CARGO_MANIFEST_DIR")),
            &[&["check", "conf/quickstart.toml"], set].concat(),
        );
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out
    };
    let (plain, set) =
        (check(&[]), check(&["--set", "politeness.delay=7s", "--set", "web.seed=9"]));
    let changed: Vec<&str> =
        set.lines().filter(|line| !plain.lines().any(|old| old == *line)).collect();
    assert_eq!(
        changed,
        [
            "# Effective configuration of conf/quickstart.toml --set politeness.delay=7s --set \
             web.seed=9 (sted 0.1.0).",
            "delay = \"7s\"",
            "seed = 9",
        ]
    );
    for command in ["crawl", "check", "compare", "profile", "web"] {
        let cli = Cli::try_parse_from(["sted", command, "a.toml", "--set", "a.b=1"]);
        assert!(cli.is_ok(), "{command}");
    }
}

/// A job belongs to its name, and a directory of other files to nobody: nothing is written there.
#[test]
fn the_directory_of_something_else_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let conf = |name: &str, directory: &str| {
        format!(
            "[job]\nname = {name:?}\ndirectory = {directory:?}\nseeds = [\"http://a.test/\"]\n\
             [identity]\ncontact = \"me@a.org\"\n[scope]\nspan = \"host\"\n"
        )
    };
    let state = || {
        let mut names: Vec<_> = fs::read_dir(at("job"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    };
    fs::create_dir(at("job")).expect("created");
    fs::write(at("job/letter.txt"), "hello").expect("written");
    fs::write(at("x.toml"), conf("one", "job")).expect("written");
    for arguments in
        [&["crawl", "x.toml"][..], &["crawl", "https://a.com/", ME[0], ME[1], "--out", "job"]]
    {
        let run = run_in(folder.path(), arguments);
        assert_eq!(run.code, Some(5), "{}", run.err);
        assert!(
            run.err.contains("job: has files that are not of a crawl (letter.txt)"),
            "{}",
            run.err
        );
        assert_eq!(state(), ["letter.txt"], "nothing was written");
    }
    // What another crawl has left there, with another name.
    fs::remove_file(at("job/letter.txt")).expect("removed");
    fs::write(at("job/lock"), "1\n").expect("written");
    fs::write(at("job/conf.toml"), conf("two", "job")).expect("written");
    let run = run_in(folder.path(), &["crawl", "x.toml"]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    let says = "job: has the job \"two\", and this crawl is \"one\"; write job.name = \"two\" to \
                resume it, or choose another job.directory";
    assert!(run.err.contains(says), "{}", run.err);
    assert_eq!(state(), ["conf.toml", "lock"], "nothing was written");
    // A configuration of a job that was moved names the old place.
    fs::write(at("job/job.toml"), conf("two", "old")).expect("written");
    let run = run_in(folder.path(), &["crawl", "job/job.toml"]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    assert!(
        run.err.contains("names the job directory old, but belongs to the job in"),
        "{}",
        run.err
    );
    assert!(!at("old").exists(), "nothing was begun");
}

/// Every command in the README's blocks of shell commands is one that the program accepts.
#[cfg(all(feature = "study", feature = "control"))]
#[test]
fn commands_of_the_readme_are_accepted() {
    let readme = super::util::read("README.md");
    let mut count = 0;
    let mut is_shell = false;
    for line in readme.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_shell = kind == "sh";
        }
        let line = line.split(" #").next().unwrap_or_default().trim();
        for command in line.split("&&").map(str::trim).filter(|_| is_shell) {
            let Some(rest) =
                command.strip_prefix("target/release/").unwrap_or(command).strip_prefix("sted ")
            else {
                continue;
            };
            let words = rest.split_whitespace().map(|word| word.trim_matches('\''));
            let cli = Cli::try_parse_from(["sted"].into_iter().chain(words));
            let fault =
                cli.err().filter(|error| error.kind() != clap::error::ErrorKind::DisplayHelp);
            assert!(fault.is_none(), "{command}: {fault:?}");
            count += 1;
        }
    }
    assert!(count > 8, "only {count} commands");
}

#[test]
fn help_is_a_command_too() {
    for (help, flag) in
        [(&["help"][..], &["--help"][..]), (&["help", "crawl"], &["crawl", "--help"])]
    {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (help, flag) = (run_in(folder, help), run_in(folder, flag));
        assert_eq!((help.code, help.out), (Some(0), flag.out));
    }
}
