//! Files in memory, behind the same verbs as real ones.
//!
//! All handles share one set of files. What was appended and not synced would be lost in a crash:
//! the disk keeps for each file how much of it is durable.
//!
//! Fault model: the disk is full (an append is refused whole, or torn: what fitted stays), and a
//! share of syncs fails, which makes nothing durable. Reads never fail, nothing rots by itself.

use super::draw::{Draw, Purpose};
use super::settings::DiskFaults;
use crate::disk::{Disk, Error};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory; clones share its files.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    /// Bytes of all files.
    used: u64,
    faults: DiskFaults,
    draw: Option<Draw>,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
}

impl MemoryDisk {
    /// No files, no faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// No files, and these faults.
    pub fn with(faults: DiskFaults) -> Self {
        let disk = Self::new();
        disk.set_faults(faults);
        disk
    }

    /// From now on these faults; the files stay.
    pub fn set_faults(&self, faults: DiskFaults) {
        let mut state = self.state();
        state.faults = faults;
        state.draw = Some(Draw::new(faults.seed, Purpose::Disk, 0, 0));
    }

    /// The bytes of a file.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.state().files.get(name).map(|file| file.bytes.clone())
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<String> {
        self.state().files.keys().cloned().collect()
    }

    /// Bytes of a file that a crash would leave for certain.
    pub fn synced(&self, name: &str) -> Option<usize> {
        self.state().files.get(name).map(|file| file.synced)
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.state().used
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the files in hand")
    }
}

impl State {
    fn file(&mut self, verb: &'static str, name: &str) -> Result<&mut File, Error> {
        self.files.get_mut(name).ok_or_else(|| missing(verb, name))
    }

    /// How much of an append fits.
    fn fitting(&self, bytes: usize) -> usize {
        let room = self.faults.room_bytes.map_or(u64::MAX, |room| room.saturating_sub(self.used));
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

    fn sync_fails(&mut self) -> bool {
        let share = self.faults.syncs;
        self.draw.as_mut().is_some_and(|draw| draw.chance(share))
    }
}

fn missing(verb: &'static str, name: &str) -> Error {
    Error::new(verb, name, io::ErrorKind::NotFound.into())
}

impl Disk for MemoryDisk {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let fitting = state.fitting(bytes.len());
        let fits = fitting == bytes.len();
        if fits || fitting > 0 {
            state.used += fitting as u64;
            if let Some(file) = state.files.get_mut(name) {
                file.bytes.extend_from_slice(&bytes[..fitting]);
            } else {
                let file = File { bytes: bytes[..fitting].to_vec(), synced: 0 };
                state.files.insert(name.to_owned(), file);
            }
        }
        let full = || Error::new("append to", name, io::ErrorKind::StorageFull.into());
        if fits { Ok(()) } else { Err(full()) }
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut state = self.state();
        let bytes = &state.file("read", name)?.bytes;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        Ok(self.state().files.get(name).map(|file| file.bytes.len() as u64))
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        state.file("sync", name)?;
        if state.sync_fails() {
            return Err(Error::new("sync", name, io::Error::other("the device doesn't answer")));
        }
        let file = state.file("sync", name)?;
        file.synced = file.bytes.len();
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        let mut state = self.state();
        let file = state.file("truncate", name)?;
        let before = file.bytes.len();
        file.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        file.synced = file.synced.min(file.bytes.len());
        let freed = before - file.bytes.len();
        state.used -= freed as u64;
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let mut state = self.state();
        let file = state.files.remove(from).ok_or_else(|| missing("rename", from))?;
        if let Some(replaced) = state.files.insert(to.to_owned(), file) {
            state.used -= replaced.bytes.len() as u64;
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        let mut state = self.state();
        let file = state.files.remove(name).ok_or_else(|| missing("remove", name))?;
        state.used -= file.bytes.len() as u64;
        Ok(())
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        let inside = |name: &str| -> Option<String> {
            let rest = if folder.is_empty() {
                name
            } else {
                name.strip_prefix(folder)?.strip_prefix('/')?
            };
            (!rest.contains('/')).then(|| rest.to_owned())
        };
        Ok(self.state().files.keys().filter_map(|name| inside(name)).collect())
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_refuses_or_tears() {
        for (torn, left) in [(false, 6), (true, 10)] {
            let disk = MemoryDisk::with(DiskFaults {
                room_bytes: Some(10),
                torn,
                ..DiskFaults::default()
            });
            let mut handle = disk.handle();
            handle.append("a/x", b"123456").unwrap();
            assert!(handle.append("a/x", b"7890ab").unwrap_err().is_full());
            assert_eq!((disk.used(), disk.read("a/x").unwrap().len()), (left, left as usize));
            handle.truncate("a/x", 2).unwrap();
            handle.append("b", b"12345678").unwrap();
            handle.rename("b", "a/x").unwrap();
            assert_eq!((disk.used(), disk.names()), (8, vec!["a/x".to_owned()]));
            assert!(handle.append("c", b"123").unwrap_err().is_full());
            assert_eq!(handle.len("c").unwrap().is_some(), torn, "a file of nothing isn't made");
            disk.set_faults(DiskFaults::default());
            handle.append("c", b"123").unwrap();
            handle.remove("a/x").unwrap();
            assert_eq!(disk.used(), if torn { 5 } else { 3 });
        }
    }

    #[test]
    fn a_sync_that_fails_makes_nothing_durable() {
        let disk = MemoryDisk::with(DiskFaults { syncs: 0.5, seed: 3, ..DiskFaults::default() });
        let mut handle = disk.handle();
        let (mut durable, mut failed) = (0, 0);
        for round in 1..=100 {
            handle.append("x", b"y").unwrap();
            match handle.sync("x") {
                Ok(()) => durable = round,
                Err(error) => failed += u32::from(!error.is_full()),
            }
            assert_eq!(disk.synced("x"), Some(durable));
        }
        assert!((30..70).contains(&failed), "{failed} of 100");
        assert!(handle.sync("y").is_err(), "there is none");
    }
}
