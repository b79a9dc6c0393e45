//! Tests the ratings through their interface; also contains what the tests of the sources share.

use super::*;
use crate::ground::random::Random;
use crate::url::Url;

pub(super) fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

/// A web of so many hosts, three in a domain; low numbers are linked to more often.
pub(super) struct World {
    pub(super) site: Site,
    pub(super) sites: u64,
}

impl World {
    /// Returns a page and its links: most within its host, some of them duplicates.
    pub(super) fn page(&self, random: &mut Random) -> (Url, Vec<Url>) {
        let own = random.below(self.sites);
        let count = random.below(30);
        let links = (0..count).map(|_| {
            let host = match random.below(4) {
                0 => random.below(self.sites) * random.below(self.sites) / self.sites,
                _ => own,
            };
            self.url(host, random.below(5))
        });
        let links = links.collect();
        (self.url(own, 0), links)
    }

    /// Returns the name of a URL's site, cut out of its text.
    pub(super) fn name(&self, url: &Url) -> String {
        let host = url.as_str().split('/').nth(2).expect("a host behind the scheme");
        match self.site {
            Site::Server => host.to_owned(),
            Site::Domain => host.split_once('.').expect("hosts have three labels").1.to_owned(),
        }
    }

    /// Returns the name of the site and a URL for each host.
    pub(super) fn all(&self) -> Vec<(String, Url)> {
        let urls = (0..self.sites).map(|host| self.url(host, 9));
        urls.map(|url| (self.name(&url), url)).collect()
    }

    fn url(&self, host: u64, page: u64) -> Url {
        url(&format!("http://h{host}.d{}.test/{page}", host / 3))
    }
}

fn rating(source: Source) -> Rating {
    Rating::new(Settings { source, sites_max: 1_024, ..Settings::default() })
}

/// Returns the quality of a URL that was found on no page.
fn of(rating: &Rating, url: UrlRef<'_>) -> Quality {
    rating.of(url, Found::default())
}

/// The quality by each source before any page.
#[test]
fn sources_before_any_page() {
    let url = url("http://a.test/");
    for (source, name, counts) in [
        (Source::Uniform, "uniform", false),
        (Source::Zipf, "zipf", false),
        (Source::Table, "file", false),
        (Source::Inlinks, "inlinks", true),
        (Source::Opic, "opic", true),
        (Source::Parent, "parent", false),
        (Source::Depth, "depth", false),
        (Source::Command, "command", false),
    ] {
        let rating = rating(source);
        assert_eq!((source.name(), rating.counts_links()), (name, counts));
        assert_eq!(of(&rating, url.view()) == Quality::ONE, source != Source::Zipf, "{name}");
        let numbers = (rating.unused(), rating.sites(), rating.evicted());
        assert_eq!((numbers, rating.unlisted()), ((0, 0, 0), u64::from(source == Source::Table)));
    }
    assert_eq!(Source::ALL.map(Source::name).len(), 8);
    assert_eq!(Site::ALL.map(Site::name), ["server", "domain"]);
}

/// Law: pages have an effect if `counts_links` says so, and only then; look-ups have none.
#[test]
fn pages_count_where_they_are_said_to() {
    let world = World { site: Site::Server, sites: 30 };
    for source in Source::ALL {
        let (mut rating, before) = (rating(source), rating(source));
        let mut random = Random(0x5eed_060d);
        for _ in 0..100 {
            let (page, links) = world.page(&mut random);
            rating.page(page.view(), &mut links.iter().map(Url::view));
        }
        let all = world.all();
        let changed =
            |(_, url): &&(String, Url)| of(&rating, url.view()) != of(&before, url.view());
        let found = all.iter().filter(changed).count();
        assert_eq!(found > 20, rating.counts_links(), "{source:?}: {found}");
        assert_eq!(found > 0, rating.counts_links(), "{source:?}: {found}");
        assert_eq!(all.iter().filter(changed).count(), found, "asked twice");
    }
}

/// Law: links between domains have an effect if `counts_domains` says so, and only then. They count
/// as those on pages do.
#[test]
fn links_between_domains_count_where_they_are_said_to() {
    let (page, link) = (url("http://a.test/"), url("http://www.b.test/"));
    for (source, site) in Source::ALL.into_iter().flat_map(|of| Site::ALL.map(|site| (of, site))) {
        let new = || Rating::new(Settings { source, site, sites_max: 64, ..Settings::default() });
        let (mut rating, mut by_page, before) = (new(), new(), new());
        (0..3).for_each(|_| rating.link_to("b.test"));
        let is_counted = (source, site) == (Source::Inlinks, Site::Domain);
        assert_eq!(rating.counts_domains(), is_counted, "{source:?} {site:?}");
        let [quality, unchanged] = [&rating, &before].map(|rating| of(rating, link.view()));
        assert_eq!(quality != unchanged, is_counted, "{source:?} {site:?}");
        by_page.page(page.view(), &mut std::iter::repeat_n(link.view(), 3));
        assert!(!is_counted || quality == of(&by_page, link.view()));
    }
}

/// Law: the same pages give the same qualities, whatever the key, as long as nothing is evicted.
#[test]
fn equal_histories_give_equal_qualities() {
    for source in [Source::Inlinks, Source::Opic] {
        for site in Site::ALL {
            let world = World { site, sites: 50 };
            let qualities = |key| -> Vec<Quality> {
                let settings =
                    Settings { source, site, key, sites_max: 2_048, ..Settings::default() };
                let mut rating = Rating::new(settings);
                let mut random = Random(0x5eed_060e);
                for _ in 0..500 {
                    let (page, links) = world.page(&mut random);
                    rating.page(page.view(), &mut links.iter().map(Url::view));
                }
                assert_eq!(rating.evicted(), 0);
                assert!(rating.sites() > 10);
                world.all().iter().map(|(_, url)| of(&rating, url.view())).collect()
            };
            assert_eq!(qualities([1; 16]), qualities([1; 16]));
            assert_eq!(qualities([1; 16]), qualities([2; 16]));
        }
    }
}

#[test]
fn a_table_and_its_default() {
    let mut table = Table::default();
    table.insert_host("a.test", Quality::MAX);
    table.insert_host("misspelt.test", Quality::MAX);
    let settings = Settings {
        source: Source::Table,
        table: Some(Arc::new(table)),
        unlisted: Quality::ZERO,
        ..Settings::default()
    };
    let rating = Rating::new(settings);
    for (text, quality) in [("http://a.test/", Quality::MAX), ("http://b.test/", Quality::ZERO)] {
        assert_eq!(of(&rating, url(text).view()), quality, "{text}");
    }
    assert_eq!((rating.unused(), rating.unlisted()), (1, 1));
}

/// Of a page with more links than are counted, those beyond the limit have no effect.
#[test]
fn lists_are_cut() {
    let page = url("http://a.test/");
    let (b, c) = (url("http://b.test/"), url("http://c.test/"));
    for source in [Source::Inlinks, Source::Opic] {
        let read = |links: &mut dyn Iterator<Item = UrlRef<'_>>| {
            let mut rating = rating(source);
            rating.page(page.view(), links);
            [&b, &c].map(|url| of(&rating, url.view()))
        };
        let counted = || std::iter::repeat_n(b.view(), LINKS_MAX);
        let whole = read(&mut counted());
        assert_eq!(read(&mut counted().chain([c.view()])), whole);
        assert_ne!(read(&mut counted().skip(1).chain([c.view()])), whole);
    }
}

/// Law: after encoding and decoding, estimates are the same and continue in the same way.
#[test]
fn what_was_learnt_survives_being_written_down() {
    for source in [Source::Inlinks, Source::Opic] {
        let world = World { site: Site::Server, sites: 300 };
        let mut random = Random(0x5eed_0701);
        let settings = Settings { source, sites_max: 200, ..Settings::default() };
        let mut first = Rating::new(settings.clone());
        let page = |rating: &mut Rating, (page, links): &(Url, Vec<Url>)| {
            rating.page(page.view(), &mut links.iter().map(Url::view));
        };
        (0..500).for_each(|_| page(&mut first, &world.page(&mut random)));
        let (mut second, mut pieces) = (Rating::new(settings.clone()), Vec::new());
        first.encode(&mut |piece| pieces.push(piece.to_vec()));
        pieces.iter().for_each(|piece| second.decode(piece).unwrap());
        for _ in 0..200 {
            let next = world.page(&mut random);
            let rate = |rating: &Rating| of(rating, next.0.view());
            assert_eq!(rate(&first), rate(&second));
            [&mut first, &mut second].into_iter().for_each(|rating| page(rating, &next));
        }
        let cut = &pieces[0][..pieces[0].len() - 1];
        assert_eq!(Rating::new(settings).decode(cut), Err(Short));
        assert_eq!(rating(Source::Uniform).decode(&pieces[0]), Ok(()), "another source's");
    }
}

/// A site with a quality of its own has it whatever the source; only a line of the table goes
/// first.
#[test]
fn a_site_has_its_own_quality() {
    use crate::url::site::{Matcher, Sites};
    let key = [3; 16];
    let text = b"http://a.test/x 5\n";
    let table = Table::parse(text, key, crate::url::Limits::default()).expect("a table");
    let own = Quality::from_millionths(7_000_000);
    for source in Source::ALL {
        let matcher = Matcher::host("a.test").expect("a host");
        let settings = Settings {
            source,
            key,
            table: Some(Arc::new(table.clone())),
            sites: Arc::new(Sites::new([&matcher])),
            own: vec![Some(own)],
            sites_max: 8,
            ..Settings::default()
        };
        let rating = Rating::new(settings);
        let of = |text: &str| of(&rating, url(text).view());
        assert_eq!(of("http://a.test/"), own, "{source:?}");
        assert_ne!(of("http://b.test/"), own, "{source:?}");
        let listed = Quality::from_millionths(5_000_000);
        let is_listed = matches!(source, Source::Table | Source::Parent);
        let expected = if is_listed { listed } else { own };
        assert_eq!(of("http://a.test/x"), expected, "{source:?}");
    }
}

/// Law: what a page links to has a quality that follows from the page's own, which is what is known
/// of it. Only a URL that was found on no page is looked up before it is fetched.
#[test]
fn links_inherit() {
    let mut table = Table::default();
    table.insert_host("a.test", Quality::from_millionths(9_000_000));
    let settings = Settings {
        source: Source::Parent,
        table: Some(Arc::new(table)),
        fall_milli: 500,
        ..Settings::default()
    };
    let rating = Rating::new(settings);
    let (a, b) = (url("http://a.test/"), url("http://b.test/"));
    assert_eq!(of(&rating, a.view()).millionths(), 9_000_000);
    assert_eq!(of(&rating, b.view()), Quality::ONE);
    let half = Quality::from_millionths(500_000);
    let linked = Found { estimate: rating.of_links(Quality::ONE), depth: 7 };
    assert_eq!([&a, &b].map(|url| rating.of(url.view(), linked)), [half; 2]);
    assert_eq!(rating.of_page(b.view()), None);
    let known = rating.of_page(a.view()).expect("its host is listed");
    assert_eq!(rating.of_links(known), Some(Quality::from_millionths(4_500_000)));
    assert_eq!(rating.of_links(Quality::from_millionths(3)), Some(Quality::from_millionths(1)));
    assert_eq!((rating.unused(), rating.unlisted(), rating.inherits()), (0, 0, true));
}

/// Law: the quality at a depth is a power, rounded down at each step; at great depths it no longer
/// changes.
#[test]
fn depth_is_a_power() {
    for fall_milli in [0, 1, 500, 800, 999, 1_000] {
        let rating =
            Rating::new(Settings { source: Source::Depth, fall_milli, ..Settings::default() });
        let mut expected = 1_000_000_u64;
        for depth in 0..=u16::MAX {
            let found = Found { estimate: Some(Quality::MAX), depth };
            let quality = rating.of(url("http://a.test/").view(), found);
            assert_eq!(quality.millionths(), expected, "{fall_milli} at {depth}");
            expected = expected * u64::from(fall_milli) / 1_000;
        }
    }
}
