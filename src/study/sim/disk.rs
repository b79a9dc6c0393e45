//! A disk in memory that can fill up, fail, die and lose power. It has the verbs of the real one:
//! append, read, sync, rename and so on.
//!
//! All handles share one set of files. Reads never fail while the process lives, and stored bytes
//! never decay.
//!
//! # What remains after a loss of power
//!
//! The model is ext4's (data=ordered) and XFS's, without what they do beyond their guarantees:
//! - Of a file, all bytes that were synced remain.
//! - Of what was appended since, nothing, all or any prefix remains, and one page (4 KiB) within it
//!   may read as zeros: the file system writes lengths and pages at different times.
//! - A truncation that was not synced may not have happened; then the old end is back.
//! - Changes of names (a file was created, renamed or removed) keep their order within a folder,
//!   and any number of the first of them has happened; folders are independent of each other. So a
//!   rename has happened or not; if not, its target still is the old file, as far as that was
//!   synced, and a removed file may be back. `sync` of a file makes all changes durable in its
//!   folder and in those above, because [`crate::os::disk`] syncs folders, too.
//!
//! The end of a process alone (`kill -9`) loses nothing that was written: the system has the files.
//! It may happen in the middle of a verb ([`MemoryDisk::die_after`]): then a prefix of an append is
//! there.
//!
//! # Faults
//!
//! The disk has a capacity in bytes, for all files or for those of some names (an append that
//! exceeds it is refused whole, or leaves the part that fitted); a share of syncs fails and makes
//! nothing durable; or a sync reports success and makes nothing durable.

use super::draw::{Draw, Purpose};
use super::settings::DiskFaults;
use crate::ground::disk::{Disk, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory; clones share its files.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<FileId, File>,
    names: BTreeMap<String, FileId>,
    /// The file names that are durable.
    durable: BTreeMap<String, FileId>,
    /// The changes of names that are not durable yet, in order.
    changes: Vec<Change>,
    /// The number of files created so far.
    made: FileId,
    /// The total length in bytes of all files that have a name.
    used: u64,
    faults: DiskFaults,
    draw: Option<Draw>,
    death: Death,
}

/// The number of a file, which renames don't change.
type FileId = u64;

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// The number of durable bytes, from the beginning of the file.
    synced: usize,
    /// Durable bytes that a truncation has cut off, as long as the truncation itself is not
    /// durable.
    cut: Vec<u8>,
    /// The number of bytes that a sync has reported as durable, whether that was true or not.
    promised: usize,
    /// Whether a sync has reported the file's name as durable.
    named: bool,
    /// The number of names that refer to the file: current ones, durable ones, and those of changes
    /// in between.
    links: u32,
}

/// A change of names in one folder: `takes` is the name that is removed, `gives` the name that is
/// added, with its file.
#[derive(Debug)]
struct Change {
    folder: String,
    takes: Option<String>,
    gives: Option<(String, FileId)>,
}

/// The files that have gained or lost a name by a change.
#[derive(Debug)]
struct Moved {
    gained: Option<FileId>,
    lost: [Option<FileId>; 2],
}

/// When the process that uses the disk dies.
#[derive(Debug, Default)]
enum Death {
    #[default]
    Never,
    /// In the middle of a verb, after this many more verbs that change something.
    After(u64, Draw),
    Dead,
}

/// Whether the process survives a verb (`Next`) or dies in the middle of it (`Last`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breath {
    Next,
    Last,
}

/// The size in bytes of a page, which is written as a whole.
const PAGE_BYTES: usize = 4_096;

impl MemoryDisk {
    /// Creates a disk without files and faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a disk without files and with these faults.
    pub fn with(faults: DiskFaults) -> Self {
        let disk = Self::new();
        disk.set_faults(faults);
        disk
    }

    /// Replaces the faults; the files stay.
    pub fn set_faults(&self, faults: DiskFaults) {
        let mut state = self.state();
        state.faults = faults;
        state.draw = Some(Draw::new(faults.seed, Purpose::Disk, 0, 0));
    }

    /// Returns the bytes of a file; `None` if there is no such file.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.state().named(name).map(|file| file.bytes.clone())
    }

    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Returns how many bytes of a file certainly survive a loss of power, provided its name does;
    /// `None` if there is no such file.
    pub fn synced(&self, name: &str) -> Option<usize> {
        self.state().named(name).map(|file| file.synced)
    }

    /// Returns the bytes of a file that a sync has reported as durable, whatever has happened to
    /// its name since; `None` if there is no such file, or if its name was never synced.
    pub fn promised(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = state.named(name).filter(|file| file.named)?;
        Some(file.bytes[..file.promised].to_vec())
    }

    /// Returns the total length of all files in bytes.
    pub fn used(&self) -> u64 {
        self.state().used
    }

    /// Kills the process that uses the disk in the middle of a verb, after `verbs` more that change
    /// something: from then on all verbs fail and do nothing. `seed` decides how much of the last
    /// verb is done.
    pub fn die_after(&self, verbs: u64, seed: u64) {
        let draw = Draw::new(seed, Purpose::Disk, 1, 0);
        self.state().death = Death::After(verbs, draw);
    }

    /// Whether the process that uses the disk has died.
    pub fn is_dead(&self) -> bool {
        matches!(self.state().death, Death::Dead)
    }

    /// Lets another process use the disk after the one before has died.
    pub fn revive(&self) {
        self.state().death = Death::Never;
    }

    /// Simulates a loss of power; `seed` decides what remains. What remains is durable.
    pub fn lose_power(&self, seed: u64) {
        let mut draw = Draw::new(seed, Purpose::Disk, 2, 0);
        let mut state = self.state();
        state.lose_names(&mut draw);
        let kept: BTreeSet<FileId> = state.names.values().copied().collect();
        state.files.retain(|id, _| kept.contains(id));
        state.files.values_mut().for_each(|file| {
            file.lose_bytes(&mut draw);
            file.links = 2;
        });
        state.used = state.files.values().map(|file| file.bytes.len() as u64).sum();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the files in hand")
    }
}

impl State {
    fn named(&self, name: &str) -> Option<&File> {
        self.names.get(name).map(|id| &self.files[id])
    }

    fn file(&mut self, verb: &'static str, name: &str) -> Result<&mut File, Error> {
        let id = self.names.get(name).ok_or_else(|| missing(verb, name))?;
        Ok(self.files.get_mut(id).expect("a name is a file's"))
    }

    /// Counts a verb that changes something; returns whether the process survives the verb.
    ///
    /// # Errors
    /// The process is dead already.
    fn breathe(&mut self, verb: &'static str, name: &str) -> Result<Breath, Error> {
        match &mut self.death {
            Death::Never => Ok(Breath::Next),
            Death::After(0, _) => Ok(Breath::Last),
            Death::After(left, _) => {
                *left -= 1;
                Ok(Breath::Next)
            }
            Death::Dead => Err(gone(verb, name)),
        }
    }

    /// Kills the process; returns how much of the last verb's work is still done: a drawn number
    /// from 0 to `whole`.
    fn die(&mut self, whole: u64) -> u64 {
        match std::mem::replace(&mut self.death, Death::Dead) {
            Death::After(_, mut draw) => draw.below(whole + 1),
            Death::Never | Death::Dead => unreachable!("a last breath is drawn once"),
        }
    }

    /// Counts a verb that is done whole or not at all; returns whether it is done. If the process
    /// dies in the verb, a draw decides.
    fn happens(&mut self, verb: &'static str, name: &str) -> Result<bool, Error> {
        let breath = self.breathe(verb, name)?;
        Ok(breath == Breath::Next || self.die(1) == 1)
    }

    /// Returns the result of a verb: an error if the process has died.
    fn answer(&self, verb: &'static str, name: &str) -> Result<(), Error> {
        if matches!(self.death, Death::Dead) { Err(gone(verb, name)) } else { Ok(()) }
    }

    /// Returns how many of the `bytes` bytes of an append to `name` are written: all if they fit,
    /// else none, or with torn appends as many as fit.
    fn fitting(&self, name: &str, bytes: usize) -> usize {
        let bound = self.faults.room_bytes.filter(|_| name.starts_with(self.faults.room_of));
        let room = bound.map_or(u64::MAX, |room| room.saturating_sub(self.used));
        match usize::try_from(room) {
            Ok(room) if room < bytes => {
                if self.faults.torn {
                    room
                } else {
                    0
                }
            }
            _ => bytes,
        }
    }

    /// Appends to a file, which is created if it does not exist.
    fn push(&mut self, name: &str, bytes: &[u8]) {
        let id = self.names.get(name).copied().unwrap_or_else(|| self.make(name));
        self.files.get_mut(&id).expect("a name is a file's").bytes.extend_from_slice(bytes);
        self.used += bytes.len() as u64;
    }

    fn make(&mut self, name: &str) -> FileId {
        self.made += 1;
        self.files.insert(self.made, File::default());
        self.change(name, None, Some((name.to_owned(), self.made)));
        self.made
    }

    /// Changes names in the folder of `name`: removes the name `takes`, and adds the one in
    /// `gives`.
    fn change(&mut self, name: &str, takes: Option<&str>, gives: Option<(String, FileId)>) {
        let change =
            Change { folder: folder_of(name).to_owned(), takes: takes.map(str::to_owned), gives };
        let moved = change.apply(&mut self.names);
        for id in moved.lost.into_iter().flatten().filter(|id| Some(*id) != moved.gained) {
            self.used -= self.files[&id].bytes.len() as u64;
        }
        // One link for the name, one for the change.
        self.link(moved.gained);
        self.link(moved.gained);
        moved.lost.into_iter().for_each(|id| self.unlink(id));
        self.changes.push(change);
    }

    fn sync_fails(&mut self) -> bool {
        let share = self.faults.syncs;
        self.draw.as_mut().is_some_and(|draw| draw.chance(share))
    }

    /// Makes the changes of names durable in the folder of `name` and in those above.
    fn sync_names(&mut self, name: &str) {
        let above = |folder: &str| {
            folder.is_empty() || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        if !self.changes.iter().any(|change| above(&change.folder)) {
            return;
        }
        let changes = std::mem::take(&mut self.changes).into_iter();
        let (now, later): (Vec<_>, Vec<_>) = changes.partition(|change| above(&change.folder));
        self.changes = later;
        for change in now {
            // The change's link becomes the durable name's.
            let moved = change.apply(&mut self.durable);
            moved.lost.into_iter().for_each(|id| self.unlink(id));
        }
    }

    fn link(&mut self, id: Option<FileId>) {
        if let Some(file) = id.and_then(|id| self.files.get_mut(&id)) {
            file.links += 1;
        }
    }

    /// Drops one link to the file `id`; frees the file if no loss of power can bring it back.
    fn unlink(&mut self, id: Option<FileId>) {
        let Some(id) = id else { return };
        let file = self.files.get_mut(&id).expect("it has a name");
        file.links -= 1;
        if file.links == 0 {
            self.files.remove(&id);
        }
    }

    /// Applies a loss of power to the names: in each folder, of the changes that were not durable,
    /// only a drawn number of the first has happened.
    fn lose_names(&mut self, draw: &mut Draw) {
        let changes = std::mem::take(&mut self.changes);
        let mut left: BTreeMap<&str, u64> = BTreeMap::new();
        changes.iter().for_each(|change| *left.entry(&change.folder).or_default() += 1);
        left.values_mut().for_each(|count| *count = some_of(*count, draw));
        for change in &changes {
            let left = left.get_mut(&*change.folder).expect("counted before");
            if *left > 0 {
                *left -= 1;
                change.apply(&mut self.durable);
            }
        }
        self.names = self.durable.clone();
    }
}

impl Change {
    /// Applies the change to a table of names.
    fn apply(&self, names: &mut BTreeMap<String, FileId>) -> Moved {
        let taken = self.takes.as_ref().and_then(|name| names.remove(name));
        let mut moved = Moved { gained: None, lost: [taken, None] };
        if let Some((name, id)) = &self.gives {
            moved.gained = Some(*id);
            moved.lost[1] = names.insert(name.clone(), *id);
        }
        moved
    }
}

impl File {
    fn truncate(&mut self, len: usize) {
        if len < self.synced {
            let mut cut = self.bytes[len..self.synced].to_vec();
            cut.append(&mut self.cut);
            self.cut = cut;
        }
        self.bytes.truncate(len);
        self.synced = self.synced.min(self.bytes.len());
        self.promised = self.promised.min(self.bytes.len());
    }

    fn lose_bytes(&mut self, draw: &mut Draw) {
        if !self.cut.is_empty() && draw.below(2) == 0 {
            self.bytes.truncate(self.synced);
            self.bytes.append(&mut self.cut);
        } else {
            let tail = (self.bytes.len() - self.synced) as u64;
            let kept = usize::try_from(some_of(tail, draw)).expect("less than the file");
            self.bytes.truncate(self.synced + kept);
            if kept > 0 && draw.below(4) == 0 {
                self.lose_page(draw);
            }
        }
        self.cut.clear();
        self.synced = self.bytes.len();
        self.promised = self.bytes.len();
        self.named = true;
    }

    /// Makes one page of the bytes that remain and were not synced read as zeros.
    fn lose_page(&mut self, draw: &mut Draw) {
        let (first, last) = (self.synced / PAGE_BYTES, (self.bytes.len() - 1) / PAGE_BYTES);
        let page = first + usize::try_from(draw.below((last - first) as u64 + 1)).expect("few");
        let from = (page * PAGE_BYTES).max(self.synced);
        let to = ((page + 1) * PAGE_BYTES).min(self.bytes.len());
        self.bytes[from..to].fill(0);
    }
}

/// Draws zero, `all`, or any number in between.
fn some_of(all: u64, draw: &mut Draw) -> u64 {
    match draw.below(4) {
        0 => 0,
        1 => all,
        _ => draw.below(all + 1),
    }
}

fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn missing(verb: &'static str, name: &str) -> Error {
    Error::new(verb, name, io::ErrorKind::NotFound.into())
}

fn gone(verb: &'static str, name: &str) -> Error {
    Error::new(verb, name, io::Error::other("the process is dead"))
}

impl Disk for MemoryDisk {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        if state.breathe("append to", name)? == Breath::Last {
            let part = state.die(bytes.len() as u64);
            let part = usize::try_from(part).expect("not more than there is");
            let part = part.min(state.fitting(name, bytes.len()));
            state.push(name, &bytes[..part]);
            return Err(gone("append to", name));
        }
        let fitting = state.fitting(name, bytes.len());
        let fits = fitting == bytes.len();
        if fits || fitting > 0 {
            state.push(name, &bytes[..fitting]);
        }
        let full = || Error::new("append to", name, io::ErrorKind::StorageFull.into());
        if fits { Ok(()) } else { Err(full()) }
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut state = self.state();
        state.answer("read", name)?;
        let bytes = &state.file("read", name)?.bytes;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        let state = self.state();
        state.answer("measure", name)?;
        Ok(state.named(name).map(|file| file.bytes.len() as u64))
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        state.file("sync", name)?;
        if !state.happens("sync", name)? {
            return Err(gone("sync", name));
        }
        if state.sync_fails() {
            return Err(Error::new("sync", name, io::Error::other("the device doesn't answer")));
        }
        let lies = state.faults.lies;
        let file = state.file("sync", name)?;
        (file.promised, file.named) = (file.bytes.len(), true);
        if !lies {
            file.synced = file.bytes.len();
            file.cut.clear();
            state.sync_names(name);
        }
        state.answer("sync", name)
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        let mut state = self.state();
        let before = state.file("truncate", name)?.bytes.len();
        if state.happens("truncate", name)? {
            let file = state.file("truncate", name)?;
            let len = usize::try_from(len).ok().filter(|len| *len <= before);
            file.truncate(len.expect("a file is cut, never stretched"));
            let freed = before - file.bytes.len();
            state.used -= freed as u64;
        }
        state.answer("truncate", name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let mut state = self.state();
        let id = *state.names.get(from).ok_or_else(|| missing("rename", from))?;
        assert_eq!(folder_of(from), folder_of(to), "files stay in their folder");
        if from != to && state.happens("rename", from)? {
            state.change(to, Some(from), Some((to.to_owned(), id)));
        }
        state.answer("rename", from)
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        state.file("remove", name)?;
        if state.happens("remove", name)? {
            state.change(name, Some(name), None);
        }
        state.answer("remove", name)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        let state = self.state();
        state.answer("list", folder)?;
        let inside = |name: &&String| folder_of(name) == folder;
        let names = state.names.keys().filter(inside);
        let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
        Ok(names.map(|name| name[start..].to_owned()).collect())
    }

    fn free(&mut self) -> Result<Option<u64>, Error> {
        let room = self.state().faults.room_bytes;
        Ok(room.map(|room| room.saturating_sub(self.used())))
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
