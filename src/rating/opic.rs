//! Quality as importance by OPIC, on-line page importance computation, at the level of sites.
//!
//! Each site has cash and a history. When one of its pages is read, the cash of the site is
//! distributed along the page's links, in equal shares, and the distributed amount is added to the
//! site's history. A site that often receives much cash gets a long history: the importance of a
//! site is its history and cash relative to those of all sites. It converges to the probability of
//! a random surfer, whatever the order in which pages are read, without a matrix of links.
//!
//! - A site that is seen for the first time gets one unit of cash.
//! - Each page has an additional link to a *virtual page* that links to all sites. So no cash is
//!   trapped in a part of the web, and a page without links gives all of its cash to the virtual
//!   page. What the virtual page has received is paid out to all sites in equal parts after each
//!   page.
//! - The shares of links within the site stay there and add nothing to its history. So does an
//!   indivisible remainder.
//! - The cash of an evicted site goes to the virtual page, and the site that took its slot gets its
//!   unit from there, as far as it suffices.
//!
//! The quality of a URL is the importance of its site, scaled so that the mean of the stored sites
//! is one; a site that isn't stored has the quality of a new one.
//!
//! Laws: apart from the first unit of a site, cash is neither created nor lost, to the last
//! fraction: at any time the total is one unit for each stored site. Qualities of the stored sites
//! have a mean of one, except for rounding and [`Quality::MAX`].
//!
//! Why by site: the importance of pages would have to be stored for each URL found, known or not,
//! and their number is unbounded. The price: all URLs of a site have the same quality, its front
//! page and the last page of its archive, so the order within a site is that of arrival. As in the
//! plain form of the paper, history is never aged: sites that were found early have more of it,
//! until the crawl has visited all sites often enough.
//!
//! Cost: 32 bytes a site, 66 ns a link. Paying out to all sites is one addition: each site stores
//! the total that a site had been paid at its last update, and adds the difference at the next.
//! Source: Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation, WWW 2003.

use super::PIECE_BYTES;
use super::sites::{Key, Names, Sites};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::url::UrlRef;

/// The first cash of a site, in the fractions in which all cash is counted: even a page with ten
/// thousand links divides it into shares that are exact to a thousandth.
const UNIT: u64 = 1 << 24;

/// The accounts of all sites, and the virtual page.
#[derive(Debug)]
pub(super) struct Opic {
    names: Names,
    accounts: Sites<Account>,
    /// The total that each site has been paid by the virtual page since the crawl began. It may
    /// wrap around, because only differences are used, which are at most all existing cash.
    paid: u64,
    /// The cash of the virtual page, which it has not paid out yet.
    pot: u64,
    /// The sum of the histories of all stored sites.
    history: u128,
    /// The target sites of the current page's links; kept to reuse the memory.
    others: Vec<Key>,
}

/// The first byte of each piece that [`Opic::encode`] writes.
pub(super) const TAG: u8 = b'o';

/// The account of a site.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// The cash of the site at its last update.
    cash: u64,
    /// All cash of the site that was ever distributed.
    history: u64,
    /// The value of [`Opic::paid`] at the last update of the account.
    paid: u64,
}

impl Account {
    /// Returns the cash of the site now: with the payments of the virtual page since the last
    /// update. `paid` is [`Opic::paid`].
    fn cash(&self, paid: u64) -> u64 {
        self.cash + paid.wrapping_sub(self.paid)
    }

    /// Returns the sum of history and cash, which determines the importance of the site. `paid` is
    /// [`Opic::paid`].
    fn worth(&self, paid: u64) -> u128 {
        u128::from(self.history) + u128::from(self.cash(paid))
    }

    /// Adds the payments of the virtual page since the last update to the cash of the site.
    fn settle(&mut self, paid: u64) {
        self.cash = self.cash(paid);
        self.paid = paid;
    }
}

impl Opic {
    /// Creates the state before any site was seen, for at most `sites_max` sites.
    pub(super) fn new(names: Names, sites_max: usize) -> Self {
        let accounts = Sites::new(sites_max);
        Self { names, accounts, paid: 0, pot: 0, history: 0, others: Vec::new() }
    }

    /// Returns the quality of a URL, which is that of its site.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        let account = self.accounts.find(self.names.key(url));
        let worth = account.map_or(u128::from(UNIT), |account| account.worth(self.paid));
        // The product is below 2^65 * 10^6 * 2^40 (sites), so it doesn't overflow.
        let scaled = worth * u128::from(Quality::ONE.millionths()) * self.accounts.held() as u128;
        match scaled.checked_div(self.history + u128::from(self.cash() - self.pot)) {
            Some(millionths) => {
                Quality::from_millionths(u64::try_from(millionths).unwrap_or(u64::MAX))
            }
            None => Quality::ONE,
        }
    }

    /// Distributes the cash of a page's site along the page's links.
    pub(super) fn page<'a>(
        &mut self,
        page: UrlRef<'_>,
        links: &mut dyn Iterator<Item = UrlRef<'a>>,
    ) {
        let mut others = std::mem::take(&mut self.others);
        let count = self.names.sort(page, links, &mut others);
        let share = self.spend(self.names.key(page), count as u64 + 1, others.len() as u64 + 1);
        self.pot += share;
        for site in others.drain(..) {
            self.account(site).cash += share;
        }
        self.others = others;
        self.pay_out();
    }

    /// Encodes all cash and history in pieces, for a later run. Each piece begins with the values
    /// that belong to no site.
    pub(super) fn encode(&self, report: &mut dyn FnMut(&[u8])) {
        let mut head = vec![TAG];
        head.put_u64(self.paid);
        head.put_u64(self.pot);
        head.put_u64(self.history as u64);
        head.put_u64((self.history >> 64) as u64);
        let mut piece = head.clone();
        for (site, account) in self.accounts.iter() {
            piece.put_u64(site.0);
            piece.put_u64(account.cash);
            piece.put_u64(account.history);
            piece.put_u64(account.paid);
            if piece.len() >= PIECE_BYTES {
                report(&piece);
                piece.clone_from(&head);
            }
        }
        report(&piece);
    }

    /// Adds the accounts of one piece that [`Opic::encode`] wrote.
    pub(super) fn decode(&mut self, mut take: Take<'_>) -> Result<(), Short> {
        (self.paid, self.pot) = (take.u64()?, take.u64()?);
        self.history = u128::from(take.u64()?) | u128::from(take.u64()?) << 64;
        while !take.is_empty() {
            let site = Key(take.u64()?);
            let account = Account { cash: take.u64()?, history: take.u64()?, paid: take.u64()? };
            if site == Key::default() || self.accounts.find(site).is_some() {
                return Err(Short);
            }
            let paid = self.paid;
            self.accounts.enter(site, account, |account| account.worth(paid));
        }
        Ok(())
    }

    /// Returns the number of stored sites.
    pub(super) fn sites(&self) -> usize {
        self.accounts.held()
    }

    /// Returns the number of sites that were evicted so far.
    pub(super) fn evicted(&self) -> u64 {
        self.accounts.evicted()
    }

    /// Divides a site's cash into `shares` equal parts, removes `spent` of them, and returns the
    /// size of a part.
    fn spend(&mut self, site: Key, shares: u64, spent: u64) -> u64 {
        let account = self.account(site);
        let share = account.cash / shares;
        account.cash -= share * spent;
        let before = account.history;
        account.history = before.saturating_add(share * spent);
        let more = account.history - before;
        self.history += u128::from(more);
        share
    }

    /// Returns the account of a site with all payments added. Opens one if the site has none.
    fn account(&mut self, site: Key) -> &mut Account {
        if self.accounts.find(site).is_none() {
            self.open(site);
        }
        let account = self.accounts.find_mut(site).expect("found or opened");
        account.settle(self.paid);
        account
    }

    /// Opens an account for a site: with a new unit of cash if there was a free slot, otherwise
    /// with as much of a unit as the virtual page has.
    fn open(&mut self, site: Key) {
        let paid = self.paid;
        let account = Account { cash: UNIT, history: 0, paid };
        if let Some(gone) = self.accounts.enter(site, account, |account| account.worth(paid)) {
            self.history -= u128::from(gone.history);
            self.pot += gone.cash(paid);
            let cash = UNIT.min(self.pot);
            self.pot -= cash;
            let account = self.accounts.find_mut(site).expect("just entered");
            account.cash = cash;
        }
    }

    /// Distributes the cash of the virtual page to all sites equally. An indivisible remainder
    /// stays.
    fn pay_out(&mut self) {
        let sites = self.accounts.held() as u64;
        self.paid = self.paid.wrapping_add(self.pot / sites);
        self.pot %= sites;
    }

    /// Returns the total of all cash, which by the first law is one unit for each stored site.
    fn cash(&self) -> u64 {
        self.accounts.held() as u64 * UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::rating::Site;
    use crate::rating::tests::{World, url};
    use crate::url::Url;
    use std::collections::BTreeMap;

    fn read(opic: &mut Opic, page: &Url, links: &[Url]) {
        opic.page(page.view(), &mut links.iter().map(Url::view));
    }

    /// Returns the total of all cash, summed over the accounts.
    fn cash_of_all(opic: &Opic) -> u64 {
        opic.accounts
            .iter()
            .map(|(_, account)| account)
            .map(|account| account.cash(opic.paid))
            .sum::<u64>()
            + opic.pot
    }

    fn worth_of_all(opic: &Opic) -> u128 {
        opic.accounts
            .iter()
            .map(|(_, account)| account)
            .map(|account| account.worth(opic.paid))
            .sum()
    }

    /// The rules at the head of this file, implemented literally and unbounded.
    #[derive(Default)]
    struct Model {
        /// Cash and history by site.
        sites: BTreeMap<String, (u64, u64)>,
        pot: u64,
    }

    impl Model {
        fn read(&mut self, own: String, links: &[String]) {
            for site in std::iter::once(&own).chain(links) {
                self.sites.entry(site.clone()).or_insert((UNIT, 0));
            }
            let mut given: BTreeMap<&str, u64> = BTreeMap::new();
            let account = self.sites.get_mut(&own).expect("just met");
            let share = account.0 / (links.len() as u64 + 1);
            for link in links.iter().filter(|link| **link != own) {
                *given.entry(link).or_default() += share;
            }
            let spent = share + given.values().sum::<u64>();
            *account = (account.0 - spent, account.1 + spent);
            for (site, cash) in given {
                self.sites.get_mut(site).expect("just met").0 += cash;
            }
            self.pot += share;
            let each = self.pot / self.sites.len() as u64;
            self.sites.values_mut().for_each(|(cash, _)| *cash += each);
            self.pot -= each * self.sites.len() as u64;
        }

        fn quality(&self, site: &str) -> u64 {
            let worth = |(cash, history): &(u64, u64)| u128::from(cash + history);
            let all: u128 = self.sites.values().map(worth).sum();
            let own = self.sites.get(site).map_or(u128::from(UNIT), worth);
            u64::try_from(own * self.sites.len() as u128 * 1_000_000 / all).expect("small")
        }
    }

    /// Law: with space for all sites, all accounts are exactly those of the rules.
    #[test]
    fn the_books_are_those_of_the_rules() {
        for site in Site::ALL {
            let world = World { site, sites: 60 };
            let mut random = Random(0x5eed_0609);
            let mut opic = Opic::new(Names::new(site, [7; 16]), 4_096);
            let mut model = Model::default();
            for round in 0..3_000 {
                let (page, links) = world.page(&mut random);
                read(&mut opic, &page, &links);
                let names: Vec<String> = links.iter().map(|link| world.name(link)).collect();
                model.read(world.name(&page), &names);
                if round % 50 != 0 {
                    continue;
                }
                assert_eq!((opic.sites(), opic.pot), (model.sites.len(), model.pot));
                for (site, url) in world.all() {
                    let expected = model.quality(&site);
                    assert_eq!(opic.of(url.view()).millionths(), expected, "{url} {round}");
                }
            }
            assert_eq!(opic.evicted(), 0);
        }
    }

    /// Law: cash is conserved and the mean quality is one, also in tables that are too small.
    #[test]
    fn cash_is_conserved() {
        for (sites_max, sites) in [(8, 40), (64, 300), (1_024, 300)] {
            let world = World { site: Site::Server, sites };
            let mut random = Random(0x5eed_060a);
            let places = sites_max as u64;
            let mut opic = Opic::new(Names::new(Site::Server, [8; 16]), sites_max);
            let mut moved = 0;
            for _ in 0..10_000 {
                let (page, links) = world.page(&mut random);
                let before = opic.history;
                read(&mut opic, &page, &links);
                moved += u64::from(opic.history != before);
                assert_eq!(cash_of_all(&opic), opic.sites() as u64 * UNIT);
                assert_eq!(opic.cash(), cash_of_all(&opic));
                let all = opic.history + u128::from(opic.cash() - opic.pot);
                assert_eq!(worth_of_all(&opic), all);
            }
            // Less in the smallest: new sites find no cash in the virtual page.
            assert!(moved > 4_000, "{moved}");
            assert!(opic.sites() <= sites_max && (opic.evicted() > 0) == (sites > places));
            if sites < places {
                let all = world.all();
                let sum: u64 = all.iter().map(|(_, url)| opic.of(url.view()).millionths()).sum();
                let mean = sum / all.len() as u64;
                assert!((999_999..=1_000_000).contains(&mean), "{mean}");
            }
        }
    }

    /// If the payments wrap around, the difference is still correct.
    #[test]
    fn what_was_paid_may_wrap_round() {
        let world = World { site: Site::Server, sites: 40 };
        let random = || Random(0x5eed_060b);
        let (mut one, mut other) = (random(), random());
        let mut opic = Opic::new(Names::new(Site::Server, [9; 16]), 4_096);
        let mut wrapping = Opic::new(Names::new(Site::Server, [9; 16]), 4_096);
        wrapping.paid = u64::MAX - UNIT;
        for _ in 0..2_000 {
            let (page, links) = world.page(&mut one);
            read(&mut opic, &page, &links);
            let (page, links) = world.page(&mut other);
            read(&mut wrapping, &page, &links);
        }
        assert!(wrapping.paid < u64::MAX / 2 && opic.paid > UNIT, "it has wrapped");
        for (_, url) in world.all() {
            assert_eq!(opic.of(url.view()), wrapping.of(url.view()));
        }
    }

    #[test]
    fn first_pages_and_pages_without_links() {
        let mut opic = Opic::new(Names::new(Site::Server, [1; 16]), 1_024);
        let (a, b) = (url("http://a.test/"), url("http://b.test/"));
        assert_eq!(opic.of(a.view()), Quality::ONE, "nothing is known");
        read(&mut opic, &a, &[]);
        assert_eq!((opic.of(a.view()), opic.history), (Quality::ONE, u128::from(UNIT)));
        assert_eq!((cash_of_all(&opic), opic.pot), (UNIT, 0), "all came back as its only site's");
        // It has two units now, one of them history.
        assert_eq!(opic.of(b.view()).millionths(), 500_000, "as a newcomer");
        read(&mut opic, &a, &[a.clone(), b.clone(), a.clone()]);
        // A quarter each: two stay, one goes to b, one is paid out to both.
        assert_eq!(opic.history, u128::from(UNIT + UNIT / 2));
        let expected = [(&a, UNIT / 2 + UNIT / 8 + UNIT * 3 / 2), (&b, UNIT + UNIT / 4 + UNIT / 8)];
        for (site, worth) in expected {
            let quality = worth * 2 * 1_000_000 / (UNIT * 7 / 2);
            assert_eq!(opic.of(site.view()).millionths(), quality, "{site}");
        }
    }

    /// Theorem of the paper (section 3): importance converges to the stationary distribution of the
    /// random walk, in whatever order pages are read.
    #[test]
    fn it_converges_on_the_walk() {
        // The links of the page of each site, also to itself.
        const LINKS: [&[usize]; 6] = [&[1, 2, 0, 0], &[2], &[0, 3, 3], &[2, 3], &[2, 4, 4, 4], &[]];
        let sites: Vec<Url> = (0..6).map(|site| url(&format!("http://h{site}.test/"))).collect();
        // The random walk: along a link that leaves the site or to the virtual page, from there
        // anywhere.
        let (mut at, mut virtual_page) = ([1.0_f64; 6], 1.0);
        for _ in 0..2_000 {
            let mut next = [virtual_page / 6.0; 6];
            virtual_page = 0.0;
            for (site, links) in LINKS.iter().enumerate() {
                let leaving: Vec<usize> =
                    links.iter().copied().filter(|link| *link != site).collect();
                let share = at[site] / (leaving.len() + 1) as f64;
                leaving.iter().for_each(|link| next[*link] += share);
                virtual_page += share;
            }
            at = next;
        }
        let mean = at.iter().sum::<f64>() / 6.0;

        let mut random = Random(0x5eed_060c);
        let mut opic = Opic::new(Names::new(Site::Server, [2; 16]), 1_024);
        for _ in 0..60_000 {
            // Some are read far more often than others.
            let site = (random.below(6) * random.below(6) / 4).min(5) as usize;
            let links: Vec<Url> = LINKS[site].iter().map(|link| sites[*link].clone()).collect();
            read(&mut opic, &sites[site], &links);
        }
        for (site, expected) in sites.iter().zip(at.map(|share| share / mean)) {
            let found = opic.of(site.view()).millionths() as f64 / 1e6;
            assert!((found / expected - 1.0).abs() < 0.01, "{site}: {found} for {expected}");
        }
    }
}
