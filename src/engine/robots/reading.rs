//! A reply to the request for robots.txt: its text out of its codings, and what it means.
//!
//! A challenge is no file and no permission. A file that is legible but ends in doubt is obeyed
//! only if no other try follows: see [`Reading::is_doubtful`].

use super::super::Engine;
use super::super::fetch::Fetched;
use super::super::ledger::Work;
use super::super::outcome::{Outcome, Shortfall};
use crate::http::challenge;
use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::http::response::{Framing, is_surplus};
use crate::robots::{self, Ending, File, Meaning, Rules, SIZE_BYTES_MAX, meaning};

/// What a reply says.
pub(super) struct Reading {
    pub(super) means: Meaning,
    /// The rules, if it is a file.
    pub(super) rules: Rules,
    /// Its end is not announced, but the connection ended in order; or its framing is broken. A
    /// second try may bring more of it.
    pub(super) is_doubtful: bool,
    /// What was out of the ordinary.
    pub(super) note: Option<&'static str>,
}

impl Reading {
    fn of(means: Meaning) -> Self {
        Self { means, rules: Rules::allow_all(), is_doubtful: false, note: None }
    }

    fn challenge() -> Self {
        Self { note: Some("robots-challenge"), ..Self::of(Meaning::Unreachable) }
    }
}

/// The text of a reply.
struct Text {
    bytes: Vec<u8>,
    /// Its coding shows that it is whole.
    is_whole: bool,
    note: Option<&'static str>,
}

/// So little may be missing, whatever it is a part of: lengths that are off by one, or by a line
/// end.
const MISSING_BYTES: u64 = 2;
/// Steps of decoding, each of [`SIZE_BYTES_MAX`] units of work: what takes more is no file.
const STEPS_MAX: usize = 4;

impl Engine {
    /// What a reply to the request for robots.txt says.
    pub(super) fn read_robots(&mut self, slot: u32, fetched: &Fetched<'_>) -> Reading {
        let Some(head) = fetched.head else { return Reading::of(Meaning::Unreachable) };
        let (status, shortfall) = match fetched.outcome {
            Outcome::Status(status) => (status, None),
            Outcome::BodyTooLarge => (head.status, None),
            Outcome::Short(status, shortfall) => (status, Some(shortfall)),
            _ => return Reading::of(Meaning::Unreachable),
        };
        let fields = || head.fields(fetched.reply.head());
        // 202: not yet, as servers say whose challenge is to be met first.
        if status == 202 || challenge::in_head(fields()).is_some() {
            return Reading::challenge();
        }
        let means = meaning(status);
        if !matches!(means, Meaning::Parse | Meaning::Unavailable) {
            return Reading::of(means);
        }
        let Some(text) = self.robots_text(fetched) else {
            return Reading::of(if means == Meaning::Parse { Meaning::Unreachable } else { means });
        };
        if means == Meaning::Unavailable {
            let is_challenge =
                robots::is_html(&text.bytes) && challenge::in_page(fields(), &text.bytes).is_some();
            return if is_challenge { Reading::challenge() } else { Reading::of(means) };
        }
        let shortfall = shortfall.filter(|_| !text.is_whole);
        let is_in_order = matches!(shortfall, None | Some(Shortfall::Closed | Shortfall::Framing));
        if !is_in_order || shortfall.is_some() && self.is_far_too_short(slot, fetched) {
            return Reading::of(Meaning::Unreachable);
        }
        let is_doubtful = shortfall.is_some();
        let has_surplus = is_surplus(self.conns.look(slot).unread());
        let ending = if is_doubtful || has_surplus { Ending::Cut } else { Ending::Whole };
        let file = File::parse(&text.bytes, &self.settings.identity.product, ending);
        self.ledger.charge(Work::Rules, text.bytes.len().min(SIZE_BYTES_MAX));
        let mut reading = Reading { rules: file.rules, is_doubtful, ..Reading::of(means) };
        reading.note = text.note;
        if file.is_html && !file.has_rule_lines {
            if challenge::in_page(fields(), &text.bytes).is_some()
                || challenge::is_script_only(&text.bytes)
            {
                return Reading::challenge();
            }
            reading.note = Some("robots-html");
            if !self.settings.robots.html_allows {
                reading.means = Meaning::Unreachable;
            }
        }
        reading
    }

    /// Whether more than a hundredth of a body that was cut short is missing, as far as that is
    /// known.
    fn is_far_too_short(&self, slot: u32, fetched: &Fetched<'_>) -> bool {
        let came = fetched.reply.payload().len() as u64;
        let missing = match fetched.head.map(|head| head.framing) {
            Some(Framing::Length(len)) => len.saturating_sub(came),
            _ => self.conns.look(slot).reader.missing_bytes(),
        };
        missing > MISSING_BYTES && missing > (came + missing) / 100
    }

    /// The text of a reply; `None` if its coding is broken. A label that lies is no harm: rules in
    /// plain text are read though a coding is named, and gzip is undone though none is.
    fn robots_text(&mut self, fetched: &Fetched<'_>) -> Option<Text> {
        const LABEL: Option<&str> = Some("robots-label");
        let payload = fetched.reply.payload();
        let plain = |note| {
            let bytes = payload[..payload.len().min(SIZE_BYTES_MAX + 1)].to_vec();
            Some(Text { bytes, is_whole: false, note })
        };
        let codings = fetched.head?.codings(fetched.reply.head()).known;
        if codings.is_empty() {
            let is_gzip = payload.starts_with(b"\x1F\x8B");
            let decoded = is_gzip.then(|| self.decode_robots(payload, &[Coding::Gzip])).flatten();
            let decoded = decoded.map(|bytes| Text { bytes, is_whole: true, note: LABEL });
            return decoded.or_else(|| plain(None));
        }
        if let Some(bytes) = self.decode_robots(payload, &codings) {
            return Some(Text { bytes, is_whole: true, note: None });
        }
        let product = &self.settings.identity.product;
        let is_text = File::parse(payload, product, Ending::Whole).has_rule_lines;
        is_text.then(|| plain(LABEL)).flatten()
    }

    /// Undoes the codings of a body, as far as a file is read.
    fn decode_robots(&mut self, mut input: &[u8], codings: &[Coding]) -> Option<Vec<u8>> {
        let limits = DecodeLimits { decoded_bytes_max: SIZE_BYTES_MAX as u64 + 1 };
        let mut text = Vec::new();
        let mut decoder = Decoder::new(limits);
        decoder.begin(codings);
        for _ in 0..STEPS_MAX {
            let step = decoder.decode(input, true, &mut text, SIZE_BYTES_MAX);
            self.ledger.charge(Work::Decoded, step.work);
            input = &input[step.used..];
            match step.state {
                State::More => {}
                // A label that is wrong proves nothing of the end.
                _ if decoder.is_mislabelled() => return None,
                State::Done | State::TooLarge => return Some(text),
                _ => return None,
            }
        }
        None
    }
}
