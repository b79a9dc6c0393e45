//! The arguments of `sted crawl`, and which of its two forms they ask for: a configuration file, or
//! URLs.

use crate::commands::file::Values;
use crate::commands::{ConfFile, Exit, Failure};
use crate::conf::Setting;
use crate::url::domain::is_listed;
use crate::url::{Url, domain};
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// The heading of the options that are for a job that has begun.
const RESUMING: &str = "Resuming a job";

/// The arguments of `sted crawl`.
#[derive(Args, Clone, Debug, Default)]
pub struct Asked {
    /// The URLs to archive, or a configuration: a TOML file
    ///
    /// A host stands for its start page: https, or http if it has a port or is an IP address.
    #[arg(value_name = "URL|CONF", required_unless_present = "seeds")]
    pub targets: Vec<PathBuf>,
    /// URL or mail address at which the operators of sites can reach you; servers get it with every
    /// request [identity.contact]
    #[arg(long, value_name = "URL|MAIL")]
    pub contact: Option<String>,
    /// Directory of the job: archive, index, log, state [job.directory; with URLs: jobs/HOST]
    #[arg(long, value_name = "DIR")]
    pub out: Option<String>,
    /// How far from the URLs the crawl goes [scope.span; with URLs: host]
    #[arg(long, value_parser = ["host", "domain", "prefix", "any"])]
    pub span: Option<String>,
    /// Stop after this number of pages [limits.pages_max]
    #[arg(long, value_name = "N")]
    pub pages: Option<String>,
    /// Fetch what browsers load to show the pages, from any host: style sheets, images, fonts,
    /// scripts [links.requisites, scope.requisites]
    #[arg(long)]
    pub requisites: bool,
    /// File with more URLs, one a line; - is standard input, with URLs only [job.seeds_file]
    #[arg(long, value_name = "FILE")]
    pub seeds: Option<PathBuf>,
    /// Values of other keys.
    #[command(flatten, next_help_heading = "More settings")]
    pub values: Values,
    /// Rebuild the job's state from its archive, for example after damage: archived pages are read
    /// back, not fetched again
    #[arg(long, help_heading = RESUMING)]
    pub rebuild: bool,
    /// Queue the URLs of given-up servers again, and retry failed seeds
    #[arg(long, help_heading = RESUMING)]
    pub retry_given_up: bool,
}

/// What is crawled.
pub(super) enum Form {
    /// What a configuration file describes.
    File(ConfFile),
    /// These URLs, and those of `--seeds`.
    Urls(Vec<String>),
}

impl Asked {
    /// Returns what is crawled.
    ///
    /// # Errors
    /// The arguments mix files and URLs, or name several files.
    pub(super) fn form(&self) -> Result<Form, Failure> {
        let (mut urls, mut files) = (Vec::new(), Vec::new());
        for target in &self.targets {
            match target.to_str().filter(|text| is_url(text)) {
                Some(url) => urls.push(url.to_owned()),
                None => files.push(target.clone()),
            }
        }
        let wrong = |text: String| Err(Failure::new(Exit::Usage, text));
        match (files.as_slice(), urls.as_slice()) {
            ([], _) => Ok(Form::Urls(urls)),
            ([_], []) if self.reads_stdin() => wrong(
                "--seeds -: only with URLs; write the seeds to a file and name that".to_owned(),
            ),
            ([file], []) => {
                let set = self.settings().chain(self.values.set.iter().cloned()).collect();
                Ok(Form::File(ConfFile { path: file.clone(), values: Values { set } }))
            }
            ([file, more, ..], []) => wrong(format!(
                "{} and {}: one crawl has one configuration; start them one by one",
                file.display(),
                more.display()
            )),
            ([file, ..], [url, ..]) => wrong(format!(
                "{} is taken as a file and {url} as a URL: name one configuration, with its URLs \
                 in job.seeds; or only URLs, with their scheme",
                file.display()
            )),
        }
    }

    /// Returns whether the seeds are read from standard input.
    pub(super) fn reads_stdin(&self) -> bool {
        self.seeds.as_ref().is_some_and(|file| file.as_os_str() == "-")
    }

    /// Returns the values that the options give to keys of the configuration.
    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> {
        let text = |option: &str, key: &str, value: &Option<String>| {
            value.as_ref().map(|value| Setting::of_text(option, key, value))
        };
        let seeds = self.seeds.as_ref().filter(|_| !self.reads_stdin());
        let seeds = seeds.map(|file| file.to_string_lossy().into_owned());
        let pages = self.pages.as_ref().map(|n| Setting::new("--pages", "limits.pages_max", n));
        let settings = [
            text("--contact", "identity.contact", &self.contact),
            text("--out", "job.directory", &self.out),
            text("--span", "scope.span", &self.span),
            text("--seeds", "job.seeds_file", &seeds),
            pages,
            self.requisites.then(|| Setting::new("--requisites", "links.requisites", "true")),
            self.requisites.then(|| Setting::of_text("--requisites", "scope.requisites", "any")),
        ];
        settings.into_iter().flatten()
    }
}

/// Returns whether an argument is a URL: it has a scheme, or it is no file and looks like a host.
fn is_url(text: &str) -> bool {
    let is_file = || fs::metadata(text).is_ok_and(|facts| facts.is_file());
    text.contains("://") || (looks_like_host(text) && !is_file())
}

/// Returns whether a text without a scheme begins with a host: an address, `localhost`, or a name
/// under a suffix of the public suffix list, which file name extensions like `toml` are not on.
fn looks_like_host(text: &str) -> bool {
    let Ok(url) = Url::parse(&format!("http://{text}")) else { return false };
    let host = url.view().host();
    // A number is an address, too, but is not meant as one.
    let is_address = domain::is_address(host) && text.starts_with(host);
    host == "localhost" || is_address || is_listed(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_files() {
        for (text, expected) in [
            ("https://a.test/", true),
            ("ftp://a.org/", true),
            ("example.com", true),
            ("Example.com/a/?b", true),
            ("www.example.co.uk:8080/x", true),
            ("localhost:8000", true),
            ("127.0.0.1", true),
            ("[::1]:80/x", true),
            ("missing.toml", false),
            ("conf/polite.toml", false),
            ("./example.com", false),
            ("jobs/example.com", false),
            ("/srv/example.com", false),
            ("host", false),
            ("h1.d1.test", false),
            ("com", false),
            ("1", false),
            ("", false),
            ("-", false),
            ("b\u{fc}cher.example.ch", true),
            ("Cargo.toml", false),
        ] {
            assert_eq!(is_url(text), expected, "{text}");
        }
    }

    /// Each option sets the keys that its help names.
    #[test]
    fn options_set_keys() {
        let text = |text: &str| Some(text.to_owned());
        let asked = Asked {
            contact: text("me@a.org"),
            out: text("a b"),
            span: text("any"),
            pages: text("7"),
            seeds: Some("s".into()),
            requisites: true,
            ..Asked::default()
        };
        let set: Vec<String> = asked.settings().map(|setting| setting.text()).collect();
        let expected = [
            "identity.contact=\"me@a.org\"",
            "job.directory=\"a b\"",
            "scope.span=\"any\"",
            "job.seeds_file=\"s\"",
            "limits.pages_max=7",
            "links.requisites=true",
            "scope.requisites=\"any\"",
        ];
        assert_eq!(set, expected);
    }

    #[test]
    fn files_and_urls_are_not_mixed() {
        let form = |targets: &[&str], seeds: Option<&str>| {
            let targets = targets.iter().map(PathBuf::from).collect();
            let asked = Asked { targets, seeds: seeds.map(PathBuf::from), ..Asked::default() };
            match asked.form() {
                Ok(Form::File(file)) => format!("file {}", file.arguments().join(" ")),
                Ok(Form::Urls(urls)) => format!("urls {}", urls.join(" ")),
                Err(failure) => failure.text,
            }
        };
        assert_eq!(form(&["a.toml"], None), "file a.toml");
        assert_eq!(form(&["a.toml"], Some("x")), "file a.toml --set job.seeds_file=\"x\"");
        assert_eq!(form(&["a.com", "http://b.test"], None), "urls a.com http://b.test");
        assert_eq!(form(&[], Some("-")), "urls ");
        for (targets, seeds, says) in [
            (&["a.toml", "b.toml"][..], None, "one crawl has one configuration"),
            (&["b.com", "a.toml"], None, "a.toml is taken as a file and b.com as a URL"),
            (&["a.toml"], Some("-"), "--seeds -: only with URLs"),
        ] {
            let text = form(targets, seeds);
            assert!(text.contains(says), "{targets:?}: {text}");
        }
    }
}
