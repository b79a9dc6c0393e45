//! Numbers, times and texts in the short forms that progress and status show.

use indicatif::HumanCount;
use std::time::Duration;

/// The columns of a terminal that a line of progress or status takes at most.
pub(super) const COLUMNS: usize = 80;

/// Formats a count in at most five columns, such as `12.3k`.
pub(super) fn short(count: u64) -> String {
    const UNITS: [&str; 5] = ["k", "M", "G", "T", "P"];
    if count < 10_000 {
        return count.to_string();
    }
    let mut value = count as f64;
    let mut unit = "";
    for larger in UNITS {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        unit = larger;
    }
    if value < 99.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// Formats a count with separators, such as `12,345`.
pub(super) fn count(count: u64) -> String {
    HumanCount(count).to_string()
}

/// Formats a rate per second: with a decimal if it is small.
pub(super) fn rate(per_second: f64) -> String {
    if per_second < 9.95 { format!("{per_second:.1}/s") } else { format!("{per_second:.0}/s") }
}

/// Formats a time in its two largest units, such as `2 h 5 min`.
pub(super) fn time(time: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = time.as_secs();
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (unit, name) in &UNITS[first..UNITS.len().min(first + 2)] {
        let number = left / unit;
        left %= unit;
        if number > 0 || parts.is_empty() {
            parts.push(format!("{number} {name}"));
        }
    }
    parts.join(" ")
}

/// Shortens a text to `columns` characters. What is left out is marked with `...`.
pub(super) fn clip(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(3)).collect();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_short() {
        let counts = [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (123_456, "123k"),
            (999_499, "999k"),
            (999_600, "1.0M"),
            (1_234_567_890, "1.2G"),
            (u64::MAX, "18447P"),
        ];
        for (number, expected) in counts {
            assert_eq!(short(number), expected);
        }
        let times = [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_725, "1 h 2 min")];
        for (seconds, expected) in times {
            assert_eq!(time(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(time(Duration::from_secs(90_000)), "1 d 1 h");
        assert_eq!((rate(0.12), rate(123.4)), ("0.1/s".to_owned(), "123/s".to_owned()));
        assert_eq!((clip("abcdef", 6), clip("abcdefg", 6)), ("abcdef".into(), "abc...".into()));
    }
}
