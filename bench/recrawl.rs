//! What policies of coming back bring, in a model without a network: pages that change by chance,
//! a number of visits for each moment, and the parts of `recrawl` that choose them.
//!
//! `recrawl PAGES WEBS` prints a line of a table for each policy, importance and kind of signals:
//! the share of time for which copies are up to date, and their mean age, both weighted by
//! importance. `recrawl known PAGES VISITS` measures what it costs to know so many pages, `recrawl
//! months PAGES MONTHS` what a whole crawl holds that comes back.
//! `bench/recrawl` makes the tables. Without arguments a little of both runs, as a test.
//!
//! Beside the policies of `sted` are two of Azar and others (PNAS 2018), by their closed form from
//! the same estimates, computed anew each day: random visits at the best rates, and visits at equal
//! distances at these rates; and the greedy policy that knows the true rates.

#![expect(clippy::disallowed_methods, reason = "it measures this process on a real disk")]

#[path = "recrawl_known.rs"]
mod known;
#[path = "recrawl_months.rs"]
mod months;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use sted::ground::random::Random;
use sted::recrawl::bar::Bar;
use sted::recrawl::rate::Rate;
use sted::recrawl::signals::{Trust, Visit};
use sted::recrawl::worth::{Page as Facts, Policy};

/// A day in seconds: pages are visited 0.2 times a day on average.
const DAY: f64 = 86_400.0;
const VISITS_PER_DAY: f64 = 0.2;
/// The simulated time, and the part of it that isn't counted.
const DAYS: (f64, f64) = (80.0, 20.0);
/// The longest time without a visit.
const INTERVAL_MAX: f64 = 20.0 * DAY;
/// The mean rate that is believed of a site of which nothing is known, and how many pages that
/// counts for.
const PRIOR: (f64, f64) = (0.2 / DAY, 3.0);

/// Who chooses what is visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chooser {
    /// A policy of `sted`.
    Ours(Policy),
    /// The greedy policy with true rates.
    Knowing,
    /// Random visits at the best rates.
    AzarRandom,
    /// Visits at equal distances at the same rates.
    AzarEven,
}

/// Signals of change: the share of changes that has one, and false ones a day and page.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Signals {
    share: f64,
    false_per_day: f64,
}

/// A page, as it is and as it is known.
struct Page {
    site: usize,
    importance: f64,
    /// Changes a second.
    rate: f64,
    random: Random,
    /// The last visit.
    visited: f64,
    /// The first change since then.
    changed: Option<f64>,
    /// Signals since then.
    signals: u8,
    /// What is believed.
    believed: Option<Rate>,
    /// The number of the entry in the calendar that counts.
    filed: u32,
    /// Seconds for which the copy was up to date, and the integral of its age.
    fresh: f64,
    aged: f64,
}

/// A site, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Site {
    /// The number of pages that were visited, and the sum of their rates.
    pages: f64,
    rates: f64,
    trust: Trust,
}

/// What happens to a page at a time in microseconds: a change, or else a false signal.
type Event = Reverse<(u64, usize, bool)>;

struct Model {
    pages: Vec<Page>,
    sites: Vec<Site>,
    signals: Option<Signals>,
    events: BinaryHeap<Event>,
    visits: u64,
}

/// Returns a number from 0 to 1, both excluded.
fn unit(random: &mut Random) -> f64 {
    ((random.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * unit(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

/// Returns the time to the next event of a Poisson process.
fn pause(random: &mut Random, rate: f64) -> f64 {
    -unit(random).ln() / rate
}

fn micros(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}

impl Model {
    fn new(seed: u64, pages: usize, is_even: bool, signals: Option<Signals>) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7ec7);
        let sites = (pages / 100).max(1);
        let rates: Vec<f64> =
            (0..sites).map(|_| VISITS_PER_DAY / DAY * (1.3 * normal(&mut random)).exp()).collect();
        let mut model = Self {
            pages: Vec::new(),
            sites: vec![Site::default(); sites],
            signals,
            ..Self::none()
        };
        for number in 0..pages {
            let site = number % sites;
            let rate = rates[site] * (0.8 * normal(&mut random)).exp();
            // Pareto.
            let importance = if is_even { 1.0 } else { unit(&mut random).powf(-1.0 / 1.2) };
            let random = Random(random.word());
            model.pages.push(Page {
                site,
                importance,
                rate,
                random,
                visited: 0.0,
                changed: None,
                signals: 0,
                believed: None,
                filed: 0,
                fresh: 0.0,
                aged: 0.0,
            });
            model.schedule(number, 0.0, true);
            model.schedule(number, 0.0, false);
        }
        model
    }

    fn none() -> Self {
        let (pages, sites) = (Vec::new(), Vec::new());
        Self { pages, sites, signals: None, events: BinaryHeap::new(), visits: 0 }
    }

    /// Draws the next change or false signal of a page.
    fn schedule(&mut self, number: usize, now: f64, is_change: bool) {
        let lies = self.signals.map_or(0.0, |signals| signals.false_per_day / DAY);
        let page = &mut self.pages[number];
        let rate = if is_change { page.rate } else { lies };
        if rate > 0.0 {
            let at = now + pause(&mut page.random, rate);
            self.events.push(Reverse((micros(at), number, is_change)));
        }
    }

    /// Lets happen what happens until `now`. Returns the pages that had a signal.
    fn pass(&mut self, now: f64) -> Vec<usize> {
        let mut signalled = Vec::new();
        while let Some(&Reverse((at, number, is_change))) = self.events.peek()
            && at <= micros(now)
        {
            self.events.pop();
            let at = at as f64 / 1e6;
            self.schedule(number, at, is_change);
            let page = &mut self.pages[number];
            if is_change {
                page.changed.get_or_insert(at);
            }
            let share = self.signals.map_or(0.0, |signals| signals.share);
            if !is_change || unit(&mut page.random) < share {
                page.signals = page.signals.saturating_add(1);
                signalled.push(number);
            }
        }
        signalled
    }

    /// Returns the mean rate of a site's pages, as far as it is known.
    fn mean_of(&self, site: usize) -> f64 {
        let Site { rates, pages, .. } = self.sites[site];
        (PRIOR.0 * PRIOR.1 + rates) / (PRIOR.1 + pages)
    }

    fn facts(&self, number: usize, is_true: bool) -> Facts {
        let page = &self.pages[number];
        let rate = match page.believed {
            _ if is_true => page.rate,
            Some(rate) => rate.mean(),
            None => self.mean_of(page.site),
        };
        Facts { importance: page.importance, rate, is_list: false }
    }

    /// Returns what the signals of a page add to its age.
    fn added(&self, number: usize, facts: Facts) -> f64 {
        let page = &self.pages[number];
        match page.signals {
            0 => 0.0,
            signals => f64::from(signals) * self.sites[page.site].trust.adds(facts.rate),
        }
    }

    /// Adds what the copy of a page was worth since the last visit to the sums.
    fn count(&mut self, number: usize, now: f64) {
        let page = &mut self.pages[number];
        let from = page.visited.max(DAYS.1 * DAY);
        if now > from {
            let until = page.changed.unwrap_or(now).clamp(from, now);
            page.fresh += until - from;
            if let Some(changed) = page.changed {
                let late = |at: f64| (at - changed).max(0.0).powi(2) / 2.0;
                page.aged += late(now) - late(from);
            }
        }
    }

    fn visit(&mut self, number: usize, now: f64) {
        self.visits += 1;
        self.count(number, now);
        let mean = self.mean_of(self.pages[number].site);
        let page = &mut self.pages[number];
        let (is_changed, time) = (page.changed.is_some(), now - page.visited);
        let site = &mut self.sites[page.site];
        match page.believed {
            Some(rate) => site.rates -= rate.mean(),
            None => site.pages += 1.0,
        }
        let rate = page.believed.unwrap_or_else(|| Rate::of_mean(mean));
        let visit =
            Visit { time: Duration::from_secs_f64(time), signals: page.signals, is_changed };
        let rate = match self.signals {
            Some(_) => site.trust.observe(rate, visit),
            None => rate.observe(visit.time, is_changed),
        };
        site.rates += rate.mean();
        (page.believed, page.visited, page.signals, page.changed) = (Some(rate), now, 0, None);
    }
}

/// A crawl that knows all pages from the beginning on, and comes back to them.
struct Crawl {
    model: Model,
    chooser: Chooser,
    bar: Bar,
    /// When pages come up, in microseconds, with the number of their entry.
    calendar: BinaryHeap<Reverse<(u64, usize, u32)>>,
}

impl Crawl {
    fn file(&mut self, number: usize, worth: f64, now: f64) {
        let facts = self.model.facts(number, self.chooser == Chooser::Knowing);
        let age = self.policy().age_at(facts, worth).unwrap_or(f64::INFINITY);
        let age = (age - self.model.added(number, facts)).max(0.0);
        let page = &mut self.model.pages[number];
        page.filed += 1;
        // Not all that are left alone come up at the same time.
        let most = INTERVAL_MAX * (0.9 + 0.1 * unit(&mut page.random));
        let at = (page.visited + age.min(most)).max(now);
        self.calendar.push(Reverse((micros(at), number, page.filed)));
    }

    fn policy(&self) -> Policy {
        match self.chooser {
            Chooser::Ours(policy) => policy,
            _ => Policy::Greedy,
        }
    }

    /// Makes the visits of a step.
    fn step(&mut self, now: f64, granted: f64) {
        for number in self.model.pass(now) {
            self.file(number, self.bar.filed_at(), now);
        }
        let known = self.model.pages.len();
        let is_late = self.calendar.peek().is_some_and(|Reverse((at, ..))| *at <= micros(now));
        self.bar.grant(granted, is_late && !self.bar.may_visit(), known);
        while self.bar.may_visit() {
            let Some(Reverse((at, number, filed))) = self.calendar.pop() else { break };
            if self.model.pages[number].filed != filed {
                continue;
            }
            let facts = self.model.facts(number, self.chooser == Chooser::Knowing);
            let age = now - self.model.pages[number].visited;
            let worth = self.policy().worth(facts, age + self.model.added(number, facts));
            let is_early = at > micros(now);
            if is_early || worth >= self.bar.worth() || age > 0.85 * INTERVAL_MAX {
                self.bar.visit(is_early, known);
                self.model.visit(number, now);
                self.file(number, self.bar.filed_at(), now);
            } else {
                self.file(number, self.bar.worth(), now + 1.0);
            }
        }
    }
}

/// Returns the best rates of random visits, of so many in all (Azar and others).
fn azar(model: &Model, visits: f64) -> Vec<f64> {
    let mut all: Vec<(usize, Facts)> =
        (0..model.pages.len()).map(|number| (number, model.facts(number, false))).collect();
    let ratio = |facts: &Facts| facts.importance / facts.rate;
    all.sort_by(|(_, one), (_, other)| ratio(one).total_cmp(&ratio(other)));
    let root = |facts: &Facts| (facts.importance * facts.rate).sqrt();
    let mut roots: f64 = all.iter().map(|(_, facts)| root(facts)).sum();
    let mut rates: f64 = all.iter().map(|(_, facts)| facts.rate).sum();
    let mut out = vec![0.0; all.len()];
    let mut kept = &all[..];
    while let [(_, first), rest @ ..] = kept
        && ratio(first) <= (roots / (visits + rates)).powi(2)
    {
        roots -= root(first);
        rates -= first.rate;
        kept = rest;
    }
    for (number, facts) in kept {
        out[*number] = (root(facts) * (visits + rates) / roots - facts.rate).max(0.0);
    }
    out
}

/// Makes visits at the rates of Azar and others.
fn visit_by_rates(model: &mut Model, is_random: bool) {
    let (steps, step) = (24, DAY / 24.0);
    let mut random = Random(5);
    let mut credits: Vec<f64> = model.pages.iter().map(|_| unit(&mut random)).collect();
    for day in 0..DAYS.0 as u32 {
        let rates = azar(model, VISITS_PER_DAY / DAY * model.pages.len() as f64);
        for hour in 0..steps {
            let now = f64::from(day) * DAY + f64::from(hour + 1) * step;
            model.pass(now);
            for number in 0..rates.len() {
                credits[number] -= rates[number] * step;
                if credits[number] < 0.0 {
                    model.visit(number, now);
                    credits[number] += if is_random { -unit(&mut random).ln() } else { 1.0 };
                }
            }
        }
    }
}

/// What came of a crawl: the share of time for which copies were up to date, their mean age in
/// days, and the visits a page and day.
fn run(
    seed: u64,
    pages: usize,
    is_even: bool,
    signals: Option<Signals>,
    chooser: Chooser,
) -> [f64; 3] {
    let mut model = Model::new(seed, pages, is_even, signals);
    match chooser {
        Chooser::AzarRandom | Chooser::AzarEven => {
            visit_by_rates(&mut model, chooser == Chooser::AzarRandom);
        }
        _ => {
            let (bar, calendar) = (Bar::new(DAY), BinaryHeap::new());
            let mut crawl = Crawl { model, chooser, bar, calendar };
            for number in 0..pages {
                let at = unit(&mut crawl.model.pages[number].random) * DAY / VISITS_PER_DAY;
                crawl.calendar.push(Reverse((micros(at), number, 0)));
            }
            // Two visits a step.
            let steps = (DAYS.0 * VISITS_PER_DAY * pages as f64 / 2.0) as u64;
            for step in 1..=steps {
                crawl.step(step as f64 * DAYS.0 * DAY / steps as f64, 2.0);
            }
            model = crawl.model;
        }
    }
    (0..pages).for_each(|number| model.count(number, DAYS.0 * DAY));
    let sum =
        |of: fn(&Page) -> f64| model.pages.iter().map(|page| page.importance * of(page)).sum();
    let (all, fresh, aged): (f64, f64, f64) =
        (sum(|_| 1.0), sum(|page| page.fresh), sum(|page| page.aged));
    let span = (DAYS.0 - DAYS.1) * DAY;
    let visits = model.visits as f64 / pages as f64 / DAYS.0;
    [fresh / all / span, aged / all / span / DAY, visits]
}

const CHOOSERS: [(&str, Chooser); 6] = [
    ("uniform", Chooser::Ours(Policy::Uniform)),
    ("proportional", Chooser::Ours(Policy::Proportional)),
    ("azar-random", Chooser::AzarRandom),
    ("azar-even", Chooser::AzarEven),
    ("greedy", Chooser::Ours(Policy::Greedy)),
    ("greedy-knowing", Chooser::Knowing),
];

const SIGNALS: [(&str, Option<Signals>); 3] = [
    ("none", None),
    ("60%-few-false", Some(Signals { share: 0.6, false_per_day: 0.02 })),
    ("60%-many-false", Some(Signals { share: 0.6, false_per_day: 0.2 })),
];

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            compare(500, 1);
            known::run(20_000, 10_000);
            months::run(1_000, 3);
        }
        ["known", pages, visits] => known::run(number(pages), number(visits)),
        ["months", pages, months] => months::run(number(pages), number(months) as u32),
        [pages, webs] => compare(number(pages) as usize, number(webs)),
        _ => panic!("nothing, `known` or `months` and two numbers, or two numbers"),
    }
}

/// Prints the table.
fn compare(pages: usize, webs: u64) {
    println!("importance,signals,policy,fresh,age_days,visits_per_page_and_day");
    for (importance, is_even) in [("pareto", false), ("even", true)] {
        for (signals, of) in SIGNALS {
            for (name, chooser) in CHOOSERS {
                let mut sums = [0.0; 3];
                for web in 0..webs {
                    let one = run(web, pages, is_even, of, chooser);
                    (0..3).for_each(|at| sums[at] += one[at] / webs as f64);
                }
                let [fresh, age, visits] = sums;
                println!("{importance},{signals},{name},{fresh:.4},{age:.3},{visits:.4}");
            }
        }
    }
}
