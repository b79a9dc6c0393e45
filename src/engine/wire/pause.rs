//! Pausing: while replies hold most of their memory budget, only replies in progress are read.
//!
//! The *pool* is the memory that replies and buffers of all connections share. A paused connection
//! is not read, so its bytes stay in the kernel, and TCP makes the server wait.
//!
//! Memory is *tight* from when three quarters of the budget are held until less than five eighths
//! are. Meanwhile a connection may read only if it holds a part of a reply, which it is to finish:
//! as many as what is left of the budget suffices for (see `grants`), and one in any case, the
//! *privileged* one.
//!
//! Laws:
//! - The crawl always makes progress, since the privileged connection may read.
//! - Only the privileged connection may take more than the budget, at most one reply. If it is
//!   silent for [`SILENCE_MAX`], another one is privileged, so each connection that falls silent in
//!   the middle of a reply may leave another reply beyond the budget until it times out.
//! - Every pause ends. While memory is tight, no reply begins, and those in progress get their turn
//!   in order of waiting, so their memory is freed in the end. A server that sends slowly is waited
//!   for only if all memory is held. This lasts at most as long as its time-out for a whole fetch,
//!   which is minutes by default.
//!
//! Cost: a turn looks at [`LOOKS_MAX`] paused connections at most, and at none while nothing is
//! left of the budget.

use super::Wire;
use super::conn::{Incoming, Phase};
use super::grants::{Grants, SILENCE_MAX};
use crate::engine::Engine;
use crate::engine::contract::Action;
use crate::engine::ledger::Work;
use crate::ground::time::Instant;
use crate::http::response::Framing;
use std::collections::VecDeque;

/// The cost of a byte of a TLS handshake, in units of work (see `ledger`). It is more than one,
/// since each byte may be a TLS record of its own.
const SECURED_BYTE_UNITS: usize = 4;
/// How many bytes a connection may receive at a time, while memory is tight, of a reply whose
/// length is not known.
const PIECE_BYTES: usize = 64 << 10;
/// The maximum number of paused connections that a turn looks at. All connections may be paused, so
/// looking at all of them in each turn would be slow.
const LOOKS_MAX: usize = 128;

/// The connections that are paused, and those of the others that may read while memory is tight.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Whether memory is tight.
    is_tight: bool,
    /// The slots of paused connections that hold a part of a reply, the longest waiting first. A
    /// paused connection receives nothing, so it doesn't begin to hold anything.
    partial: VecDeque<u32>,
    /// The index in `partial` of the next connection that is considered for a grant.
    next: usize,
    /// The slots of paused connections that hold nothing, the longest waiting first.
    empty: VecDeque<u32>,
    /// The slot of the connection that may finish its reply in any case.
    privileged: Option<u32>,
    /// The connections that may read as long as the budget suffices.
    grants: Grants,
}

impl Pauses {
    /// Returns when paused connections are looked at again; `None` if there are none.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let is_any = !self.partial.is_empty() || !self.empty.is_empty();
        is_any.then(|| if self.is_tight { now + SILENCE_MAX } else { now })
    }

    /// Notes that the connection in a slot has received `bytes` bytes.
    pub(super) fn spend(&mut self, slot: u32, bytes: usize) {
        self.grants.spend(slot, bytes);
    }

    /// Notes that the reply of the connection in a slot is complete. Its next one has to wait for
    /// those that are in progress.
    pub(super) fn end_turn(&mut self, slot: u32) {
        self.privileged = self.privileged.filter(|privileged| *privileged != slot);
        self.grants.end(slot);
    }

    /// Forgets the connection in a slot, which is closed.
    pub(super) fn forget(&mut self, slot: u32, is_paused: bool) {
        self.end_turn(slot);
        if is_paused {
            self.partial.retain(|other| *other != slot);
            self.empty.retain(|other| *other != slot);
        }
    }

    /// Makes the connection in a slot the privileged one.
    fn privilege(&mut self, slot: u32) {
        self.privileged = Some(slot);
        self.grants.end(slot);
    }

    /// Takes out the paused connection that waits longest among those that hold a part of a reply.
    fn pop_partial(&mut self) -> Option<u32> {
        self.next = self.next.saturating_sub(1);
        self.partial.pop_front()
    }
}

impl Wire {
    /// Determines whether memory is tight now, so that no reply may begin. If it isn't, all grants
    /// end.
    fn update_tight(&mut self) -> bool {
        let is_tight = self.pool.is_over() || (self.pauses.is_tight && !self.pool.is_roomy());
        if !is_tight {
            self.pauses.grants = Grants::default();
        }
        self.pauses.is_tight = is_tight;
        is_tight
    }
}

impl Engine {
    /// Returns how many bytes a connection may receive, or `None` if it must be paused.
    pub(super) fn may_receive(&mut self, slot: u32) -> Option<usize> {
        let is_tight = self.wire.update_tight();
        let conn = self.wire.conn(slot);
        if conn.timeouts.paused.is_some() {
            return None;
        }
        let is_parked = matches!(conn.phase, Phase::Parked { .. });
        if is_parked || !is_tight || self.wire.pauses.privileged == Some(slot) {
            return Some(usize::MAX);
        }
        if !conn.holds() {
            return None;
        }
        let Pauses { grants, partial, .. } = &self.wire.pauses;
        if let Some(left) = grants.left(slot) {
            return Some(left);
        }
        // Of the replies in progress, one that had a grant goes first, so that replies are
        // finished. The others wait for those that were paused before them.
        if !partial.is_empty() && !grants.has(slot) {
            return None;
        }
        if partial.is_empty() && self.is_privilege_free() {
            self.wire.pauses.privilege(slot);
            return Some(usize::MAX);
        }
        self.lend(slot)
    }

    /// Gives a grant to a connection that holds a part of a reply, if what is left of the budget
    /// suffices. Returns how many bytes the connection may receive, or `None` if none.
    fn lend(&mut self, slot: u32) -> Option<usize> {
        let now = self.turn.at();
        let (bytes, factor) = self.expected_bytes(slot);
        let Wire { pool, pauses, .. } = &mut self.wire;
        pauses.grants.give(slot, (bytes, factor), pool.buffer_bytes(), pool.left(), now);
        pauses.grants.left(slot)
    }

    /// Returns how many bytes of the reply in progress of a connection are to be received next, and
    /// how many bytes of memory each of them takes.
    fn expected_bytes(&self, slot: u32) -> (usize, usize) {
        let Incoming { reader, reply } = &self.wire.conn(slot).incoming;
        let is_known = reply.head_bytes > 0 && matches!(reader.head().framing, Framing::Length(_));
        if !is_known {
            // A chunked body may be stored both with its framing and without.
            return (PIECE_BYTES, 1 + usize::from(self.wire.keeps_framing));
        }
        let most = self.settings.reply.body_bytes_max.min(reader.missing_bytes());
        (usize::try_from(most).unwrap_or(usize::MAX).max(1), 1)
    }

    /// Sets how many bytes the TLS handshake of a connection holds. They are charged to the pool,
    /// like those of replies. While memory is tight, the handshake is paused, and its time-out
    /// frees them in the end.
    pub(in crate::engine) fn hold_handshake(&mut self, slot: u32, bytes: usize) {
        let held = &mut self.wire.conns.get_mut(slot).peer.handshake_bytes;
        let before = std::mem::replace(held, bytes);
        self.turn.charge(Work::Secured, SECURED_BYTE_UNITS * bytes.saturating_sub(before));
        self.wire.pool.discharge(before);
        self.wire.pool.charge(bytes);
        if bytes > before && self.wire.update_tight() {
            self.pause(slot);
        }
    }

    /// Returns whether the privilege is free: no connection has it, or the one that has it is
    /// silent.
    fn is_privilege_free(&self) -> bool {
        self.wire.pauses.privileged.is_none_or(|slot| {
            self.wire.conn(slot).timeouts.last_byte + SILENCE_MAX <= self.turn.at()
        })
    }

    pub(super) fn pause(&mut self, slot: u32) {
        let now = self.turn.at();
        let conn = self.wire.conns.get_mut(slot);
        if conn.timeouts.paused.is_none() {
            conn.timeouts.paused = Some(now);
            let Pauses { partial, empty, .. } = &mut self.wire.pauses;
            if conn.holds() {
                partial.push_back(slot)
            } else {
                empty.push_back(slot)
            }
            self.counts.pauses += 1;
            self.turn.act(Action::Pause(self.wire.conns.id(slot)));
        }
    }

    /// Resumes paused connections: while memory is tight, those that may finish a reply; else all,
    /// some in each turn. The longest waiting are first.
    pub(in crate::engine) fn resume_paused(&mut self) {
        if self.wire.update_tight() {
            return self.resume_partial();
        }
        for _ in 0..LOOKS_MAX {
            let pauses = &mut self.wire.pauses;
            let Some(slot) = pauses.pop_partial().or_else(|| pauses.empty.pop_front()) else {
                return;
            };
            self.unpause(slot);
        }
    }

    /// Resumes paused connections that hold a part of a reply, as far as memory suffices, and one
    /// in any case if none is privileged.
    fn resume_partial(&mut self) {
        if self.wire.pauses.partial.is_empty() {
            return;
        }
        let now = self.turn.at();
        if self.is_privilege_free()
            && let Some(slot) = self.wire.pauses.pop_partial()
        {
            self.wire.pauses.privilege(slot);
            self.unpause(slot);
        }
        let Wire { conns, pauses, .. } = &mut self.wire;
        pauses.grants.end_slow(now, |slot| conns.get(slot).timeouts.last_byte);
        for _ in 0..self.wire.pauses.partial.len().min(LOOKS_MAX) {
            let Wire { pool, pauses, .. } = &self.wire;
            if !pauses.grants.has_place(pool.buffer_bytes(), pool.left()) {
                return;
            }
            let place = if pauses.next < pauses.partial.len() { pauses.next } else { 0 };
            let slot = pauses.partial[place];
            self.wire.pauses.next = place;
            if self.lend(slot).is_some() {
                self.wire.pauses.partial.remove(place);
                self.unpause(slot);
            } else {
                self.wire.pauses.next += 1;
            }
        }
    }

    fn unpause(&mut self, slot: u32) {
        self.wire.conns.get_mut(slot).timeouts.resume(self.turn.at());
        self.turn.act(Action::Resume(self.wire.conns.id(slot)));
        self.wire.conns.arm(slot);
    }
}
