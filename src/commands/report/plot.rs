//! Two plots over time as inline SVG: pages per minute, and replies by status.

use super::series::{Interval, Series};
use crate::commands::show::short;
use crate::ground::time::UnixTime;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The size of the plotting area and its margins, in pixels.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 24.0;

/// What the second plot stacks: the place in [`Interval::by_class`], a name and a colour. Colours
/// differ in lightness, too.
const CLASSES: [(usize, &str, &str); 5] = [
    (2, "2xx", "#2a78b5"),
    (3, "3xx", "#8cc0e0"),
    (4, "4xx", "#f0b030"),
    (5, "5xx", "#c0392b"),
    (0, "failed", "#666666"),
];

/// Writes the plots, if there is more than one interval.
///
/// # Errors
/// The result can't be written.
pub(super) fn write(out: &mut dyn Write, series: &Series) -> io::Result<()> {
    let intervals: Vec<(u64, &Interval)> = series.intervals().collect();
    let Some((last, _)) = intervals.last().filter(|_| intervals.len() > 1) else { return Ok(()) };
    let length = series.seconds() * 1_000_000;
    let time = (intervals[0].0, last + length);
    let per_minute = 60.0 / series.seconds() as f64;
    let pages = |interval: &Interval| vec![interval.pages as f64 * per_minute];
    let classes = |interval: &Interval| {
        let classes = CLASSES.iter();
        classes.map(|(class, ..)| interval.by_class[*class] as f64 * per_minute).collect()
    };
    let names = [("pages", CLASSES[0].2)];
    out.write_all(plot("Pages per minute", &names, &intervals, time, length, &pages).as_bytes())?;
    let names = CLASSES.map(|(_, name, colour)| (name, colour));
    let title = "Replies per minute, by status";
    out.write_all(plot(title, &names, &intervals, time, length, &classes).as_bytes())
}

/// Draws stacked bars.
fn plot(
    title: &str,
    names: &[(&str, &str)],
    intervals: &[(u64, &Interval)],
    (from, to): (u64, u64),
    length: u64,
    values: &dyn Fn(&Interval) -> Vec<f64>,
) -> String {
    let most = intervals.iter().map(|(_, it)| values(it).iter().sum::<f64>()).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let x = |at: u64| LEFT + (at - from) as f64 / (to - from) as f64 * WIDTH;
    let mut paths = vec![String::new(); names.len()];
    for (at, interval) in intervals {
        let mut y = TOP + HEIGHT;
        let (left, width) = (x(*at), (x(at + length) - x(*at)).max(0.5));
        for (path, value) in paths.iter_mut().zip(values(interval)) {
            let height = value / most * HEIGHT;
            y -= height;
            if height > 0.0 {
                let _ = write!(path, "M{left:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
            }
        }
    }
    let (all_width, all_height) = (LEFT + WIDTH + 10.0, TOP + HEIGHT + BOTTOM);
    let mut out = format!(
        "<svg viewBox=\"0 0 {all_width} {all_height}\" width=\"{all_width}\" \
         height=\"{all_height}\" role=\"img\" aria-label=\"{title}\">\n\
         <text x=\"{LEFT}\" y=\"14\">{title}</text>\n"
    );
    for (at, ((name, colour), path)) in names.iter().zip(&paths).enumerate() {
        let _ = writeln!(out, "<path fill=\"{colour}\" d=\"{path}\"/>");
        if names.len() > 1 {
            let at = LEFT + 330.0 + 100.0 * at as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{at}\" y=\"4\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"14\">{name}</text>",
                at + 18.0
            );
        }
    }
    let (low, right) = (TOP + HEIGHT, LEFT + WIDTH);
    let date = |us: u64| UnixTime::from_micros(us).civil().to_seconds();
    let _ = writeln!(
        out,
        "<path fill=\"none\" stroke=\"#888\" d=\"M{LEFT} {TOP}V{low}H{right}\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <text x=\"{}\" y=\"{low}\" text-anchor=\"end\">0</text>\
         <text x=\"{LEFT}\" y=\"{}\">{}</text>\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\n</svg>",
        LEFT - 6.0,
        TOP + 8.0,
        short(most.ceil() as u64),
        LEFT - 6.0,
        low + 17.0,
        date(from),
        low + 17.0,
        date(to)
    );
    out
}
