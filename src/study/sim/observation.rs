//! Observations at the servers: the ground truth by which a judge checks a crawl.

use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::{Place, Proof};

/// An observer, called with each observation and its time.
pub type Observer = Box<dyn FnMut(Instant, &Observation)>;

/// What an observer sees. Hosts are given by their numbers in the web.
///
/// Until its first request, a plain-text connection to an address that several hosts share counts
/// as one to the host of them that was looked up first: only the Host field of the request says
/// which host is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The crawler asks for a connection.
    Connecting {
        /// The connection.
        conn: ConnId,
        /// The number of the host that the connection is for.
        host: u32,
    },
    /// The connection is established, TLS included.
    Established {
        /// The connection.
        conn: ConnId,
        /// The number of the host that the connection is for.
        host: u32,
    },
    /// The crawler sends on a connection: one request, or several in one piece.
    Sent {
        /// The connection.
        conn: ConnId,
    },
    /// A request has arrived at its server, which will answer it (a hostile host in its own way).
    Request {
        /// The connection.
        conn: ConnId,
        /// The host that is asked.
        host: u32,
        /// The resource that is requested; `None` if there is none at this path.
        place: Option<Place>,
        /// Path and query as requested.
        path: Box<str>,
        /// The number of requests before this one on the connection whose replies haven't wholly
        /// arrived.
        unanswered: u32,
        /// The value of the field Authorization; empty if there is none.
        authorization: Box<str>,
        /// Whether the request is signed; `None` if servers don't verify it.
        proof: Option<Proof>,
    },
    /// A reply, or as much of it as there is, has arrived at the crawler.
    Reply {
        /// The connection.
        conn: ConnId,
        /// The host that replies.
        host: u32,
        /// The resource that was requested; `None` if there is none at the requested path.
        place: Option<Place>,
        /// The status; 0 if the reply has no readable one.
        status: u16,
        /// A digest of the reply that is equal for equal replies: status, body, and redirect
        /// target. For hostile hosts it depends on the status only.
        content: u64,
        /// Whether all of the reply has arrived; `false` is reported when the connection ends in
        /// its middle.
        whole: bool,
    },
    /// The connection has ended, or could not be established.
    Closed {
        /// The connection.
        conn: ConnId,
        /// The number of the host that the connection was for.
        host: u32,
        /// Whether the crawler has closed the connection; else the server or a failure has ended
        /// it.
        by_crawler: bool,
    },
    /// The crawler has received the answer to a look-up.
    Resolved {
        /// The host with this name; `None` if no host has it.
        host: Option<u32>,
        /// The name as looked up.
        name: Box<str>,
    },
}
