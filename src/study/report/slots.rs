//! Slots: the colour, dash pattern, marker and hatching that distinguish a series.
//!
//! A series has the slot of its position, so that figures with the same series in the same order
//! agree. The first eight colours are those of Okabe and Ito ("Color Universal Design", 2008),
//! which colour-blind readers can distinguish; their yellow is darkened to be visible on white, and
//! dark pages have lighter ones (`page.css`). Eight more are as far from these and from each other
//! as the first eight are, in CIELAB: no two of the fourteen stages of a profile share a colour.
//! After sixteen, colours repeat with other dashes.

use super::canvas::px;
use super::thin::Point;

/// The number of colours; slots beyond it use them again.
pub(super) const COLOURS: usize = 16;

/// The number of dash patterns and of markers; slots beyond it use them again.
const SHAPES: usize = 8;

/// The colours on a white page, in the order of slots.
const COLOUR: [&str; COLOURS] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3b3f46", "#a89c00",
    "#882255", "#9b9fa8", "#332288", "#b8e186", "#8c564b", "#7fd6c2", "#f4a6a0", "#9467bd",
];

/// The dash patterns in the order of slots: pixels of line and of gap, in turn; empty is a solid
/// line.
const DASH: [&str; SHAPES] =
    ["", "8 3.5", "2.5 2.5", "10 3 2.5 3", "15 4", "5 2.5", "1.5 4", "12 3 2 3 2 3"];

const PEN: &str = r#"class="line" fill="none" stroke="currentColor" stroke-linejoin="round""#;

/// The slot of the series at this position, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) usize);

impl Slot {
    /// Returns the attributes of an SVG group whose contents are drawn in the slot's colour.
    pub(super) fn group(self) -> String {
        let colour = self.0 % COLOURS;
        format!(r#"class="s{colour}" color="{}""#, COLOUR[colour])
    }

    /// Returns the attributes of the slot's curve: two pixels wide, with the slot's dashes.
    pub(super) fn pen(self) -> String {
        // The second round of colours begins with the second dash pattern, the third with the
        // third, and so on.
        let dashes = match DASH[(self.0 + self.0 / COLOURS) % SHAPES] {
            "" => String::new(),
            dash => format!(r#" stroke-dasharray="{dash}""#),
        };
        format!(r#"{PEN} stroke-width="2"{dashes}"#)
    }

    /// Returns a text colour that is legible on bars of the slot's colour.
    pub(super) fn ink_upon(self) -> &'static str {
        let is_light = matches!(self.0 % COLOURS, 3 | 4 | 5 | 7 | 9 | 11 | 13 | 14);
        if is_light { "#000000" } else { "#ffffff" }
    }

    /// Whether the slot's marker is hollow.
    pub(super) fn is_hollow(self) -> bool {
        self.0 % SHAPES >= 4
    }

    /// Returns the outline of the slot's marker around a point, as a piece of an SVG path.
    pub(super) fn marker(self, (x, y): Point) -> String {
        let (shape, left, up) = match self.0 % 4 {
            0 => ("a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z", 3.2, 0.0),
            1 => ("h5.8v5.8h-5.8z", 2.9, 2.9),
            2 => ("l3.9 6.6h-7.8z", 0.0, 4.2),
            _ => ("l4.1 4.1-4.1 4.1-4.1-4.1z", 0.0, 4.1),
        };
        format!("M{} {}{shape}", px(x - left), px(y - up))
    }

    /// Returns the hatching of the slot's bars, an index of [`HATCHINGS`]; `None` for every second
    /// slot, whose bars have none.
    pub(super) fn hatching(self) -> Option<usize> {
        (self.0 % 2 == 1).then_some((self.0 / 2) % HATCHINGS.len())
    }
}

/// The hatchings: the lines of each as an SVG path, in a tile of 6 by 6 pixels.
pub(super) const HATCHINGS: [&str; 3] =
    ["M-1 1l2-2M0 6l6-6M5 7l2-2", "M5-1l2 2M0 0l6 6M-1 5l2 2", "M0 3h6"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_of_the_first_series_look_alike() {
        let looks: BTreeSet<(String, String)> =
            (0..64).map(|slot| (Slot(slot).group(), Slot(slot).pen())).collect();
        assert_eq!(looks.len(), 64);
        // Without colours: by dash alone, and by marker alone.
        let dashes: BTreeSet<String> = (0..8).map(|slot| Slot(slot).pen()).collect();
        assert_eq!(dashes.len(), 8);
        let marker = |slot: usize| (Slot(slot).marker((0.0, 0.0)), Slot(slot).is_hollow());
        let markers: BTreeSet<(String, bool)> = (0..8).map(marker).collect();
        assert_eq!(markers.len(), 8);
    }

    /// The page's style sheet has each colour twice, for light and for dark pages, and uses it.
    #[test]
    fn no_two_slots_of_a_round_share_a_colour() {
        let css = include_str!("page.css");
        for slot in 0..COLOURS {
            assert!(COLOUR[..slot].iter().all(|colour| *colour != COLOUR[slot]), "slot {slot}");
            assert!(css.contains(&format!("--s{slot}: {};", COLOUR[slot])), "slot {slot}");
            assert!(css.contains(&format!(".chart .s{slot} {{ color: var(--s{slot}); }}")));
        }
        let values: Vec<&str> =
            css.split(';').filter(|rule| rule.trim().starts_with("--s")).collect();
        let colours = values.iter().filter_map(|rule| rule.split_once("--s")?.1.split_once(": "));
        let colours: Vec<&str> = colours
            .filter(|(slot, _)| slot.parse::<usize>().is_ok())
            .map(|(_, colour)| colour)
            .collect();
        assert_eq!(colours.len(), 2 * COLOURS, "{colours:?}");
        for page in colours.chunks(COLOURS) {
            assert_eq!(page.iter().collect::<BTreeSet<_>>().len(), COLOURS, "{page:?}");
        }
    }
}
