//! Visits to known pages: which pages are queued, and what comes of their visits.

use super::{ALL_QUEUED_MAX, Again, Entry, FULL, GONE_MAX, MULTIPLE_MAX, Noted};
use crate::engine::Engine;
use crate::engine::archive::LogFacts;
use crate::engine::backlog::{Item, Purpose, ROBOTS_TXT, Text};
use crate::engine::ledger::Work;
use crate::engine::outcome::Outcome;
use crate::engine::settings::Settings;
use crate::engine::status::KnownPages;
use crate::engine::wire::{Fetch, Reply};
use crate::frontier::ServerId;
use crate::ground::quality::Quality;
use crate::ground::time::{Instant, UnixTime};
use crate::http::date;
use crate::http::request::{Conditions, is_field};
use crate::http::response::Head;
use crate::links::Kind;
use crate::recrawl::known::{ETAG_BYTES_MAX, Known};
use crate::store::Unmodified;
use crate::store::digest::Algorithm;
use crate::url::UrlRef;
use smallvec::SmallVec;
use std::time::Duration;

/// The cost of a page that comes up, in units of work (see `ledger`), in addition to that of its
/// bytes.
pub(super) const PAGE_UNITS: usize = 1 << 10;
/// The most units of work of one read of the calendar.
const READ_UNITS: usize = 64 << 10;
/// How early pages that are due may come up, in seconds: a unit of the calendar.
const UNIT_S: u32 = 16;
/// For how many times the shortest interval a page is left alone that may not be visited.
const REFUSED: u32 = 8;
/// How many requests are known pages' at most, as a multiple of all: the rest is for new ones.
const SHARE_MAX: f64 = 0.99;

/// What a visit to a page has shown, beside the outcome.
#[derive(Debug)]
pub(in crate::engine) struct Visit {
    /// When the request was sent, in seconds since 1970.
    at: u32,
    digest: [u8; 20],
    etag: SmallVec<[u8; 40]>,
    modified: Option<u32>,
    /// Whether the record of the reply, if it has one, has the payload itself.
    is_original: bool,
}

impl Visit {
    /// Reads what a reply says of its page.
    fn of(
        fetch: &Fetch,
        facts: &LogFacts,
        reply: &Reply,
        head: Option<&Head>,
        algorithm: Algorithm,
    ) -> Self {
        // A page of which a part is missing is requested whole the next time.
        let head = head.filter(|_| matches!(facts.outcome, Outcome::Status(_)));
        let field = |name: &str| head.and_then(|head| head.field(reply.head(), name));
        let digest = facts.payload_digest();
        let digest = digest.unwrap_or_else(|| algorithm.of(reply.payload()));
        let is_kept = |etag: &&[u8]| etag.len() <= ETAG_BYTES_MAX && is_field(etag);
        let etag = field("etag").filter(is_kept).unwrap_or_default();
        let at = fetch.sent.unix.seconds();
        let modified = field("last-modified");
        Self {
            at,
            digest: digest.beginning(),
            etag: SmallVec::from_slice(etag),
            modified: modified.and_then(|it| date::last_modified(it, field("date"), at)),
            is_original: facts.is_original(),
        }
    }
}

impl Engine {
    /// Queues known pages for visits, within the turn's budget.
    pub(in crate::engine) fn work_again(&mut self) {
        if self.backlog.again().is_none() || self.is_stopping() || !self.storage.is_usable() {
            return;
        }
        self.deliver_signals();
        loop {
            self.grant_idle();
            // Half of the turn's budget is left to other work, as to that of the queues it fills.
            let is_over = self.turn.is_half_spent(Work::Again) || !self.wants_known_page();
            if is_over || !self.next_known() {
                break;
            }
        }
    }

    /// Returns when known pages have something to do; `None` if an event will wake the crawl.
    pub(in crate::engine) fn again_deadline(&self) -> Option<Instant> {
        let again = self.backlog.again()?;
        if self.is_stopping() || !self.storage.is_usable() {
            return None;
        }
        let (at, now) = (self.turn.at(), self.unix_seconds());
        let signals = again.signals.deadline(at, now);
        let due = again.next_due().into_iter().chain(again.young.next()).min();
        let Some(due) = due else { return signals };
        // What is next in line is looked for before its time, if a visit is granted.
        let is_idle = self.has_idle_slot();
        let early = again.early_from().filter(|_| again.bar.may_visit() || is_idle);
        let due = early.map_or(due, |early| early.min(due));
        let can = self.wants_known_page() || is_idle;
        let visit = can.then(|| at + Duration::from_secs(due.saturating_sub(now).into()));
        visit.into_iter().chain(signals).min()
    }

    /// Returns how many pages are known, and what came of visits to them; `None` if the crawl
    /// doesn't come back.
    pub fn known_pages(&self) -> Option<KnownPages> {
        let again = self.backlog.again()?;
        let now = self.unix_seconds();
        Some(KnownPages {
            pages: again.pages(),
            queued: again.queued(),
            next_s: again.next_due().or(again.young.next()).map(|due| due.saturating_sub(now)),
            bar: again.bar(),
            visits: *again.counts(),
        })
    }

    fn unix_seconds(&self) -> u32 {
        self.turn.unix().seconds()
    }

    fn wants_known_page(&self) -> bool {
        let again = self.backlog.again();
        again.is_some_and(|again| again.bar.may_visit() && again.queued < ALL_QUEUED_MAX)
    }

    /// Whether a connection could be opened that no new URL waits for: no new URL waits at all.
    fn has_idle_slot(&self) -> bool {
        let queued = self.backlog.again().map_or(0, Again::queued);
        let open = self.wire.conns().busy() as u64;
        let most = self.settings.connections.open_max as u64;
        self.backlog.urls() as u64 <= queued
            && self.backlog.budgets().is_none_or(|budgets| budgets.waiting() == 0)
            && self.admission.seen().is_settled()
            && queued.max(open) < most.min(ALL_QUEUED_MAX)
    }

    /// Grants the visits that nothing else needs the connections for.
    fn grant_idle(&mut self) {
        if self.has_idle_slot() && !self.wants_known_page() {
            self.grant_visits(1.0);
        }
    }

    /// Grants known pages their share for a request for something new.
    pub(in crate::engine) fn grant_share(&mut self, item: &Item) {
        if matches!(item.purpose, Purpose::Page | Purpose::Hop(_))
            && let Some(again) = self.backlog.again()
        {
            let share = again.settings.share.min(SHARE_MAX);
            self.grant_visits(share / (1.0 - share));
        }
    }

    fn grant_visits(&mut self, visits: f64) {
        let now = self.unix_seconds();
        let Some(again) = self.backlog.again_mut() else { return };
        let is_late = !again.bar.may_visit() && again.next_due().is_some_and(|due| due <= now);
        let known = again.known_pages();
        again.bar.grant(visits, is_late, known);
    }

    /// Takes the next known page that is due, or next in line: queues it or files it again. Returns
    /// whether there was one that could be looked at.
    fn next_known(&mut self) -> bool {
        let now = self.unix_seconds();
        let again = self.backlog.again_mut().expect("it was looked at");
        if let Some((due, page)) = again.young.take(now) {
            again.calendar.file(due, &page);
            self.turn.charge(Work::Again, PAGE_UNITS + page.len());
            return true;
        }
        let mut entry = std::mem::take(&mut again.entry);
        entry.clear();
        // If nothing is due, what is next in line is taken.
        let is_early = again.early_from().is_some_and(|from| from <= now);
        let next = again.calendar.next_due().filter(|_| is_early);
        let until = next.map_or(now, |due| due.max(now));
        let mut taken = again.calendar.take(until, &mut entry);
        if taken.is_none() {
            let read = again.calendar.advance(until, READ_UNITS, self.storage.disk());
            let again = self.backlog.again_mut().expect("it was looked at");
            taken = again.calendar.take(until, &mut entry);
            let Some(units) = self.checked(read) else { return false };
            self.turn.charge(Work::Again, units);
        }
        let found = taken.and_then(|due| Some((due, Entry::decode(&entry).ok()?)));
        self.turn.charge(Work::Again, PAGE_UNITS + entry.len());
        self.backlog.again_mut().expect("it is there").entry = entry;
        match (taken, found) {
            (_, Some((due, entry))) => self.came_up(due, entry, now),
            // A page that can't be read: the frame's sum was right, so no other can.
            (Some(_), None) => {
                self.counts.cut("known-unread", 1);
                true
            }
            (None, None) => false,
        }
    }

    /// Queues a page that has come up, or files it again. Returns whether the next may be looked
    /// at.
    fn came_up(&mut self, due: u32, mut entry: Entry, now: u32) -> bool {
        let url = UrlRef::from_canonical(entry.url.as_bytes()).expect("checked when it was read");
        let id = self.server_of(url);
        let target: Box<str> = url.target().into();
        let signals = &self.backlog.again().expect("it is there").signals;
        if !signals.is_empty()
            && let Some(modified) = signals.of(self.admission.key_of(url, &mut Vec::new()))
            && entry.known.signal(modified, now)
        {
            self.backlog.again_mut().expect("it is there").note_signal(id);
        }
        let again = self.backlog.again_mut().expect("it is there");
        let known = &entry.known;
        // Pages come up to a unit of the calendar early.
        let (age, is_early) = (known.age(now), due >= now.saturating_add(UNIT_S));
        let least = again.settings.interval_min.as_secs() as u32;
        // What has vanished, failed or was refused isn't looked at before its time.
        let waits = now < entry.not_before || is_early && known.gone > 0;
        if age <= least || waits {
            let ready = known.visited.saturating_add(least + 1).max(entry.not_before);
            let ready = if known.gone > 0 { ready.max(due) } else { ready };
            if is_early {
                again.add_young(ready, due, &entry);
            } else {
                // The clock or the settings have changed.
                again.file_at(ready.max(now.saturating_add(UNIT_S)), &entry);
            }
            return true;
        }
        let (page, added) = again.facts(id, known);
        let worth = again.settings.policy.worth(page, f64::from(age) + added);
        let is_over = known.gone > 0 || f64::from(age) > 0.85 * again.longest();
        if !is_early && !is_over && worth < again.bar_of(id) {
            again.put_off(id, &entry, now);
            return true;
        }
        if again.is_full(id) {
            // A page that isn't worth the bar of its server says nothing of it.
            if worth >= again.bar_of(id) {
                let server = again.servers.entry(id).or_default();
                server.multiple = (server.multiple * FULL).min(MULTIPLE_MAX);
            }
            again.put_off(id, &entry, now);
            // In a second its queue may be shorter.
            again.rests_until = if is_early { now.saturating_add(1) } else { again.rests_until };
            return !is_early;
        }
        again.note_gap(age);
        let pages = again.known_pages();
        again.bar.visit(is_early, pages);
        again.counts.early += u64::from(is_early);
        again.note_queued(id, true);
        let item = entry.item(&target);
        self.queue_item(id, &item);
        true
    }

    /// Takes in a reply to a request for a page, which is archived.
    pub(in crate::engine) fn note_visit(
        &mut self,
        id: ServerId,
        fetch: &Fetch,
        facts: &LogFacts,
        reply: &Reply,
        head: Option<&Head>,
    ) -> Noted {
        if self.backlog.again().is_none() {
            return Noted::default();
        }
        let status = facts.outcome.status();
        let is_page = status.is_some_and(|status| (200..300).contains(&status));
        let algorithm = self.settings.store.digest;
        if is_page && facts.payload_digest().is_none() {
            self.turn.charge(Work::Archived, reply.payload().len());
        }
        let visit = is_page.then(|| Visit::of(fetch, facts, reply, head, algorithm));
        let is_new = match fetch.item.purpose {
            Purpose::Again => return self.visited_again(id, fetch, facts.outcome, visit),
            Purpose::Page => true,
            Purpose::Hop(chain) => self.is_new_target(chain, fetch),
            Purpose::Robots(..) => false,
        };
        let visit = visit.filter(|_| is_new);
        Noted { is_same: false, entry: visit.map(|visit| self.new_entry(id, fetch, visit)) }
    }

    /// Files a page for its next visit.
    pub(in crate::engine) fn file_page(&mut self, id: ServerId, entry: Option<Entry>) {
        if let Some((again, entry)) = self.backlog.again_mut().zip(entry) {
            again.file(id, &entry);
        }
    }

    /// Returns whether the page that a redirect led to can't be a known one: the chain began with a
    /// new page, and no cookie was sent, since then the seen test has said that the page is new.
    fn is_new_target(&self, chain: u32, fetch: &Fetch) -> bool {
        fetch.identity.cookies.is_none() && self.is_chain_of_new(chain)
    }

    /// Returns what is known of a page that was fetched for the first time.
    fn new_entry(&mut self, id: ServerId, fetch: &Fetch, visit: Visit) -> Entry {
        let mean = self.counts.quality_millionths as f64 / self.counts.pages.max(1) as f64;
        let own = fetch.item.quality.millionths() as f64;
        let importance = if mean > 0.0 { (own / mean).clamp(0.01, 1e3) } else { 1.0 };
        let again = self.backlog.again_mut().expect("it was looked at");
        let Visit { at, digest, etag, modified, is_original } = visit;
        let known = Known {
            importance: importance as f32,
            is_list: false,
            rate: again.rate_of(id),
            visited: at,
            changed: 0,
            same: 0,
            digest,
            captured: if is_original { at } else { 0 },
            gone: 0,
            signals: 0,
            signalled: 0,
            modified,
            etag,
        };
        again.note_rate(id, None, Some(known.rate));
        Entry::of(&fetch.item, &fetch.url, known)
    }

    /// Takes in a reply to a visit of a known page; `visit` is `None` if it wasn't a page.
    fn visited_again(
        &mut self,
        id: ServerId,
        fetch: &Fetch,
        outcome: Outcome,
        visit: Option<Visit>,
    ) -> Noted {
        let Some(before) = known_of(&fetch.item) else { return Noted::default() };
        let was_asked = !fetch.item.conditions(&self.settings).is_empty();
        let again = self.backlog.again_mut().expect("it was looked at");
        again.note_queued(id, false);
        let (mut known, at) = (before.clone(), fetch.sent.unix.seconds());
        let counted = |known: &Known| (!known.is_list).then_some(known.rate);
        let mut is_same = false;
        match (visit, outcome.status()) {
            (Some(visit), _) => {
                let captured = if visit.is_original { at } else { 0 };
                let changed = known.found(at, Some((visit.digest, captured)));
                (known.modified, known.etag) = (visit.modified, visit.etag);
                known.rate = again.learnt(id, &before, at, changed);
                again.counts.changed += u64::from(changed);
                again.counts.unchanged += u64::from(!changed);
                is_same = !changed;
            }
            (None, Some(304)) if was_asked => {
                known.found(at, None);
                known.rate = again.learnt(id, &before, at, false);
                again.counts.unchanged += 1;
                again.counts.unmodified += 1;
                is_same = true;
            }
            (None, Some(301 | 302 | 303 | 307 | 308 | 404 | 410)) => {
                again.counts.gone += 1;
                if known.vanished(at) >= GONE_MAX {
                    again.counts.forgotten += 1;
                    again.note_rate(id, counted(&before), None);
                    return Noted::default();
                }
            }
            (None, _) => {
                again.counts.failed += 1;
                // As long again as half of the time since the last visit that worked.
                let wait = (known.age(at) / 2).max(again.settings.interval_min.as_secs() as u32);
                again
                    .file_later(at.saturating_add(wait), Entry::of(&fetch.item, &fetch.url, known));
                return Noted::default();
            }
        }
        again.note_rate(id, counted(&before), counted(&known));
        Noted { is_same, entry: Some(Entry::of(&fetch.item, &fetch.url, known)) }
    }

    /// Files a known page again that leaves its queue without a request.
    pub(in crate::engine) fn refuse_again(&mut self, id: ServerId, item: &Item) {
        let url = self.backlog.origin(id).url_of(&item.target);
        let now = self.unix_seconds();
        let Some(known) = known_of(item) else { return };
        let Some(again) = self.backlog.again_mut() else { return };
        again.note_queued(id, false);
        again.counts.refused += 1;
        let least = again.settings.interval_min.saturating_mul(REFUSED);
        let wait = least.min(again.settings.interval_max).as_secs() as u32;
        again.file_later(now.saturating_add(wait), Entry::of(item, &url, known));
    }
}

impl Entry {
    /// Returns the entry of a page that was queued as `item`, or is the page of a new one.
    pub(super) fn of(item: &Item, url: &str, known: Known) -> Self {
        let quality = item.quality.millionths().try_into().unwrap_or(u32::MAX);
        let Item { depth, requisite, found_as: letter, .. } = *item;
        Self { quality, depth, requisite, letter, not_before: 0, url: url.into(), known }
    }

    /// Returns the robots.txt of the page's host if it is a sitemap that was found by one: its
    /// entries are judged by it.
    fn robots_txt(&self) -> Option<String> {
        let is_sitemap = self.known.is_list && self.letter == Kind::Listed.hop() as u8;
        let url = UrlRef::from_canonical(self.url.as_bytes()).filter(|_| is_sitemap)?;
        let origin = self.url.strip_suffix(url.target())?;
        Some(format!("{origin}{ROBOTS_TXT}"))
    }

    /// Returns the item that is queued for a visit to the page, whose URL has this target.
    fn item(&self, target: &str) -> Item {
        let mut known = Vec::new();
        self.known.encode(&mut known);
        Item {
            target: target.into(),
            quality: Quality::from_millionths(self.quality.into()),
            arrival: 0,
            depth: self.depth,
            requisite: self.requisite,
            hops: 0,
            tries: 0,
            is_late: false,
            purpose: Purpose::Again,
            found_as: self.letter,
            via: self.robots_txt().map(Text::from),
            known: Some(known.into()),
        }
    }
}

impl Item {
    /// Returns what a page that is visited again is asked for with. There are no conditions if the
    /// archive couldn't say what a reply 304 stands for: its record refers to an earlier `response`
    /// of the URL, by its SHA-1.
    pub(in crate::engine) fn conditions(&self, settings: &Settings) -> Conditions {
        let is_sha1 = settings.store.digest == Algorithm::Sha1Base32;
        let known = known_of(self).filter(|known| known.captured > 0 && known.gone == 0);
        match known {
            Some(Known { etag, modified, .. }) if is_sha1 || !settings.keeps_archive() => {
                // `*` would stand for whatever there is (RFC 9110, section 13.1.2).
                let is_tag = is_field(&etag) && *etag != *b"*";
                Conditions { etag: if is_tag { etag } else { SmallVec::new() }, modified }
            }
            _ => Conditions::default(),
        }
    }

    /// Returns what a page still is if the outcome of a visit says that it is unmodified; `None` if
    /// it doesn't, or if the page was requested without conditions.
    pub(in crate::engine) fn unmodified(
        &self,
        outcome: Outcome,
        settings: &Settings,
    ) -> Option<Unmodified> {
        let is_unmodified = outcome.status() == Some(304) && !self.conditions(settings).is_empty();
        let known = known_of(self).filter(|_| is_unmodified)?;
        let captured = UnixTime::from_micros(u64::from(known.captured) * 1_000_000);
        Some(Unmodified { captured, digest: known.digest })
    }
}

/// Returns what is known of the page that an item visits again.
pub(super) fn known_of(item: &Item) -> Option<Known> {
    let bytes = item.known.as_deref()?;
    Known::decode(&mut crate::ground::codec::Take::new(bytes)).ok()
}
