//! What all nodes of a crawl do to one address together: the visits that begin in any time.
//!
//! Each of n nodes visits an address at most once in n delays, without a word from the others. So
//! over any time the visits that begin are at most one for each delay in it, and one more for each
//! node.
//!
//! Cost: some operations for each visit, and 32 bytes for each address.

/// The visits to all addresses; the index of an address is that in its events.
#[derive(Debug, Default)]
pub(super) struct Crowds(Vec<Crowd>);

/// The visits to one address.
#[derive(Clone, Debug, Default)]
struct Crowd {
    /// The sum of the delays of all visits so far, in microseconds.
    sum: u64,
    /// The largest difference between when a visit began and the delays before it. No visit may be
    /// much earlier than that and the delays before it.
    first: i64,
    /// When that visit began, and the number of visits since.
    since: u64,
    visits: u32,
}

impl Crowds {
    /// Takes a visit that began `at`, when an address had this delay. Returns how many visits began
    /// in how much time if they are too many, given what is allowed for: `most` is the longest time
    /// by which a visit may be too early.
    pub(super) fn take(
        &mut self,
        address: u32,
        (at, delay): (u64, u64),
        most: u64,
    ) -> Option<(u32, u64)> {
        let place = address as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, Crowd::default);
        }
        let crowd = &mut self.0[place];
        let difference = at.cast_signed().saturating_sub_unsigned(crowd.sum);
        crowd.sum = crowd.sum.saturating_add(delay);
        crowd.visits += 1;
        let early = crowd.first.saturating_sub(difference);
        let is_broken = crowd.visits > 1 && u64::try_from(early).is_ok_and(|early| early > most);
        let found = is_broken.then(|| (crowd.visits, at.saturating_sub(crowd.since)));
        if is_broken || early <= 0 || crowd.visits == 1 {
            (crowd.first, crowd.since, crowd.visits) = (difference, at, 1);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, a delay of 10: at most one visit in 10, and two more.
    #[test]
    fn too_many_visits_in_any_time_are_found() {
        type Found = Option<(u32, u64)>;
        let cases: [(&[u64], Found); 5] = [
            (&[100, 110, 120, 130], None),
            // Both nodes at the same time, each once in 20.
            (&[100, 100, 120, 120, 140, 140], None),
            (&[100, 100, 119, 119], Some((4, 19))),
            (&[100, 100, 109], Some((3, 9))),
            // A pause is not made up for.
            (&[100, 200, 200, 219, 219], Some((4, 19))),
        ];
        for (visits, expected) in cases {
            let mut crowds = Crowds::default();
            let found = visits.iter().find_map(|at| crowds.take(0, (*at, 10), 10));
            assert_eq!(found, expected, "{visits:?}");
        }
    }
}
