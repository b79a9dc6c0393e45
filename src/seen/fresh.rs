//! First-timers on their way out: bytes, one behind the other, until the crawl takes them.

use super::log;

/// First-timers that wait to be taken, each a length and its bytes.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    pub(super) bytes: Vec<u8>,
    /// Where the next one begins.
    next: usize,
}

impl Fresh {
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        if self.is_dry() {
            self.bytes.clear();
            self.next = 0;
            return None;
        }
        let (len, rest) = log::split_body(&self.bytes[self.next..]).expect("a length");
        self.next += size_of::<u32>() + len;
        Some(&rest[..len])
    }

    pub(super) fn is_dry(&self) -> bool {
        self.next == self.bytes.len()
    }

    /// The memory, to be filled elsewhere; if all that was in it is taken.
    pub(super) fn spare(&mut self) -> Option<&mut Vec<u8>> {
        let is_dry = self.is_dry();
        is_dry.then(|| {
            self.next = 0;
            self.bytes.clear();
            &mut self.bytes
        })
    }

    /// Takes what was found; all from before must be taken.
    pub(super) fn fill(&mut self, found: Vec<u8>) {
        assert!(self.is_dry(), "first-timers are let out when those before were taken");
        self.bytes = found;
        self.next = 0;
    }
}
