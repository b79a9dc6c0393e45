//! Encodes metrics: Prometheus text format 0.0.4, and OpenMetrics 1.0.
//!
//! Law: both encodings have the same samples with the same values. They differ in the name in the
//! `# TYPE` line of counters, in `# UNIT` and `# EOF`, and in the number of digits of `le`.

use super::metrics::{Kind, Metric, Samples};
use super::snapshot::Shown;
use std::borrow::Cow;
use std::fmt::Write as _;

/// An encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format that a client with this `Accept` field prefers. Who doesn't ask for
    /// OpenMetrics gets the older one.
    pub(super) fn accepted(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0_f64, 0.0_f64);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut is_known) = (1.0, true);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => is_known = value.trim().trim_matches('"') == "1.0.0",
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if is_known => open = open.max(quality),
                "text/plain" | "text/*" | "*/*" => plain = plain.max(quality),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the media type of the format.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Encodes the values of `metrics`.
pub(super) fn text(metrics: &[Metric], shown: &Shown<'_>, format: Format) -> String {
    let mut text = String::with_capacity(16 << 10);
    for metric in metrics {
        let samples = (metric.read)(shown);
        if !samples.is_empty() {
            encode(&mut text, metric, &samples, format);
        }
    }
    if format == Format::OpenMetrics {
        text += "# EOF\n";
    }
    text
}

fn encode(text: &mut String, metric: &Metric, samples: &Samples, format: Format) {
    let (name, help) = (metric.name, metric.help);
    let suffix = match metric.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    let is_open = format == Format::OpenMetrics;
    let (family, kind) = match metric.kind {
        Kind::Counter => (if is_open { "" } else { suffix }, "counter"),
        Kind::Info if is_open => ("", "info"),
        Kind::Info => (suffix, "gauge"),
        Kind::Gauge => ("", "gauge"),
        Kind::Histogram => ("", "histogram"),
    };
    let mut line = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a string takes all");
        text.push('\n');
    };
    line(format_args!("# HELP {name}{family} {help}"));
    line(format_args!("# TYPE {name}{family} {kind}"));
    if is_open && !metric.unit.is_empty() {
        line(format_args!("# UNIT {name} {}", metric.unit));
    }
    match samples {
        Samples::Values(rows) => {
            for (label, value) in rows {
                match label {
                    Some((key, label)) => {
                        line(format_args!("{name}{suffix}{{{key}=\"{}\"}} {value}", escape(label)));
                    }
                    None => line(format_args!("{name}{suffix} {value}")),
                }
            }
        }
        Samples::Histogram { buckets, count, sum } => {
            for (end, count) in buckets {
                // OpenMetrics wants 1.0, and takes no 1.
                line(format_args!("{name}_bucket{{le=\"{end:?}\"}} {count}"));
            }
            line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}"));
            line(format_args!("{name}_sum {sum}"));
            line(format_args!("{name}_count {count}"));
        }
    }
}

/// Escapes the value of a label.
fn escape(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return value.into();
    }
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::admin::metrics;
    use crate::commands::admin::snapshot::{Beginning, Bounds, Snapshot};
    use crate::conf::Conf;
    use crate::engine::status::{NodeState, Partitions, Sharing};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn encoded(snapshot: &Snapshot, format: Format) -> String {
        let bounds = Bounds::of(&Conf::default());
        let (resident_bytes, free_bytes) = (Some(1 << 20), Some(1 << 30));
        let shown = Shown { snapshot, bounds: &bounds, resident_bytes, free_bytes };
        text(&metrics::all(), &shown, format)
    }

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.status.cluster = Some(Sharing {
            node: "node-7".to_owned(),
            state: NodeState::Active,
            session_left_s: Some(12.5),
            nodes: 3,
            partitions: Partitions { crawled: 340, waiting: 1, reading: 0, leaving: 2 },
            ..Sharing::default()
        });
        snapshot.counts.pages_lost = 5;
        snapshot.counts.pages = 1_200;
        snapshot.counts.outcomes.extend([("ok".into(), 1_150), ("a\"b\\c\nd".into(), 1)]);
        snapshot.counts.statuses.extend([(200, 1_000), (206, 5), (404, 45), (999, 1)]);
        let mut began = Beginning::default();
        (began.counts.pages, began.counts.pages_lost) = (1_000, 2);
        snapshot.began = Arc::new(began);
        (0..10).for_each(|bits| snapshot.looping.lag_us.add(1 << (2 * bits)));
        snapshot
    }

    #[test]
    fn clients_get_what_they_prefer() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", Format::OpenMetrics),
            ("application/openmetrics-text;version=\"1.0.0\",*/*;q=0.1", Format::OpenMetrics),
            ("Application/OpenMetrics-Text;Version=1.0.0;Q=0.5,*/*;q=0.1", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1,text/plain;q=0.5", Format::Prometheus),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.5", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            (",;=,q=;q,", Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    #[test]
    fn counters_labels_and_histograms() {
        let text = encoded(&snapshot(), Format::Prometheus);
        for line in [
            "# TYPE sted_pages_total counter\nsted_pages_total 200\n",
            "sted_crawl_pages 1200\n",
            "sted_outcomes_total{outcome=\"a\\\"b\\\\c\\nd\"} 1\n",
            "sted_responses_total{class=\"2xx\"} 1005\n",
            "sted_responses_total{class=\"other\"} 1\n",
            "# TYPE sted_loop_lag_seconds histogram\n",
            "sted_loop_lag_seconds_bucket{le=\"6.4e-5\"} 3\n",
            "sted_loop_lag_seconds_bucket{le=\"+Inf\"} 10\n",
            "sted_loop_lag_seconds_sum 0.349525\n",
            "# TYPE sted_build_info gauge\n",
            "sted_cluster_node_info{node=\"node-7\"} 1\n",
            "sted_cluster_state{state=\"active\"} 1\n",
            "sted_cluster_state{state=\"no_session\"} 0\n",
            "sted_cluster_may_request 1\n",
            "sted_cluster_session_left_seconds 12.5\n",
            "sted_cluster_partitions{state=\"waiting\"} 1\n",
            "sted_cluster_lost_pages_total 3\n",
            "# TYPE sted_cluster_unsent_bytes gauge\n",
            "sted_cluster_unsent_bytes{place=\"memory\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("EOF") && !text.contains("UNIT"));
        let text = encoded(&snapshot(), Format::OpenMetrics);
        for line in [
            "# TYPE sted_pages counter\nsted_pages_total 200\n",
            "# TYPE sted_build info\nsted_build_info{version=",
            "# UNIT sted_received_bytes bytes\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
    }

    /// A crawl of one machine has no metrics of a shared one.
    #[test]
    fn a_crawl_of_one_machine_is_not_shared() {
        let mut alone = snapshot();
        alone.status.cluster = None;
        for format in [Format::Prometheus, Format::OpenMetrics] {
            assert!(!encoded(&alone, format).contains("cluster"));
        }
        let json = serde_json::to_string(&(&alone.status, Beginning::default().counts));
        let json = json.expect("plain values");
        assert!(!json.contains("cluster") && !json.contains("pages_lost"), "{json}");
    }

    /// Law: the encodings have the same samples, and names are as the conventions want them.
    #[test]
    fn both_encodings_say_the_same() {
        let samples = |format| -> BTreeSet<String> {
            let text = encoded(&snapshot(), format);
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(samples(Format::Prometheus), samples(Format::OpenMetrics));
        let mut names = BTreeSet::new();
        for metric in metrics::all() {
            let name = metric.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.starts_with("sted_") || name.starts_with("process_"), "{name}");
            assert!(!name.ends_with("_total"), "{name}: the encoder adds it");
            let ends = metric.unit.is_empty() || name.ends_with(&format!("_{}", metric.unit));
            assert!(ends, "{name}: the unit {} is its end", metric.unit);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{name}");
        }
    }
}
