//! Pipelined batches as the judge sees them: which replies a crawl may ask for again, and why.
//!
//! Replies to requests that were under way together prove nothing until one of them has been asked
//! for again alone, and equal neighbours among them until two have. So three kinds of repeats are
//! allowed, by the judge's own count: these comparisons, for so many batches a server; what was
//! answered in a batch whose connection ended before them (a server that has reached its limit
//! reads nothing more, so that its last request may have been one of several); and whatever a
//! server that mixes replies up answered in a batch. A reply
//! that asks for rest ends the visit, so its batch is never compared: what is asked for again then
//! is another try, and all of the batch may be asked for again. A crawler without room for what
//! comes gives its batches up, too: whether a request after that is another try or the comparison
//! can't be seen, so all of the batch may be asked for again either way. So it is with what comes
//! after the first comparison of a batch with equal neighbours: the second, or another try.
//!
//! Cost: the places of one batch a connection.

use super::Judge;
use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::Place;

/// Batches of a server that were compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compared {
    /// Those with one comparison.
    surely: u32,
    /// Those with equal neighbours: each was compared twice, or given up after one comparison.
    perhaps: u32,
}

/// A crawler that gives so many batches up in a row bars pipelining.
const GIVEN_UP_MAX: u32 = 3;

impl Compared {
    /// Whether the server may be on probation still, where that takes so many batches.
    pub(super) fn on_probation(self, batches: u32) -> bool {
        self.surely < batches && self.perhaps < GIVEN_UP_MAX * batches
    }

    fn add(&mut self, batch: &Batch) {
        *if batch.has_equal { &mut self.perhaps } else { &mut self.surely } += 1;
    }
}

/// Requests of a connection since it had nothing to answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    requests: u32,
    /// What they ask for. A reply may have come that answers another of them: see `asking`.
    asked: Vec<Place>,
    /// Whose replies came.
    answered: Vec<Place>,
    is_comparing: bool,
    /// What was compared, or is.
    compared: Vec<Place>,
    /// The digest of the last reply.
    last: Option<u64>,
    /// Two neighbours have the same reply.
    has_equal: bool,
    /// One of the replies asked for rest.
    is_refused: bool,
    /// The crawler had no room meanwhile.
    met_full: bool,
}

impl Batch {
    /// Whether a request repeats one of the batch, if there may be a comparison.
    fn asks(&self, place: Option<Place>, may_compare: bool) -> bool {
        let most = 1 + usize::from(self.has_equal);
        let is_compared =
            may_compare && self.is_deep() && !self.is_refused && self.compared.len() < most;
        let repeats = |place| self.asked.contains(place) && !self.compared.contains(place);
        is_compared && place.as_ref().is_some_and(repeats)
    }

    /// It is a request of the batch, or a comparison.
    fn is_asked(&mut self, place: Option<Place>, compares: bool) {
        self.is_comparing |= compares;
        if compares {
            self.compared.extend(place);
        } else {
            self.requests += 1;
            self.asked.extend(place);
        }
    }

    /// A whole reply has come with this digest. If it answers the last comparison, the batch is
    /// over: what it was.
    fn is_answered(&mut self, place: Option<Place>, status: u16, content: u64) -> Option<Self> {
        if self.is_comparing {
            self.is_comparing = false;
            let is_half = self.has_equal && self.compared.len() == 1;
            return (!is_half).then(|| std::mem::take(self));
        }
        self.is_refused |= matches!(status, 429 | 503);
        self.has_equal |= self.last.replace(content) == Some(content);
        self.answered.extend(place);
        None
    }

    /// The crawler has no room.
    pub(super) fn meets_full(&mut self) {
        self.met_full = self.requests > 0;
    }

    /// Whether requests were under way together.
    fn is_deep(&self) -> bool {
        self.requests > 1
    }

    /// It has ended: what was answered together with others and never compared. `hides_more`:
    /// there may have been requests that nobody saw.
    pub(super) fn ends(&mut self, hides_more: bool) -> Vec<Place> {
        let batch = std::mem::take(self);
        if batch.is_deep() || hides_more { batch.answered } else { Vec::new() }
    }
}

impl Judge {
    /// Whether a request repeats another, to compare the replies of its batch.
    pub(super) fn compares(&mut self, conn: ConnId, host: u32, place: Option<Place>) -> bool {
        let watched = self.hosts.entry(host).or_default();
        let most = self.laws.probation * (self.process + 1);
        let line = self.conns.entry(conn).or_default();
        let is_idle = line.open.is_empty();
        let on_probation = watched.compared.on_probation(most);
        let compares = line.batch.asks(place, is_idle && on_probation);
        if is_idle && !compares {
            let unproven = line.batch.ends(false);
            self.may_repeat(unproven, on_probation);
        }
        let line = self.conns.entry(conn).or_default();
        line.batch.is_asked(place, compares);
        line.requests += 1;
        compares
    }

    /// A reply has come. Whether it answers a comparison, and whether it is one of several of its
    /// batch. What a batch is filed with is lost if there is no room for it.
    pub(super) fn answers(
        &mut self,
        conn: ConnId,
        place: Option<Place>,
        (status, content): (u16, u64),
        whole: bool,
    ) -> (bool, bool) {
        let Some(line) = self.conns.get_mut(&conn).filter(|_| whole) else {
            return (false, false);
        };
        let compares = line.batch.is_comparing;
        // What had no reply of its own in the batch, or another one's, may be tried again so.
        let is_first = compares && place.is_some_and(|place| !line.batch.answered.contains(&place));
        let over = line.batch.is_answered(place, status, content);
        let is_deep = is_first || line.batch.is_deep();
        if let Some(over) = over {
            self.hosts.entry(line.host).or_default().compared.add(&over);
            let is_doubtful = self.is_full || over.met_full || over.has_equal;
            self.may_repeat(over.answered, is_doubtful);
        }
        (compares && !is_first, is_deep)
    }

    /// What was answered in a batch may be asked for again, if `so`: it ended without a comparison
    /// while its server was on probation.
    pub(super) fn may_repeat(&mut self, answered: Vec<Place>, so: bool) {
        for place in answered.into_iter().filter(|_| so) {
            self.is_no_try(place);
            if self.answered.remove(&place) {
                self.doubtful.insert(place);
                self.hops.doubted(place);
            }
        }
    }

    /// Looks at a capture: `is_own` says whether it holds the body of the page of its URL.
    pub fn sees_filed(&mut self, at: Instant, place: Place, is_own: bool) {
        if !is_own {
            self.breaks("filed", at, format!("{place:?} has another page's body"));
        }
    }
}
