//! The side thread of the control socket and of the admin listener: accepts connections and serves
//! one request on each.
//!
//! Limits of each listener: 100 connections at once (more wait to be accepted), one request a
//! connection, 30 seconds a connection, 32 KiB for the head of a request. So a client that sends
//! nothing, or never reads, is gone after 30 seconds.
//! Only the user that runs the crawl and root are served on the socket, whatever its mode is.

use super::admin;
use super::request::Desk;
use super::routes::{self, Page as Reply, Peer};
use super::site::Site;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const CONNECTIONS_MAX: u32 = 100;
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// The length of a request's head from which it is refused. The buffer may exceed it by what one
/// read returns.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// The time that clients have to read their last replies when the crawl has ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// The wait after a connection could not be accepted, for example since descriptors are used up.
const PAUSE: Duration = Duration::from_millis(100);

/// What the side thread serves.
pub(super) struct Sites {
    /// The control socket, if it could be created, and what its requests are posted to.
    pub(super) socket: Option<(net::UnixListener, Desk)>,
    /// The admin listener and the file of metrics, if they are configured.
    pub(super) admin: Option<admin::Bound>,
}

/// Serves connections until the other end of `ended` is dropped.
pub(super) fn serve(sites: Sites, ended: oneshot::Receiver<()>) {
    if let Err(error) = try_serve(sites, ended) {
        log::error!("the control socket has failed: {error}; the crawl goes on without it");
    }
}

fn try_serve(sites: Sites, ended: oneshot::Receiver<()>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let (mut tasks, mut rooms) = (Vec::new(), Vec::new());
        let mut open = |(room, task)| {
            rooms.push(room);
            tasks.push(task);
        };
        if let Some((listener, desk)) = sites.socket {
            open(start(Socket { listener: UnixListener::from_std(listener)?, desk }));
        }
        let mut textfile = None;
        if let Some(bound) = sites.admin {
            let (site, file) = bound.open()?;
            site.into_iter().for_each(|site| open(start(site)));
            textfile = file.map(|file| (file.path().to_owned(), tokio::spawn(file.keep())));
        }
        // Its only end is an error: the sender is dropped.
        let _ = ended.await;
        tasks.iter().for_each(JoinHandle::abort);
        if let Some((path, task)) = textfile {
            task.abort();
            admin::remove(&path);
        }
        // A room is free when all its connections have ended.
        let all_end = async {
            for room in rooms {
                let _ = room.acquire_many(CONNECTIONS_MAX).await;
            }
        };
        let _ = timeout(FAREWELL, all_end).await;
        Ok(())
    })
}

/// Starts to accept connections. Returns the room for them, and the task.
fn start<S: Site>(site: S) -> (Arc<Semaphore>, JoinHandle<()>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    (Arc::clone(&room), tokio::spawn(accept(Arc::new(site), room)))
}

async fn accept<S: Site>(site: Arc<S>, room: Arc<Semaphore>) {
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match site.accept().await {
            Ok(stream) => {
                tokio::spawn(serve_one(stream, place, Arc::clone(&site)));
            }
            Err(error) => {
                log::debug!("{}: cannot accept a connection: {error}", S::NAME);
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one request on a connection, then closes it.
async fn serve_one<S: Site>(stream: S::Stream, place: OwnedSemaphorePermit, site: Arc<S>) {
    let peer = S::peer(&stream);
    let service =
        service_fn(|request| async { Ok::<_, Infallible>(site.answer(request, &peer).await) });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX).header_read_timeout(None);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::debug!("{}: {error}", S::NAME),
        Err(_) => log::debug!("{}: a client took longer than 30 s", S::NAME),
    }
    drop(place);
}

/// The control socket.
struct Socket {
    listener: UnixListener,
    desk: Desk,
}

impl Site for Socket {
    const NAME: &str = "the control socket";
    type Stream = UnixStream;
    type Peer = Peer;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    fn peer(stream: &UnixStream) -> Peer {
        let us = rustix::process::geteuid().as_raw();
        match stream.peer_cred() {
            Ok(credentials) => {
                let user = credentials.uid();
                Peer { name: name_of(user), is_allowed: user == us || user == 0 }
            }
            Err(_) => Peer { name: "an unknown user".to_owned(), is_allowed: false },
        }
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Reply {
        routes::answer(request, peer, &self.desk).await
    }
}

/// Returns the name of a user from `/etc/passwd`, or the number if it has none there.
fn name_of(user: u32) -> String {
    let number = user.to_string();
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.get(2) == Some(&number.as_str()));
    found.map_or_else(|| format!("user {number}"), |fields| fields[0].to_owned())
}
