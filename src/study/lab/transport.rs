//! The byte stream of a client, plain text or TLS, behind four verbs: read, write, flush, shut
//! down.
//!
//! All calls are non-blocking: `WouldBlock` means to try again later. Reading returns 0 at the end
//! of the stream.

use mio::net::TcpStream;
use rustls::ServerConnection;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;

/// The stream of one connection.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(TcpStream, Box<ServerConnection>),
}

impl Transport {
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) | Self::Tls(socket, _) => socket,
        }
    }

    /// Reads bytes that have arrived into `buffer`; returns how many.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(socket, tls) => read_tls(socket, tls, buffer),
        }
    }

    /// Writes as much of the slices as the socket takes; over TLS, of the first slice only. Returns
    /// the number of bytes taken.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Tls(socket, tls) => {
                flush_tls(socket, tls)?;
                let first = slices.first().map_or(&[][..], |slice| slice);
                let taken = tls.writer().write(first)?;
                match flush_tls(socket, tls) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                    _ => Ok(taken),
                }
            }
        }
    }

    /// Writes what TLS still buffers.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(socket, tls) => flush_tls(socket, tls),
        }
    }

    /// Ends the lab's direction of the stream, in order.
    pub(super) fn shutdown(&mut self) -> io::Result<()> {
        if let Self::Tls(socket, tls) = self {
            tls.send_close_notify();
            // A client that doesn't read may miss the TLS close alert; the TCP close still reaches
            // it.
            let _ = flush_tls(socket, tls);
        }
        self.socket().shutdown(Shutdown::Write)
    }
}

fn read_tls(
    socket: &mut TcpStream,
    tls: &mut ServerConnection,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        if tls.read_tls(socket)? == 0 {
            return Ok(0);
        }
        let processed = tls.process_new_packets();
        // Handshake messages, or the alert that names the error.
        match flush_tls(socket, tls) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    }
}

fn flush_tls(socket: &mut TcpStream, tls: &mut ServerConnection) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}
