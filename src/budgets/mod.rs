//! Budgets: how many URLs of a registrable domain are queued in a pass of the crawl.
//!
//! ```text
//! sketch   counts distinct domains in 32 bytes
//! domains  which domains link to a domain, and the budget that follows from its rank (STAR)
//! queues   URLs over their domain's budget, on disk
//! ```
//!
//! A *pass* is a round of the crawl in which each domain may have URLs up to its budget. A new URL
//! within the budget is *admitted*: the caller queues it at its server. One over it waits for the
//! pass in which it will be within (BEAST): the next N passes have a queue each, and what is over
//! those goes to the *last* queue. A pass ends when the crawl asks for more: the URLs of the next
//! pass are admitted then, in order. After N passes the last queue is *split*: N doubles, and its
//! URLs are distributed among the queues, some of them to the end of a new last queue. So a URL is
//! read and written again a number of times that grows with the logarithm of the passes it waits,
//! until N has reached [`WIDTH_MAX`]; then once in as many passes.
//!
//! ```text
//! state  pass, end, width varint | the ranking | queues varint; for each the pass varint and
//!        the queue | the last queue | the queue that is being split
//! ```
//!
//! The queues share a log on disk; the last one and the one that is being split have another, whose
//! segments live longer.
//!
//! Laws (held to a naive model): each URL is admitted once. Those of a domain are admitted in the
//! order in which they were offered, and no more in a pass than the largest budget it has had.
//! Memory is bounded, but for 12 bytes a frame on disk and 74 to 149 a domain (see `domains`).
//! Source: Lee, Leonard, Wang, Loguinov: IRLbot (WWW 2008), section 7 (BEAST).

pub mod domains;
pub mod queues;
pub mod sketch;
#[cfg(test)]
mod tests;

use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::url::{Fingerprinter, domain};
use domains::Domains;
use queues::{Log, Queue};
use std::collections::BTreeMap;

/// The settings of budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The budget of the best-linked domain, in URLs a pass.
    pub max: u32,
    /// The budget of domains past the best-linked ones.
    pub min: u32,
    /// The number of best-linked domains over which budgets fall from `max` to `min`.
    pub top: u32,
}

impl Settings {
    /// Budgets that are switched off: those of a crawl that had some, and whose URLs still wait.
    pub const UNLIMITED: Self = Self { max: u32::MAX, min: u32::MAX, top: 0 };

    /// Returns the budget of the domain of this rank; the best-linked one has rank 1.
    pub fn budget(self, rank: u32) -> u32 {
        if rank >= self.top {
            return if rank == self.top && rank == 1 { self.max } else { self.min };
        }
        let above = u64::from(self.max.saturating_sub(self.min)) * u64::from(self.top - rank);
        self.min.saturating_add((above / u64::from(self.top - 1)) as u32)
    }
}

/// The folders of the segments, relative to the job directory: of the queues of the next passes,
/// and of what is behind them.
pub const FOLDERS: [&str; 2] = ["state/budgets", "state/budgets-last"];
/// The number of queues at the beginning.
const WIDTH: u32 = 4;
/// The maximum number of queues.
pub const WIDTH_MAX: u32 = if cfg!(test) { 64 } else { 1_024 };
/// The share of all URLs that may wait which those of one domain may take, as a divisor.
const SHARE: u64 = 10;

/// The maximum number of links of a page to other hosts that are counted.
pub const LINKS_MAX: usize = 500;

/// What is known of domains, and the URLs that wait for a later pass.
#[derive(Debug)]
pub struct Budgets {
    settings: Settings,
    hash: Fingerprinter,
    domains: Domains,
    pass: u32,
    /// The number of passes after the present one that have a queue.
    width: u32,
    /// The pass in which the last queue is split.
    end: u32,
    /// By pass, the URLs that wait for it. Those of the present pass are being admitted.
    queues: BTreeMap<u32, Queue>,
    /// The URLs that wait for passes without a queue.
    last: Queue,
    /// What was the last queue, as far as it isn't distributed yet.
    split: Queue,
    /// The number of URLs in all queues.
    waiting: u64,
    log: Log,
    /// The log of `last` and `split`.
    last_log: Log,
}

/// What became of a URL that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is within the budget of its domain: the caller queues it.
    Admitted,
    /// It is kept for a later pass.
    Waits,
    /// It would have to wait, and too many URLs do, or too many of its domain.
    Full,
}

/// Where a URL goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Pass(u32),
    Last,
}

impl Budgets {
    /// Creates the budgets of a crawl that knows no domain and will know at most `domains_max`.
    /// Files carry the identifier of the crawl; if there is none, everything stays in memory.
    pub fn new(
        settings: Settings,
        domains_max: usize,
        hash: Fingerprinter,
        crawl: Option<u64>,
    ) -> Self {
        Self {
            settings,
            hash,
            domains: Domains::new(domains_max),
            pass: 0,
            width: WIDTH,
            end: WIDTH,
            queues: BTreeMap::new(),
            last: Queue::default(),
            split: Queue::default(),
            waiting: 0,
            log: Log::new(FOLDERS[0], crawl),
            last_log: Log::new(FOLDERS[1], crawl),
        }
    }

    /// Returns whether budgets are switched off: see [`Settings::UNLIMITED`].
    pub fn is_unlimited(&self) -> bool {
        self.settings == Settings::UNLIMITED
    }

    /// Returns the number of the present pass, from 0 on.
    pub fn pass(&self) -> u32 {
        self.pass
    }

    /// Returns the number of URLs that wait for a later pass, or to be admitted.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns the number of domains that are known.
    pub fn domains(&self) -> usize {
        self.domains.count()
    }

    /// Returns the length of the files of URLs that wait, in bytes.
    pub fn bytes(&self) -> u64 {
        self.log.bytes() + self.last_log.bytes()
    }

    /// Returns the bytes that were read back from disk since the last call.
    pub fn take_read_bytes(&mut self) -> usize {
        self.log.take_read_bytes() + self.last_log.take_read_bytes()
    }

    /// Returns the estimated number of domains that link to a host's domain, and its budget. If the
    /// table is full, unknown domains have those of a shared record. `None` if there is no record.
    pub fn of_host(&self, host: &str) -> Option<(u32, u32)> {
        let domain = self.domains.get(self.name_of(host))?;
        Some((domain.degree(), self.domains.budget(domain, self.settings)))
    }

    /// Returns [`Self::of_host`] if URLs under that record wait; otherwise `None`.
    pub fn held(&self, host: &str) -> Option<(u32, u32)> {
        let domain = self.domains.get(self.name_of(host))?;
        (domain.waiting > 0).then(|| self.of_host(host)).flatten()
    }

    fn name_of(&self, host: &str) -> u64 {
        self.hash.of(domain::registrable(host).as_bytes()).0
    }

    /// Counts the links of a page on host `from` to other hosts: the first [`LINKS_MAX`] `targets`.
    /// Each is a vote of the domain that was bought (`github.io` for `a.github.io`); links within a
    /// registrable domain are no votes. Returns the number of links, votes or not.
    pub fn links<'a>(&mut self, from: &str, targets: impl Iterator<Item = &'a str>) -> usize {
        let (own, mut counted) = (self.hash.of(domain::bought(from).as_bytes()).0, 0);
        self.domains.read(own);
        let itself = self.name_of(from);
        for host in targets.filter(|host| *host != from).take(LINKS_MAX) {
            let name = self.name_of(host);
            if name != itself {
                self.domains.link(own, name);
            }
            counted += 1;
        }
        counted
    }

    /// Offers a new URL. At most `waiting_max` URLs of all domains may wait, and a tenth of that of
    /// one domain. A URL that waits is kept as the bytes that `write` appends.
    pub fn offer(
        &mut self,
        host: &str,
        waiting_max: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Offered {
        if self.domains.is_stale() {
            self.domains.rank();
        }
        let name = self.name_of(host);
        let (name, known) = self.domains.get_mut(name);
        let known = *known;
        // Behind what waits already.
        let place = if known.last > 0 { Place::Last } else { self.place(name) };
        if place == Place::Pass(self.pass) && !self.is_admitting() {
            return Offered::Admitted;
        }
        if self.waiting >= waiting_max || u64::from(known.waiting) >= waiting_max.div_ceil(SHARE) {
            *self.domains.get_mut(name).1 = known;
            return Offered::Full;
        }
        let domain = self.domains.get_mut(name).1;
        domain.waiting += 1;
        domain.last += u32::from(place == Place::Last);
        let (queue, log) = match place {
            Place::Pass(pass) => (self.queues.entry(pass).or_default(), &mut self.log),
            Place::Last if self.split.is_empty() => (&mut self.last, &mut self.last_log),
            Place::Last => (&mut self.split, &mut self.last_log),
        };
        let mut bytes = Vec::new();
        write(&mut bytes);
        queue.put(name, &bytes, log);
        self.waiting += 1;
        Offered::Waits
    }

    /// Returns the pass of a domain's next URL, which it counts.
    fn place(&mut self, name: u64) -> Place {
        let mut known = *self.domains.get_mut(name).1;
        if known.pass < self.pass {
            (known.pass, known.used) = (self.pass, 0);
        }
        let budget = self.domains.budget(&known, self.settings);
        let is_full = known.used >= budget;
        if is_full && known.pass >= self.pass.saturating_add(self.width) {
            return Place::Last;
        }
        if is_full {
            (known.pass, known.used) = (known.pass + 1, 0);
        }
        known.used += 1;
        *self.domains.get_mut(name).1 = known;
        Place::Pass(known.pass)
    }

    /// Returns whether URLs of the present pass wait to be admitted.
    pub fn is_admitting(&self) -> bool {
        self.queues.contains_key(&self.pass)
    }

    /// Returns whether there is something to do that needs no new pass: URLs to admit, or to
    /// distribute.
    pub fn has_work(&self) -> bool {
        self.is_admitting() || !self.split.is_empty()
    }

    /// Begins the next pass for which a URL waits, or the one that splits the last queue. Returns
    /// `false` if URLs of this pass wait to be admitted, or there is no such pass.
    pub fn advance(&mut self) -> bool {
        if self.is_admitting() {
            return false;
        }
        let next = self.queues.first_key_value().map(|(pass, _)| *pass);
        let splits = self.split.is_empty()
            && !self.last.is_empty()
            && next.is_none_or(|next| next >= self.end);
        let next = if splits { Some(self.end.max(self.pass.saturating_add(1))) } else { next };
        let Some(next) = next.filter(|next| *next > self.pass) else { return false };
        self.pass = next;
        self.domains.rank();
        if splits {
            self.width = (2 * self.width).min(WIDTH_MAX);
            self.end = self.pass.saturating_add(self.width);
            self.split = std::mem::take(&mut self.last);
            self.log.set_queues(self.width as usize);
        }
        true
    }

    /// Distributes a URL of the queue that is being split. Returns about how many bytes were moved;
    /// `None` if none is.
    ///
    /// # Errors
    /// The disk reports an error, or a file is damaged. Nothing is lost.
    pub fn distribute(&mut self, disk: &mut dyn Disk) -> Result<Option<usize>, frame::Error> {
        let mut bytes = Vec::new();
        let Some(name) = self.split.take(&mut bytes, &mut self.last_log, disk)? else {
            return Ok(None);
        };
        // Behind those of the domain that this split has put into the new last queue: since then a
        // pass may have begun.
        let is_behind = self.domains.get_mut(name).1.split == self.end;
        let place = if is_behind { Place::Last } else { self.place(name) };
        let (_, domain) = self.domains.get_mut(name);
        match place {
            Place::Pass(pass) => {
                domain.last = domain.last.saturating_sub(1);
                self.queues.entry(pass).or_default().put(name, &bytes, &mut self.log);
            }
            Place::Last => {
                domain.split = self.end;
                self.last.put(name, &bytes, &mut self.last_log);
            }
        }
        Ok(Some(bytes.len()))
    }

    /// Takes the next URL of the present pass, which is admitted: appends its bytes to `out`.
    /// Returns `false` if there is none.
    ///
    /// # Errors
    /// The disk reports an error, or a frame is damaged: nothing is lost. Or the number of entries
    /// in the checkpoint is wrong: those in no frame are lost.
    pub fn admit(&mut self, out: &mut Vec<u8>, disk: &mut dyn Disk) -> Result<bool, frame::Error> {
        let Some(queue) = self.queues.get_mut(&self.pass) else { return Ok(false) };
        let name = queue.take(out, &mut self.log, disk)?;
        if queue.is_empty() {
            self.queues.remove(&self.pass);
        }
        if let Some(name) = name {
            self.waiting -= 1;
            let domain = self.domains.get_mut(name).1;
            domain.waiting = domain.waiting.saturating_sub(1);
        }
        Ok(name.is_some())
    }
}

/// What a checkpoint keeps.
impl Budgets {
    /// Writes buffered URLs to the disk: all of them, or only what is enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call may be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.log.write(all, disk)?;
        self.last_log.write(all, disk)
    }

    /// Returns what a checkpoint must keep, but for the domains.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        let mut state = Vec::new();
        [self.pass, self.end, self.width].iter().for_each(|it| state.put_varint(u64::from(*it)));
        self.domains.encode_ranks(&mut state);
        state.put_varint(self.queues.len() as u64);
        for (pass, queue) in &self.queues {
            state.put_varint(u64::from(*pass));
            queue.encode(&mut state);
        }
        [&self.last, &self.split].iter().for_each(|queue| queue.encode(&mut state));
        let mut files = self.log.mark(disk)?;
        files.extend(self.last_log.mark(disk)?);
        Ok(Mark { state, files })
    }

    /// Encodes the domains in pieces for a checkpoint, and calls `push` with each.
    pub fn encode_domains(&self, push: &mut dyn FnMut(&[u8])) {
        self.domains.encode(push);
    }

    /// Called when the checkpoint with the last [`Self::mark`] is durable. Returns the names of
    /// files that are no longer needed.
    pub fn on_durable(&mut self) -> Vec<String> {
        let mut names = self.log.on_durable();
        names.extend(self.last_log.on_durable());
        names
    }

    /// Restores the files that the checkpoint of an earlier run names, with their valid lengths.
    ///
    /// # Errors
    /// A file is shorter than that, or the disk reports an error.
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.log.restore_files(files, disk)?;
        self.last_log.restore_files(files, disk)
    }

    /// Restores the state that [`Self::mark`] returned. Call [`Self::restore_files`] first.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn restore_mark(&mut self, state: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(state);
        (self.pass, self.end, self.width) = (take.number()?, take.number()?, take.number()?);
        if !(WIDTH..=WIDTH_MAX).contains(&self.width) {
            return Err(Flaw::Senseless);
        }
        self.domains.decode_ranks(&mut take)?;
        self.log.set_queues(self.width as usize);
        for _ in 0..take.varint()? {
            let pass = take.number()?;
            let queue = Queue::decode(&mut take, &mut self.log)?;
            if pass < self.pass || queue.is_empty() {
                return Err(Flaw::Senseless);
            }
            self.queues.insert(pass, queue);
        }
        self.last = Queue::decode(&mut take, &mut self.last_log)?;
        self.split = Queue::decode(&mut take, &mut self.last_log)?;
        let queues = self.queues.values().chain([&self.last, &self.split]);
        self.waiting = queues.map(Queue::len).sum();
        Ok(())
    }

    /// Restores a piece that [`Self::encode_domains`] wrote.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn restore_domains(&mut self, piece: &[u8]) -> Result<(), Flaw> {
        self.domains.decode(piece)
    }
}
