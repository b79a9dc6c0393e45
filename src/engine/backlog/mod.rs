//! The backlog: the URLs that wait to be fetched, encoded for the queues of the frontier.
//!
//! The frontier stores opaque payloads. An [`Item`] is encoded when it is queued, and decoded when
//! a visit takes it. A visit examines its next URL several times (is it allowed, is there a
//! connection), so the item is taken once and kept here as the visit's *candidate*. It is given
//! back if the visit ends without requesting it, or if a better one is queued. This part of the
//! engine also keeps the URLs of servers that were given up.
//!
//! Law: an item is taken as it was queued.
//! Cost: a copy of the URL in and out.

mod given_up;
mod item;

use super::again::Again;
use crate::budgets::Budgets;
use crate::frontier::{self, Added, Frontier, Key, Search, ServerId, Visit};
use crate::ground::disk::{self, Disk};
use crate::ground::frame;
use crate::ground::map::Map;
use crate::ground::quality::Quality;
use crate::ground::time::{Instant, Now};
use std::collections::hash_map::Entry;
use std::ops::{Deref, DerefMut};

use given_up::GivenUp;
pub(super) use given_up::{FOLDER as GIVEN_UP_FOLDER, SHELF_FOLDER};
pub(super) use item::ROBOTS_TXT;
pub use item::{Item, Parts, Purpose, Text, is_payload, robots_item};

/// The result of queueing an item.
#[derive(Debug)]
pub enum Queued {
    /// The item is queued.
    Waits,
    /// The server of the item was given up; the item is returned.
    Retired(Item),
    /// A limit on queued URLs is reached; the item is returned.
    Full(Item),
}

/// All URLs that wait, and those of servers that were given up.
#[derive(Debug)]
pub struct Backlog {
    frontier: Frontier,
    given_up: GivenUp,
    /// URLs that left their queues while an order paused their prefix.
    shelf: GivenUp,
    /// Known pages, which are visited again; `None` if they aren't.
    again: Option<Box<Again>>,
    /// URLs over the budget of their domain; `None` if domains have none.
    budgets: Option<Box<Budgets>>,
    /// The candidate of each server under visit: its next URL, which was taken from the queue.
    candidates: Map<ServerId, Item>,
    /// A scratch buffer for payloads.
    payload: Vec<u8>,
}

impl Backlog {
    /// Returns an empty backlog. URLs of servers that are given up are kept if `crawl` is the
    /// number of a crawl that keeps its state.
    pub fn new(settings: &frontier::Settings, crawl: Option<u64>) -> Self {
        Self {
            frontier: Frontier::new(settings_of(settings)),
            given_up: GivenUp::new(GIVEN_UP_FOLDER, crawl),
            shelf: GivenUp::new(SHELF_FOLDER, crawl),
            again: None,
            budgets: None,
            candidates: Map::default(),
            payload: Vec::new(),
        }
    }

    /// Returns the known pages, if they are visited again.
    pub(super) fn again(&self) -> Option<&Again> {
        self.again.as_deref()
    }

    /// Returns the known pages for changes.
    pub(super) fn again_mut(&mut self) -> Option<&mut Again> {
        self.again.as_deref_mut()
    }

    /// Begins to come back to known pages.
    pub(super) fn set_again(&mut self, again: Again) {
        self.again = Some(Box::new(again));
    }

    /// Returns the URLs over the budget of their domain, if domains have one.
    pub(super) fn budgets(&self) -> Option<&Budgets> {
        self.budgets.as_deref()
    }

    /// Returns the URLs over the budget of their domain for changes.
    pub(super) fn budgets_mut(&mut self) -> Option<&mut Budgets> {
        self.budgets.as_deref_mut()
    }

    /// Begins to give domains a budget.
    pub(super) fn set_budgets(&mut self, budgets: Budgets) {
        self.budgets = Some(Box::new(budgets));
    }

    /// Drops the budgets: domains have none any more, and no URL waits.
    pub(super) fn end_budgets(&mut self) {
        self.budgets = None;
    }

    /// Replaces the frontier by that of an earlier run.
    pub(super) fn restore(&mut self, frontier: Frontier) {
        self.frontier = frontier;
    }

    /// Returns the URLs on disk whose servers were given up, for changes.
    pub(super) fn given_up_mut(&mut self) -> &mut GivenUp {
        &mut self.given_up
    }

    /// Returns the URLs on disk whose servers were given up.
    pub(super) fn given_up_log(&self) -> &GivenUp {
        &self.given_up
    }

    /// Returns the URLs on disk whose prefix is paused, for changes.
    pub(super) fn shelf_mut(&mut self) -> &mut GivenUp {
        &mut self.shelf
    }

    /// Returns the URLs on disk whose prefix is paused.
    pub(super) fn shelf(&self) -> &GivenUp {
        &self.shelf
    }

    /// Restores the segments of URLs that are kept outside the queues. `files` are those that the
    /// checkpoint of an earlier run names.
    ///
    /// # Errors
    /// A segment can't be read.
    pub(super) fn restore_segments(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.given_up.restore_files(files, disk)?;
        self.again_mut().map_or(Ok(()), |again| again.restore_files(files, disk))?;
        self.budgets_mut().map_or(Ok(()), |budgets| budgets.restore_files(files, disk))?;
        self.shelf.restore_files(files, disk)
    }

    /// Appends the buffered URLs that are kept outside the queues to the disk: all of them, or only
    /// if they are enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. No bytes are lost, and the call may be repeated.
    pub(super) fn write_segments(
        &mut self,
        is_all: bool,
        disk: &mut dyn Disk,
    ) -> Result<(), disk::Error> {
        self.given_up.write(is_all, disk)?;
        self.again_mut().map_or(Ok(()), |again| again.write(is_all, disk))?;
        self.budgets_mut().map_or(Ok(()), |budgets| budgets.write(is_all, disk))?;
        self.shelf.write(is_all, disk)
    }

    /// Called when a checkpoint is durable. Returns the names of segments that are no longer
    /// needed.
    pub(super) fn segments_on_durable(&mut self) -> Vec<String> {
        let mut names = self.given_up.on_durable();
        names.extend(self.shelf.on_durable());
        names.extend(self.again_mut().map_or(Vec::new(), Again::on_durable));
        names.extend(self.budgets_mut().map_or(Vec::new(), Budgets::on_durable));
        names
    }

    /// Calls the servers of a restored crawl whose queues begin with a known page, or may: with a
    /// URL that goes first. Takes time linear in the servers.
    pub(super) fn call_restored(&mut self, now: Instant) {
        if self.again.is_some() {
            let ids = (0..self.frontier.servers()).map(ServerId::from_index);
            for id in ids.collect::<Vec<_>>() {
                if self.frontier.next_key(id).is_some_and(|key| key.is_first) {
                    self.frontier.call(id, now);
                }
            }
        }
    }

    /// Queues a URL at a server. Returns whether it was queued.
    pub fn add_to(
        &mut self,
        id: ServerId,
        parts: &Parts<'_>,
        quality: Quality,
        now: Instant,
    ) -> Queued {
        self.encode(parts);
        match self.frontier.add_to(id, parts.is_first(), quality, &self.payload, now) {
            Added::Queued if parts.is_granted() => {
                self.frontier.call(id, now);
                Queued::Waits
            }
            Added::Queued => Queued::Waits,
            Added::Retired(_) => Queued::Retired(parts.item(quality)),
            Added::Full => Queued::Full(parts.item(quality)),
        }
    }

    /// Returns the next URL of a server under visit; `None` if there is none, or if it is still on
    /// disk.
    pub fn peek(&mut self, id: ServerId) -> Option<&Item> {
        let Self { frontier, candidates, payload, .. } = self;
        match candidates.entry(id) {
            Entry::Occupied(candidate) if !frontier.has_better(id, candidate.get().key()) => {
                Some(candidate.into_mut())
            }
            Entry::Occupied(mut candidate) => {
                give_back(frontier, payload, id, candidate.get());
                candidate.insert(take(frontier, payload, id).expect("a better one waits"));
                Some(candidate.into_mut())
            }
            Entry::Vacant(none) => Some(none.insert(take(frontier, payload, id)?)),
        }
    }

    /// Returns the candidate of a server under visit, if one was taken from the queue.
    pub(super) fn candidate(&self, id: ServerId) -> Option<&Item> {
        self.candidates.get(&id)
    }

    /// Searches the queue of a server for an item, without taking it: see [`Frontier::search`].
    ///
    /// # Errors
    /// Those of [`Frontier::search`].
    pub(super) fn search_items(
        &self,
        id: ServerId,
        is_it: &mut dyn FnMut(&Item) -> bool,
        bytes_max: usize,
        disk: &mut dyn Disk,
    ) -> Result<(Search, usize), frame::Error> {
        // The test doesn't look at the key.
        let key = Key { is_first: false, quality: Quality::ZERO, arrival: 0 };
        let mut is_payload = |payload: &[u8]| is_it(&decode(payload, key));
        self.frontier.search(id, &mut is_payload, bytes_max, disk)
    }

    /// Takes the next URL of a server under visit.
    pub fn take(&mut self, id: ServerId) -> Option<Item> {
        let Self { frontier, candidates, payload, .. } = self;
        match candidates.remove(&id) {
            Some(candidate) if frontier.has_better(id, candidate.key()) => {
                give_back(frontier, payload, id, &candidate);
                take(frontier, payload, id)
            }
            Some(candidate) => Some(candidate),
            None => take(frontier, payload, id),
        }
    }

    /// Returns whether a server has a next URL in memory.
    pub fn has_next(&self, id: ServerId) -> bool {
        self.candidates.contains_key(&id) || self.frontier.has_next(id)
    }

    /// Returns the quality of the next URL of a server, or `None` if it is not in memory.
    pub fn next_quality(&self, id: ServerId) -> Option<Quality> {
        let candidate = self.candidates.get(&id).map(|item| item.quality);
        candidate.or_else(|| Some(self.frontier.next_key(id)?.quality))
    }

    /// Puts an item back to its position in its queue, before the visit that took it ends.
    pub fn give_back(&mut self, id: ServerId, item: &Item) {
        give_back(&mut self.frontier, &mut self.payload, id, item);
    }

    /// Queues an item again, before the visit ends: behind all others, or behind those of equal
    /// quality if the queue is ordered by quality.
    pub fn put_off(&mut self, id: ServerId, item: &Item) {
        self.encode(&item.parts());
        self.frontier.put_off(id, item.is_first(), item.quality, &self.payload);
    }

    /// Ends a visit that made no request, and puts its candidate back into the queue: see
    /// [`Frontier::hand_back`].
    pub fn hand_back(&mut self, id: ServerId, now: Instant) {
        self.drop_candidate(id);
        self.frontier.hand_back(id, now);
    }

    /// Ends a visit, and puts its candidate back into the queue. Returns when the server may be
    /// visited again: see [`Frontier::finish`].
    pub fn finish(&mut self, id: ServerId, visit: &Visit, now: Instant) -> Instant {
        self.drop_candidate(id);
        let due = self.frontier.finish(id, visit, now);
        // Or a hop, or a robots.txt, ahead of a known page.
        let is_first = || self.frontier.next_key(id).is_some_and(|key| key.is_first);
        if self.again.as_ref().is_some_and(|again| again.has_queued(id)) && is_first() {
            self.frontier.call(id, now);
        }
        due
    }

    /// Takes the next URL of any server that was given up, with that server: see
    /// [`Frontier::given_up`].
    pub fn given_up(&mut self) -> Option<(ServerId, Item)> {
        self.payload.clear();
        let (id, key) = self.frontier.given_up(&mut self.payload)?;
        Some((id, decode(&self.payload, key)))
    }

    /// Returns the number of URLs that wait, including candidates.
    pub fn urls(&self) -> usize {
        self.frontier.urls() + self.candidates.len()
    }

    /// Returns the number of URLs that were ever queued, which is the arrival number of the last.
    #[cfg(feature = "cluster")]
    pub(super) fn arrivals(&self) -> u64 {
        self.frontier.arrivals()
    }

    /// Returns the number of URLs that wait at a server, including its candidate.
    pub fn queue_len(&self, id: ServerId) -> usize {
        self.frontier.queue_len(id) + usize::from(self.candidates.contains_key(&id))
    }

    /// Begins to save the frontier for a checkpoint: see [`Frontier::begin_snapshot`]. `flights`
    /// are the URLs that are being fetched; they and the candidates are saved as waiting.
    pub fn begin_snapshot(&mut self, flights: Vec<(ServerId, Item)>, now: Now) {
        let candidates = self.candidates.iter().map(|(id, item)| (*id, item));
        let mut waiting: Vec<_> = flights.iter().map(|(id, item)| (*id, item)).collect();
        waiting.extend(candidates);
        waiting.sort_by_key(|(id, _)| *id);
        let encoded = waiting.into_iter().map(|(id, item)| {
            let mut payload = Vec::new();
            item.parts().encode(&mut payload);
            (id, item.key(), payload)
        });
        let encoded = encoded.collect();
        self.frontier.begin_snapshot(encoded, now);
    }

    fn drop_candidate(&mut self, id: ServerId) {
        if let Some(item) = self.candidates.remove(&id) {
            self.give_back(id, &item);
        }
    }

    fn encode(&mut self, parts: &Parts<'_>) {
        self.payload.clear();
        parts.encode(&mut self.payload);
    }
}

/// Takes the next URL of a server under visit out of its queue.
fn take(frontier: &mut Frontier, payload: &mut Vec<u8>, id: ServerId) -> Option<Item> {
    payload.clear();
    let key = frontier.take(id, payload)?;
    Some(decode(payload, key))
}

fn give_back(frontier: &mut Frontier, payload: &mut Vec<u8>, id: ServerId, item: &Item) {
    payload.clear();
    item.parts().encode(payload);
    frontier.give_back(id, item.key(), payload);
}

fn decode(payload: &[u8], key: Key) -> Item {
    Item::decode(payload, key).expect("it was encoded here, or checked when it was read")
}

impl Deref for Backlog {
    type Target = Frontier;

    fn deref(&self) -> &Frontier {
        &self.frontier
    }
}

impl DerefMut for Backlog {
    fn deref_mut(&mut self) -> &mut Frontier {
        &mut self.frontier
    }
}

/// Returns the frontier's settings with the test for valid payloads set to that of this file.
pub fn settings_of(settings: &frontier::Settings) -> frontier::Settings {
    frontier::Settings { is_payload, ..settings.clone() }
}
