//! Measures the time of TLS itself: the methods of a stream without their system calls.
//!
//! Cost: two clock reads for each method call, and two for each system call.

use super::super::signal::tick;
use std::cell::Cell;
use std::io::{self, Read, Write};

/// The time that all streams of a client have spent since the last [`Spent::take`].
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The time in methods of streams, in nanoseconds.
    verbs_ns: Cell<u64>,
    /// The part of `verbs_ns` that was spent in system calls, in nanoseconds.
    calls_ns: Cell<u64>,
    /// The number of calls of streams' methods.
    verbs: Cell<u64>,
}

impl Spent {
    /// Calls `verb`, a method of a stream, and measures how long it takes.
    pub(super) fn in_verb<T>(&self, verb: impl FnOnce() -> T) -> T {
        let began = tick();
        let done = verb();
        add(&self.verbs_ns, tick() - began);
        add(&self.verbs, 1);
        done
    }

    /// Returns the time that TLS took since the last call of this method, without system calls, in
    /// nanoseconds, and the number of measured calls. Both begin again at 0.
    pub(super) fn take(&self) -> (u64, u64) {
        let (verbs_ns, calls_ns) = (self.verbs_ns.take(), self.calls_ns.take());
        (verbs_ns.saturating_sub(calls_ns), self.verbs.take())
    }
}

/// The socket of a TLS session. Its system calls are measured.
pub(super) struct Timed<'a> {
    pub(super) socket: &'a mut mio::net::TcpStream,
    pub(super) spent: &'a Spent,
}

impl Timed<'_> {
    fn call<T>(&mut self, call: impl FnOnce(&mut mio::net::TcpStream) -> T) -> T {
        let began = tick();
        let done = call(self.socket);
        add(&self.spent.calls_ns, tick() - began);
        done
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(|socket| socket.read(buffer))
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|socket| socket.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.call(|socket| socket.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn add(sum: &Cell<u64>, more: u64) {
    sum.set(sum.get() + more);
}
