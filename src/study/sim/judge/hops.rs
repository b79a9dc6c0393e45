//! How often a redirect may be asked for: once for itself, and as a hop of chains.
//!
//! A hop is not entered as seen, so that each redirect that leads to it has it asked for once more.
//! A chain that was under way when a process ended begins again from its first URL: each redirect
//! that a process had answered is due once more in the next one.

use crate::ground::map::Map;
use crate::study::web::{Kind, Place, Resource, Web};

/// The redirects of hosts that behave.
#[derive(Debug, Default)]
pub(super) struct Hops {
    all: Map<Place, Turning>,
}

#[derive(Debug)]
struct Turning {
    to: Place,
    /// Times that it may be asked for and answered.
    due: u32,
    /// Times that it was answered, and whether in this process.
    answers: u32,
    is_fresh: bool,
}

impl Hops {
    /// Those of a web.
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

    /// Whether a place that was answered may be asked for again.
    pub(super) fn is_due(&self, place: Place) -> bool {
        self.all.get(&place).is_some_and(|turning| turning.answers < turning.due)
    }

    /// Times that a place may be asked for beside its first.
    pub(super) fn more(&self, place: Place) -> u32 {
        self.all.get(&place).map_or(0, |turning| turning.due - 1)
    }

    /// Captures of a place that the archive may hold.
    pub(super) fn captures_max(&self, place: Place) -> u32 {
        self.all.get(&place).map_or(1, |turning| turning.answers.max(1))
    }

    /// A place was answered: if it is a redirect, its chain goes on. `doubtful`: the reply may be
    /// lost to the crawl, so that it may be asked for again.
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

    /// An answer may not have been filed: it was one of a batch that was never compared.
    pub(super) fn doubted(&mut self, place: Place) {
        if let Some(turning) = self.all.get_mut(&place) {
            turning.due += 1;
        }
    }

    /// Another process begins.
    pub(super) fn begins_again(&mut self) {
        for turning in self.all.values_mut() {
            turning.due += u32::from(std::mem::take(&mut turning.is_fresh));
        }
    }
}
