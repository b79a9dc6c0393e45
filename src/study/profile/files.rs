//! Writes the files of a profile: the report, the figures, the table, the configuration.

use super::figures::{self, Drawn};
use super::step::Step;
use super::verdict::Verdict;
use super::{flame, show};
use crate::commands::Failure;
use crate::conf::Conf;
use crate::study::output;
use crate::study::report::html::{Block, Page};
use crate::study::report::number::grouped;
use std::path::Path;

/// The results of a profile.
pub(super) struct Results<'a> {
    /// Every step that was run.
    pub(super) all: &'a [Step],
    /// For each number of connections, the step with the median throughput.
    pub(super) steps: &'a [Step],
    /// The verdict on the median steps.
    pub(super) verdict: &'a Verdict,
}

/// Writes all files of a profile into `directory`. `path` names the configuration in the report;
/// `has_flame` says whether a flame graph was drawn.
///
/// # Errors
/// A file could not be written: the first one is reported.
pub(super) fn write(
    directory: &Path,
    conf: &Conf,
    path: &Path,
    results: &Results<'_>,
    has_flame: bool,
) -> Result<(), Failure> {
    let Results { all, steps, verdict } = results;
    let put = |name: &str, text: &str| output::put(directory, name, text);
    let drawn = figures::all(steps, verdict);
    put("conf.toml", &conf.render())?;
    put("steps.csv", &show::whole(all).csv())?;
    for drawn in &drawn {
        put(&format!("{}.svg", drawn.file), &drawn.svg())?;
    }
    put("report.html", &report(conf, path, steps, verdict, drawn, has_flame).html())
}

fn report(
    conf: &Conf,
    path: &Path,
    steps: &[Step],
    verdict: &Verdict,
    drawn: Vec<Drawn>,
    has_flame: bool,
) -> Page {
    let knee = &steps[verdict.full.unwrap_or(verdict.knee)];
    let what = if verdict.full.is_some() { "where the core is full" } else { "at the knee" };
    let mut blocks = vec![
        Block::Text(verdict.words.join("\n\n")),
        Block::Figures(drawn.into_iter().map(|drawn| drawn.figure).collect()),
        Block::Heading("Steps".to_owned()),
        Block::Table(show::summary(steps)),
        Block::Heading(format!("Stages {what}")),
        Block::Text(format!(
            "With {} connections. CPU time is that of the loop's thread, shared among stages in \
             proportion to their wall time, the poller's measured. Metered time is {} of it, \
             metering takes {} of it. Beside the loop, jobs took {} us a page, names {}.",
            knee.connections,
            crate::study::report::number::percent(knee.usage.accounted(), 1),
            crate::study::report::number::percent(knee.usage.metering(), 1),
            grouped(knee.usage.jobs_us as f64 / knee.pages.max(1) as f64, 2),
            grouped(knee.usage.names_us as f64 / knee.pages.max(1) as f64, 2),
        )),
        Block::Table(show::stages(knee)),
    ];
    if has_flame {
        blocks.push(Block::Text(format!(
            "Function by function: {} beside this file, sampled in a crawl of its own with as many \
             connections.",
            flame::FILE
        )));
    }
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
