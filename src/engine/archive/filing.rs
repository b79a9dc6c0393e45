//! Replies whose records are written by jobs, and what follows when they are written.
//!
//! With `store.threads` the archive's work on a reply (digests, compression, writing) is done on a
//! side thread. The reply waits here until then, with its bytes charged to the pool. All else
//! happens after it, as it does without the thread: the links of a page are followed, a robots.txt
//! is read, the line in the crawl log is written. If the disk is full, the replies wait for the end
//! of the pause.
//!
//! Laws: replies are archived and followed in the order in which they arrived; while one waits, no
//! checkpoint begins. A visit that needs the robots.txt that waits stays open.
//! Cost: one copy of the head and of the request; a job for all replies that wait, up to
//! [`JOB_BYTES`].

use super::LogFacts;
use crate::engine::Engine;
use crate::engine::backlog::{Item, Purpose};
use crate::engine::contract::{Action, ConnId, Job, WriteDone};
use crate::engine::ledger::Work;
use crate::engine::robots::RobotsReply;
use crate::engine::wire::{Fetch, Reply};
use crate::frontier::ServerId;
use crate::ground::stats::Stage;
use crate::http::response::Head;
use crate::store::{OwnCapture, Receipt};
use std::collections::{BTreeMap, VecDeque};
use std::mem;

/// The number of bytes of replies from which a job takes no further one. A job then takes a few
/// milliseconds, and the replies of small pages share the cost of handing it over. If as much waits
/// for the next job, nothing is read from sockets: the archive is what limits the crawl, and more
/// replies would only take memory that no cache holds.
const JOB_BYTES: usize = 1 << 20;

/// The cost of following a reply that is archived, in units of work (see `ledger`), beside that of
/// what follows.
const FOLLOW_UNITS: usize = 1 << 10;

/// A reply that is being archived.
#[derive(Debug)]
pub(in crate::engine) enum Filed {
    /// That of a page, or of a hop of a redirect chain.
    Page(Box<FiledPage>),
    /// That of a robots.txt, and its connection.
    Robots(Box<RobotsReply>, ConnId),
}

/// The reply of a page that is being archived.
#[derive(Debug)]
pub(in crate::engine) struct FiledPage {
    pub(in crate::engine) fetch: Fetch,
    pub(in crate::engine) facts: LogFacts,
    pub(in crate::engine) reply: Reply,
    pub(in crate::engine) head: Option<Head>,
}

impl Filed {
    fn reply(&mut self) -> &mut Reply {
        match self {
            Self::Page(page) => &mut page.reply,
            Self::Robots(answer, _) => &mut answer.reply,
        }
    }

    fn facts(&mut self) -> &mut LogFacts {
        match self {
            Self::Page(page) => &mut page.facts,
            Self::Robots(answer, _) => &mut answer.facts,
        }
    }

    /// Returns the connection whose visit waits for the reply, if any does.
    fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Page(_) => None,
            Self::Robots(_, conn) => Some(*conn),
        }
    }

    fn fetch(&self) -> &Fetch {
        match self {
            Self::Page(page) => &page.fetch,
            Self::Robots(answer, _) => &answer.fetch,
        }
    }
}

/// The replies that are being archived, in order of arrival.
#[derive(Debug, Default)]
pub(in crate::engine) struct Filing {
    replies: VecDeque<Filed>,
    /// The captures of the last of `replies`, which wait for a job.
    captures: VecDeque<OwnCapture>,
    /// The number of bytes of `captures`.
    bytes: usize,
    /// The number of the first of `replies` that are archived, and can be followed.
    archived: usize,
    /// For each server whose visit waits for a robots.txt, the number of such files in `replies`.
    robots: BTreeMap<ServerId, u32>,
    /// The URLs of replies that could not be archived before the crawl ended.
    unfiled: Vec<(ServerId, Item)>,
}

impl Filing {
    /// Returns whether no reply is being archived.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Returns the number of replies that are being archived.
    pub(in crate::engine) fn len(&self) -> usize {
        self.replies.len()
    }

    /// Returns whether replies are archived, and can be followed.
    pub(in crate::engine) fn has_archived(&self) -> bool {
        self.archived > 0
    }

    /// Returns whether enough replies for a job wait for it.
    pub(in crate::engine) fn has_enough(&self) -> bool {
        self.bytes >= JOB_BYTES
    }

    /// Returns the URLs of the replies, in order of arrival.
    pub(in crate::engine) fn urls(&self) -> impl Iterator<Item = &str> {
        self.replies.iter().map(|filed| &*filed.fetch().url)
    }

    /// Returns the URLs of replies that could not be archived before the crawl ended, with their
    /// servers. They are to be fetched again.
    pub(in crate::engine) fn unfiled(&self) -> &[(ServerId, Item)] {
        &self.unfiled
    }

    /// Returns whether a robots.txt that this server has sent is being archived.
    pub(in crate::engine) fn has_robots_from(&self, server: ServerId) -> bool {
        self.robots.contains_key(&server)
    }

    /// Takes the captures of the next job.
    fn next_captures(&mut self) -> Vec<OwnCapture> {
        let mut bytes = 0;
        let mut is_within = |capture: &OwnCapture| {
            let fits = bytes < JOB_BYTES;
            bytes += if fits { capture.bytes() } else { 0 };
            fits
        };
        let count = self.captures.iter().take_while(|capture| is_within(capture)).count();
        self.bytes -= bytes;
        self.captures.drain(..count).collect()
    }

    /// Takes back the captures of a job. Those that have receipts are archived; the others wait for
    /// the next job.
    fn take_back(&mut self, captures: Vec<OwnCapture>, receipts: Vec<Receipt>) {
        let mut captures = captures.into_iter();
        for (receipt, capture) in receipts.into_iter().zip(captures.by_ref()) {
            let filed = &mut self.replies[self.archived];
            filed.facts().receipt = Some(receipt);
            filed.reply().raw = capture.response;
            filed.reply().unframed = capture.unframed;
            self.archived += 1;
        }
        for capture in captures.rev() {
            self.bytes += capture.bytes();
            self.captures.push_front(capture);
        }
    }

    /// Takes out the first reply, if it is archived.
    fn next_archived(&mut self) -> Option<Filed> {
        self.archived = self.archived.checked_sub(1)?;
        let filed = self.replies.pop_front()?;
        if let Filed::Robots(answer, _) = &filed {
            self.release_robots(answer.server);
        }
        Some(filed)
    }

    fn release_robots(&mut self, server: ServerId) {
        let left = self.robots.get_mut(&server).expect("it was counted when it was added");
        *left -= 1;
        if *left == 0 {
            self.robots.remove(&server);
        }
    }
}

impl Engine {
    /// Adds a reply to those that are being archived. `capture` is to be its record.
    pub(in crate::engine) fn file_reply(&mut self, mut capture: OwnCapture, mut filed: Filed) {
        let reply = filed.reply();
        capture.response = mem::take(&mut reply.raw);
        capture.unframed = reply.unframed.take();
        if let Filed::Robots(answer, _) = &filed {
            *self.archive.filing.robots.entry(answer.server).or_default() += 1;
        }
        self.archive.filing.bytes += capture.bytes();
        self.archive.filing.captures.push_back(capture);
        self.archive.filing.replies.push_back(filed);
    }

    /// Follows replies that are archived, within the turn's budget, and hands out the next job that
    /// archives some.
    pub(in crate::engine) fn work_filing(&mut self) {
        if self.archive.filing.is_empty() {
            return;
        }
        while !self.turn.is_spent(Work::Filed)
            && let Some(filed) = self.archive.filing.next_archived()
        {
            self.turn.charge(Work::Filed, FOLLOW_UNITS);
            match filed {
                Filed::Page(page) => {
                    let FiledPage { fetch, facts, reply, head } = *page;
                    self.follow_reply(facts.server, fetch, facts, reply, head.as_ref());
                }
                Filed::Robots(answer, conn) => {
                    self.take_robots_reply(answer);
                    self.fill_if_idle(conn);
                }
            }
        }
        let own = &mut self.archive;
        if self.storage.is_usable() && !own.store.is_writing() && !own.filing.captures.is_empty() {
            let stage = self.turn.enter(Stage::Store, 0);
            let captures = own.filing.next_captures();
            let job = own.store.write_job(captures, self.storage.disk_ref());
            self.turn.act(Action::Work(Job::Write(job)));
            self.turn.back(stage);
        }
    }

    /// Takes the result of a job that archives replies.
    pub(in crate::engine) fn filing_worked(&mut self, done: WriteDone) {
        let (written, flushed) = self.archive.store.wrote(done, self.storage.disk());
        self.archive.filing.take_back(written.captures, written.receipts);
        self.checked(flushed);
        self.checked(written.result);
    }

    /// Ends the visits that wait for replies to be archived, because that may take long: the disk
    /// can't be used.
    pub(in crate::engine) fn end_held_visits(&mut self) {
        let conns: Vec<_> = self.archive.filing.replies.iter().filter_map(Filed::conn).collect();
        conns.into_iter().for_each(|conn| self.fill_if_idle(conn));
    }

    /// Returns whether the archiving of replies goes on: it doesn't while the disk can't be used.
    pub(in crate::engine) fn is_filing(&self) -> bool {
        let Self { archive, storage, .. } = self;
        let waits = !archive.filing.captures.is_empty() && storage.is_usable();
        waits || archive.store.is_writing() || archive.filing.has_archived()
    }

    /// Puts back the URLs of replies that can't be archived since the crawl ends: the last
    /// checkpoint saves them as waiting. No job may be in progress.
    pub(in crate::engine) fn put_back_filing(&mut self) {
        for mut filed in mem::take(&mut self.archive.filing.replies) {
            let capture = self.archive.filing.captures.pop_front().expect("none is archived");
            let (server, outcome) = (filed.facts().server, filed.facts().outcome);
            self.counts.uncount(outcome);
            let mut reply = mem::take(filed.reply());
            (reply.raw, reply.unframed) = (capture.response, capture.unframed);
            self.wire.release(reply);
            let item = &filed.fetch().item;
            // A chain begins again at its first URL, and the robots.txt of a server is requested
            // again anyway.
            let is_saved = match item.purpose {
                Purpose::Page | Purpose::Again => true,
                Purpose::Robots(of, redirects) => (of, redirects) != (server, 0),
                Purpose::Hop(_) => false,
            };
            if is_saved {
                self.archive.filing.unfiled.push((server, item.clone()));
            }
        }
        self.archive.filing.robots.clear();
        self.archive.filing.bytes = 0;
    }
}
