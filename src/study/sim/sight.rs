//! What an observer at the servers sees: the ground truth that a judge holds a crawl to.

use crate::engine::contract::ConnId;
use crate::ground::time::Instant;
use crate::study::web::Place;

/// An observer: is shown each thing that is seen, and when.
pub type Eye = Box<dyn FnMut(Instant, &Sight)>;

/// Something that was seen. Hosts are numbers of the web's.
///
/// Until its first request a plain connection to an address that hosts share counts as one to the
/// first of them that was looked up: the request's Host field says whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The crawler asks for a connection.
    Asked {
        /// Which.
        conn: ConnId,
        /// To whom.
        host: u32,
    },
    /// The connection stands, TLS included.
    Stood {
        /// Which.
        conn: ConnId,
        /// To whom.
        host: u32,
    },
    /// The crawler sends on a connection: one request, or several in one piece.
    Sent {
        /// On which connection.
        conn: ConnId,
    },
    /// A request has come to its server, and will be answered or played with.
    Request {
        /// On which connection.
        conn: ConnId,
        /// Of whom.
        host: u32,
        /// What is asked for; `None`: nothing is there.
        place: Option<Place>,
        /// Path and query as asked.
        path: Box<str>,
        /// Requests before it on this connection whose replies haven't wholly arrived.
        unanswered: u32,
    },
    /// A reply has come to the crawler, or what there was of it.
    Reply {
        /// On which connection.
        conn: ConnId,
        /// From whom.
        host: u32,
        /// To a request for what.
        place: Option<Place>,
        /// Its status; 0 if it has none that could be read.
        status: u16,
        /// Equal for replies that are the same: status, body, and where they redirect to. Of
        /// what a hostile host plays only the status counts.
        content: u64,
        /// All of it has come. `false` is told when the connection is over.
        whole: bool,
    },
    /// The connection is over, or never came to stand.
    Closed {
        /// Which.
        conn: ConnId,
        /// To whom.
        host: u32,
        /// The crawler has ended it.
        by_crawler: bool,
    },
    /// The crawler has the answer to a look-up.
    Resolved {
        /// Whose name; `None`: nobody's.
        host: Option<u32>,
        /// The name as asked.
        name: Box<str>,
    },
}
