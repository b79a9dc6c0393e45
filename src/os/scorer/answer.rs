//! Parses the answers of the program that scores pages.

use crate::engine::contract::{ScoreFailure, ScoreId, Scored};
use crate::ground::quality::Quality;
use serde::Deserialize;
use serde_json::Value;

/// The most mistakes that are shown.
const SHOWN_MAX: u32 = 10;
/// The most characters of a line that are shown.
const CHARS_MAX: usize = 200;

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    count: u32,
}

impl Mistakes {
    fn note(&mut self, line: &[u8], why: &str) {
        self.count = self.count.saturating_add(1);
        if self.count <= SHOWN_MAX {
            let text: String = String::from_utf8_lossy(line).chars().take(CHARS_MAX).collect();
            log::warn!(
                "quality.command: {text:?} is no answer: {why}; it should be like \
                 {{\"id\": 7, \"quality\": 1.25}}"
            );
        }
        if self.count == SHOWN_MAX {
            log::warn!("quality.command: further mistakes are only counted");
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    id: u64,
    quality: Value,
}

/// Parses a line of the program's output. One that is no answer to a page is noted in `mistakes`.
pub(super) fn read(line: &[u8], mistakes: &mut Mistakes) -> Scored {
    let answer: Answer = match serde_json::from_slice(line) {
        Ok(answer) => answer,
        Err(error) => {
            mistakes.note(line, &error.to_string());
            return Scored { id: None, quality: Err(ScoreFailure::Invalid) };
        }
    };
    let quality = match answer.quality.as_f64().map(Quality::from_f64) {
        Some(Ok(quality)) => Ok(quality),
        Some(Err(why)) => {
            mistakes.note(line, &format!("the quality is {why}"));
            Err(ScoreFailure::Invalid)
        }
        None => {
            mistakes.note(line, "the quality is not a number");
            Err(ScoreFailure::Invalid)
        }
    };
    Scored { id: Some(ScoreId(answer.id)), quality }
}
