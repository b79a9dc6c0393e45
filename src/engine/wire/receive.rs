//! Bytes in: from the world's buffer to whole replies, and what happens when a connection ends.

use super::Wire;
use super::conn::{Incoming, Phase};
use super::fetch::{Evidence, Fetch, Fetched};
use super::held::{Compared, Sign};
use crate::engine::Engine;
use crate::engine::backlog::{Purpose, ROBOTS_TXT};
use crate::engine::contract::{Action, CloseReason, ConnId, Space};
use crate::engine::ledger::Work;
use crate::engine::outcome::{Outcome, UrlFate};
use crate::ground::stats::Stage;
use crate::http::pipeline::{self, Close, Filing, Signs, suspicious};
use crate::http::response::{Broken, Event, Framing, is_surplus};
use smallvec::SmallVec;
use std::time::Duration;

/// What a byte of a TLS handshake costs: it may be a record of its own.
const SECURED_BYTE_UNITS: usize = 4;
/// What the keys and certificates of a full handshake cost, some 200 microseconds.
pub(super) const SECURED_UNITS: usize = 64 << 10;
/// Annotation of a reply that had bytes behind it which nobody asked for.
pub(in crate::engine) const SURPLUS: &str = "surplus";
/// A connection that may read past the budget loses that right by so much silence.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

impl Engine {
    /// Room for bytes of a connection, or why there is none now.
    pub(in crate::engine) fn room_for(&mut self, id: ConnId) -> Space<'_> {
        if !self.wire.conns.knows(id) {
            self.counts.late_events += 1;
            return Space::Gone;
        }
        if self.must_pause(id.slot) {
            self.pause(id.slot);
            return Space::Paused;
        }
        let Wire { conns, pool, .. } = &mut self.wire;
        Space::Room(conns.at(id.slot).inbox.space(pool))
    }

    /// Over the budget every connection must wait but one that holds bytes already: finishing
    /// its reply is what gives memory back.
    fn must_pause(&mut self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        if conn.patience.paused.is_some() {
            return true;
        }
        let parked = matches!(conn.phase, Phase::Parked { .. });
        if parked || !self.wire.pool.is_over() || self.wire.privileged == Some(slot) {
            return false;
        }
        if conn.holds() && self.is_privilege_free() {
            self.wire.privileged = Some(slot);
            return false;
        }
        true
    }

    /// A TLS handshake holds so many bytes now. They count like those of replies: past the budget
    /// it waits, and in the end its time-out frees them.
    pub(in crate::engine) fn hold_handshake(&mut self, slot: u32, bytes: usize) {
        let held = &mut self.wire.conns.at(slot).peer.handshake_bytes;
        let before = std::mem::replace(held, bytes);
        self.turn.charge(Work::Secured, SECURED_BYTE_UNITS * bytes.saturating_sub(before));
        self.wire.pool.discharge(before);
        self.wire.pool.charge(bytes);
        if bytes > before && self.wire.pool.is_over() {
            self.pause(slot);
        }
    }

    /// Whether nobody has the privilege, or who has it makes nothing of it.
    fn is_privilege_free(&self) -> bool {
        self.wire
            .privileged
            .is_none_or(|slot| self.wire.conn(slot).patience.heard + SILENCE_MAX <= self.turn.at())
    }

    fn pause(&mut self, slot: u32) {
        let now = self.turn.at();
        let patience = &mut self.wire.conns.at(slot).patience;
        if patience.paused.is_none() {
            patience.paused = Some(now);
            self.wire.paused.push(slot);
            self.counts.pauses += 1;
            self.turn.act(Action::Pause(self.wire.conns.id(slot)));
        }
    }

    /// Lets paused connections go on: all if there is room, else one that holds bytes.
    pub(in crate::engine) fn resume(&mut self) {
        if self.wire.paused.is_empty() {
            return;
        }
        if self.wire.pool.is_roomy() {
            for slot in std::mem::take(&mut self.wire.paused) {
                self.unpause(slot);
            }
        } else if self.is_privilege_free()
            && let Some(place) = self.wire.paused.iter().position(|&slot| self.holds_bytes(slot))
        {
            let slot = self.wire.paused.remove(place);
            self.wire.privileged = Some(slot);
            self.unpause(slot);
        }
    }

    fn holds_bytes(&self, slot: u32) -> bool {
        self.wire.conn(slot).holds()
    }

    fn unpause(&mut self, slot: u32) {
        self.wire.conns.at(slot).patience.resume(self.turn.at());
        self.turn.act(Action::Resume(self.wire.conns.id(slot)));
        self.wire.conns.arm(slot);
    }

    /// `bytes` more are in the room that was given.
    pub(in crate::engine) fn take_received(&mut self, slot: u32, bytes: usize) {
        let now = self.turn.at();
        if bytes == 0 {
            return self.tidy_buffer(slot);
        }
        self.counts.received_bytes += bytes as u64;
        self.turn.charge(Work::Received, bytes);
        let conn = self.wire.conns.at(slot);
        conn.inbox.received(bytes);
        conn.patience.heard = now;
        let unasked = conn.flight.len() <= conn.outbox.unsent() && conn.pipeline.replies() > 0;
        if conn.flight.is_empty() || unasked {
            // Nobody asked: whatever this is, the connection is not to be trusted.
            return self.unasked(slot);
        }
        self.read_replies(slot, false);
    }

    /// Bytes without a request: a reply too many means that replies and requests don't match.
    fn unasked(&mut self, slot: u32) {
        let conn = self.wire.conns.at(slot);
        if !is_surplus(conn.inbox.unread()) {
            conn.inbox.clear();
            return self.tidy_buffer(slot);
        }
        if matches!(conn.phase, Phase::Parked { .. }) {
            // A 408 before an idle close, say.
            return self.hang_up(slot);
        }
        if conn.visit.tally.replies == 0 {
            // The same, just as the next visit began.
            return self.lost(slot, None, Close::Ours);
        }
        self.mismatched(slot, Sign::Surplus);
    }

    /// Reads as many replies as the buffer holds. `ended`: nothing more will come.
    fn read_replies(&mut self, slot: u32, ended: bool) {
        let stage = self.turn.enter(Stage::Http, 0);
        let id = self.wire.conns.id(slot);
        while self.wire.conns.knows(id) && !self.wire.conn(slot).flight.is_empty() {
            match self.read_step(slot, ended) {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) => {
                    self.broken(slot, broken);
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

    /// One event of the reply under way; whether there may be another.
    fn read_step(&mut self, slot: u32, ended: bool) -> Result<bool, Broken> {
        let Wire { conns, pool, keeps_framing, .. } = &mut self.wire;
        let conn = conns.at(slot);
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

    /// The reply at the head of the flight is whole.
    fn replied(&mut self, slot: u32) {
        let now = self.turn.at();
        if self.is_swapped(slot) {
            return self.mismatched(slot, Sign::Swapped);
        }
        let surplus = self.has_surplus(slot);
        if surplus && self.wire.conn(slot).pipeline.is_deep() {
            return self.mismatched(slot, Sign::Surplus);
        }
        let conn = self.wire.conns.at(slot);
        let head = conn.incoming.reader.head();
        let (status, persists) = (head.status, head.persists);
        let reply = pipeline::Reply {
            minor: head.minor,
            known_length: head.framing != Framing::Close,
            persists,
            keep_max: head.keep_max,
            body_bytes: conn.incoming.reader.payload_bytes(),
        };
        let learnt = &mut self.sites.at(conn.server).learnt;
        let filing = conn.pipeline.replied(learnt, &self.settings.pipeline, &reply);
        conn.count_reply(now);
        conn.patience.begin(now);
        let mut fetch = conn.flight.pop_front().expect("a reply has its request");
        self.wire.privileged = self.wire.privileged.filter(|privileged| *privileged != slot);
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
                Compared::Differs => return,
                compared => compares = compared == Compared::Half,
            },
        }
        self.wire.conns.at(slot).incoming.reader.begin();
        if !persists || self.is_overdrawn(slot) {
            let how = if persists { Close::Ours } else { Close::Ended };
            self.lost(slot, None, how);
        } else if surplus {
            self.unasked(slot);
        } else if compares {
            self.compare_one(slot);
        } else {
            self.fill(slot);
        }
    }

    /// Settles the request that was at the head of the flight, with what has come of its reply.
    fn complete_head(&mut self, slot: u32, fetch: Fetch, outcome: Outcome, connection_lost: bool) {
        let conn = self.wire.conns.at(slot);
        let (reply, head) = conn.incoming.take();
        let whole = (reply.head_bytes > 0).then_some(&head);
        let fetched = Fetched { fetch, head: whole, reply, outcome, ended: self.turn.at() };
        self.complete(slot, fetched, connection_lost);
        self.wire.conns.at(slot).incoming.reader.return_head(head);
    }

    /// Whether the reply at the head seems to be another request's.
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

    /// A reply that can't be read on.
    fn broken(&mut self, slot: u32, broken: Broken) {
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
        self.counts.broken(broken.name());
        let conn = self.wire.conn(slot);
        if broken.is_no_reply()
            && conn.pipeline.replies() > 0
            && conn.incoming.reply.head_bytes == 0
        {
            // What was left behind the reply before, come late.
            return self.mismatched(slot, Sign::Surplus);
        }
        if !matches!(broken, Broken::NoReply | Broken::BodyCut | Broken::BodyTooLarge) {
            self.keep_evidence(slot, Some(broken));
        }
        if outcome == Outcome::BodyTooLarge {
            return self.cut_off(slot);
        }
        let ended = matches!(broken, Broken::NoReply | Broken::HeadCut | Broken::BodyCut);
        let how = if ended { Close::Ended } else { Close::Broken };
        self.lost(slot, Some(outcome), how);
    }

    /// Keeps what shows why the reply at the head of the flight is refused: the bytes that could
    /// not be read, or the first ones of a reply that is whole.
    fn keep_evidence(&mut self, slot: u32, broken: Option<Broken>) {
        let conn = self.wire.conns.at(slot);
        let came = if broken.is_some() { conn.inbox.unread() } else { &conn.incoming.reply.raw };
        let evidence = Evidence::new(broken.and_then(Broken::detail), came);
        if let Some(fetch) = conn.flight.front_mut() {
            fetch.evidence = Some(Box::new(evidence));
        }
    }

    /// The body has reached the cap: what came is the reply, and the rest is not worth waiting for.
    fn cut_off(&mut self, slot: u32) {
        let now = self.turn.at();
        let conn = self.wire.conns.at(slot);
        let learnt = &self.sites.look(conn.server).learnt;
        if conn.pipeline.is_unproven(learnt, &self.settings.pipeline) {
            return self.lost(slot, None, Close::Ours);
        }
        conn.pipeline.kept_partial();
        conn.count_reply(now);
        let fetch = conn.flight.pop_front().expect("a reply has its request");
        self.complete_head(slot, fetch, Outcome::BodyTooLarge, true);
        self.lost(slot, None, Close::Ours);
    }

    /// The world says that a connection has ended.
    pub(in crate::engine) fn take_closed(&mut self, slot: u32, reason: &CloseReason) {
        self.wire.peer_closed = true;
        match self.wire.conn(slot).phase {
            Phase::Connecting | Phase::Securing => self.never_stood(slot, reason),
            Phase::Parked { .. } => {
                let conn = self.wire.conns.at(slot);
                let learnt = &mut self.sites.at(conn.server).learnt;
                conn.pipeline.closed(learnt, &self.settings.pipeline, Close::Ended, false);
                self.forget(slot);
            }
            Phase::Active => self.ended(slot, reason),
        }
        self.wire.peer_closed = false;
    }

    /// A connection on a visit has ended. In order: what is unread may be a whole reply, or one
    /// that ends with the connection.
    fn ended(&mut self, slot: u32, reason: &CloseReason) {
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
        self.lost(slot, outcome, if in_order { Close::Ended } else { Close::Reset });
    }

    /// A connection attempt failed: the next address is tried, or the visit has failed.
    pub(in crate::engine) fn never_stood(&mut self, slot: u32, reason: &CloseReason) {
        let conn = self.forget(slot);
        let outcome = Outcome::of_close(reason, false);
        let id = conn.server;
        log::debug!("{}: {reason:?}", self.backlog.origin(id).as_str());
        self.next_address(id, conn.peer.address.ip(), conn.peer.untried, outcome);
    }

    /// Ends a connection that has requests unanswered, or none. `outcome` is that of the request
    /// at the head of the flight, should the fault be its.
    pub(in crate::engine) fn lost(&mut self, slot: u32, outcome: Option<Outcome>, how: Close) {
        let outcome = outcome.map(|outcome| self.with_head(slot, outcome));
        let conn = self.wire.conn(slot);
        let learnt = &self.sites.look(conn.server).learnt;
        if let Some(short @ Outcome::Short(..)) = outcome
            && !conn.pipeline.blames_nobody(learnt, &self.settings.pipeline, how)
        {
            self.cut_short(slot, short, how);
            return self.lost(slot, None, how);
        }
        let conn = self.wire.conns.at(slot);
        let (id, has_begun) = (conn.server, conn.has_begun());
        let learnt = &mut self.sites.at(id).learnt;
        let was_barred = learnt.is_disabled();
        let leftover = conn.pipeline.closed(learnt, &self.settings.pipeline, how, has_begun);
        self.counts.unmatched += u64::from(learnt.is_disabled() && !was_barred);
        let mut flight = std::mem::take(&mut conn.flight);
        if conn.batch.is_comparing() {
            // The repeat: what it repeats is held.
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
            self.unsend(id, fetch);
        }
        self.put_back(slot);
        let reply = std::mem::take(&mut self.wire.conns.at(slot).incoming.reply);
        self.wire.release(reply);
        let visit = self.wire.conn(slot).visit;
        if self.wire.peer_closed {
            self.forget(slot);
        } else {
            self.hang_up(slot);
        }
        self.finish_visit(id, &visit);
    }

    /// What the reply at the head of the flight comes to if it ends with this outcome.
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

    /// The body of the reply at the head of the flight has ended early: what came is the reply.
    fn cut_short(&mut self, slot: u32, short: Outcome, how: Close) {
        let now = self.turn.at();
        let conn = self.wire.conns.at(slot);
        let learnt = &mut self.sites.at(conn.server).learnt;
        conn.pipeline.cut(learnt, &self.settings.pipeline, how);
        conn.count_reply(now);
        let fetch = conn.flight.pop_front().expect("a reply has its request");
        // A server that fell silent may be out of reach by now: it has not recovered.
        self.complete_head(slot, fetch, short, short.is_timeout());
    }

    /// A request that got no answer goes back to where it was.
    pub(in crate::engine) fn unsend(&mut self, id: crate::frontier::ServerId, fetch: Fetch) {
        match fetch.item.purpose {
            Purpose::Robots(of, 0) if of == id => self.robots_again(of),
            Purpose::Robots(..) if *fetch.item.target == *ROBOTS_TXT => {
                self.robots_again(id);
                self.backlog.give_back(id, &fetch.item);
            }
            _ => self.backlog.give_back(id, &fetch.item),
        }
    }

    /// Patience has ended with a connection.
    pub(in crate::engine) fn timed_out(&mut self, slot: u32) {
        let conn = self.wire.conn(slot);
        match conn.phase {
            Phase::Parked { .. } => self.hang_up(slot),
            Phase::Connecting | Phase::Securing => {
                let outcome = if conn.phase == Phase::Connecting {
                    Outcome::ConnectTimedOut
                } else {
                    Outcome::TlsTimedOut
                };
                self.turn.act(Action::Close(self.wire.conns.id(slot)));
                let conn = self.forget(slot);
                self.next_address(conn.server, conn.peer.address.ip(), conn.peer.untried, outcome);
            }
            Phase::Active => {
                let settings = &self.settings.connections;
                let whole = conn.patience.since + settings.fetch_timeout <= self.turn.at();
                let outcome = if whole {
                    Outcome::FetchTimedOut
                } else if conn.incoming.reply.head_bytes > 0 {
                    Outcome::BodyTimedOut
                } else {
                    Outcome::HeadTimedOut
                };
                self.lost(slot, Some(outcome), Close::Overdue);
            }
        }
    }

    /// An unread rest stays; an empty buffer goes back.
    fn tidy_buffer(&mut self, slot: u32) {
        let Wire { conns, pool, .. } = &mut self.wire;
        conns.at(slot).inbox.tidy(pool);
    }

    /// Whether a failed try of this URL is followed by another.
    pub(in crate::engine) fn tries_left(&self, fetch: &Fetch, outcome: Outcome) -> bool {
        if fetch.item.is_robots() {
            return false;
        }
        // A short reply may be whole the second time; a redirect leads on without its body.
        let again = match outcome {
            Outcome::Short(300..=399, _) => false,
            Outcome::Short(..) if fetch.item.tries < self.settings.retries.short_retries_max => {
                true
            }
            outcome => outcome.verdict().url == UrlFate::Retry,
        };
        again && fetch.item.tries < self.settings.retries.url_retries_max
    }
}
