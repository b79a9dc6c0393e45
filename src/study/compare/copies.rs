//! How far the copies that a crawl has of a web's pages are up to date, as the web itself knows it.
//!
//! A copy is the page as it was when its last request reached the server; a reply 304 confirms it.
//! It is up to date until the page changes or vanishes, and out of date since then; a reply 404 or
//! 410 ends it. All are weighted with the qualities of the pages.
//!
//! Cost: the logarithm of the number of copies for each reply and each change.

use crate::ground::time::Instant;
use crate::study::sim::observation::Observation;
use crate::study::web::{Place, Resource, Web};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The copies of a crawl.
#[derive(Debug)]
pub(super) struct Copies {
    /// The weight of each page, by its index in the web; empty if all have the same.
    weights: Vec<f64>,
    pages: Vec<Copy>,
    /// When copies that are up to date will be out of date: the page's index, and the number of its
    /// copy.
    changes: BinaryHeap<Reverse<(Duration, usize, u32)>>,
    /// The weight of the copies that are up to date.
    fresh: f64,
    /// The weight of those that are not, and the sum of the seconds since which they aren't, times
    /// their weights.
    stale: (f64, f64),
}

/// The copy of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    /// When the last request has reached the server.
    asked: Duration,
    /// How many copies there were.
    number: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    None,
    Fresh,
    /// Since this many seconds after the start.
    Stale(f64),
}

impl Copies {
    /// Creates the copies of a crawl that begins. `weights` has one for each page, or is empty.
    pub(super) fn new(web: &Web, weights: Vec<f64>) -> Self {
        Self {
            weights,
            pages: vec![Copy::default(); web.pages_total()],
            changes: BinaryHeap::new(),
            fresh: 0.0,
            stale: (0.0, 0.0),
        }
    }

    /// Takes in what the servers observe.
    pub(super) fn observe(&mut self, web: &Web, at: Instant, seen: &Observation) {
        let index = |place: &Place| match place.resource {
            Resource::Page(page) => Some(web.page_index(place.host, page)),
            _ => None,
        };
        match seen {
            Observation::Request { place: Some(place), .. } => {
                if let Some(index) = index(place) {
                    self.pages[index].asked = at.since(Instant::ZERO);
                }
            }
            Observation::Reply { place: Some(place), status, whole: true, .. } => {
                let Some(index) = index(place) else { return };
                match status {
                    200..=299 | 304 => {
                        self.advance(at);
                        self.set(index, State::Fresh);
                        let copy = &mut self.pages[index];
                        copy.number += 1;
                        if let Some(change) = web.next_change(*place, copy.asked) {
                            self.changes.push(Reverse((change, index, copy.number)));
                        }
                    }
                    404 | 410 => {
                        self.set(index, State::None);
                        self.pages[index].number += 1;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Returns the share of the copies that are up to date, and the mean time in seconds for which
    /// a copy has been out of date; of no copies, one and zero.
    pub(super) fn freshness(&mut self, at: Instant) -> (f64, f64) {
        self.advance(at);
        let (weight, since) = self.stale;
        let all = self.fresh + weight;
        if all <= 0.0 {
            return (1.0, 0.0);
        }
        let now = at.since(Instant::ZERO).as_secs_f64();
        (self.fresh / all, (weight * now - since).max(0.0) / all)
    }

    /// Lets happen what has changed.
    fn advance(&mut self, at: Instant) {
        let now = at.since(Instant::ZERO);
        while let Some(Reverse((change, index, number))) = self.changes.peek().copied()
            && change <= now
        {
            self.changes.pop();
            if self.pages[index].number == number {
                self.set(index, State::Stale(change.as_secs_f64()));
            }
        }
    }

    fn set(&mut self, index: usize, state: State) {
        let weight = self.weights.get(index).copied().unwrap_or(1.0);
        let mut add = |state: State, weight: f64| match state {
            State::None => {}
            State::Fresh => self.fresh += weight,
            State::Stale(since) => {
                self.stale = (self.stale.0 + weight, self.stale.1 + weight * since);
            }
        };
        add(self.pages[index].state, -weight);
        add(state, weight);
        self.pages[index].state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::ConnId;
    use crate::ground::random::Random;
    use crate::study::web::{Changes, Ports, Settings, TimeSpread, Version};
    use std::collections::BTreeMap;

    fn changing() -> Web {
        let changes = Changes {
            epoch: 1_767_225_600,
            interval: TimeSpread { median: Duration::from_secs(3_600), sigma: 1.0 },
            page_sigma: 0.8,
            scheduled: 0.1,
            always: 0.0,
            appear: 0.1,
            vanish: 0.3,
            span: Duration::from_secs(200_000),
            etags: 0.0,
            modified: 0.0,
        };
        let settings =
            Settings { hosts: 5, pages: 60, changes: Some(changes), ..Settings::default() };
        Web::new(settings, Ports::default())
    }

    /// Law: freshness and age are those of a naive model that looks at every copy.
    #[test]
    fn a_naive_model_agrees() {
        let (web, mut random) = (changing(), Random(8));
        let weights: Vec<f64> = (0..web.pages_total()).map(|page| 0.1 + page as f64).collect();
        let mut copies = Copies::new(&web, weights.clone());
        let mut model: BTreeMap<usize, Duration> = BTreeMap::new();
        let (mut now, mut stale_seen) = (Duration::ZERO, 0);
        for _ in 0..3_000 {
            now += Duration::from_millis(random.below(200_000));
            let index = random.below(web.pages_total());
            let place = web.place_of(index);
            let (conn, host) = (ConnId { slot: 1, generation: 0 }, place.host);
            let request = Observation::Request {
                conn,
                host,
                place: Some(place),
                path: "".into(),
                unanswered: 0,
                authorization: "".into(),
                proof: None,
            };
            copies.observe(&web, Instant::ZERO + now, &request);
            let is_there = matches!(web.version(place, now), Version::Since(_));
            let status = if is_there { random.pick(&[200, 200, 304, 500]) } else { 404 };
            match status {
                200 | 304 => drop(model.insert(index, now)),
                404 => drop(model.remove(&index)),
                _ => {}
            }
            now += Duration::from_millis(random.below(5_000));
            let (place, content) = (Some(place), 0);
            let reply = Observation::Reply { conn, host, place, status, content, whole: true };
            copies.observe(&web, Instant::ZERO + now, &reply);
            let (mut fresh, mut all, mut age) = (0.0, 0.0, 0.0);
            for (index, asked) in &model {
                let change = web.next_change(web.place_of(*index), *asked).unwrap_or(Duration::MAX);
                all += weights[*index];
                fresh += if change > now { weights[*index] } else { 0.0 };
                age += weights[*index] * now.saturating_sub(change).as_secs_f64();
            }
            let found = copies.freshness(Instant::ZERO + now);
            let expected = if all > 0.0 { (fresh / all, age / all) } else { (1.0, 0.0) };
            assert!((found.0 - expected.0).abs() < 1e-6, "{found:?} {expected:?}");
            assert!((found.1 - expected.1).abs() < 1e-3, "{found:?} {expected:?}");
            stale_seen += usize::from(found.0 < 0.9);
        }
        assert!(stale_seen > 1_000, "{stale_seen}");
    }
}
