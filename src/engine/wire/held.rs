//! Replies of a pipelined batch that are held until it is proven which request each answers.
//!
//! [`crate::http::pipeline::proof`] says what counts as a proof; this file carries it out. One
//! request of the batch is repeated alone, and its reply is compared with the held one. The repeat
//! is a request like any other for the server: it counts in the visit, and its reply is judged. But
//! it has no record and no line in the log. If the replies are equal, the held ones are *filed*:
//! archived and logged under their URLs, the compared one with the annotation `compared`. If not,
//! their URLs go back to the front of the queue, and have the annotation `putBack` when they are
//! requested again.
//!
//! Laws: a held reply is either filed or its URL is put back, once. While it is held, its bytes are
//! charged to the pool. While more replies of the batch are to come, a connection drops the batch
//! if the pool exceeds its budget, or if the connection holds more than its own limit. So held
//! replies exceed the budget by no more than reading does: one body. A batch is filed in one step,
//! so it may not be longer than the longest body.

use super::fetch::{Fetch, FinishedFetch, Reply};
use crate::consent::Statements;
use crate::engine::Engine;
use crate::engine::backlog::Purpose;
use crate::engine::contract::Action;
use crate::engine::outcome::Outcome;
use crate::ground::time::Instant;
use crate::http::pipeline::{Close, Pipeline};
use crate::http::response::{Head, is_surplus};
use smallvec::SmallVec;

/// The held replies of one batch, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    replies: Vec<HeldReply>,
    /// The index in the batch of the held reply that is compared with the next reply to arrive;
    /// `None` if no comparison is in progress.
    compared: Option<usize>,
    /// The index of the reply that is compared after that at `compared`; `None` if one comparison
    /// is enough.
    compared_next: Option<usize>,
}

/// A complete reply that is held, so it is not archived and logged yet.
#[derive(Debug)]
struct HeldReply {
    fetch: Fetch,
    head: Head,
    reply: Reply,
    ended: Instant,
    outcome: Outcome,
    /// What was said of the use of the page.
    statements: Option<Box<Statements>>,
}

/// Why replies are thought not to match the requests of their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// A reply names another request of its batch.
    Swapped,
    /// Bytes arrived that no request asked for.
    Surplus,
    /// The reply to a repeated request differs from the held reply to the same request.
    Differs,
}

impl Mismatch {
    fn text(self) -> &'static str {
        match self {
            Self::Swapped => "a reply names another request",
            Self::Surplus => "bytes are left over behind a reply",
            Self::Differs => "a repeated request got another reply",
        }
    }
}

impl HeldReply {
    /// Returns whether another reply has the same status, body and redirect target as this one.
    /// Dates and cookies may differ.
    fn is_same(&self, head: &Head, reply: &Reply) -> bool {
        let to =
            |head: &Head, reply: &Reply| head.field(reply.head(), "location").map(<[u8]>::to_vec);
        self.head.status == head.status
            && self.reply.payload() == reply.payload()
            && to(&self.head, &self.reply) == to(head, reply)
    }
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Returns the fetches whose replies are held.
    pub(super) fn fetches(&self) -> impl Iterator<Item = &Fetch> {
        self.replies.iter().map(|held| &held.fetch)
    }

    /// Returns whether the request in flight is a repeated one, whose reply is to be compared.
    pub(super) fn is_comparing(&self) -> bool {
        self.compared.is_some()
    }

    fn bytes(&self) -> usize {
        self.replies.iter().map(|held| held.reply.bytes()).sum()
    }

    /// Returns for each held reply whether it is the same as the one before it.
    fn repeats(&self) -> SmallVec<[bool; 8]> {
        let mut before: Option<&HeldReply> = None;
        let repeats = self.replies.iter().map(|held| {
            let last = before.replace(held);
            last.is_some_and(|last| last.is_same(&held.head, &held.reply))
        });
        repeats.collect()
    }
}

impl Engine {
    /// Holds a complete reply: that to `fetch`, which was the first request of the flight.
    pub(super) fn hold(&mut self, slot: u32, fetch: Fetch) {
        let ended = self.turn.at();
        let conn = self.wire.conns.get_mut(slot);
        let id = conn.server;
        let (reply, head) = conn.incoming.take();
        let outcome = Outcome::Status(head.status);
        let mut fetched = FinishedFetch { fetch, head: Some(&head), reply, outcome, ended };
        let statements = self.open_reply(id, &mut fetched);
        // The URL may go back to its queue, but the server is judged by the reply now.
        self.judge_held(slot, &fetched);
        let FinishedFetch { fetch, reply, outcome, .. } = fetched;
        let held = HeldReply { fetch, head, reply, ended, outcome, statements };
        self.wire.conns.get_mut(slot).batch.replies.push(held);
    }

    /// Returns whether the held replies of a connection have more bytes than they may.
    pub(super) fn is_overdrawn(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let bytes = conn.batch.bytes();
        let is_long = bytes > self.settings.pipeline.ahead_bytes_max as usize;
        let drains = !conn.flight.is_empty() && (self.wire.pool.is_full() || is_long);
        bytes > 0 && (drains || bytes as u64 > self.settings.reply.body_bytes_max)
    }

    /// Repeats one request of a batch, if all replies of the batch have arrived, or if its first
    /// comparison asks for a second one. If no request may be repeated, puts all URLs of the batch
    /// back into their queue.
    pub(super) fn compare_one(&mut self, slot: u32) {
        if self.wire.peer_closed {
            // The connection ends before any request could be repeated.
            return;
        }
        let left = self.burst_left(slot);
        let conn = self.wire.conn(slot);
        let site = self.sites.get(conn.server);
        let holds = |reply: &HeldReply| self.holds_url(conn.server, &reply.fetch.item).is_some();
        let may = self.may_request(slot)
            && conn.pipeline.may_compare(&site.learnt, &self.settings.pipeline, left)
            && !conn.batch.replies.iter().any(holds);
        if !may {
            let learnt = &mut self.sites.get_mut(conn.server).learnt;
            let settings = &self.settings.pipeline;
            self.wire.conns.get_mut(slot).pipeline.abandon_batch(learnt, settings);
            self.put_back(slot);
            return self.fill(slot);
        }
        let (place, next) = match conn.batch.compared_next {
            Some(place) => (place, None),
            None => Pipeline::choice(&site.learnt, &conn.batch.repeats()),
        };
        let held = &conn.batch.replies[place].fetch;
        let (item, is_signed) = (held.item.clone(), held.identity.signature.is_some());
        let conn = self.wire.conns.get_mut(slot);
        (conn.batch.compared, conn.batch.compared_next) = (Some(place), next);
        conn.pipeline.begin_comparison();
        self.counts.compared += 1;
        self.send(slot, item, is_signed);
        self.turn.act(Action::Send(self.wire.conns.id(slot)));
        self.wire.conns.arm(slot);
    }

    /// Compares the reply to a repeated request with the held one. If they differ, puts the URLs of
    /// the batch back into their queue, closes the connection, and returns `None`. If they are
    /// equal, returns `Some(true)` if another request of the batch is to be repeated first, else
    /// archives and logs the batch and returns `Some(false)`.
    pub(super) fn compare(&mut self, slot: u32, fetch: Fetch) -> Option<bool> {
        let ended = self.turn.at();
        let conn = self.wire.conns.get_mut(slot);
        let id = conn.server;
        let (reply, head) = conn.incoming.take();
        let place = conn.batch.compared.take().expect("a repeat was sent");
        let equal = conn.batch.replies[place].is_same(&head, &reply);
        let is_last = !equal || conn.batch.compared_next.is_none();
        if is_last {
            conn.pipeline.compared(&mut self.sites.get_mut(conn.server).learnt, equal);
        }
        let outcome = Outcome::Status(head.status);
        let mut fetched = FinishedFetch { fetch, head: Some(&head), reply, outcome, ended };
        self.open_reply(id, &mut fetched);
        self.judge_held(slot, &fetched);
        self.wire.release(fetched.reply);
        self.wire.conns.get_mut(slot).incoming.reader.return_head(head);
        if !equal {
            self.mismatched(slot, Mismatch::Differs);
            return None;
        }
        self.wire.conns.get_mut(slot).batch.replies[place].fetch.notes.push("compared");
        if !is_last {
            return Some(true);
        }
        for held in std::mem::take(&mut self.wire.conns.get_mut(slot).batch.replies) {
            let HeldReply { fetch, head, reply, ended, outcome, statements } = held;
            let fetched = FinishedFetch { fetch, head: Some(&head), reply, outcome, ended };
            self.file_fetch(slot, fetched, statements);
        }
        Some(false)
    }

    /// Ends a connection whose replies don't match its requests. URLs whose replies are not
    /// archived and logged go back to their queue, and the server is never sent pipelined requests
    /// again.
    pub(super) fn mismatched(&mut self, slot: u32, mismatch: Mismatch) {
        let conn = self.wire.conn(slot);
        let learnt = &mut self.sites.get_mut(conn.server).learnt;
        let was_barred = learnt.is_disabled();
        match mismatch {
            Mismatch::Surplus => conn.pipeline.left_bytes(learnt),
            Mismatch::Swapped | Mismatch::Differs => conn.pipeline.swapped(learnt),
        }
        let origin = self.backlog.origin(conn.server).as_str();
        log::info!("{origin}: replies don't match requests: {}", mismatch.text());
        self.counts.unmatched += u64::from(!was_barred);
        self.end_connection(slot, None, Close::Ours);
    }

    /// Returns whether bytes that no request asked for follow the last reply.
    pub(super) fn has_surplus(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        conn.flight.len() == 1 && is_surplus(conn.inbox.unread())
    }

    /// Drops the held replies of a connection: their URLs go back to the front of the queue.
    pub(super) fn put_back(&mut self, slot: u32) {
        let conn = self.wire.conns.get_mut(slot);
        let id = conn.server;
        let batch = std::mem::take(&mut conn.batch);
        if batch.is_empty() {
            return;
        }
        self.counts.put_back += batch.replies.len() as u64;
        let mut pages = 0;
        for held in batch.replies.into_iter().rev() {
            self.wire.release(held.reply);
            pages += u32::from(matches!(held.fetch.item.purpose, Purpose::Page | Purpose::Again));
            self.requeue(id, held.fetch);
        }
        self.sites.get_mut(id).add_put_back(pages);
    }
}
