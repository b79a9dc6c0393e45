//! Sitemaps and feeds: replies whose URLs a job reads.
//!
//! A reply that may be one waits here. One after another goes to a job ([`ListJob`]), which undoes
//! its codings and parses it: for 50 MB of XML the loop would stand still for a quarter of a
//! second. Then it joins the other pages, and its URLs are joined and offered as links are, within
//! the turn's budget.
//!
//! Sitemaps are found in robots.txt, at the usual places if none is named there
//! (`discovery.sitemaps`), and in sitemaps. A URL counts if it has the host of its sitemap, or that
//! of the robots.txt by which the sitemap was found; that is what [`Fetch`]'s `via` names, for the
//! sitemaps of an index too.
//!
//! Laws: what is before the first flaw of a file is read, and the flaw is annotated and counted. A
//! checkpoint waits for files under work, as for pages. Memory: the bodies count for the pool; the
//! URLs of one file at a time, at most [`Limits`] of them.
//! Source: sitemaps.org/protocol.html, "Sitemaps & Cross Submits".

use super::Page;
use super::list_job::{ListDone, ListJob};
use crate::engine::Engine;
use crate::engine::admission::Discovery;
use crate::engine::again::Entry as KnownPage;
use crate::engine::backlog::{Item, ROBOTS_TXT};
use crate::engine::contract::{Action, Job};
use crate::engine::ledger::Work;
use crate::engine::wire::Fetch;
use crate::frontier::ServerId;
use crate::links::Kind;
use crate::sitemap::{Entry, Flaw, Kind as ListKind, Limits};
use crate::url::scope::{Distance, Reference};
use crate::url::{Url, UrlRef};
use std::collections::VecDeque;

/// Where sitemaps are looked for if robots.txt names none.
const USUAL: [&str; 2] = ["/sitemap.xml", "/sitemap_index.xml"];
/// The cost of a sitemap that a robots.txt names, in units of work (see `ledger`), in addition to
/// that of its bytes.
const NAMED_UNITS: usize = 128;
/// The units of work for each byte of a URL that isn't ASCII.
const IDNA_WEIGHT: usize = 40;

/// The replies that may be sitemaps or feeds.
#[derive(Debug, Default)]
pub(in crate::engine) struct Lists {
    /// The replies that wait, and what is known of their pages.
    waiting: VecDeque<(Page, Option<KnownPage>)>,
    /// The bytes of the replies that wait, and of the one that the job has.
    bytes: usize,
    /// The one that the job has.
    at_work: Option<(Page, Option<KnownPage>)>,
    /// Whether the URLs of the one that was read last aren't all offered.
    is_offering: bool,
}

impl Lists {
    /// Returns whether any isn't read yet.
    pub(in crate::engine) fn is_busy(&self) -> bool {
        self.is_at_work() || !self.waiting.is_empty()
    }

    /// Returns whether a job has one.
    pub(in crate::engine) fn is_at_work(&self) -> bool {
        self.at_work.is_some()
    }

    /// Returns whether the next one can be handed to a job.
    pub(in crate::engine) fn can_begin(&self) -> bool {
        !self.is_at_work() && !self.is_offering && !self.waiting.is_empty()
    }

    /// Returns the number of bytes of these replies.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().chain(&self.at_work).map(|(page, _)| &*page.fetch.url)
    }

    /// Takes in that the URLs of the one that was read last are all offered.
    pub(super) fn offered(&mut self) {
        self.is_offering = false;
    }
}

impl Engine {
    /// Has a job read a reply that may be a sitemap or a feed. Then it is filed for its next visit
    /// as what it is.
    pub(in crate::engine) fn list_later(&mut self, page: Page, known: Option<KnownPage>) {
        self.pages.lists.bytes += page.reply.bytes();
        self.pages.lists.waiting.push_back((page, known));
    }

    /// Hands out the next job.
    pub(in crate::engine) fn work_lists(&mut self) {
        let lists = &mut self.pages.lists;
        if !lists.can_begin() {
            return;
        }
        let Some((mut page, known)) = lists.waiting.pop_front() else { return };
        let (reply, start) = page.reply.lend();
        let charset = page.sources.charset.as_deref();
        let job = ListJob {
            reply,
            start,
            codings: page.sources.codings.clone(),
            charset: charset.map(|name| String::from_utf8_lossy(name).into_owned()),
            limits: (Limits::default(), self.settings.coding.clone()),
        };
        lists.at_work = Some((page, known));
        self.turn.act(Action::Work(Job::List(Box::new(job))));
    }

    /// Takes in what a job has read.
    pub(in crate::engine) fn list_read(&mut self, done: ListDone) {
        let Some((mut page, known)) = self.pages.lists.at_work.take() else { return };
        let ListDone { reply, listing } = done;
        page.reply.take_back(reply);
        self.pages.lists.bytes -= page.reply.bytes();
        let fetch = &mut page.fetch;
        if let Some(flaw) = listing.flaw {
            self.note_flaw(fetch, flaw, listing.entries.len());
        }
        if listing.left_out > 0 {
            self.counts.cut_from("sitemapEntries", listing.left_out, &fetch.url);
            fetch.notes.push("sitemapEntries");
        }
        if let Some(kind) = listing.kind {
            self.counts.sitemaps += 1;
            self.counts.sitemap_urls += listing.entries.len() as u64;
            fetch.notes.push(if kind == ListKind::Feed { "feed" } else { "sitemap" });
        }
        if let Some(known) = known {
            page.news_since = self.file_list(known, &page.fetch.item, &listing);
        }
        page.listing = Some(listing);
        self.pages.lists.is_offering = true;
        self.pages.push(page);
    }

    /// Annotates a file with its flaw, and counts it. That an XML file that a page links to is
    /// neither a sitemap nor a feed is no flaw.
    fn note_flaw(&mut self, fetch: &mut Fetch, flaw: Flaw, entries: usize) {
        let cause = match flaw {
            Flaw::Foreign if !fetch.item.is_sitemap() => return,
            Flaw::Foreign => "sitemapUnread",
            Flaw::TooManyEntries | Flaw::TooLong | Flaw::EndsEarly => "sitemapCut",
            Flaw::TokenTooLong | Flaw::TooDeep => "sitemapBroken",
            Flaw::Malformed(_) | Flaw::Gzip | Flaw::Unreadable => "sitemapBroken",
        };
        log::info!("{}: {flaw}; {entries} entries were read", fetch.url);
        self.counts.cut_from(cause, 1, &fetch.url);
        fetch.notes.push(cause);
    }

    /// Offers the sitemaps that the robots.txt of a server names to the seen test, or those at the
    /// usual places. They are as far away as the page for which it was requested, which is `near`.
    pub(in crate::engine) fn offer_sitemaps(
        &mut self,
        of: ServerId,
        near: Distance,
        named: &[&str],
    ) {
        let settings = self.settings.sitemaps;
        if !settings.read {
            return;
        }
        let via = self.backlog.origin(of).url_of(ROBOTS_TXT);
        if named.is_empty() && settings.usual {
            let usual = USUAL.map(|path| self.backlog.origin(of).url_of(path));
            usual.iter().for_each(|url| self.offer_sitemap(url, near.depth, &via));
        }
        named.iter().for_each(|url| self.offer_sitemap(url, near.depth, &via));
    }

    fn offer_sitemap(&mut self, text: &str, depth: u16, via: &str) {
        // Names that aren't ASCII cost most.
        let weight = if text.is_ascii() { 1 } else { IDNA_WEIGHT };
        self.turn.charge(Work::Rules, NAMED_UNITS + weight * text.len());
        let Ok(url) = Url::parse(text) else {
            self.counts.links_invalid += 1;
            return;
        };
        let (url, scope) = (url.view(), self.admission.scope());
        let from = Distance { depth: depth.saturating_sub(1), requisite: 0 };
        match scope.check_reference(url, Reference::Link, from, true, &mut "") {
            Ok(Distance { depth, requisite }) => {
                let letter = Kind::Listed.hop() as u8;
                let found =
                    Discovery { letter, hops: 0, depth, requisite, tries: 0, estimate: None };
                let print = self.admission.key_of(url, &mut Vec::new());
                self.offer_link((print, found), url, via);
            }
            Err(why) => self.counts.out_of_scope(why.name()),
        }
    }
}

impl Page {
    /// Returns what the page lists as a sitemap or a feed.
    pub(super) fn listed(&self) -> &[Entry] {
        self.listing.as_ref().map_or(&[], |listing| &listing.entries)
    }

    /// Returns when an entry says that its page has changed, if that is news; else 0.
    pub(super) fn news(&self, entry: &Entry) -> u32 {
        let is_news = |at: &u32| self.news_since.is_some_and(|since| *at > since);
        entry.modified.filter(is_news).unwrap_or(0)
    }

    /// Returns whether the page is a list of sitemaps.
    pub(super) fn is_index(&self) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.kind == Some(ListKind::Index))
    }

    /// Returns whether a URL counts that the page lists as a sitemap.
    pub(super) fn may_list(&self, url: UrlRef<'_>) -> bool {
        let host = |of: &str| {
            UrlRef::from_canonical(of.as_bytes()).is_some_and(|of| of.host() == url.host())
        };
        host(&self.fetch.url) || self.robots_txt().is_some_and(host)
    }

    /// Returns the page on which the links of this one count as found, for the crawl log: itself,
    /// or for a list of sitemaps the robots.txt by which it was found.
    pub(super) fn via(&self) -> &str {
        self.robots_txt().filter(|_| self.is_index()).unwrap_or(&self.fetch.url)
    }

    /// Returns the robots.txt by which the page was found, if it is a sitemap.
    fn robots_txt(&self) -> Option<&str> {
        self.fetch.item.via.as_deref().filter(|_| self.fetch.item.is_sitemap())
    }
}

impl Item {
    /// Returns whether the URL was found as that of a sitemap: in a robots.txt, or in an index that
    /// a robots.txt names.
    pub(in crate::engine) fn is_sitemap(&self) -> bool {
        let is_listed = self.found_as == Kind::Listed.hop() as u8;
        is_listed && self.via.as_deref().is_some_and(|via| via.ends_with(ROBOTS_TXT))
    }
}
