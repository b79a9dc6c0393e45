//! Reads one reply back from the archive: its records, then the reply in them, which is parsed as
//! if it had been received from a connection.
//!
//! Laws: a step does a bounded amount of work. The bytes held are charged to the pool like those of
//! any reply.
//! Cost: a copy of the reply, in addition to its decompression.

use super::record::Attempt;
use crate::engine::Engine;
use crate::engine::admission::quotas::Reservation;
use crate::engine::backlog::Item;
use crate::engine::outcome::{Outcome, Shortfall};
use crate::engine::wire::Pool;
use crate::engine::wire::Reply;
use crate::frontier::ServerId;
use crate::ground::disk::Disk;
use crate::ground::time::UnixTime;
use crate::http::response::{Broken, Event, Framing, Limits, Reader};
use crate::store::{self, Kept, Reread, Step, Truncated};
use crate::url::Fingerprint;
use std::time::Duration;

/// The maximum number of bytes of a reply that a step parses.
const STEP_BYTES: usize = 128 << 10;

/// A capture (an archived reply) to be read back, with its URL, which is in no queue.
#[derive(Debug)]
pub(in crate::engine) struct Claimed {
    pub(in crate::engine) server: ServerId,
    pub(in crate::engine) item: Item,
    /// The hashes of the deduplication key and of the URL of the capture.
    pub(in crate::engine) prints: (Fingerprint, Fingerprint),
    pub(in crate::engine) kept: Kept,
    /// Its part of the limits on pages until it is counted.
    pub(in crate::engine) reservation: Option<Reservation>,
}

/// A capture that is being read back from the archive.
#[derive(Debug)]
pub(in crate::engine) struct Reading {
    pub(in crate::engine) claimed: Claimed,
    limits: Limits,
    stage: Stage,
    /// The capture's own reply and its outcome, if another archived reply holds its payload (it is
    /// a WARC revisit record) and that one is being parsed; else `None`.
    own: Option<(Reply, Outcome)>,
    /// The date of the capture's record, once it was read.
    captured: Option<UnixTime>,
    /// The parser of the capture's own reply, which holds its head.
    reader: Reader,
}

#[derive(Debug)]
enum Stage {
    Records(Box<Reread>),
    Own(Parse, store::Reply),
    First(Parse, Reader),
}

/// A reply from the archive that is being parsed.
#[derive(Debug, Default)]
struct Parse {
    bytes: Vec<u8>,
    start: usize,
    /// The number of bytes given to the parser at once. It grows if the parser needs more bytes to
    /// make progress.
    window: usize,
    reply: Reply,
}

/// The result of reading a capture back: the reply and its outcome, or why it can't be read.
type ReadResult = Result<(Reply, Outcome), String>;

impl Reading {
    pub(in crate::engine) fn new(claimed: Claimed, limits: &Limits, disk: &dyn Disk) -> Self {
        let mut reader = Reader::new(limits.clone());
        reader.begin();
        let records = Box::new(Reread::new(claimed.kept.clone(), disk));
        Self {
            claimed,
            limits: limits.clone(),
            stage: Stage::Records(records),
            own: None,
            captured: None,
            reader,
        }
    }

    /// Continues to read the capture. Returns the work done, in units (see `ledger`), and the
    /// result once it is known.
    pub(super) fn step(&mut self, disk: &dyn Disk, pool: &mut Pool) -> (usize, Option<ReadResult>) {
        match &mut self.stage {
            Stage::Records(records) => {
                let (units, step) = records.step(disk);
                let ended = match step {
                    Step::More => None,
                    Step::Unreadable(why) => Some(Err(why)),
                    Step::Whole(mut reply) => {
                        self.captured = reply.captured;
                        let parse = Parse::of(std::mem::take(&mut reply.own));
                        self.stage = Stage::Own(parse, reply);
                        None
                    }
                };
                (units, ended)
            }
            Stage::Own(parse, kept) => {
                let (units, parsed) = parse.parse_some(&mut self.reader, pool);
                let Some(outcome) = parsed else { return (units, None) };
                let reply = std::mem::take(&mut parse.reply);
                let Some(outcome) = outcome else {
                    reply.release(pool);
                    return (units, Some(Err(no_reply())));
                };
                if let Some(first) = kept.first.take() {
                    let mut reader = Reader::new(self.limits.clone());
                    reader.begin();
                    self.own = Some((reply, outcome));
                    self.stage = Stage::First(Parse::of(first), reader);
                    return (units, None);
                }
                let status = self.reader.head().status;
                let outcome = kept.truncated.map_or(outcome, |why| cut_short(status, why));
                (units, Some(Ok((reply, outcome))))
            }
            Stage::First(parse, reader) => {
                let (units, parsed) = parse.parse_some(reader, pool);
                let Some(outcome) = parsed else { return (units, None) };
                let first = std::mem::take(&mut parse.reply);
                let (mut reply, _) = self.own.take().expect("it was parsed first");
                if outcome.is_none() {
                    reply.release(pool);
                    first.release(pool);
                    return (units, Some(Err(no_reply())));
                }
                let mut payload = pool.body();
                payload.extend_from_slice(first.payload());
                first.release(pool);
                pool.charge(payload.len());
                reply.unframed = Some(payload);
                (units, Some(Ok((reply, Outcome::Status(self.reader.head().status)))))
            }
        }
    }

    /// Frees the memory of the reply and stops reading. The capture is returned, and can be read
    /// again from its start.
    pub(in crate::engine) fn release(self, pool: &mut Pool) -> Claimed {
        self.own.into_iter().for_each(|(reply, _)| reply.release(pool));
        match self.stage {
            Stage::Records(_) => {}
            Stage::Own(parse, _) | Stage::First(parse, _) => parse.reply.release(pool),
        }
        self.claimed
    }
}

fn no_reply() -> String {
    "there is no reply in its record".to_owned()
}

/// Returns the outcome of a reply with this status that was archived as truncated for this reason.
fn cut_short(status: u16, why: Truncated) -> Outcome {
    match why {
        Truncated::Length => Outcome::BodyTooLarge,
        Truncated::Time => Outcome::Short(status, Shortfall::Stalled),
        Truncated::Disconnect => Outcome::Short(status, Shortfall::Closed),
        Truncated::Unspecified => Outcome::Short(status, Shortfall::Framing),
    }
}

impl Parse {
    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0, window: STEP_BYTES, reply: Reply::default() }
    }

    /// Parses some more of the reply. Returns the number of bytes parsed, and what was found:
    /// `None` if there is more to parse, `Some(None)` if the bytes are no reply, and `Some` with
    /// the outcome at the end of the reply.
    fn parse_some(
        &mut self,
        reader: &mut Reader,
        pool: &mut Pool,
    ) -> (usize, Option<Option<Outcome>>) {
        let from = self.start;
        let end = self.bytes.len().min(from + self.window);
        let ended = end == self.bytes.len();
        let outcome = loop {
            let step = match reader.read(&self.bytes[self.start..end], ended) {
                Ok(step) => step,
                Err(Broken::BodyTooLarge) => break Some(Some(Outcome::BodyTooLarge)),
                Err(_) if self.reply.head_bytes > 0 => break Some(Some(Outcome::CutShort)),
                Err(_) => break Some(None),
            };
            let used = &self.bytes[self.start..self.start + step.used];
            self.start += step.used;
            match step.event {
                Event::Head => {
                    let chunked = reader.head().framing == Framing::Chunked;
                    self.reply.take_head(used, chunked, pool);
                }
                Event::Payload(range) => self.reply.take_body(used, range, false, pool),
                Event::End(_) => break Some(Some(Outcome::Status(reader.head().status))),
                Event::More if used.is_empty() && ended => break Some(Some(Outcome::CutShort)),
                Event::More if used.is_empty() => {
                    if self.start == from {
                        self.window *= 2;
                    }
                    break None;
                }
                Event::More | Event::Interim | Event::Blank => {}
            }
        };
        let is_none = self.reply.head_bytes == 0;
        (self.start - from, outcome.map(|outcome| outcome.filter(|_| !is_none)))
    }
}

impl Engine {
    /// Processes a reply that was read back from the archive: counts it, and follows its redirect
    /// or its links. [`Engine::page_complete`] does so for a reply from a connection, and writes it
    /// to the archive first.
    pub(in crate::engine) fn replayed(&mut self, reading: Reading, reply: Reply, outcome: Outcome) {
        let Claimed { server: id, item, reservation, kept, .. } = reading.claimed;
        let mut fetch = self.new_fetch(id, item);
        // What is known of a page counts from its capture, not from now.
        fetch.sent.unix = reading.captured.unwrap_or(fetch.sent.unix);
        let head = reading.reader.head();
        self.counts.outcome(outcome);
        self.counts.replayed += 1;
        let attempt = Attempt { fetch: &fetch, reply: &reply, head: Some(head), outcome };
        let mut facts = attempt.log_facts(id, None, Duration::ZERO);
        facts.is_repeat = kept.is_repeat();
        self.follow_reply(id, fetch, facts, reply, Some(head));
        // From here on the page itself counts.
        drop(reservation);
    }
}
