//! The archive: which fetches become which records, in which file; the index and the crawl log.
pub mod job;
