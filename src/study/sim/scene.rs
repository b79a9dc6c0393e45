//! State that all parts of the simulated world share: time, future events, figures, observer.

use super::Figures;
use super::agenda::Agenda;
use super::observation::{Observation, Observer};
use crate::ground::time::Instant;
use std::fmt;

/// The shared state of a simulated world.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) now: Instant,
    pub(super) agenda: Agenda,
    pub(super) figures: Figures,
    pub(super) observer: Option<Observer>,
}

impl Scene {
    /// Reports the observation that `seen` makes to the observer; without an observer, `seen` is
    /// not called.
    pub(super) fn show(&mut self, seen: impl FnOnce() -> Observation) {
        if let Some(observer) = &mut self.observer {
            observer(self.now, &seen());
        }
    }
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("now", &self.now).finish_non_exhaustive()
    }
}
