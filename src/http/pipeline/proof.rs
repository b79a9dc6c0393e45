//! Proven places: when replies may be filed under the URLs of their requests.
//!
//! A reply doesn't say which request it answers: its place among the replies does (RFC 9112
//! 9.3.2). A server that sends a reply twice, leaves one out, swaps two of them, or adds bytes
//! behind a body moves what follows under other URLs, and each reply by itself looks right.
//!
//! A *proven place* is an instant at which a connection is idle with nothing outstanding: each
//! request has its whole reply, and no byte is left over. A *batch* is what is sent between two
//! proven places. A request that went alone is a batch of one; its reply is proven by its end,
//! unless bytes are left over: then it is filed as well (nothing else could have been answered),
//! but the server gets one request a connection from then on.
//!
//! A server's first batches ([`Settings::probation`]) are on probation:
//! 1. The batch is sent at once, and nothing is added to it. Two requests of the burst and of what
//!    the connection takes are kept for comparisons, but one where a batch would have no room
//!    otherwise; where there is no room for that, requests go alone.
//! 2. Its replies are held. When the last has come, one of its requests is repeated alone. If the
//!    two replies are equal ([`choose`] says which is repeated), all are filed, and the batch
//!    counts as passed. If not, all go back to the queue, and pipelining is barred.
//! 3. Equal neighbours prove nothing by one comparison: either reply may have been sent in place
//!    of the other. If a batch has such a run, the last of the run is repeated, and then the
//!    first. Only if both are equal, all are filed.
//! 4. If the connection ends first, announced or not, or if a repeat can't be sent, all go back
//!    and are asked for one by one: as many replies as went back pass before the next batch. Three
//!    such batches without a comparison between them ([`Settings::breaks_max`]) bar pipelining.
//!
//! After probation replies are filed as they come. Always, in a batch: bytes left over, bytes that
//! are no reply, a stall, or a reply that names another request ([`super::suspicious`]) mean that
//! all replies since the last proven place that are not filed yet go back, no request is blamed,
//! and pipelining is barred.
//!
//! Laws: on probation no reply is filed that was not followed by an equal comparison, and none of
//! a batch with equal neighbours without two. What goes back is asked for alone, so each batch
//! costs a request at most one repeat.
//! The limit: a swap that begins after probation and bears none of these signs is not noticed. Nor
//! is one within probation that spares the repeated requests, or whose replies are all equal; nor a
//! second copy of the reply to a request that went alone, if it comes so late that the next
//! request has been sent.
//! Cost: constant time and 12 bytes a connection; three repeated requests a server, six if its
//! batches have equal neighbours (a site whose links all lead to the same 404 page).

#[cfg(test)]
mod tests;

use super::{Learnt, Settings};

/// How far a server is trusted to answer in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// So many of its batches were compared and equal.
    Passed(u8),
    /// It gets one request at a time, for good.
    OneByOne,
    /// It gets one request a connection, for good.
    OnePerConnection,
}

impl Default for Trust {
    fn default() -> Self {
        Self::Passed(0)
    }
}

impl Trust {
    /// As a byte of the state on disk: 0 and 1 mean what they did when it was only known whether
    /// pipelining is barred.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Passed(0) => 0,
            Self::OneByOne => 1,
            Self::OnePerConnection => u8::MAX,
            Self::Passed(batches) => batches.saturating_add(1).min(u8::MAX - 1),
        }
    }

    pub(super) fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Passed(0),
            1 => Self::OneByOne,
            u8::MAX => Self::OnePerConnection,
            code => Self::Passed(code - 1),
        }
    }
}

/// What is to be done with a whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filing {
    /// It is filed.
    Now,
    /// It is held: others of its batch are outstanding.
    Hold,
    /// It is held, and one of the batch is to be compared.
    HoldAndCompare,
    /// It is the reply to the repeated request: [`super::Pipeline::compared`] says what follows.
    Compare,
}

/// What was sent on a connection since its last proven place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    sent: u32,
    /// Replies, those that are held included.
    replied: u32,
    /// Replies that are not filed yet.
    held: u32,
    /// One of them is being compared.
    is_comparing: bool,
}

impl Batch {
    pub(super) fn sent(&mut self, count: u32) {
        if !self.is_comparing {
            self.sent += count;
        }
    }

    /// A whole reply has come; `in_flight` others are outstanding.
    pub(super) fn replied(&mut self, on_probation: bool, in_flight: u32) -> Filing {
        if self.is_comparing {
            return Filing::Compare;
        }
        self.replied += 1;
        if on_probation && self.sent > 1 {
            self.held += 1;
            return if in_flight == 0 { Filing::HoldAndCompare } else { Filing::Hold };
        }
        if in_flight == 0 {
            *self = Self::default();
        }
        Filing::Now
    }

    /// Replies that are not filed yet.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    pub(super) fn is_comparing(&self) -> bool {
        self.is_comparing
    }

    pub(super) fn compares(&mut self) {
        self.is_comparing = true;
    }

    /// Whether more than one request was sent since the last proven place.
    pub(super) fn is_deep(&self) -> bool {
        self.sent > 1 || self.is_comparing
    }

    /// Whether the reply that comes next is behind another of its batch.
    pub(super) fn is_behind(&self) -> bool {
        self.replied > 0
    }
}

impl Learnt {
    /// Whether batches of this server are held until one of them has been compared.
    pub(super) fn is_on_probation(&self, settings: &Settings) -> bool {
        matches!(self.trust, Trust::Passed(batches) if batches < settings.probation)
    }

    /// A batch was compared.
    pub(super) fn is_compared(&mut self, equal: bool) {
        self.trust = match self.trust {
            Trust::Passed(batches) if equal => Trust::Passed(batches.saturating_add(1)),
            Trust::Passed(_) => Trust::OneByOne,
            barred => barred,
        };
    }
}

/// Which reply of a batch is compared, and which one after it, when `passed` batches have been.
/// `repeats` says of each whether its content is that of the one before it.
///
/// Of a run of equal replies its last and its first: if one of them was sent in place of the
/// others, the other end differs from it. Without a run by turns the last, the first and one in
/// the middle, for a swap.
pub fn choose(passed: u8, repeats: &[bool]) -> (usize, Option<usize>) {
    let last = repeats.len().saturating_sub(1);
    let turn = passed % 3;
    let found = match turn {
        1 => repeats.iter().position(|repeats| *repeats),
        _ => repeats.iter().rposition(|repeats| *repeats),
    };
    let Some(within) = found else {
        return ([last, 0, last / 2][usize::from(turn)], None);
    };
    let behind = repeats[within..].iter().position(|repeats| !repeats);
    let first = repeats[..within].iter().rposition(|repeats| !repeats);
    (behind.map_or(last, |count| within + count - 1), Some(first.unwrap_or(0)))
}
