//! The crawl command as a process: how it ends, what it refuses, what it leaves behind.

use crate::util::{Run, sted};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use sted::store::log;

/// A slow lab: the crawl can be stopped in the middle.
const SLOW: &str = r#"
[job]
directory = "DIR/job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[report]
progress_period = "1s"
[lab]
directory = "DIR/lab"
[web]
preset = "plain"
hosts = 20
seeds = 20
pages = 4000
think_time = "40ms"
"#;

pub(crate) fn write_conf(folder: &Path, more: &str) -> String {
    let text = SLOW.replace("DIR", folder.to_str().expect("UTF-8")) + more;
    let path = folder.join("crawl.toml");
    fs::write(&path, text).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}

/// Starts a crawl and waits until it has fetched something.
pub(crate) fn start(conf: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = sted(&["crawl", conf]);
    let hear_hangups = || {
        // SAFETY: a signal's default action needs no code of this process.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the call is safe between fork and exec (signal-safety(7)). The crawler leaves SIGHUP
    // ignored if it was so, and the tests may run under nohup.
    unsafe { command.pre_exec(hear_hangups) };
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    let start = Instant::now();
    let mut line = String::new();
    while line.is_empty() || line.contains(" 0 pages") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("UTF-8") > 0, "the crawl ended by itself");
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is fetched: {line}");
    }
    (child, lines)
}

pub(crate) fn signal(child: &Child, signal: i32) {
    let id = i32::try_from(child.id()).expect("a process id");
    // SAFETY: the process is this process's child and has not been waited for, so the id is its
    // own.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0, "the child runs");
}

/// Checks that a job directory is complete: every file has its final name, every log line parses.
fn check_whole(job: &Path) -> usize {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(job.join(folder)).expect("a folder");
        entries.map(|entry| entry.expect("readable").file_name().into_string().unwrap()).collect()
    };
    for name in names("warc").into_iter().chain(names("index")) {
        assert!(!name.ends_with(".open"), "{name} was not settled");
    }
    let text = fs::read_to_string(job.join("crawl.log")).expect("the log");
    text.lines().for_each(|line| {
        log::parse(line).unwrap_or_else(|bad| panic!("{bad}: {line}"));
    });
    text.lines().count()
}

#[test]
fn a_signal_finishes_what_is_under_way() {
    for which in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let folder = tempfile::tempdir().expect("a folder");
        let (child, _lines) = start(&write_conf(folder.path(), ""));
        signal(&child, which);
        let run = Run::of(child.wait_with_output().expect("it ends"));
        assert_eq!(run.code, Some(11), "{}", run.out);
        assert!(run.out.contains("interrupted"), "{}", run.out);
        assert!(check_whole(&folder.path().join("job")) > 0);
    }
}

#[test]
fn a_job_is_one_process_and_is_not_begun_by_who_cannot_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = write_conf(folder.path(), "");
    let (child, _lines) = start(&conf);
    let second = Run::of(sted(&["crawl", &conf]).output().expect("starts"));
    assert_eq!(second.code, Some(5), "{}", second.err);
    assert!(second.err.contains(&child.id().to_string()), "names the process: {}", second.err);
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(11));
    let log = || fs::read(folder.path().join("job/crawl.log")).expect("the log");
    let before = log();
    let refused = |conf: &str, why: &str| {
        let again = Run::of(sted(&["crawl", conf]).output().expect("starts"));
        assert_eq!(again.code, Some(5), "{}", again.err);
        assert!(again.err.contains(why), "{}", again.err);
        assert_eq!(log(), before, "an earlier crawl is not touched");
    };
    refused(&write_conf(folder.path(), "[state]\nkeep = false"), "state.keep");
    let other_key = write_conf(folder.path(), "[url]\ndrop_www = true");
    refused(&other_key, "url.drop_www was false and is now true");
    let other_name = write_conf(folder.path(), "[store]\nprefix = \"other\"");
    refused(&other_name, "store.prefix was \"sted\" and is now \"other\"");
    fs::remove_dir_all(folder.path().join("job/state")).expect("it was kept");
    refused(&write_conf(folder.path(), ""), "without a checkpoint; resume it");
}

#[test]
fn budgets_have_their_exit_codes() {
    for (limit, code, why, resume) in [
        ("[limits]\npages_max = 50", 14, "pages", "raise limits.pages_max: sted crawl"),
        ("[limits]\nbytes_max = \"200KiB\"", 14, "bytes", "raise limits.bytes_max: sted crawl"),
        ("[limits]\ntime_max = \"1s\"", 15, "time", "sted crawl"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = write_conf(folder.path(), limit);
        let run = Run::of(sted(&["crawl", &conf]).output().expect("starts"));
        assert_eq!(run.code, Some(code), "{why}: {}{}", run.out, run.err);
        assert!(run.out.contains("URLs left"), "{why}: there is more to fetch: {}", run.out);
        let resume = format!("to resume it          {resume}");
        assert!(run.out.contains(&resume), "{resume}: {}", run.out);
        check_whole(&folder.path().join("job"));
        if why == "pages" {
            let text = fs::read_to_string(folder.path().join("job/summary.json")).expect("JSON");
            let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(summary["counts"]["pages"], 50, "and not one more");
        }
    }
}

/// Answers each request on this port while the listener lives, with the status and the body that
/// `says` returns for its target; closes the connection if it returns `None`.
fn serve(listener: TcpListener, says: impl Fn(&str) -> Option<(u16, String)> + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4_096];
            let len = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..len]);
            let target = request.split(' ').nth(1).unwrap_or_default();
            let Some((status, body)) = says(target) else { continue };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
}

/// A crawl that could not fetch its seed exits with its own code, reports the seed with a cause and
/// a fix, and fetches it with `--retry-given-up` once the server is back.
#[test]
fn a_failed_seed_is_reported_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let text = format!(
        "[job]\ndirectory = \"{}/job\"\nseeds = [\"http://{address}/\"]\n[identity]\n\
         contact = \"crawler@sted.dev\"\n[scope]\nspan = \"host\"\n\
         [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n\
         [retries]\nserver_failures_max = 1\n[politeness]\ndelay = \"0s\"\ndelay_factor = 0\n",
        folder.path().display()
    );
    let conf = folder.path().join("crawl.toml");
    fs::write(&conf, text).expect("writable");
    let conf = conf.to_str().expect("UTF-8");
    let ends = |more: &[&str]| {
        let run = Run::of(sted(&[&["crawl", conf], more].concat()).output().expect("it starts"));
        (run.code.expect("no signal"), run.out + &run.err)
    };
    let (code, output) = ends(&[]);
    let seed = format!("http://{address}/: connect-refused; check scheme, host and port");
    assert!(code == 12 && output.contains(&seed), "{code}\n{output}");
    assert!(output.contains("1 URLs: connect-refused, never answered"), "{output}");
    assert_eq!(ends(&[]).0, 12, "a second start changes nothing");
    let listener = TcpListener::bind(address).expect("the port is free");
    serve(listener, |_| Some((200, "page".to_owned())));
    let (code, output) = ends(&["--retry-given-up"]);
    assert!(code == 0 && !output.contains("failed seeds"), "{code}\n{output}");
    assert_eq!(ends(&[]).0, 0);
}

/// A server whose robots.txt answers with an error loses all its URLs: the crawl exits with its own
/// code, reports the server with the cause, and fetches the URLs with `--retry-given-up` once the
/// file is back. A server that never answered is only listed.
#[test]
fn a_server_without_its_robots_is_reported_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let bind = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let [seed, ill, mute] = [bind(), bind(), bind()];
    let [at, ill_at, mute_at] =
        [&seed, &ill, &mute].map(|listener| listener.local_addr().expect("bound"));
    let is_well = Arc::new(AtomicBool::new(false));
    let links = |at: SocketAddr, count: usize| -> String {
        (0..count).map(|number| format!("<a href=\"http://{at}/{number}\">x</a>")).collect()
    };
    let page = links(ill_at, 20) + &links(mute_at, 3);
    serve(seed, move |target| match target {
        "/robots.txt" => Some((404, String::new())),
        _ => Some((200, page.clone())),
    });
    let healed = Arc::clone(&is_well);
    serve(ill, move |target| match target {
        "/robots.txt" if healed.load(Relaxed) => Some((404, String::new())),
        "/robots.txt" => Some((503, String::new())),
        _ => Some((200, "page".to_owned())),
    });
    let healed = Arc::clone(&is_well);
    serve(mute, move |_| healed.load(Relaxed).then(|| (200, "page".to_owned())));
    let text = format!(
        "[job]\ndirectory = \"{}/job\"\nseeds = [\"http://{at}/\"]\n[identity]\n\
         contact = \"crawler@sted.dev\"\n[scope]\nspan = \"host\"\n\
         [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n\
         [retries]\nretries_max = 1\nretry_wait = \"1s\"\nretry_factor = 1\n\
         [politeness]\nrobots_retry_wait = \"1s\"\ndelay = \"0s\"\ndelay_factor = 0\n\
         address_delay = \"0s\"\n",
        folder.path().display()
    );
    let conf = folder.path().join("crawl.toml");
    fs::write(&conf, text).expect("writable");
    let conf = conf.to_str().expect("UTF-8");
    let ends = |more: &[&str]| {
        let run = Run::of(sted(&[&["crawl", conf], more].concat()).output().expect("it starts"));
        (run.code.expect("no signal"), run.out + &run.err)
    };
    let (code, output) = ends(&[]);
    assert_eq!(code, 12, "{output}");
    let ill = format!("http://{ill_at}: 20 URLs: robots-unreachable; robots.txt can't be");
    let mute = format!("http://{mute_at}: 3 URLs: robots-unreachable, never answered; robots");
    let all = "23 URLs; 1 of the servers had answered; retry with --retry-given-up";
    assert!([&*ill, &mute, all].iter().all(|line| output.contains(line)), "{output}");
    let (code, output) = ends(&["--retry-given-up"]);
    assert!(
        code == 12 && output.contains(all),
        "it is lost again, and counted once: {code}\n{output}"
    );
    is_well.store(true, Relaxed);
    assert_eq!(ends(&[]).0, 12, "a second start changes nothing");
    let (code, output) = ends(&["--retry-given-up"]);
    assert!(code == 0 && !output.contains("lost with servers"), "{code}\n{output}");
    let log = fs::read_to_string(folder.path().join("job/crawl.log")).expect("the log");
    let pages = log.lines().filter(|line| line.contains(" 200 ")).count();
    // The seed's page, those of both servers, and the robots.txt of the server that has none.
    assert_eq!(pages, 1 + 23 + 1, "{log}");
}
