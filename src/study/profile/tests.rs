//! Verdicts on steps made by hand, and their texts.

use super::figures::Drawn;
use super::step::{self, Step};
use super::{figures, files, show};
use crate::ground::stats::{Histogram, Stage};
use crate::os::signal::Cpu;
use crate::os::{Queued, Usage};
use crate::study::profile::verdict::Verdict;
use crate::study::report::html::Figure;
use std::collections::BTreeSet;
use std::time::Duration;

/// Returns a step of one second with this many pages and this share of a busy core, two thirds of
/// it for links.
fn step_of(connections: usize, pages: u64, busy: f64) -> Step {
    let busy_us = (busy * 1e6) as u64;
    let mut usage = Usage {
        wall: Duration::from_secs(1),
        looping: Cpu { user_us: busy_us * 3 / 4, system_us: busy_us - busy_us * 3 / 4 },
        ..Usage::default()
    };
    for (stage, thirds) in [(Stage::Links, 2), (Stage::Receive, 1)] {
        let usage = &mut usage.stages[stage as usize];
        usage.cpu_ns = busy_us * 1_000 * thirds / 3;
        (usage.wall_ns, usage.calls, usage.bytes) = (usage.cpu_ns, pages, pages * 16_700);
    }
    let mut lag_us = Histogram::default();
    lag_us.add(connections as u64 * 100);
    Step { connections, pages, bytes: pages * 16_700, usage, lag_us, ..Step::default() }
}

fn steps(all: &[(usize, u64, f64)]) -> Vec<Step> {
    all.iter().map(|&(connections, pages, busy)| step_of(connections, pages, busy)).collect()
}

#[test]
fn the_knee_and_the_full_core_are_found() {
    let grows = [(1, 100, 0.1), (2, 200, 0.2), (4, 400, 0.4)];
    let full = [(1, 100, 0.3), (4, 300, 0.8), (8, 390, 0.97), (16, 400, 0.99), (32, 399, 1.0)];
    let held = [(1, 100, 0.1), (2, 190, 0.2), (4, 200, 0.3), (8, 120, 0.2)];
    let cases: [(&[_], usize, Option<usize>, &[&str]); 4] = [
        (&grows, 2, None, &["still grows at 4 connections", "never full (40% busy at most"]),
        (
            &full,
            2,
            Some(2),
            &[
                "The core is full at 8 connections: 73% in user mode, 24% in the kernel.",
                "Beyond 8 connections throughput grows no further: 390 pages/s, 52.1 Mb/s, \
                 2,487.2 us of CPU a page.",
                "67% links, 33% receive",
                "Beyond the knee it stays: 100% with 32 connections.",
                "3.2 ms in 99 of 100 turns (the worst step: 32 connections)",
            ],
        ),
        (&held, 1, None, &["never full", "it falls: with 8 connections it is 60% of the maximum"]),
        (&[(1, 7, 0.95)], 0, Some(0), &["full at 1 connection:"]),
    ];
    for (all, knee, full, says) in cases {
        let verdict = Verdict::of(&steps(all));
        let words = verdict.words.join(" ");
        assert_eq!((verdict.knee, verdict.full), (knee, full), "{words}");
        for text in says {
            assert!(words.contains(text), "{text:?} is not in {words:?}");
        }
    }
}

#[test]
fn what_makes_numbers_unsure_is_said() {
    let mut all = steps(&[(1, 100, 0.5), (2, 200, 0.9)]);
    all[0].ran_dry = true;
    all[1].failed.lost = 3;
    // Metered for twice the thread's CPU time: another process had the core.
    all[1].usage.stages[Stage::Links as usize].wall_ns *= 2;
    let words = Verdict::of(&all).words.join(" ");
    for text in [
        "In 1 of 2 steps there was nothing left to fetch",
        "In 1 of 2 steps other programs took the core away",
        "3 requests got no reply.",
    ] {
        assert!(words.contains(text), "{text:?} is not in {words:?}");
    }
}

/// Whatever share of the core the loop got: if others had it while the loop had work, they are
/// named, and not the servers.
#[test]
fn a_core_that_was_taken_away_is_the_cause() {
    for busy in [0.05, 0.15, 0.5, 0.8] {
        let mut all = steps(&[(1, 100, busy / 2.0), (2, 200, busy)]);
        let quiet = Verdict::of(&all).words.join(" ");
        assert!(quiet.contains("was limited by the servers") && !quiet.contains("taken away"));
        // The loop had work for 95% of the time of the second step.
        let links = &mut all[1].usage.stages[Stage::Links as usize];
        links.wall_ns += ((0.95 - busy) * 1e9) as u64;
        let verdict = Verdict::of(&all);
        let words = verdict.words.join(" ");
        let says = format!(
            "It was taken away: with 2 connections the loop had work for 95% of the time, and the \
             core for {:.0}%. So that limited the crawl",
            busy * 100.0
        );
        assert!(words.contains(&says), "{says:?} is not in {words:?}");
        assert!(!words.contains("limited by the servers"), "{words}");
        assert!(words.contains("In 1 of 2 steps other programs took the core away"), "{words}");
    }
    // It waited for a core while it had work, but not for long.
    let mut all = steps(&[(1, 100, 0.1), (2, 200, 0.2)]);
    all[1].usage.queued = Queued { ns: 300_000_000, times: 100 };
    let words = Verdict::of(&all).words.join(" ");
    assert!(words.contains("work for 50% of the time, and the core for 20%"), "{words}");
    assert!(words.contains("that, among other things, limited"), "{words}");
    all[1].usage.queued = Queued { ns: 9_000_000, times: 0 };
    let words = Verdict::of(&all).words.join(" ");
    assert!(!words.contains("taken away"), "a hundredth of all time at least: {words}");
}

/// Time for which the meter ran and the thread did not is no share of the thread's time.
#[test]
fn no_share_is_above_the_whole() {
    let mut step = step_of(2, 200, 0.4);
    step.usage.stages[Stage::Links as usize].wall_ns *= 3;
    let verdict = Verdict::of(std::slice::from_ref(&step));
    let csv = show::whole(std::slice::from_ref(&step)).csv();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|head| *head == name).expect(name);
    assert_eq!(lines[1][column("metered_share")], "1");
    assert_eq!(lines[1][column("taken_us")], "533333");
    let text = files::about_stages(&step);
    assert!(text.contains(" 100.0% of it was metered"), "{text}");
    assert!(text.contains("For another 2,666.66 us a page the loop had work, but"), "{text}");
    let Drawn { figure: Figure::Bars(core), .. } = &figures::all(&[step], &verdict)[1] else {
        panic!("bars")
    };
    let sum: f64 = core.groups[0].amounts.iter().sum();
    assert!((sum - 1.0).abs() < 1e-5, "user, system, idle and taken are all time: {core:?}");
}

/// Figure 3 of the 2003 paper: a quarter of the servers accept one request, two thirds a hundred.
#[test]
fn limits_of_servers_are_drawn_by_class() {
    let accepted = [(24, 1), (4, 9), (3, 10), (2, 49), (1, 99), (66, 100), (3, 101), (1, 70_000)];
    let all = accepted.iter().flat_map(|&(servers, requests)| vec![requests; servers]);
    let mut steps = steps(&[(1, 100, 0.5), (2, 200, 0.9)]);
    let none = figures::all(&steps, &Verdict::of(&steps));
    assert!(none.iter().all(|drawn| drawn.file != "limits"), "no server has shown its limit");
    steps[0].accepted = step::classes_of(all);
    assert_eq!(steps[0].accepted, [24, 4, 5, 1, 66, 3, 1]);
    let verdict = Verdict::of(&steps);
    let words = verdict.words.join(" ");
    let says =
        "of the 104 servers that have shown their limit: 23.1% accept 1, 3.8% accept 2 to 9,";
    assert!(words.contains(says) && words.contains("63.5% accept 100,"), "{words}");
    let figures = figures::all(&steps, &verdict);
    let Some(Drawn { file: "limits", figure: Figure::Bars(bars) }) = figures.last() else {
        panic!("bars")
    };
    let shares: Vec<f64> = bars.groups.iter().map(|group| group.amounts[0] * 104.0).collect();
    assert!(
        shares
            .iter()
            .zip(steps[0].accepted)
            .all(|(got, servers)| (got - servers as f64).abs() < 1e-9),
        "{shares:?}"
    );
    let csv = show::whole(&steps).csv();
    assert!(csv.lines().nth(1).is_some_and(|row| row.ends_with(",24,4,5,1,66,3,1")), "{csv}");
}

/// A figure in which every stage has its bar.
#[test]
fn stages_of_a_figure_differ_in_colour() {
    let mut step = step_of(2, 200, 0.5);
    for stage in &mut step.usage.stages {
        stage.cpu_ns = 500_000_000 / Stage::ALL.len() as u64;
    }
    let verdict = Verdict::of(std::slice::from_ref(&step));
    let figures = figures::all(&[step], &verdict);
    let stages = figures.iter().find(|drawn| drawn.file == "stages").expect("drawn");
    let svg = stages.svg();
    let colours: Vec<&str> =
        svg.split(" color=\"").skip(1).map(|rest| rest.split('"').next().expect("one")).collect();
    let distinct: BTreeSet<&str> = colours.iter().copied().collect();
    // Each has its colour in the legend and in the bar.
    assert_eq!((colours.len(), distinct.len()), (2 * Stage::ALL.len(), Stage::ALL.len()));
}

#[test]
fn steps_that_find_more_are_said_to() {
    let mut all = steps(&[(1, 100, 0.3), (2, 400, 0.9), (4, 400, 1.0)]);
    for (step, urls_new) in all.iter_mut().zip([2_000, 1_200, 1_400]) {
        step.urls_new = urls_new;
    }
    assert!(unequal_of(&all).is_none(), "before the knee the crawl has just begun");
    all[2].urls_new = 2_400;
    assert!(unequal_of(&all).is_some_and(|text| text.contains("leads to 3.0 to 6.0 new URLs")));
    let found: Vec<String> = show::summary(&all)
        .csv()
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth_back(1).expect("a column").to_owned())
        .collect();
    assert_eq!(found, ["20", "3", "6"]);
}

fn unequal_of(steps: &[Step]) -> Option<String> {
    let words = Verdict::of(steps).words;
    words.into_iter().find(|text| text.contains("new URLs"))
}

#[test]
fn a_lab_that_is_full_is_reported() {
    let mut all = steps(&[(1, 100, 0.3), (2, 400, 0.9), (4, 400, 1.0)]);
    let of_lab =
        |all: &[Step]| Verdict::of(all).words.into_iter().find(|text| text.contains("lab"));
    assert_eq!(of_lab(&all), None, "there was none");
    for (step, lab_us) in all.iter_mut().zip([100_000, 850_000, 970_000]) {
        step.lab_us = Some(lab_us);
    }
    assert!(of_lab(&all).is_some_and(|text| text.contains("with 4 connections (97%)")));
    assert!(show::summary(&all).csv().ends_with(",97\n"), "{}", show::summary(&all).csv());
    all[2].lab_us = Some(890_000);
    assert_eq!(of_lab(&all), None);
}

#[test]
fn a_step_is_the_median_of_its_repeats() {
    let all = steps(&[(1, 90, 0.3), (2, 180, 0.9), (1, 110, 0.3), (2, 150, 1.0), (1, 100, 0.3)]);
    let medians = step::medians(&all, &[1, 2]);
    let rows: Vec<_> = medians.iter().map(|step| (step.pages, step.spread)).collect();
    assert_eq!(rows, [(100, Some((90.0, 110.0))), (150, Some((150.0, 180.0)))]);
    assert_eq!(step::medians(&all[..1], &[1])[0].spread, None, "one is no spread");
    let verdict = Verdict::of(&medians);
    let words = verdict.words.join(" ");
    assert!(words.contains("differ by up to 22% (with 1 connection)"), "{words}");
    assert_eq!(
        show::summary(&medians).csv().lines().nth(2).map(|row| row.ends_with("150,180")),
        Some(true)
    );
    let figures = figures::all(&medians, &verdict);
    let Drawn { figure: Figure::Chart(chart), .. } = &figures[0] else { panic!("a chart") };
    assert_eq!(chart.series[0].band, Some(vec![(1.0, 90.0, 110.0), (2.0, 150.0, 180.0)]));
}

/// Tables and figures contain the numbers that were measured.
#[test]
fn tables_and_figures_hold_the_numbers() {
    let all = steps(&[(1, 100, 0.5), (2, 200, 0.9)]);
    let verdict = Verdict::of(&all);
    let csv = show::whole(&all).csv();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let column = |name: &str| lines[0].iter().position(|head| *head == name).expect(name);
    let value = |row: usize, name: &str| lines[row][column(name)];
    assert_eq!((value(2, "connections"), value(2, "pages")), ("2", "200"));
    assert_eq!(value(1, "links_cpu_ns"), "333333333");
    assert_eq!(value(1, "receive_bytes"), "1670000");
    for drawn in figures::all(&all, &verdict) {
        let svg = drawn.svg();
        assert!(svg.contains("</svg>") && !svg.contains("NaN"), "{}", drawn.file);
    }
    let stages = show::stages(&all[1]).text();
    assert!(stages.contains("links") && stages.contains("66.7"), "{stages}");
}
