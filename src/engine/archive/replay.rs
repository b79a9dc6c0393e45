//! Replies archived since the checkpoint that a crawl resumed from: they are read back instead of
//! fetched again, even while their servers rest.
//!
//! A capture (an archived reply) is read back when its URL *comes up*, which means that the URL
//! would now be queued or requested: the crawl needs the depth of the URL and how it was found.
//! URLs that wait in the checkpoint's queues are claimed off them when the crawl resumes, or when
//! they are read from disk. URLs that pages lead to later are not queued: see
//! [`Engine::claim_capture`]. No visit begins before the captures whose URLs are in memory are
//! processed.
//!
//! Laws: a capture is read back once, for the first URL with its key; for a hop of a redirect chain
//! the URL itself must be the same. If a capture can't be read, that has a line in the log, and its
//! URL is fetched. A checkpoint saves the URLs of captures that are being read as waiting.
//! Cost: a fingerprint for each URL while captures wait; for each capture a read and its
//! decompression, within the turn's budget.

use super::reread::{Claimed, Reading};
use crate::engine::Engine;
use crate::engine::admission::quotas::Reservation;
use crate::engine::backlog::{Item, Purpose};
use crate::engine::checkpoint::{Checkpoints, KEPT};
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use crate::ground::codec::Put;
use crate::ground::frame;
use crate::ground::map::Map;
use crate::store::Kept;
use crate::url::{Fingerprint, UrlRef};
use std::collections::VecDeque;

/// The captures that are still to be read back.
#[derive(Debug, Default)]
pub(in crate::engine) struct Replays {
    /// The captures whose URLs have not come up, by the hashes of their deduplication keys, in the
    /// order in which they were archived. One URL may have several captures, as a hop of several
    /// redirect chains.
    unclaimed: Map<u64, VecDeque<Unclaimed>>,
    /// The number of captures in `unclaimed`.
    unclaimed_len: usize,
    /// The servers whose queues may hold URLs of captures in `unclaimed`, each with the maximum
    /// number of such URLs.
    to_scan: VecDeque<(ServerId, usize)>,
    /// The servers of `to_scan` whose next URL is still on disk, with the same numbers.
    on_disk: Vec<(ServerId, usize)>,
    /// The captures whose URLs came up, with these URLs, in the order in which they came up.
    queue: VecDeque<Claimed>,
    /// The capture that is being read, if any.
    reading: Option<Box<Reading>>,
    /// The number of captures to read back when the crawl resumed.
    listed: usize,
}

/// A capture whose URL has not come up in this run.
#[derive(Debug)]
struct Unclaimed {
    /// The hash of the capture's URL.
    url: Fingerprint,
    kept: Kept,
    /// The server of the capture's URL, if that server was known when captures were listed.
    server: Option<ServerId>,
    /// Its part of the limits on pages until it is counted.
    reservation: Option<Reservation>,
}

/// The maximum number of URLs of one queue that are taken out to look at the URLs behind them. Such
/// URLs have no capture: they were in flight or waited for a retry when the crawl stopped.
const ASIDE_MAX: usize = 64;
/// The number of captures waiting to be read at which no more URLs are claimed off queues.
const QUEUE_MAX: usize = 1_000;
/// The cost of examining a queued URL, in units of work (see `ledger`).
const SCAN_UNITS: usize = 500;

impl Replays {
    /// Adds a capture: the hashes of its deduplication key and of its URL, its place in the
    /// archive, its server if that is known, and its part of the limits on pages.
    pub(in crate::engine) fn add(
        &mut self,
        (key, url): (Fingerprint, Fingerprint),
        kept: Kept,
        server: Option<ServerId>,
        reservation: Option<Reservation>,
    ) {
        let waiting = self.unclaimed.entry(key.0).or_default();
        // The index lists captures of the same second in any order.
        let before = waiting.iter().rposition(|other| !kept.is_before(&other.kept));
        waiting.insert(
            before.map_or(0, |place| place + 1),
            Unclaimed { url, kept, server, reservation },
        );
        self.unclaimed_len += 1;
    }

    /// Takes out the first capture of a URL. If the URL is a page (`is_page`), the capture may also
    /// be that of another URL with the same key.
    fn find(&mut self, key: Fingerprint, url: Fingerprint, is_page: bool) -> Option<Unclaimed> {
        let waiting = self.unclaimed.get_mut(&key.0)?;
        let own = waiting.iter().position(|other| other.url == url);
        let found = waiting.remove(own.or_else(|| is_page.then_some(0))?)?;
        if waiting.is_empty() {
            self.unclaimed.remove(&key.0);
        }
        self.unclaimed_len -= 1;
        Some(found)
    }

    /// Begins to scan the queues for the URLs of captures. Called when all captures are listed.
    pub(in crate::engine) fn begin(&mut self) {
        self.listed = self.unclaimed_len;
        let mut servers: Map<ServerId, usize> = Map::default();
        for server in self.unclaimed.values().flatten().filter_map(|it| it.server) {
            *servers.entry(server).or_default() += 1;
        }
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_unstable();
        self.to_scan = servers.into();
    }

    /// Returns whether no capture is left to be read back.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of captures left to be read back.
    pub(in crate::engine) fn len(&self) -> usize {
        self.unclaimed_len + self.queue.len() + usize::from(self.reading.is_some())
    }

    /// Returns whether captures are left whose URLs are in memory, so that they can be processed
    /// now.
    pub(in crate::engine) fn is_active(&self) -> bool {
        self.reading.is_some() || !self.queue.is_empty() || !self.to_scan.is_empty()
    }

    /// Returns the captures whose URLs came up. These URLs are in no queue.
    pub(in crate::engine) fn claimed(&self) -> impl Iterator<Item = &Claimed> {
        self.reading.iter().map(|reading| &reading.claimed).chain(&self.queue)
    }

    /// Returns whether a capture of a URL with this deduplication key is left to be read back.
    pub(in crate::engine) fn has(&self, key: Fingerprint) -> bool {
        self.unclaimed.contains_key(&key.0) || self.claimed().any(|it| it.prints.0 == key)
    }

    /// Appends all captures that are left to `out`, each as a frame.
    pub(in crate::engine) fn encode(&self, out: &mut Vec<u8>) {
        let claimed =
            self.claimed().map(|it| (it.prints, &it.kept, Some(it.server), &it.reservation));
        let unclaimed = self.unclaimed.iter().flat_map(|(key, unclaimed)| {
            unclaimed
                .iter()
                .map(|it| ((Fingerprint(*key), it.url), &it.kept, it.server, &it.reservation))
        });
        for ((key, url), kept, server, reservation) in claimed.chain(unclaimed) {
            frame::push_with(KEPT, out, |out| {
                out.put_u64(key.0);
                out.put_u64(url.0);
                kept.encode(out);
                out.put_varint(server.map_or(0, |server| u64::from(server.0) + 1));
                reservation.iter().flat_map(Reservation::keys).for_each(|key| out.put_u64(key));
            });
        }
    }
}

impl Engine {
    /// Takes the capture of a URL, if there is one, to read it back. Returns `true` if there is:
    /// then the URL must not be queued. `item` makes the item that the URL would be queued as.
    pub(in crate::engine) fn claim_capture(
        &mut self,
        server: ServerId,
        url: UrlRef<'_>,
        purpose: Purpose,
        item: impl FnOnce() -> Item,
    ) -> bool {
        if self.archive.replays.unclaimed.is_empty() {
            return false;
        }
        let (key, own) = (self.key_of(url), self.admission.hash(url.as_str().as_bytes()));
        let found = self.archive.replays.find(key, own, purpose == Purpose::Page);
        let Some(Unclaimed { url, kept, reservation, .. }) = found else { return false };
        let item = item();
        self.archive.replays.queue.push_back(Claimed {
            server,
            item,
            prints: (key, url),
            kept,
            reservation,
        });
        true
    }

    /// Takes the capture of the URL at the head of a queue, if there is one, to read it back, and
    /// takes the URL off the queue. The server must be under visit. Returns whether there was a
    /// capture.
    pub(in crate::engine) fn claim_capture_at_head(&mut self, id: ServerId) -> bool {
        if self.archive.replays.unclaimed.is_empty() {
            return false;
        }
        let is_wanted = |item: &&Item| match item.purpose {
            Purpose::Page | Purpose::Again => true,
            Purpose::Robots(..) => false,
            Purpose::Hop(chain) => self.chains.has(chain),
        };
        let Some(item) = self.backlog.peek(id).filter(is_wanted).cloned() else {
            return false;
        };
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let is_kept = self.claim_capture(id, url, item.purpose, || item.clone());
        if is_kept {
            self.backlog.take(id).expect("just examined");
        }
        is_kept
    }

    /// Returns the number of captures left to be read back, now or when their URLs come up.
    pub fn captures_left(&self) -> usize {
        self.archive.replays.len()
    }

    /// Returns how many captures were read back so far, and how many there are to read back in all;
    /// `None` when no more can be read now.
    pub fn reread(&self) -> Option<(usize, usize)> {
        let (left, listed) = (self.archive.replays.len(), self.archive.replays.listed);
        self.archive.replays.is_active().then_some((listed.saturating_sub(left), listed))
    }

    /// Reads some captures back from the archive, within the turn's budget.
    pub(in crate::engine) fn work_replays(&mut self) {
        while self.archive.replays.is_active() && self.may_reread() {
            if self.archive.replays.reading.is_some() {
                self.read_some();
            } else if self.archive.replays.queue.len() < QUEUE_MAX
                && !self.archive.replays.to_scan.is_empty()
            {
                self.scan_queue();
            } else if let Some(claimed) = self.archive.replays.queue.pop_front() {
                let reading = Reading::new(claimed, &self.settings.reply, self.storage.disk_ref());
                self.archive.replays.reading = Some(Box::new(reading));
            }
        }
    }

    /// Returns whether captures may be read back now. A wanted checkpoint comes first, since it
    /// waits until no page is being processed.
    pub(in crate::engine) fn may_reread(&self) -> bool {
        let is_over = self.wire.is_over() && self.archive.replays.reading.is_none();
        !self.is_stopping()
            && self.storage.is_usable()
            && !self.turn.is_spent(Work::Reread)
            && !self.turn.is_spent(Work::Redirects)
            && !is_over
            && self.pages.bytes() + self.pages.lists().bytes() <= self.settings.turn_bytes_max
            && !self.checkpoints.as_ref().is_some_and(Checkpoints::is_wanted)
    }

    /// Stops reading captures back because the crawl ends. The capture that is being read waits for
    /// the next run.
    pub(in crate::engine) fn stop_rereading(&mut self) {
        if let Some(reading) = self.archive.replays.reading.take() {
            let claimed = reading.release(self.wire.pool());
            self.archive.replays.queue.push_front(claimed);
        }
    }

    /// Takes URLs that have captures off the queue of one server. URLs before them without a
    /// capture are set aside, and put back afterwards.
    fn scan_queue(&mut self) {
        let Some((id, mut left)) = self.archive.replays.to_scan.pop_front() else { return };
        if !self.backlog.open_queue(id, self.turn.at()) {
            return;
        }
        let mut aside = Vec::new();
        let (mut is_done, mut is_behind, wanted) = (true, false, left);
        while left > 0 && aside.len() < ASIDE_MAX {
            if self.backlog.peek(id).is_none() {
                is_behind = self.backlog.queue_len(id) > 0;
                break;
            }
            // The next turn examines those set aside again, so this one must get further than that.
            let is_spent = left < wanted && self.turn.is_spent(Work::Reread);
            if is_spent || self.archive.replays.queue.len() >= QUEUE_MAX {
                is_done = false;
                break;
            }
            self.turn.charge(Work::Reread, SCAN_UNITS);
            if self.claim_capture_at_head(id) {
                left -= 1;
            } else {
                aside.extend(self.backlog.take(id));
            }
        }
        aside.into_iter().rev().for_each(|item| self.backlog.give_back(id, &item));
        self.backlog.hand_back(id, self.turn.at());
        if !is_done {
            self.archive.replays.to_scan.push_front((id, left));
        } else if is_behind {
            self.archive.replays.on_disk.push((id, left));
        }
    }

    /// Continues to scan queues whose next URL has been read from disk.
    pub(in crate::engine) fn resume_scans(&mut self) {
        let frontier = &self.backlog;
        let read = self.archive.replays.on_disk.extract_if(.., |(id, _)| frontier.has_next(*id));
        self.archive.replays.to_scan.extend(read);
    }

    /// Continues to read the capture that is being read back.
    fn read_some(&mut self) {
        let Some(mut reading) = self.archive.replays.reading.take() else { return };
        let (units, done) = reading.step(self.storage.disk_ref(), self.wire.pool());
        self.turn.charge(Work::Reread, units);
        match done {
            None => self.archive.replays.reading = Some(reading),
            Some(Ok((reply, outcome))) => self.replayed(*reading, reply, outcome),
            Some(Err(why)) => self.not_replayed(reading.claimed, &why),
        }
    }

    /// Queues the URL of a capture that can't be read, so that the URL is fetched.
    fn not_replayed(&mut self, claimed: Claimed, why: &str) {
        let Claimed { server, item, .. } = claimed;
        let url = self.backlog.origin(server).url_of(&item.target);
        log::warn!("{url} is fetched again: its record can't be read back: {why}");
        self.counts.cut("not-read-back", 1);
        self.log_not_replayed(server, &item, why);
        self.queue_item(server, &item);
    }
}
