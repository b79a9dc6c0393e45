//! Variants of a configuration: the same configuration with other values for some keys.
//!
//! The configuration is printed with the new values, and the text is parsed again, so a variant
//! obeys the same rules as a configuration file.

use super::check::Clash;
use super::compare::Change;
use super::mistake::Place;
use super::{Conf, Mistake, Mistakes, walk};

/// The most mistakes reported of one variant, because other variants probably have the same ones.
const REPORTED_MAX: usize = 5;

impl Conf {
    /// Returns this configuration with other values for some keys. Messages about the changed
    /// configuration name it `name` in place of a file.
    ///
    /// # Errors
    /// The mistakes: unknown keys, keys that can't differ within a comparison, and all mistakes of
    /// the changed configuration.
    pub fn with(&self, name: &str, changes: &[Change]) -> Result<Self, Mistakes> {
        let mut mistakes = Vec::new();
        let mut keys = self.keys();
        for Change { key, value } in changes {
            let place = keys.iter_mut().find(|known| is(known, key));
            match (fixed(key), place) {
                (Some(why), _) => mistakes.push(mistake(key, why)),
                (None, Some(known)) => known.value = value.as_toml().to_owned(),
                (None, None) => mistakes.push(mistake(key, self.stray(key))),
            }
        }
        if !mistakes.is_empty() {
            return Err(Mistakes::new(name, mistakes));
        }
        // The operator has not seen the printed text, so line numbers would not help.
        Self::read(&walk::render(&keys), name, &[], |_| Vec::new()).map_err(|mut mistakes| {
            mistakes.list.iter_mut().for_each(|mistake| mistake.place = Place::Nowhere);
            mistakes
        })
    }

    /// Describes the mistake of changing a key that doesn't exist.
    fn stray(&self, key: &str) -> String {
        let known = self.keys();
        let names: Vec<String> =
            known.iter().map(|key| format!("{}.{}", key.section, key.name)).collect();
        match super::mistake::nearest(key, names.iter().map(String::as_str)) {
            Some(near) => format!("no such key; did you mean {near}?"),
            None => "no such key; conf/reference.toml lists them all".to_owned(),
        }
    }
}

/// Finds the mistakes in a comparison: each variant and each value of the sweep is tried alone.
pub(super) fn mistakes(conf: &Conf) -> Vec<Clash> {
    let Some(compare) = &conf.compare else { return Vec::new() };
    let mut faults = Vec::new();
    for variant in &compare.variants {
        let name = format!("variant {:?}", variant.name);
        faults.extend(fault(conf, &["compare.variants"], &name, &variant.changes));
    }
    if let Some(key) = &compare.across {
        for value in &compare.values {
            let change = Change { key: key.clone(), value: value.clone() };
            let name = format!("across {key} = {value}");
            // Stop at the first mistake: an unknown key would be reported again for each value.
            let found = fault(conf, &["compare.across", "compare.values"], &name, &[change]);
            let is_fatal = found.is_some();
            faults.extend(found);
            if is_fatal {
                break;
            }
        }
    }
    faults
}

fn fault(
    conf: &Conf,
    keys: &'static [&'static str],
    name: &str,
    changes: &[Change],
) -> Option<Clash> {
    let Mistakes { list, .. } = conf.with(name, changes).err()?;
    let reported = list.iter().take(REPORTED_MAX);
    let texts: Vec<String> =
        reported.map(|mistake| format!("{}: {}", mistake.key, mistake.text)).collect();
    Some(Clash { keys, text: format!("{name}: {}", texts.join("; ")) })
}

/// Returns why a key can't differ within a comparison, or `None` if it can.
fn fixed(key: &str) -> Option<String> {
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let why = match (section, name) {
        ("schedule", "policy") => "the policies that are compared are those of compare.policies",
        ("web", "preset") => {
            "every other key of [web] has its value already; change those that differ"
        }
        ("compare", "quality" | "damping" | "counted_share") => return None,
        ("compare", name) if name.starts_with("topical_") => return None,
        ("compare" | "job" | "lab" | "report", _) => "is the same for the whole comparison",
        _ => return None,
    };
    Some(why.to_owned())
}

fn is(known: &super::Key, key: &str) -> bool {
    key.rsplit_once('.') == Some((known.section, known.name))
}

fn mistake(key: &str, text: String) -> Mistake {
    Mistake { place: Place::Nowhere, key: key.to_owned(), text }
}
