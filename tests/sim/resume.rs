//! Crawls that are killed and resumed: the archive is read back before any request is sent.

use super::stand::{Pieces, Plan};
use super::varied;
use std::time::Duration;

/// Whether queues are in memory or on disk: servers rest after a kill, and what they have answered
/// since the checkpoint is read back meanwhile.
#[test]
fn replies_are_read_back_before_anybody_is_asked() {
    for memory_bytes in [1 << 10, 64 << 20] {
        let plan = Plan::new(varied(5)).with(&[
            "connections.open_max = 4",
            "politeness.delay = \"500ms\"",
            "politeness.burst = 5",
            "store.format = \"warc\"",
            "state.keep = true",
            "state.checkpoint_period = \"5s\"",
            "store.sync_period = \"1s\"",
        ]);
        let mut pieces = Pieces::of(&plan);
        pieces.settings.frontier.memory_bytes = memory_bytes;
        pieces.settings.store.buffer_bytes = 1 << 10;
        let mut engine = pieces.open();
        let mut until = u64::MAX;
        pieces.run_until(&mut engine, |view| {
            let counts = view.engine.counts();
            if until == u64::MAX && counts.checkpoints > 0 {
                until = counts.pages + 60;
            }
            counts.pages >= until
        });
        pieces.end(engine, Duration::from_secs(60));
        let mut engine = pieces.open();
        let counts = engine.counts();
        let (before, asked) = (counts.replayed, counts.requests);
        let (_, listed) = engine.reread().expect("there is something to read back");
        pieces.run_until(&mut engine, |view| view.engine.counts().requests > asked);
        let read = engine.counts().replayed - before;
        assert!(listed > 40, "{listed}");
        assert_eq!(read, listed as u64, "{memory_bytes} bytes for queues");
    }
}
