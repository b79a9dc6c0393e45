//! The queue by quality against a sorted list, and the heap with two ends with it.

use super::*;

fn band_of(item: &Item) -> Band {
    item.written().band()
}

/// Some share much with others, some nothing.
fn item(quality: u64, arrival: u64, prior: bool) -> Item {
    let page = ["http://a.test/", "http://b.test/some/page", "http://b.test/some/other/page"];
    Item {
        target: format!("/{:o}/{}/page-{arrival:06}", arrival % 7 * 0o1234567, arrival % 3).into(),
        quality: Quality::from_millionths(quality),
        arrival,
        depth: 0,
        hops: 0,
        tries: 0,
        errand: if prior { Errand::Robots(ServerId(0), 0) } else { Errand::Page },
        found_as: b'L',
        via: page.get((arrival / 4 % 4) as usize).map(|page| Rc::from(*page)),
    }
}

fn worth(item: &Item) -> u64 {
    item.quality.millionths()
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
        let mut sorted: Vec<Item> = Vec::new();
        let mut visit_max = 1;
        for arrival in 1..=2_000 {
            match random.below(10) {
                0..5 => {
                    let (quality, prior) = (random.below(40), random.below(50) == 0);
                    queue.push(item(quality, arrival, prior), None);
                    sorted.push(item(quality, arrival, prior));
                    sorted.sort_by(goes_before);
                }
                5..9 => {
                    let expected = (!sorted.is_empty()).then(|| sorted.remove(0));
                    let taken = queue.pop(None);
                    assert_eq!(taken, expected);
                    if let Some(item) = taken.filter(|_| random.below(3) == 0) {
                        sorted.insert(0, item.clone());
                        queue.put_back_hot(item);
                    }
                }
                _ => {
                    visit_max = 1 + random.below(60) as usize;
                    queue.set_visit_max(visit_max);
                }
            }
            assert_eq!(queue.len(), sorted.len());
            assert_eq!(queue.front(), sorted.first());
            let sum: u64 = sorted.iter().take(visit_max).map(worth).sum();
            assert_eq!(queue.best_sum(), sum, "seed {seed}, step {arrival}");
        }
        assert_eq!(rest(&mut queue, None), sorted);
        assert_eq!(queue.best_sum(), 0);
    }
}

/// All that is left.
fn rest(queue: &mut UrlQueue, mut blocks: Option<&mut Blocks>) -> Vec<Item> {
    let items = std::iter::from_fn(|| queue.pop_own(blocks.as_deref_mut())).collect();
    queue.tidy();
    items
}

#[test]
fn in_order_of_arrival_what_is_given_back_comes_first() {
    let mut queue = UrlQueue::new(Policy::Performance);
    (1..=3).for_each(|arrival| queue.push(item(9 - arrival, arrival, false), None));
    queue.push(item(0, 4, true), None);
    let robots = queue.pop(None).expect("four wait");
    assert!(robots.is_prior());
    let first = queue.pop(None).expect("three wait");
    queue.put_back_hot(first);
    let order: Vec<u64> = rest(&mut queue, None).iter().map(|item| item.arrival).collect();
    assert_eq!(order, [1, 2, 3]);
}

/// The same, packed and warmed as it comes: no chunk, so nothing is behind. What waits in a tail is
/// worth its band.
#[test]
fn packed_it_is_the_same_by_band() {
    let (mut counts, mut bests) = ([0; 4], [0; 3]);
    for seed in 1..=60_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let policy = if seed % 2 == 0 { Policy::Capability } else { Policy::Bfs };
        let mut blocks = Blocks::default();
        let mut queue = UrlQueue::new(policy);
        let mut counted = 1 + random.below(12) as usize;
        queue.set_visit_max(counted);
        queue.cold_or_new();
        let mut waiting: Vec<Item> = Vec::new();
        for arrival in 1..=1_500 {
            if random.below(20) == 0 {
                counted = 1 + random.below(12) as usize;
                queue.set_visit_max(counted);
                queue.survey(&blocks);
            }
            match random.below(10) {
                0..4 => {
                    let item = item(random.below(5_000_000), arrival, random.below(50) == 0);
                    bests[push(&mut queue, &item, &mut blocks)] += 1;
                    if policy == Policy::Bfs && item.is_prior() {
                        waiting.insert(0, item);
                    } else {
                        waiting.push(item);
                    }
                }
                4..8 => {
                    let Some(taken) = take(&mut queue, &mut random, &mut blocks) else {
                        assert!(waiting.is_empty(), "{waiting:?}");
                        continue;
                    };
                    if policy == Policy::Bfs {
                        assert_eq!(waiting[0], taken);
                    }
                    let best = waiting.iter().map(band_of).max();
                    assert!(policy == Policy::Bfs || best == Some(band_of(&taken)));
                    waiting.retain(|item| *item != taken);
                    if random.below(4) == 0 {
                        waiting.insert(0, taken.clone());
                        queue.put_back(taken, &mut blocks);
                        counts[0] += 1;
                    }
                }
                8 => {
                    counts[1] += pack(&mut queue, counted, &mut blocks);
                    counts[2] += 1;
                }
                _ if policy == Policy::Capability && head_urls(&queue) > 2 * counted => {
                    let rest = queue.trim(counted, &mut blocks);
                    counts[3] += to_tail(&mut queue, rest, &mut blocks);
                }
                _ => {}
            }
            queue.tidy();
            queue.survey(&blocks);
            assert_eq!(queue.len(), waiting.len());
            if !queue.is_parted() && policy == Policy::Capability {
                let mut there = queue.items(Some(&blocks));
                there.sort_by(goes_before);
                let sum: u64 = there.iter().take(counted).map(worth).sum();
                assert_eq!(queue.best_sum(), sum, "seed {seed}, step {arrival}");
            }
        }
        assert_eq!(rest(&mut queue, Some(&mut blocks)).len(), waiting.len());
        assert_eq!((blocks.bytes(), queue.weight()), (0, Weight::default()));
    }
    assert!(counts.iter().all(|count| *count > 40), "{counts:?}");
    assert!(bests.iter().all(|count| *count > 40), "{bests:?}");
}

/// Puts a URL into a queue. If one counts, and the first is a page in a packed head, looks that the
/// best of both is told, and says which it is: 1 for the first, 2 for the URL.
fn push(queue: &mut UrlQueue, item: &Item, blocks: &mut Blocks) -> usize {
    let front_band = queue.cold().and_then(|cold| cold.front_band());
    let is_told = queue.counted() == 1 && queue.by_quality && queue.hot_len() == 0;
    let is_page = front_band.is_some_and(|band| band < 63) && !item.is_prior();
    let before = (is_told && is_page).then(|| queue.best_sum());
    queue.push(item.clone(), Some(blocks));
    let Some(before) = before else { return 0 };
    assert_eq!(queue.best_sum(), worth(item).max(before), "no better one is hidden");
    1 + usize::from(worth(item) > before)
}

fn head_urls(queue: &UrlQueue) -> usize {
    queue.cold().map_or(0, |cold| cold.head.urls())
}

/// Takes the next one, which may have been looked at before.
fn take(queue: &mut UrlQueue, random: &mut Random, blocks: &mut Blocks) -> Option<Item> {
    queue.take_turn(blocks);
    let is_looked_at = random.below(2) == 0;
    if is_looked_at {
        queue.warm_if_bare(1 + random.below(6) as usize, blocks);
    }
    let front = queue.front().cloned();
    let taken = queue.pop(Some(blocks));
    assert!(front == taken || !is_looked_at && front.is_none());
    taken
}

fn pack(queue: &mut UrlQueue, counted: usize, blocks: &mut Blocks) -> usize {
    queue.tidy();
    let rest = queue.pack(2 * counted, blocks);
    let count = to_tail(queue, rest, blocks);
    queue.survey(blocks);
    count
}

/// What a head gave up joins the tail; returns how many that are.
fn to_tail(queue: &mut UrlQueue, rest: Vec<Item>, blocks: &mut Blocks) -> usize {
    for item in &rest {
        queue.cold_or_new().put_tail(item.written(), true, blocks);
    }
    rest.len()
}
