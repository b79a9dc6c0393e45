//! Tracks foreign content, that is SVG and MathML inside a page, because tags mean something else
//! there.
//!
//! In foreign content `title`, `style` and `script` contain markup, `/>` closes an element, CDATA
//! sections exist, and HTML elements have no meaning. A tree builder knows this from its stack of
//! open elements. This module tracks only the boundaries: `svg`, `math`, and the elements inside
//! them whose content is HTML again (integration points). An HTML start tag that can't be inside
//! foreign content ends all of it, as the standard says. So does an HTML end tag, which is correct
//! if its element is open (the foreign element was never closed) and otherwise a guess.
//!
//! Cost: nothing outside foreign content; inside, a comparison of each name with some sixty others.
//! Source: the HTML standard, sections 13.2.6 and 13.2.6.5.

/// The maximum number of boundaries that are tracked; deeper ones are ignored.
const BORDERS_MAX: usize = 64;

/// Elements of SVG and MathML whose content is HTML.
const POINTS_SVG: [&[u8]; 3] = [b"desc", b"foreignobject", b"title"];
const POINTS_MATH: [&[u8]; 5] = [b"mi", b"mn", b"mo", b"ms", b"mtext"];

/// Start tags of HTML that end foreign content. `font` is left out, because it does so only with
/// some attributes.
const BREAKS: [&[u8]; 44] = [
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"dd",
    b"div",
    b"dl",
    b"dt",
    b"em",
    b"embed",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"i",
    b"img",
    b"li",
    b"listing",
    b"menu",
    b"meta",
    b"nobr",
    b"ol",
    b"p",
    b"pre",
    b"ruby",
    b"s",
    b"small",
    b"span",
    b"strike",
    b"strong",
    b"sub",
    b"sup",
    b"table",
    b"tt",
    b"u",
    b"ul",
    b"var",
];

/// HTML elements whose end tags also end foreign content, in addition to those of [`BREAKS`].
const CONTAINERS: [&[u8]; 15] = [
    b"article", b"aside", b"button", b"figure", b"footer", b"form", b"header", b"html", b"main",
    b"nav", b"section", b"tbody", b"td", b"th", b"tr",
];

/// The language that a tag belongs to at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Html,
    Svg,
    Math,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    Svg,
    Math,
    /// HTML inside foreign content. The name is that of the SVG or MathML element whose content is
    /// HTML.
    Html(&'static [u8]),
}

/// The stack of boundaries between HTML and foreign content that are open at the current position.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    open: Vec<Border>,
}

impl Foreign {
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Returns whether no foreign content is open.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether tags at the current position are HTML.
    #[inline(always)]
    pub(super) fn is_html(&self) -> bool {
        !matches!(self.open.last(), Some(Border::Svg | Border::Math))
    }

    /// Processes a start tag and returns the language it belongs to. `closed` is true if the tag
    /// ends with `/>`. `is_document` is true if the tag's `encoding` attribute says that the
    /// content of the element `annotation-xml` is HTML.
    pub(super) fn start(&mut self, name: &[u8], closed: bool, is_document: bool) -> Space {
        if is_in(&BREAKS, name) {
            self.leave();
        }
        let space = self.space();
        let Some(border) = self.border(name, is_document) else { return space };
        if !closed && self.open.len() < BORDERS_MAX {
            self.open.push(border);
        }
        match border {
            Border::Svg => Space::Svg,
            Border::Math => Space::Math,
            Border::Html(_) => space,
        }
    }

    /// Returns the language of tags at the current position.
    fn space(&self) -> Space {
        match self.open.last() {
            Some(Border::Svg) => Space::Svg,
            Some(Border::Math) => Space::Math,
            Some(Border::Html(_)) | None => Space::Html,
        }
    }

    /// Returns the boundary that a start tag of this name opens at the current position; `None` if
    /// it opens none.
    fn border(&self, name: &[u8], is_document: bool) -> Option<Border> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let find = |points: &[&'static [u8]]| points.iter().find(|point| is(point)).copied();
        match self.open.last() {
            Some(Border::Svg) if is(b"svg") => Some(Border::Svg),
            Some(Border::Svg) => find(&POINTS_SVG).map(Border::Html),
            Some(Border::Math) if is(b"math") => Some(Border::Math),
            Some(Border::Math) if is_document && is(b"annotation-xml") => {
                Some(Border::Html(b"annotation-xml"))
            }
            Some(Border::Math) => find(&POINTS_MATH).map(Border::Html),
            _ if is(b"svg") => Some(Border::Svg),
            _ if is(b"math") => Some(Border::Math),
            _ => None,
        }
    }

    /// Processes an end tag and returns the language it belongs to.
    pub(super) fn end(&mut self, name: &[u8]) -> Space {
        let space = self.space();
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let closes = match self.open.last() {
            Some(Border::Svg) => is(b"svg"),
            Some(Border::Math) => is(b"math"),
            Some(Border::Html(point)) => is(point),
            None => false,
        };
        if closes {
            self.open.pop();
        } else if is_in(&BREAKS, name) || is_in(&CONTAINERS, name) {
            self.leave();
        }
        space
    }

    /// Ends all open foreign content, back to the surrounding HTML.
    fn leave(&mut self) {
        while !self.is_html() {
            self.open.pop();
        }
    }
}

fn is_in(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}
