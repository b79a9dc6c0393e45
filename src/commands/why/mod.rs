//! `sted why`: says why a URL was fetched, was not, or waits.
//!
//! The crawl's own knowledge comes from the running crawl through its control socket, or from the
//! state of a crawl that doesn't run (`stopped`). Both are answers of `Engine::why`. The crawl log
//! and the index of the archive are read here (`history`). `text` formats all of it for people, and
//! `conclusion` sums it up in a sentence.

mod conclusion;
mod history;
mod stopped;
mod text;
mod words;

use super::{Exit, Failure, job, load};
use crate::engine::why::{Subject, Why};
use crate::os::{console, disk};
use crate::url::key::KeyRules;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// The exit codes of `sted why`, for its help text.
pub(super) const EXITS: &str = "Exit codes:
   0  answered
   2  the command line or the configuration is wrong
   3  a file can't be read, or the running crawl did not answer
   5  there is no such job, or it has no state to read

Examples:
  sted why jobs/crawl https://a.test/page
  sted why my.toml 'https://a.test/?id=7' --json";

/// Answers the question about the URL `text` in the job `job`, which is a job directory or a
/// configuration.
///
/// # Errors
/// There is no such job, or its files can't be read.
pub fn run(job: &Path, text: &str, is_json: bool) -> Result<Exit, Failure> {
    let directory = job::directory(job)?;
    let file = directory.join("conf.toml");
    if !file.exists() {
        let text = format!("{}: has no crawl; `sted crawl` begins one", directory.display());
        return Err(Failure::new(Exit::Job, text));
    }
    let conf = load(&file)?;
    let running = running(&directory, text)?;
    let is_running = running.is_some();
    let why = match running {
        Some(mut why) => {
            if conf.recrawl.policy.is_some() {
                stopped::add_known(&directory, &conf, &mut why);
            }
            why
        }
        None => stopped::why(&directory, &conf, text)?,
    };
    let history = history::of(&directory, &why, &KeyRules::new(conf.url.settings()))?;
    let (fate, sentence) = conclusion::of(&why, &history, is_running);
    let text = match is_json {
        true => {
            let value = json!({
                "fate": fate, "conclusion": sentence, "running": is_running,
                "why": why, "history": history,
            });
            let mut text = serde_json::to_string_pretty(&value).expect("plain values");
            text.push('\n');
            text
        }
        false => console::printable(&text::of(&why, &history, &sentence)).into_owned(),
    };
    // A reader that has closed stdout has seen enough.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(Exit::Finished)
}

/// Asks the running crawl; returns `None` if none runs in `directory`.
#[cfg(feature = "control")]
fn running(directory: &Path, text: &str) -> Result<Option<Why>, Failure> {
    use crate::os::control::client::{self, Error};
    let escaped: String = ::url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    let path = format!("/why?url={escaped}");
    let wrong = |why: &dyn std::fmt::Display| Failure::of_file(directory, why);
    match client::request(directory, &path, None) {
        Ok(reply) if reply.status == 200 => {
            let why = serde_json::from_str(&reply.text);
            why.map(Some).map_err(|error| wrong(&format!("the reply is unreadable: {error}")))
        }
        Ok(reply) => Err(wrong(&format!("the crawl replies {}: {}", reply.status, reply.text))),
        Err(Error::NotRunning) => refuse_running(directory).map(|()| None),
        Err(error) => Err(wrong(&error)),
    }
}

#[cfg(not(feature = "control"))]
fn running(directory: &Path, _: &str) -> Result<Option<Why>, Failure> {
    refuse_running(directory).map(|()| None)
}

/// Refuses a job that a process works on, which can't be asked. Its state is about to change.
fn refuse_running(directory: &Path) -> Result<(), Failure> {
    let job = directory.display();
    match disk::is_locked(directory) {
        Ok(false) => Ok(()),
        Ok(true) => {
            let text = format!(
                "{job}: a process works on this job, and has no control socket; ask again when it \
                 has ended"
            );
            Err(Failure::new(Exit::Job, text))
        }
        Err(error) => Err(Failure::of_file(directory, &error)),
    }
}
