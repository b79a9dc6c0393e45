//! The lab: a synthetic web on real sockets, with its own name server, certificates and log.
//!
//! One thread, one poller. Each address of the web (127.1.x.y) has one listener, all plain ones on
//! one probed port and all TLS ones on another; the name server is on 127.0.0.1. Replies are made
//! once and kept up to a cap, so that what a benchmark measures is the crawler. What a hostile host
//! does comes as a list of steps from [`crate::study::web::wire`]; this folder only carries it out.
//!
//! It is a test instrument: it believes its clients to be well-meaning, keeps memory bounded per
//! connection all the same, and writes down who came when, so that politeness can be proven from
//! outside.
//!
//! Laws: replies on a connection come in the order of the requests (but for hosts that mix
//! them up); a host never answers more requests on a connection than it allows; what has been sent
//! before an orderly close arrives, whatever the client had sent beyond.
//! Cost (measured): a kept reply takes one read, one look-up and one vectored write; of 16.7 kB it
//! is 5 to 7 us of the server's core, 97% of them the kernel's.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server on real sockets, beside the program proper"
)]

mod connection;
mod dns;
mod log;
mod replies;
mod request;
mod server;
mod sockets;
mod tls;
mod transport;

#[cfg(test)]
mod tests;

use crate::study::web::{self, Budget, Manifest, Ports, Scheme, Web};
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Settings of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The web to serve.
    pub web: web::Settings,
    /// What the manifest takes the crawler to allow itself.
    pub budget: Budget,
    /// Port of the plain hosts; `None` looks for a free one.
    pub http_port: Option<u16>,
    /// Port of the hosts over TLS; `None` looks for a free one.
    pub https_port: Option<u16>,
    /// Port of the name server, UDP and TCP; `None` looks for a free one.
    pub dns_port: Option<u16>,
    /// Time to live of its answers.
    pub dns_ttl: Duration,
    /// File for the log of connections, one JSON object a line.
    pub log: Option<PathBuf>,
    /// Whether the log also has a line for each request.
    pub requests_logged: bool,
    /// File for the manifest.
    pub manifest: Option<PathBuf>,
    /// File for the certificate of the lab's authority, PEM.
    pub ca: Option<PathBuf>,
    /// Connections open at once; more wait in the listeners' queues.
    pub connections_max: usize,
    /// Memory for replies made once and kept, bytes.
    pub cache_bytes_max: usize,
    /// Whether all replies are made before the lab is ready (as far as the memory goes).
    pub warm: bool,
    /// Whether the lab ends when its standard input does: a child of a process that died.
    pub follow_stdin: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            web: web::Settings::default(),
            budget: Budget::default(),
            http_port: None,
            https_port: None,
            dns_port: None,
            dns_ttl: Duration::from_secs(300),
            log: None,
            requests_logged: false,
            manifest: None,
            ca: None,
            connections_max: 16_000,
            cache_bytes_max: 1 << 30,
            warm: true,
            follow_stdin: false,
        }
    }
}

/// Where everything is, once it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true: marks the line among others.
    pub ready: bool,
    /// The name server, UDP and TCP.
    pub dns: SocketAddr,
    /// Port of all plain hosts.
    pub http_port: u16,
    /// Port of all hosts over TLS.
    pub https_port: u16,
    /// Hosts, hostile ones included.
    pub hosts: u32,
    /// URLs to start from.
    pub seeds: Vec<String>,
    /// The authority's certificate, if it was written.
    pub ca: Option<PathBuf>,
    /// The manifest, if it was written.
    pub manifest: Option<PathBuf>,
    /// The log, if there is one.
    pub log: Option<PathBuf>,
}

impl Ready {
    /// One line of JSON, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain fields only")
    }
}

/// What was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered, or begun to be.
    pub requests: u64,
    /// Different pages of behaving hosts that were asked for whole.
    pub pages: u64,
    /// Questions put to the name server.
    pub lookups: u64,
    /// Bytes of replies handed to the system, before TLS.
    pub bytes: u64,
}

/// Why the lab can't be.
#[derive(Debug)]
pub enum Error {
    /// A file could not be written.
    File(PathBuf, io::Error),
    /// So many addresses take a descriptor each, which is more than there are.
    Descriptors(usize),
    /// No sockets, no ports: what was tried, and what the system said.
    Socket(&'static str, io::Error),
    /// Certificates could not be made.
    Certificate(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, source) => write!(f, "cannot write {}: {source}", path.display()),
            Self::Descriptors(addresses) => write!(
                f,
                "cannot bind the hosts' addresses: each of the {addresses} takes a descriptor, \
                 which is more than the system allows; lower web.hosts, or raise the limit \
                 (ulimit -n)"
            ),
            Self::Socket(what, source) => write!(f, "cannot {what}: {source}"),
            Self::Certificate(what) => write!(f, "cannot make certificates: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, source) | Self::Socket(_, source) => Some(source),
            Self::Certificate(_) | Self::Descriptors(_) => None,
        }
    }
}

/// Serves the web until `stop` is set (looked at every 50 ms) or, if so set, standard input ends.
/// Calls `ready` once, when the first request may come.
pub fn serve(
    settings: &Settings,
    ready: &mut dyn FnMut(&Ready),
    stop: &AtomicBool,
) -> Result<Totals, Error> {
    // Addresses don't hang on ports, so the sockets can come before the web that names them.
    let plan = Web::new(settings.web.clone(), Ports::default());
    let sockets = sockets::open(settings, &plan)?;
    let ports = Ports { http: sockets.http_port, https: sockets.https_port };
    let web = Web::new(settings.web.clone(), ports);
    let authority = tls::Authority::new()?;
    if let Some(path) = &settings.ca {
        write_file(path, |out| out.write_all(authority.pem().as_bytes()))?;
    }
    if let Some(path) = &settings.manifest {
        let manifest = Manifest::new(&web, settings.budget);
        write_file(path, |out| manifest.write(&web, out))?;
    }
    let found = Ready {
        ready: true,
        dns: sockets.dns,
        http_port: ports.http,
        https_port: ports.https,
        hosts: web.hosts(),
        seeds: web.seeds(),
        ca: settings.ca.clone(),
        manifest: settings.manifest.clone(),
        log: settings.log.clone(),
    };
    let mut server = server::Server::new(settings, web, sockets, &authority)?;
    ready(&found);
    server.run(stop)
}

fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        fill(&mut out)?;
        out.flush()
    };
    write().map_err(|source| Error::File(path.to_owned(), source))
}

fn serves_tls(scheme: Scheme) -> bool {
    scheme == Scheme::Https
}
