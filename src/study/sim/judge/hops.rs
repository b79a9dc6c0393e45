//! How often a redirect may be requested: once for its own URL, and once per chain it is a hop of.
//!
//! A hop of a chain is not entered as seen, so each redirect that leads to it may request it once
//! more. A chain interrupted by the end of a process begins again from its first URL: each redirect
//! that a process had answered may be requested once more in the next process.

use crate::ground::map::Map;
use crate::study::web::{Kind, Place, Resource, Web};

/// The redirects of well-behaved hosts, by their pages.
#[derive(Debug, Default)]
pub(super) struct Hops {
    all: Map<Place, Turning>,
}

#[derive(Debug)]
/// The state of one redirect: `to` is the page that it leads to.
struct Turning {
    to: Place,
    /// How many answers the crawl may get from the redirect in all: a repeated request is allowed
    /// while there were fewer.
    due: u32,
    /// How many times the redirect was answered.
    answers: u32,
    /// Whether the redirect was answered in the current process.
    is_fresh: bool,
}

impl Hops {
    /// Collects the redirects of a web.
    pub(super) fn of(web: &Web) -> Self {
        let is_plain = |host: &u32| web.hostile_of(*host).is_none();
        let pages = |host| (0..web.pages_of(host)).map(move |page| (host, page));
        let all = (0..web.hosts()).filter(is_plain).flat_map(pages);
        let turns = all.filter(|&(host, page)| web.kind(host, page) == Kind::Redirect);
        let turning = |(host, page)| {
            let to = web.redirect_of(host, page);
            let turning = Turning { to, due: 1, answers: 0, is_fresh: false };
            (Place { host, resource: Resource::Page(page) }, turning)
        };
        Self { all: turns.map(turning).collect() }
    }

    /// Whether a page that was answered may be requested again.
    pub(super) fn is_due(&self, place: Place) -> bool {
        self.all.get(&place).is_some_and(|turning| turning.answers < turning.due)
    }

    /// Returns how many times a page may be requested in addition to the first time.
    pub(super) fn more(&self, place: Place) -> u32 {
        self.all.get(&place).map_or(0, |turning| turning.due - 1)
    }

    /// Returns the most captures of a page that the archive may hold.
    pub(super) fn captures_max(&self, place: Place) -> u32 {
        self.all.get(&place).map_or(1, |turning| turning.answers.max(1))
    }

    /// Records that a page was answered; if it redirects, its target may be requested once more.
    /// `doubtful`: the crawler may have lost the reply, so that it may request the page again.
    pub(super) fn answered(&mut self, place: Place, doubtful: bool) {
        let Some(turning) = self.all.get_mut(&place) else { return };
        turning.answers += 1;
        turning.due += u32::from(doubtful);
        turning.is_fresh = true;
        let to = turning.to;
        if let Some(next) = self.all.get_mut(&to) {
            next.due += 1;
        }
    }

    /// Allows a redirect to be requested once more: its answer may not have been archived, because
    /// its batch of pipelined requests was never compared.
    pub(super) fn doubted(&mut self, place: Place) {
        if let Some(turning) = self.all.get_mut(&place) {
            turning.due += 1;
        }
    }

    /// Begins another process: each redirect that the previous process had answered may be
    /// requested once more.
    pub(super) fn restart(&mut self) {
        for turning in self.all.values_mut() {
            turning.due += u32::from(std::mem::take(&mut turning.is_fresh));
        }
    }
}
