//! Charts: curves over two axes, drawn as SVG.
//!
//! A chart scales its axes to its points and reference lines, and says in words which series has no
//! points. Names are placed at the ends of their lines if all lines end at the right edge and there
//! is room, otherwise in a legend above; neither covers a curve. A point that can't be drawn (NaN,
//! infinite, not positive on a logarithmic scale) is a gap in its line.
//!
//! Cost: a line is drawn with as few points as its shape needs (deviation below a pixel): some
//! dozens for a smooth one, a few a pixel for a rough one, however many it has. [`Chart::csv`] has
//! them all.

mod scene;

use self::scene::Scene;
use super::canvas::{Anchor, Canvas, Ink, TEXT_SIZE, area, fitted, width_of};
use super::frame::{Frame, Heading, Key, Plot, Sample};
use super::scale::{Axis, Span};
use super::slots::Slot;
use super::table;

/// A figure of curves over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title of the figure.
    pub title: String,
    /// A text below the title that says how to read the figure; may be empty.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves. Each has the colour, dashes and marker of its position here.
    pub series: Vec<Series>,
    /// The reference lines.
    pub marks: Vec<Mark>,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the curve in the legend.
    pub name: String,
    /// Points (x, y), in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Ranges (x, low, high) of repeated runs, drawn as a band behind the line; `None`: no band.
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// How the curve is drawn.
    pub style: Style,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line without a marker at each point, for values measured at many points. A few markers
    /// distinguish it from the other lines.
    Line,
    /// A line with a marker at each point, for values measured at few points.
    Marked,
}

/// A reference line across the plot, with its label.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The axis that the line crosses, and the value where it does.
    pub at: At,
    /// The text beside the line.
    pub label: String,
}

/// A value of one of the two axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// A value of the x axis; a reference line there is vertical.
    X(f64),
    /// A value of the y axis; a reference line there is horizontal.
    Y(f64),
}

impl Series {
    /// Creates a line through points, without a band.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, band: None, style: Style::Line }
    }

    /// Creates a line with a marker at each point, without a band.
    pub fn marked(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { style: Style::Marked, ..Self::line(name, points) }
    }
}

impl Mark {
    /// Creates a vertical reference line at a value of the x axis.
    pub fn x(value: f64, label: &str) -> Self {
        Self { at: At::X(value), label: label.to_owned() }
    }

    /// Creates a horizontal reference line at a value of the y axis.
    pub fn y(value: f64, label: &str) -> Self {
        Self { at: At::Y(value), label: label.to_owned() }
    }
}

impl Chart {
    /// Creates a chart without curves.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let (title, subtitle) = (title.to_owned(), String::new());
        Self { title, subtitle, x, y, series: Vec::new(), marks: Vec::new() }
    }

    /// Draws the chart as an SVG file on a white background.
    pub fn svg(&self) -> String {
        self.drawn(&Frame::alone())
    }

    /// Returns all points as CSV, one per line: `series,x,y,low,high`. The last two are the band's;
    /// a point that only the band has, has no `y`; values that are not finite are left out.
    pub fn csv(&self) -> String {
        let mut csv = table::csv_line(["series", "x", "y", "low", "high"].map(str::to_owned));
        let mut line = |name: &str, values: [f64; 4]| {
            let values = values.map(table::csv_number);
            csv.push_str(&table::csv_line([name.to_owned()].into_iter().chain(values)));
        };
        for series in &self.series {
            let mut band = series.band.as_deref().unwrap_or_default().iter().peekable();
            for (x, y) in &series.points {
                let beside = band.next_if(|(at, _, _)| at == x);
                let (low, high) =
                    beside.map_or((f64::NAN, f64::NAN), |(_, low, high)| (*low, *high));
                line(&series.name, [*x, *y, low, high]);
            }
            for (x, low, high) in band {
                line(&series.name, [*x, f64::NAN, *low, *high]);
            }
        }
        csv
    }

    /// Draws the chart as SVG with the size and margins of `frame`.
    pub(super) fn drawn(&self, frame: &Frame) -> String {
        let mut canvas = Canvas::default();
        let description = self.description();
        let heading =
            Heading { title: &self.title, subtitle: &self.subtitle, description: &description };
        let mut top = frame.open(&mut canvas, &heading);
        let x_span = Span::over(&self.x, self.values(At::X));
        let y_span = Span::over(&self.y, self.values(At::Y));
        let y_span = y_span.rounded(&self.y, frame.y_count(top));
        let ticks = y_span.ticks(self.y.format, frame.y_count(top));
        let laid = |top: f64, right: f64| {
            let mut plot = frame.plot(top, &ticks, &self.x.label, right);
            let above = self.labels_above(&plot, &x_span);
            let rows = above.iter().map(|label| label.row + 1).max().unwrap_or(0);
            plot.top += rows as f64 * LABEL_HEIGHT;
            (Scene { plot, x: x_span, y: y_span }, above)
        };
        let (mut scene, mut above) = laid(top, self.room_for_names().min(frame.width / 3.0));
        let names = self.names_at_ends(frame, &scene);
        if names.is_none() {
            let end = frame.legend(&mut canvas, &self.keys(), top);
            (scene, above) = laid(end, 12.0);
            top = end;
        }
        let plot = scene.plot;
        plot.y_name(&mut canvas, &self.y, top);
        plot.y_axis(&mut canvas, &y_span, &ticks);
        plot.x_axis(&mut canvas, &self.x, &x_span);
        self.curves(&mut canvas, frame, &scene);
        for Above { text, left, row } in above {
            let y = plot.top - 5.0 - row as f64 * LABEL_HEIGHT;
            canvas.text_over(Ink::Label, (left, y), Anchor::Start, &text);
        }
        for name in names.unwrap_or_default() {
            self.name_at_end(&mut canvas, frame, &plot, name);
        }
        canvas.raw("</svg>\n");
        canvas.finish()
    }

    /// Draws bands, then reference lines, then curves, each over the ones before.
    fn curves(&self, canvas: &mut Canvas, frame: &Frame, scene: &Scene) {
        let Scene { plot, x, y } = scene;
        let clip = if self.x.range.is_some() || self.y.range.is_some() {
            let id = &frame.id;
            let area = area((plot.left, plot.top), (plot.right, plot.bottom));
            canvas.raw(&format!("<clipPath id=\"{id}-clip\"><rect {area}/></clipPath>\n"));
            format!(" clip-path=\"url(#{id}-clip)\"")
        } else {
            String::new()
        };
        let data = plot.data((&self.x, x), (&self.y, y));
        canvas.open(&format!("class=\"plot\" {data}{clip}"));
        for (slot, series) in self.series.iter().enumerate() {
            scene.band(canvas, Slot(slot), series);
        }
        for mark in &self.marks {
            scene.mark_line(canvas, mark);
        }
        for (slot, series) in self.series.iter().enumerate() {
            scene.series(canvas, Slot(slot), series, self.series.len());
        }
        canvas.close();
        scene.labels_within(canvas, &self.marks);
        if self.series.iter().all(|series| scene.pieces(series).is_empty()) {
            let middle = f64::midpoint(plot.left, plot.right);
            let place = (middle, f64::midpoint(plot.top, plot.bottom));
            canvas.text_over(Ink::Label, place, Anchor::Middle, "No points to draw");
        }
    }

    /// Returns all values of curves, bands and reference lines along one axis; `along` says which.
    fn values(&self, along: fn(f64) -> At) -> impl Iterator<Item = f64> {
        let is_x = matches!(along(0.0), At::X(_));
        let points = self.series.iter().flat_map(|series| &series.points);
        let bands = self.series.iter().filter_map(|series| series.band.as_ref()).flatten();
        let of_points = points.map(move |(x, y)| if is_x { *x } else { *y });
        let of_bands =
            bands.flat_map(move |(x, low, high)| if is_x { [*x, *x] } else { [*low, *high] });
        let of_marks = self.marks.iter().filter_map(move |mark| match mark.at {
            At::X(value) if is_x => Some(value),
            At::Y(value) if !is_x => Some(value),
            _ => None,
        });
        of_points.chain(of_bands).chain(of_marks)
    }

    fn keys(&self) -> Vec<Key> {
        (0..self.series.len()).map(|slot| self.key(slot)).collect()
    }

    fn key(&self, slot: usize) -> Key {
        let series = &self.series[slot];
        let empty = if self.can_draw(series) { "" } else { " (no points)" };
        Key { name: format!("{}{empty}", series.name), slot: Slot(slot), sample: Sample::Line }
    }

    fn can_draw(&self, series: &Series) -> bool {
        let Self { x, y, .. } = self;
        series.points.iter().any(|point| x.scale.draws(point.0) && y.scale.draws(point.1))
    }

    /// Places the labels of vertical reference lines above the plot: in one row if they don't
    /// overlap, otherwise in as many as they need, up to a few.
    fn labels_above(&self, plot: &Plot, x_span: &Span) -> Vec<Above> {
        const ROWS_MAX: usize = 4;
        let mut above: Vec<Above> = Vec::new();
        for mark in &self.marks {
            let At::X(value) = mark.at else { continue };
            let Some(x) = plot.x(x_span, value).filter(|_| x_span.holds(value)) else { continue };
            let text = fitted(&mark.label, TEXT_SIZE, plot.right - plot.left);
            let width = width_of(&text, TEXT_SIZE);
            let left = (x - width / 2.0).min(plot.right - width).max(plot.left);
            let meets = |other: &Above| {
                let right = other.left + width_of(&other.text, TEXT_SIZE);
                left < right + 10.0 && other.left < left + width + 10.0
            };
            let is_free =
                |row: &usize| !above.iter().any(|other| other.row == *row && meets(other));
            let row = (0..ROWS_MAX - 1).find(is_free).unwrap_or(ROWS_MAX - 1);
            above.push(Above { text, left, row });
        }
        above
    }

    /// Returns the width in pixels of the space for names beside the ends of curves.
    fn room_for_names(&self) -> f64 {
        let keys = self.keys();
        keys.iter().map(Key::width).fold(0.0, f64::max) + NAME_GAP + 4.0
    }

    /// Places the names of the curves at their ends: (index of the curve, y of the name, y of the
    /// curve's end), in pixels. `None` if a legend is better.
    fn names_at_ends(&self, frame: &Frame, scene: &Scene) -> Option<Vec<(usize, f64, f64)>> {
        const SHIFT_MAX: f64 = 5.0;
        let fits = self.room_for_names() <= frame.width / 3.0;
        if frame.is_narrow() || self.series.is_empty() || !fits {
            return None;
        }
        let mut ends = Vec::new();
        for (slot, series) in self.series.iter().enumerate() {
            let (x, y) = *scene.pieces(series).last()?.last()?;
            let Plot { right, top, bottom, .. } = scene.plot;
            if right - x > 0.02 * scene.plot.width() || !(top..=bottom).contains(&y) || x > right {
                return None;
            }
            ends.push((slot, y));
        }
        ends.sort_by(|one, other| one.1.total_cmp(&other.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, y)| *y).collect();
        let placed = spread(&wanted, LABEL_HEIGHT);
        let fits = wanted.iter().zip(&placed).all(|(y, place)| (y - place).abs() <= SHIFT_MAX);
        let name = |((slot, from), y): (&(usize, f64), f64)| (*slot, y, *from);
        fits.then(|| ends.iter().zip(placed).map(name).collect())
    }

    /// Draws the name of a curve and the line that connects the name to the curve's end.
    fn name_at_end(
        &self,
        canvas: &mut Canvas,
        frame: &Frame,
        plot: &Plot,
        name: (usize, f64, f64),
    ) {
        let (slot, y, end) = name;
        let left = plot.right + NAME_GAP;
        canvas.line(Ink::Axis, (plot.right + 2.0, end), (left - 2.0, y));
        frame.entry(canvas, &self.key(slot), (left, y), frame.width - left);
    }

    /// Describes the chart in words, for readers who can't see it.
    fn description(&self) -> String {
        let mut text = format!("Curves of {} over {}.", named(&self.y), named(&self.x));
        for series in &self.series {
            let mut drawn = series
                .points
                .iter()
                .filter(|point| self.x.scale.draws(point.0) && self.y.scale.draws(point.1));
            let place = |(x, y): &(f64, f64)| {
                format!("{} at {}", self.y.format.text(*y), self.x.format.text(*x))
            };
            let said = match (drawn.next(), drawn.next_back()) {
                (Some(first), Some(last)) => format!("from {} to {}", place(first), place(last)),
                (Some(only), None) => place(only),
                (None, _) => "no points".to_owned(),
            };
            text.push_str(&format!(" {}: {said}.", series.name));
        }
        text
    }
}

fn named(axis: &Axis) -> &str {
    if axis.label.is_empty() { "values" } else { &axis.label }
}

/// The gap between the plot and the names beside it, in pixels.
const NAME_GAP: f64 = 12.0;
/// The height of a row of labels above the plot, in pixels.
const LABEL_HEIGHT: f64 = 16.0;

/// A label placed above the plot, of a vertical reference line: its text, its left end in pixels,
/// and the number of its row, counted upwards.
struct Above {
    text: String,
    left: f64,
    row: usize,
}

/// Returns ascending positions at least `apart` from each other, as near to `wanted` as possible:
/// the mean of crowded positions doesn't change.
fn spread(wanted: &[f64], apart: f64) -> Vec<f64> {
    // With `apart` times the index subtracted from each position, this is isotonic regression: pool
    // adjacent violators.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (place, y) in wanted.iter().enumerate() {
        let mut pool = (y - place as f64 * apart, 1);
        while let Some((mean, count)) = pools.pop_if(|(mean, _)| *mean > pool.0) {
            let all = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / all as f64, all);
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|(mean, count)| std::iter::repeat_n(*mean, *count));
    means.enumerate().map(|(place, mean)| mean + place as f64 * apart).collect()
}

#[cfg(test)]
mod tests;
