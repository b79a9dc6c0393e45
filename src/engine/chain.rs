//! Redirect chains: a redirect is followed hop by hop, as part of the fetch that began it.
//!
//! A hop is queued at its own server, ahead of that server's pages. Like any URL it waits for the
//! server's rest, is checked against scope, robots.txt and forbidden addresses, counts as a
//! request, and holds no connection while it waits. This part of the engine owns what the queues
//! don't know of a chain: its first URL, and the keys and cookies of its hops.
//!
//! A chain ends with the first reply that is no redirect. It also ends before a hop that may not be
//! requested, which then has a line in the log: the limit on redirects is exceeded, the same URL
//! was requested with the same cookies before (a loop), it is out of scope or forbidden, or it is
//! *known*, which means that the target was fetched or queued already. The URLs of the chain itself
//! don't count as known, and neither does a target that is sent a cookie of the chain: cookie walls
//! show the page where they redirected before. If several chains lead to the same target, the first
//! one requests it and the others wait for its outcome.
//!
//! Only the end of a chain is offered to the seen test, not its hops. A link to a target that a
//! chain is requesting is held: if the chain ends there, the link is a duplicate, else it is
//! offered to the seen test.
//!
//! A checkpoint saves the first URL of each chain as waiting, so that the chain begins again after
//! a restart; a hop that is restored without its chain is dropped. Cookies are neither logged nor
//! saved in the state, but the archive holds the requests as they were sent.
//!
//! Laws: a chain has one hop, which waits or is in flight. At most `chains_max` chains exist; the
//! targets of further redirects are counted, and treated like links. A chain makes at most
//! `fetch.redirects_max` plus one requests.
//! Cost: a few hundred bytes a chain, and at most 8 KiB more for cookies; a map look-up for each
//! link while there are chains.

use super::Engine;
use super::admission::{DONE, Discovery};
use super::backlog::{Item, Purpose};
use super::budgets::DOMAIN_UNITS;
use super::ledger::Work;
use super::outcome::Outcome;
use super::redirect::redirect_target;
use super::seeds::SEED;
use super::wire::Fetch;
use crate::frontier::ServerId;
use crate::ground::map::Map;
use crate::http::cookies::{Jar, SetOutcome};
use crate::http::response::Head;
use crate::seen::lookup::{Answer, Lookup};
use crate::url::{Fingerprint, Url, UrlRef};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::rc::Rc;

/// The letter that stands for a redirect in a hop path (in the crawl log, how a URL was reached).
pub(super) const REDIRECT: u8 = b'R';

/// All redirect chains of the crawl that have not ended.
#[derive(Debug, Default)]
pub(super) struct Chains {
    live: Map<u32, Chain>,
    /// The targets that chains are requesting, by the hash of the deduplication key of the URL.
    requested: Map<u64, Requested>,
    /// The numbers of chains whose next target must be looked up among the known URLs, for the
    /// first time or again.
    undecided: VecDeque<u32>,
}

/// One redirect chain: where it began, what it has requested, and its next hop.
#[derive(Debug)]
struct Chain {
    /// The server of the chain's first URL.
    server: ServerId,
    first: Item,
    /// The hashed deduplication keys of the URLs that the chain has requested so far.
    keys: SmallVec<[Fingerprint; 2]>,
    /// The URLs of the hops that have redirected, in a crawl that several nodes share: they are
    /// settled with the first URL, since whoever repeats the chain needs them.
    passed: Vec<Box<str>>,
    /// The requests of the chain so far: for each, a hash of the URL together with the cookies
    /// sent. The same request twice is a loop.
    requests: SmallVec<[Fingerprint; 2]>,
    jar: Jar,
    hop: Hop,
}

/// The next URL of a chain, which waits or is in flight.
#[derive(Debug)]
struct Hop {
    url: Url,
    key: Fingerprint,
    via: Rc<str>,
    hops: u8,
    lookup: Lookup,
}

/// A target that a chain is requesting, and who else waits for its outcome.
#[derive(Debug)]
struct Requested {
    chain: u32,
    /// The numbers of further chains that redirect to the same target, in order of arrival.
    waiting: VecDeque<u32>,
    /// The first link to the target that was found while a chain requests it, encoded for the seen
    /// test; `None` if no link was found.
    held: Option<Vec<u8>>,
}

/// What a redirecting reply says about the next hop: its URL, and the cookies to store.
#[derive(Debug)]
pub(super) struct Redirect {
    target: Url,
    /// The values of the `Set-Cookie` fields of the reply.
    cookies: SmallVec<[Box<[u8]>; 2]>,
}

impl Redirect {
    /// Returns where the reply to `fetch` redirects, or `None` if it is no redirect. Adds the work
    /// that this took to `units`.
    pub(super) fn of(fetch: &Fetch, head: &Head, bytes: &[u8], units: &mut usize) -> Option<Self> {
        let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let target = redirect_target(head, bytes, from, units)?;
        let set = head.fields(bytes).filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
        Some(Self { target, cookies: set.map(|(_, value)| value.into()).collect() })
    }
}

impl Chains {
    /// Returns the number of chains.
    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns whether the chain with this number exists. The chain of a hop that a checkpoint
    /// restored does not: it begins again at its first URL.
    pub(super) fn has(&self, number: u32) -> bool {
        self.live.contains_key(&number)
    }

    /// Returns the next hop of the chain that has requested the URL with this deduplication key, or
    /// whose next hop that URL is; `None` if there is none.
    pub(super) fn hop_after(&self, key: Fingerprint) -> Option<&str> {
        let is_of = |chain: &&Chain| chain.keys.contains(&key) || chain.hop.key == key;
        self.live.values().find(is_of).map(|chain| chain.hop.url.as_str())
    }

    /// Returns whether a chain requests the URL with this key now.
    pub(super) fn requests(&self, key: Fingerprint) -> bool {
        self.requested.contains_key(&key.0)
    }

    /// Holds a link if a chain is requesting its target (the URL with this deduplication key);
    /// `write` encodes the link. Returns whether the link is held.
    pub(super) fn hold(&mut self, key: Fingerprint, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.requested.is_empty() {
            return false;
        }
        let Some(asked) = self.requested.get_mut(&key.0) else { return false };
        asked.held.get_or_insert_with(|| {
            let mut entry = Vec::new();
            write(&mut entry);
            entry
        });
        true
    }
}

impl Engine {
    /// Returns the hash of the deduplication key of a URL.
    pub(super) fn key_of(&self, url: UrlRef<'_>) -> Fingerprint {
        self.admission.key_of(url, &mut Vec::new())
    }

    /// Returns the first URL of the chain that an item is a hop of, or `None` if the item is no
    /// hop.
    pub(super) fn chain_of(&self, item: &Item) -> Option<String> {
        let Purpose::Hop(number) = item.purpose else { return None };
        self.chains.live.get(&number).map(|chain| self.beginning_of(chain))
    }

    fn beginning_of(&self, chain: &Chain) -> String {
        self.backlog.origin(chain.server).url_of(&chain.first.target)
    }

    /// Returns the value of the Cookie field to send with a URL, or `None` if its chain has no
    /// cookies for it.
    pub(super) fn cookies_for(&self, id: ServerId, item: &Item) -> Option<Vec<u8>> {
        let jar = match item.purpose {
            Purpose::Hop(number) => &self.chains.live.get(&number)?.jar,
            Purpose::Robots(of, 1..) => self.robots.jar(of)?,
            Purpose::Robots(..) | Purpose::Page | Purpose::Again => return None,
        };
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        jar.field(url, self.turn.unix())
    }

    /// Returns the hash of a URL together with the cookies that are sent with it.
    fn request_of(&self, url: &str, cookies: Option<&[u8]>) -> Fingerprint {
        let text = [url.as_bytes(), cookies.unwrap_or_default()].join(&b'\n');
        self.admission.hash(&text)
    }

    /// Follows a redirect, the reply to `fetch` of the server `id`: continues its chain, or begins
    /// one.
    pub(super) fn redirected(&mut self, id: ServerId, fetch: &Fetch, redirect: Redirect) {
        let Redirect { target, cookies } = redirect;
        let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        self.counts.links += 1;
        self.rate_redirect(from, target.view());
        let (key, hop_key) = (self.key_of(from), self.key_of(target.view()));
        let hop = Hop {
            url: target,
            key: hop_key,
            via: fetch.url.as_ref().into(),
            hops: fetch.item.hops.saturating_add(1),
            lookup: Lookup::new(hop_key),
        };
        let known = match fetch.item.purpose {
            Purpose::Hop(number) => self.chains.live.remove(&number).map(|chain| (number, chain)),
            Purpose::Page | Purpose::Again | Purpose::Robots(..) => None,
        };
        let (number, mut chain) = match known {
            Some((number, mut chain)) => {
                if self.cluster.is_some() {
                    chain.passed.push(fetch.url.as_ref().into());
                }
                (number, Chain { hop, ..chain })
            }
            None => {
                let first = Item { tries: 0, ..fetch.item.clone() };
                let chain = Chain {
                    server: id,
                    first,
                    keys: SmallVec::new(),
                    passed: Vec::new(),
                    requests: SmallVec::new(),
                    jar: Jar::default(),
                    hop,
                };
                if self.chains.len() >= self.settings.chains_max {
                    self.counts.cut("chains-loosened", 1);
                    return self.detach_target(&chain);
                }
                self.counts.chains += 1;
                (self.counts.chains as u32, chain)
            }
        };
        if !chain.keys.contains(&key) {
            chain.keys.push(key);
        }
        chain.requests.push(self.request_of(&fetch.url, fetch.identity.cookies.as_deref()));
        self.take_cookies(&mut chain.jar, from, cookies.iter().map(AsRef::as_ref));
        self.release_redirected(number, key);
        match self.check_hop(&chain) {
            Ok(()) if self.is_foreign(chain.hop.url.view()) => {
                self.detach_target(&chain);
            }
            Ok(()) => {
                self.chains.live.insert(number, chain);
                self.place_hop(number);
            }
            Err(outcome) => self.end_before_request(&chain, outcome),
        }
    }

    /// Counts a redirect as a link for the quality of its target; in a cluster as links between
    /// domains are counted (see `cluster::facts`).
    fn rate_redirect(&mut self, from: UrlRef<'_>, target: UrlRef<'_>) {
        if let Some(cluster) = self.cluster.as_deref_mut().filter(|own| own.counts_domains()) {
            let units = cluster.share_redirect(from, target, self.turn.at());
            self.turn.charge(Work::Redirects, units);
            return;
        }
        if let Some(budgets) = self.backlog.budgets_mut() {
            let units = DOMAIN_UNITS * budgets.links(from.host(), std::iter::once(target.host()));
            self.turn.charge(Work::Redirects, units);
        }
        if self.admission.rating().counts_links() {
            self.admission.rating_mut().page(from, &mut std::iter::once(target));
        }
    }

    /// Stores the cookies of a redirect in a jar. `from` is the URL of the fetch; `fields` are the
    /// values of its `Set-Cookie` fields.
    pub(super) fn take_cookies<'f>(
        &mut self,
        jar: &mut Jar,
        from: UrlRef<'_>,
        fields: impl Iterator<Item = &'f [u8]>,
    ) {
        if !self.settings.cookies {
            return;
        }
        for field in fields {
            self.turn.charge(Work::Redirects, COOKIE_UNITS + field.len());
            if jar.take(field, from, self.turn.unix()) == SetOutcome::Full {
                self.counts.cut("cookies-max", 1);
            }
        }
    }

    /// Checks whether the next hop of a chain may be requested. Whether its URL is known already is
    /// not looked up here. `Err` holds the outcome with which the chain ends instead.
    fn check_hop(&mut self, chain: &Chain) -> Result<(), Outcome> {
        let hop = &chain.hop;
        if hop.hops > self.settings.redirects_max {
            return Err(Outcome::RedirectLimit);
        }
        let cookies = chain.jar.field(hop.url.view(), self.turn.unix());
        if chain.requests.contains(&self.request_of(hop.url.as_str(), cookies.as_deref())) {
            return Err(Outcome::RedirectLoop);
        }
        // The target of a requisite's redirect is a requisite, too.
        let at = chain.first.distance();
        let mut wanted = self.admission.scope().check_distance(hop.url.view(), at, &mut "");
        if wanted.is_err() && chain.first.found_as == SEED {
            // A redirect that changes only `www.` or the scheme extends the scope.
            let seed = Url::parse(&self.beginning_of(chain)).expect("it was fetched");
            if self.admission.joins_scope(seed.view(), hop.url.view()) {
                wanted = self.admission.scope().check_distance(hop.url.view(), at, &mut "");
            }
        }
        wanted.map_err(|why| {
            self.counts.out_of_scope(why.name());
            Outcome::OutOfScope(why)
        })
    }

    /// Offers the target of a redirect to the seen test like a link, instead of following the
    /// redirect: because as many chains exist as are allowed, or because another node crawls it.
    fn detach_target(&mut self, chain: &Chain) {
        if let Err(outcome) = self.check_hop(chain) {
            return self.end_before_request(chain, outcome);
        }
        // Whatever fetches the target reports its outcome.
        self.end_chain(chain, Outcome::RedirectToKnown);
        let Hop { url, key, via, hops, .. } = &chain.hop;
        let found = self.redirected_from(&chain.first, *hops);
        self.offer_link((*key, found), url.view(), via);
    }

    /// Ends the chain of a hop that may not be requested here any more, because the server is
    /// another node's now. That node gets its URL as a link.
    pub(super) fn hand_over_hop(&mut self, number: u32) {
        let Some(mut chain) = self.chains.live.remove(&number) else { return };
        let before = chain.hop.key;
        if self.chains.requested.get(&before.0).is_some_and(|asked| asked.chain == number) {
            // A link to this URL that is held is in the log of its partition.
            let asked = self.chains.requested.remove(&before.0).expect("just looked");
            self.chains.undecided.extend(asked.waiting);
        }
        chain.hop.key = self.key_of(chain.hop.url.view());
        self.detach_target(&chain);
    }

    /// Queues the next hop of a chain, unless it must wait for another chain or a look-up, or is
    /// known.
    fn place_hop(&mut self, number: u32) {
        let Some(chain) = self.chains.live.get_mut(&number) else { return };
        let cookies = chain.jar.field(chain.hop.url.view(), self.turn.unix()).is_some();
        let key = chain.hop.key;
        if !cookies && !chain.keys.contains(&key) {
            if let Some(asked) = self.chains.requested.get_mut(&key.0) {
                return asked.waiting.push_back(number);
            }
            let lookup = &mut chain.hop.lookup;
            let granted = self.turn.left(Work::Lookups);
            let looked = self.admission.seen_mut().look_up(lookup, granted, self.storage.disk());
            let Some((answer, units)) = self.checked(looked) else {
                return self.chains.undecided.push_back(number);
            };
            self.turn.charge(Work::Lookups, units);
            match answer {
                Answer::New => {}
                Answer::Known => {
                    let chain = self.chains.live.remove(&number).expect("just looked");
                    return self.end_before_request(&chain, Outcome::RedirectToKnown);
                }
                Answer::More | Answer::Busy => return self.chains.undecided.push_back(number),
            }
        }
        let asked = || Requested { chain: number, waiting: VecDeque::new(), held: None };
        self.chains.requested.entry(key.0).or_insert_with(asked);
        self.queue_hop(number);
    }

    /// Returns whether any chain waits for a look-up that can be made now.
    pub(super) fn can_place_hops(&self) -> bool {
        let decides = !self.chains.undecided.is_empty() && self.storage.is_usable();
        decides || self.hands_over_chains()
    }

    /// Looks up whether the next targets of waiting chains are known URLs, within the turn's
    /// budget, and places the hops of those chains. If this node is leaving its cluster, all chains
    /// are handed over.
    pub(super) fn work_chains(&mut self) {
        while self.hands_over_chains()
            && !self.turn.is_spent(Work::Lookups)
            && let Some(number) = self.chains.live.keys().next().copied()
        {
            self.turn.charge(Work::Lookups, UNDECIDED_UNITS);
            self.hand_over_hop(number);
        }
        let mut left = self.chains.undecided.len();
        while left > 0
            && self.can_place_hops()
            && !self.turn.is_spent(Work::Lookups)
            && let Some(number) = self.chains.undecided.pop_front()
        {
            self.turn.charge(Work::Lookups, UNDECIDED_UNITS);
            self.place_hop(number);
            left -= 1;
        }
    }

    /// Queues the next hop of a chain at the front of its server's queue.
    fn queue_hop(&mut self, number: u32) {
        let chain = self.chains.live.remove(&number).expect("it is to be queued");
        let url = chain.hop.url.clone();
        let id = match self.server_for(url.view(), chain.first.found_as) {
            Ok(id) => id,
            Err(limit) => {
                self.count_refused(url.view(), limit);
                self.end_before_request(&chain, Outcome::TooMany(limit));
                return self.release_target(number, chain.hop.key);
            }
        };
        let Chain { first, hop, .. } = &chain;
        let item = Item {
            target: url.view().target().into(),
            quality: first.quality,
            arrival: 0,
            depth: first.depth,
            requisite: first.requisite,
            hops: hop.hops,
            tries: 0,
            is_late: false,
            purpose: Purpose::Hop(number),
            found_as: first.found_as,
            via: Some(Rc::clone(&hop.via).into()),
            known: None,
        };
        self.chains.live.insert(number, chain);
        if !self.claim_capture(id, url.view(), item.purpose, || item.clone()) {
            self.queue_item(id, &item);
        }
    }

    /// Returns whether a redirect chain began with a page that was never fetched before.
    pub(super) fn is_chain_of_new(&self, number: u32) -> bool {
        let chain = self.chains.live.get(&number);
        chain.is_some_and(|chain| chain.first.purpose == Purpose::Page)
    }

    /// Handles the final outcome of a URL that leads no further. If it is a hop, its chain ends.
    pub(super) fn finish_url(&mut self, id: ServerId, item: &Item, url: &str, outcome: Outcome) {
        let Purpose::Hop(number) = item.purpose else {
            if item.purpose == Purpose::Again {
                return self.refuse_again(id, item);
            }
            self.counts.seeds.note_outcome(item, url, outcome);
            return;
        };
        let Some(chain) = self.chains.live.remove(&number) else { return };
        self.end_chain(&chain, outcome);
        let key = chain.hop.key;
        self.admission.seen_mut().offer(key, &[DONE]);
        if self.chains.requested.get(&key.0).is_some_and(|asked| asked.chain == number) {
            let asked = self.chains.requested.remove(&key.0).expect("just looked");
            self.chains.undecided.extend(asked.waiting);
        }
    }

    /// Called when a target that a chain requested redirects further, so that it does not become
    /// known. The chains that wait for this target request it themselves, one after the other.
    fn release_redirected(&mut self, number: u32, key: Fingerprint) {
        let Some(asked) = self.chains.requested.get_mut(&key.0) else { return };
        if asked.chain != number {
            return;
        }
        let next = if asked.held.is_none() { asked.waiting.pop_front() } else { None };
        match next {
            Some(next) => {
                asked.chain = next;
                self.queue_hop(next);
            }
            None => self.release_target(number, key),
        }
    }

    /// Called when a chain no longer requests a target. If a link to the target is held, it is
    /// offered to the seen test. The chains that wait for the target are looked up again.
    fn release_target(&mut self, number: u32, key: Fingerprint) {
        if self.chains.requested.get(&key.0).is_none_or(|asked| asked.chain != number) {
            return;
        }
        let asked = self.chains.requested.remove(&key.0).expect("just looked");
        if let Some(entry) = asked.held {
            self.admission.seen_mut().offer(key, &entry);
        }
        self.chains.undecided.extend(asked.waiting);
    }

    /// Ends a chain before its next hop is requested, with a line in the log that gives the reason.
    fn end_before_request(&mut self, chain: &Chain, outcome: Outcome) {
        self.counts.outcome(outcome);
        let Hop { url, via, hops, .. } = &chain.hop;
        let beginning = self.beginning_of(chain);
        self.log_unasked(
            url.view(),
            Some(via),
            (chain.first.found_as, *hops),
            Some(&beginning),
            outcome,
        );
        if let Outcome::OutOfScope(why) = outcome
            && chain.first.found_as == SEED
        {
            self.admission.seed_redirects().left_scope(&beginning, url.view(), why);
        }
        self.end_chain(chain, outcome);
    }

    /// Notes the outcome of a chain, which is that of its first URL.
    fn end_chain(&mut self, chain: &Chain, outcome: Outcome) {
        if self.cluster.is_some() {
            self.note_settled(&self.beginning_of(chain));
            chain.passed.iter().for_each(|url| self.note_settled(url));
        }
        if chain.first.found_as != SEED {
            return;
        }
        let beginning = self.beginning_of(chain);
        match outcome {
            // The fetch of that page reports its outcome.
            Outcome::RedirectToKnown => self.counts.seeds.note_success(&beginning),
            outcome => self.counts.seeds.note_outcome(&chain.first, &beginning, outcome),
        }
    }

    /// Returns the hosts of the URLs that are settled when their chain ends.
    #[cfg(feature = "cluster")]
    pub(super) fn chain_hosts(&self) -> impl Iterator<Item = &str> {
        self.chains.live.values().flat_map(|chain| {
            let passed = chain.passed.iter();
            let passed = passed.filter_map(|url| UrlRef::from_canonical(url.as_bytes()));
            let first = self.backlog.origin(chain.server).host();
            std::iter::once(first).chain(passed.map(UrlRef::host))
        })
    }

    /// Returns the first URLs of the chains, with their servers. A checkpoint saves them as
    /// waiting. Chains whose first URL is on a server that was given up are left out.
    pub(super) fn chains_waiting(&self) -> impl Iterator<Item = (ServerId, Item)> {
        let waits = |id: ServerId| self.sites.get(id).retired_as().is_none();
        // What a known page redirects to is found again at its next visit.
        let is_new = |chain: &&Chain| chain.first.purpose != Purpose::Again;
        let chains = self.chains.live.values().filter(is_new);
        let chains = chains.filter(move |chain| waits(chain.server));
        chains.map(|chain| (chain.server, chain.first.clone()))
    }

    /// Returns what else a checkpoint saves of chains, as hashed keys with encoded links: the links
    /// that are held, and the next targets of chains whose first URL is on a server that was given
    /// up.
    pub(super) fn chains_held(&self) -> Vec<(Fingerprint, Vec<u8>)> {
        let requested = self.chains.requested.iter();
        let held = requested.filter_map(|(key, it)| Some((Fingerprint(*key), it.held.clone()?)));
        let mut held: Vec<_> = held.collect();
        for chain in self.chains.live.values() {
            if self.sites.get(chain.server).retired_as().is_some() {
                let Hop { url, key, via, hops, .. } = &chain.hop;
                let found = self.redirected_from(&chain.first, *hops);
                let mut entry = Vec::new();
                found.encode(url.as_str(), via, &mut entry);
                held.push((*key, entry));
            }
        }
        held
    }

    /// Returns how the target of a redirect was found. `first` begins its chain.
    fn redirected_from(&self, first: &Item, hops: u8) -> Discovery {
        Discovery { letter: REDIRECT, hops, ..self.admission.found_of(first) }
    }
}

/// The fixed cost of storing one cookie, in units of work (see `ledger`), in addition to one unit
/// for each of its bytes: the cookie is compared with the others of its chain.
const COOKIE_UNITS: usize = 500;
/// The fixed cost of handling one chain that waits for a look-up, in units of work (see `ledger`),
/// in addition to the cost of the look-up. Most of it is the chain's line in the crawl log.
const UNDECIDED_UNITS: usize = 1_000;
