//! From the body of a page to its references: decoding, charset, conversion, scanning.
//!
//! Each step does the work that is left of the turn's budget and goes on from there in the next
//! turn. A page that names its charset late is begun again, once (HTML standard, 13.2.3.5).

use super::{Page, PageWorker};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::ground::stats::Stage;
use crate::http::coding::State;
use crate::http::mime::{self, Html};
use crate::links::{self, Charset, Converter, Progress};
use encoding_rs::{Encoding, UTF_8};

/// How far the page under work has come.
#[derive(Debug, Default)]
pub(super) enum Step {
    #[default]
    Begin,
    Decode,
    Charset,
    Convert(Box<Converter>),
    Scan,
    Follow,
}

/// Decoded text kept as a spare up to this size.
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
        self.own_text = !page.leads.codings.is_empty();
        self.stage = match (page.leads.html, self.own_text) {
            (Html::No, _) => Step::Follow,
            (_, true) => {
                self.decoder.begin(&page.leads.codings);
                Step::Decode
            }
            (_, false) => Step::Charset,
        };
    }

    /// Finds the charset. Returns the units of work that took.
    fn find_charset(&mut self, page: &Page) -> usize {
        let text = text_of(self.own_text, &self.text, page);
        if page.leads.html == Html::Sniff && !mime::looks_like_html(text) {
            self.stage = Step::Follow;
            return 1;
        }
        let label = page.leads.charset.as_deref();
        let Charset { encoding, is_tentative, checked_bytes } = links::charset(label, text);
        self.is_tentative = is_tentative;
        self.begin_charset(encoding);
        checked_bytes + 1
    }

    /// What can't be scanned as it stands becomes UTF-8 first.
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

    /// Goes over to the charset that the page turned out to name. What was read so far stays if it
    /// means the same in both, else the page is begun again: whether that happened is returned.
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

fn text_of<'a>(own_text: bool, text: &'a [u8], page: &'a Page) -> &'a [u8] {
    if own_text { text } else { page.reply.payload() }
}

impl Engine {
    /// One step of the first page's reading, or a part of it.
    pub(super) fn read_page(&mut self) {
        match &self.pages.worker.stage {
            Step::Begin => self.pages.worker.begin(&self.pages.queue[0]),
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
    }

    fn decode_some(&mut self) {
        let (page, bench) = (&self.pages.queue[0], &mut self.pages.worker);
        self.turn.meter_mut().stay(Stage::Decode, 0);
        let before = bench.text.len();
        let input = &page.reply.payload()[bench.taken..];
        let budget = self.turn.left(Work::Decoded).max(1);
        let step = bench.decoder.decode(input, true, &mut bench.text, budget);
        bench.taken += step.used;
        let written = bench.text.len() - before;
        self.turn.meter_mut().add_bytes(written);
        self.counts.text_bytes += written as u64;
        self.turn.charge(Work::Decoded, step.work.max(1));
        if step.state == State::More {
            return;
        }
        bench.stage = Step::Charset;
        if bench.decoder.is_mislabelled() {
            self.note_page("codingLabel");
        } else if bench.decoder.is_sum_wrong() {
            self.note_page("codingSum");
        }
        // What could be read is used, whatever was wrong.
        match step.state {
            State::TooLarge => self.note_page("codingTooLarge"),
            State::Broken(_) | State::CutShort => self.note_page("codingBroken"),
            State::Done | State::Hungry | State::More => {}
        }
    }

    fn convert_some(&mut self) {
        let text_bytes_max = self.settings.text_bytes_max();
        let (page, bench) = (&self.pages.queue[0], &mut self.pages.worker);
        let Step::Convert(converter) = &mut bench.stage else { return };
        self.turn.meter_mut().stay(Stage::Links, 0);
        let text = &text_of(bench.own_text, &bench.text, page)[bench.taken..];
        let budget = self.turn.left(Work::Converted).max(1);
        let step = converter.convert(text, &mut bench.converted, budget, text_bytes_max);
        bench.taken += step.used;
        self.turn.charge(Work::Converted, step.work.max(1));
        if !step.is_done {
            return;
        }
        std::mem::swap(&mut bench.text, &mut bench.converted);
        bench.own_text = true;
        // What had to be converted can't be begun again, nor does it name another charset.
        bench.is_tentative = false;
        bench.taken = 0;
        bench.scanner.begin(UTF_8);
        bench.stage = Step::Scan;
        if step.is_cut {
            self.note_page("charsetTooLarge");
        }
    }

    fn scan_some(&mut self) {
        let (page, bench) = (&self.pages.queue[0], &mut self.pages.worker);
        let text = text_of(bench.own_text, &bench.text, page);
        let budget = self.turn.left(Work::Scanned).max(1);
        let spent = budget.min(text.len() - bench.taken).max(1);
        self.turn.meter_mut().stay(Stage::Links, spent);
        let progress = bench.scanner.scan(text, budget, &mut bench.found);
        bench.taken += spent.min(text.len() - bench.taken);
        self.turn.charge(Work::Scanned, spent);
        if bench.is_tentative
            && let Some(charset) = bench.found.charset()
        {
            bench.is_tentative = false;
            if charset != bench.charset && bench.change_charset(page, charset) {
                return self.pages.queue[0].fetch.notes.push("charsetLate");
            }
        }
        if progress == Progress::Done {
            bench.stage = Step::Follow;
        }
    }

    /// Annotates the page under work, and counts it.
    fn note_page(&mut self, cause: &'static str) {
        self.counts.cut(cause, 1);
        self.pages.queue[0].fetch.notes.push(cause);
    }

    /// What was left out of the page under work for a bound: annotated, and counted with its
    /// largest victims.
    pub(super) fn note_cut(&mut self, page: &mut Page) {
        let cut = page.leads.head_links.cut() + self.pages.worker.found.cut();
        for (cause, count) in cut.causes().chain(self.pages.worker.follow.cut()) {
            self.counts.cut_from(cause, count, &page.fetch.url);
            page.fetch.notes.push(cause);
        }
    }
}
