//! What a fetch came to is settled here: log line, record, retry, redirect, links.

use super::Engine;
use super::counts::Counts;
use super::fetch::{Fetch, Reply};
use super::outcome::{Outcome, ServerFate};
use super::page::Page;
use super::record::Aside;
use super::redirect::redirect_target;
use crate::frontier::{Errand, Item, ServerId};
use crate::http::response::Head;
use crate::url::UrlRef;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::time::Duration;

impl Engine {
    /// A fetch has its outcome. The reply, as far as it came, is the connection's, which may be
    /// lost by it.
    pub(super) fn settle(
        &mut self,
        slot: u32,
        fetch: Fetch,
        outcome: Outcome,
        connection_lost: bool,
    ) {
        let reply = std::mem::take(&mut self.conns.at(slot).reply);
        let id = self.conns.look(slot).server;
        self.counts.outcome(outcome);
        log::trace!("{}: {}", fetch.url, outcome.name());
        if !connection_lost && outcome.verdict().server == ServerFate::Fine {
            self.sites.at(id).recovers();
        }
        let mut turn = self.conns.look(slot).turn;
        let before = turn.not_before;
        self.judge(id, &mut turn, outcome);
        if let Some(wait) = self.retry_after(slot, &reply, outcome) {
            turn.not_before = before.max(self.now.at + wait);
        }
        self.conns.at(slot).turn = turn;
        match fetch.item.errand {
            Errand::Robots(of, hops) => {
                self.robots_settled(slot, fetch, reply, outcome, (of, hops))
            }
            Errand::Page if self.tries_left(&fetch, outcome) => {
                self.record(slot, &fetch, &reply, outcome, Aside { is_last: false, sitemaps: &[] });
                reply.release(&mut self.pool);
                self.retry(id, fetch);
            }
            Errand::Page => self.page_settled(slot, fetch, reply, outcome),
        }
    }

    /// `Retry-After` of a strained server, within the cap (RFC 9110 10.2.3; seconds only, a date
    /// means our own wait).
    fn retry_after(&self, slot: u32, reply: &Reply, outcome: Outcome) -> Option<Duration> {
        if outcome.verdict().server != ServerFate::Strained || reply.head_bytes == 0 {
            return None;
        }
        let value = self.conns.look(slot).reader.head().field(reply.head(), "retry-after")?;
        let seconds: u64 = std::str::from_utf8(value).ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(self.settings.retries.retry_after_max))
    }

    /// Another try, behind all that has not had its first.
    fn retry(&mut self, id: ServerId, fetch: Fetch) {
        let mut item = fetch.item;
        item.tries += 1;
        self.frontier.put_off(id, item);
    }

    /// A page has its last outcome: it is kept, and what it leads to is followed.
    fn page_settled(&mut self, slot: u32, fetch: Fetch, reply: Reply, outcome: Outcome) {
        if !self.record(slot, &fetch, &reply, outcome, Aside { is_last: true, sitemaps: &[] }) {
            self.counts.uncount(outcome);
            let id = self.conns.look(slot).server;
            self.frontier.give_back(id, fetch.item);
            return reply.release(&mut self.pool);
        }
        let conn = self.conns.look(slot);
        let status = match outcome {
            Outcome::Status(status) => status,
            // What came of a page that is too large leads on, too.
            Outcome::BodyTooLarge => conn.reader.head().status,
            _ => return reply.release(&mut self.pool),
        };
        count_page(&mut self.counts, &fetch, conn.reader.head(), &reply);
        match Page::of(fetch, reply, status, conn.reader.head(), &self.settings) {
            Ok(page) => {
                self.backlog_bytes += page.bytes();
                self.pages.push_back(page);
            }
            Err(reply) => reply.release(&mut self.pool),
        }
    }

    /// The attempt at one address failed: the next is tried, or the visit has failed.
    pub(super) fn next_address(
        &mut self,
        id: ServerId,
        mut untried: SmallVec<[IpAddr; 4]>,
        outcome: Outcome,
    ) {
        let hopeful = !matches!(outcome, Outcome::Certificate | Outcome::Local);
        if hopeful && !untried.is_empty() && !self.is_stopping() {
            let next = untried.remove(0);
            return self.connect(id, next, untried, Some(outcome));
        }
        self.visit_failed(id, outcome);
    }

    /// A URL that is settled without a request.
    pub(super) fn note_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        self.counts.outcome(outcome);
        self.log_unsent(id, item, outcome);
    }
}

/// A page is a last reply that is no redirect.
pub(super) fn count_page(counts: &mut Counts, fetch: &Fetch, head: &Head, reply: &Reply) {
    let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
    if redirect_target(head, reply.head(), from).is_none() {
        counts.pages += 1;
        counts.quality_millionths += fetch.item.quality.millionths();
    }
}
