//! The configuration: reads the file, fills each section with plain values, refuses what can't be.
//!
//! Promises: a [`Conf`] that came out of [`Conf::parse`] holds together: every value is within its
//! range and no two of them contradict each other. Unknown keys are mistakes, with the nearest
//! known key named. All mistakes of a file are told at once, each with its line, its key, its value
//! and the mend.
//!
//! Laws: `parse(render(conf)) == conf`; the keys of `conf/reference.toml` and of the code are the
//! same, and so are their values. A key is named in one place (`keys.rs`), a default in one place
//! (`sections.rs`, `web.rs`).
//!
//! No file is opened here: the text comes in. Paths in it are relative to the directory the
//! program is started in. Source of the format: TOML 1.0.

mod change;
mod check;
pub mod compare;
mod hostile;
mod keys;
mod mistake;
mod profile;
mod schedule;
pub mod sections;
mod sim;
mod target;
#[cfg(test)]
mod tests;
mod units;
mod walk;
mod web;

pub use compare::{Change, Compare, Over, Value, Variant, Worth};
pub use hostile::Hostile;
pub use mistake::{Mistake, Mistakes};
pub use profile::Profile;
pub use sections::{
    Burst, Coding, Connections, Digest, DiskFull, Fetch, Format, HostsFile, Identity, Job, Limits,
    Links, Marks, Memory, Names, Pipeline, Policy, Politeness, Qualities, Report, Retries,
    Schedule, Scheme, Scope, Site, Source, Span, State, Store, Tls, UrlKey,
};
pub use sim::Sim;
pub use units::{Cost, Decimal};
pub use walk::Key;
pub use web::{Allowance, Events, Lab, Preset, Web};

use check::Clash;
use mistake::{MISTAKES_MAX, suffice};
use toml::de::{DeTable, DeValue};
use walk::{Walk, line_of};

/// A configuration, section by section in the order of the URL's journey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    /// What this crawl is called, where it keeps what it knows, where it starts.
    pub job: Job,
    /// When it stops though there is more.
    pub limits: Limits,
    /// Who crawls.
    pub identity: Identity,
    /// Which URLs are wanted.
    pub scope: Scope,
    /// Which URLs are the same.
    pub url: UrlKey,
    /// Who comes first.
    pub schedule: Schedule,
    /// What URLs are thought to be worth.
    pub quality: Qualities,
    /// How much, how often.
    pub politeness: Politeness,
    /// What is tried again.
    pub retries: Retries,
    /// Names to addresses.
    pub names: Names,
    /// How many, how long, to where.
    pub connections: Connections,
    /// Whom to trust.
    pub tls: Tls,
    /// Several requests on their way.
    pub pipeline: Pipeline,
    /// What is asked for, and how much of it is taken.
    pub fetch: Fetch,
    /// Which references are followed.
    pub links: Links,
    /// What is kept.
    pub store: Store,
    /// What may grow, and how far.
    pub memory: Memory,
    /// `[state]`
    pub state: State,
    /// What is said while it runs.
    pub report: Report,
    /// The lab that is crawled in place of the open web.
    pub lab: Option<Lab>,
    /// The web that the lab serves, or that crawls are compared on.
    pub web: Web,
    /// The simulated world that crawls are compared in.
    pub sim: Sim,
    /// Which crawls are compared.
    pub compare: Option<Compare>,
    /// Which numbers of connections are tried.
    pub profile: Option<Profile>,
}

impl Conf {
    /// Reads the text of a file; `file` names it in what is said of its mistakes.
    ///
    /// # Errors
    /// All mistakes there are, of syntax first: a text that is no TOML is not looked at further.
    pub fn parse(text: &str, file: &str) -> Result<Self, Mistakes> {
        Self::read(text, file, change::mistakes)
    }

    /// Reads a text; `more` finds what is wrong with a configuration that is right otherwise.
    fn read(text: &str, file: &str, more: fn(&Self) -> Vec<Clash>) -> Result<Self, Mistakes> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let told = errors.iter().take(MISTAKES_MAX + 1);
            let mistakes = told.map(|error| syntax(text, error)).collect();
            return Err(Mistakes::new(file, mistakes));
        }
        let root = root.get_ref();
        let mut conf = Self::default();
        let mut walk = Walk::reading(text, root);
        keys::walk(&mut conf, &mut walk);
        let mut mistakes = walk.into_mistakes();
        unknown(text, root, &mut mistakes);
        let alone = ["web", "sim"].map(|section| root.contains_key(section));
        tell(check::clashes(&conf, alone), text, root, &mut mistakes);
        if mistakes.is_empty() {
            tell(more(&conf), text, root, &mut mistakes);
        }
        if mistakes.is_empty() { Ok(conf) } else { Err(Mistakes::new(file, mistakes)) }
    }

    /// Whether what is crawled is a web of its own, on this machine: the lab, or a simulated one.
    pub fn is_experiment(&self) -> bool {
        self.lab.is_some() || self.compare.is_some()
    }

    /// Every key with its value and what it allows, in the order of the file; those of webs of its
    /// own only if it has one.
    pub fn keys(&self) -> Vec<Key> {
        let mut walk = Walk::listing();
        keys::walk(&mut self.clone(), &mut walk);
        walk.into_keys()
    }

    /// The text that reads back as this configuration: every key, every default.
    pub fn render(&self) -> String {
        walk::render(&self.keys())
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> Mistake {
    let line = error.span().map(|span| line_of(text, span.start.min(text.len())));
    Mistake { line, key: String::new(), text: format!("no TOML: {}", error.message()) }
}

/// Keys and sections of the file that the code does not know.
fn unknown(text: &str, root: &DeTable<'_>, mistakes: &mut Vec<Mistake>) {
    let (lab, compare) = (Some(Lab::default()), Some(Compare::default()));
    let profile = Some(Profile::default());
    let known = Conf { lab, compare, profile, ..Conf::default() }.keys();
    let mut tell = |at: usize, key: String, fault: String| {
        mistakes.push(Mistake { line: Some(line_of(text, at)), key, text: fault });
        suffice(mistakes)
    };
    for (heading, value) in root {
        let (at, section) = (heading.span().start, heading.get_ref().as_ref());
        let fault = match value.get_ref() {
            value if known.iter().all(|key| key.section != section) => {
                Some(stray_section(section, value, &known))
            }
            DeValue::Table(_) => None,
            _ => Some(format!("is a section; write it as [{section}]")),
        };
        if let Some(fault) = fault {
            if tell(at, section.to_owned(), fault) {
                return;
            }
            continue;
        }
        for key in value.get_ref().as_table().into_iter().flat_map(|table| table.keys()) {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let is_known = known.iter().any(|key| (key.section, key.name) == (section, name));
            let full = || format!("{section}.{name}");
            if !is_known && tell(at, full(), stray_key(section, name, &known)) {
                return;
            }
        }
    }
}

/// What to say of a name at the top of the file that is no section.
fn stray_section(name: &str, value: &DeValue<'_>, known: &[Key]) -> String {
    let homes = homes(name, known);
    if !value.is_table() && !homes.is_empty() {
        return format!("stands in no section; it belongs in {homes}");
    }
    match mistake::nearest(name, known.iter().map(|key| key.section)) {
        Some(near) => format!("no such section; did you mean [{near}]?"),
        None => "no such section; conf/reference.toml lists them all".to_owned(),
    }
}

/// What to say of a key that its section doesn't have.
fn stray_key(section: &str, name: &str, known: &[Key]) -> String {
    let own = known.iter().filter(|key| key.section == section).map(|key| key.name);
    let homes = homes(name, known);
    let near = mistake::nearest(name, own);
    let anywhere = mistake::nearest(name, known.iter().map(|key| key.name));
    // A slip in the name is likelier than one in the section, unless the name is the better for it.
    let is_nearest = |near: &&str| {
        let far = |other| mistake::remoteness(name, other);
        anywhere.is_none_or(|other| far(near) <= far(other))
    };
    if let Some(near) = near.filter(|near| homes.is_empty() && is_nearest(near)) {
        format!("no such key; did you mean {near}?")
    } else if let Some(near) = near.filter(|_| !homes.is_empty()) {
        format!("no such key here; did you mean {near}? ({name} belongs in {homes})")
    } else if !homes.is_empty() {
        format!("no such key here; it belongs in {homes}")
    } else if let Some(near) = anywhere {
        format!("no such key; did you mean {near} in {}?", self::homes(near, known))
    } else {
        "no such key; conf/reference.toml lists them all".to_owned()
    }
}

/// The sections that have a key of this name: `[a] or [b]`.
fn homes(name: &str, known: &[Key]) -> String {
    let sections = known.iter().filter(|key| key.name == name);
    let sections: Vec<String> = sections.map(|key| format!("[{}]", key.section)).collect();
    sections.join(" or ")
}

/// Tells what contradicts what, unless one of the keys concerned is a mistake already.
fn tell(clashes: Vec<Clash>, text: &str, root: &DeTable<'_>, mistakes: &mut Vec<Mistake>) {
    for clash in clashes {
        let is_wrong = |key: &str| mistakes.iter().any(|mistake| mistake.key == key);
        if !clash.keys.iter().copied().any(is_wrong) {
            let key = clash.keys[0].to_owned();
            mistakes.push(Mistake { line: find_line(text, root, &key), key, text: clash.text });
        }
    }
}

/// Line of a key, or of its section if it isn't there, or none.
fn find_line(text: &str, root: &DeTable<'_>, key: &str) -> Option<usize> {
    let (section, name) = key.split_once('.').unwrap_or((key, ""));
    let (heading, value) = root.get_key_value(section)?;
    let at = value.get_ref().as_table().and_then(|table| table.get_key_value(name));
    let span = at.map_or(heading.span(), |(key, _)| key.span());
    Some(line_of(text, span.start))
}
