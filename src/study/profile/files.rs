//! Writes the files of a profile: the report, the figures, the table, the configuration.

use super::figures::{self, Drawn};
use super::step::Step;
use super::verdict::Verdict;
use super::{flame, show};
use crate::commands::Failure;
use crate::conf::Conf;
use crate::study::output;
use crate::study::report::html::{Block, Page};
use crate::study::report::number::{grouped, percent};
use std::path::{Path, PathBuf};

/// The results of a profile.
pub(super) struct Results<'a> {
    /// Every step that was run.
    pub(super) all: &'a [Step],
    /// For each number of connections, the step with the median throughput.
    pub(super) steps: &'a [Step],
    /// The verdict on the median steps.
    pub(super) verdict: &'a Verdict,
    /// The file of the flame graph, or why there is none; `None` if none was asked for.
    pub(super) graph: Option<&'a Result<PathBuf, String>>,
}

/// Writes all files of a profile into `directory`. `path` names the configuration in the report.
///
/// # Errors
/// A file could not be written: the first one is reported.
pub(super) fn write(
    directory: &Path,
    conf: &Conf,
    path: &Path,
    results: &Results<'_>,
) -> Result<(), Failure> {
    let put = |name: &str, text: &str| output::put(directory, name, text);
    let drawn = figures::all(results.steps, results.verdict);
    put("conf.toml", &conf.render())?;
    put("steps.csv", &show::whole(results.all).csv())?;
    for drawn in &drawn {
        put(&format!("{}.svg", drawn.file), &drawn.svg())?;
    }
    put("report.html", &report(conf, path, results, drawn).html())
}

fn report(conf: &Conf, path: &Path, results: &Results<'_>, drawn: Vec<Drawn>) -> Page {
    let Results { steps, verdict, graph, .. } = results;
    let knee = &steps[verdict.full.unwrap_or(verdict.knee)];
    let what = if verdict.full.is_some() { "where the core is full" } else { "at the knee" };
    let mut blocks = vec![
        Block::Text(verdict.words.join("\n\n")),
        Block::Figures(drawn.into_iter().map(|drawn| drawn.figure).collect()),
        Block::Heading("Steps".to_owned()),
        Block::Table(show::summary(steps)),
        Block::Heading(format!("Stages {what}")),
        Block::Text(about_stages(knee)),
        Block::Table(show::stages(knee)),
    ];
    blocks.extend(graph.map(|graph| {
        Block::Text(match graph {
            Ok(_) => format!(
                "Function by function: {} beside this file, sampled in a crawl of its own with as \
                 many connections.",
                flame::FILE
            ),
            Err(why) => format!("There is no flame graph: {why}."),
        })
    }));
    blocks.push(Block::Heading("How to repeat it".to_owned()));
    blocks.push(Block::Text(
        "Times are of this machine, and of what else ran on it. All numbers are in steps.csv \
         beside this file."
            .to_owned(),
    ));
    blocks.push(Block::Code(format!("sted profile {}", path.display())));
    blocks.push(Block::Details {
        summary: "The whole configuration".to_owned(),
        blocks: vec![Block::Code(conf.render())],
    });
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Page { title: format!("Where the core is full: {stem}"), lead: lead(conf), blocks }
}

/// Says what the table of a step's stages contains, and what it doesn't.
pub(super) fn about_stages(step: &Step) -> String {
    let usage = &step.usage;
    let page_us = |us: u64| grouped(us as f64 / step.pages.max(1) as f64, 2);
    let mut text = format!(
        "With {} connections. CPU time is that of the loop's thread, shared among stages in \
         proportion to their wall time, the poller's measured. {} of it was metered, metering \
         takes {} of it. Beside the loop, jobs took {} us a page, names {}.",
        step.connections,
        percent(usage.accounted(), 1),
        percent(usage.metering(), 1),
        page_us(usage.jobs_us),
        page_us(usage.names_us),
    );
    if usage.taken_us() > 0 {
        text += &format!(
            " For another {} us a page the loop had work, but other programs had the core: that \
             time is in no stage.",
            page_us(usage.taken_us())
        );
    }
    text
}

/// Returns the introduction: what was crawled.
fn lead(conf: &Conf) -> String {
    let web = match &conf.lab {
        Some(_) => {
            let [pages, hosts] = [conf.web.pages, conf.web.hosts].map(f64::from);
            format!(
                "A synthetic web of {} pages on {} hosts, served on this machine",
                grouped(pages, 0),
                grouped(hosts, 0)
            )
        }
        None => "The web of the configured seeds".to_owned(),
    };
    format!(
        "{web}, crawled by sted {} with increasing numbers of open connections. It shows \
         what the crawler costs its core; it shows nothing about the open web.",
        env!("CARGO_PKG_VERSION")
    )
}
