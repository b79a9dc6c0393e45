//! The simulated side threads: one runs the jobs that write to the archive, the other one all other
//! jobs. Each runs its jobs one after the other, and each job takes a fixed time.
//!
//! A job takes effect when it ends. Jobs that a crash leaves undone are returned to the caller of
//! [`super::World::exit`], who may run a part of them.

use super::agenda::Event;
use super::scene::Scene;
use crate::engine::contract::Job;
use crate::ground::time::Instant;
use std::time::Duration;

/// The simulated side threads of the crawler's process.
#[derive(Debug)]
pub(super) struct Worker {
    job_time: Duration,
    /// When each thread is free: that for most jobs, and that which writes to the archive.
    free: [Instant; 2],
}

impl Worker {
    pub(super) fn new(job_time: Duration) -> Self {
        Self { job_time, free: [Instant::ZERO; 2] }
    }

    /// Makes the threads free at once, as those of a new process are: the old process has ended.
    pub(super) fn end(&mut self) {
        self.free = [Instant::ZERO; 2];
    }

    pub(super) fn start(&mut self, job: Job, scene: &mut Scene) {
        let free = &mut self.free[usize::from(matches!(job, Job::Write(_)))];
        *free = scene.now.max(*free) + self.job_time;
        scene.agenda.at(*free, Event::Works(Box::new(job)));
    }
}
