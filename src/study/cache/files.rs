//! Writes the files of a cache study: the report, the figures, the tables.

use super::curves::{self, Drawn};
use super::reading::Reading;
use super::show::{self, streams};
use super::study::Study;
use super::{Asked, agree};
use crate::commands::Failure;
use crate::study::output;
use crate::study::report::html::{Block, Figure, Page};
use std::path::Path;

/// Writes all files of a study into `directory`.
///
/// # Errors
/// The first file that could not be written, with its name.
pub(super) fn write(directory: &Path, studies: &[Study], asked: &Asked) -> Result<(), Failure> {
    let put = |name: &str, text: &str| output::put(directory, name, text);
    put("misses.csv", &show::all_misses(studies).csv())?;
    put("time.csv", &show::over_time(studies, asked).csv())?;
    let of_all = if studies.len() > 1 { curves::of_all(studies) } else { Vec::new() };
    let of_each: Vec<Vec<Drawn>> =
        studies.iter().map(|study| curves::of_trace(study, asked)).collect();
    for Drawn { file, chart } in of_all.iter().chain(of_each.iter().flatten()) {
        put(&format!("{file}.svg"), &chart.svg())?;
    }
    put("report.html", &report(studies, of_all, of_each, asked).html())
}

fn report(studies: &[Study], of_all: Vec<Drawn>, of_each: Vec<Vec<Drawn>>, asked: &Asked) -> Page {
    let mut blocks = vec![
        Block::Heading("Traces".to_owned()),
        Block::Table(show::traces(studies)),
        Block::Text(show::TRACES_LEGEND.to_owned()),
    ];
    if !of_all.is_empty() {
        blocks.push(Block::Heading("Size of the cache and connections".to_owned()));
        blocks.extend(agree::text(studies).map(Block::Text));
        // Figures of the two streams side by side.
        let mut of_all = of_all.into_iter().peekable();
        while of_all.peek().is_some() {
            blocks.push(figures(of_all.by_ref().take(2).collect()));
        }
    }
    for (study, drawn) in studies.iter().zip(of_each) {
        blocks.push(Block::Heading(study.name.clone()));
        for ((name, _), curves) in streams(study) {
            let text = Reading::of(curves).text(study.connections());
            blocks.push(Block::Text(format!("{}: {text}", capital(name))));
        }
        blocks.push(figures(drawn));
        let tables = streams(study).into_iter();
        let tables = tables.map(|((name, _), curves)| show::rates(study, name, curves));
        blocks.push(Block::Details {
            summary: format!("All miss rates of {}", study.name),
            blocks: tables.map(Block::Table).collect(),
        });
    }
    blocks.push(Block::Heading("How to read it".to_owned()));
    blocks.push(Block::Text(HOW.to_owned()));
    let title = "Caches of known URLs".to_owned();
    Page { title, lead: lead(studies, asked), blocks }
}

fn figures(drawn: Vec<Drawn>) -> Block {
    Block::Figures(drawn.into_iter().map(|drawn| Figure::Chart(drawn.chart)).collect())
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn lead(studies: &[Study], asked: &Asked) -> String {
    let links: u64 = studies.iter().map(|study| study.facts.links).sum();
    let traces = match studies.len() {
        1 => "one trace".to_owned(),
        count => format!("{count} traces"),
    };
    format!(
        "{} links of {traces}, replayed by sted {} through caches of all sizes under six policies. \
         Links across lead to another of {} processes, over which hosts are distributed by hash.",
        crate::study::report::number::grouped(links as f64, 0),
        env!("CARGO_PKG_VERSION"),
        asked.processes
    )
}

/// Explanations of terms such as the policies and the critical region, for the end of the report.
const HOW: &str = "\
    INFINITE is a cache with room for all: its misses are the first links to each URL. MIN \
    knows the future and evicts the URL whose next link is last. LRU evicts the one whose last \
    link is oldest, CLOCK approximates LRU, RANDOM evicts a random one; CLOCK and RANDOM are the \
    crawler's own cache. STATIC holds the most frequent URLs of the whole trace from the start, \
    which does not count as misses, so it may beat MIN.\n\n\
    The critical region is the doubling of the size that reduces CLOCK's miss rate most, and \
    its neighbours as long as each reduces it at least half as much. A plateau is a run of \
    doublings before it that reduce it by less than two points each. A size suffices if it \
    misses at most 20% of all links, or at most 1.1 times what an unlimited cache misses.\n\n\
    After A. Z. Broder, M. Najork, J. L. Wiener: Efficient URL Caching for World Wide Web \
    Crawling, WWW 2003. All numbers are in misses.csv and time.csv beside this file.";
