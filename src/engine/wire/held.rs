//! Replies that are held until their place on the connection is proven, and the repeat that
//! proves it.
//!
//! What is proven, `http::pipeline` says ([`crate::http::pipeline::proof`]); here it is carried
//! out. The repeat is a request of the server like any other: it counts in the visit, its reply
//! is judged for the server's sake. It is not filed: it has no record and no line in the log. The
//! line of its URL says `compared`; that of a URL whose reply went back says `putBack`.
//!
//! Laws: a held reply is filed or its URL goes back to where it was, once; while it is held its
//! bytes stay charged to the pool. With others of its batch to come, a connection gives the batch
//! up if the pool is over its budget, or if it holds more than may pile up on one; so holding
//! passes the budget by no more than reading does: one body. A batch is filed in one step, so it
//! may be no longer than the longest body.

use super::fetch::{Fetch, Fetched, Reply};
use crate::engine::Engine;
use crate::engine::backlog::Purpose;
use crate::engine::contract::Action;
use crate::engine::outcome::Outcome;
use crate::ground::time::Instant;
use crate::http::pipeline::{Close, Pipeline};
use crate::http::response::{Head, is_surplus};
use smallvec::SmallVec;

/// Replies of one batch, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    replies: Vec<Held>,
    /// Which of them is compared with the reply that comes next.
    compared: Option<usize>,
    /// Which of them is compared after that.
    compared_next: Option<usize>,
}

/// A whole reply that is not filed yet.
#[derive(Debug)]
struct Held {
    fetch: Fetch,
    head: Head,
    reply: Reply,
    ended: Instant,
}

/// Why replies and requests of a connection are thought not to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A reply names another request of its batch.
    Swapped,
    /// More bytes came than were asked for.
    Surplus,
    /// The reply to a repeated request differs from the one that came in a batch.
    Differs,
}

/// What a comparison showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The replies are not equal: the connection is over.
    Differs,
    /// They are, but the batch needs another comparison.
    Half,
    /// The batch is filed.
    Proven,
}

impl Sign {
    fn text(self) -> &'static str {
        match self {
            Self::Swapped => "a reply names another request",
            Self::Surplus => "bytes are left over behind a reply",
            Self::Differs => "a repeated request got another reply",
        }
    }
}

impl Held {
    /// Whether this is the same reply: status, body without its framing, and where it redirects
    /// to. Dates and cookies differ from reply to reply.
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

    /// What waits to be filed.
    pub(super) fn fetches(&self) -> impl Iterator<Item = &Fetch> {
        self.replies.iter().map(|held| &held.fetch)
    }

    /// Whether the request under way is a repeat.
    pub(super) fn is_comparing(&self) -> bool {
        self.compared.is_some()
    }

    fn bytes(&self) -> usize {
        self.replies.iter().map(|held| held.reply.bytes()).sum()
    }

    /// Of each reply, whether it is the same as the one before it.
    fn repeats(&self) -> SmallVec<[bool; 8]> {
        let mut before: Option<&Held> = None;
        let repeats = self.replies.iter().map(|held| {
            let last = before.replace(held);
            last.is_some_and(|last| last.is_same(&held.head, &held.reply))
        });
        repeats.collect()
    }
}

impl Engine {
    /// A reply at the head of the flight is whole, and its place not proven.
    pub(super) fn hold(&mut self, slot: u32, fetch: Fetch) {
        let ended = self.turn.at();
        let conn = self.wire.conns.at(slot);
        let (reply, head) = conn.incoming.take();
        let outcome = Outcome::Status(head.status);
        let fetched = Fetched { fetch, head: Some(&head), reply, outcome, ended };
        // What it asks of us, it asks now.
        self.heed(slot, &fetched);
        let Fetched { fetch, reply, .. } = fetched;
        self.wire.conns.at(slot).batch.replies.push(Held { fetch, head, reply, ended });
    }

    /// Whether a connection holds more than it may.
    pub(super) fn is_overdrawn(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let bytes = conn.batch.bytes();
        let is_long = bytes > self.settings.pipeline.ahead_bytes_max as usize;
        let drains = !conn.flight.is_empty() && (self.wire.pool.is_over() || is_long);
        bytes > 0 && (drains || bytes as u64 > self.settings.reply.body_bytes_max)
    }

    /// All replies of a batch have come: one of its requests is repeated, or the batch given up.
    /// So it is after a first comparison that needs a second.
    pub(super) fn compare_one(&mut self, slot: u32) {
        if self.wire.peer_closed {
            // It ends before anything could be repeated.
            return;
        }
        let left = self.burst_left(slot);
        let conn = self.wire.conn(slot);
        let site = self.sites.look(conn.server);
        let may = !conn.visit.over
            && !site.is_hopeless()
            && !self.is_stopping()
            && !self.storage.is_paused()
            && conn.pipeline.may_compare(&site.learnt, &self.settings.pipeline, left);
        if !may {
            let learnt = &mut self.sites.at(conn.server).learnt;
            let settings = &self.settings.pipeline;
            self.wire.conns.at(slot).pipeline.abandon_batch(learnt, settings);
            self.put_back(slot);
            return self.fill(slot);
        }
        let (place, next) = match conn.batch.compared_next {
            Some(place) => (place, None),
            None => Pipeline::choice(&site.learnt, &conn.batch.repeats()),
        };
        let item = conn.batch.replies[place].fetch.item.clone();
        let conn = self.wire.conns.at(slot);
        (conn.batch.compared, conn.batch.compared_next) = (Some(place), next);
        conn.pipeline.begin_comparison();
        self.counts.compared += 1;
        self.send(slot, item);
        self.turn.act(Action::Send(self.wire.conns.id(slot)));
        self.wire.conns.arm(slot);
    }

    /// The reply to a repeated request is whole: the batch is filed, or nothing of it, or another
    /// of its requests is to be repeated first.
    pub(super) fn compare(&mut self, slot: u32, fetch: Fetch) -> Compared {
        let ended = self.turn.at();
        let conn = self.wire.conns.at(slot);
        let (reply, head) = conn.incoming.take();
        let place = conn.batch.compared.take().expect("a repeat was sent");
        let equal = conn.batch.replies[place].is_same(&head, &reply);
        let is_last = !equal || conn.batch.compared_next.is_none();
        if is_last {
            conn.pipeline.compared(&mut self.sites.at(conn.server).learnt, equal);
        }
        let outcome = Outcome::Status(head.status);
        let fetched = Fetched { fetch, head: Some(&head), reply, outcome, ended };
        self.heed(slot, &fetched);
        self.wire.release(fetched.reply);
        self.wire.conns.at(slot).incoming.reader.return_head(head);
        if !equal {
            self.mismatched(slot, Sign::Differs);
            return Compared::Differs;
        }
        self.wire.conns.at(slot).batch.replies[place].fetch.notes.push("compared");
        if !is_last {
            return Compared::Half;
        }
        for held in std::mem::take(&mut self.wire.conns.at(slot).batch.replies) {
            let Held { fetch, head, reply, ended } = held;
            let outcome = Outcome::Status(head.status);
            self.file(slot, Fetched { fetch, head: Some(&head), reply, outcome, ended });
        }
        Compared::Proven
    }

    /// Requests and replies of a connection don't match: what is not filed goes back, and its
    /// server is asked one by one from now on.
    pub(super) fn mismatched(&mut self, slot: u32, sign: Sign) {
        let conn = self.wire.conn(slot);
        let learnt = &mut self.sites.at(conn.server).learnt;
        let was_barred = learnt.is_disabled();
        match sign {
            Sign::Surplus => conn.pipeline.left_bytes(learnt),
            Sign::Swapped | Sign::Differs => conn.pipeline.swapped(learnt),
        }
        let origin = self.backlog.origin(conn.server).as_str();
        log::info!("{origin}: replies don't match requests: {}", sign.text());
        self.counts.unmatched += u64::from(!was_barred);
        self.lost(slot, None, Close::Ours);
    }

    /// Whether bytes lie behind the last reply under way that nobody asked for.
    pub(super) fn has_surplus(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        conn.flight.len() == 1 && is_surplus(conn.inbox.unread())
    }

    /// The held replies of a connection will not be proven: their URLs go back to where they were.
    pub(super) fn put_back(&mut self, slot: u32) {
        let conn = self.wire.conns.at(slot);
        let id = conn.server;
        let batch = std::mem::take(&mut conn.batch);
        if batch.is_empty() {
            return;
        }
        self.counts.put_back += batch.replies.len() as u64;
        let mut pages = 0;
        for held in batch.replies.into_iter().rev() {
            self.wire.release(held.reply);
            pages += u32::from(held.fetch.item.purpose == Purpose::Page);
            self.unsend(id, held.fetch);
        }
        self.sites.at(id).puts_back(pages);
    }
}
