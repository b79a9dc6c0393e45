//! What every part of the world has at hand while something happens: the time, the agenda, the
//! account and the observer.

use super::Figures;
use super::agenda::Agenda;
use super::sight::{Eye, Sight};
use crate::ground::time::Instant;
use std::fmt;

/// Time, agenda, account, observer.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) now: Instant,
    pub(super) agenda: Agenda,
    pub(super) figures: Figures,
    pub(super) eye: Option<Eye>,
}

impl Scene {
    /// Shows the observer something; it is only made if there is one.
    pub(super) fn show(&mut self, sight: impl FnOnce() -> Sight) {
        if let Some(eye) = &mut self.eye {
            eye(self.now, &sight());
        }
    }
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("now", &self.now).finish_non_exhaustive()
    }
}
