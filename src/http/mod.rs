//! (station)
pub mod coding;
pub mod pipeline;
pub mod request;
pub mod response;
