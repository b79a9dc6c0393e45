//! Seeds that redirect: what joins the scope for that, and what is warned of.
//!
//! A seed's redirect that only adds or drops `www.`, or changes the scheme, joins the scope. That
//! must outlive the run: a checkpoint writes it down with the seed that brought it, and it holds as
//! long as that is a seed. Any other one out of scope fails the seed, with a warning that says what
//! would let it in.
//!
//! Law: no more than [`WARNINGS_MAX`] warnings a run, however many seeds there are. Cost: memory
//! for each seed that joined a host.

use super::Admission;
use crate::ground::frame::Flaw;
use crate::url::scope::Rejection;
use crate::url::{Url, UrlRef};
use std::collections::BTreeMap;

/// Redirects out of the scope that have a warning each.
const WARNINGS_MAX: u64 = 10;

/// Where seeds redirect to.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Seeding {
    /// Seeds of this run that redirect out of the scope.
    left_scope: u64,
    /// Seeds whose redirects joined the scope, with where they lead.
    joined: BTreeMap<String, String>,
}

impl Seeding {
    /// A seed redirects out of the scope, to `target`.
    pub(in crate::engine) fn left_scope(&mut self, url: &str, target: UrlRef<'_>, why: Rejection) {
        self.left_scope += 1;
        if self.left_scope <= WARNINGS_MAX {
            let (fix, why) = (fix_of(target, why), why.name());
            let target = target.as_str();
            log::warn!("seed {url} redirects to {target}, which is out of scope ({why}); {fix}");
        } else if self.left_scope == WARNINGS_MAX + 1 {
            log::warn!("more seeds redirect out of scope; they are among the failed seeds");
        }
    }

    /// A seed redirects to `target`, which joined the scope for that.
    fn joined(&mut self, url: &str, target: &str) {
        log::info!("seed {url} redirects to {target}, whose host joins the scope");
        self.joined.insert(url.to_owned(), target.to_owned());
    }

    /// What a checkpoint keeps: each seed whose redirect joined the scope with where it leads,
    /// `SEED TARGET`.
    pub(in crate::engine) fn encode(&self, push: &mut dyn FnMut(&[u8])) {
        for (seed, target) in &self.joined {
            push(format!("{seed} {target}").as_bytes());
        }
    }

    /// Takes one of these back.
    pub(in crate::engine) fn decode(&mut self, piece: &[u8]) -> Result<(), Flaw> {
        let text = std::str::from_utf8(piece).map_err(|_| Flaw::Senseless)?;
        let (seed, target) = text.split_once(' ').ok_or(Flaw::Senseless)?;
        self.joined.insert(seed.to_owned(), target.to_owned());
        Ok(())
    }
}

/// What would let a target in.
fn fix_of(target: UrlRef<'_>, why: Rejection) -> String {
    match why {
        Rejection::Elsewhere => {
            format!("to crawl it, add \"{}\" to scope.hosts, or make it a seed", target.host())
        }
        Rejection::Scheme => "to crawl it, add its scheme to scope.schemes".to_owned(),
        Rejection::Excluded => "a pattern of scope.exclude matches it".to_owned(),
        Rejection::NotIncluded => "no pattern of scope.include matches it".to_owned(),
        Rejection::Port => "its port belongs to another protocol".to_owned(),
        Rejection::ParamRepeats => "its query repeats one parameter".to_owned(),
        _ => format!("raise {} to crawl it", why.key()),
    }
}

impl Admission {
    /// A seed redirects to `target`, which is out of scope: if only `www.` or the scheme changes,
    /// it joins the scope. Returns whether it does.
    pub(in crate::engine) fn joins_scope(&mut self, seed: UrlRef<'_>, target: UrlRef<'_>) -> bool {
        let joins = self.scope.join(seed, target);
        if joins {
            self.seeding.joined(seed.as_str(), target.as_str());
        }
        joins
    }

    /// What joined the scope in an earlier run joins it again, if its seed is still one.
    pub(in crate::engine) fn join_again(&mut self, is_seed: impl Fn(&str) -> bool) {
        for (seed, target) in &self.seeding.joined {
            let urls = (Url::parse(seed), Url::parse(target));
            if let (Ok(seed), Ok(target)) = urls
                && is_seed(seed.as_str())
            {
                self.scope.join(seed.view(), target.view());
            }
        }
    }

    /// What a checkpoint keeps of redirects of seeds.
    pub(in crate::engine) fn seeding(&mut self) -> &mut Seeding {
        &mut self.seeding
    }
}
