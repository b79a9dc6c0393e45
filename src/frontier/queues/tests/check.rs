//! What the frontier's tests may see of the queues, and checks of what is counted and listed.

use super::super::records::{BLOCK_BYTES, HEAD_BYTES, NONE, ROOM_BYTES, RecordId};
use super::super::{Entry, Key, Order, Queue, QueueId, Queues};
use std::collections::BTreeSet;

impl Queues {
    /// Bytes of an empty queue, and of one with one URL but for its payload.
    pub(in crate::frontier) const QUEUE_BYTES: usize = size_of::<Queue>();

    /// Keys of a queue's URLs in memory, in no order.
    pub(in crate::frontier) fn keys_in_memory(&self, id: QueueId) -> Vec<Key> {
        self.at(id).entries().map(|entry| entry.key(self.settings.order)).collect()
    }

    /// The payload of a URL that is in memory.
    pub(in crate::frontier) fn payload_of(&self, id: QueueId, key: Key) -> Vec<u8> {
        let mut entries = self.at(id).entries();
        let entry = entries.find(|entry| entry.key(self.settings.order) == key);
        let mut payload = Vec::new();
        self.store.records.read(entry.expect("it is in memory").record(), &mut payload);
        payload
    }

    /// The band of a URL.
    pub(in crate::frontier) fn band(order: Order, key: Key) -> u8 {
        Entry::new(order, key, NONE).band(order)
    }

    /// How many URLs each queue keeps near at most, if all are listed by it.
    pub(in crate::frontier) fn kept(&self) -> Option<usize> {
        (self.evictor.hand >= self.count()).then(|| self.evictor.kept())
    }

    /// Checks that bytes are counted right, in memory and on disk; that who needs a read is
    /// listed, and each victim once; and that chunks are in the order in which they are read.
    pub(in crate::frontier) fn check(&self) {
        let order = self.store.order;
        assert_eq!(self.urls, self.queues.iter().map(Queue::len).sum::<usize>());
        assert_eq!(self.list_bytes, self.queues.iter().map(Queue::bytes).sum::<usize>());
        let entries = self.queues.iter().flat_map(Queue::entries).map(Entry::record);
        let records = entries.chain(self.queues.iter().map(|queue| queue.base));
        assert_eq!(self.store.records.bytes(), self.bytes_of(records));
        let listed = self.queues.iter().map(|queue| queue.listed.count_ones() as usize);
        let victims = self.evictor.classes.iter().map(Vec::len).sum::<usize>();
        assert_eq!(victims, listed.sum::<usize>(), "a victim is in a list once");
        let chunks = self.queues.iter().flat_map(Queue::chunks);
        let needed: u64 = chunks.map(|chunk| u64::from(chunk.place().bytes)).sum();
        assert_eq!(self.disk_bytes().1, needed);
        for queue in self.queues.iter() {
            let waits = queue.needs_read(order, self.evictor.kept());
            assert!(!waits || queue.is_wanted, "{queue:?} waits for ever");
            assert!(queue.chunks().is_sorted_by_key(|chunk| chunk.band()), "{queue:?}");
            assert_eq!(queue.chunks().is_empty(), queue.on_disk() == 0, "{queue:?}");
        }
    }

    /// Bytes of these records and of all that they lean on, counted one by one.
    fn bytes_of(&self, ids: impl Iterator<Item = RecordId>) -> usize {
        let (mut found, head) = (BTreeSet::new(), |id| self.store.records.head(id));
        for mut id in ids {
            while id != NONE && found.insert(id.0) {
                id = head(id).base;
            }
        }
        let middles = found.iter().map(|id| head(RecordId(*id)).middle as usize);
        middles.map(|middle| (HEAD_BYTES + middle).div_ceil(ROOM_BYTES) * BLOCK_BYTES).sum()
    }

    /// Checks that no queue has anything.
    pub(in crate::frontier) fn check_empty(&self) {
        self.check();
        assert_eq!((self.urls, self.list_bytes, self.store.records.bytes()), (0, 0, 0));
        assert_eq!(self.disk_bytes().1, 0);
    }
}
