//! Single values of the file: from what the TOML parser gives, and in the words that say what is
//! wrong with it.

use super::quote;
use crate::conf::compare::Value;
use crate::conf::mistake;
use crate::conf::units::{Decimal, read_size, read_time, show_size, show_time};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeValue;

/// Why a value can't be used: what is wrong, and where in the file if not at the value's start.
/// A list may have several faults.
pub(super) struct Refused(pub(super) Vec<(String, Option<Range<usize>>)>);

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self(vec![(text, None)])
    }
}

pub(super) fn read_count(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let allowed = count_range(range);
    let Some(integer) = value.as_integer() else {
        let example = range.start().to_string();
        return Err(wrong_type(value, "a whole number", &example));
    };
    match u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()) {
        Ok(count) => in_range(count, *range.start(), *range.end(), &show_count(count), &allowed),
        Err(_) => Err(format!("{integer} is out of range; allowed: {allowed}")),
    }
}

pub(super) fn read_time_in(
    value: &DeValue<'_>,
    range: &RangeInclusive<Duration>,
) -> Result<Duration, String> {
    let text = text_with_unit(value, "a duration", "10s")?;
    let time = read_time(&text)?;
    in_range(time, *range.start(), *range.end(), &quote(&text), &time_range(range))
}

pub(super) fn read_size_in(
    value: &DeValue<'_>,
    range: &RangeInclusive<u64>,
) -> Result<u64, String> {
    let text = text_with_unit(value, "a size", "2MiB")?;
    let size = read_size(&text)?;
    in_range(size, *range.start(), *range.end(), &quote(&text), &size_range(range))
}

/// The text of a value that needs a unit; a bare number is let through, to be told its unit.
pub(super) fn text_with_unit(
    value: &DeValue<'_>,
    wanted: &str,
    example: &str,
) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        _ => Err(wrong_type(value, wanted, &quote(example))),
    }
}

pub(super) fn read_decimal(value: &DeValue<'_>) -> Result<Decimal, String> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => Decimal::read(number.as_str()),
        DeValue::Float(number) => Decimal::read(number.as_str()),
        _ => Err(wrong_type(value, "a number", "2.5")),
    }
}

pub(super) fn read_list<T>(
    value: &DeValue<'_>,
    read: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> Result<Vec<T>, Refused> {
    let Some(items) = value.as_array() else {
        return Err(wrong_type(value, "a list", "[\"...\", \"...\"]").into());
    };
    let mut list = Vec::with_capacity(items.len());
    let mut faults = Vec::new();
    for item in items.iter() {
        match read(item.get_ref()) {
            Ok(read) => list.push(read),
            Err(text) => faults.push((text, Some(item.span()))),
        }
    }
    if faults.is_empty() { Ok(list) } else { Err(Refused(faults)) }
}

/// The list as TOML, of its items as TOML: on one line if it is short, else on several.
pub(super) fn show_list<T>(list: &[T], show: impl Fn(&T) -> String) -> String {
    const COLUMNS: usize = 76;
    let items: Vec<String> = list.iter().map(show).collect();
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

/// The item of a list of texts.
pub(super) fn read_item<T>(
    value: &DeValue<'_>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = value.as_str().ok_or_else(|| wrong_type(value, "text in the list", "in quotes"))?;
    read(text)
}

/// A value as TOML on one line, for another time: text, number or truth.
pub(super) fn read_value(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::of_text(text)),
        DeValue::Integer(number) if number.radix() == 10 => Ok(Value::of_toml(number.to_string())),
        DeValue::Float(number) => Ok(Value::of_toml(number.to_string())),
        DeValue::Boolean(flag) => Ok(Value::of_toml(flag.to_string())),
        _ => Err(wrong_type(value, "text, a number, true or false", "\"10s\"")),
    }
}

pub(in crate::conf) fn read_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{text:?} names no file"));
    }
    Ok(PathBuf::from(text))
}

pub(super) fn read_choice<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let near = mistake::nearest(text, names.iter().map(|(name, _)| *name));
        let near = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
        format!("{text:?} is not known; allowed: {}{near}", choice_names(names))
    })
}

pub(super) fn show_choice<'n, T: Copy + PartialEq>(value: T, names: &[(&'n str, T)]) -> &'n str {
    let found = names.iter().find(|(_, each)| *each == value);
    found.map(|(name, _)| *name).expect("every value of a closed set has a name")
}

pub(super) fn choice_names<T>(names: &[(&str, T)]) -> String {
    let names: Vec<String> = names.iter().map(|(name, _)| quote(name)).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

pub(super) fn in_range<T: PartialOrd>(
    value: T,
    least: T,
    most: T,
    shown: &str,
    allowed: &str,
) -> Result<T, String> {
    if value < least {
        Err(format!("{shown} is too little; allowed: {allowed}"))
    } else if value > most {
        Err(format!("{shown} is too much; allowed: {allowed}"))
    } else {
        Ok(value)
    }
}

/// The number as TOML, its digits in groups of three.
pub(super) fn show_count(count: u64) -> String {
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

pub(super) fn count_range(range: &RangeInclusive<u64>) -> String {
    format!("{} to {}", show_count(*range.start()), show_count(*range.end()))
}

pub(super) fn time_range(range: &RangeInclusive<Duration>) -> String {
    format!("\"{}\" to \"{}\"", show_time(*range.start()), show_time(*range.end()))
}

pub(super) fn size_range(range: &RangeInclusive<u64>) -> String {
    format!("\"{}\" to \"{}\"", show_size(*range.start()), show_size(*range.end()))
}

pub(super) fn wrong_type(value: &DeValue<'_>, wanted: &str, example: &str) -> String {
    let found = match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    format!("{found} stands where {wanted} is wanted; write it {}", like(example))
}

/// `like 5`, but `in quotes` as it is.
pub(super) fn like(example: &str) -> String {
    if example == "in quotes" { example.to_owned() } else { format!("like {example}") }
}

pub(super) fn offer(word: &str, text: String) -> String {
    format!("{text}, or write \"{word}\"")
}

pub(super) fn wide<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().ok().expect("counts and sizes are not negative and fit 64 bits")
}

pub(super) fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    T::try_from(value).ok().expect("the range of a key fits the type of its place")
}
