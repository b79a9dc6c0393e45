//! Sitemaps and feeds in XML.

use super::input::Input;
use super::{Entry, Flaw, Kind, Limits, Listing, date};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, escape};
use std::io::Read;

/// The deepest nesting of elements.
const DEPTH_MAX: usize = 64;
/// The most attributes of a tag that are looked at.
const ATTRIBUTES_MAX: usize = 32;
/// The longest text that is kept, in bytes: a URL, a date, a number.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// An element that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Url,
    Modified,
    /// A date that counts if there is no other.
    Published,
    Priority,
}

/// The state of reading.
struct Walk<'a> {
    limits: &'a Limits,
    result: &'a mut Listing,
    depth: usize,
    /// The entry that is being read, and the depth of its element.
    entry: Option<(Entry, usize)>,
    /// The field that is being read, the depth of its element, and its text.
    field: Option<(Field, usize)>,
    text: String,
    is_atom: bool,
}

/// Reads a file.
pub(super) fn read<R: Read>(
    input: Input<R>,
    limits: &Limits,
    result: &mut Listing,
) -> Result<(), Flaw> {
    let mut reader = Reader::from_reader(input);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut walk = Walk {
        limits,
        result,
        depth: 0,
        entry: None,
        field: None,
        text: String::new(),
        is_atom: false,
    };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        reader.get_mut().begin_token();
        let event = reader.read_event_into(&mut buffer);
        match event {
            Ok(Event::Eof) => return walk.end(),
            Ok(event) => walk.take(&event)?,
            Err(_) => {
                let at = reader.error_position();
                walk.keep_last()?;
                let input = reader.get_ref();
                let is_cut = input.is_at_end();
                let flaw = if is_cut { Flaw::EndsEarly } else { Flaw::Malformed(at) };
                return Err(input.flaw().unwrap_or(flaw));
            }
        }
    }
}

impl Walk<'_> {
    fn take(&mut self, event: &Event<'_>) -> Result<(), Flaw> {
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(Flaw::TooDeep);
                }
                self.begin(tag)
            }
            Event::Empty(tag) => {
                self.depth += 1;
                self.begin(tag)?;
                self.leave()
            }
            Event::End(_) => self.leave(),
            Event::Text(text) => {
                self.say(&String::from_utf8_lossy(text));
                Ok(())
            }
            Event::CData(text) => {
                self.say(&String::from_utf8_lossy(text));
                Ok(())
            }
            Event::GeneralRef(name) => {
                let name = String::from_utf8_lossy(name);
                let whole = format!("&{name};");
                let meant = escape::unescape(&whole);
                self.say(meant.as_deref().unwrap_or(&whole));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn say(&mut self, text: &str) {
        if self.field.is_some() && self.text.len() + text.len() <= TEXT_BYTES_MAX {
            self.text.push_str(text);
        }
    }

    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<(), Flaw> {
        let local = tag.local_name();
        let name = local.as_ref();
        if self.result.kind.is_none() {
            self.is_atom = name == b"feed";
            self.result.kind = match name {
                b"urlset" => Some(Kind::Pages),
                b"sitemapindex" => Some(Kind::Index),
                b"rss" | b"RDF" | b"feed" => Some(Kind::Feed),
                _ => return Err(Flaw::Foreign),
            };
            return Ok(());
        }
        let Some((entry, _)) = &mut self.entry else {
            if matches!(name, b"url" | b"sitemap" | b"item" | b"entry") {
                self.entry = Some((Entry::default(), self.depth));
            }
            return Ok(());
        };
        if self.field.is_some() {
            return Ok(());
        }
        if self.is_atom && name == b"link" {
            if let Some(url) = link_of(tag)
                && entry.url.is_empty()
            {
                entry.url = url;
            }
            return Ok(());
        }
        let field = match (self.result.kind, name) {
            (Some(Kind::Feed), b"link") | (Some(Kind::Pages | Kind::Index), b"loc") => Field::Url,
            (Some(Kind::Feed), b"updated" | b"pubDate" | b"date") => Field::Modified,
            (Some(Kind::Feed), b"published") => Field::Published,
            (Some(Kind::Pages | Kind::Index), b"lastmod") => Field::Modified,
            (Some(Kind::Pages), b"priority") => Field::Priority,
            _ => return Ok(()),
        };
        // Images and videos of an entry have elements of these names, too, deeper.
        if self.entry.as_ref().is_some_and(|(_, depth)| *depth + 1 == self.depth) {
            self.field = Some((field, self.depth));
            self.text.clear();
        }
        Ok(())
    }

    /// Leaves an element.
    fn leave(&mut self) -> Result<(), Flaw> {
        if let Some((field, depth)) = self.field
            && depth >= self.depth
        {
            self.field = None;
            self.set(field);
        }
        if let Some((entry, _)) = self.entry.take_if(|(_, depth)| *depth >= self.depth) {
            self.result.add(entry, self.limits)?;
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn set(&mut self, field: Field) {
        let Some((entry, _)) = &mut self.entry else { return };
        let text = self.text.trim();
        match field {
            Field::Url if entry.url.is_empty() => entry.url = text.to_owned(),
            Field::Url => {}
            Field::Modified => entry.modified = date::read(text).or(entry.modified),
            Field::Published => entry.modified = entry.modified.or_else(|| date::read(text)),
            Field::Priority => {
                let value = text.parse::<f32>().ok().filter(|value| (0.0..=1.0).contains(value));
                entry.priority = value.map(|value| (value * 1_000.0).round() as u16);
            }
        }
    }

    /// Keeps the entry in which the file breaks off, if it has its URL.
    fn keep_last(&mut self) -> Result<(), Flaw> {
        match self.entry.take_if(|(entry, _)| !entry.url.is_empty()) {
            Some((entry, _)) => self.result.add(entry, self.limits),
            None => Ok(()),
        }
    }

    /// Ends reading at the end of the file.
    fn end(&mut self) -> Result<(), Flaw> {
        self.keep_last()?;
        match (self.result.kind, self.depth) {
            (None, _) => Err(Flaw::Foreign),
            (_, 0) => Ok(()),
            _ => Err(Flaw::EndsEarly),
        }
    }
}

/// Returns the URL of an Atom link to the page itself.
fn link_of(tag: &BytesStart<'_>) -> Option<String> {
    let (mut url, mut is_page) = (None, true);
    for attribute in tag.html_attributes().with_checks(false).take(ATTRIBUTES_MAX).flatten() {
        let text = String::from_utf8_lossy(&attribute.value);
        match attribute.key.local_name().as_ref() {
            b"href" => {
                url = Some(escape::unescape(&text).map_or_else(|_| text.to_string(), String::from))
            }
            b"rel" => is_page = text == "alternate",
            _ => {}
        }
    }
    url.filter(|_| is_page)
}
