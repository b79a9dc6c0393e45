//! Pages whose links wait for the score that the operator's program gives the page.
//!
//! When the links of a page are found and joined, its text is handed to the world
//! ([`Action::Score`]) and its reply is freed. The world answers later, in any order
//! ([`Engine::scored`]). Then the links are offered to the seen test, with a quality that follows
//! from the score. They have the page's own estimate instead if the answer doesn't come in time, is
//! of no use, or if as many pages wait as may. Each such page is counted by its cause.
//!
//! A page that waits is not done: the crawl doesn't end before it, and its line in the crawl log is
//! written last. A checkpoint doesn't wait for scores: it writes the lines that are due, and saves
//! the links with the estimates that they have without a score. A stop gives up waiting.
//!
//! ```text
//! kind 12 of a snapshot   links of a page   length of its URL u16 | its URL
//!                         | each link: length varint, see engine::admission
//! ```
//!
//! Laws: each link of a page is offered once. At most `waiting_max` pages wait, with at most
//! [`WAITING_BYTES_MAX`] of links and texts, except that one page may always wait.
//! Cost: a copy of up to [`TEXT_BYTES_MAX`] of text; a look-up in a map for each answer.

use super::follow::Links;
use super::read::text_of;
use super::{Page, PageWorker};
use crate::engine::Engine;
use crate::engine::admission::Discovery;
use crate::engine::archive::LogFacts;
use crate::engine::contract::{Action, ScoreFailure, ScoreId, ScoreRequest, Scored};
use crate::engine::ledger::Work;
use crate::engine::outcome::Outcome;
use crate::engine::settings::Scoring as Settings;
use crate::engine::wire::Fetch;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::http::mime::{self, Markup};
use crate::links;
use encoding_rs::UTF_8;
use std::collections::{BTreeMap, VecDeque};

/// The maximum length of the text of a page that is scored, in bytes. What a page is about shows in
/// its first pages of text; more text costs the program time and hardly changes the score.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// The maximum number of bytes of texts and links of pages that wait for their scores: 250 pages of
/// the longest text, or some 6,000 of 10 KiB.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The cause of a missing score if the crawl ends before there is one.
const STOPPED: &str = "score-stopped";
/// The number of bytes of links from which they begin another frame of a snapshot.
const PIECE_BYTES: usize = 1 << 20;
/// The maximum number of waits that end in a turn, at a microsecond each: a program that hangs lets
/// all of them run out together.
const EXPIRED_MAX: usize = 1_000;

/// The pages whose links wait, and those whose wait is over.
#[derive(Debug, Default)]
pub(in crate::engine) struct Scoring {
    waiting: BTreeMap<ScoreId, Waiting>,
    /// The pages whose links are offered next, in order.
    ready: VecDeque<Waiting>,
    /// Whether the worker has the links of the first page of `ready`.
    is_offering: bool,
    /// The bytes of texts and links of all these pages.
    bytes: usize,
    /// The number of the last page that was handed to the world.
    last: u64,
    /// Whether the world can't have pages scored any more.
    is_gone: bool,
    /// The causes of missing scores that this run has warned of.
    warned: Vec<&'static str>,
}

/// A page whose links wait for its score, or are offered next.
#[derive(Debug)]
struct Waiting {
    fetch: Fetch,
    facts: LogFacts,
    links: Links,
    /// When the wait for the score ends.
    due: Instant,
    /// The bytes of its text and links.
    bytes: usize,
    /// Whether its line is in the crawl log.
    is_logged: bool,
}

impl Scoring {
    /// Returns the number of pages that wait for their scores.
    pub(in crate::engine) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the URLs of all pages whose links are not offered yet.
    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        self.waiting.values().chain(&self.ready).map(|page| &*page.fetch.url)
    }

    /// Returns whether links can be offered now.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns when the wait of a page ends.
    pub(in crate::engine) fn deadline(&self) -> Option<Instant> {
        // All pages wait equally long.
        self.waiting.first_key_value().map(|(_, page)| page.due)
    }

    /// Takes out the page that has waited longest if its wait is over at `now`.
    fn expired(&mut self, now: Instant) -> Option<Waiting> {
        let first = self.waiting.first_entry()?;
        (first.get().due <= now).then(|| first.remove())
    }

    fn has_room(&self, settings: Settings) -> bool {
        self.waiting.len() + self.ready.len() < settings.waiting_max
            && self.bytes < WAITING_BYTES_MAX
    }

    /// Encodes the links of the pages that wait in pieces, for a checkpoint, and calls `report`
    /// with each. The links have the qualities that follow from the estimates of their pages, which
    /// `of_links` returns.
    pub(in crate::engine) fn encode(
        &self,
        of_links: impl Fn(Quality) -> Option<Quality>,
        report: &mut dyn FnMut(&[u8]),
    ) {
        let (mut piece, mut entry) = (Vec::new(), Vec::new());
        for page in self.waiting.values() {
            let estimate = of_links(page.fetch.item.quality);
            piece.clear();
            piece.put_u16(u16::try_from(page.fetch.url.len()).expect("URLs are capped"));
            piece.extend_from_slice(page.fetch.url.as_bytes());
            let head = piece.len();
            for (found, url) in page.links.iter() {
                entry.clear();
                Discovery { estimate, ..found }.encode(url.as_str(), "", &mut entry);
                piece.put_varint(entry.len() as u64);
                piece.extend_from_slice(&entry);
                if piece.len() >= PIECE_BYTES {
                    report(&piece);
                    piece.truncate(head);
                }
            }
            if piece.len() > head {
                report(&piece);
            }
        }
    }
}

impl PageWorker {
    /// Returns whether a page is HTML, and so is scored.
    fn is_html(&self, page: &Page) -> bool {
        match page.sources.markup {
            Markup::Html => true,
            Markup::Sniff => mime::looks_like_html(text_of(self.own_text, &self.text, page)),
            Markup::Css | Markup::Other => false,
        }
    }

    /// Returns the text of a page as it is scored.
    fn text_to_score(&self, page: &Page) -> String {
        let whole = text_of(self.own_text, &self.text, page);
        // A text in a charset that can't be scanned was converted to UTF-8.
        let charset = if links::is_scannable(self.charset) { self.charset } else { UTF_8 };
        let cut = &whole[..whole.len().min(TEXT_BYTES_MAX)];
        let mut text = charset.decode_with_bom_removal(cut).0.into_owned();
        if cut.len() < whole.len() && text.ends_with('\u{fffd}') {
            // The cut may be amid a character.
            text.pop();
        }
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text
    }
}

impl Engine {
    /// Hands a page to the world to be scored, while its links wait. All links must have been
    /// joined. Returns the page if its links don't wait; those of a page whose use is reserved
    /// don't, since its text is for nobody.
    pub(super) fn await_score(&mut self, mut page: Page) -> Option<Page> {
        let Some(settings) = self.settings.scoring else { return Some(page) };
        let is_page = page.fetch.item.requisite == 0 && page.listing.is_none();
        let is_reserved = matches!(page.facts.outcome, Outcome::Reserved(_));
        if !is_page || is_reserved || !self.pages.worker.is_html(&page) {
            return Some(page);
        }
        if self.is_stopping() {
            self.counts.cut(STOPPED, 1);
            return Some(page);
        }
        if self.pages.scoring.is_gone {
            self.miss_score(ScoreFailure::Gone.cause());
            return Some(page);
        }
        if !self.pages.scoring.has_room(settings) {
            self.miss_score("score-full");
            return Some(page);
        }
        let text = self.pages.worker.text_to_score(&page);
        self.turn.charge(Work::Converted, text.len());
        self.note_cut(&mut page);
        let links = self.pages.worker.follow.take_links();
        let bytes = links.bytes() + text.len();
        let Page { fetch, facts, reply, .. } = page;
        let scoring = &mut self.pages.scoring;
        scoring.last += 1;
        scoring.bytes += bytes;
        let id = ScoreId(scoring.last);
        let url = fetch.url.as_ref().into();
        let media_type = essence(facts.mime());
        self.turn.act(Action::Score(Box::new(ScoreRequest { id, url, media_type, text })));
        let due = self.turn.at() + settings.timeout;
        let waiting = Waiting { fetch, facts, links, due, bytes, is_logged: false };
        self.pages.scoring.waiting.insert(id, waiting);
        self.free_page(reply);
        None
    }

    /// Takes the world's answer about a page.
    pub(in crate::engine) fn take_score(&mut self, answer: Scored) {
        let Scored { id, quality } = answer;
        self.pages.scoring.is_gone |= quality == Err(ScoreFailure::Gone);
        let Some(mut page) = id.and_then(|id| self.pages.scoring.waiting.remove(&id)) else {
            match quality {
                Ok(_) => self.counts.scores_late += 1,
                Err(ScoreFailure::Invalid) => self.counts.scores_invalid += 1,
                Err(_) => {}
            }
            return;
        };
        match quality {
            Ok(score) => {
                page.facts.score = Some(score);
                self.counts.scored += 1;
            }
            Err(failure) => {
                self.counts.scores_invalid += u64::from(failure == ScoreFailure::Invalid);
                self.miss_score(failure.cause());
            }
        }
        self.pages.scoring.ready.push_back(page);
    }

    /// Ends the waits that have lasted too long.
    pub(in crate::engine) fn expire_scores(&mut self) {
        for _ in 0..EXPIRED_MAX {
            let Some(page) = self.pages.scoring.expired(self.turn.at()) else { return };
            self.miss_score("score-timed-out");
            self.pages.scoring.ready.push_back(page);
        }
    }

    /// Ends all waits, because the crawl ends.
    pub(in crate::engine) fn give_up_scores(&mut self) {
        let scoring = &mut self.pages.scoring;
        let waiting = std::mem::take(&mut scoring.waiting);
        if !waiting.is_empty() {
            self.counts.cut(STOPPED, waiting.len() as u64);
        }
        scoring.ready.extend(waiting.into_values());
    }

    /// Counts a page without a score, and warns of the first of each cause.
    fn miss_score(&mut self, cause: &'static str) {
        self.counts.cut(cause, 1);
        let scoring = &mut self.pages.scoring;
        if !scoring.warned.contains(&cause) {
            scoring.warned.push(cause);
            log::warn!("{}", warning(cause));
        }
    }

    /// Offers links of the first page whose wait is over, within the turn's budget.
    pub(super) fn offer_ready(&mut self) {
        let mut page = self.pages.scoring.ready.pop_front().expect("one is ready");
        self.turn.enter(Stage::Seen, 0);
        if !self.pages.scoring.is_offering {
            self.trace_page(&page.fetch);
            let quality = page.facts.score.unwrap_or(page.fetch.item.quality);
            let estimate = self.admission.rating().of_links(quality);
            self.pages.worker.follow.set_links(std::mem::take(&mut page.links), estimate);
            self.turn.charge(Work::Joined, PAGE_UNITS);
        }
        self.pages.scoring.is_offering = !self.offer_some(&page.fetch.url);
        if self.pages.scoring.is_offering {
            return self.pages.scoring.ready.push_front(page);
        }
        self.end_traced_page();
        self.note_settled(&page.fetch.url);
        if !page.is_logged {
            self.write_line(&page.fetch, &page.facts, &[]);
        }
        self.pages.scoring.bytes -= page.bytes;
        self.end_follow();
    }

    /// Writes the lines of the pages that wait for their scores to the crawl log, for a checkpoint,
    /// which counts them as done.
    pub(in crate::engine) fn log_waiting_pages(&mut self) {
        let mut waiting = std::mem::take(&mut self.pages.scoring.waiting);
        for page in waiting.values_mut().filter(|page| !page.is_logged) {
            self.write_line(&page.fetch, &page.facts, &[]);
            page.is_logged = true;
        }
        self.pages.scoring.waiting = waiting;
    }

    /// Offers the links of a piece that [`Scoring::encode`] wrote.
    ///
    /// # Errors
    /// Returns [`Short`] if the bytes end early.
    pub(in crate::engine) fn restore_links(&mut self, piece: &[u8]) -> Result<(), Short> {
        let mut take = Take::new(piece);
        let len = take.u16()?;
        let page = std::str::from_utf8(take.raw(len.into())?).map_err(|_| Short)?;
        while !take.is_empty() {
            let len = take.number()?;
            let (found, url, _) = Discovery::decode(take.raw(len)?);
            self.offer_link((self.key_of(url), found), url, page);
        }
        self.note_settled(page);
        Ok(())
    }
}

/// The fixed cost of a page whose links are offered, in units of work (see `ledger`): most of it is
/// its line in the crawl log.
const PAGE_UNITS: usize = 1_000;

/// Returns the media type that a Content-Type field names; pages without one are HTML.
fn essence(field: &[u8]) -> Box<str> {
    let essence = field.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match String::from_utf8_lossy(essence).to_ascii_lowercase() {
        essence if essence.is_empty() => "text/html".into(),
        essence => essence.into(),
    }
}

/// Returns what the log says about the first page without a score of a cause.
fn warning(cause: &str) -> String {
    let fix = match cause {
        "score-timed-out" => {
            "the program takes too long; make it faster, or raise quality.command_timeout"
        }
        "score-full" => {
            "too many pages wait; make the program faster, or raise quality.command_waiting_max"
        }
        "score-invalid" => "the program's answer is no quality: a number from 0 to 1,000,000",
        _ => "the program of quality.command doesn't run any more; see its messages",
    };
    format!("a page has no score ({cause}): {fix}. Its links take over its estimate instead")
}
