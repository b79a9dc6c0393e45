//! Parses and prints values with units.
//!
//! Laws: [`show_time`], [`show_size`] and the `Display` of [`Cost`] and [`Decimal`] print text that
//! parses as the same value; nothing overflows silently. Errors say what to write instead.
//! Durations have the units `us`, `ms`, `s`, `m`, `h`, `d` and a resolution of a microsecond; sizes
//! have `B`, `KiB` to `TiB` (powers of 1,024) and `KB` to `TB` (powers of 1,000); CPU costs have
//! `ps`, `ns`, `us`, `ms`, `s`.

use std::fmt;
use std::time::Duration;

/// Units of time in microseconds, the largest first.
const TIME_UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Units of size in bytes, the largest first.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Units of CPU time in picoseconds, the largest first.
const COST_UNITS: [(&str, u64); 5] =
    [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];

/// Parses a duration such as `10s`, `500ms` or `1.5h`.
///
/// # Errors
/// The text is no duration: what to write instead.
pub fn read_time(text: &str) -> Result<Duration, String> {
    match read_with_unit(text, &TIME_UNITS) {
        Ok(us) => Ok(Duration::from_micros(us)),
        // The intended unit is unknown; seconds are most likely.
        Err(Bad::NoUnit(number)) => {
            let us = read_with_unit(&format!("{number}s"), &TIME_UNITS).unwrap_or(0);
            let ms = if us.is_multiple_of(1_000) { us / 1_000 } else { 0 };
            let other = if ms > 0 { format!(" or \"{ms}ms\"") } else { String::new() };
            Err(format!("{text:?} has no unit; write \"{number}s\"{other} (us, ms, s, m, h, d)"))
        }
        Err(Bad::Unit(unit)) => {
            Err(format!("{text:?}: no unit {unit:?}; the units are us, ms, s, m, h and d"))
        }
        Err(Bad::Number) => Err(format!("{text:?} is not a duration; write it like \"10s\"")),
        Err(Bad::TooFine) => Err(format!("{text:?} is finer than a microsecond")),
        Err(Bad::TooLarge) => Err(format!("{text:?} is longer than any duration")),
    }
}

/// Parses a size such as `64KiB`, `1GB`, `1.5MiB` or `512B`. Returns the number of bytes.
pub(super) fn read_size(text: &str) -> Result<u64, String> {
    read_with_unit(text, &SIZE_UNITS).map_err(|bad| match bad {
        Bad::NoUnit(number) => format!(
            "{text:?} has no unit; write \"{number}B\" or \"{number}KiB\" \
             (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB)"
        ),
        Bad::Unit(unit) => format!(
            "{text:?}: no unit {unit:?}; the units are B, KiB, MiB, GiB, TiB, KB, MB, GB and TB"
        ),
        Bad::Number => format!("{text:?} is not a size; write it like \"2MiB\""),
        Bad::TooFine => format!("{text:?} is not a whole number of bytes"),
        Bad::TooLarge => format!("{text:?} is larger than any size"),
    })
}

/// Prints a duration, truncated to microseconds, in the largest unit in which it is a whole number.
pub(super) fn show_time(time: Duration) -> String {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if us == 0 { "0s".to_owned() } else { show_with_unit(us, &TIME_UNITS) }
}

/// Prints a size in the largest unit in which it is a whole number.
pub(super) fn show_size(bytes: u64) -> String {
    if bytes == 0 { "0B".to_owned() } else { show_with_unit(bytes, &SIZE_UNITS) }
}

/// Why a number with a unit is not valid.
enum Bad<'a> {
    NoUnit(&'a str),
    Unit(&'a str),
    Number,
    TooFine,
    TooLarge,
}

fn read_with_unit<'a>(text: &'a str, units: &[(&str, u64)]) -> Result<u64, Bad<'a>> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(Bad::Number);
    }
    if unit.is_empty() {
        return Err(Bad::NoUnit(number));
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(Bad::Unit(unit));
    };
    let whole: u64 = whole.parse().map_err(|_| Bad::TooLarge)?;
    let part = read_fraction(fraction.trim_end_matches('0'), scale)?;
    whole.checked_mul(scale).and_then(|sum| sum.checked_add(part)).ok_or(Bad::TooLarge)
}

/// Returns `0.digits` times `scale`. The result must be a whole number, otherwise it is an error.
fn read_fraction<'a>(digits: &str, scale: u64) -> Result<u64, Bad<'a>> {
    if digits.is_empty() {
        return Ok(0);
    }
    // Twelve digits are enough for any whole number of the finest unit, and keep the product small.
    let power = u32::try_from(digits.len()).ok().filter(|&n| n <= 12).ok_or(Bad::TooFine)?;
    let value: u128 = digits.parse().map_err(|_| Bad::Number)?;
    let (product, base) = (value * u128::from(scale), 10_u128.pow(power));
    if product % base != 0 {
        return Err(Bad::TooFine);
    }
    u64::try_from(product / base).map_err(|_| Bad::TooLarge)
}

fn show_with_unit(value: u64, units: &[(&str, u64)]) -> String {
    let &(name, scale) = units
        .iter()
        .find(|(_, scale)| value.is_multiple_of(*scale))
        .expect("the last unit is one and divides everything");
    format!("{}{name}", value / scale)
}

/// Quotes a text as a TOML string on one line.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// The CPU time of a small operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    picoseconds: u64,
}

impl Cost {
    /// Creates a cost from picoseconds.
    pub const fn from_picoseconds(picoseconds: u64) -> Self {
        Self { picoseconds }
    }

    /// Returns the cost in picoseconds.
    pub const fn picoseconds(self) -> u64 {
        self.picoseconds
    }

    /// Returns the cost in nanoseconds, rounded up.
    pub const fn nanoseconds(self) -> u64 {
        self.picoseconds.div_ceil(1_000)
    }

    /// Parses a CPU time such as `3ms` or `350ns`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let units = "ps, ns, us, ms and s";
        let read = read_with_unit(text, &COST_UNITS).map_err(|bad| match bad {
            Bad::NoUnit(number) => {
                format!("{text:?} has no unit; write \"{number}us\" or \"{number}ns\" ({units})")
            }
            Bad::Unit(unit) => format!("{text:?}: no unit {unit:?}; the units are {units}"),
            Bad::Number => format!("{text:?} is not a duration; write it like \"350ns\""),
            Bad::TooFine => format!("{text:?} is finer than a picosecond"),
            Bad::TooLarge => format!("{text:?} is longer than any cost"),
        });
        read.map(Self::from_picoseconds)
    }
}

/// Prints the cost in the largest unit in which it is a whole number.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.picoseconds {
            0 => f.write_str("0ns"),
            picoseconds => f.write_str(&show_with_unit(picoseconds, &COST_UNITS)),
        }
    }
}

/// An exact number with up to three decimals: a factor or a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    thousandths: u32,
}

impl Decimal {
    /// Creates the number `thousandths / 1000`.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self { thousandths }
    }

    /// Returns the number times 1,000, exactly.
    pub const fn thousandths(self) -> u32 {
        self.thousandths
    }

    /// Returns the number, rounded to a float. It is used for synthetic webs and for printing,
    /// never for decisions of a crawl.
    pub fn as_f64(self) -> f64 {
        f64::from(self.thousandths) / 1_000.0
    }

    /// Parses a number such as `10` or `0.25`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(format!("{text} is not a plain decimal number; write it like 2.5"));
        }
        if fraction.trim_end_matches('0').len() > 3 {
            return Err(format!("{text} has more than three decimals"));
        }
        let fraction = format!("{fraction:0<3}");
        let thousandths = whole
            .parse::<u32>()
            .ok()
            .and_then(|whole| whole.checked_mul(1_000))
            .zip(fraction[..3].parse::<u32>().ok())
            .and_then(|(whole, part)| whole.checked_add(part));
        thousandths.map(Self::from_thousandths).ok_or_else(|| format!("{text} is too large"))
    }
}

/// Creates the number `count / 1000`.
pub(super) const fn thousandths(count: u32) -> Decimal {
    Decimal::from_thousandths(count)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.thousandths / 1_000, self.thousandths % 1_000);
        let text = format!("{whole}.{part:03}");
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// An exact correlation: a number from -1 to 1 with up to three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Correlation {
    thousandths: i32,
}

impl Correlation {
    /// The correlation of what is opposite.
    pub const LEAST: Self = Self { thousandths: -1_000 };
    /// The correlation of what is alike.
    pub const MOST: Self = Self { thousandths: 1_000 };

    /// Returns the number times 1,000, exactly.
    pub const fn thousandths(self) -> i32 {
        self.thousandths
    }

    /// Returns the number, rounded to a float.
    pub fn as_f64(self) -> f64 {
        f64::from(self.thousandths) / 1_000.0
    }

    /// Parses a number such as `-0.25`, of any size.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let thousandths = i32::try_from(Decimal::read(digits)?.thousandths());
        let thousandths = thousandths.map_err(|_| format!("{text} is too large"))?;
        Ok(Self { thousandths: sign * thousandths })
    }
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.thousandths < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Decimal::from_thousandths(self.thousandths.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    #[test]
    fn times_are_read() {
        let cases: &[(&str, Result<u64, &str>, &str)] = &[
            ("10s", Ok(10_000_000), "whole seconds"),
            ("500ms", Ok(500_000), "whole milliseconds"),
            ("5m", Ok(300_000_000), "m is minutes"),
            ("24h", Ok(86_400_000_000), "hours"),
            ("30d", Ok(2_592_000_000_000), "days"),
            ("7us", Ok(7), "the finest unit"),
            ("0s", Ok(0), "zero needs a unit too"),
            ("1.5s", Ok(1_500_000), "decimals"),
            ("0.000001s", Ok(1), "decimals down to the microsecond"),
            ("1.50000000000000000000s", Ok(1_500_000), "zeros at the end don't count"),
            ("10 s", Ok(10_000_000), "one space is harmless"),
            ("1", Err("write \"1s\" or \"1000ms\" ("), "no unit: say what to write"),
            ("1.5", Err("write \"1.5s\" or \"1500ms\" ("), "the same in the other unit"),
            ("0", Err("write \"0s\" ("), "zero in one unit is enough"),
            ("0.00001", Err("write \"0.00001s\" ("), "no whole number of milliseconds"),
            ("1x", Err("no unit \"x\""), "unknown unit"),
            ("1M", Err("no unit \"M\""), "case matters"),
            ("", Err("not a duration"), "nothing"),
            ("s", Err("not a duration"), "no number"),
            ("-1s", Err("not a duration"), "negative"),
            ("1.s", Err("not a duration"), "no digit after the point"),
            (".5s", Err("not a duration"), "no digit before it"),
            ("1.2.3s", Err("not a duration"), "two points"),
            ("0.0000001s", Err("finer"), "below a microsecond"),
            ("213503983d", Err("longer"), "past 64 bits of microseconds"),
            ("99999999999999999999s", Err("longer"), "past 64 bits"),
        ];
        for (text, expected, why) in cases {
            let got = read_time(text).map(|time| time.as_micros() as u64);
            check(text, got, expected, why);
        }
    }

    #[test]
    fn sizes_are_read() {
        let cases: &[(&str, Result<u64, &str>, &str)] = &[
            ("512B", Ok(512), "bytes"),
            ("64KiB", Ok(65_536), "powers of 1,024"),
            ("2MiB", Ok(2 << 20), "powers of 1,024"),
            ("1GB", Ok(1_000_000_000), "powers of 1,000"),
            ("1.5KiB", Ok(1_536), "decimals that make whole bytes"),
            ("16TiB", Ok(16 << 40), "the largest unit"),
            ("1.0001KiB", Err("whole number"), "1,024.1024 bytes"),
            ("65536", Err("\"65536B\" or \"65536KiB\""), "no unit"),
            ("1kb", Err("no unit \"kb\""), "case matters: k and K differ elsewhere"),
            ("1G", Err("no unit \"G\""), "G says neither 1,000 nor 1,024"),
            ("16777216TiB", Err("larger"), "2^64 bytes"),
        ];
        for (text, expected, why) in cases {
            check(text, read_size(text), expected, why);
        }
    }

    #[test]
    fn decimals_are_read() {
        let cases: &[(&str, Result<u64, &str>, &str)] = &[
            ("10", Ok(10_000), "a whole number"),
            ("2.5", Ok(2_500), "one decimal"),
            ("0.125", Ok(125), "three decimals"),
            ("1.0000", Ok(1_000), "zeros at the end don't count"),
            ("0.0001", Err("three decimals"), "finer than a thousandth"),
            ("1e3", Err("plain decimal"), "no exponents"),
            ("-1", Err("plain decimal"), "no signs"),
            ("inf", Err("plain decimal"), "TOML has it, we don't"),
            ("5000000", Err("too large"), "past 32 bits of thousandths"),
        ];
        for (text, expected, why) in cases {
            let got = Decimal::read(text).map(|decimal| u64::from(decimal.thousandths()));
            check(text, got, expected, why);
        }
    }

    #[test]
    fn costs_are_read() {
        let cases: &[(&str, Result<u64, &str>, &str)] = &[
            ("3ms", Ok(3_000_000_000), "what a reply cost in 2003"),
            ("350ns", Ok(350_000), "what a byte did"),
            ("0.35us", Ok(350_000), "the same"),
            ("1ps", Ok(1), "the finest unit"),
            ("0ns", Ok(0), "zero needs a unit too"),
            ("0.5ps", Err("finer"), "below it"),
            ("3", Err("write \"3us\" or \"3ns\""), "no unit"),
            ("1m", Err("no unit \"m\""), "minutes are no costs"),
            ("x", Err("not a duration"), "no number"),
            ("99999999s", Err("longer"), "past 64 bits"),
        ];
        for (text, expected, why) in cases {
            let got = Cost::read(text).map(Cost::picoseconds);
            check(text, got, expected, why);
        }
        assert_eq!(Cost::from_picoseconds(1_001).nanoseconds(), 2, "a part counts as a whole");
    }

    #[test]
    fn law_what_is_shown_reads_back() {
        let mut random = Random(1);
        let mut next = || {
            let state = random.word();
            state >> 11 >> (state >> 58 & 31)
        };
        for _ in 0..20_000 {
            let (us, bytes, thousandths) = (next(), next(), next() as u32);
            let time = Duration::from_micros(us);
            assert_eq!(read_time(&show_time(time)), Ok(time));
            assert_eq!(read_size(&show_size(bytes)), Ok(bytes));
            let round = next() % 10_000 * TIME_UNITS[next() as usize % 6].1;
            let time = Duration::from_micros(round);
            assert_eq!(read_time(&show_time(time)), Ok(time));
            let cost = Cost::from_picoseconds(us);
            assert_eq!(Cost::read(&cost.to_string()), Ok(cost));
            let sign = Correlation { thousandths: thousandths as i32 % 5_000 };
            assert_eq!(Correlation::read(&sign.to_string()), Ok(sign));
            let decimal = Decimal::from_thousandths(thousandths);
            assert_eq!(Decimal::read(&decimal.to_string()), Ok(decimal));
        }
    }

    fn check(text: &str, got: Result<u64, String>, expected: &Result<u64, &str>, why: &str) {
        match (&got, expected) {
            (Ok(value), Ok(right)) => assert_eq!(value, right, "{text}: {why}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {why}: {error}"),
            _ => panic!("{text}: {why}: got {got:?}, expected {expected:?}"),
        }
    }
}
