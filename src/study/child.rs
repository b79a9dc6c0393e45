//! Runs the lab (a server of synthetic web sites) as a child process of a crawl: started before the
//! crawl, stopped with it.
//!
//! The child is this program's `web` command with the same configuration. It prints its ports as
//! one line of JSON; it exits when its standard input ends, so it can't outlive its crawl.

use crate::commands::{ConfFile, Exit, Failure};
use crate::conf::{Conf, HostsFile};
use crate::dns::address::Block;
use crate::os::{disk, signal};
use crate::study::settings;
use crate::study::web::{Ports, Web};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A running lab: the child process, and what it printed when it was ready.
#[derive(Debug)]
pub(crate) struct Lab {
    child: Child,
    /// The write end of the child's standard input; the child exits when it is closed.
    stdin: Option<ChildStdin>,
    ready: Value,
}

/// Starts the lab of a crawl if `conf` has a `[lab]`, and adapts `conf` to it; returns `None` if
/// `conf` has none. The lab of a resumed crawl uses the ports it had before, because the crawl's
/// URLs name them.
///
/// # Errors
/// The lab doesn't start, or its ports can't be stored in `directory`.
pub(crate) fn lab_of(
    conf: &mut Conf,
    file: &ConfFile,
    directory: &Path,
) -> Result<Option<Lab>, Failure> {
    if conf.lab.is_none() {
        return Ok(None);
    }
    let lab = Lab::start(file, known_ports(directory))?;
    let Ports { http, https } = lab.ports()?;
    let text = json!({ "http_port": http, "https_port": https }).to_string();
    disk::replace(directory, "lab.json", text.as_bytes()).map_err(|error| {
        let file = directory.join("lab.json");
        Failure::new(Exit::Disk, format!("{}: {error}", file.display()))
    })?;
    lab.adapt(conf)?;
    Ok(Some(lab))
}

/// Adapts the configuration of a crawl to the lab that it ran against, which is not started: its
/// seeds and addresses.
pub(crate) fn recall_lab(conf: &mut Conf, directory: &Path) {
    if conf.lab.is_none() {
        return;
    }
    conf.connections.addresses_allowed.push(loopback());
    if conf.job.seeds.is_empty()
        && conf.job.seeds_file.is_none()
        && let Some(ports) = known_ports(directory)
    {
        conf.job.seeds = Web::new(settings::web(&conf.web), ports).seeds();
    }
}

/// Returns the ports of the lab that an earlier run of the job used, if there was one.
fn known_ports(directory: &Path) -> Option<Ports> {
    let text = disk::read(directory, "lab.json").ok()?;
    let known: Value = serde_json::from_slice(&text).ok()?;
    let port = |name: &str| known[name].as_u64()?.try_into().ok();
    Some(Ports { http: port("http_port")?, https: port("https_port")? })
}

fn loopback() -> Block {
    Block::new(IpAddr::from([127, 0, 0, 0]), 8).expect("8 of 32 bits")
}

impl Lab {
    /// Starts the lab of the configuration `file` and waits until it serves. It listens on
    /// `ports` if they are given, else on free ones.
    ///
    /// # Errors
    /// The child could not be started, or exited before it was ready.
    pub(crate) fn start(file: &ConfFile, ports: Option<Ports>) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::new(Exit::System, format!("the lab: {text}"));
        let program = std::env::current_exe().map_err(|error| wrong(error.to_string()))?;
        let ports = ports.map(|Ports { http, https }| format!("--ports={http},{https}"));
        let mut child = Command::new(program)
            .arg("web")
            .args(file.arguments())
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

    /// Adapts the configuration of a crawl to the lab: its name server, its addresses, its seeds
    /// and its authority.
    ///
    /// # Errors
    /// The lab did not report its name server; no other one must be queried for its names.
    pub(crate) fn adapt(&self, conf: &mut Conf) -> Result<(), Failure> {
        let text = |name: &str| self.ready[name].as_str().unwrap_or_default();
        let dns = text("dns").parse().map_err(|_| {
            Failure::new(Exit::System, format!("the lab: no name server in {}", self.ready))
        })?;
        conf.names.servers = vec![dns];
        conf.names.hosts_file = HostsFile::None;
        conf.connections.addresses_allowed.push(loopback());
        if !text("ca").is_empty() {
            conf.tls.roots_file = Some(PathBuf::from(text("ca")));
        }
        if conf.job.seeds.is_empty() && conf.job.seeds_file.is_none() {
            let seeds = self.ready["seeds"].as_array().into_iter().flatten();
            conf.job.seeds = seeds.filter_map(|seed| seed.as_str().map(str::to_owned)).collect();
        }
        Ok(())
    }

    /// Stops the lab and waits until its process has exited.
    pub(crate) fn end(self) {
        drop(self);
    }

    /// Returns the CPU time that the lab has used so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        Some(signal::cpu_of_process_ns(self.child.id())? / 1_000)
    }

    /// Returns the ports in the URLs of the lab.
    ///
    /// # Errors
    /// The lab did not report them.
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
        // The child exits by itself, since its standard input is closed; waiting prevents a zombie
        // process.
        let _ = self.child.wait();
    }
}
