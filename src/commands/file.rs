//! The configuration that a command line names: a file, and values that replace those of the file.

use super::{Exit, Failure};
use crate::conf::{Conf, Setting};
use crate::os::input;
use clap::Args;
use std::path::{Path, PathBuf};

/// The length of the longest configuration that is read, in bytes.
const CONF_BYTES_MAX: u64 = 4 << 20;

/// A configuration file, and values of the command line.
#[derive(Args, Clone, Debug)]
pub struct ConfFile {
    /// The configuration: a TOML file
    #[arg(value_name = "CONF")]
    pub path: PathBuf,
    /// Values of the command line.
    #[command(flatten)]
    pub values: Values,
}

/// Values that the command line gives to keys of the configuration.
#[derive(Args, Clone, Debug, Default)]
pub struct Values {
    /// Set a key of the configuration, whatever the file says; may be repeated
    ///
    /// The value is TOML, or a text without quotes: --set politeness.delay=2s --set
    /// scope.exclude=/print/. conf/reference.toml explains every key.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", value_parser = Setting::parse)]
    pub set: Vec<Setting>,
}

impl ConfFile {
    /// Returns the configuration file at `path`, without values of the command line.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), values: Values::default() }
    }

    /// Reads and parses the configuration.
    ///
    /// # Errors
    /// The file can't be read, or there are mistakes, all of which are reported.
    pub fn load(&self) -> Result<Conf, Failure> {
        let name = self.path.display().to_string();
        let cannot =
            |why: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("{name}: {why}"));
        let bytes = input::read(&self.path, CONF_BYTES_MAX).map_err(|error| cannot(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| cannot(&"is not valid UTF-8"))?;
        Conf::parse_with(&text, &name, &self.values.set)
            .map_err(|mistakes| Failure::new(Exit::Usage, mistakes))
    }

    /// Returns the arguments that name this configuration on a command line.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.path.display().to_string()];
        for setting in &self.values.set {
            arguments.extend(["--set".to_owned(), setting.text()]);
        }
        arguments
    }

    /// Returns the command that runs or resumes the crawl of this configuration.
    pub(super) fn crawl_command(&self) -> String {
        let words = ["sted".to_owned(), "crawl".to_owned()].into_iter().chain(self.arguments());
        shell(&words.collect::<Vec<_>>())
    }
}

/// Reads and parses the configuration at `path`.
///
/// # Errors
/// The file can't be read, or it has mistakes, all of which are reported.
pub fn load(path: &Path) -> Result<Conf, Failure> {
    ConfFile::new(path).load()
}

/// Formats words as a command that a shell splits into the same words.
pub(super) fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_the_same_words() {
        let words = ["sted", "--set", "a.b=[\"x\"]", "it's", "", "http://a.org/?b&c"];
        let words = words.map(str::to_owned);
        let expected = "sted --set 'a.b=[\"x\"]' 'it'\\''s' '' 'http://a.org/?b&c'";
        assert_eq!(shell(&words), expected);
    }
}
