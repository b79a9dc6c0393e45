//! Sums an answer up in one sentence, and in one word for programs.

use super::history::{History, Line};
use super::words::{self, before, number, outcome_of, when};
use crate::engine::why::{About, Place, RobotsVerdict, Subject, Waiting, Why};
use serde::Serialize;

/// What became of a URL, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// The text is no URL that can be fetched.
    NotUrl,
    /// The URL was never discovered.
    NotDiscovered,
    /// The URL waits to be fetched.
    Waiting,
    /// The URL is being fetched, or its links are being found.
    Fetching,
    /// The URL was fetched: the server has replied.
    Fetched,
    /// The URL redirects, and the next hop was not fetched yet.
    Redirected,
    /// Another URL with the same deduplication key was settled.
    Duplicate,
    /// The URL was not requested on purpose.
    Refused,
    /// No try to fetch the URL succeeded.
    Failed,
    /// The URL is known, but neither a queue nor the crawl log has it.
    Unclear,
}

/// Returns what became of a URL, and a sentence that says so.
pub(super) fn of(why: &Why, history: &History, is_running: bool) -> (Fate, String) {
    let about = match &why.subject {
        Subject::NotUrl(reason) => {
            return (Fate::NotUrl, format!("It is never fetched: {reason}."));
        }
        Subject::Url(about) => about,
    };
    let last = history.lines.last();
    match &about.place {
        Place::Fetching { sent_us } => {
            let sent = when(*sent_us, why.at_us);
            (Fate::Fetching, format!("It is being fetched: the request was sent at {sent}."))
        }
        Place::Processing => {
            let text = "It was fetched, and its links are being found; then it gets its line.";
            (Fate::Fetching, text.to_owned())
        }
        Place::Waiting(waiting) => (Fate::Waiting, waits(why, about, waiting, last, is_running)),
        Place::Paused => {
            let text = "It waits on disk until the operator resumes its prefix.";
            (Fate::Waiting, text.to_owned())
        }
        Place::Redirected { to } => {
            (Fate::Redirected, format!("It redirects to {to}, which was not fetched yet."))
        }
        Place::Nowhere | Place::ReadBack | Place::Unsure { .. } => match last {
            Some(line) => settled(about, history, line, why.at_us),
            None => without_line(about),
        },
    }
}

/// Describes what a URL in a queue waits for.
fn waits(
    why: &Why,
    about: &About,
    waiting: &Waiting,
    last: Option<&Line>,
    is_running: bool,
) -> String {
    let mut text = String::from("It waits");
    if waiting.url != about.url {
        text = format!("{} waits, which has the same key", waiting.url);
    }
    if waiting.tries > 0
        && let Some(line) = last
    {
        text += &format!(" to be tried again after {}", outcome_of(line));
    }
    if let Some(outcome) = &about.outcome {
        return format!("{text}, but it will not be requested: {}.", reason(about, outcome));
    }
    let open = about.obstacles.iter().find(|obstacle| obstacle.is_open);
    let latest = about.obstacles.iter().filter(|it| it.until_us.is_some());
    let latest = latest.max_by_key(|obstacle| obstacle.until_us);
    match open.or(latest).or(about.obstacles.first()) {
        Some(obstacle) => {
            text += &format!(": {}", obstacle.text);
            if let Some(until_us) = obstacle.until_us {
                text += &format!(" until {}", when(until_us, why.at_us));
            }
        }
        None if is_running => text += " for its turn",
        None => text += " until the crawl is resumed",
    }
    format!("{text}; {}.", before(waiting))
}

/// Describes the outcome of a settled URL.
fn settled(about: &About, history: &History, line: &Line, now_us: u64) -> (Fate, String) {
    let at = when(line.time_us, now_us);
    let outcome = outcome_of(line);
    if line.url != about.url {
        let text = format!(
            "It has the same key as {}, which counts for both: {outcome}, at {at}.",
            line.url
        );
        return (Fate::Duplicate, text);
    }
    if line.status > 0 {
        let mut text = format!("It was fetched at {at}: {outcome}");
        if let Some(next) = history.next.as_ref().filter(|_| (300..400).contains(&line.status)) {
            text += &format!("; it redirects to {}: {}", next.url, outcome_of(next));
        }
        return (Fate::Fetched, text + ".");
    }
    match line.reason.as_deref() {
        Some(name) if words::is_refusal(name) => {
            let why = reason(about, name);
            (Fate::Refused, format!("It was not requested: {why} ({at})."))
        }
        _ => {
            let tries = history.lines_count;
            let tries = if tries > 1 { format!(" after {tries} tries") } else { String::new() };
            (Fate::Failed, format!("It could not be fetched{tries}: {outcome} ({at})."))
        }
    }
}

/// Describes an outcome of the URL, with the rule that leads to it.
fn reason(about: &About, outcome: &str) -> String {
    let words = words::of(outcome);
    match (outcome, about.robots.line) {
        ("robots-denied", Some(line)) if about.robots.verdict == RobotsVerdict::Disallowed => {
            format!("{words}, line {line}")
        }
        _ if !about.in_scope && words.starts_with("it is out of scope") => {
            format!("it is out of scope: {}", about.scope_rule)
        }
        _ => words.into_owned(),
    }
}

/// Describes a URL about which the crawl log has no line.
fn without_line(about: &About) -> (Fate, String) {
    match (&about.place, about.is_known) {
        (Place::Unsure { searched }, Some(true)) => {
            let urls = about.server.as_ref().map_or(0, |server| server.urls);
            let text = format!(
                "It probably waits: it is known, and not among the next {} of the {} URLs of its \
                 server.",
                number(*searched),
                number(urls)
            );
            (Fate::Waiting, text)
        }
        (Place::ReadBack, _) => {
            let text = "It was fetched: its reply is in the archive, and is read back when the \
                        crawl resumes.";
            (Fate::Fetched, text.to_owned())
        }
        (_, Some(true)) => {
            let text = "It is known, but no queue and no line of the crawl log has it. It was \
                        found or fetched a moment ago, or the part of the log with its line was \
                        moved away.";
            (Fate::Unclear, text.to_owned())
        }
        (_, None) => {
            let text = "It can't be said now whether it is known: the seen test is at work. Ask \
                        again.";
            (Fate::Unclear, text.to_owned())
        }
        (_, Some(false)) => {
            let then = match &about.outcome {
                Some(outcome) => format!("would not be requested: {}", reason(about, outcome)),
                None => "would be queued".to_owned(),
            };
            let text = format!(
                "It was not discovered: no page that was fetched has led to it by a link that is \
                 followed. If it were found now, it {then}."
            );
            (Fate::NotDiscovered, text)
        }
    }
}
