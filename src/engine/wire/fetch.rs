//! A fetch: one URL from its request to the end of its reply.
//!
//! A fetch is created when its request is written. It waits in the flight of its connection until
//! all requests before it are answered. Then it is at the head: its time-outs run, and the bytes of
//! its reply are collected.

use super::pool::Pool;
use crate::consent::Statements;
use crate::engine::admission::quotas::Reservation;
use crate::engine::backlog::Item;
use crate::engine::outcome::Outcome;
use crate::engine::settings::Settings;
use crate::frontier::Rule;
use crate::ground::time::{Instant, Now};
use crate::http::request::Own;
use crate::http::response::Head;
use crate::repeats::Likeness;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

/// A request that was written, with the URL that it is for.
#[derive(Debug)]
pub(in crate::engine) struct Fetch {
    pub(in crate::engine) item: Item,
    /// The whole URL, with scheme and host.
    pub(in crate::engine) url: Box<str>,
    /// The first URL of the redirect chain, if this is a hop of one.
    pub(in crate::engine) chain: Option<Box<str>>,
    /// What the request has by which its server knows who asks.
    pub(in crate::engine) identity: Identity,
    /// When the request was written.
    pub(in crate::engine) sent: Now,
    /// The number of the visit among those of its server.
    pub(in crate::engine) visit: u32,
    /// The number of the request in its visit, from 1; 0 until the request is written.
    pub(in crate::engine) request: u32,
    /// Of the first request of a visit: when the visit began, and the rest that was owed since the
    /// last one.
    pub(in crate::engine) first: Option<(Instant, Duration, Rule)>,
    /// What robots.txt says of the URL.
    pub(in crate::engine) robots: ByRobots,
    /// Annotations for the fetch's line in the crawl log: what was out of the ordinary.
    pub(in crate::engine) notes: SmallVec<[&'static str; 2]>,
    /// Its part of the limits on pages, as long as it may become a page.
    pub(in crate::engine) reservation: Option<Reservation>,
    /// What the beginning of the reply shows.
    pub(in crate::engine) shown: Shown,
}

/// What a request has by which its server knows who asks, beside what all requests have.
#[derive(Debug, Default)]
pub(in crate::engine) struct Identity {
    /// The value of the Cookie field; `None` if there is none.
    pub(in crate::engine) cookies: Option<Box<[u8]>>,
    /// The fields of a signature, each after a line end; `None` if the request isn't signed.
    pub(in crate::engine) signature: Option<Box<str>>,
}

/// What the beginning of a reply shows.
#[derive(Debug, Default)]
pub(in crate::engine) struct Shown {
    /// What the page is like; `None` if that isn't known.
    pub(in crate::engine) likeness: Option<Likeness>,
    /// The URL that the page prefers, if it names another than its own.
    pub(in crate::engine) canonical: Option<Box<str>>,
    /// Why the reply could not be read, or isn't the page; `None` if there is nothing to say.
    pub(in crate::engine) evidence: Option<Box<Evidence>>,
}

impl Fetch {
    /// Returns what the request has besides its URL and the fields that are the same in all.
    pub(in crate::engine) fn own_parts(&self, settings: &Settings) -> Own<'_> {
        Own {
            cookies: self.identity.cookies.as_deref(),
            conditions: self.item.conditions(settings),
            signature: self.identity.signature.as_deref(),
        }
    }
}

/// What the robots.txt of its server says of a URL that is requested.
#[derive(Debug, Default)]
pub(in crate::engine) struct ByRobots {
    /// The line that allows it, 0 if no rule applies; `None` if the file was not consulted.
    pub(in crate::engine) line: Option<u32>,
    /// What the file says of the use of the page; `None` if that is nothing.
    pub(in crate::engine) usage: Option<Box<Statements>>,
}

/// What is wrong with a reply, and the bytes that show it.
#[derive(Debug)]
pub(in crate::engine) struct Evidence {
    /// A description of what is wrong, where the outcome alone doesn't say it.
    pub(in crate::engine) detail: Option<Cow<'static, str>>,
    /// The first bytes of the reply; empty if they aren't shown. Bytes other than printable ASCII
    /// are escaped as in C.
    pub(in crate::engine) bytes: String,
}

impl Evidence {
    pub(in crate::engine) fn of(detail: String, bytes: String) -> Box<Self> {
        Box::new(Self { detail: Some(detail.into()), bytes })
    }
}

/// A fetch that has its outcome: the request, and the reply as far as it was received.
#[derive(Debug)]
pub(in crate::engine) struct FinishedFetch<'a> {
    pub(in crate::engine) fetch: Fetch,
    /// The parsed head of the reply, if it was received in full.
    pub(in crate::engine) head: Option<&'a Head>,
    pub(in crate::engine) reply: Reply,
    pub(in crate::engine) outcome: Outcome,
    /// When the reply ended.
    pub(in crate::engine) ended: Instant,
}

impl FinishedFetch<'_> {
    /// Returns the values of all header fields with this name.
    pub(in crate::engine) fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let all = self.head.into_iter().flat_map(|head| head.fields(self.reply.head()));
        all.filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }
}

/// The bytes received of one reply.
#[derive(Debug, Default)]
pub(in crate::engine) struct Reply {
    /// The head and the body as received, with chunk framing; only the head if the body is chunked
    /// and the framing is not kept.
    pub(in crate::engine) raw: Vec<u8>,
    /// The length of the head within `raw`, in bytes; 0 until the head is complete.
    pub(in crate::engine) head_bytes: usize,
    /// The body without chunk framing; `None` if it is not chunked, so that it is the end of `raw`.
    pub(in crate::engine) unframed: Option<Vec<u8>>,
    /// The body without its content coding, if all of it is known already: see `opening`.
    pub(in crate::engine) text: Option<Vec<u8>>,
}

impl Reply {
    /// Returns whether a byte of the reply has been received.
    pub(in crate::engine) fn has_begun(&self) -> bool {
        !self.raw.is_empty()
    }

    /// Stores the head of the reply, which is `bytes`. If the body is `chunked`, it will be stored
    /// without its framing too.
    pub(in crate::engine) fn take_head(&mut self, bytes: &[u8], chunked: bool, pool: &mut Pool) {
        if self.raw.capacity() == 0 {
            self.raw = pool.body();
        }
        self.raw.extend_from_slice(bytes);
        self.head_bytes = self.raw.len();
        self.unframed = chunked.then(|| pool.body());
        pool.charge(bytes.len());
    }

    /// Stores a piece of the body. `payload` is the range of `bytes` that is not chunk framing.
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

    /// Returns the head as received.
    pub(in crate::engine) fn head(&self) -> &[u8] {
        &self.raw[..self.head_bytes]
    }

    /// Returns the body without chunk framing. Its content coding, such as gzip, is not undone.
    pub(in crate::engine) fn payload(&self) -> &[u8] {
        self.unframed.as_deref().unwrap_or(&self.raw[self.head_bytes..])
    }

    /// Takes out the buffer that has the body. Returns where in it the body begins, too.
    pub(in crate::engine) fn lend(&mut self) -> (Vec<u8>, usize) {
        match &mut self.unframed {
            Some(body) => (std::mem::take(body), 0),
            None => (std::mem::take(&mut self.raw), self.head_bytes),
        }
    }

    /// Takes back the buffer of [`Reply::lend`].
    pub(in crate::engine) fn take_back(&mut self, buffer: Vec<u8>) {
        *self.unframed.as_mut().unwrap_or(&mut self.raw) = buffer;
    }

    /// Returns the number of bytes that the reply holds in memory.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let bytes = |body: &Option<Vec<u8>>| body.as_ref().map_or(0, Vec::len);
        self.raw.len() + bytes(&self.unframed) + bytes(&self.text)
    }

    /// Takes in the body without its content coding.
    pub(super) fn take_text(&mut self, text: Vec<u8>, pool: &mut Pool) {
        pool.charge(text.len());
        self.text = Some(text);
    }

    /// Returns the memory of the reply to the pool.
    pub(in crate::engine) fn release(self, pool: &mut Pool) {
        pool.discharge(self.bytes());
        pool.give_body(self.raw);
        self.unframed.into_iter().chain(self.text).for_each(|body| pool.give_body(body));
    }
}
