//! Pages that prefer another URL of their server (`rel=canonical`, RFC 6596). If the operator wants
//! it, they count as the pages of both: the preferred URL isn't requested any more, unless it was
//! found before.
//!
//! Only whole pages that are kept are believed, and only of their own server: no site says which
//! pages of another one are left out. What was joined since the last checkpoint is forgotten in a
//! crash; such a URL is fetched if it is found again.
//!
//! Cost: that of a link.

use super::{DONE, Discovery};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::engine::outcome::Outcome;
use crate::engine::wire::Fetch;
use crate::url::UrlRef;

/// The fixed cost of offering the preferred URL, or of logging it, in units of work (see `ledger`).
const JOIN_UNITS: usize = 500;

impl Engine {
    /// Makes the URL that a page prefers known, if pages are joined with such URLs.
    pub(in crate::engine) fn join_canonical(&mut self, fetch: &Fetch, outcome: Outcome) {
        if !self.settings.joins_canonical || outcome != Outcome::Status(200) {
            return;
        }
        let Some(canonical) = fetch.shown.canonical.as_deref() else { return };
        let view = |text| UrlRef::from_canonical(text).expect("it was joined, or fetched");
        let (own, canonical) = (view(fetch.url.as_bytes()), view(canonical.as_bytes()));
        let at = fetch.item.distance();
        if own.origin() != canonical.origin()
            || self.admission.scope().check_distance(canonical, at, &mut "").is_err()
        {
            return;
        }
        let mut scratch = Vec::new();
        let key = self.admission.key_of(canonical, &mut scratch);
        // What a redirect leads to is being requested, and has an outcome of its own.
        if key == self.admission.key_of(own, &mut scratch) || self.chains.requests(key) {
            return;
        }
        let mut entry = Vec::new();
        let found = Discovery { letter: DONE, ..Discovery::SEED };
        found.encode(canonical.as_str(), own.as_str(), &mut entry);
        self.turn.charge(Work::Joined, JOIN_UNITS + entry.len());
        self.admission.seen_mut().offer(key, &entry);
    }

    /// Gives a preferred URL that wasn't known its outcome. `via` is the page that prefers it.
    pub(super) fn joined_canonical(&mut self, url: UrlRef<'_>, via: &str) {
        self.turn.charge(Work::Admitted, JOIN_UNITS + url.as_str().len());
        self.counts.outcome(Outcome::CanonicalKnown);
        self.note_settled(url.as_str());
        self.log_unasked(url, Some(via), (b'L', 0), None, Outcome::CanonicalKnown);
    }
}
