//! Before a node begins: the crawl's stream and bucket, and the crawl's entry, which all nodes must
//! agree on.

use super::Settings;
use super::connect::{ANSWER_MAX, with_server};
use super::failure::{Failure, all, mistake, trouble};
use super::names::{Names, key_text};
use super::trouble::code_of;
use crate::engine::contract::queue::{Key, Partition};
use async_nats::jetstream::{self, Context, ErrorCode, kv, stream};
use async_nats::{Client, HeaderMap};
use std::time::Duration;
use tokio::time::timeout;

/// How long the stream refuses a message's number twice.
const DUPLICATES: Duration = Duration::from_secs(10 * 60);
/// The numbers of the errors that there are fewer servers than replicas.
const REPLICAS: [u64; 2] = [10_005, 10_074];
/// The pause before the crawl's entry is asked for again, and how long it is asked for.
const AGAIN: Duration = Duration::from_millis(100);
const AGREE_MAX: Duration = Duration::from_secs(15);
/// How often an answer about a stream is asked for.
const ASKED: u32 = 8;

/// Creates what a crawl needs in the queue, unless it is there. Returns the value of the crawl's
/// entry, which is `value` if there was none.
///
/// # Errors
/// No server can be reached in ten seconds or lets this node in, it is too old or lacks JetStream,
/// it forbids this node something, or what is there isn't what a crawl needs.
pub fn agree(settings: &Settings, value: Box<[u8]>) -> Result<Box<[u8]>, Failure> {
    with_server(settings, async |client| {
        let context = jetstream::new(client.clone());
        let names = Names::of(&settings.crawl);
        make_stream(settings, &context, &names).await?;
        try_log(&client, &names).await;
        let bucket = make_bucket(settings, &context, &names).await?;
        let mut why = "the crawl's entry can't be read; look at the server's log".to_owned();
        let agreed = timeout(AGREE_MAX, entry_of(&bucket, value, &mut why)).await;
        agreed.map_err(|_| trouble("cluster.servers", why))
    })
}

/// Returns the value of the crawl's entry, once there is one: `value` if there was none. `why` says
/// what is in the way.
async fn entry_of(bucket: &kv::Store, value: Box<[u8]>, why: &mut String) -> Box<[u8]> {
    let key = key_text(&Key::Crawl);
    loop {
        match bucket.update(&key, value.clone().into(), 0).await {
            Ok(_) => return value,
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {}
            Err(error) => *why = format!("the crawl's entry can't be written: {}", all(&error)),
        }
        // A replica that lags behind may not have it yet.
        if let Ok(Some(found)) = bucket.get(&key).await {
            return found.to_vec().into();
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Offers a log a message that no stream takes, since it is meant for another one. A server that
/// forbids this node to append to logs reports that now, not when pages wait.
async fn try_log(client: &Client, names: &Names) {
    let mut fields = HeaderMap::new();
    fields.insert("Nats-Expected-Stream", "none");
    let log = names.log(Partition::all().next().expect("there are partitions"));
    // Whatever the answer is, it was permitted; a stream without a leader doesn't answer.
    let _ = client.request_with_headers(log, fields, "".into()).await;
}

/// Asks about a stream until there is an answer; `None` if there is none in sixteen seconds. A
/// stream that is being made on several servers has no leader, and nobody answers for it.
async fn answered<T>(ask: impl AsyncFn() -> T) -> Option<T> {
    for _ in 0..ASKED {
        if let Ok(answer) = timeout(ANSWER_MAX, ask()).await {
            return Some(answer);
        }
    }
    None
}

/// Returns the configuration of the crawl's stream; `None` if there is none.
///
/// # Errors
/// It isn't what a crawl needs, or the server doesn't say.
pub(super) async fn find_stream(
    context: &Context,
    names: &Names,
) -> Result<Option<stream::Config>, Failure> {
    let found = answered(async || context.get_stream(&names.stream).await).await;
    let Some(found) = found else {
        let text = format!(
            "no server answers for the stream {}; are most servers of its NATS cluster running?",
            names.stream
        );
        return Err(trouble("cluster.servers", text));
    };
    match found {
        Ok(found) => {
            let config = found.cached_info().config.clone();
            match wrong_in(&config, names) {
                Some(text) => Err(mistake("cluster.name", text)),
                None => Ok(Some(config)),
            }
        }
        Err(error) => match error.kind() {
            jetstream::context::GetStreamErrorKind::JetStream(error)
                if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                Ok(None)
            }
            _ => {
                let text = format!(
                    "{}; is JetStream on (a jetstream block in the server's configuration), and \
                     may this node use it?",
                    all(&error)
                );
                Err(trouble("cluster.servers", text))
            }
        },
    }
}

async fn make_stream(settings: &Settings, context: &Context, names: &Names) -> Result<(), Failure> {
    if find_stream(context, names).await?.is_some() {
        return Ok(());
    }
    let config = stream::Config {
        name: names.stream.clone(),
        description: Some(format!("logs of the crawl {} (sted)", settings.crawl)),
        subjects: vec![names.all_logs()],
        retention: stream::RetentionPolicy::Limits,
        // A log never loses what was appended, however full its stream is.
        discard: stream::DiscardPolicy::New,
        storage: stream::StorageType::File,
        num_replicas: settings.replicas,
        duplicate_window: DUPLICATES,
        allow_direct: true,
        allow_atomic_publish: true,
        ..stream::Config::default()
    };
    // It may be repeated: a stream that is as it should be is left as it is.
    match answered(async || context.create_stream(config.clone()).await).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(unmade("stream", names, &error)),
        None => {
            let text = format!("no server makes the stream {}; look at its log", names.stream);
            Err(trouble("cluster.servers", text))
        }
    }
}

/// Returns that the stream or the bucket can't be made, with the cause and a fix.
fn unmade(what: &str, names: &Names, error: &(dyn std::error::Error + 'static)) -> Failure {
    let text = format!("the {what} {} can't be made: {}", names.stream, all(error));
    match REPLICAS.contains(&code_of(error)) {
        true => mistake("cluster.replicas", text),
        false => trouble("cluster.servers", text),
    }
}

/// Returns what is wrong with a stream that was made by somebody else, in words.
fn wrong_in(config: &stream::Config, names: &Names) -> Option<String> {
    let limits = [
        ("max_age", !config.max_age.is_zero()),
        ("max_msgs", config.max_messages > 0),
        ("max_msgs_per_subject", config.max_messages_per_subject > 0),
        ("a retention that isn't limits", config.retention != stream::RetentionPolicy::Limits),
        ("a discard policy that isn't new", config.discard != stream::DiscardPolicy::New),
        ("storage in memory", config.storage != stream::StorageType::File),
        ("no allow_direct", !config.allow_direct),
        ("no allow_atomic", !config.allow_atomic_publish),
        ("other subjects", config.subjects != [names.all_logs()]),
    ];
    let wrong = limits.into_iter().filter_map(|(name, is)| is.then_some(name));
    let wrong: Vec<&str> = wrong.collect();
    (!wrong.is_empty()).then(|| {
        format!(
            "the stream {} has {}: it would lose what the crawl's logs must keep, or can't serve \
             it; edit it, or let sted make it under another name",
            names.stream,
            wrong.join(", ")
        )
    })
}

async fn make_bucket(
    settings: &Settings,
    context: &Context,
    names: &Names,
) -> Result<kv::Store, Failure> {
    let found = answered(async || context.get_key_value(&names.stream).await).await;
    if let Some(Ok(bucket)) = found {
        return Ok(bucket);
    }
    let config = kv::Config {
        bucket: names.stream.clone(),
        description: format!("owners of the crawl {} (sted)", settings.crawl),
        history: 1,
        storage: stream::StorageType::File,
        num_replicas: settings.replicas,
        ..kv::Config::default()
    };
    let made = context.create_key_value(config).await;
    made.map_err(|error| unmade("bucket", names, &error))
}
