//! The counters of a crawl, for the progress line and the summary.

use super::outcome::Outcome;
use super::seeds::Seeds;
use crate::ground::stats::Histogram;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of a kind of thing that is counted. It is an owned string only if it was read from a
/// checkpoint.
pub type Name = Cow<'static, str>;

/// The maximum number of media types that are counted by name. Servers choose the names.
pub const TYPES_MAX: usize = 64;
/// The maximum length of a media type that is counted by name, in bytes.
const TYPE_BYTES_MAX: usize = 64;

/// The maximum number of largest losses that are listed for each cause.
const CUT_MOST: usize = 3;

/// Patterns of URLs whose pages repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PatternCounts {
    /// Those whose URLs were put behind others.
    pub slowed: u64,
    /// Those whose URLs were left out.
    pub ended: u64,
}

/// Counters since the crawl began, over all its runs unless noted otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Pages with their final reply, whatever its status. Redirects and robots.txt files don't
    /// count.
    pub pages: u64,
    /// Pages fetched in this run alone.
    #[serde(skip)]
    pub pages_of_run: u64,
    /// The sum of the qualities of the fetched pages, in millionths. The quality of a page is the
    /// estimate made when its URL was discovered.
    pub quality_millionths: u64,
    /// Requests sent, including those for robots.txt, retries and redirects.
    pub requests: u64,
    /// Requests for robots.txt files.
    pub robots: u64,
    /// The number of robots.txt files with a defect, by the kind of defect. The kinds are the
    /// annotations of the crawl log.
    pub robots_odd: BTreeMap<Name, u64>,
    /// robots.txt rule sets that were read back from the cache on disk.
    pub rules_read: u64,
    /// Lines of the crawl log that show the robots.txt rules of a server and belong to no fetch.
    pub rules_lines: u64,
    /// Bytes received, after TLS.
    pub received_bytes: u64,
    /// Bytes sent, before TLS.
    pub sent_bytes: u64,
    /// Bytes of page text, after decoding.
    pub text_bytes: u64,
    /// Connections opened or tried.
    pub connections: u64,
    /// Visits that used a parked connection (one kept open since an earlier visit), which saved a
    /// handshake.
    pub parked_again: u64,
    /// Full TLS handshakes.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed an earlier session.
    pub handshakes_resumed: u64,
    /// Pages of a shared crawl that were fetched and not yet settled in a log when another node got
    /// their partition: that node may fetch them again.
    #[serde(skip_serializing_if = "is_zero")]
    pub pages_lost: u64,
    /// Patterns of URLs whose pages repeat.
    #[serde(default)]
    pub repeats: PatternCounts,
    /// Requests that were signed.
    #[serde(skip_serializing_if = "is_zero")]
    pub signed: u64,
    /// Visits that have ended. A visit is a series of requests to one server, followed by a rest.
    pub visits: u64,
    /// Requests sent while another on the same connection was unanswered.
    pub pipelined: u64,
    /// Requests that were unanswered when their connection closed, so that their URLs returned to
    /// their queues.
    pub left_over: u64,
    /// Requests that were repeated alone, to check whether a server answers pipelined requests in
    /// order.
    pub compared: u64,
    /// Complete replies that were discarded, because it was not proven which request they answer.
    /// Their URLs returned to their queue.
    pub put_back: u64,
    /// Servers to which requests are no longer pipelined, because their replies didn't match.
    pub unmatched: u64,
    /// Fetches that failed, by cause, each try counted: without a reply that could be used.
    pub failed: BTreeMap<Name, u64>,
    /// Second and later tries of a URL.
    pub retries: u64,
    /// Servers given up, by reason.
    pub given_up: BTreeMap<Name, u64>,
    /// References (links and the like) found in pages.
    pub links: u64,
    /// Sitemaps and feeds that were read.
    pub sitemaps: u64,
    /// The URLs in them.
    pub sitemap_urls: u64,
    /// References that are no http(s) URL, or one that is too long.
    pub links_invalid: u64,
    /// References out of scope, by reason.
    pub links_out_of_scope: BTreeMap<Name, u64>,
    /// Redirect chains begun.
    pub chains: u64,
    /// References not followed because a page or a header forbids it.
    pub links_nofollow: u64,
    /// The number of things that were truncated, left out or given up because of a limit, by cause.
    /// The causes are the annotations of the crawl log.
    pub cut: BTreeMap<Name, u64>,
    /// For each damaged or missing archive file: how many captures that count as fetched were lost
    /// with it. The number is 0 after a rebuild, which fetches the lost captures again.
    pub archive_damaged: BTreeMap<String, u64>,
    /// For each cause in `cut`, the largest losses: the amount, and the URL or name that lost it,
    /// the largest first.
    pub cut_most: BTreeMap<Name, Vec<(u64, String)>>,
    /// Pages that the operator's program has scored. Those without a score are in `cut`.
    pub scored: u64,
    /// Scores that came too late, or that nobody asked for.
    pub scores_late: u64,
    /// Lines of the program that are no answer to a page, or have no valid quality.
    pub scores_invalid: u64,
    /// URLs that the seen test found to be new to the crawl.
    pub urls_new: u64,
    /// Replies read back from the archive instead of fetched, when the crawl was resumed.
    pub replayed: u64,
    /// Checkpoints that became durable.
    pub checkpoints: u64,
    /// Commands of the operator that were carried out.
    pub commands: u64,
    /// URLs that left their queues because an order pauses their prefix, and wait on disk.
    pub shelved: u64,
    /// Times that the disk was full.
    pub disk_full: u64,
    /// The outcomes of the seeds.
    pub seeds: Seeds,
    /// URLs lost with servers that were given up.
    pub losses: Losses,
    /// Times that the crawl paused because no server could be reached.
    pub outages: u64,
    /// Times that a connection was paused because most of the memory budget was held.
    pub pauses: u64,
    /// Late events of connections that were gone.
    pub late_events: u64,
    /// The number of fetches with each outcome.
    pub outcomes: BTreeMap<Name, u64>,
    /// The number of replies that could not be parsed, by the kind of defect.
    pub broken: BTreeMap<Name, u64>,
    /// The number of replies with each HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of pages of each media type; at most [`TYPES_MAX`] types have a count of their
    /// own, the others are counted as `other`.
    pub types: BTreeMap<Name, u64>,
    /// How many connections that ended in this run carried how many requests.
    #[serde(skip_deserializing)]
    pub requests_per_connection: Histogram,
    /// The observed rests of servers in this run, in thousandths of the promised rests: 1,000 is
    /// exactly as long as promised.
    #[serde(skip_deserializing)]
    pub rest_kept_milli: Histogram,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The losses of URLs: those of servers that were given up, or whose robots.txt could not be
/// fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// The number of all lost URLs.
    pub urls: u64,
    /// The number of servers with lost URLs that had answered before.
    pub answered: u64,
    /// The servers with the most lost URLs, by origin; at most [`LARGEST`].
    pub largest: BTreeMap<String, Loss>,
}

/// The URLs lost with one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The number of lost URLs of the server.
    pub urls: u64,
    /// The last outcome of the server, for which it was given up.
    pub cause: Name,
    /// Whether the server had answered before it was given up.
    pub answered: bool,
}

/// The maximum number of servers with lost URLs that are listed by name.
pub const LARGEST: usize = 64;

impl Losses {
    /// Adds lost URLs of a server. `before` is how many of its URLs were counted as lost before.
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

    /// Lists a server that stays given up, since a revival did not reinstate it. Its URLs will be
    /// counted again, one by one.
    pub(super) fn keep_retired(&mut self, origin: &str, loss: Loss) {
        if self.largest.len() < LARGEST {
            self.answered += u64::from(loss.answered);
            self.largest.insert(origin.to_owned(), loss);
        }
    }

    /// Counts one more lost URL of a server: it was found after the server had been given up.
    pub(super) fn add_url(&mut self, origin: &str) {
        self.urls += 1;
        if let Some(loss) = self.largest.get_mut(origin) {
            loss.urls += 1;
        }
    }
}

impl Counts {
    pub(super) fn outcome(&mut self, outcome: Outcome) {
        *self.outcomes.entry(outcome.name().into()).or_default() += 1;
        if outcome.is_failed_fetch() {
            *self.failed.entry(outcome.name().into()).or_default() += 1;
        }
        if let Some(status) = outcome.status() {
            *self.statuses.entry(status).or_default() += 1;
        }
    }

    /// Returns the number of servers that were given up.
    pub fn servers_given_up(&self) -> u64 {
        self.given_up.values().sum()
    }

    /// Subtracts one from the count of an outcome, because the URL is fetched again.
    pub(super) fn uncount(&mut self, outcome: Outcome) {
        self.outcomes.entry(outcome.name().into()).and_modify(|count| *count -= 1);
        if outcome.is_failed_fetch() {
            self.failed.entry(outcome.name().into()).and_modify(|count| *count -= 1);
        }
        if let Some(status) = outcome.status() {
            self.statuses.entry(status).and_modify(|count| *count -= 1);
        }
    }

    /// Returns the number of fetches that failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Counts the media type of a page; `field` is its Content-Type.
    pub(super) fn media_type(&mut self, field: &[u8]) {
        let essence = field.split(|byte| b";,".contains(byte)).next().unwrap_or_default();
        let essence: SmallVec<[u8; TYPE_BYTES_MAX]> = essence
            .trim_ascii()
            .iter()
            .take(TYPE_BYTES_MAX + 1)
            .map(u8::to_ascii_lowercase)
            .collect();
        let is_type = essence.len() <= TYPE_BYTES_MAX
            && essence.contains(&b'/')
            && essence.iter().all(u8::is_ascii_graphic);
        let name = match std::str::from_utf8(&essence) {
            Ok("") => "none",
            Ok(name) if is_type => name,
            _ => "other",
        };
        if let Some(count) = self.types.get_mut(name) {
            *count += 1;
        } else {
            let is_full = self.types.len() >= TYPES_MAX;
            let name = if is_full { "other".into() } else { name.to_owned().into() };
            *self.types.entry(name).or_default() += 1;
        }
    }

    /// Counts `count` losses of this cause.
    pub(super) fn cut(&mut self, cause: &'static str, count: u64) {
        *self.cut.entry(cause.into()).or_default() += count;
    }

    /// Counts `count` losses of this cause at `whom` (a URL or name), and lists them if they are
    /// among the largest.
    pub(super) fn cut_from(&mut self, cause: &'static str, count: u64, whom: &str) {
        self.cut(cause, count);
        let most = self.cut_most.entry(cause.into()).or_default();
        let place = most.partition_point(|(other, _)| *other >= count);
        if place < CUT_MOST {
            most.truncate(CUT_MOST - 1);
            most.insert(place.min(most.len()), (count, whom.to_owned()));
        }
    }

    /// Lists `whom` (a URL or name) with `total`, the sum of its losses of this cause, if that is
    /// among the largest losses.
    pub(super) fn set_cut_total(&mut self, cause: &'static str, total: u64, whom: &str) {
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

    /// Law: each server counts once, whether its URLs are lost together or one by one, and the
    /// largest losses are kept.
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

    /// Law: every page is counted once, and servers can't make the table long.
    #[test]
    fn media_types_are_counted_by_name_within_a_bound() {
        let mut counts = Counts::default();
        for field in
            ["Text/HTML; charset=x", "text/html,text/plain", " text/html ", "", "a b/c", "x"]
        {
            counts.media_type(field.as_bytes());
        }
        counts.media_type(&[b'/'; 65]);
        counts.media_type(b"\xff/\xff");
        let found: Vec<_> = counts.types.iter().map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(found, [("none", 1), ("other", 4), ("text/html", 3)]);
        (0..200).for_each(|n| counts.media_type(format!("a/{n}").as_bytes()));
        assert!(counts.types.len() <= TYPES_MAX);
        assert_eq!(counts.types.values().sum::<u64>(), 208);
    }

    #[test]
    fn those_that_lost_most_are_kept() {
        let mut counts = Counts::default();
        for (total, whom) in [(1, "a"), (1, "b"), (2, "a"), (1, "c"), (1, "d"), (3, "d"), (1, "a")]
        {
            counts.set_cut_total("x", total, whom);
        }
        let most: Vec<_> = counts.cut_most["x"].iter().map(|(n, whom)| (*n, &**whom)).collect();
        assert_eq!(most, [(3, "d"), (2, "a"), (1, "b")]);
    }
}
