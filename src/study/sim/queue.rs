//! The simulated queue that the nodes of a cluster share: entries with revisions, a log for each
//! partition, connections that fail.
//!
//! Requests travel to the queue and answers back, each for a while that is drawn, so that they
//! overtake each other. Requests arrive in order of time, whoever has sent them. What goes wrong is
//! drawn, too: an answer is lost, a request arrives a second time, a publication is refused, a
//! connection is lost with all that is under way on it.
//!
//! The worlds of the nodes run one after the other for the same slice of time. If no slice is
//! longer than [`Settings::delay_min`], an answer never arrives within the slice in which it was
//! asked for.
//!
//! Laws: an entry changes only from the revision that was expected. The messages of a publication
//! are appended together or not at all, and at most once. A node sees the changes of an entry in
//! their order. Equal seeds and requests give equal answers.

use crate::engine::contract::queue::{
    Delivery, Entry, Event, Key, Message, Partition, Publication, PublicationId, Purge, Reading,
    Request, Revision, Sequence, Write, WriteFailure, WriteId,
};
use crate::ground::random::Random;
use crate::ground::time::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

/// How fast the queue is, and what goes wrong with it. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The seed of all draws.
    pub seed: u64,
    /// The shortest time of a message to or from the queue; not zero.
    pub delay_min: Duration,
    /// The longest time of a message to or from the queue.
    pub delay_max: Duration,
    /// The share of requests that are not answered, half of which are carried out.
    pub lost: f64,
    /// The share of requests that arrive a second time, after another delay.
    pub repeated: f64,
    /// The share of requests with which the connection is lost.
    pub cut: f64,
    /// The longest time until a lost connection is there again.
    pub cut_max: Duration,
    /// When the faults end; `None`: never.
    pub until: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            delay_min: Duration::from_millis(1),
            delay_max: Duration::from_millis(5),
            lost: 0.0,
            repeated: 0.0,
            cut: 0.0,
            cut_max: Duration::from_secs(30),
            until: None,
        }
    }
}

/// Totals of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Writes that have changed an entry.
    pub writes: u64,
    /// Publications that were appended.
    pub publications: u64,
    /// Messages that were appended.
    pub messages: u64,
    /// Bytes of the messages that were appended.
    pub message_bytes: u64,
    /// Bytes of the messages that were read.
    pub read_bytes: u64,
    /// Messages that were purged.
    pub purged: u64,
}

/// An event for a node, and when it arrives there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of the node.
    pub node: usize,
    /// The time at which the event arrives, by the clock of the worlds.
    pub at: Instant,
    /// The number of the connection on which it arrives. What arrives on one that was lost before
    /// is to be dropped.
    pub connection: u64,
    /// What arrives.
    pub event: Event,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    settings: Settings,
    random: Random,
    entries: BTreeMap<Key, (Revision, Box<[u8]>)>,
    logs: BTreeMap<u16, Log>,
    /// The last number that was given to a change or a message.
    last: u64,
    taken: BTreeSet<PublicationId>,
    /// Readings that wait for a message, by partition and order of entry.
    waiting: BTreeMap<(u16, u64), Waiting>,
    nodes: Vec<Node>,
    /// What is to happen at the queue, by time and order of entry.
    agenda: BinaryHeap<Reverse<(Instant, u64)>>,
    /// What happens, by the order of entry in the agenda; what was cancelled isn't in it.
    happenings: BTreeMap<u64, (usize, Happening)>,
    arrivals: Vec<Arrival>,
    figures: Figures,
}

/// The log of a partition.
#[derive(Debug, Default)]
struct Log {
    /// All messages that it ever had; those that are purged are kept for judges.
    messages: Vec<Delivery>,
    /// The last message that was purged.
    purged: Sequence,
}

/// A node as the queue knows it.
#[derive(Debug, Default)]
struct Node {
    /// The number of its connection; 0 if it has none. What was asked on an earlier one is not
    /// answered.
    connection: u64,
    /// When the last change of each key arrives, so that changes arrive in their order.
    told: BTreeMap<Key, Instant>,
}

#[derive(Debug)]
enum Happening {
    /// A request arrives that was sent on this connection.
    Asks { request: Request, connection: u64, is_answered: bool },
    /// The node has a connection again.
    Connects,
    /// A reading has waited long enough.
    Ends { place: (u16, u64) },
}

/// A reading that waits for a message.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    node: usize,
    connection: u64,
    reading: Reading,
}

impl Queue {
    /// Creates a queue without entries and messages for this many nodes, none of which is
    /// connected.
    pub fn new(settings: Settings, nodes: usize) -> Self {
        assert!(!settings.delay_min.is_zero(), "messages take time");
        let random = Random(settings.seed);
        Self {
            settings,
            random,
            entries: BTreeMap::new(),
            logs: BTreeMap::new(),
            last: 0,
            taken: BTreeSet::new(),
            waiting: BTreeMap::new(),
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            agenda: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            arrivals: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Returns the totals so far.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Returns the value of an entry and its revision, for judges.
    pub fn entry(&self, key: &Key) -> Option<(Revision, &[u8])> {
        self.entries.get(key).map(|(revision, value)| (*revision, &**value))
    }

    /// Returns the messages that a log ever had, in order, for judges.
    pub fn log(&self, partition: Partition) -> &[Delivery] {
        self.logs.get(&partition.number()).map_or(&[], |log| &log.messages)
    }

    /// Changes an entry at `at`, as an operator does who is no node.
    pub fn put(&mut self, at: Instant, key: Key, value: Box<[u8]>) {
        let expected = self.entries.get(&key).map(|(revision, _)| *revision);
        let write = Write { id: WriteId(0), key, expected, value };
        self.carry_out(at, Request::Write(write));
    }

    /// Begins a connection of a node at `at`: its process has begun.
    pub fn begin(&mut self, node: usize, at: Instant) {
        self.happens(at, node, Happening::Connects);
    }

    /// Ends the connection of a node, whose process has ended. What it has sent is still under way.
    pub fn end(&mut self, node: usize) {
        self.nodes[node] = Node::default();
        // A process that is gone gets no connection again.
        let stays = |what: &Happening| !matches!(what, Happening::Connects);
        self.happenings.retain(|_, (of, what)| *of != node || stays(what));
    }

    /// Takes a request that a node sends at `at`.
    pub fn ask(&mut self, node: usize, at: Instant, request: Request) {
        let connection = self.nodes[node].connection;
        if connection == 0 {
            return;
        }
        let faulty = self.settings.until.is_none_or(|until| at < Instant::ZERO + until);
        if faulty && self.draws(self.settings.cut) {
            self.cut(node, at);
        }
        let is_lost = faulty && self.draws(self.settings.lost);
        if faulty && self.draws(self.settings.repeated) {
            let again =
                Happening::Asks { request: request.clone(), connection, is_answered: false };
            let arrives = at + self.delay() + self.delay();
            self.happens(arrives, node, again);
        }
        if !is_lost || self.random.one_in(2) {
            let arrives = at + self.delay();
            self.happens(
                arrives,
                node,
                Happening::Asks { request, connection, is_answered: !is_lost },
            );
        }
    }

    /// Lets happen what happens at the queue before `until`. Returns what arrives at the nodes
    /// because of it, in no order.
    pub fn advance(&mut self, until: Instant) -> Vec<Arrival> {
        while let Some(Reverse((at, number))) = self.agenda.peek().copied()
            && at < until
        {
            self.agenda.pop();
            let Some((node, happening)) = self.happenings.remove(&number) else { continue };
            match happening {
                Happening::Connects => self.connect(node, at),
                Happening::Ends { place } => self.end_waiting(place, at),
                Happening::Asks { request: Request::Read(reading), connection, is_answered }
                    if is_answered =>
                {
                    self.begin_reading(Waiting { node, connection, reading }, at);
                }
                Happening::Asks { request, connection, is_answered } => {
                    let answer = self.carry_out(at, request);
                    let hears = is_answered && connection == self.nodes[node].connection;
                    if let Some(answer) = answer.filter(|_| hears) {
                        self.tell(node, at, answer);
                    }
                }
            }
        }
        std::mem::take(&mut self.arrivals)
    }

    fn happens(&mut self, at: Instant, node: usize, happening: Happening) {
        self.last += 1;
        self.agenda.push(Reverse((at, self.last)));
        self.happenings.insert(self.last, (node, happening));
    }

    fn draws(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.unit() < share
    }

    fn delay(&mut self) -> Duration {
        let spread = self.settings.delay_max.saturating_sub(self.settings.delay_min);
        self.settings.delay_min + spread.mul_f64(self.random.unit())
    }

    /// Makes a node lose its connection, and get another one after a while.
    fn cut(&mut self, node: usize, at: Instant) {
        let connection = std::mem::take(&mut self.nodes[node]).connection;
        let at = at + self.settings.delay_min;
        self.arrivals.push(Arrival { node, at, connection, event: Event::Disconnected });
        let again = at + self.delay() + self.settings.cut_max.mul_f64(self.random.unit());
        self.happens(again, node, Happening::Connects);
    }

    fn connect(&mut self, node: usize, at: Instant) {
        self.last += 1;
        let connection = self.last;
        self.nodes[node] = Node { connection, told: BTreeMap::new() };
        let begins = at + self.settings.delay_min;
        self.arrivals.push(Arrival { node, at: begins, connection, event: Event::Connected });
        for (key, (revision, value)) in self.entries.clone() {
            self.tell(node, begins, Event::Entry(Entry { key, revision, value }));
        }
    }

    /// Sends an event to a node. Changes of an entry arrive in their order.
    fn tell(&mut self, node: usize, at: Instant, event: Event) {
        let mut at = at + self.delay();
        if let Event::Entry(entry) = &event {
            let told = self.nodes[node].told.entry(entry.key.clone()).or_default();
            at = at.max(*told);
            *told = at;
        }
        let connection = self.nodes[node].connection;
        self.arrivals.push(Arrival { node, at, connection, event });
    }

    fn carry_out(&mut self, at: Instant, request: Request) -> Option<Event> {
        Some(match request {
            Request::Write(write) => {
                let id = write.id;
                Event::Wrote { id, result: self.write(at, write) }
            }
            Request::Publish(publication) => {
                let id = publication.id;
                self.publish(at, publication);
                Event::Published { id, is_durable: true }
            }
            Request::Read(reading) => self.answer(reading),
            Request::Purge(purge) => {
                self.purge(purge);
                return None;
            }
        })
    }

    fn purge(&mut self, purge: Purge) {
        let Purge { partition, through } = purge;
        let Some(log) = self.logs.get_mut(&partition.number()) else { return };
        let place = |number| log.messages.partition_point(|message| message.sequence <= number);
        self.figures.purged += place(through).saturating_sub(place(log.purged)) as u64;
        log.purged = through.max(log.purged);
    }

    fn write(&mut self, at: Instant, write: Write) -> Result<Revision, WriteFailure> {
        let Write { key, expected, value, .. } = write;
        if self.entries.get(&key).map(|(revision, _)| *revision) != expected {
            return Err(WriteFailure::Conflict);
        }
        self.last += 1;
        let revision = Revision(self.last);
        self.figures.writes += 1;
        self.entries.insert(key.clone(), (revision, value.clone()));
        for node in 0..self.nodes.len() {
            if self.nodes[node].connection != 0 {
                let (key, value) = (key.clone(), value.clone());
                self.tell(node, at, Event::Entry(Entry { key, revision, value }));
            }
        }
        Ok(revision)
    }

    fn publish(&mut self, at: Instant, publication: Publication) {
        if !self.taken.insert(publication.id) {
            return;
        }
        let logs: BTreeSet<u16> =
            publication.messages.iter().map(|message| message.partition.number()).collect();
        self.figures.publications += 1;
        for Message { partition, payload } in publication.messages {
            self.last += 1;
            self.figures.messages += 1;
            self.figures.message_bytes += payload.len() as u64;
            let delivery = Delivery { partition, sequence: Sequence(self.last), payload };
            self.logs.entry(partition.number()).or_default().messages.push(delivery);
        }
        for log in logs {
            let waiting = self.waiting.range((log, 0)..=(log, u64::MAX));
            let places: Vec<(u16, u64)> = waiting.map(|(place, _)| *place).collect();
            places.into_iter().for_each(|place| self.end_waiting(place, at));
        }
    }

    /// Answers a reading, now or when there is a message.
    fn begin_reading(&mut self, waiting: Waiting, at: Instant) {
        let Waiting { node, reading, .. } = waiting;
        self.last += 1;
        let place = (reading.partition.number(), self.last);
        self.waiting.insert(place, waiting);
        let log = self.logs.get(&place.0).and_then(|log| log.messages.last());
        if reading.wait.is_zero() || log.is_some_and(|last| last.sequence > reading.after) {
            return self.end_waiting(place, at);
        }
        self.happens(at + reading.wait, node, Happening::Ends { place });
    }

    /// Answers a reading with what there is, if it still waits.
    fn end_waiting(&mut self, place: (u16, u64), at: Instant) {
        let Some(Waiting { node, connection, reading }) = self.waiting.remove(&place) else {
            return;
        };
        if connection == self.nodes[node].connection {
            let answer = self.answer(reading);
            self.tell(node, at, answer);
        }
    }

    /// Returns the answer to a reading.
    fn answer(&mut self, reading: Reading) -> Event {
        let Some(log) = self.logs.get(&reading.partition.number()) else {
            return Event::Read { reading, messages: Some(Vec::new()), left: 0 };
        };
        let after = reading.after.max(log.purged);
        let start = log.messages.partition_point(|message| message.sequence <= after);
        let mut bytes = 0;
        let is_wanted = |message: &&Delivery| {
            let is_first = bytes == 0;
            bytes += message.payload.len().max(1);
            is_first || bytes <= reading.bytes_max
        };
        let found: Vec<Delivery> =
            log.messages[start..].iter().take_while(is_wanted).cloned().collect();
        self.figures.read_bytes +=
            found.iter().map(|message| message.payload.len() as u64).sum::<u64>();
        let left = (log.messages.len() - start - found.len()) as u64;
        Event::Read { reading, messages: Some(found), left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::queue::{Name, Purpose, WriteId};

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    fn write(id: u64, expected: Option<Revision>, value: &str) -> Request {
        let (key, value) = (Key::Crawl, value.as_bytes().into());
        Request::Write(Write { id: WriteId(id), key, expected, value })
    }

    fn publication(id: u64, payloads: &[(u16, &str)]) -> Request {
        let message = |(partition, text): &(u16, &str)| Message {
            partition: Partition::new(*partition).expect("a partition"),
            payload: text.as_bytes().into(),
        };
        let id = PublicationId { process: 1, number: id };
        Request::Publish(Publication { id, messages: payloads.iter().map(message).collect() })
    }

    /// Returns a queue without faults with nodes that are connected.
    fn queue(nodes: usize) -> Queue {
        let mut queue = Queue::new(Settings::default(), nodes);
        (0..nodes).for_each(|node| queue.begin(node, at(0)));
        let arrivals = queue.advance(at(1));
        assert!(arrivals.iter().all(|arrival| arrival.event == Event::Connected));
        assert_eq!(arrivals.len(), nodes);
        queue
    }

    /// Lets everything happen; returns the events for a node in the order of their arrival.
    fn events(queue: &mut Queue, node: usize) -> Vec<Event> {
        let mut arrivals = queue.advance(Instant::FAR);
        arrivals.retain(|arrival| arrival.node == node);
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals.into_iter().map(|arrival| arrival.event).collect()
    }

    #[test]
    fn an_entry_is_changed_by_who_knows_its_revision() {
        let mut queue = queue(2);
        queue.ask(0, at(10), write(1, None, "a"));
        queue.ask(1, at(100), write(1, None, "b"));
        let (revision, value) = {
            queue.advance(at(90));
            let (revision, value) = queue.entry(&Key::Crawl).expect("created");
            (revision, value.to_vec())
        };
        assert_eq!(value, b"a");
        queue.ask(1, at(200), write(2, Some(revision), "c"));
        queue.ask(0, at(300), write(2, Some(revision), "d"));
        let seen = events(&mut queue, 1);
        let conflict = Event::Wrote { id: WriteId(1), result: Err(WriteFailure::Conflict) };
        assert_eq!(seen[0], conflict);
        let Some((now, value)) = queue.entry(&Key::Crawl) else { panic!("it exists") };
        assert_eq!(value, b"c");
        let entry = Entry { key: Key::Crawl, revision: now, value: b"c"[..].into() };
        assert!(seen.contains(&Event::Entry(entry)), "{seen:?}");
        assert_eq!(queue.figures().writes, 2);
    }

    #[test]
    fn a_publication_is_appended_once_and_together() {
        let mut queue = queue(1);
        queue.ask(0, at(10), publication(7, &[(3, "a"), (5, "b"), (3, "c")]));
        queue.ask(0, at(50), publication(7, &[(3, "a"), (5, "b"), (3, "c")]));
        let partition = Partition::new(3).expect("a partition");
        let read = |after, bytes_max| {
            let (after, wait, purpose) = (Sequence(after), Duration::ZERO, Purpose::Crawl);
            Request::Read(Reading { partition, after, bytes_max, wait, purpose })
        };
        queue.ask(0, at(100), read(0, 1));
        queue.ask(0, at(200), read(0, 2));
        let id = PublicationId { process: 1, number: 7 };
        let durable = Event::Published { id, is_durable: true };
        let seen = events(&mut queue, 0);
        assert_eq!(seen[..2], [durable.clone(), durable]);
        let texts = |event: &Event| {
            let Event::Read { messages: Some(messages), left, .. } = event else {
                panic!("{event:?}")
            };
            (messages.iter().map(|message| message.payload.to_vec()).collect::<Vec<_>>(), *left)
        };
        assert_eq!(texts(&seen[2]), (vec![b"a".to_vec()], 1), "one more in this log");
        assert_eq!(texts(&seen[3]), (vec![b"a".to_vec(), b"c".to_vec()], 0));
        assert_eq!(queue.figures().messages, 3);
    }

    /// A reading is answered when there is a message, or with none after a while.
    #[test]
    fn a_reading_waits_for_a_message() {
        let mut queue = queue(1);
        let partition = Partition::new(3).expect("a partition");
        let wait = Duration::from_millis(100);
        let (after, purpose) = (Sequence(0), Purpose::Crawl);
        let reading = Reading { partition, after, bytes_max: 1_000, wait, purpose };
        queue.ask(0, at(10), Request::Read(reading));
        queue.ask(0, at(60), publication(1, &[(2, "other"), (3, "a")]));
        let arrivals = queue.advance(at(90));
        let Event::Read { messages: Some(messages), .. } = &arrivals[0].event else {
            panic!("{arrivals:?}")
        };
        assert_eq!((messages.len(), &*messages[0].payload), (1, &b"a"[..]));
        let after = messages[0].sequence;
        queue.ask(0, at(200), Request::Read(Reading { after, ..reading }));
        assert!(queue.advance(at(299)).is_empty(), "nothing comes");
        let arrivals = queue.advance(at(400));
        let reading = Reading { after, ..reading };
        let none = Event::Read { reading, messages: Some(Vec::new()), left: 0 };
        assert_eq!(arrivals[0].event, none);
        assert!(arrivals[0].at >= at(300));
    }

    /// A process that is killed while it has no connection gets none; the next one gets one.
    #[test]
    fn a_dead_process_gets_no_connection() {
        let mut queue = Queue::new(Settings { cut: 1.0, ..Settings::default() }, 1);
        queue.begin(0, at(0));
        queue.advance(at(10));
        queue.ask(0, at(10), write(1, None, "a"));
        queue.end(0);
        assert!(events(&mut queue, 0).iter().all(|event| *event != Event::Connected));
        queue.begin(0, at(100_000));
        let seen = events(&mut queue, 0);
        assert_eq!(seen.iter().filter(|event| **event == Event::Connected).count(), 1);
    }

    /// With all faults, entries stay in order for each node, and nothing is appended twice.
    #[test]
    fn faults_break_no_law() {
        let node = Key::Node(Name::new("a").expect("a name"));
        for seed in 0..50 {
            let (lost, repeated, cut) = (0.2, 0.2, 0.005);
            let cut_max = Duration::from_millis(50);
            let settings = Settings { seed, lost, repeated, cut, cut_max, ..Settings::default() };
            let mut queue = Queue::new(settings, 3);
            (0..3).for_each(|node| queue.begin(node, at(0)));
            let mut last = [(0, Revision(0)); 3];
            let mut arrivals = Vec::new();
            for step in 1..500 {
                arrivals.extend(queue.advance(at(step)));
                let asker = (step % 3) as usize;
                let expected = queue.entry(&node).map(|(revision, _)| revision);
                let (key, value) = (node.clone(), Box::from(&b"v"[..]));
                let id = WriteId(step);
                queue.ask(asker, at(step), Request::Write(Write { id, key, expected, value }));
                queue.ask(asker, at(step), publication(step, &[(0, "m")]));
            }
            arrivals.extend(queue.advance(Instant::FAR));
            arrivals.sort_by_key(|arrival| arrival.at);
            for arrival in &arrivals {
                let (connection, revision) = &mut last[arrival.node];
                match &arrival.event {
                    Event::Connected => {
                        (*connection, *revision) = (arrival.connection, Revision(0))
                    }
                    Event::Entry(entry) if arrival.connection == *connection => {
                        assert!(entry.revision >= *revision, "seed {seed}");
                        *revision = entry.revision;
                    }
                    _ => {}
                }
            }
            assert!(arrivals.iter().any(|arrival| arrival.event == Event::Disconnected));
            let figures = queue.figures();
            assert_eq!(figures.messages, figures.publications);
            assert!(figures.publications < 499, "some are lost");
            assert!(figures.publications > 200, "most are not");
        }
    }
}
