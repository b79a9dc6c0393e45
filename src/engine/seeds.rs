//! What became of the seeds: how many succeeded, and which failed, why.
//!
//! A seed succeeds if it was answered with a page or a redirect that is followed; whatever else it
//! comes to, it failed, until a later try succeeds. The letter of its item says that a URL is one.
//!
//! Cost: memory for `FAILED_MAX` failed seeds; beyond, they are counted.

use super::backlog::Item;
use super::outcome::Outcome;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Most failed seeds that are known by URL.
const FAILED_MAX: usize = 1_000;
/// Letter of a seed in a hop path.
pub(super) const SEED: u8 = b'-';

/// What became of the seeds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seeds {
    /// Fetched.
    pub done: u64,
    /// Failed, by URL: why.
    pub failed: BTreeMap<String, Cow<'static, str>>,
    /// Failed beyond those listed.
    pub failed_beyond: u64,
}

impl Seeds {
    /// Failed seeds.
    pub fn failed_count(&self) -> u64 {
        self.failed.len() as u64 + self.failed_beyond
    }

    /// A URL is settled for good; those that are no seeds are passed over.
    pub(super) fn settled(&mut self, item: &Item, url: &str, outcome: Outcome) {
        if item.found_as != SEED {
            return;
        }
        match outcome.status() {
            Some(200..400) => self.succeeds(url),
            None if outcome == Outcome::BodyTooLarge => self.succeeds(url),
            Some(status) => self.fails(url, status.to_string().into()),
            None => self.fails(url, outcome.name().into()),
        }
    }

    /// A seed was fetched.
    pub(super) fn succeeds(&mut self, url: &str) {
        self.done += 1;
        self.failed.remove(url);
    }

    /// A seed failed.
    pub(super) fn fails(&mut self, url: &str, why: Cow<'static, str>) {
        if self.failed.len() < FAILED_MAX || self.failed.contains_key(url) {
            self.failed.insert(url.to_owned(), why);
        } else {
            self.failed_beyond += 1;
        }
    }

    /// The failed seeds that are known are tried again: what they come to then counts. Those beyond
    /// stay failed.
    pub(super) fn begin_again(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failed).into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_failed_may_succeed_later() {
        let mut seeds = Seeds::default();
        seeds.fails("http://a.test/", "reset".into());
        seeds.fails("http://b.test/", "404".into());
        seeds.succeeds("http://a.test/");
        assert_eq!((seeds.done, seeds.failed_count()), (1, 1));
        (0..2_000).for_each(|number| seeds.fails(&format!("http://{number}.test/"), "404".into()));
        assert_eq!((seeds.failed.len(), seeds.failed_count()), (FAILED_MAX, 2_001));
    }
}
