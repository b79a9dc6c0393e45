//! The law `again`: a crawl that comes back requests a page again that it has fetched, when its
//! shortest interval is over; any other page, once.
//!
//! After a crash, the judge can't see which visits the archive kept, so that the first visit of
//! each page may come at any time. So may the next one of a page whose reply came while the disk
//! was full, or while batches of its server are compared: the crawl may have lost the reply, or
//! given that batch up.

use super::Judge;
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::study::web::{Place, Resource};
use std::time::Duration;

/// Times are believed to a second.
const SECOND: Duration = Duration::from_secs(1);

/// The requests for pages, and the pages to which a crawl may come back.
#[derive(Debug, Default)]
pub(super) struct Visits {
    /// How often each page was asked for; if the crawl comes back, since it was answered last.
    pub(super) asked: Map<Place, u32>,
    /// When the last request was sent of each page that was answered; `None` if that was before a
    /// crash.
    last: Map<Place, Option<Instant>>,
    /// When the last request was sent of pages that aren't answered yet.
    sent: Map<Place, Instant>,
}

impl Visits {
    /// Returns whether the crawl may come back to a page.
    pub(super) fn has(&self, place: Place) -> bool {
        self.last.contains_key(&place)
    }

    /// Counts a request for a page. Returns how many there were: of a page to which the crawl comes
    /// back after `least` at the soonest, in its latest visit.
    pub(super) fn ask(&mut self, place: Place, at: Instant, least: Option<Duration>) -> u32 {
        let asked = self.asked.entry(place).or_default();
        let before = self.sent.get(&place).filter(|_| place.resource != Resource::Robots);
        if least.zip(before).is_some_and(|(least, before)| at.since(*before) >= least) {
            *asked = 0;
        }
        *asked += 1;
        *asked
    }

    /// Takes in that a request was sent.
    pub(super) fn sent(&mut self, place: Place, at: Instant) {
        self.sent.insert(place, at);
    }

    /// Takes in that the crawl may have lost the latest visit of a page.
    pub(super) fn forget_time(&mut self, place: Place) {
        if let Some(last) = self.last.get_mut(&place) {
            *last = None;
        }
    }

    /// Takes in a crash: the crawl may have lost the latest visits.
    pub(super) fn forget_times(&mut self) {
        self.last.values_mut().for_each(|last| *last = None);
    }
}

impl Judge {
    /// Takes in a whole reply that is no copy of another.
    pub(super) fn note_visit(&mut self, at: Instant, host: u32, place: Option<Place>, status: u16) {
        if self.laws.again.is_none() {
            return;
        }
        let batches = self.laws.probation * (self.process.number + 1);
        let compared = self.hosts.get(&host).map(|watched| watched.compared);
        let on_probation = compared.is_none_or(|compared| compared.on_probation(batches));
        let may_be_lost = self.is_full || on_probation && self.laws.depth_max > 1;
        let is_found = (200..300).contains(&status);
        match place {
            Some(place) if matches!(place.resource, Resource::Page(_) | Resource::Sitemap) => {
                let sent = self.visits.sent.remove(&place).unwrap_or(at);
                if is_found || self.visits.has(place) {
                    self.visits.last.insert(place, (!may_be_lost).then_some(sent));
                    // The next visit has its own tries.
                    self.visits.asked.remove(&place);
                }
            }
            // The rules of a server are requested again when they have expired.
            Some(place) if place.resource == Resource::Robots => {
                self.visits.asked.remove(&place);
            }
            _ => {}
        }
    }

    /// Checks that a page that was answered may be requested again.
    pub(super) fn judge_again(&mut self, at: Instant, place: Place, named: &str) {
        let least = self.laws.again.map(|least| least.saturating_sub(SECOND));
        let Some((least, last)) = least.zip(self.visits.last.get(&place).copied()) else {
            self.report("once", at, format!("{named} had been answered"));
            return;
        };
        if let Some(gap) = last.map(|last| at.since(last)).filter(|gap| *gap < least) {
            self.report(
                "again",
                at,
                format!("{named} {gap:?} after its last visit, not {least:?}"),
            );
        }
    }
}
