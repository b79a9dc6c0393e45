//! Calls of the frontier's verbs, as this thread made them since it asked for that.

use crate::frontier::{Key, Price, ServerId, Visit};
use crate::ground::quality::Quality;
use crate::ground::time::Instant;
use std::cell::RefCell;
use std::net::IpAddr;
use std::time::Duration;

/// A call: of which verb, about what, and when, if a time is passed.
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
    Best(Instant),
    IsOutbid(ServerId, Quality, Instant),
    SetPrice(Price),
    RepriceOne(Instant),
    GiveBack(ServerId, Key),
    PutOff(ServerId, Vec<u8>),
    Bind(ServerId, IpAddr, Instant),
    Begin(ServerId, bool, Instant),
    HandBack(ServerId, Instant),
    Finish(ServerId, Visit, Instant),
    SetParked(ServerId, bool, Instant),
    GoAhead(ServerId, Instant),
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
