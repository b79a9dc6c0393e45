//! The mistakes of a configuration file, each with its line, its key and a fix.
//!
//! All mistakes of a file are reported at once, in the order of its lines.

use std::fmt;

/// The most mistakes that are reported. A file with more is probably not a configuration.
pub(super) const MISTAKES_MAX: usize = 100;

/// Where a mistake is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In this line of the file, counted from 1.
    Line(usize),
    /// In an argument of the command line, like `--set politeness.delay`.
    Argument(String),
    /// Nowhere: something is missing.
    Nowhere,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where the mistake is.
    pub place: Place,
    /// The section and key, like `politeness.delay`; empty if the text is not TOML.
    pub key: String,
    /// The refused value, why it is refused, and a fix.
    pub text: String,
}

/// All mistakes of one file; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The name of the configuration file, as the operator gave it.
    pub file: String,
    /// The mistakes in order of line, then those of the command line, then what is missing; only
    /// the first hundred if there are more.
    pub list: Vec<Mistake>,
}

/// Returns whether there are [`MISTAKES_MAX`] mistakes, so that looking for more can stop. Each one
/// takes a search in the file.
pub(super) fn suffice(mistakes: &[Mistake]) -> bool {
    mistakes.len() > MISTAKES_MAX
}

/// Returns the line of the byte at `offset`, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

impl Mistakes {
    /// Creates the list of the mistakes of `file`, sorted by line and cut to the most that are
    /// reported.
    pub(super) fn new(file: &str, mut list: Vec<Mistake>) -> Self {
        assert!(!list.is_empty(), "a list of mistakes is not empty");
        list.sort_by(|a, b| a.place.cmp(&b.place));
        if suffice(&list) {
            list.truncate(MISTAKES_MAX);
            let text = format!("there are more; only the first {MISTAKES_MAX} are shown");
            list.push(Mistake { place: Place::Nowhere, key: String::new(), text });
        }
        Self { file: file.to_owned(), list }
    }
}

/// Formats one line per mistake: `conf/x.toml:12: politeness.delay: "1" has no unit; ...`. A
/// mistake of the command line has its argument in place of file, line and key.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match &mistake.place {
                Place::Line(line) => write!(f, "{}:{line}", self.file)?,
                Place::Argument(argument) => f.write_str(argument)?,
                Place::Nowhere => f.write_str(&self.file)?,
            }
            if !mistake.key.is_empty() && !matches!(mistake.place, Place::Argument(_)) {
                write!(f, ": {}", mistake.key)?;
            }
            write!(f, ": {}", mistake.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Returns the known name nearest to `typed`; `None` if none is near enough. A name is near enough
/// if at most two letters, or a third of the letters, differ, if `typed` has the same words in any
/// order, or if `typed` is a prefix of it.
pub(super) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (remoteness(typed, name), name))
        .filter(|(far, name)| *far <= (name.len() / 3).max(2) && *far < name.len())
        .min()
        .map(|(_, name)| name)
}

/// Returns how far `typed` is from `name`, counted in letters. The distance is reduced if `typed`
/// is a prefix (`dir` for `directory`), or if it has the first word of `name` and all its words are
/// words of `name` (`max_depth`, `pages` for `pages_max`).
pub(super) fn remoteness(typed: &str, name: &str) -> usize {
    const BEGINNING_MIN: usize = 3;
    let words = |text| str::split(text, ['_', '.']);
    let has_all = words(typed).all(|word| words(name).any(|other| word == other));
    let has_first = words(typed).any(|word| name.split(['_', '.']).next() == Some(word));
    let mut far = distance(typed, name);
    if has_all && has_first {
        far = far.min(1 + words(name).count().saturating_sub(words(typed).count()));
    }
    if typed.len() >= BEGINNING_MIN && name.starts_with(typed) {
        far = far.min(2);
    }
    far
}

/// Returns the edit distance: the number of letters to insert, delete, replace, or swap with a
/// neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) =
        (from.chars().take(100).collect(), to.chars().collect());
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut next = vec![i + 1];
        for j in 0..to.len() {
            let replaced = row[j] + usize::from(from[i] != to[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                least = least.min(above[j - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names() {
        let known = ["delay", "delay_max", "delay_factor", "robots", "body_bytes_max", "directory"];
        for (typed, expected, why) in [
            ("dealy", Some("delay"), "two letters swapped"),
            ("delya_max", Some("delay_max"), "the longer name is nearer"),
            ("robot", Some("robots"), "a letter left out"),
            ("Robots", Some("robots"), "a capital letter"),
            ("max_delay_of_all", None, "too far from anything"),
            ("max_delay", Some("delay_max"), "words swapped"),
            ("max_body", Some("body_bytes_max"), "a word left out"),
            ("bod", Some("body_bytes_max"), "a beginning"),
            ("dir", Some("directory"), "shortened"),
            ("max", None, "a word that many have"),
            ("x", None, "too short to be near anything"),
            ("", None, "nothing typed"),
        ] {
            assert_eq!(nearest(typed, known), expected, "{typed}: {why}");
        }
    }

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "abc", 3), ("abc", "", 3), ("abc", "acb", 1), ("ca", "abc", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn display_names_file_line_key() {
        let mistake = |place, key: &str| Mistake { place, key: key.into(), text: "wrong".into() };
        let list = vec![
            mistake(Place::Nowhere, "a.b"),
            mistake(Place::Argument("--set e.f".into()), "e.f"),
            mistake(Place::Line(7), ""),
            mistake(Place::Line(3), "c.d"),
        ];
        let text = Mistakes::new("x.toml", list).to_string();
        let expected =
            "x.toml:3: c.d: wrong\nx.toml:7: wrong\n--set e.f: wrong\nx.toml: a.b: wrong";
        assert_eq!(text, expected);
    }
}
