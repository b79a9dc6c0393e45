//! The files that a configuration names: read, or every mistake in them told.

use super::{Exit, Failure};
use crate::conf::Conf;
use crate::os::input;
use crate::rating::{Rating, Table};
use crate::seeds::{self, Parsed, Seed};
use crate::url::Limits;
use crate::web::graph::{Cut, Graph, unpack_xz};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest array of a link graph, bytes: as many numbers as 32 bits can count.
const GRAPH_BYTES_MAX: usize = 16 << 30;

/// Longest file of a link graph, compressed or not, bytes.
const GRAPH_FILE_BYTES_MAX: u64 = 16 << 30;
/// Longest table of qualities, bytes.
const TABLE_BYTES_MAX: u64 = 16 << 30;
/// Longest file of seeds, bytes: some ten million URLs.
const SEEDS_BYTES_MAX: u64 = 1 << 30;

/// The two files of a link graph: how many links each page has, and where they lead. Each may be
/// compressed; the plain one goes first.
pub(super) fn graph_files(folder: &Path) -> [PathBuf; 2] {
    ["outdeg.u32", "dst.u32"].map(|name| {
        let (plain, packed) = (folder.join(name), folder.join(format!("{name}.xz")));
        if !plain.exists() && packed.exists() { packed } else { plain }
    })
}

/// The link graph in a folder.
pub(super) fn graph(folder: &Path) -> Result<Graph, Failure> {
    let wrong = |place: &Path, why: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("web.graph: {}: {why}", place.display()))
    };
    let read = |file: &PathBuf| {
        let bytes = input::read(file, GRAPH_FILE_BYTES_MAX).map_err(|error| wrong(file, &error))?;
        if file.extension().is_some_and(|extension| extension == "xz") {
            return unpack_xz(&bytes, GRAPH_BYTES_MAX).map_err(|flaw| wrong(file, &flaw));
        }
        Ok(bytes)
    };
    let [degrees, targets] = graph_files(folder);
    let (degrees, targets) = (read(&degrees)?, read(&targets)?);
    Graph::read(&degrees, &targets, Cut::default()).map_err(|flaw| wrong(folder, &flaw))
}

/// The table of qualities that the configuration names, if it names one. `key` is the crawl's.
pub(super) fn qualities(conf: &Conf, key: [u8; 16]) -> Result<Option<Arc<Table>>, Failure> {
    let Some(file) = &conf.quality.file else { return Ok(None) };
    let name = file.display();
    let text = input::read(file, TABLE_BYTES_MAX)
        .map_err(|error| Failure::new(Exit::Usage, format!("quality.file: {name}: {error}")))?;
    let limits = Limits { url_bytes_max: conf.scope.url_bytes_max };
    let table = Table::parse(&text, key, limits).map_err(|mistakes| {
        let told = mistakes.list.iter();
        let mut lines: Vec<String> = told
            .map(|mistake| {
                format!("{name}:{}: {:?}: {}", mistake.line, mistake.text, mistake.reason)
            })
            .collect();
        if mistakes.untold > 0 {
            lines.push(format!("{name}: and {} mistakes more", mistakes.untold));
        }
        Failure::new(Exit::Usage, lines.join("\n"))
    })?;
    if table.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("quality.file: {name}: has no entry")));
    }
    warn_if(table.repeats(), |count| {
        format!("{name}: {count} lines say again what another said of the same; the last counts")
    });
    warn_if(table.zeroed(), |count| {
        format!("{name}: {count} qualities are so small that they are taken for 0; scale them up")
    });
    Ok(Some(Arc::new(table)))
}

/// Says what of the table a crawl did not meet, and what it met that the table has not.
pub(super) fn warn_of_table(conf: &Conf, rating: &Rating) {
    let Some(file) = &conf.quality.file else { return };
    let name = file.display();
    warn_if(rating.unused() as u64, |count| {
        format!("{name}: {count} entries stand for no URL that the crawl has met")
    });
    warn_if(rating.unlisted(), |count| {
        let unlisted = conf.quality.unlisted;
        format!("{name}: {count} URLs are not in it, and were taken to be worth {unlisted}")
    });
}

fn warn_if(count: u64, text: impl Fn(u64) -> String) {
    if count > 0 {
        log::warn!("{}", text(count));
    }
}

/// Mistakes of a seed file that are reported one by one.
const MISTAKES_TOLD: usize = 10;

/// The seeds of the configuration and of the file it names. Lines that give none are warned of: the
/// first ten and their number.
///
/// # Errors
/// The file can't be read, or there is no seed.
pub(super) fn seeds(conf: &Conf) -> Result<Vec<Seed>, Failure> {
    let mut wrong = Vec::new();
    let listed = seeds::parse_file(conf.job.seeds.join("\n").as_bytes());
    report("job.seeds", &listed, &mut wrong);
    let mut all = listed.seeds;
    if let Some(file) = &conf.job.seeds_file {
        let name = file.display().to_string();
        let text = input::read(file, SEEDS_BYTES_MAX).map_err(|error| {
            Failure::new(Exit::Usage, format!("job.seeds_file: {name}: {error}"))
        })?;
        let filed = seeds::parse_file(&text);
        report(&name, &filed, &mut wrong);
        all.extend(filed.seeds);
    }
    // A seed file of millions may have its blemishes; a crawl without a seed makes no sense.
    if all.is_empty() {
        wrong.push("job.seeds: no URL to start from".to_owned());
        return Err(Failure::new(Exit::Usage, wrong.join("\n")));
    }
    for text in &wrong {
        log::warn!("{text}");
    }
    Ok(all)
}

/// What is to be said of the lines of a list of seeds.
fn report(name: &str, parsed: &Parsed, wrong: &mut Vec<String>) {
    let mistakes = &parsed.mistakes;
    wrong.extend(mistakes.iter().take(MISTAKES_TOLD).map(|mistake| format!("{name}: {mistake}")));
    if let Some(more) = mistakes.len().checked_sub(MISTAKES_TOLD).filter(|more| *more > 0) {
        let seeds = parsed.seeds.len();
        wrong.push(format!("{name}: {more} more lines gave no seed; {seeds} lines did"));
    }
    if let Some((count, first)) = parsed.commas {
        wrong.push(format!(
            "{name}: line {first}: the comma was taken as part of the URL, on {count} lines in \
             all; a table needs a header line with a column \"url\""
        ));
    }
}
