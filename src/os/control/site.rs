//! What the server on the side thread needs to know of a listener.

use super::routes::Page as Reply;
use hyper::Request;
use hyper::body::Incoming;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// A listener, and how the requests that arrive at it are answered.
pub(super) trait Site: Send + Sync + 'static {
    /// The name of the listener in messages.
    const NAME: &str;
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// What is known of the client.
    type Peer: Send + Sync;

    /// Accepts a connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
    /// Identifies the client at the other end of a connection.
    fn peer(stream: &Self::Stream) -> Self::Peer;
    /// Answers a request.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: &Self::Peer,
    ) -> impl Future<Output = Reply> + Send;
}
