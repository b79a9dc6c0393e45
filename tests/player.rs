//! The servers of a script on real sockets: one thread per connection, and a name server that knows
//! their names. All stop when the value that started them is dropped.

use crate::scenario::read;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use sted::ground::time;
use sted::study::web::script::{PRIVATE, Play, Player, Script};

type Seen = BTreeMap<String, (Vec<String>, usize)>;

/// The running servers.
pub(crate) struct Servers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    dns: SocketAddr,
    port: u16,
}

struct Shared {
    script: Script,
    stop: AtomicBool,
    seen: Mutex<Seen>,
    faults: Mutex<Vec<String>>,
    /// The number of look-ups so far, by name.
    lookups: Mutex<BTreeMap<String, usize>>,
    addresses: BTreeMap<String, Ipv4Addr>,
}

/// How often a waiting thread checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(5);

impl Servers {
    /// Starts a listener for each host that doesn't refuse connections, and a name server.
    pub(crate) fn start(text: &str) -> Self {
        let script = read(text, 0);
        let hosts: Vec<&String> = script.hosts.keys().chain(&script.refusing).collect();
        let mut addresses = BTreeMap::new();
        for host in hosts {
            let next = u8::try_from(addresses.len() + 1).expect("a script has few hosts");
            addresses.entry(host.clone()).or_insert(Ipv4Addr::new(127, 1, 0, next));
        }
        let (port, listeners) = listen(&script, &addresses);
        let dns = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let dns_address = dns.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            script: read(text, port),
            stop: AtomicBool::new(false),
            seen: Mutex::default(),
            faults: Mutex::default(),
            lookups: Mutex::default(),
            addresses,
        });
        let mut threads = vec![thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.answer_names(&dns)
        })];
        for (host, listener) in listeners {
            let shared = Arc::clone(&shared);
            threads.push(thread::spawn(move || shared.accept(&host, &listener)));
        }
        Self { shared, threads, dns: dns_address, port }
    }

    /// Returns the script with its port filled in.
    pub(crate) fn script(&self) -> &Script {
        &self.shared.script
    }

    pub(crate) fn dns(&self) -> String {
        self.dns.to_string()
    }

    /// Returns the port of all hosts.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Stops the servers; returns what each host has received, and the deviations from the script.
    pub(crate) fn stop(self) -> (Seen, Vec<String>) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("no server panics");
        }
        let seen = self.shared.seen.lock().expect("joined").clone();
        let faults = self.shared.faults.lock().expect("joined").clone();
        (seen, faults)
    }
}

/// Returns listeners on a port that is free at all addresses.
fn listen(
    script: &Script,
    addresses: &BTreeMap<String, Ipv4Addr>,
) -> (u16, Vec<(String, TcpListener)>) {
    'ports: for port in 20_080..30_000 {
        let mut listeners = Vec::new();
        for (host, address) in addresses {
            let Ok(listener) = TcpListener::bind(SocketAddrV4::new(*address, port)) else {
                continue 'ports;
            };
            if !script.refusing.contains(host) {
                listener.set_nonblocking(true).expect("a socket");
                listeners.push((host.clone(), listener));
            }
        }
        return (port, listeners);
    }
    panic!("no port is free");
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn accept(self: &Arc<Self>, host: &str, listener: &TcpListener) {
        let scripts = &self.script.hosts[host];
        let (mut count, mut threads) = (0, Vec::new());
        while !self.is_stopping() {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            let player = Player::new(&scripts[count.min(scripts.len() - 1)]);
            count += 1;
            self.seen.lock().expect("no panics").entry(host.to_owned()).or_default().1 += 1;
            let (shared, host) = (Arc::clone(self), host.to_owned());
            threads.push(thread::spawn(move || shared.serve(&host, stream, player)));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no server panics"));
    }

    fn serve(&self, host: &str, mut stream: TcpStream, mut player: Player) {
        stream.set_nonblocking(false).expect("a socket");
        stream.set_read_timeout(Some(LOOK)).expect("a socket");
        let start = Instant::now();
        let mut buffer = [0; 4_096];
        while !self.is_stopping() {
            let us = u64::try_from(start.elapsed().as_micros()).expect("short");
            match player.play(time::Instant::from_micros(us)) {
                Play::Send(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        break;
                    }
                    continue;
                }
                Play::WaitUntil(_) | Play::WaitForBytes => {}
                Play::Close => {
                    // Shuts down one direction, then reads what still arrives: a server that closed
                    // with unread bytes would reset what it has just sent.
                    let _ = stream.shutdown(Shutdown::Write);
                    while matches!(stream.read(&mut buffer), Ok(1..)) {}
                    break;
                }
                Play::Reset => {
                    reset(&stream);
                    break;
                }
            }
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => player.received(&buffer[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        player.play(time::Instant::FAR);
        let mut seen = self.seen.lock().expect("no panics");
        seen.entry(host.to_owned()).or_default().0.extend_from_slice(player.requests());
        let faults = player.faults().iter().map(|fault| format!("{host}: {fault}"));
        self.faults.lock().expect("no panics").extend(faults);
    }

    fn answer_names(&self, socket: &UdpSocket) {
        socket.set_read_timeout(Some(LOOK)).expect("a socket");
        let mut buffer = [0; 512];
        while !self.is_stopping() {
            let Ok((count, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Some(reply) = self.name_reply(&buffer[..count]) {
                let _ = socket.send_to(&reply, from);
            }
        }
    }

    /// Returns the answer to a query (RFC 1035); `None` if the script demands silence.
    fn name_reply(&self, query: &[u8]) -> Option<Vec<u8>> {
        let (mut name, mut at) = (String::new(), 12);
        while let Some(&len) = query.get(at).filter(|len| **len > 0) {
            let label = query.get(at + 1..at + 1 + usize::from(len))?;
            name += &format!("{}.", String::from_utf8_lossy(label).to_lowercase());
            at += 1 + usize::from(len);
        }
        let name = name.trim_end_matches('.');
        let wants_a = query.get(at + 1..at + 3)? == [0, 1];
        let end = at + 5;
        // Both address families are asked for at the same time: the query for the first one counts.
        let before = {
            let mut lookups = self.lookups.lock().expect("no panics");
            let asked = lookups.entry(name.to_owned()).or_default();
            std::mem::replace(asked, *asked + usize::from(wants_a))
        };
        let why = self.script.names.get(name).and_then(|denial| denial.after(before));
        let code = match why {
            Some("timed-out") => return None,
            Some("no-such-name") => 3,
            Some("no-address" | "private") | None => 0,
            Some(_) => 2,
        };
        let address = match why {
            Some("private") => Some(&PRIVATE),
            Some(_) => None,
            None => self.addresses.get(name),
        };
        let address = address.filter(|_| wants_a);
        let known = why.is_some() || self.addresses.contains_key(name);
        let mut reply = query[..2].to_vec();
        reply.extend_from_slice(&[0x85, 0x80 | if known { code } else { 3 }]);
        reply.extend_from_slice(&[0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        reply.extend_from_slice(query.get(12..end)?);
        if let Some(address) = address {
            reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
            reply.extend_from_slice(&address.octets());
        }
        Some(reply)
    }
}

/// Closes with a reset: a zero linger time discards unsent bytes and sends a reset.
fn reset(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = u32::try_from(size_of::<libc::linger>()).expect("small");
    // SAFETY: the descriptor is the stream's and open; the value is a whole `linger` of the size
    // that is given, and is only read during the call.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
    assert_eq!(set, 0, "linger can be set");
}
