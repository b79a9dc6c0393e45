//! Checkpoints: what the crawl knows at one instant, written down while it goes on.
//!
//! 1. *Wanted*: a period is over, or the crawl ends. Nothing happens until no page is half-way and
//!    no batch of the seen test is being merged.
//! 2. *The instant*: every station says what its state consists of; URLs under way count as
//!    waiting. From here on a server that is about to change is written first.
//! 3. *Written*: servers, some in each turn, to `state/snapshot-N`.
//! 4. *Published*: a job syncs all files of the state and replaces `state/checkpoint`. Then what
//!    no checkpoint names any more is removed. Rules on disk are named as of this moment.
//!
//! ```text
//! state/snapshot-N   role Snapshot; frames in this order:
//!   1  counters of the crawl, JSON
//!   2  the seen test's own state       3  the frontier's own state
//!   4  a capture not yet read back     key u64, hash of its URL u64, its places in the archive,
//!      and the number of its server and 1, 0 if that wasn't known
//!   5  a server's side table           see engine::site
//!   7  a revival under way             see engine::backlog::given_up
//!   6  what was learnt of qualities    see rating::inlinks, rating::opic
//!   8  a link to a target that a redirect chain asks for   key u64, see engine::admission
//!   9  what joined the scope           see engine::admission
//!   16 to 31  servers and their queues, see frontier
//! ```
//!
//! Laws: a checkpoint that counts names only what is durable; a failed one changes nothing.
//! Cost: a turn writes `SLICE_BYTES` at most; one pass over what is in memory each period.

mod job;
pub(super) mod manifest;

pub use job::{StateDone, StateJob};

use super::Engine;
use super::backlog::{Item, Purpose};
use super::contract::{Action, Job};
use crate::frontier::ServerId;
use crate::ground::codec::Put;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, FORMAT, Role};
use crate::ground::tail::Tail;
use crate::ground::time::Instant;
use crate::url::Fingerprint;
use job::Task;
use manifest::{Manifest, digits_of};
use std::time::Duration;

/// Kinds of frames in a snapshot; the frontier has its own from 16 on.
pub(super) const COUNTS: u8 = 1;
pub(super) const SEEN: u8 = 2;
pub(super) const FRONTIER: u8 = 3;
pub(super) const KEPT: u8 = 4;
pub(super) const SITE: u8 = 5;
pub(super) const RATING: u8 = 6;
pub(super) const GIVEN_UP: u8 = 7;
pub(super) const HELD: u8 = 8;
pub(super) const JOINED: u8 = 9;

/// Bytes of a snapshot that one turn makes.
const SLICE_BYTES: usize = 256 << 10;
/// Bytes that are handed to the disk at once.
const PIECE_BYTES: usize = 1 << 20;

/// The checkpoints of a crawl that keeps its state.
#[derive(Debug)]
pub(super) struct Checkpoints {
    crawl: u64,
    key: [u8; 16],
    period: Duration,
    /// When the next one is wanted.
    next: Instant,
    stage: Stage,
    /// Of the last one tried.
    number: u64,
    /// The snapshot that counts.
    snapshot: Option<String>,
    /// Files of failed ones.
    stale: Vec<String>,
    /// WARC files before this one need no reading back, once the checkpoint under way counts.
    releases: u32,
    /// At the checkpoint before: replies that had been read back, and requests that had been sent.
    before: (u64, u64),
    /// Checkpoints since a reply was read back, without those between which nothing was asked.
    idle: u32,
}

/// Replies that nobody has asked for in so many checkpoints don't keep files open any more. While
/// all servers rest, or cannot be reached, nobody could.
const IDLE_MAX: u32 = 10;

#[derive(Debug)]
enum Stage {
    Resting,
    Wanted,
    Writing(Box<Writing>),
    /// The job that makes it count is under way.
    Publishing,
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    tail: Tail,
    /// Servers that had a side table at its instant, and the next to be written.
    sites: usize,
    next_site: usize,
    servers_done: bool,
    ended: bool,
    /// What the archive must have made durable first.
    captures: u64,
    log_lines: u64,
}

impl Checkpoints {
    pub(super) fn new(crawl: u64, key: [u8; 16], period: Duration, now: Instant) -> Self {
        Self {
            crawl,
            key,
            period,
            next: now + period,
            stage: Stage::Resting,
            number: 0,
            snapshot: None,
            stale: Vec::new(),
            releases: 0,
            before: (0, 0),
            idle: 0,
        }
    }

    /// Goes on from the one that was found.
    pub(super) fn go_on(&mut self, found: &Manifest) {
        self.number = found.number;
        self.snapshot.clone_from(&found.snapshot);
    }

    /// When there is something to be done for it.
    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Resting => Some(self.next),
            // The rest of it, in the next turn; but the archive says when it is durable.
            Stage::Writing(writing) if !writing.ended => Some(Instant::ZERO),
            Stage::Wanted | Stage::Writing(_) | Stage::Publishing => None,
        }
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.stage, Stage::Resting)
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.stage, Stage::Wanted)
    }
}

impl Engine {
    /// When a checkpoint wants to be gone on with; nothing while the disk is full or the crawl
    /// ends, which begins its last one by itself.
    pub(super) fn checkpoint_deadline(&self) -> Option<Instant> {
        let own = self.checkpoints.as_ref()?;
        let idle = self.is_stopping() && own.is_resting();
        own.deadline().filter(|_| !self.storage.is_paused() && !idle)
    }

    /// A period may be over.
    pub(super) fn expire_checkpoint(&mut self) {
        let now = self.turn.at();
        let is_crawling = !self.is_stopping() && !self.storage.is_paused();
        if is_crawling
            && self.checkpoints.as_ref().is_some_and(|own| own.is_resting() && own.next <= now)
        {
            self.want_checkpoint();
        }
    }

    /// A checkpoint is to be made as soon as there is a moment for it.
    pub(super) fn want_checkpoint(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stage = Stage::Wanted;
            self.admission.seen_mut().hold(true);
        }
    }

    /// Whether bytes must wait so that the pages at hand can be worked off.
    pub(super) fn is_clearing(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(Checkpoints::is_wanted)
            && self.admission.seen().is_quiet()
            && self.has_replies()
    }

    /// Whether replies wait for their lines in the crawl log.
    pub(super) fn has_replies(&self) -> bool {
        !self.pages.is_empty() || !self.robots.is_idle()
    }

    /// The next step of a checkpoint, if one is under way.
    pub(super) fn work_checkpoint(&mut self) {
        if self.storage.is_paused() {
            return;
        }
        match self.checkpoints.as_ref().map(|own| &own.stage) {
            Some(Stage::Wanted) if !self.has_replies() && self.admission.seen().is_quiet() => {
                self.begin_checkpoint();
            }
            Some(Stage::Writing(_)) => self.write_checkpoint(),
            _ => {}
        }
    }

    /// The instant that the checkpoint is of.
    fn begin_checkpoint(&mut self) {
        // What can fail comes first: after it the stations only say what is so.
        let disk = self.storage.disk();
        let flushed =
            self.admission.seen_mut().write(disk).and_then(|()| self.backlog.write(true, disk));
        let flushed = flushed.and_then(|()| self.backlog.given_up_mut().write(true, disk));
        if let Err(error) = flushed {
            return self.on_disk_error(error);
        }
        let (flights, held) = (self.flights(), self.chains_held());
        let disk = self.storage.disk();
        self.backlog.begin_snapshot(flights, self.turn.now());
        let marks = self.admission.seen_mut().mark(disk).and_then(|seen| {
            Ok((seen, self.backlog.mark(disk)?, self.backlog.given_up_mut().mark(disk)?))
        });
        let (seen, frontier, given_up) = match marks {
            Ok(marks) => marks,
            Err(error) => {
                self.storage.fails(error);
                return;
            }
        };
        let archive = self.archive.store().position();
        let totals = self.archive.store().totals();
        self.note_releases(archive.serial);
        let checkpoints = self.checkpoints.as_mut().expect("one is wanted");
        checkpoints.number += 1;
        let name = format!("state/snapshot-{}", checkpoints.number);
        let manifest = Manifest {
            format: FORMAT,
            number: checkpoints.number,
            written: self.turn.unix().civil().to_seconds(),
            clean: self.shutdown.is_closing(),
            finished: self.shutdown.is_exhausted(),
            rebuilt: false,
            key: digits_of(checkpoints.key),
            archive_serial: archive.serial,
            archive_offset: archive.offset,
            snapshot: Some(name.clone()),
            scope: self.admission.scope_mark(),
            files: [seen.files, frontier.files, given_up.files].concat(),
        };
        let mut tail = Tail::new(name, 0);
        let out = &mut tail.pending;
        frame::push_opening(Role::Snapshot, checkpoints.crawl, out);
        let counts = serde_json::to_vec(&self.counts).expect("plain values");
        frame::push(COUNTS, &counts, out);
        frame::push(SEEN, &seen.state, out);
        frame::push(FRONTIER, &frontier.state, out);
        if !given_up.state.is_empty() {
            frame::push(GIVEN_UP, &given_up.state, out);
        }
        self.admission.rating().encode(&mut |piece| frame::push(RATING, piece, out));
        self.admission.seeding().encode(&mut |piece| frame::push(JOINED, piece, out));
        self.archive.replays().encode(out);
        push_held(&held, out);
        checkpoints.stage = Stage::Writing(Box::new(Writing {
            manifest,
            tail,
            sites: self.sites.len(),
            next_site: 0,
            servers_done: false,
            ended: false,
            captures: totals.captures,
            log_lines: totals.log_lines,
        }));
        self.admission.seen_mut().hold(false);
    }

    /// Which files of the archive may be closed once the checkpoint counts that is of a moment in
    /// this one.
    fn note_releases(&mut self, serial: u32) {
        let (replayed, requests) = (self.counts.replayed, self.counts.requests);
        let own = self.checkpoints.as_mut().expect("one is wanted");
        let before = std::mem::replace(&mut own.before, (replayed, requests));
        own.idle = match (before.0 != replayed, before.1 != requests) {
            (true, _) => 0,
            (false, asked) => own.idle + u32::from(asked),
        };
        if !self.holds_files()
            && let Some(own) = &mut self.checkpoints
        {
            own.releases = serial;
        }
    }

    /// Whether files of the archive must keep their names because what they hold is still to be
    /// read back.
    pub(super) fn holds_files(&self) -> bool {
        let idles = self.checkpoints.as_ref().is_none_or(|own| own.idle > IDLE_MAX);
        let waits = !self.archive.replays().is_empty() && !idles && !self.shutdown.is_exhausted();
        waits || self.archive.replays().is_active()
    }

    /// URLs under way: they count as waiting, and so do those that redirect chains began with, in
    /// place of their hops. robots.txt of a server is asked for again anyway.
    fn flights(&self) -> Vec<(ServerId, Item)> {
        let mut flights: Vec<_> = self.chains_waiting().collect();
        for slot in self.wire.conns().slots() {
            let conn = self.wire.conn(slot);
            if !conn.is_active() {
                continue;
            }
            let is_left_out = |item: &Item| match item.purpose {
                Purpose::Page => false,
                Purpose::Robots(of, redirects) => (of, redirects) == (conn.server, 0),
                Purpose::Hop(_) => true,
            };
            let items = conn.unsettled().map(|fetch| &fetch.item);
            let items = items.filter(|item| !is_left_out(item));
            flights.extend(items.map(|item| (conn.server, item.clone())));
        }
        let taken = self.archive.replays().taken().filter(|taken| !is_hop(&taken.item));
        flights.extend(taken.map(|taken| (taken.server, taken.item.clone())));
        flights
    }

    /// Some more of the snapshot; then the job that makes it count.
    fn write_checkpoint(&mut self) {
        let Some(own) = &mut self.checkpoints else { return };
        let stage = std::mem::replace(&mut own.stage, Stage::Resting);
        let Stage::Writing(mut writing) = stage else { unreachable!("only then it is called") };
        self.push_some(&mut writing);
        let is_due = writing.tail.pending.len() >= PIECE_BYTES || writing.ended;
        if is_due && let Err(error) = writing.tail.flush(self.storage.disk(), 2 * PIECE_BYTES) {
            self.put_stage(Stage::Writing(writing));
            return self.on_disk_error(error);
        }
        if !writing.ended || !self.is_archive_durable(&writing) {
            return self.put_stage(Stage::Writing(writing));
        }
        // Side tables say where rules lie that were shelved since the instant.
        match self.robots.cache().mark(self.turn.at(), self.storage.disk()) {
            Ok(files) => {
                writing.manifest.files.extend(files);
                self.publish(*writing);
            }
            Err(error) => {
                self.put_stage(Stage::Writing(writing));
                self.on_disk_error(error);
            }
        }
    }

    fn put_stage(&mut self, stage: Stage) {
        self.checkpoints.as_mut().expect("it is under way").stage = stage;
    }

    fn push_some(&mut self, writing: &mut Writing) {
        let out = &mut writing.tail.pending;
        let most = out.len() + SLICE_BYTES;
        if !writing.servers_done {
            writing.servers_done = self.backlog.snapshot_some(SLICE_BYTES, out);
            return;
        }
        while writing.next_site < writing.sites && out.len() < most {
            let site = self.sites.look(ServerId::from_index(writing.next_site));
            if site.is_worth_keeping() {
                frame::push_with(SITE, out, |out| {
                    site.encode(writing.next_site, self.turn.now(), out)
                });
            }
            writing.next_site += 1;
        }
        writing.ended = writing.next_site == writing.sites;
    }

    /// What was settled before the instant must be durable before the checkpoint that counts it as
    /// settled. Sees to it that it will be.
    fn is_archive_durable(&mut self, writing: &Writing) -> bool {
        let totals = self.archive.store().totals();
        let is_durable =
            totals.committed >= writing.captures && totals.log_synced >= writing.log_lines;
        if !is_durable && !self.archive.is_syncing() {
            self.sync_store_now();
        }
        is_durable
    }

    fn publish(&mut self, writing: Writing) {
        let Writing { mut manifest, tail, .. } = writing;
        manifest.files.push((tail.name().to_owned(), tail.len()));
        let files = manifest.files.iter().map(|(name, _)| name.clone()).collect();
        let task = Task::Publish(files, Box::new(manifest));
        self.put_stage(Stage::Publishing);
        let job = StateJob { disk: self.storage.reads().handle(), task };
        self.turn.act(Action::Work(Job::State(job)));
    }

    /// A job of the checkpoints is done.
    pub(super) fn state_worked(&mut self, done: StateDone) {
        if !done.published {
            if let Err(error) = done.result {
                // The next start removes what this one could not.
                log::warn!("{error}");
            }
            return;
        }
        let Some(own) = &mut self.checkpoints else { return };
        own.stage = Stage::Resting;
        own.next = self.turn.at() + own.period;
        let name = format!("state/snapshot-{}", own.number);
        if let Err(error) = done.result {
            own.stale.push(name);
            own.next = self.turn.at();
            return self.on_disk_error(error);
        }
        let mut names = std::mem::take(&mut own.stale);
        names.extend(own.snapshot.replace(name));
        names.extend(self.admission.seen_mut().settled());
        names.extend(self.backlog.settled());
        names.extend(self.robots.cache().settled());
        names.extend(self.backlog.given_up_mut().settled());
        log::debug!("checkpoint {} is on disk", own.number);
        self.archive.store_mut().release(own.releases);
        self.counts.checkpoints += 1;
        if !names.is_empty() {
            let job = StateJob { disk: self.storage.reads().handle(), task: Task::Remove(names) };
            self.turn.act(Action::Work(Job::State(job)));
        }
    }
}

/// A chain begins again from its first URL.
fn is_hop(item: &Item) -> bool {
    matches!(item.purpose, Purpose::Hop(_))
}

/// Frames of links to targets that redirect chains ask for.
fn push_held(held: &[(Fingerprint, Vec<u8>)], out: &mut Vec<u8>) {
    for (key, entry) in held {
        frame::push_with(HELD, out, |out| {
            out.put_u64(key.0);
            out.extend_from_slice(entry);
        });
    }
}

/// Removes what a run before this one left under `state/` and the checkpoint doesn't name.
pub(super) fn remove_strays(
    found: &Manifest,
    disk: &mut dyn Disk,
) -> Result<(), crate::ground::disk::Error> {
    for folder in [
        "state",
        "state/seen",
        "state/frontier",
        super::robots::FOLDER,
        super::backlog::GIVEN_UP_FOLDER,
    ] {
        for name in disk.list(folder)? {
            let path = format!("{folder}/{name}");
            if path != manifest::NAME && found.bytes_of(&path).is_none() {
                disk.remove(&path)?;
            }
        }
    }
    Ok(())
}
