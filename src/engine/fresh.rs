//! First-timers: URLs that the seen test lets out go into the frontier.
//!
//! Law: they are added in the order in which they come out, until half of the turn's budget for
//! queues is spent; seeds, which the operator gives, whatever is spent. Cost: a copy of each.

use super::Engine;
use super::backlog::{Item, Parts, Purpose, Queued};
use super::ledger::Work;
use crate::frontier::ServerId;
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::url::UrlRef;

/// Units that a first-timer costs beside its bytes.
const ADMIT_UNITS: usize = 256;
/// Room for one is kept up to this size.
const SPARE_BYTES: usize = 8 << 10;

impl Engine {
    /// Queues first-timers that the seen test lets out; more than a turn's share wait for the next.
    pub(super) fn admit_fresh(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        self.queue_fresh();
        self.turn.back(stage);
    }

    pub(super) fn queue_fresh(&mut self) {
        while !self.turn.is_half_spent(Work::Admitted) {
            match self.queue_one_fresh() {
                0 => break,
                units => self.turn.charge(Work::Admitted, units),
            }
        }
    }

    /// The same for seeds: all that come out.
    pub(super) fn queue_seeds(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        while self.queue_one_fresh() > 0 {}
        self.turn.back(stage);
    }

    /// Queues one; the units that it cost, 0 if there is none.
    fn queue_one_fresh(&mut self) -> usize {
        let mut entry = std::mem::take(&mut self.bench.fresh);
        entry.clear();
        entry.shrink_to(SPARE_BYTES);
        if let Some(found) = self.seen.fresh() {
            entry.extend_from_slice(found);
        }
        let units = if entry.is_empty() { 0 } else { ADMIT_UNITS + entry.len() };
        if units > 0 && entry != [DONE] {
            let (found, url, via) = Discovery::decode(&entry);
            self.admit(found, url, (!via.is_empty()).then_some(via));
        }
        self.bench.fresh = entry;
        units
    }

    fn admit(&mut self, found: Discovery, url: UrlRef<'_>, via: Option<&str>) {
        self.counts.urls_new += 1;
        self.queue(found, url, via);
    }

    /// A URL goes into the queue of its server.
    pub(super) fn queue(&mut self, found: Discovery, url: UrlRef<'_>, via: Option<&str>) {
        let id = match self.server_for(url, found.letter) {
            Ok(id) => id,
            Err(servers) => return self.refuse(found, url, via, servers),
        };
        let quality = self.rating.of(url);
        let parts = Parts {
            found_as: found.letter,
            hops: found.hops,
            tries: 0,
            depth: found.depth,
            purpose: Purpose::Page,
            target: url.target(),
            via,
        };
        if !self.take_kept(id, url, Purpose::Page, || parts.item(quality)) {
            self.queue_parts(id, &parts, quality);
        }
    }

    /// Puts a URL into the queue of its server.
    pub(super) fn queue_item(&mut self, id: ServerId, item: &Item) {
        self.queue_parts(id, &item.parts(), item.quality);
    }

    fn queue_parts(&mut self, id: ServerId, parts: &Parts<'_>, quality: Quality) {
        match self.frontier.add_to(id, parts, quality, self.turn.at()) {
            Queued::Waits => {}
            Queued::Retired(why, item) => {
                let outcome = self.sites.look(id).retired_as();
                let outcome = outcome.unwrap_or(super::outcome::Outcome::ServerRetired(why));
                self.counts.losses.another(self.frontier.origin(id).as_str());
                self.note_given_up(id, &item, outcome);
            }
            Queued::Full(item) => self.settle_unsent(id, &item, super::outcome::Outcome::QueueFull),
        }
    }
}

/// In place of a URL: one that was settled as the end of a redirect chain, and is known from here
/// on.
pub(super) const DONE: u8 = b'=';

/// How a URL was found: what goes with it through the seen test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discovery {
    pub(super) letter: u8,
    pub(super) hops: u8,
    pub(super) depth: u16,
}

impl Discovery {
    /// Appends letter, hops, depth, length of the URL, the URL, the page it was found on.
    pub(super) fn encode(self, url: &str, via: &str, out: &mut Vec<u8>) {
        let len = u16::try_from(url.len()).expect("URLs are capped below 64 KiB");
        out.extend_from_slice(&[self.letter, self.hops]);
        out.extend_from_slice(&self.depth.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(url.as_bytes());
        out.extend_from_slice(via.as_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> (Self, UrlRef<'_>, &str) {
        let whole = "what the seen test lets out is what was offered";
        let (&[letter, hops, low, high, len_low, len_high], rest) =
            bytes.split_first_chunk().expect(whole);
        let len = usize::from(u16::from_le_bytes([len_low, len_high]));
        let url = UrlRef::from_canonical(&rest[..len]).expect(whole);
        let via = std::str::from_utf8(&rest[len..]).expect(whole);
        (Self { letter, hops, depth: u16::from_le_bytes([low, high]) }, url, via)
    }
}
