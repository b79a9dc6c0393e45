//! A relay between clients and a server that can be cut and restored.

use crate::real::process::{free_port, stop_listening};
use crate::real::relay::{End, NAP};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const HOST: &str = "127.78.0.3";

/// How long a server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// A relay that listens. It ends when this is dropped, and its thread with it.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    server: SocketAddr,
    /// `None` while it is cut.
    line: Arc<Mutex<Option<Line>>>,
}

impl Relay {
    /// Listens, and passes on everything between its clients and `server`.
    pub(crate) fn listen(server: SocketAddr) -> Self {
        let address = free_port(HOST);
        let line = Arc::new(Mutex::new(Some(Line::listen(address, server))));
        let shared = Arc::downgrade(&line);
        thread::spawn(move || {
            while let Some(line) = shared.upgrade() {
                let busy = lock(&line).as_mut().is_some_and(Line::turn);
                drop(line);
                if !busy {
                    thread::sleep(NAP);
                }
            }
        });
        Self { address, server, line }
    }

    /// Returns the address for clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, with whatever is on its way, and refuses new ones. They are closed
    /// when this returns.
    pub(crate) fn cut(&self) {
        if let Some(line) = lock(&self.line).take() {
            line.close();
        }
    }

    /// Accepts connections again, at the same address.
    pub(crate) fn mend(&self) {
        lock(&self.line).get_or_insert_with(|| Line::listen(self.address, self.server));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
    }
}

fn lock(line: &Mutex<Option<Line>>) -> MutexGuard<'_, Option<Line>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A relay at work.
#[derive(Debug)]
struct Line {
    listener: TcpListener,
    server: SocketAddr,
    /// Clients, each with its connection to the server.
    open: Vec<[End; 2]>,
}

impl Line {
    fn listen(address: SocketAddr, server: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("loopback addresses can be bound");
        listener.set_nonblocking(true).expect("socket options can be set");
        Self { listener, server, open: Vec::new() }
    }

    /// Passes on what has arrived; returns whether there was something.
    fn turn(&mut self) -> bool {
        let new = self.listener.accept().ok();
        let mut busy = new.is_some();
        if let Some((client, _)) = new
            && let Ok(server) = TcpStream::connect_timeout(&self.server, CONNECT_MAX)
        {
            self.open.push([client, server].map(End::new));
        }
        for ends in &mut self.open {
            for _direction in 0..2 {
                let [from, to] = ends;
                busy |= from.read();
                busy |= from.pass(to);
                from.pass_end(to);
                ends.reverse();
            }
        }
        self.open.retain(|ends| !ends.iter().all(End::is_over));
        busy
    }

    fn close(self) {
        stop_listening(self.listener);
        self.open.iter().flatten().for_each(End::cut);
    }
}
