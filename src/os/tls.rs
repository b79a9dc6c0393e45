//! A byte stream over TCP, plain or with TLS, behind the same methods.
//!
//! Promises: plaintext is decrypted directly into the caller's buffer. Methods never block. An end
//! of TCP without a TLS close is reported as [`CloseReason::TlsCut`]. Data decrypted before an end
//! or an error is returned before it. TLS 1.2 and 1.3 by rustls, ALPN `http/1.1`, certificates
//! checked against the compiled-in roots or those of one PEM file. Revocation is not checked.
//! Sessions are resumed; early data is never sent.
//!
//! The poller reports each change once. So the caller must read until [`Read::Blocked`] or
//! [`Read::Closed`], or come back to read without an event. It must not sleep while
//! [`Stream::has_plaintext`], unless the stream is paused. On a writable event it must call `write`
//! if [`Stream::wants_write`], even with no data.
//!
//! Bounds: a stream keeps at most 40 KiB or so of received bytes (records that don't fit the
//! caller's buffer), 16 KiB of bytes to send, and 64 KiB of a handshake. An idle stream keeps none.
//! One `read` reads from the socket at most `READS_MAX` times, so a peer that sends empty records
//! can't hold up the loop.
//!
//! Cost: one system call for up to 64 KiB (rustls alone: 4 KiB), one copy, and the decryption.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::mem;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::{ServerName, pem};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion};

use crate::engine::contract::{CertificateFault, CloseReason, ConnFacts, TlsFacts, TlsFault};
use time::{Spent, Timed};
use trust::{Unverified, provider, reason_of_tls, registered, roots};

mod time;
mod trust;

/// Settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether certificates are checked. If not, an attacker on the path can forge pages.
    pub verify: bool,
    /// A PEM file of certificates to trust instead of the compiled-in roots.
    pub roots_file: Option<PathBuf>,
    /// The number of TLS sessions kept for resumption, up to 8 for each server, about 4 KiB each; 0
    /// keeps none.
    pub sessions_max: usize,
    /// The most bytes that are received in one handshake; a longer one fails.
    pub handshake_bytes_max: usize,
    /// The key exchange offered in the first message of a handshake.
    pub key_exchange: KeyExchange,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            verify: true,
            roots_file: None,
            sessions_max: 8_192,
            handshake_bytes_max: 32 << 10,
            key_exchange: KeyExchange::Classic,
        }
    }
}

/// The key exchange that is tried first. The server may ask for the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyExchange {
    /// X25519: a third less work for a handshake.
    #[default]
    Classic,
    /// X25519 with ML-KEM-768: recorded traffic can't be decrypted by a future quantum computer.
    PostQuantum,
}

/// Why TLS could not be set up.
#[derive(Debug)]
pub enum Error {
    /// The file of roots can't be read or isn't PEM.
    Roots {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the file.
        source: pem::Error,
    },
    /// The file has no certificate that can be trusted.
    NoRoots(PathBuf),
    /// rustls rejects the configuration.
    Config(rustls::Error),
}

/// The numbers of completed handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// The number of full handshakes, with certificates.
    pub full: u64,
    /// The number of handshakes that resumed an earlier session.
    pub resumed: u64,
}

/// What all TLS streams share: configuration, sessions, counters, and a buffer.
pub struct Client {
    config: Arc<ClientConfig>,
    verify: bool,
    shared: Rc<Shared>,
}

struct Shared {
    handshake_bytes_max: usize,
    handshakes: Cell<Handshakes>,
    /// A buffer for bytes read from a socket and not yet passed to rustls; unused between calls.
    received: RefCell<Box<[u8]>>,
    spent: Spent,
}

/// The byte stream of a connection, plain or with TLS.
pub struct Stream(Transport);

enum Transport {
    Plain(mio::net::TcpStream),
    Tls(Box<Tls>),
}

/// The result of [`Stream::handshake`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The handshake is complete. Reported once; data may have arrived with it, so read.
    Done(ConnFacts),
    /// The handshake is not complete. Call again when the socket is readable or writable.
    Pending,
    /// The handshake has failed.
    Failed(CloseReason),
}

/// The result of [`Stream::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// This many bytes were read, at least one.
    Some(usize),
    /// No bytes are available now.
    Blocked,
    /// The stream has ended.
    Closed(CloseReason),
}

/// The result of [`Stream::write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// This many bytes were taken; 0 only if none were given. They are sent, or kept encrypted
    /// ([`Stream::wants_write`]).
    Some(usize),
    /// No bytes can be taken now.
    Blocked,
    /// The stream has ended.
    Closed(CloseReason),
}

/// The most bytes read from a socket at once.
const RECEIVE_BYTES_MAX: usize = 64 << 10;
/// The least size of a read from a socket, however small the caller's buffer is.
const RECEIVE_BYTES_MIN: usize = 4 << 10;
/// The most reads from the socket in one call of [`Stream::read`].
const READS_MAX: usize = 16;
/// The most bytes to send that rustls buffers.
const SEND_BYTES_MAX: usize = 16 << 10;

impl Client {
    /// Reads the roots and creates the configuration. rustls' process-wide default is not used.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let provider = Arc::new(provider(settings.key_exchange));
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(Error::Config)?;
        let config = if settings.verify {
            config.with_root_certificates(roots(settings.roots_file.as_deref())?)
        } else {
            let verifier = Arc::new(Unverified(provider));
            config.dangerous().with_custom_certificate_verifier(verifier)
        };
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = match settings.sessions_max {
            0 => Resumption::disabled(),
            sessions => Resumption::in_memory_sessions(sessions),
        };
        let received = vec![0; RECEIVE_BYTES_MAX].into_boxed_slice();
        let received = RefCell::new(received);
        let shared = Shared {
            handshake_bytes_max: settings.handshake_bytes_max,
            handshakes: Cell::default(),
            received,
            spent: Spent::default(),
        };
        Ok(Self { config: Arc::new(config), verify: settings.verify, shared: Rc::new(shared) })
    }

    /// Returns the number of handshakes of all streams so far.
    pub fn handshakes(&self) -> Handshakes {
        self.shared.handshakes.get()
    }

    /// Returns two numbers since the last call: the nanoseconds that TLS took in all streams,
    /// without reading and writing sockets, and how many method calls that were.
    pub fn take_spent(&self) -> (u64, u64) {
        self.shared.spent.take()
    }
}

impl Stream {
    /// Creates a stream without TLS.
    pub fn plain(socket: mio::net::TcpStream) -> Self {
        Self(Transport::Plain(socket))
    }

    /// Creates a stream with TLS to the server `name`, a host name or an address as in a URL.
    ///
    /// # Errors
    /// No certificate can be issued for such a name.
    pub fn tls(
        socket: mio::net::TcpStream,
        client: &Client,
        name: &str,
    ) -> Result<Self, CloseReason> {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(name).to_owned())
            .map_err(|_| CloseReason::Certificate(CertificateFault::WrongHost))?;
        let session = ClientConnection::new(Arc::clone(&client.config), name)
            .map_err(|error| reason_of_tls(&error))?;
        Ok(Self(Transport::Tls(Box::new(Tls::new(socket, session, client)))))
    }

    /// Returns the socket, for the poller's registration and for the socket's pending error.
    pub fn socket(&mut self) -> &mut mio::net::TcpStream {
        match &mut self.0 {
            Transport::Plain(socket) => socket,
            Transport::Tls(tls) => &mut tls.socket,
        }
    }

    /// Continues the handshake as far as possible in both directions. Call it when TCP is
    /// connected, and then on every event until it is done.
    pub fn handshake(&mut self) -> Progress {
        match &mut self.0 {
            Transport::Plain(_) => Progress::Done(ConnFacts::default()),
            Transport::Tls(tls) => tls.timed(Tls::handshake),
        }
    }

    /// Reads plaintext into `buffer`, which must not be empty.
    pub fn read(&mut self, buffer: &mut [u8]) -> Read {
        assert!(!buffer.is_empty(), "an empty buffer would look like the end");
        match &mut self.0 {
            Transport::Plain(socket) => match receive(socket, buffer) {
                Ok(Some(0)) => Read::Closed(CloseReason::End),
                Ok(Some(count)) => Read::Some(count),
                Ok(None) => Read::Blocked,
                Err(reason) => Read::Closed(reason),
            },
            Transport::Tls(tls) => tls.timed(|tls| tls.read(buffer)),
        }
    }

    /// Returns whether `read` has a result even if no more bytes arrive: plaintext, an end, or
    /// received bytes that are not processed yet.
    pub fn has_plaintext(&self) -> bool {
        match &self.0 {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => {
                tls.plaintext || !tls.leftover.is_empty() || tls.unread || tls.end.is_some()
            }
        }
    }

    /// Returns the number of bytes received in the handshake so far; 0 for a stream without TLS.
    pub fn handshake_bytes(&self) -> usize {
        match &self.0 {
            Transport::Plain(_) => 0,
            Transport::Tls(tls) => tls.handshake_bytes,
        }
    }

    /// Takes as many of `bytes` as fit, and sends as much as the socket accepts.
    pub fn write(&mut self, bytes: &[u8]) -> Write {
        match &mut self.0 {
            Transport::Plain(socket) => write_plain(socket, bytes),
            Transport::Tls(tls) => tls.timed(|tls| tls.write(bytes)),
        }
    }

    /// Returns whether bytes that were taken are still to be sent.
    pub fn wants_write(&self) -> bool {
        match &self.0 {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.session.wants_write(),
        }
    }

    /// Sends a TLS close (RFC 8446, section 6.1) if there is room for it, and closes the stream.
    pub fn close(self) {
        if let Transport::Tls(mut tls) = self.0 {
            tls.session.send_close_notify();
            // Ignore errors: the peer may be gone.
            let _ = tls.flush();
        }
    }
}

/// Maps an error of a socket to the reason why its connection ended.
pub fn reason_of(error: &io::Error) -> CloseReason {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        NetworkDown, NetworkUnreachable, NotConnected, TimedOut,
    };
    match error.kind() {
        ConnectionRefused => CloseReason::Refused,
        ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected => CloseReason::Reset,
        HostUnreachable | NetworkUnreachable | NetworkDown | TimedOut => CloseReason::Unreachable,
        _ if error.raw_os_error().is_some_and(|code| trust::ON_THE_WAY.contains(&code)) => {
            CloseReason::Unreachable
        }
        _ => CloseReason::Local(error.to_string()),
    }
}

struct Tls {
    socket: mio::net::TcpStream,
    session: ClientConnection,
    shared: Rc<Shared>,
    verified: bool,
    /// The number of bytes received in the handshake.
    handshake_bytes: usize,
    /// Whether the session holds decrypted bytes because they did not fit the caller's buffer.
    plaintext: bool,
    /// Bytes from the socket that the session has not processed: the caller's buffer was full.
    leftover: Vec<u8>,
    /// Whether the last call stopped reading before the socket was empty.
    unread: bool,
    /// How the stream ended; `None` if it is open. Plaintext from before the end is returned first.
    end: Option<CloseReason>,
}

impl Tls {
    fn new(socket: mio::net::TcpStream, mut session: ClientConnection, client: &Client) -> Self {
        session.set_buffer_limit(Some(SEND_BYTES_MAX));
        Self {
            socket,
            session,
            shared: Rc::clone(&client.shared),
            verified: client.verify,
            handshake_bytes: 0,
            plaintext: false,
            leftover: Vec::new(),
            unread: false,
            end: None,
        }
    }

    fn timed<T>(&mut self, verb: impl FnOnce(&mut Self) -> T) -> T {
        let shared = Rc::clone(&self.shared);
        shared.spent.in_verb(|| verb(self))
    }

    fn handshake(&mut self) -> Progress {
        loop {
            // Even if the stream ended with the last message, data may precede the end. Our own
            // last message is sent with the first request, or else before the first read.
            if !self.session.is_handshaking() {
                return Progress::Done(self.facts());
            }
            let sent = self.flush();
            if let Some(reason) = self.end.take() {
                return Progress::Failed(reason);
            }
            // The shared buffer is not used here: data may follow the last message, and could not
            // be kept. rustls alone reads little more than one message at a time.
            match self.session.read_tls(&mut timed(&mut self.socket, &self.shared)) {
                Ok(0) => self.end = Some(cut_handshake()),
                Ok(bytes) => {
                    self.handshake_bytes += bytes;
                    self.process();
                    let is_long = self.handshake_bytes > self.shared.handshake_bytes_max;
                    if is_long && self.session.is_handshaking() {
                        self.end.get_or_insert_with(long_handshake);
                    }
                }
                // A failed send is reported after reading: the peer may have said why it closed.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return sent.map_or_else(Progress::Failed, |()| Progress::Pending);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Progress::Failed(reason_of(&error)),
            }
        }
    }

    fn facts(&mut self) -> ConnFacts {
        // The socket may have more bytes, which the poller has already reported.
        self.unread = true;
        let resumed = self.session.handshake_kind() == Some(HandshakeKind::Resumed);
        let mut handshakes = self.shared.handshakes.get();
        *(if resumed { &mut handshakes.resumed } else { &mut handshakes.full }) += 1;
        self.shared.handshakes.set(handshakes);
        let version = match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "tls/1.2",
            Some(ProtocolVersion::TLSv1_3) => "tls/1.3",
            other => unreachable!("{other:?} was not offered"),
        };
        let suite = self.session.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.suite().as_str());
        let suite = registered(suite.expect("a handshake that is done has chosen a known suite"));
        ConnFacts { tls: Some(TlsFacts { version, suite, resumed, verified: self.verified }) }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Read {
        self.unread = false;
        let mut filled = self.take_plaintext(buffer);
        if !self.plaintext && !self.leftover.is_empty() {
            let leftover = mem::take(&mut self.leftover);
            filled += self.decrypt(&leftover, &mut buffer[filled..]);
        }
        if filled > 0 {
            return Read::Some(filled);
        }
        // If that fails, reading reports the reason.
        let _ = self.flush();
        let shared = Rc::clone(&self.shared);
        let mut received = shared.received.borrow_mut();
        // Read about as much as the buffer has room for, because the rest would have to be kept.
        let room = buffer.len().clamp(RECEIVE_BYTES_MIN, RECEIVE_BYTES_MAX);
        for _ in 0..READS_MAX {
            if let Some(reason) = &self.end {
                return Read::Closed(reason.clone());
            }
            match receive(&mut timed(&mut self.socket, &shared), &mut received[..room]) {
                Ok(Some(0)) => self.end = Some(CloseReason::TlsCut),
                Ok(Some(count)) => filled = self.decrypt(&received[..count], buffer),
                Ok(None) => return Read::Blocked,
                Err(reason) => self.end = Some(reason),
            }
            if filled > 0 {
                return Read::Some(filled);
            }
        }
        self.unread = true;
        Read::Blocked
    }

    /// Passes `bytes` to the session while `buffer` has room for the plaintext, and keeps the rest.
    /// Returns how much of `buffer` was filled.
    fn decrypt(&mut self, bytes: &[u8], buffer: &mut [u8]) -> usize {
        let (mut rest, mut filled) = (bytes, 0);
        while !rest.is_empty() && self.end.is_none() {
            if self.plaintext {
                self.leftover.extend_from_slice(rest);
                break;
            }
            if let Err(error) = self.session.read_tls(&mut rest) {
                self.end = Some(CloseReason::Tls(TlsFault::Broken, error.to_string()));
                break;
            }
            self.process();
            filled += self.take_plaintext(&mut buffer[filled..]);
        }
        // Send the session's answer or alert. If that fails, reading reports the reason.
        let _ = self.flush();
        filled
    }

    /// Lets the session process the bytes it was given; records an error or the peer's close.
    fn process(&mut self) {
        match self.session.process_new_packets() {
            // Data after the peer's close is ignored.
            Ok(state) if state.peer_has_closed() => {
                let early = self.session.is_handshaking();
                self.end = Some(if early { cut_handshake() } else { CloseReason::End });
            }
            Ok(_) => {}
            Err(error) => self.end = Some(reason_of_tls(&error)),
        }
        self.look_for_plaintext();
    }

    fn take_plaintext(&mut self, buffer: &mut [u8]) -> usize {
        if !self.plaintext || buffer.is_empty() {
            return 0;
        }
        let taken = self.session.reader().read(buffer);
        self.look_for_plaintext();
        taken.expect("the session holds plaintext")
    }

    fn look_for_plaintext(&mut self) {
        self.plaintext = self.session.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty());
    }

    fn write(&mut self, bytes: &[u8]) -> Write {
        // If the session's buffer is full, it may have room after the first flush.
        for _ in 0..2 {
            let taken = self.session.writer().write(bytes).expect("the buffer takes some or none");
            if let Err(reason) = self.flush() {
                return Write::Closed(reason);
            }
            if taken > 0 || bytes.is_empty() {
                return Write::Some(taken);
            }
        }
        Write::Blocked
    }

    /// Sends the session's outgoing bytes until the socket takes no more.
    fn flush(&mut self) -> Result<(), CloseReason> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut timed(&mut self.socket, &self.shared)) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reason_of(&error)),
            }
        }
        Ok(())
    }
}

fn timed<'a>(socket: &'a mut mio::net::TcpStream, shared: &'a Shared) -> Timed<'a> {
    Timed { socket, spent: &shared.spent }
}

/// Reads from the socket into `buffer`. Returns the number of bytes read, 0 at the end of the
/// stream, or `None` if no bytes are available now.
fn receive(socket: &mut impl io::Read, buffer: &mut [u8]) -> Result<Option<usize>, CloseReason> {
    loop {
        match socket.read(buffer) {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(reason_of(&error)),
        }
    }
}

fn write_plain(socket: &mut mio::net::TcpStream, bytes: &[u8]) -> Write {
    if bytes.is_empty() {
        return Write::Some(0);
    }
    loop {
        match socket.write(bytes) {
            Ok(0) => return Write::Blocked,
            Ok(count) => return Write::Some(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Write::Blocked,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Write::Closed(reason_of(&error)),
        }
    }
}

fn long_handshake() -> CloseReason {
    let words = "the handshake is longer than tls.handshake_bytes_max".to_owned();
    CloseReason::Tls(TlsFault::TooLong, words)
}

fn cut_handshake() -> CloseReason {
    CloseReason::Tls(TlsFault::Closed, "closed during the handshake".to_owned())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roots { path, source } => {
                write!(f, "cannot read certificates from {}: {source}", path.display())
            }
            Self::NoRoots(path) => {
                write!(f, "no certificate to trust in {}", path.display())
            }
            Self::Config(source) => write!(f, "cannot set up TLS: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Roots { source, .. } => Some(source),
            Self::NoRoots(_) => None,
            Self::Config(source) => Some(source),
        }
    }
}

#[cfg(test)]
mod tests;
