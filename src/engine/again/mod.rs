//! Revisits: known pages, and which of them are visited again when.
//!
//! A page that was fetched is *known*. It waits in the calendar (`recrawl::calendar`) until the
//! value of a visit is near the *bar*, the least value for which pages are visited. When it comes
//! up, it is queued at its server ahead of new URLs, with what is known of it in its payload, or it
//! is filed again. After the visit it is filed for the next one.
//!
//! Each request for something new grants visits, so that known pages get their share of the
//! requests. While no new URL waits at any server, each slot without a connection grants one.
//!
//! What a sitemap or a feed says of changes moves a page forward (`signals`).
//!
//! ```text
//! entry  quality u32 | depth u16 | requisite u8 | letter u8 | not before u32 | URL
//!        | what is known of the page
//! ```
//!
//! Laws: a known page is in one place: the calendar, `young`, a queue, or under way. It isn't
//! visited before `interval_min` has passed. A server's queue has at most [`QUEUED_MAX`] of them,
//! more only after a restart (see `state`); if more are due, a bar of its own selects the best.
//! Memory: an entry in a map for each server with known pages. Cost: that of the calendar, and a
//! fixed number of units of work for each page that comes up.

mod find;
mod signals;
mod state;
mod visits;
mod waiting;
mod young;

pub(super) use state::RATES;

use super::settings::Recrawl;
use super::status::Visits;
use crate::frontier::ServerId;
use crate::ground::map::Map;
use crate::recrawl::bar::Bar;
use crate::recrawl::calendar::Calendar;
use crate::recrawl::known::Known;
use crate::recrawl::rate::Rate;
use crate::recrawl::signals::Trust;
use crate::recrawl::worth::{Page, Policy};
use crate::url::Fingerprint;
use waiting::Signals;
use young::Young;

/// The most known pages of one server that are in its queue.
const QUEUED_MAX: u32 = 8;
/// The most known pages in all queues.
const ALL_QUEUED_MAX: u64 = 4_096;
/// How many visits in a row find nothing before a page is forgotten.
const GONE_MAX: u8 = 6;
/// How many pages the rate counts for that is believed of a server of which nothing is known.
const PRIOR_PAGES: f64 = 3.0;
/// By which factor the bar of a server rises when it has more pages that are worth it than it can
/// take.
const FULL: f64 = 1.25;
/// By which factor the bar of a server falls when a page of it is queued, and when its queue has
/// become empty.
const HAS_ROOM: (f64, f64) = (0.95, 0.8);
/// After how many times the mean time between two visits a page is visited that the policy leaves
/// alone, because it changes too often or is worth too little: what is believed of it may be wrong.
/// If all pages were left alone, that would take an eighth of all visits.
const LEFT_ALONE: f64 = 8.0;
/// How many times as many changes as is believed of all pages of its server a list may show: what
/// it says of pages that nobody visits can't be refuted.
const LISTED: f64 = 4.0;
/// The greatest multiple of the bar.
const MULTIPLE_MAX: f64 = 1e9;
/// How long a page waits at least when it is filed again without a visit, in seconds.
const PAUSE_S: u32 = 64;

/// The known pages of a crawl.
#[derive(Debug)]
pub(super) struct Again {
    settings: Recrawl,
    calendar: Calendar,
    bar: Bar,
    servers: Map<ServerId, Server>,
    /// The number of known pages in queues, and under way.
    queued: u64,
    /// The mean time between two visits of a page, in seconds, and the number of visits that it is
    /// the mean of; old ones fade.
    gap: (f64, u64),
    /// No page is looked for before its time until then, in seconds since 1970: the server of the
    /// one that is next in line had no room for it.
    rests_until: u32,
    /// Pages that came up early, and too soon after their last visit.
    young: Young,
    /// What sitemaps and feeds say of changes, before it has reached the pages.
    signals: Signals,
    counts: Visits,
    /// A scratch buffer for entries.
    entry: Vec<u8>,
}

/// What is known of the pages of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Server {
    /// The sum of the rates of its pages, in changes a second, and their number.
    rates: f64,
    pages: u32,
    /// The number of its known pages that are in its queue, and under way.
    queued: u32,
    /// The multiple of the bar that its pages must be worth.
    multiple: f64,
    /// How far its signals are to be believed; `None` if it never gave one.
    trust: Option<Trust>,
}

impl Default for Server {
    fn default() -> Self {
        Self { rates: 0.0, pages: 0, queued: 0, multiple: 1.0, trust: None }
    }
}

/// A known page, as it comes up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    quality: u32,
    depth: u16,
    requisite: u8,
    letter: u8,
    /// The page isn't visited before, in seconds since 1970, because a visit failed or was refused.
    not_before: u32,
    url: Box<str>,
    known: Known,
}

/// What comes of a reply to a request for a page.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Whether the page is as it was, so that its links are known.
    pub(super) is_same: bool,
    /// The page, to be filed for its next visit.
    pub(super) entry: Option<Entry>,
}

impl Entry {
    /// Returns whether the page was a sitemap or a feed.
    pub(super) fn is_list(&self) -> bool {
        self.known.is_list
    }
}

impl Again {
    /// Creates the state of a crawl that begins at `now`, in seconds since 1970.
    pub(super) fn new(settings: Recrawl, crawl: Option<u64>, now: u32) -> Self {
        Self {
            calendar: Calendar::new(now, crawl),
            // A page that changes as often as is believed at first, half an interval later.
            bar: Bar::new(first_bar(&settings)),
            servers: Map::default(),
            queued: 0,
            gap: (0.0, 0),
            rests_until: 0,
            young: Young::default(),
            signals: Signals::default(),
            counts: Visits::default(),
            entry: Vec::new(),
            settings,
        }
    }

    /// Returns the number of known pages.
    pub(super) fn pages(&self) -> u64 {
        self.calendar.pages() + self.young.len() + self.queued
    }

    /// Returns the number of known pages that are in queues or under way.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    pub(super) fn counts(&self) -> &Visits {
        &self.counts
    }

    /// Returns what a visit must be worth.
    pub(super) fn bar(&self) -> f64 {
        self.bar.worth()
    }

    /// Returns when the next page in the calendar is due, in seconds since 1970; `None` if none is.
    fn next_due(&self) -> Option<u32> {
        self.calendar.next_due()
    }

    /// Returns from when on pages come up before their time, in seconds since 1970; `None` if none
    /// may.
    fn early_from(&self) -> Option<u32> {
        self.calendar.next_due().filter(|_| !self.young.is_full()).map(|_| self.rests_until)
    }

    /// Adds a signal that a sitemap or feed gives.
    pub(super) fn signal(&mut self, page: Fingerprint, modified: u32) {
        self.signals.add(page, modified, &mut self.counts);
    }

    fn known_pages(&self) -> usize {
        usize::try_from(self.pages()).unwrap_or(usize::MAX)
    }

    /// Returns the rate that is believed of a server's page of which nothing is known.
    fn rate_of(&self, id: ServerId) -> Rate {
        let pages = self.servers.get(&id).map_or(0, |server| server.pages);
        Rate::of_mean(self.rates_of(id) / (PRIOR_PAGES + f64::from(pages)))
    }

    /// Returns the sum of the rates that are believed of a server's pages, with those that count
    /// before anything is known.
    fn rates_of(&self, id: ServerId) -> f64 {
        let prior = 1.0 / self.settings.change_interval.as_secs_f64();
        prior * PRIOR_PAGES + self.servers.get(&id).map_or(0.0, |server| server.rates)
    }

    /// Takes in that what is believed of the rate of a server's page has changed; `before` is
    /// `None` for a new page, `after` for one that is forgotten. Lists don't count.
    fn note_rate(&mut self, id: ServerId, before: Option<Rate>, after: Option<Rate>) {
        let server = self.servers.entry(id).or_default();
        let mean = |rate: Option<Rate>| rate.map_or(0.0, Rate::mean);
        server.rates = (server.rates + mean(after) - mean(before)).max(0.0);
        server.pages =
            (server.pages + u32::from(after.is_some())).saturating_sub(u32::from(before.is_some()));
    }

    /// Takes in that a page has joined the queue of a server, or has left it.
    fn note_queued(&mut self, id: ServerId, joins: bool) {
        let server = self.servers.entry(id).or_default();
        if joins {
            server.queued += 1;
            server.multiple = (server.multiple * HAS_ROOM.0).max(1.0);
            self.queued += 1;
        } else {
            server.queued = server.queued.saturating_sub(1);
            let falls = if server.queued == 0 { HAS_ROOM.1 } else { 1.0 };
            server.multiple = (server.multiple * falls).max(1.0);
            self.queued = self.queued.saturating_sub(1);
        }
    }

    /// Returns whether a server has known pages in its queue, or under way.
    pub(super) fn has_queued(&self, id: ServerId) -> bool {
        self.servers.get(&id).is_some_and(|server| server.queued > 0)
    }

    fn is_full(&self, id: ServerId) -> bool {
        self.servers.get(&id).is_some_and(|server| server.queued >= QUEUED_MAX)
    }

    /// Returns what a visit to a page of a server must be worth.
    fn bar_of(&self, id: ServerId) -> f64 {
        self.bar.worth() * self.servers.get(&id).map_or(1.0, |server| server.multiple)
    }

    /// Takes in the time since the last visit of a page that is visited.
    fn note_gap(&mut self, age: u32) {
        let (mean, visits) = self.gap;
        let visits = (visits + 1).min(self.pages().max(1));
        self.gap = (mean + (f64::from(age) - mean) / visits as f64, visits);
    }

    /// Returns after how many seconds a page is visited that the policy leaves alone.
    fn longest(&self) -> f64 {
        let most = self.settings.interval_max.as_secs_f64();
        match self.gap {
            (_, 0) => most,
            (mean, _) => most.min(LEFT_ALONE * mean),
        }
    }

    /// Returns what decides how much a visit to a server's page is worth, and the seconds by which
    /// signals make it older.
    fn facts(&self, id: ServerId, known: &Known) -> (Page, f64) {
        let (mut page, mut added) = (known.facts(), 0.0);
        if self.settings.policy == Policy::Greedy && (known.is_list || known.signals > 0) {
            let trust = self.servers.get(&id).and_then(|server| server.trust).unwrap_or_default();
            added = f64::from(known.signals) * trust.adds(page.rate);
            if known.is_list {
                page.importance *= trust.precision();
                page.is_list = trust.is_believed();
                page.rate = page.rate.min(LISTED * self.rates_of(id));
            }
        } else if known.is_list {
            page.rate = self.rate_of(id).mean();
        }
        (page, added)
    }

    /// Returns when a page should come up, in seconds since 1970, if its visit is to be worth
    /// `worth`; a page that has vanished comes up ever more rarely.
    fn due(&self, id: ServerId, known: &Known, worth: f64) -> u32 {
        let Recrawl { policy, interval_min, .. } = self.settings;
        let (page, added) = self.facts(id, known);
        let (least, most) = (interval_min.as_secs_f64(), self.longest());
        let age = match known.gone {
            0 => policy.age_at(page, worth).map_or(f64::INFINITY, |age| age - added),
            gone => least * f64::from(1_u32 << gone.min(GONE_MAX)),
        };
        // Pages that are left alone don't all come up at the same time.
        let spread = 0.9 + 0.1 * f64::from(known.digest[19]) / 255.0;
        let age = age.min(most * spread).max(least);
        known.visited.saturating_add(age as u32)
    }

    /// Files a page for its next visit.
    fn file(&mut self, id: ServerId, entry: &Entry) {
        let filed_at = self.bar.filed_at() / self.bar.worth() * self.bar_of(id);
        let due = self.due(id, &entry.known, filed_at).max(entry.not_before);
        self.file_at(due, entry);
    }

    /// Files a page that has come up again, without a visit, for when it is worth the whole bar.
    fn put_off(&mut self, id: ServerId, entry: &Entry, now: u32) {
        // What waits for long already may wait a little longer, so that it isn't read all the time.
        let pause = PAUSE_S.max(entry.known.age(now) / 16);
        let due = self.due(id, &entry.known, self.bar_of(id)).max(now.saturating_add(pause));
        self.file_at(due, entry);
    }

    /// Files a page for a time before which it isn't visited, whatever there is to do.
    fn file_later(&mut self, not_before: u32, entry: Entry) {
        self.file_at(not_before, &Entry { not_before, ..entry });
    }

    fn file_at(&mut self, due: u32, entry: &Entry) {
        self.entry.clear();
        entry.encode(&mut self.entry);
        self.calendar.file(due, &self.entry);
    }

    /// Puts a page that came up early beside the calendar until it may be visited.
    fn add_young(&mut self, ready: u32, due: u32, entry: &Entry) {
        self.entry.clear();
        entry.encode(&mut self.entry);
        self.young.add(ready, due, &self.entry);
    }
}

/// Returns the bar of a crawl that begins: what a mean page is worth after half the time between
/// its changes.
fn first_bar(settings: &Recrawl) -> f64 {
    let rate = 1.0 / settings.change_interval.as_secs_f64();
    let page = Page { importance: 1.0, rate, is_list: false };
    settings.policy.worth(page, 0.5 / rate)
}
