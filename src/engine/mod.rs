//! The road: wiring.
pub mod contract;
