//! The integration tests: one binary, with a module for each behaviour.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use the machine")]
#![allow(unreachable_pub, reason = "in a test binary nothing is reachable from outside")]

mod cli;
mod conf;
mod conformance;
mod crawl_log;
mod layers;
mod one_line;
mod pages;
mod props;
mod rating;
mod real;
mod sites;
mod trials;
mod util;

// Tests that need the study: its webs, its simulator, its commands.
#[cfg(all(feature = "study", feature = "control"))]
mod admin;
#[cfg(feature = "study")]
mod archive;
#[cfg(feature = "study")]
mod audit;
#[cfg(feature = "study")]
mod cache;
#[cfg(feature = "study")]
mod chains;
#[cfg(feature = "study")]
mod challenges;
#[cfg(feature = "study")]
mod cluster;
#[cfg(feature = "study")]
mod compare;
#[cfg(all(feature = "study", feature = "control"))]
mod control;
#[cfg(feature = "study")]
mod crash;
#[cfg(feature = "study")]
mod crawl;
#[cfg(feature = "study")]
mod focused;
#[cfg(feature = "study")]
mod job;
#[cfg(feature = "study")]
mod lab;
#[cfg(feature = "study")]
mod operate;
#[cfg(feature = "study")]
mod order;
#[cfg(feature = "study")]
mod player;
#[cfg(feature = "study")]
mod profile;
#[cfg(feature = "study")]
mod repeats;
#[cfg(feature = "study")]
mod report;
#[cfg(feature = "study")]
mod reports;
#[cfg(feature = "study")]
mod scenario;
#[cfg(feature = "study")]
mod shipped;
#[cfg(feature = "study")]
mod short;
#[cfg(feature = "study")]
mod sim;
#[cfg(feature = "study")]
mod style_sheets;
#[cfg(feature = "study")]
mod sweep;
#[cfg(feature = "study")]
mod tls_end;
#[cfg(feature = "study")]
mod turns;
#[cfg(all(feature = "study", feature = "control"))]
mod why;
