//! The control socket: takes an operator's commands and questions to the running crawl.
//!
//! A side thread accepts connections on `control.sock` in the job directory, and speaks HTTP/1.1
//! with them (`server`). It parses and checks requests; what only the engine can answer it posts to
//! the loop. The loop answers a few requests a turn, so a flood of them can't make a turn long. The
//! reply to a command is sent when the command would survive a crash.
//!
//! The thread and the loop share a mailbox, and a channel for each request. If the thread fails,
//! the crawl goes on without it. The same thread serves the admin listener (`admin`), which asks
//! the loop nothing.

pub(super) mod admin;
pub mod client;
mod request;
mod routes;
mod server;
mod site;
mod socket;

use super::Reloader;
use super::disk::{Lock, Root};
use super::work::Mailbox;
use crate::engine::Engine;
use crate::engine::contract::Reply;
use crate::ground::time::Now;
use request::{Answer, Ask, Desk, Request};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// The most requests that one turn of the loop answers.
const REQUESTS_PER_TURN: usize = 4;

/// The loop's end of the control socket.
pub(super) struct Control {
    root: Root,
    mailbox: Arc<Mailbox<Request>>,
    collected: Vec<Request>,
    /// Requests that no turn has answered yet, the oldest first.
    pending: VecDeque<Request>,
    /// Commands that have taken effect but would not survive a crash yet, by number.
    unsynced: VecDeque<(u64, Request, Reply)>,
    /// Ends the side thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Creates the socket in the directory of the locked job, and starts the side thread, which
    /// serves `admin`, too. If the socket can't be created, there is none.
    ///
    /// # Errors
    /// The system refuses the thread.
    pub(super) fn open(
        lock: &Lock,
        waker: Arc<mio::Waker>,
        reloader: Box<dyn Reloader>,
        admin: Option<admin::Bound>,
    ) -> io::Result<Self> {
        let root = lock.root().try_clone()?;
        let listener = socket::listen(&root).inspect_err(|error| {
            log::warn!(
                "there is no control socket, so `sted ctl` and `sted status` don't work: {error}"
            );
        });
        let mailbox = Arc::new(Mailbox::new(waker));
        let (end, ended) = oneshot::channel();
        let desk = Desk::new(Arc::clone(&mailbox), reloader);
        let sites = server::Sites { socket: listener.ok().map(|socket| (socket, desk)), admin };
        let name = String::from("sted-control");
        let thread =
            thread::Builder::new().name(name).spawn(move || server::serve(sites, ended))?;
        Ok(Self {
            root,
            mailbox,
            collected: Vec::new(),
            pending: VecDeque::new(),
            unsynced: VecDeque::new(),
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Answers some of the requests that have arrived, and sends the replies to commands that have
    /// become durable.
    pub(super) fn answer(&mut self, engine: &mut Engine, now: Now) {
        self.mailbox.collect(&mut self.collected);
        self.pending.extend(self.collected.drain(..));
        for _ in 0..REQUESTS_PER_TURN.min(self.pending.len()) {
            let Some(request) = self.pending.pop_front() else { break };
            match &request.ask {
                Ask::Status => {
                    let status = Box::new(engine.status());
                    request.answer(Answer::Status(status));
                }
                Ask::Why(url) => {
                    let why = Box::new(engine.why(now, url));
                    request.answer(Answer::Why(why));
                    // One such question takes about as much work as a turn may do at once.
                    break;
                }
                Ask::Order(order) => {
                    let reply = engine.command(now, order);
                    self.reply_later(request, reply);
                }
                Ask::Reload(by, reload) => {
                    let reply = engine.reload(now, by, reload.as_ref().clone());
                    self.reply_later(request, reply);
                }
            }
        }
        self.send_durable(engine);
    }

    /// Keeps the reply to a command that was carried out until the command is durable.
    fn reply_later(&mut self, request: Request, reply: Reply) {
        match reply {
            Reply::Done { number, text } => {
                self.unsynced.push_back((number, request, Reply::Done { number, text }));
            }
            refused @ Reply::Refused(_) => request.answer(Answer::Reply(refused)),
        }
    }

    /// Sends the replies to commands that would survive a crash now.
    pub(super) fn send_durable(&mut self, engine: &Engine) {
        if self.unsynced.is_empty() {
            return;
        }
        let durable = engine.durable_commands();
        let count = self.unsynced.partition_point(|(number, ..)| *number <= durable);
        for (_, request, reply) in self.unsynced.drain(..count) {
            request.answer(Answer::Reply(reply));
        }
    }

    /// Returns whether requests wait for the next turn, so that the loop must not sleep.
    pub(super) fn has_requests(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the CPU time of the side thread so far, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.thread.as_ref().map_or(0, super::signal::cpu_of_ns)
    }
}

impl Drop for Control {
    /// Removes the socket first, so that who comes now sees that no crawl runs. Requests without an
    /// answer are answered by the side thread: the crawl has ended.
    fn drop(&mut self) {
        if let Err(error) = socket::remove(&self.root) {
            log::warn!("{}: cannot remove it: {error}", socket::NAME);
        }
        self.mailbox.collect(&mut self.collected);
        self.collected.clear();
        self.pending.clear();
        self.unsynced.clear();
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}
