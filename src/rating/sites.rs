//! Sites: their keys, the links that leave a page's site, and a bounded table by site.
//!
//! Laws of the table: it never holds more sites than it was created for. If a set is full, the site
//! with the lowest value is evicted for a new one, of several the one that came first; all others
//! stay.
//! Cost: a look-up reads one or two cache lines; a name is hashed only if a link leaves its page's
//! site for one that isn't among the last few of the page.

use super::Site;
use crate::url::{Fingerprinter, UrlRef, domain};

/// The key of a site: the fingerprint of its origin or of its registrable domain. It is never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u64);

/// Computes the keys of sites.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    site: Site,
    fingerprinter: Fingerprinter,
}

impl Names {
    /// Creates the computation of keys: `site` is what counts as a site, `key` is the hash key.
    pub(super) fn new(site: Site, key: [u8; 16]) -> Self {
        Self { site, fingerprinter: Fingerprinter::new(key) }
    }

    /// Returns the key of the site that a URL belongs to.
    pub(super) fn key(&self, url: UrlRef<'_>) -> Key {
        self.key_of(self.name(url))
    }

    /// Appends the keys of the sites that the links of a page lead to, except for the page's own
    /// site, to `others`. Returns the number of links.
    ///
    /// The caller then looks up one site after the other, so that the cache misses overlap. They
    /// would not if names were hashed between the look-ups.
    pub(super) fn sort<'l>(
        &self,
        page: UrlRef<'_>,
        links: &mut dyn Iterator<Item = UrlRef<'l>>,
        others: &mut Vec<Key>,
    ) -> usize {
        let (origin, own) = (page.origin(), self.name(page));
        let mut links_of_page =
            PageLinks { names: *self, origin, own, last: [("", None); LAST], next: 0 };
        let mut count = 0;
        others.extend(links.inspect(|_| count += 1).filter_map(|link| links_of_page.other(link)));
        count
    }

    fn name<'a>(&self, url: UrlRef<'a>) -> &'a str {
        match self.site {
            Site::Server => url.origin(),
            Site::Domain => domain::registrable(url.host()),
        }
    }

    /// Returns whether registrable domains are sites.
    pub(super) fn is_by_domain(&self) -> bool {
        self.site == Site::Domain
    }

    /// Returns the key of the site of this name.
    pub(super) fn key_of(&self, name: &str) -> Key {
        Key(self.fingerprinter.of(name.as_bytes()).0.max(1))
    }
}

/// The number of origins that are cached while the links of a page are processed: links are often
/// to the same few origins.
const LAST: usize = 4;

/// Determines the target sites of the links of one page.
#[derive(Debug)]
struct PageLinks<'p, 'l> {
    names: Names,
    /// The origin of the page.
    origin: &'p str,
    /// The origin or registrable domain that identifies the page's site.
    own: &'p str,
    /// The last origins other than the page's, with the keys of their sites. `None` means the
    /// page's own site.
    last: [(&'l str, Option<Key>); LAST],
    next: usize,
}

impl<'l> PageLinks<'_, 'l> {
    /// Returns the key of the site that a link leads to; `None` if it is the page's own.
    fn other(&mut self, link: UrlRef<'l>) -> Option<Key> {
        let origin = link.origin();
        if origin == self.origin {
            return None;
        }
        if let Some((_, key)) = self.last.iter().find(|(known, _)| *known == origin) {
            return *key;
        }
        let name = self.names.name(link);
        let key = if name == self.own { None } else { Some(self.names.key_of(name)) };
        self.last[self.next] = (origin, key);
        self.next = (self.next + 1) % LAST;
        key
    }
}

/// The number of slots in a set, the group of slots that the key of a site selects.
const WAYS: usize = 8;

/// A table of fixed size that stores a value for each site. It consists of sets of eight slots; the
/// key of a site selects its set.
///
/// A set may be full while others have free slots. With as many sites as slots about one site in
/// seven has no slot, with half as many one in a hundred.
#[derive(Debug)]
pub(super) struct Sites<V> {
    sets: Vec<Set<V>>,
    held: usize,
    evicted: u64,
}

/// The keys of the sites in order of arrival; free slots, with key 0, come last.
#[derive(Clone, Debug, Default)]
struct Set<V> {
    keys: [Key; WAYS],
    values: [V; WAYS],
}

impl<V: Copy + Default> Sites<V> {
    /// Creates a table for `sites_max` sites, rounded down to whole sets of slots; it has at least
    /// one set.
    pub(super) fn new(sites_max: usize) -> Self {
        Self { sets: vec![Set::default(); (sites_max / WAYS).max(1)], held: 0, evicted: 0 }
    }

    /// Returns the number of stored sites.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of evicted sites.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the value of a site; `None` if the site isn't stored.
    pub(super) fn find(&self, site: Key) -> Option<&V> {
        let set = &self.sets[self.set(site)];
        set.place(site).map(|place| &set.values[place])
    }

    /// Returns the value of a site, to be changed; `None` if the site isn't stored.
    pub(super) fn find_mut(&mut self, site: Key) -> Option<&mut V> {
        let index = self.set(site);
        let set = &mut self.sets[index];
        set.place(site).map(|place| &mut set.values[place])
    }

    /// Adds a site that isn't stored. If its set is full, the site with the lowest `worth` is
    /// evicted, and the value of that site is returned.
    pub(super) fn enter<W: Ord>(
        &mut self,
        site: Key,
        value: V,
        worth: impl Fn(&V) -> W,
    ) -> Option<V> {
        let index = self.set(site);
        let set = &mut self.sets[index];
        assert!(set.place(site).is_none(), "a site is entered once");
        if let Some(free) = set.place(Key::default()) {
            self.held += 1;
            (set.keys[free], set.values[free]) = (site, value);
            return None;
        }
        self.evicted += 1;
        let least = (0..WAYS).min_by_key(|place| worth(&set.values[*place]));
        let least = least.expect("a set has places");
        let gone = set.values[least];
        // The keys after it move down by one, so that the slots stay in order of arrival.
        set.keys[least..].rotate_left(1);
        set.values[least..].rotate_left(1);
        (set.keys[WAYS - 1], set.values[WAYS - 1]) = (site, value);
        Some(gone)
    }

    fn set(&self, site: Key) -> usize {
        let set = (u128::from(site.0) * self.sets.len() as u128) >> 64;
        usize::try_from(set).expect("below the number of sets")
    }

    /// Returns all stored sites with their values. Added in this order to an empty table of the
    /// same size, they give the same table.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &V)> {
        let places = |set: &'_ Set<V>| set.place(Key::default()).unwrap_or(WAYS);
        self.sets
            .iter()
            .flat_map(move |set| set.keys.iter().copied().zip(&set.values).take(places(set)))
    }
}

impl<V> Set<V> {
    fn place(&self, site: Key) -> Option<usize> {
        // Eight comparisons without a branch, because the end of a search can't be predicted.
        let place = (0..WAYS)
            .rev()
            .fold(WAYS, |found, place| if self.keys[place] == site { place } else { found });
        (place < WAYS).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::rating::tests::url;
    use crate::url::Url;

    /// Law: the table agrees with a list for each set that is searched linearly.
    #[test]
    fn the_least_and_oldest_gives_way() {
        for sets in [1, 3, 16] {
            let mut random = Random(0x5eed_0604);
            let mut sites: Sites<u64> = Sites::new(sets * WAYS + 5);
            let mut model: Vec<Vec<(Key, u64)>> = vec![Vec::new(); sets];
            let mut evicted = 0;
            for _ in 0..20_000 {
                let site = Key((random.below(sets as u64 * 12) + 1) << 50 | 1);
                let list = &mut model[((u128::from(site.0) * sets as u128) >> 64) as usize];
                let known = list.iter_mut().find(|(key, _)| *key == site);
                assert_eq!(sites.find(site), known.as_ref().map(|(_, count)| count));
                if let Some((_, count)) = known {
                    let more = random.below(3);
                    *count += more;
                    *sites.find_mut(site).expect("just found") += more;
                    continue;
                }
                let mut gone = None;
                if list.len() == WAYS {
                    let least = list.iter().map(|(_, count)| *count).min().expect("it is full");
                    let at = list.iter().position(|(_, count)| *count == least);
                    gone = Some(list.remove(at.expect("it has a least")).1);
                    evicted += 1;
                }
                let value = random.below(5);
                list.push((site, value));
                assert_eq!(sites.enter(site, value, |count| *count), gone);
                assert_eq!(sites.held(), model.iter().map(Vec::len).sum::<usize>());
                assert_eq!(sites.evicted(), evicted);
            }
            let all: Vec<u64> = model.iter().flatten().map(|(_, count)| *count).collect();
            assert_eq!(sites.iter().map(|(_, value)| *value).collect::<Vec<_>>(), all);
            assert!(evicted > 100 || sets > 1, "{evicted}");
        }
    }

    #[test]
    fn no_size_is_too_small() {
        for sites_max in [0, 1, 8, 15] {
            let mut sites: Sites<u32> = Sites::new(sites_max);
            for site in 1..100 {
                sites.enter(Key(site << 56), 1, |count| *count);
            }
            assert_eq!((sites.held(), sites.evicted()), (8, 91));
        }
    }

    /// The figures in the documentation of the table.
    #[test]
    fn how_full_it_gets() {
        for (sites, most_forgotten) in [(8_000, 1_150), (4_000, 50)] {
            let names = Names::new(Site::Server, [2; 16]);
            let mut table: Sites<u32> = Sites::new(8_000);
            for site in 0..sites {
                let url = url(&format!("http://h{site}.test/"));
                table.enter(names.key(url.view()), 0, |count| *count);
            }
            assert!(table.evicted() <= most_forgotten, "{} of {sites}", table.evicted());
            assert_eq!(table.held() as u64 + table.evicted(), sites);
        }
    }

    /// Law: the cached origins change no answer.
    #[test]
    fn links_are_sorted_as_their_names_say() {
        let hosts = ["a.test", "b.a.test", "b.test", "c.b.test", "a.co.uk", "b.co.uk", "10.0.0.1"];
        let mut random = Random(0x5eed_0605);
        let mut draw = || {
            let scheme = ["http", "https"][random.below(2) as usize];
            let host = hosts[random.below(7) as usize];
            url(&format!("{scheme}://{host}{}/x", ["", ":81"][random.below(2) as usize]))
        };
        for site in Site::ALL {
            let names = Names::new(site, [3; 16]);
            for _ in 0..200 {
                let page = draw();
                let links: Vec<_> = (0..30).map(|_| draw()).collect();
                let (mut found, mut expected) = (Vec::new(), Vec::new());
                let count = names.sort(page.view(), &mut links.iter().map(Url::view), &mut found);
                for link in &links {
                    let is_own = match site {
                        Site::Server => link.view().origin() == page.view().origin(),
                        Site::Domain => {
                            let of = |host| domain::registrable(host);
                            of(link.view().host()) == of(page.view().host())
                        }
                    };
                    expected.extend((!is_own).then(|| names.key(link.view())));
                }
                assert_eq!((found, count), (expected, 30), "{page} {links:?} {site:?}");
            }
        }
    }
}
