//! The side thread: one connection after the other, and what is carried over each of them.

use super::carry::Carrier;
use super::connect::ANSWER_MAX;
use super::names::{Names, key_of};
use super::trouble::Trouble;
use super::{Settings, connect as login, failure};
use crate::engine::contract::queue::{Entry, Event, Request, Revision};
use crate::os::work::Mailbox;
use async_nats::jetstream::{self, kv};
use async_nats::{Client, Event as Note};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::timeout;

/// The pause before what has failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest pause between two tries to connect.
const RECONNECT_MAX: Duration = Duration::from_secs(2);

/// Carries requests until there will be no more.
pub(super) async fn serve(
    settings: &Settings,
    mut requests: UnboundedReceiver<Request>,
    post: &Arc<Mailbox<Event>>,
) {
    let trouble = Arc::new(Trouble::default());
    let (state, mut connected) = watch::channel(false);
    let Some(client) = connect(settings, state, &trouble).await else {
        // Nothing is answered: the engine asks nobody.
        while requests.recv().await.is_some() {}
        return;
    };
    let names = Arc::new(Names::of(&settings.crawl));
    loop {
        tokio::select! {
            is_there = connected.wait_for(|is| *is) => if is_there.is_err() { return },
            // Nobody waits for an answer now.
            request = requests.recv() => match request {
                Some(_) => continue,
                None => return,
            },
        }
        let link = Link::open(&client, &names, &trouble).await;
        let mut link = match link {
            Ok(link) => link,
            Err(text) => {
                trouble.warn(format!("{text}; it is tried again"));
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        // What was asked before is without an answer for ever.
        while requests.try_recv().is_ok() {}
        post.post(Event::Connected);
        let is_over = link.run(&mut requests, &mut connected, post).await;
        drop(link);
        post.post(Event::Disconnected);
        if is_over {
            return;
        }
    }
}

/// Begins to connect, and goes on for ever. `state` shows whether there is a connection.
async fn connect(
    settings: &Settings,
    state: watch::Sender<bool>,
    trouble: &Arc<Trouble>,
) -> Option<Client> {
    let options = match login::options(settings).await {
        Ok(options) => options,
        Err(failure) => {
            trouble.warn(failure.to_string());
            return None;
        }
    };
    let (servers, notes) = (settings.servers.join(", "), Arc::clone(trouble));
    let crawl = settings.crawl.clone();
    let options = options
        .retry_on_initial_connect()
        .reconnect_delay_callback(|tries| {
            RECONNECT_MAX.min(Duration::from_millis(50) * u32::try_from(tries).unwrap_or(u32::MAX))
        })
        .event_callback(move |note| {
            match &note {
                Note::Connected => state.send_replace(true),
                Note::Disconnected | Note::Closed => state.send_replace(false),
                _ => false,
            };
            match note {
                Note::Connected => log::info!("cluster: connected to {servers}"),
                Note::Disconnected => {
                    notes.warn(format!("the connection to {servers} is lost; it is tried again"));
                }
                note => {
                    let what = login::forbidden_by(&note, &crawl);
                    let what = what.unwrap_or_else(|| note.to_string());
                    notes.warn(format!("{servers}: {what}"));
                }
            }
            std::future::ready(())
        });
    match options.connect(settings.servers.clone()).await {
        Ok(client) => Some(client),
        Err(error) => {
            trouble.warn(failure::all(&error));
            None
        }
    }
}

/// A connection with everything that a crawl needs of it.
struct Link {
    carrier: Carrier,
    entries: kv::Watch,
    notices: jetstream::consumer::push::Ordered,
    names: Arc<Names>,
    trouble: Arc<Trouble>,
}

impl Link {
    /// Looks for the crawl's bucket and stream, and begins to watch both.
    ///
    /// # Errors
    /// Why that isn't possible, in words.
    async fn open(
        client: &Client,
        names: &Arc<Names>,
        trouble: &Arc<Trouble>,
    ) -> Result<Self, String> {
        let context = jetstream::new(client.clone());
        let unreached =
            |what: &str, how: &str| format!("the {what} {} can't be reached: {how}", names.stream);
        let silent = "no server answers for it; its servers may be choosing a leader";
        let bucket = timeout(ANSWER_MAX, context.get_key_value(&names.stream)).await;
        let bucket = bucket.map_err(|_| unreached("bucket", silent))?;
        let bucket = bucket.map_err(|error| unreached("bucket", &failure::all(&error)))?;
        let stream = timeout(ANSWER_MAX, context.get_stream(&names.stream)).await;
        let stream = stream.map_err(|_| unreached("stream", silent))?;
        let stream = stream.map_err(|error| unreached("stream", &failure::all(&error)))?;
        let unwatched = |what: &str, error: &(dyn std::error::Error + 'static)| {
            format!("the {what} {} can't be watched: {}", names.stream, failure::all(error))
        };
        let notices = jetstream::consumer::push::OrderedConfig {
            deliver_subject: client.new_inbox(),
            description: Some("notices of new messages".to_owned()),
            headers_only: true,
            deliver_policy: jetstream::consumer::DeliverPolicy::New,
            ..Default::default()
        };
        let notices = stream.create_consumer(notices).await;
        let notices = notices.map_err(|error| unwatched("stream", &error))?;
        let notices = notices.messages().await.map_err(|error| unwatched("stream", &error))?;
        let entries = bucket.watch_many_with_history([">"]).await;
        let entries = entries.map_err(|error| unwatched("bucket", &error))?;
        let carrier = Carrier::new(client.clone(), stream, bucket, names, trouble);
        Ok(Self {
            carrier,
            entries,
            notices,
            names: Arc::clone(names),
            trouble: Arc::clone(trouble),
        })
    }

    /// Carries requests and reports what comes, until the connection is lost, or until there will
    /// be no more requests: then it returns true.
    async fn run(
        &mut self,
        requests: &mut UnboundedReceiver<Request>,
        connected: &mut watch::Receiver<bool>,
        post: &Arc<Mailbox<Event>>,
    ) -> bool {
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.carrier.carry(request, post),
                    None => return true,
                },
                change = connected.wait_for(|is| !*is) => return change.is_err(),
                entry = self.entries.next() => match entry {
                    Some(Ok(entry)) => self.report(entry, post),
                    other => return self.lose("entries", other.and_then(Result::err)),
                },
                notice = self.notices.next() => match notice {
                    Some(Ok(message)) => {
                        let sequence = message.info().map_or(0, |info| info.stream_sequence);
                        self.carrier.notice(&message.subject, sequence);
                    }
                    other => return self.lose("logs", other.and_then(Result::err)),
                },
            }
        }
    }

    /// Notes that the bucket or the stream can't be watched any more. Returns that there will be
    /// more requests.
    fn lose<E: std::error::Error + 'static>(&self, what: &str, error: Option<E>) -> bool {
        let how = error.map_or_else(|| "it ended".to_owned(), |error| failure::all(&error));
        self.trouble.warn(format!("the watch over the crawl's {what} broke: {how}; it is renewed"));
        false
    }

    fn report(&self, entry: kv::Entry, post: &Arc<Mailbox<Event>>) {
        let Some(key) = key_of(&entry.key) else {
            let (key, bucket) = (&entry.key, &self.names.stream);
            return self.trouble.warn(format!(
                "the bucket {bucket} has the key {key:?}, which is no crawl's: remove it"
            ));
        };
        let (revision, value) = (Revision(entry.revision), entry.value.to_vec().into());
        post.post(Event::Entry(Entry { key, revision, value }));
    }
}
