//! The section `[recrawl]`: how a crawl comes back to pages that it has fetched.

use super::{DAY, MINUTE, SECOND, section};
use crate::conf::kind::{Kind, choice, decimal, time};
use crate::conf::units::{Decimal, thousandths};
use crate::recrawl::worth::Policy;
use std::time::Duration;

section! {
    /// Coming back to pages that were fetched. A crawl that comes back has no end of its own: it
    /// ends at a limit or when it is stopped.
    recrawl: Recrawl {
        /// Which pages are visited again. "none": no page. "uniform": all, equally often.
        /// "proportional": pages that change twice as often, twice as often. "greedy": the page
        /// whose visit adds most to the time for which its copy is up to date, by its quality;
        /// pages that change too often for that are left alone.
        policy: Option<Policy> = None, policies().or("none"), [];

        /// Share of the requests that visits to known pages may have while new URLs wait at any
        /// server. While none waits, they have all.
        ///
        /// 0 comes back when all new URLs are fetched; near 1 finds new pages slowly.
        share: Decimal = thousandths(500), decimal(0..=990), [];

        /// Shortest time between two visits of a page.
        ///
        /// Short visits pages again that can't have changed when nothing else is to be done; long
        /// misses changes.
        interval_min: Duration = DAY, time(SECOND..=3_650 * DAY), [];

        /// Longest time between two visits of a page. Pages that the policy leaves alone are
        /// visited then, or after eight times the mean time between two visits if that is shorter.
        ///
        /// Short spends the share on pages that never change; long notices late that they do.
        interval_max: Duration = 90 * DAY, time(MINUTE..=3_650 * DAY), [];

        /// Time between two changes that is expected of a page of a server of which nothing is
        /// known. What visits show replaces it.
        change_interval: Duration = 30 * DAY, time(SECOND..=3_650 * DAY), [];
    }
}

fn policies() -> Kind<Policy> {
    choice(&[
        ("uniform", Policy::Uniform),
        ("proportional", Policy::Proportional),
        ("greedy", Policy::Greedy),
    ])
}
