//! A table of records by number that grows without moving them: no copy doubles its memory, and no
//! insert waits for one.
//!
//! Law: a record keeps its number and, past the first [`CHUNK`] records, its address. Cost: one
//! allocation for each [`CHUNK`] records; a look-up reads one word more than in a slice.

use std::ops::{Index, IndexMut};

/// The number of records in one allocation.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;

/// A table of records, which are numbered from 0 without gaps.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// Chunks of records; all but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Appends a record. Its number is the length that the table had before.
    pub(crate) fn push(&mut self, record: T) {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            // The first chunk grows as needed, because many tables stay small.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        self.chunks.last_mut().expect("it has just been pushed").push(record);
    }

    /// Returns the record with this number, or `None` if there is none.
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.chunks.get(number >> CHUNK_BITS)?.get(number % CHUNK)
    }

    /// Returns all records in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.chunks[number >> CHUNK_BITS][number % CHUNK]
    }
}

impl<T> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.chunks[number >> CHUNK_BITS][number % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a table agrees with a list, and records past the first chunk don't move.
    #[test]
    fn a_table_agrees_with_a_list() {
        let (mut table, mut addresses) = (Table::default(), Vec::new());
        for number in 0..3 * CHUNK + 7 {
            assert_eq!((table.len(), table.get(number)), (number, None));
            table.push(number);
            table[number] += 1;
            addresses.push(std::ptr::from_ref(&table[number]));
        }
        for (number, address) in addresses.into_iter().enumerate().skip(CHUNK) {
            assert_eq!(table[number], number + 1);
            assert_eq!(table.get(number).copied(), Some(number + 1));
            assert_eq!(std::ptr::from_ref(&table[number]), address, "it has not moved");
        }
        assert!(table.iter().copied().eq(1..=table.len()));
    }
}
