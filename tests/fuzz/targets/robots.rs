//! The property `robots` of `tests/props`, driven by libFuzzer.
#![no_main]

use sted_fuzz::{robots::TARGET, write_samples};

libfuzzer_sys::fuzz_target!(init: write_samples(&TARGET), |bytes: &[u8]| (TARGET.check)(bytes));
