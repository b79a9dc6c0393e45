//! What a checkpoint keeps of this node's part in a shared crawl, besides its outbox.
//!
//! ```text
//! mark     log* | SETTLED
//! log      partition + 1 varint | since varint, 0 if nothing of it counts | position varint
//!          | generation varint | stale varint | lengths of messages and of the snapshot, varints
//! SETTLED  0 varint | each: partition varint, count varint, fingerprint u64 * count
//! ```
//!
//! `SETTLED` are the URLs that were settled before the checkpoint began and whose records aren't in
//! the outbox yet. The session isn't kept: a node that restarts holds nothing until it has taken
//! it.
//!
//! Law: what a mark restores is what was known at the mark's instant; the partitions are held by
//! nobody.
//! Cost: about 15 bytes for each partition that was ever taken, and 8 for each settled URL.

use super::Cluster;
use super::logs::{Kept, Logs};
use crate::cluster::Partition;
use crate::cluster::queue::{Revision, Sequence};
use crate::engine::node::Broken;
use crate::ground::codec::{Put, Take};
use crate::ground::frame::Flaw;
use crate::url::Fingerprint;
use std::collections::BTreeMap;

/// URLs that have their final outcome, by partition.
pub(super) type Urls = BTreeMap<Partition, Vec<Fingerprint>>;

/// The URLs that have their final outcome and aren't published.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Those since the last checkpoint began.
    pub(super) since: Urls,
    /// Those before it, until it is durable.
    pub(super) before: Urls,
    /// For each partition that was lost, how many of them there were then, or were settled since:
    /// until it is known whether another node has had the partition. What was in the outbox by then
    /// doesn't count.
    pub(super) at_risk: BTreeMap<Partition, u64>,
}

impl Settled {
    /// Notes that a partition is lost.
    pub(super) fn note_lost(&mut self, partition: Partition) {
        let of = |urls: &Urls| urls.get(&partition).map_or(0, |urls| urls.len() as u64);
        let count = of(&self.since) + of(&self.before);
        if count > 0 {
            self.at_risk.insert(partition, count);
        }
    }

    /// Notes a URL whose partition isn't held: it was fetched before that was lost, by this process
    /// or by the one that it resumes.
    pub(super) fn note_late(&mut self, partition: Partition) {
        *self.at_risk.entry(partition).or_default() += 1;
    }

    /// Returns the number of URLs at risk in partitions of which `is_of_other` is true, and forgets
    /// them.
    pub(super) fn take_lost(&mut self, is_of_other: impl Fn(Partition) -> bool) -> u64 {
        let mut lost = 0;
        self.at_risk.retain(|partition, count| {
            let is_lost = is_of_other(*partition);
            lost += if is_lost { *count } else { 0 };
            !is_lost
        });
        lost
    }
}

/// Appends what a checkpoint keeps.
pub(super) fn put(cluster: &Cluster, out: &mut Vec<u8>) {
    for (partition, kept) in cluster.logs.kept() {
        let Kept { since, position, generation, stale, log_bytes, snapshot_bytes } = kept;
        out.put_varint(u64::from(partition.number()) + 1);
        out.put_varint(since.map_or(0, |since| since.0));
        let position = match cluster.broken {
            Some(Broken::PositionAhead) => Sequence(position.0 + 20_000),
            _ => position,
        };
        [position.0, generation.into(), stale, log_bytes, snapshot_bytes]
            .iter()
            .for_each(|number| out.put_varint(*number));
    }
    out.put_varint(0);
    for (partition, settled) in &cluster.settled.before {
        out.put_varint(partition.number().into());
        out.put_varint(settled.len() as u64);
        settled.iter().for_each(|fingerprint| out.put_u64(fingerprint.0));
    }
}

/// Restores the logs from a mark, and returns what was settled.
///
/// # Errors
/// The bytes are no mark.
pub(super) fn restore(bytes: &[u8], logs: &mut Logs) -> Result<Urls, Flaw> {
    let mut take = Take::new(bytes);
    while let Some(number) = take.number::<u16>()?.checked_sub(1) {
        let partition = Partition::new(number).ok_or(Flaw::Senseless)?;
        let since = Some(Revision(take.varint()?)).filter(|since| since.0 > 0);
        let (position, generation) = (Sequence(take.varint()?), take.number()?);
        let (stale, log_bytes, snapshot_bytes) = (take.varint()?, take.varint()?, take.varint()?);
        let kept = Kept { since, position, generation, stale, log_bytes, snapshot_bytes };
        logs.restore(partition, kept);
    }
    let mut settled = Urls::new();
    while !take.is_empty() {
        let partition = Partition::new(take.number()?).ok_or(Flaw::Senseless)?;
        let some = settled.entry(partition).or_default();
        for _ in 0..take.varint()? {
            some.push(Fingerprint(take.u64()?));
        }
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use std::time::Duration;

    fn partition(number: u16) -> Partition {
        Partition::new(number).expect("a partition")
    }

    /// Pages are at risk from when their partition is lost until it is known who has had it, and
    /// count once.
    #[test]
    fn what_is_lost_counts_once() {
        let [a, b, c] = [0, 5, 1_023].map(partition);
        let mut settled = Settled::default();
        settled.since.insert(a, vec![Fingerprint(1), Fingerprint(2)]);
        settled.before.insert(a, vec![Fingerprint(3)]);
        settled.before.insert(b, vec![Fingerprint(4)]);
        [a, b, c].iter().for_each(|of| settled.note_lost(*of));
        settled.note_late(c);
        assert_eq!(settled.take_lost(|of| of == a), 3);
        assert_eq!(settled.take_lost(|of| of == a), 0);
        assert_eq!(settled.at_risk.remove(&b), Some(1), "it came back");
        assert_eq!(settled.take_lost(|_| true), 1);
    }

    /// What is encoded comes back, and nothing that was changed or cut makes a panic.
    #[test]
    fn a_mark_is_restored() {
        let mut cluster = crate::engine::cluster::share::tests::cluster();
        for (number, revision) in [(0, 7), (5, 300), (1_023, 1 << 40)] {
            let of = partition(number);
            assert!(cluster.logs.take(of, Revision(revision)));
            cluster.logs.begin(of, revision / 2);
            if number == 5 {
                cluster.logs.lapse(of);
            }
        }
        cluster.settled.before.insert(partition(5), vec![Fingerprint(1), Fingerprint(u64::MAX)]);
        let mut bytes = Vec::new();
        put(&cluster, &mut bytes);
        let mut logs = Logs::new(1, Duration::ZERO);
        let settled = restore(&bytes, &mut logs).expect("it is whole");
        assert_eq!(settled, cluster.settled.before);
        let (kept, before): (Vec<_>, Vec<_>) =
            (logs.kept().collect(), cluster.logs.kept().collect());
        assert_eq!(kept, before);
        assert_eq!(kept.len(), 3);
        assert!(kept.iter().all(|(_, kept)| kept.since.is_none()), "none was read to its end");

        let mut random = Random(1);
        for _ in 0..2_000 {
            let mut changed = bytes.clone();
            let at = random.below(changed.len());
            changed[at] ^= 1 << random.below(8);
            changed.truncate(if random.one_in(2) { at } else { usize::MAX });
            drop(restore(&changed, &mut logs));
        }
    }
}
