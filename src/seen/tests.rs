//! Tests the seen-set against a plain map, on a disk that fills up, loses power and returns to
//! marks.

mod damage;

use super::lookup::{Answer, Lookup};
use super::*;
use crate::ground::disk::memory::Memory;
use crate::ground::frame::Mark;
use crate::ground::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const CRAWL: u64 = 0x5eed;

/// The expected state: for each fingerprint the number of its first offer, and those that came out.
#[derive(Clone, Default)]
struct Model {
    first: BTreeMap<u64, u64>,
    out: BTreeSet<u64>,
}

/// A seen-set on a disk with faults, and its model.
struct Rig {
    random: Random,
    disk: Memory,
    settings: Settings,
    seen: Seen,
    model: Model,
    job: Option<SeenJob>,
    /// The number of the next offer. Restores don't reset it, so that offers undone by a restore
    /// have numbers of their own.
    next: u64,
    /// Keys are drawn below this number, and shifted.
    keys: u64,
    shift: u32,
    offers_max: u64,
    padding_max: u64,
    /// The last durable mark, of which the seen-set may not know.
    durable: Option<(Mark, Model)>,
    /// The last mark that the seen-set knows to be durable.
    settled: Option<(Mark, Model)>,
    /// Whether new URLs come out by bucket.
    hastened: bool,
    /// A ticket, and the number of the next offer when it was issued.
    ticket: Option<(u64, u64)>,
    met: BTreeMap<&'static str, u64>,
}

impl Rig {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let settings = Settings {
            urls_max: usize::MAX,
            memory_bytes: 1 << (8 + random.below(9)),
            cache_entries_log2: random.below(8) as u32,
            crawl: Some(CRAWL),
        };
        let offers_max = [2, 10, 30, 30, 30, 30, 700][random.below(7) as usize];
        Self {
            disk: Memory::default(),
            seen: Seen::new(settings.clone()),
            settings,
            model: Model::default(),
            job: None,
            next: 0,
            keys: offers_max << random.below(9),
            shift: [0, 30, 44][random.below(3) as usize],
            offers_max,
            padding_max: if random.one_in(8) { 3_000 } else { 40 },
            durable: None,
            settled: None,
            hastened: false,
            ticket: None,
            met: BTreeMap::new(),
            random,
        }
    }

    fn met(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..6 => self.offer(),
            6..9 => self.take_some(),
            9..11 => {
                let written = self.seen.write(&mut self.disk);
                self.met(if written.is_ok() { "written" } else { "not written" });
            }
            11..17 => self.work(),
            17 => self.disturb(),
            18 => self.mark(),
            _ if self.random.one_in(8) => self.restore(),
            _ => {
                let held = self.random.one_in(2);
                self.seen.hold(held);
                if self.random.one_in(3) {
                    self.hastened = true;
                    self.seen.hasten();
                }
            }
        }
    }

    fn offer(&mut self) {
        for _ in 0..=self.random.below(self.offers_max) {
            let key = self.random.below(self.keys).rotate_right(self.shift);
            if self.random.one_in(2) {
                self.seen.prefetch(&[Fingerprint(key), Fingerprint(!key)]);
            }
            if self.random.one_in(16) {
                self.look_up(key);
            }
            let mut bytes = self.next.to_le_bytes().to_vec();
            bytes.extend_from_slice(&key.to_le_bytes());
            bytes.resize(16 + self.random.below(self.padding_max) as usize, b'.');
            let mut written = 0;
            self.seen.offer_with(Fingerprint(key), |out| {
                out.extend_from_slice(&bytes);
                written += 1;
            });
            let known = self.model.first.contains_key(&key);
            assert!(written == 1 || known && written == 0, "all but known ones are written down");
            self.model.first.entry(key).or_insert(self.next);
            self.next += 1;
        }
    }

    /// The answer is that of an offer made now, also when the work is granted piece by piece.
    fn look_up(&mut self, key: u64) {
        let (mut lookup, mut answer) = (Lookup::new(Fingerprint(key)), Answer::More);
        let granted = [1, 40, usize::MAX][self.random.below(3) as usize];
        while answer == Answer::More {
            let looked = self.seen.look_up(&mut lookup, granted, &mut self.disk);
            answer = looked.expect("what was written is read").0;
        }
        let known = self.model.first.contains_key(&key);
        match answer {
            Answer::Busy => assert!(self.job.is_some() || self.seen.failed.is_some()),
            answer => assert_eq!(answer == Answer::Known, known, "looked up {key:x}"),
        }
        self.met(match answer {
            Answer::Busy => "busy",
            _ => "looked up",
        });
    }

    fn take_some(&mut self) {
        let most = 1 + self.random.below(2 * self.offers_max);
        for _ in 0..most {
            let Some(bytes) = self.seen.fresh() else { break };
            let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight"));
            let (number, key) = (word(0), word(8));
            assert_eq!(self.model.first.get(&key), Some(&number), "the first comes out");
            let last = self.model.out.last().copied();
            assert!(self.hastened || last < Some(number), "in order of arrival");
            assert!(self.model.out.insert(number), "it comes out once");
        }
        self.ask_ticket();
    }

    /// What was offered before a ticket was issued has come out when the ticket says so.
    fn ask_ticket(&mut self) {
        let next = self.next;
        let (ticket, before) = *self.ticket.get_or_insert_with(|| (self.seen.ticket(), next));
        if self.seen.has_answered(ticket) {
            let mut offered = self.model.first.values().filter(|number| **number < before);
            assert!(offered.all(|number| self.model.out.contains(number)), "all are answered");
            self.ticket = None;
            self.met(if before < next { "ticket waited" } else { "ticket" });
        }
    }

    /// Requests a job, or runs the one requested.
    fn work(&mut self) {
        let Some(job) = self.job.take() else {
            match self.seen.job(&mut self.disk) {
                Ok(job) => self.job = job,
                Err(_) => self.met("not begun"),
            }
            return;
        };
        self.met(job.kind());
        assert!(matches!(self.seen.job(&mut self.disk), Ok(None)), "one job at a time");
        if let Err(error) = self.seen.worked(job.run()) {
            assert!(matches!(error, frame::Error::Disk(_)), "{error}");
            self.met("job failed");
        }
    }

    /// The disk becomes full, fails to sync, or recovers.
    fn disturb(&mut self) {
        let width = self.random.below(20);
        let room = self.disk.used() + self.random.below(1 << width);
        let is_full = self.random.one_in(2);
        self.disk.limit(is_full.then_some(room), self.random.one_in(2));
        self.disk.fail_syncs(self.random.one_in(4));
    }

    fn mark(&mut self) {
        if !self.seen.is_quiet() {
            return;
        }
        let Ok(mark) = self.seen.mark(&mut self.disk) else { return self.met("not marked") };
        self.met("marked");
        let synced = mark.files.iter().all(|(name, _)| self.disk.sync(name).is_ok());
        if synced {
            // The checkpoint may be durable before the process can report it.
            self.durable = Some((mark, self.model.clone()));
            if self.random.one_in(2) {
                self.settled = self.durable.clone();
                for name in self.seen.on_durable() {
                    self.disk.remove(&name).expect("what goes is there");
                }
            }
        }
    }

    /// The process dies, and perhaps the machine; another one continues.
    fn restore(&mut self) {
        let from = if self.random.one_in(3) { &self.settled } else { &self.durable };
        let Some((mark, model)) = from.clone() else { return };
        if let (Some(job), true) = (self.job.take(), self.random.one_in(2)) {
            job.run(); // nobody hears of it
        }
        if self.random.one_in(2) {
            let random = &mut self.random;
            self.disk.lose_power(|most| random.below(most + 1));
            self.met("power lost");
        }
        self.disk.limit(None, false);
        if self.random.one_in(4) {
            self.settings.memory_bytes = 1 << (8 + self.random.below(9));
        }
        self.seen = Seen::restore(self.settings.clone(), &mark.state, &mut self.disk)
            .expect("a mark that was durable can be restored");
        let named: BTreeSet<String> = mark.files.iter().map(|(name, _)| name.clone()).collect();
        assert!(self.disk.names().into_iter().eq(named), "no other file is left");
        (self.model, self.ticket) = (model.clone(), None);
        // From here on the restored state counts as durable.
        self.durable = Some((mark, model));
        self.settled = self.durable.clone();
        self.met("restored");
    }

    /// All faults end; every offer gets its answer.
    fn finish(mut self) -> BTreeMap<&'static str, u64> {
        self.disk.limit(None, false);
        self.disk.fail_syncs(false);
        self.seen.hold(false);
        for _ in 0..100_000 {
            self.take_some();
            self.seen.hasten();
            self.hastened = true;
            self.work();
            if self.seen.is_settled() && self.seen.is_quiet() && self.job.is_none() {
                break;
            }
        }
        assert!(self.seen.is_settled() && self.seen.is_quiet(), "it comes to an end");
        let firsts: BTreeSet<u64> = self.model.first.values().copied().collect();
        assert_eq!(self.model.out, firsts, "each first-timer came out");
        assert_eq!(self.seen.len(), firsts.len());
        let totals = self.seen.totals();
        assert_eq!((totals.waiting, totals.dropped), (0, 0));
        let mark = self.seen.mark(&mut self.disk).expect("there is room");
        self.seen.on_durable().iter().for_each(|name| self.disk.remove(name).expect("it is there"));
        while let Some(job) = self.seen.job(&mut self.disk).expect("there is room") {
            self.seen.worked(job.run()).expect("it only removes files");
        }
        let named: BTreeSet<String> = mark.files.into_iter().map(|(name, _)| name).collect();
        assert!(self.disk.names().into_iter().eq(named), "no file is left behind");
        self.met
    }
}

/// Law: of all offers with one fingerprint the first comes out, once, and nothing else: from memory
/// to disk, through merges, full disks, marks, restores and power losses.
#[test]
fn each_fingerprint_passes_once() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..200 {
        let mut rig = Rig::new(seed);
        for _ in 0..250 {
            rig.step();
        }
        for (what, times) in rig.finish() {
            *met.entry(what).or_default() += times;
        }
    }
    let stages = ["found", "merge", "read", "sweep", "write", "job failed", "busy"];
    assert!(met["ticket waited"] > 30, "{met:?}");
    for what in
        stages.into_iter().chain(["not written", "not marked", "marked", "restored", "power lost"])
    {
        assert!(met.get(what).is_some_and(|times| *times > 30), "{what} was met: {met:?}");
    }
}

/// Law: in memory the answer is immediate, and a crawl that isn't kept writes nothing to disk; what
/// exceeds the memory is dropped and counted.
#[test]
fn without_a_disk_answers_come_at_once() {
    for memory_bytes in [1 << 20, 3_000] {
        let settings = Settings { memory_bytes, ..Settings::default() };
        let (mut seen, mut disk) = (Seen::new(settings), Memory::default());
        let (mut model, mut random, mut dropped) = (BTreeSet::new(), Random(5), 0);
        for _ in 0..200 {
            for _ in 0..50 {
                let key = random.below(4_000);
                let (len, known) = (seen.len(), model.contains(&key));
                seen.offer(Fingerprint(key), &key.to_le_bytes());
                let out = seen.fresh().map(|bytes| bytes.to_vec());
                if !known && seen.len() > len {
                    assert_eq!(out, Some(key.to_le_bytes().to_vec()));
                    model.insert(key);
                } else {
                    assert_eq!(out, None);
                    dropped += u64::from(!known);
                }
                assert!(seen.is_settled());
            }
            assert!(matches!(seen.job(&mut disk), Ok(None)));
            seen.write(&mut disk).expect("nothing is written");
        }
        assert_eq!((seen.len(), seen.dropped()), (model.len(), dropped));
        assert_eq!(seen.is_full(), dropped > 0);
        assert_eq!(dropped > 0, memory_bytes == 3_000);
        assert!(disk.names().is_empty());
    }
}

/// Law: at most as many as the cap come out, each once; the rest is counted.
#[test]
fn a_full_set_drops_what_is_new_and_counts_it() {
    let mut seen = Seen::new(Settings { urls_max: 2, ..Settings::default() });
    for key in [1, 2, 3, 1, 3] {
        seen.offer(Fingerprint(key), b"x");
    }
    assert_eq!((seen.len(), seen.dropped()), (2, 2));
    assert!(seen.fresh().is_some() && seen.fresh().is_some() && seen.fresh().is_none());
    for seed in 0..60 {
        let mut random = Random(seed);
        let urls_max = 1 + random.below(300) as usize;
        let memory_bytes = 1 << (8 + random.below(4));
        let crawl = Some(CRAWL);
        let settings = Settings { urls_max, memory_bytes, cache_entries_log2: 2, crawl };
        let (mut seen, mut disk) = (Seen::new(settings), Memory::default());
        let (mut offered, mut out) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..1_500 {
            let key = random.below(500_u64).rotate_right(4);
            seen.offer(Fingerprint(key), &key.to_le_bytes());
            offered.insert(key);
            if random.one_in(50) {
                seen.hasten();
            }
            if let Some(job) = seen.job(&mut disk).expect("there is room") {
                seen.worked(job.run()).expect("the disk is well");
            }
            while let Some(bytes) = seen.fresh() {
                let key = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                assert!(out.insert(key) && offered.contains(&key), "seed {seed}");
            }
            assert!(out.len() <= urls_max && seen.len() <= urls_max);
        }
        assert!(seen.is_full() && seen.dropped() > 0 && seen.len() == urls_max, "seed {seed}");
    }
}

/// Law: when the frontier runs dry, it gets the new URLs of each bucket as soon as it is merged, in
/// order of arrival. If buckets are small compared with the log, the log isn't read for each of
/// them.
#[test]
fn a_starving_frontier_is_served_bucket_by_bucket() {
    for (padding, offers, reads_max) in [(0, 50, BUCKETS), (4_000, 600, 8)] {
        let settings =
            Settings { memory_bytes: 1 << 20, crawl: Some(CRAWL), ..Settings::default() };
        let (mut seen, mut disk) = (Seen::new(settings), Memory::default());
        let (mut random, mut next) = (Random(8), 0_u64);
        let mut offer = |seen: &mut Seen, offers: u64, padding: usize| {
            for _ in 0..offers {
                let key = random.word();
                let bytes = [key.to_le_bytes().to_vec(), next.to_le_bytes().to_vec()].concat();
                seen.offer(Fingerprint(key), &[bytes, vec![b'.'; padding]].concat());
                next += 1;
            }
        };
        // Until there are buckets.
        while matches!(seen.known, Known::Memory(_)) || seen.round.is_some() {
            offer(&mut seen, 5_000, 0);
            while let Some(job) = seen.job(&mut disk).expect("there is room") {
                seen.worked(job.run()).expect("the disk is well");
                while seen.fresh().is_some() {}
            }
            while seen.fresh().is_some() {}
        }
        offer(&mut seen, offers, padding);
        seen.hasten();
        let (mut reads, mut merges, mut taken) = (0, 0, 0);
        while let Some(job) = seen.job(&mut disk).expect("there is room") {
            merges += usize::from(job.kind() == "merge");
            reads += usize::from(job.kind() == "read");
            let is_read = job.kind() == "read";
            seen.worked(job.run()).expect("the disk is well");
            let (mut buckets, mut last) = (BTreeSet::new(), None);
            while let Some(bytes) = seen.fresh() {
                let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("8"));
                buckets.insert(batch::bucket_of(word(0)));
                assert!(last < Some(word(8)), "in order of arrival");
                last = Some(word(8));
                taken += 1;
            }
            assert_eq!(is_read, !buckets.is_empty());
            assert!(padding > 0 || buckets.len() <= 1, "{buckets:?}");
        }
        assert!(seen.is_settled() && merges > 20 && taken >= offers);
        assert!((1..=reads_max).contains(&reads), "{reads} of {merges}");
    }
}

/// Law: a bucket counts once it is durable, and not before.
#[test]
fn a_merge_that_cannot_be_synced_is_done_again() {
    let settings = Settings { memory_bytes: 1 << 10, crawl: Some(CRAWL), ..Settings::default() };
    let (mut seen, mut disk, mut random) = (Seen::new(settings), Memory::default(), Random(2));
    let (mut failed, mut out) = (0, 0);
    for _ in 0..500 {
        seen.offer(Fingerprint(random.word()), b"bytes");
    }
    seen.hasten();
    while let Some(job) = seen.job(&mut disk).expect("there is room") {
        let fails = matches!(job.kind(), "found" | "merge") && random.one_in(2);
        disk.fail_syncs(fails);
        let worked = seen.worked(job.run());
        failed += u32::from(worked.is_err());
        assert_eq!(worked.is_err(), fails);
        while seen.fresh().is_some() {
            out += 1;
        }
    }
    assert!(failed > 20 && out == 500 && seen.len() == 500 && seen.is_settled(), "{failed}");
}

/// Law: the seen-set reports when more waits than there is memory for, and jobs relieve it.
#[test]
fn it_is_overloaded_before_memory_runs_out() {
    let memory_bytes = 12 << 20;
    let settings = Settings { memory_bytes, crawl: Some(CRAWL), ..Settings::default() };
    let (mut seen, mut disk, mut random) = (Seen::new(settings), Memory::default(), Random(6));
    for life in 0..3 {
        let mut offers = 0;
        while !seen.is_overloaded() {
            seen.offer(Fingerprint(random.word()), b"");
            offers += 1;
            if offers % 100 == 0 {
                seen.write(&mut disk).expect("there is room");
            }
            while seen.fresh().is_some() {}
        }
        let table_bytes = match &seen.known {
            Known::Memory(memory) => memory.table.bytes(),
            Known::Moving { .. } | Known::Disk(_) => 0,
        };
        let waiting_bytes = seen.totals().waiting as usize * ENTRY_BYTES;
        // Besides the table one share of 32 is for waiting URLs; jobs have three.
        assert!(waiting_bytes > memory_bytes / 40, "offers could wait, life {life}");
        assert!(table_bytes + waiting_bytes < memory_bytes, "life {life}");
        while let Some(job) = seen.job(&mut disk).expect("there is room") {
            seen.worked(job.run()).expect("the disk is well");
            while seen.fresh().is_some() {}
        }
        assert!(!seen.is_overloaded(), "life {life}");
    }
    assert!(matches!(seen.known, Known::Disk(_)) && seen.totals().merges > 60);
}

/// Law: what memory answers is no look-up of the cache; what comes after is one, and a hit if it is
/// a duplicate that the cache still has.
#[test]
fn look_ups_of_the_cache_begin_when_memory_is_full() {
    let settings = Settings {
        memory_bytes: 1 << 20,
        cache_entries_log2: 4,
        crawl: Some(CRAWL),
        ..Settings::default()
    };
    let (mut seen, mut random) = (Seen::new(settings), Random(6));
    let mut looked_up = || {
        let word = random.word();
        (0..3).for_each(|_| seen.offer(Fingerprint(word), b""));
        while seen.fresh().is_some() {}
        let totals = seen.totals();
        assert_eq!(totals.hits, totals.cache_hits_of_run);
        (totals.cache_lookups_of_run, totals.cache_hits_of_run)
    };
    let first = (0..200_000).map(|_| looked_up()).find(|(lookups, _)| *lookups > 0);
    assert_eq!(first, Some((3, 2)), "the first that didn't fit, and twice again");
    assert_eq!(looked_up(), (6, 4));
}

/// Law: a crawl that resumes with less memory than it had converts its table to buckets at once.
#[test]
fn a_table_that_is_too_large_after_a_restore_moves() {
    let mut settings =
        Settings { memory_bytes: 8 << 20, crawl: Some(CRAWL), ..Settings::default() };
    let (mut seen, mut disk, mut random) =
        (Seen::new(settings.clone()), Memory::default(), Random(6));
    for _ in 0..200_000 {
        seen.offer(Fingerprint(random.word()), b"");
    }
    while seen.fresh().is_some() {}
    let mark = seen.mark(&mut disk).expect("there is room");
    for (memory_bytes, moves) in [(8 << 20, false), (1 << 20, true)] {
        settings.memory_bytes = memory_bytes;
        let restored = Seen::restore(settings.clone(), &mark.state, &mut disk);
        let mut seen = restored.expect("it was marked just now");
        assert_eq!(seen.is_overloaded(), moves, "more is there than there may be");
        while let Some(job) = seen.job(&mut disk).expect("there is room") {
            seen.worked(job.run()).expect("the disk is well");
        }
        assert!(!seen.is_overloaded() && seen.len() == 200_000);
        assert_eq!(matches!(seen.known, Known::Disk(_)), moves);
    }
}
