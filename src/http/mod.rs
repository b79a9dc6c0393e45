//! HTTP/1.1 as a client speaks it: writes requests, parses replies, and decides what to repeat.
//!
//! The modules of this folder don't depend on each other's internals; `engine` joins them:
//! - [`request`] writes the bytes of a request.
//! - [`response`] splits the bytes of a connection into heads and payload, one reply after the
//!   other.
//! - [`pipeline`] counts the requests in flight on a connection, and learns how many a server
//!   allows.
//! - [`coding`] decodes content codings within a budget.
//! - [`mime`] parses media types and detects HTML.
//! - [`signature`] signs requests, so that servers can verify who asks.
//! - [`challenge`] detects bot challenges, [`cookies`] holds the cookies of a redirect chain, and
//!   [`wait`] parses `Retry-After` and similar fields.
//!
//! Laws:
//! - The result does not depend on how the bytes of a connection are split into reads.
//! - No input from a peer causes a panic, and nothing grows past the caps in [`Settings`].
//! - Received bytes stay unchanged in the caller's buffer: payload is reported as ranges of it.
//!
//! This folder does no I/O, and knows nothing of politeness, sockets or TLS. Only [`cookies`] looks
//! at URLs.
//! Source: RFC 9110 (semantics), RFC 9112 (framing and connections).

pub mod challenge;
pub mod coding;
pub mod cookies;
pub mod date;
pub mod mime;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod signature;
pub mod wait;

/// Returns whether a reply with this status is a redirect, if its `Location` is valid: the
/// "redirect status" of the Fetch standard.
pub const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The settings of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The limits on the size of one reply.
    pub response: response::Limits,
    /// The limits on the decoded size of a body.
    pub decode: coding::DecodeLimits,
    /// The limits on the number of requests in flight on one connection.
    pub pipeline: pipeline::Settings,
}
