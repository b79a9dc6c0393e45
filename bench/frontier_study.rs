//! What a URL costs by how many of them wait: each policy at each size, runs repeated, and what
//! came of it as a table, figures and a page.
//!
//! Each run is a process of its own, so that one's memory is none of another's; two go side by
//! side, the small ones too, so that all have the same company. Where runs were repeated the
//! median stands, and the figures show what they spread over.
//!
//! Laws: nothing is left out; a run that fails ends the study and is named, and those before it are
//! in `runs.csv`, from which all else is computed.

use super::driver::Policy;
use serde::Deserialize;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use sted::study::report::chart::{Chart, Mark, Series};
use sted::study::report::html::{Block, Figure, Page};
use sted::study::report::number::{Format, grouped};
use sted::study::report::scale::Axis;
use sted::study::report::table::{Cell, Column, Table};

/// Runs at a time.
const SIDE_BY_SIDE: usize = 2;
/// A size is run again until its runs have had so many URLs in all, but not more often than that.
const REPEAT_URLS: u64 = 10_000_000;
const REPEATS_MAX: u64 = 5;
/// The frontier of a hundred million URLs is to keep below this.
const MEMORY_MIB_MAX: f64 = 1024.0;
/// And a URL is not to cost so many times more: a fence, not the aim (DECISIONS.md 68).
const GROWTH_MAX: f64 = 2.0;

/// What is run.
pub(super) struct Asked {
    pub(super) servers: u64,
    pub(super) memory_mib: u64,
    /// Requests of a visit; `None` for what servers allow on a connection.
    pub(super) burst: Option<u32>,
    /// URLs, the fewest first.
    pub(super) sizes: Vec<u64>,
}

/// What a run says of itself, as far as it is used here.
#[derive(Clone, Debug, Deserialize)]
struct Run {
    policy: String,
    urls: u64,
    push_ns: f64,
    pop_ns: f64,
    /// Of these: what the system took, memory asked of it included.
    push_system_ns: f64,
    pop_system_ns: f64,
    /// Of each of the two.
    jobs_ns: f64,
    disk_bytes_per_url: f64,
    counted_mib: f64,
    rss_most_mib: f64,
    turns: u64,
    turns_over_5_ms: u64,
    longest_turn_us: f64,
}

/// The runs of a policy with one number of URLs.
struct Size<'a> {
    urls: u64,
    runs: Vec<&'a Run>,
}

impl Run {
    fn both_ns(&self) -> f64 {
        self.push_ns + self.pop_ns
    }

    fn system_ns(&self) -> f64 {
        self.push_system_ns + self.pop_system_ns
    }

    /// Without the jobs, which a crawl runs beside its loop.
    fn loop_ns(&self) -> f64 {
        self.both_ns() - 2.0 * self.jobs_ns
    }
}

impl Size<'_> {
    fn median(&self, value: impl Fn(&Run) -> f64) -> f64 {
        let values = self.sorted(value);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        }
    }

    fn most(&self, value: impl Fn(&Run) -> f64) -> f64 {
        *self.sorted(value).last().expect("a size has runs")
    }

    fn spread(&self, value: impl Fn(&Run) -> f64) -> (f64, f64) {
        let values = self.sorted(value);
        (values[0], values[values.len() - 1])
    }

    fn sorted(&self, value: impl Fn(&Run) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.runs.iter().map(|run| value(run)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn is_on_disk(&self) -> bool {
        self.runs.iter().any(|run| run.disk_bytes_per_url > 0.0)
    }
}

/// Runs what is asked for and writes what came of it into `folder`; tells it on the terminal, too.
/// What is beyond what is allowed comes back.
pub(super) fn run(folder: &Path, asked: &Asked) -> Vec<String> {
    fs::create_dir_all(folder).expect("a folder for the report");
    let put = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("a folder that can be written to");
    };
    let runs = all_runs(asked, |so_far| put("runs.csv", &runs_table(so_far).csv()));
    let sizes: Vec<(Policy, Vec<Size<'_>>)> =
        Policy::PAPER.into_iter().map(|policy| (policy, of_policy(policy, &runs, asked))).collect();
    let figures = [("cost", cost(&sizes)), ("growth", growth(&sizes)), ("memory", memory(&sizes))];
    for (name, chart) in &figures {
        put(&format!("{name}.svg"), &chart.svg());
    }
    let table = table(&sizes);
    let told = told(&sizes);
    print!("{}\n{}\n", table.text(), told.join("\n"));
    let figures = figures.map(|(_, chart)| Figure::Chart(chart)).into();
    let page = Page {
        title: "What a waiting URL costs".to_owned(),
        lead: format!(
            "{} servers, {} MiB set, burst {}; against {} URLs.",
            grouped(asked.servers as f64, 0),
            grouped(asked.memory_mib as f64, 0),
            burst(asked),
            grouped(asked.sizes[0] as f64, 0),
        ),
        blocks: vec![
            Block::Text(told.join("\n\n")),
            Block::Figures(figures),
            Block::Table(table),
            Block::Text(HOW.to_owned()),
            Block::Details {
                summary: "All runs".to_owned(),
                blocks: vec![Block::Table(runs_table(&runs))],
            },
        ],
    };
    put("report.html", &page.html());
    faults(&sizes)
}

const HOW: &str = "Push and pop are processor time, with the jobs that read the disk; the loop \
alone is without them, as a crawl runs them beside its loop. Of both, the system takes what \
reading, writing and new pages of memory cost. Times by which it grows are against the fewest \
URLs. Memory is what is resident beyond the start, servers included; counted is what the frontier \
holds itself to. A turn is what the loop does between two jobs.\n\nURLs of 40 bytes, found 25 on \
a page, come to servers drawn at random; then all are visited until none is left; a burst \
is what a visit takes at most, \"server\" a hundred here. bench/frontier.rs has the rest.";

/// Each is told on stderr when it has run, and kept.
fn all_runs(asked: &Asked, keep: impl Fn(&[Run])) -> Vec<Run> {
    let left = Mutex::new(in_order(asked));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let (done, runs) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            let (next, done) = (&next, done.clone());
            scope.spawn(move || {
                while let Some((policy, urls)) = next() {
                    done.send(one(policy, urls, asked)).expect("they are waited for");
                }
            });
        }
        drop(done);
        let mut all: Vec<Run> = Vec::new();
        for run in runs {
            let (policy, urls, ns) = (&run.policy, grouped(run.urls as f64, 0), run.both_ns());
            eprintln!("{policy} {urls} URLs: {} ns each", grouped(ns, 0));
            all.push(run);
            keep(&all);
        }
        all
    })
}

/// Runs of a size are spread over the whole time, so that a slow hour is slow for all of them.
fn in_order(asked: &Asked) -> VecDeque<(Policy, u64)> {
    let mut order = Vec::new();
    for urls in &asked.sizes {
        let repeats = (REPEAT_URLS / urls).clamp(1, REPEATS_MAX);
        for repeat in 0..repeats {
            let at = (2 * repeat + 1) as f64 / (2 * repeats) as f64;
            order.extend(Policy::PAPER.map(|policy| (at, policy, *urls)));
        }
    }
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    order.into_iter().map(|(_, policy, urls)| (policy, urls)).collect()
}

fn one(policy: Policy, urls: u64, asked: &Asked) -> Run {
    let numbers = [asked.servers, urls, asked.memory_mib].map(|number| number.to_string());
    let program = std::env::current_exe().expect("this program has a name");
    let mut run = Command::new(program);
    run.arg(policy.name()).args(numbers).arg(burst(asked)).stderr(Stdio::inherit());
    let output = run.output().expect("this program can be run");
    assert!(output.status.success(), "{} with {urls} URLs: {}", policy.name(), output.status);
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

/// As the configuration spells it.
fn burst(asked: &Asked) -> String {
    asked.burst.map_or("server".to_owned(), |most| most.to_string())
}

fn of_policy<'a>(policy: Policy, runs: &'a [Run], asked: &Asked) -> Vec<Size<'a>> {
    let of = |urls: u64| {
        let is_of = |run: &&Run| run.policy == policy.name() && run.urls == urls;
        Size { urls, runs: runs.iter().filter(is_of).collect() }
    };
    asked.sizes.iter().map(|urls| of(*urls)).collect()
}

fn cost(sizes: &[(Policy, Vec<Size<'_>>)]) -> Chart {
    let mut chart = chart("Cost of a URL", "nanoseconds, pushed and popped", Format::Count);
    chart.subtitle = "Lower is better; with the jobs".to_owned();
    chart.series = curves(sizes, |_, run| run.both_ns());
    chart
}

fn growth(sizes: &[(Policy, Vec<Size<'_>>)]) -> Chart {
    let mut chart = chart("The loop alone", "the fewest URLs = 1", Format::Decimal(1));
    chart.subtitle = "Flat is best; without the jobs".to_owned();
    chart.series = curves(sizes, |first, run| run.loop_ns() / first.median(Run::loop_ns));
    chart
}

fn memory(sizes: &[(Policy, Vec<Size<'_>>)]) -> Chart {
    let mut chart = chart("Memory", "MiB resident at most", Format::Count);
    chart.series = curves(sizes, |_, run| run.rss_most_mib);
    chart.marks.push(Mark::y(MEMORY_MIB_MAX, "1 GiB"));
    chart
}

fn chart(title: &str, y: &str, format: Format) -> Chart {
    let y = Axis::linear(y, format);
    Chart::new(title, Axis::log10("URLs", Format::Short), y)
}

/// A value of each run, beside the first size of its policy.
fn curves(
    sizes: &[(Policy, Vec<Size<'_>>)],
    value: impl Fn(&Size<'_>, &Run) -> f64,
) -> Vec<Series> {
    let curve = |(policy, sizes): &(Policy, Vec<Size<'_>>)| {
        let of = |run: &Run| value(&sizes[0], run);
        let points = sizes.iter().map(|size| (size.urls as f64, size.median(of)));
        let band = sizes.iter().map(|size| {
            let (least, most) = size.spread(of);
            (size.urls as f64, least, most)
        });
        let band = Some(band.collect());
        Series { band, ..Series::marked(policy.name(), points.collect()) }
    };
    sizes.iter().map(curve).collect()
}

fn table(sizes: &[(Policy, Vec<Size<'_>>)]) -> Table {
    let number = Column::number;
    let header = vec![
        Column::text("policy"),
        number("URLs", ""),
        number("runs", ""),
        number("push", "ns"),
        number("pop", "ns"),
        number("both", "ns"),
        number("least", "ns"),
        number("most", "ns"),
        number("of them jobs", "ns"),
        number("of them the system", "ns"),
        number("grows", "times"),
        number("the loop alone", "times"),
        number("on disk a URL", "bytes"),
        number("counted", "MiB"),
        number("resident at most", "MiB"),
        number("turns over 5 ms", ""),
        number("longest turn", "ms"),
    ];
    let rows = sizes
        .iter()
        .flat_map(|(policy, sizes)| sizes.iter().map(|size| row(*policy, size, &sizes[0])));
    Table { rows: rows.collect(), header, ..Table::default() }
}

fn row(policy: Policy, size: &Size<'_>, first: &Size<'_>) -> Vec<Cell> {
    let (least, most) = size.spread(Run::both_ns);
    let times = |value: fn(&Run) -> f64| size.median(value) / first.median(value);
    let whole = |value: f64| Cell::number(value, 0);
    vec![
        Cell::text(policy.name()),
        whole(size.urls as f64),
        whole(size.runs.len() as f64),
        whole(size.median(|run| run.push_ns)),
        whole(size.median(|run| run.pop_ns)),
        whole(size.median(Run::both_ns)),
        whole(least),
        whole(most),
        whole(size.median(|run| 2.0 * run.jobs_ns)),
        whole(size.median(Run::system_ns)),
        Cell::number(times(Run::both_ns), 2),
        Cell::number(times(Run::loop_ns), 2),
        Cell::number(size.median(|run| run.disk_bytes_per_url), 1),
        whole(size.median(|run| run.counted_mib)),
        whole(size.most(|run| run.rss_most_mib)),
        whole(size.runs.iter().map(|run| run.turns_over_5_ms).sum::<u64>() as f64),
        Cell::number(size.most(|run| run.longest_turn_us) / 1e3, 1),
    ]
}

fn runs_table(runs: &[Run]) -> Table {
    let mut header = vec![Column::text("policy")];
    let numbers = [
        ("URLs", ""),
        ("push", "ns"),
        ("pop", "ns"),
        ("jobs of each", "ns"),
        ("system of push", "ns"),
        ("system of pop", "ns"),
        ("on disk a URL", "bytes"),
        ("counted", "MiB"),
        ("resident", "MiB"),
        ("turns", ""),
        ("turns over 5 ms", ""),
        ("longest turn", "us"),
    ];
    header.extend(numbers.map(|(name, unit)| Column::number(name, unit)));
    let row = |run: &Run| {
        let numbers = [
            (run.urls as f64, 0),
            (run.push_ns, 0),
            (run.pop_ns, 0),
            (run.jobs_ns, 0),
            (run.push_system_ns, 0),
            (run.pop_system_ns, 0),
            (run.disk_bytes_per_url, 1),
            (run.counted_mib, 0),
            (run.rss_most_mib, 0),
            (run.turns as f64, 0),
            (run.turns_over_5_ms as f64, 0),
            (run.longest_turn_us, 0),
        ];
        let mut cells = vec![Cell::text(&run.policy)];
        cells.extend(numbers.map(|(value, decimals)| Cell::number(value, decimals)));
        cells
    };
    Table { header, rows: runs.iter().map(row).collect(), ..Table::default() }
}

/// In words, by policy: how the cost grows while all fits into memory, on the way to the disk, and
/// there.
fn told(sizes: &[(Policy, Vec<Size<'_>>)]) -> Vec<String> {
    sizes.iter().map(|(policy, sizes)| told_of(*policy, sizes)).collect()
}

fn told_of(policy: Policy, sizes: &[Size<'_>]) -> String {
    let (first, last) = (&sizes[0], &sizes[sizes.len() - 1]);
    let urls = |size: &Size<'_>| grouped(size.urls as f64, 0);
    let mut text =
        format!("{}: {:.2} times with {} URLs", policy.name(), grows(first, last), urls(last));
    let on_disk = sizes.iter().position(Size::is_on_disk);
    if let Some(at) = on_disk.filter(|at| *at > 0) {
        let (fits, spills) = (&sizes[at - 1], &sizes[at]);
        text.push_str(" (");
        if at > 1 {
            text.push_str(&format!("{:.2} up to {}, in memory; ", grows(first, fits), urls(fits)));
        }
        text.push_str(&format!("{:.2} to {}, some on disk", grows(fits, spills), urls(spills)));
        if at + 1 < sizes.len() {
            text.push_str(&format!("; {:.2} from there on", grows(spills, last)));
        }
        text.push(')');
    }
    text
}

fn grows(from: &Size<'_>, to: &Size<'_>) -> f64 {
    to.median(Run::both_ns) / from.median(Run::both_ns)
}

/// Twice the cost and a GiB are told, less isn't.
pub(super) fn test_faults() {
    let with = |urls: u64, pop_ns: f64, rss_most_mib: f64| Run {
        policy: "bfs".to_owned(),
        urls,
        push_ns: 500.0,
        pop_ns,
        push_system_ns: 0.0,
        pop_system_ns: 0.0,
        jobs_ns: 0.0,
        disk_bytes_per_url: 0.0,
        counted_mib: 0.0,
        rss_most_mib,
        turns: 1,
        turns_over_5_ms: 0,
        longest_turn_us: 0.0,
    };
    for (pop_ns, mib, expected) in
        [(1_490.0, 1_023.0, 0), (1_510.0, 1_023.0, 1), (500.0, 1_024.0, 1)]
    {
        let runs = [with(1, 500.0, 100.0), with(9, pop_ns, mib)];
        let sizes = runs.iter().map(|run| Size { urls: run.urls, runs: vec![run] });
        let faults = faults(&[(Policy::Bfs, sizes.collect())]);
        assert_eq!(faults.len(), expected, "{faults:?}");
    }
}

/// What is beyond what is allowed.
fn faults(sizes: &[(Policy, Vec<Size<'_>>)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (policy, sizes) in sizes {
        let name = policy.name();
        for size in sizes {
            let (times, mib) = (grows(&sizes[0], size), size.most(|run| run.rss_most_mib));
            let urls = grouped(size.urls as f64, 0);
            if times > GROWTH_MAX {
                faults.push(format!("{name}: {times:.2} times the cost with {urls} URLs"));
            }
            if mib >= MEMORY_MIB_MAX {
                faults.push(format!("{name}: {mib} MiB resident with {urls} URLs"));
            }
        }
    }
    faults
}
