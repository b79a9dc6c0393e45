//! One walk over all keys, used for two ends: to read a file into a [`super::Conf`], and to list
//! every key with its value and what it allows. A key is named in one place only (`keys.rs`), so
//! what is read, printed and documented can't drift apart.
//!
//! Laws: a key that is absent leaves its default; a value that can't be used leaves it too, and
//! a [`Mistake`]; the text a walk lists for a value reads back as that value.

use super::mistake::{Mistake, suffice};
use super::units::{Decimal, read_size, read_time, show_size, show_time};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The word for "no limit", "no file": what an optional value is when it is not given.
const NONE: &str = "none";

/// One key of the configuration: its place in the file, its value, what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The table it stands in.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its value as TOML.
    pub value: String,
    /// What it allows, in words.
    pub allowed: String,
}

/// The walk: where it is, and what it does at a key.
pub(super) struct Walk<'a> {
    section: &'static str,
    task: Task<'a>,
}

enum Task<'a> {
    Read(Reader<'a>),
    List(Vec<Key>),
}

/// A file being read.
struct Reader<'a> {
    text: &'a str,
    root: &'a DeTable<'a>,
    mistakes: Vec<Mistake>,
}

/// Why a value can't be used: what is wrong, and where in the file if not at the value's start.
/// A list may have several faults.
struct Refused(Vec<(String, Option<Range<usize>>)>);

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self(vec![(text, None)])
    }
}

impl<'a> Walk<'a> {
    /// A walk that reads `root`, parsed from `text`.
    pub(super) fn reading(text: &'a str, root: &'a DeTable<'a>) -> Self {
        let reader = Reader { text, root, mistakes: Vec::new() };
        Self { section: "", task: Task::Read(reader) }
    }

    /// A walk that lists.
    pub(super) fn listing() -> Self {
        Self { section: "", task: Task::List(Vec::new()) }
    }

    /// What is wrong with the values read.
    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        match self.task {
            Task::Read(reader) => reader.mistakes,
            Task::List(_) => Vec::new(),
        }
    }

    /// The keys met.
    pub(super) fn into_keys(self) -> Vec<Key> {
        match self.task {
            Task::Read(_) => Vec::new(),
            Task::List(keys) => keys,
        }
    }

    /// The keys that follow stand in this table.
    pub(super) fn section(&mut self, name: &'static str) {
        self.section = name;
    }

    /// An optional table that follows: whether it is there. One that the file has comes into
    /// being with its defaults.
    pub(super) fn optional_section<T: Default>(
        &mut self,
        name: &'static str,
        place: &mut Option<T>,
    ) {
        self.section = name;
        if let Task::Read(reader) = &self.task
            && reader.root.contains_key(name)
        {
            place.get_or_insert_default();
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &'static str, place: &mut bool) {
        let read = |value: &DeValue<'_>| {
            value.as_bool().ok_or_else(|| wrong_type(value, "true or false", "true").into())
        };
        self.key(name, place, "true or false".to_owned(), read, |flag| flag.to_string());
    }

    /// A whole number.
    pub(super) fn count<T>(&mut self, name: &'static str, place: &mut T, range: RangeInclusive<T>)
    where
        T: Copy + TryFrom<u64> + TryInto<u64>,
    {
        let range = wide(*range.start())..=wide(*range.end());
        let read = |value: &DeValue<'_>| Ok(narrow(read_count(value, &range)?));
        self.key(name, place, count_range(&range), read, |count| show_count(wide(*count)));
    }

    /// A whole number, or a word for what has no number: "none" for no limit.
    pub(super) fn count_or<T>(
        &mut self,
        name: &'static str,
        place: &mut Option<T>,
        word: &str,
        range: RangeInclusive<T>,
    ) where
        T: Copy + TryFrom<u64> + TryInto<u64>,
    {
        let range = wide(*range.start())..=wide(*range.end());
        let allowed = format!("{}, or \"{word}\"", count_range(&range));
        let read = |value: &DeValue<'_>| {
            if value.as_str() == Some(word) {
                return Ok(None);
            }
            let count = read_count(value, &range).map_err(|text| offer(word, text))?;
            Ok(Some(narrow(count)))
        };
        self.key(name, place, allowed, read, |count| match count {
            Some(count) => show_count(wide(*count)),
            None => quote(word),
        });
    }

    /// A duration.
    pub(super) fn time(
        &mut self,
        name: &'static str,
        place: &mut Duration,
        range: RangeInclusive<Duration>,
    ) {
        let read = |value: &DeValue<'_>| Ok(read_time_in(value, &range)?);
        self.key(name, place, time_range(&range), read, |time| quote(&show_time(*time)));
    }

    /// A duration, or none for no limit.
    pub(super) fn time_or_none(
        &mut self,
        name: &'static str,
        place: &mut Option<Duration>,
        range: RangeInclusive<Duration>,
    ) {
        let allowed = format!("{}, or \"none\"", time_range(&range));
        let read = |value: &DeValue<'_>| match value.as_str() {
            Some(NONE) => Ok(None),
            _ => Ok(Some(read_time_in(value, &range).map_err(|text| offer(NONE, text))?)),
        };
        self.key(name, place, allowed, read, |time| match time {
            Some(time) => quote(&show_time(*time)),
            None => quote(NONE),
        });
    }

    /// A size in bytes.
    pub(super) fn size<T>(&mut self, name: &'static str, place: &mut T, range: RangeInclusive<T>)
    where
        T: Copy + TryFrom<u64> + TryInto<u64>,
    {
        let range = wide(*range.start())..=wide(*range.end());
        let read = |value: &DeValue<'_>| Ok(narrow(read_size_in(value, &range)?));
        self.key(name, place, size_range(&range), read, |size| quote(&show_size(wide(*size))));
    }

    /// A size in bytes, or none for no limit.
    pub(super) fn size_or_none(
        &mut self,
        name: &'static str,
        place: &mut Option<u64>,
        range: RangeInclusive<u64>,
    ) {
        let allowed = format!("{}, or \"none\"", size_range(&range));
        let read = |value: &DeValue<'_>| match value.as_str() {
            Some(NONE) => Ok(None),
            _ => Ok(Some(read_size_in(value, &range).map_err(|text| offer(NONE, text))?)),
        };
        self.key(name, place, allowed, read, |size| match size {
            Some(size) => quote(&show_size(*size)),
            None => quote(NONE),
        });
    }

    /// A number with up to three decimals; the range in thousandths.
    pub(super) fn decimal(
        &mut self,
        name: &'static str,
        place: &mut Decimal,
        range: RangeInclusive<u32>,
    ) {
        let (least, most) = range.into_inner();
        let (least, most) = (Decimal::from_thousandths(least), Decimal::from_thousandths(most));
        let allowed = format!("{least} to {most}");
        let read = |value: &DeValue<'_>| {
            let number = read_decimal(value)?;
            Ok(in_range(number, least, most, &number.to_string(), &allowed)?)
        };
        self.key(name, place, allowed.clone(), read, Decimal::to_string);
    }

    /// A text that passes `check`, which says what is wrong otherwise.
    pub(super) fn text(
        &mut self,
        name: &'static str,
        place: &mut String,
        allowed: &str,
        check: fn(&str) -> Result<(), String>,
    ) {
        let read = |text: &str| check(text).map(|()| text.to_owned());
        self.parsed(name, place, allowed, read, |text| quote(text));
    }

    /// A text that passes `check`, or a word that stands for what is done without one.
    pub(super) fn optional_text(
        &mut self,
        name: &'static str,
        place: &mut Option<String>,
        word: &str,
        allowed: &str,
        check: fn(&str) -> Result<(), String>,
    ) {
        let read = |text: &str| match text {
            text if text == word => Ok(None),
            _ => check(text).map(|()| Some(text.to_owned())),
        };
        let allowed = format!("{allowed}, or \"{word}\"");
        self.parsed(name, place, &allowed, read, |text| quote(text.as_deref().unwrap_or(word)));
    }

    /// The name of a file or folder.
    pub(super) fn path(&mut self, name: &'static str, place: &mut PathBuf) {
        let show = |path: &PathBuf| quote(&path.to_string_lossy());
        self.parsed(name, place, "a path", read_path, show);
    }

    /// The name of a file, or a word that stands for what is done without one.
    pub(super) fn optional_path(
        &mut self,
        name: &'static str,
        place: &mut Option<PathBuf>,
        word: &str,
    ) {
        let read = |text: &str| match text {
            text if text == word => Ok(None),
            _ => read_path(text).map(Some),
        };
        let show = |path: &Option<PathBuf>| match path {
            Some(path) => quote(&path.to_string_lossy()),
            None => quote(word),
        };
        self.parsed(name, place, &format!("a path, or \"{word}\""), read, show);
    }

    /// One of a closed set of names.
    pub(super) fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        place: &mut T,
        names: &[(&str, T)],
    ) {
        let allowed = choice_names(names);
        let read = |text: &str| read_choice(text, names);
        self.parsed(name, place, &allowed, read, |value| quote(show_choice(*value, names)));
    }

    /// A list of names of a closed set, each at most once.
    pub(super) fn choices<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        place: &mut Vec<T>,
        names: &[(&str, T)],
    ) {
        let allowed = format!("a list of {}", choice_names(names));
        let read = |value: &DeValue<'_>| {
            let list = read_list(value, |text| read_choice(text, names))?;
            let twice = (1..list.len()).find(|&at| list[..at].contains(&list[at]));
            match twice {
                Some(at) => {
                    Err(format!("\"{}\" stands here twice", show_choice(list[at], names)).into())
                }
                None => Ok(list),
            }
        };
        let show = |list: &Vec<T>| show_list(list, |value| show_choice(*value, names).to_owned());
        self.key(name, place, allowed, read, show);
    }

    /// A text with a meaning of its own.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        place: &mut T,
        allowed: &str,
        read: impl Fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) {
        let read = |value: &DeValue<'_>| match value.as_str() {
            Some(text) => read(text).map_err(Refused::from),
            None => Err(wrong_type(value, "text", "in quotes").into()),
        };
        self.key(name, place, allowed.to_owned(), read, show);
    }

    /// A list of texts, each with a meaning of its own.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        place: &mut Vec<T>,
        allowed: &str,
        read: impl Fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) {
        let read_all = |value: &DeValue<'_>| read_list(value, &read);
        self.key(name, place, allowed.to_owned(), read_all, |list| show_list(list, &show));
    }

    /// What all kinds of keys come to: read it if the file has it, or list it.
    fn key<T>(
        &mut self,
        name: &'static str,
        place: &mut T,
        allowed: String,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, Refused>,
        show: impl FnOnce(&T) -> String,
    ) {
        let section = self.section;
        match &mut self.task {
            Task::List(keys) => keys.push(Key { section, name, value: show(place), allowed }),
            Task::Read(reader) => {
                let Some(value) = reader.find(section, name) else { return };
                match read(value.get_ref()) {
                    Ok(value) => *place = value,
                    Err(Refused(faults)) => {
                        let key = format!("{section}.{name}");
                        for (text, span) in faults {
                            let at = span.map_or(value.span().start, |span| span.start);
                            reader.tell(at, key.clone(), text);
                        }
                    }
                }
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn find(&self, section: &str, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.root.get(section)?.get_ref().as_table()?.get(name)
    }

    fn tell(&mut self, at: usize, key: String, text: String) {
        if suffice(&self.mistakes) {
            return;
        }
        self.mistakes.push(Mistake { line: Some(line_of(self.text, at)), key, text });
    }
}

/// Line of the byte at `offset`, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// The text as a TOML string on one line.
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

fn read_count(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, String> {
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

fn read_time_in(value: &DeValue<'_>, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    let text = text_with_unit(value, "a duration", "10s")?;
    let time = read_time(&text)?;
    in_range(time, *range.start(), *range.end(), &quote(&text), &time_range(range))
}

fn read_size_in(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let text = text_with_unit(value, "a size", "2MiB")?;
    let size = read_size(&text)?;
    in_range(size, *range.start(), *range.end(), &quote(&text), &size_range(range))
}

/// The text of a value that needs a unit; a bare number is let through, to be told its unit.
fn text_with_unit(value: &DeValue<'_>, wanted: &str, example: &str) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        _ => Err(wrong_type(value, wanted, &quote(example))),
    }
}

fn read_decimal(value: &DeValue<'_>) -> Result<Decimal, String> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => Decimal::read(number.as_str()),
        DeValue::Float(number) => Decimal::read(number.as_str()),
        _ => Err(wrong_type(value, "a number", "2.5")),
    }
}

fn read_list<T>(
    value: &DeValue<'_>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Refused> {
    let Some(items) = value.as_array() else {
        return Err(wrong_type(value, "a list", "[\"...\", \"...\"]").into());
    };
    let mut list = Vec::with_capacity(items.len());
    let mut faults = Vec::new();
    for item in items.iter() {
        let value = item.get_ref();
        let text = value.as_str().ok_or_else(|| wrong_type(value, "text in the list", "in quotes"));
        match text.and_then(&read) {
            Ok(read) => list.push(read),
            Err(text) => faults.push((text, Some(item.span()))),
        }
    }
    if faults.is_empty() { Ok(list) } else { Err(Refused(faults)) }
}

/// The list as TOML: on one line if it is short, else on several.
fn show_list<T>(list: &[T], show: impl Fn(&T) -> String) -> String {
    const COLUMNS: usize = 76;
    let items: Vec<String> = list.iter().map(|item| quote(&show(item))).collect();
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

fn read_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{text:?} names no file"));
    }
    Ok(PathBuf::from(text))
}

fn read_choice<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let near = super::mistake::nearest(text, names.iter().map(|(name, _)| *name));
        let near = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
        format!("{text:?} is not known; allowed: {}{near}", choice_names(names))
    })
}

fn show_choice<'n, T: Copy + PartialEq>(value: T, names: &[(&'n str, T)]) -> &'n str {
    let found = names.iter().find(|(_, each)| *each == value);
    found.map(|(name, _)| *name).expect("every value of a closed set has a name")
}

fn choice_names<T>(names: &[(&str, T)]) -> String {
    let names: Vec<String> = names.iter().map(|(name, _)| quote(name)).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn in_range<T: PartialOrd>(
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

fn count_range(range: &RangeInclusive<u64>) -> String {
    format!("{} to {}", show_count(*range.start()), show_count(*range.end()))
}

fn time_range(range: &RangeInclusive<Duration>) -> String {
    format!("\"{}\" to \"{}\"", show_time(*range.start()), show_time(*range.end()))
}

fn size_range(range: &RangeInclusive<u64>) -> String {
    format!("\"{}\" to \"{}\"", show_size(*range.start()), show_size(*range.end()))
}

fn wrong_type(value: &DeValue<'_>, wanted: &str, example: &str) -> String {
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
fn like(example: &str) -> String {
    if example == "in quotes" { example.to_owned() } else { format!("like {example}") }
}

fn offer(word: &str, text: String) -> String {
    format!("{text}, or write \"{word}\"")
}

fn wide<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().ok().expect("counts and sizes are not negative and fit 64 bits")
}

fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    T::try_from(value).ok().expect("the range of a key fits the type of its place")
}
