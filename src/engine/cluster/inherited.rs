//! What the logs of partitions say of servers and URLs besides links: that a server may not be
//! asked before a time, that it was given up, how often a URL was tried.
//!
//! A node appends such a record when it learns it, so that whoever owns the partition next needn't
//! learn it again from the server. The reader keeps it until the server is about to be visited, or
//! the URL is queued.
//!
//! Law: no more records are kept than [`KEPT_MAX`] of a kind; one more is dropped and counted, and
//! the server is then asked as one that nothing is known of.
//! Cost: a look-up for each visit, only while there are any.

use crate::cluster::Partition;
use crate::cluster::record::{CAUSE_BYTES_MAX, Record};
use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::outcome::Outcome;
use crate::frontier::ServerId;
use crate::ground::time::{Instant, Now};
use crate::url::{Fingerprint, UrlRef};
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of records of a kind that are kept.
const KEPT_MAX: usize = 100_000;

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// The times before which servers may not be asked, by origin.
    waits: BTreeMap<Box<str>, Instant>,
    /// The outcome of the URLs of servers that were given up, by origin.
    retired: BTreeMap<Box<str>, Outcome>,
    /// How often URLs were tried, by partition and fingerprint.
    tries: BTreeMap<(Partition, Fingerprint), u8>,
}

impl Inherited {
    /// Keeps what a record of the log of a partition says. No wait is longer than `wait_max`. A
    /// cause that isn't an outcome's is of another version, and is ignored. Returns false if there
    /// is no room for it.
    pub(super) fn keep(
        &mut self,
        partition: Partition,
        record: &Record<'_>,
        wait_max: Duration,
        now: Now,
    ) -> bool {
        let kept = match record {
            Record::Wait { .. } => self.waits.len(),
            Record::Retired { .. } => self.retired.len(),
            Record::Tries { .. } => self.tries.len(),
            _ => 0,
        };
        if kept >= KEPT_MAX {
            return false;
        }
        match *record {
            Record::Wait { origin, until } => {
                let until = now.instant_of(until, wait_max);
                let longest = self.waits.entry(origin.into()).or_default();
                *longest = until.max(*longest);
            }
            Record::Retired { origin, cause } => {
                if let Ok(outcome) = serde_json::from_str(cause) {
                    self.retired.insert(origin.into(), outcome);
                }
            }
            Record::Tries { fingerprint, tries } => {
                let most = self.tries.entry((partition, fingerprint)).or_default();
                *most = tries.max(*most);
            }
            _ => {}
        }
        true
    }

    /// Returns until when a server may not be asked, if that is in the future.
    pub(super) fn wait(&self, origin: &str, now: Instant) -> Option<Instant> {
        self.waits.get(origin).copied().filter(|until| *until > now)
    }

    /// Takes how often a URL was tried.
    pub(super) fn take_tries(&mut self, partition: Partition, fingerprint: Fingerprint) -> u8 {
        self.tries.remove(&(partition, fingerprint)).unwrap_or(0)
    }

    /// Drops what isn't needed: waits that have passed, and tries of a partition.
    pub(super) fn forget(&mut self, partition: Partition, now: Instant) {
        self.waits.retain(|_, until| *until > now);
        self.tries.retain(|(of, _), _| *of != partition);
    }
}

impl Engine {
    /// Ends a visit that hasn't begun if the server was given up by the node that had it before.
    /// Returns whether it was.
    pub(in crate::engine) fn is_given_up_before(&mut self, id: ServerId) -> bool {
        let Some(cluster) = self.cluster.as_deref_mut() else { return false };
        if cluster.heard.inherited.retired.is_empty() {
            return false;
        }
        let origin = self.backlog.origin(id).as_str();
        let Some(outcome) = cluster.heard.inherited.retired.remove(origin) else { return false };
        self.backlog.hand_back(id, self.turn.at());
        self.sites.get_mut(id).set_retiring(outcome.retirement(), outcome);
        self.retire_if_due(id);
        true
    }

    /// Writes to the log of a server's partition that the server may not be asked before `due`, if
    /// that is longer than what every new owner waits.
    pub(in crate::engine) fn note_wait(&mut self, id: ServerId, due: Instant) {
        let now = self.turn.now();
        let Some(cluster) = &mut self.cluster else { return };
        if due <= now.at + self.settings.frontier.scheduler.delay_max {
            return;
        }
        let origin = self.backlog.origin(id);
        let partition = cluster.partition_of(origin.host());
        cluster.records.clear();
        cluster.records.wait(origin.as_str(), now.unix_of(due));
        cluster.outbox.push(partition, &cluster.records, now.at);
    }

    /// Writes to the log of a server's partition that the server was given up.
    pub(in crate::engine) fn note_retired(&mut self, id: ServerId, outcome: Outcome) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        let cause = serde_json::to_string(&outcome).expect("a plain value");
        assert!(cause.len() <= CAUSE_BYTES_MAX, "{cause} is no outcome");
        let origin = self.backlog.origin(id);
        let partition = cluster.partition_of(origin.host());
        cluster.records.clear();
        cluster.records.retired(origin.as_str(), &cause);
        cluster.outbox.push(partition, &cluster.records, now);
    }

    /// Writes to the log of a URL's partition how often it was tried.
    pub(in crate::engine) fn note_tries(&mut self, id: ServerId, item: &Item) {
        if self.cluster.is_none() || item.is_robots() {
            return;
        }
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let (key, now) = (self.key_of(url), self.turn.at());
        if let Some(cluster) = &mut self.cluster {
            let partition = cluster.partition_of(url.host());
            let fingerprint = Fingerprint(key.0 ^ cluster.mask(partition));
            cluster.records.clear();
            cluster.records.tries(fingerprint, item.tries);
            cluster.outbox.push(partition, &cluster.records, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::time::UnixTime;

    #[test]
    fn what_was_learnt_is_kept_until_it_is_used() {
        let mut inherited = Inherited::default();
        let [a, b] = [1, 2].map(|number| Partition::new(number).expect("a partition"));
        let now = Now { at: Instant::from_micros(50), unix: UnixTime::from_micros(1_000) };
        let wait_max = Duration::from_micros(300);
        let fingerprint = Fingerprint(7);
        let cause = serde_json::to_string(&Outcome::Reset).expect("a plain value");
        for record in [
            Record::Wait { origin: "http://a.test", until: UnixTime::from_micros(1_200) },
            Record::Wait { origin: "http://a.test", until: UnixTime::from_micros(1_100) },
            Record::Wait { origin: "http://b.test", until: UnixTime::from_micros(9_000) },
            Record::Retired { origin: "http://a.test", cause: &cause },
            Record::Retired { origin: "http://b.test", cause: "of another version" },
            Record::Tries { fingerprint, tries: 2 },
            Record::Tries { fingerprint, tries: 1 },
        ] {
            inherited.keep(a, &record, wait_max, now);
        }
        inherited.keep(b, &Record::Tries { fingerprint, tries: 3 }, wait_max, now);
        let at = Instant::from_micros;
        assert_eq!(inherited.wait("http://a.test", at(249)), Some(at(250)), "the longest");
        assert_eq!(inherited.wait("http://a.test", at(250)), None, "it has passed");
        assert_eq!(inherited.wait("http://b.test", at(250)), Some(at(350)), "at most wait_max");
        assert_eq!(inherited.retired.len(), 1);
        assert_eq!(inherited.take_tries(a, fingerprint), 2, "the most");
        assert_eq!(inherited.take_tries(a, fingerprint), 0, "once");
        inherited.forget(b, at(300));
        assert_eq!((inherited.waits.len(), inherited.tries.len()), (1, 0));
    }

    /// Law: beyond the cap of a kind nothing is kept, and the caller learns it.
    #[test]
    fn there_is_room_for_so_many_records_of_a_kind() {
        let mut inherited = Inherited::default();
        let partition = Partition::new(1).expect("a partition");
        let now = Now { at: Instant::ZERO, unix: UnixTime::from_micros(0) };
        let mut keep =
            |record: Record<'_>| inherited.keep(partition, &record, Duration::from_secs(1), now);
        for number in 0..KEPT_MAX as u64 {
            assert!(keep(Record::Tries { fingerprint: Fingerprint(number), tries: 1 }));
        }
        assert!(!keep(Record::Tries { fingerprint: Fingerprint(u64::MAX), tries: 1 }));
        assert!(keep(Record::Wait { origin: "http://a.test", until: UnixTime::from_micros(5) }));
    }
}
