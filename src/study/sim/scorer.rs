//! The simulated program that scores pages: it answers after a drawn time, in any order, and errs.

use super::agenda::Event;
use super::draw::{Draw, Purpose};
use super::scene::Scene;
use super::settings::Scores;
use crate::engine::contract::{ScoreFailure, ScoreId, ScoreRequest, Scored};
use crate::ground::quality::Quality;
use std::fmt;
use std::time::Duration;

/// Returns the score of the page with this URL.
pub type Judgement = Box<dyn Fn(&str) -> Quality>;

/// The simulated program.
pub(super) struct Scorer {
    scores: Scores,
    seed: u64,
    judgement: Option<Judgement>,
}

impl fmt::Debug for Scorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scorer").field("scores", &self.scores).finish_non_exhaustive()
    }
}

impl Scorer {
    pub(super) fn new(scores: Scores, seed: u64) -> Self {
        Self { scores, seed, judgement: None }
    }

    /// Makes the program score pages by `judgement`. Without one, all pages have the quality one.
    pub(super) fn judge_by(&mut self, judgement: Judgement) {
        self.judgement = Some(judgement);
    }

    /// Schedules the answers to a page: mostly one.
    pub(super) fn score(&mut self, page: &ScoreRequest, scene: &mut Scene) {
        let number = u32::try_from(page.id.0).unwrap_or(u32::MAX);
        let mut draw = Draw::new(self.seed, Purpose::Score, number, 0);
        let scores = self.scores;
        let most_us = u64::try_from(scores.time.as_micros()).unwrap_or(u64::MAX);
        let mut time = Duration::from_micros(draw.below(most_us.saturating_add(1)));
        if draw.chance(scores.late) {
            time += scores.late_time;
        }
        let at = scene.now + time;
        if draw.chance(scores.odd) {
            let odd = Scored { id: None, quality: Err(ScoreFailure::Invalid) };
            scene.agenda.at(at, Event::Scored(Box::new(odd)));
            // An answer to a page that was never asked about.
            let id = Some(ScoreId(page.id.0 + 1_000_000));
            let other = Scored { id, quality: Ok(Quality::MAX) };
            scene.agenda.at(at, Event::Scored(Box::new(other)));
        }
        if draw.chance(scores.never) {
            return;
        }
        let failure = if draw.chance(0.5) { ScoreFailure::Invalid } else { ScoreFailure::Ended };
        let quality = match draw.chance(scores.failed) {
            true => Err(failure),
            false => Ok(self.judgement.as_ref().map_or(Quality::ONE, |of| of(&page.url))),
        };
        let answer = Scored { id: Some(page.id), quality };
        scene.agenda.at(at, Event::Scored(Box::new(answer)));
    }
}
