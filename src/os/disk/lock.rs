//! The lock on a job directory: one process works on it at a time.
//!
//! Two things are locked by `flock`: the directory itself, which can't be replaced while the
//! process holds it, and the file `lock` in it, for file systems that lock only files. Nothing is
//! written before both are held. The system releases the locks however the process ends, so a lock
//! is never stale.

use super::make_root;
use super::root::Root;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The lock on a job, held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    root: Root,
    _file: File,
}

impl Lock {
    /// Returns the directory of the job, of which this process is the only user.
    #[cfg_attr(not(feature = "control"), expect(dead_code, reason = "for the control socket"))]
    pub(in crate::os) fn root(&self) -> &Root {
        &self.root
    }
}

/// Why a job could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock.
    Held {
        /// The path of the lock file.
        path: PathBuf,
        /// The process id of the holder; `None` if the file doesn't contain it yet.
        process: Option<u32>,
    },
    /// The lock file can't be opened, locked or written.
    Failed {
        /// The path of the lock file.
        path: PathBuf,
        /// The error that the system reported.
        source: io::Error,
    },
}

/// The name of the lock file.
const NAME: &str = "lock";
/// How often to try again if another process keeps replacing the lock file.
const TRIES: usize = 10;

/// Locks the job in `root` for this process, without waiting. On file systems without locks it
/// returns an error.
pub fn lock(root: &Path) -> Result<Lock, LockError> {
    let path = root.join(NAME);
    match try_lock(root) {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(process)) => Err(LockError::Held { path, process }),
        Err(source) => Err(LockError::Failed { path, source }),
    }
}

/// Tries to take the lock. Returns it, or the process id of its holder (`None` if not known).
fn try_lock(path: &Path) -> io::Result<Result<Lock, Option<u32>>> {
    make_root(path)?;
    let root = Root::open(path)?;
    match root.dir().try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(holder(&root))),
        // Network file systems often can't lock directories; locking the file must be enough there.
        Err(TryLockError::Error(error)) if locks_files_only(&error) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for _ in 0..TRIES {
        let mut file = root.open_file(NAME, OFlags::RDWR | OFlags::CREATE)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Err(holder(&root))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if facts.nlink() > 1 {
            // A file with a second name may belong to somebody else, so it is replaced and not
            // written to.
            root.remove(NAME)?;
            continue;
        }
        // Check that nobody removed the file between opening and locking it.
        if root.stat(NAME).is_ok_and(|stat| stat.st_ino == facts.ino()) {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())?;
            return Ok(Ok(Lock { root, _file: file }));
        }
    }
    Err(io::Error::other("somebody keeps replacing it"))
}

/// Returns whether a process holds the lock on the job in `root`. Takes no lock for longer than a
/// moment.
///
/// # Errors
/// The system reports an error.
pub fn is_locked(root: &Path) -> io::Result<bool> {
    let root = Root::open(root)?;
    let directory = root.dir().try_clone()?;
    // On file systems that can't lock directories, the lock file says it.
    let (first, second) = (directory, root.open_file(NAME, OFlags::RDONLY | OFlags::NONBLOCK));
    for file in [Ok(first), second] {
        match file.map(|file| file.try_lock_shared()) {
            Ok(Ok(())) => {}
            Ok(Err(TryLockError::WouldBlock)) => return Ok(true),
            Ok(Err(TryLockError::Error(error))) if locks_files_only(&error) => {}
            Ok(Err(TryLockError::Error(error))) => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn locks_files_only(error: &io::Error) -> bool {
    let codes = [Errno::BADF, Errno::OPNOTSUPP, Errno::INVAL, Errno::NOLCK];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

/// Returns the process id that the holder of the lock has written to the lock file, if it has.
fn holder(root: &Root) -> Option<u32> {
    let file = root.open_file(NAME, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Describes why users other than the owner could change the content of `directory`; `None` if they
/// can't.
pub fn exposure(directory: &Path) -> Option<String> {
    let facts = Root::open(directory).ok()?.dir().metadata().ok()?;
    let mode = Mode::from_raw_mode(facts.mode());
    let us = rustix::process::geteuid().as_raw();
    if facts.uid() != us {
        return Some(format!("it belongs to user {}, and the crawl runs as {us}", facts.uid()));
    }
    let others = Mode::WGRP | Mode::WOTH;
    let may_write = mode.intersects(others) && !mode.contains(Mode::SVTX);
    may_write.then(|| format!("its mode is {:o}; `chmod go-w` it", facts.mode() & 0o7777))
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
