//! The output queue of new URLs: their bytes, until the engine takes them.

use super::log;

/// New URLs that wait to be taken by the engine, each as a length and its bytes.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    pub(super) bytes: Vec<u8>,
    /// The position in `bytes` of the URL that is taken next.
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

    /// Returns the memory for a job to fill, if all URLs in it were taken; otherwise `None`.
    pub(super) fn spare(&mut self) -> Option<&mut Vec<u8>> {
        let is_dry = self.is_dry();
        is_dry.then(|| {
            self.next = 0;
            self.bytes.clear();
            &mut self.bytes
        })
    }

    /// Replaces the content with the URLs that a job found. All earlier URLs must have been taken.
    pub(super) fn fill(&mut self, found: Vec<u8>) {
        assert!(self.is_dry(), "first-timers are let out when those before were taken");
        self.bytes = found;
        self.next = 0;
    }
}
