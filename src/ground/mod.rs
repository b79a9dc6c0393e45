//! Plain values and files that every part may use: time, disk, encoding, segments, counters,
//! exponentials.
//!
//! Nothing here knows what a crawl is. A module of `ground` uses only other modules of `ground`.

pub mod codec;
pub mod disk;
pub mod frame;
pub mod map;
pub mod quality;
pub mod random;
pub mod real;
pub mod segments;
pub mod stats;
pub(crate) mod table;
pub mod tail;
pub mod time;
