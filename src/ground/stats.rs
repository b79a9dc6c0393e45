//! Histograms, and the meter of the loop's stages. All parts write to them; the core (the code that
//! decides, and reads no clock) never reads them.

mod histogram;
mod meter;

pub use histogram::Histogram;
pub use meter::{Account, Meter, STAGES, Stage, still};
