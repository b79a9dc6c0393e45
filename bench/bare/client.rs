//! Many connections on one poller: requests out, pages in, and, if it follows links, on.
//!
//! Laws: each URL given is fetched once for each time it is given; in a crawl, each URL found on a
//! seed's host once. A connection that the server closes is opened again, and what it owed is asked
//! for again.

use super::page::{self, HREF, Target};
use foldhash::fast::FixedState;
use memchr::memmem::Finder;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use sted::ground::map::{Map, Set};
use sted::study::{lab, web};

/// How it goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Connections over all hosts; each host has one at least.
    pub(crate) connections: usize,
    /// Requests under way on one of them.
    pub(crate) depth: usize,
    /// Whether links are looked for and followed.
    pub(crate) follow: bool,
}

/// Room for a read; the largest reply that is taken without growing.
const READ_BYTES: usize = 128 << 10;

struct Host {
    authority: String,
    address: SocketAddr,
    /// Paths to ask for.
    queue: VecDeque<Box<str>>,
    /// Its connections with nothing under way.
    idle: Vec<usize>,
    /// It is among those to be looked at.
    is_due: bool,
}

struct Connection {
    host: usize,
    socket: TcpStream,
    /// Bytes of replies that aren't whole yet: `..filled` of them.
    bytes: Vec<u8>,
    filled: usize,
    /// Paths asked for and not answered, in order.
    pending: VecDeque<Box<str>>,
    /// Requests the socket had no room for.
    unsent: Vec<u8>,
    /// It is in its host's list of the idle.
    is_idle: bool,
}

struct Client {
    plan: Plan,
    poll: Poll,
    hosts: Vec<Host>,
    names: Map<String, usize>,
    connections: Vec<Connection>,
    /// Hashes of host and path.
    seen: Set<u64>,
    /// URLs that wait or are under way.
    left: usize,
    due: Vec<usize>,
    finder: Finder<'static>,
    room: String,
    pages: usize,
    bytes: usize,
    links: usize,
}

/// Fetches the URLs, and if so planned what they lead to; one line of JSON.
pub(crate) fn run(urls: &[&str], plan: Plan) -> io::Result<String> {
    let mut client = Client {
        plan,
        poll: Poll::new()?,
        hosts: Vec::new(),
        names: Map::default(),
        connections: Vec::new(),
        seen: Set::default(),
        left: 0,
        due: Vec::new(),
        finder: Finder::new(HREF),
        room: String::new(),
        pages: 0,
        bytes: 0,
        links: 0,
    };
    for url in urls {
        client.take(url)?;
    }
    let hosts = client.hosts.len().max(1);
    for number in 0..plan.connections.max(hosts) {
        client.open(number % hosts)?;
    }
    client.fetch_all()?;
    let Client { pages, bytes, links, .. } = client;
    Ok(format!("{{\"pages\":{pages},\"bytes\":{bytes},\"links\":{links}}}"))
}

impl Client {
    /// A URL of the list.
    fn take(&mut self, url: &str) -> io::Result<()> {
        let rest = url.strip_prefix("http://").expect("plain HTTP");
        let (authority, path) = rest.split_at(rest.find('/').expect("a path"));
        let number = match self.names.get(authority) {
            Some(number) => *number,
            None => {
                let number = self.hosts.len();
                let address = with_port(authority).to_socket_addrs()?.next();
                self.hosts.push(Host {
                    authority: authority.to_owned(),
                    address: address.expect("a host that is known"),
                    queue: VecDeque::new(),
                    idle: Vec::new(),
                    is_due: false,
                });
                self.names.insert(authority.to_owned(), number);
                number
            }
        };
        if !self.plan.follow || self.seen.insert(hash(number, path)) {
            self.hosts[number].queue.push_back(path.into());
            self.left += 1;
        }
        Ok(())
    }

    fn open(&mut self, host: usize) -> io::Result<()> {
        let number = self.connections.len();
        let mut socket = connect(self.hosts[host].address)?;
        self.poll.registry().register(&mut socket, Token(number), INTEREST)?;
        self.connections.push(Connection {
            host,
            socket,
            bytes: Vec::new(),
            filled: 0,
            pending: VecDeque::new(),
            unsent: Vec::new(),
            is_idle: true,
        });
        self.hosts[host].idle.push(number);
        self.mark(host);
        Ok(())
    }

    /// The host has something to ask for, or someone to ask by.
    fn mark(&mut self, host: usize) {
        if !std::mem::replace(&mut self.hosts[host].is_due, true) {
            self.due.push(host);
        }
    }

    fn fetch_all(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        self.ask_all()?;
        while self.left > 0 {
            self.poll.poll(&mut events, None)?;
            for event in &events {
                let number = event.token().0;
                if event.is_readable() {
                    self.read(number, event.is_read_closed())?;
                }
                // Who is idle is asked for by those who found something, below.
                if !self.connections[number].is_idle {
                    self.ask(number)?;
                }
            }
            self.ask_all()?;
        }
        Ok(())
    }

    /// Gives idle connections what has been found for their hosts.
    fn ask_all(&mut self) -> io::Result<()> {
        while let Some(host) = self.due.pop() {
            self.hosts[host].is_due = false;
            while !self.hosts[host].queue.is_empty() {
                let Some(number) = self.hosts[host].idle.pop() else { break };
                self.connections[number].is_idle = false;
                self.ask(number)?;
            }
        }
        Ok(())
    }

    /// Sends as many requests as the depth allows, once half of them are answered.
    fn ask(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let host = &mut self.hosts[connection.host];
        if connection.pending.len() <= self.plan.depth / 2 {
            while connection.pending.len() < self.plan.depth {
                let Some(path) = host.queue.pop_front() else { break };
                for piece in ["GET ", &path, " HTTP/1.1\r\nHost: ", &host.authority, "\r\n\r\n"] {
                    connection.unsent.extend(piece.as_bytes());
                }
                connection.pending.push_back(path);
            }
        }
        if !connection.unsent.is_empty() {
            match connection.socket.write(&connection.unsent) {
                Ok(sent) => drop(connection.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until there is no more: a short read has emptied the socket, unless its end has come.
    fn read(&mut self, number: usize, is_ending: bool) -> io::Result<()> {
        loop {
            let connection = &mut self.connections[number];
            if connection.bytes.len() < connection.filled + READ_BYTES / 2 {
                connection.bytes.resize(connection.filled + READ_BYTES, 0);
            }
            let space = connection.bytes.len() - connection.filled;
            let read = match connection.socket.read(&mut connection.bytes[connection.filled..]) {
                Ok(0) => return self.reopen(number),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return self.reopen(number);
                }
                Err(error) => return Err(error),
            };
            connection.filled += read;
            self.parse(number);
            if read < space && !is_ending {
                return Ok(());
            }
        }
    }

    /// Takes whole pages off what has come.
    fn parse(&mut self, number: usize) {
        let host = self.connections[number].host;
        let bytes = std::mem::take(&mut self.connections[number].bytes);
        let filled = self.connections[number].filled;
        let mut at = 0;
        while let Some((head, body)) = page::head(&bytes[at..filled]) {
            let end = at + head + body;
            if end > filled {
                break;
            }
            let path = self.connections[number].pending.pop_front().expect("it was asked for");
            self.pages += 1;
            self.left -= 1;
            self.bytes += body;
            if self.plan.follow {
                self.follow(host, &path, &bytes[at + head..end]);
            }
            at = end;
        }
        let connection = &mut self.connections[number];
        connection.bytes = bytes;
        connection.bytes.copy_within(at..filled, 0);
        connection.filled = filled - at;
        let is_done = connection.pending.is_empty() && self.hosts[host].queue.is_empty();
        if is_done && !std::mem::replace(&mut connection.is_idle, true) {
            self.hosts[host].idle.push(number);
        }
    }

    fn follow(&mut self, host: usize, path: &str, page: &[u8]) {
        let mut room = std::mem::take(&mut self.room);
        let finder = self.finder.clone();
        page::references(&finder, page, |reference| {
            self.links += 1;
            let (host, path) = match page::join(path, reference, &mut room) {
                Target::Here(path) => (host, path),
                Target::There(authority, path) => match self.names.get(authority) {
                    Some(host) => (*host, path),
                    None => return,
                },
                Target::Nowhere => return,
            };
            if self.seen.insert(hash(host, path)) {
                self.hosts[host].queue.push_back(path.into());
                self.left += 1;
                self.mark(host);
            }
        });
        self.room = room;
    }

    /// The server has closed: what it owes is asked for again, elsewhere.
    fn reopen(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let host = connection.host;
        connection.socket = connect(self.hosts[host].address)?;
        self.poll.registry().register(&mut connection.socket, Token(number), INTEREST)?;
        (connection.filled, connection.unsent) = (0, Vec::new());
        while let Some(path) = connection.pending.pop_back() {
            self.hosts[host].queue.push_front(path);
        }
        Ok(())
    }
}

const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = std::net::TcpStream::connect(address)?;
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    Ok(TcpStream::from_std(socket))
}

fn hash(host: usize, path: &str) -> u64 {
    FixedState::default().hash_one((host, path))
}

fn with_port(authority: &str) -> String {
    if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") }
}

/// Fetches from a lab that closes connections on the way; crawls a web of a few pages.
pub(crate) fn check() -> io::Result<()> {
    page::check();
    let stop = AtomicBool::new(false);
    let of = web::Settings { hosts: 3, seeds: 3, pages: 60, ..web::Settings::default() };
    let web = web::Settings { requests_per_connection: vec![(0.5, 7)], ..of };
    let settings = lab::Settings { web, ..lab::Settings::default() };
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let stop = &stop;
        let lab = scope.spawn(move || {
            lab::serve(&settings, &mut |ready| sender.send(ready.clone()).expect("heard"), stop)
        });
        let port = receiver.recv().expect("the lab serves").http_port;
        // The lab's names are known to its own server only; its addresses are known here.
        let list: Vec<String> =
            (0..90).map(|number| format!("http://127.1.0.{}:{port}/", number % 3 + 1)).collect();
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        for depth in [1, 8] {
            let line = run(&list, Plan { connections: 5, depth, follow: false });
            let line = line.expect("a web that serves");
            assert!(line.starts_with("{\"pages\":90,"), "{line}");
        }
        stop.store(true, Ordering::Relaxed);
        lab.join().expect("no panic").expect("a lab that serves");
    });
    check_crawl()
}

/// A web of five pages, each of which links to the next, by another spelling, and to others.
fn check_crawl() -> io::Result<()> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    let bodies = [
        "<a href=\"/a/1\"> <a href=\"http://elsewhere.test/\">".to_owned(),
        "<a href=\"2?x=1&amp;y=2\"> <a href=\"/\">".to_owned(),
        format!("<a href=\"http://{at}/b/3#end\"> <a href=\"1\">"),
        "<a href=\"../4\">".to_owned(),
        "the end".to_owned(),
    ];
    let bytes: usize = bodies.iter().map(String::len).sum();
    let paths = ["/", "/a/1", "/a/2?x=1&y=2", "/b/3", "/4"];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let mut lines = io::BufReader::new(socket.try_clone().expect("a handle")).lines();
            while let Some(Ok(line)) = lines.next() {
                let Some(path) = line.strip_prefix("GET ") else { continue };
                let path = path.strip_suffix(" HTTP/1.1").expect("a request line");
                let place = paths.iter().position(|known| *known == path).expect("a page");
                let body = &bodies[place];
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                socket.write_all((head + body).as_bytes()).expect("it listens");
            }
        });
        let line =
            run(&[&format!("http://{at}/")], Plan { connections: 1, depth: 8, follow: true });
        let expected = format!("{{\"pages\":5,\"bytes\":{bytes},\"links\":7}}");
        assert_eq!(line.expect("a web"), expected);
    });
    Ok(())
}
