//! Signals of change: what sitemaps and feeds say of known pages.
//!
//! A sitemap or feed that has changed since its last visit gives the times of changes of its
//! entries. The calendar has no index, so a signal finds its page by a pass over all pages that
//! wait there: signals are gathered, and from time to time those that were are delivered by one
//! pass, some pages at a time. A page that comes up meanwhile takes its own. A page that is
//! signalled is filed again, as older than it is (`recrawl::signals`).
//!
//! Law: a time that a site gives for a page counts once, if it is after the last visit.
//! Memory: that of `waiting`. What is beyond its bound is dropped and counted. The next reading of
//! the list gives it again if it is of the two days before this one.
//! Cost: a pass reads the whole calendar, at some megabytes a second, and writes the frames anew
//! from which it takes pages.

use super::visits::{PAGE_UNITS, known_of};
use super::waiting::PASS_S_MAX;
use super::{Again, Entry};
use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use crate::recrawl::calendar::Pass;
use crate::recrawl::known::Known;
use crate::recrawl::rate::Rate;
use crate::recrawl::signals::Visit;
use crate::recrawl::worth::Policy;
use crate::sitemap::{Flaw, Listing};
use crate::url::UrlRef;
use std::time::Duration;

/// How long before the last visit of a list a change may have been that it says now for the first
/// time, in seconds: many sitemaps are written once a day.
const LATE_S: u32 = 2 * 86_400;
/// The work of a step of a pass.
const STEP_UNITS: usize = 32 << 10;
/// The time between two steps.
const STEP: Duration = Duration::from_millis(10);
/// The part of the shortest interval between two visits that is between two passes, and the bounds
/// on it, in seconds.
const PASS_PART: u64 = 32;
const PASS_S: (u64, u64) = (1, PASS_S_MAX as u64);

impl Again {
    /// Takes in that a page of a server has been signalled.
    pub(super) fn note_signal(&mut self, id: ServerId) {
        self.servers.entry(id).or_default().trust.get_or_insert_default();
        self.counts.signals += 1;
    }

    /// Returns what is believed of the rate of a server's page after a visit; `known` is what was
    /// known of it before.
    pub(super) fn learnt(
        &mut self,
        id: ServerId,
        known: &Known,
        now: u32,
        is_changed: bool,
    ) -> Rate {
        let time = Duration::from_secs(known.age(now).into());
        let trust = self.servers.get_mut(&id).and_then(|server| server.trust.as_mut());
        match trust {
            // How many pages have changed is read later.
            _ if known.is_list && is_changed => known.rate,
            _ if known.is_list => known.rate.count(0.0, time),
            Some(trust) => {
                trust.observe(known.rate, Visit { time, signals: known.signals, is_changed })
            }
            None => known.rate.observe(time, is_changed),
        }
    }
}

impl Engine {
    /// Files a page that a job has read as a sitemap or a feed, unless it is none. `item` is the
    /// one of the visit. Returns the time after which changes that it states are signals, in
    /// seconds since 1970.
    pub(in crate::engine) fn file_list(
        &mut self,
        mut entry: Entry,
        item: &Item,
        listing: &Listing,
    ) -> Option<u32> {
        let url = UrlRef::from_canonical(entry.url.as_bytes()).expect("it was fetched");
        let id = self.server_of(url);
        let before = known_of(item);
        // When it was read last: a reply with the same payload isn't read.
        let since = before.as_ref().map_or(0, |before| match before.captured {
            0 => before.visited,
            captured => captured,
        });
        let again = self.backlog.again_mut().expect("a page of it was visited");
        let known = &mut entry.known;
        let was_list = known.is_list;
        // A list that is broken today remains one.
        let is_other = listing.flaw == Some(Flaw::Foreign);
        known.is_list = listing.kind.is_some() || was_list && !is_other;
        match (was_list, known.is_list) {
            (true, true) => {
                let is_news = |modified: Option<u32>| {
                    modified.is_some_and(|at| at.saturating_add(LATE_S / 2) > since)
                };
                let news = listing.entries.iter().filter(|entry| is_news(entry.modified)).count();
                let time = Duration::from_secs(known.visited.saturating_sub(since).into());
                known.rate = known.rate.count(news.max(1) as f64, time);
            }
            (false, true) => {
                again.note_rate(id, Some(known.rate), None);
                let pages = listing.entries.len().max(1) as f64;
                known.rate = Rate::of_mean(pages * again.rate_of(id).mean());
            }
            (true, false) => {
                known.rate = again.rate_of(id);
                again.note_rate(id, None, Some(known.rate));
            }
            (false, false) => {}
        }
        again.file(id, &entry);
        let gives = was_list && again.settings.policy == Policy::Greedy;
        (gives && since > 0).then(|| since.saturating_sub(LATE_S))
    }

    /// Delivers signals to pages in the calendar, within the turn's budget. Pages that are
    /// overtaken or too young take theirs when they come up, if that is before the next pass.
    pub(super) fn deliver_signals(&mut self) {
        let (at, now) = (self.turn.at(), self.turn.unix().seconds());
        loop {
            let Some(again) = self.backlog.again_mut() else { return };
            let is_due = again.signals.deadline(at, now).is_some_and(|due| due <= at);
            if !is_due || self.turn.is_half_spent(Work::Again) {
                return;
            }
            let signals = &mut again.signals;
            let mut pass = signals.pass.take().unwrap_or_else(|| {
                let every = again.settings.interval_min.as_secs() / PASS_PART;
                signals.next_pass = now.saturating_add(every.clamp(PASS_S.0, PASS_S.1) as u32);
                signals.delivered = std::mem::take(&mut signals.gathered);
                Pass::default()
            });
            let (mut found, mut key) = (Vec::new(), Vec::new());
            let mut look = |_: u32, page: &[u8]| {
                let url = Entry::url_of(page).and_then(UrlRef::from_canonical);
                let print = url.map(|url| self.admission.key_of(url, &mut key));
                let modified = print.and_then(|print| signals.delivered.get(&print.0));
                let Some((modified, mut entry)) = modified.zip(Entry::decode(page).ok()) else {
                    return false;
                };
                let is_signal = entry.known.signal(*modified, now);
                if is_signal {
                    found.push(entry);
                }
                is_signal
            };
            let disk = self.storage.disk();
            let done = again.calendar.go_on(&mut pass, STEP_UNITS, disk, &mut look);
            if !pass.is_over() {
                signals.pass = Some(pass);
                signals.next_step = Some(at + STEP);
            }
            for entry in found {
                self.turn.charge(Work::Again, PAGE_UNITS + entry.url.len());
                let url = UrlRef::from_canonical(entry.url.as_bytes()).expect("it was decoded");
                let id = self.server_of(url);
                let again = self.backlog.again_mut().expect("it was looked at");
                again.note_signal(id);
                again.file(id, &entry);
            }
            let Some(units) = self.checked(done) else { return };
            self.turn.charge(Work::Again, units);
        }
    }
}
