//! A disk that discards everything except the trace: the other files of a simulated crawl are not
//! compared, and the log of a million pages would have gigabytes.

use crate::commands::{Exit, Failure};
use crate::ground::disk::{Disk, Error};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Discards all files except the trace.
#[derive(Debug)]
pub(super) struct Nowhere {
    trace: Option<File>,
}

/// The engine's name for the file of its trace.
const TRACE: &str = "trace";

impl Nowhere {
    /// Creates the disk. If `path` is given, the trace is written to a new file there; otherwise it
    /// is discarded, too.
    ///
    /// # Errors
    /// The file can't be created.
    pub(super) fn but_for(path: Option<&Path>) -> Result<Self, Failure> {
        let made = path.map(|path| {
            let cannot = |error| Failure::new(Exit::Disk, format!("{}: {error}", path.display()));
            File::create(path).map_err(cannot)
        });
        Ok(Self { trace: made.transpose()? })
    }
}

impl Disk for Nowhere {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.trace {
            Some(file) if name == TRACE => {
                file.write_all(bytes).map_err(|source| Error::new("append", name, source))
            }
            _ => Ok(()),
        }
    }

    fn read_at(&mut self, _: &str, _: u64, _: &mut [u8]) -> Result<usize, Error> {
        Ok(0)
    }

    fn len(&mut self, _: &str) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    fn sync(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn truncate(&mut self, _: &str, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn rename(&mut self, _: &str, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn remove(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn list(&mut self, _: &str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Returns a disk for jobs in the background. Only the archive has such jobs, and they don't
    /// write the trace.
    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self { trace: None })
    }
}
