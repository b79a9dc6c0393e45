//! What a checkpoint keeps of the frontier: servers here, their queues in [`queues::snapshot`].
//!
//! Servers are written in the order of their numbers, some in each turn; the frame of one that is
//! about to change is made before that. Servers that become known later are not part of it.
//!
//! ```text
//! kind 16, a server   number | its record (scheduler/record.rs)
//! state               servers | state of the queues, to the end
//! ```
//!
//! Law: what is restored is the frontier as it was at the moment of [`Frontier::begin_snapshot`],
//! whatever was done to it since (held to a naive model).
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

/// The kind of a server's frame.
const SERVER: u8 = 16;
/// The file that has the state of stations; damage in it is reported for that file.
const STATE_NAME: &str = "state/checkpoint";

/// A moment that is being written.
#[derive(Debug)]
pub(super) struct Snapshot {
    now: Now,
    /// Servers known at that moment.
    servers: usize,
    /// Clocks of hosts that were visited since, as they were.
    clocks: Map<GroupId, Instant>,
    /// The server to be written next.
    next: usize,
    /// Frames of servers behind it that were about to change.
    ahead: Map<ServerId, Vec<u8>>,
}

impl Frontier {
    /// Begins to write the state of this moment. URLs of `flights` are under way: they count as
    /// waiting. A snapshot that was not finished is given up.
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

    /// Appends frames to `out`, about `budget_bytes` beside those of queues that have changed;
    /// `true` when all are written.
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

    /// Whether a moment is being written.
    pub fn is_snapshotting(&self) -> bool {
        self.snapshot.is_some()
    }

    /// What is not one server's, as of the moment of the snapshot that is being written; brings all
    /// chunks to the disk.
    ///
    /// # Errors
    /// The disk's; this may be called again.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        called!(Mark);
        let Mark { state: of_queues, files } = self.queues.mark(disk)?;
        let snapshot = self.snapshot.as_ref().expect("a snapshot has begun");
        let mut state = Vec::new();
        state.put_varint(snapshot.servers as u64);
        state.extend_from_slice(&of_queues);
        Ok(Mark { state, files })
    }

    /// The last mark is durable: names of files that nothing needs any more, to be removed.
    pub fn on_durable(&mut self) -> Vec<String> {
        called!(Settled);
        self.queues.on_durable()
    }

    /// The record of a server is about to change.
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

    /// The clock of a server's host is about to change, which others of that host share.
    pub(super) fn keep_host_clock(&mut self, id: ServerId) {
        if let Some(snapshot) = &mut self.snapshot
            && let (Some(host), next) = self.scheduler.host_clock(id)
        {
            snapshot.clocks.entry(host).or_insert(next);
        }
    }

    /// A frontier to be filled by [`Frontier::restore_frame`], from the state of its mark, and the
    /// files that its checkpoint names, with their lengths.
    ///
    /// # Errors
    /// A state that can't be one, a segment that is too short, or the disk's.
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

    /// Takes in one frame. Between the first and [`Frontier::restored`] nothing but
    /// [`Frontier::server`] may be called.
    ///
    /// # Errors
    /// The frame can't belong to this snapshot. The frontier is of no use then.
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

    /// All frames were taken in: servers are ready or sleep. If the crawl was not stopped cleanly,
    /// every server waits its full rest first, and so does every server that becomes known until
    /// then: it may have been visited after the snapshot.
    ///
    /// # Errors
    /// Something is missing.
    pub fn restored(&mut self, was_clean: bool, now: Now) -> Result<(), Flaw> {
        if self.servers() != self.restoring {
            return Err(Flaw::Cut); // before memory is asked for so many queues
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
