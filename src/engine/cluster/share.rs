//! What goes through the logs of partitions: links to them, and what was settled. Links between
//! domains are in `facts`.

use super::logs::{Message, Phase};
use super::{Cluster, DAMAGED, Fingerprint, Partition};
use crate::cluster::queue::Delivery;
use crate::cluster::record::{Link, Reader, Record};
use crate::engine::Engine;
use crate::engine::admission::{DONE, Discovery};
use crate::engine::chain::Chains;
use crate::engine::ledger::Work;
use crate::engine::node::Broken;
use crate::ground::time::{Instant, Now};
use crate::rating::Rating;
use crate::seen::Seen;
use crate::url::UrlRef;
use std::collections::BTreeSet;
use std::time::Duration;

/// The fixed cost of taking up a record, in units of work (see `ledger`), in addition to one unit
/// for each of its bytes.
const RECORD_UNITS: usize = 64;
/// The cause of records that are skipped because there is no room for them.
const FORGOTTEN: &str = "cluster-forgotten";
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
        if self.sent.links.touch(fingerprint.0) {
            self.sent.held_back += 1;
        } else {
            self.sent.written += 1;
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
        let Discovery { letter, hops, depth, requisite, tries, estimate } = found;
        let url = url.as_str();
        let link = Link { fingerprint, url, via, letter, hops, requisite, depth, tries, estimate };
        self.records.clear();
        self.records.link(&link);
        self.outbox.push(partition, &self.records, now);
    }

    /// Notes that a URL has its final outcome. Returns whether another node has had its partition
    /// since it was fetched, and may fetch it again.
    pub(in crate::engine) fn note_settled(&mut self, key: Fingerprint, host: &str) -> bool {
        let partition = self.partition_of(host);
        let fingerprint = Fingerprint(key.0 ^ self.mask(partition));
        if self.broken == Some(Broken::SettledFirst) {
            self.records.clear();
            self.records.settled(&mut vec![fingerprint]);
            self.outbox.hold(0, partition, &self.records, Instant::ZERO);
            self.outbox.flush(partition);
            return false;
        }
        self.settled.since.entry(partition).or_default().push(fingerprint);
        let phase = self.logs.phase(partition);
        if phase == Phase::Lapsed {
            self.settled.note_late(partition);
        }
        matches!(phase, Phase::Void | Phase::Settled | Phase::Links(_))
    }

    /// Takes up one record of what was read from the logs. Returns what came of it; `None` if there
    /// is none.
    fn use_record(
        &mut self,
        (chains, seen, rating): Takers<'_>,
        wait_max: Duration,
        now: Now,
    ) -> Option<Used> {
        let (message, offset, phase) = self.logs.message()?;
        let partition = message.partition;
        let mask = self.mask(partition);
        let mut reader = match offset {
            0 => match Reader::open(&message.payload) {
                Ok((head, _)) if phase == Phase::Owned && self.snapshots.is_own(&head) => {
                    // This process has read what the snapshot was made of.
                    return Some(self.used_up(RECORD_UNITS, None));
                }
                Ok((_, reader)) => reader,
                Err(damage) => {
                    self.heard.note_damage(partition, &damage);
                    return Some(self.used_up(RECORD_UNITS, Some(DAMAGED)));
                }
            },
            offset => Reader::resume(&message.payload, offset),
        };
        let before = reader.position();
        let (mut units, mut lost) = (RECORD_UNITS, None);
        match reader.next() {
            Some(Ok(Record::Link(link))) if phase != Phase::Settled => {
                if let Some(url) = self.use_url(partition, link.url) {
                    let tries = self.heard.inherited.take_tries(partition, link.fingerprint);
                    let link = Link { tries: link.tries.max(tries), ..link };
                    offer_link(&link, url, mask, (chains, seen));
                } else {
                    let how = format_args!("has {:?}, which isn't of it", link.url);
                    self.heard.note_damage(partition, &how);
                    lost = Some(DAMAGED);
                }
            }
            Some(Ok(Record::Settled(settled))) if !matches!(phase, Phase::Links(_)) => {
                for fingerprint in settled {
                    units += SETTLED_UNITS;
                    seen.offer(Fingerprint(fingerprint.0 ^ mask), &[DONE]);
                }
            }
            Some(Ok(Record::Fact { source, target })) if phase != Phase::Settled => {
                let is_used = self.use_fact(partition, (source, target), rating);
                lost = (!is_used).then_some(DAMAGED);
            }
            Some(Ok(Record::Link(_) | Record::Settled(_) | Record::Fact { .. })) | None => {}
            Some(Ok(record)) if !matches!(phase, Phase::Links(_)) => {
                let head = Reader::open(&message.payload);
                // What this process has written it knows.
                let is_own = head.is_ok_and(|(head, _)| self.snapshots.is_by_own(&head));
                let inherited = &mut self.heard.inherited;
                let is_kept = is_own || inherited.keep(partition, &record, wait_max, now);
                lost = (!is_kept).then_some(FORGOTTEN);
            }
            Some(Ok(_)) => {}
            Some(Err(damage)) => {
                self.heard.note_damage(partition, &damage);
                lost = Some(DAMAGED);
            }
        }
        units += reader.position() - before;
        let offset = reader.position();
        if offset >= message.payload.len() {
            return Some(self.used_up(units, lost));
        }
        self.logs.advance(Some(offset));
        Some(Used { units, lost })
    }

    /// Returns the URL of a link from the log of a partition; `None` if it makes no sense there.
    fn use_url<'a>(&self, partition: Partition, text: &'a str) -> Option<UrlRef<'a>> {
        let url = UrlRef::from_canonical(text.as_bytes());
        url.filter(|url| self.partition_of(url.host()) == partition)
    }

    /// Goes on to the next message that was read.
    fn used_up(&mut self, units: usize, lost: Option<&'static str>) -> Used {
        if let Some((Delivery { partition, payload, .. }, ..)) = self.logs.message() {
            let is_part = Reader::open(payload).is_ok_and(|(head, _)| head.part.is_some());
            let message = Message { partition: *partition, bytes: payload.len(), is_part };
            if self.logs.note_length(&message, self.snapshots.bytes_min) {
                self.snapshots.add(message.partition);
            }
        }
        self.logs.advance(None);
        Used { units, lost }
    }
}

/// What came of a record that was taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    /// The units of work that it cost.
    units: usize,
    /// Why it, or something in it, was skipped, as `Counts::cut` names it.
    lost: Option<&'static str>,
}

/// What takes up records: the chains that request their targets now and the seen test, which decide
/// whether a URL is new, and the rating of URLs.
type Takers<'a> = (&'a mut Chains, &'a mut Seen, &'a mut Rating);

/// Offers a URL from a log to the seen test.
fn offer_link(
    link: &Link<'_>,
    url: UrlRef<'_>,
    mask: u64,
    (chains, seen): (&mut Chains, &mut Seen),
) {
    let Link { via, letter, hops, requisite, depth, tries, estimate, .. } = *link;
    let found = Discovery { letter, hops, depth, requisite, tries, estimate };
    let key = Fingerprint(link.fingerprint.0 ^ mask);
    let write = |out: &mut Vec<u8>| found.encode(url.as_str(), via, out);
    if !chains.hold(key, write) {
        seen.offer_with(key, write);
    }
}

impl Engine {
    /// Takes up what was read from the logs, within the turn's budget.
    pub(super) fn use_messages(&mut self) {
        let (now, wait_max) = (self.turn.now(), self.settings.retries.wait_max);
        let Some(cluster) = &mut self.cluster else { return };
        while !self.turn.is_spent(Work::Joined)
            && let (seen, rating) = self.admission.takers()
            && let Some(used) = cluster.use_record((&mut self.chains, seen, rating), wait_max, now)
        {
            self.turn.charge(Work::Joined, used.units);
            if let Some(cause) = used.lost {
                self.counts.cut(cause, 1);
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
        if let Some(cluster) = &mut self.cluster
            && cluster.note_settled(key, url.host())
        {
            self.counts.pages_lost += 1;
        }
    }

    /// Returns the partitions of which something is under way here: requests, pages, or redirect
    /// chains that began there.
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
        let chains = self.chain_hosts().map(|host| cluster.partition_of(host));
        asked.chain(pages).chain(filed).chain(chains).collect()
    }

    /// Ends the visits to the servers of a partition that isn't this node's any more.
    pub(super) fn end_visits_to(&mut self, partition: Partition) {
        for slot in self.wire.conns().slots() {
            let host = self.backlog.origin(self.wire.conn(slot).server).host();
            let is_of = |cluster: &Cluster| cluster.partition_of(host) == partition;
            if self.cluster.as_deref().is_some_and(is_of) {
                self.drop_connection(slot);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cluster::member;
    use crate::cluster::outbox;
    use crate::cluster::queue::{Delivery, Name, Revision, Sequence};
    use crate::cluster::record::{Records, Sender};
    use crate::engine::node::Settings;
    use crate::frontier::scheduler;
    use crate::ground::time::UnixTime;
    use crate::rating;
    use crate::seen;

    pub(in crate::engine::cluster) fn cluster() -> Cluster {
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
            facts_log2: 8,
            portion_bytes: 1 << 10,
            snapshot_bytes_min: 1 << 20,
            reading_wait: Duration::from_secs(30),
            broken: None,
        };
        Cluster::new(&settings, &scheduler::Settings::default(), 1, true)
    }

    /// Reads these payloads from the log of a partition: for its settled URLs if `is_first`, else
    /// after that. Returns whether each record was damaged.
    pub(in crate::engine::cluster) fn use_all(
        cluster: &mut Cluster,
        (of, is_first): (Partition, bool),
        payloads: Vec<Vec<u8>>,
        (seen, rating): (&mut Seen, &mut Rating),
    ) -> Vec<bool> {
        let now = Instant::ZERO;
        assert!(cluster.logs.take(of, Revision(1)));
        cluster.logs.begin(of, 0);
        cluster.logs.connected();
        let mut reading = cluster.logs.next_reading(now).expect("the log is read");
        if !is_first {
            cluster.logs.read(&reading, (Some(Vec::new()), 0), now);
            reading = cluster.logs.next_reading(now).expect("it is read again");
        }
        let message = |(number, payload): (usize, Vec<u8>)| Delivery {
            partition: of,
            sequence: Sequence(1 + number as u64),
            payload: payload.into(),
        };
        let messages = payloads.into_iter().enumerate().map(message).collect();
        cluster.logs.read(&reading, (Some(messages), 0), now);
        let (unix, wait_max) = (UnixTime::from_micros(0), Duration::ZERO);
        let mut chains = Chains::default();
        let used = std::iter::from_fn(|| {
            let takers = (&mut chains, &mut *seen, &mut *rating);
            cluster.use_record(takers, wait_max, Now { at: now, unix })
        });
        used.map(|used| used.lost == Some(DAMAGED)).collect()
    }

    /// A log whose answer is lost is asked for again, and not read twice if both answers come.
    #[test]
    fn a_reading_without_an_answer_is_repeated() {
        let (mut cluster, now) = (cluster(), Instant::ZERO);
        let of = cluster.partition_of("a.test");
        assert!(cluster.logs.take(of, Revision(1)));
        cluster.logs.begin(of, 0);
        assert_eq!(cluster.logs.next_reading(now), None, "there is no connection");
        cluster.logs.connected();
        let reading = cluster.logs.next_reading(now).expect("the log is read");
        assert_eq!(cluster.logs.next_reading(now), None, "it is asked for");
        let later = cluster.logs.due().expect("it may be lost");
        assert!(later > now && cluster.logs.next_reading(later) == Some(reading));
        let payload = Box::from(&b"\xff"[..]);
        let found = vec![Delivery { partition: of, sequence: Sequence(1), payload }];
        cluster.logs.read(&reading, (Some(found.clone()), 2), later);
        assert_eq!(cluster.logs.unread(of), (3, Some(later)));
        assert_eq!(cluster.logs.due(), None, "what came is used up first");
        cluster.logs.read(&reading, (Some(found), 2), later);
        let (mut chains, mut seen) = (Chains::default(), Seen::new(seen::Settings::default()));
        let mut rating = Rating::new(rating::Settings::default());
        let (unix, wait_max) = (UnixTime::from_micros(0), Duration::ZERO);
        let mut use_one = || {
            let now = Now { at: later, unix };
            let takers = (&mut chains, &mut seen, &mut rating);
            cluster.use_record(takers, wait_max, now).is_some()
        };
        assert!(use_one() && !use_one(), "it was read twice");
        assert_eq!((cluster.logs.unread(of), cluster.logs.used()), ((2, Some(later)), (1, 1)));
        let reading = cluster.logs.next_reading(later).expect("there is more in it");
        cluster.logs.read(&reading, (Some(Vec::new()), 0), later);
        assert_eq!(cluster.logs.unread(of), (0, None), "it was purged");
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
        let mut seen = Seen::new(seen::Settings::default());
        let mut rating = Rating::new(rating::Settings::default());
        let takers = (&mut seen, &mut rating);
        let damaged = use_all(&mut cluster, (of, false), payloads, takers);
        assert_eq!(damaged, [true, true, true, true, false]);
        let (_, url, _) = Discovery::decode(seen.fresh().expect("the last one is new"));
        assert_eq!(url.as_str(), own);
        assert_eq!(seen.fresh(), None);
    }
}
