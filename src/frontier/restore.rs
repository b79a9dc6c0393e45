//! A frontier made again from what [`super::snapshot`] wrote.
//!
//! Servers get the numbers they had, in whatever order their frames come. When all are in, those
//! with URLs stand in line in the order in which they did, or sleep on.
//!
//! Laws: bytes that make no sense are a [`Flaw`], never a panic, and take no more memory than they
//! have themselves; no wait is longer than what was left of it when it was written, however the
//! calendar has jumped, but after an unclean stop none is shorter than the longest rest a visit
//! can come to (decision 31). Cost: a look-up a server, and one sort of those with URLs.

use super::items::Maker;
use super::log;
use super::look::{Bounds, Look};
use super::names::Met;
use super::place::Place;
use super::policy::Estimates;
use super::queue::{Errand, Weight};
use super::server::{Retirement, Server, ServerId, ServerState};
use super::snapshot::{CHUNKS, MORE, SERVER, TAIL};
use super::unpacked::Unpacked;
use super::{Frontier, Settings};
use crate::codec::{Short, Take};
use crate::disk::Disk;
use crate::frame::{self, Damage, Flaw, Frame};
use crate::map::Map;
use crate::table::Table;
use crate::time::{Instant, Now, UnixTime};
use crate::url::UrlRef;
use std::time::Duration;

/// Where the state of stations is told; what is wrong with ours is told of that file.
const STATE_NAME: &str = "state/checkpoint";

/// More than any disk holds.
const URLS_MAX: usize = 1 << 40;

/// What is still missing.
#[derive(Debug)]
pub(super) struct Restoring {
    /// Servers there were.
    servers: usize,
    /// Those that came before others of lower number.
    early: Map<ServerId, Server>,
    /// What of servers is to come.
    missing: Map<ServerId, Missing>,
    /// Servers that something waits for.
    waits: Vec<(ServerId, Wait, Wait)>,
    /// The highest number of a server whose robots.txt a URL is.
    errand_max: Option<ServerId>,
    /// URLs on disk.
    urls_in_chunks: usize,
}

/// What of a queue is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Missing {
    urls: usize,
    chunks: usize,
    in_tail: usize,
}

/// How long a server or a host was still to wait.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    left_us: u64,
    until: UnixTime,
}

impl Frontier {
    /// A frontier to be filled by [`Frontier::restore_frame`], from the state of its mark.
    ///
    /// # Errors
    /// A state that makes no sense, a segment that is too short, or the disk's.
    pub fn restore(
        settings: Settings,
        state: &[u8],
        disk: &mut dyn Disk,
    ) -> Result<Self, frame::Error> {
        let damage = |flaw| Damage { name: STATE_NAME.to_owned(), offset: 0, flaw };
        let state = State::read(state).map_err(|Short| damage(Flaw::Senseless))?;
        let mut frontier = Self::new(settings);
        if let Some(spill) = &mut frontier.spill {
            let names = disk.list(log::FOLDER)?;
            names.iter().filter_map(|name| log::number_of(name)).for_each(|number| {
                spill.log.skip_to(number);
            });
        }
        for (number, bytes) in state.segments {
            let name = log::name_of(number);
            let len = disk.len(&name)?.unwrap_or(0);
            if len < bytes {
                return Err(Damage { name, offset: len, flaw: Flaw::Cut }.into());
            }
            let log = frontier.spill.as_mut().map(|spill| &mut spill.log);
            if !log.is_some_and(|log| log.restore(number, bytes)) {
                return Err(damage(Flaw::Senseless).into());
            }
        }
        frontier.arrivals = state.arrivals;
        frontier.restoring = Some(Box::new(Restoring {
            servers: state.servers as usize,
            early: Map::default(),
            missing: Map::default(),
            waits: Vec::new(),
            errand_max: None,
            urls_in_chunks: 0,
        }));
        Ok(frontier)
    }

    /// Takes one frame in; returns whose it is. Between a server's first frame and
    /// [`Frontier::restored`] nothing but [`Frontier::server`] may be asked of it.
    ///
    /// # Errors
    /// What makes no sense. The frontier is of no use then.
    pub fn restore_frame(&mut self, frame: &Frame<'_>) -> Result<ServerId, Flaw> {
        let mut take = Take::new(frame.payload);
        let id = ServerId(take.number().map_err(senseless)?);
        match frame.kind {
            SERVER => self.restore_server(id, &mut take)?,
            MORE => self.restore_urls(id, false, take.rest())?,
            CHUNKS => self.restore_chunks(id, &mut take)?,
            TAIL => self.restore_urls(id, true, take.rest())?,
            _ => return Err(Flaw::Senseless),
        }
        Ok(id)
    }

    /// All frames are in: servers stand in line or sleep. If the crawl was not stopped in order
    /// (`was_clean`), every server waits its full rest first, and so does every server that comes
    /// to be known until then: it may have been visited after the snapshot.
    ///
    /// # Errors
    /// What is missing.
    pub fn restored(&mut self, was_clean: bool, now: Now) -> Result<(), Flaw> {
        let mut restoring = self.restoring.take().expect("a frontier is being restored");
        let servers = self.servers.len();
        let is_whole = servers == restoring.servers
            && restoring.missing.is_empty()
            && restoring.errand_max.is_none_or(|id| id.index() < servers);
        if !is_whole {
            return Err(Flaw::Cut);
        }
        let mut order = self.order(&restoring);
        for (id, own, host) in std::mem::take(&mut restoring.waits) {
            self.wait(id, own.end(now), host.end(now));
        }
        if !was_clean {
            let full = |delay| now.at + self.settings.full_rest(delay);
            self.quiet_until = full(None);
            let rests: Vec<Instant> =
                self.servers.iter().map(|server| full(server.crawl_delay())).collect();
            for (index, until) in rests.into_iter().enumerate() {
                self.wait(ServerId::from_index(index), until, until);
            }
        }
        self.urls = self.urls.saturating_add(restoring.urls_in_chunks);
        self.workbench.groups.begin_again(now.at);
        order.sort_unstable();
        for (_, id) in order {
            let server = &mut self.servers[id.index()];
            if server.due > now.at {
                self.workbench.sleep(server, id);
            } else {
                self.workbench.admit(server, id, &self.settings);
            }
        }
        self.take_stock();
        Ok(())
    }

    /// Servers that come to be known from here on are not visited before this: they may have been
    /// visited by a run that was not stopped in order.
    pub fn keep_new_quiet(&mut self, until: Instant) {
        self.quiet_until = self.quiet_until.max(until);
    }

    /// Servers with URLs, by what their order is to be made of: first those that stood in line,
    /// as they stood, then the sleepers, as they would have woken.
    fn order(&self, restoring: &Restoring) -> Vec<((bool, u64), ServerId)> {
        let slept = |(id, own, _): &(ServerId, Wait, Wait)| {
            (own.left_us > 0).then_some((*id, own.until.as_micros()))
        };
        let slept: Map<ServerId, u64> = restoring.waits.iter().filter_map(slept).collect();
        let place = |(index, server): (usize, &Server)| {
            let id = ServerId::from_index(index);
            let waits = server.state == ServerState::Idle && !server.queue.is_empty();
            let until = slept.get(&id);
            let key = until.map_or((false, server.arrival), |until| (true, *until));
            waits.then_some((key, id))
        };
        self.servers.iter().enumerate().filter_map(place).collect()
    }

    /// A server and its host are not visited before.
    fn wait(&mut self, id: ServerId, own: Instant, host: Instant) {
        let server = &mut self.servers[id.index()];
        server.due = server.due.max(own);
        self.workbench.set_host_clock(server, host);
    }

    fn restore_server(&mut self, id: ServerId, take: &mut Take<'_>) -> Result<(), Flaw> {
        let restoring = self.restoring.as_ref().expect("a frontier is being restored");
        let is_new = id.index() >= self.servers.len() && restoring.early(id).is_none();
        if !is_new || id.index() >= restoring.servers {
            return Err(Flaw::Senseless);
        }
        let origin = take.str().map_err(senseless)?;
        let text = format!("{origin}/");
        let url = UrlRef::from_canonical(text.as_bytes()).ok_or(Flaw::Senseless)?;
        let met = self.met(url);
        if url.origin() != origin || matches!(met, Met::Known(_)) {
            return Err(Flaw::Senseless);
        }
        let mut server = self.new_server(url, id, met);
        let mut restoring = self.restoring.take().expect("as above");
        let missing = restoring.record(id, &mut server, take).map_err(senseless)?;
        server.retarget(&self.settings);
        if let Some(spill) = &mut self.spill {
            spill.weigh(Weight::default(), server.queue.weight());
        }
        restoring.expect(id, missing);
        restoring.early.insert(id, server);
        while let Some(server) = restoring.early.remove(&ServerId::from_index(self.servers.len())) {
            self.servers.push(server);
            self.workbench.meet();
        }
        self.restoring = Some(restoring);
        if missing.urls > 0 { self.restore_urls(id, false, take.rest()) } else { finished(take) }
    }

    /// URLs of a queue: in its order, or in the tail.
    fn restore_urls(&mut self, id: ServerId, is_tail: bool, bytes: &[u8]) -> Result<(), Flaw> {
        let restoring = self.restoring.as_mut().expect("a frontier is being restored");
        let mut missing = restoring.missing.remove(&id).ok_or(Flaw::Senseless)?;
        let server = found(id, &mut self.servers, Some(restoring)).ok_or(Flaw::Senseless)?;
        let before = server.queue.weight();
        let (mut urls, mut maker) = (Unpacked::default(), Maker::default());
        let mut errand_max = None;
        let origin_bytes = self.names.get(server.name).as_str().len();
        // Servers that a robots.txt is asked for may come to be known later.
        let (arrivals, any) = (self.arrivals, usize::MAX);
        let bounds = Bounds { origin_bytes, arrivals, servers: any, texts: any };
        let mut look = Look::new(bytes, bounds);
        while !look.is_over() {
            look.admit_into(&mut urls).map_err(senseless)?;
            let url = urls.last().expect("it was taken");
            let left = if is_tail { &mut missing.in_tail } else { &mut missing.urls };
            *left = left.checked_sub(1).ok_or(Flaw::Senseless)?;
            if url.arrival > self.arrivals {
                return Err(Flaw::Senseless);
            }
            if let Errand::Robots(of, _) = url.errand {
                errand_max = errand_max.max(Some(of));
            }
            let blocks = self.spill.as_mut().map(|spill| &mut spill.blocks);
            match blocks {
                Some(blocks) if is_tail => {
                    let by_quality = !server.queue.is_by_arrival();
                    server.queue.cold_or_new().put_tail(url, by_quality, blocks);
                }
                None if is_tail => return Err(Flaw::Senseless),
                blocks => server.queue.restore(maker.make(&url), blocks),
            }
            self.urls += 1;
        }
        if let Some(spill) = &mut self.spill {
            if spill.is_tight() || server.queue.is_parted() {
                server.queue.restore_packed(&mut spill.blocks);
            }
            spill.weigh(before, server.queue.weight());
        }
        restoring.errand_max = restoring.errand_max.max(errand_max);
        restoring.expect(id, missing);
        Ok(())
    }

    fn restore_chunks(&mut self, id: ServerId, take: &mut Take<'_>) -> Result<(), Flaw> {
        let restoring = self.restoring.as_mut().expect("a frontier is being restored");
        let mut missing = restoring.missing.remove(&id).ok_or(Flaw::Senseless)?;
        let server = found(id, &mut self.servers, Some(restoring)).ok_or(Flaw::Senseless)?;
        let before = server.queue.weight();
        let cold = server.queue.cold_or_new();
        let spill = self.spill.as_mut().ok_or(Flaw::Senseless)?;
        let mut places = Vec::with_capacity(take.rest().len() / size_of::<u64>());
        while !take.is_empty() {
            let place = Place::from_word(take.u64().map_err(senseless)?);
            missing.chunks = missing.chunks.checked_sub(1).ok_or(Flaw::Senseless)?;
            if !spill.log.retain(place) {
                return Err(Flaw::Senseless);
            }
            places.push(place);
        }
        if !cold.restore(&places, &mut spill.blocks) {
            return Err(Flaw::Senseless);
        }
        spill.weigh(before, server.queue.weight());
        restoring.expect(id, missing);
        Ok(())
    }
}

/// What is not a server's.
struct State {
    servers: u32,
    arrivals: u64,
    segments: Vec<(u32, u64)>,
}

impl State {
    fn read(bytes: &[u8]) -> Result<Self, Short> {
        let mut take = Take::new(bytes);
        let (servers, arrivals) = (take.number()?, take.varint()?);
        let mut segments = Vec::new();
        for _ in 0..take.varint()? {
            segments.push((take.number()?, take.varint()?));
        }
        let state = Self { servers, arrivals, segments };
        if take.is_empty() { Ok(state) } else { Err(Short) }
    }
}

impl Restoring {
    /// A server that came before others of lower number.
    pub(super) fn early(&self, id: ServerId) -> Option<&Server> {
        self.early.get(&id)
    }

    fn expect(&mut self, id: ServerId, missing: Missing) {
        if missing != Missing::default() {
            self.missing.insert(id, missing);
        }
    }

    /// Reads what is kept of a server up to its URLs; returns how many are to come.
    fn record(
        &mut self,
        id: ServerId,
        server: &mut Server,
        take: &mut Take<'_>,
    ) -> Result<Missing, Short> {
        if let Some(place) = take.u8()?.checked_sub(1) {
            let why = Retirement::ALL.get(usize::from(place)).ok_or(Short)?;
            server.state = ServerState::Retired(*why);
        }
        server.arrival = take.varint()?;
        server.visits = take.number()?;
        server.set_crawl_delay(take.varint()?.checked_sub(1).map(Duration::from_micros));
        let measured = [take.number()?, take.number()?, take.number()?];
        server.estimates = Estimates::from_measured(measured);
        let (own, host) = (Wait::take(take)?, Wait::take(take)?);
        if own.left_us > 0 || host.left_us > 0 {
            self.waits.push((id, own, host));
        }
        let (urls, chunks) = (take.number()?, take.number()?);
        let (in_chunks, in_tail) = (take.number()?, take.number()?);
        if chunks > 0 {
            if !server.queue.cold_or_new().restore_urls(in_chunks) {
                return Err(Short);
            }
            self.urls_in_chunks = self.urls_in_chunks.saturating_add(in_chunks);
        }
        if chunks == 0 && in_chunks > 0 || in_chunks > URLS_MAX || in_tail > URLS_MAX {
            return Err(Short);
        }
        Ok(Missing { urls, chunks, in_tail })
    }
}

impl Wait {
    fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let left_us = take.varint()?;
        let until = if left_us > 0 { take.varint()? } else { 0 };
        Ok(Self { left_us, until: UnixTime::from_micros(until) })
    }

    /// When it is over.
    fn end(self, now: Now) -> Instant {
        match self.left_us {
            0 => Instant::ZERO,
            left_us => now.instant_of(self.until, Duration::from_micros(left_us)),
        }
    }
}

/// A server that has come, early or not.
pub(super) fn found<'a>(
    id: ServerId,
    servers: &'a mut Table<Server>,
    restoring: Option<&'a mut Restoring>,
) -> Option<&'a mut Server> {
    match servers.get_mut(id.index()) {
        Some(server) => Some(server),
        None => restoring?.early.get_mut(&id),
    }
}

fn finished(take: &Take<'_>) -> Result<(), Flaw> {
    if take.is_empty() { Ok(()) } else { Err(Flaw::Senseless) }
}

fn senseless(Short: Short) -> Flaw {
    Flaw::Senseless
}
