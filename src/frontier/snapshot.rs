//! The frontier's part of a checkpoint: it writes and restores the servers, and
//! [`queues::snapshot`] does so for their queues.
//!
//! Servers are written in the order of their numbers, some in each turn. A server that is about to
//! change before its turn has come is copied into a frame first. Servers that become known after
//! the snapshot has begun are not part of it. The *mark* of a snapshot is the state that belongs to
//! no single server, with the names of the files that the checkpoint needs. The *clock* of a host
//! is the instant before which none of its servers is visited.
//!
//! ```text
//! kind 16, a server   number | its record (scheduler/record.rs)
//! state               servers | state of the queues, to the end
//! ```
//!
//! Law: what is restored is the frontier as it was when [`Frontier::begin_snapshot`] was called,
//! whatever changed since (tested against a naive model).
//!
//! [`queues::snapshot`]: super::queues

use super::queues::Queues;
use super::scheduler::{GroupId, Scheduler};
use super::{Frontier, Key, ServerId, ServerState, Settings, queues_of, waiting_in};
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Frame, Mark};
use crate::ground::map::Map;
use crate::ground::time::{Instant, Now};

/// The frame kind of the record of a server.
const SERVER: u8 = 16;
/// The file that holds the marks of all stations. Damage in the frontier's mark is reported with
/// this name.
const STATE_NAME: &str = "state/checkpoint";

/// A snapshot that is being written. It has the state of the moment at which it began.
#[derive(Debug)]
pub(super) struct Snapshot {
    now: Now,
    /// The number of servers known when the snapshot began.
    servers: usize,
    /// The clocks of hosts that were visited since the snapshot began, with the values that they
    /// had when it began.
    clocks: Map<GroupId, Instant>,
    /// The number of the server to be written next.
    next: usize,
    /// Frames of servers that are not written yet and have changed since the snapshot began.
    ahead: Map<ServerId, Vec<u8>>,
}

impl Frontier {
    /// Begins a snapshot of the frontier as it is now. `flights` are the URLs that were taken and
    /// whose fetch has not ended; the snapshot stores them as waiting. An unfinished earlier
    /// snapshot is abandoned.
    pub fn begin_snapshot(&mut self, flights: Vec<(ServerId, Key, Vec<u8>)>, now: Now) {
        called!(BeginSnapshot);
        let servers = self.servers();
        let flights = flights.into_iter().map(|(id, key, payload)| (id.0, key, payload));
        self.queues.begin_snapshot(flights.collect());
        self.snapshot = Some(Box::new(Snapshot {
            now,
            servers,
            clocks: Map::default(),
            next: 0,
            ahead: Map::default(),
        }));
    }

    /// Appends frames of the snapshot to `out`, about `budget_bytes` bytes. Frames of queues that
    /// have changed since the snapshot began come in addition. Returns `true` when all frames are
    /// written.
    pub fn snapshot_some(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        called!(SnapshotSome);
        let enough = out.len() + budget_bytes;
        if let Some(snapshot) = &mut self.snapshot {
            while out.len() < enough && snapshot.next < snapshot.servers {
                let id = ServerId::from_index(snapshot.next);
                match snapshot.ahead.remove(&id) {
                    Some(frame) => out.extend_from_slice(&frame),
                    None => snapshot.write(id, &self.scheduler, out),
                }
                snapshot.next += 1;
            }
        }
        if out.len() >= enough {
            return false;
        }
        let is_done = self.queues.snapshot_some(enough - out.len(), out);
        if is_done {
            self.snapshot = None;
        }
        is_done
    }

    /// Returns whether a snapshot is being written.
    pub fn is_snapshotting(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Returns the part of the state that belongs to no single server, as of the moment when the
    /// present snapshot began. Writes all chunks of URLs to disk.
    ///
    /// # Errors
    /// The error of the disk. The call may be repeated.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        called!(Mark);
        let Mark { state: of_queues, files } = self.queues.mark(disk)?;
        let snapshot = self.snapshot.as_ref().expect("a snapshot has begun");
        let mut state = Vec::new();
        state.put_varint(snapshot.servers as u64);
        state.extend_from_slice(&of_queues);
        Ok(Mark { state, files })
    }

    /// Records that the checkpoint with the last mark is durable. Returns the names of files that
    /// nothing needs any more, which the caller should remove.
    pub fn on_durable(&mut self) -> Vec<String> {
        called!(Settled);
        self.queues.on_durable()
    }

    /// Copies the record of a server into a frame, unless the snapshot has the record already. It
    /// must be called before the record changes.
    pub(super) fn copy_before_change(&mut self, id: ServerId) {
        if let Some(snapshot) = &mut self.snapshot
            && (snapshot.next..snapshot.servers).contains(&id.index())
            && !snapshot.ahead.contains_key(&id)
        {
            let mut frame = Vec::new();
            snapshot.write(id, &self.scheduler, &mut frame);
            snapshot.ahead.insert(id, frame);
        }
    }

    /// Keeps the clock of a server's host for the snapshot. It must be called before the clock
    /// changes, since all servers of the host share it.
    pub(super) fn keep_host_clock(&mut self, id: ServerId) {
        if let Some(snapshot) = &mut self.snapshot
            && let (Some(host), next) = self.scheduler.host_clock(id)
        {
            snapshot.clocks.entry(host).or_insert(next);
        }
    }

    /// Creates a frontier from `state`, the state in the frontier's mark, and from the files that
    /// its checkpoint names, with their lengths in bytes. [`Frontier::restore_frame`] then adds the
    /// servers and queues.
    ///
    /// # Errors
    /// The state is not valid, a segment is shorter than its length in the checkpoint, or the disk
    /// failed.
    pub fn restore(
        settings: Settings,
        state: &[u8],
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<Self, frame::Error> {
        let damage = |flaw| Damage { name: STATE_NAME.to_owned(), offset: 0, flaw };
        let mut take = Take::new(state);
        let servers: u32 = take.number().map_err(|short| damage(Flaw::from(short)))?;
        let mut queues = Queues::restore(queues_of(&settings), take.rest()).map_err(damage)?;
        queues.restore_files(files, disk)?;
        Ok(Self { queues, restoring: servers as usize, ..Self::new(settings) })
    }

    /// Restores the server or queue in one frame. Between the first frame and
    /// [`Frontier::restored`] only [`Scheduler::server`] may be called.
    ///
    /// # Errors
    /// The frame can't belong to this snapshot. In that case the frontier must not be used any
    /// more.
    pub fn restore_frame(&mut self, frame: &Frame<'_>, now: Now) -> Result<(), Flaw> {
        if frame.kind != SERVER {
            return self.queues.restore_frame(frame.kind, frame.payload);
        }
        let mut take = Take::new(frame.payload);
        let (number, next) = (take.number::<usize>()?, self.servers());
        if number != next || number >= self.restoring {
            return Err(Flaw::Senseless);
        }
        self.scheduler.restore_record(&mut take, now)?;
        if take.is_empty() { Ok(()) } else { Err(Flaw::Senseless) }
    }

    /// Completes a restore after the last frame. Servers with URLs become ready, or sleep until
    /// they are due. If the crawl was not stopped cleanly (`was_clean` is false), every server
    /// waits its full rest first, since it may have been visited after the snapshot. Servers that
    /// become known during that time wait for its end, too.
    ///
    /// # Errors
    /// The snapshot lacks a server or a queue.
    pub fn restored(&mut self, was_clean: bool, now: Now) -> Result<(), Flaw> {
        if self.servers() != self.restoring {
            return Err(Flaw::Cut); // checked before so many queues are allocated
        }
        self.queues.restored(self.restoring).map_err(|_| Flaw::Cut)?;
        let queues = &self.queues;
        self.scheduler
            .restored(self.restoring, was_clean, now, |id| waiting_in(queues, id))
            .map_err(|_| Flaw::Cut)?;
        for id in (0..self.restoring).map(ServerId::from_index) {
            if let ServerState::Retired(_) = self.server(id).state() {
                self.queues.set_counted(id.0, usize::MAX);
                if self.queue_len(id) > 0 {
                    self.given_up.push_back(id);
                }
                continue;
            }
            self.queues.set_counted(id.0, self.scheduler.counted(id));
            if self.queue_len(id) > 0 {
                self.scheduler.set_waiting(id, self.waiting(id), now.at);
            }
        }
        self.follow_changes(now.at);
        Ok(())
    }
}

impl Snapshot {
    fn write(&self, id: ServerId, scheduler: &Scheduler, out: &mut Vec<u8>) {
        let (host, next) = scheduler.host_clock(id);
        let kept = host.and_then(|host| self.clocks.get(&host).copied());
        frame::push_with(SERVER, out, |out| {
            out.put_varint(id.index() as u64);
            scheduler.put_record(id, kept.unwrap_or(next), self.now, out);
        });
    }
}
