//! Proven points: decides when replies may be filed under the URLs of their requests.
//!
//! A reply doesn't say which request it answers; its position among the replies does (RFC 9112
//! 9.3.2). If a server sends a reply twice, leaves one out, swaps two of them, or adds bytes after
//! a body, the replies after it are assigned to the wrong URLs, although each one looks correct by
//! itself.
//!
//! A *proven point* is an instant at which a connection is idle with nothing outstanding: each
//! request has its whole reply, and no byte is left over. A *batch* is what is sent between two
//! proven points. A request that was sent alone is a batch of one; its reply is proven once it is
//! complete. If bytes are left over after it, it is filed as well, because no other request could
//! have been answered, but the server gets one request a connection from then on.
//!
//! A server's first batches ([`Settings::probation`]) are on probation:
//! 1. The batch is sent at once, and nothing is added to it. Of the requests that burst and
//!    connection allow, two are reserved for comparisons, or one if a batch would not fit
//!    otherwise. If there is no room for that, requests are sent one at a time.
//! 2. Its replies are held. When the last one is complete, one request of the batch is repeated
//!    alone. If the two replies are equal ([`choose`] says which request is repeated), all are
//!    filed, and the batch has passed. If not, all requests go back to the queue, and pipelining is
//!    disabled.
//! 3. One comparison proves nothing about equal neighbours, because either reply may have been sent
//!    in place of the other. If a batch has such a run, its last reply is compared, and then its
//!    first. The batch is filed only if both are equal. Even then a copy may be on its way: if all
//!    replies are equal, it passes for the reply to a repeated request, and that one for the reply
//!    to the next request. So nothing more is sent on this connection.
//! 4. If the connection ends before that, announced or not, or if a repeat can't be sent, all
//!    requests go back and are sent one at a time: as many replies as requests went back must
//!    complete before the next batch. Three such batches without a comparison between them
//!    ([`Settings::breaks_max`]) disable pipelining.
//!
//! After probation replies are filed on arrival. At any time, leftover bytes, bytes that are no
//! reply, a timeout, or a reply that names another request ([`super::suspicious`]) in a batch have
//! this effect: all requests since the last proven point whose replies are not filed yet go back,
//! none is blamed, and pipelining is disabled.
//!
//! Laws: on probation no reply is filed without a later comparison that was equal, and no reply of
//! a batch with equal neighbours without two. Requests that go back are sent alone, so each batch
//! repeats a request at most once. Limits: a swap that begins after probation and shows none of
//! these signs is not noticed. Neither is one during probation that spares the repeated requests,
//! or whose replies are all equal; nor a second copy of the reply to a request that was sent alone,
//! if it arrives after the next request was sent.
//! Cost: constant time and 12 bytes a connection; three repeated requests a server, six if its
//! batches have equal neighbours (a site whose links all lead to the same 404 page).

#[cfg(test)]
mod tests;

use super::{Learnt, Settings};

/// How far a server is trusted to send its replies in the order of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// So many batches of this server were compared, and the replies were equal.
    Passed(u8),
    /// The server gets one request at a time, permanently.
    OneByOne,
    /// The server gets one request a connection, permanently.
    OnePerConnection,
}

impl Default for Trust {
    fn default() -> Self {
        Self::Passed(0)
    }
}

impl Trust {
    /// Encodes this trust as one byte for the state on disk. 0 and 1 keep the meaning they had when
    /// that byte only said whether pipelining is disabled.
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

/// What to do with a complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filing {
    /// File the reply now.
    Now,
    /// Hold the reply: other replies of its batch are outstanding.
    Hold,
    /// Hold the reply, and begin the comparison of its batch.
    HoldAndCompare,
    /// Compare the reply: it is the one to the repeated request. See [`super::Pipeline::compared`].
    Compare,
}

/// The requests sent on a connection since its last proven point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    sent: u32,
    /// The number of complete replies to this batch, including held ones.
    replied: u32,
    /// The number of complete replies that are held, that is, not filed yet.
    held: u32,
    /// True while the repeated request of a comparison is in flight.
    is_comparing: bool,
    /// True from the second comparison on: the batch has equal neighbours.
    is_compared_twice: bool,
}

impl Batch {
    pub(super) fn sent(&mut self, count: u32) {
        if !self.is_comparing {
            self.sent += count;
        }
    }

    /// Records a complete reply, and returns what to do with it. `in_flight` other requests are
    /// outstanding.
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

    /// Returns the number of complete replies that are not filed yet.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    pub(super) fn is_comparing(&self) -> bool {
        self.is_comparing
    }

    pub(super) fn begin_comparison(&mut self) {
        self.is_compared_twice |= self.is_comparing;
        self.is_comparing = true;
    }

    /// Returns whether a copy of one of the replies may still be on its way, although the batch has
    /// passed: then two of them were compared, because neighbours were equal.
    pub(super) fn may_have_copies(&self) -> bool {
        self.is_compared_twice
    }

    /// Returns whether more than one request was sent since the last proven point.
    pub(super) fn is_deep(&self) -> bool {
        self.sent > 1 || self.is_comparing
    }

    /// Returns whether another reply of the same batch came before the next reply.
    pub(super) fn is_behind(&self) -> bool {
        self.replied > 0
    }
}

impl Learnt {
    /// Returns whether the batches of this server are held until one of their replies was compared.
    pub(super) fn is_on_probation(&self, settings: &Settings) -> bool {
        matches!(self.trust, Trust::Passed(batches) if batches < settings.probation)
    }

    /// Records the result of comparing a batch: whether the replies were equal.
    pub(super) fn is_compared(&mut self, equal: bool) {
        self.trust = match self.trust {
            Trust::Passed(batches) if equal => Trust::Passed(batches.saturating_add(1)),
            Trust::Passed(_) => Trust::OneByOne,
            disabled => disabled,
        };
    }
}

/// Chooses which reply of a batch is compared, and which one after it (`None`: only one). Both are
/// indexes into the batch. `passed` batches of the server were equal before. `repeats` says of each
/// reply whether its content equals that of the reply before it.
///
/// Of a run of equal replies the last and the first are chosen: if one of them was sent in place of
/// the others, the other end differs from it. Without a run the last, the first and the middle one
/// take turns, to detect a swap.
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
