//! (station)
