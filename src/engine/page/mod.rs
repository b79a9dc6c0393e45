//! Pages: finds the links of fetched pages, and offers their URLs to the seen test.
//!
//! A page goes through its stages one after another: all its links are found (`read`), then all are
//! joined, then all are offered (`follow`). Each stage stops at the turn's budget and resumes in
//! the next turn, so that no page, however large or hostile, stalls the loop.
//!
//! Pages are processed in order of arrival, so a page that takes seconds delays those of all other
//! servers. A server that sends such pages rests longer: see [`REST_A_UNIT`].
//!
//! Law: the result does not depend on the budget.
//! Cost: a copy of the text of a page if it is compressed or must be converted.

mod follow;
mod list;
mod list_job;
mod read;
mod score;
mod sources;

pub use list_job::{ListDone, ListJob};
pub(super) use sources::LinkSources;

use super::Engine;
use super::archive::LogFacts;
use super::ledger::Work;
use super::settings::Settings;
use super::wire::{Fetch, Reply};
use crate::frontier::ServerState;
use crate::http::coding::Decoder;
use crate::links::{Found, Scanner};
use crate::repeats::Repeats;
use crate::sitemap::Listing;
use crate::url::{Fingerprinter, UrlRef};
use encoding_rs::{Encoding, UTF_8};
use follow::Follow;
use list::Lists;
use read::Step;
use score::Scoring;
use std::collections::VecDeque;
use std::time::Duration;

/// A fetched page whose links are to be found. After that, its line in the crawl log is written.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) fetch: Fetch,
    pub(super) facts: LogFacts,
    pub(super) reply: Reply,
    pub(super) sources: LinkSources,
    /// The URLs that it lists, if it is a sitemap or a feed that was read.
    listing: Option<Listing>,
    /// The time after which a change that it lists is news, in seconds since 1970; `None` if it
    /// gives no signals.
    news_since: Option<u32>,
}

impl Page {
    pub(super) fn new(fetch: Fetch, facts: LogFacts, reply: Reply, sources: LinkSources) -> Self {
        Self { fetch, facts, reply, sources, listing: None, news_since: None }
    }
}

/// The pages that wait, in order of arrival, the worker that processes the first, pages whose links
/// wait for their scores, and which pages repeat.
pub(super) struct Pages {
    queue: VecDeque<Page>,
    /// The bytes of the replies in `queue`.
    bytes: usize,
    worker: PageWorker,
    scoring: Scoring,
    lists: Lists,
    repeats: Repeats,
}

impl Pages {
    pub(super) fn new(settings: &Settings) -> Self {
        let worker = PageWorker::new(settings);
        let (scoring, lists) = (Scoring::default(), Lists::default());
        let hash = Fingerprinter::new(settings.fingerprint_key);
        let repeats = Repeats::new(settings.repeats.unwrap_or_default(), hash);
        Self { queue: VecDeque::new(), bytes: 0, worker, scoring, lists, repeats }
    }

    /// Returns the URLs of the pages that wait, in order of arrival; those that wait for a score
    /// come last.
    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        let queue = self.queue.iter().map(|page| &*page.fetch.url);
        queue.chain(self.lists.urls()).chain(self.scoring.urls())
    }

    /// Returns the pages whose links wait for their scores.
    pub(super) fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    /// Returns the replies that may be sitemaps or feeds.
    pub(super) fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Returns which patterns of URLs have pages that repeat.
    pub(super) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Returns which patterns of URLs have pages that repeat, for changes.
    pub(super) fn repeats_mut(&mut self) -> &mut Repeats {
        &mut self.repeats
    }

    /// Adds a page at the end of the queue.
    pub(super) fn push(&mut self, page: Page) {
        self.bytes += page.reply.bytes();
        self.queue.push_back(page);
    }

    /// Returns the number of bytes of the replies that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether no page can be processed now.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.scoring.has_ready()
    }
}

/// The cost in units of work (see `ledger`) from which a page counts as heavy. A page of 5 MB of
/// HTML is not.
const HEAVY_UNITS: usize = 16 << 20;
/// The rest that a server owes for each unit of work of a heavy page. A unit takes 2 to 16
/// nanoseconds of CPU time, so the heavy pages of one server use at most about a twelfth of the
/// time.
const REST_A_UNIT: Duration = Duration::from_nanos(200);

/// The state of the page that is being processed, and buffers that are reused.
struct PageWorker {
    stage: Step,
    /// The cost of the page so far, in units of work (see `ledger`).
    units: usize,
    text: Vec<u8>,
    /// The part of the text that is converted to UTF-8.
    converted: Vec<u8>,
    decoder: Decoder,
    /// The number of bytes that the present stage has consumed: of the reply's payload while it is
    /// decoded, else of the text.
    taken: usize,
    scanner: Scanner,
    /// The charset of the page, in which the queries of its links are encoded too.
    charset: &'static Encoding,
    /// Whether the charset is provisional: a `meta` element may still name another one.
    is_tentative: bool,
    /// Whether the text to scan is in `text` (true), or is the payload of the reply as received
    /// (false).
    own_text: bool,
    found: Found,
    follow: Follow,
}

impl PageWorker {
    fn new(settings: &Settings) -> Self {
        Self {
            stage: Step::Begin,
            units: 0,
            text: Vec::new(),
            converted: Vec::new(),
            decoder: Decoder::new(settings.coding.clone()),
            taken: 0,
            scanner: Scanner::new(settings.links.clone()),
            charset: UTF_8,
            is_tentative: false,
            own_text: false,
            found: Found::new(),
            follow: Follow::default(),
        }
    }
}

impl Engine {
    /// Processes the waiting pages, within the turn's budget. The meter of CPU time is switched
    /// from stage to stage directly, which halves the number of clock reads.
    pub(super) fn work_pages(&mut self) {
        let outer = self.turn.meter().stage();
        while !self.turn.is_spent(Work::Scanned) && !self.pages.is_empty() && self.work_page() {}
        if self.pages.worker.units >= HEAVY_UNITS && !matches!(self.pages.worker.stage, Step::Begin)
        {
            self.rest_for_work();
        }
        if self.turn.meter().stage() != outer {
            self.turn.back(outer);
        }
    }

    /// Processes one stage of the first page, or as much of it as the budget allows. Returns
    /// `false` if the page waits for the next turn.
    fn work_page(&mut self) -> bool {
        if matches!(self.pages.worker.stage, Step::Begin) {
            // Between two pages the worker is free for links that have waited.
            if self.pages.scoring.has_ready() {
                self.offer_ready();
                return true;
            }
            self.pages.worker.units = 0;
        }
        let before = self.turn.left(Work::Scanned);
        let goes_on = if matches!(self.pages.worker.stage, Step::Follow) {
            self.follow_some();
            true
        } else {
            self.read_page()
        };
        self.pages.worker.units += before.saturating_sub(self.turn.left(Work::Scanned));
        goes_on
    }

    /// Makes the server of the page that is being processed rest in proportion to what the page has
    /// cost.
    fn rest_for_work(&mut self) {
        let Some(page) = self.pages.queue.front() else { return };
        let url = UrlRef::from_canonical(page.fetch.url.as_bytes()).expect("it was fetched");
        let Some(id) = self.backlog.find(url) else { return };
        let units = u32::try_from(self.pages.worker.units).unwrap_or(u32::MAX);
        let until = self.turn.at() + REST_A_UNIT * units;
        if !self.end_visit_of(id, until) && self.backlog.server(id).state() != ServerState::Busy {
            self.backlog.snooze(id, until, self.turn.at());
        }
    }
}
