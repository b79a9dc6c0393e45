//! A reply to the request for robots.txt: its text out of its codings, and what it means.
//!
//! A challenge is no file and no permission. A file that is legible but ends in doubt is obeyed
//! when it comes so twice, or no other try follows: see [`Reading::is_doubtful`].
//!
//! Laws: decoding takes at most half of what a turn may spend on pages; what is over resumes in the
//! next turn; what comes out does not depend on the budget.
//! Cost: decoding as for pages, then one pass over at most [`SIZE_BYTES_MAX`] bytes.

use super::super::Engine;
use super::super::archive::Settled;
use super::super::ledger::Work;
use super::super::outcome::{Outcome, Shortfall};
use super::super::wire::{Fetch, Reply};
use crate::frontier::ServerId;
use crate::http::challenge;
use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::http::response::{Framing, Head};
use crate::robots::{self, Ending, File, Meaning, Rules, SIZE_BYTES_MAX, meaning};
use std::borrow::Cow;

/// A reply that is recorded, as far as it is read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) fetch: Fetch,
    pub(super) settled: Settled,
    /// If it came whole.
    pub(super) head: Option<Head>,
    pub(super) reply: Reply,
    pub(super) outcome: Outcome,
    /// The server whose robots.txt was wanted, and how many redirects led from there.
    pub(super) of: ServerId,
    pub(super) hops: u8,
    /// The server that sent it.
    pub(super) server: ServerId,
    /// That server, if this is its own robots.txt and was asked for on behalf of another.
    pub(super) other: Option<ServerId>,
    /// What came behind the reply, unasked.
    pub(super) surplus: Box<[u8]>,
    /// Bytes announced that did not come.
    pub(super) missing_bytes: u64,
    pub(super) step: Step,
}

impl Answer {
    /// Value of a field of the head.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        self.head.as_ref()?.field(self.reply.head(), name)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.iter().flat_map(|head| head.fields(self.reply.head()))
    }

    /// Whether more than a hundredth of a body that was cut short is missing, as far as that is
    /// known.
    fn is_far_too_short(&self) -> bool {
        let came = self.reply.payload().len() as u64;
        let missing = self.missing_bytes;
        missing > MISSING_BYTES && missing > (came + missing) / 100
    }

    /// Whether its framing shows where the body ends.
    fn is_framed(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.framing != Framing::Close)
    }

    /// The text as it came. What lies behind a length that is too small belongs to it: authors
    /// count characters, and servers count the file before they edit it.
    fn text(&self) -> Cow<'_, [u8]> {
        let payload = self.reply.payload();
        let is_length = matches!(self.head.as_ref(), Some(head)
            if matches!(head.framing, Framing::Length(_)));
        if !is_length || self.surplus.is_empty() || self.surplus.starts_with(b"HTTP/") {
            return Cow::Borrowed(payload);
        }
        Cow::Owned([payload, &self.surplus].concat())
    }
}

/// How far a reply is read.
#[derive(Debug, Default)]
pub(super) enum Step {
    #[default]
    Begin,
    Decode(Box<Decoding>),
    Parse(Text),
}

/// A body whose codings are being undone.
#[derive(Debug)]
pub(super) struct Decoding {
    decoder: Decoder,
    text: Vec<u8>,
    /// Bytes of the payload used.
    taken: usize,
    /// No coding was named: the first bytes say so.
    is_guess: bool,
}

/// The text of a reply.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// If it isn't the payload as it came.
    own: Option<Vec<u8>>,
    /// Its coding shows that it is whole.
    is_whole: bool,
    /// It is a file only if it has rules: its coding is broken, or not the one that is named.
    is_suspect: bool,
    note: Option<&'static str>,
}

/// What a reply says.
pub(super) struct Reading {
    pub(super) means: Meaning,
    /// The rules, if it is a file.
    pub(super) rules: Rules,
    /// Its announced end did not come, but the connection ended in order or the server waits; or
    /// its framing is broken. A second try may bring more of it.
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

/// So little may be missing, whatever it is a part of: lengths that are off by one, or by a line
/// end.
const MISSING_BYTES: u64 = 2;
/// The label of a coding is wrong.
const LABEL: Option<&str> = Some("robots-label");

impl Engine {
    /// Reads a reply on; what it says, or nothing if that must wait for the next turn.
    pub(super) fn read_answer(&mut self, answer: &mut Answer) -> Option<Reading> {
        loop {
            match std::mem::take(&mut answer.step) {
                Step::Begin => {
                    let begun = begin(answer);
                    if begun.is_some() {
                        return begun;
                    }
                }
                Step::Decode(mut decoding) => {
                    let is_over = !self.turn.is_half_spent(Work::Decoded)
                        && self.decode_some_robots(answer, &mut decoding);
                    if !is_over {
                        answer.step = Step::Decode(decoding);
                        return None;
                    }
                }
                Step::Parse(text) if self.turn.is_spent(Work::Rules) => {
                    answer.step = Step::Parse(text);
                    return None;
                }
                Step::Parse(text) => return Some(self.parse_robots(answer, text)),
            }
        }
    }

    /// Undoes the codings of a body, as far as a file is read; `true` if that is done. A label that
    /// lies is no harm: rules in plain text are read though a coding is named, and gzip is undone
    /// though none is.
    fn decode_some_robots(&mut self, answer: &mut Answer, decoding: &mut Decoding) -> bool {
        let payload = answer.reply.payload();
        // No file is longer coded than it is plain.
        let input = &payload[decoding.taken..payload.len().min(SIZE_BYTES_MAX)];
        let budget = self.turn.half_left(Work::Decoded);
        let step = decoding.decoder.decode(input, true, &mut decoding.text, budget);
        self.turn.charge(Work::Decoded, step.work.max(1));
        decoding.taken += step.used;
        // A label that is wrong proves nothing of the end.
        let is_read = matches!(step.state, State::Done | State::TooLarge)
            && !decoding.decoder.is_mislabelled();
        answer.step = Step::Parse(match step.state {
            State::More => return false,
            _ if is_read => Text {
                own: Some(std::mem::take(&mut decoding.text)),
                is_whole: true,
                is_suspect: false,
                note: LABEL.filter(|_| decoding.is_guess),
            },
            _ if decoding.is_guess => Text::default(),
            _ => Text { is_suspect: true, note: LABEL, ..Text::default() },
        });
        true
    }

    /// What a text says that is out of its codings.
    fn parse_robots(&mut self, answer: &Answer, text: Text) -> Reading {
        let came = answer.text();
        let bytes = text.own.as_deref().unwrap_or(&came);
        self.turn.charge(Work::Rules, bytes.len().clamp(1, SIZE_BYTES_MAX));
        let means = meaning(status_of(answer).unwrap_or(0));
        if means == Meaning::Unavailable {
            let html = robots::is_html(bytes).then_some(bytes);
            let is_challenge = challenge::in_reply(answer.fields(), html).is_some();
            return if is_challenge { Reading::challenge() } else { Reading::of(means) };
        }
        let shortfall = match answer.outcome {
            Outcome::Short(_, shortfall) if !text.is_whole => Some(shortfall),
            _ => None,
        };
        let is_in_order = match shortfall {
            None | Some(Shortfall::Closed | Shortfall::Framing) => true,
            // The server waits for the next request: it has nothing more to send.
            Some(Shortfall::Stalled) => answer.is_framed(),
            Some(Shortfall::Reset | Shortfall::Overdue) => false,
        };
        if !is_in_order || shortfall.is_some() && answer.is_far_too_short() {
            return Reading::of(Meaning::Unreachable);
        }
        let is_doubtful = shortfall.is_some();
        let ending =
            if is_doubtful || !answer.surplus.is_empty() { Ending::Cut } else { Ending::Whole };
        let file = File::parse(bytes, &self.settings.identity.product, ending);
        if text.is_suspect && !file.has_rule_lines {
            return Reading::of(Meaning::Unreachable);
        }
        let mut reading = Reading { rules: file.rules, is_doubtful, ..Reading::of(means) };
        reading.note = text.note;
        let html = file.is_html.then_some(bytes);
        if !file.has_rule_lines
            && (challenge::in_reply(answer.fields(), html).is_some()
                || html.is_some_and(challenge::is_script_only))
        {
            return Reading::challenge();
        }
        if file.is_html && !file.has_rule_lines {
            reading.note = Some("robots-html");
            if !self.settings.robots.html_allows {
                reading.means = Meaning::Unreachable;
            }
        }
        reading
    }
}

/// Begins to read a reply: what it says if its head shows that, else there is a next step.
fn begin(answer: &mut Answer) -> Option<Reading> {
    let Some(status) = status_of(answer) else {
        return Some(Reading::of(Meaning::Unreachable));
    };
    // 202: not yet, as servers say whose challenge is to be met first.
    if status == 202 || challenge::in_head(answer.fields()).is_some() {
        return Some(Reading::challenge());
    }
    let means = meaning(status);
    if !matches!(means, Meaning::Parse | Meaning::Unavailable) {
        return Some(Reading::of(means));
    }
    let head = answer.head.as_ref().expect("it has a status");
    let mut codings = head.codings(answer.reply.head()).known;
    let is_guess = codings.is_empty() && answer.reply.payload().starts_with(b"\x1F\x8B");
    codings.extend(is_guess.then_some(Coding::Gzip));
    answer.step = if codings.is_empty() {
        Step::Parse(Text::default())
    } else {
        let limits = DecodeLimits { decoded_bytes_max: SIZE_BYTES_MAX as u64 + 1 };
        let mut decoder = Decoder::new(limits);
        decoder.begin(&codings);
        Step::Decode(Box::new(Decoding { decoder, text: Vec::new(), taken: 0, is_guess }))
    };
    None
}

/// The status of a reply that can be read.
fn status_of(answer: &Answer) -> Option<u16> {
    let head = answer.head.as_ref()?;
    match answer.outcome {
        Outcome::Status(status) | Outcome::Short(status, _) => Some(status),
        Outcome::BodyTooLarge => Some(head.status),
        _ => None,
    }
}
