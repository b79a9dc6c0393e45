//! Finds the table of per-site settings that applies to a URL: the most specific one that matches.
//!
//! A table matches a host, a domain with all hosts below it, or the URLs that begin with a prefix.
//! A longer prefix goes before a shorter one, any prefix before a host, a host before a domain, and
//! a longer domain before a shorter one. Tables are known by their number in the list.
//!
//! Cost: nothing if there is no table; else one hash look-up of the host, one for each label of it
//! if there are domains, and a comparison for each prefix of the host.

use super::{Invalid, Url, UrlRef, canon, domain};
use crate::ground::map::Map;
use std::fmt;

/// The largest number of tables.
pub const SITES_MAX: usize = 10_000;

/// The number of a table in the list of all tables.
pub type SiteId = u16;

/// Which URLs a table applies to. The texts are canonical.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// The URLs of this host, with any scheme and port.
    Host(String),
    /// The URLs of this host and of all hosts below it, with any scheme and port.
    Domain(String),
    /// The URLs that begin with this one: scheme, host and port are the same.
    Prefix(String),
}

impl Matcher {
    /// Returns the matcher of a host, written as in a URL.
    ///
    /// # Errors
    /// The text is no host.
    pub fn host(text: &str) -> Result<Self, Invalid> {
        canonical(text).map(Self::Host)
    }

    /// Returns the matcher of a domain.
    ///
    /// # Errors
    /// The text is no host.
    pub fn domain(text: &str) -> Result<Self, Invalid> {
        canonical(text).map(Self::Domain)
    }

    /// Returns the matcher of a prefix, which is an absolute URL.
    ///
    /// # Errors
    /// The text is no URL.
    pub fn prefix(text: &str) -> Result<Self, Invalid> {
        Url::parse(text).map(|url| Self::Prefix(url.as_str().to_owned()))
    }

    /// Returns whether URLs of servers that anybody may register can match: the domain is a public
    /// suffix, like `com` or `github.io`.
    pub fn is_public(&self) -> bool {
        matches!(self, Self::Domain(name) if domain::is_suffix(name))
    }

    /// Returns the word for the kind of matcher, which is the key that it is written with, and its
    /// text.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Host(text) => ("host", text),
            Self::Domain(text) => ("domain", text),
            Self::Prefix(text) => ("prefix", text),
        }
    }

    /// Returns whether the matcher matches a URL.
    pub fn matches(&self, url: UrlRef<'_>) -> bool {
        let host = bare(url.host());
        match self {
            Self::Host(name) => host == name,
            Self::Domain(name) => domains_of(host).any(|above| above == name),
            Self::Prefix(text) => url.as_str().starts_with(text.as_str()),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = self.parts();
        write!(f, "{kind} = \"{text}\"")
    }
}

/// All tables, for look-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// What each table is for.
    list: Vec<Matcher>,
    hosts: Map<String, SiteId>,
    domains: Map<String, SiteId>,
    /// The prefixes by host, the longest first.
    prefixes: Map<String, Vec<(String, SiteId)>>,
}

impl Sites {
    /// Returns the look-up of these tables. Of two tables with the same matcher the last counts.
    ///
    /// # Panics
    /// Panics if there are more than [`SITES_MAX`] tables.
    pub fn new<'a>(matchers: impl IntoIterator<Item = &'a Matcher>) -> Self {
        let mut sites = Self::default();
        for (number, matcher) in matchers.into_iter().enumerate() {
            assert!(number < SITES_MAX, "the configuration is checked");
            let id = number as SiteId;
            sites.list.push(matcher.clone());
            match matcher {
                Matcher::Host(name) => _ = sites.hosts.insert(name.clone(), id),
                Matcher::Domain(name) => _ = sites.domains.insert(name.clone(), id),
                Matcher::Prefix(text) => {
                    let url = UrlRef::from_canonical(text.as_bytes()).expect("it was parsed");
                    let list = sites.prefixes.entry(bare(url.host()).to_owned()).or_default();
                    list.push((text.clone(), id));
                }
            }
        }
        for list in sites.prefixes.values_mut() {
            list.sort_by_key(|(text, id)| std::cmp::Reverse((text.len(), *id)));
        }
        sites
    }

    /// Returns whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns what each table is for, in the order of their numbers.
    pub fn list(&self) -> &[Matcher] {
        &self.list
    }

    /// Returns the table that applies to a URL; `None` if none does.
    pub fn of(&self, url: UrlRef<'_>) -> Option<SiteId> {
        if !self.prefixes.is_empty()
            && let Some(list) = self.prefixes.get(bare(url.host()))
            && let Some((_, id)) = list.iter().find(|(text, _)| url.as_str().starts_with(text))
        {
            return Some(*id);
        }
        self.of_host(url.host())
    }

    /// Returns the table that applies to a host as a whole, whatever its prefixes; `None` if none
    /// does.
    pub fn of_host(&self, host: &str) -> Option<SiteId> {
        if self.hosts.is_empty() && self.domains.is_empty() {
            return None;
        }
        let host = bare(host);
        if let Some(id) = self.hosts.get(host) {
            return Some(*id);
        }
        if self.domains.is_empty() {
            return None;
        }
        domains_of(host).find_map(|name| self.domains.get(name).copied())
    }
}

fn canonical(text: &str) -> Result<String, Invalid> {
    canon::host(text).map(|host| bare(&host).to_owned())
}

/// Returns a host without the dot at its end.
fn bare(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Returns a host and all domains above it, the longest first. An address has none above it.
fn domains_of(host: &str) -> impl Iterator<Item = &str> {
    let above = if domain::is_address(host) { "" } else { host };
    let dots = above.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
    std::iter::once(host).chain(dots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn matchers() -> Vec<Matcher> {
        let all = [
            Matcher::domain("a.test"),
            Matcher::host("A.test."),
            Matcher::prefix("http://a.test/x"),
            Matcher::prefix("http://a.test/x/y/"),
            Matcher::domain("b.a.test"),
            Matcher::prefix("https://c.a.test:8443/"),
            Matcher::host("192.0.2.7"),
            Matcher::domain("0.2.7"),
        ];
        all.into_iter().flatten().collect()
    }

    #[test]
    fn the_most_specific_table_applies() {
        let sites = Sites::new(&matchers());
        let cases = [
            ("http://a.test/", Some(1), "a host before its domain"),
            ("https://a.test:444/x", Some(1), "any scheme and port; the prefix has another"),
            ("http://a.test./", Some(1), "a dot at the end doesn't count"),
            ("http://a.test/xy", Some(2), "a prefix is text"),
            ("http://a.test/x/y/z", Some(3), "a longer prefix before a shorter one"),
            ("http://d.a.test/", Some(0), "a host below a domain"),
            ("http://e.b.a.test/", Some(4), "a longer domain before a shorter one"),
            ("http://b.a.test/", Some(4), "a domain has its own host"),
            ("https://c.a.test:8443/q", Some(5), "a prefix with a port"),
            ("https://c.a.test/", Some(0), "another port"),
            ("http://ba.test/", None, "not a label's end"),
            ("http://192.0.2.7/", Some(6), "an address"),
            ("http://192.0.2.8/", None, "an address is not below another"),
        ];
        for (text, expected, why) in cases {
            assert_eq!(sites.of(url(text).view()), expected, "{text}: {why}");
        }
        assert_eq!(sites.of_host("a.test"), Some(1));
        assert_eq!(Sites::default().of(url("http://a.test/").view()), None);
    }

    /// Law: the look-up finds the same table as a search of the whole list, in the order of the
    /// documentation.
    #[test]
    fn law_the_look_up_is_a_search_of_the_list() {
        let mut random = Random(5);
        let names = ["a.test", "b.a.test", "c.b.a.test", "ba.test", "d.test"];
        let paths = ["/", "/x", "/x/", "/x/y", "/xy/z"];
        for _ in 0..300 {
            let list: Vec<Matcher> = (0..random.below(8))
                .filter_map(|_| {
                    let name = names[random.below(names.len())];
                    match random.below(3) {
                        0 => Matcher::host(name),
                        1 => Matcher::domain(name),
                        _ => Matcher::prefix(&format!(
                            "{}://{name}{}",
                            ["http", "https"][random.below(2)],
                            paths[random.below(paths.len())]
                        )),
                    }
                    .ok()
                })
                .collect();
            let sites = Sites::new(&list);
            for name in names {
                for path in paths {
                    let url = url(&format!("http://{name}{path}"));
                    let rank = |matcher: &Matcher| match matcher {
                        Matcher::Prefix(text) => (2, text.len()),
                        Matcher::Host(_) => (1, 0),
                        Matcher::Domain(name) => (0, name.len()),
                    };
                    let all = list.iter().enumerate();
                    let matching = all.filter(|(_, matcher)| matcher.matches(url.view()));
                    let best = matching.max_by_key(|(number, matcher)| (rank(matcher), *number));
                    let expected = best.map(|(number, _)| number as SiteId);
                    assert_eq!(sites.of(url.view()), expected, "{list:?} {}", url.as_str());
                }
            }
        }
    }
}
