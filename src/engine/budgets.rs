//! Budgets of registrable domains: which new URLs are queued now, and which wait for a later pass
//! (see [`crate::budgets`]).
//!
//! Seeds, the targets of redirects that are followed and known pages have no budget. A pass ends
//! when a connection could be opened, no server is ready for it, and nothing under way may make one
//! ready; so no slot is idle for long while a URL over its budget waits. None is admitted while the
//! queues are full.
//!
//! Cost: of a link to another host and of a new URL, a look-up of its domain; of a URL that waits,
//! its bytes each time it is moved.

use super::Engine;
use super::admission::domains::REFUSE_UNITS;
use super::admission::{ADMIT_UNITS, Discovery};
use super::backlog::Backlog;
use super::ledger::Work;
use super::outcome::Outcome;
use super::seeds::SEED;
use super::settings::Settings;
use super::status::OverBudget;
use crate::budgets::{self, Budgets, Offered};
use crate::ground::frame;
use crate::url::{Fingerprinter, UrlRef};

/// The fixed cost of moving a URL from one queue to another, in units of work (see `ledger`).
const MOVE_UNITS: usize = 64;
/// The cost of beginning a pass, which ranks all domains, in units of work.
const PASS_UNITS: usize = 2_000;
/// The fixed cost of reading URLs back from disk, in units of work.
const READ_UNITS: usize = 16 << 10;
/// The cost of counting a link to another host, in units of work.
pub(super) const DOMAIN_UNITS: usize = 256;

impl Backlog {
    /// Begins to keep budgets, if the settings say so.
    pub(super) fn begin_budgets(&mut self, settings: &Settings) {
        if let Some(own) = settings.budgets {
            self.set_budgets(new_budgets(settings, own));
        }
    }

    /// Returns the budgets that a checkpoint is restored to. A crawl that has none any more gets
    /// some that admit what waits, until [`Self::end_done_budgets`].
    pub(super) fn restored_budgets(&mut self, settings: &Settings) -> &mut Budgets {
        if self.budgets().is_none() {
            self.set_budgets(new_budgets(settings, budgets::Settings::UNLIMITED));
        }
        self.budgets_mut().expect("just set")
    }

    /// Drops the budgets of a crawl that has none any more, if no URL waits. Returns whether some
    /// of such a crawl stay.
    pub(super) fn end_done_budgets(&mut self) -> bool {
        let left = self.budgets().filter(|budgets| budgets.is_unlimited());
        let waits = left.is_some_and(|budgets| budgets.waiting() > 0);
        if left.is_some() && !waits {
            self.end_budgets();
        }
        waits
    }
}

fn new_budgets(settings: &Settings, own: budgets::Settings) -> Budgets {
    let domains_max = settings.frontier.scheduler.servers_max;
    let hash = Fingerprinter::new(settings.fingerprint_key);
    Budgets::new(own, domains_max, hash, settings.state.crawl)
}

impl Engine {
    /// Queues a new URL, or keeps it for a later pass if it is over the budget of its domain.
    pub(super) fn admit(&mut self, found: Discovery, url: UrlRef<'_>, via: Option<&str>) {
        let waiting_max = self.settings.frontier.urls_max as u64;
        let Some(budgets) = self.backlog.budgets_mut().filter(|_| found.letter != SEED) else {
            return self.queue(found, url, via);
        };
        let write = |out: &mut Vec<u8>| found.encode(url.as_str(), via.unwrap_or(""), out);
        match budgets.offer(url.host(), waiting_max, write) {
            Offered::Admitted => self.queue(found, url, via),
            Offered::Waits => {}
            Offered::Full => {
                self.turn.charge(Work::Admitted, REFUSE_UNITS + url.as_str().len());
                self.counts.cut(Outcome::QueueFull.name(), 1);
                let how = (found.letter, found.hops);
                self.log_unasked(url, via, how, None, Outcome::QueueFull);
            }
        }
    }

    /// Queues URLs of the present pass that waited, distributes others among the queues of later
    /// ones, and begins the next pass, within half of the turn's budget.
    pub(super) fn work_budgets(&mut self) {
        while self.has_budget_work() && !self.turn.is_half_spent(Work::Admitted) {
            match self.step_budgets() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.on_disk_error(error),
            }
        }
    }

    /// Moves a URL, or begins a pass. Returns `false` if there was nothing to do.
    fn step_budgets(&mut self) -> Result<bool, frame::Error> {
        let wants_pass = self.wants_pass();
        let Some(budgets) = self.backlog.budgets_mut() else { return Ok(false) };
        let disk = self.storage.disk();
        let mut entry = Vec::new();
        let is_admitted = budgets.admit(&mut entry, disk)?;
        if !is_admitted && wants_pass && budgets.advance() {
            log::debug!("pass {} begins, {} URLs wait", budgets.pass(), budgets.waiting());
            self.turn.charge(Work::Admitted, PASS_UNITS);
            return Ok(true);
        }
        let moved = if is_admitted { Some(entry.len()) } else { budgets.distribute(disk)? };
        let read = budgets.take_read_bytes();
        if read > 0 {
            self.turn.charge(Work::Admitted, READ_UNITS + read);
        }
        self.turn.charge(Work::Admitted, MOVE_UNITS + moved.unwrap_or_default());
        if is_admitted {
            self.turn.charge(Work::Admitted, ADMIT_UNITS);
            let (found, url, via) = Discovery::decode(&entry);
            self.queue(found, url, (!via.is_empty()).then_some(via));
        }
        self.backlog.end_done_budgets();
        Ok(moved.is_some())
    }

    /// Returns whether URLs over their budget can be moved or admitted now.
    pub(super) fn has_budget_work(&self) -> bool {
        let Some(budgets) = self.backlog.budgets() else { return false };
        !self.is_stopping()
            && self.storage.is_usable()
            && !self.backlog.is_full(None)
            && (budgets.has_work() || budgets.waiting() > 0 && self.wants_pass())
    }

    /// Returns whether a connection could be opened, no server is ready, and nothing under way may
    /// make one ready but the end of a rest.
    fn wants_pass(&self) -> bool {
        let visits = self.wire.conns().busy() + self.visits.waiters();
        self.may_visit_more()
            && visits < self.settings.connections.open_max
            && self.backlog.ready() == 0
            && !self.visits.has_deferred()
            && self.turn.at() >= self.backlog.quiet_until()
            && !self.has_replies()
            && !self.pages.lists().is_busy()
            && self.archive.filing().is_empty()
            && self.admission.seen().is_settled()
            && !self.backlog.has_read()
    }

    /// Returns the domain of a known URL's host if URLs of it wait for a later pass: about how many
    /// other domains link to it, and its budget.
    pub(super) fn held_domain(&self, host: &str) -> Option<(u32, u32)> {
        self.backlog.budgets()?.held(host)
    }

    /// Returns the URLs over their budget; `None` if domains have none.
    pub fn over_budget(&self) -> Option<OverBudget> {
        let budgets = self.backlog.budgets()?;
        Some(OverBudget {
            waiting: budgets.waiting(),
            pass: budgets.pass().into(),
            domains: budgets.domains() as u64,
            bytes: budgets.bytes(),
        })
    }
}
