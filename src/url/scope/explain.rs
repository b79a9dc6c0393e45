//! Explains why a URL is in scope or not: names the key and the value that decide.

use super::{Distance, FromSeeds, Rejection, Scope, count};
use crate::url::site::SiteId;
use crate::url::{UrlRef, domain};

impl Scope {
    /// Checks a URL like [`Scope::check`], and returns with the result the rule that decides, in
    /// words that name the key. Without a distance the number of links from a seed is not checked,
    /// and the rule names its limit.
    pub fn explain(&self, url: UrlRef<'_>, at: Option<Distance>) -> (Option<Rejection>, String) {
        let depth = at.map(|at| u32::from(at.depth));
        let by_itself = self.check(url, depth.unwrap_or(0)).err();
        let why = self.check_distance(url, at.unwrap_or_default(), &mut "").err();
        let mut rule = match why {
            Some(why) => self.rule_against(why, url, depth),
            None if by_itself.is_some() => self.rule_for_requisite(at.unwrap_or_default()),
            None => self.rule_for(url),
        };
        if why.is_some() && at.is_none() && self.may_be_requisite(url) {
            rule.push_str("; a page in scope may load it (scope.requisites is \"any\")");
        }
        let (rules, site) = self.rules_of(url);
        let depth_max = rules.depth_max;
        if why.is_none() && depth.is_none() && depth_max < u32::MAX {
            let key = self.key_of(site, "depth_max");
            rule.push_str(&format!("; {key}: at most {depth_max} links from a seed"));
        }
        (why, rule)
    }

    /// Returns the name of a key that may differ between sites: it names the table that has it.
    fn key_of(&self, site: Option<SiteId>, key: &str) -> String {
        let own = site.and_then(|site| self.settings.site_rules.get(usize::from(site)));
        let has = |own: &&super::SiteRules| match key {
            "depth_max" => own.depth_max.is_some(),
            "include" => own.include.is_some(),
            _ => own.exclude.is_some(),
        };
        match own.filter(has) {
            Some(own) => format!("{}: {key}", own.name),
            None => format!("scope.{key}"),
        }
    }

    /// Describes the rule by which a URL is refused.
    fn rule_against(&self, why: Rejection, url: UrlRef<'_>, depth: Option<u32>) -> String {
        let (set, (rules, site)) = (&self.settings, self.rules_of(url));
        let key = match why {
            Rejection::Depth => self.key_of(site, "depth_max"),
            Rejection::Excluded => self.key_of(site, "exclude"),
            Rejection::NotIncluded => self.key_of(site, "include"),
            _ => why.key().to_owned(),
        };
        let limit = |limit: usize, has: usize, what: &str| {
            format!("{key} is {limit}, and the URL has {has} {what}")
        };
        let query = url.query().unwrap_or_default().as_bytes();
        match why {
            Rejection::Scheme => format!("{key} doesn't list the scheme of the URL"),
            Rejection::Port => format!("port {} belongs to another protocol", url.port()),
            Rejection::Length => limit(set.url_bytes_max, url.as_str().len(), "bytes"),
            Rejection::Depth => format!(
                "{key} is {}, and the URL was found {} links from a seed",
                rules.depth_max,
                depth.unwrap_or(0)
            ),
            Rejection::Elsewhere => self.rule_elsewhere(),
            Rejection::PathDepth => {
                limit(set.path_depth_max, count(url.path().as_bytes(), b'/'), "path segments")
            }
            Rejection::SegmentRepeats => {
                let most = set.segment_repeats_max;
                format!("{key} is {most}, and a path segment repeats more often")
            }
            Rejection::QueryParams => limit(set.query_params_max, count(query, b'&'), "parameters"),
            Rejection::ParamRepeats => {
                format!("a query parameter repeats more than {} times", set.param_repeats_max)
            }
            Rejection::Excluded => {
                let first = rules.exclude.matches(url.as_str().as_bytes()).iter().next();
                let number = first.expect("a pattern matches");
                let pattern = &self.patterns_of(site, true)[number];
                format!("{key}, pattern {}: \"{pattern}\"", number + 1)
            }
            Rejection::NotIncluded => {
                format!("{key}: none of its {} patterns matches", rules.include.len())
            }
            Rejection::RequisiteHops => {
                format!("{key} is {}, and the URL is farther from its page", set.requisite_hops)
            }
            Rejection::OfRequisite => {
                "the page that links to it is out of scope, and was fetched as a requisite"
                    .to_owned()
            }
        }
    }

    fn rule_elsewhere(&self) -> String {
        let seeds = match self.settings.from_seeds {
            FromSeeds::Any => return "no list of [scope] has the host of the URL".to_owned(),
            FromSeeds::Host => "scope.span is \"host\", and no seed is on this host",
            FromSeeds::Domain => "scope.span is \"domain\", and no seed is in this domain",
            FromSeeds::Prefix => "scope.span is \"prefix\", and no seed is in this folder",
        };
        let set = &self.settings;
        match set.hosts.len() + set.domains.len() + set.prefixes.len() {
            0 => seeds.to_owned(),
            _ => format!("{seeds}, nor does a list of [scope] have it"),
        }
    }

    fn rule_for_requisite(&self, at: Distance) -> String {
        format!(
            "scope.requisites is \"any\", and the URL is a requisite of a page in scope, {} of at \
             most {} hops from it",
            at.requisite, self.settings.requisite_hops
        )
    }

    /// Describes the rule by which a URL is in scope.
    fn rule_for(&self, url: UrlRef<'_>) -> String {
        let host = url.host().strip_suffix('.').unwrap_or(url.host());
        let listed = if self.is_open {
            "scope.span is \"any\": every host is in scope".to_owned()
        } else if self.hosts.contains(host) {
            let is_own = self.settings.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
            match is_own {
                true => format!("scope.hosts lists {host}"),
                false => format!("scope.span is \"host\", and a seed is on {host}"),
            }
        } else if self.is_below_domain(host) {
            self.rule_of_domain(host)
        } else {
            let listed = self.settings.prefixes.iter().map(|text| {
                let bare = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
                (bare, text)
            });
            let bare =
                &url.as_str()[url.as_str().len() - url.authority().len() - url.target().len()..];
            match listed.into_iter().find(|(own, _)| bare.starts_with(own)) {
                Some((_, text)) => format!("scope.prefixes lists {text}"),
                None => "scope.span is \"prefix\", and a seed is in a folder above".to_owned(),
            }
        };
        let (rules, site) = self.rules_of(url);
        match rules.include.len() {
            0 => listed,
            _ => {
                let first = rules.include.matches(url.as_str().as_bytes()).iter().next();
                let number = first.expect("a pattern matches");
                let pattern = &self.patterns_of(site, false)[number];
                let key = self.key_of(site, "include");
                format!("{listed}; {key}, pattern {}: \"{pattern}\"", number + 1)
            }
        }
    }

    fn rule_of_domain(&self, host: &str) -> String {
        let is_in = |own: &&String| domain::is_within(host, &own.to_ascii_lowercase());
        let own = self.settings.domains.iter().find(is_in);
        match own {
            Some(own) => format!("scope.domains lists {own}"),
            None => {
                let domain = domain::registrable(host);
                format!("scope.span is \"domain\", and a seed is in {domain}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::url::Url;
    use crate::url::scope::Requisites;

    const ZERO: Option<Distance> = Some(Distance { depth: 0, requisite: 0 });

    #[test]
    fn a_requisite_is_explained() {
        let set = Settings {
            from_seeds: FromSeeds::Host,
            exclude: vec!["/ad".to_owned()],
            requisites: Requisites::Any,
            ..Settings::default()
        };
        let seed = Url::parse("http://s.test/").expect("a URL");
        let scope = Scope::new(set, [&seed]).expect("good settings");
        let explain = |text: &str, at| scope.explain(Url::parse(text).expect("a URL").view(), at);
        let requisite = Some(Distance { depth: 1, requisite: 2 });
        let (why, rule) = explain("http://cdn.test/x.css", requisite);
        assert_eq!(why, None);
        let says = "a requisite of a page in scope, 2 of at most 3 hops from it";
        assert!(rule.contains(says), "{rule}");
        let (why, rule) = explain("http://cdn.test/x.css", None);
        assert_eq!(why, Some(Rejection::Elsewhere));
        assert!(rule.ends_with("; a page in scope may load it (scope.requisites is \"any\")"));
        let (why, rule) = explain("http://cdn.test/ad.js", requisite);
        assert_eq!(why, Some(Rejection::Excluded), "{rule}");
        assert!(explain("http://s.test/x.css", requisite).1.contains("a seed is on s.test"));
    }

    #[test]
    fn the_deciding_rule_is_named() {
        let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let set = Settings {
            from_seeds: FromSeeds::Host,
            hosts: list(&["Listed.test"]),
            domains: list(&["d.test"]),
            prefixes: list(&["p.test/docs/"]),
            exclude: list(&["/x/", "\\.pdf$"]),
            depth_max: 2,
            url_bytes_max: 60,
            path_depth_max: 3,
            ..Settings::default()
        };
        let seed = Url::parse("http://s.test/").expect("a URL");
        let scope = Scope::new(set.clone(), [&seed]).expect("good settings");
        let long = format!("http://s.test/{}", "y".repeat(60));
        let cases = [
            ("http://s.test/", Some(0), "a seed is on s.test"),
            ("http://s.test/", None, "at most 2 links from a seed"),
            ("http://s.test/", Some(3), "scope.depth_max is 2, and the URL was found 3 links"),
            ("http://listed.test/", Some(0), "scope.hosts lists listed.test"),
            ("http://a.d.test/", Some(0), "scope.domains lists d.test"),
            ("http://p.test/docs/a", Some(0), "scope.prefixes lists p.test/docs/"),
            ("http://p.test/", Some(0), "no seed is on this host, nor does a list"),
            ("http://s.test/a.pdf", Some(0), "scope.exclude, pattern 2: \"\\.pdf$\""),
            ("http://s.test:25/", Some(0), "port 25 belongs to another protocol"),
            ("http://s.test/1/2/3/4", Some(0), "scope.path_depth_max is 3, and the URL has 4"),
            (&long, Some(0), "scope.url_bytes_max is 60, and the URL has 74 bytes"),
        ];
        for (text, depth, says) in cases {
            let url = Url::parse(text).expect("a URL");
            let at = depth.map(|depth| Distance { depth, requisite: 0 });
            let (why, rule) = scope.explain(url.view(), at);
            assert!(rule.contains(says), "{text}: {rule}");
            assert_eq!(why, scope.check(url.view(), depth.unwrap_or(0).into()).err());
        }
        let open = Settings { include: list(&["a", "b"]), ..Settings::default() };
        let open = Scope::new(open, []).expect("good settings");
        let rule = |text: &str| open.explain(Url::parse(text).expect("a URL").view(), ZERO).1;
        let every = "scope.span is \"any\": every host is in scope";
        assert_eq!(rule("http://h.test/b"), format!("{every}; scope.include, pattern 2: \"b\""));
        assert_eq!(rule("http://h.test/c"), "scope.include: none of its 2 patterns matches");
        for (from_seeds, says) in [
            (FromSeeds::Domain, "a seed is in s.test"),
            (FromSeeds::Prefix, "a seed is in a folder above"),
        ] {
            let set = Settings { from_seeds, ..Settings::default() };
            let scope = Scope::new(set, [&seed]).expect("good settings");
            let (_, rule) = scope.explain(seed.view(), ZERO);
            assert!(rule.contains(says), "{rule}");
        }
    }
}
