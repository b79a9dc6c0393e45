//! Places of the chunks of one queue, in order: a few in blocks, many in a piece of memory of
//! their own.
//!
//! Most queues have few, and theirs grow by turns: pieces of memory that grow by turns leave the
//! allocator with holes, blocks don't (`blocks`).
//!
//! Law: it is a list of places, whichever way it is kept (held to a plain one). Cost: to look at
//! the front, to take or change it, to count and to append O(1), else a copy of them all as long
//! as they are few.

use super::super::place::Place;
use super::blocks::{BLOCK_BYTES, Blocks, Chain};
use std::collections::VecDeque;

/// More than this are kept in memory of their own.
const FEW_MAX: usize = if cfg!(test) { 6 } else { 64 };
const PLACE_BYTES: usize = size_of::<u64>();

/// Places of chunks.
#[derive(Debug, Default)]
pub(in super::super) struct Places {
    list: List,
    /// The first one, if there is any.
    front: u64,
}

#[derive(Debug)]
enum List {
    Few(Chain),
    #[expect(clippy::box_collection, reason = "most queues have few: theirs should be small")]
    Many(Box<VecDeque<Place>>),
}

impl Default for List {
    fn default() -> Self {
        Self::Few(Chain::default())
    }
}

impl Places {
    pub(in super::super) fn len(&self) -> usize {
        match &self.list {
            List::Few(chain) => chain.urls(),
            List::Many(places) => places.len(),
        }
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What of it is in blocks.
    pub(in super::super) fn chain(&self) -> Option<&Chain> {
        match &self.list {
            List::Few(chain) => Some(chain),
            List::Many(_) => None,
        }
    }

    /// Bytes of memory beside blocks.
    pub(super) fn bytes(&self) -> usize {
        match &self.list {
            List::Few(_) => 0,
            List::Many(places) => {
                size_of::<VecDeque<Place>>() + places.capacity() * PLACE_BYTES + 24
            }
        }
    }

    /// Bytes of memory in blocks.
    #[cfg(test)]
    pub(in super::super) fn block_bytes(&self) -> usize {
        match &self.list {
            List::Few(chain) => chain.bytes(),
            List::Many(_) => 0,
        }
    }

    /// The first one.
    pub(super) fn front(&self) -> Option<Place> {
        (!self.is_empty()).then(|| Place::from_word(self.front))
    }

    /// All in order.
    pub(in super::super) fn iter(
        &self,
        blocks: &Blocks,
    ) -> impl DoubleEndedIterator<Item = Place> + '_ {
        let (few, many) = match &self.list {
            List::Few(chain) => (read(chain, usize::MAX, blocks), None),
            List::Many(places) => (Vec::new(), Some(places.iter())),
        };
        few.into_iter().chain(many.into_iter().flatten().copied())
    }

    /// Appends one.
    pub(super) fn push(&mut self, place: Place, blocks: &mut Blocks) {
        match &mut self.list {
            List::Few(chain) if chain.urls() < FEW_MAX => {
                if chain.is_empty() {
                    self.front = place.word();
                }
                blocks.push(chain, &place.word().to_le_bytes());
            }
            List::Few(_) => self.edit(blocks, |places| places.push_back(place)),
            List::Many(places) => {
                reserve(places);
                places.push_back(place);
            }
        }
    }

    /// The first ones in order, so many at most.
    pub(super) fn first(&self, most: usize, blocks: &Blocks) -> Vec<Place> {
        match &self.list {
            List::Few(chain) => read(chain, most, blocks),
            List::Many(places) => places.iter().take(most).copied().collect(),
        }
    }

    /// Takes the first one out.
    pub(super) fn pop_front(&mut self, blocks: &mut Blocks) {
        let List::Few(chain) = &mut self.list else {
            let _ = self.edit(blocks, VecDeque::pop_front);
            return;
        };
        blocks.drop_front(chain, PLACE_BYTES, 1);
        self.front = read(chain, 1, blocks).first().map_or(0, |place| place.word());
    }

    /// Puts another one in place of the first.
    pub(super) fn set_front(&mut self, place: Place, blocks: &mut Blocks) {
        self.front = place.word();
        match &mut self.list {
            List::Few(chain) => {
                blocks.drop_front(chain, PLACE_BYTES, 1);
                blocks.push_front(chain, &place.word().to_le_bytes(), 1);
            }
            List::Many(places) => places[0] = place,
        }
    }

    /// Puts one before those that are at `index` and behind.
    pub(super) fn insert(&mut self, index: usize, place: Place, blocks: &mut Blocks) {
        self.edit(blocks, |places| {
            reserve(places);
            places.insert(index, place);
        });
    }

    /// Puts one behind those at the front that `goes_on` is true of.
    pub(super) fn insert_at(
        &mut self,
        goes_on: impl Fn(Place) -> bool,
        place: Place,
        blocks: &mut Blocks,
    ) {
        self.edit(blocks, |places| {
            reserve(places);
            places.insert(places.partition_point(|other| goes_on(*other)), place);
        });
    }

    /// Changes the list as `change` does.
    pub(super) fn edit<R>(
        &mut self,
        blocks: &mut Blocks,
        change: impl FnOnce(&mut VecDeque<Place>) -> R,
    ) -> R {
        let mut places = match &mut self.list {
            List::Few(chain) => VecDeque::from(read(chain, usize::MAX, blocks)),
            List::Many(places) => std::mem::take(places.as_mut()),
        };
        let result = change(&mut places);
        self.front = places.front().map_or(0, |place| place.word());
        self.keep(places, blocks);
        result
    }

    fn keep(&mut self, mut places: VecDeque<Place>, blocks: &mut Blocks) {
        let was_few = matches!(self.list, List::Few(_));
        if let List::Few(chain) = &mut self.list {
            blocks.clear(chain);
        }
        let few_max = if was_few { FEW_MAX } else { FEW_MAX / 2 };
        if places.len() > few_max {
            if places.capacity() > 2 * places.len() {
                places.shrink_to_fit();
            }
            match &mut self.list {
                List::Many(list) => **list = places,
                List::Few(_) => self.list = List::Many(Box::new(places)),
            }
            return;
        }
        let mut chain = Chain::default();
        let mut text = blocks.text();
        places.iter().for_each(|place| text.extend_from_slice(&place.word().to_le_bytes()));
        blocks.push_all(&mut chain, &text, places.len());
        blocks.put_text_away(text);
        self.list = List::Few(chain);
    }
}

/// Room for one more in a list that may be very long.
fn reserve(places: &mut VecDeque<Place>) {
    if places.len() == places.capacity() {
        places.reserve_exact(2 + places.len() / 4);
    }
}

fn read(chain: &Chain, most: usize, blocks: &Blocks) -> Vec<Place> {
    let most = most.min(chain.urls());
    let mut text = Vec::with_capacity(most * PLACE_BYTES + BLOCK_BYTES);
    blocks.read(chain, most * PLACE_BYTES, &mut text);
    let (words, _) = text.as_chunks::<PLACE_BYTES>();
    let places = words.iter().map(|word| Place::from_word(u64::from_le_bytes(*word)));
    places.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_it_is_a_list() {
        let (mut blocks, mut places, mut list) = (Blocks::default(), Places::default(), Vec::new());
        let (mut random, mut kinds) = (0x9e37_79b9_7f4a_7c15_u64, [0; 2]);
        for step in 0..30_000_u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = (random >> 8) as usize % (list.len() + 1);
            let place = Place::new(1, step, 64, 3);
            // It grows and shrinks by turns.
            let grows = step / 16 % 5 < 2;
            match random % 9 {
                0..2 => {
                    places.push(place, &mut blocks);
                    list.push(place);
                }
                2..6 if grows => {
                    places.insert(at, place, &mut blocks);
                    list.insert(at, place);
                }
                8 if !list.is_empty() => {
                    places.set_front(place, &mut blocks);
                    list[0] = place;
                }
                6 if !list.is_empty() => {
                    places.pop_front(&mut blocks);
                    list.remove(0);
                }
                _ if at < list.len() => {
                    let out = places.edit(&mut blocks, |places| places.remove(at));
                    assert_eq!(out, Some(list.remove(at)));
                }
                _ => {}
            }
            assert_eq!((places.len(), places.front()), (list.len(), list.first().copied()));
            assert!(places.iter(&blocks).eq(list.iter().copied()));
            assert_eq!(places.first(at, &blocks), list[..at.min(list.len())]);
            kinds[usize::from(matches!(places.list, List::Many(_)))] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 5_000), "{kinds:?}");
        places.edit(&mut blocks, |places| places.clear());
        assert_eq!((places.bytes(), blocks.bytes()), (0, 0));
    }
}
