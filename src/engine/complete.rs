//! Completes fetches: what follows from an outcome, for the server and for the URL.
//!
//! A fetch is judged for its server (rest, failures), then filed: its reply goes to the archive,
//! its line to the crawl log. Then the URL is tried again, its redirect is followed, or the links
//! of its page are.

use super::Engine;
use super::again::{Entry, Noted};
use super::archive::{Filed, FiledPage, LogFacts, Recorded, Unsent, cut_as, cut_of};
use super::backlog::{Item, Purpose};
use super::chain::Redirect;
use super::ledger::Work;
use super::outcome::{Outcome, ServerFate, UrlFate};
use super::page::{LinkSources, Page};
use super::wire::{Fetch, FinishedFetch, Reply};
use crate::consent::Statements;
use crate::frontier::{Rule, ServerId};
use crate::http::response::Head;
use crate::http::wait::retry_after;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::time::Duration;

impl Engine {
    /// Applies the outcome of a fetch to the server and to the rest of its visit. If
    /// `connection_lost` is true, the connection is being closed, so the server does not count as
    /// recovered from earlier failures.
    pub(super) fn judge_reply(
        &mut self,
        slot: u32,
        fetched: &FinishedFetch<'_>,
        connection_lost: bool,
    ) {
        let outcome = fetched.outcome;
        let id = self.wire.conn(slot).server;
        if fetched.reply.has_begun() && !outcome.is_timeout() {
            self.note_answer(id, fetched.fetch.sent.at);
        } else if outcome.verdict().server == ServerFate::Failed {
            let address = self.wire.conn(slot).peer.address.ip();
            self.note_failure(id, Some(address), outcome);
        }
        if !connection_lost && outcome.verdict().server == ServerFate::Fine {
            self.sites.get_mut(id).recover();
        }
        let mut visit = self.wire.conn(slot).visit;
        let before = (visit.tally.not_before, visit.tally.rule);
        self.judge(id, &mut visit, outcome);
        if let Some(wait) = self.retry_after(fetched) {
            // A server that asks for a rest repeatedly gets at least the crawl's own rest.
            if self.sites.get(id).failures <= 1 {
                (visit.tally.not_before, visit.tally.rule) = before;
            }
            visit.rest(self.turn.at() + wait, Rule::RetryAfter);
        }
        *self.wire.visit_mut(slot) = visit;
    }

    /// Applies a complete reply to its server before it is known whether the reply will be filed
    /// (archived and logged under its URL). A rest that the server asks for is kept. The reply does
    /// not count as a failure yet, since no try of the URL is used up.
    pub(super) fn judge_held(&mut self, slot: u32, fetched: &FinishedFetch<'_>) {
        let id = self.wire.conn(slot).server;
        self.note_answer(id, fetched.fetch.sent.at);
        let site = self.sites.get_mut(id);
        if fetched.outcome.verdict().server != ServerFate::Strained {
            return site.recover();
        }
        let failures = site.failures;
        let own = self.settings.retries.after(failures.saturating_add(1));
        let (wait, rule) = match self.retry_after(fetched) {
            Some(wait) if failures == 0 || wait > own => (wait, Rule::RetryAfter),
            _ => (own, Rule::Backoff),
        };
        let until = self.turn.at() + wait;
        let visit = self.wire.visit_mut(slot);
        visit.rest(until, rule);
        visit.over = true;
        visit.tally.strained = true;
    }

    /// Archives and logs a fetch under its URL, then does what follows from it: another try, a
    /// redirect, or the links of the page.
    pub(super) fn file_fetch(
        &mut self,
        slot: u32,
        mut fetched: FinishedFetch<'_>,
        statements: Option<Box<Statements>>,
    ) {
        let again = self.tries_left(&fetched.fetch, fetched.outcome);
        if let Outcome::Short(_, shortfall) = fetched.outcome
            && again
        {
            // A short reply counts as a reply only if no other try follows.
            fetched.outcome = shortfall.outcome();
        }
        let may_retry = fetched.outcome.verdict().url == UrlFate::Retry && !again;
        let is_answer =
            fetched.outcome.status().is_some() || matches!(fetched.outcome, Outcome::Challenged(_));
        if may_retry && !fetched.fetch.item.is_robots() && !is_answer {
            self.counts.cut("retries-max", 1);
        }
        if !again && self.is_reserved(statements.as_deref()) {
            self.reserve(&mut fetched);
        }
        let fetch = &fetched.fetch;
        self.counts.outcome(fetched.outcome);
        log::trace!("{}: {}", fetch.url, fetched.outcome.name());
        match fetch.item.purpose {
            Purpose::Robots(of, _) => self.robots_complete(slot, fetched, of),
            Purpose::Page | Purpose::Hop(_) | Purpose::Again if again => {
                fetched.fetch.notes.push("retried");
                let facts = self.facts_of(slot, &fetched);
                self.write_line(&fetched.fetch, &facts, &[]);
                self.wire.release(fetched.reply);
                let id = self.wire.conn(slot).server;
                self.retry(id, fetched.fetch, fetched.outcome);
            }
            Purpose::Page | Purpose::Hop(_) | Purpose::Again => {
                self.page_complete(slot, fetched, statements);
            }
        }
    }

    /// Gives a reply that is followed the outcome that nothing of it is kept. What it lacks is
    /// noted and counted, since its outcome doesn't say it any more.
    fn reserve(&mut self, fetched: &mut FinishedFetch<'_>) {
        let before = fetched.outcome;
        let Some(head) = fetched.head.filter(|_| is_followed(before)) else { return };
        fetched.outcome = Outcome::Reserved(head.status);
        if let Some(cut) = cut_of(before) {
            self.counts.cut(cut, 1);
            fetched.fetch.notes.push(cut);
        }
    }

    /// Returns the wait that the `Retry-After` field of a server under strain asks for, capped at
    /// the configured limit. Of several fields the longest counts (RFC 9110 10.2.3). Returns `None`
    /// if there is no such field.
    pub(super) fn retry_after(&self, fetched: &FinishedFetch<'_>) -> Option<Duration> {
        if fetched.outcome.verdict().server != ServerFate::Strained {
            return None;
        }
        let date = fetched.fields("date").next();
        let wait = retry_after(fetched.fields("retry-after"), date, self.turn.unix())?;
        Some(wait.min(self.settings.retries.retry_after_max))
    }

    /// Queues a URL for another try, behind the URLs that are queued now. If the server works, this
    /// URL alone waits before its retry; otherwise the whole server rests.
    fn retry(&mut self, id: ServerId, fetch: Fetch, outcome: Outcome) {
        let mut item = fetch.item;
        if matches!(outcome, Outcome::SignatureAsked(_)) {
            // It has not failed: it is next.
            return self.backlog.give_back(id, &item);
        }
        item.tries += 1;
        let is_own = outcome.verdict().server == ServerFate::Fine;
        let wait = if is_own { self.settings.retries.after(item.tries) } else { Duration::ZERO };
        self.sites.get_mut(id).add_retry(self.turn.at() + wait);
        self.backlog.put_off(id, &item);
        self.note_tries(id, &item);
    }

    /// Completes a page that is not tried again: archives it, and follows what it leads to. If a
    /// job archives it, that is done later.
    fn page_complete(
        &mut self,
        slot: u32,
        fetched: FinishedFetch<'_>,
        statements: Option<Box<Statements>>,
    ) {
        let recorded = self.record(slot, &fetched, statements);
        let FinishedFetch { fetch, head, reply, outcome, .. } = fetched;
        let id = self.wire.conn(slot).server;
        match recorded {
            Recorded::Done(facts) => self.follow_reply(id, fetch, facts, reply, head),
            Recorded::Later(facts, capture) => {
                let page = FiledPage { fetch, facts, reply, head: head.cloned() };
                self.file_reply(*capture, Filed::Page(Box::new(page)));
            }
            Recorded::Failed => {
                self.counts.uncount(outcome);
                self.backlog.give_back(id, &fetch.item);
                self.wire.release(reply);
            }
        }
    }

    /// Follows a reply that is archived: to the next hop of its chain, or to the links of its page.
    /// `id` is the server of the URL.
    pub(super) fn follow_reply(
        &mut self,
        id: ServerId,
        fetch: Fetch,
        facts: LogFacts,
        reply: Reply,
        head: Option<&Head>,
    ) {
        let outcome = facts.outcome;
        if let Outcome::Short(_, shortfall) = outcome {
            self.counts.cut(cut_as(shortfall), 1);
        }
        let head = head.filter(|_| is_followed(outcome));
        let mut units = 0;
        let redirect = head.and_then(|head| Redirect::of(&fetch, head, reply.head(), &mut units));
        self.turn.charge(Work::Redirects, units);
        self.note_repeat(id, &fetch);
        self.join_canonical(&fetch, outcome);
        let Noted { is_same, entry } = self.note_visit(id, &fetch, &facts, &reply, head);
        if let Some(redirect) = redirect {
            self.file_page(id, entry);
            self.write_line(&fetch, &facts, &[]);
            self.redirected(id, &fetch, redirect);
            return self.wire.release(reply);
        }
        if fetch.item.purpose != Purpose::Again {
            self.finish_url(id, &fetch.item, &fetch.url, outcome);
        }
        if is_same {
            self.file_page(id, entry);
            self.write_line(&fetch, &facts, &[]);
            return self.wire.release(reply);
        }
        let is_requisite = fetch.item.distance().requisite > 0;
        let links = self.settings.links_of(&fetch.url, is_requisite);
        let sources = head.map(|head| LinkSources::of(&reply, head, &links));
        self.follow_later(fetch, facts, reply, sources, (id, entry));
    }

    /// Counts a page that is archived. If it may have links, its crawl-log line is written when
    /// they have been read; otherwise it is written now.
    fn follow_later(
        &mut self,
        mut fetch: Fetch,
        facts: LogFacts,
        reply: Reply,
        sources: Option<LinkSources>,
        (id, mut known): (ServerId, Option<Entry>),
    ) {
        if let Some(sources) = sources {
            if fetch.item.purpose != Purpose::Again {
                self.count_new_page(&mut fetch, &facts);
            }
            for note in sources.notes.iter().copied() {
                self.counts.cut(note, 1);
                fetch.notes.push(note);
            }
            let is_body = facts.outcome.status().is_none_or(|status| (200..300).contains(&status));
            let was_list = known.as_ref().is_some_and(Entry::is_list);
            let may_list = sources.is_xml || fetch.item.is_sitemap() || was_list;
            let may_list = may_list && is_body && self.settings.sitemaps.read;
            if may_list {
                return self.list_later(Page::new(fetch, facts, reply, sources), known);
            }
            self.file_page(id, known.take());
            if sources.has_any() {
                return self.pages.push(Page::new(fetch, facts, reply, sources));
            }
        }
        self.file_page(id, known);
        self.note_settled(&fetch.url);
        self.write_line(&fetch, &facts, &[]);
        self.wire.release(reply);
    }

    /// Counts a page that was fetched for the first time.
    fn count_new_page(&mut self, fetch: &mut Fetch, facts: &LogFacts) {
        self.counts.pages += 1;
        self.counts.pages_of_run += 1;
        self.count_page(&fetch.url);
        fetch.reservation = None;
        self.counts.media_type(facts.mime());
        self.counts.quality_millionths += fetch.item.quality.millionths();
    }

    /// Tries the next address of a server after one failed, or ends the visit with the failure if
    /// there is no address left.
    pub(super) fn next_address(
        &mut self,
        id: ServerId,
        tried: IpAddr,
        mut untried: SmallVec<[IpAddr; 4]>,
        outcome: Outcome,
    ) {
        let hopeful = outcome != Outcome::Local;
        untried.retain(|address| !self.forbids_request(id, *address));
        if hopeful && !untried.is_empty() && !self.is_stopping() {
            let next = untried.remove(0);
            return self.connect(id, next, untried, Some(outcome));
        }
        self.visit_failed(id, Some(tried), outcome);
    }

    /// Gives a URL its final outcome without a request.
    pub(super) fn complete_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        self.note_attempt(id, item, outcome, Unsent::default());
        self.finish_unsent(id, item, outcome);
    }

    /// Applies the final outcome of a URL that was not requested and has its line in the log.
    pub(super) fn finish_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        let url = self.backlog.origin(id).url_of(&item.target);
        self.note_settled(&url);
        self.finish_url(id, item, &url, outcome);
    }
}

/// Returns whether a reply is a page or a redirect, so that its links or its target are followed. A
/// reply whose body is incomplete or truncated is followed as well.
fn is_followed(outcome: Outcome) -> bool {
    outcome.status().is_some() || outcome == Outcome::BodyTooLarge
}
