//! A disk in memory for unit tests, with injected faults: a full disk, torn appends, failed syncs,
//! and loss of power.

use super::{Disk, Error};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle on a disk in memory. Clones share the same files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    /// The files that were created or removed, in order, as far as that is not durable yet.
    changes: Vec<Change>,
    /// The number of bytes that all files together may take; `None` for no limit.
    room: Option<u64>,
    /// Whether an append that exceeds `room` leaves the bytes that fit; if not, it leaves none.
    torn: bool,
    sync_fails: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// The number of bytes that survive a loss of power.
    synced: usize,
    /// Durable bytes after `synced` that were cut off. A loss of power may bring them back until
    /// the file is synced.
    cut: Vec<u8>,
}

#[derive(Debug)]
struct Change {
    name: String,
    /// The file that was removed; `None` if one was created.
    removed: Option<File>,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with the disk in hand")
    }

    /// Limits the total length of all files to `room` bytes; `None` removes the limit. If `torn`,
    /// an append that exceeds the limit fails but leaves the bytes that fit.
    pub(crate) fn limit(&self, room: Option<u64>, torn: bool) {
        let mut state = self.state();
        (state.room, state.torn) = (room, torn);
    }

    /// Sets whether every sync fails from now on.
    pub(crate) fn fail_syncs(&self, fails: bool) {
        self.state().sync_fails = fails;
    }

    /// Simulates a loss of power; `draw(n)` must return a number from 0 to `n`. Each file keeps its
    /// synced bytes and the first `draw(n)` of the `n` others. A truncation that was not synced has
    /// happened only if `draw(1)` returns 1. Of the `n` files that were created in or removed from
    /// a folder, and not synced, only the first `draw(n)` were. What remains is durable.
    pub(crate) fn lose_power(&self, mut draw: impl FnMut(u64) -> u64) {
        let mut state = self.state();
        let mut folders: BTreeMap<String, Vec<Change>> = BTreeMap::new();
        for change in std::mem::take(&mut state.changes) {
            folders.entry(folder_of(&change.name).to_owned()).or_default().push(change);
        }
        for mut changes in folders.into_values() {
            let happened = draw(changes.len() as u64) as usize;
            for Change { name, removed } in changes.drain(happened..).rev() {
                match removed {
                    Some(file) => state.files.insert(name, file),
                    None => state.files.remove(&name),
                };
            }
        }
        for file in state.files.values_mut() {
            if !file.cut.is_empty() && draw(1) == 0 {
                file.bytes.truncate(file.synced);
                file.bytes.append(&mut file.cut);
                file.synced = file.bytes.len();
            }
            let spared = draw((file.bytes.len() - file.synced) as u64) as usize;
            file.bytes.truncate(file.synced + spared);
            file.synced = file.bytes.len();
            file.cut.clear();
        }
    }

    /// Returns the content of a file.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.state().files.get(name).unwrap_or_else(|| panic!("no file {name}")).bytes.clone()
    }

    /// Returns the names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state().files.keys().cloned().collect()
    }

    /// Returns the total length of all files in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.state().used()
    }
}

impl State {
    fn used(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    fn file(&mut self, verb: &'static str, name: &str) -> Result<&mut File, Error> {
        let missing = || Error::new(verb, name, io::ErrorKind::NotFound.into());
        self.files.get_mut(name).ok_or_else(missing)
    }
}

fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Disk for Memory {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let room = state.room.map_or(u64::MAX, |room| room.saturating_sub(state.used()));
        let fits = bytes.len() as u64 <= room;
        let taken = match (fits, state.torn) {
            (true, _) => bytes.len(),
            (false, true) => room as usize,
            (false, false) => 0,
        };
        if taken > 0 || fits {
            if !state.files.contains_key(name) {
                state.changes.push(Change { name: name.to_owned(), removed: None });
            }
            let file = state.files.entry(name.to_owned()).or_default();
            file.bytes.extend_from_slice(&bytes[..taken]);
        }
        let full = || Error::new("append to", name, io::ErrorKind::StorageFull.into());
        if fits { Ok(()) } else { Err(full()) }
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut state = self.state();
        let bytes = &state.file("read", name)?.bytes;
        let rest = bytes.get(offset as usize..).unwrap_or(&[]);
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        Ok(taken)
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        Ok(self.state().files.get(name).map(|file| file.bytes.len() as u64))
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        if state.sync_fails {
            return Err(Error::new("sync", name, io::Error::other("device gone")));
        }
        let file = state.file("sync", name)?;
        file.synced = file.bytes.len();
        file.cut.clear();
        state.changes.retain(|change| folder_of(&change.name) != folder_of(name));
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        let mut state = self.state();
        let file = state.file("truncate", name)?;
        assert!(len <= file.bytes.len() as u64, "{name} is cut, never stretched");
        let len = len as usize;
        if len < file.synced {
            let cut = file.bytes[len..file.synced].to_vec();
            file.cut.splice(..0, cut);
        }
        file.bytes.truncate(len);
        file.synced = file.synced.min(len);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let mut state = self.state();
        state.file("rename", from)?;
        // A rename is durable at once.
        let created = |change: &&mut Change| change.removed.is_none() && change.name == from;
        state.changes.iter_mut().filter(created).for_each(|change| change.name = to.to_owned());
        let file = state.files.remove(from).expect("it was there just now");
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        state.file("remove", name)?;
        let removed = state.files.remove(name);
        state.changes.push(Change { name: name.to_owned(), removed });
        Ok(())
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let state = self.state();
        let names = state.files.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }
}
