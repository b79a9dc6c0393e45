//! The requests that the side thread posts to the loop, and the loop's answers.

use crate::engine::contract::{Order, Reload, Reply, Status, Why};
use crate::os::Reloader;
use crate::os::work::Mailbox;
use std::sync::Arc;
use tokio::sync::{Mutex, oneshot};

/// What only the engine can answer.
#[derive(Debug)]
pub(super) enum Ask {
    /// The state of the crawl.
    Status,
    /// Why this URL was fetched, was not, or waits.
    Why(String),
    /// A command of an operator.
    Order(Order),
    /// A command to reload, by this operator, with what was loaded.
    Reload(String, Box<Reload>),
}

/// The loop's answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The answer to [`Ask::Status`].
    Status(Box<Status>),
    /// The answer to [`Ask::Why`].
    Why(Box<Why>),
    /// The answer to [`Ask::Order`].
    Reply(Reply),
}

/// A request with the channel for its answer. If it is dropped without one, the crawl has ended.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) ask: Ask,
    reply: oneshot::Sender<Answer>,
}

impl Request {
    /// Returns a request and the end of the channel at which its answer will arrive.
    pub(super) fn new(ask: Ask) -> (Self, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (Self { ask, reply }, answer)
    }

    /// Sends the answer. If the client has gone, nobody needs it.
    pub(super) fn answer(self, answer: Answer) {
        let _ = self.reply.send(answer);
    }
}

/// What the side thread needs to answer requests.
pub(super) struct Desk {
    mailbox: Arc<Mailbox<Request>>,
    /// Locked for the whole of a reload, so that two of them don't mix.
    pub(super) reloader: Mutex<Box<dyn Reloader>>,
}

impl Desk {
    pub(super) fn new(mailbox: Arc<Mailbox<Request>>, reloader: Box<dyn Reloader>) -> Self {
        Self { mailbox, reloader: Mutex::new(reloader) }
    }

    /// Posts a request to the loop.
    pub(super) fn post(&self, request: Request) {
        self.mailbox.post(request);
    }
}
