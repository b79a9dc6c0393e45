//! Checks whether a disk that was full has free space again for the data that did not fit.
//!
//! Small writes may succeed where a page does not fit. A crawl that took one for free space would
//! fetch the same pages repeatedly, only to discard them. So as many bytes as the last capture
//! needed are written to a file of their own, which is then removed.
//!
//! Cost: one write of that size for each check.

use crate::ground::disk::{self, Disk};

/// The name of the test file; it may be removed at any time.
pub(super) const PROBE: &str = "warc/probe";
const PIECE_BYTES: usize = 64 << 10;

/// Tries to write so many bytes to the test file.
///
/// # Errors
/// Returns the error of the disk if the bytes don't fit, or if the disk fails otherwise.
pub(super) fn probe(mut bytes: usize, disk: &mut dyn Disk) -> Result<(), disk::Error> {
    clear(disk)?;
    let zeros = [0; PIECE_BYTES];
    let mut written = Ok(());
    while bytes > 0 && written.is_ok() {
        let piece = bytes.min(PIECE_BYTES);
        written = disk.append(PROBE, &zeros[..piece]);
        bytes -= piece;
    }
    clear(disk)?;
    written
}

/// Removes a test file that an interrupted check left.
///
/// # Errors
/// Returns an error of the disk.
pub(super) fn clear(disk: &mut dyn Disk) -> Result<(), disk::Error> {
    if disk.len(PROBE)?.is_some() {
        disk.remove(PROBE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;

    #[test]
    fn there_is_room_or_there_is_not() {
        let mut disk = Memory::default();
        disk.append("warc/other", &[7; 1_000]).expect("there is room");
        for (room_bytes, wanted_bytes, expected) in [
            (1_000, 1, false),
            (1_100, 100, true),
            (1_100, 101, false),
            (300_000, 299_000, true),
            (300_000, 299_001, false),
            (1_000, 0, true),
        ] {
            disk.limit(Some(room_bytes), wanted_bytes % 2 == 1);
            let found = probe(wanted_bytes, &mut disk);
            assert_eq!(found.is_ok(), expected, "{wanted_bytes} of {room_bytes}: {found:?}");
            assert_eq!(disk.names(), ["warc/other"], "nothing is left behind");
        }
    }
}
