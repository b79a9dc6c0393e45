//! Pipelined batches as the judge sees them: which replies a crawl may ask for again, and why.
//!
//! Replies to requests that were under way together prove nothing until one of them has been asked
//! for again alone. So three kinds of repeats are allowed, by the judge's own count: that
//! comparison, so many times a server; what was answered in a batch whose connection ended before
//! it (a server that has reached its limit reads nothing more, so that its last request may have
//! been one of several); and whatever a server that mixes replies up answered in a batch.
//!
//! Cost: the places of one batch a connection.

use crate::web::Place;

/// Requests of a connection since it had nothing to answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    requests: u32,
    /// Those that were answered.
    answered: Vec<Place>,
    is_comparing: bool,
}

impl Batch {
    /// Whether a request repeats one of the batch, if there may be a comparison.
    pub(super) fn asks(&self, place: Option<Place>, may_compare: bool) -> bool {
        may_compare && self.is_deep() && place.is_some_and(|place| self.answered.contains(&place))
    }

    /// It is a request of the batch, or that comparison.
    pub(super) fn is_asked(&mut self, compares: bool) {
        self.is_comparing |= compares;
        self.requests += u32::from(!compares);
    }

    /// A whole reply has come. Whether it answers a comparison, which is filed nowhere.
    pub(super) fn is_answered(&mut self, place: Option<Place>) -> bool {
        if self.is_comparing {
            *self = Self::default();
            return true;
        }
        self.answered.extend(place);
        false
    }

    /// Whether requests were under way together.
    pub(super) fn is_deep(&self) -> bool {
        self.requests > 1
    }

    pub(super) fn is_comparing(&self) -> bool {
        self.is_comparing
    }

    /// It has ended: what was answered together with others and never compared. `hides_more`:
    /// there may have been requests that nobody saw.
    pub(super) fn ends(&mut self, hides_more: bool) -> Vec<Place> {
        let batch = std::mem::take(self);
        if batch.is_deep() || hides_more { batch.answered } else { Vec::new() }
    }
}
