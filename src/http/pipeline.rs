//! One connection's requests under way: how many more may be sent, and what to repeat if it ends.
//!
//! Counts, no bytes. [`Learnt`] is what outlives a connection: it belongs to the server and is
//! small enough for the frontier's record of it. [`Pipeline`] belongs to the connection. The road
//! sends at most [`Pipeline::room`] requests, says [`Pipeline::sent`] and [`Pipeline::replied`],
//! and at the end [`Pipeline::closed`] says what becomes of the requests that were not answered.
//!
//! Pipelining is earned, server by server:
//! 1. The first request goes alone. More than one is under way only behind an HTTP/1.1 reply of
//!    known length that keeps the connection open.
//! 2. Depth starts at two. It grows by one with each depth's worth of replies, and halves on
//!    trouble; it never passes what the server still takes on this connection, nor what replies of
//!    the usual size would pile up.
//! 3. A close that was not announced: complete replies count, all else goes back to the front, and
//!    the next connection starts with one request alone, so that a request that kills connections
//!    is found out. The fault counts against it if it stood at the head of a connection, or its
//!    reply had begun; after the second in a row it is to be dropped.
//! 4. An announced close teaches how many requests the server takes, and what stood behind goes
//!    back at no penalty. `Keep-Alive: max` teaches the same beforehand; a connection that outlives
//!    the allowance doubles it.
//! 5. A reply out of order bars pipelining for good ([`suspicious`], [`Pipeline::swapped`]), and so
//!    does one that can't be read behind another of its batch: all that is not filed is discarded
//!    and asked for again. Keeping the connection open stays allowed, but for a server that leaves
//!    bytes behind a reply ([`Pipeline::left_bytes`]): it gets one request a connection.
//! 6. A reply that does not come in time while others wait behind it, or behind another of its
//!    batch, bars pipelining too: a server that lost count looks like a slow one.
//! 7. A batch is for one write, and only GETs are in it: nothing here is unsafe to repeat.
//! 8. A server that has enough to do until more gets there is sent the next ones together, when
//!    half of the depth is free ([`Pipeline::is_ahead`]): a write and a packet for some, not for
//!    each.
//! 9. A server's first batches are on probation: their replies are held until the connection is
//!    idle with nothing outstanding, its *proven place*, and one of them has been compared with
//!    the reply to the same request sent alone ([`proof`], with its law and its limit).
//!
//! Laws: each request sent is replied to or handed back, once; `in_flight` never passes `depth_max`
//! and is at most one until the first rule is met. A swap that begins after probation and bears no
//! sign (rules 5 and 6) is a limit: its replies are filed under each other's URLs.
//! Cost: a few integers; every call is constant time. Source: RFC 9112 sections 9.3 to 9.6.

pub mod proof;
mod swap;
#[cfg(test)]
mod tests;

pub use proof::Filing;
pub use swap::{Signs, Swap, suspicious};

use proof::{Batch, Trust};
use std::time::Duration;

/// Settings of pipelining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether to pipeline at all. Connections are kept open either way.
    pub enabled: bool,
    /// Most requests under way on one connection.
    pub depth_max: u8,
    /// Requests a server is thought to take on one connection before it has shown it.
    pub requests_new: u32,
    /// Payload, in bytes, that may pile up on one connection: depth times the usual reply.
    pub ahead_bytes_max: u32,
    /// Pipelined connections that broke, or batches that came to no comparison, in a row before a
    /// server is asked one by one for good.
    pub breaks_max: u8,
    /// Connections in a row broken by the request at their head before it is to be dropped.
    pub head_faults_max: u8,
    /// Batches of a server that are held and compared before replies are filed as they come.
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

/// Depth once pipelining begins.
const DEPTH_START: u8 = 2;
/// Replies one by one after which a depth that fell to one is tried at two again.
const RECOVERY: u8 = 8;

/// What is known of a server across its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// Requests it takes on one connection; 0 until it has shown it.
    allowance: u32,
    /// Replies behind which it last closed without a word; 0 if the allowance isn't from that.
    hint: u32,
    /// Payload of a reply in bytes, smoothed: 7 parts old, 1 part new.
    reply_bytes: u32,
    /// Requests that may be under way; 0 until earned.
    depth: u8,
    /// Replies since the depth last changed.
    streak: u8,
    /// Pipelined connections, and batches on probation, in a row that broke.
    breaks: u8,
    /// Connections in a row broken by the request at their head.
    head_faults: u8,
    /// It speaks HTTP/1.1, has kept a connection open, and its last reply had a known length.
    is_fit: bool,
    /// So many replies must pass before more than one request is under way again.
    alone: u8,
    trust: Trust,
}

impl Learnt {
    /// What is worth keeping across a restart: the allowance, 0 if it isn't known, and how far its
    /// order is trusted, as a code. The rest is soon learnt again.
    pub fn worth_keeping(&self) -> (u32, u8) {
        (self.allowance, self.trust.code())
    }

    /// What an earlier run found [`Self::worth_keeping`].
    pub fn restored(allowance: u32, trust: u8) -> Self {
        Self { allowance, trust: Trust::of_code(trust), ..Self::default() }
    }

    /// Requests the server is thought to take on one connection: at least 1.
    pub fn allowance(&self, settings: &Settings) -> u32 {
        match self.allowance {
            _ if self.trust == Trust::OnePerConnection => 1,
            0 => settings.requests_new.max(1),
            known => known,
        }
    }

    /// Whether the server has shown how many requests it takes, or that it takes more than thought.
    pub fn knows_allowance(&self) -> bool {
        self.allowance > 0
    }

    /// Whether pipelining is barred for good.
    pub fn is_barred(&self) -> bool {
        !matches!(self.trust, Trust::Passed(_))
    }

    /// Pipelining is barred; what was known to be worse stays.
    fn bar(&mut self) {
        if !self.is_barred() {
            self.trust = Trust::OneByOne;
        }
    }

    /// Requests that may be under way at once on a connection in full swing: at least 1.
    pub fn depth(&self, settings: &Settings) -> u32 {
        if !settings.enabled || self.is_barred() || !self.is_fit {
            return 1;
        }
        let by_size = settings.ahead_bytes_max / self.reply_bytes.max(1);
        let depth = self.depth.min(settings.depth_max);
        u32::from(depth).min(by_size).max(1)
    }

    /// So many requests, at least, go one by one.
    fn goes_alone(&mut self, requests: u32) {
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
            self.bar();
        }
    }
}

/// What the head of a complete reply said, and how long it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Minor version of HTTP/1.
    pub minor: u8,
    /// Its length was known or it was chunked: it did not end with the connection.
    pub known_length: bool,
    /// The connection may be used on.
    pub persists: bool,
    /// `Keep-Alive: max`.
    pub keep_max: Option<u32>,
    /// Payload as sent, in bytes.
    pub body_bytes: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// By the peer, in order.
    Ended,
    /// By a reset or another failure of the transport.
    Reset,
    /// By us: what came was no reply, or not one to go on behind.
    Broken,
    /// By us: the reply at the head did not come or go on in time.
    Overdue,
    /// By us, for reasons of our own.
    Ours,
}

/// What becomes of the requests that got no complete reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    /// So many of them, oldest first, go back to the front of the queue in the same order. The
    /// repeat of a comparison is not among them.
    pub unanswered: u32,
    /// So many whole replies are held and will never be proven: their requests go back, too, in
    /// front of the others.
    pub unproven: u32,
    /// The fault counts against the oldest of them.
    pub blames_head: bool,
    /// It has done so as often as is allowed: the oldest does not go back.
    pub drops_head: bool,
    /// The server failed us: neither an announced close nor our own doing.
    pub is_trouble: bool,
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    sent: u32,
    replied: u32,
    /// Requests this connection takes in all, as `Keep-Alive: max` said.
    limit: u32,
    /// More than one was under way.
    was_deep: bool,
    /// What is not proven yet.
    batch: Batch,
    /// The last reply announced the close.
    is_closing: bool,
}

impl Default for Pipeline {
    /// A fresh connection.
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
    /// How many more requests may be sent now, if the visit may have `left` more.
    pub fn room(&self, learnt: &Learnt, settings: &Settings, left: u32) -> u32 {
        let taken = self.taken(learnt, settings).min(left);
        if self.is_closing || self.batch.held() > 0 || self.batch.is_comparing() {
            return 0;
        }
        let depth = if learnt.alone > 0 { 1 } else { learnt.depth(settings) };
        let (under_way, all) = (self.in_flight(), self.in_flight().saturating_add(taken));
        let compared = match depth > 1 && learnt.is_on_probation(settings) {
            // Kept for comparisons: there may be two, and a batch has two requests at least.
            true => 1 + u32::from(all > 3),
            false => 0,
        };
        let most = depth.min(all - compared.min(all)).max(1).min(all);
        most.saturating_sub(under_way)
    }

    /// Requests that the server still takes on this connection, as far as is known.
    fn taken(&self, learnt: &Learnt, settings: &Settings) -> u32 {
        self.limit.min(learnt.allowance(settings)).saturating_sub(self.sent)
    }

    /// Whether one of the held batch may be asked for again, if the visit may have `left` more
    /// requests.
    pub fn may_compare(&self, learnt: &Learnt, settings: &Settings, left: u32) -> bool {
        !self.is_closing && left > 0 && self.taken(learnt, settings) > 0
    }

    /// The request that is sent next repeats one of the held batch.
    pub fn compares(&mut self) {
        self.batch.compares();
    }

    /// Which of the held replies is to be compared, and which one after it: see [`proof::choose`].
    pub fn choice(learnt: &Learnt, repeats: &[bool]) -> (usize, Option<usize>) {
        let passed = match learnt.trust {
            Trust::Passed(batches) => batches,
            Trust::OneByOne | Trust::OnePerConnection => 0,
        };
        proof::choose(passed, repeats)
    }

    /// The last comparison is made: with equal replies the held ones are to be filed; else
    /// pipelining is barred, and the connection is to be closed.
    pub fn compared(&mut self, learnt: &mut Learnt, equal: bool) {
        learnt.is_compared(equal);
        if equal {
            learnt.breaks = 0;
            self.batch = Batch::default();
        }
    }

    /// The held batch can't be compared: its requests go back, to be asked for one by one. A server
    /// that answers each batch so (with 503 to all but the first) is found out by their number.
    pub fn gives_batch_up(&mut self, learnt: &mut Learnt, settings: &Settings) {
        learnt.goes_alone(self.batch.held());
        learnt.shrink(settings);
        self.batch = Batch::default();
    }

    /// Whether what is under way keeps the server at work until requests that are sent later get
    /// there: then these go together, in one write and one packet. `pace` is the mean time from one
    /// reply to the next. Twice the round trip is kept, since neither is steady, and half the
    /// depth.
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

    /// So many requests were sent (written, or handed over to be written).
    pub fn sent(&mut self, count: u32) {
        self.sent += count;
        self.batch.sent(count);
        self.was_deep |= self.in_flight() > 1;
    }

    /// The reply to the oldest request under way is complete. Returns what is to be done with it.
    ///
    /// # Panics
    /// If no request is under way.
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
            // Some servers count down, others say the same number each time: the least holds.
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

    /// The reply to the oldest request is kept as far as it came, because we don't want the rest
    /// (it passes a cap): the request counts as answered, the connection is not used on, and
    /// nothing is learnt of the server.
    ///
    /// # Panics
    /// If no request is under way.
    pub fn kept_partial(&mut self) {
        assert!(self.in_flight() > 0, "a reply needs a request");
        self.replied += 1;
        self.is_closing = true;
    }

    /// The reply to the oldest request under way ended early, and is kept as far as it came: the
    /// request counts as answered and is blamed for nothing. What the end says of pipelining is
    /// learnt as at any other, for it may be what cut the reply.
    ///
    /// # Panics
    /// If no request is under way.
    pub fn cut(&mut self, learnt: &mut Learnt, settings: &Settings, how: Close) {
        if !self.is_closing {
            let left = Leftover { unanswered: self.in_flight(), ..Leftover::default() };
            self.learn_trouble(learnt, settings, how, true, left);
        }
        learnt.head_faults = 0;
        self.kept_partial();
    }

    /// Requests under way.
    pub fn in_flight(&self) -> u32 {
        self.sent - self.replied
    }

    /// Complete replies so far.
    pub fn replies(&self) -> u32 {
        self.replied
    }

    /// Whether the connection is at rest and takes another request: it may be parked.
    pub fn may_reuse(&self, learnt: &Learnt, settings: &Settings) -> bool {
        self.in_flight() == 0 && self.room(learnt, settings, u32::MAX) > 0
    }

    /// Whether more than one request was sent since the last proven place: then a reply may be
    /// another request's.
    pub fn is_deep(&self) -> bool {
        self.batch.is_deep()
    }

    /// Whether such an end would be no fault of the request at the head: its reply may be
    /// another's, or what came before it is what went wrong. It is asked for again alone first.
    pub fn blames_nobody(&self, learnt: &Learnt, settings: &Settings, how: Close) -> bool {
        let is_sign = matches!(how, Close::Overdue | Close::Broken);
        let behind = self.batch.is_deep() && self.batch.is_behind();
        self.is_unproven(learnt, settings) || is_sign && behind
    }

    /// Whether a reply of this batch may only be filed after a comparison.
    pub fn is_unproven(&self, learnt: &Learnt, settings: &Settings) -> bool {
        self.batch.is_deep() && learnt.is_on_probation(settings)
    }

    /// A sign of replies out of order was seen: the server is asked one by one from now on. What is
    /// not filed is to be discarded, and the connection closed as [`Close::Ours`].
    pub fn swapped(&self, learnt: &mut Learnt) {
        learnt.bar();
    }

    /// Bytes came behind a reply that belong to none: as [`Self::swapped`], and no connection of
    /// this server is used twice, since such bytes could pass for the next reply.
    pub fn left_bytes(&self, learnt: &mut Learnt) {
        learnt.trust = Trust::OnePerConnection;
    }

    /// The connection ended. `has_begun` says whether any byte of the reply at the head had come.
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
            learnt.goes_alone(unanswered + left.unproven);
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
        self.learn_trouble(learnt, settings, how, has_begun, left);
        if batch.is_deep() && behind && matches!(how, Close::Overdue | Close::Broken) {
            learnt.bar();
        }
        // On a connection that has served, an end before the first byte of the next reply is most
        // likely its idle time-out or its limit crossing our request: that blames no one.
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
            // It takes more, and isn't given it.
        } else if !reply.persists {
            learnt.allowance = self.replied;
            learnt.hint = 0;
        } else if self.limit != u32::MAX {
            learnt.allowance = self.limit.max(1);
            learnt.hint = 0;
        } else if self.replied >= allowance {
            // A limit that was only guessed at is felt for in small steps.
            let more = if learnt.hint > 0 { (allowance / 8).max(1) } else { allowance };
            learnt.allowance = allowance.saturating_add(more);
        }
    }

    fn learn_trouble(
        &self,
        learnt: &mut Learnt,
        settings: &Settings,
        how: Close,
        has_begun: bool,
        left: Leftover,
    ) {
        learnt.goes_alone(1);
        let is_between = how == Close::Ended && self.replied > 0 && !has_begun;
        // The same number of replies twice is a limit kept in silence, no fault of pipelining.
        let is_limit = is_between && learnt.hint == self.replied;
        if is_between {
            learnt.allowance = self.replied;
            learnt.hint = self.replied;
        }
        if left.unanswered > 1 && !is_limit && left.unproven == 0 {
            learnt.shrink(settings);
        }
        if left.unanswered > 1 && how == Close::Overdue {
            learnt.bar();
        }
    }
}
