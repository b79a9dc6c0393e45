//! Appends messages to logs: all of them, or none.
//!
//! Several messages are an atomic batch (ADR-50 of NATS): each has the batch's id and its number in
//! it, and the last one commits. One message is published alone. The last message has the number of
//! the publication as its id, which the stream refuses a second time; then all is in the logs since
//! the first time.

use super::failure;
use super::names::Names;
use super::trouble::fix_of;
use crate::engine::contract::queue::{Message, Publication};
use async_nats::{Client, HeaderMap, Request};
use serde::Deserialize;
use std::time::Duration;

/// What a stream answers.
#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<Refusal>,
    #[serde(default)]
    seq: u64,
}

/// Why a stream has refused messages.
#[derive(Debug, Deserialize)]
struct Refusal {
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// How long an answer is waited for: a server that syncs each message may take seconds for some
/// hundred, and would get behind by more if they were repeated before it is done.
const ANSWER_MAX: Duration = Duration::from_secs(50);
/// The number of the error that a batch has a message whose id was seen before.
const IS_DUPLICATE: u64 = 10_201;

/// Publishes messages under this id of the batch, another one for each call. Returns when they are
/// in the logs.
///
/// # Errors
/// Why they aren't known to be, in words.
pub(super) async fn publish(
    client: &Client,
    names: &Names,
    publication: Publication,
    batch: &str,
) -> Result<(), String> {
    let Publication { id, messages } = publication;
    let count = messages.len();
    let lost = |error: &(dyn std::error::Error + 'static)| {
        format!("a publication has no answer: {}; it is repeated", failure::all(error))
    };
    for (number, Message { partition, payload }) in messages.into_iter().enumerate() {
        let (subject, payload) = (names.log(partition), payload.into_vec().into());
        let mut fields = HeaderMap::new();
        if count > 1 {
            fields.insert("Nats-Batch-Id", batch);
            fields.insert("Nats-Batch-Sequence", (number + 1).to_string());
        }
        if number + 1 < count {
            let sent = client.publish_with_headers(subject, fields, payload).await;
            sent.map_err(|error| lost(&error))?;
            continue;
        }
        if count > 1 {
            fields.insert("Nats-Batch-Commit", "1");
        }
        fields.insert("Nats-Msg-Id", format!("{:x}-{:x}", id.process, id.number));
        let request = Request::new().headers(fields).payload(payload).timeout(Some(ANSWER_MAX));
        let answer = client.send_request(subject, request).await;
        return read(&answer.map_err(|error| lost(&error))?.payload);
    }
    Ok(())
}

/// Reads the answer of a stream.
///
/// # Errors
/// What it has refused and why, in words.
fn read(answer: &[u8]) -> Result<(), String> {
    let answer: Answer = serde_json::from_slice(answer)
        .map_err(|error| format!("the answer to a publication makes no sense: {error}"))?;
    match answer.error {
        Some(Refusal { err_code: IS_DUPLICATE, .. }) => Ok(()),
        Some(Refusal { err_code, description }) => Err(format!(
            "the server refuses what is to be published: {description} ({err_code}){}",
            fix_of(err_code)
        )),
        None if answer.seq > 0 => Ok(()),
        None => Err("the answer to a publication has no number; it is repeated".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        for answer in [
            r#"{"stream":"sted-a","seq":7}"#,
            r#"{"stream":"sted-a","seq":7,"duplicate":true}"#,
            r#"{"type":"x","error":{"code":400,"err_code":10201,"description":"d"}}"#,
        ] {
            assert_eq!(read(answer.as_bytes()), Ok(()), "{answer}");
        }
        let full =
            br#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},
            "stream":"sted-a","seq":0}"#;
        let text = read(full).expect_err("nothing was appended");
        assert!(text.contains("maximum bytes exceeded (10077); raise"), "{text}");
        for answer in ["", "{}", "{\"seq\":0}", "[]", "+OK"] {
            assert!(read(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
