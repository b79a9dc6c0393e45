//! The sections that say who comes first: `[schedule]`, the order of servers and of their URLs, and
//! `[quality]`, what URLs are thought to be worth. As all sections, plain values.

use super::units::Decimal;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::frontier::policy::Policy;
pub use crate::rating::{Site, Source};

/// `[schedule]`: who comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The order of servers and of the URLs of each.
    pub policy: Policy,
    /// Weight of the old estimate of a server's times against a new measurement.
    pub smoothing: Decimal,
    /// How many times faster a server that keeps connections open is thought to answer.
    pub speedup: Decimal,
    /// Connection time of a server that has not been measured.
    pub connect_time_new: Duration,
    /// Response time of a server that has not been measured.
    pub response_time_new: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            policy: Policy::Bfs,
            smoothing: Decimal::from_thousandths(800),
            speedup: Decimal::from_thousandths(1_200),
            connect_time_new: Duration::from_millis(100),
            response_time_new: Duration::from_millis(500),
        }
    }
}

/// `[quality]`: what URLs are thought to be worth, the mean one being worth 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qualities {
    /// Where qualities come from.
    pub source: Source,
    /// The table of [`Source::Table`]: a URL or a host and its quality, one a line.
    pub file: Option<PathBuf>,
    /// Quality of a URL that the table doesn't have.
    pub unlisted: Decimal,
    /// Decides the draws of [`Source::Zipf`].
    pub zipf_seed: u64,
    /// Pages among which these draws spread.
    pub zipf_pages: u64,
    /// Exponent of Zipf's law.
    pub zipf_exponent: Decimal,
    /// What estimates are kept by.
    pub site: Site,
    /// Sites that are counted at most.
    pub sites_max: usize,
}

impl Default for Qualities {
    fn default() -> Self {
        Self {
            source: Source::Uniform,
            file: None,
            unlisted: Decimal::from_thousandths(1_000),
            zipf_seed: 1,
            zipf_pages: 1_000_000,
            zipf_exponent: Decimal::from_thousandths(1_000),
            site: Site::Server,
            sites_max: 1_000_000,
        }
    }
}
