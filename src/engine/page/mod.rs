//! What a fetched page leads to: decoding, links, canonical URLs, the seen test.
//!
//! A page goes through its stages batch-wise: all its links are found, then all are joined, then
//! all are offered (`follow`). Each stage stops at the turn's budget and resumes in the next turn,
//! so that one page, however large or hostile, never stalls the loop.
//!
//! Pages are worked on in the order in which they came, so a page that takes seconds holds up those
//! of all other servers. Who sends such pages rests for them: see [`REST_A_UNIT`].
//! Law: what comes out does not depend on the budget.

mod follow;
mod leads;
mod read;

pub(super) use leads::Leads;

use super::Engine;
use super::archive::Settled;
use super::ledger::Work;
use super::settings::Settings;
use super::wire::{Fetch, Reply};
use crate::frontier::ServerState;
use crate::http::coding::Decoder;
use crate::links::{Found, Scanner};
use crate::url::UrlRef;
use encoding_rs::{Encoding, UTF_8};
use follow::Follow;
use read::Step;
use std::collections::VecDeque;
use std::time::Duration;

/// A reply that waits for its links to be followed, and then for its line in the crawl log.
#[derive(Debug)]
pub(super) struct Page {
    fetch: Fetch,
    settled: Settled,
    reply: Reply,
    leads: Leads,
}

impl Page {
    pub(super) fn new(fetch: Fetch, settled: Settled, reply: Reply, leads: Leads) -> Self {
        Self { fetch, settled, reply, leads }
    }
}

/// Pages that wait for work, in the order in which they came, and the worker of the first.
pub(super) struct Pages {
    queue: VecDeque<Page>,
    /// Bytes of their replies.
    bytes: usize,
    worker: PageWorker,
}

impl Pages {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, worker: PageWorker::new(settings) }
    }

    /// Adds a page behind those that wait.
    pub(super) fn push(&mut self, page: Page) {
        self.bytes += page.reply.bytes();
        self.queue.push_back(page);
    }

    /// Bytes of the replies that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no page waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Pages that cost so many units of work are heavy: one of 5 MB of HTML is not.
const HEAVY_UNITS: usize = 16 << 20;
/// Rest that a server is given for each unit of a heavy page. A unit costs 2 to 16 nanoseconds, so
/// such pages of one server take some twelfth of the time at most.
const REST_A_UNIT: Duration = Duration::from_nanos(200);

/// The page under work, and memory that goes round from page to page.
struct PageWorker {
    stage: Step,
    /// What the page has cost so far, in units of work.
    units: usize,
    text: Vec<u8>,
    /// The text in UTF-8, as far as it is converted.
    converted: Vec<u8>,
    decoder: Decoder,
    /// Bytes that the stage has used: of the payload when it decodes, else of the text.
    taken: usize,
    scanner: Scanner,
    /// The page's, for the queries of its links.
    charset: &'static Encoding,
    /// A `meta` further down may name another.
    is_tentative: bool,
    /// The text is that of `text`, not of the reply.
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
    /// Works on the pages that wait, up to the turn's budget. Its stages follow one another without
    /// a way back between them: half as many readings of the clock.
    pub(super) fn work_pages(&mut self) {
        let outer = self.turn.meter().stage();
        while !self.turn.is_spent(Work::Scanned) && !self.pages.queue.is_empty() {
            self.work_page();
        }
        if self.pages.worker.units >= HEAVY_UNITS && !matches!(self.pages.worker.stage, Step::Begin)
        {
            self.rest_for_work();
        }
        if self.turn.meter().stage() != outer {
            self.turn.back(outer);
        }
    }

    /// One stage of the first page, or a part of it.
    fn work_page(&mut self) {
        if matches!(self.pages.worker.stage, Step::Begin) {
            self.pages.worker.units = 0;
        }
        let before = self.turn.left(Work::Scanned);
        if matches!(self.pages.worker.stage, Step::Follow) {
            self.follow_some();
        } else {
            self.read_page();
        }
        self.pages.worker.units += before.saturating_sub(self.turn.left(Work::Scanned));
    }

    /// The server of the page under work is left alone in proportion to what the page has cost.
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
