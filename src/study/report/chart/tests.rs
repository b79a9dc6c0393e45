//! Tests of charts by their structure: positions, descriptions, and what is left out.

use super::*;
use crate::study::report::number::Format;
use crate::study::report::scale::Scale;
use crate::study::report::tests::xml;
use crate::study::report::thin::Point;

fn chart(series: Vec<Series>) -> Chart {
    let x = Axis::linear("time", Format::Count);
    let y = Axis::linear("pages", Format::Count);
    Chart { series, ..Chart::new("Pages over time", x, y) }
}

/// Returns the points of each curve in pixels, split at its gaps.
fn curves(svg: &str) -> Vec<Vec<Vec<Point>>> {
    let plot = svg.split_once("class=\"plot\"").expect("a plot").1;
    let plot = plot.split_once("</g>\n</g>").expect("the plot's end").0;
    let lines = plot.split("<path d=\"").skip(1).filter(|path| path.contains("class=\"line\""));
    let numbers = |piece: &str| -> Vec<Point> {
        let numbers: Vec<f64> =
            piece.split(['L', ' ']).map(|number| number.parse().unwrap()).collect();
        numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let pieces =
        |path: &str| path.split_once('"').unwrap().0[1..].split('M').map(numbers).collect();
    lines.map(pieces).collect()
}

/// Returns what an attribute of the plot says of an axis: low, high, pixel of low, pixel of high.
fn axis(svg: &str, name: &str) -> [f64; 4] {
    let (_, data) = svg.split_once(&format!("{name}=\"")).expect("data of an axis");
    let words: Vec<&str> = data.split_once('"').unwrap().0.split(' ').collect();
    [1, 2, 3, 4].map(|word| words[word].parse().unwrap())
}

#[test]
fn points_lie_where_the_axes_say() {
    let points = vec![(0.0, 0.0), (60.0, 700.0), (120.0, 250.0), (200.0, 1_000.0)];
    for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
        let mut chart = chart(vec![Series::marked("a", points.clone())]);
        chart.y.scale = scale;
        let svg = chart.svg();
        let ([x0, x1, left, right], [y0, y1, bottom, top]) =
            (axis(&svg, "data-x"), axis(&svg, "data-y"));
        let curves = curves(&svg);
        let drawn = points.iter().filter(|point| scale.draws(point.1));
        for ((x, y), place) in drawn.zip(&curves[0][0]) {
            let value_x = x0 + (place.0 - left) / (right - left) * (x1 - x0);
            let share = (place.1 - bottom) / (top - bottom);
            let value_y = match scale {
                Scale::Linear => y0 + share * (y1 - y0),
                _ => y0 * (y1 / y0).powf(share),
            };
            assert!((value_x - x).abs() < 0.01, "{value_x} for {x}");
            assert!((value_y / y.max(1.0) - y.min(1.0)).abs() < 0.001, "{value_y} for {y}");
        }
    }
}

#[test]
fn what_cant_be_drawn_is_a_gap() {
    let hole = f64::NAN;
    let points = vec![(0.0, 1.0), (1.0, 5.0), (2.0, hole), (3.0, 4.0), (4.0, 9.0), (hole, 1.0)];
    let curves = curves(&chart(vec![Series::line("a", points)]).svg());
    let lengths: Vec<usize> = curves[0].iter().map(Vec::len).collect();
    assert_eq!(lengths, [2, 2]);
}

#[test]
fn a_series_without_points_is_said_in_words_and_keeps_its_colour() {
    let svg = chart(vec![
        Series::line("empty", vec![(1.0, f64::NAN)]),
        Series::line("full", vec![(0.0, 1.0), (9.0, 2.0)]),
    ])
    .svg();
    assert!(svg.contains(">empty (no points)</text>"), "{svg}");
    assert!(svg.contains("empty: no points. full: from 1 at 0 to 2 at 9.</desc>"), "{svg}");
    assert!(svg.contains("class=\"s1\" color=\"#d55e00\" data-name=\"full\""), "{svg}");
    assert!(!svg.contains("No points to draw"));
    assert!(chart(Vec::new()).svg().contains("No points to draw"));
}

#[test]
fn names_stand_at_the_ends_where_they_have_room() {
    let to = |name: &str, x: f64, y: f64| Series::line(name, vec![(0.0, 0.0), (x, y)]);
    for (series, at_ends, why) in [
        (vec![to("a", 9.0, 1.0), to("b", 9.0, 5.0)], true, "apart, at the edge"),
        (vec![to("a", 9.0, 4.85), to("b", 9.0, 5.0)], true, "a little shift is enough"),
        (vec![to("a", 9.0, 5.0), to("b", 9.0, 5.0)], false, "which is which?"),
        (vec![to("a", 5.0, 1.0), to("b", 9.0, 5.0)], false, "one ends before the edge"),
        (vec![to("a", 9.0, 5.0); 4], false, "all end in one place"),
        (vec![to(&"long ".repeat(20), 9.0, 5.0)], false, "a name without room"),
    ] {
        let svg = chart(series.clone()).svg();
        // The legend comes before the plot, the names at the ends after it.
        let (before, after) = svg.split_once("class=\"plot\"").unwrap();
        let names = |part: &str| part.matches("class=\"line\"").count();
        let legend = if at_ends { 0 } else { series.len() };
        assert_eq!(names(before), legend, "{why}");
        assert_eq!(names(after), 2 * series.len() - legend, "{why}");
    }
}

#[test]
fn crowded_names_keep_their_distance_and_their_middle() {
    for (wanted, expected) in [
        (&[0.0, 100.0][..], &[0.0, 100.0][..]),
        (&[50.0, 50.0], &[42.0, 58.0]),
        (&[50.0, 50.0, 50.0], &[34.0, 50.0, 66.0]),
        (&[0.0, 20.0, 30.0], &[0.0, 17.0, 33.0]),
        (&[], &[]),
    ] {
        let placed = spread(wanted, 16.0);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= 16.0 - 1e-9), "{placed:?}");
        assert_eq!(placed, expected);
    }
}

#[test]
fn long_lines_are_thinned_and_csv_has_all_points() {
    let points: Vec<(f64, f64)> = (0..50_000)
        .map(|i| (f64::from(i), f64::from(i * 37 % 101) + f64::from(i) / 50.0))
        .collect();
    let smooth: Vec<(f64, f64)> = points.iter().map(|(x, _)| (*x, x.sqrt())).collect();
    let chart = chart(vec![Series::line("rough", points), Series::line("smooth", smooth)]);
    let curves = curves(&chart.svg());
    assert!(curves[0][0].len() < 6_000, "{}", curves[0][0].len());
    assert!(curves[1][0].len() < 60, "{}", curves[1][0].len());
    assert_eq!(chart.csv().lines().count(), 100_001);
}

#[test]
fn marks_have_a_line_and_a_label_and_room_on_the_axis() {
    let mut chart = chart(vec![Series::line("a", vec![(0.0, 0.0), (9.0, 9.0)])]);
    chart.marks = vec![Mark::x(20.0, "later"), Mark::y(30.0, "all & more"), Mark::x(-1e301, "no")];
    let svg = chart.svg();
    assert_eq!(svg.matches("class=\"mark\"").count(), 2);
    assert!(svg.contains(">all &amp; more</text>") && !svg.contains(">no</text>"));
    assert_eq!(axis(&svg, "data-x")[1], 20.0);
    chart.x.range = Some((0.0, 9.0)); // then it is not to be seen
    assert_eq!(chart.svg().matches("class=\"mark\"").count(), 1);
    assert!(chart.svg().contains("clip-path=\"url(#figure-clip)\""));
}

#[test]
fn bands_are_closed_areas_behind_all_lines() {
    let mut series = Series::line("a", vec![(0.0, 2.0), (9.0, 3.0)]);
    series.band = Some(vec![(0.0, 1.0, 3.0), (9.0, 2.0, 40.0)]);
    let svg = chart(vec![Series::line("b", vec![(0.0, 1.0), (9.0, 1.0)]), series]).svg();
    let plot = svg.split_once("class=\"plot\"").unwrap().1;
    let (band, line) = (plot.find("class=\"band\"").unwrap(), plot.find("class=\"line\"").unwrap());
    assert!(band < line);
    assert_eq!(axis(&svg, "data-y")[1], 40.0, "the axis reaches over the band");
    let elements = xml::elements(&svg);
    let (_, band) =
        elements.iter().find(|(_, is)| is.get("class").is_some_and(|c| c == "band")).unwrap();
    assert!(band["d"].ends_with('z') && band["d"].matches(' ').count() == 6, "{}", band["d"]);
}

#[test]
fn csv_joins_bands_to_their_points() {
    let mut series = Series::line("a, b", vec![(0.0, 2.0), (1.5, f64::NAN)]);
    series.band = Some(vec![(0.0, 1.0, 3.0), (2.0, 0.1, 0.2)]);
    let csv = "series,x,y,low,high\n\"a, b\",0,2,1,3\n\"a, b\",1.5,,,\n\"a, b\",2,,0.1,0.2\n";
    assert_eq!(chart(vec![series]).csv(), csv);
}
