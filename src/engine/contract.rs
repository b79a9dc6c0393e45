//! What passes between the engine and a world: ids, actions, facts, reasons. Plain values.
//!
//! A world knows the engine by this file and by the verbs of [`super::Engine`]; it sees no station.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

pub use super::checkpoint::{StateDone, StateJob};
pub use crate::dns::{Answer, Families, NameFailure};
pub use crate::frontier::{QueuesDone, QueuesJob};
pub use crate::seen::{SeenDone, SeenJob};
pub use crate::store::job::{StoreDone, StoreJob};

/// One connection: a slot that is used again, and how often it has been used before. A late event
/// of an earlier use has another generation and is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Index in the world's and the engine's tables.
    pub slot: u32,
    /// Use of that slot, counted from 0.
    pub generation: u32,
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// One look-up of a name under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupId(pub u32);

/// What the engine asks of the world.
#[derive(Debug)]
pub enum Action {
    /// Look a name up; answer with `resolved`.
    Resolve {
        /// To be named in the answer.
        lookup: LookupId,
        /// Host name as in the URL: ASCII, lower case, no port.
        name: Box<str>,
        /// Which addresses to ask for.
        families: Families,
    },
    /// Open a connection; answer with `opened` (TCP stands, TLS begins), `connected` or `closed`.
    Connect {
        /// To be named in all that follows.
        conn: ConnId,
        /// Already checked against the forbidden ranges.
        address: SocketAddr,
        /// Name to verify and to send as SNI; `None` for plain HTTP.
        tls: Option<Box<str>>,
    },
    /// There are bytes in `outgoing(conn)`: write them, report with `sent`.
    Send(ConnId),
    /// Stop reading this connection: its bytes stay with the kernel.
    Pause(ConnId),
    /// Read it again.
    Resume(ConnId),
    /// Close it and forget it. No `closed` is expected.
    Close(ConnId),
    /// Do this on a side thread; answer with `worked`.
    Work(Job),
}

/// Work that would stall a turn. It owns its inputs and a disk handle.
#[derive(Debug)]
pub enum Job {
    /// The archive's: sync what was written.
    Store(StoreJob),
    /// The seen test's: merge a bucket, read first-timers.
    Seen(SeenJob),
    /// The frontier's: read queues back.
    Frontier(QueuesJob),
    /// The checkpoints': make one count, remove what none names.
    State(StateJob),
}

/// What came of a [`Job`].
#[derive(Debug)]
pub enum Done {
    /// Of [`Job::Store`].
    Store(StoreDone),
    /// Of [`Job::Seen`].
    Seen(SeenDone),
    /// Of [`Job::Frontier`].
    Frontier(QueuesDone),
    /// Of [`Job::State`].
    State(StateDone),
}

impl Job {
    /// Does the work; the world says where (side thread, or after a virtual delay).
    pub fn run(self) -> Done {
        match self {
            Self::Store(job) => Done::Store(job.run()),
            Self::Seen(job) => Done::Seen(job.run()),
            Self::Frontier(job) => Done::Frontier(job.run()),
            Self::State(job) => Done::State(job.run()),
        }
    }
}

/// What is known of a connection once it stands: the archive records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnFacts {
    /// TLS, if any.
    pub tls: Option<TlsFacts>,
}

/// Facts of a TLS session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `tls/1.2` or `tls/1.3`, as in WARC-Protocol.
    pub version: &'static str,
    /// Name of the suite, as in WARC-Cipher-Suite.
    pub suite: &'static str,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// The certificate was verified (it is not if the config switches that off).
    pub verified: bool,
}

/// Why a connection ended or never stood, told by the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its side in order.
    End,
    /// Reset by the peer.
    Reset,
    /// Connection refused.
    Refused,
    /// No route, network or host down.
    Unreachable,
    /// The certificate was not accepted.
    Certificate(CertificateFault),
    /// Another failure of the TLS handshake or session: which, and what in words.
    Tls(TlsFault, String),
    /// TCP ended without TLS's own close: what came may have been cut.
    TlsCut,
    /// No descriptor or port was left here: our own trouble, worth another try later.
    Local(String),
}

/// Why TLS failed, the certificate aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TlsFault {
    /// The server doesn't speak TLS there: plain HTTP on port 443, say.
    NotTls,
    /// It has no cipher suite, group or signature scheme in common with us.
    NoCipher,
    /// It speaks neither TLS 1.2 nor 1.3.
    Version,
    /// It ended the handshake with another fatal alert.
    Alert,
    /// Its handshake is longer than the cap.
    TooLong,
    /// It closed the connection within the handshake.
    Closed,
    /// It broke the protocol, or what it sent was forged.
    Broken,
}

impl TlsFault {
    /// Its name in logs and counts.
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
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// It is another host's.
    WrongHost,
    /// Nobody trusted has signed it, or the server doesn't send the certificates in between.
    UnknownIssuer,
    /// An authority's own certificate, as tools make them for tests.
    SelfSigned,
    /// Its issuer has revoked it.
    Revoked,
    /// It is not meant for servers.
    WrongPurpose,
    /// Its signature is wrong.
    BadSignature,
    /// Another reason.
    Invalid,
}

impl CertificateFault {
    /// Its name in logs and counts.
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

/// Room for received bytes, or why there is none.
#[derive(Debug)]
pub enum Space<'a> {
    /// Write here (never empty), then say how much with `received`.
    Room(&'a mut [u8]),
    /// Not now: wait for `Resume`.
    Paused,
    /// No such connection any more.
    Gone,
}

/// Why a crawl ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Every URL in scope has been settled.
    Finished,
    /// The budget of pages.
    Pages,
    /// The budget of bytes.
    Bytes,
    /// The budget of time.
    Time,
    /// The operator.
    Interrupted,
    /// Nobody could be reached for too long.
    Outage,
    /// The archive or the state can't be written or read: the disk is full, say.
    FatalError,
}

impl StopReason {
    /// For people: how the crawl ended.
    pub fn text(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Pages => "budget of pages reached",
            Self::Bytes => "budget of bytes reached",
            Self::Time => "budget of time reached",
            Self::Interrupted => "interrupted",
            Self::Outage => "nobody could be reached",
            Self::FatalError => "stopped by a fatal error",
        }
    }
}
