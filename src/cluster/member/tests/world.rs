//! A simulated world of members that share a queue, with faults that a seed chooses.
//!
//! Time is global and in microseconds. Each process has a clock that runs at its own rate, within
//! the bound on drift. Requests, answers and changes of entries travel for a time of their own;
//! only the changes of one entry arrive in order. Requests may be lost, carried out twice, or
//! carried out long after their process died; answers may be lost or come twice. Connections are
//! lost for a while, after which all entries are shown again. Processes are killed and restarted
//! with and without their job directory, put to sleep, run twice under one name, and leave.

use super::judge::{Judge, expect};
use super::queue::Queue;
use crate::cluster::member::{Change, Member, Settings};
use crate::cluster::queue::{Entry, Key, Name, Revision, Write, WriteFailure, WriteId};
use crate::cluster::{Partition, Partitioner};
use crate::ground::random::Random;
use crate::ground::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A second.
pub(super) const SECOND: u64 = 1_000_000;
/// The hash key of every crawl.
pub(super) const KEY: [u8; 16] = *b"members' own key";

/// What the world is like, and what may happen in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) partitions: u16,
    pub(super) ttl_us: u64,
    pub(super) settle_us: u64,
    pub(super) drift_ppm: u32,
    /// Whether clocks run at the bounds.
    pub(super) is_drift_extreme: bool,
    /// One in so many requests, answers and changes is delayed for up to two leases; 0 for none.
    pub(super) delayed: u64,
    /// One in so many processes hears everything later by up to half a lease; 0 for none.
    pub(super) slow: u64,
    /// One in so many requests and answers is lost; 0 for none.
    pub(super) lost: u64,
    /// One in so many requests is carried out twice; 0 for none.
    pub(super) twice: u64,
}

/// A clock that runs at its own rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    offset: u64,
    /// Local microseconds in a million global ones.
    rate: u64,
}

impl Clock {
    pub(super) fn local(self, at: u64) -> Instant {
        let local = u128::from(at) * u128::from(self.rate) / 1_000_000;
        Instant::from_micros(self.offset + local as u64)
    }

    /// Returns the first global time at which the clock shows `at`.
    pub(super) fn global(self, at: Instant) -> u64 {
        let local = at.as_micros().saturating_sub(self.offset);
        let global = (u128::from(local) * 1_000_000).div_ceil(u128::from(self.rate));
        u64::try_from(global).unwrap_or(u64::MAX)
    }
}

/// A process that runs a member.
#[derive(Debug)]
pub(super) struct Process {
    /// The number of the process.
    pub(super) id: u32,
    pub(super) name: Name,
    /// The number of its job directory.
    pub(super) job: u32,
    pub(super) member: Member,
    pub(super) clock: Clock,
    pub(super) incarnation: u64,
    /// The number of its connection; `None` while it has none.
    connection: Option<u64>,
    /// Until when it is asleep.
    asleep_until: u64,
    is_leaving: bool,
    /// How much later it hears everything.
    slow: u64,
    /// When it last did anything.
    touched: u64,
    /// When it is to be called.
    deadline: u64,
}

/// What happens at a time.
#[derive(Clone, Debug)]
enum Event {
    Start { name: Name, job: u32, previous: Option<u64> },
    Kill(u32),
    Sleep(u32, u64),
    Cut(u32),
    Connect(u32),
    Leave(u32),
    Release(u32, Partition),
    Expire(u32),
    Arrive { from: u32, connection: u64, write: Write },
    Answer { to: u32, connection: u64, id: WriteId, answer: Result<Revision, WriteFailure> },
    Show { to: u32, connection: u64, entry: Entry },
    Look,
}

/// The world.
#[derive(Debug)]
pub(super) struct World {
    pub(super) rule: Rule,
    pub(super) now: u64,
    pub(super) judge: Judge,
    pub(super) processes: BTreeMap<u32, Process>,
    /// How many writes were handed out.
    pub(super) writes: u64,
    /// How many writes came too late.
    pub(super) conflicts: u64,
    /// The changes that were reported, by process.
    pub(super) changes: Vec<(u64, u32, Change)>,
    random: Random,
    queue: Queue,
    events: BTreeMap<(u64, u64), Event>,
    /// When the last change of an entry that is under way to a process will arrive.
    shown_at: BTreeMap<(u32, Key), u64>,
    /// The number of events, processes and connections so far.
    counts: [u64; 3],
}

impl World {
    pub(super) fn new(seed: u64, rule: Rule) -> Self {
        Self {
            rule,
            now: 0,
            judge: Judge::default(),
            processes: BTreeMap::new(),
            writes: 0,
            conflicts: 0,
            changes: Vec::new(),
            random: Random(seed),
            queue: Queue::default(),
            events: BTreeMap::new(),
            shown_at: BTreeMap::new(),
            counts: [0; 3],
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            key: KEY,
            partitions: self.rule.partitions,
            ttl: Duration::from_micros(self.rule.ttl_us),
            drift_ppm: self.rule.drift_ppm,
            settle: Duration::from_micros(self.rule.settle_us),
            equal: vec![("scope".into(), "example.org".into())],
        }
    }

    /// Starts a process after a while.
    pub(super) fn start(&mut self, after: u64, name: &str, job: u32, previous: Option<u64>) {
        let name = Name::new(name).expect("a name");
        self.at(self.now + after, Event::Start { name, job, previous });
    }

    pub(super) fn kill(&mut self, after: u64, id: u32) {
        self.at(self.now + after, Event::Kill(id));
    }

    pub(super) fn sleep(&mut self, after: u64, id: u32, long: u64) {
        self.at(self.now + after, Event::Sleep(id, long));
    }

    pub(super) fn cut(&mut self, after: u64, id: u32, long: u64) {
        self.at(self.now + after, Event::Cut(id));
        self.at(self.now + after + long, Event::Connect(id));
    }

    pub(super) fn leave(&mut self, after: u64, id: u32) {
        self.at(self.now + after, Event::Leave(id));
    }

    /// Ends all faults: processes wake, connections are there, messages arrive soon.
    pub(super) fn calm(&mut self) {
        (self.rule.delayed, self.rule.lost, self.rule.twice) = (0, 0, 0);
        self.rule.slow = 0;
        // Those that were put off because somebody slept.
        self.events.retain(|_, event| !matches!(event, Event::Cut(_)));
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            let process = self.processes.get_mut(&id).expect("it runs");
            process.asleep_until = process.asleep_until.min(self.now);
            process.slow = 0;
            let is_cut = process.connection.is_none();
            if is_cut {
                self.at(self.now, Event::Connect(id));
            }
        }
    }

    /// Lets time pass until `end`.
    pub(super) fn run(&mut self, end: u64) -> Result<(), String> {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.happen(event)?;
            let awake = self.processes.values().filter(|process| process.asleep_until <= at);
            for process in awake.clone() {
                self.judge.asks(process, at, self.rule)?;
            }
            Judge::pace(awake, at, self.rule)?;
        }
        self.now = end;
        Ok(())
    }

    /// Returns whether the living hold everything, each its own, at the pace of their number.
    pub(super) fn is_settled(&self) -> Result<(), String> {
        let staying = self.processes.values().filter(|process| !process.is_leaving);
        let names: BTreeSet<&str> = staying.map(|process| process.name.as_str()).collect();
        let partitioner = Partitioner::new(KEY);
        for partition in Partition::all().take(usize::from(self.rule.partitions)) {
            let may = |process: &&Process| {
                process.member.may_ask(partition, process.clock.local(self.now))
            };
            let asking: Vec<&Process> = self.processes.values().filter(may).collect();
            let target = partitioner.node_for(partition, names.iter().copied());
            let names: Vec<&str> = asking.iter().map(|process| process.name.as_str()).collect();
            let is_right = asking.len() <= 1 && names.first().copied() == target;
            expect(is_right, || format!("{partition} of {target:?} is asked by {names:?}"))?;
            for process in asking {
                let nodes = process.member.nodes() as usize;
                let name = &process.name;
                expect(nodes == names_len(&self.processes), || {
                    format!("{name} thinks of {nodes} nodes")
                })?;
            }
        }
        Ok(())
    }

    fn at(&mut self, at: u64, event: Event) {
        self.counts[0] += 1;
        self.events.insert((at.max(self.now), self.counts[0]), event);
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        if let Some(wakes) = self.sleeper(&event) {
            self.at(wakes, event);
            return Ok(());
        }
        match event {
            Event::Look => Ok(()),
            Event::Start { name, job, previous } => self.begin(name, job, previous),
            Event::Kill(id) => {
                self.edge(id)?;
                self.processes.remove(&id);
                Ok(())
            }
            Event::Sleep(id, long) => {
                self.edge(id)?;
                if let Some(process) = self.processes.get_mut(&id) {
                    process.asleep_until = self.now + long;
                    self.at(self.now + long, Event::Expire(id));
                }
                Ok(())
            }
            Event::Arrive { from, connection, write } => {
                self.arrive(from, connection, &write);
                Ok(())
            }
            Event::Cut(id) => self.act(id, |process, now| {
                process.connection = None;
                process.member.disconnected(now);
            }),
            Event::Connect(id) => self.connect(id),
            Event::Leave(id) => self.act(id, |process, now| {
                process.is_leaving = true;
                process.member.leave(now);
            }),
            Event::Release(id, partition) => {
                if let Some(process) = self.processes.get(&id)
                    && self.judge.holds(process, partition)
                {
                    self.act(id, |process, _| process.member.release(partition))?;
                    return self.judge.ended(&self.processes[&id], partition);
                }
                Ok(())
            }
            Event::Expire(id) => self.act(id, |process, now| process.member.expired(now)),
            Event::Answer { to, connection, id, answer } => self.act(to, |process, now| {
                if process.connection == Some(connection) {
                    process.member.wrote(now, id, answer);
                }
            }),
            Event::Show { to, connection, entry } => self.act(to, |process, now| {
                if process.connection == Some(connection) {
                    process.member.entry(now, &entry);
                }
            }),
        }
    }

    /// Returns when the process wakes that something is to happen to, if it is asleep.
    fn sleeper(&self, event: &Event) -> Option<u64> {
        let id = match event {
            Event::Cut(id) | Event::Connect(id) | Event::Leave(id) | Event::Expire(id) => id,
            Event::Release(id, _) => id,
            Event::Answer { to, .. } | Event::Show { to, .. } => to,
            _ => return None,
        };
        let process = self.processes.get(id)?;
        // What has arrived meanwhile is read after the first thought.
        let late = if matches!(event, Event::Expire(_)) { 0 } else { 1_000 };
        (process.asleep_until > self.now).then_some(process.asleep_until + late)
    }

    fn begin(&mut self, name: Name, job: u32, previous: Option<u64>) -> Result<(), String> {
        self.counts[1] += 1;
        let id = u32::try_from(self.counts[1]).expect("few processes");
        let drift = u64::from(self.rule.drift_ppm);
        let ahead = match self.random.below(4) {
            0 if self.rule.is_drift_extreme => 0,
            1 if self.rule.is_drift_extreme => 2 * drift,
            _ => self.random.below(2 * drift + 1),
        };
        let rate = 1_000_000 - drift + ahead;
        let clock = Clock { offset: self.random.below(1 << 40), rate };
        let incarnation = self.random.word();
        let member = Member::new(self.settings(), name.clone(), incarnation, previous);
        let is_slow = self.one_in(self.rule.slow);
        let slow = if is_slow { self.random.below(self.rule.ttl_us / 2) } else { 0 };
        let (touched, deadline) = (self.now, u64::MAX);
        let process = Process {
            id,
            name,
            job,
            member,
            clock,
            incarnation,
            connection: None,
            asleep_until: 0,
            is_leaving: false,
            slow,
            touched,
            deadline,
        };
        self.processes.insert(id, process);
        self.connect(id)
    }

    fn connect(&mut self, id: u32) -> Result<(), String> {
        if self.processes.get(&id).is_none_or(|process| process.connection.is_some()) {
            return Ok(());
        }
        self.counts[2] += 1;
        let connection = self.counts[2];
        self.shown_at.retain(|(to, _), _| *to != id);
        let entries: Vec<Entry> = self.queue.entries().collect();
        self.act(id, |process, now| {
            process.connection = Some(connection);
            process.member.connected(now);
        })?;
        entries.into_iter().for_each(|entry| self.show(id, connection, entry));
        Ok(())
    }

    /// Does something with a process, then what follows from it.
    fn act(&mut self, id: u32, act: impl FnOnce(&mut Process, Instant)) -> Result<(), String> {
        self.edge(id)?;
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        let now = process.clock.local(self.now);
        act(process, now);
        process.touched = self.now;
        let mut writes = Vec::new();
        while let Some(write) = process.member.next_write(now) {
            writes.push(write);
        }
        let changes: Vec<Change> = std::iter::from_fn(|| process.member.next_change()).collect();
        if process.member.deadline() <= now {
            process.member.expired(now);
            writes.extend(std::iter::from_fn(|| process.member.next_write(now)));
        }
        let deadline = process.member.deadline();
        expect(deadline > now, || format!("{id} is called at {now} again at once"))?;
        let deadline =
            if deadline == Instant::FAR { u64::MAX } else { process.clock.global(deadline) };
        if deadline != process.deadline && deadline < u64::MAX {
            process.deadline = deadline;
            self.at(deadline, Event::Expire(id));
        }
        writes.into_iter().for_each(|write| self.send(id, write));
        changes.into_iter().try_for_each(|change| self.report(id, change))
    }

    /// Judges the last moment before something happens to a process, and the last at which it may
    /// ask, if that is earlier.
    fn edge(&mut self, id: u32) -> Result<(), String> {
        let Some(process) = self.processes.get(&id) else { return Ok(()) };
        if process.asleep_until > self.now {
            return Ok(()); // it was judged when it fell asleep
        }
        let end = process.clock.global(process.member.asks_until()).saturating_sub(1);
        let from = process.touched.max(process.asleep_until);
        if end >= from {
            self.judge.asks(process, end.min(self.now), self.rule)?;
        }
        Ok(())
    }

    fn report(&mut self, id: u32, change: Change) -> Result<(), String> {
        let process = &self.processes[&id];
        match change {
            Change::Taken { partition, asks_from, .. } => {
                self.judge.taken(process, partition)?;
                let at = process.clock.global(asks_from);
                self.at(at, Event::Look);
            }
            Change::GiveUp(partition) => {
                self.judge.give_up(process, partition)?;
                let after = self.random.below(SECOND / 2);
                self.at(self.now + after, Event::Release(id, partition));
            }
            Change::Lost { partition } => self.judge.ended(process, partition)?,
            Change::Left => {
                self.changes.push((self.now, id, change));
                self.processes.remove(&id);
                return Ok(());
            }
            Change::Refused(_) | Change::Damaged { .. } => {
                return Err(format!("{}: {change:?}", process.name));
            }
            Change::Agreed { .. } | Change::Joined { .. } | Change::NameTaken => {}
        }
        self.changes.push((self.now, id, change));
        Ok(())
    }

    /// Sends a request.
    fn send(&mut self, from: u32, write: Write) {
        self.writes += 1;
        let Some(connection) = self.processes[&from].connection else { return };
        let times = 1 + u64::from(self.one_in(self.rule.twice));
        for time in 0..times {
            let late = self.delay() + time * self.random.below(3 * self.rule.ttl_us);
            if self.one_in(self.rule.lost) {
                self.lose_answer(from, connection, write.id);
            } else {
                let write = write.clone();
                self.at(self.now + late, Event::Arrive { from, connection, write });
            }
        }
    }

    /// A request arrives at the queue.
    fn arrive(&mut self, from: u32, connection: u64, write: &Write) {
        let answer = self.queue.carry_out(write);
        self.conflicts += u64::from(answer == Err(WriteFailure::Conflict));
        if self.one_in(self.rule.lost) {
            self.lose_answer(from, connection, write.id);
        } else {
            let late = self.delay() + self.slow(from);
            let answer = Event::Answer { to: from, connection, id: write.id, answer };
            self.at(self.now + late, answer);
        }
        let Ok(revision) = answer else { return };
        let entry = Entry { key: write.key.clone(), revision, value: write.value.clone() };
        let watching = self.processes.values();
        let watching = watching.filter_map(|process| Some((process.id, process.connection?)));
        for (to, connection) in watching.collect::<Vec<_>>() {
            self.show(to, connection, entry.clone());
            if self.one_in(self.rule.twice) {
                self.show(to, connection, entry.clone());
            }
        }
    }

    /// An entry is under way to a process; those of one key arrive in order.
    fn show(&mut self, to: u32, connection: u64, entry: Entry) {
        let arrives = self.now + self.delay() + self.slow(to);
        let last = self.shown_at.entry((to, entry.key.clone())).or_default();
        *last = arrives.max(*last);
        let arrives = *last;
        self.at(arrives, Event::Show { to, connection, entry });
    }

    /// The answer to a request is lost: it is reported as unknown, or nothing is.
    fn lose_answer(&mut self, to: u32, connection: u64, id: WriteId) {
        if self.random.one_in(2) {
            let late = self.delay();
            let answer = Err(WriteFailure::Unknown);
            self.at(self.now + late, Event::Answer { to, connection, id, answer });
        }
    }

    fn slow(&self, id: u32) -> u64 {
        self.processes.get(&id).map_or(0, |process| process.slow)
    }

    fn delay(&mut self) -> u64 {
        let long = self.one_in(self.rule.delayed);
        self.random.below(if long { 2 * self.rule.ttl_us } else { SECOND / 50 })
    }

    fn one_in(&mut self, many: u64) -> bool {
        many > 0 && self.random.one_in(many)
    }
}

/// Returns how many different names the processes have.
fn names_len(processes: &BTreeMap<u32, Process>) -> usize {
    let names: BTreeSet<&Name> = processes.values().map(|process| &process.name).collect();
    names.len()
}
