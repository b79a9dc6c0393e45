//! Counts the memory that the seen test takes.

use super::batch::Batch;
use super::log::Log;
use super::{ENTRY_BYTES, Known, Seen};

impl Seen {
    /// Returns the memory that known and waiting URLs take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let known_bytes = match &self.known {
            Known::Memory(memory) => {
                memory.table.bytes() + memory.log.as_ref().map_or(0, Log::waiting_bytes)
            }
            Known::Moving { table, .. } => table.bytes(),
            Known::Disk(_) => 0,
        };
        let batch_bytes = self.batch.as_ref().map_or(0, Batch::memory_bytes);
        let round = self.round.as_ref();
        let round_bytes =
            round.map_or(0, |round| round.keys() * ENTRY_BYTES + round.log.waiting_bytes());
        known_bytes + batch_bytes + round_bytes
    }
}
