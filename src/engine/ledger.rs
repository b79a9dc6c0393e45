//! The ledger of a turn: how much work was done, of which kind, and how much may still be done.
//!
//! Every loop that a stranger can lengthen (bytes, links, rules, URLs) charges what it does here
//! before it goes on, stops when the budget is spent, and resumes in the next turn. One unit is
//! about what it costs to scan a byte of a page; the table at [`Work`] says what else costs how
//! many.
//!
//! A turn has three budgets of equal size, so that none of these can starve the others: *intake* is
//! what comes off sockets and goes to the archive; *pages* is decoding, scanning and joining;
//! *queues* is what happens to URLs: admitted, dropped, matched with rules, read back.
//!
//! Law: what a turn takes from a budget never passes [`Ledger::units_max`]: the budget, and the one
//! step that was begun when little was left of it. A step costs at most [`STEP_UNITS`]; but a
//! record is archived in one step, however long the longest body is that the operator admits: one
//! of what came last, one of a connection whose time was up.
//! Cost: an addition and a subtraction a charge.

/// Most units that one step may cost: what is larger must be resumable.
pub const STEP_UNITS: usize = 512 << 10;

/// What work is spent on. The unit is a byte where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Bytes received. Intake.
    Received,
    /// TLS handshakes: four a byte, and what keys and certificates cost. Intake.
    Secured,
    /// Bytes of records, weighted by what compression costs. Intake.
    Archived,
    /// Targets of redirects joined, as links are, and cookies taken in. Intake.
    Redirects,
    /// Bytes of content codings: at each layer the larger of what went in and what came out.
    Decoded,
    /// Bytes of text scanned for links.
    Scanned,
    /// Bytes converted to UTF-8.
    Converted,
    /// Links joined: bytes of the reference and of the URL, and what host names cost.
    Joined,
    /// Rules of robots.txt: bytes of files parsed and of rules copied, and of paths and patterns
    /// looked at when URLs are matched.
    Rules,
    /// URLs that left their queues without a request.
    Dropped,
    /// Bytes of records read back from the archive.
    Reread,
    /// First-timers that came into queues.
    Admitted,
    /// Targets of redirects that were looked up among the URLs known: keys and bytes gone over.
    Lookups,
}

/// The name in the summary and the budget of each kind of work, in order.
const KINDS: [(Work, &str, Purse); 13] = [
    (Work::Received, "received", Purse::Intake),
    (Work::Secured, "secured", Purse::Intake),
    (Work::Archived, "archived", Purse::Intake),
    (Work::Redirects, "redirects", Purse::Intake),
    (Work::Decoded, "decoded", Purse::Pages),
    (Work::Scanned, "scanned", Purse::Pages),
    (Work::Converted, "converted", Purse::Pages),
    (Work::Joined, "joined", Purse::Pages),
    (Work::Rules, "rules", Purse::Queues),
    (Work::Dropped, "dropped", Purse::Queues),
    (Work::Reread, "reread", Purse::Queues),
    (Work::Admitted, "admitted", Purse::Queues),
    (Work::Lookups, "lookups", Purse::Queues),
];

impl Work {
    /// All kinds, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.into_iter().map(|(work, ..)| work)
    }

    /// Its name in the summary.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The budget that it is charged to.
    pub fn purse(self) -> Purse {
        KINDS[self as usize].2
    }
}

/// A budget of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purse {
    /// What comes off sockets and goes to the archive.
    Intake,
    /// Decoding, scanning and joining.
    Pages,
    /// What happens to URLs.
    Queues,
}

/// Budgets of a turn.
const PURSES: usize = 3;

impl Purse {
    /// All of them, in order.
    pub const ALL: [Self; PURSES] = [Self::Intake, Self::Pages, Self::Queues];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intake => "intake",
            Self::Pages => "pages",
            Self::Queues => "queues",
        }
    }
}

/// The work of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnWork {
    /// Units in all.
    pub units: usize,
    /// Units by kind, as in [`Work::all`].
    pub by_kind: [usize; KINDS.len()],
}

impl TurnWork {
    /// Units by kind.
    pub fn kinds(&self) -> impl Iterator<Item = (Work, usize)> {
        Work::all().zip(self.by_kind)
    }
}

/// The account of the turns of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Of each purse, in units.
    budget: usize,
    /// Most units of the longest record.
    record_units: usize,
    left: [usize; PURSES],
    turn: TurnWork,
    largest: TurnWork,
    /// The most that a turn took, of each purse.
    peaks: [usize; PURSES],
}

impl Ledger {
    /// Turns of at most `budget` units from each purse; archiving the longest record costs
    /// `record_units`.
    pub(super) fn new(budget: usize, record_units: usize) -> Self {
        Self {
            budget,
            record_units,
            left: [budget; PURSES],
            turn: TurnWork::default(),
            largest: TurnWork::default(),
            peaks: [0; PURSES],
        }
    }

    /// Charges work that was done.
    pub(super) fn charge(&mut self, work: Work, units: usize) {
        let left = &mut self.left[work.purse() as usize];
        *left = left.saturating_sub(units);
        self.turn.units += units;
        self.turn.by_kind[work as usize] += units;
    }

    /// Units of such work that may still be done in this turn.
    pub(super) fn left(&self, work: Work) -> usize {
        self.left[work.purse() as usize]
    }

    /// Whether the rest of such work must wait for the next turn.
    pub(super) fn is_spent(&self, work: Work) -> bool {
        self.left(work) == 0
    }

    /// Units left of the first half of the budget for such work.
    pub(super) fn half_left(&self, work: Work) -> usize {
        self.left(work).saturating_sub(self.budget / 2)
    }

    /// Whether half of the budget for such work is spent: the other half is for others.
    pub(super) fn is_half_spent(&self, work: Work) -> bool {
        self.half_left(work) == 0
    }

    /// The turn is over; the next one has its whole budget.
    pub(super) fn end_turn(&mut self) {
        if self.turn.units > self.largest.units {
            self.largest = self.turn;
        }
        for purse in Purse::ALL {
            let of_purse = self.turn.kinds().filter(|(work, _)| work.purse() == purse);
            let units: usize = of_purse.map(|(_, units)| units).sum();
            let peak = &mut self.peaks[purse as usize];
            *peak = units.max(*peak);
        }
        self.turn = TurnWork::default();
        self.left = [self.budget; PURSES];
    }

    /// The turn that did most so far.
    pub fn largest(&self) -> &TurnWork {
        &self.largest
    }

    /// The most that a turn has taken from a budget.
    pub fn peak(&self, purse: Purse) -> usize {
        self.peaks[purse as usize]
    }

    /// The same for each budget, by name.
    pub fn peaks(&self) -> [(&'static str, usize); PURSES] {
        Purse::ALL.map(|purse| (purse.name(), self.peak(purse)))
    }

    /// What no turn may take from a budget.
    pub fn units_max(&self, purse: Purse) -> usize {
        let records = if purse == Purse::Intake { self.record_units.saturating_mul(2) } else { 0 };
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
        assert_eq!(Purse::ALL.map(|purse| ledger.peak(purse)), [100, 110, 0]);
        assert_eq!(ledger.units_max(Purse::Pages), 100 + STEP_UNITS);
    }
}
