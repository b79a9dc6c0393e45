//! Checkpoints: everything that the crawl knows at one instant, saved while it continues.
//!
//! This part of the engine owns the schedule and the progress of checkpoints; the stations encode
//! their own state. A checkpoint goes through four stages:
//!
//! 1. *Wanted*: a period has passed, or the crawl ends. Nothing happens until no page is half
//!    processed and no batch of the seen test is being merged.
//! 2. *Begun*: this is the instant. Every station gives its state; URLs in flight are saved as
//!    waiting. From now on, a server that is about to change is written first.
//! 3. *Written*: the servers are written to `state/snapshot-N`, some in each turn.
//! 4. *Published*: a job syncs all files of the state and replaces `state/checkpoint`. Then files
//!    that no checkpoint names are removed. Rules of robots.txt on disk are named as of this
//!    moment.
//!
//! ```text
//! state/snapshot-N   role Snapshot; frames in this order:
//!   1  counters of the crawl, JSON
//!   2  the seen test's own state       3  the frontier's own state
//!   7  a revival in progress           see engine::backlog::given_up
//!   10 the same of paused URLs
//!   6  what was learnt of qualities    see rating::inlinks, rating::opic
//!   11 pages counted for limits        see engine::admission::quotas
//!   9  a redirect that joined the scope   see engine::admission
//!   4  a capture not yet read back     key u64, hash of its URL u64, its place in the archive,
//!      the number of its server plus one, 0 if that is not known, and the keys u64 of the limits
//!      on pages that it counts for
//!   12 links that wait for their page's score   see engine::page::score
//!   13 what is known of the partitions of a shared crawl   see engine::cluster
//!   14 what waits to be published to them      see cluster::outbox
//!   15 known pages that are visited again     see engine::again
//!   8  a link to a target that a redirect chain requests   key u64, see engine::admission
//!   16 to 31  servers and their queues, see frontier
//!   5  a server's side table           see engine::site
//!   45 the rates of a server's pages   see engine::again
//!   46 URLs over their domain's budget, but for those on disk   see budgets
//!   47 domains and what links to them  see budgets::domains
//! ```
//!
//! Laws: a published checkpoint names only what is durable; a failed one changes nothing.
//! Cost: at most `SLICE_BYTES` written in a turn; one pass over the state in memory each period.

mod job;
pub(super) mod manifest;

pub use job::{StateDone, StateJob};

use super::Engine;
use super::backlog::{GIVEN_UP_FOLDER, Item, Purpose, SHELF_FOLDER};
use super::cluster::OUTBOX_FOLDER;
use super::contract::{Action, Job};
use super::robots::FOLDER as ROBOTS_FOLDER;
use crate::budgets::FOLDERS as BUDGETS_FOLDERS;
use crate::frontier::ServerId;
use crate::ground::codec::Put;
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, FORMAT, Mark, Role};
use crate::ground::tail::Tail;
use crate::ground::time::Instant;
use crate::recrawl::calendar::FOLDER as KNOWN_FOLDER;
use crate::url::Fingerprint;
use job::Task;
use manifest::{Manifest, digits_of};
use std::time::Duration;

/// The kind of the frame with the counters of the crawl. The head of this file lists all kinds of
/// frames in a snapshot. The frontier uses those from 16 on.
pub(super) const COUNTS: u8 = 1;
pub(super) const SEEN: u8 = 2;
pub(super) const FRONTIER: u8 = 3;
pub(super) const KEPT: u8 = 4;
pub(super) const SITE: u8 = 5;
pub(super) const RATING: u8 = 6;
pub(super) const GIVEN_UP: u8 = 7;
pub(super) const HELD: u8 = 8;
pub(super) const JOINED: u8 = 9;
pub(super) const SHELF: u8 = 10;
pub(super) const PAGES: u8 = 11;
pub(super) const SCORING: u8 = 12;
pub(super) const CLUSTER: u8 = 13;
pub(super) const OUTBOX: u8 = 14;
pub(super) const AGAIN: u8 = 15;
pub(super) const BUDGETS: u8 = 46;
pub(super) const DOMAINS: u8 = 47;

/// The number of bytes of what a node keeps that go into one frame: links that wait to be sent may
/// take more than a frame has room for. It is small, so that what simulated nodes keep takes
/// several, too.
const PART_BYTES: usize = 4 << 10;
/// The number of bytes of a snapshot after which a turn stops encoding more of it.
const SLICE_BYTES: usize = 256 << 10;
/// The number of encoded bytes from which they are appended to the snapshot file.
const PIECE_BYTES: usize = 1 << 20;

/// The schedule and progress of the checkpoints of a crawl that keeps its state.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    crawl: u64,
    key: [u8; 16],
    period: Duration,
    /// When the next checkpoint is due.
    next: Instant,
    /// Whether another checkpoint follows the one in progress at once.
    again: bool,
    stage: Stage,
    /// The number of the checkpoint that was begun last.
    number: u64,
    /// The name of the snapshot file of the published checkpoint.
    snapshot: Option<String>,
    /// Files of failed checkpoints, to be removed.
    stale: Vec<String>,
    /// When the checkpoint in progress is published, WARC files with serial numbers below this one
    /// may be closed: nothing in them is to be read back.
    releases: u32,
    /// Two counters as of the last checkpoint: replies read back from the archive, and requests
    /// sent.
    before: (u64, u64),
    /// The number of checkpoints in a row without a reply read back. A checkpoint before which no
    /// request was sent either is not counted.
    idle: u32,
}

/// The number of checkpoints in a row without a reply read back after which WARC files are no
/// longer kept open for that. A crawl that resumes reads from the archive the replies that are
/// newer than its checkpoint, each when its URL is about to be requested. If none was read for so
/// long, the URLs of the others are no longer queued. Checkpoints since which no request was sent
/// don't count.
const IDLE_MAX: u32 = 10;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    Wanted,
    Writing(Box<Writing>),
    /// The job that publishes the checkpoint is in progress.
    Publishing,
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    tail: Tail,
    /// The number of servers when the checkpoint began.
    sites: usize,
    next_site: usize,
    servers_done: bool,
    ended: bool,
    /// How many captures must be durable in the archive before the checkpoint is published.
    captures: u64,
    log_lines: u64,
}

impl Checkpoints {
    pub(super) fn new(crawl: u64, key: [u8; 16], period: Duration, now: Instant) -> Self {
        Self { crawl, key, period, next: now + period, ..Self::default() }
    }

    /// Changes the time between two checkpoints. The next one is not postponed.
    pub(super) fn set_period(&mut self, period: Duration, now: Instant) {
        self.period = period;
        self.next = self.next.min(now + period);
    }

    /// Takes over the number of the checkpoint that the crawl resumes from, so that later ones
    /// count on from it, and the name of its snapshot file, which is removed once the next is
    /// published.
    pub(super) fn resume_from(&mut self, found: &Manifest) {
        self.number = found.number;
        self.snapshot.clone_from(&found.snapshot);
    }

    /// Returns when a checkpoint has something to do; `None` if an event will wake it.
    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Idle => Some(self.next),
            // The rest of the snapshot is encoded in the next turn. After that, the archive's job
            // wakes the loop when the archive is durable.
            Stage::Writing(writing) if !writing.ended => Some(Instant::ZERO),
            Stage::Wanted | Stage::Writing(_) | Stage::Publishing => None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.stage, Stage::Wanted)
    }
}

impl Engine {
    /// Returns when a checkpoint has something to do. Returns `None` while the disk is full, or
    /// while the crawl ends, which starts the last checkpoint by itself.
    pub(super) fn checkpoint_deadline(&self) -> Option<Instant> {
        let own = self.checkpoints.as_ref()?;
        let idle = self.is_stopping() && own.is_idle();
        own.deadline().filter(|_| !self.storage.is_paused() && !idle)
    }

    /// Starts a checkpoint if one is due.
    pub(super) fn expire_checkpoint(&mut self) {
        let now = self.turn.at();
        let due = self.checkpoints.as_ref().filter(|own| own.is_idle() && own.next <= now);
        if due.is_some() && !self.is_stopping() && !self.storage.is_paused() {
            self.want_checkpoint();
        }
    }

    /// Makes a checkpoint due now. It begins in this turn, or after the one in progress.
    pub(super) fn want_checkpoint_soon(&mut self) {
        if let Some(own) = &mut self.checkpoints {
            own.next = self.turn.at();
            own.again = !own.is_idle();
        }
    }

    /// Makes a checkpoint due now, unless one is in progress.
    #[cfg(feature = "cluster")]
    pub(super) fn hasten_checkpoint(&mut self) {
        let now = self.turn.at();
        if let Some(own) = self.checkpoints.as_mut().filter(|own| own.is_idle()) {
            own.next = now;
        }
    }

    /// Starts a checkpoint as soon as it is possible.
    pub(super) fn want_checkpoint(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stage = Stage::Wanted;
            self.admission.seen_mut().hold(true);
        }
    }

    /// Returns whether reading from sockets must pause, because a wanted checkpoint waits until the
    /// pages in memory are processed.
    pub(super) fn is_draining(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(Checkpoints::is_wanted)
            && self.admission.seen().is_quiet()
            && (self.has_replies()
                || self.pages.lists().is_busy()
                || !self.archive.filing().is_empty())
    }

    /// Returns whether replies wait to be processed, for which only this turn's budget may be
    /// missing.
    pub(super) fn has_replies(&self) -> bool {
        !self.pages.is_empty() || !self.robots.is_idle()
    }

    /// Takes the next step of a checkpoint, if one is in progress.
    pub(super) fn work_checkpoint(&mut self) {
        if self.storage.is_paused() {
            return;
        }
        match self.checkpoints.as_ref().map(|own| &own.stage) {
            Some(Stage::Wanted)
                if !self.has_replies()
                    && !self.pages.lists().is_busy()
                    && self.archive.filing().is_empty()
                    && self.admission.seen().is_quiet() =>
            {
                self.begin_checkpoint();
            }
            Some(Stage::Writing(_)) => self.write_checkpoint(),
            _ => {}
        }
    }

    /// Begins a checkpoint, which saves the state of this instant.
    fn begin_checkpoint(&mut self) {
        self.log_waiting_pages();
        // Writing buffered bytes comes first because it can fail. After it, the stations only
        // report their state.
        if let Err(error) = self.flush_stations() {
            return self.on_disk_error(error);
        }
        let (flights, held) = (self.flights(), self.chains_held());
        self.backlog.begin_snapshot(flights, self.turn.now());
        let marks = match self.marks() {
            Ok(marks) => marks,
            Err(error) => return self.storage.fail(error),
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
            scope: self.admission.rescope().mark(),
            files: marks.iter().flat_map(|mark| mark.files.iter().cloned()).collect(),
        };
        let mut tail = Tail::new(name, 0);
        let out = &mut tail.pending;
        frame::push_opening(Role::Snapshot, checkpoints.crawl, out);
        let counts = serde_json::to_vec(&self.counts).expect("plain values");
        frame::push(COUNTS, &counts, out);
        let [seen, frontier, given_up, shelf, again, budgets, outbox] = &marks;
        frame::push(SEEN, &seen.state, out);
        frame::push(FRONTIER, &frontier.state, out);
        for (kind, mark) in [(GIVEN_UP, given_up), (SHELF, shelf)] {
            if !mark.state.is_empty() {
                frame::push(kind, &mark.state, out);
            }
        }
        push_in_parts(AGAIN, &again.state, out);
        push_in_parts(BUDGETS, &budgets.state, out);
        push_in_parts(OUTBOX, &outbox.state, out);
        self.push_parts(out);
        push_held(&held, out);
        self.set_stage(Stage::Writing(Box::new(Writing {
            manifest,
            tail,
            sites: self.sites.len(),
            next_site: 0,
            servers_done: false,
            ended: false,
            captures: totals.captures,
            log_lines: totals.log_lines,
        })));
        self.admission.seen_mut().hold(false);
    }

    /// Returns what the checkpoint keeps of the seen test, the frontier, given-up and paused URLs,
    /// known pages, URLs over a budget, and what waits to be sent to other nodes.
    fn marks(&mut self) -> Result<[Mark; 7], disk::Error> {
        let disk = self.storage.disk();
        let seen = self.admission.seen_mut().mark(disk)?;
        let frontier = self.backlog.mark(disk)?;
        let given_up = self.backlog.given_up_mut().mark(disk)?;
        let shelf = self.backlog.shelf_mut().mark(disk)?;
        let again = self.backlog.again_mut().map(|again| again.mark(disk)).transpose()?;
        let again = again.unwrap_or_default();
        let budgets = self.backlog.budgets_mut().map(|budgets| budgets.mark(disk)).transpose()?;
        let budgets = budgets.unwrap_or_default();
        let outbox = self.cluster.as_deref_mut().map(|own| own.mark(disk)).transpose()?;
        let outbox = outbox.unwrap_or_default();
        Ok([seen, frontier, given_up, shelf, again, budgets, outbox])
    }

    /// Writes the bytes that stations have buffered.
    fn flush_stations(&mut self) -> Result<(), disk::Error> {
        let disk = self.storage.disk();
        self.admission.seen_mut().write(disk)?;
        self.backlog.write(true, disk)?;
        self.backlog.write_segments(true, disk)?;
        self.cluster.as_deref_mut().map_or(Ok(()), |cluster| cluster.write(true, disk))
    }

    /// Encodes what parts of the engine know that are small enough to be saved at once.
    fn push_parts(&mut self, out: &mut Vec<u8>) {
        if let Some(cluster) = &self.cluster {
            let mut state = Vec::new();
            cluster.encode(&mut state);
            push_in_parts(CLUSTER, &state, out);
        }
        self.admission.rating().encode(&mut |piece| frame::push(RATING, piece, out));
        self.admission.quotas().encode(&mut |piece| frame::push(PAGES, piece, out));
        if let Some(budgets) = self.backlog.budgets() {
            budgets.encode_domains(&mut |piece| frame::push(DOMAINS, piece, out));
        }
        self.admission.seed_redirects().encode(&mut |piece| frame::push(JOINED, piece, out));
        self.archive.replays().encode(out);
        let (rating, scoring) = (self.admission.rating(), self.pages.scoring());
        scoring.encode(|page| rating.of_links(page), &mut |piece| frame::push(SCORING, piece, out));
    }

    /// Determines which WARC files may be closed when the checkpoint that begins now is published.
    fn note_releases(&mut self, serial: u32) {
        let (replayed, requests) = (self.counts.replayed, self.counts.requests);
        let own = self.checkpoints.as_mut().expect("one is wanted");
        let before = std::mem::replace(&mut own.before, (replayed, requests));
        own.idle = match (before.0 != replayed, before.1 != requests) {
            (true, _) => 0,
            (false, asked) => own.idle + u32::from(asked),
        };
        if !self.holds_files() {
            self.checkpoints.as_mut().expect("one is wanted").releases = serial;
        }
    }

    /// Returns whether WARC files must stay open, because replies in them are still to be read
    /// back.
    pub(super) fn holds_files(&self) -> bool {
        let idles = self.checkpoints.as_ref().is_none_or(|own| own.idle > IDLE_MAX)
            && self.backlog.budgets().is_none_or(|budgets| budgets.waiting() == 0);
        let waits = !self.archive.replays().is_empty() && !idles && !self.shutdown.is_exhausted();
        waits || self.archive.replays().is_active()
    }

    /// Returns the URLs being fetched, which are saved as waiting. Redirect chains are saved with
    /// their first URLs instead of their hops. A server's own robots.txt is left out, since it is
    /// requested again anyway.
    fn flights(&self) -> Vec<(ServerId, Item)> {
        let mut flights: Vec<_> = self.chains_waiting().collect();
        for slot in self.wire.conns().slots() {
            let conn = self.wire.conn(slot);
            if !conn.is_active() {
                continue;
            }
            let is_left_out = |item: &Item| match item.purpose {
                Purpose::Page | Purpose::Again => false,
                Purpose::Robots(of, redirects) => (of, redirects) == (conn.server, 0),
                Purpose::Hop(_) => true,
            };
            let items = conn.unsettled().map(|fetch| &fetch.item);
            let items = items.filter(|item| !is_left_out(item));
            flights.extend(items.map(|item| (conn.server, item.clone())));
        }
        // Hops are left out: their chain begins again from its first URL.
        let claimed = self.archive.replays().claimed();
        let claimed = claimed.filter(|it| !matches!(it.item.purpose, Purpose::Hop(_)));
        flights.extend(claimed.map(|it| (it.server, it.item.clone())));
        flights.extend(self.archive.filing().unfiled().iter().cloned());
        flights
    }

    /// Encodes and writes some more of the snapshot. Publishes the checkpoint when the snapshot is
    /// complete and the archive is durable.
    fn write_checkpoint(&mut self) {
        let Some(own) = &mut self.checkpoints else { return };
        let stage = std::mem::replace(&mut own.stage, Stage::Idle);
        let Stage::Writing(mut writing) = stage else { unreachable!("only then it is called") };
        self.write_some(&mut writing);
        let is_due = writing.tail.pending.len() >= PIECE_BYTES || writing.ended;
        if is_due && let Err(error) = writing.tail.flush(self.storage.disk(), 2 * PIECE_BYTES) {
            self.set_stage(Stage::Writing(writing));
            return self.on_disk_error(error);
        }
        if !writing.ended || !self.is_archive_durable(&writing) {
            return self.set_stage(Stage::Writing(writing));
        }
        // The side tables of servers name rules of robots.txt that were evicted to disk since the
        // checkpoint began.
        match self.robots.cache().mark(self.turn.at(), self.storage.disk()) {
            Ok(files) => {
                writing.manifest.files.extend(files);
                self.publish(*writing);
            }
            Err(error) => {
                self.set_stage(Stage::Writing(writing));
                self.on_disk_error(error);
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        self.checkpoints.as_mut().expect("it is in progress").stage = stage;
    }

    fn write_some(&mut self, writing: &mut Writing) {
        let out = &mut writing.tail.pending;
        let most = out.len() + SLICE_BYTES;
        if !writing.servers_done {
            writing.servers_done = self.backlog.snapshot_some(SLICE_BYTES, out);
            return;
        }
        while writing.next_site < writing.sites && out.len() < most {
            let site = self.sites.get(ServerId::from_index(writing.next_site));
            if site.needs_saving() {
                frame::push_with(SITE, out, |out| {
                    site.encode(writing.next_site, self.turn.now(), out)
                });
            }
            if let Some(again) = self.backlog.again() {
                again.encode_rates(ServerId::from_index(writing.next_site), out);
            }
            writing.next_site += 1;
        }
        writing.ended = writing.next_site == writing.sites;
    }

    /// Returns whether every outcome from before the checkpoint began is durable in the archive and
    /// the crawl log, which the checkpoint relies on. If not, starts a sync.
    fn is_archive_durable(&mut self, writing: &Writing) -> bool {
        let totals = self.archive.store().totals();
        let is_durable =
            totals.committed >= writing.captures && totals.log_synced >= writing.log_lines;
        if !is_durable && !self.archive.is_syncing() {
            self.sync_store();
        }
        is_durable
    }

    fn publish(&mut self, writing: Writing) {
        let Writing { mut manifest, tail, .. } = writing;
        manifest.files.push((tail.name().to_owned(), tail.len()));
        let files = manifest.files.iter().map(|(name, _)| name.clone()).collect();
        let task = Task::Publish(files, Box::new(manifest));
        self.set_stage(Stage::Publishing);
        let job = StateJob { disk: self.storage.disk_ref().handle(), task };
        self.turn.act(Action::Work(Job::State(job)));
    }

    /// Takes the result of a [`StateJob`].
    pub(super) fn state_worked(&mut self, done: StateDone) {
        if !done.published {
            if let Err(error) = done.result {
                // If files could not be removed, the next start of the crawl removes them.
                log::warn!("{error}");
            }
            return;
        }
        let Some(own) = &mut self.checkpoints else { return };
        own.stage = Stage::Idle;
        let wait = if std::mem::take(&mut own.again) { Duration::ZERO } else { own.period };
        own.next = self.turn.at() + wait;
        let name = format!("state/snapshot-{}", own.number);
        if let Err(error) = done.result {
            own.stale.push(name);
            own.next = self.turn.at();
            return self.on_disk_error(error);
        }
        let mut names = std::mem::take(&mut own.stale);
        names.extend(own.snapshot.replace(name));
        names.extend(self.admission.seen_mut().on_durable());
        names.extend(self.backlog.on_durable());
        names.extend(self.robots.cache().on_durable());
        names.extend(self.backlog.segments_on_durable());
        log::debug!("checkpoint {} is on disk", own.number);
        self.archive.store_mut().release(own.releases);
        self.counts.checkpoints += 1;
        if let Some(cluster) = &mut self.cluster {
            names.extend(cluster.checkpoint_is_durable(self.turn.at()));
        }
        if !names.is_empty() {
            let job =
                StateJob { disk: self.storage.disk_ref().handle(), task: Task::Remove(names) };
            self.turn.act(Action::Work(Job::State(job)));
        }
    }
}

/// Appends a state of any length to `out`, in as many frames as it takes.
fn push_in_parts(kind: u8, state: &[u8], out: &mut Vec<u8>) {
    state.chunks(PART_BYTES).for_each(|part| frame::push(kind, part, out));
}

/// Appends the links that redirect chains hold to `out`, each as a frame.
fn push_held(held: &[(Fingerprint, Vec<u8>)], out: &mut Vec<u8>) {
    for (key, entry) in held {
        frame::push_with(HELD, out, |out| {
            out.put_u64(key.0);
            out.extend_from_slice(entry);
        });
    }
}

/// Removes the files under `state/` that an earlier run left and the checkpoint doesn't name.
pub(super) fn remove_strays(found: &Manifest, disk: &mut dyn Disk) -> Result<(), disk::Error> {
    let kept = [ROBOTS_FOLDER, GIVEN_UP_FOLDER, SHELF_FOLDER, OUTBOX_FOLDER, KNOWN_FOLDER];
    let kept = kept.into_iter().chain(BUDGETS_FOLDERS);
    for folder in kept.chain(["state", "state/seen", "state/frontier"]) {
        for name in disk.list(folder)? {
            let path = format!("{folder}/{name}");
            if path != manifest::NAME && found.bytes_of(&path).is_none() {
                disk.remove(&path)?;
            }
        }
    }
    Ok(())
}
