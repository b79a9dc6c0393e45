//! Resumes a crawl from the files of its job: the last checkpoint, and what was archived since.
//!
//! Laws: everything that a durable checkpoint names is restored, or the damaged file is reported
//! with the offset. Until the first checkpoint of this run, a crash returns to the same one. After
//! an unclean stop every server rests for the longest time that it may be owed.
//! Cost: the snapshot is read once, and the part of the archive's index that is newer.

use super::again::RATES;
use super::archive::verify;
use super::backlog::{self, ROBOTS_TXT};
use super::checkpoint::manifest::Manifest;
use super::checkpoint::{self, Checkpoints, remove_strays};
use super::robots::state::{Robots, RobotsStatus};
use super::settings::Settings;
use super::{Engine, Error};
use crate::budgets::FOLDERS as BUDGETS_FOLDERS;
use crate::frontier::{Frontier, Rule, ServerId, ServerState};
use crate::ground::codec::Take;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Flaw, Frame, Reader, Role};
use crate::ground::map::Set;
use crate::ground::stats::Meter;
use crate::ground::time::{Now, UnixTime};
use crate::http::is_redirect;
use crate::seeds::Seed;
use crate::seen::Seen;
use crate::store::{Kept, Position};
use crate::url::{Fingerprint, Url, UrlRef};

/// A crawl of an earlier run that is on disk, as its checkpoint describes it.
#[derive(Clone, Debug)]
pub struct Earlier(Manifest);

impl Earlier {
    /// Finds the crawl on this disk. Returns `None` if there is none.
    ///
    /// # Errors
    /// The checkpoint of the crawl can't be read, or was written by another version of the program.
    pub fn find(disk: &mut dyn Disk) -> Result<Option<Self>, frame::Error> {
        Ok(Manifest::find(disk)?.map(Self))
    }

    /// Publishes an empty checkpoint, from which the next run rebuilds the state of a job out of
    /// its archive. Any state that the job has is discarded. The crawl begins again at its seeds,
    /// but replies that the archive holds are read back instead of fetched.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn rebuild(
        key: [u8; 16],
        now: UnixTime,
        disk: &mut dyn Disk,
    ) -> Result<Self, crate::ground::disk::Error> {
        let manifest = Manifest { rebuilt: true, ..Manifest::first(key, now) };
        manifest.publish(disk)?;
        Ok(Self(manifest))
    }

    /// Returns the key of the crawl's fingerprints. The run that resumes the crawl must use the
    /// same key.
    pub fn key(&self) -> [u8; 16] {
        self.0.key().expect("one without was refused")
    }

    /// Returns whether the crawl had nothing left to fetch.
    pub fn is_finished(&self) -> bool {
        self.0.finished
    }

    /// Returns whether the crawl was stopped in order.
    pub fn is_clean(&self) -> bool {
        self.0.clean
    }

    /// Returns whether the crawl's state is being rebuilt from its archive.
    pub fn is_rebuilt(&self) -> bool {
        self.0.rebuilt
    }

    /// Returns when the crawl's checkpoint was written (UTC, to the second), or an empty string if
    /// there is none.
    pub fn written(&self) -> &str {
        &self.0.written
    }
}

/// What is said when a crawl came back to known pages, and no longer does.
const NOT_AGAIN: &str = "recrawl.policy is \"none\", and wasn't before: what is known of pages is \
                         dropped, and they aren't visited again";

/// What is said when domains had budgets, no longer have some, and URLs wait.
const NO_BUDGETS: &str = "schedule.budget_max is \"none\", and wasn't before: URLs over their \
                          domain's budget are queued";

impl Engine {
    /// Opens a crawl that keeps its state on this disk: resumes the crawl that is there, or begins
    /// a new one. To resume, the settings must have that crawl's key ([`Earlier::key`]).
    ///
    /// # Errors
    /// Those of [`Engine::new`], or a file of the state can't be read.
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
        let mut engine = Self::empty(durable, settings, seeds, disk, meter, now)?;
        let mut checkpoints = Checkpoints::new(crawl, key, period, now.at);
        match earlier {
            Some(Earlier(found)) => {
                checkpoints.resume_from(&found);
                engine.checkpoints = Some(checkpoints);
                engine.resume_crawl(&found, crawl, now)?;
                engine.count_lost(checked, found.rebuilt);
                let reads_back = !engine.archive.replays().is_empty();
                let serial = if reads_back { 0 } else { found.archive_serial };
                engine.archive.store_mut().release(serial);
                let added = engine.visits.orders().seeds().clone();
                let seeds = seeds.iter().map(|seed| &seed.url).chain(&added);
                let known: Set<&str> = seeds.map(Url::as_str).collect();
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
        engine.obey_again(now);
        Ok(engine)
    }

    fn resume_crawl(&mut self, found: &Manifest, crawl: u64, now: Now) -> Result<(), Error> {
        remove_strays(found, self.storage.disk()).map_err(disk_error)?;
        if found.snapshot.is_some() {
            self.restore(found, crawl, now).map_err(Error::State)?;
        }
        if found.clean {
            // From now on, an end without a checkpoint is an unclean stop.
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
            self.rest_all_servers(found.rebuilt);
            self.list_replays(found)?;
        }
        self.archive.replays_mut().0.begin();
        Ok(())
    }

    /// Restores all parts of the engine to the instant of the checkpoint.
    fn restore(&mut self, found: &Manifest, crawl: u64, now: Now) -> Result<(), frame::Error> {
        let name = found.snapshot.as_deref().expect("there is one");
        let mut disk = self.storage.disk_ref().handle();
        let disk = disk.as_mut();
        let end = found.bytes_of(name);
        let mut reader = Reader::open(name, Role::Snapshot, crawl, end, disk)?;
        self.robots.cache().restore(&found.files, disk)?;
        if found.files.iter().any(|(name, _)| name.starts_with(BUDGETS_FOLDERS[0])) {
            self.backlog.restored_budgets(&self.settings);
        }
        self.backlog.restore_segments(&found.files, disk)?;
        let cluster = self.cluster.as_deref_mut();
        cluster.map_or(Ok(()), |cluster| cluster.restore_files(&found.files, disk))?;
        self.admission.rescope().restore(&found.scope);
        let mut sites: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut parts = (0, Vec::new());
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
                _ => self.take_frame(&frame, &mut sites, &mut parts),
            };
            taken.map_err(|flaw| reader.damage(offset, flaw))?;
            offset = reader.offset();
        }
        self.take_parts(&mut parts).map_err(|flaw| reader.damage(offset, flaw))?;
        if let Some(cluster) = &mut self.cluster {
            // What was settled before that checkpoint may be published.
            cluster.checkpoint_is_durable(now.at);
        }
        if self.backlog.end_done_budgets() {
            log::warn!("{NO_BUDGETS}");
        }
        let ended = self.backlog.restored(found.clean, now);
        self.backlog.call_restored(now.at);
        let ended = ended.and_then(|()| self.restore_sites(&sites, found.clean));
        ended.map_err(|flaw| reader.damage(offset, flaw).into())
    }

    /// Restores what is in several frames of one kind, when all of them are read.
    fn take_parts(&mut self, parts: &mut (u8, Vec<u8>)) -> Result<(), Flaw> {
        let (kind, state) = std::mem::take(parts);
        if kind == 0 {
            return Ok(());
        }
        if kind == checkpoint::BUDGETS {
            return self.backlog.restored_budgets(&self.settings).restore_mark(&state);
        }
        if kind == checkpoint::AGAIN {
            let again = self.backlog.again_mut();
            if again.is_none() {
                log::warn!("{NOT_AGAIN}");
            }
            return again.map_or(Ok(()), |again| again.restore_mark(&state));
        }
        // A node's crawl resumes as a node.
        let own = self.cluster.as_deref_mut().zip(self.admission.masks_mut());
        let (cluster, masks) = own.ok_or(Flaw::Senseless)?;
        match kind {
            checkpoint::OUTBOX => cluster.restore_outbox(&state),
            _ => cluster.decode(&state, masks),
        }
    }

    fn take_frame(
        &mut self,
        frame: &Frame<'_>,
        sites: &mut Vec<(usize, Vec<u8>)>,
        parts: &mut (u8, Vec<u8>),
    ) -> Result<(), Flaw> {
        if frame.kind != parts.0 {
            self.take_parts(parts)?;
        }
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
                let server = server.map(ServerId::from_index);
                let mut accounts = Vec::new();
                while !take.is_empty() {
                    accounts.push(take.u64()?);
                }
                let reservation = self.admission.quotas_mut().owe_again(&accounts);
                self.archive.replays_mut().0.add((key, url), kept, server, reservation);
            }
            checkpoint::RATING => self.admission.rating_mut().decode(frame.payload)?,
            checkpoint::GIVEN_UP => self.backlog.given_up_mut().restore_mark(frame.payload)?,
            checkpoint::SHELF => self.backlog.shelf_mut().restore_mark(frame.payload)?,
            RATES => {
                let again = self.backlog.again_mut();
                again.map_or(Ok(()), |again| again.restore_rates(frame.payload))?;
            }
            checkpoint::HELD => {
                let key = Fingerprint(take.u64()?);
                self.admission.seen_mut().offer(key, take.rest());
            }
            checkpoint::SCORING => self.restore_links(frame.payload)?,
            checkpoint::PAGES => self.admission.quotas_mut().decode(frame.payload)?,
            checkpoint::JOINED => self.admission.seed_redirects().decode(frame.payload)?,
            checkpoint::DOMAINS => {
                let budgets = self.backlog.restored_budgets(&self.settings);
                budgets.restore_domains(frame.payload)?;
            }
            checkpoint::CLUSTER | checkpoint::OUTBOX | checkpoint::AGAIN | checkpoint::BUDGETS => {
                parts.0 = frame.kind;
                parts.1.extend_from_slice(frame.payload);
            }
            checkpoint::SITE => sites.push((take.number()?, take.rest().to_vec())),
            _ => self.backlog.restore_frame(frame, self.turn.now())?,
        }
        Ok(())
    }

    /// Restores the side tables of servers (what is known of each), from the records of the
    /// checkpoint.
    fn restore_sites(&mut self, known: &[(usize, Vec<u8>)], was_clean: bool) -> Result<(), Flaw> {
        for index in 0..self.backlog.servers() {
            let id = ServerId::from_index(index);
            self.sites.extend_to(id);
            self.admission.add_server(self.backlog.origin(id).host());
            let server = self.backlog.server(id);
            let due = server.due;
            if server.has_answered() && !matches!(server.state(), ServerState::Retired(_)) {
                self.visits.note_answering(id);
            }
            if was_clean && due > self.turn.at() {
                self.sites.get_mut(id).set_rest(self.turn.at(), due, Rule::Restart);
            }
        }
        for (number, bytes) in known {
            if *number >= self.sites.len() {
                return Err(Flaw::Senseless);
            }
            let id = ServerId::from_index(*number);
            let site = self.sites.get_mut(id);
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

    /// Makes every server rest for the longest time that it may be owed. A Crawl-delay found after
    /// the checkpoint is lost, so a server without a known Crawl-delay rests for the longest one
    /// that the crawl obeys.
    fn rest_all_servers(&mut self, rebuilt: bool) {
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
        self.sites.resume(self.turn.at(), until);
        for index in 0..self.sites.len() {
            let id = ServerId::from_index(index);
            if obeys && self.sites.get(id).robots.status(self.turn.at()) != RobotsStatus::Known {
                self.presume_crawl_delay(id);
                self.backlog.snooze(id, until, self.turn.at());
            }
            let due = self.backlog.server(id).due;
            if self.sites.get(id).due() != due {
                self.sites.get_mut(id).set_rest(self.turn.at(), due, Rule::Restart);
            }
        }
    }

    /// Assumes the longest Crawl-delay for a server until its robots.txt is known. The earlier run
    /// was not stopped in order, so it may have found a Crawl-delay that the checkpoint lacks.
    pub(super) fn presume_crawl_delay(&mut self, id: ServerId) {
        let robots = self.settings.robots;
        if robots.obey && self.backlog.server(id).crawl_delay().is_none() {
            self.backlog.set_crawl_delay(id, Some(robots.crawl_delay_max), self.turn.at());
        }
    }

    /// Lists the replies that were archived since the checkpoint, to be read back.
    fn list_replays(&mut self, found: &Manifest) -> Result<(), Error> {
        let (admission, frontier) = (&mut self.admission, &self.backlog);
        let ((replays, store), mut key) = (self.archive.replays_mut(), Vec::new());
        let mut tell = |url: &str, kept, status| {
            if let Some(url) = UrlRef::from_canonical(url.as_bytes())
                // It is not known for which server this robots.txt was fetched (a redirect may have
                // led to it), so it is fetched again.
                && url.target() != ROBOTS_TXT
            {
                let own = admission.hash(url.as_str().as_bytes());
                let key = admission.key_of(url, &mut key);
                let is_page = !is_redirect(status);
                let reservation = is_page.then(|| admission.quotas_mut().owe(url)).flatten();
                replays.add((key, own), kept, frontier.find(url), reservation);
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
