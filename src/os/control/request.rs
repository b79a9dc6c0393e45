//! The requests that the side thread posts to the loop, and the loop's answers.

use crate::engine::contract::{Order, Reply, Status};
use tokio::sync::oneshot;

/// What only the engine can answer.
#[derive(Debug)]
pub(super) enum Ask {
    /// The state of the crawl.
    Status,
    /// A command of an operator.
    Order(Order),
}

/// The loop's answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The answer to [`Ask::Status`].
    Status(Box<Status>),
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
