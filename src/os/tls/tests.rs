//! Tests of the stream against their own servers on loopback, one thread each.

#![expect(clippy::disallowed_types, reason = "the servers' sockets")]

use super::*;
use crate::ground::random::Random;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

mod certificates;

/// Changes a certificate so that it is not valid.
type Spoil = fn(&mut CertificateParams);

/// A certificate authority, and the file that makes a client trust it.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    roots: tempfile::NamedTempFile,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let mut roots = tempfile::NamedTempFile::new().unwrap();
        roots.write_all(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), roots }
    }

    /// Configures a server for `name`, whose certificate is valid except for what `spoil` changes.
    fn server(&self, name: &str, spoil: Spoil) -> ServerConfig {
        self.server_of(name, spoil, rustls::ALL_VERSIONS)
    }

    fn server_of(
        &self,
        name: &str,
        spoil: Spoil,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ServerConfig {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        spoil(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        server_config(certificate.der().clone(), &key, versions)
    }

    fn settings(&self) -> Settings {
        Settings { roots_file: Some(self.roots.path().to_owned()), ..Settings::default() }
    }

    fn client(&self) -> Client {
        Client::new(&self.settings()).unwrap()
    }
}

fn server_config(
    certificate: CertificateDer<'static>,
    key: &KeyPair,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_protocol_versions(versions).unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

type Tunnel = StreamOwned<ServerConnection, TcpStream>;

/// Serves connections one after another, each by `script`.
fn serve(config: ServerConfig, script: impl Fn(Tunnel) + Send + 'static) -> SocketAddr {
    let config = Arc::new(config);
    serve_plain(move |socket| {
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        script(StreamOwned::new(session, socket));
    })
}

fn serve_plain(script: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let run = move || {
        for socket in listener.incoming() {
            script(socket.unwrap());
        }
    };
    thread::Builder::new().spawn(run).unwrap();
    address
}

/// Answers one line with `pong` and closes properly.
fn pong(mut tunnel: Tunnel) {
    let mut line = [0; 5];
    if tunnel.read_exact(&mut line).is_ok() && &line == b"ping\n" {
        assert_eq!(tunnel.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        tunnel.write_all(b"pong\n").unwrap();
        tunnel.conn.send_close_notify();
        tunnel.flush().unwrap();
    }
}

/// A stream in its own loop that fulfils the caller's duties and nothing else.
struct Peer {
    poll: mio::Poll,
    stream: Stream,
}

impl Peer {
    fn connect(address: SocketAddr, client: Option<&Client>, name: &str) -> Self {
        let socket = mio::net::TcpStream::connect(address).unwrap();
        Self::over(match client {
            Some(client) => Stream::tls(socket, client, name).unwrap(),
            None => Stream::plain(socket),
        })
    }

    fn over(mut stream: Stream) -> Self {
        let poll = mio::Poll::new().unwrap();
        let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
        poll.registry().register(stream.socket(), mio::Token(0), interest).unwrap();
        let mut peer = Self { poll, stream };
        peer.sleep();
        peer
    }

    fn sleep(&mut self) {
        let mut events = mio::Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
        assert!(!events.is_empty(), "nothing to wait for any more");
    }

    fn handshake(&mut self) -> Result<ConnFacts, CloseReason> {
        loop {
            match self.stream.handshake() {
                Progress::Done(facts) => return Ok(facts),
                Progress::Failed(reason) => return Err(reason),
                Progress::Pending => self.sleep(),
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() || self.stream.wants_write() {
            match self.stream.write(bytes) {
                Write::Some(count) => bytes = &bytes[count..],
                Write::Blocked => {}
                Write::Closed(reason) => panic!("{reason:?}"),
            }
            if self.stream.wants_write() {
                self.sleep();
            }
        }
    }

    /// Reads to the end through a buffer of `room` bytes.
    fn read_all(&mut self, room: usize) -> (Vec<u8>, CloseReason) {
        let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
        loop {
            match self.stream.read(&mut buffer) {
                Read::Some(count) => all.extend_from_slice(&buffer[..count]),
                Read::Closed(reason) => return (all, reason),
                Read::Blocked if self.stream.has_plaintext() => {}
                Read::Blocked => self.sleep(),
            }
        }
    }

    /// Sends `ping` and returns the reply.
    fn ping(&mut self) -> (String, CloseReason) {
        self.write_all(b"ping\n");
        let (bytes, reason) = self.read_all(100);
        (String::from_utf8(bytes).unwrap(), reason)
    }
}

#[test]
fn sessions_are_resumed_and_counted() {
    let authority = Authority::new("one");
    for (version, name) in [(&TLS12, "tls/1.2"), (&TLS13, "tls/1.3")] {
        for key_exchange in [KeyExchange::Classic, KeyExchange::PostQuantum] {
            let config = authority.server_of("good.test", |_| (), &[version]);
            let address = serve(config, pong);
            let settings = Settings { key_exchange, ..authority.settings() };
            let client = Client::new(&settings).unwrap();
            for turn in 0..3 {
                let mut peer = Peer::connect(address, Some(&client), "good.test");
                let facts = peer.handshake().unwrap().tls.unwrap();
                assert_eq!((facts.version, facts.resumed), (name, turn > 0), "turn {turn}");
                assert!(facts.suite.starts_with("TLS_"), "{}: not as registered", facts.suite);
                assert_eq!(peer.ping(), ("pong\n".to_owned(), CloseReason::End));
                assert_eq!(client.handshakes(), Handshakes { full: 1, resumed: turn });
            }
            let unwilling = Settings { sessions_max: 0, ..settings };
            let client = Client::new(&unwilling).unwrap();
            for full in 1..3 {
                let mut peer = Peer::connect(address, Some(&client), "good.test");
                peer.handshake().unwrap();
                peer.ping();
                assert_eq!(client.handshakes(), Handshakes { full, resumed: 0 });
            }
        }
    }
}

#[test]
fn what_is_not_tls_fails_in_words() {
    let authority = Authority::new("one");
    let client = authority.client();
    let tls = |fault, words: &str| CloseReason::Tls(fault, words.to_owned());
    let closed = tls(TlsFault::Closed, "closed during the handshake");
    let said = |bytes: &'static [u8]| {
        let address = serve_plain(move |mut socket| {
            let mut hello = [0; 64];
            socket.read_exact(&mut hello).unwrap();
            socket.write_all(bytes).unwrap();
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            while socket.read(&mut hello).is_ok_and(|count| count > 0) {}
        });
        Peer::connect(address, Some(&client), "good.test").handshake().unwrap_err()
    };
    let corrupt = tls(TlsFault::NotTls, "received corrupt message of type InvalidContentType");
    assert_eq!(said(b"HTTP/1.1 400 Bad Request\r\n\r\nspeak TLS"), corrupt);
    assert_eq!(said(b"<html>speak TLS</html>"), corrupt);
    assert_eq!(said(b"SSH-2.0-OpenSSH_9.9\r\n"), corrupt);
    assert_eq!(said(b""), closed);
    assert_eq!(said(&[22, 3, 3, 0, 90, 2]), closed, "half a record");
    assert_eq!(said(&[21, 3, 3, 0, 2, 1, 0]), closed, "close_notify");
    // RFC 8446, section 6.2.
    for (alert, fault, name) in [
        (40, TlsFault::NoCipher, "HandshakeFailure"),
        (71, TlsFault::NoCipher, "InsufficientSecurity"),
        (70, TlsFault::Version, "ProtocolVersion"),
        (80, TlsFault::Alert, "InternalError"),
        (112, TlsFault::Alert, "UnrecognisedName"),
        (116, TlsFault::Alert, "CertificateRequired"),
    ] {
        let bytes: &'static [u8] = Vec::leak(vec![21, 3, 3, 0, 2, 2, alert]);
        assert_eq!(said(bytes), tls(fault, &format!("received fatal alert: {name}")));
    }
    assert_eq!(client.handshakes(), Handshakes::default());
}

#[test]
fn only_http_1_1_is_offered() {
    let authority = Authority::new("one");
    let mut config = authority.server("good.test", |_| ());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let address = serve(config, pong);
    let client = authority.client();
    let reason = Peer::connect(address, Some(&client), "good.test").handshake().unwrap_err();
    let words = "received fatal alert: NoApplicationProtocol".to_owned();
    assert_eq!(reason, CloseReason::Tls(TlsFault::Alert, words));
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 31 + at / 251) % 251).unwrap()).collect()
}

/// Law: however the server cuts its bytes into records and segments, and however large the client's
/// buffer is, the bytes and the end are the same.
#[test]
fn cuts_change_nothing() {
    const LEN: usize = 300_000;
    let authority = Authority::new("one");
    for (seed, ends_in_order) in [(1_u64, true), (2, false), (3, true), (4, false)] {
        let config = authority.server("good.test", |_| ());
        let address = serve(config, move |mut tunnel| {
            let mut random = Random(seed);
            tunnel.sock.set_nodelay(true).unwrap();
            tunnel.conn.complete_io(&mut tunnel.sock).unwrap();
            let all = pattern(LEN);
            let mut rest = &all[..];
            while !rest.is_empty() {
                let record = (1 + random.below(20_000)).min(rest.len());
                let taken = tunnel.conn.writer().write(&rest[..record]).unwrap();
                rest = &rest[taken..];
                if rest.is_empty() && ends_in_order {
                    tunnel.conn.send_close_notify();
                }
                let mut bytes = Vec::new();
                while tunnel.conn.wants_write() {
                    tunnel.conn.write_tls(&mut bytes).unwrap();
                }
                let segment = 1 + random.below(9_000);
                bytes.chunks(segment).for_each(|part| tunnel.sock.write_all(part).unwrap());
            }
            tunnel.sock.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = tunnel.sock.read(&mut [0; 1]);
        });
        for room in [1 << 17, 16_384, 5_000, 333] {
            let client = authority.client();
            let mut peer = Peer::connect(address, Some(&client), "good.test");
            peer.handshake().unwrap();
            let (bytes, reason) = peer.read_all(room);
            assert!(bytes == pattern(LEN), "seed {seed}, room {room}: {} bytes", bytes.len());
            let end = if ends_in_order { CloseReason::End } else { CloseReason::TlsCut };
            assert_eq!(reason, end, "seed {seed}, room {room}");
            assert_eq!(peer.stream.read(&mut [0; 9]), Read::Closed(end), "reported again");
        }
    }
}

/// Law: what `has_plaintext` reports can be read without an event, and nothing else; and little is
/// buffered.
#[test]
fn waiting_plaintext_is_told_of() {
    let authority = Authority::new("one");
    let address = serve(authority.server("good.test", |_| ()), |mut tunnel| {
        tunnel.write_all(&pattern(200_000)).unwrap();
        let _ = tunnel.read(&mut [0; 1]);
    });
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    peer.handshake().unwrap();
    assert!(peer.stream.has_plaintext(), "the socket was not read to its end");
    let (mut all, mut buffer) = (Vec::new(), [0; 1_000]);
    while all.len() < 200_000 {
        match peer.stream.read(&mut buffer) {
            Read::Some(count) => all.extend_from_slice(&buffer[..count]),
            Read::Blocked => {
                assert!(!peer.stream.has_plaintext(), "then it would not be blocked");
                peer.sleep();
            }
            Read::Closed(reason) => panic!("{reason:?}"),
        }
        let Transport::Tls(tls) = &peer.stream.0 else { unreachable!("it is TLS") };
        assert!(tls.leftover.len() <= RECEIVE_BYTES_MIN, "kept {} bytes", tls.leftover.len());
    }
    assert!(all == pattern(200_000));
}

/// TLS 1.3 lets a server send data and its close together with the handshake.
#[test]
fn an_end_that_comes_with_the_handshake_is_told_after_the_data() {
    let authority = Authority::new("one");
    let mut config = authority.server("good.test", |_| ());
    config.send_half_rtt_data = true;
    let address = serve(config, |mut tunnel| {
        tunnel.conn.read_tls(&mut tunnel.sock).unwrap();
        tunnel.conn.process_new_packets().unwrap();
        tunnel.conn.writer().write_all(b"early").unwrap();
        tunnel.conn.send_close_notify();
        let mut flight = Vec::new();
        while tunnel.conn.wants_write() {
            tunnel.conn.write_tls(&mut flight).unwrap();
        }
        tunnel.sock.write_all(&flight).unwrap();
        while tunnel.sock.read(&mut [0; 999]).is_ok_and(|count| count > 0) {}
    });
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    thread::park_timeout(Duration::from_millis(30));
    peer.handshake().unwrap();
    assert_eq!(peer.read_all(3), (b"early".to_vec(), CloseReason::End));
}

#[test]
fn bytes_before_an_error_are_handed_out() {
    let authority = Authority::new("one");
    let address = serve(authority.server("good.test", |_| ()), |mut tunnel| {
        tunnel.write_all(b"whole").unwrap();
        // Also send a record with a wrong authentication tag.
        tunnel.sock.write_all(&[&[23, 3, 3, 0, 20][..], &[7; 20]].concat()).unwrap();
        let _ = tunnel.sock.read(&mut [0; 1]);
    });
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    peer.handshake().unwrap();
    let forged = CloseReason::Tls(TlsFault::Broken, "cannot decrypt peer's message".to_owned());
    assert_eq!(peer.read_all(3), (b"whole".to_vec(), forged));
}

/// A server that reads only once the client is blocked: no bytes are lost.
#[test]
fn writing_waits_for_room() {
    const LEN: usize = 12_000_000;
    let authority = Authority::new("one");
    let (go, gate) = mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let answer = move |stream: &mut dyn io::Read| {
        gate.lock().unwrap().recv().unwrap();
        let mut all = vec![0; LEN];
        stream.read_exact(&mut all).unwrap();
        if all == pattern(LEN) { b"same" } else { b"else" }
    };
    let answer_plain = answer.clone();
    let tls = serve(authority.server("good.test", |_| ()), move |mut tunnel| {
        tunnel.conn.complete_io(&mut tunnel.sock).unwrap();
        let said = answer(&mut tunnel);
        tunnel.write_all(said).unwrap();
    });
    let plain = serve_plain(move |mut socket| {
        let said = answer_plain(&mut socket);
        socket.write_all(said).unwrap();
    });
    let (client, all) = (authority.client(), pattern(LEN));
    for (address, client) in [(tls, Some(&client)), (plain, None)] {
        let mut peer = Peer::connect(address, client, "good.test");
        peer.handshake().unwrap();
        let (mut sent, mut blocked) = (0, false);
        while sent < LEN || peer.stream.wants_write() {
            match peer.stream.write(&all[sent..]) {
                Write::Closed(reason) => panic!("{reason:?}"),
                Write::Some(count) if count > 0 => sent += count,
                _ => {
                    if !mem::replace(&mut blocked, true) {
                        go.send(()).unwrap();
                    }
                    peer.sleep();
                }
            }
        }
        assert_eq!(peer.read_all(10).0, b"same");
    }
}

/// TLS 1.3 lets the peer update its keys at any time and request an update of ours (RFC 8446,
/// 4.6.3).
#[test]
fn changed_keys_are_followed() {
    let authority = Authority::new("one");
    let address = serve(authority.server("good.test", |_| ()), |mut tunnel| {
        tunnel.conn.complete_io(&mut tunnel.sock).unwrap();
        tunnel.conn.refresh_traffic_keys().unwrap();
        pong(tunnel);
    });
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    peer.handshake().unwrap();
    assert_eq!(peer.ping(), ("pong\n".to_owned(), CloseReason::End));
}

/// The last message of a handshake waits for the first request, or for the first read.
#[test]
fn the_first_request_goes_with_the_end_of_the_handshake() {
    let authority = Authority::new("one");
    for (version, is_ours) in [(&TLS13, true), (&TLS12, false)] {
        let address = serve(authority.server_of("good.test", |_| (), &[version]), pong);
        let client = authority.client();
        let mut peer = Peer::connect(address, Some(&client), "good.test");
        peer.handshake().unwrap();
        assert_eq!(peer.stream.wants_write(), is_ours, "the server ends full handshakes of 1.2");
        assert_eq!(peer.stream.write(b"ping\n"), Write::Some(5));
        assert!(!peer.stream.wants_write());
        let mut peer = Peer::connect(address, Some(&client), "good.test");
        peer.handshake().unwrap();
        assert!(peer.stream.wants_write(), "we end resumed handshakes of both");
        assert_eq!(peer.stream.read(&mut [0; 9]), Read::Blocked);
        assert!(!peer.stream.wants_write());
        assert_eq!(peer.ping(), ("pong\n".to_owned(), CloseReason::End));
    }
}

#[test]
fn closing_says_goodbye() {
    let (sender, receiver) = mpsc::channel();
    let authority = Authority::new("one");
    let address = serve(authority.server("good.test", |_| ()), move |mut tunnel| {
        // rustls reports an end without a TLS close as an error.
        sender.send(tunnel.read(&mut [0; 1]).is_ok_and(|count| count == 0)).unwrap();
    });
    let client = authority.client();
    for goodbye in [true, false] {
        let mut peer = Peer::connect(address, Some(&client), "good.test");
        peer.handshake().unwrap();
        if goodbye {
            peer.stream.close();
        } else {
            drop(peer);
        }
        assert_eq!(receiver.recv_timeout(Duration::from_secs(5)), Ok(goodbye));
    }
}

#[test]
fn a_reset_is_told_on_both_transports() {
    let address = serve_plain(|mut socket| {
        // Closing with unread bytes resets the connection (RFC 1122, section 4.2.2.13).
        socket.peek(&mut [0; 1]).unwrap();
        socket.write_all(b"x").unwrap();
    });
    let authority = Authority::new("one");
    let mut peer = Peer::connect(address, None, "");
    peer.write_all(b"hello");
    let (_, reason) = peer.read_all(10);
    assert_eq!(reason, CloseReason::Reset);
    let mut peer = Peer::connect(address, Some(&authority.client()), "good.test");
    let reason = peer.handshake().unwrap_err();
    assert!(matches!(reason, CloseReason::Reset | CloseReason::Tls(..)), "{reason:?}");
}

#[test]
fn errors_of_sockets_have_reasons() {
    let cases = [
        (libc::ECONNREFUSED, CloseReason::Refused),
        (libc::ECONNRESET, CloseReason::Reset),
        (libc::EPIPE, CloseReason::Reset),
        (libc::ECONNABORTED, CloseReason::Reset),
        (libc::EHOSTUNREACH, CloseReason::Unreachable),
        (libc::ENETUNREACH, CloseReason::Unreachable),
        (libc::ETIMEDOUT, CloseReason::Unreachable),
        // The errors of ICMP type 3 with codes 2, 7, 8 and 13, and of a `prohibit` route.
        (libc::ENOPROTOOPT, CloseReason::Unreachable),
        (libc::EHOSTDOWN, CloseReason::Unreachable),
        (libc::ENONET, CloseReason::Unreachable),
        (libc::EACCES, CloseReason::Unreachable),
        (libc::EPROTO, CloseReason::Unreachable),
        (libc::EPERM, CloseReason::Unreachable),
    ];
    for (code, reason) in cases {
        assert_eq!(reason_of(&io::Error::from_raw_os_error(code)), reason);
    }
    for code in [libc::EMFILE, libc::ENFILE, libc::EADDRNOTAVAIL, libc::ENOBUFS, libc::ENOMEM] {
        let reason = reason_of(&io::Error::from_raw_os_error(code));
        assert!(matches!(reason, CloseReason::Local(_)), "{reason:?}");
    }
}

/// Law: no flipped bit and no truncation of a server's bytes makes the client panic or hang.
#[test]
fn mutated_replies_fail_and_no_worse() {
    let authority = Authority::new("one");
    let client = authority.client();
    let config = Arc::new(authority.server("good.test", |_| ()));
    let (give, replies) = mpsc::channel::<Vec<u8>>();
    let address = serve_plain(move |mut socket| {
        let _ = socket.write_all(&replies.recv().unwrap());
        let _ = socket.shutdown(std::net::Shutdown::Write);
        while socket.read(&mut [0; 999]).is_ok_and(|count| count > 0) {}
    });
    let mut failed = 0;
    for seed in 1..=120_u64 {
        let mut random = Random(seed);
        let name = ServerName::try_from("good.test").unwrap();
        let mut near = ClientConnection::new(Arc::clone(&client.config), name).unwrap();
        let mut far = ServerConnection::new(Arc::clone(&config)).unwrap();
        let (mut hello, mut reply) = (Vec::new(), Vec::new());
        near.write_tls(&mut hello).unwrap();
        far.read_tls(&mut &hello[..]).unwrap();
        far.process_new_packets().unwrap();
        while far.wants_write() {
            far.write_tls(&mut reply).unwrap();
        }
        let at = random.below(reply.len());
        match random.below(3) {
            0 => reply.truncate(at),
            1 => reply[at] ^= 1 << random.below(8),
            _ => drop(reply.drain(at..(at + 1 + random.below(9)).min(reply.len()))),
        }
        give.send(reply).unwrap();
        let socket = mio::net::TcpStream::connect(address).unwrap();
        let mut peer =
            Peer::over(Stream(Transport::Tls(Box::new(Tls::new(socket, near, &client)))));
        failed += u32::from(peer.handshake().is_err());
    }
    // A record's version is ignored (RFC 8446, section 5.1): a few changes may hit just that.
    assert!(failed >= 110, "{failed} of 120 were noticed");
}

/// A server that begins a message of 64 KiB and never ends it is disconnected at the limit.
#[test]
fn a_handshake_has_a_cap() {
    let address = serve_plain(|mut socket| {
        // Handshake records of 4 KiB; the first opens a ServerHello of 0xffff bytes.
        let mut record = vec![0; 5 + 4_096];
        record[..9].copy_from_slice(&[22, 3, 3, 16, 0, 2, 0, 0xff, 0xff]);
        for _ in 0..15 {
            if socket.write_all(&record).is_err() {
                return;
            }
            record[5..9].fill(0);
        }
        // The server sends nothing more until the client has left.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let authority = Authority::new("one");
    let client = authority.client();
    let mut peer = Peer::connect(address, Some(&client), "good.test");
    let reason = peer.handshake().expect_err("it never ends");
    assert!(format!("{reason:?}").contains("handshake"), "{reason:?}");
    let held = peer.stream.handshake_bytes();
    let most = Settings::default().handshake_bytes_max;
    assert!((most..=most + (16 << 10)).contains(&held), "{held} bytes");
}
