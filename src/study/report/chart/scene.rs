//! The curves, bands and reference lines of a chart, in pixels.

use super::{At, Mark, Series, Style};
use crate::study::report::canvas::{Anchor, Canvas, Ink, TEXT_SIZE, escaped, fitted, through};
use crate::study::report::frame::{Plot, markers};
use crate::study::report::scale::Span;
use crate::study::report::slots::Slot;
use crate::study::report::thin::{Point, thin};

/// The plot of a chart (the rectangle between its axes) and the values that its axes span.
pub(super) struct Scene {
    pub(super) plot: Plot,
    pub(super) x: Span,
    pub(super) y: Span,
}

impl Scene {
    fn place(&self, x: f64, y: f64) -> Option<Point> {
        Some((self.plot.x(&self.x, x)?, self.plot.y(&self.y, y)?))
    }

    /// Returns the points of a series in pixels, in one piece for each stretch between two gaps.
    pub(super) fn pieces(&self, series: &Series) -> Vec<Vec<Point>> {
        pieces(series.points.iter().map(|(x, y)| self.place(*x, *y)))
    }

    pub(super) fn band(&self, canvas: &mut Canvas, slot: Slot, series: &Series) {
        let Some(band) = &series.band else { return };
        let edges = band.iter().map(|(x, low, high)| {
            let (x, low) = self.place(*x, *low)?;
            Some((x, low, self.plot.y(&self.y, *high)?))
        });
        let mut d = String::new();
        for piece in pieces(edges) {
            let highs: Vec<Point> = piece.iter().map(|(x, _, high)| (*x, *high)).collect();
            let lows: Vec<Point> = piece.iter().map(|(x, low, _)| (*x, *low)).collect();
            let mut outline = thin(&highs);
            outline.extend(thin(&lows).into_iter().rev());
            d.push_str(&through(&outline));
            d.push('z');
        }
        canvas.open(&slot.group());
        canvas.path(&d, "class=\"band\" fill=\"currentColor\" fill-opacity=\"0.15\"");
        canvas.close();
    }

    pub(super) fn series(&self, canvas: &mut Canvas, slot: Slot, series: &Series, count: usize) {
        let pieces = self.pieces(series);
        let thinned: Vec<Vec<Point>> = pieces
            .iter()
            .map(|piece| if series.style == Style::Marked { piece.clone() } else { thin(piece) })
            .collect();
        // A point between two gaps has no line to draw: a marker shows it.
        let alone = pieces.iter().filter(|piece| piece.len() == 1).flatten().copied();
        let spots: Vec<Point> = match series.style {
            Style::Marked => pieces.iter().flatten().copied().collect(),
            Style::Line if count > 1 => {
                alone.chain(self.spots(&thinned, slot.0 as f64 / count as f64)).collect()
            }
            Style::Line => alone.collect(),
        };
        let d: String = thinned.iter().map(|piece| through(piece)).collect();
        let snap = if series.style == Style::Marked { " data-snap=\"1\"" } else { "" };
        canvas.open(&format!("{} data-name=\"{}\"{snap}", slot.group(), escaped(&series.name)));
        canvas.path(&d, &slot.pen());
        markers(canvas, slot, &spots);
        canvas.close();
    }

    /// Returns where a line has its few markers, in pixels. `shift` moves them a little, so that
    /// those of different lines differ.
    fn spots(&self, pieces: &[Vec<Point>], shift: f64) -> Vec<Point> {
        const COUNT: usize = 5;
        let width = self.plot.width() / COUNT as f64;
        let wanted =
            (0..COUNT).map(|spot| self.plot.left + (spot as f64 + 0.2 + 0.6 * shift) * width);
        wanted
            .filter_map(|x| pieces.iter().find_map(|piece| Some((x, height_at(piece, x)?))))
            .collect()
    }

    pub(super) fn mark_line(&self, canvas: &mut Canvas, mark: &Mark) {
        let Plot { left, top, right, bottom, .. } = self.plot;
        match mark.at {
            At::X(value) if self.x.holds(value) => {
                let x = self.plot.x(&self.x, value).expect("values of a span are drawn");
                canvas.line(Ink::Mark, (x, top), (x, bottom));
            }
            At::Y(value) if self.y.holds(value) => {
                let y = self.plot.y(&self.y, value).expect("values of a span are drawn");
                canvas.line(Ink::Mark, (left, y), (right, y));
            }
            At::X(_) | At::Y(_) => {}
        }
    }

    /// Writes the labels of horizontal reference lines over their left ends.
    pub(super) fn labels_within(&self, canvas: &mut Canvas, marks: &[Mark]) {
        let Plot { left, right, .. } = self.plot;
        for mark in marks {
            if let At::Y(value) = mark.at
                && self.y.holds(value)
                && let Some(y) = self.plot.y(&self.y, value)
            {
                let text = fitted(&mark.label, TEXT_SIZE, right - left - 8.0);
                canvas.text_over(Ink::Label, (left + 8.0, y - 5.0), Anchor::Start, &text);
            }
        }
    }
}

/// Splits a sequence at its gaps, the `None`s; empty pieces are left out.
fn pieces<T>(places: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for place in places {
        match place {
            Some(place) => piece.push(place),
            None if piece.is_empty() => {}
            None => pieces.push(std::mem::take(&mut piece)),
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Returns the y of a line at an x, both in pixels; `None` if the line doesn't pass there.
fn height_at(piece: &[Point], x: f64) -> Option<f64> {
    let pair = piece.windows(2).find(|pair| pair[0].0 <= x && x <= pair[1].0)?;
    let width = pair[1].0 - pair[0].0;
    let share = if width > 0.0 { (x - pair[0].0) / width } else { 0.0 };
    Some(pair[0].1 + share * (pair[1].1 - pair[0].1))
}
