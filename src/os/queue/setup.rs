//! Before a node begins: the connection, what the server must be able to do, the crawl's stream and
//! bucket, and the crawl's entry, which all nodes must agree on.

use super::names::{Names, key_text};
use super::{Settings, runtime};
use crate::engine::contract::queue::Key;
use async_nats::jetstream::{self, Context, ErrorCode, kv, stream};
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use std::fmt;
use std::time::Duration;

/// The oldest version of the server that has atomic batches.
const SERVER_MIN: (u32, u32) = (2, 12);
/// How long a server is tried at the start.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long the stream refuses a message's number twice.
const DUPLICATES: Duration = Duration::from_secs(10 * 60);
/// The pause before the crawl's entry is asked for again.
const AGAIN: Duration = Duration::from_millis(100);
/// How often the crawl's entry is asked for.
const TRIES: u32 = 50;

/// Why a node can't begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The key of the configuration that it is about.
    pub key: &'static str,
    /// What is wrong, and what to do.
    pub text: String,
    /// Whether the configuration has to be changed; otherwise the same may succeed later.
    pub is_mistake: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

fn mistake(key: &'static str, text: String) -> Failure {
    Failure { key, text, is_mistake: true }
}

pub(super) fn trouble(key: &'static str, text: String) -> Failure {
    Failure { key, text, is_mistake: false }
}

/// Creates what a crawl needs in the queue, unless it is there. Returns the value of the crawl's
/// entry, which is `value` if there was none.
///
/// # Errors
/// No server can be reached in ten seconds or lets this node in, it is too old or lacks JetStream,
/// or what is there isn't what a crawl needs.
pub fn agree(settings: &Settings, value: Box<[u8]>) -> Result<Box<[u8]>, Failure> {
    block_on(async {
        let client = connect_once(settings).await?;
        let context = jetstream::new(client);
        let names = Names::of(&settings.crawl);
        make_stream(settings, &context, &names).await?;
        let bucket = make_bucket(settings, &context, &names).await?;
        let key = key_text(&Key::Crawl);
        for _ in 0..TRIES {
            let created = bucket.update(&key, value.clone().into(), 0).await;
            match created {
                Ok(_) => return Ok(value.clone()),
                Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {}
                Err(error) => {
                    let text = format!("the crawl's entry can't be written: {}", all(&error));
                    return Err(trouble("cluster.servers", text));
                }
            }
            // A replica that lags behind may not have it yet.
            if let Ok(Some(found)) = bucket.get(&key).await {
                return Ok(found.to_vec().into());
            }
            tokio::time::sleep(AGAIN).await;
        }
        let text = "the crawl's entry can't be read; look at the server's log".to_owned();
        Err(trouble("cluster.servers", text))
    })
}

/// Runs work in a runtime of its own.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime().map_err(|error| trouble("cluster", error.to_string()))?;
    runtime.block_on(work)
}

/// Returns how a connection is made.
///
/// # Errors
/// A file can't be read.
pub(super) async fn options(settings: &Settings) -> Result<ConnectOptions, Failure> {
    let Settings { crawl, node, credentials, user, roots, certificate, .. } = settings;
    let mut options = ConnectOptions::new()
        .name(format!("sted {crawl} {node}"))
        .connection_timeout(Duration::from_secs(5))
        .ping_interval(Duration::from_secs(5))
        .subscription_capacity(64 << 10)
        .request_timeout(Some(Duration::from_secs(10)));
    let unreadable = |key, path: &std::path::Path, error: std::io::Error| {
        mistake(key, format!("{}: {error}", path.display()))
    };
    if let Some(path) = credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(|error| unreadable("cluster.credentials", path, error))?;
    }
    if let Some((name, path)) = user {
        let password = std::fs::read_to_string(path);
        let password =
            password.map_err(|error| unreadable("cluster.password_file", path, error))?;
        options = options.user_and_password(name.clone(), password.trim_end().to_owned());
    }
    if let Some(path) = roots {
        options = options.add_root_certificates(path.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

pub(super) async fn connect_once(settings: &Settings) -> Result<Client, Failure> {
    let connecting = options(settings).await?.connect(settings.servers.clone());
    let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
    let servers = settings.servers.join(", ");
    let client = match connected {
        Ok(Ok(client)) => client,
        Err(_) => {
            let text = format!("{servers}: no answer in {CONNECT_MAX:?}; is the server running?");
            return Err(trouble("cluster.servers", text));
        }
        Ok(Err(error)) => {
            let (how, because) = (all(&error), error.kind());
            return Err(match because {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    let text = format!(
                        "{servers}: {how}; give this node credentials, or a user and a \
                         password_file, that the server knows"
                    );
                    mistake("cluster.credentials_file", text)
                }
                ConnectErrorKind::Tls => mistake(
                    "cluster.roots_file",
                    format!("{servers}: {how}; name the file of the authority that has signed"),
                ),
                ConnectErrorKind::ServerParse => {
                    mistake("cluster.servers", format!("{servers}: {how}"))
                }
                _ => {
                    trouble("cluster.servers", format!("{servers}: {how}; is the server running?"))
                }
            });
        }
    };
    let version = client.server_info().version;
    if version_of(&version).is_none_or(|version| version < SERVER_MIN) {
        let (major, minor) = SERVER_MIN;
        let text = format!(
            "{servers}: the server is version {version}, which has no atomic batches; install \
             nats-server {major}.{minor} or newer (Debian's package is older)"
        );
        return Err(mistake("cluster.servers", text));
    }
    Ok(client)
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the configuration of the crawl's stream; `None` if there is none.
///
/// # Errors
/// It isn't what a crawl needs, or the server doesn't say.
pub(super) async fn find_stream(
    context: &Context,
    names: &Names,
) -> Result<Option<stream::Config>, Failure> {
    match context.get_stream(&names.stream).await {
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
    context.create_stream(config).await.map(|_| ()).map_err(|error| {
        let text = format!("the stream {} can't be made: {}", names.stream, all(&error));
        trouble("cluster.servers", text)
    })
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
    if let Ok(bucket) = context.get_key_value(&names.stream).await {
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
    context.create_key_value(config).await.map_err(|error| {
        let text = format!("the bucket {} can't be made: {}", names.stream, all(&error));
        trouble("cluster.servers", text)
    })
}

/// Returns the text of an error and of what caused it.
pub(super) fn all(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (text, is_enough) in [
            ("2.9.10", false),
            ("2.12.0", true),
            ("2.15.3", true),
            ("3.0.0-beta", true),
            ("", false),
        ] {
            let is = version_of(text).is_some_and(|version| version >= SERVER_MIN);
            assert_eq!(is, is_enough, "{text}");
        }
    }
}
