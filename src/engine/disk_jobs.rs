//! The disk work of the seen test and of the frontier: their jobs, and the bytes they append.
//!
//! Both stations only collect what is to be written. The seen test writes in its jobs; the
//! frontier's bytes are appended here, where an error pauses or ends the crawl. Each station has at
//! most one job in progress. The new URLs that a merge returns are queued over several turns.

use super::Engine;
use super::contract::{Action, Job};
use super::ledger::Work;
use super::outcome::Outcome;
use crate::frontier::{ServerId, ServerState};

/// The number of waiting URLs for each connection below which the frontier starves, if no server is
/// ready to be visited.
const STARVING_URLS: usize = 4;

impl Engine {
    /// Queues URLs that the seen test found to be new, and hands out the next job of the seen test.
    pub(super) fn work_disk_jobs(&mut self) {
        if self.admission.seen().has_fresh() {
            self.admit_fresh();
        }
        if !self.storage.is_usable() {
            return;
        }
        if self.is_starving() {
            self.admission.seen_mut().hasten();
        }
        let job = self.admission.seen_mut().job(self.storage.disk());
        if let Some(job) = self.checked(job).flatten() {
            self.turn.act(Action::Work(Job::Seen(job)));
        }
    }

    /// Returns whether connections stay unused for lack of URLs.
    fn is_starving(&self) -> bool {
        let few = STARVING_URLS * self.settings.connections.open_max;
        let waits = || self.backlog.budgets().is_some_and(|budgets| budgets.waiting() > 0);
        !self.is_stopping() && self.backlog.ready() == 0 && (self.backlog.urls() < few || waits())
    }

    /// Returns whether URLs of servers that were given up are to get their lines in the crawl log
    /// now. While the disk is full they wait, so that lines don't pile up in memory. When the crawl
    /// ends they wait too, and the last checkpoint keeps them.
    pub(super) fn may_report_given_up(&self) -> bool {
        self.backlog.has_given_up() && !self.storage.is_paused() && !self.shutdown.is_closing()
    }

    /// Writes the crawl-log lines of URLs whose servers were given up. Half of the turn's budget is
    /// left to other work.
    pub(super) fn work_given_up(&mut self) {
        while self.may_report_given_up()
            && !self.turn.is_half_spent(Work::Dropped)
            && let Some((id, item)) = self.backlog.given_up()
        {
            self.note_given_up(id, &item, self.given_up_as(id));
        }
    }

    /// Writes buffered URLs of the frontier's queues to disk, and hands out the next job that reads
    /// URLs back. It is called after visits have begun, since these ask for URLs that are on disk.
    pub(super) fn work_queues(&mut self) {
        if !self.storage.is_usable() {
            return;
        }
        let disk = self.storage.disk();
        let written =
            self.backlog.write(false, disk).and_then(|()| self.robots.cache().write(false, disk));
        let written = written.and_then(|()| self.backlog.write_segments(false, disk));
        let cluster = self.cluster.as_deref_mut();
        let written = written.and_then(|()| cluster.map_or(Ok(()), |it| it.write(false, disk)));
        if let Err(error) = written {
            return self.on_disk_error(error);
        }
        if let Some(job) = self.backlog.job(self.storage.disk_ref()) {
            self.turn.act(Action::Work(Job::Frontier(job)));
        }
        if let Some(job) = self.visits.orders_mut().log_mut().job(self.storage.disk_ref()) {
            self.turn.act(Action::Work(Job::Commands(job)));
        }
    }

    /// Adds some of the URLs that a job has read from disk to their queues. It is called once a
    /// turn.
    pub(super) fn take_queues_in(&mut self) {
        let has_read = self.backlog.has_read();
        let taken = self.backlog.take_in(self.turn.at());
        self.checked(taken);
        if has_read {
            self.resume_scans();
        }
    }

    /// Returns the outcome that the URLs of a given-up server get.
    pub(super) fn given_up_as(&self, id: ServerId) -> Outcome {
        let outcome = self.sites.get(id).retired_as();
        outcome.unwrap_or_else(|| match self.backlog.server(id).state() {
            ServerState::Retired(why) => Outcome::ServerRetired(why),
            state => unreachable!("a server that is {state:?} was not given up"),
        })
    }
}
