#![doc = include_str!("ARCHITECTURE.md")]

// What is shared with the benches calls the crate by its name.
#[cfg(test)]
extern crate self as sted;

// Plain values, known to all.
pub mod ground;

// Stations, in the order a URL meets them.
pub mod url;

pub mod seeds;

pub mod seen;

pub mod rating;

pub mod frontier;

pub mod dns;

pub mod http;

pub mod robots;

pub mod links;

pub mod store;

// The road.
pub mod conf;
pub mod engine;

// The real world.
pub mod os;

// The top.
pub mod commands;

// The study of crawlers; `commands::study` is its front door.
#[cfg(feature = "study")]
pub mod study;
