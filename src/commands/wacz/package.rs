//! A WACZ file: a ZIP whose members are stored as they are, listed with their digests.
//!
//! Law: the file appears under its name when all of it is on disk, or not at all.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The length from which a member may need the 64-bit fields of ZIP.
const LARGE_BYTES: u64 = 3 << 30;

/// A package that is being written, under a temporary name.
pub(super) struct Package {
    zip: ZipWriter<BufWriter<File>>,
    path: PathBuf,
    part: Part,
    time: DateTime,
    /// The members, as `datapackage.json` lists them.
    resources: Vec<Value>,
}

/// A temporary file, which is removed unless it is kept.
struct Part(Option<PathBuf>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // The error that stopped the package is reported, not this one.
            let _ = fs::remove_file(path);
        }
    }
}

/// Passes bytes on, and counts and digests them.
struct Digesting<'a> {
    out: &'a mut dyn Write,
    digest: Sha256,
    bytes: u64,
}

impl Write for Digesting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Package {
    /// Begins a package that is to be at `path`. `time` is the date of its members.
    ///
    /// # Errors
    /// The temporary file can't be created.
    pub(super) fn begin(path: &Path, time: DateTime) -> io::Result<Self> {
        let part = path.with_extension("wacz.part");
        let file = File::create(&part)?;
        let zip = ZipWriter::new(BufWriter::with_capacity(1 << 20, file));
        let (path, part) = (path.to_owned(), Part(Some(part)));
        Ok(Self { zip, path, part, time, resources: Vec::new() })
    }

    /// Adds a member of about `bytes` bytes, which `write` writes.
    ///
    /// # Errors
    /// Those of `write`, and of the disk.
    pub(super) fn add(
        &mut self,
        path: &str,
        bytes: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let (hash, bytes) = self.write(path, bytes, write)?;
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        self.resources.push(json!({ "name": name, "path": path, "hash": hash, "bytes": bytes }));
        Ok(())
    }

    fn write(
        &mut self,
        path: &str,
        bytes: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<(String, u64)> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(self.time)
            .large_file(bytes >= LARGE_BYTES);
        self.zip.start_file(path, options)?;
        let mut out = Digesting { out: &mut self.zip, digest: Sha256::new(), bytes: 0 };
        write(&mut out)?;
        let hash: String = out.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((format!("sha256:{hash}"), out.bytes))
    }

    /// Writes the list of members, with these properties of the package, and its digest. Then moves
    /// the file to its place. Returns its length in bytes.
    ///
    /// # Errors
    /// The file can't be written.
    pub(super) fn end(mut self, mut about: Value) -> io::Result<u64> {
        about["profile"] = "data-package".into();
        about["wacz_version"] = "1.1.1".into();
        about["resources"] = Value::Array(std::mem::take(&mut self.resources));
        let text = serde_json::to_vec_pretty(&about).map_err(io::Error::other)?;
        let (hash, _) = self.write("datapackage.json", 0, |out| out.write_all(&text))?;
        let digest = json!({ "path": "datapackage.json", "hash": hash });
        let text = serde_json::to_vec_pretty(&digest).map_err(io::Error::other)?;
        self.write("datapackage-digest.json", 0, |out| out.write_all(&text))?;
        let file = self.zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        let part = self.part.0.as_ref().expect("it is there until now");
        fs::rename(part, &self.path)?;
        self.part.0 = None;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(bytes)
    }
}
