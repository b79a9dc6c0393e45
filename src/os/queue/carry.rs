//! Carries requests over one connection, each as a task of its own.

use super::failure;
use super::names::{Names, key_text};
use super::publish::publish;
use super::read::{Notices, Reader};
use super::trouble::Trouble;
use crate::engine::contract::queue::{Event, Purge, Request, Revision, Write, WriteFailure};
use crate::os::work::Mailbox;
use async_nats::Client;
use async_nats::jetstream::{kv, stream};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What carries requests, and the requests that have no answer yet; these are dropped with it.
pub(super) struct Carrier {
    client: Client,
    bucket: kv::Store,
    stream: stream::Stream,
    names: Arc<Names>,
    notices: Arc<Notices>,
    trouble: Arc<Trouble>,
    tasks: JoinSet<()>,
    /// The number of batches so far.
    batches: u64,
}

impl Carrier {
    pub(super) fn new(
        client: Client,
        stream: stream::Stream,
        bucket: kv::Store,
        names: &Arc<Names>,
        trouble: &Arc<Trouble>,
    ) -> Self {
        Self {
            client,
            bucket,
            stream,
            names: Arc::clone(names),
            notices: Arc::default(),
            trouble: Arc::clone(trouble),
            tasks: JoinSet::new(),
            batches: 0,
        }
    }

    /// Notes that a message with this number was appended to a subject.
    pub(super) fn notice(&self, subject: &str, sequence: u64) {
        match self.names.partition(subject) {
            Some(partition) => self.notices.notice(partition, sequence),
            None => self.trouble.warn(format!(
                "the stream {} has a message of the subject {subject:?}, which is no log: find out \
                 who else publishes there",
                self.names.stream
            )),
        }
    }

    /// Begins to carry a request. Its answer is posted.
    pub(super) fn carry(&mut self, request: Request, post: &Arc<Mailbox<Event>>) {
        while self.tasks.try_join_next().is_some() {}
        let (post, trouble) = (Arc::clone(post), Arc::clone(&self.trouble));
        match request {
            Request::Write(asked) => {
                let bucket = self.bucket.clone();
                self.tasks.spawn(async move {
                    let id = asked.id;
                    let result = write(&bucket, asked, &trouble).await;
                    post.post(Event::Wrote { id, result });
                });
            }
            Request::Publish(publication) => {
                self.batches += 1;
                let batch = format!("{:x}-{}", publication.id.process, self.batches);
                let (client, names) = (self.client.clone(), Arc::clone(&self.names));
                self.tasks.spawn(async move {
                    let id = publication.id;
                    let published = publish(&client, &names, publication, &batch).await;
                    let is_durable = published.is_ok();
                    published.unwrap_or_else(|text| trouble.warn(text));
                    post.post(Event::Published { id, is_durable });
                });
            }
            Request::Read(reading) => {
                let reader = Reader {
                    client: self.client.clone(),
                    stream: self.stream.clone(),
                    names: Arc::clone(&self.names),
                    notices: Arc::clone(&self.notices),
                };
                self.tasks.spawn(async move {
                    let read = reader.read(&reading).await;
                    let portion = read.map_err(|text| trouble.warn(text)).ok();
                    let (messages, left) = portion.unzip();
                    let left = left.unwrap_or(0);
                    post.post(Event::Read { reading, messages, left });
                });
            }
            Request::Purge(Purge { partition, through }) => {
                let (stream, subject) = (self.stream.clone(), self.names.log(partition));
                self.tasks.spawn(async move {
                    let purge = stream.purge().filter(&subject).sequence(through.0 + 1);
                    if let Err(error) = purge.await {
                        // The next snapshot purges it, too.
                        let how = failure::all(&error);
                        trouble.warn(format!("what {subject} doesn't need stays in it: {how}"));
                    }
                });
            }
        }
    }
}

/// Changes an entry.
///
/// # Errors
/// The entry has another revision, or nobody knows whether it was changed.
async fn write(
    bucket: &kv::Store,
    asked: Write,
    trouble: &Trouble,
) -> Result<Revision, WriteFailure> {
    let Write { key, expected, value, .. } = asked;
    let expected = expected.map_or(0, |revision| revision.0);
    let key = key_text(&key);
    match bucket.update(&key, value.into_vec().into(), expected).await {
        Ok(revision) => Ok(Revision(revision)),
        Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {
            Err(WriteFailure::Conflict)
        }
        Err(error) => {
            trouble.warn(format!("the entry {key} can't be written: {}", failure::all(&error)));
            Err(WriteFailure::Unknown)
        }
    }
}
