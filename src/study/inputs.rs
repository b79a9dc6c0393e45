//! Reads the files of the study that a configuration names: the arrays of a link graph.

use super::web::graph::{Cut, Graph, unpack_xz};
use crate::commands::{Exit, Failure};
use crate::conf::Conf;
use crate::os::input;
use std::path::{Path, PathBuf};

/// The largest array of a link graph in bytes: as many numbers as 32 bits can count.
const GRAPH_BYTES_MAX: usize = 16 << 30;

/// The largest file of a link graph in bytes, compressed or not.
const GRAPH_FILE_BYTES_MAX: u64 = 16 << 30;

/// Returns the files that the study's sections of `conf` name: the key of each, and its path.
pub(crate) fn files_named(conf: &Conf) -> Vec<(&'static str, PathBuf)> {
    let files = conf.web.graph.iter().flat_map(|folder| graph_files(folder));
    files.map(|file| ("web.graph", file)).collect()
}

/// Returns the two files of a link graph: the number of links of each page, and the targets. Each
/// may be compressed (xz); if both forms exist, the uncompressed one is used.
fn graph_files(folder: &Path) -> [PathBuf; 2] {
    ["outdeg.u32", "dst.u32"].map(|name| {
        let (plain, packed) = (folder.join(name), folder.join(format!("{name}.xz")));
        if !plain.exists() && packed.exists() { packed } else { plain }
    })
}

/// Reads the link graph in a folder and cuts it into hosts.
pub(crate) fn graph(folder: &Path) -> Result<Graph, Failure> {
    let wrong = |place: &Path, why: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("web.graph: {}: {why}", place.display()))
    };
    let read = |file: &PathBuf| {
        let bytes = input::read(file, GRAPH_FILE_BYTES_MAX).map_err(|error| wrong(file, &error))?;
        if file.extension().is_some_and(|extension| extension == "xz") {
            return unpack_xz(&bytes, GRAPH_BYTES_MAX).map_err(|flaw| wrong(file, &flaw));
        }
        Ok(bytes)
    };
    let [degrees, targets] = graph_files(folder);
    let (degrees, targets) = (read(&degrees)?, read(&targets)?);
    Graph::read(&degrees, &targets, Cut::default()).map_err(|flaw| wrong(folder, &flaw))
}
