//! One HTTP/1.1 connection as seen by its client: requests out, replies in, what to repeat.
//!
//! Five parts that don't know each other's insides, joined by the road:
//! [`request`] writes the bytes of a request; [`response`] cuts the bytes of a connection into
//! heads and payload, one reply after the other; [`pipeline`] counts what is under way and learns
//! what a server allows; [`coding`] undoes content codings under a budget; [`mime`] says of which
//! type a body is.
//!
//! Laws: how the bytes of a connection are cut into reads changes no result. Nothing here panics on
//! bytes of a peer, and nothing grows past the caps in [`Settings`]. What the peer sent stays with
//! the caller as it came: payload is told as ranges into it.
//!
//! It does not know waits, sockets or TLS; only [`cookies`], which are kept for a chain of
//! redirects, look at URLs.
//! Source: RFC 9110 (meaning), RFC 9112 (framing and connections).

pub mod challenge;
pub mod coding;
pub mod cookies;
pub mod mime;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod wait;

/// Settings of the station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Caps on one reply.
    pub response: response::Limits,
    /// Caps on what content codings may expand to.
    pub decode: coding::DecodeLimits,
    /// How many requests may be under way on a connection.
    pub pipeline: pipeline::Settings,
}
