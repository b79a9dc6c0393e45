//! The queue that the nodes of a crawl share: NATS JetStream, on a side thread.
//!
//! A crawl has one *stream*, in which each partition's log is a subject, and one *bucket* of
//! entries (`names`). The side thread runs async-nats in a runtime of its own. It carries the
//! engine's requests to the server and brings back answers and changes of entries; it and the loop
//! share two queues and a waker.
//!
//! | request | is carried out as |
//! |---|---|
//! | `Write` | a publication in the bucket that expects the last revision of its key |
//! | `Publish` | an atomic batch (server 2.12), with a message id that the stream refuses twice |
//! | `Read` | a direct get of several messages; if there are none, it waits for a notice |
//! | `Purge` | a purge of the subject below a sequence |
//!
//! Laws: `Connected` is reported before the entries as they are, and each later change follows.
//! After `Disconnected` no request that was made before it is answered. That a log has nothing new
//! is reported only if the stream's leader says so, since a replica may lag behind.
//!
//! What a server refuses is logged with its cause and a fix, once a minute at most for each text.
//! At the start it ends the command instead (`connect`, `setup`).
//!
//! Cost: a message to a channel for a request, a lock and a swap for all answers of a turn.

mod carry;
mod connect;
mod failure;
mod link;
mod look;
mod monitor;
mod names;
mod publish;
mod read;
mod setup;
mod trouble;

use super::work::Mailbox;
use crate::engine::contract::queue::{Event, Request};
pub use failure::Failure;
pub use look::{Look, change_orders, look};
pub use monitor::{Sync, sync_of};
pub use setup::agree;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// How the queue is reached, and what it is to be like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the crawl: 1 to 32 of `a-z`, `0-9` and `-`.
    pub crawl: String,
    /// The name of this node, by which a server's operator knows its connection.
    pub node: String,
    /// The URLs of the servers.
    pub servers: Vec<String>,
    /// The file with the node's credentials (a JWT and its key), as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A user's name, and the file with the password.
    pub user: Option<(String, PathBuf)>,
    /// A PEM file with the certificates of the authorities that are trusted in place of the
    /// system's. If there is one, connections are encrypted.
    pub roots: Option<PathBuf>,
    /// PEM files with the certificate of this node and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The number of servers that keep each message.
    pub replicas: usize,
}

/// The most events that a turn of the loop hands to the engine.
const EVENTS_PER_TURN: usize = 256;

/// The loop's end of the queue.
pub(super) struct Queue {
    /// The requests; `None` only while the queue is being dropped.
    requests: Option<UnboundedSender<Request>>,
    events: Arc<Mailbox<Event>>,
    collected: Vec<Event>,
    /// Events that no turn has handed on yet, the oldest first.
    pending: VecDeque<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    /// Starts the side thread, which connects to a server, again and again if need be.
    ///
    /// # Errors
    /// The system refuses the thread or its poller.
    pub(super) fn start(settings: &Settings, waker: Arc<mio::Waker>) -> io::Result<Self> {
        let events = Arc::new(Mailbox::new(waker));
        let (requests, asked) = unbounded_channel();
        let runtime = runtime()?;
        let (settings, post) = (settings.clone(), Arc::clone(&events));
        let serve = move || runtime.block_on(link::serve(&settings, asked, &post));
        let thread = thread::Builder::new().name(String::from("sted-queue")).spawn(serve)?;
        let (collected, pending) = (Vec::new(), VecDeque::new());
        Ok(Self { requests: Some(requests), events, collected, pending, thread: Some(thread) })
    }

    /// Starts the queue of a crawl that has one.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub(super) fn of(
        settings: Option<&Settings>,
        waker: &Arc<mio::Waker>,
    ) -> io::Result<Option<Self>> {
        settings.map(|settings| Self::start(settings, Arc::clone(waker))).transpose()
    }

    /// Hands a request to the side thread.
    pub(super) fn ask(&self, request: Request) {
        let requests = self.requests.as_ref().expect("it is there until the queue is dropped");
        // If the thread has ended early, by a bug, the session passes unrenewed.
        let _ = requests.send(request);
    }

    /// Calls `take` with the next events, as many as a turn may have.
    pub(super) fn drain(&mut self, take: impl FnMut(Event)) {
        self.events.collect(&mut self.collected);
        self.pending.extend(self.collected.drain(..));
        let count = self.pending.len().min(EVENTS_PER_TURN);
        self.pending.drain(..count).for_each(take);
    }

    /// Returns whether events wait for the next turn, so that the loop must not sleep.
    pub(super) fn has_events(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the CPU time of the side thread so far, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.thread.as_ref().map_or(0, super::signal::cpu_of_ns)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

fn runtime() -> io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_all().build()
}
