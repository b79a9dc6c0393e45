//! Follows the links of a page: joins them, checks them against the scope, and offers them to the
//! seen test.
//!
//! All links of a page are joined before the first is offered, since estimates of quality count the
//! links of a page together. All passes stop at the turn's budget and resume in the next turn.
//!
//! Laws: the result does not depend on the budget; a link that can't be parsed is charged as well.
//! Cost: that of the joiner and of the seen test, and an addition for each link.

use super::{Page, PageWorker};
use crate::engine::Engine;
use crate::engine::admission::Discovery;
use crate::engine::backlog::Purpose;
use crate::engine::budgets::DOMAIN_UNITS;
use crate::engine::chain::Chains;
use crate::engine::cluster::Cluster;
use crate::engine::ledger::Work;
use crate::engine::wire::{Fetch, Reply};
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::links::{Directives, Found, Kind, Link};
use crate::rating;
use crate::seen::{self, Seen};
use crate::url::scope::{Distance, Reference, Rejection};
use crate::url::{Batch, Fingerprint, Invalid, Limits, UrlRef, canon::Joiner};
use std::cell::Cell;
use std::mem;

/// The fixed cost of joining a link with its base URL, in units of work (see `ledger`), in addition
/// to one unit for each of its bytes.
const LINK_UNITS: usize = 64;
/// The fixed cost of offering a URL to the seen test, in units of work (see `ledger`), in addition
/// to that of its bytes.
const OFFER_UNITS: usize = 32;
/// The cost of a link that counts for the quality of its target's site, in units of work (see
/// `ledger`).
const RATED_UNITS: usize = 32;

/// The URLs of the page that is being processed, and buffers that are reused.
#[derive(Debug, Default)]
pub(super) struct Follow {
    step: Step,
    batch: Batch,
    /// For each URL of the batch, how it was found.
    kinds: Vec<Kind>,
    /// The number of URLs of the batch that were already checked against the scope.
    tested: usize,
    /// For each URL in scope: its index in the batch, and how it was found.
    wanted: Vec<(usize, Discovery)>,
    /// What the page says about the qualities of its links; `None` if nothing.
    estimate: Option<Quality>,
    /// The number of links left out because their URLs are too long.
    urls_long: u64,
    /// The number of links left out because the page has too many.
    urls_full: u64,
    /// The number of URLs left out because the sitemap that lists them may not.
    foreign: u64,
    /// For URLs of the batch that a sitemap or a feed lists, when they have changed, in seconds
    /// since 1970, if that is news; else 0. It may be shorter than the batch.
    news: Vec<u32>,
    key: Vec<u8>,
    /// The fingerprints of the URLs that are offered to the seen test next.
    fingerprints: Vec<Fingerprint>,
}

/// The links of a page, joined and in scope, that wait outside the worker.
#[derive(Debug, Default)]
pub(super) struct Links {
    batch: Batch,
    wanted: Vec<(usize, Discovery)>,
}

impl Links {
    /// Returns the memory that the links take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.batch.bytes() + self.wanted.len() * size_of::<(usize, Discovery)>()
    }

    /// Returns how each URL was found, and the URL.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Discovery, UrlRef<'_>)> {
        self.wanted.iter().map(|(place, found)| (*found, self.batch.get(*place)))
    }
}

/// What is to be done next for the links of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// Join the target of a `Refresh` field with the URL of the page.
    #[default]
    Targets,
    /// Join the links of the reply's header fields, from this index on.
    Head(usize),
    /// Join the links of the body, from this index on.
    Body(usize),
    /// Write the links between domains to the logs of a cluster, from this URL in scope on.
    Rate(usize),
    /// Offer the URLs in scope to the seen test, from this index on.
    Offer(usize),
}

impl Follow {
    /// Clears the state, to begin with another page.
    pub(super) fn clear(&mut self) {
        self.step = Step::Targets;
        self.batch.clear();
        self.kinds.clear();
        self.news.clear();
        self.tested = 0;
        self.wanted.clear();
        self.estimate = None;
        (self.urls_long, self.urls_full, self.foreign) = (0, 0, 0);
    }

    /// Takes out the links of the page, which are all joined.
    pub(super) fn take_links(&mut self) -> Links {
        let mut links =
            Links { batch: mem::take(&mut self.batch), wanted: mem::take(&mut self.wanted) };
        links.batch.shrink_to_fit();
        links.wanted.shrink_to_fit();
        links
    }

    /// Takes the links of another page back, to be offered with the estimate `estimate`.
    pub(super) fn set_links(&mut self, links: Links, estimate: Option<Quality>) {
        (self.batch, self.wanted, self.estimate) = (links.batch, links.wanted, estimate);
        self.step = Step::Offer(0);
    }

    /// Returns the number of links of the page that were left out because of a limit, by cause.
    pub(super) fn cut(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let all = [
            ("urlTooLong", self.urls_long),
            ("urlsBytesCut", self.urls_full),
            ("sitemapForeign", self.foreign),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }

    /// Notes the result of joining a link: how the URL was found, or why the link can't be joined.
    /// Returns the cost in units of work.
    fn note(&mut self, joined: Result<(), Invalid>, kind: Kind) -> usize {
        if let Err(why) = joined {
            self.urls_long += u64::from(why == Invalid::TooLong);
            self.urls_full += u64::from(why == Invalid::Full);
            return LINK_UNITS;
        }
        self.kinds.push(kind);
        LINK_UNITS + self.batch.get(self.batch.len() - 1).as_str().len()
    }
}

impl Engine {
    /// Joins, checks and offers links of the page, within the turn's budget. All links of its text
    /// must have been found before.
    pub(super) fn follow_some(&mut self) {
        let mut page = self.pages.queue.pop_front().expect("there is a page under work");
        self.turn.enter(Stage::Url, 0);
        let is_offering = matches!(self.pages.worker.follow.step, Step::Offer(_));
        if is_offering || self.join_some(&mut page) {
            if !is_offering {
                let Some(offered) = self.await_score(page) else { return };
                page = offered;
                self.trace_page(&page.fetch);
            }
            self.turn.enter(Stage::Seen, 0);
            if self.offer_some(page.via()) {
                return self.end_page(page);
            }
        }
        self.pages.queue.push_front(page);
    }

    fn end_page(&mut self, mut page: Page) {
        self.end_traced_page();
        if page.listing.is_some() {
            self.pages.lists.offered();
        }
        self.note_cut(&mut page);
        self.note_settled(&page.fetch.url);
        self.write_line(&page.fetch, &page.facts, &[]);
        self.free_page(page.reply);
    }

    /// Frees the reply of a page that the worker is done with.
    pub(super) fn free_page(&mut self, reply: Reply) {
        self.pages.worker.stage = super::Step::Begin;
        self.pages.bytes -= reply.bytes();
        self.wire.release(reply);
        self.end_follow();
    }

    /// Clears the links of a page that have been offered, or taken out, and queues those that are
    /// new.
    pub(super) fn end_follow(&mut self) {
        self.pages.worker.follow.clear();
        if self.admission.seen().has_fresh() {
            self.turn.enter(Stage::Schedule, 0);
            self.queue_fresh();
        }
    }

    /// Joins links, checks their URLs against the scope, and counts them for qualities. Returns
    /// whether all links are done.
    fn join_some(&mut self, page: &mut Page) -> bool {
        let base = UrlRef::from_canonical(page.fetch.url.as_bytes()).expect("it was fetched");
        let limits = Limits { url_bytes_max: self.settings.scope.url_bytes_max };
        let mut joiner = Joiner::within(base, limits);
        let before = self.pages.worker.follow.batch.text_bytes();
        if self.pages.worker.follow.step == Step::Targets {
            self.join_targets(page, &mut joiner);
            self.pages.worker.follow.step = Step::Head(0);
        }
        let is_joined = self.join_links(page, &mut joiner);
        self.turn.meter_mut().add_bytes(self.pages.worker.follow.batch.text_bytes() - before);
        self.choose(page);
        let done = is_joined && self.rate_links(&page.fetch, page.listing.is_some());
        if done {
            self.estimate_links(page);
            self.pages.worker.follow.step = Step::Offer(0);
        }
        done
    }

    /// Joins the target of a `Refresh` field with the URL of the page.
    fn join_targets(&mut self, page: &Page, joiner: &mut Joiner<'_>) {
        let follow = &mut self.pages.worker.follow;
        if let Some(target) = &page.sources.refresh {
            self.counts.links += 1;
            let joined = joiner.join(target, encoding_rs::UTF_8, &mut follow.batch);
            self.counts.links_invalid += u64::from(joined.is_err());
            let units = target.len() + joiner.take_work() + follow.note(joined, Kind::Refresh);
            self.turn.charge(Work::Joined, units);
        }
    }

    /// Joins the links of the reply's header fields, then those of the body. Returns `true` when
    /// all are joined, `false` if the budget was spent before.
    fn join_links(&mut self, page: &Page, joiner: &mut Joiner<'_>) -> bool {
        let own = self.pages.worker.found.directives();
        let directives = page.sources.directives | own;
        if let Step::Head(start) = self.pages.worker.follow.step {
            let place = self.join_from(start, Some(&page.sources.head_links), directives, joiner);
            self.pages.worker.follow.step = Step::Head(place);
            if place < page.sources.head_links.links().len() {
                return false;
            }
            self.pages.worker.follow.step = Step::Body(0);
        }
        let Step::Body(start) = self.pages.worker.follow.step else { return true };
        if page.listing.is_some() {
            let place = self.join_listed(start, page, directives, joiner);
            self.pages.worker.follow.step = Step::Body(place);
            return place == page.listed().len();
        }
        // Links of header fields are relative to the URL of the page, whatever base the page names.
        if let Some(href) = self.pages.worker.found.base() {
            joiner.rebase(href);
        }
        let place = self.join_from(start, None, directives, joiner);
        self.pages.worker.follow.step = Step::Body(place);
        place == self.pages.worker.found.links().len()
    }

    /// Joins links of one source, the header fields or the body, from index `start` on. Returns the
    /// index at which it stopped.
    fn join_from(
        &mut self,
        start: usize,
        head: Option<&Found>,
        directives: Directives,
        joiner: &mut Joiner<'_>,
    ) -> usize {
        let PageWorker { found, follow, charset, .. } = &mut self.pages.worker;
        let links = head.unwrap_or(found).links_from(start);
        let mut place = start;
        for link in links {
            if self.turn.is_spent(Work::Joined) {
                break;
            }
            place += 1;
            self.counts.links += 1;
            if !self.settings.links.may_follow(&link, directives) {
                self.counts.links_nofollow += 1;
                self.turn.charge(Work::Joined, LINK_UNITS);
                continue;
            }
            let joined = joiner.join_str(link.reference, charset, &mut follow.batch);
            self.counts.links_invalid += u64::from(joined.is_err());
            let units = follow.note(joined, link.kind);
            self.turn.charge(Work::Joined, units + link.reference.len() + joiner.take_work());
        }
        place
    }

    /// Joins the URLs of a sitemap or a feed, from index `start` on. Returns the index at which it
    /// stopped.
    fn join_listed(
        &mut self,
        start: usize,
        page: &Page,
        directives: Directives,
        joiner: &mut Joiner<'_>,
    ) -> usize {
        let follow = &mut self.pages.worker.follow;
        let mut place = start;
        for entry in &page.listed()[start..] {
            if self.turn.is_spent(Work::Joined) {
                break;
            }
            place += 1;
            self.counts.links += 1;
            let (reference, kind) = (entry.url.as_str(), Kind::Listed);
            let link = Link { reference, kind, nofollow: false };
            if !self.settings.links.may_follow(&link, directives) {
                self.counts.links_nofollow += 1;
                self.turn.charge(Work::Joined, LINK_UNITS);
                continue;
            }
            let joined = joiner.join_str(reference, encoding_rs::UTF_8, &mut follow.batch);
            self.counts.links_invalid += u64::from(joined.is_err());
            if joined.is_ok() {
                // References of the head are in the batch, too.
                follow.news.resize(follow.batch.len() - 1, 0);
                follow.news.push(page.news(entry));
            }
            let units = follow.note(joined, kind);
            self.turn.charge(Work::Joined, units + reference.len() + joiner.take_work());
        }
        place
    }

    /// Selects the URLs that are wanted, among them duplicates and URLs that are known already.
    fn choose(&mut self, from_page: &Page) {
        let fetch = &from_page.fetch;
        let scope = self.admission.scope();
        let from = fetch.item.distance();
        // A page that is out of scope was fetched as a requisite.
        let page = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let is_page = from.requisite == 0 || scope.check(page, from.depth.into()).is_ok();
        let follow = &mut self.pages.worker.follow;
        let (mut listed, mut far) = ("", 0);
        for place in follow.tested..follow.batch.len() {
            let (url, kind) = (follow.batch.get(place), follow.kinds[place]);
            if kind == Kind::Listed && !from_page.may_list(url) {
                follow.foreign += 1;
                continue;
            }
            let reference = match kind {
                Kind::Embed => Reference::Requisite,
                Kind::Frame if from_page.sources.requisites => Reference::Frame,
                _ => Reference::Link,
            };
            match scope.check_reference(url, reference, from, is_page, &mut listed) {
                Ok(Distance { depth, requisite }) => {
                    let letter = kind.hop() as u8;
                    let found =
                        Discovery { letter, hops: 0, depth, requisite, tries: 0, estimate: None };
                    follow.wanted.push((place, found));
                }
                Err(why) => {
                    self.counts.out_of_scope(why.name());
                    far += u64::from(why == Rejection::RequisiteHops);
                }
            }
        }
        follow.tested = follow.batch.len();
        if far > 0 {
            self.counts.cut_from(Rejection::RequisiteHops.name(), far, &fetch.url);
        }
    }

    /// Counts the page's links for the qualities of their targets. In a cluster the links between
    /// domains are counted by the targets' owners, who read of them in the logs (see
    /// `cluster::facts`). Returns `false` if the budget was spent before all were written.
    fn rate_links(&mut self, fetch: &Fetch, is_list: bool) -> bool {
        // Links of a page that is visited again were counted at the first visit; what a sitemap
        // lists is no vote.
        let is_again = fetch.item.purpose == Purpose::Again;
        if is_again || is_list {
            return true;
        }
        let page = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let follow = &mut self.pages.worker.follow;
        if let Some(budgets) = self.backlog.budgets_mut() {
            let counted = follow.wanted.iter().take(rating::LINKS_MAX);
            let hosts = counted.map(|(place, _)| follow.batch.get(*place).host());
            let units = DOMAIN_UNITS * (1 + budgets.links(page.host(), hosts));
            self.turn.charge(Work::Joined, units);
        }
        if !self.admission.rating().counts_links() {
            return true;
        }
        let start = if let Step::Rate(start) = follow.step { start } else { 0 };
        let end = follow.wanted.len().min(rating::LINKS_MAX);
        let rated = &follow.wanted[start..end];
        let mut links = rated.iter().map(|(place, _)| follow.batch.get(*place));
        if let Some(cluster) = self.cluster.as_deref_mut().filter(|own| own.counts_domains()) {
            let place = cluster.share_facts(page, start, &mut links, &mut self.turn);
            follow.step = Step::Rate(place);
            return place == end;
        }
        self.admission.rating_mut().page(page, &mut links);
        self.turn.charge(Work::Joined, RATED_UNITS * rated.len());
        true
    }

    /// Determines what the quality of the page says about its links: its own quality if that is
    /// known, else the one with which it was queued.
    fn estimate_links(&mut self, page: &mut Page) {
        let rating = self.admission.rating();
        if rating.inherits() {
            let url = UrlRef::from_canonical(page.fetch.url.as_bytes()).expect("it was fetched");
            page.facts.score = rating.of_page(url);
            let quality = page.facts.score.unwrap_or(page.fetch.item.quality);
            self.pages.worker.follow.estimate = rating.of_links(quality);
        }
    }

    /// Offers one URL in scope to the seen test, or to the node that crawls it. `key` is its
    /// fingerprint.
    pub(in crate::engine) fn offer_link(
        &mut self,
        (key, found): (Fingerprint, Discovery),
        url: UrlRef<'_>,
        via: &str,
    ) {
        let (seen, now) = (self.admission.seen_mut(), self.turn.at());
        let cluster = self.cluster.as_deref_mut();
        offer((key, found), (url, via), (&mut self.chains, seen), (cluster, now));
    }

    /// Offers the URLs in scope to the seen test. Returns `true` when all are offered, `false` if
    /// the budget was spent before.
    pub(super) fn offer_some(&mut self, via: &str) -> bool {
        let Step::Offer(mut start) = self.pages.worker.follow.step else { return false };
        let follow = &mut self.pages.worker.follow;
        while start < follow.wanted.len() && !self.turn.is_spent(Work::Joined) {
            let end = follow.wanted.len().min(start + seen::AHEAD);
            let few = &follow.wanted[start..end];
            follow.fingerprints.clear();
            let mut units = 0;
            for (place, _) in few {
                let url = follow.batch.get(*place);
                units += OFFER_UNITS + url.as_str().len();
                follow.fingerprints.push(self.admission.key_of(url, &mut follow.key));
            }
            self.admission.seen_mut().prefetch(&follow.fingerprints);
            for (&(place, found), &fingerprint) in few.iter().zip(&follow.fingerprints) {
                let found = Discovery { estimate: follow.estimate, ..found };
                let url = follow.batch.get(place);
                self.admission.trace_link(url, fingerprint);
                if let Some(changed) = follow.news.get(place).filter(|at| **at > 0)
                    && let Some(again) = self.backlog.again_mut()
                {
                    again.signal(fingerprint, *changed);
                }
                let (seen, now) = (self.admission.seen_mut(), self.turn.at());
                let cluster = self.cluster.as_deref_mut();
                offer((fingerprint, found), (url, via), (&mut self.chains, seen), (cluster, now));
            }
            self.turn.charge(Work::Joined, units);
            start = end;
        }
        follow.step = Step::Offer(start);
        start == follow.wanted.len()
    }
}

/// Offers one URL in scope to the seen test, or to the node that crawls it.
#[inline]
fn offer(
    (key, found): (Fingerprint, Discovery),
    (url, via): (UrlRef<'_>, &str),
    (chains, seen): (&mut Chains, &mut Seen),
    (mut cluster, now): (Option<&mut Cluster>, Instant),
) {
    if let Some(cluster) = &mut cluster
        && !cluster.share((key, found), url, via, now)
    {
        return;
    }
    // Most links are known already. The entry is encoded only for the others.
    let is_new = Cell::new(false);
    let write = |out: &mut Vec<u8>| {
        is_new.set(true);
        found.encode(url.as_str(), via, out);
    };
    if !chains.hold(key, write) {
        seen.offer_with(key, write);
    }
    if let Some(cluster) = cluster.filter(|_| is_new.get()) {
        cluster.note_new((key, found), url, via, now);
    }
}
