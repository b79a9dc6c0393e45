//! The integration tests: one binary, a module for each behaviour.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use the machine")]
#![allow(unreachable_pub, reason = "in a test binary nothing is reachable from outside")]

mod cache;
mod chains;
mod cli;
mod compare;
mod conf;
mod conformance;
mod crash;
mod crawl;
mod job;
mod lab;
mod layers;
mod operate;
mod order;
mod player;
mod profile;
mod props;
mod rating;
mod real;
mod report;
mod scenario;
mod shipped;
mod short;
mod sim;
mod sweep;
mod tls_end;
mod turns;
mod util;
