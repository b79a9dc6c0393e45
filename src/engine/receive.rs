//! Bytes in: from the world's buffer to whole replies, and what happens when a connection ends.

use super::Engine;
use super::backlog::Purpose;
use super::conn::Phase;
use super::contract::{Action, CloseReason, ConnId, Space};
use super::fetch::{Evidence, Fetch, Fetched};
use super::held::{Compared, Sign};
use super::ledger::Work;
use super::outcome::{Outcome, UrlFate};
use super::robots::is_file;
use crate::ground::stats::Stage;
use crate::http::pipeline::{self, Close, Filing, Signs, suspicious};
use crate::http::response::{Broken, Event, Framing, is_surplus};
use smallvec::SmallVec;
use std::time::Duration;

/// What a byte of a TLS handshake costs: it may be a record of its own.
const SECURED_BYTE_UNITS: usize = 4;
/// What the keys and certificates of a full handshake cost, some 200 microseconds.
pub(super) const SECURED_UNITS: usize = 64 << 10;
/// Less room than this at the end of a buffer is made more by moving what is unread to its front.
const ROOM_MIN: usize = 16 << 10;
/// Annotation of a reply that had bytes behind it which nobody asked for.
pub(super) const SURPLUS: &str = "surplus";
/// A connection that may read past the budget loses that right by so much silence.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

impl Engine {
    /// Room for bytes of a connection, or why there is none now.
    pub(super) fn room_for(&mut self, id: ConnId) -> Space<'_> {
        if !self.conns.knows(id) {
            self.counts.late_events += 1;
            return Space::Gone;
        }
        if self.must_pause(id.slot) {
            self.pause(id.slot);
            return Space::Paused;
        }
        let conn = self.conns.at(id.slot);
        let buffer = conn.buffer.get_or_insert_with(|| self.pool.buffer());
        if buffer.len() - conn.end < ROOM_MIN && conn.start > 0 {
            buffer.copy_within(conn.start..conn.end, 0);
            conn.end -= conn.start;
            conn.start = 0;
        }
        Space::Room(&mut buffer[conn.end..])
    }

    /// Over the budget every connection must wait but one that holds bytes already: finishing
    /// its reply is what gives memory back.
    fn must_pause(&mut self, slot: u32) -> bool {
        let conn = self.conns.look(slot);
        if conn.paused {
            return true;
        }
        let parked = matches!(conn.phase, Phase::Parked { .. });
        if parked || !self.pool.is_over() || self.privileged == Some(slot) {
            return false;
        }
        if conn.holds() && self.is_privilege_free() {
            self.privileged = Some(slot);
            return false;
        }
        true
    }

    /// A TLS handshake holds so many bytes now. They count like those of replies: past the budget
    /// it waits, and in the end its time-out frees them.
    pub(super) fn hold_handshake(&mut self, slot: u32, bytes: usize) {
        let held = &mut self.conns.at(slot).handshake_bytes;
        let before = std::mem::replace(held, bytes);
        self.turn.charge(Work::Secured, SECURED_BYTE_UNITS * bytes.saturating_sub(before));
        self.pool.discharge(before);
        self.pool.charge(bytes);
        if bytes > before && self.pool.is_over() {
            self.pause(slot);
        }
    }

    /// Whether nobody has the privilege, or who has it makes nothing of it.
    fn is_privilege_free(&self) -> bool {
        self.privileged
            .is_none_or(|slot| self.conns.look(slot).heard + SILENCE_MAX <= self.turn.at())
    }

    fn pause(&mut self, slot: u32) {
        let now = self.turn.at();
        let conn = self.conns.at(slot);
        if !std::mem::replace(&mut conn.paused, true) {
            conn.paused_at = now;
            self.paused.push(slot);
            self.counts.pauses += 1;
            self.turn.act(Action::Pause(self.conns.id(slot)));
        }
    }

    /// Lets paused connections go on: all if there is room, else one that holds bytes.
    pub(super) fn resume(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        if self.pool.is_roomy() {
            for slot in std::mem::take(&mut self.paused) {
                self.unpause(slot);
            }
        } else if self.is_privilege_free()
            && let Some(place) = self.paused.iter().position(|&slot| self.holds_bytes(slot))
        {
            let slot = self.paused.remove(place);
            self.privileged = Some(slot);
            self.unpause(slot);
        }
    }

    fn holds_bytes(&self, slot: u32) -> bool {
        self.conns.look(slot).holds()
    }

    fn unpause(&mut self, slot: u32) {
        let now = self.turn.at();
        let conn = self.conns.at(slot);
        conn.paused = false;
        // The time we did not read is not the server's.
        conn.since = conn.since + now.since(conn.paused_at);
        conn.heard = now;
        self.turn.act(Action::Resume(self.conns.id(slot)));
        self.conns.arm(slot);
    }

    /// `bytes` more are in the room that was given.
    pub(super) fn take_received(&mut self, slot: u32, bytes: usize) {
        let now = self.turn.at();
        if bytes == 0 {
            return self.tidy_buffer(slot);
        }
        self.counts.received_bytes += bytes as u64;
        self.turn.charge(Work::Received, bytes);
        let conn = self.conns.at(slot);
        conn.end += bytes;
        conn.heard = now;
        assert!(
            conn.buffer.as_ref().is_some_and(|buffer| conn.end <= buffer.len()),
            "no more bytes are received than there was room for"
        );
        let unasked = conn.flight.len() <= conn.unsent && conn.pipeline.replies() > 0;
        if conn.flight.is_empty() || unasked {
            // Nobody asked: whatever this is, the connection is not to be trusted.
            return self.unasked(slot);
        }
        self.read_replies(slot, false);
    }

    /// Bytes without a request: a reply too many means that replies and requests don't match.
    fn unasked(&mut self, slot: u32) {
        let conn = self.conns.at(slot);
        if !is_surplus(conn.unread()) {
            conn.start = conn.end;
            return self.tidy_buffer(slot);
        }
        if matches!(conn.phase, Phase::Parked { .. }) {
            // A 408 before an idle close, say.
            return self.hang_up(slot);
        }
        if conn.visit.replies == 0 {
            // The same, just as the next visit began.
            return self.lost(slot, None, Close::Ours);
        }
        self.mismatched(slot, Sign::Surplus);
    }

    /// Reads as many replies as the buffer holds. `ended`: nothing more will come.
    fn read_replies(&mut self, slot: u32, ended: bool) {
        let stage = self.turn.enter(Stage::Http, 0);
        let id = self.conns.id(slot);
        while self.conns.knows(id) && !self.conns.look(slot).flight.is_empty() {
            match self.read_step(slot, ended) {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) => {
                    self.broken(slot, broken);
                    break;
                }
            }
        }
        if self.conns.knows(id) {
            self.tidy_buffer(slot);
            self.conns.arm(slot);
        }
        self.turn.back(stage);
    }

    /// One event of the reply under way; whether there may be another.
    fn read_step(&mut self, slot: u32, ended: bool) -> Result<bool, Broken> {
        let framing_wanted = self.framing_wanted;
        let conn = self.conns.at(slot);
        let bytes = conn.buffer.as_ref().map_or(&[][..], |buffer| &buffer[conn.start..conn.end]);
        let step = conn.reader.read(bytes, ended)?;
        let used = &bytes[..step.used];
        let more = step.used > 0 || !matches!(step.event, Event::More);
        match step.event {
            Event::More => {
                let framed = conn.reply.head_bytes > 0;
                if framed && !used.is_empty() {
                    conn.reply.take_body(used, 0..0, framing_wanted, &mut self.pool);
                }
            }
            Event::Interim | Event::Blank => {}
            Event::Head => {
                let chunked = conn.reader.head().framing == Framing::Chunked;
                conn.reply.take_head(used, chunked, &mut self.pool);
            }
            Event::Payload(range) => {
                conn.reply.take_body(used, range, framing_wanted, &mut self.pool);
            }
            Event::End(_) => {
                if !used.is_empty() {
                    conn.reply.take_body(used, 0..0, framing_wanted, &mut self.pool);
                }
                conn.start += step.used;
                self.replied(slot);
                return Ok(true);
            }
        }
        conn.start += step.used;
        Ok(more)
    }

    /// The reply at the head of the flight is whole.
    fn replied(&mut self, slot: u32) {
        let now = self.turn.at();
        if self.is_swapped(slot) {
            return self.mismatched(slot, Sign::Swapped);
        }
        let surplus = self.has_surplus(slot);
        if surplus && self.conns.look(slot).pipeline.is_deep() {
            return self.mismatched(slot, Sign::Surplus);
        }
        let conn = self.conns.at(slot);
        let head = conn.reader.head();
        let (status, persists) = (head.status, head.persists);
        let reply = pipeline::Reply {
            minor: head.minor,
            known_length: head.framing != Framing::Close,
            persists,
            keep_max: head.keep_max,
            body_bytes: conn.reader.payload_bytes(),
        };
        let learnt = &mut self.sites.at(conn.server).learnt;
        let filing = conn.pipeline.replied(learnt, &self.settings.pipeline, &reply);
        conn.visit.replies += 1;
        conn.visit.response_time += now.since(conn.since);
        conn.since = now;
        conn.heard = now;
        let mut fetch = conn.flight.pop_front().expect("a reply has its request");
        self.privileged = self.privileged.filter(|privileged| *privileged != slot);
        let mut compares = filing == Filing::HoldAndCompare;
        match filing {
            Filing::Now => {
                if surplus {
                    fetch.notes.push(SURPLUS);
                    self.counts.cut(SURPLUS, 1);
                }
                self.settle_head(slot, fetch, Outcome::Status(status), false);
            }
            Filing::Hold | Filing::HoldAndCompare => self.hold(slot, fetch),
            Filing::Compare => match self.compare(slot, fetch) {
                Compared::Differs => return,
                compared => compares = compared == Compared::Half,
            },
        }
        self.conns.at(slot).reader.begin();
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
    fn settle_head(&mut self, slot: u32, fetch: Fetch, outcome: Outcome, connection_lost: bool) {
        let conn = self.conns.at(slot);
        let reply = std::mem::take(&mut conn.reply);
        let head = conn.reader.lend_head();
        let whole = (reply.head_bytes > 0).then_some(&head);
        let fetched = Fetched { fetch, head: whole, reply, outcome, ended: self.turn.at() };
        self.settle(slot, fetched, connection_lost);
        self.conns.at(slot).reader.return_head(head);
    }

    /// Whether the reply at the head seems to be another request's.
    fn is_swapped(&self, slot: u32) -> bool {
        let conn = self.conns.look(slot);
        let mut flight = conn.flight.iter().map(|fetch| &*fetch.item.target);
        let Some(asked) = flight.next() else { return false };
        let behind: SmallVec<[&str; 8]> = flight.collect();
        if behind.is_empty() {
            return false;
        }
        let (head, bytes) = (conn.reader.head(), conn.reply.head());
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
        let conn = self.conns.look(slot);
        if broken.is_no_reply() && conn.pipeline.replies() > 0 && conn.reply.head_bytes == 0 {
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
        let conn = self.conns.at(slot);
        let came = if broken.is_some() { conn.unread() } else { &conn.reply.raw };
        let evidence = Evidence::new(broken.and_then(Broken::detail), came);
        if let Some(fetch) = conn.flight.front_mut() {
            fetch.evidence = Some(Box::new(evidence));
        }
    }

    /// The body has reached the cap: what came is the reply, and the rest is not worth waiting for.
    fn cut_off(&mut self, slot: u32) {
        let now = self.turn.at();
        let conn = self.conns.at(slot);
        let learnt = &self.sites.look(conn.server).learnt;
        if conn.pipeline.is_unproven(learnt, &self.settings.pipeline) {
            return self.lost(slot, None, Close::Ours);
        }
        conn.pipeline.kept_partial();
        conn.visit.replies += 1;
        conn.visit.response_time += now.since(conn.since);
        let fetch = conn.flight.pop_front().expect("a reply has its request");
        self.settle_head(slot, fetch, Outcome::BodyTooLarge, true);
        self.lost(slot, None, Close::Ours);
    }

    /// The world says that a connection has ended.
    pub(super) fn take_closed(&mut self, slot: u32, reason: &CloseReason) {
        self.peer_closed = true;
        match self.conns.look(slot).phase {
            Phase::Connecting | Phase::Securing => self.never_stood(slot, reason),
            Phase::Parked { .. } => {
                let conn = self.conns.at(slot);
                let learnt = &mut self.sites.at(conn.server).learnt;
                conn.pipeline.closed(learnt, &self.settings.pipeline, Close::Ended, false);
                self.forget(slot);
            }
            Phase::Active => self.ended(slot, reason),
        }
        self.peer_closed = false;
    }

    /// A connection on a visit has ended. In order: what is unread may be a whole reply, or one
    /// that ends with the connection.
    fn ended(&mut self, slot: u32, reason: &CloseReason) {
        let id = self.conns.id(slot);
        let conn = self.conns.look(slot);
        let until_close = conn.reply.head_bytes > 0 && conn.reader.head().framing == Framing::Close;
        let cut = *reason == CloseReason::TlsCut && until_close;
        if matches!(reason, CloseReason::End | CloseReason::TlsCut) && !cut {
            self.read_replies(slot, true);
            if !self.conns.knows(id) {
                return;
            }
        }
        let conn = self.conns.look(slot);
        let outcome = Outcome::of_close(reason, conn.has_begun());
        let outcome = (!conn.flight.is_empty()).then_some(outcome);
        let in_order = matches!(reason, CloseReason::End | CloseReason::TlsCut);
        self.lost(slot, outcome, if in_order { Close::Ended } else { Close::Reset });
    }

    /// A connection attempt failed: the next address is tried, or the visit has failed.
    pub(super) fn never_stood(&mut self, slot: u32, reason: &CloseReason) {
        let conn = self.forget(slot);
        let outcome = Outcome::of_close(reason, false);
        let id = conn.server;
        log::debug!("{}: {reason:?}", self.frontier.origin(id).as_str());
        self.next_address(id, conn.address.ip(), conn.untried, outcome);
    }

    /// Ends a connection that has requests unanswered, or none. `outcome` is that of the request
    /// at the head of the flight, should the fault be its.
    pub(super) fn lost(&mut self, slot: u32, outcome: Option<Outcome>, how: Close) {
        let outcome = outcome.map(|outcome| self.with_head(slot, outcome));
        let conn = self.conns.look(slot);
        let learnt = &self.sites.look(conn.server).learnt;
        if let Some(short @ Outcome::Short(..)) = outcome
            && !conn.pipeline.blames_nobody(learnt, &self.settings.pipeline, how)
        {
            self.cut_short(slot, short, how);
            return self.lost(slot, None, how);
        }
        let conn = self.conns.at(slot);
        let (id, has_begun) = (conn.server, conn.has_begun());
        let learnt = &mut self.sites.at(id).learnt;
        let was_barred = learnt.is_barred();
        let leftover = conn.pipeline.closed(learnt, &self.settings.pipeline, how, has_begun);
        self.counts.unmatched += u64::from(learnt.is_barred() && !was_barred);
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
            self.settle_head(slot, fetch, outcome, true);
        }
        self.counts.left_over += flight.len() as u64;
        for fetch in flight.into_iter().rev() {
            self.unsend(id, fetch);
        }
        self.put_back(slot);
        let reply = std::mem::take(&mut self.conns.at(slot).reply);
        reply.release(&mut self.pool);
        let visit = self.conns.look(slot).visit;
        if self.peer_closed {
            self.forget(slot);
        } else {
            self.hang_up(slot);
        }
        self.finish_visit(id, &visit);
    }

    /// What the reply at the head of the flight comes to if it ends with this outcome.
    fn with_head(&self, slot: u32, outcome: Outcome) -> Outcome {
        let conn = self.conns.look(slot);
        if conn.reply.head_bytes == 0 || conn.flight.is_empty() {
            return outcome;
        }
        outcome.with_head(conn.reader.head().status, !conn.reply.payload().is_empty())
    }

    /// The body of the reply at the head of the flight has ended early: what came is the reply.
    fn cut_short(&mut self, slot: u32, short: Outcome, how: Close) {
        let now = self.turn.at();
        let conn = self.conns.at(slot);
        let learnt = &mut self.sites.at(conn.server).learnt;
        conn.pipeline.cut(learnt, &self.settings.pipeline, how);
        conn.visit.replies += 1;
        conn.visit.response_time += now.since(conn.since);
        let fetch = conn.flight.pop_front().expect("a reply has its request");
        // A server that fell silent may be out of reach by now: it has not recovered.
        self.settle_head(slot, fetch, short, short.is_timeout());
    }

    /// A request that got no answer goes back to where it was.
    pub(super) fn unsend(&mut self, id: crate::frontier::ServerId, fetch: Fetch) {
        match fetch.item.purpose {
            Purpose::Robots(of, 0) if of == id => self.robots_again(of),
            Purpose::Robots(..) if is_file(&fetch.item.target) => {
                self.robots_again(id);
                self.frontier.give_back(id, &fetch.item);
            }
            _ => self.frontier.give_back(id, &fetch.item),
        }
    }

    /// Patience has ended with a connection.
    pub(super) fn timed_out(&mut self, slot: u32) {
        let conn = self.conns.look(slot);
        match conn.phase {
            Phase::Parked { .. } => self.hang_up(slot),
            Phase::Connecting | Phase::Securing => {
                let outcome = if conn.phase == Phase::Connecting {
                    Outcome::ConnectTimedOut
                } else {
                    Outcome::TlsTimedOut
                };
                self.turn.act(Action::Close(self.conns.id(slot)));
                let conn = self.forget(slot);
                self.next_address(conn.server, conn.address.ip(), conn.untried, outcome);
            }
            Phase::Active => {
                let settings = &self.settings.connections;
                let whole = conn.since + settings.fetch_timeout <= self.turn.at();
                let outcome = if whole {
                    Outcome::FetchTimedOut
                } else if conn.reply.head_bytes > 0 {
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
        let conn = self.conns.at(slot);
        if conn.start == conn.end {
            (conn.start, conn.end) = (0, 0);
            if let Some(buffer) = conn.buffer.take() {
                self.pool.give_buffer(buffer);
            }
        }
    }

    /// Whether a failed try of this URL is followed by another.
    pub(super) fn tries_left(&self, fetch: &Fetch, outcome: Outcome) -> bool {
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
