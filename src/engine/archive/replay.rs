//! Replies that the archive holds since the checkpoint that a crawl resumed from: they are read
//! back at once, whatever rest their servers are owed, and nobody is asked for them again.
//!
//! A capture needs its URL as the crawl found it, with the depth and the way it was found by. URLs
//! that the checkpoint has waiting are taken off their queues when the crawl resumes, or as soon as
//! the disk has brought them; those that pages lead to never get there, see [`Engine::take_kept`].
//! No visit begins before what is in memory is done.
//!
//! Laws: a capture is read back once, for the first URL that comes up with its key, but a hop of a
//! redirect chain has that of its very URL only; one that can't be read has a line in the log, and
//! its URL is fetched. A checkpoint counts what is under way here as waiting. Cost: while any
//! waits, one fingerprint a URL; a read and an inflation each, within the turn's budget of work.

use super::reread::{Reading, Taken};
use crate::engine::Engine;
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

/// What is still to be read back.
#[derive(Debug, Default)]
pub(in crate::engine) struct Replays {
    /// Captures whose URLs have not come up, by their keys; of each key in the order in which they
    /// came: one page may have several, as hops of redirect chains.
    waiting: Map<u64, VecDeque<Waiting>>,
    /// How many these are.
    waiting_len: usize,
    /// Servers whose queues may hold URLs of such captures: how many at most.
    servers: VecDeque<(ServerId, usize)>,
    /// Those of them whose next URL is still on disk.
    behind: Vec<(ServerId, usize)>,
    /// Captures with their URLs, in the order in which these came up.
    queue: VecDeque<Taken>,
    /// The first of them, while it is read.
    reading: Option<Box<Reading>>,
    /// All that were to be read back when the crawl resumed.
    listed: usize,
}

/// A capture whose URL has not come up.
#[derive(Debug)]
struct Waiting {
    /// Its very URL, hashed.
    url: Fingerprint,
    kept: Kept,
    /// The server of its URL, if it was known when captures were listed.
    server: Option<ServerId>,
}

/// URLs set aside at most to find those of captures behind them: they were under way or put off
/// when the crawl stopped.
const ASIDE_MAX: usize = 64;
/// URLs that wait here at most before more are taken off queues.
const QUEUE_MAX: usize = 1_000;
/// Units of work that looking at a URL takes.
const LOOK_UNITS: usize = 500;

impl Replays {
    /// A capture of the URL with this key and this hash, and its server, if that is known.
    pub(in crate::engine) fn add(
        &mut self,
        (key, url): (Fingerprint, Fingerprint),
        kept: Kept,
        server: Option<ServerId>,
    ) {
        let waiting = self.waiting.entry(key.0).or_default();
        // An index has those of one second in any order.
        let before = waiting.iter().rposition(|other| !kept.is_before(&other.kept));
        waiting.insert(before.map_or(0, |place| place + 1), Waiting { url, kept, server });
        self.waiting_len += 1;
    }

    /// The first capture of a very URL; of a page also that of another with its key.
    fn find(&mut self, key: Fingerprint, url: Fingerprint, is_page: bool) -> Option<Waiting> {
        let waiting = self.waiting.get_mut(&key.0)?;
        let own = waiting.iter().position(|other| other.url == url);
        let found = waiting.remove(own.or_else(|| is_page.then_some(0))?)?;
        if waiting.is_empty() {
            self.waiting.remove(&key.0);
        }
        self.waiting_len -= 1;
        Some(found)
    }

    /// All are listed: their servers are looked through.
    pub(in crate::engine) fn begin(&mut self) {
        self.listed = self.waiting_len;
        let mut servers: Map<ServerId, usize> = Map::default();
        for server in self.waiting.values().flatten().filter_map(|it| it.server) {
            *servers.entry(server).or_default() += 1;
        }
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_unstable();
        self.servers = servers.into();
    }

    /// Whether none is left.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are left.
    pub(in crate::engine) fn len(&self) -> usize {
        self.waiting_len + self.queue.len() + usize::from(self.reading.is_some())
    }

    /// How many were listed when the crawl resumed.
    pub(in crate::engine) fn listed(&self) -> usize {
        self.listed
    }

    /// Whether there is work to do for those whose URLs are known.
    pub(in crate::engine) fn is_active(&self) -> bool {
        self.reading.is_some() || !self.queue.is_empty() || !self.servers.is_empty()
    }

    /// Those whose URLs are in no queue.
    pub(in crate::engine) fn taken(&self) -> impl Iterator<Item = &Taken> {
        self.reading.iter().map(|reading| &reading.taken).chain(&self.queue)
    }

    /// Writes down all that are left, each as a frame.
    pub(in crate::engine) fn encode(&self, out: &mut Vec<u8>) {
        for ((key, url), kept, server) in self.left() {
            frame::push_with(KEPT, out, |out| {
                out.put_u64(key.0);
                out.put_u64(url.0);
                kept.encode(out);
                out.put_varint(server.map_or(0, |server| u64::from(server.0) + 1));
            });
        }
    }

    fn left(&self) -> impl Iterator<Item = ((Fingerprint, Fingerprint), &Kept, Option<ServerId>)> {
        let taken = self.taken().map(|taken| (taken.prints, &taken.kept, Some(taken.server)));
        let waiting = self.waiting.iter().flat_map(|(key, waiting)| {
            waiting.iter().map(|it| ((Fingerprint(*key), it.url), &it.kept, it.server))
        });
        taken.chain(waiting)
    }
}

impl Engine {
    /// A capture of this URL is to be read back: it must go into no queue then.
    pub(in crate::engine) fn take_kept(
        &mut self,
        server: ServerId,
        url: UrlRef<'_>,
        purpose: Purpose,
        item: impl FnOnce() -> Item,
    ) -> bool {
        if self.archive.replays.waiting.is_empty() {
            return false;
        }
        let (key, own) = (self.key_of(url), self.admission.hash(url.as_str().as_bytes()));
        let found = self.archive.replays.find(key, own, purpose == Purpose::Page);
        let Some(Waiting { url, kept, .. }) = found else { return false };
        let item = item();
        self.archive.replays.queue.push_back(Taken { server, item, prints: (key, url), kept });
        true
    }

    /// The same for the URL at the head of the queue of a server under visit, which leaves it.
    pub(in crate::engine) fn take_kept_head(&mut self, id: ServerId) -> bool {
        if self.archive.replays.waiting.is_empty() {
            return false;
        }
        let is_wanted = |item: &&Item| match item.purpose {
            Purpose::Page => true,
            Purpose::Robots(..) => false,
            Purpose::Hop(chain) => self.chains.has(chain),
        };
        let Some(item) = self.backlog.peek(id).filter(is_wanted).cloned() else {
            return false;
        };
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let is_kept = self.take_kept(id, url, item.purpose, || item.clone());
        if is_kept {
            self.backlog.take(id).expect("it was looked at");
        }
        is_kept
    }

    /// Replies of the archive that were read back since the crawl resumed, and how many there
    /// were; `None` if that is done.
    pub fn reread(&self) -> Option<(usize, usize)> {
        let (left, listed) = (self.archive.replays.len(), self.archive.replays.listed());
        self.archive.replays.is_active().then_some((listed.saturating_sub(left), listed))
    }

    /// Reads some of them back, as far as this turn's budget goes.
    pub(in crate::engine) fn work_replays(&mut self) {
        while self.archive.replays.is_active() && self.may_reread() {
            if self.archive.replays.reading.is_some() {
                self.read_some();
            } else if self.archive.replays.queue.len() < QUEUE_MAX
                && !self.archive.replays.servers.is_empty()
            {
                self.look_through_queue();
            } else if let Some(taken) = self.archive.replays.queue.pop_front() {
                let reading = Reading::new(taken, &self.settings.reply, self.storage.reads());
                self.archive.replays.reading = Some(Box::new(reading));
            }
        }
    }

    /// Whether anything may be read back now. A checkpoint that is wanted comes first: it waits
    /// until no page is at hand.
    pub(in crate::engine) fn may_reread(&self) -> bool {
        let is_over = self.wire.is_over() && self.archive.replays.reading.is_none();
        !self.is_stopping()
            && self.storage.is_usable()
            && !self.turn.is_spent(Work::Reread)
            && !self.turn.is_spent(Work::Redirects)
            && !is_over
            && self.pages.bytes() <= self.settings.turn_bytes_max
            && !self.checkpoints.as_ref().is_some_and(Checkpoints::is_wanted)
    }

    /// The crawl ends: what is being read back waits for the next run.
    pub(in crate::engine) fn stop_rereading(&mut self) {
        if let Some(reading) = self.archive.replays.reading.take() {
            let taken = reading.release(self.wire.pool());
            self.archive.replays.queue.push_front(taken);
        }
    }

    /// Takes URLs with captures off the queue of one server. Those that stand before them are set
    /// aside and put back.
    fn look_through_queue(&mut self) {
        let Some((id, mut left)) = self.archive.replays.servers.pop_front() else { return };
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
            // The next turn looks at those set aside again: this one must get past them.
            let is_spent = left < wanted && self.turn.is_spent(Work::Reread);
            if is_spent || self.archive.replays.queue.len() >= QUEUE_MAX {
                is_done = false;
                break;
            }
            self.turn.charge(Work::Reread, LOOK_UNITS);
            if self.take_kept_head(id) {
                left -= 1;
            } else {
                aside.extend(self.backlog.take(id));
            }
        }
        aside.into_iter().rev().for_each(|item| self.backlog.give_back(id, &item));
        self.backlog.hand_back(id, self.turn.at());
        if !is_done {
            self.archive.replays.servers.push_front((id, left));
        } else if is_behind {
            self.archive.replays.behind.push((id, left));
        }
    }

    /// URLs have come from the disk: queues whose next URL was there are looked through on.
    pub(in crate::engine) fn look_behind(&mut self) {
        let frontier = &self.backlog;
        let read = self.archive.replays.behind.extract_if(.., |(id, _)| frontier.has_next(*id));
        self.archive.replays.servers.extend(read);
    }

    /// Some more of the one that is being read.
    fn read_some(&mut self) {
        let Some(mut reading) = self.archive.replays.reading.take() else { return };
        let (units, done) = reading.step(self.storage.reads(), self.wire.pool());
        self.turn.charge(Work::Reread, units);
        match done {
            None => self.archive.replays.reading = Some(reading),
            Some(Ok((reply, outcome))) => self.replayed(*reading, reply, outcome),
            Some(Err(why)) => self.not_replayed(reading.taken, &why),
        }
    }

    /// Whoever has the page is asked after all.
    fn not_replayed(&mut self, taken: Taken, why: &str) {
        let Taken { server, item, .. } = taken;
        let url = self.backlog.origin(server).url_of(&item.target);
        log::warn!("{url} is fetched again: its record can't be read back: {why}");
        self.counts.cut("not-read-back", 1);
        self.log_not_replayed(server, &item, why);
        self.queue_item(server, &item);
    }
}
