//! Tables: for a terminal (aligned), a spreadsheet (CSV) and a browser (HTML).
//!
//! CSV is RFC 4180 with lines ended by LF alone, as shell tools expect and every reader accepts.
//! Its numbers have a decimal point, no grouping and all digits that are needed to read the same
//! value back; the other two forms round them to the decimals of the cell.

use super::canvas::escaped;
use super::number::grouped;
use std::fmt::Write;

/// A table: rows under a header, and a caption.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The caption of the table; may be empty.
    pub caption: String,
    /// The columns, from the left.
    pub header: Vec<Column>,
    /// Each row has a cell for each column; missing cells are missing values, and surplus ones are
    /// not shown.
    pub rows: Vec<Vec<Cell>>,
}

/// The heading and the format of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading of the column.
    pub name: String,
    /// The unit of the column's numbers; may be empty.
    pub unit: String,
    /// The side on which the column's cells are aligned.
    pub align: Align,
    /// Which of the column's numbers is marked as the best; `None`: none is.
    pub best: Option<Best>,
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Aligned to the left, for words.
    Left,
    /// Aligned to the right, for numbers.
    Right,
}

/// Which number of a column is the best. Numbers that are shown alike are all marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The lowest number, such as for a duration.
    Lowest,
    /// The highest number, such as for a rate.
    Highest,
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words, or a value that is formatted already.
    Text(String),
    /// A number.
    Number {
        /// The value, in the unit of the column.
        value: f64,
        /// The number of decimals shown to people.
        decimals: usize,
    },
    /// No value is known.
    Missing,
}

impl Column {
    /// Creates a column of words.
    pub fn text(name: &str) -> Self {
        let (name, unit) = (name.to_owned(), String::new());
        Self { name, unit, align: Align::Left, best: None }
    }

    /// Creates a column of numbers in a unit.
    pub fn number(name: &str, unit: &str) -> Self {
        Self { unit: unit.to_owned(), align: Align::Right, ..Self::text(name) }
    }

    /// Sets which number of the column is marked as the best.
    pub fn with_best(self, best: Best) -> Self {
        Self { best: Some(best), ..self }
    }

    fn head(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }
}

impl Cell {
    /// Creates a cell of words.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Creates a cell with a number that is shown to people with this many decimals.
    pub fn number(value: f64, decimals: usize) -> Self {
        Self::Number { value, decimals }
    }

    fn finite(&self) -> Option<f64> {
        match self {
            Self::Number { value, .. } if value.is_finite() => Some(*value),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number { value, decimals } => grouped(*value, *decimals),
            Self::Missing => "–".to_owned(),
        }
    }
}

impl Table {
    /// Formats the table for a terminal: columns aligned, the best of a column followed by `*`.
    pub fn text(&self) -> String {
        let heads: Vec<String> =
            self.header.iter().map(|column| one_line(&column.head())).collect();
        let mut rows = self.cells(|text, best| {
            let star = if best { "*" } else { " " };
            format!("{}{star}", one_line(&text))
        });
        self.drop_vain_stars(&mut rows);
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                let cells = rows.iter().map(|row| columns_of(&row[column]));
                cells.fold(columns_of(&heads[column]), usize::max)
            })
            .collect();
        let mut text = String::new();
        if !self.caption.is_empty() {
            writeln!(text, "{}\n", one_line(&self.caption)).expect("text grows");
        }
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        for row in [&heads, &rule].into_iter().chain(&rows) {
            self.push_row(&mut text, row, &widths);
        }
        text
    }

    /// Formats the table as CSV (RFC 4180 with LF): a line of names, then one line per row. Missing
    /// values are empty.
    pub fn csv(&self) -> String {
        let mut csv = csv_line(self.header.iter().map(Column::head));
        for row in &self.rows {
            let cell = |column| match row.get(column) {
                Some(Cell::Text(text)) => text.clone(),
                Some(Cell::Number { value, .. }) => csv_number(*value),
                Some(Cell::Missing) | None => String::new(),
            };
            csv.push_str(&csv_line((0..self.header.len()).map(cell)));
        }
        csv
    }

    /// Formats the table as an HTML `figure` element, the best of a column in `strong`.
    pub fn html(&self) -> String {
        let mut html = String::from("<figure class=\"table\">\n");
        if !self.caption.is_empty() {
            // A `caption` element would be no wider than its table.
            let caption = escaped(&self.caption);
            writeln!(html, "<figcaption><strong>{caption}</strong></figcaption>")
                .expect("text grows");
        }
        html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for column in &self.header {
            let unit = match escaped(&column.unit) {
                unit if unit.is_empty() => unit,
                unit => format!(" <span class=\"unit\">{unit}</span>"),
            };
            let class = class(column);
            write!(html, "<th scope=\"col\"{class}>{}{unit}</th>", escaped(&column.name))
                .expect("text grows");
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        let rows = self.cells(|text, best| {
            let text = escaped(&text);
            if best { format!("<strong title=\"best\">{text}</strong>") } else { text }
        });
        for row in rows {
            html.push_str("<tr>");
            for (column, cell) in self.header.iter().zip(row) {
                write!(html, "<td{}>{cell}</td>", class(column)).expect("text grows");
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table></div>\n</figure>\n");
        html
    }

    /// Returns the cells as text: each row has one for each column. `show` formats a cell; its
    /// second argument says whether the cell is the best of its column.
    fn cells(&self, show: impl Fn(String, bool) -> String) -> Vec<Vec<String>> {
        let bests: Vec<Option<String>> = (0..self.header.len()).map(|at| self.best(at)).collect();
        let cell = |row: &[Cell], column: usize| {
            let cell = row.get(column).unwrap_or(&Cell::Missing);
            let shown = cell.shown();
            let best = cell.finite().is_some() && bests[column].as_ref() == Some(&shown);
            show(shown, best)
        };
        let columns = 0..self.header.len();
        let cells = |row: &Vec<Cell>| columns.clone().map(|column| cell(row, column)).collect();
        self.rows.iter().map(cells).collect()
    }

    /// Returns the formatted best number of a column; `None` if the column marks none, has no
    /// numbers, or shows all of them alike.
    fn best(&self, column: usize) -> Option<String> {
        let best = self.header[column].best?;
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let numbers = cells.filter_map(|cell| Some((cell.finite()?, cell.shown())));
        let ascending = |one: &(f64, String), other: &(f64, String)| one.0.total_cmp(&other.0);
        let (low, high) = (numbers.clone().min_by(ascending)?, numbers.max_by(ascending)?);
        let top = match best {
            Best::Lowest => &low,
            Best::Highest => &high,
        };
        (low.1 != high.1).then(|| top.1.clone())
    }

    /// Removes the space for the stars of the best numbers from columns that have none.
    fn drop_vain_stars(&self, rows: &mut [Vec<String>]) {
        for column in 0..self.header.len() {
            if !rows.iter().any(|row| row[column].ends_with('*')) {
                for row in &mut *rows {
                    row[column].pop();
                }
            }
        }
    }

    fn push_row(&self, text: &mut String, row: &[String], widths: &[usize]) {
        let mut line = String::new();
        for ((column, cell), width) in self.header.iter().zip(row).zip(widths) {
            let space = " ".repeat(width - columns_of(cell));
            match column.align {
                Align::Left => line += &format!("{cell}{space}  "),
                Align::Right => line += &format!("{space}{cell}  "),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Joins fields to one line of CSV, quoting those that need it.
pub(super) fn csv_line(fields: impl IntoIterator<Item = String>) -> String {
    let quoted = |field: String| {
        if field.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    };
    let fields: Vec<String> = fields.into_iter().map(quoted).collect();
    // A single empty field would be an empty line, which readers skip.
    let line = if fields == [""] { "\"\"".to_owned() } else { fields.join(",") };
    line + "\n"
}

/// Formats a number for CSV; NaN and infinities become empty fields.
pub(super) fn csv_number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { String::new() }
}

fn class(column: &Column) -> &'static str {
    match column.align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    }
}

/// Replaces control characters of a text, which would break a line or control the terminal.
fn one_line(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if letter.is_control() => '\u{FFFD}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// Returns the width of a text in a terminal, in columns: East Asian letters take two columns,
/// combining marks none.
fn columns_of(text: &str) -> usize {
    let columns = |letter: char| match letter {
        '\u{0300}'..='\u{036F}' | '\u{200B}'..='\u{200F}' | '\u{FE00}'..='\u{FE0F}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{1F300}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    };
    text.chars().map(columns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn policies() -> Table {
        let row = |name: &str, pages: f64, seconds: f64| {
            vec![Cell::text(name), Cell::number(pages, 0), Cell::number(seconds, 1)]
        };
        Table {
            caption: "Policies".to_owned(),
            header: vec![
                Column::text("policy"),
                Column::number("pages", "").with_best(Best::Highest),
                Column::number("time", "s").with_best(Best::Lowest),
            ],
            rows: vec![
                row("bfs", 30_000.0, 1234.56),
                row("capability", 30_000.0, 999.91),
                row("quality", 30_000.0, 999.89), // looks equal
                vec![Cell::text("none"), Cell::Missing],
                row("broken", f64::NAN, f64::NEG_INFINITY),
            ],
        }
    }

    #[test]
    fn terminals_get_aligned_columns() {
        let expected = "\
Policies

policy       pages  time (s)
----------  ------  --------
bfs         30,000  1,234.6
capability  30,000    999.9*
quality     30,000    999.9*
none             –        –
broken           –       -∞
";
        assert_eq!(policies().text(), expected);
        let mut odd = policies();
        odd.rows[0][0] = Cell::text("a\x1b[31m\nb");
        odd.rows[1][0] = Cell::text("東京");
        let text = odd.text();
        assert!(text.contains("a\u{FFFD}[31m b  30,000"), "{text}");
        assert!(text.contains("東京      30,000"), "{text}");
    }

    #[test]
    fn spreadsheets_get_plain_numbers() {
        let expected = "policy,pages,time (s)\nbfs,30000,1234.56\ncapability,30000,999.91\n\
                        quality,30000,999.89\nnone,,\nbroken,,\n";
        assert_eq!(policies().csv(), expected);
    }

    #[test]
    fn browsers_get_the_best_in_bold() {
        let html = policies().html();
        assert!(html.contains("<td class=\"number\"><strong title=\"best\">999.9</strong></td>"));
        assert_eq!(html.matches("title=\"best\"").count(), 2, "equal pages are no merit: {html}");
        assert_eq!(html.matches("<tr>").count(), 6);
        assert_eq!(html.matches("<td").count(), 15, "each row has all cells");
    }

    /// A naive reader of RFC 4180.
    fn read(csv: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
        let mut letters = csv.chars().peekable();
        let mut quoted = false;
        while let Some(letter) = letters.next() {
            match letter {
                '"' if quoted && letters.peek() == Some(&'"') => {
                    field.push('"');
                    letters.next();
                }
                '"' => quoted = !quoted,
                ',' if !quoted => row.push(std::mem::take(&mut field)),
                '\n' if !quoted => {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                letter => field.push(letter),
            }
        }
        assert!(!quoted && field.is_empty() && row.is_empty(), "the last line ends");
        rows
    }

    #[test]
    fn csv_reads_back() {
        let mut random = Random(3);
        let mut draw = |below: u64| random.below(below);
        const LETTERS: [char; 8] = ['a', '"', ',', '\n', '\r', ' ', 'é', ';'];
        for _ in 0..2_000 {
            let columns = 1 + draw(3) as usize;
            let mut text =
                || -> String { (0..draw(5)).map(|_| LETTERS[draw(8) as usize]).collect() };
            let header: Vec<Column> = (0..columns).map(|_| Column::text(&text())).collect();
            let words: Vec<String> = (0..columns).map(|_| text()).collect();
            let numbers: Vec<f64> = (0..columns)
                .map(|_| (draw(1 << 30) as f64 - 5e8) / 3.0 * 10_f64.powi(draw(12) as i32 - 9))
                .collect();
            let names: Vec<String> = header.iter().map(|column| column.name.clone()).collect();
            let rows = vec![
                words.iter().map(|word| Cell::text(word)).collect(),
                numbers.iter().map(|number| Cell::number(*number, 1)).collect(),
            ];
            let table = Table { caption: String::new(), header, rows };
            let read = read(&table.csv());
            assert_eq!(read[..2], [names, words]);
            let again: Vec<f64> = read[2].iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(again, numbers);
        }
    }
}
