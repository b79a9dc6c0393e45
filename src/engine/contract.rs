//! The values that pass between the engine and a world: ids, actions, facts and reasons.
//!
//! A world knows the engine by this file and by the methods of [`super::Engine`]. It sees no
//! station.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

pub use super::checkpoint::{StateDone, StateJob};
#[cfg(feature = "cluster")]
pub use super::cluster::{SnapshotDone, SnapshotJob};
pub use super::command::{Command, Order, Reply, Target};
pub use super::page::{ListDone, ListJob};
pub use super::reload::Reload;
pub use super::status::Status;
pub use super::visit::{CommandsDone, CommandsJob};
pub use super::why::Why;
use crate::ground::quality::Quality;

#[cfg(feature = "cluster")]
pub use crate::cluster::{queue, record};
pub use crate::dns::{Answer, Families, NameFailure};
pub use crate::frontier::{Load, QueuesDone, QueuesJob};
pub use crate::seen::{SeenDone, SeenJob};
pub use crate::store::job::{StoreDone, StoreJob};
pub use crate::store::write_job::{WriteDone, WriteJob};

/// The id of a connection: its slot, and how often the slot was used before. A late event of an
/// earlier use carries another generation and is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// The index of the connection in the tables of the world and of the engine.
    pub slot: u32,
    /// The number of this use of the slot, counted from 0.
    pub generation: u32,
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// The id of a DNS look-up in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupId(pub u32);

/// The id of a page that waits for its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScoreId(pub u64);

/// A page that the operator's program is to score.
#[derive(Debug)]
pub struct ScoreRequest {
    /// The id to report the score with.
    pub id: ScoreId,
    /// The URL of the page.
    pub url: Box<str>,
    /// The media type of the page, in lower case.
    pub media_type: Box<str>,
    /// The text of the page as its links were found in it: decoded, and cut to a maximum length.
    pub text: String,
}

/// The world's answer to [`Action::Score`]. A second answer with an id is ignored, and so is one
/// that comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scored {
    /// The page; `None` if the program has written something that is no answer to a page.
    pub id: Option<ScoreId>,
    /// The quality of the page, or why there is none.
    pub quality: Result<Quality, ScoreFailure>,
}

impl Scored {
    /// Returns the answer for a page that has no score.
    pub fn failed(id: ScoreId, failure: ScoreFailure) -> Self {
        Self { id: Some(id), quality: Err(failure) }
    }
}

/// Why a page has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreFailure {
    /// The program's answer is no quality.
    Invalid,
    /// The program ended before it answered; it is started again.
    Ended,
    /// The program has ended and is not started again, so no further page will be scored.
    Gone,
}

impl ScoreFailure {
    /// Returns the cause under which the page is counted.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Invalid => "score-invalid",
            Self::Ended | Self::Gone => "score-failed",
        }
    }
}

/// What the engine asks the world to do.
#[derive(Debug)]
pub enum Action {
    /// Look up a host name. The world reports the answer with [`super::Engine::resolved`].
    Resolve {
        /// The id to report the answer with.
        lookup: LookupId,
        /// The host name as in the URL: ASCII, lower case, no port.
        name: Box<str>,
        /// The address families to ask for.
        families: Families,
    },
    /// Open a connection. The world reports [`super::Engine::opened`] when TCP is established and
    /// TLS begins, then [`super::Engine::connected`]; or, if that fails, [`super::Engine::closed`].
    Connect {
        /// The id to report everything about this connection with.
        conn: ConnId,
        /// The address, which is already checked against the forbidden ranges.
        address: SocketAddr,
        /// The name to verify the certificate for and to send as SNI; `None` for plain HTTP.
        tls: Option<Box<str>>,
    },
    /// Send the bytes of [`super::Engine::outgoing`] on this connection. The world reports how many
    /// were sent with [`super::Engine::sent`].
    Send(ConnId),
    /// Stop reading this connection; its bytes stay in the kernel.
    Pause(ConnId),
    /// Read this connection again.
    Resume(ConnId),
    /// Close the connection and forget it. The world doesn't report that with `closed`.
    Close(ConnId),
    /// Have the operator's program score this page. The world reports the score with
    /// [`super::Engine::scored`], as soon as it has it, in any order, or never.
    Score(Box<ScoreRequest>),
    /// Carry this request to the queue that the nodes of a cluster share. The world reports what
    /// comes from there with [`super::Engine::queue_event`].
    #[cfg(feature = "cluster")]
    Queue(Box<queue::Request>),
    /// Run this job on a side thread. The world reports the result with [`super::Engine::worked`].
    Work(Job),
}

/// Work that would take too long within a turn. A job owns its inputs and a handle of the disk.
#[derive(Debug)]
pub enum Job {
    /// Sync to disk what was written to the archive.
    Store(StoreJob),
    /// Write replies to the archive. It may be run beside other jobs, but not beside another one of
    /// this kind.
    Write(WriteJob),
    /// Merge a bucket of the seen test into its store, or read the URLs that it found to be new.
    Seen(SeenJob),
    /// Read waiting URLs of the frontier's queues back from disk.
    Frontier(QueuesJob),
    /// Publish a checkpoint, or remove files that no checkpoint names.
    State(StateJob),
    /// Sync the log of the operator's commands to disk.
    Commands(CommandsJob),
    /// Read a sitemap or a feed.
    List(Box<ListJob>),
    /// Merge a part of a partition's log into a snapshot.
    #[cfg(feature = "cluster")]
    Snapshot(Box<SnapshotJob>),
}

/// The result of a [`Job`].
#[derive(Debug)]
pub enum Done {
    /// The result of [`Job::Store`].
    Store(StoreDone),
    /// The result of [`Job::Write`].
    Write(WriteDone),
    /// The result of [`Job::Seen`].
    Seen(SeenDone),
    /// The result of [`Job::Frontier`].
    Frontier(QueuesDone),
    /// The result of [`Job::State`].
    State(StateDone),
    /// The result of [`Job::Commands`].
    Commands(CommandsDone),
    /// The result of [`Job::List`].
    List(Box<ListDone>),
    /// The result of [`Job::Snapshot`].
    #[cfg(feature = "cluster")]
    Snapshot(Box<SnapshotDone>),
}

impl Job {
    /// Does the work. The world calls it on a side thread, or after a virtual delay.
    pub fn run(self) -> Done {
        match self {
            Self::Store(job) => Done::Store(job.run()),
            Self::Write(job) => Done::Write(job.run()),
            Self::Seen(job) => Done::Seen(job.run()),
            Self::Frontier(job) => Done::Frontier(job.run()),
            Self::State(job) => Done::State(job.run()),
            Self::Commands(job) => Done::Commands(job.run()),
            Self::List(job) => Done::List(Box::new(job.run())),
            #[cfg(feature = "cluster")]
            Self::Snapshot(job) => Done::Snapshot(Box::new(job.run())),
        }
    }
}

/// What the archive records of an established connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnFacts {
    /// The TLS session; `None` for plain HTTP.
    pub tls: Option<TlsFacts>,
}

/// Facts of a TLS session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// The protocol version, `tls/1.2` or `tls/1.3`, as in the WARC field WARC-Protocol.
    pub version: &'static str,
    /// The name of the cipher suite, as in the WARC field WARC-Cipher-Suite.
    pub suite: &'static str,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Whether the certificate was verified; the configuration can switch that off.
    pub verified: bool,
}

/// Why a connection ended or could not be established, as the world reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its side in order.
    End,
    /// The peer reset the connection.
    Reset,
    /// The connection was refused.
    Refused,
    /// There is no route, or the network or host is down.
    Unreachable,
    /// The certificate was not accepted.
    Certificate(CertificateFault),
    /// The TLS handshake or session failed for another reason, described by the text.
    Tls(TlsFault, String),
    /// TCP ended without a TLS close alert, so the data may have been truncated.
    TlsCut,
    /// This machine had no descriptor or port left; a later try may succeed.
    Local(String),
}

/// Why TLS failed, other than for the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TlsFault {
    /// The server doesn't speak TLS on this port: plain HTTP on port 443, for example.
    NotTls,
    /// The server has no cipher suite, group or signature scheme in common with us.
    NoCipher,
    /// The server speaks neither TLS 1.2 nor 1.3.
    Version,
    /// The server ended the handshake with another fatal alert.
    Alert,
    /// The server's handshake exceeds the limit on its length.
    TooLong,
    /// The server closed the connection during the handshake.
    Closed,
    /// The server violated the protocol, or its data was forged.
    Broken,
}

impl TlsFault {
    /// Returns the name used in logs and counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotTls => "tls-not-tls",
            Self::NoCipher => "tls-no-cipher",
            Self::Version => "tls-version",
            Self::Alert => "tls-alert",
            Self::TooLong => "tls-too-long",
            Self::Closed => "tls-closed",
            Self::Broken => "tls-broken",
        }
    }
}

/// Why a certificate was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CertificateFault {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate belongs to another host.
    WrongHost,
    /// No trusted authority has signed it, or the server doesn't send the intermediate
    /// certificates.
    UnknownIssuer,
    /// The certificate is an authority's own, as tools create them for tests.
    SelfSigned,
    /// The issuer has revoked the certificate.
    Revoked,
    /// The certificate may not be used by servers.
    WrongPurpose,
    /// The signature is wrong.
    BadSignature,
    /// The certificate is invalid for another reason.
    Invalid,
}

impl CertificateFault {
    /// Returns the name used in logs and counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "certificate-expired",
            Self::NotYetValid => "certificate-not-yet-valid",
            Self::WrongHost => "certificate-wrong-host",
            Self::UnknownIssuer => "certificate-unknown-issuer",
            Self::SelfSigned => "certificate-self-signed",
            Self::Revoked => "certificate-revoked",
            Self::WrongPurpose => "certificate-wrong-purpose",
            Self::BadSignature => "certificate-bad-signature",
            Self::Invalid => "certificate-invalid",
        }
    }
}

/// The answer to a request for a receive buffer.
#[derive(Debug)]
pub enum Space<'a> {
    /// A buffer for received bytes, which is never empty. The world writes into it, then reports
    /// with [`super::Engine::received`].
    Room(&'a mut [u8]),
    /// The connection is paused: wait for [`Action::Resume`].
    Paused,
    /// The connection no longer exists.
    Gone,
}

/// Why a crawl ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Every URL in scope has its final outcome.
    Finished,
    /// The limit on pages is reached.
    Pages,
    /// The limit on received bytes is reached.
    Bytes,
    /// The limit on time is reached.
    Time,
    /// The operator stopped the crawl.
    Interrupted,
    /// No server could be reached for too long.
    Outage,
    /// The disk has less free space than the crawl leaves to others.
    LowDisk,
    /// The archive or the state can't be written or read; the disk is full, for example.
    FatalError,
}

impl StopReason {
    /// Returns a sentence for people on how the crawl ended.
    pub fn text(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Pages => "budget of pages reached",
            Self::Bytes => "budget of bytes reached",
            Self::Time => "budget of time reached",
            Self::Interrupted => "interrupted",
            Self::Outage => "no server could be reached",
            Self::LowDisk => "stopped before the disk was full (disk.free_min)",
            Self::FatalError => "stopped by a fatal error",
        }
    }
}
