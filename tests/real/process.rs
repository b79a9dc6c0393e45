//! Programs that run beside a test: started in the foreground, waited for, stopped with it.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
pub(super) const START_MAX: Duration = Duration::from_secs(20);
/// How long it may take to stop when asked to.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A program that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    program: String,
    child: Child,
    /// The file with its output, except for its logs.
    output: PathBuf,
}

impl Running {
    /// Starts a program with its output in `output.log` of `folder`, after that of an earlier
    /// start, and waits until it listens.
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        folder: &Path,
        listen: SocketAddr,
    ) -> Self {
        let output = folder.join("output.log");
        let file = File::options().create(true).append(true).open(&output);
        let file = file.expect("the folder is the test's");
        let child = Command::new(find(program))
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env("XDG_DATA_HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a descriptor"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut running = Self { program: program.to_owned(), child, output };
        running.wait_until_listening(listen);
        running
    }

    fn wait_until_listening(&mut self, listen: SocketAddr) {
        let begun = Instant::now();
        while TcpStream::connect_timeout(&listen, Duration::from_secs(1)).is_err() {
            let ended = self.child.try_wait().expect("a child can be asked for");
            let (program, said) = (&self.program, self.output());
            assert!(ended.is_none(), "{program} ended at its start, {ended:?}:\n{said}");
            assert!(begun.elapsed() < START_MAX, "{program} doesn't listen on {listen}:\n{said}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to stop, so that it stops its own children and writes its logs; then kills it.
    pub(super) fn stop(&mut self) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < STOP_MAX {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Ends it at once, even if it is paused.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops all its threads until `resume`. When this returns they are stopped.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
        let id = WaitId::Pid(Pid::from_child(&self.child));
        waitid(id, WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).expect("it runs");
    }

    /// Lets it go on where it was paused.
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // It may have ended.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Returns what it has written to its output.
    pub(super) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

/// Makes a socket refuse connections, and leaves its port to others. Closing it isn't enough: the
/// descriptors of this process are open in every child of another test that has been forked and not
/// executed its program yet.
pub(super) fn stop_listening(listener: TcpListener) {
    let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
}

/// The ports that tests of this process have got.
static GIVEN: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

/// Returns a free port of an address, for both TCP and UDP. No other test of this process gets it.
pub(super) fn free_port(ip: &str) -> SocketAddr {
    for _ in 0..100 {
        let probe = TcpListener::bind((ip, 0)).expect("loopback addresses can be bound");
        let address = probe.local_addr().expect("it is bound");
        let is_free = UdpSocket::bind(address).is_ok();
        stop_listening(probe);
        if is_free && GIVEN.lock().expect("nobody panics with it").insert(address) {
            return address;
        }
    }
    panic!("no port of {ip} is free");
}

/// Returns the path of a program. Servers may be in directories that only root's PATH has.
fn find(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = env::split_paths(&path).chain(more).map(|folder| folder.join(program));
    let mut found = found.filter(|file| file.is_file());
    found.next().unwrap_or_else(|| panic!("{program} is missing: `make deps` installs it"))
}
