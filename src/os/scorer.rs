//! Runs the operator's program that scores pages, on a side thread.
//!
//! The program reads one JSON object a line from its standard input, and writes one a line to its
//! standard output, in any order:
//!
//! ```text
//! {"id":7,"url":"http://a.org/","type":"text/html","text":"<!DOCTYPE html>..."}
//! {"id":7,"quality":1.25}
//! ```
//!
//! Every other line is reported as a mistake. What it writes to its standard error goes to the log.
//!
//! Pages are written as they come, without waiting for answers: up to `IN_FLIGHT_MAX` that are
//! neither answered nor overdue. A page that has waited in vain for its time-out is not written any
//! more. If the program ends it is started again, each time after a longer wait. If it has ended
//! `STARTS_MAX` times without having lived for `LIFE_MIN`, each page is answered at once.
//!
//! Laws: a page is answered at most once. The program has no descriptors of the crawl but its three
//! pipes, and is not outlived by the scorer: it is in a process group of its own, which is killed
//! at the end.
//! Cost: two copies of a page's text; memory for pages that are younger than their time-out.

mod answer;
mod program;
#[cfg(test)]
mod tests;

use super::work::Mailbox;
use crate::engine::contract::{ScoreFailure, ScoreId, ScoreRequest, Scored};
use mio::{Events, Poll, Token, Waker};
use program::{Life, Program};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

/// Settings of the program.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long a page waits for its score.
    pub timeout: Duration,
}

/// The program could not be started.
#[derive(Debug)]
pub struct Error {
    /// The program, without its arguments.
    pub program: String,
    /// The error of the system.
    pub error: io::Error,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't start {:?}: {}", self.program, self.error)
    }
}

/// The maximum number of pages that the program has read, as far as this side knows, and has not
/// answered in time.
const IN_FLIGHT_MAX: usize = 256;
/// The number of starts of the program after which it is not started again.
const STARTS_MAX: u32 = 6;
/// How long the program must live for its earlier ends to be forgotten.
const LIFE_MIN: Duration = Duration::from_secs(60);
/// The wait before the program is started again for the first time; it doubles each time.
const RESTART_WAIT: Duration = Duration::from_secs(1);

/// The loop's side of the thread that runs the program.
pub struct Scorer {
    /// The queue of pages; `None` only while the scorer is being dropped.
    pages: Option<mpsc::Sender<Box<ScoreRequest>>>,
    waker: Arc<Waker>,
    thread: Option<thread::JoinHandle<()>>,
    answers: Arc<Mailbox<Scored>>,
    /// The answers that [`Self::drain`] hands out.
    collected: Vec<Scored>,
}

/// The tokens of the thread's poller.
const WAKER: Token = Token(0);

impl Scorer {
    /// Starts the program and the side thread, which uses `waker` to wake the loop.
    ///
    /// # Errors
    /// The program can't be started, or the system can't create a poller or a thread.
    pub fn start(settings: &Settings, waker: Arc<Waker>) -> Result<Self, Error> {
        let named = |error| Error { program: settings.command[0].clone(), error };
        let poll = Poll::new().map_err(named)?;
        let own_waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(named)?);
        let program = Program::start(&settings.command, poll.registry()).map_err(named)?;
        let answers = Arc::new(Mailbox::new(waker));
        let (pages, queue) = mpsc::channel();
        let side = Side {
            settings: settings.clone(),
            poll,
            queue,
            answers: Arc::clone(&answers),
            state: State::Running(Box::new(program)),
            starts: 1,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            mistakes: answer::Mistakes::default(),
        };
        let name = String::from("sted-score");
        let thread = thread::Builder::new().name(name).spawn(move || side.run()).map_err(named)?;
        Ok(Self {
            pages: Some(pages),
            waker: own_waker,
            thread: Some(thread),
            answers,
            collected: Vec::new(),
        })
    }

    /// Hands a page to the program.
    pub fn score(&mut self, page: Box<ScoreRequest>) {
        let pages = self.pages.as_ref().expect("it is there until the scorer is dropped");
        // If the thread has ended early, by a bug, pages are not answered and time out.
        if pages.send(page).is_ok() {
            self.wake();
        }
    }

    /// Calls `take` with each answer since the last call.
    pub fn drain(&mut self, take: impl FnMut(Scored)) {
        self.answers.collect(&mut self.collected);
        self.collected.drain(..).for_each(take);
    }

    /// Returns the CPU time of the side thread so far, in nanoseconds, without the program's.
    pub fn cpu_ns(&self) -> u64 {
        self.thread.as_ref().map_or(0, super::signal::cpu_of_ns)
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            log::error!("the loop can't wake the thread of quality.command: {error}");
        }
    }
}

impl Drop for Scorer {
    fn drop(&mut self) {
        self.pages = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// The side thread.
struct Side {
    settings: Settings,
    poll: Poll,
    queue: mpsc::Receiver<Box<ScoreRequest>>,
    answers: Arc<Mailbox<Scored>>,
    state: State,
    /// How often the program was started without living long.
    starts: u32,
    /// The pages that are not written yet, each with the time at which nobody waits for it.
    waiting: VecDeque<(Instant, Box<ScoreRequest>)>,
    /// The pages that are written and not answered.
    in_flight: VecDeque<(Instant, ScoreId)>,
    mistakes: answer::Mistakes,
}

enum State {
    Running(Box<Program>),
    /// The program has ended, and is started again at this time.
    Ended(Instant),
    /// The program is not started again.
    Gone,
}

impl Side {
    /// Runs until the queue of pages is closed.
    fn run(mut self) {
        let mut events = Events::with_capacity(8);
        let mut wait = None;
        loop {
            if let Err(error) = self.poll.poll(&mut events, wait)
                && error.kind() != io::ErrorKind::Interrupted
            {
                return log::error!("quality.command: waiting for the program: {error}");
            }
            loop {
                match self.queue.try_recv() {
                    Ok(page) => self.take(page),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            wait = self.turn(Instant::now());
        }
    }

    fn take(&mut self, page: Box<ScoreRequest>) {
        match self.state {
            State::Gone => self.answers.post(Scored::failed(page.id, ScoreFailure::Gone)),
            _ => self.waiting.push_back((Instant::now() + self.settings.timeout, page)),
        }
    }

    /// Reads and writes as much as the program's pipes allow. Returns how long to sleep at most;
    /// `None` if only an event has work for the thread.
    fn turn(&mut self, now: Instant) -> Option<Duration> {
        let is_over = |due: Instant| due <= now;
        while self.waiting.front().is_some_and(|(due, _)| is_over(*due)) {
            self.waiting.pop_front();
        }
        while self.in_flight.front().is_some_and(|(due, _)| is_over(*due)) {
            self.in_flight.pop_front();
        }
        match &self.state {
            State::Ended(until) if is_over(*until) => self.restart(now),
            State::Running(_) => self.exchange(now),
            _ => {}
        }
        let first = self.in_flight.front().map(|(due, _)| *due);
        // While the program may be given more, the next event is its own.
        let full = first.filter(|_| self.in_flight.len() >= IN_FLIGHT_MAX);
        let next = match &self.state {
            State::Running(program) if program.has_more() => Some(now),
            State::Running(_) => full,
            State::Ended(until) => Some(*until),
            State::Gone => None,
        };
        next.map(|next| next.saturating_duration_since(now))
    }

    fn exchange(&mut self, now: Instant) {
        let State::Running(program) = &mut self.state else { return };
        let (answers, in_flight) = (&self.answers, &mut self.in_flight);
        let mut life = program.read(&mut |line| {
            let answer = answer::read(line, &mut self.mistakes);
            if let Some(id) = answer.id {
                in_flight.retain(|(_, other)| *other != id);
            }
            answers.post(answer);
        });
        while life == Life::GoesOn
            && program.takes_more()
            && in_flight.len() < IN_FLIGHT_MAX
            && let Some((due, page)) = self.waiting.pop_front()
        {
            program.push(&page);
            in_flight.push_back((due, page.id));
            life = program.write();
        }
        if life == Life::GoesOn {
            life = program.write();
        }
        if life == Life::Ends {
            self.end(now);
        }
    }

    /// Handles the end of the program: pages that it has read are not answered any more.
    fn end(&mut self, now: Instant) {
        let State::Running(mut program) = std::mem::replace(&mut self.state, State::Gone) else {
            return;
        };
        let (how, lived) = (program.end(), program.lived(now));
        if lived >= LIFE_MIN {
            self.starts = 0;
        }
        for (_, id) in self.in_flight.drain(..) {
            self.answers.post(Scored::failed(id, ScoreFailure::Ended));
        }
        let name = &self.settings.command[0];
        if self.starts >= STARTS_MAX {
            log::warn!(
                "quality.command: {name} has ended again ({how}) and is not started any more: \
                 from now on links take over their page's estimate"
            );
            return self.give_up();
        }
        let wait = RESTART_WAIT * 2_u32.pow(self.starts.saturating_sub(1));
        log::warn!("quality.command: {name} has ended ({how}); it is started again in {wait:?}");
        self.state = State::Ended(now + wait);
    }

    fn restart(&mut self, now: Instant) {
        self.starts += 1;
        match Program::start(&self.settings.command, self.poll.registry()) {
            Ok(program) => {
                self.state = State::Running(Box::new(program));
                self.exchange(now);
            }
            Err(error) => {
                let name = &self.settings.command[0];
                log::warn!("quality.command: can't start {name} again: {error}");
                self.give_up();
            }
        }
    }

    fn give_up(&mut self) {
        self.state = State::Gone;
        for (_, page) in self.waiting.drain(..) {
            self.answers.post(Scored::failed(page.id, ScoreFailure::Gone));
        }
    }
}
