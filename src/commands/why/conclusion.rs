//! Sums an answer up in one sentence, and in one word for programs.

use super::history::{History, Line};
use super::words::{self, before, number, outcome_of, when};
use crate::engine::why::{About, KnownPage, Place, RobotsVerdict, Subject, Waiting, Why};
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
    let last = deciding(about, history);
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
        Place::Paused if last.is_none() => {
            let text = "It waits on disk until the operator resumes its prefix.";
            (Fate::Waiting, text.to_owned())
        }
        Place::OverBudget { linked_by, budget } if last.is_none() => {
            let text = format!(
                "It waits on disk for a later pass of the crawl: its domain, which about \
                 {linked_by} others link to, has URLs over its budget of {budget} a pass \
                 (schedule.budget_max)."
            );
            (Fate::Waiting, text)
        }
        Place::Redirected { to } => {
            (Fate::Redirected, format!("It redirects to {to}, which was not fetched yet."))
        }
        Place::Nowhere
        | Place::ReadBack
        | Place::Paused
        | Place::OverBudget { .. }
        | Place::Unsure { .. } => {
            let (fate, mut text) = match last {
                Some(line) => settled(about, history, line, why.at_us),
                None => without_line(about),
            };
            if let Some(known) = &about.known {
                text += &next_visit(known, why.at_us);
            }
            (fate, text)
        }
    }
}

/// Returns the line of the crawl log that decides about the URL: the last one of a fetch, one about
/// the URL itself before one about another URL with the same key.
fn deciding<'a>(about: &About, history: &'a History) -> Option<&'a Line> {
    let fetches = || history.lines.iter().rev().filter(|line| line.status != 0);
    fetches().find(|line| line.url == about.url).or_else(|| fetches().next())
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

/// Says when a known page is visited again.
fn next_visit(known: &KnownPage, now_us: u64) -> String {
    let due = when(known.due_us, now_us);
    match known.due_us > now_us {
        true => format!(" Its next visit comes up at {due}, and is made if it is worth it then."),
        false => format!(" Its next visit is due since {due}."),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::why::{Obstacle, RobotsView};
    use crate::ground::quality::Quality;

    const NOW_US: u64 = 1_795_686_000_000_000;

    fn about(place: Place) -> About {
        let robots = RobotsView {
            verdict: RobotsVerdict::Disallowed,
            line: Some(7),
            rule: None,
            until_us: None,
            usage: None,
        };
        About {
            url: "http://a.test/x".to_owned(),
            key: "http://a.test/x".to_owned(),
            key_rules: Vec::new(),
            in_scope: true,
            scope_rule: String::new(),
            robots,
            is_known: Some(true),
            known: None,
            place,
            server: None,
            outcome: None,
            obstacles: Vec::new(),
            earliest_us: None,
        }
    }

    fn waiting() -> Waiting {
        Waiting {
            url: "http://a.test/x".to_owned(),
            before_min: 1_234,
            before_max: 1_234,
            is_on_disk: false,
            is_hop: false,
            depth: 1,
            quality: Quality::ONE,
            tries: 0,
            found_as: 'L',
            via: None,
        }
    }

    fn line(url: &str, status: i32, reason: Option<&str>) -> Line {
        Line {
            time_us: NOW_US,
            url: url.to_owned(),
            status,
            reason: reason.map(str::to_owned),
            size: None,
            mime: None,
            path: None,
            via: None,
            annotations: Vec::new(),
            detail: None,
            stored: None,
            log: "crawl.log".to_owned(),
        }
    }

    fn conclude(about: About, lines: &[Line]) -> (Fate, String) {
        let (at_us, asked, errors) = (NOW_US, about.url.clone(), Vec::new());
        let why = Why { at_us, asked, subject: Subject::Url(Box::new(about)), errors };
        let (lines_count, lines) = (lines.len() as u64, lines.to_vec());
        of(&why, &History { lines_count, lines, ..History::default() }, true)
    }

    #[test]
    fn each_place_has_its_sentence() {
        let cases = [
            (Place::Processing, Fate::Fetching, "its links are being found"),
            (Place::Redirected { to: "http://b.test/".into() }, Fate::Redirected, "http://b.test/"),
            (Place::ReadBack, Fate::Fetched, "is read back when the crawl resumes"),
            (Place::Paused, Fate::Waiting, "until the operator resumes its prefix"),
            (
                Place::OverBudget { linked_by: 3, budget: 10 },
                Fate::Waiting,
                "which about 3 others link to, has URLs over its budget of 10",
            ),
            (Place::Unsure { searched: 9 }, Fate::Waiting, "among the next 9 of the 0 URLs"),
            (Place::Nowhere, Fate::Unclear, "moved away"),
            (Place::Waiting(waiting()), Fate::Waiting, "for its turn; 1,234 URLs go before it."),
        ];
        for (place, fate, says) in cases {
            let (found, text) = conclude(about(place.clone()), &[]);
            assert!(found == fate && text.contains(says), "{place:?}: {found:?}: {text}");
        }
        let unknown = About { is_known: None, ..about(Place::Nowhere) };
        assert_eq!(conclude(unknown, &[]).0, Fate::Unclear);
    }

    #[test]
    fn what_holds_a_url_up_longest_is_named() {
        let obstacle = |text: &str, until_us, is_open| {
            let text = text.to_owned();
            Obstacle { text, until_us, is_open }
        };
        let soon = obstacle("soon", None, false);
        let (early, late) =
            (obstacle("early", Some(NOW_US), false), obstacle("late", Some(NOW_US + 1), false));
        let open = obstacle("open", None, true);
        let cases = [
            (vec![soon.clone()], "It waits: soon; "),
            (vec![soon.clone(), early.clone(), late.clone()], "It waits: late until 09:40:00 UTC"),
            (vec![late, open, early], "It waits: open; "),
        ];
        for (obstacles, begins) in cases {
            let place = Place::Waiting(waiting());
            let (_, text) = conclude(About { obstacles, ..about(place) }, &[]);
            assert!(text.starts_with(begins), "{text}");
        }
        let again = Waiting { tries: 1, before_max: 2_000, ..waiting() };
        let busy = line("http://a.test/x", 503, None);
        let (_, text) = conclude(about(Place::Waiting(again)), &[busy]);
        let expected = "It waits to be tried again after status 503 for its turn; 1,234 to 2,000 \
                        URLs go before it.";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_last_fetch_of_the_url_itself_decides() {
        let own = "http://a.test/x";
        let same_key = "http://a.test/x?utm_a=1";
        let cases = [
            (vec![line(own, 503, None), line(own, 200, None)], Fate::Fetched, "status 200"),
            (vec![line(own, 302, None), line(same_key, 200, None)], Fate::Fetched, "status 302"),
            (vec![line(same_key, 404, None)], Fate::Duplicate, "for both: status 404"),
            (vec![line(own, 200, None), line(own, 0, None)], Fate::Fetched, "status 200"),
            (
                vec![line(own, -4, Some("head-timed-out")); 4],
                Fate::Failed,
                "after 4 tries: the head",
            ),
            (vec![line(own, -9998, Some("robots-denied"))], Fate::Refused, "forbids it, line 7"),
            (vec![line(own, -5002, Some("server-retired"))], Fate::Failed, "was given up"),
        ];
        for (lines, fate, says) in cases {
            let (found, text) = conclude(about(Place::Nowhere), &lines);
            assert!(found == fate && text.contains(says), "{lines:?}: {found:?}: {text}");
        }
    }
}
