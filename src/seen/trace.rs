//! The trace of a crawl: the stream of URLs in the order in which they are discovered.
//!
//! The hit rate of a cache of known URLs depends on the order of links; a trace records that order
//! for replays. For each scanned page, and each redirect, it contains the time, server and host,
//! and the number of connections; then each link of the page that is in scope, in the order of the
//! page and with duplicates, before any test of whether it is known. Links out of scope are never
//! tested, and not recorded.
//!
//! ```text
//! file   = opening group*                     frames, see crate::ground::frame; the role is Trace
//! group  = frame of kind 1
//! payload = time us u64, server u32, host u32, busy u16, parked u16, link*
//! link   = fingerprint u64, host u32
//! ```
//!
//! All numbers are little-endian. A host is recorded as the low 32 bits of its keyed hash: equal
//! hosts have equal numbers, and the chance that two of a thousand hosts share a number is one in
//! ten thousand.
//!
//! Laws: a file is valid up to some group; what follows it (a torn end, changed bytes) is reported
//! with its offset. No length in the file is trusted beyond that of the longest frame.
//! Cost: 29 bytes of disk a page and 12 a link.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::frame::{self, Flaw, Role};
use crate::url::Fingerprint;
use std::fmt;

/// The kind of frames that contain a page with its links.
const GROUP: u8 = 1;
/// The length of a page without its links, in bytes.
const PAGE_BYTES: usize = 20;
/// The length of an encoded link, in bytes.
const LINK_BYTES: usize = 12;
/// The maximum number of links in a frame, which is more than any page may have.
const LINKS_MAX: usize = (frame::PAYLOAD_BYTES_MAX - PAGE_BYTES) / LINK_BYTES;

/// The data of a page without its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The time since the crawl began, in microseconds.
    pub time_us: u64,
    /// The number of the server that the page came from.
    pub server: u32,
    /// The hash of the page's host.
    pub host: u32,
    /// The number of connections that are fetching, that is, of servers crawled in parallel.
    pub busy: u16,
    /// The number of idle connections kept open between visits.
    pub parked: u16,
}

/// A link of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The fingerprint of the deduplication key of its URL.
    pub fingerprint: Fingerprint,
    /// The hash of the URL's host.
    pub host: u32,
}

/// Encodes a trace, page by page.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The encoded current page with its links.
    group: Vec<u8>,
}

impl Writer {
    /// Creates a writer for the trace of the crawl with this number.
    pub fn new(crawl: u64) -> Self {
        let mut bytes = Vec::new();
        frame::push_opening(Role::Trace, crawl, &mut bytes);
        Self { bytes, group: Vec::new() }
    }

    /// Begins a page; [`Writer::link`] and [`Writer::end`] follow.
    pub fn begin(&mut self, page: &Page) {
        assert!(self.group.is_empty(), "the page before is ended");
        self.group.put_u64(page.time_us);
        self.group.put_u32(page.server);
        self.group.put_u32(page.host);
        self.group.put_u16(page.busy);
        self.group.put_u16(page.parked);
    }

    /// Adds a link to the current page. Links that exceed the longest frame are omitted.
    pub fn link(&mut self, link: &Link) {
        if self.group.len() < PAGE_BYTES + LINKS_MAX * LINK_BYTES {
            self.group.put_u64(link.fingerprint.0);
            self.group.put_u32(link.host);
        }
    }

    /// Ends the current page, which is then part of [`Writer::bytes`].
    pub fn end(&mut self) {
        frame::push(GROUP, &self.group, &mut self.bytes);
        self.group.clear();
    }

    /// Returns the complete pages since the last [`Writer::clear`], encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Discards the bytes of [`Writer::bytes`], after the caller has written them.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A page with its links, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The page without its links.
    pub page: Page,
    links: &'a [u8],
}

impl<'a> Group<'a> {
    /// Returns the links, in the order of the page.
    pub fn links(self) -> impl ExactSizeIterator<Item = Link> + use<'a> {
        self.links.chunks_exact(LINK_BYTES).map(|bytes| Link {
            fingerprint: Fingerprint(u64::from_le_bytes(part(bytes, 0))),
            host: u32::from_le_bytes(part(bytes, 8)),
        })
    }
}

/// Decodes a trace, in pieces of any length.
#[derive(Debug, Default)]
pub struct Reader {
    /// The bytes given to [`Reader::feed`]. Those before `at` are decoded.
    bytes: Vec<u8>,
    at: usize,
    /// The offset in the file of the byte at `at`.
    offset: u64,
}

/// The error for a file whose rest is not a valid trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The end of the valid part, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong at this offset.
    pub flaw: Flaw,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.flaw)
    }
}

impl Reader {
    /// Adds the next bytes of the file to be decoded.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next page with its links; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns what is wrong if the next bytes are not a valid page. What follows can't be trusted,
    /// so all further calls fail.
    pub fn group(&mut self) -> Result<Option<Group<'_>>, Broken> {
        if self.offset == 0 && self.open()?.is_none() {
            return Ok(None);
        }
        let broken = |flaw| Broken { offset: self.offset, flaw };
        let (frame, used) = match frame::parse(&self.bytes[self.at..], self.offset) {
            Ok(parsed) => parsed,
            Err(Flaw::Cut) => return Ok(None),
            Err(flaw) => return Err(broken(flaw)),
        };
        let group = Group::read(frame.payload).map_err(|Short| broken(Flaw::Senseless))?;
        if frame.kind != GROUP {
            return Err(broken(Flaw::Senseless));
        }
        self.at += used;
        self.offset += used as u64;
        Ok(Some(group))
    }

    /// Checks that the file is complete after all its bytes were given.
    ///
    /// # Errors
    /// Returns an error if the file doesn't end after a complete page.
    pub fn end(&self) -> Result<(), Broken> {
        let is_whole = self.at == self.bytes.len() && self.offset > 0;
        if is_whole { Ok(()) } else { Err(Broken { offset: self.offset, flaw: Flaw::Cut }) }
    }

    /// Decodes the opening of the file; `None` if more bytes are needed.
    fn open(&mut self) -> Result<Option<()>, Broken> {
        let bytes = &self.bytes[self.at..];
        // Files that are no trace are recognized by their first bytes, whatever length those
        // encode.
        let begins = |flaw| if bytes.len() < frame::OPENING_BYTES { Flaw::Cut } else { flaw };
        let parsed = frame::parse(bytes, 0).map_err(|_| begins(Flaw::Foreign(Role::Trace)));
        let opened =
            parsed.and_then(|(frame, used)| frame::crawl_of(frame, Role::Trace).map(|_| used));
        match opened {
            Ok(used) => {
                self.at += used;
                self.offset += used as u64;
                Ok(Some(()))
            }
            Err(Flaw::Cut) => Ok(None),
            Err(flaw) => Err(Broken { offset: 0, flaw }),
        }
    }
}

impl<'a> Group<'a> {
    fn read(payload: &'a [u8]) -> Result<Self, Short> {
        let mut take = Take::new(payload);
        let page = Page {
            time_us: take.u64()?,
            server: take.u32()?,
            host: take.u32()?,
            busy: take.u16()?,
            parked: take.u16()?,
        };
        let links = take.rest();
        if links.len().is_multiple_of(LINK_BYTES) { Ok(Self { page, links }) } else { Err(Short) }
    }
}

fn part<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    bytes[at..at + LEN].try_into().expect("so many bytes were asked for")
}

#[cfg(test)]
mod tests;
