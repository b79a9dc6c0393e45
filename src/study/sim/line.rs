//! The line from a simulated crawler to the queue of its cluster.
//!
//! Requests wait here until the queue takes them. What arrives on a connection that was lost before
//! is dropped, as a client's library does. What passes is counted; the model of the crawler's core
//! charges CPU time for it.

use crate::engine::contract::queue::{Event, Publication, PublicationId, Request};
use crate::engine::contract::record::{Reader, Record};
use crate::ground::time::Instant;
use std::collections::BTreeSet;

/// The line of one crawler.
#[derive(Debug, Default)]
pub(super) struct Line {
    requests: Vec<(Instant, Request)>,
    /// The number of the connection that exists; 0 if there is none.
    connection: u64,
    exchanged: Exchanged,
    /// The numbers of the publications so far.
    published: BTreeSet<PublicationId>,
}

/// What has passed between a crawler and the queue of its cluster since the start of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Requests that were sent, and events that were heard.
    pub calls: u64,
    /// Links and settled URLs in publications, each counted once, though its publication may be
    /// repeated.
    pub urls_written: u64,
    /// Messages in publications, repetitions included.
    pub messages_written: u64,
    /// Bytes of these messages.
    pub bytes_written: u64,
    /// Links in the messages that were read.
    pub links_read: u64,
    /// Settled URLs in the messages that were read.
    pub settled_read: u64,
    /// Messages that were read.
    pub messages_read: u64,
    /// Bytes of these messages.
    pub bytes_read: u64,
}

impl Line {
    /// Returns what has passed.
    pub(super) fn exchanged(&self) -> Exchanged {
        self.exchanged
    }

    /// Returns whether the crawler has ever used it, and so is a node of a cluster.
    pub(super) fn is_used(&self) -> bool {
        self.exchanged.calls > 0
    }

    pub(super) fn ask(&mut self, at: Instant, request: Request) {
        self.exchanged.calls += 1;
        if let Request::Publish(publication) = &request {
            self.count(publication);
        }
        self.requests.push((at, request));
    }

    fn count(&mut self, publication: &Publication) {
        let is_new = self.published.insert(publication.id);
        let sums = &mut self.exchanged;
        for message in &publication.messages {
            sums.messages_written += 1;
            sums.bytes_written += message.payload.len() as u64;
            if is_new {
                let (links, settled) = urls(&message.payload);
                sums.urls_written += links + settled;
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<(Instant, Request)> {
        std::mem::take(&mut self.requests)
    }

    /// Returns whether the crawler hears an event that arrives on this connection.
    pub(super) fn hears(&mut self, connection: u64, event: &Event) -> bool {
        let hears = match event {
            Event::Connected => {
                self.connection = connection;
                true
            }
            Event::Disconnected => std::mem::take(&mut self.connection) == connection,
            _ => self.connection == connection,
        };
        if hears {
            self.exchanged.calls += 1;
            if let Event::Read { messages: Some(messages), .. } = event {
                let sums = &mut self.exchanged;
                for message in messages {
                    sums.messages_read += 1;
                    sums.bytes_read += message.payload.len() as u64;
                    let (links, settled) = urls(&message.payload);
                    sums.links_read += links;
                    sums.settled_read += settled;
                }
            }
        }
        hears
    }
}

/// Returns the numbers of links and of settled URLs in a payload, up to a record that is damaged.
fn urls(payload: &[u8]) -> (u64, u64) {
    let (mut links, mut settled) = (0, 0);
    let records = Reader::open(payload).ok().into_iter().flat_map(|(_, records)| records.flatten());
    for record in records {
        match record {
            Record::Link(_) => links += 1,
            Record::Settled(urls) => settled += urls.len() as u64,
            _ => {}
        }
    }
    (links, settled)
}
