//! `sted ctl`: gives a command to a running crawl.
//!
//! The command goes as JSON to the control socket in the job directory (`os::control`). The crawl
//! replies when the command has taken effect and would survive a crash.

use super::inputs::SEEDS_BYTES_MAX;
use super::job::directory;
use super::{Exit, Failure};
use crate::conf::duration;
use crate::engine::command::{Command, SEEDS_MAX, Target};
use crate::os::control::client::{self, Error, Reply};
use crate::os::input;
use clap::Subcommand;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// The exit codes of `sted ctl` and `sted status`, for their help texts.
pub(super) const EXITS: &str = "Exit codes:
   0  done
   2  the command line or the configuration is wrong
   3  the control socket can't be reached, or the crawl did not answer
   5  there is no such job
   6  no crawl runs in the job directory
   7  the running crawl refused the command (`sted ctl`)";

/// The forms of a target, for the help text.
const TARGETS: &str = "A target is one of
  all                         the whole crawl
  server:https://a.test:8443  one server: scheme, host and port
  host:a.test                 all servers of a host
  domain:a.test               all hosts of a domain
  address:192.0.2.1           all servers at an address
  prefix:https://a.test/shop/ all URLs that begin like this
Without a kind, a URL with a path is a prefix, one without a path a server, an IP address an
address, and a name a host.

";

/// The help text that follows the list of verbs.
pub(super) fn help() -> String {
    format!(
        "{TARGETS}Examples:
  sted ctl jobs/crawl pause host:a.test
  sted ctl my.toml slow a.test 30s
  sted ctl jobs/crawl seeds https://b.test/ more-seeds.txt

The crawl replies when a command would survive a crash. Commands stay in force when the crawl is
resumed; who gave them and when is in the job directory, in commands.log.

{EXITS}"
    )
}

/// What a running crawl is asked to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Request nothing from a target until it is resumed; its URLs stay queued
    Pause {
        /// What to pause
        #[arg(default_value = "all")]
        target: Target,
    },
    /// End the pause of a target
    Resume {
        /// What was paused, as it was written for `pause`
        #[arg(default_value = "all")]
        target: Target,
    },
    /// Request nothing from a target; its URLs, queued and future, get the outcome `blocked`
    Block {
        /// What to block
        target: Target,
    },
    /// End the block of a target; URLs that were settled as `blocked` stay so
    Unblock {
        /// What was blocked, as it was written for `block`
        target: Target,
    },
    /// Make one request a visit to a host, and rest at least this long after it
    Slow {
        /// The name of the host
        host: String,
        /// The rest, with its unit (30s, 5m), or `off`
        #[arg(value_parser = delay)]
        delay: Duration,
    },
    /// Queue more seeds, and extend the scope to them as if they were configured
    Seeds {
        /// URLs, files with one URL a line, or `-` for standard input
        #[arg(required = true, value_name = "URL|FILE|-")]
        seeds: Vec<String>,
    },
    /// Try the servers again that were given up, with their URLs
    Revive,
    /// Read the configuration again; conf/reference.toml says which keys can be reloaded
    Reload,
    /// Write a checkpoint as soon as possible
    Checkpoint,
    /// Begin a new crawl log and a new WARC file
    Rotate,
    /// Stop the crawl as SIGTERM does: finish open requests, write everything to disk, exit
    Stop,
}

/// The most bytes of seeds that one command carries.
const SEEDS_BYTES: usize = 512 << 10;

/// Gives the command to the crawl of `job`, which is a job directory or a configuration.
///
/// # Errors
/// No crawl runs there, or it refused the command.
pub fn run(job: &Path, verb: &Verb) -> Result<Exit, Failure> {
    let directory = directory(job)?;
    for command in commands(verb)? {
        let body = serde_json::to_string(&command).expect("plain values");
        let reply = ask(job, &directory, "/commands", Some(&body))?;
        let text = text_of(&reply.text, "text");
        // A reader that has closed stdout doesn't need the reply.
        let _ = writeln!(io::stdout(), "{}", crate::os::console::printable(&text));
    }
    Ok(Exit::Finished)
}

/// Sends a request to the crawl in `directory`. A reply that is no success is a failure.
pub(super) fn ask(
    job: &Path,
    directory: &Path,
    path: &str,
    body: Option<&str>,
) -> Result<Reply, Failure> {
    let name = directory.display();
    let reply = client::request(directory, path, body).map_err(|error| match error {
        Error::NotRunning => {
            let conf = if job.is_dir() { "CONF".to_owned() } else { job.display().to_string() };
            let text = format!("no crawl runs in {name}; start it with `sted crawl {conf}`");
            Failure::new(Exit::NotRunning, text)
        }
        Error::Ended => Failure::new(Exit::NotRunning, format!("{name}: {error}")),
        Error::Failed(_) => Failure::new(Exit::Disk, format!("{name}: {error}")),
    })?;
    let exit = match reply.status {
        200 => return Ok(reply),
        503 => Exit::NotRunning,
        504 => Exit::Disk,
        _ => Exit::Refused,
    };
    Err(Failure::new(exit, format!("{name}: {}", text_of(&reply.text, "error"))))
}

/// Returns a member of a JSON reply, or the whole reply if it doesn't have the member.
fn text_of(reply: &str, member: &str) -> String {
    let value: Value = serde_json::from_str(reply).unwrap_or_default();
    value[member].as_str().map_or_else(|| reply.trim_end().to_owned(), str::to_owned)
}

/// Returns the commands that a verb stands for: one, except for many seeds.
pub(super) fn commands(verb: &Verb) -> Result<Vec<Command>, Failure> {
    Ok(vec![match verb {
        Verb::Pause { target } => Command::Pause { target: target.clone() },
        Verb::Resume { target } => Command::Resume { target: target.clone() },
        Verb::Block { target } => Command::Block { target: target.clone() },
        Verb::Unblock { target } => Command::Unblock { target: target.clone() },
        Verb::Slow { host, delay } => {
            let delay_ms = delay.as_micros().div_ceil(1_000);
            let delay_ms = u64::try_from(delay_ms).unwrap_or(u64::MAX);
            // The parser of targets knows the canonical form; what is no host the crawl refuses.
            let host = match format!("host:{host}").parse() {
                Ok(Target::Host(name)) => name,
                _ => host.clone(),
            };
            Command::Slow { host, delay_ms }
        }
        Verb::Seeds { seeds } => return Ok(batches(&lines(seeds)?)),
        Verb::Revive => Command::Revive,
        Verb::Reload => Command::Reload { changed: Vec::new() },
        Verb::Checkpoint => Command::Checkpoint,
        Verb::Rotate => Command::Rotate,
        Verb::Stop => Command::Stop,
    }])
}

/// Returns the seeds that the arguments name: URLs, and the lines of files and of standard input.
fn lines(arguments: &[String]) -> Result<Vec<String>, Failure> {
    let mut seeds = Vec::new();
    for argument in arguments {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Usage, format!("{argument}: {error}"))
        };
        let bytes = match argument.as_str() {
            url if url.contains("://") => {
                seeds.push(url.to_owned());
                continue;
            }
            "-" => {
                let mut bytes = Vec::new();
                let read = io::stdin().take(SEEDS_BYTES_MAX).read_to_end(&mut bytes);
                read.map_err(|error| failed(&error))?;
                bytes
            }
            file => {
                let why = |error: io::Error| {
                    failed(&format!("is no URL with a scheme, and as a file: {error}"))
                };
                input::read(Path::new(file), SEEDS_BYTES_MAX).map_err(why)?
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| failed(&"is not valid UTF-8"))?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        seeds.extend(lines.map(str::to_owned));
    }
    if seeds.is_empty() {
        return Err(Failure::new(Exit::Usage, "there is no seed"));
    }
    Ok(seeds)
}

/// Divides seeds into commands that the control socket takes.
fn batches(seeds: &[String]) -> Vec<Command> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut bytes = usize::MAX;
    for seed in seeds {
        bytes = bytes.saturating_add(seed.len() + 8);
        let is_full = batches.last().is_some_and(|batch| batch.len() >= SEEDS_MAX);
        if bytes > SEEDS_BYTES || is_full {
            batches.push(Vec::new());
            bytes = seed.len() + 8;
        }
        batches.last_mut().expect("one was added before the first seed").push(seed.clone());
    }
    batches.into_iter().map(|seeds| Command::AddSeeds { seeds }).collect()
}

/// Parses the delay of `slow`.
fn delay(text: &str) -> Result<Duration, String> {
    match text {
        "off" => Ok(Duration::ZERO),
        _ => match duration(text)? {
            Duration::ZERO => Err("write `off` to end it".to_owned()),
            delay => Ok(delay),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: no seed is lost or moved, and no command is larger than the socket takes.
    #[test]
    fn seeds_are_divided_into_commands_in_order() {
        let seeds: Vec<String> = (0..40_000).map(|n| format!("http://h{n}.test/{n}")).collect();
        let mut found = Vec::new();
        let commands = batches(&seeds);
        assert!(commands.len() > 1);
        for command in commands {
            assert!(serde_json::to_string(&command).expect("plain").len() < 1 << 20);
            let Command::AddSeeds { seeds } = command else { panic!("{command:?}") };
            found.extend(seeds);
        }
        assert_eq!(found, seeds);
    }

    #[test]
    fn delays_have_units_or_are_off() {
        assert_eq!(delay("off"), Ok(Duration::ZERO));
        assert_eq!(delay("30s"), Ok(Duration::from_secs(30)));
        for wrong in ["30", "0s", "soon"] {
            assert!(delay(wrong).is_err(), "{wrong}");
        }
    }
}
