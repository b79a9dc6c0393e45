//! What goes wrong with the queue, in the log: each text once a minute at most.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a text isn't repeated.
const SILENCE: Duration = Duration::from_secs(60);
/// The maximum number of texts that are remembered.
const TEXTS_MAX: usize = 64;

/// The texts that were logged, and when.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<BTreeMap<String, Instant>>);

impl Trouble {
    /// Logs a text, unless it was logged a moment ago.
    pub(super) fn warn(&self, text: String) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        texts.retain(|_, at| now.duration_since(*at) < SILENCE);
        if texts.len() < TEXTS_MAX && !texts.contains_key(&text) {
            log::warn!("cluster: {text}");
            texts.insert(text, now);
        }
    }
}

/// Returns what to do about an error of JetStream with this number; empty if that is unknown.
pub(super) fn fix_of(code: u64) -> &'static str {
    match code {
        10_023 | 10_047 => "; give JetStream more room (max_file_store, or the account's limit)",
        10_077 | 10_122 => "; raise the stream's max_bytes: the crawl goes on when it can append",
        10_109 => "; the stream is sealed for ever: begin another crawl",
        10_054 => "; raise max_payload of the server and max_msg_size of the stream to 1 MiB",
        10_174 => "; allow atomic batches: nats stream edit STREAM --allow-batch",
        10_210 => "; raise jetstream.limits.max_batch_inflight_per_stream of the server",
        10_059 => "; if the stream was deleted, the crawl's logs are lost: begin another crawl",
        _ => "",
    }
}
