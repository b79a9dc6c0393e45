//! Numbers of the loop: histograms, and the meter of its stages. Written by all, read by none in
//! the core.

mod histogram;
mod meter;

pub use histogram::Histogram;
pub use meter::{Account, Meter, STAGES, Stage, still};
