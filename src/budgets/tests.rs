//! The laws of budgets, held to a naive model.

use super::*;
use crate::ground::disk::memory::Memory;
use crate::ground::random::Random;
use std::collections::BTreeMap;

const CRAWL: u64 = 7;

fn settings(budget: u32) -> Settings {
    Settings { max: budget, min: budget, top: 1 }
}

fn budgets(settings: Settings) -> Budgets {
    Budgets::new(settings, 1_000, Fingerprinter::new([5; 16]), Some(CRAWL))
}

/// Offers the URL of this number of a domain. Returns whether it is admitted.
fn offer(budgets: &mut Budgets, domain: u32, number: u32) -> bool {
    let offered = offer_within(budgets, u64::MAX, domain, number);
    assert_ne!(offered, Offered::Full);
    offered == Offered::Admitted
}

fn offer_within(budgets: &mut Budgets, most: u64, domain: u32, number: u32) -> Offered {
    let host = format!("h{}.d{domain}.test", number % 3);
    budgets.offer(&host, most, |out| {
        out.put_u32(domain);
        out.put_u32(number);
        // So that some records are longer than a frame.
        out.resize(out.len() + (number % 17 * domain) as usize, b'x');
    })
}

fn admit(budgets: &mut Budgets, disk: &mut Memory) -> Option<(u32, u32)> {
    let mut bytes = Vec::new();
    budgets.admit(&mut bytes, disk).expect("the disk is whole").then(|| {
        let mut take = Take::new(&bytes);
        (take.u32().expect("put"), take.u32().expect("put"))
    })
}

fn distribute_all(budgets: &mut Budgets, disk: &mut Memory) {
    while budgets.distribute(disk).expect("the disk is whole").is_some() {}
}

/// Saves everything and restores it, as a checkpoint and a restart do.
fn restart(budgets: &mut Budgets, settings: Settings, disk: &mut Memory) {
    restart_with(budgets, self::budgets(settings), disk);
}

fn restart_with(budgets: &mut Budgets, empty: Budgets, disk: &mut Memory) {
    let Mark { state, files } = budgets.mark(disk).expect("there is room");
    let mut pieces = Vec::new();
    budgets.encode_domains(&mut |piece| pieces.push(piece.to_vec()));
    for name in budgets.on_durable() {
        disk.remove(&name).expect("it is there");
    }
    *budgets = empty;
    budgets.restore_files(&files, disk).expect("just written");
    budgets.restore_mark(&state).expect("just written");
    pieces.iter().for_each(|piece| budgets.restore_domains(piece).expect("just written"));
}

/// Law: if all URLs are known at once, the n-th of a domain is admitted in pass n / budget, passes
/// follow each other, and the order is that of the offers.
#[test]
fn urls_of_a_domain_are_admitted_by_its_budget() {
    let (mut disk, settings) = (Memory::default(), settings(3));
    let mut budgets = budgets(settings);
    let mut admitted: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for number in 0..400 {
        for domain in 0..4 {
            if number < 100 * (domain + 1) && offer(&mut budgets, domain, number) {
                admitted.entry(0).or_default().push((domain, number));
            }
        }
    }
    let mut pass = 0;
    while budgets.advance() {
        pass += 1;
        assert_eq!(budgets.pass(), pass, "none is skipped");
        distribute_all(&mut budgets, &mut disk);
        while let Some(url) = admit(&mut budgets, &mut disk) {
            admitted.entry(pass).or_default().push(url);
        }
        if pass % 7 == 0 {
            restart(&mut budgets, settings, &mut disk);
        }
    }
    assert_eq!(budgets.waiting(), 0);
    for (pass, urls) in &admitted {
        let mut naive: Vec<(u32, u32)> = (0..4)
            .flat_map(|domain| (3 * pass..3 * pass + 3).map(move |number| (domain, number)))
            .filter(|(domain, number)| *number < 100 * (domain + 1))
            .collect();
        naive.sort_by_key(|(domain, number)| (*number, *domain));
        assert_eq!(urls, &naive, "pass {pass}");
    }
    assert_eq!(admitted.len(), 134);
}

/// Laws, for any order of calls, with budgets that change at restarts: each URL is admitted once,
/// those of a domain in their order, and in no pass more of a domain than its largest budget.
#[test]
fn any_order_of_calls_keeps_the_order_of_urls() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let (mut disk, mut largest) = (Memory::default(), 1 + random.below::<u32>(4));
        let mut budgets = budgets(settings(largest));
        let mut offered: BTreeMap<u32, u32> = BTreeMap::new();
        let mut admitted: BTreeMap<u32, u32> = BTreeMap::new();
        let mut in_pass: BTreeMap<u32, u32> = BTreeMap::new();
        let mut take = |(domain, number): (u32, u32), most, in_pass: &mut BTreeMap<u32, u32>| {
            let next = admitted.entry(domain).or_default();
            assert_eq!(*next, number, "seed {seed}, domain {domain}");
            *next += 1;
            let used = in_pass.entry(domain).or_default();
            *used += 1;
            assert!(*used <= most, "seed {seed}, domain {domain}");
        };
        for step in 0.. {
            let is_ending = step > 3_000;
            match random.below::<u32>(if is_ending { 40 } else { 100 }) {
                0 => {
                    let budget = 1 + random.below::<u32>(5);
                    largest = largest.max(budget);
                    let settings = Settings { max: budget, min: budget.min(2), top: 3 };
                    restart(&mut budgets, settings, &mut disk);
                }
                1..=5 => {
                    if budgets.advance() {
                        in_pass.clear();
                    }
                }
                6..=20 => _ = budgets.distribute(&mut disk).expect("whole"),
                21..=40 => {
                    if let Some(url) = admit(&mut budgets, &mut disk) {
                        take(url, largest, &mut in_pass);
                    }
                }
                41..=45 => {
                    let hosts = [0, 1, 2].map(|_| format!("d{}.test", random.below::<u32>(5)));
                    budgets.links(&hosts[0], hosts[1..].iter().map(String::as_str));
                }
                _ => {
                    let domain = random.below::<u32>(5).min(random.below::<u32>(5));
                    let number = offered.entry(domain).or_default();
                    // One that is refused was never there.
                    let most = if random.one_in(20) { 30 } else { u64::MAX };
                    let became = offer_within(&mut budgets, most, domain, *number);
                    if became == Offered::Admitted {
                        take((domain, *number), largest, &mut in_pass);
                    }
                    *number += u32::from(became != Offered::Full);
                }
            }
            if is_ending && budgets.waiting() == 0 {
                break;
            }
            assert!(step < 300_000, "seed {seed}: {} wait", budgets.waiting());
        }
        assert_eq!(offered, admitted, "seed {seed}");
        assert!(!budgets.advance() && !budgets.has_work());
        restart(&mut budgets, settings(1), &mut disk);
        budgets.mark(&mut disk).expect("there is room");
        budgets.on_durable();
        assert_eq!(budgets.bytes(), 0, "no file is kept for nothing");
    }
}

/// Law: a URL is moved a number of times that grows with the logarithm of the passes it waits, as
/// long as the number of queues doubles.
#[test]
fn urls_move_seldom() {
    let moves = |urls: u32| {
        let (mut disk, mut budgets) = (Memory::default(), budgets(settings(1)));
        (0..urls).for_each(|number| _ = offer(&mut budgets, 1, number));
        let mut moves = 0;
        while budgets.advance() {
            while budgets.distribute(&mut disk).expect("whole").is_some() {
                moves += 1;
            }
            while admit(&mut budgets, &mut disk).is_some() {}
        }
        moves
    };
    // Splits after 4, 12, 28 and 60 passes: at most four for a URL.
    assert!((100..=4 * 120).contains(&moves(120)), "{}", moves(120));
    // Then one in WIDTH_MAX passes.
    let splits = 5 + 2_000 / WIDTH_MAX;
    assert!(moves(2_000) <= 2_000 * splits, "{}", moves(2_000));
}

/// Law: of the URLs that may wait, one domain has at most its share, and those that are within
/// their budget need no room.
#[test]
fn what_may_wait_is_limited() {
    let (mut disk, mut budgets) = (Memory::default(), budgets(settings(1)));
    let mut count = |domain, number| offer_within(&mut budgets, 50, domain, number);
    let of_one: Vec<Offered> = (0..20).map(|number| count(0, number)).collect();
    assert_eq!(of_one[0], Offered::Admitted);
    assert!(of_one[1..6].iter().all(|offered| *offered == Offered::Waits));
    assert!(of_one[6..].iter().all(|offered| *offered == Offered::Full));
    for domain in 1..30 {
        assert_eq!(count(domain, 0), Offered::Admitted);
        let expected = if domain <= 9 { Offered::Waits } else { Offered::Full };
        for number in 1..6 {
            assert_eq!(count(domain, number), expected, "{domain}");
        }
    }
    assert_eq!(budgets.waiting(), 50);
    while budgets.advance() {
        distribute_all(&mut budgets, &mut disk);
        while admit(&mut budgets, &mut disk).is_some() {}
    }
    assert_eq!(offer_within(&mut budgets, 50, 40, 0), Offered::Admitted);
    assert_eq!(offer_within(&mut budgets, 50, 40, 1), Offered::Waits, "there is room again");
}

/// Names that are given away below one domain vote as that domain, and none of them for itself.
#[test]
fn a_name_that_is_given_away_has_no_vote_for_itself() {
    let settings = Settings { max: 100, min: 2, top: 10 };
    let mut budgets = Budgets::new(settings, 1_000, Fingerprinter::new([5; 16]), None);
    let degree = |budgets: &Budgets| budgets.of_host("a.github.io").map(|(degree, _)| degree);
    budgets.links("a.github.io", ["www.a.github.io"].into_iter());
    assert_eq!(degree(&budgets).unwrap_or(0), 0);
    for from in ["b.github.io", "c.github.io", "www.b.github.io"] {
        budgets.links(from, ["www.a.github.io"].into_iter());
    }
    assert_eq!(degree(&budgets), Some(1));
}

/// Budgets follow the ranks of domains by distinct domains that link to them, not by links. While
/// few are known, all have the lowest.
#[test]
fn links_from_many_domains_raise_a_budget() {
    let settings = Settings { max: 100, min: 2, top: 10 };
    let mut budgets = Budgets::new(settings, 10_000, Fingerprinter::new([5; 16]), None);
    let known = |number: u32| format!("www.known{number}.test");
    for linked in 0..30_u32 {
        // Known domain n is linked from 30 - n domains.
        let by = (linked..30).map(|from| format!("h{from}.from{from}.test"));
        for from in by {
            budgets.links(&from, [known(linked).as_str()].into_iter());
        }
    }
    for _ in 0..100 {
        // A farm of hosts on one domain, its own links, and one that links very often.
        budgets.links("a.farm.test", ["b.farm.test", "c.farm.test"].into_iter());
        budgets.links("x.friend.test", ["a.farm.test", "b.farm.test"].into_iter());
    }
    let best = |budgets: &Budgets| budgets.of_host("www.known0.test").map(|(_, budget)| budget);
    budgets.domains.rank();
    assert_eq!(best(&budgets), Some(2), "too early");
    let others: Vec<String> = (0..2_000).map(|other| format!("other{other}.test")).collect();
    for other in &others {
        budgets.links("www.list.test", [other.as_str()].into_iter());
    }
    budgets.domains.rank();
    assert_eq!(best(&budgets), Some(2), "domains may not exist");
    others.iter().for_each(|other| _ = budgets.links(other, [].into_iter()));
    let mut disk = Memory::default();
    restart_with(
        &mut budgets,
        Budgets::new(settings, 10_000, Fingerprinter::new([5; 16]), None),
        &mut disk,
    );
    budgets.domains.rank();
    let budget = |host: &str| budgets.of_host(host).map(|(_, budget)| budget);
    assert_eq!(budget("www.known0.test"), Some(100), "the best-linked one");
    assert_eq!(budget("z.farm.test"), Some(2));
    let all: Vec<u32> = (0..30).filter_map(|linked| budget(&known(linked))).collect();
    assert!(all.is_sorted_by(|better, worse| better >= worse), "{all:?}");
    assert!(all[5] > 2 && all[12..].iter().all(|budget| *budget == 2), "{all:?}");
}

#[test]
fn budgets_fall_linearly() {
    let settings = Settings { max: 10_000, min: 10, top: 10_000 };
    for (rank, budget) in [(1, 10_000), (2, 9_999), (5_000, 5_005), (9_999, 10), (10_000, 10)] {
        assert_eq!(settings.budget(rank), budget, "{rank}");
    }
    assert_eq!(settings.budget(1_000_000), 10);
    assert_eq!(Settings { max: 5, min: 5, top: 1 }.budget(1), 5);
    assert_eq!(Settings::UNLIMITED.budget(77), u32::MAX);
}

/// Domains past the maximum share the lowest budget; none is lost.
#[test]
fn domains_past_the_maximum_share_a_record() {
    let mut disk = Memory::default();
    let mut budgets = Budgets::new(settings(2), 3, Fingerprinter::new([5; 16]), Some(CRAWL));
    let direct = (0..50).filter(|domain| offer(&mut budgets, *domain, 0)).count();
    assert_eq!((direct, budgets.domains()), (5, 4), "three, and two of the others");
    // With room for all, those that share a record still come out.
    let room = Budgets::new(settings(2), 100, Fingerprinter::new([5; 16]), Some(CRAWL));
    restart_with(&mut budgets, room, &mut disk);
    let mut later = 0;
    while budgets.advance() {
        distribute_all(&mut budgets, &mut disk);
        later += std::iter::from_fn(|| admit(&mut budgets, &mut disk)).count();
    }
    assert_eq!(direct + later, 50);
}

/// What turns budgets off lets out all that waits.
#[test]
fn a_crawl_without_budgets_admits_what_waits() {
    let (mut disk, limited) = (Memory::default(), settings(1));
    let mut budgets = budgets(limited);
    (0..500).for_each(|number| _ = offer(&mut budgets, 1, number));
    restart(&mut budgets, Settings::UNLIMITED, &mut disk);
    assert!(!offer(&mut budgets, 1, 500), "behind the others");
    let mut next = 1;
    while budgets.advance() {
        distribute_all(&mut budgets, &mut disk);
        while let Some((_, number)) = admit(&mut budgets, &mut disk) {
            assert_eq!(number, next);
            next += 1;
        }
    }
    assert_eq!(next, 501);
    assert!(budgets.pass() < 20, "{}", budgets.pass());
}

/// A checkpoint that makes no sense is refused.
#[test]
fn marks_that_make_no_sense_are_refused() {
    let mut disk = Memory::default();
    let mut whole = budgets(settings(1));
    (0..300).for_each(|number| _ = offer(&mut whole, number % 2, number));
    let Mark { state, files } = whole.mark(&mut disk).expect("there is room");
    let (mut random, mut refused) = (Random(3), 0);
    for _ in 0..3_000 {
        let mut bytes = state.clone();
        bytes[random.below(state.len())] ^= 1 << random.below::<u32>(8);
        bytes.truncate(if random.one_in(2) { random.below(state.len()) } else { state.len() });
        let mut own = budgets(settings(1));
        own.restore_files(&files, &mut disk).expect("as written");
        let restored = own.restore_mark(&bytes);
        refused += u32::from(restored.is_err());
        if restored.is_ok() {
            // It reads what is there, or reports damage.
            for _ in 0..400 {
                let mut out = Vec::new();
                if own.distribute(&mut disk).is_err() || own.admit(&mut out, &mut disk).is_err() {
                    break;
                }
                own.advance();
            }
        }
    }
    assert!(refused > 1_500, "{refused}");
}
