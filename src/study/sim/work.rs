//! The side thread: jobs are done one after the other, each after its time.
//!
//! A job's effects come with its end. Jobs that a crash leaves undone are handed to whoever runs
//! the world, to be done in part.

use super::agenda::Event;
use super::scene::Scene;
use crate::engine::contract::Job;
use crate::ground::time::Instant;
use std::time::Duration;

/// The side thread.
#[derive(Debug)]
pub(super) struct Worker {
    job_time: Duration,
    free: Instant,
}

impl Worker {
    pub(super) fn new(job_time: Duration) -> Self {
        Self { job_time, free: Instant::ZERO }
    }

    /// Nobody has jobs for it any more.
    pub(super) fn end(&mut self) {
        self.free = Instant::ZERO;
    }

    pub(super) fn start(&mut self, job: Job, scene: &mut Scene) {
        self.free = self.free.max(scene.now) + self.job_time;
        scene.agenda.at(self.free, Event::Works(Box::new(job)));
    }
}
