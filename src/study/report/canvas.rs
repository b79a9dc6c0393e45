//! A canvas that writes SVG: escapes texts, rounds pixels, and styles everything but the series.
//!
//! Every element has its style as attributes, for programs that don't support style sheets, and a
//! class by which a page may change it: rules of a style sheet take precedence over attributes.

use super::thin::Point;
use std::fmt::Write;

/// The size of the font of most texts, in pixels.
pub(super) const TEXT_SIZE: f64 = 12.5;
/// The fonts of all texts: those that systems have, with digits of equal width if possible.
const FONTS: &str =
    "font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif\"";

/// The purpose of a line or a text, which decides its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// The background of the page.
    Page,
    /// Grid lines at the ticks of the axes.
    Grid,
    /// The line of an axis itself.
    Axis,
    /// Reference lines.
    Mark,
    /// The title of a figure in its own file.
    Title,
    /// Names of series.
    Name,
    /// Labels of axes, ticks and marks, and the subtitle.
    Label,
}

impl Ink {
    fn looks(self) -> &'static str {
        match self {
            Self::Page => r##"class="page" fill="#ffffff""##,
            Self::Grid => r##"class="grid" stroke="#e4e6ea" stroke-width="1""##,
            Self::Axis => r##"class="axis" stroke="#8a9099" stroke-width="1""##,
            Self::Mark => {
                r##"class="mark" stroke="#6b727c" stroke-width="1.2" stroke-dasharray="5 3""##
            }
            Self::Title => r##"class="name" fill="#1f2329" font-size="17" font-weight="600""##,
            Self::Name => r##"class="name" fill="#1f2329""##,
            Self::Label => r##"class="label" fill="#59606a""##,
        }
    }
}

/// Which end of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG document being written.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// Returns the document as text; the caller has closed all elements.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Opens the `svg` element with these attributes.
    pub(super) fn open_svg(&mut self, attributes: &str) {
        self.raw(&format!("<svg {attributes} {FONTS} font-size=\"{TEXT_SIZE}\">\n"));
    }

    /// Appends markup as it is; the caller has escaped its contents.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub(super) fn open(&mut self, attributes: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        self.raw(&format!("<g{space}{attributes}>\n"));
    }

    pub(super) fn close(&mut self) {
        self.raw("</g>\n");
    }

    pub(super) fn rect(&mut self, ink: Ink, from: Point, to: Point) {
        let area = area(from, to);
        self.raw(&format!("<rect {area} {}/>\n", ink.looks()));
    }

    pub(super) fn line(&mut self, ink: Ink, from: Point, to: Point) {
        let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
        let looks = ink.looks();
        self.raw(&format!("<path d=\"M{x1} {y1}L{x2} {y2}\" {looks}/>\n"));
    }

    /// Draws a path `d` (in SVG's notation) in the colour of the surrounding group.
    pub(super) fn path(&mut self, d: &str, attributes: &str) {
        if !d.is_empty() {
            self.raw(&format!("<path d=\"{d}\" {attributes}/>\n"));
        }
    }

    pub(super) fn text(&mut self, ink: Ink, place: Point, anchor: Anchor, text: &str) {
        self.words(place, anchor, text, ink.looks());
    }

    /// Writes a text that may lie over lines: it has an outline in the page's colour.
    pub(super) fn text_over(&mut self, ink: Ink, place: Point, anchor: Anchor, text: &str) {
        let halo = r##"class="halo" fill="none" stroke="#ffffff" stroke-width="4""##;
        self.words(place, anchor, text, &format!("{halo} stroke-linejoin=\"round\""));
        self.text(ink, place, anchor, text);
    }

    fn words(&mut self, place: Point, anchor: Anchor, text: &str, looks: &str) {
        let (x, y) = (px(place.0), px(place.1));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escaped(text);
        self.raw(&format!("<text x=\"{x}\" y=\"{y}\"{anchor} {looks}>{text}</text>\n"));
    }
}

/// Returns the attributes of a rectangle with these two opposite corners.
pub(super) fn area(from: Point, to: Point) -> String {
    let (left, right) = (from.0.min(to.0), from.0.max(to.0));
    let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
    let (width, height) = (px(right - left), px(bottom - top));
    format!("x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\"", px(left), px(top))
}

/// Returns the data of an SVG path that joins the points by straight lines.
pub(super) fn through(points: &[Point]) -> String {
    let mut d = String::with_capacity(points.len() * 14);
    for (place, (x, y)) in points.iter().enumerate() {
        let step = ["M", "L", " "][place.min(2)];
        write!(d, "{step}{} {}", px(*x), px(*y)).expect("text grows");
    }
    d
}

/// Formats a number of pixels for SVG, with at most two decimals.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Escapes a text for XML and HTML, both as contents of elements and in quoted attributes.
/// Characters that XML forbids become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(letter),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            letter if letter.is_control() => escaped.push('\u{FFFD}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Estimates the width of a text in pixels: fonts differ by a few per cent.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let wide = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
        'f' | 't' | 'r' | 'I' | ' ' | '(' | ')' | '[' | ']' | '-' | '/' => 0.38,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' => 0.88,
        'A'..='Z' | '&' | '+' | '=' | '<' | '>' | '∞' => 0.66,
        '\u{1100}'.. if !('\u{2000}'..='\u{2BFF}').contains(&letter) => 1.0,
        '0'..='9' => 0.63,
        _ => 0.58,
    };
    text.chars().map(wide).sum::<f64>() * size
}

/// Returns the text, cut with an ellipsis if it is wider than `room` pixels.
pub(super) fn fitted(text: &str, size: f64, room: f64) -> String {
    if width_of(text, size) <= room {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for letter in text.chars() {
        fitted.push(letter);
        if width_of(&fitted, size) + size * 0.88 > room {
            fitted.pop();
            break;
        }
    }
    fitted.push('…');
    fitted
}

/// Splits the text into at most `lines_max` lines, each at most `room` pixels wide.
pub(super) fn wrapped(text: &str, size: f64, room: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = lines.len() == lines_max;
        match lines.last_mut() {
            // The last line takes all remaining words, and is cut at the end.
            Some(line) if is_last || width_of(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fitted(line, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cant_leave_their_place() {
        for (text, expected) in [
            ("a < b & \"c\" > 'd'", "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;"),
            ("]]><![CDATA[", "]]&gt;&lt;![CDATA["),
            ("\0\u{1b}\u{85}\u{FFFF}", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"), // XML 1.0, 2.2
            ("tab\tnew\nline", "tab\tnew\nline"),
            ("Zürich 東京", "Zürich 東京"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn pixels_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.001, "0"),
            (12.0, "12"),
            (12.5, "12.5"),
            (100.0, "100"),
            (1.239, "1.24"),
        ] {
            assert_eq!(px(value), expected);
        }
        assert_eq!(through(&[(1.0, 2.0), (3.0, 4.0), (5.5, 6.0)]), "M1 2L3 4 5.5 6");
        assert_eq!(through(&[]), "");
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        assert_eq!(fitted("short", 10.0, 100.0), "short");
        let cut = fitted(&"x".repeat(100), 10.0, 100.0);
        assert!(cut.ends_with("x…") && width_of(&cut, 10.0) <= 100.0, "{cut}");
        let lines = wrapped("the quick brown fox jumps over the lazy dog", 10.0, 90.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("the quick") && lines[1].ends_with('…'), "{lines:?}");
        assert!(wrapped("  ", 10.0, 90.0, 2).is_empty());
    }
}
