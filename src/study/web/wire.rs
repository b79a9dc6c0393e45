//! Replies as bytes on the wire: framing, content codings, and the steps of hostile behaviour.
//!
//! A server's behaviour is a list of [`Step`]s; a simulated world or the lab only has to carry them
//! out: send, repeat, drip, stall, close, reset. The reply of a well-behaved host is one step.
//!
//! Source: RFC 9112 (framing); RFC 9110, section 8.4 (codings); RFC 1950 to 1952, 7932, 8878.

use super::hostile::{Hostile, Play, WALLS, alike, heavy, sessions};
use super::page::Reply;
use super::{Coding, Host, Place, Resource, Web, signed};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// One thing a server does on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes repeatedly until the client closes the connection.
    Repeat(Vec<u8>),
    /// Sends these bytes one at a time, [`DRIP_EVERY`] apart.
    Drip(Vec<u8>),
    /// Does nothing until the client closes the connection.
    Stall,
    /// Closes the connection in order.
    Close,
    /// Resets the connection.
    Reset,
}

/// The time between two bytes of a [`Step::Drip`].
pub const DRIP_EVERY: Duration = Duration::from_secs(1);

/// The properties of a request that decide the form of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// True if the client uses HTTP/1.0: the body is not sent in chunks.
    pub http10: bool,
    /// True if the method is HEAD: no body is sent.
    pub head: bool,
    /// True if the client accepts the host's content coding.
    pub coded: bool,
    /// True if the client has what the reply shows: the reply is 304, without a body.
    pub unmodified: bool,
    /// True if the request has a signature that holds.
    pub signed: bool,
}

/// A reply as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Head and body of the reply.
    pub bytes: Vec<u8>,
    /// The position in `bytes` where further header fields may be inserted.
    pub fields_at: usize,
    /// The position in `bytes` where the head continues after its `Connection` field, if it has
    /// one: `fields_at..fields_end` may be replaced by another `Connection` field.
    pub fields_end: usize,
    /// True if the body has no length of its own, so that closing the connection marks its end.
    pub closes: bool,
}

/// The smallest length in bytes of a body that is coded.
pub(super) const CODED_BYTES_MIN: usize = 200;
/// The decoded length of a bomb in bytes: twice the usual limit of decoded bodies.
pub const BOMB_BYTES: usize = 128 << 20;

/// Frames and codes a reply as its host does.
pub fn encode(reply: &Reply, host: &Host, terms: Terms) -> Wire {
    if terms.unmodified {
        return encode_unmodified(reply, host, terms);
    }
    let coded = terms.coded
        && host.coding != Coding::Identity
        && reply.content_type.starts_with("text/html")
        && reply.body.len() >= CODED_BYTES_MIN;
    let coding = if coded { host.coding } else { Coding::Identity };
    let packed = coded.then(|| compress(coding, &reply.body));
    let body = packed.as_ref().unwrap_or(&reply.body);
    let mut head = format!(
        "HTTP/1.{} {} {}\r\nServer: synthetic\r\nContent-Type: {}\r\n{}",
        u8::from(!host.http10),
        reply.status,
        reason(reply.status),
        reply.content_type,
        reply.fields
    );
    if coded {
        let _ = write!(head, "Content-Encoding: {}\r\nVary: Accept-Encoding\r\n", coding.name());
    }
    let chunked = host.chunked && !terms.http10;
    // Half of the HTTP/1.0 hosts mark the end of the body by closing only.
    let closes = host.http10 && host.number % 2 == 1;
    if chunked {
        head.push_str("Transfer-Encoding: chunked\r\n");
    } else if !closes {
        let _ = write!(head, "Content-Length: {}\r\n", body.len());
    }
    let fields_at = head.len();
    if host.says_kept && !terms.http10 {
        head.push_str("Connection: keep-alive\r\n");
    }
    let fields_end = head.len();
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if !terms.head {
        if chunked { push_chunks(&mut bytes, body) } else { bytes.extend(body) }
    }
    Wire { bytes, fields_at, fields_end, closes }
}

/// Encodes the reply 304 to a client that has what `reply` shows (RFC 9110, section 15.4.5).
fn encode_unmodified(reply: &Reply, host: &Host, terms: Terms) -> Wire {
    let version = u8::from(!host.http10);
    let mut head =
        format!("HTTP/1.{version} 304 {}\r\nServer: synthetic\r\n{}", reason(304), reply.fields);
    let fields_at = head.len();
    if host.says_kept && !terms.http10 {
        head.push_str("Connection: keep-alive\r\n");
    }
    let fields_end = head.len();
    head.push_str("\r\n");
    Wire {
        bytes: head.into_bytes(),
        fields_at,
        fields_end,
        closes: host.http10 && host.number % 2 == 1,
    }
}

/// Writes a body in chunks of uneven sizes; the first chunk has an extension, the last a trailer
/// (RFC 9112, section 7.1).
fn push_chunks(bytes: &mut Vec<u8>, mut body: &[u8]) {
    let sizes = [7, 1_000, 4_096, 333, 8_000];
    let mut sizes = sizes.iter().cycle();
    let mut extension = ";part=first";
    while !body.is_empty() {
        let size = sizes.next().map_or(1, |size| body.len().min(*size));
        let (chunk, rest) = body.split_at(size);
        bytes.extend(format!("{size:X}{extension}\r\n").bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        (body, extension) = (rest, "");
    }
    bytes.extend(b"0\r\nX-Trailer: done\r\n\r\n");
}

/// Compresses a body with the coding.
pub fn compress(coding: Coding, body: &[u8]) -> Vec<u8> {
    pack(coding, |out| out.write_all(body))
}

/// Returns a decompression bomb: [`BOMB_BYTES`] of blanks, compressed with the coding.
pub fn bomb(coding: Coding) -> Vec<u8> {
    let block = [b' '; 1 << 16];
    pack(coding, |out| (0..BOMB_BYTES / block.len()).try_for_each(|_| out.write_all(&block)))
}

fn pack(coding: Coding, fill: impl Fn(&mut dyn Write) -> std::io::Result<()>) -> Vec<u8> {
    const MEMORY: &str = "writing to memory doesn't fail";
    let level = Compression::new(5);
    match coding {
        Coding::Identity => {
            let mut out = Vec::new();
            fill(&mut out).expect(MEMORY);
            out
        }
        Coding::Gzip => {
            let mut out = GzEncoder::new(Vec::new(), level);
            fill(&mut out).expect(MEMORY);
            out.finish().expect(MEMORY)
        }
        Coding::Deflate => {
            let mut out = ZlibEncoder::new(Vec::new(), level);
            fill(&mut out).expect(MEMORY);
            out.finish().expect(MEMORY)
        }
        Coding::RawDeflate => {
            let mut out = DeflateEncoder::new(Vec::new(), level);
            fill(&mut out).expect(MEMORY);
            out.finish().expect(MEMORY)
        }
        Coding::Brotli => {
            let mut out = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 5, 20);
            fill(&mut out).expect(MEMORY);
            out.into_inner()
        }
        Coding::Zstd => {
            let mut out = zstd::stream::Encoder::new(Vec::new(), 3).expect(MEMORY);
            fill(&mut out).expect(MEMORY);
            out.finish().expect(MEMORY)
        }
    }
}

/// Returns the steps of a hostile host's behaviour `play`: what happens on the connection when
/// `place` is requested. `asked` is how often it was requested before.
pub fn script(web: &Web, place: Place, play: Play, asked: u32, terms: Terms) -> Vec<Step> {
    let host = web.host(place.host);
    let send = |reply: &Reply| vec![Step::Send(encode(reply, &host, terms).bytes)];
    let found = |to: &str| Reply::redirect(302, to);
    match play {
        Play::Index | Play::Plain | Play::TwoMore => send(&web.play_reply(place, play)),
        Play::Sessions => {
            let Resource::Row { index, .. } = place.resource else { return vec![Step::Close] };
            send(&Reply::html(200, sessions::body(index)))
        }
        Play::RedirectTo(path) => send(&found(path)),
        Play::RedirectOn => {
            let Resource::Row { row, index } = place.resource else { return vec![Step::Close] };
            let resource = Resource::Row { row, index: index.saturating_add(1) };
            send(&found(&web.path(Place { resource, ..place })))
        }
        Play::RetryAfter { seconds, times } if asked < times => {
            let mut reply = Reply::html(503, "<!DOCTYPE html><title>Later</title>".to_owned());
            reply.fields = format!("Retry-After: {seconds}\r\n");
            send(&reply)
        }
        Play::RetryAfter { .. } => send(&web.play_reply(place, Play::Plain)),
        Play::Error => send(&Reply::html(500, "<!DOCTYPE html><title>500</title>".to_owned())),
        Play::HugeRobots => send(&huge_robots()),
        Play::Informational => informational(&send(&web.play_reply(place, Play::Plain))),
        Play::Bomb(coding) => vec![Step::Send(under(coding.name(), &bomb(coding)))],
        Play::BombTwice => {
            let twice = compress(Coding::Gzip, &bomb(Coding::Gzip));
            vec![Step::Send(under("gzip, gzip", &twice))]
        }
        Play::Wall => {
            let Resource::Row { index, .. } = place.resource else { return vec![Step::Close] };
            let wall = WALLS[index as usize % WALLS.len()];
            let reply = Reply::html(wall.status, wall.body());
            send(&Reply { fields: wall.fields.to_owned(), ..reply })
        }
        Play::Alike => {
            let Resource::Row { index, .. } = place.resource else { return vec![Step::Close] };
            let links: Vec<String> =
                web.links(place).iter().map(|link| web.path(link.to)).collect();
            send(&Reply::html(200, alike::body(&host.name, index, &links)))
        }
        Play::Signed if terms.signed => send(&web.play_reply(place, Play::Plain)),
        Play::SignedRules if terms.signed => {
            send(&Reply::text("User-agent: *\nDisallow: /closed\n".to_owned()))
        }
        Play::Signed | Play::SignedRules => {
            let body = "<!DOCTYPE html><title>403</title><p>Sign your requests.".to_owned();
            send(&Reply { fields: signed::ASKS.to_owned(), ..Reply::html(403, body) })
        }
        Play::Heavy(heavy) => {
            let (fields, body) = heavy::reply(heavy);
            vec![Step::Send(whole(fields, &body))]
        }
        _ => misbehave(play),
    }
}

/// Returns the steps of a behaviour that doesn't depend on the page requested.
fn misbehave(play: Play) -> Vec<Step> {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    const SMALL: &str = "<!DOCTYPE html><title>Small</title><p>A body of little weight.";
    let send = |text: String| Step::Send(text.into_bytes());
    let half = || send(format!("{OK}Content-Length: 4000\r\n\r\n{}", "half ".repeat(400)));
    match play {
        Play::EndlessHead => {
            vec![send(OK.to_owned()), Step::Repeat(b"X-More: and more of it\r\n".repeat(100))]
        }
        Play::EndlessBody => {
            let chunk = format!("4000\r\n{}\r\n", "endless ".repeat(2_048));
            vec![
                send(format!("{OK}Transfer-Encoding: chunked\r\n\r\n")),
                Step::Repeat(chunk.into_bytes()),
            ]
        }
        Play::DripHead => {
            vec![Step::Drip((OK.to_owned() + &"X: y\r\n".repeat(1_000)).into_bytes())]
        }
        Play::DripBody => vec![
            send(format!("{OK}Content-Length: 10000\r\n\r\n")),
            Step::Drip(b"drip ".repeat(2_000)),
        ],
        Play::CloseAtOnce => vec![Step::Close],
        Play::ResetAtOnce => vec![Step::Reset],
        Play::ResetLater => vec![half(), Step::Reset],
        Play::StallBody => vec![half(), Step::Stall],
        Play::CutBody => vec![half(), Step::Close],
        Play::TooLong => {
            let length = SMALL.len();
            vec![send(format!("{OK}Content-Length: {length}\r\n\r\n{SMALL}{}", "more ".repeat(20)))]
        }
        Play::Framing(fields) => vec![send(format!("{OK}{fields}\r\n{SMALL}")), Step::Close],
        Play::Chunks(body) => {
            vec![send(format!("{OK}Transfer-Encoding: chunked\r\n\r\n{body}")), Step::Close]
        }
        Play::Head(head) => vec![send(format!("{head}{SMALL}")), Step::Close],
        _ => vec![Step::Stall],
    }
}

fn informational(reply: &[Step]) -> Vec<Step> {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n\
                      HTTP/1.1 100 Continue\r\n\r\n"
        .to_vec();
    if let [Step::Send(proper)] = reply {
        bytes.extend(proper);
    }
    vec![Step::Send(bytes)]
}

fn under(coding: &str, body: &[u8]) -> Vec<u8> {
    whole(&format!("Content-Type: text/html\r\nContent-Encoding: {coding}\r\n"), body)
}

/// Returns a complete reply with these head fields and this body.
fn whole(fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n").into_bytes();
    bytes.extend(body);
    bytes
}

/// Returns a robots.txt of 600 KiB. The rule that matters comes first, because parsers may stop at
/// 500 KiB (RFC 9309, section 2.5).
fn huge_robots() -> Reply {
    let mut rules = "User-agent: *\nDisallow: /closed\n".to_owned();
    let mut number = 0;
    while rules.len() < 600 << 10 {
        let _ = writeln!(rules, "Disallow: /nothing/of/interest/{number}");
        number += 1;
    }
    Reply::text(rules)
}

/// Whether hosts of a kind reset connections. Their servers must leave bytes unread for that.
pub fn resets(kind: Hostile) -> bool {
    kind.spec().rows.iter().any(|row| matches!(row.play, Play::ResetAtOnce | Play::ResetLater))
}

/// Returns the reason phrase of a status code.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
