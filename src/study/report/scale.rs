//! Axes: the values they span, the position of a value, and round ticks.
//!
//! Ticks are 1, 2 or 5 times a power of ten, except for durations (15 s, 30 min, 6 h...) and bytes
//! (powers of two). A logarithmic axis has the powers of its base, or 1-2-5 if it spans less than
//! three of them. Laws, tested: ticks ascend, lie within the span and have different labels.

use super::number::{Format, decimals, grouped};

/// How values become distances along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    Linear,
    /// Equal distances for factors of two. Values that aren't positive are not drawn.
    Log2,
    /// Equal distances for factors of ten. Values that aren't positive are not drawn.
    Log10,
}

/// One axis of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit if the format doesn't show it.
    pub label: String,
    /// How values become distances along the axis.
    pub scale: Scale,
    /// The format of the axis's values.
    pub format: Format,
    /// The first and the last value that the axis shows. `None`: as the points need; from 0 on, if
    /// they come near 0.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// Creates a linear axis that fits its points.
    pub fn linear(label: &str, format: Format) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, format, range: None }
    }

    /// Creates a logarithmic axis of base 2 that fits its points.
    pub fn log2(label: &str, format: Format) -> Self {
        Self { scale: Scale::Log2, ..Self::linear(label, format) }
    }

    /// Creates a logarithmic axis of base 10 that fits its points.
    pub fn log10(label: &str, format: Format) -> Self {
        Self { scale: Scale::Log10, ..Self::linear(label, format) }
    }
}

/// The largest value that is drawn: larger ones would overflow when differences are computed.
const VALUE_MAX: f64 = 1e300;
/// The least relative difference of two values that can be distinguished on an axis.
const PRECISION: f64 = 1e-11;
/// The largest distance of a position from the axis's start, as a multiple of the axis's length:
/// drawing programs can't handle more.
const SHARE_MAX: f64 = 1e4;

/// The range of values that an axis shows: from `low` to `high`, where `low < high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A tick: a value of an axis, with its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Scale {
    /// Whether a value has a position on an axis of this scale.
    pub(super) fn draws(self, value: f64) -> bool {
        (self.least()..=VALUE_MAX).contains(&value)
    }

    fn least(self) -> f64 {
        if self == Self::Linear { -VALUE_MAX } else { 1.0 / VALUE_MAX }
    }

    /// Returns the scale's name for the page's script.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log2 | Self::Log10 => "log",
        }
    }

    fn forth(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }
}

impl Span {
    /// Returns the span of `axis` that includes `values`.
    pub(super) fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let scale = axis.scale;
        if let Some((low, high)) = axis.range
            && scale.draws(low)
            && scale.draws(high)
        {
            return Self { scale, low: low.min(high), high: low.max(high) }.widened();
        }
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| scale.draws(*value)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = if scale == Scale::Linear { (0.0, 1.0) } else { (1.0, 10.0) };
        }
        if scale == Scale::Linear && low >= 0.0 && (low <= high / 2.0 || low == high) {
            low = 0.0;
        }
        Self { scale, low, high }.widened()
    }

    /// Returns the position of a value: 0 at the first value of the axis, 1 at the last, outside
    /// this range if beyond them. `None` if the value can't be drawn; positions very far outside
    /// are limited.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        if !self.scale.draws(value) {
            return None;
        }
        let (low, high) = (self.scale.forth(self.low), self.scale.forth(self.high));
        let share = (self.scale.forth(value) - low) / (high - low);
        Some(share.clamp(-SHARE_MAX, SHARE_MAX))
    }

    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Extends the span to the next round values for `count` ticks, if `axis` has no range of its
    /// own.
    pub(super) fn rounded(self, axis: &Axis, count: usize) -> Self {
        if axis.range.is_some() {
            return self;
        }
        let Self { scale, mut low, mut high } = self;
        match scale {
            Scale::Linear => {
                let step = step((high - low) / count as f64);
                low = (low / step + PRECISION).floor() * step;
                high = (high / step - PRECISION).ceil() * step;
            }
            Scale::Log2 => {
                low = low.log2().floor().exp2();
                high = high.log2().ceil().exp2();
            }
            Scale::Log10 => {
                let fine = self.decades() < 3.0;
                low = round_values(low, fine).rfind(|value| *value <= low).unwrap_or(low);
                high = round_values(high, fine).find(|value| *value >= high).unwrap_or(high);
            }
        }
        let wide = Self { scale, low, high };
        if scale.draws(low) && scale.draws(high) { wide.widened() } else { self }
    }

    /// Widens a span of (nearly) zero width, which can't be drawn.
    fn widened(self) -> Self {
        let Self { scale, mut low, mut high } = self;
        let size = low.abs().max(high.abs());
        if scale != Scale::Linear && high / low < 1.0 + 1e-9 {
            (low, high) = (low / 2.0, high * 2.0);
        } else if size <= 1.0 / VALUE_MAX {
            (low, high) = (0.0, 1.0);
        } else if scale == Scale::Linear && high - low < size * 1e-9 {
            (low, high) = (low - size / 10.0, high + size / 10.0);
        }
        Self { scale, low: low.max(scale.least()), high: high.min(VALUE_MAX) }
    }

    fn decades(&self) -> f64 {
        (self.high / self.low).log10()
    }

    /// Returns round values of the span with their labels: about `count` of them, and at most twice
    /// as many.
    pub(super) fn ticks(&self, format: Format, count: usize) -> Vec<Tick> {
        let count = count.max(1);
        let mut values = match self.scale {
            Scale::Linear => Vec::new(),
            Scale::Log2 => self.powers_of_two(count),
            Scale::Log10 => self.powers_of_ten(count),
        };
        // A logarithmic axis of a narrow span has ticks like a linear one.
        let mut apart = None;
        for finer in [count, 2 * count, 4 * count] {
            if values.len() >= 2 {
                break;
            }
            let step = step((self.high - self.low) / finer as f64);
            values = self.multiples(step, finer);
            apart = Some(step);
        }
        let ticks = labelled(&values, |value| format.tick(value, apart.unwrap_or(value)));
        if are_distinct(&ticks) {
            return ticks;
        }
        // Three significant digits don't distinguish these values.
        let ticks = labelled(&values, |value| grouped(value, decimals(apart.unwrap_or(value))));
        if are_distinct(&ticks) {
            return ticks;
        }
        labelled(&values, |value| format!("{value:e}"))
    }

    fn multiples(&self, step: f64, count: usize) -> Vec<f64> {
        let first = (self.low / step - PRECISION).ceil();
        let last = (self.high / step + PRECISION).floor();
        let place = |index: usize| (first + index as f64) * step;
        let room = (0..=2 * count).take_while(|index| first + *index as f64 <= last);
        room.map(|index| place(index).clamp(self.low, self.high)).collect()
    }

    fn powers_of_two(&self, count: usize) -> Vec<f64> {
        let (low, high) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
        let stride = (high - low).unsigned_abs().div_ceil(count as u32).max(1);
        let values = (low..=high).step_by(stride as usize).map(|power| f64::from(power).exp2());
        values.filter(|value| self.holds(*value)).collect()
    }

    fn powers_of_ten(&self, count: usize) -> Vec<f64> {
        let all = |fine: bool| -> Vec<f64> {
            let (low, high) = (exponent(self.low), exponent(self.high));
            let values = (low..=high + 1).flat_map(|power| of_decade(power, fine));
            values.filter(|value| self.holds(*value)).collect()
        };
        let fine = all(true);
        if fine.len() <= count {
            return fine;
        }
        let powers = all(false);
        let stride = powers.len().div_ceil(count).max(1);
        powers.into_iter().step_by(stride).collect()
    }
}

fn labelled(values: &[f64], label: impl Fn(f64) -> String) -> Vec<Tick> {
    values.iter().map(|value| Tick { value: *value, label: label(*value) }).collect()
}

fn are_distinct(ticks: &[Tick]) -> bool {
    ticks.windows(2).all(|pair| pair[0].label != pair[1].label)
}

/// Returns the least round step that is at least `least`, up to rounding errors.
fn step(least: f64) -> f64 {
    let least = least * (1.0 - 1e-9);
    round_values(least, true).find(|value| *value >= least).unwrap_or(least)
}

/// Returns round values in ascending order, from below `value` to above it.
fn round_values(value: f64, fine: bool) -> impl DoubleEndedIterator<Item = f64> {
    let power = exponent(value);
    (power - 1..=power + 2).flat_map(move |power| of_decade(power, fine))
}

/// Returns the exponent of the largest power of ten that is not above a positive value. The result
/// may be one too small, because logarithms are inexact.
fn exponent(value: f64) -> i32 {
    value.log10().floor().clamp(-310.0, 310.0) as i32
}

/// Returns 1, 2 and 5 times a power of ten if `fine`, otherwise the power alone; as exact as
/// floating point allows.
fn of_decade(power: i32, fine: bool) -> impl DoubleEndedIterator<Item = f64> {
    let factors: &[u8] = if fine { &[1, 2, 5] } else { &[1] };
    let exact = move |factor: &u8| format!("{factor}e{power}").parse().expect("a number");
    factors.iter().map(exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    #[test]
    fn ticks_are_round() {
        let linear = |format| Axis::linear("", format);
        let log2 = |format| Axis::log2("", format);
        let log10 = |format| Axis::log10("", format);
        for (axis, low, high, count, expected) in [
            (linear(Format::Count), 0.0, 30_000.0, 3, "0|10,000|20,000|30,000"),
            (linear(Format::Count), 0.0, 29_500.0, 4, "0|10,000|20,000"),
            (linear(Format::Short), 0.0, 30_000.0, 4, "0|10 k|20 k|30 k"),
            (linear(Format::Short), 1e6, 1.002e6, 3, "1,000,000|1,001,000|1,002,000"),
            (linear(Format::Share), 0.0, 1.0, 5, "0%|20%|40%|60%|80%|100%"),
            (linear(Format::Share), 0.95, 1.0, 5, "95%|96%|97%|98%|99%|100%"),
            (linear(Format::Decimal(1)), -1.0, 1.0, 4, "-1.0|-0.5|0.0|0.5|1.0"),
            (log2(Format::Count), 64.0, 1_024.0, 8, "64|128|256|512|1,024"),
            (log2(Format::Count), 64.0, 1_024.0, 2, "64|256|1,024"),
            (log2(Format::Power), 1.0, 65_536.0, 4, "2^0|2^4|2^8|2^12|2^16"),
            (log10(Format::Count), 1.0, 1e4, 7, "1|10|100|1,000|10,000"),
            (log10(Format::Count), 1.0, 1e6, 4, "1|100|10,000|1,000,000"),
            (log10(Format::Count), 1.0, 100.0, 8, "1|2|5|10|20|50|100"),
            (log10(Format::Count), 0.001, 1.0, 5, "0.001|0.01|0.1|1"),
            (log10(Format::Count), 30.0, 48.0, 4, "30|35|40|45"), // no power in it
        ] {
            let span = Span { scale: axis.scale, low, high };
            let ticks = span.ticks(axis.format, count).into_iter();
            let labels: Vec<String> = ticks.map(|tick| tick.label).collect();
            assert_eq!(labels.join("|"), expected, "{axis:?} {low}..{high}");
        }
    }

    #[test]
    fn spans_show_what_they_must() {
        let linear = Axis::linear("", Format::Count);
        for (axis, values, low, high, why) in [
            (&linear, &[3.0, 29_500.0][..], 0.0, 30_000.0, "from zero, to a round value"),
            (&linear, &[95.0, 99.0], 95.0, 99.0, "far from zero"),
            (&linear, &[-3.0, 4.0], -4.0, 4.0, "below zero"),
            (&linear, &[], 0.0, 1.0, "nothing"),
            (&linear, &[f64::NAN, f64::INFINITY], 0.0, 1.0, "nothing that can be drawn"),
            (&linear, &[0.0], 0.0, 1.0, "no width"),
            (&linear, &[7.0], 0.0, 8.0, "one value"),
            (&Axis::log2("", Format::Count), &[0.0, 5.0, 60.0], 4.0, 64.0, "zero has no place"),
            (&Axis::log10("", Format::Count), &[3.0, 60.0], 2.0, 100.0, "narrow: 1-2-5"),
            (&Axis::log10("", Format::Count), &[3.0, 6e5], 1.0, 1e6, "wide: powers"),
            (&Axis { range: Some((5.0, 1.0)), ..linear.clone() }, &[99.0], 1.0, 5.0, "as set"),
        ] {
            let span = Span::over(axis, values.iter().copied()).rounded(axis, 4);
            assert_eq!((span.low, span.high), (low, high), "{why}");
        }
    }

    #[test]
    fn places_follow_the_scale() {
        let span = |scale| Span { scale, low: 1.0, high: 100.0 };
        assert_eq!(span(Scale::Linear).share(50.5), Some(0.5));
        assert_eq!(span(Scale::Log10).share(10.0), Some(0.5));
        assert!((span(Scale::Log2).share(10.0).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(span(Scale::Log2).share(0.0), None);
        assert_eq!(span(Scale::Linear).share(f64::NAN), None);
    }

    /// Random ranges of all sizes: ticks ascend, lie within the span, are few and have different
    /// labels.
    #[test]
    fn ticks_keep_their_laws() {
        let formats = [Format::Count, Format::Short, Format::Share, Format::Decimal(3)];
        let mut random = Random(7);
        let mut draw = || random.unit();
        for round in 0..20_000 {
            let size = 10_f64.powf(draw() * 24.0 - 12.0);
            let (one, other) = ((draw() - 0.3) * size, (draw() - 0.3) * size);
            let scale = [Scale::Linear, Scale::Log2, Scale::Log10][round % 3];
            let format = formats[round % formats.len()];
            let axis = Axis { scale, ..Axis::linear("", format) };
            let count = 2 + round % 9;
            let span = Span::over(&axis, [one, other].into_iter());
            let span = if round % 2 == 0 { span } else { span.rounded(&axis, count) };
            assert!(span.low < span.high, "{span:?}");
            let ticks = span.ticks(format, count);
            assert!(ticks.len() <= (2 * count + 1).max(5), "{} of {count}: {span:?}", ticks.len());
            assert!(!ticks.is_empty(), "{span:?}");
            assert!(ticks.iter().all(|tick| span.holds(tick.value)), "{span:?} {ticks:?}");
            for pair in ticks.windows(2) {
                assert!(pair[0].value < pair[1].value, "{span:?} {pair:?}");
                assert_ne!(pair[0].label, pair[1].label, "{span:?} {format:?}");
            }
        }
    }
}
