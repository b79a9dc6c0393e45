//! Files in memory, behind the same verbs as real ones.
//!
//! All handles share one set of files. What was appended and not synced would be lost in a crash:
//! the disk keeps for each file how much of it is durable.

use crate::disk::{Disk, Error};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    files: Arc<Mutex<BTreeMap<String, File>>>,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
}

impl MemoryDisk {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of a file.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.files().get(name).map(|file| file.bytes.clone())
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<String> {
        self.files().keys().cloned().collect()
    }

    /// Bytes of a file that a crash would leave for certain.
    pub fn synced(&self, name: &str) -> Option<usize> {
        self.files().get(name).map(|file| file.synced)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, File>> {
        self.files.lock().expect("no thread panics with the files in hand")
    }
}

fn missing(verb: &'static str, name: &str) -> Error {
    Error::new(verb, name, io::ErrorKind::NotFound.into())
}

impl Disk for MemoryDisk {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.files().entry(name.to_owned()).or_default().bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let files = self.files();
        let bytes = &files.get(name).ok_or_else(|| missing("read", name))?.bytes;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        Ok(self.files().get(name).map(|file| file.bytes.len() as u64))
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        let mut files = self.files();
        let file = files.get_mut(name).ok_or_else(|| missing("sync", name))?;
        file.synced = file.bytes.len();
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        let mut files = self.files();
        let file = files.get_mut(name).ok_or_else(|| missing("truncate", name))?;
        file.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        file.synced = file.synced.min(file.bytes.len());
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let mut files = self.files();
        let file = files.remove(from).ok_or_else(|| missing("rename", from))?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.files().remove(name).map(drop).ok_or_else(|| missing("remove", name))
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
        Ok(self.files().keys().filter_map(|name| inside(name)).collect())
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }
}
