//! Tests with real programs: small scripts of the shell and of sed.

use super::answer::{Mistakes, read};
use super::*;
use crate::ground::quality::Quality;
use mio::{Poll, Token, Waker};
use std::fs;
use std::path::Path;

/// Answers each page with 1.5, and its URL.
const SED: &str = r#"s/^{"id":\([0-9]*\),"url":\("[^"]*"\).*/{"id":\1,"quality":1.5,"of":\2}/p"#;

struct Stand {
    poll: Poll,
    scorer: Scorer,
}

fn settings(command: &[&str], timeout_ms: u64) -> Settings {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    Settings { command, timeout: Duration::from_millis(timeout_ms) }
}

impl Stand {
    fn start(command: &[&str], timeout_ms: u64) -> Self {
        let poll = Poll::new().expect("a poller");
        let waker = Arc::new(Waker::new(poll.registry(), Token(7)).expect("a waker"));
        let scorer = Scorer::start(&settings(command, timeout_ms), waker).expect("it starts");
        Self { poll, scorer }
    }

    fn shell(script: &str, timeout_ms: u64) -> Self {
        Self::start(&["sh", "-c", script], timeout_ms)
    }

    fn ask(&mut self, id: u64, text: &str) {
        let url = format!("http://a.test/{}", "x".repeat(1_000)).into();
        let media_type = "text/html".into();
        let text = text.to_owned();
        self.scorer.score(Box::new(ScoreRequest { id: ScoreId(id), url, media_type, text }));
    }

    /// Waits until there are `count` answers, ten seconds at most.
    fn answers(&mut self, count: usize) -> Vec<Scored> {
        let mut answers = Vec::new();
        let until = Instant::now() + Duration::from_secs(10);
        let mut events = Events::with_capacity(8);
        while answers.len() < count && Instant::now() < until {
            self.poll.poll(&mut events, Some(Duration::from_millis(100))).expect("polls");
            self.scorer.drain(|answer| answers.push(answer));
        }
        answers
    }
}

fn ok(id: u64, millionths: u64) -> Scored {
    Scored { id: Some(ScoreId(id)), quality: Ok(Quality::from_millionths(millionths)) }
}

/// More text than pipes hold, in both directions: neither side waits for the other.
#[test]
fn pages_are_written_without_waiting_for_answers() {
    let mut stand = Stand::start(&["sed", "-un", SED], 60_000);
    let text = "<p>\u{e9}\"\n".repeat(1_000);
    for id in 0..200 {
        stand.ask(id, &text);
    }
    let expected: Vec<Scored> = (0..200).map(|id| ok(id, 1_500_000)).collect();
    assert!(stand.answers(200) == expected);
}

#[test]
fn lines_that_are_no_answers() {
    let mut mistakes = Mistakes::default();
    let invalid =
        |id: Option<u64>| Scored { id: id.map(ScoreId), quality: Err(ScoreFailure::Invalid) };
    for (line, expected) in [
        (r#"{"id":7,"quality":1.25}"#, ok(7, 1_250_000)),
        (r#" { "quality" : 0, "id" : 1, "why": "x" }"#, ok(1, 0)),
        (r#"{"id":7,"quality":1000000}"#, ok(7, 1_000_000_000_000)),
        (r#"{"id":7,"quality":1000001}"#, invalid(Some(7))),
        (r#"{"id":7,"quality":-1}"#, invalid(Some(7))),
        (r#"{"id":7,"quality":"1"}"#, invalid(Some(7))),
        (r#"{"id":7,"quality":null}"#, invalid(Some(7))),
        (r#"{"id":7}"#, invalid(None)),
        (r#"{"id":-7,"quality":1}"#, invalid(None)),
        (r#"{"id":7,"quality":NaN}"#, invalid(None)),
        ("loading the model", invalid(None)),
    ] {
        assert_eq!(read(line.as_bytes(), &mut mistakes), expected, "{line}");
    }
    assert_eq!(read(b"\xff\xfe", &mut mistakes), invalid(None));
}

/// A program that ends is started again; what it had read is answered as failed.
#[test]
fn a_program_that_ends_is_started_again() {
    let script = r#"read page; echo '{"id":1,"quality":1}'; read page; exit 3"#;
    let mut stand = Stand::shell(script, 60_000);
    stand.ask(1, "");
    assert_eq!(stand.answers(1), [ok(1, 1_000_000)]);
    stand.ask(2, "");
    assert_eq!(stand.answers(1), [Scored::failed(ScoreId(2), ScoreFailure::Ended)]);
    stand.ask(1, "");
    assert_eq!(stand.answers(1), [ok(1, 1_000_000)], "by its next life");
}

/// A page that nobody waits for any more is not written.
#[test]
fn pages_that_are_overdue_are_dropped() {
    let mut stand = Stand::shell(&format!("sleep 1; exec sed -un '{SED}'"), 300);
    // The pipe takes the first; the others are longer than it.
    stand.ask(1, "");
    let long = "x".repeat(100_000);
    (2..20).for_each(|id| stand.ask(id, &long));
    thread::sleep(Duration::from_millis(500));
    stand.ask(20, "");
    let mut answers = stand.answers(2);
    thread::sleep(Duration::from_secs(1));
    stand.scorer.drain(|answer| answers.push(answer));
    let ids: Vec<u64> = answers.iter().filter_map(|it| Some(it.id?.0)).collect();
    assert!(ids.contains(&1) && ids.len() < 10, "{ids:?}");
}

#[test]
fn what_can_not_be_started_is_named() {
    let poll = Poll::new().expect("a poller");
    let waker = Arc::new(Waker::new(poll.registry(), Token(7)).expect("a waker"));
    let error = Scorer::start(&settings(&["/no/such/program", "x"], 1_000), waker).err();
    let text = error.expect("it is not there").to_string();
    assert!(text.starts_with("can't start \"/no/such/program\": No such file"), "{text}");
}

/// Returns the descriptors of this process that its children get, whatever opened them: those that
/// it got itself.
fn passed_on() -> Vec<String> {
    let listed = fs::read_dir("/proc/self/fdinfo").expect("Linux");
    let names = listed.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("a number")).collect();
    names.retain(|name| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let close_on_exec = 0o2_000_000;
        flags.is_some_and(|flags| {
            u64::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & close_on_exec == 0)
        })
    });
    names
}

/// Waits until a file has `lines` lines, ten seconds at most. Returns its text.
fn await_lines(file: &Path, lines: usize) -> String {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= lines || Instant::now() > until {
            return text;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The program has no descriptors of the crawl but its pipes.
#[test]
fn the_program_has_three_descriptors() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("descriptors");
    let (mut expected, _own) = (passed_on(), fs::File::open(folder.path()).expect("opened"));
    let _stand = Stand::shell(&format!("exec ls /proc/self/fd > {}", file.display()), 1_000);
    let listed = await_lines(&file, 4);
    // The last one is the folder that is listed.
    expected.extend(["0", "1", "2", "3"].map(str::to_owned));
    let is_expected = |name: &str| expected.iter().any(|other| other == name);
    assert!(listed.lines().count() > 3, "{listed}");
    assert!(listed.lines().all(is_expected), "{listed} of {expected:?}");
}

#[test]
fn the_program_is_not_outlived_by_its_children() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("child");
    let script = format!("sleep 600 & echo $! > {}; cat > /dev/null", file.display());
    let stand = Stand::shell(&script, 1_000);
    let pid = await_lines(&file, 1);
    drop(stand);
    let stat = || fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // It may be left as a zombie for its new parent.
    let has_ended = || stat().map_or(true, |stat| stat.contains(") Z "));
    let until = Instant::now() + Duration::from_secs(10);
    while !has_ended() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(has_ended(), "{pid} is alive");
}
