//! One walk over all keys, used for two ends: to read a file into a [`super::Conf`], and to list
//! every key with its value and what it allows. A key is named in one place only (`keys.rs`), so
//! what is read, printed and documented can't drift apart.
//!
//! Laws: a key that is absent leaves its default; a value that can't be used leaves it too, and
//! a [`Mistake`]; the text a walk lists for a value reads back as that value.

pub(super) mod values;

use super::compare::Value;
use super::mistake::{Mistake, suffice};
use super::units::{Cost, Decimal, show_size, show_time};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use values::{
    Refused, choice_names, count_range, in_range, narrow, offer, read_choice, read_count,
    read_decimal, read_item, read_list, read_path, read_size_in, read_time_in, read_value,
    show_choice, show_count, show_list, size_range, text_with_unit, time_range, wide, wrong_type,
};

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

    /// What a core takes for something, in whole steps of `finest`.
    pub(super) fn cost(
        &mut self,
        name: &'static str,
        place: &mut Cost,
        range: RangeInclusive<Cost>,
        finest: Cost,
    ) {
        let allowed = format!("\"{}\" to \"{}\"", range.start(), range.end());
        let read = |value: &DeValue<'_>| {
            let text = text_with_unit(value, "a duration", "350ns")?;
            let cost = Cost::read(&text)?;
            if !cost.picoseconds().is_multiple_of(finest.picoseconds()) {
                return Err(format!("{text:?} is finer than {finest}").into());
            }
            Ok(in_range(cost, *range.start(), *range.end(), &quote(&text), &allowed)?)
        };
        self.key(name, place, allowed.clone(), read, |cost| quote(&cost.to_string()));
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
            let list = read_list(value, |item| read_item(item, |text| read_choice(text, names)))?;
            let twice = (1..list.len()).find(|&at| list[..at].contains(&list[at]));
            match twice {
                Some(at) => {
                    Err(format!("\"{}\" stands here twice", show_choice(list[at], names)).into())
                }
                None => Ok(list),
            }
        };
        let show = |list: &Vec<T>| show_list(list, |value| quote(show_choice(*value, names)));
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
        let read_all = |value: &DeValue<'_>| read_list(value, |item| read_item(item, &read));
        let show_all = |list: &Vec<T>| show_list(list, |item| quote(&show(item)));
        self.key(name, place, allowed.to_owned(), read_all, show_all);
    }

    /// A list of whole numbers.
    pub(super) fn counts(
        &mut self,
        name: &'static str,
        place: &mut Vec<usize>,
        range: RangeInclusive<usize>,
    ) {
        let range = wide(*range.start())..=wide(*range.end());
        let read = |value: &DeValue<'_>| {
            read_list(value, |item| read_count(item, &range).map(narrow::<usize>))
        };
        let show = |list: &Vec<usize>| show_list(list, |count| show_count(wide(*count)));
        self.key(name, place, format!("a list of {}", count_range(&range)), read, show);
    }

    /// A list of values for another key, kept as TOML.
    pub(super) fn values(&mut self, name: &'static str, place: &mut Vec<Value>, allowed: &str) {
        let read = |value: &DeValue<'_>| read_list(value, read_value);
        let show = |list: &Vec<Value>| show_list(list, Value::to_string);
        self.key(name, place, allowed.to_owned(), read, show);
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

/// The keys as a file.
pub(super) fn render(keys: &[Key]) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in keys {
        if key.section != section {
            section = key.section;
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{section}]\n"));
        }
        text.push_str(&format!("{} = {}\n", key.name, key.value));
    }
    text
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
