//! A pass over all pages of a calendar, to find some by what is in them: the calendar has no index.
//!
//! It goes from the slots that are due last to those that are due first, as pages do, so that none
//! slips past it. A slot's records are read frame by frame. A frame of which pages are taken out is
//! given up: the others are appended to the slot's records.
//!
//! Laws: a page that waits in a slot from the beginning of a pass to its end is looked at, perhaps
//! more than once; only those that have come up, or are overtaken, aren't. A page that isn't taken
//! out stays due when it was.
//! Cost: all frames are read: for ten million pages of 150 bytes, 1.5 GB.

use super::{Calendar, DIGITS, MARK, PAGE_UNITS, RECORDS, SLOTS, count, record};
use crate::ground::codec::{Put, Take};
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Damage, Flaw};

/// How far a pass has got.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The number of slots that are left; the last of them is being looked at.
    slots: usize,
    /// The number of its frames that are left; `None` if its records aren't looked at yet.
    frames: Option<usize>,
}

impl Default for Pass {
    fn default() -> Self {
        Self { slots: DIGITS as usize * SLOTS, frames: None }
    }
}

impl Pass {
    /// Returns whether all pages were looked at.
    pub fn is_over(&self) -> bool {
        self.slots == 0
    }
}

/// Looks at a page, which is due at that time, in seconds since 1970. Returns whether it is taken
/// out.
pub type Look<'a> = dyn FnMut(u32, &[u8]) -> bool + 'a;

impl Calendar {
    /// Goes on with a pass, with about as much work as `units_max` allows, and takes out the pages
    /// for which `look` says so. Returns the work that was done.
    ///
    /// # Errors
    /// The disk reports an error, or a frame is damaged.
    pub fn go_on(
        &mut self,
        pass: &mut Pass,
        units_max: usize,
        disk: &mut dyn Disk,
        look: &mut Look<'_>,
    ) -> Result<usize, frame::Error> {
        let mut units = 0;
        while units < units_max && pass.slots > 0 {
            let number = pass.slots - 1;
            let slot = &mut self.slots[number];
            let Some(left) = pass.frames else {
                pass.frames = Some(slot.frames.len());
                let records = std::mem::take(&mut slot.records);
                let sifted = self.sift(number, &records, look);
                let (done, kept, _) = sifted.map_err(|flaw| damage(MARK.to_owned(), 0, flaw))?;
                self.slots[number].records.extend_from_slice(&kept);
                units += done;
                continue;
            };
            // Frames that were added meanwhile are of pages that came from later slots.
            let Some(last) = left.min(slot.frames.len()).checked_sub(1) else {
                *pass = Pass { slots: number, frames: None };
                continue;
            };
            let (place, log) = (slot.frames[last], self.log.as_mut().expect("it has frames"));
            let name = log.name_of(place.segment);
            let records = log.read(place, RECORDS, disk)?;
            let sifted = self.sift(number, &records, look);
            let (done, kept, is_less) =
                sifted.map_err(|flaw| damage(name, place.offset.into(), flaw))?;
            units += done;
            if is_less {
                let slot = &mut self.slots[number];
                slot.frames.swap_remove(last);
                slot.records.extend_from_slice(&kept);
                self.log.as_mut().expect("it has frames").release(place);
                self.end_frame(number);
            }
            pass.frames = Some(last);
        }
        Ok(units)
    }

    /// Looks at records of a slot. Returns the work that was done, the records that stay, and
    /// whether those are less.
    fn sift(
        &mut self,
        number: usize,
        records: &[u8],
        look: &mut Look<'_>,
    ) -> Result<(usize, Vec<u8>, bool), Flaw> {
        let pages = count(records)?;
        if pages > self.slots[number].pages {
            return Err(Flaw::Senseless);
        }
        let units = PAGE_UNITS + records.len() + pages as usize * PAGE_UNITS;
        let (mut take, mut kept, mut taken) = (Take::new(records), Vec::new(), 0);
        while let Ok((due, page)) = record(&mut take) {
            if look(due, page) {
                taken += 1;
            } else {
                kept.put_u32(due);
                kept.put_bytes(page);
            }
        }
        self.slots[number].pages -= taken;
        self.pages -= taken;
        Ok((units, kept, taken > 0))
    }
}

fn damage(name: String, offset: u64, flaw: Flaw) -> frame::Error {
    Damage { name, offset, flaw }.into()
}
