//! Pages: headings, texts, tables and figures in one self-contained HTML file.
//!
//! Style, script and drawings are in the file; nothing is loaded from anywhere. It follows the
//! reader's choice of light or dark, suits telephones, wide screens and paper, and shows everything
//! without its script, which only displays values of the curves under the pointer.

use super::bars::Bars;
use super::canvas::escaped;
use super::chart::Chart;
use super::frame::Frame;
use super::table::Table;

/// A page: what one HTML file shows.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title of the page.
    pub title: String,
    /// The result in a sentence or two; may be empty.
    pub lead: String,
    /// The contents of the page, from its top.
    pub blocks: Vec<Block>,
}

/// A piece of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// The heading of a section that begins here. A page with several sections lists them at its
    /// top.
    Heading(String),
    /// Text; a blank line begins another paragraph.
    Text(String),
    /// A table with its caption.
    Table(Table),
    /// A figure of curves.
    Chart(Chart),
    /// A figure of bars.
    Bars(Bars),
    /// Several figures side by side, as many in a row as there is room for.
    Figures(Vec<Figure>),
    /// Preformatted text, such as a configuration or a command.
    Code(String),
    /// Contents that are hidden until the reader opens them.
    Details {
        /// The line that is shown while the contents are hidden.
        summary: String,
        /// The contents that the reader can open.
        blocks: Vec<Block>,
    },
}

/// A drawing of any kind.
#[derive(Clone, Debug)]
pub enum Figure {
    /// A figure of curves.
    Chart(Chart),
    /// A figure of bars.
    Bars(Bars),
}

impl Page {
    /// Returns the page as an HTML file.
    pub fn html(&self) -> String {
        let mut writer = Writer::default();
        for block in &self.blocks {
            writer.block(block);
        }
        let title = escaped(&self.title);
        let lead = paragraphs(&self.lead, " class=\"lead\"");
        let contents = writer.contents();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
             {lead}</header>\n{contents}{}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            writer.out
        )
    }
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The least number of sections for which a page has a list of them.
const CONTENTS_FROM: usize = 3;

/// The HTML of a page being written.
#[derive(Default)]
struct Writer {
    out: String,
    headings: Vec<String>,
    figures: usize,
}

impl Writer {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => {
                self.headings.push(escaped(text));
                let (number, text) = (self.headings.len(), escaped(text));
                self.out.push_str(&format!("<h2 id=\"section-{number}\">{text}</h2>\n"));
            }
            Block::Text(text) => self.out.push_str(&paragraphs(text, "")),
            Block::Table(table) => self.out.push_str(&table.html()),
            Block::Chart(chart) => {
                self.figure(&chart.title, &chart.subtitle, &|frame| chart.drawn(frame))
            }
            Block::Bars(bars) => {
                self.figure(&bars.title, &bars.subtitle, &|frame| bars.drawn(frame))
            }
            Block::Figures(figures) => {
                self.out.push_str("<div class=\"row\">\n");
                for figure in figures {
                    match figure.clone() {
                        Figure::Chart(chart) => self.block(&Block::Chart(chart)),
                        Figure::Bars(bars) => self.block(&Block::Bars(bars)),
                    }
                }
                self.out.push_str("</div>\n");
            }
            Block::Code(text) => {
                self.out.push_str(&format!("<pre><code>{}</code></pre>\n", escaped(text)));
            }
            Block::Details { summary, blocks } => {
                let summary = escaped(summary);
                self.out.push_str(&format!("<details>\n<summary>{summary}</summary>\n"));
                for block in blocks {
                    self.block(block);
                }
                self.out.push_str("</details>\n");
            }
        }
    }

    fn figure(&mut self, title: &str, subtitle: &str, drawn: &dyn Fn(&Frame) -> String) {
        self.figures += 1;
        let drawings: String = Frame::of_page(self.figures).iter().map(drawn).collect();
        let (title, subtitle) = (escaped(title), escaped(subtitle));
        let subtitle =
            if subtitle.is_empty() { subtitle } else { format!("<span>{subtitle}</span>") };
        self.out.push_str(&format!(
            "<figure>\n<figcaption><strong>{title}</strong>{subtitle}</figcaption>\n\
             <div class=\"drawing\">\n{drawings}</div>\n</figure>\n"
        ));
    }

    /// Returns the list of sections as HTML; empty if there are too few.
    fn contents(&self) -> String {
        if self.headings.len() < CONTENTS_FROM {
            return String::new();
        }
        let entry = |(number, heading): (usize, &String)| {
            format!("<li><a href=\"#section-{}\">{heading}</a></li>\n", number + 1)
        };
        let entries: String = self.headings.iter().enumerate().map(entry).collect();
        format!("<nav aria-label=\"Sections\"><ol>\n{entries}</ol></nav>\n")
    }
}

/// Formats text as HTML paragraphs with these attributes; a blank line begins another paragraph.
fn paragraphs(text: &str, attributes: &str) -> String {
    let texts = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    texts.map(|text| format!("<p{attributes}>{}</p>\n", escaped(text))).collect()
}
