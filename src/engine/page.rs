//! What a fetched page leads to: decoding, links, canonical URLs, the seen test.
//!
//! A page goes through its stages batch-wise: all its links are found, then all are joined, then
//! all are offered. Decoding and scanning stop at the turn's byte budget and go on in the next
//! turn from where they were, so that one page, however large or hostile, never stalls the loop.
//! Law: what comes out does not depend on the budget.

mod leads;
mod read;

pub(super) use leads::Leads;

use super::Engine;
use super::fetch::{Fetch, Reply};
use super::fresh::{Discovery, Entries};
use super::ledger::Work;
use super::record::Settled;
use super::settings::Settings;
use crate::frontier::Item;
use crate::http::coding::Decoder;
use crate::links::{self, Found, Scanner};
use crate::seen;
use crate::stats::Stage;
use crate::url::{Batch, Fingerprint, UrlRef, canon::Joiner};
use encoding_rs::{Encoding, UTF_8};
use read::Step;

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

    /// Bytes it holds while it waits.
    pub(super) fn bytes(&self) -> usize {
        self.reply.bytes()
    }
}

/// The page under work, and memory that goes round from page to page.
pub(super) struct Bench {
    stage: Step,
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
    batch: Batch,
    /// For each URL of the batch: how it was found.
    letters: Vec<u8>,
    /// Places in the batch of the URLs in scope, and how they were found.
    wanted: Vec<(usize, Discovery)>,
    key: Vec<u8>,
    /// Of some of them.
    fingerprints: Vec<Fingerprint>,
    pub(super) fresh: Entries,
}

impl Bench {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            stage: Step::Begin,
            text: Vec::new(),
            converted: Vec::new(),
            decoder: Decoder::new(settings.coding.clone()),
            taken: 0,
            scanner: Scanner::new(settings.links.clone()),
            charset: UTF_8,
            is_tentative: false,
            own_text: false,
            found: Found::new(),
            batch: Batch::new(),
            letters: Vec::new(),
            wanted: Vec::new(),
            key: Vec::new(),
            fingerprints: Vec::new(),
            fresh: Entries::default(),
        }
    }
}

impl Engine {
    /// Works on the pages that wait, up to the turn's budget. Its stages follow one another without
    /// a way back between them: half as many readings of the clock.
    pub(super) fn work_pages(&mut self) {
        let outer = self.meter.stage();
        while !self.ledger.is_spent(Work::Scanned) && !self.pages.is_empty() {
            self.work_page();
        }
        if self.meter.stage() != outer {
            self.meter.back(outer);
        }
    }

    /// One stage of the first page, or a part of it.
    fn work_page(&mut self) {
        if !matches!(self.bench.stage, Step::Follow) {
            return self.read_page();
        }
        let page = self.pages.pop_front().expect("there is a first page");
        self.backlog_bytes -= page.bytes();
        self.follow(page);
        self.bench.stage = Step::Begin;
    }

    /// All is found: what the page allows is joined, tested, and queued.
    fn follow(&mut self, mut page: Page) {
        self.meter.enter(Stage::Url, 0);
        self.join_all(&page);
        let joined: usize = self.bench.batch.iter().map(|url| url.as_str().len()).sum();
        self.meter.add_bytes(joined);
        self.ledger.charge(Work::Joined, joined + 1);
        self.meter.enter(Stage::Seen, 0);
        self.offer_all(&page.fetch);
        self.note_cut(&mut page);
        self.write_line(&page.fetch, &page.settled, &[]);
        page.reply.release(&mut self.pool);
        if self.seen.has_fresh() {
            self.meter.enter(Stage::Schedule, 0);
            self.queue_fresh();
        }
    }

    fn join_all(&mut self, page: &Page) {
        let bench = &mut self.bench;
        let settings = &self.settings.links;
        let base = UrlRef::from_canonical(page.fetch.url.as_bytes()).expect("it was fetched");
        bench.batch.clear();
        bench.letters.clear();
        let mut joiner = Joiner::new(base);
        if let Some(location) = &page.leads.location {
            self.counts.links += 1;
            match joiner.join_str(location.as_str(), UTF_8, &mut bench.batch) {
                Ok(()) => bench.letters.push(REDIRECT),
                Err(_) => self.counts.links_invalid += 1,
            }
        }
        if let Some(target) = &page.leads.refresh {
            self.counts.links += 1;
            match joiner.join(target, UTF_8, &mut bench.batch) {
                Ok(()) => bench.letters.push(links::Kind::Refresh.hop() as u8),
                Err(_) => self.counts.links_invalid += 1,
            }
        }
        let directives = page.leads.directives | bench.found.directives();
        let charset = bench.charset;
        // Those of the header are relative to the page's URL, whatever base the page names.
        let bases = [None, bench.found.base()];
        for (found, href) in [&page.leads.head_links, &bench.found].into_iter().zip(bases) {
            if let Some(href) = href {
                joiner.rebase(href);
            }
            for link in found.links() {
                self.counts.links += 1;
                if !settings.may_follow(&link, directives) {
                    self.counts.links_nofollow += 1;
                    continue;
                }
                match joiner.join_str(link.reference, charset, &mut bench.batch) {
                    Ok(()) => bench.letters.push(link.kind.hop() as u8),
                    Err(_) => self.counts.links_invalid += 1,
                }
            }
        }
    }

    /// Offers the URLs of the batch, as far as they are wanted, to the seen test.
    fn offer_all(&mut self, fetch: &Fetch) {
        self.choose(fetch);
        self.trace_page(fetch);
        let bench = &mut self.bench;
        if self.rating.counts_links() {
            let page = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
            let mut links = bench.wanted.iter().map(|(place, _)| bench.batch.get(*place));
            self.rating.page(page, &mut links);
        }
        for few in bench.wanted.chunks(seen::AHEAD) {
            bench.fingerprints.clear();
            for (place, _) in few {
                let key = self.keys.key(bench.batch.get(*place), &mut bench.key);
                bench.fingerprints.push(self.fingerprinter.of(key));
            }
            self.seen.look_ahead(&bench.fingerprints);
            for (&(place, found), &fingerprint) in few.iter().zip(&bench.fingerprints) {
                let url = bench.batch.get(place);
                if let Some(trace) = &mut self.trace {
                    trace.link(url, fingerprint);
                }
                // Most links lead where others have led: nothing is written down for those.
                let write = |out: &mut Vec<u8>| found.encode(url.as_str(), &fetch.url, out);
                self.seen.offer_with(fingerprint, write);
            }
        }
        self.end_traced_page();
        for url in std::mem::take(&mut self.redirects_cut) {
            self.cut_redirect(url.view(), fetch);
        }
    }

    /// Picks from the batch what is in scope, repeats and known URLs included.
    fn choose(&mut self, fetch: &Fetch) {
        let bench = &mut self.bench;
        bench.wanted.clear();
        let mut listed = "";
        for (place, (url, &letter)) in bench.batch.iter().zip(&bench.letters).enumerate() {
            let redirect = letter == REDIRECT;
            let hops = if redirect { fetch.item.hops + 1 } else { 0 };
            let depth = fetch.item.depth.saturating_add(u16::from(!redirect));
            if hops > self.settings.redirects_max {
                self.redirects_cut.push(url.to_owned());
            } else if let Err(why) = self.scope.check_after(url, u32::from(depth), &mut listed) {
                self.counts.out_of_scope(why.name());
            } else {
                bench.wanted.push((place, Discovery { letter, hops, depth }));
            }
        }
    }

    /// A redirect too many has its line in the log. It is not seen for that: a shorter way may
    /// lead there yet.
    fn cut_redirect(&mut self, url: UrlRef<'_>, fetch: &Fetch) {
        self.counts.redirects_cut += 1;
        let Ok(id) = self.server_for(url, REDIRECT) else { return };
        let item = Item {
            target: url.target().into(),
            hops: fetch.item.hops + 1,
            found_as: REDIRECT,
            via: Some(fetch.url.as_ref().into()),
            tries: 0,
            ..fetch.item.clone()
        };
        self.note_unsent(id, &item, super::outcome::Outcome::RedirectLimit);
    }
}

/// Letter of a redirect in a hop path.
pub(super) const REDIRECT: u8 = b'R';
