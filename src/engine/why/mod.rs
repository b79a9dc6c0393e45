//! Answers why a URL was fetched, was not, or waits: step by step, as the crawl decides.
//!
//! The steps are those of a URL's journey: canonical form and key, scope, robots.txt, the seen
//! test, the place of the URL, and what its request waits for (`obstacles`). When a URL was fetched
//! and with which outcome is in the crawl log, which the engine doesn't read.
//!
//! Laws: nothing changes but the time, no request is made, and the work is bounded: a queue that is
//! too long to be searched gives bounds instead of a place.
//! Cost: at most about [`ledger::STEP_UNITS`](super::ledger::STEP_UNITS) units of work.

mod answer;
mod obstacles;
#[cfg(test)]
mod tests;

use super::Engine;
use super::backlog::{Item, Purpose};
use super::ledger::Work;
use super::robots::COPY_BYTES;
use super::robots::state::{Robots, RobotsStatus};
use super::seeds::SEED;
use super::visit::Hold;
use crate::consent::{self, Consent, Standing};
use crate::frontier::{Burst, Search, ServerId, ServerState};
use crate::ground::frame;
use crate::ground::time::{Instant, Now};
use crate::robots::{Rules, Usage};
use crate::seen::lookup::{self, Lookup};
use crate::url::{Fingerprint, Url, UrlRef};
pub use answer::{
    About, KnownPage, Obstacle, Place, RobotsVerdict, RobotsView, ServerView, Subject, UsageView,
    Waiting, Why,
};
use smallvec::SmallVec;

/// The work for the search in the queues of the URL, in bytes.
const SEARCH_BYTES: usize = 192 << 10;
/// The work for looking the URL up in the seen test, in units.
const LOOKUP_UNITS: usize = 64 << 10;
/// The maximum length of rules on disk that are read, in bytes.
const RULES_BYTES: u32 = 256 << 10;

/// A URL that was found in a queue, and where.
struct Found {
    id: ServerId,
    item: Item,
    before: (usize, usize),
    is_on_disk: bool,
}

/// The result of searching the queues.
enum Searched {
    Found(Box<Found>),
    Nowhere,
    Unsure(usize),
}

/// A question in progress: the URL, its key, and what could not be read.
struct Question<'a> {
    url: UrlRef<'a>,
    key: Fingerprint,
    /// The servers at which the URL may wait, if they are known: its own, and that of its key.
    servers: SmallVec<[ServerId; 2]>,
    errors: Vec<String>,
}

impl Question<'_> {
    /// Takes a result of the disk. An error is noted in the answer, and doesn't end the crawl.
    fn checked<T>(&mut self, result: Result<T, frame::Error>) -> Option<T> {
        result.map_err(|error| self.errors.push(error.to_string())).ok()
    }
}

impl Engine {
    /// Returns what the crawl knows of the URL that `text` is.
    pub fn why(&mut self, now: Now, text: &str) -> Why {
        self.turn.set_time(now);
        let (at_us, asked) = (now.unix.as_micros(), text.to_owned());
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(why) => {
                let subject = Subject::NotUrl(why.to_string());
                return Why { at_us, asked, subject, errors: Vec::new() };
            }
        };
        let url = url.view();
        let mut scratch = Vec::new();
        let key = self.admission.keys().key(url, &mut scratch).to_vec();
        let mut question = Question {
            url,
            key: self.admission.hash(&key),
            servers: self.servers_of(url, &key),
            errors: Vec::new(),
        };
        let about = self.about(&mut question, &key);
        Why { at_us, asked, subject: Subject::Url(Box::new(about)), errors: question.errors }
    }

    /// Returns the known servers at which a URL with this key may wait.
    fn servers_of(&self, url: UrlRef<'_>, key: &[u8]) -> SmallVec<[ServerId; 2]> {
        let keyed = UrlRef::from_canonical(key);
        let urls = [Some(url), keyed].into_iter().flatten();
        let mut servers: SmallVec<[ServerId; 2]> =
            urls.filter_map(|url| self.backlog.find(url)).collect();
        servers.dedup();
        servers
    }

    fn about(&mut self, question: &mut Question<'_>, key: &[u8]) -> About {
        let url = question.url;
        let is_known = self.is_known(question);
        let searched = self.search(question);
        let found = match &searched {
            Searched::Found(found) => Some(&**found),
            Searched::Nowhere | Searched::Unsure(_) => None,
        };
        let robots = self.robots_view(question);
        let distance = found.map(|found| found.item.distance());
        let is_seed = found.is_some_and(|found| found.item.found_as == SEED);
        let (mut rejection, mut scope_rule) = self.admission.scope().explain(url, distance);
        if is_seed {
            rejection = None;
            scope_rule = "it is a seed, which is requested whatever the scope says".to_owned();
        }
        let place = self.place(question, &searched, is_known);
        let mut about = About {
            url: url.as_str().to_owned(),
            key: String::from_utf8_lossy(key).into_owned(),
            key_rules: self.admission.keys().explain(url).into_iter().map(String::from).collect(),
            in_scope: rejection.is_none(),
            scope_rule,
            is_known,
            known: None,
            outcome: self.outcome_now(question, found, rejection, robots.verdict),
            robots,
            server: question.servers.first().map(|id| self.server_view(*id)),
            place,
            obstacles: Vec::new(),
            earliest_us: None,
        };
        if about.outcome.is_none() {
            about.obstacles = self.obstacles(question, found, about.robots.verdict);
            let before = found.map_or(0, |found| found.before.0);
            about.earliest_us = self.earliest_us(question, before, &about.obstacles);
        }
        about
    }

    /// Asks the seen test. Returns `None` if it can't answer now, since a job has the data.
    fn is_known(&mut self, question: &mut Question<'_>) -> Option<bool> {
        let mut lookup = Lookup::new(question.key);
        let mut left = LOOKUP_UNITS;
        loop {
            let seen = self.admission.seen();
            let looked = seen.look_up(&mut lookup, left, self.storage.disk());
            let (answer, units) = question.checked(looked)?;
            self.turn.charge(Work::Lookups, units);
            left = left.saturating_sub(units);
            match answer {
                lookup::Answer::Known => return Some(true),
                lookup::Answer::New => return Some(false),
                lookup::Answer::More if left > 0 => {}
                lookup::Answer::More | lookup::Answer::Busy => return None,
            }
        }
    }

    /// Searches the queues of the URL's servers, candidates of visits included.
    fn search(&mut self, question: &mut Question<'_>) -> Searched {
        let (mut left, mut searched) = (SEARCH_BYTES, None);
        for &id in &question.servers.clone() {
            let (admission, backlog) = (&self.admission, &self.backlog);
            let mut scratch = Vec::new();
            let mut is_it = |item: &Item| {
                let url = backlog.origin(id).url_of(&item.target);
                let url = UrlRef::from_canonical(url.as_bytes()).filter(|_| !item.is_robots());
                url.is_some_and(|url| admission.key_of(url, &mut scratch) == question.key)
            };
            let candidate = backlog.candidate(id).filter(|item| is_it(item)).cloned();
            if let Some(item) = candidate {
                let before = (0, 0);
                return Searched::Found(Box::new(Found { id, item, before, is_on_disk: false }));
            }
            let looked = backlog.search_items(id, &mut is_it, left, self.storage.disk());
            let Some((search, units)) = question.checked(looked) else { continue };
            self.turn.charge(Work::Reread, units);
            left = left.saturating_sub(units);
            match search {
                Search::Found(found) => {
                    let ahead = usize::from(self.backlog.candidate(id).is_some());
                    let item = Item::decode(&found.payload, found.key).expect("it was decoded");
                    let before = (found.before.0 + ahead, found.before.1 + ahead);
                    let is_on_disk = found.is_on_disk;
                    return Searched::Found(Box::new(Found { id, item, before, is_on_disk }));
                }
                Search::Nowhere => {}
                Search::Unsure { searched: urls } => searched = Some(urls),
            }
        }
        searched.map_or(Searched::Nowhere, Searched::Unsure)
    }

    /// Returns where the URL is.
    fn place(&self, question: &Question<'_>, searched: &Searched, is_known: Option<bool>) -> Place {
        let is_it = |url: &str| {
            let url = UrlRef::from_canonical(url.as_bytes());
            url.is_some_and(|url| self.key_of(url) == question.key)
        };
        let conns = question.servers.iter().filter_map(|id| self.sites.get(*id).conn());
        let fetches = conns.flat_map(|slot| self.wire.conn(slot).unsettled());
        let mut fetches = fetches.filter(|fetch| !fetch.item.is_robots());
        if let Some(fetch) = fetches.find(|fetch| is_it(&fetch.url)) {
            return Place::Fetching { sent_us: fetch.sent.unix.as_micros() };
        }
        if self.pages.urls().chain(self.archive.filing().urls()).any(is_it) {
            return Place::Processing;
        }
        if self.archive.replays().has(question.key) {
            return Place::ReadBack;
        }
        match searched {
            Searched::Found(found) => Place::Waiting(self.waiting(found)),
            _ if is_known != Some(false) && self.is_shelved(question) => Place::Paused,
            Searched::Nowhere | Searched::Unsure(_)
                if let Some(to) = self.chains.hop_after(question.key) =>
            {
                Place::Redirected { to: to.to_owned() }
            }
            Searched::Nowhere
                if is_known != Some(false)
                    && let Some((linked_by, budget)) = self.held_domain(question.url.host()) =>
            {
                Place::OverBudget { linked_by, budget }
            }
            Searched::Nowhere => Place::Nowhere,
            Searched::Unsure(searched) => Place::Unsure { searched: *searched as u64 },
        }
    }

    /// Returns whether a known URL that is in no queue may be kept outside of them, because its
    /// prefix is paused.
    fn is_shelved(&self, question: &Question<'_>) -> bool {
        self.hold_of(question.url.as_str()) == Some(Hold::Paused)
            && !self.backlog.shelf().is_empty()
    }

    fn waiting(&self, found: &Found) -> Waiting {
        let Found { id, item, before, is_on_disk } = found;
        Waiting {
            url: self.backlog.origin(*id).url_of(&item.target),
            before_min: before.0 as u64,
            before_max: before.1 as u64,
            is_on_disk: *is_on_disk,
            is_hop: matches!(item.purpose, Purpose::Hop(_)),
            depth: item.depth.into(),
            quality: item.quality,
            tries: item.tries.into(),
            found_as: char::from(item.found_as),
            via: item.via.as_deref().map(str::to_owned),
        }
    }

    /// Returns what robots.txt says about the URL.
    fn robots_view(&mut self, question: &mut Question<'_>) -> RobotsView {
        let verdict =
            |verdict| RobotsView { verdict, line: None, rule: None, until_us: None, usage: None };
        if !self.settings.robots.obey {
            return verdict(RobotsVerdict::NotObeyed);
        }
        let Some(&id) = question.servers.first() else {
            return verdict(RobotsVerdict::NotKnown);
        };
        let now = self.turn.now();
        let site = self.sites.get(id);
        let until_us = |until: Instant| Some(now.unix_of(until).as_micros());
        match (&site.robots, site.robots.status(now.at)) {
            (Robots::Asked, _) => verdict(RobotsVerdict::Requested),
            (Robots::Redirected(_), _) => verdict(RobotsVerdict::Redirected),
            (_, RobotsStatus::Unknown) => verdict(RobotsVerdict::NotKnown),
            (Robots::Open(until), _) => {
                RobotsView { until_us: until_us(*until), ..verdict(RobotsVerdict::Allowed) }
            }
            (Robots::Unreachable(until), _) => {
                RobotsView { until_us: until_us(*until), ..verdict(RobotsVerdict::Unreachable) }
            }
            (Robots::Rules(held, until), _) => {
                let until_us = until_us(*until);
                let (view, units) = check(&held.rules, question.url);
                self.turn.charge(Work::Rules, units);
                RobotsView { until_us, ..view }
            }
            (Robots::OnDisk(location, until), _) => {
                let (location, until_us) = (*location, until_us(*until));
                if location.bytes > RULES_BYTES {
                    question.errors.push("the rules of robots.txt are too long to be read".into());
                    return verdict(RobotsVerdict::NotKnown);
                }
                let read = self.robots.cached().read(id, location, self.storage.disk());
                let Some(rules) = question.checked(read) else {
                    return verdict(RobotsVerdict::NotKnown);
                };
                let (view, units) = check(&rules, question.url);
                self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES + units);
                RobotsView { until_us, ..view }
            }
            (Robots::Unknown, _) => verdict(RobotsVerdict::NotKnown),
        }
    }

    fn server_view(&self, id: ServerId) -> ServerView {
        let (server, site) = (self.backlog.server(id), self.sites.get(id));
        let given_up = match server.state() {
            ServerState::Retired(why) => {
                let outcome = self.given_up_as(id).name();
                let is_same = outcome == why.name();
                Some(if is_same {
                    outcome.to_owned()
                } else {
                    format!("{}, {outcome}", why.name())
                })
            }
            _ => None,
        };
        ServerView {
            origin: self.backlog.origin(id).as_str().to_owned(),
            state: match server.state() {
                ServerState::Idle => "idle",
                ServerState::Ready => "ready",
                ServerState::Reading => "reading",
                ServerState::Busy => "visited",
                ServerState::Snoozed => "resting",
                ServerState::Retired(_) => "given up",
            }
            .to_owned(),
            given_up,
            urls: self.backlog.queue_len(id) as u64,
            visits: server.visits.into(),
            failures: site.failures.into(),
            crawl_delay_ms: server.crawl_delay().map(|delay| delay.as_millis() as u64),
            burst: match self.backlog.burst(id) {
                Burst::Requests(most) => Some(most),
                Burst::Server => None,
            },
        }
    }
}

/// Returns the verdict of rules about a URL, and the units of work that it took.
fn check(rules: &Rules, url: UrlRef<'_>) -> (RobotsView, usize) {
    let (verdict, units) = rules.check_counted(url.target());
    let (usage, more) = rules.usage(url.target());
    let view = RobotsView {
        verdict: match verdict.allowed {
            true => RobotsVerdict::Allowed,
            false => RobotsVerdict::Disallowed,
        },
        line: (verdict.line > 0).then_some(verdict.line),
        rule: rules.rule_of(verdict),
        until_us: None,
        usage: usage_view(usage),
    };
    (view, units + more)
}

/// How many lines about use are shown, and how many characters of each.
const USAGE_LINES: usize = 20;
const USAGE_CHARS: usize = 300;

/// Returns what lines about use mean; `None` if there is none.
fn usage_view(usage: Usage<'_>) -> Option<UsageView> {
    let kinds = [
        ("Content-Signal", usage.signals),
        ("Content-Usage", usage.usages),
        ("License", usage.licenses),
    ];
    let all = kinds.iter().flat_map(|(key, values)| {
        values.lines().map(move |value| {
            let shown =
                value.chars().take(USAGE_CHARS).map(|c| if c.is_control() { '?' } else { c });
            let rest = if value.chars().nth(USAGE_CHARS).is_some() { "..." } else { "" };
            format!("{key}: {}{rest}", shown.collect::<String>())
        })
    });
    let more = all.clone().count().saturating_sub(USAGE_LINES);
    let more = (more > 0).then(|| format!("{more} more lines"));
    let lines = all.take(USAGE_LINES).chain(more);
    let signals = usage.signals.lines().map(|it| Consent::of_content_signal(it.as_bytes()));
    let usages = usage.usages.lines().map(|it| Consent::of_content_usage(it.as_bytes()));
    let said = signals.chain(usages).fold(Consent::default(), |all, one| all | one);
    let are = |standing: Standing| {
        let all = consent::Purpose::ALL.into_iter().filter(|it| said.standing(*it) == standing);
        all.map(|purpose| purpose.name().to_owned()).collect()
    };
    let (reserved, allowed) = (are(Standing::Reserved), are(Standing::Allowed));
    let view = UsageView { lines: lines.collect(), reserved, allowed };
    (!view.lines.is_empty()).then_some(view)
}
