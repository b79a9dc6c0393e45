//! Reads the configuration of a running crawl again, for `sted ctl JOB reload`.
//!
//! Only keys that are marked as live may have changed; if any other has, nothing is reloaded.
//! The work is done by the side thread of the control socket, so it doesn't hold up the crawl.

use super::{ConfFile, inputs, settings};
use crate::conf::{Conf, Flag, Key};
use crate::dns::address::Block;
use crate::engine::contract::Reload;
use crate::os::{self, Reloader};
use crate::url::scope::Scope;

/// The configuration of a running crawl, and its file.
pub(super) struct FileReloader {
    file: ConfFile,
    /// The configuration as it was read last.
    read: Conf,
    /// The configuration that the crawl began with. It has values that the lab has set.
    began: Conf,
    key: [u8; 16],
    /// What [`Reloader::load`] has read, until it is accepted.
    loaded: Option<Conf>,
}

impl FileReloader {
    /// Returns the reloader of a crawl whose configuration was read from `file`. The lab, if there
    /// is one, made the configuration `began` of it.
    pub(super) fn new(file: ConfFile, read: Conf, began: Conf, key: [u8; 16]) -> Self {
        Self { file, read, began, key, loaded: None }
    }

    /// Returns the configuration with the values that the lab has set.
    fn with_lab(&self, conf: &Conf) -> Conf {
        let mut conf = conf.clone();
        conf.job = self.began.job.clone();
        let (began, read) = (&self.began.connections, &self.read.connections);
        let known: &[Block] = &read.addresses_allowed;
        let own = began.addresses_allowed.iter().filter(|block| !known.contains(block));
        conf.connections.addresses_allowed.extend(own.cloned());
        conf
    }
}

impl Reloader for FileReloader {
    fn load(&mut self) -> Result<Reload, String> {
        let conf = self.file.load().map_err(|failure| failure.to_string())?;
        let file = self.file.path.display().to_string();
        conf.has_all_headers(&file).map_err(|mistakes| mistakes.to_string())?;
        let (live, fixed) = differences(&self.read, &conf);
        let path = self.file.path.display();
        if !fixed.is_empty() {
            return Err(format!(
                "{path}: keys that can't be reloaded have changed: {}; restore them, or stop the \
                 crawl and start it again",
                fixed.join(", ")
            ));
        }
        if live.is_empty() {
            return Err(format!("{path}: no key has changed"));
        }
        let whole = self.with_lab(&conf);
        let seeds = inputs::seeds(&whole).map_err(|failure| failure.to_string())?;
        let settings = settings::engine(&whole, self.key);
        let seeds = seeds.iter().map(|seed| &seed.url);
        let scope = Scope::new(settings.scope.clone(), seeds).map_err(|error| error.to_string())?;
        self.loaded = Some(conf);
        Ok(Reload { settings, scope, changed: live })
    }

    fn accept(&mut self) {
        let Some(conf) = self.loaded.take() else { return };
        let text = conf.render();
        if let Err(error) = os::disk::replace(&conf.job.directory, "conf.toml", text.as_bytes()) {
            log::warn!("{}: conf.toml: {error}", conf.job.directory.display());
        }
        self.read = conf;
    }
}

/// Returns the keys whose values differ, with their new values: those that can be reloaded, and all
/// others.
fn differences(before: &Conf, now: &Conf) -> (Vec<String>, Vec<String>) {
    let keys = before.keys();
    let value_of = |key: &Key| {
        let old = keys.iter().find(|old| (old.section, old.name) == (key.section, key.name));
        old.map(|old| old.value.as_str())
    };
    let changed = now.keys().into_iter().filter(|key| value_of(key) != Some(&key.value));
    let (live, fixed): (Vec<_>, Vec<_>) = changed.partition(|key| key.flags.contains(&Flag::Live));
    let gone = keys.iter().any(|old| {
        !now.keys().iter().any(|key| (key.section, key.name) == (old.section, old.name))
    });
    let text = |key: &Key| format!("{}.{} = {}", key.section, key.name, key.value);
    let mut fixed: Vec<String> = fixed.iter().map(text).collect();
    fixed.extend(changed_site(before, now));
    if gone {
        fixed.push("a section is gone".to_owned());
    }
    (live.iter().map(text).collect(), fixed)
}

/// Returns the first table of a site that differs, by its line in the new file. Servers get their
/// table when they become known, so tables can't be reloaded.
fn changed_site(before: &Conf, now: &Conf) -> Option<String> {
    let mut pairs = before.sites.iter().zip(&now.sites);
    if let Some((_, site)) = pairs.find(|(old, new)| old != new) {
        return Some(site.name());
    }
    let is_longer = now.sites.len() > before.sites.len();
    let (all, which) = if is_longer { (&now.sites, "new") } else { (&before.sites, "gone") };
    let site = all.get(before.sites.len().min(now.sites.len()))?;
    Some(format!("{} is {which}", site.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(lines: &str) -> Conf {
        let text = format!(
            "job.seeds = [\"http://a.org/\"]\nidentity.contact = \"me@a.org\"\n\
             limits.pages_max = 9\n{lines}\n"
        );
        Conf::parse(&text, "x.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    #[test]
    fn live_keys_are_told_from_others() {
        let before = conf("politeness.delay = \"2s\"");
        let none: [String; 0] = [];
        assert_eq!(differences(&before, &before), (none.to_vec(), none.to_vec()));
        let now = conf("politeness.delay = \"3s\"\nstore.gzip_level = 2");
        let (live, fixed) = differences(&before, &now);
        assert_eq!(live, ["politeness.delay = \"3s\""]);
        assert_eq!(fixed, ["store.gzip_level = 2"]);
        let site = |delay: &str| conf(&format!("[[site]]\nhost = \"b.org\"\ndelay = \"{delay}\""));
        let changed = |before: &Conf, now: &Conf| differences(before, now).1.concat();
        let (one, two) = (site("1s"), site("2s"));
        assert_eq!(changed(&one, &one), "");
        assert_eq!(changed(&one, &two), "[[site]] host = \"b.org\" (line 4)");
        assert_eq!(changed(&before, &one), "[[site]] host = \"b.org\" (line 4) is new");
        assert_eq!(changed(&one, &before), "[[site]] host = \"b.org\" (line 4) is gone");
    }
}
