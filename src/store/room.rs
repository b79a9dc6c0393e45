//! Whether a disk that was full has room again for what it had no room for.
//!
//! Small things may fit where a page does not: a crawl that took the first small thing that fits
//! for room would ask servers for the same pages over and over, to throw them away. So as many
//! bytes as the last capture needed are written to a file of their own, and removed.
//!
//! Cost: a write of that size, once a look.

use crate::ground::disk::{self, Disk};

/// Its name; whoever finds it may remove it.
pub(super) const PROBE: &str = "warc/probe";
const PIECE_BYTES: usize = 64 << 10;

/// Tries to write so many bytes.
///
/// # Errors
/// The disk's, if there is no room for them, or it has other trouble.
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

/// Removes what is left of a probe.
///
/// # Errors
/// The disk's.
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
