//! Relays between the crawler and the servers, which record connections and requests.
//!
//! One thread passes on the bytes of all relays. It reads everything from a server's connections
//! before it handles a new one, so that a connection that the crawler has closed counts as closed.
//! A close can arrive after the next connection, if the crawler has changed cores in between and
//! the first core has yet to deliver it. So a connection that seems open is looked up in the
//! kernel's table, where a socket leaves ESTABLISHED when it is closed. A reply counts as ended
//! just before its last bytes are passed on, and a request as sent when it was read here: the
//! crawler can't have known or acted earlier, so no gap is measured as shorter than it was.
//!
//! One request at a time is assumed (`burst = 1`): what follows a reply is the next request.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the thread sleeps when there is nothing to pass on.
pub(super) const NAP: Duration = Duration::from_micros(100);

/// A relay that listens.
#[derive(Debug)]
pub(super) struct Relay {
    listener: TcpListener,
    server: SocketAddr,
    think: Duration,
}

impl Relay {
    /// Listens on an address of `ip`; the server's replies are delayed by `think`.
    pub(super) fn listen(ip: &str, server: SocketAddr, think: Duration) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("loopback addresses can be bound");
        listener.set_nonblocking(true).expect("socket options can be set");
        Self { listener, server, think }
    }

    /// Returns the address it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }
}

/// What a relay has recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The number of connections of the crawler.
    pub(super) connections: usize,
    /// The number of connections that came while another was open.
    pub(super) overlapping: usize,
    /// Requests with their replies, in order.
    pub(super) exchanges: Vec<Exchange>,
}

/// A request and its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// When the request was read.
    pub(super) asked: Instant,
    /// When the last byte of the reply was passed on.
    pub(super) answered: Instant,
}

/// The thread of the relays.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Seen>>>,
}

impl Watch {
    /// Starts the relays.
    pub(super) fn begin(relays: Vec<Relay>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut lines: Vec<Line> = relays.into_iter().map(Line::new).collect();
            while !stopping.load(Ordering::Relaxed) {
                let busy = lines.iter_mut().map(Line::turn).filter(|busy| *busy).count() > 0;
                if !busy {
                    thread::sleep(NAP);
                }
            }
            lines.into_iter().map(|line| line.seen).collect()
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops them; returns what each has recorded, in their order.
    pub(super) fn end(mut self) -> Vec<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is ended once");
        thread.join().expect("relays don't panic")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A relay at work.
struct Line {
    relay: Relay,
    open: Vec<Pair>,
    seen: Seen,
}

impl Line {
    fn new(relay: Relay) -> Self {
        Self { relay, open: Vec::new(), seen: Seen::default() }
    }

    /// Passes on what has arrived; returns whether there was something.
    fn turn(&mut self) -> bool {
        let new = self.relay.listener.accept().ok();
        let mut busy = new.is_some();
        for pair in &mut self.open {
            busy |= pair.turn(self.relay.think, &mut self.seen);
        }
        self.open.retain(|pair| !pair.is_over());
        if let Some((crawler, _)) = new {
            self.seen.connections += 1;
            let overlaps = self.open.iter().any(|pair| pair.crawler.is_open_at_its_peer());
            self.seen.overlapping += usize::from(overlaps);
            self.open.push(Pair::new(crawler, self.relay.server));
        }
        busy
    }
}

/// A connection and its continuation to the server.
struct Pair {
    crawler: End,
    server: End,
    /// The current reply is delayed until then.
    held_until: Option<Instant>,
    /// Whether the last bytes went to the server, not to the crawler.
    asking: bool,
}

/// One end of a pair, with bytes read from it and not yet passed on.
#[derive(Debug)]
pub(super) struct End {
    stream: TcpStream,
    pending: Vec<u8>,
    /// Whether its stream has ended.
    ended: bool,
    /// Whether its output has been shut down.
    is_shut: bool,
}

impl End {
    pub(super) fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).expect("socket options can be set");
        stream.set_nodelay(true).expect("socket options can be set");
        Self { stream, pending: Vec::new(), ended: false, is_shut: false }
    }

    /// Closes it, and discards what is on its way.
    pub(super) fn cut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Whether nothing more comes from it and everything that came is passed on.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    /// Whether the peer has not closed it, even if the close has not arrived yet.
    fn is_open_at_its_peer(&self) -> bool {
        !self.ended
            && match (self.stream.peer_addr(), self.stream.local_addr()) {
                (Ok(peer), Ok(here)) => is_established(peer, here),
                _ => false,
            }
    }

    /// Reads what has arrived, while few bytes wait to be passed on; returns whether there was
    /// something.
    pub(super) fn read(&mut self) -> bool {
        let mut buffer = [0; 64 << 10];
        let before = self.pending.len();
        while !self.ended && self.pending.len() < 1 << 20 {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.ended = true,
                Ok(count) => self.pending.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.ended = true,
            }
        }
        self.pending.len() > before
    }

    /// Passes on to `other` what was read; returns whether something was written.
    pub(super) fn pass(&mut self, other: &mut Self) -> bool {
        match other.stream.write(&self.pending) {
            Ok(0) => false,
            Ok(count) => {
                self.pending.drain(..count);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(_) => {
                self.pending.clear();
                other.ended = true;
                false
            }
        }
    }

    /// Shuts down the output of `other` once everything is passed on.
    pub(super) fn pass_end(&mut self, other: &mut Self) {
        if self.ended && self.pending.is_empty() && !other.is_shut {
            other.is_shut = true;
            let _ = other.stream.shutdown(Shutdown::Write);
        }
    }
}

/// Whether the kernel of this machine has an open socket at `local` connected to `remote` (proc(5),
/// /proc/net/tcp: addresses in the machine's byte order, states in hexadecimal).
fn is_established(local: SocketAddr, remote: SocketAddr) -> bool {
    const ESTABLISHED: &str = "01";
    let hex = |address: SocketAddr| {
        let IpAddr::V4(ip) = address.ip() else { panic!("relays listen on IPv4: {address}") };
        format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port())
    };
    let (local, remote) = (hex(local), hex(remote));
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel lists its sockets");
    table.lines().map(|line| line.split_ascii_whitespace().skip(1)).any(|mut fields| {
        [&local, &remote, ESTABLISHED].into_iter().all(|wanted| fields.next() == Some(wanted))
    })
}

impl Pair {
    fn new(crawler: TcpStream, server: SocketAddr) -> Self {
        let server = TcpStream::connect(server).expect("the server runs");
        Self {
            crawler: End::new(crawler),
            server: End::new(server),
            held_until: None,
            asking: false,
        }
    }

    fn turn(&mut self, think: Duration, seen: &mut Seen) -> bool {
        let asked = self.crawler.read();
        let mut busy = asked;
        if asked && !self.asking {
            let now = Instant::now();
            self.asking = true;
            self.held_until = Some(now + think);
            seen.exchanges.push(Exchange { asked: now, answered: now });
        }
        busy |= self.crawler.pass(&mut self.server);
        busy |= self.server.read();
        let now = Instant::now();
        let held = self.held_until.is_some_and(|until| now < until);
        if !self.server.pending.is_empty() && !held {
            self.asking = false;
            let last = seen.exchanges.last_mut().expect("servers speak when they are asked");
            last.answered = now;
            busy |= self.server.pass(&mut self.crawler);
        }
        self.crawler.pass_end(&mut self.server);
        self.server.pass_end(&mut self.crawler);
        busy
    }

    fn is_over(&self) -> bool {
        self.crawler.is_over() && self.server.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that echoes each byte, on any number of connections.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback addresses can be bound");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
                });
            }
        });
        address
    }

    /// Closes a connection, even if a child that another test has forked still has its descriptor.
    fn close(stream: TcpStream) {
        stream.shutdown(Shutdown::Both).expect("it is open");
    }

    fn ask(stream: &mut TcpStream) {
        let mut byte = *b"x";
        stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte)).expect("an echo");
    }

    #[test]
    fn a_connection_counts_until_it_is_closed() {
        let relay = Relay::listen("127.0.0.1", echo(), Duration::ZERO);
        let address = relay.address();
        let watch = Watch::begin(vec![relay]);
        let connect = || TcpStream::connect(address).expect("it listens");
        for _ in 0..200 {
            // Closed by the time the next one comes: one at a time, however fast.
            let mut stream = connect();
            ask(&mut stream);
            close(stream);
        }
        let mut first = connect();
        ask(&mut first);
        let mut second = connect();
        ask(&mut second);
        close(first);
        close(second);
        ask(&mut connect());
        let seen = watch.end().remove(0);
        assert_eq!((seen.connections, seen.overlapping), (203, 1));
        assert_eq!(seen.exchanges.len(), 203);
    }

    #[test]
    fn a_close_counts_before_it_has_arrived() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback addresses can be bound");
        let here = listener.local_addr().expect("it is bound");
        let stream = TcpStream::connect(here).expect("it listens");
        let peer = stream.local_addr().expect("it is connected");
        let (taken, _) = listener.accept().expect("one came");
        assert!(is_established(peer, here) && is_established(here, peer));
        close(stream);
        assert!(!is_established(peer, here), "closed is closed, whatever `taken` knows");
        drop(taken);
    }

    #[test]
    fn gaps_are_those_between_reply_and_request() {
        let relay = Relay::listen("127.0.0.1", echo(), Duration::from_millis(20));
        let mut stream = TcpStream::connect(relay.address()).expect("it listens");
        let watch = Watch::begin(vec![relay]);
        ask(&mut stream);
        thread::sleep(Duration::from_millis(30));
        ask(&mut stream);
        drop(stream);
        let seen = watch.end().remove(0);
        let [first, second] = seen.exchanges[..] else { panic!("two were made: {seen:?}") };
        assert!(first.answered - first.asked >= Duration::from_millis(20), "replies are held back");
        assert!(second.asked - first.answered >= Duration::from_millis(30), "{seen:?}");
    }
}
