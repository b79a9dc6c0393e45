//! Reads the crawl log of a job: all its parts in order, line by line, in constant memory.

mod files;
mod line;
mod sequence;

pub(super) use files::{open, parts, read_line};
pub(super) use line::{Line, host_of};
pub(super) use sequence::{Place, Sequence};
