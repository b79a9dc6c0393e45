//! Redirects of seeds: which of them extend the scope, and which are reported.
//!
//! If a seed redirects and only `www.` is added or dropped, or the scheme changes, the target's
//! host joins the scope. A checkpoint saves it with the seed, and it remains in the scope as long
//! as that URL is a seed. Any other redirect out of the scope makes the seed fail, with a warning
//! that says which setting would include the target.
//!
//! Law: at most [`WARNINGS_MAX`] warnings a run, however many seeds there are.
//! Cost: memory for each seed whose target joined the scope.

use super::Admission;
use crate::ground::frame::Flaw;
use crate::url::scope::Rejection;
use crate::url::{Url, UrlRef};
use std::collections::BTreeMap;

/// The number of redirects out of the scope that are reported one by one.
const WARNINGS_MAX: u64 = 10;

/// The redirects of seeds: how many left the scope, and which extended it.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct SeedRedirects {
    /// The number of seeds in this run that redirect out of the scope.
    left_scope: u64,
    /// The seeds whose targets' hosts joined the scope: for each seed URL the target URL.
    joined: BTreeMap<String, String>,
}

impl SeedRedirects {
    /// Reports a seed that redirects to `target`, which is out of scope for the reason `why`.
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

    /// Notes that the seed `url` redirects to `target`, whose host joined the scope.
    fn joined(&mut self, url: &str, target: &str) {
        log::info!("seed {url} redirects to {target}, whose host joins the scope");
        self.joined.insert(url.to_owned(), target.to_owned());
    }

    /// Encodes the redirects whose targets joined the scope for a checkpoint. Each is given to
    /// `push` as the text `SEED TARGET`.
    pub(in crate::engine) fn encode(&self, push: &mut dyn FnMut(&[u8])) {
        for (seed, target) in &self.joined {
            push(format!("{seed} {target}").as_bytes());
        }
    }

    /// Decodes one redirect that [`SeedRedirects::encode`] wrote, `SEED TARGET`, and adds it.
    pub(in crate::engine) fn decode(&mut self, piece: &[u8]) -> Result<(), Flaw> {
        let text = std::str::from_utf8(piece).map_err(|_| Flaw::Senseless)?;
        let (seed, target) = text.split_once(' ').ok_or(Flaw::Senseless)?;
        self.joined.insert(seed.to_owned(), target.to_owned());
        Ok(())
    }
}

/// Returns a text for the operator: what would include a target in the scope, or what excludes it.
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
    /// Adds the host of `target` to the scope, if the redirect from the seed changes only `www.` or
    /// the scheme. Returns whether it does.
    pub(in crate::engine) fn joins_scope(&mut self, seed: UrlRef<'_>, target: UrlRef<'_>) -> bool {
        let joins = self.scope.join(seed, target);
        if joins {
            self.seed_redirects.joined(seed.as_str(), target.as_str());
        }
        joins
    }

    /// Adds the hosts to the scope that joined it in an earlier run, because seeds redirect to
    /// them. A host whose seed is no longer a seed (`is_seed`) is left out.
    pub(in crate::engine) fn join_again(&mut self, is_seed: impl Fn(&str) -> bool) {
        for (seed, target) in &self.seed_redirects.joined {
            let urls = (Url::parse(seed), Url::parse(target));
            if let (Ok(seed), Ok(target)) = urls
                && is_seed(seed.as_str())
            {
                self.scope.join(seed.view(), target.view());
            }
        }
    }

    /// Returns the record of the redirects of seeds.
    pub(in crate::engine) fn seed_redirects(&mut self) -> &mut SeedRedirects {
        &mut self.seed_redirects
    }
}
