//! The output queue of new URLs: their bytes, until the engine takes them.

use super::log;

/// New URLs that wait to be taken, each as a length and its bytes.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    pub(super) bytes: Vec<u8>,
    /// The position of the next URL in `bytes`.
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

    /// Returns the memory to be filled by a job, if all URLs in it were taken.
    pub(super) fn spare(&mut self) -> Option<&mut Vec<u8>> {
        let is_dry = self.is_dry();
        is_dry.then(|| {
            self.next = 0;
            self.bytes.clear();
            &mut self.bytes
        })
    }

    /// Replaces the content with the result of a job; all earlier URLs must have been taken.
    pub(super) fn fill(&mut self, found: Vec<u8>) {
        assert!(self.is_dry(), "first-timers are let out when those before were taken");
        self.bytes = found;
        self.next = 0;
    }
}
