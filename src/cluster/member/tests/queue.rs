//! A simulated queue: entries that are changed by compare-and-set, in an order that all see.

use super::super::value::NodeValue;
use super::sabotage::{self, Sabotage};
use crate::cluster::queue::{Entry, Key, Revision, Write, WriteFailure};
use std::collections::BTreeMap;

/// The entries.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: BTreeMap<Key, (Revision, Box<[u8]>)>,
    last: u64,
}

impl Queue {
    /// Carries out a write.
    pub(super) fn carry_out(&mut self, write: &Write) -> Result<Revision, WriteFailure> {
        let known = self.entries.get(&write.key).map(|(revision, _)| *revision);
        if known != write.expected && !self.is_put(write) {
            return Err(WriteFailure::Conflict);
        }
        self.last += 1;
        let revision = Revision(self.last);
        self.entries.insert(write.key.clone(), (revision, write.value.clone()));
        Ok(revision)
    }

    /// Returns all entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().map(|(key, (revision, value))| Entry {
            key: key.clone(),
            revision: *revision,
            value: value.clone(),
        })
    }

    /// Whether a write is carried out whatever the revision is: never, but for a fault.
    fn is_put(&self, write: &Write) -> bool {
        if !sabotage::is(Sabotage::RenewedByPut) || !matches!(write.key, Key::Node(_)) {
            return false;
        }
        let node = |bytes: &[u8]| NodeValue::decode(bytes).expect("a node's entry");
        let known = self.entries.get(&write.key).map(|(_, value)| node(value));
        let new = node(&write.value);
        let is_same =
            |known: NodeValue| (known.incarnation, known.number) == (new.incarnation, new.number);
        known.is_some_and(is_same) && !new.state.is_over()
    }
}
