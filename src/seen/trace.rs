//! The trace: the stream of URLs that a crawl discovers, as its pages bring them.
//!
//! What a cache of known URLs is worth depends on the order in which links come: this is that
//! order, for replays. For each page that was gone through for links, and each redirect: when, of
//! which server and host, with how many connections; then each of its links that is in scope, in
//! the order of the page, repeats included, before any test of whether it is known. What is out of
//! scope never gets to the test, and is not here.
//!
//! ```text
//! file   = opening group*                     frames, see crate::ground::frame; the role is Trace
//! group  = frame of kind 1
//! payload = time us u64, server u32, host u32, busy u16, parked u16, link*
//! link   = fingerprint u64, host u32
//! ```
//!
//! All numbers are little-endian. Hosts are the low 32 bits of their keyed hash: equal hosts have
//! equal numbers, and of a thousand hosts two share one with a chance of one in ten thousand. Cost
//! on disk: 29 bytes a page and 12 a link.
//!
//! Laws: a file is whole up to some group; what follows it (a torn end, changed bytes) is told with
//! its offset. No length in it is believed past that of the longest frame.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::frame::{self, Flaw, Role};
use crate::url::Fingerprint;
use std::fmt;

/// Kind of a frame that is a page with its links.
const GROUP: u8 = 1;
/// Bytes of a page beside its links.
const PAGE_BYTES: usize = 20;
/// Bytes of a link.
const LINK_BYTES: usize = 12;
/// Links that a frame has room for: more than any page may have.
const LINKS_MAX: usize = (frame::PAYLOAD_BYTES_MAX - PAGE_BYTES) / LINK_BYTES;

/// What is known of a page beside its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Since the crawl began, microseconds.
    pub time_us: u64,
    /// Number of its server.
    pub server: u32,
    /// Hash of its host.
    pub host: u32,
    /// Connections that are on a visit: servers that are drained side by side.
    pub busy: u16,
    /// Connections kept open between visits.
    pub parked: u16,
}

/// One link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Of the key that its URL is deduplicated by.
    pub fingerprint: Fingerprint,
    /// Hash of its host.
    pub host: u32,
}

/// Makes the bytes of a trace.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The page under work, its links behind it.
    group: Vec<u8>,
}

impl Writer {
    /// A trace of this crawl, that begins.
    pub fn new(crawl: u64) -> Self {
        let mut bytes = Vec::new();
        frame::push_opening(Role::Trace, crawl, &mut bytes);
        Self { bytes, group: Vec::new() }
    }

    /// Begins a page.
    pub fn begin(&mut self, page: &Page) {
        assert!(self.group.is_empty(), "the page before is ended");
        self.group.put_u64(page.time_us);
        self.group.put_u32(page.server);
        self.group.put_u32(page.host);
        self.group.put_u16(page.busy);
        self.group.put_u16(page.parked);
    }

    /// Adds a link of the page; past what a frame holds it is left out.
    pub fn link(&mut self, link: &Link) {
        if self.group.len() < PAGE_BYTES + LINKS_MAX * LINK_BYTES {
            self.group.put_u64(link.fingerprint.0);
            self.group.put_u32(link.host);
        }
    }

    /// Ends the page.
    pub fn end(&mut self) {
        frame::push(GROUP, &self.group, &mut self.bytes);
        self.group.clear();
    }

    /// Whole groups, those since the last [`Writer::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes are written.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A group as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Its page.
    pub page: Page,
    links: &'a [u8],
}

impl<'a> Group<'a> {
    /// Its links, in the order of the page.
    pub fn links(self) -> impl ExactSizeIterator<Item = Link> + use<'a> {
        self.links.chunks_exact(LINK_BYTES).map(|bytes| Link {
            fingerprint: Fingerprint(u64::from_le_bytes(part(bytes, 0))),
            host: u32::from_le_bytes(part(bytes, 8)),
        })
    }
}

/// Takes a trace apart, in pieces of any length.
#[derive(Debug, Default)]
pub struct Reader {
    /// What was fed and not taken yet begins at `at`.
    bytes: Vec<u8>,
    at: usize,
    /// Where `at` is in the file.
    offset: u64,
}

/// Why the rest of a file is no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where what is whole ends, bytes from the start of the file.
    pub offset: u64,
    /// What is wrong there.
    pub flaw: Flaw,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.flaw)
    }
}

impl Reader {
    /// Gives it the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next group; `None` if more bytes are needed.
    ///
    /// # Errors
    /// What comes is no group. What follows it can't be trusted: the error is for good.
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

    /// The file has no more bytes.
    ///
    /// # Errors
    /// It ends elsewhere than behind a group.
    pub fn end(&self) -> Result<(), Broken> {
        let is_whole = self.at == self.bytes.len() && self.offset > 0;
        if is_whole { Ok(()) } else { Err(Broken { offset: self.offset, flaw: Flaw::Cut }) }
    }

    /// Takes the opening.
    fn open(&mut self) -> Result<Option<()>, Broken> {
        let bytes = &self.bytes[self.at..];
        // Other files are told by their first bytes, not by a length that they never had.
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
