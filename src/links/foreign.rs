//! Where in a page SVG and MathML begin and end: there `title`, `style` and `script` hold markup,
//! `/>` closes, CDATA sections exist, and elements of HTML mean nothing.
//!
//! A tree builder knows this from its stack of open elements. Here only the borders are kept:
//! `svg`, `math`, and the elements inside them whose content is HTML again. An HTML start tag that
//! can't be inside drawings ends them all, as the standard has it; so does an HTML end tag, which
//! is right if its element is open (a drawing that was never closed) and else a guess.
//!
//! Cost: nothing outside drawings; inside, a comparison of each name with some sixty others.
//! Source: the HTML standard, sections 13.2.6 and 13.2.6.5.

/// Borders kept; what nests deeper is counted as one.
const BORDERS_MAX: usize = 64;

/// Elements of SVG and MathML whose content is HTML.
const POINTS_SVG: [&[u8]; 3] = [b"desc", b"foreignobject", b"title"];
const POINTS_MATH: [&[u8]; 5] = [b"mi", b"mn", b"mo", b"ms", b"mtext"];

/// Start tags that end drawings. `font` does only with some attributes and is left out.
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

/// Elements of HTML whose end tag ends drawings, beside those of [`BREAKS`].
const CONTAINERS: [&[u8]; 15] = [
    b"article", b"aside", b"button", b"figure", b"footer", b"form", b"header", b"html", b"main",
    b"nav", b"section", b"tbody", b"td", b"th", b"tr",
];

/// What a tag is a tag of.
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
    /// HTML inside a drawing, in the element of this name.
    Html(&'static [u8]),
}

/// The drawings that are open.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    open: Vec<Border>,
}

impl Foreign {
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Whether no drawing is open.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether tags are those of HTML here.
    #[inline(always)]
    pub(super) fn is_html(&self) -> bool {
        !matches!(self.open.last(), Some(Border::Svg | Border::Math))
    }

    /// A start tag; `is_document` says whether its `encoding` makes `annotation-xml` hold HTML.
    /// Returns what it is a tag of.
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

    /// What tags are tags of here.
    fn space(&self) -> Space {
        match self.open.last() {
            Some(Border::Svg) => Space::Svg,
            Some(Border::Math) => Space::Math,
            Some(Border::Html(_)) | None => Space::Html,
        }
    }

    /// The border that a start tag is, if it is one where it stands.
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

    /// An end tag. Returns what it is a tag of.
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

    /// Back to the HTML around.
    fn leave(&mut self) {
        while !self.is_html() {
            self.open.pop();
        }
    }
}

fn is_in(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}
