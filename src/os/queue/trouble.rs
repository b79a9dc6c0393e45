//! What goes wrong with the queue, in the log: each text once a minute at most.
//!
//! Texts beyond a number of different ones are counted; the next line says how many they were.

use async_nats::jetstream;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a text isn't repeated.
const SILENCE: Duration = Duration::from_secs(60);
/// The maximum number of texts that are remembered.
const TEXTS_MAX: usize = 64;

/// The log of what goes wrong.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Texts>);

impl Trouble {
    /// Logs a text, unless it was logged a moment ago.
    pub(super) fn warn(&self, text: String) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = texts.admit(text, Instant::now());
        lines.iter().for_each(|line| log::warn!("cluster: {line}"));
    }
}

/// The texts that were logged, and when.
#[derive(Debug, Default)]
struct Texts {
    logged: BTreeMap<String, Instant>,
    /// The number of texts since the last line that weren't logged for want of room.
    left_out: u64,
}

impl Texts {
    /// Returns the lines to log when a text arrives.
    fn admit(&mut self, text: String, now: Instant) -> Vec<String> {
        self.logged.retain(|_, at| now.duration_since(*at) < SILENCE);
        let mut lines = Vec::new();
        if self.logged.contains_key(&text) {
            return lines;
        }
        if self.logged.len() >= TEXTS_MAX {
            self.left_out += 1;
            return lines;
        }
        lines.extend(self.take_left_out());
        lines.push(text.clone());
        self.logged.insert(text, now);
        lines
    }

    fn take_left_out(&mut self) -> Option<String> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then(|| format!("{count} more warnings were left out of the log"))
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        self.take_left_out().into_iter().for_each(|line| log::warn!("cluster: {line}"));
    }
}

/// Returns the number of the error of JetStream among the causes of an error; 0 if there is none.
pub(super) fn code_of(error: &(dyn Error + 'static)) -> u64 {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<jetstream::Error>() {
            return error.error_code().0;
        }
        let made = error.downcast_ref::<CreateStreamError>().map(CreateStreamError::kind);
        if let Some(CreateStreamErrorKind::JetStream(error)) = made {
            return error.error_code().0;
        }
        next = error.source();
    }
    0
}

/// Returns what to do about an error of JetStream with this number; empty if that is unknown.
pub(super) fn fix_of(code: u64) -> &'static str {
    match code {
        10_023 | 10_047 => "; give JetStream more room (max_file_store, or the account's limit)",
        10_077 | 10_122 => "; raise the stream's max_bytes: the crawl goes on when it can append",
        10_027 => "; raise the account's limit on streams: a crawl has two",
        10_039 | 10_076 => "; enable JetStream, for the account of this node's user, too",
        10_109 => "; the stream is sealed for ever: begin another crawl",
        10_054 => "; raise max_payload of the server and max_msg_size of the stream to 1 MiB",
        10_174 => "; allow atomic batches: nats stream edit STREAM --allow-batch",
        10_210 => "; raise jetstream.limits.max_batch_inflight_per_stream of the server",
        10_059 => "; if the stream was deleted, the crawl's logs are lost: begin another crawl",
        10_005 | 10_074 => {
            "; start as many servers as cluster.replicas, as one NATS cluster, or lower it"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_dropped_and_the_rest_is_counted() {
        let mut texts = Texts::default();
        let begun = Instant::now();
        let mut admit = |text: String, s| texts.admit(text, begun + Duration::from_secs(s));
        for number in 0..TEXTS_MAX {
            assert_eq!(admit(format!("text {number}"), 1), [format!("text {number}")]);
        }
        assert!(admit("text 0".to_owned(), 60).is_empty(), "a repeat");
        for number in 0..7 {
            assert!(admit(format!("more {number}"), 60).is_empty(), "there is no room");
        }
        let lines = ["7 more warnings were left out of the log", "text 0"];
        assert_eq!(admit("text 0".to_owned(), 61), lines);
        assert_eq!(admit("text 1".to_owned(), 61), ["text 1"], "they are reported once");
    }
}
