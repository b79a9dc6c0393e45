//! Admission: decides which of the discovered URLs are queued. A URL must be in scope, its key must
//! be new to the seen test, and its server must be within the limits; then its quality is
//! estimated, and it is queued.
//!
//! This part of the engine owns the seen test, the scope, the rating of URLs, the number of servers
//! of each domain, the limits on pages, and the trace.
//!
//! Laws: URLs are queued in the order in which the seen test finds them new, but for those over the
//! budget of their domain, until half of the turn's budget for queues is spent. Seeds are queued
//! regardless of either budget.
//! Cost: a copy of each new URL.

mod canonical;
pub mod domains;
pub(super) mod quotas;
mod rescope;
mod seed_redirects;
mod trace;

use super::backlog::{Item, Parts, Purpose, Queued};
use super::cluster::Masks;
use super::ledger::Work;
use super::outcome::Outcome;
use super::seeds::SEED;
use super::settings::Settings;
use super::{Engine, Error};
use crate::frontier::ServerId;
use crate::ground::codec::{Put, Take};
use crate::ground::disk::Disk;
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::rating::{Found, Rating};
use crate::seen::Seen;
use crate::url::key::KeyRules;
use crate::url::scope::Scope;
use crate::url::{Fingerprint, Fingerprinter, Url, UrlRef};
use domains::Domains;
use quotas::Quotas;
use rescope::Rescope;
use seed_redirects::SeedRedirects;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use trace::Trace;

/// The fixed cost of queueing a new URL, in units of work (see `ledger`), in addition to one unit
/// for each byte of its entry.
pub(super) const ADMIT_UNITS: usize = 256;
/// The number of new URLs that are queued together.
const BATCH: usize = 16;
/// The capacity up to which the buffer for the entries of new URLs is kept, in bytes.
const SPARE_BYTES: usize = 8 << 10;

/// What decides whether a URL is queued, and with which quality.
pub(super) struct Admission {
    seen: Seen,
    rating: Rating,
    keys: KeyRules,
    fingerprinter: Fingerprinter,
    /// What fingerprints are combined with, if the crawl is shared.
    masks: Option<Masks>,
    scope: Scope,
    rescope: Rescope,
    seed_redirects: SeedRedirects,
    domains: Domains,
    quotas: Quotas,
    /// The trace of discovered URLs, if the operator wants it.
    trace: Option<Trace>,
    /// The entries that the seen test returned last; kept to reuse the memory.
    entries: Vec<u8>,
}

impl Admission {
    /// Returns an `Admission` that knows no URL. The seeds only define the scope.
    ///
    /// # Errors
    /// The scope contradicts itself, or the trace can't be begun.
    pub(super) fn new<'a>(
        settings: &Settings,
        seeds: impl Iterator<Item = &'a Url>,
        disk: &mut dyn Disk,
    ) -> Result<Self, Error> {
        let scope = Scope::new(settings.scope.clone(), seeds).map_err(Error::Scope)?;
        let fingerprinter = Fingerprinter::new(settings.fingerprint_key);
        let trace = settings.trace.then(|| Trace::begin(fingerprinter, disk)).transpose();
        Ok(Self {
            seen: Seen::new(settings.seen.clone()),
            rating: Rating::new(settings.rating.clone()),
            keys: KeyRules::new(settings.key.clone()),
            fingerprinter,
            masks: None,
            rescope: Rescope::new(&scope),
            seed_redirects: SeedRedirects::default(),
            scope,
            domains: Domains::new(settings, fingerprinter),
            quotas: Quotas::new(settings, fingerprinter),
            trace: trace.map_err(|error| Error::Store(error.into()))?,
            entries: Vec::new(),
        })
    }

    /// Returns the seen test.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Returns the seen test, for changes.
    pub(super) fn seen_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }

    /// Returns the estimated qualities of URLs.
    pub(super) fn rating(&self) -> &Rating {
        &self.rating
    }

    /// Returns the estimated qualities of URLs, for changes.
    pub(super) fn rating_mut(&mut self) -> &mut Rating {
        &mut self.rating
    }

    /// Returns the seen test and the estimated qualities of URLs, for changes of both.
    #[cfg(feature = "cluster")]
    pub(super) fn takers(&mut self) -> (&mut Seen, &mut Rating) {
        (&mut self.seen, &mut self.rating)
    }

    /// Returns the keyed hash of a text.
    pub(super) fn hash(&self, text: &[u8]) -> Fingerprint {
        self.fingerprinter.of(text)
    }

    /// Returns the hash of a URL's deduplication key. URLs with equal keys are duplicates. `key` is
    /// a scratch buffer.
    pub(super) fn key_of(&self, url: UrlRef<'_>, key: &mut Vec<u8>) -> Fingerprint {
        let fingerprint = self.fingerprinter.of(self.keys.key(url, key));
        match &self.masks {
            None => fingerprint,
            Some(masks) => Fingerprint(fingerprint.0 ^ masks.of(url.host())),
        }
    }

    /// Makes the crawl one that is shared, if there are masks.
    pub(super) fn set_masks(&mut self, masks: Option<Masks>) {
        self.masks = masks;
    }

    /// Returns the masks of a crawl that is shared, for changes.
    pub(super) fn masks_mut(&mut self) -> Option<&mut Masks> {
        self.masks.as_mut()
    }

    /// Returns the rules by which deduplication keys are computed.
    pub(super) fn keys(&self) -> &KeyRules {
        &self.keys
    }

    /// Returns the scope, which URLs must be in.
    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the limits on pages and what they count.
    pub(super) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the limits on pages and what they count, for changes.
    pub(super) fn quotas_mut(&mut self) -> &mut Quotas {
        &mut self.quotas
    }

    /// Extends the scope by what a seed implies.
    pub(super) fn add_seed(&mut self, seed: UrlRef<'_>) {
        self.scope.add_seed(seed);
    }

    /// Replaces the scope, and adds to it what was learnt while the crawl ran: seeds of commands,
    /// and hosts that seeds redirect to. URLs in queues are checked again when they leave them.
    pub(super) fn set_scope(&mut self, scope: Scope, added: &BTreeSet<Url>) {
        self.scope = scope;
        added.iter().for_each(|seed| self.add_seed(seed.view()));
        self.join_again(|_| true);
        self.rescope.begin();
    }

    /// Returns whether URLs that leave their queues are checked against the scope again.
    pub(super) fn is_rescoped(&self) -> bool {
        self.rescope.is_due()
    }

    /// Returns the record of which scope the queued URLs were checked against.
    pub(super) fn rescope(&mut self) -> &mut Rescope {
        &mut self.rescope
    }

    /// Returns how a queued URL was found. If its quality is an inherited one, which can't be found
    /// again, that goes with it.
    pub(super) fn found_of(&self, item: &Item) -> Discovery {
        let Item { found_as: letter, hops, depth, requisite, .. } = *item;
        let estimate = self.rating.inherits().then_some(item.quality);
        Discovery { letter, hops, depth, requisite, tries: 0, estimate }
    }

    /// Counts a new server for its registrable domain.
    pub(super) fn add_server(&mut self, host: &str) {
        self.domains.add(host);
    }

    /// Writes a discovered URL to the trace, if there is one.
    pub(super) fn trace_link(&mut self, url: UrlRef<'_>, fingerprint: Fingerprint) {
        if let Some(trace) = &mut self.trace {
            trace.link(url, fingerprint);
        }
    }
}

impl Engine {
    /// Queues URLs that the seen test found to be new, up to half of the turn's budget.
    pub(super) fn admit_fresh(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        self.queue_fresh();
        self.turn.back(stage);
    }

    pub(super) fn queue_fresh(&mut self) {
        while self.queue_batch(true) {}
    }

    /// Queues all URLs that the seen test found to be new, regardless of the budget.
    pub(super) fn queue_seeds(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        while self.queue_batch(false) {}
        self.turn.back(stage);
    }

    /// Queues some new URLs together, so that what they need of the frontier is prefetched
    /// together. The turn's budget limits them only if `is_bounded` is true. Returns whether there
    /// was any new URL.
    fn queue_batch(&mut self, is_bounded: bool) -> bool {
        let mut entries = std::mem::take(&mut self.admission.entries);
        entries.clear();
        entries.shrink_to(SPARE_BYTES);
        let mut ends: SmallVec<[usize; BATCH]> = SmallVec::new();
        while ends.len() < BATCH
            && !(is_bounded && self.turn.is_half_spent(Work::Admitted))
            && let Some(entry) = self.admission.seen.fresh()
        {
            entries.extend_from_slice(entry);
            ends.push(entries.len());
            if is_bounded {
                self.turn.charge(Work::Admitted, ADMIT_UNITS + entry.len());
            }
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let all = starts.zip(&ends).map(|(start, end)| &entries[start..*end]);
        let found: SmallVec<[_; BATCH]> =
            all.filter(|entry| **entry != [DONE]).map(Discovery::decode).collect();
        self.backlog.prefetch(found.iter().map(|(_, url, _)| *url));
        for (found, url, via) in found {
            if found.letter == DONE {
                self.joined_canonical(url, via);
                continue;
            }
            self.counts.urls_new += 1;
            self.admit(found, url, (!via.is_empty()).then_some(via));
        }
        self.admission.entries = entries;
        !ends.is_empty()
    }

    /// Queues a URL at its server.
    pub(super) fn queue(&mut self, found: Discovery, url: UrlRef<'_>, via: Option<&str>) {
        let id = match self.server_for(url, found.letter) {
            Ok(id) => id,
            Err(servers) => return self.refuse(found, url, via, servers),
        };
        let quality = self.admission.rating.of(url, found.rated());
        let parts = Parts {
            found_as: found.letter,
            hops: found.hops,
            tries: found.tries,
            is_late: false,
            depth: found.depth,
            requisite: found.requisite,
            purpose: Purpose::Page,
            target: url.target(),
            via,
            known: &[],
        };
        if !self.claim_capture(id, url, Purpose::Page, || parts.item(quality)) {
            self.queue_parts(id, &parts, quality);
        }
    }

    /// Queues an item at a server.
    pub(super) fn queue_item(&mut self, id: ServerId, item: &Item) {
        self.queue_parts(id, &item.parts(), item.quality);
    }

    fn queue_parts(&mut self, id: ServerId, parts: &Parts<'_>, quality: Quality) {
        match self.backlog.add_to(id, parts, quality, self.turn.at()) {
            Queued::Waits => {}
            Queued::Retired(item) if item.purpose == Purpose::Again => self.refuse_again(id, &item),
            Queued::Retired(item) => {
                self.counts.losses.add_url(self.backlog.origin(id).as_str());
                self.note_given_up(id, &item, self.given_up_as(id));
            }
            Queued::Full(item) => self.complete_unsent(id, &item, Outcome::QueueFull),
        }
    }
}

/// The letter that marks an entry of the seen test as no URL to queue, which was fetched, in a way,
/// and counts as known from now on: the end of a redirect chain, or, with the URL, what a fetched
/// page prefers (see [`canonical`]).
pub(super) const DONE: u8 = b'=';

/// How a URL was found. It accompanies the URL through the seen test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discovery {
    pub(super) letter: u8,
    pub(super) hops: u8,
    pub(super) depth: u16,
    /// The number of hops from the page that the URL is a requisite of; 0 for a page, at most 15.
    pub(super) requisite: u8,
    /// How often the URL was tried by nodes of a cluster that had it before, at most [`TRIES_MAX`].
    pub(super) tries: u8,
    /// The quality that follows from the page that links to the URL; `None` if there is no page, or
    /// if the source of qualities doesn't look at it.
    pub(super) estimate: Option<Quality>,
}

/// The bit beside the hops of a requisite that says that an estimate follows.
const HAS_ESTIMATE: u8 = 1 << 7;
/// The place of the tries beside the hops of a requisite.
const TRIES_SHIFT: u32 = 4;
/// The most tries that are counted.
const TRIES_MAX: u8 = 7;
/// The most hops of a requisite.
const REQUISITE_MAX: u8 = (1 << TRIES_SHIFT) - 1;

impl Discovery {
    /// How a seed is found.
    pub(super) const SEED: Self =
        Self { letter: SEED, hops: 0, depth: 0, requisite: 0, tries: 0, estimate: None };

    /// Encodes the letter, the hops, the hops of a requisite with the tries, the depth, the length
    /// of the URL, the estimate if there is one (a varint), the URL, and the page that it was found
    /// on.
    pub(super) fn encode(self, url: &str, via: &str, out: &mut Vec<u8>) {
        let len = u16::try_from(url.len()).expect("URLs are capped below 64 KiB");
        let has_estimate = if self.estimate.is_some() { HAS_ESTIMATE } else { 0 };
        let bits = self.requisite | self.tries.min(TRIES_MAX) << TRIES_SHIFT | has_estimate;
        out.extend_from_slice(&[self.letter, self.hops, bits]);
        out.extend_from_slice(&self.depth.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        if let Some(estimate) = self.estimate {
            out.put_varint(estimate.millionths());
        }
        out.extend_from_slice(url.as_bytes());
        out.extend_from_slice(via.as_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> (Self, UrlRef<'_>, &str) {
        let whole = "what the seen test lets out is what was offered";
        let (&[letter, hops, bits, low, high, len_low, len_high], rest) =
            bytes.split_first_chunk().expect(whole);
        let len = usize::from(u16::from_le_bytes([len_low, len_high]));
        let mut take = Take::new(rest);
        let estimate = (bits & HAS_ESTIMATE != 0)
            .then(|| Quality::from_millionths(take.varint().expect(whole)));
        let rest = take.rest();
        let url = UrlRef::from_canonical(&rest[..len]).expect(whole);
        let via = std::str::from_utf8(&rest[len..]).expect(whole);
        let depth = u16::from_le_bytes([low, high]);
        let (tries, requisite) = (bits >> TRIES_SHIFT & TRIES_MAX, bits & REQUISITE_MAX);
        (Self { letter, hops, depth, requisite, tries, estimate }, url, via)
    }

    /// Returns what the quality of the URL may depend on.
    fn rated(self) -> Found {
        Found { estimate: self.estimate, depth: self.depth }
    }
}
