//! Reports: results as tables and curves, in CSV, SVG and one self-contained HTML page.
//!
//! Plain values in, text out: a [`chart::Chart`] or [`bars::Bars`] is drawn as SVG, a
//! [`table::Table`] is written for a terminal, a spreadsheet or a browser, and a [`html::Page`]
//! joins them into one self-contained file. Nothing here knows what the numbers mean.
//!
//! Laws: every text of the caller is escaped, so that hostile names do no harm; the XML is
//! well-formed; values that can't be drawn (NaN, infinite, not positive on a logarithmic scale)
//! leave gaps and never panic; the same values give the same text.
//!
//! Cost: linear in the points, except for what [`chart`] says of thinning.

pub mod bars;
pub mod chart;
pub mod html;
pub mod number;
pub mod scale;
pub mod table;

mod canvas;
mod frame;
mod slots;
mod thin;

#[cfg(test)]
mod tests;
