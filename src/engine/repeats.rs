//! Pages that repeat: notes what each page is like, and what is done with the URLs of a pattern
//! whose pages are alike (see [`crate::repeats`]).
//!
//! URLs of a slowed pattern go behind the others of their server, once; those of an ended pattern
//! leave their queues with the outcome `repeats`. What is known of patterns is lost at a restart,
//! which costs some more pages.
//!
//! Cost: of an HTML page, a hash of the beginning of its text, and a pass over it if its words are
//! read.

use super::Engine;
use super::backlog::{Item, Purpose};
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::{Fetch, FinishedFetch};
use crate::frontier::ServerId;
use crate::repeats::{BYTES_MAX, Change, Likeness, Pace};

/// The cost of a byte of text whose words are read, in units of work (see `ledger`).
const TEXT_WEIGHT: usize = 3;
/// The maximum cost of a page, in units of work.
pub(super) const UNITS_MAX: usize = TEXT_WEIGHT * BYTES_MAX;

impl Engine {
    /// Notes what a page is like whose beginning was read, if it is whole HTML.
    pub(super) fn note_likeness(&mut self, id: ServerId, fetched: &mut FinishedFetch<'_>) {
        let is_page =
            fetched.fetch.item.may_become_page() && fetched.outcome == Outcome::Status(200);
        if self.settings.repeats.is_none() || !is_page {
            return;
        }
        let Some(html) = self.wire.opening().html(&fetched.reply) else { return };
        let origin = self.backlog.origin(id).as_str();
        let received_bytes = fetched.reply.payload().len();
        let target = &fetched.fetch.item.target;
        let has_words = self.pages.repeats().wants_words(origin, target, received_bytes);
        let weight = if has_words { TEXT_WEIGHT } else { 1 };
        self.turn.charge(Work::Archived, weight * html.len().min(BYTES_MAX));
        fetched.fetch.shown.likeness = Some(Likeness::of(received_bytes, html, has_words));
    }

    /// Takes in a page that is archived. Slows or ends its pattern if its pages repeat.
    pub(super) fn note_repeat(&mut self, id: ServerId, fetch: &Fetch) {
        let Some(like) = fetch.shown.likeness else { return };
        let origin = self.backlog.origin(id).as_str();
        let change = self.pages.repeats_mut().note(origin, &fetch.item.target, like);
        let Some(Change { pattern, pace, row }) = change else { return };
        let (count, what) = match pace {
            Pace::Ended => (&mut self.counts.repeats.ended, "left out"),
            _ => (&mut self.counts.repeats.slowed, "fetched last"),
        };
        *count += 1;
        log::info!("{origin}{pattern}: {row} pages in a row are alike: its URLs are {what}");
    }

    /// Returns the outcome of the URL at the head of a queue if its pattern was ended; `None` if it
    /// may be requested.
    pub(super) fn repeats(&mut self, id: ServerId) -> Option<Outcome> {
        (self.pace_of_head(id) == Pace::Ended).then_some(Outcome::Repeats)
    }

    /// Puts the URL at the head of a queue behind the others, if its pattern was slowed and it
    /// wasn't put there before. Returns whether it was.
    pub(super) fn put_behind(&mut self, id: ServerId) -> bool {
        if self.pace_of_head(id) != Pace::Slowed {
            return false;
        }
        let is_new = |item: &&Item| !item.is_late && item.tries == 0;
        if self.backlog.peek(id).filter(is_new).is_none() {
            return false;
        }
        let item = self.backlog.take(id).expect("just examined");
        self.turn.charge(Work::Dropped, PUT_UNITS + item.target.len());
        self.backlog.put_off(id, &Item { is_late: true, ..item });
        true
    }

    fn pace_of_head(&mut self, id: ServerId) -> Pace {
        if self.pages.repeats().is_quiet() {
            return Pace::Free;
        }
        let is_page = |item: &&Item| item.purpose == Purpose::Page;
        let Some(item) = self.backlog.peek(id).filter(is_page) else { return Pace::Free };
        let target = item.target.clone();
        self.pages.repeats().pace(self.backlog.origin(id).as_str(), &target)
    }
}

/// The fixed cost of putting a URL behind the others, in units of work.
const PUT_UNITS: usize = 500;
