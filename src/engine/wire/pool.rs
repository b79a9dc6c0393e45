//! The memory pool for received bytes: reused buffers, and a budget for the bytes held.
//!
//! A connection has a receive buffer only while it holds unread bytes. Buffers, unfinished replies
//! and pages that wait for work are charged to the budget. When most of it is held, connections are
//! paused; the rest is for replies that are finished meanwhile (see `pause`).
//!
//! Law: `held` is the sum of what was charged and not yet discharged, and every buffer and body is
//! returned. Beyond the budget, the pool keeps at most some 5 MiB of spare buffers and bodies.

/// Spare buffers and bodies, and the account of the bytes held.
#[derive(Debug)]
pub(in crate::engine) struct Pool {
    buffer_bytes: usize,
    buffers: Vec<Box<[u8]>>,
    bodies: Vec<Vec<u8>>,
    held: usize,
    held_max: usize,
}

/// The maximum number of spare buffers that the pool keeps.
const BUFFERS_SPARE: usize = 16;
/// The maximum number of spare bodies that the pool keeps.
const BODIES_SPARE: usize = 64;
/// The maximum capacity of a body that is kept as a spare, in bytes.
const BODY_SPARE_BYTES: usize = 64 << 10;

impl Pool {
    pub(in crate::engine) fn new(buffer_bytes: usize, held_max: usize) -> Self {
        Self { buffer_bytes, buffers: Vec::new(), bodies: Vec::new(), held: 0, held_max }
    }

    pub(in crate::engine) fn buffer(&mut self) -> Box<[u8]> {
        self.held += self.buffer_bytes;
        let fresh = || vec![0; self.buffer_bytes].into_boxed_slice();
        self.buffers.pop().unwrap_or_else(fresh)
    }

    pub(in crate::engine) fn give_buffer(&mut self, buffer: Box<[u8]>) {
        self.discharge(self.buffer_bytes);
        if self.buffers.len() < BUFFERS_SPARE {
            self.buffers.push(buffer);
        }
    }

    pub(in crate::engine) fn body(&mut self) -> Vec<u8> {
        self.bodies.pop().unwrap_or_default()
    }

    pub(in crate::engine) fn give_body(&mut self, mut body: Vec<u8>) {
        if self.bodies.len() < BODIES_SPARE && (1..=BODY_SPARE_BYTES).contains(&body.capacity()) {
            body.clear();
            self.bodies.push(body);
        }
    }

    pub(in crate::engine) fn charge(&mut self, bytes: usize) {
        self.held += bytes;
    }

    pub(in crate::engine) fn discharge(&mut self, bytes: usize) {
        assert!(self.held >= bytes, "no more is discharged than was charged");
        self.held -= bytes;
    }

    /// Returns whether the whole budget is held.
    pub(in crate::engine) fn is_full(&self) -> bool {
        self.held >= self.held_max
    }

    /// Returns whether no reply may begin, because three quarters of the budget are held.
    pub(in crate::engine) fn is_over(&self) -> bool {
        self.held >= self.held_max / 4 * 3
    }

    /// Returns whether paused connections may resume: the bytes held are well below the point at
    /// which connections are paused, so that they don't alternate between the two states.
    pub(in crate::engine) fn is_roomy(&self) -> bool {
        self.held < self.held_max / 8 * 5
    }

    /// Returns how many bytes are left of the budget.
    pub(in crate::engine) fn left(&self) -> usize {
        self.held_max.saturating_sub(self.held)
    }

    /// Returns the size of a receive buffer, in bytes.
    pub(in crate::engine) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    pub(in crate::engine) fn held(&self) -> usize {
        self.held
    }
}
