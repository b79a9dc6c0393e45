//! The lab: serves a synthetic web on real sockets, with its own name server, certificates and log.
//!
//! It is one thread with one poller. Each address of the web (127.1.x.y) has one listener; all
//! plain-text listeners share one probed port and all TLS listeners another; the name server is on
//! 127.0.0.1. Replies are made once and cached up to a limit, so that a benchmark measures the
//! crawler. What a hostile host does is a list of steps from [`crate::study::web::wire`]; this
//! folder only carries it out.
//!
//! It is a test instrument: it trusts its clients, but still limits the memory of a connection. It
//! logs who connected when, so that politeness can be proven from outside the crawler.
//!
//! Laws: replies on a connection come in the order of the requests (except from hosts that mix them
//! up); a host never answers more requests on a connection than it allows; what was sent before an
//! orderly close arrives, even if the client has sent more requests.
//!
//! Cost (measured): a cached reply takes one read, one look-up and one vectored write; for 16.7 kB
//! that is 5 to 7 us of the server's core, 97% of them in the kernel.

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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Settings of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The web to serve.
    pub web: web::Settings,
    /// The limits of the crawler that the manifest assumes.
    pub budget: Budget,
    /// Port of the plain-text hosts; `None` probes for a free one.
    pub http_port: Option<u16>,
    /// Port of the TLS hosts; `None` probes for a free one.
    pub https_port: Option<u16>,
    /// Port of the name server, UDP and TCP; `None` probes for a free one.
    pub dns_port: Option<u16>,
    /// Time to live of the name server's answers.
    pub dns_ttl: Duration,
    /// File for the log of connections, one JSON object per line; `None` for no log.
    pub log: Option<PathBuf>,
    /// Whether the log also has a line for each request.
    pub requests_logged: bool,
    /// File for the manifest; `None` for none.
    pub manifest: Option<PathBuf>,
    /// File for the certificate of the lab's authority in PEM; `None` for none.
    pub ca: Option<PathBuf>,
    /// The most connections open at the same time; more wait in the listeners' queues.
    pub connections_max: usize,
    /// Memory for cached replies, in bytes.
    pub cache_bytes_max: usize,
    /// Whether all replies are made before the lab is ready (as far as the memory suffices).
    pub warm: bool,
    /// Whether the lab exits when its standard input ends, as it does when the parent process dies.
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

/// The ports and files of a running lab; written as JSON for whoever started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true: the field distinguishes this line of JSON from other output.
    pub ready: bool,
    /// Address of the name server, UDP and TCP.
    pub dns: SocketAddr,
    /// Port of all plain-text hosts.
    pub http_port: u16,
    /// Port of all TLS hosts.
    pub https_port: u16,
    /// The number of hosts, hostile ones included.
    pub hosts: u32,
    /// URLs to start a crawl from.
    pub seeds: Vec<String>,
    /// File of the authority's certificate; `None` if none was written.
    pub ca: Option<PathBuf>,
    /// File of the manifest; `None` if none was written.
    pub manifest: Option<PathBuf>,
    /// File of the log; `None` if there is no log.
    pub log: Option<PathBuf>,
    /// When the web began, in seconds since 1970; `None` if its pages don't change.
    pub began: Option<u64>,
}

impl Ready {
    /// Returns the ports and files as one line of JSON, without a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain fields only")
    }
}

/// Totals of what the lab has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of connections accepted.
    pub connections: u64,
    /// The number of requests answered, at least in part.
    pub requests: u64,
    /// The number of distinct pages of well-behaved hosts that were requested.
    pub pages: u64,
    /// The number of queries received by the name server.
    pub lookups: u64,
    /// The number of bytes of replies sent, counted before TLS encrypts them.
    pub bytes: u64,
}

/// Why the lab can't start or continue.
#[derive(Debug)]
pub enum Error {
    /// A file could not be written.
    File(PathBuf, io::Error),
    /// The web has this many addresses, each with a listener, and the process may not open that
    /// many descriptors.
    Descriptors(usize),
    /// A socket operation failed: what was tried, and the system's error.
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

/// Serves the web until `stop` is set (checked every 50 ms) or standard input ends, if the settings
/// say so. Calls `ready` once, as soon as requests are accepted.
pub fn serve(
    settings: &Settings,
    ready: &mut dyn FnMut(&Ready),
    stop: &AtomicBool,
) -> Result<Totals, Error> {
    // Addresses don't depend on ports, so the sockets are opened before the web whose URLs name
    // them.
    let mut plan = settings.web.clone();
    let began = plan.changes.as_mut().map(begin);
    let plan = Web::new(plan, Ports::default());
    let sockets = sockets::open(settings, &plan)?;
    let ports = Ports { http: sockets.http_port, https: sockets.https_port };
    let web = plan.at_ports(ports);
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
        began,
    };
    let mut server = server::Server::new(settings, web, sockets, &authority)?;
    ready(&found);
    server.run(stop)
}

/// Begins the web now if it hasn't begun. Returns when it began, in seconds since 1970.
fn begin(changes: &mut web::Changes) -> u64 {
    if changes.epoch == 0 {
        changes.epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    }
    changes.epoch
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
