//! `sted check`: validates a configuration and prints it with all defaults.
//!
//! The output is TOML that parses as the same configuration; remarks are TOML comments. Seeds and
//! the hosts file are read as a crawl would read them. Other files that the configuration names are
//! only opened, not read.

use super::file::shell;
use super::{ConfFile, Exit, Failure, cluster, inputs, named, print, sites, study};
use crate::conf::{Conf, Scope};
use crate::engine::settings::Signing;
use crate::url::scope::FromSeeds;

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
    named::refuse_missing(&conf, &file.path)?;
    let mut seeds = Vec::new();
    if !conf.job.seeds.is_empty() || conf.job.seeds_file.is_some() {
        seeds = inputs::seeds(&conf)?;
        inputs::warn_of_scope(&conf, &seeds);
    }
    inputs::warn_of_conf(&conf);
    let signing = inputs::signing(&conf)?;
    sites::warn(&conf, &file.path);
    let text = match urls {
        [] => {
            format!(
                "{}{}\n{}",
                remarks(&conf, file, signing.as_ref()),
                cluster::check::remarks(&conf),
                conf.render()
            )
        }
        urls => sites::explain(&conf, &seeds, urls, is_json)?,
    };
    print(&text)?;
    Ok(Exit::Finished)
}

/// Returns the TOML comments at the head of the output: facts that the keys alone don't show.
fn remarks(conf: &Conf, file: &ConfFile, signing: Option<&Signing>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let agent = conf.identity.user_agent();
    let target = match &conf.lab {
        Some(_) if study::IS_BUILT_IN => "its own lab on this machine",
        Some(_) => "nothing: this binary was built without the lab",
        None if conf.compare.is_some() => "nothing: it compares policies on a synthetic web",
        None => &scope(&conf.scope),
    };
    let key = signing.map(|signing| format!("# Signs with: key {}\n", signing.signer.key_id()));
    format!(
        "# Effective configuration of {} (sted {version}).\n\
         # User-Agent: {agent}\n{}\
         # Crawls: {target}\n",
        shell(&file.arguments()),
        key.unwrap_or_default()
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
