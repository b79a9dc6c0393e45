//! The law `reserved`: nothing is archived of a page whose use its host reserves for the purpose of
//! the crawl, and each reply of such a page counts as reserved.
//!
//! A host that speaks in its robots.txt or in a field speaks of all its replies, one that speaks in
//! `meta` elements of those of its HTML pages that arrive whole. Other replies may be archived.

use super::{Captures, Judge};
use crate::engine::Engine;
use crate::ground::map::Set;
use crate::ground::time::Instant;
use crate::study::web::{Kind, Place, Resource, Voice, Web};

/// The pages that are reserved, and those that were answered.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// Those of hosts that speak of all replies.
    always: Set<Place>,
    /// The HTML pages of hosts that speak in elements.
    elements: Set<Place>,
    /// Those that were answered, and are reserved.
    answered: Set<Place>,
    /// Those that were answered when the crawl may have lost the reply: it needs no room in the
    /// archive, so a crawl whose disk is full may have kept what it says.
    doubtful: Set<Place>,
    /// The HTML pages of which a part was sent, which may have no element.
    parts: Set<Place>,
}

impl Reserved {
    /// Reads which pages of a web are reserved for a purpose. `robots` says whether the crawl reads
    /// robots.txt.
    pub(super) fn of(web: &Web, purpose: Option<&str>, robots: bool) -> Self {
        let mut all = Self::default();
        let Some(purpose) = purpose else { return all };
        for host in 0..web.hosts() {
            let voice = web.voice(host).filter(|voice| voice.reserves_for(purpose));
            let is_element = match voice {
                None => continue,
                Some(Voice::Signal | Voice::UsageLine) if !robots => continue,
                Some(voice) => matches!(voice, Voice::Meta | Voice::MetaReservation),
            };
            for page in 0..web.pages_of(host) {
                let place = Place { host, resource: Resource::Page(page) };
                let kind = web.kind(host, page);
                let is_html = matches!(kind, Kind::Html | Kind::Duplicate | Kind::Closed);
                if !is_element {
                    all.always.insert(place);
                } else if is_html {
                    all.elements.insert(place);
                }
            }
        }
        all
    }

    /// Takes in a whole reply. `is_kept` says whether the crawl has surely not lost it.
    pub(super) fn replied(&mut self, place: Place, status: u16, is_kept: bool) {
        let is_element = self.elements.contains(&place) && status == 200;
        if is_element || self.always.contains(&place) {
            let known = if is_kept { &mut self.answered } else { &mut self.doubtful };
            known.insert(place);
        }
        if !is_kept {
            self.replied_in_part(place);
        }
    }

    /// Takes in a part of a reply.
    pub(super) fn replied_in_part(&mut self, place: Place) {
        if self.elements.contains(&place) {
            self.parts.insert(place);
        }
    }

    /// Returns whether a page was answered and is reserved, so that it has no capture.
    pub(super) fn has(&self, place: Place) -> bool {
        self.answered.contains(&place)
    }

    /// Returns whether a page may have been answered as one that is reserved, so that it need not
    /// be requested any more.
    pub(super) fn may_have(&self, place: Place) -> bool {
        self.has(place) || self.doubtful.contains(&place)
    }
}

impl Judge {
    /// Checks that nothing reserved is archived.
    pub(super) fn judge_reserved(&mut self, at: Instant, captures: &Captures) {
        let all = &self.pages.reserved;
        // What changes may be captured while it is no HTML page.
        let may_be_none = |place: &Place| all.parts.contains(place) || self.laws.again.is_some();
        let elements = captures.keys().filter(|place| all.elements.contains(*place));
        let wrong = elements.filter(|place| all.has(**place) && !may_be_none(place));
        let wrong = wrong.chain(captures.keys().filter(|place| all.always.contains(*place)));
        if let Some(first) = wrong.min() {
            self.report("reserved", at, format!("{first:?} has a capture"));
        }
    }

    /// Checks that each reserved page that was answered counts as such.
    pub(super) fn judge_reserved_count(&mut self, engine: &Engine, at: Instant) {
        let counted = engine.counts().outcomes.get("reserved").copied().unwrap_or(0);
        let answered =
            self.answered.iter().filter(|place| self.pages.reserved.has(**place)).count();
        if counted < answered as u64 {
            let how = format!("{answered} reserved pages were answered, {counted} count as such");
            self.report("reserved", at, how);
        }
    }
}
