//! Reports as their readers get them: a small chart and a table, compared byte by byte, and a page
//! for inspection.

use crate::util;
use std::fs;
use sted::study::report::bars::{Bars, Group};
use sted::study::report::chart::{Chart, Mark, Series};
use sted::study::report::html::{Block, Figure, Page};
use sted::study::report::number::Format;
use sted::study::report::scale::Axis;
use sted::study::report::table::{Best, Cell, Column, Table};

/// The policies of the demonstration page.
const POLICIES: [&str; 4] = ["bfs", "performance", "quality", "capability"];

#[test]
fn a_small_chart_is_drawn_as_ever() {
    let mut chart = Chart::new(
        "Quality over pages",
        Axis::linear("pages", Format::Count),
        Axis::linear("share of all quality", Format::Share),
    );
    chart.subtitle = "A web of 30,000 pages".to_owned();
    let points = |rise: f64| (0..=8).map(|i| (f64::from(i * 3_000), quality(i, rise))).collect();
    chart.series = vec![Series::line("bfs", points(0.2)), Series::marked("quality", points(0.9))];
    chart.series[0].band =
        Some((0..=8).map(|i| (f64::from(i * 3_000), quality(i, 0.1), quality(i, 0.3))).collect());
    chart.marks = vec![Mark::y(0.8, "80%")];
    util::golden("report-chart.svg", &chart.svg());
}

/// A curve from (0, 0) to (10, 1): a straight line for a rise of 0, a corner for 1. It uses no
/// transcendental function, so that every machine computes the same digits.
fn quality(i: i32, rise: f64) -> f64 {
    let x = f64::from(i) / 10.0;
    x / (x + (1.0 - x) * (1.0 - rise))
}

#[test]
fn a_small_table_is_written_as_ever() {
    util::golden("report-table.txt", &results().text());
    util::golden("report-table.csv", &results().csv());
}

fn results() -> Table {
    let row = |name: &str, hours: f64, pages: f64, quality: f64| {
        vec![
            Cell::text(name),
            Cell::number(hours, 2),
            Cell::number(pages, 0),
            Cell::number(quality, 1),
        ]
    };
    Table {
        caption: "At a third of the time that breadth-first takes".to_owned(),
        header: vec![
            Column::text("policy"),
            Column::number("time", "h").with_best(Best::Lowest),
            Column::number("pages", "").with_best(Best::Highest),
            Column::number("quality", "%").with_best(Best::Highest),
        ],
        rows: vec![
            row("bfs", 1.413_2, 9_412.0, 38.2),
            row("performance", 0.92, 17_208.0, 55.0),
            row("quality", 1.5, 8_810.0, 61.9),
            vec![Cell::text("capability"), Cell::number(0.97, 2), Cell::number(16_320.0, 0)],
        ],
    }
}

/// Writes a page with all kinds of blocks for inspection, and prints its path.
#[test]
#[ignore = "for eyes: open the file it names"]
fn a_page_to_look_at() {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html");
    fs::write(path, demonstration().html()).expect("a folder for files of tests");
    println!("{path}");
    let svg = concat!(env!("CARGO_TARGET_TMPDIR"), "/report.svg");
    fs::write(svg, curves("Pages over time", &["time", "pages"]).svg()).expect("a file");
    println!("{svg}");
    println!("{}", results().text());
}

fn demonstration() -> Page {
    let quality_over_time = curves("Quality over time", &["time", "quality"]);
    let quality_over_pages = curves("Quality over pages", &["pages", "quality"]);
    Page {
        title: "Four policies on the web of 2003".to_owned(),
        lead: "500 servers, 30,000 pages, 64 connections: what each policy has fetched by when, \
               and how much of the quality of the web is in it."
            .to_owned(),
        blocks: vec![
            Block::Table(results()),
            Block::Heading("Pages".to_owned()),
            Block::Text(
                "Each line is the mean of 10 webs of the same description; bands span the least \
                 and the most of them. Time counts up to breadth-first's 95% of pages."
                    .to_owned(),
            ),
            Block::Chart(curves("Pages over time", &["time", "pages"])),
            Block::Heading("Quality".to_owned()),
            Block::Figures(vec![
                Figure::Chart(quality_over_pages),
                Figure::Chart(quality_over_time),
            ]),
            Block::Heading("Processor".to_owned()),
            Block::Figures(vec![Figure::Bars(processor()), Figure::Chart(cache())]),
            Block::Bars(processor()),
            Block::Chart(cache()),
            Block::Heading("How it was made".to_owned()),
            Block::Code("sted compare conf/compare-2003.toml --seed 7".to_owned()),
            Block::Details {
                summary: "The configuration".to_owned(),
                blocks: vec![Block::Code("[web]\nservers = 500\npages = 30000\n".to_owned())],
            },
        ],
    }
}

/// Returns curves like those of a comparison of policies.
fn curves(title: &str, [x, y]: &[&str; 2]) -> Chart {
    let axis = |name: &str| match name {
        "time" => Axis::linear("seconds", Format::Count),
        "quality" => Axis::linear("share of all quality", Format::Share),
        _ => Axis::linear("pages fetched", Format::Count),
    };
    let mut chart = Chart::new(title, axis(x), axis(y));
    chart.subtitle = "64 connections, politeness of 1 s after each visit".to_owned();
    let rises = [0.1, 0.5, 0.3, 0.6];
    for (policy, rise) in POLICIES.iter().zip(rises) {
        let value = |name: &str, share: f64, rise: f64| match name {
            "time" => share * 5_100.0 / (1.0 + rise * 0.9),
            "quality" => {
                let rise = if *policy == "bfs" || *policy == "performance" { 0.1 } else { 0.8 };
                share / (share + (1.0 - share) * (1.0 - rise))
            }
            _ => 28_500.0 * share / (share + (1.0 - share) * (1.0 - rise)),
        };
        let places = (0..=3_000).map(|i| f64::from(i) / 3_000.0);
        let points = places.clone().map(|at| (value(x, at, rise), value(y, at, rise))).collect();
        let mut series = Series::line(policy, points);
        if *y == "pages" {
            let spread = |at: f64| value(y, at, rise) * 0.06 * (1.0 - at);
            let around = |at: f64| {
                let middle = value(y, at, rise);
                (value(x, at, rise), middle - spread(at), middle + spread(at))
            };
            series.band = Some(places.map(around).collect());
        }
        chart.series.push(series);
    }
    if *x == "time" {
        chart.marks.push(Mark::x(5_100.0 / 3.0, "a third of the time"));
        chart.marks.push(Mark::x(5_100.0 / 2.0, "half"));
    }
    if *y == "quality" {
        chart.marks.push(Mark::y(0.8, "80% of quality"));
    }
    chart
}

fn processor() -> Bars {
    let group = |connections: i32| {
        let busy = f64::from(connections) / f64::from(connections + 12);
        let amounts = vec![busy * 0.55, busy * 0.4, 1.0 - busy * 0.95];
        Group { label: connections.to_string(), amounts }
    };
    Bars {
        title: "Where the time of the core goes".to_owned(),
        subtitle: "By open connections".to_owned(),
        x_label: "open connections".to_owned(),
        y: Axis::linear("share of time", Format::Share),
        parts: ["user", "system", "idle"].map(str::to_owned).to_vec(),
        groups: [1, 2, 4, 8, 16, 32, 64].map(group).to_vec(),
    }
}

/// Returns hit rates like those of a replayed trace.
fn cache() -> Chart {
    let mut chart = Chart::new(
        "Hit rate over cache size",
        Axis::log2("entries", Format::Count),
        Axis::linear("hit rate", Format::Share),
    );
    chart.subtitle = "Per algorithm; a million URLs".to_owned();
    for (name, good) in
        [("infinite", 0.9), ("min", 0.8), ("lru", 0.6), ("clock", 0.58), ("random", 0.2)]
    {
        let rate = |power: i32| {
            let size = f64::from(power - 5) / 14.0;
            (f64::from(power).exp2(), 0.9 * size / (size + (1.0 - size) * (1.0 - good)))
        };
        chart.series.push(Series::marked(name, (6..=17).map(rate).collect()));
    }
    chart.series[0].points.iter_mut().for_each(|point| point.1 = 0.95);
    chart
}
