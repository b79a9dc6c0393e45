//! The judge's view of pipelined batches: which replies a crawl may request again, and why.
//!
//! Replies to requests that were pipelined together are not trusted on a server on probation (one
//! of which few batches have been compared so far) until one of them has been requested again
//! alone; if neighbours in the batch have equal replies, two must be. The judge counts by itself
//! and allows three kinds of repeated requests:
//! - these comparisons, for a limited number of batches per server;
//! - what was answered in a batch whose connection ended before the comparison (a server that has
//!   reached its limit reads nothing more, so its last request may have been one of several);
//! - what a server that mixes replies up has answered in a batch.
//!
//! In five cases the whole batch may be requested again, because the judge can't distinguish
//! another try from the comparison:
//! - one of the replies asks the crawler to wait, which ends the visit, so the batch is never
//!   compared;
//! - the crawler's disk is full, so it gives its batches up;
//! - the first comparison of a batch with equal neighbours has been answered: what follows is the
//!   second comparison, or another try;
//! - one of the replies is 304, which is too little to be compared;
//! - the compared page has changed meanwhile. The last two are those of crawls that come back.
//!
//! Memory: the pages of one batch per connection.

use super::Judge;
use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::Place;

/// The numbers of a server's batches that were compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compared {
    /// The number of batches that needed one comparison.
    surely: u32,
    /// The number of batches that may have been given up: those with equal neighbours after one of
    /// two comparisons, those of a full disk before the first, those with a reply 304.
    perhaps: u32,
}

/// The number of batches given up in a row after which a crawler stops pipelining to a server.
const GIVEN_UP_MAX: u32 = 3;

impl Compared {
    /// Whether the server may still be on probation, if probation takes `batches` compared batches.
    pub(super) fn on_probation(self, batches: u32) -> bool {
        self.surely < batches && self.perhaps < GIVEN_UP_MAX * batches
    }

    fn add(&mut self, batch: &Batch) {
        let is_given_up =
            batch.has_equal || batch.was_full || batch.has_unmodified || batch.has_changed;
        *if is_given_up { &mut self.perhaps } else { &mut self.surely } += 1;
    }
}

/// The requests of a connection since it last had no unanswered request.
#[derive(Debug, Default)]
pub(super) struct Batch {
    requests: u32,
    /// The pages requested. The reply to one may have been sent in answer to another: see `asking`.
    asked: Vec<Place>,
    /// The pages whose replies came.
    answered: Vec<Place>,
    is_comparing: bool,
    /// Pages that were, or are being, requested again for comparison.
    compared: Vec<Place>,
    /// The digests of their replies.
    contents: Vec<u64>,
    /// Whether a comparison had another reply: the page has changed meanwhile.
    has_changed: bool,
    /// The digest of the last reply; `None` before the first.
    last: Option<u64>,
    /// Whether two neighbours have the same reply.
    has_equal: bool,
    /// Whether one of the replies asked the crawler to wait.
    is_refused: bool,
    /// Whether one of the replies is 304, which a crawl that comes back may find too little.
    has_unmodified: bool,
    /// Whether the crawler's disk was full at some time during the batch.
    was_full: bool,
}

impl Batch {
    /// Whether a request for `place` is a comparison, which repeats a request of the batch.
    /// `may_compare`: whether the server's state allows one now.
    fn asks(&self, place: Option<Place>, may_compare: bool) -> bool {
        let most = 1 + usize::from(self.has_equal);
        let is_compared =
            may_compare && self.is_deep() && !self.is_refused && self.compared.len() < most;
        let repeats = |place| self.asked.contains(place) && !self.compared.contains(place);
        is_compared && place.as_ref().is_some_and(repeats)
    }

    /// Adds a request: a comparison if `compares`, else a request of the batch.
    fn is_asked(&mut self, place: Option<Place>, compares: bool) {
        self.is_comparing |= compares;
        if compares {
            self.compared.extend(place);
        } else {
            self.requests += 1;
            self.asked.extend(place);
        }
    }

    /// Takes in a whole reply with the digest `content`. If it answers the last comparison, the
    /// batch is over and is returned.
    fn is_answered(&mut self, place: Option<Place>, status: u16, content: u64) -> Option<Self> {
        if self.is_comparing {
            self.is_comparing = false;
            let before = self.answered.iter().zip(&self.contents);
            let mut own = before.filter(|(answered, _)| Some(**answered) == place);
            self.has_changed |= own.any(|(_, before)| *before != content);
            let is_half = self.has_equal && self.compared.len() == 1;
            return (!is_half).then(|| std::mem::take(self));
        }
        self.is_refused |= matches!(status, 429 | 503);
        self.has_unmodified |= status == 304;
        self.has_equal |= self.last.replace(content) == Some(content);
        self.contents.extend(place.map(|_| content));
        self.answered.extend(place);
        None
    }

    /// Records that the crawler's disk is full; this matters only if the batch has requests.
    pub(super) fn note_full(&mut self) {
        self.was_full = self.requests > 0;
    }

    /// Whether the batch has several requests, which were unanswered at the same time.
    fn is_deep(&self) -> bool {
        self.requests > 1
    }

    /// Ends the batch; returns what was answered together with others and never compared.
    /// `hides_more`: there may have been requests that the server did not read.
    pub(super) fn ends(&mut self, hides_more: bool) -> Vec<Place> {
        let batch = std::mem::take(self);
        if batch.is_deep() || hides_more { batch.answered } else { Vec::new() }
    }
}

impl Judge {
    /// Whether a request repeats another one to compare the replies of its batch.
    pub(super) fn compares(&mut self, conn: ConnId, host: u32, place: Option<Place>) -> bool {
        let watched = self.hosts.entry(host).or_default();
        let most = self.laws.probation * (self.process.number + 1);
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

    /// Takes in a reply. Returns whether the reply answers a comparison, and whether it is one of
    /// several of its batch. A batch's replies are lost to the crawler if its disk is full when
    /// they are archived.
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
        if let Some(mut over) = over {
            over.has_changed &= self.laws.again.is_some();
            self.hosts.entry(line.host).or_default().compared.add(&over);
            let is_doubtful =
                self.is_full || over.was_full || over.has_equal || over.has_unmodified;
            let is_doubtful = is_doubtful || over.has_changed;
            self.may_repeat(over.answered, is_doubtful);
        }
        (compares && !is_first, is_deep)
    }

    /// If `so`, allows the pages `answered` to be requested again, because their replies may not
    /// have been kept: above all, their batch ended without a comparison while the server was on
    /// probation.
    pub(super) fn may_repeat(&mut self, answered: Vec<Place>, so: bool) {
        for place in answered.into_iter().filter(|_| so) {
            self.is_no_try(place);
            self.visits.forget_time(place);
            if !self.orders.retry_lost(place) && self.answered.remove(&place) {
                self.doubtful.insert(place);
                self.hops.doubted(place);
                self.doubt_page(place);
            }
        }
    }

    /// Checks the capture under the URL of `place`; `is_own` says whether its body is that page's.
    pub fn check_capture(&mut self, at: Instant, place: Place, is_own: bool) {
        self.confirm_page(at, place);
        if !is_own {
            self.report("filed", at, format!("{place:?} has another page's body"));
        }
    }
}
