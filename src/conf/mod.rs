//! Parses, checks and prints the configuration.
//!
//! Promises: in a [`Conf`] from [`Conf::parse`] every value is within its range and no two values
//! contradict each other. Unknown keys are mistakes, reported with the nearest known key. All
//! mistakes of a file are reported at once, each with its line, its key, its value and a fix.
//!
//! Laws: `parse(render(conf)) == conf`, but for the values of a site's header fields. A key is
//! declared once, in `sections`; its field, default, parsing, printing and entry in
//! `conf/reference.toml` follow from that.
//!
//! No file is opened here. Paths in a configuration are relative to the working directory. The
//! format is TOML 1.0.

mod change;
mod check;
mod compare;
mod hostile;
mod kind;
mod mistake;
mod sections;
mod setting;
mod site;
mod syntax;
#[cfg(test)]
mod tests;
mod units;
mod walk;

pub use compare::{Change, Value, Variant};
pub use hostile::Hostile;
pub use mistake::{Mistake, Mistakes, Place};
pub use sections::{
    Admin, Allowance, Burst, Challenges, Cluster, Compare, Connections, Consent, Discovery,
    DiskFull, DiskSpace, Events, Fetch, HostsFile, Identity, Job, Lab, Limits, Links, Memory,
    Names, Over, Pipeline, Policy, Politeness, Preset, Profile, Qualities, Recrawl, Repeats,
    Report, Retries, Schedule, Scheme, Scope, Sign, Signature, Sim, Site, SiteKeys, Sitemaps,
    Source, State, Store, Tls, UrlKey, Web, Worth,
};
pub use setting::Setting;
pub use site::{HIDDEN, SiteTable};
pub use units::{Correlation, Cost, Decimal, read_time as duration};
pub use walk::{Flag, Key, Prose};

use check::Clash;
use mistake::{MISTAKES_MAX, line_of, suffice};
use setting::Given;
use toml::de::{DeTable, DeValue};
use walk::Walk;

/// A configuration, section by section in the order in which a URL passes through the crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    /// The section `[job]`: the name of the crawl, its directory, and its seeds.
    pub job: Job,
    /// The section `[limits]`: when the crawl stops although there are URLs left.
    pub limits: Limits,
    /// The section `[identity]`: how the crawler identifies itself to servers.
    pub identity: Identity,
    /// The section `[identity.signature]`: which requests are signed, and how.
    pub signature: Signature,
    /// The section `[scope]`: which URLs are crawled.
    pub scope: Scope,
    /// The section `[url]`: which URLs count as the same page.
    pub url: UrlKey,
    /// The section `[schedule]`: which server is visited next, and which of its URLs come first.
    pub schedule: Schedule,
    /// The section `[quality]`: the estimated quality of URLs.
    pub quality: Qualities,
    /// The section `[politeness]`: how many requests a server gets, and how often.
    pub politeness: Politeness,
    /// The section `[retries]`: when failed fetches are repeated.
    pub retries: Retries,
    /// The section `[recrawl]`: how the crawl comes back to known pages.
    pub recrawl: Recrawl,
    /// The section `[names]`: how host names are resolved.
    pub names: Names,
    /// The section `[connections]`: how many connections there are, how long, and to which
    /// addresses.
    pub connections: Connections,
    /// The section `[tls]`: which TLS servers are trusted.
    pub tls: Tls,
    /// The section `[pipeline]`: when several requests are in flight on one connection.
    pub pipeline: Pipeline,
    /// The section `[fetch]`: what is requested, and how much of a response is accepted.
    pub fetch: Fetch,
    /// The section `[links]`: which references of a page are followed.
    pub links: Links,
    /// The section `[discovery]`: where URLs come from beside links.
    pub discovery: Discovery,
    /// The section `[consent]`: what sites say of the use of their pages.
    pub consent: Consent,
    /// The section `[repeats]`: what is done with pages that are alike.
    pub repeats: Repeats,
    /// The section `[store]`: how fetched pages are archived.
    pub store: Store,
    /// The section `[memory]`: bounds of what grows with the web.
    pub memory: Memory,
    /// The section `[state]`: what is stored so that a crawl can be resumed.
    pub state: State,
    /// The section `[disk]`: what happens when the disk becomes full.
    pub disk: DiskSpace,
    /// The section `[report]`: what is reported while the crawl runs.
    pub report: Report,
    /// The section `[admin]`: where programs and browsers read the state of the crawl.
    pub admin: Admin,
    /// The section `[cluster]`: several machines that share the crawl.
    pub cluster: Cluster,
    /// The tables `[[site]]`: settings for some of the URLs.
    pub sites: Vec<SiteTable>,
    /// The section `[lab]`; `None` if the real web is crawled.
    pub lab: Option<Lab>,
    /// The section `[web]`.
    pub web: Web,
    /// The section `[sim]`.
    pub sim: Sim,
    /// The section `[compare]`, if the file has it.
    pub compare: Option<Compare>,
    /// The section `[profile]`, if the file has it.
    pub profile: Option<Profile>,
}

impl Conf {
    /// Parses the text of a configuration file. `file` is its name in messages.
    ///
    /// # Errors
    /// All mistakes of the file. If the text is not TOML, only the mistake of syntax.
    pub fn parse(text: &str, file: &str) -> Result<Self, Mistakes> {
        Self::parse_with(text, file, &[])
    }

    /// Parses the text of a configuration file, of which `settings` replace some values. `file` is
    /// its name in messages.
    ///
    /// # Errors
    /// Those of [`Self::parse`]. A mistake in a setting names its argument.
    pub fn parse_with(text: &str, file: &str, settings: &[Setting]) -> Result<Self, Mistakes> {
        Self::read(text, file, settings, change::mistakes)
    }

    /// Parses the text of a configuration with `settings`. If it has no mistakes, `more` looks for
    /// contradictions in the result. `file` is its name in messages.
    fn read(
        text: &str,
        file: &str,
        settings: &[Setting],
        more: fn(&Self) -> Vec<Clash>,
    ) -> Result<Self, Mistakes> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let shown = errors.iter().take(MISTAKES_MAX + 1);
            let mistakes = shown.map(|error| syntax(text, error)).collect();
            return Err(Mistakes::new(file, mistakes));
        }
        let given = Given { text, root: root.get_ref(), settings };
        let mut conf = Self::default();
        let mut walk = Walk::reading(given);
        sections::walk(&mut conf, &mut walk);
        let mut mistakes = walk.into_mistakes();
        unknown(&given, &mut mistakes);
        report(check::clashes(&conf, &given), &given, &mut mistakes);
        site::read(&mut conf, &given, &mut mistakes);
        if mistakes.is_empty() {
            report(more(&conf), &given, &mut mistakes);
        }
        if mistakes.is_empty() { Ok(conf) } else { Err(Mistakes::new(file, mistakes)) }
    }

    /// Returns whether a synthetic web is crawled: that of the lab, or a simulated one.
    pub fn is_experiment(&self) -> bool {
        self.lab.is_some() || self.compare.is_some()
    }

    /// Returns the default configuration with every section that may be absent.
    pub fn with_experiments() -> Self {
        let (lab, compare) = (Some(Lab::default()), Some(Compare::default()));
        let profile = Some(Profile::default());
        Self { lab, compare, profile, ..Self::default() }
    }

    /// Returns every key with its value, in the order of the file. Keys of experiments are included
    /// only if the configuration is one of an experiment.
    pub fn keys(&self) -> Vec<Key> {
        let mut walk = Walk::listing();
        sections::walk(&mut self.clone(), &mut walk);
        walk.into_keys()
    }

    /// Returns the body of `conf/reference.toml`: the output of [`Self::render`] with an
    /// explanation of each key.
    pub fn manual(&self) -> String {
        let mut keys = self.keys();
        let study = keys.iter().position(|key| key.section == "lab").unwrap_or(keys.len());
        let study = keys.split_off(study);
        walk::manual(&keys) + &site::manual() + &walk::manual(&study)
    }

    /// Prints the keys that `settings` set, with their values.
    pub fn render_only(&self, settings: &[Setting]) -> String {
        let mut keys = self.keys();
        keys.retain(|key| {
            let is =
                |setting: &Setting| setting.key().rsplit_once('.') == Some((key.section, key.name));
            settings.iter().any(is)
        });
        walk::render(&keys)
    }

    /// Prints every key with its value, as text that parses as this configuration. The values of
    /// header fields of sites are hidden: they are known to their owner alone.
    pub fn render(&self) -> String {
        let sites = self.sites.iter().map(SiteTable::render);
        walk::render(&self.keys()) + &sites.collect::<String>()
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> Mistake {
    let line = |at: usize| Place::Line(line_of(text, at.min(text.len())));
    let place = error.span().map_or(Place::Nowhere, |span| line(span.start));
    Mistake { place, key: String::new(), text: format!("not TOML: {}", error.message()) }
}

/// Reports each given key and section that doesn't exist.
fn unknown(given: &Given<'_>, mistakes: &mut Vec<Mistake>) {
    let known = Conf::with_experiments().keys();
    for setting in given.settings {
        if let Some(text) = stray_setting(setting.key(), &known) {
            mistakes.push(Mistake { place: setting.place(), key: setting.key().to_owned(), text });
        }
    }
    let mut tell = |at: usize, key: String, text: String| {
        let place = Place::Line(line_of(given.text, at));
        mistakes.push(Mistake { place, key, text });
        suffice(mistakes)
    };
    for (heading, value) in given.root.iter().filter(|(name, _)| *name.get_ref() != "site") {
        let (at, section) = (heading.span().start, heading.get_ref().as_ref());
        let is_enough = match value.get_ref() {
            value if section.contains('.') || known.iter().all(|key| key.section != section) => {
                tell(at, section.to_owned(), stray_section(section, value, &known))
            }
            DeValue::Table(keys) => stray_keys(section, keys, &known, &mut tell),
            _ => tell(at, section.to_owned(), format!("is a section; write it as [{section}]")),
        };
        if is_enough {
            return;
        }
    }
}

/// Reports the keys of a section that don't exist, and those of the sections in it, until `tell`
/// returns `true`: then, too, it returns `true`.
fn stray_keys(
    section: &str,
    keys: &DeTable<'_>,
    known: &[Key],
    tell: &mut dyn FnMut(usize, String, String) -> bool,
) -> bool {
    keys.iter().any(|(key, value)| {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        let full = format!("{section}.{name}");
        let is_section = known.iter().any(|key| key.section == full);
        match value.get_ref() {
            DeValue::Table(inner) if is_section => stray_keys(&full, inner, known, tell),
            _ if is_section => {
                let text = format!("is a section; write it as [{full}]");
                tell(at, full, text)
            }
            _ if known.iter().any(|key| (key.section, key.name) == (section, name)) => false,
            _ => tell(at, full, stray_key(section, name, known)),
        }
    })
}

/// Describes the mistake of a top-level name that is not a section.
fn stray_section(name: &str, value: &DeValue<'_>, known: &[Key]) -> String {
    let homes = homes(name, known);
    if !value.is_table() && !homes.is_empty() {
        return format!("is outside a section; it belongs in {homes}");
    }
    match mistake::nearest(name, known.iter().map(|key| key.section)) {
        Some(near) => format!("no such section; did you mean [{near}]?"),
        None => "no such section; conf/reference.toml lists them all".to_owned(),
    }
}

/// Returns the name of the first key of a section.
fn first_of(section: &str, known: &[Key]) -> &'static str {
    known.iter().find(|key| key.section == section).map_or("", |key| key.name)
}

/// Describes the mistake in the key of a setting; `None` if there is such a key.
fn stray_setting(key: &str, known: &[Key]) -> Option<String> {
    if key == "site" || key.starts_with("site.") {
        let text = "tables [[site]] can't be given on the command line; write them in the file \
                    (that of a crawl of URLs is job.toml in its directory)";
        return Some(text.to_owned());
    }
    if known.iter().any(|known| known.section == key) {
        return Some(format!(
            "is a section; name one of its keys, like {key}.{}",
            first_of(key, known)
        ));
    }
    let Some((section, name)) = key.rsplit_once('.') else {
        let full = known.iter().filter(|known| known.name == key);
        let full: Vec<String> =
            full.map(|known| format!("{}.{}", known.section, known.name)).collect();
        return Some(match full.is_empty() {
            true => "has no section; write it like politeness.delay=2s".to_owned(),
            false => format!("has no section; write {}", full.join(" or ")),
        });
    };
    if known.iter().any(|key| (key.section, key.name) == (section, name)) {
        return None;
    }
    Some(match known.iter().any(|key| key.section == section) {
        true => stray_key(section, name, known),
        false => stray_section(section, &DeValue::Table(DeTable::new()), known),
    })
}

/// Keys that have been renamed: the old section and name, and the new ones.
const RENAMED: [[&str; 4]; 3] = [
    ["links", "embedded", "links", "requisites"],
    ["state", "disk_full", "disk", "full"],
    ["state", "disk_full_wait", "disk", "full_wait"],
];

/// Describes the mistake of a key that its section doesn't have.
fn stray_key(section: &str, name: &str, known: &[Key]) -> String {
    let renamed =
        RENAMED.iter().find(|[old_section, old, ..]| (*old_section, *old) == (section, name));
    if let Some([.., section, name]) = renamed {
        return format!("was renamed; write {name} in [{section}]");
    }
    let own = known.iter().filter(|key| key.section == section).map(|key| key.name);
    let homes = homes(name, known);
    let near = mistake::nearest(name, own);
    let anywhere = mistake::nearest(name, known.iter().map(|key| key.name));
    // Suggest the key's nearest name in this section, unless another section has a nearer one.
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

/// Lists the sections that have a key of this name, as text: `[a] or [b]`.
fn homes(name: &str, known: &[Key]) -> String {
    let sections = known.iter().filter(|key| key.name == name);
    let sections: Vec<String> = sections.map(|key| format!("[{}]", key.section)).collect();
    sections.join(" or ")
}

/// Adds the contradictions to the mistakes. A contradiction is left out if one of its keys already
/// has a mistake.
fn report(clashes: Vec<Clash>, given: &Given<'_>, mistakes: &mut Vec<Mistake>) {
    for clash in clashes {
        let is_wrong = |key: &str| mistakes.iter().any(|mistake| mistake.key == key);
        if !clash.keys.iter().copied().any(is_wrong) {
            let key = clash.keys[0].to_owned();
            mistakes.push(Mistake { place: given.place(&key), key, text: clash.text });
        }
    }
}
