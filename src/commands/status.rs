//! `sted status`: shows what a running crawl does, and what holds it up.

use super::ctl::ask;
use super::job::directory;
use super::show::{COLUMNS, clip, count, rate, time};
use super::summary::given_up;
use super::{Exit, Failure};
use crate::engine::status::{KnownPages, LimitsLeft, OverBudget, Sharing, State, Status};
use crate::os::console;
use indicatif::HumanBytes;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The time between two pictures of `--watch`.
const PERIOD: Duration = Duration::from_secs(1);
/// Moves the cursor of a terminal to the top and clears the screen below it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows the status of the crawl of `job`, which is a job directory or a configuration: once, or
/// with `watches` every second until the crawl ends. With `is_json` it is the reply of the crawl.
///
/// # Errors
/// No crawl runs there, or it did not answer.
pub fn run(job: &Path, watches: bool, is_json: bool) -> Result<Exit, Failure> {
    let directory = directory(job)?;
    let mut shown = 0;
    loop {
        let reply = match ask(job, &directory, "/status", None) {
            Err(failure) if shown > 0 && failure.exit == Exit::NotRunning => {
                console::write_final("the crawl has ended");
                return Ok(Exit::Finished);
            }
            reply => reply?,
        };
        let mut picture = if is_json { reply.text } else { text(&reply.text, &directory)? };
        if watches && !is_json && io::stdout().is_terminal() {
            picture.insert_str(0, CLEAR);
        }
        let mut out = io::stdout().lock();
        // A reader that has closed stdout has seen enough.
        let written = out.write_all(picture.as_bytes()).and_then(|()| out.flush());
        if !watches || written.is_err() {
            return Ok(Exit::Finished);
        }
        shown += 1;
        thread::sleep(PERIOD);
    }
}

/// Formats a reply of the crawl in `directory` for people.
fn text(reply: &str, directory: &Path) -> Result<String, Failure> {
    let status: Status = serde_json::from_str(reply).map_err(|error| {
        let text = format!("the crawl is of another version: {error}; use --json");
        Failure::new(Exit::Refused, text)
    })?;
    Ok(console::printable(&picture(&status, &directory.display().to_string())).into_owned())
}

/// Formats a status in lines of at most 80 columns.
fn picture(status: &Status, job: &str) -> String {
    let mut lines = Vec::new();
    let time_of_day = status.time.get(11..19).unwrap_or(&status.time);
    lines
        .push(format!("{job} at {time_of_day} UTC, {} after the start", seconds(status.elapsed_s)));
    if status.state != State::Crawling {
        lines.push(status.state_text.clone());
    }
    lines.extend(status.stopped_by().map(str::to_owned));
    lines.push(format!(
        "  {} pages, {}; {} fetches failed, {}; {} received",
        count(status.pages),
        rate(status.pages_per_s),
        count(status.failed),
        rate(status.failed_per_s),
        HumanBytes(status.received_bytes)
    ));
    lines.push(format!(
        "  {} URLs wait on {} servers, of {} known; {} connections, {} parked",
        count(status.urls_waiting),
        count(status.servers_waiting),
        count(status.servers_known),
        status.connections,
        status.parked
    ));
    if status.given_up.values().any(|count| *count > 0) {
        lines.push(format!("  servers: {}", given_up(&status.given_up)));
    }
    if status.scores_waiting > 0 {
        let waiting = count(status.scores_waiting);
        lines.push(format!("  the links of {waiting} pages wait for scores (quality.command)"));
    }
    lines.extend(status.known.iter().map(known));
    lines.extend(status.over_budget.iter().map(over_budget));
    if let Some(end) = &status.end {
        lines.push(format!("  may end in {}, on {}", seconds(end.seconds), moment(&end.at)));
        lines.push(format!("    by {}", end.basis));
    }
    lines.extend(limits(&status.limits_left));
    lines.extend(status.cluster.iter().flat_map(shared));
    if let Some(ago) = status.counted_s_ago {
        lines.push(String::new());
        let title = format!("what the servers wait for, {ago:.0} s ago");
        lines.push(format!("{title:<40}{:>12}{:>16}", "servers", "URLs"));
        for class in &status.waiting {
            let (servers, urls) = (count(class.servers), count(class.urls));
            lines.push(format!("  {:<38}{servers:>12}{urls:>16}", class.r#for.text()));
        }
    }
    if !status.largest.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{:<30}{:>13}  {:<10}waits for",
            "servers with most URLs", "URLs", "until"
        ));
    }
    for server in &status.largest {
        let due = server.due.as_deref().and_then(|due| due.get(11..19)).unwrap_or("-");
        let (name, urls) = (clip(&server.server, 28), count(server.urls));
        lines.push(format!("  {name:<28}{urls:>13}  {due:<10}{}", server.r#for.text()));
    }
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{}", clip(&line, COLUMNS)).expect("a string takes all");
    }
    text
}

/// Describes the pages that the crawl comes back to.
fn known(known: &KnownPages) -> String {
    let next =
        known.next_s.map_or(String::new(), |next| format!("; next in {}", seconds(next.into())));
    let signals = match known.visits.signals {
        0 => String::new(),
        signals => format!("; {} signals of change", count(signals)),
    };
    format!(
        "  {} known pages: visits found {} changed, {} unchanged ({} by 304), {} gone{signals}\
         {next}",
        count(known.pages),
        count(known.visits.changed),
        count(known.visits.unchanged),
        count(known.visits.unmodified),
        count(known.visits.gone)
    )
}

/// Describes the URLs over the budget of their domain.
fn over_budget(over: &OverBudget) -> String {
    format!(
        "  {} URLs over the budget of their domain, of {} known; pass {}",
        count(over.waiting),
        count(over.domains),
        count(over.pass)
    )
}

/// Describes what is left until limits are reached; nothing without limits.
fn limits(left: &LimitsLeft) -> Option<String> {
    let parts = [
        left.pages.map(|pages| format!("{} pages", count(pages))),
        left.bytes.map(|bytes| HumanBytes(bytes).to_string()),
        left.seconds.map(seconds),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("  left until a limit ends it: {}", parts.join(", ")))
}

/// Describes a node's part in a shared crawl.
fn shared(part: &Sharing) -> Vec<String> {
    let Sharing { partitions, reading, publishing, .. } = part;
    let session = match part.session_left_s {
        Some(left) => format!("for {} unless renewed", seconds(left as u64)),
        None => "requests nothing now".to_owned(),
    };
    let queue = match part.disconnected_s {
        Some(time) => format!("not reached for {}", seconds(time)),
        None => "connected".to_owned(),
    };
    let behind = match reading.unread_messages {
        0 => "all read".to_owned(),
        unread => {
            let (unread, logs) = (count(unread), count(reading.unread_logs.into()));
            let time = seconds(reading.behind_s as u64);
            format!("{unread} messages in {logs} logs not read, for {time}")
        }
    };
    let disk = HumanBytes(publishing.unsent_disk_bytes);
    let unsent = HumanBytes(publishing.unsent_memory_bytes + publishing.unsent_disk_bytes);
    let mut lines = vec![
        String::new(),
        format!("shared crawl, node {} of {}", part.node, part.nodes),
        format!("  session     {}, {session}", part.state.text()),
        format!("  queue       {queue}"),
        format!(
            "  partitions  {}: {} crawled, {} waiting, {} being read, {} leaving",
            partitions.held(),
            partitions.crawled,
            partitions.waiting,
            partitions.reading,
            partitions.leaving
        ),
        format!("  own logs    {behind}"),
        format!("  to publish  {unsent}, {disk} of it on disk"),
        format!(
            "  links       {} sent to other nodes, {} held back",
            count(publishing.links),
            count(publishing.links_held_back)
        ),
    ];
    if part.pages_lost > 0 {
        let pages = count(part.pages_lost);
        lines.push(format!("  lost        {pages} pages, which other nodes may fetch again"));
    }
    // The first one is above everything else if nothing is requested.
    let above = usize::from(part.session_left_s.is_none());
    lines.extend(part.held_up_by.iter().skip(above).map(|what| format!("  ! {what}")));
    lines
}

fn seconds(seconds: u64) -> String {
    time(Duration::from_secs(seconds))
}

/// Formats `2026-11-20T09:38:49Z` as `2026-11-20 09:38 UTC`.
fn moment(time: &str) -> String {
    match (time.get(..10), time.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::status::{End, Largest, Wait, Waiting};
    use crate::engine::status::{NodeState, Partitions, Publishing, Reading};

    /// A status with large numbers and long names.
    fn status() -> Status {
        let waiting =
            Wait::ALL.map(|wait| Waiting { r#for: wait, servers: 1_234_567, urls: 9_876_543_210 });
        let largest = Largest {
            server: format!("https://{}.test:8443", "a".repeat(200)),
            urls: 1_234_567_890,
            r#for: Wait::RobotsOfOther,
            due: Some("2026-11-20T09:38:49Z".to_owned()),
        };
        Status {
            time: "2026-11-20T09:38:40Z".to_owned(),
            elapsed_s: 1_000_000,
            state: State::DiskFull,
            state_text: "the disk is full; the next try is at 09:39:40".to_owned(),
            pages: 12_345_678,
            failed: 1_234_567,
            urls_waiting: 9_876_543_210,
            servers_waiting: 1_234_567,
            given_up: [("challenges".into(), 2), ("forbidden-address".into(), 30)].into(),
            limits_left: LimitsLeft { pages: Some(1), bytes: Some(1 << 40), seconds: Some(9_000) },
            counted_s_ago: Some(3.2),
            waiting: waiting.into(),
            largest: vec![largest],
            end: Some(End {
                at: "2026-12-20T09:38:49Z".to_owned(),
                seconds: 2_592_000,
                basis: format!(
                    "the 1234567890 URLs of https://{}.test, at its rests",
                    "b".repeat(99)
                ),
            }),
            ..Status::default()
        }
    }

    /// A node's part in a shared crawl, with large numbers.
    fn sharing() -> Sharing {
        Sharing {
            node: "n".repeat(32),
            state: NodeState::Joining,
            held_up_by: vec![
                "no session: another process has this node's name, or had it just now".to_owned(),
                "1024 partitions wait for politeness.delay_max until 23:59:59".to_owned(),
            ],
            session_left_s: None,
            disconnected_s: Some(1_000_000),
            nodes: 1_024,
            partitions: Partitions { crawled: 1_024, waiting: 1_024, reading: 9, leaving: 1_024 },
            reading: Reading {
                unread_messages: 123_456_789,
                unread_logs: 1_024,
                behind_s: 12_345.6,
                ..Reading::default()
            },
            publishing: Publishing {
                unsent_memory_bytes: 1 << 26,
                unsent_disk_bytes: 1 << 38,
                links: 12_345_678_901,
                links_held_back: 98_765_432_109,
                ..Publishing::default()
            },
            pages_lost: 1_234_567,
        }
    }

    #[test]
    fn a_shared_crawl_says_what_holds_it_up() {
        let mut status = Status { cluster: Some(sharing()), ..status() };
        let text = picture(&status, "jobs/crawl");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("no session: another process"), "{text}");
        for says in ["not reached for 11 d", "logs not read, for 3 h 25", "1,234,567 pages, which"]
        {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert_eq!(text.matches("no session: another").count(), 1, "{text}");
        for line in shared(&sharing()) {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        let part = Sharing { node: "a".to_owned(), nodes: 3, ..Sharing::default() };
        let (session_left_s, state) = (Some(18.7), NodeState::Active);
        let partitions = Partitions { crawled: 341, ..Partitions::default() };
        status.cluster = Some(Sharing { session_left_s, state, partitions, ..part });
        let text = picture(&status, "jobs/crawl");
        let shared = text.split("\n\n").find(|part| part.starts_with("shared")).expect("a part");
        assert_eq!(
            shared,
            "shared crawl, node a of 3\n  \
             session     active, for 18 s unless renewed\n  \
             queue       connected\n  \
             partitions  341: 341 crawled, 0 waiting, 0 being read, 0 leaving\n  \
             own logs    all read\n  \
             to publish  0 B, 0 B of it on disk\n  \
             links       0 sent to other nodes, 0 held back"
        );
    }

    #[test]
    fn a_status_fits_a_terminal_and_says_first_what_stops_everything() {
        let text = picture(&status(), "jobs/crawl");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(lines[1].starts_with("the disk is full"), "{text}");
        let given_up = "servers: 32 given up (forbidden-address 30, challenges 2)";
        for says in ["1,234,567 servers", "the rest after a visit", "in 30 d", "2 h 30", given_up] {
            assert!(text.contains(says), "{says}: {text}");
        }
        let texts = Wait::ALL.map(Wait::text);
        assert!(texts.iter().all(|one| one.len() <= 25), "the table has room for each");
    }
}
