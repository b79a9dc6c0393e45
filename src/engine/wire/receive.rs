//! The receiving side: turns received bytes into complete replies, and handles connections that
//! end.
//!
//! A *visit* is a series of requests to one server over one connection; after it the server rests.
//! The *flight* of a connection is its requests without a complete reply, in the order in which
//! they were written; replies arrive in the same order. The *pool* is the memory that replies and
//! buffers of all connections share; when most of its budget is held, connections are paused.

use super::Wire;
use super::conn::{Incoming, Phase};
use super::fetch::{Evidence, Fetch, FinishedFetch};
use super::held::Mismatch;
use crate::engine::Engine;
use crate::engine::backlog::{Purpose, ROBOTS_TXT};
use crate::engine::contract::{Action, CloseReason, ConnId, Space};
use crate::engine::ledger::Work;
use crate::engine::outcome::{Outcome, UrlFate};
use crate::ground::stats::Stage;
use crate::http::pipeline::{self, Close, Filing, Signs, suspicious};
use crate::http::response::{Broken, Event, Framing, is_surplus};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The cost of the keys and certificates of a full TLS handshake, in units of work (see `ledger`):
/// some 200 microseconds of CPU time.
pub(super) const SECURED_UNITS: usize = 64 << 10;
/// The annotation of a reply that was followed by bytes that no request asked for.
pub(in crate::engine) const SURPLUS: &str = "surplus";
/// The maximum number of bytes shown of a reply that can't be read, before they are escaped.
const EVIDENCE_BYTES_MAX: usize = 64;

impl Engine {
    /// Returns a receive buffer for a connection, or why there is none.
    pub(in crate::engine) fn receive_space(&mut self, id: ConnId) -> Space<'_> {
        if !self.wire.conns.knows(id) {
            self.counts.late_events += 1;
            return Space::Gone;
        }
        let Some(most) = self.may_receive(id.slot) else {
            self.pause(id.slot);
            return Space::Paused;
        };
        let Wire { conns, pool, .. } = &mut self.wire;
        let space = conns.get_mut(id.slot).inbox.space(pool);
        let room = space.len().min(most);
        Space::Room(&mut space[..room])
    }

    /// Processes `bytes` that were written into the receive buffer of a connection.
    pub(in crate::engine) fn take_received(&mut self, slot: u32, bytes: usize) {
        let now = self.turn.at();
        if bytes == 0 {
            return self.tidy_buffer(slot);
        }
        self.counts.received_bytes += bytes as u64;
        self.turn.charge(Work::Received, bytes);
        self.wire.pauses.spend(slot, bytes);
        let conn = self.wire.conns.get_mut(slot);
        conn.inbox.received(bytes);
        conn.timeouts.last_byte = now;
        let unasked = conn.flight.len() <= conn.outbox.unsent() && conn.pipeline.replies() > 0;
        if conn.flight.is_empty() || unasked {
            // No request asked for them, so the replies of this connection can't be trusted.
            return self.on_surplus(slot);
        }
        self.read_replies(slot, false);
    }

    /// Handles bytes that no request asked for. If they may be a reply, then the replies on this
    /// connection can't be trusted to match its requests.
    fn on_surplus(&mut self, slot: u32) {
        let conn = self.wire.conns.get_mut(slot);
        if !is_surplus(conn.inbox.unread()) {
            conn.inbox.clear();
            return self.tidy_buffer(slot);
        }
        if matches!(conn.phase, Phase::Parked { .. }) {
            // A server may send status 408 before it closes an idle connection.
            return self.hang_up(slot);
        }
        if conn.visit.tally.replies == 0 {
            // This is a status 408 before an idle close too, but the next visit has just begun.
            return self.end_connection(slot, None, Close::Ours);
        }
        self.mismatched(slot, Mismatch::Surplus);
    }

    /// Reads as many replies as the buffer of a connection holds. `ended` says that no more bytes
    /// will arrive.
    fn read_replies(&mut self, slot: u32, ended: bool) {
        let stage = self.turn.enter(Stage::Http, 0);
        let id = self.wire.conns.id(slot);
        while self.wire.conns.knows(id) && !self.wire.conn(slot).flight.is_empty() {
            match self.read_step(slot, ended) {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) => {
                    self.on_broken_reply(slot, broken);
                    break;
                }
            }
        }
        if self.wire.conns.knows(id) {
            self.tidy_buffer(slot);
            self.wire.conns.arm(slot);
        }
        self.turn.back(stage);
    }

    /// Reads one event of the reply in progress: its head, a piece of its body, or its end. Returns
    /// whether there may be another event in the buffer.
    fn read_step(&mut self, slot: u32, ended: bool) -> Result<bool, Broken> {
        let Wire { conns, pool, keeps_framing, .. } = &mut self.wire;
        let conn = conns.get_mut(slot);
        let Incoming { reader, reply } = &mut conn.incoming;
        let bytes = conn.inbox.unread();
        let step = reader.read(bytes, ended)?;
        let used = &bytes[..step.used];
        let more = step.used > 0 || !matches!(step.event, Event::More);
        match step.event {
            Event::More => {
                let framed = reply.head_bytes > 0;
                if framed && !used.is_empty() {
                    reply.take_body(used, 0..0, *keeps_framing, pool);
                }
            }
            Event::Interim | Event::Blank => {}
            Event::Head => {
                let chunked = reader.head().framing == Framing::Chunked;
                reply.take_head(used, chunked, pool);
            }
            Event::Payload(range) => {
                reply.take_body(used, range, *keeps_framing, pool);
            }
            Event::End(_) => {
                if !used.is_empty() {
                    reply.take_body(used, 0..0, *keeps_framing, pool);
                }
                conn.inbox.read(step.used);
                self.replied(slot);
                return Ok(true);
            }
        }
        conn.inbox.read(step.used);
        Ok(more)
    }

    /// Processes a complete reply, that to the first request of the flight.
    fn replied(&mut self, slot: u32) {
        let now = self.turn.at();
        if self.is_swapped(slot) {
            return self.mismatched(slot, Mismatch::Swapped);
        }
        let surplus = self.has_surplus(slot);
        if surplus && self.wire.conn(slot).pipeline.is_deep() {
            return self.mismatched(slot, Mismatch::Surplus);
        }
        let conn = self.wire.conns.get_mut(slot);
        let head = conn.incoming.reader.head();
        let (status, persists) = (head.status, head.persists);
        let reply = pipeline::Reply {
            minor: head.minor,
            known_length: head.framing != Framing::Close,
            persists,
            keep_max: head.keep_max,
            body_bytes: conn.incoming.reader.payload_bytes(),
        };
        let learnt = &mut self.sites.get_mut(conn.server).learnt;
        let filing = conn.pipeline.replied(learnt, &self.settings.pipeline, &reply);
        let mut fetch = conn.finish_reply(now);
        conn.timeouts.begin(now);
        self.wire.pauses.end_turn(slot);
        let mut compares = filing == Filing::HoldAndCompare;
        match filing {
            Filing::Now => {
                if surplus {
                    fetch.notes.push(SURPLUS);
                    self.counts.cut(SURPLUS, 1);
                }
                self.complete_head(slot, fetch, Outcome::Status(status), false);
            }
            Filing::Hold | Filing::HoldAndCompare => self.hold(slot, fetch),
            Filing::Compare => match self.compare(slot, fetch) {
                Some(is_next) => compares = is_next,
                None => return,
            },
        }
        self.wire.conns.get_mut(slot).incoming.reader.begin();
        if !persists || self.is_overdrawn(slot) {
            let how = if persists { Close::Ours } else { Close::Ended };
            self.end_connection(slot, None, how);
        } else if surplus {
            self.on_surplus(slot);
        } else if compares {
            self.compare_one(slot);
        } else {
            self.fill(slot);
        }
    }

    /// Completes a fetch, which was the first of the flight, with what was received of its reply.
    fn complete_head(&mut self, slot: u32, fetch: Fetch, outcome: Outcome, connection_lost: bool) {
        let conn = self.wire.conns.get_mut(slot);
        let id = conn.server;
        let (reply, head) = conn.incoming.take();
        let whole = (reply.head_bytes > 0).then_some(&head);
        let ended = self.turn.at();
        let mut fetched = FinishedFetch { fetch, head: whole, reply, outcome, ended };
        let statements = self.open_reply(id, &mut fetched);
        self.judge_reply(slot, &fetched, connection_lost);
        self.file_fetch(slot, fetched, statements);
        self.wire.conns.get_mut(slot).incoming.reader.return_head(head);
    }

    /// Returns whether the reply to the first request of the flight seems to answer another
    /// request.
    fn is_swapped(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let mut flight = conn.flight.iter().map(|fetch| &*fetch.item.target);
        let Some(asked) = flight.next() else { return false };
        let behind: SmallVec<[&str; 8]> = flight.collect();
        if behind.is_empty() {
            return false;
        }
        let (head, bytes) = (conn.incoming.reader.head(), conn.incoming.reply.head());
        let signs = Signs {
            content_location: head.field(bytes, "content-location"),
            location: head.field(bytes, "location"),
            content_type: head.field(bytes, "content-type"),
        };
        suspicious(asked, &behind, &signs).is_some()
    }

    /// Handles a reply that can't be parsed further.
    fn on_broken_reply(&mut self, slot: u32, broken: Broken) {
        let outcome = match broken {
            Broken::HeadTooLarge | Broken::TooManyFields => Outcome::HeadTooLarge,
            Broken::NotHttp | Broken::Head(_) | Broken::TooManyInterim | Broken::Switched => {
                Outcome::MalformedHead
            }
            Broken::BodyTooLarge => Outcome::BodyTooLarge,
            Broken::NoReply => Outcome::ClosedEarly,
            Broken::HeadCut | Broken::BodyCut => Outcome::CutShort,
            Broken::Framing(_) | Broken::Chunk(_) => Outcome::MalformedFraming,
        };
        *self.counts.broken.entry(broken.name().into()).or_default() += 1;
        let conn = self.wire.conn(slot);
        if broken.is_no_reply()
            && conn.pipeline.replies() > 0
            && conn.incoming.reply.head_bytes == 0
        {
            // These are bytes behind the previous reply that arrived late.
            return self.mismatched(slot, Mismatch::Surplus);
        }
        if !matches!(broken, Broken::NoReply | Broken::BodyCut | Broken::BodyTooLarge) {
            self.keep_evidence(slot, Some(broken));
        }
        if outcome == Outcome::BodyTooLarge {
            return self.truncate_reply(slot);
        }
        let ended = matches!(broken, Broken::NoReply | Broken::HeadCut | Broken::BodyCut);
        let how = if ended { Close::Ended } else { Close::Broken };
        self.end_connection(slot, Some(outcome), how);
    }

    /// Keeps the bytes that show why a reply is refused, for the crawl log: those that could not be
    /// parsed, or the first ones of a complete reply.
    fn keep_evidence(&mut self, slot: u32, broken: Option<Broken>) {
        let conn = self.wire.conns.get_mut(slot);
        let came = if broken.is_some() { conn.inbox.unread() } else { &conn.incoming.reply.raw };
        let bytes = came[..came.len().min(EVIDENCE_BYTES_MAX)].escape_ascii().to_string();
        let detail = broken.and_then(Broken::detail).map(Cow::from);
        if let Some(fetch) = conn.flight.front_mut() {
            fetch.shown.evidence = Some(Box::new(Evidence { detail, bytes }));
        }
    }

    /// Ends a reply whose body has reached the limit: what was received is the reply, and the
    /// connection is closed.
    fn truncate_reply(&mut self, slot: u32) {
        let conn = self.wire.conns.get_mut(slot);
        let learnt = &self.sites.get(conn.server).learnt;
        if conn.pipeline.is_unproven(learnt, &self.settings.pipeline) {
            return self.end_connection(slot, None, Close::Ours);
        }
        conn.pipeline.kept_partial();
        let fetch = conn.finish_reply(self.turn.at());
        self.complete_head(slot, fetch, Outcome::BodyTooLarge, true);
        self.end_connection(slot, None, Close::Ours);
    }

    /// Handles a connection that the peer has ended, or that failed.
    pub(in crate::engine) fn take_closed(&mut self, slot: u32, reason: &CloseReason) {
        self.wire.peer_closed = true;
        match self.wire.conn(slot).phase {
            Phase::Connecting | Phase::Securing => {
                let id = self.wire.conn(slot).server;
                log::debug!("{}: {reason:?}", self.backlog.origin(id).as_str());
                self.connect_failed(slot, Outcome::of_close(reason, false));
            }
            Phase::Parked { .. } => {
                let conn = self.wire.conns.get_mut(slot);
                let learnt = &mut self.sites.get_mut(conn.server).learnt;
                conn.pipeline.closed(learnt, &self.settings.pipeline, Close::Ended, false);
                self.forget(slot);
            }
            Phase::Active => self.connection_ended(slot, reason),
        }
        self.wire.peer_closed = false;
    }

    /// Handles the end of a connection on a visit. If the connection was closed in order, the
    /// unread bytes may be a complete reply, or one whose end is that of the connection.
    fn connection_ended(&mut self, slot: u32, reason: &CloseReason) {
        let id = self.wire.conns.id(slot);
        let conn = self.wire.conn(slot);
        let until_close = conn.incoming.reply.head_bytes > 0
            && conn.incoming.reader.head().framing == Framing::Close;
        let cut = *reason == CloseReason::TlsCut && until_close;
        if matches!(reason, CloseReason::End | CloseReason::TlsCut) && !cut {
            self.read_replies(slot, true);
            if !self.wire.conns.knows(id) {
                return;
            }
        }
        let conn = self.wire.conn(slot);
        let outcome = Outcome::of_close(reason, conn.has_begun());
        let outcome = (!conn.flight.is_empty()).then_some(outcome);
        let in_order = matches!(reason, CloseReason::End | CloseReason::TlsCut);
        self.end_connection(slot, outcome, if in_order { Close::Ended } else { Close::Reset });
    }

    /// Handles a failed attempt to connect: tries the next address, or ends the visit.
    fn connect_failed(&mut self, slot: u32, outcome: Outcome) {
        let conn = self.forget(slot);
        self.next_address(conn.server, conn.peer.address.ip(), conn.peer.untried, outcome);
    }

    /// Ends a connection, which may have unanswered requests. `outcome` is the outcome of the first
    /// request of the flight; `None` if that request is not to blame for the end.
    pub(in crate::engine) fn end_connection(
        &mut self,
        slot: u32,
        outcome: Option<Outcome>,
        how: Close,
    ) {
        let outcome = outcome.map(|outcome| self.with_head(slot, outcome));
        let conn = self.wire.conn(slot);
        let learnt = &self.sites.get(conn.server).learnt;
        if let Some(short @ Outcome::Short(..)) = outcome
            && !conn.pipeline.blames_nobody(learnt, &self.settings.pipeline, how)
        {
            self.complete_short(slot, short, how);
            return self.end_connection(slot, None, how);
        }
        let conn = self.wire.conns.get_mut(slot);
        let (id, has_begun) = (conn.server, conn.has_begun());
        let learnt = &mut self.sites.get_mut(id).learnt;
        let was_barred = learnt.is_disabled();
        let leftover = conn.pipeline.closed(learnt, &self.settings.pipeline, how, has_begun);
        self.counts.unmatched += u64::from(learnt.is_disabled() && !was_barred);
        let mut flight = std::mem::take(&mut conn.flight);
        if conn.batch.is_comparing() {
            // The repeated request is dropped; the original one is among the held replies.
            flight.clear();
        }
        if leftover.blames_head
            && let Some(outcome) = outcome
            && let Some(mut fetch) = flight.pop_front()
        {
            if leftover.drops_head {
                fetch.item.tries = self.settings.retries.url_retries_max;
            }
            self.complete_head(slot, fetch, outcome, true);
        }
        self.counts.left_over += flight.len() as u64;
        for fetch in flight.into_iter().rev() {
            self.requeue(id, fetch);
        }
        self.put_back(slot);
        let reply = std::mem::take(&mut self.wire.conns.get_mut(slot).incoming.reply);
        self.wire.release(reply);
        let visit = self.wire.conn(slot).visit;
        if self.wire.peer_closed {
            self.forget(slot);
        } else {
            self.hang_up(slot);
        }
        self.finish_visit(id, &visit);
    }

    /// Returns the outcome of the first fetch of the flight if its reply ends with `outcome`.
    fn with_head(&self, slot: u32, outcome: Outcome) -> Outcome {
        let conn = self.wire.conn(slot);
        if conn.incoming.reply.head_bytes == 0 || conn.flight.is_empty() {
            return outcome;
        }
        outcome.with_head(
            conn.incoming.reader.head().status,
            !conn.incoming.reply.payload().is_empty(),
        )
    }

    /// Completes a fetch whose reply has a body that ended early: what was received is kept.
    fn complete_short(&mut self, slot: u32, short: Outcome, how: Close) {
        let conn = self.wire.conns.get_mut(slot);
        let learnt = &mut self.sites.get_mut(conn.server).learnt;
        conn.pipeline.cut(learnt, &self.settings.pipeline, how);
        let fetch = conn.finish_reply(self.turn.at());
        // A server that became silent may be unreachable now, so it doesn't count as recovered.
        self.complete_head(slot, fetch, short, short.is_timeout());
    }

    /// Puts a URL whose request got no answer back to the front of its queue.
    pub(in crate::engine) fn requeue(&mut self, id: crate::frontier::ServerId, fetch: Fetch) {
        match fetch.item.purpose {
            Purpose::Robots(of, 0) if of == id => self.forget_robots_request(of),
            Purpose::Robots(..) if *fetch.item.target == *ROBOTS_TXT => {
                self.forget_robots_request(id);
                self.backlog.give_back(id, &fetch.item);
            }
            _ => self.backlog.give_back(id, &fetch.item),
        }
    }

    /// Handles a connection whose deadline has passed.
    pub(in crate::engine) fn timed_out(&mut self, slot: u32) {
        let conn = self.wire.conn(slot);
        let outcome = match conn.phase {
            Phase::Parked { .. } => return self.hang_up(slot),
            Phase::Connecting => Outcome::ConnectTimedOut,
            Phase::Securing => Outcome::TlsTimedOut,
            Phase::Active => {
                let settings = &self.settings.connections;
                let whole = conn.timeouts.since + settings.fetch_timeout <= self.turn.at();
                let outcome = match conn.incoming.reply.head_bytes {
                    _ if whole => Outcome::FetchTimedOut,
                    0 => Outcome::HeadTimedOut,
                    _ => Outcome::BodyTimedOut,
                };
                return self.end_connection(slot, Some(outcome), Close::Overdue);
            }
        };
        self.turn.act(Action::Close(self.wire.conns.id(slot)));
        self.connect_failed(slot, outcome);
    }

    /// Ends a connection on which nothing more may be sent, whether or not a visit uses it.
    #[cfg(feature = "cluster")]
    pub(in crate::engine) fn drop_connection(&mut self, slot: u32) {
        match self.wire.conn(slot).phase {
            Phase::Parked { .. } => self.hang_up(slot),
            _ => self.end_connection(slot, None, Close::Ours),
        }
    }

    /// Returns the receive buffer of a connection to the pool if no byte in it is unread.
    fn tidy_buffer(&mut self, slot: u32) {
        let Wire { conns, pool, .. } = &mut self.wire;
        conns.get_mut(slot).inbox.free_if_read(pool);
    }

    /// Returns whether another try of a URL follows this failed one.
    pub(in crate::engine) fn tries_left(&self, fetch: &Fetch, outcome: Outcome) -> bool {
        if fetch.item.is_robots() {
            return false;
        }
        // A short reply may be complete the second time. A redirect can be followed without its
        // body. A signature is asked for once.
        let again = match outcome {
            Outcome::SignatureAsked(_) => return true,
            Outcome::Short(300..=399, _) => false,
            Outcome::Short(..) if fetch.item.tries < self.settings.retries.short_retries_max => {
                true
            }
            outcome => outcome.verdict().url == UrlFate::Retry,
        };
        again && fetch.item.tries < self.settings.retries.url_retries_max
    }
}
