//! The tables `[[site]]` on the command line: which of them applies to a URL, with which values,
//! and warnings about their secrets.

use super::{Failure, settings};
use crate::commands::Exit;
use crate::conf::{Conf, Key, Scheme, SiteTable};
use crate::seeds::Seed;
use crate::url::scope::Scope;
use crate::url::site::Sites;
use crate::url::{Url, UrlRef};
use serde_json::{Value, json};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The keys that are shown for a URL, each with its section. Some have no value outside a table.
const SHOWN: [(&str, &str); 10] = [
    ("politeness", "burst"),
    ("politeness", "delay"),
    ("politeness", "delay_factor"),
    ("limits", "pages_max"),
    ("scope", "depth_max"),
    ("scope", "include"),
    ("scope", "exclude"),
    ("links", "requisites"),
    ("fetch", "headers"),
    ("quality", "quality"),
];

/// Warns if secrets of sites may be read by others: on the way, or in the configuration at `path`.
pub(super) fn warn(conf: &Conf, path: &Path) {
    let with_secrets: Vec<&SiteTable> =
        conf.sites.iter().filter(|site| !site.headers().is_empty()).collect();
    let has_http = conf.scope.schemes.contains(&Scheme::Http);
    for site in &with_secrets {
        let is_plain = match site.matcher.parts() {
            ("prefix", text) => text.starts_with("http:"),
            _ => has_http,
        };
        if is_plain {
            log::warn!(
                "{}: its headers are sent over plain http, too, where anybody on the way can read \
                 them; use prefix = \"https://...\"",
                site.name()
            );
        }
    }
    let mode = std::fs::metadata(path).map_or(0, |data| data.permissions().mode());
    if !with_secrets.is_empty() && mode & 0o077 != 0 {
        log::warn!(
            "{}: other users can read this file, which has header fields of sites; run `chmod 600 \
             {0}`",
            path.display()
        );
    }
}

/// Explains which settings apply to each of the URLs, as text or as JSON.
///
/// # Errors
/// A text is not a URL.
pub(super) fn explain(
    conf: &Conf,
    seeds: &[Seed],
    texts: &[String],
    is_json: bool,
) -> Result<String, Failure> {
    let sites = Sites::new(conf.sites.iter().map(|site| &site.matcher));
    let scope = settings::scope(&conf.scope, &conf.sites);
    let scope = Scope::new(scope, seeds.iter().map(|seed| &seed.url));
    let scope = scope.map_err(|error| Failure::new(Exit::Usage, error))?;
    let keys = conf.keys();
    let mut all = Vec::new();
    let mut out = String::new();
    for text in texts {
        let url = Url::parse(text).map_err(|why| {
            let text = format!("{text:?} is not a URL: {}; write it with its scheme", why.name());
            Failure::new(Exit::Usage, text)
        })?;
        let one = Explained::of(conf, &keys, &sites, &scope, url.view());
        match is_json {
            true => all.push(one.json(&url)),
            false => one.push_text(&url, &mut out),
        }
    }
    if is_json {
        out = serde_json::to_string_pretty(&Value::Array(all)).expect("plain values") + "\n";
    }
    Ok(out)
}

/// What applies to one URL.
struct Explained<'a> {
    table: Option<&'a SiteTable>,
    /// The name of the reason if the URL is out of scope.
    rejection: Option<&'static str>,
    rule: String,
    /// The name, the value and the origin of each setting.
    settings: Vec<(&'static str, String, String)>,
}

impl<'a> Explained<'a> {
    fn of(conf: &'a Conf, keys: &[Key], sites: &Sites, scope: &Scope, url: UrlRef<'_>) -> Self {
        let table_of = |site: Option<u16>| site.map(|site| &conf.sites[usize::from(site)]);
        let (table, of_server) = (table_of(sites.of(url)), table_of(sites.of_host(url.host())));
        let (why, rule) = scope.explain(url, None);
        let setting = |(section, name)| {
            // A server has one pace for all its URLs.
            let owner = if section == "politeness" { of_server } else { table };
            let own = owner.and_then(|site| {
                let key = site.set.iter().find(|key| key.name == name)?;
                let is_same = table.is_some_and(|table| table.line == site.line);
                let from = if is_same { "the table".to_owned() } else { site.name() };
                Some((name, key.value.clone(), from))
            });
            own.unwrap_or_else(|| {
                let (value, from) = of_crawl(keys, section, name);
                (name, value, from)
            })
        };
        let settings = SHOWN.into_iter().map(setting).collect();
        Self { table, rejection: why.map(|why| why.name()), rule, settings }
    }

    fn push_text(&self, url: &Url, out: &mut String) {
        let table = self.table.map_or_else(|| "none".to_owned(), SiteTable::name);
        let verdict = match self.rejection {
            Some(why) => format!("out of scope ({why}): {}", self.rule),
            None => format!("in scope: {}", self.rule),
        };
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}{}", url.as_str());
        let _ = writeln!(out, "  {:<14}{table}", "table");
        let _ = writeln!(out, "  {:<14}{verdict}", "scope");
        for (name, value, from) in &self.settings {
            let value = value.replace('\n', "");
            let _ = writeln!(out, "  {name:<14}{value} ({from})");
        }
    }

    fn json(&self, url: &Url) -> Value {
        let table = self.table.map(|table| {
            let (kind, text) = table.matcher.parts();
            json!({ kind: text, "line": table.line })
        });
        let settings = self.settings.iter();
        let settings: serde_json::Map<String, Value> = settings
            .map(|(name, value, from)| {
                ((*name).to_owned(), json!({ "value": value, "from": from }))
            })
            .collect();
        json!({
            "url": url.as_str(),
            "table": table,
            "scope": { "rejection": self.rejection, "rule": self.rule },
            "settings": settings,
        })
    }
}

/// Returns the value of a setting for URLs without a table of their own, and where it comes from.
fn of_crawl(keys: &[Key], section: &str, name: &str) -> (String, String) {
    let value = |section: &str, name: &str| {
        let key = keys.iter().find(|key| (key.section, key.name) == (section, name));
        key.map_or_else(String::new, |key| key.value.clone())
    };
    match (section, name) {
        ("limits", "pages_max") => (
            format!(
                "{} of a server, {} of a domain",
                value("limits", "pages_per_server_max"),
                value("limits", "pages_per_domain_max")
            ),
            "[limits]".to_owned(),
        ),
        ("quality", _) => {
            (format!("by source {}", value(section, "source")), "[quality]".to_owned())
        }
        _ => (value(section, name), format!("[{section}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Flag;

    #[test]
    fn every_key_that_a_site_may_have_is_shown() {
        let keys = Conf::default().keys().into_iter();
        let of_sites = keys.filter(|key| key.flags.contains(&Flag::Site));
        for Key { section, name, .. } in of_sites {
            assert!(SHOWN.contains(&(section, name)), "{section}.{name}");
        }
    }
}
