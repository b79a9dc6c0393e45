//! Writes the trace: the stream of discovered URLs, from which `sted cache` replays caches.
//!
//! It is off by default. Bytes are buffered until there are enough for an append, and at the end of
//! the crawl. They are never synced, so a crash may cost a trace its end, which its reader detects.
//! A resumed crawl begins another file. Pages that are processed again are in it again.

use crate::engine::Engine;
use crate::engine::wire::Fetch;
use crate::ground::disk::{Disk, Error};
use crate::seen::trace::{Link, Page, Writer};
use crate::url::{Fingerprint, Fingerprinter, UrlRef};

/// The number of buffered bytes from which the buffer is written to disk.
const APPEND_BYTES: usize = 256 << 10;

/// A trace that is being written to a file.
#[derive(Debug)]
pub(in crate::engine) struct Trace {
    writer: Writer,
    /// The name of the trace's file.
    name: String,
    hasher: Fingerprinter,
    /// The host of the last link, and its hash. It is kept since most links lead to the same host
    /// as the link before.
    last: (Box<str>, u32),
}

impl Trace {
    /// Begins a new trace file: `trace`, or the first of `trace-2`, `trace-3` and so on that
    /// doesn't exist.
    pub(super) fn begin(hasher: Fingerprinter, disk: &mut dyn Disk) -> Result<Self, Error> {
        let mut name = "trace".to_owned();
        let mut number = 1_u64;
        while disk.len(&name)?.is_some() {
            number += 1;
            name = format!("trace-{number}");
        }
        let last = ("".into(), hash(hasher, ""));
        Ok(Self { writer: Writer::new(hasher.of(b"crawl").0), name, hasher, last })
    }

    fn host(&mut self, host: &str) -> u32 {
        if *self.last.0 != *host {
            self.last = (host.into(), hash(self.hasher, host));
        }
        self.last.1
    }

    /// Adds a link to the trace, found on the page that was begun last.
    pub(in crate::engine) fn link(&mut self, url: UrlRef<'_>, fingerprint: Fingerprint) {
        let host = self.host(url.host());
        self.writer.link(&Link { fingerprint, host });
    }
}

/// Returns the lower half of the keyed hash of a host.
fn hash(hasher: Fingerprinter, host: &str) -> u32 {
    (hasher.of(host.as_bytes()).0 & u64::from(u32::MAX)) as u32
}

impl Engine {
    /// Begins a page in the trace, if there is a trace.
    pub(in crate::engine) fn trace_page(&mut self, fetch: &Fetch) {
        if self.admission.trace.is_none() {
            return;
        }
        let url = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let server = self.server_of(url);
        let narrow = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let (busy, parked) = (narrow(self.wire.conns().busy()), narrow(self.wire.conns().parked()));
        let time_us = u64::try_from(self.elapsed().as_micros()).unwrap_or(u64::MAX);
        let trace = self.admission.trace.as_mut().expect("just looked");
        let host = trace.host(url.host());
        trace.writer.begin(&Page { time_us, server: server.0, host, busy, parked });
    }

    /// Ends the page in the trace. Writes the buffer to disk if it holds enough.
    pub(in crate::engine) fn end_traced_page(&mut self) {
        if let Some(trace) = &mut self.admission.trace {
            trace.writer.end();
            if trace.writer.bytes().len() >= APPEND_BYTES && !self.storage.is_paused() {
                self.write_trace();
            }
        }
    }

    /// Writes the buffer of the trace to disk.
    pub(in crate::engine) fn write_trace(&mut self) {
        let trace = self.admission.trace.as_mut();
        let Some(trace) = trace.filter(|it| !it.writer.bytes().is_empty()) else { return };
        match self.storage.disk().append(&trace.name, trace.writer.bytes()) {
            Ok(()) => trace.writer.clear(),
            Err(error) => {
                // The file is complete so far, and would not be with a gap, so after an error the
                // trace ends here. But a full disk takes no bytes: the buffer is written after the
                // pause.
                if !error.is_full() {
                    self.admission.trace = None;
                }
                self.on_disk_error(error);
            }
        }
    }
}
