//! What is recorded of a fetch: its record in the archive and its line in the crawl log.

use super::Archive;
use super::annotations::{AGAIN, ANNOTATIONS, annotation, is_kept, truncation};
use super::statements::{self, Said};
use crate::consent::Statements;
use crate::engine::Engine;
use crate::engine::backlog::{Item, Purpose, robots_item};
use crate::engine::chain::REDIRECT;
use crate::engine::challenge;
use crate::engine::ledger::Work;
use crate::engine::outcome::Outcome;
use crate::engine::repeats;
use crate::engine::seeds::SEED;
use crate::engine::settings::Settings;
use crate::engine::wire::Conn;
use crate::engine::wire::opening;
use crate::engine::wire::{Fetch, FinishedFetch, Reply};
use crate::frontier::scheduler::{self, SitePace};
use crate::frontier::{Burst, ServerId};
use crate::ground::disk::Disk;
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::ground::time::UnixTime;
use crate::http::response::{Framing, Head};
use crate::robots::Rules;
use crate::store::log::{FORMAT, Line, Politeness, RULES_BYTES_MAX, SitePoliteness};
use crate::store::{self, Capture, Digest, OwnCapture, Receipt, Tls};
use crate::url::UrlRef;
use crate::url::site::Matcher;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::time::Duration;

/// The cost of compressing one byte, in units of work (see `ledger`).
const GZIP_WEIGHT: usize = 6;

/// The cost of archiving a reply beside that of its bytes, in units of work: heads and digests of
/// two records, two gzip members, the lines of the index and of the crawl log, 25 us in all. Small
/// replies cost little else.
const RECORD_UNITS: usize = 16 << 10;

/// The cost of preparing the record of a reply that a job is to write, in units of work (see
/// `ledger`).
const FILING_UNITS: usize = 2 << 10;

/// What the crawl log needs of a fetch after its reply is freed. The line of a page is written only
/// when its links have been found.
#[derive(Debug)]
pub(in crate::engine) struct LogFacts {
    pub(in crate::engine) outcome: Outcome,
    pub(super) server: ServerId,
    /// The number of the connection and its address; `None` if the reply was read back from the
    /// archive.
    conn: Option<(u64, IpAddr)>,
    took: Duration,
    /// The length of the reply in bytes, if any was received.
    size: Option<u64>,
    /// The Content-Type field as received.
    mime: SmallVec<[u8; 40]>,
    /// Whether the head of the reply has malformed lines that were skipped when it was parsed.
    is_odd: bool,
    /// The wait that the reply asks for in a Retry-After field.
    retry_after: Option<Duration>,
    pub(super) receipt: Option<Receipt>,
    /// What was said of the use of the page; `None` if that is nothing, or isn't recorded.
    pub(super) statements: Option<Box<Statements>>,
    /// Whether the reply was read back from the archive, and another record has its payload.
    pub(super) is_repeat: bool,
    /// The quality of the page itself, if it is known.
    pub(in crate::engine) score: Option<Quality>,
}

impl LogFacts {
    /// Returns whether the reply has a record of its own, which doesn't refer to an earlier one.
    pub(in crate::engine) fn is_new_record(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| !receipt.revisit)
    }

    /// Returns whether the record of the reply, if there is one, has the payload itself. A reply
    /// that isn't kept because its use is reserved has none.
    pub(in crate::engine) fn is_original(&self) -> bool {
        let is_reserved = matches!(self.outcome, Outcome::Reserved(_));
        !self.is_repeat
            && !is_reserved
            && self.receipt.as_ref().is_none_or(|receipt| !receipt.revisit)
    }

    /// Returns the digest of the payload, if it is archived.
    pub(in crate::engine) fn payload_digest(&self) -> Option<Digest> {
        self.receipt.as_ref().map(|receipt| receipt.digest)
    }

    /// Returns the Content-Type field as received; empty if there is none.
    pub(in crate::engine) fn mime(&self) -> &[u8] {
        &self.mime
    }
}

/// What the crawl log says about a URL that was not requested, in addition to its outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Unsent {
    /// The line of robots.txt that decided about the URL; `None` if none was consulted.
    pub(in crate::engine) robots: Option<u32>,
    /// The address to which no connection could be established.
    pub(in crate::engine) address: Option<IpAddr>,
}

/// What has become of the record of a fetch.
pub(in crate::engine) enum Recorded {
    /// It is written, or the fetch has none.
    Done(LogFacts),
    /// A job is to write it: see [`Engine::file_reply`].
    Later(LogFacts, Box<OwnCapture>),
    /// The disk is full: nothing is written, and the fetch must count as not done.
    Failed,
}

/// A fetch that is to be recorded in the archive.
pub(super) struct Attempt<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) reply: &'a Reply,
    /// The head of the reply, if it was received in full.
    pub(super) head: Option<&'a Head>,
    pub(super) outcome: Outcome,
}

impl<'a> Attempt<'a> {
    fn of(fetched: &'a FinishedFetch<'_>) -> Self {
        let &FinishedFetch { ref fetch, head, ref reply, outcome, .. } = fetched;
        Self { fetch, reply, head, outcome }
    }

    /// Returns the value of a header field, if it is UTF-8.
    fn field(&self, name: &str) -> Option<&'a str> {
        let value = self.head?.field(self.reply.head(), name)?;
        std::str::from_utf8(value).ok()
    }

    /// Returns whether the fetch goes to the archive.
    fn is_kept(&self) -> bool {
        self.head.is_some() && is_kept(self.outcome)
    }

    fn capture(&self, conn: &'a Conn, request: &'a [u8], settings: &Settings) -> Capture<'a> {
        let unmodified = self.fetch.item.unmodified(self.outcome, settings);
        // What is unmodified has no head in the archive, so none of a head's facts in the index.
        let head = self.head.filter(|_| unmodified.is_none());
        Capture {
            url: &self.fetch.url,
            ip: Some(conn.peer.address.ip()),
            started: self.fetch.sent.unix,
            request,
            response: &self.reply.raw,
            head_bytes: self.reply.head_bytes,
            payload: self.reply.payload(),
            status: self.head.map_or(0, |head| head.status),
            mime: self.field("content-type").unwrap_or(""),
            chunked: head.is_some_and(|head| head.framing == Framing::Chunked),
            coded: head.is_some_and(|head| head.has(self.reply.head(), "content-encoding")),
            truncated: truncation(self.outcome),
            tls: conn.peer.facts.tls.as_ref().map(|tls| Tls {
                version: tls.version,
                suite: tls.suite,
                verified: tls.verified,
            }),
            redirect: head.and_then(|_| self.field("location")),
            robots: self.fetch.item.is_robots(),
            unmodified,
            usage: None,
        }
    }

    /// Returns what the crawl log needs of a fetch. `conn` is the number of its connection with the
    /// address, and `took` is how long it took.
    pub(super) fn log_facts(
        &self,
        id: ServerId,
        conn: Option<(u64, IpAddr)>,
        took: Duration,
    ) -> LogFacts {
        let mime = self.head.and_then(|head| head.field(self.reply.head(), "content-type"));
        LogFacts {
            outcome: self.outcome,
            server: id,
            conn,
            took,
            size: self.reply.has_begun().then_some(self.reply.raw.len() as u64),
            mime: SmallVec::from_slice(mime.unwrap_or_default()),
            is_odd: self.head.is_some_and(|head| head.is_odd),
            retry_after: None,
            receipt: None,
            statements: None,
            is_repeat: false,
            score: None,
        }
    }
}

impl Engine {
    /// Archives a fetch, or prepares its record if a job is to write it. The fetch's line in the
    /// crawl log is written later, with the `statements` about its page. What is reserved isn't
    /// archived.
    pub(in crate::engine) fn record(
        &mut self,
        slot: u32,
        fetched: &FinishedFetch<'_>,
        statements: Option<Box<Statements>>,
    ) -> Recorded {
        let stage = self.turn.enter(Stage::Store, 0);
        let mut facts = self.facts_of(slot, fetched);
        let conn = self.wire.conn(slot);
        let attempt = Attempt::of(fetched);
        let is_reserved = self.is_reserved(statements.as_deref());
        facts.statements = statements;
        if self.settings.keeps_archive() && attempt.is_kept() && !is_reserved {
            let FinishedFetch { fetch, reply, .. } = fetched;
            let authority = self.backlog.origin(conn.server).authority();
            self.archive.request.clear();
            let request = self.wire.requests().recorded_of(&fetch.url);
            let own = fetch.own_parts(&self.settings);
            request.write_get(&mut self.archive.request, &fetch.item.target, authority, &own);
            let mut capture = attempt.capture(conn, &self.archive.request, &self.settings);
            let usage = facts.statements.as_ref().map(|all| Said::of(all));
            capture.usage = usage.as_ref().map(Said::view);
            if self.settings.store.has_thread && self.archive.store.wants(&capture) {
                let capture = Box::new(capture.detach());
                self.turn.charge(Work::Archived, FILING_UNITS);
                self.turn.back(stage);
                return Recorded::Later(facts, capture);
            }
            let kept = self.archive.store.keep(&capture, self.storage.disk());
            let units = RECORD_UNITS + weight(&self.settings) * reply.raw.len();
            self.turn.charge(Work::Archived, units);
            let Some(receipt) = self.checked(kept) else {
                self.turn.back(stage);
                return Recorded::Failed;
            };
            facts.receipt = receipt;
        }
        self.turn.back(stage);
        Recorded::Done(facts)
    }

    /// Returns what the crawl log needs of a fetch that is not archived.
    pub(in crate::engine) fn facts_of(&self, slot: u32, fetched: &FinishedFetch<'_>) -> LogFacts {
        let conn = self.wire.conn(slot);
        let took = fetched.ended.since(fetched.fetch.sent.at);
        let connection = (conn.number, conn.peer.address.ip());
        let mut facts = Attempt::of(fetched).log_facts(conn.server, Some(connection), took);
        facts.retry_after = self.retry_after(fetched);
        facts
    }

    /// Writes the crawl-log line of a fetch, which is the last step of its processing. If the fetch
    /// is one of a robots.txt, `sitemaps` are those that the file names.
    pub(in crate::engine) fn write_line(
        &mut self,
        fetch: &Fetch,
        facts: &LogFacts,
        sitemaps: &[&str],
    ) {
        self.write_robots_line(fetch, facts, sitemaps, None);
    }

    /// Does what [`Engine::write_line`] does, and adds the rules of the robots.txt if archive and
    /// log don't show them otherwise.
    pub(in crate::engine) fn write_robots_line(
        &mut self,
        fetch: &Fetch,
        facts: &LogFacts,
        sitemaps: &[&str],
        rules: Option<&Rules>,
    ) {
        let stage = self.turn.enter(Stage::Store, 0);
        let rules = rules.map(|rules| self.text_of_rules(rules));
        let tries = match fetch.item.tries {
            0 => String::new(),
            tries => format!("{tries}t"),
        };
        let first = fetch.first.filter(|_| facts.conn.is_some());
        let annotations = annotations(fetch, facts, &tries);
        let path = hop_path(fetch.item.found_as, fetch.item.hops);
        let said = facts.statements.as_deref().map(Said::of);
        let bytes = fetch.shown.evidence.as_ref().map(|evidence| &*evidence.bytes);
        if facts.statements.as_ref().is_some_and(|all| all.is_cut()) {
            self.counts.cut("consentCut", 1);
        }
        let line = Line {
            time: self.turn.unix(),
            status: facts.outcome.verdict().code,
            size: facts.size,
            url: &fetch.url,
            path: text_of(&path),
            via: fetch.item.via.as_deref(),
            mime: std::str::from_utf8(&facts.mime).ok(),
            begun: facts.conn.map(|_| (fetch.sent.unix, facts.took)),
            digest: facts.receipt.as_ref().map(|receipt| receipt.digest),
            source: None,
            annotations: &annotations,
            stored: facts.receipt.as_ref().map(|receipt| (&*receipt.file, receipt.offset)),
            server: self.backlog.origin(facts.server).as_str(),
            visit: u64::from(fetch.visit) + 1,
            conn: facts.conn.map(|(number, _)| number),
            address: facts.conn.map(|(_, address)| address),
            request: facts.conn.map_or(0, |_| fetch.request),
            sent: facts.conn.map(|_| self.turn.steady(fetch.sent.at)),
            ended: facts.conn.map(|_| self.turn.steady(fetch.sent.at + facts.took)),
            began: first.map(|(began, ..)| self.turn.steady(began)),
            owed: first.map(|(_, rest, by)| (rest, by.name())),
            retry_after: facts.retry_after,
            robots: fetch.robots.line,
            rules: rules.as_ref().map(|(text, is_cut)| (text.as_str(), *is_cut)),
            settings: None,
            reason: reason(facts.outcome),
            hops: u32::from(fetch.item.hops),
            chain: fetch.chain.as_deref(),
            usage: said.as_ref().map(Said::view),
            canonical: fetch.shown.canonical.as_deref(),
            sitemaps,
            quality: self.quality_to_log(&fetch.item),
            score: facts.score,
            detail: fetch.shown.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref()),
            evidence: bytes.filter(|bytes| !bytes.is_empty()),
        };
        let noted = self.archive.push(line, &self.settings, self.storage.disk());
        // If the line could not be written, it waits in memory.
        self.checked(noted);
        self.turn.back(stage);
    }

    /// Writes the crawl-log line of a URL that was not requested. The pair holds the letter for how
    /// the URL was found, and the number of redirects that led to it. The time, path and hops of
    /// `line` are set here.
    fn log(&mut self, (found_as, hops): (u8, u8), line: Line<'_>) {
        let stage = self.turn.enter(Stage::Store, 0);
        let path = hop_path(found_as, hops);
        let line = Line { time: self.turn.unix(), path: text_of(&path), hops: hops.into(), ..line };
        let noted = self.archive.push(line, &self.settings, self.storage.disk());
        self.checked(noted);
        self.turn.back(stage);
    }

    /// Counts and logs a try of a queued URL that ended before its request was sent.
    pub(in crate::engine) fn note_attempt(
        &mut self,
        id: ServerId,
        item: &Item,
        outcome: Outcome,
        Unsent { robots, address }: Unsent,
    ) {
        self.counts.outcome(outcome);
        let is_again = item.purpose == Purpose::Again;
        let line = Line {
            status: outcome.verdict().code,
            reason: reason(outcome),
            annotations: if is_again { &[AGAIN] } else { &[] },
            robots,
            address,
            ended: address.map(|_| self.turn.steady(self.turn.at())),
            ..Line::default()
        };
        self.log_item(id, item, line);
    }

    fn text_of_rules(&mut self, rules: &Rules) -> (String, bool) {
        let (text, is_cut) = rules.text(RULES_BYTES_MAX);
        self.turn.charge(Work::Rules, text.len());
        (text, is_cut)
    }

    /// Writes a line with the rules of a server that are not those of its own reply, so that the
    /// log alone shows what was allowed.
    pub(in crate::engine) fn log_rules(&mut self, id: ServerId, rules: &Rules) {
        let (text, is_cut) = self.text_of_rules(rules);
        self.counts.rules_lines += 1;
        let item = robots_item(id);
        let line = Line {
            annotations: &["rules"],
            ended: Some(self.turn.steady(self.turn.at())),
            rules: Some((&text, is_cut)),
            ..Line::default()
        };
        self.log_item(id, &item, line);
    }

    /// Writes the crawl-log line of a URL whose record can't be read back from the archive, so that
    /// the URL is fetched again.
    pub(in crate::engine) fn log_not_replayed(&mut self, id: ServerId, item: &Item, why: &str) {
        let annotations = &["notReadBack"];
        self.log_item(id, item, Line { annotations, reason: Some(why), ..Line::default() });
    }

    /// Returns the quality that the log shows of a URL: one that follows from how it was found.
    fn quality_to_log(&self, item: &Item) -> Option<Quality> {
        let is_shown = self.admission.rating().inherits() && !item.is_robots();
        is_shown.then_some(item.quality)
    }

    fn log_item(&mut self, id: ServerId, item: &Item, line: Line<'_>) {
        let url = self.backlog.origin(id).url_of(&item.target);
        let chain = self.chain_of(item);
        let line = Line {
            url: &url,
            via: item.via.as_deref(),
            quality: self.quality_to_log(item),
            server: UrlRef::from_canonical(url.as_bytes()).map_or("", UrlRef::origin),
            visit: u64::from(self.backlog.server(id).visits) + 1,
            chain: chain.as_deref(),
            ..line
        };
        self.log((item.found_as, item.hops), line);
    }

    /// Writes the crawl-log line of a URL that is in no queue and was not requested. `how` holds a
    /// letter and a number: how the URL, or the first URL of its redirect `chain`, was found, and
    /// how many redirects led from there to it.
    pub(in crate::engine) fn log_unasked(
        &mut self,
        url: UrlRef<'_>,
        via: Option<&str>,
        how: (u8, u8),
        chain: Option<&str>,
        outcome: Outcome,
    ) {
        let line = Line {
            status: outcome.verdict().code,
            url: url.as_str(),
            via,
            server: url.origin(),
            reason: reason(outcome),
            chain,
            ..Line::default()
        };
        self.log(how, line);
    }
}

impl Archive {
    /// Appends a line to the crawl log. The first one of a run, and the first one after a change,
    /// contains the settings.
    fn push(
        &mut self,
        line: Line<'_>,
        settings: &Settings,
        disk: &mut dyn Disk,
    ) -> Result<(), store::Error> {
        let Some(from) = self.new_settings.take() else { return self.store.note(&line, disk) };
        let settings = politeness(settings, from);
        self.store.note(&Line { settings: Some(&settings), ..line }, disk)
    }
}

/// Returns the settings that an auditor of the log needs.
fn politeness(settings: &Settings, from: UnixTime) -> Politeness<'_> {
    let own = &settings.frontier.scheduler;
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Politeness {
        format: FORMAT,
        from: from.as_micros(),
        product: settings.identity.product.as_str().into(),
        obeys_robots: settings.robots.obey,
        burst: requests(own.burst),
        delay: micros(own.delay),
        delay_factor_milli: own.delay_factor_milli,
        delay_max: micros(own.delay_max),
        address_visits_max: own.address_visits_max,
        address_delay: micros(own.address_delay),
        domain_visits_max: own.domain_visits_max,
        domain_delay: micros(own.domain_delay),
        sites: sites_of(own),
    }
}

/// Returns the hosts and domains with politeness settings of their own, if there are some. Those
/// without are listed, too, since they take precedence over domains above them.
fn sites_of(own: &scheduler::Settings) -> Vec<SitePoliteness<'_>> {
    if own.paces.iter().all(|pace| *pace == SitePace::default()) {
        return Vec::new();
    }
    let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    let all = own.sites.list().iter().zip(&own.paces);
    let site = |(matcher, pace): (&'_ Matcher, &SitePace)| {
        let (host, domain) = match matcher {
            Matcher::Host(name) => (Some(name.clone().into()), None),
            Matcher::Domain(name) => (None, Some(name.clone().into())),
            Matcher::Prefix(_) => return None,
        };
        Some(SitePoliteness {
            host,
            domain,
            burst: pace.burst.map(requests),
            delay: pace.delay.map(micros),
            delay_factor_milli: pace.delay_factor_milli,
        })
    };
    all.filter_map(site).collect()
}

fn requests(burst: Burst) -> u32 {
    match burst {
        Burst::Requests(most) => most,
        Burst::Server => 0,
    }
}

/// Returns the cost of archiving one byte, in units of work (see `ledger`).
fn weight(settings: &Settings) -> usize {
    if settings.store.gzip_level > 0 { GZIP_WEIGHT } else { 1 }
}

/// Returns the maximum cost of archiving one reply, in units of work (see `ledger`).
pub(in crate::engine) fn units_max(settings: &Settings) -> usize {
    let reply = &settings.reply;
    let body_bytes = reply.body_bytes_max.saturating_add(reply.framing_bytes_max);
    let bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_add(reply.head_bytes_max);
    let statements = statements::units_max(reply.head_bytes_max);
    let statements = if settings.reads_statements() { statements } else { 0 };
    let repeats = if settings.repeats.is_some() { repeats::UNITS_MAX } else { 0 };
    let opens = settings.reads_statements() || settings.challenges.refuses || repeats > 0;
    let opening = if opens { opening::UNITS_MAX + challenge::UNITS_MAX + repeats } else { 0 };
    let record = weight(settings).saturating_mul(bytes).saturating_add(RECORD_UNITS);
    record.saturating_add(statements).saturating_add(opening)
}

/// Returns the annotations of a crawl-log line. Where Heritrix has a word for one, it is that word.
fn annotations<'a>(fetch: &Fetch, facts: &LogFacts, tries: &'a str) -> SmallVec<[&'a str; 4]> {
    let mut words: SmallVec<[&'a str; 4]> = fetch.notes.iter().copied().collect();
    if !tries.is_empty() {
        words.push(tries);
    }
    words.extend(truncation(facts.outcome).map(annotation));
    if facts.is_odd {
        words.push("oddHead");
    }
    if facts.statements.as_ref().is_some_and(|all| all.is_cut()) {
        words.push("consentCut");
    }
    if facts.conn.is_none() {
        words.push("replayed");
    }
    let is_known = |word: &&str| ANNOTATIONS.contains(word) || *word == tries;
    debug_assert!(words.iter().all(is_known), "{words:?}: CRAWL-LOG.md documents each annotation");
    words
}

/// Returns the reason that a crawl-log line gives for an outcome. A reply that is kept has none,
/// since its status says it.
fn reason(outcome: Outcome) -> Option<&'static str> {
    let is_said = outcome.status().is_none() || matches!(outcome, Outcome::Reserved(_));
    is_said.then(|| outcome.name())
}

/// Returns the hop path of a URL: the letter for how it was found, then one letter for each
/// redirect. A seed has no letter of its own.
fn hop_path(found_as: u8, hops: u8) -> SmallVec<[u8; 16]> {
    // If the URL was found by a redirect, that redirect is among the hops, so it has no further
    // letter. A `Refresh` field has the same letter, but is not counted among the hops.
    let own = Some(found_as).filter(|letter| *letter != SEED && (*letter != REDIRECT || hops == 0));
    own.into_iter().chain(std::iter::repeat_n(REDIRECT, hops.into())).collect()
}

fn text_of(path: &[u8]) -> &str {
    std::str::from_utf8(path).unwrap_or("")
}
