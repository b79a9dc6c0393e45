//! What was said of the use of a page: gathered when its reply is recorded, because its record in
//! the archive has it, too.
//!
//! robots.txt speaks when the page is requested, the head of the reply and `meta` elements when it
//! is received. Those elements count in the first [`TEXT_BYTES_MAX`] of the text. The text is
//! decoded and scanned here and once more for its links, because a body of any length is scanned in
//! steps, and a record is written in one.
//!
//! Law: gathering the statements about a page costs at most [`units_max`]. The line of a reply that
//! is read back from the archive has none: the archive has them.
//! Cost: nothing if statements aren't recorded; one pass over the header fields; of an HTML page,
//! decoding and scanning that much of its text.
//! Source: draft-ietf-aipref-attach-04; TDM Reservation Protocol; the robots `meta` element and
//! X-Robots-Tag as search engines document them.

use crate::consent::{Consent, Source, Standing, Statements};
use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::ledger::Work;
use crate::engine::settings::Settings;
use crate::engine::turn::Turn;
use crate::engine::wire::{Fetch, Reply};
use crate::frontier::ServerId;
use crate::http::coding::{DecodeLimits, Decoder};
use crate::http::mime::{self, Markup, MediaType};
use crate::http::response::Head;
use crate::links::{self, Found, Scanner};
use crate::robots::Rules;
use crate::store;
use encoding_rs::UTF_8;
use std::ops::BitOr;

/// The number of bytes at the start of a text in which `meta` elements are read. They belong into
/// the head of a page, which is shorter but for pages that carry their scripts and styles there.
const TEXT_BYTES_MAX: usize = 128 << 10;

/// The maximum cost of decoding that much text, in units of work (see `ledger`): enough for pages
/// that compress as usual. Of others, less text is read.
const DECODE_UNITS_MAX: usize = 1 << 20;

/// The maximum cost of gathering the statements about a page beside that of its head, in units of
/// work: its text is decoded, with one step more than the budget, converted and scanned.
const UNITS_MAX: usize = DECODE_UNITS_MAX + 4 * TEXT_BYTES_MAX;

/// What parsing a statement costs, in units of work a byte.
const STATEMENT_WEIGHT: usize = 8;

/// The maximum length of what is read of a robots.txt for one request, in bytes.
const ROBOTS_BYTES_MAX: usize = 16 << 10;

/// Returns the maximum cost of gathering the statements about a page, in units of work, if its head
/// has at most `head_bytes_max` bytes.
pub(super) fn units_max(head_bytes_max: usize) -> usize {
    STATEMENT_WEIGHT.saturating_mul(head_bytes_max).saturating_add(UNITS_MAX)
}

/// Reads what pages say of their use, one after the other.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder,
    scanner: Scanner,
    found: Found,
    /// The decoded text; kept to reuse its memory.
    text: Vec<u8>,
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
        let limits = DecodeLimits { decoded_bytes_max: TEXT_BYTES_MAX as u64 };
        Self {
            decoder: Decoder::new(limits),
            scanner: Scanner::new(settings),
            found: Found::new(),
            text: Vec::new(),
        }
    }

    /// Returns what was said of the use of a page whose reply is recorded; `None` if that is
    /// nothing, or isn't recorded.
    pub(super) fn of(
        &mut self,
        (fetch, head, reply): (&Fetch, Option<&Head>, &Reply),
        settings: &Settings,
        turn: &mut Turn,
    ) -> Option<Box<Statements>> {
        let head = head?;
        if !settings.consent.records || fetch.item.is_robots() {
            return None;
        }
        let mut all = fetch.robots.usage.as_deref().cloned().unwrap_or_default();
        let product = &settings.identity.product;
        let bytes = reply.head();
        let media = MediaType::of(head, bytes);
        let is_image = media.as_ref().is_some_and(|media| media.essence.starts_with(b"image/"));
        for (name, value) in head.fields(bytes) {
            add_field(&mut all, name, value, (product, is_image));
        }
        let units = self.find(reply, head, media.as_ref());
        turn.charge(Work::Archived, STATEMENT_WEIGHT * bytes.len() + units);
        for (name, content) in self.found.statements() {
            add_meta(&mut all, name, content, (product, is_image));
        }
        if self.found.has_more_statements() {
            all.note_cut();
        }
        (!all.is_empty()).then(|| Box::new(all))
    }

    /// Finds the `meta` elements of a reply, which has none if it isn't HTML. Returns the cost in
    /// units of work.
    fn find(&mut self, reply: &Reply, head: &Head, media: Option<&MediaType>) -> usize {
        self.found.clear();
        let bytes = reply.head();
        let markup = mime::markup(media, head, bytes);
        if !matches!(markup, Markup::Html | Markup::Sniff) {
            return 0;
        }
        let (codings, payload) = (head.codings(bytes), reply.payload());
        let mut units = 0;
        let text = if codings.known.is_empty() {
            payload
        } else {
            self.text.clear();
            self.decoder.begin(&codings.known);
            units += self.decoder.decode(payload, true, &mut self.text, DECODE_UNITS_MAX).work;
            &self.text
        };
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        if markup == Markup::Sniff && !mime::looks_like_html(text) {
            return units;
        }
        let label = media.and_then(|media| media.charset.as_deref());
        let charset = links::charset(label, text).encoding;
        if links::is_scannable(charset) {
            self.scanner.begin(charset);
            self.scanner.scan(text, TEXT_BYTES_MAX, &mut self.found);
        } else {
            let (converted, ..) = charset.decode(text);
            let converted = &converted.as_bytes()[..converted.len().min(TEXT_BYTES_MAX)];
            units += text.len();
            self.scanner.begin(UTF_8);
            self.scanner.scan(converted, TEXT_BYTES_MAX, &mut self.found);
        }
        // The last step may have searched far beyond the budget for one byte, which costs little.
        units + (self.scanner.position() + self.scanner.take_nested()).min(TEXT_BYTES_MAX)
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
