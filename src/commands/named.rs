//! The files that a configuration names. Each key that names one is listed here, and only here.

use super::{Exit, Failure, study};
use crate::conf::{Conf, HostsFile};
use crate::os::input;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What a crawl does with a file that its configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
}

/// Returns each key of a crawl that names a file or folder outside the job, with its path.
fn paths(conf: &mut Conf) -> impl Iterator<Item = (&'static str, Use, &mut PathBuf)> {
    let hosts_file = match &mut conf.names.hosts_file {
        HostsFile::File(path) => Some(path),
        HostsFile::System | HostsFile::None => None,
    };
    let (directory, keys_file) = match &mut conf.lab {
        Some(lab) => (Some(&mut lab.directory), Some(&mut lab.keys_file)),
        None => (None, None),
    };
    let all = [
        ("job.seeds_file", Use::Reads, conf.job.seeds_file.as_mut()),
        ("identity.signature.key", Use::Reads, conf.signature.key.as_mut()),
        ("names.hosts_file", Use::Reads, hosts_file),
        ("tls.roots_file", Use::Reads, conf.tls.roots_file.as_mut()),
        ("quality.file", Use::Reads, conf.quality.file.as_mut()),
        ("admin.textfile", Use::Writes, conf.admin.textfile.as_mut()),
        ("cluster.credentials_file", Use::Reads, conf.cluster.credentials_file.as_mut()),
        ("cluster.password_file", Use::Reads, conf.cluster.password_file.as_mut()),
        ("cluster.roots_file", Use::Reads, conf.cluster.roots_file.as_mut()),
        ("cluster.certificate_file", Use::Reads, conf.cluster.certificate_file.as_mut()),
        ("cluster.key_file", Use::Reads, conf.cluster.key_file.as_mut()),
        ("lab.directory", Use::Writes, directory),
        ("lab.keys_file", Use::Reads, keys_file.and_then(Option::as_mut)),
    ];
    all.into_iter().filter_map(|(key, how, path)| Some((key, how, path?)))
}

/// Returns the files and folders that the configuration names, besides the job directory.
pub(super) fn files(conf: &Conf) -> Vec<PathBuf> {
    paths(&mut conf.clone()).map(|(_, _, path)| path.clone()).collect()
}

/// Makes the paths of the files that the configuration names absolute, so that the crawl can be
/// resumed from any directory.
///
/// # Errors
/// The current directory is needed and not known.
pub(super) fn make_absolute(conf: &mut Conf) -> io::Result<()> {
    for (_, _, path) in paths(conf) {
        *path = std::path::absolute(&*path)?;
    }
    Ok(())
}

/// Checks that the files that the configuration wants to be read can be opened. `path` is the name
/// of the configuration in messages.
///
/// # Errors
/// Some files can't be opened; the message has one line for each.
pub(super) fn refuse_missing(conf: &Conf, path: &Path) -> Result<(), Failure> {
    let mut own = conf.clone();
    let read = paths(&mut own).filter(|(_, how, _)| *how == Use::Reads);
    let read = read.map(|(key, _, file)| (key, file.clone()));
    let faults = read.chain(study::files_named(conf)).filter_map(|(key, file)| {
        let error = fault(&file)?;
        Some(format!("{}: {key}: cannot open {}: {error}", path.display(), file.display()))
    });
    let missing: Vec<String> = faults.collect();
    if missing.is_empty() { Ok(()) } else { Err(Failure::new(Exit::Usage, missing.join("\n"))) }
}

/// Returns the error of opening a file; `None` if it can be read.
fn fault(file: &Path) -> Option<io::Error> {
    input::check(file).and_then(|()| File::open(file).map(drop)).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key whose value is a path is listed, except those of directories that jobs own.
    #[test]
    fn every_key_that_names_a_file_is_listed() {
        let file = |name: &str| PathBuf::from(format!("missing/{name}"));
        let mut conf = Conf::with_experiments();
        conf.job.seeds_file = Some(file("seeds"));
        conf.signature.key = Some(file("signature"));
        conf.names.hosts_file = HostsFile::File(file("hosts"));
        conf.tls.roots_file = Some(file("roots"));
        conf.quality.file = Some(file("quality"));
        conf.admin.textfile = Some(file("metrics"));
        let cluster = &mut conf.cluster;
        cluster.credentials_file = Some(file("credentials"));
        cluster.password_file = Some(file("password"));
        cluster.roots_file = Some(file("authorities"));
        cluster.certificate_file = Some(file("certificate"));
        cluster.key_file = Some(file("key"));
        let lab = conf.lab.as_mut().expect("a lab");
        lab.directory = file("lab");
        lab.keys_file = Some(file("keys"));
        let named = conf.keys().into_iter().filter(|key| key.value.contains("\"missing/"));
        let named: Vec<String> = named.map(|key| format!("{}.{}", key.section, key.name)).collect();
        let mut listed: Vec<&str> = paths(&mut conf.clone()).map(|(key, ..)| key).collect();
        listed.sort_by_key(|key| named.iter().position(|other| other == key));
        assert_eq!(listed, named);
        let others = conf.keys().into_iter().filter(|key| {
            let is_path = key.name.ends_with("file") || key.name.ends_with("directory");
            is_path && !named.contains(&format!("{}.{}", key.section, key.name))
        });
        let others: Vec<_> = others.map(|key| (key.section, key.name)).collect();
        // The study lists the file that it reads itself (`study::files_named`).
        let own = [
            ("job", "directory"),
            ("web", "hosts_file"),
            ("compare", "directory"),
            ("profile", "directory"),
        ];
        assert_eq!(others, own);

        let error = refuse_missing(&conf, Path::new("x.toml")).expect_err("none is there");
        assert_eq!(error.text.lines().count(), 11, "those that are read: {error}");
        make_absolute(&mut conf).expect("there is a current directory");
        assert!(files(&conf).iter().all(|path| path.is_absolute()));
    }
}
