//! The line from a simulated crawler to the queue of its cluster.
//!
//! Requests wait here until the queue takes them. What arrives on a connection that was lost before
//! is dropped, as a client's library does.

use crate::engine::contract::queue::{Event, Request};
use crate::ground::time::Instant;

/// The line of one crawler.
#[derive(Debug, Default)]
pub(super) struct Line {
    requests: Vec<(Instant, Request)>,
    /// The number of the connection that exists; 0 if there is none.
    connection: u64,
}

impl Line {
    pub(super) fn ask(&mut self, at: Instant, request: Request) {
        self.requests.push((at, request));
    }

    pub(super) fn take(&mut self) -> Vec<(Instant, Request)> {
        std::mem::take(&mut self.requests)
    }

    /// Returns whether the crawler hears an event that arrives on this connection.
    pub(super) fn hears(&mut self, connection: u64, event: &Event) -> bool {
        match event {
            Event::Connected => {
                self.connection = connection;
                true
            }
            Event::Disconnected => std::mem::take(&mut self.connection) == connection,
            _ => self.connection == connection,
        }
    }
}
