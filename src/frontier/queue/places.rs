//! Places of the chunks of one queue, in order: very few here, a few in blocks, many in a piece of
//! memory of their own.
//!
//! Most queues have very few, which need no memory beside the queue's. Others grow by turns: pieces
//! of memory that grow by turns leave the allocator with holes, blocks don't (`blocks`).
//!
//! Law: it is a list of places, whichever way it is kept (held to a plain one). Cost: to look at
//! the front, to take or change it, to count and to append O(1), else a copy of them all as long
//! as they are few.

use super::super::place::Place;
use super::blocks::{BLOCK_BYTES, Blocks, Chain};
use std::collections::VecDeque;

/// More than this are kept in blocks, and more than that in memory of their own.
const NEAR_MAX: usize = if cfg!(test) { 3 } else { 5 };
const FEW_MAX: usize = if cfg!(test) { 20 } else { 64 };
const PLACE_BYTES: usize = size_of::<u64>();

/// Places of chunks.
#[derive(Debug)]
pub(in super::super) enum Places {
    /// So many words.
    Near([u64; NEAR_MAX], u8),
    Few {
        chain: Chain,
        front: u64,
    },
    #[expect(clippy::box_collection, reason = "most queues have few: theirs should be small")]
    Many(Box<VecDeque<Place>>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Near([0; NEAR_MAX], 0)
    }
}

impl Places {
    pub(in super::super) fn len(&self) -> usize {
        match self {
            Self::Near(_, count) => usize::from(*count),
            Self::Few { chain, .. } => chain.urls(),
            Self::Many(places) => places.len(),
        }
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What of it is in blocks.
    pub(in super::super) fn chain(&self) -> Option<&Chain> {
        match self {
            Self::Few { chain, .. } => Some(chain),
            Self::Near(..) | Self::Many(_) => None,
        }
    }

    /// Bytes of memory beside blocks.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Near(..) | Self::Few { .. } => 0,
            Self::Many(places) => {
                size_of::<VecDeque<Place>>() + places.capacity() * PLACE_BYTES + 24
            }
        }
    }

    /// Bytes of memory in blocks.
    #[cfg(test)]
    pub(in super::super) fn block_bytes(&self) -> usize {
        self.chain().map_or(0, Chain::bytes)
    }

    /// The first one.
    pub(super) fn front(&self) -> Option<Place> {
        match self {
            Self::Near(words, count) => (*count > 0).then(|| Place::from_word(words[0])),
            Self::Few { front, .. } => Some(Place::from_word(*front)),
            Self::Many(places) => places.front().copied(),
        }
    }

    /// All in order.
    pub(in super::super) fn iter(
        &self,
        blocks: &Blocks,
    ) -> impl DoubleEndedIterator<Item = Place> + '_ {
        let (near, few, many) = match self {
            Self::Near(words, count) => (&words[..usize::from(*count)], Vec::new(), None),
            Self::Few { chain, .. } => (&[][..], read(chain, usize::MAX, blocks), None),
            Self::Many(places) => (&[][..], Vec::new(), Some(places.iter())),
        };
        let near = near.iter().map(|word| Place::from_word(*word));
        near.chain(few).chain(many.into_iter().flatten().copied())
    }

    /// Appends one.
    pub(super) fn push(&mut self, place: Place, blocks: &mut Blocks) {
        match self {
            Self::Near(words, count) if usize::from(*count) < NEAR_MAX => {
                words[usize::from(*count)] = place.word();
                *count += 1;
            }
            Self::Few { chain, .. } if chain.urls() < FEW_MAX => {
                blocks.push(chain, &place.word().to_le_bytes());
            }
            Self::Many(places) => {
                reserve(places);
                places.push_back(place);
            }
            Self::Near(..) | Self::Few { .. } => self.edit(blocks, |all| all.push_back(place)),
        }
    }

    /// The first ones in order, so many at most.
    pub(super) fn first(&self, most: usize, blocks: &Blocks) -> Vec<Place> {
        match self {
            Self::Few { chain, .. } => read(chain, most, blocks),
            Self::Near(..) | Self::Many(_) => self.iter(blocks).take(most).collect(),
        }
    }

    /// Takes the first one out.
    pub(super) fn pop_front(&mut self, blocks: &mut Blocks) {
        match self {
            Self::Near(words, count) if *count > 0 => {
                words.copy_within(1.., 0);
                *count -= 1;
            }
            Self::Few { chain, front } if chain.urls() > NEAR_MAX / 2 + 1 => {
                blocks.drop_front(chain, PLACE_BYTES, 1);
                *front = read(chain, 1, blocks)[0].word();
            }
            Self::Near(..) | Self::Few { .. } | Self::Many(_) => {
                self.edit(blocks, |places| places.pop_front());
            }
        }
    }

    /// Puts another one in place of the first.
    pub(super) fn set_front(&mut self, place: Place, blocks: &mut Blocks) {
        match self {
            Self::Near(words, _) => words[0] = place.word(),
            Self::Few { chain, front } => {
                *front = place.word();
                blocks.drop_front(chain, PLACE_BYTES, 1);
                blocks.push_front(chain, &place.word().to_le_bytes(), 1);
            }
            Self::Many(places) => places[0] = place,
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
        let (mut places, few_max) = match self {
            Self::Near(..) | Self::Few { .. } => (self.iter(blocks).collect(), FEW_MAX),
            Self::Many(places) => (std::mem::take(places.as_mut()), FEW_MAX / 2),
        };
        let result = change(&mut places);
        if let Self::Few { chain, .. } = self {
            blocks.clear(chain);
        }
        *self = Self::kept(places, few_max, blocks);
        result
    }

    fn kept(mut places: VecDeque<Place>, few_max: usize, blocks: &mut Blocks) -> Self {
        if places.len() > few_max {
            if places.capacity() > 2 * places.len() {
                places.shrink_to_fit();
            }
            return Self::Many(Box::new(places));
        }
        let words = places.iter().map(|place| place.word());
        if places.len() <= NEAR_MAX {
            let mut near = [0; NEAR_MAX];
            near.iter_mut().zip(words).for_each(|(to, word)| *to = word);
            return Self::Near(near, u8::try_from(places.len()).expect("they are very few"));
        }
        let mut chain = Chain::default();
        let mut text = blocks.text();
        words.for_each(|word| text.extend_from_slice(&word.to_le_bytes()));
        blocks.push_all(&mut chain, &text, places.len());
        blocks.put_text_away(text);
        Self::Few { chain, front: places[0].word() }
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
        let (mut random, mut kinds) = (0x9e37_79b9_7f4a_7c15_u64, [0; 3]);
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
            let kind = match &places {
                Places::Near(..) => 0,
                Places::Few { .. } => 1,
                Places::Many(_) => 2,
            };
            kinds[kind] += 1;
            assert_eq!(places.block_bytes(), blocks.bytes());
        }
        assert!(kinds.iter().all(|count| *count > 3_000), "{kinds:?}");
        places.edit(&mut blocks, |places| places.clear());
        assert_eq!((places.bytes(), blocks.bytes()), (0, 0));
    }
}
