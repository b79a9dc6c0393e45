//! The cache of robots.txt rules: those used recently are in memory, the others on disk.
//!
//! When the rules in memory exceed their budget, some are evicted by the CLOCK algorithm: a hand
//! passes over the servers with rules in memory, and evicts those not used since it passed last.
//! Evicted rules are appended to a log of segments, and read back when their server is visited,
//! which is one short read. Rules that were read back keep their location on disk. Rules are valid
//! for `robots_ttl` at most, so a segment is needed until the last of its rules expires; segments
//! are never compacted. A crawl that keeps no state drops evicted rules, and requests the file
//! again.
//!
//! ```text
//! file   state/robots/segment-N: the opening frame, then rules
//! rules  kind 1: number of the server | see `robots::Rules::encode`
//! ```
//!
//! Laws: rules in memory don't exceed their budget, except for those of servers under visit. Rules
//! are read back unchanged, from disk or from the write buffer. A full disk loses no rules. A
//! damaged file is reported with its offset.
//! Cost: in addition to the rules themselves, five bytes for rules in memory; twelve for rules on
//! disk.

use super::COPY_BYTES;
use super::state::{CachedRules, Robots};
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::engine::site::Cached;
use crate::frontier::{ServerId, ServerState};
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Role};
use crate::ground::segments::{Limits, Location, Segments};
use crate::ground::time::Instant;
use crate::robots::Rules;
use std::collections::{BTreeMap, VecDeque};

/// The kind of the frame that holds rules.
const RULES: u8 = 1;
const LIMITS: Limits = Limits { segment_bytes: 64 << 20, write_bytes: 64 << 10 };
/// The folder of all segments, relative to the job directory.
pub(in crate::engine) const FOLDER: &str = "state/robots";

/// The cache of the robots.txt rules of all servers: the order of eviction, and the rules on disk.
#[derive(Debug)]
pub(in crate::engine) struct RobotsCache {
    /// The servers with rules in memory, in the order in which the hand (the pointer of the CLOCK
    /// algorithm) passes over them. Some of them may have lost their rules since.
    hand: VecDeque<ServerId>,
    /// The number of bytes that rules in memory take.
    bytes: usize,
    /// The rules on disk; `None` if the crawl keeps no state.
    log: Option<Log>,
}

#[derive(Debug)]
struct Log {
    segments: Segments,
    /// For each segment, when the last of its rules expires.
    until: BTreeMap<u32, Instant>,
}

impl RobotsCache {
    pub(in crate::engine) fn new(crawl: Option<u64>) -> Self {
        let segments = |crawl| Segments::new(FOLDER, Role::Rules, crawl, LIMITS);
        let log = |crawl| Log { segments: segments(crawl), until: BTreeMap::new() };
        Self { hand: VecDeque::new(), bytes: 0, log: crawl.map(log) }
    }

    /// Restores the segments. `files` are those that the checkpoint of an earlier run names, with
    /// their valid lengths.
    ///
    /// # Errors
    /// A file is too short or no segment; or the disk reports an error.
    pub(in crate::engine) fn restore(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        if let Some(log) = &mut self.log {
            log.segments.restore_files(files, disk)?;
        }
        Ok(())
    }

    /// Retains rules that an earlier run wrote. Returns `false` if the checkpoint doesn't name
    /// their segment, because all its rules had expired. A segment that this run has begun may have
    /// the same number, but holds other rules.
    ///
    /// # Errors
    /// There can't be rules at this location.
    pub(in crate::engine) fn retain(
        &mut self,
        location: Location,
        until: Instant,
    ) -> Result<bool, Flaw> {
        let is_named = |log: &&mut Log| log.segments.is_restored(location.segment);
        let Some(log) = self.log.as_mut().filter(is_named) else { return Ok(false) };
        if !log.segments.retain(location) {
            return Err(Flaw::Senseless);
        }
        log.extend(location.segment, until);
        Ok(true)
    }

    /// Appends buffered bytes to the disk: all of them, or only if they are enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. No bytes are lost, and the call may be repeated.
    pub(in crate::engine) fn write(
        &mut self,
        all: bool,
        disk: &mut dyn Disk,
    ) -> Result<(), disk::Error> {
        self.log.as_mut().map_or(Ok(()), |log| log.segments.write(all, disk))
    }

    /// Appends everything buffered to the disk, and releases segments whose rules have expired.
    /// Returns the files that a checkpoint names now, with their lengths.
    ///
    /// # Errors
    /// The disk reports an error.
    pub(in crate::engine) fn mark(
        &mut self,
        now: Instant,
        disk: &mut dyn Disk,
    ) -> Result<Vec<(String, u64)>, disk::Error> {
        let Some(Log { segments, until }) = &mut self.log else { return Ok(Vec::new()) };
        until.retain(|segment, until| {
            let is_valid = *until > now;
            if !is_valid {
                segments.release_all(*segment);
            }
            is_valid
        });
        segments.mark(disk)
    }

    /// Called when the checkpoint with the last [`RobotsCache::mark`] is durable. Returns the names
    /// of files that are no longer needed.
    pub(in crate::engine) fn on_durable(&mut self) -> Vec<String> {
        self.log.as_mut().map_or(Vec::new(), |log| log.segments.on_durable(None))
    }

    /// Evicts the rules of a server from memory. Returns the new state of the server's robots.txt.
    fn evict(&mut self, id: ServerId, held: &CachedRules, until: Instant) -> Robots {
        let Some(log) = &mut self.log else { return Robots::Unknown };
        let location = held.location.unwrap_or_else(|| log.append(id, &held.rules, until));
        Robots::OnDisk(location, until)
    }

    /// Reads the rules of a server back from disk or from the write buffer.
    ///
    /// # Errors
    /// The disk reports an error, or the rules are damaged.
    pub(in crate::engine) fn read(
        &self,
        id: ServerId,
        location: Location,
        disk: &mut dyn Disk,
    ) -> Result<Rules, frame::Error> {
        let segments = &self.log.as_ref().expect("what is on disk was written there").segments;
        let payload = segments.read(location, RULES, disk)?;
        let mut take = Take::new(&payload);
        let is_its_own = take.number().map(ServerId) == Ok(id);
        let rules = Rules::decode(&mut take).ok().filter(|_| is_its_own);
        let (name, offset) = (segments.name_of(location.segment), location.offset.into());
        let flaw = Flaw::Senseless;
        rules.ok_or_else(|| Damage { name, offset, flaw }.into())
    }
}

impl Log {
    fn append(&mut self, id: ServerId, rules: &Rules, until: Instant) -> Location {
        let location = self.segments.append(RULES, |out| {
            out.put_varint(id.index() as u64);
            rules.encode(out);
        });
        self.extend(location.segment, until);
        location
    }

    /// Makes sure that a segment is kept until `until` at least.
    fn extend(&mut self, segment: u32, until: Instant) {
        let last = self.until.entry(segment).or_insert(until);
        *last = until.max(*last);
    }
}

impl Engine {
    /// Sets the state of a server's robots.txt, and keeps the rules in memory within their budget.
    pub(in crate::engine) fn set_robots(&mut self, id: ServerId, robots: Robots) {
        let site = self.sites.get_mut(id);
        self.robots.cache.bytes -= site.robots.bytes();
        self.robots.cache.bytes += robots.bytes();
        site.robots = robots;
        if matches!(site.robots, Robots::Rules(..)) {
            if std::mem::replace(&mut site.cached, Cached::Used) == Cached::No {
                self.robots.cache.hand.push_back(id);
            }
            self.evict_some();
        }
    }

    /// Evicts rules until those in memory are within their budget, as the hand of the CLOCK
    /// algorithm moves. The hand skips servers under visit. It also skips, once, a server whose
    /// rules were used since it passed last.
    fn evict_some(&mut self) {
        let mut steps = 2 * self.robots.cache.hand.len();
        while self.robots.cache.bytes > self.settings.robots_bytes_max
            && steps > 0
            && let Some(id) = self.robots.cache.hand.pop_front()
        {
            steps -= 1;
            let site = self.sites.get_mut(id);
            let has_rules = matches!(site.robots, Robots::Rules(..));
            let is_visited = self.backlog.server(id).state() == ServerState::Busy;
            if has_rules && (is_visited || site.cached == Cached::Used) {
                if !is_visited {
                    site.cached = Cached::Unused;
                }
                self.robots.cache.hand.push_back(id);
                continue;
            }
            site.cached = Cached::No;
            self.robots.cache.bytes -= site.robots.bytes();
            if let Robots::Rules(held, until) = std::mem::take(&mut site.robots) {
                site.robots = match until > self.turn.at() {
                    true => self.robots.cache.evict(id, &held, until),
                    false => Robots::Unknown,
                };
            }
        }
    }

    /// Reads the rules of a server under visit into memory, if it has rules on disk. Returns
    /// `false` if they can't be read, which ends the crawl.
    pub(in crate::engine) fn load_rules(&mut self, id: ServerId) -> bool {
        let Robots::OnDisk(location, until) = self.sites.get(id).robots else { return true };
        if until <= self.turn.at() {
            return true;
        }
        let rules = self.robots.cache.read(id, location, self.storage.disk());
        let Some(rules) = self.checked(rules) else { return false };
        self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
        let held = Box::new(CachedRules { rules, location: Some(location) });
        self.set_robots(id, Robots::Rules(held, until));
        self.counts.rules_read += 1;
        true
    }

    /// Returns the number of bytes that rules in memory take.
    pub fn rules_bytes(&self) -> usize {
        self.robots.cache.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;
    use crate::ground::segments;

    const CRAWL: u64 = 7;

    fn name_of(segment: u32) -> String {
        segments::name_of(FOLDER, segment)
    }

    fn rules(number: u32) -> Rules {
        // Sometimes more than one read returns.
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

    fn evict(cache: &mut RobotsCache, number: u32, until: Instant) -> Location {
        let held = CachedRules { rules: rules(number), location: None };
        match cache.evict(ServerId(number), &held, until) {
            Robots::OnDisk(place, found) if found == until => place,
            other => panic!("{other:?}"),
        }
    }

    /// Law: evicted rules are read back unchanged, from disk or from the buffer, after any failure
    /// and after a restart.
    #[test]
    fn evicted_rules_come_back() {
        let mut disk = Memory::default();
        let mut cache = RobotsCache::new(Some(CRAWL));
        let until = Instant::from_micros(1_000);
        let mut places = Vec::new();
        let mut failures = 0;
        for number in 0..600 {
            places.push(evict(&mut cache, number, until));
            let room = disk.used() + u64::from(number % 7) * 50;
            disk.limit((number % 3 == 0).then_some(room), number % 2 == 0);
            failures += u32::from(cache.write(number % 5 == 0, &mut disk).is_err());
            disk.limit(None, false);
            for asked in [number, number / 2, number / 7] {
                let found = cache.read(ServerId(asked), places[asked as usize], &mut disk);
                assert_eq!(spelt(&found.expect("it is there")), spelt(&rules(asked)), "{asked}");
            }
        }
        assert!(failures > 9, "the disk was full {failures} times");
        let files = cache.mark(Instant::ZERO, &mut disk).expect("there is room");
        let mut cache = RobotsCache::new(Some(CRAWL));
        cache.restore(&files, &mut disk).expect("just written");
        let first = places[0];
        for (number, place) in (0..).zip(places) {
            assert_eq!(cache.retain(place, until), Ok(true));
            let found = cache.read(ServerId(number), place, &mut disk).expect("just written");
            assert_eq!(spelt(&found), spelt(&rules(number)));
        }
        let beyond = Location { offset: u32::MAX, ..first };
        assert_eq!(cache.retain(beyond, until), Err(Flaw::Senseless));
        assert_eq!(cache.retain(Location { segment: 9, ..first }, until), Ok(false), "not named");
    }

    /// Law: whatever a run evicts and however its rules expire, the next run decodes the checkpoint
    /// and reads the same rules, or knows that they have expired. This holds even if the wall clock
    /// jumps between the two, and if rules are evicted while the checkpoint is read.
    #[test]
    fn every_checkpoint_is_understood() {
        let mut random = Random(1);
        let mut below = |limit: u64| random.below(limit);
        let mut counts = [0; 3];
        for _ in 0..40 {
            let (mut disk, mut files) = (Memory::default(), Vec::new());
            // What side tables hold: the location of the rules, and when they expire.
            let mut known: Vec<Option<(Location, Instant)>> = vec![None; 30];
            for _ in 0..12 {
                let mut cache = RobotsCache::new(Some(CRAWL));
                cache.restore(&files, &mut disk).expect("just written");
                let jump = [0, 0, 50, 500][below(4) as usize];
                for (number, known) in (0..).zip(&mut known) {
                    if let Some((place, until)) = *known {
                        let until = Instant::from_micros(until.as_micros().saturating_sub(jump));
                        let is_there = cache.retain(place, until).expect("it was written by us");
                        *known = is_there.then_some((place, until));
                        counts[usize::from(is_there)] += 1;
                    } else if below(3) == 0 {
                        // Rules that the checkpoint holds itself are evicted while it is read.
                        let until = Instant::from_micros(1 + below(100));
                        *known = Some((evict(&mut cache, number, until), until));
                    }
                }
                let now = Instant::from_micros(below(60));
                for (number, known) in (0..).zip(&known) {
                    if let Some((place, _)) = known.filter(|(_, until)| *until > now) {
                        let found = cache.read(ServerId(number), place, &mut disk);
                        assert_eq!(spelt(&found.expect("it is there")), spelt(&rules(number)));
                        counts[2] += 1;
                    }
                }
                known.iter_mut().for_each(|known| *known = known.filter(|_| below(5) > 0));
                files = cache.mark(now, &mut disk).expect("there is room");
                cache.on_durable();
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

    /// Law: a segment is removed when its rules have expired, no durable checkpoint names it, and
    /// nothing is appended to it.
    #[test]
    fn segments_go_when_their_rules_are_over() {
        let mut disk = Memory::default();
        let mut cache = RobotsCache::new(Some(CRAWL));
        let [early, late, end] = [10, 20, 30].map(Instant::from_micros);
        evict(&mut cache, 1, early);
        let place = evict(&mut cache, 2, late);
        let files = cache.mark(early, &mut disk).expect("there is room");
        assert_eq!(files, [(name_of(1), disk.bytes(&name_of(1)).len() as u64)]);
        assert!(cache.on_durable().is_empty(), "it is marked");

        let mut cache = RobotsCache::new(Some(CRAWL));
        cache.restore(&files, &mut disk).expect("just written");
        assert_eq!(cache.retain(place, late), Ok(true));
        assert_eq!(evict(&mut cache, 3, end).segment, 2, "an earlier run's is not added to");
        assert_eq!(cache.mark(early, &mut disk).expect("room").len(), 2);
        assert!(cache.on_durable().is_empty());
        assert_eq!(cache.mark(late, &mut disk).expect("room").len(), 1, "the first is over");
        assert_eq!(cache.on_durable(), [name_of(1)]);
        assert!(cache.mark(end, &mut disk).expect("room").is_empty());
        assert!(cache.on_durable().is_empty(), "it grows");
        assert!(RobotsCache::new(None).mark(end, &mut disk).expect("nothing to do").is_empty());
    }

    /// Law: a changed bit or a truncated file is reported with the file and the offset.
    #[test]
    fn damage_is_reported() {
        let mut whole = Memory::default();
        let mut cache = RobotsCache::new(Some(CRAWL));
        let until = Instant::from_micros(1);
        let places = [1, 2].map(|number| evict(&mut cache, number, until));
        let files = cache.mark(Instant::ZERO, &mut whole).expect("there is room");
        let bytes = whole.bytes(&name_of(1));
        let read = |bytes: &[u8], id: u32, place: Location| {
            let mut disk = Memory::default();
            disk.append(&name_of(1), bytes).expect("there is room");
            let mut cache = RobotsCache::new(Some(CRAWL));
            cache.restore(&files, &mut disk)?;
            cache.read(ServerId(id), place, &mut disk)
        };
        assert!(read(&bytes, 2, places[1]).is_ok());
        assert!(read(&bytes, 1, places[1]).is_err(), "another server's");
        for bit in places[1].offset as usize * 8..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match read(&changed, 2, places[1]) {
                Err(frame::Error::Damaged(damage)) => {
                    assert_eq!((damage.name, damage.offset), (name_of(1), places[1].offset.into()));
                }
                other => panic!("bit {bit}: {other:?}"),
            }
            assert!(read(&changed, 1, places[0]).is_ok(), "what is whole is read");
        }
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], 2, places[1]).is_err(), "cut to {end}");
        }
    }
}
