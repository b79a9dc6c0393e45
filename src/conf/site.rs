//! Tables of settings for some of the URLs, `[[site]]`: reading, checking and printing.
//!
//! A table is read like the whole configuration, by a walk over the sections whose keys may differ
//! between sites. It starts from the values of the crawl, so a key that the table leaves out has
//! that value.
//!
//! Laws: a table has exactly one matcher, and no two tables have the same. The values of its header
//! fields are never printed, nor part of a message.

use super::mistake::{self, Mistake, Place, line_of, suffice};
use super::sections::{self, Fetch, Links, Politeness, Scope, SiteKeys};
use super::setting::Given;
use super::units::quote;
use super::walk::{Flag, Key, Walk};
use super::{Conf, Mistakes};
use crate::url::site::{Matcher, SITES_MAX};
use toml::de::{DeTable, DeValue};

mod clashes;

/// What is printed in place of the value of a header field.
pub const HIDDEN: &str = "<hidden>";

/// The settings of one table.
#[derive(Clone, Debug)]
pub struct SiteTable {
    /// The line at which the table begins, counted from 1.
    pub line: usize,
    /// Which URLs the table is for.
    pub matcher: Matcher,
    /// The keys that only these tables have.
    pub keys: SiteKeys,
    /// The section with the values that apply to these URLs, those of the crawl included.
    pub scope: Scope,
    /// The section with the values that apply to these URLs.
    pub politeness: Politeness,
    /// The section with the values that apply to these URLs, except that its header fields are the
    /// table's alone.
    pub fetch: Fetch,
    /// The section with the values that apply to these URLs.
    pub links: Links,
    /// The keys that the table has, as they are printed.
    pub set: Vec<Key>,
}

/// The lines are not compared: the same table may be at another line.
impl PartialEq for SiteTable {
    fn eq(&self, other: &Self) -> bool {
        (&self.matcher, &self.set) == (&other.matcher, &other.set)
            && self.fetch.headers == other.fetch.headers
    }
}

impl Eq for SiteTable {}

impl SiteTable {
    /// Returns whether the table has a key, and not only the value of the crawl.
    pub fn has(&self, name: &str) -> bool {
        self.set.iter().any(|key| key.name == name)
    }

    /// Returns the header fields that are sent to these URLs in addition to those of the crawl.
    pub fn headers(&self) -> &[String] {
        if self.has("headers") { &self.fetch.headers } else { &[] }
    }

    /// Returns whether the value of a header field is missing, since the table was read from a copy
    /// of the configuration.
    pub fn hides_headers(&self) -> bool {
        let mut values = self.headers().iter().filter_map(|line| line.split_once(':'));
        values.any(|(_, value)| value.trim() == HIDDEN)
    }

    /// Returns the name of the table in messages: `[[site]] host = "a.test" (line 7)`.
    pub fn name(&self) -> String {
        format!("[[site]] {} (line {})", self.matcher, self.line)
    }

    /// Prints the table as TOML, with the values of header fields hidden.
    pub fn render(&self) -> String {
        let keys = self.set.iter().map(|key| format!("{} = {}\n", key.name, key.value));
        format!("\n[[site]]\n{}", keys.collect::<String>())
    }
}

/// A table that is being read: where it is, and what is known of it.
struct Draft<'a> {
    text: &'a str,
    table: &'a DeTable<'a>,
    line: usize,
}

impl Draft<'_> {
    /// Returns the line of a key of the table; that of the table if it doesn't have the key.
    fn line_of(&self, name: &str) -> usize {
        let key = self.table.get_key_value(name);
        key.map_or(self.line, |(key, _)| line_of(self.text, key.span().start))
    }

    fn mistake(&self, name: &str, text: String) -> Mistake {
        let key = if name.is_empty() { "site".to_owned() } else { format!("site.{name}") };
        Mistake { place: Place::Line(self.line_of(name)), key, text }
    }
}

/// Reads all tables of a file into `conf`, which has the other sections. Adds what is wrong to
/// `mistakes`.
pub(super) fn read(conf: &mut Conf, given: &Given<'_>, mistakes: &mut Vec<Mistake>) {
    let text = given.text;
    let Some((heading, value)) = given.root.get_key_value("site") else { return };
    let begins = line_of(text, heading.span().start);
    let fault = |line, text: &str| Mistake {
        place: Place::Line(line),
        key: "site".to_owned(),
        text: text.to_owned(),
    };
    let tables = match value.get_ref() {
        DeValue::Array(tables) => tables,
        _ => return mistakes.push(fault(begins, "is a list of tables; write [[site]]")),
    };
    if tables.len() > SITES_MAX {
        let text = format!("{} tables are too many; at most {SITES_MAX} are allowed", tables.len());
        return mistakes.push(fault(begins, &text));
    }
    let known = names();
    let mut checks = clashes::Checks::new(conf);
    for table in tables.iter() {
        let line = line_of(text, table.span().start);
        match table.get_ref() {
            DeValue::Table(table) => {
                let draft = Draft { text, table, line };
                let found = read_one(conf, &draft, &known, mistakes);
                if let Some(found) = found {
                    checks.check(&found, &draft, mistakes);
                    conf.sites.push(found);
                }
            }
            _ => mistakes.push(fault(line, "is a list of tables; write [[site]]")),
        }
        if suffice(mistakes) {
            return;
        }
    }
}

/// Reads one table. Returns `None` if it has a mistake.
fn read_one(
    conf: &Conf,
    draft: &Draft<'_>,
    known: &[Key],
    mistakes: &mut Vec<Mistake>,
) -> Option<SiteTable> {
    let before = mistakes.len();
    for key in draft.table.keys() {
        let name: &str = key.get_ref();
        if !known.iter().any(|key| key.name == name) {
            mistakes.push(draft.mistake(name, stray(name, known)));
        }
    }
    let mut site = SiteTable {
        line: draft.line,
        matcher: Matcher::Host(String::new()),
        keys: SiteKeys::default(),
        scope: conf.scope.clone(),
        politeness: conf.politeness.clone(),
        fetch: conf.fetch.clone(),
        links: conf.links.clone(),
        set: Vec::new(),
    };
    let mut walk = Walk::reading_site(draft.text, draft.table);
    site.walk(&mut walk);
    let (found, set) = walk.into_site();
    mistakes.extend(found);
    site.set = set;
    site.hide();
    if mistakes.len() == before {
        match matcher(&site, draft) {
            Ok(matcher) => site.matcher = matcher,
            Err(mistake) => mistakes.push(mistake),
        }
    }
    (mistakes.len() == before).then_some(site)
}

impl SiteTable {
    /// Walks over the keys that a table may have.
    fn walk(&mut self, walk: &mut Walk<'_>) {
        sections::walk_site(
            walk,
            &mut self.keys,
            &mut self.scope,
            &mut self.politeness,
            &mut self.fetch,
            &mut self.links,
        );
    }

    /// Hides the values of header fields in what is printed.
    fn hide(&mut self) {
        let Some(place) = self.set.iter().position(|key| key.name == "headers") else { return };
        let names = self.fetch.headers.iter().filter_map(|line| line.split_once(':'));
        let shown: Vec<String> =
            names.map(|(name, _)| quote(&format!("{name}: {HIDDEN}"))).collect();
        self.set[place].value = format!("[{}]", shown.join(", "));
    }
}

/// Returns which URLs a table is for: exactly one key must say so.
fn matcher(site: &SiteTable, draft: &Draft<'_>) -> Result<Matcher, Mistake> {
    let all = [("host", &site.keys.host), ("domain", &site.keys.domain)];
    let all = all.into_iter().chain([("prefix", &site.keys.prefix)]);
    let mut given = all.filter(|(name, _)| draft.table.contains_key(*name));
    let Some((name, value)) = given.next() else {
        let text = "says not which URLs it is for; add host = \"...\", domain = \"...\" or prefix \
                    = \"...\"";
        return Err(draft.mistake("", text.to_owned()));
    };
    if let Some((second, _)) = given.next() {
        let text = format!("the table has {name}, too; write two tables, or remove one of the two");
        return Err(draft.mistake(second, text));
    }
    let parsed = match name {
        "host" => Matcher::host(value),
        "domain" => Matcher::domain(value),
        _ => Matcher::prefix(value),
    };
    parsed.map_err(|why| draft.mistake(name, format!("{value:?} can't be used: {}", why.name())))
}

/// Returns all keys that a table may have.
pub(super) fn names() -> Vec<Key> {
    let (mut scope, mut politeness) = (Scope::default(), Politeness::default());
    let (mut fetch, mut links) = (Fetch::default(), Links::default());
    let mut walk = Walk::listing();
    let mut own = SiteKeys::default();
    sections::walk_site(&mut walk, &mut own, &mut scope, &mut politeness, &mut fetch, &mut links);
    let is_own = |key: &Key| key.section == "site" || key.flags.contains(&Flag::Site);
    walk.into_keys().into_iter().filter(is_own).collect()
}

/// Describes the mistake of a key that a table can't have.
fn stray(name: &str, known: &[Key]) -> String {
    let all = Conf::default().keys();
    if let Some(key) = all.iter().find(|key| key.name == name) {
        return format!(
            "can't differ between sites; it belongs in [{}], for the whole crawl",
            key.section
        );
    }
    let names: Vec<&str> = known.iter().map(|key| key.name).collect();
    match mistake::nearest(name, names.iter().copied()) {
        Some(near) => format!("no such key; did you mean {near}?"),
        None => format!("no such key; a [[site]] table may have {}", names.join(", ")),
    }
}

/// The tables of the manual's example.
pub(super) const EXAMPLE: &str = r#"[[site]]
domain = "slow.example"
delay = "10s"
exclude = ["/calendar/"]

[[site]]
host = "www.mine.example"
burst = 10
delay = "0s"
delay_factor = 0
pages_max = 5_000

[[site]]
prefix = "https://www.mine.example/members/"
headers = { Authorization = "Bearer 0a1b2c" }
depth_max = 3
"#;

/// Prints the part of the manual about the tables. All of it is a comment, since there is no table
/// by default.
pub(super) fn manual() -> String {
    let names = names();
    let comment =
        |lines: &[&str]| lines.iter().map(|line| format!("#{line}\n")).collect::<String>();
    let (own, others): (Vec<&Key>, Vec<&Key>) = names.iter().partition(|key| key.section == "site");
    let mut text = format!("\n# {}\n{}#\n", "-".repeat(98), comment(own[0].about));
    for key in own {
        let lines: Vec<&str> = key.help.iter().filter(|line| !line.is_empty()).copied().collect();
        text.push_str(&format!("# {}: {}.\n{}#\n", key.name, key.allowed, comment(&lines)));
    }
    text.push_str("# These keys of other sections may be in a table, with the same meaning:\n");
    for key in others {
        text.push_str(&format!("# {} ([{}])\n", key.name, key.section));
    }
    text.push_str(
        "#\n# headers are sent to these URLs only, in addition to those of the crawl (of two with \
         the same name\n# the site's), never to where they redirect. Their values are kept out of \
         logs, archive and job\n# directory; let nobody else read this file.\n",
    );
    text.push_str("#\n# An example:\n");
    text.extend(EXAMPLE.lines().map(|line| format!("#{line}\n")));
    text
}

impl Conf {
    /// Checks that no value of a header field is missing.
    ///
    /// # Errors
    /// The first table of which one is missing: the configuration is a copy of a crawl's.
    pub fn has_all_headers(&self, file: &str) -> Result<(), Mistakes> {
        let Some(site) = self.sites.iter().find(|site| site.hides_headers()) else {
            return Ok(());
        };
        let text = format!("{HIDDEN:?} stands for a value that copies don't have; write the value");
        let (place, key) = (Place::Line(site.line), "site.headers".to_owned());
        Err(Mistakes::new(file, vec![Mistake { place, key, text }]))
    }
}

#[cfg(test)]
mod tests;
