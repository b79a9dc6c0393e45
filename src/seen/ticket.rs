//! When has everything that was offered got its answer?

use super::Seen;

impl Seen {
    /// Returns the number by which [`Self::has_answered`] knows what was offered until now: that of
    /// the rounds of merges which it takes.
    pub fn ticket(&self) -> u64 {
        let rounds = u64::from(self.round.is_some()) + u64::from(self.batch.is_some());
        self.totals.rounds_of_run + rounds
    }

    /// Returns whether every offer until a ticket was issued has its answer, and no new URL waits
    /// to be taken.
    pub fn has_answered(&self, ticket: u64) -> bool {
        self.totals.rounds_of_run >= ticket && self.fresh.is_dry()
    }

    /// Returns whether every offer has its answer, and all new URLs were taken.
    pub fn is_settled(&self) -> bool {
        self.batch.is_none() && self.round.is_none() && self.fresh.is_dry()
    }
}
