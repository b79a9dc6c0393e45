//! What a fetched page leads to: decoding, links, canonical URLs, the seen test.
//!
//! A page goes through its stages batch-wise: all its links are found, then all are joined, then
//! all are offered. Decoding and scanning stop at the turn's byte budget and go on in the next
//! turn from where they were, so that one page, however large or hostile, never stalls the loop.
//! Law: what comes out does not depend on the budget.

use super::Engine;
use super::fetch::{Fetch, Reply};
use super::fresh::{Discovery, Entries};
use super::ledger::Work;
use super::redirect::redirect_target;
use super::settings::Settings;
use crate::frontier::Item;
use crate::http::coding::{Coding, Codings, Decoder, State};
use crate::http::response::Head;
use crate::links::{self, Directives, Found, Progress, Scanner};
use crate::seen;
use crate::stats::Stage;
use crate::url::{Batch, Fingerprint, Url, UrlRef, canon::Joiner};
use smallvec::SmallVec;

/// A reply that waits for its links to be followed.
#[derive(Debug)]
pub(super) struct Page {
    fetch: Fetch,
    reply: Reply,
    /// Where a redirect leads.
    location: Option<Url>,
    /// Where a `Refresh` field leads.
    refresh: Option<Box<[u8]>>,
    /// References in `Link` fields.
    head_links: Found,
    directives: Directives,
    /// What its Content-Type says, for the charset.
    content_type: Option<SmallVec<[u8; 32]>>,
    codings: SmallVec<[Coding; 3]>,
    /// Whether the body is HTML that can be decoded.
    scanned: bool,
}

impl Page {
    /// What is to be followed of this reply; the reply itself if nothing is.
    pub(super) fn of(
        fetch: Fetch,
        reply: Reply,
        status: u16,
        head: &Head,
        settings: &Settings,
    ) -> Result<Self, Reply> {
        let bytes = reply.head();
        let own = |value: &[u8]| Box::<[u8]>::from(value);
        let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let location = redirect_target(head, bytes, from);
        let content_type = head.field(bytes, "content-type");
        let codings = match head.codings(bytes) {
            Codings::Known(codings) => Some(codings),
            Codings::Unknown => None,
        };
        let is_page = (200..400).contains(&status) && location.is_none();
        let scanned = is_page && codings.is_some() && is_html(content_type, reply.payload());
        let (mut head_links, mut directives) = (Found::new(), Directives::default());
        if is_page {
            for (name, value) in head.fields(bytes) {
                if name.eq_ignore_ascii_case(b"link") {
                    links::header_links(value, &settings.links, &mut head_links);
                } else if name.eq_ignore_ascii_case(b"x-robots-tag") {
                    directives = directives | links::robots_tag(value, &settings.links.product);
                }
            }
        }
        let refresh = head.field(bytes, "refresh").filter(|_| is_page);
        let refresh = refresh.and_then(links::refresh).and_then(|(_, target)| target);
        let has_links = location.is_some() || refresh.is_some() || head_links.links().len() > 0;
        if !has_links && !scanned {
            return Err(reply);
        }
        let refresh = refresh.map(own);
        let content_type = content_type.map(SmallVec::from_slice);
        let codings = codings.unwrap_or_default();
        let page = Self {
            fetch,
            reply,
            location,
            refresh,
            head_links,
            directives,
            content_type,
            codings,
            scanned,
        };
        Ok(page)
    }
}

impl Page {
    /// Bytes it holds while it waits.
    pub(super) fn bytes(&self) -> usize {
        self.reply.bytes()
    }
}

/// Media types that are scanned for links; without one the body must look like HTML.
fn is_html(content_type: Option<&[u8]>, payload: &[u8]) -> bool {
    let Some(value) = content_type else {
        let start = payload.trim_ascii_start();
        return start.first() == Some(&b'<') && !start.starts_with(b"<?xml");
    };
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    let media_type = value[..end].trim_ascii();
    media_type.eq_ignore_ascii_case(b"text/html")
        || media_type.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// The page under work, and memory that goes round from page to page.
pub(super) struct Bench {
    stage: Step,
    text: Vec<u8>,
    decoder: Decoder,
    /// Bytes of the payload that the decoder has used.
    decoded: usize,
    scanner: Scanner,
    /// Bytes of the text that the scanner has gone over, or nearly so.
    scanned: usize,
    /// The page's, for the queries of its links.
    charset: &'static encoding_rs::Encoding,
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

/// How far the page under work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Decode,
    Charset,
    Scan,
    Follow,
}

/// Decoded text kept as a spare up to this size.
const TEXT_SPARE_BYTES: usize = 1 << 20;

impl Bench {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            stage: Step::Begin,
            text: Vec::new(),
            decoder: Decoder::new(settings.coding.clone()),
            decoded: 0,
            scanner: Scanner::new(settings.links.clone()),
            scanned: 0,
            charset: encoding_rs::UTF_8,
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

    fn begin(&mut self, page: &Page) {
        self.found.clear();
        self.charset = encoding_rs::UTF_8;
        self.decoded = 0;
        self.scanned = 0;
        self.text.clear();
        self.text.shrink_to(TEXT_SPARE_BYTES);
        self.own_text = !page.codings.is_empty();
        self.stage = match (page.scanned, self.own_text) {
            (false, _) => Step::Follow,
            (true, true) => {
                self.decoder.begin(&page.codings);
                Step::Decode
            }
            (true, false) => Step::Charset,
        };
    }

    fn text<'a>(&'a self, page: &'a Page) -> &'a [u8] {
        if self.own_text { &self.text } else { page.reply.payload() }
    }

    /// Finds the charset; what can't be scanned as it stands becomes UTF-8 first. Returns how many
    /// bytes that took.
    fn begin_scan(&mut self, page: &Page, text_bytes_max: usize) -> usize {
        self.charset = links::charset(page.content_type.as_deref(), self.text(page));
        let (mut scanned_as, mut converted) = (self.charset, 0);
        if !links::is_scannable(self.charset) {
            let mut utf8 = Vec::new();
            links::to_utf8(self.charset, self.text(page), &mut utf8, text_bytes_max);
            converted = utf8.len();
            self.text = utf8;
            self.own_text = true;
            scanned_as = encoding_rs::UTF_8;
        }
        self.scanner.begin(scanned_as);
        self.stage = Step::Scan;
        converted
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
        let Some(page) = self.pages.front() else { return };
        match self.bench.stage {
            Step::Begin => self.bench.begin(page),
            Step::Decode => self.decode_some(),
            Step::Charset => {
                self.meter.stay(Stage::Links, 0);
                let most = self.settings.text_bytes_max();
                let converted = self.bench.begin_scan(&self.pages[0], most);
                self.ledger.charge(Work::Converted, converted);
            }
            Step::Scan => self.scan_some(),
            Step::Follow => {
                let page = self.pages.pop_front().expect("there is a first page");
                self.backlog_bytes -= page.bytes();
                self.follow(page);
                self.bench.stage = Step::Begin;
            }
        }
    }

    fn decode_some(&mut self) {
        let (page, bench) = (&self.pages[0], &mut self.bench);
        self.meter.stay(Stage::Decode, 0);
        let before = bench.text.len();
        let input = &page.reply.payload()[bench.decoded..];
        let step =
            bench.decoder.decode(input, true, &mut bench.text, self.ledger.left(Work::Decoded));
        bench.decoded += step.used;
        let written = bench.text.len() - before;
        self.meter.add_bytes(written);
        self.counts.text_bytes += written as u64;
        self.ledger.charge(Work::Decoded, written.max(step.used).max(1));
        if step.state != State::More {
            // A broken or cut coding leaves what could be read.
            if !matches!(step.state, State::Done) {
                self.counts.codings_broken += 1;
            }
            bench.stage = Step::Charset;
        }
    }

    fn scan_some(&mut self) {
        let (page, bench) = (&self.pages[0], &mut self.bench);
        let text = if bench.own_text { &bench.text } else { page.reply.payload() };
        let budget = self.ledger.left(Work::Scanned).max(1);
        let spent = budget.min(text.len() - bench.scanned).max(1);
        self.meter.stay(Stage::Links, spent);
        let progress = bench.scanner.scan(text, budget, &mut bench.found);
        bench.scanned += spent.min(text.len() - bench.scanned);
        self.ledger.charge(Work::Scanned, spent);
        if progress == Progress::Done {
            bench.stage = Step::Follow;
        }
    }

    /// All is found: what the page allows is joined, tested, and queued.
    fn follow(&mut self, page: Page) {
        self.meter.enter(Stage::Url, 0);
        self.join_all(&page);
        let joined: usize = self.bench.batch.iter().map(|url| url.as_str().len()).sum();
        self.meter.add_bytes(joined);
        self.ledger.charge(Work::Joined, joined + 1);
        self.meter.enter(Stage::Seen, 0);
        self.offer_all(&page.fetch);
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
        if let Some(location) = &page.location {
            self.counts.links += 1;
            match joiner.join_str(location.as_str(), encoding_rs::UTF_8, &mut bench.batch) {
                Ok(()) => bench.letters.push(REDIRECT),
                Err(_) => self.counts.links_invalid += 1,
            }
        }
        if let Some(target) = &page.refresh {
            self.counts.links += 1;
            match joiner.join(target, encoding_rs::UTF_8, &mut bench.batch) {
                Ok(()) => bench.letters.push(links::Kind::Refresh.hop() as u8),
                Err(_) => self.counts.links_invalid += 1,
            }
        }
        let directives = page.directives | bench.found.directives();
        let charset = bench.charset;
        // Those of the header are relative to the page's URL, whatever base the page names.
        let bases = [None, bench.found.base()];
        for (found, href) in [&page.head_links, &bench.found].into_iter().zip(bases) {
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
