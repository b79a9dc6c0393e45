//! The study of crawlers: synthetic webs, a lab, a simulated world, and the commands that use them.
//!
//! The crawler does not need any of it. `web` describes a synthetic web; `lab` serves it over
//! sockets, and `sim` simulates it on a virtual clock, together with the crawler's own machine.
//! `compare`, `profile`, `cache` and `serve` are commands, which `command` lists; `report` writes
//! their results.

pub mod cache;
pub(crate) mod child;
pub mod command;
pub mod compare;
#[cfg(test)]
mod driven;
pub(crate) mod inputs;
pub mod lab;
pub(crate) mod output;
pub mod profile;
pub mod report;
pub mod serve;
pub mod settings;
pub mod sim;
pub mod web;
