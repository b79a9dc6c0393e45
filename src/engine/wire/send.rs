//! The sending side: opens connections for visits, writes requests, and parks or closes connections
//! when their visits end.
//!
//! A *visit* is a series of requests to one server over one connection; after it the server rests.
//! Its *burst* is the maximum number of requests in it. Between two visits a connection may be
//! *parked*, which means that it is kept open without a request. The *flight* of a connection is
//! its requests without a complete reply, in the order in which they were written; replies arrive
//! in the same order.

use super::conn::{Conn, Inbox, Incoming, OpenVisit, Outbox, Peer, Phase, Timeouts};
use super::fetch::{ByRobots, Fetch, Identity, Shown};
use super::held::Batch;
use crate::engine::Engine;
use crate::engine::archive::AGAIN;
use crate::engine::backlog::{Item, Purpose};
use crate::engine::contract::Action;
use crate::engine::outcome::Outcome;
use crate::engine::visit::Next;
use crate::frontier::{Burst, ServerId};
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::http::pipeline::Pipeline;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

impl Engine {
    /// Opens a connection to an address for a visit. If the frontier's group of the address or the
    /// number of slots doesn't allow a connection, the visit is handed back to the frontier, to
    /// begin later. But if another address has `failed` before in this visit, the visit ends with
    /// that outcome.
    pub(in crate::engine) fn connect(
        &mut self,
        id: ServerId,
        ip: IpAddr,
        untried: SmallVec<[IpAddr; 4]>,
        failed: Option<Outcome>,
    ) {
        let now = self.turn.at();
        if self.is_stopping()
            || self.forbids_request(id, ip)
            || !self.backlog.bind(id, ip, now)
            || !self.make_room()
            || !self.backlog.begin(id, failed.is_none(), now)
        {
            return match failed {
                Some(outcome) => self.visit_failed(id, Some(ip), outcome),
                None => self.backlog.hand_back(id, now),
            };
        }
        let site = self.sites.get_mut(id);
        let origin = self.backlog.origin(id);
        let address = SocketAddr::new(ip, origin.port());
        let conn = self.wire.conns.insert(|number| Conn {
            number,
            server: id,
            phase: Phase::Connecting,
            peer: Peer::new(address, untried),
            visit: OpenVisit::new(now, false),
            timeouts: Timeouts { since: now, last_byte: now, paused: None },
            pipeline: Pipeline::default(),
            flight: VecDeque::new(),
            batch: Batch::default(),
            incoming: Incoming::new(&self.settings.reply),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
        });
        site.set_conn(Some(conn.slot));
        let name = origin.host().trim_start_matches('[').trim_end_matches(']');
        let tls = origin.is_https().then(|| name.into());
        self.counts.connections += 1;
        self.turn.act(Action::Connect { conn, address, tls });
    }

    /// Makes sure that a slot is free: if none is, closes the parked connection whose server is due
    /// last. Returns `false` if no slot is free and no connection is parked.
    fn make_room(&mut self) -> bool {
        if self.wire.conns.len() < self.settings.connections.open_max {
            return true;
        }
        let Some(slot) = self.wire.conns.least_wanted() else { return false };
        self.hang_up(slot);
        true
    }

    /// Writes as many requests as the pipeline, the burst and the queue allow, unless it is better
    /// to write more of them together later. Ends the visit if there is nothing to send and no
    /// reply to wait for.
    pub(in crate::engine) fn fill(&mut self, slot: u32) {
        let stage = self.turn.enter(Stage::Http, 0);
        let before = self.wire.conn(slot).outbox.pending().len();
        let later = self.is_ahead(slot);
        let (mut deferred, mut held) = (false, false);
        while !later && self.may_send(slot) && !self.should_end(slot) {
            let id = self.wire.conn(slot).server;
            match self.next_item(id) {
                Next::Item(item, robots_line) => {
                    self.send(slot, item, self.signs(id));
                    self.note_put_back(slot, robots_line);
                }
                Next::Nothing => break,
                Next::Later => {
                    deferred = true;
                    break;
                }
                Next::Archived => {
                    held = true;
                    break;
                }
            }
        }
        let conn = self.wire.conn(slot);
        let (idle, more) = (conn.flight.is_empty(), conn.outbox.pending().len() > before);
        if more {
            self.turn.act(Action::Send(self.wire.conns.id(slot)));
        }
        self.wire.conns.arm(slot);
        if idle && deferred {
            self.fill_later(slot);
        } else if idle && !held {
            self.end_visit(slot);
        }
        self.turn.back(stage);
    }

    /// Returns whether the server has enough requests to keep it busy until a new one would reach
    /// it.
    fn is_ahead(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let pace = conn.visit.tally.response_time / conn.visit.tally.replies.max(1);
        let learnt = &self.sites.get(conn.server).learnt;
        conn.pipeline.is_ahead(learnt, &self.settings.pipeline, pace, conn.peer.round_trip)
    }

    /// Returns whether nothing forbids another request on a connection: its visit is not over, and
    /// neither its server nor the crawl is ended, paused or blocked.
    pub(super) fn may_request(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        !conn.visit.over
            && !self.sites.get(conn.server).is_retiring()
            && !self.is_stopping()
            && !self.storage.is_paused()
            && !self.forbids_request(conn.server, conn.peer.address.ip())
    }

    fn may_send(&self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let site = self.sites.get(conn.server);
        let left = self.burst_left(slot);
        left > 0
            && self.may_request(slot)
            && self.may_ask()
            // While the pool exceeds its budget, no request is added to those in flight.
            && (conn.flight.is_empty() || !self.wire.pool.is_over())
            && conn.pipeline.room(&site.learnt, &self.settings.pipeline, left) > 0
    }

    /// Returns the fetch of a URL of the server `id` whose request is written now.
    pub(in crate::engine) fn new_fetch(&self, id: ServerId, item: Item) -> Fetch {
        let again = (item.purpose == Purpose::Again).then_some(AGAIN);
        Fetch {
            url: self.backlog.origin(id).url_of(&item.target).into(),
            chain: self.chain_of(&item).map(String::into),
            identity: Identity {
                cookies: self.cookies_for(id, &item).map(Vec::into),
                signature: None,
            },
            item,
            sent: self.turn.now(),
            visit: self.backlog.server(id).visits,
            request: 0,
            first: None,
            robots: ByRobots::default(),
            notes: again.into_iter().collect(),
            reservation: None,
            shown: Shown::default(),
        }
    }

    /// Writes the request for a URL, with a signature if it `is_signed`.
    pub(in crate::engine) fn send(&mut self, slot: u32, item: Item, is_signed: bool) {
        let id = self.wire.conn(slot).server;
        let (mut fetch, slowed) = (self.new_fetch(id, item), self.slowed_until(id));
        fetch.identity.signature =
            if is_signed { self.signature_of(id, &fetch.item) } else { None };
        self.grant_share(&fetch.item);
        fetch.robots.usage = self.usage_by_robots(id, &fetch.item);
        if fetch.item.may_become_page() {
            fetch.reservation = self.quota_for(&fetch.url);
        }
        let conn = self.wire.conns.get_mut(slot);
        let site = self.sites.get_mut(conn.server);
        if conn.flight.is_empty() {
            conn.timeouts.begin(self.turn.at());
        } else {
            self.counts.pipelined += 1;
        }
        let (own, target) = (fetch.own_parts(&self.settings), &fetch.item.target);
        let authority = self.backlog.origin(conn.server).authority();
        let request = self.wire.requests.sent_to(&fetch.url);
        let bytes = conn.outbox.add(|out| request.write_get(out, target, authority, &own));
        self.counts.sent_bytes += bytes as u64;
        conn.pipeline.sent(1);
        conn.visit.tally.requests += 1;
        conn.visit.serves_known |= fetch.item.is_granted();
        self.counts.requests += 1;
        self.counts.signed += u64::from(fetch.identity.signature.is_some());
        self.wire.first_request.get_or_insert(self.turn.at());
        self.counts.robots += u64::from(fetch.item.is_robots());
        self.counts.retries += u64::from(fetch.item.tries > 0);
        fetch.request = conn.visit.tally.requests;
        if fetch.request == 1 {
            let (owed, rule) = site.owed(slowed);
            fetch.first = Some((conn.visit.tally.began, owed, rule));
            site.observe_rest(self.turn.at(), &mut self.counts.rest_kept_milli);
        }
        conn.flight.push_back(fetch);
    }

    /// Ends the visit on a connection, and parks or closes it.
    pub(in crate::engine) fn end_visit(&mut self, slot: u32) {
        let conn = self.wire.conn(slot);
        let (id, visit) = (conn.server, conn.visit);
        let due = self.finish_visit(id, &visit);
        let site = self.sites.get(id);
        let idle = self.settings.connections.idle_timeout;
        let conn = self.wire.conn(slot);
        let soon = due.since(self.turn.at()) < idle;
        let usable = conn.pipeline.may_reuse(&site.learnt, &self.settings.pipeline)
            && conn.inbox.is_empty()
            && conn.outbox.pending().is_empty();
        if soon && usable && !self.is_stopping() && site.retired_as().is_none() {
            let wanted = self.backlog.has_next(id);
            let due = if wanted { due } else { Instant::FAR };
            self.wire.conns.park(slot, due, self.turn.at() + idle);
            self.backlog.set_parked(id, true, self.turn.at());
        } else {
            self.hang_up(slot);
        }
    }

    /// Returns the number of requests that the visit on a connection may still make.
    pub(in crate::engine) fn burst_left(&self, slot: u32) -> u32 {
        let conn = self.wire.conn(slot);
        if let Some(most) = self.slowed_burst(conn.server) {
            return most.saturating_sub(conn.visit.tally.requests);
        }
        match self.backlog.burst(conn.server) {
            Burst::Requests(most) => most.saturating_sub(conn.visit.tally.requests),
            Burst::Server => u32::MAX,
        }
    }

    /// Adds to the last request written the line of robots.txt that allows it, and an annotation if
    /// its URL had been put back into its queue after an untrusted reply: see `wire::held`.
    fn note_put_back(&mut self, slot: u32, robots_line: Option<u32>) {
        let conn = self.wire.conns.get_mut(slot);
        let fetch = conn.flight.back_mut().expect("it was sent");
        fetch.robots.line = robots_line;
        if matches!(fetch.item.purpose, Purpose::Page | Purpose::Again)
            && self.sites.get_mut(conn.server).take_put_back()
        {
            fetch.notes.push("putBack");
        }
    }
}
