//! Files under the job directory: [`Disk`] over what the system calls a directory.
//!
//! Promises: names stay inside the root (no `..`, no absolute path); folders come into being with
//! their first file; an append is whole or, if there was no room for all of it, taken back; after
//! `sync` both the bytes and the name survive a power cut, folders included. Instances made by
//! [`Disk::handle`] see each other's renames and removals, whichever thread they are on.
//!
//! It does not order appends of two instances to one file against each other: a file has one
//! writer at a time. It never leaves a name of its own behind, but [`lock`] leaves `lock`.
//!
//! Up to 128 files are kept open an instance, the one used longest ago is closed first. Cost: a
//! call on an open file is one system call and a look-up of the name; one on a file that isn't open
//! costs an `open` and now and then a `close` more.

#![expect(clippy::disallowed_methods, reason = "the one place of the program that opens files")]

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, Error};
use crate::map::Map;

/// Files kept open by one instance.
const OPEN_MAX: usize = 128;

/// A directory as a [`Disk`].
pub struct OsDisk {
    shared: Arc<Shared>,
    open: Map<Box<str>, Open>,
    /// Uses counted, to find the file used longest ago.
    uses: u64,
    /// Value of [`Shared::renames`] as of which `open` is right.
    renames: u64,
}

struct Open {
    file: File,
    used: u64,
}

/// What all instances on one root must agree on.
struct Shared {
    root: PathBuf,
    /// Names that moved or went: an instance that lags behind closes its files, for the name of
    /// any of them may mean another file by now.
    renames: AtomicU64,
    folders: Mutex<Map<Box<str>, Folder>>,
}

/// Whether the names in a folder are durable. At first nobody knows, for a run before this one may
/// have made them: hence a folder counts as changed once.
struct Folder {
    changed: u64,
    synced: u64,
}

impl OsDisk {
    /// The disk rooted at `root`, which is made if it isn't there.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let failed = |source| Error::new("open", &root.display().to_string(), source);
        make_root(root).map_err(failed)?;
        Ok(Self::over(Arc::new(Shared {
            root: root.to_owned(),
            renames: AtomicU64::new(0),
            folders: Mutex::new(Map::default()),
        })))
    }

    fn over(shared: Arc<Shared>) -> Self {
        let renames = shared.renames.load(Ordering::Acquire);
        Self { shared, open: Map::default(), uses: 0, renames }
    }

    /// The file of that name, opened if it isn't yet.
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
        self.file(name, Missing::Fail)?.sync_data()?;
        // From the root downwards, or a folder that is durable could be in one that is not.
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
        fs::rename(self.shared.path(from), self.shared.path(to))?;
        self.shared.moved(from);
        self.shared.moved(to);
        Ok(())
    }

    fn remove_checked(&mut self, name: &str) -> io::Result<()> {
        check(name)?;
        fs::remove_file(self.shared.path(name))?;
        self.shared.moved(name);
        Ok(())
    }

    fn len_checked(&mut self, name: &str) -> io::Result<Option<u64>> {
        self.catch_up();
        if let Some(open) = self.open.get(name) {
            return open.file.metadata().map(|metadata| Some(metadata.len()));
        }
        check(name)?;
        match fs::metadata(self.shared.path(name)) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Err(io::ErrorKind::IsADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list_checked(&self, folder: &str) -> io::Result<Vec<String>> {
        if !folder.is_empty() {
            check(folder)?;
        }
        let entries = match fs::read_dir(self.shared.path(folder)) {
            Ok(entries) => entries,
            // A folder comes into being with its first file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Through links, as all the other verbs look at it.
            let is_file = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file());
            // A name that isn't UTF-8 is none of ours: we could not have made it.
            if let (true, Ok(name)) = (is_file, entry.file_name().into_string()) {
                names.push(name);
            }
        }
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

    fn ask_for(&mut self, name: &str, offset: u64, bytes: u64) {
        if let Ok(file) = self.file(name, Missing::Fail) {
            system::will_need(file, offset, bytes);
        }
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

    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self::over(Arc::clone(&self.shared)))
    }
}

impl Shared {
    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn open(&self, name: &str, missing: Missing) -> io::Result<File> {
        let path = self.path(name);
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        if let Missing::Fail = missing {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.make_folders(name)?;
        let file = options.create(true).open(&path)?;
        self.changed(parent(name));
        Ok(file)
    }

    /// Makes the folders above `name`, from the root downwards.
    fn make_folders(&self, name: &str) -> io::Result<()> {
        for (at, _) in name.match_indices('/') {
            let folder = &name[..at];
            match fs::create_dir(self.path(folder)) {
                Ok(()) => self.changed(parent(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// `name` isn't what it was.
    fn moved(&self, name: &str) {
        self.changed(parent(name));
        self.renames.fetch_add(1, Ordering::Release);
    }

    fn changed(&self, folder: &str) {
        self.folders().entry(folder.into()).or_default().changed += 1;
    }

    /// Makes the names in `folder` durable, unless they are.
    ///
    /// The lock is not held meanwhile, or an append on the loop would wait for the drive. Two that
    /// sync one folder at once both do it: neither may say so before it is true.
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let changed = {
            let mut folders = self.folders();
            let state = folders.entry(folder.into()).or_default();
            if state.synced >= state.changed {
                return Ok(());
            }
            state.changed
        };
        File::open(self.path(folder))?.sync_all()?;
        let mut folders = self.folders();
        let state = folders.entry(folder.into()).or_default();
        state.synced = state.synced.max(changed);
        Ok(())
    }

    /// Numbers are right between any two statements, so a poisoned lock is as good as another.
    fn folders(&self) -> MutexGuard<'_, Map<Box<str>, Folder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self { changed: 1, synced: 0 }
    }
}

/// What to do about a file that doesn't exist.
#[derive(Clone, Copy)]
enum Missing {
    Create,
    Fail,
}

/// Folder of a name, `""` for the root.
fn parent(name: &str) -> &str {
    name.rfind('/').map_or("", |at| &name[..at])
}

/// Whether a name stays inside the root and has one spelling only.
fn check(name: &str) -> io::Result<()> {
    let good = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if name.split('/').all(good) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name inside the job directory"))
}

/// Makes the directory, and its name durable if it is new.
fn make_root(root: &Path) -> io::Result<()> {
    if root.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(root)?;
    let above = root.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(above.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes all of `bytes`, or takes back what it wrote. Right as long as a file has one writer.
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

/// Fills `buffer` as far as the file goes.
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

/// The job is this process's as long as this lives. The system lets go of it however the process
/// ends, so a lock is never stale.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a job is not ours.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it.
    Held {
        /// The lock file.
        path: PathBuf,
        /// The number it wrote into the file, if it has got so far.
        process: Option<u32>,
    },
    /// The lock file can't be opened, locked or written.
    Failed {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Takes the job in `root` for this process, by an advisory lock (flock) on the file `lock` there.
/// Doesn't wait. On file systems without locks it fails rather than pretends.
pub fn lock(root: &Path) -> Result<Lock, LockError> {
    let path = root.join("lock");
    match try_lock(root, &path) {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(process)) => Err(LockError::Held { path, process }),
        Err(source) => Err(LockError::Failed { path, source }),
    }
}

/// The lock, or who has it.
fn try_lock(root: &Path, path: &Path) -> io::Result<Result<Lock, Option<u32>>> {
    make_root(root)?;
    // Not cut on opening: it may be another's.
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(20).read_to_string(&mut text);
            return Ok(Err(read.ok().and_then(|_| text.trim().parse().ok())));
        }
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Ok(Lock { _file: file }))
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { path, process: Some(process) } => {
                write!(f, "process {process} is working on this job ({})", path.display())
            }
            Self::Held { path, process: None } => {
                write!(f, "another process is working on this job ({})", path.display())
            }
            Self::Failed { path, source } => write!(f, "cannot lock {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Held { .. } => None,
            Self::Failed { source, .. } => Some(source),
        }
    }
}

/// The unsafe call, with its proof.
mod system {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Has the system read some of a file into its cache, without waiting for that.
    pub(super) fn will_need(file: &File, offset: u64, bytes: u64) {
        let (Ok(offset), Ok(bytes)) = (offset.try_into(), bytes.try_into()) else { return };
        // SAFETY: the descriptor is open as long as `file` is borrowed, and the call touches no
        // memory of ours. It is advice: a refusal changes nothing.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, libc::POSIX_FADV_WILLNEED) };
    }
}

#[cfg(test)]
mod tests;
