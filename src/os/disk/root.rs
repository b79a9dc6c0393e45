//! Resolves names below one directory without following symbolic links.
//!
//! Every part of a name is opened relative to the one before (`openat`), and none may be a link.
//! Otherwise anyone who can create a link in the directory could make the crawler read or overwrite
//! other files. Cost: two system calls for each folder in the name.

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// A directory, held by its descriptor.
#[derive(Debug)]
pub(in crate::os) struct Root {
    dir: File,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    /// Opens the directory at `path`. The path itself may contain links.
    pub(in crate::os) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { dir: fs::open(path, FOLDER, Mode::empty())?.into() })
    }

    /// Returns the descriptor of the directory.
    pub(in crate::os) fn dir(&self) -> &File {
        &self.dir
    }

    /// Returns a second handle of the same directory.
    #[cfg(feature = "control")]
    pub(in crate::os) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { dir: self.dir.try_clone()? })
    }

    /// Opens the file `name` with the flags `flags`, which may ask to create it.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        self.at(name, |dir, last| Ok(fs::openat(dir, last, flags, mode)?.into()))
    }

    /// Opens the folder `name`; `""` is the root directory itself.
    pub(super) fn open_folder(&self, name: &str) -> io::Result<File> {
        if name.is_empty() {
            return self.dir.try_clone();
        }
        let flags = FOLDER | OFlags::NOFOLLOW;
        self.at(name, |dir, last| Ok(fs::openat(dir, last, flags, Mode::empty())?.into()))
    }

    /// Returns the metadata of the file or folder `name`. A symbolic link is not followed.
    pub(in crate::os) fn stat(&self, name: &str) -> io::Result<Stat> {
        self.at(name, |dir, last| Ok(fs::statat(dir, last, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.at(from, |from_dir, from| {
            self.at(to, |to_dir, to| Ok(fs::renameat(from_dir, from, to_dir, to)?))
        })
    }

    pub(in crate::os) fn remove(&self, name: &str) -> io::Result<()> {
        self.at(name, |dir, last| Ok(fs::unlinkat(dir, last, AtFlags::empty())?))
    }

    pub(super) fn make_folder(&self, name: &str) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o777);
        self.at(name, |dir, last| Ok(fs::mkdirat(dir, last, mode)?))
    }

    /// Returns how many bytes this process may still write to the file system, or `None` if the
    /// file system doesn't say it.
    pub(super) fn free(&self) -> io::Result<Option<u64>> {
        let system = fs::fstatvfs(&self.dir)?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        Ok((system.f_blocks > 0).then_some(free))
    }

    /// Returns the names of the files directly in a folder, unordered and without symbolic links.
    /// Names that aren't UTF-8 are skipped, because the crawler creates none.
    pub(super) fn files(&self, folder: &str) -> io::Result<Vec<String>> {
        let folder = self.open_folder(folder)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            if kind == FileType::RegularFile {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens the folder that contains `name` and calls `act` with it and the last part of `name`.
    fn at<T>(&self, name: &str, act: impl FnOnce(&File, &str) -> io::Result<T>) -> io::Result<T> {
        let mut folder = None;
        let mut rest = name;
        while let Some((first, behind)) = rest.split_once('/') {
            let dir = folder.as_ref().unwrap_or(&self.dir);
            let opened = fs::openat(dir, first, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            let opened = opened.map_err(|errno| explain(dir, first, errno.into()))?;
            folder = Some(File::from(opened));
            rest = behind;
        }
        let dir = folder.as_ref().unwrap_or(&self.dir);
        act(dir, rest).map_err(|error| explain(dir, rest, error))
    }
}

/// Returns a clearer error if the name is a symbolic link.
fn explain(dir: &File, name: &str, error: io::Error) -> io::Error {
    let code = error.raw_os_error();
    let may_be = [Errno::LOOP, Errno::NOTDIR].iter().any(|it| code == Some(it.raw_os_error()));
    let is_link = || {
        let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    if may_be && is_link() {
        let text = format!("{name} is a symbolic link; none is followed in a job directory");
        return io::Error::other(text);
    }
    error
}

/// Returns the content of the file `name` in `directory`.
///
/// # Errors
/// The system reports an error, or the file is a symbolic link.
pub fn read(directory: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = Root::open(directory)?.open_file(name, OFlags::RDONLY)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces the content of the file `name` in `directory` by `bytes`, atomically: a reader finds
/// either the new content or the old. If `name` is a symbolic link, or a hard link to a file with
/// another name, the link is replaced and the file behind it stays as it is.
///
/// # Errors
/// The system reports an error.
pub fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let root = Root::open(directory)?;
    let new = format!("{name}.new");
    match root.remove(&new) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let mut file = root.open_file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    root.rename(&new, name)
}
