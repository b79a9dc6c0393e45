//! The nodes' progress: this one's, which it writes three times a lease, and that of the others.
//!
//! Limits of the crawl (`limits.pages_max`, `limits.bytes_max`) are those of all nodes together. A
//! node adds what the others have said last to its own count. So the sum may exceed a limit by what
//! the others fetch in a third of a lease.

use crate::cluster::member::OTHER_WRITES;
use crate::cluster::queue::{Entry, Key, Name, Revision, Write, WriteFailure, WriteId};
use crate::cluster::report::Report;
use crate::engine::Engine;
use crate::ground::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause before a node without a session looks again whether it may report.
const WITHOUT_SESSION: Duration = Duration::from_secs(1);

/// The progress of all nodes.
#[derive(Debug)]
pub(super) struct Reports {
    name: Name,
    /// How often a report is written.
    period: Duration,
    /// What the other nodes have said last; those that are gone, too.
    others: BTreeMap<Name, Report>,
    /// The last known revision of the own entry.
    revision: Option<Revision>,
    /// The write that has no answer yet.
    pending: Option<WriteId>,
    /// When the next report is written.
    due: Instant,
    /// The number of writes so far.
    writes: u64,
}

impl Reports {
    pub(super) fn new(name: Name, period: Duration) -> Self {
        Self {
            name,
            period,
            others: BTreeMap::new(),
            revision: None,
            pending: None,
            due: Instant::ZERO,
            writes: 0,
        }
    }

    /// Notes an entry with a report. Returns whether it makes sense; otherwise the last one counts.
    pub(super) fn see(&mut self, name: &Name, entry: &Entry) -> bool {
        let report = Report::decode(&entry.value).ok();
        let makes_sense = report.is_some();
        if *name == self.name {
            self.revision = self.revision.max(Some(entry.revision));
        } else if let Some(report) = report {
            self.others.insert(name.clone(), report);
        }
        makes_sense
    }

    /// Takes the answer to a write. If the entry has changed, it will be seen.
    pub(super) fn wrote(&mut self, id: WriteId, result: Result<Revision, WriteFailure>) {
        if self.pending.take_if(|pending| *pending == id).is_some() {
            self.revision = self.revision.max(result.ok());
        }
    }

    /// Returns the name of this node.
    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// Returns when a report is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    fn write(&mut self, report: &Report, now: Instant) -> Write {
        self.writes += 1;
        let id = WriteId(self.writes << OTHER_WRITES.1 | OTHER_WRITES.0);
        (self.pending, self.due) = (Some(id), now + self.period);
        let (key, expected) = (Key::Report(self.name.clone()), self.revision);
        Write { id, key, expected, value: report.encode() }
    }
}

impl Engine {
    /// Returns the write of this node's report, if one is due.
    pub(super) fn next_report(&mut self) -> Option<Write> {
        let now = self.turn.at();
        let cluster = self.cluster.as_mut()?;
        if now < cluster.heard.reports.due {
            return None;
        }
        let member = &cluster.member;
        let is_of_other = |partition| member.is_of_other(partition);
        self.counts.pages_lost += cluster.settled.take_lost(is_of_other);
        if now >= member.asks_until() {
            // Another process may have this node's name.
            cluster.heard.reports.due = now + WITHOUT_SESSION;
            return None;
        }
        let published = cluster.outbox.counts();
        let report = Report {
            pages: self.counts.pages,
            bytes: self.counts.received_bytes,
            urls: self.backlog.urls() as u64,
            requests: self.counts.requests,
            lost: self.counts.pages_lost,
            unsent: published.memory_bytes + published.disk_bytes,
            unread: cluster.logs.unread_messages(),
            published: (published.messages, published.message_bytes),
            read: cluster.logs.positions().collect(),
        };
        Some(cluster.heard.reports.write(&report, now))
    }

    /// Returns the pages and the bytes that the other nodes have fetched, as they have said.
    pub(in crate::engine) fn fetched_by_others(&self) -> (u64, u64) {
        let reports = self.cluster.as_deref().map(|cluster| &cluster.heard.reports.others);
        let reports = reports.into_iter().flat_map(BTreeMap::values);
        reports.fold((0, 0), |(pages, bytes), report| {
            (pages.saturating_add(report.pages), bytes.saturating_add(report.bytes))
        })
    }
}
