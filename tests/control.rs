//! The control socket of a running crawl: what it answers, whom it refuses, and that no client
//! harms the crawl.

use crate::crawl::{signal, start, write_conf};
use crate::util::{Run, lacks, run, sted};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Sends raw bytes to the socket and returns all that comes back.
fn exchange(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("the crawl listens");
    stream.set_read_timeout(Some(Duration::from_secs(40))).expect("settable");
    // The server may refuse a request before it has all of it.
    let _ = stream.write_all(request);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

pub(crate) fn get(socket: &Path, path: &str) -> String {
    exchange(socket, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
}

fn post(socket: &Path, body: &str) -> String {
    let head = format!("POST /commands HTTP/1.1\r\nHost: x\r\nContent-Length: {}", body.len());
    exchange(socket, format!("{head}\r\n\r\n{body}").as_bytes())
}

/// Returns the JSON after the head of a reply.
fn json(reply: &str) -> Value {
    let body = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no body in {reply}")).1;
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

fn status(socket: &Path) -> Value {
    json(&get(socket, "/status"))
}

/// Stops a crawl by its socket, and returns what it printed.
fn stop(child: Child, job: &str) -> Run {
    let stopped = run(&["ctl", job, "stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.err);
    Run::of(child.wait_with_output().expect("it ends"))
}

/// Writes the configuration of a crawl that doesn't end by itself during a test.
pub(crate) fn long(folder: &Path) -> String {
    let conf = write_conf(folder, "");
    let text = fs::read_to_string(&conf).expect("it was written");
    fs::write(&conf, text.replace("pages = 4000", "pages = 100000")).expect("writable");
    conf
}

fn job_of(folder: &Path) -> (String, PathBuf) {
    let job = folder.join("job");
    (job.to_str().expect("UTF-8").to_owned(), job.join("control.sock"))
}

/// The routes answer, the commands do the same as the requests, and a crawl that has ended leaves
/// no socket.
#[test]
fn a_crawl_answers_and_obeys() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = long(folder.path());
    let (job, socket) = job_of(folder.path());
    let missing = run(&["status", &job]);
    assert_eq!(missing.code, Some(5), "{}", missing.err);
    let (child, _lines) = start(&conf);
    let facts = fs::metadata(&socket).expect("a socket");
    assert!(facts.file_type().is_socket());
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    assert!(status(&socket)["pages"].as_u64() > Some(0));
    let usage = get(&socket, "/");
    assert!(usage.contains("200 OK") && usage.contains("curl --unix-socket"), "{usage}");
    for (reply, code, says) in [
        (get(&socket, "/nothing"), "404", "no route"),
        (get(&socket, "/commands"), "405", "allow: POST"),
        (post(&socket, "{\"verb\":\"paus\"}"), "400", "unknown variant"),
        (post(&socket, "{\"verb\":\"pause\",\"target\":\"a b\"}"), "400", "is no target"),
        (post(&socket, "nothing"), "400", "no command"),
        (post(&socket, &" ".repeat(2 << 20)), "413", "1048576"),
        (post(&socket, "{\"verb\":\"resume\",\"target\":\"host:a.test\"}"), "409", "not paused"),
    ] {
        assert!(reply.starts_with(&format!("HTTP/1.1 {code}")), "{code} {says}: {reply}");
        assert!(reply.contains(says), "{code} {says}: {reply}");
    }
    let done = json(&post(&socket, "{\"verb\":\"pause\",\"target\":\"all\"}"));
    assert_eq!((done["done"].as_bool(), done["number"].as_u64()), (Some(true), Some(1)), "{done}");
    let pages = || status(&socket)["pages"].as_u64();
    thread::sleep(Duration::from_millis(500));
    let paused = pages();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(pages(), paused, "nothing is requested during a pause");
    for (arguments, code, says) in [
        (&["ctl", &conf, "resume"][..], 0, ""),
        (&["ctl", &job, "resume"], 7, "not paused"),
        (&["ctl", &job, "slow", "h0001.test", "30"], 2, "has no unit"),
        (&["ctl", &job, "block", "h?"], 2, "is no target"),
        (&["status", &conf], 0, ""),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{arguments:?}: {}", ran.err);
    }
    let start = Instant::now();
    while pages() == paused {
        assert!(start.elapsed() < Duration::from_secs(20), "the crawl goes on");
        thread::sleep(Duration::from_millis(100));
    }
    let text = fs::read_to_string(&conf).expect("it was written");
    fs::write(&conf, text + "[limits]\npages_max = 90000\n").expect("writable");
    let reloaded = run(&["ctl", &job, "reload"]);
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.err);
    assert!(reloaded.out.contains("limits.pages_max"), "{}", reloaded.out);
    assert!(status(&socket)["limits_left"]["pages"].as_u64() > Some(0));
    let again = run(&["ctl", &job, "reload"]);
    assert_eq!(again.code, Some(7), "{}", again.err);
    assert!(again.err.contains("no key has changed"), "{}", again.err);
    let mut watch = sted(&["status", &job, "--watch"]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    thread::sleep(Duration::from_millis(1_500));
    let ended = stop(child, &job);
    assert_eq!(ended.code, Some(11), "{}", ended.out);
    let watched = Run::of(watch.wait_with_output().expect("it ends with the crawl"));
    assert_eq!((watched.code, watched.err.as_str()), (Some(0), "the crawl has ended\n"));
    assert!(watched.out.matches("URLs wait on").count() >= 2, "{}", watched.out);
    assert!(!socket.exists());
    let gone = run(&["status", &conf]);
    assert_eq!(gone.code, Some(6), "{}", gone.err);
    assert!(gone.err.contains(&format!("start it with `sted crawl {conf}`")), "{}", gone.err);
}

/// Ten thousand requests that are wrong in some way, a client that never reads, and a hundred at
/// once: every one is answered or refused, and the crawl goes on with turns within their budgets.
#[test]
fn no_client_harms_the_crawl() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = long(folder.path());
    let (job, socket) = job_of(folder.path());
    let (child, _lines) = start(&conf);
    let mut silent = UnixStream::connect(&socket).expect("it listens");
    silent.write_all(b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut idle = UnixStream::connect(&socket).expect("it listens");
    thread::scope(|scope| {
        for seed in 0..20 {
            let socket = &socket;
            scope
                .spawn(move || (0..500).for_each(|n| _ = exchange(socket, &wrong(seed * 500 + n))));
        }
    });
    thread::scope(|scope| {
        for _ in 0..100 {
            let socket = &socket;
            scope.spawn(move || assert!(status(socket)["pages"].as_u64() > Some(0)));
        }
    });
    let mut text = String::new();
    silent.read_to_string(&mut text).expect("the reply was sent long ago");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    idle.set_read_timeout(Some(Duration::from_secs(40))).expect("settable");
    assert_eq!(idle.read(&mut [0]).expect("it is closed after 30 s"), 0);
    let ended = stop(child, &job);
    assert_eq!(ended.code, Some(11), "{}", ended.out);
    let summary = fs::read(folder.path().join("job/summary.json")).expect("written at the end");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    let turn = &summary["loop"]["largest_turn"]["budgets"];
    for budget in turn.as_object().expect("named budgets").values() {
        assert!(budget["units"].as_u64() <= budget["max"].as_u64(), "{turn}");
    }
    assert!(summary["loop"]["cpu"]["control_us"].as_u64() > Some(0), "its thread is counted");
}

/// Returns a request that is wrong; `n` chooses in which way.
fn wrong(n: usize) -> Vec<u8> {
    let good =
        b"POST /commands HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n{\"verb\":\"revive\"}";
    // A fixed sequence of bytes that look random.
    let noise = |at: usize| (n.wrapping_mul(2_654_435_761) ^ at.wrapping_mul(40_503)) as u8;
    match n % 8 {
        0 => (0..200).map(noise).chain(*b"\r\n\r\n").collect(),
        1 => {
            // Never the whole request, which would be right. It ends before the head does.
            let mut cut = good[..n / 8 % 50].to_vec();
            cut.extend(b"\0\r\n\r\n");
            cut
        }
        2 => format!("GET /{n} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes(),
        3 => b"DELETE /status HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        4 => {
            let filler = "a".repeat(100 + n % 7 * 10_000);
            format!("GET / HTTP/1.1\r\nHost: x\r\nX: {filler}\r\nBad Name: y\r\n\r\n").into_bytes()
        }
        5 => {
            let mut bytes = good.to_vec();
            let at = 60 + n / 8 % (good.len() - 60);
            bytes[at] = noise(n) | 0x80;
            bytes
        }
        6 => b"POST /commands HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        _ => format!("GET /status HTTP/{n}.1\r\n\r\n").into_bytes(),
    }
}

/// Other users can't connect, and are refused even if somebody opens the socket to them.
#[test]
fn other_users_are_refused() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return lacks("other_users_are_refused", "root, or setpriv");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let conf = long(folder.path());
    let (job, socket) = job_of(folder.path());
    let (child, _lines) = start(&conf);
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    open(folder.path(), 0o755);
    open(&folder.path().join("job"), 0o755);
    let other = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["curl", "-sS", "--unix-socket"]).arg(&socket);
        Run::of(command.arg("http://localhost/status").output().expect("starts"))
    };
    let refused = other();
    assert_eq!(refused.code, Some(7), "no connection: {}", refused.err);
    open(&socket, 0o666);
    let refused = other();
    assert_eq!(refused.code, Some(0), "{}", refused.err);
    assert!(refused.out.contains("may not control"), "{}", refused.out);
    assert_eq!(stop(child, &job).code, Some(11));
}

/// A directory may be deeper than the path of a socket is long, and the socket of a crawl that was
/// killed is replaced by the next run, but not by a second process.
#[test]
fn sockets_in_deep_directories_and_of_killed_crawls() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("d".repeat(80)).join("e".repeat(80));
    fs::create_dir_all(&deep).expect("a folder");
    let conf = long(&deep);
    let (job, socket) = job_of(&deep);
    assert!(job.len() > 160);
    let (mut child, _lines) = start(&conf);
    assert_eq!(run(&["status", &job]).code, Some(0));
    let second = Run::of(sted(&["crawl", &conf]).output().expect("starts"));
    assert_eq!(second.code, Some(5), "{}", second.err);
    assert_eq!(run(&["status", &job]).code, Some(0), "the first still answers");
    signal(&child, libc::SIGKILL);
    child.wait().expect("it ends");
    assert!(socket.exists(), "nobody could remove it");
    let dead = run(&["status", &job]);
    assert_eq!(dead.code, Some(6), "{}", dead.err);
    let (child, _lines) = start(&conf);
    assert_eq!(run(&["status", &job]).code, Some(0));
    assert_eq!(stop(child, &job).code, Some(11));
    assert!(!socket.exists());
}
