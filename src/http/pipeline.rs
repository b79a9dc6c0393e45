//! Pipelining on one connection: how many requests may be sent, and which to repeat if it ends.
//!
//! This module counts requests; it handles no bytes. [`Learnt`] belongs to the server and outlives
//! a connection; it is small enough to keep for every server. [`Pipeline`] belongs to the
//! connection. The engine sends at most [`Pipeline::room`] requests, reports [`Pipeline::sent`] and
//! [`Pipeline::replied`], and at the end [`Pipeline::closed`] returns what to do with the requests
//! that were not answered.
//!
//! A server earns pipelining step by step. The rules:
//! 1. The first request is sent alone. More than one is in flight only after an HTTP/1.1 reply of
//!    known length that keeps the connection open.
//! 2. Depth starts at two. It grows by one after as many replies as it is deep, and halves on a
//!    failure. It never exceeds the number of requests that the server still accepts on this
//!    connection, nor the number of replies of the usual size that may be buffered.
//! 3. After an unannounced close, complete replies count, all other requests go back to the front
//!    of the queue, and the next connection starts with one request alone, so that a request that
//!    breaks connections is identified. The fault counts against a request if it was the first
//!    outstanding one of its connection, or its reply had begun. After the second fault in a row it
//!    is to be dropped.
//! 4. An announced close shows how many requests the server accepts; the requests after it go back
//!    without a penalty. `Keep-Alive: max` announces the same number in advance. A connection that
//!    outlives the allowance doubles it.
//! 5. A reply out of order disables pipelining permanently ([`suspicious`], [`Pipeline::swapped`]),
//!    and so does an unreadable one that follows another reply of its batch: all replies that are
//!    not yet filed are discarded and requested again. Persistent connections stay allowed, except
//!    for a server that sends bytes after a reply ([`Pipeline::left_bytes`]): it gets one request a
//!    connection.
//! 6. A reply that times out while other requests wait for theirs, or after another reply of its
//!    batch, disables pipelining too: a server that lost count looks like a slow one.
//! 7. A batch is sent in one write and consists of GETs only, so every request is safe to repeat.
//! 8. If a server is busy until further requests can reach it, they are held until half of the
//!    depth is free and then sent together ([`Pipeline::is_ahead`]): one write and one packet for
//!    several requests.
//! 9. The first batches of a server are on probation: their replies are held until the connection
//!    is idle with nothing outstanding, its *proven point*, and the reply to one of them has been
//!    compared with the reply to the same request sent alone (module [`proof`], with its law and
//!    its limit).
//!
//! Laws: each request sent is either answered or handed back, exactly once. `in_flight` never
//! exceeds `depth_max`, and is at most one until rule 1 is met. Limit: if a server swaps replies
//! after probation and shows no sign of it (rules 5 and 6), the replies are stored under each
//! other's URLs.
//! Cost: a few integers; every call takes constant time.
//! Source: RFC 9112 sections 9.3 to 9.6.

pub mod proof;
mod swap;
#[cfg(test)]
mod tests;

pub use proof::Filing;
pub use swap::{Signs, Swap, suspicious};

use proof::{Batch, Trust};
use std::time::Duration;

/// The settings of pipelining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True to pipeline, false to send one request at a time. Connections are persistent either
    /// way.
    pub enabled: bool,
    /// The maximum number of requests in flight on one connection.
    pub depth_max: u8,
    /// The number of requests that a new server is assumed to accept on one connection.
    pub requests_new: u32,
    /// The maximum payload that may be buffered on one connection, in bytes: depth times the usual
    /// reply.
    pub ahead_bytes_max: u32,
    /// The number of pipelined connections that broke, or batches that could not be compared, in a
    /// row after which pipelining is disabled for a server.
    pub breaks_max: u8,
    /// The number of connections in a row that the request at their head may break before it is
    /// dropped.
    pub head_faults_max: u8,
    /// The number of batches that are held and compared before replies of a server are filed on
    /// arrival.
    pub probation: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            depth_max: 8,
            requests_new: 50,
            ahead_bytes_max: 1 << 20,
            breaks_max: 3,
            head_faults_max: 2,
            probation: 3,
        }
    }
}

/// The depth when pipelining begins.
const DEPTH_START: u8 = 2;
/// The number of replies to requests sent one at a time after which a depth that fell to one is
/// raised to two again.
const RECOVERY: u8 = 8;

/// What was learnt about a server on all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// The number of requests that the server accepts on one connection; 0 until that is known.
    allowance: u32,
    /// The number of replies after which the server last closed a connection without notice; 0 if
    /// `allowance` has another source.
    hint: u32,
    /// The length of the payload of a reply, in bytes. It is a moving average: 7 parts old, 1 part
    /// new.
    reply_bytes: u32,
    /// The maximum number of requests in flight on one connection; 0 until pipelining is earned.
    depth: u8,
    /// The number of replies since the depth last changed.
    streak: u8,
    /// The number, in a row, of pipelined connections and of batches on probation that failed.
    breaks: u8,
    /// The number, in a row, of connections that were broken by the request at their head (the
    /// oldest unanswered one).
    head_faults: u8,
    /// True if the server uses HTTP/1.1, has kept a connection open, and its last reply had a known
    /// length.
    is_fit: bool,
    /// The number of replies that must complete before more than one request may be in flight
    /// again.
    alone: u8,
    trust: Trust,
}

impl Learnt {
    /// Returns the values that a checkpoint stores: the allowance (0 if unknown), and the code of
    /// how far the server is trusted to reply in order. The other values are soon learnt again.
    pub fn saved(&self) -> (u32, u8) {
        (self.allowance, self.trust.code())
    }

    /// Restores the values that [`Self::saved`] returned in an earlier run.
    pub fn restored(allowance: u32, trust: u8) -> Self {
        Self { allowance, trust: Trust::of_code(trust), ..Self::default() }
    }

    /// Returns the number of requests that the server accepts on one connection, as far as known;
    /// otherwise the assumed number. It is at least 1.
    pub fn allowance(&self, settings: &Settings) -> u32 {
        match self.allowance {
            _ if self.trust == Trust::OnePerConnection => 1,
            0 => settings.requests_new.max(1),
            known => known,
        }
    }

    /// Returns whether an earlier connection has shown how many requests the server accepts, or
    /// that it accepts more than assumed.
    pub fn knows_allowance(&self) -> bool {
        self.allowance > 0
    }

    /// Returns whether pipelining with this server is disabled permanently.
    pub fn is_disabled(&self) -> bool {
        !matches!(self.trust, Trust::Passed(_))
    }

    /// Disables pipelining with this server. A stricter limit stays.
    fn disable(&mut self) {
        if !self.is_disabled() {
            self.trust = Trust::OneByOne;
        }
    }

    /// Returns how many requests may be in flight at once on a connection that is not under special
    /// caution. It is at least 1.
    pub fn depth(&self, settings: &Settings) -> u32 {
        if !settings.enabled || self.is_disabled() || !self.is_fit {
            return 1;
        }
        let by_size = settings.ahead_bytes_max / self.reply_bytes.max(1);
        let depth = self.depth.min(settings.depth_max);
        u32::from(depth).min(by_size).max(1)
    }

    /// Requires at least this many requests to be sent one at a time.
    fn require_alone(&mut self, requests: u32) {
        self.alone = self.alone.max(u8::try_from(requests).unwrap_or(u8::MAX));
    }

    fn grow(&mut self, settings: &Settings, is_deep: bool) {
        if self.depth == 0 {
            self.depth = DEPTH_START;
        } else if is_deep || self.depth == 1 {
            self.streak = self.streak.saturating_add(1);
            let enough = if self.depth == 1 { RECOVERY } else { self.depth };
            if self.streak >= enough && self.depth < settings.depth_max {
                self.depth += 1;
                self.streak = 0;
            }
        }
    }

    fn shrink(&mut self, settings: &Settings) {
        self.depth = (self.depth / 2).max(1);
        self.streak = 0;
        self.breaks = self.breaks.saturating_add(1);
        if self.breaks >= settings.breaks_max {
            self.disable();
        }
    }
}

/// The properties of a complete reply that matter to pipelining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The minor version of HTTP/1 in the reply.
    pub minor: u8,
    /// True if the length of the body was known or the body was chunked, so that the reply did not
    /// end with the connection.
    pub known_length: bool,
    /// True if the connection may be reused after the reply.
    pub persists: bool,
    /// The `max` parameter of the field `Keep-Alive`; `None` if there is none.
    pub keep_max: Option<u32>,
    /// The length of the payload as it was sent, in bytes.
    pub body_bytes: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The server closed the connection regularly.
    Ended,
    /// The connection ended by a reset or another failure of the transport.
    Reset,
    /// The crawler closed the connection: the bytes were not a reply, or the reply doesn't allow
    /// another one after it.
    Broken,
    /// The crawler closed the connection: the reply to the oldest unanswered request timed out.
    Overdue,
    /// The crawler closed the connection, for reasons that have nothing to do with the server.
    Ours,
}

/// What to do with the requests that got no complete reply before the connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    /// The number of unanswered requests, oldest first, that go back to the front of the queue in
    /// the same order. The repeat of a comparison is not among them.
    pub unanswered: u32,
    /// The number of complete replies that are held and can no longer be proven: their requests go
    /// back too, before the others.
    pub unproven: u32,
    /// True if the failure counts against the oldest unanswered request.
    pub blames_head: bool,
    /// True if the oldest unanswered request has reached its limit of faults: it does not go back
    /// to the queue.
    pub drops_head: bool,
    /// True if the server failed: the close was neither announced nor the crawler's own.
    pub is_trouble: bool,
}

/// The state of pipelining on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    sent: u32,
    replied: u32,
    /// The total number of requests that this connection accepts, as announced by `Keep-Alive:
    /// max`.
    limit: u32,
    /// True if more than one request was ever in flight on this connection.
    was_deep: bool,
    /// The requests that were sent since the last proven point (see module [`proof`]).
    batch: Batch,
    /// True if the last reply announced that the server closes the connection.
    is_closing: bool,
}

impl Default for Pipeline {
    /// Returns the state of a new connection.
    fn default() -> Self {
        Self {
            sent: 0,
            replied: 0,
            limit: u32::MAX,
            was_deep: false,
            batch: Batch::default(),
            is_closing: false,
        }
    }
}

impl Pipeline {
    /// Returns how many more requests may be sent now on this connection. `left` is the number that
    /// the crawler may still send in the current visit of this server.
    pub fn room(&self, learnt: &Learnt, settings: &Settings, left: u32) -> u32 {
        let taken = self.taken(learnt, settings).min(left);
        if self.is_closing || self.batch.held() > 0 || self.batch.is_comparing() {
            return 0;
        }
        let depth = if learnt.alone > 0 { 1 } else { learnt.depth(settings) };
        let (in_flight, all) = (self.in_flight(), self.in_flight().saturating_add(taken));
        let compared = match depth > 1 && learnt.is_on_probation(settings) {
            // Of these requests some are reserved for comparisons: there may be two, and a batch
            // itself needs at least two.
            true => 1 + u32::from(all > 3),
            false => 0,
        };
        let most = depth.min(all - compared.min(all)).max(1).min(all);
        most.saturating_sub(in_flight)
    }

    /// Returns the number of requests that the server still accepts on this connection, as far as
    /// known.
    fn taken(&self, learnt: &Learnt, settings: &Settings) -> u32 {
        self.limit.min(learnt.allowance(settings)).saturating_sub(self.sent)
    }

    /// Returns whether a request of the held batch may be repeated on this connection. `left` is
    /// the number of requests that the crawler may still send in the current visit of this server.
    pub fn may_compare(&self, learnt: &Learnt, settings: &Settings, left: u32) -> bool {
        !self.is_closing && left > 0 && self.taken(learnt, settings) > 0
    }

    /// Marks the next request that is sent as the repeat of one in the held batch.
    pub fn begin_comparison(&mut self) {
        self.batch.begin_comparison();
    }

    /// Returns the index of the held reply to compare, and of a second one: see [`proof::choose`].
    pub fn choice(learnt: &Learnt, repeats: &[bool]) -> (usize, Option<usize>) {
        let passed = match learnt.trust {
            Trust::Passed(batches) => batches,
            Trust::OneByOne | Trust::OnePerConnection => 0,
        };
        proof::choose(passed, repeats)
    }

    /// Records the result of the last comparison of a batch. If `equal` is true, the caller files
    /// the held replies; the connection is not used further if two of them were compared. If not,
    /// pipelining is disabled, and the caller closes the connection.
    pub fn compared(&mut self, learnt: &mut Learnt, equal: bool) {
        learnt.is_compared(equal);
        if equal {
            learnt.breaks = 0;
            self.is_closing |= self.batch.may_have_copies();
            self.batch = Batch::default();
        }
    }

    /// Gives up comparing the held batch: its requests go back, to be sent one at a time. Such
    /// batches count as failures, so a server that answers each batch this way (with 503 to all but
    /// the first) loses pipelining.
    pub fn abandon_batch(&mut self, learnt: &mut Learnt, settings: &Settings) {
        learnt.require_alone(self.batch.held());
        learnt.shrink(settings);
        self.batch = Batch::default();
    }

    /// Returns whether the requests in flight keep the server busy until later requests can reach
    /// it. Later requests are then better sent together, in one write and one packet. `pace` is the
    /// mean time from one reply to the next. Because neither that nor the round trip is steady,
    /// twice the round trip and half of the depth are kept in reserve.
    pub fn is_ahead(
        &self,
        learnt: &Learnt,
        settings: &Settings,
        pace: Duration,
        round_trip: Duration,
    ) -> bool {
        let in_flight = self.in_flight();
        2 * in_flight > learnt.depth(settings)
            && pace.saturating_mul(in_flight - 1) >= round_trip.saturating_mul(2)
    }

    /// Reports that `count` requests were written, or handed over to be written.
    pub fn sent(&mut self, count: u32) {
        self.sent += count;
        self.batch.sent(count);
        self.was_deep |= self.in_flight() > 1;
    }

    /// Records a complete reply to the oldest request in flight. Returns what to do with the reply.
    ///
    /// # Panics
    /// Panics if no request is in flight.
    pub fn replied(&mut self, learnt: &mut Learnt, settings: &Settings, reply: &Reply) -> Filing {
        assert!(self.in_flight() > 0, "a reply needs a request");
        self.replied += 1;
        learnt.head_faults = 0;
        learnt.alone = learnt.alone.saturating_sub(1);
        let bytes = u32::try_from(reply.body_bytes).unwrap_or(u32::MAX);
        learnt.reply_bytes = match learnt.reply_bytes {
            0 => bytes,
            before => before - before / 8 + bytes / 8,
        };
        if let Some(more) = reply.keep_max {
            // Some servers count the number down, others send the same number each time, so the
            // smallest limit counts.
            self.limit = self.limit.min(self.replied.saturating_add(more));
        }
        self.learn_allowance(learnt, settings, reply);
        self.is_closing |= !reply.persists;
        learnt.is_fit = reply.minor >= 1 && reply.known_length && (learnt.is_fit || reply.persists);
        if learnt.is_fit {
            learnt.grow(settings, self.in_flight() > 0 || self.batch.held() > 0);
        }
        self.batch.replied(learnt.is_on_probation(settings), self.in_flight())
    }

    /// Records that the crawler stopped reading the reply to the oldest request, because it exceeds
    /// a cap, and keeps its beginning. The request counts as answered, the connection is not
    /// reused, and nothing is learnt about the server.
    ///
    /// # Panics
    /// Panics if no request is in flight.
    pub fn kept_partial(&mut self) {
        assert!(self.in_flight() > 0, "a reply needs a request");
        self.replied += 1;
        self.is_closing = true;
    }

    /// Records that the reply to the oldest request ended early, and that its beginning is kept.
    /// The request counts as answered and is not blamed. Pipelining may be what cut the reply, so
    /// the failure is recorded as after any other close of the kind `how`.
    ///
    /// # Panics
    /// Panics if no request is in flight.
    pub fn cut(&mut self, learnt: &mut Learnt, settings: &Settings, how: Close) {
        if !self.is_closing {
            let left = Leftover { unanswered: self.in_flight(), ..Leftover::default() };
            self.learn_failure(learnt, settings, how, true, left);
        }
        learnt.head_faults = 0;
        self.kept_partial();
    }

    /// Returns the number of requests in flight on this connection.
    pub fn in_flight(&self) -> u32 {
        self.sent - self.replied
    }

    /// Returns the number of complete replies on this connection so far.
    pub fn replies(&self) -> u32 {
        self.replied
    }

    /// Returns whether the connection is idle and accepts another request, so that it may be kept
    /// open between two visits.
    pub fn may_reuse(&self, learnt: &Learnt, settings: &Settings) -> bool {
        self.in_flight() == 0 && self.room(learnt, settings, u32::MAX) > 0
    }

    /// Returns whether more than one request was sent since the last proven point; then a reply may
    /// belong to another request.
    pub fn is_deep(&self) -> bool {
        self.batch.is_deep()
    }

    /// Returns whether a close of kind `how` would be no fault of the request at the head: the
    /// reply may belong to another request, or an earlier one may have failed. That request is then
    /// repeated alone first.
    pub fn blames_nobody(&self, learnt: &Learnt, settings: &Settings, how: Close) -> bool {
        let is_sign = matches!(how, Close::Overdue | Close::Broken);
        let behind = self.batch.is_deep() && self.batch.is_behind();
        self.is_unproven(learnt, settings) || is_sign && behind
    }

    /// Returns whether a reply of the current batch may only be filed after a comparison.
    pub fn is_unproven(&self, learnt: &Learnt, settings: &Settings) -> bool {
        self.batch.is_deep() && learnt.is_on_probation(settings)
    }

    /// Records a sign that replies are out of order: from now on the server gets one request at a
    /// time. The caller discards the replies that are not filed, and closes the connection as
    /// [`Close::Ours`].
    pub fn swapped(&self, learnt: &mut Learnt) {
        learnt.disable();
    }

    /// Records bytes after a reply that belong to no reply. This has the effect of
    /// [`Self::swapped`]; in addition no connection of this server is reused, because such bytes
    /// could pass for the next reply.
    pub fn left_bytes(&self, learnt: &mut Learnt) {
        learnt.trust = Trust::OnePerConnection;
    }

    /// Records the end of the connection. `has_begun` is true if any byte of the next reply had
    /// arrived.
    pub fn closed(
        &mut self,
        learnt: &mut Learnt,
        settings: &Settings,
        how: Close,
        has_begun: bool,
    ) -> Leftover {
        let unproven = self.is_unproven(learnt, settings);
        let blames_nobody = self.blames_nobody(learnt, settings, how);
        let batch = std::mem::take(&mut self.batch);
        let unanswered = self.in_flight() - u32::from(batch.is_comparing()).min(self.in_flight());
        self.sent = self.replied;
        let was_closing = std::mem::replace(&mut self.is_closing, true);
        let left = Leftover { unanswered, unproven: batch.held(), ..Leftover::default() };
        if unproven || left.unproven > 0 {
            learnt.require_alone(unanswered + left.unproven);
        }
        if left.unproven > 0 {
            learnt.shrink(settings);
        }
        let all_done = unanswered == 0 && left.unproven == 0;
        if all_done || was_closing || how == Close::Ours {
            // On probation only a comparison shows that pipelining works.
            let is_proven = left.unproven == 0 && !learnt.is_on_probation(settings);
            if self.was_deep && self.replied > 0 && is_proven {
                learnt.breaks = 0;
            }
            return left;
        }
        let behind = batch.is_behind() || batch.is_comparing();
        self.learn_failure(learnt, settings, how, has_begun, left);
        if batch.is_deep() && behind && matches!(how, Close::Overdue | Close::Broken) {
            learnt.disable();
        }
        // A connection that has served requests and ends before the first byte of the next reply
        // most likely reached its idle timeout or its request limit while our request was under
        // way: no request is blamed.
        let at_rest = self.replied > 0 && !has_begun;
        let blames_head =
            !blames_nobody && (!at_rest || matches!(how, Close::Overdue | Close::Broken));
        learnt.head_faults = if blames_head { learnt.head_faults.saturating_add(1) } else { 0 };
        let drops_head = blames_head && learnt.head_faults >= settings.head_faults_max;
        if drops_head {
            learnt.head_faults = 0;
        }
        Leftover { blames_head, drops_head, is_trouble: true, ..left }
    }

    fn learn_allowance(&self, learnt: &mut Learnt, settings: &Settings, reply: &Reply) {
        let allowance = learnt.allowance(settings);
        if learnt.trust == Trust::OnePerConnection {
            // The server seems to accept more requests, but closes the connection.
        } else if !reply.persists {
            learnt.allowance = self.replied;
            learnt.hint = 0;
        } else if self.limit != u32::MAX {
            learnt.allowance = self.limit.max(1);
            learnt.hint = 0;
        } else if self.replied >= allowance {
            // A limit that was only observed is raised in small steps.
            let more = if learnt.hint > 0 { (allowance / 8).max(1) } else { allowance };
            learnt.allowance = allowance.saturating_add(more);
        }
    }

    fn learn_failure(
        &self,
        learnt: &mut Learnt,
        settings: &Settings,
        how: Close,
        has_begun: bool,
        left: Leftover,
    ) {
        learnt.require_alone(1);
        let is_between = how == Close::Ended && self.replied > 0 && !has_begun;
        // Twice the same number of replies is an unannounced limit, not a fault of pipelining.
        let is_limit = is_between && learnt.hint == self.replied;
        if is_between {
            learnt.allowance = self.replied;
            learnt.hint = self.replied;
        }
        if left.unanswered > 1 && !is_limit && left.unproven == 0 {
            learnt.shrink(settings);
        }
        if left.unanswered > 1 && how == Close::Overdue {
            learnt.disable();
        }
    }
}
