//! What operators see and write in the queue from outside: all entries, the state of the logs, the
//! list of commands to all nodes.

use super::Settings;
use super::connect::with_server;
use super::failure::{Failure, all, trouble};
use super::names::{Names, key_of, key_text};
use super::setup::find_stream;
use crate::engine::contract::queue::{Entry, Key, Partition, Revision, Sequence};
use async_nats::jetstream::{self, Context, consumer, kv, stream};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the next of several messages is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often an entry is changed again that others have changed meanwhile.
const TRIES: u32 = 20;

/// What is in the queue.
#[derive(Clone, Debug)]
pub struct Look {
    /// The version of the server.
    pub version: String,
    /// All entries.
    pub entries: Vec<Entry>,
    /// The last message of each log that has any.
    pub last: BTreeMap<Partition, Sequence>,
    /// The number of messages in all logs.
    pub messages: u64,
    /// The length of the messages in all logs, in bytes.
    pub bytes: u64,
}

/// Looks at the queue of a crawl; `None` if no node has begun it.
///
/// # Errors
/// No server can be reached, or lets this one in, or it doesn't answer.
pub fn look(settings: &Settings) -> Result<Option<Look>, Failure> {
    with_server(settings, async |client| {
        let version = client.server_info().version;
        let context = jetstream::new(client);
        let names = Names::of(&settings.crawl);
        let Some((bucket, mut logs)) = open(&context, &names).await? else { return Ok(None) };
        let info = logs.info().await.map_err(|error| unread(&error))?;
        let (messages, bytes) = (info.state.messages, info.state.bytes);
        let entries = entries(&bucket).await?;
        let last = last(&context, &logs, &names).await?;
        Ok(Some(Look { version, entries, last, messages, bytes }))
    })
}

/// Changes the list of commands to all nodes: `change` gets the present value, and returns the next
/// one or why there is none.
///
/// # Errors
/// Those of [`look`], and of `change`; or no node has begun the crawl.
pub fn change_orders(
    settings: &Settings,
    mut change: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, String>,
) -> Result<(), Failure> {
    with_server(settings, async |client| {
        let context = jetstream::new(client);
        let names = Names::of(&settings.crawl);
        let Some((bucket, _)) = open(&context, &names).await? else {
            let text = format!("no node has begun the crawl {}", settings.crawl);
            return Err(trouble("cluster.name", text));
        };
        let key = key_text(&Key::Orders);
        for _ in 0..TRIES {
            let found = bucket.entry(&key).await.map_err(|error| unread(&error))?;
            let before = found.as_ref().map(|entry| &entry.value[..]);
            let after = change(before).map_err(|text| trouble("cluster", text))?;
            let revision = found.as_ref().map_or(0, |entry| entry.revision);
            match bucket.update(&key, after.into(), revision).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {}
                Err(error) => return Err(unread(&error)),
            }
        }
        Err(trouble("cluster", "others give commands all the time; try again".to_owned()))
    })
}

fn unread(error: &(dyn std::error::Error + 'static)) -> Failure {
    trouble("cluster.servers", format!("the server refuses: {}", all(error)))
}

async fn open(
    context: &Context,
    names: &Names,
) -> Result<Option<(kv::Store, stream::Stream)>, Failure> {
    if find_stream(context, names).await?.is_none() {
        return Ok(None);
    }
    let logs = context.get_stream(&names.stream).await.map_err(|error| unread(&error))?;
    let bucket = context.get_key_value(&names.stream).await;
    Ok(Some((bucket.map_err(|error| unread(&error))?, logs)))
}

/// Returns all entries of a bucket that are a crawl's.
async fn entries(bucket: &kv::Store) -> Result<Vec<Entry>, Failure> {
    let mut found = Vec::new();
    if bucket.status().await.map_err(|error| unread(&error))?.values() == 0 {
        return Ok(found);
    }
    let watch = bucket.watch_many_with_history([">"]).await;
    let mut watch = watch.map_err(|error| unread(&error))?;
    loop {
        let next = tokio::time::timeout(PATIENCE, watch.next()).await;
        let Ok(Some(Ok(entry))) = next else { return Err(silent()) };
        let (revision, value) = (Revision(entry.revision), entry.value.to_vec().into());
        found.extend(key_of(&entry.key).map(|key| Entry { key, revision, value }));
        if entry.delta == 0 {
            return Ok(found);
        }
    }
}

/// Returns the number of the last message of each log.
async fn last(
    context: &Context,
    logs: &stream::Stream,
    names: &Names,
) -> Result<BTreeMap<Partition, Sequence>, Failure> {
    let mut last = BTreeMap::new();
    let all = consumer::push::OrderedConfig {
        deliver_subject: context.client().new_inbox(),
        filter_subject: names.all_logs(),
        headers_only: true,
        deliver_policy: consumer::DeliverPolicy::LastPerSubject,
        ..Default::default()
    };
    let all = logs.create_consumer(all).await.map_err(|error| unread(&error))?;
    if all.cached_info().num_pending == 0 {
        return Ok(last);
    }
    let mut all = all.messages().await.map_err(|error| unread(&error))?;
    loop {
        let next = tokio::time::timeout(PATIENCE, all.next()).await;
        let Ok(Some(Ok(message))) = next else { return Err(silent()) };
        let Ok(info) = message.info() else { return Err(silent()) };
        if let Some(partition) = names.partition(&message.subject) {
            last.insert(partition, Sequence(info.stream_sequence));
        }
        if info.pending == 0 {
            return Ok(last);
        }
    }
}

fn silent() -> Failure {
    trouble("cluster.servers", "the server doesn't answer; try again".to_owned())
}
