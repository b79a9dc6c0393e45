//! The meter of stages: how a core without a clock accounts for its time.
//!
//! The world hands in a tick function, each stage announces itself, and the ticks since the last
//! announcement are charged to the stage before. The core only ever writes; a world reads
//! (`tests/layers.rs` holds it to that), so that no decision can hang on a clock.
//!
//! Laws: every tick is charged to one stage; the sum of all stages is the time since the meter was
//! made. Cost: a call of the tick function where a stage begins, and where it ends.

/// A stage of the loop that time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stage {
    /// Asleep in the poller, and asking it.
    Wait,
    /// Reading from sockets, and what else the poller tells of them.
    Receive,
    /// Writing requests to sockets; opening and closing them.
    Send,
    /// TLS: handshakes, decryption, encryption.
    Tls,
    /// Heads and framing of responses; requests to bytes.
    Http,
    /// Content codings.
    Decode,
    /// Finding references in pages.
    Links,
    /// Joining, canonical form.
    Url,
    /// Scope, keys and fingerprints, the duplicate URL eliminator.
    Seen,
    /// Frontier: adding, ranking, choosing.
    Schedule,
    /// Records, digests, index, crawl log.
    Store,
    /// What is remembered: queues and fingerprints to the disk and back, checkpoints.
    State,
    /// Names: cache and hand-over to the side thread.
    Dns,
    /// All else: wiring, timers, accounting.
    Rest,
}

/// Stages there are.
pub const STAGES: usize = Stage::Rest as usize + 1;

impl Stage {
    /// All of them, in the order of the journey.
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

    /// Its name in reports.
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
    /// Time, in the unit of the tick function.
    pub ticks: u64,
    /// Times it began.
    pub calls: u64,
    /// Bytes that went through it, where it has any.
    pub bytes: u64,
}

/// Charges ticks, calls and bytes to stages.
#[derive(Debug)]
pub struct Meter {
    tick: fn() -> u64,
    accounts: [Account; STAGES],
    stage: Stage,
    since: u64,
    readings: u64,
}

impl Meter {
    /// A meter over the world's tick function; [`still`] where time has no meaning.
    pub fn new(tick: fn() -> u64) -> Self {
        let accounts = [Account::default(); STAGES];
        Self { tick, accounts, stage: Stage::Rest, since: tick(), readings: 0 }
    }

    /// From here on time is `stage`'s, which has `bytes` to work on, if that can be told. Returns
    /// the stage it was, for [`Meter::back`].
    pub fn enter(&mut self, stage: Stage, bytes: usize) -> Stage {
        let account = &mut self.accounts[stage as usize];
        account.calls += 1;
        account.bytes += bytes as u64;
        self.back(stage)
    }

    /// The same, but if it is that stage already nothing begins: only the bytes are counted.
    pub fn stay(&mut self, stage: Stage, bytes: usize) {
        if self.stage == stage {
            self.add_bytes(bytes);
        } else {
            self.enter(stage, bytes);
        }
    }

    /// The present stage, to go back to.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// From here on time is `stage`'s again. Returns the stage it was.
    pub fn back(&mut self, stage: Stage) -> Stage {
        let now = (self.tick)();
        self.readings += 1;
        self.accounts[self.stage as usize].ticks += now.saturating_sub(self.since);
        self.since = now;
        std::mem::replace(&mut self.stage, stage)
    }

    /// So many bytes more went through the present stage.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.accounts[self.stage as usize].bytes += bytes as u64;
    }

    /// Of the time of the present stage so much was another's, which had so many calls.
    pub fn move_over(&mut self, ticks: u64, calls: u64, to: Stage) {
        self.back(self.stage);
        let own = &mut self.accounts[self.stage as usize];
        let moved = ticks.min(own.ticks);
        own.ticks -= moved;
        let account = &mut self.accounts[to as usize];
        account.ticks += moved;
        account.calls += calls;
    }

    /// What was charged to each stage, in the order of [`Stage::ALL`]. For worlds only.
    pub fn read(&self) -> [Account; STAGES] {
        self.accounts
    }

    /// Times that it asked the tick function: what metering costs. For worlds only.
    pub fn readings(&self) -> u64 {
        self.readings
    }
}

/// A clock that stands still, for worlds in which stages cost nothing.
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

    /// Law: whatever stages do, no tick is lost or charged twice.
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
