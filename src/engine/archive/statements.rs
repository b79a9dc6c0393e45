//! What was said of the use of a page: gathered when its reply is complete, because its record in
//! the archive has it, too, and because a crawl that obeys makes no record of what is reserved.
//!
//! robots.txt speaks when the page is requested, the head of the reply and `meta` elements when it
//! is received. Those elements count in the first [`TEXT_BYTES_MAX`] of the text. It is scanned
//! here and once more for its links, because a body of any length is scanned in steps, and a
//! record is written in one.
//!
//! Law: gathering the statements about a page costs at most [`units_max`]. The line of a reply that
//! is read back from the archive has none: the archive has them.
//! Cost: nothing if neither statements nor preferred URLs are wanted; else one pass over the header
//! fields; of an HTML page, scanning that much of its text.
//! Source: draft-ietf-aipref-attach-04; TDM Reservation Protocol; the robots `meta` element and
//! X-Robots-Tag as search engines document them.

use super::annotations::is_kept;
use crate::consent::{Consent, Source, Standing, Statements};
use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::ledger::Work;
use crate::engine::settings::Settings;
use crate::engine::turn::Turn;
use crate::engine::wire::opening::TEXT_BYTES_MAX;
use crate::engine::wire::{Fetch, FinishedFetch, Reply};
use crate::frontier::ServerId;
use crate::ground::stats::Stage;
use crate::http::mime::MediaType;
use crate::http::response::Head;
use crate::links::{self, Found, Scanner};
use crate::robots::Rules;
use crate::store;
use crate::url::canon::{self, Joiner};
use crate::url::{Batch, Url, UrlRef};
use encoding_rs::UTF_8;
use std::ops::BitOr;

/// The maximum cost of gathering the statements about a page beside that of its head, in units of
/// work (see `ledger`): the beginning of its text is converted and scanned.
const UNITS_MAX: usize = 3 * TEXT_BYTES_MAX;

/// What parsing a statement costs, in units of work a byte.
const STATEMENT_WEIGHT: usize = 8;

/// The maximum length of what is read of a robots.txt for one request, in bytes.
const ROBOTS_BYTES_MAX: usize = 16 << 10;

/// The maximum length of a reference to the URL that a page prefers, and of the page's base, in
/// bytes. Longer ones are ignored: few URLs that long are fetched.
const CANONICAL_BYTES_MAX: usize = 4 << 10;

/// The maximum cost of joining both, in units of work.
const CANONICAL_UNITS_MAX: usize =
    2 * (CANONICAL_BYTES_MAX + canon::units_max(CANONICAL_BYTES_MAX));

/// Returns the maximum cost of gathering the statements about a page, in units of work, if its head
/// has at most `head_bytes_max` bytes.
pub(super) fn units_max(head_bytes_max: usize) -> usize {
    let head = STATEMENT_WEIGHT.saturating_mul(head_bytes_max);
    head.saturating_add(UNITS_MAX + CANONICAL_UNITS_MAX)
}

/// Reads what pages say of their use, one after the other.
#[derive(Debug)]
pub(super) struct Reader {
    settings: links::Settings,
    scanner: Scanner,
    found: Found,
}

/// The statements about a page as its records have them.
pub(super) struct Said<'a> {
    lines: &'a str,
    allowed: String,
    reserved: String,
}

impl<'a> Said<'a> {
    pub(super) fn of(all: &'a Statements) -> Self {
        let names = |standing| all.consent().names(standing);
        let (allowed, reserved) = (names(Standing::Allowed), names(Standing::Reserved));
        Self { lines: all.lines(), allowed, reserved }
    }

    pub(super) fn view(&self) -> store::Usage<'_> {
        let Self { lines, allowed, reserved } = self;
        store::Usage { lines, allowed, reserved }
    }
}

impl Reader {
    pub(super) fn new(settings: &links::Settings) -> Self {
        let settings = links::Settings {
            requisites: false,
            forms: false,
            statements: true,
            ..settings.clone()
        };
        Self { scanner: Scanner::new(settings.clone()), settings, found: Found::new() }
    }

    /// Returns what was said of the use of a page; `None` if that is nothing. `html` is the
    /// beginning of its text, if it is HTML. [`Reader::canonical`] returns the URL that it prefers.
    fn of(
        &mut self,
        (fetch, head, reply): (&Fetch, &Head, &Reply),
        html: Option<&[u8]>,
        settings: &Settings,
        turn: &mut Turn,
    ) -> Option<Box<Statements>> {
        let mut all = fetch.robots.usage.as_deref().cloned().unwrap_or_default();
        let product = &settings.identity.product;
        let bytes = reply.head();
        let media = MediaType::of(head, bytes);
        let is_image = media.as_ref().is_some_and(|media| media.essence.starts_with(b"image/"));
        for (name, value) in head.fields(bytes) {
            add_field(&mut all, name, value, (product, is_image));
        }
        let label = media.as_ref().and_then(|media| media.charset.as_deref());
        let units = self.find(html, label);
        turn.charge(Work::Archived, STATEMENT_WEIGHT * bytes.len() + units);
        for (_, value) in head.fields(bytes).filter(|(name, _)| name.eq_ignore_ascii_case(b"link"))
        {
            links::header_links(value, &self.settings, &mut self.found);
        }
        for (name, content) in self.found.statements() {
            add_meta(&mut all, name, content, (product, is_image));
        }
        if self.found.has_more_statements() {
            all.note_cut();
        }
        (!all.is_empty()).then(|| Box::new(all))
    }

    /// Returns the URL that the page read last prefers, given its own; `None` if that is its own,
    /// or if it names none that could be fetched within [`CANONICAL_BYTES_MAX`].
    fn canonical(&self, url: UrlRef<'_>, turn: &mut Turn) -> Option<Box<str>> {
        let (reference, base) = self.found.canonical()?;
        if reference.len().max(base.map_or(0, <[u8]>::len)) > CANONICAL_BYTES_MAX {
            return None;
        }
        let mut join = |from: UrlRef<'_>, reference: &[u8]| {
            let (mut batch, mut joiner) = (Batch::new(), Joiner::new(from));
            let joined = joiner.join(reference, UTF_8, &mut batch);
            turn.charge(Work::Archived, reference.len() + joiner.take_work());
            joined.is_ok().then(|| batch.get(0).to_owned())
        };
        let base = base.and_then(|base| join(url, base));
        let canonical = join(base.as_ref().map_or(url, Url::view), reference)?;
        (canonical.as_str() != url.as_str()).then(|| canonical.as_str().into())
    }

    /// Finds the `meta` elements at the beginning of a page, whose charset its head names `label`.
    /// Returns the cost in units of work.
    fn find(&mut self, html: Option<&[u8]>, label: Option<&[u8]>) -> usize {
        self.found.clear();
        let Some(text) = html else { return 0 };
        let charset = links::charset(label, text).encoding;
        if links::is_scannable(charset) {
            self.scanner.begin(charset);
            self.scan(text)
        } else {
            let (converted, ..) = charset.decode(text);
            let converted = &converted.as_bytes()[..converted.len().min(TEXT_BYTES_MAX)];
            self.scanner.begin(UTF_8);
            text.len() + self.scan(converted)
        }
    }

    /// Scans a text. Returns the cost in units of work.
    fn scan(&mut self, text: &[u8]) -> usize {
        self.scanner.scan(text, TEXT_BYTES_MAX, &mut self.found);
        // The last step may have searched far beyond the budget for one byte, which costs little.
        (self.scanner.position() + self.scanner.take_nested()).min(TEXT_BYTES_MAX)
    }
}

/// Adds a header field, if it speaks of the use of the page.
fn add_field(all: &mut Statements, name: &[u8], value: &[u8], (product, is_image): (&str, bool)) {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("x-robots-tag") {
        let means = |value: &[u8]| of_words(links::robots_words(value, product), is_image);
        all.add(Source::Field("x-robots-tag"), value, means);
    } else if is("content-usage") {
        all.add(Source::Field("content-usage"), value, Consent::of_content_usage);
    } else if is("tdm-reservation") {
        all.add(Source::Field("tdm-reservation"), value, Consent::of_tdm_reservation);
    } else if is("tdm-policy") {
        all.add(Source::Field("tdm-policy"), value, silent);
    }
}

/// Adds what a `meta` element says.
fn add_meta(all: &mut Statements, name: &[u8], content: &[u8], (product, is_image): (&str, bool)) {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("tdm-reservation") {
        all.add(Source::Meta("tdm-reservation"), content, Consent::of_tdm_reservation);
    } else if is("tdm-policy") {
        all.add(Source::Meta("tdm-policy"), content, silent);
    } else {
        let name = if is("robots") { "robots" } else { product };
        // Unlike the field, an element has the name of its crawler elsewhere.
        all.add(Source::Meta(name), content, |list| {
            of_words(list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii), is_image)
        });
    }
}

/// Returns what directives mean together.
fn of_words<'a>(words: impl Iterator<Item = &'a [u8]>, is_image: bool) -> Consent {
    words.map(|word| Consent::of_directive(word, is_image)).fold(Consent::default(), BitOr::bitor)
}

fn silent(_: &[u8]) -> Consent {
    Consent::default()
}

/// Returns what rules say of the use of a target, and the cost in units of work.
fn of_rules(rules: &Rules, target: &str) -> (Statements, usize) {
    type Means = fn(&[u8]) -> Consent;
    let (usage, mut units) = rules.usage(target);
    let mut all = Statements::default();
    let kinds: [(&str, &str, Means); 3] = [
        ("content-signal", usage.signals, Consent::of_content_signal),
        ("content-usage", usage.usages, Consent::of_content_usage),
        ("license", usage.licenses, silent),
    ];
    let mut left = ROBOTS_BYTES_MAX;
    for (key, values, means) in kinds {
        for value in values.lines() {
            // A line costs something even if it is short.
            let bytes = value.len() + 16;
            if bytes > left {
                all.note_cut();
                break;
            }
            left -= bytes;
            all.add(Source::Robots(key), value.as_bytes(), means);
        }
    }
    units += STATEMENT_WEIGHT * (ROBOTS_BYTES_MAX - left);
    (all, units)
}

impl Engine {
    /// Returns what was said of the use of a page whose reply would be archived, and was opened;
    /// `None` if that is nothing, or isn't recorded. Notes the URL that the page prefers.
    pub(in crate::engine) fn statements_of(
        &mut self,
        fetched: &mut FinishedFetch<'_>,
    ) -> Option<Box<Statements>> {
        let FinishedFetch { fetch, reply, .. } = fetched;
        let is_page = !fetch.item.is_robots() && is_kept(fetched.outcome);
        let head = fetched.head.filter(|_| self.settings.reads_statements() && is_page)?;
        let stage = self.turn.enter(Stage::Store, 0);
        let html = self.wire.opening().html(reply);
        let reader = &mut self.archive.statements;
        let parts = (&*fetch, head, &*reply);
        let all = reader.of(parts, html, &self.settings, &mut self.turn);
        let url = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        fetch.shown.canonical = reader.canonical(url, &mut self.turn);
        self.turn.back(stage);
        all.filter(|_| self.settings.consent.records)
    }

    /// Returns whether a page isn't to be kept, because its use is reserved for the purpose of the
    /// crawl.
    pub(in crate::engine) fn is_reserved(&self, said: Option<&Statements>) -> bool {
        let purpose = self.settings.consent.obeys;
        let standing = said.zip(purpose).map(|(said, purpose)| said.consent().standing(purpose));
        standing == Some(Standing::Reserved)
    }

    /// Returns what robots.txt says of the use of a page; `None` if that is nothing, or isn't
    /// recorded.
    pub(in crate::engine) fn usage_by_robots(
        &mut self,
        id: ServerId,
        item: &Item,
    ) -> Option<Box<Statements>> {
        if !self.settings.consent.records || item.is_robots() {
            return None;
        }
        let (all, units) = of_rules(self.sites.get(id).robots.rules()?, &item.target);
        self.turn.charge(Work::Rules, units);
        (!all.is_empty()).then(|| Box::new(all))
    }
}
