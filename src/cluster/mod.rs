//! Several machines that share one crawl: which node crawls which domains, and which messages
//! they exchange.
//!
//! A *node* is one process with its own engine, archive and state. Nodes never talk to each other;
//! all of them use one *queue*, a durable message system, which keeps two things:
//! - *Entries*: a few small values by key, each with a revision. An entry is created if it is
//!   absent, or changed if its revision is the expected one (compare-and-set). Every node sees the
//!   changes of all entries, late perhaps, but those of one entry in order.
//! - *Logs*: one for each [`Partition`] of the registrable domains, of numbered messages. Messages
//!   are appended, several logs' together or none of them, and read in order from any number on.
//!
//! This station decides and keeps account; it does no I/O and reads no clock. `member` decides
//! which partitions this node may crawl. `record` is what the messages say, `outbox` collects them
//! and `memory` reads them back.
//!
//! Laws (each is checked in simulation, and by a protocol that is broken on purpose):
//! - *One owner*: at no moment may two nodes ask the servers of one partition.
//! - *One pace*: at no moment does the sum of 1/n over the nodes that may ask exceed 1, where n is
//!   the number by which each multiplies the rests of addresses.
//! - *Nothing forgotten*: a URL that was found by a node is in a log, or is found again, because
//!   the page that links to it isn't known as fetched before its links are in their logs.
//! - *Nothing twice*: a page is fetched again only if its owner lost the partition before it could
//!   say that the page was fetched.

pub mod member;
pub mod memory;
pub mod outbox;
pub mod partition;
pub mod queue;
pub mod record;
pub mod report;

pub use partition::{Partition, Partitioner};
