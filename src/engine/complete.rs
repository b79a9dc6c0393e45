//! What a fetch came to is settled here: log line, record, retry, redirect, links.

use super::Engine;
use super::archive::{Settled, cut_as};
use super::backlog::{Item, Purpose};
use super::chain::Redirect;
use super::ledger::Work;
use super::outcome::{Outcome, ServerFate, UrlFate};
use super::page::{Leads, Page};
use super::wire::{Fetch, Fetched, Reply};
use crate::frontier::ServerId;
use crate::http::response::Head;
use crate::http::wait::retry_after;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::time::Duration;

impl Engine {
    /// A fetch has its outcome. `connection_lost`: the connection is being given up, and so the
    /// server has not recovered from anything.
    pub(super) fn complete(&mut self, slot: u32, fetched: Fetched<'_>, connection_lost: bool) {
        self.judge_reply(slot, &fetched, connection_lost);
        self.file(slot, fetched);
    }

    /// What an outcome means for the server and for the rest of its visit.
    fn judge_reply(&mut self, slot: u32, fetched: &Fetched<'_>, connection_lost: bool) {
        let outcome = fetched.outcome;
        let id = self.wire.conn(slot).server;
        if fetched.reply.has_begun() && !outcome.is_timeout() {
            self.note_answer(id, fetched.fetch.sent);
        } else if outcome.verdict().server == ServerFate::Failed {
            let address = self.wire.conn(slot).peer.address.ip();
            self.note_failure(id, Some(address), outcome);
        }
        if !connection_lost && outcome.verdict().server == ServerFate::Fine {
            self.sites.at(id).recovers();
        }
        let mut visit = self.wire.conn(slot).visit;
        let before = visit.tally.not_before;
        self.judge(id, &mut visit, outcome);
        if let Some(wait) = self.retry_after(fetched) {
            // Who asks for a rest again and again is given the crawl's own as well.
            let own =
                if self.sites.look(id).failures > 1 { visit.tally.not_before } else { before };
            visit.tally.not_before = own.max(self.turn.at() + wait);
        }
        *self.wire.visit_mut(slot) = visit;
    }

    /// What a whole reply that may never be filed means for the server. If it asks for rest, it
    /// gets it; that is no failure yet, as no try of its URL is used up.
    pub(super) fn heed(&mut self, slot: u32, fetched: &Fetched<'_>) {
        let id = self.wire.conn(slot).server;
        self.note_answer(id, fetched.fetch.sent);
        let site = self.sites.at(id);
        if fetched.outcome.verdict().server != ServerFate::Strained {
            return site.recovers();
        }
        let failures = site.failures;
        let own = self.settings.retries.after(failures.saturating_add(1));
        let until = self.turn.at()
            + match self.retry_after(fetched) {
                Some(wait) if failures == 0 => wait,
                asked => asked.unwrap_or_default().max(own),
            };
        let visit = self.wire.visit_mut(slot);
        visit.end(until);
        visit.tally.strained = true;
    }

    /// Writes a fetch down under its URL, and does what follows from it: another try, links.
    pub(super) fn file(&mut self, slot: u32, mut fetched: Fetched<'_>) {
        let fetch = &fetched.fetch;
        let again = self.tries_left(fetch, fetched.outcome);
        if let Outcome::Short(_, shortfall) = fetched.outcome
            && again
        {
            // It counts as a reply only if no other try follows.
            fetched.outcome = shortfall.outcome();
        }
        let may_retry = fetched.outcome.verdict().url == UrlFate::Retry;
        if may_retry && !again && !fetch.item.is_robots() && fetched.outcome.status().is_none() {
            self.counts.cut("retries-max", 1);
        }
        self.counts.outcome(fetched.outcome);
        log::trace!("{}: {}", fetch.url, fetched.outcome.name());
        match fetch.item.purpose {
            Purpose::Robots(of, hops) => self.robots_complete(slot, fetched, (of, hops)),
            Purpose::Page | Purpose::Hop(_) if again => {
                if let Some(settled) = self.record(slot, &fetched, false) {
                    self.write_line(&fetched.fetch, &settled, &[]);
                }
                self.wire.release(fetched.reply);
                let id = self.wire.conn(slot).server;
                self.retry(id, fetched.fetch, fetched.outcome);
            }
            Purpose::Page | Purpose::Hop(_) => self.page_complete(slot, fetched),
        }
    }

    /// `Retry-After` of a strained server, the longest if there are several, within the cap
    /// (RFC 9110 10.2.3).
    fn retry_after(&self, fetched: &Fetched<'_>) -> Option<Duration> {
        if fetched.outcome.verdict().server != ServerFate::Strained {
            return None;
        }
        let date = fetched.field("date");
        let wait = retry_after(fetched.fields("retry-after"), date, self.turn.unix())?;
        Some(wait.min(self.settings.retries.retry_after_max))
    }

    /// Another try, behind what is queued now. If its server works, the wait before it is the
    /// URL's own: else the server's rest is.
    fn retry(&mut self, id: ServerId, fetch: Fetch, outcome: Outcome) {
        let mut item = fetch.item;
        item.tries += 1;
        let is_own = outcome.verdict().server == ServerFate::Fine;
        let wait = if is_own { self.settings.retries.after(item.tries) } else { Duration::ZERO };
        self.sites.at(id).puts_off(self.turn.at() + wait);
        self.backlog.put_off(id, &item);
    }

    /// A page has its last outcome: it is kept, and what it leads to is followed.
    fn page_complete(&mut self, slot: u32, fetched: Fetched<'_>) {
        let recorded = self.record(slot, &fetched, true);
        let Fetched { fetch, head, reply, outcome, .. } = fetched;
        let id = self.wire.conn(slot).server;
        let Some(settled) = recorded else {
            self.counts.uncount(outcome);
            self.backlog.give_back(id, &fetch.item);
            return self.wire.release(reply);
        };
        self.leads_on(id, fetch, settled, reply, head);
    }

    /// The last reply for a URL of the server `id` is archived: it leads on to the next hop of its
    /// chain, or to the links of the page.
    pub(super) fn leads_on(
        &mut self,
        id: ServerId,
        fetch: Fetch,
        settled: Settled,
        reply: Reply,
        head: Option<&Head>,
    ) {
        let outcome = settled.outcome;
        if let Outcome::Short(_, shortfall) = outcome {
            self.counts.cut(cut_as(shortfall), 1);
        }
        let head = head.filter(|_| leads_on(outcome));
        let mut units = 0;
        let redirect = head.and_then(|head| Redirect::of(&fetch, head, reply.head(), &mut units));
        self.turn.charge(Work::Redirects, units);
        if let Some(redirect) = redirect {
            self.write_line(&fetch, &settled, &[]);
            self.redirected(id, &fetch, redirect);
            return self.wire.release(reply);
        }
        self.ends(&fetch.item, &fetch.url, outcome);
        let leads = head.map(|head| Leads::of(&reply, head, &self.settings));
        self.follow_later(fetch, settled, reply, leads);
    }

    /// A page that is archived is counted, and waits for its links to be found if it has any; the
    /// line of another is written at once.
    fn follow_later(
        &mut self,
        mut fetch: Fetch,
        settled: Settled,
        reply: Reply,
        leads: Option<Leads>,
    ) {
        if let Some(leads) = leads {
            self.counts.pages += 1;
            self.counts.pages_of_run += 1;
            self.counts.quality_millionths += fetch.item.quality.millionths();
            for note in leads.notes() {
                self.counts.cut(note, 1);
                fetch.notes.push(note);
            }
            if leads.has_any() {
                return self.pages.push(Page::new(fetch, settled, reply, leads));
            }
        }
        self.write_line(&fetch, &settled, &[]);
        self.wire.release(reply);
    }

    /// The attempt at one address failed: the next is tried, or the visit has failed.
    pub(super) fn next_address(
        &mut self,
        id: ServerId,
        tried: IpAddr,
        mut untried: SmallVec<[IpAddr; 4]>,
        outcome: Outcome,
    ) {
        let hopeful = outcome != Outcome::Local;
        if hopeful && !untried.is_empty() && !self.is_stopping() {
            let next = untried.remove(0);
            return self.connect(id, next, untried, Some(outcome));
        }
        self.visit_failed(id, Some(tried), outcome);
    }

    /// A URL is settled without a request.
    pub(super) fn complete_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        self.note_attempt(id, item, outcome);
        let url = self.backlog.origin(id).url_of(&item.target);
        self.ends(item, &url, outcome);
    }

    /// A try of a URL that ended before its request.
    pub(super) fn note_attempt(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        self.counts.outcome(outcome);
        self.log_unsent(id, item, outcome);
    }
}

/// Whether what came is a page or a redirect. One that is short or too large leads on, too.
fn leads_on(outcome: Outcome) -> bool {
    outcome.status().is_some() || outcome == Outcome::BodyTooLarge
}
