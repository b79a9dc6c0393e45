//! The simulated side thread: it runs jobs one after the other, and each takes a fixed time.
//!
//! A job takes effect when it ends. Jobs that a crash leaves undone are returned to the caller of
//! [`super::World::exit`], who may run a part of them.

use super::agenda::Event;
use super::scene::Scene;
use crate::engine::contract::Job;
use crate::ground::time::Instant;
use std::time::Duration;

/// The simulated side thread of the crawler's process.
#[derive(Debug)]
pub(super) struct Worker {
    job_time: Duration,
    free: Instant,
}

impl Worker {
    pub(super) fn new(job_time: Duration) -> Self {
        Self { job_time, free: Instant::ZERO }
    }

    /// Makes the thread free at once, as that of a new process is: the old process has ended.
    pub(super) fn end(&mut self) {
        self.free = Instant::ZERO;
    }

    pub(super) fn start(&mut self, job: Job, scene: &mut Scene) {
        self.free = self.free.max(scene.now) + self.job_time;
        scene.agenda.at(self.free, Event::Works(Box::new(job)));
    }
}
