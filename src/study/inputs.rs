//! Reads the files of the study that a configuration names: a link graph, and its hosts.

mod lines;

use super::web::Keys;
use super::web::graph::{Cut, EdgeList, Graph, HostRanges, Links, unpack_xz};
use crate::commands::{Exit, Failure};
use crate::conf::{Conf, Lab, Web};
use crate::os::input;
use lines::each_line;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The largest array of a link graph in bytes: as many numbers as 32 bits can count.
const GRAPH_BYTES_MAX: usize = 16 << 30;

/// The largest file of a link graph in bytes, compressed or not.
const GRAPH_FILE_BYTES_MAX: u64 = 16 << 30;

/// The longest document of public keys, in bytes.
const KEYS_BYTES_MAX: u64 = 1 << 20;

/// The most links that a list may have: while it is sorted, each takes twelve bytes, 16 GiB in all.
const LIST_LINKS_MAX: usize = GRAPH_BYTES_MAX / 12;

/// Returns the files that the study's sections of `conf` name: the key of each, and its path.
pub(crate) fn files_named(conf: &Conf) -> Vec<(&'static str, PathBuf)> {
    let graph = conf.web.graph.iter().flat_map(|place| match place.is_file() {
        true => vec![place.clone()],
        false => graph_files(place).to_vec(),
    });
    let hosts = conf.web.hosts_file.iter().map(|file| ("web.hosts_file", file.clone()));
    graph.map(|file| ("web.graph", file)).chain(hosts).collect()
}

/// Returns the two files of a link graph: the number of links of each page, and the targets. Each
/// may be compressed (xz); if both forms exist, the uncompressed one is used.
fn graph_files(folder: &Path) -> [PathBuf; 2] {
    ["outdeg.u32", "dst.u32"].map(|name| {
        let (plain, packed) = (folder.join(name), folder.join(format!("{name}.xz")));
        if !plain.exists() && packed.exists() { packed } else { plain }
    })
}

/// Reads the link graph at `place`, a file or a directory, and its hosts: from the file that `conf`
/// names, else by a guess.
///
/// # Errors
/// The first mistake in the files, with the file, the line if it has lines, and a fix.
pub(crate) fn graph(conf: &Web, place: &Path) -> Result<Graph, Failure> {
    let links = if place.is_file() { listed_links(place) } else { packed_links(place) };
    let links = links.map_err(|text| wrong("web.graph", text))?;
    let Some(file) = &conf.hosts_file else { return Ok(Graph::cut(links, Cut::default())) };
    let graph = listed_hosts(file).and_then(|ranges| {
        let graph = Graph::listed(links, ranges);
        graph.map_err(|(line, flaw)| format!("{}:{line}: {flaw}", file.display()))
    });
    graph.map_err(|text| wrong("web.hosts_file", text))
}

/// Reads the public keys that a lab accepts signatures of; `None` if it knows none.
///
/// # Errors
/// The file can't be read, or has no keys.
pub(crate) fn keys(conf: &Lab) -> Result<Option<Keys>, Failure> {
    let Some(file) = &conf.keys_file else { return Ok(None) };
    let fault = |text: String| wrong("lab.keys_file", format!("{}: {text}", file.display()));
    let text = input::read(file, KEYS_BYTES_MAX).map_err(|error| fault(error.to_string()))?;
    Keys::parse(&String::from_utf8_lossy(&text)).map(Some).map_err(fault)
}

fn wrong(key: &str, text: String) -> Failure {
    Failure::new(Exit::Usage, format!("{key}: {text}"))
}

/// Reads links from a text file, one a line.
fn listed_links(file: &Path) -> Result<Links, String> {
    let mut list = EdgeList::default();
    each_line(file, |line, _| {
        list.read_line(line, LIST_LINKS_MAX).map_err(|flaw| flaw.to_string())
    })?;
    list.links().map_err(|flaw| format!("{}: {flaw}", file.display()))
}

/// Reads links from the two arrays in a directory.
fn packed_links(folder: &Path) -> Result<Links, String> {
    let named = |place: &Path, why: &dyn Display| format!("{}: {why}", place.display());
    let read = |file: &PathBuf| {
        let bytes = input::read(file, GRAPH_FILE_BYTES_MAX).map_err(|error| named(file, &error))?;
        if file.extension().is_some_and(|extension| extension == "xz") {
            return unpack_xz(&bytes, GRAPH_BYTES_MAX).map_err(|flaw| named(file, &flaw));
        }
        Ok(bytes)
    };
    let [degrees, targets] = graph_files(folder);
    let (degrees, targets) = (read(&degrees)?, read(&targets)?);
    Links::read(&degrees, &targets).map_err(|flaw| named(folder, &flaw))
}

/// Reads which pages are on one host from a text file, a range a line.
fn listed_hosts(file: &Path) -> Result<HostRanges, String> {
    let mut ranges = HostRanges::default();
    each_line(file, |line, number| {
        ranges.read_line(line, number).map_err(|flaw| flaw.to_string())
    })?;
    Ok(ranges)
}
