//! Orders: the operator's commands that are in force, and their log.
//!
//! A crawl obeys orders where a visit begins and before each request, so they hold from the next
//! request on: `obey` has these checks. Nothing is searched in the queues when an order arrives.
//!
//! Laws: no request is sent to what is paused or blocked (a prefix doesn't include robots.txt), and
//! no visit to a slowed host begins before its delay is over. An order is in force again after a
//! restart if its log line is durable.
//! Cost: one comparison if no order is in force, else a few look-ups for each visit and request.

mod carry_out;
mod log;
mod obey;
mod rules;

use crate::engine::command::{Command, Order};
use crate::frontier::ServerId;
use crate::ground::disk::Disk;
use crate::ground::time::Instant;
use crate::url::Url;
pub(in crate::engine) use log::BadLog;
pub use log::{CommandsDone, CommandsJob};
use log::{Log, Logged};
use rules::Rules;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// How long a paused server sleeps at least before it is examined again. A resume wakes it earlier.
const HELD: Duration = Duration::from_secs(60);

/// The orders in force, their log, and the servers that they hold back.
#[derive(Debug, Default)]
pub(in crate::engine) struct Orders {
    rules: Rules,
    log: Log,
    /// Servers that an order has put to sleep since the last command that may wake them. Paused
    /// ones are examined again after [`HELD`] or somewhat later.
    held: BTreeSet<ServerId>,
    /// Servers to wake, because an order may have ended.
    waking: VecDeque<ServerId>,
    /// The orders of earlier runs, until [`Orders::take_restored`] returns them.
    restored: Vec<Logged>,
    /// The seeds that orders of this and earlier runs have added.
    seeds: BTreeSet<Url>,
    /// The number of the last command to all nodes that was carried out here.
    last_shared: Option<u64>,
}

/// Why the gate doesn't let a visit begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Hold {
    /// The server is paused until it is resumed.
    Paused,
    /// The server is blocked, so its URLs get the outcome `blocked`.
    Blocked,
    /// The host is slowed, and rests until this time.
    Slowed(Instant),
    /// The server's partition isn't this node's to crawl. It is looked at again at this time.
    Elsewhere(Instant),
}

impl Orders {
    /// Puts the orders of earlier runs in force, at the start of a run.
    ///
    /// # Errors
    /// The log can't be read.
    pub(in crate::engine) fn restore(
        &mut self,
        disk: &mut dyn Disk,
        now: Instant,
    ) -> Result<(), BadLog> {
        self.restored = log::read(disk)?;
        for Logged { number, order, .. } in &self.restored {
            self.rules.apply(&order.command, now);
            self.log.resume_from(*number);
            self.last_shared = self.last_shared.max(order.shared);
            if let Command::AddSeeds { seeds: added } = &order.command {
                self.seeds.extend(added.iter().filter_map(|seed| Url::parse(seed).ok()));
            }
        }
        Ok(())
    }

    /// Returns the number of the last command to all nodes that was carried out here.
    #[cfg(feature = "cluster")]
    pub(in crate::engine) fn last_shared(&self) -> Option<u64> {
        self.last_shared
    }

    /// Returns the seeds that orders have added.
    pub(in crate::engine) fn seeds(&self) -> &BTreeSet<Url> {
        &self.seeds
    }

    /// Returns the orders of earlier runs, once.
    pub(in crate::engine) fn take_restored(&mut self) -> Vec<Logged> {
        std::mem::take(&mut self.restored)
    }

    /// Returns the log of the orders.
    pub(in crate::engine) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the log of the orders, for changes.
    pub(in crate::engine) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Returns why `order` can't be carried out now, or `None` if it can.
    pub(in crate::engine) fn objection(&self, order: &Order) -> Option<String> {
        self.rules.objection(&order.command)
    }

    /// Puts an order in force. An order that may end another one wakes all servers that were held
    /// back; those that still must wait are held back again. Orders of other kinds change nothing
    /// here.
    pub(in crate::engine) fn apply(&mut self, order: &Order, now: Instant) {
        let command = &order.command;
        self.last_shared = self.last_shared.max(order.shared);
        self.rules.apply(command, now);
        let may_wake = matches!(
            command,
            Command::Resume { .. } | Command::Unblock { .. } | Command::Slow { .. }
        );
        if may_wake {
            self.waking.extend(std::mem::take(&mut self.held));
        }
    }

    /// Returns whether the whole crawl is paused.
    pub(in crate::engine) fn pauses_all(&self) -> bool {
        self.rules.pauses_all()
    }

    /// Returns whether a pause holds a server back that was about to be visited.
    pub(in crate::engine) fn holds_back(&self, id: ServerId) -> bool {
        self.held.contains(&id)
    }

    /// Returns whether servers wait to be woken.
    pub(in crate::engine) fn has_waking(&self) -> bool {
        !self.waking.is_empty()
    }
}
