//! The property `conf` of `tests/props`, driven by libFuzzer.
#![no_main]

use sted_fuzz::{conf::TARGET, write_samples};

libfuzzer_sys::fuzz_target!(init: write_samples(&TARGET), |bytes: &[u8]| (TARGET.check)(bytes));
