//! Reads the access logs of the servers: the requests they received.

use super::servers::Server;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A request as its server logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Whether it was the first on its connection.
    pub(super) begins: bool,
    pub(super) status: u16,
    /// Path and query.
    pub(super) target: String,
}

/// Reads the access log of a server that has stopped.
pub(super) fn read(server: Server, folder: &Path) -> Vec<Hit> {
    let file = server.access_log(folder);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut ports = BTreeSet::new();
    let mut read = |line: &str| {
        let hit = match server {
            Server::Caddy => of_json(line, &mut ports),
            Server::Simple => of_python(line),
            // These count requests from 1, the others from 0.
            Server::Nginx | Server::Secure => of_line(line, 1),
            Server::Apache | Server::Lighttpd => of_line(line, 0),
        };
        hit.unwrap_or_else(|| panic!("{}: not a line of it: {line}", file.display()))
    };
    let is_hit = |line: &&str| server != Server::Simple || line.contains(" HTTP/1.");
    text.lines().filter(is_hit).map(&mut read).collect()
}

/// Returns the number of connections that requests came on.
pub(super) fn connections(hits: &[Hit]) -> usize {
    hits.iter().filter(|hit| hit.begins).count()
}

/// Parses `17 200 "GET /path HTTP/1.1"`, which begins with the request's number on its connection.
/// (Ports don't identify connections, because the system reuses them.)
fn of_line(line: &str, first: usize) -> Option<Hit> {
    let (place, rest) = line.split_once(' ')?;
    let (status, request) = rest.split_once(' ')?;
    Some(Hit {
        begins: place.parse::<usize>().ok()? == first,
        status: status.parse().ok()?,
        target: target(request)?,
    })
}

/// Parses `127.0.0.1 - - [20/Nov/2026 10:00:00] "GET /path HTTP/1.1" 200 -`.
fn of_python(line: &str) -> Option<Hit> {
    let (_, rest) = line.split_once("] ")?;
    let (request, result) = rest.rsplit_once("\" ")?;
    let status = result.split(' ').next()?.parse().ok()?;
    Some(Hit { begins: true, status, target: target(request)? })
}

/// Parses a JSON line; it has only ports to identify connections.
fn of_json(line: &str, ports: &mut BTreeSet<u16>) -> Option<Hit> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let request = line.get("request")?;
    Some(Hit {
        begins: ports.insert(request.get("remote_port")?.as_str()?.parse().ok()?),
        status: u16::try_from(line.get("status")?.as_u64()?).ok()?,
        target: request.get("uri")?.as_str()?.to_owned(),
    })
}

/// Returns the target of a request line, which may be quoted.
fn target(request: &str) -> Option<String> {
    let mut words = request.trim_matches('"').split(' ');
    assert_eq!(words.next()?, "GET", "a crawler asks by GET: {request}");
    let target = words.next()?.to_owned();
    words.next().filter(|version| version.starts_with("HTTP/1.")).map(|_| target)
}
