//! Calls of the frontier's verbs, recorded for the test that compares who makes them.
//!
//! There in unit tests only, and for the thread that asked for it. Calls that only read a number or
//! a record are left out; one verb's call of another is recorded as well.

/// Records a call, in tests.
macro_rules! called {
    ($call:expr) => {
        #[cfg(all(test, feature = "study"))]
        crate::frontier::tests::calls::record(|| {
            #[allow(unused_imports, reason = "not all calls need it")]
            use crate::frontier::tests::calls::Call::*;
            $call
        });
    };
}
