//! Classifies a reply before it counts for its server: as a request for a signature, a challenge,
//! or a page, whose statements about its use are collected.
//!
//! A challenge, which keeps crawlers out, isn't a page: it is neither archived nor followed, and
//! its line in the crawl log names the product. Its URL is tried again, and its server rests longer
//! each time, until it has challenged the crawler in so many visits in a row that it is given up.
//!
//! Cost: reading the beginning of the text (see `wire::opening`), and some passes over the first
//! 64 KiB of an HTML page.

use super::Engine;
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::{Evidence, FinishedFetch};
use crate::consent::Statements;
use crate::frontier::ServerId;
use crate::http::challenge::{self, BODY_BYTES};

/// The maximum length of the beginning of a challenge that the crawl log shows, in bytes.
const EVIDENCE_BYTES_MAX: usize = 1_000;
/// The fields of a reply 402 that the crawl log shows: what the page costs, and what is wrong with
/// the payment of who has offered one (pay per crawl).
const PRICE_FIELDS: [&str; 2] = ["crawler-price", "crawler-error"];
/// The maximum length of such a field that the crawl log shows, in bytes.
const PRICE_BYTES_MAX: usize = 100;
/// The cost of looking for a challenge, in units of work (see `ledger`) a byte.
const SEARCH_WEIGHT: usize = 4;
/// The maximum cost of looking for a challenge, in units of work.
pub(super) const UNITS_MAX: usize = SEARCH_WEIGHT * BODY_BYTES;

impl Engine {
    /// Classifies a reply, and changes the outcome if it asks for a signature or is a challenge.
    /// Records the price of a 402, too. Returns the statements about the use of a page; `None` if
    /// there are none, or they aren't recorded, or it isn't a page.
    pub(super) fn open_reply(
        &mut self,
        id: ServerId,
        fetched: &mut FinishedFetch<'_>,
    ) -> Option<Box<Statements>> {
        self.note_asked(id, fetched);
        if matches!(fetched.outcome, Outcome::SignatureAsked(_)) {
            return None;
        }
        let head = fetched.head.filter(|_| !fetched.fetch.item.is_robots())?;
        if head.status == 402 {
            let said = PRICE_FIELDS.iter().filter_map(|name| {
                let value = fetched.fields(name).next()?;
                Some(format!("{name}: {}", shown(value, PRICE_BYTES_MAX)))
            });
            let said: Vec<String> = said.collect();
            if !said.is_empty() {
                let evidence = Evidence::of(said.join("; "), String::new());
                fetched.fetch.shown.evidence = Some(evidence);
            }
        }
        let of = self.settings.challenges;
        let is_read =
            of.refuses || self.settings.reads_statements() || self.settings.repeats.is_some();
        if !is_read {
            return None;
        }
        self.wire.opening_mut().read(&fetched.reply, head, &mut self.turn);
        if of.refuses && matches!(fetched.outcome, Outcome::Status(_) | Outcome::Short(..)) {
            let reply = &fetched.reply;
            let html = self.wire.opening().html(reply);
            let searched = html.map_or(0, |html| html.len().min(BODY_BYTES));
            self.turn.charge(Work::Archived, SEARCH_WEIGHT * searched);
            let product = challenge::in_page(head.status, head.fields(reply.head()), html);
            if let Some(product) = product {
                let text = if of.evidence { html.unwrap_or(reply.payload()) } else { b"" };
                let bytes = shown(text, EVIDENCE_BYTES_MAX);
                let detail = format!("{product}, status {}", head.status);
                fetched.fetch.shown.evidence = Some(Evidence::of(detail, bytes));
                fetched.outcome = Outcome::Challenged(head.status);
                return None;
            }
        }
        self.note_likeness(id, fetched);
        let statements = self.statements_of(fetched);
        self.wire.keep_text(&mut fetched.reply);
        statements
    }
}

/// Returns the beginning of some bytes. Those other than printable ASCII are escaped as in C.
fn shown(bytes: &[u8], bytes_max: usize) -> String {
    bytes[..bytes.len().min(bytes_max)].escape_ascii().to_string()
}
