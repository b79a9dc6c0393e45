//! Rules of robots.txt files: those used of late in memory, the others on disk.
//!
//! Past their budget the rules that were not used for longest go to the end of a segment of a log
//! (the hand of a clock goes round those in memory), and are read back when their server is
//! visited: a read of a few KiB. What was read back has its place on disk still. Rules hold for
//! `robots_ttl` at most, so a segment is of use until the last of its rules is over: nothing is
//! swept. Where no state is kept, rules past the budget are forgotten, and asked for again.
//!
//! ```text
//! file   state/robots/segment-N: the opening frame, then rules
//! rules  kind 1: number of the server | see `robots::Rules::encode`
//! ```
//!
//! Laws: rules in memory keep to their budget, but for those of servers under visit; what was
//! shelved is read back the same, from the disk or from what waits to be written; on a full disk
//! nothing is lost: what waits waits. A damaged file is told with its offset.
//! Cost: four bytes and a bit for rules in memory; eight for those on disk.

use super::Engine;
use super::ledger::Work;
use super::robots::COPY_BYTES;
use super::site::Robots;
use crate::codec::{Put, Take};
use crate::disk::{self, Disk};
use crate::frame::{self, Damage, Flaw, Role};
use crate::frontier::{ServerId, ServerState};
use crate::robots::Rules;
use crate::tail::Tail;
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Kind of the frame that holds rules.
const RULES: u8 = 1;
/// A segment this long is closed.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes wait in memory until there are so many.
const WRITE_BYTES: usize = 64 << 10;
/// What is read at first: enough for most.
const READ_BYTES: usize = 4 << 10;
/// The folder of all segments.
pub(super) const FOLDER: &str = "state/robots";

/// Where rules lie on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) offset: u32,
}

/// Rules in memory.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) rules: Rules,
    /// Where they lie on disk, if they do.
    pub(super) place: Option<Place>,
}

impl Held {
    fn bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Rules>() + self.rules.size_bytes()
    }
}

/// What there is of rules beside those themselves.
#[derive(Debug)]
pub(super) struct Shelf {
    /// Servers whose robots.txt redirects to that of another, which is to be asked for: by that.
    pub(super) followers: BTreeMap<ServerId, Vec<ServerId>>,
    /// Servers whose rules are in memory, or were; each once.
    hand: VecDeque<ServerId>,
    /// Bytes of rules in memory.
    bytes: usize,
    /// Rules on disk, if any may go there.
    log: Option<Log>,
}

#[derive(Debug)]
struct Log {
    crawl: u64,
    segments: BTreeMap<u32, Segment>,
    /// The end of the segment that grows.
    tail: Option<(u32, Tail)>,
    next: u32,
    /// Those that the last checkpoint names.
    marked: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    bytes: u64,
    /// All of its rules are over then.
    until: Instant,
}

impl Shelf {
    pub(super) fn new(crawl: Option<u64>) -> Self {
        let (segments, marked) = (BTreeMap::new(), BTreeSet::new());
        let log = |crawl| Log { crawl, segments, tail: None, next: 1, marked };
        let followers = BTreeMap::new();
        Self { followers, hand: VecDeque::new(), bytes: 0, log: crawl.map(log) }
    }

    /// Files that a checkpoint of an earlier run names, with the bytes of each that count.
    ///
    /// # Errors
    /// One that is shorter, or the disk's.
    pub(super) fn restore(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        let Some(log) = &mut self.log else { return Ok(()) };
        for (name, bytes) in files {
            let Some(number) = number_of(name) else { continue };
            let len = disk.len(name)?.unwrap_or(0);
            if len < *bytes {
                return Err(Damage { name: name.clone(), offset: len, flaw: Flaw::Cut }.into());
            }
            log.segments.insert(number, Segment { bytes: *bytes, until: Instant::ZERO });
            log.marked.insert(number);
            log.next = log.next.max(number.saturating_add(1));
        }
        Ok(())
    }

    /// Rules that an earlier run shelved; `false` if all of their segment were over when the
    /// checkpoint was made, which therefore doesn't name it. This run may have begun a segment of
    /// that number since: it holds other rules.
    ///
    /// # Errors
    /// There can't be such ones.
    pub(super) fn retain(&mut self, place: Place, until: Instant) -> Result<bool, Flaw> {
        let log = self.log.as_mut().filter(|log| log.marked.contains(&place.segment));
        let segment = log.and_then(|log| log.segments.get_mut(&place.segment));
        let Some(segment) = segment else { return Ok(false) };
        segment.until = segment.until.max(until);
        if u64::from(place.offset) < segment.bytes { Ok(true) } else { Err(Flaw::Senseless) }
    }

    /// Brings what waits to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: what waits waits on, and this may be called again.
    pub(super) fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        let tail = self.log.as_mut().and_then(|log| log.tail.as_mut());
        match tail.map(|(_, tail)| tail) {
            Some(tail) if all || tail.pending.len() >= WRITE_BYTES => {
                tail.flush(disk, 2 * WRITE_BYTES)
            }
            _ => Ok(()),
        }
    }

    /// Brings all to the disk; the files that a checkpoint names now, with their lengths.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn mark(
        &mut self,
        now: Instant,
        disk: &mut dyn Disk,
    ) -> Result<Vec<(String, u64)>, disk::Error> {
        self.write(true, disk)?;
        let Some(log) = &mut self.log else { return Ok(Vec::new()) };
        let needed = |(number, segment): (&u32, &Segment)| {
            (segment.until > now).then_some((*number, segment.bytes))
        };
        let needed: Vec<(u32, u64)> = log.segments.iter().filter_map(needed).collect();
        log.marked = needed.iter().map(|(number, _)| *number).collect();
        Ok(needed.into_iter().map(|(number, bytes)| (name_of(number), bytes)).collect())
    }

    /// The last mark is durable: names of files that are of no use any more.
    pub(super) fn settled(&mut self, now: Instant) -> Vec<String> {
        let Some(log) = &mut self.log else { return Vec::new() };
        let growing = log.tail.as_ref().map(|(number, _)| *number);
        let is_dead = |(number, segment): (&u32, &Segment)| {
            let is_needed = segment.until > now || log.marked.contains(number);
            (!is_needed && growing != Some(*number)).then_some(*number)
        };
        let dead: Vec<u32> = log.segments.iter().filter_map(is_dead).collect();
        dead.iter().for_each(|number| {
            log.segments.remove(number);
        });
        dead.into_iter().map(name_of).collect()
    }

    /// Rules of a server go out of memory.
    fn shelve(&mut self, id: ServerId, held: &Held, until: Instant) -> Robots {
        let Some(log) = &mut self.log else { return Robots::Unknown };
        let place = held.place.unwrap_or_else(|| log.append(id, &held.rules, until));
        Robots::OnDisk(place, until)
    }

    /// Rules of a server come back.
    fn read(&self, id: ServerId, place: Place, disk: &mut dyn Disk) -> Result<Rules, frame::Error> {
        let log = self.log.as_ref().expect("what is on disk was written there");
        let name = name_of(place.segment);
        let offset = u64::from(place.offset);
        let bytes = match log.waiting(place) {
            Some(bytes) => bytes.to_vec(),
            None => read_frame(&name, offset, disk)?,
        };
        let rules = frame::parse(&bytes, offset).and_then(|(frame, _)| {
            let mut take = Take::new(frame.payload);
            let of = take.number().map(ServerId);
            if frame.kind != RULES || of != Ok(id) {
                return Err(Flaw::Senseless);
            }
            Ok(Rules::decode(&mut take)?)
        });
        rules.map_err(|flaw| Damage { name, offset, flaw }.into())
    }
}

impl Log {
    fn append(&mut self, id: ServerId, rules: &Rules, until: Instant) -> Place {
        let is_full =
            |(_, tail): &(u32, Tail)| tail.len() >= SEGMENT_BYTES && tail.pending.is_empty();
        if self.tail.as_ref().is_none_or(is_full) {
            let mut tail = Tail::new(name_of(self.next), 0);
            frame::push_opening(Role::Rules, self.crawl, &mut tail.pending);
            self.segments.insert(self.next, Segment { bytes: 0, until });
            self.tail = Some((self.next, tail));
            self.next += 1;
        }
        let (number, tail) = self.tail.as_mut().expect("it has just begun");
        let offset = u32::try_from(tail.len()).expect("segments are short");
        frame::push_with(RULES, &mut tail.pending, |out| {
            out.put_varint(id.index() as u64);
            rules.encode(out);
        });
        let segment = self.segments.get_mut(number).expect("all are listed");
        *segment = Segment { bytes: tail.len(), until: segment.until.max(until) };
        Place { segment: *number, offset }
    }

    /// The bytes from a place on, if they are not on disk yet.
    fn waiting(&self, place: Place) -> Option<&[u8]> {
        let (_, tail) = self.tail.as_ref().filter(|(number, _)| *number == place.segment)?;
        let written = tail.len() - tail.pending.len() as u64;
        let from = u64::from(place.offset).checked_sub(written)?;
        tail.pending.get(usize::try_from(from).ok()?..)
    }
}

/// A frame in a file, in one read if it is short.
fn read_frame(name: &str, offset: u64, disk: &mut dyn Disk) -> Result<Vec<u8>, disk::Error> {
    let mut bytes = Vec::new();
    read_up_to(READ_BYTES, name, offset, &mut bytes, disk)?;
    if let Some(head) = bytes.first_chunk() {
        let payload_bytes = (u32::from_le_bytes(*head) as usize).min(frame::PAYLOAD_BYTES_MAX);
        read_up_to(frame::OVERHEAD_BYTES + payload_bytes, name, offset, &mut bytes, disk)?;
    }
    Ok(bytes)
}

/// Reads on until there are `wanted` bytes from `offset` on, or the file ends.
fn read_up_to(
    wanted: usize,
    name: &str,
    offset: u64,
    bytes: &mut Vec<u8>,
    disk: &mut dyn Disk,
) -> Result<(), disk::Error> {
    let mut have = bytes.len();
    bytes.resize(wanted.max(have), 0);
    while have < bytes.len() {
        match disk.read_at(name, offset + have as u64, &mut bytes[have..])? {
            0 => break,
            more => have += more,
        }
    }
    bytes.truncate(have);
    Ok(())
}

impl Engine {
    /// What is known of a robots.txt changes; rules in memory are kept within their budget.
    pub(super) fn set_robots(&mut self, id: ServerId, robots: Robots) {
        let site = self.sites.at(id);
        self.rules.bytes -= held_bytes(&site.robots);
        self.rules.bytes += held_bytes(&robots);
        site.robots = robots;
        if matches!(site.robots, Robots::Rules(..)) {
            site.rules_used = true;
            if !std::mem::replace(&mut site.rules_listed, true) {
                self.rules.hand.push_back(id);
            }
            self.shelve_some();
        }
    }

    /// The hand of the clock goes on until rules are within their budget; it passes over servers
    /// that are being visited, and once over those whose rules were used since it came by last.
    fn shelve_some(&mut self) {
        let mut steps = 2 * self.rules.hand.len();
        while self.rules.bytes > self.settings.robots_bytes_max
            && steps > 0
            && let Some(id) = self.rules.hand.pop_front()
        {
            steps -= 1;
            let site = self.sites.at(id);
            let has_rules = matches!(site.robots, Robots::Rules(..));
            let is_visited = self.frontier.server(id).state == ServerState::Busy;
            if has_rules && (is_visited || std::mem::take(&mut site.rules_used)) {
                self.rules.hand.push_back(id);
                continue;
            }
            site.rules_listed = false;
            if let Robots::Rules(held, until) = std::mem::take(&mut site.robots) {
                self.rules.bytes -= held.bytes();
                site.robots = match until > self.now.at {
                    true => self.rules.shelve(id, &held, until),
                    false => Robots::Unknown,
                };
            }
        }
    }

    /// Sees to it that the rules of a server under visit are in memory, if there are any. What
    /// can't be read ends the crawl.
    pub(super) fn unshelve(&mut self, id: ServerId) -> bool {
        let Robots::OnDisk(place, until) = self.sites.look(id).robots else { return true };
        if until <= self.now.at {
            return true;
        }
        match self.rules.read(id, place, self.disk.as_mut()) {
            Ok(rules) => {
                self.ledger.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
                let held = Box::new(Held { rules, place: Some(place) });
                self.set_robots(id, Robots::Rules(held, until));
                self.counts.rules_read += 1;
                true
            }
            Err(error) => {
                self.meet(error);
                false
            }
        }
    }

    /// Bytes of rules in memory.
    pub fn rules_bytes(&self) -> usize {
        self.rules.bytes
    }
}

fn held_bytes(robots: &Robots) -> usize {
    match robots {
        Robots::Rules(held, _) => held.bytes(),
        _ => 0,
    }
}

/// The file of a segment.
fn name_of(segment: u32) -> String {
    format!("{FOLDER}/segment-{segment}")
}

/// The number of the segment that has this path.
fn number_of(path: &str) -> Option<u32> {
    path.strip_prefix(FOLDER)?.strip_prefix("/segment-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::memory::Memory;
    use crate::random::Random;

    const CRAWL: u64 = 7;

    fn rules(number: u32) -> Rules {
        // Now and then longer than what is read at first.
        let lines = if number.is_multiple_of(10) { 400 } else { number % 5 + 1 };
        let line = |line| format!("disallow: /{number}/{line}\n");
        let text = (0..lines).map(line).collect::<String>();
        Rules::parse(format!("user-agent: *\n{text}").as_bytes(), "sted")
    }

    fn spelt(rules: &Rules) -> Vec<u8> {
        let mut bytes = Vec::new();
        rules.encode(&mut bytes);
        bytes
    }

    fn shelve(shelf: &mut Shelf, number: u32, until: Instant) -> Place {
        let held = Held { rules: rules(number), place: None };
        match shelf.shelve(ServerId(number), &held, until) {
            Robots::OnDisk(place, found) if found == until => place,
            other => panic!("{other:?}"),
        }
    }

    /// Law: what was shelved is read back the same, written or not, whatever failed; after a
    /// restart, too.
    #[test]
    fn shelved_rules_come_back() {
        let mut disk = Memory::default();
        let mut shelf = Shelf::new(Some(CRAWL));
        let until = Instant::from_micros(1_000);
        let mut places = Vec::new();
        let mut failures = 0;
        for number in 0..600 {
            places.push(shelve(&mut shelf, number, until));
            let room = disk.used() + u64::from(number % 7) * 50;
            disk.limit((number % 3 == 0).then_some(room), number % 2 == 0);
            failures += u32::from(shelf.write(number % 5 == 0, &mut disk).is_err());
            disk.limit(None, false);
            for asked in [number, number / 2, number / 7] {
                let found = shelf.read(ServerId(asked), places[asked as usize], &mut disk);
                assert_eq!(spelt(&found.expect("it is there")), spelt(&rules(asked)), "{asked}");
            }
        }
        assert!(failures > 9, "the disk was full {failures} times");
        let files = shelf.mark(Instant::ZERO, &mut disk).expect("there is room");
        let mut shelf = Shelf::new(Some(CRAWL));
        shelf.restore(&files, &mut disk).expect("just written");
        for (number, place) in (0..).zip(places) {
            assert_eq!(shelf.retain(place, until), Ok(true));
            let found = shelf.read(ServerId(number), place, &mut disk).expect("just written");
            assert_eq!(spelt(&found), spelt(&rules(number)));
        }
        let beyond = Place { segment: 1, offset: u32::MAX };
        assert_eq!(shelf.retain(beyond, until), Err(Flaw::Senseless));
        assert_eq!(shelf.retain(Place { segment: 9, offset: 24 }, until), Ok(false), "not named");
    }

    /// Law: whatever a run shelves, and however its rules end, the next run takes in what the
    /// checkpoint says and reads the same rules, or knows that they are over; even if calendars
    /// jump between the two, and if rules that memory has no room for are shelved meanwhile.
    #[test]
    fn every_checkpoint_is_understood() {
        let mut random = Random(1);
        let mut below = |limit: u64| random.below(limit);
        let mut counts = [0; 3];
        for _ in 0..40 {
            let (mut disk, mut files) = (Memory::default(), Vec::new());
            // What side tables say: a place and the end of its rules.
            let mut known: Vec<Option<(Place, Instant)>> = vec![None; 30];
            for _ in 0..12 {
                let mut shelf = Shelf::new(Some(CRAWL));
                shelf.restore(&files, &mut disk).expect("just written");
                let jump = [0, 0, 50, 500][below(4) as usize];
                for (number, known) in (0..).zip(&mut known) {
                    if let Some((place, until)) = *known {
                        let until = Instant::from_micros(until.as_micros().saturating_sub(jump));
                        let is_there = shelf.retain(place, until).expect("it was written by us");
                        *known = is_there.then_some((place, until));
                        counts[usize::from(is_there)] += 1;
                    } else if below(3) == 0 {
                        // Those that the checkpoint holds whole go to the disk as it is read.
                        let until = Instant::from_micros(1 + below(100));
                        *known = Some((shelve(&mut shelf, number, until), until));
                    }
                }
                let now = Instant::from_micros(below(60));
                for (number, known) in (0..).zip(&known) {
                    if let Some((place, _)) = known.filter(|(_, until)| *until > now) {
                        let found = shelf.read(ServerId(number), place, &mut disk);
                        assert_eq!(spelt(&found.expect("it is there")), spelt(&rules(number)));
                        counts[2] += 1;
                    }
                }
                known.iter_mut().for_each(|known| *known = known.filter(|_| below(5) > 0));
                files = shelf.mark(now, &mut disk).expect("there is room");
                shelf.settled(now);
                let is_named = |name: &str| files.iter().any(|(other, _)| other == name);
                let strays = disk.list(FOLDER).expect("it can be listed").into_iter();
                for name in strays.map(|name| format!("{FOLDER}/{name}")) {
                    if !is_named(&name) {
                        disk.remove(&name).expect("it is there");
                    }
                }
            }
        }
        assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
    }

    /// A segment goes when its rules are over, no durable checkpoint names it and nothing is added.
    #[test]
    fn segments_go_when_their_rules_are_over() {
        let mut disk = Memory::default();
        let mut shelf = Shelf::new(Some(CRAWL));
        let [early, late, end] = [10, 20, 30].map(Instant::from_micros);
        shelve(&mut shelf, 1, early);
        let place = shelve(&mut shelf, 2, late);
        let files = shelf.mark(early, &mut disk).expect("there is room");
        assert_eq!(files, [(name_of(1), disk.bytes(&name_of(1)).len() as u64)]);
        assert!(shelf.settled(end).is_empty(), "it is marked");

        let mut shelf = Shelf::new(Some(CRAWL));
        shelf.restore(&files, &mut disk).expect("just written");
        assert_eq!(shelf.retain(place, late), Ok(true));
        assert_eq!(shelve(&mut shelf, 3, end).segment, 2, "an earlier run's is not added to");
        assert_eq!(shelf.mark(early, &mut disk).expect("room").len(), 2);
        assert!(shelf.settled(early).is_empty());
        assert_eq!(shelf.mark(late, &mut disk).expect("room").len(), 1, "the first is over");
        assert_eq!(shelf.settled(late), [name_of(1)]);
        assert!(shelf.mark(end, &mut disk).expect("room").is_empty());
        assert!(shelf.settled(end).is_empty(), "it grows");
        assert!(Shelf::new(None).mark(end, &mut disk).expect("nothing to do").is_empty());
    }

    /// Every changed bit and every cut is told, with the file and the offset.
    #[test]
    fn damage_is_told() {
        let mut whole = Memory::default();
        let mut shelf = Shelf::new(Some(CRAWL));
        let until = Instant::from_micros(1);
        let places = [1, 2].map(|number| shelve(&mut shelf, number, until));
        let files = shelf.mark(Instant::ZERO, &mut whole).expect("there is room");
        let bytes = whole.bytes(&name_of(1));
        let told = |bytes: &[u8], id: u32, place: Place| {
            let mut disk = Memory::default();
            disk.append(&name_of(1), bytes).expect("there is room");
            let mut shelf = Shelf::new(Some(CRAWL));
            shelf.restore(&files, &mut disk)?;
            shelf.read(ServerId(id), place, &mut disk)
        };
        assert!(told(&bytes, 2, places[1]).is_ok());
        assert!(told(&bytes, 1, places[1]).is_err(), "another server's");
        for bit in places[1].offset as usize * 8..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match told(&changed, 2, places[1]) {
                Err(frame::Error::Damaged(damage)) => {
                    assert_eq!((damage.name, damage.offset), (name_of(1), places[1].offset.into()));
                }
                other => panic!("bit {bit}: {other:?}"),
            }
            assert!(told(&changed, 1, places[0]).is_ok(), "what is whole is read");
        }
        for end in 0..bytes.len() {
            assert!(told(&bytes[..end], 2, places[1]).is_err(), "cut to {end}");
        }
    }
}
