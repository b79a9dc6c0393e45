//! The `called!` macro, which records calls of the frontier's methods for the test that compares
//! the callers of each method.
//!
//! Calls are recorded in unit tests only, and only for the thread that asked for it. Calls that
//! only read a number or a record are left out. If one method calls another, both calls are
//! recorded.

/// Records a call in tests; compiles to nothing otherwise.
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
