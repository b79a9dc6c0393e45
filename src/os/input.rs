//! Reads files that the operator names: regular files only, up to a limit.
//!
//! A device, a pipe or a folder could be read forever or block. Cost of [`read`]: the whole file in
//! memory.

#![expect(clippy::disallowed_methods, reason = "reads files that the configuration names")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the file at `path` and returns its content.
///
/// # Errors
/// The file can't be read, is not a regular file, or is longer than `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("is longer than {bytes_max} bytes, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Opens the file at `path` to read it.
///
/// # Errors
/// The file can't be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    check(path)?;
    // Don't wait if the file has become a pipe in the meantime.
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Checks that there is a regular file at `path`.
///
/// # Errors
/// There is no file at `path`, or it is not a regular file.
pub fn check(path: &Path) -> io::Result<()> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() { "is a directory" } else { "is a device, a pipe or a socket" };
    let text = format!("{what}, not a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_up_to_the_cap_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, b"12345").expect("written");
        assert_eq!(read(&file, 5).expect("read"), b"12345");
        let cases = [
            (file.as_path(), 4, "longer than 4 bytes"),
            (folder.path(), 5, "is a directory"),
            (Path::new("/dev/zero"), 5, "not a regular file"),
            (Path::new("/nowhere"), 5, "No such file"),
        ];
        for (path, most, says) in cases {
            let error = read(path, most).expect_err(says).to_string();
            assert!(error.contains(says), "{}: {error}", path.display());
        }
    }
}
