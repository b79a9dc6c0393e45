//! What the nodes of a crawl ask of the queue that they share, and what it answers.
//!
//! The queue is outside the engine, like a name server: a world carries the requests to it and
//! brings the answers back. It may answer late, in another order, twice or never; it may lose a
//! connection and with it the answer to a request that it has carried out.

pub use super::Partition;
use std::fmt;
use std::time::Duration;

/// The name of a node: 1 to 32 of `a-z`, `0-9` and `-`. No two nodes of a crawl have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// The maximum length of a name, in bytes.
    pub const BYTES_MAX: usize = 32;

    /// Returns the name with this text; `None` if it isn't one.
    pub fn new(text: &str) -> Option<Self> {
        let is_part = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_name = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part);
        is_name.then(|| Self(text.into()))
    }

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// What all nodes of the crawl must have in common.
    Crawl,
    /// A node: that it lives, and which other nodes it reckons with.
    Node(Name),
    /// The owner of a partition.
    Partition(Partition),
    /// What a node says of its progress (see `report`).
    Report(Name),
    /// Commands to all nodes.
    Orders,
}

/// The number of a change. Later changes of an entry have greater numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// An entry as a node sees it after a change. Nodes see the last value of each entry when they
/// begin, and every later one; one that was replaced meanwhile may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key of the entry.
    pub key: Key,
    /// The number of the change.
    pub revision: Revision,
    /// The value after the change.
    pub value: Box<[u8]>,
}

/// The number by which a node knows one of its writes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// A change of an entry that a node asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number to report the answer with.
    pub id: WriteId,
    /// The key of the entry.
    pub key: Key,
    /// The revision that the entry must have; `None` if there must be no such entry.
    pub expected: Option<Revision>,
    /// The value that the entry is to have.
    pub value: Box<[u8]>,
}

/// Why a write has no revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFailure {
    /// The entry had another revision, or existed. Nothing was changed.
    Conflict,
    /// The answer is lost: the entry may have been changed or not.
    Unknown,
}

/// The number of a message in the logs: greater than those of all earlier messages of its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// A message to be appended to the log of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The log.
    pub partition: Partition,
    /// What the message says: records (see `record`).
    pub payload: Box<[u8]>,
}

/// The number of a publication. No two publications of a crawl have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicationId {
    /// The random number of the process that has made the publication.
    pub process: u64,
    /// Its number among those of that process.
    pub number: u64,
}

/// Messages that are appended to their logs together, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The number to report the answer with. The queue refuses a number that it has taken before,
    /// so that a repetition does no harm.
    pub id: PublicationId,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// A message as it was read from the log of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The log.
    pub partition: Partition,
    /// The number of the message in it.
    pub sequence: Sequence,
    /// What the message says.
    pub payload: Box<[u8]>,
}

/// What a node asks of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Change an entry. The answer is [`Event::Wrote`].
    Write(Write),
    /// Append messages to logs. The answer is [`Event::Published`].
    Publish(Publication),
    /// Read a log. The answer is [`Event::Read`].
    Read(Reading),
    /// Remove messages from the beginning of a log. There is no answer.
    Purge(Purge),
}

/// A place from which a log is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The log.
    pub partition: Partition,
    /// The number after which to read.
    pub after: Sequence,
    /// The number of bytes of payload that are wanted. If there is a message, at least one is
    /// returned, however long.
    pub bytes_max: usize,
    /// How long the queue waits for a message if there is none.
    pub wait: Duration,
    /// What the answer is for.
    pub purpose: Purpose,
}

/// What a log is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To crawl its URLs.
    Crawl,
    /// To make a snapshot of it.
    Snapshot,
}

/// Messages of a log that aren't needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The log.
    pub partition: Partition,
    /// The last message that isn't needed.
    pub through: Sequence,
}

/// What the queue reports to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a connection to the queue. All entries will be shown as they are now.
    Connected,
    /// The connection is lost. Requests that have no answer yet will not get one.
    Disconnected,
    /// An entry, as it is now or has become.
    Entry(Entry),
    /// The answer to a write.
    Wrote {
        /// The number of the write.
        id: WriteId,
        /// The revision of the entry after it, or why there is none.
        result: Result<Revision, WriteFailure>,
    },
    /// The answer to a publication.
    Published {
        /// The number of the publication.
        id: PublicationId,
        /// Whether its messages are durable in their logs. If not, they may be all the same.
        is_durable: bool,
    },
    /// The answer to a reading; no messages if none came while the queue waited for them. The
    /// reading is to be repeated for more.
    Read {
        /// The place from which the log was read.
        reading: Reading,
        /// The messages, in order; `None` if the reading failed.
        messages: Option<Vec<Delivery>>,
        /// How many more messages the log had after these, as far as the queue has said.
        left: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes() {
        for name in ["a", "node-17", "0", "-", &"x".repeat(32)] {
            assert_eq!(Name::new(name).expect("a name").as_str(), name);
        }
        for text in ["", "A", "a.b", "a b", "a_b", "é", &"x".repeat(33)] {
            assert_eq!(Name::new(text), None, "{text}");
        }
    }
}
