//! Asks the scope again when a URL leaves its queue, if the scope has changed since it was queued.
//!
//! URLs are checked when they are found. A crawl that resumes under another scope has URLs queued
//! that this one doesn't want; they are settled as `excluded` when their turn comes. Seeds are not
//! checked: the operator named them.
//!
//! Cost: nothing while a crawl runs under the scope it began with, else one check a URL.

use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::outcome::Outcome;
use crate::engine::seeds::SEED;
use crate::frontier::ServerId;
use crate::url::UrlRef;
use crate::url::scope::Scope;

/// Which scope the queued URLs were checked against.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Rescope {
    /// Of this run.
    digest: String,
    /// Some were checked against another one.
    is_due: bool,
}

/// Stands in a checkpoint for more than one scope.
const MIXED: &str = "mixed";

impl Rescope {
    pub(in crate::engine) fn new(scope: &Scope) -> Self {
        Self { digest: format!("{:016x}", scope.digest()), is_due: false }
    }

    /// URLs are restored that were checked against this scope.
    pub(in crate::engine) fn restores(&mut self, digest: &str) {
        self.is_due = digest != self.digest;
    }

    /// Whether URLs that leave their queues must be checked.
    pub(in crate::engine) fn is_due(&self) -> bool {
        self.is_due
    }

    /// What a checkpoint says of the queued URLs.
    pub(in crate::engine) fn mark(&self) -> String {
        if self.is_due { MIXED.to_owned() } else { self.digest.clone() }
    }
}

impl Engine {
    /// What the scope has against a URL that leaves its queue, if anything.
    pub(in crate::engine) fn left_scope(&mut self, id: ServerId, item: &Item) -> Option<Outcome> {
        if item.found_as == SEED {
            return None;
        }
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let why = self.admission.scope.check(url, u32::from(item.depth)).err()?;
        self.counts.out_of_scope(why.name());
        Some(Outcome::Excluded)
    }
}
