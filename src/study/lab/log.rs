//! The lab's log: connections and requests as the server sees them, one JSON object per line.
//!
//! Every line has `event` and `at`, in microseconds since the lab's start (monotonic). The events:
//! - `start`: `unix_us` relates the times to the calendar;
//! - `accept`: `connection` (counted from 1), `host` (the first of its address), `from`;
//! - `request`, if enabled: `connection`, `host`, `path`; `at` is when the head was complete;
//! - `reply`, if requests are enabled: `connection`, `host` (of the last request); `at` is when the
//!   last byte of a whole reply was sent;
//! - `close`: `connection`, `host` (of the last request), `requests` answered at least in part,
//!   `why`.
//!
//! Lines are buffered and written about ten times a second.

use super::Error;
use crate::ground::time::Instant;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client closed the connection.
    Client,
    /// The host's limit of requests was reached, or the host uses HTTP/1.0.
    Limit,
    /// The connection was idle for too long.
    Idle,
    /// The client asked the server to close after the reply.
    Asked,
    /// The client sent something that is no valid request.
    Refused,
    /// A hostile host closed the connection, as a step of its reply.
    Play,
    /// A hostile host reset the connection, as a step of its reply.
    Reset,
    /// The socket or TLS failed.
    Failed,
    /// The lab stopped.
    Stop,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Limit => "limit",
            Self::Idle => "idle",
            Self::Asked => "asked",
            Self::Refused => "refused",
            Self::Play => "play",
            Self::Reset => "reset",
            Self::Failed => "failed",
            Self::Stop => "stop",
        }
    }
}

/// The log; it may be disabled.
#[derive(Debug, Default)]
pub(super) struct Log {
    out: Option<(PathBuf, BufWriter<File>)>,
    requests: bool,
    flushed: Instant,
}

impl Log {
    /// Opens the log in the file `path`; `None` disables the log. `requests`: whether each request
    /// gets a line, too.
    pub(super) fn open(path: Option<&Path>, requests: bool) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Self::default()) };
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = || {
            let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
            writeln!(out, "{{\"at\":0,\"event\":\"start\",\"unix_us\":{}}}", unix.as_micros())?;
            Ok(out)
        };
        let out = begin().map_err(|source| Error::File(path.to_owned(), source))?;
        Ok(Self { out: Some((path.to_owned(), out)), requests, flushed: Instant::ZERO })
    }

    pub(super) fn accepted(
        &mut self,
        now: Instant,
        connection: u64,
        host: &str,
        from: SocketAddr,
    ) -> Result<(), Error> {
        let at = now.as_micros();
        self.write(|out| {
            writeln!(
                out,
                "{{\"at\":{at},\"event\":\"accept\",\"connection\":{connection},\
                 \"host\":\"{host}\",\"from\":\"{from}\"}}"
            )
        })
    }

    pub(super) fn requested(
        &mut self,
        now: Instant,
        connection: u64,
        host: &str,
        path: &[u8],
    ) -> Result<(), Error> {
        if !self.requests {
            return Ok(());
        }
        let at = now.as_micros();
        self.write(|out| {
            write!(
                out,
                "{{\"at\":{at},\"event\":\"request\",\"connection\":{connection},\
                 \"host\":\"{host}\",\"path\":"
            )?;
            // Clients may send any bytes: only this string needs escapes.
            serde_json::to_writer(&mut *out, &String::from_utf8_lossy(path))?;
            out.write_all(b"}\n")
        })
    }

    /// Returns whether each request gets a line, too.
    pub(super) fn has_requests(&self) -> bool {
        self.requests
    }

    /// Notes that a request has its whole reply.
    pub(super) fn replied(
        &mut self,
        now: Instant,
        connection: u64,
        host: &str,
    ) -> Result<(), Error> {
        if !self.requests {
            return Ok(());
        }
        let at = now.as_micros();
        self.write(|out| {
            writeln!(
                out,
                "{{\"at\":{at},\"event\":\"reply\",\"connection\":{connection},\
                 \"host\":\"{host}\"}}"
            )
        })
    }

    pub(super) fn closed(
        &mut self,
        now: Instant,
        connection: u64,
        host: &str,
        requests: u32,
        why: End,
    ) -> Result<(), Error> {
        let (at, why) = (now.as_micros(), why.name());
        self.write(|out| {
            writeln!(
                out,
                "{{\"at\":{at},\"event\":\"close\",\"connection\":{connection},\
                 \"host\":\"{host}\",\"requests\":{requests},\"why\":\"{why}\"}}"
            )
        })
    }

    /// Writes the buffered lines if the last write was long enough ago.
    pub(super) fn turn(&mut self, now: Instant) -> Result<(), Error> {
        if now.since(self.flushed) < FLUSH_EVERY {
            return Ok(());
        }
        self.flushed = now;
        self.write(Write::flush)
    }

    fn write(
        &mut self,
        line: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        match &mut self.out {
            Some((path, out)) => line(out).map_err(|source| Error::File(path.clone(), source)),
            None => Ok(()),
        }
    }
}
