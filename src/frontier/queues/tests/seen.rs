//! What the queues of a thread did, so that tests can show what their histories led through.

use std::cell::Cell;
use std::ops::AddAssign;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::frontier) struct Seen {
    /// Queues cut, and those of which what was cut goes before their chunks.
    pub(in crate::frontier) evictions: u32,
    pub(in crate::frontier) before: u32,
    /// All queues keep half or twice as many URLs near.
    pub(in crate::frontier) halvings: u32,
    pub(in crate::frontier) doublings: u32,
    /// Chunks taken in, those of which something is left, and those that are not next any more.
    pub(in crate::frontier) reads: u32,
    pub(in crate::frontier) parts: u32,
    pub(in crate::frontier) overtaken: u32,
    /// Chunks of which the rest is of another band.
    pub(in crate::frontier) rebanded: u32,
    /// Pieces of segments swept, and chunks moved.
    pub(in crate::frontier) sweeps: u32,
    pub(in crate::frontier) moved: u32,
}

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen {
        evictions: 0, before: 0, halvings: 0, doublings: 0, reads: 0, parts: 0, overtaken: 0,
        rebanded: 0, sweeps: 0, moved: 0,
    }) };
}

/// Counts something.
pub(in crate::frontier) fn count(what: impl FnOnce(&mut Seen)) {
    let mut seen = SEEN.get();
    what(&mut seen);
    SEEN.set(seen);
}

/// What was counted since the last call.
pub(in crate::frontier) fn take() -> Seen {
    SEEN.take()
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.evictions += other.evictions;
        self.before += other.before;
        self.halvings += other.halvings;
        self.doublings += other.doublings;
        self.reads += other.reads;
        self.parts += other.parts;
        self.overtaken += other.overtaken;
        self.rebanded += other.rebanded;
        self.sweeps += other.sweeps;
        self.moved += other.moved;
    }
}
