//! The meter of stages: accounts for the time of a core that has no clock.
//!
//! The world (the real event loop, or a simulator) supplies a tick function, which reads a clock. A
//! stage that begins calls [`Meter::enter`], and the ticks since the last call are charged to the
//! stage that ran until then. The core only writes to the meter; only worlds read it
//! (`tests/layers.rs` checks that), so no decision can depend on a clock.
//!
//! Laws: every tick is charged to one stage; the sum over all stages is the time since the meter
//! was created. Cost: a call of the tick function where a stage begins and where it ends.

/// A stage of the loop that time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stage {
    /// Sleeping in the poller, and calling it.
    Wait,
    /// Reading from sockets and handling other events of the poller.
    Receive,
    /// Writing to sockets; opening and closing them.
    Send,
    /// TLS: handshakes, decryption, encryption.
    Tls,
    /// Parsing response heads and framing; formatting requests.
    Http,
    /// Decoding content codings.
    Decode,
    /// Finding links in pages.
    Links,
    /// Resolving links and making URLs canonical.
    Url,
    /// Scope, deduplication keys, fingerprints, and the URL-seen test.
    Seen,
    /// The frontier: queueing URLs, ranking servers, choosing the next.
    Schedule,
    /// The archive: records, digests, index, crawl log.
    Store,
    /// Reading and writing state: queues and fingerprints on disk, checkpoints.
    State,
    /// Name resolution: the cache, and messages to the resolver's thread.
    Dns,
    /// Everything else: calls between stations, timers, accounting.
    Rest,
}

/// The number of stages.
pub const STAGES: usize = Stage::Rest as usize + 1;

impl Stage {
    /// All stages, in the order of their declaration, which is the order in which a URL passes
    /// them.
    pub const ALL: [Self; STAGES] = [
        Self::Wait,
        Self::Receive,
        Self::Send,
        Self::Tls,
        Self::Http,
        Self::Decode,
        Self::Links,
        Self::Url,
        Self::Seen,
        Self::Schedule,
        Self::Store,
        Self::State,
        Self::Dns,
        Self::Rest,
    ];

    /// Returns the stage's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Receive => "receive",
            Self::Send => "send",
            Self::Tls => "tls",
            Self::Http => "http",
            Self::Decode => "decode",
            Self::Links => "links",
            Self::Url => "url",
            Self::Seen => "seen",
            Self::Schedule => "schedule",
            Self::Store => "store",
            Self::State => "state",
            Self::Dns => "dns",
            Self::Rest => "rest",
        }
    }
}

/// What was charged to one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The time charged, in the unit of the tick function.
    pub ticks: u64,
    /// How often the stage began.
    pub calls: u64,
    /// The bytes that the stage worked on, for stages that report them.
    pub bytes: u64,
}

/// Charges ticks, calls and bytes to the stages.
#[derive(Debug)]
pub struct Meter {
    tick: fn() -> u64,
    accounts: [Account; STAGES],
    stage: Stage,
    since: u64,
    readings: u64,
}

impl Meter {
    /// Creates a meter that reads time from `tick`: the world's tick function, or [`still`] where
    /// time has no meaning.
    pub fn new(tick: fn() -> u64) -> Self {
        let accounts = [Account::default(); STAGES];
        Self { tick, accounts, stage: Stage::Rest, since: tick(), readings: 0 }
    }

    /// Makes `stage` the current stage: counts a call of it, and `bytes` bytes (0 if unknown), and
    /// charges the time from now on to it. Returns the previous stage, for [`Meter::back`].
    pub fn enter(&mut self, stage: Stage, bytes: usize) -> Stage {
        let account = &mut self.accounts[stage as usize];
        account.calls += 1;
        account.bytes += bytes as u64;
        self.back(stage)
    }

    /// Makes `stage` the current stage by [`Self::enter`]. If it is the current one already, only
    /// adds `bytes` to it and counts no call.
    pub fn stay(&mut self, stage: Stage, bytes: usize) {
        if self.stage == stage {
            self.add_bytes(bytes);
        } else {
            self.enter(stage, bytes);
        }
    }

    /// Returns the current stage, so that the caller can return to it.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Makes `stage` the current stage again without counting a call, and charges the time from now
    /// on to it. Returns the previous stage.
    pub fn back(&mut self, stage: Stage) -> Stage {
        let now = (self.tick)();
        self.readings += 1;
        self.accounts[self.stage as usize].ticks += now.saturating_sub(self.since);
        self.since = now;
        std::mem::replace(&mut self.stage, stage)
    }

    /// Adds `bytes` to the bytes that the current stage has worked on.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.accounts[self.stage as usize].bytes += bytes as u64;
    }

    /// Moves `ticks` of the current stage, but no more than it has, to the stage `to`, and counts
    /// `calls` more calls of that stage.
    pub fn move_over(&mut self, ticks: u64, calls: u64, to: Stage) {
        self.back(self.stage);
        let own = &mut self.accounts[self.stage as usize];
        let moved = ticks.min(own.ticks);
        own.ticks -= moved;
        let account = &mut self.accounts[to as usize];
        account.ticks += moved;
        account.calls += calls;
    }

    /// Returns the account of each stage, in the order of [`Stage::ALL`]. For worlds only.
    pub fn read(&self) -> [Account; STAGES] {
        self.accounts
    }

    /// Returns how often the tick function was called, from which the cost of metering is
    /// estimated. For worlds only.
    pub fn readings(&self) -> u64 {
        self.readings
    }
}

/// A tick function that always returns 0, for worlds in which stages cost nothing.
pub fn still() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use std::cell::Cell;

    thread_local!(static CLOCK: Cell<u64> = const { Cell::new(0) });

    fn tick() -> u64 {
        CLOCK.with(|clock| clock.replace(clock.get() + 10))
    }

    #[test]
    fn the_meter_charges_the_stage_before() {
        let mut meter = Meter::new(tick);
        assert_eq!(meter.enter(Stage::Links, 700), Stage::Rest);
        meter.add_bytes(30);
        meter.stay(Stage::Links, 20);
        assert_eq!(meter.stage(), Stage::Links);
        assert_eq!(meter.enter(Stage::Url, 0), Stage::Links);
        assert_eq!(meter.back(Stage::Links), Stage::Url);
        meter.move_over(4, 2, Stage::Tls);
        assert_eq!(meter.back(Stage::Rest), Stage::Links);
        meter.move_over(1_000, 1, Stage::Dns);
        assert_eq!(meter.readings(), 6, "one for each");
        let read = meter.read();
        let of = |stage: Stage| read[stage as usize];
        assert_eq!(of(Stage::Links), Account { ticks: 26, calls: 1, bytes: 750 });
        assert_eq!(of(Stage::Url), Account { ticks: 10, calls: 1, bytes: 0 });
        assert_eq!(of(Stage::Tls), Account { ticks: 4, calls: 2, bytes: 0 });
        assert_eq!(of(Stage::Rest).ticks, 0, "no more is moved than there is");
        assert_eq!(of(Stage::Dns).ticks, 20);
    }

    /// Law: whatever the stages do, no tick is lost or charged twice.
    #[test]
    fn the_sum_is_the_time() {
        let mut meter = Meter::new(tick);
        let began = CLOCK.with(Cell::get);
        let mut random = Random(1);
        for _ in 0..1_000 {
            let state = random.word();
            let stage = Stage::ALL[(state >> 40) as usize % STAGES];
            if state >> 63 == 0 {
                meter.enter(stage, 1);
            } else {
                meter.back(stage);
                meter.move_over(state >> 61, 1, Stage::Tls);
            }
        }
        meter.back(Stage::Rest);
        let sum: u64 = meter.read().iter().map(|account| account.ticks).sum();
        assert_eq!(sum, CLOCK.with(Cell::get) - began);
    }
}
