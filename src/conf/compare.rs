//! The variants of a comparison and the values of a sweep: changes of other keys, as text.
//!
//! [`super::Conf::with`] applies these changes to a configuration and checks the result, so each
//! crawl of a comparison obeys the same rules as one from a file.

use super::units::quote;
use std::fmt;

/// A variant of a comparison: a name, and the changes that it makes to the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name of the variant in tables and charts.
    pub name: String,
    /// The keys that the variant changes. If there are none, it is the configuration as in the
    /// file.
    pub changes: Vec<Change>,
}

/// A change of the value of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key with its section: `section.key`.
    pub key: String,
    /// The new value of the key.
    pub value: Value,
}

/// A value of any key, kept as TOML on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(String);

/// The length of the longest name of a variant, in bytes.
const NAME_BYTES_MAX: usize = 40;

impl Variant {
    /// Parses `NAME: section.key=value, section.key=value`. If there is only a name, the variant
    /// changes nothing.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let prints = |c: char| !c.is_control() && !"\"=,".contains(c);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(prints) {
            return Err(format!(
                "{text:?} has no name; write it like \"NAME: section.key=value\", the name at \
                 most {NAME_BYTES_MAX} bytes without '=', ',' and quotes"
            ));
        }
        let changes = pieces(rest).into_iter().map(Change::read).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), changes })
    }
}

/// Formats the variant as it is written in a configuration file.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, change) in self.changes.iter().enumerate() {
            let before = if index == 0 { ": " } else { ", " };
            write!(f, "{before}{}={}", change.key, change.value)?;
        }
        Ok(())
    }
}

impl Change {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a change; write it like politeness.burst=1");
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.trim());
        let whole = |(section, name): (&str, &str)| !section.is_empty() && !name.is_empty();
        if value.is_empty() || !key.rsplit_once('.').is_some_and(whole) {
            return Err(wrong());
        }
        Ok(Self { key: key.to_owned(), value: Value::of_word(value)? })
    }
}

impl Value {
    /// Creates a value from a text that is already TOML on one line.
    pub(super) fn of_toml(text: String) -> Self {
        Self(text)
    }

    /// Creates a value from a text, which it quotes as a TOML string.
    pub(super) fn of_text(text: &str) -> Self {
        Self(quote(text))
    }

    /// Parses a value that is TOML, or a text without quotes: `burst=server`, `delay=1s`.
    fn of_word(text: &str) -> Result<Self, String> {
        let is_toml = |value: &str| {
            let line = format!("x = {value}");
            toml::de::DeTable::parse(&line).is_ok_and(|table| table.get_ref().len() == 1)
        };
        let is_line = !text.chars().any(|c| c.is_control() || c == '#');
        if is_line && is_toml(text) {
            return Ok(Self(text.to_owned()));
        }
        let is_word = is_line && !text.chars().any(|c| "\"'[]{}\\".contains(c));
        if is_word { Ok(Self::of_text(text)) } else { Err(format!("{text:?} is not a value")) }
    }

    /// Returns the value as TOML on one line.
    pub fn as_toml(&self) -> &str {
        &self.0
    }

    /// Returns the value for people: a text is shown without its quotes.
    pub fn name(&self) -> &str {
        let inner = self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.unwrap_or(&self.0)
    }

    /// Returns the value as a position on the axis of a chart: a number, the seconds of a duration,
    /// or the bytes of a size. Returns `None` for other texts.
    pub fn number(&self) -> Option<f64> {
        let text = self.name();
        let time = || super::units::read_time(text).ok().map(|time| time.as_secs_f64());
        let size = || super::units::read_size(text).ok().map(|bytes| bytes as f64);
        let plain = || text.replace('_', "").parse().ok().filter(|value: &f64| value.is_finite());
        plain().or_else(time).or_else(size)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Splits at the commas that are outside quotes and brackets. Blank pieces are dropped.
fn pieces(text: &str) -> Vec<&str> {
    let (mut quoted, mut depth, mut from) = (None, 0_u32, 0);
    let mut pieces = Vec::new();
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match (quoted, byte) {
            (Some(b'"'), b'\\') if !escaped => {
                escaped = true;
                continue;
            }
            (Some(quote), byte) if quote == byte && !escaped => quoted = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quoted = Some(byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            (None, _) => {}
        }
        escaped = false;
    }
    pieces.push(&text[from..]);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_read_as_they_are_shown() {
        for (text, expected, why) in [
            ("plain", Some("plain"), "no change: the file as it is"),
            ("HTTP/1.1: a.b=1,c.d=0s", Some("HTTP/1.1: a.b=1, c.d=\"0s\""), "a bare duration"),
            ("x: a.b = server ", Some("x: a.b=\"server\""), "a bare word"),
            ("x: a.b=\"1, 2\", c.d=3", Some("x: a.b=\"1, 2\", c.d=3"), "a comma in quotes"),
            ("x: a.b=[\"p\", 'q,r'],", Some("x: a.b=[\"p\", 'q,r']"), "a comma in a list"),
            ("x: a.b=\"\\\",\", c.d=1", Some("x: a.b=\"\\\",\", c.d=1"), "an escaped quote"),
            ("x: a.b=0.5", Some("x: a.b=0.5"), "a decimal"),
            ("", None, "no name"),
            (": a.b=1", None, "no name"),
            ("a.b=1", None, "no name but a change"),
            ("x: ab=1", None, "a key without its section"),
            ("x: a.b", None, "no value"),
            ("x: a.b=", None, "no value"),
            ("x: a.b=[1", None, "a list without its end"),
            ("x: a.b=1 # c", None, "a remark would hide what follows"),
        ] {
            let read = Variant::read(text);
            assert_eq!(read.as_ref().ok().map(ToString::to_string).as_deref(), expected, "{why}");
            if let Ok(variant) = read {
                assert_eq!(Variant::read(&variant.to_string()), Ok(variant), "{why}");
            }
        }
    }

    #[test]
    fn values_have_places_on_an_axis() {
        for (text, name, number) in [
            ("1_000", "1_000", Some(1_000.0)),
            ("1.5", "1.5", Some(1.5)),
            ("500ms", "500ms", Some(0.5)),
            ("4KiB", "4KiB", Some(4_096.0)),
            ("server", "server", None),
            ("true", "true", None),
            ("inf", "inf", None),
        ] {
            let value = Value::of_word(text).expect("a value");
            assert_eq!((value.name(), value.number()), (name, number), "{text}");
        }
    }
}
