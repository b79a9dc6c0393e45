//! Reads the references in the body of a page or style sheet: decodes it, determines its charset,
//! converts it, scans it.
//!
//! Each step works within the turn's budget and continues in the next turn. A page whose `meta`
//! element names another charset late is read again from the beginning, once (HTML standard,
//! 13.2.3.5).

use super::{Page, PageWorker};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::ground::stats::Stage;
use crate::http::coding::State;
use crate::http::mime::{self, Markup};
use crate::links::{self, Charset, Converter, Progress};
use encoding_rs::{Encoding, UTF_8};

/// The next step for the page that is being processed.
#[derive(Debug, Default)]
pub(super) enum Step {
    #[default]
    Begin,
    BeginDecode,
    Decode,
    Charset,
    Convert(Box<Converter>),
    Scan,
    Follow,
}

/// The capacity up to which text buffers are kept for the next page, in bytes.
const TEXT_SPARE_BYTES: usize = 1 << 20;

impl PageWorker {
    pub(super) fn begin(&mut self, page: &Page) {
        self.found.clear();
        self.charset = UTF_8;
        self.is_tentative = false;
        self.taken = 0;
        for text in [&mut self.text, &mut self.converted] {
            text.clear();
            text.shrink_to(TEXT_SPARE_BYTES);
        }
        self.own_text = !page.sources.codings.is_empty() && page.reply.text.is_none();
        self.stage = match (page.sources.markup, self.own_text) {
            // A job has read it.
            _ if page.listing.is_some() => Step::Follow,
            (Markup::Other, _) => Step::Follow,
            (_, true) => {
                self.decoder.begin(&page.sources.codings);
                Step::BeginDecode
            }
            (_, false) => Step::Charset,
        };
    }

    /// Determines the charset of the page. Returns the cost in units of work.
    fn find_charset(&mut self, page: &Page) -> usize {
        let text = text_of(self.own_text, &self.text, page);
        if page.sources.markup == Markup::Sniff && !mime::looks_like_html(text) {
            self.stage = Step::Follow;
            return 1;
        }
        let label = page.sources.charset.as_deref();
        if page.sources.markup == Markup::Css {
            // The queries of its references are in UTF-8 whatever its charset (CSS Values 4, 4.5).
            self.scanner.begin_sheet(links::sheet_charset(label, text));
            self.stage = Step::Scan;
            return 1;
        }
        let Charset { encoding, is_tentative, checked_bytes } = links::charset(label, text);
        self.is_tentative = is_tentative;
        self.begin_charset(encoding);
        checked_bytes + 1
    }

    /// Begins to scan the text. A text in a charset that can't be scanned is converted to UTF-8
    /// first.
    fn begin_charset(&mut self, charset: &'static Encoding) {
        self.charset = charset;
        self.taken = 0;
        self.stage = if links::is_scannable(charset) {
            self.scanner.begin(charset);
            Step::Scan
        } else {
            Step::Convert(Box::new(Converter::new(charset)))
        };
    }

    /// Changes to the charset that a `meta` element has named late. If the text read so far is the
    /// same in both charsets, reading continues; else the page is read again from the beginning.
    /// Returns `true` in the latter case.
    fn change_charset(&mut self, page: &Page, charset: &'static Encoding) -> bool {
        let read = &text_of(self.own_text, &self.text, page)[..self.scanner.position()];
        if links::is_scannable(charset) && read.is_ascii() {
            self.charset = charset;
            self.scanner.change(charset);
            return false;
        }
        self.found.clear();
        self.begin_charset(charset);
        true
    }
}

/// Returns the text of a page that is scanned for links.
pub(super) fn text_of<'a>(own_text: bool, text: &'a [u8], page: &'a Page) -> &'a [u8] {
    let own = page.reply.text.as_deref().unwrap_or(page.reply.payload());
    if own_text { text } else { own }
}

impl Engine {
    /// Takes the next step of reading the first page that waits, or a part of the step. Returns
    /// `false` if the step waits for the next turn.
    pub(super) fn read_page(&mut self) -> bool {
        match &self.pages.worker.stage {
            Step::Begin => {
                let page = &self.pages.queue[0];
                let links = self.settings.links_with(page.sources.requisites);
                self.pages.worker.scanner.set_settings(&links);
                self.pages.worker.begin(page);
                let text_bytes = page.reply.text.as_ref().map_or(0, Vec::len);
                self.counts.text_bytes += text_bytes as u64;
            }
            Step::BeginDecode => return self.begin_decode(),
            Step::Decode => self.decode_some(),
            Step::Charset => {
                self.turn.meter_mut().stay(Stage::Links, 0);
                let units = self.pages.worker.find_charset(&self.pages.queue[0]);
                self.turn.charge(Work::Scanned, units);
            }
            Step::Convert(_) => self.convert_some(),
            Step::Scan => self.scan_some(),
            Step::Follow => {}
        }
        true
    }

    /// Returns `false` if decoding waits for the next turn, because the budget of a whole turn lets
    /// the page be decoded in one call, and what is left of this turn's doesn't. Nothing is charged
    /// to that budget before the first page, so the next turn has all of it.
    fn begin_decode(&mut self) -> bool {
        let (page, worker) = (&self.pages.queue[0], &mut self.pages.worker);
        let units = worker.decoder.units_at_once(page.reply.payload());
        let (left, most) = (self.turn.left(Work::Decoded), self.settings.turn_bytes_max);
        if units.is_some_and(|units| left < units && units <= most) {
            return false;
        }
        worker.stage = Step::Decode;
        true
    }

    fn decode_some(&mut self) {
        let (page, worker) = (&self.pages.queue[0], &mut self.pages.worker);
        self.turn.meter_mut().stay(Stage::Decode, 0);
        let before = worker.text.len();
        let input = &page.reply.payload()[worker.taken..];
        let budget = self.turn.left(Work::Decoded).max(1);
        let step = worker.decoder.decode(input, true, &mut worker.text, budget);
        worker.taken += step.used;
        let written = worker.text.len() - before;
        self.turn.meter_mut().add_bytes(written);
        self.counts.text_bytes += written as u64;
        self.turn.charge(Work::Decoded, step.work.max(1));
        if step.state == State::More {
            return;
        }
        worker.stage = Step::Charset;
        if worker.decoder.is_mislabelled() {
            self.note_page("codingLabel");
        } else if worker.decoder.is_sum_wrong() {
            self.note_page("codingSum");
        }
        self.pages.worker.decoder.end();
        // The part that could be decoded is used, even after an error.
        match step.state {
            State::TooLarge => self.note_page("codingTooLarge"),
            State::Broken(_) | State::CutShort => self.note_page("codingBroken"),
            State::Done | State::Hungry | State::More => {}
        }
    }

    fn convert_some(&mut self) {
        let text_bytes_max = self.settings.coding.decoded_bytes_max;
        let text_bytes_max = usize::try_from(text_bytes_max).unwrap_or(usize::MAX);
        let (page, worker) = (&self.pages.queue[0], &mut self.pages.worker);
        let Step::Convert(converter) = &mut worker.stage else { return };
        self.turn.meter_mut().stay(Stage::Links, 0);
        let text = &text_of(worker.own_text, &worker.text, page)[worker.taken..];
        let budget = self.turn.left(Work::Converted).max(1);
        let step = converter.convert(text, &mut worker.converted, budget, text_bytes_max);
        worker.taken += step.used;
        self.turn.charge(Work::Converted, step.work.max(1));
        if !step.is_done {
            return;
        }
        std::mem::swap(&mut worker.text, &mut worker.converted);
        worker.own_text = true;
        // A converted text can't be read again, and names no other charset.
        worker.is_tentative = false;
        worker.taken = 0;
        worker.scanner.begin(UTF_8);
        worker.stage = Step::Scan;
        if step.is_cut {
            self.note_page("charsetTooLarge");
        }
    }

    fn scan_some(&mut self) {
        let (page, worker) = (&self.pages.queue[0], &mut self.pages.worker);
        let text = text_of(worker.own_text, &worker.text, page);
        let budget = self.turn.left(Work::Scanned).max(1);
        self.turn.meter_mut().stay(Stage::Links, 0);
        let before = worker.scanner.position();
        let progress = worker.scanner.scan(text, budget, &mut worker.found);
        let (own, nested) = (worker.scanner.position() - before, worker.scanner.take_nested());
        self.turn.meter_mut().add_bytes(own + nested);
        // The last step may have searched far beyond the budget for one byte, which costs little.
        let units = nested + own.min(budget.saturating_sub(nested));
        self.turn.charge(Work::Scanned, units.max(1));
        if worker.is_tentative
            && let Some(charset) = worker.found.charset()
        {
            worker.is_tentative = false;
            if charset != worker.charset && worker.change_charset(page, charset) {
                return self.pages.queue[0].fetch.notes.push("charsetLate");
            }
        }
        if progress == Progress::Done {
            worker.stage = Step::Follow;
        }
    }

    /// Adds an annotation to the crawl-log line of the page that is being processed, and counts it.
    fn note_page(&mut self, cause: &'static str) {
        self.counts.cut(cause, 1);
        self.pages.queue[0].fetch.notes.push(cause);
    }

    /// Annotates the page with what was left out of it because of a limit, and lists the amounts if
    /// they are among the largest losses of the crawl.
    pub(super) fn note_cut(&mut self, page: &mut Page) {
        let cut = page.sources.head_links.cut() + self.pages.worker.found.cut();
        for (cause, count) in cut.causes().chain(self.pages.worker.follow.cut()) {
            self.counts.cut_from(cause, count, &page.fetch.url);
            page.fetch.notes.push(cause);
        }
    }
}
