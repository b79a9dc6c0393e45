//! Prices, naively: each server keeps its own, and the servers get a new one in turn.

use super::super::price::Price;

/// The price of each server, by its number.
#[derive(Clone, Debug, Default)]
pub(crate) struct NaivePrices {
    pub(crate) of: Vec<Price>,
    /// That of servers that become known.
    settled: Price,
    latest: Price,
    /// The price that servers get now, and the number of the next one.
    round: Option<(Price, usize)>,
}

/// The times that prices are made of: some hardly differ.
pub(crate) const TIMES_US: [u32; 6] = [0, 1_000, 1_050, 1_100, 90_000, u32::MAX];

impl NaivePrices {
    pub(crate) fn meet(&mut self) {
        self.of.push(self.settled);
    }

    /// Nothing is known of prices after a restart.
    pub(crate) fn restart(&mut self) {
        *self = Self { of: vec![Price::default(); self.of.len()], ..Self::default() };
    }

    pub(crate) fn set(&mut self, price: Price) {
        self.latest = price;
    }

    /// Gives the next server its new price; `None` if all have the latest, by a sixteenth.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if let Some((price, _)) = self.round.filter(|(_, number)| *number >= self.of.len()) {
            (self.settled, self.round) = (price, None);
        }
        let pairs = [
            (self.latest.page_us, self.settled.page_us),
            (self.latest.connection_us, self.settled.connection_us),
        ];
        let far = |(one, next): (u32, u32)| {
            let (more, less) = (u64::from(one.max(next)), u64::from(one.min(next)));
            less < more - more / 16
        };
        if self.round.is_none() && !self.of.is_empty() && pairs.into_iter().any(far) {
            self.round = Some((self.latest, 0));
        }
        let (price, number) = self.round.as_mut()?;
        self.of[*number] = *price;
        *number += 1;
        Some(*number - 1)
    }
}
