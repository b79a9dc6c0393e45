//! Formats an answer for people: a short paragraph a step, in 80 columns.

use super::history::{History, Line};
use super::words::{before, number, outcome_of, when};
use crate::commands::show::time;
use crate::engine::why::{
    About, KnownPage, Place, RobotsVerdict, RobotsView, ServerView, Subject, UsageView, Why,
};
use crate::ground::quality::Quality;
use std::time::Duration;

/// The columns of a line.
const COLUMNS: usize = 80;
/// The columns before the text of a step.
const MARGIN: usize = 10;

/// Formats the answer, which `sentence` sums up.
pub(super) fn of(why: &Why, history: &History, sentence: &str) -> String {
    let mut page = Page(String::new());
    page.0 += &format!("{}\n\n", why.asked.escape_debug());
    if let Subject::Url(about) = &why.subject {
        steps(&mut page, why, about, history);
    }
    for error in &why.errors {
        page.step("error", error);
    }
    if page.0.ends_with("\n\n") {
        page.wrap(0, sentence);
    } else {
        page.0.push('\n');
        page.wrap(0, sentence);
    }
    page.0
}

fn steps(page: &mut Page, why: &Why, about: &About, history: &History) {
    if about.url != why.asked {
        page.step("URL", &about.url);
    }
    if about.key != about.url {
        page.step("key", &format!("{}, by {}", about.key, about.key_rules.join(", ")));
    }
    let scope = if about.in_scope { "in scope" } else { "out of scope" };
    page.step("scope", &format!("{scope}: {}", about.scope_rule));
    robots(page, &about.robots, why.at_us);
    page.step(
        "seen",
        match about.is_known {
            Some(true) => "known to the seen test",
            Some(false) => "not known to the seen test",
            None => "not to be said now: the seen test is at work",
        },
    );
    let more = history.lines_count - history.lines.len() as u64;
    if more > 0 {
        page.step("log", &format!("{} earlier lines", number(more)));
    }
    for line in &history.lines {
        page.step("log", &log_line(line, about, why.at_us));
    }
    if history.redirects > 0 {
        let count = number(history.redirects);
        page.step("log", &format!("{count} redirects led to it when it was known already"));
    }
    if let Some(next) = &history.next {
        page.step("then", &log_line(next, about, why.at_us));
    }
    if let Some(record) = &history.record {
        let file = record
            .file
            .as_ref()
            .map_or_else(|| format!("{} (moved away)", record.name), |file| file.clone());
        let mut text = format!("{file}, at byte {}", number(record.offset));
        if let Some((index, line)) = &record.index {
            text += &format!("; {index}, line {}", number(*line));
        }
        page.step("record", &text);
    }
    if let Some(view) = &about.server {
        page.step("server", &server(view));
    }
    if let Place::Waiting(waiting) = &about.place {
        let place = if waiting.is_on_disk { "on disk" } else { "in memory" };
        let mut text = format!("in its queue, {place}: {}", before(waiting));
        match &waiting.via {
            Some(via) => text += &format!("; found on {via}"),
            None if waiting.found_as == '-' => text += "; a seed",
            None => {}
        }
        if waiting.quality != Quality::ONE {
            text += &format!("; quality {}", waiting.quality);
        }
        page.step("place", &text);
    }
    if let Some(known) = &about.known {
        page.step("again", &again(known, about, why.at_us));
    }
    for obstacle in &about.obstacles {
        let until = obstacle.until_us.map(|until| format!(" until {}", when(until, why.at_us)));
        page.step("waits", &format!("{}{}", obstacle.text, until.unwrap_or_default()));
    }
    if let (Some(earliest), Place::Waiting(_)) = (about.earliest_us, &about.place) {
        page.step("due", &format!("{} at the earliest", when(earliest, why.at_us)));
    }
}

fn again(known: &KnownPage, about: &About, now_us: u64) -> String {
    let mut text = format!("comes up at {}", when(known.due_us, now_us));
    if known.url != about.url {
        text = format!("{} {text}", known.url);
    }
    let visited = when(known.visited_us, now_us);
    let (changed, unchanged) = (number(known.changed), number(known.unchanged));
    text += &format!("; visited last at {visited}: so far {changed} visits found a change, ");
    text += &format!("{unchanged} found none");
    if known.gone > 0 {
        text += &format!("; the last {} found no page", number(known.gone));
    }
    let interval = time(Duration::from_secs(known.change_interval_s));
    let whose = if known.is_list { "one of the pages that it lists" } else { "it" };
    text += &format!("; {whose} is expected to change every {interval}");
    if known.signals > 0 {
        text += &format!(", and its site says that it has ({} times)", number(known.signals));
    }
    text + &format!("; a visit now is worth {} % of the bar", number(known.worth_percent))
}

fn robots(page: &mut Page, view: &RobotsView, now_us: u64) {
    page.step("robots", &verdict(view, now_us));
    if let Some(view) = &view.usage {
        page.step("use", &usage(view));
    }
}

fn verdict(view: &RobotsView, now_us: u64) -> String {
    let mut text = match view.verdict {
        RobotsVerdict::NotObeyed => "not obeyed (politeness.robots)",
        RobotsVerdict::NotKnown => "not known yet: it is requested before the first page",
        RobotsVerdict::Requested => "being requested",
        RobotsVerdict::Redirected => "redirects to another server, which has not replied yet",
        RobotsVerdict::Allowed if view.line.is_none() => "allowed: no rule applies",
        RobotsVerdict::Allowed => "allowed",
        RobotsVerdict::Disallowed => "disallowed",
        RobotsVerdict::Unreachable => "can't be fetched, which forbids every page",
    }
    .to_owned();
    if let Some(line) = view.line {
        text += &format!(" by line {line} of robots.txt");
    }
    if let Some(rule) = &view.rule {
        text += &format!(": {rule}");
    }
    if let Some(until) = view.until_us {
        text += &format!(" (valid until {})", when(until, now_us));
    }
    text
}

fn usage(view: &UsageView) -> String {
    let mut text = view.lines.join("; ");
    for (purposes, what) in [(&view.reserved, "reserved"), (&view.allowed, "allowed")] {
        if !purposes.is_empty() {
            text += &format!("; {what} for {}", purposes.join(", "));
        }
    }
    text
}

fn server(view: &ServerView) -> String {
    let mut text = format!("{}: {}", view.origin, view.state);
    if let Some(why) = &view.given_up {
        text += &format!(" ({why})");
    }
    text += &format!("; {} URLs wait; {} visits", number(view.urls), number(view.visits));
    if view.failures > 0 {
        text += &format!(", the last {} failed", number(view.failures.into()));
    }
    if let Some(ms) = view.crawl_delay_ms {
        text += &format!("; Crawl-delay {} s", ms as f64 / 1_000.0);
    }
    text
}

fn log_line(line: &Line, about: &About, now_us: u64) -> String {
    let mut text = format!("{}: {}", when(line.time_us, now_us), outcome_of(line));
    if line.url != about.url {
        text = format!("{}: {}: {}", when(line.time_us, now_us), line.url, outcome_of(line));
    }
    if let Some(size) = line.size {
        text += &format!(", {} bytes", number(size));
    }
    if let Some(mime) = &line.mime {
        text += &format!(", {mime}");
    }
    if let Some(detail) = &line.detail {
        text += &format!(", {detail}");
    }
    if !line.annotations.is_empty() {
        text += &format!(" [{}]", line.annotations.join(", "));
    }
    match (&line.path, &line.via) {
        (_, Some(via)) => text += &format!("; found on {via}"),
        (None, None) => text += "; a seed",
        (Some(_), None) => {}
    }
    text
}

/// A text that grows step by step.
struct Page(String);

impl Page {
    /// Appends a step with its name.
    fn step(&mut self, name: &str, text: &str) {
        self.0 += &format!("  {name:<8}");
        self.wrap(MARGIN, text);
    }

    /// Appends a text whose first line begins in the column `margin`, where its other lines begin
    /// as well. A word that is longer than a line is cut into lines.
    fn wrap(&mut self, margin: usize, text: &str) {
        let room = COLUMNS - margin;
        let mut used = 0;
        for word in text.split_whitespace() {
            let mut rest: Vec<char> = word.chars().collect();
            if used > 0 {
                if used + 1 + rest.len() <= room {
                    self.0.push(' ');
                    used += 1;
                } else {
                    self.line(margin, &mut used);
                }
            }
            while rest.len() > room - used {
                let more = rest.split_off(room - used);
                self.0.extend(rest);
                self.line(margin, &mut used);
                rest = more;
            }
            used += rest.len();
            self.0.extend(rest);
        }
        self.0.push('\n');
    }

    fn line(&mut self, margin: usize, used: &mut usize) {
        self.0.push('\n');
        self.0 += &" ".repeat(margin);
        *used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_in_80_columns() {
        let mut page = Page(String::new());
        let long = format!("http://a.test/{}", "x".repeat(200));
        page.step("server", &format!("a few words {long} {}", "and more words ".repeat(20)));
        let lines: Vec<&str> = page.0.lines().collect();
        assert!(lines.len() > 6 && lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert!(lines[1..].iter().all(|line| line.starts_with("          ")), "{}", page.0);
        assert!(page.0.replace("\n          ", "").contains(&long), "{}", page.0);
    }
}
