//! The life of one URL under way: sent, answered in order, whole or not.
//!
//! A fetch is born when its request is written, waits in its connection's flight, and becomes the
//! head of it when all before it are answered. From then on its time-outs count and the bytes of
//! its reply are collected.

use super::pool::Pool;
use crate::engine::backlog::Item;
use crate::engine::outcome::Outcome;
use crate::ground::time::{Instant, UnixTime};
use crate::http::response::Head;
use smallvec::SmallVec;
use std::ops::Range;

/// One URL under way.
#[derive(Debug)]
pub(in crate::engine) struct Fetch {
    pub(in crate::engine) item: Item,
    /// The whole URL.
    pub(in crate::engine) url: Box<str>,
    /// Of a hop: the URL that its chain of redirects began with.
    pub(in crate::engine) chain: Option<Box<str>>,
    /// What it was sent of its chain's cookies.
    pub(in crate::engine) cookies: Option<Box<[u8]>>,
    pub(in crate::engine) sent: Instant,
    pub(in crate::engine) sent_unix: UnixTime,
    /// Number of the visit it belongs to, at its server.
    pub(in crate::engine) visit: u32,
    /// What was out of the ordinary, for the annotations of its line in the crawl log.
    pub(in crate::engine) notes: SmallVec<[&'static str; 2]>,
    /// What came instead of a legible reply.
    pub(in crate::engine) evidence: Option<Box<Evidence>>,
}

/// Of a reply that can't be read: what is wrong with it, and the bytes that show it.
#[derive(Debug)]
pub(in crate::engine) struct Evidence {
    /// In words, where the outcome doesn't say it all.
    pub(in crate::engine) detail: Option<&'static str>,
    /// Printable ASCII; all else is escaped as in C.
    pub(in crate::engine) bytes: String,
}

impl Evidence {
    /// Bytes that are shown at most, before they are escaped.
    const BYTES_MAX: usize = 64;

    pub(in crate::engine) fn new(detail: Option<&'static str>, came: &[u8]) -> Self {
        let bytes = came[..came.len().min(Self::BYTES_MAX)].escape_ascii().to_string();
        Self { detail, bytes }
    }
}

/// A fetch that has its outcome: what was asked, and the reply as far as it came.
#[derive(Debug)]
pub(in crate::engine) struct Fetched<'a> {
    pub(in crate::engine) fetch: Fetch,
    /// The head of the reply, if it came whole.
    pub(in crate::engine) head: Option<&'a Head>,
    pub(in crate::engine) reply: Reply,
    pub(in crate::engine) outcome: Outcome,
    /// When it had come.
    pub(in crate::engine) ended: Instant,
}

impl Fetched<'_> {
    /// Value of a field of the head.
    pub(in crate::engine) fn field(&self, name: &str) -> Option<&[u8]> {
        self.head?.field(self.reply.head(), name)
    }

    /// Values of all fields of the head that have that name.
    pub(in crate::engine) fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let all = self.head.into_iter().flat_map(|head| head.fields(self.reply.head()));
        all.filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }
}

/// The bytes of one reply, as far as they have come.
#[derive(Debug, Default)]
pub(in crate::engine) struct Reply {
    /// Verbatim: head and body with its framing; head only where nobody wants the framing.
    pub(in crate::engine) raw: Vec<u8>,
    /// Length of the head in `raw`; 0 until it is whole.
    pub(in crate::engine) head_bytes: usize,
    /// The body without its framing, where that differs from the end of `raw`.
    pub(in crate::engine) unframed: Option<Vec<u8>>,
}

impl Reply {
    /// Whether a byte has come.
    pub(in crate::engine) fn has_begun(&self) -> bool {
        !self.raw.is_empty()
    }

    /// Takes the head.
    pub(in crate::engine) fn take_head(&mut self, bytes: &[u8], chunked: bool, pool: &mut Pool) {
        if self.raw.capacity() == 0 {
            self.raw = pool.body();
        }
        self.raw.extend_from_slice(bytes);
        self.head_bytes = self.raw.len();
        self.unframed = chunked.then(|| pool.body());
        pool.charge(bytes.len());
    }

    /// Takes a piece of the body: the bytes as they came, and which of them are payload.
    pub(in crate::engine) fn take_body(
        &mut self,
        bytes: &[u8],
        payload: Range<usize>,
        framing_wanted: bool,
        pool: &mut Pool,
    ) {
        let before = self.bytes();
        match &mut self.unframed {
            Some(unframed) => {
                unframed.extend_from_slice(&bytes[payload]);
                if framing_wanted {
                    self.raw.extend_from_slice(bytes);
                }
            }
            None => self.raw.extend_from_slice(bytes),
        }
        pool.charge(self.bytes() - before);
    }

    /// The head, verbatim.
    pub(in crate::engine) fn head(&self) -> &[u8] {
        &self.raw[..self.head_bytes]
    }

    /// The body without its framing, content coding kept.
    pub(in crate::engine) fn payload(&self) -> &[u8] {
        self.unframed.as_deref().unwrap_or(&self.raw[self.head_bytes..])
    }

    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.raw.len() + self.unframed.as_ref().map_or(0, Vec::len)
    }

    /// Gives its memory back.
    pub(in crate::engine) fn release(self, pool: &mut Pool) {
        pool.discharge(self.bytes());
        pool.give_body(self.raw);
        if let Some(unframed) = self.unframed {
            pool.give_body(unframed);
        }
    }
}
