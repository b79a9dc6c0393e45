//! Reads the files that a configuration names, reports their mistakes, and checks descriptors.

use super::{Exit, Failure, settings};
use crate::conf::{Conf, Scope};
use crate::os::{dns, input, signal};
use crate::rating::{Rating, Table};
use crate::seeds::{self, Doubtful, Parsed, Seed};
use crate::url::scope::FromSeeds;
use crate::url::{Limits, Url, scope};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Longest configuration that is read, bytes: a larger file is something else.
const CONF_BYTES_MAX: u64 = 4 << 20;

/// Longest table of qualities, bytes.
const TABLE_BYTES_MAX: u64 = 16 << 30;
/// Longest file of seeds, bytes: some ten million URLs.
const SEEDS_BYTES_MAX: u64 = 1 << 30;

/// Reads the configuration at `path`.
///
/// # Errors
/// The file can't be read, or has mistakes: all of them.
pub fn load(path: &Path) -> Result<Conf, Failure> {
    let name = path.display().to_string();
    let cannot = |why: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("{name}: {why}"));
    let bytes = input::read(path, CONF_BYTES_MAX).map_err(|error| cannot(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| cannot(&"is not UTF-8 text"))?;
    Conf::parse(&text, &name).map_err(|mistakes| Failure::new(Exit::Usage, mistakes))
}

/// The table of qualities that the configuration names, if it names one. `key` is the crawl's.
pub(crate) fn qualities(conf: &Conf, key: [u8; 16]) -> Result<Option<Arc<Table>>, Failure> {
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
pub(crate) fn warn_of_table(conf: &Conf, rating: &Rating) {
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
pub(crate) fn seeds(conf: &Conf) -> Result<Vec<Seed>, Failure> {
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

/// Warns of lines of the hosts file that are no entry.
pub(crate) fn warn_of_hosts(conf: &Conf) {
    if let Some(text) = dns::unread_hosts(&conf.names.hosts_file) {
        log::warn!("names.hosts_file: {text}");
    }
}

/// Warns of seeds that the scope would refuse if they were links: once for each key.
pub(crate) fn warn_of_scope(conf: &Conf, seeds: &[Seed]) {
    for text in refused(&conf.scope, seeds) {
        log::warn!("{text}");
    }
}

/// What to say of these seeds, for each key that refuses some.
fn refused(conf: &Scope, seeds: &[Seed]) -> Vec<String> {
    // Where they are, they are wanted: the scope follows from them.
    let open = Scope {
        span: FromSeeds::Any,
        hosts: Vec::new(),
        domains: Vec::new(),
        prefixes: Vec::new(),
        ..conf.clone()
    };
    let scope =
        scope::Scope::new(settings::scope(&open), &[]).expect("the configuration is checked");
    let mut found: BTreeMap<&str, (usize, &Url)> = BTreeMap::new();
    for Seed { url, .. } in seeds {
        if let Err(why) = scope.check(url.view(), 0) {
            found.entry(why.key()).or_insert((0, url)).0 += 1;
        }
    }
    let text = |(key, (count, url)): (&str, (usize, &Url))| {
        format!(
            "seeds that {key} refuses: {count}, as {}; they are fetched all the same",
            url.as_str()
        )
    };
    found.into_iter().map(text).collect()
}

/// What is to be said of the lines of a list of seeds.
fn report(name: &str, parsed: &Parsed, wrong: &mut Vec<String>) {
    let mistakes = &parsed.mistakes;
    wrong.extend(mistakes.iter().take(MISTAKES_TOLD).map(|mistake| format!("{name}: {mistake}")));
    if let Some(more) = mistakes.len().checked_sub(MISTAKES_TOLD).filter(|more| *more > 0) {
        let seeds = parsed.seeds.len();
        wrong.push(format!("{name}: {more} more lines gave no seed; {seeds} lines did"));
    }
    wrong.extend(parsed.doubts.iter().map(|Doubtful { doubt, lines, first }| {
        let fix = doubt.fix();
        format!("{name}: line {first}: {doubt}; {fix} (lines of this kind: {lines})")
    }));
}

/// Descriptors that the loop needs beside its connections: files, poller, resolver, and spares.
const DESCRIPTORS_BESIDE: u64 = 96;

/// Whether the system allows as many descriptors as the crawl needs.
pub(crate) fn check_descriptors(conf: &Conf) -> Result<(), Failure> {
    let limit = signal::descriptor_limit();
    let wanted = conf.connections.open_max as u64 + DESCRIPTORS_BESIDE;
    if wanted <= limit {
        return Ok(());
    }
    let text = format!(
        "connections.open_max: {} connections need {wanted} descriptors, the system allows \
         {limit}; lower it, or raise the limit (ulimit -n)",
        conf.connections.open_max
    );
    Err(Failure::new(Exit::System, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Scheme;

    #[test]
    fn seeds_that_the_scope_refuses_are_pointed_out_by_key() {
        let text = b"https://a.test/\nhttp://a.test/x/1\nhttp://b.test/x/2\nhttp://a.test/y/1/2/3";
        let (seeds, _) = seeds::parse(text);
        let mut conf = Scope { span: FromSeeds::Host, ..Scope::default() };
        assert_eq!(refused(&conf, &seeds), [""; 0], "where seeds are is in scope");
        conf.schemes = vec![Scheme::Http];
        conf.exclude = vec!["/x/".to_owned()];
        conf.path_depth_max = 3;
        let expected = [
            "scope.exclude refuses: 2, as http://a.test/x/1",
            "scope.path_depth_max refuses: 1, as http://a.test/y/1/2/3",
            "scope.schemes refuses: 1, as https://a.test/",
        ];
        let whole = |text| format!("seeds that {text}; they are fetched all the same");
        assert_eq!(refused(&conf, &seeds), expected.map(whole));
        conf = Scope { include: vec!["/x/".to_owned()], ..Scope::default() };
        let expected = ["scope.include refuses: 2, as https://a.test/"];
        assert_eq!(refused(&conf, &seeds), expected.map(whole));
    }
}
