//! The queue by quality against a sorted list, and the heap with two ends with it.

use super::*;

fn item(quality: u64, arrival: u64, prior: bool) -> Item {
    Item {
        target: "/".into(),
        quality: Quality::from_millionths(quality),
        arrival,
        depth: 0,
        hops: 0,
        tries: 0,
        errand: if prior { Errand::Robots(ServerId(0), 0) } else { Errand::Page },
        found_as: b'L',
        via: None,
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Whatever is pushed, taken and put back, and however often the split moves.
#[test]
fn by_quality_it_is_a_sorted_list_with_a_sum() {
    for seed in 1..=60_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut queue = UrlQueue::new(Policy::Capability);
        let mut sorted: Vec<Entry> = Vec::new();
        let mut visit_max = 1;
        for arrival in 1..=2_000 {
            match random.below(10) {
                0..5 => {
                    let (quality, prior) = (random.below(40), random.below(50) == 0);
                    queue.push(item(quality, arrival, prior));
                    sorted.push(Entry(item(quality, arrival, prior)));
                    sorted.sort_by(|one, other| other.cmp(one));
                }
                5..9 => {
                    let expected = (!sorted.is_empty()).then(|| sorted.remove(0).0);
                    let taken = queue.pop();
                    assert_eq!(taken, expected);
                    if let Some(item) = taken.filter(|_| random.below(3) == 0) {
                        sorted.insert(0, Entry(item.clone()));
                        queue.put_back(item);
                    }
                }
                _ => {
                    visit_max = 1 + random.below(60) as usize;
                    queue.set_visit_max(visit_max);
                }
            }
            assert_eq!(queue.len(), sorted.len());
            assert_eq!(queue.front(), sorted.first().map(|entry| &entry.0));
            let sum: u64 = sorted.iter().take(visit_max).map(Entry::worth).sum();
            assert_eq!(queue.best_sum(), sum, "seed {seed}, step {arrival}");
        }
        let rest: Vec<Item> = sorted.into_iter().map(|entry| entry.0).collect();
        assert_eq!(queue.drain(), (rest, None));
        assert_eq!(queue.best_sum(), 0);
    }
}

#[test]
fn in_order_of_arrival_what_is_given_back_comes_first() {
    let mut queue = UrlQueue::new(Policy::Performance);
    (1..=3).for_each(|arrival| queue.push(item(9 - arrival, arrival, false)));
    queue.push(item(0, 4, true));
    let robots = queue.pop().expect("four wait");
    assert!(robots.is_prior());
    let first = queue.pop().expect("three wait");
    queue.put_back(first);
    let order: Vec<u64> = queue.drain().0.iter().map(|item| item.arrival).collect();
    assert_eq!(order, [1, 2, 3]);
}
