//! Reads the files that a configuration names, reports their mistakes, and checks the descriptor
//! limit.

use super::{Exit, Failure, settings};
use crate::conf::{self, Conf, Scope, SiteTable, Source};
use crate::engine::settings::Signing;
use crate::http::signature::{Key, Signer};
use crate::os::{dns, input, signal};
use crate::rating::{Rating, Table};
use crate::seeds::{self, Doubtful, Parsed, Seed};
use crate::url::scope::FromSeeds;
use crate::url::{Limits, Url, scope};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The length of the longest table of qualities, in bytes.
const TABLE_BYTES_MAX: u64 = 16 << 30;
/// The length of the longest file with a key, in bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// The length of the longest file of seeds, in bytes: about ten million URLs.
pub(super) const SEEDS_BYTES_MAX: u64 = 1 << 30;

/// Reads the table of the qualities of URLs; `None` if the configuration names no table. `key` is
/// the secret with which the crawl makes fingerprints of URLs.
pub(crate) fn qualities(conf: &Conf, key: [u8; 16]) -> Result<Option<Arc<Table>>, Failure> {
    let Some(file) = &conf.quality.file else { return Ok(None) };
    let name = file.display();
    let text = input::read(file, TABLE_BYTES_MAX)
        .map_err(|error| Failure::new(Exit::Usage, format!("quality.file: {name}: {error}")))?;
    let limits = Limits { url_bytes_max: conf.scope.url_bytes_max };
    let table = Table::parse(&text, key, limits).map_err(|mistakes| {
        let listed = mistakes.list.iter();
        let mut lines: Vec<String> = listed
            .map(|mistake| {
                format!("{name}:{}: {:?}: {}", mistake.line, mistake.text, mistake.reason)
            })
            .collect();
        if mistakes.omitted > 0 {
            lines.push(format!("{name}: and {} more mistakes", mistakes.omitted));
        }
        Failure::new(Exit::Usage, lines.join("\n"))
    })?;
    if table.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("quality.file: {name}: has no entry")));
    }
    warn_if(table.repeats(), |count| {
        format!("{name}: {count} lines repeat a URL or host; the last line counts")
    });
    warn_if(table.zeroed(), |count| {
        format!("{name}: {count} qualities are too small and count as 0; scale all of them up")
    });
    Ok(Some(Arc::new(table)))
}

/// Reads the key that signs requests; `None` if the configuration signs none.
///
/// # Errors
/// The file can't be read, or has no key.
pub(crate) fn signing(conf: &Conf) -> Result<Option<Signing>, Failure> {
    let conf::Signature { sign: Some(sign), key: Some(file), agent: Some(agent) } = &conf.signature
    else {
        return Ok(None);
    };
    let key = signing_key(file).map_err(|failure| Failure {
        text: format!("identity.signature.key: {}", failure.text),
        ..failure
    })?;
    let signer = Arc::new(Signer::new(key, agent));
    Ok(Some(Signing { signer, on_demand: *sign == conf::Sign::WhenAsked }))
}

/// Reads a file with a private key.
///
/// # Errors
/// The file can't be read, or has no key.
pub(super) fn signing_key(file: &Path) -> Result<Key, Failure> {
    let fault = |text: &str| Failure::new(Exit::Usage, format!("{}: {text}", file.display()));
    let text = input::read(file, KEY_BYTES_MAX)
        .map_err(|error| fault(&format!("cannot read: {error}")))?;
    Key::from_pem(&text).map_err(|bad| fault(&bad.to_string()))
}

/// Warns of entries of the table of qualities that the crawl did not use, and of URLs that are not
/// in the table.
pub(crate) fn warn_of_table(conf: &Conf, rating: &Rating) {
    let Some(file) = &conf.quality.file else { return };
    let name = file.display();
    warn_if(rating.unused() as u64, |count| {
        format!("{name}: {count} entries match no URL of this crawl")
    });
    warn_if(rating.unlisted(), |count| {
        let unlisted = conf.quality.unlisted;
        format!("{name}: {count} URLs are not listed and got the quality {unlisted}")
    });
}

fn warn_if(count: u64, text: impl Fn(u64) -> String) {
    if count > 0 {
        log::warn!("{}", text(count));
    }
}

/// The most mistakes in a seed file that are reported one by one; of the others only the number is.
const MISTAKES_SHOWN: usize = 10;

/// Reads the seeds in the configuration and in the seed file that it names. Warns of lines that are
/// not a seed: the first ten, and their number.
///
/// # Errors
/// The file can't be read, or there is not a single seed.
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
    // A large seed file may have some mistakes, but a crawl needs a seed.
    if all.is_empty() {
        wrong.push("job.seeds: no seeds".to_owned());
        return Err(Failure::new(Exit::Usage, wrong.join("\n")));
    }
    for text in &wrong {
        log::warn!("{text}");
    }
    Ok(all)
}

/// Warns of invalid lines of the hosts file, and of a source of qualities that has nothing to tell
/// pages apart by.
pub(crate) fn warn_of_conf(conf: &Conf) {
    if let Some(text) = dns::unread_hosts(&conf.names.hosts_file) {
        log::warn!("names.hosts_file: {text}");
    }
    let quality = &conf.quality;
    if quality.source == Source::Parent && quality.file.is_none() && conf.compare.is_none() {
        log::warn!(
            "quality.source: without a file no page has a quality of its own, so \"parent\" is \
             the same as \"depth\"; name a quality.file"
        );
    }
}

/// Warns of seeds that the scope would reject if they were links: one warning for each key that
/// rejects some.
pub(crate) fn warn_of_scope(conf: &Conf, seeds: &[Seed]) {
    for text in refused(&conf.scope, &conf.sites, seeds) {
        log::warn!("{text}");
    }
}

/// Returns the warnings for seeds that keys of the scope reject, one for each key that rejects
/// some.
fn refused(conf: &Scope, sites: &[SiteTable], seeds: &[Seed]) -> Vec<String> {
    // The span and the lists are derived from the seeds, so they are not checked.
    let open = Scope {
        span: FromSeeds::Any,
        hosts: Vec::new(),
        domains: Vec::new(),
        prefixes: Vec::new(),
        ..conf.clone()
    };
    let scope = scope::Scope::new(settings::scope(&open, sites), &[])
        .expect("the configuration is checked");
    let mut found: BTreeMap<&str, (usize, &Url)> = BTreeMap::new();
    for Seed { url, .. } in seeds {
        if let Err(why) = scope.check(url.view(), 0) {
            found.entry(why.key()).or_insert((0, url)).0 += 1;
        }
    }
    let text = |(key, (count, url)): (&str, (usize, &Url))| {
        format!("seeds that {key} rejects: {count}, like {}; they are fetched anyway", url.as_str())
    };
    found.into_iter().map(text).collect()
}

/// Appends messages to `wrong` about lines of the seed list `name`: those that are not seeds, and
/// those that may not mean what the operator wants.
fn report(name: &str, parsed: &Parsed, wrong: &mut Vec<String>) {
    let mistakes = &parsed.mistakes;
    wrong.extend(mistakes.iter().take(MISTAKES_SHOWN).map(|mistake| format!("{name}: {mistake}")));
    if let Some(more) = mistakes.len().checked_sub(MISTAKES_SHOWN).filter(|more| *more > 0) {
        let seeds = parsed.seeds.len();
        wrong.push(format!("{name}: {more} more lines have no seed; {seeds} lines have one"));
    }
    wrong.extend(parsed.doubts.iter().map(|Doubtful { doubt, lines, first }| {
        let fix = doubt.fix();
        format!("{name}: line {first}: {doubt}; {fix} (lines of this kind: {lines})")
    }));
}

/// The number of descriptors that the loop needs in addition to one for each connection: for files,
/// the poller, the resolver and some spares.
const DESCRIPTORS_BESIDE: u64 = 96;

/// Checks that the system allows as many descriptors as the crawl needs.
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
        assert_eq!(refused(&conf, &[], &seeds), [""; 0], "where seeds are is in scope");
        conf.schemes = vec![Scheme::Http];
        conf.exclude = vec!["/x/".to_owned()];
        conf.path_depth_max = 3;
        let expected = [
            "scope.exclude rejects: 2, like http://a.test/x/1",
            "scope.path_depth_max rejects: 1, like http://a.test/y/1/2/3",
            "scope.schemes rejects: 1, like https://a.test/",
        ];
        let whole = |text| format!("seeds that {text}; they are fetched anyway");
        assert_eq!(refused(&conf, &[], &seeds), expected.map(whole));
        conf = Scope { include: vec!["/x/".to_owned()], ..Scope::default() };
        let expected = ["scope.include rejects: 2, like https://a.test/"];
        assert_eq!(refused(&conf, &[], &seeds), expected.map(whole));
    }
}
