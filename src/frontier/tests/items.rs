//! URLs of histories, by number, and what is drawn for them.

use super::*;

pub(super) fn url(server: usize, item: u32) -> String {
    let scheme = if server / DOMAINS == 1 { "https" } else { "http" };
    let port = if server / DOMAINS == 3 { ":8080" } else { "" };
    format!("{scheme}://{}.d{}.com{port}/{item}", prefix(server), server % DOMAINS)
}

/// What was filed as this.
pub(super) fn made(url: &model::Url, robots_of: ServerId) -> Item {
    item(url.number, url.quality, url.prior.then_some(robots_of))
}

pub(super) fn item(number: u32, quality: u64, robots_of: Option<ServerId>) -> Item {
    Item {
        target: format!("/{number}").into(),
        quality: Quality::from_millionths(quality),
        arrival: 0,
        depth: (number % 3) as u16,
        hops: u8::from(number.is_multiple_of(5)),
        tries: 0,
        errand: robots_of.map_or(Errand::Page, |of| Errand::Robots(of, 0)),
        found_as: b"LER"[number as usize % 3],
        via: (!number.is_multiple_of(4)).then(|| format!("http://via.test/{}", number / 6).into()),
    }
}

/// If this is a robots.txt: whether it is that of the server it waits at.
pub(super) fn is_own(number: u32) -> bool {
    number.is_multiple_of(2)
}

pub(super) fn number_of(item: &Item) -> u32 {
    item.target[1..].parse().expect("targets are numbers")
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }

    pub(super) fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)]
    }

    /// Less than so many milliseconds; one in eight is none at all.
    pub(super) fn time(&mut self, ms: usize) -> Duration {
        let us = if self.below(8) == 0 { 0 } else { self.below(ms * 1_000) };
        Duration::from_micros(us as u64)
    }
}
