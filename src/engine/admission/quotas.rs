//! Limits the pages of each server, of each registrable domain, and of each site with a table that
//! says so.
//!
//! A URL whose site has a limit of its own counts for that alone; any other counts for its server
//! and its domain. A page counts when its final reply is archived. A request in flight takes a
//! [`Reservation`], since its reply may become a page: no request is sent that could exceed a
//! limit. URLs over a limit are dropped when they leave their queue, with an outcome of their own.
//!
//! Laws: no limit is ever exceeded, also over a crash: a checkpoint saves the counts, and captures
//! since then that are not read back yet count as pages. Pages that were fetched while a limit was
//! not set don't count for it.
//! Cost: nothing without a limit; else a look-up for each URL that leaves its queue, and about 80
//! bytes for each server, domain or site that has pages.

use crate::engine::Engine;
use crate::engine::outcome::{Outcome, PagesLimit};
use crate::engine::settings::Settings;
use crate::frontier::ServerId;
use crate::ground::codec::{Put, Take};
use crate::ground::frame::Flaw;
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::url::site::{Matcher, Sites};
use crate::url::{Fingerprinter, UrlRef, domain};
use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a server waits before it is examined again whose URLs would exceed a limit if all
/// requests in flight become pages.
const WAIT: Duration = Duration::from_secs(1);
/// The approximate length of a piece of [`Quotas::encode`], in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// The limits on pages, and what has been counted.
#[derive(Debug)]
pub(in crate::engine) struct Quotas {
    server_max: Option<u64>,
    domain_max: Option<u64>,
    sites: Arc<Sites>,
    /// The limits of the tables of `sites`, each with the key of its account: `None` if a table has
    /// none, `Some(None)` if it lifts the limits of the crawl.
    site_max: Vec<Option<Option<(u64, u64)>>>,
    hash: Fingerprinter,
    accounts: Map<u64, Rc<Account>>,
}

/// What is counted for one server, domain or site.
#[derive(Debug, Default)]
struct Account {
    /// Pages whose final reply is archived.
    pages: Cell<u64>,
    /// Requests that may become pages.
    asked: Cell<u64>,
    /// Captures of earlier runs that will count as pages when they are read back.
    owed: Cell<u64>,
    /// URLs that were dropped in this run.
    refused: Cell<u64>,
}

/// What may become a page: it takes a part of the quotas as long as it exists.
#[derive(Debug)]
pub(in crate::engine) struct Reservation {
    accounts: Accounts,
    is_owed: bool,
}

/// Accounts with their keys.
type Accounts = SmallVec<[(u64, Rc<Account>); 2]>;

/// Whether a URL may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Free,
    /// Not before some requests in flight have ended.
    Later,
    Full(PagesLimit),
}

impl Reservation {
    fn new(accounts: Accounts, is_owed: bool) -> Option<Self> {
        let reservation = Self { accounts, is_owed };
        reservation.change(1);
        (!reservation.accounts.is_empty()).then_some(reservation)
    }

    /// Returns the keys of the accounts that it takes a part of.
    pub(in crate::engine) fn keys(&self) -> impl Iterator<Item = u64> {
        self.accounts.iter().map(|(key, _)| *key)
    }

    fn change(&self, by: i64) {
        for (_, account) in &self.accounts {
            let place = if self.is_owed { &account.owed } else { &account.asked };
            place.set(place.get().saturating_add_signed(by));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.change(-1);
    }
}

/// Returns the key of the account of a server, domain or table.
fn key_of(hash: &Fingerprinter, kind: u8, name: &str) -> u64 {
    let text: SmallVec<[u8; 128]> = [kind].into_iter().chain(name.bytes()).collect();
    hash.of(&text).0
}

impl Quotas {
    pub(super) fn new(settings: &Settings, hash: Fingerprinter) -> Self {
        let sites = &settings.sites;
        let tables = sites.index.list().iter().zip(&sites.pages_max);
        let keyed = |(table, limit): (&Matcher, &Option<Option<u64>>)| {
            limit.map(|own| own.map(|most| (key_of(&hash, b't', &table.to_string()), most)))
        };
        Self {
            server_max: settings.limits.pages_per_server_max,
            domain_max: settings.limits.pages_per_domain_max,
            site_max: tables.map(keyed).collect(),
            sites: Arc::clone(&sites.index),
            hash,
            accounts: Map::default(),
        }
    }

    /// Changes the limits of the crawl.
    pub(in crate::engine) fn set_limits(&mut self, settings: &Settings) {
        self.server_max = settings.limits.pages_per_server_max;
        self.domain_max = settings.limits.pages_per_domain_max;
    }

    fn is_any(&self) -> bool {
        self.server_max.is_some()
            || self.domain_max.is_some()
            || self.site_max.iter().any(Option::is_some)
    }

    /// Returns the limits that apply to a URL, each with the key of its account.
    fn limits_of(&self, url: UrlRef<'_>) -> SmallVec<[(u64, u64, PagesLimit); 2]> {
        let site = self.sites.of(url).map(usize::from);
        if let Some(own) = site.and_then(|site| self.site_max.get(site).copied().flatten()) {
            return own.map(|(key, most)| (key, most, PagesLimit::Site)).into_iter().collect();
        }
        let key = |kind, name| key_of(&self.hash, kind, name);
        let server =
            self.server_max.map(|most| (key(b's', url.origin()), most, PagesLimit::Server));
        let domain = self
            .domain_max
            .map(|most| (key(b'd', domain::registrable(url.host())), most, PagesLimit::Domain));
        server.into_iter().chain(domain).collect()
    }

    fn accounts_of(&mut self, url: UrlRef<'_>) -> Accounts {
        if !self.is_any() {
            return Accounts::new();
        }
        let limits = self.limits_of(url);
        self.accounts_with(limits.iter().map(|(key, ..)| *key))
    }

    fn accounts_with(&mut self, keys: impl Iterator<Item = u64>) -> Accounts {
        keys.map(|key| (key, Rc::clone(self.accounts.entry(key).or_default()))).collect()
    }

    fn room(&self, url: UrlRef<'_>) -> Room {
        if !self.is_any() {
            return Room::Free;
        }
        let mut room = Room::Free;
        for (key, most, limit) in self.limits_of(url) {
            let Some(account) = self.accounts.get(&key) else { continue };
            let pages = account.pages.get() + account.owed.get();
            if pages >= most {
                return Room::Full(limit);
            }
            if pages + account.asked.get() >= most {
                room = Room::Later;
            }
        }
        room
    }

    /// Returns the limit that the pages of a URL's server, domain or site have reached; `None` if
    /// the URL may be requested, now or later.
    pub(in crate::engine) fn full(&self, url: UrlRef<'_>) -> Option<PagesLimit> {
        match self.room(url) {
            Room::Full(limit) => Some(limit),
            Room::Free | Room::Later => None,
        }
    }

    /// Returns whether requests in flight may reach a limit for the pages of a URL's server, domain
    /// or site.
    pub(in crate::engine) fn is_full_later(&self, url: UrlRef<'_>) -> bool {
        self.room(url) == Room::Later
    }

    /// Takes a part of the quotas for a request of a URL; `None` if none limits it.
    pub(in crate::engine) fn reservation(&mut self, url: UrlRef<'_>) -> Option<Reservation> {
        Reservation::new(self.accounts_of(url), false)
    }

    /// Takes a part of the quotas for a capture that is to be read back.
    pub(in crate::engine) fn owe(&mut self, url: UrlRef<'_>) -> Option<Reservation> {
        Reservation::new(self.accounts_of(url), true)
    }

    /// Takes a part of the quotas for a capture that a checkpoint lists with these keys.
    pub(in crate::engine) fn owe_again(&mut self, keys: &[u64]) -> Option<Reservation> {
        Reservation::new(self.accounts_with(keys.iter().copied()), true)
    }

    /// Counts a page.
    pub(in crate::engine) fn count(&mut self, url: UrlRef<'_>) {
        for (_, account) in self.accounts_of(url) {
            account.pages.set(account.pages.get() + 1);
        }
    }

    /// Counts a URL that is over a limit. Returns how many there were for the same limit, and whose
    /// limit it is.
    fn refuse(&mut self, url: UrlRef<'_>, limit: PagesLimit) -> (u64, String) {
        let whose = match limit {
            PagesLimit::Server => url.origin().to_owned(),
            PagesLimit::Domain => domain::registrable(url.host()).to_owned(),
            PagesLimit::Site => {
                let site = self.sites.of(url).map(usize::from);
                site.map_or_else(String::new, |site| self.sites.list()[site].to_string())
            }
        };
        let limits = self.limits_of(url);
        let key = limits.iter().find(|(.., other)| *other == limit).map(|(key, ..)| *key);
        let account = key.and_then(|key| self.accounts.get(&key));
        let refused = account.map_or(0, |account| account.refused.get() + 1);
        account.inspect(|account| account.refused.set(refused));
        (refused, whose)
    }

    /// Encodes the counts in pieces for a checkpoint, and calls `push` with each.
    pub(in crate::engine) fn encode(&self, push: &mut dyn FnMut(&[u8])) {
        let mut counted: Vec<_> =
            self.accounts.iter().filter(|(_, account)| account.pages.get() > 0).collect();
        counted.sort_unstable_by_key(|(key, _)| **key);
        let mut piece = Vec::new();
        for (key, account) in counted {
            piece.put_u64(*key);
            piece.put_varint(account.pages.get());
            if piece.len() >= PIECE_BYTES {
                push(&piece);
                piece.clear();
            }
        }
        if !piece.is_empty() {
            push(&piece);
        }
    }

    /// Decodes a piece that [`Quotas::encode`] wrote.
    pub(in crate::engine) fn decode(&mut self, piece: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(piece);
        while !take.is_empty() {
            let (key, pages) = (take.u64()?, take.varint()?);
            self.accounts.entry(key).or_default().pages.set(pages);
        }
        Ok(())
    }
}

impl Engine {
    /// Returns the URL at the head of a queue if there are limits on pages and it may become one.
    fn limited_head(&mut self, id: ServerId) -> Option<String> {
        if !self.admission.quotas.is_any() {
            return None;
        }
        let item = self.backlog.peek(id).filter(|item| item.may_become_page())?;
        let target = item.target.clone();
        Some(self.backlog.origin(id).url_of(&target))
    }

    /// Takes a part of the limits on pages for a request.
    pub(in crate::engine) fn quota_for(&mut self, url: &str) -> Option<Reservation> {
        if !self.admission.quotas.is_any() {
            return None;
        }
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        self.admission.quotas.reservation(url)
    }

    /// Returns the outcome of the URL at the head of a queue if it would exceed a limit on pages,
    /// and counts it as dropped; `None` if it may be requested, now or later.
    pub(in crate::engine) fn over_quota(&mut self, id: ServerId) -> Option<Outcome> {
        let url = self.limited_head(id)?;
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        let limit = self.admission.quotas.full(url)?;
        let (refused, whose) = self.admission.quotas.refuse(url, limit);
        self.counts.cut(limit.cause(), 1);
        self.counts.set_cut_total(limit.cause(), refused, &whose);
        Some(Outcome::PagesMax(limit))
    }

    /// Returns until when a server waits because the URL at the head of its queue may exceed a
    /// limit on pages, depending on requests in flight; `None` if it doesn't wait.
    pub(in crate::engine) fn quota_due(&mut self, id: ServerId) -> Option<Instant> {
        let url = self.limited_head(id)?;
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        self.admission.quotas.is_full_later(url).then(|| self.turn.at() + WAIT)
    }

    /// Counts a page whose final reply is archived.
    pub(in crate::engine) fn count_page(&mut self, url: &str) {
        if self.admission.quotas.is_any() {
            let url = UrlRef::from_canonical(url.as_bytes()).expect("it was fetched");
            self.admission.quotas.count(url);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Url;

    fn quotas(server: Option<u64>, domain: Option<u64>) -> Quotas {
        let matchers = [Matcher::host("own.a.test"), Matcher::host("free.a.test")];
        let matchers: Vec<Matcher> = matchers.into_iter().flatten().collect();
        let mut settings = Settings::default();
        settings.limits.pages_per_server_max = server;
        settings.limits.pages_per_domain_max = domain;
        settings.sites.index = Arc::new(Sites::new(&matchers));
        settings.sites.pages_max = vec![Some(Some(2)), Some(None)];
        Quotas::new(&settings, Fingerprinter::new([7; 16]))
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn requests_take_seats_and_pages_keep_them() {
        let mut all = quotas(Some(2), Some(3));
        let (a, b) = (url("http://a.test/"), url("http://b.a.test/"));
        let first = all.reservation(a.view());
        assert_eq!(all.room(a.view()), Room::Free);
        let second = all.reservation(a.view());
        assert_eq!(all.room(a.view()), Room::Later, "two are in flight");
        drop(first);
        assert_eq!(all.room(a.view()), Room::Free, "one was no page");
        all.count(a.view());
        drop(second);
        all.count(a.view());
        assert_eq!(all.room(a.view()), Room::Full(PagesLimit::Server));
        assert_eq!(all.room(b.view()), Room::Free, "another server, one page of the domain left");
        let owed = all.owe(b.view());
        assert_eq!(all.room(b.view()), Room::Full(PagesLimit::Domain), "a capture is a page");
        let keys: Vec<u64> =
            owed.as_ref().map_or_else(Vec::new, |reservation| reservation.keys().collect());
        drop(owed);
        assert_eq!(all.room(b.view()), Room::Free);
        let again = all.owe_again(&keys);
        assert_eq!(all.room(b.view()), Room::Full(PagesLimit::Domain), "of a checkpoint");
        drop(again);
        assert_eq!(all.refuse(a.view(), PagesLimit::Server), (1, "http://a.test".to_owned()));
    }

    #[test]
    fn a_site_has_its_own_limit_or_none() {
        let mut all = quotas(Some(1), Some(1));
        let (own, free) = (url("http://own.a.test/"), url("https://free.a.test/"));
        for _ in 0..2 {
            assert_eq!(all.room(own.view()), Room::Free);
            all.count(own.view());
            all.count(free.view());
        }
        assert_eq!(all.room(own.view()), Room::Full(PagesLimit::Site));
        assert_eq!(all.room(free.view()), Room::Free, "no limit");
        assert_eq!(all.room(url("http://c.a.test/").view()), Room::Free, "those don't count here");
        let (count, whose) = all.refuse(own.view(), PagesLimit::Site);
        assert_eq!((count, &*whose), (1, "host = \"own.a.test\""));
    }

    /// Law: counts are restored as they were saved.
    #[test]
    fn counts_survive_a_restart() {
        let mut before = quotas(Some(3), None);
        let urls: Vec<Url> = (0..50_000).map(|n| url(&format!("http://h{n}.test/"))).collect();
        for (number, url) in urls.iter().enumerate() {
            (0..number % 4).for_each(|_| before.count(url.view()));
        }
        let mut after = quotas(Some(3), None);
        let mut pieces = 0;
        before.encode(&mut |piece| {
            pieces += 1;
            after.decode(piece).expect("as it was written");
        });
        assert!(pieces > 1, "{pieces}");
        for url in &urls {
            assert_eq!(before.room(url.view()), after.room(url.view()));
        }
        assert!(after.decode(&[1, 2, 3]).is_err());
    }
}
