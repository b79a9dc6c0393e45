//! The ledger of a turn: how much work of each kind was done, and how much may still be done.
//!
//! Every loop whose length a stranger controls (bytes, links, rules, URLs) charges its work here
//! before it continues, stops when the budget is spent, and resumes in the next turn. One unit is
//! about the cost of scanning one byte of a page. [`Work`] lists what other work costs.
//!
//! A turn has four budgets of equal size, so that no kind of work can starve the others: *intake*
//! pays for bytes that come off sockets and go to the archive; *pages* pays for decoding, scanning
//! and joining the links of pages, for taking up replies that a job has archived, and for records
//! from the logs of a cluster; *queues* pays for what happens to URLs: admitting and dropping them,
//! matching them with robots.txt rules, signing their requests, reading their replies back from
//! the archive when a crawl resumes, and counting what servers wait for; *names* pays for DNS
//! look-ups.
//!
//! Law: a turn never takes more than [`Ledger::units_max`] from a budget, which is the budget plus
//! one step that began when little of it was left. A step costs at most [`STEP_UNITS`]. Archiving a
//! record is one step, however long a body the operator allows. A turn may archive two records past
//! its budget: the last one received, and that of a connection that timed out.
//! Cost: an addition and a subtraction a charge.

/// The maximum cost of one step of work, in units. A step that could cost more must be resumable.
pub const STEP_UNITS: usize = 512 << 10;

/// The kinds of work. The unit is a byte unless noted otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Bytes received from sockets. Charged to the intake budget.
    Received,
    /// TLS handshakes: four units a byte, plus a fixed cost for keys and certificates. Charged to
    /// the intake budget.
    Secured,
    /// Bytes of archived records, multiplied by the cost of compressing one, plus a fixed cost for
    /// each. Charged to the intake budget.
    Archived,
    /// Joining the targets of redirects with their base URLs, and parsing cookies. Charged to the
    /// intake budget.
    Redirects,
    /// Replies that a job has archived, each with a fixed cost. Charged to the pages budget.
    Filed,
    /// Undoing content codings such as gzip: for each coding, the larger of its input and its
    /// output.
    Decoded,
    /// Bytes of text scanned for links.
    Scanned,
    /// Bytes converted to UTF-8.
    Converted,
    /// Joining links with their base URLs: bytes of the reference and of the URL, plus the cost of
    /// mapping host names to ASCII; and bytes of records from the logs of a cluster.
    Joined,
    /// Rules of robots.txt: bytes of files parsed, of rules copied, and of paths and patterns
    /// compared when URLs are matched.
    Rules,
    /// URLs that left their queues without a request, for example since robots.txt forbids them.
    Dropped,
    /// Bytes of records read back from the archive.
    Reread,
    /// URLs that the seen test found to be new, and that were queued, kept for a later pass of the
    /// budgets or refused; links counted by domain.
    Admitted,
    /// Looking up whether the target of a redirect is a known URL: keys and bytes compared.
    Lookups,
    /// Servers examined by the census of what servers wait for.
    Census,
    /// Servers ranked again because the price of the core's time has changed.
    Repriced,
    /// DNS look-ups begun, each with a fixed cost.
    Names,
    /// Known pages that came up to be visited again or filed again: bytes read, and a fixed cost
    /// for each.
    Again,
    /// Signatures of requests, each with a fixed cost, and bytes of the fields that ask for them.
    /// Charged to the queues budget, on which the next URL of a server waits.
    Signed,
}

/// For each kind of work, in the order of [`Work`]: its name in the summary, and its budget.
const KINDS: [(Work, &str, Budget); 19] = [
    (Work::Received, "received", Budget::Intake),
    (Work::Secured, "secured", Budget::Intake),
    (Work::Archived, "archived", Budget::Intake),
    (Work::Redirects, "redirects", Budget::Intake),
    (Work::Filed, "filed", Budget::Pages),
    (Work::Decoded, "decoded", Budget::Pages),
    (Work::Scanned, "scanned", Budget::Pages),
    (Work::Converted, "converted", Budget::Pages),
    (Work::Joined, "joined", Budget::Pages),
    (Work::Rules, "rules", Budget::Queues),
    (Work::Dropped, "dropped", Budget::Queues),
    (Work::Reread, "reread", Budget::Queues),
    (Work::Admitted, "admitted", Budget::Queues),
    (Work::Lookups, "lookups", Budget::Queues),
    (Work::Census, "census", Budget::Queues),
    (Work::Repriced, "repriced", Budget::Queues),
    (Work::Names, "names", Budget::Names),
    (Work::Again, "again", Budget::Queues),
    (Work::Signed, "signed", Budget::Queues),
];

impl Work {
    /// Returns all kinds of work, in order of declaration.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.into_iter().map(|(work, ..)| work)
    }

    /// Returns the name of this kind of work in the summary.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Returns the budget that this work is charged to.
    pub fn budget(self) -> Budget {
        KINDS[self as usize].2
    }
}

/// One of the budgets of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Bytes that come off sockets and go to the archive.
    Intake,
    /// Taking up archived replies; decoding, scanning and joining the links of pages.
    Pages,
    /// What happens to URLs: admitting, dropping, matching with rules, reading replies back.
    Queues,
    /// DNS look-ups.
    Names,
}

/// The number of budgets that a turn has.
const BUDGETS: usize = 4;

impl Budget {
    /// All budgets, in order of declaration.
    pub const ALL: [Self; BUDGETS] = [Self::Intake, Self::Pages, Self::Queues, Self::Names];

    /// Returns the name of the budget in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intake => "intake",
            Self::Pages => "pages",
            Self::Queues => "queues",
            Self::Names => "names",
        }
    }
}

/// The work of one turn, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnWork {
    /// The sum of the units of all kinds of work.
    pub units: usize,
    /// The units of each kind of work, in the order of [`Work::all`].
    pub by_kind: [usize; KINDS.len()],
}

impl TurnWork {
    /// Returns each kind of work with the units done of it.
    pub fn kinds(&self) -> impl Iterator<Item = (Work, usize)> {
        Work::all().zip(self.by_kind)
    }
}

/// The account of the work of a crawl: what the current turn may still do, and the largest amounts
/// of any turn so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The size of each budget, in units.
    budget: usize,
    /// The cost of archiving the longest possible record, in units.
    record_units: usize,
    left: [usize; BUDGETS],
    turn: TurnWork,
    largest: TurnWork,
    /// The most that any turn took from each budget, in units.
    peaks: [usize; BUDGETS],
}

impl Ledger {
    /// Returns a ledger whose turns have `budget` units in each budget. Archiving the longest
    /// record costs `record_units`.
    pub(super) fn new(budget: usize, record_units: usize) -> Self {
        Self { budget, record_units, left: [budget; BUDGETS], ..Self::default() }
    }

    /// Charges work that was done to the budget of its kind.
    pub(super) fn charge(&mut self, work: Work, units: usize) {
        let left = &mut self.left[work.budget() as usize];
        *left = left.saturating_sub(units);
        self.turn.units += units;
        self.turn.by_kind[work as usize] += units;
    }

    /// Returns how many units of this kind of work may still be done in this turn.
    pub(super) fn left(&self, work: Work) -> usize {
        self.left[work.budget() as usize]
    }

    /// Returns whether the budget of this kind of work is spent, so that more of it must wait for
    /// the next turn.
    pub(super) fn is_spent(&self, work: Work) -> bool {
        self.left(work) == 0
    }

    /// Returns how many units are left of the first half of the budget that this kind of work is
    /// charged to; 0 once half is spent.
    pub(super) fn half_left(&self, work: Work) -> usize {
        self.left(work).saturating_sub(self.budget / 2)
    }

    /// Returns whether half of the budget of this kind of work is spent. Work that stops there
    /// leaves the other half to other kinds of work.
    pub(super) fn is_half_spent(&self, work: Work) -> bool {
        self.half_left(work) == 0
    }

    /// Ends the turn. The next turn has its whole budgets again.
    pub(super) fn end_turn(&mut self) {
        if self.turn.units > self.largest.units {
            self.largest = self.turn;
        }
        for budget in Budget::ALL {
            let of_budget = self.turn.kinds().filter(|(work, _)| work.budget() == budget);
            let units: usize = of_budget.map(|(_, units)| units).sum();
            let peak = &mut self.peaks[budget as usize];
            *peak = units.max(*peak);
        }
        self.turn = TurnWork::default();
        self.left = [self.budget; BUDGETS];
    }

    /// Returns the work of the turn that did the most so far.
    pub fn largest(&self) -> &TurnWork {
        &self.largest
    }

    /// Returns the most units that any turn has taken from a budget.
    pub fn peak(&self, budget: Budget) -> usize {
        self.peaks[budget as usize]
    }

    /// Returns the name of each budget with the most units that any turn has taken from it.
    pub fn peaks(&self) -> [(&'static str, usize); BUDGETS] {
        Budget::ALL.map(|budget| (budget.name(), self.peak(budget)))
    }

    /// Returns the bound of the units that a turn may take from a budget.
    pub fn units_max(&self, budget: Budget) -> usize {
        let records =
            if budget == Budget::Intake { self.record_units.saturating_mul(2) } else { 0 };
        (self.budget + STEP_UNITS).saturating_add(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_turn_is_kept_with_what_it_went_to() {
        let mut ledger = Ledger::new(100, 0);
        ledger.charge(Work::Joined, 60);
        assert!(!ledger.is_spent(Work::Scanned) && ledger.left(Work::Joined) == 40);
        ledger.charge(Work::Scanned, 50);
        ledger.charge(Work::Received, 10);
        assert!(ledger.is_spent(Work::Decoded) && !ledger.is_spent(Work::Archived));
        ledger.end_turn();
        ledger.charge(Work::Received, 100);
        assert!(!ledger.is_spent(Work::Rules) && ledger.is_spent(Work::Archived));
        ledger.end_turn();
        let largest = ledger.largest();
        assert_eq!(largest.units, 120);
        assert_eq!(largest.by_kind[Work::Joined as usize], 60);
        assert_eq!(largest.by_kind.iter().sum::<usize>(), largest.units);
        assert_eq!(Budget::ALL.map(|budget| ledger.peak(budget)), [100, 110, 0, 0]);
        assert_eq!(ledger.units_max(Budget::Pages), 100 + STEP_UNITS);
    }
}
