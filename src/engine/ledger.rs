//! The ledger of a turn: how much work was done, of which kind, and how much may still be done.
//!
//! Every loop that a stranger can lengthen (bytes, links, rules, URLs) charges what it does here
//! before it goes on, stops when the budget is spent, and resumes in the next turn. One unit is
//! about what it costs to scan a byte of a page; the table at [`Work`] says what else costs how
//! many.
//!
//! There are two budgets of equal size: *intake* is what comes off sockets and goes to the archive,
//! all else is *work*. With one budget a full feed would leave nothing for the pages at hand.
//!
//! Law: a turn's units never pass [`Ledger::units_max`]: both budgets, and for each the one step
//! that was begun when little was left of it, which is at most [`STEP_UNITS`].
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

    fn is_intake(self) -> bool {
        matches!(self, Self::Received | Self::Archived)
    }
}

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
    /// Of each budget, in units.
    budget: usize,
    work_left: usize,
    intake_left: usize,
    turn: TurnWork,
    largest: TurnWork,
}

impl Ledger {
    /// Turns of at most so many units of work, and as many of intake.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            work_left: budget,
            intake_left: budget,
            turn: TurnWork::default(),
            largest: TurnWork::default(),
        }
    }

    /// Charges work that was done.
    pub(super) fn charge(&mut self, work: Work, units: usize) {
        let left = if work.is_intake() { &mut self.intake_left } else { &mut self.work_left };
        *left = left.saturating_sub(units);
        self.turn.units += units;
        self.turn.by_kind[work as usize] += units;
    }

    /// Units of work that may still be done in this turn.
    pub(super) fn left(&self) -> usize {
        self.work_left
    }

    /// Whether the rest of the work must wait for the next turn.
    pub(super) fn is_spent(&self) -> bool {
        self.work_left == 0
    }

    /// Whether what is still unread must wait for the next turn.
    pub(super) fn is_intake_spent(&self) -> bool {
        self.intake_left == 0
    }

    /// The turn is over; the next one has its whole budget.
    pub(super) fn end_turn(&mut self) {
        if self.turn.units > self.largest.units {
            self.largest = self.turn;
        }
        self.turn = TurnWork::default();
        self.work_left = self.budget;
        self.intake_left = self.budget;
    }

    /// The turn that did most so far.
    pub fn largest(&self) -> &TurnWork {
        &self.largest
    }

    /// Units that no turn may pass.
    pub fn units_max(&self) -> usize {
        2 * (self.budget + STEP_UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_turn_is_kept_with_what_it_went_to() {
        let mut ledger = Ledger::new(100);
        ledger.charge(Work::Joined, 60);
        assert!(!ledger.is_spent() && ledger.left() == 40);
        ledger.charge(Work::Scanned, 50);
        ledger.charge(Work::Received, 10);
        assert!(ledger.is_spent() && !ledger.is_intake_spent());
        ledger.end_turn();
        ledger.charge(Work::Received, 100);
        assert!(!ledger.is_spent() && ledger.is_intake_spent());
        ledger.end_turn();
        let largest = ledger.largest();
        assert_eq!(largest.units, 120);
        assert_eq!(largest.by_kind[Work::Joined as usize], 60);
        assert_eq!(largest.by_kind.iter().sum::<usize>(), largest.units);
    }
}
