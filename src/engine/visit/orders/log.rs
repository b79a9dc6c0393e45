//! The log of orders, `commands.log` in the job directory: one JSON object a line, with the number
//! of the order, when it was given, by whom, and the command.
//!
//! ```text
//! {"number":1,"at":"2026-11-26T09:38:49Z","by":"root","verb":"pause","target":"host:a.test"}
//! ```
//!
//! Laws: an order that is in force has a line, or its line could not be written and the order was
//! refused. A torn last line, as a crash leaves it, is cut off; any other line that can't be read
//! is an error.
//! Cost: one append for each order, and a sync by a job.

use crate::engine::command::Order;
use crate::ground::disk::{self, Disk};
use crate::ground::tail::Tail;
use crate::ground::time::UnixTime;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of the file, relative to the job directory.
const NAME: &str = "commands.log";

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine) struct Logged {
    /// The number of the order, counted from 1 over all runs.
    pub(in crate::engine) number: u64,
    /// When the order was given, in UTC.
    at: String,
    #[serde(flatten)]
    pub(in crate::engine) order: Order,
}

/// The log of one run.
#[derive(Debug)]
pub(in crate::engine) struct Log {
    tail: Tail,
    /// The number of the last order.
    number: u64,
    /// The number of the last order whose line is durable.
    durable: u64,
    /// The number that the running job makes durable; `None` without a job.
    syncing: Option<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { tail: Tail::new(NAME.to_owned(), 0), number: 0, durable: 0, syncing: None }
    }
}

/// A job that syncs the log to disk, which the world runs on a side thread.
pub struct CommandsJob {
    disk: Box<dyn Disk>,
}

/// The result of a [`CommandsJob`].
#[derive(Debug)]
pub struct CommandsDone(Result<(), disk::Error>);

impl fmt::Debug for CommandsJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandsJob").finish_non_exhaustive()
    }
}

impl CommandsJob {
    /// Runs the job. It blocks until the disk is done.
    pub fn run(mut self) -> CommandsDone {
        CommandsDone(self.disk.sync(NAME))
    }
}

/// Why the log of an earlier run can't be read.
#[derive(Debug)]
pub enum BadLog {
    /// The disk reports an error.
    Disk(disk::Error),
    /// A line is no order: its number, counted from 1, and what is wrong.
    Line(usize, String),
}

impl From<disk::Error> for BadLog {
    fn from(error: disk::Error) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for BadLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Line(line, why) => write!(
                f,
                "{NAME}:{line}: {why}; correct the line, or remove it to drop this command"
            ),
        }
    }
}

/// Reads the orders of earlier runs, and cuts off a torn last line.
///
/// # Errors
/// The file can't be read, or a line in it is no order.
pub(in crate::engine) fn read(disk: &mut dyn Disk) -> Result<Vec<Logged>, BadLog> {
    let len = disk.len(NAME)?.unwrap_or(0);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    disk::read_all(disk, NAME, 0, 0, &mut bytes)?;
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
    if whole < bytes.len() {
        log::warn!("{NAME}: the last line is incomplete after an unclean stop; it is dropped");
        disk.truncate(NAME, whole as u64)?;
    }
    let lines = bytes[..whole].split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let parse = |(index, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| BadLog::Line(index + 1, error.to_string()))
    };
    lines.map(parse).collect()
}

impl Log {
    /// Continues after an order of an earlier run. Its line may not be durable yet: that run may
    /// have been killed before its sync.
    pub(super) fn resume_from(&mut self, number: u64) {
        self.number = self.number.max(number);
    }

    /// Appends an order. Returns its number.
    ///
    /// # Errors
    /// The line can't be written; then the log is as before.
    pub(in crate::engine) fn add(
        &mut self,
        order: &Order,
        now: UnixTime,
        disk: &mut dyn Disk,
    ) -> Result<u64, disk::Error> {
        self.tail.follow(disk)?;
        let before = self.tail.len();
        let at = now.civil().to_seconds();
        let line = Logged { number: self.number + 1, at, order: order.clone() };
        serde_json::to_writer(&mut self.tail.pending, &line).expect("plain values");
        self.tail.pending.push(b'\n');
        if let Err(error) = self.tail.flush(disk, 0) {
            self.tail.take_back(before);
            return Err(error);
        }
        self.number += 1;
        Ok(self.number)
    }

    /// Returns the number of the last order.
    pub(in crate::engine) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of the last order whose line is durable.
    pub(in crate::engine) fn durable(&self) -> u64 {
        self.durable
    }

    /// Returns whether a job is in progress.
    pub(in crate::engine) fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Returns the next job, if lines are not durable and no job is in progress.
    pub(in crate::engine) fn job(&mut self, disk: &dyn Disk) -> Option<CommandsJob> {
        if self.durable == self.number || self.is_syncing() {
            return None;
        }
        self.syncing = Some(self.number);
        Some(CommandsJob { disk: disk.handle() })
    }

    /// Takes the result of a job.
    ///
    /// # Errors
    /// The lines could not be synced; the next job tries again.
    pub(in crate::engine) fn worked(&mut self, done: CommandsDone) -> Result<(), disk::Error> {
        let number = self.syncing.take().expect("a job was in progress");
        done.0?;
        self.durable = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::command::{Command, Target};
    use crate::ground::disk::memory::Memory;

    fn order(number: u8) -> Order {
        let target = Target::Host(format!("{number}.test"));
        Order::new("ann", Command::Pause { target })
    }

    fn numbers(disk: &mut Memory) -> Vec<u64> {
        read(disk).expect("it can be read").iter().map(|logged| logged.number).collect()
    }

    /// Law: what was added is read back, in order, over restarts and after a torn line.
    #[test]
    fn orders_come_back_in_order() {
        let (mut disk, now) = (Memory::default(), UnixTime::from_micros(1_700_000_000_000_000));
        let mut log = Log::default();
        for number in 1..=3 {
            assert_eq!(
                log.add(&order(number), now, &mut disk).expect("there is room"),
                u64::from(number)
            );
        }
        assert_eq!((log.number(), log.durable()), (3, 0));
        let job = log.job(&disk).expect("lines are not durable");
        assert!(log.job(&disk).is_none(), "one job at a time");
        log.add(&order(4), now, &mut disk).expect("there is room");
        log.worked(job.run()).expect("the disk works");
        assert_eq!(log.durable(), 3, "the fourth line came after the job");
        disk.append(NAME, b"{\"number\":5,\"at\":\"2026").expect("there is room");
        let logged = read(&mut disk).expect("it can be read");
        assert_eq!(logged[3].order, order(4));
        let mut log = Log::default();
        logged.iter().for_each(|line| log.resume_from(line.number));
        log.add(&order(5), now, &mut disk).expect("there is room");
        assert_eq!(numbers(&mut disk), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_line_that_is_no_order_is_named() {
        let mut disk = Memory::default();
        assert_eq!(numbers(&mut disk), [0_u64; 0]);
        let lines =
            "{\"number\":1,\"at\":\"x\",\"by\":\"ann\",\"verb\":\"stop\"}\n\n{\"number\":2}\n";
        disk.append(NAME, lines.as_bytes()).expect("there is room");
        let error = read(&mut disk).expect_err("the third line is no order").to_string();
        assert!(error.starts_with("commands.log:3: "), "{error}");
    }
}
