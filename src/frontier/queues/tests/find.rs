//! Compares searches in queues with the model.

use super::*;

impl Pair {
    /// Searches for a URL that waits, and for one that doesn't. The place of the former in the
    /// model is within the bounds of the search; by arrival the bounds are equal.
    pub(super) fn find(&mut self, id: QueueId) {
        let order = self.order();
        let waiting = &self.model[&id];
        let limit = self.random.pick(&[1, 2_000, 1 << 20]);
        let search = |payload: &[u8], disk: &mut Memory| {
            let mut is_it = |other: &[u8]| other == payload;
            let (search, units) =
                self.queues.find(id, &mut is_it, limit, disk).expect("nothing is damaged");
            assert!(units <= limit);
            search
        };
        let is_whole = limit == 1 << 20;
        match search(b"/none such", &mut self.disk) {
            Search::Nowhere => {}
            Search::Unsure { searched } => assert!(!is_whole && searched < waiting.len()),
            Search::Found(found) => panic!("{found:?}"),
        }
        if waiting.is_empty() {
            return;
        }
        let url = waiting[self.random.below(waiting.len())].clone();
        let Search::Found(found) = search(&url.payload, &mut self.disk) else {
            return assert!(!is_whole, "{url:?} waits");
        };
        assert_eq!(found.payload, url.payload);
        let alike = waiting.iter().filter(|other| other.payload == url.payload);
        let found_url = alike.clone().find(|other| other.key == found.key).expect("it waits");
        let before = |other: &&Url| other.order(order) < found_url.order(order);
        let place = waiting.iter().filter(before).count();
        let (least, most) = found.before;
        assert!((least..=most).contains(&place) && most < waiting.len(), "{place}: {found:?}");
        assert!(order == Order::Quality || least == most, "{found:?}");
        self.found += u32::from(found.is_on_disk);
    }
}
