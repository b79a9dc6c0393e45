//! A nats-server for tests of crawls by several nodes, and a relay in front of it that can be cut.
//! `refused` has what nodes and servers refuse of each other.
//!
//! The server and the relay have loopback addresses of their own. Connections from 127.0.0.1 can't
//! take their ports while the server is down or the relay is cut, nor connect to themselves.

mod client;
#[cfg(feature = "cluster")]
mod refused;
mod relay;
mod server;
#[cfg(feature = "cluster")]
mod tokens;

#[cfg(feature = "study")]
pub(crate) use client::Client;
pub(crate) use relay::Relay;
pub(crate) use server::Server;

#[cfg(not(feature = "study"))]
use client::Client;
use serde_json::Value;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

/// How long a client waits for what must not come.
const SILENCE: Duration = Duration::from_millis(300);

const STREAM: &str = r#"{"name":"LOG","subjects":["log.>"],"storage":"file"}"#;

/// The first line of a connection names a version that stores batches of messages as a whole, and
/// the caller's lines of the configuration are in force.
#[test]
fn a_server_has_jetstream_and_is_new_enough() {
    let secret = "authorization { user: node, password: secret }";
    let server = Server::start("2m", secret);
    let mut client = Client::connect(server.address());
    let info = client.info.clone();
    let version = info["version"].as_str().expect("a version");
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next(), numbers.next());
    assert!(version >= (Some(2), Some(12)), "{info}");
    assert_eq!(info["jetstream"], true, "{info}");
    client.send("CONNECT {}\r\nPING\r\n");
    assert_eq!(client.line().expect("a reply"), "-ERR 'Authorization Violation'");
    let mut client = Client::connect(server.address());
    client.send("CONNECT {\"verbose\":false,\"user\":\"node\",\"pass\":\"secret\"}\r\nPING\r\n");
    assert_eq!(client.line().expect("a reply"), "PONG");
}

/// What was acknowledged is there after the server was killed, at the same address.
#[test]
fn an_acknowledged_message_survives_a_kill() {
    let mut server = Server::start("always", "");
    let url = server.url();
    let mut client = Client::connect(server.address());
    client.greet();
    client.request("$JS.API.STREAM.CREATE.LOG", STREAM);
    let acknowledged = client.request("log.1", "hello");
    assert_eq!((&acknowledged["stream"], &acknowledged["seq"]), (&"LOG".into(), &1.into()));
    server.kill();
    assert!(client.line().is_err(), "its connections end with it");
    let refused = TcpStream::connect(server.address()).expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    server.restart();
    assert_eq!(server.url(), url);
    let mut client = Client::connect(server.address());
    client.greet();
    let stored = client.request("$JS.API.STREAM.MSG.GET.LOG", r#"{"seq":1}"#);
    assert_eq!(stored["message"]["data"], "aGVsbG8=", "{stored}\n{}", server.output());
    let state: Value = serde_json::from_str(&server.monitor("/jsz")).expect("JSON");
    assert_eq!(state["messages"], 1, "{state}");
}

/// A stopped server keeps its connections, says nothing, and answers later.
#[test]
fn a_stopped_server_answers_when_it_goes_on() {
    let server = Server::start("2m", "");
    let mut client = Client::connect(server.address());
    client.greet();
    server.stop();
    server.stop();
    client.send("PING\r\n");
    client.wait_at_most(SILENCE);
    let kind = client.line().expect_err("it is stopped").kind();
    assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind}");
    server.go_on();
    client.wait_at_most(client::WAIT_MAX);
    assert_eq!(client.line().expect("a reply"), "PONG");
}

/// A cut closes all connections and refuses new ones until it is restored, however often; the
/// server notices nothing else.
#[test]
fn a_relay_is_cut_and_restored() {
    let mut server = Server::start("2m", "");
    let relay = Relay::listen(server.address());
    for _ in 0..3 {
        let mut clients = [(); 3].map(|()| Client::connect(relay.address()));
        clients.iter_mut().for_each(Client::greet);
        relay.cut();
        assert!(clients.iter_mut().all(|client| client.line().is_err()), "all are closed");
        let refused = TcpStream::connect(relay.address()).expect_err("the relay is cut");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        Client::connect(server.address()).greet();
        relay.mend();
    }
    // More than what buffers on the way hold.
    let long = "x".repeat(900 << 10);
    let mut client = Client::connect(relay.address());
    client.greet();
    client.request("$JS.API.STREAM.CREATE.LOG", STREAM);
    for number in 1..=5 {
        assert_eq!(client.request("log.1", &long)["seq"], number);
    }
    let stored = client.request("$JS.API.STREAM.MSG.GET.LOG", r#"{"seq":5}"#);
    let data = stored["message"]["data"].as_str().expect("the message");
    assert_eq!(data.len(), long.len().div_ceil(3) * 4, "in base64");
    server.kill();
    assert!(client.line().is_err(), "the end of the server passes through");
    let client = TcpStream::connect(relay.address()).expect("the relay still listens");
    client.set_read_timeout(Some(client::WAIT_MAX)).expect("socket options can be set");
    assert_eq!((&client).read(&mut [0]).unwrap_or(0), 0, "and closes what can't be passed on");
    server.restart();
    Client::connect(relay.address()).greet();
    let address = relay.address();
    drop(relay);
    assert!(TcpStream::connect(address).is_err(), "it ends at once");
}
