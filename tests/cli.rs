//! The command line from outside: what it prints, on which stream, and its exit code.

use super::util::{Run, golden, read, run, sted};
use std::fs;
use std::process::Stdio;
use sted::commands::Exit;
use sted::conf::Conf;

#[cfg(all(feature = "study", feature = "control"))]
#[test]
fn help_is_as_reviewed() {
    for (name, arguments) in [
        ("help.txt", &["--help"][..]),
        ("help-short.txt", &["-h"]),
        ("help-audit.txt", &["audit", "--help"]),
        ("help-cache.txt", &["cache", "--help"]),
        ("help-compare.txt", &["compare", "--help"]),
        ("help-crawl.txt", &["crawl", "--help"]),
        ("help-check.txt", &["check", "--help"]),
        ("help-ctl.txt", &["ctl", "--help"]),
        ("help-status.txt", &["status", "--help"]),
        ("help-report.txt", &["report", "--help"]),
        ("help-wacz.txt", &["wacz", "--help"]),
        ("help-web.txt", &["web", "--help"]),
        ("help-why.txt", &["why", "--help"]),
    ] {
        let run = run(arguments);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
        golden(name, &run.out);
    }
}

#[test]
fn version_is_the_package_s() {
    let run = run(&["--version"]);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.out, format!("sted {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_exits_with_2_and_says_why() {
    for (arguments, says) in [
        (&["chekc", "x"][..], "'check'"),
        (&["check"], "<CONF>"),
        (&["check", "a", "b"], "unexpected argument 'b'"),
        (&["-v", "-q", "check", "a"], "cannot be used with"),
        (&[], "Usage: sted"),
    ] {
        let run = run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}: {run:?}");
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn check_prints_what_a_file_comes_to() {
    for name in ["reference", "quickstart", "lab", "compare-2003", "figure-4"] {
        let path = format!("conf/{name}.toml");
        let run = run(&["check", &path]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{path}");
        let printed = Conf::parse(&run.out, "printed").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Ok(printed), Conf::parse(&read(&path), &path), "{path}");
    }
}

#[test]
fn check_of_what_it_printed_prints_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("effective.toml");
    let first = run(&["check", "conf/quickstart.toml"]).out;
    fs::write(&path, &first).expect("written");
    let again = run(&["check", path.to_str().expect("a UTF-8 path")]).out;
    let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&again), body(&first), "all but the line that names the file");
    assert!(body(&first).len() > 100);
}

#[test]
fn check_names_every_mistake_on_stderr() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("bad.toml"),
        "[lab]\n[politeness]\ndelay = \"1\"\ndealy_max = \"1s\"\n[store]\ngzip_level = 99\n",
    )
    .expect("written");
    let output = sted(&["check", "bad.toml"]).current_dir(folder.path()).output();
    let run = Run::of(output.expect("the program starts"));
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    golden("check-bad.txt", &run.err);
}

#[cfg(feature = "study")]
#[test]
fn files_that_can_not_be_read_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("written");
    };
    write("latin.toml", b"[job]\nname = \"\xfc\"\n");
    write("huge.toml", &vec![b'#'; (4 << 20) + 1]);
    write("seeds.toml", b"[lab]\n[job]\nseeds_file = \"none-such\"\n");
    write("folder.toml", b"[lab]\n[tls]\nroots_file = \".\"\n");
    write("table.toml", b"[lab]\n[quality]\nsource = \"file\"\nfile = \"q\"\n");
    write("graph.toml", b"[compare]\n[web]\npreset = \"2003\"\ngraph = \"g\"\n");
    for (name, says) in [
        ("missing.toml", "missing.toml: No such file"),
        (".", ".: is a directory, not a regular file"),
        ("latin.toml", "latin.toml: is not valid UTF-8"),
        ("huge.toml", "huge.toml: is longer than 4194304 bytes"),
        ("seeds.toml", "seeds.toml: job.seeds_file: cannot open none-such: No such file"),
        ("folder.toml", "folder.toml: tls.roots_file: cannot open .: is a directory"),
        ("table.toml", "table.toml: quality.file: cannot open q: No such file"),
        ("graph.toml", "graph.toml: web.graph: cannot open g/dst.u32: No such file"),
    ] {
        for command in ["check", "crawl"] {
            // A comparison is not crawled, whatever its files.
            if (command, name) == ("crawl", "graph.toml") {
                continue;
            }
            let output = sted(&[command, name]).current_dir(folder.path()).output();
            let run = Run::of(output.expect("the program starts"));
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{name}: {}", run.err);
            assert!(run.err.contains(says), "{command} {name}: {}", run.err);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 6, "nothing was begun");
}

/// A comparison ignores robots.txt, because its web is synthetic: it must never reach the open web.
#[cfg(feature = "study")]
#[test]
fn a_comparison_is_not_crawled() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("study.toml"), "[compare]\n").expect("written");
    for command in ["crawl", "web"] {
        let output = sted(&[command, "study.toml"]).current_dir(folder.path()).output();
        let run = Run::of(output.expect("the program starts"));
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command}");
        assert!(run.err.contains("no [lab]"), "{command}: {}", run.err);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing was begun");
}

/// The crawler alone does not list the study's commands, but recognises them; it refuses to crawl a
/// lab.
#[cfg(not(feature = "study"))]
#[test]
fn what_needs_the_study_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("lab.toml"), "[lab]\n[web]\npreset = \"bench\"\n")
        .expect("written");
    for arguments in [
        &["crawl", "lab.toml"][..],
        &["web", "lab.toml", "--ports=7001,7002"],
        &["web"],
        &["compare", "--help"],
        &["-v", "cache", "a", "b"],
        &["profile", "--flame", "-vv", "lab.toml"],
    ] {
        let output = sted(arguments).current_dir(folder.path()).output();
        let run = Run::of(output.expect("the program starts"));
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.err.contains("built without the study"), "{arguments:?}: {}", run.err);
        assert!(run.err.contains("cargo build --release"), "{arguments:?}: {}", run.err);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing was begun");
    for arguments in [&["--help"][..], &["-h"]] {
        let help = run(arguments);
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""), "{arguments:?}");
        let lists = |command: &str| {
            help.out.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")))
        };
        assert!(lists("crawl") && lists("check"), "{}", help.out);
        for command in ["cache", "compare", "profile", "web"] {
            assert!(!lists(command), "{command} is in {}", help.out);
        }
    }
    golden("help-audit.txt", &run(&["audit", "--help"]).out);
    golden("help-crawl.txt", &run(&["crawl", "--help"]).out);
    golden("help-check.txt", &run(&["check", "--help"]).out);
    let output = sted(&["check", "lab.toml"]).current_dir(folder.path()).output();
    let checked = Run::of(output.expect("the program starts"));
    assert_eq!(checked.code, Some(0));
    assert!(checked.out.contains("# Crawls: nothing: this binary was built without the lab"));
}

#[test]
fn a_closed_pipe_is_no_fault() {
    let mut child = sted(&["check", "conf/reference.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_reported() {
    // Writing to this device fails as on a full disk.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
    let output = sted(&["check", "conf/reference.toml"]).stdout(full).output();
    let run = Run::of(output.expect("the program starts"));
    assert_eq!(run.code, Some(3));
    assert!(run.err.contains("cannot write to stdout"), "{}", run.err);
}

#[test]
fn readme_lists_the_exit_codes() {
    let readme = read("README.md");
    let listed: Vec<&str> = readme
        .lines()
        .skip_while(|line| *line != "### Exit codes")
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let known: Vec<String> =
        Exit::ALL.iter().map(|exit| format!("| {} | {} |", exit.code(), exit.meaning())).collect();
    assert_eq!(listed, known);
}
