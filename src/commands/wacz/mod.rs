//! `sted wacz`: packs a finished or stopped job as a WACZ file (Web Archive Collection Zipped
//! 1.1.1), which replay programs open and serve as it is.
//!
//! The package has the WARC files as they are, one sorted index of them, the list of pages, and the
//! digests of all that. It is written to a temporary name, synced and renamed.
//!
//! Cost: one pass over WARC files, crawl log and index; 60 MiB of memory; as much disk as the
//! archive takes.
//! Source: specs.webrecorder.net/wacz/1.1.1.

mod index;
mod merge;
mod package;
mod pages;

use super::crawl::damaged;
use super::{Exit, Failure, job, load, print};
use crate::engine::Earlier;
use crate::ground::map::{Map, Set};
use crate::ground::time::UnixTime;
use crate::os::disk::{LockError, OsDisk, lock};
use crate::store::cdxj;
use index::Blocks;
use indicatif::{HumanBytes, HumanCount};
use package::Package;
use pages::{Pages, ReadBack};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What `sted wacz --help` says after its options.
pub(super) const HELP: &str =
    "Cost: it reads the archive once and writes as much, so it takes about \
as long as a copy of the
archive, the disk space of one, and 60 MiB of memory.

Example: sted wacz jobs/crawl --out site.wacz

Open the file at https://replayweb.page, which doesn't upload it, or with pywb:
  wb-manager init site && wb-manager add --unpack-wacz site site.wacz && wayback

Exit codes:
   0  the package has all of the archive
   2  the command line or the configuration is wrong
   3  a file could not be read or written
   5  the crawl is running, was not stopped in order, or has no archive
  12  the package lacks something that the job once had; the output says what";

/// The most names of a kind that are listed.
const LISTED: usize = 10;

/// A file of the archive or of the index.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    bytes: u64,
}

/// Packs a job.
///
/// # Errors
/// The job can't be packed, or a file can't be read or written.
pub(super) fn run(job: &Path, out: Option<&Path>) -> Result<Exit, Failure> {
    let folder = job::directory(job)?;
    let path = match out {
        Some(path) => path.to_owned(),
        None => default_out(&folder),
    };
    if path.extension().is_none_or(|ending| ending != "wacz") {
        let text = format!("--out: {}: the name of a WACZ file ends with .wacz", path.display());
        return Err(Failure::new(Exit::Usage, text));
    }
    let _lock = lock(&folder).map_err(|error| not_locked(&folder, &error))?;
    refuse_unclean(&folder)?;
    let warcs = files(&folder.join("warc"), &[".warc.gz", ".warc"])
        .map_err(|error| Failure::of_file(&folder.join("warc"), &error))?;
    if warcs.is_empty() {
        let text = format!(
            "{}: has no archive: there is no WARC file in {}",
            folder.display(),
            folder.join("warc").display()
        );
        return Err(Failure::new(Exit::Job, text));
    }
    let packed = pack(&folder, &path, &warcs).map_err(|error| Failure::of_file(&path, &error))?;
    print(&packed.text(&path, &folder))?;
    Ok(if packed.is_whole() { Exit::Finished } else { Exit::NotWhole })
}

/// Returns where the package of a job is written unless a name is given: beside the job directory,
/// with `.wacz` after its name.
pub(super) fn default_out(folder: &Path) -> PathBuf {
    // Of `.` and `..` only the path from the root shows the name.
    let named = folder.file_name().is_none().then(|| fs::canonicalize(folder).ok()).flatten();
    let folder = named.as_deref().unwrap_or(folder);
    let mut name = folder.file_name().unwrap_or("crawl".as_ref()).to_owned();
    name.push(".wacz");
    folder.with_file_name(name)
}

fn not_locked(folder: &Path, error: &LockError) -> Failure {
    let job = folder.display();
    match error {
        LockError::Held { .. } => {
            let text = format!(
                "{job}: another process uses the job: wait for the crawl to end, or stop it with \
                 `sted ctl {job} stop`"
            );
            Failure::new(Exit::Job, text)
        }
        LockError::Failed { path, source } => Failure::of_file(path, source),
    }
}

/// Refuses a job that was not stopped in order: its last files may end with half a record.
fn refuse_unclean(folder: &Path) -> Result<(), Failure> {
    let mut disk =
        OsDisk::open_to_read(folder).map_err(|error| Failure::of_file(folder, &error))?;
    let found = Earlier::find(&mut disk).map_err(|error| damaged(folder, &error))?;
    if found.is_none_or(|earlier| earlier.is_clean()) {
        return Ok(());
    }
    let text = format!(
        "{}: the crawl was not stopped in order, so its last files may be incomplete: run it \
         again, which repairs them, and let it end or stop it",
        folder.display()
    );
    Err(Failure::new(Exit::Job, text))
}

/// Returns the files in a folder whose names have one of these endings, by their final names.
fn files(folder: &Path, endings: &[&str]) -> io::Result<BTreeMap<String, Source>> {
    let mut found = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = name.strip_suffix(".open").unwrap_or(&name);
        let facts = fs::metadata(entry.path())?;
        if endings.iter().any(|ending| name.ends_with(ending)) && facts.is_file() {
            found.insert(name.to_owned(), Source { path: entry.path(), bytes: facts.len() });
        }
    }
    Ok(found)
}

/// What a package has, and what it lacks.
#[derive(Debug, Default)]
struct Packed {
    warcs: usize,
    captures: u64,
    pages: u64,
    bytes: u64,
    /// WARC files that the index names but that are not there, with the number of their captures.
    missing: Map<String, u64>,
    /// WARC files without a line in the index.
    unindexed: Vec<String>,
    /// Lines of the index that can't be read.
    illegible: u64,
    /// Pages that were read back after a restart, and are too many to be listed.
    read_back: u64,
    /// Pages that are not listed: neither the log nor the index says when they were fetched.
    undated: u64,
    /// Parts of the crawl log that are not there, so their pages are not listed.
    log_parts: Vec<String>,
}

fn pack(folder: &Path, path: &Path, warcs: &BTreeMap<String, Source>) -> io::Result<Packed> {
    let now = crate::os::now().unix;
    let mut package = Package::begin(path, zip_time(now))?;
    let mut packed = Packed { warcs: warcs.len(), ..Packed::default() };
    for (name, source) in warcs {
        package.add(&format!("archive/{name}"), source.bytes, |out| {
            io::copy(&mut File::open(&source.path)?, out).map(|_| ())
        })?;
    }
    let mut back = ReadBack::find(folder)?;
    packed.read_back = back.left_out;
    let scratch = path.with_extension("wacz.sort");
    let note = |url: &str, stamp: &str| back.note(url, stamp);
    let indexed = add_index((folder, &scratch), warcs, &mut package, &mut packed, note);
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    indexed?;
    // A page is found by the index.
    let is_indexed = |name: &&String| !packed.unindexed.contains(name);
    let names: Set<String> = warcs.keys().filter(is_indexed).cloned().collect();
    let mut pages = Pages::default();
    // Its length is not known before it is written.
    package.add("pages/pages.jsonl", u64::MAX, |out| pages.write(folder, &names, back, out))?;
    (packed.pages, packed.undated) = (pages.count, pages.undated);
    packed.log_parts = missing_parts(folder)?;
    let date = now.civil().to_seconds();
    let conf = load(&folder.join("conf.toml")).ok();
    let mut about = json!({
        "title": conf.map_or_else(|| "crawl".to_owned(), |conf| conf.job.name),
        "software": format!("sted {}", env!("CARGO_PKG_VERSION")),
        "created": date,
        "modified": date,
    });
    if let Some((url, time)) = pages.main {
        about["mainPageUrl"] = url.into();
        about["mainPageDate"] = time.into();
    }
    packed.bytes = package.end(about)?;
    Ok(packed)
}

/// Adds the index of all captures in the WARC files of the package. Calls `note` with the URL and
/// the time of each.
fn add_index(
    (folder, scratch): (&Path, &Path),
    warcs: &BTreeMap<String, Source>,
    package: &mut Package,
    packed: &mut Packed,
    mut note: impl FnMut(&str, &str),
) -> io::Result<()> {
    let sources = files(&folder.join("index"), &[".cdxj"])?;
    let bytes = sources.values().map(|source| source.bytes).sum();
    let paths: Vec<PathBuf> = sources.into_values().map(|source| source.path).collect();
    let mut unindexed: Set<&str> = warcs.keys().map(String::as_str).collect();
    let mut list = String::new();
    package.add("indexes/index.cdx.gz", bytes, |out| {
        let mut blocks = Blocks::new(out);
        merge::merge(&paths, scratch, &mut |line| {
            let text = std::str::from_utf8(line).unwrap_or_default();
            let Ok(entry) = cdxj::parse(text) else {
                packed.illegible += 1;
                return Ok(());
            };
            if !warcs.contains_key(&*entry.file) {
                *packed.missing.entry(entry.file.into_owned()).or_default() += 1;
                return Ok(());
            }
            unindexed.remove(&*entry.file);
            packed.captures += 1;
            note(&entry.url, entry.stamp);
            blocks.add(line)
        })?;
        list = blocks.end()?;
        Ok(())
    })?;
    packed.unindexed = unindexed.into_iter().map(str::to_owned).collect();
    packed.unindexed.sort();
    package.add("indexes/index.idx", list.len() as u64, |out| out.write_all(list.as_bytes()))
}

/// Returns the parts of the crawl log that once existed and are not there, compressed or not.
fn missing_parts(folder: &Path) -> io::Result<Vec<String>> {
    let text = match fs::read_to_string(folder.join("crawl.parts")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let is_there =
        |name: &str| folder.join(name).exists() || folder.join(format!("{name}.gz")).exists();
    Ok(text.lines().filter(|name| !is_there(name)).map(str::to_owned).collect())
}

fn zip_time(now: UnixTime) -> zip::DateTime {
    let civil = now.civil();
    let narrow = |number: u32| u8::try_from(number).unwrap_or(0);
    zip::DateTime::from_date_and_time(
        u16::try_from(civil.year).unwrap_or(u16::MAX),
        narrow(civil.month),
        narrow(civil.day),
        narrow(civil.hour),
        narrow(civil.minute),
        narrow(civil.second),
    )
    .unwrap_or_default()
}

impl Packed {
    fn is_whole(&self) -> bool {
        let counts = [self.illegible, self.read_back, self.undated];
        let is_any = counts.iter().any(|count| *count > 0) || !self.missing.is_empty();
        !is_any && self.unindexed.is_empty() && self.log_parts.is_empty()
    }

    fn text(&self, path: &Path, folder: &Path) -> String {
        let mut text = format!(
            "{}: {} WARC files, {} captures, {} pages, {}\n",
            path.display(),
            self.warcs,
            HumanCount(self.captures),
            HumanCount(self.pages),
            HumanBytes(self.bytes)
        );
        let mut lacks = |what: &str, names: &mut dyn Iterator<Item = String>| {
            for (at, name) in names.enumerate() {
                text += &match at {
                    0 => format!("{what}\n  {name}\n"),
                    1..LISTED => format!("  {name}\n"),
                    LISTED => "  and more\n".to_owned(),
                    _ => break,
                };
            }
        };
        let mut missing: Vec<_> = self.missing.iter().collect();
        missing.sort();
        let captures = |(name, count): (&String, &u64)| format!("{name}: {count} captures");
        lacks(
            &format!("not in {}, so its captures are left out:", folder.join("warc").display()),
            &mut missing.into_iter().map(captures),
        );
        lacks(
            "without a line in the index, so nothing of it is found; `sted crawl --rebuild` \
             repairs a lost index:",
            &mut self.unindexed.iter().cloned(),
        );
        lacks(
            &format!("not in {}, so its pages are not listed:", folder.display()),
            &mut self.log_parts.iter().cloned(),
        );
        if self.read_back > 0 {
            let pages = HumanCount(self.read_back);
            text +=
                &format!("{pages} pages that were read back after a restart may not be listed\n");
        }
        if self.undated > 0 {
            let pages = HumanCount(self.undated);
            text += &format!(
                "{pages} pages are not listed: neither log nor index says when they were fetched\n"
            );
        }
        if self.illegible > 0 {
            text += &format!("{} lines of the index can't be read\n", HumanCount(self.illegible));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_after_its_job() {
        for (folder, expected) in [
            ("jobs/crawl", "jobs/crawl.wacz"),
            ("jobs/crawl/", "jobs/crawl.wacz"),
            ("jobs/crawl/.", "jobs/crawl.wacz"),
            ("/jobs/a.org", "/jobs/a.org.wacz"),
        ] {
            assert_eq!(default_out(Path::new(folder)), Path::new(expected), "{folder}");
        }
        let here = std::env::current_dir().expect("a directory");
        let expected = PathBuf::from(format!("{}.wacz", here.display()));
        assert_eq!(default_out(Path::new(".")), expected);
    }
}
