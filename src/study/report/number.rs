//! Formats numbers for people: grouped digits, shares, durations, bytes.
//!
//! Three significant digits where a unit is chosen by size, without trailing zeros. NaN is shown as
//! an en dash. Rounding carries into the next unit: 59.99 s is `1 min`.

/// The format of the values of an axis or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Whole numbers with commas: `30,000`.
    Count,
    /// Numbers with SI prefixes: `1.2 k`, `3.4 M`.
    Short,
    /// A fraction of 1 as per cent: 0.45 is `45%`.
    Share,
    /// As a power of two: 16,384 is `2^14`, 10,000 is `2^13.3`. Values must be above zero.
    Power,
    /// Numbers with this many decimals: `0.25`.
    Decimal(usize),
}

impl Format {
    /// Formats a single value that is not a tick of an axis.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Count => grouped(value, 0),
            Self::Short => short(value),
            Self::Share if value.is_finite() => format!("{}%", significant(value * 100.0)),
            Self::Share => grouped(value, 0),
            Self::Power => power(value),
            Self::Decimal(decimals) => grouped(value, decimals),
        }
    }

    /// Formats the value of a tick on an axis whose ticks are `step` apart.
    pub(super) fn tick(self, value: f64, step: f64) -> String {
        match self {
            Self::Count | Self::Decimal(_) => grouped(value, decimals(step)),
            Self::Share => format!("{}%", grouped(value * 100.0, decimals(step * 100.0))),
            Self::Short | Self::Power => self.text(value),
        }
    }

    /// Returns the format's name, by which the page's script formats values.
    pub(super) fn name(self) -> String {
        match self {
            Self::Count => "count".to_owned(),
            Self::Short => "short".to_owned(),
            Self::Share => "share".to_owned(),
            Self::Power => "power".to_owned(),
            Self::Decimal(decimals) => format!("decimal{decimals}"),
        }
    }
}

/// Formats a number with commas between thousands and this many decimals: `30,000.50`. From a
/// quadrillion on, the notation is scientific.
pub fn grouped(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::with_capacity(plain.len() + 8);
    if value < 0.0 && plain.contains(|digit| ('1'..='9').contains(&digit)) {
        text.push('-');
    }
    for (place, digit) in whole.char_indices() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// Formats a number with SI prefixes and three significant digits: `1.2 k`, `3.45 M`.
pub fn short(value: f64) -> String {
    scaled(value, 1000.0, &["", " k", " M", " G", " T"])
}

/// Formats a number of bytes by powers of 1024, with three significant digits: `512 B`, `1.5 MiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// Formats a number as a power of two whose exponent is rounded to a tenth.
fn power(value: f64) -> String {
    if !(value > 0.0 && value.is_finite()) {
        return grouped(value, 0);
    }
    // An exponent that is rounded to a whole number has no decimals; adding 0.0 turns -0 into 0.
    let tenths = (value.log2() * 10.0).round() + 0.0;
    format!("2^{}", tenths / 10.0)
}

/// Formats a fraction of 1 as per cent: `percent(0.4567, 1)` is `45.7%`.
pub fn percent(share: f64, decimals: usize) -> String {
    if !share.is_finite() {
        return grouped(share, 0);
    }
    format!("{}%", grouped(share * 100.0, decimals))
}

/// Formats a duration in its two largest units: `350 ms`, `42 s`, `3 min 20 s`, `1 h 02 min`, `2 d
/// 03 h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds.abs() >= 1e15 {
        return grouped(seconds, 0);
    }
    if seconds < 0.0 {
        return format!("-{}", duration(-seconds));
    }
    if seconds < 59.95 {
        return brief(seconds);
    }
    let whole = seconds.round();
    let (large, small, names, ratio) = if whole < 3_600.0 {
        ((whole / 60.0).floor(), whole % 60.0, ["min", "s"], 60.0)
    } else if (seconds / 60.0).round() < 1_440.0 {
        let minutes = (seconds / 60.0).round();
        ((minutes / 60.0).floor(), minutes % 60.0, ["h", "min"], 60.0)
    } else {
        let hours = (seconds / 3_600.0).round();
        ((hours / 24.0).floor(), hours % 24.0, ["d", "h"], 24.0)
    };
    debug_assert!(small < ratio, "{small} of {ratio}");
    let large = format!("{} {}", grouped(large, 0), names[0]);
    if small == 0.0 { large } else { format!("{large} {small:02.0} {}", names[1]) }
}

/// Formats a duration of less than a minute.
fn brief(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    for (unit, name) in [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")] {
        // A value that rounds up to a full unit is shown in that unit.
        if seconds >= unit * 0.9995 {
            return format!("{} {name}", significant((seconds / unit).max(1.0)));
        }
    }
    format!("{} ns", significant(seconds * 1e9))
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return grouped(value, 0);
    }
    let mut rest = value;
    let mut unit = 0;
    while rounded(rest).abs() >= base && unit + 1 < units.len() {
        rest /= base;
        unit += 1;
    }
    format!("{}{}", significant(rest), units[unit])
}

/// Rounds a number as [`significant`] shows it, as far as that may carry it into the next unit:
/// from 100 on to a whole number.
fn rounded(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { value }
}

/// Formats a number with three significant digits, without trailing zeros; from 100 on, with all
/// digits of its whole part.
fn significant(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 {
        return grouped(value, 0);
    }
    if size < 1e-6 {
        return format!("{value:.2e}");
    }
    let mut decimals = 1;
    let mut limit = 10.0;
    while size < limit {
        limit /= 10.0;
        decimals += 1;
    }
    let text = grouped(value, decimals);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the number of decimals needed to show values that are a multiple of `step`.
pub(super) fn decimals(step: f64) -> usize {
    let mut scaled = step.abs();
    for decimals in 0..12 {
        if (scaled - scaled.round()).abs() <= scaled * 1e-6 {
            return decimals;
        }
        scaled *= 10.0;
    }
    12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        for (text, expected) in [
            (grouped(0.0, 0), "0"),
            (grouped(-0.0, 0), "0"),
            (grouped(-0.001, 2), "0.00"), // no minus before nothing
            (grouped(999.0, 0), "999"),
            (grouped(30_000.0, 0), "30,000"),
            (grouped(-1_234_567.891, 2), "-1,234,567.89"),
            (grouped(2e18, 0), "2.00e18"),
            (grouped(f64::NAN, 0), "–"),
            (grouped(f64::NEG_INFINITY, 0), "-∞"),
            (short(0.0), "0"),
            (short(7.0), "7"),
            (short(999.4), "999"),
            (short(999.6), "1 k"), // not 1,000
            (short(1_200.0), "1.2 k"),
            (short(-12_345.0), "-12.3 k"),
            (short(3.4e6), "3.4 M"),
            (short(5e16), "50,000 T"),
            (short(0.001_234), "0.00123"),
            (bytes(0.0), "0 B"),
            (bytes(1_023.0), "1,023 B"),
            (bytes(1_024.0), "1 KiB"),
            (bytes(1_048_575.0), "1 MiB"), // not 1,024 KiB
            (bytes(1.5 * 1_048_576.0), "1.5 MiB"),
            (percent(0.45, 0), "45%"),
            (percent(0.4567, 1), "45.7%"),
            (percent(f64::NAN, 1), "–"),
            (Format::Share.text(0.45), "45%"),
            (Format::Share.text(0.000_12), "0.012%"),
            (Format::Decimal(2).text(0.256), "0.26"),
            (Format::Power.text(16_384.0), "2^14"),
            (Format::Power.text(10_000.0), "2^13.3"),
            (Format::Power.text(0.99), "2^0"),
            (Format::Power.text(0.0), "0"),
        ] {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, expected) in [
            (0.0, "0 s"),
            (12e-9, "12 ns"),
            (3.5e-6, "3.5 µs"),
            (0.000_999_9, "1 ms"),
            (0.35, "350 ms"),
            (0.9999, "1 s"),
            (1.25, "1.25 s"),
            (42.0, "42 s"),
            (59.96, "1 min"),
            (200.0, "3 min 20 s"),
            (3_599.7, "1 h"),
            (3_720.0, "1 h 02 min"),
            (86_399.0, "1 d"),
            (97_200.0, "1 d 03 h"),
            (-90.0, "-1 min 30 s"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn ticks_show_the_digits_that_their_step_needs() {
        for (format, value, step, expected) in [
            (Format::Count, 0.4, 0.2, "0.4"),
            (Format::Count, 20_000.0, 10_000.0, "20,000"),
            (Format::Share, 0.2, 0.2, "20%"),
            (Format::Share, 0.125, 0.025, "12.5%"),
            (Format::Short, 1_500.0, 500.0, "1.5 k"),
        ] {
            assert_eq!(format.tick(value, step), expected, "{format:?} {value}");
        }
    }
}
