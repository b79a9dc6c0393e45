//! The laws `once` and `complete`: what is asked for again, and what never.
//!
//! A process knows what it was answered while it had the partition, and what the log of the
//! partition said was settled when it took it. Who releases a partition in order has written all of
//! that to the log before. So a page is asked for again only by a node that took the partition
//! after the one that was answered had lost it, or had been killed, and only if the log doesn't say
//! that it is settled.
//!
//! A redirect that another redirect leads to is exempt: it may be asked for as a hop of that one's
//! chain, too.

use super::{Cluster, Instant, Judge, Laws};
use crate::ground::map::{Map, Set};
use crate::study::sim::judge::wanted;
use crate::study::web::{Budget, Kind, Manifest, Place, Resource, Web};

/// The pages of a web, as far as they were answered.
#[derive(Debug)]
pub(super) struct Pages {
    /// The pages that must be answered in the end, and aren't.
    missing: Set<Place>,
    /// Redirects that others lead to.
    hops: Set<Place>,
    answers: Map<Place, Vec<Answer>>,
    /// Pages that were asked for again, and are to be checked against the log of the partition.
    again: Vec<(usize, Instant, Place, String)>,
}

/// A whole answer that will not be asked for again.
#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Instant,
    node: usize,
    /// The number of processes of the node before the one that was answered.
    lives: u32,
    /// The epoch from which on only this node had had the partition; `None` if it didn't have it
    /// any more.
    since: Option<u64>,
}

impl Pages {
    pub(super) fn of(web: &Web, laws: &Laws) -> Self {
        let budget = Budget { robots: laws.robots, tries: laws.tries_max, ..Budget::default() };
        let pages =
            (0..web.hosts()).flat_map(|host| (0..web.pages_of(host)).map(move |at| (host, at)));
        let turns = pages.filter(|&(host, page)| web.kind(host, page) == Kind::Redirect);
        Self {
            missing: wanted(&Manifest::new(web, budget)).into_iter().collect(),
            hops: turns.map(|(host, page)| web.redirect_of(host, page)).collect(),
            answers: Map::default(),
            again: Vec::new(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl Judge {
    /// Takes in a reply for a page.
    pub(super) fn answered(
        &mut self,
        node: usize,
        at: Instant,
        place: Place,
        (status, whole): (u16, bool),
    ) {
        let Resource::Page(page) = place.resource else { return };
        let is_plea = matches!(status, 408 | 425 | 429 | 502 | 503 | 504);
        if whole && !is_plea || (300..400).contains(&status) {
            self.pages.missing.remove(&place);
        }
        let is_hop =
            self.pages.hops.contains(&place) && self.web.kind(place.host, page) == Kind::Redirect;
        if !whole || is_plea || status >= 500 || is_hop {
            return;
        }
        let held = &self.partitions[&self.hosts[place.host as usize].partition];
        let since = held.owner.filter(|owner| owner.node == node).map(|owner| owner.since);
        let lives = self.nodes[node].lives;
        self.pages.answers.entry(place).or_default().push(Answer { at, node, lives, since });
    }

    /// Checks that a page which was answered is asked for again only by a node that couldn't know.
    pub(super) fn judge_once(&mut self, (node, at): (usize, Instant), place: Place, named: &str) {
        let Some(answers) = self.pages.answers.get(&place) else { return };
        self.tally.repeats += 1;
        let held = &self.partitions[&self.hosts[place.host as usize].partition];
        let lives = self.nodes[node].lives;
        // Who isn't the owner any more has asked before it could know.
        let Some(owner) = held.owner.filter(|owner| owner.node == node) else { return };
        let wrong = answers.iter().find_map(|answer| {
            let same = answer.node == node && answer.lives == lives;
            if same && answer.since == Some(owner.since) {
                return Some((answer, "the same process had its answer"));
            }
            let was_killed = self.nodes[answer.node].lives > answer.lives;
            let was_lost = held.lost.get(&answer.node).is_some_and(|lost| *lost > answer.at);
            let in_order = answer.since.is_some() && !was_killed && !was_lost;
            in_order.then_some((answer, "its partition was handed over in order"))
        });
        if let Some((answer, why)) = wrong {
            let how = format!("{named} again: {why}: {answer:?}, now {owner:?}");
            self.report("once", at, how);
        } else {
            self.pages.again.push((node, at, place, named.to_owned()));
        }
    }

    /// Checks that what was asked for again in the last slice wasn't settled in the log of its
    /// partition when whoever asks took that.
    pub(super) fn judge_again(&mut self, cluster: &Cluster) {
        for (node, at, place, named) in std::mem::take(&mut self.pages.again) {
            let partition = self.hosts[place.host as usize].partition;
            let held = &self.partitions[&partition];
            let Some(owner) = held.owner.filter(|owner| owner.node == node) else { continue };
            let url = self.web.url(place);
            let settled = cluster.queue().log(partition).iter().find(|message| {
                // What the node wrote itself it knows since before it was killed, or has read
                // when it took the partition.
                let writer = self.words.settles(&message.payload, &url);
                let before = if writer == Some(node) { held.revision } else { owner.since };
                writer.is_some() && message.sequence.0 < before
            });
            if let Some(message) = settled {
                let how = format!(
                    "{named} again, which message {:?} of partition {partition} had settled: \
                     {owner:?}",
                    message.sequence
                );
                self.report("once", at, how);
            }
        }
    }

    /// Returns which pages were never answered, in words; `None` if there are none.
    pub(super) fn missing(&self) -> Option<String> {
        let mut missing: Vec<Place> = self.pages.missing.iter().copied().collect();
        missing.sort_unstable();
        let some = missing.iter().take(5).map(|place| {
            let partition = self.hosts[place.host as usize].partition;
            let owner = self.partitions[&partition].owner;
            format!("{} of partition {partition}, which {owner:?} has", self.web.url(*place))
        });
        let some: Vec<String> = some.collect();
        let count = missing.len();
        (count > 0).then(|| format!("{count} pages were never answered: {}", some.join("; ")))
    }
}
