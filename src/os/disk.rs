//! Files below the job directory: implements [`Disk`] by system calls.
//!
//! Promises: names stay inside the root (no `..`, no absolute path), and no symbolic link below it
//! is followed. Folders are created with their first file. An append is complete, or is undone if
//! the disk is full. After `sync` both the bytes and the name of a file survive a power cut, and so
//! do its folders. Instances made by [`Disk::handle`] see each other's renames and removals.
//! Appends of two instances to one file are not ordered: a file must have one writer at a time. The
//! disk creates only the files that it is asked for; the file `lock` comes from [`lock()`].
//!
//! Each instance keeps up to 128 files open and closes the least recently used one first. Cost: a
//! call on a file that is open takes one system call and a look-up of the name. A file that is not
//! open costs an additional `open`, and sometimes a `close`.

#![expect(clippy::disallowed_methods, reason = "the one place of the program that opens files")]

mod lock;
mod root;

use rustix::fs::{FileType, OFlags};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ground::disk::{Disk, Error};
use crate::ground::map::Map;
pub use lock::{Lock, LockError, exposure, is_locked, lock};
pub(super) use root::Root;
pub use root::{read, replace};

/// The number of files that one instance keeps open.
const OPEN_MAX: usize = 128;

/// A [`Disk`] whose files are in a directory of the file system.
pub struct OsDisk {
    shared: Arc<Shared>,
    open: Map<Box<str>, Open>,
    /// The number of uses of files so far; each open file records it at its last use, so the least
    /// recently used one can be found.
    uses: u64,
    /// The value of [`Shared::renames`] for which `open` is valid.
    renames: u64,
}

struct Open {
    file: File,
    used: u64,
}

/// What all instances of [`OsDisk`] on one root directory share.
struct Shared {
    root: Root,
    /// How files are opened: to read and append, or only to read.
    access: OFlags,
    /// The number of renames and removals so far. An instance that has seen fewer closes its files,
    /// because any of their names may belong to another file now.
    renames: AtomicU64,
    folders: Mutex<Map<Box<str>, Folder>>,
    /// Open files that another process has renamed, with the names that they had. Each is synced
    /// together with the file that has the name now.
    renamed: Mutex<Vec<(Box<str>, File)>>,
}

/// The state of the names in a folder: they are durable if no change has come after the last sync.
/// A folder counts as changed at first, because an earlier run may have created names in it without
/// syncing them.
struct Folder {
    changed: u64,
    synced: u64,
}

impl OsDisk {
    /// Opens the disk rooted at `root`, which is created if it doesn't exist.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let failed = |source| Error::new("open", &root.display().to_string(), source);
        make_root(root).map_err(failed)?;
        Ok(Self::over(Arc::new(Shared {
            root: Root::open(root).map_err(failed)?,
            access: OFlags::RDWR | OFlags::APPEND,
            renames: AtomicU64::new(0),
            folders: Mutex::new(Map::default()),
            renamed: Mutex::default(),
        })))
    }

    /// Opens the disk rooted at `root`, which must exist, to read only. Changes are errors.
    pub fn open_to_read(root: &Path) -> Result<Self, Error> {
        let failed = |source| Error::new("open", &root.display().to_string(), source);
        Ok(Self::over(Arc::new(Shared {
            root: Root::open(root).map_err(failed)?,
            access: OFlags::RDONLY,
            renames: AtomicU64::new(0),
            folders: Mutex::new(Map::default()),
            renamed: Mutex::default(),
        })))
    }

    fn over(shared: Arc<Shared>) -> Self {
        let renames = shared.renames.load(Ordering::Acquire);
        Self { shared, open: Map::default(), uses: 0, renames }
    }

    /// Returns the open file `name`, opening it if necessary. `missing` says what to do if it
    /// doesn't exist.
    fn file(&mut self, name: &str, missing: Missing) -> io::Result<&mut File> {
        self.catch_up();
        self.uses += 1;
        if !self.open.contains_key(name) {
            check(name)?;
            let file = self.shared.open(name, missing)?;
            self.make_room();
            self.open.insert(name.into(), Open { file, used: 0 });
        }
        let open = self.open.get_mut(name).expect("it was put there if it was not");
        open.used = self.uses;
        Ok(&mut open.file)
    }

    fn catch_up(&mut self) {
        let renames = self.shared.renames.load(Ordering::Acquire);
        if renames != self.renames {
            self.open.clear();
            self.renames = renames;
        }
    }

    fn make_room(&mut self) {
        if self.open.len() < OPEN_MAX {
            return;
        }
        let oldest = self.open.iter().min_by_key(|(_, open)| open.used);
        let oldest = oldest.map(|(name, _)| name.clone()).expect("the table is full, not empty");
        self.open.remove(&oldest);
    }

    fn sync_whole(&mut self, name: &str) -> io::Result<()> {
        for file in self.shared.take_renamed(name) {
            file.sync_data()?;
        }
        self.file(name, Missing::Fail)?.sync_data()?;
        // Sync from the root downwards, so that no durable folder is inside one that is not.
        let mut end = Some(0);
        while let Some(at) = end {
            self.shared.sync_folder(&name[..at])?;
            let from = if at == 0 { 0 } else { at + 1 };
            end = name[from..].find('/').map(|found| from + found);
        }
        Ok(())
    }

    fn rename_checked(&mut self, from: &str, to: &str) -> io::Result<()> {
        check(from)?;
        check(to)?;
        self.shared.make_folders(to)?;
        self.shared.root.rename(from, to)?;
        self.shared.moved(from);
        self.shared.moved(to);
        Ok(())
    }

    fn remove_checked(&mut self, name: &str) -> io::Result<()> {
        check(name)?;
        self.shared.root.remove(name)?;
        self.shared.moved(name);
        Ok(())
    }

    /// Closes a file that another process may have renamed, and keeps its handle for the next sync
    /// of `name`.
    fn refresh_checked(&mut self, name: &str) -> io::Result<()> {
        self.catch_up();
        let Some(open) = self.open.get(name) else { return Ok(()) };
        let ours = open.file.metadata()?;
        let is_named = match self.shared.root.stat(name) {
            Ok(stat) => (stat.st_dev, stat.st_ino) == (ours.dev(), ours.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_named && let Some((name, open)) = self.open.remove_entry(name) {
            let mut renamed = self.shared.renamed.lock().unwrap_or_else(PoisonError::into_inner);
            renamed.push((name, open.file));
        }
        Ok(())
    }

    fn len_checked(&mut self, name: &str) -> io::Result<Option<u64>> {
        self.catch_up();
        if let Some(open) = self.open.get(name) {
            return open.file.metadata().map(|metadata| Some(metadata.len()));
        }
        check(name)?;
        match self.shared.root.stat(name) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Ok(Some(u64::try_from(stat.st_size).unwrap_or(0))),
                FileType::Symlink => Err(io::Error::other(
                    "it is a symbolic link; none is followed in a job directory",
                )),
                _ => Err(io::ErrorKind::IsADirectory.into()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list_checked(&self, folder: &str) -> io::Result<Vec<String>> {
        if !folder.is_empty() {
            check(folder)?;
        }
        let mut names = match self.shared.root.files(folder) {
            // A folder is created with its first file, so a missing one is empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        names.sort_unstable();
        Ok(names)
    }
}

impl Disk for OsDisk {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let file = self.file(name, Missing::Create);
        let done = file.and_then(|file| append_whole(file, bytes));
        done.map_err(|source| Error::new("append", name, source))
    }

    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let file = self.file(name, Missing::Fail);
        let done = file.and_then(|file| read_whole(file, offset, buffer));
        done.map_err(|source| Error::new("read", name, source))
    }

    fn refresh(&mut self, name: &str) -> Result<(), Error> {
        self.refresh_checked(name).map_err(|source| Error::new("look for", name, source))
    }

    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        self.len_checked(name).map_err(|source| Error::new("measure", name, source))
    }

    fn sync(&mut self, name: &str) -> Result<(), Error> {
        self.sync_whole(name).map_err(|source| Error::new("sync", name, source))
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        let file = self.file(name, Missing::Fail);
        let done = file.and_then(|file| file.set_len(len));
        done.map_err(|source| Error::new("truncate", name, source))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        self.rename_checked(from, to).map_err(|source| Error::new("rename", from, source))
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.remove_checked(name).map_err(|source| Error::new("remove", name, source))
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        self.list_checked(folder).map_err(|source| Error::new("list", folder, source))
    }

    fn free(&mut self) -> Result<Option<u64>, Error> {
        self.shared.root.free().map_err(|source| Error::new("measure the space of", ".", source))
    }

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self::over(Arc::clone(&self.shared)))
    }
}

impl Shared {
    fn open(&self, name: &str, missing: Missing) -> io::Result<File> {
        let flags = self.access;
        match self.root.open_file(name, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        if let Missing::Fail = missing {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.make_folders(name)?;
        let made = self.root.open_file(name, flags | OFlags::CREATE | OFlags::EXCL);
        self.changed(parent(name));
        match made {
            // Another instance has created the file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.root.open_file(name, flags)
            }
            made => made,
        }
    }

    /// Creates the folders above `name`, from the root downwards.
    fn make_folders(&self, name: &str) -> io::Result<()> {
        for (at, _) in name.match_indices('/') {
            let folder = &name[..at];
            match self.root.make_folder(folder) {
                Ok(()) => self.changed(parent(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Counts a rename or removal of `name`, so that all instances close their open files.
    fn moved(&self, name: &str) {
        self.changed(parent(name));
        self.renames.fetch_add(1, Ordering::Release);
    }

    fn changed(&self, folder: &str) {
        self.folders().entry(folder.into()).or_default().changed += 1;
    }

    /// Makes the names in `folder` durable, if they are not yet.
    ///
    /// The lock is not held during the sync, because an append on the loop would wait for the
    /// drive. Two threads that sync one folder at once both do it, because neither may report
    /// success too early.
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let changed = {
            let mut folders = self.folders();
            let state = folders.entry(folder.into()).or_default();
            if state.synced >= state.changed {
                return Ok(());
            }
            state.changed
        };
        self.root.open_folder(folder)?.sync_all()?;
        let mut folders = self.folders();
        let state = folders.entry(folder.into()).or_default();
        state.synced = state.synced.max(changed);
        Ok(())
    }

    fn take_renamed(&self, name: &str) -> Vec<File> {
        let mut renamed = self.renamed.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = renamed.extract_if(.., |(had, _)| **had == *name);
        theirs.map(|(_, file)| file).collect()
    }

    /// Locks the table of folders. Its values are valid between any two statements, so a poisoned
    /// lock can be used.
    fn folders(&self) -> MutexGuard<'_, Map<Box<str>, Folder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self { changed: 1, synced: 0 }
    }
}

/// What to do if a file doesn't exist.
#[derive(Clone, Copy)]
enum Missing {
    Create,
    Fail,
}

/// Returns the folder that contains the file `name`; `""` for the root.
fn parent(name: &str) -> &str {
    name.rfind('/').map_or("", |at| &name[..at])
}

/// Checks that `name` stays inside the root, and that its spelling is the only one for its file (it
/// has no part such as `..`, `.` or an empty one).
fn check(name: &str) -> io::Result<()> {
    let good = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if name.split('/').all(good) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name inside the job directory"))
}

/// Creates the root directory, and makes its name durable if it is new.
fn make_root(root: &Path) -> io::Result<()> {
    if root.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(root)?;
    let above = root.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

/// Appends all of `bytes` to the file. If that fails, truncates what was written. This is correct
/// only for a file with one writer.
fn append_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let trouble = match file.write(&bytes[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(count) => {
                written += count;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        if written > 0 {
            let len = file.metadata()?.len();
            file.set_len(len.saturating_sub(written as u64))?;
        }
        return Err(trouble);
    }
    Ok(())
}

/// Reads from `offset` into `buffer` until it is full or the file ends. Returns the number of bytes
/// read.
fn read_whole(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
