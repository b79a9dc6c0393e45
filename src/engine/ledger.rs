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
//! Law: a turn's units never pass [`Ledger::units_max`]: the three budgets, and for each the one
//! step that was begun when little was left of it. A step costs at most [`STEP_UNITS`]; but a
//! record is archived in one step, however long the longest body is that the operator admits.
//! Cost: an addition and a subtraction a charge.

use serde::Serialize;

/// Most units that one step may cost: what is larger must be resumable.
pub const STEP_UNITS: usize = 512 << 10;

/// What work is spent on. The unit is a byte where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Bytes received. Intake.
    Received,
    /// Bytes of records, weighted by what compression costs. Intake.
    Archived,
    /// Bytes of content codings: at each layer the larger of what went in and what came out.
    Decoded,
    /// Bytes of text scanned for links.
    Scanned,
    /// Bytes converted to UTF-8.
    Converted,
    /// Links joined: bytes of the reference and of the URL, and what host names cost.
    Joined,
    /// Rules of robots.txt that URLs were matched with: bytes of paths and patterns looked at.
    Rules,
    /// URLs that left their queues without a request.
    Dropped,
    /// Bytes of records read back from the archive.
    Reread,
    /// First-timers that came into queues.
    Admitted,
}

/// Kinds of work.
const KINDS: usize = 10;

impl Work {
    /// All kinds, in order.
    pub const ALL: [Self; KINDS] = [
        Self::Received,
        Self::Archived,
        Self::Decoded,
        Self::Scanned,
        Self::Converted,
        Self::Joined,
        Self::Rules,
        Self::Dropped,
        Self::Reread,
        Self::Admitted,
    ];

    /// Its name in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Archived => "archived",
            Self::Decoded => "decoded",
            Self::Scanned => "scanned",
            Self::Converted => "converted",
            Self::Joined => "joined",
            Self::Rules => "rules",
            Self::Dropped => "dropped",
            Self::Reread => "reread",
            Self::Admitted => "admitted",
        }
    }

    fn purse(self) -> Purse {
        match self {
            Self::Received | Self::Archived => Purse::Intake,
            Self::Decoded | Self::Scanned | Self::Converted | Self::Joined => Purse::Pages,
            Self::Rules | Self::Dropped | Self::Reread | Self::Admitted => Purse::Queues,
        }
    }
}

/// The budget that a kind of work is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purse {
    Intake,
    Pages,
    Queues,
}

/// Budgets of a turn.
const PURSES: usize = 3;

/// The work of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnWork {
    /// Units in all.
    pub units: usize,
    /// Units by kind, as in [`Work::ALL`].
    pub by_kind: [usize; KINDS],
}

/// The account of the turns of a crawl.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Of each purse, in units.
    budget: usize,
    /// Most units of the longest record.
    record_units: usize,
    left: [usize; PURSES],
    turn: TurnWork,
    largest: TurnWork,
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

    /// The turn is over; the next one has its whole budget.
    pub(super) fn end_turn(&mut self) {
        if self.turn.units > self.largest.units {
            self.largest = self.turn;
        }
        self.turn = TurnWork::default();
        self.left = [self.budget; PURSES];
    }

    /// The turn that did most so far.
    pub fn largest(&self) -> &TurnWork {
        &self.largest
    }

    /// Units that no turn may pass.
    pub fn units_max(&self) -> usize {
        let steps = PURSES * (self.budget + STEP_UNITS);
        steps.saturating_add(self.record_units)
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
    }
}
