//! The law `complete`: a finished crawl has every page that can be reached.
//!
//! If pages were refused by a limit, the pages that only they link to are missing as well. The
//! judge then follows the links of the pages that were answered: what these lead to must be
//! answered, too, unless a limit on its pages may have been reached ([`Complete::WithinLimits`]).

use super::{Complete, Instant, Judge, Laws};
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::ground::map::{Map, Set};
use crate::study::web::{Entry, Kind, Manifest, Outcome, Place, Resource, Web};

/// The pages that a finished crawl must have, and how they are reached.
#[derive(Debug)]
pub(super) struct Reach {
    /// Pages of well-behaved hosts for which a finished crawl must have an answer.
    wanted: Vec<Place>,
    seeds: Vec<Place>,
    /// The pages that a page links or redirects to.
    links: Map<Place, Vec<Place>>,
}

/// Returns the pages of well-behaved hosts for which a finished crawl must have an answer.
pub(in crate::study::sim) fn wanted(manifest: &Manifest) -> Vec<Place> {
    let answers = [Outcome::Ok, Outcome::Redirect, Outcome::HttpError];
    let is_wanted = |entry: &&Entry| {
        let answered = entry.outcomes.iter().all(|outcome| answers.contains(outcome));
        let behaves = matches!(entry.place.resource, Resource::Page(_));
        answered && behaves && entry.requests.min > 0
    };
    manifest.entries.iter().filter(is_wanted).map(|entry| entry.place).collect()
}

impl Reach {
    /// Reads the links of a web if the laws need them; else there are none.
    pub(super) fn of(web: &Web, wanted: Vec<Place>, laws: &Laws) -> Self {
        if laws.complete != Complete::WithinLimits {
            return Self { wanted, seeds: Vec::new(), links: Map::default() };
        }
        // Of odd links, some are in a form that a crawler need not follow.
        let is_plain = web.settings().odd_links == 0.0;
        let pages =
            (0..web.hosts()).flat_map(|host| (0..web.pages_of(host)).map(move |page| (host, page)));
        let links = pages.map(|(host, page)| {
            let place = Place { host, resource: Resource::Page(page) };
            let links = web.links(place).into_iter().filter(|link| is_plain || link.sure);
            let mut links: Vec<Place> = links.map(|link| link.to).collect();
            if web.kind(host, page) == Kind::Redirect {
                links.push(web.redirect_of(host, page));
            }
            (place, links)
        });
        Self { wanted, seeds: web.seed_places().collect(), links: links.collect() }
    }

    /// Returns the pages that a crawl knows which has read the pages in `answered`.
    fn known(&self, answered: &Set<Place>) -> Set<Place> {
        let mut known: Set<Place> = self.seeds.iter().copied().collect();
        let mut unread = self.seeds.clone();
        while let Some(place) = unread.pop() {
            if answered.contains(&place) {
                let links = self.links.get(&place).map_or(&[][..], |links| links);
                unread.extend(links.iter().copied().filter(|to| known.insert(*to)));
            }
        }
        known
    }
}

impl Judge {
    /// Checks that a finished crawl has every page that it must have.
    pub(super) fn judge_complete(&mut self, engine: &Engine, at: Instant) {
        let is_finished = engine.stop_reason() == Some(StopReason::Finished);
        let is_within = self.laws.complete == Complete::WithinLimits;
        let must_have_all = match self.laws.complete {
            Complete::Always | Complete::WithinLimits => true,
            Complete::Unless => leaves_nothing(engine),
            Complete::Never => false,
        };
        if !is_finished || !must_have_all || self.orders.has_blocked {
            return;
        }
        let known = if is_within { self.reach.known(&self.answered) } else { Set::default() };
        let may_miss =
            |place: &Place| is_within && (!known.contains(place) || self.is_limited(place.host));
        let was =
            |place: &Place| self.doubtful.contains(place) || self.pages.reserved.may_have(*place);
        let has = |place: &Place| self.answered.contains(place) || was(place);
        let missing = self.reach.wanted.iter().filter(|place| !has(place) && !may_miss(place));
        let missing: Vec<Place> = missing.copied().collect();
        if let Some(first) = missing.first() {
            let (count, of) = (missing.len(), self.reach.wanted.len());
            let how = format!("{count} of {of} pages were never answered, {first:?} first");
            self.report("complete", at, how);
        }
    }
}

/// Whether the crawl reports an answer for every URL it found.
fn leaves_nothing(engine: &Engine) -> bool {
    let counts = engine.counts();
    let answers = [
        "ok",
        "redirect",
        "redirect-to-known",
        "http-error",
        "reserved",
        "robots-denied",
        "signature-asked",
    ];
    counts.outcomes.keys().all(|outcome| answers.contains(&&**outcome))
        && counts.links_out_of_scope.is_empty()
        && !["servers-max", "disconnectTrunc", "timeTrunc", "trunc"]
            .iter()
            .any(|cause| counts.cut.contains_key(*cause))
}
