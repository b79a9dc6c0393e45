//! Going on: from the files of a job back to a crawl, as of its last checkpoint and what the
//! archive holds since.
//!
//! Laws: what a durable checkpoint names is restored whole, or the file that isn't is told with
//! the offset; until the first checkpoint of this run a crash goes back to the same one; a crawl
//! that was not stopped in order owes every server its longest rest.
//! Cost: the snapshot is read once, the index of the archive as far as it is newer.

use super::archive::verify;
use super::backlog::{self, ROBOTS_TXT};
use super::checkpoint::manifest::Manifest;
use super::checkpoint::{self, Checkpoints, remove_strays};
use super::robots::state::{Known, Robots};
use super::settings::Settings;
use super::site::Site;
use super::{Engine, Error};
use crate::frontier::{Frontier, ServerId, ServerState};
use crate::ground::codec::Take;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Flaw, Frame, Reader, Role};
use crate::ground::map::Set;
use crate::ground::stats::Meter;
use crate::ground::time::{Now, UnixTime};
use crate::seeds::Seed;
use crate::seen::Seen;
use crate::store::{Kept, Position};
use crate::url::{Fingerprint, UrlRef};

/// A crawl that is on the disk.
#[derive(Clone, Debug)]
pub struct Earlier(Manifest);

impl Earlier {
    /// The one that is there, if there is one.
    ///
    /// # Errors
    /// Its checkpoint can't be read, or was written by another version.
    pub fn find(disk: &mut dyn Disk) -> Result<Option<Self>, frame::Error> {
        Ok(Manifest::find(disk)?.map(Self))
    }

    /// The state of a job made anew from its archive, whatever was there: the crawl goes on as if
    /// it had just begun, with all that the archive holds read back and none of it asked for again.
    ///
    /// # Errors
    /// The disk.
    pub fn rebuild(
        key: [u8; 16],
        now: UnixTime,
        disk: &mut dyn Disk,
    ) -> Result<Self, crate::ground::disk::Error> {
        let manifest = Manifest { rebuilt: true, ..Manifest::first(key, now) };
        manifest.publish(disk)?;
        Ok(Self(manifest))
    }

    /// Key of its fingerprints: that of the crawl that goes on with it.
    pub fn key(&self) -> [u8; 16] {
        self.0.key().expect("one without was refused")
    }

    /// Whether it had nothing left to fetch.
    pub fn is_finished(&self) -> bool {
        self.0.finished
    }

    /// Whether it was stopped in order.
    pub fn is_clean(&self) -> bool {
        self.0.clean
    }

    /// Whether its state is rebuilt from the archive.
    pub fn is_rebuilt(&self) -> bool {
        self.0.rebuilt
    }

    /// When its checkpoint was made: seconds, UTC; nothing if it hadn't begun.
    pub fn written(&self) -> &str {
        &self.0.written
    }
}

impl Engine {
    /// A crawl that keeps its state on this disk: the one that is there goes on, else a new one
    /// begins. Its settings must have the key of the one that is there ([`Earlier::key`]).
    ///
    /// # Errors
    /// As [`Engine::new`]; and a file of the state that can't be read.
    pub fn open(
        settings: Settings,
        seeds: &[Seed],
        mut disk: Box<dyn Disk>,
        meter: Meter,
        now: Now,
    ) -> Result<Self, Error> {
        let Some(crawl) = settings.state.crawl else {
            return Self::new(settings, seeds, disk, meter, now);
        };
        let earlier = Earlier::find(disk.as_mut()).map_err(Error::State)?;
        let (key, period) = (settings.fingerprint_key, settings.state.period);
        if let Some(earlier) = &earlier {
            assert_eq!(earlier.key(), key, "a crawl goes on with its own key");
        }
        let durable = earlier.as_ref().map_or_else(Default::default, |Earlier(it)| it.durable());
        let checked = verify(&settings, durable, disk.as_mut())?;
        let mut engine = Self::bare(durable, settings, seeds, disk, meter, now)?;
        let mut checkpoints = Checkpoints::new(crawl, key, period, now.at);
        match earlier {
            Some(Earlier(found)) => {
                checkpoints.go_on(&found);
                engine.checkpoints = Some(checkpoints);
                engine.go_on(&found, crawl, now)?;
                engine.count_lost(checked, found.rebuilt);
                let reads_back = !engine.archive.replays().is_empty();
                engine.archive.store_mut().release(if reads_back {
                    0
                } else {
                    found.archive_serial
                });
                let known: Set<&str> = seeds.iter().map(|seed| seed.url.as_str()).collect();
                engine.admission.join_again(|seed| known.contains(seed));
            }
            None => {
                Manifest::first(key, now.unix)
                    .publish(engine.storage.disk())
                    .map_err(disk_error)?;
                engine.checkpoints = Some(checkpoints);
                engine.archive.store_mut().release(0);
            }
        }
        seeds.iter().for_each(|seed| engine.seed(now, seed));
        Ok(engine)
    }

    fn go_on(&mut self, found: &Manifest, crawl: u64, now: Now) -> Result<(), Error> {
        remove_strays(found, self.storage.disk()).map_err(disk_error)?;
        if found.snapshot.is_some() {
            self.restore(found, crawl, now).map_err(Error::State)?;
        }
        if found.clean {
            // From the first request on a crash is a crash.
            let Position { serial, offset } = found.durable();
            let unclean = Manifest {
                clean: false,
                finished: false,
                archive_serial: serial,
                archive_offset: offset,
                ..found.clone()
            };
            unclean.publish(self.storage.disk()).map_err(disk_error)?;
        } else {
            self.keep_quiet(found.rebuilt);
            self.list_replays(found)?;
        }
        self.archive.replays_mut().0.begin();
        Ok(())
    }

    /// Everything as of the checkpoint.
    fn restore(&mut self, found: &Manifest, crawl: u64, now: Now) -> Result<(), frame::Error> {
        let name = found.snapshot.as_deref().expect("there is one");
        let mut disk = self.storage.reads().handle();
        let disk = disk.as_mut();
        let end = found.bytes_of(name);
        let mut reader = Reader::open(name, Role::Snapshot, crawl, end, disk)?;
        self.robots.cache().restore(&found.files, disk)?;
        self.backlog.given_up_mut().restore_files(&found.files, disk)?;
        self.admission.restores_scope(&found.scope);
        let mut sites: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut offset = reader.offset();
        while let Some(frame) = reader.next(disk)? {
            let taken = match frame.kind {
                checkpoint::SEEN => {
                    let settings = self.settings.seen.clone();
                    *self.admission.seen_mut() = Seen::restore(settings, frame.payload, disk)?;
                    Ok(())
                }
                checkpoint::FRONTIER => {
                    let settings = backlog::settings_of(&self.settings.frontier);
                    let restored = Frontier::restore(settings, frame.payload, &found.files, disk)?;
                    self.backlog.restore(restored);
                    Ok(())
                }
                _ => self.take_frame(&frame, &mut sites),
            };
            taken.map_err(|flaw| reader.damage(offset, flaw))?;
            offset = reader.offset();
        }
        let ended = self.backlog.restored(found.clean, now);
        let ended = ended.and_then(|()| self.side_tables(&sites, found.clean));
        ended.map_err(|flaw| reader.damage(offset, flaw).into())
    }

    fn take_frame(
        &mut self,
        frame: &Frame<'_>,
        sites: &mut Vec<(usize, Vec<u8>)>,
    ) -> Result<(), Flaw> {
        let mut take = Take::new(frame.payload);
        match frame.kind {
            checkpoint::COUNTS => {
                self.counts = serde_json::from_slice(frame.payload).map_err(|_| Flaw::Senseless)?;
            }
            checkpoint::KEPT => {
                let (key, url) = (Fingerprint(take.u64()?), Fingerprint(take.u64()?));
                let kept = Kept::decode(&mut take)?;
                let server = take.varint()?.checked_sub(1).map(usize::try_from);
                let server = server.transpose().map_err(|_| Flaw::Senseless)?;
                self.archive.replays_mut().0.add(
                    (key, url),
                    kept,
                    server.map(ServerId::from_index),
                );
            }
            checkpoint::RATING => self.admission.rating_mut().decode(frame.payload)?,
            checkpoint::GIVEN_UP => self.backlog.given_up_mut().restore_mark(frame.payload)?,
            checkpoint::HELD => {
                let key = Fingerprint(take.u64()?);
                self.admission.seen_mut().offer(key, take.rest());
            }
            checkpoint::JOINED => self.admission.seeding().decode(frame.payload)?,
            checkpoint::SITE => {
                sites.push((Site::number_of(&mut take)?, take.rest().to_vec()));
            }
            _ => {
                self.backlog.restore_frame(frame, self.turn.now())?;
            }
        }
        Ok(())
    }

    /// The side table of every server of which something was known.
    fn side_tables(&mut self, known: &[(usize, Vec<u8>)], was_clean: bool) -> Result<(), Flaw> {
        for index in 0..self.backlog.servers() {
            let id = ServerId::from_index(index);
            self.sites.reach(id);
            self.admission.add_server(self.backlog.origin(id).host());
            let server = self.backlog.server(id);
            let due = server.due;
            if server.has_answered() && !matches!(server.state(), ServerState::Retired(_)) {
                self.visits.may_witness(id);
            }
            if was_clean && due > self.turn.at() {
                self.sites.at(id).rests(self.turn.at(), due);
            }
        }
        for (number, bytes) in known {
            if *number >= self.sites.len() {
                return Err(Flaw::Senseless);
            }
            let id = ServerId::from_index(*number);
            let site = self.sites.at(id);
            site.decode(&mut Take::new(bytes), self.settings.robots.ttl, self.turn.now())?;
            let mut robots = std::mem::take(&mut site.robots);
            if let Robots::OnDisk(location, until) = robots
                && !self.robots.cache().retain(location, until)?
            {
                robots = Robots::Unknown;
            }
            self.set_robots(id, robots);
        }
        Ok(())
    }

    /// What Crawl-delay was found since the checkpoint nobody knows: where none was known then, the
    /// longest that is obeyed is waited for, beside the longest rest of our own.
    fn keep_quiet(&mut self, rebuilt: bool) {
        let obeys = self.settings.robots.obey;
        let crawl_delay = Some(self.settings.robots.crawl_delay_max).filter(|_| obeys);
        let rest = self.settings.frontier.scheduler.full_rest(crawl_delay);
        let until = self.turn.at() + rest;
        let why = match rebuilt {
            true => "the archive doesn't say when servers were last asked",
            false => "the crawl was not stopped in order",
        };
        log::warn!(
            "{why}: servers rest until {} UTC, the longest that they \
             may be owed (politeness.delay_max, crawl_delay_max)",
            self.turn.unix().after(rest).civil().to_clock()
        );
        self.backlog.keep_new_quiet(until);
        self.sites.begin_again(self.turn.at(), until);
        for index in 0..self.sites.len() {
            let id = ServerId::from_index(index);
            if obeys && self.sites.look(id).robots.known(self.turn.at()) != Known::Rules {
                self.presume_crawl_delay(id);
                self.backlog.snooze(id, until, self.turn.at());
            }
            let due = self.backlog.server(id).due;
            if self.sites.look(id).due() != due {
                self.sites.at(id).rests(self.turn.at(), due);
            }
        }
    }

    /// A server may have asked a run that was not stopped in order for a Crawl-delay that nobody
    /// knows: until its robots.txt is known, requests for that keep the longest that is obeyed.
    pub(super) fn presume_crawl_delay(&mut self, id: ServerId) {
        let robots = self.settings.robots;
        if robots.obey && self.backlog.server(id).crawl_delay().is_none() {
            self.backlog.set_crawl_delay(id, Some(robots.crawl_delay_max), self.turn.at());
        }
    }

    /// What the archive holds since the checkpoint: it is read back when its turn comes.
    fn list_replays(&mut self, found: &Manifest) -> Result<(), Error> {
        let (admission, frontier) = (&self.admission, &self.backlog);
        let ((replays, store), mut key) = (self.archive.replays_mut(), Vec::new());
        let mut tell = |url: &str, kept| {
            if let Some(url) = UrlRef::from_canonical(url.as_bytes())
                // Which server's rules it was fetched for is not known: it is fetched again.
                && url.target() != ROBOTS_TXT
            {
                let own = admission.hash(url.as_str().as_bytes());
                let key = admission.key_of(url, &mut key);
                replays.add((key, own), kept, frontier.find(url));
            }
        };
        let disk = self.storage.disk();
        store.since(found.archive(), disk, &mut tell).map_err(Error::Store)?;
        if !self.archive.replays().is_empty() {
            log::info!(
                "{} replies since the checkpoint are in the archive: they are read back from there",
                self.archive.replays().len()
            );
        }
        Ok(())
    }
}

fn disk_error(error: crate::ground::disk::Error) -> Error {
    Error::State(error.into())
}
