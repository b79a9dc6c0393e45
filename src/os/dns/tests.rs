//! Tests of the resolver against their own name server on loopback.

#![expect(clippy::disallowed_types, reason = "the name server's socket")]

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::sync::Mutex;
use std::thread;

/// A name server whose behaviour depends on the first label of the name.
struct Server {
    address: SocketAddr,
    /// The port and the spelling of each query.
    seen: Arc<Mutex<Vec<(u16, String)>>>,
    thread: Option<thread::JoinHandle<BTreeMap<String, u32>>>,
}

const STOP: &[u8] = b"stop";
const A: u16 = 1;
const AAAA: u16 = 28;

impl Server {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let thread = thread::Builder::new().spawn(move || serve(&socket, &sink)).unwrap();
        Self { address, seen, thread: Some(thread) }
    }

    fn settings(&self) -> Settings {
        Settings {
            servers: vec![self.address],
            timeout: Duration::from_millis(400),
            tries: 2,
            hosts_file: HostsFile::None,
            mixed_case: true,
        }
    }

    /// Stops the server and returns how often each name was queried.
    fn stop(mut self) -> BTreeMap<String, u32> {
        let thread = self.thread.take().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Send repeatedly: the kernel drops datagrams if the server is behind.
        while !thread.is_finished() {
            socket.send_to(STOP, self.address).unwrap();
            thread::park_timeout(Duration::from_millis(5));
        }
        thread.join().unwrap()
    }
}

fn serve(socket: &UdpSocket, seen: &Mutex<Vec<(u16, String)>>) -> BTreeMap<String, u32> {
    let mut asked = BTreeMap::new();
    let mut slow_since: BTreeMap<String, Instant> = BTreeMap::new();
    let mut buffer = [0; 1_500];
    loop {
        let (count, from) = socket.recv_from(&mut buffer).unwrap();
        if &buffer[..count] == STOP {
            return asked;
        }
        let (spelt, kind, question_end) = question(&buffer[..count]);
        let name = spelt.to_ascii_lowercase();
        seen.lock().unwrap().push((from.port(), spelt));
        *asked.entry(name.clone()).or_default() += 1;
        let label = name.split('.').next().unwrap().to_owned();
        if label == "slow" {
            // Like a recursive server: silent until it knows the answer, then quick.
            let since = *slow_since.entry(format!("{name}{kind}")).or_insert_with(Instant::now);
            if since.elapsed() < Duration::from_millis(1_500) {
                continue;
            }
        }
        if let Some(reply) = reply(&label, kind, &buffer[..question_end]) {
            socket.send_to(&reply, from).unwrap();
        }
    }
}

/// Parses a query: its name, its type, and where it ends.
fn question(packet: &[u8]) -> (String, u16, usize) {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let label = &packet[at + 1..=at + usize::from(packet[at])];
        labels.push(String::from_utf8(label.to_vec()).unwrap());
        at += label.len() + 1;
    }
    (labels.join("."), u16::from_be_bytes([packet[at + 1], packet[at + 2]]), at + 5)
}

/// The records of a reply: time to live and address bytes.
type Records = Vec<(u32, Vec<u8>)>;

fn reply(label: &str, kind: u16, question: &[u8]) -> Option<Vec<u8>> {
    let four = |last: u8, ttl: u32| (ttl, vec![192, 0, 2, last]);
    let six = |last: u8, ttl: u32| {
        let mut bytes = vec![0; 16];
        (bytes[0], bytes[1], bytes[15]) = (0x20, 0x01, last);
        (ttl, bytes)
    };
    let none = || (0, Vec::new());
    let (code, records): (u8, Records) = match (label, kind) {
        ("both" | "slow", A) => (0, vec![four(1, 300), four(2, 200)]),
        ("both" | "slow", AAAA) => (0, vec![six(1, 250)]),
        ("four" | "fourdenied" | "foursilent", A) => (0, vec![four(1, 300)]),
        ("six", AAAA) => (0, vec![six(1, 100)]),
        ("old", A) => (0, vec![four(1, 0x8000_0001)]),
        ("fourdenied" | "denied" | "deniedhalf", AAAA) | ("denied", A) => (3, none().1),
        ("failing", _) => (2, none().1),
        ("refusing", _) => (5, none().1),
        ("foursilent", AAAA) | ("deniedhalf" | "silent", A) | ("silent", AAAA) => return None,
        ("garbage", _) => return Some([&question[..2], &[0x81, 0x80, 0xff, 0xff]].concat()),
        ("many", A) => (0, (0..25).map(|at| four(at, 60)).collect()),
        (number, A) if number.starts_with('n') => {
            let number: u32 = number[1..].parse().unwrap();
            (0, vec![(60, number.to_be_bytes().to_vec())])
        }
        _ => (0, none().1),
    };
    let mut packet = question.to_vec();
    packet[2..12].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0]);
    packet[7] = u8::try_from(records.len()).unwrap();
    for (ttl, address) in records {
        packet.extend([0xc0, 12]);
        packet.extend(kind.to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(ttl.to_be_bytes());
        packet.extend(u16::try_from(address.len()).unwrap().to_be_bytes());
        packet.extend(address);
    }
    Some(packet)
}

/// A resolver and the poll that it wakes.
struct Bench {
    poll: mio::Poll,
    resolver: Resolver,
}

impl Bench {
    fn new(settings: &Settings) -> Self {
        let poll = mio::Poll::new().unwrap();
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
        Self { poll, resolver: Resolver::new(settings, waker).unwrap() }
    }

    /// Sleeps until woken, then hands out the results.
    fn wait(&mut self, take: impl FnMut(LookupId, Result<Answer, NameFailure>)) {
        let mut events = mio::Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
        assert!(!events.is_empty(), "look-ups are under way and nobody wakes");
        self.resolver.drain(take);
    }

    fn resolve(&mut self, name: &str, families: Families) -> Result<Answer, NameFailure> {
        self.resolver.resolve(LookupId(9), name, families);
        let mut result = None;
        while self.resolver.in_flight() > 0 {
            self.wait(|lookup, got| {
                assert_eq!(lookup, LookupId(9));
                assert!(result.replace(got).is_none(), "answered once");
            });
        }
        result.expect("no look-up is in flight, so it was answered")
    }
}

/// Formats addresses and time to live as one line, a failure as its name.
fn line(result: &Result<Answer, NameFailure>) -> String {
    match result {
        Ok(answer) => {
            let list: Vec<String> = answer.addresses.iter().map(IpAddr::to_string).collect();
            format!("{} {}", list.join(" "), answer.ttl.as_secs())
        }
        Err(failure) => format!("{failure:?}"),
    }
}

#[test]
fn each_outcome_of_a_name_server() {
    use Families::{Ipv4, Ipv4ThenIpv6, Ipv6, Ipv6ThenIpv4};
    let long = format!("{}.test", "a".repeat(64));
    let cases = [
        ("both.test", Ipv4, "192.0.2.1 192.0.2.2 200", "the least time to live"),
        ("both.test", Ipv6, "2001::1 250", "one family"),
        ("both.test", Ipv4ThenIpv6, "192.0.2.1 192.0.2.2 2001::1 200", "in order"),
        ("both.test", Ipv6ThenIpv4, "2001::1 192.0.2.1 192.0.2.2 200", "in order"),
        ("both.test.", Ipv4, "192.0.2.1 192.0.2.2 200", "the root's dot"),
        ("four.test", Ipv4ThenIpv6, "192.0.2.1 300", "no data for the other"),
        ("four.test", Ipv6, "NoAddress", "no data (RFC 2308 2.2)"),
        ("fourdenied.test", Ipv6ThenIpv4, "192.0.2.1 300", "RFC 4074 4.2"),
        ("foursilent.test", Ipv4ThenIpv6, "192.0.2.1 300", "RFC 4074 4.1"),
        ("six.test", Ipv4ThenIpv6, "2001::1 100", "the second family alone"),
        ("old.test", Ipv4, "192.0.2.1 0", "RFC 2181 8"),
        ("denied.test", Ipv4ThenIpv6, "NoSuchName", "NXDOMAIN twice"),
        ("denied.test", Ipv4, "NoSuchName", "NXDOMAIN"),
        ("deniedhalf.test", Ipv4ThenIpv6, "TimedOut", "the other may yet exist"),
        ("silent.test", Ipv4, "TimedOut", "no answer"),
        ("failing.test", Ipv4, "ServerFailed", "SERVFAIL"),
        ("refusing.test", Ipv4, "ServerFailed", "REFUSED"),
        ("secret.onion", Ipv4ThenIpv6, "NoSuchName", "RFC 7686 2"),
        ("a.localhost", Ipv4ThenIpv6, "127.0.0.1 ::1 86400", "RFC 6761 6.3"),
        ("", Ipv4, "Malformed", "the root"),
        (".", Ipv4ThenIpv6, "Malformed", "the root"),
        ("a..test", Ipv4, "Malformed", "an empty label"),
        ("a\\046b.test", Ipv4, "Malformed", "an escape"),
        ("nul\0.test", Ipv4, "Malformed", "C would cut it"),
        ("\u{e4}.test", Ipv4, "Malformed", "not ASCII"),
        (&long, Ipv4, "Malformed", "RFC 1035 2.3.4: labels have 63 bytes"),
    ];
    let server = Server::start();
    let mut bench = Bench::new(&server.settings());
    for (name, families, expected, why) in cases {
        assert_eq!(line(&bench.resolve(name, families)), expected, "{name} {families:?}: {why}");
    }
    let many = bench.resolve("many.test", Ipv4).unwrap();
    assert_eq!(many.addresses.len(), 25);
    drop(bench);
    let asked = server.stop();
    assert!(!asked.keys().any(|name| name.ends_with("onion") || name.ends_with("localhost")));
}

/// A malformed reply counts as no reply; otherwise an attacker could end look-ups with it.
#[test]
fn garbage_is_not_an_answer() {
    let server = Server::start();
    let mut bench = Bench::new(&server.settings());
    let failure = bench.resolve("garbage.test", Families::Ipv4).unwrap_err();
    assert!(matches!(failure, NameFailure::Malformed | NameFailure::TimedOut), "{failure:?}");
    server.stop();
}

/// A malformed answer to one name doesn't fail others, not even those queried from the same port.
#[test]
fn garbage_harms_no_other_name() {
    use Families::{Ipv4, Ipv4ThenIpv6};
    let server = Server::start();
    let mut bench = Bench::new(&server.settings());
    let cases = [
        ("silent.test", "TimedOut", "it waits while the garbage comes"),
        ("garbage.one.test", "Malformed", "nothing else came"),
        ("four.test", "192.0.2.1 300", "an answer is on its way"),
        ("garbage.two.test", "Malformed", "nothing else came"),
        ("both.test", "192.0.2.1 192.0.2.2 2001::1 200", "an answer is on its way"),
    ];
    for (number, (name, ..)) in (0..).zip(cases) {
        let families = if name == "silent.test" { Ipv4 } else { Ipv4ThenIpv6 };
        bench.resolver.resolve(LookupId(number), name, families);
    }
    let mut results = BTreeMap::new();
    while bench.resolver.in_flight() > 0 {
        bench.wait(|lookup, result| assert!(results.insert(lookup.0, line(&result)).is_none()));
    }
    for (number, (name, expected, why)) in (0..).zip(cases) {
        assert_eq!(results[&number], expected, "{name}: {why}");
    }
    server.stop();
}

#[test]
fn a_dead_port_is_told_at_once() {
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings =
        Settings { servers: vec![dead], hosts_file: HostsFile::None, ..Settings::default() };
    let started = Instant::now();
    let result = Bench::new(&settings).resolve("both.test", Families::Ipv4ThenIpv6);
    assert_eq!(result, Err(NameFailure::ServerFailed));
    assert!(started.elapsed() < settings.timeout, "did not wait for a time-out");
}

/// A single label is queried as it is, without the machine's search domain.
#[test]
fn names_are_absolute() {
    let server = Server::start();
    let mut bench = Bench::new(&server.settings());
    let single = bench.resolve("denied", Families::Ipv4);
    assert_eq!(single, Err(NameFailure::NoSuchName));
    drop(bench);
    assert_eq!(server.stop().into_keys().collect::<Vec<_>>(), ["denied"]);
}

/// c-ares learns that the server is fast, and would give up a slow name after less than a second.
#[test]
fn a_slow_name_behind_a_fast_server_is_waited_for() {
    let server = Server::start();
    let settings = Settings { timeout: Duration::from_secs(4), ..server.settings() };
    let mut bench = Bench::new(&settings);
    for at in 0..10 {
        bench.resolve(&format!("n{at}.test"), Families::Ipv4).unwrap();
    }
    let slow = bench.resolve("slow.test", Families::Ipv4ThenIpv6);
    assert_eq!(line(&slow), "192.0.2.1 192.0.2.2 2001::1 200");
    server.stop();
}

/// Law: with a thousand look-ups in flight, each of five thousand gets its own answer, once.
#[test]
fn a_burst_is_answered_one_by_one() {
    const NAMES: u32 = 5_000;
    let server = Server::start();
    // The kernel drops queries that don't fit the name server's socket buffer; they are repeated.
    let settings = Settings { timeout: Duration::from_secs(1), tries: 5, ..server.settings() };
    let mut bench = Bench::new(&settings);
    let mut answers = BTreeMap::new();
    let mut next = 0;
    while answers.len() < NAMES as usize {
        while next < NAMES && bench.resolver.in_flight() < 1_000 {
            bench.resolver.resolve(LookupId(next), &format!("n{next}.test"), Families::Ipv4);
            next += 1;
        }
        bench.wait(|lookup, result| {
            let address = result.unwrap().addresses[0];
            assert_eq!(address, IpAddr::V4(Ipv4Addr::from_bits(lookup.0)));
            assert!(answers.insert(lookup, address).is_none());
        });
    }
    assert_eq!(bench.resolver.in_flight(), 0);
    server.stop();
}

#[test]
fn dropping_with_look_ups_under_way_does_not_wait_for_them() {
    let server = Server::start();
    let settings = Settings { timeout: Duration::from_secs(60), ..server.settings() };
    let mut bench = Bench::new(&settings);
    for at in 0..500 {
        bench.resolver.resolve(LookupId(at), "silent.test", Families::Ipv4ThenIpv6);
    }
    let started = Instant::now();
    drop(bench);
    assert!(started.elapsed() < Duration::from_secs(5));
    server.stop();
}

#[test]
fn the_hosts_file_goes_first() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    let text = "# comment\n192.0.2.7 here.test Alias.test # both\nnonsense here.test\n\
                2001::7\there.test\n192.0.2.7 here.test\n192.0.2.8 here.test\n192.0.2.9";
    fs::write(&path, text).unwrap();
    let settings = Settings { hosts_file: HostsFile::File(path), ..server.settings() };
    let mut bench = Bench::new(&settings);
    let cases = [
        ("here.test", Families::Ipv4ThenIpv6, "192.0.2.7 192.0.2.8 2001::7 86400", "all lines"),
        ("here.test.", Families::Ipv6, "2001::7 86400", "one family"),
        ("alias.test", Families::Ipv4ThenIpv6, "192.0.2.7 86400", "names have no case"),
        ("alias.test", Families::Ipv6, "NoAddress", "what is written and nothing else"),
        ("both.test", Families::Ipv6, "2001::1 250", "not in the file"),
    ];
    for (name, families, expected, why) in cases {
        assert_eq!(line(&bench.resolve(name, families)), expected, "{name}: {why}");
    }
    drop(bench);
    assert_eq!(server.stop().into_keys().collect::<Vec<_>>(), ["both.test"]);
    let missing =
        Settings { hosts_file: HostsFile::File("/nowhere/hosts".into()), ..Settings::default() };
    let waker_poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(waker_poll.registry(), mio::Token(0)).unwrap());
    let error = Resolver::new(&missing, waker).err().expect("a file that was named must be there");
    assert!(error.to_string().starts_with("cannot read hosts file /nowhere/hosts: "), "{error}");
}

/// Invalid lines are counted in any encoding; those of the system's hosts file are not.
#[test]
fn hosts_files_in_other_encodings_and_lines_that_are_no_entry() {
    let text = "192.0.2.7 a.test\r\n300.1.1.1 b.test\r\n127.1 c.test\r\n# d\r\n\r\n192.0.2.9\r\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files = [
        text.as_bytes().to_vec(),
        text.replace("\r\n", "\r").into_bytes(),
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        [b"\xff\xfe", utf16.as_slice()].concat(),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, bytes) in files.iter().enumerate() {
        let path = folder.path().join("hosts");
        fs::write(&path, bytes).unwrap();
        let file = HostsFile::File(path);
        let found = Hosts::read(&file).unwrap().find("a.test", Family::Ipv4);
        assert!(matches!(found, Some(Ok(found)) if found.list.len() == 1), "file {number}");
        let unread = unread_hosts(&file).expect("some are none");
        let expected = "hosts: line 2: \"300.1.1.1 b.test\": not an address and its names; \
                        skipped (lines of this kind: 3)";
        assert!(unread.ends_with(expected), "file {number}: {unread}");
        fs::write(folder.path().join("hosts"), "192.0.2.7 a.test # x\n").unwrap();
        assert_eq!(unread_hosts(&file), None);
    }
    assert_eq!(unread_hosts(&HostsFile::System), None);
}

/// Law: the failure that is returned depends only on the two failures, not on their families.
#[test]
fn the_more_open_failure_wins() {
    use NameFailure::{Malformed, NoAddress, NoSuchName, ServerFailed, TimedOut};
    let by_openness = [NoSuchName, NoAddress, Malformed, ServerFailed, TimedOut];
    for (at, &one) in by_openness.iter().enumerate() {
        for (other_at, &other) in by_openness.iter().enumerate() {
            assert_eq!(worse(one, other), by_openness[at.max(other_at)]);
        }
    }
}

/// Neither the port nor the spelling stays the same for long, so forging an answer requires
/// guessing both.
#[test]
fn ports_and_spellings_are_drawn() {
    let server = Server::start();
    let seen = Arc::clone(&server.seen);
    let mut bench = Bench::new(&server.settings());
    for number in 0..24 {
        let found = bench.resolve(&format!("n{number}.forgers.example.test"), Families::Ipv4);
        assert!(found.is_ok(), "{number}: {found:?}");
    }
    let alike = Settings { mixed_case: false, ..server.settings() };
    let mut plain = Bench::new(&alike);
    assert!(plain.resolve("n99.forgers.example.test", Families::Ipv4).is_ok());
    drop((bench, plain));
    server.stop();
    let seen = seen.lock().unwrap();
    let (plain, drawn): (Vec<_>, Vec<_>) =
        seen.iter().partition(|(_, name)| name.starts_with("n99."));
    let ports: std::collections::BTreeSet<u16> = drawn.iter().map(|(port, _)| *port).collect();
    assert!(ports.len() >= 24 / 4, "{} ports for {} questions", ports.len(), drawn.len());
    let mixed = drawn.iter().filter(|(_, name)| *name != name.to_ascii_lowercase()).count();
    assert!(mixed >= 20, "{mixed} of {} spellings have a capital: 2^-20 each", drawn.len());
    assert!(plain.iter().all(|(_, name)| *name == name.to_ascii_lowercase()), "{plain:?}");
}
