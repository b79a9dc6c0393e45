//! Servers that refuse a node, and nodes that refuse a server: each with the cause, the key of the
//! configuration that it is about, and a fix, at the start and within seconds.

use super::client::Client;
use super::tokens;
use super::{STREAM, Server};
use crate::real::process::stop_listening;
use crate::util::{Run, sted};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A request that has no answer is given up after ten seconds: no refusal waits for that.
const REFUSED_MAX: Duration = Duration::from_secs(9);
/// The exit codes of a wrong configuration, of other trouble with the system, and of
/// `sted cluster status` if no node has begun the crawl.
const USAGE: i32 = 2;
const SYSTEM: i32 = 4;
const NOT_BEGUN: i32 = 6;

/// A node with its files.
struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "[job]\nseeds = [\"http://a.test/\"]\ndirectory = \"job\"\n\
                    [identity]\ncontact = \"crawler@sted.dev\"\n[scope]\nspan = \"host\"\n\
                    [cluster]\nnode = \"a\"\n";
        fs::write(folder.path().join("crawl.toml"), text).expect("written");
        Self { folder }
    }

    /// Writes a file. Returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Runs a command for a crawl at a server, with more settings.
    fn run(&self, command: &[&str], url: &str, name: &str, more: &[&str]) -> Run {
        let begun = Instant::now();
        let set = [format!("cluster.servers=[{url:?}]"), format!("cluster.name={name}")];
        let mut arguments = command.to_vec();
        arguments.push("crawl.toml");
        let more = more.iter().copied();
        set.iter().map(String::as_str).chain(more).for_each(|set| arguments.extend(["--set", set]));
        let output = sted(&arguments).current_dir(self.folder.path()).output();
        let run = Run::of(output.expect("the program starts"));
        assert!(begun.elapsed() < REFUSED_MAX, "{:?}: {run:?}", begun.elapsed());
        run
    }

    /// Begins a crawl, which must be refused with these parts of a text, the key first.
    fn is_refused(&self, code: i32, url: &str, name: &str, more: &[&str], parts: &[&str]) {
        let run = self.run(&["crawl"], url, name, more);
        println!("{}", run.err.trim_end());
        assert_eq!(run.code, Some(code), "{more:?}: {run:?}");
        assert!(run.err.starts_with(&format!("{}: ", parts[0])), "{more:?}: {}", run.err);
        for part in parts {
            assert!(run.err.contains(part), "{more:?}: {part:?} isn't in {}", run.err);
        }
    }

    /// Looks for a crawl that no node has begun: the server lets this one in and answers.
    fn is_let_in(&self, url: &str, name: &str, more: &[&str]) {
        let run = self.run(&["cluster", "status"], url, name, more);
        assert_eq!(run.code, Some(NOT_BEGUN), "{more:?}: {run:?}");
    }
}

/// What a server needs to know of a user may be missing, wrong, or permit too little. What the
/// manual lists is enough (`lab::nodes`).
#[test]
fn users_that_a_server_refuses() {
    let user = |name: &str, permissions: &str| {
        format!("{{ user: {name}, password: secret, permissions: {{ {permissions} }} }}")
    };
    let users = [
        user("whole", "publish: \">\", subscribe: \">\""),
        user("reader", "publish: { deny: \">\" }, subscribe: \">\""),
        user("idle", "publish: { deny: [\"$JS.API.STREAM.CREATE.>\"] }"),
        user("silent", "publish: { deny: [\"sted.>\"] }"),
        user("deaf", "subscribe: { deny: [\"_INBOX.>\"] }"),
    ];
    let server = Server::start("2m", &format!("authorization {{ users: [{}] }}", users.join(", ")));
    let (url, node) = (server.url(), Node::new());
    let with = |user: &str, password: &str| {
        let path = node.write("password", password);
        [format!("cluster.user={user}"), format!("cluster.password_file={path}")]
    };
    let refused = |set: &[String], parts: &[&str]| {
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let name = set.first().and_then(|set| set.split_once('=')).map_or("open", |set| set.1);
        node.is_refused(USAGE, &url, name, &set, &[&["cluster.user", &*url], parts].concat());
    };
    refused(&[], &["authorization violation", "demands a login: set user and password_file"]);
    refused(
        &with("whole", "wrong"),
        &["no user whole with the password in", "authorization block"],
    );
    refused(&with("nobody", "secret"), &["no user nobody with the password in"]);
    for (name, forbidden) in [
        ("reader", "publish to $JS.API.STREAM.INFO.sted-reader;"),
        ("idle", "publish to $JS.API.STREAM.CREATE.sted-idle;"),
        ("silent", "publish to sted.silent.log.*;"),
        ("deaf", "subscribe to _INBOX.>;"),
    ] {
        let permit = format!("$KV.sted-{name}.>, sted.{name}.log.* and to subscribe to _INBOX.>");
        let forbidden = format!("the server forbids this node to {forbidden}");
        refused(&with(name, "secret"), &[&forbidden, "permit the user to publish to", &permit]);
    }
    let set = with("whole", "secret\n");
    node.is_let_in(&url, "whole", &set.each_ref().map(String::as_str));
}

/// An authority, and certificates that it has signed, as files of a node.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new(node: &Node, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self(Issuer::new(params, key), node.write(&format!("{name}.pem"), &pem))
    }

    /// Returns the paths of a certificate for a name or address, and of its key.
    fn sign(&self, node: &Node, file: &str, name: &str) -> [String; 2] {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let pem = params.signed_by(&key, &self.0).expect("a certificate").pem();
        let (file, key_file) = (format!("{file}.pem"), format!("{file}.key"));
        [node.write(&file, &pem), node.write(&key_file, &key.serialize_pem())]
    }
}

/// One end encrypts and the other doesn't, or one has a certificate that the other doesn't trust.
#[test]
fn ends_that_do_not_trust_each_other() {
    let node = Node::new();
    let [authority, other] = ["ours", "theirs"].map(|name| Authority::new(&node, name));
    let [certificate, key] = authority.sign(&node, "server", "127.78.0.1");
    let [own, own_key] = authority.sign(&node, "node", "node.test");
    let [bad, bad_key] = other.sign(&node, "bad", "node.test");
    let ours = format!("cluster.roots_file={}", authority.1);
    let theirs = format!("cluster.roots_file={}", other.1);
    let no_roots = format!("cluster.roots_file={own_key}");
    let login = |certificate: &str, key: &str| {
        [format!("cluster.certificate_file={certificate}"), format!("cluster.key_file={key}")]
    };
    let refused = |url: &str, set: &[&str], parts: &[&str]| {
        node.is_refused(USAGE, url, "t", set, parts);
    };

    let plain = Server::start("2m", "");
    let parts = ["cluster.roots_file", "doesn't encrypt", "write a tls block"];
    refused(&plain.url(), &[&ours], &parts);
    let parts = ["cluster.servers", "doesn't encrypt", "or nats:// here"];
    refused(&plain.url().replace("nats:", "tls:"), &[], &parts);
    let parts = ["cluster.roots_file", "node.key: there is no PEM certificate in it"];
    refused(&plain.url(), &[&no_roots], &parts);

    let tls = format!("cert_file: {certificate:?}, key_file: {key:?}");
    let server = Server::start("2m", &format!("tls {{ {tls} }}"));
    let url = server.url();
    let parts = ["cluster.roots_file", "the server encrypts", "name the PEM file"];
    refused(&url, &[], &parts);
    let parts = ["cluster.roots_file", "no authority in", "theirs.pem", "UnknownIssuer"];
    refused(&url, &[&theirs], &parts);
    node.is_let_in(&url, "t", &[&ours]);
    node.is_let_in(&url.replace("nats:", "tls:"), "t", &[&ours]);

    let tls = format!("{tls}, ca_file: {:?}, verify: true", authority.1);
    let server = Server::start("2m", &format!("tls {{ {tls} }}"));
    let url = server.url();
    let run = node.run(&["crawl"], &url, "t", &[&ours]);
    // The server may close before its alert is read.
    assert!(run.err.contains("certificate_file and key_file"), "{run:?}");
    println!("{}", run.err.trim_end());
    let [set, key_set] = login(&bad, &bad_key);
    let run = node.run(&["crawl"], &url, "t", &[&ours, &set, &key_set]);
    assert!(run.err.contains("bad.pem") || run.err.contains("its log says why"), "{run:?}");
    println!("{}", run.err.trim_end());
    let [set, key_set] = login(&own, &bad_key);
    let parts = ["cluster.key_file", "the key must be that of the certificate"];
    refused(&url, &[&ours, &set, &key_set], &parts);
    let [set, key_set] = login(&own_key, &own);
    let parts = ["cluster.certificate_file", "node.key: there is no PEM certificate in it"];
    refused(&url, &[&ours, &set, &key_set], &parts);
    let [set, key_set] = login(&own, &own);
    let parts = ["cluster.key_file", "node.pem: there is no PEM key in it"];
    refused(&url, &[&ours, &set, &key_set], &parts);
    let [set, key_set] = login(&own, &own_key);
    node.is_let_in(&url, "t", &[&ours, &set, &key_set]);
}

/// Credentials are a token that the user's account has signed, whose token the operator has signed,
/// whom the server trusts.
#[test]
fn credentials_are_accepted_or_refused() {
    let (node, [ours, theirs]) = (Node::new(), [(); 2].map(|()| tokens::make()));
    let server = Server::start("2m", &ours.configuration);
    let (url, [good, bad]) = (
        server.url(),
        [("good", &ours), ("bad", &theirs)].map(|(name, of)| {
            format!("cluster.credentials_file={}", node.write(name, &of.credentials))
        }),
    );
    node.is_let_in(&url, "t", &[&good]);
    let parts = ["cluster.credentials_file", "doesn't accept the credentials in", "its log"];
    node.is_refused(USAGE, &url, "t", &[&bad], &parts);
    let empty = format!("cluster.credentials_file={}", node.write("empty", "hello\n"));
    let parts = ["cluster.credentials_file", "cannot parse user JWT"];
    node.is_refused(USAGE, &url, "t", &[&empty], &parts);
    let parts = ["cluster.user", "demands a login: set user"];
    node.is_refused(USAGE, &url, "t", &[], &parts);
}

/// A server that lacks what a crawl needs.
#[test]
fn servers_that_can_not_serve_a_crawl() {
    let node = Node::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback addresses can be bound");
    let address = listener.local_addr().expect("it is bound");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("a node connects");
            let info =
                r#"{"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576}"#;
            write!(stream, "INFO {info}\r\n").expect("the node reads");
            for line in BufReader::new(stream.try_clone().expect("a descriptor")).lines() {
                if line.is_ok_and(|line| line == "PING") {
                    stream.write_all(b"PONG\r\n").expect("the node reads");
                }
            }
        });
        let parts = ["cluster.servers", "version 2.9.10", "install nats-server 2.12 or newer"];
        node.is_refused(USAGE, &format!("nats://{address}"), "t", &[], &parts);
    });
    stop_listening(listener);
    let parts = ["cluster.servers", "is the server running?"];
    node.is_refused(SYSTEM, &format!("nats://{address}"), "t", &[], &parts);
    let server = Server::start("2m", "jetstream: false");
    let parts = ["cluster.servers", "is JetStream on (a jetstream block"];
    node.is_refused(SYSTEM, &server.url(), "t", &[], &parts);
    let server = Server::start("2m", "");
    let parts = ["cluster.replicas", "replicas > 1 not supported", "start as many servers"];
    node.is_refused(USAGE, &server.url(), "t", &["cluster.replicas=3"], &parts);
}

/// A stream that someone else has made under the crawl's name, with limits by which it would lose
/// messages.
#[test]
fn streams_of_others_are_not_used() {
    let (server, node) = (Server::start("2m", ""), Node::new());
    let mut client = Client::connect(server.address());
    client.greet();
    let make = |client: &mut Client, name: &str, more: &str| {
        let text = format!(r#"{{"name":"sted-{name}","subjects":["sted.{name}.log.*"]{more}}}"#);
        client.request(&format!("$JS.API.STREAM.CREATE.sted-{name}"), &text);
    };
    let good = r#","discard":"new","allow_direct":true,"allow_atomic":true"#;
    for (name, more, wrong) in [
        ("default", "", "a discard policy that isn't new, no allow_direct, no allow_atomic"),
        ("few", r#","max_msgs":1000"#, "has max_msgs"),
        ("old", r#","max_age":3600000000000"#, "has max_age"),
        ("memory", r#","storage":"memory""#, "has storage in memory"),
        ("one", r#","max_msgs_per_subject":1,"discard_new_per_subject":false"#, "has max_msgs_per"),
        ("queue", r#","retention":"workqueue""#, "has a retention that isn't limits"),
    ] {
        make(&mut client, name, &format!("{}{more}", if more.is_empty() { "" } else { good }));
        let parts = ["cluster.name", wrong, "edit it, or let sted make it under another name"];
        node.is_refused(USAGE, &server.url(), name, &[], &parts);
    }
    client.request("$JS.API.STREAM.CREATE.sted-other", &STREAM.replace("LOG", "sted-other"));
    node.is_refused(USAGE, &server.url(), "other", &[], &["cluster.name", "other subjects"]);
}
