//! A disk that reads another one and keeps all changes in memory, so that a job can be opened
//! without being changed.
//!
//! Law: the disk below is only read. Handles see each other's changes.
//! Cost: memory for all that is appended.

use super::{Disk, Error};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk in memory over another disk.
pub struct Overlay {
    below: Box<dyn Disk>,
    /// The files that differ from those of the disk below; `None` for removed ones.
    files: Arc<Mutex<BTreeMap<Box<str>, Option<File>>>>,
}

/// A changed file: the beginning of a file of the disk below, and what was appended to it.
#[derive(Debug, Default)]
struct File {
    /// The name of the file below, and how many of its bytes are part of this one.
    beginning: Option<(Box<str>, u64)>,
    tail: Vec<u8>,
}

impl File {
    fn len(&self) -> u64 {
        self.beginning.as_ref().map_or(0, |(_, bytes)| *bytes) + self.tail.len() as u64
    }
}

impl Overlay {
    /// Returns a disk with the files of `below`, which is never changed.
    pub fn over(below: Box<dyn Disk>) -> Self {
        Self { below, files: Arc::default() }
    }

    /// Locks the changed files. They are valid between any two statements, so a poisoned lock can
    /// be used.
    fn files(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Option<File>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with a file that is about to change; with an empty one if there is none and
    /// `creates`.
    ///
    /// # Errors
    /// There is no such file, or the disk below reports an error.
    fn change<T>(
        &mut self,
        verb: &'static str,
        name: &str,
        creates: bool,
        act: impl FnOnce(&mut Option<File>) -> T,
    ) -> Result<T, Error> {
        let is_changed = self.files().contains_key(name);
        let below = if is_changed { None } else { self.below.len(name)? };
        let mut files = self.files();
        let file = files.entry(name.into()).or_insert_with(|| {
            below.map(|bytes| File { beginning: Some((name.into(), bytes)), tail: Vec::new() })
        });
        if file.is_none() && creates {
            *file = Some(File::default());
        }
        match file {
            Some(_) => Ok(act(file)),
            None => Err(Error::new(verb, name, io::ErrorKind::NotFound.into())),
        }
    }
}

impl Disk for Overlay {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let tail = |file: &mut Option<File>| {
            file.iter_mut().for_each(|file| file.tail.extend_from_slice(bytes));
        };
        self.change("append to", name, true, tail)
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let (below, most) = match self.files().get(name) {
            None => (Box::from(name), buffer.len()),
            Some(None) => return Err(Error::new("read", name, io::ErrorKind::NotFound.into())),
            Some(Some(File { beginning, tail })) => match beginning {
                Some((below, bytes)) if offset < *bytes => {
                    let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
                    (below.clone(), left.min(buffer.len()))
                }
                beginning => {
                    let bytes = beginning.as_ref().map_or(0, |(_, bytes)| *bytes);
                    let at = usize::try_from(offset - bytes).unwrap_or(usize::MAX);
                    let rest = tail.get(at..).unwrap_or_default();
                    let read = rest.len().min(buffer.len());
                    buffer[..read].copy_from_slice(&rest[..read]);
                    return Ok(read);
                }
            },
        };
        self.below.read_at(&below, offset, &mut buffer[..most])
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        if let Some(file) = self.files().get(name) {
            return Ok(file.as_ref().map(File::len));
        }
        self.below.len(name)
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        let missing = || Error::new("sync", name, io::ErrorKind::NotFound.into());
        self.len(name)?.map(|_| ()).ok_or_else(missing)
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        self.change("truncate", name, false, |file| {
            if let Some(File { beginning, tail }) = file {
                let bytes = beginning.as_ref().map_or(0, |(_, bytes)| *bytes);
                tail.truncate(usize::try_from(len.saturating_sub(bytes)).unwrap_or(usize::MAX));
                if let Some((_, bytes)) = beginning {
                    *bytes = len.min(*bytes);
                }
            }
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let file = self.change("rename", from, false, Option::take)?;
        self.files().insert(to.into(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.change("remove", name, false, |file| *file = None)
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        let mut names = self.below.list(folder)?;
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        for (name, file) in &*self.files() {
            let own = name.strip_prefix(&prefix).filter(|own| !own.contains('/'));
            let Some(own) = own else { continue };
            names.retain(|other| other != own);
            if file.is_some() {
                names.push(own.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self { below: self.below.handle(), files: Arc::clone(&self.files) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;
    use crate::ground::random::Random;

    /// Law: whatever is done, the overlay has what a disk has to which the same was done, and the
    /// disk below is unchanged.
    #[test]
    fn an_overlay_is_a_disk_of_its_own() {
        let names = ["a", "b", "f/c", "f/d"];
        for seed in 0..200 {
            let mut random = Random(seed);
            let (below, mut model) = (Memory::default(), Memory::default());
            for name in &names[..3] {
                below.clone().append(name, name.repeat(50).as_bytes()).expect("room");
                model.append(name, name.repeat(50).as_bytes()).expect("room");
            }
            let before: Vec<_> = below.names().iter().map(|name| below.bytes(name)).collect();
            let first: Box<dyn Disk> = Box::new(Overlay::over(Box::new(below.clone())));
            let mut handles = [first.handle(), first];
            for _ in 0..40 {
                let overlay = &mut handles[usize::from(random.one_in(2))];
                let name = names[random.below(4_usize)];
                let other = names[random.below(4_usize)];
                let len = model.len(name).expect("it works");
                assert_eq!(overlay.len(name).expect("it works"), len);
                let both = match random.below(5_usize) {
                    0 => (overlay.append(name, b"more"), model.append(name, b"more")),
                    1 if len.is_some() => {
                        let cut = random.below(len.expect("it is there") + 1);
                        (overlay.truncate(name, cut), model.truncate(name, cut))
                    }
                    2 => (overlay.rename(name, other), model.rename(name, other)),
                    3 => (overlay.remove(name), model.remove(name)),
                    _ => (overlay.sync(name), model.sync(name)),
                };
                assert_eq!(both.0.is_ok(), both.1.is_ok(), "seed {seed}");
                for folder in ["", "f", "none"] {
                    let lists = (overlay.list(folder), model.list(folder));
                    assert_eq!(lists.0.expect("it works"), lists.1.expect("it works"));
                }
                for name in model.names() {
                    let mut bytes = vec![0; 4_000];
                    super::super::read_all(overlay.as_mut(), &name, 0, 0, &mut bytes)
                        .expect("it is there");
                    assert_eq!(bytes, model.bytes(&name), "seed {seed}: {name}");
                }
            }
            let after: Vec<_> = below.names().iter().map(|name| below.bytes(name)).collect();
            assert_eq!(after, before);
        }
    }
}
