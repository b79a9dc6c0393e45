//! Coming back: which known pages are visited again, and when.
//!
//! ```text
//! rate      how often a page changes, as far as visits have shown
//! worth     what a visit is worth, and when it will be worth so much: the policies
//! bar       what a visit must be worth, so that no more are made than were granted
//! signals   what a site's own word that a page has changed is worth
//! known     what is known of a page, in some fifty bytes
//! calendar  pages on disk, in the order in which they are due
//! ```
//!
//! A page that was fetched is filed in the calendar for the time at which a visit will be worth
//! most of the bar. When it comes up, it is visited or filed again. `bench/recrawl` compares the
//! policies in a model.
//!
//! Law: the same visits give the same numbers on every machine (`ground::real`).

pub mod bar;
pub mod calendar;
pub mod known;
pub mod rate;
pub mod signals;
pub mod worth;
