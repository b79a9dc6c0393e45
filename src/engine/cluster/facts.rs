//! Facts of domains: which registrable domains link to which, so that the owner of a domain counts
//! the links from pages that other nodes fetch.
//!
//! In-links by domain (`quality.source = "inlinks"`) are counted from these records alone: the
//! pairs of domains of each page, and of each redirect, go to the log of the target's partition,
//! own partitions included, and the owner counts what it reads there. Records of links can't be
//! counted, since a cache keeps repeats from the logs. With other sources nothing is written: OPIC
//! and in-links by server count the pages that this node fetches and no others.
//!
//! Laws: a page's pair is written at most once, and not while the cache of pairs remembers it. A
//! record is counted each time that the log is read, but not in the pass for settled URLs.
//! Counts are estimates. A pair counts again when the cache has forgotten it, when the source's
//! domain has a new owner, who has another cache, and when what was written since the last
//! checkpoint is written again after a kill. At a node that takes a partition again after others
//! had it, all of the partition's facts count again.
//! Cost: 3 bytes and the two names for a record; the cache, and 16 bytes for each pair of the page
//! in work. A link within its page's server needs no look-up.

use super::Cluster;
use crate::cluster::Partition;
use crate::engine::ledger::Work;
use crate::engine::node::Settings;
use crate::engine::turn::Turn;
use crate::ground::map::Set;
use crate::ground::time::Instant;
use crate::rating::Rating;
use crate::seen::cache::{Cache, Replacement};
use crate::url::domain::registrable;
use crate::url::{Fingerprint, Fingerprinter, UrlRef};

/// The cost of looking at a link, in units of work (see `ledger`).
const LINK_UNITS: usize = 32;
/// The fixed cost of a link to another server, in units of work, in addition to that of its record.
const PAIR_UNITS: usize = 64;
/// The number of pairs of a page for which memory is kept.
const SPARE_PAIRS: usize = 256;

/// The pairs of domains that were written.
#[derive(Debug)]
pub(super) struct Facts {
    hasher: Fingerprinter,
    recent: Cache,
    /// The pairs of the page whose links are looked at.
    of_page: Set<Fingerprint>,
    /// A scratch buffer.
    pair: Vec<u8>,
}

impl Facts {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            hasher: Fingerprinter::new(settings.member.key),
            recent: Cache::new(settings.facts_log2, Replacement::Clock, settings.incarnation),
            of_page: Set::default(),
            pair: Vec::new(),
        }
    }

    /// Forgets which pairs the last page had.
    fn begin_page(&mut self) {
        self.of_page.clear();
        self.of_page.shrink_to(SPARE_PAIRS);
    }

    /// Returns the fingerprint of a pair of domains.
    fn key_of(&mut self, source: &str, target: &str) -> Fingerprint {
        self.pair.clear();
        self.pair.extend_from_slice(source.as_bytes());
        // Zero is in no name.
        self.pair.push(0);
        self.pair.extend_from_slice(target.as_bytes());
        self.hasher.of(&self.pair)
    }
}

impl Cluster {
    /// Returns whether links between domains are counted.
    pub(in crate::engine) fn counts_domains(&self) -> bool {
        self.sent.facts.is_some()
    }

    /// Writes which other domains a page links to, within the turn's budget. `links` are those of
    /// the page from number `start` on. Returns the number of the first one that wasn't looked at.
    pub(in crate::engine) fn share_facts<'a>(
        &mut self,
        page: UrlRef<'_>,
        start: usize,
        links: &mut dyn Iterator<Item = UrlRef<'a>>,
        turn: &mut Turn,
    ) -> usize {
        let facts = self.sent.facts.as_mut().filter(|_| start == 0);
        facts.into_iter().for_each(Facts::begin_page);
        let (source, mut place) = (registrable(page.host()), start);
        while !turn.is_spent(Work::Joined)
            && let Some(link) = links.next()
        {
            place += 1;
            let mut units = LINK_UNITS;
            if link.origin() != page.origin() {
                units += self.share_pair((source, registrable(link.host())), true, turn.at());
            }
            turn.charge(Work::Joined, units);
        }
        place
    }

    /// Writes that a page redirects to another domain, if it does. Returns the cost in units of
    /// work.
    pub(in crate::engine) fn share_redirect(
        &mut self,
        page: UrlRef<'_>,
        target: UrlRef<'_>,
        now: Instant,
    ) -> usize {
        let pair = (registrable(page.host()), registrable(target.host()));
        LINK_UNITS + self.share_pair(pair, false, now)
    }

    /// Writes a pair of domains, unless they are one, or the pair was written recently. A pair of
    /// the page in work is looked up once. Returns the cost in units of work.
    fn share_pair(
        &mut self,
        (source, target): (&str, &str),
        is_of_page: bool,
        now: Instant,
    ) -> usize {
        let Some(facts) = self.sent.facts.as_mut().filter(|_| source != target) else {
            return PAIR_UNITS;
        };
        let key = facts.key_of(source, target);
        if is_of_page && !facts.of_page.insert(key) || facts.recent.touch(key.0) {
            return PAIR_UNITS;
        }
        self.records.clear();
        self.records.fact(source, target);
        self.outbox.push(self.partitioner.of(target), &self.records, now);
        PAIR_UNITS + self.records.bytes()
    }

    /// Counts a link between domains that the log of a partition says. Returns `false` if it makes
    /// no sense there.
    pub(super) fn use_fact(
        &self,
        partition: Partition,
        (source, target): (&str, &str),
        rating: &mut Rating,
    ) -> bool {
        let is_domain =
            |name: &str| !name.is_empty() && name.is_ascii() && registrable(name) == name;
        let is_here = self.partition_of(target) == partition;
        let is_sound = is_here && source != target && is_domain(source) && is_domain(target);
        if is_sound {
            rating.link_to(target);
        } else {
            log::debug!(
                "cluster: {source:?} linking to {target:?} is no fact of partition {partition}"
            );
        }
        is_sound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::queue::Name;
    use crate::cluster::record::{Reader, Record, Records, Sender};
    use crate::engine::cluster::share::tests::{cluster, use_all};
    use crate::engine::ledger::Ledger;
    use crate::ground::disk::memory::Memory;
    use crate::ground::quality::Quality;
    use crate::ground::stats::{Meter, still};
    use crate::ground::time::Now;
    use crate::rating::{self, Found, Site, Source};
    use crate::seen::{self, Seen};
    use crate::url::Url;

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    fn turn(units: usize) -> Turn {
        Turn::new(Now::default(), Meter::new(still), Ledger::new(units, 0))
    }

    /// Writes the links of a page, in as many turns of this many units as that takes. Returns the
    /// number of turns.
    fn share(cluster: &mut Cluster, (page, links): (&str, &[Url]), units: usize) -> usize {
        let (page, mut turn) = (url(page), turn(units));
        let (mut place, mut turns) = (0, 0);
        while place < links.len() {
            let mut rest = links[place..].iter().map(Url::view);
            place = cluster.share_facts(page.view(), place, &mut rest, &mut turn);
            turn.end();
            turns += 1;
        }
        turns
    }

    /// Publishes everything, and returns the partition, source and target of each fact, sorted.
    fn published(cluster: &mut Cluster) -> Vec<(Partition, String, String)> {
        let mut disk = Memory::default();
        Partition::all().for_each(|partition| cluster.outbox.flush(partition));
        cluster.outbox.connected();
        let mut facts = Vec::new();
        let now = Now::default().at;
        while let Some(publication) = cluster.outbox.next(now, &mut disk).expect("it can be read") {
            for message in &publication.messages {
                let (_, records) = Reader::open(&message.payload).expect("a message");
                facts.extend(records.map(|record| match record {
                    Ok(Record::Fact { source, target }) => {
                        (message.partition, source.to_owned(), target.to_owned())
                    }
                    other => panic!("{other:?}"),
                }));
            }
            cluster.outbox.published(publication.id, Ok(()), now);
        }
        facts.sort();
        facts
    }

    /// A page's pairs are written once, to the log of the target's partition, whoever owns it, and
    /// again only when the cache has forgotten them.
    #[test]
    fn a_pair_is_written_while_the_cache_does_not_remember_it() {
        let mut cluster = cluster();
        let own = cluster.partition_of("b.test");
        assert!(cluster.logs.take(own, crate::cluster::queue::Revision(1)));
        let page = "http://www.a.test/";
        let links = [
            "http://www.a.test/x",
            "http://other.a.test/",
            "https://a.test/",
            "http://b.test/1",
            "http://www.b.test/2",
            "http://c.co.uk/",
            "http://b.test/3",
            "http://10.0.0.1/",
        ]
        .map(url);
        assert_eq!(share(&mut cluster, (page, &links), 1_000_000), 1);
        let of = |source: &str, target: &str| {
            let partition = cluster.partition_of(target);
            (partition, source.to_owned(), target.to_owned())
        };
        let mut expected = vec![of("a.test", "b.test"), of("a.test", "c.co.uk")];
        expected.push(of("a.test", "10.0.0.1"));
        expected.sort();
        let back = [of("b.test", "a.test")];
        assert_eq!(published(&mut cluster), expected);
        share(&mut cluster, ("http://a.test/another", &links), 1_000_000);
        let (page_url, at) = (url(page), Now::default().at);
        cluster.share_redirect(page_url.view(), links[3].view(), at);
        cluster.share_redirect(page_url.view(), links[1].view(), at);
        assert_eq!(published(&mut cluster), [], "the cache remembers them");
        cluster.share_redirect(links[3].view(), page_url.view(), at);
        assert_eq!(published(&mut cluster), back, "another pair");
        let many: Vec<Url> = (0..5_000).map(|n| url(&format!("http://d{n}.test/"))).collect();
        share(&mut cluster, ("http://a.test/many", &many), 1_000_000);
        assert_eq!(published(&mut cluster).len(), 5_000);
        share(&mut cluster, (page, &links), 1_000_000);
        assert_eq!(published(&mut cluster), expected, "the cache has forgotten them");
    }

    /// Law: a page of many links is looked at in many turns, none of which does much more than its
    /// budget, and each pair of it is written once, however small the cache.
    #[test]
    fn the_work_for_a_page_is_bounded() {
        let links: Vec<Url> =
            (0..10_000).map(|n| url(&format!("http://h.d{}.test/{n}", n % 3_000))).collect();
        let mut cluster = cluster();
        assert!(cluster.sent.facts.as_ref().expect("it counts").recent.capacity() < 3_000);
        let turns = share(&mut cluster, ("http://a.test/", &links), 10_000);
        assert!((100..300).contains(&turns), "{turns}");
        let facts = published(&mut cluster);
        assert_eq!(facts.len(), 3_000);
        let distinct: std::collections::BTreeSet<_> = facts.iter().collect();
        assert_eq!(distinct.len(), 3_000);
    }

    fn rating(source: Source, site: Site) -> Rating {
        Rating::new(rating::Settings { source, site, sites_max: 64, ..Default::default() })
    }

    /// A record counts once, in the pass for links; one that makes no sense is reported.
    #[test]
    fn what_is_read_counts_once() {
        let payload = |facts: &[(&str, &str)]| {
            let (mut records, mut payload) = (Records::new(), Vec::new());
            Sender { name: Name::new("b").expect("a name"), incarnation: 1 }.put(&mut payload);
            facts.iter().for_each(|(source, target)| records.fact(source, target));
            records.iter().for_each(|record| payload.extend_from_slice(record));
            payload
        };
        let facts = [("b.test", "a.test"), ("c.test", "a.test")];
        let wrong = [
            ("b.test", "other.test"),
            ("a.test", "a.test"),
            ("", "a.test"),
            ("www.b.test", "a.test"),
            ("b.test", "www.a.test"),
            ("b.test", ""),
            (".", "a.test"),
            ("\u{e9}.test", "a.test"),
        ];
        let domain = url("http://www.a.test/");
        for (source, site, is_first, expected) in [
            (Source::Inlinks, Site::Domain, false, 3),
            (Source::Inlinks, Site::Domain, true, 1),
            (Source::Inlinks, Site::Server, false, 1),
            (Source::Uniform, Site::Domain, false, 1),
        ] {
            let (mut cluster, mut rating) = (cluster(), rating(source, site));
            let mut seen = Seen::new(seen::Settings::default());
            let of = cluster.partition_of("a.test");
            let payloads = vec![payload(&facts), payload(&wrong)];
            let takers = (&mut seen, &mut rating);
            let damaged = use_all(&mut cluster, (of, is_first), payloads, takers);
            assert_eq!(damaged[..2], [false; 2], "{source:?}");
            assert_eq!(damaged[2..], [!is_first; 8], "{source:?}");
            let quality = rating.of(domain.view(), Found::default());
            assert_eq!(quality, Quality::from_millionths(expected * 1_000_000), "{source:?}");
            assert_eq!(rating.sites(), usize::from(expected > 1));
        }
    }
}
