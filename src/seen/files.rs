//! The station's files by name: which may go, and when.
//!
//! Law: a file that the durable checkpoint names, or one that may have become durable since, is
//! not removed; one that none names goes with the next job. A name is never used twice.

use super::bucket::FOLDER;
use crate::ground::disk::{self, Disk};
use std::collections::BTreeSet;

/// What is known of the files beside their contents.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Goes into the name of the next file.
    pub(super) serial: u64,
    /// Not needed any more.
    gone: Vec<String>,
    /// Named by the durable mark or by one after it.
    marked: BTreeSet<String>,
    /// Named by the last mark.
    last: BTreeSet<String>,
    /// What an earlier crawl left is removed.
    swept: bool,
}

impl Files {
    /// Those of a crawl that goes on from a mark which names `named`.
    pub(super) fn going_on(serial: u64, named: BTreeSet<String>) -> Self {
        let marked = named.clone();
        Self { serial, gone: Vec::new(), marked, last: named, swept: false }
    }

    /// A number for a new file's name.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial - 1
    }

    /// A file isn't needed any more.
    pub(super) fn let_go(&mut self, name: String) {
        self.gone.push(name);
    }

    /// The files that may be removed now; they are forgotten.
    pub(super) fn rubbish(&mut self) -> Vec<String> {
        let marked = &self.marked;
        self.gone.extract_if(.., |name| !marked.contains(name)).collect()
    }

    /// A mark names these files.
    pub(super) fn mark(&mut self, names: BTreeSet<String>) {
        self.marked.extend(names.iter().cloned());
        self.last = names;
    }

    /// The last mark is durable.
    pub(super) fn settled(&mut self) {
        self.marked.clone_from(&self.last);
    }

    /// Before the first file is written: removes what another crawl, or this one after its mark,
    /// has left.
    pub(super) fn sweep(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if self.swept {
            return Ok(());
        }
        for file in disk.list(FOLDER)? {
            let name = format!("{FOLDER}/{file}");
            if !self.last.contains(&name) {
                disk.remove(&name)?;
            }
        }
        self.swept = true;
        Ok(())
    }
}
