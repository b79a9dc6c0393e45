//! Calls of the frontier's verbs, recorded for the test that compares who makes them.
//!
//! There in unit tests only, and for the thread that asked for it. Calls that only read a number or
//! a record are left out; one verb's call of another is recorded as well.

/// Records a call, in tests.
macro_rules! called {
    ($call:expr) => {
        #[cfg(test)]
        crate::frontier::calls::record(|| {
            #[allow(unused_imports, reason = "not all calls need it")]
            use crate::frontier::calls::Call::*;
            $call
        });
    };
}

#[cfg(test)]
pub(crate) use recorder::*;

#[cfg(test)]
mod recorder {
    use crate::frontier::{Key, ServerId, Visit};
    use crate::quality::Quality;
    use crate::time::Instant;
    use std::cell::RefCell;
    use std::net::IpAddr;
    use std::time::Duration;

    /// A call: of which verb, about what, and when where that is told.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Call {
        Find(String),
        HasRoomFor(String),
        ServerOf(String),
        /// With the payload.
        AddTo(ServerId, Quality, Vec<u8>, Instant),
        OpenQueue(ServerId, Instant),
        Next(Instant),
        /// With what decides where the URL that was taken goes.
        Take(ServerId, Option<Key>),
        HasNext(ServerId),
        HasBetter(ServerId, Key),
        GiveBack(ServerId, Key),
        PutOff(ServerId, Vec<u8>),
        Bind(ServerId, IpAddr, Instant),
        Begin(ServerId, bool, Instant),
        HandBack(ServerId, Instant),
        Finish(ServerId, Visit, Instant),
        SetParked(ServerId, bool, Instant),
        Snooze(ServerId, Instant, Instant),
        Rouse(ServerId, Instant, Instant),
        Retire(ServerId, Instant),
        GivenUp,
        Reinstate(ServerId),
        SetCrawlDelay(ServerId, Option<Duration>, Instant),
        Write(bool),
        Job,
        Worked,
        TakeIn(Instant),
        BeginSnapshot,
        SnapshotSome,
        Mark,
        Settled,
    }

    thread_local! {
        static CALLS: RefCell<Option<Vec<Call>>> = const { RefCell::new(None) };
    }

    /// Calls of this thread are recorded from here on.
    pub(crate) fn begin() {
        CALLS.set(Some(Vec::new()));
    }

    /// What was called since, in order; nothing is recorded any more.
    pub(crate) fn end() -> Vec<Call> {
        CALLS.take().expect("it was begun")
    }

    /// The calls from this one on.
    pub(crate) fn since(first: usize) -> Vec<Call> {
        CALLS.with_borrow(|calls| calls.as_ref().map_or_else(Vec::new, |all| all[first..].to_vec()))
    }

    pub(crate) fn record(make: impl FnOnce() -> Call) {
        CALLS.with_borrow_mut(|calls| {
            if let Some(calls) = calls {
                calls.push(make());
            }
        });
    }
}
