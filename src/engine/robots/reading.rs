//! Reads a reply to a request for robots.txt: decodes its text, and determines what it means.
//!
//! A challenge (a page that asks the client to prove it is a browser) is no file and grants
//! nothing. A file that is legible but may be incomplete is obeyed if it is received so twice, or
//! if no other try follows: see [`Reading::is_doubtful`].
//!
//! Laws: decoding uses at most half of a turn's budget for pages, and the rest resumes in the next
//! turn; the result does not depend on the budget.
//! Cost: decoding as for pages, then one pass over at most [`SIZE_BYTES_MAX`] bytes.

use super::super::Engine;
use super::super::archive::LogFacts;
use super::super::ledger::Work;
use super::super::outcome::{Outcome, Shortfall};
use super::super::wire::{Fetch, Reply};
use crate::frontier::ServerId;
use crate::http::challenge;
use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::http::response::{Framing, Head};
use crate::robots::{self, Ending, File, Meaning, Rules, SIZE_BYTES_MAX, meaning};
use std::borrow::Cow;

/// An archived reply to a request for robots.txt that is being read.
#[derive(Debug)]
pub(in crate::engine) struct RobotsReply {
    pub(in crate::engine) fetch: Fetch,
    pub(in crate::engine) facts: LogFacts,
    /// The parsed head of the reply, if it was received in full.
    pub(in crate::engine) head: Option<Head>,
    pub(in crate::engine) reply: Reply,
    pub(in crate::engine) outcome: Outcome,
    /// The server whose robots.txt is wanted.
    pub(in crate::engine) of: ServerId,
    /// The number of redirects that led from that server's robots.txt to this reply.
    pub(in crate::engine) hops: u8,
    /// The server that sent the reply.
    pub(in crate::engine) server: ServerId,
    /// The server that sent the reply, if the reply is its own robots.txt, requested on behalf of
    /// another server (`of`); else `None`.
    pub(in crate::engine) other: Option<ServerId>,
    /// Bytes that followed the reply, which no request asked for.
    pub(in crate::engine) surplus: Box<[u8]>,
    /// The number of announced bytes that did not arrive.
    pub(in crate::engine) missing_bytes: u64,
    pub(super) step: Step,
}

impl RobotsReply {
    /// Returns the value of a header field of the reply.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        self.head.as_ref()?.field(self.reply.head(), name)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.iter().flat_map(|head| head.fields(self.reply.head()))
    }

    /// Returns whether more than a hundredth of a truncated body is missing. `false` if the length
    /// of the whole body is not known.
    fn is_far_too_short(&self) -> bool {
        let came = self.reply.payload().len() as u64;
        let missing = self.missing_bytes;
        missing > MISSING_BYTES && missing > (came + missing) / 100
    }

    /// Returns whether the framing of the reply shows where the body ends.
    fn is_framed(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.framing != Framing::Close)
    }

    /// Returns the text as received. If the announced length is too small, the bytes that follow
    /// the reply belong to the text: some servers count characters instead of bytes, or count the
    /// file before they modify it.
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

/// The next step of reading a reply to a request for robots.txt.
#[derive(Debug, Default)]
pub(super) enum Step {
    #[default]
    Begin,
    Decode(Box<Decoding>),
    Parse(Text),
}

/// A body that is being decoded.
#[derive(Debug)]
pub(super) struct Decoding {
    decoder: Decoder,
    text: Vec<u8>,
    /// The number of bytes of the payload that were decoded.
    taken: usize,
    /// Whether gzip is a guess: the reply names no coding, but the body begins as gzip does.
    is_guess: bool,
}

/// The text of a reply, decoded.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The decoded text; `None` if it is the payload as received.
    own: Option<Vec<u8>>,
    /// Whether the end of the coded data was reached, which proves that the text is complete.
    is_whole: bool,
    /// Whether the coding is broken or not the one named. Then the text counts as a robots.txt file
    /// only if it has rules.
    is_suspect: bool,
    note: Option<&'static str>,
}

/// What a reply to a request for robots.txt means.
pub(super) struct Reading {
    pub(super) means: Meaning,
    /// The rules, if the text is a robots.txt file.
    pub(super) rules: Rules,
    /// Whether the file may be incomplete: its announced end did not arrive, although the
    /// connection ended in order or the server waits; or its framing is broken. Another try may
    /// return more.
    pub(super) is_doubtful: bool,
    /// An annotation for the crawl log; `None` if nothing was out of the ordinary.
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

/// The number of bytes that may be missing from any file without making it doubtful: some servers
/// announce a length that is off by one, or by a line end.
const MISSING_BYTES: u64 = 2;
/// The annotation for a reply that names the wrong content coding.
const LABEL: Option<&str> = Some("robots-label");

impl Engine {
    /// Continues to read a reply. Returns what it means, or `None` if the rest must wait for the
    /// next turn.
    pub(super) fn read_robots_reply(&mut self, answer: &mut RobotsReply) -> Option<Reading> {
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

    /// Decodes some of a body, up to the maximum size of a file. Returns `true` when it is done. It
    /// makes no difference if the reply names the wrong coding: plain rules are read although a
    /// coding is named, and gzip is decoded although none is.
    fn decode_some_robots(&mut self, answer: &mut RobotsReply, decoding: &mut Decoding) -> bool {
        let payload = answer.reply.payload();
        // A file is never longer encoded than decoded, so more input than the maximum size isn't
        // needed.
        let input = &payload[decoding.taken..payload.len().min(SIZE_BYTES_MAX)];
        let budget = self.turn.half_left(Work::Decoded);
        let step = decoding.decoder.decode(input, true, &mut decoding.text, budget);
        self.turn.charge(Work::Decoded, step.work.max(1));
        decoding.taken += step.used;
        // If the name of the coding is wrong, it proves nothing about the end.
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

    /// Determines what a decoded text means.
    fn parse_robots(&mut self, answer: &RobotsReply, text: Text) -> Reading {
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
            // The server waits for the next request, so it has nothing more to send.
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

/// Begins to read a reply. Returns what it means if its head alone shows that; else sets the next
/// step and returns `None`.
fn begin(answer: &mut RobotsReply) -> Option<Reading> {
    let Some(status) = status_of(answer) else {
        return Some(Reading::of(Meaning::Unreachable));
    };
    // Servers answer 202 when a challenge has to be passed first.
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

/// Returns the status of a reply that can be read, or `None` if it can't be.
fn status_of(answer: &RobotsReply) -> Option<u16> {
    let head = answer.head.as_ref()?;
    match answer.outcome {
        Outcome::Status(status) | Outcome::Short(status, _) => Some(status),
        Outcome::BodyTooLarge => Some(head.status),
        _ => None,
    }
}
