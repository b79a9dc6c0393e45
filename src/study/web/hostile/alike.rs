//! Pages without end: the months of a calendar and a list of goods by all combinations of filters,
//! whose texts are nearly the same, a maze, all of whose pages have the same words, and babble,
//! whose pages have random words.

use crate::ground::random::Random;
use std::fmt::Write;

/// The words of the text that all pages of a host share, and how many there are of them.
const WORDS: [&str; 24] = [
    "harbour", "meeting", "garden", "open", "evening", "market", "river", "concert", "winter",
    "public", "library", "walk", "station", "bread", "music", "children", "street", "summer",
    "light", "museum", "paper", "north", "bridge", "letter",
];
const TEXT_WORDS: usize = 320;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the body of page number `index`, with links to these paths. `title` says what the host
/// shows.
pub(in super::super) fn body(title: &str, index: u32, links: &[String]) -> String {
    let (month, year) = (MONTHS[index as usize % MONTHS.len()], 1970 + index / 12);
    let month = if title.starts_with("maze") { "" } else { month };
    let mut body =
        format!("<!DOCTYPE html><title>{title}</title>\n<h1>{title} {month} {year}</h1>\n");
    for path in links {
        let _ = writeln!(body, "<a href=\"{path}\">{}</a>", path.len());
    }
    body.push_str("<p>");
    let is_babble = title.starts_with("babble");
    let mut random = Random(index.into());
    // Otherwise the same for all pages: a fixed walk through the words.
    let mut at = title.len();
    for _ in 0..TEXT_WORDS {
        at = if is_babble { random.below(8_191) } else { (at * 7 + 5) % 8_191 };
        let _ = write!(body, "{}{} ", WORDS[at % WORDS.len()], ["", "s", "ed"][at % 3]);
    }
    body.push_str("</p>\n");
    body
}
