//! The lab's sockets: one listener per address and scheme, on ports that are free on all addresses
//! of the scheme.

use super::{Error, Settings, serves_tls};
use crate::study::web::{Manner, Naming, Web};
use mio::net::{TcpListener, UdpSocket};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The first port tried: below the range from which systems draw ports for outgoing connections.
const PORT_FIRST: u16 = 20_000;
/// The number of ports, from [`PORT_FIRST`] on, among which a free one is looked for.
const PORTS_PROBED: u16 = 12_000;
/// The most ports that are tried.
const PROBES_MAX: u16 = 200;
/// The most connections made to fill a listener's queue.
const FILLERS_MAX: usize = 5_000;

/// A listener and the hosts behind it.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// The numbers of the hosts with the listener's address and scheme; never empty.
    pub(super) hosts: Vec<u32>,
    pub(super) tls: bool,
}

/// All sockets of the lab, bound.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) listeners: Vec<Listener>,
    pub(super) http_port: u16,
    pub(super) https_port: u16,
    pub(super) udp: UdpSocket,
    pub(super) tcp: TcpListener,
    pub(super) dns: SocketAddr,
    /// Listeners whose queues are full, with the connections that fill them: kept open, never used.
    pub(super) full: Vec<Full>,
}

/// A listener whose queue has no room for another connection.
#[derive(Debug)]
pub(super) struct Full {
    _listener: std::net::TcpListener,
    _fillers: Vec<TcpStream>,
}

/// Binds all sockets of the lab.
pub(super) fn open(settings: &Settings, web: &Web) -> Result<Sockets, Error> {
    let (plain, over_tls) = (addresses(web, false), addresses(web, true));
    let hosts = "bind the hosts' addresses";
    let few = |error: Error| match error {
        Error::Socket(_, source) if source.raw_os_error() == Some(libc::EMFILE) => {
            Error::Descriptors(plain.len() + over_tls.len())
        }
        error => error,
    };
    let bound = probe(settings.http_port, 0, hosts, |port| {
        let bound = bind_all(&plain, port, false)?;
        let full = fill_all(web, port)?;
        Ok((bound, full))
    });
    let (http_port, (mut listeners, full)) = bound.map_err(few)?;
    let bound = probe(settings.https_port, 4_000, hosts, |port| bind_all(&over_tls, port, true));
    let (https_port, over_tls) = bound.map_err(few)?;
    listeners.extend(over_tls);
    let (dns_port, (udp, tcp)) = probe(settings.dns_port, 8_000, "bind the name server", |port| {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok((UdpSocket::bind(at)?, TcpListener::bind(at)?))
    })?;
    let dns = SocketAddr::from((Ipv4Addr::LOCALHOST, dns_port));
    Ok(Sockets { listeners, http_port, https_port, udp, tcp, dns, full })
}

/// Finds a port for which `open` succeeds: `wanted`, if it is given, or else a free one. Each
/// process starts at another port, and the three kinds of ports (HTTP, HTTPS, DNS) start `apart`
/// from each other.
fn probe<T>(
    wanted: Option<u16>,
    apart: u16,
    what: &'static str,
    mut open: impl FnMut(u16) -> io::Result<T>,
) -> Result<(u16, T), Error> {
    let failed = |source| Error::Socket(what, source);
    if let Some(port) = wanted {
        return open(port).map(|opened| (port, opened)).map_err(failed);
    }
    let spread = (std::process::id().wrapping_mul(97) % u32::from(PORTS_PROBED)) as u16;
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for step in 0..PROBES_MAX {
        let port = PORT_FIRST + (spread + apart + step * 7) % PORTS_PROBED;
        match open(port) {
            Ok(opened) => return Ok((port, opened)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(last))
}

/// Returns the addresses that listen for TLS (`tls`) or for plain text, each with the numbers of
/// its hosts.
fn addresses(web: &Web, tls: bool) -> BTreeMap<Ipv4Addr, Vec<u32>> {
    let mut found: BTreeMap<Ipv4Addr, Vec<u32>> = BTreeMap::new();
    for number in 0..web.hosts() {
        let host = web.host(number);
        let listens = host.hostile.is_none_or(|kind| {
            let spec = kind.spec();
            let reached = matches!(spec.naming, Naming::Address | Naming::OverTcp);
            reached && !matches!(spec.manner, Manner::Refuse | Manner::Full)
        });
        if listens && serves_tls(host.scheme) == tls {
            found.entry(host.address).or_default().push(number);
        }
    }
    found
}

fn bind_all(
    addresses: &BTreeMap<Ipv4Addr, Vec<u32>>,
    port: u16,
    tls: bool,
) -> io::Result<Vec<Listener>> {
    let bind = |(address, hosts): (&Ipv4Addr, &Vec<u32>)| {
        let socket = TcpListener::bind(SocketAddr::from((*address, port)))?;
        Ok(Listener { socket, hosts: hosts.clone(), tls })
    };
    addresses.iter().map(bind).collect()
}

fn fill_all(web: &Web, port: u16) -> io::Result<Vec<Full>> {
    let hosts = (0..web.hosts()).map(|number| web.host(number));
    let full =
        hosts.filter(|host| host.hostile.is_some_and(|kind| kind.spec().manner == Manner::Full));
    full.map(|host| fill(SocketAddr::from((host.address, port)))).collect()
}

/// Binds a listener that never accepts and fills its queue: the next connection hangs.
fn fill(at: SocketAddr) -> io::Result<Full> {
    let listener = std::net::TcpListener::bind(at)?;
    let mut fillers = Vec::new();
    while fillers.len() < FILLERS_MAX {
        match TcpStream::connect_timeout(&at, Duration::from_millis(100)) {
            Ok(filler) => fillers.push(filler),
            Err(_) => return Ok(Full { _listener: listener, _fillers: fillers }),
        }
    }
    Err(io::Error::other("a listener's queue does not fill"))
}
