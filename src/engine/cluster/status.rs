//! What a status says of this node's part in a shared crawl.
//!
//! Cost: a pass over the partitions, some ten microseconds.

use super::Cluster;
use super::logs::{Connection, Phase};
use crate::cluster::Partition;
use crate::cluster::member::State;
use crate::engine::Engine;
use crate::engine::status::{NodeState, Partitions, Publishing, Reading, Sharing};
use crate::ground::time::Instant;

impl Cluster {
    /// Returns what the partitions of this node do, and the latest time at which the servers of one
    /// may be asked.
    fn partitions(&self, now: Instant) -> (Partitions, Instant) {
        let (mut counts, mut last) = (Partitions::default(), now);
        for partition in Partition::all() {
            let Some(from) = self.member.asks_from(partition) else { continue };
            last = last.max(from);
            *match self.logs.phase(partition) {
                Phase::Leaving => &mut counts.leaving,
                _ if from > now => &mut counts.waiting,
                Phase::Owned => &mut counts.crawled,
                _ => &mut counts.reading,
            } += 1;
        }
        (counts, last)
    }

    fn reading(&self, now: Instant) -> Reading {
        let (messages, bytes) = self.logs.used();
        let damaged = self.heard.damaged;
        let mut reading = Reading { messages, bytes, damaged, ..Reading::default() };
        let mut since: Option<Instant> = None;
        for partition in Partition::all() {
            let (unread, at) = self.logs.unread(partition);
            reading.unread_messages += unread;
            reading.unread_logs += u32::from(unread > 0);
            since = [since, at].into_iter().flatten().min();
        }
        reading.behind_s = since.map_or(0.0, |since| now.since(since).as_secs_f64());
        reading
    }

    fn publishing(&self) -> Publishing {
        let counts = self.outbox.counts();
        Publishing {
            messages: counts.messages,
            bytes: counts.message_bytes,
            publications: counts.publications,
            repeats: counts.repeats,
            unsent_memory_bytes: counts.memory_bytes,
            unsent_disk_bytes: counts.disk_bytes,
            links: self.sent.written,
            links_held_back: self.sent.held_back,
        }
    }

    fn node_state(&self) -> NodeState {
        match self.member.state() {
            _ if self.member.has_left() => NodeState::Left,
            None => NodeState::NoSession,
            Some(State::Joining) => NodeState::Joining,
            Some(State::Active) => NodeState::Active,
            Some(State::Leaving) => NodeState::Leaving,
            Some(State::Left | State::Over) => NodeState::Left,
        }
    }
}

impl Engine {
    /// Returns this node's part in a shared crawl; `None` in a crawl of one machine. Reads all
    /// partitions.
    pub(in crate::engine) fn sharing(&self) -> Option<Sharing> {
        let cluster = self.cluster.as_deref()?;
        let now = self.turn.at();
        let (partitions, last) = cluster.partitions(now);
        let end = cluster.member.asks_until();
        let disconnected = match cluster.logs.connection() {
            Connection::Up => None,
            Connection::Never => Some(self.elapsed()),
            Connection::Lost(at) => Some(now.since(at)),
        };
        Some(Sharing {
            node: cluster.heard.reports.name().as_str().to_owned(),
            state: cluster.node_state(),
            held_up_by: self.held_up_by(cluster, (partitions, last)),
            session_left_s: (end > now).then(|| end.since(now).as_secs_f64()),
            disconnected_s: disconnected.map(|time| time.as_secs()),
            nodes: cluster.member.nodes(),
            partitions,
            reading: cluster.reading(now),
            publishing: cluster.publishing(),
            pages_lost: self.counts.pages_lost,
        })
    }

    /// Returns what keeps the node from crawling all its partitions, in at most 76 characters each.
    fn held_up_by(
        &self,
        cluster: &Cluster,
        (partitions, last): (Partitions, Instant),
    ) -> Vec<String> {
        let clock = |at| self.turn.now().unix_of(at).civil().to_clock();
        let Partitions { waiting, reading, .. } = partitions;
        let member = &cluster.member;
        let mut all = Vec::new();
        match cluster.logs.connection() {
            Connection::Up => {}
            Connection::Never => all.push("the queue was never reached, and is tried again".into()),
            Connection::Lost(at) => {
                let since = clock(at);
                all.push(format!("the queue can't be reached since {since}, and is tried again"));
            }
        }
        let has_run_out = member.asks_until() <= self.turn.at();
        all.extend(match cluster.node_state() {
            NodeState::NoSession if member.is_name_taken() => {
                Some("no session: another process has this node's name, or had it just now".into())
            }
            NodeState::NoSession => Some("no session yet: the queue has not confirmed one".into()),
            NodeState::Left => None,
            _ if has_run_out => {
                Some("the session has run out: no requests until it is renewed".into())
            }
            NodeState::Joining => {
                Some("joining: the other nodes have not all taken it into account".into())
            }
            NodeState::Active | NodeState::Leaving => None,
        });
        if waiting > 0 {
            let until = clock(last);
            all.push(format!("{waiting} partitions wait for politeness.delay_max until {until}"));
        }
        if reading > 0 {
            all.push(format!("{reading} partitions wait until their logs are read"));
        }
        all
    }
}
