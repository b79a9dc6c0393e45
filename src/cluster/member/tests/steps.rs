//! Single steps of members that share a prompt queue: what is reported, and when.

use super::queue::Queue;
use super::sabotage::{self, Sabotage};
use crate::cluster::member::{Change, Member, Settings, State};
use crate::cluster::queue::{Entry, Key, Name, Revision, Write};
use crate::cluster::{Partition, Partitioner};
use crate::ground::time::Instant;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(12);
const SETTLE: Duration = Duration::from_secs(5);
const KEY: [u8; 16] = *b"a key of a crawl";

/// Members whose requests and answers take no time.
struct Lab {
    now: Instant,
    queue: Queue,
    members: Vec<Member>,
    /// What each member has reported.
    changes: Vec<Vec<Change>>,
    /// The members that can reach the queue.
    is_connected: Vec<bool>,
    /// A member whose writes of partitions are kept here instead of carried out.
    withheld: (Option<usize>, Vec<Write>),
    /// An entry that the first member doesn't see.
    hidden: Option<Key>,
    /// Whether members release at once what they are to give up.
    is_prompt: bool,
    /// Writes that were carried out.
    writes: Vec<Write>,
}

fn settings() -> Settings {
    let equal = vec![("scope".into(), "example.org".into())];
    Settings { key: KEY, partitions: 64, ttl: TTL, drift_ppm: 1_000, settle: SETTLE, equal }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Lab {
    fn new() -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            queue: Queue::default(),
            members: Vec::new(),
            changes: Vec::new(),
            is_connected: Vec::new(),
            withheld: (None, Vec::new()),
            hidden: None,
            is_prompt: true,
            writes: Vec::new(),
        }
    }

    /// Creates a lab in which these nodes have settled.
    fn of(names: &[&str]) -> Self {
        let mut lab = Self::new();
        for (number, name) in names.iter().enumerate() {
            lab.join(name, number as u64, None, settings());
        }
        lab.pass(seconds(30));
        lab.changes.iter_mut().for_each(Vec::clear);
        lab
    }

    /// Adds a member. Returns its index.
    fn join(
        &mut self,
        name: &str,
        incarnation: u64,
        previous: Option<u64>,
        settings: Settings,
    ) -> usize {
        let name = Name::new(name).expect("a name");
        self.members.push(Member::new(settings, name, incarnation, previous));
        self.changes.push(Vec::new());
        self.is_connected.push(false);
        let index = self.members.len() - 1;
        self.connect(index);
        index
    }

    fn connect(&mut self, index: usize) {
        self.is_connected[index] = true;
        self.members[index].connected(self.now);
        for entry in self.queue.entries() {
            self.members[index].entry(self.now, &entry);
        }
    }

    fn cut(&mut self, index: usize) {
        self.is_connected[index] = false;
        self.members[index].disconnected(self.now);
    }

    /// Carries out what members ask for until they ask for nothing.
    fn turn(&mut self) {
        for index in 0..self.members.len() {
            self.members[index].expired(self.now);
        }
        while (0..self.members.len()).any(|index| self.step(index)) {}
    }

    fn step(&mut self, index: usize) -> bool {
        let write = self.members[index].next_write(self.now);
        while let Some(change) = self.members[index].next_change() {
            if let Change::GiveUp(partition) = change
                && self.is_prompt
            {
                self.members[index].release(partition);
            }
            self.changes[index].push(change);
        }
        let Some(write) = write else { return false };
        assert!(self.is_connected[index], "nothing is asked without a connection");
        if self.withheld.0 == Some(index) && matches!(write.key, Key::Partition(_)) {
            self.withheld.1.push(write);
        } else {
            let answer = self.carry_out(&write);
            self.members[index].wrote(self.now, write.id, answer);
            self.writes.push(write);
        }
        true
    }

    fn carry_out(
        &mut self,
        write: &Write,
    ) -> Result<Revision, crate::cluster::queue::WriteFailure> {
        let answer = self.queue.carry_out(write);
        if let Ok(revision) = answer {
            let (key, value) = (write.key.clone(), write.value.clone());
            self.show(&Entry { key, revision, value });
        }
        answer
    }

    fn show(&mut self, entry: &Entry) {
        for index in 0..self.members.len() {
            let is_hidden = index == 0 && self.hidden.as_ref() == Some(&entry.key);
            if self.is_connected[index] && !is_hidden {
                self.members[index].entry(self.now, entry);
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.turn();
            self.now = self.now + Duration::from_millis(100);
        }
        self.turn();
    }

    /// Returns the partitions that a member may ask.
    fn asked(&self, index: usize) -> Vec<Partition> {
        let may = |partition: &Partition| self.members[index].may_ask(*partition, self.now);
        Partition::all().filter(may).collect()
    }

    /// Returns the partitions that a member has reported as given up.
    fn given_up(&self, index: usize) -> Vec<Partition> {
        let given = self.changes[index].iter().filter_map(|change| match change {
            Change::GiveUp(partition) => Some(*partition),
            _ => None,
        });
        given.collect()
    }

    /// Returns the partitions that a member has reported as taken: whether without interruption,
    /// and how long it waits.
    fn taken(&self, index: usize) -> Vec<(Partition, bool, Instant)> {
        let taken = self.changes[index].iter().filter_map(|change| match change {
            Change::Taken { partition, epoch, since, asks_from } => {
                Some((*partition, since < epoch, *asks_from))
            }
            _ => None,
        });
        taken.collect()
    }
}

/// Returns the partitions that should go to the node with that index.
fn share(names: &[&str], index: usize) -> Vec<Partition> {
    let partitioner = Partitioner::new(KEY);
    let is_own = |partition: &Partition| {
        partitioner.node_for(*partition, names.iter().copied()) == Some(names[index])
    };
    Partition::all().take(64).filter(is_own).collect()
}

#[test]
fn a_node_alone_takes_everything() {
    let mut lab = Lab::new();
    lab.join("a", 1, None, settings());
    lab.turn();
    assert_eq!(lab.changes[0][..2], [Change::Agreed { key: KEY }, Change::Joined { nodes: 1 }]);
    assert_eq!((lab.taken(0).len(), lab.asked(0).len()), (64, 0), "it waits for the settling time");
    assert_eq!(lab.writes.len(), 4 + 64, "the crawl, the roll, twice the node, the partitions");
    lab.pass(seconds(6));
    assert_eq!((lab.asked(0).len(), lab.members[0].nodes()), (64, 1));
}

#[test]
fn who_joins_takes_its_share_and_who_leaves_returns_it() {
    let names = ["a", "b", "c", "d"];
    let mut lab = Lab::of(&names[..3]);
    let joiner = lab.join("d", 9, None, settings());
    let began = lab.now;
    lab.pass(seconds(4));
    let mut given: Vec<Partition> = (0..3).flat_map(|index| lab.given_up(index)).collect();
    given.sort_unstable();
    assert_eq!(given, share(&names, joiner));
    let taken = lab.taken(joiner);
    assert_eq!(taken.len(), given.len());
    assert!(taken.iter().all(|(_, unbroken, from)| !unbroken && *from > began + SETTLE));
    assert!(lab.asked(joiner).is_empty());
    lab.pass(seconds(4));
    assert!((0..4).all(|index| lab.asked(index) == share(&names, index)));
    assert!(lab.members.iter().all(|member| member.nodes() == 4));

    lab.changes.iter_mut().for_each(Vec::clear);
    lab.members[joiner].leave(lab.now);
    lab.pass(seconds(4));
    assert_eq!(lab.changes[joiner].last(), Some(&Change::Left));
    let moved: usize = (0..3).map(|index| lab.taken(index).len()).sum();
    assert_eq!((moved, lab.given_up(0).len()), (given.len(), 0));
    assert!(lab.members[..3].iter().all(|member| member.nodes() == 3));
}

#[test]
fn who_comes_back_goes_on() {
    let names = ["a", "b"];
    let mut lab = Lab::of(&names);
    lab.cut(0);
    let again = lab.join("a", 7, Some(0), settings());
    lab.pass(seconds(1));
    let own = share(&names, 0);
    assert_eq!(lab.asked(again), own, "it doesn't wait for the settling time");
    assert!(lab.taken(again).iter().all(|(_, unbroken, _)| *unbroken));
    assert!(lab.taken(1).is_empty() && lab.given_up(1).is_empty(), "nothing else moves");
    // And once more, through a chain of processes.
    lab.cut(again);
    let third = lab.join("a", 8, Some(7), settings());
    lab.pass(seconds(1));
    assert_eq!(lab.asked(third), own);
}

#[test]
fn who_comes_back_before_it_has_settled_waits() {
    let names = ["a", "b"];
    let mut lab = Lab::of(&["a"]);
    let joiner = lab.join("b", 5, None, settings());
    lab.pass(seconds(2));
    assert_eq!(lab.taken(joiner).len(), share(&names, 1).len());
    lab.cut(joiner);
    let again = lab.join("b", 6, Some(5), settings());
    let began = lab.now;
    lab.pass(seconds(1));
    let waits = |taken: &(Partition, bool, Instant)| taken.1 && taken.2 > began + SETTLE;
    assert!(lab.taken(again).iter().all(waits) && !lab.taken(again).is_empty());
}

#[test]
fn who_comes_back_without_its_job_waits_for_its_own_end() {
    let names = ["a", "b"];
    let mut lab = Lab::of(&names);
    lab.cut(0);
    let again = lab.join("a", 7, None, settings());
    lab.pass(seconds(7));
    assert_eq!(lab.changes[again], [Change::Agreed { key: KEY }]);
    lab.pass(seconds(6));
    assert!(lab.taken(again).iter().all(|(_, unbroken, _)| !unbroken));
    assert!(!lab.taken(again).is_empty() && lab.asked(again).is_empty());
    lab.pass(seconds(5));
    assert_eq!(lab.asked(again), share(&names, 0));
}

/// A queue that can't be reached for long costs a pause, and no partition.
#[test]
fn an_outage_is_a_pause() {
    let mut lab = Lab::of(&["a", "b", "c"]);
    (0..3).for_each(|index| lab.cut(index));
    lab.pass(seconds(100));
    assert!((0..3).all(|index| lab.asked(index).is_empty()));
    lab.writes.clear();
    (0..3).for_each(|index| lab.connect(index));
    lab.turn();
    assert_eq!((lab.writes.len(), lab.asked(0)), (3, share(&["a", "b", "c"], 0)));
    lab.pass(seconds(12));
    assert!(lab.changes.iter().all(Vec::is_empty));
    assert!(lab.writes.iter().all(|write| matches!(write.key, Key::Node(_))));
    assert!(lab.writes.len() <= 3 * 4, "{} writes", lab.writes.len());
}

#[test]
fn other_settings_are_refused() {
    let mut lab = Lab::of(&["a"]);
    lab.writes.clear();
    let equal = vec![("scope".into(), "example.com".into())];
    let other = lab.join("b", 2, None, Settings { equal, ..settings() });
    lab.pass(seconds(1));
    let [Change::Refused(difference)] = &lab.changes[other][..] else {
        panic!("{:?}", lab.changes[other]);
    };
    let named = [&*difference.setting, &*difference.own, &*difference.crawl];
    assert_eq!(named, ["scope", "example.com", "example.org"]);
    assert!(lab.writes.iter().all(|write| write.key != Key::Node(Name::new("b").unwrap())));
    assert_eq!(lab.members[other].deadline(), Instant::FAR);
    let keyed = lab.join("c", 3, None, Settings { key: [0; 16], ..settings() });
    lab.turn();
    assert_eq!(lab.changes[keyed][0], Change::Agreed { key: KEY }, "the crawl's, not its own");
}

#[test]
fn a_name_is_for_one() {
    let mut lab = Lab::of(&["a"]);
    let twin = lab.join("a", 2, None, settings());
    lab.pass(seconds(60));
    assert_eq!(lab.changes[twin], [Change::Agreed { key: KEY }, Change::NameTaken]);
    assert_eq!(lab.asked(0).len(), 64);
    let states = [0, twin].map(|index| lab.members[index].state());
    assert_eq!(states, [Some(State::Active), None]);
    assert!(lab.members[twin].is_name_taken() && !lab.members[0].is_name_taken());
    lab.cut(0);
    lab.pass(seconds(20));
    assert_eq!((lab.asked(0).len(), lab.asked(twin).len()), (0, 64));
    assert!(!lab.members[twin].is_name_taken(), "the other one's session is over");
    lab.connect(0);
    lab.turn();
    let lost = lab.changes[0].iter().filter(|change| matches!(change, Change::Lost { .. }));
    assert_eq!(lost.count(), 64);
}

#[test]
fn what_makes_no_sense_is_left_alone() {
    let mut lab = Lab::new();
    let key = Key::Partition(Partition::new(3).expect("a partition"));
    let write = |value: &[u8], expected| {
        let id = crate::cluster::queue::WriteId(0);
        Write { id, key: key.clone(), expected, value: value.into() }
    };
    let revision = lab.carry_out(&write(b"what?", None)).expect("there is none yet");
    lab.join("a", 1, None, settings());
    lab.pass(seconds(40));
    let damaged = Change::Damaged { key: key.clone() };
    assert_eq!(lab.changes[0].iter().filter(|change| **change == damaged).count(), 1);
    assert_eq!(lab.asked(0).len(), 63);
    let free = super::super::value::PartitionValue::Free.encode();
    lab.carry_out(&write(&free, Some(revision))).expect("it has that revision");
    lab.pass(seconds(6));
    assert_eq!(lab.asked(0).len(), 64);
}

#[test]
fn writes_of_partitions_are_in_a_window() {
    let mut lab = Lab::new();
    lab.withheld.0 = Some(0);
    lab.join("a", 1, None, Settings { partitions: 1_024, ..settings() });
    lab.turn();
    assert_eq!(lab.withheld.1.len(), 64);
    lab.pass(seconds(1));
    assert_eq!(lab.withheld.1.len(), 64, "no answer, no more");
    let first = lab.withheld.1.remove(0);
    let answer = lab.carry_out(&first);
    lab.members[0].wrote(lab.now, first.id, answer);
    lab.turn();
    assert_eq!(lab.withheld.1.len(), 64);
}

/// A release that may yet be carried out, while the partition should stay after all. Returns how
/// many may ask for it in the end.
fn resume_a_release() -> usize {
    let mut lab = Lab::of(&["a"]);
    let partition = share(&["a", "b"], 1)[0];
    let joiner = lab.join("b", 2, None, settings());
    lab.withheld.0 = Some(0);
    lab.pass(seconds(1));
    let key = Key::Partition(partition);
    let release = lab.withheld.1.iter().find(|write| write.key == key).cloned();
    lab.members[joiner].leave(lab.now);
    lab.pass(seconds(6));
    // The queue does what it was asked long ago, and another node takes the partition. The first
    // one sees that late, and has requests under way.
    (lab.withheld.0, lab.hidden, lab.is_prompt) = (None, Some(key), false);
    lab.carry_out(&release.expect("it was to be released")).ok();
    let again = lab.join("b", 3, Some(2), settings());
    lab.pass(seconds(7));
    let may = |index: &usize| lab.members[*index].may_ask(partition, lab.now);
    [0, joiner, again].iter().filter(|index| may(index)).count()
}

#[test]
fn a_release_is_not_resumed() {
    assert!(resume_a_release() <= 1);
    sabotage::commit(Some(Sabotage::ReleaseResumed));
    let asking = resume_a_release();
    sabotage::commit(None);
    assert_eq!(asking, 2, "the fault would be noticed");
}
