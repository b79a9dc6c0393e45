//! Replies that the archive holds since the checkpoint that a crawl went on from: they are read
//! back when their turn comes, and nobody is asked for them again.
//!
//! Law: a capture is read back once, for the first URL that comes up with its fingerprint; its page
//! then leads on with the depth and the way that the queue has for it, as if it had just come.
//! Cost: while any waits, one fingerprint a URL taken; a read and an inflation each, within the
//! turn's budget of work.

use super::Engine;
use super::fetch::{Fetch, Reply};
use super::outcome::{Outcome, Shortfall};
use super::page::Leads;
use super::record::cut_as;
use super::settle::leads_on;
use crate::frontier::{Item, ServerId};
use crate::http::response::{Broken, Event, Framing, Reader};
use crate::map::Map;
use crate::store::{self, Kept, Truncated};
use crate::url::{Fingerprint, UrlRef};
use smallvec::SmallVec;

/// What is still to be read back.
#[derive(Debug, Default)]
pub(super) struct Replays {
    waiting: Map<u64, Kept>,
}

impl Replays {
    pub(super) fn add(&mut self, fingerprint: Fingerprint, kept: Kept) {
        self.waiting.insert(fingerprint.0, kept);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// None is under way between two calls: a reply is read back and settled in one.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Fingerprint, &Kept)> {
        self.waiting.iter().map(|(fingerprint, kept)| (Fingerprint(*fingerprint), kept))
    }
}

impl Engine {
    /// The capture of the URL at the head of a queue, if it is to be read back.
    pub(super) fn kept_of(&self, id: ServerId) -> Option<Fingerprint> {
        if self.replays.is_empty() {
            return None;
        }
        let item = self.frontier.peek(id)?;
        let url = self.frontier.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let fingerprint = self.fingerprinter.of(self.keys.key(url, &mut Vec::new()));
        self.replays.waiting.contains_key(&fingerprint.0).then_some(fingerprint)
    }

    /// Settles the URL at the head of a queue by its capture. If that can't be read, whoever has
    /// the page is asked after all.
    pub(super) fn replay(&mut self, id: ServerId, fingerprint: Fingerprint) {
        let kept = self.replays.waiting.remove(&fingerprint.0).expect("it was looked up");
        let item = self.frontier.take(id).expect("it was looked at");
        if let Some(item) = self.read_back(id, item, &kept) {
            self.frontier.give_back(id, item);
        }
    }

    /// Whether replies read back fill the turn: no visit begins that would find more of them.
    pub(super) fn is_rereading(&self) -> bool {
        !self.replays.is_empty() && self.backlog_bytes > self.settings.turn_bytes_max
    }

    /// Settles a URL by its capture; hands it back if that can't be read.
    fn read_back(&mut self, id: ServerId, item: Item, kept: &Kept) -> Option<Item> {
        let reply = match self.store.reread(kept, self.disk.as_mut()) {
            Ok(Some(reply)) => reply,
            Ok(None) => return Some(item),
            Err(error) => {
                log::warn!("{error}; the page is fetched again");
                return Some(item);
            }
        };
        let server = self.frontier.server(id);
        let fetch = Fetch {
            url: self.frontier.origin(id).url_of(&item.target).into(),
            item,
            sent: self.now.at,
            sent_unix: self.now.unix,
            visit: server.visits,
            notes: SmallVec::new(),
            evidence: None,
        };
        let mut reader = Reader::new(self.settings.reply.clone());
        match self.assemble(&mut reader, &reply) {
            Some((whole, outcome)) => self.replayed(id, fetch, whole, outcome, &reader),
            None => return Some(fetch.item),
        }
        None
    }

    /// A reply from its bytes, as if they had come over a connection; what it came to.
    fn assemble(&mut self, reader: &mut Reader, kept: &store::Reply) -> Option<(Reply, Outcome)> {
        let (mut reply, mut outcome) = self.parse_kept(reader, &kept.own)?;
        let status = reader.head().status;
        if let Some(first) = &kept.first {
            let mut other = Reader::new(self.settings.reply.clone());
            let (first, _) = self.parse_kept(&mut other, first)?;
            let mut payload = self.pool.body();
            payload.extend_from_slice(first.payload());
            first.release(&mut self.pool);
            self.pool.charge(payload.len());
            reply.unframed = Some(payload);
            outcome = Outcome::Status(status);
        } else if let Some(why) = kept.truncated {
            outcome = match why {
                Truncated::Length => Outcome::BodyTooLarge,
                Truncated::Time => Outcome::Short(status, Shortfall::Stalled),
                Truncated::Disconnect => Outcome::Short(status, Shortfall::Closed),
                Truncated::Unspecified => Outcome::Short(status, Shortfall::Framing),
            };
        }
        Some((reply, outcome))
    }

    fn parse_kept(&mut self, reader: &mut Reader, bytes: &[u8]) -> Option<(Reply, Outcome)> {
        let (mut reply, mut start) = (Reply::default(), 0);
        reader.begin();
        let outcome = loop {
            let step = match reader.read(&bytes[start..], true) {
                Ok(step) => step,
                Err(Broken::BodyTooLarge) => break Outcome::BodyTooLarge,
                Err(_) if reply.head_bytes > 0 => break Outcome::CutShort,
                Err(_) => return None,
            };
            let used = &bytes[start..start + step.used];
            start += step.used;
            match step.event {
                Event::Head => {
                    let chunked = reader.head().framing == Framing::Chunked;
                    reply.take_head(used, chunked, &mut self.pool);
                }
                Event::Payload(range) => reply.take_body(used, range, false, &mut self.pool),
                Event::End(_) => break Outcome::Status(reader.head().status),
                Event::More if used.is_empty() => break Outcome::CutShort,
                Event::More | Event::Interim | Event::Blank => {}
            }
        };
        (reply.head_bytes > 0).then_some((reply, outcome))
    }

    /// As [`Engine::page_settled`], without a connection and without a record.
    fn replayed(
        &mut self,
        id: ServerId,
        fetch: Fetch,
        reply: Reply,
        outcome: Outcome,
        reader: &Reader,
    ) {
        self.counts.outcome(outcome);
        self.counts.replayed += 1;
        self.counts.seeds.settled(&fetch.item, &fetch.url, outcome);
        if let Outcome::Short(_, shortfall) = outcome {
            self.counts.cut(cut_as(shortfall), 1);
        }
        let head = reader.head();
        let settled = self.settled_again(id, &fetch, &reply, outcome, head);
        let leads = leads_on(outcome).then(|| Leads::of(&fetch, &reply, head, &self.settings));
        self.follow_later(fetch, settled, reply, leads);
    }
}
