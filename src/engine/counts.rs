//! What a crawl has done so far, as plain counters: for the progress line and the summary.

use super::outcome::Outcome;
use super::seeds::Seeds;
use crate::ground::stats::Histogram;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Name of what is counted; owned only after it was read from a checkpoint.
pub type Name = Cow<'static, str>;

/// Victims kept of each cause.
const CUT_MOST: usize = 3;

/// Counters since the crawl began, over all its runs where nothing else is said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Last replies of pages, whatever their status; redirects and robots.txt don't count.
    pub pages: u64,
    /// The same of this run alone.
    #[serde(skip)]
    pub pages_of_run: u64,
    /// Qualities of these pages, as they were rated when they were found, in millionths.
    pub quality_millionths: u64,
    /// Requests sent, robots.txt, retries and redirects included.
    pub requests: u64,
    /// robots.txt files asked for.
    pub robots: u64,
    /// robots.txt files that are not as they should be, by what is odd; the same words are in the
    /// annotations of the crawl log.
    pub robots_odd: BTreeMap<Name, u64>,
    /// Rules of robots.txt files that were read back from the disk.
    pub rules_read: u64,
    /// Bytes received, after TLS.
    pub received_bytes: u64,
    /// Bytes sent, before TLS.
    pub sent_bytes: u64,
    /// Bytes of page text after decoding.
    pub text_bytes: u64,
    /// Connections asked for.
    pub connections: u64,
    /// Visits that went on with a parked connection: handshakes saved.
    pub parked_again: u64,
    /// TLS handshakes in full.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed an earlier session.
    pub handshakes_resumed: u64,
    /// Visits ended.
    pub visits: u64,
    /// Requests sent while another on the same connection was unanswered.
    pub pipelined: u64,
    /// Requests that a closing server left unanswered and that went back to their queue.
    pub left_over: u64,
    /// Requests repeated alone, to see whether a server answers pipelined ones in order.
    pub compared: u64,
    /// Whole replies that were not filed, because it was not proven whose they are: their URLs
    /// went back to their queue.
    pub put_back: u64,
    /// Servers that are asked one by one from now on, because their replies don't match requests.
    pub unmatched: u64,
    /// Second and later tries of a URL.
    pub retries: u64,
    /// Servers given up.
    pub retired: u64,
    /// References found in pages.
    pub links: u64,
    /// References that are no http(s) URL, or one that is too long.
    pub links_invalid: u64,
    /// References out of scope.
    pub links_out_of_scope: BTreeMap<Name, u64>,
    /// Chains of redirects begun.
    pub chains: u64,
    /// References not followed because a page or header says so.
    pub links_nofollow: u64,
    /// What was cut short, left out or given up for a bound, by cause: the same words stand in the
    /// annotations of the crawl log.
    pub cut: BTreeMap<Name, u64>,
    /// Archive files that are damaged or missing, and how many captures were lost with each that
    /// count as fetched: 0 after a rebuild, which fetches them again.
    pub archive_damaged: BTreeMap<String, u64>,
    /// From what most was cut, by cause: how much, and the URL or name. The largest first.
    pub cut_most: BTreeMap<Name, Vec<(u64, String)>>,
    /// URLs new to the crawl.
    pub urls_new: u64,
    /// Replies that were in the archive already when a crawl went on: read back, not asked for.
    pub replayed: u64,
    /// Checkpoints that count.
    pub checkpoints: u64,
    /// Times that the disk was full.
    pub disk_full: u64,
    /// What became of the seeds.
    pub seeds: Seeds,
    /// What was lost with servers that were given up.
    pub losses: Losses,
    /// Times that nobody could be reached and the crawl paused.
    pub outages: u64,
    /// Times that a connection was paused for want of memory.
    pub pauses: u64,
    /// Late events of connections that were gone.
    pub late_events: u64,
    /// Fetches by what they came to.
    pub outcomes: BTreeMap<Name, u64>,
    /// Replies that could not be read, by what was wrong.
    pub broken: BTreeMap<Name, u64>,
    /// Replies by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests per connection that has ended in this run.
    #[serde(skip_deserializing)]
    pub requests_per_connection: Histogram,
    /// Observed rest of servers as a share of the promised one, in thousandths, in this run.
    #[serde(skip_deserializing)]
    pub rest_kept_milli: Histogram,
}

/// URLs of servers that were given up, or whose robots.txt could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// URLs in all.
    pub urls: u64,
    /// Servers of which URLs were lost although they had answered.
    pub answered: u64,
    /// The servers that most URLs were lost with, by origin: at most [`LARGEST`].
    pub largest: BTreeMap<String, Loss>,
}

/// What was lost with one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// URLs.
    pub urls: u64,
    /// Why it was given up: the last outcome.
    pub cause: Name,
    /// It had answered before.
    pub answered: bool,
}

/// Most servers that are listed by name.
pub const LARGEST: usize = 64;

impl Losses {
    /// URLs of a server were lost, beside so many that had been lost with it before.
    pub(super) fn add(&mut self, origin: &str, mut loss: Loss, before: u64) {
        if loss.urls == 0 {
            return;
        }
        self.urls += loss.urls;
        if let Some(known) = self.largest.get_mut(origin) {
            self.answered += u64::from(loss.answered && !known.answered);
            known.answered |= loss.answered;
            known.urls += loss.urls;
            known.cause = loss.cause;
            return;
        }
        let is_first = before == 0 || self.largest.len() < LARGEST;
        self.answered += u64::from(loss.answered && is_first);
        loss.urls += before;
        if self.largest.len() >= LARGEST {
            let least = self.largest.iter().min_by_key(|(_, loss)| loss.urls);
            let least = least.filter(|(_, least)| least.urls < loss.urls);
            let Some(name) = least.map(|(name, _)| name.clone()) else { return };
            self.largest.remove(&name);
        }
        self.largest.insert(origin.to_owned(), loss);
    }

    /// A server was not taken back: its URLs will be lost again, one by one.
    pub(super) fn still(&mut self, origin: &str, loss: Loss) {
        if self.largest.len() < LARGEST {
            self.answered += u64::from(loss.answered);
            self.largest.insert(origin.to_owned(), loss);
        }
    }

    /// Another URL was found of a server that had been given up.
    pub(super) fn another(&mut self, origin: &str) {
        self.urls += 1;
        if let Some(loss) = self.largest.get_mut(origin) {
            loss.urls += 1;
        }
    }
}

impl Counts {
    pub(super) fn outcome(&mut self, outcome: Outcome) {
        *self.outcomes.entry(outcome.name().into()).or_default() += 1;
        if let Some(status) = outcome.status() {
            *self.statuses.entry(status).or_default() += 1;
        }
    }

    /// It did not count after all: it comes again.
    pub(super) fn uncount(&mut self, outcome: Outcome) {
        self.outcomes.entry(outcome.name().into()).and_modify(|count| *count -= 1);
        if let Some(status) = outcome.status() {
            self.statuses.entry(status).and_modify(|count| *count -= 1);
        }
    }

    pub(super) fn broken(&mut self, name: &'static str) {
        *self.broken.entry(name.into()).or_default() += 1;
    }

    pub(super) fn robots_odd(&mut self, what: &'static str) {
        *self.robots_odd.entry(what.into()).or_default() += 1;
    }

    /// `count` more were cut for this cause.
    pub(super) fn cut(&mut self, cause: &'static str, count: u64) {
        *self.cut.entry(cause.into()).or_default() += count;
    }

    /// `count` more were cut for this cause from `whom`, which is kept if few lost more.
    pub(super) fn cut_from(&mut self, cause: &'static str, count: u64, whom: &str) {
        self.cut(cause, count);
        let most = self.cut_most.entry(cause.into()).or_default();
        let place = most.partition_point(|(other, _)| *other >= count);
        if place < CUT_MOST {
            most.truncate(CUT_MOST - 1);
            most.insert(place.min(most.len()), (count, whom.to_owned()));
        }
    }

    /// `total` were cut for this cause from `whom` so far, which is kept if few lost more.
    pub(super) fn cut_in_all(&mut self, cause: &'static str, total: u64, whom: &str) {
        let most = self.cut_most.entry(cause.into()).or_default();
        match most.iter().position(|(_, known)| known == whom) {
            Some(place) => most[place].0 = total.max(most[place].0),
            None if most.len() < CUT_MOST => most.push((total, whom.to_owned())),
            None => {
                let last = most.last_mut().expect("it is full");
                if last.0 < total {
                    *last = (total, whom.to_owned());
                }
            }
        }
        most.sort_by_key(|(lost, _)| std::cmp::Reverse(*lost));
    }

    pub(super) fn out_of_scope(&mut self, name: &'static str) {
        *self.links_out_of_scope.entry(name.into()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: each server counts once, whether its URLs are lost together or one by one, and those
    /// that lost most are kept.
    #[test]
    fn losses_of_a_server_add_up() {
        let mut losses = Losses::default();
        let loss = |urls, answered| Loss { urls, cause: "reset".into(), answered };
        for number in 0..LARGEST {
            losses.add(&format!("http://{number}.test"), loss(2, false), 0);
        }
        for before in 0..5 {
            losses.add("http://a.test", loss(1, true), before);
        }
        losses.add("http://a.test", loss(3, true), 5);
        losses.add("http://a.test", loss(0, true), 8);
        assert_eq!((losses.urls, losses.answered), (2 * LARGEST as u64 + 8, 1));
        assert_eq!((losses.largest["http://a.test"].urls, losses.largest.len()), (8, LARGEST));
        let mut losses = Losses::default();
        losses.add("http://a.test", loss(1, false), 0);
        losses.add("http://a.test", loss(1, true), 1);
        assert_eq!((losses.answered, losses.largest["http://a.test"].urls), (1, 2));
    }

    #[test]
    fn those_that_lost_most_are_kept() {
        let mut counts = Counts::default();
        for (total, whom) in [(1, "a"), (1, "b"), (2, "a"), (1, "c"), (1, "d"), (3, "d"), (1, "a")]
        {
            counts.cut_in_all("x", total, whom);
        }
        let most: Vec<_> = counts.cut_most["x"].iter().map(|(n, whom)| (*n, &**whom)).collect();
        assert_eq!(most, [(3, "d"), (2, "a"), (1, "b")]);
    }
}
