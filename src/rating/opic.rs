//! Quality as importance by OPIC, on-line page importance computation, at the level of sites.
//!
//! Each site holds cash and a history. When one of its pages is read, the cash of the site goes
//! out along the page's links, in equal shares, and what goes out is added to the site's history.
//! Cash that comes in often and much makes a long history: the importance of a site is its history
//! and cash against those of all sites. It converges on what a random surfer would find, whatever
//! the order in which pages are read, without a matrix of links.
//!
//! - A site met for the first time gets one unit of cash.
//! - Each page has one link more than it shows, to a *virtual page* that links to all sites: so no
//!   cash is caught in a corner, and a page without links gives all it has to the virtual page.
//!   What that has got is paid out to all sites, evenly, after each page.
//! - The shares of links within the site stay where they are and make no history: they are no
//!   votes. So does what can't be divided.
//! - The cash of a site that is forgotten goes to the virtual page, and the site that took its
//!   place gets its unit from there, as far as there is so much.
//!
//! The quality of a URL is its site's importance, scaled so that the mean site held is worth one; a
//! site that isn't held is worth what a newcomer is.
//!
//! Laws: cash is neither made nor lost but by a first unit, to the last fraction: all there is, at
//! any time, is one unit for each site held. Qualities of the sites held have a mean of one, but
//! for rounding and [`Quality::MAX`].
//!
//! Why by site: a page's importance would have to be kept for each URL met, known or not, and these
//! have no bound. What that loses: all URLs of a site are worth the same, its front page and the
//! last page of its archive; the order within a site is left to arrival. And as in the paper's
//! plain form, history is never aged: who came early has more of it, until the crawl has gone round
//! often enough.
//!
//! Cost: 32 bytes a site, 66 ns a link. Paying out to all sites is one addition: each site notes
//! how much a site had been paid when it last looked, and takes the difference when it looks again.
//! Source: Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation, WWW 2003.

use super::PIECE_BYTES;
use super::sites::{Key, Names, Sites};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::url::UrlRef;

/// A site's first cash, in the fractions that everything is counted in: even a page of ten
/// thousand links divides it into shares that are exact to a thousandth.
const UNIT: u64 = 1 << 24;

/// What sites hold, and the virtual page.
#[derive(Debug)]
pub(super) struct Opic {
    names: Names,
    accounts: Sites<Account>,
    /// What each site has been paid by the virtual page since the crawl began. Wraps round: only
    /// differences count, and they are cash that there is.
    paid: u64,
    /// What the virtual page holds.
    pot: u64,
    /// Histories of all sites held.
    history: u128,
    /// Where the links of the page at hand lead. Kept for its memory.
    others: Vec<Key>,
}

/// Begins each piece that is written down.
pub(super) const TAG: u8 = b'o';

/// What is known of a site.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// As of the last look.
    cash: u64,
    /// All cash that has ever gone out.
    history: u64,
    /// [`Opic::paid`] at the last look.
    paid: u64,
}

impl Account {
    /// Its cash, with what it has been paid since.
    fn cash(&self, paid: u64) -> u64 {
        self.cash + paid.wrapping_sub(self.paid)
    }

    /// What its importance is measured by.
    fn worth(&self, paid: u64) -> u128 {
        u128::from(self.history) + u128::from(self.cash(paid))
    }

    /// Takes what it has been paid since.
    fn settle(&mut self, paid: u64) {
        self.cash = self.cash(paid);
        self.paid = paid;
    }
}

impl Opic {
    /// No site met yet.
    pub(super) fn new(names: Names, sites_max: usize) -> Self {
        let accounts = Sites::new(sites_max);
        Self { names, accounts, paid: 0, pot: 0, history: 0, others: Vec::new() }
    }

    /// The quality of a URL's site.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        let account = self.accounts.find(self.names.key(url));
        let worth = account.map_or(u128::from(UNIT), |account| account.worth(self.paid));
        // Below 2^65 * 10^6 * 2^40 sites: no overflow.
        let scaled = worth * u128::from(Quality::ONE.millionths()) * self.accounts.held() as u128;
        match scaled.checked_div(self.history + u128::from(self.cash() - self.pot)) {
            Some(millionths) => {
                Quality::from_millionths(u64::try_from(millionths).unwrap_or(u64::MAX))
            }
            None => Quality::ONE,
        }
    }

    /// Passes the cash of a page's site on along the page's links.
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

    /// Tells all cash and history piece by piece, for a later run. Each piece begins with what is
    /// no site's.
    pub(super) fn encode(&self, tell: &mut dyn FnMut(&[u8])) {
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
                tell(&piece);
                piece.clone_from(&head);
            }
        }
        tell(&piece);
    }

    /// Takes in a piece that [`Opic::encode`] told.
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

    /// Sites counted.
    pub(super) fn sites(&self) -> usize {
        self.accounts.held()
    }

    /// Sites forgotten.
    pub(super) fn forgotten(&self) -> u64 {
        self.accounts.forgotten()
    }

    /// Takes so many of all `shares` of a site's cash out of it, and says how large one is.
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

    /// The account of a site, with its cash as of now; opened if need be.
    fn account(&mut self, site: Key) -> &mut Account {
        if self.accounts.find(site).is_none() {
            self.open(site);
        }
        let account = self.accounts.find_mut(site).expect("found or opened");
        account.settle(self.paid);
        account
    }

    /// Opens an account: with a new unit of cash if there was room, else with what can be had.
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

    /// The virtual page is read: all sites get the same, a rest stays.
    fn pay_out(&mut self) {
        let sites = self.accounts.held() as u64;
        self.paid = self.paid.wrapping_add(self.pot / sites);
        self.pot %= sites;
    }

    /// All cash there is, by the law: a unit for each site held.
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

    /// All cash in fact, by the books of each site.
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

    /// The rules as the head of the file has them, word by word, without bound.
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

    /// Law: with room for all, to the last fraction what the rules say.
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
            assert_eq!(opic.forgotten(), 0);
        }
    }

    /// Law: cash is conserved and the mean quality is one, in tables too small as well.
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
            // Less in the smallest: newcomers find an empty pot.
            assert!(moved > 4_000, "{moved}");
            assert!(opic.sites() <= sites_max && (opic.forgotten() > 0) == (sites > places));
            if sites < places {
                let all = world.all();
                let sum: u64 = all.iter().map(|(_, url)| opic.of(url.view()).millionths()).sum();
                let mean = sum / all.len() as u64;
                assert!((999_999..=1_000_000).contains(&mean), "{mean}");
            }
        }
    }

    /// Cash that wraps round: the difference still is what was paid.
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
        // Its worth is two units now, one of them history.
        assert_eq!(opic.of(b.view()).millionths(), 500_000, "as a newcomer");
        read(&mut opic, &a, &[a.clone(), b.clone(), a.clone()]);
        // A quarter each: two stay, one is b's, one is paid out to both.
        assert_eq!(opic.history, u128::from(UNIT + UNIT / 2));
        let expected = [(&a, UNIT / 2 + UNIT / 8 + UNIT * 3 / 2), (&b, UNIT + UNIT / 4 + UNIT / 8)];
        for (site, worth) in expected {
            let quality = worth * 2 * 1_000_000 / (UNIT * 7 / 2);
            assert_eq!(opic.of(site.view()).millionths(), quality, "{site}");
        }
    }

    /// Theorem of the paper (section 3): importance converges on the fixed point of the walk, in
    /// whatever order pages are read.
    #[test]
    fn it_converges_on_the_walk() {
        // Where the page of each site links to, itself included.
        const LINKS: [&[usize]; 6] = [&[1, 2, 0, 0], &[2], &[0, 3, 3], &[2, 3], &[2, 4, 4, 4], &[]];
        let sites: Vec<Url> = (0..6).map(|site| url(&format!("http://h{site}.test/"))).collect();
        // The walk: along a link that leaves the site or to the virtual page, from there anywhere.
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
