//! (station)
pub mod canon;
pub mod domain;
pub mod key;
pub mod scope;
