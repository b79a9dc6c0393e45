//! The client of the control socket, for the commands `ctl` and `status`.

use super::socket;
use crate::os::disk::Root;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::os::unix::net;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// The longest reply that is read, in bytes.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// The longest time for a request. The server takes at most 30 seconds.
const REQUEST_TIME: Duration = Duration::from_secs(35);

/// A reply of the running crawl.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code of HTTP.
    pub status: u16,
    /// The text, mostly JSON.
    pub text: String,
}

/// Why there is no reply.
#[derive(Debug)]
pub enum Error {
    /// No crawl runs in this directory.
    NotRunning,
    /// The crawl ended, or was killed, before it replied.
    Ended,
    /// The socket can't be reached, or the exchange failed.
    Failed(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => f.write_str("no crawl runs here"),
            Self::Ended => f.write_str("the crawl ended before it replied"),
            Self::Failed(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "the crawl belongs to another user ({}: {error})", socket::NAME)
            }
            Self::Failed(error) => write!(f, "{}: {error}", socket::NAME),
        }
    }
}

impl std::error::Error for Error {}

/// Sends a request to the crawl that runs in `directory`. If there is a body, its method is POST.
///
/// # Errors
/// No crawl runs there, or the exchange failed.
pub fn request(directory: &Path, path: &str, body: Option<&str>) -> Result<Reply, Error> {
    let root = Root::open(directory).map_err(Error::Failed)?;
    let stream = socket::connect(&root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::NotRunning,
        _ => Error::Failed(error),
    })?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = Full::new(Bytes::copy_from_slice(body.unwrap_or_default().as_bytes()));
    let request = hyper::Request::builder().method(method).uri(path).header(HOST, "localhost");
    let request = request.body(body).map_err(|error| Error::Failed(io::Error::other(error)))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let reply = runtime.and_then(|runtime| runtime.block_on(timeout_of(exchange(stream, request))));
    reply.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Error::Ended,
        _ => Error::Failed(error),
    })
}

async fn timeout_of(exchange: impl Future<Output = io::Result<Reply>>) -> io::Result<Reply> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    timeout(REQUEST_TIME, exchange).await.map_err(late)?
}

async fn exchange(
    stream: net::UnixStream,
    request: hyper::Request<Full<Bytes>>,
) -> io::Result<Reply> {
    stream.set_nonblocking(true)?;
    let stream = TokioIo::new(UnixStream::from_std(stream)?);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(failed)?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(failed)?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), REPLY_BYTES_MAX).collect();
    let bytes = body.await.map_err(io::Error::other)?.to_bytes();
    Ok(Reply { status, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Converts an error of the exchange. That the other side is gone is a reset of the connection.
fn failed(error: hyper::Error) -> io::Error {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        Some(cause) => cause.kind().into(),
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            io::ErrorKind::ConnectionReset.into()
        }
        None => io::Error::other(error),
    }
}
