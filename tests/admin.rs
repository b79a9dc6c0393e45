//! The admin page and the metrics of a running crawl: who may read them, that other programs can,
//! and that no client harms the crawl.

use crate::control::long;
use crate::crawl::{signal, start, write_conf};
use crate::operate::short;
use crate::util::{Run, lacks, run, sted};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A crawl with an admin listener, which is killed if the test fails.
struct Crawl {
    folder: tempfile::TempDir,
    address: SocketAddr,
    child: Option<Child>,
}

impl Crawl {
    /// Starts a crawl that doesn't end by itself, and waits for its first figures.
    fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = long(folder.path());
        let address = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
        let address = address.expect("a free port");
        let text = fs::read_to_string(&conf).expect("it was written");
        let admin = format!("[admin]\nlisten = \"{address}\"\n{more}");
        fs::write(&conf, text + &admin.replace("DIR", folder.path().to_str().expect("UTF-8")))
            .expect("writable");
        let (child, mut lines) = start(&conf);
        // Nobody else reads what the crawl prints, and it must not wait for a reader.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let crawl = Self { folder, address, child: Some(child) };
        crawl.wait_for(|| crawl.get("/metrics").starts_with("HTTP/1.1 200"));
        crawl
    }

    fn wait_for(&self, is: impl Fn() -> bool) {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < Duration::from_secs(30), "it doesn't become so");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends raw bytes and returns all that comes back.
    fn exchange(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the crawl listens");
        stream.set_read_timeout(Some(Duration::from_secs(40))).expect("settable");
        // The server may refuse a request before it has all of it.
        let _ = stream.write_all(request);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    }

    fn get(&self, path: &str) -> String {
        let host = self.address;
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    fn metrics(&self, accept: &str) -> (String, String) {
        let host = self.address;
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n");
        let reply = self.exchange(head.as_bytes());
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    fn status(&self) -> Value {
        let reply = self.get("/status.json");
        let body = reply.split_once("\r\n\r\n").expect("a head and a body").1;
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"))
    }

    /// Interrupts the crawl, and returns what it printed and its summary.
    fn stop(mut self) -> (Run, Value) {
        let child = self.child.take().expect("it runs");
        signal(&child, libc::SIGINT);
        let run = Run::of(child.wait_with_output().expect("it ends"));
        assert_eq!(run.code, Some(11), "{}", run.out);
        let summary = fs::read(self.folder.path().join("job/summary.json")).expect("written");
        (run, serde_json::from_slice(&summary).expect("JSON"))
    }
}

impl Drop for Crawl {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const OPEN: &str = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

/// The three paths answer with their types and guards, everything else is refused, and the file of
/// metrics goes with the crawl.
#[test]
fn the_pages_can_be_read_and_nothing_else() {
    let crawl = Crawl::start("hosts = [\"crawler.example\"]\ntextfile = \"DIR/sted.prom\"\n");
    let host = crawl.address;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/status.json", "application/json"),
    ] {
        let reply = crawl.get(path);
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        for field in [
            &format!("content-type: {kind}\r\n"),
            "cache-control: no-store\r\n",
            "x-content-type-options: nosniff\r\n",
            "content-security-policy: default-src 'none'; ",
        ] {
            assert!(reply.contains(field), "{path}: {field}: {reply}");
        }
        assert!(!reply.to_ascii_lowercase().contains("access-control"), "{reply}");
        let bytes = format!("HEAD {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let head = crawl.exchange(bytes.as_bytes());
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    }
    for (request, code, says) in [
        (format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n"), 404, "/status.json"),
        (format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"), 405, "GET, HEAD"),
        (format!("OPTIONS / HTTP/1.1\r\nHost: {host}\r\n\r\n"), 405, "allow: GET, HEAD"),
        ("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(), 421, "admin.hosts"),
        (format!("GET http://evil.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n"), 421, "evil.test"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, "no host"),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.test\r\n\r\n"), 400, "several"),
        ("GET / HTTP/1.1\r\nHost: LOCALHOST:1\r\n\r\n".to_owned(), 200, "<!doctype html>"),
        ("GET / HTTP/1.1\r\nHost: crawler.example\r\n\r\n".to_owned(), 200, "<!doctype html>"),
    ] {
        let reply = crawl.exchange(request.as_bytes());
        assert!(reply.starts_with(&format!("HTTP/1.1 {code}")), "{request}{reply}");
        assert!(reply.contains(says), "{request}{says}: {reply}");
    }
    let before = crawl.status();
    crawl.wait_for(|| {
        crawl.status()["counts"]["pages"].as_u64() > before["counts"]["pages"].as_u64()
    });
    let (head, open) = crawl.metrics(OPEN);
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(open.ends_with("# EOF\n"), "{open}");
    let file = crawl.folder.path().join("sted.prom");
    crawl.wait_for(|| file.exists());
    assert!(fs::read_to_string(&file).expect("UTF-8").contains("\nsted_pages_total "));
    crawl.stop();
    assert!(!file.exists(), "nobody takes old figures for present ones");
}

/// A thousand requests that are wrong in some way, and clients that never read or send: each is
/// refused or dropped, and the crawl goes on with turns within their budgets.
#[test]
fn no_client_of_the_page_harms_the_crawl() {
    let crawl = Crawl::start("");
    let mut silent = TcpStream::connect(crawl.address).expect("it listens");
    let host = crawl.address;
    write!(silent, "GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("sent");
    let idle: Vec<_> = (0..50).map(|_| TcpStream::connect(host).expect("it listens")).collect();
    thread::scope(|scope| {
        for seed in 0..10 {
            let crawl = &crawl;
            scope.spawn(move || {
                for n in seed * 100..(seed + 1) * 100 {
                    let reply = crawl.exchange(&wrong(n, crawl.address));
                    assert!(!reply.starts_with("HTTP/1.1 2"), "{n}: {reply}");
                }
            });
        }
    });
    let start = Instant::now();
    assert!(crawl.status()["counts"]["pages"].as_u64() > Some(0));
    assert!(start.elapsed() < Duration::from_secs(10), "the others don't hold it up");
    drop(idle);
    let (_, summary) = crawl.stop();
    let budgets = &summary["loop"]["largest_turn"]["budgets"];
    for budget in budgets.as_object().expect("named budgets").values() {
        assert!(budget["units"].as_u64() <= budget["max"].as_u64(), "{budgets}");
    }
}

/// Returns a request that must not be answered with a page; `n` chooses why.
fn wrong(n: usize, host: SocketAddr) -> Vec<u8> {
    // A fixed sequence of bytes that look random.
    let noise = |at: usize| (n.wrapping_mul(2_654_435_761) ^ at.wrapping_mul(40_503)) as u8;
    match n % 8 {
        0 => (0..200).map(noise).chain(*b"\r\n\r\n").collect(),
        1 => {
            let mut cut = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1"[..n / 8 % 30].to_vec();
            cut.extend(b"\0\r\n\r\n");
            cut
        }
        2 => format!("GET /{n} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        3 => format!("POST /metrics HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{n:09}")
            .into_bytes(),
        4 => {
            let filler = "a".repeat(100_000);
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {filler}\r\n\r\n").into_bytes()
        }
        5 => format!("GET / HTTP/1.1\r\nHost: h{n}.evil.test\r\n\r\n").into_bytes(),
        6 => format!("GET / HTTP/{n}.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        _ => b"GET / HTTP/1.1\r\nHost: localhost:x@evil.test\r\n\r\n".to_vec(),
    }
}

/// An address of other machines needs a word of its own, and a port that is taken is reported
/// before the crawl begins.
#[test]
fn addresses_that_can_not_be_listened_on() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address)).expect("bound");
    let port = format!("listen = \"{}\"\n", taken.1);
    for (lines, code, says) in [
        ("listen = \"0.0.0.0:9600\"\n", 2, "write addresses = \"any\""),
        ("listen = \"[::]:9600\"\n", 2, "write addresses = \"any\""),
        ("listen = \"192.0.2.1:9600\"\n", 2, "other machines could read"),
        ("listen = \"127.0.0.1\"\n", 2, "is not an address with a port"),
        ("listen = \"localhost:9600\"\n", 2, "write it like \"127.0.0.1:9600\""),
        ("hosts = [\"a.example\"]\n", 2, "has no effect without a listener"),
        (port.as_str(), 4, "port 0 takes a free one"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = write_conf(folder.path(), &format!("[admin]\n{lines}"));
        let ran = run(&["crawl", &conf]);
        assert_eq!(ran.code, Some(code), "{lines}{}", ran.err);
        assert!(ran.err.contains(says), "{lines}{says}: {}", ran.err);
    }
    // Port 0 is any free one, and the log says which.
    let folder = tempfile::tempdir().expect("a folder");
    let conf = short(folder.path(), "[admin]\nlisten = \"0.0.0.0:0\"\naddresses = \"any\"\n");
    let ran = Run::of(sted(&["-v", "crawl", &conf]).output().expect("starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("the admin page is at http://0.0.0.0:"), "{}", ran.err);
}

/// `promtool` finds nothing to criticize, and Prometheus itself scrapes the crawl in both formats.
#[test]
fn prometheus_reads_the_metrics() {
    let crawl = Crawl::start("");
    let (head, text) = crawl.metrics("");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]).stdin(Stdio::piped());
    let tool = tool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut tool) = tool else { return lacks("prometheus_reads_the_metrics", "promtool") };
    tool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let checked = Run::of(tool.wait_with_output().expect("it ends"));
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    assert_eq!((checked.out.as_str(), checked.err.as_str()), ("", ""), "no remark");
    let server = Prometheus::start(crawl.folder.path(), crawl.address);
    // Prometheus asks for OpenMetrics first.
    let scraped = || server.query("sted_pages_total") > Some(0.0);
    crawl.wait_for(scraped);
    for query in [
        "up",
        "count(sted_waiting_servers_by_cause)",
        "sted_build_info",
        "sted_loop_lag_seconds_count",
        "sum(sted_state)",
        "histogram_quantile(0.5, sted_loop_lag_seconds_bucket)",
    ] {
        assert!(server.query(query) > Some(0.0), "{query}: {:?}", server.query(query));
    }
    crawl.wait_for(|| server.query("rate(sted_requests_total[10s])") > Some(0.0));
    drop(server);
    crawl.stop();
}

/// A Prometheus that scrapes a crawl each second, and ends with the test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(folder: &Path, target: SocketAddr) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
        let address = address.expect("a free port");
        let conf = folder.join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: sted\n    \
             static_configs:\n      - targets: [\"{target}\"]\n"
        );
        fs::write(&conf, text).expect("writable");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", conf.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()));
        command.arg(format!("--web.listen-address={address}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self { child: child.expect("it comes with promtool"), address }
    }

    /// Returns the first value of a query; `None` if there is none, or no answer yet.
    fn query(&self, query: &str) -> Option<f64> {
        let escaped: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let host = self.address;
        write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\nHost: {host}\r\n\r\n")
            .ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        let value: Value = serde_json::from_str(reply.split_once("\r\n\r\n")?.1).ok()?;
        value["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser shows the figures of a running crawl: its policy lets the script run and ask.
#[test]
fn a_browser_shows_the_page() {
    let crawl = Crawl::start("");
    let folder = crawl.folder.path();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]);
    browser.arg(format!("--user-data-dir={}", folder.join("browser").display()));
    browser.args(["--dump-dom", &format!("http://{}/", crawl.address)]);
    let Ok(shown) = browser.output() else {
        return lacks("a_browser_shows_the_page", "chromium");
    };
    let shown = Run::of(shown);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for says in [
        "<title>crawl - sted</title>",
        "<p id=\"state\" class=\"\">crawling</p>",
        "<td>ok</td><td>",
        "<polyline points=\"",
        "<td>nothing: being visited</td>",
        " median, ",
        " of 256 MiB</td>",
        "<td>http://h00",
    ] {
        assert!(shown.out.contains(says), "{says}: {}{}", shown.out, shown.err);
    }
    crawl.stop();
}
