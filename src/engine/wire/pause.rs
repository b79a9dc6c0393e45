//! Pausing: while replies hold more memory than their budget, connections are not read.
//!
//! The *pool* is the memory that replies and buffers of all connections share. A paused connection
//! is not read, so its bytes stay in the kernel, and TCP makes the server wait.
//!
//! Law: while the budget is exceeded, one connection that holds a part of a reply may read on, so
//! that the crawl always makes progress.

use super::conn::Phase;
use crate::engine::Engine;
use crate::engine::contract::Action;
use crate::engine::ledger::Work;
use std::time::Duration;

/// The cost of a byte of a TLS handshake, in units of work (see `ledger`). It is more than one,
/// since each byte may be a TLS record of its own.
const SECURED_BYTE_UNITS: usize = 4;
/// The time after which a connection that may read although the budget is exceeded loses that
/// right, if it receives no byte.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

impl Engine {
    /// Decides whether a connection must be paused. While the memory budget is exceeded, every
    /// connection is, except one that holds bytes already: finishing its reply frees memory.
    pub(super) fn must_pause(&mut self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        if conn.timeouts.paused.is_some() {
            return true;
        }
        let parked = matches!(conn.phase, Phase::Parked { .. });
        if parked || !self.wire.pool.is_over() || self.wire.privileged == Some(slot) {
            return false;
        }
        if conn.holds() && self.is_privilege_free() {
            self.wire.privileged = Some(slot);
            return false;
        }
        true
    }

    /// Sets how many bytes the TLS handshake of a connection holds. They are charged to the pool,
    /// like those of replies. When the budget is exceeded, the handshake is paused, and its
    /// time-out frees them in the end.
    pub(in crate::engine) fn hold_handshake(&mut self, slot: u32, bytes: usize) {
        let held = &mut self.wire.conns.get_mut(slot).peer.handshake_bytes;
        let before = std::mem::replace(held, bytes);
        self.turn.charge(Work::Secured, SECURED_BYTE_UNITS * bytes.saturating_sub(before));
        self.wire.pool.discharge(before);
        self.wire.pool.charge(bytes);
        if bytes > before && self.wire.pool.is_over() {
            self.pause(slot);
        }
    }

    /// Returns whether the right to read past the budget is free: no connection has it, or the one
    /// that has it is silent.
    fn is_privilege_free(&self) -> bool {
        self.wire.privileged.is_none_or(|slot| {
            self.wire.conn(slot).timeouts.last_byte + SILENCE_MAX <= self.turn.at()
        })
    }

    pub(super) fn pause(&mut self, slot: u32) {
        let now = self.turn.at();
        let timeouts = &mut self.wire.conns.get_mut(slot).timeouts;
        if timeouts.paused.is_none() {
            timeouts.paused = Some(now);
            self.wire.paused.push(slot);
            self.counts.pauses += 1;
            self.turn.act(Action::Pause(self.wire.conns.id(slot)));
        }
    }

    /// Resumes paused connections: all if the pool has enough memory again, else one that holds
    /// bytes.
    pub(in crate::engine) fn resume_paused(&mut self) {
        if self.wire.paused.is_empty() {
            return;
        }
        if self.wire.pool.is_roomy() {
            for slot in std::mem::take(&mut self.wire.paused) {
                self.unpause(slot);
            }
        } else if self.is_privilege_free()
            && let Some(place) =
                self.wire.paused.iter().position(|&slot| self.wire.conn(slot).holds())
        {
            let slot = self.wire.paused.remove(place);
            self.wire.privileged = Some(slot);
            self.unpause(slot);
        }
    }

    fn unpause(&mut self, slot: u32) {
        self.wire.conns.get_mut(slot).timeouts.resume(self.turn.at());
        self.turn.act(Action::Resume(self.wire.conns.id(slot)));
        self.wire.conns.arm(slot);
    }
}
