//! A nats-server with JetStream that can be killed, restarted and stopped.

use crate::real::process::{Running, START_MAX, free_port};
use crate::util::root;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CLIENTS: &str = "127.78.0.1";
/// The monitoring port has an address of its own, so that the two ports can't be the same.
const MONITORING: &str = "127.78.0.2";
/// The servers of a NATS cluster reach each other here.
#[cfg(feature = "study")]
const ROUTES: &str = "127.78.0.4";

/// A server, which is killed when this is dropped. Its streams are in a temporary directory.
#[derive(Debug)]
pub(crate) struct Server {
    clients: SocketAddr,
    monitoring: SocketAddr,
    /// The lines of its configuration, without the limits of JetStream.
    #[cfg(feature = "study")]
    lines: [String; 2],
    running: Running,
    folder: TempDir,
}

impl Server {
    /// Starts a server and waits until it is healthy. `sync_interval` is how long it may wait until
    /// what it has acknowledged is synced to disk, or `always`; `more` is lines for its
    /// configuration (users, TLS).
    pub(crate) fn start(sync_interval: &str, more: &str) -> Self {
        Self::start_limited(sync_interval, "", more)
    }

    /// Starts a server with limits of JetStream, such as `max_file_store: 1MB`.
    pub(crate) fn start_limited(sync_interval: &str, limits: &str, more: &str) -> Self {
        let server = Self::begin(sync_interval, limits, more);
        server.wait_until_healthy();
        server
    }

    /// Starts servers that are one NATS cluster.
    #[cfg(feature = "study")]
    pub(crate) fn start_several(count: usize) -> Vec<Self> {
        let routes: Vec<_> = (0..count).map(|_| free_port(ROUTES)).collect();
        let all: Vec<String> = routes.iter().map(|route| format!("\"nats://{route}\"")).collect();
        let start = |(number, own): (usize, &SocketAddr)| {
            let all = all.join(", ");
            let more = format!(
                "server_name: s{number}\n\
                 cluster {{ name: several, listen: \"{own}\", routes: [{all}] }}"
            );
            Self::begin("2m", "", &more)
        };
        let servers: Vec<Self> = routes.iter().enumerate().map(start).collect();
        // None is healthy before most are there.
        servers.iter().for_each(Self::wait_until_healthy);
        servers
    }

    fn begin(sync_interval: &str, limits: &str, more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("sted-nats-").tempdir();
        let folder = folder.expect("temporary folders can be made");
        let (clients, monitoring) = (free_port(CLIENTS), free_port(MONITORING));
        let store = folder.path().join("jetstream");
        let lines = [
            format!(
                "listen: \"{clients}\"\nhttp: \"{monitoring}\"\n\
                 jetstream {{ store_dir: {store:?}, sync_interval: {sync_interval:?}"
            ),
            format!("}}\n{more}\n"),
        ];
        write(&folder, &lines, limits);
        let running = run(&folder, clients);
        Self {
            clients,
            monitoring,
            #[cfg(feature = "study")]
            lines,
            running,
            folder,
        }
    }

    /// Restarts it without limits of JetStream.
    #[cfg(feature = "study")]
    pub(crate) fn lift_limits(&mut self) {
        write(&self.folder, &self.lines, "");
        self.restart();
    }

    /// Returns the address for clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.clients
    }

    /// Returns the address of the monitoring port.
    #[cfg(feature = "study")]
    pub(crate) fn monitoring(&self) -> SocketAddr {
        self.monitoring
    }

    /// Returns the URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.clients)
    }

    /// Kills it (SIGKILL): nothing more is written or said. From now on connections are
    /// refused.
    pub(crate) fn kill(&mut self) {
        self.running.kill();
    }

    /// Starts it again, at the same addresses and with the same streams. It is killed first if it
    /// runs.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.running = run(&self.folder, self.clients);
        self.wait_until_healthy();
    }

    /// Stops it (SIGSTOP): connections stay open and nobody answers until `go_on`.
    pub(crate) fn stop(&self) {
        self.running.pause();
    }

    /// Lets it go on where it was stopped.
    pub(crate) fn go_on(&self) {
        self.running.resume();
    }

    /// Returns the reply of the monitoring port to a path such as `/jsz`.
    pub(crate) fn monitor(&self, path: &str) -> String {
        self.get(path).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.output()))
    }

    /// Returns what the server has logged, since its first start.
    pub(crate) fn output(&self) -> String {
        self.running.output()
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.monitoring)?;
        stream.set_read_timeout(Some(START_MAX))?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Waits until it has read its streams and accepts clients. It listens before.
    fn wait_until_healthy(&self) {
        let begun = Instant::now();
        loop {
            let health = self.get("/healthz");
            if health.as_ref().is_ok_and(|health| health.contains(r#""status":"ok""#)) {
                return;
            }
            let late = begun.elapsed() > START_MAX;
            assert!(!late, "nats-server isn't healthy: {health:?}\n{}", self.output());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A stopped server would not see a request to stop.
        self.kill();
    }
}

const CONFIGURATION: &str = "server.conf";

fn write(folder: &TempDir, [before, after]: &[String; 2], limits: &str) {
    let text = format!("{before}\n{limits}\n{after}");
    fs::write(folder.path().join(CONFIGURATION), text).expect("the folder is ours");
}

/// Starts the server that `make deps` builds or links; Debian's in PATH is too old.
fn run(folder: &TempDir, listen: SocketAddr) -> Running {
    let program = root().join("target/deps/bin/nats-server").display().to_string();
    let arguments = ["-c", CONFIGURATION].map(str::to_owned);
    Running::start(&program, &arguments, folder.path(), listen)
}
