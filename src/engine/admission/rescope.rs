//! Checks URLs against the scope again when they leave their queues, if the scope has changed.
//!
//! URLs are checked when they are discovered. If a crawl is resumed with another scope, URLs in its
//! queues may be out of it; their outcome is `excluded`. Seeds are not checked, since the operator
//! chose them.
//!
//! Cost: nothing as long as the scope is the same, else one check for each URL.

use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::outcome::Outcome;
use crate::engine::seeds::SEED;
use crate::frontier::ServerId;
use crate::url::UrlRef;
use crate::url::scope::Scope;

/// The record of which scope the queued URLs were checked against.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Rescope {
    /// The digest of the scope of this run.
    digest: String,
    /// Whether some queued URLs were checked against another scope than that of this run.
    is_due: bool,
}

/// The mark that a checkpoint saves, instead of a digest, if its URLs were checked against several
/// scopes.
const MIXED: &str = "mixed";

impl Rescope {
    pub(in crate::engine) fn new(scope: &Scope) -> Self {
        Self { digest: format!("{:016x}", scope.digest()), is_due: false }
    }

    /// Restores what a checkpoint saved: the digest of the scope that its URLs were checked
    /// against, or `MIXED`.
    pub(in crate::engine) fn restore(&mut self, digest: &str) {
        self.is_due = digest != self.digest;
    }

    /// Notes that the scope changes while the crawl runs.
    pub(in crate::engine) fn begin(&mut self) {
        self.is_due = true;
    }

    /// Returns whether URLs that leave their queues must be checked against the scope.
    pub(in crate::engine) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns what a checkpoint saves: the digest of the scope that queued URLs were checked
    /// against, or `MIXED`.
    pub(in crate::engine) fn mark(&self) -> String {
        if self.is_due { MIXED.to_owned() } else { self.digest.clone() }
    }
}

impl Engine {
    /// Checks a URL that leaves its queue against the scope. Returns its outcome if it is out of
    /// scope, else `None`.
    pub(in crate::engine) fn left_scope(&mut self, id: ServerId, item: &Item) -> Option<Outcome> {
        if item.found_as == SEED {
            return None;
        }
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let why = self.admission.scope.check_distance(url, item.distance(), &mut "").err()?;
        self.counts.out_of_scope(why.name());
        Some(Outcome::Excluded)
    }
}
