//! Qualities by Zipf's law, drawn for each URL from a seed.
//!
//! Each URL has a rank, drawn uniformly from 1 to `pages` by its keyed hash, and the quality of
//! that rank by the law: proportional to `1 / rank^exponent`, scaled so that the mean over all
//! ranks is one. Nothing is stored: a URL has the same quality whenever it is found.
//!
//! Laws: only integers are used, so that the same seed gives the same qualities on every machine; a
//! better rank never has a lower quality. The mean is one to a part in ten million, except for two
//! limits of [`Quality`]: in a web of more than about twenty million pages (exponent one) the first
//! ranks would exceed [`Quality::MAX`] and are capped, and a quality below half a millionth is
//! zero.
//! Cost: 50 ns a URL for an exponent of one, most of it the hash; for others a logarithm and a
//! power computed digit by digit, 280 ns. Creation takes at most 15 ms.
//! Source: Cao, Jiang, Singh: Scheduling Web Crawl for Better Performance and Quality, Princeton
//! TR-682-03 (qualities by rank, assigned at random).

use crate::ground::quality::Quality;
use crate::url::{Fingerprinter, UrlRef};

/// The maximum number of pages. With it, `pages * 10^6` millionths and [`SCALE_BITS`] more bits fit
/// into 64 bits.
const PAGES_MAX: u64 = 1_000_000_000_000;

/// The number of fraction bits of a weight, so that the weight one is `1 << 63`.
const WEIGHT_BITS: u32 = 63;

/// The number of fraction bits that the scale has below a millionth.
const SCALE_BITS: u32 = 4;

/// A source of random qualities.
#[derive(Debug)]
pub(super) struct Zipf {
    draws: Fingerprinter,
    pages: u64,
    law: Law,
    /// The quality of the first rank, in millionths times `1 << SCALE_BITS`.
    scale: u64,
}

impl Zipf {
    /// Creates a source with `pages` ranks, at least 1 and at most [`PAGES_MAX`].
    pub(super) fn new(seed: u64, pages: u64, exponent_milli: u32) -> Self {
        let pages = pages.clamp(1, PAGES_MAX);
        let law = Law::new(exponent_milli);
        let all = (u128::from(pages) * u128::from(Quality::ONE.millionths())) << SCALE_BITS;
        let scale = (all << WEIGHT_BITS) / law.sum(pages);
        let scale = u64::try_from(scale).expect("the first weight alone is one");
        let mut key = [0; 16];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { draws: Fingerprinter::new(key), pages, law, scale }
    }

    /// Returns the quality drawn for a URL.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        self.at(self.rank(url))
    }

    fn rank(&self, url: UrlRef<'_>) -> u64 {
        let hash = self.draws.of(url.as_str().as_bytes()).0;
        let drawn = (u128::from(hash) * u128::from(self.pages)) >> 64;
        1 + u64::try_from(drawn).expect("below the number of pages")
    }

    fn at(&self, rank: u64) -> Quality {
        const BITS: u32 = WEIGHT_BITS + SCALE_BITS;
        let exact = u128::from(self.scale) * u128::from(self.law.weight(rank));
        let nearest = (exact + (1 << (BITS - 1))) >> BITS;
        Quality::from_millionths(u64::try_from(nearest).unwrap_or(u64::MAX))
    }
}

/// The function `1 / rank^exponent` in integers.
#[derive(Debug)]
struct Law {
    exponent_milli: u32,
    /// Two to the power of minus one half, minus one quarter, and so on, in units of `2^-64`.
    roots: Box<[u64; LOG_BITS as usize]>,
}

/// The number of fraction bits of a logarithm. It makes powers exact to a part in 10^12.
const LOG_BITS: u32 = 40;

impl Law {
    fn new(exponent_milli: u32) -> Self {
        let mut roots = Box::new([0; LOG_BITS as usize]);
        // The square root of a half, and then repeatedly the root of the root. A half, in units of
        // 2^-64, is 2^63.
        let mut square = 1_u64 << 63;
        for root in roots.iter_mut() {
            let exact = (u128::from(square) << 64).isqrt();
            *root = u64::try_from(exact).expect("the root of what is below 2^128");
            square = *root;
        }
        Self { exponent_milli, roots }
    }

    /// Returns the weight of a rank, in units of `2^-63`: one at rank 1.
    fn weight(&self, rank: u64) -> u64 {
        const ONE: u64 = 1 << WEIGHT_BITS;
        if self.exponent_milli == 1_000 {
            return (ONE + rank / 2) / rank;
        }
        let power = u128::from(log2(rank)) * u128::from(self.exponent_milli) / 1_000;
        let whole = u32::try_from(power >> LOG_BITS).unwrap_or(u32::MAX);
        let digits = u64::try_from(power & ((1 << LOG_BITS) - 1)).expect("masked");
        let mut weight = ONE;
        for (index, root) in (1..).zip(self.roots.iter()) {
            // Both values are computed, so that the choice compiles to no branch, which would be
            // mispredicted every other time.
            let lower = high(weight, *root);
            weight = if (digits >> (LOG_BITS - index)) & 1 == 1 { lower } else { weight };
        }
        weight.checked_shr(whole).unwrap_or(0)
    }

    /// Returns the sum of the weights of ranks 1 to `pages`, in units of `2^-63`.
    ///
    /// The first four thousand ranks are summed one by one. After them runs of ranks, each short
    /// relative to its first rank, count as their length times the weight of their middle. By
    /// Taylor's formula the relative error of a run is at most `exponent * (exponent + 1) / 24 *
    /// (length / rank)^2`: 5e-8 for an exponent of one. For steeper laws the runs contribute almost
    /// nothing.
    fn sum(&self, pages: u64) -> u128 {
        let (mut sum, mut rank) = (0, 1);
        while rank <= pages {
            let left = pages - rank + 1;
            // The length is odd, so that the middle of the run is a rank.
            let run = ((rank >> 11) | 1).min((left - 1) | 1);
            sum += u128::from(self.weight(rank + run / 2)) * u128::from(run);
            rank += run;
        }
        sum
    }
}

/// Returns the binary logarithm of `number`, which isn't 0, with [`LOG_BITS`] fraction bits. It is
/// computed digit by digit, by repeated squaring.
fn log2(number: u64) -> u64 {
    let whole = number.ilog2();
    // The rest is from one to two, in units of 2^-63.
    let mut rest = number << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..LOG_BITS {
        // The square is from one to four, in units of 2^-62.
        let square = high(rest, rest);
        let is_two = square >> 63;
        log = (log << 1) | is_two;
        rest = square << (1 - is_two);
    }
    log
}

/// Returns the upper 64 bits of the product of two numbers.
fn high(one: u64, other: u64) -> u64 {
    let product = (u128::from(one) * u128::from(other)) >> 64;
    u64::try_from(product).expect("half of the bits are gone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::tests::url;

    /// Law: the mean over all ranks is one; a better rank has no lower quality; the first has the
    /// quality of the law.
    #[test]
    fn the_mean_page_is_worth_one() {
        for (pages, exponent_milli) in [
            (1, 1_000),
            (2, 1_000),
            (3, 500),
            (1_000, 0),
            (1_000, 1_000),
            (4_097, 1_000),
            (50_000, 1),
            (50_000, 500),
            (50_000, 999),
            (50_000, 1_001),
            (50_000, 2_000),
            (50_000, 5_000),
            (300_000, 1_000),
        ] {
            let zipf = Zipf::new(1, pages, exponent_milli);
            let exponent = f64::from(exponent_milli) / 1e3;
            let (mut sum, mut last) = (0_u64, u64::MAX);
            let mut weights = 0.0;
            for rank in 1..=pages {
                let worth = zipf.at(rank).millionths();
                assert!(worth <= last, "rank {rank} of {pages}, exponent {exponent}");
                (sum, last) = (sum + worth, worth);
                weights += (rank as f64).powf(-exponent);
            }
            let mean = sum as f64 / pages as f64;
            assert!((mean - 1e6).abs() <= 0.6, "{mean} of {pages}, exponent {exponent}");
            let first = zipf.at(1).millionths() as f64 * weights / pages as f64;
            assert!((first / 1e6 - 1.0).abs() < 1e-6, "{first} of {pages}, exponent {exponent}");
        }
    }

    /// Sums of runs, compared with closed forms: Euler's constant and pi.
    #[test]
    fn sums_of_large_webs() {
        let one = f64::from(1 << 21) * f64::from(1 << 21) * f64::from(1 << 21);
        for pages in [1_000_000, 1_000_000_000, PAGES_MAX] {
            let n = pages as f64;
            for (exponent_milli, expected) in [
                (0, n),
                (500, 2.0 * n.sqrt() - 1.460_354_508_809_587 + 0.5 / n.sqrt()),
                (1_000, n.ln() + 0.577_215_664_901_533 + 0.5 / n),
                (2_000, std::f64::consts::PI.powi(2) / 6.0 - 1.0 / n),
            ] {
                let sum = Law::new(exponent_milli).sum(pages) as f64 / one;
                let error = (sum / expected - 1.0).abs();
                assert!(error < 1e-7, "{sum}, not {expected}: {pages}, {exponent_milli}");
            }
        }
    }

    /// The weights, compared with floating point; and for an exponent of one, by both algorithms.
    #[test]
    fn weights_are_powers() {
        let one = (1_u64 << WEIGHT_BITS) as f64;
        for exponent_milli in [0, 1, 250, 500, 750, 999, 1_000, 1_001, 1_500, 2_000] {
            let law = Law::new(exponent_milli);
            for rank in (1..2_000).chain([4_095, 65_536, 1_000_003, 123_456_789]) {
                let exact = (rank as f64).powf(-f64::from(exponent_milli) / 1e3);
                let found = law.weight(rank) as f64 / one;
                assert!((found - exact).abs() < 1e-15 + exact * 1e-11, "{exponent_milli} {rank}");
            }
        }
        for (exponent_milli, rank, weight) in [
            (u32::MAX, 1, 1 << 63),
            (u32::MAX, 2, 0),
            (u32::MAX, PAGES_MAX, 0),
            (2_000, 8, 1 << 57),
        ] {
            assert_eq!(Law::new(exponent_milli).weight(rank), weight, "{exponent_milli} {rank}");
        }
        assert_eq!(log2(1), 0);
        assert_eq!(log2(1 << 40), 40 << LOG_BITS);
    }

    /// Ranks are drawn uniformly: a hundred ranges of ranks, by chi squared (99 expected, with five
    /// times its deviation of 14 allowed).
    #[test]
    fn ranks_are_drawn_evenly_and_by_seed() {
        const DRAWS: u32 = 20_000;
        let (one, other) = (Zipf::new(1, 1_000_000, 1_000), Zipf::new(2, 1_000_000, 1_000));
        let (mut counts, mut same, mut qualities) = ([0_u32; 100], 0, Vec::new());
        for page in 0..DRAWS {
            let url = url(&format!("http://a.test/{page}"));
            let rank = one.rank(url.view());
            assert!((1..=1_000_000).contains(&rank));
            counts[(rank - 1) as usize / 10_000] += 1;
            same += u32::from(rank.abs_diff(other.rank(url.view())) < 10_000);
            qualities.push(one.of(url.view()).millionths());
        }
        let mean = f64::from(DRAWS / 100);
        let chi: f64 = counts.iter().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum();
        assert!((29.0..169.0).contains(&chi), "{chi}");
        // Different seeds are independent: one in fifty is this close.
        assert!((200..600).contains(&same), "{same}");
        // The k-th best of n draws from N ranks has a rank of about k N / n, and the quality of
        // that rank.
        qualities.sort_unstable_by(|one, other| other.cmp(one));
        for best in [50, 100, 1_000, 10_000, 20_000] {
            let rank = best as f64 * 1e6 / f64::from(DRAWS);
            let expected = one.at(1).millionths() as f64 / rank;
            let found = qualities[best - 1] as f64;
            let slack = 5.0 / (best as f64).sqrt();
            assert!((found / expected - 1.0).abs() < slack, "{best}: {found} for {expected}");
        }
    }

    /// Computed independently, with forty decimal digits and series for the sums. These values must
    /// never change, or earlier experiments could not be repeated.
    #[test]
    fn draws_are_the_same_on_every_machine() {
        for (pages, exponent_milli, expected) in [
            (1_000_000, 1_000, [102_761, 229_433]),
            (1_000_000, 500, [608_516, 909_256]),
            (PAGES_MAX, 1_000, [52_432, 117_064]),
        ] {
            let zipf = Zipf::new(1, pages, exponent_milli);
            let found = ["http://a.test/", "https://example.com/x?y"]
                .map(|text| zipf.of(url(text).view()).millionths());
            assert_eq!(found, expected, "{pages} {exponent_milli}");
        }
    }

    #[test]
    fn the_best_of_a_large_web_are_capped_and_the_worst_are_nothing() {
        let zipf = Zipf::new(1, PAGES_MAX, 1_000);
        assert_eq!(zipf.at(1), Quality::MAX);
        assert!(zipf.at(100_000) < Quality::MAX, "10^12 / 28.2 / 10^5");
        let steep = Zipf::new(1, 1_000_000, 4_000);
        assert_eq!(steep.at(1_000_000), Quality::ZERO);
        let none = Zipf::new(1, 0, 1_000);
        assert_eq!(none.of(url("http://a.test/").view()), Quality::ONE, "one page at least");
    }
}
