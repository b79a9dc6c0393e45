//! Finds a known page by its URL, for the question why. The calendar has no index, so all pages are
//! read: this is for a process that has opened the state of a crawl to answer questions.
//!
//! Law: nothing changes. Cost: all known pages are read.

use super::Entry;
use crate::engine::Engine;
use crate::engine::why::{KnownPage, Subject, Why};
use crate::recrawl::calendar::Pass;
use crate::url::UrlRef;

const MICROS: u64 = 1_000_000;

impl Engine {
    /// Adds to an answer what is known of the page for its next visit.
    pub fn add_known(&mut self, why: &mut Why) {
        let Subject::Url(about) = &mut why.subject else { return };
        let key = UrlRef::from_canonical(about.url.as_bytes()).map(|url| self.key_of(url));
        let Some((again, key)) = self.backlog.again_mut().zip(key) else { return };
        let (mut pass, mut found, mut scratch) = (Pass::default(), None, Vec::new());
        let admission = &self.admission;
        let mut look = |due: u32, page: &[u8]| {
            let url = Entry::url_of(page).and_then(UrlRef::from_canonical);
            if url.is_some_and(|url| admission.key_of(url, &mut scratch) == key) {
                found = Entry::decode(page).ok().map(|entry| (due, entry));
            }
            false
        };
        while !pass.is_over() {
            let disk = self.storage.disk();
            if let Err(error) = again.calendar.go_on(&mut pass, usize::MAX, disk, &mut look) {
                why.errors.push(error.to_string());
                return;
            }
        }
        about.known = found.map(|(due, entry)| self.known_page(due, &entry, why.at_us));
    }

    fn known_page(&mut self, due: u32, entry: &Entry, at_us: u64) -> KnownPage {
        let url = UrlRef::from_canonical(entry.url.as_bytes()).expect("it was decoded");
        let id = self.server_of(url);
        let again = self.backlog.again().expect("it was looked at");
        let (known, now) = (&entry.known, at_us / MICROS);
        let (page, added) = again.facts(id, known);
        let age = f64::from(known.age(now.try_into().unwrap_or(u32::MAX))) + added;
        let part = again.settings.policy.worth(page, age) / again.bar_of(id);
        KnownPage {
            url: entry.url.to_string(),
            due_us: u64::from(due) * MICROS,
            visited_us: u64::from(known.visited) * MICROS,
            changed: known.changed.into(),
            unchanged: known.same.into(),
            gone: known.gone.into(),
            signals: known.signals.into(),
            is_list: known.is_list,
            change_interval_s: (1.0 / known.rate.mean()) as u64,
            worth_percent: (100.0 * part) as u64,
        }
    }
}
