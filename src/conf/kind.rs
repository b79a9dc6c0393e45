//! The kinds of values that keys have: what each kind allows, how it is parsed and printed.
//!
//! Law: a value that [`Kind::show`] prints is parsed by [`Kind::read`] as the same value.

use super::compare::Value;
use super::mistake;
use super::units::{Correlation, Cost, Decimal, quote, read_size, read_time, show_size, show_time};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use toml::de::DeValue;

/// A kind of value. Kinds are built where a key is declared, for example by
/// `count(1..=9).or("none")`.
pub(super) struct Kind<T> {
    allowed: String,
    /// Whether a value is a list.
    is_list: bool,
    read: Rc<Read<T>>,
    show: Rc<Show<T>>,
}

type Read<T> = dyn Fn(&DeValue<'_>) -> Result<T, Refused>;
type Show<T> = dyn Fn(&T) -> String;

/// Why a value is refused: one or more mistakes, since a list may have several. Each has a text,
/// and the place in the file if it is not at the start of the value.
pub(super) struct Refused(pub(super) Vec<(String, Option<Range<usize>>)>);

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self(vec![(text, None)])
    }
}

impl<T: 'static> Kind<T> {
    fn new(
        allowed: impl Into<String>,
        read: impl Fn(&DeValue<'_>) -> Result<T, Refused> + 'static,
        show: impl Fn(&T) -> String + 'static,
    ) -> Self {
        Self { allowed: allowed.into(), is_list: false, read: Rc::new(read), show: Rc::new(show) }
    }

    /// Returns the description of the allowed values in words.
    pub(super) fn allowed(&self) -> &str {
        &self.allowed
    }

    /// Returns whether a value is a list.
    pub(super) fn is_list(&self) -> bool {
        self.is_list
    }

    /// Parses a value in a configuration file.
    pub(super) fn read(&self, value: &DeValue<'_>) -> Result<T, Refused> {
        (self.read)(value)
    }

    /// Prints the value as TOML.
    pub(super) fn show(&self, value: &T) -> String {
        (self.show)(value)
    }

    /// Returns a kind that also allows a word for the absence of a value, like "none".
    pub(super) fn or(self, word: &'static str) -> Kind<Option<T>> {
        let Self { allowed, is_list, read, show } = self;
        let read = move |value: &DeValue<'_>| {
            if value.as_str() == Some(word) {
                return Ok(None);
            }
            read(value).map(Some).map_err(|Refused(faults)| {
                let offer = |(text, at)| (format!("{text}, or write \"{word}\""), at);
                Refused(faults.into_iter().map(offer).collect())
            })
        };
        let show = move |value: &Option<T>| value.as_ref().map_or_else(|| quote(word), &*show);
        Kind { is_list, ..Kind::new(format!("{allowed}, or \"{word}\""), read, show) }
    }

    /// Returns a kind of another type `U` with the same values, which `to` and `from` convert.
    pub(super) fn convert<U: 'static>(self, to: fn(T) -> U, from: fn(&U) -> T) -> Kind<U> {
        let Self { allowed, is_list, read, show } = self;
        let (read, show) =
            (move |value: &DeValue<'_>| read(value).map(to), move |value: &U| show(&from(value)));
        Kind { is_list, ..Kind::new(allowed, read, show) }
    }
}

/// Returns the kind of a switch: `true` or `false`.
pub(super) fn flag() -> Kind<bool> {
    let read = |value: &DeValue<'_>| {
        value.as_bool().ok_or_else(|| wrong_type(value, "true or false", "true"))
    };
    Kind::new("true or false", read, bool::to_string)
}

/// Returns the kind of a whole number in `range`.
pub(super) fn count<T>(range: RangeInclusive<T>) -> Kind<T>
where
    T: Copy + TryFrom<u64> + TryInto<u64> + 'static,
{
    let (least, most) = (wide(*range.start()), wide(*range.end()));
    let allowed = format!("{} to {}", show_count(least), show_count(most));
    let within = allowed.clone();
    let read = move |value: &DeValue<'_>| {
        let integer = value
            .as_integer()
            .ok_or_else(|| wrong_type(value, "a whole number", &least.to_string()))?;
        match u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()) {
            Ok(count) => in_range(count, least, most, &show_count(count), &within).map(narrow),
            Err(_) => Err(format!("{integer} is out of range; allowed: {within}").into()),
        }
    };
    Kind::new(allowed, read, |count| show_count(wide(*count)))
}

/// Returns the kind of a whole number that is one of `allowed`.
pub(super) fn count_of(allowed: &'static [u32]) -> Kind<u32> {
    let mut words: Vec<String> = allowed.iter().map(u32::to_string).collect();
    let last = words.pop().expect("at least one is allowed");
    let words = format!("{} or {last}", words.join(", "));
    let within = words.clone();
    let read = move |value: &DeValue<'_>| {
        let integer = value
            .as_integer()
            .ok_or_else(|| wrong_type(value, "a whole number", &allowed[0].to_string()))?;
        let count = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let refused = || format!("{integer} can't be chosen; allowed: {within}").into();
        count.filter(|count| allowed.contains(count)).ok_or_else(refused)
    };
    Kind::new(words, read, u32::to_string)
}

/// Returns the kind of a duration in `range`.
pub(super) fn time(range: RangeInclusive<Duration>) -> Kind<Duration> {
    with_unit(range, "a duration", "10s", read_time, show_time)
}

/// Returns the kind of a size in bytes in `range`.
pub(super) fn size<T>(range: RangeInclusive<u64>) -> Kind<T>
where
    T: Copy + TryFrom<u64> + TryInto<u64> + 'static,
{
    with_unit(range, "a size", "2MiB", read_size, show_size).convert(narrow, |size| wide(*size))
}

/// Returns the kind of the CPU time of a small operation: whole multiples of `finest`, up to
/// `most`.
pub(super) fn cost(most: Cost, finest: Cost) -> Kind<Cost> {
    let read = move |text: &str| match Cost::read(text)? {
        cost if cost.picoseconds().is_multiple_of(finest.picoseconds()) => Ok(cost),
        _ => Err(format!("{text:?} is finer than {finest}")),
    };
    with_unit(Cost::default()..=most, "a duration", "350ns", read, |cost| cost.to_string())
}

/// Returns the kind of a number with a unit. A number without a unit is passed to `read`, which
/// knows the units to suggest.
fn with_unit<T: Copy + PartialOrd + 'static>(
    range: RangeInclusive<T>,
    wanted: &'static str,
    example: &'static str,
    read: impl Fn(&str) -> Result<T, String> + 'static,
    show: impl Fn(T) -> String + 'static,
) -> Kind<T> {
    let (least, most) = range.into_inner();
    let allowed = format!("\"{}\" to \"{}\"", show(least), show(most));
    let within = allowed.clone();
    let read = move |value: &DeValue<'_>| {
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => return Err(wrong_type(value, wanted, &quote(example))),
        };
        in_range(read(&text)?, least, most, &quote(&text), &within)
    };
    Kind::new(allowed, read, move |value| quote(&show(*value)))
}

/// Returns the kind of a number with up to three decimals. The range is given in thousandths.
pub(super) fn decimal(range: RangeInclusive<u32>) -> Kind<Decimal> {
    let (least, most) = range.into_inner();
    let (least, most) = (Decimal::from_thousandths(least), Decimal::from_thousandths(most));
    let allowed = format!("{least} to {most}");
    let within = allowed.clone();
    let read = move |value: &DeValue<'_>| {
        let number = match value {
            DeValue::Integer(number) if number.radix() == 10 => Decimal::read(number.as_str()),
            DeValue::Float(number) => Decimal::read(number.as_str()),
            _ => return Err(wrong_type(value, "a number", "2.5")),
        }?;
        in_range(number, least, most, &number.to_string(), &within)
    };
    Kind::new(allowed, read, Decimal::to_string)
}

/// Returns the kind of a correlation, from -1 to 1.
pub(super) fn correlation() -> Kind<Correlation> {
    let (least, most) = (Correlation::LEAST, Correlation::MOST);
    let allowed = format!("{least} to {most}");
    let within = allowed.clone();
    let read = move |value: &DeValue<'_>| {
        let number = match value {
            DeValue::Integer(number) if number.radix() == 10 => Correlation::read(number.as_str()),
            DeValue::Float(number) => Correlation::read(number.as_str()),
            _ => return Err(wrong_type(value, "a number", "-0.5")),
        }?;
        in_range(number, least, most, &number.to_string(), &within)
    };
    Kind::new(allowed, read, Correlation::to_string)
}

/// Returns the kind of a text that `read` parses to a `T`. `allowed` describes the valid texts.
pub(super) fn parsed<T: 'static>(
    allowed: &str,
    read: impl Fn(&str) -> Result<T, String> + 'static,
    show: impl Fn(&T) -> String + 'static,
) -> Kind<T> {
    let read = move |value: &DeValue<'_>| {
        let text = value.as_str().ok_or_else(|| wrong_type(value, "text", "in quotes"))?;
        Ok(read(text)?)
    };
    Kind::new(allowed, read, move |value| quote(&show(value)))
}

/// Returns the kind of a text that `check` accepts. The error of `check` says what is wrong.
pub(super) fn text(allowed: &str, check: fn(&str) -> Result<(), String>) -> Kind<String> {
    parsed(allowed, move |text| check(text).map(|()| text.to_owned()), String::clone)
}

/// Returns the kind of the name of a file or directory.
pub(super) fn path() -> Kind<PathBuf> {
    parsed("a path", read_path, |path| path.to_string_lossy().into_owned())
}

/// Returns the kind of a value that is one of the names in `names`.
pub(super) fn choice<T: Copy + PartialEq + 'static>(names: &[(&'static str, T)]) -> Kind<T> {
    let quoted: Vec<String> = names.iter().map(|(name, _)| quote(name)).collect();
    let allowed = match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    };
    let (known, names, within) = (names.to_vec(), names.to_vec(), allowed.clone());
    let read = move |text: &str| {
        let found = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let near = mistake::nearest(text, known.iter().map(|(name, _)| *name));
            let near = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
            format!("{text:?} is not known; allowed: {within}{near}")
        })
    };
    let show = move |value: &T| {
        let found = names.iter().find(|(_, each)| each == value);
        found.map(|(name, _)| (*name).to_owned()).expect("every value of a closed set has a name")
    };
    parsed(&allowed, read, show)
}

/// Returns the kind of a list whose items are of the kind `item`.
pub(super) fn list<T: 'static>(item: Kind<T>) -> Kind<Vec<T>> {
    let Kind { allowed, read, show, .. } = item;
    let read_all = move |value: &DeValue<'_>| {
        let items =
            value.as_array().ok_or_else(|| wrong_type(value, "a list", "[\"...\", \"...\"]"))?;
        let (mut list, mut faults) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items.iter() {
            match read(item.get_ref()) {
                Ok(value) => list.push(value),
                Err(Refused(found)) => {
                    faults.extend(found.into_iter().map(|(text, _)| (text, Some(item.span()))));
                }
            }
        }
        if faults.is_empty() { Ok(list) } else { Err(Refused(faults)) }
    };
    let show_all = move |list: &Vec<T>| show_list(list.iter().map(&*show).collect());
    Kind { is_list: true, ..Kind::new(format!("a list of {allowed}"), read_all, show_all) }
}

/// Returns the kind of a list of lines `Name: value` that `check` accepts. The list may also be
/// written as a table: `{ Name = "value" }`.
pub(super) fn fields(allowed: &str, check: fn(&str) -> Result<(), String>) -> Kind<Vec<String>> {
    let Kind { allowed, is_list, read, show } = list(text(allowed, check));
    let read_all = move |value: &DeValue<'_>| {
        let Some(table) = value.as_table() else { return read(value) };
        let (mut lines, mut faults) = (Vec::with_capacity(table.len()), Vec::new());
        for (name, value) in table.iter() {
            let name = (name.get_ref(), name.span());
            let line = match value.get_ref().as_str() {
                Some(text) => Ok(format!("{}: {text}", name.0)),
                None => Err(format!("the value of {} is no text; write it in quotes", name.0)),
            };
            match line.and_then(|line| check(&line).map(|()| line)) {
                Ok(line) => lines.push(line),
                Err(text) => faults.push((text, Some(name.1))),
            }
        }
        if faults.is_empty() { Ok(lines) } else { Err(Refused(faults)) }
    };
    Kind { allowed, is_list, read: Rc::new(read_all), show }
}

/// Returns the kind of a list of names out of `names`, each at most once.
pub(super) fn choices<T: Copy + PartialEq + 'static>(names: &[(&'static str, T)]) -> Kind<Vec<T>> {
    let item = choice(names);
    let Kind { allowed, is_list, read, show } = list(choice(names));
    let read = move |value: &DeValue<'_>| {
        let list = read(value)?;
        match (1..list.len()).find(|&at| list[..at].contains(&list[at])) {
            Some(at) => {
                Err(format!("{} is in the list twice; remove one", item.show(&list[at])).into())
            }
            None => Ok(list),
        }
    };
    Kind { allowed, is_list, read: Rc::new(read), show }
}

/// Returns the kind of a value that is meant for another key and kept as TOML.
pub(super) fn value() -> Kind<Value> {
    let read = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(Value::of_text(text)),
        DeValue::Integer(number) if number.radix() == 10 => Ok(Value::of_toml(number.to_string())),
        DeValue::Float(number) => Ok(Value::of_toml(number.to_string())),
        DeValue::Boolean(flag) => Ok(Value::of_toml(flag.to_string())),
        _ => Err(wrong_type(value, "text, a number, true or false", "\"10s\"")),
    };
    Kind::new("values of that key", read, Value::to_string)
}

pub(super) fn read_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{text:?} names no file"));
    }
    Ok(PathBuf::from(text))
}

/// Formats the items as a TOML list: on one line if it is short, otherwise on several.
fn show_list(items: Vec<String>) -> String {
    const COLUMNS: usize = 76;
    let line = items.join(", ");
    if line.len() <= COLUMNS {
        return format!("[{line}]");
    }
    let mut shown = "[".to_owned();
    let mut column = COLUMNS;
    for item in items {
        if column + item.len() > COLUMNS {
            shown.push_str("\n   ");
            column = 0;
        }
        shown.push_str(&format!(" {item},"));
        column += item.len() + 2;
    }
    shown.push_str("\n]");
    shown
}

fn in_range<T: PartialOrd>(
    value: T,
    least: T,
    most: T,
    shown: &str,
    allowed: &str,
) -> Result<T, Refused> {
    if value < least {
        Err(format!("{shown} is too little; allowed: {allowed}").into())
    } else if value > most {
        Err(format!("{shown} is too much; allowed: {allowed}").into())
    } else {
        Ok(value)
    }
}

/// Formats a number as TOML, with its digits in groups of three.
fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push('_');
        }
        shown.push(digit);
    }
    shown
}

/// Describes the mistake of a value of the wrong type. `example` is a valid value in TOML, or says
/// how to write the value, such as `in quotes`.
fn wrong_type(value: &DeValue<'_>, wanted: &str, example: &str) -> Refused {
    let found = match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    let like = if example == "in quotes" { "" } else { "like " };
    format!("expected {wanted}, found {found}; write it {like}{example}").into()
}

fn wide<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().ok().expect("counts and sizes are not negative and fit 64 bits")
}

fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    T::try_from(value).ok().expect("the range of a key fits the type of its field")
}
