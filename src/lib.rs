#![doc = include_str!("ARCHITECTURE.md")]

// Code shared with the benches uses the crate's name.
#[cfg(test)]
extern crate self as sted;

// Plain values, which all parts may use.
pub mod ground;

// Stations, in the order in which a URL passes them.
pub mod url;

pub mod seeds;

pub mod seen;

pub mod rating;

pub mod budgets;

pub mod recrawl;

pub mod frontier;

pub mod dns;

pub mod http;

pub mod robots;

pub mod links;

pub mod consent;

pub mod repeats;

pub mod sitemap;

pub mod store;

#[cfg(feature = "cluster")]
pub mod cluster;

// The configuration, and the engine that joins the stations.
pub mod conf;
pub mod engine;

// The real world.
pub mod os;

// The command line.
pub mod commands;

// Tools for studying crawls; only `commands::study` uses them.
#[cfg(feature = "study")]
pub mod study;
