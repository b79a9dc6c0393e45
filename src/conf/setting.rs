//! Values of keys that the command line gives, which replace those of the file.
//!
//! A value is TOML, or a text without quotes: `politeness.delay=2s`. A value that is valid TOML but
//! not valid for its key is tried as a text, too (`job.name=2024`), and for a key that has a list a
//! text is a list of one item (`scope.hosts=a.example`).

use super::kind::{Kind, Refused};
use super::mistake::{Place, line_of};
use super::units::quote;
use toml::de::DeTable;

/// With these, a value that is TOML and not a bare text begins.
const TOML: [char; 4] = ['"', '\'', '[', '{'];

/// A value that the command line gives to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The argument in messages, like `--set politeness.delay`.
    argument: String,
    /// The key with its section, as typed.
    key: String,
    /// The value as typed.
    value: String,
}

impl Setting {
    /// Parses `section.key=value`, the argument of `--set`. Whether there is such a key is checked
    /// together with the file.
    ///
    /// # Errors
    /// The text has no equals sign, or its value begins like TOML and is not.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no value; write it like politeness.delay=2s"))?;
        let (key, value) = (key.trim(), value.trim());
        if value.starts_with(TOML)
            && let Err(error) = DeTable::parse(&line(value))
        {
            return Err(format!("{key}: {value} is not TOML: {}", error.message()));
        }
        Ok(Self { argument: format!("--set {key}"), key: key.to_owned(), value: value.to_owned() })
    }

    /// Creates the value `value` of `key`, which messages name by `argument`. The value is TOML or
    /// a text.
    pub fn new(argument: &str, key: &str, value: &str) -> Self {
        Self { argument: argument.to_owned(), key: key.to_owned(), value: value.to_owned() }
    }

    /// Creates the value `value`, a text, of `key`, which messages name by `argument`.
    pub fn of_text(argument: &str, key: &str, value: &str) -> Self {
        Self::new(argument, key, &quote(value))
    }

    /// Creates the value `values`, a list of texts, of `key`, which messages name by `argument`.
    pub fn of_list(argument: &str, key: &str, values: &[String]) -> Self {
        let items: Vec<String> = values.iter().map(|value| quote(value)).collect();
        Self::new(argument, key, &format!("[{}]", items.join(", ")))
    }

    /// Returns the key with its section.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the setting as an argument of `--set`.
    pub fn text(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    /// Returns the setting as the place of a mistake.
    pub(super) fn place(&self) -> Place {
        Place::Argument(self.argument.clone())
    }

    /// Parses the value as one of `kind`.
    pub(super) fn read<T: 'static>(&self, kind: &Kind<T>) -> Result<T, Refused> {
        let text = quote(&self.value);
        let text = if kind.is_list() { format!("[{text}]") } else { text };
        let mut refused = None;
        let is_toml = self.value.starts_with(TOML);
        let forms = [Some(line(&self.value)), (!is_toml).then(|| line(&text))];
        for line in forms.into_iter().flatten() {
            // Two keys in one value would be a line break with another key after it.
            let Ok(table) = DeTable::parse(&line) else { continue };
            let Some((_, value)) =
                table.get_ref().iter().next().filter(|_| table.get_ref().len() == 1)
            else {
                continue;
            };
            match kind.read(value.get_ref()) {
                Ok(value) => return Ok(value),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        Err(refused.unwrap_or_else(|| format!("{:?} is not a value", self.value).into()))
    }
}

fn line(value: &str) -> String {
    format!("x = {value}")
}

/// What the operator has given: a file, and values on the command line.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// The text of the file.
    pub(super) text: &'a str,
    /// The text as TOML.
    pub(super) root: &'a DeTable<'a>,
    /// The values on the command line, of which the last one of a key counts.
    pub(super) settings: &'a [Setting],
}

impl<'a> Given<'a> {
    /// Returns the table of a section, which may be in another one: `identity.signature`.
    pub(super) fn section(&self, name: &str) -> Option<&'a DeTable<'a>> {
        name.split('.').try_fold(self.root, |table, part| table.get(part)?.get_ref().as_table())
    }

    /// Returns whether the section `name`, or a key of it, is given.
    pub(super) fn has_section(&self, name: &str) -> bool {
        let is_in = |setting: &Setting| {
            setting.key.rsplit_once('.').is_some_and(|(section, _)| section == name)
        };
        self.root.contains_key(name) || self.settings.iter().any(is_in)
    }

    /// Returns whether the key `section.name` is given.
    pub(super) fn has_key(&self, section: &str, name: &str) -> bool {
        let table = self.section(section);
        self.setting(section, name).is_some() || table.is_some_and(|table| table.contains_key(name))
    }

    /// Returns the setting of a key on the command line.
    pub(super) fn setting(&self, section: &str, name: &str) -> Option<&'a Setting> {
        let is = |setting: &&Setting| setting.key.rsplit_once('.') == Some((section, name));
        self.settings.iter().rev().find(is)
    }

    /// Returns the place of a key. If the key is absent, returns the place of its section.
    pub(super) fn place(&self, key: &str) -> Place {
        let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
        if let Some(setting) = self.setting(section, name) {
            return setting.place();
        }
        let (mut table, mut at) = (Some(self.root), None);
        for part in section.split('.').chain([name]) {
            let Some((key, value)) = table.and_then(|table| table.get_key_value(part)) else {
                break;
            };
            (table, at) = (value.get_ref().as_table(), Some(key.span().start));
        }
        at.map_or(Place::Nowhere, |at| Place::Line(line_of(self.text, at)))
    }
}
