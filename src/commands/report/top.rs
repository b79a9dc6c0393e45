//! The largest of many things, in constant memory.

/// A fetch with its size or its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    /// Bytes, or microseconds.
    pub(super) amount: u64,
    pub(super) url: String,
    pub(super) status: i32,
    pub(super) mime: String,
}

/// The fetches with the largest amounts, the largest first; of equal ones the earlier first.
#[derive(Debug)]
pub(super) struct Top {
    most: usize,
    pub(super) list: Vec<Fetch>,
}

impl Top {
    pub(super) fn new(most: usize) -> Self {
        Self { most, list: Vec::new() }
    }

    /// Adds a fetch if it is among the largest.
    pub(super) fn add(&mut self, amount: u64, (url, status, mime): (&str, i32, &str)) {
        let is_full = self.list.len() >= self.most;
        if is_full && self.list.last().is_none_or(|last| last.amount >= amount) {
            return;
        }
        self.list.truncate(self.most - 1);
        let at = self.list.partition_point(|other| other.amount >= amount);
        let (url, mime) = (url.to_owned(), mime.to_owned());
        self.list.insert(at, Fetch { amount, url, status, mime });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept() {
        for most in [0, 1, 3, 10] {
            let mut top = Top::new(most);
            let mut all = Vec::new();
            for number in 0..40_u64 {
                let amount = number * 7 % 13;
                top.add(amount, (&number.to_string(), 200, "-"));
                all.push((amount, number));
            }
            all.sort_by_key(|(amount, number)| (std::cmp::Reverse(*amount), *number));
            let list: Vec<_> = top.list.iter().map(|it| (it.amount, it.url.clone())).collect();
            let all: Vec<_> = all.into_iter().map(|(a, number)| (a, number.to_string())).collect();
            assert_eq!(list, all[..most]);
        }
    }
}
