//! The side thread of the control socket: accepts connections and serves one request on each.
//!
//! Limits: 100 connections at once (more wait to be accepted), one request a connection, 30 seconds
//! a connection, 32 KiB for the head of a request, 1 MiB for its body. So a client that sends
//! nothing, or never reads, is gone after 30 seconds.
//! Only the user that runs the crawl and root are served, whatever the mode of the socket is.

use super::request::Desk;
use super::routes::{self, Peer};
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
use tokio::time::{sleep, timeout};

const CONNECTIONS_MAX: u32 = 100;
const CONNECTION_TIME: Duration = Duration::from_secs(30);
const HEAD_BYTES_MAX: usize = 32 << 10;
/// The time that clients have to read their last replies when the crawl has ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// The wait after a connection could not be accepted, for example since descriptors are used up.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until the other end of `ended` is dropped.
pub(super) fn serve(listener: net::UnixListener, desk: &Arc<Desk>, ended: oneshot::Receiver<()>) {
    if let Err(error) = try_serve(listener, desk, ended) {
        log::error!("the control socket has failed: {error}; the crawl goes on without it");
    }
}

fn try_serve(
    listener: net::UnixListener,
    desk: &Arc<Desk>,
    ended: oneshot::Receiver<()>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let listener = UnixListener::from_std(listener)?;
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&room), Arc::clone(desk)));
        // Its only end is an error: the sender is dropped.
        let _ = ended.await;
        accepting.abort();
        // The room is free when all connections have ended.
        let _ = timeout(FAREWELL, room.acquire_many(CONNECTIONS_MAX)).await;
        Ok(())
    })
}

async fn accept(listener: UnixListener, room: Arc<Semaphore>, desk: Arc<Desk>) {
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_one(stream, place, Arc::clone(&desk)));
            }
            Err(error) => {
                log::debug!("the control socket: cannot accept a connection: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one request on a connection, then closes it.
async fn serve_one(stream: UnixStream, place: OwnedSemaphorePermit, desk: Arc<Desk>) {
    let peer = peer(&stream);
    let service = service_fn(|request| async {
        Ok::<_, Infallible>(routes::answer(request, &peer, &desk).await)
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX).header_read_timeout(None);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::debug!("the control socket: {error}"),
        Err(_) => log::debug!("the control socket: a client took longer than 30 s"),
    }
    drop(place);
}

/// Identifies the user at the other end of the connection.
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

/// Returns the name of a user from `/etc/passwd`, or the number if it has none there.
fn name_of(user: u32) -> String {
    let number = user.to_string();
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.get(2) == Some(&number.as_str()));
    found.map_or_else(|| format!("user {number}"), |fields| fields[0].to_owned())
}
