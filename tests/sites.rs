//! Tables `[[site]]` as seen from outside: by servers that record each request with its time and
//! its header fields.
//!
//! Five tables hold for a web of seven hosts on loopback. Redirects and links lead from host to
//! host.

use crate::util::{Run, sted};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The hosts; each has an address of its own, so that only rests of servers matter.
const HOSTS: [&str; 7] = [
    "plain.example",
    "slow.example",
    "few.example",
    "shallow.example",
    "own.example",
    "sub.few.example",
    "else.example",
];

const SECRET: &str = "Bearer 0123456789abcdef";

/// A request that a server has received.
#[derive(Clone, Debug)]
struct Asked {
    at: Instant,
    host: String,
    path: String,
    authorization: Option<String>,
}

/// A server for all hosts.
struct Servers {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
}

impl Servers {
    fn start() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (asked, is_over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let servers = Self { port, asked: Arc::clone(&asked), is_over: Arc::clone(&is_over) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let asked = Arc::clone(&asked);
                thread::spawn(move || serve(stream, port, &asked));
            }
        });
        servers
    }

    fn of(&self, host: &str) -> Vec<Asked> {
        let asked = self.asked.lock().expect("nobody panicked");
        asked.iter().filter(|one| one.host == host).cloned().collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Answers the requests of a connection, one after the other.
fn serve(mut stream: TcpStream, port: u16, asked: &Mutex<Vec<Asked>>) {
    let mut input = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let head = input.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let Some(end) = head else {
            match stream.read(&mut piece) {
                Ok(count) if count > 0 => input.extend_from_slice(&piece[..count]),
                _ => return,
            }
            continue;
        };
        let text = String::from_utf8_lossy(&input[..end]).into_owned();
        input.drain(..end + 4);
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        let path = text.split(' ').nth(1).unwrap_or("").to_owned();
        let host = field("Host:").unwrap_or_default();
        let host = host.split(':').next().unwrap_or("").to_owned();
        let reply = reply(&host, &path, port);
        let authorization = field("Authorization:");
        let one = Asked { at: Instant::now(), host, path, authorization };
        asked.lock().expect("nobody panicked").push(one);
        if stream.write_all(reply.as_bytes()).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Returns a page that links to nine pages, to the next one of a chain, to an excluded page, and to
/// the first page of each host. Two pages redirect to another host.
fn reply(host: &str, path: &str, port: u16) -> String {
    if path == "/robots.txt" {
        return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    if path == "/leave" {
        let other = if host == "own.example" { "else.example" } else { "own.example" };
        return format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{other}:{port}/landed\r\n\
             Content-Length: 0\r\n\r\n"
        );
    }
    let mut body = "<a href=/leave>x</a><a href=/print/1>x</a>".to_owned();
    for number in 1..10 {
        body.push_str(&format!("<a href=/p{number}>x</a>"));
    }
    let depth: u32 = path.strip_prefix("/deep").and_then(|text| text.parse().ok()).unwrap_or(0);
    body.push_str(&format!("<a href=/deep{}>x</a>", (depth + 1).min(6)));
    for other in HOSTS {
        body.push_str(&format!("<a href=\"http://{other}:{port}/\">x</a>"));
    }
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn crawl(folder: &Path, port: u16) -> Run {
    let names: String = HOSTS
        .iter()
        .enumerate()
        .map(|(number, host)| format!("127.0.0.{} {host}\n", number + 2))
        .collect();
    fs::write(folder.join("hosts"), names).expect("written");
    let text = format!(
        r#"
[job]
directory = "job"
seeds = ["http://plain.example:{port}/"]
[identity]
contact = "crawler@sted.dev"
[limits]
pages_per_server_max = 14
[scope]
span = "host"
domains = ["example"]
exclude = ["/print/"]
[politeness]
delay = "50ms"
delay_factor = 0
address_delay = "0s"
domain_visits_max = 100
domain_delay = "0s"
[names]
hosts_file = "hosts"
[connections]
addresses_allowed = ["127.0.0.0/8"]
[store]
gzip_level = 0

[[site]]
host = "slow.example"
delay = "300ms"

[[site]]
domain = "few.example"
pages_max = 5

[[site]]
host = "shallow.example"
depth_max = 2
pages_max = "none"

[[site]]
prefix = "http://plain.example:{port}/p"
exclude = ["/p[2-9]", "/print/2"]

[[site]]
host = "own.example"
headers = {{ Authorization = "{SECRET}" }}
exclude = []
"#
    );
    fs::write(folder.join("crawl.toml"), text).expect("written");
    let mut command = sted(&["crawl", "crawl.toml"]);
    Run::of(command.current_dir(folder).output().expect("the program starts"))
}

/// Each table holds for its URLs, and for no other.
#[test]
fn tables_hold_for_their_sites_alone() {
    let servers = Servers::start();
    let folder = tempfile::tempdir().expect("a folder");
    let run = crawl(folder.path(), servers.port);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let least = |host: &str| {
        let asked = servers.of(host);
        let gaps = asked.windows(2).map(|two| two[1].at.duration_since(two[0].at));
        gaps.min().expect("some requests")
    };
    let slack = Duration::from_millis(5);
    assert!(least("slow.example") + slack >= Duration::from_millis(300));
    assert!(least("plain.example") + slack >= Duration::from_millis(50));
    assert!(least("plain.example") < Duration::from_millis(300), "the crawl's own pace");
    let pages = |host: &str| {
        let all = servers.of(host).into_iter().map(|one| one.path);
        let mut pages: Vec<String> =
            all.filter(|path| path != "/robots.txt" && path != "/leave").collect();
        pages.sort();
        pages
    };
    let few = pages("few.example").len() + pages("sub.few.example").len();
    assert_eq!(few, 5, "of both hosts together");
    assert_eq!(pages("else.example").len(), 14, "that of each server");
    assert!(run.out.contains("site-pages-max") && run.out.contains("pages-per-server-max"));
    let has = |host: &str, path: &str| pages(host).iter().any(|one| one == path);
    // From the seed it is one link to the first page of a host, and another one to those it has.
    assert!(has("shallow.example", "/deep1") && !has("shallow.example", "/deep2"));
    assert!(has("plain.example", "/p1") && !has("plain.example", "/p2"));
    assert!(has("plain.example", "/print/1"), "the table's patterns replace those of the crawl");
    assert!(has("own.example", "/print/1") && !has("else.example", "/print/1"));
    secrets_stay_at_home(&servers, folder.path());
}

/// The field is in each request to its host, robots.txt included, in none elsewhere (also not after
/// a redirect), and in no file of the job.
fn secrets_stay_at_home(servers: &Servers, folder: &Path) {
    let all = servers.asked.lock().expect("nobody panicked");
    for one in all.iter() {
        let expected = (one.host == "own.example").then_some(SECRET);
        assert_eq!(one.authorization.as_deref(), expected, "{} {}", one.host, one.path);
    }
    let is_there = |host: &str| all.iter().any(|one| one.host == host && one.path == "/landed");
    assert!(is_there("else.example") && is_there("own.example"), "redirects both ways");
    let (mut files, mut folders) = (0, vec![folder.join("job")]);
    let mut withheld = false;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("0123456789abcdef"), "{}", path.display());
            withheld |= text.contains("request-fields-withheld: Authorization of host");
            files += 1;
        }
    }
    assert!(files > 5 && withheld, "{files} files");
}

/// `sted check --url` names the table of a URL and each of its values, and hides secrets.
#[test]
fn check_explains_a_url() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[job]\nseeds = [\"http://a.example/\"]\n[identity]\ncontact = \"me@sted.dev\"\n\
                [scope]\nspan = \"host\"\n[politeness]\ndelay = \"2s\"\n\
                [[site]]\nhost = \"a.example\"\ndelay = \"7s\"\n\
                [[site]]\nprefix = \"http://a.example/x/\"\ndepth_max = 2\nexclude = [\"bad\"]\n\
                headers = { X-Key = \"0123456789abcdef\" }\n";
    fs::write(folder.path().join("my.toml"), text).expect("written");
    let check = |more: &[&str]| {
        let arguments = [&["check", "my.toml"], more].concat();
        Run::of(sted(&arguments).current_dir(folder.path()).output().expect("the program starts"))
    };
    let run = check(&["--url", "http://a.example/x/bad", "--url", "http://b.example/"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for line in [
        "http://a.example/x/bad",
        "table         [[site]] prefix = \"http://a.example/x/\" (line 12)",
        "scope         out of scope (excluded): [[site]] prefix = \"http://a.example/x/\" (line \
         12): exclude, pattern 1: \"bad\"",
        "delay         \"7s\" ([[site]] host = \"a.example\" (line 9))",
        "depth_max     2 (the table)",
        "burst         1 ([politeness])",
        "headers       [\"X-Key: <hidden>\"] (the table)",
        "table         none",
        "delay         \"2s\" ([politeness])",
    ] {
        assert!(run.out.contains(line), "{line}:\n{}", run.out);
    }
    assert!(run.err.contains("plain http"), "{}", run.err);
    let json = check(&["--url", "http://a.example/", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(value[0]["table"]["line"], 9);
    assert!(!format!("{run:?}{json:?}{:?}", check(&[])).contains("0123456789abcdef"));
}
