//! What operators and their machines do to a crawl: signals, streams, limits, unusual input files.

use crate::crawl::{signal, start, write_conf};
use crate::util::{Run, sted};
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Writes the configuration of a crawl of the lab that ends soon by itself.
pub(crate) fn short(folder: &Path, more: &str) -> String {
    let conf = write_conf(folder, more);
    let text = fs::read_to_string(&conf).expect("it was written");
    let text = text.replace("pages = 4000", "pages = 60").replace("40ms", "1ms");
    fs::write(&conf, text).expect("written");
    conf
}

/// A crawl continues if standard error is full, closed, or a pipe without a reader.
#[test]
fn nobody_needs_to_read_standard_error() {
    let streams: [fn() -> Stdio; 2] = [
        || OpenOptions::new().write(true).open("/dev/full").expect("it is there").into(),
        || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            writer.into()
        },
    ];
    for stream in streams {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = short(folder.path(), "");
        let output = sted(&["-vvv", "crawl", &conf]).stderr(stream()).output();
        let run = Run::of(output.expect("starts"));
        assert_eq!(run.code, Some(0), "{}", run.out);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" crawl \"$1\" 2>&-", env!("CARGO_BIN_EXE_sted"), &conf]);
    let run = Run::of(shell.output().expect("starts"));
    assert_eq!(run.code, Some(0), "{}", run.out);
}

/// A reader that doesn't read loses lines, but doesn't stall the crawl: a pipe holds 64 KiB, and
/// this crawl prints more.
#[test]
fn a_reader_that_does_not_read_stalls_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = sted(&["-vvv", "crawl", &conf]);
    let child = command.stdout(Stdio::piped()).stderr(writer).spawn().expect("starts");
    drop(command);
    let run = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!(run.code, Some(0), "{}", run.out);
    drop(reader);
}

#[test]
fn quiet_is_quiet() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "");
    let run = Run::of(sted(&["-q", "crawl", &conf]).output().expect("starts"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

/// Under nohup, a hang-up signal doesn't stop the crawl.
#[test]
fn a_hang_up_that_was_ignored_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = write_conf(folder.path(), "");
    let mut shell = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" crawl \"$1\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_sted"), &conf]);
    let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    while !folder.path().join("job/crawl.log").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    signal(&child, libc::SIGHUP);
    thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().expect("a child of ours").is_none(), "it goes on");
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(11));
}

/// A signal is handled while the seeds are still being read.
#[test]
fn a_signal_is_heard_from_the_first_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let seeds: String = (0..300_000).map(|n| format!("http://h{n}.test/\n")).collect();
    let file = folder.path().join("seeds");
    fs::write(&file, seeds).expect("written");
    let conf = write_conf(folder.path(), "");
    let text = fs::read_to_string(&conf).expect("it was written");
    let named = format!("[job]\nseeds_file = {file:?}\n");
    fs::write(&conf, text.replacen("[job]\n", &named, 1)).expect("written");
    let mut command = sted(&["crawl", &conf]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // The lock is taken before anything is read.
    while !folder.path().join("job/lock").exists() {
        thread::sleep(Duration::from_millis(1));
    }
    signal(&child, libc::SIGTERM);
    let run = Run::of(child.wait_with_output().expect("it ends"));
    assert_eq!(run.code, Some(11), "{}{}", run.out, run.err);
}

/// A hundred thousand lines that aren't URLs are reported as ten lines and a count, in `check` as
/// in `crawl`.
#[test]
fn junk_among_the_seeds_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let junk: String = (0..100_000).map(|n| format!("no URL at all {n}\n")).collect();
    let file = folder.path().join("seeds");
    fs::write(&file, format!("http://h0000.test/\n{junk}")).expect("written");
    // Nothing listens at the seed's port: the time limit ends the crawl.
    let conf = short(folder.path(), "[limits]\ntime_max = \"1s\"\n");
    let text = fs::read_to_string(&conf).expect("it was written");
    let named = format!("[job]\nseeds_file = {file:?}\n");
    fs::write(&conf, text.replacen("[job]\n", &named, 1)).expect("written");
    for (command, code) in [("check", 0), ("crawl", 15)] {
        let run = Run::of(sted(&[command, &conf]).output().expect("starts"));
        assert_eq!(run.code, Some(code), "{command}: {}", run.err);
        assert!(run.err.contains("99990 more lines have no seed"), "{command}: {}", run.err);
        assert!(run.err.len() < 10_000, "{command}: {} bytes", run.err.len());
    }
}

/// An input that is not a regular file is refused, not read forever.
#[test]
fn devices_and_pipes_are_no_input_files() {
    let open = "[identity]\ncontact = \"me@a.org\"\n[limits]\npages_max = 9\n[job]\n";
    let seeds = "seeds = [\"http://a.test/\"]\n";
    for text in [
        format!("{open}seeds_file = \"/dev/zero\"\n"),
        format!("{open}{seeds}[names]\nhosts_file = \"/dev/zero\"\n"),
        format!("{open}{seeds}[tls]\nroots_file = \"/dev/zero\"\n"),
        format!("{open}{seeds}[quality]\nsource = \"file\"\nfile = \"/dev/zero\"\n"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("odd.toml"), &text).expect("written");
        for command in ["check", "crawl"] {
            let output = sted(&[command, "odd.toml"]).current_dir(folder.path()).output();
            let run = Run::of(output.expect("starts"));
            assert_eq!(run.code, Some(2), "{command} {text}");
            assert!(run.err.contains("not a regular file"), "{command} {text}: {}", run.err);
        }
    }
    let run = Run::of(sted(&["check", "/dev/zero"]).output().expect("starts"));
    assert_eq!(run.code, Some(2), "{}", run.err);
}

/// Control characters of a file never reach the terminal.
#[test]
fn control_characters_are_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "\"\\u001b[31mred\" = 1\n[job]\n\"na\\u001b]0;x\\u0007me\" = \"\\u009b2J\"\n";
    fs::write(folder.path().join("odd.toml"), text).expect("written");
    let output = sted(&["check", "odd.toml"]).current_dir(folder.path()).output();
    let run = Run::of(output.expect("starts"));
    assert_eq!(run.code, Some(2), "{}", run.err);
    let odd = run.err.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(odd, None, "{:?}", run.err);
    assert!(run.err.contains("u{1b}"), "{}", run.err);
}

/// A limit on the size of files is handled like a full disk: exit code 3 and the file's name, no
/// signal.
#[test]
fn a_limit_on_files_is_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "[disk]\nfull = \"stop\"\n");
    let mut shell = Command::new("sh");
    let script = "ulimit -f 16; exec \"$0\" crawl \"$1\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_sted"), &conf]);
    shell.stderr(File::create(folder.path().join("err")).expect("created"));
    let run = Run::of(shell.output().expect("starts"));
    let err = fs::read_to_string(folder.path().join("err")).expect("UTF-8");
    assert_eq!(run.code, Some(3), "{}{err}", run.out);
    assert!(err.contains(".open") || err.contains("crawl.log") || err.contains("state/"), "{err}");
}

/// With `--log-json` each line on standard error is a JSON object: messages, progress, and the
/// reason why a command failed.
#[test]
fn the_log_is_json_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "");
    let crawl = Run::of(sted(&["-v", "--log-json", "crawl", &conf]).output().expect("starts"));
    assert_eq!(crawl.code, Some(0), "{}", crawl.err);
    let failure = Run::of(sted(&["--log-json", "crawl", "no.toml"]).output().expect("starts"));
    for (run, level) in [(crawl, "INFO"), (failure, "ERROR")] {
        let lines: Vec<serde_json::Value> = run
            .err
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        assert!(lines.iter().any(|line| line["level"] == level), "{lines:?}");
        let has =
            |line: &serde_json::Value| line["time"].is_string() && line["message"].is_string();
        assert!(lines.iter().all(has), "{lines:?}");
    }
}

/// The short crawl of the other tests here does run.
#[test]
fn a_crawl_writes_its_progress_to_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, _lines) = start(&write_conf(folder.path(), ""));
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(11));
}
