//! Redirect chains: a redirect is followed by the fetch that began it, hop by hop.
//!
//! A hop is a URL of its own server, ahead of that server's pages: it waits for the server's rest
//! as anything else does, is checked for scope, robots.txt and address, counts as a request, and
//! holds no slot while it waits. Here is kept what the queues don't know of a chain: the URL that
//! it began with, the keys and the cookies of its hops.
//!
//! A chain ends with the first reply that is no redirect, or because of the next hop, which then
//! has a line in the log: one redirect too many, the same URL with the same cookies again (a
//! loop), out of scope, forbidden, or *known*: a page of this target was fetched or is in a queue
//! already. The keys of a chain's own URLs never make a target known to it, and no target is known
//! that is sent a cookie of the chain: such walls show a page where they showed a redirect before.
//! Of several chains that lead to one target the first asks and the others wait for what comes of
//! it.
//!
//! Hops are not entered as seen, the end of a chain is. A link to a hop that is being asked for
//! is held until then: it is a repeat if the chain ends there, else a URL like others.
//!
//! A checkpoint writes the first URL of each chain as waiting, so that after a stop or a kill the
//! chain begins again, and a hop that comes up without its chain is dropped. Cookies are neither
//! logged nor kept in the state; the archive has the requests as they were sent.
//!
//! Laws: a chain has one hop, waiting or under way; no more than `chains_max` are under way (what
//! comes then is offered to the seen test as any link is, and counted); no chain makes more
//! requests than `fetch.redirects_max` and one. Cost: a few hundred bytes a chain, with cookies
//! 8 KiB more at most; while there are any, a map look-up for each link.

use super::Engine;
use super::admission::{DONE, Discovery};
use super::backlog::{Item, Purpose};
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

/// Letter of a redirect in a hop path.
pub(super) const REDIRECT: u8 = b'R';

/// All chains under way.
#[derive(Debug, Default)]
pub(super) struct Chains {
    live: Map<u32, Chain>,
    /// Targets that are being asked for, by their keys.
    asked: Map<u64, Asked>,
    /// Chains whose next target must be looked up (again).
    undecided: VecDeque<u32>,
}

/// One chain.
#[derive(Debug)]
struct Chain {
    /// The URL that it began with.
    server: ServerId,
    first: Item,
    /// Of the URLs that were asked for.
    keys: SmallVec<[Fingerprint; 2]>,
    /// What was asked for: URLs with the cookies sent.
    requests: SmallVec<[Fingerprint; 2]>,
    jar: Jar,
    hop: Hop,
}

/// The next URL of a chain, or the one under way.
#[derive(Debug)]
struct Hop {
    url: Url,
    key: Fingerprint,
    via: Rc<str>,
    hops: u8,
    lookup: Lookup,
}

/// A target that a chain asks for.
#[derive(Debug)]
struct Asked {
    chain: u32,
    /// Chains that lead there as well, in order of arrival.
    waiting: VecDeque<u32>,
    /// The first link to it that was found meanwhile.
    held: Option<Vec<u8>>,
}

/// What a reply says of the next hop.
#[derive(Debug)]
pub(super) struct Redirect {
    target: Url,
    /// Values of its `Set-Cookie` fields.
    cookies: SmallVec<[Box<[u8]>; 2]>,
}

impl Redirect {
    /// What the reply to `fetch` says, if it is a redirect; the work is added to `units`.
    pub(super) fn of(fetch: &Fetch, head: &Head, bytes: &[u8], units: &mut usize) -> Option<Self> {
        let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let target = redirect_target(head, bytes, from, units)?;
        let set = head.fields(bytes).filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
        Some(Self { target, cookies: set.map(|(_, value)| value.into()).collect() })
    }
}

impl Chains {
    /// Chains under way.
    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether a hop has its chain: one that a checkpoint brought back has not.
    pub(super) fn has(&self, number: u32) -> bool {
        self.live.contains_key(&number)
    }

    /// Whether some could not be decided on.
    fn has_work(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Takes a link to a target that is being asked for; `false` if none is asked for like it.
    pub(super) fn hold(&mut self, key: Fingerprint, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.asked.is_empty() {
            return false;
        }
        let Some(asked) = self.asked.get_mut(&key.0) else { return false };
        asked.held.get_or_insert_with(|| {
            let mut entry = Vec::new();
            write(&mut entry);
            entry
        });
        true
    }

    /// Links that are held, with their keys: what a checkpoint must not forget.
    fn held(&self) -> impl Iterator<Item = (Fingerprint, &[u8])> {
        self.asked
            .iter()
            .filter_map(|(key, asked)| Some((Fingerprint(*key), asked.held.as_deref()?)))
    }

    /// What each chain begins again with: its first URL, and the server of that.
    fn beginnings(&self) -> impl Iterator<Item = (ServerId, &Item)> {
        self.live.values().map(|chain| (chain.server, &chain.first))
    }
}

impl Chain {
    /// Whether the next target is asked for even if it is known.
    fn passes(&self, cookies: bool) -> bool {
        cookies || self.keys.contains(&self.hop.key)
    }
}

impl Engine {
    /// The key of a URL, hashed.
    pub(super) fn key_of(&self, url: UrlRef<'_>) -> Fingerprint {
        self.admission.key_of(url, &mut Vec::new())
    }

    /// The URL that the chain of a hop began with.
    pub(super) fn chain_of(&self, item: &Item) -> Option<String> {
        let Purpose::Hop(number) = item.purpose else { return None };
        self.chains.live.get(&number).map(|chain| self.beginning_of(chain))
    }

    fn beginning_of(&self, chain: &Chain) -> String {
        self.backlog.origin(chain.server).url_of(&chain.first.target)
    }

    /// What a URL is sent of its chain's cookies.
    pub(super) fn cookies_for(&self, id: ServerId, item: &Item) -> Option<Vec<u8>> {
        let jar = match item.purpose {
            Purpose::Hop(number) => &self.chains.live.get(&number)?.jar,
            Purpose::Robots(of, 1..) => self.robots.jar(of)?,
            Purpose::Robots(..) | Purpose::Page => return None,
        };
        let url = self.backlog.origin(id).url_of(&item.target);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("it was queued");
        jar.field(url, self.turn.unix())
    }

    /// A URL under its cookies, hashed.
    fn request_of(&self, url: &str, cookies: Option<&[u8]>) -> Fingerprint {
        let text = [url.as_bytes(), cookies.unwrap_or_default()].join(&b'\n');
        self.admission.hash(&text)
    }

    /// The reply to `fetch` of the server `id` is a redirect: its chain goes on, or begins.
    pub(super) fn redirected(&mut self, id: ServerId, fetch: &Fetch, redirect: Redirect) {
        let Redirect { target, cookies } = redirect;
        let from = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        self.counts.links += 1;
        if self.admission.rating().counts_links() {
            self.admission.rating_mut().page(from, &mut std::iter::once(target.view()));
        }
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
            Purpose::Page | Purpose::Robots(..) => None,
        };
        let (number, mut chain) = match known {
            Some((number, chain)) => (number, Chain { hop, ..chain }),
            None => {
                let first = Item { tries: 0, ..fetch.item.clone() };
                let chain = Chain {
                    server: id,
                    first,
                    keys: SmallVec::new(),
                    requests: SmallVec::new(),
                    jar: Jar::default(),
                    hop,
                };
                if self.chains.len() >= self.settings.chains_max {
                    return self.loosen(&chain);
                }
                self.counts.chains += 1;
                (self.counts.chains as u32, chain)
            }
        };
        if !chain.keys.contains(&key) {
            chain.keys.push(key);
        }
        chain.requests.push(self.request_of(&fetch.url, fetch.cookies.as_deref()));
        self.take_cookies(&mut chain.jar, from, cookies.iter().map(AsRef::as_ref));
        self.moves_on(number, key);
        match self.check_hop(&chain) {
            Ok(()) => {
                self.chains.live.insert(number, chain);
                self.place(number);
            }
            Err(outcome) => self.end_unasked(&chain, outcome),
        }
    }

    /// Takes in the `Set-Cookie` fields of a redirect, the reply to `from`.
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

    /// Whether the next hop of a chain may be asked for, as far as is known at once.
    fn check_hop(&mut self, chain: &Chain) -> Result<(), Outcome> {
        let hop = &chain.hop;
        if hop.hops > self.settings.redirects_max {
            return Err(Outcome::RedirectLimit);
        }
        let cookies = chain.jar.field(hop.url.view(), self.turn.unix());
        if chain.requests.contains(&self.request_of(hop.url.as_str(), cookies.as_deref())) {
            return Err(Outcome::RedirectLoop);
        }
        let is_seed = chain.first.found_as == SEED;
        let depth = chain.first.depth;
        let mut wanted = self.admission.check(hop.url.view(), depth);
        if wanted.is_err() && is_seed && self.joins_scope(chain) {
            wanted = self.admission.check(hop.url.view(), depth);
        }
        wanted.map_err(|why| {
            self.counts.out_of_scope(why.name());
            Outcome::OutOfScope(why)
        })
    }

    /// A seed's redirect that changes `www.` or the scheme only widens the scope.
    fn joins_scope(&mut self, chain: &Chain) -> bool {
        let seed = Url::parse(&self.beginning_of(chain)).expect("it was fetched");
        self.admission.joins_scope(seed.view(), chain.hop.url.view())
    }

    /// There are as many chains as may be: the target becomes a URL like others.
    fn loosen(&mut self, chain: &Chain) {
        self.counts.cut("chains-loosened", 1);
        if let Err(outcome) = self.check_hop(chain) {
            return self.end_unasked(chain, outcome);
        }
        // Who fetches it says what came of it.
        self.seed_settled(chain, Outcome::RedirectToKnown);
        let Hop { url, key, via, hops, .. } = &chain.hop;
        let found = Discovery { letter: REDIRECT, hops: *hops, depth: chain.first.depth };
        let write = |out: &mut Vec<u8>| found.encode(url.as_str(), via, out);
        if !self.chains.hold(*key, write) {
            self.admission.seen_mut().offer_with(*key, write);
        }
    }

    /// Decides on the next target of a chain: it is queued, waits for another chain, or is known.
    fn place(&mut self, number: u32) {
        let Some(chain) = self.chains.live.get_mut(&number) else { return };
        let cookies = chain.jar.field(chain.hop.url.view(), self.turn.unix()).is_some();
        let key = chain.hop.key;
        if !chain.passes(cookies) {
            if let Some(asked) = self.chains.asked.get_mut(&key.0) {
                return asked.waiting.push_back(number);
            }
            let lookup = &mut chain.hop.lookup;
            let looked = {
                let granted = self.turn.left(Work::Lookups);
                self.admission.seen_mut().look_up(lookup, granted, self.storage.disk())
            };
            match looked {
                Ok((answer, units)) => {
                    self.turn.charge(Work::Lookups, units);
                    match answer {
                        Answer::New => {}
                        Answer::Known => return self.is_known(number),
                        Answer::More | Answer::Busy => {
                            return self.chains.undecided.push_back(number);
                        }
                    }
                }
                Err(error) => {
                    self.chains.undecided.push_back(number);
                    return self.on_disk_error(error);
                }
            }
        }
        let asked = || Asked { chain: number, waiting: VecDeque::new(), held: None };
        self.chains.asked.entry(key.0).or_insert_with(asked);
        self.queue_hop(number);
    }

    fn is_known(&mut self, number: u32) {
        if let Some(chain) = self.chains.live.remove(&number) {
            self.end_unasked(&chain, Outcome::RedirectToKnown);
        }
    }

    /// Whether chains are to be looked at in this turn or the next.
    pub(super) fn may_decide(&self) -> bool {
        self.chains.has_work() && self.storage.is_usable()
    }

    /// Chains that could not be decided on, as far as there is work to give.
    pub(super) fn work_chains(&mut self) {
        let mut left = self.chains.undecided.len();
        while left > 0
            && self.may_decide()
            && !self.turn.is_spent(Work::Lookups)
            && let Some(number) = self.chains.undecided.pop_front()
        {
            self.turn.charge(Work::Lookups, UNDECIDED_UNITS);
            self.place(number);
            left -= 1;
        }
    }

    /// The next hop goes to the front of its server's queue.
    fn queue_hop(&mut self, number: u32) {
        let Chain { first, hop, .. } = &self.chains.live[&number];
        let (url, letter) = (hop.url.clone(), first.found_as);
        let id = match self.server_for(url.view(), letter) {
            Ok(id) => id,
            Err(servers) => {
                self.count_refused(url.view(), servers);
                let chain = self.chains.live.remove(&number).expect("just looked");
                self.end_unasked(&chain, Outcome::TooMany(servers));
                return self.let_others_decide(number, chain.hop.key);
            }
        };
        let Chain { first, hop, .. } = &self.chains.live[&number];
        let item = Item {
            target: url.view().target().into(),
            quality: first.quality,
            arrival: 0,
            depth: first.depth,
            hops: hop.hops,
            tries: 0,
            purpose: Purpose::Hop(number),
            found_as: first.found_as,
            via: Some(Rc::clone(&hop.via).into()),
        };
        if !self.take_kept(id, url.view(), item.purpose, || item.clone()) {
            self.queue_item(id, &item);
        }
    }

    /// A URL has its last outcome, and leads no further: if it is the hop of a chain, that ends
    /// with it.
    pub(super) fn ends(&mut self, item: &Item, url: &str, outcome: Outcome) {
        let Purpose::Hop(number) = item.purpose else {
            self.counts.seeds.settled(item, url, outcome);
            return;
        };
        let Some(chain) = self.chains.live.remove(&number) else { return };
        self.seed_settled(&chain, outcome);
        let key = chain.hop.key;
        self.admission.seen_mut().offer(key, &[DONE]);
        if self.chains.asked.get(&key.0).is_some_and(|asked| asked.chain == number) {
            let asked = self.chains.asked.remove(&key.0).expect("just looked");
            self.chains.undecided.extend(asked.waiting);
        }
    }

    /// The hop that a chain asked for redirects on: it is not known for that, and whoever waits for
    /// it asks for it, one after the other.
    fn moves_on(&mut self, number: u32, key: Fingerprint) {
        let Some(asked) = self.chains.asked.get_mut(&key.0) else { return };
        if asked.chain != number {
            return;
        }
        let next = if asked.held.is_none() { asked.waiting.pop_front() } else { None };
        match next {
            Some(next) => {
                asked.chain = next;
                self.queue_hop(next);
            }
            None => self.let_others_decide(number, key),
        }
    }

    /// A chain asks for a target no more: a link to it that was held is a URL like others.
    fn let_others_decide(&mut self, number: u32, key: Fingerprint) {
        if self.chains.asked.get(&key.0).is_none_or(|asked| asked.chain != number) {
            return;
        }
        let asked = self.chains.asked.remove(&key.0).expect("just looked");
        if let Some(entry) = asked.held {
            self.admission.seen_mut().offer(key, &entry);
        }
        self.chains.undecided.extend(asked.waiting);
    }

    /// A chain ends because of its next hop, for which no request is made: a line says why.
    fn end_unasked(&mut self, chain: &Chain, outcome: Outcome) {
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
            self.admission.seeding().left_scope(&beginning, url.view(), why);
        }
        self.seed_settled(chain, outcome);
    }

    fn seed_settled(&mut self, chain: &Chain, outcome: Outcome) {
        if chain.first.found_as != SEED {
            return;
        }
        let beginning = self.beginning_of(chain);
        match outcome {
            // Who has fetched it, or will, says what came of it.
            Outcome::RedirectToKnown => self.counts.seeds.succeeds(&beginning),
            outcome => self.counts.seeds.settled(&chain.first, &beginning, outcome),
        }
    }

    /// The first URLs of the chains under way, which count as waiting; of a server that was given
    /// up nothing waits.
    pub(super) fn chains_waiting(&self) -> impl Iterator<Item = (ServerId, Item)> {
        let waits = |id: ServerId| self.sites.look(id).retired_as().is_none();
        let all = self.chains.beginnings().filter(move |(id, _)| waits(*id));
        all.map(|(id, item)| (id, item.clone()))
    }

    /// What else a checkpoint must not forget of chains: links that are held, and the targets of
    /// chains that can't begin again, as links.
    pub(super) fn chains_held(&self) -> Vec<(Fingerprint, Vec<u8>)> {
        let mut held: Vec<(Fingerprint, Vec<u8>)> =
            self.chains.held().map(|(key, entry)| (key, entry.to_vec())).collect();
        for chain in self.chains.live.values() {
            if self.sites.look(chain.server).retired_as().is_some() {
                let Hop { url, key, via, hops, .. } = &chain.hop;
                let found = Discovery { letter: REDIRECT, hops: *hops, depth: chain.first.depth };
                let mut entry = Vec::new();
                found.encode(url.as_str(), via, &mut entry);
                held.push((*key, entry));
            }
        }
        held
    }
}

/// What it costs to take a cookie in, beside its bytes: it is compared with those of its chain.
const COOKIE_UNITS: usize = 500;
/// What it costs to look at a chain, beside what is looked up: a line in the log, most often.
const UNDECIDED_UNITS: usize = 1_000;
