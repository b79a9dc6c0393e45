//! `sted check`: validates a configuration and prints it with all defaults.
//!
//! The output is TOML that parses as the same configuration; remarks are TOML comments. Seeds and
//! the hosts file are read as a crawl would read them. Other files that the configuration names are
//! only opened, not read.

use super::file::shell;
use super::{ConfFile, Exit, Failure, inputs, print, sites, study};
use crate::conf::{Conf, HostsFile, Scope};
use crate::os::input;
use crate::url::scope::FromSeeds;
use std::fs::File;
use std::io;
use std::path::Path;

/// The exit codes of `sted check`, for its help text.
pub(super) const EXITS: &str = "Exit codes:
   0  the configuration is valid
   2  it is not valid, or a file is missing; stderr has the mistakes
   3  the effective configuration could not be written";

/// Checks the configuration `file` and prints it with the defaults of the keys that it leaves out,
/// or, if `urls` is not empty, which settings apply to these.
///
/// # Errors
/// The file has mistakes, a file that it names can't be opened, or stdout can't be written.
pub fn run(file: &ConfFile, urls: &[String], is_json: bool) -> Result<Exit, Failure> {
    let conf = file.load()?;
    refuse_missing_files(&conf, &file.path)?;
    let mut seeds = Vec::new();
    if !conf.job.seeds.is_empty() || conf.job.seeds_file.is_some() {
        seeds = inputs::seeds(&conf)?;
        inputs::warn_of_scope(&conf, &seeds);
    }
    inputs::warn_of_hosts(&conf);
    sites::warn(&conf, &file.path);
    let text = match urls {
        [] => format!("{}\n{}", remarks(&conf, file), conf.render()),
        urls => sites::explain(&conf, &seeds, urls, is_json)?,
    };
    print(&text)?;
    Ok(Exit::Finished)
}

/// Returns the TOML comments at the head of the output: facts that the keys alone don't show.
fn remarks(conf: &Conf, file: &ConfFile) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let agent = conf.identity.user_agent();
    let target = match &conf.lab {
        Some(_) if study::IS_BUILT_IN => "its own lab on this machine",
        Some(_) => "nothing: this binary was built without the lab",
        None if conf.compare.is_some() => "nothing: it compares policies on a synthetic web",
        None => &scope(&conf.scope),
    };
    format!(
        "# Effective configuration of {} (sted {version}).\n\
         # User-Agent: {agent}\n\
         # Crawls: {target}\n",
        shell(&file.arguments())
    )
}

/// Describes in words which URLs are in scope.
fn scope(scope: &Scope) -> String {
    let seeds = match scope.span {
        FromSeeds::Any => None,
        FromSeeds::Host => Some("the hosts of its seeds"),
        FromSeeds::Domain => Some("the domains of its seeds"),
        FromSeeds::Prefix => Some("the folders of its seeds"),
    };
    let lists = [
        (&scope.hosts, "the hosts named in [scope]"),
        (&scope.domains, "the domains named in [scope]"),
        (&scope.prefixes, "the prefixes named in [scope]"),
    ];
    let named = lists.into_iter().filter_map(|(list, text)| (!list.is_empty()).then_some(text));
    let parts: Vec<&str> = seeds.into_iter().chain(named).collect();
    if parts.is_empty() { "the open web".to_owned() } else { parts.join(", ") }
}

/// Checks that the files named by the configuration can be opened. `path` is the name of the
/// configuration in messages.
///
/// # Errors
/// Some files can't be opened; the message has one line for each.
pub(super) fn refuse_missing_files(conf: &Conf, path: &Path) -> Result<(), Failure> {
    let hosts_file = match &conf.names.hosts_file {
        HostsFile::File(path) => Some(path.clone()),
        HostsFile::System | HostsFile::None => None,
    };
    let named = [
        ("job.seeds_file", &conf.job.seeds_file),
        ("names.hosts_file", &hosts_file),
        ("tls.roots_file", &conf.tls.roots_file),
        ("quality.file", &conf.quality.file),
    ];
    let named = named.into_iter().filter_map(|(key, file)| Some((key, file.clone()?)));
    let files = named.chain(study::files_named(conf));
    let faults = files.filter_map(|(key, file)| {
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

    #[test]
    fn the_scope_is_described() {
        let mut set = Scope::default();
        assert_eq!(scope(&set), "the open web");
        set.span = FromSeeds::Host;
        assert_eq!(scope(&set), "the hosts of its seeds");
        set.domains = vec!["a.test".to_owned()];
        assert_eq!(scope(&set), "the hosts of its seeds, the domains named in [scope]");
        set.span = FromSeeds::Any;
        assert_eq!(scope(&set), "the domains named in [scope]");
    }
}
