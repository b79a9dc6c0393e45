//! The Unix socket in the job directory: creates, finds and removes it.
//!
//! The path of a Unix socket has at most 107 bytes, and a job directory may be deeper than that. So
//! server and client open the directory and name the socket through the descriptor:
//! `/proc/self/fd/5/control.sock`.
//!
//! The socket is created with mode 0600: on Linux its file gets the mode that the socket has when
//! it is bound, so there is no moment at which other users could connect.

use crate::os::disk::Root;
use rustix::fs::{FileType, Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// The name of the socket in the job directory.
pub(super) const NAME: &str = "control.sock";

/// The number of connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Creates the socket and listens on it. The caller holds the lock on the job: a socket that is
/// there was left by a process that was killed, and is replaced.
pub(super) fn listen(root: &Root) -> io::Result<UnixListener> {
    remove(root)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path(root))?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Connects to the socket of the job in this directory.
pub(super) fn connect(root: &Root) -> io::Result<UnixStream> {
    UnixStream::connect(path(root))
}

/// Removes the socket if there is one. Anything else with its name stays.
pub(super) fn remove(root: &Root) -> io::Result<()> {
    match root.stat(NAME) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => root.remove(NAME),
        Ok(_) => Err(io::Error::other("it is no socket; move it away")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn path(root: &Root) -> String {
    format!("/proc/self/fd/{}/{NAME}", root.dir().as_raw_fd())
}
