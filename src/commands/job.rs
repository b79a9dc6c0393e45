//! Finds the directory of a job, which a user names by its directory or by its configuration.

use super::{Exit, Failure, load};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the directory of a job, which is named by its directory or its configuration.
pub(super) fn directory(job: &Path) -> Result<PathBuf, Failure> {
    let name = job.display();
    match fs::metadata(job) {
        Ok(facts) if facts.is_dir() && job.join("lock").exists() => Ok(job.to_owned()),
        Ok(facts) if facts.is_dir() => {
            Err(Failure::new(Exit::Job, format!("{name}: is no job directory: it has no crawl")))
        }
        Ok(_) => Ok(load(job)?.job.directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("{name}: no such job; name its directory or its configuration");
            Err(Failure::new(Exit::Job, text))
        }
        Err(error) => Err(Failure::of_file(job, &error)),
    }
}
