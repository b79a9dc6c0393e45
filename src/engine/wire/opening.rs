//! The beginning of a page's text. It is decoded once, when the reply is complete, to look for a
//! challenge, statements about use, and repeats. A short text is decoded whole, and its links are
//! found in it later.
//!
//! Law: reading it costs at most [`UNITS_MAX`].
//! Cost: of a compressed page, decoding all of it, or about 128 KiB of a long one.

use super::fetch::Reply;
use super::pool::Pool;
use crate::engine::ledger::Work;
use crate::engine::turn::Turn;
use crate::ground::stats::Stage;
use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::http::mime::{self, Markup, MediaType};
use crate::http::response::Head;

/// The maximum length of the beginning of a text, in bytes. `meta` elements belong into the head of
/// a page, which is shorter but for pages that carry their scripts and styles there.
pub(in crate::engine) const TEXT_BYTES_MAX: usize = 128 << 10;

/// The maximum cost of decoding a text whole, in units of work (see `ledger`). Of a text that
/// probably takes more, only the beginning is decoded here, within the same budget, and all of it
/// once more for its links.
const DECODE_UNITS_MAX: usize = 1 << 20;

/// The capacity up to which the buffer of a text is kept for the next page, in bytes: that of a
/// bomb would be there to the end.
const TEXT_SPARE_BYTES: usize = 2 * TEXT_BYTES_MAX;

/// The budget of one call of the decoder for the beginning of a long text, in units of work: what
/// is decoded too much is at most that.
const PIECE_UNITS: usize = 32 << 10;

/// The length of a text as a multiple of its compressed body, if the body doesn't say it. Pages
/// are a fourth to an eighth of their text.
const RATIO: usize = 8;

/// The maximum cost of reading the beginning of a text, in units of work: it is decoded, with one
/// step of the decoder more than the budget.
pub(in crate::engine) const UNITS_MAX: usize = DECODE_UNITS_MAX + TEXT_BYTES_MAX;

/// Reads the beginnings of pages, one after the other.
#[derive(Debug)]
pub(in crate::engine) struct Opening {
    decoder: Decoder,
    /// The decoded text; kept to reuse its memory.
    text: Vec<u8>,
    is_html: bool,
    is_decoded: bool,
    /// Whether `text` is the whole text of the reply, and its codings are in order.
    is_whole: bool,
}

impl Opening {
    pub(super) fn new(limits: DecodeLimits) -> Self {
        let (decoder, text) = (Decoder::new(limits), Vec::new());
        Self { decoder, text, is_html: false, is_decoded: false, is_whole: false }
    }

    /// Reads the beginning of a reply, and charges the cost of decoding it.
    pub(in crate::engine) fn read(&mut self, reply: &Reply, head: &Head, turn: &mut Turn) {
        let bytes = reply.head();
        let media = MediaType::of(head, bytes);
        let markup = mime::markup(media.as_ref(), head, bytes);
        self.text.clear();
        self.text.shrink_to(TEXT_SPARE_BYTES);
        (self.is_html, self.is_decoded, self.is_whole) = (false, false, false);
        if !matches!(markup, Markup::Html | Markup::Sniff) {
            return;
        }
        let (codings, payload) = (head.codings(bytes), reply.payload());
        self.is_decoded = !codings.known.is_empty();
        if self.is_decoded {
            let stage = turn.enter(Stage::Decode, 0);
            let state = self.decode(&codings.known, payload, turn);
            turn.back(stage);
            let is_odd = self.decoder.is_mislabelled() || self.decoder.is_sum_wrong();
            self.is_whole = state == State::Done && !is_odd && !codings.too_many;
            self.decoder.end();
        }
        self.is_html = true;
        self.is_html =
            markup == Markup::Html || self.html(reply).is_some_and(mime::looks_like_html);
    }

    /// Decodes a text whole, or its beginning if that probably takes too long.
    fn decode(&mut self, codings: &[Coding], payload: &[u8], turn: &mut Turn) -> State {
        self.decoder.begin(codings);
        let likely = self.decoder.units_at_once(payload);
        let likely = likely.unwrap_or(payload.len().saturating_mul(RATIO));
        let is_short = likely <= DECODE_UNITS_MAX;
        let (piece, text_bytes_max) =
            if is_short { (DECODE_UNITS_MAX, usize::MAX) } else { (PIECE_UNITS, TEXT_BYTES_MAX) };
        let (mut used, mut units) = (0, 0);
        let state = loop {
            let budget = piece.min(DECODE_UNITS_MAX - units);
            let step = self.decoder.decode(&payload[used..], true, &mut self.text, budget);
            used += step.used;
            units += step.work;
            let is_enough = self.text.len() >= text_bytes_max || units >= DECODE_UNITS_MAX;
            if step.state != State::More || is_enough {
                break step.state;
            }
        };
        turn.meter_mut().add_bytes(self.text.len());
        turn.charge(Work::Archived, units);
        state
    }

    /// Returns the beginning of the text of the reply that was read last; `None` if it isn't HTML.
    pub(in crate::engine) fn html<'a>(&'a self, reply: &'a Reply) -> Option<&'a [u8]> {
        let text = if self.is_decoded { &self.text } else { reply.payload() };
        self.is_html.then(|| &text[..text.len().min(TEXT_BYTES_MAX)])
    }

    /// Takes out the text of the reply that was read last, if it was decoded and is whole. The next
    /// one is read into memory of the pool.
    pub(super) fn take_whole(&mut self, pool: &mut Pool) -> Option<Vec<u8>> {
        (self.is_whole && self.is_html).then(|| std::mem::replace(&mut self.text, pool.body()))
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;
    use crate::engine::ledger::Ledger;
    use crate::ground::stats::{Meter, still};
    use crate::ground::time::Now;
    use std::io::Write;

    /// Returns 2 MiB of text that compresses somewhat better than pages do.
    fn text() -> Vec<u8> {
        let words = ["the ", "<a href=\"/", "\">", "</a>\n", "of ", "crawl", "0", "7", "x", " "];
        let (mut text, mut random) = (Vec::new(), 7_u32);
        while text.len() < 2 << 20 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(words[(random >> 16) as usize % words.len()].as_bytes());
        }
        text
    }

    fn encoded(coding: Coding, text: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::new(5);
        match coding {
            Coding::Gzip => {
                let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
                out.write_all(text).and_then(|()| out.finish()).expect("memory")
            }
            Coding::Deflate => {
                let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
                out.write_all(text).and_then(|()| out.finish()).expect("memory")
            }
            Coding::Brotli => {
                let mut out = brotli::CompressorWriter::new(Vec::new(), 4_096, 5, 22);
                out.write_all(text).expect("memory");
                out.into_inner()
            }
            Coding::Zstd => zstd::bulk::compress(text, 3).expect("memory"),
        }
    }

    /// Returns how a body is decoded, with the text and the cost in units of work.
    fn decoded(coding: Coding, body: &[u8]) -> (State, Vec<u8>, usize) {
        let mut opening = Opening::new(DecodeLimits { decoded_bytes_max: 1 << 30 });
        let most = 1 << 30;
        let mut turn = Turn::new(Now::default(), Meter::new(still), Ledger::new(most, 0));
        let state = opening.decode(&[coding], body, &mut turn);
        (state, opening.text, most - turn.left(Work::Archived))
    }

    /// Whatever the coding, all of the beginning of a long text is decoded, and not much more. A
    /// shorter text is decoded whole.
    #[test]
    fn a_beginning_is_as_long_in_any_coding() {
        let text = text();
        for coding in Coding::ALL {
            let (state, found, units) = decoded(coding, &encoded(coding, &text));
            assert!(state == State::More && text.starts_with(&found), "{coding:?}");
            assert!(found.len() >= TEXT_BYTES_MAX, "{coding:?}: {}", found.len());
            assert!(found.len() <= 3 * TEXT_BYTES_MAX, "{coding:?}: {}", found.len());
            assert!(units <= UNITS_MAX, "{coding:?}: {units}");
            let (state, found, _) = decoded(coding, &encoded(coding, &text[..100_000]));
            assert!(state == State::Done && found == text[..100_000], "{coding:?}");
        }
    }
}
