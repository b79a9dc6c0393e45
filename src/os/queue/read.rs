//! Reads logs: several messages at once, from any place, and the ones to come.
//!
//! A direct get (ADR-31 of NATS) returns messages of a subject without a consumer on the server. If
//! there are none, the reading waits until a notice says that there are, or until its time is up.
//! Any replica answers a direct get, and it may lag behind. So before a log is said to have nothing
//! new, the stream's leader is asked for its last message.

use super::failure;
use super::names::Names;
use crate::engine::contract::queue::{Delivery, Partition, Reading, Sequence};
use async_nats::jetstream::{ErrorCode, stream};
use async_nats::{Client, Message};
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// The most messages of a portion.
const MESSAGES_MAX: usize = 256;
/// How long the next message of a portion is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a replica that lags behind is asked again.
const LAG: Duration = Duration::from_millis(50);

/// What is known of new messages, by partition.
#[derive(Debug)]
pub(super) struct Notices(Box<[(Notify, AtomicU64)]>);

impl Default for Notices {
    fn default() -> Self {
        Self(Partition::all().map(|_| (Notify::new(), AtomicU64::new(0))).collect())
    }
}

impl Notices {
    /// Notes that a log has a message of this number.
    pub(super) fn notice(&self, partition: Partition, sequence: u64) {
        let (notify, last) = &self.0[partition.index()];
        last.fetch_max(sequence, Ordering::Relaxed);
        notify.notify_waiters();
    }
}

/// Messages of a log in order, and how many it has after them.
type Portion = (Vec<Delivery>, u64);

/// What a reading needs.
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) stream: stream::Stream,
    pub(super) names: Arc<Names>,
    pub(super) notices: Arc<Notices>,
}

impl Reader {
    /// Reads a portion of a log; nothing if no message came while it waited for one. Returns the
    /// messages, and how many the log has after them.
    ///
    /// # Errors
    /// The log can't be read, in words.
    pub(super) async fn read(&self, reading: &Reading) -> Result<Portion, String> {
        let until = Instant::now() + reading.wait;
        let (notify, last) = &self.notices.0[reading.partition.index()];
        loop {
            let mut notified = std::pin::pin!(notify.notified());
            notified.as_mut().enable();
            let portion = self.portion(reading).await?;
            if !portion.0.is_empty() {
                return Ok(portion);
            }
            if last.load(Ordering::Relaxed) > reading.after.0 {
                sleep(LAG).await;
            } else if Instant::now() < until {
                let _ = tokio::time::timeout_at(until, notified).await;
            } else if self.has_more(reading).await? {
                sleep(LAG).await;
            } else {
                return Ok(Portion::default());
            }
        }
    }

    /// Returns the messages that there are now.
    async fn portion(&self, reading: &Reading) -> Result<Portion, String> {
        let Reading { partition, after, bytes_max, .. } = *reading;
        let subject = self.names.log(partition);
        let unread = |how: String| format!("{subject} can't be read: {how}; it is tried again");
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(inbox.clone()).await;
        let mut answers = answers.map_err(|error| unread(failure::all(&error)))?;
        let ask = json!({
            "seq": after.0 + 1,
            "next_by_subj": subject,
            "batch": MESSAGES_MAX,
            "max_bytes": bytes_max,
        });
        let to = format!("$JS.API.DIRECT.GET.{}", self.names.stream);
        let asked = self.client.publish_with_reply(to, inbox, ask.to_string().into()).await;
        asked.map_err(|error| unread(failure::all(&error)))?;
        let mut messages: Vec<Delivery> = Vec::new();
        loop {
            let answer = timeout(PATIENCE, answers.next()).await;
            let Ok(Some(answer)) = answer else {
                return Err(unread("the server doesn't answer".to_owned()));
            };
            match answer.status.map(|status| status.as_u16()) {
                None => messages.push(delivery(partition, answer).map_err(unread)?),
                // The end of the portion says which message was its last.
                Some(204) => {
                    let last = number(&answer, "Nats-Last-Sequence");
                    let is_whole = messages.last().map(|last| last.sequence.0) == last;
                    let how = || "a part of the answer is lost".to_owned();
                    let left = number(&answer, "Nats-Num-Pending").unwrap_or(0);
                    return if is_whole { Ok((messages, left)) } else { Err(unread(how())) };
                }
                Some(404) => return Ok((messages, 0)),
                Some(503) => return Err(unread("no server has the stream".to_owned())),
                Some(status) => {
                    let how = answer.description.unwrap_or_default();
                    return Err(unread(format!("{status} {how}")));
                }
            }
        }
    }

    /// Returns whether the leader has a message of the log after the place of a reading.
    async fn has_more(&self, reading: &Reading) -> Result<bool, String> {
        let subject = self.names.log(reading.partition);
        match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(last) => Ok(last.sequence > reading.after.0),
            Err(error) => match error.kind() {
                stream::LastRawMessageErrorKind::NoMessageFound => Ok(false),
                stream::LastRawMessageErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::NO_MESSAGE_FOUND =>
                {
                    Ok(false)
                }
                _ => Err(format!("{subject} can't be read: {}", failure::all(&error))),
            },
        }
    }
}

fn number(message: &Message, field: &str) -> Option<u64> {
    message.headers.as_ref()?.get(field)?.as_str().parse().ok()
}

/// Returns a message of a log.
///
/// # Errors
/// It has no number, in words.
fn delivery(partition: Partition, message: Message) -> Result<Delivery, String> {
    let sequence = number(&message, "Nats-Sequence");
    let sequence = Sequence(sequence.ok_or("a message without a number")?);
    Ok(Delivery { partition, sequence, payload: message.payload.to_vec().into() })
}
