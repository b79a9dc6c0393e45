//! Memory for received bytes: buffers that go round, and a budget for what is held.
//!
//! A connection has a receive buffer only while bytes of it are unread; an idle one has none.
//! Buffers, unfinished replies and pages waiting for work are held against a budget; past it
//! connections are paused, all but one, so that the crawl always gets on.
//! Law: buffers and bodies lent out come back; `held` is the sum of what was charged and not
//! yet discharged. Spares are few: beyond the budget the pool keeps some 5 MiB.

/// Spare buffers and the account of held bytes.
#[derive(Debug)]
pub(in crate::engine) struct Pool {
    buffer_bytes: usize,
    buffers: Vec<Box<[u8]>>,
    bodies: Vec<Vec<u8>>,
    held: usize,
    held_max: usize,
}

/// Spare buffers kept.
const BUFFERS_SPARE: usize = 16;
/// Spare bodies kept.
const BODIES_SPARE: usize = 64;
/// A body that has grown past this is not kept as a spare.
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

    /// Whether reading must wait.
    pub(in crate::engine) fn is_over(&self) -> bool {
        self.held >= self.held_max
    }

    /// Whether paused connections may go on: some way below the budget, so as not to flutter.
    pub(in crate::engine) fn is_roomy(&self) -> bool {
        self.held < self.held_max / 4 * 3
    }

    pub(in crate::engine) fn held(&self) -> usize {
        self.held
    }
}
