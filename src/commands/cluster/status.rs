//! `sted cluster status`: the nodes of a shared crawl, their partitions, and the state of the logs,
//! as the queue has them.

use super::queue_of;
use crate::cluster::member::{self, Bearing};
use crate::cluster::queue::{Key, Name, Sequence};
use crate::cluster::report::Report;
use crate::cluster::{Partition, partition::PARTITIONS};
use crate::commands::{ConfFile, Exit, Failure, print};
use crate::os::queue::{self, Look};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most logs that the text names.
const LOGS_SHOWN: usize = 5;

/// What the queue says of a crawl.
#[derive(Debug, Default, Serialize)]
struct Status {
    /// The name of the crawl.
    crawl: String,
    /// The version of the server.
    server: String,
    /// The nodes, by name.
    nodes: BTreeMap<String, Node>,
    /// The number of partitions without an owner.
    free: usize,
    /// The number of messages in all logs, and their length in bytes.
    messages: u64,
    bytes: u64,
    /// The pages that nodes may fetch again, since others had fetched them without saying so in
    /// time: the sum over all nodes.
    lost: u64,
    /// The logs that their owner hasn't read to the end, as far as it has said.
    unread: Vec<Log>,
    /// The number of commands to all nodes.
    commands: usize,
}

/// A node of the crawl.
#[derive(Debug, Default, Serialize)]
struct Node {
    /// What it does: joining, active, leaving, left or over.
    state: &'static str,
    /// Whether it has nothing to do.
    is_idle: bool,
    /// The number of partitions that it owns.
    partitions: usize,
    /// What it has said of its progress, at most a third of a lease ago while it lives.
    pages: u64,
    received_bytes: u64,
    urls_waiting: u64,
    requests: u64,
    /// Pages that others fetch again, since the node lost their partition before it could say so.
    lost: u64,
    unsent_bytes: u64,
    /// The messages that it hadn't read in the logs of its partitions.
    unread_messages: u64,
    /// What its last process has written to all logs.
    published: Published,
    #[serde(skip)]
    read: BTreeMap<Partition, Sequence>,
}

/// The number of messages that a node has published, and their length.
#[derive(Debug, Default, Serialize)]
struct Published {
    messages: u64,
    bytes: u64,
}

/// A log with messages that its owner hasn't read, as far as it has said.
#[derive(Debug, Serialize)]
struct Log {
    partition: u16,
    /// The name of the owner; `None` if there is none.
    owner: Option<String>,
    /// The numbers of the last message, and of the last one that was read; 0 if none was. All logs
    /// share one count, so that the difference isn't the number of messages between them.
    last_sequence: u64,
    read_sequence: u64,
}

/// Prints the state of the crawl that a configuration is a node of.
///
/// # Errors
/// The configuration describes none, or the queue can't be reached.
pub(in crate::commands) fn run(file: &ConfFile, is_json: bool) -> Result<Exit, Failure> {
    let conf = file.load()?;
    let queue = queue_of(&conf).ok_or_else(|| super::not_shared(file))?;
    let found = queue::look(&queue).map_err(super::failed)?;
    let Some(look) = found else {
        let text = format!("no node has begun the crawl {}", queue.crawl);
        return Err(Failure::new(Exit::NotRunning, text));
    };
    let status = Status::of(&queue.crawl, &look);
    let text = if is_json {
        serde_json::to_string_pretty(&status).expect("plain values") + "\n"
    } else {
        status.text()
    };
    print(&text)?;
    Ok(Exit::Finished)
}

impl Status {
    fn of(crawl: &str, look: &Look) -> Self {
        let (crawl, server) = (crawl.to_owned(), look.version.clone());
        let (messages, bytes) = (look.messages, look.bytes);
        let mut status = Self { crawl, server, messages, bytes, ..Self::default() };
        let mut owners: BTreeMap<Partition, Name> = BTreeMap::new();
        for entry in &look.entries {
            let node = |name: &Name| name.as_str().to_owned();
            match &entry.key {
                Key::Node(name) => {
                    let Some(Bearing { state, is_idle }) = member::bearing_in(&entry.value) else {
                        continue;
                    };
                    let node = status.nodes.entry(node(name)).or_default();
                    (node.state, node.is_idle) = (state, is_idle);
                }
                Key::Report(name) => {
                    let Ok(report) = Report::decode(&entry.value) else { continue };
                    let node = status.nodes.entry(node(name)).or_default();
                    (node.pages, node.received_bytes) = (report.pages, report.bytes);
                    (node.urls_waiting, node.requests) = (report.urls, report.requests);
                    (node.lost, node.unsent_bytes) = (report.lost, report.unsent);
                    node.unread_messages = report.unread;
                    let (messages, bytes) = report.published;
                    node.published = Published { messages, bytes };
                    node.read = report.read.into_iter().collect();
                }
                Key::Partition(partition) => {
                    if let Some(owner) = member::owner_in(&entry.value) {
                        status.nodes.entry(node(&owner.name)).or_default().partitions += 1;
                        owners.insert(*partition, owner.name);
                    }
                }
                Key::Orders => status.commands = super::orders_in(&entry.value),
                Key::Crawl => {}
            }
        }
        status.free = usize::from(PARTITIONS) - owners.len();
        for (partition, last) in &look.last {
            let owner = owners.get(partition).map(|name| name.as_str().to_owned());
            let node = owner.as_ref().and_then(|owner| status.nodes.get(owner));
            let read = node.and_then(|node| node.read.get(partition)).map_or(0, |read| read.0);
            if read < last.0 {
                let (partition, last_sequence) = (partition.number(), last.0);
                status.unread.push(Log { partition, owner, last_sequence, read_sequence: read });
            }
        }
        status.lost = status.nodes.values().map(|node| node.lost).sum();
        status
    }

    fn text(&self) -> String {
        let mut out = format!("crawl      {}, by nats-server {}\n", self.crawl, self.server);
        let mut rows = vec![
            [
                "node",
                "state",
                "partitions",
                "pages",
                "received",
                "URLs wait",
                "unread",
                "unsent",
                "lost",
            ]
            .map(str::to_owned),
        ];
        let count = |value: u64| HumanCount(value).to_string();
        let size = |value: u64| HumanBytes(value).to_string();
        for (name, node) in &self.nodes {
            let state = if node.is_idle && node.state == "active" { "idle" } else { node.state };
            rows.push([
                name.clone(),
                state.to_owned(),
                node.partitions.to_string(),
                count(node.pages),
                size(node.received_bytes),
                count(node.urls_waiting),
                count(node.unread_messages),
                size(node.unsent_bytes),
                count(node.lost),
            ]);
        }
        let sum = |of: fn(&Node) -> u64| self.nodes.values().map(of).sum::<u64>();
        let (pages, bytes) = (sum(|node| node.pages), sum(|node| node.received_bytes));
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(", {} pages that may be fetched again", count(lost)),
        };
        let _ = writeln!(out, "in all     {} pages, {}{lost}", count(pages), size(bytes));
        out.push_str(&columns(&rows));
        let none = if self.free == 0 { String::new() } else { format!(", {} free", self.free) };
        let _ = writeln!(out, "partitions {PARTITIONS}{none}");
        let (messages, bytes) = (count(self.messages), size(self.bytes));
        let _ = write!(out, "logs       {messages} messages, {bytes}; ");
        let _ = match self.unread.len() {
            0 => writeln!(out, "all read to their ends"),
            logs => writeln!(out, "{logs} not read to their ends"),
        };
        for Log { partition, owner, read_sequence, .. } in self.unread.iter().take(LOGS_SHOWN) {
            let owner = owner.as_deref().unwrap_or("nobody");
            let how = if *read_sequence == 0 { "not read" } else { "not read to its end" };
            let _ = writeln!(out, "           {partition} of {owner}: {how}");
        }
        if self.commands > 0 {
            let _ = writeln!(out, "commands   {} to all nodes", self.commands);
        }
        out
    }
}

/// Returns rows as text: the first column to the left, the others to the right.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let _ = write!(out, "  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
    out
}
