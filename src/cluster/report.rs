//! What a node says of its progress, in an entry of its own: for limits of the whole crawl, and for
//! who watches it. Nothing that must be right depends on it.
//!
//! ```text
//! report   VERSION u8 | pages, bytes, urls, requests, lost, unsent varint | log*
//! log      gap to the partition before varint | position varint
//! ```

use super::Partition;
use super::queue::Sequence;
use crate::ground::codec::{Put, Short, Take};

/// The version of the bytes.
const VERSION: u8 = 1;

/// The progress of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The pages that this job directory's processes have fetched.
    pub pages: u64,
    /// The bytes that they have received.
    pub bytes: u64,
    /// The URLs that wait at this node's servers.
    pub urls: u64,
    /// The requests that they have sent.
    pub requests: u64,
    /// The pages that were fetched and not yet settled in a log when their partition was lost: the
    /// next owner fetches them again.
    pub lost: u64,
    /// The bytes of batches that wait to be published.
    pub unsent: u64,
    /// The partitions that the node holds, in order, each with the last message that it has read.
    pub read: Vec<(Partition, Sequence)>,
}

impl Report {
    /// Returns the bytes of the report: some four for each partition.
    pub fn encode(&self) -> Box<[u8]> {
        let Self { pages, bytes, urls, requests, lost, unsent, read } = self;
        let mut out = vec![VERSION];
        [pages, bytes, urls, requests, lost, unsent]
            .iter()
            .for_each(|value| out.put_varint(**value));
        let mut next = 0;
        for (partition, position) in read {
            out.put_varint(u64::from(partition.number()) - next);
            out.put_varint(position.0);
            next = u64::from(partition.number()) + 1;
        }
        out.into()
    }

    /// Reads a report.
    ///
    /// # Errors
    /// The bytes are none of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Short> {
        let mut take = Take::new(bytes);
        if take.u8()? != VERSION {
            return Err(Short);
        }
        let mut report = Self {
            pages: take.varint()?,
            bytes: take.varint()?,
            urls: take.varint()?,
            requests: take.varint()?,
            lost: take.varint()?,
            unsent: take.varint()?,
            read: Vec::new(),
        };
        let mut next = 0_u64;
        while !take.is_empty() {
            let number = next.checked_add(take.varint()?).ok_or(Short)?;
            let partition = u16::try_from(number).ok().and_then(Partition::new).ok_or(Short)?;
            report.read.push((partition, Sequence(take.varint()?)));
            next = number + 1;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn report() -> Report {
        let log = |(number, position): (u16, u64)| {
            (Partition::new(number).expect("a partition"), Sequence(position))
        };
        let read = [(0, 7), (1, 0), (500, 1 << 40), (1_023, u64::MAX)].map(log).to_vec();
        Report { pages: 1, bytes: 1 << 50, urls: 0, requests: 9, lost: 3, unsent: 128, read }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for report in [Report::default(), report()] {
            assert_eq!(Report::decode(&report.encode()), Ok(report));
        }
    }

    /// Law: no bytes panic, and what is read is written as it was.
    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random(7);
        for _ in 0..20_000 {
            let mut bytes = report().encode();
            for _ in 0..=random.below(3_usize) {
                let at = random.below(bytes.len());
                bytes[at] = random.word() as u8;
            }
            let cut = random.below(bytes.len() + 1);
            if let Ok(report) = Report::decode(&bytes[..cut]) {
                assert_eq!(Report::decode(&report.encode()), Ok(report));
            }
        }
    }
}
