//! Laws of all written forms: well-formed whatever the names, equal for equal values, and nothing
//! loaded from anywhere.

pub(super) mod xml;

use super::bars::{Bars, Group};
use super::chart::{Chart, Mark, Series, Style};
use super::html::{Block, Figure, Page};
use super::number::Format;
use super::scale::{Axis, Scale};
use super::table::{Cell, Column, Table};
use crate::ground::random::Random;

/// Names that a hostile page author might choose.
const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"' onload='x' &amp; & <",
    "]]></style></svg></script>\u{1b}\0",
    "--> <!-- \u{FFFF}",
    "مرحبا 東京 \u{202E}x",
    "",
];

impl Random {
    fn name(&mut self) -> String {
        HOSTILE[self.below(HOSTILE.len())].repeat(1 + self.below(3))
    }

    /// Returns any number, and often one that can't be drawn.
    fn value(&mut self) -> f64 {
        const ODD: [f64; 9] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            -0.0,
            0.0,
            -1e300,
            5e-324,
        ];
        let share = self.below(1 << 30) as f64 / f64::from(1 << 30);
        match self.below(8) {
            0 => ODD[self.below(ODD.len())],
            1 => (share - 0.5) * 10_f64.powi(self.below(40) - 20),
            _ => share * 1_000.0,
        }
    }

    fn values(&mut self) -> Vec<f64> {
        (0..self.below(12)).map(|_| self.value()).collect()
    }

    fn axis(&mut self) -> Axis {
        let formats = [Format::Count, Format::Short, Format::Share, Format::Power];
        Axis {
            label: self.name(),
            scale: [Scale::Linear, Scale::Log2, Scale::Log10][self.below(3)],
            format: *formats.get(self.below(5)).unwrap_or(&Format::Decimal(2)),
            range: (self.below(3) == 0).then(|| (self.value(), self.value())),
        }
    }

    fn chart(&mut self) -> Chart {
        let mut chart = Chart::new(&self.name(), self.axis(), self.axis());
        chart.subtitle = self.name();
        for _ in 0..self.below(11) {
            let points = self.values().into_iter().map(|x| (x, self.value())).collect();
            let band = self.values().into_iter().map(|x| (x, self.value(), self.value())).collect();
            chart.series.push(Series {
                name: self.name(),
                points,
                band: (self.below(2) == 0).then_some(band),
                style: [Style::Line, Style::Marked][self.below(2)],
            });
        }
        for _ in 0..self.below(4) {
            chart.marks.push(Mark::x(self.value(), &self.name()));
            chart.marks.push(Mark::y(self.value(), &self.name()));
        }
        chart
    }

    fn bars(&mut self) -> Bars {
        let group = |draw: &mut Self| Group { label: draw.name(), amounts: draw.values() };
        Bars {
            title: self.name(),
            subtitle: self.name(),
            x_label: self.name(),
            y: self.axis(),
            parts: (0..self.below(10)).map(|_| self.name()).collect(),
            groups: (0..self.below(10)).map(|_| group(self)).collect(),
        }
    }

    fn table(&mut self) -> Table {
        let cell = |draw: &mut Self| match draw.below(3) {
            0 => Cell::Missing,
            1 => Cell::text(&draw.name()),
            _ => Cell::number(draw.value(), draw.below(4)),
        };
        let column = |draw: &mut Self| Column::number(&draw.name(), &draw.name());
        Table {
            caption: self.name(),
            header: (0..self.below(5)).map(|_| column(self)).collect(),
            rows: (0..self.below(5))
                .map(|_| (0..self.below(6)).map(|_| cell(self)).collect())
                .collect(),
        }
    }

    fn page(&mut self) -> Page {
        let blocks = vec![
            Block::Heading(self.name()),
            Block::Text(self.name()),
            Block::Table(self.table()),
            Block::Chart(self.chart()),
            Block::Heading(self.name()),
            Block::Figures(vec![Figure::Chart(self.chart()), Figure::Bars(self.bars())]),
            Block::Heading(self.name()),
            Block::Code(self.name()),
            Block::Details { summary: self.name(), blocks: vec![Block::Bars(self.bars())] },
        ];
        Page { title: self.name(), lead: self.name(), blocks }
    }
}

/// Checks that no number of a drawing is NaN or lies far outside of it.
fn check_drawing(svg: &str) -> Result<(), String> {
    xml::check(svg)?;
    for (element, attributes) in xml::elements(svg) {
        for (name, value) in &attributes {
            if !matches!(name.as_str(), "d" | "x" | "y" | "width" | "height" | "viewBox") {
                continue;
            }
            let of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
            let of_path = |letter: char| of_number(letter) || " -MLlahvz".contains(letter);
            let numbers = value.split(|letter| !of_number(letter)).filter(|text| !text.is_empty());
            let is_near = |text: &str| text.parse().is_ok_and(|number: f64| number < 1e8);
            if !value.chars().all(of_path) || !numbers.into_iter().all(is_near) {
                return Err(format!("{element} {name}: {value}"));
            }
        }
    }
    Ok(())
}

#[test]
fn drawings_are_well_formed_whatever_they_are_given() {
    let mut draw = Random(1);
    for round in 0..600 {
        let chart = draw.chart();
        check_drawing(&chart.svg()).unwrap_or_else(|wrong| panic!("{round}: {wrong} {chart:?}"));
        let bars = draw.bars();
        check_drawing(&bars.svg()).unwrap_or_else(|wrong| panic!("{round}: {wrong} {bars:?}"));
        assert!(!chart.csv().contains("NaN"));
    }
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    let mut draw = Random(2);
    for round in 0..60 {
        let page = draw.page();
        let html = page.html();
        assert_eq!(html, page.html(), "the same values give the same text");
        xml::check(&html).unwrap_or_else(|wrong| panic!("{round}: {wrong}"));
        for (element, attributes) in xml::elements(&html) {
            let loads = ["link", "img", "iframe", "object", "embed", "image", "use", "base"];
            assert!(!loads.contains(&element.as_str()), "{element}");
            for (name, value) in attributes {
                let loads = ["src", "srcset", "xlink:href", "action", "data", "poster"];
                assert!(!loads.contains(&name.as_str()), "{name}={value}");
                assert!(!name.starts_with("on"), "{name}={value}");
                assert!(name != "href" || value.starts_with('#'), "{name}={value}");
            }
        }
        assert_eq!(html.matches("<script").count(), 1, "its own only");
    }
    // Style and script refer to nothing outside of the page.
    let empty = Page::default().html();
    for word in ["http:", "https:", "//cdn", "@import", "url(", "import(", "fetch("] {
        assert!(!empty.contains(word), "{word}");
    }
}

#[test]
fn every_figure_is_drawn_in_all_widths_under_ids_of_its_own() {
    let chart = Block::Chart(Chart::new(
        "one",
        Axis::linear("x", Format::Count),
        Axis::linear("y", Format::Count),
    ));
    let folded = Block::Details { summary: "more".to_owned(), blocks: vec![chart.clone()] };
    let page = Page { blocks: vec![chart.clone(), chart, folded], ..Page::default() };
    let html = page.html();
    for class in ["wide", "medium", "narrow"] {
        assert_eq!(html.matches(&format!("class=\"chart {class}\"")).count(), 3);
    }
    xml::check(&html).unwrap(); // ids are different
}

#[test]
fn several_sections_are_listed() {
    let heading = |text: &str| Block::Heading(text.to_owned());
    let page = |blocks: Vec<Block>| Page { blocks, ..Page::default() }.html();
    assert!(!page(vec![heading("a"), heading("b")]).contains("<nav"));
    let html = page(vec![heading("a"), heading("b & c"), heading("d")]);
    assert!(html.contains("<li><a href=\"#section-2\">b &amp; c</a></li>"), "{html}");
    assert!(html.contains("<h2 id=\"section-2\">b &amp; c</h2>"));
}

#[test]
fn texts_are_cut_into_paragraphs_at_blank_lines() {
    let text = "one\ntwo\n\n \n\nthree <b>".to_owned();
    let html = Page { blocks: vec![Block::Text(text)], ..Page::default() }.html();
    assert!(html.contains("<p>one\ntwo</p>\n<p>three &lt;b&gt;</p>\n"), "{html}");
}
