//! `sted why`: URLs of every fate, asked about while the crawl runs, after it was stopped, and
//! after it was killed: the answers are the same.

use crate::control::get;
use crate::crawl::signal;
use crate::util::{run, sted};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The links of the page `/` of `a.test`; `PORT` is that of the server.
const LINKS: &str = "
<a href=/page>1</a> <a href='/page?utm_source=x'>2</a> <a href=/gone>3</a> <a href=/busy>4</a>
<a href=/private/x>5</a> <a href=/r>6</a> <a href=/d1>7</a> <a href=/old.pdf>8</a>
<a href=http://elsewhere.test:PORT/>9</a> <a rel=nofollow href=/hidden>10</a>
<a href=/LONG>11</a>";

/// The number of links of the page `/` of `disk.test`: more than fit into memory, and more than its
/// queue may hold.
const MANY: usize = 12_500;

/// Answers requests on a connection by host and path, until the client closes it.
fn serve(stream: TcpStream, port: u16) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let mut stream = stream;
    while let Some(Ok(first)) = lines.next() {
        let mut host = String::new();
        for line in lines.by_ref() {
            let Ok(line) = line else { return };
            if line.is_empty() {
                break;
            }
            if let Some(name) = line.to_ascii_lowercase().strip_prefix("host: ") {
                host = name.split(':').next().expect("a part").to_owned();
            }
        }
        let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
        let (status, fields, body) = match reply(&host, &path, port) {
            Some(reply) => reply,
            None if host == "slow.test" => return thread::sleep(Duration::from_secs(60)),
            None => {
                let head = b"HTTP/1.1 200 X\r\nContent-Length: 9000\r\n\r\na part of the body";
                let _ = stream.write_all(head);
                return thread::sleep(Duration::from_secs(60));
            }
        };
        let text = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{fields}Content-Length: {}\r\n\r\n\
             {body}",
            body.len()
        );
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the status, the fields and the body of a reply; `None` if there is no whole one.
fn reply(host: &str, path: &str, port: u16) -> Option<(u16, &'static str, String)> {
    let page = |text: String| Some((200, "", text));
    let later = Some((503, "Retry-After: 50\r\n", String::new()));
    match (host, path) {
        ("a.test", "/robots.txt") => {
            let rules = "User-agent: *\n\nAllow: /private/y\nDisallow: /private/\n";
            page(format!("{rules}Content-Usage: /page train-ai=n, search=y\nLicense: /terms\n"))
        }
        ("rob.test", "/robots.txt") => Some((500, "", String::new())),
        (_, "/robots.txt") => Some((404, "", String::new())),
        ("slow.test", "/") | ("m.test", "/") => None,
        ("a.test", "/") => {
            page(LINKS.replace("PORT", &port.to_string()).replace("LONG", &"y".repeat(200)))
        }
        ("a.test", "/page" | "/target") => page("a page".to_owned()),
        ("a.test", "/d2") => page("<a href=/d3>deep</a>".to_owned()),
        ("a.test", "/d1") => page("<a href=/d2>deeper</a>".to_owned()),
        ("a.test", "/r") => Some((302, "Location: /target\r\n", String::new())),
        ("a.test", "/busy") => Some((503, "", String::new())),
        ("w.test" | "p.test" | "blk.test", "/") => {
            page((0..10).map(|n| format!("<a href=/{n}>{n}</a>\n")).collect())
        }
        ("disk.test", "/") => {
            let rest = "abcdefghij".repeat(7);
            page((0..MANY).map(|n| format!("<a href=/{n}/{rest}>{n}</a>\n")).collect())
        }
        ("w.test" | "p.test" | "blk.test" | "disk.test", _) => later,
        _ => Some((404, "", String::new())),
    }
}

/// A crawl of this server with URLs of every fate.
struct Stand {
    folder: tempfile::TempDir,
    conf: String,
    port: u16,
    /// A port at which nothing listens.
    closed: u16,
}

impl Stand {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        // The threads end with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream, port));
            }
        });
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
        let closed = closed.local_addr().expect("bound").port();
        let folder = tempfile::tempdir().expect("a folder");
        let hosts = ["a", "w", "p", "blk", "disk", "m", "slow", "rob", "refuse", "elsewhere"];
        let names: String = hosts.map(|host| format!("127.0.0.1 {host}.test\n")).concat();
        let names = names + "10.1.2.3 private.test\n";
        fs::write(folder.path().join("hosts"), names).expect("written");
        let seeded = hosts[..8].iter().chain(&["private"]);
        let seeds = seeded.map(|host| format!("http://{host}.test:{port}/"));
        let refused = (0..4).map(|n| format!("http://refuse.test:{closed}/{n}"));
        let seeds: Vec<String> = seeds.chain(refused).collect();
        let text = CONF
            .replace("DIR", folder.path().to_str().expect("UTF-8"))
            .replace("SEEDS", &format!("{:?}", seeds));
        let conf = folder.path().join("crawl.toml");
        fs::write(&conf, text).expect("written");
        let conf = conf.to_str().expect("UTF-8").to_owned();
        Self { folder, conf, port, closed }
    }

    fn start(&self) -> Child {
        let mut command = sted(&["-q", "crawl", &self.conf]);
        let child = command.stdout(Stdio::null()).spawn().expect("starts");
        let job = self.job();
        let begun = Instant::now();
        while !Path::new(&job).join("control.sock").exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the crawl does not start");
            thread::sleep(Duration::from_millis(50));
        }
        child
    }

    fn job(&self) -> String {
        self.folder.path().join("job").to_str().expect("UTF-8").to_owned()
    }

    fn ctl(&self, arguments: &[&str]) {
        let job = self.job();
        let all = [&["ctl", job.as_str()], arguments].concat();
        let done = run(&all);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.err);
    }

    fn url(&self, text: &str) -> String {
        let text = text.replace("REST", &"abcdefghij".repeat(7));
        text.replace("PORT", &self.port.to_string()).replace("CLOSED", &self.closed.to_string())
    }

    fn why(&self, url: &str) -> Value {
        let run = run(&["why", &self.job(), url, "--json"]);
        assert_eq!(run.code, Some(0), "{url}: {}", run.err);
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.out))
    }

    /// Asks about all URLs, and checks what is said about them. Returns the answers that must be
    /// the same whether the crawl runs or not.
    fn ask(&self, is_running: bool) -> Vec<String> {
        let mut wrong = String::new();
        let mut ask = |(url, fate, says): &(&str, &str, &str)| {
            let url = self.url(url);
            let text = run(&["why", &self.job(), &url]);
            assert_eq!(text.code, Some(0), "{url}: {}", text.err);
            let is_narrow = text.out.lines().skip(1).all(|line| line.chars().count() <= 80);
            assert!(is_narrow, "{}", text.out);
            let answer = self.why(&url);
            let words = text.out.split_whitespace().collect::<Vec<_>>().join(" ");
            if !words.contains(says) || answer["fate"] != *fate {
                wrong += &format!("{fate}: {says:?} is not in {}:\n{}\n", answer["fate"], text.out);
            }
            assert_eq!(answer["running"], is_running, "{url}");
            assert_eq!(answer["why"]["errors"], Value::Array(Vec::new()), "{url}");
            let about = &answer["why"]["subject"]["url"];
            let parts =
                ["url", "key", "key_rules", "in_scope", "scope_rule", "is_known", "outcome"];
            let mut same: Vec<String> = parts.map(|part| about[part].to_string()).to_vec();
            same.extend(["verdict", "line"].map(|part| about["robots"][part].to_string()));
            same.extend(["before_min", "before_max"].map(|part| about["place"][part].to_string()));
            format!("{url}: {fate}: {same:?}")
        };
        let answers = FATES.iter().map(&mut ask).collect();
        assert!(wrong.is_empty(), "{wrong}");
        answers
    }
}

const CONF: &str = r#"
[job]
seeds = SEEDS
directory = "DIR/job"

[identity]
contact = "crawler@sted.dev"

[scope]
span = "host"
exclude = ["never matches", "\\.pdf$"]
depth_max = 2
url_bytes_max = "120B"

[names]
hosts_file = "DIR/hosts"
servers = ["127.0.0.1:9"]

[connections]
addresses_allowed = ["127.0.0.0/8"]
head_timeout = "1s"
stop_timeout = "1s"

[pipeline]
enabled = false

[politeness]
burst = 100
delay = "0s"
delay_factor = 0
address_visits_max = 100
domain_visits_max = 100
robots_retry_wait = "1s"

[retries]
retries_max = 1
retry_wait = "1s"
server_failures_max = 3

[links]
links_max = 20000

[memory]
queues = "1MiB"
urls_per_server_max = 12000

[store]
sync_period = "100ms"
"#;

/// URLs, the fate of each, and what the text says about it.
const FATES: &[(&str, &str, &str)] = &[
    ("http://a.test:PORT/", "fetched", "status 200, "),
    ("http://a.test:PORT/page", "fetched", "record warc/"),
    ("http://a.test:PORT/page", "fetched", "License: /terms; reserved for ai-train; allowed for"),
    ("http://a.test:PORT/target", "fetched", "use License: /terms"),
    ("http://a.test:PORT/page?utm_source=x", "duplicate", "by url.drop_params"),
    ("http://A.test:PORT/page#top", "fetched", "URL http://a.test"),
    ("http://a.test:PORT/r", "fetched", "/target: status 200"),
    ("http://a.test:PORT/target", "fetched", "It was fetched at"),
    ("http://a.test:PORT/gone", "fetched", "status 404"),
    ("http://a.test:PORT/busy", "fetched", "bytes, text/html [1t]"),
    ("http://slow.test:PORT/", "failed", "the head of the reply did not arrive in time"),
    ("http://a.test:PORT/private/x", "refused", "by line 4 of robots.txt: Disallow: /private/"),
    ("http://a.test:PORT/private/y", "not_discovered", "allowed by line 3 of robots.txt"),
    ("http://rob.test:PORT/", "refused", "robots.txt of its server can't be fetched"),
    ("http://a.test:PORT/hidden", "not_discovered", "by a link that is followed"),
    ("http://a.test:PORT/old.pdf", "not_discovered", "scope.exclude, pattern 2: \"\\.pdf$\""),
    ("http://elsewhere.test:PORT/", "not_discovered", "no seed is on this host"),
    ("http://a.test:PORT/d3", "not_discovered", "scope.depth_max: at most 2 links from a seed"),
    ("http://a.test:PORT/never", "not_discovered", "If it were found now, it would be queued"),
    ("http://w.test:PORT/5", "waiting", "URLs go before it"),
    ("http://w.test:PORT/5", "waiting", "its server rests after a failed visit until"),
    ("http://disk.test:PORT/200/REST", "waiting", "in its queue, on disk"),
    ("http://disk.test:PORT/9999/REST", "waiting", "It probably waits"),
    ("http://disk.test:PORT/12400/REST", "refused", "a limit on queued URLs was reached"),
    ("http://p.test:PORT/5", "waiting", "It waits: the operator has paused its server"),
    ("http://blk.test:PORT/5", "waiting", "will not be requested: the operator has blocked it"),
    ("http://refuse.test:CLOSED/0", "failed", "given up (failures, connect-refused)"),
    ("http://refuse.test:CLOSED/new", "not_discovered", "would not be requested: the connection"),
    ("http://private.test:PORT/", "refused", "its address may not be connected to"),
    ("http://10.1.2.3/", "not_discovered", "out of scope"),
    ("no URL", "not_url", "It is never fetched: not a URL"),
    ("ftp://a.test/", "not_url", "neither http nor https"),
    ("http://a.test:PORT/robots.txt", "fetched", "It was fetched"),
];

#[test]
fn urls_of_every_fate_are_explained_in_every_state_of_the_crawl() {
    let stand = Stand::new();
    let missing = run(&["why", &stand.job(), "http://a.test/"]);
    assert_eq!(missing.code, Some(5), "{}", missing.err);
    let mut child = stand.start();
    let begun = Instant::now();
    let fetching = stand.url("http://m.test:PORT/");
    let ends = ["http://slow.test:PORT/", "http://rob.test:PORT/", "http://refuse.test:CLOSED/3"];
    let more = [
        "http://private.test:PORT/",
        "http://disk.test:PORT/12400/REST",
        "http://a.test:PORT/busy",
    ];
    for url in ends.iter().chain(&more) {
        let url = stand.url(url);
        while !["refused", "failed", "fetched"].map(Value::from).contains(&stand.why(&url)["fate"])
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", stand.why(&url));
            thread::sleep(Duration::from_millis(300));
        }
    }
    assert_eq!(stand.why(&fetching)["fate"], "fetching");
    let socket = Path::new(&stand.job()).join("control.sock");
    let empty = get(&socket, "/why?uri=http");
    assert!(empty.starts_with("HTTP/1.1 400") && empty.contains("no URL"), "{empty}");
    let escaped = get(&socket, "/why?url=http%3A%2F%2Fa.test%2F%3Fb%26c");
    assert!(escaped.contains("\"http://a.test/?b&c\""), "{escaped}");
    stand.ctl(&["pause", "host:p.test"]);
    stand.ctl(&["block", "host:blk.test"]);
    let running = stand.ask(true);

    stand.ctl(&["stop"]);
    child.wait().expect("it ends");
    let before = contents(Path::new(&stand.job()));
    assert_eq!(stand.ask(false), running, "after a stop");
    assert_eq!(stand.why(&fetching)["fate"], "waiting");
    assert!(contents(Path::new(&stand.job())) == before, "the question has changed the job");

    let mut child = stand.start();
    while stand.why(&fetching)["fate"] != "fetching" {
        assert!(begun.elapsed() < Duration::from_secs(120), "{}", stand.why(&fetching));
        thread::sleep(Duration::from_millis(300));
    }
    stand.ctl(&["checkpoint"]);
    thread::sleep(Duration::from_secs(2));
    signal(&child, libc::SIGKILL);
    child.wait().expect("it ends");
    assert_eq!(stand.ask(false), running, "after a kill");
}

/// The names and contents of all files of a job.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => {
                let bytes = fs::read(&path).expect("readable");
                all.push((path.display().to_string(), bytes));
            }
        }
    }
    all.sort_unstable();
    all
}
