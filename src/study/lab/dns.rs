//! The lab's name server: parses queries, encodes answers, serves UDP and TCP.
//!
//! It has A records of the web's hosts; it answers AAAA and other types of a known name with no
//! data. Unknown names under `.test` don't exist; for all others it refuses to answer (REFUSED).
//! Names of hostile hosts are answered as the kind of the host demands.
//!
//! Source: RFC 1035, section 4 (messages, TCP framing); RFC 2308 (no data); RFC 6761 (`.test`).

use super::Error;
use crate::study::web::{Naming, Web};
use mio::net::{TcpListener, TcpStream, UdpSocket};
use mio::{Interest, Registry, Token};
use slab::Slab;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

const TYPE_A: u16 = 1;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const HEADER_BYTES: usize = 12;
/// The most TCP connections at the same time; further clients are rejected.
const STREAMS_MAX: usize = 64;
/// The address that some hostile names resolve to: that of the metadata service of many clouds.
const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// The question of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question<'a> {
    id: u16,
    recursion: bool,
    /// The labels joined by dots, as received.
    name: String,
    kind: u16,
    class: u16,
    /// The question as received, to be repeated in the answer (with its spelling).
    raw: &'a [u8],
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Address(Ipv4Addr),
    /// The name exists, but has no record of this type.
    NoData,
    /// An error with this response code.
    Failure(u8),
    /// A truncated answer: the client shall ask again over TCP.
    Truncated,
    /// A malformed packet.
    Garbled,
    /// No answer.
    Mute,
}

const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const REFUSED: u8 = 5;

/// Parses a query with one question, whose name has no compression pointers; `None` if the packet
/// is anything else.
pub(super) fn parse(packet: &[u8]) -> Option<Question<'_>> {
    let header = packet.get(..HEADER_BYTES)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    // Ignored: a response, an operation other than QUERY, or not exactly one question.
    if header[2] & 0xf8 != 0 || word(4) != 1 {
        return None;
    }
    let mut name = String::new();
    let mut at = HEADER_BYTES;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = packet.get(at..at + length).filter(|_| length < 64)?;
        if !label.iter().all(u8::is_ascii_graphic) || name.len() + length > 253 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().copied().map(char::from));
        at += length;
    }
    let tail = packet.get(at..at + 4)?;
    let kind = u16::from_be_bytes([tail[0], tail[1]]);
    let class = u16::from_be_bytes([tail[2], tail[3]]);
    let (id, recursion) = (word(0), header[2] & 1 != 0);
    Some(Question { id, recursion, name, kind, class, raw: &packet[HEADER_BYTES..at + 4] })
}

/// Returns the encoded answer; `None` if the query is not answered.
pub(super) fn answer(
    web: &Web,
    question: &Question<'_>,
    ttl: Duration,
    over_tcp: bool,
) -> Option<Vec<u8>> {
    match judge(web, question, over_tcp) {
        Verdict::Mute => None,
        Verdict::Address(address) => Some(write(question, 0, false, Some(address), ttl)),
        Verdict::NoData => Some(write(question, 0, false, None, ttl)),
        Verdict::Failure(code) => Some(write(question, code, false, None, ttl)),
        Verdict::Truncated => Some(write(question, 0, true, None, ttl)),
        Verdict::Garbled => {
            // The header announces a record that is cut off in its middle.
            let mut packet = write(question, 0, false, Some(FORBIDDEN), ttl);
            packet.truncate(packet.len() - 9);
            Some(packet)
        }
    }
}

fn judge(web: &Web, question: &Question<'_>, over_tcp: bool) -> Verdict {
    let name = question.name.to_ascii_lowercase();
    let ours = name == "test" || name.ends_with(".test");
    if !ours || question.class != CLASS_IN {
        return Verdict::Failure(REFUSED);
    }
    let Some(number) = web.host_named(&name) else { return Verdict::Failure(NO_SUCH_NAME) };
    let naming = web.hostile_of(number).map_or(Naming::Address, |kind| kind.spec().naming);
    let has_address = matches!(question.kind, TYPE_A | TYPE_ANY);
    let address = if naming == Naming::Forbidden { FORBIDDEN } else { web.host(number).address };
    match naming {
        Naming::NoSuchName => Verdict::Failure(NO_SUCH_NAME),
        Naming::Fails => Verdict::Failure(SERVER_FAILURE),
        Naming::Mute => Verdict::Mute,
        Naming::Garbled => Verdict::Garbled,
        Naming::OverTcp if !over_tcp => Verdict::Truncated,
        Naming::NoAddress => Verdict::NoData,
        _ if !has_address => Verdict::NoData,
        Naming::Address | Naming::OverTcp | Naming::Forbidden => Verdict::Address(address),
    }
}

fn write(
    question: &Question<'_>,
    code: u8,
    truncated: bool,
    address: Option<Ipv4Addr>,
    ttl: Duration,
) -> Vec<u8> {
    let mut packet = Vec::with_capacity(HEADER_BYTES + question.raw.len() + 16);
    packet.extend(question.id.to_be_bytes());
    // Response, authoritative; recursion available, because stub resolvers expect it.
    packet.push(0x84 | u8::from(truncated) << 1 | u8::from(question.recursion));
    packet.push(0x80 | code);
    packet.extend([0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    packet.extend(question.raw);
    if let Some(address) = address {
        let seconds = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
        // The name is a pointer to the question's.
        packet.extend([0xc0, 12]);
        packet.extend(TYPE_A.to_be_bytes());
        packet.extend(CLASS_IN.to_be_bytes());
        packet.extend(seconds.to_be_bytes());
        packet.extend([0, 4]);
        packet.extend(address.octets());
    }
    packet
}

/// The sockets of the name server.
#[derive(Debug)]
pub(super) struct NameServer {
    udp: UdpSocket,
    tcp: TcpListener,
    streams: Slab<Stream>,
    ttl: Duration,
    /// The number of questions answered, or left unanswered on purpose.
    pub(super) lookups: u64,
}

#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    input: Vec<u8>,
}

/// The first of the name server's poller tokens, that of its UDP socket; the next is its TCP
/// listener's, and those of the TCP connections follow.
pub(super) const DNS_TOKENS: usize = usize::MAX / 2;

impl NameServer {
    /// Registers the UDP socket and the TCP listener with the poller.
    pub(super) fn new(
        mut udp: UdpSocket,
        mut tcp: TcpListener,
        ttl: Duration,
        registry: &Registry,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Socket("watch the name server's sockets", source);
        registry.register(&mut udp, Token(DNS_TOKENS), Interest::READABLE).map_err(failed)?;
        registry.register(&mut tcp, Token(DNS_TOKENS + 1), Interest::READABLE).map_err(failed)?;
        Ok(Self { udp, tcp, streams: Slab::new(), ttl, lookups: 0 })
    }

    /// Serves the socket with this poller token, which is ready.
    pub(super) fn turn(&mut self, web: &Web, registry: &Registry, token: Token) {
        match token.0 - DNS_TOKENS {
            0 => self.serve_udp(web),
            1 => self.accept(registry),
            slot => self.serve_stream(web, slot - 2),
        }
    }

    fn serve_udp(&mut self, web: &Web) {
        let mut packet = [0; 1_500];
        loop {
            match self.udp.recv_from(&mut packet) {
                Ok((length, from)) => {
                    let Some(question) = parse(&packet[..length]) else { continue };
                    self.lookups += 1;
                    if let Some(reply) = answer(web, &question, self.ttl, false) {
                        // A full socket buffer loses the packet, as networks do.
                        let _ = self.udp.send_to(&reply, from);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error about an earlier reply; the next packet may be fine.
                Err(_) => {}
            }
        }
    }

    fn accept(&mut self, registry: &Registry) {
        while let Ok((mut socket, _)) = self.tcp.accept() {
            let entry = self.streams.vacant_entry();
            let token = Token(DNS_TOKENS + 2 + entry.key());
            if entry.key() < STREAMS_MAX
                && registry.register(&mut socket, token, Interest::READABLE).is_ok()
            {
                entry.insert(Stream { socket, input: Vec::new() });
            }
        }
    }

    fn serve_stream(&mut self, web: &Web, slot: usize) {
        let Some(stream) = self.streams.get_mut(slot) else { return };
        let mut chunk = [0; 1_024];
        let open = loop {
            match stream.socket.read(&mut chunk) {
                Ok(0) => break false,
                Ok(length) => stream.input.extend(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(_) => break false,
            }
            self.lookups += answer_stream(web, stream, self.ttl);
            if stream.input.len() > 1 << 16 {
                break false;
            }
        };
        if !open {
            self.streams.remove(slot);
        }
    }
}

/// Answers every complete message of a TCP connection's input; each has its length in front (RFC
/// 1035, section 4.2.2). Returns the number of questions.
fn answer_stream(web: &Web, stream: &mut Stream, ttl: Duration) -> u64 {
    let mut lookups = 0;
    while let Some(length) = stream.input.first_chunk::<2>() {
        let end = 2 + usize::from(u16::from_be_bytes(*length));
        let Some(message) = stream.input.get(2..end) else { break };
        if let Some(question) = parse(message) {
            lookups += 1;
            if let Some(reply) = answer(web, &question, ttl, true) {
                let length = u16::try_from(reply.len()).expect("a short message");
                let framed = [&length.to_be_bytes()[..], &reply].concat();
                // Small enough for any socket buffer; the reply is lost for a client that doesn't
                // read.
                let _ = stream.socket.write_all(&framed);
            }
        }
        stream.input.drain(..end);
    }
    lookups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::study::web::{Ports, Settings};

    fn web() -> Web {
        Web::new(Settings::hostile(), Ports::default())
    }

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut packet = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.bytes());
        }
        packet.push(0);
        packet.extend(kind.to_be_bytes());
        packet.extend([0, 1]);
        packet
    }

    fn ask(name: &str, kind: u16, over_tcp: bool) -> Option<Vec<u8>> {
        let packet = query(name, kind);
        answer(&web(), &parse(&packet).unwrap(), Duration::from_secs(300), over_tcp)
    }

    #[test]
    fn an_answer_byte_by_byte() {
        let expected = [
            &[0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0][..],
            b"\x05H0000\x04tEst\x00\x00\x01\x00\x01",
            &[0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 127, 1, 0, 1],
        ]
        .concat();
        assert_eq!(ask("H0000.tEst", TYPE_A, false).unwrap(), expected, "spelling is repeated");
    }

    /// (name, type, over TCP, response code, answers, truncated, why)
    #[test]
    fn verdicts() {
        const AAAA: u16 = 28;
        let cases = [
            ("h0009.test", 1, false, 0, 1, false, "the last host"),
            ("h0010.test", 1, false, 3, 0, false, "one beyond it doesn't exist"),
            ("h0000.test", AAAA, false, 0, 0, false, "RFC 2308 2.2: no data, not no name"),
            ("www.example.org", 1, false, 5, 0, false, "not ours to answer for"),
            ("test", 1, false, 3, 0, false, "the zone itself has no record"),
            ("nx.test", 1, false, 3, 0, false, "NXDOMAIN"),
            ("empty.test", 1, false, 0, 0, false, "no address"),
            ("servfail.test", 1, false, 2, 0, false, "SERVFAIL"),
            ("tcp-dns.test", 1, false, 0, 0, true, "RFC 1035 4.1.1: truncated"),
            ("tcp-dns.test", 1, true, 0, 1, false, "whole over TCP"),
            ("forbidden.test", 1, false, 0, 1, false, "a forbidden address"),
        ];
        for (name, kind, over_tcp, code, answers, truncated, why) in cases {
            let reply = ask(name, kind, over_tcp).unwrap_or_else(|| panic!("{name}: {why}"));
            assert_eq!(reply[3] & 0xf, code, "{name}: {why}");
            assert_eq!(reply[7], answers, "{name}: {why}");
            assert_eq!(reply[2] & 2 != 0, truncated, "{name}: {why}");
        }
        assert_eq!(ask("slow-dns.test", TYPE_A, false), None);
        let garbled = ask("garbled-dns.test", TYPE_A, false).unwrap();
        assert_eq!((garbled[7], garbled.len()), (1, query("garbled-dns.test", 1).len() + 7));
        let forbidden = ask("forbidden.test", TYPE_A, false).unwrap();
        assert!(forbidden.ends_with(&[169, 254, 169, 254]));
    }

    #[test]
    fn packets_that_are_no_question() {
        let good = query("h0000.test", TYPE_A);
        for cut in 0..good.len() {
            assert_eq!(parse(&good[..cut]), None, "cut at {cut}");
        }
        let cases: [(usize, u8, &str); 4] = [
            (2, 0x81, "a response (RFC 1035 4.1.1 QR)"),
            (2, 0x29, "another operation (OPCODE)"),
            (5, 2, "two questions"),
            (12, 0xc0, "a pointer in the question's name (RFC 1035 4.1.4)"),
        ];
        for (at, byte, why) in cases {
            let mut packet = good.clone();
            packet[at] = byte;
            assert_eq!(parse(&packet), None, "{why}");
        }
        let mut random = Random(1);
        for _ in 0..20_000 {
            let mut packet = good.clone();
            for _ in 0..4 {
                let at = random.below(packet.len());
                packet[at] = random.word() as u8;
            }
            if let Some(question) = parse(&packet) {
                let reply = answer(&web_once(), &question, Duration::ZERO, false);
                assert!(reply.is_none_or(|reply| reply[..2] == packet[..2]));
            }
        }
    }

    fn web_once() -> Web {
        Web::new(Settings { hosts: 1, pages: 1, ..Settings::default() }, Ports::default())
    }
}
