//! Walks over all keys, either to read a file into a [`super::Conf`] or to list every key with its
//! value and description.
//!
//! Laws: a key that is absent keeps its default value. A key whose value is refused also keeps its
//! default, and a [`Mistake`] is recorded. The text that is listed for a value parses as that
//! value.

use super::kind::{Kind, Refused};
use super::mistake::{Mistake, Place, line_of, suffice};
use super::setting::Given;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Lines of prose, each without the mark that makes it a comment in a file.
pub type Prose = &'static [&'static str];

/// A key of the configuration: its place in the file, its value, and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name of the key's section.
    pub section: &'static str,
    /// What the section of the key is for.
    pub about: Prose,
    /// The name of the key in its section.
    pub name: &'static str,
    /// The value as TOML.
    pub value: String,
    /// The allowed values in words.
    pub allowed: String,
    /// What the key does and, after an empty line, what goes wrong at both ends of its range.
    pub help: Prose,
    /// When and where the key may change.
    pub flags: &'static [Flag],
}

/// When and where a key may change. A key without a flag is read when a crawl starts or resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Fixed for the life of a job: a crawl that resumes with another value is refused.
    Kept,
    /// May change while a crawl runs, because nothing was built or stored with the old value.
    Live,
    /// A site may have its own value.
    Site,
}

/// A walk over all keys: the current section, and whether each key is read or listed.
pub(super) struct Walk<'a> {
    section: &'static str,
    about: Prose,
    task: Task<'a>,
}

enum Task<'a> {
    Read(Reader<'a>),
    Site(SiteReader<'a>),
    List(Vec<Key>),
}

/// The configuration that a walk reads.
struct Reader<'a> {
    given: Given<'a>,
    mistakes: Vec<Mistake>,
}

/// The table of a site's settings that a walk reads.
struct SiteReader<'a> {
    text: &'a str,
    table: &'a DeTable<'a>,
    mistakes: Vec<Mistake>,
    /// The keys that the table has.
    set: Vec<Key>,
}

impl<'a> Walk<'a> {
    /// Creates a walk that reads what is given.
    pub(super) fn reading(given: Given<'a>) -> Self {
        let reader = Reader { given, mistakes: Vec::new() };
        Self { section: "", about: &[], task: Task::Read(reader) }
    }

    /// Creates a walk that reads one table of the settings of a site, a part of `text`.
    pub(super) fn reading_site(text: &'a str, table: &'a DeTable<'a>) -> Self {
        let reader = SiteReader { text, table, mistakes: Vec::new(), set: Vec::new() };
        Self { section: "", about: &[], task: Task::Site(reader) }
    }

    /// Creates a walk that lists keys.
    pub(super) fn listing() -> Self {
        Self { section: "", about: &[], task: Task::List(Vec::new()) }
    }

    /// Returns the mistakes found in the values that the walk has read.
    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        match self.task {
            Task::Read(reader) => reader.mistakes,
            Task::Site(reader) => reader.mistakes,
            Task::List(_) => Vec::new(),
        }
    }

    /// Returns the mistakes found in the table of a site, and the keys that it has.
    pub(super) fn into_site(self) -> (Vec<Mistake>, Vec<Key>) {
        match self.task {
            Task::Site(reader) => (reader.mistakes, reader.set),
            Task::Read(_) | Task::List(_) => (Vec::new(), Vec::new()),
        }
    }

    /// Returns the keys that the walk has listed.
    pub(super) fn into_keys(self) -> Vec<Key> {
        match self.task {
            Task::Read(_) | Task::Site(_) => Vec::new(),
            Task::List(keys) => keys,
        }
    }

    /// Begins a section, to which the following keys belong.
    pub(super) fn section(&mut self, name: &'static str, about: Prose) {
        (self.section, self.about) = (name, about);
    }

    /// Begins a section that may be absent. If the section is given, `place` is filled with its
    /// default values. Returns the section, or `None` if it is absent.
    pub(super) fn optional<'p, T: Default>(
        &self,
        name: &str,
        place: &'p mut Option<T>,
    ) -> Option<&'p mut T> {
        if let Task::Read(reader) = &self.task
            && reader.given.has_section(name)
        {
            place.get_or_insert_default();
        }
        place.as_mut()
    }

    /// Returns the value of a key before the walk reaches that key; `None` if the key is absent
    /// or its value is not valid.
    pub(super) fn peek<T: 'static>(&self, section: &str, name: &str, kind: &Kind<T>) -> Option<T> {
        let Task::Read(reader) = &self.task else { return None };
        if let Some(setting) = reader.given.setting(section, name) {
            return setting.read(kind).ok();
        }
        kind.read(reader.find(section, name)?.get_ref()).ok()
    }

    /// Visits a key: reads its value if the walk reads and the key is given, or adds the key to the
    /// list if the walk lists keys.
    pub(super) fn key<T: 'static>(
        &mut self,
        name: &'static str,
        place: &mut T,
        kind: &Kind<T>,
        flags: &'static [Flag],
        help: Prose,
    ) {
        let (section, about) = (self.section, self.about);
        match &mut self.task {
            Task::List(keys) => {
                let (value, allowed) = (kind.show(place), kind.allowed().to_owned());
                keys.push(Key { section, about, name, value, allowed, help, flags });
            }
            Task::Read(reader) => reader.read(section, name, place, kind),
            Task::Site(reader) => {
                let may_differ = section == "site" || flags.contains(&Flag::Site);
                let Some(value) = reader.table.get(name).filter(|_| may_differ) else { return };
                reader.read(name, value, place, kind);
                let (value, allowed) = (kind.show(place), kind.allowed().to_owned());
                reader.set.push(Key { section, about, name, value, allowed, help, flags });
            }
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads the value of a key, if it is given: that of the command line, else that of the file.
    fn read<T: 'static>(&mut self, section: &str, name: &str, place: &mut T, kind: &Kind<T>) {
        let (read, at) = if let Some(setting) = self.given.setting(section, name) {
            (setting.read(kind), setting.place())
        } else if let Some(value) = self.find(section, name) {
            (kind.read(value.get_ref()), self.line(value.span().start))
        } else {
            return;
        };
        match read {
            Ok(value) => *place = value,
            Err(Refused(faults)) => {
                for (text, span) in faults {
                    // To find a line takes a pass over the file.
                    if suffice(&self.mistakes) {
                        break;
                    }
                    // The command line is one place, whichever item of a list is wrong.
                    let item = span.filter(|_| matches!(at, Place::Line(_)));
                    let place = item.map_or(at.clone(), |span| self.line(span.start));
                    self.mistakes.push(Mistake { place, key: format!("{section}.{name}"), text });
                }
            }
        }
    }

    fn find(&self, section: &str, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.given.section(section)?.get(name)
    }

    fn line(&self, at: usize) -> Place {
        Place::Line(line_of(self.given.text, at))
    }
}

impl SiteReader<'_> {
    fn read<T: 'static>(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        place: &mut T,
        kind: &Kind<T>,
    ) {
        match kind.read(value.get_ref()) {
            Ok(value) => *place = value,
            Err(Refused(faults)) => {
                for (text, span) in faults {
                    if suffice(&self.mistakes) {
                        break;
                    }
                    let at = span.map_or(value.span().start, |span| span.start);
                    let place = Place::Line(line_of(self.text, at));
                    self.mistakes.push(Mistake { place, key: format!("site.{name}"), text });
                }
            }
        }
    }
}

/// Prints the keys with their values as a configuration file.
pub(super) fn render(keys: &[Key]) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in keys {
        if key.section != section {
            section = key.section;
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{section}]\n"));
        }
        text.push_str(&format!("{} = {}\n", key.name, key.value));
    }
    text
}

/// Prints the keys as a configuration file that explains each of them: the manual
/// (`conf/reference.toml`), without its opening.
pub(super) fn manual(keys: &[Key]) -> String {
    let comment =
        |lines: &[&str]| lines.iter().map(|line| format!("#{line}\n")).collect::<String>();
    let mut text = String::new();
    let mut section = "";
    for key in keys {
        if key.section != section {
            section = key.section;
            let rule = "-".repeat(98);
            text.push_str(&format!("\n# {rule}\n{}[{section}]\n", comment(key.about)));
        }
        let mut parts = key.help.split(|line| line.is_empty());
        let what = comment(parts.next().unwrap_or_default());
        let ends: String = parts.map(comment).collect();
        let remarks = [(Flag::Kept, KEPT), (Flag::Live, LIVE), (Flag::Site, SITE)];
        let remarks = remarks.iter().filter(|(flag, _)| key.flags.contains(flag));
        let remark: String = remarks.map(|(_, remark)| *remark).collect();
        let Key { name, value, allowed, .. } = key;
        text.push_str(&format!("\n{what}# Allowed: {allowed}.{remark}\n{ends}{name} = {value}\n"));
    }
    text
}

/// The manual's remark on a key whose value can't change when a job is resumed.
const KEPT: &str = " Fixed for the life of a job.";
/// The manual's remark on a key whose value can change while the crawl runs.
const LIVE: &str = " Can be reloaded.";
/// The manual's remark on a key that a site may have its own value of.
const SITE: &str = " May be in [[site]].";
