//! Explains which rules change the deduplication key of a URL.

use super::{KeyRules, Settings};
use crate::url::UrlRef;

/// A rule of the key: its name in the configuration, and what switches it off.
type Rule = (&'static str, fn(&mut Settings));

/// All rules. The first and the last three have no key of the configuration.
const RULES: [Rule; 11] = [
    ("spelling of escapes", |set| set.normalise_escapes = false),
    ("url.drop_params", |set| set.drop_params.clear()),
    ("url.drop_path_params", |set| set.drop_path_params.clear()),
    ("url.drop_sessions", |set| set.drop_sessions = false),
    ("url.sort_query", |set| set.sort_query = false),
    ("url.drop_index", |set| set.drop_index.clear()),
    ("url.drop_trailing_slash", |set| set.drop_trailing_slash = false),
    ("url.drop_www", |set| set.drop_www = false),
    ("url.merge_schemes", |set| set.merge_schemes = false),
    ("empty query", |set| set.drop_empty_query = false),
    ("dot after the host", |set| set.drop_host_dot = false),
];

impl KeyRules {
    /// Returns the names of the rules that make the key of `url` differ from the URL: those without
    /// which the key would be another, or that would change the URL alone. Compiles the rules
    /// again, which is for questions of people only.
    pub fn explain(&self, url: UrlRef<'_>) -> Vec<&'static str> {
        let key_by = |settings: Settings| {
            let mut scratch = Vec::new();
            Self::new(settings).key(url, &mut scratch).to_vec()
        };
        let whole = key_by(self.settings.clone());
        if whole == url.as_str().as_bytes() {
            return Vec::new();
        }
        let matters = |(number, (_, off)): (usize, &Rule)| {
            let mut without = self.settings.clone();
            off(&mut without);
            let mut alone = self.settings.clone();
            let others = RULES.iter().enumerate().filter(|(other, _)| *other != number);
            others.for_each(|(_, (_, off))| off(&mut alone));
            key_by(without) != whole || key_by(alone) != url.as_str().as_bytes()
        };
        let rules = RULES.iter().enumerate().filter(|rule| matters(*rule));
        rules.map(|(_, (name, _))| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Url;

    #[test]
    fn the_rules_that_change_a_key_are_named() {
        let rules = KeyRules::new(Settings { sort_query: true, ..Settings::default() });
        let cases: [(&str, &[&str]); 6] = [
            ("http://a.test/", &[]),
            ("http://a.test/?utm_source=x", &["url.drop_params"]),
            ("http://a.test/?b=1&a=2&utm_source=x", &["url.drop_params", "url.sort_query"]),
            ("http://a.test/a;jsessionid=1", &["url.drop_path_params"]),
            ("http://a.test./?", &["empty query", "dot after the host"]),
            ("http://a.test/%7ea", &["spelling of escapes"]),
        ];
        for (text, expected) in cases {
            let url = Url::parse(text).expect("a URL");
            assert_eq!(rules.explain(url.view()), expected, "{text}");
        }
        // Two rules remove the same parameter: both are named.
        let url = Url::parse("http://a.test/?phpsessid=0123456789abcdef0123456789abcdef");
        let names = rules.explain(url.expect("a URL").view());
        assert!(names.contains(&"url.drop_params"), "{names:?}");
    }
}
