//! Tracks the files of the seen-set by name: which may be removed, and when.
//!
//! Law: a file is not removed while the durable checkpoint names it, or a later one that may have
//! become durable. A file that none names is removed by the next job. A name is never used twice.

use super::bucket::FOLDER;
use crate::ground::disk::{self, Disk};
use std::collections::BTreeSet;

/// The names of all files of the seen-set, by what they are needed for.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The number in the name of the next file.
    pub(super) serial: u64,
    /// The names of files that the seen-set no longer needs.
    gone: Vec<String>,
    /// The names of files that the durable mark needs, or a later mark.
    marked: BTreeSet<String>,
    /// The names of files that the last mark needs.
    last: BTreeSet<String>,
    /// True once the files of an earlier crawl were removed.
    is_swept: bool,
}

impl Files {
    /// Continues a crawl from a mark that needs the files `named`.
    pub(super) fn resume(serial: u64, named: BTreeSet<String>) -> Self {
        let marked = named.clone();
        Self { serial, gone: Vec::new(), marked, last: named, is_swept: false }
    }

    /// Returns the number for the name of a new file.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial - 1
    }

    /// Records that the seen-set no longer needs a file.
    pub(super) fn release(&mut self, name: String) {
        self.gone.push(name);
    }

    /// Returns the names of the files that may be removed now, and drops them from its lists.
    pub(super) fn removable(&mut self) -> Vec<String> {
        let marked = &self.marked;
        self.gone.extract_if(.., |name| !marked.contains(name)).collect()
    }

    /// Records that a new mark needs these files.
    pub(super) fn mark(&mut self, names: BTreeSet<String>) {
        self.marked.extend(names.iter().cloned());
        self.last = names;
    }

    /// Records that the last mark is durable.
    pub(super) fn on_durable(&mut self) {
        self.marked.clone_from(&self.last);
    }

    /// Removes the files of another crawl, and those of this crawl that were written after its
    /// mark. Called before the first file is written.
    pub(super) fn sweep(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if self.is_swept {
            return Ok(());
        }
        for file in disk.list(FOLDER)? {
            let name = format!("{FOLDER}/{file}");
            if !self.last.contains(&name) {
                disk.remove(&name)?;
            }
        }
        self.is_swept = true;
        Ok(())
    }
}
