//! Entries: a URL as its queue sorts it, in 16 bytes. The greater entry goes first.
//!
//! ```text
//! by arrival   first 1 bit | arrival, inverted, 47 | quality 40 | unused 8 | record 32
//! by quality   first 1 bit | quality 40 | arrival, inverted, 47 | unused 8 | record 32
//! ```
//! The bit *first* is set for URLs that go before all others. *Record* is the number of the payload
//! in memory. Arrival is inverted since an earlier URL must have a greater entry.

use super::band::{BAND_MAX, Band, band_of};
use super::records::RecordId;
use crate::ground::quality::Quality;

/// The order in which the URLs of one server leave its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First in, first out.
    Arrival,
    /// The highest quality first. URLs of equal quality are first in, first out.
    Quality,
}

/// The key that determines the place of a URL in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Whether the URL goes before all URLs of its queue that lack this flag.
    pub is_first: bool,
    /// The expected quality of the page.
    pub quality: Quality,
    /// The arrival number of the URL: how many URLs were queued up to and including it.
    pub arrival: u64,
}

impl Key {
    /// Returns the band of the URL, by which chunks on disk are ordered. It is [`BAND_MAX`] for a
    /// URL that goes first. In the order of arrival all other URLs are in band 0.
    pub(super) fn band(self, order: Order) -> Band {
        match order {
            _ if self.is_first => BAND_MAX,
            Order::Arrival => 0,
            Order::Quality => band_of(self.quality),
        }
    }
}

/// A waiting URL: its key and the record with its payload, packed into 128 bits that sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    high: u64,
    low: u64,
}

const ARRIVAL_BITS: u32 = 47;
const QUALITY_BITS: u32 = 40;
const ARRIVAL_MAX: u64 = (1 << ARRIVAL_BITS) - 1;
const QUALITY_MASK: u64 = (1 << QUALITY_BITS) - 1;
const RECORD_BITS: u32 = 32 + 8;

const _: () = assert!(Quality::MAX.millionths() <= QUALITY_MASK);

impl Entry {
    pub(super) fn new(order: Order, key: Key, record: RecordId) -> Self {
        assert!(key.arrival <= ARRIVAL_MAX, "fewer than 2^47 URLs are queued by one crawl");
        let (arrival, quality) = (ARRIVAL_MAX - key.arrival, key.quality.millionths());
        let (arrival, quality) = (u128::from(arrival), u128::from(quality));
        let rank = match order {
            Order::Arrival => arrival << QUALITY_BITS | quality,
            Order::Quality => quality << ARRIVAL_BITS | arrival,
        };
        let bits = u128::from(key.is_first) << 127 | rank << RECORD_BITS | u128::from(record.0);
        Self { high: (bits >> 64) as u64, low: bits as u64 }
    }

    pub(super) fn key(self, order: Order) -> Key {
        let rank = (u128::from(self.high) << 64 | u128::from(self.low)) >> RECORD_BITS;
        let (arrival, quality) = match order {
            Order::Arrival => ((rank >> QUALITY_BITS) as u64, rank as u64),
            Order::Quality => (rank as u64, (rank >> ARRIVAL_BITS) as u64),
        };
        Key {
            is_first: self.is_first(),
            quality: Quality::from_millionths(quality & QUALITY_MASK),
            arrival: ARRIVAL_MAX - (arrival & ARRIVAL_MAX),
        }
    }

    pub(super) fn record(self) -> RecordId {
        RecordId(self.low as u32)
    }

    pub(super) fn is_first(self) -> bool {
        self.high >> 63 == 1
    }

    pub(super) fn band(self, order: Order) -> Band {
        self.key(order).band(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: an entry returns the key it was made from, and entries sort in the order of the queue.
    #[test]
    fn entries_sort_as_their_keys_do() {
        let keys = [
            (true, 0, 9),
            (false, 1_000_000_000_000, 7),
            (false, 5, 3),
            (false, 5, 4),
            (false, 0, 1),
            (false, 0, ARRIVAL_MAX),
        ];
        for order in [Order::Arrival, Order::Quality] {
            let mut sorted: Vec<Entry> = Vec::new();
            for (is_first, quality, arrival) in keys {
                let key = Key { is_first, quality: Quality::from_millionths(quality), arrival };
                let entry = Entry::new(order, key, RecordId(u32::MAX - 1));
                assert_eq!((entry.key(order), entry.record()), (key, RecordId(u32::MAX - 1)));
                sorted.push(entry);
            }
            sorted.sort_unstable_by(|one, other| other.cmp(one));
            let arrivals: Vec<u64> = sorted.iter().map(|entry| entry.key(order).arrival).collect();
            match order {
                Order::Arrival => assert_eq!(arrivals, [9, 1, 3, 4, 7, ARRIVAL_MAX]),
                Order::Quality => assert_eq!(arrivals, [9, 7, 3, 4, 1, ARRIVAL_MAX]),
            }
        }
    }
}
