//! What a node says of its progress, in an entry of its own: for limits of the whole crawl, and for
//! who watches it. Nothing that must be right depends on it.
//!
//! ```text
//! report   VERSION u8 | pages, bytes, urls, requests, lost, unsent varint
//!          | unread, messages published, bytes published varint, since version 2 | log*
//! log      gap to the partition before varint | position varint
//! ```
//!
//! Reports of version 1 are read, too, so that nodes can be upgraded one after the other. Nodes of
//! that version ignore later ones.

use super::Partition;
use super::queue::Sequence;
use crate::ground::codec::{Put, Short, Take};

/// The version of the bytes.
const VERSION: u8 = 2;
/// The oldest version that is read.
const OLDEST: u8 = 1;

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
    /// The pages that were fetched and not yet settled in a log when another node got their
    /// partition: that node may fetch them again.
    pub lost: u64,
    /// The bytes of batches that wait to be published.
    pub unsent: u64,
    /// The messages in the logs of the node's partitions that it hasn't read, as far as it knows.
    pub unread: u64,
    /// The messages that the node's last process has published, and their length in bytes.
    pub published: (u64, u64),
    /// The partitions that the node holds, in order, each with the last message that it has read.
    pub read: Vec<(Partition, Sequence)>,
}

impl Report {
    /// Returns the bytes of the report: some four for each partition.
    pub fn encode(&self) -> Box<[u8]> {
        let Self { pages, bytes, urls, requests, lost, unsent, unread, published, read } = self;
        let (messages, message_bytes) = published;
        let mut out = vec![VERSION];
        [pages, bytes, urls, requests, lost, unsent, unread, messages, message_bytes]
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
    /// The bytes are none of a known version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Short> {
        let mut take = Take::new(bytes);
        let version = take.u8()?;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Short);
        }
        let mut report = Self {
            pages: take.varint()?,
            bytes: take.varint()?,
            urls: take.varint()?,
            requests: take.varint()?,
            lost: take.varint()?,
            unsent: take.varint()?,
            ..Self::default()
        };
        if version > OLDEST {
            report.unread = take.varint()?;
            report.published = (take.varint()?, take.varint()?);
        }
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
        let (unread, published) = (70_000, (5, 1 << 40));
        let (pages, bytes, urls, requests, lost, unsent) = (1, 1 << 50, 0, 9, 3, 128);
        Report { pages, bytes, urls, requests, lost, unsent, unread, published, read }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for report in [Report::default(), report()] {
            assert_eq!(Report::decode(&report.encode()), Ok(report));
        }
    }

    /// A node that was not yet upgraded says less, and one of a later version nothing.
    #[test]
    fn reports_of_other_versions() {
        let old = [1, 1, 2, 3, 4, 5, 6, 7, 8];
        let read = vec![(Partition::new(7).expect("a partition"), Sequence(8))];
        let (pages, bytes, urls, requests, lost, unsent) = (1, 2, 3, 4, 5, 6);
        let known = Report { pages, bytes, urls, requests, lost, unsent, ..Report::default() };
        assert_eq!(Report::decode(&old), Ok(Report { read, ..known }));
        assert_eq!(Report::decode(&[3, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(Short));
        assert_eq!(Report::decode(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(Short));
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
