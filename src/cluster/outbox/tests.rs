//! Tests the outbox against a plain list, with a queue that refuses, loses and reorders answers, on
//! a disk that fills up, and with kills at any moment.

use super::*;
use crate::cluster::queue::Name;
use crate::cluster::record::{Reader, Record};
use crate::ground::disk::memory::Memory;
use crate::ground::random::Random;
use crate::url::Fingerprint;
use std::collections::BTreeMap;

const CRAWL: u64 = 0x5eed;

/// What was accepted: for each record its partition, the place that it waits for if it is held, and
/// its own place if that is known.
#[derive(Clone, Debug, Default)]
struct Model {
    records: BTreeMap<u64, Accepted>,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    partition: Partition,
    after: Option<u64>,
    place: Option<u64>,
}

/// A queue that remembers everything.
#[derive(Debug, Default)]
struct Queue {
    /// The content of each publication that was handed out, by any run.
    handed_out: BTreeMap<PublicationId, Publication>,
    taken: BTreeSet<PublicationId>,
    /// The records in each log, and how often.
    logs: BTreeMap<Partition, BTreeMap<u64, u32>>,
}

impl Queue {
    fn has(&self, partition: Partition, record: u64) -> bool {
        self.logs.get(&partition).is_some_and(|log| log.contains_key(&record))
    }

    /// Appends the messages of a publication, unless it has done so before.
    fn take(&mut self, publication: &Publication) {
        if !self.taken.insert(publication.id) {
            return;
        }
        for message in &publication.messages {
            let log = self.logs.entry(message.partition).or_default();
            numbers(&message.payload).into_iter().for_each(|n| *log.entry(n).or_default() += 1);
        }
    }
}

/// Returns the numbers of the records of a message.
fn numbers(payload: &[u8]) -> Vec<u64> {
    let (head, reader) = Reader::open(payload).expect("a whole payload");
    assert_eq!((head.sender.name.as_str(), head.part), ("n", None));
    let number = |record| match record {
        Ok(Record::Tries { fingerprint, .. }) => Some(fingerprint.0),
        Ok(Record::Fact { .. }) => None,
        other => panic!("{other:?}"),
    };
    reader.filter_map(number).collect()
}

struct Rig {
    random: Random,
    settings: Settings,
    disk: Memory,
    now: Instant,
    outbox: Outbox,
    model: Model,
    queue: Queue,
    /// Publications that the world has. Those of an earlier run have no one to answer to.
    with_world: Vec<(Publication, bool)>,
    /// The last mark that is durable, with the model of its time.
    durable: (Mark, Model),
    next: u64,
    runs: u64,
    met: BTreeMap<&'static str, u64>,
}

fn settings(random: &mut Random) -> Settings {
    let batch_bytes = 60 + random.below(300_usize);
    Settings {
        batch_bytes,
        wait_max: Duration::from_secs(random.below(10)),
        messages_max: 1 + random.below(6_usize),
        publication_bytes: batch_bytes + random.below(1_000_usize),
        window: 1 + random.below(4_usize),
        answer_max: Duration::from_secs(20),
        memory_max: 2_000 + random.below(8_000_usize),
    }
}

fn outbox(settings: Settings, run: u64) -> Outbox {
    let sender = Sender { name: Name::new("n").expect("a name"), incarnation: run };
    let mut outbox = Outbox::new(settings, &sender, CRAWL);
    outbox.connected();
    outbox
}

impl Rig {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let settings = settings(&mut random);
        let (mut outbox, mut disk) = (outbox(settings, 0), Memory::default());
        let mark = outbox.mark(&mut disk).expect("there is room");
        Self {
            random,
            settings,
            disk,
            now: Instant::ZERO,
            outbox,
            model: Model::default(),
            queue: Queue::default(),
            with_world: Vec::new(),
            durable: (mark, Model::default()),
            next: 0,
            runs: 0,
            met: BTreeMap::new(),
        }
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn partition(&mut self) -> Partition {
        Partition::new(self.random.below(5)).expect("there are more")
    }

    fn accept(&mut self) {
        let partition = self.partition();
        let back = self.random.below(10_u64);
        let is_held = self.random.one_in(4);
        for _ in 0..1 + self.random.below(3) {
            let n = self.next;
            self.next += 1;
            let place = self.outbox.place().saturating_sub(back);
            let (after, place) = if is_held {
                self.outbox.hold(place, partition, &one(n), self.now);
                (Some(place), None)
            } else {
                let place = self.outbox.place() + 1;
                self.outbox.push(partition, &one(n), self.now);
                (None, Some(place))
            };
            self.model.records.insert(n, Accepted { partition, after, place });
        }
    }

    /// Checks what was handed out, and gives it to the world.
    fn next(&mut self) {
        let result = self.outbox.next(self.now, &mut self.disk);
        let Some(publication) = result.expect("the files are whole") else { return };
        self.check(&publication);
        let known = self.queue.handed_out.insert(publication.id, publication.clone());
        match known {
            Some(known) => {
                assert_eq!(known, publication, "an id has one content");
                self.meet("repeated");
            }
            None => self.meet("handed out"),
        }
        self.with_world.push((publication, true));
    }

    fn check(&mut self, publication: &Publication) {
        let Settings { messages_max, publication_bytes, .. } = self.settings;
        let messages = &publication.messages;
        let bytes: usize = messages.iter().map(|message| message.payload.len()).sum();
        assert!((1..=messages_max).contains(&messages.len()));
        assert!(bytes <= publication_bytes || messages.len() == 1, "{bytes} bytes");
        for message in messages {
            for n in numbers(&message.payload) {
                let record = self.model.records[&n];
                assert_eq!(record.partition, message.partition);
                if let Some(after) = record.after {
                    assert!(self.is_durable(after), "law: held until place {after} is durable");
                }
            }
        }
    }

    /// Returns whether all records up to this place are in their logs.
    fn is_durable(&self, place: u64) -> bool {
        let up_to = |record: &Accepted| record.place.is_some_and(|own| own <= place);
        let mut all = self.model.records.iter().filter(|(_, record)| up_to(record));
        all.all(|(n, record)| self.queue.has(record.partition, *n))
    }

    /// Lets the world answer one publication, or not.
    fn answer(&mut self, is_kind: bool) {
        if self.with_world.is_empty() {
            return;
        }
        let index = self.random.below(self.with_world.len());
        let (publication, is_ours) = self.with_world.swap_remove(index);
        let fate = if is_kind { 0 } else { self.random.below(6_u8) };
        if fate < 4 {
            self.queue.take(&publication);
        }
        let answer = match fate {
            0 | 1 => Some(Ok(())),
            2 => Some(Err(Failure::Unknown)),
            3 => None,
            4 => Some(Err(Failure::Unknown)),
            _ => Some(Err(Failure::Refused)),
        };
        self.meet(
            ["taken", "taken", "answer lost", "no answer", "lost", "refused"][usize::from(fate)],
        );
        if let Some(answer) = answer.filter(|_| is_ours) {
            self.outbox.published(publication.id, answer, self.now);
            if self.random.one_in(5) {
                self.outbox.published(publication.id, answer, self.now);
            }
        }
    }

    fn checkpoint(&mut self) {
        match self.outbox.mark(&mut self.disk) {
            Ok(mark) => {
                if !self.random.one_in(3) {
                    self.durable = (mark, self.model.clone());
                    let dead = self.outbox.on_durable();
                    dead.iter().for_each(|name| self.disk.remove(name).expect("it is there"));
                    if !dead.is_empty() {
                        self.meet("file removed");
                    }
                }
            }
            Err(error) => assert!(error.is_full(), "{error}"),
        }
    }

    /// Kills the process, and resumes from the last durable checkpoint.
    fn kill(&mut self) {
        self.meet("killed");
        self.runs += 1;
        self.with_world.iter_mut().for_each(|(_, is_ours)| *is_ours = false);
        let (Mark { state, files }, model) = self.durable.clone();
        self.model = model;
        // Publications of the earlier run keep their lengths.
        let Settings { batch_bytes, messages_max, publication_bytes, .. } = self.settings;
        let changed = settings(&mut self.random);
        self.settings = Settings { batch_bytes, messages_max, publication_bytes, ..changed };
        self.outbox = outbox(self.settings, self.runs);
        self.outbox.restore_files(&files, &mut self.disk).expect("they are there");
        self.outbox.restore_mark(&state).expect("a whole mark");
        // What was under way may exceed smaller limits.
        self.settings.memory_max = self.settings.memory_max.max(10_000);
        self.outbox.settings = self.settings;
    }

    fn step(&mut self) {
        match self.random.below(100_u8) {
            0..45 => self.accept(),
            45..65 => self.next(),
            65..80 => self.answer(false),
            80..88 => self.now = self.now + Duration::from_secs(self.random.below(4)),
            88..93 => drop(self.outbox.write(self.random.one_in(2), &mut self.disk)),
            93..95 => self.checkpoint(),
            95 => {
                let room = (!self.random.one_in(2)).then(|| self.disk.used() + 500);
                self.disk.limit(room, self.random.one_in(2));
            }
            96 => {
                let partition = self.partition();
                self.outbox.flush(partition);
            }
            97 if self.random.one_in(4) => self.kill(),
            97 => self.publish(100),
            98 if self.random.one_in(4) => {
                self.meet("disconnected");
                self.outbox.disconnected();
                assert_eq!(self.outbox.next(self.now, &mut self.disk).expect("no read"), None);
                self.outbox.connected();
            }
            _ => self.stuck(),
        }
        let counts = self.outbox.counts();
        let memory_max = self.settings.memory_max as u64;
        assert!(counts.memory_bytes <= memory_max, "{counts:?} of {memory_max}");
        if counts.disk_bytes > 0 {
            self.meet("on disk");
        }
        assert!(self.is_durable(self.outbox.durable()), "law: what is durable is in the logs");
    }

    /// Adds much at once, as if the queue were away.
    fn stuck(&mut self) {
        (0..self.random.below(60)).for_each(|_| self.accept());
    }

    /// Lets the queue take what is left, in so many steps.
    fn publish(&mut self, steps: u32) {
        for _ in 0..steps {
            self.next();
            self.answer(true);
            if self.random.one_in(4) {
                self.now = self.now + Duration::from_secs(1);
            }
            if self.outbox.is_empty() {
                break;
            }
        }
    }

    /// Ends all faults and publishes what is left.
    fn finish(mut self) -> BTreeMap<&'static str, u64> {
        self.disk.limit(None, false);
        self.publish(100_000);
        assert!(self.outbox.is_empty(), "all is published: {:?}", self.outbox.counts());
        assert_eq!(self.outbox.durable(), self.outbox.place());
        for (n, record) in &self.model.records {
            assert!(self.queue.has(record.partition, *n), "law: {n} is in its log");
            assert!(self.outbox.is_drained(record.partition));
        }
        let counts = self.outbox.counts();
        assert_eq!((counts.memory_bytes, counts.disk_bytes), (0, 0));
        self.met
    }
}

/// The laws of the outbox, for random sequences of calls, answers and faults.
#[test]
fn laws_hold_whatever_happens() {
    let mut met = BTreeMap::new();
    for seed in 0..200 {
        let mut rig = Rig::new(seed);
        (0..600).for_each(|_| rig.step());
        rig.finish().into_iter().for_each(|(what, count)| *met.entry(what).or_insert(0) += count);
    }
    let all =
        ["repeated", "handed out", "answer lost", "no answer", "refused", "killed", "on disk"];
    for what in all.into_iter().chain(["file removed", "lost", "taken"]) {
        assert!(met.get(what).is_some_and(|count| *count > 50), "{what} is rare: {met:?}");
    }
}

/// A broken outbox, which lets held records out early, is found out.
#[test]
fn held_records_that_are_let_out_early_are_noticed() {
    let broken = || {
        for seed in 0..20 {
            let mut rig = Rig::new(seed);
            rig.outbox.is_mutant = true;
            (0..600).for_each(|_| rig.step());
        }
    };
    let panic = std::panic::catch_unwind(broken).expect_err("a law is broken");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("law: held until place"), "{message}");
}

fn one(n: u64) -> Records {
    let mut records = Records::new();
    records.tries(Fingerprint(n), 0);
    records
}

#[test]
fn a_publication_is_repeated_after_growing_pauses() {
    let (mut outbox, mut disk) = (outbox(Settings::default(), 1), Memory::default());
    let partition = Partition::new(7).expect("there is one");
    outbox.push(partition, &one(1), Instant::ZERO);
    assert_eq!(outbox.next_at(), Some(Instant::ZERO + Duration::from_secs(5)));
    let mut now = Instant::ZERO + Duration::from_secs(5);
    let first = outbox.next(now, &mut disk).expect("no disk").expect("it is sealed");
    assert_eq!((first.id, first.messages.len()), (PublicationId { process: 1, number: 0 }, 1));
    for pause in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(outbox.next(now, &mut disk).expect("no disk"), None);
        outbox.published(first.id, Err(Failure::Refused), now);
        let until = now + Duration::from_secs(pause);
        assert_eq!(outbox.next_at(), Some(until));
        let early = now + (Duration::from_secs(pause) - Duration::from_micros(1));
        assert_eq!(outbox.next(early, &mut disk).expect("no disk"), None);
        now = until;
        assert_eq!(outbox.next(now, &mut disk).expect("no disk"), Some(first.clone()));
    }
    outbox.disconnected();
    assert_eq!((outbox.next(now, &mut disk).expect("no disk"), outbox.next_at()), (None, None));
    outbox.connected();
    assert_eq!(outbox.next(now, &mut disk).expect("no disk"), Some(first.clone()), "at once");
    now = now + Settings::default().answer_max;
    assert_eq!(outbox.next(now, &mut disk).expect("no disk"), Some(first.clone()), "no answer");
    assert_eq!((outbox.durable(), outbox.is_drained(partition)), (0, false));
    outbox.published(first.id, Ok(()), now);
    assert_eq!((outbox.durable(), outbox.is_drained(partition)), (1, true));
    assert_eq!(outbox.counts().repeats, 9);
    assert!(outbox.is_empty() && outbox.next_at().is_none());
}

/// A batch that can't be read back is reported each time, and is not skipped.
#[test]
fn a_damaged_file_is_reported() {
    let mut disk = Memory::default();
    let settings = Settings { batch_bytes: 1, memory_max: 100, ..Settings::default() };
    let mut outbox = outbox(settings, 1);
    let partition = Partition::new(7).expect("there is one");
    (0..20).for_each(|n| outbox.push(partition, &one(n), Instant::ZERO));
    outbox.write(true, &mut disk).expect("there is room");
    let name = disk.names().pop().expect("there is a file");
    let len = disk.len(&name).expect("no fault").expect("it exists");
    disk.truncate(&name, len - 1).expect("no fault");
    let mut published = 0;
    for _ in 0..100 {
        match outbox.next(Instant::ZERO, &mut disk) {
            Ok(Some(Publication { id, messages })) => {
                published += messages.len();
                outbox.published(id, Ok(()), Instant::ZERO);
            }
            Ok(None) => panic!("{published} of 20, and no error"),
            Err(frame::Error::Damaged(damage)) => assert_eq!(damage.flaw, Flaw::Cut),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((published, outbox.durable()), (19, 19));
}

/// A mark with any bit changed or cut is refused or restored, and what is restored can be used.
#[test]
fn changed_marks_do_no_harm() {
    let mut random = Random(3);
    let mut rig = Rig::new(5);
    (0..300).for_each(|_| rig.step());
    rig.disk.limit(None, false);
    (0..3_000).for_each(|_| rig.accept());
    let Mark { state, files } = rig.outbox.mark(&mut rig.disk).expect("there is room");
    assert!(!files.is_empty() && state.len() > 500);
    let mut refused = 0;
    for _ in 0..1_000 {
        let mut bytes = state.clone();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        bytes.truncate(if random.one_in(3) { at } else { usize::MAX });
        let mut outbox = outbox(rig.settings, 9);
        outbox.restore_files(&files, &mut rig.disk).expect("they are there");
        if outbox.restore_mark(&bytes).is_err() {
            refused += 1;
            continue;
        }
        let partition = rig.partition();
        outbox.push(partition, &one(1), rig.now);
        outbox.hold(outbox.place(), partition, &one(2), rig.now);
        for _ in 0..10 {
            assert!(outbox.durable() <= outbox.place());
            match outbox.next(rig.now, &mut rig.disk) {
                Ok(Some(publication)) => outbox.published(publication.id, Ok(()), rig.now),
                Ok(None) | Err(_) => break,
            }
        }
    }
    assert!((200..900).contains(&refused), "{refused} of 1,000 are refused");
}
