//! The calendar beside a naive model of it.

use super::*;
use crate::ground::disk::memory::Memory;
use crate::ground::random::Random;
use std::collections::BTreeSet;

const CRAWL: u64 = 5;

/// The calendar, and a naive model of it.
struct Pair {
    random: Random,
    calendar: Calendar,
    disk: Memory,
    now: u32,
    filed: u64,
    /// The times of all pages by their bytes.
    pages: BTreeMap<Vec<u8>, u32>,
    early: u32,
    /// Whether pages before the hand may come up in no order: there were too many of them, or
    /// a crash.
    is_loose: bool,
    /// A pass under way, and the pages that wait since it began and weren't looked at.
    pass: Option<(Pass, BTreeSet<Vec<u8>>)>,
    passes: u32,
}

impl Pair {
    fn new(seed: u64, now: u32) -> Self {
        Self {
            random: Random(seed),
            calendar: Calendar::new(now, Some(CRAWL)),
            disk: Memory::default(),
            now,
            filed: 0,
            pages: BTreeMap::new(),
            early: 0,
            is_loose: false,
            pass: None,
            passes: 0,
        }
    }

    fn file(&mut self) {
        let most = 1_u64 << self.random.below(27_u64);
        let due = self.now.saturating_add(self.random.below(most) as u32);
        self.filed += 1;
        let mut page = self.filed.to_string().into_bytes();
        page.resize(page.len() + self.random.below(30_usize), b'x');
        self.calendar.file(due, &page);
        self.is_loose |= self.calendar.overtaken.len() == OVERTAKEN_MAX;
        self.pages.insert(page, due);
    }

    /// Takes pages that are due until `until`, and at most as many.
    fn take(&mut self, until: u32, most: usize) {
        let mut page = Vec::new();
        for _ in 0..most {
            loop {
                let units = self.calendar.advance(until, 100, &mut self.disk).expect("it works");
                if units == 0 {
                    break;
                }
            }
            page.clear();
            let Some(due) = self.calendar.take(until, &mut page) else {
                let left = self.pages.values().filter(|due| **due >> UNIT <= until >> UNIT);
                assert!(left.count() == 0 || self.is_loose, "until {until}");
                self.is_loose &= self.calendar.hand > until >> UNIT;
                return;
            };
            assert_eq!(self.pages.remove(&page), Some(due), "a page comes up once");
            assert!(due >> UNIT <= until >> UNIT);
            let first = self.pages.values().min().copied().unwrap_or(u32::MAX);
            let is_right = due >> UNIT <= first >> UNIT;
            assert!(is_right || self.is_loose, "{due} before {first}");
        }
    }

    fn step(&mut self) {
        match self.random.below(17) {
            0..=5 => (0..self.random.below(20)).for_each(|_| self.file()),
            6 => {
                let most = 1_u64 << self.random.below(20_u64);
                self.now += self.random.below(most) as u32;
            }
            7..=8 => {
                let most = self.random.below(40_usize);
                self.take(self.now, most);
            }
            9..=10 => {
                let until = self.calendar.next_due().unwrap_or(0).max(self.now);
                let most = self.random.below(20_usize);
                self.take(until, most);
            }
            11 => self.crash(),
            12 => {
                // Half a slot may be distributed when a pass comes.
                let until = self.now + (1 << 20);
                self.calendar.advance(until, 1, &mut self.disk).expect("it works");
                self.is_loose = true;
            }
            _ => self.go_on(),
        }
    }

    /// Goes on with a pass, which moves some pages, and checks at its end what it has looked at.
    fn go_on(&mut self) {
        let (mut pass, mut left) = self.pass.take().unwrap_or_else(|| {
            (Pass::default(), self.pages.keys().cloned().collect::<BTreeSet<_>>())
        });
        let (random, mut moved) = (&mut self.random, Vec::new());
        let (pages, takes_all) = (&self.pages, random.one_in(8));
        let mut look = |due: u32, page: &[u8]| {
            assert_eq!(pages.get(page), Some(&due), "it was filed, and hasn't come up");
            left.remove(page);
            let is_moved = takes_all || random.one_in(4);
            if is_moved {
                moved.push(page.to_vec());
            }
            is_moved
        };
        let most = 1 << (self.now % 14);
        self.calendar.go_on(&mut pass, most, &mut self.disk, &mut look).expect("it works");
        for page in moved {
            let most = 1_u64 << self.random.below(27_u64);
            let due = self.now.saturating_add(self.random.below(most) as u32);
            self.calendar.file(due, &page);
            self.pages.insert(page, due);
        }
        self.is_loose |= self.calendar.overtaken.len() == OVERTAKEN_MAX;
        if !pass.is_over() {
            self.pass = Some((pass, left));
            return;
        }
        self.passes += 1;
        // What has come up, or is overtaken, isn't looked at.
        let waits = |page: &Vec<u8>| {
            self.pages.get(page).is_some_and(|due| due >> UNIT > self.calendar.hand)
        };
        assert!(!left.iter().any(waits), "{} weren't looked at", left.len());
    }

    /// Writes a checkpoint and goes on from it, now or after more has happened.
    fn crash(&mut self) {
        let mut visited: Vec<Vec<u8>> = Vec::new();
        let mut page = Vec::new();
        while visited.len() < 3 && self.calendar.take(self.now, &mut page).is_some() {
            visited.push(std::mem::take(&mut page));
        }
        let hand = self.calendar.hand << UNIT;
        let extra = visited.iter().map(|page| (hand, page.as_slice()));
        let mark = self.calendar.mark(extra, &mut self.disk).expect("it works");
        self.is_loose = true;
        let (pages, now) = (self.pages.clone(), self.now);
        (0..self.random.below(10)).for_each(|_| self.file());
        let most = self.random.below(10_usize);
        if visited.is_empty() {
            self.take(self.now, most);
        }
        (self.pages, self.now, self.pass) = (pages, now, None);
        for page in visited {
            self.pages.insert(page, hand);
        }
        self.calendar = Calendar::new(0, Some(CRAWL));
        self.calendar.restore_files(&mark.files, &mut self.disk).expect("it works");
        self.calendar.restore_mark(&mark.state).expect("it is right");
        if let Some(log) = &mut self.calendar.log {
            // A new run's files have other numbers.
            let last = log.numbers().last().unwrap_or(0).max(self.early);
            self.early = last + 100;
            log.skip_to(self.early);
        }
        assert_eq!(self.calendar.pages(), self.pages.len() as u64);
    }
}

/// Law: each page comes up once, in the order of units, whatever is filed, and across crashes.
#[test]
fn pages_come_up_when_they_are_due() {
    let (mut frames, mut passes) = (BTreeSet::new(), 0);
    for seed in 0..60 {
        let mut pair = Pair::new(seed, 1_700_000_000 + seed as u32 * 7_777_777);
        for _ in 0..300 {
            pair.step();
            frames.extend(pair.calendar.slots.iter().map(|slot| slot.frames.len().min(2)));
        }
        passes += pair.passes;
        pair.take(u32::MAX, usize::MAX);
        assert!(pair.pages.is_empty() && pair.calendar.pages() == 0);
        assert_eq!(pair.calendar.next_due(), None);
    }
    assert_eq!(frames.len(), 3, "slots with none, one and more frames");
    assert!(passes > 60, "{passes}");
}

/// Law: no bytes of a mark panic.
#[test]
fn a_damaged_mark_is_refused_or_read() {
    let mut pair = Pair::new(1, 1_000_000);
    (0..200).for_each(|_| pair.file());
    let mark = pair.calendar.mark(std::iter::empty(), &mut pair.disk).expect("it works");
    let mut random = Random(3);
    for _ in 0..3_000 {
        let mut damaged = mark.clone();
        let at = random.below(damaged.state.len());
        damaged.state[at] = random.word() as u8;
        let mut calendar = Calendar::new(0, Some(CRAWL));
        calendar.restore_files(&damaged.files, &mut pair.disk).expect("the files are there");
        if calendar.restore_mark(&damaged.state).is_ok() {
            let mut page = Vec::new();
            for _ in 0..300 {
                if calendar.advance(u32::MAX, 1 << 20, &mut pair.disk).is_err() {
                    break;
                }
                if calendar.take(u32::MAX, &mut page).is_none() {
                    break;
                }
            }
        }
    }
}
