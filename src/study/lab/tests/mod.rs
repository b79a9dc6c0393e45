//! Tests of the lab over real sockets, with plain clients of the standard library.

mod hostile;

use super::*;
use crate::ground::random::Random;
use crate::study::web::{Hostile, Spread, TimeSpread};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

/// A lab on its own thread; dropping it stops the lab.
struct Lab {
    ready: Ready,
    web: Web,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Totals, Error>>>,
}

impl Lab {
    fn start(settings: Settings) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let (flag, its) = (stop.clone(), settings.clone());
        let run = move || serve(&its, &mut |ready| sender.send(ready.clone()).unwrap(), &flag);
        let thread = std::thread::spawn(run);
        let ready = receiver.recv_timeout(Duration::from_secs(30)).expect("the lab gets ready");
        let ports = Ports { http: ready.http_port, https: ready.https_port };
        Self { web: Web::new(settings.web, ports), ready, stop, thread: Some(thread) }
    }

    fn of(web: web::Settings) -> Self {
        Self::start(Settings { web, warm: false, ..Settings::default() })
    }

    fn hostile(kinds: &[Hostile]) -> Self {
        Self::of(web::Settings { hosts: 1, pages: 1, hostile: kinds.to_vec(), ..small() })
    }

    fn connect(&self, name: &str) -> TcpStream {
        let host = self.web.host(self.web.host_named(name).unwrap());
        let port =
            if host.scheme == Scheme::Https { self.ready.https_port } else { self.ready.http_port };
        let stream = TcpStream::connect((host.address, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn stop(mut self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok_and(|result| result.is_ok()));
        }
    }
}

fn small() -> web::Settings {
    web::Settings {
        hosts: 4,
        pages: 80,
        page_bytes: Spread { median: 2_000.0, sigma: 0.3 },
        ..web::Settings::default()
    }
}

fn get(name: &str, path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {name}\r\n{fields}\r\n")
}

/// Reads one reply of known length; returns its head and its body.
fn read_reply(stream: &mut impl Read) -> (String, Vec<u8>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a whole head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let (_, rest) = head.split_once("Content-Length: ").unwrap_or_else(|| panic!("{head}"));
    let mut body = vec![0; rest.split("\r\n").next().unwrap().parse().unwrap()];
    stream.read_exact(&mut body).expect("a whole body");
    (head, body)
}

/// Reads until the end or an error; returns the bytes and the error.
fn read_all(stream: &mut TcpStream) -> (Vec<u8>, Option<io::ErrorKind>) {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
    (bytes, ended)
}

fn body_of(web: &Web, host: u32, path: &str) -> Vec<u8> {
    match web.answer(web.place(host, path), Duration::ZERO) {
        web::Answer::Reply(reply) => reply.body,
        web::Answer::Play(play) => panic!("{play:?}"),
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let lab = Lab::of(small());
    let page = |page| web::Place { host: 1, resource: web::Resource::Page(page) };
    let paths: Vec<String> = (0..20).map(|number| lab.web.path(page(number))).collect();
    let requests: String = paths.iter().map(|path| get("h0001.test", path, "")).collect();
    let mut random = Random(7);
    // Whole, and cut at random places with pauses so that the pieces arrive separately.
    for pieces in [1, 4, 40] {
        let mut stream = lab.connect("h0001.test");
        let mut rest = requests.as_bytes();
        for _ in 1..pieces {
            let (piece, more) = rest.split_at(random.below(rest.len().min(90)));
            stream.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            rest = more;
        }
        stream.write_all(rest).unwrap();
        for path in &paths {
            let (head, body) = read_reply(&mut stream);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert_eq!(body, body_of(&lab.web, 1, path), "{path} in {pieces} pieces");
        }
    }
    let totals = lab.stop();
    // Each page was requested three times and is counted once.
    assert_eq!((totals.connections, totals.requests, totals.pages), (3, 60, 20));
}

/// With a limit of three, announced or not, three replies arrive whole, then the end, though eight
/// were requested.
#[test]
fn limits_of_requests_per_connection() {
    for (silently, easy) in [(0.0, false), (1.0, false), (0.0, true), (1.0, true)] {
        let settings = web::Settings {
            requests_per_connection: vec![(1.0, 3)],
            close_silently: silently,
            easy,
            ..small()
        };
        let lab = Lab::of(settings);
        let mut stream = lab.connect("h0002.test");
        stream.write_all(get("h0002.test", "/", "").repeat(8).as_bytes()).unwrap();
        for reply in 1..=3 {
            let (head, body) = read_reply(&mut stream);
            let announced = head.contains("Connection: close\r\n");
            assert_eq!(announced, reply == 3 && silently == 0.0, "{head}");
            assert_eq!(head.contains("Connection: keep-alive\r\n"), easy && !announced, "{head}");
            assert_eq!(body, body_of(&lab.web, 2, "/"));
        }
        assert_eq!(read_all(&mut stream), (Vec::new(), None), "ends in order, without a reset");
    }
}

#[test]
fn old_hosts_close_after_each_reply() {
    let lab = Lab::of(web::Settings { http10: 1.0, ..small() });
    for number in 0..2 {
        let name = format!("h{number:04}.test");
        let mut stream = lab.connect(&name);
        stream.write_all(get(&name, "/", "").repeat(2).as_bytes()).unwrap();
        let (bytes, ended) = read_all(&mut stream);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && ended.is_none());
        assert_eq!(
            text.contains("Content-Length"),
            number == 0,
            "half of them leave it to the end"
        );
        let expected = String::from_utf8(body_of(&lab.web, number, "/")).unwrap();
        assert!(text.ends_with(&expected), "one reply and no more");
    }
}

#[test]
fn think_time_passes_request_by_request() {
    let median = Duration::from_millis(60);
    let lab = Lab::of(web::Settings { think_time: TimeSpread { median, sigma: 0.0 }, ..small() });
    let mut stream = lab.connect("h0000.test");
    let started = Instant::now();
    stream.write_all(get("h0000.test", "/", "").repeat(3).as_bytes()).unwrap();
    for reply in 1..=3 {
        read_reply(&mut stream);
        let passed = started.elapsed();
        assert!(passed >= median * reply, "reply {reply} after {passed:?}");
    }
}

#[test]
fn idle_connections_are_closed_in_order() {
    let idle_time = Duration::from_millis(300);
    let lab = Lab::of(web::Settings { idle_time, ..small() });
    let mut stream = lab.connect("h0000.test");
    stream.write_all(get("h0000.test", "/", "").as_bytes()).unwrap();
    read_reply(&mut stream);
    let started = Instant::now();
    assert_eq!(read_all(&mut stream), (Vec::new(), None));
    assert!(started.elapsed() >= idle_time - Duration::from_millis(20));
}

#[test]
fn heads_refusals_and_other_hosts() {
    let lab = Lab::of(small());
    let ask = |request: &str| {
        let mut stream = lab.connect("h0001.test");
        stream.write_all(request.as_bytes()).unwrap();
        let (bytes, ended) = read_all(&mut stream);
        assert_eq!(ended, None, "{request}");
        String::from_utf8(bytes).unwrap()
    };
    let close = "Connection: close\r\n";
    let head = ask(&get("h0001.test", "/", close).replace("GET", "HEAD"));
    assert!(head.contains("Content-Length") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(ask(&get("h0001.test", "/none", close)).starts_with("HTTP/1.1 404 "));
    assert!(ask(&get("h0002.test", "/", "")).starts_with("HTTP/1.1 421 "), "RFC 9110 15.5.20");
    assert!(ask(&get("127.1.0.2", "/", close)).starts_with("HTTP/1.1 200 "), "by address");
    assert!(ask("POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask("\x16\x03\x01").starts_with("HTTP/1.1 400 "));
}

#[test]
fn hosts_share_an_address() {
    let lab = Lab::of(web::Settings { hosts_per_address: 4, ..small() });
    let mut stream = lab.connect("h0000.test");
    for number in [3, 1, 2, 0] {
        let name = format!("h{number:04}.test");
        stream.write_all(get(&name, "/", "").as_bytes()).unwrap();
        assert_eq!(read_reply(&mut stream).1, body_of(&lab.web, number, "/"));
    }
}

/// Every page of a varied web, fetched and decoded by simple means, is as the description says.
#[test]
fn what_is_served_is_what_is_described() {
    use crate::study::web::tests::{CODINGS, dechunk, decode};
    let settings = web::Settings {
        pages: 300,
        tls: 0.0,
        think_time: web::Settings::default().think_time,
        hostile: Vec::new(),
        ..web::Settings::quickstart()
    };
    let lab = Lab::of(settings);
    let (mut chunked, mut coded) = (0, 0);
    for host in 0..lab.web.hosts() {
        for page in 0..lab.web.pages_of(host) {
            let place = web::Place { host, resource: web::Resource::Page(page) };
            let web::Answer::Reply(reply) = lab.web.answer_at(place, Duration::ZERO) else {
                panic!("a page")
            };
            let name = lab.web.host(host).name;
            let mut stream = lab.connect(&name);
            let fields = "Accept-Encoding: gzip, deflate, br, zstd\r\nConnection: close\r\n";
            stream.write_all(get(&name, &lab.web.path(place), fields).as_bytes()).unwrap();
            let (bytes, ended) = read_all(&mut stream);
            assert_eq!(ended, None);
            let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let head = std::str::from_utf8(&bytes[..split]).unwrap();
            assert_eq!(head[9..12], reply.status.to_string(), "{head}");
            let mut body = bytes[split + 4..].to_vec();
            if head.contains("Transfer-Encoding: chunked") {
                body = dechunk(&body);
                chunked += 1;
            }
            if head.contains("Content-Encoding") {
                let coding = lab.web.host(host).coding;
                assert!(CODINGS[1..].contains(&coding));
                let mut plain = Vec::new();
                decode(coding, &body).read_to_end(&mut plain).unwrap();
                body = plain;
                coded += 1;
            }
            assert_eq!(body, reply.body, "{}", lab.web.url(place));
        }
    }
    assert!(chunked > 50 && coded > 100, "{chunked} chunked, {coded} coded");
}

#[test]
fn codings_are_negotiated() {
    let lab = Lab::of(web::Settings { brotli: 1.0, ..small() });
    let mut stream = lab.connect("h0000.test");
    let cases = [("gzip, br", true), ("gzip", false), ("brr", false), ("deflate,br;q=0.5", true)];
    for (accepted, coded) in cases {
        let fields = format!("Accept-Encoding: {accepted}\r\n");
        stream.write_all(get("h0000.test", "/", &fields).as_bytes()).unwrap();
        let (head, body) = read_reply(&mut stream);
        assert_eq!(head.contains("Content-Encoding: br\r\n"), coded, "{accepted}");
        assert_eq!(body == body_of(&lab.web, 0, "/"), !coded);
    }
}

fn trusting(lab: &Lab, pem: &Path) -> rustls::ClientConfig {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    assert_eq!(lab.ready.ca.as_deref(), Some(pem));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    versions.with_root_certificates(roots).with_no_client_auth()
}

#[test]
fn tls_hosts_show_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("ca.pem");
    let kinds =
        [Hostile::Expired, Hostile::WrongName, Hostile::UnknownIssuer, Hostile::NotTls].to_vec();
    let web = web::Settings { tls: 1.0, hostile: kinds, ..small() };
    let lab =
        Lab::start(Settings { web, ca: Some(pem.clone()), warm: false, ..Settings::default() });
    let config = Arc::new(trusting(&lab, &pem));
    let ask = |name: &str| -> Result<(String, Vec<u8>), io::Error> {
        let server = name.to_owned().try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(config.clone(), server).unwrap();
        let mut socket = lab.connect(name);
        tls.complete_io(&mut socket)?;
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        stream.write_all(get(name, "/", "").as_bytes())?;
        read_reply(&mut stream);
        // A second request on the same connection, in two records.
        let again = get(name, "/", "");
        stream.write_all(&again.as_bytes()[..9])?;
        stream.write_all(&again.as_bytes()[9..])?;
        Ok(read_reply(&mut stream))
    };
    let (head, body) = ask("h0003.test").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(body, body_of(&lab.web, 3, "/"));
    let cases = [
        ("expired.test", "Expired"),
        ("wrong-name.test", "NotValidForName"),
        ("unknown-issuer.test", "UnknownIssuer"),
        ("not-tls.test", "InvalidMessage"),
    ];
    for (name, why) in cases {
        let error = ask(name).unwrap_err();
        let message = format!("{:?}", error.get_ref());
        assert!(message.contains(why), "{name}: {message}");
    }
}

#[test]
fn names_are_answered_over_udp_and_tcp() {
    let lab = Lab::hostile(&[Hostile::NamesOverTcp, Hostile::NoSuchName]);
    let question = |name: &str| {
        let mut packet = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0".to_vec();
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.bytes());
        }
        packet.extend(b"\0\0\x01\0\x01");
        packet
    };
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ask = |name: &str| {
        udp.send_to(&question(name), lab.ready.dns).unwrap();
        let mut reply = [0; 512];
        let length = udp.recv(&mut reply).unwrap();
        reply[..length].to_vec()
    };
    assert!(ask("h0000.test").ends_with(&[127, 1, 0, 1]));
    assert_eq!(ask("nx.test")[3] & 15, 3);
    assert_eq!(ask("tcp-dns.test")[2] & 2, 2, "truncated");
    let mut tcp = TcpStream::connect(lab.ready.dns).unwrap();
    let packet = question("tcp-dns.test");
    let framed = [&(packet.len() as u16).to_be_bytes()[..], &packet].concat();
    // Two messages in one piece, except the last byte.
    let both = framed.repeat(2);
    tcp.write_all(&both[..both.len() - 1]).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    tcp.write_all(&both[both.len() - 1..]).unwrap();
    for _ in 0..2 {
        let mut length = [0; 2];
        tcp.read_exact(&mut length).unwrap();
        let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
        tcp.read_exact(&mut reply).unwrap();
        let address = lab.web.host(1).address;
        assert!(reply.ends_with(&address.octets()));
    }
    assert_eq!(lab.stop().lookups, 5);
}

#[test]
fn the_log_records_connections_and_requests() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let manifest = folder.path().join("manifest");
    let settings = Settings {
        web: small(),
        log: Some(log.clone()),
        manifest: Some(manifest.clone()),
        requests_logged: true,
        ..Settings::default()
    };
    let lab = Lab::start(settings);
    let mut stream = lab.connect("h0003.test");
    stream.write_all(get("h0003.test", "/a\"b", "").as_bytes()).unwrap();
    read_reply(&mut stream);
    drop(stream);
    let open = lab.connect("h0001.test");
    // Lines come within a tenth of a second, and may take longer on a busy machine.
    let has = |what| std::fs::read_to_string(&log).unwrap().contains(what);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !(has("\"client\"") && has("h0001.test")) {
        assert!(Instant::now() < deadline, "the log has no such lines");
        std::thread::sleep(Duration::from_millis(20));
    }
    let expected = Manifest::new(&lab.web, Budget::default()).entries.len();
    lab.stop();
    drop(open);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<(&str, Option<&str>)> =
        lines.iter().map(|line| (line["event"].as_str().unwrap(), line["host"].as_str())).collect();
    let (three, one) = (Some("h0003.test"), Some("h0001.test"));
    let begun = [("start", None), ("accept", three), ("request", three), ("reply", three)];
    assert_eq!(events[..4], begun);
    assert!(events[4..].contains(&("close", three)) && events[3..].contains(&("accept", one)));
    assert_eq!(lines[2]["path"], "/a\"b");
    let closed = lines.iter().find(|line| line["event"] == "close").unwrap();
    assert_eq!((closed["requests"].as_u64(), closed["why"].as_str()), (Some(1), Some("client")));
    assert_eq!(lines.last().unwrap()["why"], "stop");
    let at: Vec<u64> = lines.iter().map(|line| line["at"].as_u64().unwrap()).collect();
    assert!(at.is_sorted() && at[0] == 0);
    assert_eq!(std::fs::read_to_string(manifest).unwrap().lines().count(), expected + 1);
}

#[test]
fn kept_replies_stay_within_their_memory() {
    for cache_bytes_max in [0, 30_000] {
        let settings = Settings { web: small(), cache_bytes_max, ..Settings::default() };
        let lab = Lab::start(settings);
        for page in 0..20 {
            let place = web::Place { host: 0, resource: web::Resource::Page(page) };
            let path = lab.web.path(place);
            let mut stream = lab.connect("h0000.test");
            stream.write_all(get("h0000.test", &path, "").as_bytes()).unwrap();
            assert_eq!(read_reply(&mut stream).1, body_of(&lab.web, 0, &path));
        }
    }
}

#[test]
fn connections_beyond_the_cap_wait_their_turn() {
    let lab = Lab::start(Settings { web: small(), connections_max: 2, ..Settings::default() });
    let mut streams: Vec<TcpStream> = (0..4).map(|_| lab.connect("h0000.test")).collect();
    for stream in &mut streams {
        stream.write_all(get("h0000.test", "/", "").as_bytes()).unwrap();
    }
    let mut fourth = streams.pop().unwrap();
    fourth.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(fourth.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    fourth.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    drop(streams);
    read_reply(&mut fourth);
}

#[test]
fn two_labs_live_side_by_side() {
    let (one, two) = (Lab::of(small()), Lab::of(small()));
    assert_ne!(one.ready.http_port, two.ready.http_port);
    assert_ne!(one.ready.dns, two.ready.dns);
    let mut stream = two.connect("h0001.test");
    stream.write_all(get("h0001.test", "/", "").as_bytes()).unwrap();
    read_reply(&mut stream);
    assert_eq!((one.stop().requests, two.stop().requests), (0, 1));
}

#[test]
fn a_taken_port_is_an_error_that_says_so() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::new(127, 1, 0, 1), 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = Settings { web: small(), http_port: Some(port), ..Settings::default() };
    let error = serve(&settings, &mut |_| {}, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().starts_with("cannot bind the hosts' addresses: "), "{error}");
}

#[test]
fn ready_is_one_line_of_json() {
    let lab = Lab::of(small());
    let line = lab.ready.to_json();
    let read: BTreeMap<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    assert!(line.starts_with("{\"ready\":true,\"dns\":\"127.0.0.1:") && !line.contains('\n'));
    assert_eq!(read["seeds"][0], format!("http://h0000.test:{}/", lab.ready.http_port));
    assert_eq!(read["ca"], serde_json::Value::Null);
}

/// Whatever a client sends, the lab answers others and keeps to its limits.
#[test]
fn noise_on_a_connection_harms_nobody() {
    let lab = Lab::of(small());
    let good = get("h0001.test", "/", "Accept-Encoding: gzip\r\n").repeat(3);
    let mut random = Random(1);
    let mut next = |bound: usize| random.below(bound);
    for round in 0..200 {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..=round % 8 {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        bytes.truncate(1 + next(bytes.len()));
        let mut stream = lab.connect("h0001.test");
        // The lab may have refused and closed already.
        let _ = stream.write_all(&bytes);
        if round % 2 == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let (replies, _) = read_all(&mut stream);
            assert!(replies.is_empty() || replies.starts_with(b"HTTP/1.1 "), "round {round}");
        }
    }
    let mut stream = lab.connect("h0002.test");
    stream.write_all(get("h0002.test", "/", "").as_bytes()).unwrap();
    assert_eq!(read_reply(&mut stream).1, body_of(&lab.web, 2, "/"));
}
