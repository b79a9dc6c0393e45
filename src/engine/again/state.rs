//! What a checkpoint keeps of known pages.
//!
//! The calendar gives its mark, with the pages that are too young. Pages in queues are in the
//! frontier's part, with what is known of them; how many are in the queue of each server isn't
//! kept, so that a server may get more of them once than [`super::QUEUED_MAX`]. The rates of
//! servers are written with their side tables, some in each turn; so they may be a little newer
//! than the rest, which changes estimates only.
//!
//! ```text
//! again  bar f64, granted visits f64, pages in queues varint | mean gap f64, visits varint
//!        | counts, JSON, with its length | signals varint; for each fingerprint u64, time u32
//!        | the calendar's mark
//! rates  server u32, sum of rates f64, pages u32, multiple f64 | 0 u8, or 1 u8 and trust 16
//! ```

use super::waiting::Signals;
use super::{Again, Entry, Server};
use crate::engine::status::Visits;
use crate::frontier::ServerId;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::recrawl::bar::Bar;
use crate::recrawl::known::Known;
use crate::recrawl::signals::Trust;
use crate::url::UrlRef;

/// The kind of the frame in a snapshot that has the rates of a server's pages.
pub(in crate::engine) const RATES: u8 = 45;

/// Where the URL of an entry begins.
const URL_AT: usize = 4 + 2 + 2 + 4;

impl Entry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.quality);
        out.put_u16(self.depth);
        out.extend_from_slice(&[self.requisite, self.letter]);
        out.put_u32(self.not_before);
        out.put_bytes(self.url.as_bytes());
        self.known.encode(out);
    }

    /// Returns the URL of an entry, without reading the rest.
    pub(super) fn url_of(bytes: &[u8]) -> Option<&[u8]> {
        Take::new(bytes.get(URL_AT..)?).bytes().ok()
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// The bytes are no entry.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Short> {
        let mut take = Take::new(bytes);
        let (quality, depth) = (take.u32()?, take.u16()?);
        let [requisite, letter] = take.array()?;
        let not_before = take.u32()?;
        let url = take.bytes()?;
        UrlRef::from_canonical(url).ok_or(Short)?;
        let url = std::str::from_utf8(url).map_err(|_| Short)?.into();
        let known = Known::decode(&mut take)?;
        Ok(Self { quality, depth, requisite, letter, not_before, url, known })
    }
}

impl Again {
    /// Returns what a checkpoint must keep.
    ///
    /// # Errors
    /// The disk reports an error.
    pub(in crate::engine) fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        let mark = self.calendar.mark(self.young.pages(), disk)?;
        let mut state = Vec::new();
        let (worth, granted) = self.bar.parts();
        [worth, granted].iter().for_each(|value| state.put_u64(value.to_bits()));
        state.put_varint(self.queued);
        state.put_u64(self.gap.0.to_bits());
        state.put_varint(self.gap.1);
        state.put_bytes(&serde_json::to_vec(&self.counts).expect("plain values"));
        self.signals.encode(&mut state);
        state.extend_from_slice(&mark.state);
        Ok(Mark { state, files: mark.files })
    }

    /// Restores the state that [`Self::mark`] returned.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub(in crate::engine) fn restore_mark(&mut self, state: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(state);
        let (worth, granted) = (f64::from_bits(take.u64()?), f64::from_bits(take.u64()?));
        self.bar = Bar::of_parts(worth, granted).ok_or(Flaw::Senseless)?;
        self.queued = take.varint()?;
        self.gap = (f64::from_bits(take.u64()?), take.varint()?);
        if !(0.0..=1e10).contains(&self.gap.0) {
            return Err(Flaw::Senseless);
        }
        let counts: Visits = serde_json::from_slice(take.bytes()?).map_err(|_| Flaw::Senseless)?;
        self.counts = counts;
        self.signals = Signals::decode(&mut take)?;
        self.calendar.restore_mark(take.rest())
    }

    /// Appends the rates of a server's pages, if any are known.
    pub(in crate::engine) fn encode_rates(&self, id: ServerId, out: &mut Vec<u8>) {
        if let Some(Server { rates, pages, multiple, trust, .. }) = self.servers.get(&id) {
            frame::push_with(RATES, out, |out| {
                out.put_u32(id.0);
                out.put_u64(rates.to_bits());
                out.put_u32(*pages);
                out.put_u64(multiple.to_bits());
                out.put_u8(u8::from(trust.is_some()));
                trust.iter().for_each(|trust| trust.put(out));
            });
        }
    }

    /// Restores the rates of a server's pages.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub(in crate::engine) fn restore_rates(&mut self, payload: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(payload);
        let (id, rates) = (ServerId(take.u32()?), f64::from_bits(take.u64()?));
        let (pages, multiple) = (take.u32()?, f64::from_bits(take.u64()?));
        let trust = if take.u8()? == 0 { None } else { Some(Trust::take(&mut take)?) };
        if !(0.0..=1e12).contains(&rates) || !(1.0..=super::MULTIPLE_MAX).contains(&multiple) {
            return Err(Flaw::Senseless);
        }
        let queued = self.servers.get(&id).map_or(0, |server| server.queued);
        self.servers.insert(id, Server { rates, pages, queued, multiple, trust });
        Ok(())
    }

    /// Restores the files of an earlier run.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub(in crate::engine) fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.calendar.restore_files(files, disk)
    }

    /// Writes buffered pages to the disk: all, or only what is enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call may be repeated.
    pub(in crate::engine) fn write(
        &mut self,
        all: bool,
        disk: &mut dyn Disk,
    ) -> Result<(), disk::Error> {
        self.calendar.write(all, disk)
    }

    /// Called when a checkpoint is durable. Returns the names of files that are no longer needed.
    pub(in crate::engine) fn on_durable(&mut self) -> Vec<String> {
        self.calendar.on_durable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::settings::Recrawl;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;
    use crate::recrawl::known::tests::known;
    use crate::recrawl::worth::Policy;
    use crate::url::Fingerprint;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(86_400);
    const NOW: u32 = 1_800_000_000;

    fn again() -> Again {
        let settings = Recrawl {
            policy: Policy::Greedy,
            share: 0.5,
            interval_min: DAY,
            interval_max: 90 * DAY,
            change_interval: 30 * DAY,
        };
        Again::new(settings, Some(3), NOW)
    }

    fn entry(number: u32) -> Entry {
        let url = format!("https://a.test/{number}").into();
        Entry {
            quality: 1_000_000,
            depth: 2,
            requisite: 0,
            letter: b'L',
            not_before: 3,
            url,
            known: known(),
        }
    }

    /// What was kept is restored: pages, the bar, counts, and what is known of servers.
    #[test]
    fn what_a_checkpoint_keeps_is_restored() {
        let (mut disk, mut again, id) = (Memory::default(), again(), ServerId(7));
        for number in 0..50 {
            again.file_at(NOW + number * 1_000, &entry(number));
            again.note_rate(id, None, Some(known().rate));
        }
        again.note_queued(id, true);
        again.note_gap(5_000);
        again.calendar.advance(NOW + 40_000, usize::MAX, &mut disk).expect("it works");
        again.add_young(NOW + 7_000, NOW + 9_000, &entry(77));
        again.counts.changed = 9;
        again.signals.add(Fingerprint(8), NOW, &mut again.counts);
        again.servers.entry(id).or_default().trust = Some(Trust::default());
        let mark = again.mark(&mut disk).expect("it works");
        let mut rates = Vec::new();
        again.encode_rates(id, &mut rates);
        let mut restored = self::again();
        restored.restore_files(&mark.files, &mut disk).expect("they are there");
        restored.restore_mark(&mark.state).expect("it is right");
        restored.restore_rates(&rates[frame::OVERHEAD_BYTES..]).expect("they are right");
        assert_eq!((restored.pages(), restored.queued()), (52, 1));
        // The page that was too young comes up at the time for which it was filed.
        let mut due = None;
        for _ in 0..20 {
            let mut page = Vec::new();
            let taken = restored.calendar.take(u32::MAX, &mut page);
            if taken.is_none() {
                restored.calendar.advance(u32::MAX, 1, &mut disk).expect("it works");
            }
            due = due.or(taken.filter(|_| Entry::decode(&page) == Ok(entry(77))));
        }
        assert_eq!(due, Some(NOW + 9_000));
        assert_eq!((restored.bar(), restored.gap), (again.bar(), again.gap));
        assert_eq!(restored.counts(), again.counts());
        assert_eq!(restored.rate_of(id), again.rate_of(id));
        assert_eq!(restored.servers[&id].trust, Some(Trust::default()));
        assert_eq!(restored.signals.of(Fingerprint(8)), Some(NOW));
    }

    /// Law: no bytes of an entry or of a mark panic.
    #[test]
    fn damaged_bytes_are_refused_or_read() {
        let mut bytes = Vec::new();
        entry(1).encode(&mut bytes);
        assert_eq!(Entry::decode(&bytes), Ok(entry(1)));
        assert_eq!(Entry::url_of(&bytes), Some(entry(1).url.as_bytes()));
        let mark = again().mark(&mut Memory::default()).expect("it works").state;
        let mut random = Random(5);
        for _ in 0..20_000 {
            let (mut page, mut state) = (bytes.clone(), mark.clone());
            let (at, byte) = (random.below(page.len()), random.word() as u8);
            page[at] = byte;
            page.truncate(random.below(page.len() + 1));
            let _ = Entry::decode(&page);
            let at = random.below(state.len());
            state[at] = byte;
            state.truncate(random.below(state.len() + 1));
            let _ = again().restore_mark(&state);
            let _ = again().restore_rates(&page);
        }
    }
}
