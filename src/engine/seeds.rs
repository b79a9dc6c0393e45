//! The outcomes of seeds: how many succeeded, and which failed and why.
//!
//! A seed succeeds if its reply is a page, or a redirect that is followed. With any other outcome
//! it has failed, until a later try succeeds, except if the operator wanted that: seeds that are
//! blocked, or that a limit on pages leaves out, have not failed. A queued URL is known to be a
//! seed by the letter in its item that says how it was found (`SEED`).
//!
//! Cost: memory for `FAILED_MAX` failed seeds; further ones are only counted.

use super::backlog::Item;
use super::outcome::Outcome;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The maximum number of failed seeds that are listed by URL; further ones are only counted.
const FAILED_MAX: usize = 1_000;
/// The letter of a seed, in place of the letter for how a URL was found.
pub(super) const SEED: u8 = b'-';

/// The outcomes of all seeds so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seeds {
    /// The number of seeds that succeeded.
    pub done: u64,
    /// The failed seeds: for each URL the reason, at most `FAILED_MAX`.
    pub failed: BTreeMap<String, Cow<'static, str>>,
    /// The number of failed seeds beyond those in `failed`.
    pub failed_beyond: u64,
    /// The number of seeds that a limit on the pages of a server, a domain or a site left out.
    pub limited: u64,
}

impl Seeds {
    /// Returns the number of failed seeds, listed or not.
    pub fn failed_count(&self) -> u64 {
        self.failed.len() as u64 + self.failed_beyond
    }

    /// Notes the final outcome of a URL, if it is a seed.
    pub(super) fn note_outcome(&mut self, item: &Item, url: &str, outcome: Outcome) {
        // A seed that the operator has blocked has not failed.
        if item.found_as != SEED || outcome == Outcome::Blocked {
            return;
        }
        match outcome.status() {
            Some(200..400) => self.note_success(url),
            None if outcome == Outcome::BodyTooLarge => self.note_success(url),
            Some(status) => self.note_failure(url, status.to_string().into()),
            None if matches!(outcome, Outcome::PagesMax(_)) => {
                self.limited += 1;
                self.failed.remove(url);
            }
            None => self.note_failure(url, outcome.name().into()),
        }
    }

    /// Notes that the seed with this URL was fetched.
    pub(super) fn note_success(&mut self, url: &str) {
        self.done += 1;
        self.failed.remove(url);
    }

    /// Notes that the seed with this URL failed, and why.
    pub(super) fn note_failure(&mut self, url: &str, why: Cow<'static, str>) {
        if self.failed.len() < FAILED_MAX || self.failed.contains_key(url) {
            self.failed.insert(url.to_owned(), why);
        } else {
            self.failed_beyond += 1;
        }
    }

    /// Takes out the URLs of the listed failed seeds, which are to be tried again. Those that are
    /// not listed still count as failed.
    pub(super) fn take_failed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failed).into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_failed_may_succeed_later() {
        let mut seeds = Seeds::default();
        seeds.note_failure("http://a.test/", "reset".into());
        seeds.note_failure("http://b.test/", "404".into());
        seeds.note_success("http://a.test/");
        assert_eq!((seeds.done, seeds.failed_count()), (1, 1));
        (0..2_000)
            .for_each(|number| seeds.note_failure(&format!("http://{number}.test/"), "404".into()));
        assert_eq!((seeds.failed.len(), seeds.failed_count()), (FAILED_MAX, 2_001));
    }
}
