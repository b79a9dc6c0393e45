//! Finds contradictions in a `[[site]]` table: with itself, with other tables, and with the rest of
//! the configuration.

use super::{Draft, SiteTable};
use crate::conf::Conf;
use crate::conf::mistake::Mistake;
use crate::conf::sections::{Burst, Scheme};
use crate::conf::units::show_time;
use crate::ground::map::Map;
use crate::url::scope::{FromSeeds, Requisites};
use crate::url::site::Matcher;
use crate::url::{Url, domain};
use regex::Regex;

/// The checks of all tables of a file, and what they need to know.
pub(super) struct Checks {
    /// The line of the first table with each matcher.
    lines: Map<Matcher, usize>,
    policy: &'static str,
    rates: bool,
    /// What the crawl may reach, if it is bounded and all seeds are in the file.
    roots: Option<Vec<Matcher>>,
    exclude: Vec<Regex>,
    is_open: bool,
    is_lab: bool,
    is_comparison: bool,
    schemes: Vec<Scheme>,
}

impl Checks {
    pub(super) fn new(conf: &Conf) -> Self {
        Self {
            lines: Map::default(),
            policy: conf.schedule.policy.name(),
            rates: conf.schedule.policy.is_by_quality(),
            roots: roots(conf),
            // A pattern that is no regular expression is a mistake of the section [scope].
            exclude: conf.scope.exclude.iter().filter_map(|text| Regex::new(text).ok()).collect(),
            is_open: !conf.scope.is_bounded(),
            is_lab: conf.lab.is_some(),
            is_comparison: conf.compare.is_some(),
            schemes: conf.scope.schemes.clone(),
        }
    }

    /// Adds the contradictions of one table to `mistakes`.
    pub(super) fn check(&mut self, site: &SiteTable, draft: &Draft<'_>, list: &mut Vec<Mistake>) {
        let mut clash = |is: bool, name: &str, text: String| {
            if is {
                list.push(draft.mistake(name, text));
            }
        };
        let (kind, _) = site.matcher.parts();
        let before = self.lines.insert(site.matcher.clone(), site.line);
        let text =
            before.map(|line| format!("the table at line {line} is for the same; join them"));
        clash(text.is_some(), kind, text.unwrap_or_default());
        let text = "the table has no settings; add one, or remove the table";
        clash(site.set.len() < 2, kind, text.to_owned());
        let text = "[compare] crawls its web by the same settings everywhere; remove the table";
        clash(self.is_comparison, "", text.to_owned());
        self.pace(site, &mut clash);
        let twice = site.scope.include.iter().find(|text| site.scope.exclude.contains(text));
        let key = if site.has("exclude") { "exclude" } else { "include" };
        let is_own = site.has("include") || site.has("exclude");
        if let Some(pattern) = twice.filter(|_| is_own) {
            let text = format!("include has {pattern:?}, too; nothing can match only one of them");
            clash(true, key, text);
        }
        let text = format!(
            "has no effect with schedule.policy = {:?}; write policy = \"quality\" or \
             \"capability\", or remove this key",
            self.policy
        );
        clash(site.has("quality") && !self.rates, "quality", text);
        let is_everybody = site.matcher.is_public() && !self.is_lab;
        let text = "anybody can have a host below this public suffix, and would get these fields; \
                    name your own host or domain";
        clash(is_everybody && !site.headers().is_empty(), "headers", text.to_owned());
        if let Some(text) = self.unreachable(site) {
            clash(true, kind, text);
        }
    }

    /// Checks the politeness of a table.
    fn pace(&self, site: &SiteTable, clash: &mut dyn FnMut(bool, &str, String)) {
        let own = ["burst", "delay", "delay_factor"].into_iter().find(|name| site.has(name));
        let Some(name) = own else { return };
        let (kind, text) = site.matcher.parts();
        if kind == "prefix" {
            let url = Url::parse(text).expect("it was parsed");
            let fix = format!(
                "a server has one pace for all its URLs; move this key to a table with host = \
                 \"{}\"",
                url.view().host()
            );
            return clash(true, name, fix);
        }
        let politeness = &site.politeness;
        let (delay, most) = (politeness.delay, politeness.delay_max);
        let requests = match politeness.burst {
            Burst::Requests(count) => count,
            Burst::Server => 1,
        };
        let rest = delay.saturating_mul(requests);
        let text = format!(
            "the rest after a visit, burst x delay = {}, is longer than politeness.delay_max, {}; \
             raise that, or lower these",
            show_time(rest),
            show_time(most)
        );
        clash(rest > most, name, text);
        let is_restless = delay.is_zero() && politeness.delay_factor.thousandths() == 0;
        let text = "with span = \"any\" servers below a public suffix need a rest; name your own \
                    domain, or set delay or delay_factor";
        let is_everybody = site.matcher.is_public() && !self.is_lab;
        clash(is_restless && self.is_open && is_everybody, name, text.to_owned());
    }

    /// Returns why no URL of the crawl can match the table; `None` if some may.
    fn unreachable(&self, site: &SiteTable) -> Option<String> {
        let (kind, text) = site.matcher.parts();
        let probes: Vec<String> = match kind {
            "prefix" => {
                let wanted = if text.starts_with("https:") { Scheme::Https } else { Scheme::Http };
                if !self.schemes.contains(&wanted) {
                    let fix = "scope.schemes has another scheme, so the table is never used; \
                               change one of the two";
                    return Some(fix.to_owned());
                }
                ["", "x", "x/y?z=1"].map(|end| format!("{text}{end}")).into()
            }
            _ => ["http", "https"]
                .iter()
                .flat_map(|scheme| ["", "x", "x/y?z=1"].map(|end| (scheme, end)))
                .map(|(scheme, end)| format!("{scheme}://{text}/{end}"))
                .collect(),
        };
        if !site.has("exclude") && kind != "domain" {
            let all = |regex: &&Regex| probes.iter().all(|probe| regex.is_match(probe));
            if let Some(regex) = self.exclude.iter().find(all) {
                let pattern = regex.as_str();
                return Some(format!(
                    "scope.exclude has {pattern:?}, which matches all these URLs, so the table is \
                     never used; remove one of the two"
                ));
            }
        }
        let roots = self.roots.as_ref()?;
        let is_reached = roots.iter().any(|root| overlap(root, &site.matcher));
        (!is_reached).then(|| {
            "no seed is there, and scope.span and the lists of [scope] don't lead there, so the \
             table is never used; remove it, or add the host to scope.hosts"
                .to_owned()
        })
    }
}

/// Returns hosts and domains of which the crawl can't leave any; `None` if it may reach others.
fn roots(conf: &Conf) -> Option<Vec<Matcher>> {
    let scope = &conf.scope;
    let is_elsewhere = scope.requisites == Requisites::Any && conf.links.requisites;
    let is_open = !scope.is_bounded() || is_elsewhere;
    if is_open || conf.job.seeds_file.is_some() || conf.lab.is_some() {
        return None;
    }
    let mut roots = Vec::new();
    for seed in &conf.job.seeds {
        let url = Url::parse(seed).or_else(|_| Url::parse(&format!("http://{seed}"))).ok()?;
        let host = url.view().host();
        let host = host.strip_suffix('.').unwrap_or(host);
        let reached = match scope.span {
            FromSeeds::Domain => Matcher::Domain(domain::registrable(host).to_owned()),
            _ => Matcher::Host(host.to_owned()),
        };
        roots.push(reached);
        // A seed that redirects to the same name with or without "www." brings that host along.
        let bare = host.strip_prefix("www.").unwrap_or(host);
        roots.extend([bare.to_owned(), format!("www.{bare}")].map(Matcher::Host));
    }
    roots.extend(scope.hosts.iter().filter_map(|name| Matcher::host(name).ok()));
    roots.extend(scope.domains.iter().filter_map(|name| Matcher::domain(name).ok()));
    let urls = scope.prefixes.iter().filter_map(|text| Url::parse(text).ok());
    roots.extend(urls.map(|url| Matcher::Host(url.view().host().to_owned())));
    Some(roots)
}

/// Returns whether a host may be in both: in what the crawl reaches, and in what a table is for.
fn overlap(root: &Matcher, site: &Matcher) -> bool {
    let (of_root, of_site) = (host_of(root), host_of(site));
    domain::is_within(&of_root, &of_site) && matches!(site, Matcher::Domain(_))
        || domain::is_within(&of_site, &of_root) && matches!(root, Matcher::Domain(_))
        || of_root == of_site
}

fn host_of(matcher: &Matcher) -> String {
    let (kind, text) = matcher.parts();
    match Url::parse(text) {
        Ok(url) if kind == "prefix" => url.view().host().to_owned(),
        _ => text.to_owned(),
    }
}
