//! What goes through the logs of partitions: links to them, and what was settled.

use super::logs::Phase;
use super::{Cluster, Fingerprint, Partition};
use crate::cluster::record::{Link, Reader, Record};
use crate::engine::Engine;
use crate::engine::admission::{DONE, Discovery};
use crate::engine::ledger::Work;
use crate::ground::time::Instant;
use crate::http::pipeline::Close;
use crate::seen::Seen;
use crate::url::UrlRef;
use std::collections::BTreeSet;

/// The fixed cost of taking up a record, in units of work (see `ledger`), in addition to one unit
/// for each of its bytes.
const RECORD_UNITS: usize = 64;
/// The cost of taking up a settled URL, in units of work.
const SETTLED_UNITS: usize = 16;

impl Cluster {
    /// Takes a link in scope. `key` is the fingerprint by which this node's seen test knows the
    /// URL. Returns whether the URL is this node's to crawl. If not, the link is in the outbox, or
    /// was so recently.
    pub(in crate::engine) fn share(
        &mut self,
        (key, found): (Fingerprint, Discovery),
        url: UrlRef<'_>,
        via: &str,
        now: Instant,
    ) -> bool {
        let partition = self.partition_of(url.host());
        if self.logs.phase(partition) == Phase::Owned {
            return true;
        }
        let fingerprint = Fingerprint(key.0 ^ self.mask(partition));
        if !self.sent.touch(fingerprint.0) {
            self.push_link(partition, (fingerprint, found), url, via, now);
        }
        false
    }

    /// Writes a link that the own seen test didn't know at once to the log of its partition.
    pub(in crate::engine) fn note_new(
        &mut self,
        (key, found): (Fingerprint, Discovery),
        url: UrlRef<'_>,
        via: &str,
        now: Instant,
    ) {
        let partition = self.partition_of(url.host());
        let fingerprint = Fingerprint(key.0 ^ self.mask(partition));
        self.push_link(partition, (fingerprint, found), url, via, now);
    }

    fn push_link(
        &mut self,
        partition: Partition,
        (fingerprint, found): (Fingerprint, Discovery),
        url: UrlRef<'_>,
        via: &str,
        now: Instant,
    ) {
        let Discovery { letter, hops, depth, requisite, estimate } = found;
        let url = url.as_str();
        let link =
            Link { fingerprint, url, via, letter, hops, requisite, depth, tries: 0, estimate };
        self.records.clear();
        self.records.link(&link);
        self.outbox.push(partition, &self.records, now);
    }

    /// Notes that a URL has its final outcome.
    pub(in crate::engine) fn note_settled(&mut self, key: Fingerprint, host: &str) {
        let partition = self.partition_of(host);
        let fingerprint = Fingerprint(key.0 ^ self.mask(partition));
        self.settled.entry(partition).or_default().push(fingerprint);
    }

    /// Called when a checkpoint begins: what was settled before it is published after it.
    pub(in crate::engine) fn checkpoint_begins(&mut self) {
        for (partition, settled) in std::mem::take(&mut self.settled) {
            self.settled_before.entry(partition).or_default().extend(settled);
        }
    }

    /// Called when a checkpoint is durable: publishes what was settled before it began, once the
    /// links found before it are durable.
    pub(in crate::engine) fn checkpoint_is_durable(&mut self, now: Instant) {
        let place = self.outbox.place();
        for (partition, mut settled) in std::mem::take(&mut self.settled_before) {
            self.records.clear();
            self.records.settled(&mut settled);
            self.outbox.hold(place, partition, &self.records, now);
        }
    }

    /// Takes up one record of what was read from the logs. Returns what came of it; `None` if there
    /// is none.
    fn use_record(&mut self, seen: &mut Seen) -> Option<Used> {
        let (message, offset, phase) = self.logs.message()?;
        let partition = message.partition;
        let mask = self.mask(partition);
        let mut reader = match offset {
            0 => match Reader::open(&message.payload) {
                Ok((_, reader)) => reader,
                Err(damage) => {
                    log::warn!("cluster: a message of partition {partition} {damage}");
                    self.logs.advance(None);
                    return Some(Used { units: RECORD_UNITS, is_damaged: true });
                }
            },
            offset => Reader::resume(&message.payload, offset),
        };
        let before = reader.position();
        let (mut units, mut is_damaged) = (RECORD_UNITS, false);
        match reader.next() {
            Some(Ok(Record::Link(link))) if phase != Phase::Settled => {
                let url = UrlRef::from_canonical(link.url.as_bytes());
                match url.filter(|url| self.partition_of(url.host()) == partition) {
                    Some(url) => offer_link(&link, url, mask, seen),
                    None => {
                        log::warn!("cluster: {:?} isn't of partition {partition}", link.url);
                        is_damaged = true;
                    }
                }
            }
            Some(Ok(Record::Settled(settled))) if !matches!(phase, Phase::Links(_)) => {
                for fingerprint in settled {
                    units += SETTLED_UNITS;
                    seen.offer(Fingerprint(fingerprint.0 ^ mask), &[DONE]);
                }
            }
            Some(Err(damage)) => {
                log::warn!("cluster: a message of partition {partition} {damage}");
                is_damaged = true;
            }
            _ => {}
        }
        units += reader.position() - before;
        let is_done = reader.position() >= message.payload.len();
        let offset = reader.position();
        self.logs.advance((!is_done).then_some(offset));
        Some(Used { units, is_damaged })
    }
}

/// What came of a record that was taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    /// The units of work that it cost.
    units: usize,
    /// Whether it makes no sense, and was skipped.
    is_damaged: bool,
}

/// Offers a URL from a log to the seen test.
fn offer_link(link: &Link<'_>, url: UrlRef<'_>, mask: u64, seen: &mut Seen) {
    let Link { via, letter, hops, requisite, depth, estimate, .. } = *link;
    let found = Discovery { letter, hops, depth, requisite, estimate };
    let key = Fingerprint(link.fingerprint.0 ^ mask);
    seen.offer_with(key, |out| found.encode(url.as_str(), via, out));
}

impl Engine {
    /// Takes up what was read from the logs, within the turn's budget.
    pub(super) fn use_messages(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        while !self.turn.is_spent(Work::Joined)
            && let Some(used) = cluster.use_record(self.admission.seen_mut())
        {
            self.turn.charge(Work::Joined, used.units);
            if used.is_damaged {
                self.counts.cut("cluster-damaged", 1);
            }
        }
        if self.admission.seen().has_fresh() {
            self.admit_fresh();
        }
    }

    /// Writes a seed to the log of its partition, whose owner queues it.
    pub(in crate::engine) fn share_seed(&mut self, key: Fingerprint, url: UrlRef<'_>) {
        let now = self.turn.at();
        if let Some(cluster) = &mut self.cluster {
            cluster.note_new((key, Discovery::SEED), url, "", now);
        }
    }

    /// Notes that a URL has its final outcome.
    pub(in crate::engine) fn note_settled(&mut self, url: &str) {
        if self.cluster.is_none() {
            return;
        }
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let key = self.key_of(url);
        if let Some(cluster) = &mut self.cluster {
            cluster.note_settled(key, url.host());
        }
    }

    /// Returns the partitions of which something is under way here: requests, or pages.
    pub(super) fn partitions_under_way(&self) -> BTreeSet<Partition> {
        let Some(cluster) = &self.cluster else { return BTreeSet::new() };
        let of_url = |url: &str| {
            let url = UrlRef::from_canonical(url.as_bytes()).expect("it was fetched");
            cluster.partition_of(url.host())
        };
        let conns = self.wire.conns().slots().into_iter();
        let busy = conns.filter(|slot| self.wire.conn(*slot).unsettled().next().is_some());
        let asked = busy.map(|slot| {
            cluster.partition_of(self.backlog.origin(self.wire.conn(slot).server).host())
        });
        let pages = self.pages.urls().map(of_url);
        let filed = self.archive.filing().urls().map(of_url);
        asked.chain(pages).chain(filed).collect()
    }

    /// Ends the visits to the servers of a partition that isn't this node's any more.
    pub(super) fn end_visits_to(&mut self, partition: Partition) {
        for slot in self.wire.conns().slots() {
            let host = self.backlog.origin(self.wire.conn(slot).server).host();
            let is_of = |cluster: &Cluster| cluster.partition_of(host) == partition;
            if self.cluster.as_deref().is_some_and(is_of) {
                self.end_connection(slot, None, Close::Ours);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::member;
    use crate::cluster::outbox;
    use crate::cluster::queue::{Delivery, Name, Revision, Sequence};
    use crate::cluster::record::{Records, Sender};
    use crate::engine::node::Settings;
    use crate::frontier::scheduler;
    use crate::seen;
    use std::time::Duration;

    fn cluster() -> Cluster {
        let settings = Settings {
            node: Name::new("a").expect("a name"),
            incarnation: 1,
            previous: None,
            member: member::Settings {
                key: [3; 16],
                partitions: 1_024,
                ttl: Duration::from_secs(30),
                drift_ppm: 500,
                settle: Duration::from_secs(5),
                equal: Vec::new(),
            },
            outbox: outbox::Settings::default(),
            sent_log2: 8,
            portion_bytes: 1 << 10,
            poll: Duration::from_secs(1),
        };
        Cluster::new(&settings, &scheduler::Settings::default(), 1, 1)
    }

    /// Reads these payloads from the log of a partition, after its settled URLs. Returns what came
    /// of each record.
    fn use_all(cluster: &mut Cluster, of: Partition, payloads: Vec<Vec<u8>>) -> (Vec<bool>, Seen) {
        let (now, mut seen) = (Instant::ZERO, Seen::new(seen::Settings::default()));
        cluster.logs.take(of, Revision(1), 0);
        let settled = cluster.logs.next_reading(now).expect("the log is read");
        cluster.logs.read(&settled, Some(Vec::new()), now);
        let links = cluster.logs.next_reading(now).expect("it is read again");
        let message = |(number, payload): (usize, Vec<u8>)| Delivery {
            partition: of,
            sequence: Sequence(1 + number as u64),
            payload: payload.into(),
        };
        let messages = payloads.into_iter().enumerate().map(message).collect();
        cluster.logs.read(&links, Some(messages), now);
        let used = std::iter::from_fn(|| cluster.use_record(&mut seen));
        let damaged = used.map(|used| used.is_damaged).collect();
        (damaged, seen)
    }

    /// What makes no sense, or belongs to another partition, is skipped and reported; the rest of
    /// the log is taken up.
    #[test]
    fn damaged_records_are_skipped_and_counted() {
        let mut cluster = cluster();
        let of = cluster.partition_of("a.test");
        let payload = |url: &str| {
            let (mut records, mut payload) = (Records::new(), Vec::new());
            let fingerprint = Fingerprint(url.len() as u64);
            let (letter, hops, requisite, depth, tries) = (b'L', 0, 0, 1, 0);
            let estimate = None;
            records.link(&Link {
                fingerprint,
                url,
                via: "",
                letter,
                hops,
                requisite,
                depth,
                tries,
                estimate,
            });
            Sender { name: Name::new("b").expect("a name"), incarnation: 1 }.put(&mut payload);
            records.iter().for_each(|record| payload.extend_from_slice(record));
            payload
        };
        let own = "http://a.test/";
        let cut = payload(own)[..payload(own).len() - 1].to_vec();
        let payloads = vec![
            b"\xff".to_vec(),
            payload("http://other.test/page"),
            payload("no URL"),
            cut,
            payload(own),
        ];
        let (damaged, mut seen) = use_all(&mut cluster, of, payloads);
        assert_eq!(damaged, [true, true, true, true, false]);
        let (_, url, _) = Discovery::decode(seen.fresh().expect("the last one is new"));
        assert_eq!(url.as_str(), own);
        assert_eq!(seen.fresh(), None);
    }
}
