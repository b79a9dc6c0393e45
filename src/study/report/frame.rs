//! The frame around the curves or bars of a figure: title, legend, axes, grid.
//!
//! A figure is drawn as a file (an SVG with its title on white) or for a page, which writes the
//! title itself, in three widths: the browser shows the one that fits its column, so that letters
//! have about the same size on a telephone, in a row of figures and on a wide screen.

use super::canvas::{Anchor, Canvas, Ink, TEXT_SIZE, area, escaped, fitted, px, width_of, wrapped};
use super::number::Format;
use super::scale::{Axis, Span, Tick};
use super::slots::{HATCHINGS, Slot};
use super::thin::Point;

/// The height of a line of text, in pixels.
const LINE: f64 = 18.0;
/// The least gap between two labels of the x axis, in pixels.
const APART: f64 = 16.0;
/// The gap between the symbol of a legend's entry and its name, in pixels.
const SAMPLE_GAP: f64 = 6.0;

/// The size and the margins of a figure, in pixels.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The prefix of the ids in the SVG, unique within a page.
    pub(super) id: String,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The width of the empty margin on the left and on the right.
    margin: f64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Alone,
    /// The figure is for a page, whose style sheet shows drawings of this class if they fit.
    Of(&'static str),
}

/// The rectangle between the axes, in pixels from the figure's upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plot {
    margin: f64,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// The texts of a figure: what it shows, and how to read it.
pub(super) struct Heading<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    /// A description in words for readers who can't see the figure.
    pub(super) description: &'a str,
}

/// An entry of the legend: the symbol of a series, and its name.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) slot: Slot,
    pub(super) sample: Sample,
}

/// The kind of symbol in front of a name in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// A piece of the line, with its marker.
    Line,
    /// A filled square, for bars.
    Patch,
}

impl Key {
    /// Returns the width of the entry, its symbol and its name, in pixels.
    pub(super) fn width(&self) -> f64 {
        self.sample.width() + SAMPLE_GAP + width_of(&self.name, TEXT_SIZE)
    }
}

impl Sample {
    fn width(self) -> f64 {
        match self {
            Self::Line => 26.0,
            Self::Patch => 16.0,
        }
    }
}

impl Frame {
    /// Returns the frame of a figure in a file of its own.
    pub(super) fn alone() -> Self {
        Self {
            id: "figure".to_owned(),
            width: 760.0,
            height: 470.0,
            margin: 14.0,
            kind: Kind::Alone,
        }
    }

    /// Returns the frames of figure number `number` on a page: wide, medium, narrow.
    pub(super) fn of_page(number: usize) -> [Self; 3] {
        let sizes = [("wide", 820.0, 430.0), ("medium", 600.0, 380.0), ("narrow", 420.0, 330.0)];
        sizes.map(|(class, width, height)| {
            let id = format!("figure-{number}-{class}");
            Self { id, width, height, margin: 0.0, kind: Kind::Of(class) }
        })
    }

    /// Whether the frame is so narrow that there is no room for names beside the lines.
    pub(super) fn is_narrow(&self) -> bool {
        self.width < 500.0
    }

    /// Opens the document, with the title if the figure has a file of its own. Returns the y, in
    /// pixels from the top, where the rest may begin.
    pub(super) fn open(&self, canvas: &mut Canvas, heading: &Heading<'_>) -> f64 {
        let Self { id, width, height, .. } = self;
        let size = format!("viewBox=\"0 0 {} {}\"", px(*width), px(*height));
        let (title, description) = (escaped(heading.title), escaped(heading.description));
        if let Kind::Of(class) = self.kind {
            let names = format!("aria-label=\"{title}\" aria-describedby=\"{id}-desc\"");
            canvas.open_svg(&format!("class=\"chart {class}\" {size} role=\"img\" {names}"));
            canvas.raw(&format!("<desc id=\"{id}-desc\">{description}</desc>\n"));
            return 4.0;
        }
        let space = "xmlns=\"http://www.w3.org/2000/svg\"";
        let names = format!("aria-labelledby=\"{id}-title {id}-desc\"");
        let size = format!("{size} width=\"{}\" height=\"{}\"", px(*width), px(*height));
        canvas.open_svg(&format!("{space} class=\"chart\" {size} role=\"img\" {names}"));
        canvas.raw(&format!("<title id=\"{id}-title\">{title}</title>\n"));
        canvas.raw(&format!("<desc id=\"{id}-desc\">{description}</desc>\n"));
        canvas.rect(Ink::Page, (0.0, 0.0), (*width, *height));
        self.head(canvas, heading)
    }

    fn head(&self, canvas: &mut Canvas, heading: &Heading<'_>) -> f64 {
        let room = self.width - 2.0 * self.margin;
        let mut y = 8.0;
        for line in wrapped(heading.title, 17.0, room, 2) {
            y += 21.0;
            canvas.text(Ink::Title, (self.margin, y), Anchor::Start, &line);
        }
        for line in wrapped(heading.subtitle, TEXT_SIZE, room, 3) {
            y += LINE;
            canvas.text(Ink::Label, (self.margin, y), Anchor::Start, &line);
        }
        y + 10.0
    }

    /// Draws the legend from the y `top` on, in as many lines as it needs. Returns the y where it
    /// ends.
    pub(super) fn legend(&self, canvas: &mut Canvas, keys: &[Key], top: f64) -> f64 {
        const GAP: f64 = 20.0;
        let Self { margin, width: frame, .. } = *self;
        let right = frame - margin;
        let (mut x, mut y) = (margin, top + 9.0);
        for key in keys {
            let width = key.width().min(right - margin);
            if x > margin && x + width > right {
                (x, y) = (margin, y + LINE);
            }
            self.entry(canvas, key, (x, y), right - x);
            x += width + GAP;
        }
        if keys.is_empty() { top } else { y + LINE - 3.0 }
    }

    /// Draws the symbol and name of an entry of the legend, from the point given to the right, in
    /// at most `room` pixels.
    pub(super) fn entry(&self, canvas: &mut Canvas, key: &Key, (x, y): Point, room: f64) {
        let width = key.sample.width();
        let line = format!("M{} {}h{}", px(x), px(y), px(width));
        match key.sample {
            Sample::Line => {
                canvas.open(&key.slot.group());
                canvas.path(&line, &key.slot.pen());
                markers(canvas, key.slot, &[(x + width / 2.0, y)]);
            }
            Sample::Patch => {
                canvas.open(&key.slot.group());
                self.patch(canvas, key.slot, (x, y - 6.0), (x + width, y + 6.0));
            }
        }
        canvas.close();
        let name = fitted(&key.name, TEXT_SIZE, room - width - SAMPLE_GAP);
        let place = (x + width + SAMPLE_GAP, y + 4.3);
        canvas.text(Ink::Name, place, Anchor::Start, &name);
    }

    /// Draws a filled rectangle between two corners, with the hatching of its slot. The caller has
    /// opened the slot's group, which gives the colour.
    pub(super) fn patch(&self, canvas: &mut Canvas, slot: Slot, from: Point, to: Point) {
        let (area, id) = (area(from, to), &self.id);
        canvas.raw(&format!("<rect {area} fill=\"currentColor\"/>\n"));
        if let Some(hatching) = slot.hatching() {
            canvas.raw(&format!("<rect {area} fill=\"url(#{id}-hatch{hatching})\"/>\n"));
        }
    }

    /// Writes the SVG definitions of the hatchings that patches refer to.
    pub(super) fn hatchings(&self, canvas: &mut Canvas) {
        let id = &self.id;
        canvas.raw("<defs>\n");
        for (number, lines) in HATCHINGS.iter().enumerate() {
            canvas.raw(&format!(
                "<pattern id=\"{id}-hatch{number}\" width=\"6\" height=\"6\" \
                 patternUnits=\"userSpaceOnUse\"><path d=\"{lines}\" class=\"hatch\" \
                 fill=\"none\" stroke=\"#ffffff\" stroke-opacity=\"0.35\"/></pattern>\n"
            ));
        }
        canvas.raw("</defs>\n");
    }

    /// Returns the rectangle for the plot: below `top`, right of the labels of the y axis, and
    /// `right` pixels from the frame's right edge. The name of the y axis is above it.
    pub(super) fn plot(&self, top: f64, ticks: &[Tick], x_label: &str, right: f64) -> Plot {
        let labels = ticks.iter().map(|tick| width_of(&tick.label, TEXT_SIZE));
        let below = if x_label.is_empty() { 28.0 } else { 46.0 };
        Plot {
            margin: self.margin,
            left: self.margin + labels.fold(14.0, f64::max) + 10.0,
            top: top + 24.0,
            right: self.width - self.margin - right,
            bottom: self.height - below,
        }
    }

    /// Returns the number of ticks that a y axis has room for, if the plot begins below `top`.
    pub(super) fn y_count(&self, top: f64) -> usize {
        (((self.height - top - 70.0) / 46.0) as usize).clamp(2, 10)
    }
}

impl Plot {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn x(&self, span: &Span, value: f64) -> Option<f64> {
        Some(self.left + span.share(value)? * self.width())
    }

    pub(super) fn y(&self, span: &Span, value: f64) -> Option<f64> {
        Some(self.bottom - span.share(value)? * (self.bottom - self.top))
    }

    /// Draws the grid and the labels of the y axis.
    pub(super) fn y_axis(&self, canvas: &mut Canvas, span: &Span, ticks: &[Tick]) {
        for tick in ticks {
            let y = self.y(span, tick.value).expect("ticks lie on their axis");
            canvas.line(Ink::Grid, (self.left, y), (self.right, y));
            canvas.text(Ink::Label, (self.left - 8.0, y + 4.3), Anchor::End, &tick.label);
        }
    }

    /// Writes the name of the y axis below `top`, above everything that belongs to the plot.
    pub(super) fn y_name(&self, canvas: &mut Canvas, axis: &Axis, top: f64) {
        let label = fitted(&axis.label, TEXT_SIZE, self.right - self.margin);
        canvas.text(Ink::Label, (self.margin, top + 13.0), Anchor::Start, &label);
    }

    /// Draws the grid, the labels, the name and the line of the x axis.
    pub(super) fn x_axis(&self, canvas: &mut Canvas, axis: &Axis, span: &Span) {
        for tick in &self.x_ticks(span, axis.format) {
            let x = self.x(span, tick.value).expect("ticks lie on their axis");
            canvas.line(Ink::Grid, (x, self.top), (x, self.bottom));
            canvas.line(Ink::Axis, (x, self.bottom), (x, self.bottom + 4.0));
            canvas.text(Ink::Label, (x, self.bottom + 18.0), Anchor::Middle, &tick.label);
        }
        self.ground(canvas, &axis.label);
    }

    /// Draws the line of the x axis, and `label` as the axis's name.
    pub(super) fn ground(&self, canvas: &mut Canvas, label: &str) {
        canvas.line(Ink::Axis, (self.left, self.bottom), (self.right, self.bottom));
        let middle = f64::midpoint(self.left, self.right);
        let label = fitted(label, TEXT_SIZE, self.width());
        canvas.text(Ink::Label, (middle, self.bottom + 37.0), Anchor::Middle, &label);
    }

    /// Returns ticks of the x axis: as many as there is room for with their labels.
    fn x_ticks(&self, span: &Span, format: Format) -> Vec<Tick> {
        let fits = |ticks: &[Tick]| {
            let middle = |tick: &Tick| self.x(span, tick.value).unwrap_or(self.left);
            ticks.windows(2).all(|pair| {
                let labels =
                    width_of(&pair[0].label, TEXT_SIZE) + width_of(&pair[1].label, TEXT_SIZE);
                middle(&pair[1]) - middle(&pair[0]) >= labels / 2.0 + APART
            })
        };
        let most = ((self.width() / 64.0) as usize).clamp(2, 10);
        let choices = (1..=most).rev().map(|count| span.ticks(format, count));
        choices.into_iter().find(|ticks| fits(ticks)).unwrap_or_default()
    }

    /// Returns the attributes by which the page's script finds the values at a point of the plot:
    /// scale, range, position and format of each axis.
    pub(super) fn data(&self, (x, x_span): (&Axis, &Span), (y, y_span): (&Axis, &Span)) -> String {
        let axis = |axis: &Axis, span: &Span, from: f64, to: f64| {
            let (scale, format) = (axis.scale.name(), axis.format.name());
            let Span { low, high, .. } = span;
            format!("{scale} {low:e} {high:e} {} {} {format}", px(from), px(to))
        };
        let x = axis(x, x_span, self.left, self.right);
        let y = axis(y, y_span, self.bottom, self.top);
        format!("data-x=\"{x}\" data-y=\"{y}\"")
    }
}

/// Draws a slot's marker at each of the places. The caller has opened the slot's group, which gives
/// the colour.
pub(super) fn markers(canvas: &mut Canvas, slot: Slot, places: &[Point]) {
    let d: String = places.iter().map(|place| slot.marker(*place)).collect();
    let looks = if slot.is_hollow() {
        "class=\"hollow\" fill=\"#ffffff\" stroke=\"currentColor\" stroke-width=\"1.6\""
    } else {
        "class=\"solid\" fill=\"currentColor\""
    };
    canvas.path(&d, looks);
}
