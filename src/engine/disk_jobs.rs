//! What memory doesn't hold: the jobs of the seen test and of the frontier, and the bytes that
//! they leave for the disk.
//!
//! Both stations only gather what is to be written. The seen test's goes with its jobs, the
//! frontier's is brought to the disk here, where it may fail; jobs are handed out, one of each at a
//! time. First-timers of a merge come back some in each turn.

use super::Engine;
use super::contract::{Action, Job};
use super::ledger::Work;
use super::outcome::Outcome;
use crate::frontier::{QueuesDone, ServerId, ServerState};
use crate::seen::SeenDone;

/// URLs for each connection below which a frontier without a ready server starves.
const STARVING_URLS: usize = 4;

impl Engine {
    /// Takes the next steps.
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
        match self.admission.seen_mut().job(self.storage.disk()) {
            Ok(Some(job)) => self.turn.act(Action::Work(Job::Seen(job))),
            Ok(None) => {}
            Err(error) => self.on_disk_error(error),
        }
    }

    /// Whether slots stay empty for want of URLs.
    fn is_starving(&self) -> bool {
        let few = STARVING_URLS * self.settings.connections.open_max;
        !self.is_stopping() && self.backlog.ready() == 0 && self.backlog.urls() < few
    }

    /// A job of the seen test is done. What failed for want of room is done again after the pause.
    pub(super) fn seen_worked(&mut self, done: SeenDone) {
        if let Err(error) = self.admission.seen_mut().worked(done) {
            self.on_disk_error(error);
        }
    }

    /// Whether URLs of servers that were given up wait for their lines. While the disk is full they
    /// wait on, since lines would pile up in memory, and at the end the last checkpoint has them.
    pub(super) fn may_report_given_up(&self) -> bool {
        self.backlog.has_given_up() && !self.storage.is_paused() && !self.shutdown.is_closing()
    }

    /// URLs of servers that were given up get their lines. What others need of the budget is left
    /// to them.
    pub(super) fn work_given_up(&mut self) {
        while self.may_report_given_up()
            && !self.turn.is_half_spent(Work::Dropped)
            && let Some((id, item)) = self.backlog.given_up()
        {
            self.note_given_up(id, &item, self.given_up_as(id));
        }
    }

    /// Ends of queues go to the disk and come back. To be called after visits have begun: a server
    /// whose next URL is on disk is asked for by what came before.
    pub(super) fn work_queues(&mut self) {
        if !self.storage.is_usable() {
            return;
        }
        let disk = self.storage.disk();
        let written =
            self.backlog.write(false, disk).and_then(|()| self.robots.cache().write(false, disk));
        let written = written.and_then(|()| self.backlog.given_up_mut().write(false, disk));
        if let Err(error) = written {
            return self.on_disk_error(error);
        }
        if let Some(job) = self.backlog.job(self.storage.reads()) {
            self.turn.act(Action::Work(Job::Frontier(job)));
        }
    }

    /// Queues have been read back. What can't be read ends the crawl.
    pub(super) fn queues_worked(&mut self, done: QueuesDone) {
        if let Err(error) = self.backlog.worked(done) {
            self.on_disk_error(error);
        }
    }

    /// Some of what was read comes into the queues. To be called once a turn.
    pub(super) fn take_queues_in(&mut self) {
        let has_read = self.backlog.has_read();
        if let Err(error) = self.backlog.take_in(self.turn.at()) {
            self.on_disk_error(error);
        }
        if has_read {
            self.look_behind();
        }
    }

    /// What the URLs of a server that was given up come to.
    fn given_up_as(&self, id: ServerId) -> Outcome {
        let told = self.sites.look(id).retired_as();
        told.unwrap_or_else(|| match self.backlog.server(id).state() {
            ServerState::Retired(why) => Outcome::ServerRetired(why),
            state => unreachable!("a server that is {state:?} was not given up"),
        })
    }
}
