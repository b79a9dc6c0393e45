//! Stacked bars: amounts of groups, drawn as SVG.
//!
//! Bars start at zero. Negative amounts and NaN have no bar. Each bar has its values as a tooltip
//! of the browser, and shows them where there is room. The parts differ by colour, by order and by
//! hatching.

use super::canvas::{Anchor, Canvas, Ink, TEXT_SIZE, escaped, fitted, px, width_of};
use super::frame::{Frame, Heading, Key, Plot, Sample};
use super::scale::{Axis, Scale, Span};
use super::slots::Slot;
use super::table;

/// A figure of bars: amounts by group and part.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title of the figure.
    pub title: String,
    /// A text below the title that says how to read the figure; may be empty.
    pub subtitle: String,
    /// What the groups are, written below the x axis; may be empty.
    pub x_label: String,
    /// The axis of the amounts. It is always linear and starts at 0: its scale and the low end of
    /// its range are ignored.
    pub y: Axis,
    /// The names of the parts. The bars of a part have the colour of its position here.
    pub parts: Vec<String>,
    /// The groups, from the left.
    pub groups: Vec<Group>,
}

/// The amounts of one group, drawn as bars on top of each other.
#[derive(Clone, Debug)]
pub struct Group {
    /// The label below the bars of the group.
    pub label: String,
    /// The amount of each part, in the order of [`Bars::parts`]; missing ones have no bar.
    pub amounts: Vec<f64>,
}

impl Bars {
    /// Draws the bars as an SVG file on a white background.
    pub fn svg(&self) -> String {
        self.drawn(&Frame::alone())
    }

    /// Returns all amounts as CSV, one per line: `group,part,amount`.
    pub fn csv(&self) -> String {
        let mut csv = table::csv_line(["group", "part", "amount"].map(str::to_owned));
        for group in &self.groups {
            for (part, amount) in self.parts.iter().zip(&group.amounts) {
                let amount = table::csv_number(*amount);
                csv.push_str(&table::csv_line([group.label.clone(), part.clone(), amount]));
            }
        }
        csv
    }

    /// Draws the bars as SVG with the size and margins of `frame`.
    pub(super) fn drawn(&self, frame: &Frame) -> String {
        let mut canvas = Canvas::default();
        let description = self.description();
        let heading =
            Heading { title: &self.title, subtitle: &self.subtitle, description: &description };
        let mut top = frame.open(&mut canvas, &heading);
        frame.hatchings(&mut canvas);
        top = frame.legend(&mut canvas, &self.keys(), top);
        let axis = Axis {
            scale: Scale::Linear,
            range: self.y.range.map(|(low, high)| (0.0, low.max(high))),
            ..self.y.clone()
        };
        let amounts = self.groups.iter().map(|group| self.height(group));
        let span = Span::over(&axis, std::iter::once(0.0).chain(amounts));
        let span = span.rounded(&axis, frame.y_count(top));
        let ticks = span.ticks(axis.format, frame.y_count(top));
        let plot = frame.plot(top, &ticks, &self.x_label, 4.0);
        plot.y_axis(&mut canvas, &span, &ticks);
        plot.y_name(&mut canvas, &axis, top);
        for place in 0..self.groups.len() {
            self.group(&mut canvas, frame, (&plot, &span), place);
        }
        plot.ground(&mut canvas, &self.x_label);
        self.labels(&mut canvas, &plot);
        canvas.raw("</svg>\n");
        canvas.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let key = |(slot, name): (usize, &String)| Key {
            name: name.clone(),
            slot: Slot(slot),
            sample: Sample::Patch,
        };
        self.parts.iter().enumerate().map(key).collect()
    }

    /// Returns those amounts of a group that have a bar: the index of the part, and the amount.
    fn amounts<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (usize, f64)> + 'a {
        let amounts = group.amounts.iter().copied().take(self.parts.len()).enumerate();
        amounts.filter(|(_, amount)| Scale::Linear.draws(*amount) && *amount >= 0.0)
    }

    /// Returns the height of a group's stacked bars in the unit of the amounts; the axis must
    /// include it.
    fn height(&self, group: &Group) -> f64 {
        self.amounts(group).map(|(_, amount)| amount).sum()
    }

    fn group(
        &self,
        canvas: &mut Canvas,
        frame: &Frame,
        (plot, span): (&Plot, &Span),
        place: usize,
    ) {
        let group = &self.groups[place];
        let width = plot.width() / self.groups.len() as f64;
        let left = plot.left + width * (place as f64 + 0.14);
        let broad = (width * 0.72).min(110.0);
        let left = left + (width * 0.72 - broad) / 2.0;
        let mut foot = 0.0;
        for (part, amount) in self.amounts(group) {
            let from = foot;
            foot += amount;
            let height = |value: f64| plot.y(span, value).map(|y| y.max(plot.top));
            let (Some(low), Some(high)) = (height(from), height(foot)) else { continue };
            // The bar is half a pixel narrower on each side: a gap to the next one.
            let corners = ((left + 0.5, low), (left + broad - 0.5, high));
            let text = self.y.format.text(amount);
            let name = format!("{}, {}: {text}", group.label, self.parts[part]);
            canvas.open(&Slot(part).group());
            canvas.raw(&format!("<title>{}</title>\n", escaped(&name)));
            frame.patch(canvas, Slot(part), corners.0, corners.1);
            canvas.close();
            self.amount(canvas, Slot(part), corners, &text);
        }
    }

    /// Writes the text of an amount into its bar, if there is room.
    fn amount(
        &self,
        canvas: &mut Canvas,
        slot: Slot,
        ((left, low), (right, high)): ((f64, f64), (f64, f64)),
        text: &str,
    ) {
        let middle = f64::midpoint(left, right);
        if width_of(text, TEXT_SIZE) + 3.0 > right - left || low - high < 17.0 {
            return;
        }
        let (x, y) = (px(middle), px(f64::midpoint(low, high) + 4.3));
        let (ink, text) = (slot.ink_upon(), escaped(text));
        canvas.raw(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" class=\"upon\" fill=\"{ink}\" \
             pointer-events=\"none\">{text}</text>\n"
        ));
    }

    /// Writes the labels below the groups: all of them, or only every second, third... if there is
    /// no room.
    fn labels(&self, canvas: &mut Canvas, plot: &Plot) {
        let labels = self.groups.iter().map(|group| width_of(&group.label, TEXT_SIZE));
        let widest = labels.fold(0.0, f64::max).min(90.0) + 10.0;
        let width = plot.width() / self.groups.len().max(1) as f64;
        let stride = (widest / width).ceil().max(1.0) as usize;
        for (place, group) in self.groups.iter().enumerate().step_by(stride) {
            let middle = plot.left + width * (place as f64 + 0.5);
            let label = fitted(&group.label, TEXT_SIZE, width * stride as f64 - 6.0);
            canvas.text(Ink::Label, (middle, plot.bottom + 18.0), Anchor::Middle, &label);
        }
        if !self.groups.iter().any(|group| self.amounts(group).next().is_some()) {
            let middle = f64::midpoint(plot.left, plot.right);
            let place = (middle, f64::midpoint(plot.top, plot.bottom));
            canvas.text_over(Ink::Label, place, Anchor::Middle, "No amounts to draw");
        }
    }

    /// Describes the figure in words, for readers who can't see it.
    fn description(&self) -> String {
        let mut text = format!("Bars of {}.", self.y.label);
        for group in &self.groups {
            let amount = |(part, amount): (usize, f64)| {
                format!("{} {}", self.parts[part], self.y.format.text(amount))
            };
            let amounts: Vec<String> = self.amounts(group).map(amount).collect();
            text.push_str(&format!(" {}: {}.", group.label, amounts.join(", ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::report::number::Format;
    use crate::study::report::tests::xml;

    fn processor() -> Bars {
        let group = |label: &str, amounts: &[f64]| Group {
            label: label.to_owned(),
            amounts: amounts.into(),
        };
        Bars {
            title: "Where the time goes".to_owned(),
            subtitle: String::new(),
            x_label: "connections".to_owned(),
            y: Axis::linear("share of time", Format::Share),
            parts: ["user", "system", "idle"].map(str::to_owned).to_vec(),
            groups: vec![
                group("1", &[0.2, 0.1, 0.7]),
                group("16", &[0.5, 0.3, 0.2]),
                group("64", &[0.6, f64::NAN, -0.4, 9.0]), // one bar
            ],
        }
    }

    /// Returns the heights of the bars of a figure, without their hatching.
    fn heights(svg: &str) -> Vec<f64> {
        let bars = xml::elements(svg).into_iter().filter(|(name, attributes)| {
            name == "rect" && attributes.get("fill").is_some_and(|fill| fill == "currentColor")
        });
        // The first three belong to the legend.
        bars.skip(3).map(|(_, attributes)| attributes["height"].parse().unwrap()).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_amounts() {
        let heights = heights(&processor().svg());
        assert_eq!(heights.len(), 7, "NaN, negative and beyond the parts have none");
        let unit = heights[0] / 0.2;
        for (height, amount) in heights.iter().zip([0.2, 0.1, 0.7, 0.5, 0.3, 0.2, 0.6]) {
            assert!((height / unit - amount).abs() < 0.001, "{height} for {amount}");
        }
    }

    #[test]
    fn a_figure_without_amounts_says_so() {
        let none = Bars { groups: Vec::new(), ..processor() };
        assert!(none.svg().contains("No amounts to draw"));
        xml::check(&none.svg()).unwrap();
    }

    #[test]
    fn csv_has_all_amounts() {
        let csv = processor().csv();
        assert!(csv.starts_with("group,part,amount\n1,user,0.2\n1,system,0.1\n"), "{csv}");
        assert!(csv.ends_with("64,user,0.6\n64,system,\n64,idle,-0.4\n"), "{csv}");
    }
}
