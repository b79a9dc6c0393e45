//! A client of NATS that is a few lines of its text protocol.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits for a reply.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(20);

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// What the server says of itself in the first line.
    pub(crate) info: Value,
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects, and reads the first line.
    pub(crate) fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).expect("it listens");
        let mut client = Self { info: Value::Null, stream: BufReader::new(stream) };
        client.wait_at_most(WAIT_MAX);
        let line = client.line().expect("the first line");
        let info = line.strip_prefix("INFO ").unwrap_or_else(|| panic!("no INFO: {line}"));
        client.info = serde_json::from_str(info).expect("JSON");
        client
    }

    /// Subscribes to what requests return, and waits until the server has answered.
    pub(crate) fn greet(&mut self) {
        self.introduce(&json!({ "verbose": false }));
    }

    /// Logs in, and does as `greet`.
    #[cfg(feature = "study")]
    pub(crate) fn log_in(&mut self, user: &str, password: &str) {
        self.introduce(&json!({ "verbose": false, "user": user, "pass": password }));
    }

    fn introduce(&mut self, with: &Value) {
        self.send(&format!("CONNECT {with}\r\nSUB reply 1\r\nPING\r\n"));
        assert_eq!(self.line().expect("a reply"), "PONG");
    }

    /// Publishes a message and returns the reply, which must not be an error.
    pub(crate) fn request(&mut self, subject: &str, message: &str) -> Value {
        self.send(&format!("PUB {subject} reply {}\r\n{message}\r\n", message.len()));
        let line = self.line().expect("a reply");
        let length = line.strip_prefix("MSG reply 1 ").and_then(|length| length.parse().ok());
        let length: usize = length.unwrap_or_else(|| panic!("{subject}: {line}"));
        let mut reply = vec![0; length + 2];
        self.stream.read_exact(&mut reply).expect("the message and its end");
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        assert!(reply["error"].is_null(), "{subject}: {reply}");
        reply
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).expect("the connection is open");
    }

    /// Returns the next line without its end, and answers the server's PING. The end of the
    /// connection is an error.
    pub(super) fn line(&mut self) -> io::Result<String> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "PING" => self.stream.get_mut().write_all(b"PONG\r\n")?,
                line => return Ok(line.to_owned()),
            }
        }
    }

    /// Sets how long `line` waits.
    pub(super) fn wait_at_most(&self, time: Duration) {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("socket options can be set");
    }
}
