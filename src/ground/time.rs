//! Time as values: monotonic instants, calendar time, and timers.
//!
//! Nothing here reads a clock. The world (the real event loop, or a simulator) reads its clock once
//! a turn of the loop and passes the result as [`Now`]; the simulator's clock starts at zero and
//! jumps. Durations are `std::time::Duration`.
//!
//! Laws: an [`Instant`] never goes back within a run. [`Timers`] expire in order of time, and
//! timers of equal time in the order in which they were set, so two runs with the same inputs
//! expire in the same order. Cost: setting, moving and cancelling a deadline is O(log n) without
//! allocation once the tables have grown; finding the nearest deadline is O(1).

use std::fmt;
use std::fmt::Write as _;
use std::ops::{Add, Range, Sub};
use std::time::Duration;

/// A point in monotonic time: microseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// An instant later than any other.
    pub const FAR: Self = Self(u64::MAX);

    /// Returns the instant `us` microseconds after the start of the run.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Returns the microseconds since the start of the run.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(us))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Calendar time: microseconds since 1970-01-01T00:00:00Z. It may jump. It is used only for what
/// leaves the program or outlives it, such as the dates of records and waits that last across a
/// restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Returns the time `us` microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since 1970-01-01T00:00:00Z; at most those until 2106.
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0 / 1_000_000).unwrap_or(u32::MAX)
    }

    /// Returns this time minus `by`, or 1970-01-01T00:00:00Z if that would be earlier.
    pub fn before(self, by: Duration) -> Self {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(us))
    }

    /// Returns this time plus `by`.
    pub fn after(self, by: Duration) -> Self {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(us))
    }

    /// Parses a time of fourteen digits, as [`Civil::to_digits`] writes it; `None` if there is no
    /// such date or time of day.
    pub fn from_digits(text: &str) -> Option<Self> {
        Civil::from_digits(text)?.time()
    }

    /// Returns the date and time of day in UTC.
    pub fn civil(self) -> Civil {
        Civil::of(self)
    }
}

/// A date and time of day in UTC, as logs and archives print them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year of the proleptic Gregorian calendar.
    pub year: u32,
    /// The month, 1 to 12.
    pub month: u32,
    /// The day of the month, 1 to 31.
    pub day: u32,
    /// The hour, 0 to 23.
    pub hour: u32,
    /// The minute, 0 to 59.
    pub minute: u32,
    /// The second, 0 to 59. Unix time has no leap seconds.
    pub second: u32,
}

impl Civil {
    /// Converts a calendar time to date and time of day. Years are counted from March, so that the
    /// leap day ends a year and month lengths follow one linear rule; 400 years are 146,097 days.
    fn of(time: UnixTime) -> Self {
        let seconds = time.0 / 1_000_000;
        let days = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leaps) / 365;
        let years_days = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
        let day_of_year = day_of_era - years_days;
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            year: narrow(year),
            month: narrow(month),
            day: narrow(day_of_year - (153 * from_march + 2) / 5 + 1),
            hour: narrow(seconds / 3_600 % 24),
            minute: narrow(seconds / 60 % 60),
            second: narrow(seconds % 60),
        }
    }

    /// Splits fourteen digits into year, month, day, hour, minute and second, without checking
    /// their ranges; `None` if the text isn't fourteen digits.
    fn from_digits(text: &str) -> Option<Self> {
        if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let field = |range: Range<usize>| text[range].parse().ok();
        Some(Self {
            year: field(0..4)?,
            month: field(4..6)?,
            day: field(6..8)?,
            hour: field(8..10)?,
            minute: field(10..12)?,
            second: field(12..14)?,
        })
    }

    /// Converts the fields to a time; `None` if there is no such date or time of day, or it is
    /// before 1970.
    pub fn time(self) -> Option<UnixTime> {
        let us = self.seconds()?.checked_mul(1_000_000)?;
        Some(UnixTime(us)).filter(|time| time.civil() == self)
    }

    /// Returns the seconds since 1970-01-01T00:00:00Z, without checking the ranges of the fields;
    /// the inverse of [`Civil::of`].
    fn seconds(self) -> Option<u64> {
        let [year, month, day] = [self.year, self.month, self.day].map(u64::from);
        let years = year.checked_sub(u64::from(month <= 2))?;
        let (era, year_of_era) = (years / 400, years % 400);
        let from_march = (month + 9) % 12;
        let day_of_year = (153 * from_march + 2) / 5 + day.checked_sub(1)?;
        let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
        let [hour, minute, second] = [self.hour, self.minute, self.second].map(u64::from);
        Some(86_400 * days + 3_600 * hour + 60 * minute + second)
    }

    /// Formats the time of day as `09:38:49`, for people.
    pub fn to_clock(self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }

    /// Formats the date and time as `2026-11-20T09:38:49Z`, the form of WARC-Date.
    pub fn to_seconds(self) -> String {
        let mut text = String::new();
        self.put_seconds(&mut text);
        text
    }

    /// Appends the date and time to `out` in the form `2026-11-20T09:38:49Z`.
    pub fn put_seconds(self, out: &mut String) {
        let Self { year, month, day, hour, minute, second, .. } = self;
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
            .expect("a string takes all");
    }

    /// Formats the date and time as `20261120093849`, the form of the index and of file names.
    pub fn to_digits(self) -> String {
        let mut text = String::new();
        self.put_digits(&mut text);
        text
    }

    /// Appends the date and time to `out` in the form `20261120093849`.
    pub fn put_digits(self, out: &mut String) {
        let Self { year, month, day, hour, minute, second, .. } = self;
        write!(out, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
            .expect("a string takes all");
    }
}

/// The current time, as the world reads it once a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time, for all waits.
    pub at: Instant,
    /// Calendar time, only for what is written to files.
    pub unix: UnixTime,
}

impl Now {
    /// Converts the instant `at` to calendar time, so that a later run can read it.
    pub fn unix_of(self, at: Instant) -> UnixTime {
        let ahead = at.as_micros().saturating_sub(self.at.as_micros());
        let behind = self.at.as_micros().saturating_sub(at.as_micros());
        let unix = self.unix.as_micros().saturating_add(ahead).saturating_sub(behind);
        UnixTime::from_micros(unix)
    }

    /// Converts a calendar time that an earlier run wrote to an instant. A time that has passed
    /// becomes the current instant, and one more than `most` ahead becomes `most` ahead: a jump of
    /// the calendar must not cause a longer wait than the earlier run meant.
    pub fn instant_of(self, unix: UnixTime, most: Duration) -> Instant {
        let ahead_us = unix.as_micros().saturating_sub(self.unix.as_micros());
        self.at + Duration::from_micros(ahead_us).min(most)
    }
}

/// Timers: at most one deadline for each key, in an indexed four-ary heap. Keys are small dense
/// numbers, such as those of slots or servers.
#[derive(Debug, Default)]
pub struct Timers {
    heap: Vec<Timer>,
    /// The position in the heap of each key's timer; `ABSENT` for a key without a deadline.
    places: Vec<u32>,
    /// The number of deadlines set so far; orders equal deadlines by when they were set.
    sequence: u64,
}

const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    sequence: u64,
    key: u32,
}

impl Timer {
    fn order(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl Timers {
    /// Creates an empty set of timers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the deadline of `key` to `at`, or moves it there.
    pub fn set(&mut self, key: u32, at: Instant) {
        self.sequence += 1;
        let timer = Timer { at, sequence: self.sequence, key };
        let slot = key as usize;
        if slot >= self.places.len() {
            self.places.resize(slot + 1, ABSENT);
        }
        let mut place = self.places[slot] as usize;
        if self.places[slot] == ABSENT {
            place = self.heap.len();
            self.heap.push(timer);
        } else {
            self.heap[place] = timer;
        }
        self.settle(place);
    }

    /// Cancels the deadline of `key`, if it has one.
    pub fn cancel(&mut self, key: u32) {
        let place = self.places.get(key as usize).copied().unwrap_or(ABSENT);
        if place != ABSENT {
            self.remove(place as usize);
        }
    }

    /// Returns the deadline of `key`, or `None` if it has none.
    pub fn at(&self, key: u32) -> Option<Instant> {
        let place = self.places.get(key as usize).copied().unwrap_or(ABSENT);
        (place != ABSENT).then(|| self.heap[place as usize].at)
    }

    /// Returns the nearest deadline of all keys, or `None` if no deadline is set.
    pub fn nearest(&self) -> Option<Instant> {
        self.heap.first().map(|timer| timer.at)
    }

    /// Removes the nearest deadline and returns its key if that deadline is at or before `now`.
    /// Returns `None` otherwise.
    pub fn expire(&mut self, now: Instant) -> Option<u32> {
        let first = *self.heap.first()?;
        if first.at > now {
            return None;
        }
        self.remove(0);
        Some(first.key)
    }

    /// Returns the number of keys that have a deadline.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether no deadline is set.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn remove(&mut self, place: usize) {
        let gone = self.heap.swap_remove(place);
        self.places[gone.key as usize] = ABSENT;
        if place < self.heap.len() {
            self.settle(place);
        }
    }

    /// Moves the timer at `place` up or down to its position in the heap.
    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let timer = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].order() <= timer.order() {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, timer);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let timer = self.heap[place];
        loop {
            let first = place * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child].order()) else {
                break;
            };
            if timer.order() <= self.heap[least].order() {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, timer);
    }

    fn put(&mut self, place: usize, timer: Timer) {
        self.heap[place] = timer;
        self.places[timer.key as usize] = u32::try_from(place).expect("fewer than 2^32 timers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn civil_dates_of_known_instants() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_795_167_529, "2026-11-20T09:38:49Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in cases {
            let time = UnixTime::from_micros(seconds * 1_000_000);
            assert_eq!(time.civil().to_seconds(), expected, "{seconds}");
            assert_eq!(UnixTime::from_digits(&time.civil().to_digits()), Some(time), "{seconds}");
        }
    }

    #[test]
    fn what_is_no_second_is_not_read_as_one() {
        let cases = [
            ("20261120093849", true, "a second like any"),
            ("20240229000000", true, "a leap day"),
            ("20260229000000", false, "no leap day"),
            ("21000229000000", false, "nor in a full century"),
            ("20261320093849", false, "thirteen months"),
            ("20260020093849", false, "no month"),
            ("20261100093849", false, "no day"),
            ("20261120243849", false, "hour 24"),
            ("20261120093860", false, "a leap second"),
            ("19691231235959", false, "before the epoch"),
            ("00000101000000", false, "long before it"),
            ("2026112009384", false, "thirteen digits"),
            ("202611200938490", false, "fifteen"),
            ("+0261120093849", false, "a sign"),
            ("2026112009384\u{e9}", false, "no digit"),
        ];
        for (digits, is_second, why) in cases {
            let time = UnixTime::from_digits(digits);
            assert_eq!(time.is_some(), is_second, "{why}");
            assert!(time.is_none_or(|time| time.civil().to_digits() == digits), "{why}");
        }
    }

    #[test]
    fn instants_saturate_instead_of_wrapping() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(Instant::ZERO.since(Instant::from_micros(5)), Duration::ZERO);
    }

    /// Law: after any history the timers agree with a sorted map.
    #[test]
    fn timers_agree_with_a_sorted_map() {
        let mut random = Random(1);
        let mut next = |below: u64| random.below(below);
        let (mut timers, mut model, mut sequence) = (Timers::new(), BTreeMap::new(), 0_u64);
        for _ in 0..20_000 {
            let key = u32::try_from(next(64)).unwrap();
            match next(4) {
                0 | 1 => {
                    let at = Instant::from_micros(next(1_000));
                    sequence += 1;
                    timers.set(key, at);
                    model.retain(|_, kept| *kept != key);
                    model.insert((at, sequence), key);
                }
                2 => {
                    timers.cancel(key);
                    model.retain(|_, kept| *kept != key);
                }
                _ => {
                    let now = Instant::from_micros(next(1_000));
                    let due = model.first_key_value().filter(|((at, _), _)| *at <= now);
                    let due = due.map(|(order, key)| (*order, *key));
                    assert_eq!(timers.expire(now), due.map(|(_, key)| key));
                    if let Some((order, _)) = due {
                        model.remove(&order);
                    }
                }
            }
            assert_eq!(timers.len(), model.len());
            assert_eq!(timers.nearest(), model.keys().next().map(|(at, _)| *at));
        }
    }

    /// Instants that are written and read again across a jump of the calendar.
    #[test]
    fn instants_survive_a_run_by_the_calendar() {
        let second = Duration::from_secs(1);
        let unix = |us: u64| UnixTime::from_micros(1_000_000_000 + us);
        let old = Now { at: Instant::from_micros(5_000_000), unix: unix(0) };
        let written = old.unix_of(old.at + 10 * second);
        assert_eq!(written, unix(10_000_000));
        assert_eq!(old.unix_of(Instant::ZERO), UnixTime::from_micros(1_000_000_000 - 5_000_000));
        for (passed_us, left) in [(0, 10), (4_000_000, 6), (11_000_000, 0), (1 << 50, 0)] {
            let new = Now { at: Instant::ZERO, unix: unix(passed_us) };
            assert_eq!(new.instant_of(written, 60 * second), new.at + left * second);
        }
        let jumped_back = Now { at: Instant::ZERO, unix: UnixTime::from_micros(0) };
        assert_eq!(jumped_back.instant_of(written, 60 * second), Instant::ZERO + 60 * second);
    }
}
