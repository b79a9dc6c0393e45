//! Runs jobs on a side thread, one after the other, so that they don't stall a turn.
//!
//! Promises: jobs run in the order in which they were started, and each is answered by one
//! [`Done`]. Dropping the worker runs the jobs left in the queue first. The thread and the event
//! loop share two queues and a waker. The loop is woken once for a batch of answers, not once for
//! each.
//!
//! A job that panics is a bug of the job: the panic is raised again in the loop, at the next call
//! of [`Worker::start`] or [`Worker::drain`].
//!
//! Cost: a send to start a job; a lock and a swap of two lists to collect all answers.

use std::io;
use std::mem;
use std::panic;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::engine::contract::{Done, Job};

/// The side thread that runs jobs, and the queues to it and back.
pub struct Worker {
    /// The queue of jobs; `None` only while the worker is being dropped.
    jobs: Option<mpsc::Sender<Job>>,
    /// The side thread; `None` once it was joined.
    thread: Option<thread::JoinHandle<()>>,
    done: Arc<Mailbox<Done>>,
    /// The answers that [`Self::drain`] hands out; the list is swapped with the mailbox's to avoid
    /// allocations.
    collected: Vec<Done>,
    in_flight: usize,
}

impl Worker {
    /// Starts the side thread `name`, which uses `waker` to wake the loop.
    ///
    /// # Errors
    /// The system can't create a thread.
    pub fn new(name: &str, waker: Arc<mio::Waker>) -> io::Result<Self> {
        let done = Arc::new(Mailbox::new(waker));
        let (jobs, queue) = mpsc::channel();
        let answers = Arc::clone(&done);
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || work(&queue, &answers))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            done,
            collected: Vec::new(),
            in_flight: 0,
        })
    }

    /// Appends `job` to the queue.
    pub fn start(&mut self, job: Job) {
        let jobs = self.jobs.as_ref().expect("jobs are there until the worker is dropped");
        let sent = jobs.send(job).is_ok();
        if !sent {
            self.raise_panic();
        }
        self.in_flight += 1;
    }

    /// Calls `take` with the result of each job that has ended since the last call. Call it after
    /// the waker has fired.
    pub fn drain(&mut self, mut take: impl FnMut(Done)) {
        self.done.collect(&mut self.collected);
        self.in_flight -= self.collected.len();
        self.collected.drain(..).for_each(&mut take);
        if self.thread.as_ref().is_some_and(thread::JoinHandle::is_finished) {
            self.raise_panic();
        }
    }

    /// Returns the number of jobs started and not yet drained.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the CPU time of the side thread so far, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.thread.as_ref().map_or(0, super::signal::cpu_of_ns)
    }

    /// Joins the side thread after it ended early, and raises its panic here: a panic is the only
    /// reason for an early end.
    fn raise_panic(&mut self) {
        let thread = self.thread.take().expect("the thread is joined once");
        let fate = thread.join();
        panic::resume_unwind(fate.expect_err("the thread works as long as there may be jobs"));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The thread's panic has been printed, and a second one during unwinding would abort.
            let _ = thread.join();
        }
    }
}

fn work(queue: &mpsc::Receiver<Job>, answers: &Mailbox<Done>) {
    let alarm = Alarm(answers);
    for job in queue {
        answers.post(job.run());
    }
    mem::forget(alarm);
}

/// A guard on the side thread that wakes the loop if the thread unwinds, so that the panic is
/// noticed.
struct Alarm<'a>(&'a Mailbox<Done>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// A queue of messages from a side thread to the loop.
///
/// Law: the loop is woken when a message enters the empty queue, and not again until it has
/// collected the messages. So no message stays in the queue unnoticed.
pub(super) struct Mailbox<T> {
    messages: Mutex<Vec<T>>,
    waker: Arc<mio::Waker>,
}

impl<T> Mailbox<T> {
    pub(super) fn new(waker: Arc<mio::Waker>) -> Self {
        Self { messages: Mutex::new(Vec::new()), waker }
    }

    /// Adds a message, and wakes the loop if it is the first of its batch. Never panics.
    pub(super) fn post(&self, message: T) {
        if self.add(message) {
            self.wake();
        }
    }

    /// Moves all messages into `into`, which must be empty: the lists are swapped.
    pub(super) fn collect(&self, into: &mut Vec<T>) {
        assert!(into.is_empty(), "messages collected before were read");
        mem::swap(&mut *self.lock(), into);
    }

    /// Adds a message. Returns whether it is the first message since the last [`Self::collect`].
    fn add(&self, message: T) -> bool {
        let mut messages = self.lock();
        messages.push(message);
        messages.len() == 1
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            log::error!("a side thread can't wake the loop: {error}");
        }
    }

    /// Locks the list of messages. The list is valid between any two statements, so a poisoned lock
    /// can be used.
    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::StoreJob;
    use crate::ground::disk::{Disk, Error};
    use std::time::Duration;

    const WAKE: mio::Token = mio::Token(7);

    fn poll_and_waker() -> (mio::Poll, Arc<mio::Waker>) {
        let poll = mio::Poll::new().unwrap();
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE).unwrap());
        (poll, waker)
    }

    /// A disk that can only sync; it takes its time, and panics on `bomb`.
    struct Slow(Arc<Mutex<Vec<String>>>);

    impl Disk for Slow {
        fn sync(&mut self, name: &str) -> Result<(), Error> {
            assert_ne!(name, "bomb");
            thread::park_timeout(Duration::from_millis(1));
            self.0.lock().unwrap().push(name.to_owned());
            Ok(())
        }
        fn append(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
            unreachable!()
        }
        fn read_at(&mut self, _: &str, _: u64, _: &mut [u8]) -> Result<usize, Error> {
            unreachable!()
        }
        fn len(&mut self, _: &str) -> Result<Option<u64>, Error> {
            unreachable!()
        }
        fn truncate(&mut self, _: &str, _: u64) -> Result<(), Error> {
            unreachable!()
        }
        fn rename(&mut self, _: &str, _: &str) -> Result<(), Error> {
            unreachable!()
        }
        fn remove(&mut self, _: &str) -> Result<(), Error> {
            unreachable!()
        }
        fn list(&mut self, _: &str) -> Result<Vec<String>, Error> {
            unreachable!()
        }
        fn handle(&self) -> Box<dyn Disk> {
            Box::new(Self(Arc::clone(&self.0)))
        }
    }

    fn job(disk: &Slow, ticket: u64, file: &str) -> Job {
        let disk = disk.handle();
        Job::Store(StoreJob { disk, files: vec![file.to_owned()], full: Vec::new(), ticket })
    }

    fn ticket(done: &Done) -> u64 {
        let Done::Store(done) = done else { panic!("no job of the archive: {done:?}") };
        done.ticket
    }

    #[test]
    fn jobs_are_answered_in_order_after_a_wake() {
        let (mut poll, waker) = poll_and_waker();
        let disk = Slow(Arc::default());
        let mut worker = Worker::new("test", waker).unwrap();
        (0..20).for_each(|at| worker.start(job(&disk, at, &at.to_string())));
        let mut tickets = Vec::new();
        let mut events = mio::Events::with_capacity(8);
        while worker.in_flight() > 0 {
            poll.poll(&mut events, Some(Duration::from_secs(5))).unwrap();
            assert!(!events.is_empty(), "answers came without a wake");
            worker.drain(|done| tickets.push(ticket(&done)));
        }
        assert_eq!(tickets, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn dropping_finishes_the_queue() {
        let (_poll, waker) = poll_and_waker();
        let disk = Slow(Arc::default());
        let mut worker = Worker::new("test", waker).unwrap();
        (0..20).for_each(|at| worker.start(job(&disk, at, &at.to_string())));
        drop(worker);
        assert_eq!(disk.0.lock().unwrap().len(), 20);
    }

    #[test]
    fn a_panic_of_a_job_goes_on_in_the_loop() {
        let (mut poll, waker) = poll_and_waker();
        let disk = Slow(Arc::default());
        let mut worker = Worker::new("test", waker).unwrap();
        worker.start(job(&disk, 0, "bomb"));
        let mut events = mio::Events::with_capacity(8);
        poll.poll(&mut events, Some(Duration::from_secs(5))).unwrap();
        assert!(!events.is_empty(), "the loop was not woken");
        let fate = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            // The wake precedes the end of the thread by a moment.
            for _ in 0..5_000 {
                worker.drain(|_| ());
                thread::park_timeout(Duration::from_millis(1));
            }
        }));
        assert!(fate.is_err());
    }

    /// Law: one wake for a batch, and another one after it was collected.
    #[test]
    fn the_first_message_of_a_batch_wakes() {
        let (_poll, waker) = poll_and_waker();
        let mailbox = Mailbox::new(waker);
        let mut messages = Vec::new();
        for batch in 0..3 {
            let woken: Vec<bool> = (0..4).map(|at| mailbox.add(batch * 4 + at)).collect();
            assert_eq!(woken, [true, false, false, false]);
            mailbox.collect(&mut messages);
            assert_eq!(messages, (batch * 4..batch * 4 + 4).collect::<Vec<_>>());
            messages.clear();
        }
    }
}
