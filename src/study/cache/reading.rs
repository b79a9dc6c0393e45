//! Interprets a curve of miss rates: where it is flat, where it falls, and which size suffices.
//!
//! Everything is computed from CLOCK's miss rates at sizes of powers of two, by these rules:
//! - the *floor* is the miss rate of an unlimited cache: URLs of the stream over links;
//! - the *critical region* is where the miss rate falls fastest: the doubling of the size that
//!   reduces it most, and its neighbours as long as each reduces it at least half as much;
//! - the *plateau* is the longest run of at least [`PLATEAU`] doublings before that region, each of
//!   which reduces the miss rate by less than [`FLAT`];
//! - the *size that suffices* is the smallest whose miss rate is at most [`GOAL`], the paper's aim,
//!   or at most [`NEAR_FLOOR`] times the floor if that is more.

use super::policy::Policy;
use super::study::Curves;
use crate::study::report::number::{bytes, grouped};

/// A doubling of the size that reduces the miss rate by less than this share of the links is flat.
pub(super) const FLAT: f64 = 0.02;
/// The least number of flat doublings in a row that are a plateau.
const PLATEAU: usize = 2;
/// The miss rate aimed at, as a share of the links.
pub(super) const GOAL: f64 = 0.2;
/// The factor of the floor that is near enough to it, since no cache gets below the floor.
pub(super) const NEAR_FLOOR: f64 = 1.1;

/// The interpretation of a curve of miss rates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// First and last level (binary logarithm of the size) of the plateau; `None` if there is none.
    pub(super) plateau: Option<(usize, usize)>,
    /// First and last level of the critical region; `None` if the miss rate never falls.
    pub(super) critical: Option<(usize, usize)>,
    /// The miss rate of an unlimited cache.
    pub(super) floor: f64,
    /// The level of the size that suffices.
    pub(super) enough: usize,
    /// The miss rate at each level.
    pub(super) rates: Vec<f64>,
}

impl Reading {
    /// Interprets the curve of CLOCK's miss rates.
    pub(super) fn of(curves: &Curves) -> Self {
        let rates = (0..curves.levels()).map(|level| curves.rate(Policy::Clock, level));
        Self::of_rates(rates.collect(), curves.floor())
    }

    fn of_rates(rates: Vec<f64>, floor: f64) -> Self {
        let drops: Vec<f64> = rates.windows(2).map(|pair| pair[0] - pair[1]).collect();
        let critical = steepest(&drops);
        let before = critical.map_or(drops.len(), |(from, _)| from);
        let most = GOAL.max(NEAR_FLOOR * floor);
        let enough = rates.iter().position(|rate| *rate <= most);
        let enough = enough.unwrap_or(rates.len() - 1);
        Self { plateau: flattest(&drops[..before]), critical, floor, enough, rates }
    }

    /// Returns the interpretation in words. `connections` is the number of connections that share
    /// the cache.
    pub(super) fn text(&self, connections: f64) -> String {
        let percent = |level: usize| format!("{:.1}%", 100.0 * self.rates[level]);
        let mut sentences = Vec::new();
        match self.plateau {
            Some((from, to)) => sentences.push(format!(
                "From 2^{from} to 2^{to} entries the miss rate hardly changes ({} to {}).",
                percent(from),
                percent(to)
            )),
            None => sentences.push("The miss rate has no plateau.".to_owned()),
        }
        match self.critical {
            Some((from, to)) => sentences.push(format!(
                "It falls fastest from 2^{from} to 2^{to} entries, from {} to {}; beyond that a \
                 doubling gains less than half as much.",
                percent(from),
                percent(to)
            )),
            None => sentences.push("It never falls.".to_owned()),
        }
        let entries = (1_u64 << self.enough) as f64;
        sentences.push(format!(
            "No cache gets below {:.1}%: that many links lead to a new URL. \
             2^{} entries get to {:.1}%; that is {} for each of the {connections:.0} connections \
             on a visit, and {} of memory at 66 bits an entry.",
            100.0 * self.floor,
            self.enough,
            100.0 * self.rates[self.enough],
            grouped(entries / connections, 0),
            bytes(entries * 66.0 / 8.0)
        ));
        sentences.join(" ")
    }
}

/// Returns the first and last level of the steepest region: the doubling that reduces the miss rate
/// most, and its neighbours as long as each reduces it at least half as much. `drops` has the
/// reduction by each doubling.
fn steepest(drops: &[f64]) -> Option<(usize, usize)> {
    let steep = |most: usize, at: &usize| if drops[*at] > drops[most] { *at } else { most };
    let most = (1..drops.len()).fold(0, |most, at| steep(most, &at));
    if drops.get(most).is_none_or(|drop| *drop <= 0.0) {
        return None;
    }
    let is_steep = |at: &usize| drops[*at] >= drops[most] / 2.0;
    let from = (0..most).rev().take_while(is_steep).last().unwrap_or(most);
    let to = (most + 1..drops.len()).take_while(is_steep).last().unwrap_or(most);
    Some((from, to + 1))
}

/// Returns the first and last level of the longest run of flat doublings; of equally long runs, the
/// last one. `drops` has the reduction by each doubling.
fn flattest(drops: &[f64]) -> Option<(usize, usize)> {
    let (mut best, mut from) = (None, 0);
    for (at, drop) in drops.iter().enumerate() {
        if *drop >= FLAT {
            from = at + 1;
            continue;
        }
        let is_longer =
            best.is_none_or(|(first, last): (usize, usize)| at + 1 - from >= last - first);
        if is_longer && at + 1 - from >= PLATEAU {
            best = Some((from, at + 1));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_read_by_the_rules() {
        type Span = Option<(usize, usize)>;
        let cases: [(&[f64], Span, Span, usize, &str); 7] = [
            (
                &[0.75, 0.71, 0.70, 0.70, 0.69, 0.55, 0.35, 0.21, 0.19, 0.19],
                Some((1, 4)),
                Some((4, 7)),
                8,
                "the paper's shape",
            ),
            (&[0.9, 0.7, 0.5, 0.3, 0.1], None, Some((0, 4)), 4, "falls from the first entry on"),
            (&[0.5, 0.5, 0.5], Some((0, 2)), None, 0, "flat: no cache helps"),
            (&[0.6, 0.4, 0.35, 0.3, 0.3], None, Some((0, 1)), 3, "within 1.1 of the floor"),
            (&[0.1], None, None, 0, "one URL"),
            (&[0.5, 0.49, 0.4, 0.4, 0.39, 0.1], Some((2, 4)), Some((4, 5)), 5, "two falls"),
            (&[0.5, 0.49, 0.4, 0.1], None, Some((2, 3)), 3, "one flat doubling is no plateau"),
        ];
        for (rates, plateau, critical, enough, why) in cases {
            let floor = *rates.last().expect("some");
            let reading = Reading::of_rates(rates.to_vec(), floor);
            let found = (reading.plateau, reading.critical, reading.enough);
            assert_eq!(found, (plateau, critical, enough), "{why}");
            assert!(!reading.text(20.0).contains("NaN"), "{why}");
        }
    }
}
