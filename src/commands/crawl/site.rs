//! A crawl that is described by URLs and options, without a configuration file.
//!
//! The configuration is made from the arguments and written to the job as `job.toml`, with which
//! the crawl can be resumed from any directory. Seeds that are read from a file or from standard
//! input are copied to the job. The same command resumes the crawl, too; with other arguments it is
//! refused, because the operator would not see which of them count.

use super::asked::Asked;
use super::claim::{take_job, write_whole};
use crate::commands::file::shell;
use crate::commands::{ConfFile, Exit, Failure, inputs, named};
use crate::conf::{Conf, Mistakes, Place, Setting};
use crate::dns::address::Rules;
use crate::os::disk::Lock;
use crate::os::{self, console, input};
use crate::seeds;
use crate::url::Url;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// The name of the configuration in the job directory.
const CONF: &str = "job.toml";
/// The name of the copy of the seeds in the job directory.
const SEEDS: &str = "seeds.txt";
/// The name of the command line in messages about what is missing.
const NAME: &str = "sted crawl";
/// The longest name of a job that is made from a host, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Keys that URLs and options set, and what to write instead of `--set`.
const OWN: [(&str, &str); 4] = [
    ("job.directory", "write --out DIR"),
    ("job.name", "the job has the name of its first host; for another name write a configuration"),
    ("job.seeds", "name the URLs as arguments"),
    ("job.seeds_file", "write --seeds FILE"),
];

/// A crawl of URLs.
struct Site {
    conf: Conf,
    /// The configuration as text, without remarks.
    text: String,
    seeds: Option<Vec<u8>>,
}

/// Prepares the job of a crawl of `urls`: returns its configuration, and the lock on it.
///
/// # Errors
/// The arguments have mistakes, or the job directory belongs to something else; then nothing has
/// been written.
pub(super) fn prepare(asked: &Asked, urls: &[String]) -> Result<(ConfFile, Conf, Lock), Failure> {
    let site = Site::new(asked, urls)?;
    let directory = site.conf.job.directory.clone();
    let file = directory.join(CONF);
    let lock = take_job(&site.conf, None)?;
    match os::disk::read(&directory, CONF) {
        Ok(_) => site.refuse_other(&file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(seeds) = &site.seeds {
                os::disk::replace(&directory, SEEDS, seeds)
                    .map_err(|error| Failure::of_file(&directory.join(SEEDS), &error))?;
            }
            write_whole(&directory, CONF, &(remarks(&file) + &site.text))?;
        }
        Err(error) => return Err(Failure::of_file(&file, &error)),
    }
    let file = ConfFile::new(&file);
    let (job, resume) = (directory.display(), file.crawl_command());
    console::progress(&format!("the job is {job}; to resume it: {resume}"));
    Ok((file, site.conf, lock))
}

impl Site {
    /// Makes the configuration of a crawl of `urls`.
    fn new(asked: &Asked, urls: &[String]) -> Result<Self, Failure> {
        let urls: Vec<String> = urls.iter().map(|url| with_scheme(url)).collect();
        let seeds = asked.seeds.as_ref().map(|_| read_seeds(asked)).transpose()?;
        let name = name(&urls, seeds.as_deref())?;
        let directory =
            asked.out.clone().map_or_else(|| Path::new("jobs").join(&name), PathBuf::from);
        // The job can be resumed from any directory.
        let directory = std::path::absolute(&directory)
            .map_err(|error| Failure::of_file(&directory, &error))?;
        let Some(place) = directory.to_str() else {
            return Err(Failure::of_file(
                &directory,
                &"is not valid UTF-8; write another --out DIR",
            ));
        };
        let mut set = vec![
            Setting::of_text("--out", "job.name", &name),
            Setting::of_list("URL", "job.seeds", &urls),
            Setting::of_text("--span", "scope.span", "host"),
        ];
        set.extend(asked.settings().filter(|setting| setting.key() != "job.seeds_file"));
        set.push(Setting::of_text("--out", "job.directory", place));
        if seeds.is_some() {
            let copy = format!("{}/{SEEDS}", place.trim_end_matches('/'));
            set.push(Setting::of_text("--seeds", "job.seeds_file", &copy));
        }
        for setting in &asked.values.set {
            if let Some((key, fix)) = OWN.iter().find(|(key, _)| *key == setting.key()) {
                return Err(Failure::new(Exit::Usage, format!("--set {key}: {fix}")));
            }
            let section = setting.key().split('.').next().unwrap_or_default();
            if ["lab", "compare", "profile"].contains(&section) {
                let text = format!("--set {}: needs a configuration file", setting.key());
                return Err(Failure::new(Exit::Usage, text));
            }
        }
        set.extend(asked.values.set.iter().cloned());
        let mut conf = Conf::parse_with("", NAME, &set)
            .map_err(|mistakes| Failure::new(Exit::Usage, with_options(mistakes)))?;
        refuse_private(&conf, &urls)?;
        let mut others = conf.clone();
        others.job.seeds_file = None;
        named::refuse_missing(&others, Path::new(NAME))?;
        named::make_absolute(&mut conf).map_err(|error| Failure::of_file(&directory, &error))?;
        let text = conf.render_only(&set);
        Ok(Self { conf, text, seeds })
    }

    /// Refuses to resume the job with other settings than those in its configuration `file`, or
    /// with other seeds than those of its copy.
    fn refuse_other(&self, file: &Path) -> Result<(), Failure> {
        let began = ConfFile::new(file).load()?;
        let before = began.keys();
        let value_of = |section: &str, name: &str| {
            before.iter().find(|key| (key.section, key.name) == (section, name))
        };
        let mut changed = Vec::new();
        for key in self.conf.keys() {
            let old = value_of(key.section, key.name).map_or("absent", |old| old.value.as_str());
            if old != key.value {
                let (section, name, value) = (key.section, key.name, &key.value);
                changed.push(format!("{section}.{name} was {old} and is now {value}"));
            }
        }
        if let Some(seeds) = &self.seeds
            && input::read(&file.with_file_name(SEEDS), inputs::SEEDS_BYTES_MAX).ok().as_ref()
                != Some(seeds)
        {
            changed.push("--seeds has other URLs".to_owned());
        }
        if began.sites != self.conf.sites {
            changed.push("tables [[site]] were added".to_owned());
        }
        if changed.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{}: this job began with other settings: {}; to resume it, change {} if needed and run \
             `{}`; for another crawl, write --out DIR",
            self.conf.job.directory.display(),
            changed.join("; "),
            file.display(),
            ConfFile::new(file).crawl_command(),
        );
        Err(Failure::new(Exit::Job, text))
    }
}

/// Returns the URL with a scheme. A host with a port or an address is asked by http, others by
/// https.
fn with_scheme(text: &str) -> String {
    if text.contains("://") {
        return text.to_owned();
    }
    let Ok(url) = Url::parse(&format!("http://{text}")) else { return text.to_owned() };
    let url = url.view();
    let is_plain = url.authority() != url.host() || url.ip().is_some() || url.host() == "localhost";
    let (scheme, other) = if is_plain { ("http", "https") } else { ("https", "http") };
    let whole = format!("{scheme}://{text}");
    console::progress(&format!("{text}: {whole} is assumed; write {other}:// if that is meant"));
    whole
}

/// Reads the seeds that `--seeds` names.
fn read_seeds(asked: &Asked) -> Result<Vec<u8>, Failure> {
    let Some(file) = asked.seeds.as_ref().filter(|_| !asked.reads_stdin()) else {
        let mut bytes = Vec::new();
        let most = inputs::SEEDS_BYTES_MAX;
        let read = io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
        let text = match read {
            Err(error) => format!("--seeds -: {error}"),
            Ok(_) if bytes.len() as u64 > most => {
                format!("--seeds -: is longer than {most} bytes, the most that is read")
            }
            Ok(_) => return Ok(bytes),
        };
        return Err(Failure::new(Exit::Usage, text));
    };
    input::read(file, inputs::SEEDS_BYTES_MAX)
        .map_err(|error| Failure::new(Exit::Usage, format!("--seeds: {}: {error}", file.display())))
}

/// Returns the name of a job: the host of its first URL, and its port if it is not the default.
fn name(urls: &[String], seeds: Option<&[u8]>) -> Result<String, Failure> {
    let from_url = urls.first().map(|text| {
        Url::parse(text).map_err(|invalid| {
            let text = format!("{text:?} is not a URL: {}", invalid.name());
            Failure::new(Exit::Usage, format!("{text}; write it like https://host.name/"))
        })
    });
    let from_file = || {
        let first = seeds::parse_file(seeds.unwrap_or_default()).seeds.into_iter().next();
        let text = "--seeds: no line has a URL; write one a line";
        first.map(|seed| seed.url).ok_or_else(|| Failure::new(Exit::Usage, text))
    };
    let url = from_url.unwrap_or_else(from_file)?;
    let fits = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let name: String = url.view().authority().chars().map(fits).take(NAME_BYTES_MAX).collect();
    Ok(name.trim_start_matches(['.', '-']).to_owned())
}

/// Formats the mistakes, naming what is missing by the option that gives it.
fn with_options(mut mistakes: Mistakes) -> Mistakes {
    for mistake in &mut mistakes.list {
        if mistake.key == "identity.contact" && mistake.place == Place::Nowhere {
            mistake.place = Place::Argument("--contact".to_owned());
            mistake.text = "missing: operators of crawled sites must be able to reach you; write \
                            --contact with a URL or a mail address, like --contact \
                            crawler@your.site"
                .to_owned();
        }
    }
    mistakes
}

/// Refuses URLs of addresses that the crawl would not connect to.
fn refuse_private(conf: &Conf, urls: &[String]) -> Result<(), Failure> {
    let connections = &conf.connections;
    let rules = Rules {
        allowed: connections.addresses_allowed.clone(),
        refused: connections.addresses_refused.clone(),
    };
    for text in urls {
        let Ok(url) = Url::parse(text) else { continue };
        let is_local = url.view().host() == "localhost";
        let local = is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let Some(ip) = url.view().ip().or(local).filter(|ip| !rules.allow(*ip)) else { continue };
        let text = format!(
            "{text}: {ip} is not a public address; if it is meant, add --set \
             connections.addresses_allowed={ip}"
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(())
}

/// Returns the remarks at the head of the configuration.
fn remarks(file: &Path) -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = shell(&words).replace(['\n', '\r'], " ");
    let at = std::env::current_dir().map(|at| at.display().to_string()).unwrap_or_default();
    let resume = ConfFile::new(file).crawl_command();
    format!(
        "# Made by: {command}\n# in {} on {}, by sted {}.\n# Resume with: {resume}\n# Other keys \
         have their defaults; `sted check` prints them all.\n\n",
        at.replace(['\n', '\r'], " "),
        os::now().unix.civil().to_seconds(),
        env!("CARGO_PKG_VERSION"),
    )
}
