//! The job that reads a sitemap or a feed: undoing the codings and parsing may take longer than a
//! turn.
//!
//! Cost: some 200 MB a second, and what `crate::sitemap` states in memory.

use crate::http::coding::{Coding, DecodeLimits, Decoder, State};
use crate::sitemap::{self, Flaw, Limits, Listing};
use smallvec::SmallVec;

/// Reads a sitemap or a feed.
#[derive(Debug)]
pub struct ListJob {
    /// The reply, whose body begins at `start`.
    pub(super) reply: Vec<u8>,
    pub(super) start: usize,
    pub(super) codings: SmallVec<[Coding; 3]>,
    pub(super) charset: Option<String>,
    pub(super) limits: (Limits, DecodeLimits),
}

/// The result of a [`ListJob`].
#[derive(Debug)]
pub struct ListDone {
    pub(super) reply: Vec<u8>,
    pub(super) listing: Listing,
}

impl ListJob {
    /// Does the work.
    pub fn run(self) -> ListDone {
        let Self { reply, start, codings, charset, limits: (limits, mut coding) } = self;
        let body = &reply[start..];
        let mut text = Vec::new();
        let mut is_cut = false;
        // The reader undoes gzip itself, piece by piece.
        let is_plain = codings.is_empty() || *codings == [Coding::Gzip];
        if !is_plain {
            coding.decoded_bytes_max = coding.decoded_bytes_max.min(limits.bytes + 1);
            let mut decoder = Decoder::new(coding);
            decoder.begin(&codings);
            let decoded = decoder.decode(body, true, &mut text, usize::MAX);
            is_cut = matches!(decoded.state, State::Broken(_) | State::CutShort | State::TooLarge);
        }
        let body = if is_plain { body } else { &text };
        let mut listing = sitemap::read(body, charset.as_deref(), &limits);
        if is_cut {
            listing.flaw = listing.flaw.or(Some(Flaw::EndsEarly));
        }
        ListDone { reply, listing }
    }
}
