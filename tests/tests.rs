//! The integration tests: one binary, a module for each behaviour.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use the machine")]
#![allow(unreachable_pub, reason = "in a test binary nothing is reachable from outside")]

mod cli;
mod conf;
mod conformance;
mod crawl;
mod lab;
mod layers;
mod player;
mod props;
mod real;
mod scenario;
mod util;
