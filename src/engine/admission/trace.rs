//! The trace of discovered URLs: written down as pages are gone through, for replays of caches.
//!
//! Off by default. Bytes wait in memory until there are enough for an append, and are written at
//! the end; they are never synced: a crash may cost a trace its end, and the trace says where. A
//! crawl that goes on begins another file, in which pages that are gone through again are again.

use crate::engine::Engine;
use crate::engine::wire::Fetch;
use crate::ground::disk::{Disk, Error};
use crate::seen::trace::{Link, Page, Writer};
use crate::url::{Fingerprint, Fingerprinter, UrlRef};

/// Bytes that wait for an append, and somewhat more.
const APPEND_BYTES: usize = 256 << 10;

/// A trace under way.
#[derive(Debug)]
pub(in crate::engine) struct Trace {
    writer: Writer,
    /// Its file.
    name: String,
    hasher: Fingerprinter,
    /// The host of the last link and its hash: most links stay where they are.
    last: (Box<str>, u32),
}

impl Trace {
    /// A new file: `trace`, or the first of `trace-2`, `trace-3` and so on that is not there.
    pub(in crate::engine) fn begin(
        hasher: Fingerprinter,
        disk: &mut dyn Disk,
    ) -> Result<Self, Error> {
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

    /// Adds a link of the page that was begun.
    pub(in crate::engine) fn link(&mut self, url: UrlRef<'_>, fingerprint: Fingerprint) {
        let host = self.host(url.host());
        self.writer.link(&Link { fingerprint, host });
    }
}

/// Low half of the keyed hash.
fn hash(hasher: Fingerprinter, host: &str) -> u32 {
    (hasher.of(host.as_bytes()).0 & u64::from(u32::MAX)) as u32
}

impl Engine {
    /// Begins the page under work in the trace, if there is one.
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

    /// Ends it; writes when there is enough.
    pub(in crate::engine) fn end_traced_page(&mut self) {
        if let Some(trace) = &mut self.admission.trace {
            trace.writer.end();
            if trace.writer.bytes().len() >= APPEND_BYTES && !self.storage.is_paused() {
                self.write_trace();
            }
        }
    }

    /// Writes what waits. Trouble ends the crawl, as any of the disk's does.
    pub(in crate::engine) fn write_trace(&mut self) {
        let Some(trace) =
            self.admission.trace.as_mut().filter(|trace| !trace.writer.bytes().is_empty())
        else {
            return;
        };
        match self.storage.disk().append(&trace.name, trace.writer.bytes()) {
            Ok(()) => trace.writer.clear(),
            Err(error) => {
                // What is on the disk is whole; to go on behind a gap would not be. A full disk
                // takes nothing: what waits is tried again after the pause.
                if !error.is_full() {
                    self.admission.trace = None;
                }
                self.on_disk_error(error);
            }
        }
    }
}
