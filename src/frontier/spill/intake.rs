//! What a job has read comes into the queues, some in each turn.
//!
//! While a disk is slow many servers come to wait, and the next job reads for them all: a MiB is
//! some thirty thousand URLs, which all at once would keep the loop for tens of milliseconds.
//!
//! Laws: whatever was read is taken in once, in the order in which it was asked for, and the next
//! job is handed out after that; what is damaged ends it. Cost: one turn takes in what
//! [`BYTES_MAX`] and [`SERVERS_MAX`] say, and the rest of one server's.

use super::super::Frontier;
use super::super::ahead::AHEAD;
use super::super::server::ServerId;
use super::Spill;
use super::job::{FrontierDone, Read, Reads, Work};
use crate::frame::{self, Damage};
use crate::time::Instant;

/// Bytes of chunks, and servers, that are taken in in one turn.
const BYTES_MAX: usize = if cfg!(test) { 300 } else { 32 << 10 };
const SERVERS_MAX: usize = if cfg!(test) { 3 } else { 64 };

/// What a job has read, and how much of it has been taken in.
#[derive(Debug)]
pub(super) struct Intake {
    work: Work,
    /// Reads.
    taken: usize,
}

impl Frontier {
    /// A job is done: [`Frontier::take_in`] is to follow, once in each turn until nothing is left.
    ///
    /// # Errors
    /// What the disk says. The URLs are where they were.
    pub fn worked(&mut self, done: FrontierDone) -> Result<(), frame::Error> {
        called!(Worked);
        let spill = self.spill.as_mut().expect("the job was ours");
        spill.disk = Some(done.disk);
        match done.result {
            Ok(()) => spill.intake = Some(Intake { work: done.work, taken: 0 }),
            Err(error) => {
                spill.is_working = false;
                match done.work {
                    Work::Back(reads) => spill.wanted.extend(ids_of(&reads.reads)),
                    Work::Merge(reads) => spill.merging.extend(ids_of(&reads.reads)),
                    Work::Sweep { .. } => {}
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Whether something that was read is to be taken in.
    pub fn has_read(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.intake.is_some())
    }

    /// Takes in some of what a job has read.
    ///
    /// # Errors
    /// What is wrong with a segment. The URLs are where they were.
    pub fn take_in(&mut self, now: Instant) -> Result<(), frame::Error> {
        called!(TakeIn(now));
        let intake = self.spill.as_mut().and_then(|spill| spill.intake.take());
        let Some(mut intake) = intake else { return Ok(()) };
        self.expire(now);
        let result = self.take_some(&mut intake, now);
        let spill = self.spill.as_mut().expect("as above");
        if result.is_ok() && !intake.is_over() {
            spill.intake = Some(intake);
        } else {
            spill.end_intake(intake);
        }
        self.pass_hand(now);
        Ok(result?)
    }

    fn take_some(&mut self, intake: &mut Intake, now: Instant) -> Result<(), Damage> {
        let Intake { work, taken } = intake;
        match work {
            Work::Back(Reads { reads, bytes, .. }) => {
                self.each_server(reads, taken, |frontier, reads| {
                    frontier.take_back(reads, bytes, now)?;
                    frontier.relieve();
                    Ok(())
                })
            }
            Work::Merge(Reads { reads, bytes, .. }) => {
                self.each_server(reads, taken, |frontier, reads| frontier.merged(reads, bytes, now))
            }
            Work::Sweep { segment, offset, bytes } => self.swept(*segment, *offset, bytes),
        }
    }

    /// Does something with the reads of each server from those that were `taken` on, until that is
    /// enough for a turn.
    fn each_server(
        &mut self,
        reads: &[Read],
        taken: &mut usize,
        mut what: impl FnMut(&mut Self, &[Read]) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let next: Vec<&[Read]> = by_server(&reads[*taken..]).take(SERVERS_MAX + AHEAD).collect();
        let mut left = BYTES_MAX;
        for (place, reads) in next.iter().enumerate().take(SERVERS_MAX) {
            self.look_ahead(place, |later| Some(next.get(place + later)?[0].id));
            what(self, reads)?;
            *taken += reads.len();
            left = left.saturating_sub(reads.iter().map(|read| read.place.bytes()).sum());
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Intake {
    fn is_over(&self) -> bool {
        match &self.work {
            Work::Back(Reads { reads, .. }) | Work::Merge(Reads { reads, .. }) => {
                self.taken == reads.len()
            }
            Work::Sweep { .. } => true,
        }
    }
}

impl Spill {
    fn end_intake(&mut self, intake: Intake) {
        self.is_working = false;
        if let Work::Back(reads) | Work::Merge(reads) = intake.work {
            self.spare = reads.bytes;
        }
    }
}

/// Chunks of one server each.
fn by_server(reads: &[Read]) -> impl Iterator<Item = &[Read]> {
    reads.chunk_by(|one, next| one.id == next.id)
}

/// Whose chunks these are.
fn ids_of(reads: &[Read]) -> Vec<ServerId> {
    let mut ids: Vec<ServerId> = reads.iter().map(|read| read.id).collect();
    ids.dedup();
    ids
}
