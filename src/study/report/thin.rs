//! Thinning: the fewest points that draw the same line.
//!
//! First, of the points of each column (a strip half a pixel wide), only the first, the lowest, the
//! highest and the last remain, which cover the same area. Then every point is removed that lies
//! within a quarter of a pixel of the line through the others (Ramer 1972, Douglas and Peucker
//! 1973).
//!
//! Law, tested: no point is farther than `DEVIATION_MAX` pixels from the remaining line; first and
//! last point remain. Cost: linear for the columns; the second step is at worst quadratic in what
//! they leave, which is four points a column for a line that runs left to right.

/// A position in pixels.
pub(super) type Point = (f64, f64);

/// The width of a column in pixels.
const COLUMN: f64 = 0.5;
/// The largest distance of a point from the line through the others at which the second step
/// removes it, in pixels.
const TOLERANCE: f64 = 0.25;
/// The largest distance of any removed point from the thinned line, after both steps, in pixels.
#[cfg(test)]
const DEVIATION_MAX: f64 = COLUMN + TOLERANCE;

/// Returns those of the points that are needed to draw the line through all of them.
pub(super) fn thin(points: &[Point]) -> Vec<Point> {
    simplified(&extremes(points))
}

/// Returns the first, the lowest, the highest and the last point of each run of points within one
/// column, in their order.
fn extremes(points: &[Point]) -> Vec<Point> {
    let column = |point: &Point| (point.0 / COLUMN).floor();
    let mut kept = Vec::new();
    for run in points.chunk_by(|one, other| column(one) == column(other)) {
        let (mut low, mut high) = (0, 0);
        for (place, point) in run.iter().enumerate() {
            if point.1 < run[low].1 {
                low = place;
            }
            if point.1 > run[high].1 {
                high = place;
            }
        }
        let mut places = [0, low.min(high), low.max(high), run.len() - 1].to_vec();
        places.dedup();
        kept.extend(places.into_iter().map(|place| run[place]));
    }
    kept
}

/// Removes the points that lie, up to [`TOLERANCE`], on the line through the others.
fn simplified(points: &[Point]) -> Vec<Point> {
    if points.len() < 3 {
        return points.to_vec();
    }
    let mut keeps = vec![false; points.len()];
    keeps[0] = true;
    keeps[points.len() - 1] = true;
    let mut pieces = vec![(0, points.len() - 1)];
    while let Some((first, last)) = pieces.pop() {
        let (mut farthest, mut far) = (first, TOLERANCE);
        for place in first + 1..last {
            let off = distance(points[place], points[first], points[last]);
            if off > far {
                (farthest, far) = (place, off);
            }
        }
        if farthest > first {
            keeps[farthest] = true;
            pieces.push((first, farthest));
            pieces.push((farthest, last));
        }
    }
    let kept = points.iter().zip(keeps).filter(|(_, keeps)| *keeps);
    kept.map(|(point, _)| *point).collect()
}

/// Returns the distance of a point from the line segment between two others.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let (along_x, along_y) = (to.0 - from.0, to.1 - from.1);
    let (x, y) = (point.0 - from.0, point.1 - from.1);
    let length = along_x * along_x + along_y * along_y;
    let share =
        if length > 0.0 { ((x * along_x + y * along_y) / length).clamp(0.0, 1.0) } else { 0.0 };
    let (off_x, off_y) = (x - share * along_x, y - share * along_y);
    (off_x * off_x + off_y * off_y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn off(point: Point, line: &[Point]) -> f64 {
        let pieces = line.windows(2).map(|pair| distance(point, pair[0], pair[1]));
        pieces.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn straight_lines_are_two_points_and_corners_stay() {
        let straight: Vec<Point> = (0..5_000).map(|i| (f64::from(i) * 0.1, 7.0)).collect();
        assert_eq!(thin(&straight), [straight[0], straight[4_999]]);
        let corner = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)];
        assert_eq!(thin(&corner), corner);
        let spike = [(0.0, 0.0), (10.0, 0.0), (10.1, 50.0), (10.2, 0.0), (20.0, 0.0)];
        assert!(thin(&spike).contains(&(10.1, 50.0)));
        assert_eq!(thin(&[]), []);
        assert_eq!(thin(&[(1.0, 2.0)]), [(1.0, 2.0)]);
    }

    #[test]
    fn distances_are_from_the_piece_not_its_continuation() {
        for (point, expected) in [((5.0, 3.0), 3.0), ((-3.0, 4.0), 5.0), ((13.0, 4.0), 5.0)] {
            assert_eq!(distance(point, (0.0, 0.0), (10.0, 0.0)), expected);
        }
        assert_eq!(distance((3.0, 4.0), (0.0, 0.0), (0.0, 0.0)), 5.0);
    }

    /// Random walks of every roughness, some of them turning back.
    #[test]
    fn no_point_is_far_from_the_line_that_is_left() {
        let mut random = Random(11);
        let mut draw = || random.unit();
        for round in 0..60 {
            let (rough, back) = (draw() * 20.0, if round % 4 == 0 { 0.5 } else { 0.0 });
            let (mut x, mut y) = (0.0, 200.0);
            let mut points = Vec::new();
            for _ in 0..2_000 {
                x += (draw() - back) * 0.6;
                y += (draw() - 0.5) * rough;
                points.push((x, y));
            }
            let line = thin(&points);
            assert_eq!((line.first(), line.last()), (points.first(), points.last()));
            assert!(line.iter().all(|point| points.contains(point)));
            let worst = points.iter().map(|point| off(*point, &line)).fold(0.0, f64::max);
            assert!(worst <= DEVIATION_MAX, "{worst} pixels in round {round}");
        }
        let smooth: Vec<Point> =
            (0..100_000).map(|i| f64::from(i) / 140.0).map(|x| (x, x * x / 1_500.0)).collect();
        assert!(thin(&smooth).len() < 60, "{}", thin(&smooth).len());
    }
}
