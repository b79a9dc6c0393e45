//! The lab web as a child process of a crawl: started before it, ended with it.
//!
//! The child is this program's `web` command on the same configuration. It says on one line of
//! JSON where it is; it ends when its standard input does, so it can't outlive its crawl.

use crate::commands::{Exit, Failure};
use crate::conf::{Conf, HostsFile};
use crate::dns::address::Block;
use crate::os::{disk, signal};
use crate::study::web::Ports;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A lab that runs.
#[derive(Debug)]
pub(crate) struct Lab {
    child: Child,
    /// Its end is the child's sign to go.
    stdin: Option<ChildStdin>,
    ready: Value,
}

/// The lab that the crawl of `conf` runs against, if it has a `[lab]`; `conf` is adapted to it.
/// The lab of a crawl that resumes listens on the ports it had, since the crawl's URLs name them.
///
/// # Errors
/// The lab doesn't start, or its ports can't be kept in `directory`.
pub(crate) fn lab_of(
    conf: &mut Conf,
    path: &Path,
    directory: &Path,
) -> Result<Option<Lab>, Failure> {
    if conf.lab.is_none() {
        return Ok(None);
    }
    let known = disk::read(directory, "lab.json").ok();
    let known: Option<Value> = known.and_then(|text| serde_json::from_slice(&text).ok());
    let port = |name: &str| known.as_ref()?[name].as_u64()?.try_into().ok();
    let ports = port("http_port").zip(port("https_port"));
    let lab = Lab::start(path, ports.map(|(http, https)| Ports { http, https }))?;
    let Ports { http, https } = lab.ports()?;
    let text = json!({ "http_port": http, "https_port": https }).to_string();
    disk::replace(directory, "lab.json", text.as_bytes()).map_err(|error| {
        let file = directory.join("lab.json");
        Failure::new(Exit::Disk, format!("{}: {error}", file.display()))
    })?;
    lab.adapt(conf)?;
    Ok(Some(lab))
}

impl Lab {
    /// Starts the lab of the configuration at `path` and waits until it serves; on these `ports`,
    /// if any are given.
    ///
    /// # Errors
    /// The child could not be started, or ended before it was ready.
    pub(crate) fn start(path: &Path, ports: Option<Ports>) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::new(Exit::System, format!("the lab: {text}"));
        let program = std::env::current_exe().map_err(|error| wrong(error.to_string()))?;
        let ports = ports.map(|Ports { http, https }| format!("--ports={http},{https}"));
        let mut child = Command::new(program)
            .arg("web")
            .arg(path)
            .args(ports)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| wrong(error.to_string()))?;
        let stdin = child.stdin.take();
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it was asked for");
        let read = BufReader::new(stdout).read_line(&mut line);
        let ready: Option<Value> = read.ok().and_then(|_| serde_json::from_str(&line).ok());
        let mut lab = Self { child, stdin, ready: Value::Null };
        match ready.filter(|ready| ready["ready"] == true) {
            Some(ready) => lab.ready = ready,
            None => return Err(wrong("ended before it was ready".to_owned())),
        }
        Ok(lab)
    }

    /// Makes a crawl live in the lab: names from its server, addresses of its range, its seeds,
    /// its authority.
    ///
    /// # Errors
    /// It didn't say where its names are: nobody else is to be asked for them.
    pub(crate) fn adapt(&self, conf: &mut Conf) -> Result<(), Failure> {
        let text = |name: &str| self.ready[name].as_str().unwrap_or_default();
        let dns = text("dns").parse().map_err(|_| {
            Failure::new(Exit::System, format!("the lab: no name server in {}", self.ready))
        })?;
        conf.names.servers = vec![dns];
        conf.names.hosts_file = HostsFile::None;
        let loopback = Block::new(IpAddr::from([127, 0, 0, 0]), 8).expect("8 of 32 bits");
        conf.connections.addresses_allowed.push(loopback);
        if !text("ca").is_empty() {
            conf.tls.roots_file = Some(PathBuf::from(text("ca")));
        }
        if conf.job.seeds.is_empty() && conf.job.seeds_file.is_none() {
            let seeds = self.ready["seeds"].as_array().into_iter().flatten();
            conf.job.seeds = seeds.filter_map(|seed| seed.as_str().map(str::to_owned)).collect();
        }
        Ok(())
    }

    /// Ends the lab.
    pub(crate) fn end(self) {
        drop(self);
    }

    /// CPU time that it has taken so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        Some(signal::cpu_of_process_ns(self.child.id())? / 1_000)
    }

    /// The ports that its URLs name.
    ///
    /// # Errors
    /// It didn't say.
    pub(crate) fn ports(&self) -> Result<Ports, Failure> {
        let port = |name: &str| self.ready[name].as_u64().and_then(|port| port.try_into().ok());
        match (port("http_port"), port("https_port")) {
            (Some(http), Some(https)) => Ok(Ports { http, https }),
            _ => {
                let text = format!("the lab: no ports in {}", self.ready);
                Err(Failure::new(Exit::System, text))
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It goes by itself; to wait keeps it from being left behind as a zombie.
        let _ = self.child.wait();
    }
}
