//! The summary of a crawl: as text for people, and as JSON in the job directory.

mod looping;

use super::file::shell;
use super::{show, wacz};
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::engine::counts::{Counts, Name, PatternCounts};
use crate::engine::status::{KnownPages, OverBudget, Waiting};
use crate::frontier::ServerId;
use crate::ground::time::Instant;
use crate::os::View;
use crate::seen;
use crate::store::Totals;
use indicatif::{HumanBytes, HumanCount};
use looping::Looping;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The number of media types that the summary lists.
const TYPES_SHOWN: usize = 8;

/// The causes of [`Counts::cut`], each with what it means and a fix.
const CAUSES: [(&str, &str); 37] = [
    ("badLocation", "redirects with an invalid Location: treated as pages"),
    ("baseTooLong", "pages with a base URL of more than 4 KiB: the page's own URL was used"),
    ("chains-loosened", "redirects followed as links, because 8,192 chains were in progress"),
    ("charsetTooLarge", "pages truncated as UTF-8; raise fetch.decoded_bytes_max"),
    ("cluster-damaged", "records and entries of other nodes that make no sense: skipped"),
    (
        "cluster-forgotten",
        "waits, servers given up and tries of former owners beyond 100,000: not obeyed",
    ),
    ("codingBroken", "pages with broken or truncated content coding: decoded up to the fault"),
    ("codingLabel", "pages that are not in their declared content coding: used as received"),
    ("codingSum", "pages with a wrong gzip or zlib checksum or length: used anyway"),
    ("codingTooLarge", "pages truncated when decoded; raise fetch.decoded_bytes_max"),
    ("codingUnknown", "responses in an unknown content coding: used as received"),
    ("codingsTooMany", "pages with more than three content codings: not decoded"),
    ("cookies-max", "cookies dropped: a redirect chain keeps at most 50, and 8 KiB"),
    ("disconnectTrunc", "responses that ended early: stored as truncated"),
    ("linkTooLong", "links skipped: longer than twice scope.url_bytes_max"),
    ("linksBytesCut", "links dropped: more than 4 MiB of links on a page"),
    ("linksCut", "links dropped from pages with more targets; raise links.links_max"),
    ("robots-elsewhere", "robots.txt that redirects to a server of another node: unreachable"),
    ("score-failed", "pages without a score: the program of quality.command had ended"),
    ("score-full", "pages without a score: too many waited; raise quality.command_waiting_max"),
    ("score-invalid", "pages without a score: the program's answer was no quality"),
    ("score-stopped", "pages without a score: the crawl was stopped before they had one"),
    ("score-timed-out", "pages without a score in time; raise quality.command_timeout"),
    (
        "sitemapBroken",
        "sitemaps read up to a fault: malformed XML, damaged gzip, tags too long or deep",
    ),
    ("sitemapCut", "sitemaps read in part: more than 50,000 URLs or 50 MiB, or ended early"),
    ("sitemapEntries", "entries of sitemaps without a URL, or with one of more than 2,048 bytes"),
    ("sitemapForeign", "URLs in sitemaps of another host, whose robots.txt doesn't name them"),
    ("sitemapUnread", "files named as sitemaps that are none: archived only"),
    ("surplus", "responses with bytes after their end: check the server's Content-Length"),
    ("requisite-hops", "requisites too far from their page; raise scope.requisite_hops"),
    ("retries-max", "URLs that failed at every try; raise retries.retries_max"),
    (
        "timeTrunc",
        "responses that took too long: stored as truncated; see connections.body_timeout and \
         fetch_timeout",
    ),
    ("trunc", "responses with broken chunk framing: stored up to the fault, as truncated"),
    ("urlTooLong", "links skipped: URL longer than scope.url_bytes_max"),
    ("urlsBytesCut", "links dropped: more than 16 MiB of URLs on a page"),
    ("srcdocNested", "documents in srcdoc skipped: nested too deeply"),
    ("valueTooLong", "attributes skipped: longer than 64 KiB, or 1 MiB in srcdoc"),
];

/// The figures of a crawl that its summary shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    reason: Option<StopReason>,
    elapsed: Duration,
    counts: Counts,
    pages_of_run: u64,
    /// The time to the first request, `None` if there was none: since the start of the loop, or
    /// since the start of the command once [`Self::complete`] was called.
    first_request: Option<Duration>,
    seen: seen::Totals,
    archive: Totals,
    servers: usize,
    urls_waiting: usize,
    end: End,
    looping: Looping,
}

/// What is counted only once, at the end of the crawl.
#[derive(Clone, Debug, Default)]
struct End {
    /// The number of servers that have answered a request.
    answered: usize,
    /// What the servers with URLs wait for.
    waits: Vec<Waiting>,
    /// The pages to which the crawl comes back; `None` if it doesn't.
    known: Option<KnownPages>,
    /// The URLs over the budget of their domain; `None` if domains have none.
    over_budget: Option<OverBudget>,
}

impl Summary {
    /// Collects the present figures of a crawl.
    pub(super) fn of(view: &View<'_>) -> Self {
        let engine = &view.engine;
        Self {
            reason: engine.stop_reason(),
            elapsed: engine.elapsed(),
            counts: engine.counts().clone(),
            pages_of_run: engine.counts().pages_of_run,
            first_request: engine.first_request().map(|at| at.since(Instant::ZERO)),
            seen: engine.seen_totals(),
            archive: engine.archive(),
            servers: engine.frontier().servers(),
            urls_waiting: engine.frontier().urls(),
            end: End::default(),
            looping: Looping::of(view),
        }
    }

    /// Adds what is known only at the end: the time `before` that passed between the program's
    /// start and the start of the loop's clock, and what is counted by looking at every server.
    pub(super) fn complete(&mut self, before: Duration, engine: &Engine) {
        self.first_request = self.first_request.map(|first| first + before);
        let ids = (0..self.servers).map(ServerId::from_index);
        let answered = ids.filter(|id| engine.frontier().server(*id).has_answered()).count();
        let (known, over_budget) = (engine.known_pages(), engine.over_budget());
        self.end = End { answered, waits: engine.waits_at_end(), known, over_budget };
    }

    /// Formats the summary for people: first what an operator asks, with `missing` as its end, and
    /// if `is_detailed` what a developer does. `resume` is how to resume the crawl, if there is
    /// more to fetch.
    pub(super) fn text(
        &self,
        directory: &Path,
        resume: Option<&str>,
        missing: &str,
        is_detailed: bool,
    ) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| push(&mut text, name, &value);
        self.add_results(&mut line);
        self.add_rest(&mut line);
        self.add_cuts(&mut line);
        self.add_events(&mut line);
        self.add_files(directory, &mut line);
        if let Some(how) = resume {
            line("to resume it", how.to_owned());
        }
        text += missing;
        if is_detailed {
            self.add_details(&mut |name, value| push(&mut text, name, &value));
        }
        text
    }

    /// Adds the lines about what the crawl has fetched and what has failed.
    fn add_results(&self, line: &mut dyn FnMut(&str, String)) {
        let counts = &self.counts;
        let seconds = self.elapsed.as_secs_f64().max(1e-3);
        line("ended", self.reason_text().to_owned());
        let long = (seconds >= 60.0).then(|| format!(" ({})", show::time(self.elapsed)));
        line("time", format!("{seconds:.1} s{}", long.unwrap_or_default()));
        let rate = self.pages_of_run as f64 / seconds;
        line("pages", format!("{} ({rate:.0}/s)", HumanCount(counts.pages)));
        if self.pages_of_run < counts.pages {
            let earlier = HumanCount(counts.pages - self.pages_of_run);
            line("pages of earlier runs", earlier.to_string());
        }
        if let Some(known) = &self.end.known {
            line("known pages", known_pages(known));
        }
        line("seeds", self.seeds());
        line("servers", self.servers_text());
        line("statuses", pairs(counts.statuses.iter()));
        line("types", largest(&counts.types, TYPES_SHOWN));
        line("received", HumanBytes(counts.received_bytes).to_string());
        if let Some(text) = scored(counts) {
            line("pages scored", text);
        }
        if counts.failures() > 0 {
            let causes = largest(&counts.failed, usize::MAX);
            line("failed fetches", format!("{}: {causes}", HumanCount(counts.failures())));
        }
        let reserved = counts.outcomes.get("reserved").copied().unwrap_or(0);
        if reserved > 0 {
            let text = "replies not kept: their use is reserved for the purpose of the crawl";
            line("reserved", format!("{} {text}", HumanCount(reserved)));
        }
        let PatternCounts { slowed, ended } = counts.repeats;
        if slowed + ended > 0 {
            let (ended, slowed) = (HumanCount(ended), HumanCount(slowed));
            let text = "put behind others: page after page was alike (-v names them)";
            line("repeats", format!("{ended} patterns of URLs left out, {slowed} {text}"));
        }
        const ANSWERS: [&str; 5] = ["ok", "redirect", "http-error", "reserved", "signature-asked"];
        let is_other = |name: &str| !counts.failed.contains_key(name) && !ANSWERS.contains(&name);
        let others = counts.outcomes.iter().filter(|(name, count)| **count > 0 && is_other(name));
        let others: BTreeMap<_, _> = others.map(|(name, count)| (name.clone(), *count)).collect();
        if !others.is_empty() {
            line("not fetched", largest(&others, usize::MAX));
        }
    }

    /// Describes the servers of the crawl.
    fn servers_text(&self) -> String {
        let (answered, known) = (self.end.answered as u64, self.servers as u64);
        let given_up = given_up(&self.counts.given_up);
        format!("{} answered, of {} known; {given_up}", HumanCount(answered), HumanCount(known))
    }

    /// Describes what became of the seeds.
    fn seeds(&self) -> String {
        let seeds = &self.counts.seeds;
        let (done, failed) = (HumanCount(seeds.done), HumanCount(seeds.failed_count()));
        let mut text = format!("{done} fetched, {failed} failed");
        if seeds.limited > 0 {
            let _ = write!(text, ", {} left out by a limit", HumanCount(seeds.limited));
        }
        text
    }

    /// Adds the line about what is left, and why.
    fn add_rest(&self, line: &mut dyn FnMut(&str, String)) {
        if self.counts.shelved > 0 {
            let text = "of paused prefixes, which wait on disk until they are resumed";
            line("URLs paused", format!("{} {text}", HumanCount(self.counts.shelved)));
        }
        if let Some(over) = self.end.over_budget.filter(|over| over.waiting > 0) {
            let text = "over the budget of their domain, which wait on disk for a later pass";
            line("URLs over budget", format!("{} {text}", HumanCount(over.waiting)));
        }
        if self.urls_waiting == 0 {
            return;
        }
        let mut text = HumanCount(self.urls_waiting as u64).to_string();
        let waits = self.end.waits.iter().filter(|class| class.urls > 0);
        for (at, class) in waits.enumerate() {
            let before = if at == 0 { ", waiting for: " } else { "; " };
            text += &format!("{before}{} ({})", class.r#for.text(), HumanCount(class.urls));
        }
        line("URLs left", text);
    }

    /// Adds the lines that explain how fast the crawl was.
    fn add_details(&self, line: &mut dyn FnMut(&str, String)) {
        let counts = &self.counts;
        if let Some(first) = self.first_request {
            line("first request", format!("{:.0} ms after the start", first.as_secs_f64() * 1e3));
        }
        let cpu = self.looping.cpu_seconds();
        let per_cpu = self.pages_of_run as f64 / cpu.max(1e-6);
        line("CPU", format!("{cpu:.1} s: {per_cpu:.0} pages per CPU-second"));
        line("outcomes", pairs(counts.outcomes.iter()));
        if counts.signed > 0 {
            line("signed requests", HumanCount(counts.signed).to_string());
        }
        let requests = &counts.requests_per_connection;
        line(
            "requests",
            format!(
                "{}, on {} connections: {:.1} each, {} at most",
                HumanCount(counts.requests),
                HumanCount(counts.connections),
                requests.mean(),
                requests.max(),
            ),
        );
        line("pipelined", pipelined(counts));
        line(
            "handshakes",
            format!(
                "{} full, {} resumed; {} visits on kept connections",
                counts.handshakes_full, counts.handshakes_resumed, counts.parked_again
            ),
        );
        line(
            "links",
            format!("{}, {} new URLs", HumanCount(counts.links), HumanCount(counts.urls_new)),
        );
        if counts.sitemaps > 0 {
            let (files, urls) = (HumanCount(counts.sitemaps), HumanCount(counts.sitemap_urls));
            line("sitemaps", format!("{files} sitemaps and feeds, {urls} entries"));
        }
        let seen = &self.seen;
        if seen.on_disk > 0 {
            let hits = seen.cache_hits_of_run as f64 / seen.cache_lookups_of_run.max(1) as f64;
            line(
                "seen test",
                format!(
                    "{} URLs known, {} on disk; the cache answered {:.1}% of the {} checks since \
                     memory is full; {} merges",
                    HumanCount(seen.known),
                    HumanCount(seen.on_disk),
                    hits * 100.0,
                    HumanCount(seen.cache_lookups_of_run),
                    seen.merges
                ),
            );
        }
        self.looping.add_lines(line);
    }

    /// Adds the lines about what was cut or could not be read, with the servers that lost most and
    /// a fix.
    fn add_cuts(&self, line: &mut dyn FnMut(&str, String)) {
        for (cause, count) in &self.counts.cut {
            let mut text = HumanCount(*count).to_string();
            if let Some(meaning) = meaning_of(cause) {
                text = format!("{text} {meaning}");
            }
            let most = self.counts.cut_most.get(cause).map_or(&[][..], Vec::as_slice);
            for (at, (lost, whom)) in most.iter().enumerate() {
                let before = if at == 0 { "; most: " } else { ", " };
                text += &format!("{before}{whom} ({})", HumanCount(*lost));
            }
            line(cause, text);
        }
    }

    /// Adds the lines about odd robots.txt files, a full disk and outages.
    fn add_events(&self, line: &mut dyn FnMut(&str, String)) {
        if !self.counts.robots_odd.is_empty() {
            let odd = pairs(self.counts.robots_odd.iter());
            line("odd robots.txt", format!("{odd}; see politeness.robots_html"));
        }
        if self.counts.disk_full > 0 {
            line("disk full", format!("{} times", self.counts.disk_full));
        }
        if self.counts.outages > 0 {
            line("outages", format!("{} times no server could be reached", self.counts.outages));
        }
    }

    fn add_files(&self, directory: &Path, line: &mut dyn FnMut(&str, String)) {
        let place = |name: &str| directory.join(name).display().to_string();
        if self.archive.records > 0 {
            let size = HumanBytes(self.archive.warc_bytes);
            line(
                "archive",
                format!("{} ({} records, {size})", place("warc"), self.archive.records),
            );
            line("index", place("index"));
            let job = directory.display().to_string();
            let pack = shell(&["sted".to_owned(), "wacz".to_owned(), job]);
            let file = wacz::default_out(directory);
            let text = format!("{pack}, and open {} at replayweb.page", file.display());
            line("to look at it", text);
        }
        let cut = |cause: &str| self.counts.cut.get(cause).copied().unwrap_or(0);
        if self.counts.replayed > 0 {
            let unread = match cut("not-read-back") {
                0 => String::new(),
                unread => format!("; {unread} could not be read and were fetched again"),
            };
            let replies = HumanCount(self.counts.replayed);
            line("read back", format!("{replies} replies from the archive{unread}"));
        }
        line("crawl log", place("crawl.log"));
        line("figures", place("summary.json"));
    }

    /// Formats the summary as JSON.
    pub(super) fn json(&self) -> String {
        let mut value = json!({
            "ended": self.reason_text(),
            "seconds": self.elapsed.as_secs_f64(),
            "cpu_us": self.looping.cpu_us(),
            "pages_of_run": self.pages_of_run,
            "first_request_ms": self.first_request.map(|first| first.as_secs_f64() * 1e3),
            "servers": self.servers,
            "urls_left": self.urls_waiting,
            "counts": self.counts,
            "archive": self.archive,
            "seen": self.seen,
            "servers_answered": self.end.answered,
            "waiting": self.end.waits,
            "loop": self.looping.json(),
        });
        if let Some(known) = &self.end.known {
            value["known"] = json!(known);
        }
        if let Some(over) = &self.end.over_budget {
            value["over_budget"] = json!(over);
        }
        let mut text = serde_json::to_string_pretty(&value).expect("plain values");
        text.push('\n');
        text
    }

    fn reason_text(&self) -> &'static str {
        self.reason.map_or("stopped at once", StopReason::text)
    }
}

/// Returns what a cause of [`Counts::cut`] means, with a fix; `None` if it is none.
pub(super) fn meaning_of(cause: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(known, _)| *known == cause).map(|(_, meaning)| *meaning)
}

/// Describes what the program of quality.command has answered; `None` if nothing.
fn scored(counts: &Counts) -> Option<String> {
    let mut text = HumanCount(counts.scored).to_string();
    if counts.scores_late > 0 {
        let _ = write!(text, ", {} too late", HumanCount(counts.scores_late));
    }
    if counts.scores_invalid > 0 {
        let _ = write!(text, ", {} lines that are no score", HumanCount(counts.scores_invalid));
    }
    (counts.scored + counts.scores_late + counts.scores_invalid > 0).then_some(text)
}

/// Describes the pages to which the crawl comes back, and its visits in all runs.
fn known_pages(known: &KnownPages) -> String {
    let found = &known.visits;
    let mut text = format!(
        "{}; visits found {} changed, {} unchanged ({} by 304), {} gone; {} failed",
        HumanCount(known.pages),
        HumanCount(found.changed),
        HumanCount(found.unchanged),
        HumanCount(found.unmodified),
        HumanCount(found.gone),
        HumanCount(found.failed)
    );
    if found.forgotten > 0 {
        let _ = write!(text, "; {} forgotten, gone for good", HumanCount(found.forgotten));
    }
    if found.signals > 0 {
        let _ = write!(text, "; {} signals of change", HumanCount(found.signals));
    }
    if found.signals_dropped > 0 {
        let _ = write!(text, ", {} more dropped", HumanCount(found.signals_dropped));
    }
    text
}

/// Describes how much was pipelined, and what replies that didn't match their requests cost.
fn pipelined(counts: &Counts) -> String {
    let mut text = format!("{}, {} sent again", counts.pipelined, counts.left_over);
    if counts.compared > 0 {
        let _ = write!(text, "; {} repeated alone to compare replies", counts.compared);
    }
    if counts.put_back > 0 {
        let _ =
            write!(text, "; {} unverified replies discarded and requested again", counts.put_back);
    }
    if counts.unmatched > 0 {
        let _ = write!(
            text,
            "; {} servers no longer pipelined, because replies did not match requests",
            counts.unmatched
        );
    }
    text
}

/// Appends a line to the summary.
fn push(text: &mut String, name: &str, value: &str) {
    writeln!(text, "{name:<22}{value}").expect("writing to a string does not fail");
}

/// Formats the number of servers that were given up, and the reasons.
pub(super) fn given_up(reasons: &BTreeMap<Name, u64>) -> String {
    let all: u64 = reasons.values().sum();
    let text = format!("{} given up", HumanCount(all));
    if all == 0 { text } else { format!("{text} ({})", largest(reasons, usize::MAX)) }
}

/// Lists counts, the largest first: at most `shown`, and the sum of the others.
fn largest(counts: &BTreeMap<Name, u64>, shown: usize) -> String {
    let mut counts: Vec<(&str, u64)> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| (&**name, *count))
        .collect();
    counts.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let others: u64 = counts.iter().skip(shown).map(|(_, count)| count).sum();
    counts.truncate(shown);
    counts.extend((others > 0).then_some(("others", others)));
    pairs(counts.into_iter().map(|(name, count)| (name, HumanCount(count))))
}

fn pairs<K: std::fmt::Display, V: std::fmt::Display>(
    pairs: impl Iterator<Item = (K, V)>,
) -> String {
    let words: Vec<String> = pairs.map(|(key, value)| format!("{key} {value}")).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::status::{Visits, Wait};

    /// What an operator asks comes first and is there without `-v`; what a developer asks comes
    /// after it, on demand.
    #[test]
    fn the_summary_speaks_to_the_operator_first() {
        let mut counts = Counts { pages: 1_200, ..Counts::default() };
        counts.seeds.done = 7;
        counts.types = (0..10_u8)
            .map(|n| (Name::from(format!("a/{n}")), u64::from(n) + 1))
            .chain([("text/html".into(), 1_000)])
            .collect();
        counts.failed.insert("reset".into(), 3);
        counts.given_up = [("challenges".into(), 2), ("name".into(), 3)].into();
        counts.outcomes.extend([("ok".into(), 1_200), ("reset".into(), 3)]);
        counts.outcomes.insert("robots-denied".into(), 9);
        let waits = vec![Waiting { r#for: Wait::Rest, servers: 2, urls: 50 }];
        let visits = Visits { changed: 30, unchanged: 1_000, signals: 4, ..Visits::default() };
        let known = Some(KnownPages { pages: 900, visits, ..KnownPages::default() });
        let over_budget = Some(OverBudget { waiting: 4_000, ..OverBudget::default() });
        let end = End { answered: 12, waits, known, over_budget };
        let summary = Summary { counts, urls_waiting: 50, servers: 20, end, ..Summary::default() };
        let text = summary.text(Path::new("job"), None, "failed seeds 1\n", false);
        for says in [
            "seeds                 7 fetched, 0 failed\n",
            "servers               12 answered, of 20 known; 5 given up (name 3, challenges 2)\n",
            "known pages           900; visits found 30 changed, 1,000 unchanged (0 by 304), 0 \
             gone; 0 failed; 4 signals of change\n",
            "types                 text/html 1,000, a/9 10, a/8 9, a/7 8, a/6 7, a/5 6, a/4 5, a/3 \
             4, others 6\n",
            "failed fetches        3: reset 3\n",
            "not fetched           robots-denied 9\n",
            "URLs over budget      4,000 over the budget of their domain, which wait on disk",
            "URLs left             50, waiting for: the rest after a visit (50)\n",
        ] {
            assert!(text.contains(says), "{says}{text}");
        }
        let detailed = summary.text(Path::new("job"), None, "failed seeds 1\n", true);
        assert!(detailed.starts_with(&text), "the rest follows: {detailed}");
        for name in ["loop lag", "longest turn", "pipelined", "outcomes"] {
            assert!(!text.contains(name) && detailed.contains(name), "{name}: {detailed}");
        }
    }

    /// The command that packs the archive is one that a shell takes.
    #[test]
    fn a_directory_with_spaces_is_quoted() {
        let archive = Totals { records: 1, ..Totals::default() };
        let summary = Summary { archive, ..Summary::default() };
        let text = summary.text(Path::new("my jobs/a"), None, "", false);
        let says = "sted wacz 'my jobs/a', and open my jobs/a.wacz at replayweb.page\n";
        assert!(text.contains(says), "{text}");
    }
}
