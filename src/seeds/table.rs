//! Recognizes tables in a seed file: which lines are headers, and which cell of a row contains the
//! URL.
//!
//! A table is recognized by a header that names the column, by Excel's `sep=;`, or by a number and
//! a name on each line, as in lists of the largest sites. Cells are quoted as in RFC 4180: a quote
//! opens a cell only at its start, and line ends inside the quotes belong to the cell.

use super::line::{holds_url, is_invisible, line_end_in, without_quotes};
use super::{Reason, uncommented};

/// The names of columns that contain the URLs of a table.
const HEADERS: [&str; 14] = [
    "url", "urls", "uri", "link", "domain", "domains", "host", "hostname", "site", "website",
    "homepage", "address", "seed", "origin",
];
/// The characters that may separate the cells of a row.
const DELIMITERS: &[u8] = b",;\t|";
/// The number of lines that are checked to recognize a table of ranks and names without a header.
const RANKED_LINES: usize = 10;
/// The maximum number of lines of one quoted cell. The closing quote is searched no further.
const CELL_LINES_MAX: usize = 64;

/// The layout of a seed file: whether it is a table, and which column has the URLs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout<'a> {
    /// The number of the last line before the rows: that of `sep=;` or of the header.
    preamble: usize,
    /// The header; empty if there is none.
    header: &'a [u8],
    /// True if the header could also be the name of a host.
    is_header_doubtful: bool,
    columns: Option<Columns>,
}

/// The format of a table's rows: the delimiter, and the column of the URLs.
#[derive(Clone, Copy, Debug)]
struct Columns {
    delimiter: u8,
    column: usize,
}

impl<'a> Layout<'a> {
    /// Detects the layout of the file by its first lines.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let contents = Records::of(text, None).map(|(line, record)| (line, uncommented(record)));
        let mut contents = contents.filter(|(_, content)| !content.is_empty()).peekable();
        let mut layout = Self::default();
        let declared = contents.peek().and_then(|(line, first)| {
            layout.preamble = *line;
            declared_delimiter(first)
        });
        match declared {
            Some(_) => drop(contents.next()),
            None => layout.preamble = 0,
        }
        let only = declared.map(|delimiter| [delimiter]);
        let delimiters = only.as_ref().map_or(DELIMITERS, |only| only);
        let is_ranked = |delimiter: &&u8| {
            let mut first = contents.clone().take(RANKED_LINES).peekable();
            first.peek().is_some() && first.all(|(_, content)| is_ranked(content, **delimiter))
        };
        if let Some(&delimiter) = delimiters.iter().find(is_ranked) {
            layout.columns = Some(Columns { delimiter, column: 1 });
            return layout;
        }
        let Some((line, first)) = contents.next() else { return layout };
        for &delimiter in delimiters {
            if let Some(column) = column_of_urls(first, delimiter) {
                let columns = Some(Columns { delimiter, column });
                return Self { preamble: line, header: first, columns, ..layout };
            }
        }
        if declared.is_none() && rank_of_name(first).is_some() && !first.contains(&b'-') {
            let is_url = |(_, content): &(usize, &[u8])| content.iter().any(|b| b".:/".contains(b));
            let is_header_doubtful = !contents.peek().is_some_and(is_url);
            return Self { preamble: line, header: first, is_header_doubtful, ..layout };
        }
        layout.columns = declared.map(|delimiter| {
            let column = cells(first, delimiter).position(|cell| cell.contains(&b'.'));
            Columns { delimiter, column: column.unwrap_or_default() }
        });
        layout
    }

    /// Returns whether the file is a table, so that its rows have cells.
    pub(super) fn is_table(&self) -> bool {
        self.columns.is_some()
    }

    /// Returns the records of the text (rows of a table, or else lines), each with the number of
    /// its first line.
    pub(super) fn records<'t>(&self, text: &'t [u8]) -> Records<'t> {
        Records::of(text, self.columns.map(|columns| columns.delimiter))
    }

    /// Returns the content of a record that should be a URL, or the reason why there is none.
    /// Returns `None` if the record is skipped.
    pub(super) fn content<'t>(
        &self,
        line: usize,
        record: &'t [u8],
    ) -> Option<Result<&'t [u8], Reason>> {
        if line <= self.preamble {
            let is_doubtful = line == self.preamble && self.is_header_doubtful;
            return is_doubtful.then_some(Err(Reason::Header));
        }
        let content = uncommented(record);
        if !self.header.is_empty() && without_mark(content) == without_mark(self.header) {
            return Some(Err(Reason::Header));
        }
        let Some(Columns { delimiter, column }) = self.columns else {
            // Other programs show two lines here. The second would be lost if the first ends with a
            // comment.
            if let Some(end) = line_end_in(record) {
                return Some(Err(Reason::Invisible(end)));
            }
            return (!content.is_empty()).then_some(Ok(content));
        };
        let is_blank =
            |byte: &u8| *byte == delimiter || *byte == b'"' || byte.is_ascii_whitespace();
        if content.is_empty() || record.iter().all(is_blank) {
            return None;
        }
        let cell = uncommented(cells(record, delimiter).nth(column).unwrap_or_default());
        Some(if cell.is_empty() { Err(Reason::NoCell) } else { Ok(cell) })
    }
}

/// Returns the content without a byte order mark at its start. Such a mark is inside a file that
/// consists of two concatenated files.
fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)
}

/// Returns the delimiter that the first line of a table by Excel declares, such as `sep=;`.
fn declared_delimiter(content: &[u8]) -> Option<u8> {
    let content = without_quotes(content).0;
    let (key, value) = content.split_at_checked(4)?;
    match value {
        _ if !key.eq_ignore_ascii_case(b"sep=") => None,
        // `sep=` with nothing after it: the delimiter was a tab, which was trimmed as white space.
        [] => Some(b'\t'),
        &[delimiter] => Some(delimiter),
        _ => None,
    }
}

/// Returns whether the line consists of a number and a name with a dot, as in a list of ranked
/// sites.
fn is_ranked(content: &[u8], delimiter: u8) -> bool {
    let mut cells = cells(content, delimiter);
    let (rank, name) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
    let rank = without_quotes(rank).0;
    !rank.is_empty() && rank.iter().all(u8::is_ascii_digit) && name.contains(&b'.')
}

/// Returns the index of the column that contains the URLs, by the names in the header. Returns
/// `None` if the header has one column, names no such column, or contains a URL itself, as
/// `http://a.test/x,link` does.
fn column_of_urls(header: &[u8], delimiter: u8) -> Option<usize> {
    if holds_url(header) {
        return None;
    }
    let ranks: Vec<Option<u32>> = cells(header, delimiter).map(rank_of_name).collect();
    let ranked = ranks.iter().enumerate().filter_map(|(at, rank)| Some((rank.as_ref()?, at)));
    (ranks.len() > 1).then(|| ranked.min())?.map(|(_, column)| column)
}

/// Returns how clearly the name of a column says that it contains URLs; 0 is the clearest. Examples
/// are `url`, `seed_url`, `URL (final)`. A text that may be a URL itself is not a name: `None`.
fn rank_of_name(cell: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(without_quotes(cell).0).ok()?.trim_matches(is_invisible);
    if name.contains(['.', ':', '/', '<']) {
        return None;
    }
    let is_one = |word: &str| HEADERS.iter().any(|header| header.eq_ignore_ascii_case(word));
    if is_one(name) {
        return Some(0);
    }
    let mut words: Vec<&str> = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
        let mut start = 0;
        for (at, pair) in part.as_bytes().windows(2).enumerate() {
            if pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase() {
                words.push(&part[start..=at]);
                start = at + 1;
            }
        }
        words.push(&part[start..]);
    }
    if words.last().is_some_and(|word| is_one(word)) {
        return Some(1);
    }
    let is_url = |word: &&str| ["url", "urls", "uri"].iter().any(|u| u.eq_ignore_ascii_case(word));
    words.iter().any(is_url).then_some(2)
}

/// Tracks which bytes of a record are inside quotes, byte by byte.
struct Quotes {
    delimiter: u8,
    is_open: bool,
    /// True if the current cell is still empty, so that a quote may open it.
    is_start: bool,
    /// True if the previous byte was a quote that closes the cell, unless a second quote follows.
    is_closed: bool,
    /// True if text followed the quote that closed a cell, which RFC 4180 does not allow.
    is_broken: bool,
}

impl Quotes {
    fn new(delimiter: u8) -> Self {
        let (is_open, is_closed, is_broken) = (false, false, false);
        Self { delimiter, is_open, is_start: true, is_closed, is_broken }
    }

    /// Processes the next byte of a record; returns whether it ends a cell.
    fn step(&mut self, byte: u8) -> bool {
        if byte == b'"' && self.is_open {
            (self.is_open, self.is_closed) = (false, true);
            return false;
        }
        if byte == b'"' && (self.is_start || self.is_closed) {
            (self.is_open, self.is_closed, self.is_start) = (true, false, false);
            return false;
        }
        let is_end = byte == self.delimiter && !self.is_open;
        self.is_broken |= self.is_closed && !is_end && byte != b' ';
        self.is_closed = false;
        self.is_start = is_end || self.is_start && byte == b' ';
        is_end
    }
}

/// Returns the cells of a record.
fn cells(record: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut quotes = Quotes::new(delimiter);
    record.split(move |&byte| quotes.step(byte)).map(<[u8]>::trim_ascii)
}

/// Iterates over lines, or rows of a table, each with the number of its first line.
#[derive(Clone)]
pub(super) struct Records<'a> {
    rest: Option<&'a [u8]>,
    line: usize,
    delimiter: Option<u8>,
}

impl<'a> Records<'a> {
    fn of(text: &'a [u8], delimiter: Option<u8>) -> Self {
        Self { rest: Some(text), line: 1, delimiter }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest?;
        let (end, lines) = match self.delimiter {
            None => (line_end(text), 1),
            Some(delimiter) => row_end(text, delimiter),
        };
        let line = self.line;
        self.rest = after(text, end);
        self.line += lines;
        Some((line, &text[..end]))
    }
}

/// Returns the position of the first line end in the text: of LF, CR LF, or CR.
fn line_end(text: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())
}

/// Returns the text after the line whose line end is at `end`; `None` if it was the last line.
fn after(text: &[u8], end: usize) -> Option<&[u8]> {
    let rest = text.get(end..).filter(|rest| !rest.is_empty())?;
    Some(if rest.starts_with(b"\r\n") { &rest[2..] } else { &rest[1..] })
}

/// Returns the position at which a row ends, and its number of lines, which is more than one if a
/// quoted cell contains line ends. A quote that is not closed, or used in a way that RFC 4180 does
/// not allow, counts as an ordinary character.
fn row_end(text: &[u8], delimiter: u8) -> (usize, usize) {
    let first = line_end(text);
    let mut quotes = Quotes::new(delimiter);
    let (mut at, mut end) = (0, first);
    for lines in 1..=CELL_LINES_MAX {
        for &byte in &text[at..end] {
            quotes.step(byte);
        }
        if quotes.is_broken {
            break;
        }
        if !quotes.is_open {
            return (end, lines);
        }
        let Some(rest) = after(text, end) else { break };
        at = text.len() - rest.len();
        end = at + line_end(rest);
    }
    (first, 1)
}
