//! What the entries of the queue say, as bytes.
//!
//! The bytes come from outside: they may be those of another version, or of something else.
//! Decoding never panics, takes memory in proportion to the bytes, and accepts only whole values of
//! this version; anything else is [`Short`].

use super::settings::Settings;
use crate::cluster::queue::{Name, Revision};
use crate::ground::codec::{Put, Short, Take};
use std::time::Duration;

/// The version of the values: the first byte of each.
const VERSION: u8 = 1;
/// The highest number of a session or of its writes, which nobody reaches by counting.
const COUNT_MAX: u64 = u64::MAX / 2;

/// One life of a node in the crawl: it begins with a write of the node's entry, and ends when that
/// entry says so. Sessions of a name are numbered in order, so that whoever knows two of them knows
/// which is the later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) name: Name,
    /// 1 for the first session of this name.
    pub(super) number: u64,
}

/// The value of the crawl's entry: what all nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrawlValue {
    /// The settings of the node that created the entry.
    pub(super) settings: Settings,
    /// The *roll*: the sessions that are reckoned with, at most one of each name.
    pub(super) roll: Vec<Session>,
}

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The node wants to crawl, and waits until all others reckon with it.
    Joining,
    /// The node crawls.
    Active,
    /// The node crawls what it holds until it has released it, and takes nothing.
    Leaving,
    /// The node has released everything: the session is over.
    Left,
    /// Another node found that the session has passed: it is over.
    Over,
}

/// The value of a node's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeValue {
    /// The process: a random number.
    pub(super) incarnation: u64,
    /// The number of the session.
    pub(super) number: u64,
    /// The first session of the processes that had this one's job directory, one after the other.
    pub(super) lineage: u64,
    pub(super) state: State,
    /// The number of the write, of this process.
    pub(super) counter: u64,
    /// The revision of the roll by which the node sets its pace; zero if it isn't in the roll.
    pub(super) roll: Revision,
    /// Every taking of a partition up to this revision is at least the settling time ago.
    pub(super) settled: Revision,
    /// What the node says of its part in the end of the crawl.
    pub(super) idleness: Idleness,
}

/// What a node says of its part in the end of the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Idleness {
    /// The number of the period in which the node has nothing to do, counted from 1 in each
    /// process; 0 while it has.
    pub(super) period: u64,
    /// The agreement that the node has confirmed; 0 if there is none.
    pub(super) confirmed: u64,
    /// Whether all others had confirmed the same.
    pub(super) is_over: bool,
}

/// The value of a partition's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartitionValue {
    /// The partition has no owner.
    Free,
    /// The partition belongs to a session.
    Owned {
        owner: Session,
        /// The first epoch from which on only the owner's lineage has had the partition; zero if it
        /// is the entry's own revision.
        since: Revision,
    },
}

impl State {
    /// Whether the session of a node in this state is over.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Left | Self::Over)
    }
}

/// The owner of a partition, as its entry names it, for judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name of the node.
    pub name: Name,
    /// The number of its session: see the file's head of `member`.
    pub session: u64,
    /// The first epoch from which on only this job directory's processes have had the partition;
    /// zero if it is the entry's own revision.
    pub since: Revision,
}

/// Returns whom the value of a partition's entry names; `None` if nobody, or if it makes no sense.
pub fn owner_in(value: &[u8]) -> Option<Owner> {
    match PartitionValue::decode(value).ok()? {
        PartitionValue::Free => None,
        PartitionValue::Owned { owner: Session { name, number: session }, since } => {
            Some(Owner { name, session, since })
        }
    }
}

/// What a node's entry says of it, for who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearing {
    /// What the node does: `joining`, `active`, `leaving`, `left` or `over`.
    pub state: &'static str,
    /// Whether it has nothing to do.
    pub is_idle: bool,
}

/// Returns what the value of a node's entry says; `None` if it makes no sense.
pub fn bearing_in(value: &[u8]) -> Option<Bearing> {
    let NodeValue { state, idleness, .. } = NodeValue::decode(value).ok()?;
    let state = match state {
        State::Joining => "joining",
        State::Active => "active",
        State::Leaving => "leaving",
        State::Left => "left",
        State::Over => "over",
    };
    Some(Bearing { state, is_idle: idleness.period > 0 })
}

/// Returns the value of the crawl's entry before any node has joined.
pub fn value_of_crawl(settings: &Settings) -> Box<[u8]> {
    CrawlValue { settings: settings.clone(), roll: Vec::new() }.encode()
}

/// Returns the settings in the value of a crawl's entry, and the names of the nodes that it reckons
/// with; `None` if it makes no sense.
pub fn crawl_in(value: &[u8]) -> Option<(Settings, Vec<Name>)> {
    let CrawlValue { settings, roll } = CrawlValue::decode(value).ok()?;
    Some((settings, roll.into_iter().map(|session| session.name).collect()))
}

impl CrawlValue {
    pub(super) fn encode(&self) -> Box<[u8]> {
        let Settings { key, partitions, ttl, drift_ppm, settle, equal } = &self.settings;
        let mut out = vec![VERSION];
        out.extend_from_slice(key);
        out.put_u16(*partitions);
        [ttl, settle].into_iter().for_each(|time| out.put_varint(micros(*time)));
        out.put_u32(*drift_ppm);
        out.put_varint(equal.len() as u64);
        for (name, value) in equal {
            out.put_str(name);
            out.put_str(value);
        }
        out.put_varint(self.roll.len() as u64);
        self.roll.iter().for_each(|session| session.put(&mut out));
        out.into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Short> {
        whole(bytes, |take| {
            let (key, partitions) = (take.array()?, take.u16()?);
            let [ttl, settle] = [take.varint()?, take.varint()?].map(Duration::from_micros);
            let drift_ppm = take.u32()?;
            let (mut equal, mut roll) = (Vec::new(), Vec::new());
            for _ in 0..take.varint()? {
                equal.push((take.str()?.into(), take.str()?.into()));
            }
            for _ in 0..take.varint()? {
                roll.push(Session::take(take)?);
            }
            let settings = Settings { key, partitions, ttl, drift_ppm, settle, equal };
            Ok(Self { settings, roll })
        })
    }
}

impl NodeValue {
    pub(super) fn encode(&self) -> Box<[u8]> {
        let Self { incarnation, number, lineage, state, counter, roll, settled, idleness } = *self;
        let Idleness { period, confirmed, is_over } = idleness;
        let mut out = vec![VERSION];
        out.put_u64(incarnation);
        out.put_u8(state as u8);
        [number, lineage, counter, roll.0, settled.0, period]
            .into_iter()
            .for_each(|value| out.put_varint(value));
        out.put_u64(confirmed);
        out.put_bool(is_over);
        out.into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Short> {
        whole(bytes, |take| {
            let incarnation = take.u64()?;
            let state = match take.u8()? {
                0 => State::Joining,
                1 => State::Active,
                2 => State::Leaving,
                3 => State::Left,
                4 => State::Over,
                _ => return Err(Short),
            };
            let (number, lineage, counter) = (take.varint()?, take.varint()?, take.varint()?);
            if number.max(counter) > COUNT_MAX {
                return Err(Short);
            }
            let [roll, settled] = [take.varint()?, take.varint()?].map(Revision);
            let (period, confirmed, is_over) = (take.varint()?, take.u64()?, take.bool()?);
            let idleness = Idleness { period, confirmed, is_over };
            Ok(Self { incarnation, number, lineage, state, counter, roll, settled, idleness })
        })
    }
}

impl PartitionValue {
    pub(super) fn encode(&self) -> Box<[u8]> {
        let mut out = vec![VERSION];
        match self {
            Self::Free => out.put_bool(false),
            Self::Owned { owner, since } => {
                out.put_bool(true);
                owner.put(&mut out);
                out.put_varint(since.0);
            }
        }
        out.into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Short> {
        whole(bytes, |take| {
            if !take.bool()? {
                return Ok(Self::Free);
            }
            let owner = Session::take(take)?;
            Ok(Self::Owned { owner, since: Revision(take.varint()?) })
        })
    }
}

impl Session {
    /// Whether this is an earlier session of the same name.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.name == other.name && self.number < other.number
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_str(self.name.as_str());
        out.put_varint(self.number);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let name = Name::new(take.str()?).ok_or(Short)?;
        Ok(Self { name, number: take.varint()? })
    }
}

/// Decodes a value that must be of this version and use all bytes.
fn whole<T>(
    bytes: &[u8],
    decode: impl FnOnce(&mut Take<'_>) -> Result<T, Short>,
) -> Result<T, Short> {
    let mut take = Take::new(bytes);
    let is_known = take.u8()? == VERSION;
    let value = decode(&mut take)?;
    if is_known && take.is_empty() { Ok(value) } else { Err(Short) }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
