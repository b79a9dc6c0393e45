//! The program that scores pages: its process, its pipes, and the lines in them.

use crate::engine::contract::ScoreRequest;
use mio::unix::pipe::{Receiver, Sender};
use mio::{Interest, Registry, Token};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const INPUT: Token = Token(1);
const OUTPUT: Token = Token(2);
const ERRORS: Token = Token(3);

/// The number of bytes that are encoded before they are written.
const WRITE_BYTES: usize = 64 << 10;
/// The most bytes that are read from one pipe in a turn.
const READ_BYTES_MAX: usize = 1 << 20;
/// The longest line of an answer or a message, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The most lines of a program's messages that go to the log.
const MESSAGES_MAX: u32 = 100;
/// How long the program may take to end by itself once its input is closed.
const END_WAIT: Duration = Duration::from_millis(500);

/// Whether the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    GoesOn,
    Ends,
}

/// The running program.
pub(super) struct Program {
    child: Child,
    began: Instant,
    /// Its standard input; `None` once it is closed.
    input: Option<Sender>,
    output: Lines,
    errors: Lines,
    /// The encoded pages, of which `written` bytes are written.
    pages: Vec<u8>,
    written: usize,
    messages: u32,
}

impl Program {
    /// Starts the program and watches its pipes.
    pub(super) fn start(command: &[String], registry: &Registry) -> io::Result<Self> {
        let (name, arguments) = command.split_first().expect("the configuration is checked");
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal from the terminal is for the crawl, which ends the program itself.
            .process_group(0)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut input = Sender::from(input.expect("it is piped"));
        let mut output = Receiver::from(output.expect("it is piped"));
        let mut errors = Receiver::from(child.stderr.take().expect("it is piped"));
        input.set_nonblocking(true)?;
        output.set_nonblocking(true)?;
        errors.set_nonblocking(true)?;
        registry.register(&mut input, INPUT, Interest::WRITABLE)?;
        registry.register(&mut output, OUTPUT, Interest::READABLE)?;
        registry.register(&mut errors, ERRORS, Interest::READABLE)?;
        Ok(Self {
            child,
            began: Instant::now(),
            input: Some(input),
            output: Lines::new(output),
            errors: Lines::new(errors),
            pages: Vec::new(),
            written: 0,
            messages: 0,
        })
    }

    /// Returns how long the program has run.
    pub(super) fn lived(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// Returns whether a pipe may hold more that was left unread.
    pub(super) fn has_more(&self) -> bool {
        self.output.has_more || self.errors.has_more
    }

    /// Returns whether the encoded pages are written but for a few bytes.
    pub(super) fn takes_more(&self) -> bool {
        self.pages.len() - self.written < WRITE_BYTES
    }

    /// Encodes a page, to be written.
    pub(super) fn push(&mut self, page: &ScoreRequest) {
        #[derive(Serialize)]
        struct Page<'a> {
            id: u64,
            url: &'a str,
            r#type: &'a str,
            text: &'a str,
        }
        if self.written == self.pages.len() {
            self.pages.clear();
            self.written = 0;
        }
        let page =
            Page { id: page.id.0, url: &page.url, r#type: &page.media_type, text: &page.text };
        serde_json::to_writer(&mut self.pages, &page).expect("a vector takes every string");
        self.pages.push(b'\n');
    }

    /// Writes as much of the encoded pages as the pipe takes.
    pub(super) fn write(&mut self) -> Life {
        let Some(input) = &mut self.input else { return Life::Ends };
        while self.written < self.pages.len() {
            match input.write(&self.pages[self.written..]) {
                Ok(0) => return Life::Ends,
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Life::Ends,
            }
        }
        Life::GoesOn
    }

    /// Reads what the program has written: calls `take` with each line of its output, and logs its
    /// messages.
    pub(super) fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Life {
        let messages = &mut self.messages;
        let mut log = |line: &[u8]| {
            *messages += 1;
            if *messages <= MESSAGES_MAX {
                log::warn!("quality.command: {}", String::from_utf8_lossy(line));
            } else if *messages == MESSAGES_MAX + 1 {
                log::warn!("quality.command: further messages of the program are dropped");
            }
        };
        self.errors.read(&mut log);
        self.output.read(take)
    }

    /// Ends the program, all processes of its group. Returns its exit status in words.
    pub(super) fn end(&mut self) -> String {
        self.input = None;
        let pid = Pid::from_child(&self.child);
        // The process is not reaped before its group is killed: until then nobody else has its
        // number.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let since = Instant::now();
        while since.elapsed() < END_WAIT && matches!(waitid(WaitId::Pid(pid), look), Ok(None)) {
            thread::park_timeout(Duration::from_millis(2));
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let how = self.child.wait().map_or_else(|error| error.to_string(), |how| how.to_string());
        self.read(&mut |_| ());
        how
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// The lines that come out of a pipe.
struct Lines {
    pipe: Receiver,
    /// The beginning of a line whose end was not read yet.
    begun: Vec<u8>,
    /// Whether the pipe was left with bytes in it.
    has_more: bool,
}

impl Lines {
    fn new(pipe: Receiver) -> Self {
        Self { pipe, begun: Vec::new(), has_more: false }
    }

    /// Calls `take` with each whole line that can be read now. A line that is too long is cut.
    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Life {
        let mut buffer = [0; 16 << 10];
        let mut total = 0;
        self.has_more = false;
        loop {
            if total >= READ_BYTES_MAX {
                self.has_more = true;
                return Life::GoesOn;
            }
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Life::Ends,
                Ok(bytes) => {
                    total += bytes;
                    self.split(&buffer[..bytes], take);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Life::GoesOn,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Life::Ends,
            }
        }
    }

    fn split(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = LINE_BYTES_MAX - self.begun.len();
            self.begun.extend_from_slice(&text[..text.len().min(room)]);
            if is_whole {
                if !self.begun.trim_ascii().is_empty() {
                    take(self.begun.trim_ascii());
                }
                self.begun.clear();
            }
        }
    }
}
