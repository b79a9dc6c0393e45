//! The list of metrics: name, kind, unit, help, and the value from a snapshot.
//!
//! Counters begin at 0 with each run, as those of other programs do: a crawl that is resumed after
//! a kill would otherwise go back to its last checkpoint. What all runs have in common is a gauge.
//! Labels have values out of closed lists, never names from the web.

use super::snapshot::{Shown, Snapshot, name_of};
use crate::engine::status::{NodeState, Publishing, Sharing, State, Wait};
use crate::ground::stats::Stage;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It grows from 0 with each run.
    Counter,
    /// It may become larger and smaller.
    Gauge,
    /// Counts by magnitude, which grow.
    Histogram,
    /// Text, as labels of the value 1.
    Info,
}

/// The values of a metric.
#[derive(Debug)]
pub(super) enum Samples {
    /// Values, each with a label and its value, or without.
    Values(Vec<(Option<(&'static str, String)>, f64)>),
    /// A histogram: how many values don't exceed each end, how many there are, and their sum.
    Histogram { buckets: Vec<(f64, u64)>, count: u64, sum: f64 },
}

impl Samples {
    /// Returns whether there is no value.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Values(rows) if rows.is_empty())
    }
}

/// A metric.
pub(super) struct Metric {
    /// The name, with the unit and without the suffix of its kind.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// `seconds` or `bytes`; empty without a unit.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    pub(super) read: fn(&Shown<'_>) -> Samples,
}

type Read = fn(&Shown<'_>) -> Samples;

fn metric(name: &'static str, kind: Kind, help: &'static str, read: Read) -> Metric {
    let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(unit));
    Metric { name, kind, unit: unit.unwrap_or_default(), help, read }
}

fn counter(name: &'static str, help: &'static str, read: Read) -> Metric {
    metric(name, Kind::Counter, help, read)
}

fn gauge(name: &'static str, help: &'static str, read: Read) -> Metric {
    metric(name, Kind::Gauge, help, read)
}

fn one(value: f64) -> Samples {
    Samples::Values(vec![(None, value)])
}

fn maybe(value: Option<f64>) -> Samples {
    Samples::Values(value.map(|value| (None, value)).into_iter().collect())
}

/// Returns a value of a node of a shared crawl; none in a crawl of one machine.
fn of(shown: &Shown<'_>, value: impl Fn(&Sharing) -> f64) -> Samples {
    maybe(shown.snapshot.status.cluster.as_ref().map(value))
}

/// Returns values of a node of a shared crawl, as [`by`] does.
fn of_by<const N: usize>(
    shown: &Shown<'_>,
    label: &'static str,
    rows: impl Fn(&Sharing) -> [(String, f64); N],
) -> Samples {
    by(label, shown.snapshot.status.cluster.as_ref().map(rows).into_iter().flatten())
}

fn by(label: &'static str, rows: impl IntoIterator<Item = (impl ToString, f64)>) -> Samples {
    let rows = rows.into_iter().map(|(name, value)| (Some((label, name.to_string())), value));
    Samples::Values(rows.collect())
}

/// Returns all metrics.
pub(super) fn all() -> Vec<Metric> {
    let mut all = vec![metric("sted_build", Kind::Info, "Version of sted.", |_| {
        by("version", [(env!("CARGO_PKG_VERSION"), 1.0)])
    })];
    all.extend(fetched());
    all.extend(failures());
    all.extend(waiting());
    all.extend(archive());
    all.extend(looping());
    all.extend(resources());
    all.extend(known());
    all.extend(budgets());
    all.extend(node());
    all.extend(logs());
    all
}

/// What was requested and received.
fn fetched() -> [Metric; 17] {
    [
        counter("sted_pages", "Pages with their final response, of any status.", |shown| {
            one(shown.snapshot.grown(|counts| counts.pages))
        }),
        gauge("sted_crawl_pages", "Pages fetched in all runs of the crawl.", |shown| {
            one(shown.snapshot.counts.pages as f64)
        }),
        counter("sted_requests", "Requests sent, robots.txt and retries included.", |shown| {
            one(shown.snapshot.grown(|counts| counts.requests))
        }),
        counter("sted_robots_requests", "Requests for robots.txt.", |shown| {
            one(shown.snapshot.grown(|counts| counts.robots))
        }),
        counter("sted_received_bytes", "Bytes received, after TLS.", |shown| {
            one(shown.snapshot.grown(|counts| counts.received_bytes))
        }),
        counter("sted_sent_bytes", "Bytes sent, before TLS.", |shown| {
            one(shown.snapshot.grown(|counts| counts.sent_bytes))
        }),
        counter("sted_connections", "Connections opened or tried.", |shown| {
            one(shown.snapshot.grown(|counts| counts.connections))
        }),
        gauge("sted_open_connections", "Open connections.", |shown| {
            let status = &shown.snapshot.status;
            by("use", [("visit", status.connections as f64), ("parked", status.parked as f64)])
        }),
        counter("sted_tls_handshakes", "Completed TLS handshakes.", |shown| {
            let snapshot = shown.snapshot;
            let full = snapshot.grown(|counts| counts.handshakes_full);
            by(
                "kind",
                [("full", full), ("resumed", snapshot.grown(|counts| counts.handshakes_resumed))],
            )
        }),
        counter("sted_visits", "Visits that have ended.", |shown| {
            one(shown.snapshot.grown(|counts| counts.visits))
        }),
        counter("sted_links", "References found in pages.", |shown| {
            one(shown.snapshot.grown(|counts| counts.links))
        }),
        counter("sted_sitemaps", "Sitemaps and feeds that were read.", |shown| {
            one(shown.snapshot.grown(|counts| counts.sitemaps))
        }),
        counter("sted_sitemap_entries", "Entries in sitemaps and feeds.", |shown| {
            one(shown.snapshot.grown(|counts| counts.sitemap_urls))
        }),
        counter("sted_new_urls", "URLs that the seen test found to be new.", |shown| {
            one(shown.snapshot.grown(|counts| counts.urls_new))
        }),
        counter("sted_responses", "Responses by class of their status.", |shown| {
            by("class", classes(shown.snapshot))
        }),
        counter("sted_outcomes", "Settled fetches by outcome, as in the crawl log.", |shown| {
            by("outcome", shown.snapshot.grown_by(|counts| &counts.outcomes))
        }),
        counter("sted_scored_pages", "Pages scored by quality.command.", |shown| {
            one(shown.snapshot.grown(|counts| counts.scored))
        }),
    ]
}

/// Returns how many responses of each class of status there were in this run.
fn classes(snapshot: &Snapshot) -> Vec<(&'static str, f64)> {
    let mut classes = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"].map(|class| (class, 0.0));
    for (status, grown) in snapshot.grown_by(|counts| &counts.statuses) {
        let class = usize::from(status / 100).wrapping_sub(1).min(classes.len() - 1);
        classes[class].1 += grown;
    }
    classes.into()
}

/// What failed or was cut.
fn failures() -> [Metric; 9] {
    [
        counter("sted_failed_fetches", "Fetches without a usable response.", |shown| {
            by("cause", shown.snapshot.grown_by(|counts| &counts.failed))
        }),
        counter("sted_retries", "Second and later tries of a URL.", |shown| {
            one(shown.snapshot.grown(|counts| counts.retries))
        }),
        counter("sted_cut", "Things cut, left out or given up at a limit, by cause.", |shown| {
            by("cause", shown.snapshot.grown_by(|counts| &counts.cut))
        }),
        counter("sted_broken_responses", "Responses that can't be parsed, by defect.", |shown| {
            by("defect", shown.snapshot.grown_by(|counts| &counts.broken))
        }),
        counter("sted_out_of_scope_links", "References out of scope, by reason.", |shown| {
            by("reason", shown.snapshot.grown_by(|counts| &counts.links_out_of_scope))
        }),
        counter("sted_servers_given_up", "Servers given up, by reason.", |shown| {
            by("reason", shown.snapshot.grown_by(|counts| &counts.given_up))
        }),
        counter("sted_lost_urls", "URLs lost with servers that were given up.", |shown| {
            one(shown.snapshot.grown(|counts| counts.losses.urls))
        }),
        counter("sted_disk_full", "Times that the disk was full.", |shown| {
            one(shown.snapshot.grown(|counts| counts.disk_full))
        }),
        counter("sted_outages", "Times that no server could be reached.", |shown| {
            one(shown.snapshot.grown(|counts| counts.outages))
        }),
    ]
}

/// What waits, what for, and until when.
fn waiting() -> [Metric; 12] {
    [
        gauge("sted_state", "What the crawl as a whole does: 1 for that state.", |shown| {
            let now = shown.snapshot.status.state;
            by("state", State::ALL.map(|state| (name_of(state), f64::from(state == now))))
        }),
        gauge("sted_waiting_urls", "URLs that wait.", |shown| {
            one(shown.snapshot.status.urls_waiting as f64)
        }),
        gauge("sted_waiting_urls_by_cause", "URLs by what their servers wait for.", |shown| {
            by("cause", waits(shown.snapshot, false))
        }),
        gauge("sted_waiting_servers_by_cause", "Servers by what they wait for.", |shown| {
            by("cause", waits(shown.snapshot, true))
        }),
        gauge("sted_waiting_scores", "Pages whose links wait for their scores.", |shown| {
            one(shown.snapshot.status.scores_waiting as f64)
        }),
        gauge("sted_known_servers", "Servers known.", |shown| {
            one(shown.snapshot.status.servers_known as f64)
        }),
        gauge("sted_known_urls", "URLs known to the seen test.", |shown| {
            one(shown.snapshot.seen.known as f64)
        }),
        gauge("sted_estimated_end_seconds", "Estimated seconds to the end.", |shown| {
            maybe(shown.snapshot.status.end.as_ref().map(|end| end.seconds as f64))
        }),
        gauge("sted_limit_left_pages", "Pages left until limits.pages_max.", |shown| {
            maybe(shown.snapshot.status.limits_left.pages.map(|left| left as f64))
        }),
        gauge("sted_limit_left_bytes", "Bytes left until limits.bytes_max.", |shown| {
            maybe(shown.snapshot.status.limits_left.bytes.map(|left| left as f64))
        }),
        gauge("sted_limit_left_seconds", "Seconds left until limits.time_max.", |shown| {
            maybe(shown.snapshot.status.limits_left.seconds.map(|left| left as f64))
        }),
        counter("sted_commands", "Commands of the operator that were carried out.", |shown| {
            one(shown.snapshot.grown(|counts| counts.commands))
        }),
    ]
}

/// Returns how many servers or URLs wait for each cause, 0 included.
fn waits(snapshot: &Snapshot, counts_servers: bool) -> [(String, f64); Wait::ALL.len()] {
    let classes = &snapshot.status.waiting;
    Wait::ALL.map(|wait| {
        let class = classes.iter().find(|class| class.r#for == wait);
        let count =
            class.map_or(0, |class| if counts_servers { class.servers } else { class.urls });
        (name_of(wait), count as f64)
    })
}

/// What was archived.
fn archive() -> [Metric; 5] {
    [
        counter("sted_archived_records", "Records written to the archive.", |shown| {
            let snapshot = shown.snapshot;
            let before = snapshot.began.archive.records;
            one(snapshot.archive.records.saturating_sub(before) as f64)
        }),
        counter("sted_archived_bytes", "Bytes written to the archive, compressed.", |shown| {
            let snapshot = shown.snapshot;
            let before = snapshot.began.archive.warc_bytes;
            one(snapshot.archive.warc_bytes.saturating_sub(before) as f64)
        }),
        counter("sted_crawl_log_lines", "Lines written to the crawl log.", |shown| {
            let snapshot = shown.snapshot;
            let before = snapshot.began.archive.log_lines;
            one(snapshot.archive.log_lines.saturating_sub(before) as f64)
        }),
        counter("sted_read_back", "Responses read back from the archive on a resume.", |shown| {
            one(shown.snapshot.grown(|counts| counts.replayed))
        }),
        counter("sted_checkpoints", "Checkpoints that became durable.", |shown| {
            one(shown.snapshot.grown(|counts| counts.checkpoints))
        }),
    ]
}

/// The URLs over the budget of their domain; none if domains have none.
fn budgets() -> [Metric; 3] {
    [
        gauge("sted_over_budget_urls", "URLs over the budget of their domain.", |shown| {
            maybe(shown.snapshot.status.over_budget.map(|over| over.waiting as f64))
        }),
        gauge("sted_known_domains", "Registrable domains known to the budgets.", |shown| {
            maybe(shown.snapshot.status.over_budget.map(|over| over.domains as f64))
        }),
        gauge("sted_budget_pass", "The present pass of the budgets, from 0 on.", |shown| {
            maybe(shown.snapshot.status.over_budget.map(|over| over.pass as f64))
        }),
    ]
}

/// The pages that the crawl comes back to; none in a crawl that doesn't.
fn known() -> [Metric; 6] {
    [
        gauge("sted_known_pages", "Pages that the crawl comes back to.", |shown| {
            maybe(shown.snapshot.status.known.map(|known| known.pages as f64))
        }),
        gauge("sted_known_pages_queued", "Known pages in queues and under way.", |shown| {
            maybe(shown.snapshot.status.known.map(|known| known.queued as f64))
        }),
        gauge("sted_known_bar", "What a visit to a known page must be worth.", |shown| {
            maybe(shown.snapshot.status.known.map(|known| known.bar))
        }),
        counter("sted_known_visits", "Visits to known pages, by what they found.", |shown| {
            let rows = shown.snapshot.status.known.map(|known| {
                let found = known.visits;
                [
                    ("changed", found.changed as f64),
                    ("unchanged", found.unchanged as f64),
                    ("gone", found.gone as f64),
                    ("failed", found.failed as f64),
                ]
            });
            by("found", rows.into_iter().flatten())
        }),
        counter("sted_known_unmodified", "Visits answered by 304, among the unchanged.", |shown| {
            maybe(shown.snapshot.status.known.map(|known| known.visits.unmodified as f64))
        }),
        counter("sted_known_signals", "Signals of change, by sitemaps and feeds.", |shown| {
            let visits = shown.snapshot.status.known.map(|known| known.visits);
            let kinds = visits.map(|visits| {
                [("delivered", visits.signals as f64), ("dropped", visits.signals_dropped as f64)]
            });
            by("kind", kinds.into_iter().flatten())
        }),
    ]
}

/// What this node of a shared crawl does.
fn node() -> [Metric; 8] {
    [
        metric("sted_cluster_node", Kind::Info, "Name of this node of a shared crawl.", |shown| {
            of_by(shown, "node", |it| [(it.node.clone(), 1.0)])
        }),
        gauge("sted_cluster_state", "What this node does: 1 for that state.", |shown| {
            let is = |it: &Sharing, state| (name_of(state), f64::from(state == it.state));
            of_by(shown, "state", |it| NodeState::ALL.map(|state| is(it, state)))
        }),
        gauge("sted_cluster_may_request", "Whether the session lasts, 1 or 0.", |shown| {
            of(shown, |it| f64::from(it.session_left_s.is_some()))
        }),
        gauge("sted_cluster_session_left_seconds", "Time until the session ends.", |shown| {
            of(shown, |it| it.session_left_s.unwrap_or(0.0))
        }),
        gauge("sted_cluster_connected", "Whether the queue can be reached, 1 or 0.", |shown| {
            of(shown, |it| f64::from(it.disconnected_s.is_none()))
        }),
        gauge("sted_cluster_nodes", "Nodes among which paces are divided.", |shown| {
            of(shown, |it| f64::from(it.nodes))
        }),
        gauge("sted_cluster_partitions", "Partitions held, by what is done there.", |shown| {
            of_by(shown, "state", |it| {
                let all = it.partitions;
                let (crawled, waiting) = (("crawled", all.crawled), ("waiting", all.waiting));
                [crawled, waiting, ("reading", all.reading), ("leaving", all.leaving)]
                    .map(|(state, count)| (state.to_owned(), f64::from(count)))
            })
        }),
        counter("sted_cluster_lost_pages", "Pages others may fetch again.", |shown| {
            of(shown, |_| shown.snapshot.grown(|counts| counts.pages_lost))
        }),
    ]
}

/// What this node of a shared crawl reads from logs and writes to them.
fn logs() -> [Metric; 12] {
    [
        counter("sted_cluster_published_messages", "Messages published.", |shown| {
            of(shown, |it| it.publishing.messages as f64)
        }),
        counter("sted_cluster_published_bytes", "Bytes of messages published.", |shown| {
            of(shown, |it| it.publishing.bytes as f64)
        }),
        counter("sted_cluster_publications", "Publications of several messages each.", |shown| {
            of(shown, |it| it.publishing.publications as f64)
        }),
        counter("sted_cluster_repeated_publications", "Publications sent again.", |shown| {
            of(shown, |it| it.publishing.repeats as f64)
        }),
        gauge("sted_cluster_unsent_bytes", "Bytes of messages to be published.", |shown| {
            of_by(shown, "place", |it| {
                let Publishing { unsent_memory_bytes, unsent_disk_bytes, .. } = it.publishing;
                [("memory", unsent_memory_bytes), ("disk", unsent_disk_bytes)]
                    .map(|(place, bytes)| (place.to_owned(), bytes as f64))
            })
        }),
        counter("sted_cluster_sent_links", "Links to other nodes' partitions, sent.", |shown| {
            of(shown, |it| it.publishing.links as f64)
        }),
        counter("sted_cluster_held_back_links", "Links not sent again.", |shown| {
            of(shown, |it| it.publishing.links_held_back as f64)
        }),
        counter("sted_cluster_read_messages", "Messages read from logs.", |shown| {
            of(shown, |it| it.reading.messages as f64)
        }),
        counter("sted_cluster_read_bytes", "Bytes of messages read from logs.", |shown| {
            of(shown, |it| it.reading.bytes as f64)
        }),
        counter("sted_cluster_damaged_messages", "Messages that make no sense.", |shown| {
            of(shown, |it| it.reading.damaged as f64)
        }),
        gauge("sted_cluster_unread_messages", "Messages in own logs, not read.", |shown| {
            of(shown, |it| it.reading.unread_messages as f64)
        }),
        gauge("sted_cluster_behind_seconds", "Longest time a log had such messages.", |shown| {
            of(shown, |it| it.reading.behind_s)
        }),
    ]
}

/// The smallest and the largest end of the buckets of the lag: 64 microseconds and 2 seconds, as
/// powers of two.
const LAG_BITS: std::ops::RangeInclusive<u32> = 6..=21;

/// What the event loop does.
fn looping() -> [Metric; 5] {
    [
        metric("sted_loop_lag_seconds", Kind::Histogram, "Lengths of the turns.", |shown| {
            let lag_us = &shown.snapshot.looping.lag_us;
            let end = |bits: u32| (f64::from(1_u32 << bits) / 1e6, lag_us.count_below(bits));
            Samples::Histogram {
                buckets: LAG_BITS.map(end).collect(),
                count: lag_us.count(),
                sum: lag_us.sum() as f64 / 1e6,
            }
        }),
        gauge("sted_loop_lag_max_seconds", "Length of the longest turn of the run.", |shown| {
            one(shown.snapshot.looping.lag_us.max() as f64 / 1e6)
        }),
        counter("sted_loop_cpu_seconds", "CPU time of the loop by stage.", |shown| {
            let usage = &shown.snapshot.looping.usage;
            let of = |stage: Stage| (stage.name(), usage.of(stage).cpu_ns as f64 / 1e9);
            by("stage", Stage::ALL.map(of))
        }),
        counter("sted_thread_cpu_seconds", "CPU time by thread.", |shown| {
            let usage = &shown.snapshot.looping.usage;
            let threads = [
                ("loop", usage.looping.sum_us()),
                ("jobs", usage.jobs_us),
                ("control", usage.control_us),
                ("names", usage.names_us),
            ];
            by("thread", threads.map(|(name, us)| (name, us as f64 / 1e6)))
        }),
        counter("sted_paused_connections", "Times that memory was short.", |shown| {
            one(shown.snapshot.grown(|counts| counts.pauses))
        }),
    ]
}

/// What the crawl takes of the machine, and its bounds.
fn resources() -> [Metric; 8] {
    [
        gauge("sted_memory_bytes", "Memory by part, as in the section [memory].", |shown| {
            by("part", shown.memory().map(|part| (part.part, part.bytes as f64)))
        }),
        gauge("sted_memory_max_bytes", "Bound of the memory of each part.", |shown| {
            by("part", shown.memory().map(|part| (part.part, part.max_bytes as f64)))
        }),
        gauge("sted_disk_free_bytes", "Free space on the disk of the job.", |shown| {
            maybe(shown.free_bytes.map(|bytes| bytes as f64))
        }),
        gauge("sted_disk_free_min_bytes", "Free space below which the crawl pauses.", |shown| {
            one(shown.bounds.free_min as f64)
        }),
        gauge("sted_snapshot_timestamp_seconds", "Time of these figures.", |shown| {
            one(shown.snapshot.unix_s())
        }),
        gauge("process_resident_memory_bytes", "Resident memory size in bytes.", |shown| {
            maybe(shown.resident_bytes.map(|bytes| bytes as f64))
        }),
        counter("process_cpu_seconds", "Total user and system CPU time.", |shown| {
            one(shown.snapshot.looping.usage.cpu_us() as f64 / 1e6)
        }),
        gauge("process_start_time_seconds", "Start time of the process.", |shown| {
            let snapshot = shown.snapshot;
            // Whole seconds: the start doesn't move between two readings of two clocks.
            one((snapshot.unix_s() - snapshot.elapsed.as_secs_f64()).round())
        }),
    ]
}
