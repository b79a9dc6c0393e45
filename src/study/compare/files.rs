//! Writes the files of a comparison: the report, the figures, the tables, the configuration.

use super::curves::{self, Drawn};
use super::paired;
use super::results::Results;
use super::series::Run;
use super::show;
use crate::commands::Failure;
use crate::conf::{Conf, Over, Source, Worth};
use crate::study::output;
use crate::study::report::html::{Block, Figure, Page};
use crate::study::report::number::grouped;
use crate::study::report::table::{Cell, Column, Table};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes all files of a comparison into `directory`. `path` is the configuration that the report
/// names.
///
/// # Errors
/// The first file that could not be written.
pub(super) fn write(
    directory: &Path,
    conf: &Conf,
    path: &Path,
    results: &Results<'_>,
) -> Result<(), Failure> {
    let put = |name: &str, text: &str| output::put(directory, name, text);
    let drawn = curves::all(results);
    put("conf.toml", &format!("# Made by {}.\n{}", output::version(), conf.render()))?;
    put("summary.csv", &show::whole_summary(results).csv())?;
    put("paired.csv", &paired::whole_table(results).csv())?;
    for Drawn { file, chart, .. } in &drawn {
        put(&format!("{file}.svg"), &chart.svg())?;
    }
    put("report.html", &report(conf, path, results, drawn).html())?;
    let path = directory.join("series.csv");
    let written = fs::File::create(&path).and_then(|file| {
        let mut out = BufWriter::new(file);
        series(results, &mut out).and_then(|()| out.flush())
    });
    written.map_err(|error| output::failed(&path, &error))
}

/// Writes every sample of every crawl as CSV, one per line. Times are in seconds since the start of
/// the crawl.
fn series(results: &Results<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "variant,value,repeat,policy,seconds,pages,quality,requests,bytes,connections,\
         core_busy_seconds,fresh,age_seconds"
    )?;
    for Run { spec, series, .. } in results.runs {
        let names = Table {
            header: vec![Column::text(""); 4],
            rows: vec![vec![
                Cell::text(&results.plan.variants[spec.variant]),
                Cell::text(results.plan.value_name(spec.value)),
                Cell::number(f64::from(spec.repeat + 1), 0),
                Cell::text(spec.policy.name()),
            ]],
            ..Table::default()
        };
        let names = names.csv();
        let names = names.lines().nth(1).unwrap_or_default();
        for sample in series.samples() {
            let (whole, part) =
                (sample.quality_millionths / 1_000_000, sample.quality_millionths % 1_000_000);
            writeln!(
                out,
                "{names},{},{},{whole}.{part:06},{},{},{},{},{:.6},{:.3}",
                sample.seconds,
                sample.pages,
                sample.requests,
                sample.bytes,
                sample.connections,
                sample.busy_seconds,
                sample.fresh,
                sample.age
            )?;
        }
    }
    Ok(())
}

fn report(conf: &Conf, path: &Path, results: &Results<'_>, drawn: Vec<Drawn>) -> Page {
    let mut blocks =
        vec![Block::Heading("Summary".to_owned()), Block::Table(show::summary(results))];
    blocks.extend(show::summary_by_expense(results).map(Block::Table));
    blocks.extend(show::paired_summary(results).map(Block::Table));
    blocks.push(Block::Text(show::legend(results, "\n\n")));
    if results.plan.repeats > 1 {
        blocks.push(Block::Table(show::ranges(results)));
    }
    blocks.extend(results.graphs.iter().map(|graph| Block::Text(graph.clone())));
    let of_curves = curves_of(drawn);
    if results.plan.sweep.is_some() {
        // The table of a sweep is long, and its curves show the same.
        blocks.splice(0..0, of_curves);
    } else {
        blocks.extend(of_curves);
    }
    blocks.push(Block::Heading("How to repeat it".to_owned()));
    blocks.push(Block::Text(
        "The same configuration and version give the same files to the byte, but for the version \
         itself. All samples are in series.csv, \
         all figures by repeat with medians and ranges in summary.csv, differences between \
         policies in paired.csv, beside this file."
            .to_owned(),
    ));
    blocks.push(Block::Code(format!("sted compare {}", path.display())));
    blocks.push(Block::Text(format!("Made by {}.", output::version())));
    blocks.push(Block::Details {
        summary: "The whole configuration".to_owned(),
        blocks: vec![Block::Code(conf.render())],
    });
    let title = format!("Crawl policies compared: {}", stem(path));
    Page { title, lead: lead(conf, results), blocks }
}

/// Returns a section for each variant with its figures: the most important one large, the others
/// side by side.
fn curves_of(drawn: Vec<Drawn>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut drawn = drawn.into_iter().peekable();
    while let Some(first) = drawn.next() {
        let heading = if first.about.is_empty() { "Curves" } else { &first.about };
        blocks.push(Block::Heading(heading.to_owned()));
        blocks.push(Block::Chart(first.chart));
        let mut beside = Vec::new();
        while let Some(next) = drawn.next_if(|next| next.about == first.about) {
            beside.push(Figure::Chart(next.chart));
        }
        blocks.push(Block::Figures(beside));
    }
    blocks
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the introduction: what was done, in two sentences.
fn lead(conf: &Conf, results: &Results<'_>) -> String {
    let plan = results.plan;
    let (web, over) = (&conf.web, conf.compare.as_ref().map(|compare| compare.over));
    let place = match &web.graph {
        Some(folder) => format!("The link graph {}", folder.display()),
        None => {
            let (pages, hosts) = (f64::from(web.pages), f64::from(web.hosts));
            let (pages, hosts) = (grouped(pages, 0), grouped(hosts, 0));
            format!("A synthetic web of {pages} pages on {hosts} hosts")
        }
    };
    let world = match over {
        Some(Over::Sockets) => "over real sockets",
        _ => "in simulation",
    };
    let quality = match conf.compare.as_ref().map(|compare| compare.quality) {
        Some(Worth::Zipf) => "Page qualities follow Zipf's law and are assigned at random.",
        Some(Worth::Topical) => {
            "Page qualities run along links: a page resembles its site and the page that links to \
             it."
        }
        Some(Worth::Crawl) => "Page qualities are the crawl's own estimates.",
        _ => "The quality of a page is its PageRank.",
    };
    let source = conf.quality.source;
    let quality = match (source, conf.compare.as_ref().map(|compare| compare.quality)) {
        (Source::Uniform, _) | (_, Some(Worth::Crawl) | None) => quality.to_owned(),
        (Source::Parent, _) => format!(
            "{quality} The crawls know it of a page once it is fetched, and estimate that of its \
             links by it (parent)."
        ),
        (source, _) => {
            let name = source.name();
            format!("{quality} The crawls don't know it and use their own estimates ({name}).")
        }
    };
    let policies: Vec<&str> = plan.policies.iter().map(|policy| policy.name()).collect();
    let repeats = match plan.repeats {
        1 => String::new(),
        repeats => format!(", {repeats} times with other seeds"),
    };
    format!("{place}, crawled {world} under {}{repeats}. {quality}", policies.join(", "))
}
